#version 450

// One step of a prefix sum: every word adds the one `stride` before it.
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer Source { uint source[]; };
layout(set = 0, binding = 1) writeonly buffer Target { uint target[]; };
layout(push_constant) uniform Step { uint stride; uint count; };

void main() {
    uint at = gl_GlobalInvocationID.x;
    if (at < count) {
        target[at] = source[at] + (at >= stride ? source[at - stride] : 0u);
    }
}
