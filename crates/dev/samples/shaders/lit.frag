#version 450

const int LIGHTS = 16;

struct Light { vec4 place; vec4 color; };

layout(set = 0, binding = 1) uniform Lights { Light lights[LIGHTS]; };
layout(set = 0, binding = 2) uniform sampler2D image;
layout(location = 0) in vec2 place;
layout(location = 0) out vec4 color;

// A light reaches as far as its fourth number says, and fades with the square of the distance.
void main() {
    vec3 sum = vec3(0.1);
    for (int light = 0; light < LIGHTS; light++) {
        vec2 away = gl_FragCoord.xy - lights[light].place.xy;
        float reach = lights[light].place.w;
        sum += lights[light].color.rgb * max(0.0, 1.0 - dot(away, away) / (reach * reach));
    }
    color = vec4(texture(image, place).rgb * min(sum, vec3(1.0)), 1.0);
}
