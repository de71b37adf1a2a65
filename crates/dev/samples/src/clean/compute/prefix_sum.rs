//! A prefix sum in several dispatches, each of which reads what the one before wrote.

use ash::vk;
use lavascope_test_support::TestRng;

use crate::Sample;
use crate::arguments::SampleOptions;
use crate::common::{ComputeKernel, Gpu, MemoryPlacement, Needs, scope, shader};
use crate::failure::Failure;

pub(crate) const SAMPLE: Sample =
    Sample { name: "compute", about: "Computes a prefix sum in dispatches with barriers between them.", run };

const COUNT: u32 = 1000;

fn run(options: &SampleOptions) -> Result<(), Failure> {
    let gpu = Gpu::new(&Needs::NOTHING)?;
    let mut random = TestRng::new(options.seed);
    let words: Vec<u32> = (0..COUNT).map(|_| random.next_u32()).collect();
    let size = u64::from(COUNT) * 4;
    let staging = gpu.buffer("input", size, vk::BufferUsageFlags::TRANSFER_SRC, MemoryPlacement::Host)?;
    gpu.write(&staging, &words)?;
    let usage =
        vk::BufferUsageFlags::STORAGE_BUFFER | vk::BufferUsageFlags::TRANSFER_DST | vk::BufferUsageFlags::TRANSFER_SRC;
    let even = gpu.buffer("even", size, usage, MemoryPlacement::Device)?;
    let odd = gpu.buffer("odd", size, usage, MemoryPlacement::Device)?;
    let buffers = [even, odd];
    let scan = ComputeKernel::new(&gpu, shader!("scan.comp"), &[[even, odd], [odd, even]], 8)?;
    let mut last = 0;
    gpu.run_once("prefix sum", |commands| {
        gpu.copy_buffer(commands, &staging, &even);
        gpu.buffer_barrier(commands, &even, scope::COPY_WRITE, scope::COMPUTE_READ);
        for stride in (0..).map(|step| 1 << step).take_while(|stride| *stride < COUNT) {
            gpu.labeled(commands, &format!("stride {stride}"), || {
                scan.dispatch(&gpu, commands, last, &[stride, COUNT], COUNT);
            });
            last = 1 - last;
            // Each pass reads what the last one wrote: the two buffers change roles.
            gpu.buffer_barrier(commands, &buffers[last], scope::COMPUTE_WRITE, scope::COMPUTE_READ);
            gpu.buffer_barrier(commands, &buffers[1 - last], scope::COMPUTE_READ, scope::COMPUTE_WRITE);
        }
    })?;
    let sums = prefix_sum(&words);
    options.check.words("the prefix sum", &gpu.download(&buffers[last], scope::COMPUTE_WRITE)?, &sums)
}

fn prefix_sum(words: &[u32]) -> Vec<u32> {
    let mut sum = 0u32;
    let mut add = |value: &u32| {
        sum = sum.wrapping_add(*value);
        sum
    };
    words.iter().map(&mut add).collect()
}
