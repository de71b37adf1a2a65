#version 450
#extension GL_EXT_nonuniform_qualifier : require

// Samples one of six pictures, and a picture of an array without a size.
layout(location = 0) in vec2 place;
layout(location = 0) out vec4 color;
layout(set = 0, binding = 0) uniform sampler2D tex[6];
layout(set = 0, binding = 1) readonly buffer Choice { uint tex_ind; uint late; };
layout(set = 0, binding = 2) uniform sampler2D open[];

void main() {
    vec4 one = texture(tex[tex_ind], place);
    vec4 other = texture(open[nonuniformEXT(late)], place);
    color = max(one, other);
}
