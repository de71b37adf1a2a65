//! Every stage: the words that identify its invocation, and that its records can be read.

mod common;

use std::collections::BTreeSet;

use common::{compile, corpus, instrumented, validation_errors};
use lavascope_instrument::{
    FaultRecord, Guard, InstrumentOptions, RecordedFault, RootLocation, ShaderInvocation, decode,
};
use lavascope_spirv::{Id, Module};
use spirv::{BuiltIn, Decoration, ExecutionModel, Op, StorageClass};

use BuiltIn::{
    FragCoord, GlobalInvocationId, InstanceIndex, InvocationId, LaunchIdKHR, PrimitiveId, TessCoord, VertexIndex,
};
use ExecutionModel as Model;

/// The three components of a built-in.
const fn all(built_in: BuiltIn) -> [(BuiltIn, Option<u32>); 3] {
    [(built_in, Some(0)), (built_in, Some(1)), (built_in, Some(2))]
}

/// A built-in, and which component of it.
type Word = (BuiltIn, Option<u32>);

/// By stage: its number, and the words that identify the invocation, in their order.
const STAGES: &[(&str, Model, &[Word])] = &[
    ("vert", Model::Vertex, &[(VertexIndex, None), (InstanceIndex, None)]),
    ("tesc", Model::TessellationControl, &[(InvocationId, None), (PrimitiveId, None)]),
    ("tese", Model::TessellationEvaluation, &[(PrimitiveId, None), (TessCoord, Some(0)), (TessCoord, Some(1))]),
    ("geom", Model::Geometry, &[(PrimitiveId, None), (InvocationId, None)]),
    ("frag", Model::Fragment, &[(FragCoord, Some(0)), (FragCoord, Some(1))]),
    ("comp", Model::GLCompute, &all(GlobalInvocationId)),
    ("task", Model::TaskEXT, &all(GlobalInvocationId)),
    ("mesh", Model::MeshEXT, &all(GlobalInvocationId)),
    ("rgen", Model::RayGenerationKHR, &all(LaunchIdKHR)),
    ("rint", Model::IntersectionKHR, &all(LaunchIdKHR)),
    ("rahit", Model::AnyHitKHR, &all(LaunchIdKHR)),
    ("rchit", Model::ClosestHitKHR, &all(LaunchIdKHR)),
    ("rmiss", Model::MissKHR, &all(LaunchIdKHR)),
    ("rcall", Model::CallableKHR, &all(LaunchIdKHR)),
];

/// The words from the fifth to the seventh of a record, as the function that writes it stores them.
fn stored(module: &Module) -> Vec<Word> {
    // Our functions come last, and the one that writes records has the stores.
    let writes = |item: &&lavascope_spirv::Function| {
        module.instructions(item.instructions.clone()).filter(|it| it.is(Op::Store)).count() >= 11
    };
    let function = module.functions().iter().rev().find(writes).expect("a function that writes records");
    let stores: Vec<Id> =
        module.instructions(function.instructions.clone()).filter(|it| it.is(Op::Store)).map(|it| it.id(2)).collect();
    // Two details come first, then size, shader, instruction and stage.
    stores[6..9].iter().filter_map(|it| word_of(module, *it)).collect()
}

/// The built-in that a value was loaded from.
fn word_of(module: &Module, id: Id) -> Option<Word> {
    let mut instruction = module.definition(id)?;
    let mut component = None;
    loop {
        match instruction.op()? {
            Op::Bitcast => instruction = module.definition(instruction.id(3))?,
            Op::CompositeExtract => {
                component = Some(instruction.word(4));
                instruction = module.definition(instruction.id(3))?;
            }
            Op::Load => {
                let built_in = module.decoration_operand(instruction.id(3), None, Decoration::BuiltIn)?;
                return Some((BuiltIn::from_u32(built_in)?, component));
            }
            _ => return None,
        }
    }
}

/// The built-in inputs of the only entry point.
fn inputs(module: &Module) -> BTreeSet<u32> {
    let is_input = |id: &&Id| {
        module.definition(**id).is_some_and(|it| it.is(Op::Variable) && it.word(3) == StorageClass::Input as u32)
    };
    let built_in = |it: &Id| module.decoration_operand(*it, None, Decoration::BuiltIn);
    module.entries()[0].interface.iter().filter(is_input).filter_map(built_in).collect()
}

#[test]
fn every_stage_reads_what_tells_its_invocation() {
    let mut text = String::new();
    let mut seen = BTreeSet::new();
    for shader in corpus::stages() {
        let words = compile(&shader.source, shader.stage, "vulkan1.3");
        let (_, model, wanted) = STAGES.iter().find(|it| it.0 == shader.stage).expect("a stage of the table");
        for guard in [Guard::Select, Guard::Branch] {
            let options = InstrumentOptions { guard, ..InstrumentOptions::new(RootLocation::Descriptor { set: 7 }) };
            let made = instrumented(&words, &options);
            assert_eq!(validation_errors(&made.words, "vulkan1.3"), None, "{}", shader.name);
            let module = Module::parse(&made.words).expect("a module");
            let (before, inputs) = (inputs(&Module::parse(&words).expect("a module")), inputs(&module));
            assert!(wanted.iter().all(|it| inputs.contains(&(it.0 as u32))), "{}: {inputs:?}", shader.name);
            assert_eq!(stored(&module), *wanted, "{}", shader.name);
            let is_stage = |it: lavascope_spirv::Instruction<'_>| it.is(Op::Constant) && it.word(3) == *model as u32;
            assert!(module.all().any(is_stage), "{} has no number of its stage", shader.name);
            let added: Vec<BuiltIn> = inputs.difference(&before).filter_map(|it| BuiltIn::from_u32(*it)).collect();
            text += &format!(
                "{} {guard:?}: {} sites, {} numbers, new inputs {added:?}\n",
                shader.name,
                made.sites.len(),
                made.numbered_sites
            );
        }
        seen.insert(shader.stage);
    }
    assert_eq!(seen.len(), STAGES.len(), "{seen:?}");
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shapes/stages.txt");
    if std::env::var_os("LAVASCOPE_BLESS").is_some() {
        std::fs::write(path, &text).expect("a file that is written");
    }
    assert_eq!(text, std::fs::read_to_string(path).expect("a file of the tests"));
}

#[test]
fn records_of_every_stage_can_be_read() {
    for (_, model, _) in STAGES {
        let words = [10, 77, 5, *model as u32, 1, 2, 3, 0, 6, 6];
        let buffer: Vec<u32> = std::iter::once(10).chain(words).collect();
        let records = decode(&buffer).expect("records");
        let [FaultRecord { shader: 77, site: 5, invocation: stage, fault: error, count: 1 }] = records[..] else {
            panic!("{records:?}")
        };
        assert_eq!(error, RecordedFault::IndexOutOfBounds { index: 6, length: 6 });
        assert_eq!(stage.model(), *model as u32);
        let is_ray = *model as u32 >= Model::RayGenerationKHR as u32 && *model as u32 <= Model::CallableKHR as u32;
        assert_eq!(matches!(stage, ShaderInvocation::Ray { launch: [1, 2, 3], .. }), is_ray);
    }
}
