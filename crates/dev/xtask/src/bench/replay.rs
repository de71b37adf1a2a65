//! Replay of a program that only the processor works for: beside the program itself, and beside GFXReconstruct.
//!
//! The sample `recording` is captured by both, on each driver and with one and four threads; then everything runs in
//! turns, each in a process of its own, and the least of the rounds counts. Times are wall times of whole processes,
//! start, opening the driver and reading the trace included; only the cost of a call is what the replay says itself,
//! from when the loader is open to the last call, reading and unpacking the trace included. The program takes 0.1 to 0.2
//! seconds, of which a replay needs 10 ms to start: four times as many frames would give a better ratio.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};
use lavascope_bench::BenchEntry;

use super::programs::{BenchSetup, PEER};
use crate::setup::system;

const ROUNDS: usize = 5;
/// Each thread records 10,000 commands in a frame.
const FRAMES: &str = "100";
/// Nanoseconds of a call on a thread, on the null driver.
const CALL_MAX: f64 = 80.0;
/// To the peer: at least twice as fast, and on one thread at least one and a half times.
const SHARE_MAX: f64 = 0.5;
const ALONE_MAX: f64 = 1.0 / 1.5;
/// The time of four threads to that of four processes: nine tenths of what those reach.
const THREADS_MAX: f64 = 1.0 / 0.9;
const PREFIX: &str = "replay, ";

/// Says wall seconds and kilobytes of what it runs; the shell does not know the latter.
const MEASURE: &str = "\
import resource, subprocess, sys, time
began = time.monotonic()
ended = subprocess.run(sys.argv[1:], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
took = time.monotonic() - began
sys.stderr.buffer.write(ended.stderr)
sys.stdout.buffer.write(ended.stdout)
print('\\nmeasured', took, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(ended.returncode)
";

/// What a process took.
#[derive(Clone, Copy)]
struct ProcessCost {
    seconds: f64,
    megabytes: f64,
    /// What the replay says itself, and what all its threads took of the processor meanwhile.
    replay_seconds: f64,
    cpu_seconds: f64,
}

impl ProcessCost {
    const NONE: ProcessCost = ProcessCost {
        seconds: f64::INFINITY,
        megabytes: f64::INFINITY,
        replay_seconds: f64::INFINITY,
        cpu_seconds: f64::INFINITY,
    };

    fn least(self, other: ProcessCost) -> ProcessCost {
        ProcessCost {
            seconds: self.seconds.min(other.seconds),
            megabytes: self.megabytes.min(other.megabytes),
            replay_seconds: self.replay_seconds.min(other.replay_seconds),
            cpu_seconds: self.cpu_seconds.min(other.cpu_seconds),
        }
    }
}

pub(super) fn entries(root: &Path, filter: Option<&str>) -> Result<Vec<BenchEntry>> {
    // All are measured together.
    if filter.is_some_and(|it| !it.starts_with("replay")) {
        return Ok(Vec::new());
    }
    let stage = BenchSetup::new(root)?;
    let library = stage.release.join("liblavascope_null_driver.so");
    let manifest = stage.folder.join("null_driver.json");
    let text = serde_json::json!({
        "file_format_version": "1.0.1",
        "ICD": { "library_path": library, "api_version": "1.4.0" },
    });
    std::fs::write(&manifest, text.to_string()).with_context(|| format!("{} cannot be written", manifest.display()))?;
    let null = DriverManifest { name: "null", manifest: manifest.display().to_string() };
    let lavapipe = DriverManifest { name: "lavapipe", manifest: stage.driver.clone() };
    let mut all = Vec::new();
    for driver in [&null, &lavapipe] {
        for threads in [1, 4] {
            all.extend(ReplayCase { stage: &stage, driver, threads }.entries()?);
        }
    }
    all.push(ReplayCase { stage: &stage, driver: &null, threads: 4 }.to_processes()?);
    all.retain(|it| filter.is_none_or(|filter| it.name.contains(filter)));
    Ok(all)
}

struct DriverManifest {
    name: &'static str,
    manifest: String,
}

/// One program on one driver.
struct ReplayCase<'a> {
    stage: &'a BenchSetup,
    driver: &'a DriverManifest,
    threads: u32,
}

impl ReplayCase<'_> {
    /// How many threads can run at once.
    fn parallelism(&self) -> f64 {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        (self.threads as usize).min(cores) as f64
    }

    fn file(&self, threads: u32, ending: &str) -> PathBuf {
        self.stage.folder.join(format!("recording-{}-{threads}.{ending}", self.driver.name))
    }

    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.env("VK_ICD_FILENAMES", &self.driver.manifest).env("VK_DRIVER_FILES", &self.driver.manifest);
        command.env_remove("DISPLAY").env_remove("WAYLAND_DISPLAY");
        command
    }

    fn program(&self, threads: u32) -> Vec<String> {
        let samples = self.stage.release.join("lavascope-samples").display().to_string();
        let threads = threads.to_string();
        [&samples, "recording", "--no-check", "--frames", FRAMES, "--threads", &threads].map(str::to_owned).to_vec()
    }

    fn replay(&self, trace: &Path, options: &[&str]) -> Vec<String> {
        let (lavascope, trace) = (self.stage.release.join("lavascope"), trace.display().to_string());
        let mut all = vec![lavascope.display().to_string(), "replay".to_owned(), "--json".to_owned(), trace];
        all.extend(options.iter().map(|it| (*it).to_owned()));
        all
    }

    /// Captures the program by us and by the peer.
    fn capture(&self, threads: u32) -> Result<()> {
        let mut ours = self.command(&self.stage.release.join("lavascope"));
        ours.args(["capture", "-o"]).arg(self.file(threads, "lava")).arg("--").args(self.program(threads));
        succeed(&mut ours)?;
        if has_peer() {
            let mut peer = self.command(Path::new("env"));
            peer.env("VK_INSTANCE_LAYERS", PEER).env("GFXRECON_CAPTURE_FILE", self.file(threads, "gfxr"));
            peer.env("GFXRECON_CAPTURE_FILE_TIMESTAMP", "false").env("GFXRECON_LOG_LEVEL", "error");
            succeed(peer.args(self.program(threads)))?;
        }
        Ok(())
    }

    fn start(&self, arguments: &[String]) -> Result<Child> {
        let mut command = self.command(Path::new("python3"));
        command.args(["-c", MEASURE]).args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().context("python3 cannot be started")
    }

    fn measure(&self, arguments: &[String]) -> Result<ProcessCost> {
        finish(self.start(arguments)?)
    }

    fn entries(&self) -> Result<Vec<BenchEntry>> {
        self.capture(self.threads)?;
        let (trace, peer_trace) = (self.file(self.threads, "lava"), self.file(self.threads, "gfxr"));
        let (mut bare, mut ours, mut alone, mut peer) =
            (ProcessCost::NONE, ProcessCost::NONE, ProcessCost::NONE, ProcessCost::NONE);
        for _ in 0..ROUNDS {
            bare = bare.least(self.measure(&self.program(self.threads))?);
            ours = ours.least(self.measure(&self.replay(&trace, &[]))?);
            alone = alone.least(self.measure(&self.replay(&trace, &["--threads", "1"]))?);
            if has_peer() {
                let arguments = ["gfxrecon-replay".to_owned(), peer_trace.display().to_string()];
                peer = peer.least(self.measure(&arguments)?);
            }
        }
        let calls = f64::from(self.threads) * 10_000.0 * FRAMES.parse::<f64>().unwrap_or(1.0);
        let name = |what: &str| format!("{PREFIX}{} {}: {what}", self.driver.name, threads(self.threads));
        let peers = |of: fn(ProcessCost) -> f64| has_peer().then(|| of(peer));
        let mut all = vec![
            BenchEntry {
                name: name("a call on a thread"),
                unit: "ns".to_owned(),
                ours: ours.replay_seconds * 1e9 / calls * self.parallelism(),
                process: Some(ours.cpu_seconds * 1e9 / calls),
                limit: (self.driver.name == "null").then_some(CALL_MAX),
                ..BenchEntry::default()
            },
            BenchEntry {
                name: name("time to that of the program"),
                unit: "x".to_owned(),
                ours: ours.seconds / bare.seconds,
                peer: peers(|it| it.seconds).map(|it| it / bare.seconds),
                limit: (self.driver.name != "null").then_some(1.0),
                ..BenchEntry::default()
            },
            BenchEntry {
                name: name("memory"),
                unit: "MB".to_owned(),
                ours: ours.megabytes,
                peer: peers(|it| it.megabytes),
                limit: peers(|it| it.megabytes),
                ..BenchEntry::default()
            },
        ];
        let whole = |what: &str, of: ProcessCost, limit: f64| BenchEntry {
            name: name(what),
            unit: "ms".to_owned(),
            ours: of.seconds * 1e3,
            peer: peers(|it| it.seconds * 1e3),
            share_limit: Some(limit),
            ..BenchEntry::default()
        };
        all.push(whole("time", ours, SHARE_MAX));
        all.push(whole("time with --threads 1", alone, ALONE_MAX));
        Ok(all)
    }

    /// As many processes as threads, each of which replays one thread.
    fn to_processes(&self) -> Result<BenchEntry> {
        self.capture(1)?;
        let (one, many) = (self.replay(&self.file(1, "lava"), &[]), self.replay(&self.file(self.threads, "lava"), &[]));
        let (mut together, mut apart) = (f64::INFINITY, f64::INFINITY);
        for _ in 0..ROUNDS {
            together = together.min(self.measure(&many)?.replay_seconds);
            let all: Vec<Child> = (0..self.threads).map(|_| self.start(&one)).collect::<Result<_>>()?;
            let costs: Vec<ProcessCost> = all.into_iter().map(finish).collect::<Result<_>>()?;
            apart = apart.min(costs.iter().map(|it| it.replay_seconds).fold(0.0, f64::max));
        }
        Ok(BenchEntry {
            name: format!("{PREFIX}null: the time of 4 threads to that of 4 processes"),
            unit: "x".to_owned(),
            ours: together / apart,
            limit: Some(THREADS_MAX),
            ..BenchEntry::default()
        })
    }
}

fn threads(count: u32) -> String {
    if count == 1 { "1 thread".to_owned() } else { format!("{count} threads") }
}

fn has_peer() -> bool {
    system::is_on_path("gfxrecon-replay")
}

fn succeed(command: &mut Command) -> Result<()> {
    let output = command.output().with_context(|| format!("{command:?} cannot be started"))?;
    ensure!(output.status.success(), "{command:?} failed:\n{}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

fn finish(child: Child) -> Result<ProcessCost> {
    let output = child.wait_with_output().context("what was started cannot be waited for")?;
    let (output_text, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    ensure!(output.status.success(), "it failed:\n{said}\n{output_text}");
    cost(&output_text).with_context(|| format!("no times in its output:\n{output_text}"))
}

/// From what was told: the last line, and the document of `replay` before it if there is one.
fn cost(output_text: &str) -> Option<ProcessCost> {
    let (document, measured) = output_text.rsplit_once("\nmeasured ")?;
    let mut numbers = measured.split_whitespace().map(|it| it.parse::<f64>().ok());
    let (seconds, kilobytes) = (numbers.next()??, numbers.next()??);
    let document: Option<serde_json::Value> = serde_json::from_str(document).ok();
    let own = |what: &str| document.as_ref().and_then(|it| it[what][0].as_f64()).unwrap_or(seconds);
    let (own, processor) = (own("seconds"), own("processor_seconds"));
    Some(ProcessCost { seconds, megabytes: kilobytes / 1000.0, replay_seconds: own, cpu_seconds: processor })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_read_from_what_was_reported() {
        let cost = |output_text| cost(output_text).map(|it| (it.seconds, it.megabytes, it.replay_seconds));
        assert_eq!(cost("{\"seconds\":[0.25]}\n\nmeasured 0.5 12000\n"), Some((0.5, 12.0, 0.25)));
        assert_eq!(cost("File did not contain any frames\nmeasured 2.0 1000"), Some((2.0, 1.0, 2.0)));
        assert_eq!(cost("measured"), None);
    }
}
