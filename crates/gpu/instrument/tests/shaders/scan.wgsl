@group(0) @binding(0) var<storage, read_write> out_: array<u32>;
@group(0) @binding(1) var<storage, read> in_: array<u32>;
var<workgroup> held: array<u32, 32>;

@compute @workgroup_size(32)
fn main(@builtin(local_invocation_index) at: u32, @builtin(workgroup_id) group: vec3<u32>) {
    held[at] = in_[group.x * 32u + at];
    workgroupBarrier();
    for (var step = 1u; step < 32u; step = step << 1u) {
        var more = 0u;
        if at >= step { more = held[at - step]; }
        workgroupBarrier();
        held[at] += more;
        workgroupBarrier();
    }
    out_[group.x * 32u + at] = held[at];
}
