//! Arrays of descriptors that are neither buffers nor sampled or stored images.

mod common;

use common::{all_options, compile, disassemble, instrumented, optimize, validation_errors};
use lavascope_instrument::{Check, CheckDecision, Guard, InstrumentOptions, RootLocation};
use lavascope_spirv::{Editor, InstructionIndex, Module};
use spirv::Op;

/// An index at set 0, binding 1, that only the device knows; the stage, and the shader.
const SHADERS: [(&str, &str, &str); 4] = [
    (
        "samplers",
        "frag",
        "#version 460
        layout(set = 0, binding = 0) uniform texture2D picture;
        layout(set = 0, binding = 1) uniform sampler samplers[4];
        layout(location = 0) flat in int which;
        layout(location = 0) out vec4 color;
        void main() { color = texture(sampler2D(picture, samplers[which]), vec2(0.5)); }",
    ),
    (
        "input attachments",
        "frag",
        "#version 460
        layout(input_attachment_index = 0, set = 0, binding = 1) uniform subpassInput before[4];
        layout(location = 0) flat in int which;
        layout(location = 0) out vec4 color;
        void main() { color = subpassLoad(before[which]); }",
    ),
    (
        "acceleration structures",
        "comp",
        "#version 460
        #extension GL_EXT_ray_query : require
        layout(set = 0, binding = 1) uniform accelerationStructureEXT scenes[4];
        layout(set = 0, binding = 2) buffer Words { uint words[4]; };
        void main() {
            rayQueryEXT query;
            rayQueryInitializeEXT(query, scenes[words[0]], 0, 0xff, vec3(0), 0.0, vec3(1), 1.0);
            rayQueryProceedEXT(query);
        }",
    ),
    (
        "blocks, inline or not",
        "comp",
        "#version 460
        layout(set = 0, binding = 1) uniform Block { uvec4 number; } blocks[4];
        layout(set = 0, binding = 2) buffer Words { uint words[4]; };
        void main() { words[1] = blocks[words[0]].number.x; }",
    ),
];

#[test]
fn every_other_kind_of_descriptor_is_checked() {
    for (name, stage, source) in SHADERS {
        let words = compile(source, stage, "vulkan1.3");
        for guard in [Guard::Select, Guard::Branch] {
            let made = instrumented(
                &words,
                &InstrumentOptions { guard, ..InstrumentOptions::new(RootLocation::Descriptor { set: 7 }) },
            );
            assert_eq!(validation_errors(&made.words, "vulkan1.3"), None, "{name}");
            let mut sites = made.sites.iter().filter(|it| it.binding == Some((0, 1)) && it.check == Check::Descriptor);
            assert!(sites.any(|it| matches!(it.decision, CheckDecision::Checked { .. })), "{name}: {:#?}", made.sites);
        }
    }
}

/// Functions that get the number of an image, as a library of filters writes them. Every call has a constant.
const NUMBERED_IMAGES: &str = "#version 460
    layout(local_size_x = 8) in;
    layout(set = 0, binding = 0) uniform sampler2D sources[3];
    layout(set = 0, binding = 1, rgba8) uniform writeonly image2D targets[1];
    vec4 fetch(int number, vec2 at) { return textureLod(sources[number], at, 0.0); }
    ivec2 size_of(int number) { return imageSize(targets[number]); }
    void main() {
        vec2 at = vec2(gl_GlobalInvocationID.xy) / vec2(size_of(0));
        imageStore(targets[0], ivec2(gl_GlobalInvocationID.xy), fetch(0, at) + fetch(1, at) + fetch(2, at));
    }";

/// lavapipe samples in another way where an index is no constant, and crashes for the size of a storage image.
#[test]
fn an_index_that_is_constant_after_inlining_stays_constant() {
    let words = compile(NUMBERED_IMAGES, "comp", "vulkan1.3");
    for options in all_options() {
        let made = instrumented(&words, &options);
        let text = disassemble(&optimize(&made.words, "vulkan1.3"));
        let lines: Vec<Vec<&str>> = text.lines().map(|it| it.split_whitespace().collect()).collect();
        let operation = |id: &str| lines.iter().find(|it| it.first() == Some(&id)).map_or("", |it| it[2]);
        let is_image =
            |ty: &str| lines.iter().any(|it| it.first() == Some(&ty) && it.get(3) == Some(&"UniformConstant"));
        let chains: Vec<_> = lines.iter().filter(|it| it.get(2) == Some(&"OpAccessChain") && is_image(it[3])).collect();
        assert!(chains.len() >= 4, "{options:?}: {text}");
        for chain in chains {
            assert_eq!(operation(chain[5]), "OpConstant", "{options:?}: {}", chain.join(" "));
        }
    }
}

/// An instruction, a capability and a decoration of the future stay unchanged, and known accesses are checked.
#[test]
fn what_is_not_known_is_copied() {
    let source = "#version 460
        layout(set = 0, binding = 0) buffer Words { uint words[]; };
        void main() { words[gl_WorkGroupID.x] = words[gl_WorkGroupID.y]; }";
    let words = compile(source, "comp", "vulkan1.3");
    let module = Module::parse(&words).expect("a module");
    let find = |op| module.all().find(|it| it.is(op)).expect("it is there");
    let (capability, instruction) =
        (vec![2 << 16 | Op::Capability as u32, 99_999], vec![3 << 16 | 0x7f00, 0xabc, 0xdef]);
    let decoration = vec![4 << 16 | Op::Decorate as u32, find(Op::Variable).word(2), 0x7fff, 5];
    let mut editor = Editor::new(&module);
    editor.insert_before(InstructionIndex(0), capability.clone());
    editor.insert_before(find(Op::Decorate).at, decoration.clone());
    editor.insert_before(find(Op::Return).at, instruction.clone());
    let words = editor.finish();
    for options in all_options() {
        let made = instrumented(&words, &options);
        assert_eq!(made.sites.iter().filter(|it| it.decision.number().is_some()).count(), 2, "{options:?}");
        for unknown in [&capability, &decoration, &instruction] {
            let found = made.words.windows(unknown.len()).filter(|it| it == unknown).count();
            assert_eq!(found, 1, "{unknown:?} with {options:?}");
        }
    }
}
