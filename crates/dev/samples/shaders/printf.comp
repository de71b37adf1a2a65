#version 450
#extension GL_EXT_debug_printf : require

// Squares numbers, and prints some of them.
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer Source { uint source[]; };
layout(set = 0, binding = 1) writeonly buffer Target { uint target[]; };

void main() {
    uint at = gl_GlobalInvocationID.x;
    uint square = source[at] * source[at];
    target[at] = square;
    if (at % 32u == 5u) {
        debugPrintfEXT("invocation %u: the square of %u is %u, half of it %1.1f\n", at, source[at], square, square * 0.5);
    }
}
