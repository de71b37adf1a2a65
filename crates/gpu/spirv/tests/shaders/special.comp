#version 460

// What specialization constants decide: sizes, branches, offsets.
layout(local_size_x_id = 0, local_size_y = 2) in;
layout(constant_id = 1) const bool WRITES = false;
layout(constant_id = 2) const int MODE = 0;
layout(constant_id = 3) const uint LENGTH = 4;
layout(set = 0, binding = 0) buffer A { uint first[LENGTH]; uint after; } a;
layout(set = 0, binding = 1) buffer B { uint it; } b;
layout(set = 0, binding = 2) buffer C { uint it; } c;
layout(set = 0, binding = 3) buffer D { uint it; } d;

void main() {
    a.first[LENGTH - 1] = 1;
    a.first[gl_LocalInvocationID.x] = 2;
    if (WRITES) {
        b.it = 3;
    } else {
        uint read = b.it;
        a.first[0] = read;
    }
    switch (MODE) {
    case 1:
        c.it = 1;
        break;
    case 2:
        d.it = 2;
        break;
    }
}
