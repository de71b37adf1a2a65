#version 450

layout(set = 0, binding = 0) uniform Palette { vec4 colors[4]; };
layout(set = 1, binding = 0) uniform Grid { vec2 cellSize; };
layout(location = 0) in vec2 corner;
layout(location = 1) in vec2 cell;
layout(location = 0) out vec3 vertexColor;

void main() {
    gl_Position = vec4((cell + corner) * cellSize - 1.0, 0.0, 1.0);
    vertexColor = colors[gl_InstanceIndex % 4].rgb;
}
