//! Reports submissions that wait for a semaphore that nothing signals. They were not checked, and users must not take
//! that for "no hazard".

use lavascope_diag::{DebugLabels, Diagnostic, DiagnosticLocation, Severity};
use lavascope_explain::NEVER_EXECUTED;
use lavascope_sync_ir::{ProgramLocation, QueueId, SemaphorePoint};

use crate::device::ValidatedDevice;
use crate::findings::causes::{CauseRegistry, FindingKind, SiteKey};
use crate::findings::diagnostic_builder::DiagnosticBuilder;
use crate::findings::names::{diagnostic_object, object_text, queue_text, step_text};

/// The first blocked submission of a queue.
struct FirstBlockedSubmission {
    queue: QueueId,
    step: u32,
    /// Number of submissions behind it, which are blocked as well.
    waiting_behind: usize,
}

impl ValidatedDevice {
    /// The first blocked submission of each queue.
    fn first_blocked_submissions(&self) -> Vec<FirstBlockedSubmission> {
        let mut all: Vec<(QueueId, u32)> = self.engine.blocked_submissions();
        all.sort_unstable();
        all.dedup();
        let mut found: Vec<FirstBlockedSubmission> = Vec::new();
        for (queue, step) in all {
            match found.last_mut().filter(|it| it.queue == queue) {
                Some(first) => first.waiting_behind += 1,
                None => found.push(FirstBlockedSubmission { queue, step, waiting_behind: 0 }),
            }
        }
        found
    }
}

impl DiagnosticBuilder<'_> {
    /// Reports blocked submissions, when nothing can signal them any more.
    pub(crate) fn report_blocked(&self, causes: &mut CauseRegistry) {
        for first_blocked_submission in self.device.first_blocked_submissions() {
            let text = self.blocked_text(&first_blocked_submission);
            let (kind, resource) = (FindingKind::NeverExecuted, text.clone());
            let key = SiteKey { kind, at: None, prior: None, resource, is_observed: false, is_only_possible: false };
            let origin = self.origin(&ProgramLocation::Step(first_blocked_submission.step));
            causes.add(origin, key, Severity::Warning, || self.blocked_diagnostic(&first_blocked_submission, text));
        }
    }

    fn blocked_text(&self, blocked_submission: &FirstBlockedSubmission) -> String {
        let (objects, titles) = (&self.device.objects, self.object_names);
        let waits = self.device.engine.unsignaled(blocked_submission.queue);
        let semaphore = |point: &SemaphorePoint| {
            let name = objects.semaphores.get(&point.semaphore).map(|it| object_text(*it, titles));
            let name = name.unwrap_or_else(|| "a semaphore".to_owned());
            point.value.map_or_else(|| name.clone(), |value| format!("{name} with the value {value}"))
        };
        let waits: Vec<String> = waits.iter().map(semaphore).collect();
        let work = match self.device.history.step(blocked_submission.step) {
            Some(kept) => step_text(kept, objects, titles),
            None => format!("something on {}", queue_text(blocked_submission.queue, objects, titles)),
        };
        let behind = match blocked_submission.waiting_behind {
            0 => String::new(),
            1 => " One submission behind it waits with it.".to_owned(),
            more => format!(" {more} submissions behind it wait with it."),
        };
        format!(
            "Work of {work} was never executed, and not checked: it waits for {}, which nobody signals.{behind}",
            waits.join(" and ")
        )
    }

    fn blocked_diagnostic(&self, blocked_submission: &FirstBlockedSubmission, message: String) -> Diagnostic {
        let (objects, titles) = (&self.device.objects, self.object_names);
        let kept = self.device.history.step(blocked_submission.step);
        let text = kept.map_or_else(|| "not known any more".to_owned(), |it| step_text(it, objects, titles));
        let place = DiagnosticLocation {
            path: kept.iter().map(|it| it.source.command.desc().name.to_owned()).collect(),
            labels: kept
                .map_or_else(DebugLabels::default, |it| it.labels_at(&ProgramLocation::Step(blocked_submission.step))),
            ..DiagnosticLocation::new("submission", text.clone(), text)
        };
        Diagnostic {
            function: kept.map_or("", |it| it.source.command.desc().name).to_owned(),
            locations: vec![place],
            objects: objects
                .queue_objects
                .get(&blocked_submission.queue)
                .iter()
                .map(|it| diagnostic_object("VkQueue", **it, titles))
                .collect(),
            ..Diagnostic::new(NEVER_EXECUTED, Severity::Warning, message)
        }
    }
}
