//! Entries of the benchmark: timing, limits, and the form that `cargo xtask bench` reads.
//!
//! A bench binary collects [`Bench`] entries and calls [`Suite::main`]. Times are CPU time of the measuring thread,
//! with the CPU time of the process beside them, and the minimum over many batches: these machines are noisy, and
//! only the minimum repeats. Instructions are counted by `cargo xtask bench`, which runs one entry under valgrind.

#![forbid(unsafe_code)]

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

/// One line of the table.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Entry {
    pub name: String,
    pub unit: String,
    /// The same work without us.
    pub bare: Option<f64>,
    pub ours: f64,
    /// The same work with the tool we compare with.
    pub peer: Option<f64>,
    /// What we add to the bare work: the smallest difference would be luck, so this is the difference of the minima.
    #[serde(default)]
    pub added: Option<f64>,
    /// What we add, or where nothing is added ours, must not be above this.
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
        self.limit.is_none_or(|it| self.added.unwrap_or(self.ours) <= it)
    }
}

/// An operation to be measured.
pub struct Bench<'a> {
    pub name: String,
    pub limit: Option<f64>,
    /// Runs the operation as often as it is told.
    pub run: Box<dyn FnMut(u64) + 'a>,
    /// The same without us, if there is such a thing; the limit is then for what we add.
    pub bare: Option<Box<dyn FnMut(u64) + 'a>>,
}

/// The entries of one binary.
#[derive(Default)]
pub struct Suite<'a> {
    benches: Vec<Bench<'a>>,
    values: Vec<(String, Box<dyn Fn() -> Entry + 'a>)>,
}

const BATCHES: u32 = 40;
/// Nanoseconds a batch should take: long against the clock, short against the scheduler.
const BATCH_NS: f64 = 2_000_000.0;

impl<'a> Suite<'a> {
    pub fn add(&mut self, bench: Bench<'a>) {
        self.benches.push(bench);
    }

    /// Something that is not the time of an operation: a size, a ratio.
    pub fn add_value(&mut self, name: &str, value: impl Fn() -> Entry + 'a) {
        self.values.push((name.to_owned(), Box::new(value)));
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
                    print(&measure(bench));
                }
                let wanted = |it: &&(String, _)| filter.is_none_or(|filter| it.0.contains(*filter));
                for (name, value) in self.values.iter().filter(wanted) {
                    print(&Entry { name: name.clone(), ..value() });
                }
            }
        }
    }
}

fn print(entry: &Entry) {
    println!("{}", serde_json::to_string(entry).unwrap_or_default());
}

fn measure(bench: &mut Bench<'_>) -> Entry {
    let (bare, (ours, process)) = match &mut bench.bare {
        Some(bare) => both_minima(bare, &mut bench.run),
        None => (None, minimum(&mut bench.run)),
    };
    Entry {
        name: bench.name.clone(),
        unit: "ns".to_owned(),
        bare,
        ours,
        peer: None,
        added: bare.map(|it| ours - it),
        limit: bench.limit,
        process: Some(process),
        instructions: None,
    }
}

/// Nanoseconds of one operation: of this thread, and of the process in the same batch.
fn minimum(run: &mut dyn FnMut(u64)) -> (f64, f64) {
    let times = times(run);
    (0..BATCHES).map(|_| time(run, times)).min_by(|left, right| left.0.total_cmp(&right.0)).unwrap_or((0.0, 0.0))
}

/// The minima of two operations whose batches take turns, so that both meet the same weather.
fn both_minima(bare: &mut dyn FnMut(u64), run: &mut dyn FnMut(u64)) -> (Option<f64>, (f64, f64)) {
    let (bare_times, run_times) = (times(bare), times(run));
    let (mut least_bare, mut least) = (f64::INFINITY, (f64::INFINITY, 0.0));
    for _ in 0..BATCHES {
        least_bare = least_bare.min(time(bare, bare_times).0);
        let batch = time(run, run_times);
        if batch.0 < least.0 {
            least = batch;
        }
    }
    (Some(least_bare), least)
}

/// How often an operation fits into a batch.
fn times(run: &mut dyn FnMut(u64)) -> u64 {
    run(10);
    let (once, _) = time(run, 1000);
    ((BATCH_NS / once.max(0.5)) as u64).clamp(10, 10_000_000)
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
