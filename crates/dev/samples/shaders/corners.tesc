#version 450

// Takes how finely a patch is cut, and its corners, out of a storage buffer.
layout(vertices = 3) out;
layout(set = 0, binding = 0) readonly buffer Corners { vec2 corners[]; };

void main() {
    gl_out[gl_InvocationID].gl_Position = vec4(corners[gl_PrimitiveID * 3 + gl_InvocationID], 0.0, 1.0);
    gl_TessLevelInner[0] = 1.0;
    gl_TessLevelOuter[0] = 1.0;
    gl_TessLevelOuter[1] = 1.0;
    gl_TessLevelOuter[2] = 1.0;
}
