//! The smallest parts of resources: what an access touches, one by one.
//!
//! A byte of a buffer or of a linear image in known memory, or one component of one texel of anything else.
//! Compatible aliases have the same cells; incompatible ones are told apart here and brought together by
//! [`Cells::aliases`], as in the seed's table of overlaps.

use std::{collections::HashMap, ops::Range};

use lavascope_abi::{FORMATS, ImageAspectFlags};
use lavascope_program::{
    Area, Binding, Image, ImageRegion, Program, Region, Resource, ResourceId, ResourceKind, Tiling,
};

/// The smallest thing that can be read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cell {
    /// A byte of a buffer that has its memory for itself.
    Byte { resource: u32, byte: u64 },
    /// A byte of known memory.
    Memory { memory: u32, byte: u64 },
    /// A component of a texel; `image` is the first of its compatible aliases.
    Texel { image: u32, aspect: u32, mip: u32, layer: u32, texel: [u32; 3], component: u32 },
}

/// Cells by number, numbered as they come up.
pub(super) struct Cells<'p> {
    program: &'p Program,
    numbers: HashMap<Cell, u32>,
    cells: Vec<Cell>,
}

impl<'p> Cells<'p> {
    pub(super) fn new(program: &'p Program) -> Cells<'p> {
        Cells { program, numbers: HashMap::new(), cells: Vec::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.cells.len()
    }

    pub(super) fn get(&self, number: u32) -> Cell {
        self.cells[number as usize]
    }

    /// The cells of a region, by number.
    pub(super) fn numbers(&mut self, resource: ResourceId, region: &Region) -> Vec<u32> {
        let cells = cells_of(self.program, resource, region);
        cells.into_iter().map(|it| self.number(it)).collect()
    }

    /// A resource and those that are the same one under another name.
    pub(super) fn compatible(&self, resource: ResourceId) -> Vec<ResourceId> {
        let first = first_alias(self.program, resource);
        let all = (0..self.program.resources.len() as u32).map(ResourceId);
        all.filter(|it| first_alias(self.program, *it) == first).collect()
    }

    /// For each cell the others that may be the same memory without being the same cell.
    pub(super) fn aliases(&self) -> Vec<Vec<u32>> {
        let is_same_memory =
            |one: usize, other: usize| one != other && self.overlap(self.cells[one], self.cells[other]);
        if !self.program.resources.iter().any(|it| it.binding.is_some() && is_opaque(it)) {
            return vec![Vec::new(); self.cells.len()];
        }
        let range = 0..self.cells.len();
        range
            .clone()
            .map(|one| range.clone().filter(|it| is_same_memory(one, *it)).map(|it| it as u32).collect())
            .collect()
    }

    fn overlap(&self, one: Cell, other: Cell) -> bool {
        match (one, other) {
            (Cell::Texel { image, .. }, Cell::Texel { image: other, .. }) => {
                image != other
                    && self.bound(image).zip(self.bound(other)).is_some_and(|(one, other)| {
                        let end = |it: Binding| it.offset + it.size;
                        one.memory == other.memory && one.offset < end(other) && other.offset < end(one)
                    })
            }
            (Cell::Texel { image, .. }, Cell::Memory { memory, byte })
            | (Cell::Memory { memory, byte }, Cell::Texel { image, .. }) => self
                .bound(image)
                .is_some_and(|it| it.memory.0 == memory && (it.offset..it.offset + it.size).contains(&byte)),
            _ => false,
        }
    }

    fn bound(&self, resource: u32) -> Option<Binding> {
        self.program.resources[resource as usize].binding
    }

    fn number(&mut self, cell: Cell) -> u32 {
        *self.numbers.entry(cell).or_insert_with(|| {
            self.cells.push(cell);
            self.cells.len() as u32 - 1
        })
    }
}

/// The cells of a part of a resource, in order.
pub fn cells_of(program: &Program, resource: ResourceId, region: &Region) -> Vec<Cell> {
    let Some(what) = program.resources.get(resource.0 as usize) else { return Vec::new() };
    match (&what.kind, region) {
        (ResourceKind::Buffer { size }, Region::Buffer(bytes)) => {
            let bytes = bytes.start.min(*size)..bytes.end.min(*size);
            bytes.map(|byte| byte_cell(resource, what.binding, byte)).collect()
        }
        (ResourceKind::Image(image), Region::Image(region)) => match what.binding {
            Some(binding) if image.tiling == Tiling::Linear => linear_cells(image, binding, region),
            _ => texel_cells(program, resource, image, region),
        },
        // A region of the wrong kind is nothing.
        _ => Vec::new(),
    }
}

fn is_opaque(resource: &Resource) -> bool {
    matches!(&resource.kind, ResourceKind::Image(image) if image.tiling == Tiling::Optimal)
}

fn byte_cell(resource: ResourceId, binding: Option<Binding>, byte: u64) -> Cell {
    match binding {
        Some(binding) => Cell::Memory { memory: binding.memory.0, byte: binding.offset + byte },
        None => Cell::Byte { resource: resource.0, byte },
    }
}

fn texel_cells(program: &Program, resource: ResourceId, image: &Image, region: &ImageRegion) -> Vec<Cell> {
    let id = first_alias(program, resource);
    let mut cells = Vec::new();
    for aspect in (0..32).map(|it| 1 << it).filter(|it| region.aspects & it != 0) {
        let components = components(image, aspect, region.components.0);
        for (mip, layer) in subresources(image, region) {
            for texel in texels(image, mip, region.area) {
                for component in components.iter().copied() {
                    cells.push(Cell::Texel { image: id, aspect, mip, layer, texel, component });
                }
            }
        }
    }
    cells
}

/// Whole texels: what lies in which byte of them is nobody's business but the format's.
fn linear_cells(image: &Image, binding: Binding, region: &ImageRegion) -> Vec<Cell> {
    let size = FORMATS.iter().find(|it| it.format == image.format).map_or(1, |it| u64::from(it.block_size));
    let texel_count = |mip: u32| image.extent_of_mip(mip).iter().map(|it| u64::from(*it)).product::<u64>();
    let layer_count: u64 = (0..image.mips).map(texel_count).sum();
    let mut cells = Vec::new();
    for (mip, layer) in subresources(image, region) {
        let first = u64::from(layer) * layer_count + (0..mip).map(texel_count).sum::<u64>();
        let [width, height, _] = image.extent_of_mip(mip).map(u64::from);
        for [x, y, z] in texels(image, mip, region.area) {
            let texel = first + u64::from(x) + width * (u64::from(y) + height * u64::from(z));
            let bytes = (0..size).map(|it| binding.offset + texel * size + it);
            cells.extend(bytes.map(|byte| Cell::Memory { memory: binding.memory.0, byte }));
        }
    }
    cells
}

fn subresources(image: &Image, region: &ImageRegion) -> Vec<(u32, u32)> {
    let cut = |range: &Range<u32>, end: u32| range.start.min(end)..range.end.min(end);
    let layers = cut(&region.layers, image.layers);
    cut(&region.mips, image.mips).flat_map(|mip| layers.clone().map(move |layer| (mip, layer))).collect()
}

fn texels(image: &Image, mip: u32, area: Option<Area>) -> Vec<[u32; 3]> {
    let extent = image.extent_of_mip(mip);
    let whole = Area { offset: [0; 3], extent };
    let area = area.unwrap_or(whole);
    let range = |axis: usize| {
        let end = area.offset[axis].saturating_add(area.extent[axis]).min(extent[axis]);
        area.offset[axis].min(end)..end
    };
    let row = |y: u32, z: u32| range(0).map(move |x| [x, y, z]);
    range(2).flat_map(|z| range(1).flat_map(move |y| row(y, z))).collect()
}

/// Components that the format has, red first; what is not color has but one.
fn components(image: &Image, aspect: u32, mask: u8) -> Vec<u32> {
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
    let is_alias = |it: &&Resource| match (&it.kind, &this.kind) {
        (ResourceKind::Image(one), ResourceKind::Image(other)) => {
            one.alias && one == other && it.binding.is_some() && it.binding == this.binding
        }
        _ => false,
    };
    let first = program.resources.iter().position(|it| is_alias(&it));
    first.map_or(resource.0, |it| it as u32)
}
