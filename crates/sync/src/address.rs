//! Where everything lies: one space of made-up addresses for all memory and all images.
//!
//! Memory, and what lies in it byte by byte, has linear addresses. An optimally tiled image has a range of its own, in
//! which one address is one texel: aspect by aspect, level by level, layer by layer, slice by slice, row by row. Once
//! single components of an image are used, it has a range for each of them, so that runs of texels stay runs.

use std::collections::HashMap;
use std::ops::Range;

use lavascope_abi::{FORMATS, Format, ImageAspectFlags};
use lavascope_base::IntervalMap;
use lavascope_program::{
    Area, Binding, Components, Image, ImageRegion, MemoryId, Region, Resource, ResourceId, ResourceKind, Tiling,
};

/// What lies where.
#[derive(Default)]
pub(crate) struct Addresses {
    places: Vec<Placed>,
    /// Ids of what was destroyed, to be given again.
    free: Vec<ResourceId>,
    memories: HashMap<MemoryId, Memory>,
    next: u64,
    /// How often something that exists got other addresses.
    moves: u64,
    identities: u32,
}

#[derive(Default)]
struct Memory {
    base: u64,
    /// Which resources lie where.
    bound: IntervalMap<Vec<ResourceId>>,
}

struct Placed {
    base: u64,
    kind: ResourceKind,
    /// Of an image.
    layout: Layout,
    binding: Option<Binding>,
    /// The same for compatible aliases, which are all one; used once only, unlike ids.
    identity: ResourceId,
    /// Whether there is a range for each component, one behind the other.
    has_planes: bool,
    /// Resources in the same memory whose addresses say nothing about this one's.
    aliases: Vec<ResourceId>,
    is_gone: bool,
}

/// How the texels of an image follow each other: looked up once, since every access asks.
#[derive(Default)]
struct Layout {
    /// With where each begins.
    aspects: Vec<(Aspect, u64)>,
    texels: u64,
    texel_size: u64,
}

impl Layout {
    fn new(kind: &ResourceKind) -> Layout {
        match kind {
            ResourceKind::Buffer { .. } => Layout::default(),
            ResourceKind::Image(image) => {
                Layout { aspects: placed_aspects(image), texels: texels(image), texel_size: texel_size(image) }
            }
        }
    }
}

/// Red, green, blue, alpha.
const COMPONENTS: u64 = 4;
/// Room for a memory whose size nobody told.
const MEMORY_SIZE: u64 = 1 << 40;

impl Addresses {
    pub(crate) fn add(&mut self, resource: &Resource) -> ResourceId {
        let id = self.free.last().copied().unwrap_or(ResourceId(self.places.len() as u32));
        self.set(id, resource);
        id
    }

    /// There is a resource of this number from now on.
    pub(crate) fn set(&mut self, id: ResourceId, resource: &Resource) {
        self.remove(id);
        let base = match (&resource.kind, resource.binding) {
            (ResourceKind::Image(image), _) if image.tiling == Tiling::Optimal => match self.compatible(resource) {
                Some(same) => same.base,
                None => self.allocate(texels(image)),
            },
            (_, Some(binding)) => self.memory(binding.memory) + binding.offset,
            (ResourceKind::Buffer { size }, None) => self.allocate(*size),
            (ResourceKind::Image(image), None) => self.allocate(texels(image) * texel_size(image)),
        };
        let placed = Placed {
            base,
            kind: resource.kind.clone(),
            layout: Layout::new(&resource.kind),
            binding: resource.binding,
            identity: match self.compatible(resource) {
                Some(same) => same.identity,
                None => self.next_identity(),
            },
            has_planes: false,
            aliases: Vec::new(),
            is_gone: false,
        };
        self.put(id, placed);
        self.find_aliases(id);
    }

    fn next_identity(&mut self) -> ResourceId {
        self.identities = self.identities.wrapping_add(1);
        ResourceId(self.identities)
    }

    fn put(&mut self, id: ResourceId, placed: Placed) {
        while self.places.len() <= id.0 as usize {
            self.free.push(ResourceId(self.places.len() as u32));
            self.places.push(Placed::gone());
        }
        // The last one was freed last, in most cases.
        if let Some(at) = self.free.iter().rposition(|it| *it == id) {
            self.free.swap_remove(at);
        }
        self.places[id.0 as usize] = placed;
    }

    /// A resource is no more; its id may be given to another.
    pub(crate) fn remove(&mut self, id: ResourceId) {
        let Some(placed) = self.places.get_mut(id.0 as usize).filter(|it| !it.is_gone) else { return };
        placed.is_gone = true;
        let (binding, aliases) = (placed.binding, std::mem::take(&mut placed.aliases));
        for other in aliases {
            self.places[other.0 as usize].aliases.retain(|it| *it != id);
        }
        if let Some((binding, memory)) = binding.and_then(|it| Some((it, self.memories.get_mut(&it.memory)?))) {
            memory.bound.update(range_of(binding), |_, all| {
                all.iter_mut().for_each(|it| it.retain(|it| *it != id));
                *all = all.take().filter(|it| !it.is_empty());
            });
        }
        self.free.push(id);
    }

    /// How often addresses of something that exists have changed.
    pub(crate) fn moves(&self) -> u64 {
        self.moves
    }

    /// Whether some other resource must be looked at too when this one is used.
    pub(crate) fn has_aliases(&self, resource: ResourceId) -> bool {
        self.places.get(resource.0 as usize).is_some_and(|it| !it.aliases.is_empty())
    }

    fn allocate(&mut self, size: u64) -> u64 {
        let base = self.next;
        // Never next to each other, so that neighbors are never joined.
        self.next += size.max(1) + 1;
        base
    }

    fn memory(&mut self, memory: MemoryId) -> u64 {
        if let Some(memory) = self.memories.get(&memory) {
            return memory.base;
        }
        let base = self.allocate(MEMORY_SIZE);
        self.memories.insert(memory, Memory { base, ..Memory::default() });
        base
    }

    /// What lies in the memory of a binding.
    fn bound(&self, binding: Binding) -> impl Iterator<Item = ResourceId> {
        let memory = self.memories.get(&binding.memory).into_iter();
        memory.flat_map(move |it| it.bound.overlapping(range_of(binding))).flat_map(|it| it.1).copied()
    }

    /// An image that is the same one under another name.
    fn compatible(&self, resource: &Resource) -> Option<&Placed> {
        let (ResourceKind::Image(image), Some(binding)) = (&resource.kind, resource.binding) else { return None };
        let same = |it: &&Placed| it.kind == resource.kind && it.binding == resource.binding;
        image.alias.then(|| self.bound(binding).map(|it| &self.places[it.0 as usize]).find(same)).flatten()
    }

    /// What a resource is, whatever it is called.
    #[inline]
    pub(crate) fn identity(&self, resource: ResourceId) -> ResourceId {
        self.places.get(resource.0 as usize).map_or(resource, |it| it.identity)
    }

    /// Finds what shares memory with a new resource in a way that cannot be compared.
    fn find_aliases(&mut self, new: ResourceId) {
        let index = new.0 as usize;
        let Some(binding) = self.places[index].binding else { return };
        self.memory(binding.memory);
        let mut others: Vec<ResourceId> = self.bound(binding).collect();
        others.sort_unstable();
        others.dedup();
        for other in others {
            let (left, right) = (&self.places[other.0 as usize], &self.places[index]);
            let is_comparable = !left.is_opaque() && !right.is_opaque() || left.base == right.base;
            if !is_comparable {
                self.places[other.0 as usize].aliases.push(new);
                self.places[index].aliases.push(other);
            }
        }
        if let Some(memory) = self.memories.get_mut(&binding.memory) {
            memory.bound.update(range_of(binding), |_, all| all.get_or_insert_default().push(new));
        }
    }

    /// The addresses of a part of a resource, in order.
    pub(crate) fn ranges(&self, resource: ResourceId, region: &Region) -> Vec<Range<u64>> {
        let mut found = Vec::new();
        self.each_range(resource, region, |it| found.push(it));
        found
    }

    pub(crate) fn each_range(&self, resource: ResourceId, region: &Region, mut each: impl FnMut(Range<u64>)) {
        let Some(placed) = self.places.get(resource.0 as usize) else { return };
        match (&placed.kind, region) {
            (ResourceKind::Buffer { size }, Region::Buffer(bytes)) => {
                let cut = bytes.start.min(*size)..bytes.end.min(*size);
                if !cut.is_empty() {
                    each(placed.base + cut.start..placed.base + cut.end);
                }
            }
            (ResourceKind::Image(image), Region::Image(region)) => {
                let unit = placed.unit(image);
                let is_whole = is_whole(image, &placed.layout, region);
                for plane in placed.planes(region.components) {
                    if is_whole {
                        let size = placed.layout.texels * unit;
                        each(placed.base + plane * size..placed.base + (plane + 1) * size);
                        continue;
                    }
                    let first = placed.base + plane * placed.layout.texels * unit;
                    let mut each = |it: Range<u64>| each(first + it.start * unit..first + it.end * unit);
                    each_image_range(image, &placed.layout, region, &mut each);
                }
            }
            // The region of something else: nothing of this resource.
            _ => {}
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
        self.moves += 1;
        let size = old.end - old.start;
        let base = self.allocate(size * COMPONENTS);
        for it in self.places.iter_mut().filter(|it| it.is_opaque() && it.base == old.start) {
            (it.base, it.has_planes) = (base, true);
        }
        (old, (0..COMPONENTS).map(|it| base + it * size).collect())
    }

    /// All addresses of a resource.
    pub(crate) fn whole(&self, resource: ResourceId) -> Range<u64> {
        self.places.get(resource.0 as usize).map_or(0..0, Placed::whole)
    }

    /// What else must be looked at when addresses of a resource are used: others that lie in the same memory, but in
    /// a way that cannot be compared. Gives the part of the own addresses that each is about.
    pub(crate) fn aliased(&self, resource: ResourceId, own: &[Range<u64>]) -> Vec<(Range<u64>, Range<u64>)> {
        let Some(placed) = self.places.get(resource.0 as usize) else { return Vec::new() };
        let mut found = Vec::new();
        for other in &placed.aliases {
            let other = &self.places[other.0 as usize];
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
        let (start, end) = (range.start.saturating_sub(placed.base), range.end.saturating_sub(placed.base));
        match &placed.kind {
            ResourceKind::Buffer { .. } => vec![Region::Buffer(start..end)],
            ResourceKind::Image(image) => {
                let unit = placed.unit(image);
                let size = placed.layout.texels;
                let (start, end) = (start / unit, end.div_ceil(unit));
                let plane = start / size;
                let components = if placed.has_planes { Components(1 << plane) } else { Components::ALL };
                image_regions(image, &placed.layout, start - plane * size..end - plane * size, components)
            }
        }
    }
}

impl Placed {
    /// Nothing is there.
    fn gone() -> Placed {
        Placed {
            base: 0,
            kind: ResourceKind::Buffer { size: 0 },
            layout: Layout::default(),
            binding: None,
            identity: ResourceId(0),
            has_planes: false,
            aliases: Vec::new(),
            is_gone: true,
        }
    }

    fn whole(&self) -> Range<u64> {
        let size = match &self.kind {
            ResourceKind::Buffer { size } => *size,
            ResourceKind::Image(image) => self.layout.texels * self.unit(image) * self.plane_count(),
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
        matches!(&self.kind, ResourceKind::Image(image) if image.tiling == Tiling::Optimal)
    }

    /// Addresses of one texel.
    fn unit(&self, image: &Image) -> u64 {
        if image.tiling == Tiling::Optimal { 1 } else { self.layout.texel_size }
    }
}

fn range_of(binding: Binding) -> Range<u64> {
    binding.offset..binding.offset.saturating_add(binding.size)
}

fn texel_size(image: &Image) -> u64 {
    let desc = FORMATS.iter().find(|it| it.format == image.format);
    desc.map_or(1, |it| u64::from(it.block_size)).max(1)
}

/// One aspect of an image, or one of its planes.
#[derive(Clone, Copy)]
struct Aspect {
    bit: u32,
    /// By what a plane is smaller than the image.
    divisors: [u32; 3],
}

/// The aspects of an image, in the order of their addresses.
fn aspects(image: &Image) -> Vec<Aspect> {
    let whole = |bit: ImageAspectFlags| Aspect { bit: bit.0, divisors: [1; 3] };
    match image.format {
        Format::D16_UNORM_S8_UINT | Format::D24_UNORM_S8_UINT | Format::D32_SFLOAT_S8_UINT => {
            vec![whole(ImageAspectFlags::DEPTH), whole(ImageAspectFlags::STENCIL)]
        }
        Format::D16_UNORM | Format::X8_D24_UNORM_PACK32 | Format::D32_SFLOAT => vec![whole(ImageAspectFlags::DEPTH)],
        Format::S8_UINT => vec![whole(ImageAspectFlags::STENCIL)],
        format => match FORMATS.iter().find(|it| it.format == format).map_or(&[][..], |it| it.planes) {
            [] | [_] => vec![whole(ImageAspectFlags::COLOR)],
            planes => planes
                .iter()
                .zip([ImageAspectFlags::PLANE_0, ImageAspectFlags::PLANE_1, ImageAspectFlags::PLANE_2])
                .map(|(it, bit)| Aspect { bit: bit.0, divisors: [it.width_divisor, it.height_divisor, 1] })
                .collect(),
        },
    }
}

impl Aspect {
    /// The color of an image with planes is all of them.
    fn is_in(&self, mask: u32) -> bool {
        const PLANES: u32 = ImageAspectFlags::PLANE_0.0 | ImageAspectFlags::PLANE_1.0 | ImageAspectFlags::PLANE_2.0;
        let is_color = mask & ImageAspectFlags::COLOR.0 != 0 && self.bit & PLANES != 0;
        mask & self.bit != 0 || is_color
    }

    fn extent(&self, image: &Image, mip: u32) -> [u32; 3] {
        let extent = image.extent_of_mip(mip);
        std::array::from_fn(|it| extent[it].div_ceil(self.divisors[it].max(1)))
    }

    fn texels_of_mip(&self, image: &Image, mip: u32) -> u64 {
        self.extent(image, mip).iter().map(|it| u64::from(*it)).product()
    }

    fn texels(&self, image: &Image) -> u64 {
        (0..image.mips).map(|it| self.texels_of_mip(image, it)).sum::<u64>() * u64::from(image.layers)
    }

    /// Where a subresource begins inside the aspect.
    fn subresource(&self, image: &Image, mip: u32, layer: u32) -> u64 {
        let mips: u64 = (0..mip).map(|it| self.texels_of_mip(image, it)).sum::<u64>() * u64::from(image.layers);
        mips + u64::from(layer) * self.texels_of_mip(image, mip)
    }
}

fn texels(image: &Image) -> u64 {
    aspects(image).iter().map(|it| it.texels(image)).sum()
}

/// The aspects of an image, with where each begins.
fn placed_aspects(image: &Image) -> Vec<(Aspect, u64)> {
    let mut base = 0;
    let mut place = |it: Aspect| {
        base += it.texels(image);
        (it, base - it.texels(image))
    };
    aspects(image).into_iter().map(&mut place).collect()
}

/// Whether a region is all of an image, which is one range.
fn is_whole(image: &Image, layout: &Layout, region: &ImageRegion) -> bool {
    let ends = |it: &Range<u32>, end: u32| it.start == 0 && it.end >= end;
    region.area.is_none()
        && ends(&region.mips, image.mips)
        && ends(&region.layers, image.layers)
        && layout.aspects.iter().all(|it| it.0.is_in(region.aspects))
}

fn each_image_range(image: &Image, layout: &Layout, region: &ImageRegion, each: &mut impl FnMut(Range<u64>)) {
    let mut last = 0..0;
    let mut add = |range: Range<u64>| match range {
        range if range.is_empty() => {}
        range if last.end == range.start && !last.is_empty() => last.end = range.end,
        range => {
            let done = std::mem::replace(&mut last, range);
            if !done.is_empty() {
                each(done);
            }
        }
    };
    for (aspect, first) in layout.aspects.iter().filter(|it| it.0.is_in(region.aspects)) {
        for mip in region.mips.start..region.mips.end.min(image.mips) {
            for layer in region.layers.start..region.layers.end.min(image.layers) {
                let base = first + aspect.subresource(image, mip, layer);
                area_ranges(aspect.extent(image, mip), region.area, base, &mut add);
            }
        }
    }
    if !last.is_empty() {
        each(last);
    }
}

fn area_ranges(extent: [u32; 3], area: Option<Area>, base: u64, add: &mut impl FnMut(Range<u64>)) {
    let [width, height, _] = extent.map(u64::from);
    let whole = Area { offset: [0; 3], extent };
    let area = area.unwrap_or(whole);
    let part = |at: usize| {
        let start = u64::from(area.offset[at]).min(u64::from(extent[at]));
        start..(start + u64::from(area.extent[at])).min(u64::from(extent[at]))
    };
    let (x, y, z) = (part(0), part(1), part(2));
    let is_wide = x == (0..width);
    for slice in z {
        let slice_base = base + slice * width * height;
        if is_wide {
            add(slice_base + y.start * width..slice_base + y.end * width);
            continue;
        }
        for row in y.clone() {
            add(slice_base + row * width + x.start..slice_base + row * width + x.end);
        }
    }
}

/// A range of texels in the words of the API: a region for each row, slice or subresource.
fn image_regions(image: &Image, layout: &Layout, range: Range<u64>, components: Components) -> Vec<Region> {
    let mut found = Vec::new();
    for (aspect, first) in &layout.aspects {
        for mip in 0..image.mips {
            for layer in 0..image.layers {
                let base = first + aspect.subresource(image, mip, layer);
                let size = aspect.texels_of_mip(image, mip);
                let part = range.start.max(base)..range.end.min(base + size);
                if part.is_empty() {
                    continue;
                }
                let region = |area| {
                    Region::Image(ImageRegion {
                        aspects: aspect.bit,
                        mips: mip..mip + 1,
                        layers: layer..layer + 1,
                        area,
                        components,
                    })
                };
                if part == (base..base + size) {
                    found.push(region(None));
                } else {
                    let areas = areas(aspect.extent(image, mip), part.start - base..part.end - base);
                    found.extend(areas.into_iter().map(|it| region(Some(it))));
                }
            }
        }
    }
    found
}

/// A run of texels of a subresource, row by row; rows that are whole together.
fn areas(extent: [u32; 3], run: Range<u64>) -> Vec<Area> {
    let [width, height, _] = extent.map(u64::from);
    let mut found: Vec<Area> = Vec::new();
    let mut at = run.start;
    while at < run.end {
        let (z, y, x) = (at / (width * height), at / width % height, at % width);
        let end = run.end.min(at - x + width);
        let area = Area { offset: [x as u32, y as u32, z as u32], extent: [(end - at) as u32, 1, 1] };
        match found.last_mut() {
            Some(last) if is_below(last, &area) => last.extent[1] += 1,
            _ => found.push(area),
        }
        at = end;
    }
    found
}

fn is_below(upper: &Area, lower: &Area) -> bool {
    upper.offset[0] == lower.offset[0]
        && upper.extent[0] == lower.extent[0]
        && upper.offset[1] + upper.extent[1] == lower.offset[1]
        && upper.offset[2] == lower.offset[2]
}
