//! Reads a message into the types of `sync-ir`.

use std::ops::Range;

use lavascope_abi::ImageAspectFlags as Aspects;
use lavascope_explain::fault_code;
use lavascope_scenario::Scenario;
use lavascope_scenario_live::{ReceivedMessage, SCRATCH_NAME, command_label};
use lavascope_sync_ir::{
    Area, Command, CommandBufferId, CommandLocation, Components, Findings, Hazard, HazardKind, HostStep, ImageRegion,
    Program, ProgramLocation, Region, ResourceId, ResourceKind, UndefinedContents, UndefinedContentsKind,
};

enum FindingKind {
    Hazard(HazardKind),
    Fault(UndefinedContentsKind),
}

/// Adds the hazard of a message; returns an error if it cannot be read.
pub(crate) fn read_message(
    message: &ReceivedMessage,
    prefix: &str,
    scenario: &Scenario,
    program: &Program,
    steps: &[u64],
    found: &mut Findings,
) -> Result<(), String> {
    // Races of commands on events, which are about no memory: scenarios have no word for them.
    if message.name.starts_with("SYNC-vkCmd") {
        return Ok(());
    }
    let kind = kind(&message.name).ok_or("a message of another kind")?;
    let first = message.text.lines().next().unwrap_or_default();
    let object = resource_name(first).ok_or("a message about no resource")?;
    let name = object.strip_prefix(prefix).ok_or("a message about another performance")?;
    if name == SCRATCH_NAME {
        return Ok(());
    }
    let resource = scenario.names.resources.iter().position(|it| it == name).ok_or("an unknown resource")?;
    let place = |role: &str| {
        let own = |it| place(program, steps, it).ok_or_else(|| format!("an unknown place: {it}"));
        line(&message.text, role).map(own).transpose()
    };
    let at = place("access")?.ok_or("a message without a place")?;
    let regions = regions(first, object, &program.resources[resource].kind)?;
    let resource = ResourceId(resource as u32);
    for region in regions {
        let at = at.clone();
        match kind {
            FindingKind::Hazard(kind) => {
                let prior = place("prior access")?.ok_or("a hazard with one place")?;
                found.hazards.push(Hazard { kind, at, prior, resource, region });
            }
            FindingKind::Fault(kind) => {
                let prior = place("cause")?;
                found.faults.push(UndefinedContents { kind, at, prior, resource, region });
            }
        }
    }
    Ok(())
}

/// The command that makes a hazard inside of a command buffer reports it. Other hazards are reported by the call that
/// leads to them: a submission, a presentation, or a host operation.
pub(crate) fn check_call(message: &ReceivedMessage) -> Result<(), String> {
    let access = line(&message.text, "access").unwrap_or_default();
    let expected: &[&str] = match (access.contains(" of VkCommandBuffer#"), access.contains(" submit ")) {
        (true, false) => &["cmd_"],
        (true, true) => &["queue_submit"],
        (false, _) => &["queue_present", "flush_", "invalidate_"],
    };
    match expected.iter().any(|it| message.call.starts_with(it)) {
        true => Ok(()),
        false => Err(format!("reported in {}, and not in one of {expected:?}", message.call)),
    }
}

/// The name of the resource that a text is about: `VkBuffer#3 "name"`.
fn resource_name(text: &str) -> Option<&str> {
    let at = ["VkBuffer#", "VkImage#"].into_iter().filter_map(|it| text.find(it)).min()?;
    text[at..].split('"').nth(1)
}

fn kind(name: &str) -> Option<FindingKind> {
    if let Some(rest) = name.strip_prefix("SYNC-HAZARD-") {
        return HazardKind::ALL.into_iter().find(|it| it.name() == rest).map(FindingKind::Hazard);
    }
    let is_it = |kind: &UndefinedContentsKind| [false, true].into_iter().any(|it| fault_code(*kind, it) == name);
    UndefinedContentsKind::ALL.into_iter().find(is_it).map(FindingKind::Fault)
}

/// `…: vkCmdDraw in 0.3`, in a secondary command buffer `…: vkCmdDraw in 1.0::0.3` with the label of what executes it,
/// or `vkQueuePresentKHR, call 12 of thread 0`.
fn place(program: &Program, steps: &[u64], text: &str) -> Option<ProgramLocation> {
    if let Some((_, labels)) = text.rsplit_once(" in ") {
        let wanted = labels.rsplit("::").next().unwrap_or(labels);
        return executions(program).into_iter().find(|(own, _)| own == wanted).map(|it| it.1);
    }
    let call = call(text)?;
    steps.iter().position(|it| *it == call).map(|it| ProgramLocation::Step(it as u32))
}

/// The place that a message has for a role.
pub(crate) fn line<'a>(text: &'a str, role: &str) -> Option<&'a str> {
    text.lines().find_map(|it| it.strip_prefix("  ")?.strip_prefix(role)?.strip_prefix(": "))
}

/// The number of a call, in the words for what the host does.
pub(crate) fn call(place: &str) -> Option<u64> {
    place.split_once(", call ")?.1.split(' ').next()?.parse().ok()
}

/// Where commands are executed, by their labels.
fn executions(program: &Program) -> Vec<(String, ProgramLocation)> {
    let mut found = Vec::new();
    for (step, host_step) in program.steps.iter().enumerate() {
        let HostStep::Submit { batches, .. } = host_step else { continue };
        for (batch, submit_batch) in batches.iter().enumerate() {
            for (primary, id) in submit_batch.command_buffers.iter().enumerate() {
                let at = CommandLocation {
                    step: step as u32,
                    batch: batch as u32,
                    primary: primary as u32,
                    path: Vec::new(),
                };
                add_executions(program, *id, &at, &mut found);
            }
        }
    }
    found
}

fn add_executions(
    program: &Program,
    id: CommandBufferId,
    at: &CommandLocation,
    found: &mut Vec<(String, ProgramLocation)>,
) {
    for (index, command) in program.command_buffers[id.0 as usize].commands.iter().enumerate() {
        let mut own = at.clone();
        own.path.push(index as u32);
        if let Command::Execute(all) = command {
            for (place, executed) in all.iter().enumerate() {
                let mut inner = own.clone();
                inner.path.push(place as u32);
                add_executions(program, *executed, &inner, found);
            }
        }
        found.push((command_label(id.0, index as u32), ProgramLocation::Command(own)));
    }
}

/// The parts of a resource that a text names.
fn regions(text: &str, object: &str, kind: &ResourceKind) -> Result<Vec<Region>, String> {
    let name = format!("{object:?}");
    let mut found = Vec::new();
    for (at, _) in text.match_indices(&name) {
        let mut reader = RangeParser { rest: &text[at + name.len()..] };
        found.push(reader.region(kind).ok_or_else(|| format!("no part of a resource: {}", reader.rest))?);
        // Without an explanation the name is not repeated.
        while let Some(rest) = reader.rest.strip_prefix(", ").filter(|it| it.starts_with(['[', '.'])) {
            reader.rest = rest;
            found.push(reader.region(kind).ok_or_else(|| format!("no part of a resource: {}", reader.rest))?);
        }
    }
    if found.is_empty() { Err("a message without a part of its resource".to_owned()) } else { Ok(found) }
}

struct RangeParser<'a> {
    rest: &'a str,
}

impl RangeParser<'_> {
    fn take(&mut self, text: &str) -> bool {
        let rest = self.rest.strip_prefix(text);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn number(&mut self) -> Option<u64> {
        let end = self.rest.find(|it: char| !it.is_ascii_digit()).unwrap_or(self.rest.len());
        let number = self.rest[..end].parse().ok()?;
        self.rest = &self.rest[end..];
        Some(number)
    }

    fn range(&mut self) -> Option<Range<u64>> {
        let start = self.number()?;
        if !self.take("..") {
            return Some(start..start + 1);
        }
        Some(start..self.number()?)
    }

    fn region(&mut self, kind: &ResourceKind) -> Option<Region> {
        if let ResourceKind::Buffer { .. } = kind {
            let bytes = if self.take("[") { self.range()? } else { return None };
            return self.take("]").then_some(Region::Buffer(bytes));
        }
        let small = |it: Range<u64>| it.start as u32..it.end as u32;
        let mips = if self.take(".mip") { small(self.range()?) } else { return None };
        let layers = if self.take(".layer") { small(self.range()?) } else { return None };
        let names = [
            (".depth", Aspects::DEPTH.0),
            (".stencil", Aspects::STENCIL.0),
            (".plane0", Aspects::PLANE_0.0),
            (".plane1", Aspects::PLANE_1.0),
            (".plane2", Aspects::PLANE_2.0),
        ];
        let mut aspects = 0;
        for (name, bit) in names {
            if self.take(name) {
                aspects |= bit;
            }
        }
        let components = self.components();
        let area = if self.take("[") { Some(self.area()?) } else { None };
        let aspects = if aspects == 0 { Aspects::COLOR.0 } else { aspects };
        Some(Region::Image(ImageRegion { aspects, mips, layers, area, components }))
    }

    fn components(&mut self) -> Components {
        let names = ['r', 'g', 'b', 'a'];
        let Some(rest) = self.rest.strip_prefix('.').filter(|it| it.starts_with(names)) else {
            return Components::ALL;
        };
        let mut bits = 0;
        let count = rest.chars().take_while(|it| names.contains(it)).count();
        for character in rest[..count].chars() {
            bits |= 1 << names.iter().position(|own| *own == character).unwrap_or(0);
        }
        self.rest = &rest[count..];
        Components(bits)
    }

    fn area(&mut self) -> Option<Area> {
        let mut area = Area { offset: [0; 3], extent: [1; 3] };
        for axis in 0..3 {
            if axis > 0 && !self.take(", ") {
                return None;
            }
            let range = self.range()?;
            area.offset[axis] = range.start as u32;
            area.extent[axis] = (range.end - range.start) as u32;
        }
        self.take("]").then_some(area)
    }
}
