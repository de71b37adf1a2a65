#version 460

// Depth from the shader, discard, one run per sample, two sources.
layout(depth_greater) out float gl_FragDepth;
layout(location = 0, index = 0) out vec4 first;
layout(location = 0, index = 1) out vec4 second;
layout(set = 0, binding = 0) buffer Log { uint before; uint after; uint late; } log_;

void stop() {
    if (gl_FragCoord.y < 1.0) {
        discard;
    }
}

void main() {
    log_.before = 1;
    if (gl_FragCoord.x < 2.0) {
        discard;
    }
    log_.after = 2;
    gl_FragDepth = 0.5;
    first = vec4(gl_SampleID);
    second = vec4(1.0);
    stop();
    log_.late = 3;
}
