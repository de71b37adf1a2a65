//! Whole programs that nobody here wrote, bare, captured by us and captured by GFXReconstruct, in turns.
//!
//! Figures are ratios to the bare run of the same rounds, since the machines that run this are noisy. What is not
//! installed is left out, and that is said.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use lavascope_bench::BenchEntry;

use super::build::build_release;
use super::topics::BenchSelection;
use crate::setup::process;
use crate::setup::system;
use crate::setup::x_server::Screen;
use crate::test::PYTHON_PACKAGES;

const ROUNDS: usize = 7;
/// Tells the line of the times from what the programs say.
const MARK: &str = "program-times";
pub(super) const PEER: &str = "VK_LAYER_LUNARG_gfxreconstruct";
/// Nanoseconds of CPU time that `check` may take for a call: two million a second on each core.
const CHECK_MAX: f64 = 500.0;

/// A program, and what its capture may cost.
struct BenchProgram {
    name: &'static str,
    /// What must be on the path, and what brings it.
    needs: (&'static str, &'static str),
    script: &'static str,
    variables: &'static [(&'static str, &'static str)],
    wall_max: Option<f64>,
    cpu_max: Option<f64>,
    megabytes_max: Option<f64>,
}

const PROGRAMS: &[BenchProgram] = &[
    BenchProgram {
        name: "vkcube, 1,000 frames",
        needs: ("vkcube", "vulkan-tools"),
        script: "vkcube --c 1000 --suppress_popups",
        variables: &[],
        wall_max: Some(1.1),
        cpu_max: None,
        megabytes_max: None,
    },
    BenchProgram {
        name: "wgpu, frames offscreen",
        needs: ("python3", "python3"),
        script: "python3 {root}/crates/dev/xtask/programs/wgpu_frames.py",
        variables: &[("WGPU_BACKEND_TYPE", "Vulkan"), ("PYTHONPATH", "{root}/target/python")],
        wall_max: Some(1.1),
        cpu_max: None,
        megabytes_max: None,
    },
    BenchProgram {
        name: "glmark2 over zink",
        needs: ("glmark2-es2", "glmark2-es2-x11"),
        script: "glmark2-es2 -s 320x240 -b build:nframes=300:duration=100",
        variables: &[
            ("GALLIUM_DRIVER", "zink"),
            ("MESA_LOADER_DRIVER_OVERRIDE", "zink"),
            ("LIBGL_ALWAYS_SOFTWARE", "1"),
            ("LIBGL_KOPPER_DRI2", "1"),
        ],
        wall_max: None,
        cpu_max: Some(1.15),
        megabytes_max: Some(4.0),
    },
];

#[derive(Clone, Copy, PartialEq)]
enum CaptureTool {
    Nothing,
    Lavascope,
    Peer,
    /// No capture: `lavascope run`, with this setting for call stacks.
    Run(&'static str),
}

/// What is kept of call stacks, and what CPU time that may cost, to a run that keeps none.
const STACKS: [(&str, Option<f64>); 2] = [("full", Some(1.1)), ("caller", None)];

impl BenchProgram {
    /// Whether it can be measured. If not, says what brings it.
    fn is_installed(&self) -> bool {
        let is_there = system::is_on_path(self.needs.0) && system::is_on_path("Xvfb");
        if !is_there {
            eprintln!("{}: not measured; `apt-get install {} xvfb` brings it", self.name, self.needs.1);
        }
        is_there
    }
}

/// Seconds of one run, the least of several for each, and bytes of the file.
#[derive(Clone, Copy)]
struct RunCost {
    wall: f64,
    cpu: f64,
    bytes: f64,
}

impl RunCost {
    const NONE: RunCost = RunCost { wall: f64::INFINITY, cpu: f64::INFINITY, bytes: 0.0 };

    fn least(self, other: RunCost) -> RunCost {
        RunCost { wall: self.wall.min(other.wall), cpu: self.cpu.min(other.cpu), bytes: other.bytes }
    }
}

/// The programs, captured.
pub(super) fn capture_entries(root: &Path, selection: &BenchSelection<'_>) -> Result<Vec<BenchEntry>> {
    let mut all = Vec::new();
    let wanted: Vec<&BenchProgram> = PROGRAMS.iter().filter(|it| selection.has_entry(it.name)).collect();
    if wanted.is_empty() {
        return Ok(all);
    }
    let stage = BenchSetup::new(root)?;
    process::ensure_python_packages(root, &root.join("target/python"), &PYTHON_PACKAGES)?;
    for program in wanted {
        if program.is_installed() {
            all.extend(stage.program(program)?);
        }
    }
    Ok(all)
}

/// The programs under `lavascope run`, with call stacks and without.
pub(super) fn stack_entries(root: &Path, selection: &BenchSelection<'_>) -> Result<Vec<BenchEntry>> {
    let name = |it: &BenchProgram, stacks: &str| format!("{}, call stacks: {stacks}", it.name);
    let is_wanted = |it: &&BenchProgram| STACKS.iter().any(|stacks| selection.has_entry(&name(it, stacks.0)));
    let wanted: Vec<&BenchProgram> = PROGRAMS.iter().filter(is_wanted).collect();
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    let (stage, mut all) = (BenchSetup::new(root)?, Vec::new());
    process::ensure_python_packages(root, &root.join("target/python"), &PYTHON_PACKAGES)?;
    for program in wanted.into_iter().filter(|it| it.is_installed()) {
        let screen = Screen::start()?;
        let mut costs = [("off", None), STACKS[0], STACKS[1]].map(|it| (it.0, it.1, RunCost::NONE));
        for round in 0..ROUNDS {
            for turn in 0..costs.len() {
                let (stacks, _, cost) = &mut costs[(round + turn) % 3];
                *cost = cost.least(stage.once(program, CaptureTool::Run(stacks), &screen)?);
            }
        }
        let [off, with @ ..] = costs;
        all.extend(with.map(|(stacks, limit, cost)| BenchEntry {
            name: name(program, stacks),
            unit: "x".to_owned(),
            ours: cost.cpu / off.2.cpu,
            limit,
            ..BenchEntry::default()
        }));
    }
    Ok(all)
}

/// `lavascope check` of traces of samples.
pub(super) fn check_entries(root: &Path, selection: &BenchSelection<'_>) -> Result<Vec<BenchEntry>> {
    if !selection.has_entry(CHECK) {
        return Ok(Vec::new());
    }
    let stage = BenchSetup::new(root)?;
    CHECKED.iter().map(|(sample, what, limit)| stage.check(sample, what, *limit)).collect()
}

const CHECK: &str = "CPU time of `check` for a call";
/// What is checked: a sample, what it does, and the most that a call may take.
const CHECKED: [(&str, &str, Option<f64>); 2] = [
    ("threads", "uploads, passes, secondaries with draws", Some(CHECK_MAX)),
    ("threads-handoff", "submissions of one command each", None),
];

pub(super) struct BenchSetup {
    root: PathBuf,
    pub(super) folder: PathBuf,
    pub(super) release: PathBuf,
    pub(super) driver: String,
}

impl BenchSetup {
    pub(super) fn new(root: &Path) -> Result<BenchSetup> {
        let target = build_release(root)?;
        let folder = target.join("bench-programs");
        std::fs::create_dir_all(&folder).with_context(|| format!("{} cannot be made", folder.display()))?;
        let driver = system::lavapipe().context("lavapipe is not there: `apt-get install mesa-vulkan-drivers`")?;
        Ok(BenchSetup { root: root.to_owned(), folder, release: target.join("release"), driver })
    }

    fn program(&self, program: &BenchProgram) -> Result<Vec<BenchEntry>> {
        let screen = Screen::start()?;
        let has_peer = system::is_on_path("gfxrecon-info");
        let (mut bare, mut ours, mut peer) = (RunCost::NONE, RunCost::NONE, RunCost::NONE);
        for _ in 0..ROUNDS {
            bare = bare.least(self.once(program, CaptureTool::Nothing, &screen)?);
            ours = ours.least(self.once(program, CaptureTool::Lavascope, &screen)?);
            if has_peer {
                peer = peer.least(self.once(program, CaptureTool::Peer, &screen)?);
            }
        }
        let entry = |what: &str, unit: &str, of: &dyn Fn(RunCost) -> f64, limit: Option<f64>| BenchEntry {
            name: format!("{}, captured: {what}", program.name),
            unit: unit.to_owned(),
            ours: of(ours),
            peer: has_peer.then(|| of(peer)),
            limit,
            ..BenchEntry::default()
        };
        Ok(vec![
            entry("wall time to bare", "x", &|it| it.wall / bare.wall, program.wall_max),
            entry("CPU time to bare", "x", &|it| it.cpu / bare.cpu, program.cpu_max),
            entry("file", "MB", &|it| it.bytes / 1e6, program.megabytes_max),
        ])
    }

    fn once(&self, program: &BenchProgram, under: CaptureTool, screen: &Screen) -> Result<RunCost> {
        // The shell measures its child alone, so what `lavascope` itself does is not in it.
        let placed = |it: &str| it.replace("{root}", &self.root.display().to_string());
        let script = format!("TIMEFORMAT='{MARK} %3R %3U %3S'; time {} >/dev/null 2>&1", placed(program.script));
        let trace = self.folder.join(if under == CaptureTool::Lavascope { "program.lava" } else { "program.gfxr" });
        let mut command = match under {
            CaptureTool::Nothing => Command::new("bash"),
            CaptureTool::Peer => {
                let mut command = Command::new("bash");
                command.env("VK_INSTANCE_LAYERS", PEER).env("GFXRECON_CAPTURE_FILE", &trace);
                command.env("GFXRECON_CAPTURE_FILE_TIMESTAMP", "false").env("GFXRECON_LOG_LEVEL", "error");
                command
            }
            CaptureTool::Lavascope => {
                let mut command = Command::new(self.release.join("lavascope"));
                command.args(["capture", "-o"]).arg(&trace).args(["--", "bash"]);
                command
            }
            CaptureTool::Run(stacks) => {
                let mut command = Command::new(self.release.join("lavascope"));
                let stacks = format!("--backtrace={stacks}");
                command.args(["run", "--quiet", "--exit-code", "app", &stacks, "--", "bash"]);
                command
            }
        };
        command.args(["-c", &script]).env("DISPLAY", &screen.display).env_remove("WAYLAND_DISPLAY");
        command.envs(program.variables.iter().map(|it| (it.0, placed(it.1))));
        command.env("VK_ICD_FILENAMES", &self.driver).env("VK_DRIVER_FILES", &self.driver);
        let output = command.output().with_context(|| format!("{command:?} cannot be started"))?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{} failed: {}\n{said}", program.name, output.status);
        let bytes = std::fs::metadata(&trace).map_or(0.0, |it| it.len() as f64);
        let times = said.lines().find_map(times);
        let (wall, cpu) = times.with_context(|| format!("no times in what the shell said:\n{said}"))?;
        Ok(RunCost { wall, cpu, bytes })
    }

    /// A sample on the null driver.
    fn check(&self, sample: &str, what: &str, limit: Option<f64>) -> Result<BenchEntry> {
        let trace = self.folder.join("check.lava");
        let mut command = Command::new(self.release.join("lavascope"));
        command.args(["capture", "--null-driver", "-o"]).arg(&trace).arg("--");
        command.arg(self.release.join("lavascope-samples"));
        command.args([sample, "--frames", "1000", "--no-check"]);
        let output = command.output().with_context(|| format!("{command:?} cannot be started"))?;
        ensure!(output.status.success(), "the sample failed:\n{}", String::from_utf8_lossy(&output.stderr));
        let mut info = Command::new(self.release.join("lavascope"));
        let info = info.args(["info", "--json"]).arg(&trace).output().context("lavascope cannot be started")?;
        let info: serde_json::Value = serde_json::from_slice(&info.stdout).context("`info` gives JSON")?;
        let calls = info["calls"].as_u64().context("`info` counts calls")?;
        let mut least = f64::INFINITY;
        for _ in 0..ROUNDS {
            let script = format!("TIMEFORMAT='{MARK} %3R %3U %3S'; time \"$0\" check \"$1\" >/dev/null");
            let output = Command::new("bash")
                .args(["-c", &script])
                .args([self.release.join("lavascope"), trace.clone()])
                .output()
                .context("bash cannot be started")?;
            let said = String::from_utf8_lossy(&output.stderr);
            least = least.min(said.lines().find_map(times).context("no times in what the shell said")?.1);
        }
        let ours = least * 1e9 / calls.max(1) as f64;
        Ok(BenchEntry { name: format!("{CHECK}, {what}"), unit: "ns".to_owned(), ours, limit, ..BenchEntry::default() })
    }
}

/// A line of the shell: wall and CPU time in seconds.
fn times(line: &str) -> Option<(f64, f64)> {
    let numbers = line.strip_prefix(MARK)?.split_whitespace().map(|it| it.parse().ok());
    match numbers.collect::<Option<Vec<f64>>>()?[..] {
        [wall, user, system] => Some((wall, user + system)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_from_their_line_only() {
        assert_eq!(times("program-times 0.943 0.25 0.5"), Some((0.943, 0.75)));
        assert!([times("0.9 0.3 0.5"), times("program-times 0.9 0.3")].iter().all(Option::is_none));
    }
}
