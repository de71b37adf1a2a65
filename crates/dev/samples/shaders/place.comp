#version 450

// Writes a word for each invocation, from where another buffer says.
layout(local_size_x = 64) in;
layout(constant_id = 0) const uint turn = 0u;
layout(set = 0, binding = 0) writeonly buffer Target { uint target[]; };
layout(set = 0, binding = 1) readonly buffer First { uint first[2]; };

void main() {
    target[first[turn] + gl_GlobalInvocationID.x] = turn + 1u;
}
