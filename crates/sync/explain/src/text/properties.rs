//! The properties of a hazard for tools. The keys, the values and their order are those of the
//! Khronos layer.
//!
//! Two things differ. `HostError` is new, because the Khronos layer does not check host accesses.
//! Every message type has `access`, but the Khronos layer omits it for `SubmitTimeError`.

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
pub(crate) fn properties(explained: &ExplainedHazard<'_>) -> Vec<Property> {
    let (item, found) = (explained.explanation, explained.hazard);
    let mut all = PropertyList::default();
    let message_type = message_type(explained);
    all.add("message_type", message_type);
    all.add("hazard_type", found.kind.name().replace('-', "_"));
    all.add("access", access(explained, &item.later));
    let has_prior = item.prior.role != AccessRole::Forgotten;
    if has_prior {
        all.add("prior_access", access(explained, &item.prior));
    }
    if explained.has_operations {
        barriers(item, &mut all);
    }
    all.add("command", explained.command());
    if has_prior {
        all.add("prior_command", explained.prior_command());
    }
    all.add_some("debug_region", explained.names.labels(&found.at).path());
    all.add_some("prior_debug_region", explained.names.labels(&found.prior).path());
    match (explained.relation, &found.at) {
        (AccessRelation::Submitted, _) => submission(explained, &mut all),
        // The index in `pCommandBuffers` of the command that executes the secondary command buffer.
        (AccessRelation::Executed, ProgramLocation::Command(at)) => {
            let place = at.path.len().checked_sub(2).and_then(|it| at.path.get(it));
            all.add_some("command_buffer_index", place.map(u32::to_string));
        }
        _ => {}
    }
    details(explained, message_type, &mut all);
    if let Some(sequence) = explained.names.sequence(&found.prior) {
        all.add("seq_no", sequence.command.to_string());
        all.add("reset_no", sequence.resets.to_string());
    }
    all.0
}

/// The second scopes of the operations between the two accesses.
fn barriers(item: &Explanation, all: &mut PropertyList) {
    // The presentation engine only reads the image before the acquire.
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

/// The properties that depend on the origin of the later access. For load, store and resolve
/// operations and for layout transitions, the Khronos layer adds them only when it checks at record
/// time.
fn details(explained: &ExplainedHazard<'_>, message_type: &str, all: &mut PropertyList) {
    let at = &explained.explanation.later;
    match at.detail {
        AccessDetail::Command(origin) => match origin.kind() {
            OriginKind::Region(index) => all.add("region_index", index.to_string()),
            OriginKind::Descriptor(descriptor) => {
                all.add("descriptor_type", enum_name(&DESCRIPTOR_TYPE_ENUM, descriptor.ty));
                all.add("descriptor_binding", descriptor.binding.to_string());
                all.add("descriptor_array_element", descriptor.element.to_string());
                all.add_some("image_layout", descriptor.layout.map(|it| enum_name(&IMAGE_LAYOUT_ENUM, it)));
            }
            OriginKind::Command
            | OriginKind::AccelerationStructure
            | OriginKind::Address(_)
            | OriginKind::Attributes(_) => {}
        },
        _ if explained.relation != AccessRelation::Recorded => {}
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

/// The submission of the earlier access, as in the Khronos layer, and the index of the later
/// access's command buffer or swapchain.
fn submission(explained: &ExplainedHazard<'_>, all: &mut PropertyList) {
    let (at, prior) = (&explained.hazard.at, &explained.hazard.prior);
    if let (ProgramLocation::Command(prior), true) = (prior, explained.explanation.prior.role != AccessRole::Forgotten)
    {
        all.add("submit_index", explained.names.submit_index(prior.step).to_string());
        all.add("batch_index", prior.batch.to_string());
    }
    match at {
        ProgramLocation::Command(at) => all.add("command_buffer_index", at.primary.to_string()),
        ProgramLocation::Step(step) => {
            if let Some(HostStep::Present { images, .. }) = explained.program.steps.get(*step as usize) {
                let index = images.iter().position(|it| *it == explained.hazard.resource);
                all.add_some("swapchain_index", index.map(|it| it.to_string()));
            }
        }
    }
}

/// `STAGE(ACCESS)`. Layout transitions and presentation have no stage, so they have names of their
/// own.
fn access(explained: &ExplainedHazard<'_>, explained_access: &ExplainedAccess) -> String {
    match explained_access.role {
        AccessRole::Transition if explained.is_transfer_of(explained_access) => {
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

fn message_type(explained: &ExplainedHazard<'_>) -> &'static str {
    let (at, prior) = (&explained.explanation.later, &explained.explanation.prior);
    let is_rendering = at.within == RenderingContext::Rendering;
    match at.role {
        AccessRole::Present | AccessRole::Acquire => "PresentError",
        AccessRole::Host => "HostError",
        _ if explained.relation != AccessRelation::Recorded => "SubmitTimeError",
        AccessRole::Transition => match (at.detail, prior.role) {
            (AccessDetail::FinalTransition(_), AccessRole::Store | AccessRole::Resolve)
                if is_one_instance(explained) =>
            {
                "RenderPassFinalLayoutTransitionVsStoreOrResolveError"
            }
            (AccessDetail::FinalTransition(_), _) => "RenderPassFinalLayoutTransitionError",
            (AccessDetail::SubpassTransition(_), AccessRole::Resolve) if is_one_instance(explained) => {
                "RenderPassLayoutTransitionVsResolveError"
            }
            (AccessDetail::SubpassTransition(_), _) => "RenderPassLayoutTransitionError",
            _ => "ImageBarrierError",
        },
        AccessRole::Load if is_rendering => "BeginRenderingError",
        AccessRole::Load if prior.role == AccessRole::Transition && explained.hazard.at == explained.hazard.prior => {
            "RenderPassLoadOpVsLayoutTransitionError"
        }
        AccessRole::Load => "RenderPassLoadOpError",
        AccessRole::Store if is_rendering => "EndRenderingStoreError",
        AccessRole::Store => "RenderPassStoreOpError",
        AccessRole::Resolve if is_rendering => "EndRenderingResolveError",
        AccessRole::Resolve => "RenderPassResolveError",
        AccessRole::Command | AccessRole::Forgotten => type_of_command(at, &explained.command()),
    }
}

/// Whether both accesses belong to one render pass instance. The commands that end a subpass or a
/// render pass belong to it.
fn is_one_instance(explained: &ExplainedHazard<'_>) -> bool {
    explained.explanation.is_inside_one_instance || explained.hazard.at == explained.hazard.prior
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

/// Whether the command is a copy with regions. Other commands use the copy stage too, but have no
/// regions.
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
