//! Acceleration structures and micromaps that the host builds and copies itself.
//!
//! They lie in buffers, and the host reads and writes these. What it names by addresses of its own is in no record.

use lavascope_abi as vk;
use lavascope_record::Call;
use lavascope_sync_ir::{Certainty, Region};

use crate::device::{Device, Event};
use crate::listener::Out;

const HOST_MEMORY: &str = "memory that the host names by an address of its own";

#[derive(Clone, Copy, PartialEq, Eq)]
enum Host {
    Reads,
    Writes,
}

impl Device {
    pub(crate) fn host_builds(&mut self, event: Event<'_>, out: &mut Out<'_>) -> bool {
        match event.call {
            Call::BuildAccelerationStructuresKHR(it) => {
                out.missing(HOST_MEMORY);
                for info in it.p_infos().iter() {
                    if info.mode == vk::BuildAccelerationStructureModeKHR::UPDATE_KHR {
                        self.host_structure(info.src_acceleration_structure, Host::Reads, out);
                    }
                    self.host_structure(info.dst_acceleration_structure, Host::Writes, out);
                }
            }
            Call::CopyAccelerationStructureKHR(it) => {
                let Some(info) = it.p_info() else { return true };
                self.host_structure(info.src, Host::Reads, out);
                self.host_structure(info.dst, Host::Writes, out);
            }
            Call::CopyAccelerationStructureToMemoryKHR(it) => {
                out.missing(HOST_MEMORY);
                let src = it.p_info().map(|it| it.src);
                src.into_iter().for_each(|it| self.host_structure(it, Host::Reads, out));
            }
            Call::CopyMemoryToAccelerationStructureKHR(it) => {
                out.missing(HOST_MEMORY);
                let dst = it.p_info().map(|it| it.dst);
                dst.into_iter().for_each(|it| self.host_structure(it, Host::Writes, out));
            }
            Call::WriteAccelerationStructuresPropertiesKHR(it) => {
                for structure in it.p_acceleration_structures() {
                    self.host_structure(*structure, Host::Reads, out);
                }
            }
            _ => return self.host_micromaps(event.call, out),
        }
        true
    }

    fn host_micromaps(&mut self, call: &Call<'_>, out: &mut Out<'_>) -> bool {
        match call {
            Call::BuildMicromapsEXT(it) => {
                out.missing(HOST_MEMORY);
                it.p_infos().iter().for_each(|it| self.host_micromap(it.dst_micromap, Host::Writes, out));
            }
            Call::CopyMicromapEXT(it) => {
                let Some(info) = it.p_info() else { return true };
                self.host_micromap(info.src, Host::Reads, out);
                self.host_micromap(info.dst, Host::Writes, out);
            }
            Call::CopyMicromapToMemoryEXT(it) => {
                out.missing(HOST_MEMORY);
                let src = it.p_info().map(|it| it.src);
                src.into_iter().for_each(|it| self.host_micromap(it, Host::Reads, out));
            }
            Call::CopyMemoryToMicromapEXT(it) => {
                out.missing(HOST_MEMORY);
                let dst = it.p_info().map(|it| it.dst);
                dst.into_iter().for_each(|it| self.host_micromap(it, Host::Writes, out));
            }
            Call::WriteMicromapsPropertiesEXT(it) => {
                it.p_micromaps().iter().for_each(|it| self.host_micromap(*it, Host::Reads, out));
            }
            _ => return false,
        }
        true
    }

    fn host_structure(&self, handle: vk::AccelerationStructureKHR, host: Host, out: &mut Out<'_>) {
        match self.structures.get(handle.0) {
            Some(it) => {
                let region = Region::Buffer(it.bytes.clone());
                out.host_access(it.resource, region, host == Host::Writes, Certainty::Certain);
            }
            None => out.missing("an acceleration structure that nobody created"),
        }
    }

    fn host_micromap(&self, handle: vk::MicromapEXT, host: Host, out: &mut Out<'_>) {
        match self.micromaps.get(handle.0) {
            Some((resource, bytes)) => {
                let region = Region::Buffer(bytes.clone());
                out.host_access(*resource, region, host == Host::Writes, Certainty::Certain);
            }
            None => out.missing("a micromap that nobody created"),
        }
    }
}
