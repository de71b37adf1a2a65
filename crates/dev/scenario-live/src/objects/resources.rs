//! Buffers and images, the memory behind them, and views of them.

use std::sync::PoisonError;

use lavascope_abi as vk;
use lavascope_abi::{Ptr, Structure};
use lavascope_sync_ir::{
    Access, AttachmentView, Command, HostStep, ImageDesc, ImageRegion, Program, RenderPass, Resource, ResourceId,
    ResourceKind, Tiling,
};

use crate::error::{LiveError, UnsupportedProgram};
use crate::objects::calls::{call, check, out};
use crate::objects::device::{LiveDevice, OwnedObject, create};
use crate::plan::choose::image;
use crate::plan::formats;
use crate::plan::formats::COLOR;

/// A resource of the program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LiveResource {
    pub(crate) handle: ResourceHandle,
    /// None if it is sparse, or the presentation engine's.
    pub(crate) memory: Option<(vk::DeviceMemory, u64)>,
    pub(crate) swapchain: Option<vk::SwapchainKHR>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum ResourceHandle {
    Buffer(vk::Buffer),
    Image(vk::Image),
}

impl LiveResource {
    pub(crate) fn buffer(&self) -> vk::Buffer {
        match self.handle {
            ResourceHandle::Buffer(buffer) => buffer,
            ResourceHandle::Image(_) => vk::Buffer(0),
        }
    }

    pub(crate) fn image(&self) -> vk::Image {
        match self.handle {
            ResourceHandle::Image(image) => image,
            ResourceHandle::Buffer(_) => vk::Image(0),
        }
    }
}

/// The size of what our own resources lie in.
pub(crate) const SCRATCH_BYTES: u64 = 1 << 20;

/// Memory of a single resource is a multiple of this: a driver may want more than the resource has bytes.
const PAGE_BYTES: u64 = 1 << 16;

const BUFFER_USAGE: u32 = vk::BufferUsageFlags::TRANSFER_SRC.0
    | vk::BufferUsageFlags::TRANSFER_DST.0
    | vk::BufferUsageFlags::UNIFORM_TEXEL_BUFFER.0
    | vk::BufferUsageFlags::UNIFORM_BUFFER.0
    | vk::BufferUsageFlags::STORAGE_BUFFER.0
    | vk::BufferUsageFlags::INDEX_BUFFER.0
    | vk::BufferUsageFlags::VERTEX_BUFFER.0
    | vk::BufferUsageFlags::INDIRECT_BUFFER.0
    | vk::BufferUsageFlags::SHADER_DEVICE_ADDRESS.0
    | vk::BufferUsageFlags::CONDITIONAL_RENDERING_EXT.0
    | vk::BufferUsageFlags::TRANSFORM_FEEDBACK_BUFFER_EXT.0
    | vk::BufferUsageFlags::TRANSFORM_FEEDBACK_COUNTER_BUFFER_EXT.0
    | vk::BufferUsageFlags::ACCELERATION_STRUCTURE_STORAGE_KHR.0
    | vk::BufferUsageFlags::ACCELERATION_STRUCTURE_BUILD_INPUT_READ_ONLY_KHR.0
    | vk::BufferUsageFlags::SHADER_BINDING_TABLE_KHR.0
    | vk::BufferUsageFlags::RESOURCE_DESCRIPTOR_BUFFER_EXT.0;

/// Whether the memory of each resource is where the program has it, according to the driver.
pub(crate) fn check_resources(program: &Program) -> Result<(), UnsupportedProgram> {
    for (at, resource) in program.resources.iter().enumerate() {
        let own = match &resource.kind {
            ResourceKind::Buffer { size } => *size,
            ResourceKind::Image(image) => formats::size(image),
        };
        if resource.binding.is_some_and(|it| it.size != own) {
            return UnsupportedProgram::error("more memory than the resource has bytes");
        }
        if resource.binding.is_some() && is_presented(program, ResourceId(at as u32)) {
            return UnsupportedProgram::error("the memory of what is presented is not the application's");
        }
        if let ResourceKind::Image(ImageDesc { tiling: Tiling::Pitched(_), mips: 2.., .. }) = resource.kind {
            return UnsupportedProgram::error("the layouts of single levels are the driver's business");
        }
    }
    Ok(())
}

impl LiveDevice<'_> {
    pub(crate) fn create_resources(&mut self) -> Result<(), LiveError> {
        let (program, names) = (self.scenario.program, self.scenario.names);
        for declared_memory in &names.memories {
            let memory = self.allocate(declared_memory.size)?;
            self.memories.push(memory);
        }
        for (at, resource) in program.resources.iter().enumerate() {
            let id = ResourceId(at as u32);
            let made = match &resource.kind {
                ResourceKind::Buffer { size } => self.create_buffer_of(resource, *size)?,
                ResourceKind::Image(image) if is_presented(program, id) => {
                    self.create_swapchain_image(resource, image)?
                }
                ResourceKind::Image(image) => self.create_image_of(id, resource, image)?,
            };
            let (ty, handle) = match made.handle {
                ResourceHandle::Buffer(buffer) => (vk::ObjectType::BUFFER, buffer.0),
                ResourceHandle::Image(item) => (vk::ObjectType::IMAGE, item.0),
            };
            self.set_name(ty, handle, &names.resources[at]);
            self.resources.push(made);
        }
        self.zero_buffer = self.scratch()?;
        Ok(())
    }

    /// A buffer of our own.
    pub(crate) fn scratch(&self) -> Result<vk::Buffer, LiveError> {
        let info = vk::BufferCreateInfo {
            size: SCRATCH_BYTES,
            usage: vk::BufferUsageFlags(BUFFER_USAGE),
            ..vk::BufferCreateInfo::zeroed()
        };
        let buffer = create!(self, create_buffer, info, Buffer);
        let memory = self.allocate(SCRATCH_BYTES)?;
        check("vkBindBufferMemory", call!(self.vk, bind_buffer_memory(self.device, buffer, memory, 0)))?;
        self.set_name(vk::ObjectType::BUFFER, buffer.0, SCRATCH_NAME);
        Ok(buffer)
    }

    fn allocate(&self, size: u64) -> Result<vk::DeviceMemory, LiveError> {
        let flags = vk::MemoryAllocateFlagsInfo {
            flags: vk::MemoryAllocateFlags::DEVICE_ADDRESS,
            ..vk::MemoryAllocateFlagsInfo::zeroed()
        };
        let info = vk::MemoryAllocateInfo {
            p_next: Ptr::to(&flags).cast(),
            allocation_size: size,
            memory_type_index: self.gpu.memory_type,
            ..vk::MemoryAllocateInfo::zeroed()
        };
        let memory = create!(self, allocate_memory, info, DeviceMemory);
        let mut address = Ptr::<vk::Opaque>::NULL;
        let whole = (0, vk::WHOLE_SIZE);
        let flags = vk::MemoryMapFlags(0);
        let result = call!(self.vk, map_memory(self.device, memory, whole.0, whole.1, flags, out(&mut address).cast()));
        check("vkMapMemory", result)?;
        Ok(memory)
    }

    /// The memory that a resource is bound to: that of the program, or its own.
    fn memory_of(&self, resource: &Resource, size: u64) -> Result<(vk::DeviceMemory, u64), LiveError> {
        match resource.binding {
            Some(memory_binding) => Ok((self.memories[memory_binding.memory.0 as usize], memory_binding.offset)),
            None => Ok((self.allocate(size.next_multiple_of(PAGE_BYTES))?, 0)),
        }
    }

    fn create_buffer_of(&self, resource: &Resource, size: u64) -> Result<LiveResource, LiveError> {
        use vk::BufferCreateFlags as Flags;
        let families = self.families.device_families();
        let info = vk::BufferCreateInfo {
            flags: if resource.is_sparse {
                Flags(Flags::SPARSE_BINDING.0 | Flags::SPARSE_RESIDENCY.0 | Flags::SPARSE_ALIASED.0)
            } else {
                Flags(0)
            },
            size,
            usage: vk::BufferUsageFlags(BUFFER_USAGE),
            sharing_mode: sharing(resource),
            queue_family_index_count: families.len() as u32,
            p_queue_family_indices: Ptr::to_slice(&families),
            ..vk::BufferCreateInfo::zeroed()
        };
        let buffer = create!(self, create_buffer, info, Buffer);
        let mut memory = None;
        if !resource.is_sparse {
            let (own, offset) = self.memory_of(resource, size)?;
            check("vkBindBufferMemory", call!(self.vk, bind_buffer_memory(self.device, buffer, own, offset)))?;
            memory = Some((own, offset));
        }
        Ok(LiveResource { handle: ResourceHandle::Buffer(buffer), memory, swapchain: None })
    }

    /// The driver's size for an image is not queried: texels lie densely, as in the program. If they do not, a modifier
    /// defines where.
    fn create_image_of(
        &self,
        id: ResourceId,
        resource: &Resource,
        image: &ImageDesc,
    ) -> Result<LiveResource, LiveError> {
        use vk::ImageCreateFlags as Flags;
        let families = self.families.device_families();
        let mut flags = Flags::MUTABLE_FORMAT.0;
        if image.alias {
            flags |= Flags::ALIAS.0;
        }
        if resource.is_sparse {
            flags |= Flags::SPARSE_BINDING.0 | Flags::SPARSE_RESIDENCY.0 | Flags::SPARSE_ALIASED.0;
        }
        let layouts: Vec<vk::SubresourceLayout> = layouts(image);
        let explicit = vk::ImageDrmFormatModifierExplicitCreateInfoEXT {
            drm_format_modifier: LINEAR_MODIFIER,
            drm_format_modifier_plane_count: layouts.len() as u32,
            p_plane_layouts: Ptr::to_slice(&layouts),
            ..vk::ImageDrmFormatModifierExplicitCreateInfoEXT::zeroed()
        };
        let samples = samples(self.scenario.program, id);
        let [width, height, depth] = image.extent;
        let info = vk::ImageCreateInfo {
            p_next: if layouts.is_empty() { Ptr::NULL } else { Ptr::to(&explicit).cast() },
            flags: Flags(flags),
            image_type: if depth > 1 { vk::ImageType::_3D } else { vk::ImageType::_2D },
            format: image.format,
            extent: vk::Extent3D { width, height, depth },
            mip_levels: image.mips,
            array_layers: image.layers,
            samples: vk::SampleCountFlags(samples),
            tiling: match image.tiling {
                Tiling::Optimal => vk::ImageTiling::OPTIMAL,
                Tiling::Linear => vk::ImageTiling::LINEAR,
                Tiling::Pitched(_) => vk::ImageTiling::DRM_FORMAT_MODIFIER_EXT,
            },
            usage: vk::ImageUsageFlags(usage(image)),
            sharing_mode: sharing(resource),
            queue_family_index_count: families.len() as u32,
            p_queue_family_indices: Ptr::to_slice(&families),
            ..vk::ImageCreateInfo::zeroed()
        };
        let made = create!(self, create_image, info, Image);
        let mut memory = None;
        if !resource.is_sparse {
            let (own, offset) = self.memory_of(resource, formats::size(image) * u64::from(samples))?;
            check("vkBindImageMemory", call!(self.vk, bind_image_memory(self.device, made, own, offset)))?;
            memory = Some((own, offset));
        }
        Ok(LiveResource { handle: ResourceHandle::Image(made), memory, swapchain: None })
    }

    /// The only image of a swapchain of its own.
    fn create_swapchain_image(&self, resource: &Resource, image: &ImageDesc) -> Result<LiveResource, LiveError> {
        let [width, height, _] = image.extent;
        let families = self.families.device_families();
        let info = vk::SwapchainCreateInfoKHR {
            surface: self.gpu.surface,
            min_image_count: 1,
            image_format: image.format,
            image_extent: vk::Extent2D { width, height },
            image_array_layers: image.layers,
            image_usage: vk::ImageUsageFlags(usage(image)),
            image_sharing_mode: sharing(resource),
            queue_family_index_count: families.len() as u32,
            p_queue_family_indices: Ptr::to_slice(&families),
            pre_transform: vk::SurfaceTransformFlagBitsKHR::IDENTITY_KHR,
            composite_alpha: vk::CompositeAlphaFlagBitsKHR::OPAQUE_KHR,
            present_mode: vk::PresentModeKHR::FIFO_KHR,
            ..vk::SwapchainCreateInfoKHR::zeroed()
        };
        let swapchain = create!(self, create_swapchain, info, SwapchainKHR);
        let (mut count, mut made) = (1, vk::Image(0));
        let result = call!(self.vk, get_swapchain_images(self.device, swapchain, out(&mut count), out(&mut made)));
        check("vkGetSwapchainImagesKHR", result)?;
        Ok(LiveResource { handle: ResourceHandle::Image(made), memory: None, swapchain: Some(swapchain) })
    }

    /// `vkDestroyBuffer` or `vkDestroyImage`.
    pub(crate) fn destroy_resource(&self, id: ResourceId) {
        let made = self.resource(id);
        match (made.handle, made.swapchain) {
            (_, Some(swapchain)) => self.destroy_now(OwnedObject::SwapchainKHR(swapchain)),
            (ResourceHandle::Buffer(buffer), None) => self.destroy_now(OwnedObject::Buffer(buffer)),
            (ResourceHandle::Image(image), None) => self.destroy_now(OwnedObject::Image(image)),
        }
    }

    pub(crate) fn address(&self, buffer: vk::Buffer) -> u64 {
        let info = vk::BufferDeviceAddressInfo { buffer, ..vk::BufferDeviceAddressInfo::zeroed() };
        call!(self.vk, get_buffer_device_address(self.device, Ptr::to(&info)))
    }

    /// A view of a part of an image.
    pub(crate) fn view(&self, resource: ResourceId, region: &ImageRegion) -> Result<vk::ImageView, LiveError> {
        let Some(image) = image(self.scenario.program, resource) else {
            return Err(UnsupportedProgram("a view of a buffer".to_owned()).into());
        };
        use vk::ImageViewType as Type;
        let info = vk::ImageViewCreateInfo {
            image: self.resource(resource).image(),
            view_type: match (image.extent[2] > 1, region.layers.len() > 1) {
                (true, _) => Type::_3D,
                (false, true) => Type::_2D_ARRAY,
                (false, false) => Type::_2D,
            },
            format: image.format,
            subresource_range: subresource_range(region),
            ..vk::ImageViewCreateInfo::zeroed()
        };
        let view = create!(self, create_image_view, info, ImageView);
        // Some layers name the view instead of its image.
        self.set_name(vk::ObjectType::IMAGE_VIEW, view.0, &self.scenario.names.resources[resource.0 as usize]);
        Ok(view)
    }

    /// A view as an attachment: with all aspects that it has. Rendering that is resumed needs the same one again.
    pub(crate) fn attachment(&self, attachment_view: &AttachmentView) -> Result<vk::ImageView, LiveError> {
        let mut known = self.attachment_views.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = known.iter().find(|it| it.0 == *attachment_view) {
            return Ok(own.1);
        }
        let view = self.view(attachment_view.resource, &attachment_view.region)?;
        known.push((attachment_view.clone(), view));
        Ok(view)
    }
}

/// `DRM_FORMAT_MOD_LINEAR`.
const LINEAR_MODIFIER: u64 = 0;

/// Where the planes of an image lie, if that is not left to anybody.
fn layouts(image: &ImageDesc) -> Vec<vk::SubresourceLayout> {
    let Tiling::Pitched(all) = &image.tiling else { return Vec::new() };
    let layout = |subresource_layout: &lavascope_sync_ir::SubresourceLayout| vk::SubresourceLayout {
        offset: subresource_layout.offset,
        // It must be zero, as the driver requires.
        size: 0,
        row_pitch: subresource_layout.row_pitch,
        array_pitch: subresource_layout.array_pitch,
        depth_pitch: subresource_layout.depth_pitch,
    };
    all.iter().map(layout).collect()
}

/// How buffers are called that no program has.
pub const SCRATCH_NAME: &str = "scratch";

pub(crate) fn subresource_range(region: &ImageRegion) -> vk::ImageSubresourceRange {
    vk::ImageSubresourceRange {
        aspect_mask: vk::ImageAspectFlags(region.aspects),
        base_mip_level: region.mips.start,
        level_count: region.mips.len() as u32,
        base_array_layer: region.layers.start,
        layer_count: region.layers.len() as u32,
    }
}

fn sharing(resource: &Resource) -> vk::SharingMode {
    if resource.is_exclusive { vk::SharingMode::EXCLUSIVE } else { vk::SharingMode::CONCURRENT }
}

fn usage(image: &ImageDesc) -> u32 {
    use vk::ImageUsageFlags as Usage;
    let all = Usage::TRANSFER_SRC.0 | Usage::TRANSFER_DST.0 | Usage::SAMPLED.0;
    let is_plain = formats::desc(image.format).is_some_and(|it| !it.is_compressed && it.planes.is_empty());
    match (is_plain, formats::aspects(image.format)) {
        (false, _) => all,
        (true, COLOR) => all | Usage::STORAGE.0 | Usage::COLOR_ATTACHMENT.0 | Usage::INPUT_ATTACHMENT.0,
        (true, _) => all | Usage::DEPTH_STENCIL_ATTACHMENT.0 | Usage::INPUT_ATTACHMENT.0,
    }
}

fn is_presented(program: &Program, id: ResourceId) -> bool {
    program.steps.iter().any(|step| match step {
        HostStep::Acquire { image, .. } => *image == id,
        HostStep::Present { images, .. } => images.contains(&id),
        _ => false,
    })
}

/// Several where an image is only drawn to and resolved: copies and storage want one.
pub(crate) fn samples(program: &Program, id: ResourceId) -> u32 {
    let is_several = match resolved_images(program) {
        all if all.iter().any(|it| is_copied(program, *it)) => {
            resolve_sources(program).contains(&id) && !is_copied(program, id)
        }
        all => all.contains(&id),
    };
    if is_several { 4 } else { 1 }
}

/// The images that are resolved, and all that are drawn to together with them: attachments of a subpass have the same
/// number of samples.
pub fn resolved_images(program: &Program) -> Vec<ResourceId> {
    let mut found = resolve_sources(program);
    if found.is_empty() {
        return found;
    }
    let groups = attachment_groups(program);
    loop {
        let is_joined = |it: &&Vec<ResourceId>| it.iter().any(|it| found.contains(it));
        let joined = groups.iter().filter(is_joined).flatten();
        let more: Vec<ResourceId> = joined.copied().filter(|it| !found.contains(it)).collect();
        if more.is_empty() {
            return found;
        }
        found.extend(more);
    }
}

fn commands(program: &Program) -> impl Iterator<Item = &Command> {
    program.command_buffers.iter().flat_map(|it| &it.commands)
}

/// Whether something is done with an image that wants one sample.
fn is_copied(program: &Program, id: ResourceId) -> bool {
    let accesses = commands(program).flat_map(|command| match command {
        Command::Action(accesses) => accesses.as_slice(),
        _ => &[],
    });
    accesses.into_iter().any(|it| it.resource == id && wants_one_sample(it))
}

/// Copies, storage, and what is resolved to.
pub fn wants_one_sample(access: &Access) -> bool {
    use vk::{AccessFlags2 as Bits, PipelineStageFlags2 as Stage};
    [Stage::COPY.0, Stage::BLIT.0].contains(&access.stage)
        || [Bits::SHADER_STORAGE_READ.0, Bits::SHADER_STORAGE_WRITE.0].contains(&access.access)
        || access.stage == Stage::RESOLVE.0 && access.access == Bits::TRANSFER_WRITE.0
}

fn resolve_sources(program: &Program) -> Vec<ResourceId> {
    use vk::{AccessFlags2 as Bits, PipelineStageFlags2 as Stage};
    let mut found = Vec::new();
    for command in commands(program) {
        match command {
            Command::Action(accesses) => {
                let is_source = |it: &&Access| it.stage == Stage::RESOLVE.0 && it.access == Bits::TRANSFER_READ.0;
                found.extend(accesses.iter().filter(is_source).map(|it| it.resource));
            }
            Command::BeginRenderPass { pass, views, .. } => {
                let sources = resolved_attachments(&program.render_passes[pass.0 as usize]);
                found.extend(sources.iter().filter_map(|it| views.get(*it as usize)).map(|it| it.resource));
            }
            Command::BeginRendering(rendering) => {
                let sources = rendering.attachments.iter().filter(|it| it.resolve.is_some());
                found.extend(sources.map(|it| it.view.resource));
            }
            _ => {}
        }
    }
    found
}

/// Images that one subpass draws to, or one rendering.
fn attachment_groups(program: &Program) -> Vec<Vec<ResourceId>> {
    let mut groups = Vec::new();
    for command in commands(program) {
        match command {
            Command::BeginRenderPass { pass, views, .. } => {
                for subpass in &program.render_passes[pass.0 as usize].subpasses {
                    let used = subpass.colors.iter().chain(&subpass.depth_stencil);
                    groups.push(used.filter_map(|it| views.get(it.0 as usize)).map(|it| it.resource).collect());
                }
            }
            Command::BeginRendering(rendering) => {
                groups.push(rendering.attachments.iter().map(|it| it.view.resource).collect());
            }
            _ => {}
        }
    }
    groups
}

fn resolved_attachments(pass: &RenderPass) -> Vec<u32> {
    let colors = pass.subpasses.iter().flat_map(|it| it.resolves.iter().map(|it| it.source));
    let depth = pass.subpasses.iter().filter(|it| it.depth_stencil_resolve.is_some());
    colors.chain(depth.filter_map(|it| it.depth_stencil).map(|it| it.0)).collect()
}
