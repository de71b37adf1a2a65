//! Buffers, images, and views of them.

use std::cell::Cell;
use std::ops::Range;

use lavascope_abi as vk;
use lavascope_record::{Call, Outcome, View};
use lavascope_sync_ir::{
    self as program, Access, Certainty, ImageRegion, MemoryBinding, Region, Resource, ResourceId, ResourceKind, Tiling,
};

use crate::command::stage_access::StageAccess;
use crate::device::{TrackedCall, TrackedDevice};
use crate::draw::attachment::FormatCast;
use crate::listener::TrackerOutput;
use crate::resource::format;
use crate::resource::region;

pub(crate) struct TrackedBuffer {
    pub(crate) size: u64,
    /// `VkBufferUsageFlags2`.
    pub(crate) usage: u64,
    pub(crate) is_sparse: bool,
    /// `VK_SHARING_MODE_EXCLUSIVE`: each range belongs to one queue family.
    pub(crate) is_exclusive: bool,
    /// Set when memory is bound.
    pub(crate) resource: Option<ResourceId>,
    pub(crate) memory: u64,
    pub(crate) address: Option<u64>,
}

/// The data of a buffer that every access needs.
pub(crate) struct BufferExtent {
    resource: ResourceId,
    size: u64,
}

pub(crate) struct TrackedImage {
    pub(crate) info: program::ImageDesc,
    pub(crate) aspects: u32,
    pub(crate) ty: vk::ImageType,
    /// Size in bytes of its memory, after the application queried it.
    pub(crate) size: Option<u64>,
    pub(crate) resource: Option<ResourceId>,
    pub(crate) memory: u64,
    pub(crate) is_disjoint: bool,
    pub(crate) is_sparse: bool,
    /// Size of a sparse block in texels and in bytes, after the application queried it.
    pub(crate) granularity: Option<[u32; 3]>,
    pub(crate) block_size: Option<u64>,
    /// `VK_SHARING_MODE_EXCLUSIVE`: each range belongs to one queue family.
    pub(crate) is_exclusive: bool,
    /// The layers of a barrier's range are slices (`maintenance9`).
    pub(crate) has_slice_ranges: bool,
    /// The layouts of its planes, as far as the application queried them.
    pub(crate) layouts: Vec<Option<program::SubresourceLayout>>,
    /// Whether a command or a view has used it.
    pub(crate) is_used: Cell<bool>,
}

#[derive(Clone, Debug)]
pub(crate) struct ImageView {
    pub(crate) resource: ResourceId,
    pub(crate) region: ImageRegion,
    /// The aspects as an attachment: both of depth and stencil, even if the view has only one.
    pub(crate) aspects: u32,
    /// A view of slices of a 3D image.
    pub(crate) has_slices: bool,
    pub(crate) format_cast: Option<FormatCast>,
    /// A texel of the view is a block of the image.
    pub(crate) is_of_blocks: bool,
}

#[derive(Clone)]
pub(crate) struct BufferView {
    pub(crate) resource: ResourceId,
    pub(crate) bytes: Range<u64>,
    /// Size of a texel in bytes, if it is known.
    pub(crate) texel: Option<u16>,
}

/// Larger than any device supports. Larger values would only overflow in later computations.
pub(crate) const SIZE_MAX: u64 = 1 << 44;
const TOO_LARGE: &str = "a resource that is larger than any device has";

/// Whether a device could support such an image.
pub(crate) fn is_plausible_image(image: &program::ImageDesc) -> bool {
    let counts = [image.layers.max(1), image.extent[0], image.extent[1], image.extent[2]];
    let texels = counts.into_iter().try_fold(1_u64, |all, it| all.checked_mul(u64::from(it)));
    image.mips <= 32 && texels.is_some_and(|it| it <= SIZE_MAX >> 6)
}

impl TrackedDevice {
    pub(crate) fn track_resources(&mut self, tracked: TrackedCall<'_>, out: &mut TrackerOutput<'_>) -> bool {
        match (tracked.call, tracked.outcome) {
            (Call::CreateBuffer(params), Some(Outcome::CreateBuffer(made))) => {
                if let (Some(info), Some(buffer)) = (params.p_create_info(), made.p_buffer()) {
                    self.create_buffer(info, buffer.0, out);
                }
            }
            (Call::CreateImage(params), Some(Outcome::CreateImage(made))) => {
                if let (Some(info), Some(image)) = (params.p_create_info(), made.p_image()) {
                    self.create_image(info, image.0, out);
                }
            }
            (Call::CreateImageView(params), Some(Outcome::CreateImageView(made))) => {
                if let (Some(info), Some(view)) = (params.p_create_info(), made.p_view()) {
                    self.create_image_view(info, view.0, out);
                }
            }
            (Call::CreateBufferView(params), Some(Outcome::CreateBufferView(made))) => {
                if let (Some(info), Some(view)) = (params.p_create_info(), made.p_view()) {
                    let made = self.buffer_range(info.buffer, info.offset, info.range);
                    if let Some((resource, bytes)) = made {
                        let texel = format::desc(info.format).and_then(|it| u16::try_from(it.block_size).ok());
                        self.buffer_views.insert(view.0, BufferView { resource, bytes, texel });
                    }
                }
            }
            (Call::DestroyBuffer(params), None) => self.destroy_buffer(params.buffer.0, out),
            (Call::DestroyImage(params), None) => self.destroy_image(params.image.0, out),
            (Call::DestroyImageView(params), None) => drop(self.image_views.remove(params.image_view.0)),
            (Call::DestroyBufferView(params), None) => drop(self.buffer_views.remove(params.buffer_view.0)),
            _ => return false,
        }
        true
    }

    fn create_buffer(&mut self, info: View<'_, vk::BufferCreateInfo>, handle: u64, out: &mut TrackerOutput<'_>) {
        if info.size > SIZE_MAX {
            out.report_untracked(TOO_LARGE);
            return;
        }
        let mut buffer = TrackedBuffer {
            size: info.size,
            usage: usage_of(info),
            is_sparse: info.flags.0 & vk::BufferCreateFlags::SPARSE_BINDING.0 != 0,
            // With `maintenance9`, buffers and linear images need no ownership transfers.
            is_exclusive: info.sharing_mode == vk::SharingMode::EXCLUSIVE && !self.has_maintenance9,
            resource: None,
            memory: 0,
            address: None,
        };
        // Sparse resources can be used before memory is bound.
        if buffer.is_sparse {
            let resource = self.add_resource(handle, &buffer.to_resource(None), out);
            buffer.resource = Some(resource);
            self.buffer_extents.insert(handle, BufferExtent { resource, size: buffer.size });
        }
        self.buffers.insert(handle, buffer);
    }

    fn create_image(&mut self, info: View<'_, vk::ImageCreateInfo>, handle: u64, out: &mut TrackerOutput<'_>) {
        let has = |flag: vk::ImageCreateFlags| info.flags.0 & flag.0 != 0;
        let mut image = TrackedImage {
            info: program::ImageDesc {
                format: info.format,
                extent: region::extent_of(info.extent).map(|it| it.max(1)),
                mips: info.mip_levels,
                layers: info.array_layers,
                tiling: tiling(info),
                alias: has(vk::ImageCreateFlags::ALIAS),
            },
            aspects: format::aspects(info.format),
            ty: info.image_type,
            size: None,
            resource: None,
            memory: 0,
            is_disjoint: has(vk::ImageCreateFlags::DISJOINT),
            is_sparse: has(vk::ImageCreateFlags::SPARSE_BINDING),
            granularity: None,
            block_size: None,
            is_exclusive: info.sharing_mode == vk::SharingMode::EXCLUSIVE
                && !(self.has_maintenance9 && info.tiling == vk::ImageTiling::LINEAR),
            has_slice_ranges: self.has_maintenance9
                && info.image_type == vk::ImageType::_3D
                && has(vk::ImageCreateFlags::_2D_ARRAY_COMPATIBLE),
            layouts: Vec::new(),
            is_used: Cell::new(false),
        };
        if !is_plausible_image(&image.info) {
            out.report_untracked(TOO_LARGE);
            return;
        }
        if image.is_sparse {
            image.resource = Some(self.add_resource(handle, &image.to_resource(None), out));
        }
        self.images.insert(handle, image);
    }

    fn create_image_view(&mut self, info: View<'_, vk::ImageViewCreateInfo>, handle: u64, out: &mut TrackerOutput<'_>) {
        let Some(image) = self.images.get(info.image.0) else { return };
        let Some(resource) = image.resource else {
            out.report_untracked("a view of an image whose memory is not known");
            return;
        };
        image.is_used.set(true);
        let mut region = image.subresource_region(info.inner(&info.get().subresource_range).get());
        let is_sliced = [vk::ImageViewType::_2D, vk::ImageViewType::_2D_ARRAY].contains(&info.view_type);
        let has_slices = image.ty == vk::ImageType::_3D && is_sliced;
        if has_slices {
            region = image.slices_region(&info.subresource_range);
        }
        let is_color = image.aspects == vk::ImageAspectFlags::COLOR.0;
        let aspects = if is_color { region.aspects } else { image.aspects };
        let is_of_blocks = format::has_blocks_as_texels(info.format, image.info.format);
        let recast = image.format_cast(info.format);
        let view = ImageView { resource, region, aspects, has_slices, format_cast: recast, is_of_blocks };
        self.image_views.insert(handle, view);
    }

    fn destroy_buffer(&mut self, handle: u64, out: &mut TrackerOutput<'_>) {
        let Some(buffer) = self.buffers.remove(handle) else { return };
        self.buffer_extents.remove(handle);
        if let Some(address) = buffer.address {
            self.buffer_addresses.remove(&address);
        }
        self.destroy_bound(handle, buffer.resource, buffer.memory, out);
    }

    fn destroy_image(&mut self, handle: u64, out: &mut TrackerOutput<'_>) {
        let Some(image) = self.images.remove(handle) else { return };
        self.destroy_bound(handle, image.resource, image.memory, out);
    }

    /// The resource and the bytes of a range of a buffer.
    pub(crate) fn buffer_range(&self, buffer: vk::Buffer, offset: u64, size: u64) -> Option<(ResourceId, Range<u64>)> {
        let part = self.buffer_extents.get(buffer.0)?;
        Some((part.resource, region::clamped_bytes(offset, size, part.size)))
    }

    /// Memory is bound to a buffer.
    pub(crate) fn set_buffer_memory(&mut self, handle: u64, resource: ResourceId, memory: u64) {
        let Some(buffer) = self.buffers.get_mut(handle) else { return };
        (buffer.resource, buffer.memory) = (Some(resource), memory);
        self.buffer_extents.insert(handle, BufferExtent { resource, size: buffer.size });
    }

    /// An image with its resource.
    pub(crate) fn image(&self, image: vk::Image) -> Option<(ResourceId, &TrackedImage)> {
        let image = self.images.get(image.0)?;
        image.is_used.set(true);
        Some((image.resource?, image))
    }
}

/// The usage of a buffer. `VkBufferUsageFlags2CreateInfo` replaces the field of the create info.
fn usage_of(info: View<'_, vk::BufferCreateInfo>) -> u64 {
    let newer = info.chained::<vk::BufferUsageFlags2CreateInfo>();
    newer.map_or(u64::from(info.usage.0), |it| it.usage.0)
}

impl ImageView {
    /// A read of some bytes; the device decides which.
    pub(crate) fn read(&self, usage: StageAccess) -> Access {
        let access = usage.access_to(self.resource, Region::Image(self.region.clone()));
        Access { certainty: Certainty::Somewhere, ..access }
    }
}

/// The layout of texels, if it is known: dense for linear images, or as the application sets it.
fn tiling(info: View<'_, vk::ImageCreateInfo>) -> Tiling {
    /// `DRM_FORMAT_MOD_LINEAR`. Only drivers know the layouts of other modifiers.
    const LINEAR: u64 = 0;
    if info.tiling == vk::ImageTiling::LINEAR {
        return Tiling::Linear;
    }
    let Some(given) = info.chained::<vk::ImageDrmFormatModifierExplicitCreateInfoEXT>() else {
        return Tiling::Optimal;
    };
    let layout = |subresource_layout: View<'_, vk::SubresourceLayout>| program::SubresourceLayout {
        offset: subresource_layout.offset.min(SIZE_MAX),
        row_pitch: subresource_layout.row_pitch.min(SIZE_MAX),
        depth_pitch: subresource_layout.depth_pitch.min(SIZE_MAX),
        array_pitch: subresource_layout.array_pitch.min(SIZE_MAX),
    };
    let layouts: Vec<program::SubresourceLayout> = given.p_plane_layouts().iter().map(layout).collect();
    let is_known = given.drm_format_modifier == LINEAR && info.mip_levels == 1;
    match layouts.len() == format::plane_count(info.format) && is_known {
        true => Tiling::Pitched(layouts.into()),
        false => Tiling::Optimal,
    }
}

impl TrackedBuffer {
    /// As a resource with this memory.
    pub(crate) fn to_resource(&self, binding: Option<MemoryBinding>) -> Resource {
        let resource = Resource::new(ResourceKind::Buffer { size: self.size }, binding);
        Resource { is_exclusive: self.is_exclusive, is_sparse: self.is_sparse, ..resource }
    }
}

impl TrackedImage {
    /// As a resource with this memory.
    pub(crate) fn to_resource(&self, binding: Option<MemoryBinding>) -> Resource {
        let resource = Resource::new(ResourceKind::Image(self.info.clone()), binding);
        Resource { is_exclusive: self.is_exclusive, is_sparse: self.is_sparse, ..resource }
    }

    /// How components of a view map to the image, if the formats differ.
    fn format_cast(&self, view: vk::Format) -> Option<FormatCast> {
        let image = self.info.format;
        // Bytes and texels of planes are accessed as a whole.
        let has_components = self.info.tiling == Tiling::Optimal && format::plane_count(image) == 1;
        match has_components {
            true => (view != image).then_some(FormatCast { view, image }),
            false => Some(FormatCast { view, image: vk::Format::UNDEFINED }),
        }
    }
}
