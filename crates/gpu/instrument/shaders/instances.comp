#version 460
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_buffer_reference_uvec2 : require

// Runs before a top level acceleration structure is built: looks at the reference of each instance, tells of those
// that lead to no bottom level structure, and takes them out, so that the build is sound.
layout(local_size_x = 64) in;

layout(buffer_reference, buffer_reference_align = 4) buffer Words { uint words[]; };

// Addresses have two words, the lower one first.
layout(push_constant) uniform Push {
    // The first instance, or where the addresses of instances begin.
    uvec2 instances;
    // References that may be used, two words each, sorted.
    uvec2 known;
    // How many were wrong, then of the first ones: which instance, and its reference.
    uvec2 found;
    uint count;
    uint known_count;
    // Whether `instances` has addresses.
    uint has_addresses;
    // How many instances can be told of.
    uint room;
    // Where the device has put how many instances there are, and how far behind `instances`; null where the host knows.
    uvec2 range;
};

// Where the reference is in an instance of sixteen words.
const uint REFERENCE = 14u;

bool is_known(uvec2 reference) {
    Words table = Words(known);
    uint least = 0u;
    uint most = known_count;
    while (least < most) {
        uint middle = (least + most) / 2u;
        uvec2 here = uvec2(table.words[middle * 2u], table.words[middle * 2u + 1u]);
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
    uint most = count;
    uvec2 begin = instances;
    if (range != uvec2(0u)) {
        Words told = Words(range);
        most = min(count, told.words[0]);
        uint carry;
        begin.x = uaddCarry(begin.x, told.words[1], carry);
        begin.y += carry;
    }
    if (at >= most) {
        return;
    }
    Words instance = Words(begin);
    uint first = at * 16u;
    if (has_addresses != 0u) {
        instance = Words(uvec2(instance.words[at * 2u], instance.words[at * 2u + 1u]));
        first = 0u;
    }
    uvec2 reference = uvec2(instance.words[first + REFERENCE], instance.words[first + REFERENCE + 1u]);
    // An instance without a reference is inactive.
    if (reference == uvec2(0u) || is_known(reference)) {
        return;
    }
    instance.words[first + REFERENCE] = 0u;
    instance.words[first + REFERENCE + 1u] = 0u;
    Words out_words = Words(found);
    uint number = atomicAdd(out_words.words[0], 1u);
    if (number < room) {
        out_words.words[1u + number * 3u] = at;
        out_words.words[2u + number * 3u] = reference.x;
        out_words.words[3u + number * 3u] = reference.y;
    }
}
