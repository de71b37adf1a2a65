//! A scene of many objects with one texture and many lights, frame after frame: what shaders cost.

use std::time::{Duration, Instant};

use ash::vk;
use lavascope_test_support::TestRng;

use crate::Sample;
use crate::arguments::SampleOptions;
use crate::common::{
    Buffer, Gpu, GraphicsPipeline, MemoryPlacement, Needs, RenderTarget, SampleImage, scope, shader, words_of_bytes,
};
use crate::failure::Failure;

pub(crate) const SAMPLE: Sample = Sample {
    name: "lit",
    about: "Draws 256 textured objects in the light of 16 lamps, each frame anew, and says how long a frame takes.",
    run,
};

const FORMAT: vk::Format = vk::Format::R8G8B8A8_UNORM;
const EXTENT: vk::Extent2D = vk::Extent2D { width: 512, height: 512 };
/// In each direction.
const OBJECTS: u32 = 16;
const LIGHTS: u32 = 16;
const TEXELS: u32 = 8;
/// Frames that the device may be behind.
const AHEAD: usize = 2;
/// This many frames give a meaningful time.
const TIMED_MIN: usize = 10;

fn run(options: &SampleOptions) -> Result<(), Failure> {
    let gpu = Gpu::new(&Needs::NOTHING)?;
    let lights = lights(&mut TestRng::new(options.seed));
    let scene = LitScene::new(&gpu, &lights)?;
    let times = scene.frames(options.frames.unwrap_or(3) as usize)?;
    if times.len() >= TIMED_MIN {
        println!("{:.1} us a frame", median(times).as_secs_f64() * 1e6);
    }
    let picture = gpu.picture(&scene.canvas)?;
    picture.save(options)?;
    options.check.picture(&picture, 2, |x, y| pixel(&lights, x, y))
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// Where it is, how far it reaches, and its color.
struct Light {
    x: f32,
    y: f32,
    reach: f32,
    color: [f32; 3],
}

fn lights(random: &mut TestRng) -> Vec<Light> {
    let mut part = |end: f32| random.below(1000) as f32 / 1000.0 * end;
    let light = |_| Light {
        x: part(EXTENT.width as f32),
        y: part(EXTENT.height as f32),
        reach: 50.0 + part(200.0),
        color: [(); 3].map(|()| part(1.0)),
    };
    (0..LIGHTS).map(light).collect()
}

fn texel(x: u32, y: u32) -> [u8; 4] {
    [200 + x as u8 * 5, 120 + y as u8 * 10, 255 - (x + y) as u8 * 8, 255]
}

/// The color that the shaders compute.
fn pixel(lights: &[Light], x: u32, y: u32) -> [u8; 4] {
    let (tile, at) = (EXTENT.width / OBJECTS, (x as f32 + 0.5, y as f32 + 0.5));
    let texel = texel(x % tile * TEXELS / tile, y % tile * TEXELS / tile);
    let channel = |channel: usize| {
        let of_light = |light: &Light| {
            let (x, y) = (at.0 - light.x, at.1 - light.y);
            light.color[channel] * (1.0 - (x * x + y * y) / (light.reach * light.reach)).max(0.0)
        };
        let sum = lights.iter().map(of_light).fold(0.1, |sum: f32, it| sum + it).min(1.0);
        (f32::from(texel[channel]) * sum).round() as u8
    };
    [channel(0), channel(1), channel(2), 255]
}

struct LitScene<'a> {
    gpu: &'a Gpu,
    render_pass: vk::RenderPass,
    framebuffer: vk::Framebuffer,
    canvas: SampleImage,
    layout: vk::PipelineLayout,
    pipeline: vk::Pipeline,
    set: vk::DescriptorSet,
}

impl<'a> LitScene<'a> {
    fn new(gpu: &'a Gpu, lights: &[Light]) -> Result<LitScene<'a>, Failure> {
        let usage = vk::ImageUsageFlags::COLOR_ATTACHMENT | vk::ImageUsageFlags::TRANSFER_SRC;
        let canvas = gpu.image("canvas", FORMAT, EXTENT, 1, usage)?;
        let render_pass = gpu.render_pass(FORMAT)?;
        let framebuffer = gpu.framebuffer(render_pass, &[canvas])?;
        let kinds = [
            vk::DescriptorType::STORAGE_BUFFER,
            vk::DescriptorType::UNIFORM_BUFFER,
            vk::DescriptorType::COMBINED_IMAGE_SAMPLER,
        ];
        let stages = vk::ShaderStageFlags::VERTEX | vk::ShaderStageFlags::FRAGMENT;
        let set_layout = gpu.set_layout(&kinds, stages)?;
        let set = gpu.descriptor_set(gpu.descriptor_pool(1, &kinds.map(|it| (it, 1)))?, set_layout)?;
        let objects = buffer(gpu, "objects", vk::BufferUsageFlags::STORAGE_BUFFER, &corners())?;
        let light = |it: &Light| [it.x, it.y, 0.0, it.reach, it.color[0], it.color[1], it.color[2], 0.0];
        let lights: Vec<f32> = lights.iter().flat_map(light).collect();
        let lights = buffer(gpu, "lights", vk::BufferUsageFlags::UNIFORM_BUFFER, &lights)?;
        gpu.write_buffers(set, (0, 0), kinds[0], &[objects]);
        gpu.write_buffers(set, (1, 0), kinds[1], &[lights]);
        gpu.write_image(set, 2, kinds[2], texture(gpu)?);
        let number = vk::PushConstantRange { stage_flags: vk::ShaderStageFlags::VERTEX, offset: 0, size: 4 };
        let layout = gpu.pipeline_layout(&[set_layout], Some(number))?;
        let pipeline = gpu.graphics_pipeline(&GraphicsPipeline {
            vertex: shader!("lit.vert"),
            fragment: shader!("lit.frag"),
            middle_stages: &[],
            layout,
            bindings: &[],
            attributes: &[],
            target: RenderTarget::Subpass(render_pass, 0),
        })?;
        Ok(LitScene { gpu, render_pass, framebuffer, canvas, layout, pipeline, set })
    }

    /// How long each frame took, from one submission to the next.
    fn frames(&self, count: usize) -> Result<Vec<Duration>, Failure> {
        let gpu = self.gpu;
        let slot = |_| {
            let (pool, fence) = (gpu.command_pool(gpu.main)?, gpu.fence(vk::FenceCreateFlags::SIGNALED)?);
            Ok((pool, gpu.command_buffer(pool, vk::CommandBufferLevel::PRIMARY)?, fence))
        };
        let slots = (0..AHEAD).map(slot).collect::<Result<Vec<_>, Failure>>()?;
        let (mut times, mut last) = (Vec::new(), Instant::now());
        for (pool, commands, fence) in slots.iter().cycle().take(count) {
            gpu.wait(*fence)?;
            // SAFETY: the fence of the last use was waited for, so no queue uses it (VUID-vkResetFences-pFences-01123)
            // and no command buffer of the pool is pending (VUID-vkResetCommandPool-commandPool-00040; lifetime,
            // owner).
            unsafe {
                gpu.device.reset_fences(&[*fence])?;
                gpu.device.reset_command_pool(*pool, vk::CommandPoolResetFlags::empty())?;
            }
            gpu.record(*commands, || self.draw(*commands))?;
            let buffers = [*commands];
            gpu.submit(gpu.main, &vk::SubmitInfo::default().command_buffers(&buffers), *fence)?;
            times.push(std::mem::replace(&mut last, Instant::now()).elapsed());
        }
        for (_, _, fence) in slots.iter().take(count) {
            gpu.wait(*fence)?;
        }
        Ok(times)
    }

    fn draw(&self, commands: vk::CommandBuffer) {
        let (device, clear) = (&self.gpu.device, [vk::ClearValue::default()]);
        let begin = vk::RenderPassBeginInfo::default().render_pass(self.render_pass).framebuffer(self.framebuffer);
        let begin = begin.render_area(EXTENT.into()).clear_values(&clear);
        self.gpu.set_viewport_and_scissor(commands, EXTENT);
        // SAFETY: live objects, recorded by this thread (lifetime, owner).
        unsafe {
            let graphics = vk::PipelineBindPoint::GRAPHICS;
            device.cmd_begin_render_pass(commands, &begin, vk::SubpassContents::INLINE);
            device.cmd_bind_pipeline(commands, graphics, self.pipeline);
            device.cmd_bind_descriptor_sets(commands, graphics, self.layout, 0, &[self.set], &[]);
            for number in 0..OBJECTS * OBJECTS {
                let stage = vk::ShaderStageFlags::VERTEX;
                device.cmd_push_constants(commands, self.layout, stage, 0, &number.to_ne_bytes());
                device.cmd_draw(commands, 6, 1, 0, 0);
            }
            device.cmd_end_render_pass(commands);
        }
    }
}

/// The corner and the size of each object, which together fill the picture.
fn corners() -> Vec<f32> {
    let size = 1.0 / OBJECTS as f32;
    let object = |it: u32| [(it % OBJECTS) as f32 * size, (it / OBJECTS) as f32 * size, size, size];
    (0..OBJECTS * OBJECTS).flat_map(object).collect()
}

fn buffer(gpu: &Gpu, name: &str, usage: vk::BufferUsageFlags, floats: &[f32]) -> Result<Buffer, Failure> {
    let buffer = gpu.buffer(name, size_of_val(floats) as u64, usage, MemoryPlacement::Host)?;
    gpu.write_floats(&buffer, floats)?;
    Ok(buffer)
}

/// A texture with its texels, ready to be sampled.
fn texture(gpu: &Gpu) -> Result<vk::DescriptorImageInfo, Failure> {
    let usage = vk::ImageUsageFlags::SAMPLED | vk::ImageUsageFlags::TRANSFER_DST;
    let texture = gpu.image("texture", FORMAT, vk::Extent2D { width: TEXELS, height: TEXELS }, 1, usage)?;
    let bytes: Vec<u8> = (0..TEXELS * TEXELS).flat_map(|it| texel(it % TEXELS, it / TEXELS)).collect();
    let staging =
        gpu.buffer("staging", bytes.len() as u64, vk::BufferUsageFlags::TRANSFER_SRC, MemoryPlacement::Host)?;
    gpu.write(&staging, &words_of_bytes(&bytes))?;
    let (before, during, after) = (
        (scope::NOTHING, vk::ImageLayout::UNDEFINED),
        (scope::COPY_WRITE, vk::ImageLayout::TRANSFER_DST_OPTIMAL),
        (scope::FRAGMENT_READ, vk::ImageLayout::SHADER_READ_ONLY_OPTIMAL),
    );
    gpu.run_once("upload", |commands| {
        gpu.image_barrier(commands, &texture, before, during);
        // SAFETY: live objects, recorded by this thread (lifetime, owner).
        unsafe {
            let region = [texture.buffer_copy_region(0, 0)];
            gpu.device.cmd_copy_buffer_to_image(commands, staging.handle, texture.handle, during.1, &region);
        }
        gpu.image_barrier(commands, &texture, during, after);
    })?;
    // SAFETY: `info` lives until the call returns (lifetime).
    let sampler = gpu.destroy_at_end(unsafe { gpu.device.create_sampler(&vk::SamplerCreateInfo::default(), None) }?);
    Ok(vk::DescriptorImageInfo::default().sampler(sampler).image_view(texture.view).image_layout(after.1))
}
