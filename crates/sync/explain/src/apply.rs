//! Makes a changed copy of a program, and says where its places went.

use lavascope_sync_ir::{
    Barrier, Batch, Command, CommandBufferId, Dependency, Place, Point, Program, Scope, SemaphoreId, SetEvent, Signal,
    Step, Wait, WaitEvents, What,
};

use super::change::{BatchSite, Change, HostWait};
use super::{BatchPart, Site};

/// The program with the change; none if it does not fit.
pub(super) fn apply(program: &Program, change: &Change) -> Option<Program> {
    let mut changed = program.clone();
    let it = &mut changed;
    match change {
        Change::AddBits { site, bits } => edit(it, *site, &mut |scope| *scope = join(*scope, *bits))?,
        Change::ExtendRange { site, region, .. } => match what_at(it, *site)? {
            What::Resource { region: own, .. } | What::Transition { region: own, .. } => *own = region.clone(),
            What::Memory | What::Ownership { .. } => return None,
        },
        Change::InsertBarrier { buffer, before, dependency, .. } => {
            let commands = &mut it.command_buffers.get_mut(buffer.0 as usize)?.commands;
            let barrier = Barrier::Two { dependencies: vec![dependency.clone()] };
            commands.insert((*before as usize).min(commands.len()), Command::Barrier(barrier));
        }
        Change::AddSubpassDependency { pass, dependency } => {
            it.render_passes.get_mut(pass.0 as usize)?.dependencies.push(*dependency);
        }
        Change::AddSemaphore { signal, after, wait, at } => {
            let point = new_semaphore(it);
            batch(it, *signal)?.signals.push(Signal { point, stages: *after });
            batch(it, *wait)?.waits.push(Wait { point, stages: *at });
        }
        Change::AddPresentWait { signal, after, present } => {
            let point = new_semaphore(it);
            batch(it, *signal)?.signals.push(Signal { point, stages: *after });
            let Some(Step::Present { waits, .. }) = it.steps.get_mut(*present as usize) else { return None };
            waits.push(point.semaphore);
        }
        Change::AddWait { semaphore, wait, at } => {
            let point = Point { semaphore: *semaphore, value: None };
            batch(it, *wait)?.waits.push(Wait { point, stages: *at });
        }
        Change::InsertHostWait { before, wait } => {
            let step = match wait {
                HostWait::Fence(fence) => Step::WaitFences(vec![*fence]),
                HostWait::Queue(queue) => Step::QueueIdle(*queue),
            };
            it.steps.insert((*before as usize).min(it.steps.len()), step);
        }
    }
    Some(changed)
}

/// Where a place of a program is after a change.
pub(super) fn moved(program: &Program, change: &Change, place: &Place) -> Place {
    match (change, place) {
        (Change::InsertHostWait { before, .. }, Place::Step(step)) => Place::Step(shifted(*step, *before)),
        (Change::InsertHostWait { before, .. }, Place::Command(at)) => {
            let mut at = at.clone();
            at.step = shifted(at.step, *before);
            Place::Command(at)
        }
        (Change::InsertBarrier { buffer, before, .. }, Place::Command(at)) => {
            let mut at = at.clone();
            let path = at.path.clone();
            for (level, own) in buffers_of(program, place).into_iter().enumerate() {
                if own == *buffer {
                    at.path[level * 2] = shifted(path[level * 2], *before);
                }
            }
            Place::Command(at)
        }
        _ => place.clone(),
    }
}

fn shifted(index: u32, before: u32) -> u32 {
    if index >= before { index + 1 } else { index }
}

/// The command buffers that a place lies in, outermost first.
pub(super) fn buffers_of(program: &Program, place: &Place) -> Vec<CommandBufferId> {
    let Place::Command(at) = place else { return Vec::new() };
    let Some(Step::Submit { batches, .. }) = program.steps.get(at.step as usize) else { return Vec::new() };
    let batch = batches.get(at.batch as usize);
    let Some(first) = batch.and_then(|it| it.command_buffers.get(at.primary as usize)) else { return Vec::new() };
    let mut found = vec![*first];
    for step in at.path.chunks_exact(2) {
        let buffer = found.last().and_then(|it| program.command_buffers.get(it.0 as usize));
        let command = buffer.and_then(|it| it.commands.get(step[0] as usize));
        let Some(Command::Execute(buffers)) = command else { break };
        found.extend(buffers.get(step[1] as usize));
    }
    found
}

fn join(left: Scope, right: Scope) -> Scope {
    Scope {
        src_stages: left.src_stages | right.src_stages,
        src_access: left.src_access | right.src_access,
        dst_stages: left.dst_stages | right.dst_stages,
        dst_access: left.dst_access | right.dst_access,
    }
}

pub(super) fn union(left: Scope, right: Scope) -> Scope {
    join(left, right)
}

/// Changes the masks of an operation, wherever they are kept.
pub(super) fn edit(program: &mut Program, site: Site, change: &mut dyn FnMut(&mut Scope)) -> Option<()> {
    match site {
        Site::Barrier { buffer, command, element } => {
            let Command::Barrier(barrier) = command_at(program, buffer, command)? else { return None };
            match barrier {
                Barrier::One { src_stages, dst_stages, dependencies } => {
                    edit_one(src_stages, dst_stages, dependencies, element, change)?;
                }
                Barrier::Two { dependencies } => change(&mut dependencies.get_mut(element? as usize)?.scope),
            }
        }
        Site::Event { set, buffer, command, event, element } => {
            edit_wait(command_at(program, buffer, command)?, event, element, change)?;
            if let Some((buffer, command)) = set {
                edit_set(command_at(program, buffer, command)?, element, change)?;
            }
        }
        Site::Subpass { pass, dependency } => {
            let pass = program.render_passes.get_mut(pass.0 as usize)?;
            change(&mut pass.dependencies.get_mut(dependency? as usize)?.scope);
        }
        Site::Semaphore { signal, wait } => {
            if let Some(part) = signal {
                let signal = batch_part(program, part)?.signals.get_mut(part.index as usize)?;
                let mut scope = Scope { src_stages: signal.stages, ..Scope::default() };
                change(&mut scope);
                signal.stages = scope.src_stages;
            }
            if let Some(part) = wait {
                let wait = batch_part(program, part)?.waits.get_mut(part.index as usize)?;
                let mut scope = Scope { dst_stages: wait.stages, ..Scope::default() };
                change(&mut scope);
                wait.stages = scope.dst_stages;
            }
        }
        Site::SetEvent { buffer, command } => edit_set(command_at(program, buffer, command)?, None, change)?,
        Site::Step(_) => return None,
    }
    Some(())
}

/// Version 1: the stages belong to the command, the accesses to its dependencies.
fn edit_one(
    src_stages: &mut u64,
    dst_stages: &mut u64,
    dependencies: &mut Vec<Dependency>,
    element: Option<u32>,
    change: &mut dyn FnMut(&mut Scope),
) -> Option<()> {
    let place = match element {
        Some(index) => index as usize,
        None => dependencies.iter().position(|it| it.what == What::Memory).unwrap_or(dependencies.len()),
    };
    let is_new = place == dependencies.len();
    let access = dependencies.get(place).map_or(Scope::default(), |it| it.scope);
    let mut scope = Scope { src_stages: *src_stages, dst_stages: *dst_stages, ..access };
    change(&mut scope);
    (*src_stages, *dst_stages) = (scope.src_stages, scope.dst_stages);
    if is_new {
        if scope.src_access | scope.dst_access != 0 {
            dependencies.push(Dependency { scope, what: What::Memory });
        }
    } else {
        dependencies[place].scope = scope;
    }
    Some(())
}

fn edit_wait(
    command: &mut Command,
    event: u32,
    element: Option<u32>,
    change: &mut dyn FnMut(&mut Scope),
) -> Option<()> {
    match command {
        Command::WaitEvents(WaitEvents::One { src_stages, dst_stages, dependencies, .. }) => {
            edit_one(src_stages, dst_stages, dependencies, element, change)
        }
        Command::WaitEvents(WaitEvents::Two { events }) => {
            let dependencies = &mut events.get_mut(event as usize)?.1;
            change(&mut dependencies.get_mut(element? as usize)?.scope);
            Some(())
        }
        _ => None,
    }
}

fn edit_set(command: &mut Command, element: Option<u32>, change: &mut dyn FnMut(&mut Scope)) -> Option<()> {
    match command {
        Command::SetEvent(SetEvent::One { stages, .. }) => {
            let mut scope = Scope { src_stages: *stages, ..Scope::default() };
            change(&mut scope);
            *stages = scope.src_stages;
        }
        Command::SetEvent(SetEvent::Two { dependencies, .. }) => {
            change(&mut dependencies.get_mut(element? as usize)?.scope);
        }
        _ => return None,
    }
    Some(())
}

fn command_at(program: &mut Program, buffer: CommandBufferId, command: u32) -> Option<&mut Command> {
    program.command_buffers.get_mut(buffer.0 as usize)?.commands.get_mut(command as usize)
}

/// What a dependency is about.
fn what_at(program: &mut Program, site: Site) -> Option<&mut What> {
    let (Site::Barrier { buffer, command, element } | Site::Event { buffer, command, element, .. }) = site else {
        return None;
    };
    let dependencies = match command_at(program, buffer, command)? {
        Command::Barrier(Barrier::One { dependencies, .. } | Barrier::Two { dependencies }) => dependencies,
        Command::WaitEvents(WaitEvents::One { dependencies, .. }) => dependencies,
        Command::WaitEvents(WaitEvents::Two { events }) => {
            let Site::Event { event, .. } = site else { return None };
            &mut events.get_mut(event as usize)?.1
        }
        _ => return None,
    };
    Some(&mut dependencies.get_mut(element? as usize)?.what)
}

fn new_semaphore(program: &mut Program) -> Point {
    program.semaphores += 1;
    Point { semaphore: SemaphoreId(program.semaphores - 1), value: None }
}

fn batch(program: &mut Program, site: BatchSite) -> Option<&mut Batch> {
    let Step::Submit { batches, .. } = program.steps.get_mut(site.step as usize)? else { return None };
    batches.get_mut(site.batch as usize)
}

fn batch_part(program: &mut Program, part: BatchPart) -> Option<&mut Batch> {
    batch(program, BatchSite { step: part.step, batch: part.batch })
}
