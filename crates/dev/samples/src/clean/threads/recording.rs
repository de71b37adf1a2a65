//! Threads record many commands, each into a command buffer of its own, and submit none of them: only the processor's
//! work is measured.

use std::thread;

use ash::vk;
use lavascope_test_support::TestRng;

use crate::Sample;
use crate::arguments::SampleOptions;
use crate::common::{Buffer, Gpu, MemoryPlacement, Needs};
use crate::failure::Failure;

pub(crate) const SAMPLE: Sample = Sample {
    name: "recording",
    about: "Records 10,000 commands a frame on each thread, and submits none of them.",
    run,
};

const FORMAT: vk::Format = vk::Format::R8G8B8A8_UNORM;
const EXTENT: vk::Extent2D = vk::Extent2D { width: 64, height: 64 };
/// Each with four commands before it.
const DRAWS: u32 = 2000;
const BUFFER_SIZE: u32 = 1 << 16;

fn run(options: &SampleOptions) -> Result<(), Failure> {
    let gpu = Gpu::new(&Needs::NOTHING)?;
    let (threads, frames) = (options.threads.unwrap_or(2), options.frames.unwrap_or(2));
    let scene = RecordingScene::new(&gpu)?;
    let recorded: u64 = thread::scope(|scope| {
        let scene = &scene;
        let seed = |index: u32| options.seed.wrapping_mul(1000).wrapping_add(index.into());
        let start = |index| scope.spawn(move || scene.record(frames, TestRng::new(seed(index))));
        let all: Vec<_> = (0..threads).map(start).collect();
        let ended = || Failure::Wrong("a thread ended early".to_owned());
        all.into_iter().map(|it| it.join().map_err(|_| ended())?).sum::<Result<u64, Failure>>()
    })?;
    // All that the device gets to do.
    gpu.run_once("nothing", |_| {})?;
    let want = u64::from(threads) * u64::from(frames) * u64::from(DRAWS);
    options.check.number("draws", recorded, want..want + 1)
}

/// Shared by all threads and constant.
struct RecordingScene<'a> {
    gpu: &'a Gpu,
    render_pass: vk::RenderPass,
    framebuffer: vk::Framebuffer,
    layout: vk::PipelineLayout,
    pipeline: vk::Pipeline,
    vertices: Buffer,
}

impl<'a> RecordingScene<'a> {
    fn new(gpu: &'a Gpu) -> Result<RecordingScene<'a>, Failure> {
        let render_pass = gpu.render_pass(FORMAT)?;
        let (layout, pipeline) = gpu.tile_pipeline(render_pass)?;
        let usage = vk::ImageUsageFlags::COLOR_ATTACHMENT | vk::ImageUsageFlags::TRANSFER_SRC;
        let canvas = gpu.image("canvas", FORMAT, EXTENT, 1, usage)?;
        let framebuffer = gpu.framebuffer(render_pass, &[canvas])?;
        let usage = vk::BufferUsageFlags::VERTEX_BUFFER;
        let vertices = gpu.buffer("vertices", BUFFER_SIZE.into(), usage, MemoryPlacement::Host)?;
        Ok(RecordingScene { gpu, render_pass, framebuffer, layout, pipeline, vertices })
    }

    /// One thread: frame after frame into the same command buffer. Returns how many draws those were.
    fn record(&self, frames: u32, mut random: TestRng) -> Result<u64, Failure> {
        let gpu = self.gpu;
        // `vkBeginCommandBuffer` resets a command buffer without any other thread. A reset of the pool would make all
        // threads wait for each other in a trace.
        let info = vk::CommandPoolCreateInfo::default()
            .flags(vk::CommandPoolCreateFlags::RESET_COMMAND_BUFFER)
            .queue_family_index(gpu.main.family);
        // SAFETY: a live device, and a family that it has (lifetime).
        let pool = unsafe { gpu.device.create_command_pool(&info, None)? };
        let commands = gpu.command_buffer(pool, vk::CommandBufferLevel::PRIMARY)?;
        let mut draws = 0;
        for _ in 0..frames {
            gpu.record(commands, || draws += self.draw(commands, &mut random))?;
        }
        // SAFETY: the pool is this thread's, and its command buffer was never submitted (lifetime, owner).
        unsafe { gpu.device.destroy_command_pool(pool, None) };
        Ok(draws)
    }

    fn draw(&self, commands: vk::CommandBuffer, random: &mut TestRng) -> u64 {
        let (device, clear) = (&self.gpu.device, [vk::ClearValue::default()]);
        let begin = vk::RenderPassBeginInfo::default()
            .render_pass(self.render_pass)
            .framebuffer(self.framebuffer)
            .render_area(EXTENT.into())
            .clear_values(&clear);
        // SAFETY: live objects, recorded by this thread; the vertices of each draw lie in the buffer (lifetime, owner).
        unsafe {
            device.cmd_begin_render_pass(commands, &begin, vk::SubpassContents::INLINE);
            device.cmd_bind_pipeline(commands, vk::PipelineBindPoint::GRAPHICS, self.pipeline);
            for _ in 0..DRAWS {
                let (width, height) = (1 + random.below(EXTENT.width), 1 + random.below(EXTENT.height));
                let viewport = vk::Viewport { width: width as f32, height: height as f32, ..vk::Viewport::default() };
                device.cmd_set_viewport(commands, 0, &[viewport]);
                let scissor = vk::Rect2D { extent: vk::Extent2D { width, height }, ..vk::Rect2D::default() };
                device.cmd_set_scissor(commands, 0, &[scissor]);
                let offset = random.below(1024_u64) * 16;
                device.cmd_bind_vertex_buffers(commands, 0, &[self.vertices.handle], &[offset]);
                let constants = [random.next_u64().to_ne_bytes(), random.next_u64().to_ne_bytes()].concat();
                device.cmd_push_constants(commands, self.layout, vk::ShaderStageFlags::VERTEX, 0, &constants);
                device.cmd_draw(commands, 3 * (1 + random.below(100)), 1, random.below(1000), 0);
            }
            device.cmd_end_render_pass(commands);
        }
        u64::from(DRAWS)
    }
}
