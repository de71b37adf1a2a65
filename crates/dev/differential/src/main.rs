//! Compares what our layer and the Khronos layer report of the same programs.

#![forbid(unsafe_code)]

mod command_buffer_events;
mod core_validation;
mod corpus;
mod disagreement;
mod examples;
mod execution;
mod host_progress;
mod judge;
mod layer_process;
mod peer_limits;
mod predicates;
mod queue_families;
mod random_programs;
mod reported_hazard;
mod suspended_rendering;
mod worker;

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::{Parser, Subcommand};

use judge::{Judge, JudgedProgram};
use layer_process::ComparedLayer;

#[derive(Parser)]
struct DifferentialArguments {
    #[command(subcommand)]
    command: DifferentialCommand,
}

#[derive(Subcommand)]
enum DifferentialCommand {
    /// Perform what is read from the standard input; started by the other commands.
    Worker { layer: String },
    /// Show what both layers report of one scenario.
    File { path: PathBuf },
    /// Compare what both report of the scenarios in a folder; for people, and never a failure.
    Corpus {
        folder: PathBuf,
        /// Only scenarios with this in their names.
        #[arg(default_value = "")]
        filter: String,
    },
    /// Show the program of a seed.
    Show {
        seed: u64,
        #[arg(default_value = "")]
        features: String,
    },
    /// Judge the scenario of each predicate: it must need that one, and no other.
    Predicates { folder: PathBuf },
    /// Look for a small program that needs a predicate, and print it.
    Example {
        predicate: String,
        #[arg(long, default_value_t = 10_000)]
        programs: u64,
        #[arg(long, default_value_t = 1)]
        seed: u64,
        #[arg(long, default_value = "")]
        features: String,
    },
    /// Compare what both report of random programs.
    Random {
        #[arg(long, default_value_t = 1000)]
        programs: u64,
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// What programs may have, by name; everything if it is not given.
        #[arg(long, default_value = "")]
        features: String,
        /// End after so many disagreements.
        #[arg(long, default_value_t = 3)]
        shown: usize,
        /// Ask the core validation of the Khronos layer instead whether the programs are valid.
        #[arg(long)]
        core: bool,
    },
}

fn main() -> Result<()> {
    match DifferentialArguments::parse().command {
        DifferentialCommand::Worker { layer } => {
            let all = [ComparedLayer::Ours, ComparedLayer::Peer, ComparedLayer::PeerCore];
            let Some(layer) = all.into_iter().find(|it| it.word() == layer) else { bail!("no layer {layer}") };
            worker::run(layer.layer_name())
        }
        DifferentialCommand::File { path } => {
            let text = std::fs::read_to_string(&path).with_context(|| format!("{} cannot be read", path.display()))?;
            let mut judge = Judge::new(&[7, 6])?;
            let (ours, peer) = judge.answers(std::slice::from_ref(&text))?;
            for (layer, answers) in [(ComparedLayer::Ours, ours), (ComparedLayer::Peer, peer)] {
                println!("{}: {answers:#?}", layer.word());
            }
            if let JudgedProgram::Compared { disagreements, .. } = judge.judge(&text)? {
                disagreements.iter().for_each(|it| println!("{it}"));
            }
            Ok(())
        }
        DifferentialCommand::Show { seed, features } => {
            let request = random_programs::RandomRun { programs: 1, seed, features, shown_max: 0 };
            println!("{}", random_programs::text_of(&request.program(seed)?));
            Ok(())
        }
        DifferentialCommand::Predicates { folder } => examples::check(&folder),
        DifferentialCommand::Example { predicate, programs, seed, features } => {
            let request = random_programs::RandomRun { programs, seed, features, shown_max: 0 };
            examples::find(&request, &predicate)
        }
        DifferentialCommand::Corpus { folder, filter } => corpus::run(&folder, &filter),
        DifferentialCommand::Random { programs, seed, features, shown, core } => {
            let request = random_programs::RandomRun { programs, seed, features, shown_max: shown };
            if core { core_validation::run(&request) } else { random_programs::run(&request) }
        }
    }
}
