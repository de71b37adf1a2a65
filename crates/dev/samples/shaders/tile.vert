#version 450

layout(location = 0) in vec2 position;
layout(location = 0) out vec3 vertexColor;
layout(push_constant) uniform Tile { vec4 color; };

void main() {
    gl_Position = vec4(position, 0.0, 1.0);
    vertexColor = color.rgb;
}
