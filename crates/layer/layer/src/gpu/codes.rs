//! How what shaders do wrong is called: by the rule of the specification where there is one, else as other layers do.

use lavascope_abi::*;
use lavascope_instrument::{Check, RecordedFault, CheckSite};

use super::variants::{CheckedStage, Variant};

/// What is behind a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Uniform,
    Storage,
    Inline,
    Texels,
    Image,
    Sampler,
    AccelerationStructure,
}

impl Kind {
    pub(super) fn of(variant: &Variant, stage: &CheckedStage, site: &CheckSite) -> Kind {
        let slot = binding_of(stage, site).and_then(|it| variant.layout.slot(it.0, it.1));
        match slot.map(|it| it.kind) {
            _ if site.check == Check::Texel => Kind::Texels,
            Some(DescriptorType::UNIFORM_BUFFER | DescriptorType::UNIFORM_BUFFER_DYNAMIC) => Kind::Uniform,
            Some(DescriptorType::STORAGE_BUFFER | DescriptorType::STORAGE_BUFFER_DYNAMIC) => Kind::Storage,
            Some(DescriptorType::INLINE_UNIFORM_BLOCK) => Kind::Inline,
            Some(DescriptorType::UNIFORM_TEXEL_BUFFER | DescriptorType::STORAGE_TEXEL_BUFFER) => Kind::Texels,
            Some(DescriptorType::SAMPLER) => Kind::Sampler,
            Some(DescriptorType::ACCELERATION_STRUCTURE_KHR | DescriptorType::ACCELERATION_STRUCTURE_NV) => {
                Kind::AccelerationStructure
            }
            // A pointer of which the binding is not known leads into a buffer.
            None if site.check == Check::Buffer => Kind::Storage,
            _ => Kind::Image,
        }
    }

    pub(super) fn word(self) -> &'static str {
        match self {
            Kind::Uniform => "Uniform buffer",
            Kind::Storage => "Storage buffer",
            Kind::Inline => "Inline uniform block",
            Kind::Texels => "Texel buffer",
            Kind::Image => "Image",
            Kind::Sampler => "Sampler",
            Kind::AccelerationStructure => "Acceleration structure",
        }
    }
}

/// The binding of a site. A texel's is that of the use of its image, which is a site of the same instruction.
pub(super) fn binding_of(stage: &CheckedStage, site: &CheckSite) -> Option<(u32, u32)> {
    let others = || stage.made.sites.iter().filter(|it| it.at == site.at);
    site.binding.or_else(|| others().find_map(|it| it.binding))
}

/// The name of a message about a fault that a command met.
pub(super) fn code(command: &str, kind: Kind, error: &RecordedFault) -> String {
    match error {
        RecordedFault::IndexOutOfBounds { .. } => format!("VUID-{command}-None-10068"),
        RecordedFault::Uninitialized { .. } => format!("VUID-{command}-None-08114"),
        _ => bounds_code(command, kind, matches!(error, RecordedFault::AddressOutOfBounds { .. })),
    }
}

/// The same for a site of which no record is there.
pub(super) fn code_of_site(command: &str, kind: Kind, check: Check) -> String {
    match check {
        Check::Descriptor => format!("VUID-{command}-None-10068"),
        Check::Address | Check::Buffer | Check::Texel => bounds_code(command, kind, check == Check::Address),
    }
}

fn bounds_code(command: &str, kind: Kind, is_address: bool) -> String {
    match kind {
        _ if is_address => "UNASSIGNED-Device address out of bounds".to_owned(),
        Kind::Uniform => format!("VUID-{command}-uniformBuffers-06935"),
        Kind::Texels => "UNASSIGNED-Descriptor Texel Buffer texel out of bounds".to_owned(),
        Kind::Inline => "UNASSIGNED-Inline uniform block access out of bounds".to_owned(),
        Kind::Storage | Kind::Image | Kind::Sampler | Kind::AccelerationStructure => {
            format!("VUID-{command}-storageBuffers-06936")
        }
    }
}

/// Whether robust access makes a fault harmless.
pub(super) fn is_harmless_if_robust(error: &RecordedFault) -> bool {
    matches!(error, RecordedFault::BufferOutOfBounds { .. } | RecordedFault::TexelOutOfBounds { .. })
}

/// A command that runs a stage, where it is not known which one it was.
pub(super) fn command_of(stage: ShaderStageFlags) -> &'static str {
    let rays = ShaderStageFlags::RAYGEN_KHR.0
        | ShaderStageFlags::ANY_HIT_KHR.0
        | ShaderStageFlags::CLOSEST_HIT_KHR.0
        | ShaderStageFlags::MISS_KHR.0
        | ShaderStageFlags::INTERSECTION_KHR.0
        | ShaderStageFlags::CALLABLE_KHR.0;
    match stage.0 {
        it if it & ShaderStageFlags::COMPUTE.0 != 0 => "vkCmdDispatch",
        it if it & rays != 0 => "vkCmdTraceRaysKHR",
        _ => "vkCmdDraw",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_have_the_names_that_users_filter_by() {
        let bytes = RecordedFault::BufferOutOfBounds { descriptor: 0, index: 1, range: 4 };
        let name = |kind, error: &RecordedFault| code("vkCmdDrawIndexed", kind, error);
        assert_eq!(name(Kind::Uniform, &bytes), "VUID-vkCmdDrawIndexed-uniformBuffers-06935");
        assert_eq!(name(Kind::Storage, &bytes), "VUID-vkCmdDrawIndexed-storageBuffers-06936");
        assert_eq!(name(Kind::Inline, &bytes), "UNASSIGNED-Inline uniform block access out of bounds");
        let texel = RecordedFault::TexelOutOfBounds { texel: 4, length: 4 };
        assert_eq!(name(Kind::Texels, &texel), "UNASSIGNED-Descriptor Texel Buffer texel out of bounds");
        let index = RecordedFault::IndexOutOfBounds { index: 6, length: 6 };
        assert_eq!(name(Kind::Image, &index), "VUID-vkCmdDrawIndexed-None-10068");
        let never = RecordedFault::Uninitialized { index: 6 };
        assert_eq!(name(Kind::Image, &never), "VUID-vkCmdDrawIndexed-None-08114");
        let address = RecordedFault::AddressOutOfBounds { address: 6 };
        assert_eq!(name(Kind::Storage, &address), "UNASSIGNED-Device address out of bounds");
    }

    #[test]
    fn stages_are_run_by_commands() {
        assert_eq!(command_of(ShaderStageFlags::COMPUTE), "vkCmdDispatch");
        assert_eq!(command_of(ShaderStageFlags::MISS_KHR), "vkCmdTraceRaysKHR");
        assert_eq!(command_of(ShaderStageFlags::GEOMETRY), "vkCmdDraw");
    }
}
