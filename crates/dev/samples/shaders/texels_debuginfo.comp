#version 450

// Copies words out of a texel buffer; what it is told of comes from NonSemantic.Shader.DebugInfo.100.
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) uniform utextureBuffer source;
layout(set = 0, binding = 1) writeonly buffer Target { uint target[]; };

void main() {
    uint at = gl_GlobalInvocationID.x;
    target[at] = texelFetch(source, int(at)).x;
}
