struct Frame { view: mat4x4<f32>, parts: array<mat3x3<f32>, 4>, count: u32 }
@group(0) @binding(0) var<storage, read_write> all: array<vec4<f32>>;
@group(0) @binding(1) var<uniform> frame: Frame;
@group(0) @binding(2) var<storage, read_write> made: array<mat2x4<f32>>;

@compute @workgroup_size(8)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let column = frame.view[id.x & 3u];
    let part = frame.parts[(id.x + 1u) & 3u];
    all[id.x] = column + vec4<f32>(part[id.x % 3u], frame.view[1][id.x & 3u]);
    made[id.x][1][id.x & 3u] = all[id.x].y;
    made[id.x + 8u] = made[id.x];
}
