#version 460

// The lines of stores, as `OpLine` tells them.
layout(set = 0, binding = 0) buffer Words { uint it[]; } words;

void main() {
    words.it[0] = 1;
#line 100
    words.it[1] = 2; // line 100
    words.it[2] = 3; // line 101
}
