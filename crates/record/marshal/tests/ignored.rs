//! Every pointer that may be invalid is tested with an invalid address, and is read where it must be.

mod common;

use std::collections::{BTreeMap, BTreeSet};

use common::SimHandles;
use lavascope_abi::desc::{Fixup, Layout, ReadCondition};
use lavascope_abi::*;
use lavascope_marshal::{Packer, RecordBuffer};
use lavascope_record::rules::PointerUse;
use lavascope_record::walk::WalkPass;
use lavascope_sim::{CallOptions, SyntheticObjects, random_call_memory};
use lavascope_test_support::TestRng;

/// Structures in a chain of a graphics pipeline or inheritance info that have conditional pointers, or decide them.
static CHAINED: &[&Layout] = &[
    &ATTACHMENT_SAMPLE_COUNT_INFO_AMD_LAYOUT,
    &COMMAND_BUFFER_INHERITANCE_RENDERING_INFO_LAYOUT,
    &COMMAND_BUFFER_INHERITANCE_VIEWPORT_SCISSOR_INFO_NV_LAYOUT,
    &CUSTOM_RESOLVE_CREATE_INFO_EXT_LAYOUT,
    &GRAPHICS_PIPELINE_LIBRARY_CREATE_INFO_EXT_LAYOUT,
    &GRAPHICS_PIPELINE_SHADER_GROUPS_CREATE_INFO_NV_LAYOUT,
    &GRAPHICS_SHADER_GROUP_CREATE_INFO_NV_LAYOUT,
    &IMAGE_COMPRESSION_CONTROL_EXT_LAYOUT,
    &PIPELINE_COLOR_WRITE_CREATE_INFO_EXT_LAYOUT,
    &PIPELINE_COVERAGE_MODULATION_STATE_CREATE_INFO_NV_LAYOUT,
    &PIPELINE_DISCARD_RECTANGLE_STATE_CREATE_INFO_EXT_LAYOUT,
    &PIPELINE_LIBRARY_CREATE_INFO_KHR_LAYOUT,
    &PIPELINE_RENDERING_CREATE_INFO_LAYOUT,
    &PIPELINE_VIEWPORT_COARSE_SAMPLE_ORDER_STATE_CREATE_INFO_NV_LAYOUT,
    &PIPELINE_VIEWPORT_DEPTH_CLAMP_CONTROL_CREATE_INFO_EXT_LAYOUT,
    &PIPELINE_VIEWPORT_EXCLUSIVE_SCISSOR_STATE_CREATE_INFO_NV_LAYOUT,
    &PIPELINE_VIEWPORT_SHADING_RATE_IMAGE_STATE_CREATE_INFO_NV_LAYOUT,
    &PIPELINE_VIEWPORT_SWIZZLE_STATE_CREATE_INFO_NV_LAYOUT,
    &PIPELINE_VIEWPORT_W_SCALING_STATE_CREATE_INFO_NV_LAYOUT,
    &RENDERING_ATTACHMENT_LOCATION_INFO_LAYOUT,
];

/// Dynamic states that cause pointers to be ignored.
static STATES: &[u32] = &[
    0, 1, 1000087000, 1000099000, 1000164004, 1000164006, 1000205001, 1000267003, 1000267004, 1000352000, 1000377001,
    1000381000, 1000455006, 1000455010, 1000455011, 1000455012, 1000455023, 1000455024, 1000455028, 1000455029,
    1000582000,
];

const BELOW_PIPELINES: CallOptions = CallOptions {
    pointer_depth_max: 5,
    count_end: 4,
    has_unknown: false,
    chain_layouts: CHAINED,
    likely_values: STATES,
};

/// How a conditional pointer was used, by owner and field.
type Met = BTreeMap<(&'static str, &'static str), BTreeSet<&'static str>>;

/// Packs a random image, puts invalid addresses into its ignored pointers, and packs again.
fn meet(layout: &'static Layout, options: CallOptions, seed: u64, met: &mut Met) {
    let mut random = TestRng::new(seed);
    let mut memory = random_call_memory(layout, &mut random, options);
    let image = std::ptr::with_exposed_provenance(memory.address(0) as usize);
    let mut stream = RecordBuffer::default();
    let mut packer = Packer::new(&SimHandles, &SyntheticObjects);
    packer.conditional = Some(Vec::new());
    // SAFETY: `random_call_memory` made it for this layout, and `memory` keeps its targets.
    let words = unsafe { packer.pack_structure(&mut stream, layout, WalkPass::Enter, image) }.0.to_vec();
    for pointer in packer.conditional.take().unwrap_or_default() {
        let verdict = if pointer.pointer_use == PointerUse::Read { "read" } else { "ignored" };
        if pointer.pointer_use != PointerUse::Read {
            memory.overwrite_pointer(pointer.address, 0xdead_beef_dead_bee1);
        }
        met.entry(field_at(pointer.owner, &memory, pointer.address)).or_default().insert(verdict);
    }
    stream.clear();
    // SAFETY: `random_call_memory` made it for this layout, and `memory` keeps its targets.
    let again = unsafe { packer.pack_structure(&mut stream, layout, WalkPass::Enter, image) }.0;
    assert_eq!(again, words, "{} with seed {seed} and garbage", layout.name);
}

/// The conditional field at an address. The distance from the start of the block identifies it.
fn field_at(owner: &'static Layout, memory: &lavascope_sim::CallMemory, address: u64) -> (&'static str, &'static str) {
    let offset = memory.offset_in_block(address).unwrap_or(0);
    let is_here = |at: u32| offset >= u64::from(at) && (offset - u64::from(at)).is_multiple_of(u64::from(owner.size));
    let field = conditional_fields(owner).into_iter().find(|it| is_here(it.0));
    (owner.name, field.map_or("?", |it| it.1))
}

fn conditional_fields(layout: &'static Layout) -> Vec<(u32, &'static str)> {
    let conditional = layout.fixups.iter().filter_map(|fixup| match fixup {
        Fixup::Pointer { at, pointer } if pointer.read != ReadCondition::Always => Some(*at),
        _ => None,
    });
    let name = |at: u32| layout.fields.iter().find(|it| it.at == at).map(|it| (at, it.name));
    conditional.filter_map(name).collect()
}

#[test]
fn every_conditional_pointer_is_met_as_garbage_and_as_data() {
    let mut met = Met::new();
    for round in 0..4000 {
        let pipelines = Command::CreateGraphicsPipelines.desc().parameters;
        meet(pipelines, BELOW_PIPELINES, round, &mut met);
        meet(Command::BeginCommandBuffer.desc().parameters, BELOW_PIPELINES, round, &mut met);
    }
    for round in 0..300 {
        meet(Command::CreateShadersEXT.desc().parameters, BELOW_PIPELINES, round, &mut met);
        meet(&STD_VIDEO_ENCODE_AV1_PICTURE_INFO_LAYOUT, CallOptions::UNRESTRICTED, round, &mut met);
    }
    // Blend state is ignored only if all of these are dynamic.
    let blend = CallOptions { likely_values: &[1000455010, 1000455011, 1000455012], ..BELOW_PIPELINES };
    (0..1000).for_each(|round| meet(Command::CreateGraphicsPipelines.desc().parameters, blend, round, &mut met));
    for layout in STRUCTURES.iter().filter(|it| !conditional_fields(it).is_empty()) {
        (0..60).for_each(|round| meet(layout, CallOptions::UNRESTRICTED, round, &mut met));
    }
    let both = BTreeSet::from(["ignored", "read"]);
    let mut missing = Vec::new();
    for layout in STRUCTURES {
        for (_, field) in conditional_fields(layout) {
            let seen = met.get(&(layout.name, field)).cloned().unwrap_or_default();
            if seen != both {
                missing.push(format!("{}.{field}: only {seen:?}", layout.name));
            }
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}
