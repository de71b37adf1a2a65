#version 450

// Copies words into a texel buffer.
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer Source { uint source[]; };
layout(set = 0, binding = 1, r32ui) writeonly uniform uimageBuffer target;

void main() {
    uint at = gl_GlobalInvocationID.x;
    imageStore(target, int(at), uvec4(source[at]));
}
