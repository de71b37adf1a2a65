//! Turns reads of undefined contents and other faults of resource contents into diagnostics.

use std::collections::HashSet;

use lavascope_diag::{AccessText, Diagnostic, DiagnosticLocation, Fix, Property, Severity};
use lavascope_sync_ir::{Program, ProgramLocation, Region, ResourceKind, UndefinedContents, UndefinedContentsKind};

use super::hazard::diagnostic_location;
use crate::ProgramNames;
use crate::follow::dependency::recorded_location;
use crate::text::message::regions_text;
use crate::text::title::{command_word, fitting_title, name_of};

/// The diagnostics of the given faults: one for each cause, with the number of executions.
pub fn diagnose_faults(program: &Program, found: &[UndefinedContents], names: &dyn ProgramNames) -> Vec<Diagnostic> {
    fault_causes(program, found).into_iter().map(|(it, count)| diagnostic(program, found, it, count, names)).collect()
}

/// The first fault of each cause, and how often its command was executed with this fault.
/// [`diagnose_faults`] makes one diagnostic of each.
pub fn fault_causes<'a>(program: &Program, found: &'a [UndefinedContents]) -> Vec<(&'a UndefinedContents, u64)> {
    let mut firsts: Vec<(&UndefinedContents, u64)> = Vec::new();
    let mut executions = HashSet::new();
    for undefined_contents in found {
        // Several regions of a resource are one fault.
        let is_new = executions.insert((
            undefined_contents.kind,
            &undefined_contents.at,
            &undefined_contents.prior,
            undefined_contents.resource,
        ));
        match firsts.iter_mut().find(|(first, _)| is_same_cause(program, first, undefined_contents)) {
            Some((_, count)) => *count += u64::from(is_new),
            None => firsts.push((undefined_contents, 1)),
        }
    }
    firsts
}

/// The code of a fault. If the Khronos layer reports the same fault, it is the Khronos layer's
/// code.
pub const fn fault_code(kind: UndefinedContentsKind, is_image: bool) -> &'static str {
    match kind {
        UndefinedContentsKind::AcquireWithoutRelease if is_image => "UNASSIGNED-VkImageMemoryBarrier-image-00004",
        UndefinedContentsKind::AcquireWithoutRelease => "UNASSIGNED-VkBufferMemoryBarrier-buffer-00004",
        UndefinedContentsKind::ReadWithoutAcquire => "SYNC-CONTENTS-READ-WITHOUT-ACQUIRE",
        UndefinedContentsKind::ReadWithoutTransfer => "SYNC-CONTENTS-READ-WITHOUT-TRANSFER",
        UndefinedContentsKind::WriteToPreserved => "SYNC-CONTENTS-WRITE-TO-PRESERVED",
        UndefinedContentsKind::ReadNotPreserved => "SYNC-CONTENTS-READ-NOT-PRESERVED",
    }
}

/// Whether two faults have the same recorded commands. Several executions of them are one cause.
fn is_same_cause(program: &Program, one: &UndefinedContents, other: &UndefinedContents) -> bool {
    let of = |place: &ProgramLocation| recorded_location(program, place).ok_or_else(|| place.clone());
    let key = |it: &UndefinedContents| (it.kind, it.resource, of(&it.at), it.prior.as_ref().map(of));
    key(one) == key(other)
}

fn diagnostic(
    program: &Program,
    all: &[UndefinedContents],
    fault: &UndefinedContents,
    count: u64,
    names: &dyn ProgramNames,
) -> Diagnostic {
    let kind = program.resources.get(fault.resource.0 as usize).map(|it| &it.kind);
    let is_image = matches!(kind, Some(ResourceKind::Image(_)));
    let (later, earlier) = actions(fault.kind);
    let resource = name_of(fault.resource, names);
    let place = |role: &'static str, at: &ProgramLocation, action: &str| {
        let made = diagnostic_location(role, at, 0, program, names);
        let access = AccessText {
            function: names.function(at, 0),
            action: action.replace("{}", &resource),
            ..AccessText::default()
        };
        DiagnosticLocation { access, ..made }
    };
    let mut places = vec![place("access", &fault.at, later)];
    places.extend(fault.prior.as_ref().map(|it| place("cause", it, earlier)));
    let mut facts = vec![Property { key: "fault_type", value: fault.kind.short().to_owned() }];
    if let ProgramLocation::Command(at) = &fault.at {
        facts.push(Property { key: "submit_index", value: names.submit_index(at.step).to_string() });
        facts.push(Property { key: "batch_index", value: at.batch.to_string() });
        facts.push(Property { key: "command_buffer_index", value: at.primary.to_string() });
    }
    Diagnostic {
        function: names.function(&fault.at, 0),
        title: title(fault, names),
        locations: places,
        objects: vec![names.object(fault.resource)],
        properties: facts,
        explanation: vec![fault_reason(fault.kind).to_owned()],
        fixes: vec![Fix::advice(fix_text(fault.kind))],
        count,
        ..Diagnostic::new(fault_code(fault.kind, is_image), fault_severity(fault.kind), message(fault, all, names))
    }
}

/// The severity of a fault. A read of undefined contents is only a warning, because the program may
/// ignore the values.
pub const fn fault_severity(kind: UndefinedContentsKind) -> Severity {
    match kind {
        UndefinedContentsKind::AcquireWithoutRelease | UndefinedContentsKind::WriteToPreserved => Severity::Error,
        UndefinedContentsKind::ReadWithoutAcquire
        | UndefinedContentsKind::ReadWithoutTransfer
        | UndefinedContentsKind::ReadNotPreserved => Severity::Warning,
    }
}

fn message(fault: &UndefinedContents, all: &[UndefinedContents], names: &dyn ProgramNames) -> String {
    let key = |it: &UndefinedContents| (it.kind, it.at.clone(), it.prior.clone(), it.resource);
    let same = all.iter().filter(|it| key(it) == key(fault)).map(|it| it.region.clone());
    let resource = regions_text(fault.resource, &Region::join_all(same), names);
    let function = names.function(&fault.at, 0);
    let prior = fault.prior.as_ref().map_or(String::new(), |it| names.location(it));
    let what = match fault.kind {
        UndefinedContentsKind::AcquireWithoutRelease => {
            format!("acquires {resource} for its queue family, but no release that matches was executed before.")
        }
        UndefinedContentsKind::ReadWithoutAcquire => {
            format!("reads {resource}, which {prior} released to another queue family, and nobody has acquired.")
        }
        UndefinedContentsKind::ReadWithoutTransfer => {
            format!("reads {resource}, which another queue family owns since {prior}: its contents are undefined.")
        }
        UndefinedContentsKind::WriteToPreserved => {
            format!("writes to {resource}, which the subpass that began with {prior} preserves.")
        }
        UndefinedContentsKind::ReadNotPreserved => {
            format!("reads {resource}, whose contents are undefined since the subpass that began with {prior}.")
        }
    };
    format!("{function}() {what}")
}

/// What the command of a fault and the command that caused it do with the resource.
const fn actions(kind: UndefinedContentsKind) -> (&'static str, &'static str) {
    match kind {
        UndefinedContentsKind::AcquireWithoutRelease => ("acquires {}", "uses {}"),
        UndefinedContentsKind::ReadWithoutAcquire => ("reads {}", "releases {}"),
        UndefinedContentsKind::ReadWithoutTransfer => ("reads {}", "gives {} to its queue family"),
        UndefinedContentsKind::WriteToPreserved => ("writes {}", "begins the subpass that preserves {}"),
        UndefinedContentsKind::ReadNotPreserved => ("reads {}", "begins the subpass that does not preserve {}"),
    }
}

fn title(fault: &UndefinedContents, names: &dyn ProgramNames) -> String {
    let function = names.function(&fault.at, 0);
    let who = command_word(&function);
    fitting_title(&name_of(fault.resource, names), |resource| match fault.kind {
        UndefinedContentsKind::AcquireWithoutRelease => {
            format!("{who} acquires {resource} for its queue family without a matching release")
        }
        UndefinedContentsKind::ReadWithoutAcquire => {
            format!("{who} reads {resource}, which was released to another queue family and never acquired")
        }
        UndefinedContentsKind::ReadWithoutTransfer => {
            format!("{who} reads {resource}, which belongs to another queue family, without a transfer")
        }
        UndefinedContentsKind::WriteToPreserved => format!("{who} writes {resource}, which the subpass preserves"),
        UndefinedContentsKind::ReadNotPreserved => {
            format!("{who} reads {resource}, which an earlier subpass neither used nor preserved")
        }
    })
}

fn fault_reason(kind: UndefinedContentsKind) -> &'static str {
    match kind {
        UndefinedContentsKind::AcquireWithoutRelease => {
            "a transfer takes a release on a queue of the source family and then an acquire, with equal families, \
             ranges and layouts"
        }
        UndefinedContentsKind::ReadWithoutAcquire => "between the two halves of a transfer no family owns the resource",
        UndefinedContentsKind::ReadWithoutTransfer => {
            "the resource has VK_SHARING_MODE_EXCLUSIVE: semaphores order the accesses, but only a transfer carries \
             the contents to another family"
        }
        UndefinedContentsKind::WriteToPreserved => {
            "what a subpass preserves it must leave as it is inside the render area"
        }
        UndefinedContentsKind::ReadNotPreserved => {
            "an attachment that a subpass neither uses nor preserves is undefined for the subpasses that depend on it"
        }
    }
}

fn fix_text(kind: UndefinedContentsKind) -> &'static str {
    match kind {
        UndefinedContentsKind::AcquireWithoutRelease => "record the matching release where the resource was last used",
        UndefinedContentsKind::ReadWithoutAcquire => "record the acquire before the read",
        UndefinedContentsKind::ReadWithoutTransfer => {
            "record a release and an acquire, or create the resource with VK_SHARING_MODE_CONCURRENT"
        }
        UndefinedContentsKind::WriteToPreserved => "use the attachment in the subpass instead of preserving it",
        UndefinedContentsKind::ReadNotPreserved => "add the attachment to pPreserveAttachments of that subpass",
    }
}
