//! A verdict for every command of the registry: who understands it, or why it does not matter, or what is missing.
//!
//! A test fails for a command that has none or two, and feeds every command to the family that is said to take it.

mod ignored;
mod missing;
mod understood;

use std::sync::LazyLock;

use lavascope_abi::Command;

/// What the tracker makes of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    Understood(Family, When),
    /// It has nothing to do with what the tracker follows, for a reason.
    Ignored(&'static str),
    /// It matters, and the tracker does not follow it: it is counted and named whenever it is called.
    Missing(&'static str),
}

/// When a call takes effect for us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Before the driver sees it.
    Enter,
    /// When its results are known.
    Leave,
}

/// The part of the tracker that takes a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    Device,
    Memory,
    Image,
    CommandBuffer,
    Copy,
    Barrier,
    Sync,
    Queue,
    Swapchain,
    RenderPass,
    Rendering,
    Pipeline,
    Descriptor,
    Bind,
    Draw,
    Query,
    Ray,
    Address,
    HostCopy,
    Video,
}

/// The verdict on a command.
pub fn decision(command: Command) -> Decision {
    VERDICTS[command as usize]
}

/// A list of commands by their names.
macro_rules! commands {
    ($($name:ident)*) => {
        &[$(lavascope_abi::Command::$name,)*]
    };
}
pub(crate) use commands;

type Reasons = &'static [(&'static str, &'static [Command])];
type Takers = &'static [(Family, When, &'static [Command])];

static VERDICTS: LazyLock<Vec<Decision>> = LazyLock::new(|| {
    let mut all = vec![Decision::Missing("no decision"); Command::ALL.len()];
    for (command, decision) in every() {
        all[command as usize] = decision;
    }
    all
});

/// All verdicts as they stand in the tables.
fn every() -> impl Iterator<Item = (Command, Decision)> {
    let of_reasons = |reasons: Reasons, make: fn(&'static str) -> Decision| {
        reasons.iter().flat_map(move |(reason, all)| all.iter().map(move |it| (*it, make(reason))))
    };
    let understood = understood::UNDERSTOOD
        .iter()
        .flat_map(|(family, when, all)| all.iter().map(|it| (*it, Decision::Understood(*family, *when))));
    understood
        .chain(of_reasons(ignored::IGNORED, Decision::Ignored))
        .chain(of_reasons(missing::MISSING, Decision::Missing))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_one_decision() {
        let mut counts = vec![0; Command::ALL.len()];
        for (command, _) in every() {
            counts[command as usize] += 1;
        }
        for command in Command::ALL {
            assert_eq!(counts[*command as usize], 1, "decisions on {command:?}");
        }
    }

    #[test]
    fn what_has_no_results_is_not_waited_for() {
        for command in Command::ALL {
            if let Decision::Understood(_, When::Leave) = decision(*command) {
                assert!(command.desc().outputs.is_some(), "{command:?} has no results");
            }
        }
    }
}
