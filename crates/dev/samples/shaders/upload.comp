#version 450
#extension GL_EXT_samplerless_texture_functions : require

// Adds a buffer and an image of 16 by 16 texels, word by word.
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer Words { uint words[]; };
layout(set = 0, binding = 1) uniform utexture2D image;
layout(set = 0, binding = 2) writeonly buffer Sums { uint sums[]; };

void main() {
    uint at = gl_GlobalInvocationID.x;
    sums[at] = words[at] + texelFetch(image, ivec2(at % 16u, at / 16u), 0).x;
}
