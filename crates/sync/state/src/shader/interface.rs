//! What shaders do, as far as somebody can tell: the tracker asks, whoever reads SPIR-V answers.

use std::ops::Range;
use std::sync::Arc;

use lavascope_abi::{PipelineStageFlags2 as Stage, ShaderStageFlagBits};
use lavascope_spirv::{InvocationBytes, ValueSource};
use lavascope_sync_ir::Certainty;

/// What a shader accesses, seen from outside.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShaderInterface {
    pub descriptors: Vec<DescriptorUse>,
    /// Memory that it reaches by addresses, which no descriptor names.
    pub addresses: Vec<AddressUse>,
    /// Invocations of a workgroup, each way; none for stages that have no workgroups.
    pub workgroup_size: Option<[u32; 3]>,
    /// `EarlyFragmentTests` is an execution mode of the entry point.
    pub has_early_tests: bool,
    /// Locations of color outputs that are written, as bits.
    pub outputs: u64,
    /// Locations of vertex inputs that are read, as bits.
    pub inputs: u64,
    /// Whether it may choose a layer to draw to.
    pub writes_layer: bool,
    /// Attachments that it reads where its fragment is, without a descriptor.
    pub tile: TileReads,
    /// Whether there may be accesses that are not in the lists.
    pub is_partial: bool,
}

/// Which attachments a fragment shader reads as tile images.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TileReads {
    /// By location, as bits.
    pub colors: u64,
    pub depth: bool,
    pub stencil: bool,
    /// Without the order of fragments: colors, depth, stencil.
    pub unordered: [bool; 3],
}

/// What a shader does with descriptors of a binding. An atomic operation reads and writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescriptorUse {
    pub set: u32,
    pub binding: u32,
    pub element: DescriptorArrayIndex,
    pub reads: bool,
    pub writes: bool,
    /// The bytes of a buffer that are accessed, from the beginning of the descriptor's range; none where any may be.
    pub bytes: Option<Range<u64>>,
    /// What of these bytes an invocation accesses, where numbers from outside of the shader decide it.
    pub per_invocation: Option<InvocationBytes>,
    /// Whether it is made, and to all of these bytes.
    pub certainty: Certainty,
    /// Fragments do it in their order, one after the other.
    pub is_ordered: bool,
    /// It is an atomic operation.
    pub is_atomic: bool,
}

impl DescriptorUse {
    /// Of the only descriptor of a binding, which is neither read nor written.
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

/// Which descriptor of an array is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DescriptorArrayIndex {
    One(u32),
    /// The one whose number the shader reads here.
    Read(ValueSource),
    /// The shader decides.
    Unknown,
}

/// What a shader does with memory at an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressUse {
    /// Where the shader reads the address, as far as it could be followed.
    pub from: Option<ValueSource>,
    pub reads: bool,
    pub writes: bool,
    /// What lies there is an acceleration structure that rays go through.
    pub is_structure: bool,
    /// Counted from the address.
    pub bytes: Range<u64>,
    /// What of these bytes an invocation accesses, where numbers from outside of the shader decide it.
    pub per_invocation: Option<InvocationBytes>,
    pub certainty: Certainty,
    /// It is an atomic operation.
    pub is_atomic: bool,
}

/// The code of a shader, as a pipeline uses it.
#[derive(Clone, Debug)]
pub struct ShaderCode<'a> {
    pub words: &'a [u32],
    pub entry_point: &'a str,
    pub stage: ShaderStageFlagBits,
    /// Specialization constants: their ids and bytes.
    pub constants: Vec<(u32, &'a [u8])>,
}

/// Whoever can read shaders.
pub trait Reflect {
    /// None where nothing can be said; the shader is then taken to access no descriptors.
    fn reflect(&self, code: &ShaderCode<'_>) -> Option<ShaderInterface>;
}

/// Nobody can.
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

    /// Whether it decides which primitives are rasterized.
    pub(crate) fn makes_primitives(&self) -> bool {
        use ShaderStageFlagBits as Stage;
        let makers = [Stage::TESSELLATION_CONTROL, Stage::TESSELLATION_EVALUATION, Stage::GEOMETRY, Stage::MESH_EXT];
        makers.contains(&self.stage)
    }

    /// The stage in which its accesses happen.
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
            // Whatever is left belongs to ray tracing.
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
