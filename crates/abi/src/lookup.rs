//! Finding a structure or command.

use crate::desc::Layout;
use crate::{COMMANDS, Command, STRUCTURE_TYPES, STRUCTURES};

/// The structure with a `VkStructureType`, if this registry knows it.
pub fn structure_by_type(s_type: i32) -> Option<&'static Layout> {
    let at = STRUCTURE_TYPES.binary_search_by_key(&s_type, |it| it.0).ok()?;
    Some(STRUCTURE_TYPES[at].1)
}

/// The structure or union with a C name.
pub fn structure_by_name(c_name: &str) -> Option<&'static Layout> {
    let at = STRUCTURES.binary_search_by_key(&c_name, |it| it.name).ok()?;
    Some(STRUCTURES[at])
}

/// The command with a C name or alias.
pub fn command_by_name(c_name: &str) -> Option<Command> {
    if let Ok(at) = COMMANDS.binary_search_by_key(&c_name, |it| it.name) {
        return Some(Command::ALL[at]);
    }
    Command::ALL.iter().copied().find(|it| it.desc().aliases.contains(&c_name))
}
