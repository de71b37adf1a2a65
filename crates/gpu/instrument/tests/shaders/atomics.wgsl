struct Counters { total: atomic<u32>, each: array<atomic<u32>> }
@group(0) @binding(0) var<storage, read_write> counters: Counters;
@group(0) @binding(1) var<storage, read> keys: array<u32>;
var<workgroup> shared_sum: atomic<u32>;

@compute @workgroup_size(16)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    atomicAdd(&shared_sum, keys[local]);
    workgroupBarrier();
    atomicMax(&counters.each[keys[id.x]], 9u);
    atomicAdd(&counters.each[id.x + 16u], 3u);
    if local == 0u {
        atomicStore(&counters.total, atomicLoad(&shared_sum));
    }
}
