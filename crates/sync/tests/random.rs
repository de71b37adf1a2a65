//! The engine against the oracle, on random programs.
//!
//! `LAVASCOPE_SAMPLE_PROGRAMS` and `LAVASCOPE_SAMPLE_SEED` make it more, and others.

use lavascope_sim::hazard::{Kinds, OracleRules, describe, find_disagreement, random_program};

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().and_then(|it| it.parse().ok()).unwrap_or(default)
}

/// Compares as many programs as asked for, and shows the first disagreements, made small.
fn agree(kinds: Kinds, programs: u64) {
    let first = number("LAVASCOPE_SAMPLE_SEED", 1);
    let programs = number("LAVASCOPE_SAMPLE_PROGRAMS", programs);
    let mut shown = Vec::new();
    let mut wrong = 0;
    for seed in first..first + programs {
        let program = random_program(seed, &kinds);
        if let Some((small, why)) = find_disagreement(&program, OracleRules::CONTRACT, &lavascope_sync::check) {
            wrong += 1;
            if shown.len() < 3 {
                shown.push(format!("seed {seed}:\n{}", describe(&small, &why)));
            }
            if wrong >= 30 {
                break;
            }
        }
    }
    assert!(wrong == 0, "{wrong} disagreements in {programs} programs\n{}", shown.join("\n"));
}

#[test]
fn barriers() {
    agree(Kinds::BARRIERS, 2_000);
}

#[test]
fn queues_events_and_secondaries() {
    agree(Kinds::STAGE_ONE, 2_000);
}

#[test]
fn everything() {
    agree(Kinds::ALL, 2_000);
}
