//! Layouts of linear images, from the driver's answers to the application's queries.
//!
//! Without a query the rows are assumed to be dense. The layout matters if the image shares memory with another
//! resource.

use lavascope_abi as vk;
use lavascope_record::{Call, Outcome};
use lavascope_sync_ir::{HostStep, SubresourceLayout, Tiling};

use crate::device::{TrackedCall, TrackedDevice};
use crate::listener::TrackerOutput;
use crate::resource::format;
use crate::resource::image::{SIZE_MAX, TrackedImage};

impl TrackedDevice {
    /// Tracks the queries of subresource layouts.
    pub(crate) fn track_subresource_layouts(&mut self, tracked: TrackedCall<'_>, out: &mut TrackerOutput<'_>) -> bool {
        match (tracked.call, tracked.outcome) {
            (Call::GetImageSubresourceLayout(params), Some(Outcome::GetImageSubresourceLayout(done))) => {
                if let (Some(which), Some(layout)) = (params.p_subresource(), done.p_layout()) {
                    self.set_layout(params.image.0, &which, &layout, out);
                }
            }
            (Call::GetImageSubresourceLayout2(params), Some(Outcome::GetImageSubresourceLayout2(done))) => {
                if let (Some(which), Some(layout)) = (params.p_subresource(), done.p_layout()) {
                    self.set_layout(params.image.0, &which.image_subresource, &layout.subresource_layout, out);
                }
            }
            _ => return false,
        }
        true
    }

    fn set_layout(
        &mut self,
        handle: u64,
        which: &vk::ImageSubresource,
        layout: &vk::SubresourceLayout,
        out: &mut TrackerOutput<'_>,
    ) {
        let Some(image) = self.images.get_mut(handle) else { return };
        let Some(plane) = image.plane_of(which) else { return };
        image.layouts.resize(format::plane_count(image.info.format), None);
        image.layouts[plane] = Some(clamp_layout(layout));
        let Some(all) = image.layouts.iter().copied().collect::<Option<Vec<SubresourceLayout>>>() else { return };
        if is_dense(image, &all) && image.info.tiling == Tiling::Linear {
            return;
        }
        let tiling = Tiling::Pitched(all.into());
        if image.info.tiling == tiling {
            return;
        }
        if image.is_used.get() {
            out.report_untracked("where the texels of a linear image lie, asked for after it was used");
            return;
        }
        image.info.tiling = tiling;
        self.replace_resource(handle, out);
    }

    /// Replaces the resource of an unused image, because its layout differs from the assumed one.
    fn replace_resource(&mut self, handle: u64, out: &mut TrackerOutput<'_>) {
        let Some(image) = self.images.get(handle) else { return };
        let (Some(old), memory) = (image.resource, image.memory) else { return };
        let Some(start) = self.memories.get(memory).and_then(|it| it.start_of(old)) else { return };
        let size = image.bytes();
        let resource = image.to_resource(self.binding(memory, start, size, out));
        out.step(HostStep::Destroy(old));
        let id = self.add_resource(handle, &resource, out);
        if let Some(memory) = self.memories.get_mut(memory) {
            memory.replace(old, id, start..start.saturating_add(size));
        }
        if let Some(image) = self.images.get_mut(handle) {
            image.resource = Some(id);
        }
    }
}

impl TrackedImage {
    /// The plane of a queried layout, if the query adds information: only the first layer of an image with one mip
    /// level and linear rows.
    fn plane_of(&self, which: &vk::ImageSubresource) -> Option<usize> {
        use vk::ImageAspectFlags as Aspect;
        let is_known = !self.info.is_linear() || self.is_sparse || self.is_disjoint || self.info.mips != 1;
        if is_known || which.mip_level != 0 || which.array_layer != 0 {
            return None;
        }
        let planes = format::plane_count(self.info.format);
        match Aspect(which.aspect_mask.0) {
            Aspect::PLANE_0 if planes > 1 => Some(0),
            Aspect::PLANE_1 if planes > 1 => Some(1),
            Aspect::PLANE_2 if planes > 2 => Some(2),
            aspect => (planes == 1 && aspect.0 == self.aspects).then_some(0),
        }
    }
}

/// Clamps values that are larger than any memory.
fn clamp_layout(subresource_layout: &vk::SubresourceLayout) -> SubresourceLayout {
    SubresourceLayout {
        offset: subresource_layout.offset.min(SIZE_MAX),
        row_pitch: subresource_layout.row_pitch.min(SIZE_MAX),
        depth_pitch: subresource_layout.depth_pitch.min(SIZE_MAX),
        array_pitch: subresource_layout.array_pitch.min(SIZE_MAX),
    }
}

/// Whether an image with one plane has the dense layout that was assumed.
fn is_dense(image: &TrackedImage, layouts: &[SubresourceLayout]) -> bool {
    let [subresource_layout] = layouts else { return false };
    let [row, rows, slices] = format::plane_extent(image.info.format, 0, image.info.extent);
    let steps = [
        (rows, subresource_layout.row_pitch, row),
        (slices, subresource_layout.depth_pitch, row * rows),
        (u64::from(image.info.layers), subresource_layout.array_pitch, row * rows * slices),
    ];
    subresource_layout.offset == 0 && steps.iter().all(|(count, pitch, dense)| *count <= 1 || pitch == dense)
}
