#version 450

// Copies one of two buffers; a constant says which one.
layout(local_size_x = 64) in;
layout(constant_id = 0) const uint choice = 0u;
layout(set = 0, binding = 0) readonly buffer First { uint first[]; };
layout(set = 0, binding = 1) readonly buffer Second { uint second[]; };
layout(set = 0, binding = 2) writeonly buffer Target { uint target[]; };

void main() {
    uint at = gl_GlobalInvocationID.x;
    if (choice == 0u) {
        target[at] = first[at];
    } else {
        target[at] = second[at];
    }
}
