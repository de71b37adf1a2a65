//! What the layer costs a whole program: vkcube on lavapipe, alone and under the layer, in turns.
//!
//! Each round runs vkcube three times: bare, bare again, and under the layer, beginning with another of them each
//! time. What the layer adds is held against how much two bare runs differ: the machines that run this are noisy.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use lavascope_bench::BenchEntry;
use serde::Serialize;

use super::build::build_release;
use super::topics::BenchSelection;
use crate::setup::system;
use crate::setup::x_server::Screen;

const FRAMES: &str = "300";
/// Rounds, if the command line names none.
pub(crate) const PAIRS: u32 = 15;
/// What must be on the path, and the packages that bring it.
const NEEDS: [(&str, &str); 3] = [("vkcube", "vulkan-tools"), ("Xvfb", "xvfb"), ("bash", "bash")];
/// Tells the line of the times from what vkcube and lavascope say.
const MARK: &str = "vkcube-times";

/// What the layer does meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VkcubeLayer {
    /// Nobody listens; this has a limit.
    Off,
    Counts,
}

/// Seconds of one run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
struct Times {
    /// User and system time of vkcube, all threads.
    cpu: f64,
    wall: f64,
}

#[derive(Clone, Copy, Debug, Serialize)]
struct Round {
    bare: Times,
    bare_again: Times,
    layer: Times,
}

/// Of differences, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
struct Spread {
    min: f64,
    lower_quartile: f64,
    median: f64,
    upper_quartile: f64,
    max: f64,
}

#[derive(Serialize)]
struct Figure {
    name: &'static str,
    bare_median_ms: f64,
    bare_again_less_bare_ms: Spread,
    layer_less_bare_ms: Spread,
    is_inside: bool,
}

#[derive(Serialize)]
struct VkcubeReport<'a> {
    frames: &'a str,
    layer_counts: bool,
    figures: &'a [Figure],
    rounds: &'a [Round],
}

pub(crate) fn run(root: &Path, pairs: u32, layer: VkcubeLayer, json: Option<&Path>) -> Result<()> {
    for (program, package) in NEEDS {
        ensure!(
            system::is_on_path(program),
            "`{program}` is not there: on Debian and Ubuntu `apt-get install {package}` brings it"
        );
    }
    let (rounds, figures) = measure(root, pairs, layer)?;
    print(&rounds, &figures);
    if let Some(path) = json {
        let layer_counts = layer == VkcubeLayer::Counts;
        let document = VkcubeReport { frames: FRAMES, layer_counts, figures: &figures, rounds: &rounds };
        let text = serde_json::to_string_pretty(&document)? + "\n";
        std::fs::write(path, text).with_context(|| format!("{} cannot be written", path.display()))?;
    }
    let outside: Vec<&str> = figures.iter().filter(|it| !it.is_inside).map(|it| it.name).collect();
    if layer == VkcubeLayer::Off && !outside.is_empty() {
        bail!("the layer costs more than bare runs differ: {}", outside.join(", "));
    }
    Ok(())
}

/// What the layer adds, for the table of `cargo xtask bench`. The limit is how much two bare runs differ.
pub(super) fn entries(root: &Path, selection: &BenchSelection<'_>) -> Result<Vec<BenchEntry>> {
    let name = |figure: &str| format!("vkcube on lavapipe, {FRAMES} frames, layer off, median of {figure} time");
    if !["CPU", "wall"].iter().any(|it| selection.has_entry(&name(it))) {
        return Ok(Vec::new());
    }
    if let Some((_, package)) = NEEDS.iter().find(|it| !system::is_on_path(it.0)) {
        eprintln!("vkcube: not measured; `apt-get install {package}` brings what is missing");
        return Ok(Vec::new());
    }
    let entry = |measured: &Figure| BenchEntry {
        name: name(measured.name),
        unit: "ms".to_owned(),
        bare: Some(measured.bare_median_ms),
        ours: measured.bare_median_ms + measured.layer_less_bare_ms.median,
        added: Some(measured.layer_less_bare_ms.median),
        limit: Some(measured.bare_again_less_bare_ms.max),
        ..BenchEntry::default()
    };
    Ok(measure(root, PAIRS, VkcubeLayer::Off)?.1.iter().map(entry).collect())
}

fn measure(root: &Path, pairs: u32, layer: VkcubeLayer) -> Result<(Vec<Round>, [Figure; 2])> {
    let bench = VkcubeBench::new(root, layer)?;
    bench.once(VkcubeRun::Bare)?;
    bench.once(VkcubeRun::Layer)?;
    let rounds = (0..pairs).map(|it| bench.round(it)).collect::<Result<Vec<_>>>()?;
    let figures = [figure("CPU", &rounds, |it| it.cpu), figure("wall", &rounds, |it| it.wall)];
    Ok((rounds, figures))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum VkcubeRun {
    Bare,
    BareAgain,
    Layer,
}

/// All that a run needs.
struct VkcubeBench {
    screen: Screen,
    driver: String,
    lavascope: PathBuf,
    layer: VkcubeLayer,
}

impl VkcubeBench {
    fn new(root: &Path, layer: VkcubeLayer) -> Result<VkcubeBench> {
        let lavascope = build_release(root)?.join("release/lavascope");
        let driver = system::lavapipe().context("lavapipe is not there: `apt-get install mesa-vulkan-drivers`")?;
        Ok(VkcubeBench { screen: Screen::start()?, driver, lavascope, layer })
    }

    fn round(&self, number: u32) -> Result<Round> {
        let mut turns = [VkcubeRun::Bare, VkcubeRun::BareAgain, VkcubeRun::Layer];
        turns.rotate_left(number as usize % 3);
        let times = turns.map(|turn| (turn, self.once(turn)));
        let mut round = [Times { cpu: 0.0, wall: 0.0 }; 3];
        for (turn, times) in times {
            round[turn as usize] = times?;
        }
        let [bare, bare_again, layer] = round;
        Ok(Round { bare, bare_again, layer })
    }

    fn once(&self, turn: VkcubeRun) -> Result<Times> {
        // The shell measures its child alone, so what `lavascope run` itself does is not in it.
        let script = format!("TIMEFORMAT='{MARK} %3R %3U %3S'; time vkcube --c {FRAMES} >/dev/null 2>&1");
        let mut command = match turn {
            VkcubeRun::Bare | VkcubeRun::BareAgain => Command::new("bash"),
            VkcubeRun::Layer => {
                let mut command = Command::new(&self.lavascope);
                command.args(["run", "--no-sync"]).args((self.layer == VkcubeLayer::Counts).then_some("--stats"));
                command.args(["--", "bash"]);
                command
            }
        };
        command.args(["-c", &script]).env("DISPLAY", &self.screen.display).env_remove("WAYLAND_DISPLAY");
        command.env("VK_ICD_FILENAMES", &self.driver).env("VK_DRIVER_FILES", &self.driver);
        let output = command.output().with_context(|| format!("{command:?} cannot be started"))?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "vkcube failed ({turn:?}): {}\n{said}", output.status);
        said.lines().find_map(parse).with_context(|| format!("no times in what the shell said:\n{said}"))
    }
}

/// A line of the shell: real, user and system time in seconds.
fn parse(line: &str) -> Option<Times> {
    let numbers = line.strip_prefix(MARK)?.split_whitespace().map(|it| it.parse().ok());
    match numbers.collect::<Option<Vec<f64>>>()?[..] {
        [wall, user, system] => Some(Times { cpu: user + system, wall }),
        _ => None,
    }
}

fn figure(name: &'static str, rounds: &[Round], of: fn(Times) -> f64) -> Figure {
    let of_all = |seconds: &dyn Fn(&Round) -> f64| spread(rounds.iter().map(|it| seconds(it) * 1e3).collect());
    let bare = of_all(&|it| of(it.bare));
    let control = of_all(&|it| of(it.bare_again) - of(it.bare));
    let added = of_all(&|it| of(it.layer) - of(it.bare));
    Figure {
        name,
        bare_median_ms: bare.median,
        bare_again_less_bare_ms: control,
        layer_less_bare_ms: added,
        is_inside: (control.min..=control.max).contains(&added.median),
    }
}

/// Quartiles lie between values where they must.
fn spread(mut values: Vec<f64>) -> Spread {
    assert!(!values.is_empty(), "a spread is of something");
    values.sort_by(f64::total_cmp);
    let at = |part: f64| {
        let place = part * (values.len() - 1) as f64;
        let (low, high) = (values[place.floor() as usize], values[place.ceil() as usize]);
        low + (high - low) * place.fract()
    };
    Spread { min: at(0.0), lower_quartile: at(0.25), median: at(0.5), upper_quartile: at(0.75), max: at(1.0) }
}

fn print(rounds: &[Round], figures: &[Figure]) {
    println!("vkcube --c {FRAMES}, milliseconds of CPU (and wall)");
    println!("{:>5} {:>14} {:>14} {:>14}", "round", "bare", "bare again", "layer");
    for (number, round) in rounds.iter().enumerate() {
        let cells = [round.bare, round.bare_again, round.layer].map(|times| {
            let cell = format!("{:.0} ({:.0})", times.cpu * 1e3, times.wall * 1e3);
            format!("{cell:>14}")
        });
        println!("{:>5} {}", number + 1, cells.join(" "));
    }
    let head = ["min", "quartile", "median", "quartile", "max"].map(|it| format!("{it:>9}")).join("");
    for figure in figures {
        println!("\n{}: bare median {:.1} ms\n{:20}{head}", figure.name, figure.bare_median_ms, "");
        for (name, spread) in
            [("bare again less bare", figure.bare_again_less_bare_ms), ("layer less bare", figure.layer_less_bare_ms)]
        {
            let Spread { min, lower_quartile, median, upper_quartile, max } = spread;
            let cells = [min, lower_quartile, median, upper_quartile, max].map(|it| format!("{it:>+9.1}"));
            println!("{name:20}{}", cells.join(""));
        }
        let verdict = if figure.is_inside { "inside" } else { "OUTSIDE" };
        println!("the median of the layer is {verdict} the spread of bare against bare");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_from_their_line_only() {
        assert_eq!(parse("vkcube-times 0.943 0.25 0.5"), Some(Times { cpu: 0.75, wall: 0.943 }));
        for line in ["", "0.9 0.3 0.5", "vkcube-times 0.9 0.3", "vkcube-times 0.9 x 0.5"] {
            assert_eq!(parse(line), None, "{line}");
        }
    }

    #[test]
    fn a_spread_has_its_quartiles() {
        let got = spread(vec![5.0, 1.0, 2.0, 4.0, 3.0]);
        assert_eq!(got, Spread { min: 1.0, lower_quartile: 2.0, median: 3.0, upper_quartile: 4.0, max: 5.0 });
        assert_eq!(spread(vec![1.0, 2.0]).median, 1.5);
    }

    #[test]
    fn what_costs_more_than_bare_runs_differ_is_outside() {
        let times = |wall| Times { cpu: 0.5, wall };
        let round = |again, layer| Round { bare: times(1.0), bare_again: times(again), layer: times(layer) };
        let judged = |added: f64| {
            let rounds = [round(0.99, 1.0 + added), round(1.0, 1.0 + added), round(1.01, 9.0)];
            figure("wall", &rounds, |it| it.wall).is_inside
        };
        assert!(judged(0.005));
        assert!(!judged(0.02));
        assert!(!judged(-0.02));
    }
}
