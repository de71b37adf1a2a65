//! Base pointers outside of their buffers: only what is accessed counts. And pointers that were loaded through a wrong
//! one: they are no fault of their own.

mod common;

use common::{
    compile, instrumented, validation_errors,
    vulkan::{BoundBinding, Dispatch, DispatchOutcome, Gpu},
};
use lavascope_instrument::{CELL_WORDS, InstrumentOptions, InstrumentedModule, RecordedFault, RootLocation};

const HEAD: &str = "
    #version 460
    #extension GL_EXT_buffer_reference : require
    #extension GL_EXT_buffer_reference_uvec2 : require
    layout(local_size_x = 12) in;
    layout(buffer_reference, std430, buffer_reference_align = 4) buffer Words { uint at[]; };
    layout(buffer_reference, std430, buffer_reference_align = 4) buffer Signed { int at[]; };
    layout(buffer_reference, std430, buffer_reference_align = 4) buffer Late { uint before[8]; uint value; };
    layout(buffer_reference, std430, buffer_reference_align = 8) buffer Node { uvec2 next; uint value; };
    layout(push_constant) uniform Pushed { uvec2 first; uvec2 second; int shift; } p;
    layout(set = 0, binding = 0) buffer Result { uint result[]; };
    uvec2 moved(uvec2 from, int bytes) {
        uint low = from.x + uint(bytes);
        bool wraps = bytes < 0 ? low > from.x : low < from.x;
        return uvec2(low, from.y + (wraps ? (bytes < 0 ? 0xffffffffu : 1u) : 0u));
    }
";

/// Words of each buffer.
const WORDS: u32 = 16;

struct Run {
    module: InstrumentedModule,
    outcome: DispatchOutcome,
}

impl Run {
    /// How often each site had a fault, without those that had none.
    fn counts(&self) -> Vec<u32> {
        let counts = (0..self.module.numbered_sites).map(|it| self.outcome.cells[(it * CELL_WORDS) as usize]);
        counts.filter(|it| *it > 0).collect()
    }
}

/// Runs a body with every kind of options: faults that are recorded at once, and those that are remembered.
fn run(body: &str, shift: i32, expect: impl Fn(&Run)) {
    let gpu = Gpu::new();
    let words =
        compile(&format!("{HEAD} void main() {{ uint i = gl_LocalInvocationIndex; {body} }}"), "comp", "vulkan1.3");
    for immediate in [Vec::new(), (0..32).collect()] {
        let options = InstrumentOptions {
            immediate: immediate.into_iter().collect(),
            ..InstrumentOptions::new(RootLocation::Descriptor { set: gpu.last_set })
        };
        let module = instrumented(&words, &options);
        assert_eq!(validation_errors(&module.words, "vulkan1.3"), None);
        let numbers = || (0..WORDS).collect::<Vec<u32>>();
        let dispatch = Dispatch {
            bound: vec![BoundBinding::storage(0, vec![0; 64])],
            addressed: vec![numbers(), numbers()],
            push: vec![shift as u32],
            groups: 1,
            ..Dispatch::default()
        };
        let outcome = gpu.run_checked(&module, options.root, &dispatch);
        expect(&Run { module, outcome });
    }
}

/// The base is before the buffer, in or out of another one: only the elements before the buffer are faults.
#[test]
fn a_base_before_its_buffer_is_no_fault() {
    for bytes in [-4_i32, -400, -40_000] {
        let before = bytes.unsigned_abs() / 4;
        let body = "Words w = Words(moved(p.first, p.shift)); w.at[i + uint(-p.shift) / 4u - 1u] = 7u;";
        run(body, bytes, |run| {
            assert_eq!(run.counts(), [1], "{bytes}: element {} alone is outside", before - 1);
            let expected: Vec<u32> = (0..WORDS).map(|it| if it < 11 { 7 } else { it }).collect();
            assert_eq!(run.outcome.buffers[1], expected, "{bytes}: no legal write is dropped");
        });
        let body = "Words w = Words(moved(p.first, p.shift)); result[i] = w.at[i + uint(-p.shift) / 4u - 1u] + 1u;";
        run(body, bytes, |run| {
            assert_eq!(run.counts(), [1], "{bytes}");
            let expected: Vec<u32> = (1..12).collect();
            assert_eq!(run.outcome.buffers[0][1..12], expected, "{bytes}: no legal read is another");
        });
    }
}

/// Signed indices lead back from behind the end.
#[test]
fn a_base_behind_its_buffer_is_no_fault() {
    for bytes in [64, 68, 4096] {
        let body = "Signed s = Signed(moved(p.first, p.shift)); s.at[-int(i) - int(p.shift) / 4 + 11] = 7;";
        run(body, bytes, |run| {
            assert!(run.counts().is_empty(), "{bytes}: {:?}", run.counts());
            let expected: Vec<u32> = (0..WORDS).map(|it| if it < 12 { 7 } else { it }).collect();
            assert_eq!(run.outcome.buffers[1], expected, "{bytes}");
        });
        let body = "Signed s = Signed(moved(p.first, p.shift)); s.at[-int(i) - int(p.shift) / 4 + 8] = 7;";
        run(body, bytes, |run| {
            assert_eq!(run.counts(), [3], "{bytes}: indices 9 to 11 are before the buffer");
            let RecordedFault::AddressOutOfBounds { address } = run.outcome.records[0].fault else { panic!("a fault") };
            let base = run.outcome.records.len();
            assert!(base >= 1 && address != 0, "{address:#x}");
        });
    }
}

/// A member at a constant offset is what is accessed.
#[test]
fn a_structure_that_begins_before_its_buffer_is_no_fault() {
    let body = "Late l = Late(moved(p.first, -32)); if (i == 0u) { l.value = 9u; result[0] = l.value; }";
    run(body, 0, |run| {
        assert!(run.counts().is_empty(), "{:?}", run.counts());
        assert_eq!((run.outcome.buffers[0][0], run.outcome.buffers[1][0]), (9, 9));
    });
    let body = "Late l = Late(moved(p.first, -32)); if (i == 0u) { l.before[7] = 9u; }";
    run(body, 0, |run| assert_eq!(run.counts(), [1]));
}

/// The address of a fault is that of the access, also for negative indices.
#[test]
fn the_address_of_a_fault_is_that_of_the_access() {
    let body =
        "Signed s = Signed(p.first); if (i == 3u) { s.at[-int(i)] = 7; } result[0] = p.first.x; result[1] = p.first.y;";
    run(body, 0, |run| {
        assert_eq!(run.counts(), [1]);
        let base = u64::from(run.outcome.buffers[0][0]) | u64::from(run.outcome.buffers[0][1]) << 32;
        assert_eq!(run.outcome.records[0].fault, RecordedFault::AddressOutOfBounds { address: base - 12 });
    });
}

/// What a wrong pointer gives is null, and only the wrong pointer is a fault.
#[test]
fn a_pointer_that_was_loaded_through_a_wrong_one_is_no_second_fault() {
    for body in [
        "Node n = Node(moved(p.first, 4096)); Node next = Node(n.next); if (i == 0u) { next.value = 5u; }",
        "Node n = Node(moved(p.first, 4096)); if (i == 0u) { Node next = Node(n.next); result[0] = next.value; }",
        "Node n = Node(moved(p.first, 4096)); for (uint k = 0u; k < 3u && i == 0u; ++k) { n = Node(n.next); }
         if (i == 0u) { result[0] = n.value; }",
    ] {
        run(body, 0, |run| assert_eq!(run.counts().len(), 1, "{body}: {:?}", run.counts()));
    }
    // A null pointer that nobody redirected is a fault.
    let body = "Words w = Words(uvec2(0u)); if (i == 0u) { result[0] = w.at[i]; }";
    run(body, 0, |run| assert_eq!(run.counts(), [1]));
    let body = "Node n = Node(uvec2(p.shift)); if (i == 0u) { result[0] = n.value; }";
    run(body, 0, |run| assert_eq!(run.counts(), [1]));
}
