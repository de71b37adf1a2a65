//! The interface between the tracker and shader reflection.

use std::ops::Range;
use std::sync::Arc;

use lavascope_abi::{PipelineStageFlags2 as Stage, ShaderStageFlagBits};
use lavascope_spirv::{InvocationBytes, ValueSource};
use lavascope_sync_ir::Certainty;

/// The accesses of a shader to resources.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShaderInterface {
    pub descriptors: Vec<DescriptorUse>,
    /// Memory that it accesses by address, without a descriptor.
    pub addresses: Vec<AddressUse>,
    /// The workgroup size; none for stages without workgroups.
    pub workgroup_size: Option<[u32; 3]>,
    /// The entry point has the execution mode `EarlyFragmentTests`.
    pub has_early_tests: bool,
    /// Bits of the color output locations that it writes.
    pub outputs: u64,
    /// Bits of the vertex input locations that it reads.
    pub inputs: u64,
    /// Whether it may write `Layer` or `ViewportIndex`.
    pub writes_layer: bool,
    /// Attachments that it reads at the position of its fragment, without a descriptor.
    pub tile: TileReads,
    /// Whether there may be accesses that are not listed.
    pub is_partial: bool,
}

/// The attachments that a fragment shader reads as tile images.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TileReads {
    /// Bits of color attachment locations.
    pub colors: u64,
    pub depth: bool,
    pub stencil: bool,
    /// Without rasterization order: colors, depth, stencil.
    pub unordered: [bool; 3],
}

/// The use of the descriptors of a binding. An atomic operation is a read and a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescriptorUse {
    pub set: u32,
    pub binding: u32,
    pub element: DescriptorArrayIndex,
    pub reads: bool,
    pub writes: bool,
    /// The accessed bytes of a buffer, relative to the range of the descriptor; none if any bytes may be accessed.
    pub bytes: Option<Range<u64>>,
    /// The bytes that each invocation accesses, if values from outside the shader decide them.
    pub per_invocation: Option<InvocationBytes>,
    /// Whether the access happens, and to all of these bytes.
    pub certainty: Certainty,
    /// In fragment shader interlock order.
    pub is_ordered: bool,
    /// It is an atomic operation.
    pub is_atomic: bool,
}

impl DescriptorUse {
    /// For the single descriptor of a binding, with neither reads nor writes yet.
    pub fn new(set: u32, binding: u32) -> DescriptorUse {
        DescriptorUse {
            set,
            binding,
            element: DescriptorArrayIndex::One(0),
            reads: false,
            writes: false,
            bytes: None,
            per_invocation: None,
            certainty: Certainty::Certain,
            is_ordered: false,
            is_atomic: false,
        }
    }
}

/// Which element of a descriptor array is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DescriptorArrayIndex {
    One(u32),
    /// The index is read from this source.
    Read(ValueSource),
    /// The shader computes it.
    Unknown,
}

/// An access of a shader to memory at an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressUse {
    /// The source of the address, if it is known.
    pub from: Option<ValueSource>,
    pub reads: bool,
    pub writes: bool,
    /// The memory is an acceleration structure for ray traversal.
    pub is_structure: bool,
    /// Relative to the address.
    pub bytes: Range<u64>,
    /// The bytes that each invocation accesses, if values from outside the shader decide them.
    pub per_invocation: Option<InvocationBytes>,
    pub certainty: Certainty,
    /// It is an atomic operation.
    pub is_atomic: bool,
}

/// The code of a shader, as used by a pipeline.
#[derive(Clone, Debug)]
pub struct ShaderCode<'a> {
    pub words: &'a [u32],
    pub entry_point: &'a str,
    pub stage: ShaderStageFlagBits,
    /// Specialization constants: ids and bytes.
    pub constants: Vec<(u32, &'a [u8])>,
}

/// Shader reflection.
pub trait Reflect {
    /// None if the shader cannot be analyzed; it then counts as accessing no descriptors.
    fn reflect(&self, code: &ShaderCode<'_>) -> Option<ShaderInterface>;
}

/// Reflection that analyzes no shader.
pub struct NoReflection;

impl Reflect for NoReflection {
    fn reflect(&self, _code: &ShaderCode<'_>) -> Option<ShaderInterface> {
        None
    }
}

/// A stage of a pipeline, or a shader object.
#[derive(Clone, Debug)]
pub(crate) struct Shader {
    pub(crate) stage: ShaderStageFlagBits,
    pub(crate) interface: Option<Arc<ShaderInterface>>,
}

impl Shader {
    pub(crate) fn is_fragment(&self) -> bool {
        self.stage == ShaderStageFlagBits::FRAGMENT
    }

    /// Whether it can change which primitives are rasterized.
    pub(crate) fn makes_primitives(&self) -> bool {
        use ShaderStageFlagBits as Stage;
        let makers = [Stage::TESSELLATION_CONTROL, Stage::TESSELLATION_EVALUATION, Stage::GEOMETRY, Stage::MESH_EXT];
        makers.contains(&self.stage)
    }

    /// The pipeline stage of its accesses.
    pub(crate) fn pipeline_stage(&self) -> u64 {
        let stage = match self.stage {
            ShaderStageFlagBits::VERTEX => Stage::VERTEX_SHADER,
            ShaderStageFlagBits::TESSELLATION_CONTROL => Stage::TESSELLATION_CONTROL_SHADER,
            ShaderStageFlagBits::TESSELLATION_EVALUATION => Stage::TESSELLATION_EVALUATION_SHADER,
            ShaderStageFlagBits::GEOMETRY => Stage::GEOMETRY_SHADER,
            ShaderStageFlagBits::FRAGMENT => Stage::FRAGMENT_SHADER,
            ShaderStageFlagBits::COMPUTE => Stage::COMPUTE_SHADER,
            ShaderStageFlagBits::TASK_EXT => Stage::TASK_SHADER_EXT,
            ShaderStageFlagBits::MESH_EXT => Stage::MESH_SHADER_EXT,
            ShaderStageFlagBits::SUBPASS_SHADING_HUAWEI => Stage::SUBPASS_SHADER_HUAWEI,
            ShaderStageFlagBits::CLUSTER_CULLING_HUAWEI => Stage::CLUSTER_CULLING_SHADER_HUAWEI,
            // All others are ray tracing stages.
            _ => Stage::RAY_TRACING_SHADER_KHR,
        };
        stage.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_shader_has_its_stage() {
        use ShaderStageFlagBits as Kind;
        let stages = [
            (Kind::VERTEX, Stage::VERTEX_SHADER),
            (Kind::TESSELLATION_CONTROL, Stage::TESSELLATION_CONTROL_SHADER),
            (Kind::TESSELLATION_EVALUATION, Stage::TESSELLATION_EVALUATION_SHADER),
            (Kind::GEOMETRY, Stage::GEOMETRY_SHADER),
            (Kind::FRAGMENT, Stage::FRAGMENT_SHADER),
            (Kind::COMPUTE, Stage::COMPUTE_SHADER),
            (Kind::TASK_EXT, Stage::TASK_SHADER_EXT),
            (Kind::MESH_EXT, Stage::MESH_SHADER_EXT),
            (Kind::RAYGEN_KHR, Stage::RAY_TRACING_SHADER_KHR),
            (Kind::CLOSEST_HIT_KHR, Stage::RAY_TRACING_SHADER_KHR),
        ];
        for (kind, stage) in stages {
            assert_eq!(Shader { stage: kind, interface: None }.pipeline_stage(), stage.0);
        }
    }
}
