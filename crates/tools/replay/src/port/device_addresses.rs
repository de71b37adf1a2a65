//! Device addresses: buffers and acceleration structures lie elsewhere here.
//!
//! Where a command has an address, it is known to be one. In constants and in memory it is a number among others: eight
//! bytes at a multiple of four that lie in a buffer whose address the program asked for are taken for an address. Of two
//! that overlap, the one at a multiple of eight counts. Two specialization constants may be the halves of one.

use std::collections::BTreeMap;
use std::ops::Range;
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

/// Bytes of an address.
const ADDRESS: usize = 8;
/// What addresses among other values are aligned to.
const STEP: usize = 4;

/// What a user should know of a trace with device addresses.
pub const REMARK: &str = "the program uses device addresses; the replay replaces them in commands, constants, inline \
     uniform blocks and memory, but not where a program or shader stores or computes them in another form";

/// Whether a command returns a device address.
pub fn is_query(command: vk::Command) -> bool {
    use vk::Command as C;
    matches!(
        command,
        C::GetBufferDeviceAddress | C::GetAccelerationStructureDeviceAddressKHR | C::GetPipelineIndirectDeviceAddressNV
    )
}

/// By the first address in the trace: the end there, and the first here. No two overlap.
type AddressRanges = BTreeMap<u64, (u64, u64)>;

/// Where things are here that lay elsewhere in the trace.
#[derive(Default)]
pub(crate) struct DeviceAddressMap {
    needs_remap: AtomicBool,
    ranges: RwLock<AddressRanges>,
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
        remap_in(&self.ranges.read().unwrap_or_else(PoisonError::into_inner), recorded)
    }

    /// Calls `act` for each address in `bytes` that overlaps `part`, with its offset and the address of this device.
    /// `bytes` must begin at a multiple of eight.
    pub(crate) fn for_each_in(&self, bytes: &[u8], part: Range<usize>, mut act: impl FnMut(usize, u64)) {
        let ranges = self.ranges.read().unwrap_or_else(PoisonError::into_inner);
        let (Some((first, _)), Some((_, (end, _)))) = (ranges.first_key_value(), ranges.last_key_value()) else {
            return;
        };
        let possible = *first..*end;
        let at_offset = |at: usize| {
            let recorded = u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?);
            possible.contains(&recorded).then(|| remap_in(&ranges, recorded)).flatten()
        };
        let begin = (part.start + 1).saturating_sub(ADDRESS).next_multiple_of(STEP);
        for at in (begin..part.end).step_by(STEP) {
            let Some(here) = at_offset(at) else { continue };
            let is_aligned = at.is_multiple_of(ADDRESS);
            if is_aligned || at_offset(at - STEP).is_none() && at_offset(at + STEP).is_none() {
                act(at, here);
            }
        }
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
        // Zeros before the first byte make its alignment that of the copy.
        let before = (first % ADDRESS as u64) as usize;
        let there = [&[0; ADDRESS][..before], bytes].concat();
        self.for_each_in(&there, before..there.len(), |at, here| {
            if let Some(at) = at.checked_sub(before) {
                bytes[at..at + ADDRESS].copy_from_slice(&here.to_le_bytes());
            }
        });
    }

    /// Replaces addresses in specialization constants: in one of eight bytes, or in two of four bytes, whose numbers or
    /// places follow one another, in either order.
    pub(crate) fn patch_constants(&self, entries: &[vk::SpecializationMapEntry], bytes: &mut [u8]) {
        let there = bytes.to_vec();
        let mut constants = entries.to_vec();
        constants.sort_by_key(|it| it.constant_id);
        let mut is_used = vec![false; constants.len()];
        for entry in constants.iter().filter(|it| it.size == ADDRESS as u64) {
            let place = entry.offset as usize;
            let recorded = there.get(place..).and_then(<[u8]>::first_chunk).map(|it| u64::from_le_bytes(*it));
            if let Some(here) = recorded.and_then(|it| self.remap(it)) {
                bytes[place..place + ADDRESS].copy_from_slice(&here.to_le_bytes());
            }
        }
        let half = |at: usize| {
            let entry = constants.get(at).filter(|it| it.size == STEP as u64)?;
            there.get(entry.offset as usize..)?.first_chunk().map(|it| u32::from_le_bytes(*it))
        };
        let mut pairs: Vec<(usize, usize)> = (1..constants.len()).map(|it| (it - 1, it)).collect();
        let offset = |at: usize| constants[at].offset;
        let mut places: Vec<usize> = (0..constants.len()).collect();
        places.sort_by_key(|it| offset(*it));
        pairs.extend(
            places.windows(2).filter(|it| offset(it[0]) + STEP as u32 == offset(it[1])).map(|it| (it[0], it[1])),
        );
        let swapped: Vec<(usize, usize)> = pairs.iter().map(|it| (it.1, it.0)).collect();
        for (low, high) in pairs.into_iter().chain(swapped).filter(|it| it.0 != it.1) {
            let (Some(first), Some(second)) = (half(low), half(high)) else { continue };
            // Without an upper half, a small number would be taken for an address.
            if is_used[low] || is_used[high] || second == 0 {
                continue;
            }
            let Some(here) = self.remap(u64::from(second) << 32 | u64::from(first)) else { continue };
            (is_used[low], is_used[high]) = (true, true);
            for (at, value) in [(low, here as u32), (high, (here >> 32) as u32)] {
                bytes[offset(at) as usize..][..STEP].copy_from_slice(&value.to_le_bytes());
            }
        }
    }
}

/// An address here for one of the trace.
fn remap_in(ranges: &AddressRanges, recorded: u64) -> Option<u64> {
    let (first, (end, here)) = ranges.range(..=recorded).next_back()?;
    (recorded < *end).then(|| here + (recorded - first))
}

/// A buffer or acceleration structure: how large it is.
pub(crate) fn create(performer: &mut Performer<'_>, recorded_call: &RecordedCall<'_>) -> Result<(), ReplayError> {
    if recorded_call.has_failed() {
        return Ok(());
    }
    let device = performer.device(recorded_call)?;
    let unpacked = performer.unpack(recorded_call)?;
    if !device.has_capture_replay {
        match recorded_call.command() {
            vk::Command::CreateBuffer => {
                // SAFETY: `UnpackedCall::image` holds the parameters of this command.
                let info = unsafe { (*unpacked.image.cast::<vk::CreateBufferParams>()).p_create_info };
                // SAFETY: `UnpackedCall`: the structure and its chain lie in the arena, and nobody else refers to them.
                unsafe { driver_blobs::remove_capture_address(performer.required(recorded_call, info)?) };
            }
            _ => {
                // SAFETY: `UnpackedCall::image` holds the parameters of this command.
                let info =
                    unsafe { (*unpacked.image.cast::<vk::CreateAccelerationStructureKHRParams>()).p_create_info };
                // SAFETY: `UnpackedCall`: the structure lies in the arena, and nobody else refers to it.
                let info = unsafe { &mut *performer.required(recorded_call, info)? };
                let flag = vk::AccelerationStructureCreateFlagBitsKHR::DEVICE_ADDRESS_CAPTURE_REPLAY_KHR;
                info.create_flags.0 &= !flag.0;
                info.device_address = 0;
            }
        }
    }
    let result = performer.call(recorded_call, unpacked)?;
    performer.finish_call(recorded_call, unpacked, result)?;
    let Some(outcome) = recorded_call.leave.and_then(Outcome::of).filter(|_| !recorded_call.has_failed()) else {
        return Ok(());
    };
    let made = match (Call::of(recorded_call.enter), outcome) {
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
pub(crate) fn query_address(
    performer: &mut Performer<'_>,
    recorded_call: &RecordedCall<'_>,
) -> Result<(), ReplayError> {
    let (recorded, subject) = match (Call::of(recorded_call.enter), recorded_call.leave.and_then(Outcome::of)) {
        (Some(Call::GetBufferDeviceAddress(call)), Some(Outcome::GetBufferDeviceAddress(outcome))) => {
            (outcome.result, call.p_info().map(|it| it.buffer.0))
        }
        (
            Some(Call::GetAccelerationStructureDeviceAddressKHR(call)),
            Some(Outcome::GetAccelerationStructureDeviceAddressKHR(outcome)),
        ) => (outcome.result, call.p_info().map(|it| it.acceleration_structure.0)),
        (
            Some(Call::GetPipelineIndirectDeviceAddressNV(call)),
            Some(Outcome::GetPipelineIndirectDeviceAddressNV(outcome)),
        ) => (outcome.result, call.p_info().map(|it| it.pipeline.0)),
        _ => return Ok(()),
    };
    let unpacked = performer.unpack(recorded_call)?;
    let here = performer.call(recorded_call, unpacked)?;
    let id = subject.and_then(ObjectId::from_raw).unwrap_or(ObjectId::NULL);
    let size = lock(&performer.replay.addresses.sizes).get(&id).copied().unwrap_or(1);
    performer.replay.addresses.insert(recorded, size, here);
    Ok(())
}

/// Bytes that shaders get with a command: there may be addresses among them.
pub(crate) fn patch_constants(
    performer: &mut Performer<'_>,
    recorded_call: &RecordedCall<'_>,
) -> Result<(), ReplayError> {
    let unpacked = performer.unpack(recorded_call)?;
    let image = unpacked.image;
    // SAFETY: `UnpackedCall::image` holds the parameters of this command; the structure that one of them leads to is not null.
    let (first, at, size) = unsafe {
        match recorded_call.command() {
            vk::Command::CmdPushConstants => {
                let constants_params = &*image.cast::<vk::CmdPushConstantsParams>();
                (u64::from(constants_params.offset), constants_params.p_values.0, constants_params.size as usize)
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
    let result = performer.call(recorded_call, unpacked)?;
    performer.finish_call(recorded_call, unpacked, result)
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
    fn an_address_at_a_multiple_of_eight_counts_before_one_beside_it() {
        let addresses = DeviceAddressMap::default();
        addresses.insert(0x7f00_0000_2000, 0x1000, 0x5500_0000_9000);
        let found = |bytes: &[u8], part: Range<usize>| {
            let mut all = Vec::new();
            addresses.for_each_in(bytes, part, |at, here| all.push((at, here)));
            all
        };
        let words = |all: &[u32]| all.iter().flat_map(|it| it.to_le_bytes()).collect::<Vec<u8>>();
        let (lo, hi) = (0x2010, 0x7f00);
        assert_eq!(found(&words(&[lo, hi, lo, hi]), 0..16), [(0, 0x5500_0000_9010), (8, 0x5500_0000_9010)]);
        assert_eq!(found(&words(&[7, lo, hi, 7]), 0..16), [(4, 0x5500_0000_9010)]);
        // Only those that overlap the part, even if only their last byte does.
        assert_eq!(found(&words(&[7, lo, hi, 7, lo, hi]), 11..12), [(4, 0x5500_0000_9010)]);
        assert_eq!(found(&words(&[7, lo, hi, 7]), 12..16), []);
    }

    #[test]
    fn two_constants_are_the_halves_of_an_address() {
        let addresses = DeviceAddressMap::default();
        addresses.insert(0x7f00_0000_2000, 0x1000, 0x5500_0000_9000);
        let entry = |(constant_id, offset)| vk::SpecializationMapEntry { constant_id, offset, size: 4 };
        let patched = |places: &[(u32, u32)], words: &[u32]| {
            let mut bytes: Vec<u8> = words.iter().flat_map(|it| it.to_le_bytes()).collect();
            let entries: Vec<_> = places.iter().map(|it| entry(*it)).collect();
            addresses.patch_constants(&entries, &mut bytes);
            bytes.as_chunks::<4>().0.iter().map(|it| u32::from_le_bytes(*it)).collect::<Vec<u32>>()
        };
        // One behind the other, by their numbers only, and the upper half first.
        assert_eq!(patched(&[(0, 0), (1, 4), (2, 8)], &[9, 0x2004, 0x7f00]), [9, 0x9004, 0x5500]);
        assert_eq!(patched(&[(5, 8), (4, 0)], &[0x2004, 9, 0x7f00]), [0x9004, 9, 0x5500]);
        assert_eq!(patched(&[(0, 0), (1, 4)], &[0x7f00, 0x2004]), [0x5500, 0x9004]);
        assert_eq!(patched(&[(0, 0), (7, 4)], &[0x2004, 0x7f01]), [0x2004, 0x7f01]);
    }

    #[test]
    fn what_lay_there_before_is_gone() {
        let addresses = DeviceAddressMap::default();
        addresses.insert(0x1000, 0x1000, 0x5000);
        addresses.insert(0x1800, 0x100, 0x9000);
        assert_eq!((addresses.remap(0x1000), addresses.remap(0x1810)), (None, Some(0x9010)));
    }
}
