#version 450

// Every fragment writes the same color.
layout(set = 0, binding = 0) writeonly buffer Paint { vec4 paint; };
layout(location = 0) out vec4 color;

void main() {
    paint = vec4(0.0, 1.0, 0.0, 1.0);
    color = vec4(1.0);
}
