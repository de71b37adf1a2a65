//! How many elements a pointer has, and whether it is read at all.
//!
//! Vulkan lets an application leave garbage in pointers that a call ignores. Following one crashes the application, so
//! every such pointer has its condition. Where one sibling decides, the condition is data in the tables
//! (`ReadCondition`); where more is needed, it is code here or in `pipeline_reads`. The rules are written once, over a
//! [`ReadableMemory`], and serve C memory and records alike.
//!
//! Some rules need to know an object: the level of a command buffer, the attachments of a subpass, the entries of a
//! template. They ask a `PackContext`. Not knowing is always safe: the pointer is then not followed.
//!
//! Spec: the "valid usage" of each structure; the state subsets of "Graphics Pipelines".

use lavascope_abi::desc::{IntegerLocation, Len, LenRule, ReadCondition, ReadRule, Span};
use lavascope_abi::{
    ACCELERATION_STRUCTURE_BUILD_GEOMETRY_INFO_KHR_LAYOUT, COMMAND_BUFFER_BEGIN_INFO_LAYOUT,
    COMMAND_BUFFER_INHERITANCE_INFO_LAYOUT, DESCRIPTOR_BUFFER_INFO_LAYOUT, DESCRIPTOR_IMAGE_INFO_LAYOUT,
    DEVICE_FAULT_COUNTS_EXT_LAYOUT, DescriptorType, FORMATS, Format, GRAPHICS_PIPELINE_CREATE_INFO_LAYOUT, HandleType,
    SHADER_CREATE_INFO_EXT_LAYOUT, STD_VIDEO_ENCODE_AV1_PICTURE_INFO_LAYOUT,
    STD_VIDEO_H265_SEQUENCE_PARAMETER_SET_LAYOUT, STD_VIDEO_H265_VIDEO_PARAMETER_SET_LAYOUT,
    TENSOR_DESCRIPTION_ARM_LAYOUT,
};

use crate::memory::ReadableMemory;
use crate::pack_context::PackContext;
use crate::pipeline_reads::GraphicsPipelineReads;
use crate::template::{self, TemplateElement};
use crate::walk::StructFrame;

/// Whether a pointer is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PointerUse {
    Read,
    /// The specification allows any value.
    Ignored,
    /// It is unknown whether the pointer is valid, so it is not read.
    Unknown,
}

impl From<bool> for PointerUse {
    fn from(is_read: bool) -> PointerUse {
        if is_read { PointerUse::Read } else { PointerUse::Ignored }
    }
}

impl From<Option<bool>> for PointerUse {
    fn from(is_read: Option<bool>) -> PointerUse {
        is_read.map_or(PointerUse::Unknown, PointerUse::from)
    }
}

/// The number of elements behind a pointer of `frame`; none if it is unknown.
///
/// `element` is the index within the outer array, for pointers in arrays of pointers.
/// A length behind a null pointer is zero. [`Len::Terminated`] is not a count and gives none.
pub fn count<M: ReadableMemory>(memory: &M, frame: &StructFrame<'_>, len: Len, element: u64) -> Option<u64> {
    match len {
        Len::Fixed(count) => Some(u64::from(count)),
        Len::At(place) => Some(memory.read_field(frame.base, place).unwrap_or(0)),
        Len::Scaled { of, add, divide } => {
            let value = memory.read_field(frame.base, of).unwrap_or(0);
            Some(value.saturating_add(u64::from(add)) / u64::from(divide))
        }
        Len::Terminated => None,
        Len::Rule(rule) => count_by_rule(memory, frame, rule, element),
    }
}

fn count_by_rule<M: ReadableMemory>(memory: &M, frame: &StructFrame<'_>, rule: LenRule, element: u64) -> Option<u64> {
    match rule {
        LenRule::GeometriesOfBuild => {
            let infos = memory.follow(frame.outermost().field("pInfos")?)?;
            let layout = &ACCELERATION_STRUCTURE_BUILD_GEOMETRY_INFO_KHR_LAYOUT;
            let info = StructFrame::root(layout, infos + element * u64::from(layout.size));
            memory.read(info.field("geometryCount")?, 4)
        }
        LenRule::FaultAddressInfos => fault_count(memory, frame, "addressInfoCount"),
        LenRule::FaultVendorInfos => fault_count(memory, frame, "vendorInfoCount"),
        LenRule::FaultVendorBinary => fault_count(memory, frame, "vendorBinarySize"),
        LenRule::SubLayers => {
            let (owner, field) = match frame.find(&STD_VIDEO_H265_VIDEO_PARAMETER_SET_LAYOUT) {
                Some(owner) => (owner, "vps_max_sub_layers_minus1"),
                None => (frame.find(&STD_VIDEO_H265_SEQUENCE_PARAMETER_SET_LAYOUT)?, "sps_max_sub_layers_minus1"),
            };
            Some(memory.read(owner.field(field)?, 1)? + 1)
        }
    }
}

/// `vkGetDeviceFaultInfoEXT` states the capacities in another of its parameters.
fn fault_count<M: ReadableMemory>(memory: &M, frame: &StructFrame<'_>, field: &str) -> Option<u64> {
    let counts = memory.follow(frame.outermost().field("pFaultCounts")?)?;
    let counts = StructFrame::root(&DEVICE_FAULT_COUNTS_EXT_LAYOUT, counts);
    let width = if field == "vendorBinarySize" { 8 } else { 4 };
    memory.read(counts.field(field)?, width)
}

/// The bytes of a constant of a data graph, which the tensor in the chain of its structure describes.
pub fn tensor_constant_bytes<M: ReadableMemory>(memory: &M, frame: &StructFrame<'_>) -> Option<u32> {
    const NEXT_AT: u64 = 8;
    const DIMENSIONS_MAX: u64 = 64;
    let layout = &TENSOR_DESCRIPTION_ARM_LAYOUT;
    let wanted = layout.s_type()?;
    let mut at = frame.base;
    let description = loop {
        at = memory.follow(at + NEXT_AT)?;
        if memory.u32(at)? as i32 == wanted {
            break StructFrame::root(layout, at);
        }
    };
    let format = Format(memory.u32(description.field("format")?)? as i32);
    let element = u64::from(FORMATS.iter().find(|it| it.format == format)?.block_size);
    let count = memory.read(description.field("dimensionCount")?, 4).filter(|it| *it <= DIMENSIONS_MAX)?;
    let dimensions = memory.follow(description.field("pDimensions")?)?;
    let dimension = |index: u64| memory.read(dimensions + index * 8, 8).filter(|it| *it > 0);
    let bytes = match memory.follow(description.field("pStrides")?) {
        None => (0..count).try_fold(element, |all, index| all.checked_mul(dimension(index)?))?,
        Some(strides) => (0..count).try_fold(element, |all, index| {
            let stride = memory.read(strides + index * 8, 8)?;
            all.checked_add((dimension(index)? - 1).checked_mul(stride)?)
        })?,
    };
    bytes.try_into().ok()
}

/// The bytes of an inline array that its count covers.
pub fn used_tail_size<M: ReadableMemory>(
    memory: &M,
    frame: &StructFrame<'_>,
    array: Span,
    element: u32,
    count: IntegerLocation,
) -> u64 {
    let count = memory.read_field(frame.base, count).unwrap_or(0);
    count.saturating_mul(u64::from(element)).min(u64::from(array.size))
}

/// Whether a pointer of `frame` is read.
pub fn pointer_use<M: ReadableMemory, F: PackContext + ?Sized>(
    memory: &M,
    facts: &F,
    frame: &StructFrame<'_>,
    read: ReadCondition,
) -> PointerUse {
    let value = |place: IntegerLocation| memory.read_field(frame.base, place).unwrap_or(0);
    match read {
        ReadCondition::Always => PointerUse::Read,
        ReadCondition::Is(place, values) => values.contains(&i64::from(value(place) as i32)).into(),
        ReadCondition::Has(place, bits) => (value(place) & bits != 0).into(),
        ReadCondition::Lacks(place, bits) => (value(place) & bits == 0).into(),
        ReadCondition::Rule(rule) => pointer_use_by_rule(memory, facts, frame, rule),
    }
}

fn pointer_use_by_rule<M: ReadableMemory, F: PackContext + ?Sized>(
    memory: &M,
    facts: &F,
    frame: &StructFrame<'_>,
    rule: ReadRule,
) -> PointerUse {
    match rule {
        ReadRule::SecondaryCommandBuffer => is_secondary(memory, facts, frame).into(),
        ReadRule::DescriptorImages => descriptor(memory, frame, is_image),
        ReadRule::DescriptorBuffers => descriptor(memory, frame, is_buffer),
        ReadRule::DescriptorTexelViews => descriptor(memory, frame, is_texel_view),
        ReadRule::ViewportDepths => (flag(memory, frame, "viewportScissor2D")).into(),
        ReadRule::RenderingColors => rendering_colors(memory, facts, frame),
        ReadRule::DecodedTiles => (!is_encoding(frame)).into(),
        ReadRule::TileSizes => {
            let is_uniform = frame.field("flags").and_then(|at| memory.u32(at)).is_some_and(|it| it & 1 != 0);
            (!is_encoding(frame) || !is_uniform).into()
        }
        ReadRule::GroupVertexInput => {
            let stages = own_stages(memory, frame);
            let is_dynamic = pipeline(memory, facts, frame).is_some_and(|it| it.is_dynamic(VERTEX_INPUT));
            (stages & MESH_STAGES == 0 && !is_dynamic).into()
        }
        ReadRule::GroupTessellation => (own_stages(memory, frame) & TESSELLATION == TESSELLATION).into(),
        _ => match pipeline(memory, facts, frame) {
            Some(pipeline) => pipeline_state(memory, frame, &pipeline, rule),
            // Without a pipeline around it, nothing is dynamic or from a library.
            None => PointerUse::Read,
        },
    }
}

pub(crate) const MESH_STAGES: u32 = 0x40 | 0x80;
const TESSELLATION: u32 = 0x2 | 0x4;
const VERTEX_INPUT: i32 = 1000352000;

fn pipeline<M: ReadableMemory, F: PackContext + ?Sized>(
    memory: &M,
    facts: &F,
    frame: &StructFrame<'_>,
) -> Option<GraphicsPipelineReads> {
    frame.find(&GRAPHICS_PIPELINE_CREATE_INFO_LAYOUT).map(|it| GraphicsPipelineReads::read(memory, facts, it))
}

/// The state of a graphics pipeline, and what hangs below it.
fn pipeline_state<M: ReadableMemory>(
    memory: &M,
    frame: &StructFrame<'_>,
    pipeline_reads: &GraphicsPipelineReads,
    rule: ReadRule,
) -> PointerUse {
    let is_any_dynamic = |states: &[i32]| states.iter().any(|state| pipeline_reads.is_dynamic(*state));
    let is_static = |state: i32| PointerUse::from(!pipeline_reads.is_dynamic(state));
    match rule {
        ReadRule::PipelineStages => (pipeline_reads.has_shaders()).into(),
        ReadRule::PipelineVertexInput => pipeline_reads.reads_vertex_input(),
        ReadRule::PipelineInputAssembly => pipeline_reads.reads_input_assembly(),
        ReadRule::PipelineTessellation => {
            (pipeline_reads.has_pre_rasterization() && pipeline_reads.stages & TESSELLATION == TESSELLATION).into()
        }
        ReadRule::PipelineViewport => pipeline_reads.when_rasterizing(pipeline_reads.has_pre_rasterization()),
        ReadRule::PipelineRasterization => pipeline_reads.has_pre_rasterization().into(),
        ReadRule::PipelineMultisample => pipeline_reads
            .when_rasterizing(pipeline_reads.has_fragment_shader() || pipeline_reads.has_fragment_output()),
        ReadRule::PipelineDepthStencil => pipeline_reads.reads_depth_stencil(),
        ReadRule::PipelineColorBlend => pipeline_reads.reads_color_blend(),
        ReadRule::ViewportsStatic => (!is_any_dynamic(&[0, 1000267003])).into(),
        ReadRule::ScissorsStatic => (!is_any_dynamic(&[1, 1000267004])).into(),
        ReadRule::SampleMask => is_static(1000455006),
        ReadRule::ViewportScalingsStatic => {
            let is_enabled = flag(memory, frame, "viewportWScalingEnable") || pipeline_reads.is_dynamic(1000455023);
            (!pipeline_reads.is_dynamic(1000087000) && is_enabled).into()
        }
        ReadRule::DiscardRectanglesStatic => {
            (pipeline_reads.has_pre_rasterization() && !pipeline_reads.is_dynamic(1000099000)).into()
        }
        ReadRule::CoverageTable => {
            let is_enabled =
                flag(memory, frame, "coverageModulationTableEnable") || pipeline_reads.is_dynamic(1000455028);
            (!pipeline_reads.is_dynamic(1000455029) && is_enabled).into()
        }
        ReadRule::ExclusiveScissorsStatic => is_static(1000205001),
        ReadRule::ShadingRatePalettesStatic => is_static(1000164004),
        ReadRule::BlendAttachments => {
            (![1000455010, 1000455011, 1000455012].iter().all(|state| pipeline_reads.is_dynamic(*state))).into()
        }
        ReadRule::ColorWriteEnables => is_static(1000381000),
        ReadRule::SampleOrders => is_static(1000164006),
        ReadRule::ViewportSwizzles => is_static(1000455024),
        ReadRule::DepthClampRange => is_static(1000582000),
        ReadRule::SecondaryCommandBuffer
        | ReadRule::DescriptorImages
        | ReadRule::DescriptorBuffers
        | ReadRule::DescriptorTexelViews
        | ReadRule::ViewportDepths
        | ReadRule::RenderingColors
        | ReadRule::DecodedTiles
        | ReadRule::TileSizes
        | ReadRule::GroupVertexInput
        | ReadRule::GroupTessellation => PointerUse::Unknown,
    }
}

/// An AV1 encoder computes some fields of tiles itself, and ignores those values.
fn is_encoding(frame: &StructFrame<'_>) -> bool {
    frame.find(&STD_VIDEO_ENCODE_AV1_PICTURE_INFO_LAYOUT).is_some()
}

fn is_secondary<M: ReadableMemory, F: PackContext + ?Sized>(
    memory: &M,
    facts: &F,
    frame: &StructFrame<'_>,
) -> Option<bool> {
    // Unread members do not matter: without a context, records of different command buffers are equal.
    if facts.is_empty() {
        return None;
    }
    let command_buffer = memory.read(frame.outermost().field("commandBuffer")?, 8)?;
    facts.is_secondary(command_buffer)
}

/// Formats of dynamic rendering: below a pipeline, below inheritance info, or on their own.
fn rendering_colors<M: ReadableMemory, F: PackContext + ?Sized>(
    memory: &M,
    facts: &F,
    frame: &StructFrame<'_>,
) -> PointerUse {
    if let Some(pipeline) = pipeline(memory, facts, frame) {
        return pipeline.reads_rendering_colors();
    }
    if frame.find(&SHADER_CREATE_INFO_EXT_LAYOUT).is_some() {
        return PointerUse::Ignored;
    }
    let Some(inheritance) = frame.find(&COMMAND_BUFFER_INHERITANCE_INFO_LAYOUT) else { return PointerUse::Read };
    let begin = frame.find(&COMMAND_BUFFER_BEGIN_INFO_LAYOUT);
    let flags = begin.and_then(|it| memory.u32(it.field("flags")?)).unwrap_or(0);
    let render_pass = inheritance.field("renderPass").and_then(|at| memory.read(at, 8)).unwrap_or(0);
    const RENDER_PASS_CONTINUE: u32 = 2;
    (flags & RENDER_PASS_CONTINUE != 0 && render_pass == 0).into()
}

fn flag<M: ReadableMemory>(memory: &M, frame: &StructFrame<'_>, name: &str) -> bool {
    frame.field(name).and_then(|at| memory.u32(at)).is_some_and(|it| it != 0)
}

/// The stages of a structure that has `pStages` itself.
pub(crate) fn own_stages<M: ReadableMemory>(memory: &M, frame: &StructFrame<'_>) -> u32 {
    let (Some(count_at), Some(stages_at)) = (frame.field("stageCount"), frame.field("pStages")) else { return 0 };
    let count = memory.u32(count_at).unwrap_or(0);
    let Some(first) = memory.follow(stages_at) else { return 0 };
    const STAGE_AT: u64 = 20;
    const STAGE_SIZE: u64 = 48;
    (0..u64::from(count))
        .map_while(|it| memory.u32(first + it * STAGE_SIZE + STAGE_AT))
        .fold(0, |stages, stage| stages | stage)
}

/// Whether a write of descriptors reads elements of a kind.
fn descriptor<M: ReadableMemory>(
    memory: &M,
    frame: &StructFrame<'_>,
    is_wanted: fn(TemplateElement) -> bool,
) -> PointerUse {
    let ty = frame.field("descriptorType").and_then(|at| memory.u32(at));
    ty.map(|it| template::element_of(DescriptorType(it as i32)).is_some_and(is_wanted)).into()
}

fn is_image(element: TemplateElement) -> bool {
    matches!(element, TemplateElement::Struct(layout) if std::ptr::eq(layout, &DESCRIPTOR_IMAGE_INFO_LAYOUT))
}

fn is_buffer(element: TemplateElement) -> bool {
    matches!(element, TemplateElement::Struct(layout) if std::ptr::eq(layout, &DESCRIPTOR_BUFFER_INFO_LAYOUT))
}

fn is_texel_view(element: TemplateElement) -> bool {
    matches!(element, TemplateElement::Handle(HandleType::BufferView))
}
