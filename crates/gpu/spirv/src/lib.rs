//! A SPIR-V module one can parse, reflect on, edit and write back.
//!
//! A [`Module`] is its words, with an index beside them: where each instruction begins, which one makes an id, which
//! decorations and names an id has, which functions and blocks there are. Unknown opcodes, capabilities and decorations
//! are kept unchanged and are never an error.
//!
//! [`reflect`] lists the accesses of an entry point to descriptors, push constants and device addresses, with
//! specialization constants applied. [`Editor`] adds instructions and writes the module again; existing instructions
//! keep their ids and their order.

#![forbid(unsafe_code)]

mod access_names;
mod editor;
mod error;
pub mod grammar;
mod image_operands;
mod instruction;
mod module;
mod reflect;
mod source;

pub use access_names::{AccessDescription, AccessStep};
pub use editor::{Editor, Reserved, instruction, string_words};
pub use error::{ParseError, ParseErrorKind};
pub use image_operands::{ImageUse, image_use, second_image};
pub use instruction::{Instruction, decode_string};
pub use module::{Annotation, BasicBlock, EntryPoint, Function, Module, Section};
pub use reflect::{
    AccessBytes, AccessKind, AccessMode, AccessTarget, Descriptor, DescriptorElement, DescriptorKind, FragmentTests,
    InterfaceKind, InterfaceVariable, Interlock, InvocationBytes, MeshLimits, NumberKind, OffsetTerm, Quantity,
    ReflectError, Reflection, ShaderAccess, Specialization, TypeLayouts, ValueSource, reflect,
};
pub use source::SourceLine;

/// The id of a thing in a module. Zero is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(pub u32);

/// Which instruction of a module, counted from the first one behind the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InstructionIndex(pub u32);
