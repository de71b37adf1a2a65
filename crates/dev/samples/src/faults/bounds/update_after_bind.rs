//! Descriptors that are written after the command buffer that uses them was recorded.

use ash::vk;

use crate::arguments::SampleOptions;
use crate::common::{Buffer, Feature, Needs, binding_of, scope, shader};
use crate::failure::Failure;
use crate::faults::context::{FaultContext, SIZE, WORDS};
use crate::faults::faults;

faults! {
    never: "bounds-late", "the buffer that is chosen out of an array is not written when the dispatch is submitted.",
    short: "bounds-late-short", "a buffer is exchanged for a part of it after a secondary command buffer was recorded.",
}

const LATE: Needs = Needs {
    features: &[
        Feature::DescriptorBindingPartiallyBound,
        Feature::DescriptorBindingStorageBufferUpdateAfterBind,
        Feature::ShaderStorageBufferArrayDynamicIndexing,
    ],
    ..Needs::NOTHING
};
const STORAGE: vk::DescriptorType = vk::DescriptorType::STORAGE_BUFFER;
const COMPUTE: vk::ShaderStageFlags = vk::ShaderStageFlags::COMPUTE;
/// The one of the four buffers that is copied.
const CHOICE: u32 = 2;
const SHORT: u64 = 64;

/// Copies the third of four buffers, which may be written after they were bound.
struct LateBoundDispatch<'a> {
    lab: &'a FaultContext<'a>,
    pipeline: vk::Pipeline,
    layout: vk::PipelineLayout,
    set: vk::DescriptorSet,
    whole: Buffer,
    target: Buffer,
}

impl<'a> LateBoundDispatch<'a> {
    fn new(lab: &'a FaultContext) -> Result<LateBoundDispatch<'a>, Failure> {
        let [whole, target, choice] = lab.word_buffers(["whole", "target", "choice"])?;
        let bindings = [(0, 4), (1, 1), (2, 1)].map(|(at, count)| binding_of(at, STORAGE, count, COMPUTE));
        let late = vk::DescriptorBindingFlags::UPDATE_AFTER_BIND | vk::DescriptorBindingFlags::PARTIALLY_BOUND;
        let flags = [late, vk::DescriptorBindingFlags::empty(), vk::DescriptorBindingFlags::empty()];
        let mut flags = vk::DescriptorSetLayoutBindingFlagsCreateInfo::default().binding_flags(&flags);
        let info = vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings);
        let info = info.flags(vk::DescriptorSetLayoutCreateFlags::UPDATE_AFTER_BIND_POOL).push_next(&mut flags);
        let set_layout = lab.set_layout_of(&info)?;
        let pool_flags = vk::DescriptorPoolCreateFlags::UPDATE_AFTER_BIND;
        let pool = lab.destroy_at_end(lab.unowned_descriptor_pool(1, &[(STORAGE, 6)], pool_flags)?);
        let set = lab.descriptor_set(pool, set_layout)?;
        lab.write_buffers(set, (1, 0), STORAGE, &[target]);
        lab.write_buffers(set, (2, 0), STORAGE, &[choice]);
        lab.run_once("fill", |commands| {
            lab.fill(commands, &whole, 5);
            lab.update(commands, &choice, &[CHOICE]);
            lab.memory_barrier(commands, scope::COPY_WRITE, scope::COMPUTE_READ);
        })?;
        let layout = lab.pipeline_layout(&[set_layout], None)?;
        let pipeline = lab.compute_pipeline(shader!("pick.comp"), layout, &[])?;
        Ok(LateBoundDispatch { lab, pipeline, layout, set, whole, target })
    }

    fn dispatch(&self, commands: vk::CommandBuffer) {
        let (device, point) = (&self.lab.device, vk::PipelineBindPoint::COMPUTE);
        // SAFETY: live objects, recorded by this thread; what is not written yet may be until the submission
        // (lifetime, owner, feature).
        unsafe {
            device.cmd_bind_pipeline(commands, point, self.pipeline);
            device.cmd_bind_descriptor_sets(commands, point, self.layout, 0, &[self.set], &[]);
            device.cmd_dispatch(commands, WORDS as u32 / 64, 1, 1);
        }
    }

    /// Writes an element of the array.
    fn write(&self, element: u32, range: u64) {
        let info = [vk::DescriptorBufferInfo { range, ..self.whole.descriptor() }];
        let write = vk::WriteDescriptorSet::default().dst_set(self.set).descriptor_type(STORAGE).buffer_info(&info);
        self.lab.write_descriptors(&[write.dst_binding(0).dst_array_element(element)]);
    }

    /// Executes the recorded commands, and compares the results.
    fn run(&self, commands: vk::CommandBuffer) -> Result<(), Failure> {
        self.lab.submit_and_wait(&[commands])?;
        self.lab.expect(&self.target, scope::COMPUTE_WRITE, &[5; WORDS])
    }
}

/// Nothing of the array is written when the dispatch is recorded.
fn never(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &LATE)?;
    let pick = LateBoundDispatch::new(&lab)?;
    let commands = lab.record_new(lab.main, "pick", |commands| pick.dispatch(commands))?;
    (0..4).filter(|it| lab.is_fixed() || *it != CHOICE).for_each(|value| pick.write(value, SIZE));
    pick.run(commands)
}

/// By the time of recording it is the other way round: then too little is bound where nothing is wrong.
fn short(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &LATE)?;
    let pick = LateBoundDispatch::new(&lab)?;
    (0..4).for_each(|it| pick.write(it, SIZE));
    pick.write(CHOICE, lab.planted_or_fixed(SIZE, SHORT));
    let inheritance = vk::CommandBufferInheritanceInfo::default();
    let secondary = lab.record_secondary("pick", &inheritance, |commands| pick.dispatch(commands))?;
    let commands = lab.record_new(lab.main, "execute", |commands| {
        // SAFETY: live objects, recorded by this thread (lifetime, owner).
        unsafe { lab.device.cmd_execute_commands(commands, &[secondary]) };
    })?;
    pick.write(CHOICE, lab.planted_or_fixed(SHORT, SIZE));
    pick.run(commands)
}
