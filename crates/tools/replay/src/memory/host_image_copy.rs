//! Copies from images to host memory: the memory of the program does not exist here, so the replay provides some.
//!
//! The program may have had the memory mapped. A capture sees what the copy wrote there as a host write, and that is
//! repeated with its record.

use std::sync::Mutex;

use lavascope_abi as vk;
use lavascope_abi::ObjectId;
use lavascope_record::{Call, Outcome};
use rustc_hash::FxHashMap;

use crate::call::perform::{Performer, RecordedCall};
use crate::error::ReplayError;
use crate::replay::lock;

/// The format and the layers of images that the host copies.
#[derive(Default)]
pub(crate) struct HostCopyImages(Mutex<FxHashMap<ObjectId, (vk::Format, u32)>>);

/// No format has larger texels.
const TEXEL_BYTES_MAX: u64 = 32;

impl HostCopyImages {
    /// An image was made.
    pub(crate) fn add(&self, done: &RecordedCall<'_>) {
        let (Some(Call::CreateImage(call)), Some(Outcome::CreateImage(outcome))) =
            (Call::of(done.enter), done.leave.and_then(Outcome::of))
        else {
            return;
        };
        let Some(info) = call.p_create_info() else { return };
        let id = outcome.p_image().and_then(|it| ObjectId::from_raw(it.0));
        let is_copied = info.usage.0 & vk::ImageUsageFlags::HOST_TRANSFER.0 != 0;
        if let Some(id) = id.filter(|_| is_copied) {
            lock(&self.0).insert(id, (info.format, info.array_layers));
        }
    }

    pub(crate) fn remove(&self, id: ObjectId) {
        lock(&self.0).remove(&id);
    }

    fn find(&self, raw: u64) -> (vk::Format, u32) {
        let id = ObjectId::from_raw(raw).unwrap_or(ObjectId::NULL);
        lock(&self.0).get(&id).copied().unwrap_or((vk::Format::UNDEFINED, 1))
    }
}

/// At least as many bytes as a copy of a region writes.
fn region_bytes((format, all_layers): (vk::Format, u32), region: &vk::ImageToMemoryCopy) -> Option<u64> {
    let desc = vk::FORMATS.iter().find(|it| it.format == format);
    let (block, bytes) =
        desc.map_or(([1; 3], TEXEL_BYTES_MAX), |it| (it.block_extent, u64::from(it.block_size).max(4)));
    let blocks = |texels: u32, of: usize| u64::from(texels.div_ceil(block[of].max(1)));
    let at = &region.image_subresource;
    let layers = match at.layer_count {
        vk::REMAINING_ARRAY_LAYERS => all_layers.saturating_sub(at.base_array_layer),
        count => count,
    };
    let row = blocks(region.memory_row_length.max(region.image_extent.width), 0);
    let rows = blocks(region.memory_image_height.max(region.image_extent.height), 1);
    let slices = blocks(region.image_extent.depth, 2).checked_mul(layers.into())?;
    row.checked_mul(rows)?.checked_mul(slices)?.checked_mul(bytes)
}

/// A copy of an image to host memory.
pub(crate) fn image_to_memory(performer: &mut Performer<'_>, done: &RecordedCall<'_>) -> Result<(), ReplayError> {
    let Some(Call::CopyImageToMemory(call)) = Call::of(done.enter).filter(|_| !done.has_failed()) else {
        return Ok(());
    };
    let image = call.p_copy_image_to_memory_info().map_or(0, |it| it.src_image.0);
    let shape = performer.replay.host_copies.find(image);
    let laid = performer.unpack(done)?;
    // SAFETY: `UnpackedCall::image` holds the parameters of this command; the structure that one of them leads to is not null.
    let info = unsafe {
        let params = &*laid.image.cast::<vk::CopyImageToMemoryParams>();
        &mut *performer.required(done, params.p_copy_image_to_memory_info)?
    };
    // Rows as the driver lays them out have a size that only the driver knows. The replay does not read them.
    info.flags.0 &= !vk::HostImageCopyFlags::MEMCPY.0;
    let mut targets: Vec<Vec<u8>> = Vec::new();
    for region in performer.elements(done, (info.p_regions, info.region_count))? {
        // SAFETY: `elements` gives as many as the record has, in the arena, and nobody else refers to them.
        let region = unsafe { &mut *region };
        let size = region_bytes(shape, region).and_then(|it| usize::try_from(it).ok());
        let mut target = Vec::<u8>::new();
        let is_possible = size.is_some_and(|it| target.try_reserve_exact(it).is_ok());
        if !is_possible {
            return Err(performer.error(done, "it copies more than there is memory for"));
        }
        region.p_host_pointer = vk::Ptr::new(target.as_mut_ptr().expose_provenance() as u64);
        targets.push(target);
    }
    let result = performer.call(done, laid)?;
    performer.finish_call(done, laid, result)
}

#[cfg(test)]
mod tests {
    use lavascope_abi::Structure;

    use super::*;

    #[test]
    fn a_region_has_room_for_its_rows_and_layers() {
        let mut region = vk::ImageToMemoryCopy::zeroed();
        region.image_extent = vk::Extent3D { width: 10, height: 6, depth: 1 };
        region.image_subresource.layer_count = 2;
        let of = |format, region: &vk::ImageToMemoryCopy| region_bytes((format, 5), region);
        assert_eq!(of(vk::Format::R8G8B8A8_UNORM, &region), Some(10 * 6 * 2 * 4));
        assert_eq!(of(vk::Format::BC1_RGB_UNORM_BLOCK, &region), Some(3 * 2 * 2 * 8));
        (region.memory_row_length, region.image_subresource.layer_count) = (16, vk::REMAINING_ARRAY_LAYERS);
        region.image_subresource.base_array_layer = 2;
        assert_eq!(of(vk::Format::R8G8B8A8_UNORM, &region), Some(16 * 6 * 3 * 4));
        assert_eq!(of(vk::Format(-7), &region), Some(16 * 6 * 3 * 32));
        region.image_extent = vk::Extent3D { width: u32::MAX, height: u32::MAX, depth: u32::MAX };
        assert_eq!(of(vk::Format::R8G8B8A8_UNORM, &region), None);
    }
}
