//! Finding a structure or command.

use crate::desc::Layout;
use crate::{COMMAND_NAMES, Command, STRUCTURE_TYPES, STRUCTURES};

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

/// The command with a C name or alias; none for one that is newer than this registry.
pub fn command_by_name(c_name: &str) -> Option<Command> {
    let at = COMMAND_NAMES.binary_search_by_key(&c_name, |it| it.0).ok()?;
    Some(COMMAND_NAMES[at].1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_and_alias_has_a_name() {
        assert!(COMMAND_NAMES.is_sorted_by_key(|it| it.0));
        for command in Command::ALL {
            let desc = command.desc();
            for name in std::iter::once(&desc.name).chain(desc.aliases) {
                assert_eq!(command_by_name(name), Some(*command), "{name}");
            }
        }
        assert_eq!(command_by_name("vkCmdDrawFromTheFuture"), None);
    }
}
