#version 450
#extension GL_EXT_buffer_reference : require

// Doubles every word, from one address to another.
layout(local_size_x = 64) in;
layout(buffer_reference, std430, buffer_reference_align = 4) buffer Words { uint words[]; };
layout(push_constant) uniform Addresses { Words source; Words target; };

void main() {
    uint at = gl_GlobalInvocationID.x;
    target.words[at] = source.words[at] * 2u;
}
