//! Host writes to mapped memory: they are found before the call that makes them visible to the device, and stored in
//! the stream of the thread that makes the call.
//!
//! Each memory has a copy of its contents in the trace (`shadow`); bytes that differ were written since. If the driver
//! and the kernel allow it, the driver imports memory of ours, and the system reports the written pages (`import`).
//! Otherwise all mapped bytes are compared. One thread at a time checks a memory, and unmapping or freeing it waits for
//! that thread. The barrier of the call comes after the check: the call is ordered after the writes that other threads
//! found, even if it found none itself.
//!
//! Device writes differ from the copy as well. If the two cannot be distinguished, they are stored as host writes:
//! storing too much does no harm to a replay in the same order.
//!
//! Validation without a capture looks at memories whose written pages the system reports, also before the host waits for
//! the device: what is found then was written while all earlier submissions were pending. It needs the bytes only of
//! small memories with index buffers or indirect parameters ([`index_memory`]), and compares those if the system does not
//! report their pages, each from its first mapping on or never.
//!
//! Absent on purpose: what other processes write into memory that they share.

mod arena;
mod copy_hooks;
mod detection_choice;
mod device_progress;
mod device_writes;
mod host_image_copy;
mod import;
mod index_memory;
mod mapped_copies;
mod mapped_copy;
mod mapped_counts;
mod shadow;
mod write_detection;
mod write_sink;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lavascope_abi::*;
use lavascope_platform::pages::WriteGuard;
use lavascope_record::HostBytes;
use lavascope_settings::CaptureMemory;

use crate::DeviceTable;
use crate::loader::instance::InstanceData;
use crate::loader::pnext_chain::find_in_chain;
use crate::process::process_state::PROCESS_STATE;
use arena::PageArena;
use detection_choice::{copy_obstacle, is_processor};
use host_image_copy::HostCopyImages;
use import::MemoryImport;
pub(crate) use import::MemoryImportRequest;
use index_memory::IndexState;
use mapped_copies::{DeviceMemoryFacts, MappedCopies};
use mapped_copy::{CopyState, NoticedBytes, WriteTarget};
use shadow::{SEGMENT_BYTES, Shadow};
use write_detection::WriteDetection;
use write_sink::RecordedContents;
pub(crate) use write_sink::{MappedWriteSink, WriteScratch};

/// For which memories host writes are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MemoryInterest {
    /// All that the host writes.
    Everything(CaptureMemory),
    /// Host writes to small memories with indices, or with parameters of indirect commands: they decide which vertices
    /// a draw reads.
    Indices,
    /// The same, and where the host writes to memories whose written pages the system reports.
    Places,
}

impl MemoryInterest {
    /// Whether written pages of memory of ours are asked for.
    fn wants_arena(self) -> bool {
        use CaptureMemory as C;
        matches!(self, MemoryInterest::Everything(C::Auto | C::Userfaultfd | C::Copy) | MemoryInterest::Places)
    }

    /// Whether host writes are recorded for a validation alone.
    fn is_of_validation(self) -> bool {
        matches!(self, MemoryInterest::Indices | MemoryInterest::Places)
    }

    /// Whether host writes are told apart from those of a driver that runs on the processor.
    fn separates_processors(self) -> bool {
        self == MemoryInterest::Everything(CaptureMemory::Auto)
    }
}

/// The memories of a device that the host can see.
pub(crate) struct HostVisibleMemories {
    /// By number of the type, one bit each.
    visible: u32,
    coherent: u32,
    /// None if memory is the driver's own.
    import: Option<MemoryImport>,
    /// None if no memory has a copy.
    copies: Option<MappedCopies>,
    /// None if the system does not report written pages.
    arena: Option<Arc<PageArena>>,
    /// Memories in the arena, by the address of the first byte. Held while the system is asked and its answer is worked
    /// on; taken before the state of a memory.
    tracked: Mutex<BTreeMap<u64, Arc<WatchedMemory>>>,
    /// Taken after `tracked`, or without it.
    noticed: Mutex<Vec<NoticedBytes>>,
    interest: MemoryInterest,
    /// Why host writes to a memory of the driver's own are not checked.
    unchecked_reason: &'static str,
    wants_results: bool,
    images: HostCopyImages,
    inner: Mutex<WatchedMemories>,
}

#[derive(Default)]
struct WatchedMemories {
    all: HashMap<u64, Arc<WatchedMemory>>,
    /// Buffers that may have indices or parameters, where nothing else is of interest.
    index_buffers: HashSet<u64>,
    /// Bytes of memories that are checked because of these.
    index_bytes: u64,
    /// The memories that the host can write to now, in the order of their ids.
    mapped: Vec<Arc<WatchedMemory>>,
    /// Memories that are mapped, and not yet counted as such.
    uncounted: Vec<Arc<WatchedMemory>>,
}

struct WatchedMemory {
    id: ObjectId,
    size: u64,
    ty: u32,
    is_coherent: bool,
    interest: MemoryInterest,
    state: Mutex<MappingState>,
}

#[derive(Default)]
struct MappingState {
    mapped: Option<HostMapping>,
    /// The mapping before a call that may fail to unmap it.
    mapped_before_unmap: Option<HostMapping>,
    /// Whether it is the application's own memory, which is there without being mapped.
    is_imported: bool,
    /// Whether the application flushes its writes.
    is_flushed: bool,
    /// Whether it was counted as memory that stays mapped.
    is_counted: bool,
    index_state: IndexState,
    detection: WriteDetection,
    shadow: Shadow,
    copies: CopyState,
    /// Written pages of memory whose writes are flushed, which are recorded when they are.
    unflushed: Vec<Range<u64>>,
}

/// Validation alone makes copies of so many bytes.
const COPIES_MAX: u64 = 1 << 30;

/// Bytes of a memory that the host can reach.
#[derive(Clone)]
struct HostMapping {
    /// Where the first of them is.
    host: u64,
    bytes: Range<u64>,
}

impl HostVisibleMemories {
    /// The memories of a new device; none if host writes are not recorded. A request is given if memory of ours can be
    /// imported.
    ///
    /// # Safety
    ///
    /// The parameters must be those of the `vkCreateDevice` that has made the device, and the table must have its
    /// functions.
    pub(crate) unsafe fn of(
        instance: &InstanceData,
        params: &CreateDeviceParams,
        (device, table): (Device, &mut DeviceTable),
        import: Option<&MemoryImportRequest>,
    ) -> Option<HostVisibleMemories> {
        let (interest, get) = (instance.memory_interest?, instance.table.get_physical_device_memory_properties?);
        let physical_device = params.physical_device;
        let mut properties = PhysicalDeviceMemoryProperties::zeroed();
        // SAFETY: a physical device that is alive, and a place of ours.
        unsafe { get(physical_device, Ptr::new((&raw mut properties).expose_provenance() as u64)) };
        let arena = interest.wants_arena().then(PageArena::new).flatten();
        // SAFETY: the contract of this function: the info of a valid `vkCreateDevice`.
        let obstacle = unsafe { params.p_create_info.as_ptr().as_ref().and_then(|it| copy_obstacle(it)) };
        let is_processor = arena.is_some() && is_processor(instance, physical_device);
        let separates = is_processor && interest.separates_processors() && obstacle.is_none();
        let import = import.zip(arena.as_ref()).and_then(|(request, arena)| {
            let local = types_with(&properties, MemoryPropertyFlags::DEVICE_LOCAL);
            let excluded = if request.is_sparse() { local } else { 0 };
            let arena = if separates { PageArena::new()? } else { Arc::clone(arena) };
            MemoryImport::begin(instance, physical_device, excluded, (arena, separates), table)
        });
        // SAFETY: by the contract of this function the device was made with these parameters.
        let copies = unsafe {
            let facts = DeviceMemoryFacts {
                properties: &properties,
                import: import.as_ref(),
                obstacle: if arena.is_some() { obstacle } else { Some("the system does not report written pages") },
                is_processor: separates,
            };
            MappedCopies::begin(interest, (device, table), &facts)
        };
        // SAFETY: by the contract of this function these are the parameters of a valid `vkCreateDevice`.
        let obstacle = unsafe { MemoryImportRequest::obstacle(instance, params) };
        Some(HostVisibleMemories {
            visible: types_with(&properties, MemoryPropertyFlags::HOST_VISIBLE),
            coherent: types_with(&properties, MemoryPropertyFlags::HOST_COHERENT),
            import,
            copies,
            arena,
            tracked: Mutex::default(),
            noticed: Mutex::default(),
            interest,
            unchecked_reason: obstacle.unwrap_or("the driver does not import memory of the layer"),
            wants_results: instance.wants_results,
            images: HostCopyImages::default(),
            inner: Mutex::default(),
        })
    }

    /// A call is about to be recorded that lets the device read, or that ends a mapping.
    ///
    /// # Safety
    ///
    /// The parameters must be those of the command.
    pub(crate) unsafe fn before_call(&self, command: Command, params: *const u8, sink: &mut MappedWriteSink<'_>) {
        use Command as C;
        sink.command = command;
        match command {
            // The latter two allow earlier submissions to continue.
            C::QueueSubmit | C::QueueSubmit2 | C::SignalSemaphore | C::SetEvent => {
                self.count_mapped();
                let mapped = lock(&self.inner).mapped.clone();
                mapped.iter().for_each(|it| it.record_all_writes(sink));
                self.collect_before_call(sink);
            }
            // What the host wrote until now, it wrote without waiting.
            C::WaitForFences | C::WaitSemaphores | C::QueueWaitIdle | C::DeviceWaitIdle => {
                // SAFETY: the contract of this function: the parameters are those of the command.
                unsafe { self.notice_before_wait(command, params, sink) };
            }
            C::FlushMappedMemoryRanges => {
                // SAFETY: the contract of this function: the parameters are those of a `vkFlushMappedMemoryRanges`.
                let params = unsafe { &*params.cast::<FlushMappedMemoryRangesParams>() };
                for at in 0..params.memory_range_count as usize {
                    // SAFETY: VUID-vkFlushMappedMemoryRanges-pMemoryRanges-parameter: as many as the count says.
                    let range = unsafe { &*params.p_memory_ranges.as_ptr().add(at) };
                    if let Some(watched_memory) = self.get(range.memory) {
                        let _tracked = lock(&self.tracked);
                        watched_memory.record_flushed_writes(range, sink);
                    }
                }
                if self.copies.is_some() {
                    self.collect_before_call(sink);
                }
            }
            C::UnmapMemory => {
                // SAFETY: the contract of this function: the parameters are those of a `vkUnmapMemory`.
                self.unmap(unsafe { (*params.cast::<UnmapMemoryParams>()).memory }, sink);
            }
            C::UnmapMemory2 => {
                // SAFETY: the contract of this function, and VUID-vkUnmapMemory2-pMemoryUnmapInfo-parameter.
                let info = unsafe { (*params.cast::<UnmapMemory2Params>()).p_memory_unmap_info.as_ptr().as_ref() };
                if let Some(info) = info {
                    self.unmap(info.memory, sink);
                }
            }
            C::FreeMemory => {
                // SAFETY: the contract of this function: the parameters are those of a `vkFreeMemory`.
                let memory = unsafe { (*params.cast::<FreeMemoryParams>()).memory };
                if let Some(watched_memory) = self.get(memory).filter(|_| self.wants_results) {
                    watched_memory.record_results(sink);
                }
                self.remove(memory);
            }
            C::DestroyDevice => {
                self.record_all_results(sink);
                self.remove_all();
            }
            // SAFETY: the contract of this function: the parameters are those of one of these commands.
            C::DestroyBuffer | C::DestroyImage => unsafe { self.forget_destroyed(command, params) },
            C::CopyMemoryToImage => {
                // SAFETY: the contract of this function: the parameters are those of a `vkCopyMemoryToImage`.
                let info = unsafe { (*params.cast::<CopyMemoryToImageParams>()).p_copy_memory_to_image_info.as_ptr() };
                // SAFETY: VUID-vkCopyMemoryToImage-pCopyMemoryToImageInfo-parameter.
                unsafe { self.record_copy_source(&*info, sink) };
            }
            // No other call reads memory, or unmaps it.
            _ => {}
        }
    }

    /// The host has learned how far the device is: what the device wrote is there.
    pub(crate) fn record_all_results(&self, sink: &mut MappedWriteSink<'_>) {
        if self.wants_results {
            let mapped = lock(&self.inner).mapped.clone();
            mapped.iter().for_each(|it| it.record_results(sink));
            let tracked = lock(&self.tracked);
            tracked.values().for_each(|it| it.record_results(sink));
        }
    }

    /// A call returned that may have allocated or mapped memory. `id_of` returns the ids of new objects.
    ///
    /// # Safety
    ///
    /// The parameters must be those of the command, which returned `result`.
    pub(crate) unsafe fn after_call(
        &self,
        command: Command,
        params: *const u8,
        result: u64,
        id_of: impl FnOnce(DeviceMemory) -> Option<ObjectId>,
    ) {
        let has_succeeded = Result(result as u32 as i32) == Result::SUCCESS;
        match command {
            Command::AllocateMemory if has_succeeded => {
                // SAFETY: the contract of this function: a `vkAllocateMemory` that succeeded, and so wrote the memory.
                unsafe { self.add_memory(&*params.cast(), id_of) };
            }
            // Only to find out what the device may write to.
            command if has_succeeded && !self.interest.is_of_validation() && binds_memory(command) => {
                // SAFETY: the contract of this function: one of these commands, which succeeded.
                unsafe { self.track_resources(command, params) };
            }
            // SAFETY: the contract of this function: a `vkCreateImage` that succeeded, and so wrote the image.
            Command::CreateImage if has_succeeded => unsafe { self.images.add(&*params.cast()) },
            Command::CreateBuffer | Command::BindBufferMemory | Command::BindBufferMemory2
                if has_succeeded && self.interest.is_of_validation() =>
            {
                // SAFETY: the contract of this function: one of these three commands, which succeeded.
                unsafe { self.track_index_buffers(command, params) };
            }
            Command::MapMemory if has_succeeded => {
                // SAFETY: the contract of this function: the parameters are those of a `vkMapMemory`.
                let params = unsafe { &*params.cast::<MapMemoryParams>() };
                // SAFETY: VUID-vkMapMemory-ppData-parameter; the call succeeded, and so wrote the address.
                let host = unsafe { params.pp_data.cast::<u64>().as_ptr().read() };
                self.map(params.memory, host, params.offset, params.size);
            }
            Command::MapMemory2 if has_succeeded => {
                // SAFETY: the contract of this function: the parameters are those of a `vkMapMemory2`.
                let params = unsafe { &*params.cast::<MapMemory2Params>() };
                // SAFETY: VUID-vkMapMemory2-ppData-parameter and -pMemoryMapInfo-parameter; the call succeeded, and so wrote
                // the address.
                let (host, info) =
                    unsafe { (params.pp_data.cast::<u64>().as_ptr().read(), &*params.p_memory_map_info.as_ptr()) };
                self.map(info.memory, host, info.offset, info.size);
            }
            Command::UnmapMemory2 if !has_succeeded => {
                // SAFETY: the contract of this function, and VUID-vkUnmapMemory2-pMemoryUnmapInfo-parameter.
                let info = unsafe { (*params.cast::<UnmapMemory2Params>()).p_memory_unmap_info.as_ptr().as_ref() };
                if let Some(info) = info {
                    self.restore_mapping(info.memory);
                }
            }
            _ => {}
        }
    }

    /// Records what a copy to an image reads from the host.
    unsafe fn record_copy_source(&self, info: &CopyMemoryToImageInfo, sink: &mut MappedWriteSink<'_>) {
        for number in (0..u64::from(info.region_count)).take_while(|_| PROCESS_STATE.is_capturing()) {
            // SAFETY: there are as many regions as the call says.
            let region = unsafe { &*info.p_regions.as_ptr().add(number as usize) };
            let Some(source) = self.images.source_range(info, region) else { continue };
            for at in source.clone().step_by(SEGMENT_BYTES) {
                let size = (source.end - at).min(SEGMENT_BYTES as u64) as usize;
                let from = std::ptr::with_exposed_provenance::<u8>(at as usize);
                // SAFETY: the call reads all of it, by its valid usage.
                let bytes = unsafe { std::slice::from_raw_parts(from, size) };
                sink.record_host_bytes(HostBytes { region: number, first: at - source.start, bytes });
            }
        }
    }

    unsafe fn add_memory(&self, params: &AllocateMemoryParams, id_of: impl FnOnce(DeviceMemory) -> Option<ObjectId>) {
        // SAFETY: the caller has the parameters of a call that succeeded.
        let (info, memory) = unsafe { (&*params.p_allocate_info.as_ptr(), params.p_memory.as_ptr().read()) };
        // SAFETY: VUID-VkBufferCreateInfo-pNext-pNext: a valid chain, in which a structure of this type is such a one.
        let imported = unsafe {
            let ty = StructureType::IMPORT_MEMORY_HOST_POINTER_INFO_EXT;
            let found = find_in_chain::<ImportMemoryHostPointerInfoEXT>(info.p_next, ty);
            found.map(|it| &*it.as_ptr()).filter(|it| it.handle_type.0 != 0).map(|it| it.p_host_pointer.0)
        };
        let bit = 1u32.checked_shl(info.memory_type_index).unwrap_or(0);
        if self.visible & bit == 0 && imported.is_none() {
            return;
        }
        let Some(id) = id_of(memory) else { return };
        let bytes = 0..info.allocation_size;
        let state = MappingState {
            mapped: imported.map(|host| HostMapping { host, bytes }),
            is_imported: imported.is_some(),
            // SAFETY: the caller's word: the info of a valid call.
            copies: unsafe { self.copy_state_of(info, memory) },
            ..MappingState::default()
        };
        let is_coherent = self.coherent & bit != 0;
        let (size, ty, interest) = (info.allocation_size, info.memory_type_index, self.interest);
        let state = Mutex::new(state);
        let watched_memory = Arc::new(WatchedMemory { id, size, ty, is_coherent, interest, state });
        self.track_device_pages(memory, &watched_memory);
        let mut inner = lock(&self.inner);
        inner.all.insert(memory.0, watched_memory.clone());
        if imported.is_some() && !interest.is_of_validation() {
            inner.add_mapped(watched_memory);
        }
    }

    fn get(&self, memory: DeviceMemory) -> Option<Arc<WatchedMemory>> {
        lock(&self.inner).all.get(&memory.0).cloned()
    }

    fn map(&self, memory: DeviceMemory, host: u64, offset: u64, size: u64) {
        let Some(other) = self.get(memory) else { return };
        let end = if size == WHOLE_SIZE { other.size } else { offset.saturating_add(size).min(other.size) };
        let mut state = lock(&other.state);
        if state.is_imported || offset >= end {
            return;
        }
        let mapped = HostMapping { host, bytes: offset..end };
        let has_copy = state.copies.copy.as_ref().is_some_and(|it| it.has(host));
        state.detection = self.detection_for(memory, &mapped);
        let in_arena = matches!(state.detection, WriteDetection::PageTracking).then(|| host - offset);
        state.mapped = Some(mapped);
        let is_checked = other.is_tracked(&state) && !has_copy;
        let is_new = self.interest == MemoryInterest::Places && !std::mem::replace(&mut state.is_counted, true);
        drop(state);
        if is_new {
            lock(&self.inner).uncounted.push(Arc::clone(&other));
        }
        match in_arena {
            _ if !is_checked => {}
            Some(start) => _ = lock(&self.tracked).insert(start, other),
            None => lock(&self.inner).add_mapped(other),
        }
    }

    /// How writes into a memory are found that was just mapped.
    fn detection_for(&self, memory: DeviceMemory, mapped: &HostMapping) -> WriteDetection {
        if self.interest == MemoryInterest::Everything(CaptureMemory::Mprotect) {
            let addresses = mapped.host..mapped.address(mapped.bytes.end);
            return WriteGuard::new(addresses).map_or(WriteDetection::CompareAll, WriteDetection::PageGuard);
        }
        let own = self.import.as_ref().filter(|it| !it.is_separate());
        let watched = own.and_then(|it| it.tracked_address(memory));
        // A driver may map it elsewhere.
        let is_it = watched.is_some_and(|first| first + mapped.bytes.start == mapped.host);
        if is_it { WriteDetection::PageTracking } else { WriteDetection::CompareAll }
    }

    /// The mapping was to end, and did not.
    fn restore_mapping(&self, memory: DeviceMemory) {
        let Some(other) = self.get(memory) else { return };
        let mut state = lock(&other.state);
        state.mapped = state.mapped_before_unmap.take().or(state.mapped.take());
        // Which pages were written is not known any more.
        state.detection = WriteDetection::CompareAll;
        let is_checked = other.is_tracked(&state) && state.copies.copy.is_none();
        drop(state);
        if is_checked {
            lock(&self.inner).add_mapped(other);
        }
    }

    fn unmap(&self, memory: DeviceMemory, sink: &mut MappedWriteSink<'_>) {
        let Some(watched_memory) = self.get(memory) else { return };
        if self.wants_results {
            watched_memory.record_results(sink);
        }
        self.collect_before_call(sink);
        let arena_start = watched_memory.arena_start();
        let mut tracked = lock(&self.tracked);
        watched_memory.record_writes(0..watched_memory.size, sink);
        let mut state = lock(&watched_memory.state);
        state.index_state.on_unmap();
        if !state.is_imported {
            state.mapped_before_unmap = state.mapped.take();
            // Before the driver reuses the pages.
            state.detection = WriteDetection::CompareAll;
            let has_copy = state.copies.copy.is_some();
            drop(state);
            if let Some(start) = arena_start.filter(|_| !has_copy) {
                tracked.remove(&start);
            }
            drop(tracked);
            let mut inner = lock(&self.inner);
            inner.mapped.retain(|other| other.id != watched_memory.id);
            self.uncount(&mut inner, &watched_memory);
        }
    }

    fn remove(&self, memory: DeviceMemory) {
        let mut inner = lock(&self.inner);
        let Some(watched_memory) = inner.all.remove(&memory.0) else { return };
        inner.mapped.retain(|other| other.id != watched_memory.id);
        inner.uncounted.retain(|other| other.id != watched_memory.id);
        drop(inner);
        lock(&self.noticed).retain(|other| other.memory.id != watched_memory.id);
        self.forget_copy(&watched_memory);
        self.forget_device_pages(&watched_memory);
        // Waits for the thread that checks it.
        let mut state = lock(&watched_memory.state);
        state.stop_tracking();
        let is_counted = state.index_state == IndexState::Tracked;
        drop(state);
        if is_counted {
            lock(&self.inner).index_bytes -= watched_memory.size;
        }
    }

    fn remove_all(&self) {
        let WatchedMemories { all, .. } = std::mem::take(&mut *lock(&self.inner));
        lock(&self.tracked).clear();
        lock(&self.noticed).clear();
        all.values().for_each(|it| lock(&it.state).stop_tracking());
    }
}

/// Whether a command makes or binds what the device may write to.
fn binds_memory(command: Command) -> bool {
    use Command as C;
    matches!(
        command,
        C::CreateBuffer
            | C::BindBufferMemory
            | C::BindBufferMemory2
            | C::BindImageMemory
            | C::BindImageMemory2
            | C::BindAccelerationStructureMemoryNV
            | C::BindDataGraphPipelineSessionMemoryARM
            | C::BindOpticalFlowSessionImageNV
            | C::BindTensorMemoryARM
            | C::BindVideoSessionMemoryKHR
    )
}

/// The types of memory with a property, one bit each.
fn types_with(properties: &PhysicalDeviceMemoryProperties, flag: MemoryPropertyFlags) -> u32 {
    let types = properties.memory_types.iter().take(properties.memory_type_count as usize);
    types.enumerate().filter(|it| it.1.property_flags.0 & flag.0 != 0).fold(0, |all, it| all | 1 << it.0)
}

impl MappingState {
    /// The memory must not be checked any more.
    fn stop_tracking(&mut self) {
        self.mapped = None;
        self.detection = WriteDetection::CompareAll;
    }
}

impl HostMapping {
    /// Where a byte of the memory is.
    fn address(&self, byte: u64) -> u64 {
        self.host + (byte - self.bytes.start)
    }

    /// The byte at an address, or the nearest that is mapped.
    fn byte(&self, address: u64) -> u64 {
        (address.saturating_sub(self.host) + self.bytes.start).min(self.bytes.end)
    }
}

impl WatchedMemories {
    fn add_mapped(&mut self, watched_memory: Arc<WatchedMemory>) {
        let at = self.mapped.binary_search_by_key(&watched_memory.id.raw(), |it| it.id.raw());
        if let Err(at) = at {
            self.mapped.insert(at, watched_memory);
        }
    }
}

impl WatchedMemory {
    /// Before a submission: everything, unless the application flushes its writes.
    fn record_all_writes(&self, sink: &mut MappedWriteSink<'_>) {
        if self.is_coherent || !lock(&self.state).is_flushed {
            self.record_writes(0..self.size, sink);
        }
    }

    /// The system reports that these bytes may have changed.
    fn add_written(&self, bytes: Range<u64>, target: &mut WriteTarget<'_, '_>) {
        let mut state = lock(&self.state);
        if state.copies.copy.is_some() {
            return self.upload(&mut state, bytes, target);
        }
        if !self.is_coherent && state.is_flushed {
            return state.unflushed.push(bytes);
        }
        let (is_tracked, needs) = (self.is_tracked(&state), self.needed_contents(&state));
        let MappingState { mapped: Some(mapped), shadow, .. } = &mut *state else { return };
        if let (WriteTarget::Recorded(sink), true) = (target, is_tracked) {
            let part = bytes.start.max(mapped.bytes.start)..bytes.end.min(mapped.bytes.end);
            self.record_differences((mapped, shadow), part, needs, sink);
        }
    }

    fn record_flushed_writes(&self, range: &MappedMemoryRange, sink: &mut MappedWriteSink<'_>) {
        lock(&self.state).is_flushed = true;
        // The rest of the mapping, which is cut off below.
        let end = if range.size == WHOLE_SIZE { self.size } else { range.offset.saturating_add(range.size) };
        self.record_writes(range.offset..end, sink);
    }

    /// Whether host writes to it are recorded.
    fn is_tracked(&self, state: &MappingState) -> bool {
        let has_indices = state.index_state == IndexState::Tracked;
        match self.interest {
            MemoryInterest::Everything(_) => PROCESS_STATE.is_capturing(),
            MemoryInterest::Indices => has_indices,
            MemoryInterest::Places => has_indices || matches!(state.detection, WriteDetection::PageTracking),
        }
    }

    /// Whether the records of host writes need the bytes.
    fn needed_contents(&self, state: &MappingState) -> RecordedContents {
        match self.interest {
            MemoryInterest::Places if state.index_state != IndexState::Tracked => RecordedContents::Places,
            _ => RecordedContents::Bytes,
        }
    }

    /// All differences, including device writes: pages only show host writes.
    fn record_results(&self, sink: &mut MappedWriteSink<'_>) {
        let mut state = lock(&self.state);
        if PROCESS_STATE.is_capturing() && WatchedMemory::record_copied_results(&mut state, self.id, sink) {
            return;
        }
        let MappingState { mapped: Some(mapped), shadow, .. } = &mut *state else { return };
        if PROCESS_STATE.is_capturing() {
            self.record_differences((mapped, shadow), mapped.bytes.clone(), RecordedContents::Bytes, sink);
        }
    }

    /// Compares bytes with their contents in the trace, and records those that differ.
    fn record_writes(&self, wanted: Range<u64>, sink: &mut MappedWriteSink<'_>) {
        // Held until the records are made: who finds nothing more makes its barrier after them.
        let mut state = lock(&self.state);
        if !self.is_tracked(&state) {
            return;
        }
        let needs = self.needed_contents(&state);
        let MappingState { mapped: Some(mapped), detection: watch, shadow, copies, unflushed, .. } = &mut *state else {
            return;
        };
        if copies.copy.is_some() {
            return;
        }
        let wanted = wanted.start.max(mapped.bytes.start)..wanted.end.min(mapped.bytes.end);
        if wanted.is_empty() {
            return;
        }
        let mut parts = std::mem::take(&mut sink.scratch.dirty);
        parts.extend(unflushed.extract_if(.., |it| it.start < wanted.end && wanted.start < it.end));
        parts.iter_mut().for_each(|it| *it = it.start.max(mapped.bytes.start)..it.end.min(mapped.bytes.end));
        watch.add_written(mapped, wanted, &mut parts);
        for part in parts.drain(..) {
            self.record_differences((mapped, shadow), part, needs, sink);
        }
        sink.scratch.dirty = parts;
    }

    fn record_differences(
        &self,
        (mapped, shadow): (&HostMapping, &mut Shadow),
        part: Range<u64>,
        needs: RecordedContents,
        sink: &mut MappedWriteSink<'_>,
    ) {
        let mut at = part.start;
        while at < part.end {
            let next = (at / SEGMENT_BYTES as u64 + 1).saturating_mul(SEGMENT_BYTES as u64).min(part.end);
            if self.interest == MemoryInterest::Places && !shadow.has_room(at, COPIES_MAX) {
                mapped_counts::note_cut(shadow);
                at = next;
                continue;
            }
            let live = &mut sink.scratch.current;
            live.resize((next - at) as usize, 0);
            let from = std::ptr::with_exposed_provenance::<u8>(mapped.address(at) as usize);
            // SAFETY: mapped until a thread takes the lock to change that. The application may write meanwhile, and the
            // copy then has the old or the new bytes.
            unsafe { std::ptr::copy_nonoverlapping(from, live.as_mut_ptr(), live.len()) };
            let WriteScratch { current: live, changed, bits, .. } = &mut *sink.scratch;
            changed.clear();
            let is_changed = match needs {
                RecordedContents::Bytes => {
                    shadow.update(at, live, changed);
                    !changed.is_empty()
                }
                // Neighbors of a byte that changed may be in use.
                RecordedContents::Places => shadow.update_bits(at, live, bits),
            };
            if is_changed {
                sink.record_changes(self.id, at, needs);
            }
            at = next;
        }
    }
}

fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
