//! The things that random programs work with.

use lavascope_abi::{Format, ImageAspectFlags};
use lavascope_sync_ir::{
    Area, Components, ImageDesc, ImageRegion, MemoryBinding, MemoryId, Queue, Region, Resource, ResourceId,
    ResourceKind, Tiling,
};

use super::{COMPUTE, GRAPHICS, ProgramGenerator};

impl ProgramGenerator {
    pub(super) fn create_resources(&mut self) {
        let queues = if self.features.queues { 1 + self.random.below(3) } else { 1 };
        let all = [(0, GRAPHICS), (0, GRAPHICS), (1, COMPUTE)];
        self.program.queues =
            all[..queues as usize].iter().map(|(family, flags)| Queue { family: *family, flags: *flags }).collect();
        if self.features.ownership && queues == 2 {
            self.program.queues[1] = Queue { family: 1, flags: COMPUTE };
        }
        self.buffer(None);
        self.image(Format::R8_UNORM, [3, 1, 1], None);
        if self.random.one_in(3) {
            let mut image = plain_image(Format::R8G8_UNORM, [2, 1, 1]);
            (image.mips, image.layers) = (2, 2);
            self.push(ResourceKind::Image(image), None);
        }
        if self.features.render_passes || self.features.dynamic_rendering {
            let layers = if self.features.multiview && self.chance(35) { 2 } else { 1 };
            for format in [Format::R8G8_UNORM, Format::D24_UNORM_S8_UINT, Format::D24_UNORM_S8_UINT] {
                let image = ImageDesc { layers, ..plain_image(format, [2, 2, 1]) };
                let image = self.push(ResourceKind::Image(image), None);
                self.attachments.push(image);
            }
        }
        if self.features.presentation && self.random.one_in(3) {
            let place = MemoryBinding { memory: MemoryId(0), offset: 1, size: 2 };
            let place = Some(place).filter(|_| self.features.mostly_aliased);
            self.presentable = Some(self.image(Format::R8_UNORM, [2, 1, 1], place));
        }
        if self.features.aliasing && (self.random.one_in(3) || self.features.mostly_aliased) {
            self.aliases();
        }
        // The last one is the host's.
        self.program.event_count = 4;
    }

    fn aliases(&mut self) {
        let at = |offset, size| Some(MemoryBinding { memory: MemoryId(0), offset, size });
        let linear = ImageDesc { tiling: Tiling::Linear, ..plain_image(Format::R8_UNORM, [3, 1, 1]) };
        match self.random.below(7) {
            0 => {
                self.buffer(at(0, 4));
                self.buffer(at(2, 4));
            }
            1 => {
                self.buffer(at(0, 4));
                self.push(ResourceKind::Image(linear), at(2, 3));
            }
            2 => {
                self.buffer(at(0, 4));
                self.image(Format::R8_UNORM, [2, 1, 1], at(2, 4));
            }
            3 => {
                self.push(ResourceKind::Image(linear), at(0, 3));
                self.image(Format::R8_UNORM, [2, 1, 1], at(2, 2));
            }
            4 => {
                self.image(Format::R8_UNORM, [2, 1, 1], at(0, 2));
                self.image(Format::R8G8_UNORM, [2, 1, 1], at(1, 4));
            }
            5 => {
                self.buffer(at(0, 4));
                self.push(ResourceKind::Image(linear), at(1, 3));
                self.image(Format::R8_UNORM, [2, 1, 1], at(2, 4));
            }
            _ => {
                for _ in 0..2 {
                    let image = ImageDesc { alias: true, ..plain_image(Format::R8_UNORM, [3, 1, 1]) };
                    self.push(ResourceKind::Image(image), at(0, 4));
                }
            }
        }
    }

    fn buffer(&mut self, binding: Option<MemoryBinding>) -> ResourceId {
        self.push(ResourceKind::Buffer { size: 4 }, binding)
    }

    fn image(&mut self, format: Format, extent: [u32; 3], binding: Option<MemoryBinding>) -> ResourceId {
        self.push(ResourceKind::Image(plain_image(format, extent)), binding)
    }

    fn push(&mut self, kind: ResourceKind, binding: Option<MemoryBinding>) -> ResourceId {
        self.program.resources.push(Resource::new(kind, binding));
        ResourceId(self.program.resources.len() as u32 - 1)
    }

    /// A resource, most often one of the first.
    pub(super) fn random_resource(&mut self) -> ResourceId {
        let count = self.program.resources.len() as u64;
        let shared = self.program.resources.iter().filter(|it| it.binding.is_some()).count() as u64;
        let is_shared = shared > 0 && self.chance(if self.features.mostly_aliased { 90 } else { 50 });
        let id = match self.random.below(10) {
            _ if is_shared => count - 1 - self.random.below(shared),
            0..=5 => self.random.below(2),
            _ => self.random.below(count),
        };
        let id = ResourceId(id as u32);
        // What is presented is used by frames only.
        if Some(id) == self.presentable { ResourceId(0) } else { id }
    }

    pub(super) fn is_image(&self, resource: ResourceId) -> bool {
        matches!(self.program.resources[resource.0 as usize].kind, ResourceKind::Image(_))
    }

    pub(super) fn is_depth(&self, resource: ResourceId) -> bool {
        let kind = &self.program.resources[resource.0 as usize].kind;
        matches!(kind, ResourceKind::Image(image) if image.format == Format::D24_UNORM_S8_UINT)
    }

    pub(super) fn whole_region(&self, resource: ResourceId) -> Region {
        match &self.program.resources[resource.0 as usize].kind {
            ResourceKind::Buffer { size } => Region::Buffer(0..*size),
            ResourceKind::Image(image) => Region::Image(whole_image(image)),
        }
    }

    pub(super) fn whole_image(&self, resource: ResourceId) -> ImageRegion {
        match self.whole_region(resource) {
            Region::Image(region) => region,
            Region::Buffer(_) => panic!("resource {} is an image", resource.0),
        }
    }

    /// A part of a resource, or all of it.
    pub(super) fn random_region(&mut self, resource: ResourceId) -> Region {
        let mut region = self.whole_region(resource);
        if self.chance(40) {
            return region;
        }
        match (&mut region, self.program.resources[resource.0 as usize].kind.clone()) {
            (Region::Buffer(bytes), _) => {
                bytes.start = self.random.below(bytes.end);
                bytes.end = bytes.start + 1 + self.random.below(bytes.end - bytes.start);
            }
            (Region::Image(region), ResourceKind::Image(image)) => self.shrink_image_region(region, &image),
            _ => {}
        }
        region
    }

    fn shrink_image_region(&mut self, region: &mut ImageRegion, image: &ImageDesc) {
        let width = u64::from(image.extent[0]);
        if self.chance(60) {
            let from = self.random.below(width);
            let count = 1 + self.random.below(width - from);
            let extent = [count as u32, image.extent[1], 1];
            region.area = Some(Area { offset: [from as u32, 0, 0], extent });
        }
        if self.chance(50) {
            let mip = self.random.below(u64::from(image.mips)) as u32;
            region.mips = mip..mip + 1;
        }
        if self.chance(50) {
            let layer = self.random.below(u64::from(image.layers)) as u32;
            region.layers = layer..layer + 1;
        }
        if image.format == Format::R8G8_UNORM && self.chance(20) {
            region.components = Components(1 + self.random.below(2) as u8);
        }
        if image.format == Format::D24_UNORM_S8_UINT && self.chance(50) {
            region.aspects = self.pick(&[ImageAspectFlags::DEPTH.0, ImageAspectFlags::STENCIL.0]);
        }
    }
}

fn plain_image(format: Format, extent: [u32; 3]) -> ImageDesc {
    ImageDesc { format, extent, mips: 1, layers: 1, tiling: Tiling::Optimal, alias: false }
}

fn whole_image(image: &ImageDesc) -> ImageRegion {
    let is_depth = image.format == Format::D24_UNORM_S8_UINT;
    let depth = ImageAspectFlags::DEPTH.0 | ImageAspectFlags::STENCIL.0;
    ImageRegion {
        aspects: if is_depth { depth } else { ImageAspectFlags::COLOR.0 },
        mips: 0..image.mips,
        layers: 0..image.layers,
        area: None,
        components: Components::ALL,
    }
}
