struct Slot { value: u32, next: u32, marks: array<u32, 3> }
@group(0) @binding(0) var<storage, read_write> slots: array<Slot>;
var<private> walked: u32;

fn mark(slot: ptr<function, Slot>, at: u32) -> u32 {
    (*slot).marks[at % 3u] += 1u;
    walked += (*slot).next;
    return (*slot).marks[at % 3u];
}

@compute @workgroup_size(8)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    var mine = slots[id.x];
    let all = &slots;
    for (var hops = 0u; hops < 4u; hops++) {
        mine.value += mark(&mine, hops) + (*all)[100u + mine.next].value;
    }
    let last = &slots[id.x].marks;
    (*last)[walked % 3u] = mine.value;
}
