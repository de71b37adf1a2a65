//! An image in memory that the host writes row by row, with the driver's row pitch.

use ash::vk;
use lavascope_test_support::TestRng;

use crate::Sample;
use crate::arguments::SampleOptions;
use crate::common::{Gpu, MemoryPlacement, Needs, SampleImage, scope};
use crate::failure::Failure;

pub(crate) const SAMPLE: Sample = Sample {
    name: "linear",
    about: "Writes the texels of a linear image on the host, and has the device copy them.",
    run,
};

/// With this many texels, the size of a row is no round number of bytes.
const WIDTH: u32 = 37;
const HEIGHT: u32 = 11;
const SIZE: u64 = (WIDTH * HEIGHT * 4) as u64;

fn run(options: &SampleOptions) -> Result<(), Failure> {
    let gpu = Gpu::new(&Needs::NOTHING)?;
    let mut random = TestRng::new(options.seed);
    let words: Vec<u32> = (0..WIDTH * HEIGHT).map(|_| random.next_u32()).collect();
    let image = written_image(&gpu, &words)?;
    let results = gpu.buffer("results", SIZE, vk::BufferUsageFlags::TRANSFER_DST, MemoryPlacement::Host)?;
    gpu.run_once("read the rows", |commands| {
        let written = (scope::NOTHING, vk::ImageLayout::PREINITIALIZED);
        gpu.image_barrier(commands, &image, written, (scope::COPY_READ, vk::ImageLayout::TRANSFER_SRC_OPTIMAL));
        let (layout, region) = (vk::ImageLayout::TRANSFER_SRC_OPTIMAL, [image.buffer_copy_region(0, 0)]);
        // SAFETY: live objects, recorded by this thread (lifetime, owner).
        unsafe { gpu.device.cmd_copy_image_to_buffer(commands, image.handle, layout, results.handle, &region) };
        gpu.buffer_barrier(commands, &results, scope::COPY_WRITE, scope::HOST_READ);
    })?;
    options.check.words("the texels", &gpu.read(&results)?, &words)
}

/// An image whose texels the host has written.
fn written_image(gpu: &Gpu, words: &[u32]) -> Result<SampleImage, Failure> {
    let extent = vk::Extent2D { width: WIDTH, height: HEIGHT };
    let info = vk::ImageCreateInfo::default()
        .image_type(vk::ImageType::TYPE_2D)
        .format(vk::Format::R8G8B8A8_UNORM)
        .extent(vk::Extent3D { width: WIDTH, height: HEIGHT, depth: 1 })
        .mip_levels(1)
        .array_layers(1)
        .samples(vk::SampleCountFlags::TYPE_1)
        .tiling(vk::ImageTiling::LINEAR)
        .usage(vk::ImageUsageFlags::TRANSFER_SRC)
        .initial_layout(vk::ImageLayout::PREINITIALIZED);
    // SAFETY: `info` lives until the call returns; every device supports copies from this format in linear tiling
    // ("Required Format Support"; lifetime).
    let (handle, requirements) = unsafe {
        let handle = gpu.device.create_image(&info, None)?;
        (handle, gpu.device.get_image_memory_requirements(handle))
    };
    let memory = gpu.destroy_at_end(gpu.allocate("rows", requirements, MemoryPlacement::Host)?);
    gpu.destroy_at_end(gpu.name(handle, "rows"));
    let part = vk::ImageSubresource::default().aspect_mask(vk::ImageAspectFlags::COLOR);
    // SAFETY: both are new, and `allocate` followed the requirements of the image and made it visible to the host; it
    // is mapped here only. `vkGetImageSubresourceLayout` gives a range inside of the memory: row `r` of `WIDTH` texels
    // lies at `offset + r * rowPitch`, and there are `HEIGHT` rows (lifetime, owner).
    unsafe {
        gpu.device.bind_image_memory(handle, memory, 0)?;
        let layout = gpu.device.get_image_subresource_layout(handle, part);
        let first = gpu.device.map_memory(memory, 0, vk::WHOLE_SIZE, vk::MemoryMapFlags::empty())?.cast::<u8>();
        for (row, texels) in words.chunks_exact(WIDTH as usize).enumerate() {
            let at = first.add((layout.offset + row as u64 * layout.row_pitch) as usize);
            std::ptr::copy_nonoverlapping(texels.as_ptr().cast(), at, texels.len() * 4);
        }
        gpu.device.unmap_memory(memory);
    }
    Ok(SampleImage::color(handle, vk::ImageView::null(), extent, 1))
}
