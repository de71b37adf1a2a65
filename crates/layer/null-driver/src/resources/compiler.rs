//! Shader modules and pipelines, whose compiler fails or crashes on demand.
//!
//! With `LAVASCOPE_NULL_COMPILE`, a shader that uses device addresses is one that the compiler cannot take. Shaders with
//! checks do so, and those of most programs do not.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use lavascope_abi::*;

use crate::calls::application_memory::ApplicationMemory;
use crate::calls::object_table::next_handle;
use crate::capabilities::settings::Compiler;

/// The modules that use device addresses.
static WITH_ADDRESSES: Mutex<BTreeSet<u64>> = Mutex::new(BTreeSet::new());

const OP_CAPABILITY: u32 = 2 << 16 | 17;
const PHYSICAL_STORAGE_BUFFER_ADDRESSES: u32 = 5347;
/// The words before the first instruction.
const HEAD_WORDS: usize = 5;

/// What the compiler does with a shader.
fn judge(compiler: Compiler, uses_addresses: bool) -> Result {
    match compiler {
        Compiler::Fails if uses_addresses => Result::ERROR_UNKNOWN,
        Compiler::Crashes if uses_addresses => std::process::abort(),
        _ => Result::SUCCESS,
    }
}

/// Whether SPIR-V has the capability. Capabilities are the first instructions.
fn uses_addresses(words: &[u32]) -> bool {
    let capabilities = words.get(HEAD_WORDS..).unwrap_or(&[]).chunks_exact(2).take_while(|it| it[0] == OP_CAPABILITY);
    capabilities.into_iter().any(|it| it[1] == PHYSICAL_STORAGE_BUFFER_ADDRESSES)
}

/// What the compiler does with the code of a shader object.
pub(crate) fn judge_code(c: ApplicationMemory<'_>, device: Device, info: &ShaderCreateInfoEXT) -> Result {
    let is_code = info.code_type == ShaderCodeTypeEXT::SPIRV_EXT;
    let words = if is_code { c.slice(info.p_code.cast::<u32>(), info.code_size / 4) } else { &[] };
    judge(c.device(device).settings.compiler, uses_addresses(words))
}

pub(crate) fn create_shader_module(c: ApplicationMemory<'_>, call: &CreateShaderModuleParams) -> Result {
    let Some(info) = c.get(call.p_create_info) else { return Result::ERROR_UNKNOWN };
    let handle = next_handle(HandleType::ShaderModule);
    let compiler = c.device(call.device).settings.compiler;
    if compiler != Compiler::Works && uses_addresses(c.slice(info.p_code, info.code_size / 4)) {
        WITH_ADDRESSES.lock().unwrap_or_else(PoisonError::into_inner).insert(handle);
    }
    c.write(call.p_shader_module, ShaderModule(handle));
    Result::SUCCESS
}

/// Creates a pipeline, or null where the compiler fails.
fn create(c: ApplicationMemory<'_>, device: Device, stages: &[PipelineShaderStageCreateInfo]) -> (Result, Pipeline) {
    let compiler = c.device(device).settings.compiler;
    let known = WITH_ADDRESSES.lock().unwrap_or_else(PoisonError::into_inner);
    let has_addresses = compiler != Compiler::Works && stages.iter().any(|it| known.contains(&it.module.0));
    drop(known);
    match judge(compiler, has_addresses) {
        Result::SUCCESS => (Result::SUCCESS, Pipeline(next_handle(HandleType::Pipeline))),
        failure => (failure, Pipeline(0)),
    }
}

/// Feedback about the creation of a pipeline: there is nothing to say.
fn write_feedback(c: ApplicationMemory<'_>, chain: Ptr<Opaque>) {
    let Some(feedback) = c.find::<PipelineCreationFeedbackCreateInfo>(chain) else { return };
    c.write(feedback.p_pipeline_creation_feedback, PipelineCreationFeedback::zeroed());
    let count = feedback.pipeline_stage_creation_feedback_count;
    c.slice_mut(feedback.p_pipeline_stage_creation_feedbacks, count).fill(PipelineCreationFeedback::zeroed());
}

pub(crate) fn create_compute_pipelines(c: ApplicationMemory<'_>, call: &CreateComputePipelinesParams) -> Result {
    let mut result = Result::SUCCESS;
    let infos = c.slice(call.p_create_infos, call.create_info_count);
    for (out, info) in c.slice_mut(call.p_pipelines, call.create_info_count).iter_mut().zip(infos) {
        write_feedback(c, info.p_next);
        let (own, pipeline) = create(c, call.device, std::slice::from_ref(&info.stage));
        (*out, result) = (pipeline, if own == Result::SUCCESS { result } else { own });
    }
    result
}

pub(crate) fn create_graphics_pipelines(c: ApplicationMemory<'_>, call: &CreateGraphicsPipelinesParams) -> Result {
    let mut result = Result::SUCCESS;
    let infos = c.slice(call.p_create_infos, call.create_info_count);
    for (out, info) in c.slice_mut(call.p_pipelines, call.create_info_count).iter_mut().zip(infos) {
        write_feedback(c, info.p_next);
        let (own, pipeline) = create(c, call.device, c.slice(info.p_stages, info.stage_count));
        (*out, result) = (pipeline, if own == Result::SUCCESS { result } else { own });
    }
    result
}
