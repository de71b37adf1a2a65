//! Copies images that are about to be presented to memory that the host can read.
//!
//! The copy is a submission of ours, on the queue of the present and inside of its call, so nobody else uses the queue
//! meanwhile, and the images belong to its family.

use std::sync::Arc;

use lavascope_abi::*;
use lavascope_picture::{TexelFormat, copy_region, layout_barrier};

use super::writer::{PICTURE_TIMEOUT, PendingSlot};
use super::{Pictures, PresentedSwapchain, lock};
use crate::loader::interface::{out, out_slice};
use crate::process::catch_panic::catch_panic;

/// The alignment of each picture in a buffer: more than any format needs.
const ALIGNMENT: u64 = 16;
const PRESENT_LAYOUT: ImageLayout = ImageLayout::PRESENT_SRC_KHR;
const COPY_LAYOUT: ImageLayout = ImageLayout::TRANSFER_SRC_OPTIMAL;

/// Why there is something, or else why there is nothing.
type CopyResult<T> = core::result::Result<T, String>;

/// A frame that is being copied.
pub(super) struct PendingScreenshot {
    pub(super) frame: u64,
    pub(super) windows: Vec<WindowCopy>,
    pub(super) staging: StagingBuffer,
    /// Signaled by the copy.
    pub(super) semaphore: Semaphore,
    /// Others may have their turn when it is written.
    pub(super) slot: PendingSlot,
}

/// One of the windows of a frame.
pub(super) struct WindowCopy {
    pub(super) window: usize,
    pub(super) texel_format: TexelFormat,
    pub(super) extent: Extent2D,
    /// Where it begins in the buffer.
    pub(super) offset: u64,
    swapchain: Arc<PresentedSwapchain>,
    index: u32,
    image: Image,
}

/// A buffer that the host can read, and the objects for copying to it. `Pictures::staging` creates it on the device of
/// the pictures, and `destroy_staging` destroys it. Its owner alone uses its objects. Objects that do not exist yet are
/// null.
#[derive(Default)]
pub(super) struct StagingBuffer {
    family: u32,
    bytes: u64,
    buffer: Buffer,
    memory: DeviceMemory,
    /// Where it is mapped.
    address: u64,
    pool: CommandPool,
    commands: CommandBuffer,
    /// Signaled when the copy is over.
    pub(super) fence: Fence,
}

impl StagingBuffer {
    /// The pictures in the buffer.
    ///
    /// # Safety
    ///
    /// The copy must be over.
    pub(super) unsafe fn bytes(&self) -> &[u8] {
        let first = std::ptr::with_exposed_provenance::<u8>(self.address as usize);
        // SAFETY: `make_buffer` mapped memory that is as large as the buffer, which stays mapped until the staging is
        // destroyed. By the contract of this function the device does not write there now, and the host never does.
        // Memory is initialized by the driver, or by the copy.
        unsafe { std::slice::from_raw_parts(first, self.bytes as usize) }
    }
}

impl Pictures {
    /// Submits the copy of a frame before it is presented; none if that is not possible, which is reported.
    ///
    /// # Safety
    ///
    /// The parameters must be those of a valid `vkQueuePresentKHR` on this device that was not passed on yet.
    pub(super) unsafe fn copy_frame(
        &self,
        queue: Queue,
        info: &PresentInfoKHR,
        frame: u64,
    ) -> Option<PendingScreenshot> {
        let prepare = || {
            // SAFETY: the contract of this function, which is that of `prepare`.
            let shot = unsafe { self.prepare(queue, info, frame) };
            shot.unwrap_or_else(|text| {
                self.warn_once(&text);
                None
            })
        };
        let shot = catch_panic("vkQueuePresentKHR", prepare, || None)?;
        // SAFETY: VUID-VkPresentInfoKHR-pWaitSemaphores-parameter: as many as the count says, until the present
        // returns.
        let waits = unsafe { slice(info.p_wait_semaphores, info.wait_semaphore_count) };
        let StagingBuffer { commands, fence: done, .. } = shot.staging;
        // Not inside of `catch_panic`: from here on the present must know whether the semaphores were waited for.
        // SAFETY: host access to the queue of a present is externally synchronized.
        // VUID-vkQueuePresentKHR-pWaitSemaphores-03268: each semaphore that is waited for is signaled, or about to be.
        // The commands were just recorded. Nobody waits for the fence, and the present before that waited for the
        // semaphore is over: its image was acquired again.
        let result = unsafe { self.submit(queue, waits, &[commands], &[shot.semaphore], done) };
        if result != Result::SUCCESS {
            let give_back = || {
                self.warn_once(&format!("a picture cannot be copied: vkQueueSubmit returned {result:?}"));
                self.state().free_stagings.push(shot.staging);
            };
            catch_panic("vkQueuePresentKHR", give_back, || ());
            return None;
        }
        Some(shot)
    }

    /// A present did not take place: the application's semaphores are signaled again, as it finds them then.
    ///
    /// # Safety
    ///
    /// The parameters must be those of a valid `vkQueuePresentKHR` on this device that did not take place and has not
    /// returned to the application. Its shot must signal the semaphore.
    pub(super) unsafe fn restore_semaphores(&self, queue: Queue, info: &PresentInfoKHR, semaphore: Semaphore) {
        // SAFETY: VUID-VkPresentInfoKHR-pWaitSemaphores-parameter: as many as the count says, until the present
        // returns.
        let signals = unsafe { slice(info.p_wait_semaphores, info.wait_semaphore_count) };
        // SAFETY: host access to the queue of a present is externally synchronized. By the contract of this function
        // the shot signals the semaphore and nobody waits for it; the copy has waited for the others, so that they may
        // be signaled.
        unsafe { self.submit(queue, &[semaphore], &[], signals, Fence(0)) };
    }

    /// # Safety
    ///
    /// The queue must be of this device, and nobody else may use it until this returns. The semaphores, the commands
    /// and the fence must be such as the VUIDs of `vkQueueSubmit` ask for.
    unsafe fn submit(
        &self,
        queue: Queue,
        waits: &[Semaphore],
        commands: &[CommandBuffer],
        signals: &[Semaphore],
        fence: Fence,
    ) -> Result {
        let stages = vec![PipelineStageFlags::ALL_COMMANDS; waits.len()];
        let info = SubmitInfo {
            wait_semaphore_count: waits.len() as u32,
            p_wait_semaphores: Ptr::to_slice(waits),
            p_wait_dst_stage_mask: Ptr::to_slice(&stages),
            command_buffer_count: commands.len() as u32,
            p_command_buffers: Ptr::to_slice(commands),
            signal_semaphore_count: signals.len() as u32,
            p_signal_semaphores: Ptr::to_slice(signals),
            ..SubmitInfo::zeroed()
        };
        // SAFETY: the contract of this function; the info and its lists outlive the call.
        unsafe { (self.functions.queue_submit)(queue, 1, Ptr::to(&info), fence) }
    }

    /// All that a submission needs; none if there is nothing to copy.
    ///
    /// # Safety
    ///
    /// The parameters must be those of a valid `vkQueuePresentKHR` on this device that was not passed on yet.
    unsafe fn prepare(&self, queue: Queue, info: &PresentInfoKHR, frame: u64) -> CopyResult<Option<PendingScreenshot>> {
        let family = self.copy_queue_family(queue)?;
        // SAFETY: the contract of this function: the info of a valid present.
        let parts = unsafe { self.window_copies(info) }?;
        let (Some(first), Some(last)) = (parts.first(), parts.last()) else { return Ok(None) };
        let semaphore = self.semaphore(first)?;
        let bytes = last.offset + last.texel_format.bytes(last.extent);
        let turn = self
            .writer
            .acquire_slot(PICTURE_TIMEOUT)
            .ok_or("the device does not complete its copies: frames are skipped")?;
        let staging = self.take_staging(family, bytes)?;
        // SAFETY: the staging is one of nobody else's, whose last copy is over. By the contract of this function the
        // images are about to be presented, so that they are in the layout for it and nobody else uses them.
        let recorded = unsafe { self.record(&staging, &parts) };
        if let Err(text) = recorded {
            self.destroy_staging(staging);
            return Err(text);
        }
        Ok(Some(PendingScreenshot { frame, windows: parts, staging, semaphore, slot: turn }))
    }

    /// The family of a queue that can copy.
    fn copy_queue_family(&self, queue: Queue) -> CopyResult<u32> {
        let family = self.state().queues.get(&queue.0).copied();
        let family = family.ok_or("a frame is presented on an unknown queue: there is no picture of it")?;
        let flags = self.physical.families.get(family as usize).map_or(0, |it| it.0);
        let can_copy = QueueFlags::GRAPHICS.0 | QueueFlags::COMPUTE.0 | QueueFlags::TRANSFER.0;
        if flags & can_copy == 0 {
            return Err("frames are presented on a queue that cannot copy, so there are no pictures of them".into());
        }
        Ok(family)
    }

    /// Prepares the copies; reports images that cannot be copied.
    ///
    /// # Safety
    ///
    /// The info must be that of a valid `vkQueuePresentKHR` on this device that was not passed on yet.
    unsafe fn window_copies(&self, info: &PresentInfoKHR) -> CopyResult<Vec<WindowCopy>> {
        // SAFETY: VUID-VkPresentInfoKHR-pSwapchains-parameter: as many as the count says, until the present returns.
        let swapchains = unsafe { slice(info.p_swapchains, info.swapchain_count) };
        // SAFETY: VUID-VkPresentInfoKHR-pImageIndices-parameter: as many as the count says, until the present returns.
        let indices = unsafe { slice(info.p_image_indices, info.swapchain_count) };
        let (mut parts, mut end) = (Vec::new(), 0_u64);
        for (window, (handle, index)) in swapchains.iter().zip(indices).enumerate() {
            let known = self.state().swapchains.get(&handle.0).cloned();
            let Some(swapchain) = known else {
                self.warn_once("there are no pictures of swapchains that are not made by vkCreateSwapchainKHR");
                continue;
            };
            let texels = match swapchain.texel_format {
                Ok(item) => item,
                Err(why) => {
                    self.warn_once(&format!("there are no pictures of a swapchain: {why}"));
                    continue;
                }
            };
            // SAFETY: VUID-VkPresentInfoKHR-pSwapchains-parameter: the swapchain is alive until the present returns.
            let image = unsafe { self.image(&swapchain, *handle, *index) }?;
            let (offset, extent, index) = (end.next_multiple_of(ALIGNMENT), swapchain.extent, *index);
            end = offset + texels.bytes(extent);
            parts.push(WindowCopy { window, texel_format: texels, extent, offset, swapchain, index, image });
        }
        Ok(parts)
    }

    /// # Safety
    ///
    /// The handle must be that of the swapchain, which must be alive until this returns.
    unsafe fn image(&self, swapchain: &PresentedSwapchain, handle: SwapchainKHR, index: u32) -> CopyResult<Image> {
        let missing = || format!("a swapchain has no image {index}, so there is no picture of it");
        if swapchain.images.get().is_none() {
            let ask = self.next.get_swapchain_images_khr.ok_or_else(missing)?;
            let mut count = 0_u32;
            // SAFETY: the contract of this function, for a device that is alive by that of `Pictures::begin`; a null
            // array asks for the count, whose place is ours.
            unsafe { ask(self.device, handle, out(&mut count), Ptr::NULL) };
            let mut images = vec![Image(0); count as usize];
            // SAFETY: as for the count, with an array of ours that has as many elements as the count says.
            unsafe { ask(self.device, handle, out(&mut count), out_slice(&mut images)) };
            // Another thread was faster, with the same result.
            _ = swapchain.images.set(images);
        }
        let images = swapchain.images.get().ok_or_else(missing)?;
        images.get(index as usize).copied().filter(|it| it.0 != 0).ok_or_else(missing)
    }

    /// The semaphore that the present of an image waits for.
    fn semaphore(&self, part: &WindowCopy) -> CopyResult<Semaphore> {
        if let Some(item) = lock(&part.swapchain.semaphores).get(&part.index) {
            return Ok(*item);
        }
        let (info, mut made) = (SemaphoreCreateInfo::zeroed(), Semaphore(0));
        // SAFETY: a device that is alive by the contract of `Pictures::begin`; the info and the place are ours.
        let result =
            unsafe { (self.functions.create_semaphore)(self.device, Ptr::to(&info), Ptr::NULL, out(&mut made)) };
        succeeded("a semaphore", result)?;
        lock(&part.swapchain.semaphores).insert(part.index, made);
        Ok(made)
    }

    fn take_staging(&self, family: u32, bytes: u64) -> CopyResult<StagingBuffer> {
        let mut state = self.state();
        let at = state.free_stagings.iter().position(|it| it.family == family && it.bytes >= bytes);
        let spare = at.map(|it| state.free_stagings.swap_remove(it));
        // A buffer that is too small now was made for a smaller window.
        let others = if spare.is_none() { std::mem::take(&mut state.free_stagings) } else { Vec::new() };
        drop(state);
        others.into_iter().for_each(|it| self.destroy_staging(it));
        if let Some(staging_buffer) = spare {
            return Ok(staging_buffer);
        }
        let mut made = StagingBuffer { family, bytes, ..StagingBuffer::default() };
        let filled = self.make_buffer(&mut made).and_then(|()| self.make_commands(&mut made));
        if let Err(text) = filled {
            self.destroy_staging(made);
            return Err(text);
        }
        Ok(made)
    }

    fn make_buffer(&self, made: &mut StagingBuffer) -> CopyResult<()> {
        let (device, functions) = (self.device, &self.functions);
        let info =
            BufferCreateInfo { size: made.bytes, usage: BufferUsageFlags::TRANSFER_DST, ..BufferCreateInfo::zeroed() };
        let mut needs = MemoryRequirements::zeroed();
        // SAFETY: a device that is alive by the contract of `Pictures::begin`; the info and the place are ours.
        let result = unsafe { (functions.create_buffer)(device, Ptr::to(&info), Ptr::NULL, out(&mut made.buffer)) };
        succeeded("a buffer", result)?;
        // SAFETY: the buffer was just made on this device; the place is ours.
        unsafe { (functions.get_buffer_memory_requirements)(device, made.buffer, out(&mut needs)) };
        let info = MemoryAllocateInfo {
            allocation_size: needs.size,
            memory_type_index: self
                .memory_type(needs.memory_type_bits)
                .ok_or("the device has no memory that the host can read")?,
            ..MemoryAllocateInfo::zeroed()
        };
        let flags = MemoryMapFlags::default();
        // SAFETY: as for the buffer; the type of memory is one that the device has.
        let result = unsafe { (functions.allocate_memory)(device, Ptr::to(&info), Ptr::NULL, out(&mut made.memory)) };
        succeeded("memory", result)?;
        // SAFETY: both were just made: the buffer has no memory yet, which is as large as it needs and of a type that
        // it allows.
        succeeded("memory", unsafe { (functions.bind_buffer_memory)(device, made.buffer, made.memory, 0) })?;
        let place = out(&mut made.address).cast();
        // SAFETY: `memory_type` gives memory that the host sees, which is not mapped yet; the place is ours.
        succeeded("memory", unsafe { (functions.map_memory)(device, made.memory, 0, WHOLE_SIZE, flags, place) })
    }

    fn make_commands(&self, made: &mut StagingBuffer) -> CopyResult<()> {
        let (device, functions) = (self.device, &self.functions);
        let info = CommandPoolCreateInfo { queue_family_index: made.family, ..CommandPoolCreateInfo::zeroed() };
        let fence = FenceCreateInfo::zeroed();
        // SAFETY: a device that is alive by the contract of `Pictures::begin`, and has a queue of the family; the info
        // and the place are ours.
        let result = unsafe { (functions.create_command_pool)(device, Ptr::to(&info), Ptr::NULL, out(&mut made.pool)) };
        succeeded("a command pool", result)?;
        let info = CommandBufferAllocateInfo {
            command_pool: made.pool,
            command_buffer_count: 1,
            ..CommandBufferAllocateInfo::zeroed()
        };
        // SAFETY: the pool was just made, and nobody else has it; the place is for one command buffer.
        let result = unsafe { (functions.allocate_command_buffers)(device, Ptr::to(&info), out(&mut made.commands)) };
        succeeded("a command buffer", result)?;
        // The loader does it for the application's own.
        // SAFETY: the loader's layer interface has a layer call this for each dispatchable object that it makes itself.
        succeeded("a command buffer", unsafe { (self.set_loader_data)(device, made.commands.0) })?;
        // SAFETY: as for the pool.
        let result = unsafe { (functions.create_fence)(device, Ptr::to(&fence), Ptr::NULL, out(&mut made.fence)) };
        succeeded("a fence", result)
    }

    /// A type of memory that the host reads, best through its caches.
    fn memory_type(&self, allowed: u32) -> Option<u32> {
        let memory = &self.physical.memory;
        let wanted = MemoryPropertyFlags::HOST_VISIBLE.0 | MemoryPropertyFlags::HOST_COHERENT.0;
        let flags = |it: u32| memory.memory_types[it as usize].property_flags.0;
        let fits = |it: &u32| allowed & 1 << it != 0 && flags(*it) & wanted == wanted;
        let all = || (0..memory.memory_type_count.min(32)).filter(fits);
        let cached = all().find(|it| flags(*it) & MemoryPropertyFlags::HOST_CACHED.0 != 0);
        cached.or_else(|| all().next())
    }

    /// The images become copies, and are behind that as they were.
    ///
    /// # Safety
    ///
    /// The last copy of the staging must be over. The images must be those of a present that was not passed on yet, so
    /// that they are in the layout for that, and large enough for the extent of their parts, as the staging must be for
    /// all.
    unsafe fn record(&self, staging: &StagingBuffer, parts: &[WindowCopy]) -> CopyResult<()> {
        let (functions, commands) = (&self.functions, staging.commands);
        let begin = CommandBufferBeginInfo {
            flags: CommandBufferUsageFlags::ONE_TIME_SUBMIT,
            ..CommandBufferBeginInfo::zeroed()
        };
        let none = CommandPoolResetFlags::default();
        // SAFETY: a pool of a staging that is ours alone, whose commands are over by the contract of this function.
        let result = unsafe { (functions.reset_command_pool)(self.device, staging.pool, none) };
        succeeded("a command buffer", result)?;
        // SAFETY: the one command buffer of that pool, which was just reset.
        succeeded("a command buffer", unsafe { (functions.begin_command_buffer)(commands, Ptr::to(&begin)) })?;
        // SAFETY: it is being recorded, and by the contract of this function the images are in the first layout.
        unsafe { self.change_layouts(commands, parts, (PRESENT_LAYOUT, COPY_LAYOUT)) };
        for part in parts {
            let region = BufferImageCopy { buffer_offset: part.offset, ..copy_region(part.extent) };
            let copy = functions.cmd_copy_image_to_buffer;
            // SAFETY: it is being recorded; the image is in this layout by now and has the usage, and by the contract
            // of this function image and buffer are large enough.
            unsafe { copy(commands, part.image, COPY_LAYOUT, staging.buffer, 1, Ptr::to(&region)) };
        }
        // SAFETY: it is being recorded, and the images are in the first layout by now.
        unsafe { self.change_layouts(commands, parts, (COPY_LAYOUT, PRESENT_LAYOUT)) };
        // SAFETY: it is being recorded.
        succeeded("a command buffer", unsafe { (functions.end_command_buffer)(commands) })
    }

    /// # Safety
    ///
    /// The command buffer must be one of ours that is being recorded, and the images must be in the first layout by
    /// then.
    unsafe fn change_layouts(
        &self,
        commands: CommandBuffer,
        parts: &[WindowCopy],
        layouts: (ImageLayout, ImageLayout),
    ) {
        let images: Vec<ImageMemoryBarrier> = parts.iter().map(|it| layout_barrier(it.image, layouts)).collect();
        // Makes the copies visible to the host.
        let copied = MemoryBarrier {
            src_access_mask: AccessFlags::TRANSFER_WRITE,
            dst_access_mask: AccessFlags::HOST_READ,
            ..MemoryBarrier::zeroed()
        };
        let all = PipelineStageFlags::ALL_COMMANDS;
        let and_host = PipelineStageFlags(all.0 | PipelineStageFlags::HOST.0);
        let (count, p_images) = (images.len() as u32, Ptr::to_slice(&images));
        let (none, barrier) = (DependencyFlags::default(), self.functions.cmd_pipeline_barrier);
        // SAFETY: the contract of this function; the barriers outlive the call.
        unsafe { barrier(commands, all, and_host, none, 1, Ptr::to(&copied), 0, Ptr::NULL, count, p_images) };
    }

    /// The staging must be one of this device whose copy is over: who has it knows, or the device is about to be
    /// destroyed.
    pub(super) fn destroy_staging(&self, staging_buffer: StagingBuffer) {
        let (device, functions) = (self.device, &self.functions);
        // SAFETY: objects that `staging` made on this device, or null, and by the invariant of the type nobody else has
        // them. Stagings are destroyed before they are submitted, or when their copy is over. The pool takes its
        // command buffer along, and freeing memory unmaps it.
        unsafe {
            (functions.destroy_fence)(device, staging_buffer.fence, Ptr::NULL);
            (functions.destroy_command_pool)(device, staging_buffer.pool, Ptr::NULL);
            (functions.destroy_buffer)(device, staging_buffer.buffer, Ptr::NULL);
            (functions.free_memory)(device, staging_buffer.memory, Ptr::NULL);
        }
    }
}

fn succeeded(what: &str, result: Result) -> CopyResult<()> {
    match result {
        Result::SUCCESS => Ok(()),
        result => Err(format!("there is no picture: {what} for it cannot be created: the driver returned {result:?}")),
    }
}

/// # Safety
///
/// `first` must lead to `count` elements, which stay unchanged while `'a` lasts.
unsafe fn slice<'a, T>(first: Ptr<T>, count: u32) -> &'a [T] {
    match count {
        0 => &[],
        // SAFETY: `first` leads to `count` elements while `'a` lasts, by the contract of this function.
        count => unsafe { std::slice::from_raw_parts(first.as_ptr(), count as usize) },
    }
}
