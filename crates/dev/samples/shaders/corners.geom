#version 450

// Makes each triangle out of corners in a storage buffer.
layout(triangles) in;
layout(triangle_strip, max_vertices = 3) out;
layout(set = 0, binding = 0) readonly buffer Corners { vec2 corners[]; };

void main() {
    for (int at = 0; at < 3; at++) {
        gl_Position = vec4(corners[gl_PrimitiveIDIn * 3 + at], 0.0, 1.0);
        EmitVertex();
    }
    EndPrimitive();
}
