//! Long runs of mutated records, traces and shaders, in release mode.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::long_runs::proofs;
use crate::setup::process;
use crate::setup::process::cargo;

/// Has the compiler count how often each place of a program is reached.
const COUNTED: &str = "-C passes=sancov-module -C llvm-args=-sanitizer-coverage-level=3 \
    -C llvm-args=-sanitizer-coverage-inline-8bit-counters";

/// Traces that are changed further where they reach something new, for some time.
pub(crate) fn guided(root: &Path, seconds: u64, seed: u64) -> Result<()> {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), Into::into).join("guided");
    let corpus = target.join("corpus").display().to_string();
    let (seconds, seed) = (seconds.to_string(), seed.to_string());
    let mut command = Command::new(cargo());
    command.args(["run", "--release", "--package", "lavascope-trace", "--example", "guided"]);
    // With a target of its own, build scripts are built as usual.
    command.args(["--target", &format!("{}-unknown-linux-gnu", std::env::consts::ARCH), "--"]);
    command.args([&seconds, &seed, &corpus]).current_dir(root);
    // A build of its own: with counters everything is another program.
    command.env("RUSTFLAGS", COUNTED).env("CARGO_TARGET_DIR", &target);
    let status = command.status().context("cargo cannot be run")?;
    ensure!(status.success(), "the reader failed; the trace is {corpus}/now.lava, with its tail");
    Ok(())
}

/// Shaders that are changed, each into another valid one, and then instrumented.
pub(crate) fn shaders(root: &Path, count: u64, seed: u64) -> Result<()> {
    let (count, seed) = (count.to_string(), seed.to_string());
    let test = "changed_shaders_stay_valid_with_checks";
    let arguments =
        ["test", "--release", "--package", "lavascope-instrument", "--test", "changed", test, "--", "--nocapture"];
    let mut command = Command::new(cargo());
    command.args(arguments).current_dir(root).env("LAVASCOPE_SHADERS", count).env("LAVASCOPE_SEED", seed);
    let status = command.status().context("cargo cannot be run")?;
    ensure!(status.success(), "a shader was not instrumented well; its words are in the file that was named");
    Ok(())
}

pub(crate) fn run(root: &Path, records: u64, seed: u64, traces: u64) -> Result<()> {
    let (records, seed) = (records.to_string(), seed.to_string());
    let arguments =
        ["run", "--release", "--package", "lavascope-marshal", "--example", "mutate", "--", &records, &seed];
    process::run(root, &cargo(), &arguments)?;
    proofs::damage(root, &traces.to_string(), &seed)
}
