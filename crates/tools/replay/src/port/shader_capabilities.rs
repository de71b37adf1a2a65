//! Shaders that need a feature which this device does not have: drivers take them, and compute something else.

use lavascope_record::Call;

use crate::call::perform::RecordedCall;
use crate::port::device::ReplayDevice;

/// Words before the first instruction of a module, and the instruction that names a capability.
const HEADER: usize = 5;
const OP_CAPABILITY: u32 = 17;

/// Capabilities, and the feature of the device that each needs.
const FEATURES: [(u32, &str, &str); 42] = [
    (2, "Geometry", "geometryShader"),
    (3, "Tessellation", "tessellationShader"),
    (9, "Float16", "shaderFloat16"),
    (10, "Float64", "shaderFloat64"),
    (11, "Int64", "shaderInt64"),
    (12, "Int64Atomics", "shaderBufferInt64Atomics"),
    (22, "Int16", "shaderInt16"),
    (25, "ImageGatherExtended", "shaderImageGatherExtended"),
    (27, "StorageImageMultisample", "shaderStorageImageMultisample"),
    (28, "UniformBufferArrayDynamicIndexing", "shaderUniformBufferArrayDynamicIndexing"),
    (29, "SampledImageArrayDynamicIndexing", "shaderSampledImageArrayDynamicIndexing"),
    (30, "StorageBufferArrayDynamicIndexing", "shaderStorageBufferArrayDynamicIndexing"),
    (31, "StorageImageArrayDynamicIndexing", "shaderStorageImageArrayDynamicIndexing"),
    (32, "ClipDistance", "shaderClipDistance"),
    (33, "CullDistance", "shaderCullDistance"),
    (34, "ImageCubeArray", "imageCubeArray"),
    (35, "SampleRateShading", "sampleRateShading"),
    (39, "Int8", "shaderInt8"),
    (45, "SampledCubeArray", "imageCubeArray"),
    (55, "StorageImageReadWithoutFormat", "shaderStorageImageReadWithoutFormat"),
    (56, "StorageImageWriteWithoutFormat", "shaderStorageImageWriteWithoutFormat"),
    (57, "MultiViewport", "multiViewport"),
    (4427, "DrawParameters", "shaderDrawParameters"),
    (4433, "StorageBuffer16BitAccess", "storageBuffer16BitAccess"),
    (4434, "UniformAndStorageBuffer16BitAccess", "uniformAndStorageBuffer16BitAccess"),
    (4435, "StoragePushConstant16", "storagePushConstant16"),
    (4436, "StorageInputOutput16", "storageInputOutput16"),
    (4439, "MultiView", "multiview"),
    (4441, "VariablePointersStorageBuffer", "variablePointersStorageBuffer"),
    (4442, "VariablePointers", "variablePointers"),
    (4448, "StorageBuffer8BitAccess", "storageBuffer8BitAccess"),
    (4449, "UniformAndStorageBuffer8BitAccess", "uniformAndStorageBuffer8BitAccess"),
    (4450, "StoragePushConstant8", "storagePushConstant8"),
    (4472, "RayQueryKHR", "rayQuery"),
    (4479, "RayTracingKHR", "rayTracingPipeline"),
    (5283, "MeshShadingEXT", "meshShader"),
    (5302, "RuntimeDescriptorArray", "runtimeDescriptorArray"),
    (5345, "VulkanMemoryModel", "vulkanMemoryModel"),
    (5347, "PhysicalStorageBufferAddresses", "bufferDeviceAddress"),
    (5612, "AtomicFloat32MinMaxEXT", "shaderBufferFloat32AtomicMinMax"),
    (6033, "AtomicFloat32AddEXT", "shaderBufferFloat32AtomicAdd"),
    (6034, "AtomicFloat64AddEXT", "shaderBufferFloat64AtomicAdd"),
];

/// Why a shader cannot do here what it did, if so.
pub(crate) fn unsupported_shader(device: &ReplayDevice, recorded_call: &RecordedCall<'_>) -> Option<String> {
    let missing = &device.mapping.missing_features;
    let Some(Call::CreateShaderModule(call)) = Call::of(recorded_call.enter).filter(|_| !missing.is_empty()) else {
        return None;
    };
    let info = call.p_create_info()?;
    let needed: Vec<&str> = missing_capabilities(info.p_code(), missing).collect();
    (!needed.is_empty()).then(|| format!("the shader needs {}, which this device does not have", needed.join(", ")))
}

/// The capabilities of a module whose features are missing.
fn missing_capabilities<'a>(code: &'a [u32], missing: &'a [&'static str]) -> impl Iterator<Item = &'static str> + 'a {
    let declared = code.get(HEADER..).unwrap_or_default().chunks_exact(2);
    // They come first, each two words long.
    let declared = declared.take_while(|it| it[0] == (2 << 16 | OP_CAPABILITY)).map(|it| it[1]);
    declared.filter_map(|number| {
        let (_, name, _) = FEATURES.iter().find(|it| it.0 == number && missing.contains(&it.2))?;
        Some(*name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_declared_and_missing_is_reported() {
        let capability = 2 << 16 | OP_CAPABILITY;
        let code = [0x0723_0203, 0x1_0000, 0, 10, 0, capability, 1, capability, 10, capability, 22, 0x3_000e, 0, 1];
        let missing_for = |missing: &[&'static str]| missing_capabilities(&code, missing).collect::<Vec<_>>();
        assert_eq!(missing_for(&["shaderFloat64", "wideLines"]), ["Float64"]);
        assert_eq!(missing_for(&["shaderInt16", "shaderFloat64"]), ["Float64", "Int16"]);
        assert_eq!(missing_for(&["shaderInt8"]), [""; 0]);
        assert_eq!(missing_capabilities(&code[..3], &["shaderFloat64"]).count(), 0);
    }

    #[test]
    fn every_feature_is_one_of_the_registry() {
        let layouts = lavascope_abi::STRUCTURES.iter().filter(|it| it.name.contains("Features"));
        let names: Vec<&str> = layouts.flat_map(|it| it.fields.iter().map(|it| it.name)).collect();
        for (_, capability, feature) in FEATURES {
            assert!(names.contains(&feature), "{capability}: {feature}");
        }
    }
}
