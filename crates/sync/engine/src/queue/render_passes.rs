//! Executes render passes and dynamic rendering.
//!
//! Each subpass has a clock of its own. It begins with the clock of the queue and the first scopes of the dependencies
//! that lead to the subpass. A dependency from a subpass covers only the interval of that subpass. When the render pass
//! ends, the queue continues with the clock from before and the first scopes of the dependencies to the outside.
//! Spec: "Render Pass", "Subpass Dependencies" in particular.

use std::ops::Range;

use lavascope_abi::{AccessFlags2, ImageLayout, PipelineStageFlags2};
use lavascope_sync_ir::{
    Access, Area, Attachment, AttachmentKind, AttachmentView, Region, RenderPass, RenderPassId, Rendering, StoreOp,
    Subpass, SubpassDependency, SyncScope,
};
use smallvec::{SmallVec, smallvec};

use crate::access::access_order::AccessOrder;
use crate::access::actions::ResourceUse;
use crate::access::usages::{SYNC_TABLES, StageSet, UsageSet};
use crate::dependency::clocks::{FirstScope, QueueClock, Tag};
use crate::dependency::expanded::{
    DependencyRange, ExpandedDependency, ResolvedDependency, ResourceFirstScope, TransitionKind,
};
use crate::dependency::scopes::ExpandedScope;
use crate::dependency::subpass_intervals::SubpassInterval;
use crate::queue::attachment_uses::{
    RenderedArea, UnwrittenAttachment, attachment_uses, load_usage, load_uses, resolve_uses, split_depth_stencil,
    store_op, store_usage, store_uses, unwritten_attachment, unwritten_attachments, views,
};
use crate::queue::execution::CommandExecutor;

/// A render pass instance that is open.
pub(crate) struct RenderPassInstance {
    /// The tag before its first command.
    begin: Tag,
    kind: InstanceKind,
    unwritten: Vec<UnwrittenAttachment>,
}

/// Rendering that another command buffer goes on with.
pub(crate) struct SuspendedRendering {
    begin: Tag,
    /// What the queue knew inside.
    clock: Box<QueueClock>,
    unwritten: Vec<UnwrittenAttachment>,
}

enum InstanceKind {
    RenderPass(Box<ActiveRenderPass>),
    /// The clock is that of the queue outside, if it differs from the clock inside: a barrier inside reaches only to
    /// the end.
    Rendering(Rendering, Option<Box<QueueClock>>),
    /// Rendering that is about to end.
    EndingRendering,
}

struct ActiveRenderPass {
    queue: u8,
    /// The render pass, with its implicit dependencies.
    pass: RenderPass,
    /// The expanded scopes of its dependencies.
    scopes: Vec<ExpandedScope>,
    views: Vec<AttachmentView>,
    area: Area,
    /// The clock of the queue before the render pass.
    outside_clock: QueueClock,
    outside_tag: Tag,
    subpass: usize,
    /// The subpasses that ended; and the tag at which the current one began, after its layout transitions.
    ended: Vec<EndedSubpassClock>,
    began: Tag,
    /// The layout of each attachment now.
    layouts: Vec<i32>,
    /// Since each attachment has that layout.
    layout_uses: Vec<LayoutUse>,
    /// Subpasses that nothing orders before the current one.
    unordered_subpasses: Vec<(Tag, Tag)>,
}

/// The subpasses so far that used an attachment in its layout, and the transition into it, if the render pass made one.
#[derive(Clone, Default)]
struct LayoutUse {
    users: SmallVec<[usize; 4]>,
    transition: Option<Tag>,
}

/// What happens to the layouts of attachments before a subpass.
struct SubpassTransitions {
    new: Vec<ResolvedDependency>,
    /// Earlier ones, which the subpass comes after too: it uses the attachment in the same layout.
    shared: Vec<SharedTransition>,
}

pub(crate) struct SharedTransition {
    pub(crate) tag: Tag,
    pub(crate) dependency: ExpandedDependency,
}

struct EndedSubpassClock {
    queue: u8,
    clock: QueueClock,
    begin: Tag,
    end: Tag,
}

/// The implicit dependency from the outside, for an attachment that changes its layout at the beginning.
const IMPLICIT_FROM_OUTSIDE: SyncScope = SyncScope {
    src_stages: PipelineStageFlags2::NONE.0,
    src_access: 0,
    dst_stages: PipelineStageFlags2::ALL_COMMANDS.0,
    dst_access: ATTACHMENT_ACCESSES,
};
const IMPLICIT_TO_OUTSIDE: SyncScope = SyncScope {
    src_stages: PipelineStageFlags2::ALL_COMMANDS.0,
    src_access: ATTACHMENT_ACCESSES,
    dst_stages: PipelineStageFlags2::NONE.0,
    dst_access: 0,
};
const ATTACHMENT_ACCESSES: u64 = AccessFlags2::INPUT_ATTACHMENT_READ.0
    | AccessFlags2::COLOR_ATTACHMENT_READ.0
    | AccessFlags2::COLOR_ATTACHMENT_WRITE.0
    | AccessFlags2::DEPTH_STENCIL_ATTACHMENT_READ.0
    | AccessFlags2::DEPTH_STENCIL_ATTACHMENT_WRITE.0;

impl RenderPassInstance {
    pub(crate) fn unordered_subpasses(&self) -> &[(Tag, Tag)] {
        match &self.kind {
            InstanceKind::RenderPass(pass) => &pass.unordered_subpasses,
            InstanceKind::Rendering(..) | InstanceKind::EndingRendering => &[],
        }
    }

    /// The tag before the subpass, or the dynamic rendering, in which rendering orders accesses.
    pub(crate) fn raster_order_begin(&self) -> Tag {
        match &self.kind {
            InstanceKind::RenderPass(pass) => pass.began,
            InstanceKind::Rendering(..) | InstanceKind::EndingRendering => self.begin,
        }
    }

    /// The tag before all of it.
    pub(crate) fn pass_begin(&self) -> Tag {
        self.begin
    }

    /// The tag before the subpass, or the dynamic rendering, to which the first scopes of barriers are limited.
    pub(crate) fn scope_begin(&self) -> Tag {
        match &self.kind {
            InstanceKind::RenderPass(pass) => pass.began,
            InstanceKind::Rendering(..) | InstanceKind::EndingRendering => self.begin,
        }
    }
}

impl RenderPassInstance {
    /// The clock before the instance with its tag, if it differs from the clock inside.
    pub(crate) fn outside_clock(&self) -> Option<(&QueueClock, Tag)> {
        match &self.kind {
            InstanceKind::RenderPass(pass) => Some((&pass.outside_clock, pass.outside_tag)),
            InstanceKind::Rendering(_, outside) => outside.as_deref().map(|it| (it, self.begin)),
            InstanceKind::EndingRendering => None,
        }
    }

    /// Whether the first scopes of commands inside have only one of its subpasses.
    pub(crate) fn has_subpasses(&self) -> bool {
        matches!(self.kind, InstanceKind::RenderPass(_))
    }
}

impl RenderPassInstance {
    /// What happens before a load operation at a tag happens before all other uses of the attachment as well
    /// (`renderpass-load-operations`). The clock is that of the load operation.
    pub(crate) fn clock_at_load(&self, load: Tag) -> Option<QueueClock> {
        match &self.kind {
            InstanceKind::RenderPass(pass) if load > self.begin => Some(pass.first_clock(pass.subpass_at(load))),
            _ => None,
        }
    }
}

impl RenderPassInstance {
    /// Saves the clock of the outside before a barrier inside changes the clock.
    pub(crate) fn save_outside_clock(&mut self, clock: &QueueClock) {
        if let InstanceKind::Rendering(_, outside @ None) = &mut self.kind {
            *outside = Some(Box::new(clock.clone()));
        }
    }
}

impl RenderPassInstance {
    /// Whether it matters what commands write to attachments.
    #[inline]
    pub(crate) fn has_unwritten_attachments(&self) -> bool {
        !self.unwritten.is_empty()
    }

    /// A command writes to attachments.
    pub(crate) fn mark_written(&mut self, accesses: impl Iterator<Item = Access>) {
        const WRITES: u64 = AccessFlags2::COLOR_ATTACHMENT_WRITE.0 | AccessFlags2::DEPTH_STENCIL_ATTACHMENT_WRITE.0;
        for access in accesses.filter(|it| it.access & WRITES != 0) {
            if let Region::Image(region) = &access.region {
                self.unwritten.retain(|it| it.resource != access.resource || !it.overlaps(region));
            }
        }
    }
}

impl CommandExecutor<'_> {
    pub(crate) fn begin_render_pass(&mut self, tag: Tag, pass: RenderPassId, views: &[AttachmentView], area: Area) {
        let Some(mut pass) = self.recorded.render_passes.get(pass.0 as usize).cloned() else { return };
        self.begin_pass_contents(tag, &pass, views, area);
        add_implicit_dependencies(&mut pass);
        let outside = self.clock().clone();
        let layouts = pass.attachments.iter().map(|it| it.initial_layout).collect();
        let attachments = pass.attachments.len();
        let queue = &mut self.device.queues[usize::from(self.queue)];
        let scopes = pass.dependencies.iter().map(|it| queue.expand(it.scope)).collect();
        let pass = ActiveRenderPass {
            queue: self.queue,
            pass,
            scopes,
            views: views.to_vec(),
            area,
            outside_clock: outside,
            outside_tag: tag,
            subpass: 0,
            ended: Vec::new(),
            began: tag + 1,
            layout_uses: vec![LayoutUse::default(); views.len().max(attachments)],
            layouts,
            unordered_subpasses: Vec::new(),
        };
        let unwritten = pass.unwritten_attachments();
        let kind = InstanceKind::RenderPass(Box::new(pass));
        *self.instance = Some(RenderPassInstance { begin: tag, kind, unwritten });
        self.begin_subpass(tag);
    }

    pub(crate) fn next_subpass(&mut self, tag: Tag) {
        self.end_subpass(tag);
        let Some(RenderPassInstance { begin, kind: InstanceKind::RenderPass(mut pass), unwritten }) =
            self.instance.take()
        else {
            return;
        };
        let clock = std::mem::take(self.clock());
        pass.ended.push(EndedSubpassClock { queue: self.queue, clock, begin: pass.began, end: tag });
        pass.subpass += 1;
        pass.began = tag + 1;
        self.next_pass_contents(tag);
        *self.instance = Some(RenderPassInstance { begin, kind: InstanceKind::RenderPass(pass), unwritten });
        self.begin_subpass(tag);
    }

    pub(crate) fn end_render_pass(&mut self, tag: Tag) {
        self.end_subpass(tag);
        let Some(RenderPassInstance { kind: InstanceKind::RenderPass(mut pass), .. }) = self.instance.take() else {
            return;
        };
        let clock = std::mem::take(self.clock());
        pass.ended.push(EndedSubpassClock { queue: self.queue, clock, begin: pass.began, end: tag });
        *self.instance = None;
        *self.pass_contents = None;
        *self.clock() = pass.outside_clock.clone();
        for subpass_clock in &pass.ended {
            self.clock().end_subpass(&subpass_clock.clock);
        }
        // The final layout transitions are not commands after the render pass: a dependency on later commands does not
        // order them.
        self.final_transitions(tag, &pass);
        for subpass in 0..pass.ended.len() {
            for (first_scope, scope) in pass.outgoing_scopes_of_subpass(subpass) {
                self.clock().apply_second_scope(&first_scope, scope.dst, scope.dst_usages);
            }
        }
        self.device.sweep_intervals(self.queue);
    }

    /// Makes the clock of the next subpass, and executes its layout transitions and its load operations.
    fn begin_subpass(&mut self, tag: Tag) {
        let Some(RenderPassInstance { begin, kind: InstanceKind::RenderPass(mut pass), unwritten }) =
            self.instance.take()
        else {
            return;
        };
        pass.unordered_subpasses = pass.unordered_subpasses();
        *self.clock() = pass.first_clock(pass.subpass);
        let transitions = pass.transitions();
        let loads = pass.loads();
        *self.instance = Some(RenderPassInstance { begin, kind: InstanceKind::RenderPass(pass), unwritten });
        for ready in &transitions.new {
            self.check_transition(tag, ready);
            self.apply_to_resource(tag, ready);
        }
        for shared in &transitions.shared {
            self.share_earlier_transition(tag, shared);
        }
        self.check_and_add_uses(tag + 2, &loads);
    }

    /// Resolve operations, then the store operations of attachments that are not used any more.
    fn end_subpass(&mut self, tag: Tag) {
        let Some(RenderPassInstance { kind: InstanceKind::RenderPass(pass), unwritten, .. }) = &mut *self.instance
        else {
            return;
        };
        let resolves = pass.resolves();
        unwritten.retain(|it| !pass.resolve_pairs().any(|pair| pair.1 as usize == it.attachment));
        let stores = pass.stores(unwritten);
        self.check_and_add_uses(tag - 2, &resolves);
        self.check_and_add_uses(tag - 1, &stores);
    }

    fn final_transitions(&mut self, tag: Tag, pass: &ActiveRenderPass) {
        for (index, attachment) in pass.pass.attachments.iter().enumerate() {
            if pass.layouts[index] == attachment.final_layout {
                continue;
            }
            let after = pass.scopes_after_users(index);
            let ready = pass.layout_transition(index, after, &pass.outgoing_scopes(index), tag);
            self.check_transition(tag, &ready);
            self.apply_to_resource(tag, &ready);
        }
    }

    pub(crate) fn begin_rendering(&mut self, tag: Tag, rendering: &Rendering) {
        let suspended = self.device.queues[usize::from(self.queue)].suspended.take();
        let (begin, outside, unwritten) = match suspended.filter(|_| rendering.is_resuming) {
            Some(SuspendedRendering { begin, clock, unwritten }) => {
                (begin, Some(Box::new(std::mem::replace(self.clock(), *clock))), unwritten)
            }
            None => (tag - 1, None, unwritten_attachments(rendering)),
        };
        let outside = outside.or_else(|| self.clock().has_marker_chains().then(|| Box::new(self.clock().clone())));
        if outside.is_some() && !rendering.is_resuming {
            self.clock().forget_marker_chains();
        }
        let kind = InstanceKind::Rendering(rendering.clone(), outside);
        *self.instance = Some(RenderPassInstance { begin, kind, unwritten });
        if !rendering.is_resuming {
            let inside = RenderedArea { area: rendering.area, views: views(rendering.view_mask) };
            let loads: Vec<ResourceUse<'_>> =
                rendering.attachments.iter().flat_map(|it| load_uses(it, inside)).collect();
            self.check_and_add_uses(tag, &loads);
        }
    }

    pub(crate) fn end_rendering(&mut self, tag: Tag) {
        let Some(RenderPassInstance { begin, kind: InstanceKind::Rendering(rendering, outside), unwritten }) =
            self.instance.take()
        else {
            return;
        };
        if !rendering.is_suspending {
            let inside = RenderedArea { area: rendering.area, views: views(rendering.view_mask) };
            let kind = InstanceKind::EndingRendering;
            *self.instance = Some(RenderPassInstance { begin, kind, unwritten: Vec::new() });
            let resolved = rendering.attachments.iter().filter(|it| it.resolve.is_some());
            self.check_and_add_uses(tag, &resolved.flat_map(|it| resolve_uses(it, inside)).collect::<Vec<_>>());
            let is_written = |index: usize| !unwritten.iter().any(|it| it.attachment == index);
            let attachments = rendering.attachments.iter().enumerate();
            let stores: Vec<ResourceUse<'_>> =
                attachments.flat_map(|(index, it)| store_uses(it, inside, is_written(index))).collect();
            self.check_and_add_uses(tag + 2, &stores);
            *self.instance = None;
        }
        // Without a barrier inside, the clock of the queue already has everything.
        let inside = outside.map(|it| std::mem::replace(self.clock(), *it));
        if let Some(inside) = &inside {
            self.clock().end_subpass(inside);
        }
        if rendering.is_suspending {
            let clock = Box::new(inside.unwrap_or_else(|| self.clock().clone()));
            self.device.queues[usize::from(self.queue)].suspended =
                Some(SuspendedRendering { begin, clock, unwritten });
        }
        self.device.sweep_intervals(self.queue);
    }
}

impl ActiveRenderPass {
    /// The first scopes of some dependencies, with their expanded scopes. A dependency whose source has not begun has
    /// none.
    fn dependency_scopes(&self, is_wanted: impl Fn(&SubpassDependency) -> bool) -> Vec<(FirstScope, ExpandedScope)> {
        let mut found: Vec<(FirstScope, ExpandedScope)> = Vec::new();
        for (dependency, scope) in self.dependencies().filter(|(it, _)| is_wanted(it) && it.src != it.dst) {
            match dependency.src {
                None => {
                    let first_scope =
                        self.outside_clock.first_scope(self.queue, self.outside_tag, scope.src, scope.src_usages);
                    found.push((first_scope, scope));
                }
                Some(src) => found.extend(self.ended.get(src as usize).map(|from| (from.first_scope(&scope), scope))),
            }
        }
        found
    }

    /// All dependencies with their expanded scopes.
    fn dependencies(&self) -> impl Iterator<Item = (&SubpassDependency, ExpandedScope)> {
        self.pass.dependencies.iter().zip(self.scopes.iter().copied())
    }

    /// The clock with which a subpass begins, if those that lead to it have ended.
    fn first_clock(&self, subpass: usize) -> QueueClock {
        let mut clock = self.outside_clock.clone();
        if clock.has_marker_chains() {
            clock.forget_marker_chains();
        }
        for (first_scope, scope) in self.dependency_scopes(|it| it.dst == Some(subpass as u32)) {
            clock.apply_second_scope(&first_scope, scope.dst, scope.dst_usages);
        }
        clock
    }

    /// The subpass of a command of this instance.
    fn subpass_at(&self, tag: Tag) -> usize {
        self.ended.iter().position(|it| tag <= it.end).unwrap_or(self.subpass)
    }

    /// The dependencies that lead from a subpass to the outside.
    fn outgoing_scopes_of_subpass(&self, subpass: usize) -> Vec<(FirstScope, ExpandedScope)> {
        self.dependency_scopes(|it| it.src == Some(subpass as u32) && it.dst.is_none())
    }

    fn is_user(&self, subpass: Option<u32>, attachment: usize) -> bool {
        subpass.is_some_and(|it| layout_in(&self.pass, it as usize, attachment).is_some())
    }

    /// What a transition of an attachment comes after: all that the users of its layout lead to, or what leads to its users.
    fn scopes_before_transition(&self, attachment: usize) -> Vec<(FirstScope, ExpandedScope)> {
        match self.layout_uses[attachment].users.is_empty() {
            true => self.dependency_scopes(|it| it.src.is_none() && self.is_user(it.dst, attachment)),
            false => self.scopes_after_users(attachment),
        }
    }

    /// What leads from the subpasses that used an attachment in the layout that it has.
    fn scopes_after_users(&self, attachment: usize) -> Vec<(FirstScope, ExpandedScope)> {
        let users = &self.layout_uses[attachment].users;
        self.dependency_scopes(|it| it.src.is_some_and(|src| users.contains(&(src as usize))))
    }

    /// Attachments that change their layout for the current subpass.
    fn transitions(&mut self) -> SubpassTransitions {
        let incoming: Vec<ExpandedScope> = self.incoming_scopes();
        let (mut new, mut shared) = (Vec::new(), Vec::new());
        for index in 0..self.pass.attachments.len() {
            let Some(layout) = layout_in(&self.pass, self.subpass, index) else { continue };
            let LayoutUse { users, transition } = &self.layout_uses[index];
            // Between two subpasses that only read, an implementation sees to the layouts itself.
            let is_read_only = !users.is_empty() && is_read_only(layout) && is_read_only(self.layouts[index]);
            if layout != self.layouts[index] && !is_read_only {
                let after = self.scopes_before_transition(index);
                new.push(self.layout_transition(index, after, &incoming, self.began - 1));
                self.layout_uses[index] = LayoutUse { users: SmallVec::new(), transition: Some(self.began) };
            } else if let Some(tag) = *transition {
                let ResolvedDependency { dependency, .. } =
                    self.layout_transition(index, Vec::new(), &incoming, self.began - 1);
                shared.push(SharedTransition { tag, dependency });
            }
            self.layouts[index] = layout;
            self.layout_uses[index].users.push(self.subpass);
        }
        SubpassTransitions { new, shared }
    }

    /// The scopes of all dependencies that lead to the current subpass.
    fn incoming_scopes(&self) -> Vec<ExpandedScope> {
        let into = self.dependencies().filter(|(it, _)| it.dst == Some(self.subpass as u32) && it.src != it.dst);
        into.map(|it| it.1).collect()
    }

    /// The scopes of all dependencies that lead to the outside from a user of an attachment.
    fn outgoing_scopes(&self, attachment: usize) -> Vec<ExpandedScope> {
        let out = self.dependencies().filter(|(it, _)| it.dst.is_none() && self.is_user(it.src, attachment));
        out.map(|it| it.1).collect()
    }

    /// The layout transition of an attachment: it happens after the first scopes of some dependencies, and before the
    /// second scopes of others.
    fn layout_transition(
        &self,
        attachment: usize,
        after: Vec<(FirstScope, ExpandedScope)>,
        before: &[ExpandedScope],
        until: Tag,
    ) -> ResolvedDependency {
        let (mut first_scope, mut scope) = (FirstScope::default(), ExpandedScope::default());
        for (own, expanded_scope) in after {
            first_scope.merge(&own);
            scope.src = scope.src.union(expanded_scope.src);
        }
        for expanded_scope in before {
            scope.dst = scope.dst.union(expanded_scope.dst);
            scope.dst_usages = scope.dst_usages.union(expanded_scope.dst_usages);
        }
        // A subpass dependency concerns all memory, through every resource.
        scope.dst_global_usages = scope.dst_usages;
        let range =
            self.views.get(attachment).map(|it| DependencyRange::Region(it.resource, Region::Image(it.region.clone())));
        let (parts, racing) = (smallvec![(scope.src, until)], self.unordered_pairs());
        let first = ResourceFirstScope {
            global: first_scope,
            stage_limits: parts,
            unordered_pairs: racing,
            ..ResourceFirstScope::default()
        };
        let transition = Some(TransitionKind::RenderPass);
        ResolvedDependency { first_scope: first, dependency: ExpandedDependency { scope, range, transition } }
    }

    /// Ended subpasses from which no path of dependencies leads to the current one.
    fn unordered_subpasses(&self) -> Vec<(Tag, Tag)> {
        self.not_ordered_before(self.subpass).collect()
    }

    /// Pairs of ended subpasses where no path of dependencies leads from the one to the other.
    fn unordered_pairs(&self) -> Vec<[(Tag, Tag); 2]> {
        let ended = self.ended.iter().enumerate().skip(1);
        ended.flat_map(|(number, it)| self.not_ordered_before(number).map(|one| [one, it.tag_interval()])).collect()
    }

    /// Ended subpasses before a subpass from which no path of dependencies leads to it.
    fn not_ordered_before(&self, to: usize) -> impl Iterator<Item = (Tag, Tag)> {
        let mut before = vec![false; to + 1];
        before[to] = true;
        for subpass in (1..=to).rev() {
            if before[subpass] {
                for dependency in self.pass.dependencies.iter().filter(|it| it.dst == Some(subpass as u32)) {
                    if let Some(src) = dependency.src.filter(|src| (*src as usize) < subpass) {
                        before[src as usize] = true;
                    }
                }
            }
        }
        self.ended.iter().zip(before).filter(|it| !it.1).map(|it| it.0.tag_interval())
    }

    /// The part of its attachments that the current subpass accesses.
    fn rendered_area(&self) -> RenderedArea {
        let view_mask = self.pass.subpasses.get(self.subpass).map_or(0, |it| it.view_mask);
        RenderedArea { area: self.area, views: views(view_mask) }
    }

    /// Like `rendered_area`, for one attachment and without what some other subpasses access.
    fn rendered_area_without(&self, attachment: usize, others: Range<usize>) -> Option<RenderedArea> {
        layout_in(&self.pass, self.subpass, attachment)?;
        let mut users = others.filter(|it| layout_in(&self.pass, *it, attachment).is_some());
        let inside = self.rendered_area();
        let Some(own) = inside.views else { return users.next().is_none().then_some(inside) };
        let left = users.fold(own, |left, it| left & !self.pass.subpasses[it].view_mask);
        (left != 0).then_some(RenderedArea { views: Some(left), ..inside })
    }

    /// The load operations of attachments that are used first in the current subpass.
    fn loads(&self) -> Vec<ResourceUse<'static>> {
        let mut found = Vec::new();
        for (index, attachment) in self.pass.attachments.iter().enumerate() {
            let Some(inside) = self.rendered_area_without(index, 0..self.subpass) else { continue };
            let Some(view) = self.views.get(index) else { continue };
            for part in split_depth_stencil(attachment.kind) {
                let op = if part == AttachmentKind::Stencil { attachment.stencil_load } else { attachment.load };
                let usage = load_usage(part, op).into_iter();
                found.extend(usage.flat_map(|it| attachment_uses(view, part, inside, it, AccessOrder::Load)));
            }
        }
        found
    }

    /// The store operations of attachments that were used last in the current subpass.
    fn stores(&self, unwritten: &[UnwrittenAttachment]) -> Vec<ResourceUse<'static>> {
        let mut found = Vec::new();
        for (index, attachment) in self.pass.attachments.iter().enumerate() {
            let later = self.subpass + 1..self.pass.subpasses.len();
            let Some(inside) = self.rendered_area_without(index, later) else { continue };
            let Some(view) = self.views.get(index) else { continue };
            for part in split_depth_stencil(attachment.kind) {
                let op = store_op(attachment, part);
                let is_written = !unwritten.iter().any(|it| (it.attachment, it.part) == (index, part));
                let usage = store_usage(part, op, is_written).into_iter();
                found.extend(usage.flat_map(|it| attachment_uses(view, part, inside, it, AccessOrder::Store)));
            }
        }
        found
    }

    /// The aspects of attachments that are not stored unless something is written to them.
    fn unwritten_attachments(&self) -> Vec<UnwrittenAttachment> {
        let attachments = self.pass.attachments.iter().zip(&self.views).enumerate();
        let of_attachment = |(index, (attachment, view)): (usize, (&Attachment, &AttachmentView))| {
            let parts = split_depth_stencil(attachment.kind).into_iter();
            let parts = parts.filter(|it| store_op(attachment, *it) == StoreOp::None);
            parts.map(|it| unwritten_attachment(index, it, view)).collect::<Vec<_>>()
        };
        attachments.flat_map(of_attachment).collect()
    }

    /// The sources and targets of the resolve operations of the current subpass.
    fn resolve_pairs(&self) -> impl Iterator<Item = (u32, u32)> {
        self.pass.subpasses.get(self.subpass).into_iter().flat_map(|subpass| {
            let depth = subpass.depth_stencil.zip(subpass.depth_stencil_resolve).map(|(from, to)| (from.0, to.0));
            subpass.resolves.iter().map(|it| (it.source, it.target)).chain(depth)
        })
    }

    /// The resolve operations at the end of the current subpass: all in the stage of color output.
    fn resolves(&self) -> Vec<ResourceUse<'static>> {
        let mut found = Vec::new();
        for (from, to) in self.resolve_pairs() {
            for (index, access) in
                [(from, AccessFlags2::COLOR_ATTACHMENT_READ), (to, AccessFlags2::COLOR_ATTACHMENT_WRITE)]
            {
                let (Some(view), Some(other)) =
                    (self.views.get(index as usize), self.pass.attachments.get(index as usize))
                else {
                    continue;
                };
                let usage = SYNC_TABLES.usage(PipelineStageFlags2::COLOR_ATTACHMENT_OUTPUT.0, access.0);
                for part in split_depth_stencil(other.kind) {
                    let order = if access == AccessFlags2::COLOR_ATTACHMENT_READ {
                        AccessOrder::Resolve
                    } else {
                        AccessOrder::None
                    };
                    let usage = usage.into_iter();
                    found.extend(usage.flat_map(|it| attachment_uses(view, part, self.rendered_area(), it, order)));
                }
            }
        }
        found
    }
}

/// The attachments that a subpass uses, each with its layout.
fn attachment_references(subpass: &Subpass) -> impl Iterator<Item = (u32, i32)> {
    let resolves = subpass.resolves.iter().map(|it| (it.target, it.layout));
    let all = subpass.inputs.iter().chain(&subpass.colors).chain(&subpass.depth_stencil);
    all.chain(&subpass.depth_stencil_resolve).copied().chain(resolves)
}

fn layout_in(pass: &RenderPass, subpass: usize, attachment: usize) -> Option<i32> {
    attachment_references(pass.subpasses.get(subpass)?).find(|it| it.0 as usize == attachment).map(|it| it.1)
}

/// Whether a layout is for reading alone.
fn is_read_only(layout: i32) -> bool {
    let all = [
        ImageLayout::DEPTH_STENCIL_READ_ONLY_OPTIMAL,
        ImageLayout::SHADER_READ_ONLY_OPTIMAL,
        ImageLayout::DEPTH_READ_ONLY_OPTIMAL,
        ImageLayout::STENCIL_READ_ONLY_OPTIMAL,
        ImageLayout::READ_ONLY_OPTIMAL,
    ];
    all.contains(&ImageLayout(layout))
}

fn first_use(pass: &RenderPass, attachment: usize) -> Option<usize> {
    (0..pass.subpasses.len()).find(|it| layout_in(pass, *it, attachment).is_some())
}

fn last_use(pass: &RenderPass, attachment: usize) -> Option<usize> {
    (0..pass.subpasses.len()).rfind(|it| layout_in(pass, *it, attachment).is_some())
}

/// Adds the implicit dependencies from and to the outside, for attachments that change their layout there without an
/// explicit dependency.
fn add_implicit_dependencies(pass: &mut RenderPass) {
    let attachments = 0..pass.attachments.len();
    for subpass in 0..pass.subpasses.len() {
        let number = Some(subpass as u32);
        let layout = |it: usize| layout_in(pass, subpass, it);
        let is_begun =
            |it: usize| first_use(pass, it) == Some(subpass) && layout(it) != Some(pass.attachments[it].initial_layout);
        let is_ended =
            |it: usize| last_use(pass, it) == Some(subpass) && layout(it) != Some(pass.attachments[it].final_layout);
        let has = |src, dst| pass.dependencies.iter().any(|it| it.src == src && it.dst == dst);
        let begins = attachments.clone().any(is_begun) && !has(None, number);
        let ends = attachments.clone().any(is_ended) && !has(number, None);
        let implied = |src, dst, scope| SubpassDependency { src, dst, scope, view_offset: None };
        pass.dependencies.extend(begins.then(|| implied(None, number, IMPLICIT_FROM_OUTSIDE)));
        pass.dependencies.extend(ends.then(|| implied(number, None, IMPLICIT_TO_OUTSIDE)));
    }
}

impl EndedSubpassClock {
    /// The interval of tags of the subpass, including the layout transitions before it.
    fn tag_interval(&self) -> (Tag, Tag) {
        (self.begin - 1, self.end)
    }

    /// The first scope of a dependency from this subpass.
    fn first_scope(&self, scope: &ExpandedScope) -> FirstScope {
        self.clock.first_scope_of_interval(SubpassInterval {
            queue: self.queue,
            begin: self.begin,
            end: self.end,
            src: scope.src,
            src_usages: scope.src_usages,
            dst: StageSet::default(),
            dst_usages: UsageSet::default(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The implicit dependencies of a render pass.
    fn implied(lines: &str) -> Vec<(Option<u32>, Option<u32>)> {
        let text = format!("# A pass.\n# spec: VkSubpassDependency\n# expect: clean\n\npass rp\n{lines}\ncmd main\n");
        let mut pass = lavascope_scenario::parse(&text).expect("a scenario").program.render_passes.remove(0);
        let given = pass.dependencies.len();
        add_implicit_dependencies(&mut pass);
        pass.dependencies[given..].iter().map(|it| (it.src, it.dst)).collect()
    }

    #[test]
    fn what_no_dependency_says_is_implied_where_layouts_change() {
        let moved = "  attachment color initial=undefined final=transfer_src\n";
        let fixed = "  attachment color initial=general final=general\n";
        let into = |it| (None, Some(it));
        let out = |it| (Some(it), None);
        assert_eq!(implied(&format!("{moved}  subpass color 0\n")), [into(0), out(0)]);
        assert_eq!(implied(&format!("{fixed}  subpass color 0 as general\n")), []);
        // One subpass that uses the attachment both first and last.
        let one =
            format!("{moved}{fixed}  subpass color 1 as general\n  subpass color 0\n  subpass color 1 as general\n");
        assert_eq!(implied(&one), [into(1), out(1)]);
        let two = format!("{moved}  subpass color 0\n  subpass color 0\n");
        assert_eq!(implied(&two), [into(0), out(1)]);
        // An explicit dependency replaces the implicit one of its own subpass and direction only.
        let dependency = |it: &str| format!("{two}  dependency {it}: color:write => color:write\n");
        assert_eq!(implied(&dependency("external => 0")), [out(1)]);
        assert_eq!(implied(&dependency("1 => external")), [into(0)]);
        for other in ["external => 1", "0 => external", "0 => 1"] {
            assert_eq!(implied(&dependency(other)), [into(0), out(1)], "{other}");
        }
    }

    #[test]
    fn what_is_implied_is_about_all_attachments() {
        use AccessFlags2 as A;
        for access in [
            A::INPUT_ATTACHMENT_READ,
            A::COLOR_ATTACHMENT_READ,
            A::COLOR_ATTACHMENT_WRITE,
            A::DEPTH_STENCIL_ATTACHMENT_READ,
            A::DEPTH_STENCIL_ATTACHMENT_WRITE,
        ] {
            assert_ne!(IMPLICIT_FROM_OUTSIDE.dst_access & access.0, 0, "{access:?}");
            assert_ne!(IMPLICIT_TO_OUTSIDE.src_access & access.0, 0, "{access:?}");
        }
    }
}
