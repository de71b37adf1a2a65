//! Several different faults in each frame, one of them many times.

use ash::vk;

use crate::arguments::SampleOptions;
use crate::common::{Buffer, Needs, scope, shader};
use crate::failure::Failure;
use crate::faults::bound_pipeline::{BoundPipeline, ShaderResource};
use crate::faults::context::{FaultContext, WORDS};
use crate::faults::faults;
use crate::faults::synchronization::host::{host_buffer, overwrite};

faults! {
    five: "five-bugs", "five different faults in each frame, one of them a hundred times a frame.",
}

/// Copies that read what one copy wrote, and the bytes that each of them copies.
const READS: u64 = 100;
const READ_SIZE: u64 = 8;

/// What the frames use.
struct FrameBuffers {
    upload: Buffer,
    particles: Buffer,
    trails: Buffer,
    counts: Buffer,
    readback: Buffer,
    history: Buffer,
    output: Buffer,
    target: Buffer,
    /// From the particles to what lies between, and from there to the target.
    write: BoundPipeline,
    read: BoundPipeline,
}

fn five(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &Needs::NOTHING)?;
    let upload = host_buffer(&lab, "upload")?;
    let [particles, trails, counts, readback, history, output, between, target] =
        lab.word_buffers(["particles", "trails", "counts", "readback", "history", "output", "between", "target"])?;
    let kernel = |from: Buffer, to: Buffer| {
        let bound = [ShaderResource::Storage(&[from]), ShaderResource::Storage(&[to])];
        BoundPipeline::compute(&lab, shader!("double.comp"), &[], &bound)
    };
    let (write, read) = (kernel(particles, between)?, kernel(between, target)?);
    let frame = FrameBuffers { upload, particles, trails, counts, readback, history, output, target, write, read };
    for _ in 0..options.frames.unwrap_or(3) {
        run_frame(&lab, &frame)?;
    }
    lab.expect(&frame.target, scope::COMPUTE_WRITE, &[28; WORDS])
}

fn run_frame(lab: &FaultContext, frame: &FrameBuffers) -> Result<(), Failure> {
    overwrite(lab, &frame.upload, 7)?;
    let commands = lab.record_new(lab.main, "frame", |commands| {
        lab.memory_barrier(commands, scope::ALL, scope::ALL);
        lab.labeled(commands, "particles", || copy_particles(lab, commands, frame));
        lab.memory_barrier(commands, scope::ALL, scope::ALL);
        lab.labeled(commands, "transfers", || transfers(lab, commands, frame));
        lab.memory_barrier(commands, scope::ALL, scope::ALL);
        lab.labeled(commands, "two dispatches", || {
            frame.write.dispatch(lab, commands);
            let to = lab.planted_or_fixed(scope::FRAGMENT_READ, scope::COMPUTE_READ);
            lab.memory_barrier(commands, scope::COMPUTE_WRITE, to);
            frame.read.dispatch(lab, commands);
        });
    })?;
    let fence = lab.fence(vk::FenceCreateFlags::empty())?;
    lab.submit(lab.main, &vk::SubmitInfo::default().command_buffers(&[commands]), fence)?;
    if lab.is_fixed() {
        lab.wait(fence)?;
    }
    // The copy may still read it.
    overwrite(lab, &frame.upload, 8)?;
    lab.wait(fence)
}

/// No barrier makes the copied particles visible to the copies that follow.
fn copy_particles(lab: &FaultContext, commands: vk::CommandBuffer, frame: &FrameBuffers) {
    lab.copy_buffer(commands, &frame.upload, &frame.particles);
    lab.barrier_if_fixed(commands, scope::COPY_WRITE, scope::COPY_READ);
    for number in 0..READS {
        let region = vk::BufferCopy::default().dst_offset(number * READ_SIZE).size(READ_SIZE);
        // SAFETY: live objects, recorded by this thread (lifetime, owner).
        unsafe {
            lab.device.cmd_copy_buffer(commands, frame.particles.handle, frame.trails.handle, &[region]);
        }
    }
}

/// A copy reads what a fill may still write, and a fill writes what a copy may still read.
fn transfers(lab: &FaultContext, commands: vk::CommandBuffer, frame: &FrameBuffers) {
    lab.fill(commands, &frame.counts, 1);
    lab.barrier_if_fixed(commands, scope::COPY_WRITE, scope::COPY_READ);
    lab.copy_buffer(commands, &frame.counts, &frame.readback);
    lab.copy_buffer(commands, &frame.history, &frame.output);
    lab.barrier_if_fixed(commands, scope::COPY_READ, scope::COPY_WRITE);
    lab.fill(commands, &frame.history, 2);
}
