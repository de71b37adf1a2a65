//! An image is shown before it is drawn, or drawn while it is still shown.

use ash::vk;

use crate::arguments::SampleOptions;
use crate::common::{BarrierScope, Buffer, MemoryPlacement, SampleImage, Screen, XcbWindow, scope};
use crate::failure::Failure;
use crate::faults::context::{FaultContext, GREEN};
use crate::faults::faults;

faults! {
    present: "present", "an image is presented while it may still be drawn.",
    acquire: "acquire", "an image is cleared before the submission waits for its acquire: it may still be shown.",
    unwaited: "acquire-wait", "an image is cleared by a submission that does not wait for its acquire at all.",
}

const TARGET: vk::ImageLayout = vk::ImageLayout::TRANSFER_DST_OPTIMAL;
const SOURCE: vk::ImageLayout = vk::ImageLayout::TRANSFER_SRC_OPTIMAL;
/// The stage of the semaphore's wait, so that the change of layout happens after it.
const ACQUIRED: BarrierScope =
    BarrierScope { stages: vk::PipelineStageFlags::TRANSFER, access: vk::AccessFlags::empty() };

/// Which of the two waits there are.
struct PresentWaits {
    /// The stages that wait for the acquire; none: a submission behind it waits.
    stages: Option<vk::PipelineStageFlags>,
    /// How many semaphores the presentation waits for.
    drawn: usize,
}

fn present(options: &SampleOptions) -> Result<(), Failure> {
    present_one_image(options, |lab| PresentWaits { stages: Some(ACQUIRED.stages), drawn: lab.planted_or_fixed(0, 1) })
}

fn acquire(options: &SampleOptions) -> Result<(), Failure> {
    let late = vk::PipelineStageFlags::COLOR_ATTACHMENT_OUTPUT;
    present_one_image(options, |lab| PresentWaits {
        stages: Some(lab.planted_or_fixed(late, ACQUIRED.stages)),
        drawn: 1,
    })
}

fn unwaited(options: &SampleOptions) -> Result<(), Failure> {
    present_one_image(options, |lab| PresentWaits {
        stages: lab.planted_or_fixed(None, Some(ACQUIRED.stages)),
        drawn: 1,
    })
}

/// Acquires, clears, copies and presents one image.
fn present_one_image(
    options: &SampleOptions,
    waits: impl FnOnce(&FaultContext) -> PresentWaits,
) -> Result<(), Failure> {
    let window = XcbWindow::if_needed()?;
    let lab = FaultContext::of(Screen::gpu(window.as_ref())?, options);
    let screen = Screen::new(&lab, window.as_ref())?;
    if !screen.is_readable {
        return Err(Failure::Unsupported("the surface has images that cannot be copied".to_owned()));
    }
    let (acquired, fence) = ([lab.semaphore("acquired")?], lab.fence(vk::FenceCreateFlags::empty())?);
    // SAFETY: a new semaphore, and this thread owns the swapchain (owner).
    let (index, _) =
        unsafe { screen.swapchains.acquire_next_image(screen.swapchain, u64::MAX, acquired[0], vk::Fence::null())? };
    let (image, waits) = (screen.images[index as usize], waits(&lab));
    let size = u64::from(image.extent.width * image.extent.height * 4);
    let copy = lab.buffer("copy", size, vk::BufferUsageFlags::TRANSFER_DST, MemoryPlacement::Host)?;
    let commands = [lab.record_new(lab.main, "frame", |commands| clear(&lab, commands, &image, &copy))?];
    let drawn = &screen.drawn[index as usize..][..waits.drawn];
    let submit = vk::SubmitInfo::default().command_buffers(&commands).signal_semaphores(drawn);
    let stages = [waits.stages.unwrap_or(ACQUIRED.stages)];
    if waits.stages.is_some() {
        lab.submit(lab.main, &submit.wait_semaphores(&acquired).wait_dst_stage_mask(&stages), fence)?;
    } else {
        lab.submit(lab.main, &submit, fence)?;
        let late = vk::SubmitInfo::default().wait_semaphores(&acquired).wait_dst_stage_mask(&stages);
        lab.submit(lab.main, &late, vk::Fence::null())?;
    }
    let (swapchains, indices) = ([screen.swapchain], [index]);
    let present = vk::PresentInfoKHR::default().wait_semaphores(drawn).swapchains(&swapchains);
    // SAFETY: the image was acquired, and this thread owns the queue (owner).
    unsafe { screen.swapchains.queue_present(lab.main.handle, &present.image_indices(&indices)) }?;
    lab.wait(fence)?;
    let words = lab.read(&copy)?;
    lab.expect_words(&words, &vec![screen.texel([0, 255, 0, 255]); words.len()])
}

fn clear(lab: &FaultContext, commands: vk::CommandBuffer, image: &SampleImage, copy: &Buffer) {
    lab.image_barrier(commands, image, (ACQUIRED, vk::ImageLayout::UNDEFINED), (scope::COPY_WRITE, TARGET));
    // SAFETY: live objects, recorded by this thread (lifetime, owner).
    unsafe { lab.device.cmd_clear_color_image(commands, image.handle, TARGET, &GREEN, &[image.range()]) };
    lab.image_barrier(commands, image, (scope::COPY_WRITE, TARGET), (scope::COPY_READ, SOURCE));
    let region = [image.buffer_copy_region(0, 0)];
    // SAFETY: live objects, recorded by this thread (lifetime, owner).
    unsafe { lab.device.cmd_copy_image_to_buffer(commands, image.handle, SOURCE, copy.handle, &region) };
    lab.buffer_barrier(commands, copy, scope::COPY_WRITE, scope::HOST_READ);
    let shown = (scope::PRESENTED, vk::ImageLayout::PRESENT_SRC_KHR);
    lab.image_barrier(commands, image, (scope::COPY_READ, SOURCE), shown);
}
