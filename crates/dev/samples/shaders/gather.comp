#version 450

// Sums one word of each buffer of an array; the index is the same for all invocations.
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer Words { uint words[]; } buffers[8];
layout(set = 1, binding = 0) buffer Sums { uint sums[]; };
layout(push_constant) uniform Range { uint first; uint count; };

void main() {
    uint at = gl_GlobalInvocationID.x;
    uint sum = sums[at];
    for (uint it = first; it < first + count; ++it) {
        sum = sum * 31u + buffers[it].words[at];
    }
    sums[at] = sum;
}
