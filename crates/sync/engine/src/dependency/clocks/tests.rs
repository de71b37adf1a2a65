//! What tables and clocks say, what they hand on, and that they keep nothing which says nothing.

use lavascope_abi::{AccessFlags2, PipelineStageFlags2};

use super::*;
use crate::dependency::subpass_intervals::ClockQuery;
use lavascope_test_support::TestRng;

fn stage(bit: PipelineStageFlags2) -> StageIndex {
    SYNC_TABLES.stages_of_bits(bit.0).iter().next().expect("a stage")
}

fn one(stage: StageIndex) -> StageSet {
    let mut stages = StageSet::default();
    stages.add(stage);
    stages
}

#[test]
fn execution_chains_through_stages() {
    let [copy, compute, fragment] =
        [PipelineStageFlags2::COPY, PipelineStageFlags2::COMPUTE_SHADER, PipelineStageFlags2::FRAGMENT_SHADER]
            .map(stage);
    let mut clock = QueueClock::default();
    let first_scope = clock.first_scope(0, 5, one(copy), UsageSet::default());
    clock.apply_second_scope(&first_scope, one(compute), UsageSet::default());
    let first_scope = clock.first_scope(0, 9, one(compute), UsageSet::default());
    clock.apply_second_scope(&first_scope, one(fragment), UsageSet::default());
    assert!(clock.has_happened(fragment, 0, copy, 5) && !clock.has_happened(fragment, 0, copy, 6));
    assert!(clock.has_happened(fragment, 0, compute, 9));
    assert!(!clock.has_happened(compute, 0, compute, 1));
}

#[test]
fn an_interval_covers_its_accesses_and_chains() {
    let [copy, compute, fragment] =
        [PipelineStageFlags2::COPY, PipelineStageFlags2::COMPUTE_SHADER, PipelineStageFlags2::FRAGMENT_SHADER]
            .map(stage);
    let mut clock = QueueClock::default();
    let interval = SubpassInterval {
        queue: 0,
        begin: 4,
        end: 8,
        src: one(copy),
        src_usages: UsageSet::default(),
        dst: StageSet::default(),
        dst_usages: UsageSet::default(),
    };
    let first_scope = clock.first_scope_of_interval(interval);
    clock.apply_second_scope(&first_scope, one(compute), UsageSet::default());
    let first_scope = clock.first_scope(0, 12, one(compute), UsageSet::default());
    clock.apply_second_scope(&first_scope, one(fragment), UsageSet::default());
    for here in [compute, fragment] {
        assert!(clock.has_happened(here, 0, copy, 6) && clock.has_happened(here, 0, copy, 8));
        assert!(!clock.has_happened(here, 0, copy, 4) && !clock.has_happened(here, 0, copy, 10));
    }
}

#[test]
fn keys_with_equal_rows_share_one() {
    let mut table: ClockTable<StageSet> = ClockTable::default();
    let cell = |stage| lane(0, StageIndex(stage));
    let mut row = TagRow::default();
    row.raise(0, 1 << 3, 7);
    table.raise(StageSet(0b0011), &row);
    table.raise(StageSet(0b1100), &row);
    assert_eq!(table.classes.len(), 1);
    row.raise(0, 1 << 4, 9);
    table.raise(StageSet(0b0001), &row);
    assert_eq!(
        (table.classes.len(), table.get(0, cell(4)), table.get(1, cell(4)), table.get(3, cell(3))),
        (2, 9, 0, 7)
    );
    table.raise(StageSet(0b1111), &row);
    assert_eq!((table.classes.len(), table.get(3, cell(4))), (1, 9));
}

fn lanes(cells: &[(u8, u8, Tag)]) -> TagRow {
    let mut row = TagRow::default();
    cells.iter().for_each(|(queue, column, tag)| row.raise(*queue, 1 << column, *tag));
    row
}

fn usages(all: &[UsageIndex]) -> UsageSet {
    let mut found = UsageSet::default();
    all.iter().for_each(|it| found.add(*it));
    found
}

/// Of a table, by key: against one row for each key.
#[test]
fn a_table_is_a_row_for_each_key() {
    const KEYS: usize = 6;
    let mut dice = TestRng::new(23);
    for _ in 0..300 {
        let (mut table, mut rows): (ClockTable<StageSet>, _) = (ClockTable::default(), vec![TagRow::default(); KEYS]);
        for _ in 0..1 + dice.below(12) {
            let (keys, by) =
                (dice.below(1 << KEYS), lanes(&[(dice.below(2) as u8, dice.below(3) as u8, dice.below(4))]));
            table.raise(StageSet(keys), &by);
            (0..KEYS).filter(|it| keys >> it & 1 != 0).for_each(|it| rows[it].merge(&by));
            check_table(&table, &rows);
        }
        let mut other: ClockTable<StageSet> = ClockTable::default();
        let (keys, by) = (dice.below(1 << KEYS), lanes(&[(0, 0, 3), (0, 1, 3), (1, 0, 3), (0, 2, dice.below(4))]));
        other.raise(StageSet(keys), &by);
        let joined = (0..KEYS).filter(|it| keys >> it & 1 != 0).fold(TagRow::default(), |mut all, value| {
            all.merge(&rows[value]);
            all
        });
        assert_eq!(table.joined_row(StageSet(keys)), joined);
        // A class goes if all of its keys say no more than the other table does.
        let is_covered = |class: &RowClass<StageSet>| class.keys.0 & !keys == 0 && by.covers(&class.row);
        for class in table.classes.iter().filter(|it| is_covered(it)) {
            class.keys.each(|it| rows[it] = TagRow::default());
        }
        table.forget_covered(&other);
        check_table(&table, &rows);
        let mut both = other.clone();
        both.raise_each(&table);
        (0..KEYS).filter(|it| keys >> it & 1 != 0).for_each(|it| rows[it].merge(&by));
        check_table(&both, &rows);
        both.clear();
        check_table(&both, &vec![TagRow::default(); KEYS]);
    }
}

/// Keys of one class have one row, which no other class has.
fn check_table(table: &ClockTable<StageSet>, rows: &[TagRow]) {
    for (key, row) in rows.iter().enumerate() {
        let own = table.classes.iter().find(|it| it.keys.has(StageIndex(key as u8))).map(|it| &it.row);
        assert_eq!(own.cloned().unwrap_or_default(), *row);
        let class = table.class_of_key[key];
        assert!(if row.is_zero() { class == NO_CLASS } else { table.classes[usize::from(class)].row == *row });
        for column in 0..3 {
            assert_eq!(table.get(key, lane(1, StageIndex(column))), row.get(lane(1, StageIndex(column))));
        }
    }
    let different: Vec<&TagRow> = rows.iter().filter(|it| !it.is_zero()).collect();
    let count = (0..different.len()).filter(|it| !different[..*it].contains(&different[*it])).count();
    assert_eq!(table.classes.len(), count, "one class for each row");
}

const COPY: PipelineStageFlags2 = PipelineStageFlags2::COPY;
const COMPUTE: PipelineStageFlags2 = PipelineStageFlags2::COMPUTE_SHADER;
const FRAGMENT: PipelineStageFlags2 = PipelineStageFlags2::FRAGMENT_SHADER;

fn copy_write() -> UsageIndex {
    SYNC_TABLES.usage(COPY.0, AccessFlags2::TRANSFER_WRITE.0).expect("a usage")
}

fn storage_write() -> UsageIndex {
    SYNC_TABLES.usage(COMPUTE.0, AccessFlags2::SHADER_STORAGE_WRITE.0).expect("a usage")
}

fn sampled_read() -> UsageIndex {
    SYNC_TABLES.usage(FRAGMENT.0, AccessFlags2::SHADER_SAMPLED_READ.0).expect("a usage")
}

/// What a queue did by copies, from the fifth tag to the eighth.
fn copies() -> SubpassInterval {
    SubpassInterval {
        queue: 1,
        begin: 4,
        end: 8,
        src: one(stage(COPY)),
        src_usages: usages(&[copy_write()]),
        dst: StageSet::default(),
        dst_usages: UsageSet::default(),
    }
}

#[test]
fn an_interval_has_one_queue_and_its_tags() {
    let has = |queue, tag| copies().contains(queue, tag);
    assert!(has(1, 5) && has(1, 8) && !has(1, 4) && !has(1, 9) && !has(0, 5));
    assert!(copies().has_same_source(&SubpassInterval { dst: one(stage(COMPUTE)), ..copies() }));
    assert!(!copies().has_same_source(&SubpassInterval { begin: 5, ..copies() }));
}

#[test]
fn what_a_scope_has() {
    let mut first_scope = FirstScope {
        points: lanes(&[(1, 3, 7)]),
        intervals: SubpassIntervals::of(&[copies()]),
        ..FirstScope::default()
    };
    first_scope.happened.raise(1, 1 << 2, 9);
    first_scope.available.raise(1, SYNC_TABLES.write_columns(usages(&[storage_write()])), 9);
    let has_point = |stage, tag| first_scope.has_point(1, StageIndex(stage), tag);
    assert!(has_point(2, 9) && !has_point(2, 10) && has_point(3, 7) && !has_point(3, 8) && !has_point(4, 1));
    assert!(
        first_scope.has_access(1, StageIndex(2), 9)
            && !first_scope.has_access(1, StageIndex(2), 10)
            && !first_scope.has_access(1, StageIndex(3), 7)
    );
    assert!(
        first_scope.has_access(1, stage(COPY), 8)
            && !first_scope.has_access(1, stage(COPY), 9)
            && !first_scope.has_access(1, stage(COMPUTE), 8)
    );
    assert!(!first_scope.has_access(0, stage(COPY), 8));
    assert!(first_scope.has_available(1, storage_write(), 9) && !first_scope.has_available(1, storage_write(), 10));
    assert!(first_scope.has_available(1, copy_write(), 8) && !first_scope.has_available(1, copy_write(), 4));
    assert!(!first_scope.has_available(0, copy_write(), 8));
}

#[test]
fn a_scope_covers_what_says_no_more() {
    let interval = |at: Tag| SubpassInterval { begin: at * 10, end: at * 10 + 5, ..copies() };
    let all = FirstScope {
        happened: lanes(&[(0, 1, 5)]),
        available: lanes(&[(0, 1, 5)]),
        points: lanes(&[(0, 2, 7)]),
        intervals: SubpassIntervals::of(&[interval(1), interval(2)]),
    };
    assert!(all.covers(&all) && all.covers(&FirstScope::default()));
    assert!(all.covers(&FirstScope { happened: lanes(&[(0, 1, 4)]), ..FirstScope::default() }));
    assert!(!all.covers(&FirstScope { happened: lanes(&[(0, 1, 6)]), ..FirstScope::default() }));
    assert!(all.covers(&FirstScope { available: lanes(&[(0, 1, 5)]), ..FirstScope::default() }));
    assert!(!all.covers(&FirstScope { available: lanes(&[(0, 2, 5)]), ..FirstScope::default() }));
    // What happened is a point too.
    assert!(all.covers(&FirstScope { points: lanes(&[(0, 1, 5), (0, 2, 7)]), ..FirstScope::default() }));
    assert!(!all.covers(&FirstScope { points: lanes(&[(0, 1, 6)]), ..FirstScope::default() }));
    assert!(all.covers(&FirstScope { intervals: SubpassIntervals::of(&[interval(2)]), ..FirstScope::default() }));
    assert!(
        !all.covers(&FirstScope {
            intervals: SubpassIntervals::of(&[interval(2), interval(3)]),
            ..FirstScope::default()
        })
    );
    let mut raised = FirstScope::default();
    raised.merge(&all);
    raised.merge(&FirstScope { intervals: SubpassIntervals::of(&[interval(2), interval(3)]), ..FirstScope::default() });
    assert_eq!(raised.intervals, SubpassIntervals::of(&[interval(1), interval(2), interval(3)]));
    assert!(raised.covers(&all) && !all.covers(&raised));
}

#[test]
fn a_scope_forgets_what_it_says_otherwise() {
    let (copy, own) = (stage(COPY), copies());
    let columns = SYNC_TABLES.write_columns(own.src_usages);
    let left = |happened: Tag, available: Tag, own: SubpassInterval| {
        let mut first_scope = FirstScope { intervals: SubpassIntervals::of(&[own]), ..FirstScope::default() };
        first_scope.happened.raise(1, 1 << copy.0, happened);
        first_scope.available.raise(1, columns, available);
        first_scope.forget_covered();
        first_scope.intervals.len()
    };
    assert_eq!((left(8, 8, own), left(9, 9, own)), (0, 0));
    assert_eq!((left(7, 8, own), left(8, 7, own), left(7, 7, own)), (1, 1, 1));
    // Without writes nothing need be available; with others, those.
    assert_eq!((left(8, 0, SubpassInterval { src_usages: UsageSet::default(), ..own }), left(8, 0, own)), (0, 1));
    assert_eq!(left(8, 8, SubpassInterval { src_usages: usages(&[copy_write(), storage_write()]), ..own }), 1);
    assert_eq!(left(8, 8, SubpassInterval { src_usages: usages(&[storage_write()]), ..own }), 1);
    assert_eq!(left(8, 8, SubpassInterval { src: StageSet(own.src.0 | one(stage(COMPUTE)).0), ..own }), 1);
    assert_eq!(left(8, 8, SubpassInterval { queue: 0, ..own }), 1);
    let mut first_scope =
        FirstScope { happened: lanes(&[(0, 1, 5)]), points: lanes(&[(0, 1, 5)]), ..FirstScope::default() };
    first_scope.forget_covered();
    assert!(first_scope.points.is_zero());
    first_scope.points = lanes(&[(0, 1, 5), (0, 2, 1)]);
    first_scope.forget_covered();
    assert_eq!(first_scope.points, lanes(&[(0, 1, 5), (0, 2, 1)]));
}

#[test]
fn what_is_seen_by_usages() {
    let [one, two] = [copy_write(), storage_write()];
    let sight = |usage, visible, reached, points| UsageVisibility {
        usage,
        visible: lanes(&[(0, 1, visible)]),
        reached: lanes(&[(0, 1, reached)]),
        points: lanes(&[(0, 1, points)]),
    };
    let seen = |usage, visible: Tag, reached: Tag| VisibleWrites {
        rows: vec![sight(usage, visible, reached, 2)],
        intervals: SubpassIntervals::default(),
    };
    let mut all = seen(one, 5, 7);
    assert!(all.covers(&seen(one, 5, 7)) && all.covers(&seen(one, 0, 7)));
    let of_points = |usage, points| VisibleWrites {
        rows: vec![sight(usage, 0, 0, points)],
        intervals: SubpassIntervals::default(),
    };
    assert!(all.covers(&of_points(two, 0)) && all.covers(&of_points(one, 2)) && !all.covers(&of_points(one, 3)));
    assert!(!all.covers(&seen(one, 6, 7)) && !all.covers(&seen(one, 5, 8)) && !all.covers(&seen(one, 6, 8)));
    assert!(!all.covers(&seen(two, 1, 0)) && !all.covers(&seen(two, 0, 1)) && all.covers(&VisibleWrites::default()));
    all.merge(&seen(two, 3, 4));
    all.merge(&seen(one, 9, 1));
    assert_eq!(all.rows.len(), 2);
    assert!(all.covers(&seen(one, 9, 7)) && all.covers(&seen(two, 3, 4)) && !all.covers(&seen(two, 4, 4)));
    assert!(!all.covers(&of_points(two, 3)));
    all.merge(&of_points(two, 3));
    assert!(all.covers(&of_points(two, 3)));
}

/// A dependency of a subpass: what it reaches, and nothing else.
#[test]
fn an_interval_reaches_its_second_scope() {
    let [copy, compute, fragment] = [COPY, COMPUTE, FRAGMENT].map(stage);
    let mut clock = QueueClock::default();
    let first_scope = clock.first_scope_of_interval(copies());
    assert!(first_scope.has_point(1, copy, 8) && !first_scope.has_point(1, copy, 9));
    clock.apply_second_scope(&first_scope, one(compute), usages(&[sampled_read()]));
    assert_eq!(clock.intervals.len(), 1);
    assert!(clock.is_available(compute, 1, copy_write(), 8) && !clock.is_available(fragment, 1, copy_write(), 8));
    assert!(!clock.is_available(compute, 1, copy_write(), 9) && !clock.is_available(compute, 0, copy_write(), 8));
    assert!(!clock.is_available(compute, 1, storage_write(), 8));
    assert!(clock.has_happened(compute, 1, copy, 8) && !clock.has_happened(compute, 1, compute, 8));
    assert!(
        clock.is_visible(sampled_read(), 1, copy_write(), 8) && !clock.is_visible(copy_write(), 1, copy_write(), 8)
    );
    assert!(!clock.is_visible(sampled_read(), 1, storage_write(), 8));
    assert!(clock.is_reached_from_subpass(sampled_read(), 1, copy, 8));
    assert!(!clock.is_reached_from_subpass(sampled_read(), 1, compute, 8));
    assert!(!clock.is_reached_from_subpass(storage_write(), 1, copy, 8));
    assert!(!clock.is_reached_from_subpass(sampled_read(), 1, copy, 9));
    // Points of a lane reach whoever comes later, whenever they were.
    assert!(clock.has_point(compute, 1, copy, 3) && clock.is_reached(sampled_read(), 1, copy, 3));
    // Chains go on from the stages that are reached.
    for (src, is_chained) in [(compute, true), (fragment, false)] {
        let first_scope = clock.first_scope(1, 20, one(src), UsageSet::default());
        assert_eq!(first_scope.intervals.len(), usize::from(is_chained));
        assert_eq!(first_scope.has_access(1, copy, 6), is_chained);
    }
    let before = clock.intervals.clone();
    clock.apply_execution_dependency(&first_scope, one(fragment));
    assert_eq!(clock.intervals.len(), 1);
    let only = |it: &SubpassIntervals| *it.iter().next().expect("there is one");
    assert_eq!(only(&clock.intervals).dst, only(&before).dst.union(one(fragment)));
    assert_eq!(only(&clock.intervals).dst_usages, only(&before).dst_usages);
    assert!(clock.has_happened(fragment, 1, copy, 6) && !clock.is_visible(storage_write(), 1, copy_write(), 6));
    clock.clear();
    assert!(!clock.has_happened(compute, 1, copy, 6) && !clock.has_point(compute, 1, copy, 3));
}

/// A interval by itself says nothing of what it does not name, though it came with names.
#[test]
fn a_second_scope_is_what_it_is_given() {
    let [copy, compute, fragment] = [COPY, COMPUTE, FRAGMENT].map(stage);
    let named = SubpassInterval { dst: one(fragment), dst_usages: usages(&[storage_write()]), ..copies() };
    let first_scope = FirstScope { intervals: SubpassIntervals::of(&[named]), ..FirstScope::default() };
    let mut clock = QueueClock::default();
    clock.apply_second_scope(&first_scope, one(compute), usages(&[sampled_read()]));
    assert!(clock.has_happened(compute, 1, copy, 6) && !clock.has_happened(fragment, 1, copy, 6));
    assert!(
        clock.is_visible(sampled_read(), 1, copy_write(), 6) && !clock.is_visible(storage_write(), 1, copy_write(), 6)
    );
    let mut clock = QueueClock::default();
    clock.apply_execution_dependency(&first_scope, one(compute));
    assert!(clock.has_happened(compute, 1, copy, 6) && !clock.has_happened(fragment, 1, copy, 6));
    assert!(!clock.is_visible(storage_write(), 1, copy_write(), 6));
}

/// What tables say by now needs no interval.
#[test]
fn a_clock_forgets_what_its_tables_say() {
    let [copy, compute] = [COPY, COMPUTE].map(stage);
    let left = |happened: Tag, available: Tag, seen: UsageSet, own: SubpassInterval| {
        let mut clock = QueueClock::default();
        let first_scope = clock.first_scope_of_interval(own);
        clock.apply_second_scope(&first_scope, one(compute), usages(&[sampled_read()]));
        assert_eq!(clock.intervals.len(), 1);
        let mut first_scope = FirstScope::default();
        first_scope.happened.raise(1, 1 << copy.0, happened);
        first_scope.available.raise(1, SYNC_TABLES.write_columns(usages(&[copy_write()])), available);
        clock.apply_second_scope(&first_scope, one(compute), seen);
        clock.apply_second_scope(&FirstScope::default(), StageSet::default(), UsageSet::default());
        clock.intervals.len()
    };
    let seen = usages(&[sampled_read()]);
    assert_eq!((left(8, 8, seen, copies()), left(9, 9, seen, copies())), (0, 0));
    assert_eq!((left(7, 8, seen, copies()), left(8, 7, seen, copies())), (1, 1));
    assert_eq!(left(8, 8, UsageSet::default(), copies()), 1);
    assert_eq!(left(8, 7, seen, SubpassInterval { src_usages: UsageSet::default(), ..copies() }), 0);
    assert_eq!(
        left(8, 8, seen, SubpassInterval { src_usages: usages(&[copy_write(), storage_write()]), ..copies() }),
        1
    );
    // Ordered but not seen, and seen but not ordered.
    let mut clock = QueueClock::default();
    let first_scope = clock.first_scope_of_interval(copies());
    clock.apply_second_scope(&first_scope, one(compute), UsageSet::default());
    let ordered = QueueClock::default().first_scope(1, 8, one(copy), usages(&[copy_write()]));
    clock.apply_execution_dependency(&ordered, one(compute));
    assert_eq!(clock.intervals.len(), 0);
    let first_scope = clock.first_scope_of_interval(copies());
    clock.apply_second_scope(&first_scope, StageSet::default(), usages(&[sampled_read()]));
    clock.apply_execution_dependency(&ordered, one(compute));
    assert_eq!(clock.intervals.len(), 1);
}

/// What was before the stages of a subpass that is over is handed on by whoever has that subpass in his first scope.
#[test]
fn what_subpasses_knew_is_handed_on() {
    let [copy, compute, fragment] = [COPY, COMPUTE, FRAGMENT].map(stage);
    let mut subpass = QueueClock::default();
    let ordered = QueueClock::default().first_scope(0, 3, one(copy), usages(&[copy_write()]));
    subpass.apply_second_scope(&ordered, one(compute), UsageSet::default());
    let first_scope = subpass.first_scope_of_interval(copies());
    subpass.apply_second_scope(&first_scope, one(compute), UsageSet::default());
    let mut clock = QueueClock::default();
    clock.end_subpass(&subpass);
    assert!(!clock.has_happened(compute, 0, copy, 3) && !clock.has_happened(compute, 1, copy, 6));
    for (src, is_there) in [(compute, true), (fragment, false)] {
        let first_scope = clock.first_scope(0, 30, one(src), UsageSet::default());
        assert_eq!((first_scope.has_access(0, copy, 3), first_scope.has_access(1, copy, 6)), (is_there, is_there));
        assert_eq!(
            (first_scope.has_available(0, copy_write(), 3), first_scope.has_point(1, copy, 2)),
            (is_there, is_there)
        );
    }
    // Another one with the same interval, for other stages.
    let mut other = QueueClock::default();
    let first_scope = other.first_scope_of_interval(copies());
    other.apply_second_scope(&first_scope, one(fragment), UsageSet::default());
    clock.end_subpass(&other);
    assert_eq!(clock.ended_subpasses.as_ref().map(|it| it.intervals.len()), Some(1));
    assert!(clock.first_scope(0, 30, one(fragment), UsageSet::default()).has_access(1, copy, 6));
}

/// What subpasses knew goes once the tables say it, be it in part those of the clock and in part those of other
/// subpasses.
#[test]
fn what_subpasses_knew_goes_when_tables_say_it() {
    let [copy, compute] = [COPY, COMPUTE].map(stage);
    let ordered = |happened: Tag, available: Tag| {
        let mut first_scope = FirstScope::default();
        first_scope.happened.raise(1, 1 << copy.0, happened);
        first_scope.available.raise(1, SYNC_TABLES.write_columns(usages(&[copy_write()])), available);
        let mut clock = QueueClock::default();
        clock.apply_execution_dependency(&first_scope, one(compute));
        clock
    };
    let left = |outside: QueueClock, other: QueueClock| {
        let (mut clock, mut subpass) = (outside, QueueClock::default());
        let first_scope = subpass.first_scope_of_interval(copies());
        subpass.apply_second_scope(&first_scope, one(compute), UsageSet::default());
        clock.end_subpass(&other);
        clock.end_subpass(&subpass);
        clock.ended_subpasses.map_or(0, |it| it.intervals.len())
    };
    assert_eq!(left(QueueClock::default(), QueueClock::default()), 1);
    assert_eq!((left(ordered(8, 8), QueueClock::default()), left(QueueClock::default(), ordered(8, 8))), (0, 0));
    assert_eq!((left(ordered(8, 7), QueueClock::default()), left(ordered(7, 8), QueueClock::default())), (1, 1));
    assert_eq!((left(QueueClock::default(), ordered(8, 7)), left(QueueClock::default(), ordered(7, 8))), (1, 1));
    assert_eq!((left(ordered(8, 0), ordered(0, 8)), left(ordered(0, 8), ordered(8, 0))), (0, 0));
}

/// Of what is handed on, what nobody asks for goes too.
#[test]
fn a_scope_forgets_what_nobody_asks_for() {
    let left = |asks: Vec<ClockQuery>| {
        let mut first_scope = FirstScope { intervals: SubpassIntervals::of(&[copies()]), ..FirstScope::default() };
        first_scope.retain_queried(&ClockQueries::new(asks));
        first_scope.intervals.len()
    };
    assert_eq!((left(Vec::new()), left(vec![ClockQuery::of_stage(1, stage(COPY), 6)])), (0, 1));
    assert_eq!(left(vec![ClockQuery::of_stage(1, stage(COPY), 9), ClockQuery::of_stage(0, stage(COPY), 6)]), 0);
}
