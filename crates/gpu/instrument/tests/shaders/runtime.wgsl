struct List { head: vec4<u32>, items: array<u32> }
@group(0) @binding(0) var<storage, read_write> list: List;
@group(0) @binding(1) var<uniform> table: array<vec4<u32>, 16>;

@compute @workgroup_size(8)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let count = arrayLength(&list.items);
    let at = min(id.x * 3u, count - 1u);
    list.items[at] = table[id.x & 15u][id.x & 3u] + list.head[id.x & 3u];
    if at + 1u < count {
        list.items[at + 1u] = count;
    }
}
