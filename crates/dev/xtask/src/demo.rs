//! The tour: what the suite finds, in a minute, on a machine that may have nothing but Rust.
//!
//! A step is a title, one line that says what it shows, and commands for a shell with the exit codes that they must
//! have. They are printed as they are run, so that a user can repeat them. The README has the same commands.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::setup::process;
use crate::setup::process::{cargo, quoted};
use crate::setup::system;

/// What the steps need, and nothing else: a user waits for it.
const PACKAGES: [&str; 3] = ["lavascope-cli", "lavascope-layer", "lavascope-samples"];

/// What to do with the steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DemoMode {
    /// Print them and run nothing.
    Plan,
    Run {
        no_install: bool,
    },
}

/// One stop of the tour.
struct TourStep {
    title: &'static str,
    /// What it shows, in one line.
    explanation: &'static str,
    commands: &'static [TourCommand],
}

struct TourCommand {
    text: &'static str,
    exit_code: i32,
}

/// A command that succeeds.
const fn succeeds(text: &'static str) -> TourCommand {
    TourCommand { text, exit_code: 0 }
}

/// A command that finds what is wrong.
const fn finds(text: &'static str) -> TourCommand {
    TourCommand { text, exit_code: 1 }
}

const TOUR: [TourStep; 5] = [
    TourStep {
        title: "A hazard",
        explanation: "A barrier names the wrong stage. The report has both accesses, the barrier, and a verified fix.",
        commands: &[finds("lavascope run -- lavascope-samples fault-barrier-stage")],
    },
    TourStep {
        title: "The fix",
        explanation: "The same program with that fix. The barrier now names the stage of compute shaders.",
        commands: &[succeeds("lavascope run -- lavascope-samples fault-barrier-stage --fixed")],
    },
    TourStep {
        title: "A shader fault",
        explanation: "A dispatch reads past the end of a buffer. The report has the line of the shader's source.",
        commands: &[finds("lavascope run --gpu -- lavascope-samples fault-bounds-read")],
    },
    TourStep {
        title: "Capture and replay",
        explanation: "Five threads draw a picture. The replay has five threads, too, and draws the same bytes.",
        commands: &[
            succeeds("lavascope capture --results -o threads.lava -- lavascope-samples threads"),
            succeeds("lavascope replay --verify threads.lava"),
        ],
    },
    TourStep {
        title: "A check without a driver",
        explanation: "The hazard of the first step, found in a capture. No Vulkan driver and no GPU is used.",
        commands: &[
            succeeds("lavascope capture -o hazard.lava -- lavascope-samples fault-barrier-stage"),
            finds("VK_DRIVER_FILES=none VK_ICD_FILENAMES=none lavascope check hazard.lava"),
        ],
    },
];

/// Where to go next: what is possible, and the command.
const NEXT: [(&str, &str); 6] = [
    ("your own program", "lavascope run -- ./app"),
    ("what a kind of finding means", "lavascope explain RAW"),
    ("loader, drivers and layers", "lavascope doctor"),
    ("every call with its parameters", "lavascope run --print calls.txt -- ./app"),
    ("a driver that needs no GPU and draws nothing", "lavascope run --null-driver -- ./app"),
    ("the programs for all your shells", "cargo xtask install"),
];

const GUIDE: &str = "docs/guide/README.md";

pub(crate) fn run(root: &Path, wanted: DemoMode) -> Result<()> {
    let look = TextStyle::for_stdout();
    let DemoMode::Run { no_install } = wanted else {
        print!("{}", plan(look));
        return Ok(());
    };
    if let Err(error) = system::ensure_for_demo(root, no_install) {
        // What the user has to do first has another exit code than a tour that failed.
        eprintln!("Error: {error:#}");
        std::process::exit(2);
    }
    let driver = system::lavapipe().context("there is no lavapipe: `apt-get install mesa-vulkan-drivers`")?;
    build(root)?;
    let place = TourPlace::new(root, driver)?;
    let begin = Instant::now();
    let failed = run_tour(&place, look)?;
    println!("\n{} steps in {:.0} s", TOUR.len(), begin.elapsed().as_secs_f64());
    if !failed.is_empty() {
        bail!("these steps failed: {}", failed.join(", "));
    }
    print!("{}", next_text(look));
    Ok(())
}

/// The steps as text.
fn plan(look: TextStyle) -> String {
    let steps = TOUR.iter().enumerate().map(|(at, step)| {
        let commands = step.commands.iter().map(|it| format!("$ {}\n", it.text)).collect::<String>();
        format!("{}\n{commands}", step_heading(at, step, look))
    });
    steps.chain([next_text(look)]).collect::<Vec<_>>().join("\n")
}

fn step_heading(at: usize, step: &TourStep, look: TextStyle) -> String {
    let title = look.bold(&format!("{}/{} {}", at + 1, TOUR.len(), step.title));
    format!("{title}\n{}", step.explanation)
}

fn next_text(look: TextStyle) -> String {
    let width = NEXT.iter().map(|it| it.0.len()).max().unwrap_or(0);
    let rows = NEXT.iter().map(|(what, command)| format!("  {what:width$}  {command}\n")).collect::<String>();
    format!("\n{}\n{rows}The guide begins at {GUIDE}.\n", look.bold("Where to go next"))
}

/// Cargo shows on a terminal how far it has come.
fn build(root: &Path) -> Result<()> {
    println!("Building Lavascope; the first time that takes some minutes.");
    let packages = PACKAGES.iter().flat_map(|it| ["--package", it]);
    let arguments: Vec<&str> = ["build", "--release"].into_iter().chain(packages).collect();
    process::run(root, &cargo(), &arguments)
}

/// Where the commands run.
struct TourPlace {
    folder: PathBuf,
    /// With our programs first.
    path: std::ffi::OsString,
    /// The manifest of the driver, so that the tour is the same whatever GPU is there.
    driver: String,
}

impl TourPlace {
    fn new(root: &Path, driver: String) -> Result<TourPlace> {
        let release = release_folder()?;
        let folder = release.with_file_name("demo");
        std::fs::create_dir_all(&folder).with_context(|| format!("the folder {} cannot be made", folder.display()))?;
        let others = std::env::var_os("PATH").unwrap_or_default();
        let path = std::env::join_paths(std::iter::once(release.clone()).chain(std::env::split_paths(&others)))
            .with_context(|| format!("{} cannot be in PATH", release.display()))?;
        let shown = |it: &Path| quoted(&it.strip_prefix(root).unwrap_or(it).display().to_string());
        println!("\nEvery step runs in {}, on Mesa's driver for the CPU:", shown(&folder));
        let programs = match release.strip_prefix(root) {
            Ok(inside) => format!("$PWD/{}", inside.display()),
            // `CARGO_TARGET_DIR` may be anywhere.
            Err(_) => release.display().to_string(),
        };
        println!("$ export PATH=\"{programs}:$PATH\" VK_DRIVER_FILES={driver} VK_ICD_FILENAMES={driver}");
        Ok(TourPlace { folder, path, driver })
    }
}

/// The titles of the steps that failed.
fn run_tour(place: &TourPlace, look: TextStyle) -> Result<Vec<&'static str>> {
    let mut failed = Vec::new();
    for (at, step) in TOUR.iter().enumerate() {
        println!("\n{}", step_heading(at, step, look));
        if let Some(reason) = run_step(place, step.commands, look)? {
            println!("{}", look.bold(&format!("this step failed: {reason}")));
            failed.push(step.title);
        }
    }
    Ok(failed)
}

/// Why a step failed, if it did; the commands behind the one that failed are not run.
fn run_step(place: &TourPlace, commands: &[TourCommand], look: TextStyle) -> Result<Option<String>> {
    for command in commands {
        println!("{}", look.bold(&format!("$ {}", command.text)));
        let mut shell = Command::new("sh");
        shell.args(["-c", command.text]).current_dir(&place.folder).env("PATH", &place.path);
        shell.env("VK_DRIVER_FILES", &place.driver).env("VK_ICD_FILENAMES", &place.driver);
        let status = shell.status().context("there is no `sh`")?;
        if status.code() != Some(command.exit_code) {
            return Ok(Some(format!("it ended with {status}, and exit code {} was expected", command.exit_code)));
        }
    }
    Ok(None)
}

/// Where cargo puts what it builds.
fn release_folder() -> Result<PathBuf> {
    let program = std::env::current_exe().context("the place of this program is not known")?;
    // `target/debug/xtask`
    let target = program.ancestors().nth(2).map(Path::to_path_buf).unwrap_or_else(|| PathBuf::from("target"));
    Ok(target.join("release"))
}

/// Bold text, or nothing where it would be noise.
#[derive(Clone, Copy)]
struct TextStyle {
    is_on: bool,
}

impl TextStyle {
    fn for_stdout() -> TextStyle {
        TextStyle { is_on: std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none() }
    }

    fn bold(self, text: &str) -> String {
        if self.is_on { format!("\x1b[1m{text}\x1b[0m") } else { text.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use lavascope_test_support::console_commands;

    use super::*;

    const PLAIN: TextStyle = TextStyle { is_on: false };

    #[test]
    fn the_plan_has_every_title_and_command() {
        let text = plan(PLAIN);
        for step in &TOUR {
            assert!(text.contains(step.title) && text.contains(step.explanation));
            assert!(step.commands.iter().all(|it| text.contains(&format!("\n$ {}\n", it.text))), "{text}");
        }
        assert!(text.starts_with("1/5 A hazard\nA barrier names the wrong stage."), "{text}");
        assert!(plan(TextStyle { is_on: true }).starts_with("\x1b[1m1/5 A hazard\x1b[0m\n"));
        assert!(text.contains("\nWhere to go next\n") && text.contains("  lavascope doctor\n"), "{text}");
    }

    #[test]
    fn every_step_says_in_a_line_what_it_shows() {
        let titles: BTreeSet<_> = TOUR.iter().map(|it| it.title).collect();
        assert_eq!(titles.len(), TOUR.len());
        for step in &TOUR {
            assert!(step.explanation.len() <= 110 && step.explanation.ends_with('.'), "{}", step.explanation);
            assert!(!step.commands.is_empty(), "{}", step.title);
        }
    }

    /// A test of the command line compares what the README shows with what its commands print.
    #[test]
    fn the_readme_has_the_commands_of_the_tour() {
        let page = std::fs::read_to_string(crate::root().join("README.md")).expect("a README");
        let shown: Vec<_> = console_commands(&page).into_iter().map(|it| (it.command, it.exit_code)).collect();
        for command in TOUR.iter().flat_map(|it| it.commands) {
            assert!(shown.contains(&(command.text.to_owned(), command.exit_code)), "{}: {shown:#?}", command.text);
        }
        assert!(crate::root().join(GUIDE).is_file());
    }

    #[test]
    fn a_command_that_exits_otherwise_fails_its_step() {
        let place = TourPlace { folder: "/".into(), path: "/usr/bin:/bin".into(), driver: "d".to_owned() };
        let run = |commands: &[TourCommand]| run_step(&place, commands, PLAIN).expect("a shell");
        assert_eq!(run(&[succeeds("test \"$VK_DRIVER_FILES$VK_ICD_FILENAMES\" = dd"), finds("exit 1")]), None);
        let reason = run(&[finds("true"), succeeds("kill -9 $PPID")]).expect("it succeeds, and should find something");
        assert!(reason.contains("exit code 1 was expected"), "{reason}");
        assert!(run(&[succeeds("exit 2")]).is_some());
    }
}
