#version 460

// Which stores are certain. The member's number says its place.
layout(set = 0, binding = 0) buffer Marks { uint it[16]; } marks;
layout(set = 0, binding = 1) readonly buffer Input { uint branch; uint count; } in_;

void main() {
    marks.it[0] = 1;
    if (in_.branch > 0) {
        marks.it[1] = 1;
    } else {
        marks.it[2] = 1;
    }
    marks.it[3] = 1;
    for (uint it = 0; it < in_.count; ++it) {
        marks.it[4] = 1;
        if (it == in_.branch) {
            marks.it[5] = 1;
            break;
        }
    }
    marks.it[6] = 1;
    switch (in_.count) {
    case 0:
        marks.it[7] = 1;
    case 1:
        marks.it[8] = 1;
        break;
    default:
        marks.it[9] = 1;
    }
    marks.it[10] = 1;
    do {
        marks.it[11] = 1;
    } while (in_.branch > 7);
    if (in_.count == 3) {
        return;
    }
    marks.it[12] = 1;
}
