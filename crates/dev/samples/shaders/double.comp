#version 450

// Doubles every word.
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer Source { uint source[]; };
layout(set = 0, binding = 1) writeonly buffer Target { uint target[]; };

void main() {
    uint at = gl_GlobalInvocationID.x;
    target[at] = source[at] * 2u;
}
