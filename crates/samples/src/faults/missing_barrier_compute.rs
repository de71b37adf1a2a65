//! A dispatch reads what the dispatch before it writes, without a barrier between them: read after write.

use ash::vk;

use super::check;
use crate::Sample;
use crate::arguments::{Fault, Options};
use crate::common::{Gpu, Kernel, Needs, Place, scope, shader};
use crate::failure::Failure;

pub(super) const SAMPLE: Sample = Sample {
    name: "fault-missing-barrier-compute",
    about: "Fault: a dispatch reads what the one before wrote, without a barrier (read after write).",
    run,
};

const COUNT: u32 = 256;
const SIZE: u64 = COUNT as u64 * 4;

fn run(options: &Options) -> Result<(), Failure> {
    let gpu = Gpu::new(&Needs::NOTHING)?;
    let usage =
        vk::BufferUsageFlags::STORAGE_BUFFER | vk::BufferUsageFlags::TRANSFER_DST | vk::BufferUsageFlags::TRANSFER_SRC;
    let source = gpu.buffer("source", SIZE, usage, Place::Device)?;
    let between = gpu.buffer("between", SIZE, usage, Place::Device)?;
    let target = gpu.buffer("target", SIZE, usage, Place::Device)?;
    let scan = Kernel::new(&gpu, shader!("scan.comp"), &[[source, between], [between, target]], 8)?;
    gpu.run_once("two dispatches", |commands| {
        gpu.fill_buffer(commands, &source, (0, SIZE), 1);
        gpu.buffer_barrier(commands, &source, scope::COPY_WRITE, scope::COMPUTE_READ);
        gpu.labeled(commands, "write", || scan.dispatch(&gpu, commands, 0, &[1, COUNT], COUNT));
        if options.fault == Fault::Mended {
            gpu.buffer_barrier(commands, &between, scope::COMPUTE_WRITE, scope::COMPUTE_READ);
        }
        gpu.labeled(commands, "read", || scan.dispatch(&gpu, commands, 1, &[2, COUNT], COUNT));
    })?;
    let want: Vec<u32> = (1..=COUNT).map(|it| it.min(4)).collect();
    check(options, "the sums", &gpu.download(&target, scope::COMPUTE_WRITE)?, &want)
}
