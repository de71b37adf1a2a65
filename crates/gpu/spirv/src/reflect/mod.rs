//! The accesses of an entry point to resources, computed without running it.
//!
//! [`reflect`] applies a specialization, follows calls and pointers from the entry point, and lists every access to
//! descriptors, push constants and device addresses that it may do: which bytes as far as constants tell, and whether
//! every invocation does it.
//!
//! - **A walk, not a list of declarations.** Functions are interpreted from the entry point in the order of control
//!   flow, once for each set of arguments. Branches on constants are taken. A descriptor that is only declared, or
//!   only used in a dead branch, is not in the list.
//! - **Bytes** are exact, a function of the invocation, so that the size of a dispatch decides, or some of a range.
//! - **Certain** is an access in a block that every run of its function executes, through a pointer that is not one of
//!   several, with no exit before it.
//! - **Addresses** are followed back to where they are read: push constants, buffers, other addresses.
//! - **Nothing hangs or overflows.** Types and constants refer only backwards, nesting and chains are cut at fixed
//!   depths, and the interpreter has a budget. When half of it is used, different numbers are merged; at its end the
//!   reflection states that it is not complete.

mod access;
mod constants;
mod flow_graph;
mod fold;
mod instructions;
mod interface;
mod interpreter;
mod layouts;
mod pointer;
mod types;
mod value;
mod variables;

use crate::{Id, InstructionIndex, Module};

pub use constants::Specialization;
pub use interface::{FragmentTests, InterfaceKind, InterfaceVariable, Interlock, MeshLimits, NumberKind};
pub use layouts::TypeLayouts;

use constants::Constants;
use interpreter::Interpreter;
use types::Types;
use variables::Variables;

/// The accesses of an entry point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reflection {
    /// The descriptors that it uses, in the order of the module.
    pub descriptors: Vec<Descriptor>,
    /// In the order of the module.
    pub accesses: Vec<ShaderAccess>,
    /// The inputs and outputs that it uses; a block is one entry per member.
    pub interface: Vec<InterfaceVariable>,
    /// Of stages that have workgroups.
    pub workgroup_size: Option<[u32; 3]>,
    pub mesh: Option<MeshLimits>,
    pub tests: FragmentTests,
    pub interlock: Option<Interlock>,
    /// Whether a fragment may end early without having written anything: `OpKill`, `OpTerminateInvocation`.
    pub may_discard: bool,
    pub may_demote: bool,
    /// Whether the shader makes the pipeline run once per sample.
    pub is_per_sample: bool,
    /// The locations of color attachments that are read as tile images.
    pub color_reads: Vec<u32>,
    pub reads_depth: bool,
    pub reads_stencil: bool,
    /// Tile images are read in no order with other fragments: colors, depth, stencil.
    pub unordered_reads: [bool; 3],
    /// Whether everything could be followed. If not (a pointer out of nowhere, an instruction that is not known, a heap
    /// of descriptors), there may be accesses that are not in the list.
    pub is_complete: bool,
}

/// A descriptor, or an array of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Descriptor {
    pub id: Id,
    pub name: Option<String>,
    pub set: u32,
    pub binding: u32,
    pub kind: DescriptorKind,
    /// One where it is no array; nothing where the array has no length in the shader.
    pub count: Option<u32>,
    pub input_attachment: Option<u32>,
    pub is_non_writable: bool,
    pub is_non_readable: bool,
    pub is_coherent: bool,
    pub is_volatile: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DescriptorKind {
    Sampler,
    CombinedImageSampler,
    SampledImage,
    StorageImage,
    UniformTexelBuffer,
    StorageTexelBuffer,
    UniformBuffer,
    StorageBuffer,
    InputAttachment,
    AccelerationStructure,
    Tensor,
    /// An unknown type.
    Unknown,
}

/// An access, by one instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShaderAccess {
    /// For messages: see [`Module::source`].
    pub at: InstructionIndex,
    pub target: AccessTarget,
    /// Which bytes of the range it is, where that is decided by the invocation's numbers and by what memory holds.
    pub per_invocation: Option<InvocationBytes>,
    pub kind: AccessKind,
    pub mode: AccessMode,
    /// Every invocation that runs to its end does it, to this very target. Otherwise it is under a branch or in a loop,
    /// or the target is one of several.
    pub is_certain: bool,
}

impl ShaderAccess {
    /// The key of an access: accesses with equal keys are the same.
    fn sort_key(&self) -> (InstructionIndex, AccessKind, AccessMode, &AccessTarget, &Option<InvocationBytes>, bool) {
        (self.at, self.kind, self.mode, &self.target, &self.per_invocation, !self.is_certain)
    }

    fn is_same_access(&self, other: &ShaderAccess) -> bool {
        let (left, right) = (self.sort_key(), other.sort_key());
        (left.0, left.1, left.2, left.3, left.4) == (right.0, right.1, right.2, right.3, right.4)
    }
}

/// The resource that is accessed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AccessTarget {
    Descriptor {
        /// Its place in [`Reflection::descriptors`].
        descriptor: usize,
        element: DescriptorElement,
        /// Of a buffer; which texels of an image, only the device knows.
        bytes: Option<AccessBytes>,
    },
    PushConstant {
        bytes: AccessBytes,
    },
    /// Memory at a device address.
    Address {
        /// Where the shader reads the address, if it could be followed.
        from: Option<ValueSource>,
        /// Relative to the address.
        bytes: AccessBytes,
    },
}

/// Which element of an array of descriptors. Arrays of arrays are counted through, as Vulkan does.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DescriptorElement {
    Constant(u32),
    /// Decided at run time; by the number that is read here, if it could be followed.
    Dynamic(Option<Box<ValueSource>>),
}

/// A range of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AccessBytes {
    pub start: u64,
    /// Exclusive; none if only the size of the bound resource limits it.
    pub end: Option<u64>,
    /// All of it is accessed. Otherwise some of it, decided at run time.
    pub is_exact: bool,
}

/// An invocation accesses `size` bytes from `start` plus the sum of the terms on.
///
/// The shader may count in 32 bits; a sum that leaves them wraps around there, but not here.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InvocationBytes {
    pub start: i64,
    pub terms: Vec<OffsetTerm>,
    pub size: u64,
}

/// A quantity with a factor.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OffsetTerm {
    pub quantity: Quantity,
    pub factor: i64,
}

/// A number that is decided outside of the shader.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Quantity {
    /// A component of a `BuiltIn`: the number of an invocation, a workgroup, a vertex.
    BuiltIn { built_in: u32, component: u32 },
    /// The place from which the shader reads the value.
    Read(ValueSource),
}

/// Where a number or an address is read that decides about another access.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ValueSource {
    PushConstant {
        bytes: AccessBytes,
    },
    Descriptor {
        set: u32,
        binding: u32,
        element: DescriptorElement,
        bytes: AccessBytes,
    },
    /// Relative to an address that is itself read somewhere.
    Address {
        from: Box<ValueSource>,
        bytes: AccessBytes,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AccessKind {
    Load,
    Store,
    Atomic,
    /// With a sampler: gathering, too.
    Sample,
    Fetch,
    ImageRead,
    ImageWrite,
    /// A query of a size or length: touches no contents.
    Query,
    /// A ray through an acceleration structure.
    Trace,
    Tensor,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AccessMode {
    /// The descriptor is used, but no memory behind it: a query, or a sampler.
    None,
    Read,
    Write,
    ReadWrite,
}

impl AccessMode {
    pub fn reads(self) -> bool {
        matches!(self, AccessMode::Read | AccessMode::ReadWrite)
    }

    pub fn writes(self) -> bool {
        matches!(self, AccessMode::Write | AccessMode::ReadWrite)
    }
}

/// Why there is nothing to reflect on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReflectError {
    #[error("the module has {entries} entry points, and none at {entry}")]
    NoEntry { entry: usize, entries: usize },
    #[error("the entry point names id {0}, which is no function")]
    NoFunction(u32),
}

/// The accesses of an entry point, by its index in [`Module::entries`].
pub fn reflect(module: &Module, entry: usize, specialization: &Specialization) -> Result<Reflection, ReflectError> {
    let entries = module.entries();
    let found = entries.get(entry).ok_or(ReflectError::NoEntry { entry, entries: entries.len() })?;
    let function = module.function_of(found.function).ok_or(ReflectError::NoFunction(found.function.0))?;
    let constants = Constants::new(module, specialization);
    let types = Types::new(module, &constants);
    let variables = Variables::new(module, &types);
    let mut machine = Interpreter::new(module, types, constants, variables);
    let accesses = machine.run(function);
    let mut reflection = interface::describe(&machine, found, accesses);
    retain_used_descriptors(&mut reflection);
    Ok(reflection)
}

/// Forgets the descriptors that no access names.
fn retain_used_descriptors(reflection: &mut Reflection) {
    let mut numbers = vec![None; reflection.descriptors.len()];
    for access in &reflection.accesses {
        if let AccessTarget::Descriptor { descriptor, .. } = &access.target {
            numbers[*descriptor] = Some(0);
        }
    }
    for (next, number) in numbers.iter_mut().flatten().enumerate() {
        *number = next;
    }
    for access in &mut reflection.accesses {
        if let AccessTarget::Descriptor { descriptor, .. } = &mut access.target {
            *descriptor = numbers[*descriptor].unwrap_or(0);
        }
    }
    let mut numbers = numbers.iter();
    reflection.descriptors.retain(|_| numbers.next().is_some_and(Option::is_some));
}
