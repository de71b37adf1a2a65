struct Particle { place: vec3<f32>, speed: vec3<f32>, age: u32 }
struct Box { low: vec2<f32>, high: vec2<f32>, kinds: array<u32, 5> }
@group(0) @binding(0) var<storage, read_write> particles: array<Particle>;
@group(0) @binding(1) var<storage, read> boxes: array<Box>;
@group(0) @binding(2) var<uniform> step: vec4<f32>;

@compute @workgroup_size(8)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    var it = particles[id.x];
    it.place += it.speed * step.x;
    let around = boxes[it.age % 7u];
    it.age += around.kinds[id.x % 5u];
    it.place[id.x % 3u] = around.low.x;
    particles[id.x] = it;
    particles[id.x + 8u].speed.y = around.high[id.x & 1u];
}
