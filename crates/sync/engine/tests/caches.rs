//! The engine with its caches and without them, on every scenario and on random programs: both find the same.
//!
//! `cargo xtask sim --caches` makes it more programs, and others. `docs/caches.md` describes the caches.

use std::collections::BTreeSet;
use std::path::Path;

use lavascope_engine::{Engine, Rules};
use lavascope_scenario::parse;
use lavascope_sim::programs::{ProgramFeatures, make_sparse, print, random_program, share_memory};
use lavascope_sync_ir::{Command, CommandBuffer, CommandBufferId, Findings, HostStep, Program, Queue};

const PROGRAMS: u64 = 4_000;

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
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

/// What is found, without the parts of resources. A hazard may be found in other pieces of the same resource: how
/// memory is cut depends on what was looked at before.
fn causes(found: &Findings) -> BTreeSet<String> {
    let hazards = found.hazards.iter().map(|it| format!("{:?} {:?} {:?} {:?}", it.kind, it.resource, it.at, it.prior));
    let faults = found.faults.iter().map(|it| format!("{:?} {:?} {:?} {:?}", it.kind, it.resource, it.at, it.prior));
    hazards.chain(faults).collect()
}

/// Records and executes a program, in this way or that by its seed. Gives what is found by each command and each step.
fn run(program: &Program, seed: u64, has_caches: bool) -> Vec<BTreeSet<String>> {
    let mut empty = program.clone();
    empty.command_buffers.iter_mut().for_each(|it| it.commands.clear());
    let rules = if seed % 5 == 4 { Rules::SPECIFICATION } else { Rules::CONTRACT };
    let mut engine = Engine::with_program(rules, &empty);
    if !has_caches {
        engine.disable_caches();
    }
    let mut found = Vec::new();
    for is_secondary in [true, false] {
        let buffers = (0..).map(CommandBufferId).zip(&program.command_buffers);
        for (id, buffer) in buffers.filter(|it| it.1.is_secondary == is_secondary) {
            if seed % 7 == 6 {
                engine.set_command_buffer(id, buffer.clone());
                continue;
            }
            engine.begin_recording(id, queue_of(program, id), buffer.is_secondary);
            for (index, command) in buffer.commands.iter().enumerate() {
                if seed % 3 == 2 && (index + id.0 as usize).is_multiple_of(4) {
                    engine.check_command(id, command.clone());
                    engine.undo_last_command(id);
                }
                found.push(causes(&engine.check_command(id, command.clone())));
            }
            if !id.0.is_multiple_of(2) {
                engine.end_recording(id);
            }
        }
    }
    for step in &program.steps {
        engine.step(step);
        found.push(causes(&Findings { hazards: engine.take_hazards(), faults: engine.take_faults() }));
    }
    found
}

/// Compares both, and gives how much was found.
fn compare(what: &str, program: &Program, seed: u64) -> usize {
    let [cached, uncached] = [true, false].map(|has_caches| run(program, seed, has_caches));
    assert!(
        cached == uncached,
        "{what}: with caches {:?}\nwithout {:?}\n{}",
        cached.iter().flatten().filter(|it| !uncached.iter().any(|all| all.contains(*it))).collect::<Vec<_>>(),
        uncached.iter().flatten().filter(|it| !cached.iter().any(|all| all.contains(*it))).collect::<Vec<_>>(),
        print(program)
    );
    cached.iter().map(BTreeSet::len).sum()
}

/// Does some of a command buffer more than once: most caches serve what comes again.
fn repeat(buffer: &mut CommandBuffer, times: usize) {
    let times = |it: &Command| if matches!(it, Command::Action(_)) { times } else { 1 };
    let commands = std::mem::take(&mut buffer.commands);
    buffer.commands = commands.into_iter().flat_map(|it| vec![it.clone(); times(&it)]).collect();
}

#[test]
fn scenarios_have_the_same_findings_without_caches() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios");
    let (mut count, mut found) = (0, 0);
    for entry in std::fs::read_dir(folder).expect("the folder is there") {
        for file in std::fs::read_dir(entry.expect("an entry").path()).expect("a folder of scenarios") {
            let path = file.expect("an entry").path();
            if path.extension().is_none_or(|it| it != "vks") {
                continue;
            }
            let text = std::fs::read_to_string(&path).expect("a text");
            let program = parse(&text).expect("a scenario").program;
            // Seed 0 records plainly, by the rules that users see.
            found += compare(&path.to_string_lossy(), &program, 0);
            count += 1;
        }
    }
    assert!(count > 100 && found > 100, "{found} findings in {count} scenarios");
}

#[test]
fn random_programs_have_the_same_findings_without_caches() {
    let first = number("LAVASCOPE_SAMPLE_SEED").unwrap_or(1);
    let programs = number("LAVASCOPE_SAMPLE_PROGRAMS").unwrap_or(PROGRAMS);
    let mut found = 0;
    for seed in first..first + programs {
        let features = if seed.is_multiple_of(2) { ProgramFeatures::ALL } else { ProgramFeatures::BARRIERS };
        let mut program = random_program(seed, &features);
        for (index, buffer) in program.command_buffers.iter_mut().enumerate() {
            repeat(buffer, 1 + (seed as usize + index) % 3);
        }
        match seed % 11 {
            3 | 6 => share_memory(&mut program),
            9 => make_sparse(&mut program, seed),
            _ => {}
        }
        found += compare(&format!("seed {seed}"), &program, seed);
    }
    assert!(found as u64 > programs / 2, "{found} findings in {programs} programs");
}
