//! Counts calls, by command and by thread.

use std::collections::BTreeMap;

use lavascope_abi::Command;
use lavascope_record::encoding::{HEADER_SIZE, RecordHeader, RecordPhase};

#[derive(Default)]
pub(crate) struct CallStats {
    by_command: Vec<u64>,
    by_thread: BTreeMap<u32, u64>,
    /// The records must pass a check in debug builds, so that tests with real programs prove the packers.
    pub(crate) malformed: u64,
}

impl CallStats {
    pub(crate) fn record(&mut self, thread: u32, record: &[u64]) {
        let [first, second] = [record[0], record[HEADER_SIZE / 8 - 1]];
        let head = RecordHeader::from_words(first, second);
        if cfg!(debug_assertions) && lavascope_record::check(record).is_err() {
            self.malformed += 1;
        }
        if head.kind == RecordPhase::Enter as u8 {
            if self.by_command.is_empty() {
                self.by_command.resize(Command::ALL.len(), 0);
            }
            self.by_command[usize::from(head.command)] += 1;
            *self.by_thread.entry(thread).or_default() += 1;
        }
    }

    pub(crate) fn threads(&self) -> usize {
        self.by_thread.len()
    }

    pub(crate) fn calls(&self) -> u64 {
        self.by_command.iter().sum()
    }

    /// Commands that were called, by name.
    pub(crate) fn by_command(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let counts = Command::ALL.iter().zip(&self.by_command);
        counts.filter(|it| *it.1 > 0).map(|(command, count)| (command.desc().name, *count))
    }
}
