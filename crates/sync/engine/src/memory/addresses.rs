//! Maps memory and images to one space of virtual addresses.
//!
//! Memory has linear addresses, and so has everything that lies in it byte by byte. An optimally tiled image has a
//! range of its own, in which one address stands for one texel or one block of texels (`texels`). When single
//! components of an image are used for the first time, the image gets one range for each component. Consecutive texels
//! then still have consecutive addresses.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use lavascope_sync_ir::{
    Components, ImageRegion, MemoryBinding, MemoryId, Region, Resource, ResourceId, ResourceKind, SparseBind,
    SparsePart,
};

use crate::memory::allocations::{MEMORY_ADDRESSES_BEGIN, MemoryAllocations, UnplacedReason};
use crate::memory::sparse::{SparseBindings, SparseBlock, SparseMemory};
use crate::memory::texels::TexelLayout;

/// The addresses of all resources.
#[derive(Clone, Default)]
pub struct AddressMap {
    placements: Vec<Placement>,
    /// For each resource the fields that most lookups need, close together in memory.
    plain_buffers: Vec<PlainBuffer>,
    /// Ids of destroyed resources. An id that was taken again is skipped.
    free: Vec<ResourceId>,
    memories: MemoryAllocations,
    next: u64,
    /// How often an existing resource moved to other addresses, without sparse resources.
    move_count: u64,
    /// How often two resources were found to share memory although their addresses cannot be compared.
    alias_count: u64,
    identities: u32,
    /// Destroyed resources that a blocked submission may still use.
    destroyed: Vec<ResourceId>,
    /// How often a resource got no addresses, by reason.
    unplaced: BTreeMap<UnplacedReason, u64>,
}

/// The identity of a resource. Compatible aliases have the same one. Unlike an id, an identity is never reused; the
/// default value belongs to no resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResourceIdentity(u32);

/// A buffer that is not sparse. The size is zero for any other resource.
#[derive(Clone, Copy, Default)]
struct PlainBuffer {
    base: u64,
    size: u64,
    identity: ResourceIdentity,
}

#[derive(Clone)]
struct Placement {
    base: u64,
    kind: ResourceKind,
    /// For an image: the layout of its texels.
    texels: Option<Arc<TexelLayout>>,
    binding: Option<MemoryBinding>,
    is_exclusive: bool,
    /// For a sparse resource: the memory that is bound to it.
    sparse: Option<Box<SparseBindings>>,
    identity: ResourceIdentity,
    /// Whether each component has a range of its own, one after the other.
    has_component_planes: bool,
    /// Resources in the same memory whose addresses cannot be compared with those of this one.
    aliases: Vec<ResourceId>,
    is_removed: bool,
    /// Whether its id is in the list of free ids.
    is_free: bool,
}

impl AddressMap {
    pub fn add(&mut self, resource: &Resource) -> ResourceId {
        let id = self.take_free().unwrap_or(ResourceId(self.placements.len() as u32));
        self.set(id, resource);
        id
    }

    fn take_free(&mut self) -> Option<ResourceId> {
        loop {
            let id = self.free.pop()?;
            let placed = &mut self.placements[id.0 as usize];
            placed.is_free = false;
            if placed.is_removed {
                return Some(id);
            }
        }
    }

    /// Adds a resource with this id.
    pub(crate) fn set(&mut self, id: ResourceId, resource: &Resource) {
        self.destroyed.retain(|it| *it != id);
        self.remove(id);
        let texels = match &resource.kind {
            ResourceKind::Buffer { .. } => None,
            ResourceKind::Image(image) => Some(Arc::new(TexelLayout::new(image))),
        };
        let size = texels.as_ref().map_or(0, |it| it.size());
        let same = self.find_compatible_alias(resource).map(|it| (it.base, it.identity, it.has_component_planes));
        let base = match self.base(resource, size, same.map(|it| it.0)) {
            Ok(base) => base,
            Err(why) => {
                self.count_unplaced(why);
                return self.set_placement(id, Placement { is_removed: false, ..Placement::removed() });
            }
        };
        let placed = Placement {
            base,
            kind: resource.kind.clone(),
            texels,
            binding: resource.binding,
            is_exclusive: resource.is_exclusive,
            sparse: resource.is_sparse.then(Box::default),
            identity: match same {
                Some((_, identity, _)) => identity,
                None => self.next_identity(),
            },
            has_component_planes: same.is_some_and(|it| it.2),
            aliases: Vec::new(),
            is_removed: false,
            is_free: false,
        };
        self.set_placement(id, placed);
        if let Some(binding) = resource.binding {
            self.find_aliases(id, binding);
        }
    }

    /// The first address of a new resource. `same` is the address of a compatible alias; `size` is that of an image.
    fn base(&mut self, resource: &Resource, size: u64, same: Option<u64>) -> Result<u64, UnplacedReason> {
        let in_memory = resource.binding.map(|it| self.memories.binding_address(it)).transpose()?;
        match (&resource.kind, in_memory, same) {
            (ResourceKind::Image(image), _, Some(base)) if !image.is_linear() => Ok(base),
            (ResourceKind::Image(image), ..) if !image.is_linear() => self.allocate(size),
            (_, Some(base), _) => Ok(base),
            (ResourceKind::Buffer { size }, None, _) => self.allocate(*size),
            (ResourceKind::Image(_), None, _) => self.allocate(size),
        }
    }

    fn count_unplaced(&mut self, why: UnplacedReason) {
        *self.unplaced.entry(why).or_default() += 1;
    }

    pub(crate) fn has_unplaced(&self) -> bool {
        !self.unplaced.is_empty()
    }

    /// How often a resource got no addresses since the last call, by reason.
    pub(crate) fn take_unplaced(&mut self) -> BTreeMap<UnplacedReason, u64> {
        std::mem::take(&mut self.unplaced)
    }

    fn next_identity(&mut self) -> ResourceIdentity {
        self.identities = self.identities.wrapping_add(1);
        ResourceIdentity(self.identities)
    }

    fn set_placement(&mut self, id: ResourceId, placed: Placement) {
        while self.placements.len() < id.0 as usize {
            self.free.push(ResourceId(self.placements.len() as u32));
            self.placements.push(Placement { is_free: true, ..Placement::removed() });
        }
        if self.plain_buffers.len() <= id.0 as usize {
            self.plain_buffers.resize(id.0 as usize + 1, PlainBuffer::default());
        }
        self.plain_buffers[id.0 as usize] = placed.plain_buffer();
        match self.placements.get_mut(id.0 as usize) {
            Some(own) => *own = Placement { is_free: own.is_free, ..placed },
            None => self.placements.push(placed),
        }
    }

    /// Destroys a resource. A blocked submission may still use it, although the specification does not allow that.
    pub(crate) fn destroy(&mut self, id: ResourceId) {
        self.destroyed.push(id);
    }

    /// Removes destroyed resources, when no submission is blocked.
    pub(crate) fn remove_destroyed(&mut self) {
        while let Some(id) = self.destroyed.pop() {
            self.remove(id);
        }
    }

    /// Removes a resource and frees its id.
    fn remove(&mut self, id: ResourceId) {
        let Some(placed) = self.placements.get_mut(id.0 as usize).filter(|it| !it.is_removed) else { return };
        placed.is_removed = true;
        let is_listed = std::mem::replace(&mut placed.is_free, true);
        self.free.extend(Some(id).filter(|_| !is_listed));
        let (binding, aliases) = (placed.binding, std::mem::take(&mut placed.aliases));
        let sparse = placed.sparse.take();
        for other in aliases {
            self.placements[other.0 as usize].aliases.retain(|it| *it != id);
        }
        if let Some(binding) = binding {
            self.memories.unbind(id, binding);
        }
        for memory in sparse.iter().flat_map(|it| it.memories()) {
            self.memories.unbind_sparse(id, memory);
        }
    }

    /// Addresses that became free since the last call.
    pub(crate) fn take_freed_ranges(&mut self) -> Vec<Range<u64>> {
        self.memories.take_freed_ranges()
    }

    /// How often an existing resource moved to other addresses. Sparse resources are not counted: every bind may move
    /// them, so their addresses are never cached.
    pub(crate) fn move_count(&self) -> u64 {
        self.move_count
    }

    /// How often two resources were found to share memory although their addresses cannot be compared. If zero, no
    /// resource has aliases.
    pub(crate) fn alias_count(&self) -> u64 {
        self.alias_count
    }

    /// The addresses of a resource; empty if another resource uses some of them.
    pub fn unshared_ranges(&self, resource: ResourceId) -> Vec<Range<u64>> {
        let Some(own) = self.placements.get(resource.0 as usize) else { return Vec::new() };
        let is_beside = |other: ResourceId| {
            let theirs = &self.placements[other.0 as usize];
            other != resource && own.is_opaque() == theirs.is_opaque() && (!own.is_opaque() || own.base == theirs.base)
        };
        // Memory that was bound to a sparse resource may since have been bound to any other resource.
        let is_sparse = own.sparse.is_some() && !own.is_opaque();
        let is_shared = is_sparse || own.binding.is_some_and(|it| self.memories.bound_resources(it).any(is_beside));
        if is_shared { Vec::new() } else { vec![own.whole()] }
    }

    /// The resources whose accesses must be checked too when this one is used.
    pub(crate) fn aliases_of(&self, resource: ResourceId) -> Vec<ResourceId> {
        self.placements.get(resource.0 as usize).map_or(Vec::new(), |it| it.aliases.clone())
    }

    /// Whether accesses of another resource must be checked too when this one is used.
    pub(crate) fn has_aliases(&self, resource: ResourceId) -> bool {
        self.placements.get(resource.0 as usize).is_some_and(|it| !it.aliases.is_empty())
    }

    fn allocate(&mut self, size: u64) -> Result<u64, UnplacedReason> {
        let base = self.next;
        // A gap between two images keeps `IntervalMap` from merging their states.
        let end = base
            .checked_add(size.max(1))
            .filter(|it| *it < MEMORY_ADDRESSES_BEGIN)
            .ok_or(UnplacedReason::AddressSpaceFull)?;
        self.next = end + 1;
        Ok(base)
    }

    /// A compatible alias of an image, if there is one.
    fn find_compatible_alias(&self, resource: &Resource) -> Option<&Placement> {
        let (ResourceKind::Image(image), Some(binding)) = (&resource.kind, resource.binding) else { return None };
        let is_bound_alike = |it: MemoryBinding| (it.memory, it.offset) == (binding.memory, binding.offset);
        let same = |it: &&Placement| it.kind == resource.kind && it.binding.is_some_and(is_bound_alike);
        image
            .alias
            .then(|| self.memories.bound_resources(binding).map(|it| &self.placements[it.0 as usize]).find(same))
            .flatten()
    }

    /// The identity of a resource.
    #[inline]
    pub fn identity(&self, resource: ResourceId) -> ResourceIdentity {
        self.placements.get(resource.0 as usize).map_or(ResourceIdentity::default(), |it| it.identity)
    }

    /// Finds resources that share memory with a new one although their addresses cannot be compared.
    fn find_aliases(&mut self, new: ResourceId, binding: MemoryBinding) {
        let index = new.0 as usize;
        let mut others: Vec<ResourceId> = self.memories.bound_resources(binding).collect();
        others.sort_unstable();
        others.dedup();
        for other in others {
            let (left, right) = (&self.placements[other.0 as usize], &self.placements[index]);
            let is_comparable = !left.is_opaque() && !right.is_opaque() || left.base == right.base;
            if !is_comparable {
                self.alias_count += 1;
                self.placements[other.0 as usize].aliases.push(new);
                self.placements[index].aliases.push(other);
            }
        }
        self.memories.bind(new, binding);
        for sparse in self.memories.sparse_resources(binding.memory).to_vec() {
            self.update_alias(sparse, new);
        }
    }

    /// The addresses of a region of a resource, in order.
    pub fn ranges(&self, resource: ResourceId, region: &Region) -> Vec<Range<u64>> {
        let mut found = Vec::new();
        self.each_range(resource, region, |it| found.push(it));
        found
    }

    /// The addresses of a region, if they stay valid until `move_count` or `alias_count` changes.
    #[inline]
    pub(crate) fn look_up(&self, resource: ResourceId, region: &Region) -> AddressLookup {
        if let (Region::Buffer(bytes), Some(plain_buffer)) = (region, self.plain_buffers.get(resource.0 as usize))
            && bytes.start < bytes.end.min(plain_buffer.size)
        {
            return AddressLookup::One(
                plain_buffer.base + bytes.start..plain_buffer.base + bytes.end.min(plain_buffer.size),
                plain_buffer.identity,
            );
        }
        self.look_up_slow(resource, region)
    }

    /// The lookup for everything that is not a plain buffer.
    fn look_up_slow(&self, resource: ResourceId, region: &Region) -> AddressLookup {
        let Some(placed) = self.placements.get(resource.0 as usize) else { return AddressLookup::Empty };
        if placed.sparse.is_some() || placed.needs_component_planes(region) {
            return AddressLookup::NotFixed;
        }
        match (&placed.kind, region) {
            (ResourceKind::Image(_), Region::Image(region)) => placed.look_up(region),
            // The region lies behind the end of the buffer.
            _ => AddressLookup::Empty,
        }
    }

    pub(crate) fn each_range(&self, resource: ResourceId, region: &Region, mut each: impl FnMut(Range<u64>)) {
        let Some(placed) = self.placements.get(resource.0 as usize) else { return };
        match (&placed.kind, region) {
            (ResourceKind::Buffer { size }, Region::Buffer(bytes)) => {
                let cut = bytes.start.min(*size)..bytes.end.min(*size);
                match &placed.sparse {
                    _ if cut.is_empty() => {}
                    Some(sparse) => sparse.addresses(&cut).for_each(each),
                    None => each(placed.base + cut.start..placed.base + cut.end),
                }
            }
            (ResourceKind::Image(_), Region::Image(region)) => placed.each_image_range(region, &mut each),
            // The region is of another kind than the resource, so it has no addresses.
            _ => {}
        }
    }

    pub(crate) fn is_sparse(&self, resource: ResourceId) -> bool {
        self.placements.get(resource.0 as usize).is_some_and(|it| it.sparse.is_some())
    }

    pub(crate) fn is_exclusive(&self, resource: ResourceId) -> bool {
        self.placements.get(resource.0 as usize).is_some_and(|it| it.is_exclusive)
    }

    /// The ranges of a region relative to the beginning of the resource, without regard to its components and its
    /// memory.
    pub(crate) fn relative_ranges(&self, resource: ResourceId, region: &Region) -> Vec<Range<u64>> {
        let Some(placed) = self.placements.get(resource.0 as usize) else { return Vec::new() };
        match (&placed.kind, &placed.texels, region) {
            (ResourceKind::Buffer { size }, _, Region::Buffer(bytes)) => {
                let cut = bytes.start.min(*size)..bytes.end.min(*size);
                Some(cut).filter(|it| !it.is_empty()).into_iter().collect()
            }
            (ResourceKind::Image(_), Some(texels), Region::Image(region)) => texels.ranges(region),
            _ => Vec::new(),
        }
    }

    /// The regions of the resource that a range of relative addresses stands for.
    pub(crate) fn relative_regions(&self, resource: ResourceId, range: &Range<u64>) -> Vec<Region> {
        let Some(placed) = self.placements.get(resource.0 as usize) else { return Vec::new() };
        match &placed.texels {
            None => vec![Region::Buffer(range.clone())],
            Some(texels) => texels.regions(range, Components::ALL),
        }
    }

    /// Whether a region is the first one with single components of an image. Only optimally tiled images need planes:
    /// in a linear image, components are separate bytes.
    pub fn needs_component_planes(&self, resource: ResourceId, region: &Region) -> bool {
        self.placements.get(resource.0 as usize).is_some_and(|it| it.needs_component_planes(region))
    }

    /// Gives an image and its compatible aliases one range for each component. Returns the old addresses and the begin
    /// of each new plane. Returns no plane if the address space is full; accesses to the image are then ignored.
    pub fn add_component_planes(&mut self, resource: ResourceId) -> (Range<u64>, Vec<u64>) {
        let old = self.whole(resource);
        self.move_count += 1;
        let size = old.end - old.start;
        let texels = self.placements.get(resource.0 as usize).and_then(|it| it.texels.as_ref());
        let components = texels.map_or(Components(0), |it| it.components());
        let base = self.allocate(size.saturating_mul(plane_count(components)));
        for placement in self.placements.iter_mut().filter(|it| it.is_opaque() && it.base == old.start) {
            match base {
                Ok(base) => (placement.base, placement.has_component_planes) = (base, true),
                Err(_) => placement.texels = None,
            }
        }
        match base {
            Ok(base) => (old, planes(components).map(|it| base + it * size).collect()),
            Err(why) => {
                self.count_unplaced(why);
                (old, Vec::new())
            }
        }
    }

    /// Binds memory to a part of a sparse resource, or unbinds it. Returns addresses whose state is invalid now.
    pub fn bind(&mut self, bind: &SparseBind) -> Vec<Range<u64>> {
        let index = bind.resource.0 as usize;
        if !self.is_sparse(bind.resource) {
            return Vec::new();
        }
        let own = match &bind.part {
            SparsePart::Texels(region) => self.relative_ranges(bind.resource, &Region::Image(region.clone())),
            SparsePart::Bytes(_) => Vec::new(),
        };
        let base = self.base_of_bind(bind);
        let memory = bind.memory.filter(|_| base.is_some());
        let Some(placed) = self.placements.get_mut(index) else { return Vec::new() };
        let (whole, is_opaque, first, has_planes) =
            (placed.whole(), placed.is_opaque(), placed.base, placed.has_component_planes);
        let Some(sparse) = &mut placed.sparse else { return Vec::new() };
        let before: Vec<MemoryId> = sparse.memories().collect();
        let moved = match bind.part {
            SparsePart::Bytes(start) if is_opaque => {
                let has_moved = sparse.bind_opaque(start..start.saturating_add(bind.size), memory);
                Some(whole).filter(|_| has_moved).into_iter().collect()
            }
            SparsePart::Bytes(start) => {
                sparse.bind_bytes(start..start.saturating_add(bind.size), base);
                Vec::new()
            }
            SparsePart::Texels(_) if has_planes => {
                // The engine does not compute where a texel of a sparse block lies within its component planes.
                sparse.bind_texels(&own, memory.map(|it| block(it, bind.size)));
                Some(whole).into_iter().collect()
            }
            SparsePart::Texels(_) => {
                let moved = sparse.bind_texels(&own, memory.map(|it| block(it, bind.size)));
                moved.into_iter().map(|it| first + it.start..first + it.end).collect()
            }
        };
        let after: Vec<MemoryId> = sparse.memories().collect();
        self.note_memories(bind.resource, &before, &after);
        // Resources that shared memory with it before, and those that do now.
        let mut others = self.placements[index].aliases.clone();
        if let Some((memory, offset)) = memory {
            others.extend(self.memories.bound_resources(MemoryBinding { memory, offset, size: bind.size }));
            others.extend(self.memories.sparse_resources(memory));
        }
        others.sort_unstable();
        others.dedup();
        others.into_iter().for_each(|it| self.update_alias(bind.resource, it));
        moved
    }

    /// The memory of a binding and its first address; none if there are no addresses for it.
    fn base_of_bind(&mut self, bind: &SparseBind) -> Option<(MemoryId, u64)> {
        let (memory, offset) = bind.memory?;
        match self.memories.binding_address(MemoryBinding { memory, offset, size: bind.size }) {
            Ok(base) => Some((memory, base)),
            Err(why) => {
                self.count_unplaced(why);
                None
            }
        }
    }

    /// Updates the lists of memories that have parts of a sparse resource.
    fn note_memories(&mut self, sparse: ResourceId, before: &[MemoryId], after: &[MemoryId]) {
        for memory in after.iter().filter(|it| !before.contains(it)) {
            self.memories.bind_sparse(sparse, *memory);
        }
        for memory in before.iter().filter(|it| !after.contains(it)) {
            self.memories.unbind_sparse(sparse, *memory);
        }
    }

    /// Decides again whether a sparse resource shares memory with another one although their addresses cannot be
    /// compared.
    fn update_alias(&mut self, sparse: ResourceId, other: ResourceId) {
        let (left, right) = (&self.placements[sparse.0 as usize], &self.placements[other.0 as usize]);
        let is_comparable = !left.is_opaque() && !right.is_opaque();
        if sparse == other || is_comparable || right.is_removed {
            return;
        }
        let is_alias = !self.shared(left, right).is_empty();
        self.alias_count += u64::from(is_alias);
        for (one, another) in [(sparse, other), (other, sparse)] {
            let aliases = &mut self.placements[one.0 as usize].aliases;
            aliases.retain(|it| *it != another);
            aliases.extend(Some(another).filter(|_| is_alias));
        }
    }

    /// The addresses at which two resources share memory, in the addresses of each; at least one of them is sparse.
    fn shared(&self, one: &Placement, other: &Placement) -> Vec<(Range<u64>, Range<u64>)> {
        let mut found = Vec::new();
        for (memory, own) in self.memory_of(one) {
            for (theirs, their_own) in self.memory_of(other) {
                let both = memory.start.max(theirs.start)..memory.end.min(theirs.end);
                if !both.is_empty() {
                    found.push((own.clone().unwrap_or(both.clone()), their_own.clone().unwrap_or(both)));
                }
            }
        }
        found
    }

    /// The memory ranges of a resource, as addresses. The second range has the resource's own addresses, if they
    /// differ.
    fn memory_of(&self, placed: &Placement) -> Vec<(Range<u64>, Option<Range<u64>>)> {
        let base = |memory: MemoryId| self.memories.base_address(memory);
        let whole = placed.is_opaque().then(|| placed.whole());
        match (&placed.sparse, placed.binding) {
            (Some(sparse), _) if placed.is_opaque() => {
                let of_part = |sparse_memory: SparseMemory| {
                    let start = base(sparse_memory.memory.memory)? + sparse_memory.memory.offset;
                    let own = sparse_memory.addresses.map(|it| placed.base + it.start..placed.base + it.end);
                    let own = own.filter(|_| !placed.has_component_planes).or(whole.clone());
                    Some((start..start + sparse_memory.memory.size, own))
                };
                sparse.memory_blocks().into_iter().filter_map(of_part).collect()
            }
            (Some(sparse), _) => sparse.all_addresses().into_iter().map(|it| (it, None)).collect(),
            (None, Some(binding)) => {
                let Some(start) = base(binding.memory) else { return Vec::new() };
                let memory = start + binding.offset..start + binding.offset + binding.size;
                vec![(memory, whole)]
            }
            (None, None) => Vec::new(),
        }
    }

    /// All addresses of a resource.
    pub(crate) fn whole(&self, resource: ResourceId) -> Range<u64> {
        self.placements.get(resource.0 as usize).map_or(0..0, Placement::whole)
    }

    /// The aliases that must be checked when addresses of a resource are used. Each comes with the resource's own
    /// addresses that it shares.
    pub fn aliased_ranges(&self, resource: ResourceId, own: &[Range<u64>]) -> Vec<(Range<u64>, Range<u64>)> {
        let Some(placed) = self.placements.get(resource.0 as usize) else { return Vec::new() };
        let mut found = Vec::new();
        for other in &placed.aliases {
            let other = &self.placements[other.0 as usize];
            if placed.sparse.is_some() || other.sparse.is_some() {
                for (mine, theirs) in self.shared(placed, other) {
                    let parts = own.iter().map(|it| it.start.max(mine.start)..it.end.min(mine.end));
                    found.extend(parts.filter(|it| !it.is_empty()).map(|it| (it, theirs.clone())));
                }
                continue;
            }
            for own in own {
                let own = placed.overlap_with_binding(own.clone(), other.binding);
                let theirs = other.overlap_with_binding(other.whole(), placed.binding);
                if !own.is_empty() && !theirs.is_empty() {
                    found.push((own, theirs));
                }
            }
        }
        found
    }

    /// The regions of a resource that a range of addresses stands for.
    pub(crate) fn regions(&self, resource: ResourceId, range: &Range<u64>) -> Vec<Region> {
        let Some(placed) = self.placements.get(resource.0 as usize) else { return Vec::new() };
        if let Some(sparse) = placed.sparse.as_ref().filter(|_| !placed.is_opaque()) {
            return sparse.bytes_at(range).iter().flat_map(|it| self.relative_regions(resource, it)).collect();
        }
        let (start, end) = (range.start.saturating_sub(placed.base), range.end.saturating_sub(placed.base));
        match &placed.texels {
            None => vec![Region::Buffer(start..end)],
            Some(texels) => {
                let plane = if placed.has_component_planes { start / texels.size().max(1) } else { 0 };
                let components = if placed.has_component_planes { Components(1 << plane) } else { Components::ALL };
                let before = plane * texels.size();
                texels.regions(&(start - before..end - before), components)
            }
        }
    }
}

/// The result of a lookup: one range or several, with the identity of the resource.
pub(crate) enum AddressLookup {
    One(Range<u64>, ResourceIdentity),
    Many(Vec<Range<u64>>, ResourceIdentity),
    Empty,
    /// The addresses may change, so they must not be cached.
    NotFixed,
}

impl Placement {
    fn look_up(&self, region: &ImageRegion) -> AddressLookup {
        let Some(texels) = &self.texels else { return AddressLookup::Empty };
        if !self.has_component_planes && texels.is_whole(region) {
            return AddressLookup::One(self.base..self.base + texels.size(), self.identity);
        }
        let (mut first, mut others) = (None, Vec::new());
        self.each_image_range(region, &mut |range| match &first {
            None => first = Some(range),
            Some(_) => others.push(range),
        });
        match first {
            None => AddressLookup::Empty,
            Some(first) if others.is_empty() => AddressLookup::One(first, self.identity),
            Some(first) => {
                others.insert(0, first);
                AddressLookup::Many(others, self.identity)
            }
        }
    }

    /// The fields that most lookups need.
    fn plain_buffer(&self) -> PlainBuffer {
        match self.kind {
            ResourceKind::Buffer { size } if self.sparse.is_none() => {
                PlainBuffer { base: self.base, size, identity: self.identity }
            }
            _ => PlainBuffer::default(),
        }
    }

    /// An entry without a resource.
    fn removed() -> Placement {
        Placement {
            base: 0,
            kind: ResourceKind::Buffer { size: 0 },
            texels: None,
            binding: None,
            is_exclusive: false,
            sparse: None,
            identity: ResourceIdentity::default(),
            has_component_planes: false,
            aliases: Vec::new(),
            is_removed: true,
            is_free: false,
        }
    }

    fn whole(&self) -> Range<u64> {
        let size = match (&self.kind, &self.texels) {
            (ResourceKind::Buffer { size }, _) => *size,
            (ResourceKind::Image(_), texels) => texels.as_ref().map_or(0, |it| it.size()) * self.plane_count(),
        };
        self.base..self.base + size
    }

    /// The part of a resource's addresses that shares memory with another; the whole range if the resource is opaque.
    fn overlap_with_binding(&self, range: Range<u64>, other: Option<MemoryBinding>) -> Range<u64> {
        let (Some(own), Some(other), false) = (self.binding, other, self.is_opaque()) else { return range };
        let address = |offset: u64| self.base.saturating_add(offset).saturating_sub(own.offset);
        let (start, end) = (address(other.offset.max(own.offset)), address(other.offset + other.size));
        range.start.max(start)..range.end.min(end)
    }

    /// The planes of some components; only the first if the image has no planes.
    fn planes(&self, components: Components) -> impl Iterator<Item = u64> {
        match &self.texels {
            Some(texels) if self.has_component_planes => planes(Components(texels.components().0 & components.0)),
            _ => planes(Components(1)),
        }
    }

    fn plane_count(&self) -> u64 {
        let components = self.texels.as_ref().filter(|_| self.has_component_planes).map(|it| it.components());
        components.map_or(1, plane_count)
    }

    #[inline]
    fn needs_component_planes(&self, region: &Region) -> bool {
        let Region::Image(ImageRegion { components, .. }) = region else { return false };
        *components != Components::ALL && !self.has_component_planes && self.can_have_component_planes(*components)
    }

    fn can_have_component_planes(&self, components: Components) -> bool {
        self.is_opaque() && self.texels.as_ref().is_some_and(|it| it.is_part(components))
    }

    fn is_opaque(&self) -> bool {
        matches!(&self.kind, ResourceKind::Image(image) if !image.is_linear())
    }

    #[inline]
    fn each_image_range(&self, region: &ImageRegion, each: &mut impl FnMut(Range<u64>)) {
        let Some(texels) = &self.texels else { return };
        // The most frequent case.
        if self.sparse.is_none() && texels.is_whole(region) {
            for plane in self.planes(region.components) {
                let first = self.base + plane * texels.size();
                each(first..first + texels.size());
            }
            return;
        }
        self.each_partial_range(texels, region, each);
    }

    #[inline(never)]
    fn each_partial_range(&self, texels: &TexelLayout, region: &ImageRegion, each: &mut impl FnMut(Range<u64>)) {
        if let Some(sparse) = self.sparse.as_ref().filter(|_| !self.is_opaque()) {
            texels.each_range(region, &mut |range| sparse.addresses(&range).for_each(&mut *each));
            return;
        }
        for plane in self.planes(region.components) {
            let first = self.base + plane * texels.size();
            let mut each = |it: Range<u64>| each(first + it.start..first + it.end);
            match &self.sparse {
                None => texels.each_range(region, &mut each),
                Some(sparse) => {
                    texels.each_range(region, &mut |range| sparse.bound_ranges(&range).into_iter().for_each(&mut each))
                }
            }
        }
    }
}

/// The planes of some components. A component that the format does not have has no plane, because nothing ever writes
/// it.
fn planes(components: Components) -> impl Iterator<Item = u64> {
    (0..u64::from(u8::BITS)).filter(move |it| components.0 >> it & 1 != 0)
}

/// Number of planes up to the last component.
fn plane_count(components: Components) -> u64 {
    u64::from(u8::BITS - components.0.leading_zeros())
}

fn block((memory, offset): (MemoryId, u64), size: u64) -> SparseBlock {
    SparseBlock { memory, offset, size }
}

#[cfg(test)]
mod tests;
