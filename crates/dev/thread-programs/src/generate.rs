//! Makes random programs.
//!
//! The generator decides the calls one after the other, as if one thread made them all. So a program cannot block, and
//! each call is valid. If the thread of a call does not know of an earlier call that it must not be exchanged with, a
//! hand-over is added.

mod choices;
mod state;

use std::collections::{BTreeMap, BTreeSet};

use lavascope_test_support::TestRng;

use crate::hand_over::HandOverKind;
use crate::operation::{AccessKind, Object, Operation};
use state::ObjectStates;

/// Largest number of threads at once, and of all threads of a program.
const RUNNING_MAX: usize = 5;
pub(crate) const THREADS_MAX: usize = 16;

/// A random program. The first thread starts the others.
pub struct Program {
    pub(crate) threads: Vec<ProgramThread>,
    pub(crate) hand_overs: Vec<HandOverKind>,
    /// The first call must be over before the second begins.
    pub(crate) pairs: BTreeSet<(CallPlace, CallPlace)>,
    /// The second call does not return before the first has begun, because Vulkan makes it wait.
    pub(crate) wakes: Vec<(CallPlace, CallPlace)>,
}

/// What a thread does.
#[derive(Default)]
pub(crate) struct ProgramThread {
    pub(crate) steps: Vec<Step>,
}

/// One step of a thread.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Call(Operation),
    Post(usize),
    Wait(usize),
    Start(usize),
    Join(usize),
}

/// A thread, and which of its operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct CallPlace {
    pub(crate) thread: usize,
    pub(crate) call: usize,
}

impl ProgramThread {
    pub(crate) fn operations(&self) -> impl Iterator<Item = &Operation> {
        self.steps.iter().filter_map(|it| if let Step::Call(operation) = it { Some(operation) } else { None })
    }
}

/// What the generator knows of a thread.
struct ThreadState {
    /// By thread: how many of its calls are over when the next call of this one begins.
    clock: Vec<usize>,
    calls: usize,
    is_running: bool,
    is_joined: bool,
    /// Before which call the thread makes its mark; none if it has.
    mark_before: Option<usize>,
}

/// The calls that used an object since it was written last.
#[derive(Default)]
struct LastAccesses {
    write: Option<CallPlace>,
    reads: Vec<CallPlace>,
}

struct Generator {
    rng: TestRng,
    queues: usize,
    program: Program,
    threads: Vec<ThreadState>,
    accesses: BTreeMap<Object, LastAccesses>,
    objects: ObjectStates,
    /// Whether hand-overs by timelines are possible now.
    may_signal: bool,
}

/// The program of a seed, for a device with some queues.
pub fn generate(seed: u64, queues: usize) -> Program {
    let program = Program { threads: Vec::new(), hand_overs: Vec::new(), pairs: BTreeSet::new(), wakes: Vec::new() };
    let mut generator = Generator {
        rng: TestRng::new(seed),
        queues,
        program,
        threads: Vec::new(),
        accesses: BTreeMap::new(),
        objects: ObjectStates::default(),
        may_signal: true,
    };
    generator.add_thread(Vec::new());
    for _ in 0..12 + generator.rng.below(70) {
        generator.random_step();
    }
    generator.finish();
    generator.program
}

impl Generator {
    fn add_thread(&mut self, clock: Vec<usize>) -> usize {
        let mark_before = Some(if self.rng.one_in(3) { self.rng.below(6_usize) } else { 0 });
        self.threads.push(ThreadState { clock, calls: 0, is_running: true, is_joined: false, mark_before });
        self.program.threads.push(ProgramThread::default());
        self.threads.len() - 1
    }

    fn random_step(&mut self) {
        let running: Vec<usize> = (0..self.threads.len()).filter(|it| self.threads[*it].is_running).collect();
        let thread = self.rng.pick(&running);
        match self.rng.below(24) {
            0 | 1 if running.len() < RUNNING_MAX && self.threads.len() < THREADS_MAX => self.start(thread),
            2 if thread != 0 => self.end(thread),
            3 => {
                let from = self.rng.pick(&running);
                self.hand_over(from, thread);
            }
            _ => {
                // Most choices are possible; a step that is not is left out.
                for _ in 0..6 {
                    if self.try_random_call(thread) {
                        break;
                    }
                }
            }
        }
    }

    fn start(&mut self, by: usize) {
        let clock = self.threads[by].clock.clone();
        let new = self.add_thread(clock);
        self.program.threads[by].steps.push(Step::Start(new));
    }

    /// The thread makes no further calls. It may still hand over.
    fn end(&mut self, thread: usize) {
        self.make_mark(thread);
        self.threads[thread].is_running = false;
    }

    /// Ends the program: the first thread joins the others and destroys what is left.
    fn finish(&mut self) {
        for thread in 1..self.threads.len() {
            if self.threads[thread].is_running {
                self.end(thread);
            }
            if !self.threads[thread].is_joined {
                self.join(thread, 0);
            }
        }
        self.make_mark(0);
        self.may_signal = false;
        let uses = self.objects.retire_all();
        self.call(0, Operation::WaitDevice { queues: self.queues, uses });
        for operation in self.objects.destroy_all() {
            self.call(0, operation);
        }
    }

    fn make_mark(&mut self, thread: usize) {
        if self.threads[thread].mark_before.take().is_some() {
            let buffer = self.objects.next();
            self.objects.marks.push(buffer);
            self.call(thread, Operation::Mark(buffer));
        }
    }

    /// Adds a call, after hand-overs from all threads whose calls must come before.
    fn call(&mut self, thread: usize, operation: Operation) -> CallPlace {
        if self.threads[thread].mark_before.is_some_and(|it| it <= self.threads[thread].calls) {
            self.make_mark(thread);
        }
        let accesses = operation.accesses();
        let mut before: BTreeSet<CallPlace> = BTreeSet::new();
        for (object, kind) in &accesses {
            let last = self.accesses.entry(*object).or_default();
            before.extend(last.write);
            before.extend(last.reads.iter().filter(|_| *kind == AccessKind::Write));
        }
        // The record of a host write may be in the stream of another thread.
        let is_write = |place: &CallPlace| {
            let operation = self.program.threads[place.thread].operations().nth(place.call);
            matches!(operation, Some(Operation::WriteMemory(_)))
        };
        let others: Vec<CallPlace> = before.into_iter().filter(|it| it.thread != thread || is_write(it)).collect();
        for place in &others {
            if place.thread != thread && self.threads[thread].clock.get(place.thread).is_none_or(|it| *it <= place.call)
            {
                self.hand_over(place.thread, thread);
            }
        }
        let place = CallPlace { thread, call: self.threads[thread].calls };
        self.program.pairs.extend(others.into_iter().map(|it| (it, place)));
        for (object, kind) in accesses {
            let last = self.accesses.entry(object).or_default();
            match kind {
                AccessKind::Read => last.reads.push(place),
                AccessKind::Write => *last = LastAccesses { write: Some(place), reads: Vec::new() },
            }
        }
        let state = &mut self.threads[thread];
        state.calls += 1;
        let calls = state.calls;
        set_clock(&mut state.clock, thread, calls);
        self.program.threads[thread].steps.push(Step::Call(operation));
        place
    }

    /// The second thread goes on after all that the first one has called.
    fn hand_over(&mut self, from: usize, to: usize) {
        if from == to {
            return;
        }
        if !self.threads[from].is_running && !self.threads[from].is_joined && self.rng.one_in(2) {
            return self.join(from, to);
        }
        if self.may_signal && self.threads[from].is_running && self.rng.one_in(4) && self.signal(from, to) {
            return;
        }
        let kind = self.rng.pick(&[HandOverKind::Atomic, HandOverKind::Lock]);
        self.program.hand_overs.push(kind);
        let number = self.program.hand_overs.len() - 1;
        self.program.threads[from].steps.push(Step::Post(number));
        self.program.threads[to].steps.push(Step::Wait(number));
        let clock = self.threads[from].clock.clone();
        self.learn(to, &clock);
    }

    fn join(&mut self, thread: usize, by: usize) {
        self.threads[thread].is_joined = true;
        self.program.threads[by].steps.push(Step::Join(thread));
        let clock = self.threads[thread].clock.clone();
        self.learn(by, &clock);
    }

    /// Hands over by a timeline: what the first thread called before its signal is over.
    fn signal(&mut self, from: usize, to: usize) -> bool {
        let Some((timeline, value)) = self.objects.next_signal(&mut self.rng) else { return false };
        self.may_signal = false;
        let signal = self.call(from, Operation::Signal { timeline, value });
        let mut clock = self.threads[from].clock.clone();
        set_clock(&mut clock, from, signal.call);
        let wait = match self.rng.below(2) {
            0 => Operation::WaitTimeline { timeline, value },
            _ => Operation::PollTimeline { timeline, value },
        };
        let wait = self.call(to, wait);
        self.may_signal = true;
        self.program.wakes.push((signal, wait));
        self.learn(to, &clock);
        true
    }

    fn learn(&mut self, thread: usize, clock: &[usize]) {
        let own = &mut self.threads[thread].clock;
        for (other, calls) in clock.iter().enumerate() {
            let known = own.get(other).copied().unwrap_or(0);
            set_clock(own, other, known.max(*calls));
        }
    }
}

fn set_clock(clock: &mut Vec<usize>, thread: usize, calls: usize) {
    if clock.len() <= thread {
        clock.resize(thread + 1, 0);
    }
    clock[thread] = calls;
}
