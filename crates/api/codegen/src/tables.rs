//! The model printed as the constants of `abi::desc`.

use crate::model::*;
use crate::names;
use crate::text::{array, block};

/// `static X_LAYOUT: Layout`, and the link from the type to it.
pub(crate) fn layout(layout: &Layout) -> String {
    let s_type = match layout.s_type {
        Some(value) => value.to_string(),
        None => "Layout::NO_S_TYPE".to_owned(),
    };
    let fields = block(layout.fields.iter().map(field), 8);
    let work = block(layout.work.iter().map(work), 8);
    format!(
        "pub static {}: Layout = Layout {{\n    name: \"{}\",\n    size: {},\n    align: {},\n    s_type_raw: {s_type},\n    \
         is_union: {},\n    returned_only: {},\n    fields: {fields},\n    work: {work},\n    gaps: &{},\n    keep: &{},\n}};",
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

/// Literals, not calls: the compiler takes half the time for them.
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
        Ty::Pointer(it) => format!("Ty::Pointer(&{})", pointer(it)),
        Ty::Opaque => "Ty::Opaque".to_owned(),
    }
}

pub(crate) fn enum_static(c_name: &str) -> String {
    format!("{}_ENUM", names::screaming(&names::type_name(c_name)))
}

fn layout_static(c_name: &str) -> String {
    format!("{}_LAYOUT", names::screaming(&names::type_name(c_name)))
}

fn handle(c_name: &str) -> String {
    format!("HandleType::{}", names::type_name(c_name))
}

fn spans(spans: &[Span]) -> String {
    array(spans, span)
}

fn span(it: &Span) -> String {
    format!("Span {{ at: {}, size: {} }}", it.at, it.size)
}

fn place(place: &Place) -> String {
    match place.through {
        None => format!("Place {{ through: Place::HERE, at: {}, width: {} }}", place.at, place.width),
        Some(through) => format!("Place {{ through: {through}, at: {}, width: {} }}", place.at, place.width),
    }
}

pub(crate) fn place_text(it: &Place) -> String {
    place(it)
}

fn work(work: &Work) -> String {
    match work {
        Work::Chain { at } => format!("Work::Chain {{ at: {at} }}"),
        Work::Handles { at, count, ty, exclusive } => {
            let access = access(*exclusive);
            format!("Work::Handles {{ at: {at}, count: {count}, ty: {}, access: {access} }}", handle(ty))
        }
        Work::TypedHandle { at, ty, is_report, exclusive } => {
            let access = access(*exclusive);
            let numbering = if *is_report { "DebugReport" } else { "ObjectType" };
            format!(
                "Work::TypedHandle {{ at: {at}, ty: {}, numbering: ObjectNumbering::{numbering}, access: {access} }}",
                place(ty)
            )
        }
        Work::Pointer { at, pointer: it } => format!("Work::Pointer {{ at: {at}, pointer: &{} }}", pointer(it)),
        Work::Opaque { at } => format!("Work::Opaque {{ at: {at} }}"),
        Work::Text { at, size } => format!("Work::Text {{ at: {at}, size: {size} }}"),
        Work::Tail { array, element, count } => {
            format!("Work::Tail {{ array: {}, element: {element}, count: {} }}", span(array), place(count))
        }
        Work::DeviceOrHost { at } => format!("Work::DeviceOrHost {{ at: {at} }}"),
        Work::Select { union, selector, cases } => format!(
            "Work::Select {{ union: {}, selector: {}, cases: {} }}",
            span(union),
            place(selector),
            block(cases.iter().map(case), 12),
        ),
    }
}

fn case(case: &Case) -> String {
    format!(
        "Case {{ values: &{}, field: {}, size: {}, work: &{}, gaps: &{} }}",
        numbers(&case.values),
        case.field,
        case.size,
        array(&case.work, work),
        spans(&case.gaps),
    )
}

fn numbers(values: &[i64]) -> String {
    array(values, i64::to_string)
}

fn pointer(it: &Pointer) -> String {
    let direction = match it.direction {
        Direction::In => "In",
        Direction::Out => "Out",
        Direction::Returned => "Returned",
    };
    let stride = it.stride.as_ref().map_or("None".to_owned(), |it| format!("Some({})", place(it)));
    format!(
        "Pointer {{ to: {}, len: {}, read: {}, direction: Direction::{direction}, stride: {stride}, access: {} }}",
        target(&it.to),
        len(&it.len),
        read(&it.read),
        access(it.exclusive),
    )
}

pub(crate) fn access(exclusive: bool) -> &'static str {
    if exclusive { "Access::Exclusive" } else { "Access::Shared" }
}

fn target(target: &Target) -> String {
    match target {
        Target::Values(_, _, it) => format!("Target::Values({})", ty(it)),
        Target::Struct(name) => format!("Target::Struct(&{})", layout_static(name)),
        Target::AnyStruct => "Target::AnyStruct".to_owned(),
        Target::Handle(name) => format!("Target::Handle({})", handle(name)),
        Target::Text => "Target::Text".to_owned(),
        Target::Pointer(inner) => format!("Target::Pointer(&{})", pointer(inner)),
        Target::Opaque => "Target::Opaque".to_owned(),
        Target::Blob(kind) => format!("Target::Blob(Blob::{kind})"),
        Target::Template => "Target::Template".to_owned(),
    }
}

fn len(len: &Len) -> String {
    match len {
        Len::Fixed(count) => format!("Len::Fixed({count})"),
        Len::At(it) => format!("Len::At({})", place(it)),
        Len::Scaled { of, add, divide } => {
            format!("Len::Scaled {{ of: {}, add: {add}, divide: {divide} }}", place(of))
        }
        Len::Terminated => "Len::Terminated".to_owned(),
        Len::Rule(rule) => format!("Len::Rule(LenRule::{rule})"),
    }
}

fn read(read: &Read) -> String {
    match read {
        Read::Always => "Read::Always".to_owned(),
        Read::Is(it, values) => format!("Read::Is({}, &{})", place(it), numbers(values)),
        Read::Has(it, bits) => format!("Read::Has({}, {bits})", place(it)),
        Read::Lacks(it, bits) => format!("Read::Lacks({}, {bits})", place(it)),
        Read::Rule(rule) => format!("Read::Rule(ReadRule::{rule})"),
    }
}
