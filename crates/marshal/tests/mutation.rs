//! Damaged records in the time a test may take; `cargo xtask fuzz` goes on from here.

mod common;

#[path = "common/mutation.rs"]
mod mutation;

use common::Names;

#[test]
fn damaged_records_are_refused_or_usable() {
    let tally = mutation::mutate_records(7, 200_000);
    assert!(tally.refused_total() > 100_000, "most damage shows: {:?}", tally.refused);
    // Each of these faults must be reachable, or the check for it is dead.
    for fault in ["Truncated", "UnknownCommand", "WrongOffset", "PastEnd", "DirtyPadding", "WrongHandle", "WrongMark"] {
        assert!(tally.refused.contains_key(fault), "{fault} never occurs: {:?}", tally.refused);
    }
}
