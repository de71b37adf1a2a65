//! Executes render passes and dynamic rendering: transitions, load, resolve and store operations.
//!
//! Transitions lie between subpasses and all other operations within one. So the scopes of subpass dependencies are
//! spans of time like all others. Spec: `renderpass-layout-transitions`, `renderpass-load-operations`,
//! `renderpass-store-operations`.

use lavascope_abi::{AccessFlags2 as Access, ImageAspectFlags as Aspect, ImageLayout, PipelineStageFlags2 as Stage};
use lavascope_sync_ir::{
    Area, Attachment, AttachmentKind, AttachmentView, ImageRegion, LoadOp, ProgramLocation, RasterOrder, Region,
    RenderPass, RenderPassId, Rendering, ResourceId, StoreOp, Subpass, SubpassDependency,
};

use super::{
    commands::{Environment, transition_access},
    executor::ProgramExecutor,
    log::{
        AccessScope, END, ExecutedAccess, ExecutionAgent, LoggedDependency, OracleAccessRole, SubpassBegin,
        SubpassInstance, SynchronizationScope, Time, TransitionSource,
    },
    masks,
};

/// One render pass instance.
pub(crate) struct ExecutedPassInstance<'p> {
    number: usize,
    subpass: u32,
    /// The time when the render pass or rendering began.
    pass_begin: Time,
    /// The time when the subpass began. For dynamic rendering, when rendering began.
    begin: Time,
    /// The dependencies of barriers in the subpass. Their second scopes stop at its end.
    subpass_barriers: Vec<usize>,
    pass: Option<PassState<'p>>,
    rendering: Option<&'p Rendering>,
}

struct PassState<'p> {
    pass: &'p RenderPass,
    views: &'p [AttachmentView],
    area: Area,
    /// The explicit and implicit subpass dependencies, with their numbers in the log.
    dependencies: Vec<(SubpassDependency, usize)>,
}

/// The part of an attachment that is accessed: the render area, and with multiview the layers of some views.
#[derive(Clone, Copy)]
struct AttachmentRegion {
    area: Area,
    views: Option<u32>,
}

/// Aspects of an attachment with one load and one store operation.
struct AttachmentAspect {
    aspects: u32,
    load: LoadOp,
    store: StoreOp,
    is_color: bool,
}

impl ExecutedPassInstance<'_> {
    pub(crate) fn subpass_instance(&self) -> SubpassInstance {
        SubpassInstance { instance: self.number, subpass: self.subpass }
    }

    /// First scopes of barriers in the subpass start here.
    pub(crate) fn subpass_begin(&self) -> Time {
        self.begin
    }

    pub(crate) fn pass_begin(&self) -> Time {
        self.pass_begin
    }

    pub(crate) fn add_subpass_barrier(&mut self, dependency: usize) {
        self.subpass_barriers.push(dependency);
    }
}

impl<'p> ProgramExecutor<'p> {
    pub(crate) fn begin_render_pass(
        &mut self,
        environment: &mut Environment<'p>,
        place: &ProgramLocation,
        id: RenderPassId,
        views: &'p [AttachmentView],
        area: Area,
    ) {
        let pass = &self.program.render_passes[id.0 as usize];
        let begin = self.tick();
        let all = pass.dependencies.iter().copied().chain(implicit_dependencies(pass));
        let dependencies: Vec<_> = all
            .filter(|it| it.src != it.dst)
            .map(|it| (it, self.subpass_dependency(environment.queue, &it, begin)))
            .collect();
        self.log.subpass_reachability.push(subpass_reachability(pass));
        let state = PassState { pass, views, area, dependencies };
        let number = self.log.subpass_reachability.len() - 1;
        let inside = Vec::new();
        environment.pass = Some(ExecutedPassInstance {
            number,
            subpass: 0,
            pass_begin: begin,
            begin,
            subpass_barriers: inside,
            pass: Some(state),
            rendering: None,
        });
        self.enter_subpass(environment, place);
    }

    pub(crate) fn next_subpass(&mut self, environment: &mut Environment<'p>, place: &ProgramLocation) {
        self.leave_subpass(environment, place);
        if let Some(instance) = &mut environment.pass {
            instance.subpass += 1;
        }
        self.enter_subpass(environment, place);
    }

    pub(crate) fn end_render_pass(&mut self, environment: &mut Environment<'p>, place: &ProgramLocation) {
        self.leave_subpass(environment, place);
        let time = self.tick();
        let Some(instance) = environment.pass.take() else { return };
        let Some(state) = instance.pass else { return };
        for (number, attachment) in state.pass.attachments.iter().enumerate() {
            let all = 0..state.pass.subpasses.len() as u32;
            let users = last_use(state.pass, number).map(|last| users_of_layout(state.pass, number, last, all));
            let layout = last_use(state.pass, number).and_then(|it| layout_in_subpass(state.pass, it, number));
            // An attachment without uses is transitioned from its initial to its final layout, with no dependency.
            if layout.unwrap_or(attachment.initial_layout) != attachment.final_layout {
                let is_user =
                    |it: Option<u32>| it.is_some_and(|it| layout_in_subpass(state.pass, it, number).is_some());
                let is_last = |it: &u32| users.as_ref().is_some_and(|all| all.contains(it));
                let after = dependency_indices(&state, |it| it.src.as_ref().is_some_and(is_last));
                let before = dependency_indices(&state, |it| it.dst.is_none() && is_user(it.src));
                let role = OracleAccessRole::Transition {
                    by: TransitionSource::RenderPass,
                    after,
                    before,
                    subpasses: Vec::new(),
                };
                self.push_attachment_transition(environment, (place, time), &state.views[number], role);
            }
        }
        let end = self.tick();
        for (dependency, number) in state.dependencies.iter().filter(|(it, _)| it.dst.is_none()) {
            let stages = masks::second_scope(dependency.scope.dst_stages, self.queue_flags(environment.queue));
            let line = ExecutionAgent::Queue(environment.queue);
            self.log.dependencies[*number].second_scope =
                SynchronizationScope { agent: line, from: end, to: END, stages };
        }
    }

    pub(crate) fn begin_rendering(
        &mut self,
        environment: &mut Environment<'p>,
        place: &ProgramLocation,
        rendering: &'p Rendering,
    ) {
        let resumed = environment.suspended.take().filter(|_| rendering.is_resuming);
        let begin = self.tick();
        let instance = resumed.unwrap_or_else(|| {
            self.log.subpass_reachability.push(vec![vec![true]]);
            let number = self.log.subpass_reachability.len() - 1;
            ExecutedPassInstance {
                number,
                subpass: 0,
                pass_begin: begin,
                begin,
                subpass_barriers: Vec::new(),
                pass: None,
                rendering: None,
            }
        });
        environment.pass = Some(ExecutedPassInstance { rendering: Some(rendering), ..instance });
        if rendering.is_resuming {
            return;
        }
        let time = self.tick();
        for attachment in &rendering.attachments {
            let part = rendering_aspect(attachment.kind, &attachment.view, attachment.load, attachment.store);
            self.push_load(environment, (place, time), &attachment.view, attachment_region(rendering), &part);
        }
    }

    pub(crate) fn end_rendering(&mut self, environment: &mut Environment<'p>, place: &ProgramLocation) {
        let Some(rendering) = environment.pass.as_ref().and_then(|it| it.rendering) else { return };
        if rendering.is_suspending {
            environment.suspended = environment.pass.take();
            return;
        }
        let time = self.tick();
        for attachment in &rendering.attachments {
            if let Some(resolve) = &attachment.resolve {
                self.push_resolve(
                    environment,
                    (place, time),
                    &attachment.view,
                    &resolve.view,
                    attachment_region(rendering),
                );
            }
        }
        let time = self.tick();
        for attachment in &rendering.attachments {
            let part = rendering_aspect(attachment.kind, &attachment.view, attachment.load, attachment.store);
            self.push_store(environment, (place, time), &attachment.view, attachment_region(rendering), &part);
        }
        let end = self.tick();
        self.end_subpass_barriers(environment, end);
        environment.pass = None;
    }

    /// Second scopes of barriers in the subpass stop at its end.
    fn end_subpass_barriers(&mut self, environment: &mut Environment<'p>, end: Time) {
        let inside = environment.pass.as_mut().map(|it| std::mem::take(&mut it.subpass_barriers)).unwrap_or_default();
        inside.into_iter().for_each(|it| self.log.dependencies[it].second_scope.to = end);
    }

    fn subpass_dependency(&mut self, queue: u32, dependency: &SubpassDependency, begin: Time) -> usize {
        let flags = self.queue_flags(queue);
        let scope = dependency.scope;
        let empty = SynchronizationScope { agent: ExecutionAgent::Queue(queue), from: 0, to: 0, stages: 0 };
        let first = match dependency.src {
            None => SynchronizationScope { to: begin, stages: masks::first_scope(scope.src_stages, flags), ..empty },
            Some(_) => empty,
        };
        let accesses = |stages: u64, access: u64| AccessScope::Masked {
            stages: masks::expand_stages(stages, flags),
            access: masks::expand_access(access),
            cells: None,
        };
        self.push_dependency(LoggedDependency {
            first_scopes: vec![first],
            second_scope: empty,
            available: vec![accesses(scope.src_stages, scope.src_access)],
            visible: vec![accesses(scope.dst_stages, scope.dst_access)],
            marker_stages: None,
        })
    }

    fn enter_subpass(&mut self, environment: &mut Environment<'p>, place: &ProgramLocation) {
        let Some(mut instance) = environment.pass.take() else { return };
        let subpass = instance.subpass;
        let Some(state) = instance.pass.take() else { return };
        environment.pass = Some(instance);
        self.push_transitions_into(environment, place, &state, subpass);
        let begin = self.tick();
        self.log_contents(environment, place, &state, begin);
        self.set_scopes(environment.queue, &state, subpass, (begin, END));
        let time = self.tick();
        for (number, attachment) in state.pass.attachments.iter().enumerate() {
            let Some(views) = exclusive_views(state.pass, subpass, number, |it| it < subpass) else { continue };
            let within = AttachmentRegion { area: state.area, views };
            for part in attachment_aspects(attachment, &state.views[number]) {
                self.push_load(environment, (place, time), &state.views[number], within, &part);
            }
        }
        if let Some(instance) = &mut environment.pass {
            instance.begin = begin;
            instance.pass = Some(state);
        }
    }

    /// Logs which attachments a subpass preserves and which become undefined.
    fn log_contents(
        &mut self,
        environment: &Environment<'p>,
        place: &ProgramLocation,
        state: &PassState<'p>,
        time: Time,
    ) {
        let Some(at) = environment.pass.as_ref().map(|it| it.subpass_instance()) else { return };
        let cells = |view: &AttachmentView| {
            let mut region = view.region.clone();
            region.area = Some(region.area.map_or(state.area, |it| intersection(it, with_view_slices(it, state.area))));
            (view.resource, self.cells.cell_indices(view.resource, &Region::Image(region)))
        };
        let attachments = state.views.iter().map(cells).collect();
        let preserved = state.pass.subpasses[at.subpass as usize].preserves.clone();
        let lost = (0..state.pass.attachments.len()).filter(|it| becomes_undefined(state.pass, at.subpass, *it));
        let lost = lost.map(|it| it as u32).collect();
        self.log.subpasses.push(SubpassBegin {
            time,
            place: place.clone(),
            at,
            attachments,
            preserved,
            undefined: lost,
        });
    }

    /// Logs transitions to the layouts of the subpass.
    fn push_transitions_into(
        &mut self,
        environment: &Environment<'p>,
        place: &ProgramLocation,
        state: &PassState<'p>,
        subpass: u32,
    ) {
        let time = self.tick();
        for (number, attachment) in state.pass.attachments.iter().enumerate() {
            let Some(layout) = layout_in_subpass(state.pass, subpass, number) else { continue };
            let pass = state.pass;
            let is_user = |it: Option<u32>| it.is_some_and(|it| layout_in_subpass(pass, it, number).is_some());
            let before_it = (0..subpass).rev().find(|it| is_user(Some(*it)));
            let (is_changed, after) = match before_it {
                None => (
                    layout != attachment.initial_layout,
                    dependency_indices(state, |it| it.src.is_none() && is_user(it.dst)),
                ),
                Some(last) => {
                    let users = users_of_layout(pass, number, last, 0..subpass);
                    let after = dependency_indices(state, |it| it.src.is_some_and(|it| users.contains(&it)));
                    (!is_one_layout(layout_in_subpass(pass, last, number), Some(layout)), after)
                }
            };
            if is_changed {
                let all = 0..pass.subpasses.len() as u32;
                let users = users_of_layout(pass, number, subpass, all);
                let is_after = |it: u32| it >= subpass && users.contains(&it);
                let before = dependency_indices(state, |it| it.dst.is_some_and(is_after));
                let flags = self.queue_flags(environment.queue);
                let has_scope = |it: &SubpassDependency| masks::second_scope(it.scope.dst_stages, flags) != 0;
                let subpasses = state.dependencies.iter().filter(|it| has_scope(&it.0)).filter_map(|it| it.0.dst);
                let subpasses = subpasses.filter(|it| is_after(*it)).collect();
                let role = OracleAccessRole::Transition { by: TransitionSource::RenderPass, after, before, subpasses };
                self.push_attachment_transition(environment, (place, time), &state.views[number], role);
            }
        }
    }

    fn leave_subpass(&mut self, environment: &mut Environment<'p>, place: &ProgramLocation) {
        let Some(mut instance) = environment.pass.take() else { return };
        let subpass = instance.subpass;
        let Some(state) = instance.pass.take() else { return };
        environment.pass = Some(instance);
        let time = self.tick();
        for (source, target) in resolves(&state.pass.subpasses[subpass as usize]) {
            let (source, target) = (&state.views[source as usize], &state.views[target as usize]);
            let mask = state.pass.subpasses[subpass as usize].view_mask;
            let within = AttachmentRegion { area: state.area, views: (mask != 0).then_some(mask) };
            self.push_resolve(environment, (place, time), source, target, within);
        }
        let time = self.tick();
        for (number, attachment) in state.pass.attachments.iter().enumerate() {
            let Some(views) = exclusive_views(state.pass, subpass, number, |it| it > subpass) else { continue };
            let within = AttachmentRegion { area: state.area, views };
            for part in attachment_aspects(attachment, &state.views[number]) {
                self.push_store(environment, (place, time), &state.views[number], within, &part);
            }
        }
        let end = self.tick();
        self.end_subpass_barriers(environment, end);
        if let Some(instance) = &mut environment.pass {
            self.set_scopes(environment.queue, &state, subpass, (instance.begin, end));
            instance.pass = Some(state);
        }
    }

    /// Sets the times of a subpass in the dependencies from it and to it.
    fn set_scopes(&mut self, queue: u32, state: &PassState<'p>, subpass: u32, (from, to): (Time, Time)) {
        let flags = self.queue_flags(queue);
        let scope = |stages| SynchronizationScope { agent: ExecutionAgent::Queue(queue), from, to, stages };
        for (dependency, number) in &state.dependencies {
            if dependency.src == Some(subpass) {
                let stages = masks::first_scope(dependency.scope.src_stages, flags);
                self.log.dependencies[*number].first_scopes = vec![scope(stages)];
            }
            if dependency.dst == Some(subpass) {
                let stages = masks::second_scope(dependency.scope.dst_stages, flags);
                self.log.dependencies[*number].second_scope = scope(stages);
            }
        }
    }

    fn push_attachment_transition(
        &mut self,
        environment: &Environment<'p>,
        (place, time): (&ProgramLocation, Time),
        view: &AttachmentView,
        role: OracleAccessRole,
    ) {
        let cells = self.cells.cell_indices(view.resource, &Region::Image(view.region.clone()));
        let index = self.next_index(place);
        let op = transition_access(environment, (place, time), index, view.resource, cells);
        self.log.accesses.push(ExecutedAccess { role, ..op });
    }

    fn push_load(
        &mut self,
        environment: &Environment<'p>,
        at: (&ProgramLocation, Time),
        view: &AttachmentView,
        within: AttachmentRegion,
        part: &AttachmentAspect,
    ) {
        let is_write = match part.load {
            LoadOp::Load => false,
            LoadOp::Clear | LoadOp::DontCare => true,
            LoadOp::None => return,
        };
        let (stage, access) = match (part.is_color, is_write) {
            (true, false) => (Stage::COLOR_ATTACHMENT_OUTPUT, Access::COLOR_ATTACHMENT_READ),
            (true, true) => (Stage::COLOR_ATTACHMENT_OUTPUT, Access::COLOR_ATTACHMENT_WRITE),
            (false, false) => (Stage::EARLY_FRAGMENT_TESTS, Access::DEPTH_STENCIL_ATTACHMENT_READ),
            (false, true) => (Stage::EARLY_FRAGMENT_TESTS, Access::DEPTH_STENCIL_ATTACHMENT_WRITE),
        };
        let order = if part.is_color { RasterOrder::Color } else { RasterOrder::DepthStencil };
        self.push_attachment_access(
            environment,
            at,
            (view, within, part.aspects),
            (stage, access),
            (OracleAccessRole::Load, order),
        );
    }

    fn push_store(
        &mut self,
        environment: &Environment<'p>,
        at: (&ProgramLocation, Time),
        view: &AttachmentView,
        within: AttachmentRegion,
        part: &AttachmentAspect,
    ) {
        let region = ImageRegion { aspects: part.aspects, area: None, ..view.region.clone() };
        let cells = self.cells.cell_indices(view.resource, &Region::Image(region));
        if part.store == StoreOp::None && !self.is_attachment_written(environment, view.resource, &cells) {
            return;
        }
        let (stage, access, order) = if part.is_color {
            (Stage::COLOR_ATTACHMENT_OUTPUT, Access::COLOR_ATTACHMENT_WRITE, RasterOrder::Color)
        } else {
            (Stage::LATE_FRAGMENT_TESTS, Access::DEPTH_STENCIL_ATTACHMENT_WRITE, RasterOrder::DepthStencil)
        };
        self.push_attachment_access(
            environment,
            at,
            (view, within, part.aspects),
            (stage, access),
            (OracleAccessRole::Store, order),
        );
    }

    /// Whether the render pass instance has written values to an attachment. Its load operation does not count.
    fn is_attachment_written(&self, environment: &Environment<'p>, resource: ResourceId, cells: &[u32]) -> bool {
        let Some(own) = environment.pass.as_ref().map(ExecutedPassInstance::subpass_instance) else { return false };
        let writes = Access::COLOR_ATTACHMENT_WRITE.0 | Access::DEPTH_STENCIL_ATTACHMENT_WRITE.0;
        self.log.accesses.iter().any(|op| {
            op.subpass.is_some_and(|it| it.instance == own.instance)
                && op.role == OracleAccessRole::Plain
                && op.access & writes != 0
                && op.resource == resource
                && op.cells.iter().any(|it| cells.contains(it))
        })
    }

    /// Resolves execute in the color attachment output stage, for all aspects.
    fn push_resolve(
        &mut self,
        environment: &Environment<'p>,
        at: (&ProgramLocation, Time),
        source: &AttachmentView,
        target: &AttachmentView,
        within: AttachmentRegion,
    ) {
        let read = (Stage::COLOR_ATTACHMENT_OUTPUT, Access::COLOR_ATTACHMENT_READ);
        let what = (source, within, source.region.aspects);
        self.push_attachment_access(environment, at, what, read, (OracleAccessRole::ResolveRead, RasterOrder::None));
        let write = (Stage::COLOR_ATTACHMENT_OUTPUT, Access::COLOR_ATTACHMENT_WRITE);
        let what = (target, within, target.region.aspects);
        self.push_attachment_access(environment, at, what, write, (OracleAccessRole::Plain, RasterOrder::Color));
    }

    fn push_attachment_access(
        &mut self,
        environment: &Environment<'p>,
        (place, time): (&ProgramLocation, Time),
        (view, within, aspects): (&AttachmentView, AttachmentRegion, u32),
        (stage, access): (Stage, Access),
        (role, order): (OracleAccessRole, RasterOrder),
    ) {
        let mut region = view.region.clone();
        region.aspects = aspects;
        // A write may affect the whole subresource, although only values in the render area change.
        let is_write = masks::is_write(access.0);
        if !is_write {
            region.area =
                Some(region.area.map_or(within.area, |it| intersection(it, with_view_slices(it, within.area))));
        }
        let is_drawn = |view: u32| within.views.is_none_or(|it| it.checked_shr(view).unwrap_or(0) & 1 != 0);
        let mut cells = Vec::new();
        for layer in view.region.layers.clone().filter(|it| is_drawn(it - view.region.layers.start)) {
            region.layers = layer..layer + 1;
            cells.extend(self.cells.cell_indices(view.resource, &Region::Image(region.clone())));
        }
        let index = self.next_index(place);
        let op = transition_access(environment, (place, time), index, view.resource, cells);
        self.log.accesses.push(ExecutedAccess { stage: stage.0, access: access.0, is_write, role, order, ..op });
    }

    fn next_index(&self, place: &ProgramLocation) -> usize {
        self.log.accesses.iter().rev().take_while(|it| it.place == *place).count()
    }
}

fn dependency_indices(state: &PassState<'_>, is_wanted: impl Fn(&SubpassDependency) -> bool) -> Vec<usize> {
    state.dependencies.iter().filter(|(it, _)| is_wanted(it)).map(|(_, number)| *number).collect()
}

/// The layout in which a subpass uses an attachment, if it uses it.
fn layout_in_subpass(pass: &RenderPass, subpass: u32, attachment: usize) -> Option<i32> {
    let subpass = &pass.subpasses[subpass as usize];
    let plain = subpass.inputs.iter().chain(&subpass.colors).chain(&subpass.depth_stencil);
    let targets = subpass.resolves.iter().map(|it| (it.target, it.layout));
    let mut all = plain.copied().chain(targets).chain(subpass.depth_stencil_resolve);
    all.find(|(it, _)| *it as usize == attachment).map(|(_, layout)| layout)
}

/// Whether no transition is needed between two uses of an attachment. Implementations switch between read-only layouts
/// by themselves.
fn is_one_layout(one: Option<i32>, other: Option<i32>) -> bool {
    let is_read_only = |layout: Option<i32>| match layout.map(ImageLayout) {
        Some(
            ImageLayout::READ_ONLY_OPTIMAL
            | ImageLayout::SHADER_READ_ONLY_OPTIMAL
            | ImageLayout::DEPTH_READ_ONLY_OPTIMAL
            | ImageLayout::STENCIL_READ_ONLY_OPTIMAL
            | ImageLayout::DEPTH_STENCIL_READ_ONLY_OPTIMAL,
        ) => true,
        Some(_) | None => false,
    };
    one == other || is_read_only(one) && is_read_only(other)
}

/// The subpasses in `among` that use the attachment in the layout of subpass `of`, with no other layout between.
fn users_of_layout(pass: &RenderPass, attachment: usize, of: u32, among: std::ops::Range<u32>) -> Vec<u32> {
    let layout = |it: u32| layout_in_subpass(pass, it, attachment);
    let is_same = |it: &u32| is_one_layout(layout(*it), layout(of));
    let users = |it: &u32| layout(*it).is_some();
    let before = (among.start..of).rev().filter(users).take_while(is_same);
    before.chain((of..among.end).filter(users).take_while(is_same)).collect()
}

/// Whether the contents of an attachment become undefined when a subpass begins. Spec: `VkSubpassDescription2`.
fn becomes_undefined(pass: &RenderPass, subpass: u32, attachment: usize) -> bool {
    let keeps = |value: u32| {
        let is_preserved = pass.subpasses[value as usize].preserves.contains(&(attachment as u32));
        is_preserved || layout_in_subpass(pass, value, attachment).is_some()
    };
    // An attachment that is only an input keeps its contents.
    let is_output = |item: &Subpass| {
        let without_inputs = Subpass { inputs: Vec::new(), ..item.clone() };
        let alone = RenderPass { subpasses: vec![without_inputs], ..RenderPass::default() };
        layout_in_subpass(&alone, 0, attachment).is_some()
    };
    let comes_from_keeper =
        |it: &SubpassDependency| it.dst == Some(subpass) && it.src.is_some_and(|src| src != subpass && keeps(src));
    pass.subpasses.iter().any(is_output) && pass.dependencies.iter().any(comes_from_keeper) && !keeps(subpass)
}

fn first_use(pass: &RenderPass, attachment: usize) -> Option<u32> {
    (0..pass.subpasses.len() as u32).find(|it| layout_in_subpass(pass, *it, attachment).is_some())
}

fn last_use(pass: &RenderPass, attachment: usize) -> Option<u32> {
    (0..pass.subpasses.len() as u32).rev().find(|it| layout_in_subpass(pass, *it, attachment).is_some())
}

/// The views that only this subpass uses, compared with those for which `is_other` holds. Without multiview all or
/// none.
fn exclusive_views(
    pass: &RenderPass,
    subpass: u32,
    attachment: usize,
    is_other: impl Fn(u32) -> bool,
) -> Option<Option<u32>> {
    layout_in_subpass(pass, subpass, attachment)?;
    let all = 0..pass.subpasses.len() as u32;
    let mut others = all.filter(|it| is_other(*it) && layout_in_subpass(pass, *it, attachment).is_some());
    let mask = |it: u32| pass.subpasses[it as usize].view_mask;
    if mask(subpass) == 0 {
        return others.next().is_none().then_some(None);
    }
    let left = others.fold(mask(subpass), |left, it| left & !mask(it));
    (left != 0).then_some(Some(left))
}

fn attachment_region(rendering: &Rendering) -> AttachmentRegion {
    AttachmentRegion { area: rendering.area, views: Some(rendering.view_mask).filter(|it| *it != 0) }
}

fn resolves(subpass: &Subpass) -> Vec<(u32, u32)> {
    let depth = subpass.depth_stencil.zip(subpass.depth_stencil_resolve).map(|(source, target)| (source.0, target.0));
    subpass.resolves.iter().map(|it| (it.source, it.target)).chain(depth).collect()
}

/// The implicit external dependencies, for subpasses that have a transition but no explicit dependency. Spec:
/// `VkSubpassDependency2`.
fn implicit_dependencies(pass: &RenderPass) -> Vec<SubpassDependency> {
    let access = Access::INPUT_ATTACHMENT_READ.0
        | Access::COLOR_ATTACHMENT_READ.0
        | Access::COLOR_ATTACHMENT_WRITE.0
        | Access::DEPTH_STENCIL_ATTACHMENT_READ.0
        | Access::DEPTH_STENCIL_ATTACHMENT_WRITE.0;
    let has = |src, dst| pass.dependencies.iter().any(|it| it.src == src && it.dst == dst);
    let mut found = Vec::new();
    for subpass in 0..pass.subpasses.len() as u32 {
        let changes = |(number, old): (usize, i32), first: Option<u32>| {
            first == Some(subpass) && layout_in_subpass(pass, subpass, number) != Some(old)
        };
        let mut attachments = pass.attachments.iter().enumerate();
        let is_first = attachments.any(|(it, what)| changes((it, what.initial_layout), first_use(pass, it)));
        if is_first && !has(None, Some(subpass)) {
            let scope = lavascope_sync_ir::SyncScope {
                dst_stages: Stage::ALL_COMMANDS.0,
                dst_access: access,
                ..Default::default()
            };
            found.push(SubpassDependency { src: None, dst: Some(subpass), scope, view_offset: None });
        }
        let mut attachments = pass.attachments.iter().enumerate();
        let is_last = attachments.any(|(it, what)| changes((it, what.final_layout), last_use(pass, it)));
        if is_last && !has(Some(subpass), None) {
            let scope = lavascope_sync_ir::SyncScope {
                src_stages: Stage::ALL_COMMANDS.0,
                src_access: access,
                ..Default::default()
            };
            found.push(SubpassDependency { src: Some(subpass), dst: None, scope, view_offset: None });
        }
    }
    found
}

/// Whether dependencies lead from one subpass to another.
fn subpass_reachability(pass: &RenderPass) -> Vec<Vec<bool>> {
    let count = pass.subpasses.len();
    let mut paths = vec![vec![false; count]; count];
    for (src, dst) in pass.dependencies.iter().filter_map(|it| it.src.zip(it.dst)) {
        paths[src as usize][dst as usize] = true;
    }
    for through in 0..count {
        for from in 0..count {
            for to in 0..count {
                paths[from][to] |= paths[from][through] && paths[through][to];
            }
        }
    }
    paths
}

fn rendering_aspect(kind: AttachmentKind, view: &AttachmentView, load: LoadOp, store: StoreOp) -> AttachmentAspect {
    AttachmentAspect { aspects: view.region.aspects, load, store, is_color: kind == AttachmentKind::Color }
}

fn attachment_aspects(attachment: &Attachment, view: &AttachmentView) -> Vec<AttachmentAspect> {
    let aspects = view.region.aspects;
    let color = AttachmentAspect { aspects, load: attachment.load, store: attachment.store, is_color: true };
    let depth = AttachmentAspect {
        aspects: aspects & Aspect::DEPTH.0,
        load: attachment.load,
        store: attachment.store,
        is_color: false,
    };
    let stencil = AttachmentAspect {
        aspects: aspects & Aspect::STENCIL.0,
        load: attachment.stencil_load,
        store: attachment.stencil_store,
        is_color: false,
    };
    match attachment.kind {
        AttachmentKind::Color => vec![color],
        AttachmentKind::Depth => vec![depth],
        AttachmentKind::Stencil => vec![stencil],
        AttachmentKind::DepthStencil => vec![depth, stencil],
    }
}

/// A render area has no depth: the slices are those of the view.
fn with_view_slices(view: Area, mut area: Area) -> Area {
    (area.offset[2], area.extent[2]) = (view.offset[2], view.extent[2]);
    area
}

fn intersection(one: Area, other: Area) -> Area {
    let offset: [u32; 3] = std::array::from_fn(|it| one.offset[it].max(other.offset[it]));
    let end = |area: Area, axis: usize| area.offset[axis].saturating_add(area.extent[axis]);
    let extent = std::array::from_fn(|it| end(one, it).min(end(other, it)).saturating_sub(offset[it]));
    Area { offset, extent }
}
