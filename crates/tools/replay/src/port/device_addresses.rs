//! Device addresses: buffers and acceleration structures lie elsewhere here.
//!
//! Where a command has an address, it is known to be one. In push constants and in memory it is a number among others:
//! one that is aligned as an address and lies in a buffer whose address the program asked for is taken for an address.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError, RwLock};

use lavascope_abi as vk;
use lavascope_abi::ObjectId;
use lavascope_record::{Call, Outcome};
use rustc_hash::FxHashMap;

use crate::call::perform::{Performer, RecordedCall};
use crate::error::ReplayError;
use crate::port::driver_blobs;
use crate::port::driver_blobs::DriverBlobs;
use crate::replay::lock;

/// Bytes of an address, and what it is aligned to.
const ADDRESS: usize = 8;

/// Where things are here that lay elsewhere in the trace.
#[derive(Default)]
pub(crate) struct DeviceAddressMap {
    needs_remap: AtomicBool,
    /// By the first address in the trace: the end there, and the first here.
    ranges: RwLock<BTreeMap<u64, (u64, u64)>>,
    /// Bytes of the driver's own, which programs put into memory beside addresses.
    pub(crate) blobs: DriverBlobs,
    /// Bytes of buffers and acceleration structures that have addresses.
    sizes: Mutex<FxHashMap<ObjectId, u64>>,
}

impl DeviceAddressMap {
    /// Bytes of a buffer or acceleration structure.
    pub(crate) fn size_of(&self, id: ObjectId) -> Option<u64> {
        lock(&self.sizes).get(&id).copied()
    }

    /// Whether there are any, and they are others here.
    pub(crate) fn needs_remap(&self) -> bool {
        self.needs_remap.load(Ordering::Relaxed)
    }

    fn insert(&self, recorded: u64, size: u64, here: u64) {
        if recorded == 0 {
            return;
        }
        let mut ranges = self.ranges.write().unwrap_or_else(PoisonError::into_inner);
        let end = recorded.saturating_add(size.max(1));
        // Older entries for the same addresses are removed. The others do not overlap, so the nearest are enough.
        while let Some((first, _)) = ranges.range(..end).next_back().filter(|it| recorded < it.1.0) {
            let first = *first;
            ranges.remove(&first);
        }
        ranges.insert(recorded, (end, here));
        if recorded != here {
            self.needs_remap.store(true, Ordering::Relaxed);
        }
    }

    /// An address here for one of the trace, if anything lies there.
    pub(crate) fn remap(&self, recorded: u64) -> Option<u64> {
        let ranges = self.ranges.read().unwrap_or_else(PoisonError::into_inner);
        let (first, (end, here)) = ranges.range(..=recorded).next_back()?;
        (recorded < *end).then(|| here + (recorded - first))
    }

    /// Replaces addresses by those of this device, in bytes whose first alignment is `first`.
    pub(crate) fn patch(&self, first: u64, bytes: &mut [u8]) {
        if self.blobs.needs_remap() {
            let (there, size) = (bytes.to_vec(), bytes.len());
            self.blobs.for_each_in(&there, 0..size, |at, here| bytes[at..at + here.len()].copy_from_slice(here));
        }
        if !self.needs_remap() {
            return;
        }
        let skip = (first.next_multiple_of(ADDRESS as u64) - first) as usize;
        for items in bytes.get_mut(skip..).into_iter().flat_map(|it| it.chunks_exact_mut(ADDRESS)) {
            let recorded = u64::from_le_bytes(std::array::from_fn(|at| items[at]));
            if let Some(here) = self.remap(recorded) {
                items.copy_from_slice(&here.to_le_bytes());
            }
        }
    }
}

/// A buffer or acceleration structure: how large it is.
pub(crate) fn create(performer: &mut Performer<'_>, done: &RecordedCall<'_>) -> Result<(), ReplayError> {
    if done.has_failed() {
        return Ok(());
    }
    let device = performer.device(done)?;
    let laid = performer.unpack(done)?;
    if !device.has_capture_replay {
        match done.command() {
            vk::Command::CreateBuffer => {
                // SAFETY: `UnpackedCall::image` holds the parameters of this command.
                let info = unsafe { (*laid.image.cast::<vk::CreateBufferParams>()).p_create_info };
                // SAFETY: `UnpackedCall`: the structure and its chain lie in the arena, and nobody else refers to them.
                unsafe { driver_blobs::remove_capture_address(performer.required(done, info)?) };
            }
            _ => {
                // SAFETY: `UnpackedCall::image` holds the parameters of this command.
                let info = unsafe { (*laid.image.cast::<vk::CreateAccelerationStructureKHRParams>()).p_create_info };
                // SAFETY: `UnpackedCall`: the structure lies in the arena, and nobody else refers to it.
                let info = unsafe { &mut *performer.required(done, info)? };
                let flag = vk::AccelerationStructureCreateFlagBitsKHR::DEVICE_ADDRESS_CAPTURE_REPLAY_KHR;
                info.create_flags.0 &= !flag.0;
                info.device_address = 0;
            }
        }
    }
    let result = performer.call(done, laid)?;
    performer.finish_call(done, laid, result)?;
    let Some(outcome) = done.leave.and_then(Outcome::of).filter(|_| !done.has_failed()) else { return Ok(()) };
    let made = match (Call::of(done.enter), outcome) {
        (Some(Call::CreateBuffer(call)), Outcome::CreateBuffer(outcome)) => {
            let size = call.p_create_info().map(|it| it.size);
            size.zip(outcome.p_buffer().map(|it| it.0))
        }
        (Some(Call::CreateAccelerationStructureKHR(call)), Outcome::CreateAccelerationStructureKHR(outcome)) => {
            let size = call.p_create_info().map(|it| it.size);
            size.zip(outcome.p_acceleration_structure().map(|it| it.0))
        }
        _ => None,
    };
    if let Some((size, id)) = made.and_then(|it| Some((it.0, ObjectId::from_raw(it.1)?))) {
        lock(&performer.replay.addresses.sizes).insert(id, size);
    }
    Ok(())
}

/// Queries the address here; the trace has the recorded one.
pub(crate) fn query_address(performer: &mut Performer<'_>, done: &RecordedCall<'_>) -> Result<(), ReplayError> {
    let (recorded, subject) = match (Call::of(done.enter), done.leave.and_then(Outcome::of)) {
        (Some(Call::GetBufferDeviceAddress(call)), Some(Outcome::GetBufferDeviceAddress(outcome))) => {
            (outcome.result, call.p_info().map(|it| it.buffer.0))
        }
        (
            Some(Call::GetAccelerationStructureDeviceAddressKHR(call)),
            Some(Outcome::GetAccelerationStructureDeviceAddressKHR(outcome)),
        ) => (outcome.result, call.p_info().map(|it| it.acceleration_structure.0)),
        _ => return Ok(()),
    };
    let laid = performer.unpack(done)?;
    let here = performer.call(done, laid)?;
    let id = subject.and_then(ObjectId::from_raw).unwrap_or(ObjectId::NULL);
    let size = lock(&performer.replay.addresses.sizes).get(&id).copied().unwrap_or(1);
    performer.replay.addresses.insert(recorded, size, here);
    Ok(())
}

/// Bytes that shaders get with a command: there may be addresses among them.
pub(crate) fn patch_constants(performer: &mut Performer<'_>, done: &RecordedCall<'_>) -> Result<(), ReplayError> {
    let laid = performer.unpack(done)?;
    let image = laid.image;
    // SAFETY: `UnpackedCall::image` holds the parameters of this command; the structure that one of them leads to is not null.
    let (first, at, size) = unsafe {
        match done.command() {
            vk::Command::CmdPushConstants => {
                let constants_params = &*image.cast::<vk::CmdPushConstantsParams>();
                (u64::from(constants_params.offset), constants_params.p_values.0, constants_params.size as usize)
            }
            vk::Command::CmdPushConstants2 => {
                let info = (*image.cast::<vk::CmdPushConstants2Params>()).p_push_constants_info;
                let constants_info = &*performer.required(done, info)?;
                (u64::from(constants_info.offset), constants_info.p_values.0, constants_info.size as usize)
            }
            vk::Command::CmdUpdateBuffer => {
                let buffer_params = &*image.cast::<vk::CmdUpdateBufferParams>();
                (buffer_params.dst_offset, buffer_params.p_data.0, buffer_params.data_size as usize)
            }
            _ => (0, 0, 0),
        }
    };
    if at != 0 {
        // SAFETY: `UnpackedCall`: the pointer leads to as many bytes as the size beside it says, and nobody else refers to
        // them.
        let bytes = unsafe { std::slice::from_raw_parts_mut(std::ptr::with_exposed_provenance_mut(at as usize), size) };
        performer.replay.addresses.patch(first, bytes);
    }
    let result = performer.call(done, laid)?;
    performer.finish_call(done, laid, result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_of_shader_groups_are_put_into_what_commands_bring_along() {
        let addresses = DeviceAddressMap::default();
        let (there, here): (Vec<u8>, Vec<u8>) = ((1..33).collect(), (101..133).collect());
        addresses.blobs.insert(&there, &here);
        let mut bytes = [&[0; 64][..], &there, &[0; 32]].concat();
        addresses.patch(0, &mut bytes);
        assert_eq!(bytes, [&[0; 64][..], &here, &[0; 32]].concat());
    }

    #[test]
    fn an_address_inside_of_a_buffer_becomes_one_of_here() {
        let addresses = DeviceAddressMap::default();
        addresses.insert(0x1000, 0x100, 0x1000);
        assert!(!addresses.needs_remap());
        addresses.insert(0x2000, 0x100, 0x9000);
        assert_eq!(addresses.remap(0x20ff), Some(0x90ff));
        assert_eq!(addresses.remap(0x2100), None);
        let mut bytes = [0; 28];
        bytes[4..12].copy_from_slice(&0x2010u64.to_le_bytes());
        bytes[12..20].copy_from_slice(&0x3000u64.to_le_bytes());
        addresses.patch(4, &mut bytes);
        assert_eq!(bytes[4..12], 0x9010u64.to_le_bytes());
        assert_eq!(bytes[12..20], 0x3000u64.to_le_bytes());
    }

    #[test]
    fn what_lay_there_before_is_gone() {
        let addresses = DeviceAddressMap::default();
        addresses.insert(0x1000, 0x1000, 0x5000);
        addresses.insert(0x1800, 0x100, 0x9000);
        assert_eq!((addresses.remap(0x1000), addresses.remap(0x1810)), (None, Some(0x9010)));
    }
}
