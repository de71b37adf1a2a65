//! The properties of a hazard that tools read, with the keys, the values and the order of the Khronos layer.
//!
//! `HostError` is ours: the Khronos layer sees no accesses of the host. `access` is there for every type; the Khronos
//! layer leaves it out of `SubmitTimeError`.

use lavascope_abi::{
    AccessFlags2 as A, DESCRIPTOR_TYPE_ENUM, DescriptorType, IMAGE_ASPECT_FLAG_BITS_ENUM, IMAGE_LAYOUT_ENUM,
    PipelineStageFlags2 as S, RESOLVE_MODE_FLAG_BITS_ENUM,
};
use lavascope_diag::Property;
use lavascope_sync_ir::{HostStep, LoadOp, OriginKind, ProgramLocation, Region, StoreOp};

use super::api_names::{ALL_ACCESSES, access_names, enum_name, mask_names, stage_names};
use super::message::{ExplainedHazard, is_ray_traced, is_shader_access, ordering_operations, ordering_stages};
use crate::{AccessDetail, AccessRelation, AccessRole, ExplainedAccess, Explanation, RenderingContext};

/// All properties of a hazard.
pub(crate) fn properties(told: &ExplainedHazard<'_>) -> Vec<Property> {
    let (item, found) = (told.explanation, told.hazard);
    let mut all = PropertyList::default();
    let message_type = message_type(told);
    all.add("message_type", message_type);
    all.add("hazard_type", found.kind.name().replace('-', "_"));
    all.add("access", access(told, &item.later));
    let has_prior = item.prior.role != AccessRole::Forgotten;
    if has_prior {
        all.add("prior_access", access(told, &item.prior));
    }
    if told.has_operations {
        barriers(item, &mut all);
    }
    all.add("command", told.command());
    if has_prior {
        all.add("prior_command", told.prior_command());
    }
    all.add_some("debug_region", told.names.labels(&found.at).path());
    all.add_some("prior_debug_region", told.names.labels(&found.prior).path());
    match (told.relation, &found.at) {
        (AccessRelation::Submitted, _) => submission(told, &mut all),
        // The place in `pCommandBuffers` of whoever executes it.
        (AccessRelation::Executed, ProgramLocation::Command(at)) => {
            let place = at.path.len().checked_sub(2).and_then(|it| at.path.get(it));
            all.add_some("command_buffer_index", place.map(u32::to_string));
        }
        _ => {}
    }
    details(told, message_type, &mut all);
    if let Some(sequence) = told.names.sequence(&found.prior) {
        all.add("seq_no", sequence.command.to_string());
        all.add("reset_no", sequence.resets.to_string());
    }
    all.0
}

/// What the operations between the two accesses lead to.
fn barriers(item: &Explanation, all: &mut PropertyList) {
    // What an acquire stands for is a read.
    if item.prior.is_write && item.prior.role != AccessRole::Acquire {
        let scopes = ordering_operations(item).map(|it| it.scope).filter(|it| it.dst_access != 0);
        let mut barriers: Vec<String> = scopes.map(|it| side(it.dst_stages, it.dst_access)).collect();
        barriers.dedup();
        all.add("write_barriers", if barriers.is_empty() { "0".to_owned() } else { barriers.join(":") });
    } else {
        let stages = ordering_stages(item);
        all.add("read_barriers", if stages == 0 { "0".to_owned() } else { stage_names(stages) });
    }
}

#[derive(Default)]
struct PropertyList(Vec<Property>);

impl PropertyList {
    fn add(&mut self, key: &'static str, value: impl Into<String>) {
        self.0.push(Property { key, value: value.into() });
    }

    fn add_some(&mut self, key: &'static str, value: Option<String>) {
        self.0.extend(value.map(|value| Property { key, value }));
    }
}

/// What the later access comes from. Of what attachments do by themselves, the Khronos layer tells it only while
/// commands are recorded.
fn details(told: &ExplainedHazard<'_>, message_type: &str, all: &mut PropertyList) {
    let at = &told.explanation.later;
    match at.detail {
        AccessDetail::Command(origin) => match origin.kind() {
            OriginKind::Region(index) => all.add("region_index", index.to_string()),
            OriginKind::Descriptor(descriptor) => {
                all.add("descriptor_type", enum_name(&DESCRIPTOR_TYPE_ENUM, descriptor.ty));
                all.add("descriptor_binding", descriptor.binding.to_string());
                all.add("descriptor_array_element", descriptor.element.to_string());
                all.add_some("image_layout", descriptor.layout.map(|it| enum_name(&IMAGE_LAYOUT_ENUM, it)));
            }
            OriginKind::Command | OriginKind::AccelerationStructure | OriginKind::Address(_) => {}
        },
        _ if told.relation != AccessRelation::Recorded => {}
        AccessDetail::Load(op) => all.add("load_op", load_op(op)),
        AccessDetail::Store(op) => all.add("store_op", store_op(op)),
        AccessDetail::Resolve(mode) if mode != 0 => {
            all.add("resolve_mode", enum_name(&RESOLVE_MODE_FLAG_BITS_ENUM, mode as i32));
        }
        AccessDetail::SubpassTransition(layouts) | AccessDetail::FinalTransition(layouts) => {
            all.add("old_layout", enum_name(&IMAGE_LAYOUT_ENUM, layouts.old));
            all.add("new_layout", enum_name(&IMAGE_LAYOUT_ENUM, layouts.new));
        }
        AccessDetail::Resolve(_) | AccessDetail::Barrier(_) => {}
    }
    if let (true, Region::Image(region)) = (message_type == "ClearAttachmentError", &at.region) {
        all.add("image_aspects", mask_names(&IMAGE_ASPECT_FLAG_BITS_ENUM, region.aspects.into()));
    }
}

/// Where the two were submitted: the earlier one, as the Khronos layer has it, and the place of the command buffer.
fn submission(told: &ExplainedHazard<'_>, all: &mut PropertyList) {
    let (at, prior) = (&told.hazard.at, &told.hazard.prior);
    if let (ProgramLocation::Command(prior), true) = (prior, told.explanation.prior.role != AccessRole::Forgotten) {
        all.add("submit_index", told.names.submit_index(prior.step).to_string());
        all.add("batch_index", prior.batch.to_string());
    }
    match at {
        ProgramLocation::Command(at) => all.add("command_buffer_index", at.primary.to_string()),
        ProgramLocation::Step(step) => {
            if let Some(HostStep::Present { images, .. }) = told.program.steps.get(*step as usize) {
                let index = images.iter().position(|it| *it == told.hazard.resource);
                all.add_some("swapchain_index", index.map(|it| it.to_string()));
            }
        }
    }
}

/// `STAGE(ACCESS)`, or what stands for accesses that have none.
fn access(told: &ExplainedHazard<'_>, explained_access: &ExplainedAccess) -> String {
    match explained_access.role {
        AccessRole::Transition if told.is_transfer_of(explained_access) => {
            "SYNC_QUEUE_FAMILY_OWNERSHIP_TRANSFER".to_owned()
        }
        AccessRole::Transition => "SYNC_IMAGE_LAYOUT_TRANSITION".to_owned(),
        AccessRole::Present => "SYNC_PRESENT_ENGINE_SYNCVAL_PRESENT_PRESENTED_SYNCVAL".to_owned(),
        AccessRole::Acquire => "SYNC_PRESENT_ENGINE_SYNCVAL_PRESENT_ACQUIRE_READ_SYNCVAL".to_owned(),
        _ => side(explained_access.stage, explained_access.access),
    }
}

fn side(stages: u64, access: u64) -> String {
    let access = if access == ALL_ACCESSES { "ALL_ACCESSES".to_owned() } else { access_names(access) };
    format!("{}({access})", stage_names(stages))
}

fn message_type(told: &ExplainedHazard<'_>) -> &'static str {
    let (at, prior) = (&told.explanation.later, &told.explanation.prior);
    let is_rendering = at.within == RenderingContext::Rendering;
    match at.role {
        AccessRole::Present | AccessRole::Acquire => "PresentError",
        AccessRole::Host => "HostError",
        _ if told.relation != AccessRelation::Recorded => "SubmitTimeError",
        AccessRole::Transition => match (at.detail, prior.role) {
            (AccessDetail::FinalTransition(_), AccessRole::Store | AccessRole::Resolve) if is_one_instance(told) => {
                "RenderPassFinalLayoutTransitionVsStoreOrResolveError"
            }
            (AccessDetail::FinalTransition(_), _) => "RenderPassFinalLayoutTransitionError",
            (AccessDetail::SubpassTransition(_), AccessRole::Resolve) if is_one_instance(told) => {
                "RenderPassLayoutTransitionVsResolveError"
            }
            (AccessDetail::SubpassTransition(_), _) => "RenderPassLayoutTransitionError",
            _ => "ImageBarrierError",
        },
        AccessRole::Load if is_rendering => "BeginRenderingError",
        AccessRole::Load if prior.role == AccessRole::Transition && told.hazard.at == told.hazard.prior => {
            "RenderPassLoadOpVsLayoutTransitionError"
        }
        AccessRole::Load => "RenderPassLoadOpError",
        AccessRole::Store if is_rendering => "EndRenderingStoreError",
        AccessRole::Store => "RenderPassStoreOpError",
        AccessRole::Resolve if is_rendering => "EndRenderingResolveError",
        AccessRole::Resolve => "RenderPassResolveError",
        AccessRole::Command | AccessRole::Forgotten => type_of_command(at, &told.command()),
    }
}

/// Whether the earlier access was made by the same render pass instance: `End` and `Next` commands end it.
fn is_one_instance(told: &ExplainedHazard<'_>) -> bool {
    told.explanation.is_inside_one_instance || told.hazard.at == told.hazard.prior
}

fn type_of_command(at: &ExplainedAccess, function: &str) -> &'static str {
    const VIDEO: u64 = S::VIDEO_DECODE_KHR.0 | S::VIDEO_ENCODE_KHR.0;
    const ATTACHMENTS: u64 = A::COLOR_ATTACHMENT_READ.0
        | A::COLOR_ATTACHMENT_WRITE.0
        | A::DEPTH_STENCIL_ATTACHMENT_READ.0
        | A::DEPTH_STENCIL_ATTACHMENT_WRITE.0
        | A::FRAGMENT_SHADING_RATE_ATTACHMENT_READ_KHR.0
        | A::FRAGMENT_DENSITY_MAP_READ_EXT.0;
    let part = match at.detail {
        AccessDetail::Command(origin) => origin.kind(),
        _ => OriginKind::Command,
    };
    let is_image = is_image(at);
    match part {
        _ if at.stage & VIDEO != 0 => "VideoError",
        OriginKind::Descriptor(descriptor) if is_acceleration_structure(descriptor.ty) => {
            "AccelerationStructureDescriptorError"
        }
        OriginKind::AccelerationStructure => "AccelerationStructureError",
        _ if is_ray_traced(at) => "AccelerationStructureDescriptorError",
        _ if is_shader_access(at) && is_image => "ImageDescriptorError",
        _ if is_shader_access(at) => "BufferDescriptorError",
        _ if at.access & ATTACHMENTS != 0 && function == "vkCmdClearAttachments" => "ClearAttachmentError",
        _ if at.access & ATTACHMENTS != 0 && at.within == RenderingContext::Rendering => {
            "DynamicRenderingAttachmentError"
        }
        _ if at.access & ATTACHMENTS != 0 => "RenderPassAttachmentError",
        _ if at.stage == S::BLIT.0 => "ImageBlitError",
        _ if at.stage == S::RESOLVE.0 => "ImageResolveError",
        _ if at.stage == S::COPY.0 && is_image => "ImageCopyError",
        _ if at.stage == S::COPY.0 && is_copy(function) => "BufferCopyError",
        _ if is_image => "ImageSubresourceRangeError",
        _ => "BufferError",
    }
}

/// Other commands copy into buffers too, but have no regions.
fn is_copy(function: &str) -> bool {
    let copies = ["vkCmdCopyBuffer", "vkCmdCopyImageToBuffer", "vkCmdCopyMemory", "vkCmdCopyImageToMemory"];
    function == "copy" || copies.iter().any(|it| function.starts_with(it))
}

fn is_acceleration_structure(ty: i32) -> bool {
    let all = [
        DescriptorType::ACCELERATION_STRUCTURE_KHR,
        DescriptorType::ACCELERATION_STRUCTURE_NV,
        DescriptorType::PARTITIONED_ACCELERATION_STRUCTURE_NV,
    ];
    all.iter().any(|it| it.0 == ty)
}

pub(crate) fn is_image(explained_access: &ExplainedAccess) -> bool {
    matches!(explained_access.region, Region::Image(_))
}

fn load_op(op: LoadOp) -> &'static str {
    match op {
        LoadOp::Load => "VK_ATTACHMENT_LOAD_OP_LOAD",
        LoadOp::Clear => "VK_ATTACHMENT_LOAD_OP_CLEAR",
        LoadOp::DontCare => "VK_ATTACHMENT_LOAD_OP_DONT_CARE",
        LoadOp::None => "VK_ATTACHMENT_LOAD_OP_NONE",
    }
}

fn store_op(op: StoreOp) -> &'static str {
    match op {
        StoreOp::Store => "VK_ATTACHMENT_STORE_OP_STORE",
        StoreOp::DontCare => "VK_ATTACHMENT_STORE_OP_DONT_CARE",
        StoreOp::None => "VK_ATTACHMENT_STORE_OP_NONE",
    }
}
