//! Which effects of a command the caches may rely on, from the lists that `codegen` generates from one table.
//!
//! A command in no list is never part of a cached call sequence, and it invalidates all cached state. `docs/caches.md`
//! describes the caches.

use lavascope_abi::Command;

use crate::generated::{KEEPS_ATTACHMENTS, KEEPS_RECORDINGS, REPEATABLE};

const IS_REPEATABLE: u8 = 1;
const DOES_KEEP_ATTACHMENTS: u8 = 2;
const DOES_KEEP_RECORDINGS: u8 = 4;

/// The effects of each command, as bits.
static EFFECTS: [u8; Command::ALL.len()] = {
    let none = [0; Command::ALL.len()];
    let repeatable = with_effect(none, REPEATABLE, IS_REPEATABLE);
    let attachments = with_effect(repeatable, KEEPS_ATTACHMENTS, DOES_KEEP_ATTACHMENTS);
    with_effect(attachments, KEEPS_RECORDINGS, DOES_KEEP_RECORDINGS)
};

const fn with_effect<const N: usize>(mut effects: [u8; N], listed: &[Command], effect: u8) -> [u8; N] {
    let mut at = 0;
    while at < listed.len() {
        effects[listed[at] as usize] |= effect;
        at += 1;
    }
    effects
}

/// Commands whose accesses depend only on their parameters, on earlier recorded commands, and on objects that
/// [`Tracker::change_count`](crate::Tracker::change_count) covers.
pub const REPEATABLE_COMMANDS: &[Command] = REPEATABLE;

/// Whether a draw after this command has the same attachment accesses as the draw before it.
#[inline]
pub(crate) fn keeps_attachments(command: Command) -> bool {
    EFFECTS[command as usize] & DOES_KEEP_ATTACHMENTS != 0
}

/// Whether this command leaves the accesses of all later commands unchanged.
#[inline]
pub(crate) fn keeps_recordings(command: Command) -> bool {
    EFFECTS[command as usize] & DOES_KEEP_RECORDINGS != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_has_the_effects_of_the_lists_that_it_is_in() {
        for command in Command::ALL {
            assert_eq!(keeps_attachments(*command), KEEPS_ATTACHMENTS.contains(command), "{command:?}");
            assert_eq!(keeps_recordings(*command), KEEPS_RECORDINGS.contains(command), "{command:?}");
        }
    }
}
