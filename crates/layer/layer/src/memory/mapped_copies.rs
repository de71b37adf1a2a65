//! The memories of a device that have a copy: which do, and what the device may write to them.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use lavascope_abi::*;
use lavascope_settings::CaptureMemory;
use serde_json::json;

use super::copy_hooks::{self, NextFunctions};
use super::detection_choice::{DetectionChoice, DetectionFacts, MemoryFunctions};
use super::device_progress::{Completion, DeviceProgress};
use super::device_writes::{BoundResource, DeviceResources, for_each_binding};
use super::import::MemoryImport;
use super::mapped_copy::{CopyState, DriverPages, WriteTarget, is_copyable};
use super::{HostVisibleMemories, MappedWriteSink, MemoryInterest, WatchedMemory, lock};
use crate::DeviceTable;
use crate::process::catch_panic::{catch_panic, is_disabled};
use crate::process::process_state::PROCESS_STATE;

pub(super) struct MappedCopies {
    pub(super) next: NextFunctions,
    pub(super) progress: DeviceProgress,
    choice: DetectionChoice,
    /// Memories with a copy, by their ids.
    pub(super) all: Mutex<BTreeMap<u64, Arc<WatchedMemory>>>,
    /// Those of them to which the device may have written what was not read back. Taken before the state of a memory.
    pub(super) device_written: Mutex<BTreeMap<u64, Arc<WatchedMemory>>>,
    resources: Mutex<DeviceResources>,
    /// Whether the device may write to any byte. Relaxed: what it guards is under locks.
    is_written_anywhere: AtomicBool,
    /// Whether host writes were collected without a record. Relaxed, as above.
    pub(super) has_late_writes: AtomicBool,
    /// Memories of which the system reports what the driver wrote, by the address of the first byte. Held while the
    /// system is asked; taken before the state of a memory.
    device_pages: Mutex<BTreeMap<u64, Arc<WatchedMemory>>>,
}

/// What is known of the memory of a new device.
pub(super) struct DeviceMemoryFacts<'a> {
    pub(super) properties: &'a PhysicalDeviceMemoryProperties,
    pub(super) import: Option<&'a MemoryImport>,
    /// Why no memory can have a copy.
    pub(super) obstacle: Option<&'static str>,
    /// Whether the driver runs on the processor, and its writes are told apart from the host's.
    pub(super) is_processor: bool,
}

impl MappedCopies {
    /// For a new device: from now on its memory is mapped here; none if no memory has a copy.
    ///
    /// # Safety
    ///
    /// The device must be alive, and the table must have its functions.
    pub(super) unsafe fn begin(
        interest: MemoryInterest,
        (device, table): (Device, &mut DeviceTable),
        memory: &DeviceMemoryFacts<'_>,
    ) -> Option<MappedCopies> {
        let DeviceMemoryFacts { properties, import, obstacle, is_processor } = *memory;
        let MemoryInterest::Everything(setting) = interest else { return None };
        let functions = MemoryFunctions::of(table);
        let facts = DetectionFacts {
            setting,
            properties,
            // SAFETY: the contract of this function: the device is alive.
            imported: import.map_or(0, |it| unsafe { it.imported_types(device) }),
            obstacle,
            is_processor,
            // SAFETY: the contract of this function: the device is alive, and these are its functions.
            bytes_per_compare: &|ty| unsafe { functions.as_ref()?.bytes_per_compare(device, ty) },
        };
        let choice = DetectionChoice::new(&facts);
        PROCESS_STATE.add_trace_metadata(json!({ "memory_detection": choice.metadata() }));
        let is_copied = matches!(setting, CaptureMemory::Auto | CaptureMemory::Copy) && facts.obstacle.is_none();
        is_copied.then(|| MappedCopies {
            next: NextFunctions::begin(table),
            progress: DeviceProgress::default(),
            choice,
            all: Mutex::default(),
            device_written: Mutex::default(),
            resources: Mutex::default(),
            is_written_anywhere: AtomicBool::new(false),
            has_late_writes: AtomicBool::new(false),
            device_pages: Mutex::default(),
        })
    }

    /// The device may write to the memory, or has written to it: that is read back after the next wait.
    fn expect_device_writes(&self, memory: &Arc<WatchedMemory>) {
        let mut device_written = lock(&self.device_written);
        if memory.has_unread_copy() {
            device_written.insert(memory.id.raw(), Arc::clone(memory));
        }
    }

    /// Bytes that an image has.
    ///
    /// # Safety
    ///
    /// The image must be alive, and bound as a whole.
    unsafe fn size_of_image(&self, device: Device, image: Image) -> Option<u64> {
        let mut requirements = MemoryRequirements::zeroed();
        let out = Ptr::new((&raw mut requirements).expose_provenance() as u64);
        // SAFETY: the contract of this function; the place is ours.
        unsafe { (self.next.get_image_memory_requirements())?(device, image, out) };
        Some(requirements.size)
    }
}

impl HostVisibleMemories {
    /// What a new memory needs to have a copy.
    ///
    /// # Safety
    ///
    /// The info must be that of the call that has made the memory.
    pub(super) unsafe fn copy_state_of(&self, info: &MemoryAllocateInfo, memory: DeviceMemory) -> CopyState {
        let Some(copies) = &self.copies else { return CopyState::default() };
        let own = self.import.as_ref().and_then(|it| Some((it, it.tracked_address(memory)?)));
        let is_imported = own.is_some_and(|it| !it.0.is_separate());
        // SAFETY: by the contract of this function the info is that of a valid `vkAllocateMemory`.
        let is_wanted = copies.choice.may_copy(info.memory_type_index) && !is_imported && unsafe { is_copyable(info) };
        let submissions = copies.progress.point_after(&Completion::default()).submissions;
        let mut state = CopyState::new(is_wanted, self.wants_results, submissions);
        state.driver_pages = own.filter(|it| it.0.is_separate()).map(|it| DriverPages::new(it.1));
        if copies.is_written_anywhere.load(Ordering::Relaxed) {
            state.writable.add(BoundResource::Unknown, 0..info.allocation_size);
        }
        state
    }

    /// The system reports what the driver writes to a new memory, if that is memory of ours.
    pub(super) fn track_device_pages(&self, handle: DeviceMemory, memory: &Arc<WatchedMemory>) {
        let Some(copies) = &self.copies else { return };
        let import = self.import.as_ref().filter(|it| it.is_separate());
        if let Some(start) = import.and_then(|it| it.tracked_address(handle)) {
            lock(&copies.device_pages).insert(start, Arc::clone(memory));
        }
    }

    /// Asks the system what the driver has written, for all memories.
    pub(super) fn find_device_writes(&self) {
        let (Some(copies), Some(import)) = (&self.copies, &self.import) else { return };
        // A panic in the middle loses what the system has reported.
        let is_lost = copies.device_pages.is_poisoned();
        let memories = lock(&copies.device_pages);
        if memories.is_empty() {
            return;
        }
        let mut written = Vec::new();
        if !import.written(&mut written) || is_lost {
            written.clear();
            written.extend(memories.iter().map(|(start, memory)| *start..start + memory.size));
        }
        for run in written {
            let before = memories.range(..=run.start).next_back();
            for (start, memory) in before.into_iter().chain(memories.range(run.start + 1..run.end)) {
                let bytes = run.start.saturating_sub(*start)..run.end.saturating_sub(*start).min(memory.size);
                if bytes.start < bytes.end {
                    memory.add_device_pages(bytes);
                    copies.expect_device_writes(memory);
                }
            }
        }
        copies.device_pages.clear_poison();
    }

    /// Before a call that lets the device read: collects host writes, and tells the function behind it.
    pub(super) fn collect_before_call(&self, sink: &mut MappedWriteSink<'_>) {
        self.collect_writes(&mut WriteTarget::Recorded(sink));
        if self.copies.is_some() {
            copy_hooks::set_collected();
        }
    }

    /// The application maps memory. Returns the address in its copy; none if the driver maps it.
    ///
    /// # Safety
    ///
    /// The info must be that of a valid call on the device.
    pub(super) unsafe fn map_copy(&self, device: Device, info: &MemoryMapInfo) -> Option<u64> {
        let copies = self.copies.as_ref()?;
        let find = || self.get(info.memory);
        let memory = catch_panic("vkMapMemory", find, || None)?;
        if info.flags.0 & MemoryMapFlags::PLACED_EXT.0 != 0 {
            if catch_panic("vkMapMemory", || self.end_copy(&memory), || false) {
                // SAFETY: the mapping of `begin_copy`, which nobody uses any more.
                unsafe { copies.next.unmap(device, info.memory) };
            }
            return None;
        }
        if catch_panic("vkMapMemory", || memory.wants_copy(), || false) {
            // SAFETY: the contract of this function: the memory is not mapped.
            let is_begun = unsafe { self.try_copy(device, info.memory, &memory) };
            if !is_begun {
                catch_panic("vkMapMemory", || memory.refuse_copy(), || ());
                return None;
            }
        }
        let map = || {
            let point = copies.progress.point_after(&Completion::default());
            self.find_device_writes();
            memory.map_copy(info.offset, point)
        };
        catch_panic("vkMapMemory", map, || None)
    }

    /// Begins a copy, unless comparing is cheaper. False if the driver has to map the memory.
    ///
    /// # Safety
    ///
    /// The handle must be that of the memory, which is not mapped.
    unsafe fn try_copy(&self, device: Device, handle: DeviceMemory, memory: &Arc<WatchedMemory>) -> bool {
        let Some(copies) = &self.copies else { return false };
        let is_compared = || is_disabled() || copies.choice.take_compared(memory.ty, memory.size);
        if catch_panic("vkMapMemory", is_compared, || true) {
            return false;
        }
        // SAFETY: by the contract of this function the memory is alive and not mapped.
        let Some(driver) = (unsafe { copies.next.map_whole(device, handle) }) else { return false };
        let is_begun = catch_panic("vkMapMemory", || self.begin_copy(memory, driver), || false);
        if !is_begun {
            // SAFETY: the mapping above, which nobody uses.
            unsafe { copies.next.unmap(device, handle) };
        }
        is_begun
    }

    fn begin_copy(&self, memory: &Arc<WatchedMemory>, driver: u64) -> bool {
        let (Some(copies), Some(arena)) = (&self.copies, &self.arena) else { return false };
        let point = copies.progress.point_after(&Completion::default());
        self.find_device_writes();
        if !memory.begin_copy(arena, driver, point) {
            return false;
        }
        if let Some(start) = memory.arena_start() {
            lock(&self.tracked).insert(start, Arc::clone(memory));
            lock(&copies.all).insert(memory.id.raw(), Arc::clone(memory));
            copies.expect_device_writes(memory);
        }
        true
    }

    /// The memory is mapped in another way from now on. False if it had no copy.
    fn end_copy(&self, memory: &Arc<WatchedMemory>) -> bool {
        self.forget_copy(memory);
        memory.end_copy()
    }

    /// A memory is not asked for any more.
    pub(super) fn forget_copy(&self, memory: &Arc<WatchedMemory>) {
        if let Some(start) = memory.arena_start() {
            lock(&self.tracked).remove(&start);
        }
        if let Some(copies) = &self.copies {
            lock(&copies.all).remove(&memory.id.raw());
            lock(&copies.device_written).remove(&memory.id.raw());
        }
    }

    /// A memory is about to be freed.
    pub(super) fn forget_device_pages(&self, memory: &WatchedMemory) {
        let Some(copies) = &self.copies else { return };
        let start = lock(&memory.state).copies.driver_pages.as_ref().map(|it| it.start);
        if let Some(start) = start {
            lock(&copies.device_pages).remove(&start);
        }
    }

    /// False if the memory has no copy.
    pub(super) fn unmap_copy(&self, memory: DeviceMemory) -> bool {
        self.get(memory).is_some_and(|it| it.unmap_copy())
    }

    /// The memory is about to be freed, and nobody listened.
    pub(super) fn remove_copy(&self, memory: DeviceMemory) {
        if self.get(memory).is_some() {
            self.remove(memory);
        }
    }

    /// It is not known any more which bytes the device may write to.
    pub(super) fn expect_device_writes_anywhere(&self) {
        let Some(copies) = &self.copies else { return };
        if !copies.is_written_anywhere.swap(true, Ordering::Relaxed) {
            let all: Vec<Arc<WatchedMemory>> = lock(&self.inner).all.values().cloned().collect();
            for memory in &all {
                lock(&memory.state).copies.writable.add(BoundResource::Unknown, 0..memory.size);
                copies.expect_device_writes(memory);
            }
        }
    }

    /// A buffer was made, or a resource got its memory.
    ///
    /// # Safety
    ///
    /// The parameters must be those of the command, which succeeded.
    pub(super) unsafe fn track_resources(&self, command: Command, params: *const u8) {
        let Some(copies) = &self.copies else { return };
        match command {
            // SAFETY: the contract of this function: a `vkCreateBuffer` that succeeded.
            Command::CreateBuffer => unsafe { lock(&copies.resources).add_buffer(&*params.cast()) },
            Command::BindBufferMemory
            | Command::BindBufferMemory2
            | Command::BindImageMemory
            | Command::BindImageMemory2 => {
                // SAFETY: the contract of this function: the first parameter of these is the device.
                let device = unsafe { params.cast::<Device>().read() };
                // SAFETY: by the contract of this function these are the parameters of one of these commands.
                unsafe { for_each_binding(command, params, |binding| self.bind_resource(device, &binding)) };
            }
            _ => self.expect_device_writes_anywhere(),
        }
    }

    fn bind_resource(&self, device: Device, binding: &super::device_writes::ResourceBinding) {
        let Some(copies) = &self.copies else { return };
        let Some(memory) = self.get(binding.memory) else { return };
        if !copies.choice.may_copy(memory.ty) {
            return;
        }
        let size = match binding.resource {
            // SAFETY: the image was just bound, and so is alive, as is the device.
            BoundResource::Image(image) if binding.is_whole => unsafe { copies.size_of_image(device, Image(image)) },
            _ => None,
        };
        let mut resources = lock(&copies.resources);
        if let Some(bytes) = resources.bytes_of(binding, size, memory.size) {
            resources.bind(binding.resource, Arc::clone(&memory));
            drop(resources);
            lock(&memory.state).copies.writable.add(binding.resource, bytes);
            copies.expect_device_writes(&memory);
        }
    }

    /// A buffer or image is about to be destroyed.
    ///
    /// # Safety
    ///
    /// The parameters must be those of the command: `vkDestroyBuffer` or `vkDestroyImage`.
    pub(super) unsafe fn forget_destroyed(&self, command: Command, params: *const u8) {
        if command == Command::DestroyImage {
            // SAFETY: by the contract of this function these are the parameters of a `vkDestroyImage`.
            let image = unsafe { (*params.cast::<DestroyImageParams>()).image };
            self.images.remove(image);
            return self.forget_resource(BoundResource::Image(image.0));
        }
        // SAFETY: by the contract of this function these are the parameters of a `vkDestroyBuffer`.
        let buffer = unsafe { (*params.cast::<DestroyBufferParams>()).buffer };
        if self.interest.is_of_validation() {
            lock(&self.inner).index_buffers.remove(&buffer.0);
        }
        self.forget_resource(BoundResource::Buffer(buffer.0));
    }

    fn forget_resource(&self, resource: BoundResource) {
        let Some(copies) = &self.copies else { return };
        let memory = lock(&copies.resources).remove(resource);
        if let Some(memory) = memory {
            lock(&memory.state).copies.writable.remove(resource);
        }
    }
}
