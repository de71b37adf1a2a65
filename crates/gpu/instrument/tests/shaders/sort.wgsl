@group(0) @binding(0) var<storage, read_write> rows: array<u32>;
const width = 16u;

@compute @workgroup_size(8)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let row = id.x * width;
    for (var i = 1u; i < width; i++) {
        let held = rows[row + i];
        var j = i32(i) - 1;
        while j >= 0 && rows[row + u32(j)] > held {
            rows[row + u32(j) + 1u] = rows[row + u32(j)];
            j--;
        }
        rows[row + u32(j + 1)] = held;
    }
}
