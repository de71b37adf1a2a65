//! The `lavascope` command line: reads the arguments, runs one command, and turns its end into an exit code.

#![forbid(unsafe_code)]

mod catalog;
mod commands;
mod describe;
mod driver_files;
mod features;
mod findings;
#[rustfmt::skip]
mod generated;
mod known;
mod layer_files;
mod libraries;
mod pages;
mod probe;
mod program;
mod progress;
mod read_ahead;
mod remedy;
mod report;
mod scenario_names;
mod summary;
mod symbols;
mod text;
mod trace_file;
mod trigger;

use std::process::ExitCode;
use std::sync::LazyLock;

use clap::{Parser, Subcommand};

use commands::{
    Outcome, api, capture, check, doctor, doctor_probe, env, explain, info, instrument, layer, print, replay,
    replay_here, run, trim,
};

/// Checking a trace asks for memory millions of times; this allocator makes all of it a tenth faster. Sanitizers cannot see into
/// it.
#[cfg(not(lavascope_sanitize))]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

static VERSION: LazyLock<String> =
    LazyLock::new(|| format!("{} (Vulkan registry {})", env!("CARGO_PKG_VERSION"), catalog::registry_version()));

const EXIT_CODES: &str = "\
Exit codes:
  0  all is well
  1  something was found: a part is missing or broken, or the program under test is wrong
  2  lavascope failed, or was asked for something that does not exist
`run` gives the program's own code where that is not 0 (128 and more: a signal)";

/// Shows what a Vulkan program really does, and where it is wrong.
#[derive(Parser)]
#[command(name = "lavascope", version = VERSION.as_str(), after_help = EXIT_CODES)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Doctor(doctor::Arguments),
    #[command(hide = true)]
    DoctorProbe,
    Api(api::Arguments),
    Capture(capture::Arguments),
    Check(check::Arguments),
    Explain(explain::Arguments),
    Info(info::Arguments),
    Instrument(instrument::Arguments),
    Print(print::Arguments),
    Replay(replay::Arguments),
    Run(run::Arguments),
    Trim(trim::Arguments),
    Env(env::Arguments),
    Layer(layer::Arguments),
}

fn main() -> ExitCode {
    let result = match replay::of_parent() {
        Some(arguments) => arguments.and_then(|it| replay_here::run(&it)),
        None => run(Arguments::parse().command),
    };
    match result {
        Ok(Outcome::Fine) => ExitCode::from(0),
        Ok(Outcome::Found) => ExitCode::from(1),
        Ok(Outcome::Program(code)) => ExitCode::from(code),
        Ok(Outcome::Failed) => ExitCode::from(2),
        Err(error) => {
            eprintln!("lavascope: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn run(command: Command) -> anyhow::Result<Outcome> {
    match command {
        Command::Doctor(arguments) => doctor::run(&arguments),
        Command::DoctorProbe => doctor_probe::run(),
        Command::Api(arguments) => api::run(&arguments),
        Command::Capture(arguments) => capture::run(&arguments),
        Command::Check(arguments) => check::run(&arguments),
        Command::Explain(arguments) => explain::run(&arguments),
        Command::Info(arguments) => info::run(&arguments),
        Command::Instrument(arguments) => instrument::run(&arguments),
        Command::Print(arguments) => print::run(&arguments),
        Command::Replay(arguments) => replay::run(&arguments),
        Command::Run(arguments) => run::run(&arguments),
        Command::Trim(arguments) => trim::run(&arguments),
        Command::Env(arguments) => env::run(&arguments),
        Command::Layer(arguments) => layer::run(&arguments),
    }
}
