#version 460

// Gathers from arrays of images with every kind of index that is the same for all, one kind in each pipeline.
layout(local_size_x = 64) in;
layout(constant_id = 0) const uint KIND = 0;
layout(set = 0, binding = 0) uniform sampler2D pictures[4];
layout(set = 0, binding = 1) uniform texture2D bare[4];
layout(set = 0, binding = 2) uniform sampler samplers[2];
layout(set = 0, binding = 3) uniform sampler2D one[1];
layout(set = 0, binding = 5) buffer Sums { uint sums[]; };
layout(push_constant) uniform Picked { uint picked; uint count; };

const ivec2 OFFSETS[4] = { ivec2(0, 0), ivec2(1, 0), ivec2(0, 1), ivec2(-1, -1) };

vec4 gathered(vec2 at) {
    switch (KIND) {
    case 0: return textureGather(pictures[1], at, 1);
    case 1: return textureGather(pictures[picked & 3u], at, 1);
    case 2: return textureGather(pictures[picked], at, 2);
    case 3: return textureGather(sampler2D(bare[picked], samplers[picked & 1u]), at, 3);
    case 4: return textureGatherOffset(pictures[picked], at, ivec2(1, -1), 1);
    case 5: return textureGatherOffsets(pictures[picked], at, OFFSETS, 1);
    case 6: return textureGather(one[picked - 1u], at, 1);
    }
    vec4 sum = vec4(0.0);
    for (uint it = 0u; it < count; ++it) {
        sum += textureGather(pictures[it], at, 1);
    }
    return sum;
}

void main() {
    uint at = gl_GlobalInvocationID.x;
    vec4 sum = gathered(vec2(float(at % 8u), float(at / 8u)) / 8.0);
    sums[at] = uint(sum.x + sum.y + sum.z + sum.w);
}
