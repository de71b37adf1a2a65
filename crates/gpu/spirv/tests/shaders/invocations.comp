#version 460

// Indices that follow from the number of the invocation, and from what memory holds.
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) buffer Data { uint head; uint data[]; };
layout(push_constant) uniform Push { uint base; };

void main() {
    data[gl_GlobalInvocationID.x] = 1;
    data[base + gl_GlobalInvocationID.x * 2 + 1] = 2;
    data[(gl_GlobalInvocationID.y << 8) + gl_GlobalInvocationID.x] = 3;
    data[gl_GlobalInvocationID.x - 1] = 4;
    data[gl_LocalInvocationIndex ^ 1] = 5;
    uvec2 scaled = gl_WorkGroupID.xy * 4;
    data[scaled.x + scaled.y] = 6;
    data[head] = 7;
}
