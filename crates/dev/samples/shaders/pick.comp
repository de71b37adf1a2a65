#version 450

// Copies the buffer of an array that another buffer names.
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer Words { uint words[]; } buffers[4];
layout(set = 0, binding = 1) writeonly buffer Target { uint target[]; };
layout(set = 0, binding = 2) readonly buffer Choice { uint choice; };

void main() {
    uint at = gl_GlobalInvocationID.x;
    target[at] = buffers[choice].words[at];
}
