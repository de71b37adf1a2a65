//! Tests millions of damaged records, for `cargo xtask fuzz`.

#[path = "../tests/common/mod.rs"]
mod common;
#[path = "../tests/common/mutation.rs"]
mod mutation;

use common::SimHandles;

fn main() {
    let numbers: Vec<u64> = std::env::args().skip(1).filter_map(|it| it.parse().ok()).collect();
    let (records, seed) = (numbers.first().copied().unwrap_or(1_000_000), numbers.get(1).copied().unwrap_or(1));
    let threads = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    let tallies: Vec<mutation::Tally> = std::thread::scope(|scope| {
        let run = |it| scope.spawn(move || mutation::mutate_records(seed * 1000 + it, records / threads));
        let handles: Vec<_> = (0..threads).map(run).collect();
        handles.into_iter().filter_map(|it| it.join().ok()).collect()
    });
    assert_eq!(tallies.len() as u64, threads, "a thread panicked");
    let accepted: u64 = tallies.iter().map(|it| it.accepted).sum();
    let refused: u64 = tallies.iter().map(mutation::Tally::refused_total).sum();
    let canonical: u64 = tallies.iter().map(|it| it.canonical).sum();
    println!("{} damaged records: {refused} refused, {accepted} well formed all the same", refused + accepted);
    println!("{canonical} of those came back byte for byte");
    let mut faults = std::collections::BTreeMap::new();
    for (fault, count) in tallies.iter().flat_map(|it| &it.refused) {
        *faults.entry(fault).or_insert(0) += count;
    }
    faults.iter().for_each(|(fault, count)| println!("{count:>12} {fault}"));
}
