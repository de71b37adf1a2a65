//! Leaves out of random programs what the peer judges otherwise by design: the table in `docs/differences.md` has it,
//! and a run in which every other program needs it shows nothing.

use lavascope_abi::{AccessFlags2 as A, PipelineStageFlags2 as S};
use lavascope_sync_ir::{
    Access, Barrier, Command, Dependency, DependencyTarget, HostStep, Program, RasterOrder, SetEvent, SyncScope, WaitEvents,
};

use crate::separate_events::separate_events;

/// The program without what the peer does not follow.
pub(crate) fn within_peer_limits(program: &Program) -> Program {
    let mut made = separate_events(program);
    for command in made.command_buffers.iter_mut().flat_map(|it| &mut it.commands) {
        match command {
            Command::Action(accesses) => accesses.retain(|it| !is_lone_attachment(it)),
            Command::Barrier(Barrier::Sync1 { dependencies, .. })
            | Command::WaitEvents(WaitEvents::Sync1 { dependencies, .. }) => share_scopes(dependencies, SharedBy::All),
            Command::Barrier(Barrier::Sync2 { dependencies })
            | Command::SetEvent(SetEvent::Sync2 { dependencies, .. }) => {
                share_scopes(dependencies, SharedBy::Transitions)
            }
            Command::WaitEvents(WaitEvents::Sync2 { events }) => {
                events.iter_mut().for_each(|it| share_scopes(&mut it.1, SharedBy::Transitions))
            }
            _ => {}
        }
    }
    for step in &mut made.steps {
        let HostStep::Submit { batches, .. } = step else { continue };
        for batch in batches {
            batch.waits.iter_mut().for_each(|it| fill_stages(&mut it.stages));
            batch.signals.iter_mut().for_each(|it| fill_stages(&mut it.stages));
        }
    }
    for buffer in &mut made.command_buffers {
        buffer.commands.retain(|it| !matches!(it, Command::Action(accesses) if accesses.is_empty()));
    }
    made
}

/// What comes after a signal that waits for nothing depends on other signals and fences, which the peer keeps apart.
fn fill_stages(stages: &mut u64) {
    if *stages == 0 {
        *stages = S::ALL_COMMANDS.0;
    }
}

/// A draw with a render pass instance of its own: the peer has the order of fragments across instances, too.
fn is_lone_attachment(access: &Access) -> bool {
    let stages = S::COLOR_ATTACHMENT_OUTPUT.0 | S::EARLY_FRAGMENT_TESTS.0 | S::LATE_FRAGMENT_TESTS.0;
    let is_input = access.access == A::INPUT_ATTACHMENT_READ.0;
    access.order == RasterOrder::None && access.stage & stages != 0 && !is_input
}

/// Which dependencies of a command get the masks of all.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SharedBy {
    /// The peer lets each barrier of a command cover what the transitions of that command write.
    Transitions,
    /// In version 1 the access scopes are those of all elements together, and the peer keeps the elements apart.
    All,
}

fn share_scopes(dependencies: &mut [Dependency], shared_by: SharedBy) {
    let all = dependencies.iter().fold(SyncScope::default(), |all, it| SyncScope {
        src_stages: all.src_stages | it.scope.src_stages,
        src_access: all.src_access | it.scope.src_access,
        dst_stages: all.dst_stages | it.scope.dst_stages,
        dst_access: all.dst_access | it.scope.dst_access,
    });
    let is_transition = |it: &Dependency| matches!(it.target, DependencyTarget::Transition { .. });
    let shares = |it: &&mut Dependency| shared_by == SharedBy::All || is_transition(it);
    dependencies.iter_mut().filter(shares).for_each(|it| it.scope = all);
}
