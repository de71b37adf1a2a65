//! A scenario for each predicate: the smallest program that somebody found to need it.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use lavascope_scenario::ScenarioSource;
use lavascope_sim::programs::shrink;
use lavascope_sync_ir::{Command, Program};

use crate::judge::{Judge, JudgedProgram};
use crate::predicates::PREDICATES;
use crate::random_programs::{QUEUE_FLAGS, RandomRun, is_judged, split_known, text_of, valid_program};

/// Judges the scenario of each predicate.
pub(crate) fn check(folder: &Path) -> Result<()> {
    let mut judge = Judge::new(&QUEUE_FLAGS)?;
    let mut wrong = 0;
    for predicate in PREDICATES {
        let path = folder.join(predicate.name).with_extension("vks");
        let text = std::fs::read_to_string(&path).with_context(|| format!("{} cannot be read", path.display()))?;
        let source = ScenarioSource::new(&text).map_err(|it| anyhow::anyhow!("{}: {it}", predicate.name))?;
        let (known, is_open) = needed_by(&mut judge, &source.scenario.program, &text)?;
        let is_it = !is_open && known.iter().eq([&predicate.name]);
        println!("{}: needs {known:?}{}", predicate.name, if is_open { " and more" } else { "" });
        wrong += usize::from(!is_it);
    }
    ensure!(wrong == 0, "{wrong} scenarios do not show their predicate");
    Ok(())
}

/// Prints a small program that needs a predicate and no other.
pub(crate) fn find(request: &RandomRun, name: &str) -> Result<()> {
    ensure!(PREDICATES.iter().any(|it| it.name == name), "no predicate is called {name}");
    let judge = RefCell::new(Judge::new(&QUEUE_FLAGS)?);
    let needs_it = |program: &Program| {
        let needed = needed_by(&mut judge.borrow_mut(), program, &text_of(program));
        matches!(needed, Ok((known, false)) if known.iter().eq([&name]))
    };
    for seed in request.seed..request.seed + request.programs {
        let program = request.program(seed)?;
        if !needs_it(&program) {
            continue;
        }
        let smaller = |candidate: &Program| {
            let candidate = valid_program(candidate);
            is_judged(&candidate) && needs_it(&candidate)
        };
        let small = without_unused_passes(valid_program(&shrink(&program, &smaller)));
        println!("{}", text_of(&small));
        if let JudgedProgram::Compared { disagreements, .. } = judge.borrow_mut().judge(&text_of(&small))? {
            disagreements.iter().for_each(|it| eprintln!("{it}"));
        }
        return Ok(());
    }
    bail!("no program needs {name}")
}

/// The predicates that a program needs, and whether something stays open.
fn needed_by(judge: &mut Judge, program: &Program, text: &str) -> Result<(BTreeSet<&'static str>, bool)> {
    Ok(match judge.judge(text)? {
        JudgedProgram::Compared { disagreements, .. } => split_known(program, &disagreements),
        JudgedProgram::EventRace | JudgedProgram::Unsupported(_) | JudgedProgram::Broken { .. } => {
            (BTreeSet::new(), true)
        }
    })
}

/// The program without render passes that nothing begins.
fn without_unused_passes(mut program: Program) -> Program {
    let mut used: Vec<u32> = Vec::new();
    for command in program.command_buffers.iter_mut().flat_map(|it| &mut it.commands) {
        let Command::BeginRenderPass { pass, .. } = command else { continue };
        let at = used.iter().position(|it| *it == pass.0).unwrap_or_else(|| {
            used.push(pass.0);
            used.len() - 1
        });
        pass.0 = at as u32;
    }
    program.render_passes = used.iter().map(|it| program.render_passes[*it as usize].clone()).collect();
    program
}
