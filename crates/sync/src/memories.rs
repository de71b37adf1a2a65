//! Memory, as far as resources lie in it: where it is in the space of addresses, and who lies where.
//!
//! Nobody tells when memory is freed. What nothing lies in any more is kept for a while, since something else may be
//! bound to it, and then its addresses are given to another.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;

use lavascope_base::IntervalMap;
use lavascope_program::{Binding, MemoryId, ResourceId};

/// Addresses of one memory, whose size nobody told.
const SIZE: u64 = 1 << 40;
/// The first of them. What has addresses of its own has those before it.
const BEGIN: u64 = 1 << 63;
/// How many are kept that nothing lies in.
const IDLE_MAX: usize = 1 << 12;

#[derive(Clone, Default)]
pub(crate) struct Memories {
    all: HashMap<MemoryId, Memory>,
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
    /// The first address of a memory that something is about to lie in.
    pub(crate) fn place(&mut self, memory: MemoryId) -> u64 {
        self.used(memory).base
    }

    /// The first address of a memory.
    pub(crate) fn find(&self, memory: MemoryId) -> Option<u64> {
        self.all.get(&memory).map(|it| it.base)
    }

    /// A resource lies there from now on.
    pub(crate) fn bind(&mut self, resource: ResourceId, binding: Binding) {
        let memory = self.used(binding.memory);
        memory.bound.update(range_of(binding), |_, all| all.get_or_insert_default().push(resource));
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
        let memory = self.used(memory);
        if !memory.sparse.contains(&resource) {
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

    /// A memory that something lies in from now on.
    fn used(&mut self, id: MemoryId) -> &mut Memory {
        let Memories { all, free, ranges, .. } = self;
        let memory = all.entry(id).or_insert_with(|| {
            let base = free.pop().unwrap_or_else(|| {
                *ranges += 1;
                BEGIN + (*ranges - 1) * SIZE
            });
            Memory { base, ..Memory::default() }
        });
        memory.idle = None;
        memory
    }

    /// What nothing lies in is idle, and the one that has been so for longest goes.
    fn look_for_users(&mut self, id: MemoryId) {
        let Some(memory) = self.all.get_mut(&id).filter(|it| it.bound.is_empty() && it.sparse.is_empty()) else {
            return;
        };
        self.idles += 1;
        memory.idle = Some(self.idles);
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
