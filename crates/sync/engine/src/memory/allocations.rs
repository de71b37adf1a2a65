//! The addresses of device memory, and the resources that are bound to it.
//!
//! The engine does not learn when memory is freed. Memory without resources is kept for a while, because another
//! resource may be bound to it. After that, its addresses are reused.

use std::collections::VecDeque;
use std::ops::Range;

use lavascope_collections::IntervalMap;
use lavascope_sync_ir::{MemoryBinding, MemoryId, ResourceId};
use rustc_hash::FxHashMap;

/// Number of addresses reserved for one memory; its real size is not known.
const ADDRESSES_PER_MEMORY: u64 = 1 << 40;
/// The first of these addresses. Resources with addresses of their own have those below.
pub(crate) const MEMORY_ADDRESSES_BEGIN: u64 = 1 << 63;
/// Largest number of memories.
const RANGES_MAX: u64 = (u64::MAX - MEMORY_ADDRESSES_BEGIN) / ADDRESSES_PER_MEMORY;
/// Number of memories without resources that are kept.
const IDLE_MAX: usize = 1 << 12;

/// Why a resource has no addresses. Accesses to it are ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum UnplacedReason {
    /// The resource ends too far from the beginning of its memory.
    MemoryTooLarge,
    /// Too many memories are in use at the same time.
    TooManyMemories,
    /// Resources with addresses of their own have used up the address space.
    AddressSpaceFull,
}

impl UnplacedReason {
    /// The reason as text for users.
    pub fn reason(self) -> &'static str {
        match self {
            UnplacedReason::MemoryTooLarge => "hazards are not looked for behind the first 2^40 bytes of a memory",
            UnplacedReason::TooManyMemories => "hazards are not looked for in more than 2^23 memories at the same time",
            UnplacedReason::AddressSpaceFull => "hazards are not looked for in more than 2^63 texels and bytes",
        }
    }
}

#[derive(Clone, Default)]
pub(crate) struct MemoryAllocations {
    all: FxHashMap<MemoryId, MemoryAllocation>,
    /// Number of address ranges that were ever in use.
    ranges: u64,
    /// The first address of each range that is free.
    free: Vec<u64>,
    /// Memories that became idle, oldest first, each with the count at that time. Some of them may be in use again.
    idle: VecDeque<(MemoryId, u64)>,
    /// How often a memory became idle.
    idles: u64,
    /// Freed addresses whose state is invalid.
    gone: Vec<Range<u64>>,
}

#[derive(Clone, Default)]
struct MemoryAllocation {
    base: u64,
    /// The resources at each offset.
    bound: IntervalMap<Vec<ResourceId>>,
    /// The sparse resources with parts of this memory.
    sparse: Vec<ResourceId>,
    /// The count when the memory became idle; none while it is in use.
    idle_since: Option<u64>,
}

impl MemoryAllocations {
    /// The address of a resource that is about to be bound.
    pub(crate) fn binding_address(&mut self, binding: MemoryBinding) -> Result<u64, UnplacedReason> {
        if binding.offset.checked_add(binding.size).is_none_or(|end| end > ADDRESSES_PER_MEMORY) {
            return Err(UnplacedReason::MemoryTooLarge);
        }
        self.get_or_insert(binding.memory).map(|it| it.base + binding.offset).ok_or(UnplacedReason::TooManyMemories)
    }

    /// The first address of a memory.
    pub(crate) fn base_address(&self, memory: MemoryId) -> Option<u64> {
        self.all.get(&memory).map(|it| it.base)
    }

    /// Binds a resource.
    pub(crate) fn bind(&mut self, resource: ResourceId, binding: MemoryBinding) {
        if let Some(memory) = self.get_or_insert(binding.memory) {
            memory.bound.update(range_of(binding), |_, all| all.get_or_insert_default().push(resource));
        }
    }

    /// Unbinds a resource.
    pub(crate) fn unbind(&mut self, resource: ResourceId, binding: MemoryBinding) {
        let Some(memory) = self.all.get_mut(&binding.memory) else { return };
        memory.bound.update(range_of(binding), |_, all| {
            all.iter_mut().for_each(|it| it.retain(|it| *it != resource));
            *all = all.take().filter(|it| !it.is_empty());
        });
        self.retire_if_unused(binding.memory);
    }

    /// A sparse resource gets a part of this memory.
    pub(crate) fn bind_sparse(&mut self, resource: ResourceId, memory: MemoryId) {
        if let Some(memory) = self.get_or_insert(memory).filter(|it| !it.sparse.contains(&resource)) {
            memory.sparse.push(resource);
        }
    }

    /// A sparse resource loses its last part of this memory.
    pub(crate) fn unbind_sparse(&mut self, resource: ResourceId, memory: MemoryId) {
        if let Some(own) = self.all.get_mut(&memory) {
            own.sparse.retain(|it| *it != resource);
            self.retire_if_unused(memory);
        }
    }

    /// The resources in the memory of a binding, without sparse resources. A resource may come more than once.
    pub(crate) fn bound_resources(&self, binding: MemoryBinding) -> impl Iterator<Item = ResourceId> {
        let memory = self.all.get(&binding.memory).into_iter();
        memory.flat_map(move |it| it.bound.overlapping(range_of(binding))).flat_map(|it| it.1).copied()
    }

    /// The sparse resources with parts of a memory.
    pub(crate) fn sparse_resources(&self, memory: MemoryId) -> &[ResourceId] {
        self.all.get(&memory).map_or(&[], |it| &it.sparse)
    }

    /// The addresses that became free since the last call.
    pub(crate) fn take_freed_ranges(&mut self) -> Vec<Range<u64>> {
        std::mem::take(&mut self.gone)
    }

    /// The entry of a memory, which is added if necessary; none if there are no addresses for it.
    fn get_or_insert(&mut self, id: MemoryId) -> Option<&mut MemoryAllocation> {
        if !self.all.contains_key(&id) {
            let base = self.free.pop().or_else(|| self.next_base())?;
            self.all.insert(id, MemoryAllocation { base, ..MemoryAllocation::default() });
        }
        let memory = self.all.get_mut(&id)?;
        memory.idle_since = None;
        Some(memory)
    }

    fn next_base(&mut self) -> Option<u64> {
        let number = Some(self.ranges).filter(|it| *it < RANGES_MAX)?;
        self.ranges += 1;
        Some(MEMORY_ADDRESSES_BEGIN + number * ADDRESSES_PER_MEMORY)
    }

    /// Marks a memory without resources as idle, and frees the one that has been idle longest.
    fn retire_if_unused(&mut self, id: MemoryId) {
        let Some(memory) = self.all.get_mut(&id).filter(|it| it.bound.is_empty() && it.sparse.is_empty()) else {
            return;
        };
        self.idles += 1;
        // Thousands of idle memories may be kept, so only the address stays.
        *memory = MemoryAllocation { base: memory.base, idle_since: Some(self.idles), ..MemoryAllocation::default() };
        self.idle.push_back((id, self.idles));
        if self.idle.len() > IDLE_MAX
            && let Some((oldest, since)) = self.idle.pop_front()
            && self.all.get(&oldest).is_some_and(|it| it.idle_since == Some(since))
            && let Some(memory) = self.all.remove(&oldest)
        {
            self.gone.push(memory.base..memory.base + ADDRESSES_PER_MEMORY);
            self.free.push(memory.base);
        }
    }
}

fn range_of(binding: MemoryBinding) -> Range<u64> {
    binding.offset..binding.offset.saturating_add(binding.size)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(memory: u32, range: Range<u64>) -> MemoryBinding {
        MemoryBinding { memory: MemoryId(memory), offset: range.start, size: range.end - range.start }
    }

    /// Programs may allocate and free for months.
    #[test]
    fn addresses_of_memory_do_not_end() {
        let (mut memories, mut gone) = (MemoryAllocations::default(), 0);
        for number in 0..100_000 {
            let (resource, binding) = (ResourceId(number % 7), at(number, 0..64));
            memories.bind(resource, binding);
            memories.unbind(resource, binding);
            gone += memories.take_freed_ranges().len();
        }
        assert!(memories.all.len() <= IDLE_MAX && memories.idle.len() <= IDLE_MAX, "{}", memories.all.len());
        assert!(memories.free.len() <= 1 && memories.ranges <= IDLE_MAX as u64 + 1, "{}", memories.ranges);
        assert_eq!(gone, 100_000 - IDLE_MAX);
    }

    /// Memory that becomes idle again is kept as if it had never been idle before.
    #[test]
    fn the_last_time_counts() {
        let (mut memories, kept) = (MemoryAllocations::default(), at(0, 0..64));
        let use_once = |memories: &mut MemoryAllocations, binding| {
            memories.bind(ResourceId(1), binding);
            memories.unbind(ResourceId(1), binding);
        };
        use_once(&mut memories, kept);
        let base = memories.base_address(kept.memory).expect("it is kept");
        let half = IDLE_MAX as u32 / 2;
        (1..half).for_each(|it| use_once(&mut memories, at(it, 0..64)));
        use_once(&mut memories, kept);
        (half..2 * half + 2).for_each(|it| use_once(&mut memories, at(it, 0..64)));
        assert_eq!(memories.base_address(kept.memory), Some(base));
        memories.take_freed_ranges();
        (2 * half..4 * half).for_each(|it| use_once(&mut memories, at(it, 0..64)));
        assert!(
            memories.base_address(kept.memory).is_none()
                && memories.take_freed_ranges().contains(&(base..base + ADDRESSES_PER_MEMORY))
        );
    }

    /// Too many memories are reported, and never share addresses with others.
    #[test]
    fn there_is_room_or_not() {
        let mut memories = MemoryAllocations::default();
        let first = memories.binding_address(at(0, 0..ADDRESSES_PER_MEMORY)).expect("all of it");
        assert_eq!(memories.binding_address(at(0, 1..ADDRESSES_PER_MEMORY + 1)), Err(UnplacedReason::MemoryTooLarge));
        assert_eq!(
            memories.binding_address(at(0, ADDRESSES_PER_MEMORY - 1..ADDRESSES_PER_MEMORY)),
            Ok(first + ADDRESSES_PER_MEMORY - 1)
        );
        assert_eq!(
            memories.binding_address(MemoryBinding { offset: u64::MAX, ..at(0, 0..8) }),
            Err(UnplacedReason::MemoryTooLarge)
        );
        assert_eq!(memories.binding_address(at(1, 0..8)), Ok(first + ADDRESSES_PER_MEMORY));
        memories.ranges = RANGES_MAX - 1;
        let last = memories.binding_address(at(2, 0..ADDRESSES_PER_MEMORY)).expect("the last one");
        assert!(last.checked_add(ADDRESSES_PER_MEMORY).is_some() && last > first);
        assert_eq!(memories.binding_address(at(3, 0..8)), Err(UnplacedReason::TooManyMemories));
        // Memory that does not exist has no effect on others.
        memories.bind(ResourceId(1), at(3, 0..8));
        memories.bind_sparse(ResourceId(1), MemoryId(3));
        memories.unbind(ResourceId(1), at(3, 0..8));
        memories.unbind_sparse(ResourceId(1), MemoryId(3));
        assert!(memories.base_address(MemoryId(3)).is_none() && memories.sparse_resources(MemoryId(3)).is_empty());
        for (why, word) in [
            (UnplacedReason::MemoryTooLarge, "2^40"),
            (UnplacedReason::TooManyMemories, "2^23"),
            (UnplacedReason::AddressSpaceFull, "2^63"),
        ] {
            assert!(why.reason().contains(word), "{}", why.reason());
        }
        memories.free.push(first + 2 * ADDRESSES_PER_MEMORY);
        assert_eq!(memories.binding_address(at(3, 0..8)), Ok(first + 2 * ADDRESSES_PER_MEMORY));
    }

    #[test]
    fn memory_that_is_used_again_keeps_its_addresses() {
        let mut memories = MemoryAllocations::default();
        let (kept, one) = (at(0, 0..64), ResourceId(1));
        memories.bind(one, kept);
        let base = memories.base_address(kept.memory);
        for number in 1..20_000 {
            memories.unbind(one, kept);
            memories.bind(one, kept);
            let other = at(number, 0..64);
            memories.bind(ResourceId(2), other);
            assert_ne!(memories.base_address(other.memory), base);
            memories.unbind(ResourceId(2), other);
        }
        assert_eq!(memories.base_address(kept.memory), base);
        assert!(memories.base_address(at(1, 0..64).memory).is_none());
        assert!(memories.idle.len() <= IDLE_MAX);
    }

    #[test]
    fn everybody_in_a_memory_keeps_it() {
        let mut memories = MemoryAllocations::default();
        let [one, two, sparse] = [1, 2, 3].map(ResourceId);
        memories.bind(one, at(0, 0..64));
        memories.bind(two, at(0, 32..96));
        memories.bind_sparse(sparse, MemoryId(0));
        memories.bind_sparse(sparse, MemoryId(0));
        let bound = |memories: &MemoryAllocations, range| memories.bound_resources(at(0, range)).collect::<Vec<_>>();
        assert_eq!((bound(&memories, 0..32), bound(&memories, 64..200)), (vec![one], vec![two]));
        assert_eq!((bound(&memories, 31..33), bound(&memories, 96..200)), (vec![one, one, two], vec![]));
        memories.unbind(one, at(0, 0..64));
        assert_eq!((bound(&memories, 0..32), bound(&memories, 32..64)), (vec![], vec![two]));
        memories.unbind(two, at(0, 32..96));
        assert!(memories.idle.is_empty() && memories.sparse_resources(MemoryId(0)) == [sparse]);
        memories.unbind_sparse(sparse, MemoryId(0));
        assert_eq!(memories.idle.len(), 1);
    }
}
