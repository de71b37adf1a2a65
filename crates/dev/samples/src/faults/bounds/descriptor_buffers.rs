//! Shaders that access more than is bound, where descriptors are bytes in a buffer.

use ash::{ext, vk};

use crate::arguments::SampleOptions;
use crate::common::{Buffer, Feature, MemoryPlacement, Needs, Shader, binding_of, scope, shader};
use crate::failure::Failure;
use crate::faults::context::{FaultContext, SIZE, WORDS};
use crate::faults::faults;

faults! {
    read: "bounds-buffered", "a dispatch reads behind the range that a descriptor in a buffer has.",
    index: "bounds-buffered-index", "an index is as large as an array of descriptors in a buffer.",
    past: "bounds-buffered-address", "a dispatch reads one word behind a buffer by its address, beside descriptors in a buffer.",
    between: "bounds-buffered-between", "a dispatch reads behind a range before and after one that has no sets at all.",
    unmapped: "bounds-buffered-unmapped", "a dispatch reads behind a range, and nobody can look at its descriptor.",
    rewritten: "mapped-descriptors", "the host changes a descriptor in a buffer that a dispatch may still read.",
}

const STORAGE: vk::DescriptorType = vk::DescriptorType::STORAGE_BUFFER;
const STAGES: vk::ShaderStageFlags = vk::ShaderStageFlags::COMPUTE;
const COMPUTE: vk::PipelineBindPoint = vk::PipelineBindPoint::COMPUTE;
const NEEDS: Needs = Needs {
    features: &[
        Feature::DescriptorBuffer,
        Feature::BufferDeviceAddress,
        Feature::ShaderStorageBufferArrayDynamicIndexing,
    ],
    extensions: &[ext::descriptor_buffer::NAME],
    ..Needs::NOTHING
};
/// More than what these sets need.
const BYTES: u64 = 4096;

/// A pipeline with a set that lies in a buffer, which stays mapped.
struct DescriptorBufferPipeline<'a> {
    lab: &'a FaultContext<'a>,
    functions: ext::descriptor_buffer::Device,
    pipeline: vk::Pipeline,
    layout: vk::PipelineLayout,
    set_layout: vk::DescriptorSetLayout,
    /// Bytes of a descriptor.
    size: usize,
    descriptors: Buffer,
    mapped: *mut u8,
}

impl<'a> DescriptorBufferPipeline<'a> {
    /// With as many buffers in each binding, and push constants.
    fn new(
        lab: &'a FaultContext,
        shader: Shader,
        counts: &[u32],
        constants: u32,
    ) -> Result<DescriptorBufferPipeline<'a>, Failure> {
        let bindings: Vec<_> = (0..).zip(counts).map(|(at, count)| binding_of(at, STORAGE, *count, STAGES)).collect();
        let flags = vk::DescriptorSetLayoutCreateFlags::DESCRIPTOR_BUFFER_EXT;
        let info = vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings).flags(flags);
        let set_layout = lab.set_layout_of(&info)?;
        let range = vk::PushConstantRange { stage_flags: STAGES, offset: 0, size: constants };
        let layout = lab.pipeline_layout(&[set_layout], (constants > 0).then_some(range))?;
        let pipeline = lab.with_stage(shader, |stage| {
            let flags = vk::PipelineCreateFlags::DESCRIPTOR_BUFFER_EXT;
            let info = vk::ComputePipelineCreateInfo::default().stage(stage).layout(layout).flags(flags);
            // SAFETY: `info` lives until the call returns, and the feature is enabled (lifetime, feature).
            unsafe { lab.device.create_compute_pipelines(vk::PipelineCache::null(), &[info], None) }
        })?;
        let mut sizes = vk::PhysicalDeviceDescriptorBufferPropertiesEXT::default();
        let mut properties = vk::PhysicalDeviceProperties2::default().push_next(&mut sizes);
        // SAFETY: `Gpu` has the physical device from its own instance, and it has the extension of the structure
        // (feature).
        unsafe { lab.instance.handle.get_physical_device_properties2(lab.physical_device, &mut properties) };
        let usage = vk::BufferUsageFlags::RESOURCE_DESCRIPTOR_BUFFER_EXT;
        let descriptors = addressed_buffer(lab, "descriptors", BYTES, usage, MemoryPlacement::Host)?;
        let flags = vk::MemoryMapFlags::empty();
        // SAFETY: new memory of this buffer alone, visible to the host (`MemoryPlacement::Host`) and not mapped yet; the buffer
        // has `BYTES`.
        let mapped = unsafe { lab.device.map_memory(descriptors.memory, 0, BYTES, flags) }?.cast::<u8>();
        let functions = ext::descriptor_buffer::Device::new(&lab.instance.handle, &lab.device);
        let size = sizes.storage_buffer_descriptor_size;
        Ok(DescriptorBufferPipeline { lab, functions, pipeline, layout, set_layout, size, descriptors, mapped })
    }

    /// Writes the descriptor of a range of a buffer.
    fn write(&self, (binding, element): (u32, usize), buffer: &Buffer, range: u64) {
        let about = vk::DescriptorAddressInfoEXT::default().address(address(self.lab, buffer)).range(range);
        let info = vk::DescriptorGetInfoEXT::default().ty(STORAGE);
        let info = info.data(vk::DescriptorDataEXT { p_storage_buffer: &about });
        // SAFETY: a live layout for descriptor buffers that has the binding (lifetime, feature).
        let offset = unsafe { self.functions.get_descriptor_set_layout_binding_offset(self.set_layout, binding) };
        let offset = offset as usize + element * self.size;
        assert!(offset + self.size <= BYTES as usize, "the descriptor lies in the buffer");
        // SAFETY: `BYTES` bytes are mapped from `mapped` on, and the descriptor lies in them, by the assertion. No
        // submission that reads the buffer is pending, but with the fault of `rewritten`, and this thread has no other
        // reference into it (owner).
        let bytes = unsafe { std::slice::from_raw_parts_mut(self.mapped.add(offset), self.size) };
        // SAFETY: `info` lives until the call returns, and `size` is that of the device for this type of descriptor
        // (lifetime, feature).
        unsafe { self.functions.get_descriptor(&info, bytes) };
    }

    fn dispatch(&self, commands: vk::CommandBuffer, constants: &[u8]) {
        let usage = vk::BufferUsageFlags::RESOURCE_DESCRIPTOR_BUFFER_EXT;
        let usage = usage | vk::BufferUsageFlags::SHADER_DEVICE_ADDRESS;
        let address = address(self.lab, &self.descriptors);
        let buffer = [vk::DescriptorBufferBindingInfoEXT::default().address(address).usage(usage)];
        // SAFETY: live objects, recorded by this thread, and the feature is enabled (lifetime, owner, feature).
        unsafe {
            self.lab.device.cmd_bind_pipeline(commands, COMPUTE, self.pipeline);
            self.functions.cmd_bind_descriptor_buffers(commands, &buffer);
            self.functions.cmd_set_descriptor_buffer_offsets(commands, COMPUTE, self.layout, 0, &[0], &[0]);
            if !constants.is_empty() {
                self.lab.device.cmd_push_constants(commands, self.layout, STAGES, 0, constants);
            }
            self.lab.device.cmd_dispatch(commands, WORDS as u32 / 64, 1, 1);
        }
    }

    /// Once more, where the set still is.
    fn dispatch_again(&self, commands: vk::CommandBuffer) {
        // SAFETY: live objects, recorded by this thread, and the feature is enabled (lifetime, owner, feature).
        unsafe {
            self.lab.device.cmd_bind_pipeline(commands, COMPUTE, self.pipeline);
            self.lab.device.cmd_dispatch(commands, WORDS as u32 / 64, 1, 1);
        }
    }
}

fn addressed_buffer(
    lab: &FaultContext,
    name: &str,
    bytes: u64,
    usage: vk::BufferUsageFlags,
    place: MemoryPlacement,
) -> Result<Buffer, Failure> {
    lab.buffer(name, bytes, usage | vk::BufferUsageFlags::SHADER_DEVICE_ADDRESS, place)
}

fn words(lab: &FaultContext, name: &str, bytes: u64) -> Result<Buffer, Failure> {
    let usage =
        vk::BufferUsageFlags::STORAGE_BUFFER | vk::BufferUsageFlags::TRANSFER_SRC | vk::BufferUsageFlags::TRANSFER_DST;
    addressed_buffer(lab, name, bytes, usage, MemoryPlacement::Device)
}

fn address(lab: &FaultContext, buffer: &Buffer) -> u64 {
    let info = vk::BufferDeviceAddressInfo::default().buffer(buffer.handle);
    // SAFETY: a live buffer, and the feature is enabled (lifetime, feature).
    unsafe { lab.device.get_buffer_device_address(&info) }
}

/// Descriptors are written after they were bound; of the source half may be there.
fn double(options: &SampleOptions, is_unmapped: bool) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &NEEDS)?;
    let (source, target) = (words(&lab, "source", SIZE)?, words(&lab, "target", SIZE)?);
    let program = DescriptorBufferPipeline::new(&lab, shader!("double.comp"), &[1, 1], 0)?;
    let commands = lab.record_new(lab.main, "double", |commands| {
        lab.fill(commands, &source, 7);
        lab.memory_barrier(commands, scope::COPY_WRITE, scope::COMPUTE_READ);
        program.dispatch(commands, &[]);
    })?;
    program.write((0, 0), &source, lab.planted_or_fixed(SIZE / 2, SIZE));
    program.write((1, 0), &target, SIZE);
    if is_unmapped {
        // SAFETY: `DescriptorBufferPipeline::new` mapped it, and nothing below uses `mapped` again (owner).
        unsafe { lab.device.unmap_memory(program.descriptors.memory) };
    }
    lab.submit_and_wait(&[commands])?;
    lab.expect(&target, scope::COMPUTE_WRITE, &[14; WORDS])
}

fn read(options: &SampleOptions) -> Result<(), Failure> {
    double(options, false)
}

fn rewritten(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &NEEDS)?;
    let (source, other, target) =
        (words(&lab, "source", SIZE)?, words(&lab, "other", SIZE)?, words(&lab, "target", SIZE)?);
    let program = DescriptorBufferPipeline::new(&lab, shader!("double.comp"), &[1, 1], 0)?;
    program.write((0, 0), &source, SIZE);
    program.write((1, 0), &target, SIZE);
    let commands = lab.record_new(lab.main, "double", |commands| {
        lab.fill(commands, &source, 7);
        lab.memory_barrier(commands, scope::COPY_WRITE, scope::COMPUTE_READ);
        program.dispatch(commands, &[]);
    })?;
    let fence = lab.fence(vk::FenceCreateFlags::empty())?;
    lab.submit(lab.main, &vk::SubmitInfo::default().command_buffers(&[commands]), fence)?;
    if lab.is_fixed() {
        lab.wait(fence)?;
    }
    program.write((0, 0), &other, SIZE);
    lab.wait(fence)?;
    lab.expect(&target, scope::COMPUTE_WRITE, &[14; WORDS])
}

fn unmapped(options: &SampleOptions) -> Result<(), Failure> {
    double(options, true)
}

fn index(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &NEEDS)?;
    let (whole, target) = (words(&lab, "whole", SIZE)?, words(&lab, "target", SIZE)?);
    let choice = words(&lab, "choice", SIZE)?;
    let program = DescriptorBufferPipeline::new(&lab, shader!("pick.comp"), &[4, 1, 1], 0)?;
    (0..4).for_each(|element| program.write((0, element), &whole, SIZE));
    program.write((1, 0), &target, SIZE);
    program.write((2, 0), &choice, SIZE);
    lab.run_once("pick", |commands| {
        lab.fill(commands, &whole, 5);
        lab.update(commands, &choice, &[lab.planted_or_fixed(4, 2)]);
        lab.memory_barrier(commands, scope::COPY_WRITE, scope::COMPUTE_READ);
        program.dispatch(commands, &[]);
    })?;
    lab.expect(&target, scope::COMPUTE_WRITE, &[5; WORDS])
}

/// The set is there and not used.
fn past(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &NEEDS)?;
    let source = words(&lab, "source", lab.planted_or_fixed(SIZE - 4, SIZE))?;
    let target = words(&lab, "target", SIZE)?;
    let program = DescriptorBufferPipeline::new(&lab, shader!("address.comp"), &[1], 16)?;
    program.write((0, 0), &target, SIZE);
    let constants: Vec<u8> = [&source, &target].iter().flat_map(|it| address(&lab, it).to_ne_bytes()).collect();
    lab.run_once("double", |commands| {
        lab.fill_buffer(commands, &source, (0, source.size), 7);
        lab.memory_barrier(commands, scope::COPY_WRITE, scope::COMPUTE_READ);
        program.dispatch(commands, &constants);
    })?;
    lab.expect(&target, scope::COMPUTE_WRITE, &[14; WORDS])
}

/// The one between uses all push constants, so that checks need a set of theirs for it. A set in a buffer that was
/// chosen before it must be there behind it as well.
fn between(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &NEEDS)?;
    let [source, target, other] = ["source", "target", "other"].map(|it| words(&lab, it, SIZE));
    let (source, target, other) = (source?, target?, other?);
    let program = DescriptorBufferPipeline::new(&lab, shader!("double.comp"), &[1, 1], 0)?;
    program.write((0, 0), &source, lab.planted_or_fixed(SIZE / 2, SIZE));
    program.write((1, 0), &target, SIZE);
    // SAFETY: `Gpu` has the physical device from its own instance, which it drops last (lifetime).
    let limits = unsafe { lab.instance.handle.get_physical_device_properties(lab.physical_device) }.limits;
    let range = vk::PushConstantRange { stage_flags: STAGES, offset: 0, size: limits.max_push_constants_size };
    let layout = lab.pipeline_layout(&[], Some(range))?;
    let pipeline = lab.compute_pipeline(shader!("address.comp"), layout, &[])?;
    let constants: Vec<u8> = [&source, &other].iter().flat_map(|it| address(&lab, it).to_ne_bytes()).collect();
    lab.run_once("double", |commands| {
        lab.fill(commands, &source, 7);
        lab.memory_barrier(commands, scope::COPY_WRITE, scope::COMPUTE_READ);
        program.dispatch(commands, &[]);
        // SAFETY: live objects, recorded by this thread, and the feature is enabled (lifetime, owner, feature).
        unsafe {
            lab.device.cmd_bind_pipeline(commands, COMPUTE, pipeline);
            lab.device.cmd_push_constants(commands, layout, STAGES, 0, &constants);
            lab.device.cmd_dispatch(commands, WORDS as u32 / 64, 1, 1);
        }
        lab.memory_barrier(commands, scope::COMPUTE_WRITE, scope::COPY_WRITE);
        lab.fill(commands, &target, 0);
        lab.memory_barrier(commands, scope::COPY_WRITE, scope::COMPUTE_WRITE);
        program.dispatch_again(commands);
    })?;
    lab.expect(&other, scope::COMPUTE_WRITE, &[14; WORDS])?;
    lab.expect(&target, scope::COMPUTE_WRITE, &[14; WORDS])
}
