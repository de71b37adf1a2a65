#version 450

struct Object { vec2 corner; vec2 size; };

layout(set = 0, binding = 0) readonly buffer Objects { Object objects[]; };
layout(push_constant) uniform Draw { uint number; };
layout(location = 0) out vec2 place;

const vec2 CORNERS[6] = vec2[](vec2(0, 0), vec2(1, 0), vec2(0, 1), vec2(0, 1), vec2(1, 0), vec2(1, 1));

void main() {
    vec2 corner = CORNERS[gl_VertexIndex];
    place = corner;
    gl_Position = vec4((objects[number].corner + corner * objects[number].size) * 2.0 - 1.0, 0.0, 1.0);
}
