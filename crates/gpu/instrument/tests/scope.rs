//! Every operation that must be instrumented is, where it uses a descriptor.

mod common;

use common::{assemble, instrumented};
use lavascope_instrument::{Check, CheckDecision, Guard, InstrumentOptions, RootLocation};
use lavascope_spirv::Module;
use spirv::Op;

const HEAD: &str = r#"
    OpCapability Shader
    OpMemoryModel Logical GLSL450
    OpEntryPoint Fragment %main "main" %n %t %s %w
    OpExecutionMode %main OriginUpperLeft
    OpDecorate %n Location 0
    OpDecorate %n Flat
    OpDecorate %t DescriptorSet 0
    OpDecorate %t Binding 0
    OpDecorate %s DescriptorSet 0
    OpDecorate %s Binding 1
    OpDecorate %w DescriptorSet 0
    OpDecorate %w Binding 2
    %void = OpTypeVoid
    %plain = OpTypeFunction %void
    %float = OpTypeFloat 32
    %uint = OpTypeInt 32 0
    %v2 = OpTypeVector %float 2
    %v3 = OpTypeVector %float 3
    %v4 = OpTypeVector %float 4
    %i2 = OpTypeVector %uint 2
    %sparse = OpTypeStruct %uint %v4
    %sparse_one = OpTypeStruct %uint %float
    %zero = OpConstant %uint 0
    %six = OpConstant %uint 6
    %one = OpConstant %float 1
    %p2 = OpConstantNull %v2
    %p3 = OpConstantNull %v3
    %p4 = OpConstantNull %v4
    %q2 = OpConstantNull %i2
    %in = OpTypePointer Input %uint
    %n = OpVariable %in Input
    %image = OpTypeImage %float 2D 0 0 0 1 Unknown
    %sampled = OpTypeSampledImage %image
    %storage = OpTypeImage %float 2D 0 0 0 2 Rgba8
    %sampler = OpTypeSampler
    %ts = OpTypeArray %image %six
    %tsp = OpTypePointer UniformConstant %ts
    %tp = OpTypePointer UniformConstant %image
    %t = OpVariable %tsp UniformConstant
    %sp = OpTypePointer UniformConstant %sampler
    %s = OpVariable %sp UniformConstant
    %ws = OpTypeArray %storage %six
    %wsp = OpTypePointer UniformConstant %ws
    %wp = OpTypePointer UniformConstant %storage
    %w = OpVariable %wsp UniformConstant
    %main = OpFunction %void None %plain
    %l = OpLabel
    %i = OpLoad %uint %n
    %ta = OpAccessChain %tp %t %i
    %tl = OpLoad %image %ta
    %sl = OpLoad %sampler %s
    %x = OpSampledImage %sampled %tl %sl
    %wa = OpAccessChain %wp %w %i
    %wl = OpLoad %storage %wa
"#;

/// The operations, with the image by its name: `x` with a sampler, `tl` without, `wl` for storage.
const OPERATIONS: &[&str] = &[
    "%r = OpImageSampleImplicitLod %v4 %x %p2",
    "%r = OpImageSampleExplicitLod %v4 %x %p2 Lod %one",
    "%r = OpImageSampleDrefImplicitLod %float %x %p2 %one",
    "%r = OpImageSampleDrefExplicitLod %float %x %p2 %one Lod %one",
    "%r = OpImageSampleProjImplicitLod %v4 %x %p3",
    "%r = OpImageSampleProjExplicitLod %v4 %x %p3 Lod %one",
    "%r = OpImageSampleProjDrefImplicitLod %float %x %p3 %one",
    "%r = OpImageSampleProjDrefExplicitLod %float %x %p3 %one Lod %one",
    "%r = OpImageGather %v4 %x %p2 %zero",
    "%r = OpImageDrefGather %v4 %x %p2 %one",
    "%r = OpImageQueryLod %v2 %x %p2",
    "%r = OpImageSparseSampleImplicitLod %sparse %x %p2",
    "%r = OpImageSparseSampleExplicitLod %sparse %x %p2 Lod %one",
    "%r = OpImageSparseSampleDrefImplicitLod %sparse_one %x %p2 %one",
    "%r = OpImageSparseSampleDrefExplicitLod %sparse_one %x %p2 %one Lod %one",
    "%r = OpImageSparseSampleProjImplicitLod %sparse %x %p3",
    "%r = OpImageSparseSampleProjExplicitLod %sparse %x %p3 Lod %one",
    "%r = OpImageSparseSampleProjDrefImplicitLod %sparse_one %x %p3 %one",
    "%r = OpImageSparseSampleProjDrefExplicitLod %sparse_one %x %p3 %one Lod %one",
    "%r = OpImageSparseGather %sparse %x %p2 %zero",
    "%r = OpImageSparseDrefGather %sparse %x %p2 %one",
    "%r = OpImageFetch %v4 %tl %q2",
    "%r = OpImageRead %v4 %wl %q2",
    "%r = OpImageQueryFormat %uint %wl",
    "%r = OpImageQueryOrder %uint %wl",
    "%r = OpImageQuerySizeLod %i2 %tl %zero",
    "%r = OpImageQuerySize %i2 %wl",
    "%r = OpImageQueryLevels %uint %tl",
    "%r = OpImageQuerySamples %uint %tl",
    "%r = OpImageSparseFetch %sparse %tl %q2",
    "%r = OpImageSparseRead %sparse %wl %q2",
    "OpImageWrite %wl %q2 %p4",
];

#[test]
fn every_listed_operation_is_checked_where_it_uses_a_descriptor() {
    for operation in OPERATIONS {
        let words = assemble(&format!("{HEAD}{operation}\nOpReturn\nOpFunctionEnd\n"));
        let module = Module::parse(&words).expect("a module");
        let name = operation.split_whitespace().find_map(|it| it.strip_prefix("Op")).expect("an operation");
        for guard in [Guard::Select, Guard::Branch] {
            let made = instrumented(
                &words,
                &InstrumentOptions { guard, ..InstrumentOptions::new(RootLocation::Descriptor { set: 7 }) },
            );
            let is_checked = |check_site: &&lavascope_instrument::CheckSite| {
                check_site.check == Check::Descriptor && matches!(check_site.decision, CheckDecision::Checked { .. })
            };
            let sites: Vec<_> = made.sites.iter().filter(is_checked).collect();
            let [site] = sites[..] else { panic!("{operation}: {:?}", made.sites) };
            assert_eq!(format!("{:?}", module.instruction(site.at).op().expect("an operation")), name);
            assert_ne!(made.words, words);
            // It is still there, once.
            let after = Module::parse(&made.words).expect("a module");
            let op = module.instruction(site.at).op();
            assert_eq!(after.all().filter(|it| it.op() == op).count(), 1, "{operation}");
            assert!(after.all().filter(|it| it.is(Op::Select)).count() > 1);
        }
    }
}
