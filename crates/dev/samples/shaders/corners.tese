#version 450

// Places the vertices of a patch, scaled by a word of a storage buffer.
layout(triangles, equal_spacing, ccw) in;
layout(set = 0, binding = 1) readonly buffer Scales { float scales[]; };

void main() {
    vec4 place = gl_TessCoord.x * gl_in[0].gl_Position + gl_TessCoord.y * gl_in[1].gl_Position
        + gl_TessCoord.z * gl_in[2].gl_Position;
    gl_Position = vec4(place.xy * scales[gl_PrimitiveID], 0.0, 1.0);
}
