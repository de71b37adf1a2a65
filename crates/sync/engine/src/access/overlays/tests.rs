//! What an overlay keeps of a dependency, and what follows from it.

use lavascope_abi::{AccessFlags2 as A, PipelineStageFlags2 as S};
use smallvec::smallvec;

use super::*;
use crate::access::usages::{SYNC_TABLES, TRANSITION};
use crate::dependency::clocks::{FirstScope, QueueClock};
use crate::rules::Rules;

fn usage(stage: S, access: A) -> UsageIndex {
    SYNC_TABLES.usage(stage.0, access.0).expect("a usage")
}

fn copy_read() -> UsageIndex {
    usage(S::COPY, A::TRANSFER_READ)
}

fn sampled() -> UsageIndex {
    usage(S::FRAGMENT_SHADER, A::SHADER_SAMPLED_READ)
}

fn host_read() -> UsageIndex {
    usage(S::HOST, A::HOST_READ)
}

fn usages(all: &[UsageIndex]) -> UsageSet {
    let mut found = UsageSet::default();
    all.iter().for_each(|it| found.add(*it));
    found
}

fn stages(bits: S) -> StageSet {
    SYNC_TABLES.stages_of_bits(bits.0)
}

fn stage(bits: S) -> StageIndex {
    stages(bits).iter().next().expect("a stage")
}

fn context(clock: &QueueClock, tag: Tag) -> AccessContext<'_> {
    let (rules, identity, name) = (Rules::CONTRACT, ResourceIdentity::default(), Addressing::Own);
    AccessContext {
        rules,
        clock,
        queue: 0,
        tag,
        instance_begin: None,
        pass_begin: Tag::MAX,
        subpass_begin: 0,
        unordered_subpasses: &[],
        rare_order: None,
        identity,
        addressing: name,
    }
}

fn scope(dst: S, own: &[UsageIndex], everywhere: &[UsageIndex]) -> ExpandedScope {
    let (dst_usages, dst_everywhere) = (usages(own), usages(everywhere));
    ExpandedScope { dst: stages(dst), dst_usages, dst_global_usages: dst_everywhere, ..ExpandedScope::default() }
}

fn visible(overlay: &Overlay) -> Vec<UsageSet> {
    overlay.visible.iter().map(|it| it.usages).collect()
}

const ALIAS: Addressing = Addressing::Alias { start: 8, end: 16 };

#[test]
fn what_is_visible_is_kept_by_its_name() {
    let clock = QueueClock::default();
    let added = |name: Addressing, scope: ExpandedScope| {
        let mut overlay = Overlay::default();
        overlay.add(&AccessContext { addressing: name, ..context(&clock, 10) }, &scope);
        overlay
    };
    let own = added(Addressing::Own, scope(S::COPY, &[copy_read()], &[]));
    assert_eq!((visible(&own), own.rare.is_none()), (vec![usages(&[copy_read()])], true));
    // Through whatever resource, and more through its own.
    let any = added(Addressing::Own, scope(S::COPY, &[copy_read()], &[copy_read()]));
    assert!(any.visible.is_empty() && any.aliases().len() == 1 && any.aliases()[0].is_any_resource);
    let both = added(Addressing::Own, scope(S::COPY, &[copy_read()], &[sampled()]));
    assert_eq!(visible(&both), [usages(&[copy_read(), sampled()])]);
    assert_eq!(both.aliases()[0].visible.usages, usages(&[sampled()]));
    let alias = added(ALIAS, scope(S::COPY, &[copy_read()], &[sampled()]));
    let elsewhere: Vec<_> =
        alias.aliases().iter().map(|it| (it.visible.usages, it.addresses, it.is_any_resource)).collect();
    let at = Some((8, 16));
    let wanted = [(usages(&[copy_read(), sampled()]), at, false), (usages(&[sampled()]), at, true)];
    assert_eq!((alias.visible.len(), elsewhere), (0, wanted.to_vec()));
    assert_eq!(alias.alias_boundaries().collect::<Vec<_>>(), [8, 16, 8, 16]);
    let nothing = added(Addressing::Own, scope(S::COPY, &[], &[]));
    assert!(nothing.visible.is_empty() && nothing.rare.is_none() && nothing.points.len() == 1);
    // To the host: by its own name.
    let to_host = |it: &Overlay| it.rare.as_ref().map_or(0, |it| it.to_host.len());
    assert_eq!(to_host(&added(Addressing::Own, scope(S::HOST, &[host_read()], &[]))), 1);
    assert_eq!(to_host(&added(ALIAS, scope(S::HOST, &[host_read()], &[]))), 0);
    assert_eq!(to_host(&both), 0);
}

#[test]
fn what_is_said_twice_is_kept_once() {
    let clock = QueueClock::default();
    let mut overlay = Overlay::default();
    overlay.add(&context(&clock, 10), &scope(S::COPY, &[copy_read()], &[]));
    overlay.add(&context(&clock, 20), &scope(S::COPY, &[sampled()], &[]));
    assert_eq!(visible(&overlay), [usages(&[copy_read(), sampled()])]);
    overlay.add(&AccessContext { queue: 1, ..context(&clock, 30) }, &scope(S::COPY, &[sampled()], &[]));
    assert_eq!(overlay.visible.len(), 2);
    let mut elsewhere = Overlay::default();
    for (usage, name) in
        [(copy_read(), ALIAS), (sampled(), ALIAS), (sampled(), Addressing::Alias { start: 8, end: 12 })]
    {
        elsewhere.add(&AccessContext { addressing: name, ..context(&clock, 10) }, &scope(S::COPY, &[usage], &[]));
    }
    let found: Vec<_> = elsewhere.aliases().iter().map(|it| (it.visible.usages, it.addresses)).collect();
    let all = usages(&[copy_read(), sampled()]);
    assert_eq!(found, [(all, Some((8, 16))), (usages(&[sampled()]), Some((8, 12)))]);
}

/// Of each stage the earliest point.
#[test]
fn a_stage_keeps_its_first_point() {
    let clock = QueueClock::default();
    let mut overlay = Overlay::default();
    let both = S(S::COPY.0 | S::COMPUTE_SHADER.0);
    overlay.add_operation_point(&context(&clock, 5), TRANSITION);
    overlay.add(&context(&clock, 10), &scope(S::COPY, &[], &[]));
    overlay.add(&context(&clock, 20), &scope(S::COPY, &[], &[]));
    overlay.add(&context(&clock, 30), &scope(both, &[], &[]));
    overlay.add(&context(&clock, 40), &scope(both, &[], &[]));
    overlay.add(&AccessContext { queue: 1, ..context(&clock, 50) }, &scope(S::COPY, &[], &[]));
    overlay.add(&AccessContext { subpass_begin: 55, ..context(&clock, 60) }, &scope(S::COPY, &[], &[]));
    // The second scope of a layout transition before a subpass begins with the subpass.
    overlay.add(&AccessContext { subpass_begin: 75, ..context(&clock, 70) }, &scope(S::COPY, &[], &[]));
    overlay.add(&AccessContext { subpass_begin: 75, ..context(&clock, 80) }, &scope(S::COPY, &[], &[]));
    let points: Vec<_> = overlay.points.iter().map(|it| (it.queue, it.subpass_begin, it.tag, it.stages)).collect();
    let copy = stages(S::COPY);
    let itself = StageSet(1 << TRANSITION.0);
    let wanted = [
        (0, 0, 5, itself),
        (0, 0, 10, copy),
        (0, 0, 30, stages(S::COMPUTE_SHADER)),
        (1, 0, 50, copy),
        (0, 55, 60, copy),
        (0, 75, 76, copy),
    ];
    assert_eq!(points, wanted);
    let is_open: Vec<bool> = overlay.points.iter().map(AvailabilityPoint::is_unbounded).collect();
    assert_eq!(is_open, [false, true, true, true, false, false]);
    // What the write itself is before says nothing of what comes after layout transitions by a barrier.
    let mut overlay = Overlay::default();
    overlay.add_operation_point(&context(&clock, 5), TRANSITION);
    overlay.add(&context(&clock, 10), &ExpandedScope { dst: itself, ..ExpandedScope::default() });
    assert_eq!(overlay.points.len(), 2);
}

#[test]
fn names_move_with_their_addresses() {
    let clock = QueueClock::default();
    let mut overlay = Overlay::default();
    for (start, end) in [(105, 110), (100, 120), (99, 110), (110, 121)] {
        overlay.add(
            &AccessContext { addressing: Addressing::Alias { start, end }, ..context(&clock, 10) },
            &scope(S::COPY, &[sampled()], &[]),
        );
    }
    overlay.add(&context(&clock, 10), &scope(S::COPY, &[sampled()], &[sampled()]));
    overlay.move_alias_addresses(&(100..120), &[200, 300]);
    let at: Vec<_> = overlay.aliases().iter().map(|it| it.addresses).collect();
    let wanted = [(99, 110), (110, 121), (0, 0), (205, 210), (305, 310), (200, 220), (300, 320)];
    assert_eq!(at, wanted.map(|it| Some(it).filter(|it| it.1 != 0)));
}

#[test]
fn to_whom_it_is_visible() {
    let clock = QueueClock::default();
    let mut overlay = Overlay::default();
    overlay.add(&context(&clock, 10), &scope(S::COPY, &[sampled()], &[]));
    assert!(
        overlay.is_visible(&context(&clock, 20), sampled()) && !overlay.is_visible(&context(&clock, 20), copy_read())
    );
    assert!(!overlay.is_visible(&AccessContext { queue: 1, ..context(&clock, 20) }, sampled()));
    let mut elsewhere = Overlay::default();
    elsewhere.add(&AccessContext { addressing: ALIAS, ..context(&clock, 10) }, &scope(S::COPY, &[sampled()], &[]));
    let sees = |start, end| {
        elsewhere.is_visible(
            &AccessContext { addressing: Addressing::Alias { start, end }, ..context(&clock, 20) },
            sampled(),
        )
    };
    assert!(sees(8, 16) && sees(9, 15) && !sees(7, 16) && !sees(8, 17) && !sees(7, 17));
    assert!(!elsewhere.is_visible(&context(&clock, 20), sampled()));
    // In a subpass, until that ends.
    let mut inside = Overlay::default();
    inside.add(&AccessContext { subpass_begin: 5, ..context(&clock, 10) }, &scope(S::COPY, &[sampled()], &[]));
    assert!(inside.is_visible(&AccessContext { subpass_begin: 5, ..context(&clock, 20) }, sampled()));
    assert!(!inside.is_visible(&AccessContext { subpass_begin: 15, ..context(&clock, 20) }, sampled()));
}

/// The host must know of the queue's work.
#[test]
fn the_host_sees_what_it_knows_of() {
    let empty = QueueClock::default();
    let mut overlay = Overlay::default();
    overlay.add(&context(&empty, 10), &scope(S::HOST, &[host_read()], &[]));
    let host_write = usage(S::HOST, A::HOST_WRITE);
    for (batch, is_seen) in [(9, false), (10, true), (11, true)] {
        let mut clock = QueueClock::default();
        clock.batches.raise(0, batch);
        let context = AccessContext { queue: 1, ..context(&clock, 20) };
        assert_eq!(overlay.is_visible(&context, host_read()), is_seen);
        assert!(!overlay.is_visible(&context, host_write));
    }
    let mut clock = QueueClock::default();
    clock.batches.raise(1, 99);
    assert!(!overlay.is_visible(&AccessContext { queue: 1, ..context(&clock, 20) }, host_read()));
    let to_host = |item: &Overlay| {
        let all = item.rare.as_ref().map_or(&[][..], |it| &it.to_host);
        all.iter().map(|it| (it.queue, it.tag, it.usages)).collect::<Vec<_>>()
    };
    // Whoever knows of a later one knows of the earlier.
    overlay.add(&context(&empty, 20), &scope(S::HOST, &[host_read()], &[]));
    assert_eq!(to_host(&overlay), [(0, 10, usages(&[host_read()]))]);
    overlay.add(&context(&empty, 30), &scope(S::HOST, &[host_read(), host_write], &[]));
    overlay.add(&AccessContext { queue: 1, ..context(&empty, 40) }, &scope(S::HOST, &[host_read()], &[]));
    overlay.add(&context(&empty, 5), &scope(S::HOST, &[host_read()], &[]));
    let wanted = [(0, 10, host_read()), (0, 30, host_write), (1, 40, host_read()), (0, 5, host_read())];
    assert_eq!(to_host(&overlay), wanted.map(|it| (it.0, it.1, usages(&[it.2]))));
}

#[test]
fn stages_that_it_is_available_to() {
    let clock = QueueClock::default();
    let mut overlay = Overlay::default();
    overlay.add(&context(&clock, 10), &scope(S::COPY, &[], &[]));
    let is_available =
        |overlay: &Overlay, context: &AccessContext<'_>, own: S| overlay.is_available(context, stage(own));
    assert!(is_available(&overlay, &context(&clock, 20), S::COPY));
    assert!(!is_available(&overlay, &context(&clock, 20), S::COMPUTE_SHADER));
    assert!(!is_available(&overlay, &AccessContext { queue: 1, ..context(&clock, 20) }, S::COPY));
    let mut chained = QueueClock::default();
    let first_scope = chained.first_scope(0, 15, stages(S::COPY), UsageSet::default());
    chained.apply_second_scope(&first_scope, stages(S::COMPUTE_SHADER), usages(&[sampled()]));
    assert!(is_available(&overlay, &context(&chained, 20), S::COMPUTE_SHADER));
    assert!(overlay.is_visible(&context(&chained, 20), sampled()));
    let mut later = Overlay::default();
    later.add(&context(&clock, 16), &scope(S::COPY, &[], &[]));
    assert!(!is_available(&later, &context(&chained, 20), S::COMPUTE_SHADER));
    // A layout transition is available to what comes after transitions, and to no stage by itself.
    let mut itself = Overlay::default();
    itself.add_operation_point(&context(&clock, 10), TRANSITION);
    assert!(!itself.is_available(&context(&clock, 20), TRANSITION));
    let mut after = QueueClock::default();
    let first_scope = after.first_scope(0, 15, StageSet(1 << TRANSITION.0), UsageSet::default());
    after.apply_second_scope(&first_scope, stages(S::COPY), UsageSet::default());
    assert!(is_available(&itself, &context(&after, 20), S::COPY));
}

#[test]
fn first_scopes_that_it_is_in() {
    let clock = QueueClock::default();
    let mut overlay = Overlay::default();
    overlay.add(&context(&clock, 10), &scope(S::COPY, &[], &[]));
    let first = |src: S, until: Tag, first_scope: FirstScope| ResourceFirstScope {
        global: first_scope,
        stage_limits: smallvec![(stages(src), until)],
        ..ResourceFirstScope::default()
    };
    let plain = |src, until| first(src, until, FirstScope::default());
    assert!(overlay.reaches(&context(&clock, 20), &plain(S::COPY, 10)));
    assert!(!overlay.reaches(&context(&clock, 20), &plain(S::COPY, 9)));
    assert!(!overlay.reaches(&context(&clock, 20), &plain(S::COMPUTE_SHADER, 15)));
    assert!(!overlay.reaches(&AccessContext { queue: 1, ..context(&clock, 20) }, &plain(S::COPY, 15)));
    // By a chain, as far as it had happened by then.
    let first_scope = || QueueClock::default().first_scope(0, 12, stages(S::COPY), UsageSet::default());
    assert!(overlay.reaches(&context(&clock, 20), &first(S::COMPUTE_SHADER, 15, first_scope())));
    assert!(!overlay.reaches(&context(&clock, 20), &first(S::COMPUTE_SHADER, 9, first_scope())));
    let mut itself = Overlay::default();
    itself.add_operation_point(&context(&clock, 10), TRANSITION);
    let transition = StageSet(1 << TRANSITION.0);
    let own = ResourceFirstScope { stage_limits: smallvec![(transition, 15)], ..ResourceFirstScope::default() };
    assert!(!itself.reaches(&context(&clock, 20), &own));
    let first_scope = QueueClock::default().first_scope(0, 12, transition, UsageSet::default());
    assert!(itself.reaches(
        &context(&clock, 20),
        &ResourceFirstScope {
            global: first_scope,
            stage_limits: smallvec![(transition, 15)],
            ..ResourceFirstScope::default()
        }
    ));
}

/// Whoever forgets intervals asks for the points inside of subpasses, and for layout transitions; the others are in tables.
#[test]
fn points_of_subpasses_are_asked_for() {
    let (clock, mut overlay) = (QueueClock::default(), Overlay::default());
    overlay.add(&context(&clock, 10), &scope(S::COPY, &[copy_read()], &[]));
    overlay.add(&AccessContext { subpass_begin: 12, ..context(&clock, 20) }, &scope(S::COPY, &[copy_read()], &[]));
    overlay.add_operation_point(&context(&clock, 30), TRANSITION);
    assert_eq!(overlay.clock_queries().map(|it| it.tag).collect::<Vec<_>>(), [20, 30]);
}
