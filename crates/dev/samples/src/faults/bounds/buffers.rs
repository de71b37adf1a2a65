//! Shaders that access more than is bound: a part of a buffer is missing, not synchronization.

use ash::vk;

use crate::arguments::SampleOptions;
use crate::common::{Buffer, Feature, MemoryPlacement, Needs, Shader, scope, shader};
use crate::failure::Failure;
use crate::faults::bound_pipeline::{BoundPipeline, DYNAMIC, RENDERING, ShaderResource};
use crate::faults::commands::draws::{GREEN_FLOATS, picture};
use crate::faults::context::{FaultContext, SIZE, WORDS};
use crate::faults::faults;

faults! {
    read: "bounds-read", "a dispatch reads behind the range of a storage buffer that is bound.",
    write: "bounds-write", "a dispatch writes behind the end of a storage buffer.",
    array: "bounds-array", "one of the buffers of an array has no word for each invocation that reads it.",
    uniform: "bounds-uniform", "a fragment shader reads more than a uniform buffer has.",
    texels: "bounds-texels", "a dispatch reads behind the end of a texel buffer.",
    texels_write: "bounds-texels-write", "a dispatch writes behind the end of a texel buffer.",
    index: "bounds-index", "an index is as large as the array of buffers that it chooses from.",
    never: "bounds-never-written", "the buffer that is chosen out of an array was never written.",
    three: "bounds-three", "each invocation makes three accesses out of bounds.",
    head: "bounds-loop", "the head of a loop reads behind the end of a storage buffer.",
    wrap: "bounds-wrap", "the place of an access does not fit into 32 bits.",
    shared: "bounds-shared", "a function that two entry points call reads behind the end of a storage buffer.",
}

fn read(options: &SampleOptions) -> Result<(), Failure> {
    half(options, &Needs::NOTHING, shader!("double.comp"), "read")
}

/// Doubles a buffer of which half is bound.
pub(crate) fn half(options: &SampleOptions, needs: &Needs, shader: Shader, name: &str) -> Result<(), Failure> {
    let lab = FaultContext::new(options, needs)?;
    let [source, target] = lab.word_buffers(["source", "target"])?;
    let bound =
        [ShaderResource::Dynamic(&source, lab.planted_or_fixed(SIZE / 2, SIZE)), ShaderResource::Storage(&[target])];
    let program = BoundPipeline::compute(&lab, shader, &[], &bound)?;
    lab.run_once(name, |commands| {
        lab.fill(commands, &source, 7);
        lab.memory_barrier(commands, scope::COPY_WRITE, scope::COMPUTE_READ);
        program.bind(&lab, commands, &[0]);
        // SAFETY: live objects, recorded by this thread (lifetime, owner).
        unsafe { lab.device.cmd_dispatch(commands, WORDS as u32 / 64, 1, 1) };
    })?;
    lab.expect(&target, scope::COMPUTE_WRITE, &[14; WORDS])
}

/// The target has half the words that it should have.
fn write(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &Needs::NOTHING)?;
    let [source, whole] = lab.word_buffers(["source", "whole"])?;
    let usage = vk::BufferUsageFlags::STORAGE_BUFFER | vk::BufferUsageFlags::TRANSFER_SRC;
    let half = lab.buffer("half", SIZE / 2, usage, MemoryPlacement::Device)?;
    let target = lab.planted_or_fixed(half, whole);
    let bound = [ShaderResource::Storage(&[source]), ShaderResource::Storage(&[target])];
    let program = BoundPipeline::compute(&lab, shader!("double.comp"), &[], &bound)?;
    lab.run_once("write", |commands| {
        lab.fill(commands, &source, 7);
        lab.memory_barrier(commands, scope::COPY_WRITE, scope::COMPUTE_READ);
        program.dispatch(&lab, commands);
    })?;
    lab.expect(&target, scope::COMPUTE_WRITE, &[14; WORDS])
}

/// The third of four buffers is read.
fn array(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &Needs::NOTHING)?;
    let [target, whole] = lab.word_buffers(["target", "whole"])?;
    let usage = vk::BufferUsageFlags::STORAGE_BUFFER | vk::BufferUsageFlags::TRANSFER_DST;
    let short = lab.buffer("short", 64, usage, MemoryPlacement::Device)?;
    let buffers = [whole, whole, lab.planted_or_fixed(short, whole), whole];
    let bound = [ShaderResource::Storage(&buffers), ShaderResource::Storage(&[target])];
    let program = BoundPipeline::compute(&lab, shader!("element.comp"), &[], &bound)?;
    lab.run_once("pick", |commands| {
        lab.fill(commands, &whole, 5);
        lab.memory_barrier(commands, scope::COPY_WRITE, scope::COMPUTE_READ);
        program.dispatch(&lab, commands);
    })?;
    lab.expect(&target, scope::COMPUTE_WRITE, &[5; WORDS])
}

/// Half of the color is there.
fn uniform(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &RENDERING)?;
    let usage = vk::BufferUsageFlags::UNIFORM_BUFFER | vk::BufferUsageFlags::TRANSFER_DST;
    let paint = lab.buffer("paint", lab.planted_or_fixed(8, 16), usage, MemoryPlacement::Device)?;
    let program = BoundPipeline::graphics(&lab, DYNAMIC, shader!("uniform.frag"), &[ShaderResource::Uniform(&paint)])?;
    let write = |commands| {
        lab.update(commands, &paint, &GREEN_FLOATS[..lab.planted_or_fixed(2, 4)]);
        lab.memory_barrier(commands, scope::COPY_WRITE, scope::UNIFORM_READ);
    };
    picture(&lab, (scope::COPY_WRITE, scope::UNIFORM_READ), write, |commands| program.draw(&lab, commands))
}

/// Half of the words are texels.
fn texels(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &Needs::NOTHING)?;
    let [target] = lab.word_buffers(["target"])?;
    let usage = vk::BufferUsageFlags::UNIFORM_TEXEL_BUFFER | vk::BufferUsageFlags::TRANSFER_DST;
    let source = lab.buffer("texels", SIZE, usage, MemoryPlacement::Device)?;
    let bound =
        [ShaderResource::TexelsRead(&source, lab.planted_or_fixed(SIZE / 2, SIZE)), ShaderResource::Storage(&[target])];
    let program = BoundPipeline::compute(&lab, shader!("texels_debuginfo.comp"), &[], &bound)?;
    lab.run_once("fetch", |commands| {
        lab.fill(commands, &source, 7);
        lab.memory_barrier(commands, scope::COPY_WRITE, scope::COMPUTE_READ);
        program.dispatch(&lab, commands);
    })?;
    lab.expect(&target, scope::COMPUTE_WRITE, &[7; WORDS])
}

fn texels_write(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &Needs::NOTHING)?;
    let [source] = lab.word_buffers(["source"])?;
    let usage = vk::BufferUsageFlags::STORAGE_TEXEL_BUFFER | vk::BufferUsageFlags::TRANSFER_SRC;
    let target = lab.buffer("texels", SIZE, usage, MemoryPlacement::Device)?;
    let bound = [
        ShaderResource::Storage(&[source]),
        ShaderResource::TexelsWritten(&target, lab.planted_or_fixed(SIZE / 2, SIZE)),
    ];
    let program = BoundPipeline::compute(&lab, shader!("store_texels.comp"), &[], &bound)?;
    lab.run_once("store", |commands| {
        lab.fill(commands, &source, 7);
        lab.memory_barrier(commands, scope::COPY_WRITE, scope::COMPUTE_READ);
        program.dispatch(&lab, commands);
    })?;
    lab.expect(&target, scope::COMPUTE_WRITE, &[7; WORDS])
}

/// Copies one of four buffers, some of which may be missing.
fn pick(lab: &FaultContext, buffers: [Option<Buffer>; 4], choice: u32) -> Result<(), Failure> {
    let [target, chosen] = lab.word_buffers(["target", "choice"])?;
    let bound = [
        ShaderResource::PartlyWritten(&buffers),
        ShaderResource::Storage(&[target]),
        ShaderResource::Storage(&[chosen]),
    ];
    let program = BoundPipeline::compute(lab, shader!("pick.comp"), &[], &bound)?;
    lab.run_once("pick", |commands| {
        lab.update(commands, &chosen, &[choice]);
        buffers.iter().take(1).flatten().for_each(|it| lab.fill(commands, it, 5));
        lab.memory_barrier(commands, scope::COPY_WRITE, scope::COMPUTE_READ);
        program.dispatch(lab, commands);
    })?;
    lab.expect(&target, scope::COMPUTE_WRITE, &[5; WORDS])
}

const CHOOSING: Needs = Needs { features: &[Feature::ShaderStorageBufferArrayDynamicIndexing], ..Needs::NOTHING };

fn index(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &CHOOSING)?;
    let [whole] = lab.word_buffers(["whole"])?;
    pick(&lab, [Some(whole); 4], lab.planted_or_fixed(4, 2))
}

fn never(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &CHOOSING)?;
    let [whole] = lab.word_buffers(["whole"])?;
    pick(&lab, [Some(whole), Some(whole), lab.planted_or_fixed(None, Some(whole)), Some(whole)], 2)
}

/// The first buffer that is read has half the words, the second a quarter, and the buffer that is written has half.
fn three(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &Needs::NOTHING)?;
    let usage =
        vk::BufferUsageFlags::STORAGE_BUFFER | vk::BufferUsageFlags::TRANSFER_SRC | vk::BufferUsageFlags::TRANSFER_DST;
    let part =
        |name, divisor| lab.buffer(name, lab.planted_or_fixed(SIZE / divisor, SIZE), usage, MemoryPlacement::Device);
    let (first, second, target) = (part("first", 2)?, part("second", 4)?, part("target", 2)?);
    let bound =
        [ShaderResource::Storage(&[first]), ShaderResource::Storage(&[second]), ShaderResource::Storage(&[target])];
    let program = BoundPipeline::compute(&lab, shader!("three.comp"), &[], &bound)?;
    lab.run_once("add", |commands| {
        lab.fill_buffer(commands, &first, (0, SIZE / 4), 3);
        lab.fill_buffer(commands, &second, (0, SIZE / 4), 4);
        if lab.is_fixed() {
            lab.fill_buffer(commands, &first, (SIZE / 4, SIZE - SIZE / 4), 3);
            lab.fill_buffer(commands, &second, (SIZE / 4, SIZE - SIZE / 4), 4);
        }
        lab.memory_barrier(commands, scope::COPY_WRITE, scope::COMPUTE_READ);
        lab.labeled(commands, "three faults", || program.dispatch(&lab, commands));
    })?;
    lab.expect(&target, scope::COMPUTE_WRITE, &[7; WORDS])
}

/// The word that ends the loop is not there.
fn head(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &Needs::NOTHING)?;
    let [target] = lab.word_buffers(["target"])?;
    let usage = vk::BufferUsageFlags::STORAGE_BUFFER | vk::BufferUsageFlags::TRANSFER_DST;
    let source = lab.buffer("source", lab.planted_or_fixed(SIZE / 2, SIZE), usage, MemoryPlacement::Device)?;
    let bound = [ShaderResource::Storage(&[source]), ShaderResource::Storage(&[target])];
    let program = BoundPipeline::compute(&lab, shader!("until.spvasm"), &[], &bound)?;
    lab.run_once("count", |commands| {
        lab.fill_buffer(commands, &source, (0, SIZE / 2), 7);
        if lab.is_fixed() {
            lab.fill_buffer(commands, &source, (SIZE / 2, SIZE / 2), 0);
        }
        lab.memory_barrier(commands, scope::COPY_WRITE, scope::COMPUTE_READ);
        program.dispatch(&lab, commands);
    })?;
    lab.expect(&target, scope::COMPUTE_WRITE, &[WORDS as u32 / 2; WORDS])
}

fn wrap(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &Needs::NOTHING)?;
    let [source, target, far] = lab.word_buffers(["source", "target", "far"])?;
    let bound =
        [ShaderResource::Storage(&[source]), ShaderResource::Storage(&[target]), ShaderResource::Storage(&[far])];
    let program = BoundPipeline::compute(&lab, shader!("far.comp"), &[], &bound)?;
    lab.run_once("far", |commands| {
        lab.fill(commands, &source, 9);
        lab.update(commands, &far, &[lab.planted_or_fixed(1 << 30, 0)]);
        lab.memory_barrier(commands, scope::COPY_WRITE, scope::COMPUTE_READ);
        program.dispatch(&lab, commands);
    })?;
    lab.expect(&target, scope::COMPUTE_WRITE, &[9; WORDS])
}

fn shared(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &Needs::NOTHING)?;
    let [doubled, tripled] = lab.word_buffers(["doubled", "tripled"])?;
    let usage = vk::BufferUsageFlags::STORAGE_BUFFER | vk::BufferUsageFlags::TRANSFER_DST;
    let source = lab.buffer("source", lab.planted_or_fixed(SIZE / 2, SIZE), usage, MemoryPlacement::Device)?;
    let program = |entry_point, target| {
        let bound = [ShaderResource::Storage(&[source]), ShaderResource::Storage(&[target])];
        BoundPipeline::entry(&lab, shader!("two.spvasm"), entry_point, &bound)
    };
    let programs = [program(c"main", doubled)?, program(c"triple", tripled)?];
    lab.run_once("multiply", |commands| {
        lab.fill_buffer(commands, &source, (0, SIZE / 2), 7);
        if lab.is_fixed() {
            lab.fill_buffer(commands, &source, (SIZE / 2, SIZE / 2), 7);
        }
        lab.memory_barrier(commands, scope::COPY_WRITE, scope::COMPUTE_READ);
        programs.iter().for_each(|it| it.dispatch(&lab, commands));
    })?;
    lab.expect(&doubled, scope::COMPUTE_WRITE, &[14; WORDS])?;
    lab.expect(&tripled, scope::COMPUTE_WRITE, &[21; WORDS])
}
