#version 460

// Offsets and strides: nested structures, matrices in both orders, arrays of structures.
struct Inner { float scale; mat3 turn; };
struct Item { vec3 at; float weight; Inner inner[2]; };
layout(set = 0, binding = 0, std430) buffer Block {
    float head;
    layout(row_major) mat4x3 rows;
    mat4x3 columns;
    Item items[3];
    vec2 tail[];
} block;

void main() {
    uint any = gl_WorkGroupID.x;
    block.head = 1.0;
    block.rows[1][2] = 2.0;
    block.rows[2] = vec3(3.0);
    block.columns[1][2] = 4.0;
    block.columns[3] = vec3(5.0);
    block.items[2].inner[1].turn[2][0] = 6.0;
    block.items[any].weight = 7.0;
    block.items[1].at[any] = 8.0;
    block.tail[4].y = 9.0;
    block.tail[any].y = 10.0;
    block.columns = mat4x3(1.0);
}
