//! Shared by the planted faults: a device, resources of one size, and whether the fault is planted or fixed.
//!
//! A buffer has as many words as an image has texels. Images are in the layout `GENERAL` and ready for any use, so
//! that a fault is about nothing but the order of commands.

use std::ops::Deref;

use ash::vk;

use crate::arguments::{FaultMode, SampleOptions};
use crate::common::{BarrierScope, Buffer, Feature, Gpu, MemoryPlacement, Needs, SampleImage, image_info, scope};
use crate::failure::Failure;

pub(super) const SIDE: u32 = 16;
pub(super) const WORDS: usize = (SIDE * SIDE) as usize;
pub(super) const SIZE: u64 = WORDS as u64 * 4;
pub(super) const EXTENT: vk::Extent2D = vk::Extent2D { width: SIDE, height: SIDE };
pub(super) const FORMAT: vk::Format = vk::Format::R8G8B8A8_UNORM;
pub(super) const LAYOUT: vk::ImageLayout = vk::ImageLayout::GENERAL;
/// A color, and the word that it is in memory.
pub(super) const GREEN: vk::ClearColorValue = vk::ClearColorValue { float32: [0.0, 1.0, 0.0, 1.0] };
pub(super) const GREEN_WORD: u32 = 0xFF00_FF00;

/// A device on which a fault is planted, or fixed.
pub(crate) struct FaultContext<'a> {
    gpu: Gpu,
    options: &'a SampleOptions,
}

impl Deref for FaultContext<'_> {
    type Target = Gpu;

    fn deref(&self) -> &Gpu {
        &self.gpu
    }
}

impl<'a> FaultContext<'a> {
    pub(super) fn new(options: &'a SampleOptions, needs: &Needs) -> Result<FaultContext<'a>, Failure> {
        let is_needed = |it: &&Feature| !options.render_pass || **it != Feature::DynamicRendering;
        let features: Vec<Feature> = needs.features.iter().filter(is_needed).copied().collect();
        Ok(FaultContext::of(Gpu::new(&Needs { features: &features, ..*needs })?, options))
    }

    pub(super) fn of(gpu: Gpu, options: &'a SampleOptions) -> FaultContext<'a> {
        FaultContext { gpu, options }
    }

    /// With a second queue that is not the main one.
    pub(super) fn with_two_queues(options: &'a SampleOptions) -> Result<FaultContext<'a>, Failure> {
        let lab = FaultContext::new(options, &Needs { second_queue: true, ..Needs::NOTHING })?;
        match lab.main == lab.second {
            true => Err(Failure::Unsupported("the device has one queue only".to_owned())),
            false => Ok(lab),
        }
    }

    /// One or the other, as the user wishes.
    pub(super) fn planted_or_fixed<T>(&self, planted: T, fixed: T) -> T {
        match self.options.fault {
            FaultMode::Planted => planted,
            FaultMode::Fixed => fixed,
        }
    }

    /// Whether it draws in a render pass object.
    pub(super) fn uses_render_pass(&self) -> bool {
        self.options.render_pass
    }

    pub(super) fn is_fixed(&self) -> bool {
        self.planted_or_fixed(false, true)
    }

    /// The barrier that is missing in the fault.
    pub(super) fn barrier_if_fixed(&self, commands: vk::CommandBuffer, from: BarrierScope, to: BarrierScope) {
        if self.is_fixed() {
            self.memory_barrier(commands, from, to);
        }
    }

    /// Buffers for any use.
    pub(super) fn word_buffers<const N: usize>(&self, names: [&str; N]) -> Result<[Buffer; N], Failure> {
        let made = names.iter().map(|it| self.buffer(it, SIZE, any_buffer(), MemoryPlacement::Device));
        let made = made.collect::<Result<Vec<_>, _>>()?;
        Ok(std::array::from_fn(|at| made[at]))
    }

    /// Color images for any use.
    pub(super) fn color_images<const N: usize>(&self, names: [&str; N]) -> Result<[SampleImage; N], Failure> {
        let info = image_info(FORMAT, EXTENT).usage(any_image());
        let made = names.iter().map(|it| self.prepared_image(it, &info)).collect::<Result<Vec<_>, _>>()?;
        Ok(std::array::from_fn(|at| made[at]))
    }

    pub(super) fn depth_image(&self, name: &str) -> Result<SampleImage, Failure> {
        let usage = transfers() | vk::ImageUsageFlags::DEPTH_STENCIL_ATTACHMENT;
        self.prepared_image(name, &image_info(vk::Format::D32_SFLOAT, EXTENT).usage(usage))
    }

    pub(super) fn multisampled_image(&self, name: &str) -> Result<SampleImage, Failure> {
        let usage = transfers() | vk::ImageUsageFlags::COLOR_ATTACHMENT;
        let info = image_info(FORMAT, EXTENT).usage(usage).samples(vk::SampleCountFlags::TYPE_4);
        self.prepared_image(name, &info)
    }

    /// An image that is ready for any use.
    pub(super) fn prepared_image(&self, name: &str, info: &vk::ImageCreateInfo) -> Result<SampleImage, Failure> {
        let image = self.image_of(name, info)?;
        self.run_once("prepare", |commands| self.prepare(commands, &image))?;
        Ok(image)
    }

    pub(super) fn prepare(&self, commands: vk::CommandBuffer, image: &SampleImage) {
        let fresh = (scope::NOTHING, vk::ImageLayout::UNDEFINED);
        self.image_barrier(commands, image, fresh, (scope::ALL, LAYOUT));
    }

    pub(super) fn fill(&self, commands: vk::CommandBuffer, buffer: &Buffer, value: u32) {
        self.fill_buffer(commands, buffer, (0, SIZE), value);
    }

    /// Writes words to the beginning of a buffer.
    pub(super) fn update(&self, commands: vk::CommandBuffer, buffer: &Buffer, words: &[u32]) {
        let bytes: Vec<u8> = words.iter().flat_map(|it| it.to_ne_bytes()).collect();
        // SAFETY: live objects, recorded by this thread (lifetime, owner).
        unsafe { self.device.cmd_update_buffer(commands, buffer.handle, 0, &bytes) };
    }

    pub(super) fn clear(&self, commands: vk::CommandBuffer, image: &SampleImage) {
        // SAFETY: live objects, recorded by this thread (lifetime, owner).
        unsafe { self.device.cmd_clear_color_image(commands, image.handle, LAYOUT, &GREEN, &[image.range()]) };
    }

    /// Copies the texels of the first level to a buffer.
    pub(super) fn read_texels(&self, commands: vk::CommandBuffer, image: &SampleImage, target: &Buffer) {
        let region = [image.buffer_copy_region(0, 0)];
        // SAFETY: live objects, recorded by this thread (lifetime, owner).
        unsafe { self.device.cmd_copy_image_to_buffer(commands, image.handle, LAYOUT, target.handle, &region) };
    }

    pub(super) fn write_texels(&self, commands: vk::CommandBuffer, source: &Buffer, image: &SampleImage) {
        let region = [image.buffer_copy_region(0, 0)];
        // SAFETY: live objects, recorded by this thread (lifetime, owner).
        unsafe { self.device.cmd_copy_buffer_to_image(commands, source.handle, image.handle, LAYOUT, &region) };
    }

    /// Compares all of a buffer that was written in scope `from`; with the fault nothing is defined.
    pub(super) fn expect(&self, buffer: &Buffer, from: BarrierScope, want: &[u32]) -> Result<(), Failure> {
        match self.is_fixed() {
            true => self.options.check.words("the result", &self.download(buffer, from)?, want),
            false => Ok(()),
        }
    }

    /// Compares the texels of the first level, which are all alike.
    pub(super) fn expect_texels(&self, image: &SampleImage, from: BarrierScope, want: u32) -> Result<(), Failure> {
        if !self.is_fixed() {
            return Ok(());
        }
        let [copy] = self.word_buffers(["copy"])?;
        self.run_once("read the texels", |commands| {
            self.memory_barrier(commands, from, scope::COPY_READ);
            self.read_texels(commands, image, &copy);
        })?;
        self.expect(&copy, scope::COPY_WRITE, &[want; WORDS])
    }

    /// Compares a value of the host.
    pub(super) fn expect_words(&self, got: &[u32], want: &[u32]) -> Result<(), Failure> {
        match self.is_fixed() {
            true => self.options.check.words("the result", got, want),
            false => Ok(()),
        }
    }
}

fn any_buffer() -> vk::BufferUsageFlags {
    vk::BufferUsageFlags::TRANSFER_SRC
        | vk::BufferUsageFlags::TRANSFER_DST
        | vk::BufferUsageFlags::UNIFORM_BUFFER
        | vk::BufferUsageFlags::STORAGE_BUFFER
        | vk::BufferUsageFlags::VERTEX_BUFFER
        | vk::BufferUsageFlags::INDEX_BUFFER
        | vk::BufferUsageFlags::INDIRECT_BUFFER
}

fn transfers() -> vk::ImageUsageFlags {
    vk::ImageUsageFlags::TRANSFER_SRC | vk::ImageUsageFlags::TRANSFER_DST
}

pub(super) fn any_image() -> vk::ImageUsageFlags {
    transfers()
        | vk::ImageUsageFlags::SAMPLED
        | vk::ImageUsageFlags::STORAGE
        | vk::ImageUsageFlags::COLOR_ATTACHMENT
        | vk::ImageUsageFlags::INPUT_ATTACHMENT
}
