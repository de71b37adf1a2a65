#version 460

// Every invocation counts.
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) buffer Data { uint count; };

void main() {
    atomicAdd(count, 1);
}
