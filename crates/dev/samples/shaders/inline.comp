#version 450

// Spreads what is in an inline block over a buffer.
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) uniform Block { uvec4 block[16]; };
layout(set = 0, binding = 1) writeonly buffer Target { uint target[]; };

void main() {
    uint at = gl_GlobalInvocationID.x;
    target[at] = block[at / 16u].x;
}
