//! Prints the model as constants of `abi::desc`.

use crate::emit::text::{array, block};
use crate::model::names;
use crate::model::*;

/// `static X_LAYOUT: Layout`, and the method of the type that returns it.
pub(crate) fn layout(layout: &Layout) -> String {
    let s_type = match layout.s_type {
        Some(value) => value.to_string(),
        None => "Layout::NO_S_TYPE".to_owned(),
    };
    let fields = block(layout.fields.iter().map(field), 8);
    let work = block(layout.fixups.iter().map(fixup), 8);
    format!(
        "pub static {}: Layout = Layout {{\n    name: \"{}\",\n    size: {},\n    align: {},\n    s_type_raw: {s_type},\n    \
         is_union: {},\n    returned_only: {},\n    fields: {fields},\n    fixups: {work},\n    gaps: &{},\n    keep: &{},\n}};",
        layout.static_name(),
        layout.c_name,
        layout.size,
        layout.align,
        layout.is_union,
        layout.returned_only,
        spans(&layout.gaps),
        spans(&layout.keep),
    )
}

/// Literals, not calls: they halve the compile time.
fn field(field: &Field) -> String {
    format!(
        "Field {{ name: \"{}\", at: {}, ty: {}, count: {}, is_optional: {}, is_extern_sync: {} }}",
        field.c_name,
        field.at,
        ty(&field.ty),
        field.count,
        field.optional,
        field.extern_sync,
    )
}

fn ty(ty: &Ty) -> String {
    match ty {
        Ty::Plain(name) => format!("Ty::{name}"),
        Ty::Enum(name) => format!("Ty::Enum(&{})", enum_static(name)),
        Ty::Flags(name) => format!("Ty::Flags(&{})", enum_static(name)),
        Ty::Bits { shift, width } => format!("Ty::Bits {{ shift: {shift}, width: {width} }}"),
        Ty::Handle(name) => format!("Ty::Handle({})", handle(name)),
        Ty::TypedHandle => "Ty::TypedHandle".to_owned(),
        Ty::Struct(name) => format!("Ty::Struct(&{})", layout_static(name)),
        Ty::Chain => "Ty::Chain".to_owned(),
        Ty::Pointer(item) => format!("Ty::Pointer(&{})", pointer(item)),
        Ty::Opaque => "Ty::Opaque".to_owned(),
    }
}

pub(crate) fn enum_static(c_name: &str) -> String {
    format!("{}_ENUM", names::screaming_snake_case(&names::type_name(c_name)))
}

fn layout_static(c_name: &str) -> String {
    format!("{}_LAYOUT", names::screaming_snake_case(&names::type_name(c_name)))
}

fn handle(c_name: &str) -> String {
    format!("HandleType::{}", names::type_name(c_name))
}

fn spans(spans: &[Span]) -> String {
    array(spans, span)
}

fn span(item: &Span) -> String {
    format!("Span {{ at: {}, size: {} }}", item.at, item.size)
}

fn integer_location(place: &IntegerLocation) -> String {
    match place.through {
        None => {
            format!("IntegerLocation {{ through: IntegerLocation::HERE, at: {}, width: {} }}", place.at, place.width)
        }
        Some(through) => format!("IntegerLocation {{ through: {through}, at: {}, width: {} }}", place.at, place.width),
    }
}

pub(crate) fn integer_location_text(location: &IntegerLocation) -> String {
    integer_location(location)
}

fn fixup(work: &Fixup) -> String {
    match work {
        Fixup::Chain { at } => format!("Fixup::Chain {{ at: {at} }}"),
        Fixup::Handles { at, count, ty, exclusive } => {
            let access = access(*exclusive);
            format!("Fixup::Handles {{ at: {at}, count: {count}, ty: {}, access: {access} }}", handle(ty))
        }
        Fixup::TypedHandle { at, ty, is_report, exclusive } => {
            let access = access(*exclusive);
            let numbering = if *is_report { "DebugReport" } else { "ObjectType" };
            format!(
                "Fixup::TypedHandle {{ at: {at}, ty: {}, numbering: ObjectNumbering::{numbering}, access: {access} }}",
                integer_location(ty)
            )
        }
        Fixup::Pointer { at, pointer: item } => format!("Fixup::Pointer {{ at: {at}, pointer: &{} }}", pointer(item)),
        Fixup::Opaque { at } => format!("Fixup::Opaque {{ at: {at} }}"),
        Fixup::Text { at, size } => format!("Fixup::Text {{ at: {at}, size: {size} }}"),
        Fixup::Tail { array, element, count } => {
            format!("Fixup::Tail {{ array: {}, element: {element}, count: {} }}", span(array), integer_location(count))
        }
        Fixup::DeviceOrHost { at } => format!("Fixup::DeviceOrHost {{ at: {at} }}"),
        Fixup::Select { union, selector, cases } => format!(
            "Fixup::Select {{ union: {}, selector: {}, cases: {} }}",
            span(union),
            integer_location(selector),
            block(cases.iter().map(case), 12),
        ),
    }
}

fn case(case: &Case) -> String {
    format!(
        "Case {{ values: &{}, field: {}, size: {}, fixups: &{}, gaps: &{} }}",
        numbers(&case.values),
        case.field,
        case.size,
        array(&case.fixups, fixup),
        spans(&case.gaps),
    )
}

fn numbers(values: &[i64]) -> String {
    array(values, i64::to_string)
}

fn pointer(item: &Pointer) -> String {
    let direction = match item.direction {
        Direction::In => "In",
        Direction::Out => "Out",
        Direction::Returned => "Returned",
    };
    let stride = item.stride.as_ref().map_or("None".to_owned(), |it| format!("Some({})", integer_location(it)));
    format!(
        "Pointer {{ to: {}, len: {}, read: {}, direction: Direction::{direction}, stride: {stride}, access: {} }}",
        target(&item.to),
        len(&item.len),
        read(&item.read),
        access(item.exclusive),
    )
}

pub(crate) fn access(exclusive: bool) -> &'static str {
    if exclusive { "HandleAccess::Exclusive" } else { "HandleAccess::Shared" }
}

fn target(target: &Pointee) -> String {
    match target {
        Pointee::Values(_, _, values) => format!("Pointee::Values({})", ty(values)),
        Pointee::Struct(name) => format!("Pointee::Struct(&{})", layout_static(name)),
        Pointee::AnyStruct => "Pointee::AnyStruct".to_owned(),
        Pointee::Handle(name) => format!("Pointee::Handle({})", handle(name)),
        Pointee::Text => "Pointee::Text".to_owned(),
        Pointee::Pointer(inner) => format!("Pointee::Pointer(&{})", pointer(inner)),
        Pointee::Opaque => "Pointee::Opaque".to_owned(),
        Pointee::Blob(kind) => format!("Pointee::Blob(Blob::{kind})"),
        Pointee::Template => "Pointee::Template".to_owned(),
    }
}

fn len(len: &Len) -> String {
    match len {
        Len::Fixed(count) => format!("Len::Fixed({count})"),
        Len::At(at) => format!("Len::At({})", integer_location(at)),
        Len::Scaled { of, add, divide } => {
            format!("Len::Scaled {{ of: {}, add: {add}, divide: {divide} }}", integer_location(of))
        }
        Len::Terminated => "Len::Terminated".to_owned(),
        Len::Rule(rule) => format!("Len::Rule(LenRule::{rule})"),
    }
}

fn read(read: &ReadCondition) -> String {
    match read {
        ReadCondition::Always => "ReadCondition::Always".to_owned(),
        ReadCondition::Is(is, values) => format!("ReadCondition::Is({}, &{})", integer_location(is), numbers(values)),
        ReadCondition::Has(has, bits) => format!("ReadCondition::Has({}, {bits})", integer_location(has)),
        ReadCondition::Lacks(lacks, bits) => format!("ReadCondition::Lacks({}, {bits})", integer_location(lacks)),
        ReadCondition::Rule(rule) => format!("ReadCondition::Rule(ReadRule::{rule})"),
    }
}
