//! Random programs under both layers, and the small forms of those on which the layers disagree.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use anyhow::{Result, ensure};
use lavascope_scenario::{Scenario, print};
use lavascope_scenario_live::{check_supported, with_version_1_masks};
use lavascope_sim::programs::{ProgramFeatures, make_performable, make_valid, random_program, shrink};
use lavascope_sync_ir::{Command, Program};

use crate::disagreement::LayerDisagreement;
use crate::host_progress::comes_to_its_end;
use crate::judge::{Judge, JudgedProgram};
use crate::layer_process::ComparedLayer;
use crate::peer_limits::{waits_for_acquires, within_peer_limits};
use crate::predicates::known_predicate;
use crate::suspended_rendering::resumes_what_is_suspended;

/// Programs that are performed before their answers are looked at.
const CHUNK: u64 = 64;
/// After so many programs the run shows how far it is; a multiple of [`CHUNK`].
const PROGRESS: u64 = 1_280;
/// The capabilities of queues that random programs have.
pub(crate) const QUEUE_FLAGS: [u32; 2] = [7, 6];

/// Programs that have everything together; only run by name.
const EVERYTHING: &str = "most";

/// What random programs may have, by name.
const FEATURES: &[(&str, ProgramFeatures)] = &[
    ("barriers", ProgramFeatures::BARRIERS),
    ("queues", ProgramFeatures { resubmission: true, queues: true, host_waits: true, ..ProgramFeatures::BARRIERS }),
    ("events", ProgramFeatures { events: true, ..ProgramFeatures::BARRIERS }),
    ("secondaries", ProgramFeatures { secondaries: true, ..ProgramFeatures::BARRIERS }),
    (
        "rendering",
        ProgramFeatures { dynamic_rendering: true, multiview: true, secondaries: true, ..ProgramFeatures::BARRIERS },
    ),
    (
        "passes",
        ProgramFeatures { render_passes: true, multiview: true, secondaries: true, ..ProgramFeatures::BARRIERS },
    ),
    ("present", ProgramFeatures { presentation: true, queues: true, host_waits: true, ..ProgramFeatures::BARRIERS }),
    (
        EVERYTHING,
        ProgramFeatures {
            render_passes: true,
            dynamic_rendering: true,
            multiview: true,
            presentation: true,
            ..ProgramFeatures::WITHOUT_RENDERING
        },
    ),
];

/// What is run.
pub(crate) struct RandomRun {
    pub(crate) programs: u64,
    pub(crate) seed: u64,
    /// A name of [`FEATURES`]; all if empty.
    pub(crate) features: String,
    /// So many disagreements are shown, and then the run ends.
    pub(crate) shown_max: usize,
}

impl RandomRun {
    /// The entries of [`FEATURES`] that programs are made of in turn.
    pub(crate) fn chosen_features(&self) -> Result<Vec<&'static (&'static str, ProgramFeatures)>> {
        let is_chosen = |entry: &&(&str, ProgramFeatures)| match self.features.as_str() {
            "" => entry.0 != EVERYTHING,
            wanted => entry.0 == wanted,
        };
        let chosen: Vec<_> = FEATURES.iter().filter(is_chosen).collect();
        ensure!(!chosen.is_empty(), "no features are called {}", self.features);
        Ok(chosen)
    }
}

impl RandomRun {
    /// The program of a seed.
    pub(crate) fn program(&self, seed: u64) -> Result<Program> {
        let chosen = self.chosen_features()?;
        Ok(performable_program(seed, &chosen[seed as usize % chosen.len()].1))
    }
}

pub(crate) fn run(request: &RandomRun) -> Result<()> {
    let mut judge = Judge::new(&QUEUE_FLAGS)?;
    let chosen = request.chosen_features()?;
    let (begin, mut performed, mut clean, mut shown) = (Instant::now(), 0, 0, 0);
    let (mut needed, mut broken_ours, mut event_races) = (0, 0, 0u64);
    let mut excused = BTreeMap::new();
    let mut next = request.seed;
    let end = request.seed + request.programs;
    while next < end && shown < request.shown_max {
        if (next - request.seed).is_multiple_of(PROGRESS) && next > request.seed {
            eprintln!("{performed} programs so far, {needed} of them needed a predicate");
        }
        let seeds = next..end.min(next + CHUNK);
        next = seeds.end;
        let programs: Vec<Program> =
            seeds.clone().map(|it| performable_program(it, &chosen[it as usize % chosen.len()].1)).collect();
        let texts: Vec<String> = programs.iter().map(text_of).collect();
        let judged = judge.judge_all(&texts)?;
        for ((seed, program), outcome) in seeds.zip(&programs).zip(judged) {
            match outcome {
                JudgedProgram::Compared { disagreements, hazards } => {
                    performed += 1;
                    clean += u64::from(hazards == 0 && disagreements.is_empty());
                    let (known, open) = split_known(program, &disagreements);
                    needed += u64::from(!known.is_empty());
                    for name in known {
                        *excused.entry(name).or_insert(0u64) += 1;
                    }
                    if open && shown < request.shown_max {
                        shown += 1;
                        show_small(&mut judge, seed, program)?;
                    }
                }
                JudgedProgram::EventRace => event_races += 1,
                JudgedProgram::Unsupported(why) => println!("seed {seed}: not performed: {why}"),
                JudgedProgram::Broken { layer, why } => {
                    broken_ours += u64::from(layer == ComparedLayer::Ours);
                    println!("seed {seed}: {}: {why}", layer.word());
                }
            }
        }
    }
    println!("{event_races} programs have commands that race for an event, and are not compared");
    excused.iter().for_each(|(name, count)| println!("{count} programs need {name}"));
    let seconds = begin.elapsed().as_secs_f64();
    let rate = performed as f64 / seconds;
    println!("{performed} random programs in {seconds:.1} s, {rate:.0} per second, {clean} of them clean");
    println!("{needed} random programs needed a predicate, {shown} disagreements are not explained");
    ensure!(shown == 0, "{shown} disagreements have no predicate");
    ensure!(broken_ours == 0, "{broken_ours} programs ended a process under our layer");
    Ok(())
}

/// Small edits may have brought back what the peer does not follow.
pub(crate) fn valid_program(program: &Program) -> Program {
    within_peer_limits(&make_valid(program))
}

/// Whether a program ends, and can be performed and compared.
pub(crate) fn is_judged(program: &Program) -> bool {
    comes_to_its_end(program)
        && waits_for_acquires(program)
        && resumes_what_is_suspended(program)
        && check_supported(program).is_ok()
}

/// The predicates that a program needs, and whether they leave something open.
pub(crate) fn split_known(program: &Program, disagreements: &[LayerDisagreement]) -> (BTreeSet<&'static str>, bool) {
    let found: Vec<_> = disagreements.iter().map(|it| known_predicate(program, it)).collect();
    let is_open = found.iter().any(Option::is_none);
    (found.into_iter().flatten().map(|it| it.name).collect(), is_open)
}

pub(crate) fn text_of(program: &Program) -> String {
    print(&Scenario::of(program.clone()))
}

/// A random program that can be performed: without the commands that no Vulkan command is.
pub(crate) fn performable_program(seed: u64, features: &ProgramFeatures) -> Program {
    let performable = within_peer_limits(&make_performable(&random_program(seed, features)));
    // What secondary command buffers gave to their render passes has to be valid there.
    let mut program = with_version_1_masks(&valid_program(&performable));
    if !comes_to_its_end(&program) || !waits_for_acquires(&program) || !resumes_what_is_suspended(&program) {
        program.steps.clear();
    }
    while check_supported(&program).is_err() {
        if !remove_one_unsupported(&mut program) {
            program.steps.clear();
            program.command_buffers.iter_mut().for_each(|it| it.commands.clear());
        }
    }
    program
}

/// Removes an action without which the rest may be supported.
fn remove_one_unsupported(program: &mut Program) -> bool {
    let mut bare = program.clone();
    for buffer in &mut bare.command_buffers {
        for command in &mut buffer.commands {
            if matches!(command, Command::Action(_)) {
                *command = Command::SetEvent(lavascope_sync_ir::SetEvent::Sync1 {
                    event: lavascope_sync_ir::EventId(0),
                    stages: 0,
                });
            }
        }
    }
    for at in 0..program.command_buffers.len() {
        for index in 0..program.command_buffers[at].commands.len() {
            let own = &program.command_buffers[at].commands[index];
            if !matches!(own, Command::Action(_)) {
                continue;
            }
            let mut single = bare.clone();
            single.command_buffers[at].commands[index] = own.clone();
            if check_supported(&single).is_err() {
                program.command_buffers[at].commands.remove(index);
                return true;
            }
        }
    }
    false
}

fn show_small(judge: &mut Judge, seed: u64, program: &Program) -> Result<()> {
    let shared = std::cell::RefCell::new(judge);
    let differs = |candidate: &Program| {
        let candidate = valid_program(candidate);
        if !is_judged(&candidate) {
            return false;
        }
        let judged = shared.borrow_mut().judge(&text_of(&candidate));
        matches!(judged, Ok(JudgedProgram::Compared { disagreements, .. }) if split_known(&candidate, &disagreements).1)
    };
    let small = valid_program(&shrink(program, &differs));
    let text = text_of(&small);
    println!("seed {seed}:\n{text}");
    if let JudgedProgram::Compared { disagreements, .. } = shared.borrow_mut().judge(&text)? {
        disagreements.iter().for_each(|it| println!("{it}"));
    }
    Ok(())
}
