#version 450

// Leaves out what a buffer does not have, right behind the access.
layout(location = 0) in vec2 place;
layout(location = 0) out vec4 color;
layout(set = 0, binding = 0) readonly buffer Paint { uint paint[]; };

void main() {
    uint word = paint[uint(gl_FragCoord.y) * 16u + uint(gl_FragCoord.x)];
    if (word != 1u) {
        discard;
    }
    color = vec4(0.0, 1.0, 0.0, 1.0);
}
