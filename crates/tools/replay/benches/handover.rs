//! The cost of handing an object from one thread of a replay to another.

use lavascope_bench::{BenchEntry, Suite};
use lavascope_replay::measure::{bare_futex, handover_sleeping, handover_spinning};

const TIMES: u64 = 2000;
const ROUNDS: usize = 5;
/// Nanoseconds between two threads that both run.
const RUNNING_MAX: f64 = 2000.0;
/// To a bare futex, where one sleeps.
const ASLEEP_MAX: f64 = 1.5;

/// The least of several rounds: these machines are noisy.
fn least(run: impl Fn(u64) -> f64) -> f64 {
    (0..ROUNDS).map(|_| run(TIMES)).fold(f64::INFINITY, f64::min)
}

fn main() {
    let mut suite = Suite::default();
    suite.add_value("replay: a hand-over, both threads running, median", || BenchEntry {
        unit: "ns".to_owned(),
        ours: least(handover_spinning),
        limit: Some(RUNNING_MAX),
        ..BenchEntry::default()
    });
    suite.add_value("replay: a hand-over to a thread that sleeps, to a bare futex", || {
        let (mut ours, mut bare) = (f64::INFINITY, f64::INFINITY);
        // In turns, so that both meet the same weather.
        for _ in 0..ROUNDS {
            (ours, bare) = (ours.min(handover_sleeping(TIMES)), bare.min(bare_futex(TIMES)));
        }
        BenchEntry { unit: "x".to_owned(), ours: ours / bare, limit: Some(ASLEEP_MAX), ..BenchEntry::default() }
    });
    suite.main();
}
