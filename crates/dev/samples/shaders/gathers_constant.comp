#version 460

// Gathers from arrays of images with an index that the shader names, one kind in each pipeline.
layout(local_size_x = 64) in;
layout(constant_id = 0) const uint KIND = 0;
layout(set = 0, binding = 0) uniform sampler2D pictures[4];
layout(set = 0, binding = 1) uniform texture2D bare[4];
layout(set = 0, binding = 2) uniform sampler samplers[2];
layout(set = 0, binding = 5) buffer Sums { uint sums[]; };

const ivec2 OFFSETS[4] = { ivec2(0, 0), ivec2(1, 0), ivec2(0, 1), ivec2(-1, -1) };

vec4 gathered(vec2 at) {
    switch (KIND) {
    case 0: return textureGather(pictures[1], at, 1);
    case 1: return textureGather(sampler2D(bare[1], samplers[1]), at, 3);
    case 2: return textureGatherOffset(pictures[1], at, ivec2(1, -1), 1);
    }
    return textureGatherOffsets(pictures[1], at, OFFSETS, 1);
}

void main() {
    uint at = gl_GlobalInvocationID.x;
    vec4 sum = gathered(vec2(float(at % 8u), float(at / 8u)) / 8.0);
    sums[at] = uint(sum.x + sum.y + sum.z + sum.w);
}
