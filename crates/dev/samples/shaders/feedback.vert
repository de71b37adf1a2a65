#version 450

// Writes four words for each vertex to the buffer of transform feedback.
layout(location = 0, xfb_buffer = 0, xfb_offset = 0, xfb_stride = 16) out vec4 words;

void main() {
    words = vec4(uintBitsToFloat(7u));
    gl_Position = vec4(0.0, 0.0, 0.0, 1.0);
}
