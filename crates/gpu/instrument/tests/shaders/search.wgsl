@group(0) @binding(0) var<storage, read_write> found: array<i32>;
@group(0) @binding(1) var<storage, read> sorted: array<u32>;

fn search(key: u32, from_: u32, to_: u32) -> i32 {
    var low = from_;
    var high = to_;
    loop {
        if low >= high { break; }
        let middle = (low + high) / 2u;
        if sorted[middle] == key { return i32(middle); }
        if sorted[middle] < key { low = middle + 1u; } else { high = middle; }
    }
    return -1;
}

@compute @workgroup_size(8)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    found[id.x] = search(id.x, id.x / 4u, 7u);
}
