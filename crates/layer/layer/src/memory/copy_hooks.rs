//! Functions in the places of the driver's, for memory with a copy (`mapped_copy`).
//!
//! The application's data must reach the device even if nobody listens to its calls any more, or if a bug has disabled
//! the layer. So each function does what the recording of the same call would have done, unless that has happened.

use std::cell::Cell;

use lavascope_abi::*;

use super::device_progress::Completion;
use super::mapped_copy::WriteTarget;
use super::{HostVisibleMemories, WriteScratch};
use crate::DeviceTable;
use crate::loader::dispatch::dispatch_key;
use crate::loader::pnext_chain::find_in_chain;
use crate::loader::proc_addr::WATCHED_DEVICES;
use crate::process::catch_panic::{catch_panic, catch_panic_and_retry};

thread_local! {
    /// Whether host writes were collected for the call that this thread is about to pass on.
    static IS_COLLECTED: Cell<bool> = const { Cell::new(false) };
}

/// The host writes were collected for the call that is about to be passed on.
pub(super) fn set_collected() {
    IS_COLLECTED.set(true);
}

/// The memories of the device of a dispatchable handle.
///
/// # Safety
///
/// The handle must be that of a device or queue that is alive while the result is used.
unsafe fn memories_of<'a>(handle: u64) -> Option<&'a HostVisibleMemories> {
    // SAFETY: by the contract of this function the handle is that of a device or queue that is alive.
    unsafe { WATCHED_DEVICES.get(dispatch_key(handle)) }?.handles().memories.as_ref()
}

impl NextFunctions {
    pub(super) fn get_image_memory_requirements(&self) -> Option<FnGetImageMemoryRequirements> {
        self.get_image_memory_requirements
    }

    /// Maps all of a memory. None if the driver does not.
    ///
    /// # Safety
    ///
    /// The memory must be alive, of the device, visible to the host, and not mapped.
    pub(super) unsafe fn map_whole(&self, device: Device, memory: DeviceMemory) -> Option<u64> {
        let mut host = 0_u64;
        let out = Ptr::new((&raw mut host).expose_provenance() as u64);
        // SAFETY: the contract of this function; the place is ours.
        let result = unsafe { (self.map_memory)?(device, memory, 0, WHOLE_SIZE, MemoryMapFlags(0), out) };
        (result == Result::SUCCESS && host != 0).then_some(host)
    }

    /// # Safety
    ///
    /// The memory must be mapped, and nobody may use the mapping any more.
    pub(super) unsafe fn unmap(&self, device: Device, memory: DeviceMemory) {
        if let Some(unmap) = self.unmap_memory {
            // SAFETY: by the contract of this function the memory is mapped, and the mapping is not used any more.
            unsafe { unmap(device, memory) };
        }
    }
}

macro_rules! copy_hooks {
    ($($name:ident: $fn_ty:ident = fn($first:ident: $first_ty:ty $(, $parameter:ident: $ty:ty)*) -> $result:ty, |$memories:ident, $forward:ident| $body:block)*) => {
        hook_functions! {
            /// The functions that were in the table; they may be others of ours.
            NextFunctions for DeviceTable { $($name: $fn_ty,)* } and uses {
                get_image_memory_requirements: FnGetImageMemoryRequirements,
            }
        }

        impl NextFunctions {
            /// Puts ours into a table, where the driver has such a function.
            pub(super) fn begin(table: &mut DeviceTable) -> NextFunctions {
                let next = NextFunctions::install(table);
                $(if next.$name.is_none() {
                    table.$name = None;
                })*
                next
            }
        }

        $(unsafe extern "system" fn $name($first: $first_ty $(, $parameter: $ty)*) -> $result {
            // SAFETY: the first parameter of every command is a dispatchable handle that is alive until the call
            // returns, by a rule `VUID-…-parameter` of the command.
            let Some($memories) = (unsafe { memories_of($first.0) }) else { return Default::default() };
            let Some(next) = $memories.copies.as_ref().and_then(|it| it.next.$name) else { return Default::default() };
            // SAFETY: the driver's function of this name, with the parameters that the application called ours with.
            let $forward = || unsafe { next($first $(, $parameter)*) };
            $body
        })*
    };
}

/// What is behind a pointer parameter.
///
/// # Safety
///
/// Null, or `count` valid elements that stay while the result is used.
unsafe fn slice<'a, T>(first: Ptr<T>, count: u32) -> &'a [T] {
    if first == Ptr::NULL || count == 0 {
        return &[];
    }
    // SAFETY: by the contract of this function there are so many elements, which stay.
    unsafe { std::slice::from_raw_parts(first.as_ptr(), count as usize) }
}

fn collect(memories: &HostVisibleMemories, name: &'static str) {
    if IS_COLLECTED.replace(false) {
        return;
    }
    let work = || {
        // Bindings are not seen any more, either.
        memories.expect_device_writes_anywhere();
        memories.collect_writes(&mut WriteTarget::Unrecorded(&mut WriteScratch::default()));
    };
    catch_panic_and_retry(name, work, || ());
}

fn submit(
    memories: &HostVisibleMemories,
    (queue, fence): (Queue, Fence),
    signals: impl FnOnce() -> Vec<(Semaphore, u64)>,
    name: &'static str,
) {
    collect(memories, name);
    let signals = catch_panic(name, signals, Vec::new);
    let work = || memories.copies.iter().for_each(|it| it.progress.submit(queue, fence, &signals));
    catch_panic(name, work, || ());
}

/// The values of timeline semaphores that a batch signals.
///
/// # Safety
///
/// The info must be that of a valid `vkQueueSubmit`.
unsafe fn timeline_signals(info: &SubmitInfo) -> Vec<(Semaphore, u64)> {
    let ty = StructureType::TIMELINE_SEMAPHORE_SUBMIT_INFO;
    // SAFETY: VUID-VkSubmitInfo-pNext-pNext: a valid chain, in which a structure of this type is such a one.
    let timeline = unsafe { find_in_chain::<TimelineSemaphoreSubmitInfo>(info.p_next, ty).map(|it| &*it.as_ptr()) };
    let Some(timeline) = timeline else { return Vec::new() };
    // SAFETY: VUID-VkSubmitInfo-pSignalSemaphores-parameter and
    // VUID-VkTimelineSemaphoreSubmitInfo-pSignalSemaphoreValues-parameter: as many as the counts say.
    let (semaphores, values) = unsafe {
        (
            slice(info.p_signal_semaphores, info.signal_semaphore_count),
            slice(timeline.p_signal_semaphore_values, timeline.signal_semaphore_value_count),
        )
    };
    // Values of binary semaphores are ignored; a timeline never signals zero.
    semaphores.iter().copied().zip(values.iter().copied()).filter(|it| it.1 != 0).collect()
}

fn read_back(memories: &HostVisibleMemories, completion: Option<Completion>, result: Result, name: &str) {
    if let Some(completion) = completion
        && has_finished(result)
    {
        let again = || catch_panic(name, || memories.read_back(Completion::default()), || ());
        catch_panic(name, || memories.read_back(completion), again);
    }
}

/// Whether the application may read what the device has written, or has written until it was lost.
fn has_finished(result: Result) -> bool {
    matches!(result, Result::SUCCESS | Result::SUBOPTIMAL_KHR | Result::EVENT_SET | Result::ERROR_DEVICE_LOST)
}

/// Asks what the call will mean, without a panic that leaves us.
fn expect(
    memories: &HostVisibleMemories,
    name: &str,
    ask: impl FnOnce(&super::device_progress::DeviceProgress) -> Option<Completion>,
) -> Option<Completion> {
    catch_panic(name, || memories.copies.as_ref().and_then(|it| ask(&it.progress)), || Some(Completion::default()))
}

fn copy_on_host(memories: &HostVisibleMemories, name: &'static str, forward: impl FnOnce() -> Result) -> Result {
    // The recording collects nothing before most of these.
    IS_COLLECTED.set(false);
    let work = || memories.collect_writes(&mut WriteTarget::Unrecorded(&mut WriteScratch::default()));
    catch_panic_and_retry(name, work, || ());
    catch_panic(name, || memories.copies.iter().for_each(|it| it.progress.write_on_host()), || ());
    let result = forward();
    read_back(memories, Some(Completion::default()), Result::SUCCESS, name);
    result
}

copy_hooks! {
    map_memory: FnMapMemory = fn(device: Device, memory: DeviceMemory, offset: u64, size: u64, flags: MemoryMapFlags, pp_data: Ptr<Opaque>) -> Result, |memories, forward| {
        let info = MemoryMapInfo { memory, offset, size, flags, ..MemoryMapInfo::zeroed() };
        // SAFETY: VUID-vkMapMemory-device-parameter, and the parameters of a valid call.
        match unsafe { memories.map_copy(device, &info) } {
            Some(host) => {
                // SAFETY: VUID-vkMapMemory-ppData-parameter.
                unsafe { pp_data.cast::<u64>().as_mut_ptr().write(host) };
                Result::SUCCESS
            }
            None => forward(),
        }
    }

    map_memory2: FnMapMemory2 = fn(device: Device, p_info: Ptr<MemoryMapInfo>, pp_data: Ptr<Opaque>) -> Result, |memories, forward| {
        // SAFETY: VUID-vkMapMemory2-pMemoryMapInfo-parameter.
        let info = unsafe { p_info.as_ptr().as_ref() };
        // SAFETY: VUID-vkMapMemory2-device-parameter, and the parameters of a valid call.
        match info.and_then(|it| unsafe { memories.map_copy(device, it) }) {
            Some(host) => {
                // SAFETY: VUID-vkMapMemory2-ppData-parameter.
                unsafe { pp_data.cast::<u64>().as_mut_ptr().write(host) };
                Result::SUCCESS
            }
            None => forward(),
        }
    }

    unmap_memory: FnUnmapMemory = fn(device: Device, memory: DeviceMemory) -> (), |memories, forward| {
        let _ = device;
        collect(memories, "vkUnmapMemory");
        if !catch_panic("vkUnmapMemory", || memories.unmap_copy(memory), || false) {
            forward();
        }
    }

    unmap_memory2: FnUnmapMemory2 = fn(device: Device, p_info: Ptr<MemoryUnmapInfo>) -> Result, |memories, forward| {
        let _ = device;
        collect(memories, "vkUnmapMemory2");
        // SAFETY: VUID-vkUnmapMemory2-pMemoryUnmapInfo-parameter.
        let info = unsafe { p_info.as_ptr().as_ref() };
        match catch_panic("vkUnmapMemory2", || info.is_some_and(|it| memories.unmap_copy(it.memory)), || false) {
            true => Result::SUCCESS,
            false => forward(),
        }
    }

    free_memory: FnFreeMemory = fn(device: Device, memory: DeviceMemory, p_allocator: Ptr<Opaque>) -> (), |memories, forward| {
        let _ = (device, p_allocator);
        // Before: the driver may give the same handle to another thread at once. The pages are ours, so they can go
        // before the driver's.
        catch_panic("vkFreeMemory", || memories.remove_copy(memory), || ());
        forward();
    }

    queue_submit: FnQueueSubmit = fn(queue: Queue, submit_count: u32, p_submits: Ptr<SubmitInfo>, fence: Fence) -> Result, |memories, forward| {
        // SAFETY: VUID-vkQueueSubmit-pSubmits-parameter: as many as the count says.
        let signals = || unsafe { slice(p_submits, submit_count).iter().flat_map(|it| timeline_signals(it)).collect() };
        submit(memories, (queue, fence), signals, "vkQueueSubmit");
        forward()
    }

    queue_submit2: FnQueueSubmit2 = fn(queue: Queue, submit_count: u32, p_submits: Ptr<SubmitInfo2>, fence: Fence) -> Result, |memories, forward| {
        let signals = || {
            // SAFETY: VUID-vkQueueSubmit2-pSubmits-parameter: as many as the count says, each with as many semaphores as
            // its count says.
            let all = unsafe { slice(p_submits, submit_count).iter().flat_map(|it| slice(it.p_signal_semaphore_infos, it.signal_semaphore_info_count)) };
            all.filter(|it| it.value != 0).map(|it| (it.semaphore, it.value)).collect()
        };
        submit(memories, (queue, fence), signals, "vkQueueSubmit2");
        forward()
    }

    queue_bind_sparse: FnQueueBindSparse = fn(queue: Queue, bind_info_count: u32, p_bind_info: Ptr<BindSparseInfo>, fence: Fence) -> Result, |memories, forward| {
        let _ = (bind_info_count, p_bind_info);
        catch_panic("vkQueueBindSparse", || memories.expect_device_writes_anywhere(), || ());
        submit(memories, (queue, fence), Vec::new, "vkQueueBindSparse");
        forward()
    }

    flush_mapped_memory_ranges: FnFlushMappedMemoryRanges = fn(device: Device, memory_range_count: u32, p_memory_ranges: Ptr<MappedMemoryRange>) -> Result, |memories, forward| {
        let _ = (device, memory_range_count, p_memory_ranges);
        collect(memories, "vkFlushMappedMemoryRanges");
        forward()
    }

    invalidate_mapped_memory_ranges: FnInvalidateMappedMemoryRanges = fn(device: Device, memory_range_count: u32, p_memory_ranges: Ptr<MappedMemoryRange>) -> Result, |memories, forward| {
        let _ = (device, memory_range_count, p_memory_ranges);
        let result = forward();
        let completion = expect(memories, "vkInvalidateMappedMemoryRanges", |it| it.by_something());
        read_back(memories, completion, result, "vkInvalidateMappedMemoryRanges");
        result
    }

    signal_semaphore: FnSignalSemaphore = fn(device: Device, p_signal_info: Ptr<SemaphoreSignalInfo>) -> Result, |memories, forward| {
        let _ = (device, p_signal_info);
        collect(memories, "vkSignalSemaphore");
        forward()
    }

    set_event: FnSetEvent = fn(device: Device, event: Event) -> Result, |memories, forward| {
        let _ = (device, event);
        collect(memories, "vkSetEvent");
        forward()
    }

    wait_for_fences: FnWaitForFences = fn(device: Device, fence_count: u32, p_fences: Ptr<Fence>, wait_all: Bool32, timeout: u64) -> Result, |memories, forward| {
        let _ = (device, timeout);
        // SAFETY: VUID-vkWaitForFences-pFences-parameter: as many as the count says.
        let fences = unsafe { slice(p_fences, fence_count) };
        let completion = expect(memories, "vkWaitForFences", |it| it.by_fences(fences, wait_all.0 != 0));
        let result = forward();
        read_back(memories, completion, result, "vkWaitForFences");
        result
    }

    get_fence_status: FnGetFenceStatus = fn(device: Device, fence: Fence) -> Result, |memories, forward| {
        let _ = device;
        let completion = expect(memories, "vkGetFenceStatus", |it| it.by_fences(&[fence], true));
        let result = forward();
        read_back(memories, completion, result, "vkGetFenceStatus");
        result
    }

    queue_wait_idle: FnQueueWaitIdle = fn(queue: Queue) -> Result, |memories, forward| {
        let completion = expect(memories, "vkQueueWaitIdle", |it| it.by_idle(Some(queue)));
        let result = forward();
        read_back(memories, completion, result, "vkQueueWaitIdle");
        result
    }

    device_wait_idle: FnDeviceWaitIdle = fn(device: Device) -> Result, |memories, forward| {
        let _ = device;
        let completion = expect(memories, "vkDeviceWaitIdle", |it| it.by_idle(None));
        let result = forward();
        read_back(memories, completion, result, "vkDeviceWaitIdle");
        result
    }

    wait_semaphores: FnWaitSemaphores = fn(device: Device, p_wait_info: Ptr<SemaphoreWaitInfo>, timeout: u64) -> Result, |memories, forward| {
        let _ = (device, timeout);
        let result = forward();
        // SAFETY: VUID-vkWaitSemaphores-pWaitInfo-parameter, and as many semaphores and values as the count says.
        let (values, is_all) = unsafe {
            match p_wait_info.as_ptr().as_ref() {
                Some(info) => (
                    slice(info.p_semaphores, info.semaphore_count).iter().copied().zip(slice(info.p_values, info.semaphore_count).iter().copied()).collect(),
                    info.flags.0 & SemaphoreWaitFlags::ANY.0 == 0,
                ),
                None => (Vec::new(), true),
            }
        };
        let completion = expect(memories, "vkWaitSemaphores", |it| it.by_semaphores(&values, is_all));
        read_back(memories, completion, result, "vkWaitSemaphores");
        result
    }

    get_semaphore_counter_value: FnGetSemaphoreCounterValue = fn(device: Device, semaphore: Semaphore, p_value: Ptr<u64>) -> Result, |memories, forward| {
        let _ = device;
        let result = forward();
        if result == Result::SUCCESS {
            // SAFETY: VUID-vkGetSemaphoreCounterValue-pValue-parameter; the call succeeded, and so wrote the value.
            let value = unsafe { p_value.as_ptr().read() };
            let completion = expect(memories, "vkGetSemaphoreCounterValue", |it| it.by_semaphores(&[(semaphore, value)], true));
            read_back(memories, completion, result, "vkGetSemaphoreCounterValue");
        }
        result
    }

    reset_fences: FnResetFences = fn(device: Device, fence_count: u32, p_fences: Ptr<Fence>) -> Result, |memories, forward| {
        let _ = device;
        // SAFETY: VUID-vkResetFences-pFences-parameter: as many as the count says.
        let fences = unsafe { slice(p_fences, fence_count) };
        let forget = || memories.copies.iter().for_each(|it| it.progress.forget_fences(fences));
        catch_panic("vkResetFences", forget, || ());
        forward()
    }

    destroy_fence: FnDestroyFence = fn(device: Device, fence: Fence, p_allocator: Ptr<Opaque>) -> (), |memories, forward| {
        let _ = (device, p_allocator);
        let forget = || memories.copies.iter().for_each(|it| it.progress.forget_fences(&[fence]));
        catch_panic("vkDestroyFence", forget, || ());
        forward();
    }

    destroy_semaphore: FnDestroySemaphore = fn(device: Device, semaphore: Semaphore, p_allocator: Ptr<Opaque>) -> (), |memories, forward| {
        let _ = (device, p_allocator);
        let forget = || memories.copies.iter().for_each(|it| it.progress.forget_semaphore(semaphore));
        catch_panic("vkDestroySemaphore", forget, || ());
        forward();
    }

    get_event_status: FnGetEventStatus = fn(device: Device, event: Event) -> Result, |memories, forward| {
        let _ = (device, event);
        let result = forward();
        if result == Result::EVENT_SET {
            let completion = expect(memories, "vkGetEventStatus", |it| it.by_something());
            read_back(memories, completion, result, "vkGetEventStatus");
        }
        result
    }

    get_query_pool_results: FnGetQueryPoolResults = fn(device: Device, query_pool: QueryPool, first_query: u32, query_count: u32, data_size: u64, p_data: Ptr<u8>, stride: u64, flags: QueryResultFlags) -> Result, |memories, forward| {
        let _ = (device, query_pool, first_query, query_count, data_size, p_data, stride, flags);
        let result = forward();
        let completion = expect(memories, "vkGetQueryPoolResults", |it| it.by_something());
        read_back(memories, completion, result, "vkGetQueryPoolResults");
        result
    }

    wait_for_present_khr: FnWaitForPresentKHR = fn(device: Device, swapchain: SwapchainKHR, present_id: u64, timeout: u64) -> Result, |memories, forward| {
        let _ = (device, swapchain, present_id, timeout);
        let result = forward();
        read_back(memories, expect(memories, "vkWaitForPresentKHR", |it| it.by_something()), result, "vkWaitForPresentKHR");
        result
    }

    wait_for_present2_khr: FnWaitForPresent2KHR = fn(device: Device, swapchain: SwapchainKHR, p_info: Ptr<PresentWait2InfoKHR>) -> Result, |memories, forward| {
        let _ = (device, swapchain, p_info);
        let result = forward();
        read_back(memories, expect(memories, "vkWaitForPresent2KHR", |it| it.by_something()), result, "vkWaitForPresent2KHR");
        result
    }

    copy_memory_to_image: FnCopyMemoryToImage = fn(device: Device, p_info: Ptr<CopyMemoryToImageInfo>) -> Result, |memories, forward| {
        let _ = (device, p_info);
        copy_on_host(memories, "vkCopyMemoryToImage", forward)
    }

    copy_image_to_memory: FnCopyImageToMemory = fn(device: Device, p_info: Ptr<CopyImageToMemoryInfo>) -> Result, |memories, forward| {
        let _ = (device, p_info);
        copy_on_host(memories, "vkCopyImageToMemory", forward)
    }

    copy_image_to_image: FnCopyImageToImage = fn(device: Device, p_info: Ptr<CopyImageToImageInfo>) -> Result, |memories, forward| {
        let _ = (device, p_info);
        copy_on_host(memories, "vkCopyImageToImage", forward)
    }

    transition_image_layout: FnTransitionImageLayout = fn(device: Device, transition_count: u32, p_transitions: Ptr<HostImageLayoutTransitionInfo>) -> Result, |memories, forward| {
        let _ = (device, transition_count, p_transitions);
        copy_on_host(memories, "vkTransitionImageLayout", forward)
    }
}
