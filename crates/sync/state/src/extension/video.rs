//! Video coding: bitstreams and pictures.

use lavascope_abi as vk;
use lavascope_record::{Call, View};
use lavascope_sync_ir::{Access, Area, Region};

use crate::command::stage_access::{DECODE_READ, DECODE_WRITE, ENCODE_READ, ENCODE_WRITE, StageAccess};
use crate::device::{TrackedCall, TrackedDevice};
use crate::listener::TrackerOutput;

impl TrackedDevice {
    pub(crate) fn track_video(&mut self, tracked: TrackedCall<'_>, out: &mut TrackerOutput<'_>) -> bool {
        match tracked.call {
            Call::CmdDecodeVideoKHR(params) => {
                let Some(info) = params.p_decode_info() else { return true };
                let (offset, range) = (info.src_buffer_offset, info.src_buffer_range);
                let mut accesses: Vec<Access> =
                    self.buffer_access(info.src_buffer, offset, range, DECODE_READ, out).into_iter().collect();
                accesses.extend(self.picture_access(&info.get().dst_picture_resource, DECODE_WRITE, out));
                accesses.extend(self.reference_slot_access(info.p_setup_reference_slot(), DECODE_WRITE, out));
                for slot in info.p_reference_slots().iter() {
                    accesses.extend(self.reference_slot_access(Some(slot), DECODE_READ, out));
                }
                self.record_action(params.command_buffer, accesses, out);
            }
            Call::CmdEncodeVideoKHR(params) => {
                let Some(info) = params.p_encode_info() else { return true };
                let (offset, range) = (info.dst_buffer_offset, info.dst_buffer_range);
                let mut accesses: Vec<Access> =
                    self.buffer_access(info.dst_buffer, offset, range, ENCODE_WRITE, out).into_iter().collect();
                accesses.extend(self.picture_access(&info.get().src_picture_resource, ENCODE_READ, out));
                accesses.extend(self.reference_slot_access(info.p_setup_reference_slot(), ENCODE_WRITE, out));
                for slot in info.p_reference_slots().iter() {
                    accesses.extend(self.reference_slot_access(Some(slot), ENCODE_READ, out));
                }
                if let Some(map) = info.chained::<vk::VideoEncodeQuantizationMapInfoKHR>() {
                    let view = self.image_views.get(map.quantization_map.0);
                    accesses.extend(view.map(|it| it.read(ENCODE_READ)));
                }
                self.record_action(params.command_buffer, accesses, out);
            }
            _ => return false,
        }
        true
    }

    fn reference_slot_access(
        &self,
        slot: Option<View<'_, vk::VideoReferenceSlotInfoKHR>>,
        usage: StageAccess,
        out: &mut TrackerOutput<'_>,
    ) -> Option<Access> {
        let picture = slot?.p_picture_resource()?;
        self.picture_access(picture.get(), usage, out)
    }

    /// The coded area of one layer of a view.
    fn picture_access(
        &self,
        resource_info: &vk::VideoPictureResourceInfoKHR,
        usage: StageAccess,
        out: &mut TrackerOutput<'_>,
    ) -> Option<Access> {
        let Some(view) = self.image_views.get(resource_info.image_view_binding.0) else {
            out.report_untracked("a view that nobody created");
            return None;
        };
        let mut region = view.region.clone();
        let layer = region.layers.start.saturating_add(resource_info.base_array_layer);
        region.layers = layer..layer.saturating_add(1);
        let offset = [resource_info.coded_offset.x.max(0) as u32, resource_info.coded_offset.y.max(0) as u32, 0];
        region.area =
            Some(Area { offset, extent: [resource_info.coded_extent.width, resource_info.coded_extent.height, 1] });
        Some(usage.access_to(view.resource, Region::Image(region)))
    }
}
