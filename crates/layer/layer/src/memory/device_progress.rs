//! What the application knows of how far the device is, so that what the device wrote is read once, and not at every
//! question whose answer is known.
//!
//! Submissions are numbered. A fence that is signaled, or a timeline semaphore that has a value which a submission
//! signals, says that all earlier submissions of the queue are complete. A value that was seen before says nothing new.

use std::collections::HashMap;
use std::sync::Mutex;

use lavascope_abi::{Fence, Queue, Semaphore};

use super::lock;

#[derive(Default)]
pub(super) struct DeviceProgress(Mutex<ProgressState>);

#[derive(Default)]
struct ProgressState {
    submissions: u64,
    /// The last submission of each queue.
    submitted: HashMap<u64, u64>,
    /// The last submission of each queue whose results the application has.
    complete: HashMap<u64, u64>,
    fences: HashMap<u64, QueuePosition>,
    /// The largest value of each timeline semaphore that the application has learned of.
    semaphores: HashMap<u64, u64>,
    /// The values that submissions signal, of each timeline semaphore, as far as they are not known yet.
    signals: HashMap<u64, Vec<TimelineSignal>>,
}

#[derive(Clone, Copy)]
struct TimelineSignal {
    value: u64,
    position: QueuePosition,
}

#[derive(Clone, Copy)]
struct QueuePosition {
    queue: u64,
    submission: u64,
}

/// What a call lets the application know, if it succeeds.
#[derive(Default)]
pub(super) struct Completion {
    queues: Vec<QueuePosition>,
    semaphores: Vec<(u64, u64)>,
}

/// Submissions up to here.
#[derive(Clone, Copy)]
pub(super) struct ProgressPoint {
    pub(super) submissions: u64,
    /// Whether they are all complete.
    pub(super) is_idle: bool,
}

impl DeviceProgress {
    /// Work is about to be submitted.
    pub(super) fn submit(&self, queue: Queue, fence: Fence, signals: &[(Semaphore, u64)]) {
        let mut state = lock(&self.0);
        state.submissions += 1;
        let submission = state.submissions;
        state.submitted.insert(queue.0, submission);
        if fence.0 != 0 {
            state.fences.insert(fence.0, QueuePosition { queue: queue.0, submission });
        }
        for (semaphore, value) in signals {
            let signal = TimelineSignal { value: *value, position: QueuePosition { queue: queue.0, submission } };
            state.signals.entry(semaphore.0).or_default().push(signal);
        }
    }

    /// The driver writes to memory during a call, on no queue.
    pub(super) fn write_on_host(&self) {
        lock(&self.0).submissions += 1;
    }

    /// The fences are not signaled any more, or gone. What signals them next may be no submission.
    pub(super) fn forget_fences(&self, fences: &[Fence]) {
        let mut state = lock(&self.0);
        fences.iter().for_each(|it| _ = state.fences.remove(&it.0));
    }

    pub(super) fn forget_semaphore(&self, semaphore: Semaphore) {
        let mut state = lock(&self.0);
        state.semaphores.remove(&semaphore.0);
        state.signals.remove(&semaphore.0);
    }

    /// What it means that all of these fences, or one of them, are signaled; none if that is known. Before the call
    /// that waits: after it the fences may be submitted again.
    pub(super) fn by_fences(&self, fences: &[Fence], is_all: bool) -> Option<Completion> {
        let state = lock(&self.0);
        let position = |it: &Fence| state.fences.get(&it.0).copied().filter(|it| state.is_news(*it));
        let queues: Vec<QueuePosition> = fences.iter().filter_map(position).collect();
        // Such as that of a presentation.
        let has_other = !state.is_idle() && fences.iter().any(|it| !state.fences.contains_key(&it.0));
        let is_certain = is_all || fences.len() == 1;
        (has_other || !queues.is_empty())
            .then(|| if is_certain { Completion { queues, ..Completion::default() } } else { Completion::default() })
    }

    /// What it means that a queue, or each of them, is idle; none if that is known. Before the call that waits.
    pub(super) fn by_idle(&self, queue: Option<Queue>) -> Option<Completion> {
        let state = lock(&self.0);
        let wanted = state.submitted.iter().filter(|it| queue.is_none_or(|queue| queue.0 == *it.0));
        let positions = wanted.map(|it| QueuePosition { queue: *it.0, submission: *it.1 });
        let queues: Vec<QueuePosition> = positions.filter(|it| state.is_news(*it)).collect();
        (!queues.is_empty()).then(|| Completion { queues, ..Completion::default() })
    }

    /// What it means that all of these semaphores, or one of them, have these values; none if that is known.
    pub(super) fn by_semaphores(&self, values: &[(Semaphore, u64)], is_all: bool) -> Option<Completion> {
        let state = lock(&self.0);
        let is_news = |it: &&(Semaphore, u64)| state.semaphores.get(&it.0.0).is_none_or(|known| *known < it.1);
        let news: Vec<(u64, u64)> = values.iter().filter(is_news).map(|it| (it.0.0, it.1)).collect();
        let is_certain = is_all || values.len() == 1;
        if news.is_empty() {
            return None;
        }
        if !is_certain {
            return Some(Completion::default());
        }
        let signals = |(semaphore, value): &(u64, u64)| {
            let (all, value) = (state.signals.get(semaphore), *value);
            all.into_iter().flatten().filter(move |it| it.value <= value).map(|it| it.position)
        };
        Some(Completion { queues: news.iter().flat_map(signals).collect(), semaphores: news })
    }

    /// What a call means that says nothing about submissions; none if all are complete.
    pub(super) fn by_something(&self) -> Option<Completion> {
        let state = lock(&self.0);
        (!state.is_idle()).then(Completion::default)
    }

    /// Where the device is now, as far as the application knows, if this is complete as well.
    pub(super) fn point_after(&self, completion: &Completion) -> ProgressPoint {
        let state = lock(&self.0);
        let is_complete = |(queue, submission): (&u64, &u64)| {
            let position = QueuePosition { queue: *queue, submission: *submission };
            let is_now = |it: &QueuePosition| it.queue == *queue && it.submission >= *submission;
            !state.is_news(position) || completion.queues.iter().any(is_now)
        };
        ProgressPoint { submissions: state.submissions, is_idle: state.submitted.iter().all(is_complete) }
    }

    /// The application has the results.
    pub(super) fn complete(&self, completion: Completion) {
        let mut state = lock(&self.0);
        for QueuePosition { queue, submission } in completion.queues {
            let known = state.complete.entry(queue).or_default();
            *known = submission.max(*known);
        }
        for (semaphore, value) in completion.semaphores {
            let known = state.semaphores.entry(semaphore).or_default();
            *known = value.max(*known);
            if let Some(signals) = state.signals.get_mut(&semaphore) {
                signals.retain(|it| it.value > value);
            }
        }
    }
}

impl ProgressState {
    fn is_news(&self, position: QueuePosition) -> bool {
        self.complete.get(&position.queue).is_none_or(|it| *it < position.submission)
    }

    fn is_idle(&self) -> bool {
        self.submitted.iter().all(|it| !self.is_news(QueuePosition { queue: *it.0, submission: *it.1 }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUEUES: [Queue; 2] = [Queue(1), Queue(2)];

    #[test]
    fn a_fence_says_something_once() {
        let progress = DeviceProgress::default();
        progress.submit(QUEUES[0], Fence(10), &[]);
        progress.submit(QUEUES[1], Fence(11), &[]);
        progress.submit(QUEUES[0], Fence(12), &[]);
        assert!(progress.by_fences(&[Fence(99)], true).is_some(), "it may be that of a presentation");
        let first = progress.by_fences(&[Fence(10)], true).expect("news");
        assert!(!progress.point_after(&first).is_idle);
        progress.complete(first);
        assert!(progress.by_fences(&[Fence(10)], true).is_none());
        let others = progress.by_fences(&[Fence(11), Fence(12)], true).expect("news");
        let point = progress.point_after(&others);
        assert_eq!((point.submissions, point.is_idle), (3, true));
        progress.complete(others);
        assert!(progress.by_idle(None).is_none() && progress.by_something().is_none());
        assert!(progress.by_fences(&[Fence(99)], true).is_none(), "nothing is pending");
        progress.submit(QUEUES[0], Fence(0), &[]);
        assert!(progress.by_fences(&[Fence(12)], true).is_none());
        progress.forget_fences(&[Fence(12)]);
        assert!(progress.by_fences(&[Fence(12)], true).is_some(), "something else signals it");
    }

    #[test]
    fn one_of_several_fences_may_be_any() {
        let progress = DeviceProgress::default();
        progress.submit(QUEUES[0], Fence(10), &[]);
        progress.submit(QUEUES[1], Fence(11), &[]);
        let any = progress.by_fences(&[Fence(10), Fence(11)], false).expect("news");
        assert!(!progress.point_after(&any).is_idle);
        progress.complete(any);
        assert!(progress.by_fences(&[Fence(10)], true).is_some() && progress.by_fences(&[Fence(11)], true).is_some());
    }

    #[test]
    fn later_submissions_are_not_complete() {
        let progress = DeviceProgress::default();
        progress.submit(QUEUES[0], Fence(10), &[]);
        let first = progress.by_idle(Some(QUEUES[0])).expect("news");
        progress.submit(QUEUES[0], Fence(0), &[]);
        assert!(!progress.point_after(&first).is_idle);
        progress.complete(first);
        assert!(progress.by_idle(Some(QUEUES[1])).is_none(), "nothing was submitted to it");
        assert!(progress.by_idle(None).is_some());
    }

    #[test]
    fn a_value_that_a_submission_signals_says_that_it_is_complete() {
        let progress = DeviceProgress::default();
        progress.submit(QUEUES[0], Fence(0), &[(Semaphore(5), 1)]);
        progress.submit(QUEUES[0], Fence(0), &[(Semaphore(5), 2)]);
        let first = progress.by_semaphores(&[(Semaphore(5), 1)], true).expect("news");
        assert!(!progress.point_after(&first).is_idle);
        progress.complete(first);
        let second = progress.by_semaphores(&[(Semaphore(5), 2)], true).expect("news");
        assert!(progress.point_after(&second).is_idle);
        progress.complete(second);
        assert!(progress.by_something().is_none());
    }

    #[test]
    fn a_value_says_something_once() {
        let progress = DeviceProgress::default();
        let take = |value| progress.by_semaphores(&[(Semaphore(5), value)], true).map(|it| progress.complete(it));
        assert!(take(1).is_some() && take(1).is_none() && take(3).is_some() && take(2).is_none());
        progress.forget_semaphore(Semaphore(5));
        assert!(take(1).is_some(), "another semaphore with the same handle");
        let any = [(Semaphore(5), 1), (Semaphore(6), 1)];
        let completion = progress.by_semaphores(&any, false).expect("news");
        progress.complete(completion);
        assert!(progress.by_semaphores(&any, false).is_some(), "which of them is not known");
    }
}
