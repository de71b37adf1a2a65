//! Replay of a program that only the processor works for: beside the program itself, and beside GFXReconstruct.
//!
//! The sample `recording` is captured by both, on each driver and with one and four threads; then everything runs in
//! turns, each in a process of its own, and the least of the rounds counts. Times are wall times of whole processes,
//! start, opening the driver and reading the trace included; only the cost of a call is what the replay says itself,
//! from when the loader is open to the last call, reading and unpacking the trace included.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};
use lavascope_bench::Entry;

use super::programs::{PEER, Stage};
use crate::system;

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
struct Cost {
    seconds: f64,
    megabytes: f64,
    /// What the replay says itself, and what all its threads took of the processor meanwhile.
    own: f64,
    processor: f64,
}

impl Cost {
    const NONE: Cost =
        Cost { seconds: f64::INFINITY, megabytes: f64::INFINITY, own: f64::INFINITY, processor: f64::INFINITY };

    fn least(self, other: Cost) -> Cost {
        Cost {
            seconds: self.seconds.min(other.seconds),
            megabytes: self.megabytes.min(other.megabytes),
            own: self.own.min(other.own),
            processor: self.processor.min(other.processor),
        }
    }
}

pub(super) fn entries(root: &Path, filter: Option<&str>) -> Result<Vec<Entry>> {
    // All are measured together.
    if filter.is_some_and(|it| !it.starts_with("replay")) {
        return Ok(Vec::new());
    }
    let stage = Stage::new(root)?;
    let library = stage.release.join("liblavascope_null_driver.so");
    let manifest = stage.folder.join("null_driver.json");
    let text = serde_json::json!({
        "file_format_version": "1.0.1",
        "ICD": { "library_path": library, "api_version": "1.4.0" },
    });
    std::fs::write(&manifest, text.to_string()).with_context(|| format!("{} cannot be written", manifest.display()))?;
    let null = Driver { name: "null", manifest: manifest.display().to_string() };
    let lavapipe = Driver { name: "lavapipe", manifest: stage.driver.clone() };
    let mut all = Vec::new();
    for driver in [&null, &lavapipe] {
        for threads in [1, 4] {
            all.extend(Case { stage: &stage, driver, threads }.entries()?);
        }
    }
    all.push(Case { stage: &stage, driver: &null, threads: 4 }.to_processes()?);
    all.retain(|it| filter.is_none_or(|filter| it.name.contains(filter)));
    Ok(all)
}

struct Driver {
    name: &'static str,
    manifest: String,
}

/// One program on one driver.
struct Case<'a> {
    stage: &'a Stage,
    driver: &'a Driver,
    threads: u32,
}

impl Case<'_> {
    /// How many threads can run at once.
    fn at_once(&self) -> f64 {
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

    fn measure(&self, arguments: &[String]) -> Result<Cost> {
        finish(self.start(arguments)?)
    }

    fn entries(&self) -> Result<Vec<Entry>> {
        self.capture(self.threads)?;
        let (trace, peer_trace) = (self.file(self.threads, "lava"), self.file(self.threads, "gfxr"));
        let (mut bare, mut ours, mut alone, mut peer) = (Cost::NONE, Cost::NONE, Cost::NONE, Cost::NONE);
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
        let peers = |of: fn(Cost) -> f64| has_peer().then(|| of(peer));
        let mut all = vec![
            Entry {
                name: name("a call on a thread"),
                unit: "ns".to_owned(),
                ours: ours.own * 1e9 / calls * self.at_once(),
                process: Some(ours.processor * 1e9 / calls),
                limit: (self.driver.name == "null").then_some(CALL_MAX),
                ..Entry::default()
            },
            Entry {
                name: name("time to that of the program"),
                unit: "x".to_owned(),
                ours: ours.seconds / bare.seconds,
                peer: peers(|it| it.seconds).map(|it| it / bare.seconds),
                limit: (self.driver.name != "null").then_some(1.0),
                ..Entry::default()
            },
            Entry {
                name: name("memory"),
                unit: "MB".to_owned(),
                ours: ours.megabytes,
                peer: peers(|it| it.megabytes),
                limit: peers(|it| it.megabytes),
                ..Entry::default()
            },
        ];
        if has_peer() {
            let share = |what: &str, of: Cost, limit: f64| Entry {
                name: name(what),
                unit: "x".to_owned(),
                ours: of.seconds / peer.seconds,
                limit: Some(limit),
                ..Entry::default()
            };
            all.push(share("time to gfxrecon-replay", ours, SHARE_MAX));
            all.push(share("time of --threads 1 to gfxrecon-replay", alone, ALONE_MAX));
        }
        Ok(all)
    }

    /// As many processes as threads, each of which replays one thread.
    fn to_processes(&self) -> Result<Entry> {
        self.capture(1)?;
        let (one, many) = (self.replay(&self.file(1, "lava"), &[]), self.replay(&self.file(self.threads, "lava"), &[]));
        let (mut together, mut apart) = (f64::INFINITY, f64::INFINITY);
        for _ in 0..ROUNDS {
            together = together.min(self.measure(&many)?.own);
            let all: Vec<Child> = (0..self.threads).map(|_| self.start(&one)).collect::<Result<_>>()?;
            let costs: Vec<Cost> = all.into_iter().map(finish).collect::<Result<_>>()?;
            apart = apart.min(costs.iter().map(|it| it.own).fold(0.0, f64::max));
        }
        Ok(Entry {
            name: format!("{PREFIX}null: the time of 4 threads to that of 4 processes"),
            unit: "x".to_owned(),
            ours: together / apart,
            limit: Some(THREADS_MAX),
            ..Entry::default()
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

fn finish(child: Child) -> Result<Cost> {
    let output = child.wait_with_output().context("what was started cannot be waited for")?;
    let (told, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    ensure!(output.status.success(), "it failed:\n{said}\n{told}");
    cost(&told).with_context(|| format!("no times in what it told:\n{told}"))
}

/// From what was told: the last line, and the document of `replay` before it if there is one.
fn cost(told: &str) -> Option<Cost> {
    let (document, measured) = told.rsplit_once("\nmeasured ")?;
    let mut numbers = measured.split_whitespace().map(|it| it.parse::<f64>().ok());
    let (seconds, kilobytes) = (numbers.next()??, numbers.next()??);
    let document: Option<serde_json::Value> = serde_json::from_str(document).ok();
    let own = |what: &str| document.as_ref().and_then(|it| it[what][0].as_f64()).unwrap_or(seconds);
    let (own, processor) = (own("seconds"), own("processor_seconds"));
    Some(Cost { seconds, megabytes: kilobytes / 1000.0, own, processor })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_read_from_what_was_told() {
        let cost = |told| cost(told).map(|it| (it.seconds, it.megabytes, it.own));
        assert_eq!(cost("{\"seconds\":[0.25]}\n\nmeasured 0.5 12000\n"), Some((0.5, 12.0, 0.25)));
        assert_eq!(cost("File did not contain any frames\nmeasured 2.0 1000"), Some((2.0, 1.0, 2.0)));
        assert_eq!(cost("measured"), None);
    }
}
