//! Memory: other types of memory than where the trace was made, and what the host wrote into it.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use lavascope_abi as vk;
use lavascope_abi::{ObjectId, Structure};
use lavascope_record::Call;
use rustc_hash::FxHashMap;

use crate::call::chain;
use crate::call::functions::driver;
use crate::call::perform::{Performer, RecordedCall};
use crate::error::ReplayError;
use crate::memory::bindings::MemoryBindings;
use crate::memory::linear_images::LinearLayout;
use crate::port::device::ReplayDevice;
use crate::port::device_addresses::DeviceAddressMap;
use crate::port::external_files;
use crate::port::external_files::SharedAllocation;
use crate::port::instance::out;
use crate::replay::lock;

/// Memory here, by its id in the trace.
#[derive(Default)]
pub(crate) struct MemoryTable(Mutex<FxHashMap<ObjectId, Arc<ReplayMemory>>>);

/// A resource of a memory that has memory of its own here.
pub(crate) struct RelocatedResource {
    /// Where it was.
    pub(crate) recorded_offset: u64,
    pub(crate) memory: ReplayMemory,
    pub(crate) layout: RelocatedLayout,
}

/// Where the bytes of a resource are that has memory of its own.
pub(crate) enum RelocatedLayout {
    /// Where they were.
    Same,
    /// Row by row elsewhere.
    Rows(Arc<LinearLayout>),
    /// Only the driver knows.
    Opaque,
}

pub(crate) struct ReplayMemory {
    device: Arc<ReplayDevice>,
    pub(crate) id: ObjectId,
    pub(crate) handle: vk::DeviceMemory,
    pub(crate) size: u64,
    /// The number of its type here.
    pub(crate) ty: u32,
    pub(crate) is_visible: bool,
    is_coherent: bool,
    relocated: Mutex<Vec<RelocatedResource>>,
    /// The address while the memory is mapped: as long as the program had it mapped, so that a layer below sees what it
    /// saw in the program. The lock must be held while the address is used.
    mapped: RwLock<Option<usize>>,
    /// The bytes that the trace has written so far, if the replay compares what the device writes.
    recorded: Option<Mutex<RecordedContents>>,
    /// Whether the trace has what the device wrote.
    has_device_writes: bool,
    /// Which bytes the program had mapped.
    mapped_range: Mutex<Option<Range<u64>>>,
}

/// The bytes of a memory according to the trace.
struct RecordedContents {
    bytes: Vec<u8>,
    /// Which bytes the trace spoke of.
    is_recorded: Vec<bool>,
}

/// Bytes that the device wrote, compared with those of the trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteComparison {
    pub equal: u64,
    pub different: u64,
    pub first_difference: Option<WriteDifference>,
}

/// Bytes that the device wrote other than in the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteDifference {
    pub memory: ObjectId,
    /// The first byte that differs.
    pub offset: u64,
    /// The buffer or image that it belongs to, and the offset of the element from its beginning.
    pub resource: Option<(ObjectId, u64)>,
    /// The element of four bytes that has the byte, in the trace and here.
    pub recorded: u32,
    pub replayed: u32,
}

impl WriteComparison {
    pub(crate) fn add(&mut self, other: WriteComparison) {
        self.equal += other.equal;
        self.different += other.different;
        self.first_difference = self.first_difference.or(other.first_difference);
    }
}

impl MemoryTable {
    pub(crate) fn find(&self, id: ObjectId) -> Option<Arc<ReplayMemory>> {
        lock(&self.0).get(&id).cloned()
    }

    /// Memory that the program did not free is freed with its device.
    pub(crate) fn free_device(&self, owner: u32) {
        lock(&self.0).retain(|_, replay_memory| {
            let stays = replay_memory.device.owner != owner;
            if !stays {
                replay_memory.free_relocated();
                let ReplayDevice { functions, handle, .. } = &*replay_memory.device;
                driver!(functions, FreeMemory, FnFreeMemory(*handle, replay_memory.handle, vk::Ptr::NULL));
            }
            stays
        });
    }

    /// By its handle here.
    pub(crate) fn find_by_handle(&self, handle: vk::DeviceMemory) -> Option<Arc<ReplayMemory>> {
        lock(&self.0).values().find(|it| it.handle == handle).cloned()
    }
}

/// Memory as this driver gave it.
pub(crate) struct Allocation {
    pub(crate) handle: vk::DeviceMemory,
    pub(crate) size: u64,
    /// The index of its memory type.
    pub(crate) ty: u32,
}

impl ReplayMemory {
    pub(crate) fn new(
        device: Arc<ReplayDevice>,
        id: ObjectId,
        allocation: Allocation,
        (is_known, has_results): (bool, bool),
    ) -> ReplayMemory {
        let Allocation { handle, size, ty } = allocation;
        let flags = device.memory.memory_types.get(ty as usize).map_or(0, |it| it.property_flags.0);
        let is_visible = flags & vk::MemoryPropertyFlags::HOST_VISIBLE.0 != 0;
        ReplayMemory {
            device,
            id,
            handle,
            size,
            ty,
            is_visible,
            is_coherent: flags & vk::MemoryPropertyFlags::HOST_COHERENT.0 != 0,
            relocated: Mutex::default(),
            mapped: RwLock::default(),
            recorded: (is_known && is_visible).then(|| {
                Mutex::new(RecordedContents { bytes: vec![0; size as usize], is_recorded: vec![false; size as usize] })
            }),
            has_device_writes: has_results,
            mapped_range: Mutex::default(),
        }
    }

    pub(crate) fn device(&self) -> &ReplayDevice {
        &self.device
    }

    /// Whether the trace has bytes that are not here yet, and that the device may be about to write: a capture of
    /// results also records what the device writes while the program runs.
    pub(crate) fn may_be_device_write(&self, offset: u64, bytes: &[u8]) -> bool {
        let Some(known) = self.recorded.as_ref().filter(|_| self.has_device_writes) else { return false };
        if offset.checked_add(bytes.len() as u64).is_none_or(|it| it > self.size) {
            return false;
        }
        let Ok(live) = self.current_bytes(offset, bytes.len()) else { return false };
        let known = lock(known);
        let old = &known.bytes[offset as usize..offset as usize + bytes.len()];
        live.iter().zip(old).zip(bytes).any(|((live, old), new)| live == old && old != new)
    }

    pub(crate) fn add_relocated(&self, relocated_resource: RelocatedResource) {
        lock(&self.relocated).push(relocated_resource);
    }

    /// Calls `act` with each part that lies elsewhere, and which bytes of the range it is.
    fn for_each_relocated(&self, offset: u64, size: usize, mut act: impl FnMut(&ReplayMemory, u64, Range<usize>)) {
        let end = offset + size as u64;
        for relocated_resource in lock(&self.relocated).iter().filter(|it| it.memory.is_visible) {
            let place = |at: u64| (relocated_resource.recorded_offset + at - offset) as usize;
            match &relocated_resource.layout {
                RelocatedLayout::Same => {
                    let (first, last) = (
                        relocated_resource.recorded_offset.max(offset),
                        (relocated_resource.recorded_offset + relocated_resource.memory.size).min(end),
                    );
                    if first < last {
                        act(
                            &relocated_resource.memory,
                            first - relocated_resource.recorded_offset,
                            (first - offset) as usize..(last - offset) as usize,
                        );
                    }
                }
                RelocatedLayout::Rows(pitches) if end > relocated_resource.recorded_offset => {
                    for piece in pitches.row_mappings(
                        &(offset.saturating_sub(relocated_resource.recorded_offset)
                            ..end - relocated_resource.recorded_offset),
                    ) {
                        if piece.replay_offset + piece.size <= relocated_resource.memory.size {
                            act(
                                &relocated_resource.memory,
                                piece.replay_offset,
                                place(piece.recorded_offset)..place(piece.recorded_offset + piece.size),
                            );
                        }
                    }
                }
                RelocatedLayout::Rows(_) | RelocatedLayout::Opaque => {}
            }
        }
    }

    fn free_relocated(&self) {
        for relocated_resource in lock(&self.relocated).drain(..) {
            let ReplayDevice { functions, handle, .. } = &*self.device;
            driver!(functions, FreeMemory, FnFreeMemory(*handle, relocated_resource.memory.handle, vk::Ptr::NULL));
        }
    }

    /// Counts the bytes that the device wrote as in the trace. Nothing is written: these are the device's own.
    pub(crate) fn compare_written(&self, offset: u64, bytes: &[u8]) -> Result<WriteComparison, String> {
        let end = offset.checked_add(bytes.len() as u64).filter(|it| *it <= self.size);
        end.ok_or_else(|| format!("{} bytes at {offset} do not fit into {} bytes", bytes.len(), self.size))?;
        let mut results = WriteComparison::default();
        if let Some(known) = &self.recorded {
            let live = self.current_bytes(offset, bytes.len())?;
            let mut known = lock(known);
            let range = offset as usize..offset as usize + bytes.len();
            let old = &mut known.bytes[range.clone()];
            let all = live.iter().zip(old.iter()).zip(bytes);
            results.equal = all.filter(|((live, old), new)| live == new && old != new).count() as u64;
            old.copy_from_slice(bytes);
            known.is_recorded[range].fill(true);
        }
        Ok(results)
    }

    /// Puts what the host wrote where it belongs.
    ///
    /// A capture does not always know who wrote a byte. The replay does: a byte that differs from the last value in the
    /// trace was written by the device. If the trace has everything that the device wrote, such a byte stays: the
    /// capture may have read it while the device was writing.
    pub(crate) fn write(
        &self,
        offset: u64,
        bytes: &[u8],
        about: (&DeviceAddressMap, &MemoryBindings),
    ) -> Result<WriteComparison, String> {
        let (addresses, bindings) = about;
        let end = offset.checked_add(bytes.len() as u64).filter(|it| *it <= self.size);
        end.ok_or_else(|| format!("{} bytes at {offset} do not fit into {} bytes", bytes.len(), self.size))?;
        let mut results = WriteComparison::default();
        let opaque = bindings.opaque_bytes(self.id, offset..offset + bytes.len() as u64);
        match &self.recorded {
            None => self.put_unmasked(offset, bytes, &opaque.unwrap_or_default())?,
            Some(known) => {
                let live = self.current_bytes(offset, bytes.len())?;
                let mut kept = opaque.unwrap_or_else(|| vec![false; bytes.len()]);
                let mut known = lock(known);
                let range = offset as usize..offset as usize + bytes.len();
                // These differ from the trace although the host wrote them.
                let remapped = remapped_values(&known.bytes, &range, addresses);
                let old = &mut known.bytes[range.clone()];
                for (at, (((live, old), new), kept)) in live.iter().zip(old).zip(bytes).zip(&mut kept).enumerate() {
                    let is_remapped = || remapped.iter().any(|it| it.contains(&(range.start + at)));
                    results.equal += u64::from(live == new && old != new);
                    *kept |= self.has_device_writes && live != old && !is_remapped();
                    *old = *new;
                }
                known.is_recorded[range.clone()].fill(true);
                let rest = rest_of_values(&known.bytes, &remapped, &range);
                drop(known);
                // What was an address is perhaps none any more, so the rest of it must be that of the trace.
                for (at, recorded) in rest {
                    self.put(at as u64, &recorded)?;
                }
                // Unchanged bytes must not be written, not even with the same value: the device may be about to change
                // them.
                self.put_unmasked(offset, bytes, &kept)?;
            }
        }
        if addresses.needs_remap() || addresses.blobs.needs_remap() {
            self.patch_addresses(offset, bytes.len(), addresses);
        }
        Ok(results)
    }

    /// Compares a range that the host has finished with: its bytes should be those of the trace.
    pub(crate) fn compare(
        &self,
        range: Range<u64>,
        (addresses, bindings): (&DeviceAddressMap, &MemoryBindings),
    ) -> Result<WriteComparison, String> {
        let mut results = WriteComparison::default();
        let (Some(known), true) = (&self.recorded, self.has_device_writes && self.is_visible) else {
            return Ok(results);
        };
        let (first, end) = (range.start.min(self.size), range.end.min(self.size));
        let live = self.current_bytes(first, (end - first) as usize)?;
        let opaque = bindings.opaque_bytes(self.id, first..end);
        let is_opaque = |at: usize| opaque.as_ref().is_some_and(|it| it[at]);
        let known = lock(known);
        let range = first as usize..end as usize;
        let all = live.iter().zip(&known.bytes[range.clone()]).zip(&known.is_recorded[range]).enumerate();
        for (at, ((live_byte, known_byte), is_recorded)) in all {
            let place = first + at as u64;
            if live_byte != known_byte
                && *is_recorded
                && !is_opaque(at)
                && !is_remapped_byte(&known.bytes, place as usize, addresses)
            {
                results.different += 1;
                if results.first_difference.is_none() {
                    results.first_difference = Some(self.difference(place, (first, &live), &known.bytes, bindings));
                }
            }
        }
        Ok(results)
    }

    /// Describes the difference at a byte. `live` are the bytes here, from a byte on.
    fn difference(
        &self,
        offset: u64,
        (first, live): (u64, &[u8]),
        recorded: &[u8],
        bindings: &MemoryBindings,
    ) -> WriteDifference {
        let resource = bindings.resource_at(self.id, offset);
        let begin = resource.map_or(0, |it| it.1);
        let element = begin + ((offset - begin) & !3);
        // An element at an end may have fewer bytes.
        let word = |bytes: &[u8], base: u64| {
            u32::from_le_bytes(std::array::from_fn(|at| {
                let index = (element + at as u64).checked_sub(base).map(|it| it as usize);
                index.and_then(|it| bytes.get(it)).copied().unwrap_or(0)
            }))
        };
        WriteDifference {
            memory: self.id,
            offset,
            resource: resource.map(|(id, begin)| (id, element - begin)),
            recorded: word(recorded, 0),
            replayed: word(live, first),
        }
    }

    /// The current bytes, wherever they are.
    fn current_bytes(&self, offset: u64, size: usize) -> Result<Vec<u8>, String> {
        let mut bytes = self.with_base(|base| {
            let from = std::ptr::with_exposed_provenance::<u8>(self.address(base, offset, size));
            let mut bytes = vec![0; size];
            // SAFETY: `with_base` keeps the memory mapped whole, and `address` asserts that the bytes lie within. The
            // device may be writing them, so no reference to them is made.
            unsafe { std::ptr::copy_nonoverlapping(from, bytes.as_mut_ptr(), size) };
            bytes
        })?;
        let mut failed = None;
        self.for_each_relocated(offset, size, |memory, own, range| match memory.current_bytes(own, range.len()) {
            Ok(items) => bytes[range].copy_from_slice(&items),
            Err(error) => failed = Some(error),
        });
        failed.map_or(Ok(bytes), Err)
    }

    /// Puts the bytes that are not marked; all where there are no marks.
    fn put_unmasked(&self, offset: u64, bytes: &[u8], kept: &[bool]) -> Result<(), String> {
        if kept.is_empty() {
            return self.put(offset, bytes);
        }
        let mut at = 0;
        for run in kept.chunk_by(|one, other| one == other) {
            if !run[0] {
                self.put(offset + at as u64, &bytes[at..at + run.len()])?;
            }
            at += run.len();
        }
        Ok(())
    }

    fn put(&self, offset: u64, bytes: &[u8]) -> Result<(), String> {
        self.with_base(|base| {
            let to = std::ptr::with_exposed_provenance_mut::<u8>(self.address(base, offset, bytes.len()));
            // SAFETY: `with_base` keeps the memory mapped whole, and `address` asserts that the bytes lie within. No
            // reference of ours leads there: the memory is the driver's.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
        })?;
        let mut failed = None;
        self.for_each_relocated(offset, bytes.len(), |memory, own, range| {
            failed = memory.put(own, &bytes[range]).err().or(failed.take());
            memory.flush();
        });
        failed.map_or(Ok(()), Err)
    }

    /// Puts addresses of here where the trace has its own. Only what changed is written, so the rest of an address is
    /// in what the trace had before.
    fn patch_addresses(&self, offset: u64, size: usize, addresses: &DeviceAddressMap) {
        let Some(known) = &self.recorded else { return };
        let known = lock(known);
        if addresses.needs_remap() {
            addresses.for_each_in(&known.bytes, offset as usize..offset as usize + size, |at, here| {
                // It lies within, and memory that is mapped can be written to.
                let _ = self.put(at as u64, &here.to_le_bytes());
            });
        }
        if addresses.blobs.needs_remap() {
            addresses.blobs.for_each_in(&known.bytes, offset as usize..offset as usize + size, |at, here| {
                let _ = self.put(at as u64, here);
            });
        }
    }

    /// Makes host writes visible to the device.
    pub(crate) fn flush(&self) {
        let mapped = self.mapped.read().unwrap_or_else(PoisonError::into_inner);
        if !self.is_coherent && mapped.is_some() {
            let range =
                vk::MappedMemoryRange { memory: self.handle, size: vk::WHOLE_SIZE, ..vk::MappedMemoryRange::zeroed() };
            driver!(
                self.device.functions,
                FlushMappedMemoryRanges,
                FnFlushMappedMemoryRanges(self.device.handle, 1, vk::Ptr::to(&range))
            );
        }
    }

    /// Where bytes are in a mapping of the whole.
    fn address(&self, base: usize, offset: u64, size: usize) -> usize {
        let is_within = offset.checked_add(size as u64).is_some_and(|it| it <= self.size);
        assert!(is_within, "bytes that the replay reads or writes lie in the memory");
        base + offset as usize
    }

    /// Does something with the memory while it is mapped whole.
    fn with_base<T>(&self, act: impl FnOnce(usize) -> T) -> Result<T, String> {
        loop {
            let mapped = self.mapped.read().unwrap_or_else(PoisonError::into_inner);
            if let Some(base) = *mapped {
                return Ok(act(base));
            }
            drop(mapped);
            self.map()?;
        }
    }

    /// Maps it whole, if it is not.
    fn map(&self) -> Result<(), String> {
        let mut mapped = self.mapped.write().unwrap_or_else(PoisonError::into_inner);
        if mapped.is_some() {
            return Ok(());
        }
        let mut data = vk::Ptr::<vk::Opaque>::NULL;
        let ReplayDevice { functions, handle, .. } = &*self.device;
        let result = driver!(
            functions,
            MapMemory,
            FnMapMemory(*handle, self.handle, 0, vk::WHOLE_SIZE, vk::MemoryMapFlags(0), out(&mut data).cast())
        );
        if result != Some(vk::Result::SUCCESS) {
            return Err("the memory cannot be mapped here".to_owned());
        }
        *mapped = Some(data.0 as usize);
        Ok(())
    }

    /// The memory is not compared any more.
    fn unmap(&self) {
        let mut mapped = self.mapped.write().unwrap_or_else(PoisonError::into_inner);
        if mapped.take().is_some() {
            let ReplayDevice { functions, handle, .. } = &*self.device;
            driver!(functions, UnmapMemory, FnUnmapMemory(*handle, self.handle));
        }
        drop(mapped);
        lock(&self.relocated).iter().for_each(|it| it.memory.unmap());
    }
}

/// Structures that bring memory from elsewhere, which is plain memory here.
fn is_foreign(s_type: i32, shared: &SharedAllocation) -> bool {
    let is = |layout: &vk::desc::Layout| layout.s_type() == Some(s_type);
    is(vk::ImportMemoryHostPointerInfoEXT::layout())
        || !shared.is_import && is(vk::ImportMemoryFdInfoKHR::layout())
        || !shared.is_exportable && is(vk::ExportMemoryAllocateInfo::layout())
}

pub(crate) fn allocate(performer: &mut Performer<'_>, recorded_call: &RecordedCall<'_>) -> Result<(), ReplayError> {
    if recorded_call.has_failed() {
        return Ok(());
    }
    let device = performer.device(recorded_call)?;
    let unpacked = performer.unpack(recorded_call)?;
    let image = unpacked.image.cast::<vk::AllocateMemoryParams>();
    // SAFETY: `UnpackedCall::image` holds the parameters of this command. The structure that one of them leads to is not null;
    // it and its chain lie in the arena, and nobody else refers to them.
    let (size, ty, is_import) = unsafe {
        let info = performer.required(recorded_call, (*image).p_allocate_info)?;
        let shared = external_files::import_memory(performer, &device, info);
        let is_gone = |value| {
            is_foreign(value, &shared)
                || device.is_other_device && is_dedicated(value)
                || !device.has_capture_replay && is_opaque_capture_address(value)
        };
        chain::retain(info, |it| !is_gone(it));
        if !device.has_capture_replay
            && let Some(flags) = chain::find::<_, vk::MemoryAllocateFlagsInfo>(info)
        {
            (*flags).flags.0 &= !vk::MemoryAllocateFlags::DEVICE_ADDRESS_CAPTURE_REPLAY.0;
        }
        (*info).memory_type_index = device.memory_type((*info).memory_type_index);
        ((*info).allocation_size, (*info).memory_type_index, shared.is_import)
    };
    let result = performer.call(recorded_call, unpacked)?;
    performer.finish_call(recorded_call, unpacked, result)?;
    // SAFETY: `UnpackedCall::image` holds the parameters of this command; `unpack` made room for the handle, and `finish_call` adds
    // to the arena without clearing it.
    let handle = unsafe { performer.required(recorded_call, (*image).p_memory)?.read() };
    if let Some(id) = created_memory(recorded_call) {
        let is_known = performer.replay.options.verify || device.has_addresses;
        let has_results = performer.replay.has_device_writes;
        let memory = ReplayMemory::new(device, id, Allocation { handle, size, ty }, (is_known, has_results));
        if memory.is_visible && !is_import {
            clear(&memory).map_err(|it| performer.error(recorded_call, it))?;
        }
        lock(&performer.replay.memories.0).insert(id, Arc::new(memory));
    }
    Ok(())
}

/// In a capture, the contents of memory begin with zeros.
pub(crate) fn clear(memory: &ReplayMemory) -> Result<(), String> {
    memory.with_base(|base| {
        // SAFETY: `with_base` keeps the memory mapped whole, and it has so many bytes; nobody else has the new memory.
        unsafe { std::ptr::write_bytes(std::ptr::with_exposed_provenance_mut::<u8>(base), 0, memory.size as usize) };
    })?;
    memory.flush();
    memory.unmap();
    Ok(())
}

/// Memory for one resource only, of a size that is another here.
fn is_dedicated(s_type: i32) -> bool {
    vk::MemoryDedicatedAllocateInfo::layout().s_type() == Some(s_type)
}

/// Which address memory should have.
fn is_opaque_capture_address(s_type: i32) -> bool {
    vk::MemoryOpaqueCaptureAddressAllocateInfo::layout().s_type() == Some(s_type)
}

fn created_memory(recorded_call: &RecordedCall<'_>) -> Option<ObjectId> {
    match recorded_call.leave.and_then(lavascope_record::Outcome::of)? {
        lavascope_record::Outcome::AllocateMemory(outputs) => ObjectId::from_raw(outputs.p_memory()?.0),
        _ => None,
    }
}

pub(crate) fn free(performer: &mut Performer<'_>, recorded_call: &RecordedCall<'_>) -> Result<(), ReplayError> {
    if let Some(Call::FreeMemory(params)) = Call::of(recorded_call.enter)
        && let Some(id) = ObjectId::from_raw(params.memory.0)
    {
        // Freeing unmaps.
        let removed = lock(&performer.replay.memories.0).remove(&id);
        if let Some(replay_memory) = &removed {
            performer.compare_mapped_range(recorded_call, replay_memory)?;
        }
        performer.perform_unchanged(recorded_call)?;
        removed.iter().for_each(|it| it.free_relocated());
        performer.replay.bindings.remove_memory(id);
        return Ok(());
    }
    performer.perform_unchanged(recorded_call)
}

/// Memory is mapped whole here, and which part of it the program has is remembered.
pub(crate) fn map(performer: &mut Performer<'_>, recorded_call: &RecordedCall<'_>) -> Result<(), ReplayError> {
    let (memory, offset, size) = match Call::of(recorded_call.enter) {
        Some(Call::MapMemory(params)) => (params.memory.0, params.offset, params.size),
        Some(Call::MapMemory2(params)) => match params.p_memory_map_info() {
            Some(map_info) => (map_info.memory.0, map_info.offset, map_info.size),
            None => return Ok(()),
        },
        _ => return Ok(()),
    };
    let id = ObjectId::from_raw(memory).unwrap_or(ObjectId::NULL);
    if let Some(replay_memory) = performer.replay.memories.find(id).filter(|_| !recorded_call.has_failed()) {
        let end = if size == vk::WHOLE_SIZE {
            replay_memory.size
        } else {
            offset.saturating_add(size).min(replay_memory.size)
        };
        *lock(&replay_memory.mapped_range) = Some(offset.min(end)..end);
        if replay_memory.is_visible && !performer.replay.is_plan() {
            replay_memory.map().map_err(|it| performer.error(recorded_call, it))?;
        }
    }
    Ok(())
}

pub(crate) fn unmap(performer: &mut Performer<'_>, recorded_call: &RecordedCall<'_>) -> Result<(), ReplayError> {
    let memory = match Call::of(recorded_call.enter) {
        Some(Call::UnmapMemory(params)) => params.memory.0,
        Some(Call::UnmapMemory2(params)) => params.p_memory_unmap_info().map_or(0, |it| it.memory.0),
        _ => return Ok(()),
    };
    let id = ObjectId::from_raw(memory).unwrap_or(ObjectId::NULL);
    match performer.replay.memories.find(id) {
        Some(replay_memory) => {
            performer.compare_mapped_range(recorded_call, &replay_memory)?;
            replay_memory.unmap();
            Ok(())
        }
        None => Ok(()),
    }
}

impl Performer<'_> {
    /// The program has unmapped the memory: its last contents are compared.
    fn compare_mapped_range(&self, recorded_call: &RecordedCall<'_>, memory: &ReplayMemory) -> Result<(), ReplayError> {
        if let Some(range) = lock(&memory.mapped_range).take().filter(|_| self.replay.options.verify) {
            let results = memory
                .compare(range, (&self.replay.addresses, &self.replay.bindings))
                .map_err(|it| self.error(recorded_call, it))?;
            lock(&self.replay.write_comparison).add(results);
        }
        Ok(())
    }
}

/// Whether a byte is part of an address, or of something else of the driver's own, that is another one here.
fn is_remapped_byte(known: &[u8], at: usize, addresses: &DeviceAddressMap) -> bool {
    let mut is_address = false;
    if addresses.needs_remap() {
        addresses.for_each_in(known, at..at + 1, |_, _| is_address = true);
    }
    is_address || (addresses.blobs.needs_remap() && addresses.blobs.covers_byte(known, at))
}

/// The places of such values that overlap a range.
fn remapped_values(known: &[u8], range: &Range<usize>, addresses: &DeviceAddressMap) -> Vec<Range<usize>> {
    let mut all = Vec::new();
    if addresses.needs_remap() {
        addresses.for_each_in(known, range.clone(), |at, _| all.push(at..at + size_of::<u64>()));
    }
    if addresses.blobs.needs_remap() {
        addresses.blobs.for_each_in(known, range.clone(), |at, here| all.push(at..at + here.len()));
    }
    all
}

/// The recorded bytes of values outside of a range that they overlap.
fn rest_of_values(known: &[u8], values: &[Range<usize>], range: &Range<usize>) -> Vec<(usize, Vec<u8>)> {
    let parts = values.iter().flat_map(|it| [it.start..range.start.min(it.end), range.end.max(it.start)..it.end]);
    parts.filter(|it| !it.is_empty()).map(|it| (it.start, known[it].to_vec())).collect()
}
