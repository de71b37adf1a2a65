//! The usages and addresses of a command buffer's accesses, which are looked up once, however often it is executed.

use lavascope_sync_ir::{Access, Command, CommandBuffer, CommandBufferId, Queue, ResourceId};

use crate::access::addressed_access::AddressedAccess;
use crate::command_buffer::deferred_checks::DeferredCheck;
use crate::command_buffer::prepared_commands::{PreparedCommands, PreparedKind};
use crate::command_buffer::recording::{IsolatedExecution, ReportedFindings};
use crate::command_buffer::used_blocks::UsedBlocks;
use crate::memory::addresses::AddressMap;

/// A command buffer, made ready.
#[derive(Default)]
pub struct PreparedCommandBuffer {
    pub(crate) list: PreparedCommands,
    /// The value of `AddressMap::move_count` at the lookup.
    move_count: u64,
    /// The command buffers that it executes, with their versions.
    pub(crate) executed: Vec<(CommandBufferId, u64)>,
    /// How often it was changed.
    pub(crate) version: u64,
    /// Whether it waits for events, or executes a command buffer that executes others.
    pub(crate) has_event_wait: bool,
    /// What was reported while it was recorded.
    pub(crate) reported: ReportedFindings,
    /// The kind of queue for which it is recorded, if it is checked during recording.
    pub(crate) queue: Option<Queue>,
    /// How far it was checked.
    pub(crate) isolated: Option<Box<IsolatedExecution>>,
    /// The memory that it has used, as long as its check is postponed.
    pub(crate) used_blocks: Option<UsedBlocks>,
    /// If it is not checked meanwhile, but when it is executed, until then.
    pub(crate) deferred: Option<DeferredCheck>,
    /// The value of `AddressMap::alias_count` at recording, if all findings inside it are reported and its accesses
    /// have marks.
    marked_alias_count: Option<u64>,
    /// Commands that something must be done for when it is executed, as bits, if it has marks.
    busy_commands: Vec<u64>,
}

/// Not a number of moves.
const STALE_MOVE_COUNT: u64 = u64::MAX;

impl PreparedCommandBuffer {
    pub(crate) fn new(source: CommandBuffer, addresses: &AddressMap) -> PreparedCommandBuffer {
        PreparedCommandBuffer::default().recorded(source, addresses)
    }

    /// For an engine without caches.
    pub(crate) fn uncached(source: CommandBuffer, addresses: &AddressMap) -> PreparedCommandBuffer {
        let mut prepared = PreparedCommandBuffer::default();
        prepared.list.is_cache_disabled = true;
        prepared.recorded(source, addresses)
    }

    fn recorded(mut self, source: CommandBuffer, addresses: &AddressMap) -> PreparedCommandBuffer {
        self.record(source, addresses);
        self
    }

    /// Records all commands again, without a check, in the lists that are already allocated.
    pub(crate) fn record(&mut self, source: CommandBuffer, addresses: &AddressMap) {
        self.begin(None, addresses);
        self.set_executed();
        for command in source.commands {
            match command {
                Command::Action(accesses) => self.push_action(&accesses, |it| it, addresses),
                command => self.push(command, &[], addresses),
            }
        }
    }

    /// Begins to record it again, command by command. If `queue` is given, it is checked during recording.
    pub(crate) fn begin(&mut self, queue: Option<Queue>, addresses: &AddressMap) {
        self.list.clear();
        self.executed.clear();
        self.has_event_wait = false;
        self.move_count = addresses.move_count();
        self.queue = queue;
        self.reported = ReportedFindings::default();
        self.version += 1;
        self.busy_commands.clear();
        self.marked_alias_count = queue.filter(|_| !self.list.is_cache_disabled).map(|_| addresses.alias_count());
    }

    /// Adds a command; if that executes others, with their versions.
    pub(crate) fn push(&mut self, command: Command, versions: &[u64], addresses: &AddressMap) {
        self.refresh(addresses);
        if let Command::Execute(buffers) = &command {
            let versions = versions.iter().copied().chain(std::iter::repeat(0));
            self.executed.extend(buffers.iter().copied().zip(versions));
        }
        self.has_event_wait |= matches!(command, Command::WaitEvents(_));
        self.busy_commands.clear();
        self.list.add_non_action(command);
    }

    /// Adds an action command. `engine_id` translates its resources to ids of the engine.
    #[inline]
    pub(crate) fn push_action(
        &mut self,
        accesses: &[Access],
        engine_id: impl Fn(ResourceId) -> ResourceId,
        addresses: &AddressMap,
    ) {
        self.refresh(addresses);
        self.busy_commands.clear();
        self.list.add_action(accesses, engine_id, addresses);
    }

    /// Removes the last command.
    pub(crate) fn pop(&mut self) {
        if let Some(Command::Execute(buffers)) = self.list.pop() {
            self.executed.truncate(self.executed.len().saturating_sub(buffers.len()));
        }
        self.reported.remove_command(self.list.len());
        self.move_count = STALE_MOVE_COUNT;
        self.version += 1;
    }

    /// A command is another one from now on: an action like it was before.
    pub(crate) fn replace(&mut self, index: usize, command: Command) {
        if let Command::Action(accesses) = command {
            self.list.replace(index, &accesses);
            self.move_count = STALE_MOVE_COUNT;
            self.version += 1;
        }
    }

    /// Looks everything up again if addresses have changed since.
    #[inline]
    pub(crate) fn refresh(&mut self, addresses: &AddressMap) {
        if self.move_count != addresses.move_count() {
            self.move_count = addresses.move_count();
            self.marked_alias_count = None;
            self.busy_commands.clear();
            self.list.look_up_again(addresses);
        }
    }

    /// The accesses of a command; unknown if they must be looked up at execution.
    #[inline]
    pub(crate) fn addressed_accesses(
        &self,
        command: usize,
        addresses: &AddressMap,
    ) -> (PreparedKind, &[AddressedAccess]) {
        let (kind, addressed) = self.list.addressed_accesses(command);
        (if self.move_count == addresses.move_count() { kind } else { PreparedKind::UnknownAddresses }, addressed)
    }

    /// Whether its marks are valid, so that an execution may skip accesses.
    #[inline]
    pub(crate) fn has_valid_marks(&self, addresses: &AddressMap) -> bool {
        self.marked_alias_count == Some(addresses.alias_count()) && self.move_count == addresses.move_count()
    }

    /// Whether it had no finding, and everything that was looked up is still valid.
    #[inline]
    pub(crate) fn is_clean(&self, addresses: &AddressMap) -> bool {
        let is_known = match self.queue {
            Some(_) => self.has_valid_marks(addresses),
            None => self.move_count == addresses.move_count(),
        };
        is_known && self.reported.is_empty()
    }

    /// Finds the commands that an execution cannot skip.
    pub(crate) fn update_busy_commands(&mut self, addresses: &AddressMap) {
        if self.busy_commands.is_empty() && self.has_valid_marks(addresses) {
            self.busy_commands = self.list.busy_bits();
        }
    }

    /// The first command from one on that something must be done for.
    pub(crate) fn next_busy_command(&self, from: usize) -> usize {
        let mut word = from / 64;
        let mut left = self.busy_commands.get(word).map_or(0, |it| it & u64::MAX << (from % 64));
        while left == 0 {
            word += 1;
            let Some(next) = self.busy_commands.get(word) else { return self.list.len() };
            left = *next;
        }
        word * 64 + left.trailing_zeros() as usize
    }

    /// From now on, an execution checks and records all of its accesses.
    pub(crate) fn discard_marks(&mut self) {
        self.marked_alias_count = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_commands_are_found_word_by_word() {
        let mut prepared = PreparedCommandBuffer::default();
        for _ in 0..200 {
            prepared.list.add_non_action(Command::NextSubpass);
        }
        let at = [3, 63, 64, 130, 131];
        prepared.busy_commands = vec![0; 4];
        at.iter().for_each(|it| prepared.busy_commands[it / 64] |= 1 << (it % 64));
        for from in 0..200 {
            let wanted = at.iter().copied().find(|it| *it >= from).unwrap_or(200);
            assert_eq!(prepared.next_busy_command(from), wanted, "from {from}");
        }
    }

    #[test]
    fn versions_tell_changes() {
        let addresses = AddressMap::default();
        let mut prepared = PreparedCommandBuffer::new(CommandBuffer::default(), &addresses);
        assert_eq!((prepared.version, prepared.list.len()), (1, 0));
        prepared.push(Command::Execute(vec![CommandBufferId(4), CommandBufferId(5)]), &[7], &addresses);
        prepared.push(Command::Execute(vec![CommandBufferId(6)]), &[8], &addresses);
        let executed = [(4, 7), (5, 0), (6, 8)].map(|(id, version)| (CommandBufferId(id), version));
        assert_eq!((prepared.executed.clone(), prepared.version), (executed.to_vec(), 1));
        prepared.pop();
        assert_eq!((&prepared.executed[..], prepared.version), (&executed[..2], 2));
        // Only an action becomes another one.
        prepared.push(Command::Action(Vec::new()), &[], &addresses);
        prepared.replace(0, Command::NextSubpass);
        assert_eq!(prepared.version, 2);
        prepared.replace(1, Command::Action(Vec::new()));
        assert_eq!((prepared.version, prepared.move_count), (3, STALE_MOVE_COUNT));
        assert!(!prepared.has_event_wait);
        let wait = lavascope_sync_ir::WaitEvents::Sync2 { events: Vec::new() };
        prepared.push(Command::WaitEvents(wait), &[], &addresses);
        prepared.push(Command::NextSubpass, &[], &addresses);
        assert!(prepared.has_event_wait);
        prepared.begin(None, &addresses);
        assert!(!prepared.has_event_wait);
        assert_eq!((prepared.version, prepared.list.len(), prepared.executed.len()), (4, 0, 0));
    }

    /// Marks are valid only while no resource moves and no resource gets an alias.
    #[test]
    fn marks_hold_until_something_moves() {
        let (addresses, queue) = (AddressMap::default(), Queue { family: 0, flags: 1 });
        let mut prepared = PreparedCommandBuffer::default();
        prepared.begin(Some(queue), &addresses);
        assert!(prepared.has_valid_marks(&addresses));
        prepared.push(Command::NextSubpass, &[], &addresses);
        prepared.update_busy_commands(&addresses);
        assert_eq!(prepared.busy_commands, [1]);
        prepared.move_count = STALE_MOVE_COUNT;
        assert!(!prepared.has_valid_marks(&addresses));
        prepared.refresh(&addresses);
        assert!(
            prepared.move_count == addresses.move_count()
                && prepared.busy_commands.is_empty()
                && !prepared.has_valid_marks(&addresses)
        );
        prepared.update_busy_commands(&addresses);
        assert!(prepared.busy_commands.is_empty());
        prepared.begin(Some(queue), &addresses);
        prepared.push(Command::NextSubpass, &[], &addresses);
        (prepared.busy_commands, prepared.marked_alias_count) = (vec![5], Some(addresses.alias_count()));
        prepared.update_busy_commands(&addresses);
        assert_eq!(prepared.busy_commands, [5]);
        prepared.discard_marks();
        assert!(!prepared.has_valid_marks(&addresses));
        prepared.begin(None, &addresses);
        assert!(!prepared.has_valid_marks(&addresses));
    }
}
