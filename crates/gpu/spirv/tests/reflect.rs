//! The accesses of entry points: shaders against their sources.

mod common;

use common::{dependencies, lines, lines_of, reflect, reflect_with};
use lavascope_spirv::{
    AccessTarget, DescriptorElement, DescriptorKind, InterfaceKind, InterfaceVariable, MeshLimits, NumberKind,
    Reflection, Specialization, TypeLayouts,
};
use spirv::Op;

fn kind_of(reflection: &Reflection, binding: u32) -> DescriptorKind {
    reflection.descriptors.iter().find(|it| it.binding == binding).expect("a descriptor that is used").kind
}

fn named<'a>(reflection: &'a Reflection, name: &str) -> Option<&'a InterfaceVariable> {
    reflection.interface.iter().find(|it| it.name.as_deref() == Some(name))
}

#[test]
fn every_kind_of_descriptor_is_found_from_its_type() {
    let found = reflect("kinds.frag");
    let kinds = [
        DescriptorKind::UniformBuffer,
        DescriptorKind::StorageBuffer,
        DescriptorKind::CombinedImageSampler,
        DescriptorKind::SampledImage,
        DescriptorKind::Sampler,
        DescriptorKind::StorageImage,
        DescriptorKind::StorageImage,
        DescriptorKind::StorageImage,
        DescriptorKind::UniformTexelBuffer,
        DescriptorKind::StorageTexelBuffer,
        DescriptorKind::InputAttachment,
        DescriptorKind::SampledImage,
        DescriptorKind::StorageBuffer,
    ];
    for (binding, kind) in kinds.into_iter().enumerate() {
        assert_eq!(kind_of(&found, binding as u32), kind, "binding {binding}");
    }
    assert_eq!(kind_of(&reflect("rays.comp"), 0), DescriptorKind::AccelerationStructure);
    assert_eq!(found.descriptors[10].input_attachment, Some(3));
    assert!(found.descriptors[5].is_non_writable);
    assert!(found.descriptors[6].is_non_readable);
    assert!(found.descriptors[12].is_non_writable);
    assert!(!found.descriptors[1].is_non_writable);
}

#[test]
fn every_way_of_access_is_found_from_its_instruction() {
    let wanted = [
        "0.0 0..16 reads",
        "0.1 8..12 reads and writes Atomic",
        "0.2 reads Sample",
        "0.4 uses Sample",
        "0.3 reads Sample",
        "0.5 reads ImageRead",
        "0.6 writes ImageWrite",
        "0.7 reads and writes Atomic",
        "0.8 reads Fetch",
        "0.9 reads ImageRead",
        "0.9 writes ImageWrite",
        "0.10 reads ImageRead",
        "0.11 uses Query",
        "0.12 0..0 uses Query",
    ];
    assert_eq!(lines(&reflect("kinds.frag")), wanted);
    assert_eq!(
        lines(&reflect("rays.comp")),
        ["0.0 reads Trace", "push 0..8 reads", "*(push 0..8) ~0.. reads Trace", "0.2 0..4 writes"]
    );
}

#[test]
fn elements_of_descriptor_arrays_are_constant_or_reported_as_dynamic() {
    let found = reflect("arrays.comp");
    let wanted = [
        "0.0[3] 0..4 writes",
        "0.0[1] 4..8 writes",
        "push 4..8 reads",
        "0.1[push 4..8] reads Fetch",
        "0.0[2] 8..12 writes",
        "0.1[5] reads Fetch",
        "0.0[any] 12..16 writes",
    ];
    assert_eq!(lines(&found), wanted);
    assert_eq!((found.descriptors[0].count, found.descriptors[1].count), (Some(4), None));
}

#[test]
fn specialization_constants_choose_elements() {
    let found = reflect_with("arrays.comp", &[(7, 2)]);
    let chosen = lines_of(&found, "0.0");
    assert_eq!(chosen, ["0.0[3] 0..4 writes", "0.0[2] 4..8 writes", "0.0[3] 8..12 writes", "0.0[any] 12..16 writes"]);
}

#[test]
fn specialization_constants_decide_branches_and_sizes() {
    let plain = reflect("special.comp");
    let wanted = ["0.0 12..16 writes", "0.0 ~0..16 writes", "0.1 0..4 reads", "0.0 0..4 writes"];
    assert_eq!(lines(&plain), wanted);
    assert_eq!(plain.workgroup_size, Some([1, 2, 1]));
    let special = reflect_with("special.comp", &[(0, 64), (1, 1), (2, 2), (3, 10)]);
    assert_eq!(lines(&special), ["0.0 36..40 writes", "0.0 ~0..40 writes", "0.1 0..4 writes", "0.3 0..4 writes"]);
    assert_eq!(special.workgroup_size, Some([64, 2, 1]));
    assert_eq!(lines_of(&reflect_with("special.comp", &[(2, 1)]), "0.2"), ["0.2 0..4 writes"]);
}

#[test]
fn resources_and_indices_are_followed_through_functions() {
    let found = reflect("functions.comp");
    assert_eq!(lines_of(&found, "0.0"), ["0.0[0] writes ImageWrite", "0.0[2] writes ImageWrite"]);
    assert_eq!(lines_of(&found, "0.1"), ["0.1[1] reads Sample", "0.1[3] reads Sample"]);
    let wanted = [
        "0.2 64..80 writes",
        "0.2 96..112 writes",
        "0.2 ~0..64 writes?",
        "0.2 12..16 writes",
        "0.2 20..24 writes",
        "0.2 24..28 writes?",
        "0.2 28..32 writes?",
    ];
    assert_eq!(lines_of(&found, "0.2"), wanted);
    assert!(found.is_complete);
}

#[test]
fn offsets_follow_structures_arrays_and_both_orders_of_matrices() {
    let wanted = [
        "0.0 0..4 writes",
        "0.0 52..56 writes",
        "0.0 24..28 writes",
        "0.0 40..44 writes",
        "0.0 56..60 writes",
        "0.0 88..92 writes",
        "0.0 112..124 writes",
        "0.0 544..548 writes",
        "0.0 ~140..432 writes",
        "0.0 ~272..284 writes",
        "0.0 596..600 writes",
        "0.0 ~564.. writes",
        "0.0 64..124 writes",
    ];
    assert_eq!(lines(&reflect("layout.comp")), wanted);
}

#[test]
fn layouts_tell_sizes_and_offsets() {
    let module = common::shader("layout.comp");
    let layouts = TypeLayouts::new(&module, &Specialization::default());
    let named = |name: &str| {
        let mut types = module.all().filter(|it| it.is(Op::TypeStruct)).filter_map(|it| it.result());
        types.find(|it| module.name(*it, None).as_deref() == Some(name)).expect("a structure of this name")
    };
    let block = named("Block");
    assert_eq!((layouts.size(block), layouts.member_size(block, 4)), (None, None));
    assert_eq!((layouts.member_offset(block, 1), layouts.member_size(block, 1)), (Some(16), Some(48)));
    assert_eq!((layouts.member_offset(block, 2), layouts.member_size(block, 2)), (Some(64), Some(60)));
    let items = module.definition(block).expect("the structure").id(5);
    assert_eq!((layouts.array_length(items), layouts.array_stride(items)), (Some(3), Some(144)));

    let module = common::shader("special.comp");
    let array = module.all().find(|it| it.is(Op::TypeArray)).and_then(|it| it.result()).expect("an array");
    let longer = Specialization::new([(3, 10u32.to_le_bytes().to_vec())]);
    assert_eq!(TypeLayouts::new(&module, &Specialization::default()).size(array), Some(16));
    assert_eq!(TypeLayouts::new(&module, &longer).size(array), Some(40));
}

#[test]
fn indices_follow_from_the_number_of_the_invocation() {
    let wanted = [
        "4 + 4 * GlobalInvocationId.0: 4",
        "8 + 4 * (push 0..4) + 8 * GlobalInvocationId.0: 4",
        "4 + 1024 * GlobalInvocationId.1 + 4 * GlobalInvocationId.0: 4",
        "0 + 4 * GlobalInvocationId.0: 4",
        "4 + 16 * WorkgroupId.0 + 16 * WorkgroupId.1: 4",
        "4 + 4 * (0.0 0..4): 4",
    ];
    let found = reflect("invocations.comp");
    assert_eq!(dependencies(&found), wanted);
    let others = found.accesses.iter().filter(|it| it.mode.writes() && it.per_invocation.is_none());
    assert_eq!(others.count(), 1, "what is not a sum is only a range");
}

#[test]
fn device_addresses_are_followed_to_where_they_are_read() {
    let found = lines(&reflect("addresses.comp"));
    let wanted = [
        "*(push 8..16) 0..4 writes",
        "*(*(push 8..16) 8..16) 24..28 writes",
        "*(2.1 32..40) ~16..32 writes",
        "*(2.1 ~16..48) 0..4 writes",
        "*(2.1 48..56) 12..16 writes",
        "*(2.1 48..56) ~0.. writes",
        "*(push 16..24) 0..4 writes",
        "*(2.1 24..32) 0..4 writes",
        "*(push 8..16) 12..16 writes",
        "*(push 8..16) 0..4 writes?",
        "*(2.1 40..48) 0..4 writes?",
        "*(unknown) ~0.. writes?",
        "*(push 8..16) 0..4 writes?",
    ];
    let writes: Vec<&str> = found.iter().map(String::as_str).filter(|it| it.contains("writes")).collect();
    assert_eq!(writes, wanted);
}

#[test]
fn only_what_every_run_executes_is_certain() {
    let found = reflect("flow.comp");
    let mark = |at: u32| format!("0.0 {}..{} writes", at * 4, at * 4 + 4);
    let marks = lines_of(&found, "0.0");
    for at in [0, 3, 6, 10, 11] {
        assert!(marks.contains(&mark(at)), "mark {at} is certain");
    }
    for at in [1, 2, 4, 5, 7, 8, 9, 12] {
        assert!(marks.contains(&(mark(at) + "?")), "mark {at} is not");
    }
    assert_eq!(marks.len(), 13);
}

#[test]
fn what_comes_behind_a_discard_is_not_certain() {
    let found = reflect("late.frag");
    assert_eq!(lines(&found), ["0.0 0..4 writes", "0.0 4..8 writes?", "0.0 8..12 writes?"]);
    assert!(found.may_discard && found.is_per_sample && !found.may_demote);
    assert!(found.tests.replaces_depth && found.tests.writes_depth && !found.tests.early);
}

#[test]
fn execution_modes_are_read() {
    let early = reflect("early.frag");
    assert!(early.tests.early && early.tests.post_depth_coverage && !early.tests.writes_depth);
    assert!(!early.may_discard && !early.is_per_sample);
    let mesh = reflect("limits.mesh");
    assert_eq!(mesh.mesh, Some(MeshLimits { vertices: 64, primitives: 42 }));
    assert_eq!(mesh.workgroup_size, Some([32, 1, 1]));
    assert!(reflect("ordered.frag").interlock.is_some_and(|it| it.is_ordered));
    assert!(reflect("ordered.frag").descriptors[0].is_coherent);
    assert_eq!(early.interlock, None);
}

#[test]
fn the_interface_has_what_is_used_with_its_place_and_type() {
    let found = reflect("early.frag");
    let color = named(&found, "color").expect("an output");
    assert_eq!((color.kind, color.location, color.component, color.components), (InterfaceKind::Output, Some(1), 0, 3));
    let part = named(&found, "part").expect("an output");
    assert_eq!((part.location, part.component, part.components), (Some(3), 2, 2));
    assert!(named(&found, "untouched").is_none());
    let late = reflect("late.frag");
    assert_eq!((named(&late, "second").expect("an output").index, late.interface.len()), (1, 5));

    let vertex = reflect("inputs.vert");
    let cell = named(&vertex, "cell").expect("an input");
    assert_eq!((cell.number, cell.width, cell.components, cell.location), (NumberKind::Signed, 32, 2, Some(1)));
    let model = named(&vertex, "model").expect("an input");
    assert_eq!((model.columns, model.components, model.location), (4, 4, Some(2)));
    assert_eq!(named(&vertex, "weight").expect("an input").component, 3);
    assert!(named(&vertex, "unused").is_none());
    assert_eq!(named(&vertex, "color").expect("a member").location, Some(4));
    assert_eq!(named(&vertex, "uv").expect("a member").location, Some(11));
    assert!(named(&vertex, "idle").is_none());
    assert_eq!(lines(&vertex), ["push 16..32 reads", "push 64..68 reads"]);
}

#[test]
fn lines_are_reported_by_both_kinds_of_debug_information() {
    for name in ["lines.comp", "lines_debuginfo.comp"] {
        let module = common::shader(name);
        let found = reflect(name);
        let lines: Vec<_> = found.accesses.iter().map(|it| module.source(it.at).expect("a line")).collect();
        let numbers: Vec<u32> = lines.iter().map(|it| it.line).collect();
        assert_eq!(numbers, [7, 100, 101], "{name}");
        assert!(lines.iter().all(|it| it.file == name), "{name}");
        let texts: Vec<&str> = lines.iter().map(|it| it.text.as_deref().unwrap_or("").trim()).collect();
        let wanted = ["words.it[0] = 1;", "words.it[1] = 2; // line 100", "words.it[2] = 3; // line 101"];
        assert_eq!(texts, wanted, "{name}");
    }
}

#[test]
fn descriptors_that_nothing_uses_are_not_listed() {
    let found = reflect("kinds.frag");
    assert!(found.descriptors.iter().all(|it| it.set == 0));
    let used = |at: usize| {
        let is_it = |it: &AccessTarget| matches!(it, AccessTarget::Descriptor { descriptor, .. } if *descriptor == at);
        found.accesses.iter().any(|it| is_it(&it.target))
    };
    assert!((0..found.descriptors.len()).all(used));
    let elements = found.accesses.iter().filter_map(|access| match &access.target {
        AccessTarget::Descriptor { element, .. } => Some(element),
        _ => None,
    });
    assert!(elements.into_iter().all(|it| *it == DescriptorElement::Constant(0)));
}
