//! Memory, as far as resources lie in it: where it is in the space of addresses, and who lies where.
//!
//! Nobody tells when memory is freed. What nothing lies in any more is kept for a while, since something else may be
//! bound to it, and then its addresses are given to another.

use std::collections::VecDeque;
use std::ops::Range;

use lavascope_collections::IntervalMap;
use lavascope_sync_ir::{Binding, MemoryId, ResourceId};
use rustc_hash::FxHashMap;

/// Addresses of one memory, whose size nobody told.
const SIZE: u64 = 1 << 40;
/// The first of them. What has addresses of its own has those before it.
pub(crate) const BEGIN: u64 = 1 << 63;
/// How many memories there is room for.
const RANGES_MAX: u64 = (u64::MAX - BEGIN) / SIZE;
/// How many are kept that nothing lies in.
const IDLE_MAX: usize = 1 << 12;

/// Why something has no addresses: it is as if it were never used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NoRoom {
    /// It ends too far from the beginning of its memory.
    Memory,
    /// Too many memories are in use at the same time.
    Memories,
    /// What does not lie in memory byte by byte has used all other addresses up.
    Addresses,
}

impl NoRoom {
    /// In words for users.
    pub fn reason(self) -> &'static str {
        match self {
            NoRoom::Memory => "hazards are not looked for behind the first 2^40 bytes of a memory",
            NoRoom::Memories => "hazards are not looked for in more than 2^23 memories at the same time",
            NoRoom::Addresses => "hazards are not looked for in more than 2^63 texels and bytes",
        }
    }
}

#[derive(Clone, Default)]
pub(crate) struct Memories {
    all: FxHashMap<MemoryId, Memory>,
    /// How many ranges of addresses were ever needed.
    ranges: u64,
    /// The first addresses of those that are not needed now.
    free: Vec<u64>,
    /// What nothing lies in, or did not at some time: the oldest first, each with when that was.
    idle: VecDeque<(MemoryId, u64)>,
    /// How often something became idle.
    idles: u64,
    /// Addresses that mean nothing any more.
    gone: Vec<Range<u64>>,
}

#[derive(Clone, Default)]
struct Memory {
    base: u64,
    /// Which resources lie where.
    bound: IntervalMap<Vec<ResourceId>>,
    /// Which sparse resources have parts of it.
    sparse: Vec<ResourceId>,
    /// When it became idle, if it is.
    idle: Option<u64>,
}

impl Memories {
    /// The address of something that is about to lie in memory.
    pub(crate) fn place(&mut self, binding: Binding) -> Result<u64, NoRoom> {
        if binding.offset.checked_add(binding.size).is_none_or(|end| end > SIZE) {
            return Err(NoRoom::Memory);
        }
        self.used(binding.memory).map(|it| it.base + binding.offset).ok_or(NoRoom::Memories)
    }

    /// The first address of a memory.
    pub(crate) fn find(&self, memory: MemoryId) -> Option<u64> {
        self.all.get(&memory).map(|it| it.base)
    }

    /// A resource lies there from now on.
    pub(crate) fn bind(&mut self, resource: ResourceId, binding: Binding) {
        if let Some(memory) = self.used(binding.memory) {
            memory.bound.update(range_of(binding), |_, all| all.get_or_insert_default().push(resource));
        }
    }

    /// A resource lies there no more.
    pub(crate) fn unbind(&mut self, resource: ResourceId, binding: Binding) {
        let Some(memory) = self.all.get_mut(&binding.memory) else { return };
        memory.bound.update(range_of(binding), |_, all| {
            all.iter_mut().for_each(|it| it.retain(|it| *it != resource));
            *all = all.take().filter(|it| !it.is_empty());
        });
        self.look_for_users(binding.memory);
    }

    /// A sparse resource has a part of it.
    pub(crate) fn bind_sparse(&mut self, resource: ResourceId, memory: MemoryId) {
        if let Some(memory) = self.used(memory).filter(|it| !it.sparse.contains(&resource)) {
            memory.sparse.push(resource);
        }
    }

    /// A sparse resource has no part of it any more.
    pub(crate) fn unbind_sparse(&mut self, resource: ResourceId, memory: MemoryId) {
        if let Some(own) = self.all.get_mut(&memory) {
            own.sparse.retain(|it| *it != resource);
            self.look_for_users(memory);
        }
    }

    /// What lies in the memory of a binding, sparse resources aside; something may be named several times.
    pub(crate) fn bound(&self, binding: Binding) -> impl Iterator<Item = ResourceId> {
        let memory = self.all.get(&binding.memory).into_iter();
        memory.flat_map(move |it| it.bound.overlapping(range_of(binding))).flat_map(|it| it.1).copied()
    }

    /// Sparse resources that have parts of a memory.
    pub(crate) fn sparse(&self, memory: MemoryId) -> &[ResourceId] {
        self.all.get(&memory).map_or(&[], |it| &it.sparse)
    }

    /// Addresses that mean nothing any more, since the last time.
    pub(crate) fn take_gone(&mut self) -> Vec<Range<u64>> {
        std::mem::take(&mut self.gone)
    }

    /// A memory that something lies in from now on; none if there is no room for it.
    fn used(&mut self, id: MemoryId) -> Option<&mut Memory> {
        if !self.all.contains_key(&id) {
            let base = self.free.pop().or_else(|| self.next_base())?;
            self.all.insert(id, Memory { base, ..Memory::default() });
        }
        let memory = self.all.get_mut(&id)?;
        memory.idle = None;
        Some(memory)
    }

    fn next_base(&mut self) -> Option<u64> {
        let number = Some(self.ranges).filter(|it| *it < RANGES_MAX)?;
        self.ranges += 1;
        Some(BEGIN + number * SIZE)
    }

    /// What nothing lies in is idle, and the one that has been so for longest goes.
    fn look_for_users(&mut self, id: MemoryId) {
        let Some(memory) = self.all.get_mut(&id).filter(|it| it.bound.is_empty() && it.sparse.is_empty()) else {
            return;
        };
        self.idles += 1;
        // Many are kept, so that nothing else of them is.
        *memory = Memory { base: memory.base, idle: Some(self.idles), ..Memory::default() };
        self.idle.push_back((id, self.idles));
        if self.idle.len() > IDLE_MAX
            && let Some((oldest, since)) = self.idle.pop_front()
            && self.all.get(&oldest).is_some_and(|it| it.idle == Some(since))
            && let Some(memory) = self.all.remove(&oldest)
        {
            self.gone.push(memory.base..memory.base + SIZE);
            self.free.push(memory.base);
        }
    }
}

fn range_of(binding: Binding) -> Range<u64> {
    binding.offset..binding.offset.saturating_add(binding.size)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(memory: u32, range: Range<u64>) -> Binding {
        Binding { memory: MemoryId(memory), offset: range.start, size: range.end - range.start }
    }

    /// Programs allocate and free for months.
    #[test]
    fn addresses_of_memory_do_not_end() {
        let (mut memories, mut gone) = (Memories::default(), 0);
        for number in 0..100_000 {
            let (resource, binding) = (ResourceId(number % 7), at(number, 0..64));
            memories.bind(resource, binding);
            memories.unbind(resource, binding);
            gone += memories.take_gone().len();
        }
        assert!(memories.all.len() <= IDLE_MAX && memories.idle.len() <= IDLE_MAX, "{}", memories.all.len());
        assert!(memories.free.len() <= 1 && memories.ranges <= IDLE_MAX as u64 + 1, "{}", memories.ranges);
        assert_eq!(gone, 100_000 - IDLE_MAX);
    }

    /// What became idle once is kept for as long as all else from the last time on.
    #[test]
    fn the_last_time_counts() {
        let (mut memories, kept) = (Memories::default(), at(0, 0..64));
        let use_once = |memories: &mut Memories, binding| {
            memories.bind(ResourceId(1), binding);
            memories.unbind(ResourceId(1), binding);
        };
        use_once(&mut memories, kept);
        let base = memories.find(kept.memory).expect("it is kept");
        let half = IDLE_MAX as u32 / 2;
        (1..half).for_each(|it| use_once(&mut memories, at(it, 0..64)));
        use_once(&mut memories, kept);
        (half..2 * half + 2).for_each(|it| use_once(&mut memories, at(it, 0..64)));
        assert_eq!(memories.find(kept.memory), Some(base));
        memories.take_gone();
        (2 * half..4 * half).for_each(|it| use_once(&mut memories, at(it, 0..64)));
        assert!(memories.find(kept.memory).is_none() && memories.take_gone().contains(&(base..base + SIZE)));
    }

    /// More than can be told apart: they are told, and nothing lies where something else does.
    #[test]
    fn there_is_room_or_not() {
        let mut memories = Memories::default();
        let first = memories.place(at(0, 0..SIZE)).expect("all of it");
        assert_eq!(memories.place(at(0, 1..SIZE + 1)), Err(NoRoom::Memory));
        assert_eq!(memories.place(at(0, SIZE - 1..SIZE)), Ok(first + SIZE - 1));
        assert_eq!(memories.place(Binding { offset: u64::MAX, ..at(0, 0..8) }), Err(NoRoom::Memory));
        assert_eq!(memories.place(at(1, 0..8)), Ok(first + SIZE));
        memories.ranges = RANGES_MAX - 1;
        let last = memories.place(at(2, 0..SIZE)).expect("the last one");
        assert!(last.checked_add(SIZE).is_some() && last > first);
        assert_eq!(memories.place(at(3, 0..8)), Err(NoRoom::Memories));
        // What is not there is in nobody's way.
        memories.bind(ResourceId(1), at(3, 0..8));
        memories.bind_sparse(ResourceId(1), MemoryId(3));
        memories.unbind(ResourceId(1), at(3, 0..8));
        memories.unbind_sparse(ResourceId(1), MemoryId(3));
        assert!(memories.find(MemoryId(3)).is_none() && memories.sparse(MemoryId(3)).is_empty());
        for (why, word) in [(NoRoom::Memory, "2^40"), (NoRoom::Memories, "2^23"), (NoRoom::Addresses, "2^63")] {
            assert!(why.reason().contains(word), "{}", why.reason());
        }
        memories.free.push(first + 2 * SIZE);
        assert_eq!(memories.place(at(3, 0..8)), Ok(first + 2 * SIZE));
    }

    #[test]
    fn memory_that_is_used_again_keeps_its_addresses() {
        let mut memories = Memories::default();
        let (kept, one) = (at(0, 0..64), ResourceId(1));
        memories.bind(one, kept);
        let base = memories.find(kept.memory);
        for number in 1..20_000 {
            memories.unbind(one, kept);
            memories.bind(one, kept);
            let other = at(number, 0..64);
            memories.bind(ResourceId(2), other);
            assert_ne!(memories.find(other.memory), base);
            memories.unbind(ResourceId(2), other);
        }
        assert_eq!(memories.find(kept.memory), base);
        assert!(memories.find(at(1, 0..64).memory).is_none());
        assert!(memories.idle.len() <= IDLE_MAX);
    }

    #[test]
    fn everybody_in_a_memory_keeps_it() {
        let mut memories = Memories::default();
        let [one, two, sparse] = [1, 2, 3].map(ResourceId);
        memories.bind(one, at(0, 0..64));
        memories.bind(two, at(0, 32..96));
        memories.bind_sparse(sparse, MemoryId(0));
        memories.bind_sparse(sparse, MemoryId(0));
        let bound = |memories: &Memories, range| memories.bound(at(0, range)).collect::<Vec<_>>();
        assert_eq!((bound(&memories, 0..32), bound(&memories, 64..200)), (vec![one], vec![two]));
        assert_eq!((bound(&memories, 31..33), bound(&memories, 96..200)), (vec![one, one, two], vec![]));
        memories.unbind(one, at(0, 0..64));
        assert_eq!((bound(&memories, 0..32), bound(&memories, 32..64)), (vec![], vec![two]));
        memories.unbind(two, at(0, 32..96));
        assert!(memories.idle.is_empty() && memories.sparse(MemoryId(0)) == [sparse]);
        memories.unbind_sparse(sparse, MemoryId(0));
        assert_eq!(memories.idle.len(), 1);
    }
}
