//! Shaders that access more than is pushed: descriptors that are written into command buffers.

use ash::{khr, vk};

use crate::arguments::SampleOptions;
use crate::common::{Buffer, Feature, MemoryPlacement, Needs, Shader, binding_of, scope, shader};
use crate::failure::Failure;
use crate::faults::context::{FaultContext, SIZE, WORDS};
use crate::faults::faults;

faults! {
    pushed: "bounds-pushed", "a dispatch reads behind the range of a buffer that is pushed.",
    template: "bounds-pushed-template", "a dispatch reads behind the range of a buffer that is pushed by a template.",
    never: "bounds-pushed-never", "the buffer that is chosen out of an array was never pushed.",
    kept: "bounds-pushed-kept", "two dispatches read behind the range of a buffer that is pushed once, for both of them.",
}

const STORAGE: vk::DescriptorType = vk::DescriptorType::STORAGE_BUFFER;
const STAGES: vk::ShaderStageFlags = vk::ShaderStageFlags::COMPUTE;
const COMPUTE: vk::PipelineBindPoint = vk::PipelineBindPoint::COMPUTE;
const NEEDS: Needs = Needs {
    features: &[Feature::ShaderStorageBufferArrayDynamicIndexing],
    extensions: &[khr::push_descriptor::NAME],
    ..Needs::NOTHING
};

/// A pipeline with a set that is pushed.
struct PushDescriptorPipeline<'a> {
    lab: &'a FaultContext<'a>,
    pushes: khr::push_descriptor::Device,
    pipeline: vk::Pipeline,
    layout: vk::PipelineLayout,
}

impl<'a> PushDescriptorPipeline<'a> {
    /// With as many buffers in each binding.
    fn new(lab: &'a FaultContext, shader: Shader, counts: &[u32]) -> Result<PushDescriptorPipeline<'a>, Failure> {
        let bindings: Vec<_> = (0..).zip(counts).map(|(at, count)| binding_of(at, STORAGE, *count, STAGES)).collect();
        let flags = vk::DescriptorSetLayoutCreateFlags::PUSH_DESCRIPTOR_KHR;
        let info = vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings).flags(flags);
        let layout = lab.pipeline_layout(&[lab.set_layout_of(&info)?], None)?;
        let pipeline = lab.compute_pipeline(shader, layout, &[])?;
        let pushes = khr::push_descriptor::Device::new(&lab.instance.handle, &lab.device);
        Ok(PushDescriptorPipeline { lab, pushes, pipeline, layout })
    }

    /// Pushes buffers to the elements of a binding, from one on.
    fn push(&self, commands: vk::CommandBuffer, (binding, first): (u32, u32), infos: &[vk::DescriptorBufferInfo]) {
        let write = vk::WriteDescriptorSet::default().dst_binding(binding).dst_array_element(first);
        let writes = [write.descriptor_type(STORAGE).buffer_info(infos)];
        // SAFETY: live objects, recorded by this thread, and the extension is enabled (lifetime, owner, feature).
        unsafe { self.pushes.cmd_push_descriptor_set(commands, COMPUTE, self.layout, 0, &writes) };
    }

    fn dispatch(&self, commands: vk::CommandBuffer) {
        // SAFETY: live objects, recorded by this thread (lifetime, owner).
        unsafe {
            self.lab.device.cmd_bind_pipeline(commands, COMPUTE, self.pipeline);
            self.lab.device.cmd_dispatch(commands, WORDS as u32 / 64, 1, 1);
        }
    }
}

/// Half of the source, or all of it.
fn part(lab: &FaultContext, source: &Buffer) -> vk::DescriptorBufferInfo {
    vk::DescriptorBufferInfo { range: lab.planted_or_fixed(SIZE / 2, SIZE), ..source.descriptor() }
}

/// The two bindings are pushed one after the other.
fn pushed(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &NEEDS)?;
    let [source, target] = lab.word_buffers(["source", "target"])?;
    let program = PushDescriptorPipeline::new(&lab, shader!("double.comp"), &[1, 1])?;
    lab.run_once("push", |commands| {
        lab.fill(commands, &source, 7);
        lab.memory_barrier(commands, scope::COPY_WRITE, scope::COMPUTE_READ);
        program.push(commands, (0, 0), &[part(&lab, &source)]);
        program.push(commands, (1, 0), &[target.descriptor()]);
        program.dispatch(commands);
    })?;
    lab.expect(&target, scope::COMPUTE_WRITE, &[14; WORDS])
}

fn template(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &NEEDS)?;
    let [source, target] = lab.word_buffers(["source", "target"])?;
    let program = PushDescriptorPipeline::new(&lab, shader!("double.comp"), &[1, 1])?;
    let stride = size_of::<vk::DescriptorBufferInfo>();
    let entry = |at: u32| vk::DescriptorUpdateTemplateEntry {
        dst_binding: at,
        dst_array_element: 0,
        descriptor_count: 1,
        descriptor_type: STORAGE,
        offset: at as usize * stride,
        stride,
    };
    let entries = [entry(0), entry(1)];
    let info = vk::DescriptorUpdateTemplateCreateInfo::default()
        .descriptor_update_entries(&entries)
        .template_type(vk::DescriptorUpdateTemplateType::PUSH_DESCRIPTORS_KHR)
        .pipeline_bind_point(COMPUTE)
        .pipeline_layout(program.layout);
    // SAFETY: `info` lives until the call returns (lifetime).
    let template = lab.destroy_at_end(unsafe { lab.device.create_descriptor_update_template(&info, None) }?);
    let data = [part(&lab, &source), target.descriptor()];
    lab.run_once("push", |commands| {
        lab.fill(commands, &source, 7);
        lab.memory_barrier(commands, scope::COPY_WRITE, scope::COMPUTE_READ);
        // SAFETY: live objects, recorded by this thread, and data as the template wants it (lifetime, owner).
        unsafe {
            let functions = program.pushes.fp();
            let push = functions.cmd_push_descriptor_set_with_template_khr;
            push(commands, template, program.layout, 0, data.as_ptr().cast());
        }
        program.dispatch(commands);
    })?;
    lab.expect(&target, scope::COMPUTE_WRITE, &[14; WORDS])
}

/// The third of four buffers is chosen.
fn never(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &NEEDS)?;
    let [whole, target, choice] = lab.word_buffers(["whole", "target", "choice"])?;
    let program = PushDescriptorPipeline::new(&lab, shader!("pick.comp"), &[4, 1, 1])?;
    lab.run_once("push", |commands| {
        lab.fill(commands, &whole, 5);
        lab.update(commands, &choice, &[2]);
        lab.memory_barrier(commands, scope::COPY_WRITE, scope::COMPUTE_READ);
        program.push(commands, (0, 0), &[whole.descriptor(); 4][..lab.planted_or_fixed(2, 4)]);
        program.push(commands, (1, 0), &[target.descriptor()]);
        program.push(commands, (2, 0), &[choice.descriptor()]);
        program.dispatch(commands);
    })?;
    lab.expect(&target, scope::COMPUTE_WRITE, &[5; WORDS])
}

/// Between the two is a dispatch that uses no descriptors, with a layout that has all push constants.
fn kept(options: &SampleOptions) -> Result<(), Failure> {
    let features = &[Feature::BufferDeviceAddress];
    let lab = FaultContext::new(options, &Needs { features, ..NEEDS })?;
    let [source, target] = lab.word_buffers(["source", "target"])?;
    let usage = vk::BufferUsageFlags::SHADER_DEVICE_ADDRESS | vk::BufferUsageFlags::TRANSFER_DST;
    let between = lab.buffer("between", SIZE, usage, MemoryPlacement::Device)?;
    let program = PushDescriptorPipeline::new(&lab, shader!("double.comp"), &[1, 1])?;
    // SAFETY: `Gpu` has the physical device from its own instance, which it drops last (lifetime).
    let limits = unsafe { lab.instance.handle.get_physical_device_properties(lab.physical_device) }.limits;
    let all = vk::PushConstantRange { stage_flags: STAGES, offset: 0, size: limits.max_push_constants_size };
    let layout = lab.pipeline_layout(&[], Some(all))?;
    let pipeline = lab.compute_pipeline(shader!("address.comp"), layout, &[])?;
    let info = vk::BufferDeviceAddressInfo::default().buffer(between.handle);
    // SAFETY: a live buffer, and the feature is enabled (lifetime, feature).
    let address = unsafe { lab.device.get_buffer_device_address(&info) }.to_ne_bytes();
    lab.run_once("push", |commands| {
        lab.fill(commands, &source, 7);
        lab.fill(commands, &between, 0);
        lab.memory_barrier(commands, scope::COPY_WRITE, scope::COMPUTE_READ);
        lab.memory_barrier(commands, scope::COPY_WRITE, scope::COMPUTE_WRITE);
        program.push(commands, (0, 0), &[part(&lab, &source)]);
        program.push(commands, (1, 0), &[target.descriptor()]);
        program.dispatch(commands);
        // SAFETY: live objects, recorded by this thread (lifetime, owner).
        unsafe {
            lab.device.cmd_bind_pipeline(commands, COMPUTE, pipeline);
            lab.device.cmd_push_constants(commands, layout, STAGES, 0, &[address, address].concat());
            lab.device.cmd_dispatch(commands, WORDS as u32 / 64, 1, 1);
        }
        lab.memory_barrier(commands, scope::COMPUTE_WRITE, scope::COMPUTE_WRITE);
        program.dispatch(commands);
    })?;
    lab.expect(&target, scope::COMPUTE_WRITE, &[14; WORDS])
}
