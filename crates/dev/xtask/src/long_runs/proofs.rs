//! What a capture promises, tried for longer than a test may: programs are killed, files are damaged.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::setup::process::cargo;

/// How often, and from which random number on.
pub(crate) struct ProofCounts {
    pub(crate) kills: u64,
    pub(crate) damages: u64,
    pub(crate) seed: u64,
}

pub(crate) fn run(root: &Path, wanted: &ProofCounts) -> Result<()> {
    let (kills, damages, seed) = (wanted.kills.to_string(), wanted.damages.to_string(), wanted.seed.to_string());
    damage(root, &damages, &seed)?;
    let build = ["build", "--release", "--package", "lavascope-samples"];
    crate::setup::process::run(root, &cargo(), &build)?;
    let name = "capture::a_killed_program_leaves_a_whole_trace";
    let killed = ["test", "--release", "--package", "lavascope-cli", "--test", "programs", "--", "--exact", name];
    test(root, &killed, &[("LAVASCOPE_KILLS", &kills)])?;
    println!("{kills} programs were killed: every trace opens, and has each call whose record was complete");
    Ok(())
}

/// Damaged files alone.
pub(crate) fn damage(root: &Path, damages: &str, seed: &str) -> Result<()> {
    let arguments = ["test", "--release", "--package", "lavascope-trace", "--test", "damage", "--", "--nocapture"];
    test(root, &arguments, &[("LAVASCOPE_DAMAGES", damages), ("LAVASCOPE_SEED", seed)])?;
    println!("{damages} damaged traces: only errors that were reported, and no more memory than a file may need");
    Ok(())
}

fn test(root: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> Result<()> {
    let mut command = Command::new(cargo());
    command.args(arguments).envs(variables.iter().copied()).current_dir(root);
    let status = command.status().context("cargo cannot be run")?;
    ensure!(status.success(), "`cargo {}` failed; what it says is above", arguments.join(" "));
    Ok(())
}
