//! Damaged records, within the time limit of a test. `cargo xtask fuzz` runs more of them.

mod common;

#[path = "common/mutation.rs"]
mod mutation;

use common::SimHandles;
use lavascope_record::check;

#[test]
fn damaged_records_are_refused_or_usable() {
    let tally = mutation::mutate_records(7, 200_000);
    assert!(tally.refused_total() > 100_000, "most damage shows: {:?}", tally.refused);
    // Each of these faults must occur; otherwise its check is never tested.
    for fault in ["Truncated", "UnknownCommand", "WrongOffset", "PastEnd", "DirtyPadding", "WrongHandle", "WrongMark"] {
        assert!(tally.refused.contains_key(fault), "{fault} never occurs: {:?}", tally.refused);
    }
}

#[test]
fn damaged_records_are_judged_alike_whether_or_not_similar_ones_are_known() {
    let mut alike = lavascope_record::RecordCheckCache::default();
    let mut same = 0;
    mutation::each_damaged(9, 200_000, |whole, damaged| {
        let known = alike.check(whole).is_ok();
        let (one, other) = (alike.check(damaged).map(|it| it.words().len()), check(damaged).map(|it| it.words().len()));
        assert_eq!(one, other);
        same += u64::from(known && other.is_ok() && whole.first() == damaged.first() && whole != damaged);
    });
    assert!(same > 1000, "some damage does not matter to a record of the same shape: {same}");
}
