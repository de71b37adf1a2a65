#version 460

// Resources and indices that reach their use through functions and variables.
layout(set = 0, binding = 0) writeonly uniform uimage2D images[4];
layout(set = 0, binding = 1) uniform sampler2D textures[4];
layout(set = 0, binding = 2) buffer Out { uint values[16]; vec4 colors[8]; } result;

void put(writeonly uimage2D where, uint what) { imageStore(where, ivec2(0), uvec4(what)); }
vec4 get(sampler2D from) { return textureLod(from, vec2(0), 0); }
uint next(uint it) { return it + 1; }
void double_(inout uint it) { it = it * 2; }
void store(uint index, uint value) { result.values[index] = value; }

void main() {
    put(images[0], 1);
    put(images[2], 2);
    result.colors[0] = get(textures[next(0)]);
    uint two = 1;
    double_(two);
    result.colors[two] = get(textures[two + 1]);
    store(3, 10);
    store(next(4), 20);
    uint either = 6;
    if (gl_WorkGroupID.x > 2) {
        either = 7;
    }
    store(either, 30);
    uint looped = 8;
    for (uint it = 0; it < 4; ++it) {
        looped = looped + 1;
        result.values[looped] = 1;
    }
}
