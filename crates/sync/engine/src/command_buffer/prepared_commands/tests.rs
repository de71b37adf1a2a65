//! What is grouped and marked, held against what the words say, access by access; and short ways against long ones.

use lavascope_abi::{AccessFlags2 as A, PipelineStageFlags2 as S};
use lavascope_sync_ir::{Barrier, RasterOrder, Region, Resource, ResourceKind};

use super::*;
use lavascope_test_support::TestRng;

/// Buffers of 64 bytes; the last one has no memory, and its addresses are not known before it has.
fn addresses(buffers: u32) -> AddressMap {
    let mut addresses = AddressMap::default();
    for _ in 1..buffers {
        addresses.add(&Resource::new(ResourceKind::Buffer { size: 64 }, None));
    }
    let kind = ResourceKind::Buffer { size: 64 };
    addresses.add(&Resource { is_sparse: true, ..Resource::new(kind, None) });
    addresses
}

fn access(resource: u32, bytes: Range<u64>, stage: S, access: A) -> Access {
    Access::new(ResourceId(resource), Region::Buffer(bytes), stage.0, access.0)
}

fn read(resource: u32) -> Access {
    access(resource, 0..64, S::COPY, A::TRANSFER_READ)
}

fn write(resource: u32) -> Access {
    access(resource, 0..64, S::COPY, A::TRANSFER_WRITE)
}

fn color(resource: u32) -> Access {
    let own = access(resource, 0..64, S::COLOR_ATTACHMENT_OUTPUT, A::COLOR_ATTACHMENT_WRITE);
    Access { order: RasterOrder::Color, ..own }
}

fn barrier() -> Command {
    Command::Barrier(Barrier::Sync2 { dependencies: Vec::new() })
}

fn list(actions: &[&[Access]]) -> PreparedCommands {
    let (mut list, addresses) = (PreparedCommands::default(), addresses(8));
    actions.iter().for_each(|it| list.add_action(it, |it| it, &addresses));
    list
}

const BYTES: [Range<u64>; 5] = [0..64, 0..64, 0..32, 32..64, 16..48];

fn random_access(dice: &mut TestRng, buffers: u64) -> Access {
    // Where there are many, they are used whole.
    let bytes = if buffers > 100 { 0..64 } else { BYTES[dice.below(BYTES.len() as u64) as usize].clone() };
    let resource = dice.below(buffers) as u32;
    match dice.below(7) {
        0 => access(resource, bytes, S::COPY, A::TRANSFER_WRITE),
        1 => color(resource),
        2 => Access { order: RasterOrder::None, ..color(resource) },
        3 => access(resource, bytes, S::VERTEX_SHADER, A::SHADER_SAMPLED_READ),
        4 => access(resource, bytes, S::COLOR_ATTACHMENT_OUTPUT, A::COLOR_ATTACHMENT_READ),
        // Not possible: no access.
        5 if dice.below(4) == 0 => access(resource, bytes, S::COPY, A::SHADER_SAMPLED_READ),
        _ => access(resource, bytes, S::COPY, A::TRANSFER_READ),
    }
}

/// Commands that are much like the one before, most of them; a few are long.
fn random_commands(dice: &mut TestRng, buffers: u64) -> Vec<Vec<Access>> {
    let mut all: Vec<Vec<Access>> = Vec::new();
    for _ in 0..1 + dice.below(6) {
        let mut next = all.last().cloned().unwrap_or_default();
        let len = dice.pick(&[1, 2, 3, 5, 63, 64, 65, 130]);
        if next.is_empty() || dice.below(3) == 0 {
            next = (0..len).map(|_| random_access(dice, buffers)).collect();
        }
        for _ in 0..dice.below(4) {
            let at = dice.below(next.len() as u64) as usize;
            match dice.below(8) {
                0 => next.truncate(at + 1),
                1 => next.push(random_access(dice, buffers)),
                2 => next.swap(0, at),
                3 => next[at].order = RasterOrder::Atomic,
                _ => next[at] = random_access(dice, buffers),
            }
        }
        all.push(next);
    }
    all
}

fn is_bit(word: u64, at: usize) -> bool {
    word >> at & 1 != 0
}

/// The marks of a command, one for each access.
fn marks_of(list: &PreparedCommands, command: usize) -> Vec<AccessMarks> {
    let len = list.addressed_accesses(command).1.len();
    let one = |at: usize| {
        let (number, bit) = list.mark_position(command, at);
        let AccessMarks {
            writes,
            written_range: beside_write,
            raster_ordered: ordered,
            repeats_previous: before,
            repeated_by_next: behind,
            written_before: inner,
            read_before: again,
            superseded: later,
        } = *list.marks_at(number);
        let own = |word: u64| u64::from(word & bit != 0);
        let (writes, beside_write, ordered) = (own(writes), own(beside_write), own(ordered));
        let (before, behind, inner, again, later) = (own(before), own(behind), own(inner), own(again), own(later));
        AccessMarks {
            writes,
            written_range: beside_write,
            raster_ordered: ordered,
            repeats_previous: before,
            repeated_by_next: behind,
            written_before: inner,
            read_before: again,
            superseded: later,
        }
    };
    (0..len).map(one).collect()
}

/// The accesses around one that have its range.
fn run_of(addressed: &[AddressedAccess], at: usize) -> Range<usize> {
    let same = |it: &&AddressedAccess| it.is_same_range(&addressed[at]);
    let before = addressed[..at].iter().rev().take_while(same).count();
    at - before..at + 1 + addressed[at + 1..].iter().take_while(same).count()
}

/// What a command is by itself.
fn check_command(list: &PreparedCommands, command: usize) {
    let (kind, addressed) = list.addressed_accesses(command);
    let meets = |own: &AddressedAccess, it: &AddressedAccess| it.overlaps(own) && !it.is_same_range(own);
    let is_apart = addressed.iter().all(|own| !is_write(own) || !addressed.iter().any(|it| meets(own, it)));
    let is_simple = addressed.iter().all(|own| !addressed.iter().any(|it| meets(own, it)));
    // Of long lists more must be apart than need be.
    let is_expected = if addressed.len() > MARKS_PER_WORD { is_simple } else { is_apart };
    assert_eq!(kind, if is_expected { PreparedKind::Disjoint } else { PreparedKind::Overlapping }, "{addressed:?}");
    if kind == PreparedKind::Overlapping {
        return;
    }
    for (at, (own, marks)) in addressed.iter().zip(marks_of(list, command)).enumerate() {
        let group: Vec<&AddressedAccess> = addressed.iter().filter(|it| it.is_same_range(own)).collect();
        let has_write = group.iter().any(|it| is_write(it));
        let key = |it: &AddressedAccess| (it.usage, it.order);
        let orders = |it: &&AddressedAccess| group.iter().all(|other| access_order::is_ordered(key(it), key(other)));
        let is_ordered = has_write && group.iter().all(orders);
        assert_eq!((marks.writes, marks.written_range), (u64::from(is_write(own)), u64::from(has_write)));
        assert_eq!(marks.raster_ordered, u64::from(is_ordered), "{own:?}");
        // What is written is together.
        assert!(!has_write || run_of(addressed, at).len() == group.len(), "{addressed:?}");
    }
}

/// What a command and the one before it do in the same way.
fn check_pair(list: &PreparedCommands, command: usize) {
    let ((_, old), (_, new)) = (list.addressed_accesses(command - 1), list.addressed_accesses(command));
    let (old_marks, new_marks) = (marks_of(list, command - 1), marks_of(list, command));
    let is_apart = |it: usize| list.addressed_accesses(it).0 == PreparedKind::Disjoint;
    let are_apart = is_apart(command) && is_apart(command - 1);
    for at in 0..new.len() {
        let is_new = new_marks[at].written_range != 0;
        let run = if is_new { run_of(new, at) } else { at..at + 1 };
        let is_same = are_apart
            && old.len() >= run.end
            && old[run.clone()].iter().zip(&new[run.clone()]).all(|(old, new)| old.is_same_use(new))
            && is_new == (old_marks[at].written_range != 0)
            && (!is_new || new_marks[at].raster_ordered != 0 && run_of(old, at) == run);
        assert_eq!(new_marks[at].repeats_previous, u64::from(is_same), "access {at} of\n{old:?}\n{new:?}");
        assert!(at >= old.len() || old_marks[at].repeated_by_next == new_marks[at].repeats_previous);
    }
    assert!(old_marks.iter().skip(new.len()).all(|it| it.repeated_by_next == 0));
}

#[test]
fn marks_are_what_their_words_say() {
    let (mut dice, mut kinds, mut repeated) = (TestRng::new(3), [0; 2], [0; 2]);
    for round in 0..600 {
        // Many buffers, so that long lists are apart now and then.
        let buffers = if round % 4 == 0 { 300 } else { 3 };
        let addresses = addresses(buffers + 1);
        let commands = random_commands(&mut dice, u64::from(buffers));
        let mut list = PreparedCommands::default();
        for (index, accesses) in commands.iter().enumerate() {
            list.add_action(accesses, |it| it, &addresses);
            let (kind, addressed) = list.addressed_accesses(index);
            kinds[usize::from(kind == PreparedKind::Disjoint)] += 1;
            let mut keys: Vec<_> = addressed.iter().map(|it| (it.range.start, it.range.end, it.usage)).collect();
            let looked = |item: &Access| {
                let ranges = addresses.ranges(item.resource, &item.region).into_iter();
                let usage = SYNC_TABLES.usage(item.stage, item.access)?;
                Some(ranges.map(|it| (it.start, it.end, usage)).collect::<Vec<_>>())
            };
            let mut wanted: Vec<_> = accesses.iter().filter_map(looked).flatten().collect();
            keys.sort_unstable();
            wanted.sort_unstable();
            assert_eq!(keys, wanted);
            check_command(&list, index);
            let has_repeats = |it: &AccessMarks| it.repeats_previous != 0;
            let marks = marks_of(&list, index);
            repeated[usize::from(addressed.len() > MARKS_PER_WORD)] += usize::from(marks.iter().any(has_repeats));
        }
        assert_eq!(list.len(), commands.len());
        (1..commands.len()).for_each(|it| check_pair(&list, it));
    }
    assert!(kinds.iter().all(|it| *it > 200) && repeated[0] > 100 && repeated[1] > 10, "{kinds:?} {repeated:?}");
}

/// All but where accesses lie.
fn shown(list: &PreparedCommands) -> String {
    let addressed_access = |it: &AddressedAccess| format!("{:?}", AddressedAccess { access_index: 0, ..it.clone() });
    let command = |index: usize| {
        let PreparedCommand { first, end, marks, kind, is_one_to_one: is_straight, .. } = list.entries[index];
        let RecordedCommand::Action(accesses) = list.command(index) else { panic!("an action") };
        format!("{first} {end} {marks} {kind:?} {is_straight} {:#?}", accesses.iter().collect::<Vec<_>>())
    };
    let commands: Vec<String> = (0..list.len()).map(command).collect();
    format!("{commands:#?}\n{:#?}\n{:#?}", list.addressed.iter().map(addressed_access).collect::<Vec<_>>(), list.marks)
}

/// What is like the one before is not looked up again; nobody can tell.
#[test]
fn what_is_alike_is_what_it_would_be() {
    let mut dice = TestRng::new(5);
    let addresses = addresses(5);
    for _ in 0..600 {
        let (mut short, mut long) = (PreparedCommands::default(), PreparedCommands::default());
        for accesses in random_commands(&mut dice, 4) {
            short.add_action(&accesses, |it| it, &addresses);
            long.last_resources.clear();
            long.add_action(&accesses, |it| it, &addresses);
            assert_eq!(shown(&short), shown(&long));
        }
        // And all of it again.
        short.look_up_again(&addresses);
        assert_eq!(shown(&short), shown(&long));
        assert!(short.last_resources.is_empty());
    }
}

#[test]
fn what_is_alike_is_looked_up_by_its_own_number() {
    let (mut list, addresses) = (PreparedCommands::default(), addresses(8));
    list.add_action(&[read(0), read(1)], |it| ResourceId(it.0 + 2), &addresses);
    list.add_action(&[read(0), write(3)], |it| ResourceId(it.0 + 2), &addresses);
    list.add_action(&[read(0), write(4)], |it| ResourceId(it.0 + 2), &addresses);
    let numbers: Vec<Vec<u32>> =
        (0..3).map(|it| list.addressed_accesses(it).1.iter().map(|it| it.resource.0).collect()).collect();
    assert_eq!(numbers, [[2, 3], [2, 5], [2, 6]]);
    let RecordedCommand::Action(accesses) = list.command(2) else { panic!("an action") };
    assert_eq!(accesses.iter().map(|it| it.resource.0).collect::<Vec<_>>(), [2, 6]);
    let is_read = |addressed_access: &AddressedAccess| !is_write(addressed_access);
    assert!(is_read(&list.addressed_accesses(0).1[1]) && !is_read(&list.addressed_accesses(1).1[1]));
    assert_eq!(list.addressed_accesses(2).1[1].range, addresses.whole(ResourceId(6)));
}

#[test]
fn what_is_not_straight_is_looked_up_whole() {
    let is_straight = |accesses: &[Access]| list(&[accesses]).entries[0].is_one_to_one;
    assert!(is_straight(&[read(0)]) && is_straight(&vec![read(0); MARKS_PER_WORD]));
    assert!(!is_straight(&[]) && !is_straight(&vec![read(0); MARKS_PER_WORD + 1]));
    // Nothing of it, nothing that can be done, and nothing that is known yet.
    assert!(!is_straight(&[read(0), access(1, 64..99, S::COPY, A::TRANSFER_READ)]));
    assert!(!is_straight(&[read(0), access(1, 0..64, S::COPY, A::SHADER_SAMPLED_READ)]));
    assert!(!is_straight(&[read(0), read(7)]));
    // Put into another order, and in each other's way.
    assert!(is_straight(&[read(0), write(1), read(1)]));
    assert!(!is_straight(&[write(1), read(0), read(1)]));
    assert!(!is_straight(&[write(1), access(1, 0..16, S::COPY, A::TRANSFER_READ)]));
    assert_eq!(list(&[&[read(0), read(7)]]).addressed_accesses(0).0, PreparedKind::UnknownAddresses);
    assert!(list(&[&[read(0), read(7)]]).addressed.is_empty());
}

#[test]
fn commands_are_taken_back_and_replaced() {
    let addresses = addresses(8);
    let mut list = list(&[&[read(0)], &[write(1), read(2)]]);
    list.add_non_action(barrier());
    list.add_action(&[read(3)], |it| it, &addresses);
    assert_eq!(list.len(), 4);
    assert!(matches!(list.command(2), RecordedCommand::Other(Command::Barrier(_))));
    assert_eq!(list.pop(), None);
    assert_eq!(list.pop(), Some(barrier()));
    assert_eq!((list.len(), list.non_actions.len()), (2, 0));
    list.add_non_action(barrier());
    // Not an action, and not there.
    list.replace(2, &[read(4)]);
    list.replace(3, &[read(4)]);
    list.replace(0, &[read(4), write(5)]);
    list.look_up_again(&addresses);
    let addressed = |it: usize| list.addressed_accesses(it).1.iter().map(|it| it.resource.0).collect::<Vec<_>>();
    assert_eq!((addressed(0), addressed(1), addressed(2)), (vec![4, 5], vec![1, 2], vec![]));
    assert!(matches!(list.command(2), RecordedCommand::Other(Command::Barrier(_))));
    let RecordedCommand::Action(accesses) = list.command(0) else { panic!("an action") };
    assert!(accesses.iter().eq([read(4), write(5)]));
    assert_eq!((list.pop(), list.pop(), list.pop(), list.pop()), (Some(barrier()), None, None, None));
    assert_eq!(list.len(), 0);
}

#[test]
fn room_that_is_needed_stays() {
    let addressed_access = list(&[&[read(0)]]).addressed[0].clone();
    let room_after = |capacity: usize, len: usize| {
        let mut list = list(&[&[read(0)]]);
        list.add_non_action(barrier());
        list.addressed = Vec::with_capacity(capacity);
        list.addressed.resize(len, addressed_access.clone());
        list.clear();
        assert_eq!((list.entries.len(), list.addressed.len(), list.marks.len()), (0, 0, 0));
        assert_eq!((list.accesses.len(), list.non_actions.len()), (0, 0));
        list.addressed.capacity()
    };
    assert_eq!((room_after(1024, 0), room_after(1025, 0)), (1024, 0));
    assert_eq!((room_after(2224, 300), room_after(2225, 300)), (2224, 0));
}

#[test]
fn groups_are_checked_together() {
    let many: Vec<Access> = (0..70).map(|it| read(it % 2)).chain([write(2), read(2), read(2)]).collect();
    let list = list(&[&[read(0), read(0), write(1), read(1), read(1), read(2)], &many]);
    let marked: Vec<MarkedAccesses<'_>> = list.marked_words(0).collect();
    assert_eq!((marked.len(), marked[0].valid_bits), (1, 0b11_1111));
    let group = |at: usize| (marked[0].group(at).0, marked[0].group(at).1.len());
    assert_eq!((group(0), group(1), group(5)), ((1, 1), (2, 1), (1 << 5, 1)));
    assert_eq!((group(2), group(4)), ((0b1_1100, 3), (1 << 4, 1)));
    let marked: Vec<MarkedAccesses<'_>> = list.marked_words(1).collect();
    let numbers: Vec<(u32, u64, usize)> =
        marked.iter().map(|it| (it.number, it.valid_bits, it.addressed.len())).collect();
    assert_eq!(numbers, [(1, u64::MAX, 73), (2, 0x1ff, 9)]);
    assert_eq!((list.mark_position(1, 3), list.mark_position(1, 70)), ((1, 8), (2, 1 << 6)));
}

#[test]
fn marks_that_are_made_are_found_again() {
    let mut list = list(&[&[read(0), write(1), read(2)], &[read(3)]]);
    list.apply_mark(0, MarkChange::Before { written: 0b110, read: 0b001 });
    list.apply_mark(0, MarkChange::Superseded(0b010));
    list.apply_mark(0, MarkChange::Superseded(0b100));
    let AccessMarks { written_before: inner, read_before: again, superseded: later, .. } = *list.marks_at(0);
    assert_eq!((inner, again, later), (0b110, 0b001, 0b110));
    assert_eq!(list.accesses_after_write(0).map(|it| it.resource.0).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(list.accesses_after_write(1).count(), 0);
}

/// Something must be done for a command unless each of its accesses is checked and kept elsewhere.
#[test]
fn what_others_show_is_not_busy() {
    let mut dice = TestRng::new(7);
    let addresses = addresses(5);
    let mut idle = 0;
    for _ in 0..500 {
        let (mut list, mut is_rendering, mut wanted) = (PreparedCommands::default(), false, Vec::new());
        let len = if dice.below(8) == 0 { 70 } else { 1 + dice.below(6) };
        let is_open: Vec<bool> = (0..len)
            .map(|_| {
                let is_open = is_rendering;
                match dice.below(8) {
                    0 => list.add_non_action(barrier()),
                    1 => {
                        list.add_non_action(if is_rendering { Command::EndRendering } else { begin_rendering() });
                        is_rendering = !is_rendering;
                    }
                    _ => list.add_action(&[color(0), read(dice.below(2) as u32 + 1)], |it| it, &addresses),
                }
                is_open
            })
            .collect();
        for number in 0..list.marks.len() as u32 {
            let (inner, again) = (dice.below(4), dice.below(4));
            list.apply_mark(number, MarkChange::Before { written: inner, read: again & !inner });
            list.apply_mark(number, MarkChange::Superseded(dice.below(4)));
        }
        for (index, is_open) in is_open.into_iter().enumerate() {
            let is_needed = |access_marks: &AccessMarks| {
                let is_repeated = access_marks.repeats_previous != 0 && (is_open || access_marks.written_range == 0);
                let is_checked = is_repeated || access_marks.written_before != 0 || access_marks.read_before != 0;
                let is_kept = is_repeated && access_marks.repeated_by_next != 0 || access_marks.superseded != 0;
                !(is_checked && is_kept)
            };
            let is_other = list.addressed_accesses(index).0 == PreparedKind::NotAction;
            let is_busy = is_other || marks_of(&list, index).iter().any(is_needed);
            assert_eq!(list.is_busy(index, is_open), is_busy);
            idle += usize::from(!is_busy);
            wanted.push(is_busy);
        }
        let busy = list.busy_bits();
        assert_eq!(busy.len(), wanted.len().div_ceil(MARKS_PER_WORD));
        let found: Vec<bool> =
            (0..busy.len() * MARKS_PER_WORD).map(|it| is_bit(busy[it / MARKS_PER_WORD], it % MARKS_PER_WORD)).collect();
        assert_eq!(found[..wanted.len()], wanted);
        assert!(found[wanted.len()..].iter().all(|it| !it));
    }
    assert!(idle > 50, "{idle}");
}

fn begin_rendering() -> Command {
    let area = lavascope_sync_ir::Area { offset: [0; 3], extent: [1; 3] };
    let attachments = Vec::new();
    let rendering =
        lavascope_sync_ir::Rendering { attachments, area, view_mask: 0, is_resuming: false, is_suspending: false };
    Command::BeginRendering(rendering)
}
