//! Builds and copies of acceleration structures and micromaps on the host.
//!
//! They are in buffers, which the host reads and writes. Inputs at host addresses are not in the records.

use lavascope_abi as vk;
use lavascope_record::Call;
use lavascope_sync_ir::{Certainty, Region};

use crate::device::{TrackedCall, TrackedDevice};
use crate::listener::TrackerOutput;

const HOST_MEMORY: &str = "memory that the host names by an address of its own";

#[derive(Clone, Copy, PartialEq, Eq)]
enum HostAccessKind {
    Reads,
    Writes,
}

impl TrackedDevice {
    pub(crate) fn track_host_builds(&mut self, tracked: TrackedCall<'_>, out: &mut TrackerOutput<'_>) -> bool {
        match tracked.call {
            Call::BuildAccelerationStructuresKHR(params) => {
                out.report_untracked(HOST_MEMORY);
                for info in params.p_infos().iter() {
                    if info.mode == vk::BuildAccelerationStructureModeKHR::UPDATE_KHR {
                        self.host_structure(info.src_acceleration_structure, HostAccessKind::Reads, out);
                    }
                    self.host_structure(info.dst_acceleration_structure, HostAccessKind::Writes, out);
                }
            }
            Call::CopyAccelerationStructureKHR(params) => {
                let Some(info) = params.p_info() else { return true };
                self.host_structure(info.src, HostAccessKind::Reads, out);
                self.host_structure(info.dst, HostAccessKind::Writes, out);
            }
            Call::CopyAccelerationStructureToMemoryKHR(params) => {
                out.report_untracked(HOST_MEMORY);
                let src = params.p_info().map(|it| it.src);
                src.into_iter().for_each(|it| self.host_structure(it, HostAccessKind::Reads, out));
            }
            Call::CopyMemoryToAccelerationStructureKHR(params) => {
                out.report_untracked(HOST_MEMORY);
                let dst = params.p_info().map(|it| it.dst);
                dst.into_iter().for_each(|it| self.host_structure(it, HostAccessKind::Writes, out));
            }
            Call::WriteAccelerationStructuresPropertiesKHR(params) => {
                for structure in params.p_acceleration_structures() {
                    self.host_structure(*structure, HostAccessKind::Reads, out);
                }
            }
            _ => return self.track_host_micromaps(tracked.call, out),
        }
        true
    }

    fn track_host_micromaps(&mut self, call: &Call<'_>, out: &mut TrackerOutput<'_>) -> bool {
        match call {
            Call::BuildMicromapsEXT(params) => {
                out.report_untracked(HOST_MEMORY);
                params.p_infos().iter().for_each(|it| self.host_micromap(it.dst_micromap, HostAccessKind::Writes, out));
            }
            Call::CopyMicromapEXT(params) => {
                let Some(info) = params.p_info() else { return true };
                self.host_micromap(info.src, HostAccessKind::Reads, out);
                self.host_micromap(info.dst, HostAccessKind::Writes, out);
            }
            Call::CopyMicromapToMemoryEXT(params) => {
                out.report_untracked(HOST_MEMORY);
                let src = params.p_info().map(|it| it.src);
                src.into_iter().for_each(|it| self.host_micromap(it, HostAccessKind::Reads, out));
            }
            Call::CopyMemoryToMicromapEXT(params) => {
                out.report_untracked(HOST_MEMORY);
                let dst = params.p_info().map(|it| it.dst);
                dst.into_iter().for_each(|it| self.host_micromap(it, HostAccessKind::Writes, out));
            }
            Call::WriteMicromapsPropertiesEXT(params) => {
                params.p_micromaps().iter().for_each(|it| self.host_micromap(*it, HostAccessKind::Reads, out));
            }
            _ => return false,
        }
        true
    }

    fn host_structure(&self, handle: vk::AccelerationStructureKHR, host: HostAccessKind, out: &mut TrackerOutput<'_>) {
        match self.structures.get(handle.0) {
            Some(acceleration_structure) => {
                let region = Region::Buffer(acceleration_structure.bytes.clone());
                out.host_access(
                    acceleration_structure.resource,
                    region,
                    host == HostAccessKind::Writes,
                    Certainty::Certain,
                );
            }
            None => out.report_untracked("an acceleration structure that nobody created"),
        }
    }

    fn host_micromap(&self, handle: vk::MicromapEXT, host: HostAccessKind, out: &mut TrackerOutput<'_>) {
        match self.micromaps.get(handle.0) {
            Some((resource, bytes)) => {
                let region = Region::Buffer(bytes.clone());
                out.host_access(*resource, region, host == HostAccessKind::Writes, Certainty::Certain);
            }
            None => out.report_untracked("a micromap that nobody created"),
        }
    }
}
