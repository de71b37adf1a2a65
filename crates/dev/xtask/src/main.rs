//! The commands contributors run: demo, test, codegen, tidy, bench, fuzz and more.
//!
//! The one place where Lavascope uses the network: package managers, for what the tests and the generator need.

#![forbid(unsafe_code)]

mod bench;
mod compare;
mod demo;
mod dist;
mod generate;
mod long_runs;
mod nightly;
mod platforms;
mod setup;
mod test;
mod tidy;

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "The commands contributors to Lavascope run")]
struct XtaskArguments {
    #[command(subcommand)]
    command: XtaskCommand,
}

#[derive(Subcommand)]
enum XtaskCommand {
    /// Install what is missing, build, and show in a minute what the suite finds.
    Demo {
        /// Never install system packages; say what is missing instead.
        #[arg(long)]
        no_install: bool,
        /// Print the steps and run nothing.
        #[arg(long)]
        plan: bool,
    },
    /// Build a tarball and a Debian package in target/dist.
    Dist {
        /// Then unpack the tarball in an empty Debian root and run the README's commands there as an ordinary user.
        #[arg(long)]
        try_out: bool,
        /// Never install system packages; say what is missing instead.
        #[arg(long)]
        no_install: bool,
    },
    /// Install programs, layer, manual pages and completions into your own folders.
    Install {
        /// Another folder than ~/.local.
        #[arg(long, value_name = "FOLDER")]
        prefix: Option<PathBuf>,
        /// Remove them again.
        #[arg(long)]
        uninstall: bool,
    },
    /// Install what the tests need, then run every test.
    Test {
        /// Never install system packages; say what is missing instead.
        #[arg(long)]
        no_install: bool,
    },
    /// Write the generated files from the pinned registry.
    Codegen {
        /// Write nothing; fail if a file would change.
        #[arg(long)]
        check: bool,
    },
    /// Compile the shaders of the samples.
    Shaders,
    /// Check the rules of the house.
    Tidy,
    /// Write anew what tests compare with; read the difference before committing it.
    Bless,
    /// Measure, and compare with the limits.
    Bench {
        /// Write the entries as JSON.
        #[arg(long, value_name = "FILE")]
        json: Option<PathBuf>,
        /// Count instructions under valgrind as well.
        #[arg(long)]
        instructions: bool,
        /// Write the figures into docs/performance.json, and render docs/performance.md from it.
        #[arg(long)]
        write_docs: bool,
        /// Only this topic, this bench binary, or entries whose name contains this.
        #[arg(value_name = "NAME")]
        filter: Option<String>,
    },
    /// Measure vkcube alone and under the layer, in turns.
    Vkcube {
        /// How many pairs of runs.
        #[arg(long, default_value_t = bench::vkcube::PAIRS, value_parser = clap::value_parser!(u32).range(3..=1000))]
        pairs: u32,
        /// Let the layer count calls; that is for information, and has no limit.
        #[arg(long)]
        stats: bool,
        /// Write the figures as JSON.
        #[arg(long, value_name = "FILE")]
        json: Option<PathBuf>,
    },
    /// Run samples and programs of others under both Khronos layers and ours, and compare what they tell.
    Compare {
        /// So many random programs instead, under the newer Khronos layer and ours.
        #[arg(long, value_name = "N")]
        random: Option<u64>,
        /// The seed of the first random program.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Ask the core validation of the Khronos layer whether the random programs are valid, and compare nothing.
        #[arg(long, requires = "random")]
        core: bool,
        /// The scenarios of the hazard engine instead; prints where the two layers differ.
        #[arg(long)]
        corpus: bool,
        /// Write everything as JSON.
        #[arg(long, value_name = "FILE")]
        json: Option<PathBuf>,
        /// Never install system packages; say what is missing instead.
        #[arg(long)]
        no_install: bool,
        /// Only programs whose name contains this.
        #[arg(value_name = "NAME", default_value = "")]
        filter: String,
    },
    /// Capture programs of others and replay them, on all their threads and on one, and what was captured again.
    Programs {
        /// Write everything as JSON.
        #[arg(long, value_name = "FILE")]
        json: Option<PathBuf>,
        /// Never install system packages; say what is missing instead.
        #[arg(long)]
        no_install: bool,
        /// Only programs whose name contains this.
        #[arg(value_name = "NAME", default_value = "")]
        filter: String,
    },
    /// Build the workspace for aarch64 Linux.
    Platforms {
        /// Look for errors of the compiler only, and link nothing.
        #[arg(long)]
        check: bool,
        /// Never install system packages; say what is missing instead.
        #[arg(long)]
        no_install: bool,
    },
    /// Compare the hazard engine with the oracle on random programs, for longer than a test may.
    Sim {
        /// Compare it with itself instead, with caches and without.
        #[arg(long)]
        caches: bool,
        /// How many programs of each kind.
        #[arg(long, default_value_t = 100_000)]
        programs: u64,
        /// The first seed.
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// Capture and replay random programs whose threads hand over work, for longer than a test may.
    Threads {
        /// How many programs.
        #[arg(long, default_value_t = 100_000)]
        programs: u64,
        /// The first seed.
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// Feed mutated records to the check, for longer than a test may.
    Fuzz {
        /// How many mutated records.
        #[arg(long, default_value_t = 10_000_000)]
        records: u64,
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// How many damaged traces after them.
        #[arg(long, default_value_t = 10_000)]
        traces: u64,
        /// Only shaders: how many mutated ones are instrumented.
        #[arg(long)]
        shaders: Option<u64>,
        /// Only traces, for so many seconds, guided by what parts of the reader they reach.
        #[arg(long, value_name = "SECONDS")]
        guided: Option<u64>,
    },
    /// Run the tests of the crates with unsafe code and with threads under AddressSanitizer and ThreadSanitizer.
    Sanitize {
        /// Never install system packages; say what is missing instead.
        #[arg(long)]
        no_install: bool,
        /// Only parts whose name, like `thread:lavascope-stream`, contains this.
        #[arg(value_name = "PART", default_value = "")]
        filter: String,
    },
    /// Draw with vkcube under the layer, and look at its memory.
    Soak {
        #[arg(long, default_value_t = 30.0)]
        minutes: f64,
    },
    /// Run what takes longer than a test may, and write the results to docs/nightly.md.
    Nightly {
        /// The first seed; another one each night unless it is given.
        #[arg(long)]
        seed: Option<u64>,
        /// For each step that has no end of its own, 30 where it is not given; given, it ends repeated tests, too.
        #[arg(long)]
        minutes: Option<f64>,
        /// Only these steps.
        #[arg(value_name = "STEP")]
        steps: Vec<String>,
    },
    /// Kill programs that are captured, and damage traces, as often as a promise should hold.
    Proofs {
        /// How many programs are killed.
        #[arg(long, default_value_t = 200)]
        kills: u64,
        /// How many files are damaged.
        #[arg(long, default_value_t = 100_000)]
        damages: u64,
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
}

fn main() -> Result<()> {
    let root = root();
    match XtaskArguments::parse().command {
        XtaskCommand::Demo { plan: true, .. } => demo::run(&root, demo::DemoMode::Plan),
        XtaskCommand::Demo { plan: false, no_install } => demo::run(&root, demo::DemoMode::Run { no_install }),
        XtaskCommand::Dist { try_out: false, .. } => dist::run(&root).map(|_| ()),
        XtaskCommand::Dist { try_out: true, no_install } => dist::try_out::run(&root, no_install),
        XtaskCommand::Install { prefix, uninstall: false } => dist::install(&root, prefix.as_deref()),
        XtaskCommand::Install { prefix, uninstall: true } => dist::uninstall(prefix.as_deref()),
        XtaskCommand::Test { no_install } => test::run(&root, no_install),
        XtaskCommand::Codegen { check } => generate::codegen::run(&root, check),
        XtaskCommand::Shaders => generate::shaders::run(&root),
        XtaskCommand::Tidy => run_tidy(&root),
        XtaskCommand::Bless => generate::bless::run(&root),
        XtaskCommand::Bench { json, instructions, write_docs, filter } => {
            let (json, filter) = (json.as_deref(), filter.as_deref());
            let request =
                bench::BenchRequest { json, counts_instructions: instructions, writes_docs: write_docs, filter };
            bench::run(&root, &request)
        }
        XtaskCommand::Vkcube { pairs, stats: true, json } => {
            bench::vkcube::run(&root, pairs, bench::vkcube::VkcubeLayer::Counts, json.as_deref())
        }
        XtaskCommand::Vkcube { pairs, stats: false, json } => {
            bench::vkcube::run(&root, pairs, bench::vkcube::VkcubeLayer::Off, json.as_deref())
        }
        XtaskCommand::Compare { random: Some(programs), seed, core: false, no_install, .. } => {
            compare::differential::run_random(&root, programs, seed, no_install)
        }
        XtaskCommand::Compare { random: Some(programs), seed, core: true, no_install, .. } => {
            compare::differential::run_core(&root, programs, seed, no_install)
        }
        XtaskCommand::Compare { corpus: true, no_install, filter, .. } => {
            compare::differential::run_corpus(&root, &filter, no_install)
        }
        XtaskCommand::Compare { json, no_install, filter, .. } => {
            compare::run(&root, &filter, json.as_deref(), no_install)
        }
        XtaskCommand::Programs { json, no_install, filter } => {
            compare::capture_replay::run(&root, &filter, json.as_deref(), no_install)
        }
        XtaskCommand::Platforms { check: true, no_install } => {
            platforms::run(&root, platforms::PlatformBuild::Check, no_install)
        }
        XtaskCommand::Platforms { check: false, no_install } => {
            platforms::run(&root, platforms::PlatformBuild::Build, no_install)
        }
        XtaskCommand::Sim { caches: true, programs, seed } => long_runs::sim::compare_caches(&root, programs, seed),
        XtaskCommand::Sim { caches: false, programs, seed } => long_runs::sim::run(&root, programs, seed),
        XtaskCommand::Threads { programs, seed } => long_runs::sim::run_threads(&root, programs, seed),
        XtaskCommand::Fuzz { seed, guided: Some(seconds), .. } => long_runs::fuzz::guided(&root, seconds, seed),
        XtaskCommand::Fuzz { seed, shaders: Some(count), .. } => long_runs::fuzz::shaders(&root, count, seed),
        XtaskCommand::Fuzz { records, seed, traces, .. } => long_runs::fuzz::run(&root, records, seed, traces),
        XtaskCommand::Sanitize { no_install, filter } => long_runs::sanitize::run(&root, &filter, no_install),
        XtaskCommand::Soak { minutes } => long_runs::soak::run(&root, minutes),
        XtaskCommand::Nightly { seed, minutes, steps } => {
            nightly::run(&root, &nightly::NightlyRequest { steps, seed, minutes })
        }
        XtaskCommand::Proofs { kills, damages, seed } => {
            long_runs::proofs::run(&root, &long_runs::proofs::ProofCounts { kills, damages, seed })
        }
    }
}

fn run_tidy(root: &Path) -> Result<()> {
    let faults = tidy::check(root)?;
    faults.iter().for_each(|it| println!("{it}"));
    anyhow::ensure!(faults.is_empty(), "{} faults", faults.len());
    Ok(())
}

/// The folder of the workspace.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(3).map(Path::to_path_buf).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_house_is_tidy() {
        match super::tidy::check(&super::root()) {
            Ok(faults) => assert!(faults.is_empty(), "\n{}", faults.join("\n")),
            Err(error) => panic!("{error:#}"),
        }
    }
}
