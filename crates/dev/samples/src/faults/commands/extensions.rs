//! Reads and writes of extensions: conditions, transform feedback, meshes, acceleration structures, rays.

use crate::faults::bound_pipeline::DrawShaders;
use std::ptr::null;

use ash::{ext, vk};

use crate::arguments::SampleOptions;
use crate::common::{BarrierScope, Feature, MemoryPlacement, Needs, scope, shader};
use crate::failure::Failure;
use crate::faults::bound_pipeline::{BoundPipeline, DYNAMIC, ShaderResource, attachment};
use crate::faults::context::{FaultContext, GREEN_WORD, SIZE, WORDS};
use crate::faults::faults;

faults! {
    condition: "conditional-rendering", "a condition is read from a buffer that may still be written.",
    feedback: "transform-feedback", "a buffer is copied while transform feedback may still write it.",
    mesh: "mesh-indirect", "a draw of meshes takes its parameters from a buffer that may still be written.",

}

fn condition(options: &SampleOptions) -> Result<(), Failure> {
    let name = ext::conditional_rendering::NAME;
    let lab = FaultContext::new(
        options,
        &Needs { features: &[Feature::ConditionalRendering], extensions: &[name], ..Needs::NOTHING },
    )?;
    let [source, target] = lab.word_buffers(["source", "target"])?;
    let usage = vk::BufferUsageFlags::CONDITIONAL_RENDERING_EXT | vk::BufferUsageFlags::TRANSFER_DST;
    let condition = lab.buffer("condition", SIZE, usage, MemoryPlacement::Device)?;
    let bound = [ShaderResource::Storage(&[source]), ShaderResource::Storage(&[target])];
    let program = BoundPipeline::compute(&lab, shader!("double.comp"), &[], &bound)?;
    let conditions = ext::conditional_rendering::Device::new(&lab.instance.handle, &lab.device);
    let to = BarrierScope {
        stages: vk::PipelineStageFlags::CONDITIONAL_RENDERING_EXT,
        access: vk::AccessFlags::CONDITIONAL_RENDERING_READ_EXT,
    };
    lab.run_once("decide and dispatch", |commands| {
        lab.fill(commands, &source, 7);
        lab.memory_barrier(commands, scope::COPY_WRITE, scope::COMPUTE_READ);
        lab.fill(commands, &condition, 1);
        lab.barrier_if_fixed(commands, scope::COPY_WRITE, to);
        let begin = vk::ConditionalRenderingBeginInfoEXT::default().buffer(condition.handle);
        // SAFETY: live objects, recorded by this thread, and the feature is enabled (lifetime, owner, feature).
        unsafe { (conditions.fp().cmd_begin_conditional_rendering_ext)(commands, &begin) };
        program.dispatch(&lab, commands);
        // SAFETY: recorded by this thread after the condition has begun, and the feature is enabled (owner, feature).
        unsafe { (conditions.fp().cmd_end_conditional_rendering_ext)(commands) };
    })?;
    lab.expect(&target, scope::COMPUTE_WRITE, &[14; WORDS])
}

fn feedback(options: &SampleOptions) -> Result<(), Failure> {
    let features = &[Feature::TransformFeedback, Feature::DynamicRendering];
    let lab = FaultContext::new(
        options,
        &Needs { features, extensions: &[ext::transform_feedback::NAME], ..Needs::NOTHING },
    )?;
    let ([target], [canvas]) = (lab.word_buffers(["target"])?, lab.color_images(["canvas"])?);
    let usage = vk::BufferUsageFlags::TRANSFORM_FEEDBACK_BUFFER_EXT | vk::BufferUsageFlags::TRANSFER_SRC;
    let captured = lab.buffer("captured", SIZE, usage, MemoryPlacement::Device)?;
    let shaders = DrawShaders { vertex: shader!("feedback.vert"), middle: &[], fragment: shader!("green.frag") };
    let program = BoundPipeline::of_shaders(&lab, DYNAMIC, shaders, &[])?;
    let feedbacks = ext::transform_feedback::Device::new(&lab.instance.handle, &lab.device);
    let from = BarrierScope {
        stages: vk::PipelineStageFlags::TRANSFORM_FEEDBACK_EXT,
        access: vk::AccessFlags::TRANSFORM_FEEDBACK_WRITE_EXT,
    };
    // A vertex gives four words.
    let vertices = WORDS as u32 / 4;
    lab.run_once("capture and copy", |commands| {
        let color = [attachment(&canvas, vk::AttachmentLoadOp::CLEAR)];
        lab.render(commands, &color, || {
            program.bind(&lab, commands, &[]);
            // SAFETY: live objects, recorded by this thread, and the feature is enabled (lifetime, owner, feature).
            unsafe {
                let functions = feedbacks.fp();
                (functions.cmd_bind_transform_feedback_buffers_ext)(commands, 0, 1, &captured.handle, &0, &SIZE);
                (functions.cmd_begin_transform_feedback_ext)(commands, 0, 0, null(), null());
                // Triangles are captured as a whole.
                lab.device.cmd_draw(commands, vertices.next_multiple_of(3), 1, 0, 0);
                (functions.cmd_end_transform_feedback_ext)(commands, 0, 0, null(), null());
            }
        });
        lab.barrier_if_fixed(commands, from, scope::COPY_READ);
        lab.copy_buffer(commands, &captured, &target);
    })?;
    // The last triangle does not fit.
    let full = WORDS / 12 * 12;
    match lab.is_fixed() {
        true => lab.expect_words(&lab.download(&target, scope::COPY_WRITE)?[..full], &vec![7; full]),
        false => Ok(()),
    }
}

fn mesh(options: &SampleOptions) -> Result<(), Failure> {
    let features = &[Feature::MeshShader, Feature::DynamicRendering];
    let lab = FaultContext::new(options, &Needs { features, extensions: &[ext::mesh_shader::NAME], ..Needs::NOTHING })?;
    let ([parameters], [canvas]) = (lab.word_buffers(["parameters"])?, lab.color_images(["canvas"])?);
    let program = BoundPipeline::of_shaders(
        &lab,
        DYNAMIC,
        DrawShaders { vertex: shader!("square.mesh"), middle: &[], fragment: shader!("green.frag") },
        &[],
    )?;
    let meshes = ext::mesh_shader::Device::new(&lab.instance.handle, &lab.device);
    lab.run_once("update and draw", |commands| {
        lab.update(commands, &parameters, &[1, 1, 1]);
        lab.barrier_if_fixed(commands, scope::COPY_WRITE, scope::INDIRECT_READ);
        lab.render(commands, &[attachment(&canvas, vk::AttachmentLoadOp::CLEAR)], || {
            program.bind(&lab, commands, &[]);
            // SAFETY: live objects, recorded by this thread, and the feature is enabled (lifetime, owner, feature).
            unsafe { meshes.cmd_draw_mesh_tasks_indirect(commands, parameters.handle, 0, 1, 12) };
        });
    })?;
    lab.expect_texels(&canvas, scope::COLOR_WRITE, GREEN_WORD)
}
