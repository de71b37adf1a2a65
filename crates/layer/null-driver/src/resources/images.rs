//! Images: how they lie in memory, their requirements and bindings.

use std::sync::{Arc, PoisonError, RwLock};

use lavascope_abi::*;

use crate::calls::application_memory::ApplicationMemory;
use crate::calls::object_table::DriverObjectTable;
use crate::capabilities::formats;
use crate::capabilities::physical_device::{LAZY, ORDINARY_TYPES, PROTECTED};
use crate::execution::swapchain::SWAPCHAINS;
use crate::resources::buffers::{put_requirements, put_status};
use crate::resources::image_layout::ImageShape;
use crate::resources::memory::{AllocationBinding, DeviceAllocation, WeakAllocationBinding};

pub(crate) static IMAGES: DriverObjectTable<ImageData> = DriverObjectTable::new(HandleType::Image);
/// For images in memory: like real devices, independent of the system's page size.
const ALIGNMENT: u64 = 4096;
/// The size of a sparse block.
const SPARSE_ALIGNMENT: u64 = 64 << 10;

/// An image.
pub(crate) struct ImageData {
    pub(crate) shape: ImageShape,
    type_bits: u32,
    is_sparse: bool,
    binding: RwLock<Option<WeakAllocationBinding>>,
    /// For an image of a swapchain, which has memory of its own.
    memory: Option<Arc<DeviceAllocation>>,
}

impl ImageData {
    fn new(info: &ImageCreateInfo) -> ImageData {
        let is_protected = info.flags.0 & ImageCreateFlags::PROTECTED.0 != 0;
        let is_transient = info.usage.0 & ImageUsageFlags::TRANSIENT_ATTACHMENT.0 != 0;
        let lazy = if is_transient { 1 << LAZY } else { 0 };
        ImageData {
            shape: ImageShape::of(info),
            type_bits: if is_protected { 1 << PROTECTED } else { ORDINARY_TYPES | lazy },
            is_sparse: info.flags.0 & ImageCreateFlags::SPARSE_BINDING.0 != 0,
            binding: RwLock::default(),
            memory: None,
        }
    }

    /// An image of a swapchain; none without memory.
    pub(crate) fn of_swapchain(info: &ImageCreateInfo) -> Option<ImageData> {
        let image = ImageData::new(info);
        let memory = Arc::new(DeviceAllocation::new(image.requirements().size)?);
        let binding = AllocationBinding { memory: Arc::clone(&memory), offset: 0 }.downgrade();
        Some(ImageData { binding: RwLock::new(Some(binding)), memory: Some(memory), ..image })
    }

    /// The bound memory and the offset of the image in it.
    pub(crate) fn binding(&self) -> Option<AllocationBinding> {
        self.binding.read().unwrap_or_else(PoisonError::into_inner).as_ref()?.upgrade()
    }

    fn bind(&self, binding: Option<AllocationBinding>) -> Result {
        let Some(binding) = binding else { return Result::ERROR_UNKNOWN };
        *self.binding.write().unwrap_or_else(PoisonError::into_inner) = Some(binding.downgrade());
        Result::SUCCESS
    }

    fn requirements(&self) -> MemoryRequirements {
        self.requirements_of(self.shape.size())
    }

    fn requirements_of(&self, size: u64) -> MemoryRequirements {
        let alignment = if self.is_sparse { SPARSE_ALIGNMENT } else { ALIGNMENT };
        let size = size.checked_next_multiple_of(alignment).unwrap_or(size);
        MemoryRequirements { size, alignment, memory_type_bits: self.type_bits }
    }

    /// For one plane, if it is requested.
    fn requirements_for(&self, c: ApplicationMemory<'_>, chain: Ptr<Opaque>) -> MemoryRequirements {
        match c.find::<ImagePlaneMemoryRequirementsInfo>(chain) {
            Some(requirements_info) => self.requirements_of(self.shape.plane(requirements_info.plane_aspect).size),
            None => self.requirements(),
        }
    }
}

pub(crate) fn create_image(c: ApplicationMemory<'_>, call: &CreateImageParams) -> Result {
    let Some(info) = c.get(call.p_create_info) else { return Result::ERROR_UNKNOWN };
    c.write(call.p_image, Image(IMAGES.add(ImageData::new(info))));
    Result::SUCCESS
}

pub(crate) fn destroy_image(_: ApplicationMemory<'_>, call: &DestroyImageParams) {
    IMAGES.remove(call.image.0);
}

pub(crate) fn get_image_memory_requirements(c: ApplicationMemory<'_>, call: &GetImageMemoryRequirementsParams) {
    let found = IMAGES.get(call.image.0).map(|it| it.requirements());
    c.write(call.p_memory_requirements, found.unwrap_or_else(MemoryRequirements::zeroed));
}

pub(crate) fn get_image_memory_requirements2(c: ApplicationMemory<'_>, call: &GetImageMemoryRequirements2Params) {
    let found = c.get(call.p_info).and_then(|info| {
        let image = IMAGES.get(info.image.0)?;
        Some(image.requirements_for(c, info.p_next))
    });
    put_requirements(c, call.p_memory_requirements, found);
}

pub(crate) fn get_device_image_memory_requirements(
    c: ApplicationMemory<'_>,
    call: &GetDeviceImageMemoryRequirementsParams,
) {
    let found = c.get(call.p_info).and_then(|info| {
        let image = ImageData::new(c.get(info.p_create_info)?);
        let is_plane = info.plane_aspect.0 & 0x70 != 0;
        let size = if is_plane { image.shape.plane(info.plane_aspect).size } else { image.shape.size() };
        Some(image.requirements_of(size))
    });
    put_requirements(c, call.p_memory_requirements, found);
}

pub(crate) fn bind_image_memory(_: ApplicationMemory<'_>, call: &BindImageMemoryParams) -> Result {
    match IMAGES.get(call.image.0) {
        Some(image_data) => image_data.bind(AllocationBinding::of(call.memory, call.memory_offset)),
        None => Result::ERROR_UNKNOWN,
    }
}

pub(crate) fn bind_image_memory2(c: ApplicationMemory<'_>, call: &BindImageMemory2Params) -> Result {
    let mut all = Result::SUCCESS;
    for memory_info in c.slice(call.p_bind_infos, call.bind_info_count) {
        let result = IMAGES
            .get(memory_info.image.0)
            .map_or(Result::ERROR_UNKNOWN, |image| image.bind(binding_of(c, memory_info)));
        put_status(c, memory_info.p_next, result);
        if result != Result::SUCCESS {
            all = result;
        }
    }
    all
}

/// Memory of the application, or of an image of a swapchain.
fn binding_of(c: ApplicationMemory<'_>, info: &BindImageMemoryInfo) -> Option<AllocationBinding> {
    let Some(other) = c.find::<BindImageMemorySwapchainInfoKHR>(info.p_next).filter(|it| it.swapchain.0 != 0) else {
        return AllocationBinding::of(info.memory, info.memory_offset);
    };
    let swapchain = SWAPCHAINS.get(other.swapchain.0)?;
    let image = IMAGES.get(swapchain.images.get(other.image_index as usize)?.0)?;
    Some(AllocationBinding { memory: Arc::clone(image.memory.as_ref()?), offset: 0 })
}

fn sparse_requirements(format: Format, shape: &ImageShape) -> Option<SparseImageMemoryRequirements> {
    Some(SparseImageMemoryRequirements {
        format_properties: formats::sparse_properties(format)?,
        image_mip_tail_first_lod: shape.mip_levels,
        image_mip_tail_size: 0,
        image_mip_tail_offset: 0,
        image_mip_tail_stride: 0,
    })
}

fn sparse_of(image: &ImageData) -> Vec<SparseImageMemoryRequirements> {
    let found = sparse_requirements(image.shape.format, &image.shape);
    found.into_iter().filter(|_| image.is_sparse).collect()
}

pub(crate) fn get_image_sparse_memory_requirements(
    c: ApplicationMemory<'_>,
    call: &GetImageSparseMemoryRequirementsParams,
) {
    let found = IMAGES.get(call.image.0).map(|it| sparse_of(&it)).unwrap_or_default();
    c.enumerate_values(call.p_sparse_memory_requirement_count, call.p_sparse_memory_requirements, &found);
}

pub(crate) fn get_image_sparse_memory_requirements2(
    c: ApplicationMemory<'_>,
    call: &GetImageSparseMemoryRequirements2Params,
) {
    let image = c.get(call.p_info).and_then(|it| IMAGES.get(it.image.0));
    let found = image.map(|it| sparse_of(&it)).unwrap_or_default();
    let (count, to) = (call.p_sparse_memory_requirement_count, call.p_sparse_memory_requirements);
    c.enumerate(count, to, &found, |it, at| it.memory_requirements = found[at]);
}

pub(crate) fn get_device_image_sparse_memory_requirements(
    c: ApplicationMemory<'_>,
    call: &GetDeviceImageSparseMemoryRequirementsParams,
) {
    let info = c.get(call.p_info).and_then(|it| c.get(it.p_create_info));
    let found = info.map(|it| sparse_of(&ImageData::new(it))).unwrap_or_default();
    let (count, to) = (call.p_sparse_memory_requirement_count, call.p_sparse_memory_requirements);
    c.enumerate(count, to, &found, |it, at| it.memory_requirements = found[at]);
}

pub(crate) fn get_image_subresource_layout(c: ApplicationMemory<'_>, call: &GetImageSubresourceLayoutParams) {
    let (Some(image), Some(at)) = (IMAGES.get(call.image.0), c.get(call.p_subresource)) else { return };
    c.write(call.p_layout, image.shape.subresource(at));
}

pub(crate) fn get_image_subresource_layout2(c: ApplicationMemory<'_>, call: &GetImageSubresourceLayout2Params) {
    let (Some(image), Some(at)) = (IMAGES.get(call.image.0), c.get(call.p_subresource)) else { return };
    put_layout(c, call.p_layout, &image.shape, &at.image_subresource);
}

pub(crate) fn get_device_image_subresource_layout(
    c: ApplicationMemory<'_>,
    call: &GetDeviceImageSubresourceLayoutParams,
) {
    let Some(info) = c.get(call.p_info) else { return };
    let (Some(image), Some(at)) = (c.get(info.p_create_info), c.get(info.p_subresource)) else { return };
    put_layout(c, call.p_layout, &ImageShape::of(image), &at.image_subresource);
}

fn put_layout(c: ApplicationMemory<'_>, to: Ptr<SubresourceLayout2>, shape: &ImageShape, at: &ImageSubresource) {
    let Some(out) = c.get_mut(to) else { return };
    out.subresource_layout = shape.subresource(at);
    if let Some(value) = c.find_mut::<SubresourceHostMemcpySize>(out.p_next) {
        value.size = out.subresource_layout.size;
    }
}
