//! The description of every structure and command, as data for the walkers.
//!
//! A [`Layout`] describes the bytes of a structure, a union, or the parameters of a command. `fields` is for people:
//! names, types, places. `fixups` is for walkers: the few things in those bytes that are not plain values, with inline
//! structures already flattened into their owner, so that no walker recurses into them. A walker copies the bytes and
//! then does the work.
//!
//! Five walkers use it: *pack* and *unpack* in `marshal`, *check*, *print* and *compare* in `record`. *Compare* works
//! on the printed form: records are canonical, so only records that differ are ever walked.

use lavascope_types::{Format, HandleType};

/// The bytes of a structure, union or parameter image.
pub struct Layout {
    /// The name in C; `vkCmdDraw` for its parameters, `vkCmdDraw:outputs` for its outputs.
    pub name: &'static str,
    pub size: u32,
    pub align: u32,
    /// The structure type, or [`Layout::NO_S_TYPE`].
    pub s_type_raw: i32,
    pub is_union: bool,
    pub returned_only: bool,
    pub fields: &'static [Field],
    pub fixups: &'static [Fixup],
    /// Padding that C leaves undefined and a record keeps zero.
    pub gaps: &'static [Span],
    /// The inputs of an output structure: its type and the capacities of its arrays.
    pub keep: &'static [Span],
}

impl Layout {
    pub const NO_S_TYPE: i32 = i32::MIN;

    pub const fn s_type(&self) -> Option<i32> {
        if self.s_type_raw == Self::NO_S_TYPE { None } else { Some(self.s_type_raw) }
    }

    /// Whether the bytes are the whole value: no pointers, handles or texts.
    pub const fn is_plain(&self) -> bool {
        self.fixups.is_empty()
    }
}

/// A run of bytes inside a layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    pub at: u32,
    pub size: u32,
}

/// A member or parameter, for printing and looking up.
pub struct Field {
    pub name: &'static str,
    pub at: u32,
    pub ty: Ty,
    /// How many of `ty` lie there; 1 unless a fixed array.
    pub count: u32,
    /// May be null or zero.
    pub is_optional: bool,
    /// The application must synchronize access to it.
    pub is_extern_sync: bool,
}

/// The type of a field as a person reads it.
#[derive(Clone, Copy)]
pub enum Ty {
    U8,
    I8,
    U16,
    I16,
    U32,
    I32,
    U64,
    I64,
    F32,
    F64,
    Bool32,
    Char,
    /// `size_t`.
    Size,
    DeviceAddress,
    Enum(&'static EnumDesc),
    Flags(&'static EnumDesc),
    /// Bits of the 32-bit word at the field's place.
    Bits {
        shift: u8,
        width: u8,
    },
    Handle(HandleType),
    /// A 64-bit handle whose type is in a sibling.
    TypedHandle,
    Struct(&'static Layout),
    Chain,
    Pointer(&'static Pointer),
    /// An address or platform object that is never followed.
    Opaque,
}

impl Ty {
    /// Bytes of one value.
    pub const fn size(&self) -> u32 {
        match self {
            Ty::U8 | Ty::I8 | Ty::Char => 1,
            Ty::U16 | Ty::I16 => 2,
            Ty::U32 | Ty::I32 | Ty::F32 | Ty::Bool32 | Ty::Enum(_) | Ty::Bits { .. } => 4,
            Ty::Flags(desc) => desc.width,
            Ty::Struct(layout) => layout.size,
            Ty::U64
            | Ty::I64
            | Ty::F64
            | Ty::Size
            | Ty::DeviceAddress
            | Ty::Handle(_)
            | Ty::TypedHandle
            | Ty::Chain
            | Ty::Pointer(_)
            | Ty::Opaque => 8,
        }
    }
}

/// An enumeration or the bits of a mask, with the names in C.
pub struct EnumDesc {
    pub name: &'static str,
    /// Bytes of a value: 4 or 8.
    pub width: u32,
    pub values: &'static [(i64, &'static str)],
}

/// Something in a layout that is not a plain value.
pub enum Fixup {
    /// `pNext`.
    Chain {
        at: u32,
    },
    /// `count` handles in a row.
    Handles {
        at: u32,
        count: u32,
        ty: HandleType,
        access: HandleAccess,
    },
    /// A 64-bit handle with its `VkObjectType` or `VkDebugReportObjectTypeEXT` beside it.
    TypedHandle {
        at: u32,
        ty: IntegerLocation,
        numbering: ObjectNumbering,
        access: HandleAccess,
    },
    Pointer {
        at: u32,
        pointer: &'static Pointer,
    },
    /// An address that is never followed: a record says present or absent.
    Opaque {
        at: u32,
    },
    /// A character array: a record is zero behind the terminator.
    Text {
        at: u32,
        size: u32,
    },
    /// The work depends on a sibling's value. Without a case for it, the bytes are left zero.
    Select {
        union: Span,
        selector: IntegerLocation,
        cases: &'static [Case],
    },
    /// An inline array with a count of used elements; a record is zero behind them.
    Tail {
        array: Span,
        element: u32,
        count: IntegerLocation,
    },
    /// A host or device address. The command decides which; a host address is opaque.
    DeviceOrHost {
        at: u32,
    },
}

impl Fixup {
    /// Where the work lies.
    pub const fn at(&self) -> u32 {
        match self {
            Fixup::Chain { at }
            | Fixup::Handles { at, .. }
            | Fixup::TypedHandle { at, .. }
            | Fixup::Pointer { at, .. }
            | Fixup::Opaque { at }
            | Fixup::Text { at, .. }
            | Fixup::DeviceOrHost { at } => *at,
            Fixup::Select { union, .. } => union.at,
            Fixup::Tail { array, .. } => array.at,
        }
    }
}

/// Whether other threads may use an object during the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandleAccess {
    Shared,
    /// The parameter is externally synchronized, always or under conditions that the specification states in prose.
    Exclusive,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectNumbering {
    /// `VkObjectType`.
    ObjectType,
    /// `VkDebugReportObjectTypeEXT`.
    DebugReport,
}

/// The member of a union for some values of its selector.
pub struct Case {
    pub values: &'static [i64],
    /// Which field of the union it is.
    pub field: u32,
    /// The bytes of the union that this case uses.
    pub size: u32,
    pub fixups: &'static [Fixup],
    pub gaps: &'static [Span],
}

/// A pointer and everything needed to copy what it points to.
pub struct Pointer {
    pub to: Pointee,
    pub len: Len,
    pub read: ReadCondition,
    pub direction: Direction,
    /// A sibling with the distance in bytes between elements in C memory; records are dense.
    pub stride: Option<IntegerLocation>,
    /// The access to the objects behind it, if they are handles.
    pub access: HandleAccess,
}

/// The type of one element behind a pointer.
pub enum Pointee {
    /// Plain values of this type.
    Values(Ty),
    Struct(&'static Layout),
    /// A structure with a member for its own type.
    AnyStruct,
    Handle(HandleType),
    /// Characters up to a terminator.
    Text,
    Pointer(&'static Pointer),
    /// Addresses that are never followed.
    Opaque,
    /// Bytes whose number only other objects know; a record begins them with their count.
    Blob(Blob),
    /// Data laid out by a descriptor update template; a record begins it with the template's entries.
    Template,
}

/// Which knowledge defines the size of a [`Pointee::Blob`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blob {
    ShaderGroupCaptureReplayHandle,
    OpaqueCaptureDescriptor,
    HostImage,
    TensorConstant,
    /// An output whose size only the driver knows.
    DriverPrivate,
}

/// How many elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Len {
    Fixed(u32),
    /// An integer in the same structure or behind one of its pointers.
    At(IntegerLocation),
    /// `(value + add) / divide`.
    Scaled {
        of: IntegerLocation,
        add: u32,
        divide: u32,
    },
    /// Up to a zero.
    Terminated,
    /// By hand, in `event::rules`.
    Rule(LenRule),
}

/// Lengths that the registry does not state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LenRule {
    /// One element per geometry of the build with the same index.
    GeometriesOfBuild,
    /// `VkDeviceFaultCountsEXT` of the same call.
    FaultAddressInfos,
    FaultVendorInfos,
    FaultVendorBinary,
    /// `max_sub_layers_minus1 + 1` of the parameter set that points here.
    SubLayers,
}

/// Where an integer lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IntegerLocation {
    /// Behind the pointer at this place of the structure, or [`IntegerLocation::HERE`].
    pub through: u32,
    pub at: u32,
    /// Bytes: 1, 2, 4 or 8.
    pub width: u8,
}

impl IntegerLocation {
    pub const HERE: u32 = u32::MAX;
}

/// When a pointer is read at all. Where it is not, it may be garbage, and a record says null.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadCondition {
    Always,
    /// A sibling has one of these values.
    Is(IntegerLocation, &'static [i64]),
    /// A sibling has any of these bits.
    Has(IntegerLocation, u64),
    /// A sibling has none of these bits.
    Lacks(IntegerLocation, u64),
    /// By hand, in `event::rules`.
    Rule(ReadRule),
}

/// Conditions that need more than one sibling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadRule {
    /// The command buffer being begun is a secondary one.
    SecondaryCommandBuffer,
    PipelineVertexInput,
    PipelineInputAssembly,
    PipelineTessellation,
    PipelineViewport,
    PipelineRasterization,
    PipelineMultisample,
    PipelineDepthStencil,
    PipelineColorBlend,
    PipelineStages,
    ViewportsStatic,
    ScissorsStatic,
    SampleMask,
    GroupVertexInput,
    GroupTessellation,
    ViewportScalingsStatic,
    DiscardRectanglesStatic,
    CoverageTable,
    ExclusiveScissorsStatic,
    ShadingRatePalettesStatic,
    BlendAttachments,
    ColorWriteEnables,
    SampleOrders,
    ViewportSwizzles,
    DepthClampRange,
    /// Attachment formats of dynamic rendering, ignored where a render pass is given.
    RenderingColors,
    /// Ignored below an encoder's picture.
    DecodedTiles,
    /// Ignored below an encoder's picture with uniform tiles.
    TileSizes,
    ViewportDepths,
    DescriptorImages,
    DescriptorBuffers,
    DescriptorTexelViews,
}

/// Which way the data goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    In,
    /// Written by the implementation: in a record from the call's return on.
    Out,
    /// The pointer itself is the implementation's: nothing before the call's return.
    Returned,
}

/// A command: its parameters before the call, its result and outputs after.
pub struct CommandDesc {
    pub name: &'static str,
    pub level: CommandLevel,
    pub parameters: &'static Layout,
    /// None for a command that returns nothing and writes nothing.
    pub outputs: Option<&'static Outputs>,
    /// Other names of the same command.
    pub aliases: &'static [&'static str],
    /// The first version or extension that has it.
    pub provider: &'static str,
}

/// Whose dispatch table has a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandLevel {
    /// Callable without an instance.
    Global,
    Instance,
    PhysicalDevice,
    Device,
}

/// The image of a call's result and outputs.
pub struct Outputs {
    pub layout: &'static Layout,
    /// Where each field of the layout comes from, in the same order.
    pub sources: &'static [OutputSource],
    pub result: ResultKind,
}

/// Where a field of the outputs comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputSource {
    Result,
    /// A parameter at this place of the parameter image.
    Parameter {
        at: u32,
        is_output: bool,
    },
    /// An integer behind a parameter, needed as a length.
    Through(IntegerLocation),
}

/// The meaning of a command's return value for its outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultKind {
    /// No result: the outputs are always written.
    Void,
    /// A `VkResult`; the outputs are read for codes from zero up, less `unwritten`, and for those in `written`.
    Codes { unwritten: &'static [i32], written: Written },
    /// Another value, such as a device address.
    Value,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    OnSuccess,
    /// Handles or results are written even when the call fails.
    Always,
}

/// A pipeline stage of the synchronization chapter. Masks are `VkPipelineStageFlags2` and `VkQueueFlags`.
pub struct SyncStage {
    pub name: &'static str,
    pub stage: u64,
    /// Queue capabilities that support it; zero means all.
    pub queues: u32,
    /// The stages it stands for.
    pub equivalent: u64,
}

/// A kind of access. Masks are `VkAccessFlags2` and `VkPipelineStageFlags2`.
pub struct SyncAccess {
    pub name: &'static str,
    pub access: u64,
    /// Stages that can perform it; zero means all.
    pub stages: u64,
    pub equivalent: u64,
}

/// The stages of one kind of pipeline in their logical order.
pub struct SyncPipeline {
    pub name: &'static str,
    pub stages: &'static [SyncPipelineStage],
}

pub struct SyncPipelineStage {
    pub stage: u64,
    pub is_ordered: bool,
    /// A stage that comes after it although it is not in the order, or zero.
    pub before: u64,
}

/// The components of a format's texels.
pub struct FormatDesc {
    pub name: &'static str,
    pub format: Format,
    pub class: &'static str,
    /// Bytes of a texel block.
    pub block_size: u32,
    pub block_extent: [u32; 3],
    pub components: &'static [FormatComponent],
    pub planes: &'static [FormatPlane],
    pub is_compressed: bool,
}

pub struct FormatComponent {
    pub name: &'static str,
    /// Zero for a compressed component.
    pub bits: u32,
    pub numeric: &'static str,
    pub plane: u32,
}

pub struct FormatPlane {
    pub width_divisor: u32,
    pub height_divisor: u32,
    /// The single-plane format of the same size.
    pub format: Format,
}
