//! Hazards that only the device can decide: which bytes, which buffer of an array, and whether at all, stands in memory.

use ash::vk;

use crate::arguments::SampleOptions;
use crate::common::{Buffer, Feature, Needs, scope, shader};
use crate::failure::Failure;
use crate::faults::bound_pipeline::{BoundPipeline, ShaderResource};
use crate::faults::context::{FaultContext, WORDS};
use crate::faults::faults;

faults! {
    bytes: "observed-bytes", "two dispatches write parts of a buffer that overlap; where they begin stands in memory.",
    submits: "observed-submits", "the same in two submissions.",
    element: "observed-element", "two dispatches write the same buffer of an array; which one stands in memory.",
    branch: "observed-branch", "a dispatch reads what the one before wrote, if memory says so.",
}

const HALF: usize = WORDS / 2;

/// Two programs, each of which writes half of a buffer, from an offset on.
fn halves(lab: &FaultContext) -> Result<([BoundPipeline; 2], [Buffer; 2]), Failure> {
    let [target, first] = lab.word_buffers(["target", "first"])?;
    let bound = [ShaderResource::Storage(&[target]), ShaderResource::Storage(&[first])];
    let program = |turn| BoundPipeline::compute(lab, shader!("place.comp"), &[turn], &bound);
    let programs = [program(0)?, program(1)?];
    lab.run_once("where", |commands| {
        let start = lab.planted_or_fixed(HALF / 2, HALF) as u32;
        lab.update(commands, &first, &[0, start]);
        lab.memory_barrier(commands, scope::COPY_WRITE, scope::COMPUTE_READ);
    })?;
    Ok((programs, [target, first]))
}

fn write_half(lab: &FaultContext, commands: vk::CommandBuffer, program: &BoundPipeline) {
    program.bind(lab, commands, &[]);
    // SAFETY: live objects, recorded by this thread (lifetime, owner).
    unsafe { lab.device.cmd_dispatch(commands, HALF as u32 / 64, 1, 1) };
}

fn both_halves() -> Vec<u32> {
    (0..WORDS).map(|at| if at < HALF { 1 } else { 2 }).collect()
}

fn bytes(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &Needs::NOTHING)?;
    let (programs, [target, _]) = halves(&lab)?;
    lab.run_once("write twice", |commands| programs.iter().for_each(|it| write_half(&lab, commands, it)))?;
    lab.expect(&target, scope::COMPUTE_WRITE, &both_halves())
}

fn submits(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &Needs::NOTHING)?;
    let (programs, [target, _]) = halves(&lab)?;
    let pool = lab.command_pool(lab.main)?;
    for program in &programs {
        let commands = lab.command_buffer(pool, vk::CommandBufferLevel::PRIMARY)?;
        // SAFETY: live objects, recorded by this thread (lifetime, owner).
        unsafe {
            lab.device.begin_command_buffer(commands, &vk::CommandBufferBeginInfo::default())?;
            write_half(&lab, commands, program);
            lab.device.end_command_buffer(commands)?;
        }
        let commands = [commands];
        lab.submit(lab.main, &vk::SubmitInfo::default().command_buffers(&commands), vk::Fence::null())?;
    }
    lab.expect(&target, scope::COMPUTE_WRITE, &both_halves())
}

fn element(options: &SampleOptions) -> Result<(), Failure> {
    let needs = Needs { features: &[Feature::ShaderStorageBufferArrayDynamicIndexing], ..Needs::NOTHING };
    let lab = FaultContext::new(options, &needs)?;
    let buffers = lab.word_buffers(["buffer 0", "buffer 1", "buffer 2", "buffer 3"])?;
    let [choice] = lab.word_buffers(["choice"])?;
    let bound = [ShaderResource::Storage(&buffers), ShaderResource::Storage(&[choice])];
    let program = |turn| BoundPipeline::compute(&lab, shader!("into.comp"), &[turn], &bound);
    let programs = [program(0)?, program(1)?];
    lab.run_once("which", |commands| {
        lab.update(commands, &choice, &[lab.planted_or_fixed(2, 1), 2]);
        lab.memory_barrier(commands, scope::COPY_WRITE, scope::COMPUTE_READ);
    })?;
    lab.run_once("write twice", |commands| programs.iter().for_each(|it| it.dispatch(&lab, commands)))?;
    lab.expect(&buffers[1], scope::COMPUTE_WRITE, &[1; WORDS])?;
    lab.expect(&buffers[2], scope::COMPUTE_WRITE, &[2; WORDS])
}

fn branch(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &Needs::NOTHING)?;
    let [source, between, target, wish] = lab.word_buffers(["source", "between", "target", "wish"])?;
    let write = BoundPipeline::compute(
        &lab,
        shader!("double.comp"),
        &[],
        &[ShaderResource::Storage(&[source]), ShaderResource::Storage(&[between])],
    )?;
    let read = BoundPipeline::compute(
        &lab,
        shader!("maybe.comp"),
        &[],
        &[ShaderResource::Storage(&[between]), ShaderResource::Storage(&[target]), ShaderResource::Storage(&[wish])],
    )?;
    lab.run_once("whether", |commands| {
        lab.fill(commands, &source, 5);
        lab.update(commands, &wish, &[lab.planted_or_fixed(1, 0)]);
        lab.memory_barrier(commands, scope::COPY_WRITE, scope::COMPUTE_READ);
    })?;
    lab.run_once("write and read", |commands| {
        write.dispatch(&lab, commands);
        read.dispatch(&lab, commands);
    })?;
    lab.expect(&target, scope::COMPUTE_WRITE, &[7; WORDS])
}
