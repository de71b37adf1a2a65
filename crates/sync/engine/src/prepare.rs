//! What can be looked up once about a command buffer, however often it is executed: the usages and addresses of its
//! accesses.

use lavascope_sync_ir::{Access, Command, CommandBuffer, CommandBufferId, Queue, ResourceId};

use crate::address::Addresses;
use crate::fresh::Fresh;
use crate::late::Unchecked;
use crate::plan::{PlanKind, Plans};
use crate::record::{Alone, Told};
use crate::spot::Spot;

/// A command buffer, made ready.
#[derive(Default)]
pub struct Prepared {
    pub(crate) plans: Plans,
    /// How often addresses had changed when this was looked up.
    moves: u64,
    /// The command buffers that it executes, and what versions of them.
    pub(crate) executed: Vec<(CommandBufferId, u64)>,
    /// How often it was changed.
    pub(crate) version: u64,
    /// Whether it waits for events, or executes what executes others.
    pub(crate) is_special: bool,
    /// What was told when it was recorded.
    pub(crate) told: Told,
    /// For what kind of queue it is recorded, if it is checked meanwhile.
    pub(crate) queue: Option<Queue>,
    /// How far it was checked.
    pub(crate) alone: Option<Box<Alone>>,
    /// As long as nothing was checked, since nothing can be wrong: what it has used.
    pub(crate) fresh: Option<Fresh>,
    /// If it is not checked meanwhile, but when it is executed, until then.
    pub(crate) unchecked: Option<Unchecked>,
    /// If all that happens inside of it was told, and its spots have marks: how often resources had been found to share
    /// memory then.
    marked: Option<u64>,
    /// Commands that something must be done for when it is executed, as bits, if it has marks.
    busy: Vec<u64>,
}

/// Not a number of moves.
const STALE: u64 = u64::MAX;

impl Prepared {
    pub(crate) fn new(source: CommandBuffer, addresses: &Addresses) -> Prepared {
        let mut prepared = Prepared::default();
        prepared.record(source, addresses);
        prepared
    }

    /// Recorded anew, in the room that there is, and not checked meanwhile.
    pub(crate) fn record(&mut self, source: CommandBuffer, addresses: &Addresses) {
        self.begin(None, addresses);
        self.end_unchecked();
        for command in source.commands {
            match command {
                Command::Action(accesses) => self.push_action(&accesses, |it| it, addresses),
                command => self.push(command, &[], addresses),
            }
        }
    }

    /// To be recorded anew, command by command. If it is for a queue of some kind, it is checked meanwhile.
    pub(crate) fn begin(&mut self, queue: Option<Queue>, addresses: &Addresses) {
        self.plans.clear();
        self.executed.clear();
        self.is_special = false;
        self.moves = addresses.moves();
        self.queue = queue;
        self.told = Told::default();
        self.version += 1;
        self.busy.clear();
        self.marked = queue.map(|_| addresses.relations());
    }

    /// Adds a command; if that executes others, with their versions.
    pub(crate) fn push(&mut self, command: Command, versions: &[u64], addresses: &Addresses) {
        self.refresh(addresses);
        if let Command::Execute(buffers) = &command {
            let versions = versions.iter().copied().chain(std::iter::repeat(0));
            self.executed.extend(buffers.iter().copied().zip(versions));
        }
        self.is_special |= matches!(command, Command::WaitEvents(_));
        self.busy.clear();
        self.plans.add_other(command);
    }

    /// Adds an action command, whose resources have other numbers.
    #[inline]
    pub(crate) fn push_action(
        &mut self,
        accesses: &[Access],
        number: impl Fn(ResourceId) -> ResourceId,
        addresses: &Addresses,
    ) {
        self.refresh(addresses);
        self.busy.clear();
        self.plans.add_action(accesses, number, addresses);
    }

    /// The last command was not recorded after all.
    pub(crate) fn pop(&mut self) {
        if let Some(Command::Execute(buffers)) = self.plans.pop() {
            self.executed.truncate(self.executed.len().saturating_sub(buffers.len()));
        }
        self.told.forget(self.plans.len());
        self.moves = STALE;
        self.version += 1;
    }

    /// A command is another one from now on: an action like it was before.
    pub(crate) fn replace(&mut self, index: usize, command: Command) {
        if let Command::Action(accesses) = command {
            self.plans.replace(index, &accesses);
            self.moves = STALE;
            self.version += 1;
        }
    }

    /// Looks everything up again if addresses have changed since.
    #[inline]
    pub(crate) fn refresh(&mut self, addresses: &Addresses) {
        if self.moves != addresses.moves() {
            self.moves = addresses.moves();
            self.marked = None;
            self.busy.clear();
            self.plans.renew(addresses);
        }
    }

    /// The spots of a command; unknown where they must be looked up when it is executed.
    #[inline]
    pub(crate) fn spots(&self, command: usize, addresses: &Addresses) -> (PlanKind, &[Spot]) {
        let (kind, spots) = self.plans.spots(command);
        (if self.moves == addresses.moves() { kind } else { PlanKind::Unknown }, spots)
    }

    /// Whether marks tell what need not be looked at when it is executed.
    #[inline]
    pub(crate) fn is_marked(&self, addresses: &Addresses) -> bool {
        self.marked == Some(addresses.relations()) && self.moves == addresses.moves()
    }

    /// Whether nothing was told of it, and all that was looked up is as it was.
    #[inline]
    pub(crate) fn is_clean(&self, addresses: &Addresses) -> bool {
        let is_known = match self.queue {
            Some(_) => self.is_marked(addresses),
            None => self.moves == addresses.moves(),
        };
        is_known && self.told.is_empty()
    }

    /// Finds out what must be done when it is executed.
    pub(crate) fn find_busy(&mut self, addresses: &Addresses) {
        if self.busy.is_empty() && self.is_marked(addresses) {
            self.busy = self.plans.busy();
        }
    }

    /// The first command from one on that something must be done for.
    pub(crate) fn next_busy(&self, from: usize) -> usize {
        let mut word = from / 64;
        let mut left = self.busy.get(word).map_or(0, |it| it & u64::MAX << (from % 64));
        while left == 0 {
            word += 1;
            let Some(next) = self.busy.get(word) else { return self.plans.len() };
            left = *next;
        }
        word * 64 + left.trailing_zeros() as usize
    }

    /// When it is executed, all of it must be looked at.
    pub(crate) fn unmark(&mut self) {
        self.marked = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_commands_are_found_word_by_word() {
        let mut prepared = Prepared::default();
        for _ in 0..200 {
            prepared.plans.add_other(Command::NextSubpass);
        }
        let at = [3, 63, 64, 130, 131];
        prepared.busy = vec![0; 4];
        at.iter().for_each(|it| prepared.busy[it / 64] |= 1 << (it % 64));
        for from in 0..200 {
            let wanted = at.iter().copied().find(|it| *it >= from).unwrap_or(200);
            assert_eq!(prepared.next_busy(from), wanted, "from {from}");
        }
    }

    #[test]
    fn versions_tell_changes() {
        let addresses = Addresses::default();
        let mut prepared = Prepared::new(CommandBuffer::default(), &addresses);
        assert_eq!((prepared.version, prepared.plans.len()), (1, 0));
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
        assert_eq!((prepared.version, prepared.moves), (3, STALE));
        assert!(!prepared.is_special);
        let wait = lavascope_sync_ir::WaitEvents::Two { events: Vec::new() };
        prepared.push(Command::WaitEvents(wait), &[], &addresses);
        prepared.push(Command::NextSubpass, &[], &addresses);
        assert!(prepared.is_special);
        prepared.begin(None, &addresses);
        assert!(!prepared.is_special);
        assert_eq!((prepared.version, prepared.plans.len(), prepared.executed.len()), (4, 0, 0));
    }

    /// Marks are worth something only while all lies where it lay, and shares what it shared.
    #[test]
    fn marks_hold_until_something_moves() {
        let (addresses, queue) = (Addresses::default(), Queue { family: 0, flags: 1 });
        let mut prepared = Prepared::default();
        prepared.begin(Some(queue), &addresses);
        assert!(prepared.is_marked(&addresses));
        prepared.push(Command::NextSubpass, &[], &addresses);
        prepared.find_busy(&addresses);
        assert_eq!(prepared.busy, [1]);
        prepared.moves = STALE;
        assert!(!prepared.is_marked(&addresses));
        prepared.refresh(&addresses);
        assert!(prepared.moves == addresses.moves() && prepared.busy.is_empty() && !prepared.is_marked(&addresses));
        prepared.find_busy(&addresses);
        assert!(prepared.busy.is_empty());
        prepared.begin(Some(queue), &addresses);
        prepared.push(Command::NextSubpass, &[], &addresses);
        (prepared.busy, prepared.marked) = (vec![5], Some(addresses.relations()));
        prepared.find_busy(&addresses);
        assert_eq!(prepared.busy, [5]);
        prepared.unmark();
        assert!(!prepared.is_marked(&addresses));
        prepared.begin(None, &addresses);
        assert!(!prepared.is_marked(&addresses));
    }
}
