#version 460
#extension GL_ARB_fragment_shader_interlock : require

// Fragments of one pixel in their order.
layout(pixel_interlock_ordered) in;
layout(set = 0, binding = 0, r32ui) coherent uniform uimage2D counts;

void main() {
    beginInvocationInterlockARB();
    imageStore(counts, ivec2(gl_FragCoord.xy), imageLoad(counts, ivec2(gl_FragCoord.xy)) + 1u);
    endInvocationInterlockARB();
}
