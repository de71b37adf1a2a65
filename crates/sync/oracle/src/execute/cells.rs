//! Splits resources into cells: the smallest parts that an access reads or writes.
//!
//! A cell is a byte, for a buffer or a linear image in known memory. For other images it is one component of a texel,
//! or one block of texels where the format has blocks. Compatible aliases have the same cells. Incompatible aliases
//! have different cells, and [`CellTable::aliases`] lists the pairs that may share memory
//! (`resources-memory-aliasing`).

use std::{collections::HashMap, ops::Range};

use lavascope_abi::{FORMATS, Format, ImageAspectFlags, desc::FormatPlane};
use lavascope_sync_ir::{
    Area, ImageDesc, ImageRegion, MemoryBinding, MemoryId, Program, Region, Resource, ResourceId, ResourceKind,
    SparseBind, SparsePart, SubresourceLayout, Tiling,
};

/// The smallest thing that can be read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MemoryCell {
    /// A byte of a buffer that shares its memory with no other resource.
    Byte { resource: u32, byte: u64 },
    /// A byte of memory that several resources may use.
    Memory { memory: u32, byte: u64 },
    /// A component of a texel, or of a block of texels; `image` is the first of its compatible aliases.
    Texel { image: u32, aspect: u32, mip: u32, layer: u32, texel: [u32; 3], component: u32 },
    /// As `Texel`, for a sparse image whose sparse block has known memory.
    SparseBlock {
        image: u32,
        aspect: u32,
        mip: u32,
        layer: u32,
        texel: [u32; 3],
        component: u32,
        memory: u32,
        offset: u64,
        size: u64,
    },
}

/// All cells seen so far. A cell gets the next free number when it first appears.
pub(crate) struct CellTable<'p> {
    program: &'p Program,
    numbers: HashMap<MemoryCell, u32>,
    cells: Vec<MemoryCell>,
    /// The sparse binds so far, in order. A later bind replaces an earlier one.
    binds: Vec<SparseBind>,
}

impl<'p> CellTable<'p> {
    pub(crate) fn new(program: &'p Program) -> CellTable<'p> {
        CellTable { program, numbers: HashMap::new(), cells: Vec::new(), binds: Vec::new() }
    }

    pub(crate) fn bind(&mut self, bind: &SparseBind) {
        self.binds.push(bind.clone());
    }

    /// The cells of a region with the sparse binds made so far.
    pub(crate) fn current_cells(&self, resource: ResourceId, region: &Region) -> Vec<MemoryCell> {
        let own = cells_of(self.program, resource, region);
        match self.program.resources.get(resource.0 as usize) {
            Some(item) if item.is_sparse => own.into_iter().filter_map(|it| self.bound_cell(resource, it)).collect(),
            _ => own,
        }
    }

    /// The memory under a cell of a sparse resource; none if nothing is bound there.
    fn bound_cell(&self, resource: ResourceId, cell: MemoryCell) -> Option<MemoryCell> {
        let mut binds = self.binds.iter().rev().filter(|it| it.resource == resource);
        match cell {
            MemoryCell::Byte { byte, .. } => {
                let has = |sparse_bind: &SparseBind| match sparse_bind.part {
                    SparsePart::Bytes(start) => (start..start + sparse_bind.size).contains(&byte).then(|| byte - start),
                    SparsePart::Texels(_) => None,
                };
                let (inside, memory) = binds.find_map(|it| Some((has(it)?, it.memory)))?;
                memory.map(|(memory, offset)| MemoryCell::Memory { memory: memory.0, byte: offset + inside })
            }
            MemoryCell::Texel { image, aspect, mip, layer, texel, component } => {
                let is_there = |sparse_bind: &SparseBind| match &sparse_bind.part {
                    SparsePart::Texels(part) => {
                        cells_of(self.program, resource, &Region::Image(part.clone())).contains(&cell)
                    }
                    SparsePart::Bytes(_) => false,
                };
                let has_opaque = !self.opaque_bindings(resource.0).is_empty();
                let block = binds.find(|it| is_there(it)).and_then(|it| Some((it.memory?, it.size)));
                match block {
                    Some(((memory, offset), size)) => {
                        let memory = memory.0;
                        Some(MemoryCell::SparseBlock {
                            image,
                            aspect,
                            mip,
                            layer,
                            texel,
                            component,
                            memory,
                            offset,
                            size,
                        })
                    }
                    None => Some(cell).filter(|_| has_opaque),
                }
            }
            other => Some(other),
        }
    }

    /// The memory bound to an image with opaque binds, where any texel may lie anywhere. Memory that was unbound later
    /// is included, too.
    fn opaque_bindings(&self, image: u32) -> Vec<MemoryBinding> {
        let own = self.binds.iter().filter(|it| it.resource.0 == image && matches!(it.part, SparsePart::Bytes(_)));
        own.filter_map(|it| it.memory.map(|(memory, offset)| MemoryBinding { memory, offset, size: it.size })).collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.cells.len()
    }

    pub(crate) fn get(&self, number: u32) -> MemoryCell {
        self.cells[number as usize]
    }

    /// The numbers of the cells of a region.
    pub(crate) fn cell_indices(&mut self, resource: ResourceId, region: &Region) -> Vec<u32> {
        let cells = self.current_cells(resource, region);
        cells.into_iter().map(|it| self.cell_index(it)).collect()
    }

    /// The resource and its compatible aliases, which have the same cells.
    pub(crate) fn compatible_aliases(&self, resource: ResourceId) -> Vec<ResourceId> {
        let first = first_alias(self.program, resource);
        let all = (0..self.program.resources.len() as u32).map(ResourceId);
        all.filter(|it| first_alias(self.program, *it) == first).collect()
    }

    /// Whether another resource has cells of this one. Destroyed resources do not count.
    pub(crate) fn is_shared(&self, resource: ResourceId, destroyed: &[(u32, ResourceId)]) -> bool {
        let own = &self.program.resources[resource.0 as usize];
        let aliases = self.compatible_aliases(resource);
        let is_beside = |(id, item): (ResourceId, &Resource)| {
            let is_there = id != resource && destroyed.iter().all(|it| it.1 != id);
            let is_linear = !is_opaque(own) && !is_opaque(item);
            let is_bound = || {
                own.binding
                    .zip(item.binding)
                    .is_some_and(|(own, memory_binding)| regions_overlap(&own, &memory_binding))
            };
            is_there && (aliases.contains(&id) || is_linear && is_bound())
        };
        let is_sparse = own.is_sparse && !is_opaque(own);
        is_sparse || (0..).map(ResourceId).zip(&self.program.resources).any(is_beside)
    }

    /// For each cell, the other cells that may lie in the same memory.
    pub(crate) fn aliases(&self) -> Vec<Vec<u32>> {
        let may_share = |it: &Resource| (it.binding.is_some() || it.is_sparse) && is_opaque(it);
        if !self.program.resources.iter().any(may_share) {
            return vec![Vec::new(); self.cells.len()];
        }
        let memory: Vec<Vec<MemoryBinding>> = self.cells.iter().map(|it| self.memory_of(*it)).collect();
        let is_same_memory = |one: usize, other: usize| {
            let are_different_images = image_of(self.cells[one]) != image_of(self.cells[other]);
            are_different_images
                && memory[one].iter().any(|one| memory[other].iter().any(|other| regions_overlap(one, other)))
        };
        let range = 0..self.cells.len();
        range
            .clone()
            .map(|one| range.clone().filter(|it| is_same_memory(one, *it)).map(|it| it as u32).collect())
            .collect()
    }

    /// The memory in which a cell may lie.
    fn memory_of(&self, cell: MemoryCell) -> Vec<MemoryBinding> {
        match cell {
            MemoryCell::Byte { .. } => Vec::new(),
            MemoryCell::Memory { memory, byte } => {
                vec![MemoryBinding { memory: MemoryId(memory), offset: byte, size: 1 }]
            }
            MemoryCell::SparseBlock { memory, offset, size, .. } => {
                vec![MemoryBinding { memory: MemoryId(memory), offset, size }]
            }
            MemoryCell::Texel { image, .. } => {
                let own = self.program.resources[image as usize].binding;
                own.into_iter().chain(self.opaque_bindings(image)).collect()
            }
        }
    }

    fn cell_index(&mut self, cell: MemoryCell) -> u32 {
        *self.numbers.entry(cell).or_insert_with(|| {
            self.cells.push(cell);
            self.cells.len() as u32 - 1
        })
    }
}

fn regions_overlap(one: &MemoryBinding, other: &MemoryBinding) -> bool {
    let end = |it: &MemoryBinding| it.offset + it.size;
    one.memory == other.memory && one.offset < end(other) && other.offset < end(one)
}

/// The image of a texel. Cells that are bytes need none: two different ones never overlap.
fn image_of(cell: MemoryCell) -> Option<u32> {
    match cell {
        MemoryCell::Byte { .. } | MemoryCell::Memory { .. } => None,
        MemoryCell::Texel { image, .. } | MemoryCell::SparseBlock { image, .. } => Some(image),
    }
}

/// The cells of a region in order. Sparse resources are treated as if they had memory of their own.
pub fn cells_of(program: &Program, resource: ResourceId, region: &Region) -> Vec<MemoryCell> {
    let Some(what) = program.resources.get(resource.0 as usize) else { return Vec::new() };
    match (&what.kind, region) {
        (ResourceKind::Buffer { size }, Region::Buffer(bytes)) => {
            let bytes = bytes.start.min(*size)..bytes.end.min(*size);
            bytes.map(|byte| byte_cell(resource, what.binding, byte)).collect()
        }
        (ResourceKind::Image(image), Region::Image(region)) => match what.binding {
            Some(binding) if image.is_linear() => linear_cells(image, binding, region),
            _ => texel_cells(program, resource, image, region),
        },
        // A buffer region of an image, or the reverse, has no cells.
        _ => Vec::new(),
    }
}

fn is_opaque(resource: &Resource) -> bool {
    matches!(&resource.kind, ResourceKind::Image(image) if !image.is_linear())
}

fn byte_cell(resource: ResourceId, binding: Option<MemoryBinding>, byte: u64) -> MemoryCell {
    match binding {
        Some(binding) => MemoryCell::Memory { memory: binding.memory.0, byte: binding.offset + byte },
        None => MemoryCell::Byte { resource: resource.0, byte },
    }
}

fn texel_cells(program: &Program, resource: ResourceId, image: &ImageDesc, region: &ImageRegion) -> Vec<MemoryCell> {
    let id = first_alias(program, resource);
    let mut cells = Vec::new();
    for aspect in aspects(image).into_iter().filter(|it| it.is_in(region.aspects)) {
        // The position of a component within the bytes of a linear texel is not known, so all of its bytes are
        // accessed.
        let mask = if image.is_linear() { 0xf } else { region.components.0 };
        let components = components(image, aspect.bit, mask);
        for (mip, layer) in subresources(image, region) {
            for texel in aspect.blocks(image, mip, region) {
                for component in components.iter().copied() {
                    cells.push(MemoryCell::Texel { image: id, aspect: aspect.bit, mip, layer, texel, component });
                }
            }
        }
    }
    cells
}

/// The bytes of whole blocks: the position of a component within a block is not known.
fn linear_cells(image: &ImageDesc, binding: MemoryBinding, region: &ImageRegion) -> Vec<MemoryCell> {
    let mut cells = Vec::new();
    for (number, aspect) in aspects(image).into_iter().enumerate() {
        for (mip, layer) in subresources(image, region) {
            if !aspect.is_in(region.aspects) {
                continue;
            }
            let layout = subresource_layout(image, number, mip);
            let first = binding.offset + layout.offset + u64::from(layer) * layout.array_pitch;
            for [x, y, z] in aspect.blocks(image, mip, region) {
                let row = first + u64::from(z) * layout.depth_pitch + u64::from(y) * layout.row_pitch;
                let bytes = (0..aspect.size).map(|it| row + u64::from(x) * aspect.size + it);
                cells.extend(bytes.map(|byte| MemoryCell::Memory { memory: binding.memory.0, byte }));
            }
        }
    }
    cells
}

/// An aspect of an image: color, depth, stencil, or one plane.
struct Aspect {
    bit: u32,
    is_plane: bool,
    divisors: [u32; 3],
    block: [u32; 3],
    /// The size of a block in bytes.
    size: u64,
}

impl Aspect {
    fn is_in(&self, mask: u32) -> bool {
        mask & self.bit != 0 || self.is_plane && mask & ImageAspectFlags::COLOR.0 != 0
    }

    fn extent(&self, image: &ImageDesc, mip: u32) -> [u32; 3] {
        let whole = image.extent_of_mip(mip);
        [0, 1, 2].map(|it| whole[it].div_ceil(self.divisors[it]))
    }

    fn block_count(&self, image: &ImageDesc, mip: u32) -> [u64; 3] {
        let extent = self.extent(image, mip);
        [0, 1, 2].map(|it| u64::from(extent[it].div_ceil(self.block[it])))
    }

    fn bytes(&self, image: &ImageDesc, mip: u32) -> u64 {
        self.block_count(image, mip).into_iter().product::<u64>() * self.size
    }

    /// The blocks with at least one texel in the region, row by row.
    fn blocks(&self, image: &ImageDesc, mip: u32, region: &ImageRegion) -> Vec<[u32; 3]> {
        let extent = self.extent(image, mip);
        let mut area = region.area.unwrap_or(Area { offset: [0; 3], extent });
        if region.area.is_some() && region.aspects & self.bit == 0 {
            // The area is in texels of the image; one texel of a subsampled plane covers several of them.
            for axis in 0..3 {
                let end = area.offset[axis].saturating_add(area.extent[axis]).div_ceil(self.divisors[axis]);
                area.offset[axis] /= self.divisors[axis];
                area.extent[axis] = end - area.offset[axis];
            }
        }
        let mut found: Vec<[u32; 3]> =
            texels(extent, area).into_iter().map(|at| [0, 1, 2].map(|it| at[it] / self.block[it])).collect();
        found.sort_unstable_by_key(|it| (it[2], it[1], it[0]));
        found.dedup();
        found
    }
}

/// The aspects of a format: color, depth and stencil, or the planes.
fn aspects(image: &ImageDesc) -> Vec<Aspect> {
    let find = |format: Format| FORMATS.iter().find(|it| it.format == format);
    let one = |bit: ImageAspectFlags, format: Format| Aspect {
        bit: bit.0,
        is_plane: false,
        divisors: [1; 3],
        block: find(format).map_or([1; 3], |it| it.block_extent),
        size: find(format).map_or(1, |it| u64::from(it.block_size)),
    };
    let Some(desc) = find(image.format) else { return vec![one(ImageAspectFlags::COLOR, image.format)] };
    if desc.planes.len() > 1 {
        let bits = [ImageAspectFlags::PLANE_0, ImageAspectFlags::PLANE_1, ImageAspectFlags::PLANE_2];
        let plane = |(format_plane, bit): (&FormatPlane, ImageAspectFlags)| Aspect {
            is_plane: true,
            divisors: [format_plane.width_divisor, format_plane.height_divisor, 1],
            ..one(bit, format_plane.format)
        };
        return desc.planes.iter().zip(bits).map(plane).collect();
    }
    let bits = |name: &str| desc.components.iter().find(|it| it.name == name).map(|it| u64::from(it.bits));
    let (depth, stencil) = (one(ImageAspectFlags::DEPTH, image.format), one(ImageAspectFlags::STENCIL, image.format));
    match (bits("D"), bits("S")) {
        (None, None) => vec![one(ImageAspectFlags::COLOR, image.format)],
        (Some(_), None) => vec![depth],
        (None, Some(_)) => vec![stencil],
        (Some(d), Some(s)) => vec![Aspect { size: d / 8, ..depth }, Aspect { size: s / 8, ..stencil }],
    }
}

/// The layout of a mip level of an aspect: the given one, or packed with mips within layers within aspects.
fn subresource_layout(image: &ImageDesc, number: usize, mip: u32) -> SubresourceLayout {
    if let Tiling::Pitched(layouts) = &image.tiling {
        return layouts[number * image.mips as usize + mip as usize];
    }
    let all = aspects(image);
    let of_layer = |it: &Aspect| (0..image.mips).map(|mip| it.bytes(image, mip)).sum::<u64>();
    let before: u64 = all[..number].iter().map(|it| of_layer(it) * u64::from(image.layers)).sum();
    let own = &all[number];
    let [width, height, _] = own.block_count(image, mip);
    SubresourceLayout {
        offset: before + (0..mip).map(|it| own.bytes(image, it)).sum::<u64>(),
        row_pitch: width * own.size,
        depth_pitch: width * height * own.size,
        array_pitch: of_layer(own),
    }
}

fn subresources(image: &ImageDesc, region: &ImageRegion) -> Vec<(u32, u32)> {
    let cut = |range: &Range<u32>, end: u32| range.start.min(end)..range.end.min(end);
    let layers = cut(&region.layers, image.layers);
    cut(&region.mips, image.mips).flat_map(|mip| layers.clone().map(move |layer| (mip, layer))).collect()
}

fn texels(extent: [u32; 3], area: Area) -> Vec<[u32; 3]> {
    let range = |axis: usize| {
        let end = area.offset[axis].saturating_add(area.extent[axis]).min(extent[axis]);
        area.offset[axis].min(end)..end
    };
    let row = |y: u32, z: u32| range(0).map(move |x| [x, y, z]);
    range(2).flat_map(|z| range(1).flat_map(move |y| row(y, z))).collect()
}

/// The components of the format that are in the mask, red first. Depth and stencil have one component.
fn components(image: &ImageDesc, aspect: u32, mask: u8) -> Vec<u32> {
    let format = FORMATS.iter().find(|it| it.format == image.format);
    let names: Vec<&str> = format.map_or(Vec::new(), |it| it.components.iter().map(|it| it.name).collect());
    if aspect != ImageAspectFlags::COLOR.0 || names.is_empty() {
        return vec![0];
    }
    let is_there = |it: &u32| mask & (1 << it) != 0 && names.contains(&["R", "G", "B", "A"][*it as usize]);
    (0..4).filter(is_there).collect()
}

fn first_alias(program: &Program, resource: ResourceId) -> u32 {
    let this = &program.resources[resource.0 as usize];
    let is_alias = |item: &&Resource| match (&item.kind, &this.kind) {
        (ResourceKind::Image(one), ResourceKind::Image(other)) => {
            let place = |it: &Resource| it.binding.map(|it| (it.memory, it.offset));
            one.alias && one == other && place(item).is_some() && place(item) == place(this)
        }
        _ => false,
    };
    let first = program.resources.iter().position(|it| is_alias(&it));
    first.map_or(resource.0, |it| it as u32)
}
