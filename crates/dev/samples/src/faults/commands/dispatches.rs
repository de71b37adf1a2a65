//! Dispatches that read what may still be written, each finding it in another way.

use ash::{khr, vk};

use crate::arguments::SampleOptions;
use crate::common::{Buffer, ComputeKernel, Feature, MemoryPlacement, Needs, binding_of, scope, shader};
use crate::failure::Failure;
use crate::faults::bound_pipeline::{BoundPipeline, ShaderResource};
use crate::faults::context::{FaultContext, GREEN_WORD, SIZE, WORDS};
use crate::faults::faults;

faults! {
    missing_barrier: "missing-barrier-compute",
        "a dispatch reads what the one before wrote, without a barrier (read after write).",
    indirect: "dispatch-indirect", "a dispatch takes its size from a buffer that may still be written.",
    specialization: "specialization", "a constant makes a shader read the one of two buffers that may still be written.",
    array: "descriptor-array", "a shader reads the one buffer of an array that may still be written.",
    dynamic_offset: "dynamic-offset", "a dynamic offset leads a shader to the half that may still be written.",
    push_descriptors: "push-descriptors", "a shader reads a pushed buffer that may still be written.",
    device_address: "device-address", "a shader reads, by its address, a buffer that may still be written.",
    storage_image: "storage-image", "an image is copied while a shader may still write it.",
}

fn missing_barrier(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &Needs::NOTHING)?;
    let [source, between, target] = lab.word_buffers(["source", "between", "target"])?;
    let scan = ComputeKernel::new(&lab, shader!("scan.comp"), &[[source, between], [between, target]], 8)?;
    let count = WORDS as u32;
    lab.run_once("two dispatches", |commands| {
        lab.fill(commands, &source, 1);
        lab.buffer_barrier(commands, &source, scope::COPY_WRITE, scope::COMPUTE_READ);
        lab.labeled(commands, "write", || scan.dispatch(&lab, commands, 0, &[1, count], count));
        lab.barrier_if_fixed(commands, scope::COMPUTE_WRITE, scope::COMPUTE_READ);
        lab.labeled(commands, "read", || scan.dispatch(&lab, commands, 1, &[2, count], count));
    })?;
    let want: Vec<u32> = (1..=count).map(|it| it.min(4)).collect();
    lab.expect(&target, scope::COMPUTE_WRITE, &want)
}

fn indirect(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &Needs::NOTHING)?;
    let [source, parameters, target] = lab.word_buffers(["source", "parameters", "target"])?;
    let bound = [ShaderResource::Storage(&[source]), ShaderResource::Storage(&[target])];
    let program = BoundPipeline::compute(&lab, shader!("double.comp"), &[], &bound)?;
    lab.run_once("update and dispatch", |commands| {
        lab.fill(commands, &source, 7);
        lab.memory_barrier(commands, scope::COPY_WRITE, scope::COMPUTE_READ);
        lab.update(commands, &parameters, &[WORDS as u32 / 64, 1, 1]);
        lab.barrier_if_fixed(commands, scope::COPY_WRITE, scope::INDIRECT_READ);
        program.bind(&lab, commands, &[]);
        // SAFETY: live objects, recorded by this thread (lifetime, owner).
        unsafe { lab.device.cmd_dispatch_indirect(commands, parameters.handle, 0) };
    })?;
    lab.expect(&target, scope::COMPUTE_WRITE, &[14; WORDS])
}

/// Two buffers are filled, the first with a barrier behind it; without the fault, only that one is read.
fn specialization(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &Needs::NOTHING)?;
    let [first, second, target] = lab.word_buffers(["first", "second", "target"])?;
    let bound =
        [ShaderResource::Storage(&[first]), ShaderResource::Storage(&[second]), ShaderResource::Storage(&[target])];
    let program = BoundPipeline::compute(&lab, shader!("choose.comp"), &[lab.planted_or_fixed(1, 0)], &bound)?;
    lab.run_once("fill and choose", |commands| {
        lab.fill(commands, &first, 7);
        lab.memory_barrier(commands, scope::COPY_WRITE, scope::COMPUTE_READ);
        lab.fill(commands, &second, 8);
        program.dispatch(&lab, commands);
    })?;
    lab.expect(&target, scope::COMPUTE_WRITE, &[7; WORDS])
}

/// The barrier is on the one buffer that the shader reads.
fn array(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &Needs::NOTHING)?;
    let [target] = lab.word_buffers(["target"])?;
    let buffers = lab.word_buffers(["buffer 0", "buffer 1", "buffer 2", "buffer 3"])?;
    let bound = [ShaderResource::Storage(&buffers), ShaderResource::Storage(&[target])];
    let program = BoundPipeline::compute(&lab, shader!("element.comp"), &[], &bound)?;
    lab.run_once("fill and pick", |commands| {
        for (number, buffer) in (0..).zip(&buffers) {
            lab.fill(commands, buffer, number);
        }
        if lab.is_fixed() {
            lab.buffer_barrier(commands, &buffers[2], scope::COPY_WRITE, scope::COMPUTE_READ);
        }
        program.dispatch(&lab, commands);
    })?;
    lab.expect(&target, scope::COMPUTE_WRITE, &[2; WORDS])
}

/// Half of a buffer is filled; without the fault, the other half is read.
fn dynamic_offset(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &Needs::NOTHING)?;
    let [source, target] = lab.word_buffers(["source", "target"])?;
    let bound = [ShaderResource::Dynamic(&source, SIZE / 2), ShaderResource::Storage(&[target])];
    let program = BoundPipeline::compute(&lab, shader!("double.comp"), &[], &bound)?;
    lab.run_once("fill a half", |commands| {
        lab.fill_buffer(commands, &source, (0, SIZE / 2), 7);
        lab.memory_barrier(commands, scope::COPY_WRITE, scope::COMPUTE_READ);
        lab.fill_buffer(commands, &source, (SIZE / 2, SIZE / 2), 8);
        program.bind(&lab, commands, &[lab.planted_or_fixed(SIZE as u32 / 2, 0)]);
        // SAFETY: live objects, recorded by this thread (lifetime, owner).
        unsafe { lab.device.cmd_dispatch(commands, WORDS as u32 / 128, 1, 1) };
    })?;
    lab.run_once("fill the rest", |commands| lab.fill_buffer(commands, &target, (SIZE / 2, SIZE / 2), 14))?;
    lab.expect(&target, scope::COMPUTE_WRITE.union(scope::COPY_WRITE), &[14; WORDS])
}

fn push_descriptors(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &Needs { extensions: &[khr::push_descriptor::NAME], ..Needs::NOTHING })?;
    let [source, target] = lab.word_buffers(["source", "target"])?;
    let storage = vk::DescriptorType::STORAGE_BUFFER;
    let bindings = [0, 1].map(|it| binding_of(it, storage, 1, vk::ShaderStageFlags::COMPUTE));
    let flags = vk::DescriptorSetLayoutCreateFlags::PUSH_DESCRIPTOR_KHR;
    let set = lab.set_layout_of(&vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings).flags(flags))?;
    let layout = lab.pipeline_layout(&[set], None)?;
    let pipeline = lab.compute_pipeline(shader!("double.comp"), layout, &[])?;
    let pushes = khr::push_descriptor::Device::new(&lab.instance.handle, &lab.device);
    lab.run_once("fill and push", |commands| {
        lab.fill(commands, &source, 7);
        lab.barrier_if_fixed(commands, scope::COPY_WRITE, scope::COMPUTE_READ);
        let infos = [[source.descriptor()], [target.descriptor()]];
        let write = |value: usize| {
            let write = vk::WriteDescriptorSet::default().dst_binding(value as u32).descriptor_type(storage);
            write.buffer_info(&infos[value])
        };
        let (writes, compute) = ([write(0), write(1)], vk::PipelineBindPoint::COMPUTE);
        // SAFETY: live objects, recorded by this thread, and the extension is enabled (lifetime, owner, feature).
        unsafe {
            lab.device.cmd_bind_pipeline(commands, compute, pipeline);
            pushes.cmd_push_descriptor_set(commands, compute, layout, 0, &writes);
            lab.device.cmd_dispatch(commands, WORDS as u32 / 64, 1, 1);
        }
    })?;
    lab.expect(&target, scope::COMPUTE_WRITE, &[14; WORDS])
}

fn device_address(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &Needs { features: &[Feature::BufferDeviceAddress], ..Needs::NOTHING })?;
    let usage = vk::BufferUsageFlags::SHADER_DEVICE_ADDRESS
        | vk::BufferUsageFlags::TRANSFER_SRC
        | vk::BufferUsageFlags::TRANSFER_DST;
    let source = lab.buffer("source", SIZE, usage, MemoryPlacement::Device)?;
    let target = lab.buffer("target", SIZE, usage, MemoryPlacement::Device)?;
    let address = |buffer: &Buffer| {
        let info = vk::BufferDeviceAddressInfo::default().buffer(buffer.handle);
        // SAFETY: a live buffer, and the feature is enabled (lifetime, feature).
        unsafe { lab.device.get_buffer_device_address(&info) }.to_ne_bytes()
    };
    let constants = [address(&source), address(&target)].concat();
    let stage_flags = vk::ShaderStageFlags::COMPUTE;
    let layout = lab.pipeline_layout(&[], Some(vk::PushConstantRange { stage_flags, offset: 0, size: 16 }))?;
    let pipeline = lab.compute_pipeline(shader!("address.comp"), layout, &[])?;
    lab.run_once("fill and dispatch", |commands| {
        lab.fill(commands, &source, 7);
        lab.barrier_if_fixed(commands, scope::COPY_WRITE, scope::COMPUTE_READ);
        // SAFETY: live objects, recorded by this thread, and the feature is enabled (lifetime, owner, feature).
        unsafe {
            lab.device.cmd_bind_pipeline(commands, vk::PipelineBindPoint::COMPUTE, pipeline);
            lab.device.cmd_push_constants(commands, layout, stage_flags, 0, &constants);
            lab.device.cmd_dispatch(commands, WORDS as u32 / 64, 1, 1);
        }
    })?;
    lab.expect(&target, scope::COMPUTE_WRITE, &[14; WORDS])
}

fn storage_image(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &Needs::NOTHING)?;
    let ([target], [image]) = (lab.word_buffers(["target"])?, lab.color_images(["painted"])?);
    let program = BoundPipeline::compute(&lab, shader!("paint.comp"), &[], &[ShaderResource::Texels(&image)])?;
    lab.run_once("paint and copy", |commands| {
        program.dispatch(&lab, commands);
        lab.barrier_if_fixed(commands, scope::COMPUTE_WRITE, scope::COPY_READ);
        lab.read_texels(commands, &image, &target);
    })?;
    lab.expect(&target, scope::COPY_WRITE, &[GREEN_WORD; WORDS])
}
