//! Caches, binaries, identifiers and other bytes of pipelines and shaders: legal, small and always the same.
//!
//! The binary of a shader object identifies its contents, so that tests can distinguish shader objects.

use lavascope_abi::*;

use super::compiler;
use crate::calls::application_memory::ApplicationMemory;
use crate::calls::object_table::{DriverObjectTable, next_handle};
use crate::capabilities::properties::{DEVICE_ID, PIPELINE_CACHE_UUID, VENDOR_ID};

/// An empty cache: the header alone.
fn cache() -> Vec<u8> {
    let header = [32, PipelineCacheHeaderVersion::ONE.0 as u32, VENDOR_ID, DEVICE_ID];
    let mut bytes: Vec<u8> = header.iter().flat_map(|it| it.to_le_bytes()).collect();
    bytes.extend(PIPELINE_CACHE_UUID.as_bytes());
    bytes
}

pub(crate) fn get_pipeline_cache_data(c: ApplicationMemory<'_>, call: &GetPipelineCacheDataParams) -> Result {
    c.give_bytes(call.p_data_size, call.p_data.cast(), &cache())
}

pub(crate) fn get_validation_cache_data_ext(
    c: ApplicationMemory<'_>,
    call: &GetValidationCacheDataEXTParams,
) -> Result {
    c.give_bytes(call.p_data_size, call.p_data.cast(), &cache())
}

pub(crate) fn get_cuda_module_cache_nv(c: ApplicationMemory<'_>, call: &GetCudaModuleCacheNVParams) -> Result {
    c.give_bytes(call.p_cache_size, call.p_cache_data.cast(), &cache())
}

/// By shader object, its binary.
static SHADERS: DriverObjectTable<Vec<u8>> = DriverObjectTable::new(HandleType::ShaderEXT);

/// The contents of a shader object: its code, and the numbers of its sets and push constants. A binary has its own.
fn binary_of(c: ApplicationMemory<'_>, info: &ShaderCreateInfoEXT) -> Vec<u8> {
    let code = c.slice(info.p_code.cast::<u8>(), info.code_size);
    if info.code_type == ShaderCodeTypeEXT::BINARY_EXT {
        return code.to_vec();
    }
    let digest = |bytes: &[u8]| {
        let step = |all: u64, it: &u8| (all ^ u64::from(*it)).wrapping_mul(0x0100_0000_01b3);
        bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
    };
    let ranges = c.slice(info.p_push_constant_ranges, info.push_constant_range_count);
    let constants: u32 = ranges.iter().map(|it| it.size).sum();
    let parts = [digest(code), u64::from(info.set_layout_count) << 32 | u64::from(constants)];
    b"lavascope-shader".iter().copied().chain(parts.iter().flat_map(|it| it.to_le_bytes())).collect()
}

pub(crate) fn create_shaders_ext(c: ApplicationMemory<'_>, call: &CreateShadersEXTParams) -> Result {
    let infos = c.slice(call.p_create_infos, call.create_info_count);
    let judged = infos.iter().map(|it| compiler::judge_code(c, call.device, it)).find(|it| *it != Result::SUCCESS);
    if let Some(failure) = judged {
        c.slice_mut(call.p_shaders, call.create_info_count).fill(ShaderEXT(0));
        return failure;
    }
    for (out, info) in c.slice_mut(call.p_shaders, call.create_info_count).iter_mut().zip(infos) {
        *out = ShaderEXT(SHADERS.add(binary_of(c, info)));
    }
    Result::SUCCESS
}

pub(crate) fn destroy_shader_ext(_: ApplicationMemory<'_>, call: &DestroyShaderEXTParams) {
    SHADERS.remove(call.shader.0);
}

pub(crate) fn get_shader_binary_data_ext(c: ApplicationMemory<'_>, call: &GetShaderBinaryDataEXTParams) -> Result {
    match SHADERS.get(call.shader.0) {
        Some(binary) => c.give_bytes(call.p_data_size, call.p_data.cast(), &binary),
        None => Result::ERROR_UNKNOWN,
    }
}

/// One binary per pipeline, or as many as keys are given.
pub(crate) fn create_pipeline_binaries_khr(c: ApplicationMemory<'_>, call: &CreatePipelineBinariesKHRParams) -> Result {
    let (Some(info), Some(out)) = (c.get(call.p_create_info), c.get_mut(call.p_binaries)) else {
        return Result::ERROR_UNKNOWN;
    };
    let given = c.get(info.p_keys_and_data_info).map_or(1, |it| it.binary_count);
    if out.p_pipeline_binaries.is_null() {
        out.pipeline_binary_count = given;
        return Result::SUCCESS;
    }
    out.pipeline_binary_count = given.min(out.pipeline_binary_count);
    for pipeline_binary in c.slice_mut(out.p_pipeline_binaries, out.pipeline_binary_count) {
        *pipeline_binary = PipelineBinaryKHR(next_handle(HandleType::PipelineBinaryKHR));
    }
    if out.pipeline_binary_count < given { Result::INCOMPLETE } else { Result::SUCCESS }
}

fn put_key(out: Option<&mut PipelineBinaryKeyKHR>) {
    if let Some(out) = out {
        out.key_size = 16;
        out.key[..16].copy_from_slice(b"lavascope-binary");
    }
}

pub(crate) fn get_pipeline_key_khr(c: ApplicationMemory<'_>, call: &GetPipelineKeyKHRParams) -> Result {
    put_key(c.get_mut(call.p_pipeline_key));
    Result::SUCCESS
}

pub(crate) fn get_pipeline_binary_data_khr(c: ApplicationMemory<'_>, call: &GetPipelineBinaryDataKHRParams) -> Result {
    put_key(c.get_mut(call.p_pipeline_binary_key));
    let Some(size) = c.get_mut(call.p_pipeline_binary_data_size) else { return Result::ERROR_UNKNOWN };
    let is_too_small = !call.p_pipeline_binary_data.is_null() && *size < 16;
    let result =
        c.give_bytes(call.p_pipeline_binary_data_size, call.p_pipeline_binary_data.cast(), b"lavascope-binary");
    if is_too_small {
        *size = 16;
        return Result::ERROR_NOT_ENOUGH_SPACE_KHR;
    }
    result
}

fn put_identifier(out: Option<&mut ShaderModuleIdentifierEXT>, number: u64) {
    if let Some(out) = out {
        out.identifier_size = 16;
        out.identifier[..8].copy_from_slice(b"lavascop");
        out.identifier[8..16].copy_from_slice(&number.to_le_bytes());
    }
}

pub(crate) fn get_shader_module_identifier_ext(c: ApplicationMemory<'_>, call: &GetShaderModuleIdentifierEXTParams) {
    put_identifier(c.get_mut(call.p_identifier), call.shader_module.0);
}

/// The same code has the same identifier.
pub(crate) fn get_shader_module_create_info_identifier_ext(
    c: ApplicationMemory<'_>,
    call: &GetShaderModuleCreateInfoIdentifierEXTParams,
) {
    let Some(info) = c.get(call.p_create_info) else { return };
    let words = c.slice(info.p_code, info.code_size as usize / 4);
    let sum =
        words.iter().fold(0xcbf2_9ce4_8422_2325, |sum: u64, it| (sum ^ u64::from(*it)).wrapping_mul(0x100_0000_01b3));
    put_identifier(c.get_mut(call.p_identifier), sum);
}

pub(crate) fn get_deferred_operation_max_concurrency_khr(
    _: ApplicationMemory<'_>,
    _: &GetDeferredOperationMaxConcurrencyKHRParams,
) -> u32 {
    1
}

/// Nothing is ever deferred, so every operation is done.
pub(crate) fn get_deferred_operation_result_khr(
    _: ApplicationMemory<'_>,
    _: &GetDeferredOperationResultKHRParams,
) -> Result {
    Result::SUCCESS
}

pub(crate) fn get_image_view_handle_nvx(c: ApplicationMemory<'_>, call: &GetImageViewHandleNVXParams) -> u32 {
    c.get(call.p_info).map_or(0, |it| it.image_view.0 as u32)
}

pub(crate) fn get_image_view_handle64_nvx(c: ApplicationMemory<'_>, call: &GetImageViewHandle64NVXParams) -> u64 {
    c.get(call.p_info).map_or(0, |it| it.image_view.0)
}

pub(crate) fn get_image_view_address_nvx(c: ApplicationMemory<'_>, call: &GetImageViewAddressNVXParams) -> Result {
    let Some(out) = c.get_mut(call.p_properties) else { return Result::ERROR_UNKNOWN };
    out.device_address = call.image_view.0 << 8;
    out.size = 256;
    Result::SUCCESS
}

pub(crate) fn get_pipeline_indirect_device_address_nv(
    c: ApplicationMemory<'_>,
    call: &GetPipelineIndirectDeviceAddressNVParams,
) -> u64 {
    c.get(call.p_info).map_or(0, |it| (it.pipeline.0 & 0xffff_ffff) << 8)
}
