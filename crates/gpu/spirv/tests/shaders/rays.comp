#version 460
#extension GL_EXT_ray_query : require
#extension GL_ARB_gpu_shader_int64 : require

// A ray through an acceleration structure, and one through a structure by its address.
layout(set = 0, binding = 0) uniform accelerationStructureEXT scene;
layout(set = 0, binding = 1) uniform accelerationStructureEXT idle;
layout(push_constant) uniform Push { uint64_t address; };
layout(set = 0, binding = 2) buffer Hit { uint it; } hit;

void main() {
    rayQueryEXT query;
    rayQueryInitializeEXT(query, scene, 0, 0xff, vec3(0), 0.0, vec3(1), 10.0);
    rayQueryProceedEXT(query);
    rayQueryInitializeEXT(query, accelerationStructureEXT(address), 0, 0xff, vec3(0), 0.0, vec3(1), 10.0);
    hit.it = rayQueryGetIntersectionTypeEXT(query, false);
}
