//! The marks of a recorded command buffer, access by access, and which checks and records they skip.

use lavascope_abi::{AccessFlags2 as A, PipelineStageFlags2 as S, QueueFlags};
use lavascope_sync_ir::{
    Access, Area, Barrier, Command, CommandBufferId, Dependency, DependencyTarget, HostStep, ProgramLocation, Queue,
    QueueId, Region, Rendering, Resource, ResourceId, ResourceKind, SubmitBatch, SyncScope,
};

use super::*;
use crate::Engine;

const QUEUE: Queue = Queue { family: 0, flags: QueueFlags::GRAPHICS.0 };
const OWN: CommandBufferId = CommandBufferId(0);
const A0: u32 = 0;
const B0: u32 = 1;
const C0: u32 = 2;

fn part(resource: u32, bytes: std::ops::Range<u64>, access: A) -> Access {
    Access::new(ResourceId(resource), Region::Buffer(bytes), S::COPY.0, access.0)
}

fn read(resource: u32) -> Access {
    part(resource, 0..64, A::TRANSFER_READ)
}

fn write(resource: u32) -> Access {
    part(resource, 0..64, A::TRANSFER_WRITE)
}

fn action(accesses: &[Access]) -> Command {
    Command::Action(accesses.to_vec())
}

/// A memory dependency between all earlier and all later commands.
fn barrier() -> Command {
    let (stages, access) = (S::ALL_COMMANDS.0, A::MEMORY_READ.0 | A::MEMORY_WRITE.0);
    let scope = SyncScope { src_stages: stages, src_access: access, dst_stages: stages, dst_access: access };
    Command::Barrier(Barrier::Sync2 { dependencies: vec![Dependency { scope, target: DependencyTarget::Global }] })
}

fn begin_rendering(is_resuming: bool) -> Command {
    let area = Area { offset: [0; 3], extent: [1; 3] };
    let rendering = Rendering { attachments: Vec::new(), area, view_mask: 0, is_suspending: is_resuming, is_resuming };
    Command::BeginRendering(rendering)
}

fn recorded(commands: &[Command]) -> Engine {
    let mut engine = Engine::new(&[QUEUE], 0, 0, 0);
    for _ in 0..3 {
        engine.add_resource(&Resource::new(ResourceKind::Buffer { size: 64 }, None));
    }
    engine.begin_recording(CommandBufferId(1), QUEUE, true);
    engine.begin_recording(OWN, QUEUE, false);
    engine.command_buffers[OWN.0 as usize].used_blocks = None;
    for command in commands {
        let found = engine.check_command(OWN, command.clone());
        assert!(found.hazards.is_empty() && found.faults.is_empty(), "{found:?}");
    }
    engine
}

/// The marks of each access of each action: `i` for `written_before`, `a` for `read_before`, `l` for `superseded`.
fn marks(engine: &Engine) -> Vec<Vec<String>> {
    let list = &engine.command_buffers[0].list;
    let of_access = |command: usize, at: usize| {
        let (number, bit) = list.mark_position(command, at);
        let own = list.marks_at(number);
        let has = |word: u64, letter: &str| if word & bit != 0 { letter.to_owned() } else { String::new() };
        has(own.written_before, "i") + &has(own.read_before, "a") + &has(own.superseded, "l")
    };
    let is_action = |it: &usize| list.addressed_accesses(*it).0 != PreparedKind::NotAction;
    let of_command = |it: usize| (0..list.addressed_accesses(it).1.len()).map(|at| of_access(it, at)).collect();
    (0..list.len()).filter(is_action).map(of_command).collect()
}

/// The actions, each with a barrier after it.
fn with_barriers(actions: &[&[Access]]) -> Vec<Command> {
    actions.iter().flat_map(|it| [action(it), barrier()]).collect()
}

#[test]
fn what_others_show_is_marked() {
    let commands =
        with_barriers(&[&[write(A0)], &[read(A0)], &[read(B0)], &[read(B0)], &[read(B0)], &[write(A0)], &[write(B0)]]);
    let mut engine = recorded(&commands);
    assert_eq!(marks(&engine), [["l"], ["il"], [""], ["al"], ["al"], ["i"], [""]]);
    // The execution skips commands whose accesses need neither a check nor a record.
    let is_busy = |at: usize| ![2, 6, 8].contains(&at);
    let wanted = (0..commands.len()).fold(0, |all, it| all | u64::from(is_busy(it)) << it);
    assert_eq!(engine.command_buffers[0].list.busy_bits(), [wanted]);
    let batches = vec![SubmitBatch { command_buffers: vec![OWN], ..SubmitBatch::default() }];
    engine.step(&HostStep::Submit { queue: QueueId(0), batches, fence: None });
    let next = |from: usize| engine.command_buffers[0].next_busy_command(from);
    assert_eq!((next(0), next(1), next(2), next(6), next(8), next(13)), (0, 1, 3, 7, 9, 13));
    assert_eq!(next(14), 14);
}

#[test]
fn each_access_has_its_own_marks() {
    let engine = recorded(&with_barriers(&[
        &[read(A0), read(B0)],
        &[read(A0), read(B0)],
        &[read(B0)],
        &[write(C0), write(B0)],
        &[read(A0), write(C0)],
    ]));
    assert_eq!(marks(&engine), [vec!["", ""], vec!["al", "al"], vec!["al"], vec!["l", ""], vec!["a", "i"]]);
}

/// Of several writes to a range, only the last one needs a record. Rule 4.
#[test]
fn only_the_last_write_stays() {
    let engine = recorded(&with_barriers(&[&[write(A0)], &[write(A0)], &[write(A0)]]));
    assert_eq!(marks(&engine), [["l"], ["il"], ["i"]]);
}

/// Marks compare accesses with the same range and the same usage only. Rules 3 and 6.
#[test]
fn what_is_done_otherwise_shows_nothing() {
    let sampled = |resource| {
        Access::new(ResourceId(resource), Region::Buffer(0..64), S::VERTEX_SHADER.0, A::SHADER_SAMPLED_READ.0)
    };
    let engine = recorded(&with_barriers(&[&[read(A0)], &[sampled(A0)], &[read(A0)], &[sampled(A0)]]));
    assert_eq!(marks(&engine), [[""], [""], ["a"], ["a"]]);
    let (low, high) = (part(A0, 0..32, A::TRANSFER_READ), part(A0, 0..32, A::TRANSFER_WRITE));
    let engine =
        recorded(&with_barriers(&[&[read(A0)], &[read(A0)], std::slice::from_ref(&low), &[read(A0)], &[write(A0)]]));
    assert_eq!(marks(&engine), [[""], ["a"], [""], [""], [""]]);
    // A command with two overlapping accesses, one of which writes.
    let both = [high, read(A0)];
    let engine = recorded(&with_barriers(&[&[read(B0)], &both, &[low], &[read(B0)], &[write(A0)]]));
    assert_eq!(marks(&engine), [vec![""], vec!["", ""], vec!["i"], vec!["a"], vec![""]]);
}

/// The queue drops the clock of a subpass at its end. Rule 3.
#[test]
fn reads_of_a_rendering_are_of_that() {
    let [own, end] = [action(&[read(B0)]), Command::EndRendering];
    let commands = [own.clone(), barrier(), own.clone(), begin_rendering(false), own.clone(), end, own];
    assert_eq!(marks(&recorded(&commands)), [[""], ["al"], ["a"], [""]]);
}

/// Secondary command buffers interrupt the run of consecutive tags.
#[test]
fn what_is_behind_other_command_buffers_begins_anew() {
    let own = || action(&[read(B0)]);
    let execute = Command::Execute(vec![CommandBufferId(1)]);
    let engine = recorded(&[own(), execute, own(), barrier(), own(), barrier(), own()]);
    assert_eq!(marks(&engine), [[""], [""], ["al"], ["a"]]);
}

/// Skipped commands get tags as well, so later hazards name the right command.
#[test]
fn hazards_behind_what_is_left_out_have_their_place() {
    let mut commands = with_barriers(&[&[write(A0)], &[read(A0)], &[read(A0)], &[write(A0)]]);
    commands.push(action(&[read(C0)]));
    let mut engine = recorded(&commands);
    let first = lavascope_sync_ir::CommandBuffer { is_secondary: false, commands: vec![action(&[write(C0)])] };
    let first = engine.add_command_buffer(first);
    let batches = [first, OWN].map(|it| SubmitBatch { command_buffers: vec![it], ..SubmitBatch::default() }).to_vec();
    // The barriers of the second command buffer come after the accesses of the first.
    engine.step(&HostStep::Submit { queue: QueueId(0), batches, fence: None });
    assert_eq!(engine.take_hazards(), []);
    let mut engine = recorded(&[
        action(&[write(A0)]),
        action(&[read(B0)]),
        action(&[read(B0)]),
        action(&[read(B0)]),
        action(&[read(B0)]),
        action(&[read(B0)]),
        action(&[read(C0)]),
        barrier(),
    ]);
    let first = lavascope_sync_ir::CommandBuffer { is_secondary: false, commands: vec![action(&[write(C0)])] };
    let first = engine.add_command_buffer(first);
    let batches = [first, OWN].map(|it| SubmitBatch { command_buffers: vec![it], ..SubmitBatch::default() }).to_vec();
    engine.step(&HostStep::Submit { queue: QueueId(0), batches, fence: None });
    let found = engine.take_hazards();
    assert_eq!(found.len(), 1);
    assert!(matches!(&found[0].at, ProgramLocation::Command(at) if at.path == [6]), "{found:?}");
}

/// Of several equal reads, a hazard names the last one.
#[test]
fn the_last_of_many_is_named() {
    let mut engine = recorded(&[action(&[read(A0)]), action(&[read(A0)]), action(&[read(A0)])]);
    let found = engine.check_command(OWN, action(&[write(A0)])).hazards;
    assert_eq!(found.len(), 1);
    assert!(matches!(&found[0].prior, ProgramLocation::Command(at) if at.path == [2]), "{found:?}");
}

#[test]
fn what_is_spared() {
    let marks = AccessMarks {
        written_range: 0b11,
        repeats_previous: 0b101,
        repeated_by_next: 0b100,
        written_before: 0b1000,
        read_before: 0b1_0000,
        superseded: 0b10_0000,
        ..AccessMarks::default()
    };
    let skipped = |progress: &ExecutionProgress, is_rendering| {
        let skipped_accesses = progress.skipped(&marks, is_rendering);
        (skipped_accesses.checks, skipped_accesses.additions)
    };
    let mut progress = ExecutionProgress::new();
    assert_eq!((skipped(&progress, true), skipped(&progress, false)), ((0, 0), (0, 0)));
    progress.was_clean_action = true;
    assert_eq!((skipped(&progress, true), skipped(&progress, false)), ((0b101, 0b100), (0b100, 0b100)));
    progress.is_recording = true;
    assert_eq!((skipped(&progress, true), skipped(&progress, false)), ((0b101, 0b101), (0b100, 0b100)));
    progress.marking = MarkMode::Set;
    assert_eq!(skipped(&progress, true), (0b101, 0b101));
    (progress.marking, progress.is_recording) = (MarkMode::Apply, false);
    assert_eq!(skipped(&progress, true), (0b1_1101, 0b10_0100));
    (progress.is_clean, progress.was_clean_action) = (false, false);
    assert_eq!(skipped(&progress, true), (0b1000, 0b10_0000));
    let own = AccessMarks { writes: 1, raster_ordered: 2, ..marks }.command_only();
    assert_eq!((own.writes, own.written_range, own.raster_ordered), (1, 0b11, 2));
    assert_eq!(own.repeats_previous | own.repeated_by_next | own.written_before | own.read_before | own.superseded, 0);
    // Accesses with several marks.
    let twice = AccessMarks {
        repeats_previous: 0b101,
        repeated_by_next: 0b101,
        written_before: 0b011,
        read_before: 0b110,
        superseded: 0b001,
        ..AccessMarks::default()
    };
    (progress.is_clean, progress.was_clean_action) = (true, true);
    let skipped_accesses = progress.skipped(&twice, true);
    assert_eq!((skipped_accesses.checks, skipped_accesses.additions), (0b111, 0b101));
    // Each mark alone, and all together.
    let not_first = |before, inner, again| {
        AccessMarks { repeats_previous: before, written_before: inner, read_before: again, ..AccessMarks::default() }
            .checked_by_earlier_access()
    };
    assert_eq!((not_first(1, 2, 4), not_first(1, 1, 1), not_first(6, 3, 0)), (7, 1, 7));
}
