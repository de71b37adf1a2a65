//! Where everything lies: one space of made-up addresses for all memory and all images.
//!
//! Memory, and what lies in it byte by byte, has linear addresses. An optimally tiled image has a range of its own, in
//! which one address is one texel or one block of texels (`texels`). Once single components of an image are used, it has
//! a range for each of them, so that runs of texels stay runs.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use lavascope_program::{
    Binding, Components, Image, MemoryId, Region, Resource, ResourceId, ResourceKind, SparseBind, SparsePart,
};

use crate::sparse::{Block, Part, Sparse};
use crate::texels::Texels;

/// What lies where.
#[derive(Clone, Default)]
pub(crate) struct Addresses {
    places: Vec<Placed>,
    memories: HashMap<MemoryId, u64>,
    next: u64,
}

#[derive(Clone)]
struct Placed {
    base: u64,
    kind: ResourceKind,
    /// Of an image.
    texels: Option<Arc<Texels>>,
    binding: Option<Binding>,
    is_exclusive: bool,
    /// Of a sparse resource.
    sparse: Option<Sparse>,
    /// Whether there is a range for each component, one behind the other.
    has_planes: bool,
    /// Resources in the same memory whose addresses say nothing about this one's.
    aliases: Vec<ResourceId>,
}

/// Red, green, blue, alpha.
const COMPONENTS: u64 = 4;
/// Room for a memory whose size nobody told.
const MEMORY_SIZE: u64 = 1 << 40;

impl Addresses {
    pub(crate) fn add(&mut self, resource: &Resource) -> ResourceId {
        let id = ResourceId(self.places.len() as u32);
        let texels = match &resource.kind {
            ResourceKind::Buffer { .. } => None,
            ResourceKind::Image(image) => Some(Arc::new(Texels::new(image))),
        };
        let size = texels.as_ref().map_or(0, |it| it.size());
        let base = match (&resource.kind, resource.binding) {
            (ResourceKind::Image(image), binding) if !image.is_linear() => {
                // Others may lie there as bytes.
                binding.map(|it| self.memory(it.memory));
                self.compatible(image, binding).unwrap_or_else(|| self.allocate(size))
            }
            (_, Some(binding)) => self.memory(binding.memory) + binding.offset,
            (ResourceKind::Buffer { size }, None) => self.allocate(*size),
            (ResourceKind::Image(_), None) => self.allocate(size),
        };
        let placed = Placed {
            base,
            kind: resource.kind.clone(),
            texels,
            binding: resource.binding,
            is_exclusive: resource.is_exclusive,
            sparse: resource.is_sparse.then(Sparse::default),
            has_planes: false,
            aliases: Vec::new(),
        };
        self.places.push(placed);
        self.find_aliases(id);
        id
    }

    fn allocate(&mut self, size: u64) -> u64 {
        let base = self.next;
        // Never next to each other, so that neighbors are never joined.
        self.next += size.max(1) + 1;
        base
    }

    fn memory(&mut self, memory: MemoryId) -> u64 {
        if let Some(base) = self.memories.get(&memory) {
            return *base;
        }
        let base = self.allocate(MEMORY_SIZE);
        self.memories.insert(memory, base);
        base
    }

    /// The base of an image that is the same one under another name.
    fn compatible(&self, image: &Image, binding: Option<Binding>) -> Option<u64> {
        let is_image = |it: &Placed| matches!(&it.kind, ResourceKind::Image(other) if other == image);
        let same = |it: &&Placed| is_image(it) && it.binding == binding;
        (image.alias && binding.is_some()).then(|| self.places.iter().find(same))?.map(|it| it.base)
    }

    fn find_aliases(&mut self, new: ResourceId) {
        let index = new.0 as usize;
        for other in 0..index {
            let (left, right) = (&self.places[other], &self.places[index]);
            let is_comparable = !left.is_opaque() && !right.is_opaque() || left.base == right.base;
            if !is_comparable && overlap(left.binding, right.binding) {
                self.places[other].aliases.push(new);
                self.places[index].aliases.push(ResourceId(other as u32));
            }
        }
    }

    /// The addresses of a part of a resource, in order.
    pub(crate) fn ranges(&self, resource: ResourceId, region: &Region) -> Vec<Range<u64>> {
        let Some(placed) = self.places.get(resource.0 as usize) else { return Vec::new() };
        match (&placed.kind, &placed.texels, region) {
            (ResourceKind::Buffer { size }, _, Region::Buffer(bytes)) => {
                let cut = bytes.start.min(*size)..bytes.end.min(*size);
                if let Some(sparse) = &placed.sparse {
                    return sparse.addresses(&cut).collect();
                }
                let range = placed.base + cut.start..placed.base + cut.end;
                Some(range).filter(|it| !it.is_empty()).into_iter().collect()
            }
            (ResourceKind::Image(_), Some(texels), Region::Image(region)) => {
                let ranges = match &placed.sparse {
                    None => texels.ranges(region),
                    Some(sparse) if placed.is_opaque() => {
                        texels.ranges(region).iter().flat_map(|it| sparse.bound(it)).collect()
                    }
                    Some(sparse) => {
                        return texels.ranges(region).iter().flat_map(|it| sparse.addresses(it)).collect();
                    }
                };
                let of_plane = |plane: u64| {
                    let first = placed.base + plane * texels.size();
                    ranges.iter().map(move |it| first + it.start..first + it.end)
                };
                placed.planes(region.components).flat_map(of_plane).collect()
            }
            // The region of something else: nothing of this resource.
            _ => Vec::new(),
        }
    }

    pub(crate) fn is_exclusive(&self, resource: ResourceId) -> bool {
        self.places.get(resource.0 as usize).is_some_and(|it| it.is_exclusive)
    }

    /// Where a part of a resource lies, from the beginning of the resource, whatever its components and its memory.
    pub(crate) fn own_ranges(&self, resource: ResourceId, region: &Region) -> Vec<Range<u64>> {
        let Some(placed) = self.places.get(resource.0 as usize) else { return Vec::new() };
        match (&placed.kind, &placed.texels, region) {
            (ResourceKind::Buffer { size }, _, Region::Buffer(bytes)) => {
                let cut = bytes.start.min(*size)..bytes.end.min(*size);
                Some(cut).filter(|it| !it.is_empty()).into_iter().collect()
            }
            (ResourceKind::Image(_), Some(texels), Region::Image(region)) => texels.ranges(region),
            _ => Vec::new(),
        }
    }

    /// What such a range is called in the words of the resource.
    pub(crate) fn own_regions(&self, resource: ResourceId, range: &Range<u64>) -> Vec<Region> {
        let Some(placed) = self.places.get(resource.0 as usize) else { return Vec::new() };
        match &placed.texels {
            None => vec![Region::Buffer(range.clone())],
            Some(texels) => texels.regions(range, Components::ALL),
        }
    }

    /// Whether a region is the first that asks for single components of an image. Byte by byte they lie elsewhere,
    /// so this is for optimal tiling.
    pub(crate) fn wants_planes(&self, resource: ResourceId, region: &Region) -> bool {
        let is_part = matches!(region, Region::Image(it) if it.components != Components::ALL);
        is_part && self.places.get(resource.0 as usize).is_some_and(|it| it.is_opaque() && !it.has_planes)
    }

    /// Gives an image, and its compatible aliases, a range for each component. Gives the old addresses and the new
    /// ones, plane by plane.
    pub(crate) fn add_planes(&mut self, resource: ResourceId) -> (Range<u64>, Vec<u64>) {
        let old = self.whole(resource);
        let size = old.end - old.start;
        let base = self.allocate(size * COMPONENTS);
        for it in self.places.iter_mut().filter(|it| it.is_opaque() && it.base == old.start) {
            (it.base, it.has_planes) = (base, true);
        }
        (old, (0..COMPONENTS).map(|it| base + it * size).collect())
    }

    /// Gives memory to a part of a sparse resource, or takes it away. Gives addresses of which nothing is known any more.
    pub(crate) fn bind(&mut self, bind: &SparseBind) -> Vec<Range<u64>> {
        let index = bind.resource.0 as usize;
        let own = match &bind.part {
            SparsePart::Texels(region) => self.own_ranges(bind.resource, &Region::Image(region.clone())),
            SparsePart::Bytes(_) => Vec::new(),
        };
        let base = bind.memory.map(|(memory, offset)| self.memory(memory) + offset);
        let Some(placed) = self.places.get_mut(index) else { return Vec::new() };
        let (whole, is_opaque, first, has_planes) =
            (placed.whole(), placed.is_opaque(), placed.base, placed.has_planes);
        let Some(sparse) = &mut placed.sparse else { return Vec::new() };
        let moved = match bind.part {
            SparsePart::Bytes(start) if is_opaque => {
                let has_moved = sparse.bind_opaque(start..start + bind.size, bind.memory);
                Some(whole).filter(|_| has_moved).into_iter().collect()
            }
            SparsePart::Bytes(start) => {
                sparse.bind_bytes(start..start + bind.size, base);
                Vec::new()
            }
            SparsePart::Texels(_) if has_planes => {
                // Where its texels are in its planes is not worth finding out.
                sparse.bind_texels(&own, bind.memory.map(|it| block(it, bind.size)));
                Some(whole).into_iter().collect()
            }
            SparsePart::Texels(_) => {
                let moved = sparse.bind_texels(&own, bind.memory.map(|it| block(it, bind.size)));
                moved.into_iter().map(|it| first + it.start..first + it.end).collect()
            }
        };
        self.find_sparse_aliases(bind.resource);
        moved
    }

    /// Finds again who shares memory with a sparse resource.
    fn find_sparse_aliases(&mut self, resource: ResourceId) {
        let index = resource.0 as usize;
        for other in 0..self.places.len() {
            if other == index {
                continue;
            }
            let other_id = ResourceId(other as u32);
            let (left, right) = (&self.places[other], &self.places[index]);
            let is_comparable = !left.is_opaque() && !right.is_opaque();
            let is_alias = !is_comparable && !self.shared(right, left).is_empty();
            self.places[index].aliases.retain(|it| *it != other_id);
            self.places[other].aliases.retain(|it| *it != resource);
            if is_alias {
                self.places[index].aliases.push(other_id);
                self.places[other].aliases.push(resource);
            }
        }
    }

    /// Where two resources share memory, of which at least one is sparse: addresses of the one and of the other.
    fn shared(&self, one: &Placed, other: &Placed) -> Vec<(Range<u64>, Range<u64>)> {
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

    /// The memory that a resource has, as addresses, with the own addresses that lie there if these are others.
    fn memory_of(&self, placed: &Placed) -> Vec<(Range<u64>, Option<Range<u64>>)> {
        let base = |memory: MemoryId| self.memories.get(&memory).copied();
        let whole = placed.is_opaque().then(|| placed.whole());
        match (&placed.sparse, placed.binding) {
            (Some(sparse), _) if placed.is_opaque() => {
                let of_part = |it: Part| {
                    let start = base(it.memory.memory)? + it.memory.offset;
                    let own = it.own.map(|it| placed.base + it.start..placed.base + it.end);
                    let own = own.filter(|_| !placed.has_planes).or(whole.clone());
                    Some((start..start + it.memory.size, own))
                };
                sparse.parts().into_iter().filter_map(of_part).collect()
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
        self.places.get(resource.0 as usize).map_or(0..0, Placed::whole)
    }

    /// All addresses at which a resource may be known.
    pub(crate) fn everywhere(&self, resource: ResourceId) -> Vec<Range<u64>> {
        let Some(placed) = self.places.get(resource.0 as usize) else { return Vec::new() };
        match &placed.sparse {
            Some(sparse) if !placed.is_opaque() => sparse.all_addresses(),
            _ => vec![placed.whole()],
        }
    }

    /// What else must be looked at when addresses of a resource are used: others that lie in the same memory, but in
    /// a way that cannot be compared. Gives the part of the own addresses that each is about.
    pub(crate) fn aliased(&self, resource: ResourceId, own: &[Range<u64>]) -> Vec<(Range<u64>, Range<u64>)> {
        let Some(placed) = self.places.get(resource.0 as usize) else { return Vec::new() };
        let mut found = Vec::new();
        for other in &placed.aliases {
            let other = &self.places[other.0 as usize];
            if placed.sparse.is_some() || other.sparse.is_some() {
                for (mine, theirs) in self.shared(placed, other) {
                    let parts = own.iter().map(|it| it.start.max(mine.start)..it.end.min(mine.end));
                    found.extend(parts.filter(|it| !it.is_empty()).map(|it| (it, theirs.clone())));
                }
                continue;
            }
            for own in own {
                let own = placed.part_in(own.clone(), other.binding);
                let theirs = other.part_in(other.whole(), placed.binding);
                if !own.is_empty() && !theirs.is_empty() {
                    found.push((own, theirs));
                }
            }
        }
        found
    }

    /// What a range of addresses is called in the words of a resource.
    pub(crate) fn regions(&self, resource: ResourceId, range: &Range<u64>) -> Vec<Region> {
        let Some(placed) = self.places.get(resource.0 as usize) else { return Vec::new() };
        if let Some(sparse) = placed.sparse.as_ref().filter(|_| !placed.is_opaque()) {
            return sparse.bytes_at(range).iter().flat_map(|it| self.own_regions(resource, it)).collect();
        }
        let (start, end) = (range.start.saturating_sub(placed.base), range.end.saturating_sub(placed.base));
        match &placed.texels {
            None => vec![Region::Buffer(start..end)],
            Some(texels) => {
                let plane = if placed.has_planes { start / texels.size().max(1) } else { 0 };
                let components = if placed.has_planes { Components(1 << plane) } else { Components::ALL };
                let before = plane * texels.size();
                texels.regions(&(start - before..end - before), components)
            }
        }
    }
}

impl Placed {
    fn whole(&self) -> Range<u64> {
        let size = match (&self.kind, &self.texels) {
            (ResourceKind::Buffer { size }, _) => *size,
            (ResourceKind::Image(_), texels) => texels.as_ref().map_or(0, |it| it.size()) * self.plane_count(),
        };
        self.base..self.base + size
    }

    /// The part of own addresses that lies in the memory of another: of something opaque, all.
    fn part_in(&self, range: Range<u64>, other: Option<Binding>) -> Range<u64> {
        let (Some(own), Some(other), false) = (self.binding, other, self.is_opaque()) else { return range };
        let address = |offset: u64| self.base.saturating_add(offset).saturating_sub(own.offset);
        let (start, end) = (address(other.offset.max(own.offset)), address(other.offset + other.size));
        range.start.max(start)..range.end.min(end)
    }

    /// The planes that have some components; the first is all there is without planes.
    fn planes(&self, components: Components) -> impl Iterator<Item = u64> {
        let has_planes = self.has_planes;
        (0..self.plane_count()).filter(move |it| !has_planes || components.0 >> it & 1 != 0)
    }

    fn plane_count(&self) -> u64 {
        if self.has_planes { COMPONENTS } else { 1 }
    }

    fn is_opaque(&self) -> bool {
        matches!(&self.kind, ResourceKind::Image(image) if !image.is_linear())
    }
}

fn block((memory, offset): (MemoryId, u64), size: u64) -> Block {
    Block { memory, offset, size }
}

fn overlap(left: Option<Binding>, right: Option<Binding>) -> bool {
    let (Some(left), Some(right)) = (left, right) else { return false };
    left.memory == right.memory && left.offset < right.offset + right.size && right.offset < left.offset + left.size
}
