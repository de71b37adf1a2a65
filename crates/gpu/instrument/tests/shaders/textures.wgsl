@group(0) @binding(0) var<storage, read_write> out_: array<vec4<f32>>;
@group(0) @binding(1) var picture: texture_2d<f32>;
@group(0) @binding(2) var nearest: sampler;
@group(0) @binding(3) var target_: texture_storage_2d<r32uint, read_write>;

@compute @workgroup_size(4, 4)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let at = id.y * 4u + id.x;
    let size = textureDimensions(picture);
    let place = (vec2<f32>(id.xy) + 0.5) / vec2<f32>(size);
    out_[at] = textureSampleLevel(picture, nearest, place, 0.0) + textureLoad(picture, id.xy, 0);
    out_[at + 16u] = textureGather(0, picture, nearest, place);
    let old = textureLoad(target_, id.xy).x;
    textureStore(target_, id.xy, vec4<u32>(old + at, 0u, 0u, 0u));
}
