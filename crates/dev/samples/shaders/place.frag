#version 450

// Writes a word for each fragment, from where another buffer says.
layout(set = 0, binding = 0) writeonly buffer Target { uint target[]; };
layout(set = 0, binding = 1) readonly buffer First { uint first; uint value; uint corner; };
layout(location = 0) out vec4 color;

void main() {
    uvec2 at = uvec2(gl_FragCoord.xy);
    target[first + at.y * 16u + at.x] = value;
    color = vec4(0.0, 1.0, 0.0, 1.0);
}
