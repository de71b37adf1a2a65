#version 450

// Copies a buffer, if another one says so.
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer Source { uint source[]; };
layout(set = 0, binding = 1) writeonly buffer Target { uint target[]; };
layout(set = 0, binding = 2) readonly buffer Wish { uint wish; };

void main() {
    uint at = gl_GlobalInvocationID.x;
    target[at] = 7u;
    if (wish != 0u) {
        target[at] = source[at];
    }
}
