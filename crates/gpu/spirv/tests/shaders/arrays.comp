#version 460
#extension GL_EXT_nonuniform_qualifier : require
#extension GL_EXT_samplerless_texture_functions : require

// Elements of arrays of descriptors: constant, from a specialization constant, from push constants, at run time.
layout(constant_id = 7) const uint SECOND = 1;
layout(set = 0, binding = 0) buffer Fixed { uint words[]; } fixed_[4];
layout(set = 0, binding = 1) uniform texture2D open[];
layout(push_constant) uniform Push { uint unused; uint which; };

void main() {
    fixed_[3].words[0] = 1;
    fixed_[SECOND].words[1] = 2;
    fixed_[SECOND + 1].words[2] = texelFetch(open[which], ivec2(0), 0).x > 0.5 ? 1u : 0u;
    fixed_[gl_WorkGroupID.x & 3].words[3] = uint(texelFetch(open[5], ivec2(0), 0).x);
}
