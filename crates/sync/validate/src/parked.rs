//! Work that waits for what nobody signals: nothing of it was looked at, and nobody may take that for clean.

use lavascope_diag::{Diagnostic, Labels, Place, Severity};
use lavascope_explain::NEVER_EXECUTED;
use lavascope_sync_ir::{SemaphorePoint, QueueId};

use crate::causes::{Cause, Causes, What};
use crate::device::Device;
use crate::explain::Teller;
use crate::names::{labels, named, queue_text, step_text, title};

/// The first work that waits on a queue.
struct Parked {
    queue: QueueId,
    step: u32,
    /// Submissions behind it, which wait with it.
    behind: usize,
}

impl Device {
    /// The first work of each queue that waits.
    fn parked(&self) -> Vec<Parked> {
        let mut all: Vec<(QueueId, u32)> = self.live.parked();
        all.sort_unstable();
        all.dedup();
        let mut found: Vec<Parked> = Vec::new();
        for (queue, step) in all {
            match found.last_mut().filter(|it| it.queue == queue) {
                Some(first) => first.behind += 1,
                None => found.push(Parked { queue, step, behind: 0 }),
            }
        }
        found
    }
}

impl Teller<'_> {
    /// Tells what waits, now that nobody will signal it any more.
    pub(crate) fn parked(&self, causes: &mut Causes) {
        for it in self.device.parked() {
            let text = self.parked_text(&it);
            let (kind, resource) = (What::NeverExecuted, text.clone());
            let cause = Cause { kind, at: None, prior: None, resource, is_observed: false };
            causes.add(self.from(), cause, |_| self.parked_diagnostic(&it, text));
        }
    }

    fn parked_text(&self, it: &Parked) -> String {
        let (objects, titles) = (&self.device.objects, self.titles);
        let waits = self.device.live.unsignaled(it.queue);
        let semaphore = |point: &SemaphorePoint| {
            let name = objects.semaphores.get(&point.semaphore).map(|it| title(*it, titles));
            let name = name.unwrap_or_else(|| "a semaphore".to_owned());
            point.value.map_or_else(|| name.clone(), |value| format!("{name} with the value {value}"))
        };
        let waits: Vec<String> = waits.iter().map(semaphore).collect();
        let work = match self.device.window.step(it.step) {
            Some(kept) => step_text(kept, objects, titles),
            None => format!("something on {}", queue_text(it.queue, objects, titles)),
        };
        let behind = match it.behind {
            0 => String::new(),
            1 => " One submission behind it waits with it.".to_owned(),
            more => format!(" {more} submissions behind it wait with it."),
        };
        format!(
            "Work of {work} was never executed, and not checked: it waits for {}, which nobody signals.{behind}",
            waits.join(" and ")
        )
    }

    fn parked_diagnostic(&self, it: &Parked, message: String) -> Diagnostic {
        let (objects, titles) = (&self.device.objects, self.titles);
        let kept = self.device.window.step(it.step);
        let text = kept.map_or_else(|| "not known any more".to_owned(), |it| step_text(it, objects, titles));
        let place = Place {
            path: kept.iter().map(|it| it.source.command.desc().name.to_owned()).collect(),
            labels: kept.map_or_else(Labels::default, |it| labels(it, None)),
            ..Place::new("submission", text.clone(), text)
        };
        Diagnostic {
            function: kept.map_or("", |it| it.source.command.desc().name).to_owned(),
            places: vec![place],
            objects: objects.queue_objects.get(&it.queue).iter().map(|it| named("VkQueue", **it, titles)).collect(),
            ..Diagnostic::new(NEVER_EXECUTED, Severity::Warning, message)
        }
    }
}
