#version 450
#extension GL_EXT_buffer_reference : require

// Writes a word for each invocation at an address, from where another buffer says.
layout(local_size_x = 64) in;
layout(constant_id = 0) const uint turn = 0u;
layout(buffer_reference, std430, buffer_reference_align = 4) buffer Words { uint words[]; };
layout(push_constant) uniform Addresses { Words target; Words first; };

void main() {
    target.words[first.words[turn] + gl_GlobalInvocationID.x] = turn + 1u;
}
