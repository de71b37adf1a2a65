//! A buffer is overwritten while a copy may still read it: write after read.

use ash::vk;

use super::check;
use crate::Sample;
use crate::arguments::{Fault, Options};
use crate::common::{Gpu, Needs, Place, scope};
use crate::failure::Failure;

pub(super) const SAMPLE: Sample = Sample {
    name: "fault-war-copy",
    about: "Fault: a fill overwrites the source of a copy that may still read it (write after read).",
    run,
};

const SIZE: u64 = 1024;

fn run(options: &Options) -> Result<(), Failure> {
    let gpu = Gpu::new(&Needs::NOTHING)?;
    let usage = vk::BufferUsageFlags::TRANSFER_SRC | vk::BufferUsageFlags::TRANSFER_DST;
    let source = gpu.buffer("source", SIZE, usage, Place::Device)?;
    let target = gpu.buffer("target", SIZE, usage, Place::Device)?;
    gpu.run_once("copy, then overwrite", |commands| {
        gpu.fill_buffer(commands, &source, (0, SIZE), 7);
        gpu.buffer_barrier(commands, &source, scope::COPY_WRITE, scope::COPY_READ);
        gpu.labeled(commands, "read", || gpu.copy_buffer(commands, &source, &target));
        if options.fault == Fault::Mended {
            gpu.buffer_barrier(commands, &source, scope::COPY_READ, scope::COPY_WRITE);
        }
        gpu.labeled(commands, "write", || gpu.fill_buffer(commands, &source, (0, SIZE), 8));
    })?;
    check(options, "the copy", &gpu.download(&target, scope::COPY_WRITE)?, &[7; SIZE as usize / 4])
}
