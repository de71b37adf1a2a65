//! The host writes memory that stays mapped, for the next frame, while the device works on the frames before. The memory
//! is coherent: no call of Vulkan says that the host has written.
//!
//! Two frames are in flight, each with a slot of its own in the same page, and with a fence. With the fault, the host
//! fills the slot of a frame before it waits for the fence of the frame that used the slot last.

use ash::vk;

use crate::arguments::SampleOptions;
use crate::common::{Buffer, MemoryPlacement, scope, shader};
use crate::failure::Failure;
use crate::faults::bound_pipeline::{BoundPipeline, DYNAMIC, RENDERING, ShaderResource, attachment};
use crate::faults::commands::draws::{CORNERS, GREEN_FLOATS, corner_pipeline};
use crate::faults::context::{EXTENT, FaultContext, GREEN_WORD, SIDE, SIZE};
use crate::faults::faults;

faults! {
    uniforms: "mapped-uniforms", "the host changes a uniform buffer that a frame in flight still reads.",
    vertices: "mapped-vertices", "the host changes vertices that a frame in flight still reads.",
    staging: "mapped-staging", "the host changes a staging buffer that a frame in flight still copies.",
    parameters: "mapped-indirect", "the host changes parameters of a draw that a frame in flight still reads.",
}

const FRAMES: usize = 6;
const BLUE_FLOATS: [u32; 4] = [0, 0, 0x3F80_0000, 0x3F80_0000];

/// One allocation that stays mapped, with a buffer for each frame in flight.
struct MappedSlots {
    slots: [Buffer; 2],
    /// Words from one to the next.
    stride: usize,
    address: *mut u32,
}

impl MappedSlots {
    fn new(lab: &FaultContext, name: &str, usage: vk::BufferUsageFlags) -> Result<MappedSlots, Failure> {
        let info = vk::BufferCreateInfo::default().size(SIZE).usage(usage);
        // SAFETY: `info` lives until the calls return, and the buffers to the end (lifetime).
        let create = || unsafe { lab.device.create_buffer(&info, None) };
        let handles = [lab.destroy_at_end(create()?), lab.destroy_at_end(create()?)];
        // SAFETY: live buffers (lifetime).
        let mut requirements = unsafe { lab.device.get_buffer_memory_requirements(handles[0]) };
        let stride = requirements.size.next_multiple_of(requirements.alignment);
        requirements.size = 2 * stride;
        let memory = lab.destroy_at_end(lab.allocate(name, requirements, MemoryPlacement::Host)?);
        // SAFETY: memory and buffers are new, and each buffer has its part of the memory, at its alignment
        // (VUID-vkBindBufferMemory-memoryOffset-01036, -size-01037; lifetime). The memory is mapped once, to the end.
        let address = unsafe {
            lab.device.bind_buffer_memory(handles[0], memory, 0)?;
            lab.device.bind_buffer_memory(handles[1], memory, stride)?;
            lab.device.map_memory(memory, 0, vk::WHOLE_SIZE, vk::MemoryMapFlags::empty())?.cast::<u32>()
        };
        let slot = |at: usize| Buffer { handle: lab.name(handles[at], &format!("{name} {at}")), memory, size: SIZE };
        Ok(MappedSlots { slots: [slot(0), slot(1)], stride: stride as usize / 4, address })
    }

    fn write(&self, slot: usize, words: &[u32]) {
        assert!(slot < 2 && words.len() as u64 * 4 <= SIZE, "the words lie in the slot");
        // SAFETY: the memory stays mapped as a whole, and the slot lies in it, by the assertion. With the fault the
        // device reads it meanwhile: any value is a valid word for it. Only this thread writes.
        (0..).zip(words).for_each(|(at, word)| unsafe {
            self.address.add(slot * self.stride + at).write_volatile(*word);
        });
    }
}

/// Submits frames, each with the commands of its slot, after the host has written the words of the frame.
fn run_frames(
    lab: &FaultContext,
    slots: &MappedSlots,
    words: impl Fn(usize) -> Vec<u32>,
    record: impl Fn(vk::CommandBuffer, usize),
) -> Result<(), Failure> {
    let record_slot = |slot: usize| {
        lab.record_new(lab.main, &format!("frame in slot {slot}"), |commands| {
            // The frames use the same picture.
            lab.memory_barrier(commands, scope::ALL, scope::ALL);
            record(commands, slot);
        })
    };
    let commands = [record_slot(0)?, record_slot(1)?];
    let signaled = vk::FenceCreateFlags::SIGNALED;
    let fences = [lab.fence(signaled)?, lab.fence(signaled)?];
    for frame in 0..FRAMES {
        let slot = frame % 2;
        if lab.is_fixed() {
            lab.wait(fences[slot])?;
        }
        slots.write(slot, &words(frame));
        if !lab.is_fixed() {
            lab.wait(fences[slot])?;
        }
        // SAFETY: the fence was waited for, so no queue uses it (VUID-vkResetFences-pFences-01123; owner).
        unsafe { lab.device.reset_fences(&[fences[slot]]) }?;
        lab.submit(lab.main, &vk::SubmitInfo::default().command_buffers(&[commands[slot]]), fences[slot])?;
    }
    lab.wait(fences[0])?;
    lab.wait(fences[1])
}

/// The last frame is green, those before are not.
fn paint_of(frame: usize) -> Vec<u32> {
    if frame + 1 == FRAMES { GREEN_FLOATS.to_vec() } else { BLUE_FLOATS.map(|it| it + frame as u32).to_vec() }
}

/// Frames that draw a picture, which must be green at the end.
fn draw_frames(
    lab: &FaultContext,
    slots: &MappedSlots,
    words: impl Fn(usize) -> Vec<u32>,
    draw: impl Fn(vk::CommandBuffer, usize),
) -> Result<(), Failure> {
    let [canvas] = lab.color_images(["canvas"])?;
    run_frames(lab, slots, words, |commands, slot| {
        let color = [attachment(&canvas, vk::AttachmentLoadOp::CLEAR)];
        lab.render(commands, &color, || draw(commands, slot));
    })?;
    lab.expect_texels(&canvas, scope::COLOR_WRITE, GREEN_WORD)
}

fn uniforms(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &RENDERING)?;
    let slots = MappedSlots::new(&lab, "paint", vk::BufferUsageFlags::UNIFORM_BUFFER)?;
    let program = |slot: usize| {
        let bound = [ShaderResource::Uniform(&slots.slots[slot])];
        BoundPipeline::graphics(&lab, DYNAMIC, shader!("uniform.frag"), &bound)
    };
    let programs = [program(0)?, program(1)?];
    draw_frames(&lab, &slots, paint_of, |commands, slot| programs[slot].draw(&lab, commands))
}

fn vertices(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &RENDERING)?;
    let slots = MappedSlots::new(&lab, "vertices", vk::BufferUsageFlags::VERTEX_BUFFER)?;
    let pipeline = corner_pipeline(&lab)?;
    // The picture grows until the last frame fills it.
    let words = |frame: usize| {
        let part = (frame + 1) as f32 / FRAMES as f32;
        CORNERS.map(|it| (it * part).to_bits()).to_vec()
    };
    draw_frames(&lab, &slots, words, |commands, slot| {
        lab.set_viewport_and_scissor(commands, EXTENT);
        // SAFETY: live objects, recorded by this thread (lifetime, owner).
        unsafe {
            lab.device.cmd_bind_pipeline(commands, vk::PipelineBindPoint::GRAPHICS, pipeline);
            lab.device.cmd_bind_vertex_buffers(commands, 0, &[slots.slots[slot].handle], &[0]);
            lab.device.cmd_draw(commands, 6, 1, 0, 0);
        }
    })
}

fn staging(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &RENDERING)?;
    let slots = MappedSlots::new(&lab, "upload", vk::BufferUsageFlags::TRANSFER_SRC)?;
    let [texture] = lab.color_images(["texture"])?;
    let words = |frame: usize| {
        let color = if frame + 1 == FRAMES { GREEN_WORD } else { 0xFF80_0000 + frame as u32 };
        vec![color; (SIDE * SIDE) as usize]
    };
    run_frames(&lab, &slots, words, |commands, slot| lab.write_texels(commands, &slots.slots[slot], &texture))?;
    lab.expect_texels(&texture, scope::COPY_WRITE, GREEN_WORD)
}

fn parameters(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &RENDERING)?;
    let slots = MappedSlots::new(&lab, "parameters", vk::BufferUsageFlags::INDIRECT_BUFFER)?;
    let program = BoundPipeline::graphics(&lab, DYNAMIC, shader!("green.frag"), &[])?;
    // One triangle more from frame to frame, and both in the last one.
    let words = |frame: usize| vec![if frame + 1 == FRAMES { 6 } else { frame as u32 % 3 }, 1, 0, 0];
    draw_frames(&lab, &slots, words, |commands, slot| {
        program.bind(&lab, commands, &[]);
        // SAFETY: live objects, recorded by this thread (lifetime, owner).
        unsafe { lab.device.cmd_draw_indirect(commands, slots.slots[slot].handle, 0, 1, 16) };
    })
}
