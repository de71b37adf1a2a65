#version 460
#extension GL_EXT_ray_tracing : require

// A ray that hits nothing finds a word of a storage buffer.
layout(set = 0, binding = 0) readonly buffer Source { uint source[]; };
layout(location = 0) rayPayloadInEXT uint found;

void main() {
    found = source[gl_LaunchIDEXT.x];
}
