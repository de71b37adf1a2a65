#version 450

// Copies the third buffer of an array.
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer Words { uint words[]; } buffers[4];
layout(set = 0, binding = 1) writeonly buffer Target { uint target[]; };

void main() {
    uint at = gl_GlobalInvocationID.x;
    target[at] = buffers[2].words[at];
}
