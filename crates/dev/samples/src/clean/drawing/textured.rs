//! A texture with two mip levels, uploaded through a staging buffer and drawn over the whole picture.

use ash::vk;

use crate::Sample;
use crate::arguments::SampleOptions;
use crate::common::{
    Buffer, Gpu, GraphicsPipeline, MemoryPlacement, Needs, RenderTarget, SampleImage, scope, shader, words_of_bytes,
};
use crate::failure::Failure;

pub(crate) const SAMPLE: Sample =
    Sample { name: "textured", about: "Uploads a texture with two mip levels and draws it with a sampler.", run };

const FORMAT: vk::Format = vk::Format::R8G8B8A8_UNORM;
const EXTENT: vk::Extent2D = vk::Extent2D { width: 64, height: 64 };
const TEXELS: u32 = 8;
const LEVELS: u32 = 2;

fn run(options: &SampleOptions) -> Result<(), Failure> {
    let gpu = Gpu::new(&Needs::NOTHING)?;
    let usage = vk::ImageUsageFlags::SAMPLED | vk::ImageUsageFlags::TRANSFER_DST;
    let texture = gpu.image("texture", FORMAT, vk::Extent2D { width: TEXELS, height: TEXELS }, LEVELS, usage)?;
    let staging = staging(&gpu)?;
    let usage = vk::ImageUsageFlags::COLOR_ATTACHMENT | vk::ImageUsageFlags::TRANSFER_SRC;
    let canvas = gpu.image("canvas", FORMAT, EXTENT, 1, usage)?;
    let render_pass = gpu.render_pass(FORMAT)?;
    let framebuffer = gpu.framebuffer(render_pass, &[canvas])?;

    let kind = vk::DescriptorType::COMBINED_IMAGE_SAMPLER;
    let set_layout = gpu.set_layout(&[kind], vk::ShaderStageFlags::FRAGMENT)?;
    let set = gpu.descriptor_set(gpu.descriptor_pool(1, &[(kind, 1)])?, set_layout)?;
    let layout = gpu.pipeline_layout(&[set_layout], None)?;
    let image = vk::DescriptorImageInfo::default()
        .sampler(sampler(&gpu)?)
        .image_view(texture.view)
        .image_layout(vk::ImageLayout::SHADER_READ_ONLY_OPTIMAL);
    gpu.write_image(set, 0, kind, image);
    let pipeline = gpu.graphics_pipeline(&GraphicsPipeline {
        vertex: shader!("screen.vert"),
        fragment: shader!("textured.frag"),
        middle_stages: &[],
        layout,
        bindings: &[],
        attributes: &[],
        target: RenderTarget::Subpass(render_pass, 0),
    })?;

    gpu.run_once("upload and draw", |commands| {
        upload(&gpu, commands, &staging, &texture);
        let clear = [vk::ClearValue::default()];
        let begin = vk::RenderPassBeginInfo::default().render_pass(render_pass).framebuffer(framebuffer);
        let begin = begin.render_area(EXTENT.into()).clear_values(&clear);
        gpu.set_viewport_and_scissor(commands, EXTENT);
        // SAFETY: live objects, recorded by this thread (lifetime, owner).
        unsafe {
            let graphics = vk::PipelineBindPoint::GRAPHICS;
            gpu.device.cmd_begin_render_pass(commands, &begin, vk::SubpassContents::INLINE);
            gpu.device.cmd_bind_pipeline(commands, graphics, pipeline);
            gpu.device.cmd_bind_descriptor_sets(commands, graphics, layout, 0, &[set], &[]);
            gpu.device.cmd_draw(commands, 6, 1, 0, 0);
            gpu.device.cmd_end_render_pass(commands);
        }
    })?;
    let picture = gpu.picture(&canvas)?;
    picture.save(options)?;
    options.check.picture(&picture, 1, |x, y| {
        let level = u32::from(x >= EXTENT.width / 2);
        let pixels_per_texel = EXTENT.width / (TEXELS >> level);
        texel(level, x / pixels_per_texel, y / pixels_per_texel)
    })
}

fn texel(level: u32, x: u32, y: u32) -> [u8; 4] {
    [x as u8 * 32 + 1, y as u8 * 32 + 2, level as u8 * 100 + 5, 255]
}

/// Both levels, one after the other.
fn staging(gpu: &Gpu) -> Result<Buffer, Failure> {
    let mut bytes = Vec::new();
    for level in 0..LEVELS {
        let size = TEXELS >> level;
        bytes.extend((0..size * size).flat_map(|at| texel(level, at % size, at / size)));
    }
    let buffer =
        gpu.buffer("staging", bytes.len() as u64, vk::BufferUsageFlags::TRANSFER_SRC, MemoryPlacement::Host)?;
    gpu.write(&buffer, &words_of_bytes(&bytes))?;
    Ok(buffer)
}

fn sampler(gpu: &Gpu) -> Result<vk::Sampler, Failure> {
    let edge = vk::SamplerAddressMode::CLAMP_TO_EDGE;
    let info = vk::SamplerCreateInfo::default()
        .mag_filter(vk::Filter::NEAREST)
        .min_filter(vk::Filter::NEAREST)
        .mipmap_mode(vk::SamplerMipmapMode::NEAREST)
        .address_mode_u(edge)
        .address_mode_v(edge)
        .address_mode_w(edge)
        .max_lod(vk::LOD_CLAMP_NONE);
    // SAFETY: `info` lives until the call returns (lifetime).
    Ok(gpu.destroy_at_end(unsafe { gpu.device.create_sampler(&info, None) }?))
}

fn upload(gpu: &Gpu, commands: vk::CommandBuffer, staging: &Buffer, texture: &SampleImage) {
    let (before, during, after) = (
        (scope::NOTHING, vk::ImageLayout::UNDEFINED),
        (scope::COPY_WRITE, vk::ImageLayout::TRANSFER_DST_OPTIMAL),
        (scope::FRAGMENT_READ, vk::ImageLayout::SHADER_READ_ONLY_OPTIMAL),
    );
    gpu.image_barrier(commands, texture, before, during);
    let regions = [texture.buffer_copy_region(0, 0), texture.buffer_copy_region(1, u64::from(TEXELS * TEXELS * 4))];
    // SAFETY: live objects, recorded by this thread (lifetime, owner).
    unsafe {
        gpu.device.cmd_copy_buffer_to_image(commands, staging.handle, texture.handle, during.1, &regions);
    }
    gpu.image_barrier(commands, texture, during, after);
}
