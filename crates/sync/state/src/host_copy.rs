//! Images that the host copies and transitions itself.

use lavascope_abi as vk;
use lavascope_record::Call;
use lavascope_sync_ir::{Certainty, Region};

use crate::device::{Device, Event};
use crate::image::Image;
use crate::listener::Out;
use crate::region::{Texels, extent_of, offset_of};

impl Device {
    pub(crate) fn host_copies(&mut self, event: Event<'_>, out: &mut Out<'_>) -> bool {
        match event.call {
            Call::CopyMemoryToImage(it) => {
                let Some(info) = it.p_copy_memory_to_image_info() else { return true };
                for it in info.p_regions().iter() {
                    let texels = texels(it.image_subresource, it.image_offset, it.image_extent);
                    self.host_image(info.dst_image, true, &|image| image.texels(&texels), out);
                }
            }
            Call::CopyImageToMemory(it) => {
                let Some(info) = it.p_copy_image_to_memory_info() else { return true };
                for it in info.p_regions().iter() {
                    let texels = texels(it.image_subresource, it.image_offset, it.image_extent);
                    self.host_image(info.src_image, false, &|image| image.texels(&texels), out);
                }
            }
            Call::CopyImageToImage(it) => {
                let Some(info) = it.p_copy_image_to_image_info() else { return true };
                for it in info.p_regions().iter() {
                    let src = texels(it.src_subresource, it.src_offset, it.extent);
                    let dst = texels(it.dst_subresource, it.dst_offset, it.extent);
                    self.host_image(info.src_image, false, &|image| image.texels(&src), out);
                    self.host_image(info.dst_image, true, &|image| image.texels(&dst), out);
                }
            }
            Call::TransitionImageLayout(it) => {
                for it in it.p_transitions().iter() {
                    let range = &it.get().subresource_range;
                    self.host_image(it.image, true, &|image| Region::Image(image.range(range)), out);
                }
            }
            _ => return false,
        }
        true
    }

    fn host_image(&self, image: vk::Image, is_write: bool, part: &dyn Fn(&Image) -> Region, out: &mut Out<'_>) {
        match self.image(image) {
            Some((resource, image)) => out.host_access(resource, part(image), is_write, Certainty::Certain),
            None => out.missing("an image whose memory is not known"),
        }
    }
}

fn texels(layers: vk::ImageSubresourceLayers, offset: vk::Offset3D, extent: vk::Extent3D) -> Texels {
    Texels { layers, offset: offset_of(offset), extent: extent_of(extent) }
}
