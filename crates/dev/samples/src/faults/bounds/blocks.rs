//! Accesses out of bounds by other ways: in an inline uniform block, where access is robust, and in a shader that
//! knows no lines.

use ash::{ext, vk};

use super::buffers::half;
use crate::arguments::SampleOptions;
use crate::common::{Feature, MemoryPlacement, Needs, binding_of, scope, shader};
use crate::failure::Failure;
use crate::faults::bound_pipeline::{BoundPipeline, ShaderResource};
use crate::faults::context::{FaultContext, SIZE, WORDS};
use crate::faults::faults;

faults! {
    inline: "bounds-inline", "a shader reads more than an inline uniform block has.",
    robust: "bounds-robust", "a dispatch reads behind a buffer, where the device accesses buffers robustly.",
    zeros: "bounds-zeros", "a dispatch reads behind a buffer, where the device promises zeros for that.",
    bare: "bounds-bare", "a shader without any names or lines reads behind a buffer.",
    second: "bounds-second", "of two command buffers that are submitted at once the second reads behind a buffer.",
}

const INLINE: vk::DescriptorType = vk::DescriptorType::INLINE_UNIFORM_BLOCK;
const STORAGE: vk::DescriptorType = vk::DescriptorType::STORAGE_BUFFER;
const COMPUTE: vk::ShaderStageFlags = vk::ShaderStageFlags::COMPUTE;
/// Sixteen vectors of four words, of which the first is the number seven.
const BLOCK: usize = 64;

/// Half of the vectors are there.
fn inline(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &Needs { features: &[Feature::InlineUniformBlock], ..Needs::NOTHING })?;
    let [target] = lab.word_buffers(["target"])?;
    let words = vec![7u32; lab.planted_or_fixed(BLOCK / 2, BLOCK)];
    let bytes: Vec<u8> = words.iter().flat_map(|it| it.to_ne_bytes()).collect();
    let bindings = [binding_of(0, INLINE, bytes.len() as u32, COMPUTE), binding_of(1, STORAGE, 1, COMPUTE)];
    let set_layout = lab.set_layout_of(&vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings))?;
    let sizes = [(INLINE, bytes.len() as u32), (STORAGE, 1)];
    let sizes = sizes.map(|(ty, descriptor_count)| vk::DescriptorPoolSize { ty, descriptor_count });
    let mut blocks = vk::DescriptorPoolInlineUniformBlockCreateInfo::default().max_inline_uniform_block_bindings(1);
    let info = vk::DescriptorPoolCreateInfo::default().max_sets(1).pool_sizes(&sizes).push_next(&mut blocks);
    // SAFETY: `info` lives until the call returns, and the feature is enabled (lifetime, feature).
    let pool = lab.destroy_at_end(unsafe { lab.device.create_descriptor_pool(&info, None) }?);
    let set = lab.descriptor_set(pool, set_layout)?;
    lab.write_buffers(set, (1, 0), STORAGE, &[target]);
    let mut data = vk::WriteDescriptorSetInlineUniformBlock::default().data(&bytes);
    let write = vk::WriteDescriptorSet::default().dst_set(set).dst_binding(0).descriptor_type(INLINE);
    lab.write_descriptors(&[write.descriptor_count(bytes.len() as u32).push_next(&mut data)]);
    let layout = lab.pipeline_layout(&[set_layout], None)?;
    let pipeline = lab.compute_pipeline(shader!("inline.comp"), layout, &[])?;
    let program = BoundPipeline::of(pipeline, layout, set);
    lab.run_once("spread", |commands| program.dispatch(&lab, commands))?;
    lab.expect(&target, scope::COMPUTE_WRITE, &[7; WORDS])
}

fn robust(options: &SampleOptions) -> Result<(), Failure> {
    half(
        options,
        &Needs { features: &[Feature::RobustBufferAccess], ..Needs::NOTHING },
        shader!("double.comp"),
        "double",
    )
}

/// The value of a read behind the end is defined, so it is compared with the fault as well.
fn zeros(options: &SampleOptions) -> Result<(), Failure> {
    let features = &[Feature::RobustBufferAccess, Feature::RobustBufferAccess2];
    let lab = FaultContext::new(options, &Needs { features, extensions: &[ext::robustness2::NAME], ..Needs::NOTHING })?;
    let [target] = lab.word_buffers(["target"])?;
    let there = lab.planted_or_fixed(WORDS / 2, WORDS);
    let usage = vk::BufferUsageFlags::STORAGE_BUFFER | vk::BufferUsageFlags::TRANSFER_DST;
    let source = lab.buffer("source", there as u64 * 4, usage, MemoryPlacement::Device)?;
    let bound = [ShaderResource::Storage(&[source]), ShaderResource::Storage(&[target])];
    let program = BoundPipeline::compute(&lab, shader!("double.comp"), &[], &bound)?;
    lab.run_once("double", |commands| {
        lab.fill_buffer(commands, &source, (0, source.size), 7);
        lab.memory_barrier(commands, scope::COPY_WRITE, scope::COMPUTE_READ);
        program.dispatch(&lab, commands);
    })?;
    let want = [vec![14; there], vec![0; WORDS - there]].concat();
    options.check.words("the result", &lab.download(&target, scope::COMPUTE_WRITE)?, &want)
}

fn bare(options: &SampleOptions) -> Result<(), Failure> {
    half(options, &Needs::NOTHING, shader!("bare.spvasm"), "double")
}

fn second(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &Needs::NOTHING)?;
    let [source, first, second] = lab.word_buffers(["source", "first target", "second target"])?;
    let program = |range, target| {
        let bound = [ShaderResource::Dynamic(&source, range), ShaderResource::Storage(&[target])];
        BoundPipeline::compute(&lab, shader!("double.comp"), &[], &bound)
    };
    let programs = [program(SIZE, first)?, program(lab.planted_or_fixed(SIZE / 2, SIZE), second)?];
    lab.run_once("fill", |commands| {
        lab.fill(commands, &source, 7);
        lab.memory_barrier(commands, scope::COPY_WRITE, scope::COMPUTE_READ);
    })?;
    let record = |name, program: &BoundPipeline| {
        lab.record_new(lab.main, name, |commands| {
            program.bind(&lab, commands, &[0]);
            // SAFETY: live objects, recorded by this thread (lifetime, owner).
            unsafe { lab.device.cmd_dispatch(commands, WORDS as u32 / 64, 1, 1) };
        })
    };
    lab.submit_and_wait(&[record("first", &programs[0])?, record("second", &programs[1])?])?;
    lab.expect(&first, scope::COMPUTE_WRITE, &[14; WORDS])?;
    lab.expect(&second, scope::COMPUTE_WRITE, &[14; WORDS])
}
