//! Shaders that access an address that belongs to no buffer, or to a destroyed one; and shaders whose pipeline layouts
//! have no room for our tables.

use ash::{ext, vk};

use crate::arguments::SampleOptions;
use crate::common::{Buffer, Feature, MemoryPlacement, Needs, binding_of, scope, shader};
use crate::failure::Failure;
use crate::faults::context::{FaultContext, SIZE, WORDS};
use crate::faults::faults;

faults! {
    past: "bounds-address", "a dispatch reads, by its address, one word behind the end of a buffer.",
    null: "bounds-address-null", "a dispatch reads at the address null, where shaders are checked.",
    freed: "bounds-address-freed", "a dispatch reads, by its address, a buffer that was destroyed.",
    older: "bounds-older-address", "a dispatch reads one word behind the end of a buffer, whose address the older extension gave.",
    sets_full: "bounds-full-sets", "a shader reads behind a buffer; its layout has all descriptor sets that there may be.",
    constants_full: "bounds-full-constants", "a shader reads behind a buffer; its layout has all push constants.",
    all_full: "bounds-full", "a shader reads behind a buffer; its layout has all sets and all push constants.",
}

const NEEDS: Needs = Needs { features: &[Feature::BufferDeviceAddress], ..Needs::NOTHING };

const NEEDS_OLDER: Needs = Needs {
    features: &[Feature::BufferDeviceAddressOlder],
    extensions: &[ext::buffer_device_address::NAME],
    ..Needs::NOTHING
};

fn usage() -> vk::BufferUsageFlags {
    vk::BufferUsageFlags::SHADER_DEVICE_ADDRESS
        | vk::BufferUsageFlags::TRANSFER_SRC
        | vk::BufferUsageFlags::TRANSFER_DST
}

fn address(lab: &FaultContext, buffer: &Buffer) -> u64 {
    let info = vk::BufferDeviceAddressInfo::default().buffer(buffer.handle);
    if lab.has(Feature::BufferDeviceAddressOlder) {
        let older = ext::buffer_device_address::Device::new(&lab.instance.handle, &lab.device);
        // SAFETY: a live buffer, and the feature is enabled (lifetime, feature).
        return unsafe { older.get_buffer_device_address(&info) };
    }
    // SAFETY: a live buffer, and the feature is enabled (lifetime, feature).
    unsafe { lab.device.get_buffer_device_address(&info) }
}

/// Doubles the words at one address into a buffer.
fn double(lab: &FaultContext, source: u64, filled: Option<&Buffer>) -> Result<(), Failure> {
    let target = lab.buffer("target", SIZE, usage(), MemoryPlacement::Device)?;
    let constants: Vec<u8> = [source, address(lab, &target)].iter().flat_map(|it| it.to_ne_bytes()).collect();
    let stage_flags = vk::ShaderStageFlags::COMPUTE;
    let layout = lab.pipeline_layout(&[], Some(vk::PushConstantRange { stage_flags, offset: 0, size: 16 }))?;
    let pipeline = lab.compute_pipeline(shader!("address.comp"), layout, &[])?;
    lab.run_once("double", |commands| {
        if let Some(source) = filled {
            lab.fill_buffer(commands, source, (0, source.size), 7);
            lab.memory_barrier(commands, scope::COPY_WRITE, scope::COMPUTE_READ);
        }
        // SAFETY: live objects, recorded by this thread, and the feature is enabled (lifetime, owner, feature).
        unsafe {
            lab.device.cmd_bind_pipeline(commands, vk::PipelineBindPoint::COMPUTE, pipeline);
            lab.device.cmd_push_constants(commands, layout, stage_flags, 0, &constants);
            lab.device.cmd_dispatch(commands, WORDS as u32 / 64, 1, 1);
        }
    })?;
    lab.expect(&target, scope::COMPUTE_WRITE, &[14; WORDS])
}

fn past(options: &SampleOptions) -> Result<(), Failure> {
    one_past(options, &NEEDS)
}

fn older(options: &SampleOptions) -> Result<(), Failure> {
    one_past(options, &NEEDS_OLDER)
}

/// The source lacks its last word.
fn one_past(options: &SampleOptions, needs: &Needs) -> Result<(), Failure> {
    let lab = FaultContext::new(options, needs)?;
    let source = lab.buffer("source", lab.planted_or_fixed(SIZE - 4, SIZE), usage(), MemoryPlacement::Device)?;
    double(&lab, address(&lab, &source), Some(&source))
}

/// Without checks, the process would crash.
fn null(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &NEEDS)?;
    let source = lab.buffer("source", SIZE, usage(), MemoryPlacement::Device)?;
    let is_checked = std::env::var_os("LAVASCOPE_GPU").is_some();
    let source_address = address(&lab, &source);
    double(&lab, if is_checked { lab.planted_or_fixed(0, source_address) } else { source_address }, Some(&source))
}

/// The memory of the buffer stays, so that nothing else is wrong.
fn freed(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &NEEDS)?;
    let source = lab.unowned_buffer("source", SIZE, usage(), MemoryPlacement::Device)?;
    lab.destroy_at_end(source.memory);
    lab.run_once("fill", |commands| {
        lab.fill(commands, &source, 7);
        lab.memory_barrier(commands, scope::COPY_WRITE, scope::COMPUTE_READ);
    })?;
    let source_address = address(&lab, &source);
    match lab.is_fixed() {
        true => _ = lab.destroy_at_end(source.handle),
        // SAFETY: `run_once` waited for the only submission that uses it; nobody kept the handle (lifetime).
        false => unsafe { lab.device.destroy_buffer(source.handle, None) },
    }
    double(&lab, source_address, None)
}

fn sets_full(options: &SampleOptions) -> Result<(), Failure> {
    with_full_layout(options, true, false)
}

fn constants_full(options: &SampleOptions) -> Result<(), Failure> {
    with_full_layout(options, false, true)
}

fn all_full(options: &SampleOptions) -> Result<(), Failure> {
    with_full_layout(options, true, true)
}

/// Half of the source is bound; the layout has more than its shader needs.
fn with_full_layout(options: &SampleOptions, are_sets_full: bool, are_constants_full: bool) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &Needs::NOTHING)?;
    // SAFETY: `Gpu` has the physical device from its own instance, which it drops last (lifetime).
    let limits = unsafe { lab.instance.handle.get_physical_device_properties(lab.physical_device) }.limits;
    let (storage, stage_flags) = (vk::DescriptorType::STORAGE_BUFFER, vk::ShaderStageFlags::COMPUTE);
    let [source, target] = lab.word_buffers(["source", "target"])?;
    let bindings = [0, 1].map(|at| binding_of(at, storage, 1, stage_flags));
    let layout = lab.set_layout_of(&vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings))?;
    let set = lab.descriptor_set(lab.descriptor_pool(1, &[(storage, 2)])?, layout)?;
    let halved = [vk::DescriptorBufferInfo { range: lab.planted_or_fixed(SIZE / 2, SIZE), ..source.descriptor() }];
    let write = vk::WriteDescriptorSet::default().dst_set(set).descriptor_type(storage);
    lab.write_descriptors(&[write.dst_binding(0).buffer_info(&halved)]);
    lab.write_buffers(set, (1, 0), storage, &[target]);
    let empty = lab.set_layout_of(&vk::DescriptorSetLayoutCreateInfo::default())?;
    let mut sets = vec![layout];
    if are_sets_full {
        sets.resize(limits.max_bound_descriptor_sets as usize, empty);
    }
    let all = vk::PushConstantRange { stage_flags, offset: 0, size: limits.max_push_constants_size };
    let layout = lab.pipeline_layout(&sets, are_constants_full.then_some(all))?;
    let pipeline = lab.compute_pipeline(shader!("double.comp"), layout, &[])?;
    lab.run_once("double", |commands| {
        lab.fill(commands, &source, 7);
        lab.memory_barrier(commands, scope::COPY_WRITE, scope::COMPUTE_READ);
        // SAFETY: live objects, recorded by this thread (lifetime, owner).
        unsafe {
            lab.device.cmd_bind_pipeline(commands, vk::PipelineBindPoint::COMPUTE, pipeline);
            let point = vk::PipelineBindPoint::COMPUTE;
            lab.device.cmd_bind_descriptor_sets(commands, point, layout, 0, &[set], &[]);
            lab.device.cmd_dispatch(commands, WORDS as u32 / 64, 1, 1);
        }
    })?;
    lab.expect(&target, scope::COMPUTE_WRITE, &[14; WORDS])
}
