//! Copies what is about to be presented to where the host can read it.
//!
//! The copy is a submission of ours, on the queue of the present and inside of its call, so nobody else uses the queue
//! meanwhile, and the images belong to its family.

use std::sync::Arc;

use lavascope_abi::*;
use lavascope_picture::{Texels, region, transition};

use super::writer::{PATIENCE, Turn};
use super::{Pictures, Swapchain, lock};
use crate::fence::fence;
use crate::interface::out;

/// What begins a picture in a buffer is aligned to: more than any format needs.
const ALIGNMENT: u64 = 16;
const PRESENTED: ImageLayout = ImageLayout::PRESENT_SRC_KHR;
const COPIED: ImageLayout = ImageLayout::TRANSFER_SRC_OPTIMAL;

/// Why there is something, or else why there is nothing.
type Outcome<T> = core::result::Result<T, String>;

/// A frame that is being copied.
pub(super) struct Shot {
    pub(super) frame: u64,
    pub(super) parts: Vec<Part>,
    pub(super) staging: Staging,
    /// Signaled by the copy.
    pub(super) semaphore: Semaphore,
    /// Others may have their turn when it is written.
    pub(super) turn: Turn,
}

/// One of the windows of a frame.
pub(super) struct Part {
    pub(super) window: usize,
    pub(super) texels: Texels,
    pub(super) extent: Extent2D,
    /// Where it begins in the buffer.
    pub(super) offset: u64,
    swapchain: Arc<Swapchain>,
    index: u32,
    image: Image,
}

/// A buffer that the host can read, and what is needed to fill it.
#[derive(Default)]
pub(super) struct Staging {
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

impl Staging {
    /// What was copied.
    ///
    /// # Safety
    ///
    /// The copy must be over.
    pub(super) unsafe fn bytes(&self) -> &[u8] {
        let first = std::ptr::with_exposed_provenance::<u8>(self.address as usize);
        // SAFETY: mapped, and as large as the buffer; nobody writes by the caller's word.
        unsafe { std::slice::from_raw_parts(first, self.bytes as usize) }
    }
}

impl Pictures {
    /// Has a frame copied before it is presented; none where that cannot be, which is told.
    ///
    /// # Safety
    ///
    /// The parameters must be those of a `vkQueuePresentKHR` that was not passed on yet.
    pub(super) unsafe fn shoot(&'static self, queue: Queue, info: &PresentInfoKHR, frame: u64) -> Option<Shot> {
        let prepare = || {
            // SAFETY: the caller's word.
            let shot = unsafe { self.prepare(queue, info, frame) };
            shot.unwrap_or_else(|text| {
                self.say(&text);
                None
            })
        };
        let shot = fence("vkQueuePresentKHR", prepare, || None)?;
        // SAFETY: as above.
        let waits = unsafe { slice(info.p_wait_semaphores, info.wait_semaphore_count) };
        let Staging { commands, fence: done, .. } = shot.staging;
        // Not behind a fence of ours: from here on the present must know whether the semaphores were waited for.
        // SAFETY: as above; what is signaled is of ours, and nobody waits for it.
        let result = unsafe { self.submit(queue, waits, &[commands], &[shot.semaphore], done) };
        if result != Result::SUCCESS {
            let give_back = || {
                self.say(&format!("a picture cannot be copied: vkQueueSubmit gives {result:?}"));
                self.state().spares.push(shot.staging);
            };
            fence("vkQueuePresentKHR", give_back, || ());
            return None;
        }
        Some(shot)
    }

    /// A present did not take place: the application's semaphores are signaled again, as it finds them then.
    ///
    /// # Safety
    ///
    /// The parameters must be those of the present, whose shot signals the semaphore.
    pub(super) unsafe fn signal_again(&self, queue: Queue, info: &PresentInfoKHR, semaphore: Semaphore) {
        // SAFETY: the caller's word.
        unsafe {
            let signals = slice(info.p_wait_semaphores, info.wait_semaphore_count);
            self.submit(queue, &[semaphore], &[], signals, Fence(0));
        }
    }

    /// # Safety
    ///
    /// Nobody else may use the queue meanwhile, and all must be as `vkQueueSubmit` wants it.
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
        // SAFETY: the caller's word.
        unsafe { (self.functions.queue_submit)(queue, 1, Ptr::to(&info), fence) }
    }

    /// All that a submission needs; none where there is nothing to copy.
    unsafe fn prepare(&'static self, queue: Queue, info: &PresentInfoKHR, frame: u64) -> Outcome<Option<Shot>> {
        let family = self.family(queue)?;
        // SAFETY: the caller's word.
        let parts = unsafe { self.parts(info) }?;
        let (Some(first), Some(last)) = (parts.first(), parts.last()) else { return Ok(None) };
        let semaphore = self.semaphore(first)?;
        let bytes = last.offset + last.texels.bytes(last.extent);
        let turn =
            self.writer.turn(PATIENCE).ok_or("the device does not finish what it copied, so pictures are left out")?;
        let staging = self.staging(family, bytes)?;
        if let Err(text) = self.record(&staging, &parts) {
            self.destroy_staging(staging);
            return Err(text);
        }
        Ok(Some(Shot { frame, parts, staging, semaphore, turn }))
    }

    /// The family of a queue that can copy.
    fn family(&self, queue: Queue) -> Outcome<u32> {
        let family = self.state().queues.get(&queue.0).copied();
        let family =
            family.ok_or("a frame is presented on a queue that nobody asked for, so there is no picture of it")?;
        let flags = self.physical.families.get(family as usize).map_or(0, |it| it.0);
        let can_copy = QueueFlags::GRAPHICS.0 | QueueFlags::COMPUTE.0 | QueueFlags::TRANSFER.0;
        if flags & can_copy == 0 {
            return Err("frames are presented on a queue that cannot copy, so there are no pictures of them".into());
        }
        Ok(family)
    }

    /// What is copied; what cannot be is told.
    ///
    /// # Safety
    ///
    /// The info must be that of a valid present.
    unsafe fn parts(&self, info: &PresentInfoKHR) -> Outcome<Vec<Part>> {
        // SAFETY: the caller's word.
        let (swapchains, indices) = unsafe {
            (slice(info.p_swapchains, info.swapchain_count), slice(info.p_image_indices, info.swapchain_count))
        };
        let (mut parts, mut end) = (Vec::new(), 0_u64);
        for (window, (handle, index)) in swapchains.iter().zip(indices).enumerate() {
            let known = self.state().swapchains.get(&handle.0).cloned();
            let Some(swapchain) = known else {
                self.say("there are no pictures of swapchains that are not made by vkCreateSwapchainKHR");
                continue;
            };
            let texels = match swapchain.texels {
                Ok(it) => it,
                Err(why) => {
                    self.say(&format!("there are no pictures of a swapchain: {why}"));
                    continue;
                }
            };
            let image = self.image(&swapchain, *handle, *index)?;
            let (offset, extent, index) = (end.next_multiple_of(ALIGNMENT), swapchain.extent, *index);
            end = offset + texels.bytes(extent);
            parts.push(Part { window, texels, extent, offset, swapchain, index, image });
        }
        Ok(parts)
    }

    fn image(&self, swapchain: &Swapchain, handle: SwapchainKHR, index: u32) -> Outcome<Image> {
        let missing = || format!("a swapchain has no image {index}, so there is no picture of it");
        if swapchain.images.get().is_none() {
            let ask = self.next.get_swapchain_images_khr.ok_or_else(missing)?;
            let mut count = 0_u32;
            // SAFETY: a swapchain that is alive, and places of ours.
            unsafe { ask(self.device, handle, out(&mut count), Ptr::NULL) };
            let mut images = vec![Image(0); count as usize];
            let p_images = Ptr::new(images.as_mut_ptr().expose_provenance() as u64);
            // SAFETY: as above, with as many places as there are images.
            unsafe { ask(self.device, handle, out(&mut count), p_images) };
            // Whoever was faster has the same.
            _ = swapchain.images.set(images);
        }
        let images = swapchain.images.get().ok_or_else(missing)?;
        images.get(index as usize).copied().filter(|it| it.0 != 0).ok_or_else(missing)
    }

    /// What the present of an image waits for.
    fn semaphore(&self, part: &Part) -> Outcome<Semaphore> {
        if let Some(it) = lock(&part.swapchain.semaphores).get(&part.index) {
            return Ok(*it);
        }
        let (info, mut made) = (SemaphoreCreateInfo::zeroed(), Semaphore(0));
        // SAFETY: a device that is alive, and places of ours.
        let result =
            unsafe { (self.functions.create_semaphore)(self.device, Ptr::to(&info), Ptr::NULL, out(&mut made)) };
        succeeded("a semaphore", result)?;
        lock(&part.swapchain.semaphores).insert(part.index, made);
        Ok(made)
    }

    fn staging(&self, family: u32, bytes: u64) -> Outcome<Staging> {
        let mut state = self.state();
        let at = state.spares.iter().position(|it| it.family == family && it.bytes >= bytes);
        let spare = at.map(|it| state.spares.swap_remove(it));
        // What does not fit any more was of a smaller window.
        let others = if spare.is_none() { std::mem::take(&mut state.spares) } else { Vec::new() };
        drop(state);
        others.into_iter().for_each(|it| self.destroy_staging(it));
        if let Some(it) = spare {
            return Ok(it);
        }
        let mut made = Staging { family, bytes, ..Staging::default() };
        let filled = self.make_buffer(&mut made).and_then(|()| self.make_commands(&mut made));
        if let Err(text) = filled {
            self.destroy_staging(made);
            return Err(text);
        }
        Ok(made)
    }

    fn make_buffer(&self, made: &mut Staging) -> Outcome<()> {
        let (device, functions) = (self.device, &self.functions);
        let info =
            BufferCreateInfo { size: made.bytes, usage: BufferUsageFlags::TRANSFER_DST, ..BufferCreateInfo::zeroed() };
        let mut needs = MemoryRequirements::zeroed();
        // SAFETY: a device that is alive, and places of ours.
        unsafe {
            let result = (functions.create_buffer)(device, Ptr::to(&info), Ptr::NULL, out(&mut made.buffer));
            succeeded("a buffer", result)?;
            (functions.get_buffer_memory_requirements)(device, made.buffer, out(&mut needs));
        }
        let info = MemoryAllocateInfo {
            allocation_size: needs.size,
            memory_type_index: self.memory_type(needs.memory_type_bits).ok_or("no memory of the device is readable")?,
            ..MemoryAllocateInfo::zeroed()
        };
        let flags = MemoryMapFlags::default();
        // SAFETY: as above; a buffer without memory, and memory of a type that it allows.
        unsafe {
            let result = (functions.allocate_memory)(device, Ptr::to(&info), Ptr::NULL, out(&mut made.memory));
            succeeded("memory", result)?;
            succeeded("memory", (functions.bind_buffer_memory)(device, made.buffer, made.memory, 0))?;
            let place = out(&mut made.address).cast();
            succeeded("memory", (functions.map_memory)(device, made.memory, 0, WHOLE_SIZE, flags, place))
        }
    }

    fn make_commands(&self, made: &mut Staging) -> Outcome<()> {
        let (device, functions) = (self.device, &self.functions);
        let info = CommandPoolCreateInfo { queue_family_index: made.family, ..CommandPoolCreateInfo::zeroed() };
        let fence = FenceCreateInfo::zeroed();
        // SAFETY: a device that is alive, and places of ours.
        unsafe {
            let result = (functions.create_command_pool)(device, Ptr::to(&info), Ptr::NULL, out(&mut made.pool));
            succeeded("a command pool", result)?;
            let info = CommandBufferAllocateInfo {
                command_pool: made.pool,
                command_buffer_count: 1,
                ..CommandBufferAllocateInfo::zeroed()
            };
            let result = (functions.allocate_command_buffers)(device, Ptr::to(&info), out(&mut made.commands));
            succeeded("a command buffer", result)?;
            // The loader does it for the application's own.
            succeeded("a command buffer", (self.set_loader_data)(device, made.commands.0))?;
            let result = (functions.create_fence)(device, Ptr::to(&fence), Ptr::NULL, out(&mut made.fence));
            succeeded("a fence", result)
        }
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
    fn record(&self, staging: &Staging, parts: &[Part]) -> Outcome<()> {
        let (functions, commands) = (&self.functions, staging.commands);
        let begin = CommandBufferBeginInfo {
            flags: CommandBufferUsageFlags::ONE_TIME_SUBMIT,
            ..CommandBufferBeginInfo::zeroed()
        };
        let none = CommandPoolResetFlags::default();
        // SAFETY: a pool of ours, whose commands are over; structures of ours; images of the application that it is about
        // to present, so they are in the layout for that and nobody else uses them.
        unsafe {
            let result = (functions.reset_command_pool)(self.device, staging.pool, none);
            succeeded("a command buffer", result)?;
            succeeded("a command buffer", (functions.begin_command_buffer)(commands, Ptr::to(&begin)))?;
            self.change_layouts(commands, parts, (PRESENTED, COPIED));
            for part in parts {
                let region = BufferImageCopy { buffer_offset: part.offset, ..region(part.extent) };
                let copy = functions.cmd_copy_image_to_buffer;
                copy(commands, part.image, COPIED, staging.buffer, 1, Ptr::to(&region));
            }
            self.change_layouts(commands, parts, (COPIED, PRESENTED));
            succeeded("a command buffer", (functions.end_command_buffer)(commands))
        }
    }

    /// # Safety
    ///
    /// The images must be in the first layout, and the commands are being recorded.
    unsafe fn change_layouts(&self, commands: CommandBuffer, parts: &[Part], layouts: (ImageLayout, ImageLayout)) {
        let images: Vec<ImageMemoryBarrier> = parts.iter().map(|it| transition(it.image, layouts)).collect();
        // What was copied is for the host.
        let copied = MemoryBarrier {
            src_access_mask: AccessFlags::TRANSFER_WRITE,
            dst_access_mask: AccessFlags::HOST_READ,
            ..MemoryBarrier::zeroed()
        };
        let all = PipelineStageFlags::ALL_COMMANDS;
        let and_host = PipelineStageFlags(all.0 | PipelineStageFlags::HOST.0);
        let (count, p_images) = (images.len() as u32, Ptr::to_slice(&images));
        let (none, barrier) = (DependencyFlags::default(), self.functions.cmd_pipeline_barrier);
        // SAFETY: the caller's word.
        unsafe { barrier(commands, all, and_host, none, 1, Ptr::to(&copied), 0, Ptr::NULL, count, p_images) };
    }

    pub(super) fn destroy_staging(&self, it: Staging) {
        let (device, functions) = (self.device, &self.functions);
        // SAFETY: objects of ours, or none, that nobody uses; the pool has the command buffer, and freeing memory
        // unmaps it.
        unsafe {
            (functions.destroy_fence)(device, it.fence, Ptr::NULL);
            (functions.destroy_command_pool)(device, it.pool, Ptr::NULL);
            (functions.destroy_buffer)(device, it.buffer, Ptr::NULL);
            (functions.free_memory)(device, it.memory, Ptr::NULL);
        }
    }
}

fn succeeded(what: &str, result: Result) -> Outcome<()> {
    match result {
        Result::SUCCESS => Ok(()),
        result => Err(format!("there is no picture, since {what} for it cannot be made: the driver gives {result:?}")),
    }
}

/// # Safety
///
/// There must be so many, and they must stay as long as they are looked at.
unsafe fn slice<'a, T>(first: Ptr<T>, count: u32) -> &'a [T] {
    match count {
        0 => &[],
        // SAFETY: the caller's word.
        count => unsafe { std::slice::from_raw_parts(first.as_ptr(), count as usize) },
    }
}
