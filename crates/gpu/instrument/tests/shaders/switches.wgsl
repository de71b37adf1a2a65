@group(0) @binding(0) var<storage, read_write> out_: array<u32>;
@group(0) @binding(1) var<storage, read> in_: array<u32>;

@compute @workgroup_size(8)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    for (var i = 0u; i < 12u; i++) {
        let at = id.x * 12u + i;
        switch in_[at] {
            case 0u: { out_[at] = in_[at + 1u]; }
            case 1u, 2u: { continue; }
            case 3u: { if in_[at + 2u] == 5u { break; } out_[at] += 7u; }
            case 6u: { out_[at] = 1u; return; }
            default: { out_[at] = in_[in_[at]]; }
        }
        out_[at] += 1u;
    }
}
