#version 460
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_buffer_reference2 : require
#extension GL_EXT_buffer_reference_uvec2 : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require

// Device addresses from push constants, from buffers, from other addresses, and out of arithmetic.
layout(buffer_reference) buffer Node;
layout(buffer_reference, std430) buffer Node { uint value; Node next; uint more[4]; };
layout(buffer_reference, std430, buffer_reference_align = 4) buffer Word { uint it; };
layout(set = 2, binding = 1, std430) readonly buffer Table { uvec4 pad; Node nodes[4]; uint64_t raw; } table;
layout(push_constant) uniform Push { uint index; Node first; uvec2 halves; };

Node choose(bool other) {
    Node picked = first;
    if (other) {
        picked = table.nodes[3];
    }
    return picked;
}

void main() {
    first.value = 1;
    first.next.more[2] = 2;
    table.nodes[2].more[index] = 3;
    table.nodes[index].value = 4;
    Word(table.raw + 12).it = 5;
    Word(table.raw + 4 * index).it = 6;
    Word(halves).it = 7;
    Node local = table.nodes[1];
    local.value = 8;
    Word words = Word(first);
    words[3].it = 9;
    choose(index > 4).value = 10;
    Node walk = first;
    for (uint it = 0; it < index; ++it) {
        walk.value = 11;
        walk = walk.next;
    }
}
