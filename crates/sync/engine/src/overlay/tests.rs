//! What an overlay keeps of a dependency, and what follows from it.

use lavascope_abi::{AccessFlags2 as A, PipelineStageFlags2 as S};
use smallvec::smallvec;

use super::*;
use crate::clock::{Carry, Clock};
use crate::rules::Rules;
use crate::usage::TABLES;

fn usage(stage: S, access: A) -> Usage {
    TABLES.usage(stage.0, access.0).expect("a usage")
}

fn copy_read() -> Usage {
    usage(S::COPY, A::TRANSFER_READ)
}

fn sampled() -> Usage {
    usage(S::FRAGMENT_SHADER, A::SHADER_SAMPLED_READ)
}

fn host_read() -> Usage {
    usage(S::HOST, A::HOST_READ)
}

fn usages(all: &[Usage]) -> Usages {
    let mut found = Usages::default();
    all.iter().for_each(|it| found.add(*it));
    found
}

fn stages(bits: S) -> Stages {
    TABLES.stages_of_bits(bits.0)
}

fn stage(bits: S) -> Stage {
    stages(bits).iter().next().expect("a stage")
}

fn now(clock: &Clock, tag: Tag) -> Now<'_> {
    let (rules, through, name) = (Rules::CONTRACT, Identity::default(), Name::Own);
    Now { rules, clock, queue: 0, tag, instance: None, from: 0, apart: &[], through, name }
}

fn scope(dst: S, own: &[Usage], everywhere: &[Usage]) -> Expanded {
    let (dst_usages, dst_everywhere) = (usages(own), usages(everywhere));
    Expanded { dst: stages(dst), dst_usages, dst_everywhere, ..Expanded::default() }
}

fn visible(overlay: &Overlay) -> Vec<Usages> {
    overlay.visible.iter().map(|it| it.usages).collect()
}

const ALIAS: Name = Name::Alias { start: 8, end: 16 };

#[test]
fn what_is_visible_is_kept_by_its_name() {
    let clock = Clock::default();
    let added = |name: Name, scope: Expanded| {
        let mut overlay = Overlay::default();
        overlay.add(&Now { name, ..now(&clock, 10) }, &scope);
        overlay
    };
    let own = added(Name::Own, scope(S::COPY, &[copy_read()], &[]));
    assert_eq!((visible(&own), own.rest.is_none()), (vec![usages(&[copy_read()])], true));
    // Through whatever resource, and more through its own.
    let any = added(Name::Own, scope(S::COPY, &[copy_read()], &[copy_read()]));
    assert!(any.visible.is_empty() && any.elsewhere().len() == 1 && any.elsewhere()[0].is_any);
    let both = added(Name::Own, scope(S::COPY, &[copy_read()], &[sampled()]));
    assert_eq!(visible(&both), [usages(&[copy_read(), sampled()])]);
    assert_eq!(both.elsewhere()[0].visible.usages, usages(&[sampled()]));
    let alias = added(ALIAS, scope(S::COPY, &[copy_read()], &[sampled()]));
    let elsewhere: Vec<_> = alias.elsewhere().iter().map(|it| (it.visible.usages, it.at, it.is_any)).collect();
    let at = Some((8, 16));
    let wanted = [(usages(&[copy_read(), sampled()]), at, false), (usages(&[sampled()]), at, true)];
    assert_eq!((alias.visible.len(), elsewhere), (0, wanted.to_vec()));
    assert_eq!(alias.cuts().collect::<Vec<_>>(), [8, 16, 8, 16]);
    let nothing = added(Name::Own, scope(S::COPY, &[], &[]));
    assert!(nothing.visible.is_empty() && nothing.rest.is_none() && nothing.points.len() == 1);
    // To the host: by its own name.
    let to_host = |it: &Overlay| it.rest.as_ref().map_or(0, |it| it.to_host.len());
    assert_eq!(to_host(&added(Name::Own, scope(S::HOST, &[host_read()], &[]))), 1);
    assert_eq!(to_host(&added(ALIAS, scope(S::HOST, &[host_read()], &[]))), 0);
    assert_eq!(to_host(&both), 0);
}

#[test]
fn what_is_said_twice_is_kept_once() {
    let clock = Clock::default();
    let mut overlay = Overlay::default();
    overlay.add(&now(&clock, 10), &scope(S::COPY, &[copy_read()], &[]));
    overlay.add(&now(&clock, 20), &scope(S::COPY, &[sampled()], &[]));
    assert_eq!(visible(&overlay), [usages(&[copy_read(), sampled()])]);
    overlay.add(&Now { queue: 1, ..now(&clock, 30) }, &scope(S::COPY, &[sampled()], &[]));
    assert_eq!(overlay.visible.len(), 2);
    let mut elsewhere = Overlay::default();
    for (usage, name) in [(copy_read(), ALIAS), (sampled(), ALIAS), (sampled(), Name::Alias { start: 8, end: 12 })] {
        elsewhere.add(&Now { name, ..now(&clock, 10) }, &scope(S::COPY, &[usage], &[]));
    }
    let found: Vec<_> = elsewhere.elsewhere().iter().map(|it| (it.visible.usages, it.at)).collect();
    let all = usages(&[copy_read(), sampled()]);
    assert_eq!(found, [(all, Some((8, 16))), (usages(&[sampled()]), Some((8, 12)))]);
}

/// Of each stage the earliest point.
#[test]
fn a_stage_keeps_its_first_point() {
    let clock = Clock::default();
    let mut overlay = Overlay::default();
    let both = S(S::COPY.0 | S::COMPUTE_SHADER.0);
    overlay.add_itself(&now(&clock, 5));
    overlay.add(&now(&clock, 10), &scope(S::COPY, &[], &[]));
    overlay.add(&now(&clock, 20), &scope(S::COPY, &[], &[]));
    overlay.add(&now(&clock, 30), &scope(both, &[], &[]));
    overlay.add(&now(&clock, 40), &scope(both, &[], &[]));
    overlay.add(&Now { queue: 1, ..now(&clock, 50) }, &scope(S::COPY, &[], &[]));
    overlay.add(&Now { from: 55, ..now(&clock, 60) }, &scope(S::COPY, &[], &[]));
    // The second scope of a layout transition before a subpass begins with the subpass.
    overlay.add(&Now { from: 75, ..now(&clock, 70) }, &scope(S::COPY, &[], &[]));
    overlay.add(&Now { from: 75, ..now(&clock, 80) }, &scope(S::COPY, &[], &[]));
    let points: Vec<_> = overlay.points.iter().map(|it| (it.queue, it.from, it.tag, it.stages)).collect();
    let copy = stages(S::COPY);
    let itself = Stages(1 << TRANSITION.0);
    let wanted = [
        (0, 0, 5, itself),
        (0, 0, 10, copy),
        (0, 0, 30, stages(S::COMPUTE_SHADER)),
        (1, 0, 50, copy),
        (0, 55, 60, copy),
        (0, 75, 76, copy),
    ];
    assert_eq!(points, wanted);
    let is_open: Vec<bool> = overlay.points.iter().map(Point::is_open).collect();
    assert_eq!(is_open, [false, true, true, true, false, false]);
    // What the write itself is before says nothing of what comes after layout transitions by a barrier.
    let mut overlay = Overlay::default();
    overlay.add_itself(&now(&clock, 5));
    overlay.add(&now(&clock, 10), &Expanded { dst: itself, ..Expanded::default() });
    assert_eq!(overlay.points.len(), 2);
}

#[test]
fn names_move_with_their_addresses() {
    let clock = Clock::default();
    let mut overlay = Overlay::default();
    for (start, end) in [(105, 110), (100, 120), (99, 110), (110, 121)] {
        overlay.add(&Now { name: Name::Alias { start, end }, ..now(&clock, 10) }, &scope(S::COPY, &[sampled()], &[]));
    }
    overlay.add(&now(&clock, 10), &scope(S::COPY, &[sampled()], &[sampled()]));
    overlay.move_names(&(100..120), &[200, 300]);
    let at: Vec<_> = overlay.elsewhere().iter().map(|it| it.at).collect();
    let wanted = [(99, 110), (110, 121), (0, 0), (205, 210), (305, 310), (200, 220), (300, 320)];
    assert_eq!(at, wanted.map(|it| Some(it).filter(|it| it.1 != 0)));
}

#[test]
fn to_whom_it_is_visible() {
    let clock = Clock::default();
    let mut overlay = Overlay::default();
    overlay.add(&now(&clock, 10), &scope(S::COPY, &[sampled()], &[]));
    assert!(overlay.is_visible(&now(&clock, 20), sampled()) && !overlay.is_visible(&now(&clock, 20), copy_read()));
    assert!(!overlay.is_visible(&Now { queue: 1, ..now(&clock, 20) }, sampled()));
    let mut elsewhere = Overlay::default();
    elsewhere.add(&Now { name: ALIAS, ..now(&clock, 10) }, &scope(S::COPY, &[sampled()], &[]));
    let sees =
        |start, end| elsewhere.is_visible(&Now { name: Name::Alias { start, end }, ..now(&clock, 20) }, sampled());
    assert!(sees(8, 16) && sees(9, 15) && !sees(7, 16) && !sees(8, 17) && !sees(7, 17));
    assert!(!elsewhere.is_visible(&now(&clock, 20), sampled()));
    // In a subpass, until that ends.
    let mut inside = Overlay::default();
    inside.add(&Now { from: 5, ..now(&clock, 10) }, &scope(S::COPY, &[sampled()], &[]));
    assert!(inside.is_visible(&Now { from: 5, ..now(&clock, 20) }, sampled()));
    assert!(!inside.is_visible(&Now { from: 15, ..now(&clock, 20) }, sampled()));
}

/// The host must know of the queue's work.
#[test]
fn the_host_sees_what_it_knows_of() {
    let empty = Clock::default();
    let mut overlay = Overlay::default();
    overlay.add(&now(&empty, 10), &scope(S::HOST, &[host_read()], &[]));
    let host_write = usage(S::HOST, A::HOST_WRITE);
    for (known, is_seen) in [(9, false), (10, true), (11, true)] {
        let mut clock = Clock::default();
        clock.batches.raise(0, known);
        let now = Now { queue: 1, ..now(&clock, 20) };
        assert_eq!(overlay.is_visible(&now, host_read()), is_seen);
        assert!(!overlay.is_visible(&now, host_write));
    }
    let mut clock = Clock::default();
    clock.batches.raise(1, 99);
    assert!(!overlay.is_visible(&Now { queue: 1, ..now(&clock, 20) }, host_read()));
    let to_host = |it: &Overlay| {
        let all = it.rest.as_ref().map_or(&[][..], |it| &it.to_host);
        all.iter().map(|it| (it.queue, it.tag, it.usages)).collect::<Vec<_>>()
    };
    // Whoever knows of a later one knows of the earlier.
    overlay.add(&now(&empty, 20), &scope(S::HOST, &[host_read()], &[]));
    assert_eq!(to_host(&overlay), [(0, 10, usages(&[host_read()]))]);
    overlay.add(&now(&empty, 30), &scope(S::HOST, &[host_read(), host_write], &[]));
    overlay.add(&Now { queue: 1, ..now(&empty, 40) }, &scope(S::HOST, &[host_read()], &[]));
    overlay.add(&now(&empty, 5), &scope(S::HOST, &[host_read()], &[]));
    let wanted = [(0, 10, host_read()), (0, 30, host_write), (1, 40, host_read()), (0, 5, host_read())];
    assert_eq!(to_host(&overlay), wanted.map(|it| (it.0, it.1, usages(&[it.2]))));
}

#[test]
fn stages_that_it_is_available_to() {
    let clock = Clock::default();
    let mut overlay = Overlay::default();
    overlay.add(&now(&clock, 10), &scope(S::COPY, &[], &[]));
    let is_available = |overlay: &Overlay, now: &Now<'_>, own: S| overlay.is_available(now, stage(own));
    assert!(is_available(&overlay, &now(&clock, 20), S::COPY));
    assert!(!is_available(&overlay, &now(&clock, 20), S::COMPUTE_SHADER));
    assert!(!is_available(&overlay, &Now { queue: 1, ..now(&clock, 20) }, S::COPY));
    let mut chained = Clock::default();
    let carry = chained.first_scope(0, 15, stages(S::COPY), Usages::default());
    chained.second_scope(&carry, stages(S::COMPUTE_SHADER), usages(&[sampled()]));
    assert!(is_available(&overlay, &now(&chained, 20), S::COMPUTE_SHADER));
    assert!(overlay.is_visible(&now(&chained, 20), sampled()));
    let mut later = Overlay::default();
    later.add(&now(&clock, 16), &scope(S::COPY, &[], &[]));
    assert!(!is_available(&later, &now(&chained, 20), S::COMPUTE_SHADER));
    // A layout transition is available to what comes after transitions, and to no stage by itself.
    let mut itself = Overlay::default();
    itself.add_itself(&now(&clock, 10));
    assert!(!itself.is_available(&now(&clock, 20), TRANSITION));
    let mut after = Clock::default();
    let carry = after.first_scope(0, 15, Stages(1 << TRANSITION.0), Usages::default());
    after.second_scope(&carry, stages(S::COPY), Usages::default());
    assert!(is_available(&itself, &now(&after, 20), S::COPY));
}

#[test]
fn first_scopes_that_it_is_in() {
    let clock = Clock::default();
    let mut overlay = Overlay::default();
    overlay.add(&now(&clock, 10), &scope(S::COPY, &[], &[]));
    let first =
        |src: S, until: Tag, carry: Carry| First { carry, parts: smallvec![(stages(src), until)], ..First::default() };
    let plain = |src, until| first(src, until, Carry::default());
    assert!(overlay.reaches(&now(&clock, 20), &plain(S::COPY, 10)));
    assert!(!overlay.reaches(&now(&clock, 20), &plain(S::COPY, 9)));
    assert!(!overlay.reaches(&now(&clock, 20), &plain(S::COMPUTE_SHADER, 15)));
    assert!(!overlay.reaches(&Now { queue: 1, ..now(&clock, 20) }, &plain(S::COPY, 15)));
    // By a chain, as far as it had happened by then.
    let carry = || Clock::default().first_scope(0, 12, stages(S::COPY), Usages::default());
    assert!(overlay.reaches(&now(&clock, 20), &first(S::COMPUTE_SHADER, 15, carry())));
    assert!(!overlay.reaches(&now(&clock, 20), &first(S::COMPUTE_SHADER, 9, carry())));
    let mut itself = Overlay::default();
    itself.add_itself(&now(&clock, 10));
    let transition = Stages(1 << TRANSITION.0);
    let own = First { parts: smallvec![(transition, 15)], ..First::default() };
    assert!(!itself.reaches(&now(&clock, 20), &own));
    let carry = Clock::default().first_scope(0, 12, transition, Usages::default());
    assert!(itself.reaches(&now(&clock, 20), &First { carry, parts: smallvec![(transition, 15)], ..First::default() }));
}

/// Whoever forgets stretches asks for the points inside of subpasses, and for layout transitions; the others are in tables.
#[test]
fn points_of_subpasses_are_asked_for() {
    let (clock, mut overlay) = (Clock::default(), Overlay::default());
    overlay.add(&now(&clock, 10), &scope(S::COPY, &[copy_read()], &[]));
    overlay.add(&Now { from: 12, ..now(&clock, 20) }, &scope(S::COPY, &[copy_read()], &[]));
    overlay.add_itself(&now(&clock, 30));
    assert_eq!(overlay.asks().map(|it| it.tag).collect::<Vec<_>>(), [20, 30]);
}
