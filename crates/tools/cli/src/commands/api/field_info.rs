//! Describes a field of the tables: its C type, its length, its direction, and when it is read.

use serde::Serialize;

use lavascope_abi::desc::{
    Direction, EnumDesc, Field, Fixup, IntegerLocation, Layout, Len, Pointee, Pointer, ReadCondition, Ty,
};

use crate::commands::api::catalog::enum_of;

/// A field of a structure or a parameter of a command.
#[derive(Serialize)]
pub(crate) struct FieldInfo {
    pub(crate) name: &'static str,
    pub(crate) offset: u32,
    #[serde(rename = "type")]
    pub(crate) ty: String,
    pub(crate) is_optional: bool,
    pub(crate) is_externally_synchronized: bool,
    /// The number of elements that a pointer points to. None for one element.
    pub(crate) length: Option<String>,
    /// Whether the application or the driver writes the data that a pointer points to.
    pub(crate) direction: Option<&'static str>,
    /// When the pointer is valid. None if it is always valid.
    pub(crate) read_when: Option<String>,
    /// All other properties.
    pub(crate) notes: Vec<String>,
}

impl FieldInfo {
    /// All properties except name, offset and type, in one table cell.
    pub(crate) fn remarks(&self) -> String {
        let mut parts: Vec<String> = self.direction.iter().map(|it| (*it).to_owned()).collect();
        if self.is_optional {
            parts.push("optional".to_owned());
        }
        if self.is_externally_synchronized {
            parts.push("externally synchronized".to_owned());
        }
        parts.extend(self.length.iter().map(|it| format!("length {it}")));
        parts.extend(self.read_when.iter().map(|it| format!("read {it}")));
        parts.extend(self.notes.iter().cloned());
        parts.join(", ")
    }
}

pub(crate) fn fields(layout: &Layout) -> Vec<FieldInfo> {
    layout.fields.iter().map(|it| field(layout, it)).collect()
}

fn field(layout: &Layout, field: &Field) -> FieldInfo {
    let pointer = match field.ty {
        Ty::Pointer(pointer) => Some(pointer),
        _ => None,
    };
    FieldInfo {
        name: field.name,
        offset: field.at,
        ty: field_type(field),
        is_optional: field.is_optional,
        is_externally_synchronized: field.is_extern_sync,
        length: pointer.and_then(|it| length(layout, it)),
        direction: pointer.map(|pointer_item| match pointer_item.direction {
            Direction::In => "in",
            Direction::Out => "out",
            Direction::Returned => "returned",
        }),
        read_when: pointer.and_then(|it| read_when(layout, &it.read)),
        notes: notes(layout, field),
    }
}

/// The C type, with the length of a fixed array.
pub(crate) fn field_type(field: &Field) -> String {
    if field.count == 1 { ty(&field.ty) } else { format!("{}[{}]", ty(&field.ty), field.count) }
}

fn ty(ty: &Ty) -> String {
    let name = match ty {
        Ty::U8 => "uint8_t",
        Ty::I8 => "int8_t",
        Ty::U16 => "uint16_t",
        Ty::I16 => "int16_t",
        Ty::U32 => "uint32_t",
        Ty::I32 => "int32_t",
        Ty::U64 => "uint64_t",
        Ty::I64 => "int64_t",
        Ty::F32 => "float",
        Ty::F64 => "double",
        Ty::Bool32 => "VkBool32",
        Ty::Char => "char",
        Ty::Size => "size_t",
        Ty::DeviceAddress => "VkDeviceAddress",
        Ty::Enum(desc) => desc.name,
        Ty::Flags(desc) => return desc.name.replace("FlagBits", "Flags"),
        Ty::Bits { width, .. } => return format!("uint32_t:{width}"),
        Ty::Handle(handle) => handle.name(),
        Ty::TypedHandle => "uint64_t (handle)",
        Ty::Struct(layout) => layout.name,
        Ty::Chain => "pNext chain",
        Ty::Pointer(pointer) => return pointer_type(pointer),
        Ty::Opaque => "void* (never followed)",
    };
    name.to_owned()
}

fn pointer_type(pointer: &Pointer) -> String {
    let constant = if pointer.direction == Direction::Out { "" } else { "const " };
    match &pointer.to {
        // The tables do not distinguish untyped data from byte arrays.
        Pointee::Values(Ty::U8) => format!("{constant}byte*"),
        Pointee::Values(values) => format!("{constant}{}*", ty(values)),
        Pointee::Struct(layout) => format!("{constant}{}*", layout.name),
        Pointee::Handle(handle) => format!("{constant}{}*", handle.name()),
        Pointee::Text => format!("{constant}char*"),
        Pointee::Pointer(inner) => format!("{}*", pointer_type(inner)),
        Pointee::AnyStruct | Pointee::Opaque | Pointee::Blob(_) | Pointee::Template => format!("{constant}void*"),
    }
}

fn length(layout: &Layout, pointer: &Pointer) -> Option<String> {
    let own = one_length(layout, pointer.len);
    match &pointer.to {
        Pointee::Pointer(inner) => {
            let each = one_length(layout, inner.len).map(|it| format!("each {it}"));
            Some([own, each].into_iter().flatten().collect::<Vec<_>>().join(", ")).filter(|it| !it.is_empty())
        }
        // The tables do not contain these lengths. The notes explain them.
        Pointee::Blob(_) | Pointee::Template => None,
        _ => own,
    }
}

fn one_length(layout: &Layout, len: Len) -> Option<String> {
    match len {
        Len::Fixed(1) => None,
        Len::Fixed(count) => Some(count.to_string()),
        Len::At(place) => Some(place_name(layout, place)),
        Len::Scaled { of, add, divide } => {
            let name = place_name(layout, of);
            let sum = if add == 0 { name } else { format!("({name} + {add})") };
            Some(if divide == 1 { sum } else { format!("{sum} / {divide}") })
        }
        Len::Terminated => Some("up to a zero".to_owned()),
        Len::Rule(rule) => Some(format!("by rule: {}", camel_case_to_words(&format!("{rule:?}")))),
    }
}

fn read_when(layout: &Layout, read: &ReadCondition) -> Option<String> {
    match read {
        ReadCondition::Always => None,
        ReadCondition::Is(place, values) => {
            let names: Vec<String> = values.iter().map(|it| value_name(layout, *place, *it)).collect();
            Some(format!("when {} is {}", place_name(layout, *place), names.join(" or ")))
        }
        ReadCondition::Has(place, bits) => {
            Some(format!("when {} has {}", place_name(layout, *place), bit_names(layout, *place, *bits)))
        }
        ReadCondition::Lacks(place, bits) => {
            Some(format!("when {} lacks {}", place_name(layout, *place), bit_names(layout, *place, *bits)))
        }
        ReadCondition::Rule(rule) => Some(format!("by rule: {}", camel_case_to_words(&format!("{rule:?}")))),
    }
}

fn notes(layout: &Layout, field: &Field) -> Vec<String> {
    let mut notes = Vec::new();
    match field.ty {
        Ty::Struct(inner) if inner.is_union => notes.extend(layout.fixups.iter().find_map(|fixup| match fixup {
            Fixup::Select { union, selector, .. } if union.at == field.at => {
                Some(format!("member chosen by {}", place_name(layout, *selector)))
            }
            _ => None,
        })),
        Ty::Pointer(pointer) => {
            notes.extend(match pointer.to {
                Pointee::AnyStruct => Some("a structure that begins with sType and pNext".to_owned()),
                Pointee::Opaque => Some("addresses, never followed".to_owned()),
                Pointee::Blob(blob) => {
                    Some(format!("size known elsewhere: {}", camel_case_to_words(&format!("{blob:?}"))))
                }
                Pointee::Template => Some("laid out by the descriptor update template".to_owned()),
                _ => None,
            });
            notes.extend(pointer.stride.map(|it| format!("stride {}", place_name(layout, it))));
        }
        _ => {}
    }
    notes
}

/// The name of the integer at a location: `count`, `info.count`, `*pCount` or `pInfo->count`.
pub(crate) fn place_name(layout: &Layout, place: IntegerLocation) -> String {
    if place.through == IntegerLocation::HERE {
        return name_at(layout, place.at);
    }
    let pointer = field_at(layout, place.through);
    match pointer.map(|it| (it.name, it.ty)) {
        Some((name, Ty::Pointer(Pointer { to: Pointee::Struct(inner), .. }))) => {
            format!("{name}->{}", name_at(inner, place.at))
        }
        Some((name, _)) => format!("*{name}"),
        None => format!("the value at byte {} behind byte {}", place.at, place.through),
    }
}

fn name_at(layout: &Layout, at: u32) -> String {
    match field_at(layout, at) {
        Some(field) => match field.ty {
            Ty::Struct(inner) if field.count == 1 => format!("{}.{}", field.name, name_at(inner, at - field.at)),
            _ => field.name.to_owned(),
        },
        None => format!("the value at byte {at}"),
    }
}

/// The last field that begins at or before an offset. If several begin together, as in a union, the
/// first of them.
pub(crate) fn field_at(layout: &Layout, at: u32) -> Option<&'static Field> {
    let begin = layout.fields.iter().map(|it| it.at).filter(|it| *it <= at).max()?;
    layout.fields.iter().find(|it| it.at == begin)
}

fn enum_at(layout: &Layout, place: IntegerLocation) -> Option<&'static EnumDesc> {
    if place.through != IntegerLocation::HERE {
        return match field_at(layout, place.through)?.ty {
            Ty::Pointer(Pointer { to: Pointee::Struct(inner), .. }) => {
                enum_at(inner, IntegerLocation { through: IntegerLocation::HERE, ..place })
            }
            _ => None,
        };
    }
    let field = field_at(layout, place.at)?;
    match field.ty {
        Ty::Struct(inner) => enum_at(inner, IntegerLocation { at: place.at - field.at, ..place }),
        _ => enum_of(&field.ty),
    }
}

fn value_name(layout: &Layout, place: IntegerLocation, value: i64) -> String {
    let named = enum_at(layout, place).and_then(|it| it.values.iter().find(|it| it.0 == value));
    named.map_or_else(|| value.to_string(), |it| it.1.to_owned())
}

fn bit_names(layout: &Layout, place: IntegerLocation, bits: u64) -> String {
    let single: Vec<u64> = (0..u64::BITS).map(|it| 1 << it).filter(|it| bits & it != 0).collect();
    let names: Vec<String> = single.iter().map(|it| value_name(layout, place, *it as i64)).collect();
    names.join(" or ")
}

/// Writes `DescriptorImages` as `descriptor images`.
pub(crate) fn camel_case_to_words(camel_case: &str) -> String {
    let mut out = String::new();
    for letter in camel_case.chars() {
        if letter.is_ascii_uppercase() && !out.is_empty() {
            out.push(' ');
        }
        out.push(letter.to_ascii_lowercase());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::api::catalog::all_layouts;

    /// Every entry of the tables must have a description. An offset instead of a name shows a gap
    /// in the tables or in this file.
    #[test]
    fn every_field_has_words() {
        for layout in all_layouts() {
            for field in fields(layout) {
                assert!(!field.ty.is_empty(), "{}.{}", layout.name, field.name);
                assert!(!field.remarks().contains("the value at byte"), "{}.{}", layout.name, field.name);
            }
        }
    }

    #[test]
    fn camel_case_becomes_words() {
        assert_eq!(camel_case_to_words("DescriptorImages"), "descriptor images");
        assert_eq!(camel_case_to_words(""), "");
    }
}
