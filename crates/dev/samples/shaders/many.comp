#version 450

// Sums six words; the second half of the invocations is the one that reads far behind the first word.
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer Source { uint source[]; };
layout(set = 0, binding = 1) writeonly buffer Target { uint target[]; };

void main() {
    uint at = gl_GlobalInvocationID.x < 128u ? 0u : gl_GlobalInvocationID.x;
    uint sum = source[at];
    sum += source[at * 2u];
    sum += source[at * 3u];
    sum += source[at * 4u];
    sum += source[at * 5u];
    sum += source[at * 6u];
    target[gl_GlobalInvocationID.x] = sum;
}
