//! Planted faults at every operation that uses a descriptor of an array, on a driver that can index all of them.

mod common;

use ash::vk;
use common::{
    compile,
    corpus::{self, Shader},
    corpus_dispatch, instrumented, optimize, validation_errors,
    vulkan::{Dispatch, DispatchOutcome, Gpu},
};
use lavascope_instrument::{
    CELL_WORDS, Guard, InstrumentOptions, InstrumentedModule, RecordedFault, RootLocation, ShaderInvocation,
};
use lavascope_spirv::{Module, Specialization, reflect};

/// Every pixel of the triangle that is drawn.
const PIXELS: u32 = 64;

/// Gives fragments a number and a place.
const VERTEX: &str = "#version 460
    layout(push_constant) uniform P { uint n; };
    layout(location = 0) flat out uint number;
    layout(location = 1) out vec4 place;
    void main() {
        number = n;
        place = vec4(0.5, 0.5, 0.25, 1.0);
        gl_Position = vec4(vec2(gl_VertexIndex & 1, gl_VertexIndex >> 1) * 4.0 - 1.0, 0.5, 1.0);
    }";

/// Shaders of the corpus that do not use `n` unchanged, or that have other faults.
const OTHERS: &[&str] = &["image_known", "image_masked", "image_texel_fetch_one", "image_loop"];

struct Planted {
    made: InstrumentedModule,
    outcome: DispatchOutcome,
    words: Vec<u32>,
}

fn options(gpu: &Gpu, guard: Guard) -> InstrumentOptions {
    InstrumentOptions {
        guard,
        immediate: (0..100).collect(),
        ..InstrumentOptions::new(RootLocation::Descriptor { set: gpu.last_set })
    }
}

fn drawn(module: &Module, n: u32) -> Dispatch {
    let vertex = compile(VERTEX, "vert", "vulkan1.3");
    let draw = Some((vk::ShaderStageFlags::FRAGMENT, vec![(vk::ShaderStageFlags::VERTEX, vertex)]));
    Dispatch { push: vec![n], draw, ..corpus_dispatch::dispatch(module) }
}

fn run(gpu: &Gpu, words: &[u32], guard: Guard, dispatch: &Dispatch) -> Planted {
    let options = options(gpu, guard);
    let made = instrumented(words, &options);
    assert_eq!(validation_errors(&made.words, "vulkan1.3"), None);
    let outcome = gpu.run_checked(&made, options.root, dispatch);
    Planted { made, outcome, words: words.to_vec() }
}

impl Planted {
    /// Each fault with how often it happened, the text of its line, and how many descriptors its binding has.
    fn faults(&self) -> Vec<(RecordedFault, u32, String, u32)> {
        let module = Module::parse(&self.words).expect("a module");
        let found = reflect(&module, 0, &Specialization::default()).expect("an entry point");
        let mut all = Vec::new();
        for record in &self.outcome.records {
            let ShaderInvocation::Fragment { .. } = record.invocation else { panic!("{record:?}") };
            let site = self.made.site_of(record).expect("a site");
            let number = site.decision.number().expect("a number") * CELL_WORDS;
            let line = module.source(site.at).and_then(|it| it.text).unwrap_or_default();
            let descriptor = found.descriptors.iter().find(|it| Some((it.set, it.binding)) == site.binding);
            let length = descriptor.map_or(0, |it| it.count.unwrap_or(4));
            all.push((record.fault, self.outcome.cells[number as usize], line, length));
        }
        all
    }
}

/// Whether all is bound that the host must make sure of.
fn is_promised(made: &InstrumentedModule, dispatch: &Dispatch) -> bool {
    made.requirements.iter().all(|requirement| {
        let bound = dispatch.bound.iter().find(|bound| bound.binding == requirement.binding);
        bound.is_some_and(|bound| requirement.element.is_none_or(|element| bound.elements[element as usize].is_some()))
    })
}

fn images(gpu: &Gpu) -> Vec<(Shader, Vec<u32>)> {
    let mut all = Vec::new();
    for shader in corpus::images() {
        let words = compile(&shader.source, shader.stage, "vulkan1.3");
        let module = Module::parse(&words).expect("a module");
        if corpus_dispatch::missing(gpu, &module).is_none() {
            all.push((shader, words));
        }
    }
    assert!(all.len() > 25, "{}", all.len());
    all
}

#[test]
fn images_in_range_give_the_same_pixels() {
    let gpu = Gpu::swiftshader();
    // The results of atomic operations depend on the order of fragments.
    for (shader, words) in images(&gpu).into_iter().filter(|it| !it.0.name.contains("atomic")) {
        for words in [optimize(&words, "vulkan1.3"), words] {
            let dispatch = drawn(&Module::parse(&words).expect("a module"), 1);
            let bare = gpu.run(&words, &dispatch);
            for guard in [Guard::Select, Guard::Branch] {
                let planted = run(&gpu, &words, guard, &dispatch);
                assert_eq!(planted.outcome.records, [], "{} {guard:?}", shader.name);
                assert!(planted.outcome.buffers == bare, "{} {guard:?} draws something else", shader.name);
            }
        }
    }
}

#[test]
fn every_use_of_an_image_past_the_end_of_an_array_is_named() {
    let gpu = Gpu::swiftshader();
    let mut seen = 0;
    for (shader, words) in images(&gpu).into_iter().filter(|it| !OTHERS.contains(&it.0.name.as_str())) {
        let dispatch = drawn(&Module::parse(&words).expect("a module"), 9);
        for guard in [Guard::Select, Guard::Branch] {
            let faults = run(&gpu, &words, guard, &dispatch).faults();
            assert!(!faults.is_empty(), "{} {guard:?}", shader.name);
            for (error, count, line, length) in faults {
                let RecordedFault::IndexOutOfBounds { index: 9 | 10, length: reported } = error else {
                    panic!("{} {guard:?}: {error:?}", shader.name)
                };
                assert_eq!((reported, count), (length, PIXELS), "{} {guard:?}", shader.name);
                assert!(line.contains("main") || line.contains("pick"), "{}: {line}", shader.name);
                seen += 1;
            }
        }
    }
    assert!(seen > 50, "{seen}");
}

#[test]
fn every_use_of_an_image_that_was_never_written_is_named() {
    let gpu = Gpu::swiftshader();
    let mut seen = 0;
    for (shader, words) in images(&gpu).into_iter().filter(|it| !OTHERS.contains(&it.0.name.as_str())) {
        let mut dispatch = drawn(&Module::parse(&words).expect("a module"), 1);
        for bound in dispatch.bound.iter_mut().filter(|it| it.elements.len() > 1) {
            bound.elements[1] = None;
        }
        for guard in [Guard::Select, Guard::Branch] {
            // Where shaders select, the host makes sure of descriptors that are named by constants, and of short arrays.
            if guard == Guard::Select && !is_promised(&instrumented(&words, &options(&gpu, guard)), &dispatch) {
                continue;
            }
            let planted = run(&gpu, &words, guard, &dispatch);
            let unwritten = |it: &&(RecordedFault, u32, String, u32)| it.0 == RecordedFault::Uninitialized { index: 1 };
            let faults = planted.faults();
            let found: Vec<_> = faults.iter().filter(unwritten).collect();
            assert!(!found.is_empty(), "{} {guard:?}: {:?}", shader.name, planted.outcome.records);
            assert!(found.iter().all(|it| it.1 == PIXELS), "{} {guard:?}: {found:?}", shader.name);
            seen += found.len();
        }
    }
    assert!(seen > 35, "{seen}");
}

#[test]
fn ten_creations_of_the_same_shader_are_byte_identical() {
    let shaders = corpus::stages().into_iter().chain(corpus::others()).chain(corpus::images().into_iter().step_by(3));
    for shader in shaders {
        let words = compile(&shader.source, shader.stage, "vulkan1.3");
        for options in common::all_options().iter().step_by(3) {
            let make = || {
                let module = Module::parse(&words).expect("a module");
                lavascope_instrument::instrument(&module, options).map(|it| it.words)
            };
            let first = make();
            (0..9).for_each(|_| assert_eq!(make(), first, "{}", shader.name));
        }
    }
}
