#version 450

layout(set = 0, binding = 0) uniform sampler2D image;
layout(location = 0) in vec2 place;
layout(location = 0) out vec4 color;

// The left half shows the first mip level, the right half the second.
void main() {
    color = textureLod(image, place, place.x < 0.5 ? 0.0 : 1.0);
}
