//! The registry with all values that the emitters print: layouts, offsets, fixups, outputs.
//!
//! The types mirror those of `abi::desc`, with the same fields.

pub(crate) mod commands;
pub(crate) mod layouts;
pub(crate) mod names;
pub(crate) mod overrides;
pub(crate) mod pointers;

use std::collections::BTreeMap;

pub(crate) struct Model {
    /// Structures and unions by C name.
    pub(crate) layouts: BTreeMap<String, Layout>,
    pub(crate) commands: BTreeMap<String, CommandModel>,
}

#[derive(Clone)]
pub(crate) struct Layout {
    pub(crate) c_name: String,
    pub(crate) rust_name: String,
    pub(crate) size: u32,
    pub(crate) align: u32,
    pub(crate) s_type: Option<i64>,
    pub(crate) is_union: bool,
    pub(crate) returned_only: bool,
    pub(crate) fields: Vec<Field>,
    pub(crate) fixups: Vec<Fixup>,
    pub(crate) gaps: Vec<Span>,
    pub(crate) keep: Vec<Span>,
}

impl Layout {
    pub(crate) fn static_name(&self) -> String {
        format!("{}_LAYOUT", crate::model::names::screaming_snake_case(&self.rust_name))
    }

    /// Whether these bytes contain a pointer or an index into the record.
    pub(crate) fn has_references(&self) -> bool {
        have_references(&self.fixups)
    }
}

/// Whether any fixup refers to another block.
pub(crate) fn have_references(work: &[Fixup]) -> bool {
    work.iter().any(|fixup| match fixup {
        Fixup::Chain { .. } | Fixup::Pointer { .. } => true,
        Fixup::Select { cases, .. } => cases.iter().any(|it| have_references(&it.fixups)),
        _ => false,
    })
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Span {
    pub(crate) at: u32,
    pub(crate) size: u32,
}

#[derive(Clone)]
pub(crate) struct Field {
    pub(crate) c_name: String,
    pub(crate) rust_name: String,
    /// The type of the field in Rust. Empty for a bit field whose word another field declares.
    pub(crate) rust_type: String,
    pub(crate) at: u32,
    pub(crate) size: u32,
    pub(crate) ty: Ty,
    pub(crate) count: u32,
    pub(crate) optional: bool,
    pub(crate) extern_sync: bool,
}

#[derive(Clone)]
pub(crate) enum Ty {
    /// A variant of `abi::desc::Ty` without data.
    Plain(&'static str),
    Enum(String),
    Flags(String),
    Bits {
        shift: u32,
        width: u32,
    },
    Handle(String),
    TypedHandle,
    Struct(String),
    Chain,
    Pointer(Box<Pointer>),
    Opaque,
}

#[derive(Clone)]
pub(crate) enum Fixup {
    Chain { at: u32 },
    Handles { at: u32, count: u32, ty: String, exclusive: bool },
    TypedHandle { at: u32, ty: IntegerLocation, is_report: bool, exclusive: bool },
    Pointer { at: u32, pointer: Box<Pointer> },
    Opaque { at: u32 },
    Text { at: u32, size: u32 },
    Select { union: Span, selector: IntegerLocation, cases: Vec<Case> },
    Tail { array: Span, element: u32, count: IntegerLocation },
    DeviceOrHost { at: u32 },
}

impl Fixup {
    /// The offset of the fixup.
    pub(crate) fn at(&self) -> u32 {
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

#[derive(Clone)]
pub(crate) struct Case {
    pub(crate) values: Vec<i64>,
    pub(crate) field: u32,
    pub(crate) size: u32,
    pub(crate) fixups: Vec<Fixup>,
    pub(crate) gaps: Vec<Span>,
}

#[derive(Clone)]
pub(crate) struct Pointer {
    pub(crate) to: Pointee,
    pub(crate) len: Len,
    pub(crate) read: ReadCondition,
    pub(crate) direction: Direction,
    pub(crate) stride: Option<IntegerLocation>,
    pub(crate) exclusive: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    In,
    Out,
    Returned,
}

#[derive(Clone)]
pub(crate) enum Pointee {
    /// Plain values: size of one in bytes, its type in Rust and in the tables.
    Values(u32, String, Ty),
    Struct(String),
    AnyStruct,
    Handle(String),
    Text,
    Pointer(Box<Pointer>),
    Opaque,
    Blob(&'static str),
    Template,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IntegerLocation {
    pub(crate) through: Option<u32>,
    pub(crate) at: u32,
    pub(crate) width: u32,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Len {
    Fixed(u32),
    At(IntegerLocation),
    Scaled { of: IntegerLocation, add: u32, divide: u32 },
    Terminated,
    Rule(&'static str),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ReadCondition {
    Always,
    Is(IntegerLocation, Vec<i64>),
    Has(IntegerLocation, u64),
    Lacks(IntegerLocation, u64),
    Rule(&'static str),
}

pub(crate) struct CommandModel {
    pub(crate) c_name: String,
    pub(crate) rust_name: String,
    pub(crate) level: &'static str,
    pub(crate) parameters: Layout,
    pub(crate) outputs: Option<Outputs>,
    pub(crate) result_type: String,
    pub(crate) aliases: Vec<String>,
    pub(crate) block: String,
}

pub(crate) struct Outputs {
    pub(crate) layout: Layout,
    pub(crate) sources: Vec<OutputSource>,
    pub(crate) result: ResultKind,
}

#[derive(Clone, Copy)]
pub(crate) enum OutputSource {
    Result,
    Parameter { at: u32, is_output: bool },
    Through(IntegerLocation),
}

pub(crate) enum ResultKind {
    Void,
    Codes { unwritten: Vec<i64>, is_always_written: bool },
    Value,
}
