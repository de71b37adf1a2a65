//! *Print*: a record as text a person reads, with the names of the C API.
//!
//! The same record always gives the same text: ids, never addresses.

use std::fmt::{self, Write};

use lavascope_abi::desc::{EnumDesc, Field, Fixup, Layout, Pointee, Pointer, Ty};
use lavascope_abi::{DESCRIPTOR_TYPE_ENUM, ObjectId, Ptr, structure_by_type};

use crate::encoding::{HEADER_SIZE, Record, RecordPhase};
use crate::memory::{ReadableMemory, RecordMemory};
use crate::object_names::ObjectNames;
use crate::rules;
use crate::special_values::special_text;
use crate::template;
use crate::walk::{CHAIN_MAX, StructFrame};

/// The record as indented text, ending in a line break.
pub fn print(record: Record<'_>) -> String {
    print_with(record, &ObjectNames::default())
}

/// Like `print`, with the debug names of objects.
pub fn print_with(record: Record<'_>, object_names: &ObjectNames) -> String {
    let desc = record.command().desc();
    let layout = match (record.phase(), desc.outputs) {
        (RecordPhase::Leave, Some(outputs)) => outputs.layout,
        _ => desc.parameters,
    };
    let mut printer =
        Printer { memory: RecordMemory { body: record.body() }, names: object_names, out: String::new(), indent: 0 };
    let arrow = if record.phase() == RecordPhase::Enter { "" } else { " ->" };
    let _ = writeln!(printer.out, "{}{arrow}", desc.name);
    printer.indent = 1;
    // Writing into a string cannot fail.
    let _ = printer.structure(&StructFrame::root(layout, HEADER_SIZE as u64));
    printer.out
}

struct Printer<'a> {
    memory: RecordMemory<'a>,
    names: &'a ObjectNames,
    out: String,
    indent: usize,
}

impl Printer<'_> {
    fn line(&mut self, name: &str, value: impl fmt::Display) -> fmt::Result {
        writeln!(self.out, "{:1$}{name} = {value}", "", self.indent * 2)
    }

    fn nested(&mut self, name: &str, kind: &str, body: impl FnOnce(&mut Self) -> fmt::Result) -> fmt::Result {
        writeln!(self.out, "{:1$}{name}: {kind}", "", self.indent * 2)?;
        self.indent += 1;
        let result = body(self);
        self.indent -= 1;
        result
    }

    fn structure(&mut self, frame: &StructFrame<'_>) -> fmt::Result {
        frame.layout.fields.iter().try_for_each(|it| self.member(frame, it))
    }

    fn member(&mut self, frame: &StructFrame<'_>, field: &Field) -> fmt::Result {
        let at = frame.base + u64::from(field.at);
        match field.ty {
            Ty::Char if field.count > 1 => self.line(field.name, Quoted(self.text_at(at, field.count as usize))),
            Ty::U8 if field.name.ends_with("UUID") || field.name.ends_with("LUID") => {
                self.line(field.name, Hexadecimal(self.bytes_at(at, field.count as usize).to_vec()))
            }
            _ if field.count > 1 => self.array(frame, field, at),
            _ => self.field(frame, field.name, field, at),
        }
    }

    fn array(&mut self, frame: &StructFrame<'_>, field: &Field, at: u64) -> fmt::Result {
        let size = u64::from(field.ty.size());
        for index in 0..u64::from(field.count) {
            self.field(frame, &format!("{}[{index}]", field.name), field, at + index * size)?;
        }
        Ok(())
    }

    fn field(&mut self, frame: &StructFrame<'_>, name: &str, field: &Field, at: u64) -> fmt::Result {
        match field.ty {
            Ty::Struct(layout) if layout.is_union => self.union(frame, name, layout, field, at),
            Ty::Struct(layout) => self.nested(name, layout.name, |it| it.structure(&frame.child(layout, at, 0))),
            Ty::Chain => self.chain(frame, at),
            Ty::Pointer(pointer) => self.pointer(frame, name, pointer, at, 0),
            _ => {
                let value = self.value((frame.layout.name, field.name), &field.ty, at);
                self.line(name, value)
            }
        }
    }

    /// The member that the selector names, or the bytes if there is no selector.
    fn union(
        &mut self,
        frame: &StructFrame<'_>,
        name: &str,
        layout: &'static Layout,
        field: &Field,
        at: u64,
    ) -> fmt::Result {
        let select = frame.layout.fixups.iter().find_map(|fixup| match fixup {
            Fixup::Select { union, selector, cases } if union.at == field.at => Some((selector, cases)),
            _ => None,
        });
        let member = select.and_then(|(selector, cases)| {
            let value = self.memory.read_field(frame.base, *selector)? as i32;
            let case = cases.iter().find(|it| it.values.contains(&i64::from(value)))?;
            layout.fields.get(case.field as usize)
        });
        match member {
            Some(member) => self.field(frame, &format!("{name}.{}", member.name), member, at),
            None => {
                let words = (0..u64::from(layout.size) / 4).filter_map(|it| self.memory.u32(at + it * 4));
                let text: Vec<String> = words.map(|it| format!("{it:#010x}")).collect();
                self.line(name, text.join(" "))
            }
        }
    }

    fn chain(&mut self, frame: &StructFrame<'_>, at: u64) -> fmt::Result {
        let mut slot = at;
        for _ in 0..CHAIN_MAX {
            let Some(base) = self.memory.follow(slot) else { return Ok(()) };
            let s_type = self.memory.u32(base).unwrap_or(0) as i32;
            match structure_by_type(s_type) {
                Some(layout) => self.nested("pNext", layout.name, |printer| {
                    let inner = frame.child(layout, base, 0);
                    layout
                        .fields
                        .iter()
                        .filter(|field| !matches!(field.ty, Ty::Chain))
                        .try_for_each(|field| printer.member(&inner, field))
                })?,
                None => self.line("pNext", format_args!("unknown structure of type {s_type}, skipped"))?,
            }
            slot = base + 8;
        }
        Ok(())
    }

    fn pointer(
        &mut self,
        frame: &StructFrame<'_>,
        name: &str,
        pointer: &Pointer,
        at: u64,
        element: u64,
    ) -> fmt::Result {
        let slot = self.memory.read(at, 8).unwrap_or(0);
        let word = match slot {
            0 => Some("null"),
            _ if slot == Ptr::<u8>::EMPTY.0 => Some("[]"),
            _ if slot == Ptr::<u8>::PRESENT.0 => Some("present"),
            _ => None,
        };
        if let Some(word) = word {
            return self.line(name, word);
        }
        match &pointer.to {
            Pointee::Text => {
                let end = self.memory.body.len().saturating_sub(slot as usize);
                self.line(name, Quoted(self.text_at(slot, end)))
            }
            Pointee::Blob(_) => {
                self.line(name, format_args!("blob of {} bytes", self.memory.read(slot, 8).unwrap_or(0)))
            }
            Pointee::Template => self.template(name, slot),
            Pointee::AnyStruct => self.nested(name, "structure", |it| it.chain(frame, at)),
            target => {
                let count = rules::count(&self.memory, frame, pointer.len, element).unwrap_or(0);
                self.elements(frame, name, target, slot, count)
            }
        }
    }

    fn elements(
        &mut self,
        frame: &StructFrame<'_>,
        name: &str,
        target: &Pointee,
        first: u64,
        count: u64,
    ) -> fmt::Result {
        let size = crate::check::target_size(target);
        let place = (frame.layout.name, name);
        if let Pointee::Values(Ty::U8) = target {
            return self.line(name, format_args!("{count} bytes"));
        }
        for index in 0..count {
            let at = first + index * size;
            let name = if count == 1 { name.to_owned() } else { format!("{name}[{index}]") };
            match target {
                Pointee::Struct(layout) => {
                    self.nested(&name, layout.name, |it| it.structure(&frame.child(layout, at, index)))?;
                }
                Pointee::Handle(_) => {
                    let value = self.scalar(&Ty::TypedHandle, at);
                    self.line(&name, value)?;
                }
                Pointee::Pointer(inner) => self.pointer(frame, &name, inner, at, index)?,
                Pointee::Values(ty) => {
                    let value = self.value(place, ty, at);
                    self.line(&name, value)?;
                }
                Pointee::Opaque | Pointee::Text | Pointee::Blob(_) | Pointee::Template | Pointee::AnyStruct => {
                    let value = self.scalar(&Ty::Opaque, at);
                    self.line(&name, value)?;
                }
            }
        }
        Ok(())
    }

    fn template(&mut self, name: &str, at: u64) -> fmt::Result {
        let count = self.memory.read(at, 8).unwrap_or(0);
        self.nested(name, "template data", |printer| {
            (0..count).try_for_each(|index| {
                let base = at + 8 + index * template::ENTRY_SIZE;
                let words = [0, 8, 16, 24].map(|word| printer.memory.read(base + word, 8).unwrap_or(0));
                let entry = template::entry_from(words);
                let ty = enum_text(&DESCRIPTOR_TYPE_ENUM, entry.descriptor_type.0.into());
                printer.line(
                    &format!("binding {}[{}]", entry.dst_binding, entry.dst_array_element),
                    format_args!("{} of type {ty}", entry.descriptor_count),
                )
            })
        })
    }

    /// A value of a member of a structure, by its name if it has one.
    fn value(&self, (structure, member): (&str, &str), ty: &Ty, at: u64) -> String {
        let bits = self.memory.read(at, ty.size() as u8).unwrap_or(0);
        special_text(structure, member, ty, bits).unwrap_or_else(|| self.scalar(ty, at))
    }

    fn scalar(&self, ty: &Ty, at: u64) -> String {
        let read = |width| self.memory.read(at, width).unwrap_or(0);
        match ty {
            Ty::U8 | Ty::Char => read(1).to_string(),
            Ty::I8 => (read(1) as i8).to_string(),
            Ty::U16 => read(2).to_string(),
            Ty::I16 => (read(2) as i16).to_string(),
            Ty::U32 => read(4).to_string(),
            Ty::I32 => (read(4) as i32).to_string(),
            Ty::U64 | Ty::Size => read(8).to_string(),
            Ty::I64 => (read(8) as i64).to_string(),
            Ty::F32 => format!("{:?}", f32::from_bits(read(4) as u32)),
            Ty::F64 => format!("{:?}", f64::from_bits(read(8))),
            Ty::Bool32 => match read(4) {
                0 => "VK_FALSE".to_owned(),
                1 => "VK_TRUE".to_owned(),
                other => other.to_string(),
            },
            Ty::DeviceAddress => format!("{:#x}", read(8)),
            Ty::Enum(desc) => enum_text(desc, i64::from(read(4) as i32)),
            Ty::Flags(desc) => flags_text(desc, read(desc.width as u8)),
            Ty::Bits { shift, width } => (read(4) >> shift & ((1 << width) - 1)).to_string(),
            Ty::Handle(_) | Ty::TypedHandle => match ObjectId::from_raw(read(8)) {
                Some(id) => match self.names.name(id) {
                    Some(name) => format!("{id} {name:?}"),
                    None => id.to_string(),
                },
                None => format!("{:#x}", read(8)),
            },
            Ty::Opaque => (if read(8) == 0 { "null" } else { "present" }).to_owned(),
            Ty::Struct(_) | Ty::Chain | Ty::Pointer(_) => String::new(),
        }
    }

    fn bytes_at(&self, at: u64, size: usize) -> &[u8] {
        self.memory.body.get(at as usize..at as usize + size).unwrap_or_default()
    }

    fn text_at(&self, at: u64, size_max: usize) -> String {
        let bytes = self.bytes_at(at, size_max);
        let end = bytes.iter().position(|it| *it == 0).unwrap_or(bytes.len());
        String::from_utf8_lossy(&bytes[..end]).into_owned()
    }
}

/// A text in quotes, with its control characters escaped.
struct Quoted(String);

impl fmt::Display for Quoted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

/// Bytes of an identifier.
struct Hexadecimal(Vec<u8>);

impl fmt::Display for Hexadecimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|it| write!(f, "{it:02x}"))
    }
}

/// The name of an enum value, or its number.
pub fn enum_text(desc: &EnumDesc, value: i64) -> String {
    let at = desc.values.binary_search_by_key(&value, |it| it.0);
    at.map_or_else(|_| value.to_string(), |at| desc.values[at].1.to_owned())
}

/// The names of the bits that are set, and the rest as a number.
pub fn flags_text(desc: &EnumDesc, value: u64) -> String {
    if let Ok(at) = desc.values.binary_search_by_key(&(value as i64), |it| it.0) {
        return desc.values[at].1.to_owned();
    }
    let mut rest = value;
    let mut parts = Vec::new();
    for (bit, name) in desc.values.iter().filter(|it| (it.0 as u64).is_power_of_two()) {
        if value & *bit as u64 != 0 {
            parts.push((*name).to_owned());
            rest &= !(*bit as u64);
        }
    }
    if rest != 0 || parts.is_empty() {
        parts.push(if rest == 0 { "0".to_owned() } else { format!("{rest:#x}") });
    }
    parts.join(" | ")
}
