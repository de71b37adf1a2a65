//! Adds render passes and dynamic rendering to a timeline: the subpasses as moments, and the load,
//! store and resolve operations and layout transitions as accesses.

use std::ops::Range;

use lavascope_abi::{AccessFlags2, ImageAspectFlags, ImageLayout, PipelineStageFlags2};
use lavascope_sync_ir::{
    Area, AttachmentKind, AttachmentView, ImageRegion, LoadOp, Region, RenderPass, RenderPassId, Rendering,
    RenderingAttachment, ResourceId, StoreOp, Subpass, SubpassDependency, SyncScope,
};

use super::access_detail::{AccessDetail, LayoutChange, RenderingContext};
use super::dependency::{ExecutedDependency, FirstScopeOrigin};
use super::timeline::{Resumption, TimelineAccess, TimelineAction, TimelineBuilder};
use crate::{AccessRole, OperationLocation, SyncOperationKind};
use lavascope_engine::access::access_order::AccessOrder;
use lavascope_engine::access::usages::{SYNC_TABLES, TRANSITION_WRITE, UsageIndex};
use lavascope_engine::dependency::scopes::ExpandedScope;

/// The render pass instance that is open.
pub(crate) struct TimelineInstance {
    /// The index of the moment at which the instance began.
    id: usize,
    kind: TimelineInstanceKind,
    /// The regions of attachments that commands have written so far.
    written: Vec<WrittenRegion>,
}

/// A region of an image that a command wrote as an attachment.
#[derive(Clone)]
pub(crate) struct WrittenRegion {
    resource: ResourceId,
    region: ImageRegion,
}

/// Dynamic rendering that one command buffer suspended, and another may resume.
#[derive(Clone)]
pub(crate) struct SuspendedTimelineRendering {
    id: usize,
    written: Vec<WrittenRegion>,
}

enum TimelineInstanceKind {
    RenderPass(Box<TimelineRenderPass>),
    Rendering(Rendering),
}

struct TimelineRenderPass {
    id: RenderPassId,
    render_pass: RenderPass,
    views: Vec<AttachmentView>,
    area: Area,
    /// The number of explicit dependencies. The implicit ones come after them.
    explicit_dependencies: usize,
    subpass: u32,
    layouts: Vec<i32>,
    /// For each attachment: the subpasses that have used it since its last layout transition.
    layout_users: Vec<Vec<u32>>,
}

pub(crate) const ATTACHMENT_ACCESSES: u64 = AccessFlags2::INPUT_ATTACHMENT_READ.0
    | AccessFlags2::COLOR_ATTACHMENT_READ.0
    | AccessFlags2::COLOR_ATTACHMENT_WRITE.0
    | AccessFlags2::DEPTH_STENCIL_ATTACHMENT_READ.0
    | AccessFlags2::DEPTH_STENCIL_ATTACHMENT_WRITE.0;
const ALL_COMMANDS: u64 = PipelineStageFlags2::ALL_COMMANDS.0;
const IMPLICIT_FROM_OUTSIDE: SyncScope =
    SyncScope { src_stages: 0, src_access: 0, dst_stages: ALL_COMMANDS, dst_access: ATTACHMENT_ACCESSES };
const IMPLICIT_TO_OUTSIDE: SyncScope =
    SyncScope { src_stages: ALL_COMMANDS, src_access: ATTACHMENT_ACCESSES, dst_stages: 0, dst_access: 0 };

impl TimelineInstance {
    /// Stores the regions that a command writes as attachments. `VK_ATTACHMENT_STORE_OP_NONE`
    /// accesses an attachment only if a command has written to it (`renderpass-store-operations`).
    pub(crate) fn add_writes(&mut self, uses: &[TimelineAccess]) {
        const WRITES: u64 = AccessFlags2::COLOR_ATTACHMENT_WRITE.0 | AccessFlags2::DEPTH_STENCIL_ATTACHMENT_WRITE.0;
        let is_write = |it: &&TimelineAccess| SYNC_TABLES.usages[usize::from(it.usage.0)].access & WRITES != 0;
        self.written.extend(uses.iter().filter(is_write).filter_map(|used| match &used.region {
            Region::Image(region) => Some(WrittenRegion { resource: used.resource, region: region.clone() }),
            Region::Buffer(_) => None,
        }));
    }

    /// Sets the instance and the subpass of an access.
    pub(crate) fn assign_instance(&self, used: &mut TimelineAccess) {
        used.instance = Some(self.id);
        match &self.kind {
            TimelineInstanceKind::RenderPass(pass) => {
                used.subpass = Some(pass.subpass);
                used.unordered_subpasses = pass.unordered();
                used.within = RenderingContext::RenderPass(pass.id);
            }
            TimelineInstanceKind::Rendering(_) => {
                used.subpass = Some(0);
                used.within = RenderingContext::Rendering;
            }
        }
    }
}

impl TimelineBuilder<'_> {
    pub(crate) fn begin_render_pass(&mut self, id: RenderPassId, views: &[AttachmentView], area: Area) {
        let Some(mut pass) = self.program.render_passes.get(id.0 as usize).cloned() else { return };
        let given = pass.dependencies.len();
        add_implicit_dependencies(&mut pass);
        let layouts = pass.attachments.iter().map(|it| it.initial_layout).collect();
        let users = vec![Vec::new(); pass.attachments.len()];
        let pass = TimelineRenderPass {
            id,
            render_pass: pass,
            views: views.to_vec(),
            area,
            explicit_dependencies: given,
            subpass: 0,
            layouts,
            layout_users: users,
        };
        let moment = self.push(TimelineAction::PassBegins);
        let kind = TimelineInstanceKind::RenderPass(Box::new(pass));
        self.instance = Some(TimelineInstance { id: moment, kind, written: Vec::new() });
        self.begin_subpass();
    }

    pub(crate) fn next_subpass(&mut self) {
        self.end_subpass();
        if let Some(TimelineInstance { kind: TimelineInstanceKind::RenderPass(pass), .. }) = &mut self.instance {
            pass.subpass += 1;
            self.begin_subpass();
        }
    }

    pub(crate) fn end_render_pass(&mut self) {
        self.end_subpass();
        let flags = self.flags();
        let Some(TimelineInstance { kind: TimelineInstanceKind::RenderPass(pass), .. }) = self.instance.take() else {
            return;
        };
        let outgoing = pass.dependencies(flags, |it| it.dst.is_none());
        self.push(TimelineAction::PassEnds(outgoing));
        let mut transitions = Vec::new();
        for (index, attachment) in pass.render_pass.attachments.iter().enumerate() {
            if pass.layouts[index] != attachment.final_layout {
                let gates = pass.dependencies_of_users(flags, index);
                let second = pass.dependencies(flags, |it| it.dst.is_none() && pass.is_user(it.src, index));
                let layouts = LayoutChange { old: pass.layouts[index], new: attachment.final_layout };
                transitions.extend(pass.transition(index, gates, second, AccessDetail::FinalTransition(layouts)));
            }
        }
        self.push_accesses(transitions);
    }

    fn begin_subpass(&mut self) {
        let flags = self.flags();
        let Some(TimelineInstance { kind: TimelineInstanceKind::RenderPass(pass), .. }) = &mut self.instance else {
            return;
        };
        let incoming = pass.dependencies(flags, |it| it.dst == Some(pass.subpass));
        let (transitions, loads) = (pass.transitions(flags), pass.loads());
        self.push(TimelineAction::SubpassBegins(incoming));
        self.push_accesses(transitions);
        self.push_accesses(loads);
    }

    fn end_subpass(&mut self) {
        let Some(TimelineInstance { kind: TimelineInstanceKind::RenderPass(pass), .. }) = &self.instance else {
            return;
        };
        let resolves = pass.resolves();
        if let Some(instance) = &mut self.instance {
            instance.add_writes(&resolves);
        }
        let stores = match &self.instance {
            Some(TimelineInstance { kind: TimelineInstanceKind::RenderPass(pass), written, .. }) => {
                pass.stores(written)
            }
            _ => Vec::new(),
        };
        self.push_accesses(resolves);
        self.push_accesses(stores);
        self.push(TimelineAction::SubpassEnds);
    }

    pub(crate) fn begin_rendering(&mut self, rendering: &Rendering) {
        let queue = usize::from(self.queue());
        let suspended = self.suspended.get_mut(queue).and_then(Option::take);
        let resumed = suspended.filter(|_| rendering.is_resuming);
        let resumption = if resumed.is_some() { Resumption::Resumed } else { Resumption::New };
        let new = SuspendedTimelineRendering { id: self.moments.len(), written: Vec::new() };
        let SuspendedTimelineRendering { id, written } = resumed.unwrap_or(new);
        self.push(TimelineAction::RenderingBegins { instance: id, resumption });
        let kind = TimelineInstanceKind::Rendering(rendering.clone());
        self.instance = Some(TimelineInstance { id, kind, written });
        if !rendering.is_resuming {
            let inside = AttachmentArea { area: rendering.area, views: views(rendering.view_mask) };
            let loads = rendering.attachments.iter().flat_map(|attachment| {
                let usage = load(attachment.kind, attachment.load);
                inside.accesses(
                    &attachment.view,
                    attachment.kind,
                    AttachmentAccess { usage, order: AccessOrder::Load, detail: AccessDetail::Load(attachment.load) },
                )
            });
            self.push_accesses(loads.collect());
        }
    }

    pub(crate) fn end_rendering(&mut self) {
        let Some(TimelineInstance { id, kind: TimelineInstanceKind::Rendering(rendering), written }) = &self.instance
        else {
            return;
        };
        let (id, inside) = (*id, AttachmentArea { area: rendering.area, views: views(rendering.view_mask) });
        if rendering.is_suspending {
            let queue = usize::from(self.queue());
            self.suspended[queue] = Some(SuspendedTimelineRendering { id, written: written.clone() });
        } else {
            let resolves: Vec<TimelineAccess> =
                rendering.attachments.iter().flat_map(|it| resolve_of(it, inside)).collect();
            let stores = rendering.attachments.iter().flat_map(|attachment| {
                let is_written = is_written(written, &attachment.view, attachment.kind);
                let usage = store(attachment.kind, attachment.store, is_written);
                inside.accesses(
                    &attachment.view,
                    attachment.kind,
                    AttachmentAccess {
                        usage,
                        order: AccessOrder::Store,
                        detail: AccessDetail::Store(attachment.store),
                    },
                )
            });
            let stores: Vec<TimelineAccess> = stores.collect();
            self.push_accesses(resolves);
            self.push_accesses(stores);
        }
        self.push(TimelineAction::RenderingEnds);
        self.instance = None;
    }
}

impl TimelineRenderPass {
    /// The dependencies that `is_wanted` selects, without self-dependencies.
    fn dependencies(&self, flags: u32, is_wanted: impl Fn(&SubpassDependency) -> bool) -> Vec<ExecutedDependency> {
        let all = self.render_pass.dependencies.iter().enumerate();
        let wanted = all.filter(|(_, it)| is_wanted(it) && it.src != it.dst);
        let element = |(index, subpass_dependency): (usize, &SubpassDependency)| ExecutedDependency {
            kind: SyncOperationKind::SubpassDependency,
            location: OperationLocation::Subpass {
                pass: self.id,
                dependency: (index < self.explicit_dependencies).then_some(index as u32),
            },
            given_scope: subpass_dependency.scope,
            scope: ExpandedScope::new(subpass_dependency.scope, flags),
            resource_region: None,
            is_transition: false,
            ownership_half: None,
            is_version_1: false,
            first_scope_origin: subpass_dependency
                .src
                .map_or(FirstScopeOrigin::BeforeRenderPass, FirstScopeOrigin::Subpass),
            second_subpass: subpass_dependency.dst,
        };
        wanted.map(element).collect()
    }

    fn is_user(&self, subpass: Option<u32>, attachment: usize) -> bool {
        subpass.is_some_and(|it| layout_in(&self.render_pass, it, attachment).is_some())
    }

    /// The layout transitions before the current subpass (`renderpass-layout-transitions`).
    fn transitions(&mut self, flags: u32) -> Vec<TimelineAccess> {
        let mut found = Vec::new();
        for index in 0..self.render_pass.attachments.len() {
            let Some(layout) = layout_in(&self.render_pass, self.subpass, index) else { continue };
            let is_used = !self.layout_users[index].is_empty();
            let old = self.layouts[index];
            if layout != old && !(is_used && is_read_only(layout) && is_read_only(old)) {
                let gates = match is_used {
                    false => self.dependencies(flags, |it| it.src.is_none() && self.is_user(it.dst, index)),
                    true => self.dependencies_of_users(flags, index),
                };
                let second = self.dependencies(flags, |it| it.dst.is_some_and(|it| self.shares_layout(it, index)));
                let layouts = LayoutChange { old, new: layout };
                found.extend(self.transition(index, gates, second, AccessDetail::SubpassTransition(layouts)));
                self.layout_users[index].clear();
            }
            self.layouts[index] = layout;
            self.layout_users[index].push(self.subpass);
        }
        found
    }

    /// The dependencies from the subpasses that used an attachment in its current layout.
    fn dependencies_of_users(&self, flags: u32, attachment: usize) -> Vec<ExecutedDependency> {
        self.dependencies(flags, |it| it.src.is_some_and(|it| self.layout_users[attachment].contains(&it)))
    }

    /// Whether a subpass uses an attachment in the layout of the current subpass, and no subpass
    /// between the two uses another layout. The current subpass itself counts too.
    fn shares_layout(&self, subpass: u32, attachment: usize) -> bool {
        let layout = |it: u32| layout_in(&self.render_pass, it, attachment);
        let Some(own) = layout(self.subpass) else { return false };
        let is_own = |it: i32| it == own || is_read_only(it) && is_read_only(own);
        let is_between = self.subpass <= subpass && layout(subpass).is_some();
        is_between && (self.subpass..=subpass).filter_map(layout).all(is_own)
    }

    fn transition(
        &self,
        attachment: usize,
        gates: Vec<ExecutedDependency>,
        second: Vec<ExecutedDependency>,
        detail: AccessDetail,
    ) -> Option<TimelineAccess> {
        let view = self.views.get(attachment)?;
        let region = Region::Image(view.region.clone());
        let within = RenderingContext::RenderPass(self.id);
        let used = TimelineAccess::new(view.resource, region, TRANSITION_WRITE, AccessRole::Transition);
        Some(TimelineAccess { first_scopes: gates, second_scopes: second, detail, within, ..used })
    }

    /// The earlier subpasses from which no path of dependencies leads to the current one.
    fn unordered(&self) -> Vec<u32> {
        let mut before = vec![false; self.subpass as usize + 1];
        before[self.subpass as usize] = true;
        for subpass in (0..=self.subpass).rev() {
            if before[subpass as usize] {
                let into = self.render_pass.dependencies.iter().filter(|it| it.dst == Some(subpass));
                into.filter_map(|it| it.src.filter(|src| *src < subpass)).for_each(|it| before[it as usize] = true);
            }
        }
        (0..self.subpass).filter(|it| !before[*it as usize]).collect()
    }

    /// The accesses to the attachments for which `inside` returns an area, one for each aspect.
    fn own_accesses(
        &self,
        inside: impl Fn(usize) -> Option<AttachmentArea>,
        usage: impl Fn(usize, AttachmentKind) -> (Option<UsageIndex>, AccessDetail),
        order: AccessOrder,
    ) -> Vec<TimelineAccess> {
        let mut found = Vec::new();
        for (index, attachment) in self.render_pass.attachments.iter().enumerate() {
            let (Some(inside), Some(view)) = (inside(index), self.views.get(index)) else { continue };
            for part in separate_aspects(attachment.kind) {
                let (usage, detail) = usage(index, part);
                let how = AttachmentAccess { usage, order, detail };
                found.extend(inside.accesses(view, part, how));
            }
        }
        found
    }

    fn attachment_area(&self) -> AttachmentArea {
        let view_mask = self.render_pass.subpasses.get(self.subpass as usize).map_or(0, |it| it.view_mask);
        AttachmentArea { area: self.area, views: views(view_mask) }
    }

    /// The area of one attachment, without the views that some other subpasses access.
    fn exclusive_area(&self, attachment: usize, is_other: impl Fn(u32) -> bool) -> Option<AttachmentArea> {
        layout_in(&self.render_pass, self.subpass, attachment)?;
        let all = 0..self.render_pass.subpasses.len() as u32;
        let mut users = all.filter(|it| is_other(*it) && layout_in(&self.render_pass, *it, attachment).is_some());
        let inside = self.attachment_area();
        let Some(own) = inside.views else { return users.next().is_none().then_some(inside) };
        let left = users.fold(own, |left, it| left & !self.render_pass.subpasses[it as usize].view_mask);
        (left != 0).then_some(AttachmentArea { views: Some(left), ..inside })
    }

    fn loads(&self) -> Vec<TimelineAccess> {
        let usage = |index: usize, part| {
            let attachment = &self.render_pass.attachments[index];
            let op = if part == AttachmentKind::Stencil { attachment.stencil_load } else { attachment.load };
            (load(part, op), AccessDetail::Load(op))
        };
        self.own_accesses(|it| self.exclusive_area(it, |it| it < self.subpass), usage, AccessOrder::Load)
    }

    fn stores(&self, written: &[WrittenRegion]) -> Vec<TimelineAccess> {
        let usage = |index: usize, part| {
            let attachment = &self.render_pass.attachments[index];
            let op = if part == AttachmentKind::Stencil { attachment.stencil_store } else { attachment.store };
            let is_written = self.views.get(index).is_some_and(|it| is_written(written, it, part));
            (store(part, op, is_written), AccessDetail::Store(op))
        };
        self.own_accesses(|it| self.exclusive_area(it, |it| it > self.subpass), usage, AccessOrder::Store)
    }

    fn resolves(&self) -> Vec<TimelineAccess> {
        let Some(subpass) = self.render_pass.subpasses.get(self.subpass as usize) else { return Vec::new() };
        let depth = subpass.depth_stencil.zip(subpass.depth_stencil_resolve).map(|(from, to)| (from.0, to.0));
        let pairs: Vec<(u32, u32)> = subpass.resolves.iter().map(|it| (it.source, it.target)).chain(depth).collect();
        let mut found = Vec::new();
        for (from, to) in pairs {
            let both = [
                (from, color_or_resolve_usage(false), AccessOrder::Resolve),
                (to, color_or_resolve_usage(true), AccessOrder::None),
            ];
            for (index, usage, order) in both {
                let is_own = |it: usize| (it == index as usize).then(|| self.attachment_area());
                found.extend(self.own_accesses(is_own, |_, _| (usage, AccessDetail::Resolve(0)), order));
            }
        }
        found
    }
}

fn layout_in(pass: &RenderPass, subpass: u32, attachment: usize) -> Option<i32> {
    let item: &Subpass = pass.subpasses.get(subpass as usize)?;
    let all = item.inputs.iter().chain(&item.colors).chain(&item.depth_stencil).chain(&item.depth_stencil_resolve);
    let mut all = all.copied().chain(item.resolves.iter().map(|it| (it.target, it.layout)));
    all.find(|it| it.0 as usize == attachment).map(|it| it.1)
}

fn is_read_only(layout: i32) -> bool {
    matches!(
        ImageLayout(layout),
        ImageLayout::SHADER_READ_ONLY_OPTIMAL
            | ImageLayout::DEPTH_STENCIL_READ_ONLY_OPTIMAL
            | ImageLayout::DEPTH_READ_ONLY_OPTIMAL
            | ImageLayout::STENCIL_READ_ONLY_OPTIMAL
            | ImageLayout::READ_ONLY_OPTIMAL
    )
}

fn first_use(pass: &RenderPass, attachment: usize) -> Option<u32> {
    (0..pass.subpasses.len() as u32).find(|it| layout_in(pass, *it, attachment).is_some())
}

fn last_use(pass: &RenderPass, attachment: usize) -> Option<u32> {
    (0..pass.subpasses.len() as u32).rfind(|it| layout_in(pass, *it, attachment).is_some())
}

/// Adds the implicit dependencies from and to the outside. An implicit dependency exists if an
/// attachment changes its layout there and no explicit dependency exists (`VkSubpassDependency`).
fn add_implicit_dependencies(pass: &mut RenderPass) {
    let mut implied = Vec::new();
    for subpass in 0..pass.subpasses.len() as u32 {
        let own = Some(subpass);
        let has = |src, dst| pass.dependencies.iter().any(|it| it.src == src && it.dst == dst);
        let attachments = || pass.attachments.iter().enumerate();
        let layout = |it: usize| layout_in(pass, subpass, it);
        let is_begun =
            attachments().any(|(index, it)| first_use(pass, index) == own && layout(index) != Some(it.initial_layout));
        let is_ended =
            attachments().any(|(index, it)| last_use(pass, index) == own && layout(index) != Some(it.final_layout));
        if is_begun && !has(None, own) {
            implied.push(SubpassDependency { src: None, dst: own, scope: IMPLICIT_FROM_OUTSIDE, view_offset: None });
        }
        if is_ended && !has(own, None) {
            implied.push(SubpassDependency { src: own, dst: None, scope: IMPLICIT_TO_OUTSIDE, view_offset: None });
        }
    }
    pass.dependencies.extend(implied);
}

/// Splits depth and stencil, because they have separate load and store operations.
fn separate_aspects(kind: AttachmentKind) -> Vec<AttachmentKind> {
    match kind {
        AttachmentKind::DepthStencil => vec![AttachmentKind::Depth, AttachmentKind::Stencil],
        other => vec![other],
    }
}

fn load(kind: AttachmentKind, op: LoadOp) -> Option<UsageIndex> {
    let is_write = match op {
        LoadOp::Load => false,
        LoadOp::Clear | LoadOp::DontCare => true,
        LoadOp::None => return None,
    };
    match kind {
        AttachmentKind::Color => color_or_resolve_usage(is_write),
        _ => depth_usage(PipelineStageFlags2::EARLY_FRAGMENT_TESTS, is_write),
    }
}

/// Whether a command has written to an aspect of an attachment.
fn is_written(written: &[WrittenRegion], view: &AttachmentView, part: AttachmentKind) -> bool {
    let meets = |one: &Range<u32>, other: &Range<u32>| one.start.max(other.start) < one.end.min(other.end);
    written.iter().filter(|it| it.resource == view.resource).any(|WrittenRegion { region, .. }| {
        region.aspects & view.region.aspects & part_aspects(part) != 0
            && meets(&region.mips, &view.region.mips)
            && meets(&region.layers, &view.region.layers)
    })
}

fn part_aspects(part: AttachmentKind) -> u32 {
    match part {
        AttachmentKind::Depth => ImageAspectFlags::DEPTH.0,
        AttachmentKind::Stencil => ImageAspectFlags::STENCIL.0,
        AttachmentKind::Color | AttachmentKind::DepthStencil => u32::MAX,
    }
}

fn store(kind: AttachmentKind, op: StoreOp, is_written: bool) -> Option<UsageIndex> {
    match (op, kind) {
        (StoreOp::None, _) if !is_written => None,
        (_, AttachmentKind::Color) => color_or_resolve_usage(true),
        _ => depth_usage(PipelineStageFlags2::LATE_FRAGMENT_TESTS, true),
    }
}

/// The usage of color attachments and of all resolve operations, which are in the color attachment
/// output stage (`renderpass-resolve-operations`).
fn color_or_resolve_usage(is_write: bool) -> Option<UsageIndex> {
    let access = if is_write { AccessFlags2::COLOR_ATTACHMENT_WRITE } else { AccessFlags2::COLOR_ATTACHMENT_READ };
    SYNC_TABLES.usage(PipelineStageFlags2::COLOR_ATTACHMENT_OUTPUT.0, access.0)
}

fn depth_usage(stage: PipelineStageFlags2, is_write: bool) -> Option<UsageIndex> {
    let read = AccessFlags2::DEPTH_STENCIL_ATTACHMENT_READ;
    let access = if is_write { AccessFlags2::DEPTH_STENCIL_ATTACHMENT_WRITE } else { read };
    SYNC_TABLES.usage(stage.0, access.0)
}

/// The part of an attachment that is accessed: the render area, and with multiview only the layers
/// of the views.
#[derive(Clone, Copy)]
struct AttachmentArea {
    area: Area,
    /// The mask of views. None without multiview: all layers.
    views: Option<u32>,
}

/// The mask of views. None if the mask is zero, which means no multiview.
fn views(mask: u32) -> Option<u32> {
    Some(mask).filter(|it| *it != 0)
}

/// How an attachment is accessed. Without a usage there is no access.
#[derive(Clone, Copy)]
struct AttachmentAccess {
    usage: Option<UsageIndex>,
    order: AccessOrder,
    detail: AccessDetail,
}

impl AttachmentArea {
    /// The accesses to one aspect of an attachment.
    fn accesses(self, view: &AttachmentView, part: AttachmentKind, how: AttachmentAccess) -> Vec<TimelineAccess> {
        let aspects = view.region.aspects & part_aspects(part);
        let Some(usage) = how.usage else { return Vec::new() };
        // A write may change the whole subresource, also outside of the render area
        // (`renderpass-load-operations`, `renderpass-store-operations`).
        let is_write = SYNC_TABLES.write_column(usage).is_some();
        let area = if is_write { view.region.area } else { Some(view.area_in_attachment(self.area)) };
        let role = match how.detail {
            AccessDetail::Load(_) => AccessRole::Load,
            AccessDetail::Store(_) => AccessRole::Store,
            _ => AccessRole::Resolve,
        };
        let of_layers = |layers| {
            let region = ImageRegion { aspects, layers, area, ..view.region.clone() };
            let used = TimelineAccess::new(view.resource, Region::Image(region), usage, role);
            TimelineAccess { order: how.order, detail: how.detail, ..used }
        };
        self.layers(&view.region.layers).into_iter().map(of_layers).collect()
    }

    fn layers(self, layers: &Range<u32>) -> Vec<Range<u32>> {
        let Some(mask) = self.views else { return Some(layers.clone()).into_iter().collect() };
        let views = (0..32).filter(|it| mask >> it & 1 != 0).map(|it| layers.start + it);
        views.filter(|it| *it < layers.end).map(|it| it..it + 1).collect()
    }
}

fn resolve_of(rendering_attachment: &RenderingAttachment, inside: AttachmentArea) -> Vec<TimelineAccess> {
    let Some(resolve) = &rendering_attachment.resolve else { return Vec::new() };
    let both = [
        (&rendering_attachment.view, color_or_resolve_usage(false), AccessOrder::Resolve),
        (&resolve.view, color_or_resolve_usage(true), AccessOrder::None),
    ];
    let uses = |(view, usage, order): (&AttachmentView, Option<UsageIndex>, AccessOrder)| {
        inside.accesses(
            view,
            rendering_attachment.kind,
            AttachmentAccess { usage, order, detail: AccessDetail::Resolve(resolve.mode) },
        )
    };
    both.into_iter().flat_map(uses).collect()
}
