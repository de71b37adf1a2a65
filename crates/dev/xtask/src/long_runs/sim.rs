//! Random programs, as many as asked for: the hazard engine against the oracle and with caches against without, and the
//! order of threads in captures and replays.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::setup::process::cargo;

/// Runs each kind of program with these seeds, and shows what they were made of.
pub(crate) fn run(root: &Path, programs: u64, seed: u64) -> Result<()> {
    let passes = run_test(root, "lavascope-engine", "random", programs, seed)?;
    ensure!(passes, "the engine and the oracle disagree; the smallest programs are above");
    println!("{programs} programs of each kind, seeds {seed} to {}: no disagreement", seed + programs - 1);
    Ok(())
}

/// How many programs the engine checks for each one that a validator follows from its first call: those are long.
const PROGRAMS_PER_APPLICATION: u64 = 1000;
/// A single application may never record the same twice.
const APPLICATIONS_MIN: u64 = 20;

/// Runs programs with caches and without, in the engine and some in the validator.
pub(crate) fn compare_caches(root: &Path, programs: u64, seed: u64) -> Result<()> {
    let applications = programs.div_ceil(PROGRAMS_PER_APPLICATION).max(APPLICATIONS_MIN);
    let passes = run_test(root, "lavascope-engine", "caches", programs, seed)?
        && run_test(root, "lavascope-validate", "call_sequences", applications, seed)?;
    ensure!(passes, "caches change what is found; the seed is above");
    println!("{programs} programs and {applications} applications with and without caches: no difference");
    Ok(())
}

/// Captures programs with several threads, and replays them with random delays.
pub(crate) fn run_threads(root: &Path, programs: u64, seed: u64) -> Result<()> {
    let passes = run_test(root, "lavascope-thread-programs", "threads", programs, seed)?;
    ensure!(passes, "calls of different threads may be exchanged, or were; the seed is above");
    Ok(())
}

fn run_test(root: &Path, package: &str, test: &str, programs: u64, seed: u64) -> Result<bool> {
    let arguments = ["test", "--release", "--package", package, "--test", test, "--", "--nocapture"];
    let status = Command::new(cargo())
        .args(arguments)
        .current_dir(root)
        .env("LAVASCOPE_SAMPLE_PROGRAMS", programs.to_string())
        .env("LAVASCOPE_SAMPLE_SEED", seed.to_string())
        .status()
        .context("cargo cannot be run")?;
    Ok(status.success())
}
