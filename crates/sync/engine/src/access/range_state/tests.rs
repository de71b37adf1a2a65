//! What a range remembers of reads and writes.

use lavascope_abi::{AccessFlags2 as A, PipelineStageFlags2 as S};

use super::*;
use crate::access::access_context::{AccessContext, Addressing};
use crate::dependency::clocks::QueueClock;
use crate::dependency::scopes::ExpandedScope;
use crate::rules::Rules;

fn usage(stage: S, access: A) -> UsageIndex {
    SYNC_TABLES.usage(stage.0, access.0).expect("a usage")
}

fn by(usage: UsageIndex) -> Accessor {
    Accessor { usage, queue: 0, order: AccessOrder::None }
}

fn copy_read() -> Accessor {
    by(usage(S::COPY, A::TRANSFER_READ))
}

fn copy_write() -> Accessor {
    by(usage(S::COPY, A::TRANSFER_WRITE))
}

fn sampled_read() -> Accessor {
    by(usage(S::FRAGMENT_SHADER, A::SHADER_SAMPLED_READ))
}

fn storage_read() -> Accessor {
    by(usage(S::FRAGMENT_SHADER, A::SHADER_STORAGE_READ))
}

fn context(clock: &QueueClock, tag: Tag, from: Tag) -> AccessContext<'_> {
    let (rules, identity, name) = (Rules::CONTRACT, ResourceIdentity::default(), Addressing::Own);
    AccessContext {
        rules,
        clock,
        queue: 0,
        tag,
        instance_begin: None,
        pass_begin: Tag::MAX,
        subpass_begin: from,
        unordered_subpasses: &[],
        rare_order: None,
        identity,
        addressing: name,
    }
}

/// Reads, each with its first and last tag.
fn reads(state: &RangeState) -> Vec<(Tag, Tag)> {
    state.reads().map(|it| (it.first, it.last)).collect()
}

fn past(state: &RangeState) -> Vec<(Tag, Tag)> {
    let rest = state.cold.as_deref().and_then(|it| it.rare.as_deref());
    rest.map_or(Vec::new(), |it| it.earlier_reads.iter().map(|it| (it.first, it.last)).collect())
}

#[test]
fn reads_of_a_lane_are_one() {
    let clock = QueueClock::default();
    let mut state = RangeState::default();
    assert!(!state.is_written() && state.last_read(copy_read().usage, AccessOrder::None).is_none());
    for tag in [10, 20, 30] {
        state.add_read(copy_read(), &context(&clock, tag, 0));
    }
    assert_eq!(reads(&state), [(10, 30)]);
    // The same stage in another way is the same lane.
    for (tag, by) in [(40, sampled_read()), (50, storage_read()), (60, sampled_read())] {
        state.add_read(by, &context(&clock, tag, 0));
    }
    assert_eq!(reads(&state), [(10, 30), (40, 60)]);
    state.add_read(copy_read(), &context(&clock, 70, 0));
    assert_eq!(reads(&state), [(10, 70), (40, 60)]);
    let last = |by: Accessor, order| state.last_read(by.usage, order);
    assert_eq!((last(copy_read(), AccessOrder::None), last(sampled_read(), AccessOrder::None)), (Some(70), Some(60)));
    assert_eq!((last(copy_read(), AccessOrder::Color), last(storage_read(), AccessOrder::None)), (None, None));
    assert_eq!(last(sampled_read(), AccessOrder::Color), None);
    state.add_read(Accessor { queue: 1, ..copy_read() }, &AccessContext { queue: 1, ..context(&clock, 80, 0) });
    assert_eq!(reads(&state).len(), 3);
    assert_eq!(state.tags().collect::<Vec<_>>(), [70, 60, 80]);
    state.add_write(copy_write(), ResourceIdentity::default(), 90);
    assert!(state.is_written() && reads(&state).is_empty());
    assert_eq!(state.write_tags().collect::<Vec<_>>(), [90]);
}

/// In a subpass reads before it stay by themselves, unless they are ordered before.
#[test]
fn reads_of_before_a_subpass_stay() {
    let clock = QueueClock::default();
    let mut state = RangeState::default();
    state.add_read(copy_read(), &context(&clock, 10, 0));
    state.add_read(copy_read(), &context(&clock, 20, 10));
    assert_eq!(reads(&state), [(10, 10), (20, 20)]);
    state.add_read(copy_read(), &context(&clock, 30, 10));
    assert_eq!(reads(&state), [(10, 10), (20, 30)]);
    let mut state = RangeState::default();
    state.add_read(copy_read(), &context(&clock, 11, 0));
    state.add_read(copy_read(), &context(&clock, 20, 10));
    assert_eq!(reads(&state), [(11, 20)]);
    let mut ordered = QueueClock::default();
    let stages = SYNC_TABLES.stages_of_bits(S::COPY.0);
    let first_scope = ordered.first_scope(0, 25, stages, Default::default());
    ordered.apply_second_scope(&first_scope, stages, Default::default());
    state.add_read(copy_read(), &context(&ordered, 40, 30));
    assert_eq!(reads(&state), [(11, 40)]);
}

/// A read of the command that wrote says nothing about who may read after that.
#[test]
fn reads_of_a_write_do_not_stand_for_later_ones() {
    let clock = QueueClock::default();
    let mut state = RangeState::default();
    state.add_access(copy_write(), &context(&clock, 10, 0));
    state.add_access(copy_read(), &context(&clock, 10, 0));
    assert_eq!(reads(&state), [(10, 10)]);
    state.add_read(copy_read(), &context(&clock, 20, 0));
    assert_eq!(reads(&state), [(20, 20)]);
    state.add_read(copy_read(), &context(&clock, 30, 0));
    assert_eq!(reads(&state), [(20, 30)]);
}

#[test]
fn a_first_read_of_long_ago_is_forgotten() {
    let clock = QueueClock::default();
    let mut state = RangeState::default();
    state.add_read(copy_read(), &context(&clock, 1, 0));
    state.add_read(copy_read(), &context(&clock, 1 + Tag::from(u32::MAX), 0));
    assert_eq!(reads(&state), [(1, 1 + Tag::from(u32::MAX))]);
    state.add_read(copy_read(), &context(&clock, 2 + Tag::from(u32::MAX), 0));
    assert_eq!(reads(&state), [(2 + Tag::from(u32::MAX), 2 + Tag::from(u32::MAX))]);
}

/// A write by another name lies between two reads: both are remembered.
#[test]
fn reads_are_parted_by_writes_of_other_names() {
    let clock = QueueClock::default();
    let read_at = |tag: Tag| {
        let mut state = RangeState::default();
        state.add_read(copy_read(), &context(&clock, tag, 0));
        state
    };
    let parted = |mut state: RangeState, tag: Tag, writes: &[Tag]| {
        state.separate_reads(copy_read(), &context(&clock, tag, 0), writes);
        state.add_access(copy_read(), &context(&clock, tag, 0));
        (reads(&state), past(&state))
    };
    // Written before it, or not at all.
    assert_eq!(parted(read_at(20), 30, &[]), (vec![(20, 30)], vec![]));
    assert_eq!(parted(read_at(20), 30, &[19]), (vec![(20, 30)], vec![]));
    // Written behind it: the read stands for others only if something was written before it.
    assert_eq!(parted(read_at(20), 30, &[25]), (vec![(30, 30)], vec![]));
    assert_eq!(parted(read_at(20), 30, &[15, 25]), (vec![(30, 30)], vec![(20, 20)]));
    assert_eq!(parted(read_at(20), 30, &[20, 25]), (vec![(30, 30)], vec![]));
    assert_eq!(parted(read_at(20), 30, &[0, 25]), (vec![(30, 30)], vec![]));
    let mut written = RangeState::default();
    written.add_write(copy_write(), ResourceIdentity::default(), 5);
    written.add_read(copy_read(), &context(&clock, 20, 0));
    assert_eq!(parted(written.clone(), 30, &[25]), (vec![(30, 30)], vec![(20, 20)]));
    // Other lanes stay as they are.
    written.add_read(sampled_read(), &context(&clock, 22, 0));
    assert_eq!(parted(written.clone(), 30, &[25]), (vec![(30, 30), (22, 22)], vec![(20, 20)]));
    let mut other = RangeState::default();
    other.add_read(sampled_read(), &context(&clock, 20, 0));
    assert_eq!(parted(other.clone(), 30, &[25]), (vec![(20, 20), (30, 30)], vec![]));
    other.add_read(copy_read(), &context(&clock, 22, 0));
    assert_eq!(parted(other, 30, &[21, 25]), (vec![(20, 20), (30, 30)], vec![(22, 22)]));
}

/// Behind each write only the first read of a lane stands for others.
#[test]
fn only_the_first_read_behind_a_write_is_past() {
    let clock = QueueClock::default();
    let mut state = RangeState::default();
    let mut writes = vec![];
    for (write, reads) in [(10, [12, 14]), (20, [22, 24]), (30, [32, 34])] {
        writes.push(write);
        for tag in reads {
            state.separate_reads(copy_read(), &context(&clock, tag, 0), &writes);
            state.add_access(copy_read(), &context(&clock, tag, 0));
        }
    }
    assert_eq!((reads(&state), past(&state)), (vec![(32, 34)], vec![(12, 14), (22, 24)]));
    // All earlier reads lie before the last write, which comes alone.
    state.separate_reads(copy_read(), &context(&clock, 50, 0), &[40]);
    assert_eq!((reads(&state), past(&state)), (vec![], vec![]));
    state.add_access(copy_read(), &context(&clock, 50, 0));
    state.separate_reads(copy_read(), &context(&clock, 60, 0), &[45, 55]);
    assert_eq!(past(&state), [(50, 50)]);
}

#[test]
fn a_command_that_writes_in_several_ways() {
    let storage = by(usage(S::COMPUTE_SHADER, A::SHADER_STORAGE_WRITE));
    let mut state = RangeState::default();
    state.add_write(copy_write(), ResourceIdentity::default(), 10);
    assert!(state.cold.is_none());
    state.add_write(copy_write(), ResourceIdentity::default(), 10);
    assert_eq!(state.writes().count(), 1);
    state.add_write(storage, ResourceIdentity::default(), 10);
    assert_eq!(state.writes().map(|it| it.usage).collect::<Vec<_>>(), [copy_write().usage, storage.usage]);
    assert!(state.cold.as_deref().is_some_and(ColdState::has_other_writes));
    state.add_write(storage, ResourceIdentity::default(), 20);
    assert_eq!(state.writes().map(|it| (it.usage, it.tag)).collect::<Vec<_>>(), [(storage.usage, 20)]);
    assert!(state.cold.is_none());
}

/// Ranges to which one dependency does the same share what it did.
#[test]
fn ranges_share_overlays() {
    let clock = QueueClock::default();
    let mut shared = SharedOverlays::default();
    let mut states = [RangeState::default(), RangeState::default(), RangeState::default()];
    for range_state in &mut states {
        range_state.add_write(copy_write(), ResourceIdentity::default(), 10);
    }
    let overlay = |it: &RangeState| it.cold.as_deref().and_then(|it| it.overlay.clone()).expect("an overlay");
    let scope = ExpandedScope { dst: SYNC_TABLES.stages_of_bits(S::COPY.0), ..ExpandedScope::default() };
    for range_state in &mut states {
        range_state.add_to_overlays(&context(&clock, 20, 0), &scope, &mut shared, |_| true);
    }
    let [one, two, three] = &states;
    assert!(Arc::ptr_eq(&overlay(one), &overlay(two)) && Arc::ptr_eq(&overlay(one), &overlay(three)));
    // Another dependency, to two that shared and to one that had nothing.
    let mut shared = SharedOverlays::default();
    let scope = ExpandedScope { dst: SYNC_TABLES.stages_of_bits(S::COMPUTE_SHADER.0), ..ExpandedScope::default() };
    let mut fourth = RangeState::default();
    fourth.add_write(copy_write(), ResourceIdentity::default(), 10);
    let mut states = [one.clone(), two.clone(), fourth, three.clone()];
    for range_state in &mut states {
        range_state.add_to_overlays(&context(&clock, 30, 0), &scope, &mut shared, |_| true);
    }
    let [one, two, fourth, three] = &states;
    assert!(Arc::ptr_eq(&overlay(one), &overlay(two)));
    assert_eq!(overlay(one), overlay(three));
    assert_ne!(overlay(one), overlay(fourth));
    let mut state = RangeState::default();
    state.add_write(copy_write(), ResourceIdentity::default(), 10);
    state.add_to_overlays(&context(&clock, 30, 0), &scope, &mut SharedOverlays::default(), |_| false);
    assert!(state.cold.is_none());
}

/// Only a layout transition of the current command.
#[test]
fn transitions_of_now_are_shared() {
    let clock = QueueClock::default();
    let scope = ExpandedScope { dst: SYNC_TABLES.stages_of_bits(S::COPY.0), ..ExpandedScope::default() };
    let transition = by(TRANSITION_WRITE);
    for (by, tag, is_shared) in [(transition, 20, true), (transition, 10, false), (copy_write(), 20, false)] {
        let mut state = RangeState::default();
        state.add_write(by, ResourceIdentity::default(), tag);
        state.share_transition(&context(&clock, 20, 0), 20, &scope, &mut SharedOverlays::default());
        assert_eq!(state.cold.is_some(), is_shared);
    }
}

#[test]
fn the_edges_of_subpasses() {
    let clock = QueueClock::default();
    let apart = [(10, 20)];
    let context = AccessContext {
        unordered_subpasses: &apart,
        instance_begin: Some(10),
        subpass_begin: 10,
        ..context(&clock, 30, 0)
    };
    assert!(
        !context.is_in_unordered_subpass(0, 10)
            && context.is_in_unordered_subpass(0, 11)
            && context.is_in_unordered_subpass(0, 20)
            && !context.is_in_unordered_subpass(0, 21)
    );
    assert!(!context.is_in_unordered_subpass(1, 15));
    let color = (usage(S::COLOR_ATTACHMENT_OUTPUT, A::COLOR_ATTACHMENT_WRITE), AccessOrder::Color);
    assert!(
        !context.is_ordered_by_rendering(0, 10, color, color) && context.is_ordered_by_rendering(0, 11, color, color)
    );
    assert!(!context.is_ordered_by_rendering(1, 11, color, color));
    assert!(
        context.is_in_subpass(0, 0)
            && context.is_in_subpass(0, 10)
            && !context.is_in_subpass(0, 9)
            && !context.is_in_subpass(1, 0)
    );
}

/// Most reads are kept in a short way; nobody can tell.
#[test]
fn short_ways_of_reading_keep_the_same() {
    let (mut dice, clock) = (lavascope_test_support::TestRng::new(3), QueueClock::default());
    let lanes = [copy_read(), sampled_read(), storage_read(), Accessor { queue: 1, ..copy_read() }];
    let lanes = [lanes, lanes.map(|it| Accessor { order: AccessOrder::Color, ..it })].concat();
    let mut again = 0;
    for _ in 0..4000 {
        // Few lanes, so that the same ones come again.
        let few: Vec<Accessor> = (0..1 + dice.below(3)).map(|_| dice.pick(&lanes)).collect();
        let (mut short, mut from) = (RangeState::default(), 0);
        for tag in (10..200).step_by(10) {
            match dice.below(8) {
                0 => short.add_write(copy_write(), ResourceIdentity::default(), tag),
                1 => from = tag - dice.below(2) * 10,
                _ => {
                    // A command that writes may read too.
                    let context =
                        context(&clock, if short.write_tag == tag - 10 { tag - dice.below(2) * 10 } else { tag }, from);
                    let (mut long, by) = (short.clone(), dice.pick(&few));
                    again += usize::from(long.clone().try_extend_second_read(by, &context));
                    long.add_access(by, &context);
                    short.add_read(by, &context);
                    assert_eq!(short, long);
                }
            }
        }
    }
    assert!(again > 1000, "{again}");
}
