//! The registry as plain data. Every list is sorted by name unless its order carries meaning.

use std::collections::BTreeMap;

/// Everything Lavascope knows about the Vulkan API.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Registry {
    /// `VK_HEADER_VERSION`, the patch of the API version.
    pub header_version: u32,
    pub platforms: BTreeMap<String, Platform>,
    pub constants: BTreeMap<String, Constant>,
    pub base_types: BTreeMap<String, BaseType>,
    /// Types that come from headers of the platform, with the header's name.
    pub external_types: BTreeMap<String, String>,
    pub function_pointers: BTreeMap<String, FunctionPointer>,
    pub handles: BTreeMap<String, RegistryHandle>,
    pub enums: BTreeMap<String, Enum>,
    pub bitmasks: BTreeMap<String, Bitmask>,
    pub structs: BTreeMap<String, Struct>,
    pub commands: BTreeMap<String, RegistryCommand>,
    /// Alias to the name it stands for, for types and commands alike.
    pub aliases: BTreeMap<String, String>,
    /// API versions in their order, then extensions by name.
    pub versions_and_extensions: Vec<VersionOrExtension>,
    /// The first version or extension that brings each type and command, as an index into `versions_and_extensions`.
    pub introduced_in: BTreeMap<String, usize>,
    pub sync: SyncTables,
    pub formats: BTreeMap<String, Format>,
    pub dynamic_states: BTreeMap<String, DynamicState>,
    pub spirv_extensions: BTreeMap<String, Vec<SpirvEnable>>,
    pub spirv_capabilities: BTreeMap<String, Vec<SpirvEnable>>,
    pub video_codecs: Vec<VideoCodec>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Platform {
    /// The preprocessor symbol that guards it, `VK_USE_PLATFORM_…`.
    pub protect: String,
}

/// A named constant outside any enum, such as `VK_WHOLE_SIZE`.
#[derive(Clone, Debug, PartialEq)]
pub struct Constant {
    pub value: ConstantValue,
}

#[derive(Clone, Debug, PartialEq)]
pub enum ConstantValue {
    U32(u32),
    U64(u64),
    F32(f32),
    Text(String),
    Alias(String),
}

/// A C typedef. `to` is what it stands for; `None` is an incomplete type, only ever pointed to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BaseType {
    pub to: Option<TypeRef>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionPointer {
    pub result: TypeRef,
    pub parameters: Vec<RegistryField>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegistryHandle {
    pub parent: Option<String>,
    /// The `VkObjectType` value.
    pub object_type: String,
    pub dispatchable: bool,
}

/// An enumeration, or the bits of a bitmask.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Enum {
    /// 32 or 64.
    pub width: u32,
    pub is_bitmask: bool,
    /// In the order of the file: the base enum, then versions and extensions.
    pub values: Vec<EnumValue>,
    /// Alias to value name.
    pub aliases: BTreeMap<String, String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnumValue {
    pub name: String,
    pub value: i64,
}

/// A `Flags` type. `bits` names the enum with its bits, where there are any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bitmask {
    pub width: u32,
    pub bits: Option<String>,
}

/// A structure, or a union when `is_union`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Struct {
    pub is_union: bool,
    pub fields: Vec<RegistryField>,
    /// Written by the implementation only.
    pub returned_only: bool,
    /// The structures whose `pNext` chain may hold this one.
    pub extends: Vec<String>,
    pub allow_duplicate: bool,
    pub required_limit_type: bool,
}

impl Struct {
    /// The name of the structure's `VkStructureType` value, if it has one.
    pub fn s_type(&self) -> Option<&str> {
        self.fields.first().filter(|it| it.name == "sType").and_then(|it| it.values.as_deref())
    }
}

/// A member of a structure or a parameter of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegistryField {
    pub name: String,
    pub ty: TypeRef,
    /// One entry per pointer level; empty means a single object.
    pub len: Vec<Length>,
    pub optional: Vec<bool>,
    pub extern_sync: ExternSync,
    /// The specification states the validity of this field in prose: it may be ignored.
    pub no_auto_validity: bool,
    /// The one permitted value, used for `sType`.
    pub values: Option<String>,
    /// For a union field: the sibling that selects the member.
    pub selector: Option<String>,
    /// For a union member: the selector's values.
    pub selection: Vec<String>,
    /// For an integer that holds a handle: the sibling with its `VkObjectType`.
    pub object_type: Option<String>,
    /// The sibling with the distance in bytes between elements.
    pub stride: Option<String>,
    /// The structure types that an untyped output may have.
    pub valid_structs: Vec<String>,
    pub limit_type: Option<String>,
    pub deprecated: bool,
}

/// How many elements a pointer points to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Length {
    /// A path of names: a sibling, or a member of what a sibling points to.
    Path(Vec<String>),
    NullTerminated,
    Number(u32),
    /// Any other C expression, to be understood by the generator.
    Expression(String),
}

/// A C type as written at a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeRef {
    pub base: String,
    /// Pointer levels from the innermost outwards; true if what that level points to is const.
    pub pointers: Vec<bool>,
    /// Array extents, outermost first; numbers or names of constants.
    pub array: Vec<String>,
    pub bits: Option<u32>,
}

impl TypeRef {
    pub fn is_pointer(&self) -> bool {
        !self.pointers.is_empty()
    }
}

/// Whether the application must synchronize access to the object behind a field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ExternSync {
    #[default]
    No,
    Always,
    /// Only under a condition given in prose.
    Maybe,
    /// The object at this path, instead of the field itself.
    Of(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegistryCommand {
    pub result: TypeRef,
    pub parameters: Vec<RegistryField>,
    pub success_codes: Vec<String>,
    pub error_codes: Vec<String>,
    /// Queue capabilities, any of which a command buffer's pool must have.
    pub queues: Vec<String>,
    pub allow_no_queues: bool,
    /// `inside`, `outside`, `both` or empty.
    pub render_pass: String,
    pub video_coding: String,
    pub command_buffer_level: Vec<String>,
    /// `action`, `state`, `synchronization`, `indirection`.
    pub tasks: Vec<String>,
    pub conditional_rendering: bool,
    /// Objects that must be synchronized without being parameters, in prose.
    pub implicit_extern_sync: Vec<String>,
}

/// An API version or an extension: what it brings and what it needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionOrExtension {
    pub name: String,
    /// `1.2` for a version, the extension's number otherwise.
    pub number: String,
    pub kind: VersionOrExtensionKind,
    pub platform: Option<String>,
    pub depends: Option<String>,
    pub promoted_to: Option<String>,
    pub deprecated_by: Option<String>,
    pub provisional: bool,
    pub types: Vec<String>,
    pub commands: Vec<String>,
    pub enums: Vec<EnumExtension>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VersionOrExtensionKind {
    Version,
    InstanceExtension,
    DeviceExtension,
    /// A header of the video standards, known from video.xml.
    VideoHeader,
}

/// A value that a version or extension adds to an enum, or a constant when `extends` is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnumExtension {
    pub name: String,
    pub extends: Option<String>,
    pub value: EnumExtensionValue,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EnumExtensionValue {
    Number(i64),
    Text(String),
    Alias(String),
    /// A mention of something defined elsewhere.
    Reference,
}

/// The stage and access tables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SyncTables {
    pub stages: Vec<SyncStage>,
    pub accesses: Vec<SyncAccess>,
    pub pipelines: Vec<SyncPipeline>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyncStage {
    pub name: String,
    pub alias: Option<String>,
    /// Queue capabilities that support it; empty means all.
    pub queues: Vec<String>,
    /// The stages this one stands for.
    pub equivalent: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyncAccess {
    pub name: String,
    pub alias: Option<String>,
    /// Stages that can perform it; empty means all.
    pub stages: Vec<String>,
    pub equivalent: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyncPipeline {
    pub name: String,
    pub depends: Vec<String>,
    pub stages: Vec<SyncPipelineStage>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyncPipelineStage {
    pub name: String,
    /// False for stages outside the logical order.
    pub ordered: bool,
    pub before: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Format {
    pub class: String,
    pub block_size: u32,
    pub texels_per_block: u32,
    pub block_extent: [u32; 3],
    pub packed: Option<u32>,
    pub compressed: Option<String>,
    pub chroma: Option<String>,
    pub components: Vec<FormatComponent>,
    pub planes: Vec<FormatPlane>,
    pub spirv_image_format: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormatComponent {
    pub name: String,
    /// `None` for compressed components.
    pub bits: Option<u32>,
    pub numeric_format: String,
    pub plane: Option<u32>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormatPlane {
    pub index: u32,
    pub width_divisor: u32,
    pub height_divisor: u32,
    pub compatible: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DynamicState {
    pub shader_stage: Vec<String>,
    pub substate: Option<String>,
    pub requires_rasterization: bool,
    pub commands: Vec<String>,
}

/// One way of enabling a SPIR-V extension or capability.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpirvEnable {
    pub version: Option<String>,
    pub extension: Option<String>,
    /// A structure and its feature.
    pub feature: Option<(String, String)>,
    pub property: Option<SpirvProperty>,
}

/// A member of a structure of properties, and the value that it must have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpirvProperty {
    pub structure: String,
    pub member: String,
    pub value: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VideoCodec {
    pub name: String,
    pub extend: Option<String>,
    pub value: Option<String>,
    pub capabilities: Vec<String>,
}

impl Registry {
    /// Follows aliases to the name that is defined.
    pub fn resolve<'a>(&'a self, name: &'a str) -> &'a str {
        let mut name = name;
        while let Some(to) = self.aliases.get(name) {
            name = to;
        }
        name
    }

    /// The version or extension that brings a type or command first.
    pub fn introduced_by(&self, name: &str) -> Option<&VersionOrExtension> {
        self.introduced_in.get(name).map(|it| &self.versions_and_extensions[*it])
    }

    pub(crate) fn find_introductions(&mut self) {
        for (index, block) in self.versions_and_extensions.iter().enumerate() {
            for name in block.types.iter().chain(&block.commands) {
                self.introduced_in.entry(name.clone()).or_insert(index);
            }
        }
    }

    pub(crate) fn sort(&mut self) {
        self.versions_and_extensions.sort_by_key(|versions_and_extension| {
            let video = versions_and_extension.kind == VersionOrExtensionKind::VideoHeader;
            (
                versions_and_extension.kind != VersionOrExtensionKind::Version,
                video,
                versions_and_extension.version_number(),
                versions_and_extension.name.clone(),
            )
        });
    }
}

impl VersionOrExtension {
    /// Versions by number; extensions and headers by name alone.
    fn version_number(&self) -> u32 {
        match self.kind {
            VersionOrExtensionKind::Version => self.number.replace('.', "").parse().unwrap_or(u32::MAX),
            _ => 0,
        }
    }
}
