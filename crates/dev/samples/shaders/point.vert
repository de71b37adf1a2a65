#version 450

// Leaves everything to the stage behind it.
void main() {
    gl_Position = vec4(0.0, 0.0, 0.0, 1.0);
}
