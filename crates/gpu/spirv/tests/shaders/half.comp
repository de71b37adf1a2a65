#version 460

// Each launch writes to its own part, behind the number that is pushed.
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) writeonly buffer Data { uint data[]; };
layout(push_constant) uniform Push { uint base; };

void main() {
    data[base + gl_WorkGroupID.x * 64 + gl_LocalInvocationIndex] = 1;
}
