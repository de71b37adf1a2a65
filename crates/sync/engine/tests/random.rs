//! The engine against the oracle, on random programs, by the rules that users see and by the specification's letter.
//!
//! `cargo xtask sim` makes it more, and others, and shows what the programs were made of.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use lavascope_abi::{AccessFlags2, Format};
use lavascope_engine::{
    Engine, EventRace, EventRaceKind, IndexedCommands, RecordedEventRaces, Rules, check_with, event_races,
};
use lavascope_oracle::{OracleRules, compare_faults, find_hazards, first_hazards};
use lavascope_sim::programs::share_memory;
use lavascope_sim::programs::{
    FeatureCoverage, ProgramFeatures, describe, find_disagreement, make_sparse, random_program,
};
use lavascope_sync_ir::{
    Access, AttributeBytes, Command, CommandBuffer, CommandBufferId, Hazard, HazardKind, HostStep, Origin, Program,
    ProgramLocation, Queue, QueueId, Region, RenderPass, ResourceId, ResourceKind, SubmitBatch, Subpass,
    SubpassDependency, SubresourceLayout, SyncScope, Tiling, UndefinedContents, UndefinedContentsKind,
};

/// The same rules for both.
#[derive(Clone, Copy)]
struct Setting {
    oracle: OracleRules,
    engine: Rules,
}

const CONTRACT: Setting = Setting { oracle: OracleRules::CONTRACT, engine: Rules::CONTRACT };
const SPECIFICATION: Setting = Setting { oracle: OracleRules::SPECIFICATION, engine: Rules::SPECIFICATION };

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

/// As many seeds as asked for, or else a few that are always the same.
fn seeds(programs: u64) -> std::ops::Range<u64> {
    let (first, asked) = (number("LAVASCOPE_SAMPLE_SEED").unwrap_or(1), number("LAVASCOPE_SAMPLE_PROGRAMS"));
    first..first + asked.unwrap_or(programs)
}

/// Whether the seeds are those that are always the same: only of those is known how much they show.
fn has_default_seeds() -> bool {
    number("LAVASCOPE_SAMPLE_PROGRAMS").is_none()
}

/// Compares as many programs as asked for, and shows the first disagreements, made small.
fn agree(kinds: ProgramFeatures, setting: Setting, programs: u64) {
    agree_on(kinds, setting, programs, |it| it);
}

fn agree_on(kinds: ProgramFeatures, setting: Setting, programs: u64, change: impl Fn(Program) -> Program) {
    let engine = |it: &Program| check_with(setting.engine, it);
    let (mut shown, mut wrong, mut census) = (Vec::new(), 0, FeatureCoverage::default());
    for seed in seeds(programs) {
        let program = change(random_program(seed, &kinds));
        if !has_default_seeds() {
            census.count(&program, &find_hazards(&program, setting.oracle));
        }
        if let Some((small, why)) = find_disagreement(&program, setting.oracle, &engine) {
            wrong += 1;
            if shown.len() < 3 {
                shown.push(format!("seed {seed}:\n{}", describe(&small, &why)));
            }
            if wrong >= 30 {
                break;
            }
        }
    }
    if !has_default_seeds() {
        println!("{census}");
    }
    assert!(wrong == 0, "{wrong} disagreements in {} programs\n{}", seeds(programs).count(), shown.join("\n"));
}

#[test]
fn barriers() {
    agree(ProgramFeatures::BARRIERS, CONTRACT, 6_000);
}

#[test]
fn queues_events_and_secondaries() {
    agree(ProgramFeatures::WITHOUT_RENDERING, CONTRACT, 7_000);
}

#[test]
fn everything() {
    agree(ProgramFeatures::ALL, CONTRACT, 7_000);
}

#[test]
fn aliases() {
    agree(ProgramFeatures::ALIASES, CONTRACT, 5_000);
    agree(ProgramFeatures::ALIASES, SPECIFICATION, 2_000);
}

/// The green of an image with red and green is never all there is of it, and of blue there is nothing: what is known of
/// a component that a format has not would never be forgotten, and be held against other names of the memory.
#[test]
fn components_that_a_format_has_not() {
    let program = random_program(92_044_261, &ProgramFeatures::ALIASES);
    let engine = |it: &Program| check_with(SPECIFICATION.engine, it);
    let found = find_disagreement(&program, SPECIFICATION.oracle, &engine);
    assert!(found.is_none(), "{}", found.map_or(String::new(), |(small, why)| describe(&small, &why)));
}

/// Two layout transitions of one pass, with a dependency that has the first before its visibility operations and the
/// second after its availability operations; and a read before the load of an attachment that a later subpass stores.
#[test]
fn what_a_subpass_dependency_orders() {
    for (seed, setting) in [730_000_898, 910_003_655, 910_004_657]
        .map(|it| (it, SPECIFICATION))
        .into_iter()
        .chain([(31_011_107, CONTRACT)])
    {
        let program = random_program(seed, &ProgramFeatures::ALL);
        let engine = |it: &Program| check_with(setting.engine, it);
        let found = find_disagreement(&program, setting.oracle, &engine);
        assert!(found.is_none(), "{seed}: {}", found.map_or(String::new(), |(small, why)| describe(&small, &why)));
    }
}

/// A marker of all commands makes the write of an earlier marker available. A marker of the transfer stage comes after
/// neither, because the stage of the earlier one is logically later.
#[test]
fn markers_of_logically_later_stages() {
    let program = random_program(1_119_056_210, &ProgramFeatures::ALL);
    let engine = |it: &Program| check_with(SPECIFICATION.engine, it);
    let found = find_disagreement(&program, SPECIFICATION.oracle, &engine);
    assert!(found.is_none(), "{}", found.map_or(String::new(), |(small, why)| describe(&small, &why)));
}

/// Draw after draw does the same: what a command repeats is not looked at each time.
#[test]
fn actions_that_are_repeated() {
    let repeated = |mut program: Program| {
        for (index, buffer) in program.command_buffers.iter_mut().enumerate() {
            repeat(buffer, 2 + index % 3);
        }
        program
    };
    agree_on(ProgramFeatures::BARRIERS, CONTRACT, 500, repeated);
    agree_on(ProgramFeatures::ALL, CONTRACT, 2_000, repeated);
}

/// How a command buffer is recorded.
#[derive(Clone, Copy, PartialEq)]
enum RecordingMode {
    Plain,
    /// Now and then with a command that is taken back.
    WithUndo,
    /// Some commands become known when all is recorded.
    WithReplacement,
}

/// Records all command buffers, those that are executed by others first. Gives what is reported meanwhile.
fn record(
    engine: &mut Engine,
    program: &Program,
    mode: RecordingMode,
) -> (Vec<(CommandBufferId, Hazard)>, Vec<UndefinedContents>) {
    let mut reported = (Vec::new(), Vec::new());
    let mut late = Vec::new();
    let both = [true, false];
    let buffers = || (0..).map(CommandBufferId).zip(&program.command_buffers);
    for (id, buffer) in both.iter().flat_map(|is_first| buffers().filter(move |it| it.1.is_secondary == *is_first)) {
        engine.begin_recording(id, queue_of(program, id), buffer.is_secondary);
        for (index, command) in buffer.commands.iter().enumerate() {
            let is_special = (index + id.0 as usize).is_multiple_of(3);
            let is_late = is_special && mode == RecordingMode::WithReplacement && matches!(command, Command::Action(_));
            if is_special && mode == RecordingMode::WithUndo {
                let other =
                    buffer.commands.iter().rev().find(|it| matches!(it, Command::Action(_) | Command::Barrier(_)));
                engine.check_command(id, other.unwrap_or(command).clone());
                engine.undo_last_command(id);
            }
            late.extend(is_late.then_some((id, index as u32, command)));
            let now = if is_late { Command::Action(Vec::new()) } else { command.clone() };
            let found = engine.check_command(id, now);
            reported.0.extend(found.hazards.into_iter().map(|it| (id, it)));
            reported.1.extend(found.faults);
        }
        if id.0.is_multiple_of(2) {
            engine.end_recording(id);
        }
    }
    late.into_iter().for_each(|(id, index, command)| engine.replace_command(id, index, command.clone()));
    reported
}

/// The queue that a command buffer is for: the first that executes it.
fn queue_of(program: &Program, id: CommandBufferId) -> Queue {
    let queue = |host_step: &HostStep| match host_step {
        HostStep::Submit { queue, batches, .. } => {
            batches.iter().any(|it| it.command_buffers.contains(&id)).then_some(queue.0 as usize)
        }
        _ => None,
    };
    program.queues[program.steps.iter().find_map(queue).unwrap_or(0)]
}

/// What is reported while recording, and of the execution after that, is together what is reported of an execution
/// without the first. Gives how much of each there is.
fn compare_recorded_and_executed(what: &str, program: &Program, rules: Rules, mode: RecordingMode) -> (usize, usize) {
    let mut engine = Engine::with_program(rules, program);
    let recorded = record(&mut engine, program, mode).0;
    program.steps.iter().for_each(|it| engine.step(it));
    let executed = engine.take_hazards();
    let is_reported = |it: &Hazard| recorded.iter().any(|other| is_same_inside(program, it, other));
    let all = check_with(rules, program);
    let has = |all: &[Hazard], it: &Hazard| all.iter().any(|other| cause(other) == cause(it));
    let wrong: Vec<&Hazard> = executed.iter().filter(|it| !has(&all, it) || is_reported(it)).collect();
    assert!(wrong.is_empty(), "{what}: {wrong:?}");
    let gone: Vec<&Hazard> = all.iter().filter(|it| !has(&executed, it)).collect();
    let lost: Vec<&&Hazard> = gone.iter().filter(|it| !is_reported(it)).collect();
    assert!(lost.is_empty(), "{what}: {lost:?}\n{}", lavascope_sim::programs::print(program));
    if mode != RecordingMode::WithReplacement {
        // In which pieces it is reported depends on how memory is cut meanwhile.
        let own: BTreeSet<_> = recorded.iter().map(|it| cause(&it.1)).collect();
        let whole: BTreeSet<_> = recorded_whole(program, rules).iter().map(cause).collect();
        assert_eq!(own, whole, "{what}");
    }
    (gone.len(), executed.len())
}

fn cause(hazard: &Hazard) -> (HazardKind, ProgramLocation, ProgramLocation, ResourceId) {
    (hazard.kind, hazard.at.clone(), hazard.prior.clone(), hazard.resource)
}

#[test]
fn hazards_are_reported_while_recording_or_when_executed() {
    let (mut reported, mut left) = (0, 0);
    for seed in seeds(3_000) {
        let program = random_program(seed, &ProgramFeatures::ALL);
        let mode = [RecordingMode::Plain, RecordingMode::WithUndo, RecordingMode::WithReplacement][seed as usize % 3];
        let (inside, others) = compare_recorded_and_executed(&format!("seed {seed}"), &program, Rules::CONTRACT, mode);
        (reported, left) = (reported + inside, left + others);
    }
    assert!(
        !has_default_seeds() || (reported > 1000 && left > 1000),
        "{reported} were reported while recording, {left} when executed"
    );
}

/// What a command buffer does again and again is left out when it is executed. That changes nothing.
#[test]
fn what_is_left_out_changes_nothing() {
    for seed in seeds(2_000) {
        let kinds = if seed.is_multiple_of(2) { ProgramFeatures::ALL } else { ProgramFeatures::BARRIERS };
        let mut program = random_program(seed, &kinds);
        // All that is done in a command buffer is done twice, with what is between, and some of it more often.
        for (index, buffer) in program.command_buffers.iter_mut().enumerate() {
            let again = (seed as usize / 2 + index) % 4;
            let is_open = |it: &Command| !matches!(it, Command::Action(_) | Command::Barrier(_) | Command::Execute(_));
            if again > 0 {
                let once = buffer.commands.clone();
                let is_flat = !once.iter().any(is_open);
                let stays = |it: &&Command| again != 2 || !is_flat || matches!(it, Command::Action(_));
                buffer.commands.extend(once.iter().filter(stays).cloned());
            }
            if again == 3 {
                repeat(buffer, 2);
            }
        }
        if seed.is_multiple_of(3) {
            share_memory(&mut program);
        }
        let rules = if seed % 5 == 4 { Rules::SPECIFICATION } else { Rules::CONTRACT };
        compare_recorded_and_executed(&format!("seed {seed}"), &program, rules, RecordingMode::Plain);
    }
}

fn repeat(buffer: &mut CommandBuffer, times: usize) {
    let times = |it: &Command| if matches!(it, Command::Action(_)) { times } else { 1 };
    let commands = std::mem::take(&mut buffer.commands);
    buffer.commands = commands.into_iter().flat_map(|it| vec![it.clone(); times(&it)]).collect();
}

/// What is inside of each primary command buffer, reported as if it was the only one to be executed.
fn recorded_whole(program: &Program, rules: Rules) -> Vec<Hazard> {
    let mut found = Vec::new();
    for (index, _) in program.command_buffers.iter().enumerate().filter(|it| !it.1.is_secondary) {
        let mut engine = Engine::with_program(rules, program);
        let command_buffers = vec![CommandBufferId(index as u32)];
        let batches = vec![SubmitBatch { command_buffers, ..SubmitBatch::default() }];
        let wanted = queue_of(program, CommandBufferId(index as u32));
        let queue = program.queues.iter().position(|it| *it == wanted).unwrap_or(0);
        engine.step(&HostStep::Submit { queue: QueueId(queue as u32), batches, fence: None });
        let own = engine.take_hazards().into_iter().map(|mut hazard| {
            for place in [&mut hazard.at, &mut hazard.prior] {
                if let ProgramLocation::Command(at) = place {
                    at.step = Engine::RECORDING;
                }
            }
            hazard
        });
        found.extend(own);
    }
    found
}

/// The same of contents that a render pass does not preserve, which are reported while recording, and of those that another
/// queue family owns, which are not.
#[test]
fn contents_are_reported_while_recording_or_when_executed() {
    let (mut reported, mut left) = (0, 0);
    for seed in seeds(1_000) {
        let mut program = random_program(seed, &ProgramFeatures::ALL);
        program.resources.iter_mut().for_each(|it| it.is_exclusive = true);
        program.render_passes.iter_mut().for_each(|it| forget_attachments(it, seed));
        let mut engine = Engine::with_program(Rules::CONTRACT, &program);
        let recorded = record(&mut engine, &program, RecordingMode::Plain).1;
        program.steps.iter().for_each(|it| engine.step(it));
        let executed = engine.take_faults();
        let all = lavascope_engine::check_all(&program).faults;
        let is_preserving = |undefined_contents: &UndefinedContents| {
            [UndefinedContentsKind::WriteToPreserved, UndefinedContentsKind::ReadNotPreserved]
                .contains(&undefined_contents.kind)
        };
        let (inside, others): (Vec<UndefinedContents>, Vec<UndefinedContents>) =
            all.into_iter().partition(is_preserving);
        assert_eq!(executed, others, "seed {seed}");
        let key = |it: &UndefinedContents| (it.kind, it.resource, path(&it.at));
        assert!(inside.iter().all(|it| recorded.iter().any(|own| key(own) == key(it))), "seed {seed}");
        (reported, left) = (reported + inside.len(), left + others.len());
    }
    assert!(
        !has_default_seeds() || (reported > 100 && left > 100),
        "{reported} were reported while recording, {left} when executed"
    );
}

/// Races of events in a command buffer are found while it is recorded: just those that there are when it is executed alone,
/// and whatever is executed before it, they are found there as well.
#[test]
fn event_races_are_reported_while_recording() {
    let mut reported = 0;
    for seed in seeds(3_000) {
        let program = random_program(seed, &ProgramFeatures::ALL);
        let buffer = |id: CommandBufferId| -> Option<IndexedCommands<'_>> {
            Some(Box::new((0..).zip(&program.command_buffers[id.0 as usize].commands)))
        };
        let all = event_races(&program);
        for (step, index) in program.steps.iter().zip(0..) {
            let HostStep::Submit { queue, batches, .. } = step else { continue };
            for id in batches.iter().flat_map(|it| &it.command_buffers) {
                let (mut races, mut recorded) = (RecordedEventRaces::default(), Vec::new());
                for (place, command) in buffer(*id).into_iter().flatten() {
                    let found = races.record(place, command, program.queues[queue.0 as usize], &buffer);
                    assert!(found.iter().all(|it| path(&it.at)[0] == place), "seed {seed}");
                    recorded.extend(found.iter().map(race_key));
                }
                let one = SubmitBatch { command_buffers: vec![*id], ..SubmitBatch::default() };
                let steps = vec![HostStep::Submit { queue: *queue, batches: vec![one], fence: None }];
                let alone = event_races(&Program { steps, ..program.clone() });
                assert_eq!(recorded, alone.iter().map(race_key).collect::<Vec<_>>(), "seed {seed}");
                let is_here = |it: &&EventRace| matches!(&it.at, ProgramLocation::Command(at) if at.step == index);
                let known: Vec<_> = all.iter().filter(is_here).filter(|it| races.has_found(it)).map(race_key).collect();
                assert!(recorded.iter().all(|it| known.contains(it)), "seed {seed}");
                reported += recorded.len();
            }
        }
    }
    assert!(!has_default_seeds() || reported > 100, "{reported} were reported while recording");
}

fn race_key(race: &EventRace) -> (EventRaceKind, Vec<u32>, Vec<u32>) {
    (race.kind, path(&race.at), path(&race.prior))
}

fn path(place: &ProgramLocation) -> Vec<u32> {
    match place {
        ProgramLocation::Command(at) => at.path.clone(),
        ProgramLocation::Step(_) => Vec::new(),
    }
}

/// What is over is forgotten now and then; when does not matter.
#[test]
fn what_is_over_is_no_part_of_a_hazard() {
    let (mut wrong, forgotten) = (Vec::new(), Cell::new(0));
    let forgetful = |program: &Program| {
        let mut engine = Engine::with_program(Rules::CONTRACT, program);
        for step in &program.steps {
            engine.step(step);
            let before = engine.range_count();
            engine.forget_finished();
            forgotten.set(forgotten.get() + before - engine.range_count());
        }
        engine.take_hazards()
    };
    for (seed, kinds) in seeds(2_000).flat_map(|seed| [(seed, ProgramFeatures::ALL), (seed, ProgramFeatures::ALIASES)])
    {
        let program = random_program(seed, &kinds);
        if let Some((small, why)) = find_disagreement(&program, OracleRules::CONTRACT, &forgetful) {
            wrong.push(format!("seed {seed}:\n{}", describe(&small, &why)));
        }
    }
    assert!(wrong.is_empty(), "{} disagreements\n{}", wrong.len(), wrong[..wrong.len().min(2)].join("\n"));
    assert!(!has_default_seeds() || forgotten.get() > 1000, "{} ranges were forgotten", forgotten.get());
}

/// Whether a hazard is inside of one execution of a command buffer, and the same as one found while recording that.
fn is_same_inside(program: &Program, found: &Hazard, (id, recorded): &(CommandBufferId, Hazard)) -> bool {
    let (ProgramLocation::Command(at), ProgramLocation::Command(prior)) = (&found.at, &found.prior) else {
        return false;
    };
    let is_inside = (at.step, at.batch, at.primary) == (prior.step, prior.batch, prior.primary);
    let HostStep::Submit { batches, .. } = &program.steps[at.step as usize] else { return false };
    let what = |it: &Hazard| (it.kind, it.resource, path(&it.at), path(&it.prior));
    let is_own = batches[at.batch as usize].command_buffers[at.primary as usize] == *id;
    is_inside && is_own && what(found) == what(recorded)
}

#[test]
fn barriers_by_the_letter() {
    agree(ProgramFeatures::BARRIERS, SPECIFICATION, 3_000);
}

#[test]
fn queues_events_and_secondaries_by_the_letter() {
    agree(ProgramFeatures::WITHOUT_RENDERING, SPECIFICATION, 3_000);
}

#[test]
fn everything_by_the_letter() {
    agree(ProgramFeatures::ALL, SPECIFICATION, 3_000);
}

/// A rule must not lean on another.
#[test]
fn everything_without_one_rule() {
    for without in 0..3 {
        let has = |rule: usize| rule != without;
        let (most_recent_reads, visible_writes, all_transitions_ordered) = (has(0), has(1), has(2));
        let oracle = OracleRules { most_recent_reads, visible_writes, all_transitions_ordered };
        let engine = Rules { most_recent_reads, visible_writes, all_transitions_ordered };
        agree(ProgramFeatures::ALL, Setting { oracle, engine }, 1_000);
    }
}

/// Takes attachments from one subpass, which may preserve them instead; every subpass is ordered after the one before.
fn forget_attachments(pass: &mut RenderPass, seed: u64) {
    let (count, attachments) = (pass.subpasses.len() as u32, pass.attachments.len() as u32);
    let one = (seed / 4) as usize % pass.subpasses.len().max(1);
    if let Some(subpass) = pass.subpasses.get_mut(one) {
        let preserves = if seed.is_multiple_of(2) { (0..attachments).collect() } else { Vec::new() };
        *subpass = Subpass { preserves, view_mask: subpass.view_mask, ..Subpass::default() };
    }
    let next = |value: u32| SubpassDependency {
        src: Some(value),
        dst: Some(value + 1),
        scope: SyncScope::default(),
        view_offset: None,
    };
    pass.dependencies.extend((0..count.saturating_sub(1)).map(next));
}

/// The programs of all tests, with resources that queue families own.
#[test]
fn contents_of_resources() {
    let (mut wrong, mut kinds) = (Vec::new(), BTreeMap::new());
    for seed in seeds(4_000) {
        let mut program = random_program(seed, &ProgramFeatures::ALL);
        program.resources.iter_mut().for_each(|it| it.is_exclusive = true);
        program.render_passes.iter_mut().for_each(|it| forget_attachments(it, seed));
        let faults = lavascope_engine::check_all(&program).faults;
        faults.iter().for_each(|it| *kinds.entry(it.kind).or_insert(0) += 1);
        if let Some(why) = compare_faults(&program, &faults) {
            wrong.push(format!("seed {seed}: {why}\n{}", lavascope_sim::programs::print(&program)));
        }
    }
    assert!(wrong.is_empty(), "{} disagreements\n{}", wrong.len(), wrong[..wrong.len().min(2)].join("\n"));
    assert!(
        !has_default_seeds() || UndefinedContentsKind::ALL.iter().all(|it| kinds.get(it).is_some_and(|it| *it > 10)),
        "{kinds:?}"
    );
}

/// The programs of all tests with images of other formats and layouts: blocks of two texels, and rows with padding.
#[test]
fn blocks_and_pitches() {
    let (mut wrong, mut changed) = (Vec::new(), 0);
    for seed in seeds(3_000) {
        let mut program = random_program(seed, &ProgramFeatures::ALL);
        for resource in &mut program.resources {
            let ResourceKind::Image(image) = &mut resource.kind else { continue };
            let is_color = [Format::R8_UNORM, Format::R8G8_UNORM].contains(&image.format);
            changed += usize::from(is_color);
            match (is_color, resource.binding) {
                (true, None) => image.format = Format::G8B8G8R8_422_UNORM,
                (true, Some(_)) if seed.is_multiple_of(2) && image.mips == 1 => {
                    let layout = SubresourceLayout { offset: 1, row_pitch: 4, depth_pitch: 8, array_pitch: 8 };
                    image.tiling = Tiling::Pitched([layout].into());
                    // Hazards are reported by texel, and the oracle counts bytes.
                    image.format = Format::R8_UNORM;
                }
                _ => {}
            }
        }
        if let Some((small, why)) = find_disagreement(&program, OracleRules::CONTRACT, &lavascope_engine::check) {
            wrong.push(format!("seed {seed}:\n{}", describe(&small, &why)));
        }
    }
    assert!(wrong.is_empty(), "{} disagreements\n{}", wrong.len(), wrong[..wrong.len().min(2)].join("\n"));
    assert!(!has_default_seeds() || changed > 3_000, "{changed} images are other ones");
}

/// The programs of all tests with a buffer in the memory of attachments, which render passes access by themselves.
#[test]
fn attachments_in_shared_memory() {
    let (mut wrong, mut hazards) = (Vec::new(), 0);
    for seed in seeds(3_000) {
        let mut program = random_program(seed, &ProgramFeatures::ALL);
        share_memory(&mut program);
        hazards += lavascope_engine::check(&program).len();
        if let Some((small, why)) = find_disagreement(&program, OracleRules::CONTRACT, &lavascope_engine::check) {
            wrong.push(format!("seed {seed}:\n{}", describe(&small, &why)));
        }
    }
    assert!(wrong.is_empty(), "{} disagreements\n{}", wrong.len(), wrong[..wrong.len().min(2)].join("\n"));
    assert!(!has_default_seeds() || hazards > 1000, "{hazards}");
}

#[test]
fn sparse_buffers() {
    let (mut wrong, mut hazards) = (Vec::new(), 0);
    for seed in seeds(3_000) {
        let mut program = random_program(seed, &ProgramFeatures::ALL);
        make_sparse(&mut program, seed);
        hazards += lavascope_engine::check(&program).len();
        if let Some((small, why)) = find_disagreement(&program, OracleRules::CONTRACT, &lavascope_engine::check) {
            wrong.push(format!("seed {seed}:\n{}", describe(&small, &why)));
        }
    }
    assert!(wrong.is_empty(), "{} disagreements\n{}", wrong.len(), wrong[..wrong.len().min(2)].join("\n"));
    assert!(!has_default_seeds() || hazards > 1000, "{hazards}");
}

/// Draws read every second byte of their vertices. The engine takes the bytes between for read, and leaves out hazards
/// that are only there. So it never finds one where the oracle finds none. It misses few: where a read between the
/// attributes hides an earlier access.
#[test]
fn bytes_between_attributes() {
    let every_second = AttributeBytes::new(2, [[0, 1]].into_iter()).expect("two bytes, of which one is read");
    let (mut found, mut missed) = (0, 0);
    for seed in seeds(3_000) {
        let kinds = if seed.is_multiple_of(2) { ProgramFeatures::BARRIERS } else { ProgramFeatures::WITHOUT_RENDERING };
        let mut program = random_program(seed, &kinds);
        for command in program.command_buffers.iter_mut().flat_map(|it| &mut it.commands) {
            let Command::Action(accesses) = command else { continue };
            let is_vertex = |access: &&mut Access| {
                access.access == AccessFlags2::VERTEX_ATTRIBUTE_READ.0 && matches!(access.region, Region::Buffer(_))
            };
            accesses.iter_mut().filter(is_vertex).for_each(|it| it.origin = Origin::attributes(every_second));
        }
        let verdicts = find_hazards(&program, OracleRules::CONTRACT).hazards;
        let cells: BTreeSet<_> = verdicts.iter().map(|it| it.cell).collect();
        let own = first_hazards(&program, &lavascope_engine::check(&program));
        let wrong = own.iter().find(|it| !cells.contains(it.0));
        assert!(wrong.is_none(), "seed {seed}: {wrong:?}\n{}", lavascope_sim::programs::print(&program));
        missed += cells.iter().filter(|it| !own.contains_key(it)).count();
        found += cells.len();
    }
    assert!(missed * 100 < found, "{missed} of {found} are missed");
}
