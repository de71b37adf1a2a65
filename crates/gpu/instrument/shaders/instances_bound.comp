#version 450

// As `instances.comp`, for devices and instances without addresses: everything is bound as a buffer.
layout(local_size_x = 64) in;

layout(set = 0, binding = 0) buffer Instances { uint instances[]; };
// References that may be used, two words each, sorted.
layout(set = 0, binding = 1) readonly buffer Known { uint known[]; };
// How many were wrong, then of the first ones: which instance, and its reference.
layout(set = 0, binding = 2) buffer Found { uint found[]; };

layout(push_constant) uniform Push {
    // The word where the first instance begins.
    uint first_word;
    uint count;
    uint known_count;
    // How many instances can be told of.
    uint room;
};

// Where the reference is in an instance of sixteen words.
const uint REFERENCE = 14u;

bool is_known(uvec2 reference) {
    uint least = 0u;
    uint most = known_count;
    while (least < most) {
        uint middle = (least + most) / 2u;
        uvec2 here = uvec2(known[middle * 2u], known[middle * 2u + 1u]);
        if (here == reference) {
            return true;
        }
        if (here.y < reference.y || (here.y == reference.y && here.x < reference.x)) {
            least = middle + 1u;
        } else {
            most = middle;
        }
    }
    return false;
}

void main() {
    uint at = gl_GlobalInvocationID.x;
    if (at >= count) {
        return;
    }
    uint place = first_word + at * 16u + REFERENCE;
    uvec2 reference = uvec2(instances[place], instances[place + 1u]);
    // An instance without a reference is inactive.
    if (reference == uvec2(0u) || is_known(reference)) {
        return;
    }
    instances[place] = 0u;
    instances[place + 1u] = 0u;
    uint number = atomicAdd(found[0], 1u);
    if (number < room) {
        found[1u + number * 3u] = at;
        found[2u + number * 3u] = reference.x;
        found[3u + number * 3u] = reference.y;
    }
}
