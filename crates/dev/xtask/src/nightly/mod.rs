//! What takes longer than a test may, one night: random programs, attacks, real programs, sanitizers, races.
//!
//! Each step is data ([`steps`]). A step that fails does not stop the others. `docs/nightly.md` is written after each
//! step, and keeps the last result of those that did not run.

mod page;
mod repeat;
mod steps;

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result, ensure};

use crate::setup::process;
use crate::setup::process::cargo;
use page::{NightlyPage, NightlyRow};
use steps::{NightlyStep, STEPS, StepAction};

/// Where the results stand.
const PAGE: &str = "docs/nightly.md";

/// How long a step goes on that has no end of its own.
const MINUTES: f64 = 30.0;

/// What one night is asked for.
pub(crate) struct NightlyRequest {
    /// Names of steps; all where there are none.
    pub(crate) steps: Vec<String>,
    pub(crate) seed: Option<u64>,
    /// For each step that has no end of its own, [`MINUTES`] where it is not given. Tests that are repeated end there,
    /// too, if it is given.
    pub(crate) minutes: Option<f64>,
}

/// What became of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct StepCounts {
    count: u64,
    failed: u64,
}

pub(crate) fn run(root: &Path, night: &NightlyRequest) -> Result<()> {
    let wanted = find_steps(&night.steps)?;
    let seed = night.seed.map_or_else(new_seed, Ok)?;
    let limit = night.minutes.map(|it| Duration::try_from_secs_f64(it * 60.0)).transpose()?;
    println!("seed {seed}: `cargo xtask nightly --seed {seed}` does the same again");
    let mut failed = Vec::new();
    for step in wanted {
        println!("\n== {}: {}", step.name, step.what);
        let (about, begin) = (RunInfo::now(root)?, Instant::now());
        let outcome = run_step(root, step, seed, limit).unwrap_or_else(|error| {
            println!("{}: {error:#}", step.name);
            StepCounts { count: 0, failed: 1 }
        });
        if outcome.failed > 0 {
            failed.push(step.name);
        }
        let seed = if step.has_seed() { seed.to_string() } else { "none".to_owned() };
        let seconds = begin.elapsed().as_secs();
        let row = NightlyRow::new(step, &seed, outcome, Duration::from_secs(seconds), &about);
        println!("== {}: {} {}, {} failed, {}", step.name, outcome.count, step.unit, outcome.failed, row.time);
        write(root, row)?;
    }
    ensure!(failed.is_empty(), "{} steps failed: {}", failed.len(), failed.join(", "));
    Ok(())
}

/// The steps of these names, in the order of the list.
fn find_steps(names: &[String]) -> Result<Vec<&'static NightlyStep>> {
    let known: Vec<&str> = STEPS.iter().map(|it| it.name).collect();
    for name in names {
        ensure!(known.contains(&name.as_str()), "there is no step `{name}`; there are {}", known.join(", "));
    }
    Ok(STEPS.iter().filter(|it| names.is_empty() || names.iter().any(|name| name == it.name)).collect())
}

/// The seeds of a night: more than any step uses up.
const SEEDS: u64 = 10_000_000;

/// The first seed. Two nights that begin in different minutes have no seed in common.
fn new_seed() -> Result<u64> {
    let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).context("the clock is wrong")?;
    Ok(time.as_secs() / 60 * SEEDS)
}

/// What a result is of.
struct RunInfo {
    commit: String,
    date: String,
}

impl RunInfo {
    fn now(root: &Path) -> Result<RunInfo> {
        let said = |program: &str, arguments: &[&str]| -> Result<String> {
            let output = process::output(root, program, arguments)?;
            ensure!(output.status.success(), "`{program} {}` failed", arguments.join(" "));
            Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
        };
        let mut commit = said("git", &["rev-parse", "--short=10", "HEAD"])?;
        let changes = said("git", &["status", "--porcelain"])?;
        if changes.lines().any(|it| !it.ends_with(PAGE)) {
            commit += " and changes";
        }
        Ok(RunInfo { commit, date: said("date", &["-u", "+%Y-%m-%d %H:%M"])? })
    }
}

/// Performs a step, with other seeds until its time is over if it has those.
fn run_step(root: &Path, step: &NightlyStep, seed: u64, limit: Option<Duration>) -> Result<StepCounts> {
    let begin = Instant::now();
    let time = limit.unwrap_or(Duration::from_secs_f64(MINUTES * 60.0));
    let mut all = StepCounts::default();
    for round in 0.. {
        let outcome = match step.work {
            StepAction::Command { words, count, failed } => {
                let words = steps::fill_placeholders(words, step.seed_of(seed, round), time);
                let mut command = Command::new(cargo());
                let (status, text) = process::run_and_capture(command.args(&words).current_dir(root))?;
                let failed = failed.and_then(|it| steps::sum_matches(it, &text)).unwrap_or(0);
                let failed = if status.success() { failed } else { failed.max(1) };
                StepCounts { count: count.iter().filter_map(|it| steps::sum_matches(it, &text)).sum(), failed }
            }
            StepAction::Repeat(test) => repeat::run(root, &test, limit)?,
        };
        (all.count, all.failed) = (all.count + outcome.count, all.failed + outcome.failed);
        if !step.is_repeated() || begin.elapsed() >= time || outcome.failed > 0 {
            break;
        }
    }
    // A step that counted nothing has shown nothing.
    Ok(if all.count == 0 { StepCounts { failed: all.failed.max(1), ..all } } else { all })
}

/// Puts a row into the page; the others stay.
fn write(root: &Path, row: NightlyRow) -> Result<()> {
    let path = root.join(PAGE);
    let mut page = std::fs::read_to_string(&path).map(|it| NightlyPage::parse(&it)).unwrap_or_default();
    page.insert_row(row);
    let order: Vec<&str> = STEPS.iter().map(|it| it.name).collect();
    // An interrupted write would lose the other rows.
    let new = path.with_extension("md.new");
    std::fs::write(&new, page.text(&order)).with_context(|| format!("{} cannot be written", new.display()))?;
    std::fs::rename(&new, &path).with_context(|| format!("{} cannot be written", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_chosen_by_name_and_unknown_ones_are_refused() {
        let names = |it: &[&str]| find_steps(&it.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>());
        assert_eq!(names(&[]).map(|it| it.len()).ok(), Some(STEPS.len()));
        let two = names(&["sanitize", "sim"]).expect("they are there");
        assert_eq!(two.iter().map(|it| it.name).collect::<Vec<_>>(), ["sim", "sanitize"]);
        let error = names(&["nothing"]).err().expect("it is not there").to_string();
        assert!(error.contains("no step `nothing`; there are sim, "), "{error}");
    }
}
