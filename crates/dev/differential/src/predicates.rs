//! The known differences: each a predicate with a name, which `docs/differences.md` explains by the same name.
//!
//! Where the specification is on the side of the peer, the difference is a bug of ours and has no predicate.

use lavascope_abi::{AccessFlags2 as A, PipelineStageFlags2 as S};
use lavascope_oracle::is_write;
use lavascope_sync_ir::{
    Access, Area, AttachmentKind, Barrier, Command, Dependency, DependencyTarget, EventId, HostStep, Program, QueueId,
    ResourceKind, SetEvent, Subpass, WaitEvents,
};

use crate::disagreement::{DisagreementKind, LayerDisagreement};
use crate::execution::{ExecutedCommand, commands_between, enclosing_instance, executed_commands};
use crate::reported_hazard::{NamedCommand, ReportedHazard};

/// A difference that is known, and what it covers.
pub(crate) struct KnownPredicate {
    pub(crate) name: &'static str,
    pub(crate) covers: fn(&Program, &LayerDisagreement) -> bool,
}

pub(crate) const PREDICATES: &[KnownPredicate] = &[
    KnownPredicate { name: "race-behind-another-access", covers: is_race_behind_another_access },
    KnownPredicate { name: "transition-after-another-queue", covers: is_transition_after_another_queue },
    KnownPredicate { name: "race-or-order", covers: is_race_or_order },
    KnownPredicate { name: "chain-through-queue-and-host", covers: is_chain_through_queue_and_host },
    KnownPredicate { name: "transition-of-a-wait", covers: is_transition_of_wait },
    KnownPredicate { name: "acquire-without-wait", covers: is_acquire_without_wait },
    KnownPredicate { name: "present-after-acquire", covers: is_present_after_acquire },
    KnownPredicate { name: "chain-through-a-pass", covers: is_chain_through_pass },
    KnownPredicate { name: "order-by-another-resource", covers: is_order_by_another_resource },
    KnownPredicate { name: "transition-before-several-subpasses", covers: is_transition_before_several_subpasses },
    KnownPredicate { name: "acquire-or-present", covers: is_acquire_or_present },
    KnownPredicate { name: "read-in-a-pass", covers: is_read_in_pass },
    KnownPredicate { name: "chain-into-an-event", covers: is_chain_into_event },
    KnownPredicate { name: "available-transition", covers: is_behind_available_transition },
    KnownPredicate { name: "reads-of-attachments", covers: is_read_of_attachment },
    KnownPredicate { name: "load-of-the-other-aspect", covers: is_load_of_other_aspect },
    KnownPredicate { name: "present-or-write", covers: is_present_or_write },
    KnownPredicate { name: "clear-of-a-part", covers: is_clear_of_part },
    KnownPredicate { name: "resolve-of-a-part", covers: is_resolve_of_part },
    KnownPredicate { name: "early-tests", covers: is_early_test },
    KnownPredicate { name: "first-of-several-reads", covers: is_first_of_several_reads },
];

/// The predicate that covers a disagreement. If both layers report a hazard at the command, it may cover only what the
/// peer reports beside that.
pub(crate) fn known_predicate(program: &Program, disagreement: &LayerDisagreement) -> Option<&'static KnownPredicate> {
    let find = |it: &LayerDisagreement| PREDICATES.iter().find(|predicate| (predicate.covers)(program, it));
    find(disagreement).or_else(|| find(&beside_common(disagreement)?))
}

/// What the peer reports beside a hazard that both report.
fn beside_common(disagreement: &LayerDisagreement) -> Option<LayerDisagreement> {
    let is_common =
        |it: &ReportedHazard| disagreement.ours.iter().any(|own| own.prior == it.prior && own.code == it.code);
    let (common, peer): (Vec<_>, Vec<_>) = disagreement.peer.iter().cloned().partition(is_common);
    let is_beside = !common.is_empty() && !peer.is_empty();
    is_beside.then(|| LayerDisagreement {
        kind: DisagreementKind::OnlyPeer,
        ours: Vec::new(),
        peer,
        ..disagreement.clone()
    })
}

/// Where several queues accessed a range, or one of them several times, the peer compares with one access only.
fn is_race_behind_another_access(program: &Program, disagreement: &LayerDisagreement) -> bool {
    let accesses_of = |buffer: usize| -> usize {
        program.command_buffers[buffer].commands.iter().map(|it| access_count(it, program, disagreement)).sum()
    };
    let has_several = |hazard: &ReportedHazard| {
        let prior = hazard.prior.as_ref().map(|it| queues_of(program, it)).unwrap_or_default();
        let own = queues_of(program, &hazard.at);
        // Of a race, those beside the earlier command; else those on other queues than the one of both commands.
        let is_counted = |queue: &QueueId| match hazard.is_race() {
            true => prior.contains(queue),
            false => !(prior.contains(queue) && own.contains(queue)),
        };
        let is_there = |buffer: &usize| queues_of_buffer(program, *buffer).iter().any(is_counted);
        let count: usize = (0..program.command_buffers.len()).filter(is_there).map(accesses_of).sum();
        let is_same_queue = own.iter().any(|it| prior.contains(it));
        count > usize::from(hazard.is_race()) && (hazard.is_race() || is_same_queue)
    };
    disagreement.kind == DisagreementKind::OnlyOurs && disagreement.ours.iter().all(has_several)
}

/// How often a command accesses the resource of a disagreement by itself.
fn access_count(command: &Command, program: &Program, disagreement: &LayerDisagreement) -> usize {
    let resource = resource_number(program, &disagreement.resource);
    match command {
        Command::Action(all) => all.iter().filter(|it| Some(it.resource.0) == resource).count(),
        Command::BeginRenderPass { .. } | Command::BeginRendering(_) | Command::Barrier(_) | Command::WaitEvents(_) => {
            1
        }
        _ => 0,
    }
}

/// Names of random programs are a letter and the number.
fn resource_number(program: &Program, name: &str) -> Option<u32> {
    let names = lavascope_scenario::DeclaredNames::of(program).resources;
    names.iter().position(|it| it == name).map(|it| it as u32)
}

/// For the peer the first scope of a barrier has what other queues wrote; the transition is not compared with that.
fn is_transition_after_another_queue(program: &Program, disagreement: &LayerDisagreement) -> bool {
    let is_elsewhere = |hazard: &ReportedHazard| {
        let prior = hazard.prior.as_ref().map(|it| queues_of(program, it)).unwrap_or_default();
        hazard.code == "SYNC-HAZARD-WRITE-AFTER-WRITE"
            && hazard.access == "SYNC_IMAGE_LAYOUT_TRANSITION"
            && queues_of(program, &hazard.at).iter().any(|own| prior.iter().any(|it| it != own))
    };
    disagreement.kind == DisagreementKind::OnlyOurs && disagreement.ours.iter().all(is_elsewhere)
}

/// Both find a fault of the same two commands; one knows of an order between them that is not enough, and the other of
/// none.
fn is_race_or_order(_: &Program, disagreement: &LayerDisagreement) -> bool {
    let is_other_kind = |hazard: &&ReportedHazard| {
        let is_it = |own: &ReportedHazard| own.prior == hazard.prior && own.is_race() != hazard.is_race();
        disagreement.ours.iter().any(is_it)
    };
    let is_known = |it: &ReportedHazard| is_other_kind(&it) || disagreement.ours.iter().any(|own| own.is_same(it));
    [DisagreementKind::Code, DisagreementKind::Prior].contains(&disagreement.kind)
        && disagreement.peer.iter().any(|it| is_other_kind(&it))
        && disagreement.peer.iter().all(is_known)
}

/// The host waits for a queue that waited for another one, or for a later signal: for the peer nothing is known of the
/// other queue, or of what waited.
fn is_chain_through_queue_and_host(program: &Program, disagreement: &LayerDisagreement) -> bool {
    let is_host_wait =
        |it: &HostStep| matches!(it, HostStep::QueueIdle(_) | HostStep::WaitFences(_) | HostStep::WaitSemaphores(_));
    let is_ordered = |hazard: &ReportedHazard| {
        let first = hazard.prior.as_ref().and_then(|it| submissions_of(program, it).first().copied());
        let last = match hazard.at.function.as_str() {
            "vkQueuePresentKHR" => program.steps.iter().rposition(|it| matches!(it, HostStep::Present { .. })),
            _ => submissions_of(program, &hazard.at).last().copied(),
        };
        let (Some(first), Some(last)) = (first, last) else { return false };
        first < last && program.steps[first..last].iter().any(is_host_wait)
    };
    disagreement.kind != DisagreementKind::OnlyOurs && disagreement.peer.iter().all(is_ordered)
}

/// A wait for an event changes a layout: the peer compares that with the stages of each event by itself, and not with
/// chains that lead there, other events of the wait, and what came since the event was set.
fn is_transition_of_wait(_: &Program, disagreement: &LayerDisagreement) -> bool {
    let is_transition = |it: &ReportedHazard| it.access == "SYNC_IMAGE_LAYOUT_TRANSITION";
    disagreement.at.function.starts_with("vkCmdWaitEvents")
        && disagreement.ours.iter().chain(&disagreement.peer).all(is_transition)
}

/// The peer knows of no acquire before the first presentation of an image.
fn is_acquire_without_wait(_: &Program, disagreement: &LayerDisagreement) -> bool {
    let is_acquire = |hazard: &ReportedHazard| {
        hazard.code.ends_with("-AFTER-PRESENT")
            && hazard.prior.as_ref().is_some_and(|it| it.function.starts_with("vkAcquire"))
    };
    disagreement.kind == DisagreementKind::OnlyOurs && disagreement.ours.iter().all(is_acquire)
}

/// For the peer a presentation conflicts with the acquire before it, which only reads.
fn is_present_after_acquire(_: &Program, disagreement: &LayerDisagreement) -> bool {
    let is_acquire = |hazard: &&ReportedHazard| {
        let names = ["SYNC-HAZARD-PRESENT-AFTER-READ", "SYNC-HAZARD-WRITE-AFTER-READ"];
        names.contains(&hazard.code.as_str())
            && hazard.prior.as_ref().is_some_and(|it| it.function.starts_with("vkAcquire"))
    };
    [DisagreementKind::OnlyPeer, DisagreementKind::Code].contains(&disagreement.kind)
        && disagreement.at.function == "vkQueuePresentKHR"
        && disagreement.peer.iter().any(|it| is_acquire(&it))
        && disagreement.peer.iter().all(|it| is_acquire(&it) || is_same_read_before_present(it, disagreement))
}

/// One transition comes before all subpasses that use a layout; for the peer each of them has its own.
fn is_transition_before_several_subpasses(program: &Program, disagreement: &LayerDisagreement) -> bool {
    let resource = resource_number(program, &disagreement.resource);
    let is_used = |subpass: &Subpass, attachment: u32| used_attachments(subpass).any(|it| it == attachment);
    let has_several = |command: &Command| {
        let Command::BeginRenderPass { pass, views, .. } = command else { return false };
        let subpasses = &program.render_passes[pass.0 as usize].subpasses;
        let own = (0..views.len()).filter(|it| Some(views[*it].resource.0) == resource);
        own.map(|it| it as u32).any(|attachment| subpasses.iter().filter(|it| is_used(it, attachment)).count() > 2)
    };
    let is_transition =
        |it: &ReportedHazard| [&it.access, &it.prior_access].iter().any(|it| *it == "SYNC_IMAGE_LAYOUT_TRANSITION");
    disagreement.ours.iter().chain(&disagreement.peer).all(is_transition)
        && program.command_buffers.iter().flat_map(|it| &it.commands).any(has_several)
}

/// What is used after a presentation and the next acquire comes after both.
fn is_acquire_or_present(_: &Program, disagreement: &LayerDisagreement) -> bool {
    let is_presented = |it: &ReportedHazard| it.code.ends_with("-AFTER-PRESENT");
    disagreement.kind == DisagreementKind::Prior && disagreement.ours.iter().chain(&disagreement.peer).all(is_presented)
}

/// A dependency of a render pass can be part of a chain for everything; for the peer it is one for what its subpasses
/// use.
fn is_chain_through_pass(program: &Program, disagreement: &LayerDisagreement) -> bool {
    let resource = resource_number(program, &disagreement.resource);
    let is_chain = |command: &Command| {
        let Command::BeginRenderPass { pass, views, area } = command else { return false };
        let pass = &program.render_passes[pass.0 as usize];
        let is_whole = !resource.is_some_and(|it| is_larger(program, it, *area));
        let is_used =
            |attachment: u32| views.get(attachment as usize).is_some_and(|it| Some(it.resource.0) == resource);
        let views = pass.subpasses.iter().fold(0, |all, it| all | it.view_mask);
        let has_all_views = views == 0 || views.trailing_ones() >= resource.map_or(0, |it| layers_of(program, it));
        let uses = |subpass: u32| {
            let own = pass.subpasses.get(subpass as usize);
            let is_whole = is_whole && has_all_views;
            own.is_some_and(|it| is_whole && it.view_mask == views && used_attachments(it).any(is_used))
        };
        pass.dependencies.iter().any(|it| it.src.into_iter().chain(it.dst).any(|it| !uses(it)))
    };
    let is_behind_chain = |hazard: &ReportedHazard| {
        let around = hazard.prior.as_ref().and_then(|it| enclosing_instance(program, it));
        commands_between(program, hazard).iter().map(|it| it.command).chain(around).any(is_chain)
    };
    disagreement.kind != DisagreementKind::OnlyOurs && disagreement.peer.iter().any(is_behind_chain)
}

fn layers_of(program: &Program, resource: u32) -> u32 {
    match program.resources.get(resource as usize).map(|it| &it.kind) {
        Some(ResourceKind::Image(image)) => image.layers,
        _ => 0,
    }
}

fn used_attachments(subpass: &Subpass) -> impl Iterator<Item = u32> {
    let uses = subpass.inputs.iter().chain(&subpass.colors).chain(&subpass.depth_stencil);
    uses.map(|it| it.0).chain(subpass.resolves.iter().map(|it| it.target))
}

/// A barrier on one resource orders the execution of everything, if it has stages on both sides; for the peer it orders
/// only that resource.
fn is_order_by_another_resource(program: &Program, disagreement: &LayerDisagreement) -> bool {
    let resource = resource_number(program, &disagreement.resource);
    let is_limited = |dependency: &Dependency| {
        let is_other = match &dependency.target {
            DependencyTarget::Global => false,
            DependencyTarget::Resource { resource: own, .. } | DependencyTarget::Transition { resource: own, .. } => {
                Some(own.0) != resource
            }
            DependencyTarget::QueueFamilyTransfer { .. } => true,
        };
        is_other && dependency.scope.src_stages != 0 && dependency.scope.dst_stages != 0
    };
    let has_limited = |hazard: &ReportedHazard| {
        commands_between(program, hazard).iter().flat_map(|it| dependencies_of(it.command)).any(is_limited)
    };
    disagreement.kind != DisagreementKind::OnlyOurs && disagreement.peer.iter().any(has_limited)
}

fn dependencies_of(command: &Command) -> Vec<&Dependency> {
    match command {
        Command::Barrier(Barrier::Sync1 { dependencies, .. } | Barrier::Sync2 { dependencies })
        | Command::WaitEvents(WaitEvents::Sync1 { dependencies, .. }) => dependencies.iter().collect(),
        Command::WaitEvents(WaitEvents::Sync2 { events }) => events.iter().flat_map(|it| &it.1).collect(),
        _ => Vec::new(),
    }
}

/// In a pass of several subpasses the peer forgets what shaders read of a buffer that something read before.
fn is_read_in_pass(program: &Program, disagreement: &LayerDisagreement) -> bool {
    let resource = resource_number(program, &disagreement.resource);
    let is_forgotten = |hazard: &ReportedHazard| {
        let Some(prior) = &hazard.prior else { return false };
        let instance = enclosing_instance(program, prior);
        let Some(Command::BeginRenderPass { pass, .. }) = instance else { return false };
        let has_several = program.render_passes[pass.0 as usize].subpasses.len() > 1;
        let before = executed_commands(program);
        let place = before.iter().position(|it| prior.place() == Some((it.buffer, it.index))).unwrap_or(0);
        has_several
            && hazard.prior_access.contains("STORAGE_READ")
            && before[..place].iter().any(|it| reads_resource(it.command, resource))
    };
    disagreement.kind == DisagreementKind::OnlyOurs && disagreement.ours.iter().all(is_forgotten)
}

/// What a wait for an event orders comes before the event was set. For the peer a barrier between the two is part of the
/// chain.
fn is_chain_into_event(program: &Program, disagreement: &LayerDisagreement) -> bool {
    let is_late = |hazard: &ReportedHazard| {
        let between = commands_between(program, hazard);
        (0..between.len()).any(|wait| {
            let set = waited_events(between[wait].command).filter_map(|event| effective_set(&between[..wait], event));
            set.min().is_some_and(|it| between[it..wait].iter().any(|it| !dependencies_of(it.command).is_empty()))
        })
    };
    disagreement.kind == DisagreementKind::OnlyOurs && disagreement.ours.iter().all(is_late)
}

/// The command that set an event. To set it again, without a reset between, has no effect.
fn effective_set(commands: &[ExecutedCommand<'_>], event: EventId) -> Option<usize> {
    let is_reset =
        |it: &ExecutedCommand<'_>| matches!(it.command, Command::ResetEvent { event: own, .. } if *own == event);
    let begin = commands.iter().rposition(is_reset).map_or(0, |it| it + 1);
    commands[begin..].iter().position(|it| is_set_of(it.command, event)).map(|it| begin + it)
}

fn waited_events(command: &Command) -> impl Iterator<Item = EventId> {
    let events: Vec<EventId> = match command {
        Command::WaitEvents(WaitEvents::Sync1 { events, .. }) => events.clone(),
        Command::WaitEvents(WaitEvents::Sync2 { events }) => events.iter().map(|it| it.0).collect(),
        _ => Vec::new(),
    };
    events.into_iter()
}

fn is_set_of(command: &Command, wanted: EventId) -> bool {
    match command {
        Command::SetEvent(SetEvent::Sync1 { event, .. } | SetEvent::Sync2 { event, .. }) => *event == wanted,
        _ => false,
    }
}

/// The writes of a transition are available by themselves. For the peer a load or store operation behind one, or a command
/// behind a barrier from all commands, needs a dependency that makes them available.
fn is_behind_available_transition(program: &Program, disagreement: &LayerDisagreement) -> bool {
    let in_pass = ["vkCmdBeginRenderPass", "vkCmdNextSubpass", "vkCmdEndRenderPass"];
    let is_in_pass = in_pass.iter().any(|it| disagreement.at.function.starts_with(it));
    let types = ["RenderPassLoadOpError", "RenderPassStoreOpError", "SubmitTimeError"];
    let is_operation = |hazard: &ReportedHazard| is_in_pass && types.contains(&hazard.message_type.as_str());
    let is_behind_transition = |hazard: &ReportedHazard| {
        hazard.code.ends_with("-AFTER-WRITE")
            && hazard.prior_access == "SYNC_IMAGE_LAYOUT_TRANSITION"
            && hazard.access != "SYNC_IMAGE_LAYOUT_TRANSITION"
            && (is_operation(hazard) || has_barrier_without_access(program, hazard))
    };
    disagreement.kind == DisagreementKind::OnlyPeer && disagreement.peer.iter().all(is_behind_transition)
}

/// Whether a barrier between the two commands comes after all commands and makes nothing available.
fn has_barrier_without_access(program: &Program, hazard: &ReportedHazard) -> bool {
    let all = S::ALL_COMMANDS.0;
    commands_between(program, hazard).iter().any(|between| {
        let dependencies = dependencies_of(between.command);
        match between.command {
            Command::Barrier(Barrier::Sync1 { src_stages, .. }) => {
                *src_stages == all && dependencies.iter().all(|it| it.scope.src_access == 0)
            }
            _ => dependencies.iter().any(|it| it.scope.src_stages == all && it.scope.src_access == 0),
        }
    })
}

/// Blending, and a test of depth or stencil that writes nothing, read an attachment. The peer knows of writes only: it
/// misses such a read, and what a write is ordered after because of it.
fn is_read_of_attachment(program: &Program, disagreement: &LayerDisagreement) -> bool {
    let reads = ["COLOR_ATTACHMENT_READ", "DEPTH_STENCIL_ATTACHMENT_READ"];
    let is_read = |hazard: &ReportedHazard| {
        hazard.at.function.starts_with("vkCmdDraw") && reads.iter().any(|it| hazard.access.contains(it))
    };
    let resource = resource_number(program, &disagreement.resource);
    let is_behind_read = |hazard: &ReportedHazard| {
        hazard.code == "SYNC-HAZARD-WRITE-AFTER-WRITE"
            && commands_between(program, hazard).iter().any(|it| reads_attachment(it.command, resource))
    };
    match disagreement.kind {
        DisagreementKind::OnlyOurs => disagreement.ours.iter().all(is_read),
        DisagreementKind::OnlyPeer => disagreement.peer.iter().all(is_behind_read),
        _ => false,
    }
}

fn reads_attachment(command: &Command, resource: Option<u32>) -> bool {
    let reads = A::COLOR_ATTACHMENT_READ.0 | A::DEPTH_STENCIL_ATTACHMENT_READ.0;
    let Command::Action(all) = command else { return false };
    all.iter().any(|it| Some(it.resource.0) == resource && it.access & reads != 0)
}

/// With a view mask, the peer performs the load operation of depth on stencil as well, and the other way round.
fn is_load_of_other_aspect(program: &Program, disagreement: &LayerDisagreement) -> bool {
    let resource = resource_number(program, &disagreement.resource);
    let Some(Command::BeginRenderPass { pass, views, .. }) = enclosing_instance(program, &disagreement.at) else {
        return false;
    };
    let pass = &program.render_passes[pass.0 as usize];
    let mut own = views.iter().zip(&pass.attachments).filter(|it| Some(it.0.resource.0) == resource);
    disagreement.kind == DisagreementKind::OnlyOurs
        && pass.subpasses.iter().any(|it| it.view_mask != 0)
        && own.any(|(_, it)| it.kind == AttachmentKind::DepthStencil && it.load != it.stencil_load)
        && disagreement.ours.iter().all(|it| it.prior_access == "SYNC_IMAGE_LAYOUT_TRANSITION")
}

/// Whether a render area is a part of an image.
fn is_larger(program: &Program, resource: u32, area: Area) -> bool {
    match &program.resources[resource as usize].kind {
        ResourceKind::Image(image) => (0..2).any(|it| area.extent[it] < image.extent[it]),
        ResourceKind::Buffer { .. } => false,
    }
}

/// In dynamic rendering a command clears a part of an attachment, and the store operation writes all of it. For the peer
/// the clear covers all of it, and it reports that one.
fn is_clear_of_part(program: &Program, disagreement: &LayerDisagreement) -> bool {
    let resource = resource_number(program, &disagreement.resource);
    let all = executed_commands(program);
    let end = all.iter().position(|it| disagreement.at.place() == Some((it.buffer, it.index))).unwrap_or(0);
    let inside = all[..end].iter().rev().take_while(|it| !matches!(it.command, Command::BeginRendering(_)));
    let is_write = |access: &Access| Some(access.resource.0) == resource && is_write(access.access);
    disagreement.kind == DisagreementKind::OnlyOurs
        && disagreement.at.function == "vkCmdEndRendering"
        && inside.map(|it| it.command).any(|it| matches!(it, Command::Action(all) if all.iter().any(is_write)))
}

/// A render pass resolves its render area, and changes the layout of all of the attachment. For the peer it resolves all
/// of it, and changes the layout in the render area.
fn is_resolve_of_part(program: &Program, disagreement: &LayerDisagreement) -> bool {
    let resource = resource_number(program, &disagreement.resource);
    let Some(Command::BeginRenderPass { pass, views, area }) = enclosing_instance(program, &disagreement.at) else {
        return false;
    };
    let is_it = |attachment: u32| views.get(attachment as usize).is_some_and(|it| Some(it.resource.0) == resource);
    let resolves = program.render_passes[pass.0 as usize].subpasses.iter().flat_map(|it| &it.resolves);
    let is_larger = resource.is_some_and(|it| is_larger(program, it, *area));
    let ends = ["vkCmdEndRenderPass", "vkCmdNextSubpass"].iter().any(|it| disagreement.at.function.starts_with(it));
    disagreement.kind == DisagreementKind::OnlyPeer
        && ends
        && is_larger
        && resolves.flat_map(|it| [it.source, it.target]).any(is_it)
}

/// A read behind another read that sees the write is not compared with the write. For the peer only the last read of a
/// stage counts.
fn is_first_of_several_reads(program: &Program, disagreement: &LayerDisagreement) -> bool {
    let resource = resource_number(program, &disagreement.resource);
    let has_reads = |hazard: &ReportedHazard| {
        let reads = commands_between(program, hazard).iter().filter(|it| reads_resource(it.command, resource)).count();
        // With the later command itself.
        hazard.code == "SYNC-HAZARD-READ-AFTER-WRITE" && reads > 2
    };
    disagreement.kind == DisagreementKind::OnlyPeer && disagreement.peer.iter().all(has_reads)
}

fn reads_resource(command: &Command, resource: Option<u32>) -> bool {
    match command {
        Command::Action(all) => all.iter().any(|it| Some(it.resource.0) == resource && !is_write(it.access)),
        _ => false,
    }
}

/// A fragment shader with early tests writes depth and stencil in that stage. For the peer every draw writes them late.
fn is_early_test(program: &Program, disagreement: &LayerDisagreement) -> bool {
    let (early, late) = (S::EARLY_FRAGMENT_TESTS.0, S::LATE_FRAGMENT_TESTS.0);
    let all = executed_commands(program);
    let at = all.iter().find(|it| disagreement.at.place() == Some((it.buffer, it.index)));
    let Some(Command::Action(accesses)) = at.map(|it| it.command) else { return false };
    let is_early = accesses.iter().any(|it| it.stage == early) && accesses.iter().all(|it| it.stage != late);
    let is_test = |it: &ReportedHazard| it.access.contains("FRAGMENT_TESTS");
    let one_reports = [DisagreementKind::OnlyPeer, DisagreementKind::OnlyOurs].contains(&disagreement.kind);
    one_reports && is_early && disagreement.ours.iter().chain(&disagreement.peer).all(is_test)
}

/// A presentation behind a read. For the peer a presentation writes once the image was presented before.
fn is_present_or_write(_: &Program, disagreement: &LayerDisagreement) -> bool {
    disagreement.kind == DisagreementKind::Code
        && disagreement.at.function == "vkQueuePresentKHR"
        && disagreement.peer.iter().all(|it| is_same_read_before_present(it, disagreement))
}

fn is_same_read_before_present(hazard: &ReportedHazard, disagreement: &LayerDisagreement) -> bool {
    let is_it = |it: &ReportedHazard| it.code == "SYNC-HAZARD-PRESENT-AFTER-READ" && it.prior == hazard.prior;
    hazard.code == "SYNC-HAZARD-WRITE-AFTER-READ" && disagreement.ours.iter().any(is_it)
}

/// The steps that submit the command buffer of a command.
fn submissions_of(program: &Program, command: &NamedCommand) -> Vec<usize> {
    let Some(buffer) = buffer_of(command) else { return Vec::new() };
    let has = |step: &HostStep| match step {
        HostStep::Submit { batches, .. } => {
            batches.iter().flat_map(|it| &it.command_buffers).any(|it| executes(program, it.0 as usize, buffer))
        }
        _ => false,
    };
    (0..program.steps.len()).filter(|it| has(&program.steps[*it])).collect()
}

fn buffer_of(command: &NamedCommand) -> Option<usize> {
    command.place().map(|it| it.0)
}

/// The queues that a command buffer is submitted to.
fn queues_of(program: &Program, command: &NamedCommand) -> Vec<QueueId> {
    buffer_of(command).map_or_else(Vec::new, |it| queues_of_buffer(program, it))
}

fn queues_of_buffer(program: &Program, buffer: usize) -> Vec<QueueId> {
    let submits = program.steps.iter().filter_map(|step| match step {
        HostStep::Submit { queue, batches, .. } => Some((*queue, batches)),
        _ => None,
    });
    let has = |batches: &[lavascope_sync_ir::SubmitBatch]| {
        batches.iter().flat_map(|it| &it.command_buffers).any(|it| executes(program, it.0 as usize, buffer))
    };
    submits.filter(|it| has(it.1)).map(|it| it.0).collect()
}

fn executes(program: &Program, own: usize, wanted: usize) -> bool {
    own == wanted
        || program.command_buffers[own].commands.iter().any(|command| match command {
            Command::Execute(all) => all.iter().any(|it| executes(program, it.0 as usize, wanted)),
            _ => false,
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peer_limits::LIMITS;

    const PAGE: &str = include_str!("../../../../docs/differences.md");

    /// The names in the first column of a table below a heading.
    fn rows(heading: &str) -> Vec<&'static str> {
        let (_, section) = PAGE.split_once(heading).expect("the heading is there");
        let section = section.split("\n#").next().unwrap_or_default();
        section.lines().filter_map(|it| it.strip_prefix("| `")?.split('`').next()).collect()
    }

    #[test]
    fn the_document_has_each_predicate_and_no_other() {
        assert_eq!(rows("### Predicates"), PREDICATES.iter().map(|it| it.name).collect::<Vec<_>>());
    }

    #[test]
    fn the_document_has_all_that_is_left_out() {
        assert_eq!(rows("### Left out of random programs"), LIMITS);
    }

    #[test]
    fn each_row_names_a_rule() {
        for name in PREDICATES.iter().map(|it| it.name).chain(LIMITS.iter().copied()) {
            let row = PAGE.lines().find(|it| it.starts_with(&format!("| `{name}`"))).expect("a row");
            let cells: Vec<&str> = row.trim_matches('|').split(" | ").collect();
            let names_rule = cells[2].contains('`') || cells[2].starts_with("none: ");
            assert!(cells.len() >= 4 && names_rule && cells[1].len() > 20, "{row}");
            assert!(["Lavascope", "both", "not judged"].contains(&cells[3].trim()), "{row}");
            let scenario = format!("(../crates/dev/differential/scenarios/{name}.vks)");
            assert!(LIMITS.contains(&name) || cells[4].contains(&scenario), "{row}");
        }
    }
}
