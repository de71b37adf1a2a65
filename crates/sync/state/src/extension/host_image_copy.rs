//! Copies and layout transitions of images on the host.

use lavascope_abi as vk;
use lavascope_record::Call;
use lavascope_sync_ir::{Certainty, Region};

use crate::device::{TrackedCall, TrackedDevice};
use crate::listener::TrackerOutput;
use crate::resource::image::TrackedImage;
use crate::resource::region::{TexelBox, extent_of, offset_of};

impl TrackedDevice {
    pub(crate) fn track_host_copies(&mut self, tracked: TrackedCall<'_>, out: &mut TrackerOutput<'_>) -> bool {
        match tracked.call {
            Call::CopyMemoryToImage(params) => {
                let Some(info) = params.p_copy_memory_to_image_info() else { return true };
                for image_copy in info.p_regions().iter() {
                    let texels = texels(image_copy.image_subresource, image_copy.image_offset, image_copy.image_extent);
                    self.host_image(info.dst_image, true, &|image| image.texel_region(&texels), out);
                }
            }
            Call::CopyImageToMemory(params) => {
                let Some(info) = params.p_copy_image_to_memory_info() else { return true };
                for memory_copy in info.p_regions().iter() {
                    let texels =
                        texels(memory_copy.image_subresource, memory_copy.image_offset, memory_copy.image_extent);
                    self.host_image(info.src_image, false, &|image| image.texel_region(&texels), out);
                }
            }
            Call::CopyImageToImage(params) => {
                let Some(info) = params.p_copy_image_to_image_info() else { return true };
                for image_copy in info.p_regions().iter() {
                    let src = texels(image_copy.src_subresource, image_copy.src_offset, image_copy.extent);
                    let dst = texels(image_copy.dst_subresource, image_copy.dst_offset, image_copy.extent);
                    self.host_image(info.src_image, false, &|image| image.texel_region(&src), out);
                    self.host_image(info.dst_image, true, &|image| image.texel_region(&dst), out);
                }
            }
            Call::TransitionImageLayout(params) => {
                for p_transition in params.p_transitions().iter() {
                    let range = &p_transition.get().subresource_range;
                    self.host_image(p_transition.image, true, &|image| Region::Image(image.barrier_region(range)), out);
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
