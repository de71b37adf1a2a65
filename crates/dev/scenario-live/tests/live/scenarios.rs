//! The scenarios, the ways in which they are performed, and what becomes of one.

use std::path::Path;

use lavascope_scenario::{Scenario, ScenarioSource, Variation, annotate, compare_variation, parse, variations};
use lavascope_scenario_live::{
    DeviceReuse, DrawsOutsidePass, LiveError, LiveGpu, LiveOptions, LiveRun, LiveScenario, RecordingMode, SubmitApi,
    for_queue_submit_1, with_version_1_masks,
};
use lavascope_sync_ir::{Barrier, Command, Dependency, Findings, Hazard, Program, SetEvent, SyncScope, WaitEvents};

use crate::message_parser;

/// How a scenario is performed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LiveVariant {
    /// As it stands, by one thread, with `vkQueueSubmit2`.
    Plain,
    /// With `vkQueueSubmit`, if that can express the program.
    Submit1,
    /// Each command buffer recorded by a thread of its own.
    Threads,
    /// In all ways that its header names: barriers of both versions, render passes and none, one submission and many.
    Variations,
    /// Without its barriers, events and subpass dependencies, every hazard that they prevented must be reported. A
    /// scenario that is clean unchanged would also be clean if its accesses were never made.
    Unsynchronized,
}

/// Where the layer looks for hazards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Inline,
    Async,
}

impl Mode {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Mode::Inline => "inline",
            Mode::Async => "async",
        }
    }
}

/// The result of a scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ScenarioOutcome {
    AsExpected,
    /// Why it cannot be performed.
    Unsupported(String),
    /// The difference between messages and expectations.
    Wrong(String),
}

/// A scenario in one way.
#[derive(Clone, Debug)]
pub(crate) struct ScenarioResult {
    pub(crate) name: String,
    pub(crate) outcome: ScenarioOutcome,
}

/// The names and texts of all scenarios, by folder and file.
pub(crate) fn scenarios() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sync/engine/tests/scenarios");
    let mut found = Vec::new();
    for folder in entries(&root) {
        for file in entries(&folder).into_iter().filter(|it| it.extension().is_some_and(|it| it == "vks")) {
            let name = file.strip_prefix(&root).expect("it lies in there").with_extension("");
            found.push((name.to_string_lossy().into_owned(), std::fs::read_to_string(&file).expect("a text")));
        }
    }
    found.sort();
    found
}

fn entries(folder: &Path) -> Vec<std::path::PathBuf> {
    let all = std::fs::read_dir(folder).expect("the folder is there");
    all.map(|it| it.expect("an entry").path()).collect()
}

/// Performs scenarios, one after the other.
pub(crate) struct ScenarioRunner {
    gpu: LiveGpu,
    variant: LiveVariant,
    mode: Mode,
    /// How many performances there were; names have it in front, so that no two of them are alike.
    run_count: u32,
    /// By how much the layer's numbers of calls are larger than ours: the loader makes some too.
    call_offset: u64,
}

/// The host overwrites what the device may be reading: a message about that has the number of a call.
const RACE: &str = "buffer a b 64\n\ncmd main\n  copy a -> b\n\nq submit main\nhost writes a\n";

impl ScenarioRunner {
    pub(crate) fn new(gpu: LiveGpu, variant: LiveVariant, mode: Mode) -> ScenarioRunner {
        let mut actor = ScenarioRunner { gpu, variant, mode, run_count: 0, call_offset: 0 };
        let race = ScenarioSource::new(RACE).expect("a program").scenario;
        let performed = actor.perform(&race, &race.program, "race:").expect("it can be performed");
        let place = performed.messages.first().and_then(|it| message_parser::line(&it.text, "access"));
        let call = place.and_then(message_parser::call).expect("a call of the host");
        actor.call_offset = call - performed.step_calls[1];
        actor
    }

    /// Performs one scenario, in one or more ways.
    pub(crate) fn run(&mut self, name: &str, text: &str) -> Vec<ScenarioResult> {
        let mut scenario = parse(text).expect("a scenario");
        if self.variant == LiveVariant::Unsynchronized {
            scenario = without_synchronization(&scenario);
        }
        let plain = Variation {
            name: String::new(),
            program: scenario.program.clone(),
            steps: (0..scenario.program.steps.len() as u32).collect(),
        };
        let all = if self.variant == LiveVariant::Variations { variations(&scenario) } else { vec![plain] };
        let mut lines = Vec::new();
        for variation in all {
            let name =
                if variation.name.is_empty() { name.to_owned() } else { format!("{name} with {}", variation.name) };
            lines.push(ScenarioResult { name, outcome: self.outcome(&scenario, variation) });
        }
        lines
    }

    fn outcome(&mut self, scenario: &Scenario, variation: Variation) -> ScenarioOutcome {
        let performable = match self.in_called_functions(scenario, variation) {
            Ok(performable) => performable,
            Err(why) => return ScenarioOutcome::Unsupported(why.to_owned()),
        };
        self.run_count += 1;
        let prefix = format!("{}:", self.run_count);
        let performed = match self.perform(scenario, &performable.program, &prefix) {
            Ok(performed) => performed,
            Err(LiveError::Unsupported(why)) => return ScenarioOutcome::Unsupported(why.0),
            Err(error) => return ScenarioOutcome::Wrong(error.to_string()),
        };
        let steps: Vec<u64> = performed.step_calls.iter().map(|it| it + self.call_offset).collect();
        let mut found = Findings::default();
        for message in &performed.messages {
            let read =
                message_parser::read_message(message, &prefix, scenario, &performable.program, &steps, &mut found);
            let in_time = if self.mode == Mode::Inline { message_parser::check_call(message) } else { Ok(()) };
            if let Err(why) = read.and(in_time) {
                return ScenarioOutcome::Wrong(format!("{why}\n{}\n{}", message.name, message.text));
            }
        }
        match compare_variation(scenario, &performable, &found) {
            Ok(()) => ScenarioOutcome::AsExpected,
            Err(mismatch) => {
                let texts: Vec<&str> = performed.messages.iter().map(|it| it.text.as_str()).collect();
                ScenarioOutcome::Wrong(format!("{mismatch}what was told:\n{}", texts.join("\n")))
            }
        }
    }

    /// A program in the words that the functions have which are called; why not, if it means something else then.
    fn in_called_functions(&self, scenario: &Scenario, variation: Variation) -> Result<Variation, &'static str> {
        let mut program = with_version_1_masks(&variation.program);
        if self.variant == LiveVariant::Submit1 {
            program = for_queue_submit_1(&program).unwrap_or(program);
        }
        let is_changed = program != variation.program;
        let performable = Variation { program, ..variation };
        if is_changed
            && compare_variation(scenario, &performable, &lavascope_engine::check_all(&performable.program)).is_err()
        {
            return Err("said with the masks of version 1 it means something else");
        }
        Ok(performable)
    }

    fn perform(&self, scenario: &Scenario, program: &Program, prefix: &str) -> Result<LiveRun, LiveError> {
        let can_be_one =
            self.variant == LiveVariant::Submit1 && for_queue_submit_1(program).is_some_and(|it| it == *program);
        let submit = if can_be_one { SubmitApi::One } else { SubmitApi::Two };
        let recording = if self.variant == LiveVariant::Threads {
            RecordingMode::ThreadPerBuffer
        } else {
            RecordingMode::CallingThread
        };
        let live_scenario = LiveScenario { program, names: &scenario.names, name_prefix: prefix };
        // The engine has no instances around draws either: it keeps reads of different ones apart.
        let lonely = if self.variant == LiveVariant::Unsynchronized {
            DrawsOutsidePass::LeaveOutside
        } else {
            DrawsOutsidePass::WrapInRendering
        };
        self.gpu.run(
            live_scenario,
            LiveOptions { submit, recording, draws_outside_pass: lonely, reuse: DeviceReuse::Never },
        )
    }
}

/// A scenario whose barriers, events and dependencies of subpasses order nothing, with what the engine finds in it.
/// Layouts change as before.
fn without_synchronization(scenario: &Scenario) -> Scenario {
    let mut made = scenario.clone();
    let clear = |all: &mut Vec<Dependency>| all.iter_mut().for_each(|it| it.scope = SyncScope::default());
    for command in made.program.command_buffers.iter_mut().flat_map(|it| &mut it.commands) {
        match command {
            Command::Barrier(Barrier::Sync1 { src_stages, dst_stages, dependencies })
            | Command::WaitEvents(WaitEvents::Sync1 { src_stages, dst_stages, dependencies, .. }) => {
                (*src_stages, *dst_stages) = (0, 0);
                clear(dependencies);
            }
            Command::Barrier(Barrier::Sync2 { dependencies })
            | Command::SetEvent(SetEvent::Sync2 { dependencies, .. }) => clear(dependencies),
            Command::WaitEvents(WaitEvents::Sync2 { events }) => events.iter_mut().for_each(|it| clear(&mut it.1)),
            Command::SetEvent(SetEvent::Sync1 { stages, .. }) => *stages = 0,
            _ => {}
        }
    }
    made.program.render_passes.iter_mut().for_each(|it| it.dependencies.clear());
    let mut found = lavascope_engine::check_all(&made.program);
    found.hazards = merge_neighbors(found.hazards);
    annotate(&made, &found)
}

/// A message names neighboring parts of a resource as one, even if a command has them from different operands.
fn merge_neighbors(hazards: Vec<Hazard>) -> Vec<Hazard> {
    let mut made: Vec<Hazard> = Vec::new();
    for hazard in hazards {
        let key = |it: &Hazard| (it.kind, it.at.clone(), it.prior.clone(), it.resource);
        let same = made.iter_mut().find(|own| key(own) == key(&hazard) && own.region.join(&hazard.region).is_some());
        match same {
            Some(own) => own.region = own.region.join(&hazard.region).unwrap_or(hazard.region),
            None => made.push(hazard),
        }
    }
    made
}

/// The capabilities of all queues that scenarios have.
pub(crate) fn queue_flags() -> Vec<u32> {
    let programs = scenarios().into_iter().map(|it| parse(&it.1).expect("a scenario").program);
    let mut found: Vec<u32> = programs.flat_map(|it: Program| it.queues).map(|it| it.flags).collect();
    found.sort_unstable();
    found.dedup();
    found
}
