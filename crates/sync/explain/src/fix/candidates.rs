//! Creates changes that may fix a hazard, from the gaps in its explanation.

use std::collections::BTreeMap;

use lavascope_abi::{AccessFlags2 as A, PipelineStageFlags2 as S};
use lavascope_sync_ir::{
    Command, CommandBufferId, Dependency, DependencyTarget, HostStep, Program, ProgramLocation, Region, RenderPass,
    SubpassDependency, SyncScope,
};

use super::apply::{buffers_of, union};
use super::change::{
    BatchLocation, HostWait, ProgramChange, ProgramFix, may_be_self_dependency, self_dependency_flags,
};
use super::sync_version::{SyncVersion, SyncVersions};
use crate::follow::access_pair::{AccessPair, access_at};
use crate::follow::timeline::ExecutionTimeline;
use crate::text::api_names::{first_stage, second_scope_stages};
use crate::{
    AccessRole, Agent, CoverageGap, ExplainedAccess, Explanation, OperationLocation, ScopeCoverage, SyncOperation,
    SyncOperationKind,
};

const ALL_COMMANDS: u64 = S::ALL_COMMANDS.0;

/// The version is that of the command, which [`ProgramChange::in_versions`] finds out.
fn add_bits(location: OperationLocation, bits: SyncScope) -> ProgramChange {
    ProgramChange::AddBits { location, bits, adds_memory_barrier: false, version: SyncVersion::default() }
}

fn insert_barrier((buffer, before): (CommandBufferId, u32), dependency: Dependency) -> ProgramChange {
    let version = SyncVersion::default();
    ProgramChange::InsertBarrier { buffer, before, dependency, flags: 0, feature: None, version }
}

/// All candidates, the smallest first.
pub(crate) fn candidates(
    timeline: &ExecutionTimeline<'_>,
    explanations: &[(AccessPair, Explanation)],
    versions: &SyncVersions,
) -> Vec<ProgramFix> {
    let Some((pair, first)) = explanations.first() else { return Vec::new() };
    let program = timeline.program;
    let scope = explanations.iter().fold(SyncScope::default(), |all, it| union(all, direct_scope(&it.1)));
    let scope = SyncScope {
        src_stages: collapse_to_all_commands(scope.src_stages),
        dst_stages: collapse_to_all_commands(scope.dst_stages),
        ..scope
    };
    let mut found = bits(explanations);
    found.extend(chains(explanations));
    found.extend(ranges(explanations));
    found.extend(barriers(program, first, scope));
    found.extend(subpasses(timeline, pair, first, scope));
    found.extend(added_semaphores(program, first, scope));
    let has_writes = explanations.iter().any(|it| it.1.prior.is_write);
    found.extend(added_host_waits(program, first, has_writes.then_some(scope)));
    let fix = |changes: Vec<ProgramChange>| ProgramFix {
        changes: changes.into_iter().map(|it| it.in_versions(program, versions)).collect(),
    };
    let mut found: Vec<ProgramFix> = found.into_iter().map(fix).collect();
    let own_stages = explanations.iter().fold(0, |all, it| all | it.1.prior.stage | it.1.later.stage);
    let own_stages = own_stages | SyncVersion::One.stages(own_stages);
    found.sort_by_key(|fix| fix.size() + FOREIGN_STAGE_SIZE * u32::from(names_other_stage(fix, own_stages)));
    found
}

/// A fix with stages of the two commands is easier to understand. A fix with stages of operations
/// between them gets this penalty.
const FOREIGN_STAGE_SIZE: u32 = 4;

fn names_other_stage(fix: &ProgramFix, own_stages: u64) -> bool {
    fix.changes.iter().any(|change| match change {
        ProgramChange::AddBits { bits, .. } => (bits.src_stages | bits.dst_stages) & !own_stages != 0,
        _ => false,
    })
}

/// The scopes that include exactly the two accesses.
fn direct_scope(explanation: &Explanation) -> SyncScope {
    let stage = |it: &ExplainedAccess| if it.stage == 0 { ALL_COMMANDS } else { it.stage };
    // After a read, an execution dependency is enough (`synchronization-dependencies-execution`).
    let memory = |access: u64| if explanation.prior.is_write { access } else { 0 };
    SyncScope {
        src_stages: stage(&explanation.prior),
        src_access: memory(explanation.prior.access),
        dst_stages: stage(&explanation.later),
        dst_access: memory(explanation.later.access),
    }
}

/// If a mask contains all commands, the other stages are redundant.
fn collapse_to_all_commands(stages: u64) -> u64 {
    if stages & ALL_COMMANDS != 0 { ALL_COMMANDS } else { stages }
}

/// Continues a dependency chain: an operation whose first scope lacks the earlier access gets a
/// stage from the second scope of an operation that has it (`synchronization-dependencies-chains`).
/// If both accesses have stages, a fix with their own stages is better, so only semaphores are
/// continued.
fn chains(explanations: &[(AccessPair, Explanation)]) -> Vec<Vec<ProgramChange>> {
    let mut found = Vec::new();
    let Some((_, explanation)) = explanations.first() else { return found };
    let has_stages = explanation.prior.stage != 0 && explanation.later.stage != 0;
    for (index, operation) in explanation.operations.iter().enumerate() {
        let is_source = |gap: &CoverageGap| {
            matches!(gap, CoverageGap::SourceStage | CoverageGap::SourceAccess | CoverageGap::PriorThroughAlias(_))
        };
        let is_open = operation.coverage == ScopeCoverage::NotInFirst && operation.gaps.iter().all(is_source);
        if !is_open || matches!(operation.kind, SyncOperationKind::HostWait | SyncOperationKind::Submit) {
            continue;
        }
        let is_before = |before: &&SyncOperation| {
            before.coverage == ScopeCoverage::FirstOnly && !(has_stages && before.kind != SyncOperationKind::Semaphore)
        };
        for before in explanation.operations[..index].iter().filter(is_before) {
            let first = first_stage(second_scope_stages(before.scope.dst_stages));
            let bits = SyncScope { src_stages: first, ..SyncScope::default() };
            found.extend((first != 0).then(|| vec![add_bits(operation.location, bits)]));
        }
    }
    found
}

/// Adds the missing bits to existing operations.
fn bits(explanations: &[(AccessPair, Explanation)]) -> Vec<Vec<ProgramChange>> {
    let mut sites: BTreeMap<OperationLocation, SyncScope> = BTreeMap::new();
    for explanation in explanations.iter().flat_map(|it| &it.1.operations) {
        let is_fixable = |gap: &CoverageGap| {
            matches!(
                gap,
                CoverageGap::SourceStage
                    | CoverageGap::SourceAccess
                    | CoverageGap::DestinationStage
                    | CoverageGap::DestinationAccess
                    | CoverageGap::WaitStages
            )
        };
        let is_editable =
            explanation.kind != SyncOperationKind::HostWait && explanation.missing != SyncScope::default();
        if is_editable && explanation.gaps.iter().all(is_fixable) {
            let own = sites.entry(explanation.location).or_default();
            *own = union(*own, explanation.missing);
        }
    }
    sites.into_iter().map(|(location, bits)| vec![add_bits(location, bits)]).collect()
}

/// Extends existing barriers on another region of the same resource, and adds the bits that they
/// lack.
fn ranges(explanations: &[(AccessPair, Explanation)]) -> Vec<Vec<ProgramChange>> {
    let mut found: BTreeMap<OperationLocation, (ProgramChange, SyncScope)> = BTreeMap::new();
    for (_, explanation) in explanations {
        for operation in explanation.operations.iter().filter(|it| it.gaps.contains(&CoverageGap::OtherRange)) {
            let Some((resource, own)) = &operation.resource_region else { continue };
            if *resource != explanation.later.resource {
                continue;
            }
            let wanted = match found.get(&operation.location) {
                Some((ProgramChange::ExtendRange { region, .. }, _)) => region.clone(),
                _ => own.clone(),
            };
            let Some(region) = bounding_region(&wanted, &explanation.region) else { continue };
            let location = operation.location;
            let missing = found.get(&location).map_or(SyncScope::default(), |it| it.1);
            let change = ProgramChange::ExtendRange { location, resource: *resource, region };
            found.insert(location, (change, union(missing, operation.missing)));
        }
    }
    let changes = |(location, (change, bits)): (OperationLocation, (ProgramChange, SyncScope))| {
        let more = (bits != SyncScope::default()).then_some(add_bits(location, bits));
        std::iter::once(change).chain(more).collect()
    };
    found.into_iter().map(changes).collect()
}

/// The smallest region that includes both regions.
fn bounding_region(left: &Region, right: &Region) -> Option<Region> {
    match (left, right) {
        (Region::Buffer(left), Region::Buffer(right)) => {
            Some(Region::Buffer(left.start.min(right.start)..left.end.max(right.end)))
        }
        (Region::Image(left), Region::Image(right)) => {
            let mut all = left.clone();
            all.aspects |= right.aspects;
            all.components.0 |= right.components.0;
            all.mips = left.mips.start.min(right.mips.start)..left.mips.end.max(right.mips.end);
            all.layers = left.layers.start.min(right.layers.start)..left.layers.end.max(right.layers.end);
            // An image barrier covers whole subresources (`synchronization-image-memory-barriers`).
            all.area = None;
            Some(Region::Image(all))
        }
        _ => None,
    }
}

/// Inserts a new barrier before the later access or after the earlier access.
fn barriers(program: &Program, explanation: &Explanation, scope: SyncScope) -> Vec<Vec<ProgramChange>> {
    if explanation.later.agent != explanation.prior.agent || !matches!(explanation.later.agent, Agent::Queue(_)) {
        return Vec::new();
    }
    let points =
        [point_before(program, &explanation.later.executed_at), point_after(program, &explanation.prior.executed_at)];
    let mut whats = vec![DependencyTarget::Global];
    if explanation.later.resource == explanation.prior.resource && explanation.prior.is_write {
        let mut region = explanation.later.region.clone();
        if let Region::Image(region) = &mut region {
            region.area = None;
        }
        whats.push(DependencyTarget::Resource { resource: explanation.later.resource, region });
    }
    let mut found = Vec::new();
    for (buffer, before) in points.into_iter().flatten() {
        for what in &whats {
            let dependency = Dependency { scope, target: what.clone() };
            found.push(vec![insert_barrier((buffer, before), dependency)]);
        }
    }
    found
}

/// The position for a barrier that comes before a location and outside of render passes. The
/// barrier is inserted before the returned command.
fn point_before(program: &Program, place: &ProgramLocation) -> Option<(CommandBufferId, u32)> {
    insertion_point(program, place, |commands, index| render_pass_open_at(commands, index).map(Some), |index| index)
}

/// The position for a barrier that comes after a location and outside of render passes. The barrier
/// is inserted before the returned command.
fn point_after(program: &Program, place: &ProgramLocation) -> Option<(CommandBufferId, u32)> {
    let close = |commands: &[Command], index: usize| {
        // The commands that begin and end a render pass access its attachments, so they count as
        // inside.
        let open = render_pass_open_at(commands, index).or_else(|| is_begin(commands.get(index)?).then_some(index))?;
        let end = commands.iter().skip(open + 1).position(is_end);
        Some(end.map(|end| open + 1 + end + 1))
    };
    insertion_point(program, place, close, |index| index + 1)
}

/// Searches from the outermost command buffer, because a render pass that is open there is open in
/// all secondary command buffers too. `in_pass` returns the position outside of an open render pass,
/// if that is recorded yet.
fn insertion_point(
    program: &Program,
    place: &ProgramLocation,
    in_pass: impl Fn(&[Command], usize) -> Option<Option<usize>>,
    outside: impl Fn(u32) -> u32,
) -> Option<(CommandBufferId, u32)> {
    let ProgramLocation::Command(at) = place else { return None };
    let buffers = buffers_of(program, place);
    for (level, buffer) in buffers.iter().enumerate() {
        let commands = &program.command_buffers.get(buffer.0 as usize)?.commands;
        if let Some(index) = in_pass(commands, *at.path.get(level * 2)? as usize) {
            return index.map(|index| (*buffer, index as u32));
        }
    }
    Some((*buffers.last()?, outside(*at.path.last()?)))
}

/// The index of the command that began the render pass that is open at a command.
fn render_pass_open_at(commands: &[Command], index: usize) -> Option<usize> {
    let begin = commands[..index.min(commands.len())].iter().rposition(is_begin)?;
    (!commands[begin..index.min(commands.len())].iter().any(is_end)).then_some(begin)
}

fn is_begin(command: &Command) -> bool {
    matches!(command, Command::BeginRenderPass { .. } | Command::BeginRendering(_))
}

fn is_end(command: &Command) -> bool {
    matches!(command, Command::EndRenderPass | Command::EndRendering)
}

/// Adds a new subpass dependency. If both accesses are in one subpass, adds a self-dependency and a
/// barrier inside the subpass (`synchronization-pipeline-barriers-subpass-self-dependencies`).
fn subpasses(
    timeline: &ExecutionTimeline<'_>,
    pair: &AccessPair,
    explanation: &Explanation,
    scope: SyncScope,
) -> Vec<Vec<ProgramChange>> {
    let (at_moment, at) = access_at(timeline, pair.later.0, pair.later.1);
    let (_, prior) = access_at(timeline, pair.prior.0, pair.prior.1);
    let same = at.instance == prior.instance;
    let src = prior.subpass.filter(|_| same || at.subpass.is_none());
    let dst = at.subpass;
    let Some(instance) = at.instance.filter(|_| dst.is_some()).or(prior.instance.filter(|_| src.is_some())) else {
        return Vec::new();
    };
    let begin = crate::follow::dependency::recorded_location(timeline.program, &timeline.moments[instance].executed_at);
    let command = begin.and_then(|(buffer, command)| {
        timeline.program.command_buffers.get(buffer.0 as usize)?.commands.get(command as usize)
    });
    let Some(Command::BeginRenderPass { pass, views, .. }) = command else {
        return inside_rendering(explanation, scope);
    };
    let (mut scope, render_pass) = (scope, timeline.program.render_passes.get(pass.0 as usize));
    if at.role == AccessRole::Transition
        && let (Some(from), Some(to), Some(render_pass)) = (src, dst, render_pass)
        && from != to
    {
        // The layout transition is a part of the dependency, which makes it visible to the subpass.
        let used = attachment_scope(render_pass, to, |it| views.get(it).map(|it| it.resource) == Some(at.resource));
        scope = SyncScope { dst_stages: used.dst_stages, dst_access: used.dst_access, ..scope };
    } else if at.role == AccessRole::Transition {
        // An explicit dependency replaces the implicit one, whose scopes include all attachment
        // accesses. The new one must include them too (`VkSubpassDependency`).
        let implicit = SyncScope { dst_stages: ALL_COMMANDS, dst_access: ATTACHMENTS, ..SyncScope::default() };
        let outgoing = SyncScope { src_stages: ALL_COMMANDS, src_access: ATTACHMENTS, ..SyncScope::default() };
        scope = union(scope, if dst.is_some() { implicit } else { outgoing });
    }
    let own = render_pass.and_then(|it| it.subpasses.get(dst? as usize));
    let is_view_local = src == dst && own.is_some_and(|it| it.view_mask.count_ones() > 1);
    let dependency = SubpassDependency { src, dst, scope, view_offset: is_view_local.then_some(0) };
    let add = ProgramChange::AddSubpassDependency { pass: *pass, dependency, version: SyncVersion::default() };
    if src != dst {
        return vec![vec![add]];
    }
    let Some((buffer, before)) = explanation.later.recorded_at.filter(|_| may_be_self_dependency(&scope)) else {
        return Vec::new();
    };
    let allows = |own: &SubpassDependency| {
        let includes = |scope: SyncScope| union(own.scope, scope) == own.scope;
        own.src == src && own.dst == dst && (includes(scope) || includes(SyncVersion::One.scope(scope)))
    };
    let declared = render_pass.and_then(|it| it.dependencies.iter().find(|it| allows(it)));
    let is_view_local = declared.map_or(is_view_local, |it| it.view_offset.is_some());
    let barrier = ProgramChange::InsertBarrier {
        buffer,
        before,
        dependency: Dependency { scope, target: DependencyTarget::Global },
        flags: self_dependency_flags(&scope, is_view_local),
        feature: None,
        version: SyncVersion::default(),
    };
    debug_assert!(at_moment.submitted.is_some(), "subpasses are in command buffers");
    vec![if declared.is_some() { vec![barrier] } else { vec![add, barrier] }]
}

/// How a subpass uses attachments, as the second scope of a dependency.
fn attachment_scope(pass: &RenderPass, subpass: u32, is_wanted: impl Fn(usize) -> bool) -> SyncScope {
    let mut scope = SyncScope::default();
    let Some(own) = pass.subpasses.get(subpass as usize) else { return scope };
    let uses = |it: u32| is_wanted(it as usize);
    let mut add = |is_used: bool, stages: u64, access: u64| {
        if is_used {
            scope.dst_stages |= stages;
            scope.dst_access |= access;
        }
    };
    let colors = own.colors.iter().map(|it| it.0).chain(own.resolves.iter().flat_map(|it| [it.source, it.target]));
    let depths = own.depth_stencil.iter().chain(&own.depth_stencil_resolve).map(|it| it.0);
    add(own.inputs.iter().any(|it| uses(it.0)), S::FRAGMENT_SHADER.0, A::INPUT_ATTACHMENT_READ.0);
    add(
        colors.into_iter().any(uses),
        S::COLOR_ATTACHMENT_OUTPUT.0,
        A::COLOR_ATTACHMENT_READ.0 | A::COLOR_ATTACHMENT_WRITE.0,
    );
    add(
        depths.into_iter().any(uses),
        S::EARLY_FRAGMENT_TESTS.0 | S::LATE_FRAGMENT_TESTS.0,
        A::DEPTH_STENCIL_ATTACHMENT_READ.0 | A::DEPTH_STENCIL_ATTACHMENT_WRITE.0,
    );
    scope
}

/// Inserts a barrier inside dynamic rendering.
fn inside_rendering(explanation: &Explanation, scope: SyncScope) -> Vec<Vec<ProgramChange>> {
    let is_inside = explanation.is_inside_one_instance && may_be_self_dependency(&scope);
    let Some((buffer, before)) = explanation.later.recorded_at.filter(|_| is_inside) else {
        return Vec::new();
    };
    let barrier = ProgramChange::InsertBarrier {
        buffer,
        before,
        dependency: Dependency { scope, target: DependencyTarget::Global },
        flags: self_dependency_flags(&scope, false),
        feature: Some("dynamicRenderingLocalRead"),
        version: SyncVersion::default(),
    };
    vec![vec![barrier]]
}

const ATTACHMENTS: u64 = crate::follow::render_pass::ATTACHMENT_ACCESSES;

/// Adds a semaphore from one queue to another, or to or from the presentation engine.
fn added_semaphores(program: &Program, explanation: &Explanation, scope: SyncScope) -> Vec<Vec<ProgramChange>> {
    let batch = |place: &ProgramLocation| match place {
        ProgramLocation::Command(at) => Some(BatchLocation::new(at.step, at.batch)),
        ProgramLocation::Step(_) => None,
    };
    let (after, at) = (scope.src_stages, scope.dst_stages);
    match (
        explanation.prior.agent,
        explanation.later.agent,
        batch(&explanation.prior.executed_at),
        batch(&explanation.later.executed_at),
    ) {
        (Agent::Queue(from), Agent::Queue(to), Some(signal), Some(wait)) if from != to => {
            let add = ProgramChange::AddSemaphore { signal, signal_stages: after, wait, wait_stages: at };
            let gate = explanation.operations.iter().rfind(|op| {
                op.executed_at == explanation.later.executed_at && explanation.later.role == AccessRole::Transition
            });
            let bits = SyncScope { src_stages: ALL_COMMANDS, ..SyncScope::default() };
            let gate = gate.map(|op| add_bits(op.location, bits));
            let both = gate.map(|gate| vec![add.clone(), gate]);
            std::iter::once(vec![add]).chain(both).collect()
        }
        (Agent::Queue(_), Agent::Presentation, Some(signal), None) => {
            let ProgramLocation::Step(present) = explanation.later.executed_at else { return Vec::new() };
            vec![vec![ProgramChange::AddPresentWait { signal, signal_stages: after, present }]]
        }
        (Agent::Presentation, Agent::Queue(_), None, Some(wait)) => acquires(program, explanation, wait, at),
        _ => Vec::new(),
    }
}

/// Waits until the presentation engine has released an image (`vkAcquireNextImageKHR`).
fn acquires(program: &Program, explanation: &Explanation, wait: BatchLocation, at: u64) -> Vec<Vec<ProgramChange>> {
    let ProgramLocation::Step(from) = explanation.prior.executed_at else { return Vec::new() };
    let mut found = Vec::new();
    for step in program.steps.iter().skip(from as usize) {
        let HostStep::Acquire { image, semaphore, fence } = step else { continue };
        if *image != explanation.prior.resource {
            continue;
        }
        found.extend(semaphore.map(|semaphore| vec![ProgramChange::AddWait { semaphore, wait, wait_stages: at }]));
        let host = |fence| vec![ProgramChange::InsertHostWait { before: wait.step, wait: HostWait::Fence(fence) }];
        found.extend(fence.map(host));
    }
    found
}

/// Adds a wait of the host, a barrier that makes the earlier writes available to the host, or both.
fn added_host_waits(
    program: &Program,
    explanation: &Explanation,
    made_available: Option<SyncScope>,
) -> Vec<Vec<ProgramChange>> {
    let (Agent::Queue(queue), Agent::Host, ProgramLocation::Step(before), ProgramLocation::Command(prior)) = (
        explanation.prior.agent,
        explanation.later.agent,
        &explanation.later.executed_at,
        &explanation.prior.executed_at,
    ) else {
        return Vec::new();
    };
    let fence = match program.steps.get(prior.step as usize) {
        Some(HostStep::Submit { fence: Some(fence), .. }) => HostWait::Fence(*fence),
        _ => HostWait::Queue(queue),
    };
    let wait = ProgramChange::InsertHostWait { before: *before, wait: fence };
    let point = point_after(program, &explanation.prior.executed_at);
    let barrier = point.zip(made_available).map(|((buffer, before), scope)| {
        let dependency = Dependency { scope, target: DependencyTarget::Global };
        insert_barrier((buffer, before), dependency)
    });
    let mut found = vec![vec![wait.clone()]];
    if let Some(barrier) = barrier {
        found.push(vec![barrier.clone()]);
        found.push(vec![barrier, wait]);
    }
    found
}
