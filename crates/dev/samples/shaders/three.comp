#version 450
#extension GL_GOOGLE_cpp_style_line_directive : require

// Adds the words of two buffers. Its lines are counted by another file.
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer First { uint first[]; };
layout(set = 0, binding = 1) readonly buffer Second { uint second[]; };
layout(set = 0, binding = 2) writeonly buffer Target { uint target[]; };

void main() {
#line 100 "sum.glsl"
    uint at = gl_GlobalInvocationID.x;
    uint one = first[at];
    uint two = second[at];
    target[at] = one + two;
}
