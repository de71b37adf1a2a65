#version 450
#extension GL_EXT_debug_printf : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require

// Prints numbers of many types; each invocation has a format of its own.
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) buffer Numbers { uint number; uint invocations; };

void main() {
    uint n = number;
    atomicAdd(invocations, 1u);
    switch (gl_GlobalInvocationID.x) {
    case 0: debugPrintfEXT("00 %d %i %u %o %x %X\n", -int(n), n, n, n + 8, n + 200, n + 200); break;
    case 1: debugPrintfEXT("01 %f %e %g %a %F %E %G %A\n", n * 1.0, n * 0.1, n * 1e10, n * 0.5, n * 1.0, n * 1e-9, n * 1e-9, n * 3.0); break;
    case 2: debugPrintfEXT("02 %8d|%08d|%8.3f|%.2e|%08x|%3u\n", -int(n), -int(n), n * 0.3, n * 0.3, n + 30, n * 1000); break;
    case 3: debugPrintfEXT("03 %v2d %v3u %v4f\n", ivec2(-int(n), n), uvec3(n), vec4(n, 1, 2, 0.5)); break;
    case 4: debugPrintfEXT("04 %1.2v3f|%6.1v2f|%04v2x\n", vec3(n) / 3.0, vec2(n), uvec2(n, 255)); break;
    case 5: debugPrintfEXT("05 %lu %lx %ul %ld\n", uint64_t(n) << 40, uint64_t(n) << 40, uint64_t(n) << 40, -int64_t(n)); break;
    case 6: debugPrintfEXT("06 %v2lu|%v3lx|%v4ul|%v2ld\n", u64vec2(n), u64vec3(n, 1, 255), u64vec4(n, 255, 1, 2), i64vec2(-int64_t(n), n)); break;
    case 7: debugPrintfEXT("07 %f %e %.10g\n", double(n) / 3.0lf, double(n) * 1e100lf, double(n) / 3.0lf); break;
    case 8: debugPrintfEXT("08 %v2f|%1.1v3f\n", dvec2(n, 0.5), dvec3(n)); break;
    case 9: debugPrintfEXT("09 %d %u\n", n == 7, n == 8); break;
    case 10: debugPrintfEXT("10 %v3d\n", bvec3(n == 7, n == 8, true)); break;
    case 11: debugPrintfEXT("11 100%% of %u in percent\n", n); break;
    case 12: debugPrintfEXT("12 %lu, then %u and %f\n", uint64_t(n), n, n * 0.5); break;
    case 13: debugPrintfEXT("13 %f, then %u\n", double(n), n); break;
    // What does not fit prints the bits.
    case 15: debugPrintfEXT("15 %f %d\n", n, n * 0.5); break;
    case 16: debugPrintfEXT("16 %v2f %d\n", vec3(n), n); break;
    case 17: debugPrintfEXT("17 %d\n", n, n); break;
    case 18: debugPrintfEXT("18 %d %d\n", n); break;
    case 14: debugPrintfEXT("14 no arguments\n"); break;
    }
}
