//! Images that the host copies and transitions itself.

use lavascope_abi as vk;
use lavascope_record::Call;
use lavascope_sync_ir::{Certainty, Region};

use crate::device::{TrackedCall, TrackedDevice};
use crate::listener::TrackerOutput;
use crate::resource::image::TrackedImage;
use crate::resource::region::{TexelBox, extent_of, offset_of};

impl TrackedDevice {
    pub(crate) fn track_host_copies(&mut self, event: TrackedCall<'_>, out: &mut TrackerOutput<'_>) -> bool {
        match event.call {
            Call::CopyMemoryToImage(it) => {
                let Some(info) = it.p_copy_memory_to_image_info() else { return true };
                for it in info.p_regions().iter() {
                    let texels = texels(it.image_subresource, it.image_offset, it.image_extent);
                    self.host_image(info.dst_image, true, &|image| image.texel_region(&texels), out);
                }
            }
            Call::CopyImageToMemory(it) => {
                let Some(info) = it.p_copy_image_to_memory_info() else { return true };
                for it in info.p_regions().iter() {
                    let texels = texels(it.image_subresource, it.image_offset, it.image_extent);
                    self.host_image(info.src_image, false, &|image| image.texel_region(&texels), out);
                }
            }
            Call::CopyImageToImage(it) => {
                let Some(info) = it.p_copy_image_to_image_info() else { return true };
                for it in info.p_regions().iter() {
                    let src = texels(it.src_subresource, it.src_offset, it.extent);
                    let dst = texels(it.dst_subresource, it.dst_offset, it.extent);
                    self.host_image(info.src_image, false, &|image| image.texel_region(&src), out);
                    self.host_image(info.dst_image, true, &|image| image.texel_region(&dst), out);
                }
            }
            Call::TransitionImageLayout(it) => {
                for it in it.p_transitions().iter() {
                    let range = &it.get().subresource_range;
                    self.host_image(it.image, true, &|image| Region::Image(image.subresource_region(range)), out);
                }
            }
            _ => return false,
        }
        true
    }

    fn host_image(
        &self,
        image: vk::Image,
        is_write: bool,
        part: &dyn Fn(&TrackedImage) -> Region,
        out: &mut TrackerOutput<'_>,
    ) {
        match self.image(image) {
            Some((resource, image)) => out.host_access(resource, part(image), is_write, Certainty::Certain),
            None => out.report_untracked("an image whose memory is not known"),
        }
    }
}

fn texels(layers: vk::ImageSubresourceLayers, offset: vk::Offset3D, extent: vk::Extent3D) -> TexelBox {
    TexelBox { layers, offset: offset_of(offset), extent: extent_of(extent) }
}
