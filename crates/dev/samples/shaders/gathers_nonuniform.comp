#version 460
#extension GL_EXT_nonuniform_qualifier : require

// Gathers from arrays of images that need descriptor indexing, one kind of index in each pipeline.
layout(local_size_x = 64) in;
layout(constant_id = 0) const uint KIND = 0;
layout(set = 0, binding = 0) uniform sampler2D pictures[4];
layout(set = 0, binding = 1) uniform texture2D bare[4];
layout(set = 0, binding = 2) uniform sampler samplers[2];
layout(set = 0, binding = 4) uniform sampler2D many[];
layout(set = 0, binding = 5) buffer Sums { uint sums[]; };
layout(push_constant) uniform Picked { uint picked; uint count; };

const ivec2 OFFSETS[4] = { ivec2(0, 0), ivec2(1, 0), ivec2(0, 1), ivec2(-1, -1) };

vec4 gathered(uint own, vec2 at) {
    switch (KIND) {
    case 0: return textureGather(pictures[nonuniformEXT(own)], at, 0);
    case 1: return textureGather(sampler2D(bare[nonuniformEXT(own)], samplers[nonuniformEXT(own & 1u)]), at, 3);
    case 2: return textureGatherOffsets(pictures[nonuniformEXT(own)], at, OFFSETS, 1);
    case 3: return textureGather(many[picked], at, 1);
    }
    return textureGather(many[nonuniformEXT(own)], at, 1);
}

void main() {
    uint at = gl_GlobalInvocationID.x;
    vec4 sum = gathered(at % 4u, vec2(float(at % 8u), float(at / 8u)) / 8.0);
    sums[at] = uint(sum.x + sum.y + sum.z + sum.w);
}
