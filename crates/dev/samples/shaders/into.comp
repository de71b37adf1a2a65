#version 450

// Writes the buffer of an array that another buffer names.
layout(local_size_x = 64) in;
layout(constant_id = 0) const uint turn = 0u;
layout(set = 0, binding = 0) writeonly buffer Words { uint words[]; } buffers[4];
layout(set = 0, binding = 1) readonly buffer Choice { uint choice[2]; };

void main() {
    buffers[choice[turn]].words[gl_GlobalInvocationID.x] = turn + 1u;
}
