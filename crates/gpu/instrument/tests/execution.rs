//! Instrumented shaders on a device: the same results where all is well, and records where it is not.

mod common;

use ash::vk;
use common::{
    compile, instrumented, validation_errors,
    vulkan::{BoundBinding, Dispatch, DispatchOutcome, Gpu},
};
use lavascope_instrument::{
    Guard, InstrumentOptions, InstrumentedModule, RecordedFault, RootLocation, ShaderInvocation,
};
use lavascope_spirv::Module;

const ROOTS: [RootLocation; 3] =
    [RootLocation::Descriptor { set: 7 }, RootLocation::PushConstant { offset: 120 }, RootLocation::Specialization];

/// All ways to instrument a shader that a test does not care about.
fn option_variants() -> Vec<InstrumentOptions> {
    let touches = |root| matches!(root, RootLocation::PushConstant { .. });
    let with = |root, guard| InstrumentOptions { guard, touches: touches(root), ..InstrumentOptions::new(root) };
    ROOTS.iter().flat_map(|root| [with(*root, Guard::Select), with(*root, Guard::Branch)]).collect()
}

const CELL: usize = lavascope_instrument::CELL_WORDS as usize;

struct Checked {
    made: InstrumentedModule,
    outcome: DispatchOutcome,
    words: Vec<u32>,
}

impl Checked {
    /// The text of the line that a record speaks of.
    fn line(&self, record: usize) -> String {
        let module = Module::parse(&self.words).expect("a module");
        let site = self.made.site_of(&self.outcome.records[record]).expect("a site");
        module.source(site.at).and_then(|it| it.text).unwrap_or_default().trim().to_owned()
    }

    /// How often the fault of a record happened, and the smallest and largest index of it.
    fn cell(&self, record: usize) -> (u32, u32, u32) {
        let site = self.made.site_of(&self.outcome.records[record]).expect("a site");
        let at = site.decision.number().expect("a number") as usize * CELL;
        let cell = &self.outcome.cells[at..at + 3];
        (cell[0], !cell[1], cell[2])
    }

    fn errors(&self) -> Vec<RecordedFault> {
        self.outcome.records.iter().map(|it| it.fault).collect()
    }

    /// The lines of all sites that were seen.
    fn seen(&self) -> Vec<String> {
        let module = Module::parse(&self.words).expect("a module");
        let masks = &self.outcome.cells[self.made.numbered_sites as usize * CELL..];
        let is_seen = |it: &u32| masks[*it as usize / 32] >> (it % 32) & 1 == 1;
        let line =
            |it| module.source(self.made.site(it).expect("a site").at).and_then(|it| it.text).unwrap_or_default();
        (0..self.made.numbered_sites).filter(is_seen).map(|it| line(it).trim().to_owned()).collect()
    }
}

fn run(gpu: &Gpu, words: &[u32], options: &InstrumentOptions, dispatch: &Dispatch) -> Checked {
    let made = instrumented(words, options);
    assert_eq!(validation_errors(&made.words, "vulkan1.3"), None);
    let outcome = gpu.run_checked(&made, options.root, dispatch);
    Checked { made, outcome, words: words.to_vec() }
}

fn kernel(body: &str) -> Vec<u32> {
    let head = "#version 460\n#extension GL_EXT_buffer_reference : require\n#extension GL_EXT_nonuniform_qualifier : require\nlayout(local_size_x = 64) in;\n";
    compile(&format!("{head}{body}"), "comp", "vulkan1.3")
}

const COPY: &str = "
    layout(set = 0, binding = 0) readonly buffer From { uint from[]; };
    layout(set = 0, binding = 1) buffer To { uint to[]; };
    void main() {
        uint i = gl_GlobalInvocationID.x;
        uint it = from[i];
        to[i] = it * 2;
    }";

#[test]
fn a_shader_in_bounds_computes_the_same_and_says_nothing() {
    let gpu = Gpu::new();
    let words = kernel(COPY);
    let dispatch = Dispatch {
        bound: vec![BoundBinding::storage(0, (0..128).collect()), BoundBinding::storage(1, vec![0; 128])],
        groups: 2,
        ..Dispatch::default()
    };
    let bare = gpu.run(&words, &dispatch);
    for options in option_variants() {
        let checked = run(&gpu, &words, &options, &dispatch);
        assert_eq!(checked.outcome.buffers, bare, "{options:?}");
        assert_eq!(checked.outcome.records, [], "{options:?}");
        assert!(checked.made.numbered_sites >= 2 && checked.outcome.cells == checked.made.cells());
    }
}

/// More invocations than either buffer has words.
fn past_the_end() -> Dispatch {
    Dispatch {
        bound: vec![BoundBinding::storage(0, (0..100).collect()), BoundBinding::storage(1, vec![9; 120])],
        groups: 2,
        ..Dispatch::default()
    }
}

#[test]
fn a_load_and_a_store_past_the_end_are_named_and_do_no_harm() {
    let gpu = Gpu::new();
    let words = kernel(COPY);
    let dispatch = past_the_end();
    for options in option_variants() {
        let checked = run(&gpu, &words, &options, &dispatch);
        // The selected value comes from the last word.
        let last = if options.guard == Guard::Select { 99 * 2 } else { 0 };
        let expected: Vec<u32> = (0..120).map(|it| if it < 100 { it * 2 } else { last }).collect();
        assert_eq!(checked.outcome.buffers[1], expected, "{options:?}");
        // The first fault of every invocation from 100 on is the load.
        let [record] = checked.outcome.records[..] else { panic!("{options:?}: {:?}", checked.outcome.records) };
        assert_eq!(checked.line(0), "uint it = from[i];");
        let RecordedFault::BufferOutOfBounds { descriptor: 0, index, range: 400 } = record.fault else {
            panic!("{record:?}")
        };
        assert_eq!(record.invocation, ShaderInvocation::Compute { invocation: [index, 0, 0] });
        assert_eq!((record.shader, record.count), (77, 1));
        assert_eq!(checked.cell(0), (28, 100, 127));
        assert_eq!(checked.seen(), ["uint it = from[i];", "to[i] = it * 2;"]);
        assert_eq!(checked.made.site_of(&record).expect("a site").index_unit.first_byte(index), u64::from(index) * 4);
    }
}

#[test]
fn sites_that_are_asked_for_are_recorded_where_they_happen() {
    let gpu = Gpu::new();
    let words = kernel(COPY);
    let dispatch = past_the_end();
    for options in option_variants() {
        let options = InstrumentOptions { immediate: (0..2).collect(), ..options };
        let checked = run(&gpu, &words, &options, &dispatch);
        assert_eq!(checked.outcome.records.len(), 2, "{options:?}");
        let mut cells = [checked.cell(0), checked.cell(1)];
        cells.sort_unstable();
        assert_eq!(cells, [(8, 120, 127), (28, 100, 127)]);
    }
}

#[test]
fn an_offset_that_wraps_around_is_out_of_bounds() {
    let gpu = Gpu::new();
    let words = kernel(
        "layout(set = 0, binding = 0) buffer To { uint to[]; };
         void main() {
             uint i = gl_GlobalInvocationID.x;
             if (i == 5) to[0x40000000u + i] = 1;
         }",
    );
    let dispatch = Dispatch { bound: vec![BoundBinding::storage(0, vec![7; 64])], groups: 1, ..Dispatch::default() };
    for options in option_variants() {
        let checked = run(&gpu, &words, &options, &dispatch);
        assert_eq!(checked.outcome.buffers[0], [7; 64]);
        let expected = RecordedFault::BufferOutOfBounds { descriptor: 0, index: 0x4000_0005, range: 256 };
        assert_eq!(checked.errors(), [expected]);
    }
}

#[test]
fn an_index_equal_to_the_length_of_an_array_of_descriptors_is_named() {
    let gpu = Gpu::new();
    let words = kernel(
        "layout(set = 0, binding = 0) buffer To { uint to[]; } all[6];
         layout(push_constant) uniform Push { uint which; };
         void main() {
             uint i = gl_GlobalInvocationID.x;
             if (i < 8) all[which].to[i] = 1;
         }",
    );
    for (which, error) in [
        (3, None),
        (6, Some(RecordedFault::IndexOutOfBounds { index: 6, length: 6 })),
        (u32::MAX, Some(RecordedFault::IndexOutOfBounds { index: u32::MAX, length: 6 })),
    ] {
        let elements = vec![Some((vec![0; 16], 64)); 6];
        let bound = vec![BoundBinding { binding: 0, kind: vk::DescriptorType::STORAGE_BUFFER, elements }];
        let dispatch = Dispatch { bound, push: vec![which], groups: 1, ..Dispatch::default() };
        for options in option_variants() {
            let checked = run(&gpu, &words, &options, &dispatch);
            assert_eq!(checked.errors(), Vec::from_iter(error), "{options:?}");
            let sum: u32 = checked.outcome.buffers.iter().flatten().sum();
            assert_eq!(sum, if error.is_none() { 8 } else { 0 });
            if error.is_some() {
                assert_eq!(checked.cell(0).0, 8);
            }
        }
    }
}

#[test]
fn addresses_past_a_buffer_go_to_scratch_memory() {
    let gpu = Gpu::new();
    let words = kernel(
        "layout(buffer_reference, std430, buffer_reference_align = 4) buffer Words { uint at[]; };
         layout(push_constant) uniform Push { Words from; Words to; uint shift; };
         void main() {
             uint i = gl_GlobalInvocationID.x;
             to.at[i] = from.at[i + shift] + 1;
         }",
    );
    let addressed = vec![(0..64).collect::<Vec<u32>>(), vec![0; 64]];
    for shift in [0, 10, 0x8000_0000] {
        let dispatch = Dispatch { addressed: addressed.clone(), push: vec![shift], groups: 1, ..Dispatch::default() };
        for options in option_variants() {
            let checked = run(&gpu, &words, &options, &dispatch);
            let expected: Vec<u32> = match shift {
                0 => (1..65).collect(),
                10 => (0..64).map(|it| if it < 54 { it + 11 } else { 1 }).collect(),
                _ => vec![1; 64],
            };
            assert_eq!(checked.outcome.buffers[1], expected, "{options:?} {shift}");
            if shift == 0 {
                assert_eq!(checked.errors(), []);
                continue;
            }
            assert_eq!(checked.errors().len(), 1, "{options:?}");
            assert_eq!(checked.cell(0).0, if shift == 10 { 10 } else { 64 });
            assert_eq!(checked.line(0), "to.at[i] = from.at[i + shift] + 1;");
        }
    }
}

#[test]
fn records_that_do_not_fit_are_not_written() {
    let gpu = Gpu::new();
    let words = kernel(COPY);
    for (output_words, records) in [(4096, 2), (22, 2), (21, 1), (11, 1), (10, 0), (0, 0)] {
        let dispatch = Dispatch {
            bound: vec![BoundBinding::storage(0, (0..100).collect()), BoundBinding::storage(1, vec![9; 120])],
            groups: 2,
            output_words: Some(output_words),
            ..Dispatch::default()
        };
        for options in option_variants() {
            let options = InstrumentOptions { immediate: (0..2).collect(), ..options };
            let checked = run(&gpu, &words, &options, &dispatch);
            assert_eq!(checked.outcome.records.len(), records, "{options:?} {output_words}");
            assert_eq!(checked.outcome.wanted, 22, "what was wanted is counted all the same");
        }
    }
}
