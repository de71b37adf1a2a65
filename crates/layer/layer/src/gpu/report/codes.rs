//! The codes of findings: the rule of the specification if there is one, otherwise the name that other layers use.

use lavascope_abi::*;
use lavascope_instrument::{Check, CheckSite, RecordedFault};

use crate::gpu::pipeline::variants::{InstrumentedStage, PipelineVariant};

/// The kind of resource that is bound to a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BoundResourceKind {
    Uniform,
    Storage,
    Inline,
    Texels,
    Image,
    Sampler,
    AccelerationStructure,
}

impl BoundResourceKind {
    pub(crate) fn of(variant: &PipelineVariant, stage: &InstrumentedStage, site: &CheckSite) -> BoundResourceKind {
        let slot = binding_of(stage, site).and_then(|it| variant.layout.binding(it.0, it.1));
        match slot.map(|it| it.descriptor_type) {
            _ if site.check == Check::Texel => BoundResourceKind::Texels,
            Some(DescriptorType::UNIFORM_BUFFER | DescriptorType::UNIFORM_BUFFER_DYNAMIC) => BoundResourceKind::Uniform,
            Some(DescriptorType::STORAGE_BUFFER | DescriptorType::STORAGE_BUFFER_DYNAMIC) => BoundResourceKind::Storage,
            Some(DescriptorType::INLINE_UNIFORM_BLOCK) => BoundResourceKind::Inline,
            Some(DescriptorType::UNIFORM_TEXEL_BUFFER | DescriptorType::STORAGE_TEXEL_BUFFER) => {
                BoundResourceKind::Texels
            }
            Some(DescriptorType::SAMPLER) => BoundResourceKind::Sampler,
            Some(DescriptorType::ACCELERATION_STRUCTURE_KHR | DescriptorType::ACCELERATION_STRUCTURE_NV) => {
                BoundResourceKind::AccelerationStructure
            }
            // A pointer whose binding is unknown refers to a buffer.
            None if site.check == Check::Buffer => BoundResourceKind::Storage,
            _ => BoundResourceKind::Image,
        }
    }

    pub(crate) fn word(self) -> &'static str {
        match self {
            BoundResourceKind::Uniform => "Uniform buffer",
            BoundResourceKind::Storage => "Storage buffer",
            BoundResourceKind::Inline => "Inline uniform block",
            BoundResourceKind::Texels => "Texel buffer",
            BoundResourceKind::Image => "Image",
            BoundResourceKind::Sampler => "Sampler",
            BoundResourceKind::AccelerationStructure => "Acceleration structure",
        }
    }
}

/// The binding of a site. For a texel it is the binding of its image, which is a site of the same instruction.
pub(crate) fn binding_of(stage: &InstrumentedStage, site: &CheckSite) -> Option<(u32, u32)> {
    let others = || stage.instrumented.sites.iter().filter(|it| it.at == site.at);
    site.binding.or_else(|| others().find_map(|it| it.binding))
}

/// The code of a fault in a command.
pub(crate) fn code_of_error(command: &str, kind: BoundResourceKind, error: &RecordedFault) -> String {
    match error {
        RecordedFault::IndexOutOfBounds { .. } => format!("VUID-{command}-None-10068"),
        RecordedFault::Uninitialized { .. } => format!("VUID-{command}-None-08114"),
        _ => bounds_code(command, kind, matches!(error, RecordedFault::AddressOutOfBounds { .. })),
    }
}

/// Like `code_of_error`, for a site without a record.
pub(crate) fn code_of_site(command: &str, kind: BoundResourceKind, check: Check) -> String {
    match check {
        Check::Descriptor => format!("VUID-{command}-None-10068"),
        Check::Address | Check::Buffer | Check::Texel => bounds_code(command, kind, check == Check::Address),
    }
}

fn bounds_code(command: &str, kind: BoundResourceKind, is_address: bool) -> String {
    match kind {
        _ if is_address => "UNASSIGNED-Device address out of bounds".to_owned(),
        BoundResourceKind::Uniform => format!("VUID-{command}-uniformBuffers-06935"),
        BoundResourceKind::Texels => "UNASSIGNED-Descriptor Texel Buffer texel out of bounds".to_owned(),
        BoundResourceKind::Inline => "UNASSIGNED-Inline uniform block access out of bounds".to_owned(),
        BoundResourceKind::Storage
        | BoundResourceKind::Image
        | BoundResourceKind::Sampler
        | BoundResourceKind::AccelerationStructure => {
            format!("VUID-{command}-storageBuffers-06936")
        }
    }
}

/// Whether robust access makes a fault harmless.
pub(crate) fn is_harmless_if_robust(error: &RecordedFault) -> bool {
    matches!(error, RecordedFault::BufferOutOfBounds { .. } | RecordedFault::TexelOutOfBounds { .. })
}

/// A command that runs a stage, if the actual command is unknown.
pub(crate) fn command_of_stage(stage: ShaderStageFlags) -> &'static str {
    let rays = ShaderStageFlags::RAYGEN_KHR.0
        | ShaderStageFlags::ANY_HIT_KHR.0
        | ShaderStageFlags::CLOSEST_HIT_KHR.0
        | ShaderStageFlags::MISS_KHR.0
        | ShaderStageFlags::INTERSECTION_KHR.0
        | ShaderStageFlags::CALLABLE_KHR.0;
    match stage.0 {
        value if value & ShaderStageFlags::COMPUTE.0 != 0 => "vkCmdDispatch",
        value if value & rays != 0 => "vkCmdTraceRaysKHR",
        _ => "vkCmdDraw",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_have_the_names_that_users_filter_by() {
        let bytes = RecordedFault::BufferOutOfBounds { descriptor: 0, index: 1, range: 4 };
        let name = |kind, error: &RecordedFault| code_of_error("vkCmdDrawIndexed", kind, error);
        assert_eq!(name(BoundResourceKind::Uniform, &bytes), "VUID-vkCmdDrawIndexed-uniformBuffers-06935");
        assert_eq!(name(BoundResourceKind::Storage, &bytes), "VUID-vkCmdDrawIndexed-storageBuffers-06936");
        assert_eq!(name(BoundResourceKind::Inline, &bytes), "UNASSIGNED-Inline uniform block access out of bounds");
        let texel = RecordedFault::TexelOutOfBounds { texel: 4, length: 4 };
        assert_eq!(name(BoundResourceKind::Texels, &texel), "UNASSIGNED-Descriptor Texel Buffer texel out of bounds");
        let index = RecordedFault::IndexOutOfBounds { index: 6, length: 6 };
        assert_eq!(name(BoundResourceKind::Image, &index), "VUID-vkCmdDrawIndexed-None-10068");
        let never = RecordedFault::Uninitialized { index: 6 };
        assert_eq!(name(BoundResourceKind::Image, &never), "VUID-vkCmdDrawIndexed-None-08114");
        let address = RecordedFault::AddressOutOfBounds { address: 6 };
        assert_eq!(name(BoundResourceKind::Storage, &address), "UNASSIGNED-Device address out of bounds");
    }

    #[test]
    fn stages_are_run_by_commands() {
        assert_eq!(command_of_stage(ShaderStageFlags::COMPUTE), "vkCmdDispatch");
        assert_eq!(command_of_stage(ShaderStageFlags::MISS_KHR), "vkCmdTraceRaysKHR");
        assert_eq!(command_of_stage(ShaderStageFlags::GEOMETRY), "vkCmdDraw");
    }
}
