#version 450

// Paints an image of 16 by 16 texels green.
layout(local_size_x = 64) in;
layout(set = 0, binding = 0, rgba8) uniform writeonly image2D image;

void main() {
    uint at = gl_GlobalInvocationID.x;
    imageStore(image, ivec2(at % 16u, at / 16u), vec4(0.0, 1.0, 0.0, 1.0));
}
