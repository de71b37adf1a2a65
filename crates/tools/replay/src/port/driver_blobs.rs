//! Bytes of the driver's own that a program puts into memory: handles of shader groups, and descriptors.
//!
//! The trace has the bytes that its driver returned, and the driver here returns others. If host writes contain the
//! bytes of the trace, the bytes of this driver replace them.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{PoisonError, RwLock};

use lavascope_abi as vk;
use lavascope_abi::Structure;
use lavascope_record::{Call, Outcome};
use rustc_hash::FxHashMap;

use crate::call::functions::driver;
use crate::call::perform::{Performer, RecordedCall};
use crate::error::ReplayError;
use crate::port::device::{DeviceMapping, ReplayDevice};
use crate::port::instance::out;

/// The alignment of such bytes, and the size of the key for look-ups.
const STEP: usize = 4;
const KEY: usize = 8;

/// Bytes of the trace, and those of here.
type BlobPair = (Box<[u8]>, Box<[u8]>);

/// All that the driver gave.
#[derive(Default)]
pub(crate) struct DriverBlobs {
    needs_remap: AtomicBool,
    longest: AtomicUsize,
    /// By the first eight bytes.
    all: RwLock<FxHashMap<[u8; KEY], Vec<BlobPair>>>,
}

impl DriverBlobs {
    /// Whether there are any that are others here.
    pub(crate) fn needs_remap(&self) -> bool {
        self.needs_remap.load(Ordering::Relaxed)
    }

    /// The bytes that the driver returned in the trace, and the bytes that it returns here; the newest entry counts.
    pub(crate) fn insert(&self, there: &[u8], here: &[u8]) {
        let Some(key) = there.first_chunk::<KEY>().filter(|_| there.len() == here.len()) else { return };
        let mut all = self.all.write().unwrap_or_else(PoisonError::into_inner);
        let known = all.entry(*key).or_default();
        known.retain(|it| *it.0 != *there);
        if there == here {
            return;
        }
        // The longest comes first: a shorter one may be its beginning.
        let at = known.iter().position(|it| it.0.len() < there.len()).unwrap_or(known.len());
        known.insert(at, (there.into(), here.into()));
        self.longest.fetch_max(there.len(), Ordering::Relaxed);
        self.needs_remap.store(true, Ordering::Relaxed);
    }

    /// Calls `act` for each entry in `bytes` that overlaps `part`, with its offset and the bytes of this driver.
    /// `bytes` must begin aligned.
    pub(crate) fn for_each_in(&self, bytes: &[u8], part: std::ops::Range<usize>, mut act: impl FnMut(usize, &[u8])) {
        let longest = self.longest.load(Ordering::Relaxed);
        let first = part.start.saturating_sub(longest).next_multiple_of(STEP);
        let all = self.all.read().unwrap_or_else(PoisonError::into_inner);
        let mut at = first;
        while at < part.end {
            let Some(rest) = bytes.get(at..) else { return };
            let mut known = rest.first_chunk::<KEY>().and_then(|it| all.get(it)).into_iter().flatten();
            let size = match known.find(|it| rest.starts_with(&it.0)) {
                Some((there, here)) => {
                    if at + there.len() > part.start {
                        act(at, here);
                    }
                    there.len()
                }
                None => STEP,
            };
            at = (at + size).next_multiple_of(STEP);
        }
    }

    /// Whether a byte is part of something that is another one here.
    pub(crate) fn covers_byte(&self, bytes: &[u8], at: usize) -> bool {
        let mut is_part = false;
        self.for_each_in(bytes, at..at + 1, |first, here| is_part |= (first..first + here.len()).contains(&at));
        is_part
    }
}

/// Handles of shader groups: of the same size everywhere.
pub(crate) fn shader_group_handles(
    performer: &mut Performer<'_>,
    recorded_call: &RecordedCall<'_>,
) -> Result<(), ReplayError> {
    let (Some(Call::GetRayTracingShaderGroupHandlesKHR(call)), Some(outcome)) = (
        Call::of(recorded_call.enter),
        recorded_call.leave.filter(|_| !recorded_call.has_failed()).and_then(Outcome::of),
    ) else {
        return Ok(());
    };
    let Outcome::GetRayTracingShaderGroupHandlesKHR(outcome) = outcome else { return Ok(()) };
    let there = outcome.p_data();
    let size = there.len() / (call.group_count as usize).max(1);
    let unpacked = performer.unpack(recorded_call)?;
    let result = performer.call(recorded_call, unpacked)?;
    performer.finish_call(recorded_call, unpacked, result)?;
    // SAFETY: `UnpackedCall::image` holds the parameters of this command; `unpack` made as many bytes for its output as the
    // trace has, and nobody writes them until the next `unpack`.
    let here = unsafe {
        let image = &*unpacked.image.cast::<vk::GetRayTracingShaderGroupHandlesKHRParams>();
        bytes_at(image.p_data.0, there.len())
    };
    for (there, here) in there.chunks_exact(size.max(1)).zip(here.chunks_exact(size.max(1))) {
        performer.replay.addresses.blobs.insert(there, here);
    }
    Ok(())
}

/// Why a descriptor cannot be put where the trace has it.
///
/// The program queried sizes and offsets, and computed from them the place of each descriptor, the sizes of its buffers
/// and its bindings. The trace has the results, but not the computation, so nothing can be moved.
pub(crate) const DESCRIPTOR_SIZE_DIFFERS: &str = "descriptors of this type have another size on this device";

/// Whether a descriptor that the trace asks for has another size here.
pub(crate) fn descriptor_size_differs(
    performer: &Performer<'_>,
    recorded_call: &RecordedCall<'_>,
) -> Result<bool, ReplayError> {
    let (Some(Call::GetDescriptorEXT(call)), Some(Outcome::GetDescriptorEXT(outcome))) =
        (Call::of(recorded_call.enter), recorded_call.leave.and_then(Outcome::of))
    else {
        return Ok(false);
    };
    let ty = call.p_descriptor_info().map_or(vk::DescriptorType(0), |it| it.type_);
    Ok(!has_size(&*performer.device(recorded_call)?, ty, outcome.p_descriptor().len() as u64))
}

/// A descriptor for a descriptor buffer.
pub(crate) fn descriptor(performer: &mut Performer<'_>, recorded_call: &RecordedCall<'_>) -> Result<(), ReplayError> {
    let Some(Outcome::GetDescriptorEXT(outcome)) = recorded_call.leave.and_then(Outcome::of) else { return Ok(()) };
    let there = outcome.p_descriptor();
    if descriptor_size_differs(performer, recorded_call)? {
        return Err(performer.error(recorded_call, DESCRIPTOR_SIZE_DIFFERS));
    }
    let unpacked = performer.unpack(recorded_call)?;
    performer.call(recorded_call, unpacked)?;
    // SAFETY: `UnpackedCall::image` holds the parameters of this command; `unpack` made as many bytes for its output as the
    // trace has, and nobody writes them until the next `unpack`.
    let here = unsafe {
        let image = &*unpacked.image.cast::<vk::GetDescriptorEXTParams>();
        bytes_at(image.p_descriptor.0, there.len())
    };
    performer.replay.addresses.blobs.insert(there, here);
    Ok(())
}

/// Offsets of descriptors in a descriptor buffer: they may differ on another device, and the replay cannot move
/// descriptors.
pub(crate) fn descriptor_layout(
    performer: &mut Performer<'_>,
    recorded_call: &RecordedCall<'_>,
) -> Result<(), ReplayError> {
    let there = match recorded_call.leave.and_then(Outcome::of) {
        Some(Outcome::GetDescriptorSetLayoutSizeEXT(outputs)) => outputs.p_layout_size_in_bytes().copied(),
        Some(Outcome::GetDescriptorSetLayoutBindingOffsetEXT(outputs)) => outputs.p_offset().copied(),
        _ => None,
    };
    let Some(there) = there.filter(|_| performer.device(recorded_call).is_ok_and(|it| it.is_other_device)) else {
        return Ok(());
    };
    let unpacked = performer.unpack(recorded_call)?;
    performer.call(recorded_call, unpacked)?;
    // SAFETY: `UnpackedCall::image` holds the parameters of this command, whose output `unpack` made; `required` refuses null.
    let here = unsafe {
        match recorded_call.command() {
            vk::Command::GetDescriptorSetLayoutSizeEXT => {
                let image = &*unpacked.image.cast::<vk::GetDescriptorSetLayoutSizeEXTParams>();
                performer.required(recorded_call, image.p_layout_size_in_bytes)?.read()
            }
            _ => {
                let image = &*unpacked.image.cast::<vk::GetDescriptorSetLayoutBindingOffsetEXTParams>();
                performer.required(recorded_call, image.p_offset)?.read()
            }
        }
    };
    match here == there {
        true => Ok(()),
        false => Err(performer
            .error(recorded_call, format!("descriptors have other offsets on this device: {here} instead of {there}"))),
    }
}

/// # Safety
///
/// `address` must be null, or lead to `size` initialized bytes that nobody changes or frees in `'a`.
unsafe fn bytes_at<'a>(address: u64, size: usize) -> &'a [u8] {
    match address {
        0 => &[],
        // SAFETY: `size` bytes are there for `'a`, by the contract of this function.
        address => unsafe { std::slice::from_raw_parts(std::ptr::with_exposed_provenance(address as usize), size) },
    }
}

/// Whether descriptors of a type have the same size here. Descriptors of robust buffer access may be larger.
fn has_size(device: &ReplayDevice, ty: vk::DescriptorType, size: u64) -> bool {
    let own = device.descriptors.get_or_init(|| descriptors(&device.mapping));
    let Some(own) = own else { return !device.is_other_device };
    let sizes = match ty {
        vk::DescriptorType::SAMPLER => [own.sampler_descriptor_size; 2],
        // Descriptors for fragment density maps have another size.
        vk::DescriptorType::COMBINED_IMAGE_SAMPLER if !device.is_other_device => return true,
        vk::DescriptorType::COMBINED_IMAGE_SAMPLER => [own.combined_image_sampler_descriptor_size; 2],
        vk::DescriptorType::SAMPLED_IMAGE => [own.sampled_image_descriptor_size; 2],
        vk::DescriptorType::STORAGE_IMAGE => [own.storage_image_descriptor_size; 2],
        vk::DescriptorType::UNIFORM_TEXEL_BUFFER => {
            [own.uniform_texel_buffer_descriptor_size, own.robust_uniform_texel_buffer_descriptor_size]
        }
        vk::DescriptorType::STORAGE_TEXEL_BUFFER => {
            [own.storage_texel_buffer_descriptor_size, own.robust_storage_texel_buffer_descriptor_size]
        }
        vk::DescriptorType::UNIFORM_BUFFER => {
            [own.uniform_buffer_descriptor_size, own.robust_uniform_buffer_descriptor_size]
        }
        vk::DescriptorType::STORAGE_BUFFER => {
            [own.storage_buffer_descriptor_size, own.robust_storage_buffer_descriptor_size]
        }
        vk::DescriptorType::INPUT_ATTACHMENT => [own.input_attachment_descriptor_size; 2],
        vk::DescriptorType::ACCELERATION_STRUCTURE_KHR => [own.acceleration_structure_descriptor_size; 2],
        _ => return !device.is_other_device,
    };
    sizes.contains(&size)
}

/// The descriptor properties of a device.
fn descriptors(about: &DeviceMapping) -> Option<vk::PhysicalDeviceDescriptorBufferPropertiesEXT> {
    let mut own = vk::PhysicalDeviceDescriptorBufferPropertiesEXT::zeroed();
    let mut all =
        vk::PhysicalDeviceProperties2 { p_next: out(&mut own).cast(), ..vk::PhysicalDeviceProperties2::zeroed() };
    driver!(
        about.functions,
        GetPhysicalDeviceProperties2,
        FnGetPhysicalDeviceProperties2(about.physical, out(&mut all))
    )?;
    Some(own)
}

/// Clears the flags that request fixed addresses, if these cannot be those of the trace: the replay replaces addresses instead.
///
/// # Safety
///
/// `info` must lead to a structure with a valid chain, all of it writable and referred to by nobody else.
pub(crate) unsafe fn remove_capture_address(info: *mut vk::BufferCreateInfo) {
    // SAFETY: the structure and its chain are valid, writable and ours, by the contract of this function.
    unsafe {
        (*info).flags.0 &= !vk::BufferCreateFlags::DEVICE_ADDRESS_CAPTURE_REPLAY.0;
        let gone = vk::BufferOpaqueCaptureAddressCreateInfo::layout().s_type();
        crate::call::chain::retain(info, |it| Some(it) != gone);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes of a memory after handles in it are replaced.
    fn patched(blobs: &DriverBlobs, bytes: &[u8], part: std::ops::Range<usize>) -> Vec<u8> {
        let mut all = bytes.to_vec();
        blobs.for_each_in(bytes, part, |at, here| all[at..at + here.len()].copy_from_slice(here));
        all
    }

    #[test]
    fn handles_are_put_wherever_the_host_wrote_those_of_the_trace() {
        let blobs = DriverBlobs::default();
        let handle = |first: u8| -> Vec<u8> { (0..32).map(|it| first + it).collect() };
        blobs.insert(&handle(1), &handle(1));
        assert!(!blobs.needs_remap());
        blobs.insert(&handle(1), &handle(101));
        blobs.insert(&handle(50), &handle(150));
        let mut table = vec![0; 192];
        table[64..96].copy_from_slice(&handle(1));
        table[132..164].copy_from_slice(&handle(50));
        let whole = patched(&blobs, &table, 0..192);
        assert_eq!((&whole[64..96], &whole[132..164]), (&handle(101)[..], &handle(150)[..]));
        // Only handles that overlap the last write, even if only their end does.
        let part = patched(&blobs, &table, 90..100);
        assert_eq!((&part[64..96], &part[132..164]), (&handle(101)[..], &handle(50)[..]));
        assert!(blobs.covers_byte(&table, 64) && blobs.covers_byte(&table, 95));
        assert!(!blobs.covers_byte(&table, 63) && !blobs.covers_byte(&table, 96));
    }

    #[test]
    fn what_was_given_last_counts_and_the_longest_of_equal_beginnings() {
        let blobs = DriverBlobs::default();
        let there = [7; 24];
        blobs.insert(&there[..16], &[8; 16]);
        blobs.insert(&there, &[9; 24]);
        assert_eq!(patched(&blobs, &there, 0..24)[..24], [9; 24]);
        blobs.insert(&there, &there);
        assert_eq!(patched(&blobs, &there[..16], 0..16), [8; 16]);
        // Half a handle is none, and no handle is shorter than eight bytes.
        assert_eq!(patched(&blobs, &there[..12], 0..12), there[..12]);
        blobs.insert(&[1; 4], &[2; 4]);
        assert_eq!(patched(&blobs, &[1; 4], 0..4), [1; 4]);
    }
}
