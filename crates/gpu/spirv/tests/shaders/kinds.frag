#version 460
#extension GL_EXT_samplerless_texture_functions : require

// One descriptor of each kind that a fragment shader can have, each used in one way.
layout(set = 0, binding = 0) uniform Numbers { vec4 tint; vec4 unused; } numbers;
layout(set = 0, binding = 1, std430) buffer Words { uint words[]; } words;
layout(set = 0, binding = 2) uniform sampler2D combined;
layout(set = 0, binding = 3) uniform texture2D alone;
layout(set = 0, binding = 4) uniform sampler how;
layout(set = 0, binding = 5, rgba8) readonly uniform image2D source;
layout(set = 0, binding = 6, rgba8) writeonly uniform image2D target;
layout(set = 0, binding = 7, r32ui) uniform uimage2D counters;
layout(set = 0, binding = 8) uniform samplerBuffer texels;
layout(set = 0, binding = 9, r32f) uniform imageBuffer storedTexels;
layout(set = 0, binding = 10, input_attachment_index = 3) uniform subpassInput attachment;
layout(set = 0, binding = 11) uniform texture2D onlySize;
layout(set = 0, binding = 12, std430) readonly buffer Length { uint items[]; } onlyLength;
layout(set = 1, binding = 0) uniform Unused { vec4 it; } unused;
layout(location = 0) in vec2 at;
layout(location = 0) out vec4 color;

void main() {
    ivec2 texel = ivec2(at);
    color = numbers.tint;
    atomicAdd(words.words[2], 1u);
    color += texture(combined, at);
    color += texture(sampler2D(alone, how), at);
    color += imageLoad(source, texel);
    imageStore(target, texel, color);
    imageAtomicAdd(counters, texel, 1u);
    color += texelFetch(texels, texel.x);
    imageStore(storedTexels, texel.x, imageLoad(storedTexels, texel.y));
    color += subpassLoad(attachment);
    color.x += float(textureSize(onlySize, 0).x + onlyLength.items.length());
}
