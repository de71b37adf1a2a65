//! Entries of the benchmark: timing, limits, and the form that `cargo xtask bench` reads.
//!
//! A bench binary collects [`Bench`] entries and calls [`Suite::main`]. Times are CPU time of the measuring thread,
//! with the CPU time of the process beside them, and the minimum over many batches: these machines are noisy, and
//! only the minimum repeats. Instructions are counted by `cargo xtask bench`, which runs one entry under valgrind.

#![forbid(unsafe_code)]

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

/// One line of the table.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Entry {
    pub name: String,
    pub unit: String,
    /// The same work without us.
    pub bare: Option<f64>,
    pub ours: f64,
    /// The same work with the tool we compare with.
    pub peer: Option<f64>,
    /// Ours must not be above this.
    pub limit: Option<f64>,
    /// CPU time of the whole process, in the same unit.
    pub process: Option<f64>,
    /// Instructions of one operation.
    pub instructions: Option<f64>,
}

impl Entry {
    /// Ours to bare, or to the peer where there is no bare.
    pub fn ratio(&self) -> Option<f64> {
        self.bare.or(self.peer).filter(|it| *it > 0.0).map(|it| self.ours / it)
    }

    pub fn is_within_limit(&self) -> bool {
        self.limit.is_none_or(|it| self.ours <= it)
    }
}

/// An operation to be measured.
pub struct Bench<'a> {
    pub name: &'static str,
    pub limit: Option<f64>,
    /// Runs the operation as often as it is told.
    pub run: Box<dyn FnMut(u64) + 'a>,
    /// The same without us, if there is such a thing.
    pub bare: Option<Box<dyn FnMut(u64) + 'a>>,
}

/// The entries of one binary.
#[derive(Default)]
pub struct Suite<'a> {
    benches: Vec<Bench<'a>>,
}

const BATCHES: u32 = 40;
/// Nanoseconds a batch should take: long against the clock, short against the scheduler.
const BATCH_NS: f64 = 2_000_000.0;

impl<'a> Suite<'a> {
    pub fn add(&mut self, bench: Bench<'a>) {
        self.benches.push(bench);
    }

    /// With `--count NAME TIMES` runs one entry, for valgrind; with `--list` names them; else measures all and
    /// prints one JSON object a line.
    pub fn main(mut self) {
        let arguments: Vec<String> = std::env::args().skip(1).collect();
        let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
        match words[..] {
            ["--count", name, times] => {
                let times = times.parse().unwrap_or(0);
                for bench in self.benches.iter_mut().filter(|it| it.name == name) {
                    (bench.run)(times);
                }
            }
            ["--list", ..] => self.benches.iter().for_each(|it| println!("{}", it.name)),
            _ => {
                let filter = words.iter().find(|it| !it.starts_with("--"));
                let wanted = |it: &&mut Bench<'_>| filter.is_none_or(|filter| it.name.contains(*filter));
                for bench in self.benches.iter_mut().filter(wanted) {
                    let line = serde_json::to_string(&measure(bench));
                    println!("{}", line.unwrap_or_default());
                }
            }
        }
    }
}

fn measure(bench: &mut Bench<'_>) -> Entry {
    let (ours, process) = minimum(&mut bench.run);
    let bare = bench.bare.as_mut().map(|it| minimum(it).0);
    Entry {
        name: bench.name.to_owned(),
        unit: "ns".to_owned(),
        bare,
        ours,
        peer: None,
        limit: bench.limit,
        process: Some(process),
        instructions: None,
    }
}

/// Nanoseconds of one operation: of this thread, and of the process in the same batch.
fn minimum(run: &mut dyn FnMut(u64)) -> (f64, f64) {
    run(10);
    let trial = 1000;
    let (once, _) = time(run, trial);
    let times = ((BATCH_NS / once.max(0.5)) as u64).clamp(10, 10_000_000);
    (0..BATCHES).map(|_| time(run, times)).min_by(|left, right| left.0.total_cmp(&right.0)).unwrap_or((0.0, 0.0))
}

fn time(run: &mut dyn FnMut(u64), times: u64) -> (f64, f64) {
    let (thread, process) = (now(ClockId::ThreadCPUTime), now(ClockId::ProcessCPUTime));
    run(times);
    let per = |from: f64, clock| (now(clock) - from) / times as f64;
    (per(thread, ClockId::ThreadCPUTime), per(process, ClockId::ProcessCPUTime))
}

fn now(clock: ClockId) -> f64 {
    let time = clock_gettime(clock);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}
