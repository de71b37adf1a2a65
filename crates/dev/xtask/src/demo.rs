//! The tour: what the suite does today, in a minute, on a machine that may have nothing but Rust.
//!
//! A step is a title, an explanation and commands for a shell. They are printed as they are run, so that a user can
//! repeat them. New features add their step to [`tour`].

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::setup::process;
use crate::setup::process::cargo;
use crate::setup::system;

const PACKAGES: [&str; 4] = ["lavascope-cli", "lavascope-layer", "lavascope-null-driver", "lavascope-samples"];

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
    /// One or two sentences.
    explanation: &'static str,
    commands: Vec<String>,
    /// Programs without which it is left out, and the packages that bring them.
    needs: &'static [(&'static str, &'static str)],
}

pub(crate) fn run(root: &Path, wanted: DemoMode) -> Result<()> {
    let (release, look) = (release_folder(root)?, TextStyle::for_stdout());
    let tour = tour(&release);
    let DemoMode::Run { no_install } = wanted else {
        print!("{}", plan(&tour, look));
        return Ok(());
    };
    if let Err(error) = system::ensure_for_demo(root, no_install) {
        // What the user has to do first is told apart from a tour that failed.
        eprintln!("Error: {error:#}");
        std::process::exit(2);
    }
    build(root)?;
    let begin = Instant::now();
    let walked = run_tour(root, &tour, look)?;
    println!("\n{} of {} steps in {:.0} s", walked.ran, tour.len(), begin.elapsed().as_secs_f64());
    if !walked.failed.is_empty() {
        bail!("these steps failed: {}", walked.failed.join(", "));
    }
    Ok(())
}

/// The steps, with the programs of a release build in `release`.
fn tour(release: &str) -> Vec<TourStep> {
    let (lavascope, samples) =
        (quoted(&format!("{release}/lavascope")), quoted(&format!("{release}/lavascope-samples")));
    let calls = quoted(&format!("{release}/demo-calls.txt"));
    vec![
        TourStep {
            title: "What is here",
            explanation: "The doctor asks the Vulkan loader what it has. In full it also lists every manifest, and what \
                          mends whatever is broken.",
            commands: vec![format!("{lavascope} doctor | head -n 8")],
            needs: &[],
        },
        TourStep {
            title: "A program under the layer",
            explanation: "A sample draws a triangle without a window and checks its own pixels; it would complain. The \
                          layer stands between it and the driver, and counts its calls.",
            commands: vec![format!("{lavascope} run --stats -- {samples} triangle-dynamic")],
            needs: &[],
        },
        TourStep {
            title: "Every call, by its C names",
            explanation: "The same sample with every call printed, in and out: how it begins, and a barrier. Objects \
                          have numbers that do not change from run to run.",
            commands: vec![
                format!("{lavascope} run --print {calls} -- {samples} triangle-dynamic"),
                format!("head -n 20 {calls}"),
                format!("grep -m 1 -A 20 '^vkCmdPipelineBarrier2' {calls}"),
            ],
            needs: &[],
        },
        TourStep {
            title: "Many threads",
            explanation: "Four threads record command buffers at the same time. The layer tells how many threads there \
                          were, and what they called.",
            commands: vec![format!("{lavascope} run --stats -- {samples} threads --threads 4")],
            needs: &[],
        },
        TourStep {
            title: "A program with a window",
            explanation: "vkcube draws 60 frames into a virtual screen. It is started by another program, and the report \
                          finds it all the same.",
            commands: vec![format!("{lavascope} run --stats -- xvfb-run --auto-servernum vkcube --c 60")],
            needs: &[("vkcube", "vulkan-tools"), ("xvfb-run", "xvfb"), ("xauth", "xauth")],
        },
        TourStep {
            title: "Without a GPU and without a driver",
            explanation: "The null driver accepts every command of Vulkan and draws nothing, so the sample does not look \
                          at its pixels. Queues, ray tracing and video can be tested where no hardware has them.",
            commands: vec![
                format!("{lavascope} run --null-driver -- {lavascope} doctor | head -n 8"),
                format!("{lavascope} run --null-driver --stats -- {samples} triangle-dynamic --no-check"),
            ],
            needs: &[],
        },
    ]
}

/// The steps as text.
fn plan(tour: &[TourStep], look: TextStyle) -> String {
    let steps = tour.iter().enumerate().map(|(at, step)| {
        let commands = step.commands.iter().map(|it| format!("$ {it}\n")).collect::<String>();
        format!("{}\n{commands}", step_heading(at, tour.len(), step, look))
    });
    steps.collect::<Vec<_>>().join("\n")
}

fn step_heading(at: usize, count: usize, step: &TourStep, look: TextStyle) -> String {
    let title = look.bold(&format!("{}/{count} {}", at + 1, step.title));
    let needs = step.needs.iter().map(|it| it.0).collect::<Vec<_>>().join(", ");
    let needs = if needs.is_empty() { needs } else { format!(" (where there is {needs})") };
    format!("{title}{needs}\n{}", step.explanation)
}

fn build(root: &Path) -> Result<()> {
    let packages = PACKAGES.iter().flat_map(|it| ["--package", it]);
    let arguments: Vec<&str> = ["build", "--release"].into_iter().chain(packages).collect();
    process::run(root, &cargo(), &arguments)
}

/// How the tour went.
#[derive(Default)]
struct TourResult {
    /// Without those that were left out.
    ran: usize,
    /// Their titles.
    failed: Vec<&'static str>,
}

fn run_tour(root: &Path, tour: &[TourStep], look: TextStyle) -> Result<TourResult> {
    // The tour shows the same on every machine, whatever GPU is there.
    let driver = system::lavapipe().context("there is no lavapipe: `apt-get install mesa-vulkan-drivers`")?;
    println!("\nEvery step runs on Mesa's driver for the CPU:");
    println!("$ export VK_DRIVER_FILES={driver} VK_ICD_FILENAMES={driver}");
    let mut walked = TourResult::default();
    for (at, step) in tour.iter().enumerate() {
        println!("\n{}", step_heading(at, tour.len(), step, look));
        let missing: Vec<_> = step.needs.iter().filter(|it| !is_on_path(it.0)).map(|it| it.1).collect();
        if !missing.is_empty() {
            println!("left out; `apt-get install {}` brings what it needs", missing.join(" "));
            continue;
        }
        walked.ran += 1;
        if !run_step(root, step, &driver, look)? {
            println!("{}", look.bold("this step failed"));
            walked.failed.push(step.title);
        }
    }
    Ok(walked)
}

/// Whether all commands of a step succeeded; after one that did not the rest is left out.
fn run_step(root: &Path, step: &TourStep, driver: &str, look: TextStyle) -> Result<bool> {
    for command in &step.commands {
        println!("{}", look.bold(&format!("$ {command}")));
        let mut shell = Command::new("sh");
        shell.args(["-c", command]).current_dir(root).env("VK_DRIVER_FILES", driver).env("VK_ICD_FILENAMES", driver);
        if !shell.status().context("there is no `sh`")?.success() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Where cargo puts what it builds, as a user in `root` would type it.
fn release_folder(root: &Path) -> Result<String> {
    let program = std::env::current_exe().context("the place of this program is not known")?;
    // `target/debug/xtask`
    let target = program.ancestors().nth(2).map(Path::to_path_buf).unwrap_or_else(|| PathBuf::from("target"));
    let release = target.join("release");
    Ok(release.strip_prefix(root).unwrap_or(&release).display().to_string())
}

/// A word that a shell reads as it is.
fn quoted(word: &str) -> String {
    let is_plain = word.chars().all(|it| it.is_ascii_alphanumeric() || "/._-".contains(it));
    if is_plain { word.to_owned() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}

fn is_on_path(program: &str) -> bool {
    std::env::var_os("PATH").is_some_and(|it| std::env::split_paths(&it).any(|it| it.join(program).is_file()))
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

    use super::*;

    #[test]
    fn the_plan_has_every_title_and_command() {
        let tour = tour("target/release");
        let text = plan(&tour, TextStyle { is_on: false });
        for step in &tour {
            assert!(text.contains(step.title) && text.contains(step.explanation));
            assert!(step.commands.iter().all(|it| text.contains(&format!("\n$ {it}\n"))), "{text}");
        }
        let first = "1/1 What is here\nThe doctor asks the Vulkan loader what it has. In full it also lists every manifest, \
                     and what mends whatever is broken.\n$ target/release/lavascope doctor | head -n 8\n";
        assert_eq!(plan(&tour[..1], TextStyle { is_on: false }), first);
        assert!(plan(&tour[..1], TextStyle { is_on: true }).starts_with("\x1b[1m1/1 What is here\x1b[0m\n"));
    }

    #[test]
    fn every_step_explains_itself_in_one_or_two_sentences() {
        let tour = tour("target/release");
        let titles: BTreeSet<_> = tour.iter().map(|it| it.title).collect();
        assert_eq!(titles.len(), tour.len());
        for step in &tour {
            let sentences = step.explanation.matches(['.', '!', '?']).count();
            assert!((1..=2).contains(&sentences) && step.explanation.ends_with('.'), "{}", step.explanation);
            assert!(!step.commands.is_empty(), "{}", step.title);
        }
    }

    #[test]
    fn a_shell_reads_the_commands_wherever_the_build_is() {
        let [first, ..] = &tour("/it's a/release")[..] else { panic!("no steps") };
        assert_eq!(first.commands, [r"'/it'\''s a/release/lavascope' doctor | head -n 8"]);
    }

    /// A script stands in for the suite, so that this needs no build.
    #[test]
    fn a_failed_command_ends_its_step_and_is_told() {
        let step = |commands: &[&str]| TourStep {
            title: "t",
            explanation: "e.",
            commands: commands.iter().map(|&it| it.to_owned()).collect(),
            needs: &[],
        };
        let walk =
            |commands| run_step(Path::new("/"), &step(commands), "d", TextStyle { is_on: false }).expect("a shell");
        assert!(walk(&["test \"$VK_DRIVER_FILES$VK_ICD_FILENAMES\" = dd", "true"]));
        assert!(!walk(&["false", "kill -9 $PPID"]));
    }
}
