//! The hazard engine against the oracle, on as many random programs as asked for.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::setup::process::cargo;

/// Runs each kind of program with these seeds, and shows what they were made of.
pub(crate) fn run(root: &Path, programs: u64, seed: u64) -> Result<()> {
    let arguments = ["test", "--release", "--package", "lavascope-engine", "--test", "random", "--", "--nocapture"];
    let status = Command::new(cargo())
        .args(arguments)
        .current_dir(root)
        .env("LAVASCOPE_SAMPLE_PROGRAMS", programs.to_string())
        .env("LAVASCOPE_SAMPLE_SEED", seed.to_string())
        .status()
        .context("cargo cannot be run")?;
    ensure!(status.success(), "the engine and the oracle disagree; the smallest programs are above");
    println!("{programs} programs of each kind, seeds {seed} to {}: no disagreement", seed + programs - 1);
    Ok(())
}
