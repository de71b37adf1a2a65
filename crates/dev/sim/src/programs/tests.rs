//! Tests of the generator, the comparison and the shrinker, with engines that are wrong on purpose.

use lavascope_abi::{AccessFlags2, PipelineStageFlags2};
use lavascope_sync_ir::{
    Barrier, Command, Dependency, DependencyTarget, Hazard, HazardKind, HostStep, Program, ProgramLocation, Region,
    SetEvent, SyncScope, WaitEvents,
};

use super::{FEATURES, FeatureCoverage, ProgramFeatures, describe, find_disagreement, random_program};
use super::{print, shrink};
use lavascope_oracle::notation::parse;
use lavascope_oracle::{CellHazard, MemoryCell, OracleRules, cells_of, compare, find_hazards};
use lavascope_test_support::TestRng;

const CONTRACT: OracleRules = OracleRules::CONTRACT;

fn census(kinds: &ProgramFeatures, programs: u64) -> FeatureCoverage {
    let mut census = FeatureCoverage::default();
    for seed in 0..programs {
        let program = random_program(seed, kinds);
        census.count(&program, &find_hazards(&program, CONTRACT));
    }
    census
}

#[test]
fn everything_occurs_and_many_programs_are_clean() {
    let census = census(&ProgramFeatures::ALL, 1500);
    println!("{census}");
    let clean = census.clean * 100 / census.programs;
    assert!((25..=70).contains(&clean), "{clean} of 100 are clean");
    let rare: Vec<_> = FEATURES.iter().filter(|it| census.features.get(*it).copied().unwrap_or(0) < 5).collect();
    assert!(rare.is_empty(), "hardly ever: {rare:?}");
    let missing: Vec<_> = HazardKind::ALL.iter().filter(|it| !census.features.contains_key(it.short())).collect();
    assert!(missing.is_empty(), "never: {missing:?}");
    assert!(census.blocked * 20 < census.programs);
}

#[test]
fn the_first_stage_is_balanced_too() {
    for kinds in [ProgramFeatures::BARRIERS, ProgramFeatures::WITHOUT_RENDERING] {
        let census = census(&kinds, 600);
        println!("{census}");
        let clean = census.clean * 100 / census.programs;
        assert!((25..=70).contains(&clean), "{clean} of 100 are clean");
        let later = ["render pass", "rendering", "host access", "shared memory", "present", "ownership transfer"];
        assert!(later.iter().all(|it| !census.features.contains_key(it)));
    }
}

#[test]
fn a_seed_always_gives_the_same_program() {
    for seed in 0..50 {
        assert_eq!(random_program(seed, &ProgramFeatures::ALL), random_program(seed, &ProgramFeatures::ALL));
    }
    assert_ne!(random_program(1, &ProgramFeatures::ALL), random_program(2, &ProgramFeatures::ALL));
}

/// What the oracle found, as an engine would say it.
fn found(program: &Program, verdicts: &[CellHazard]) -> Vec<Hazard> {
    let all = verdicts.iter().map(|verdict| {
        let (resource, region) = region_of(program, verdict.cell);
        Hazard {
            kind: verdict.conflicts[0].kind,
            at: verdict.at.clone(),
            prior: verdict.conflicts[0].at.clone(),
            resource,
            region,
        }
    });
    all.collect()
}

/// A resource and a region of it that is just one cell.
fn region_of(program: &Program, cell: MemoryCell) -> (lavascope_sync_ir::ResourceId, Region) {
    use lavascope_sync_ir::{Area, Components, ImageRegion, ResourceId, ResourceKind};
    match cell {
        MemoryCell::Byte { resource, byte } => (ResourceId(resource), Region::Buffer(byte..byte + 1)),
        MemoryCell::Texel { image, aspect, mip, layer, texel, component }
        | MemoryCell::SparseBlock { image, aspect, mip, layer, texel, component, .. } => {
            let area = Some(Area { offset: texel, extent: [1; 3] });
            let (mips, layers) = (mip..mip + 1, layer..layer + 1);
            let components = Components(1 << component);
            (ResourceId(image), Region::Image(ImageRegion { aspects: aspect, mips, layers, area, components }))
        }
        MemoryCell::Memory { memory, byte } => {
            let resources = program.resources.iter().enumerate();
            let found =
                resources.filter_map(|(number, it)| Some((number, it, it.binding?))).find_map(|(number, item, at)| {
                    let is_here = at.memory.0 == memory && (at.offset..at.offset + at.size).contains(&byte);
                    let offset = byte.wrapping_sub(at.offset);
                    match item.kind {
                        ResourceKind::Buffer { .. } if is_here => {
                            Some((ResourceId(number as u32), Region::Buffer(offset..offset + 1)))
                        }
                        ResourceKind::Image(_) if is_here => {
                            let region = lavascope_oracle::notation::texels(offset as u32, offset as u32 + 1);
                            let region = Region::Image(region);
                            let id = ResourceId(number as u32);
                            cells_of(program, id, &region).contains(&cell).then_some((id, region))
                        }
                        _ => None,
                    }
                });
            found.expect("memory of some resource")
        }
    }
}

#[test]
fn the_oracle_agrees_with_itself() {
    for seed in 0..150 {
        let program = random_program(seed, &ProgramFeatures::ALL);
        for rules in [OracleRules::SPECIFICATION, CONTRACT] {
            let verdicts = find_hazards(&program, rules).hazards;
            let engine = |it: &Program| found(it, &find_hazards(it, rules).hazards);
            assert_eq!(compare(&program, &verdicts, &engine), None);
        }
    }
}

/// All masks of a program that dependencies are made of.
fn masks(program: &mut Program) -> Vec<&mut u64> {
    let mut all = Vec::new();
    for step in &mut program.steps {
        if let HostStep::Submit { batches, .. } = step {
            for batch in batches {
                all.extend(batch.waits.iter_mut().map(|it| &mut it.stages));
                all.extend(batch.signals.iter_mut().map(|it| &mut it.stages));
            }
        }
    }
    let scopes = program.render_passes.iter_mut().flat_map(|it| &mut it.dependencies).map(|it| &mut it.scope);
    let mut scopes: Vec<_> = scopes.collect();
    for command in program.command_buffers.iter_mut().flat_map(|it| &mut it.commands) {
        match command {
            Command::Barrier(Barrier::Sync1 { src_stages, dst_stages, dependencies })
            | Command::WaitEvents(WaitEvents::Sync1 { src_stages, dst_stages, dependencies, .. }) => {
                all.extend([src_stages, dst_stages]);
                scopes.extend(dependencies.iter_mut().map(|it| &mut it.scope));
            }
            Command::Barrier(Barrier::Sync2 { dependencies }) => {
                scopes.extend(dependencies.iter_mut().map(|it| &mut it.scope));
            }
            Command::WaitEvents(WaitEvents::Sync2 { events }) => {
                scopes.extend(events.iter_mut().flat_map(|it| &mut it.1).map(|it| &mut it.scope));
            }
            Command::SetEvent(SetEvent::Sync1 { stages, .. }) => all.push(stages),
            _ => {}
        }
    }
    for scope in scopes {
        all.extend([&mut scope.src_stages, &mut scope.src_access, &mut scope.dst_stages, &mut scope.dst_access]);
    }
    all
}

#[test]
fn weaker_masks_never_help() {
    let mut random = TestRng::new(7);
    let (mut compared, mut worse) = (0, 0);
    for seed in 0..300 {
        let program = random_program(seed, &ProgramFeatures::ALL);
        let mut weaker = program.clone();
        let mut all = masks(&mut weaker);
        if all.is_empty() {
            continue;
        }
        let at = random.below(all.len() as u64) as usize;
        *all[at] &= random.next_u64();
        for rules in [OracleRules::SPECIFICATION, CONTRACT] {
            let cells = |item: &Program| -> Vec<MemoryCell> {
                find_hazards(item, rules).hazards.iter().map(|it| it.cell).collect()
            };
            let (before, after) = (cells(&program), cells(&weaker));
            assert!(before.iter().all(|it| after.contains(it)), "seed {seed}: {}", print(&weaker));
            compared += 1;
            worse += u32::from(after.len() > before.len());
        }
    }
    assert!(worse * 20 > compared, "{worse} of {compared} were worse");
}

#[test]
fn whatever_waits_for_everything_is_clean() {
    for seed in 0..300 {
        let mut program = random_program(seed, &ProgramFeatures::WITHOUT_RENDERING);
        for buffer in &mut program.command_buffers {
            let scope = SyncScope {
                src_stages: PipelineStageFlags2::ALL_COMMANDS.0,
                src_access: AccessFlags2::MEMORY_WRITE.0,
                dst_stages: PipelineStageFlags2::ALL_COMMANDS.0,
                dst_access: AccessFlags2::MEMORY_READ.0 | AccessFlags2::MEMORY_WRITE.0,
            };
            let barrier = Barrier::Sync2 { dependencies: vec![Dependency { scope, target: DependencyTarget::Global }] };
            let commands = std::mem::take(&mut buffer.commands);
            buffer.commands = commands.into_iter().flat_map(|it| [Command::Barrier(barrier.clone()), it]).collect();
        }
        let mut steps = std::mem::take(&mut program.steps);
        let batches = steps.iter_mut().flat_map(|step| match step {
            HostStep::Submit { batches, .. } => &mut batches[..],
            _ => &mut [],
        });
        for batch in batches {
            batch.waits.iter_mut().for_each(|it| it.stages = PipelineStageFlags2::ALL_COMMANDS.0);
            batch.signals.iter_mut().for_each(|it| it.stages = PipelineStageFlags2::ALL_COMMANDS.0);
        }
        program.steps = steps.into_iter().flat_map(|it| [it, HostStep::DeviceIdle]).collect();
        let outcome = find_hazards(&program, CONTRACT);
        // A wait for a later signal, in no stage, orders nothing, and no step waits for it in time.
        let batches = program.steps.iter().flat_map(|step| match step {
            HostStep::Submit { batches, .. } => &batches[..],
            _ => &[],
        });
        let has_empty_wait = batches.flat_map(|it| &it.waits).any(|it| it.stages == 0);
        let is_signaled = program.steps.iter().any(|it| matches!(it, HostStep::SignalSemaphore(_)));
        if !outcome.blocked.is_empty() || has_empty_wait || is_signaled {
            continue;
        }
        assert_eq!(outcome.hazards, [], "seed {seed}: {}", print(&program));
    }
}

#[test]
fn each_switch_makes_a_difference() {
    let switches = [
        OracleRules { most_recent_reads: false, ..CONTRACT },
        OracleRules { visible_writes: false, ..CONTRACT },
        OracleRules { all_transitions_ordered: false, ..CONTRACT },
    ];
    for rules in switches {
        let engine = |it: &Program| found(it, &find_hazards(it, rules).hazards);
        let programs = (0..3000).map(|seed| random_program(seed, &ProgramFeatures::ALL));
        let disagreement = programs.filter_map(|it| find_disagreement(&it, CONTRACT, &engine)).next();
        let (program, why) = disagreement.expect("a program that tells them apart");
        let commands: usize = program.command_buffers.iter().map(|it| it.commands.len()).sum();
        assert!(commands <= 8, "{}", describe(&program, &why));
    }
}

#[test]
fn an_engine_that_forgets_something_is_caught() {
    let lazy = |item: &Program| {
        let all = found(item, &find_hazards(item, CONTRACT).hazards);
        all.into_iter().filter(|it| it.kind != HazardKind::WriteAfterRead).collect()
    };
    let mut programs = (0..1000).map(|seed| random_program(seed, &ProgramFeatures::WITHOUT_RENDERING));
    let (program, why) = programs.find_map(|it| find_disagreement(&it, CONTRACT, &lazy)).expect("it is caught");
    assert!(why.engine.is_none());
    let text = describe(&program, &why);
    assert!(text.contains("WAR") && text.contains("engine none"), "{text}");
    let commands: usize = program.command_buffers.iter().map(|it| it.commands.len()).sum();
    assert!((1..=3).contains(&commands), "{text}");
}

#[test]
fn comparison_wants_access_kind_and_partner() {
    let program = parse("cb0:\nTR.W [0,1)\nTR.r [0,1)\nsubmit q0 cbs[0]");
    let verdicts = find_hazards(&program, CONTRACT).hazards;
    let right = found(&program, &verdicts);
    assert_eq!(compare(&program, &verdicts, &|_| right.clone()), None);
    let wrong_kind = Hazard { kind: HazardKind::WriteAfterWrite, ..right[0].clone() };
    let wrong_place = Hazard { at: ProgramLocation::Step(7), ..right[0].clone() };
    let wrong_partner = Hazard { prior: right[0].at.clone(), ..right[0].clone() };
    for wrong in [wrong_kind, wrong_place, wrong_partner] {
        assert!(compare(&program, &verdicts, &|_| vec![wrong.clone()]).is_some());
    }
    assert!(compare(&program, &verdicts, &|_| Vec::new()).is_some());
    assert!(compare(&program, &[], &|_| right.clone()).is_some());
}

#[test]
fn shrinking_keeps_what_is_interesting() {
    let seed = (0..).find(|value| {
        let outcome = find_hazards(&random_program(*value, &ProgramFeatures::ALL), CONTRACT);
        outcome.hazards.iter().any(|it| it.conflicts[0].kind == HazardKind::WriteRacingWrite)
    });
    let program = random_program(seed.expect("some program races"), &ProgramFeatures::ALL);
    let races = |item: &Program| {
        let verdicts = find_hazards(item, CONTRACT).hazards;
        verdicts.iter().any(|it| it.conflicts[0].kind == HazardKind::WriteRacingWrite)
    };
    let small = shrink(&program, &races);
    assert!(races(&small));
    assert!(small.steps.len() <= 2, "{}", print(&small));
}
