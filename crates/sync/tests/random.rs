//! The engine against the oracle, on random programs, by the rules that users see and by the specification's letter.
//!
//! `cargo xtask sim` makes it more, and others, and shows what the programs were made of.

use lavascope_program::{Command, Program};
use lavascope_sim::hazard::{Census, Kinds, OracleRules, describe, find_disagreement, find_hazards, random_program};
use lavascope_sync::{Rules, check_with};

/// The same rules for both.
#[derive(Clone, Copy)]
struct Setting {
    oracle: OracleRules,
    engine: Rules,
}

const CONTRACT: Setting = Setting { oracle: OracleRules::CONTRACT, engine: Rules::CONTRACT };
const SPECIFICATION: Setting = Setting { oracle: OracleRules::SPECIFICATION, engine: Rules::SPECIFICATION };

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

/// Compares as many programs as asked for, and shows the first disagreements, made small.
fn agree(kinds: Kinds, setting: Setting, programs: u64) {
    agree_on(kinds, setting, programs, |it| it);
}

fn agree_on(kinds: Kinds, setting: Setting, programs: u64, change: impl Fn(Program) -> Program) {
    let asked = number("LAVASCOPE_SAMPLE_PROGRAMS");
    let (first, programs) = (number("LAVASCOPE_SAMPLE_SEED").unwrap_or(1), asked.unwrap_or(programs));
    let engine = |it: &Program| check_with(setting.engine, it);
    let (mut shown, mut wrong, mut census) = (Vec::new(), 0, Census::default());
    for seed in first..first + programs {
        let program = change(random_program(seed, &kinds));
        if asked.is_some() {
            census.count(&program, &find_hazards(&program, setting.oracle));
        }
        if let Some((small, why)) = find_disagreement(&program, setting.oracle, &engine) {
            wrong += 1;
            if shown.len() < 3 {
                shown.push(format!("seed {seed}:\n{}", describe(&small, &why)));
            }
            if wrong >= 30 {
                break;
            }
        }
    }
    if asked.is_some() {
        println!("{census}");
    }
    assert!(wrong == 0, "{wrong} disagreements in {programs} programs\n{}", shown.join("\n"));
}

#[test]
fn barriers() {
    agree(Kinds::BARRIERS, CONTRACT, 6_000);
}

#[test]
fn queues_events_and_secondaries() {
    agree(Kinds::STAGE_ONE, CONTRACT, 7_000);
}

#[test]
fn everything() {
    agree(Kinds::ALL, CONTRACT, 7_000);
}

/// Draw after draw does the same: what a command repeats is not looked at each time.
#[test]
fn actions_that_are_repeated() {
    let repeat = |mut program: Program| {
        for (index, buffer) in program.command_buffers.iter_mut().enumerate() {
            let times = |it: &Command| if matches!(it, Command::Action(_)) { 2 + index % 3 } else { 1 };
            let commands = std::mem::take(&mut buffer.commands);
            buffer.commands = commands.into_iter().flat_map(|it| vec![it.clone(); times(&it)]).collect();
        }
        program
    };
    agree_on(Kinds::BARRIERS, CONTRACT, 500, repeat);
    agree_on(Kinds::ALL, CONTRACT, 2_000, repeat);
}

#[test]
fn barriers_by_the_letter() {
    agree(Kinds::BARRIERS, SPECIFICATION, 3_000);
}

#[test]
fn queues_events_and_secondaries_by_the_letter() {
    agree(Kinds::STAGE_ONE, SPECIFICATION, 3_000);
}

#[test]
fn everything_by_the_letter() {
    agree(Kinds::ALL, SPECIFICATION, 3_000);
}

/// A rule must not lean on another.
#[test]
fn everything_without_one_rule() {
    for without in 0..3 {
        let has = |rule: usize| rule != without;
        let (most_recent_reads, visible_writes, ordered_transitions) = (has(0), has(1), has(2));
        let oracle = OracleRules { most_recent_reads, visible_writes, ordered_transitions };
        let engine = Rules { most_recent_reads, visible_writes, ordered_transitions };
        agree(Kinds::ALL, Setting { oracle, engine }, 1_000);
    }
}
