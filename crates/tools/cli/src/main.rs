//! The `lavascope` command line: reads the arguments, runs one command, and turns its end into an exit code.

#![forbid(unsafe_code)]

mod commands;
mod launch;
mod trace;
#[rustfmt::skip]
mod generated;
mod report;
mod text;

use std::process::ExitCode;
use std::sync::LazyLock;

use clap::{CommandFactory, Parser, Subcommand};

use commands::doctor::probe_command;
use commands::replay::worker;
use commands::{
    CommandOutcome, api, capture, check, doctor, env, explain, info, instrument, layer, package_files, print, replay,
    report as report_command, run, trim,
};

/// Checking a trace asks for memory millions of times; this allocator makes all of it a tenth faster. Sanitizers cannot see into
/// it.
#[cfg(not(lavascope_sanitize))]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

static VERSION: LazyLock<String> = LazyLock::new(|| {
    format!("{} (Vulkan registry {})", env!("CARGO_PKG_VERSION"), commands::api::catalog::registry_version())
});

const EXIT_CODES: &str = "\
Exit codes:
  0  success, and nothing is wrong
  1  the command worked and found something: a finding, a difference, or a missing driver
  2  lavascope failed, or the arguments are wrong
`run` and `capture` exit with the code of the program if that is not 0";

/// Finds synchronization hazards and shader faults in Vulkan programs; records and replays what they do.
#[derive(Parser)]
#[command(name = "lavascope", version = VERSION.as_str(), after_help = EXIT_CODES)]
struct CliArguments {
    #[command(subcommand)]
    command: CliCommand,
}

#[derive(Subcommand)]
enum CliCommand {
    Doctor(doctor::DoctorArguments),
    #[command(hide = true)]
    DoctorProbe(probe_command::ProbeArguments),
    Api(api::ApiArguments),
    Capture(capture::CaptureArguments),
    Check(check::CheckArguments),
    Explain(explain::ExplainArguments),
    Info(info::InfoArguments),
    Instrument(instrument::InstrumentArguments),
    Print(print::PrintArguments),
    Replay(replay::ReplayArguments),
    Report(report_command::ReportCommandArguments),
    Run(run::RunArguments),
    Trim(trim::TrimArguments),
    Env(env::EnvArguments),
    Layer(layer::LayerArguments),
    #[command(hide = true)]
    PackageFiles(package_files::PackageFilesArguments),
}

fn main() -> ExitCode {
    let result = match replay::from_parent() {
        Some(arguments) => arguments.and_then(|it| worker::run(&it)),
        None => run(CliArguments::parse().command),
    };
    match result {
        Ok(CommandOutcome::Success) => ExitCode::from(0),
        Ok(CommandOutcome::Findings) => ExitCode::from(1),
        Ok(CommandOutcome::Program(code)) => ExitCode::from(code),
        Ok(CommandOutcome::Failed) => ExitCode::from(2),
        Err(error) => {
            eprintln!("lavascope: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn run(command: CliCommand) -> anyhow::Result<CommandOutcome> {
    match command {
        CliCommand::Doctor(arguments) => doctor::run(&arguments),
        CliCommand::DoctorProbe(arguments) => probe_command::run(&arguments),
        CliCommand::Api(arguments) => api::run(&arguments),
        CliCommand::Capture(arguments) => capture::run(&arguments),
        CliCommand::Check(arguments) => check::run(&arguments),
        CliCommand::Explain(arguments) => explain::run(&arguments),
        CliCommand::Info(arguments) => info::run(&arguments),
        CliCommand::Instrument(arguments) => instrument::run(&arguments),
        CliCommand::Print(arguments) => print::run(&arguments),
        CliCommand::Replay(arguments) => replay::run(&arguments),
        CliCommand::Report(arguments) => report_command::run(&arguments),
        CliCommand::Run(arguments) => run::run(&arguments),
        CliCommand::Trim(arguments) => trim::run(&arguments),
        CliCommand::Env(arguments) => env::run(&arguments),
        CliCommand::Layer(arguments) => layer::run(&arguments),
        CliCommand::PackageFiles(arguments) => package_files::run(&arguments, CliArguments::command()),
    }
}
