#version 450

// Takes its vertices out of a storage buffer, from where another one says.
layout(set = 0, binding = 1) readonly buffer First { uint first; uint value; uint corner; };
layout(set = 0, binding = 2) readonly buffer Corners { vec2 corners[]; };

void main() {
    gl_Position = vec4(corners[corner + gl_VertexIndex], 0.0, 1.0);
}
