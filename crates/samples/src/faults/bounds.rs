//! Shaders that access more than is bound; what is missing here is no synchronization but a part of a buffer.

use ash::vk;

use super::draws::{GREEN_FLOATS, picture};
use super::faults;
use super::lab::{Lab, SIZE, WORDS};
use super::program::{Bound, DYNAMIC, Program, RENDERING};
use crate::arguments::Options;
use crate::common::{Needs, Place, scope, shader};
use crate::failure::Failure;

faults! {
    read: "bounds-read", "a dispatch reads behind the range of a storage buffer that is bound.",
    write: "bounds-write", "a dispatch writes behind the end of a storage buffer.",
    array: "bounds-array", "one of the buffers of an array has no word for each invocation that reads it.",
    uniform: "bounds-uniform", "a fragment shader reads more than a uniform buffer has.",
}

/// Half of the source is bound.
fn read(options: &Options) -> Result<(), Failure> {
    let lab = Lab::new(options, &Needs::NOTHING)?;
    let [source, target] = lab.words(["source", "target"])?;
    let bound = [Bound::Dynamic(&source, lab.choose(SIZE / 2, SIZE)), Bound::Storage(&[target])];
    let program = Program::compute(&lab, shader!("double.comp"), &[], &bound)?;
    lab.run_once("read", |commands| {
        lab.fill(commands, &source, 7);
        lab.memory_barrier(commands, scope::COPY_WRITE, scope::COMPUTE_READ);
        program.bind(&lab, commands, &[0]);
        // SAFETY: live objects, recorded by this thread (lifetime, owner).
        unsafe { lab.device.cmd_dispatch(commands, WORDS as u32 / 64, 1, 1) };
    })?;
    lab.expect(&target, scope::COMPUTE_WRITE, &[14; WORDS])
}

/// The target has half the words that it should have.
fn write(options: &Options) -> Result<(), Failure> {
    let lab = Lab::new(options, &Needs::NOTHING)?;
    let [source, whole] = lab.words(["source", "whole"])?;
    let usage = vk::BufferUsageFlags::STORAGE_BUFFER | vk::BufferUsageFlags::TRANSFER_SRC;
    let half = lab.buffer("half", SIZE / 2, usage, Place::Device)?;
    let target = lab.choose(half, whole);
    let bound = [Bound::Storage(&[source]), Bound::Storage(&[target])];
    let program = Program::compute(&lab, shader!("double.comp"), &[], &bound)?;
    lab.run_once("write", |commands| {
        lab.fill(commands, &source, 7);
        lab.memory_barrier(commands, scope::COPY_WRITE, scope::COMPUTE_READ);
        program.dispatch(&lab, commands);
    })?;
    lab.expect(&target, scope::COMPUTE_WRITE, &[14; WORDS])
}

/// The third of four buffers is read.
fn array(options: &Options) -> Result<(), Failure> {
    let lab = Lab::new(options, &Needs::NOTHING)?;
    let [target, whole] = lab.words(["target", "whole"])?;
    let usage = vk::BufferUsageFlags::STORAGE_BUFFER | vk::BufferUsageFlags::TRANSFER_DST;
    let short = lab.buffer("short", 64, usage, Place::Device)?;
    let buffers = [whole, whole, lab.choose(short, whole), whole];
    let bound = [Bound::Storage(&buffers), Bound::Storage(&[target])];
    let program = Program::compute(&lab, shader!("element.comp"), &[], &bound)?;
    lab.run_once("pick", |commands| {
        lab.fill(commands, &whole, 5);
        lab.memory_barrier(commands, scope::COPY_WRITE, scope::COMPUTE_READ);
        program.dispatch(&lab, commands);
    })?;
    lab.expect(&target, scope::COMPUTE_WRITE, &[5; WORDS])
}

/// Half of the color is there.
fn uniform(options: &Options) -> Result<(), Failure> {
    let lab = Lab::new(options, &RENDERING)?;
    let usage = vk::BufferUsageFlags::UNIFORM_BUFFER | vk::BufferUsageFlags::TRANSFER_DST;
    let paint = lab.buffer("paint", lab.choose(8, 16), usage, Place::Device)?;
    let program = Program::graphics(&lab, DYNAMIC, shader!("uniform.frag"), &[Bound::Uniform(&paint)])?;
    let write = |commands| {
        lab.update(commands, &paint, &GREEN_FLOATS[..lab.choose(2, 4)]);
        lab.memory_barrier(commands, scope::COPY_WRITE, scope::UNIFORM_READ);
    };
    picture(&lab, (scope::COPY_WRITE, scope::UNIFORM_READ), write, |commands| program.draw(&lab, commands))
}
