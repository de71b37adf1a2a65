#version 450

// Copies words from a place far behind. Four times the index does not fit into 32 bits.
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer Source { uint source[]; };
layout(set = 0, binding = 1) writeonly buffer Target { uint target[]; };
layout(set = 0, binding = 2) readonly buffer Choice { uint far; };

void main() {
    uint at = gl_GlobalInvocationID.x;
    target[at] = source[far + at];
}
