//! Entries of the benchmark: timing, limits, and the form that `cargo xtask bench` reads.
//!
//! A bench binary collects [`Bench`] entries and calls [`Suite::main`]. Times are CPU time of the measuring thread,
//! with the CPU time of the process beside them, and the minimum over many batches: these machines are noisy, and
//! only the minimum repeats. Instructions are counted by `cargo xtask bench`, which runs one entry under valgrind.

#![forbid(unsafe_code)]

use lavascope_platform::clock::{process_nanoseconds, thread_nanoseconds};
use serde::{Deserialize, Serialize};

/// One line of the table.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct BenchEntry {
    pub name: String,
    pub unit: String,
    /// The same work without us.
    pub bare: Option<f64>,
    pub ours: f64,
    /// The same work with the tool we compare with.
    pub peer: Option<f64>,
    /// Our cost must not be above this share of the peer's.
    #[serde(default)]
    pub share_limit: Option<f64>,
    /// The cost that we add to the bare work: the smallest difference would be luck, so this is the difference of the
    /// minima.
    #[serde(default)]
    pub added: Option<f64>,
    /// The added cost, or our cost if there is no bare work, must not be above this.
    pub limit: Option<f64>,
    /// CPU time of the whole process, in the same unit.
    pub process: Option<f64>,
    /// Instructions of one operation.
    pub instructions: Option<f64>,
}

impl BenchEntry {
    /// Ours to bare, or to the peer where there is no bare.
    pub fn ratio(&self) -> Option<f64> {
        self.bare.or(self.peer).filter(|it| *it > 0.0).map(|it| self.ours / it)
    }

    /// The cost that the limit is for: the added cost, or our cost if there is no bare work.
    pub fn measured(&self) -> f64 {
        self.added.unwrap_or(self.ours)
    }

    /// The same of the peer.
    pub fn peer_measured(&self) -> Option<f64> {
        let bare = if self.added.is_some() { self.bare? } else { 0.0 };
        Some(self.peer? - bare)
    }

    /// Our cost, as a share of the peer's.
    pub fn share(&self) -> Option<f64> {
        self.peer_measured().filter(|it| *it > 0.0).map(|it| self.measured() / it)
    }

    pub fn is_within_limit(&self) -> bool {
        let is_small = self.limit.is_none_or(|it| self.measured() <= it);
        is_small && self.share().zip(self.share_limit).is_none_or(|(share, limit)| share <= limit)
    }
}

/// An operation to be measured.
pub struct Bench<'a> {
    pub name: String,
    pub limit: Option<f64>,
    /// Runs the operation as often as requested.
    pub run: Box<dyn FnMut(u64) + 'a>,
    /// The same without us, if there is such a thing; the limit is then for what we add.
    pub bare: Option<Box<dyn FnMut(u64) + 'a>>,
}

/// The same operation with a tool that we compare with.
pub struct Peer<'a> {
    pub run: Box<dyn FnMut(u64) + 'a>,
    /// Our added cost must not be above this share of the peer's added cost.
    pub share_limit: f64,
}

/// The entries of one binary.
#[derive(Default)]
pub struct Suite<'a> {
    benches: Vec<(Bench<'a>, Option<Peer<'a>>)>,
    values: Vec<(String, Box<dyn Fn() -> BenchEntry + 'a>)>,
}

const BATCHES: u32 = 40;
/// Nanoseconds a batch should take: long against the clock, short against the scheduler.
const BATCH_NS: f64 = 2_000_000.0;

impl<'a> Suite<'a> {
    pub fn add(&mut self, bench: Bench<'a>) {
        self.benches.push((bench, None));
    }

    pub fn add_with_peer(&mut self, bench: Bench<'a>, peer: Peer<'a>) {
        self.benches.push((bench, Some(peer)));
    }

    /// Something that is not the time of an operation: a size, a ratio.
    pub fn add_value(&mut self, name: &str, value: impl Fn() -> BenchEntry + 'a) {
        self.values.push((name.to_owned(), Box::new(value)));
    }

    /// With `--count NAME TIMES` runs one entry, for valgrind; with `--list` names them; else measures all and
    /// prints one JSON object a line.
    pub fn main(&mut self) {
        let arguments: Vec<String> = std::env::args().skip(1).collect();
        let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
        match words[..] {
            ["--count", name, times] => {
                let times = times.parse().unwrap_or(0);
                for bench in self.benches.iter_mut().filter(|it| it.0.name == name) {
                    (bench.0.run)(times);
                }
            }
            ["--list", ..] => self.benches.iter().for_each(|it| println!("{}", it.0.name)),
            _ => {
                let filter = words.iter().find(|it| !it.starts_with("--"));
                let wanted = |it: &Bench<'_>| filter.is_none_or(|filter| it.name.contains(*filter));
                for (bench, peer) in self.benches.iter_mut().filter(|it| wanted(&it.0)) {
                    print(&measure(bench, peer.as_mut()));
                }
                let wanted = |it: &&(String, _)| filter.is_none_or(|filter| it.0.contains(*filter));
                for (name, value) in self.values.iter().filter(wanted) {
                    print(&BenchEntry { name: name.clone(), ..value() });
                }
            }
        }
    }
}

fn print(entry: &BenchEntry) {
    println!("{}", serde_json::to_string(entry).unwrap_or_default());
}

fn measure(bench: &mut Bench<'_>, peer: Option<&mut Peer<'_>>) -> BenchEntry {
    let share_limit = peer.as_ref().map(|it| it.share_limit);
    let peer = peer.map(|it| &mut *it.run);
    let (bare, peer, (ours, process)) = match &mut bench.bare {
        Some(bare) => interleaved_minima(bare, peer, &mut bench.run),
        None => (None, None, minimum(&mut bench.run)),
    };
    BenchEntry {
        name: bench.name.clone(),
        unit: "ns".to_owned(),
        bare,
        ours,
        peer,
        share_limit,
        added: bare.map(|it| ours - it),
        limit: bench.limit,
        process: Some(process),
        instructions: None,
    }
}

/// Nanoseconds of one operation: of this thread, and of the process in the same batch.
fn minimum(run: &mut dyn FnMut(u64)) -> (f64, f64) {
    let times = runs_per_batch(run);
    (0..BATCHES).map(|_| time_batch(run, times)).min_by(|left, right| left.0.total_cmp(&right.0)).unwrap_or((0.0, 0.0))
}

/// The minima of operations whose batches take turns, so that all meet the same weather. The peer does as many at a time
/// as we do: it may be slower the more there are.
fn interleaved_minima(
    bare: &mut dyn FnMut(u64),
    mut peer: Option<&mut (dyn FnMut(u64) + '_)>,
    run: &mut dyn FnMut(u64),
) -> (Option<f64>, Option<f64>, (f64, f64)) {
    let (bare_times, run_times) = (runs_per_batch(bare), runs_per_batch(run));
    let (mut least_bare, mut least_peer, mut least) = (f64::INFINITY, None, (f64::INFINITY, 0.0));
    for _ in 0..BATCHES {
        least_bare = least_bare.min(time_batch(bare, bare_times).0);
        if let Some(peer) = &mut peer {
            let batch = time_batch(peer, run_times).0;
            least_peer = Some(least_peer.unwrap_or(batch).min(batch));
        }
        let batch = time_batch(run, run_times);
        if batch.0 < least.0 {
            least = batch;
        }
    }
    (Some(least_bare), least_peer, least)
}

/// How often an operation fits into a batch. The first thousand may take many times as long as those behind them, so it
/// is asked again until it hardly changes: a batch that is too short is mostly about what others left in the caches.
fn runs_per_batch(run: &mut dyn FnMut(u64)) -> u64 {
    run(10);
    let mut count = 1000;
    loop {
        let (once, _) = time_batch(run, count);
        let fits = ((BATCH_NS / once.max(0.5)) as u64).clamp(10, 10_000_000);
        if fits <= 2 * count {
            return fits;
        }
        count = fits;
    }
}

fn time_batch(run: &mut dyn FnMut(u64), times: u64) -> (f64, f64) {
    let (thread, process) = (thread_nanoseconds(), process_nanoseconds());
    run(times);
    let per = |from: u64, now: u64| now.saturating_sub(from) as f64 / times as f64;
    (per(thread, thread_nanoseconds()), per(process, process_nanoseconds()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_added_is_compared_with_what_the_peer_adds() {
        let added = BenchEntry {
            bare: Some(10.0),
            ours: 30.0,
            added: Some(20.0),
            peer: Some(50.0),
            share_limit: Some(0.5),
            ..BenchEntry::default()
        };
        assert_eq!((added.measured(), added.peer_measured(), added.share()), (20.0, Some(40.0), Some(0.5)));
        assert!(added.is_within_limit());
        assert!(!BenchEntry { share_limit: Some(0.4), ..added.clone() }.is_within_limit());
        assert!(!BenchEntry { limit: Some(19.0), ..added }.is_within_limit());
    }

    #[test]
    fn a_figure_without_a_bare_one_is_compared_with_the_figure_of_the_peer() {
        let whole = BenchEntry { ours: 3.0, peer: Some(4.0), share_limit: Some(0.5), ..BenchEntry::default() };
        assert_eq!((whole.measured(), whole.peer_measured(), whole.share()), (3.0, Some(4.0), Some(0.75)));
        assert!(!whole.is_within_limit());
        assert_eq!(BenchEntry { peer: None, ..whole }.share(), None);
    }
}
