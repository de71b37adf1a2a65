#version 460

// Inputs of several types, one unused; an output block.
layout(location = 0) in vec3 position;
layout(location = 1) in ivec2 cell;
layout(location = 2) in mat4 model;
layout(location = 6) in uint unused;
layout(location = 7, component = 3) in float weight;
layout(location = 4) out Block { vec4 color; mat3 turn[2]; vec2 uv; vec2 idle; } block;
layout(push_constant) uniform Push { layout(offset = 16) vec4 scale; vec4 idle; layout(offset = 64) float bias; } push;

void main() {
    gl_Position = model * vec4(position, weight) * push.scale;
    block.color = vec4(cell, 0, 1);
    block.uv = vec2(push.bias);
}
