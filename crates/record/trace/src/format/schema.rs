//! The numbers of commands and object types in a file, by name.
//!
//! The body of a call has the C layout of its structures, which never changes for an existing command. But a new
//! version of the registry may add commands, and change their numbers.

use lavascope_abi::{Command, HandleType};
use serde::{Deserialize, Serialize};

use crate::error::TraceError;

/// The names of all numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Schema {
    /// By number.
    commands: Vec<String>,
    /// Each name with its number.
    handles: Vec<(String, u8)>,
}

/// The names of all commands of this version, in order, each with a terminating zero. They are contiguous, so that
/// comparing them with those of a file does not read all tables of the registry.
static COMMAND_NAMES: [u8; COMMAND_NAMES_SIZE] = command_names();

const COMMAND_NAMES_SIZE: usize = {
    let (mut size, mut at) = (0, 0);
    while at < Command::ALL.len() {
        size += Command::ALL[at].desc().name.len() + 1;
        at += 1;
    }
    size
};

const fn command_names() -> [u8; COMMAND_NAMES_SIZE] {
    let (mut all, mut end, mut at) = ([0; COMMAND_NAMES_SIZE], 0, 0);
    while at < Command::ALL.len() {
        let name = Command::ALL[at].desc().name.as_bytes();
        let mut byte = 0;
        while byte < name.len() {
            all[end + byte] = name[byte];
            byte += 1;
        }
        end += name.len() + 1;
        at += 1;
    }
    all
}

impl Schema {
    /// The schema of this version.
    pub(crate) fn current() -> Schema {
        Schema {
            commands: Command::ALL.iter().map(|it| it.desc().name.to_owned()).collect(),
            handles: HandleType::ALL.iter().map(|it| (it.name().to_owned(), *it as u8)).collect(),
        }
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    pub(crate) fn decode(block: &[u8], at: u64) -> Result<Schema, TraceError> {
        serde_json::from_slice(block).map_err(|error| TraceError::Contents {
            at,
            inside: error.column() as u64,
            what: "the names of commands cannot be read",
        })
    }

    /// The translation from this schema to that of this version.
    pub(crate) fn renumbering(&self) -> SchemaRenumbering {
        let names = self.commands.iter().flat_map(|it| it.bytes().chain([0]));
        let commands = (!names.eq(COMMAND_NAMES.iter().copied())).then(|| {
            let own = Schema::current().commands;
            let number = |name: &String| own.iter().position(|it| it == name).map(|it| it as u16);
            self.commands.iter().map(number).collect()
        });
        let own = |name: &str| HandleType::ALL.iter().find(|it| it.name() == name).map(|it| *it as u8);
        // Types that only the file has, or only this version has, do not matter.
        let is_alike = self.handles.iter().all(|(name, number)| own(name).is_none_or(|it| it == *number));
        let handles = (!is_alike).then(|| {
            let mut numbers = Box::new([0u8; 256]);
            for (name, number) in &self.handles {
                numbers[usize::from(*number)] = own(name).unwrap_or(0);
            }
            numbers
        });
        SchemaRenumbering { commands, handles }
    }
}

/// Translates numbers of a file to those of this version.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SchemaRenumbering {
    /// None if the numbers are the same.
    commands: Option<Vec<Option<u16>>>,
    handles: Option<Box<[u8; 256]>>,
}

impl SchemaRenumbering {
    /// The number of a command in this version; none if it is unknown.
    pub(crate) fn command(&self, number: u16) -> Option<u16> {
        match &self.commands {
            None => Some(number),
            Some(all) => all.get(usize::from(number)).copied().flatten(),
        }
    }

    /// The translation of object types; none if all numbers are the same.
    pub(crate) fn handles(&self) -> Option<&[u8; 256]> {
        self.handles.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_with_other_numbers_is_read_by_names() {
        let mut old = Schema::current();
        old.commands.swap(0, 1);
        old.commands.push("vkOfAnotherTime".into());
        let last = old.commands.len() as u16 - 1;
        let read = Schema::decode(&old.encode(), 0).expect("our own");
        let numbers = read.renumbering();
        assert_eq!(numbers.handles(), None);
        assert_eq!([0, 1, 2, last, last + 1].map(|it| numbers.command(it)), [Some(1), Some(0), Some(2), None, None]);
        assert_eq!(Schema::current().renumbering(), SchemaRenumbering::default());
    }

    #[test]
    fn other_numbers_of_objects_are_reported_by_names() {
        let mut old = Schema::current();
        let (first, second) = (old.handles[0].1, old.handles[1].1);
        (old.handles[0].1, old.handles[1].1) = (second, first);
        old.handles.push(("VkOfAnotherTime".into(), 200));
        let numbers = old.renumbering();
        let handles = numbers.handles().expect("they differ");
        assert_eq!((handles[usize::from(first)], handles[usize::from(second)], handles[200]), (second, first, 0));
        assert_eq!(handles[usize::from(old.handles[2].1)], old.handles[2].1);
        assert!(matches!(Schema::decode(b"{", 6), Err(TraceError::Contents { at: 6, .. })));
    }
}
