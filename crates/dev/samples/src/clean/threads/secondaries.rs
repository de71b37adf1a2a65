//! Threads record secondary command buffers in parallel, frame by frame; the main thread puts them together.
//!
//! Two frames are in flight. Each thread has a command pool per frame in flight and makes and destroys a vertex
//! buffer per frame. The picture is a checkerboard of tiles, of which each thread draws every n-th row.

use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use ash::vk;

use crate::Sample;
use crate::arguments::SampleOptions;
use crate::common::{Buffer, Gpu, MemoryPlacement, Needs, SampleImage};
use crate::failure::Failure;

pub(crate) const SAMPLE: Sample = Sample {
    name: "threads",
    about: "Records secondary command buffers on many threads, with two frames in flight.",
    run,
};

const FORMAT: vk::Format = vk::Format::R8G8B8A8_UNORM;
const EXTENT: vk::Extent2D = vk::Extent2D { width: 64, height: 64 };
const IN_FLIGHT: usize = 2;
/// Tiles per row and column.
const TILES: u32 = 8;
const CORNERS: usize = 6;

fn run(options: &SampleOptions) -> Result<(), Failure> {
    let gpu = Gpu::new(&Needs::NOTHING)?;
    let (threads, frames) = (options.threads.unwrap_or(4), options.frames.unwrap_or(4));
    let scene = TileScene::new(&gpu)?;
    let drawn = thread::scope(|scope| {
        let (to_main, from_workers) = channel();
        let mut to_workers = Vec::new();
        for index in 0..threads {
            let (sender, jobs) = channel();
            to_workers.push(sender);
            let (to_main, scene) = (to_main.clone(), &scene);
            scope.spawn(move || {
                let worker = RecordingWorker { scene, index, threads, frame_resources: Vec::new() };
                // The main thread learns of a failed worker from the channel.
                if let Err(failure) = worker.work(&jobs, &to_main) {
                    let _ = to_main.send(Err(failure));
                }
            });
        }
        let director = FrameSubmitter { scene: &scene, to_workers, from_workers };
        director.draw(frames)
    })?;
    let picture = gpu.picture(&drawn)?;
    picture.save(options)?;
    let tile = EXTENT.width / TILES;
    options
        .check
        .picture(&picture, 1, |x, y| color(frames - 1, x / tile, y / tile).map(|it| (it * 255.0).round() as u8))
}

/// The color of a tile in a frame; no two neighbors have the same.
fn color(frame: u32, column: u32, row: u32) -> [f32; 4] {
    let part = |it: u32| (it % 16) as f32 / 15.0;
    [part(column * 2 + frame), part(row * 2 + frame), part(column + row), 1.0]
}

/// Shared by all threads and constant.
struct TileScene<'a> {
    gpu: &'a Gpu,
    render_pass: vk::RenderPass,
    layout: vk::PipelineLayout,
    pipeline: vk::Pipeline,
    targets: Vec<(SampleImage, vk::Framebuffer)>,
    /// Held by the thread that destroys what it used.
    destroy_lock: Mutex<()>,
}

impl<'a> TileScene<'a> {
    fn new(gpu: &'a Gpu) -> Result<TileScene<'a>, Failure> {
        let render_pass = gpu.render_pass(FORMAT)?;
        let (layout, pipeline) = gpu.tile_pipeline(render_pass)?;
        let usage = vk::ImageUsageFlags::COLOR_ATTACHMENT | vk::ImageUsageFlags::TRANSFER_SRC;
        let target = |at| {
            let image = gpu.image(&format!("canvas {at}"), FORMAT, EXTENT, 1, usage)?;
            Ok((image, gpu.framebuffer(render_pass, &[image])?))
        };
        let targets = (0..IN_FLIGHT).map(target).collect::<Result<Vec<_>, Failure>>()?;
        Ok(TileScene { gpu, render_pass, layout, pipeline, targets, destroy_lock: Mutex::new(()) })
    }
}

/// The answer of a worker: its number, and what it recorded.
type RecordedSecondary = Result<(u32, vk::CommandBuffer), Failure>;

/// The main thread: distributes frames, collects the recordings, and submits.
struct FrameSubmitter<'a> {
    scene: &'a TileScene<'a>,
    to_workers: Vec<Sender<u32>>,
    from_workers: Receiver<RecordedSecondary>,
}

impl FrameSubmitter<'_> {
    /// The image of the last frame, after everything is done.
    fn draw(self, frames: u32) -> Result<SampleImage, Failure> {
        let gpu = self.scene.gpu;
        let mut slots = Vec::new();
        for _ in 0..IN_FLIGHT {
            let pool = gpu.command_pool(gpu.main)?;
            let commands = gpu.command_buffer(pool, vk::CommandBufferLevel::PRIMARY)?;
            slots.push((pool, commands, gpu.fence(vk::FenceCreateFlags::SIGNALED)?));
        }
        for frame in 0..frames {
            let (pool, commands, fence) = slots[frame as usize % IN_FLIGHT];
            gpu.wait(fence)?;
            // SAFETY: the fence of the last use was waited for, and all are this thread's (lifetime, owner).
            unsafe {
                gpu.device.reset_fences(&[fence])?;
                gpu.device.reset_command_pool(pool, vk::CommandPoolResetFlags::empty())?;
            }
            let secondaries = self.secondaries(frame)?;
            gpu.record(commands, || self.frame(commands, frame, &secondaries))?;
            gpu.submit(gpu.main, &vk::SubmitInfo::default().command_buffers(&[commands]), fence)?;
        }
        for (_, _, fence) in slots {
            gpu.wait(fence)?;
        }
        Ok(self.scene.targets[(frames as usize - 1) % IN_FLIGHT].0)
    }

    /// The recordings of the threads for a frame, in the order of the threads.
    fn secondaries(&self, frame: u32) -> Result<Vec<vk::CommandBuffer>, Failure> {
        for worker in &self.to_workers {
            // A worker that has ended has sent its reason.
            let _ = worker.send(frame);
        }
        let mut recorded = Vec::new();
        for _ in &self.to_workers {
            let gone = || Failure::Wrong("a thread ended early".to_owned());
            recorded.push(self.from_workers.recv().map_err(|_| gone())??);
        }
        recorded.sort_by_key(|(index, _)| *index);
        Ok(recorded.into_iter().map(|(_, commands)| commands).collect())
    }

    fn frame(&self, commands: vk::CommandBuffer, frame: u32, secondaries: &[vk::CommandBuffer]) {
        let (gpu, clear) = (self.scene.gpu, [vk::ClearValue::default()]);
        let (_, framebuffer) = self.scene.targets[frame as usize % IN_FLIGHT];
        let begin = vk::RenderPassBeginInfo::default()
            .render_pass(self.scene.render_pass)
            .framebuffer(framebuffer)
            .render_area(EXTENT.into())
            .clear_values(&clear);
        gpu.labeled(commands, &format!("frame {frame}"), || {
            // SAFETY: live objects; the threads sent the secondaries and touch them no more (lifetime, owner).
            unsafe {
                let contents = vk::SubpassContents::SECONDARY_COMMAND_BUFFERS;
                gpu.device.cmd_begin_render_pass(commands, &begin, contents);
                gpu.device.cmd_execute_commands(commands, secondaries);
                gpu.device.cmd_end_render_pass(commands);
            }
        });
    }
}

/// One recording thread.
struct RecordingWorker<'a> {
    scene: &'a TileScene<'a>,
    index: u32,
    threads: u32,
    /// One per frame in flight.
    frame_resources: Vec<FrameResources>,
}

/// The objects that a thread uses for a frame, and again some frames later.
struct FrameResources {
    pool: vk::CommandPool,
    commands: vk::CommandBuffer,
    /// The vertices of the last frame in this slot.
    vertices: Option<Buffer>,
}

impl RecordingWorker<'_> {
    fn work(mut self, jobs: &Receiver<u32>, results: &Sender<RecordedSecondary>) -> Result<(), Failure> {
        let gpu = self.scene.gpu;
        for _ in 0..IN_FLIGHT {
            let pool = gpu.name(gpu.unowned_command_pool(gpu.main)?, &format!("pool of thread {}", self.index));
            let commands = gpu.command_buffer(pool, vk::CommandBufferLevel::SECONDARY)?;
            self.frame_resources.push(FrameResources { pool, commands, vertices: None });
        }
        for frame in jobs {
            let commands = self.record(frame)?;
            // The director ends only if it failed.
            let _ = results.send(Ok((self.index, commands)));
        }
        // The director has waited for all frames, and with it the channel ended. One thread after the other: pools whose
        // command buffers one primary executed, destroyed at once, crash older Khronos layers (1.3.239, one run in 100).
        let _in_turn = self.scene.destroy_lock.lock();
        for slot in self.frame_resources {
            slot.vertices.into_iter().for_each(|it| gpu.destroy_buffer(it));
            // SAFETY: the pool is this thread's, and its command buffers are done (lifetime, owner).
            unsafe { gpu.device.destroy_command_pool(slot.pool, None) };
        }
        Ok(())
    }

    fn record(&mut self, frame: u32) -> Result<vk::CommandBuffer, Failure> {
        let gpu = self.scene.gpu;
        let rows: Vec<u32> = (self.index..TILES).step_by(self.threads as usize).collect();
        let vertices = self.vertices(&rows)?;
        let slot = &mut self.frame_resources[frame as usize % IN_FLIGHT];
        // The director asks for a frame only after it waited for the last one in this slot.
        if let Some(old) = std::mem::replace(&mut slot.vertices, vertices) {
            gpu.destroy_buffer(old);
        }
        let (_, framebuffer) = self.scene.targets[frame as usize % IN_FLIGHT];
        let inheritance =
            vk::CommandBufferInheritanceInfo::default().render_pass(self.scene.render_pass).framebuffer(framebuffer);
        let flags = vk::CommandBufferUsageFlags::ONE_TIME_SUBMIT | vk::CommandBufferUsageFlags::RENDER_PASS_CONTINUE;
        let begin = vk::CommandBufferBeginInfo::default().flags(flags).inheritance_info(&inheritance);
        let commands = slot.commands;
        // SAFETY: the pool is this thread's, and its command buffer is done (lifetime, owner).
        unsafe {
            gpu.device.reset_command_pool(slot.pool, vk::CommandPoolResetFlags::empty())?;
            gpu.device.begin_command_buffer(commands, &begin)?;
        }
        if let Some(vertices) = &slot.vertices {
            gpu.labeled(commands, &format!("thread {}", self.index), || {
                self.scene.draw(commands, vertices, frame, &rows);
            });
        }
        // SAFETY: `begin_command_buffer` above put it into the recording state, and its pool is this thread's (owner).
        unsafe { gpu.device.end_command_buffer(commands) }?;
        Ok(commands)
    }

    /// The corners of the tiles of some rows; nothing for no rows.
    fn vertices(&self, rows: &[u32]) -> Result<Option<Buffer>, Failure> {
        let mut floats = Vec::new();
        for (row, column) in rows.iter().flat_map(|row| (0..TILES).map(move |column| (*row, column))) {
            for (x, y) in [(0, 0), (1, 0), (0, 1), (0, 1), (1, 0), (1, 1)] {
                let place = |it: u32| it as f32 * 2.0 / TILES as f32 - 1.0;
                floats.extend([place(column + x), place(row + y)]);
            }
        }
        if floats.is_empty() {
            return Ok(None);
        }
        let (gpu, size) = (self.scene.gpu, size_of_val(floats.as_slice()) as u64);
        let buffer = gpu.unowned_buffer("tiles", size, vk::BufferUsageFlags::VERTEX_BUFFER, MemoryPlacement::Host)?;
        gpu.write_floats(&buffer, &floats)?;
        Ok(Some(buffer))
    }
}

impl TileScene<'_> {
    /// Draws the tiles of some rows, one call each.
    fn draw(&self, commands: vk::CommandBuffer, vertices: &Buffer, frame: u32, rows: &[u32]) {
        let device = &self.gpu.device;
        self.gpu.set_viewport_and_scissor(commands, EXTENT);
        // SAFETY: live objects, recorded by this thread (lifetime, owner).
        unsafe {
            device.cmd_bind_pipeline(commands, vk::PipelineBindPoint::GRAPHICS, self.pipeline);
            device.cmd_bind_vertex_buffers(commands, 0, &[vertices.handle], &[0]);
        }
        let tiles = rows.iter().flat_map(|row| (0..TILES).map(move |column| (*row, column)));
        for (at, (row, column)) in tiles.enumerate() {
            let constants: Vec<u8> = color(frame, column, row).into_iter().flat_map(f32::to_ne_bytes).collect();
            // SAFETY: live objects, recorded by this thread (lifetime, owner).
            unsafe {
                device.cmd_push_constants(commands, self.layout, vk::ShaderStageFlags::VERTEX, 0, &constants);
                device.cmd_draw(commands, CORNERS as u32, 1, (at * CORNERS) as u32, 0);
            }
        }
    }
}
