//! Micromaps: builds, copies, and reads by builds of acceleration structures.

use lavascope_abi as vk;
use lavascope_record::{Call, Outcome, View};
use lavascope_sync_ir::{Access, Certainty};

use crate::command::stage_access::{
    MICROMAP_COPY_READ, MICROMAP_COPY_WRITE, MICROMAP_INPUT_READ, MICROMAP_READ, MICROMAP_WRITE, StageAccess,
};
use crate::device::{TrackedCall, TrackedDevice};
use crate::extension::acceleration_structure::{HEADER, SCRATCH};
use crate::listener::TrackerOutput;

/// Size in bytes of `VkMicromapTriangleEXT`.
const TRIANGLE: u64 = 8;

impl TrackedDevice {
    pub(crate) fn track_micromaps(&mut self, tracked: TrackedCall<'_>, out: &mut TrackerOutput<'_>) -> bool {
        match (tracked.call, tracked.outcome) {
            (Call::CreateMicromapEXT(params), Some(Outcome::CreateMicromapEXT(made))) => {
                if let (Some(info), Some(handle)) = (params.p_create_info(), made.p_micromap()) {
                    match self.buffer_range(info.buffer, info.offset, info.size) {
                        Some(part) => self.micromaps.insert(handle.0, part),
                        None => out.report_untracked("a buffer whose memory is not known"),
                    }
                }
            }
            (Call::DestroyMicromapEXT(params), None) => drop(self.micromaps.remove(params.micromap.0)),
            (Call::CmdBuildMicromapsEXT(params), None) => {
                let accesses = params.p_infos().iter().flat_map(|it| self.micromap_build_accesses(it, out)).collect();
                self.record_action(params.command_buffer, accesses, out);
            }
            (Call::CmdCopyMicromapEXT(params), None) => {
                let Some(info) = params.p_info() else { return true };
                let mut accesses = self.micromap_accesses(info.src, MICROMAP_READ, out);
                accesses.extend(self.micromap_accesses(info.dst, MICROMAP_WRITE, out));
                self.record_action(params.command_buffer, accesses, out);
            }
            (Call::CmdCopyMicromapToMemoryEXT(params), None) => {
                let Some(info) = params.p_info() else { return true };
                let mut accesses = self.micromap_accesses(info.src, MICROMAP_READ, out);
                let address = *info.dst.device_address();
                accesses.extend(self.address_access(address, HEADER, MICROMAP_COPY_WRITE, out));
                self.record_action(params.command_buffer, accesses, out);
            }
            (Call::CmdCopyMemoryToMicromapEXT(params), None) => {
                let Some(info) = params.p_info() else { return true };
                let mut accesses = self.micromap_accesses(info.dst, MICROMAP_WRITE, out);
                let address = *info.src.device_address();
                accesses.extend(self.address_access(address, HEADER, MICROMAP_COPY_READ, out));
                self.record_action(params.command_buffer, accesses, out);
            }
            (Call::CmdWriteMicromapsPropertiesEXT(params), None) => {
                let all = params.p_micromaps().iter();
                let reads = all.flat_map(|it| self.micromap_accesses(*it, MICROMAP_READ, out)).collect();
                self.record_action(params.command_buffer, reads, out);
            }
            _ => return false,
        }
        true
    }

    pub(crate) fn micromap_accesses(
        &self,
        handle: vk::MicromapEXT,
        usage: StageAccess,
        out: &mut TrackerOutput<'_>,
    ) -> Vec<Access> {
        let own = self.micromaps.get(handle.0);
        if own.is_none() {
            out.report_untracked("a micromap that nobody created");
        }
        own.map(|(resource, bytes)| usage.access_to_bytes(*resource, bytes.clone())).into_iter().collect()
    }

    fn micromap_build_accesses(
        &self,
        info: View<'_, vk::MicromapBuildInfoEXT>,
        out: &mut TrackerOutput<'_>,
    ) -> Vec<Access> {
        let mut found = self.micromap_accesses(info.dst_micromap, MICROMAP_WRITE, out);
        found.extend(self.address_access(*info.scratch_data.device_address(), SCRATCH, MICROMAP_WRITE, out));
        let usages = usages(info);
        let count: u64 = usages.iter().map(|it| u64::from(it.count)).sum();
        if count == 0 {
            return found;
        }
        let triangles = (count - 1).saturating_mul(info.triangle_array_stride).saturating_add(TRIANGLE);
        let address = *info.triangle_array.device_address();
        found.extend(self.address_access(address, triangles, MICROMAP_INPUT_READ, out));
        // Each triangle has the offset of its own data.
        let data = usages.iter().fold(0_u64, |all, it| all.saturating_add(data_size(it)));
        let read = self.address_access(*info.data.device_address(), data, MICROMAP_INPUT_READ, out);
        found.extend(read.map(|it| Access { certainty: Certainty::Anywhere, ..it }));
        found
    }
}

/// Usages are in an array, or in an array of pointers.
fn usages<'a>(info: View<'a, vk::MicromapBuildInfoEXT>) -> Vec<&'a vk::MicromapUsageEXT> {
    let direct: Vec<_> = info.p_usage_counts().iter().map(View::get).collect();
    if !direct.is_empty() {
        return direct;
    }
    let pointers = info.values(info.pp_usage_counts, u64::from(info.usage_counts_count));
    pointers.iter().filter_map(|it| info.value(*it)).collect()
}

/// Size in bytes of the triangles of a usage: one or two bits for each microtriangle.
fn data_size(micromap_usage: &vk::MicromapUsageEXT) -> u64 {
    let parts = 1_u64 << (2 * micromap_usage.subdivision_level.min(15));
    let bits = if micromap_usage.format == vk::OpacityMicromapFormatKHR::_4_STATE_KHR.0 as u32 { 2 } else { 1 };
    u64::from(micromap_usage.count).saturating_mul((parts * bits).div_ceil(8))
}
