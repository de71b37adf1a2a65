//! What caches may assume of each command, from the lists that `codegen` makes of one table.
//!
//! A command that is in no list has no effect that a cache could rely on: it is never part of a cached call sequence,
//! and it invalidates what other calls left in the caches. `docs/caches.md` describes the caches.

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

/// Commands whose accesses follow from their parameters, from the commands recorded before them, and from objects that
/// [`Tracker::change_count`](crate::Tracker::change_count) watches.
pub const REPEATABLE_COMMANDS: &[Command] = REPEATABLE;

/// Whether a draw after this command accesses its attachments as the draw before it did.
#[inline]
pub(crate) fn keeps_attachments(command: Command) -> bool {
    EFFECTS[command as usize] & DOES_KEEP_ATTACHMENTS != 0
}

/// Whether all other recorded commands mean after this command what they meant before.
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
