#version 450

// Changes every word by a key and its place, such that no step can be undone by another.
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) buffer Words { uint words[]; };
layout(push_constant) uniform Step { uint key; };

void main() {
    uint at = gl_GlobalInvocationID.x;
    uint word = (words[at] ^ key) * 0x9E3779B1u + at;
    words[at] = (word << 13) | (word >> 19);
}
