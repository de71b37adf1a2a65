#version 460
#extension GL_ARB_post_depth_coverage : require

// Tests before the shader.
layout(early_fragment_tests, post_depth_coverage) in;
layout(location = 2, component = 1) in vec2 at;
layout(location = 1) out vec3 color;
layout(location = 3, component = 2) out vec2 part;
layout(location = 4) out vec4 untouched;

void main() {
    color = vec3(at, 1.0);
    part = at;
}
