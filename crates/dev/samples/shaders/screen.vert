#version 450

// Two triangles over the whole picture, without a vertex buffer.
layout(location = 0) out vec2 place;

void main() {
    vec2 corners[6] = vec2[](vec2(0, 0), vec2(1, 0), vec2(0, 1), vec2(0, 1), vec2(1, 0), vec2(1, 1));
    place = corners[gl_VertexIndex];
    gl_Position = vec4(place * 2.0 - 1.0, 0.0, 1.0);
}
