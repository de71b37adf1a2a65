//! Parses small programs, in the notation of the counterexamples, for the tests of the oracle.
//!
//! Resource 0 is an image with a row of 8 texels of one byte each. Resource 1 is a buffer of 8 bytes. There are three
//! queues; the third belongs to another queue family.

use lavascope_abi::{AccessFlags2, Format, ImageAspectFlags, QueueFlags};
use lavascope_sync_ir::{
    Access, Area, Barrier, Certainty, Command, CommandBuffer, CommandBufferId, Components, Dependency,
    DependencyTarget, EventId, FenceId, HostStep, ImageDesc, ImageRegion, MarkerStage, Program, Queue,
    QueueFamilyTransfer, QueueId, RasterOrder, Region, Resource, ResourceId, ResourceKind, SemaphoreId, SemaphorePoint,
    SemaphoreSignal, SemaphoreWait, SetEvent, SubmitBatch, SyncScope, Tiling, WaitEvents,
};

use super::print::{ACCESSES, STAGES, print_place};
use crate::{OracleRules, find_hazards};

/// The hazards of a program, each once, as `at KIND prior` in the order of cells; or "clean".
pub fn hazard_summary(text: &str, rules: OracleRules) -> String {
    summary(&parse(text), rules)
}

pub fn summary(program: &Program, rules: OracleRules) -> String {
    let mut found = Vec::new();
    for verdict in find_hazards(program, rules).hazards {
        for partner in &verdict.conflicts {
            let line = format!("{} {} {}", print_place(&verdict.at), partner.kind.short(), print_place(&partner.at));
            if !found.contains(&line) {
                found.push(line);
            }
        }
    }
    if found.is_empty() { "clean".into() } else { found.join(", ") }
}

/// A program with two resources, three queues, semaphores and events, but no commands.
pub fn base_program() -> Program {
    let flags = QueueFlags::GRAPHICS.0 | QueueFlags::COMPUTE.0 | QueueFlags::TRANSFER.0;
    let image = ImageDesc {
        format: Format::R8_UNORM,
        extent: [8, 1, 1],
        mips: 1,
        layers: 1,
        tiling: Tiling::Optimal,
        alias: false,
    };
    Program {
        queues: [0, 0, 1].map(|family| Queue { family, flags }).to_vec(),
        resources: vec![
            Resource::new(ResourceKind::Image(image), None),
            Resource::new(ResourceKind::Buffer { size: 8 }, None),
        ],
        event_count: 4,
        semaphore_count: 4,
        fence_count: 4,
        ..Program::default()
    }
}

pub fn parse(text: &str) -> Program {
    let mut program = base_program();
    for line in text.lines().map(str::trim).filter(|it| !it.is_empty()) {
        if let Some(name) = line.strip_suffix(':').and_then(|it| it.strip_prefix("cb")) {
            let number: usize = name.parse().expect("a number");
            program.command_buffers.resize(program.command_buffers.len().max(number + 1), CommandBuffer::default());
            program.steps.clear();
            program.event_count = 4;
            CURRENT.set(number);
        } else if let Some(step) = step(line) {
            program.steps.push(step);
        } else {
            program.command_buffers[CURRENT.get()].commands.push(command(line));
        }
    }
    program
}

thread_local! {
    static CURRENT: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

fn step(line: &str) -> Option<HostStep> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let number = |at: usize| words[at].trim_start_matches(['q', 'e', 'f', 'r']).parse::<u32>().expect("a number");
    Some(match words[..2.min(words.len())] {
        ["submit", _] => submit(line, number(1)),
        ["idle", _] => HostStep::QueueIdle(QueueId(number(1))),
        ["device", "idle"] => HostStep::DeviceIdle,
        ["fence", "wait"] => HostStep::WaitFences(vec![FenceId(number(2))]),
        ["fence", "reset"] => HostStep::ResetFences(vec![FenceId(number(2))]),
        ["host", "set"] => HostStep::SetEvent(EventId(number(2))),
        ["host", "reset"] => HostStep::ResetEvent(EventId(number(2))),
        ["host", "signal"] => HostStep::SignalSemaphore(point(words[2])),
        ["host", "wait"] => HostStep::WaitSemaphores(vec![point(words[2])]),
        ["host", access] => {
            let (resource, region) = target(&words[2..].join(" "));
            HostStep::HostAccess { resource, region, is_write: access == "write", certainty: Certainty::Certain }
        }
        ["acquire", _] => {
            HostStep::Acquire { image: ResourceId(number(1)), semaphore: Some(SemaphoreId(number(2))), fence: None }
        }
        ["present", _] => HostStep::Present {
            queue: QueueId(number(1)),
            images: vec![ResourceId(number(2))],
            waits: words[3..].iter().map(|it| SemaphoreId(it.parse().expect("a number"))).collect(),
        },
        ["destroy", _] => HostStep::Destroy(ResourceId(number(1))),
        _ => return None,
    })
}

fn submit(line: &str, queue: u32) -> HostStep {
    let (line, fence) = line.split_once(" fence ").map_or((line, None), |(line, fence)| (line, Some(fence)));
    let batches = line.split(';').map(|batch| {
        let list = |name: &str| {
            let rest = batch.split_once(&format!("{name}[")).map_or("", |it| it.1);
            rest.split_once(']').map_or("", |it| it.0)
        };
        let pairs = |name: &str| -> Vec<(SemaphorePoint, u64)> {
            let parts = list(name).split(')').filter_map(|it| it.split_once('('));
            parts
                .map(|(_, it)| it.split_once(',').expect("a semaphore and stages"))
                .map(|(semaphore, mask)| (point(semaphore), stages(mask.trim().trim_matches('"'))))
                .collect()
        };
        SubmitBatch {
            waits: pairs("wait").into_iter().map(|(point, stages)| SemaphoreWait { point, stages }).collect(),
            command_buffers: buffers(list("cbs")),
            signals: pairs("sig").into_iter().map(|(point, stages)| SemaphoreSignal { point, stages }).collect(),
        }
    });
    let fence = fence.map(|it| FenceId(it.trim().parse().expect("a number")));
    HostStep::Submit { queue: QueueId(queue), batches: batches.collect(), fence }
}

fn point(text: &str) -> SemaphorePoint {
    let (semaphore, value) = text.split_once('=').map_or((text, None), |(it, value)| (it, Some(value)));
    SemaphorePoint {
        semaphore: SemaphoreId(semaphore.trim().parse().expect("a number")),
        value: value.map(|it| it.trim().parse().expect("a number")),
    }
}

fn buffers(text: &str) -> Vec<CommandBufferId> {
    let parts = text.split(',').map(|it| it.trim().trim_start_matches("cb")).filter(|it| !it.is_empty());
    parts.map(|it| CommandBufferId(it.parse().expect("a number"))).collect()
}

fn command(line: &str) -> Command {
    let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
    let event = |text: &str| EventId(text.trim_start_matches('e').parse().expect("a number"));
    match word {
        "barrier" => Command::Barrier(Barrier::Sync2 { dependencies: elements(rest) }),
        "barrier1" => {
            let (src_stages, dst_stages, dependencies) = version_one(rest);
            Command::Barrier(Barrier::Sync1 { src_stages, dst_stages, dependencies })
        }
        "set" => {
            let (name, rest) = rest.split_once(' ').expect("an event and its dependencies");
            Command::SetEvent(SetEvent::Sync2 { event: event(name), dependencies: elements(rest) })
        }
        "set1" => {
            let (name, mask) = rest.split_once(' ').expect("an event and its stages");
            Command::SetEvent(SetEvent::Sync1 { event: event(name), stages: stages(mask) })
        }
        "reset" => Command::ResetEvent { event: event(rest), stages: 0 },
        "wait" => {
            let (name, rest) = rest.split_once(' ').expect("an event and its dependencies");
            Command::WaitEvents(WaitEvents::Sync2 { events: vec![(event(name), elements(rest))] })
        }
        "wait1" => {
            let (names, rest) = rest.split_once(' ').expect("events and masks");
            let (src_stages, dst_stages, dependencies) = version_one(rest);
            let events = names.split(',').map(event).collect();
            Command::WaitEvents(WaitEvents::Sync1 { events, src_stages, dst_stages, dependencies })
        }
        "exec" => Command::Execute(buffers(rest)),
        _ => Command::Action(line.split(" + ").map(access).collect()),
    }
}

fn version_one(text: &str) -> (u64, u64, Vec<Dependency>) {
    let (masks, rest) = text.split_once(':').expect("stages before a colon");
    let (src, dst) = masks.split_once("->").expect("two masks");
    (stages(src), stages(dst), elements(rest))
}

fn elements(text: &str) -> Vec<Dependency> {
    text.split(" + ").map(str::trim).filter(|it| !it.is_empty()).map(element).collect()
}

fn element(text: &str) -> Dependency {
    let (what, masks) = text.split_once('[').expect("masks in brackets");
    let mask = |name: &str| {
        let rest = format!(" {masks}");
        let rest = rest.split_once(&format!(" {name}=")).map_or("", |it| it.1).to_owned();
        rest.split([' ', ']']).next().unwrap_or("").to_owned()
    };
    let scope = SyncScope {
        src_stages: stages(&mask("S")),
        src_access: accesses(&mask("SA")),
        dst_stages: stages(&mask("D")),
        dst_access: accesses(&mask("DA")),
    };
    let (name, part) = what.split_once('(').map_or((what, ""), |(name, part)| (name, part.trim_end_matches(')')));
    if name == "Global" {
        return Dependency { scope, target: DependencyTarget::Global };
    }
    let (resource, region) = target(&format!("[{})", part.replacen("r1 ", "", 1)));
    let (resource, region) =
        if part.starts_with("r1") { target(&part.replacen("r1 ", "r1 [", 1)) } else { (resource, region) };
    let ownership = |is_transition| QueueFamilyTransfer { src_family: 0, dst_family: 1, is_transition };
    let what = match name {
        "Res" => DependencyTarget::Resource { resource, region },
        "Trans" => DependencyTarget::Transition { resource, region },
        "Own" => DependencyTarget::QueueFamilyTransfer { resource, region, transfer: ownership(false) },
        "OwnTrans" => DependencyTarget::QueueFamilyTransfer { resource, region, transfer: ownership(true) },
        _ => panic!("no such element: {name}"),
    };
    Dependency { scope, target: what }
}

fn access(text: &str) -> Access {
    let (kind, rest) = text.trim().split_once(' ').expect("a kind and a target");
    let (stage, access) = kind.split_once('.').expect("a stage and an access");
    let (resource, region) = target(rest);
    let order = match rest.split_once('@').map(|it| it.1) {
        Some("color") => RasterOrder::Color,
        Some("depth") => RasterOrder::DepthStencil,
        Some("atomic") => RasterOrder::Atomic,
        Some(stage) => RasterOrder::marker(MarkerStage::from_stages(stages(stage))),
        _ => RasterOrder::None,
    };
    Access { order, ..Access::new(resource, region, stages(stage), accesses(access)) }
}

fn target(text: &str) -> (ResourceId, Region) {
    let text = text.split('@').next().unwrap_or(text).trim();
    let is_buffer = text.starts_with("r1");
    let numbers: Vec<u32> = text
        .trim_start_matches("r1")
        .split([',', '[', ')', ' '])
        .filter(|it| !it.is_empty())
        .map(|it| it.parse().expect("a number"))
        .collect();
    let (from, to) = (numbers[0], numbers[1]);
    if is_buffer {
        return (ResourceId(1), Region::Buffer(u64::from(from)..u64::from(to)));
    }
    (ResourceId(0), Region::Image(texels(from, to)))
}

pub fn texels(from: u32, to: u32) -> ImageRegion {
    ImageRegion {
        aspects: ImageAspectFlags::COLOR.0,
        mips: 0..1,
        layers: 0..1,
        area: Some(Area { offset: [from, 0, 0], extent: [to - from, 1, 1] }),
        components: Components::ALL,
    }
}

pub fn stages(text: &str) -> u64 {
    let parts = text.trim().split('|').filter(|it| !it.is_empty());
    parts.fold(0, |all, part| all | STAGES.iter().find(|it| it.0 == part).unwrap_or_else(|| panic!("{part}")).1)
}

/// An access may follow the name of a stage, as in `TR.W`. The stage is ignored.
pub fn accesses(text: &str) -> u64 {
    let parts = text.trim().split('|').filter(|it| !it.is_empty());
    parts.fold(0, |all, part| {
        let name = part.split_once('.').map_or(part, |it| it.1);
        let known = ACCESSES.iter().find(|it| it.0 == name).map(|it| it.1);
        let any = (name == "*").then_some(AccessFlags2::MEMORY_READ.0 | AccessFlags2::MEMORY_WRITE.0);
        all | known.or(any).unwrap_or_else(|| panic!("{name}"))
    })
}
