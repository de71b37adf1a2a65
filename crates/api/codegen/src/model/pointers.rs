//! For each pointer of the registry: its target, its length, when it is read, and whether it is an input or an output.

use lavascope_registry as registry;

use crate::model::layouts::{FieldOwner, LayoutBuilder, ValueType};
use crate::model::overrides;
use crate::model::overrides::OverrideKind;
use crate::model::*;

/// The type of a pointer field.
pub(crate) fn pointer_type(
    layouts: &mut LayoutBuilder<'_>,
    owner: &FieldOwner<'_>,
    field: &registry::RegistryField,
) -> ValueType {
    let item = format!("{}.{}", owner.name.trim_end_matches(":outputs"), field.name);
    let how = overrides::find(&item);
    if field.name == "pNext" {
        return ValueType::new(8, "Ptr<Opaque>".to_owned(), Ty::Chain);
    }
    if matches!(how, Some(OverrideKind::Opaque)) || is_foreign(layouts, field) {
        return ValueType::new(8, "Ptr<Opaque>".to_owned(), Ty::Opaque);
    }
    let pointer = pointer(layouts, owner, field, how, 0);
    let rust_type = rust_type(layouts, &pointer);
    ValueType::new(8, rust_type, Ty::Pointer(Box::new(pointer)))
}

/// Pointers that only a platform or the application may dereference.
pub(crate) fn is_foreign(layouts: &LayoutBuilder<'_>, field: &registry::RegistryField) -> bool {
    let base = field.ty.base.as_str();
    let is_incomplete = layouts.registry.base_types.get(base).is_some_and(|it| it.to.is_none());
    let is_external_value = overrides::EXTERNAL_VALUES.iter().any(|it| it.0 == base);
    let is_external = layouts.registry.external_types.contains_key(base) && !is_external_value;
    let is_single = field.ty.pointers.len() == 1;
    base == "VkAllocationCallbacks" || is_single && (is_incomplete || is_external)
}

/// The pointer at `level`; the outermost has level zero.
fn pointer(
    layouts: &mut LayoutBuilder<'_>,
    owner: &FieldOwner<'_>,
    field: &registry::RegistryField,
    how: Option<OverrideKind>,
    level: usize,
) -> Pointer {
    let is_innermost = level + 1 == field.ty.pointers.len();
    let to = if is_innermost {
        target(layouts, owner, field, how, level)
    } else if is_untyped(layouts, field) {
        Pointee::Opaque
    } else {
        Pointee::Pointer(Box::new(pointer(layouts, owner, field, how, level + 1)))
    };
    let len = len(layouts, owner, field, how, level, is_innermost);
    let read = if level == 0 { read(layouts, owner, how) } else { ReadCondition::Always };
    let direction = direction(layouts, owner, field, how);
    let stride = field.stride.as_deref().and_then(|it| integer_location(layouts, owner, &[it.to_owned()]));
    let exclusive = layouts.is_exclusive(owner, field);
    Pointer { to, len, read, direction, stride, exclusive }
}

/// `void**` and pointers to incomplete types.
fn is_untyped(layouts: &LayoutBuilder<'_>, field: &registry::RegistryField) -> bool {
    let is_incomplete = layouts.registry.base_types.get(&field.ty.base).is_some_and(|it| it.to.is_none());
    let is_external = layouts.registry.external_types.contains_key(&field.ty.base);
    field.ty.base == "void" || is_incomplete || is_external
}

fn target(
    layouts: &mut LayoutBuilder<'_>,
    owner: &FieldOwner<'_>,
    field: &registry::RegistryField,
    how: Option<OverrideKind>,
    level: usize,
) -> Pointee {
    match how {
        Some(OverrideKind::Template) => return Pointee::Template,
        Some(OverrideKind::Blob(kind) | OverrideKind::OutputBlob(kind)) => return Pointee::Blob(kind),
        Some(OverrideKind::AnyStruct) => return Pointee::AnyStruct,
        _ => {}
    }
    let base = layouts.registry.resolve(&field.ty.base).to_owned();
    let has_len = !field.len.is_empty()
        || matches!(how, Some(OverrideKind::Len(_) | OverrideKind::LenRule(_) | OverrideKind::SettingValues));
    match base.as_str() {
        "void" if has_len => return Pointee::Values(1, "u8".to_owned(), Ty::Plain("U8")),
        "void" => {
            layouts.error(&format!("{}.{}", owner.name, field.name), "a void pointer without a length");
            return Pointee::Opaque;
        }
        "char" if field.len.get(level) == Some(&registry::Length::NullTerminated) => return Pointee::Text,
        _ => {}
    }
    let value = layouts.value(owner.name, &base);
    match value.ty {
        Ty::Struct(name) => Pointee::Struct(name),
        Ty::Handle(name) => Pointee::Handle(name),
        Ty::Opaque => Pointee::Opaque,
        _ => Pointee::Values(value.size, value.rust_type, value.ty),
    }
}

fn len(
    layouts: &mut LayoutBuilder<'_>,
    owner: &FieldOwner<'_>,
    field: &registry::RegistryField,
    how: Option<OverrideKind>,
    level: usize,
    is_innermost: bool,
) -> Len {
    match how {
        Some(OverrideKind::LenRule("GeometriesOfBuild")) if !is_innermost => {}
        Some(OverrideKind::LenRule(rule) | OverrideKind::LenRuleWhenFlag(rule, _)) => return Len::Rule(rule),
        Some(OverrideKind::Len(sibling)) => {
            return integer_location(layouts, owner, &[sibling.to_owned()]).map_or(Len::Fixed(1), Len::At);
        }
        Some(OverrideKind::When("ViewportDepths")) => {
            return integer_location(layouts, owner, &["viewportDepthCount".to_owned()]).map_or(Len::Fixed(1), Len::At);
        }
        _ => {}
    }
    if owner.is_command && !field.ty.array.is_empty() {
        return Len::Fixed(layouts.extent(owner, &field.ty.array[0]));
    }
    match field.len.get(level) {
        None => Len::Fixed(1),
        Some(registry::Length::Number(number)) => Len::Fixed(*number),
        Some(registry::Length::NullTerminated) => Len::Terminated,
        Some(registry::Length::Path(path)) => integer_location(layouts, owner, path).map_or(Len::Fixed(1), Len::At),
        Some(registry::Length::Expression(text)) => expression(layouts, owner, text),
    }
}

/// The three expressions that the registry uses: `a / b`, `(a + b) / c` and `2*CONSTANT`.
fn expression(layouts: &mut LayoutBuilder<'_>, owner: &FieldOwner<'_>, text: &str) -> Len {
    if let Some((factor, constant)) = text.split_once('*')
        && let Ok(factor) = factor.trim().parse::<u32>()
    {
        return Len::Fixed(factor * layouts.extent(owner, constant.trim()));
    }
    let Some((above, below)) = text.rsplit_once('/') else {
        layouts.error(owner.name, &format!("length `{text}` is not understood"));
        return Len::Fixed(1);
    };
    let above = above.trim().trim_matches(['(', ')']);
    let (name, add) = above.split_once('+').unwrap_or((above, "0"));
    let add = add.trim().parse().unwrap_or(0);
    let divide = below.trim().parse().unwrap_or(1);
    match integer_location(layouts, owner, &[name.trim().to_owned()]) {
        Some(of) => Len::Scaled { of, add, divide },
        None => Len::Fixed(1),
    }
}

/// The location of the integer that a path names, relative to the owner.
pub(crate) fn integer_location(
    layouts: &mut LayoutBuilder<'_>,
    owner: &FieldOwner<'_>,
    path: &[String],
) -> Option<IntegerLocation> {
    let Some(sibling) = owner.fields.iter().find(|it| it.name == path[0]) else {
        layouts.error(owner.name, &format!("length `{}` names no sibling", path.join("->")));
        return None;
    };
    let at = offset_of(layouts, owner, &path[0]);
    if !sibling.ty.is_pointer() {
        let value = layouts.value(owner.name, &sibling.ty.base);
        return Some(IntegerLocation { through: None, at, width: value.size });
    }
    if let Some(member) = path.get(1) {
        let inner = layouts.structure(&sibling.ty.base);
        let field = inner.fields.iter().find(|it| &it.c_name == member)?;
        return Some(IntegerLocation { through: Some(at), at: field.at, width: field.size });
    }
    let value = layouts.value(owner.name, &sibling.ty.base);
    Some(IntegerLocation { through: Some(at), at: 0, width: value.size })
}

/// The offset of a field, from the sizes of the fields before it. A pointer may come before its length.
fn offset_of(layouts: &mut LayoutBuilder<'_>, owner: &FieldOwner<'_>, name: &str) -> u32 {
    if owner.is_union {
        return 0;
    }
    let mut end = 0_u32;
    for field in owner.fields {
        let (size, align) = if field.ty.is_pointer() {
            (8, 8)
        } else {
            let value = layouts.value(owner.name, &field.ty.base);
            let count: u32 = field.ty.array.iter().map(|it| layouts.extent(owner, it)).product();
            (value.size * count, value.align)
        };
        let at = end.next_multiple_of(align);
        if field.name == name {
            return at;
        }
        end = at + size;
    }
    layouts.error(owner.name, &format!("has no field `{name}`"));
    0
}

fn read(layouts: &mut LayoutBuilder<'_>, owner: &FieldOwner<'_>, how: Option<OverrideKind>) -> ReadCondition {
    let (sibling, values): (&str, &[&str]) = match how {
        Some(OverrideKind::When(rule)) => return ReadCondition::Rule(rule),
        Some(OverrideKind::WhenFlag(flags)) => return when_flag(layouts, owner, flags),
        Some(OverrideKind::LenRuleWhenFlag(_, flag)) => return when_flag(layouts, owner, &[flag]),
        Some(OverrideKind::WhenIs(sibling, values)) => (sibling, values),
        Some(OverrideKind::WhenHas(sibling, bit)) | Some(OverrideKind::WhenLacks(sibling, bit)) => {
            (sibling, &[bit][..])
        }
        _ => return ReadCondition::Always,
    };
    let values: Vec<String> = values.iter().map(|it| (*it).to_owned()).collect();
    let Some(place) = integer_location(layouts, owner, &[sibling.to_owned()]) else { return ReadCondition::Always };
    let numbers: Vec<i64> = values.iter().filter_map(|it| any_enum_value(layouts, it)).collect();
    match how {
        Some(OverrideKind::WhenHas(..)) => ReadCondition::Has(place, numbers[0] as u64),
        Some(OverrideKind::WhenLacks(..)) => ReadCondition::Lacks(place, numbers[0] as u64),
        _ => ReadCondition::Is(place, numbers),
    }
}

/// The bits of a `flags` structure, which share a word.
fn when_flag(layouts: &mut LayoutBuilder<'_>, owner: &FieldOwner<'_>, flags: &[&str]) -> ReadCondition {
    let at = offset_of(layouts, owner, "flags");
    let sibling = owner.fields.iter().find(|it| it.name == "flags").map(|it| it.ty.base.clone());
    let inner = layouts.structure(&sibling.unwrap_or_default());
    let (mut word, mut mask) = (None, 0_u64);
    for flag in flags {
        match inner.fields.iter().find(|it| it.c_name == *flag).map(|it| (it.at, &it.ty)) {
            Some((at, Ty::Bits { shift, width: 1 })) if word.is_none_or(|it| it == at) => {
                word = Some(at);
                mask |= 1 << shift;
            }
            _ => layouts.error(owner.name, &format!("`{flag}` is not a bit beside the others")),
        }
    }
    ReadCondition::Has(IntegerLocation { through: None, at: at + word.unwrap_or(0), width: 4 }, mask)
}

fn any_enum_value(layouts: &mut LayoutBuilder<'_>, name: &str) -> Option<i64> {
    let values = layouts.registry.enums.values().flat_map(|it| &it.values);
    let found = values.into_iter().find(|it| it.name == name).map(|it| it.value);
    if found.is_none() {
        layouts.error(name, "is no value of any enum");
    }
    found
}

/// Parameters that are not const are outputs, except counts, which are inputs and outputs. For members of structures
/// the registry does not state the direction, so the overrides state it for each.
fn direction(
    layouts: &mut LayoutBuilder<'_>,
    owner: &FieldOwner<'_>,
    field: &registry::RegistryField,
    how: Option<OverrideKind>,
) -> Direction {
    let is_const = field.ty.pointers.iter().any(|it| *it);
    if owner.is_command {
        let is_input = is_const || is_count(owner, field);
        return if is_input { Direction::In } else { Direction::Out };
    }
    match how {
        Some(OverrideKind::Output | OverrideKind::OutputBlob(_)) => Direction::Out,
        Some(OverrideKind::Input) => Direction::In,
        // The driver fills memory of the application, or returns a pointer to constants.
        _ if owner.returned_only && is_const => Direction::Returned,
        _ if owner.returned_only => Direction::Out,
        _ if is_const => Direction::In,
        Some(OverrideKind::WhenHas(..)) => Direction::In,
        _ => {
            let base = layouts.registry.resolve(&field.ty.base).to_owned();
            let item = format!("{}.{}", owner.name, field.name);
            layouts.error(&item, &format!("a pointer to non-const `{base}`: input or output?"));
            Direction::In
        }
    }
}

/// Whether another parameter uses this integer as its length.
pub(crate) fn is_count(owner: &FieldOwner<'_>, field: &registry::RegistryField) -> bool {
    owner.fields.iter().any(|registry_field| {
        registry_field
            .len
            .iter()
            .any(|len| matches!(len, registry::Length::Path(path) if path.len() == 1 && path[0] == field.name))
    })
}

fn rust_type(layouts: &mut LayoutBuilder<'_>, pointer: &Pointer) -> String {
    let inner = match &pointer.to {
        Pointee::Values(_, rust, _) => rust.clone(),
        Pointee::Struct(name) | Pointee::Handle(name) => crate::model::names::type_name(layouts.registry.resolve(name)),
        Pointee::Text => "u8".to_owned(),
        Pointee::AnyStruct | Pointee::Opaque | Pointee::Blob(_) | Pointee::Template => "Opaque".to_owned(),
        Pointee::Pointer(inner) => rust_type(layouts, inner),
    };
    format!("Ptr<{inner}>")
}
