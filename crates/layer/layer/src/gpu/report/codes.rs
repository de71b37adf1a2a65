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
            // A pointer whose binding is unknown, or whose descriptor may have several types, refers to a buffer.
            None | Some(DescriptorType::MUTABLE_EXT) if site.check == Check::Buffer => BoundResourceKind::Storage,
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

/// A command with shaders. Shader objects have rules of their own.
#[derive(Clone, Copy)]
pub(crate) struct FaultCommand<'a> {
    pub(crate) name: &'a str,
    pub(crate) uses_objects: bool,
}

/// The code of a fault in a command.
pub(crate) fn code_of_error(command: FaultCommand<'_>, kind: BoundResourceKind, error: &RecordedFault) -> String {
    match error {
        RecordedFault::IndexOutOfBounds { .. } => format!("VUID-{}-None-10068", command.name),
        RecordedFault::Uninitialized { .. } => format!("VUID-{}-None-08114", command.name),
        _ => bounds_code(command, kind, matches!(error, RecordedFault::AddressOutOfBounds { .. })),
    }
}

/// Like `code_of_error`, for a site without a record.
pub(crate) fn code_of_site(command: FaultCommand<'_>, kind: BoundResourceKind, check: Check) -> String {
    match check {
        Check::Descriptor => format!("VUID-{}-None-10068", command.name),
        Check::Address | Check::Buffer | Check::Texel => bounds_code(command, kind, check == Check::Address),
    }
}

/// The rule about accesses at device addresses.
pub(crate) const ADDRESS_CODE: &str = "VUID-RuntimeSpirv-PhysicalStorageBuffer64-11819";

fn bounds_code(command: FaultCommand<'_>, kind: BoundResourceKind, is_address: bool) -> String {
    let FaultCommand { name: command, uses_objects } = command;
    match kind {
        _ if is_address => ADDRESS_CODE.to_owned(),
        BoundResourceKind::Uniform if uses_objects => format!("VUID-{command}-None-08612"),
        BoundResourceKind::Uniform => format!("VUID-{command}-uniformBuffers-06935"),
        BoundResourceKind::Texels => "UNASSIGNED-Descriptor Texel Buffer texel out of bounds".to_owned(),
        BoundResourceKind::Inline => "UNASSIGNED-Inline uniform block access out of bounds".to_owned(),
        BoundResourceKind::Storage
        | BoundResourceKind::Image
        | BoundResourceKind::Sampler
        | BoundResourceKind::AccelerationStructure => match uses_objects {
            true => format!("VUID-{command}-None-08613"),
            false => format!("VUID-{command}-storageBuffers-06936"),
        },
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
        let command = FaultCommand { name: "vkCmdDrawIndexed", uses_objects: false };
        let name = |kind, error: &RecordedFault| code_of_error(command, kind, error);
        let of_object =
            |kind, error: &RecordedFault| code_of_error(FaultCommand { uses_objects: true, ..command }, kind, error);
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
        assert_eq!(name(BoundResourceKind::Storage, &address), ADDRESS_CODE);
        assert_eq!(of_object(BoundResourceKind::Uniform, &bytes), "VUID-vkCmdDrawIndexed-None-08612");
        assert_eq!(of_object(BoundResourceKind::Storage, &bytes), "VUID-vkCmdDrawIndexed-None-08613");
        assert_eq!(of_object(BoundResourceKind::Image, &index), name(BoundResourceKind::Image, &index));
    }

    /// Every rule that a message can name exists, for every command: the newest Khronos layer knows it.
    #[test]
    fn codes_are_those_of_the_specification() {
        let library = lavascope_test_support::swiftshader().with_file_name("libVkLayer_khronos_validation.so");
        let bytes = std::fs::read(&library).unwrap_or_else(|why| panic!("{}: {why}", library.display()));
        let texts = bytes.split(|it| *it == 0).filter(|it| it.starts_with(b"VUID-"));
        let known: std::collections::HashSet<&[u8]> = texts.collect();
        let runs_shaders =
            |name: &&str| ["vkCmdDraw", "vkCmdDispatch", "vkCmdTraceRays"].iter().any(|it| name.starts_with(it));
        let names: Vec<&str> = COMMANDS.iter().map(|it| it.name).filter(runs_shaders).collect();
        assert!(names.len() > 30, "{names:?}");
        let faults = [
            RecordedFault::IndexOutOfBounds { index: 6, length: 6 },
            RecordedFault::Uninitialized { index: 6 },
            RecordedFault::AddressOutOfBounds { address: 6 },
            RecordedFault::BufferOutOfBounds { descriptor: 0, index: 1, range: 4 },
        ];
        for name in names.into_iter().filter(|it| *it != "vkCmdDispatchDataGraphARM") {
            for (kind, uses_objects) in [
                (BoundResourceKind::Uniform, false),
                (BoundResourceKind::Storage, false),
                (BoundResourceKind::Uniform, true),
                (BoundResourceKind::Storage, true),
            ] {
                for fault in &faults {
                    let code = code_of_error(FaultCommand { name, uses_objects }, kind, fault);
                    assert!(known.contains(code.as_bytes()), "{code}");
                }
            }
        }
    }

    #[test]
    fn stages_are_run_by_commands() {
        assert_eq!(command_of_stage(ShaderStageFlags::COMPUTE), "vkCmdDispatch");
        assert_eq!(command_of_stage(ShaderStageFlags::MISS_KHR), "vkCmdTraceRaysKHR");
        assert_eq!(command_of_stage(ShaderStageFlags::GEOMETRY), "vkCmdDraw");
    }
}
