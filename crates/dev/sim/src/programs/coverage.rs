//! Counts what occurs in programs, so that a generator that forgets something is noticed.

use std::{collections::BTreeMap, fmt};

use lavascope_sync_ir::{
    Barrier, Certainty, Command, Dependency, DependencyTarget, HostStep, Program, ProgramLocation, RasterOrder,
    SetEvent, WaitEvents,
};

use super::coverage_patterns::pattern_features;
use lavascope_oracle::MemoryCell;
use lavascope_oracle::OracleReport;

/// How many programs have each thing at least once.
#[derive(Clone, Debug, Default)]
pub struct FeatureCoverage {
    pub programs: u64,
    pub clean: u64,
    /// Programs in which something waits for ever.
    pub blocked: u64,
    pub features: BTreeMap<&'static str, u64>,
}

/// All the things that [`FeatureCoverage`] may count in programs, hazards left out.
pub const FEATURES: &[&str] = &[
    "acquire",
    "acquire again",
    "action",
    "aliased buffers",
    "aliased images",
    "barrier 1",
    "barrier 2",
    "chain through a marker",
    "color write mask",
    "compatible aliases",
    "component mask",
    "depth resolve",
    "destroy",
    "device idle",
    "event race",
    "execute",
    "execute in a pass",
    "execute in rendering",
    "fence reset",
    "fence wait",
    "global dependency",
    "host access",
    "host event",
    "host event waited for",
    "host signal",
    "host timeline wait",
    "linear alias",
    "load before another subpass draws",
    "load none",
    "marker",
    "markers of one place",
    "multiview",
    "optimal alias",
    "ordered input",
    "ownership transfer",
    "ownership transfer 1",
    "ownership transfer back",
    "possible read",
    "present",
    "present after narrow signal",
    "queue idle",
    "raster order",
    "render pass",
    "rendering",
    "rendering resumed",
    "rendering resumed elsewhere",
    "reset event",
    "resolve",
    "resource dependency",
    "resubmission",
    "resubmission elsewhere",
    "set event 1",
    "set event 2",
    "several batches",
    "several queues",
    "several readers in one layout",
    "several read-only layouts",
    "shared memory",
    "signal",
    "storage write in a pass",
    "store none",
    "store none in a part",
    "subpass barrier",
    "timeline",
    "three subpasses",
    "transition",
    "two subpasses",
    "unused attachment changes its layout",
    "wait",
    "wait before signal",
    "wait event 1",
    "wait event 2",
];

impl FeatureCoverage {
    pub fn count(&mut self, program: &Program, outcome: &OracleReport) {
        self.programs += 1;
        self.clean += u64::from(outcome.hazards.is_empty());
        self.blocked += u64::from(!outcome.blocked.is_empty());
        let mut things = Vec::new();
        program.steps.iter().for_each(|it| step_features(it, &mut things));
        program.command_buffers.iter().flat_map(|it| &it.commands).for_each(|it| command_features(it, &mut things));
        program_features(program, &mut things);
        pattern_features(program, &mut things);
        for verdict in &outcome.hazards {
            things.extend(verdict.conflicts.iter().map(|it| it.kind.short()));
            if matches!(verdict.at, ProgramLocation::Step(_)) {
                things.push("hazard of the host");
            }
            if matches!(verdict.cell, MemoryCell::Memory { .. }) {
                things.push("hazard in memory");
            }
        }
        things.sort_unstable();
        things.dedup();
        for thing in things {
            *self.features.entry(thing).or_default() += 1;
        }
    }
}

impl fmt::Display for FeatureCoverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "programs {}, clean {}, parked {}", self.programs, self.clean, self.blocked)?;
        self.features.iter().try_for_each(|(name, count)| writeln!(f, "{count:>8} {name}"))
    }
}

fn program_features(program: &Program, things: &mut Vec<&'static str>) {
    let submits = || {
        program.steps.iter().filter_map(|step| {
            if let HostStep::Submit { queue, batches, .. } = step { Some((queue, batches)) } else { None }
        })
    };
    let mut queues: Vec<u32> = submits().map(|it| it.0.0).collect();
    queues.sort_unstable();
    queues.dedup();
    if queues.len() > 1 {
        things.push("several queues");
    }
    let mut buffers: Vec<u32> =
        submits().flat_map(|it| it.1).flat_map(|it| &it.command_buffers).map(|it| it.0).collect();
    let count = buffers.len();
    buffers.sort_unstable();
    buffers.dedup();
    if submits().any(|it| it.1.len() > 1) {
        things.push("several batches");
    }
    if buffers.len() < count {
        things.push("resubmission");
    }
    if program.resources.iter().any(|it| it.binding.is_some()) {
        things.push("shared memory");
    }
    if program.render_passes.iter().any(|it| it.subpasses.len() > 1) {
        things.push("two subpasses");
    }
    if program.render_passes.iter().flat_map(|it| &it.subpasses).any(|it| !it.resolves.is_empty()) {
        things.push("resolve");
    }
    if program.command_buffers.iter().any(|it| has_barrier_in_pass(&it.commands)) {
        things.push("subpass barrier");
    }
    let mut signaled = Vec::new();
    for batch in submits().flat_map(|it| it.1) {
        if batch.waits.iter().any(|it| it.point.value.is_some() && !signaled.contains(&it.point)) {
            things.push("wait before signal");
        }
        signaled.extend(batch.signals.iter().map(|it| it.point));
    }
}

/// Whether a barrier stands between the beginning and the end of a render pass.
fn has_barrier_in_pass(commands: &[Command]) -> bool {
    let mut is_inside = false;
    commands.iter().any(|command| {
        match command {
            Command::BeginRenderPass { .. } => is_inside = true,
            Command::EndRenderPass => is_inside = false,
            _ => {}
        }
        is_inside && matches!(command, Command::Barrier(_))
    })
}

fn step_features(step: &HostStep, things: &mut Vec<&'static str>) {
    let name = match step {
        HostStep::Submit { batches, .. } => {
            let waits = batches.iter().flat_map(|it| &it.waits);
            let points = waits.clone().map(|it| it.point);
            things.extend(points.filter(|it| it.value.is_some()).map(|_| "timeline"));
            things.extend(waits.map(|_| "wait"));
            things.extend(batches.iter().flat_map(|it| &it.signals).map(|_| "signal"));
            return;
        }
        HostStep::WaitFences(_) => "fence wait",
        HostStep::ResetFences(_) => "fence reset",
        HostStep::QueueIdle(_) => "queue idle",
        HostStep::DeviceIdle => "device idle",
        HostStep::WaitSemaphores(_) => "host timeline wait",
        HostStep::SignalSemaphore(_) => "host signal",
        HostStep::SetEvent(_) | HostStep::ResetEvent(_) => "host event",
        HostStep::HostAccess { .. } => "host access",
        HostStep::Acquire { .. } => "acquire",
        HostStep::Present { .. } => "present",
        HostStep::BindSparse { .. } => "sparse binding",
        HostStep::Destroy(_) => "destroy",
    };
    things.push(name);
}

fn command_features(command: &Command, things: &mut Vec<&'static str>) {
    let name = match command {
        Command::Action(accesses) => {
            if accesses.iter().any(|it| matches!(it.order, RasterOrder::Color | RasterOrder::DepthStencil)) {
                things.push("raster order");
            }
            if accesses.iter().any(|it| it.order.marker_stage().is_some()) {
                things.push("marker");
            }
            if accesses.iter().any(|it| it.certainty == Certainty::Unreported) {
                things.push("possible read");
            }
            let is_masked = |it: &lavascope_sync_ir::Region| matches!(it, lavascope_sync_ir::Region::Image(it) if it.components.0 != 15);
            if accesses.iter().any(|it| is_masked(&it.region)) {
                things.push("component mask");
            }
            "action"
        }
        Command::Barrier(Barrier::Sync1 { dependencies, .. }) => dependency_features("barrier 1", dependencies, things),
        Command::Barrier(Barrier::Sync2 { dependencies }) => dependency_features("barrier 2", dependencies, things),
        Command::SetEvent(SetEvent::Sync1 { .. }) => "set event 1",
        Command::SetEvent(SetEvent::Sync2 { .. }) => "set event 2",
        Command::ResetEvent { .. } => "reset event",
        Command::WaitEvents(WaitEvents::Sync1 { dependencies, .. }) => {
            dependency_features("wait event 1", dependencies, things)
        }
        Command::WaitEvents(WaitEvents::Sync2 { .. }) => "wait event 2",
        Command::BeginRenderPass { .. } => "render pass",
        Command::BeginRendering(rendering) => {
            if rendering.is_resuming {
                things.push("rendering resumed");
            }
            if rendering.attachments.iter().any(|it| it.resolve.is_some()) {
                things.push("resolve");
            }
            "rendering"
        }
        Command::Execute(_) => "execute",
        Command::NextSubpass | Command::EndRenderPass | Command::EndRendering => return,
    };
    things.push(name);
}

fn dependency_features(name: &'static str, all: &[Dependency], things: &mut Vec<&'static str>) -> &'static str {
    things.extend(all.iter().map(|dependency| match dependency.target {
        DependencyTarget::Global => "global dependency",
        DependencyTarget::Resource { .. } => "resource dependency",
        DependencyTarget::Transition { .. } => "transition",
        DependencyTarget::QueueFamilyTransfer { .. } => "ownership transfer",
    }));
    name
}
