//! What shaders touched decides hazards that wait for it, as if it had been known from the beginning.

use lavascope_test_support::TestRng;
use std::ops::Range;

use lavascope_abi::DescriptorType;
use lavascope_diag::Severity;
use lavascope_sync_ir::{Barrier, Certainty, Dependency, DependencyTarget, Descriptor, Origin, SyncScope};

use super::*;
use crate::{BindingTouched, CommandBufferFeedback, ShaderLaunch, StageTouches, TouchedBytes};

const STAGE: u64 = S::COMPUTE_SHADER.0;

/// What a dispatch does with a buffer: the parts that it touches of it.
#[derive(Clone, Debug)]
struct BufferUse {
    buffer: u32,
    is_write: bool,
    touched: Vec<Range<u64>>,
}

#[derive(Clone, Debug)]
enum TestCommand {
    Dispatch(Vec<BufferUse>),
    Copy { buffer: u32, bytes: Range<u64>, is_write: bool },
    Barrier,
}

impl BufferUse {
    fn access(&self, region: Range<u64>, certainty: Certainty) -> Access {
        let ty = DescriptorType::STORAGE_BUFFER.0;
        let own = Descriptor { set: 0, binding: self.buffer, element: 0, ty, layout: None };
        let access = if self.is_write { A::SHADER_STORAGE_WRITE } else { A::SHADER_STORAGE_READ };
        let made = Access::new(ResourceId(self.buffer), Region::Buffer(region), STAGE, access.0);
        Access { certainty, word_offset: 0, ..made.with_origin(Origin::descriptor(own)) }
    }

    /// What one knows before it is executed.
    fn guess(&self) -> Vec<Access> {
        vec![self.access(0..64, Certainty::Somewhere)]
    }

    fn truth(&self) -> Vec<Access> {
        self.touched.iter().map(|it| self.access(it.clone(), Certainty::Certain)).collect()
    }

    fn feedback(&self) -> BindingTouched {
        let bytes = TouchedBytes { may: self.touched.clone(), must: self.touched.clone() };
        BindingTouched {
            binding: self.buffer,
            reads: !self.is_write,
            writes: self.is_write,
            elements: if self.touched.is_empty() { Vec::new() } else { vec![0] },
            bytes: Some(bytes),
            ..BindingTouched::default()
        }
    }
}

impl App {
    fn expecting_feedback() -> App {
        let mut app = App::new();
        app.devices.expect_feedback(object(HandleType::Device, 0));
        (0..2).for_each(|it| app.buffer(it));
        app
    }

    fn record_words(&mut self, id: u32, words: &[TestCommand], accesses: fn(&BufferUse) -> Vec<Access>) {
        let (at, object) = (self.at(Api::BeginCommandBuffer), object(HandleType::CommandBuffer, id));
        self.devices.command_buffer(at, CommandBufferId(id), object, GRAPHICS);
        self.devices.begin(at, CommandBufferId(id), object, false);
        for word in words {
            match word {
                TestCommand::Dispatch(uses) => {
                    self.devices.count_launch(object);
                    let at = self.at(Api::CmdDispatch);
                    let all: Vec<Access> = uses.iter().flat_map(accesses).collect();
                    self.devices.action_recorded(&at, CommandBufferId(id), &all);
                }
                TestCommand::Copy { buffer, bytes, is_write } => {
                    let access = if *is_write { A::TRANSFER_WRITE } else { A::TRANSFER_READ };
                    let region = Region::Buffer(bytes.clone());
                    let at = self.at(Api::CmdCopyBuffer);
                    let all = [Access::new(ResourceId(*buffer), region, S::COPY.0, access.0)];
                    self.devices.action_recorded(&at, CommandBufferId(id), &all);
                }
                TestCommand::Barrier => {
                    let (access, at) = (A::MEMORY_READ.0 | A::MEMORY_WRITE.0, self.at(Api::CmdPipelineBarrier2));
                    let scope = SyncScope { src_stages: ALL, src_access: access, dst_stages: ALL, dst_access: access };
                    let dependencies = vec![Dependency { scope, target: DependencyTarget::Global }];
                    self.devices.command_recorded(
                        at,
                        CommandBufferId(id),
                        Command::Barrier(Barrier::Sync2 { dependencies }),
                    );
                }
            }
        }
        let at = self.at(Api::EndCommandBuffer);
        self.devices.end(at, CommandBufferId(id));
    }

    fn send_feedback(&mut self, id: u32, words: &[TestCommand], executions: u32) {
        self.feed_with(id, words, executions, true);
    }

    fn feed_with(&mut self, id: u32, words: &[TestCommand], executions: u32, is_whole: bool) {
        let launches = words.iter().filter_map(|word| match word {
            TestCommand::Dispatch(uses) => Some(uses),
            _ => None,
        });
        let launch = |(number, uses): (u32, &Vec<BufferUse>)| {
            let covered = vec![(0, 0), (0, 1)];
            let touched = uses.iter().map(BufferUse::feedback).collect();
            let stage = StageTouches { stage: STAGE, covered, touched, addresses: None };
            ShaderLaunch { number, function: Api::CmdDispatch, stages: vec![stage] }
        };
        let launches = (0..).zip(launches).map(launch).collect();
        let commands = object(HandleType::CommandBuffer, id);
        let buffer_feedback =
            CommandBufferFeedback { command_buffer: commands, executions, is_complete: is_whole, launches };
        self.devices.feedback(object(HandleType::Device, 0), vec![buffer_feedback]);
    }

    /// Code, the two commands, and severity of all sites that were found.
    fn found(&self) -> Vec<FoundRow> {
        let text = |it: &str| it.split([',', ':']).next().unwrap_or_default().to_owned();
        let line = |diagnostic: &Diagnostic| {
            (
                diagnostic.code.0.to_string(),
                text(&diagnostic.locations[0].text),
                text(&diagnostic.locations[1].text),
                diagnostic.severity,
            )
        };
        let sites = self.diagnostics().iter().chain(&self.devices.causes.site_diagnostics);
        let mut all: Vec<_> = sites.map(line).collect();
        all.sort();
        all.dedup();
        all
    }
}

fn dispatch(buffer: u32, is_write: bool, touched: Range<u64>) -> TestCommand {
    TestCommand::Dispatch(vec![BufferUse { buffer, is_write, touched: vec![touched] }])
}

#[test]
fn parts_that_overlap_are_a_hazard_and_parts_that_do_not_are_none() {
    for (second, count) in [(16..32, 1), (32..64, 0)] {
        let mut app = App::expecting_feedback();
        let words = [dispatch(0, true, 0..32), dispatch(0, true, second)];
        app.record_words(5, &words, BufferUse::guess);
        app.submit_one(5);
        assert_eq!(app.found(), [], "it waits for what the device does");
        app.send_feedback(5, &words, 1);
        assert_eq!(app.devices.causes.severities(), vec![Severity::Error; count]);
        for diagnostic in app.diagnostics() {
            assert!(
                diagnostic.message.contains("[16..32]") && diagnostic.message.contains("It was observed"),
                "{}",
                diagnostic.message
            );
            assert_eq!(diagnostic.property("observed"), Some("true"));
        }
    }
}

#[test]
fn an_access_behind_one_that_touched_nothing_of_it_is_compared_with_those_before() {
    let mut app = App::expecting_feedback();
    let words = [[dispatch(0, true, 0..32)], [dispatch(0, true, 32..64)], [dispatch(0, true, 0..16)]];
    for (id, words) in (0..).zip(&words) {
        app.record_words(id, words, BufferUse::guess);
        app.submit_one(id);
    }
    for (id, words) in (0..).zip(&words) {
        app.send_feedback(id, words, 1);
    }
    let [diagnostic] = app.diagnostics() else { panic!("{:#?}", app.diagnostics()) };
    assert!(diagnostic.locations[1].text.contains("VkCommandBuffer#0"), "{:?}", diagnostic.locations);
    assert!(diagnostic.message.contains("[0..16]"), "{}", diagnostic.message);
}

#[test]
fn without_feedback_it_is_reported_as_if_nobody_had_waited() {
    let words = [dispatch(0, true, 0..32), dispatch(0, true, 32..64)];
    let end = |end: fn(&mut App, &[TestCommand])| {
        let mut app = App::expecting_feedback();
        app.record_words(5, &words, BufferUse::guess);
        app.submit_one(5);
        end(&mut app, &words);
        app.devices.causes.severities()
    };
    let possible = [Severity::Information];
    assert_eq!(end(|app, words| app.feed_with(5, words, 1, false)), possible, "a lost device");
    assert_eq!(end(|app, words| app.send_feedback(5, words, 2)), possible, "executions that nobody knows of");
    assert_eq!(end(|app, _| app.devices.finish()), possible, "the end of the process");
    let gone = |app: &mut App, _: &[TestCommand]| {
        let at = app.at(Api::DestroyDevice);
        app.devices.device_destroyed(at);
    };
    assert_eq!(end(gone), possible, "the end of the device");
    let many = |app: &mut App, _: &[TestCommand]| {
        app.record(1, []);
        (0..100).for_each(|_| app.submit_one(1));
    };
    assert_eq!(end(many), possible, "too many submissions since");
}

#[test]
fn what_is_never_submitted_is_reported_when_it_is_recorded_anew() {
    let mut app = App::expecting_feedback();
    let words = [dispatch(0, true, 0..32), dispatch(0, false, 32..64)];
    app.record_words(5, &words, BufferUse::guess);
    assert_eq!(app.found(), []);
    app.record_words(5, &[], BufferUse::guess);
    assert_eq!(app.devices.causes.severities(), [Severity::Warning]);
}

#[test]
fn of_what_was_executed_twice_only_what_was_never_touched_is_known() {
    for (second, severities) in [(16..32, vec![Severity::Information]), (32..64, vec![])] {
        let mut app = App::expecting_feedback();
        let words = [dispatch(0, true, 0..32), dispatch(0, true, second), TestCommand::Barrier];
        app.record_words(5, &words, BufferUse::guess);
        app.submit_one(5);
        app.submit_one(5);
        app.send_feedback(5, &words, 2);
        assert_eq!(app.devices.causes.severities(), severities);
    }
}

#[test]
fn each_execution_is_decided_by_itself() {
    let mut app = App::expecting_feedback();
    let words = |second| [dispatch(0, true, 0..32), dispatch(0, true, second), TestCommand::Barrier];
    app.record_words(5, &words(0..4), BufferUse::guess);
    for (second, count) in [(32..64, 0), (16..32, 1), (32..64, 1), (0..8, 2)] {
        app.submit_one(5);
        app.send_feedback(5, &words(second), 1);
        assert_eq!(app.diagnostics().iter().map(|it| it.count).sum::<u64>(), count);
    }
}

#[test]
fn what_is_certain_is_reported_at_once_and_not_again() {
    let mut app = App::expecting_feedback();
    let copy = TestCommand::Copy { buffer: 0, bytes: 0..64, is_write: true };
    let words = [copy.clone(), dispatch(0, true, 0..32), dispatch(1, true, 0..4), dispatch(1, true, 0..4)];
    app.record_words(5, &words, BufferUse::guess);
    assert_eq!(app.devices.causes.severities(), [Severity::Error], "wherever the dispatch writes, the copy did");
    app.submit_one(5);
    app.send_feedback(5, &words, 1);
    let counts: Vec<u64> = app.diagnostics().iter().map(|it| it.count).collect();
    assert_eq!((app.devices.causes.severities(), counts), (vec![Severity::Error; 2], vec![1, 1]));
}

#[test]
fn a_call_that_is_taken_back_ends_the_waiting() {
    let mut app = App::expecting_feedback();
    let words = [dispatch(0, true, 0..32), dispatch(0, true, 0..4)];
    app.record_words(5, &words, BufferUse::guess);
    app.submit_one(5);
    let at = app.at(Api::QueueSubmit);
    app.devices.step(at, HostStep::DeviceIdle);
    app.devices.undo_steps(at.source);
    assert_eq!(app.devices.causes.severities(), [Severity::Information]);
    app.send_feedback(5, &words, 1);
    assert_eq!(app.diagnostics().len(), 1);
}

/// Code, the two locations, and the severity of a finding.
type FoundRow = (String, String, String, Severity);

/// Chooses the commands of a program.
struct CommandRng(TestRng);

impl CommandRng {
    fn below(&mut self, end: u64) -> u64 {
        self.0.below(end)
    }

    fn bytes(&mut self) -> Range<u64> {
        let first = self.below(12) * 4;
        first..first + 4 + self.below(4) * 4
    }

    fn word(&mut self) -> TestCommand {
        match self.below(10) {
            0..7 => {
                let mut uses = Vec::new();
                for buffer in 0..2 {
                    if self.below(2) == 0 {
                        let is_write = self.below(2) == 0;
                        let touched = (0..self.below(2)).map(|_| self.bytes()).collect();
                        uses.push(BufferUse { buffer, is_write, touched });
                    }
                }
                TestCommand::Dispatch(uses)
            }
            7..9 => {
                TestCommand::Copy { buffer: self.below(2) as u32, bytes: self.bytes(), is_write: self.below(2) == 0 }
            }
            _ => TestCommand::Barrier,
        }
    }
}

/// The findings are the same, except for a cause that is known both with feedback and without: it has two diagnostics
/// with feedback. The command buffers have no names here, so the indices of the commands identify a cause.
fn assert_same_causes(guessed: &[FoundRow], known: &[FoundRow], program: &str) {
    let index = |it: &str| it.split(" of ").next().unwrap_or_default().to_owned();
    let cause = |it: &FoundRow| (it.0.clone(), index(&it.1), index(&it.2), it.3);
    let missing: Vec<_> = known.iter().filter(|it| !guessed.contains(it)).collect();
    let is_known = |it: &FoundRow| known.iter().any(|own| cause(own) == cause(it));
    let added: Vec<_> = guessed.iter().filter(|it| !known.contains(it) && !is_known(it)).collect();
    assert!(missing.is_empty() && added.is_empty(), "missing {missing:#?}, added {added:#?}, {program}");
}

/// Errors have the same causes as if all had been known from the beginning, and nothing else is reported.
#[test]
fn what_is_found_is_what_is_found_when_all_is_known() {
    let mut found = 0;
    for seed in 0..400 {
        let mut dice = CommandRng(TestRng::new(seed));
        let buffers: Vec<Vec<TestCommand>> =
            (0..4).map(|_| (0..dice.below(4) + 1).map(|_| dice.word()).collect()).collect();
        let (mut guessing, mut knowing) = (App::expecting_feedback(), App::new());
        (0..2).for_each(|it| knowing.buffer(it));
        let mut late = Vec::new();
        for (id, words) in (0..).zip(&buffers) {
            guessing.record_words(id, words, BufferUse::guess);
            guessing.submit_one(id);
            knowing.record_words(id, words, BufferUse::truth);
            knowing.submit_one(id);
            late.push(id);
            if dice.below(2) == 0 {
                late.drain(..).for_each(|id| guessing.send_feedback(id, &buffers[id as usize], 1));
            }
        }
        late.drain(..).for_each(|id| guessing.send_feedback(id, &buffers[id as usize], 1));
        guessing.devices.finish();
        let (guessed, known) = (guessing.found(), knowing.found());
        found += known.len();
        assert_same_causes(&guessed, &known, &format!("seed {seed}: {buffers:#?}"));
    }
    assert!(found > 200, "{found}");
}
