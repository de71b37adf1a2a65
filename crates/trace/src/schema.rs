//! How commands and types of objects are numbered in a file, by their names.
//!
//! Images of calls are laid out as C lays them out, which never changes for a command or structure that exists. What
//! may change from one version of the registry to the next is how they are numbered, and what there is.

use lavascope_abi::{Command, HandleType};
use serde::{Deserialize, Serialize};

use crate::error::TraceError;

/// The names behind the numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Schema {
    /// By number.
    commands: Vec<String>,
    /// Each with its number.
    handles: Vec<(String, u8)>,
}

impl Schema {
    /// That of this version.
    pub(crate) fn own() -> Schema {
        Schema {
            commands: Command::ALL.iter().map(|it| it.desc().name.to_owned()).collect(),
            handles: HandleType::ALL.iter().map(|it| (it.name().to_owned(), *it as u8)).collect(),
        }
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    pub(crate) fn decode(block: &[u8], at: u64) -> Result<Schema, TraceError> {
        serde_json::from_slice(block).map_err(|it| TraceError::Contents {
            at,
            inside: it.column() as u64,
            what: "the names of commands cannot be read",
        })
    }

    /// How to read a file that has this schema.
    pub(crate) fn numbers(&self, at: u64) -> Result<Numbers, TraceError> {
        let own = Schema::own();
        if own.handles.iter().any(|it| self.handles.iter().any(|other| other.0 == it.0 && other.1 != it.1)) {
            let what = "types of objects are numbered in another way; use the version that made the trace";
            return Err(TraceError::Block { at, what });
        }
        if own.commands == self.commands {
            return Ok(Numbers(None));
        }
        let number = |name: &String| own.commands.iter().position(|it| it == name).map(|it| it as u16);
        Ok(Numbers(Some(self.commands.iter().map(number).collect())))
    }
}

/// From the numbers of a file to those of this version.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Numbers(Option<Vec<Option<u16>>>);

impl Numbers {
    /// Whether the file is numbered as this version is.
    pub(crate) fn are_own(&self) -> bool {
        self.0.is_none()
    }

    /// The number of a command here; none if this version does not know it.
    pub(crate) fn command(&self, number: u16) -> Option<u16> {
        match &self.0 {
            None => Some(number),
            Some(all) => all.get(usize::from(number)).copied().flatten(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_with_other_numbers_is_read_by_names() {
        let mut old = Schema::own();
        old.commands.swap(0, 1);
        old.commands.push("vkOfAnotherTime".into());
        let last = old.commands.len() as u16 - 1;
        let read = Schema::decode(&old.encode(), 0).expect("our own");
        let numbers = read.numbers(0).expect("handles are alike");
        assert_eq!([0, 1, 2, last, last + 1].map(|it| numbers.command(it)), [Some(1), Some(0), Some(2), None, None]);
        assert_eq!(Schema::own().numbers(0), Ok(Numbers(None)));
    }

    #[test]
    fn other_types_of_objects_are_refused() {
        let mut old = Schema::own();
        old.handles[0].1 += 100;
        assert!(matches!(old.numbers(5), Err(TraceError::Block { at: 5, .. })));
        assert!(matches!(Schema::decode(b"{", 6), Err(TraceError::Contents { at: 6, .. })));
    }
}
