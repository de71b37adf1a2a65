//! Emits `record`: the enums of all calls, and an accessor for every pointer.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;

use lavascope_registry::Registry;

use crate::Files;
use crate::emit::text::SourceText;
use crate::model::names;
use crate::model::*;

pub(crate) fn emit(registry: &Registry, model: &Model, files: &mut Files) {
    let mut parts: Vec<String> = Vec::new();
    let mut bodies: BTreeMap<&str, String> = BTreeMap::new();
    let home = |name: &str| registry.introduced_by(name).map_or("", |it| it.name.as_str());
    for layout in model.layouts.values() {
        emit_accessors(layout, bodies.entry(home(&layout.c_name)).or_default());
    }
    for command in model.commands.values() {
        let body = bodies.entry(home(&command.c_name)).or_default();
        emit_accessors(&command.parameters, body);
        if let Some(outputs) = &command.outputs {
            emit_accessors(&outputs.layout, body);
        }
    }
    for (block, body) in bodies.into_iter().filter(|it| !it.1.is_empty()) {
        let mut text = SourceText::rust_part("record", "record");
        text.line(format!("// Pointers of {block}."));
        let module = names::block_module(block);
        files.insert(path(&module), text.finish() + &body);
        parts.push(module);
    }
    emit_calls(model, files);
    parts.push("calls".to_owned());
    parts.sort();
    let mut text = SourceText::rust("record", "record");
    text.blank();
    text.line("use std::ffi::CStr;");
    text.blank();
    text.line("use lavascope_abi::*;");
    text.blank();
    text.line("use crate::encoding::{RecordPhase, Record};");
    text.line("use crate::view::{View, Views};");
    text.blank();
    for part in &parts {
        text.line(format!("include!(\"{part}.rs\");"));
    }
    files.insert(path("mod"), text.finish());
}

fn path(module: &str) -> PathBuf {
    PathBuf::from(format!("crates/record/record/src/generated/{module}.rs"))
}

/// One method for each pointer, with the name of the field.
fn emit_accessors(layout: &Layout, out: &mut String) {
    let mut body = String::new();
    for field in &layout.fields {
        match &field.ty {
            Ty::Pointer(pointer) => emit_pointer(layout, field, pointer, &mut body),
            Ty::Struct(_) if field.count == 1 && !layout.is_union && has_pointer_inside(layout, field) => {
                let _ = writeln!(
                    body,
                    "    pub fn {0}(self) -> View<'a, {1}> {{ self.inner(&self.get().{0}) }}",
                    field.rust_name, field.rust_type
                );
            }
            _ => {}
        }
    }
    if !body.is_empty() {
        let _ = writeln!(out, "\nimpl<'a> View<'a, {}> {{\n{body}}}", layout.rust_name);
    }
}

/// Whether an inline structure contains a pointer.
fn has_pointer_inside(layout: &Layout, field: &Field) -> bool {
    layout
        .fixups
        .iter()
        .any(|it| have_references(std::slice::from_ref(it)) && it.at() >= field.at && it.at() < field.at + field.size)
}

fn emit_pointer(layout: &Layout, field: &Field, pointer: &Pointer, out: &mut String) {
    let name = &field.rust_name;
    let this = if layout.is_union { format!("*self.get().{name}()") } else { format!("self.get().{name}") };
    let is_single = pointer.len == Len::Fixed(1);
    let Some(count) = count(layout, pointer) else { return };
    let line = match &pointer.to {
        Pointee::Values(_, rust, _) | Pointee::Handle(rust) if is_single => {
            let rust = names::type_name(rust);
            format!("pub fn {name}(self) -> Option<&'a {rust}> {{ self.value({this}) }}")
        }
        Pointee::Values(_, rust, _) | Pointee::Handle(rust) => {
            let rust = names::type_name(rust);
            format!("pub fn {name}(self) -> &'a [{rust}] {{ self.values({this}, {count}) }}")
        }
        Pointee::Struct(rust) if is_single => {
            let rust = names::type_name(rust);
            format!("pub fn {name}(self) -> Option<View<'a, {rust}>> {{ self.view({this}) }}")
        }
        Pointee::Struct(rust) => {
            let rust = names::type_name(rust);
            format!("pub fn {name}(self) -> Views<'a, {rust}> {{ self.views({this}, {count}) }}")
        }
        Pointee::Text => format!("pub fn {name}(self) -> Option<&'a CStr> {{ self.text({this}) }}"),
        Pointee::Pointer(inner) if matches!(inner.to, Pointee::Text) => format!(
            "pub fn {name}(self) -> impl Iterator<Item = Option<&'a CStr>> {{ self.texts({this}.cast(), {count}) }}"
        ),
        Pointee::Blob(_) => format!("pub fn {name}(self) -> Option<&'a [u8]> {{ self.blob({this}) }}"),
        // `rules` and the tables read arrays of arrays, chains and templates.
        Pointee::Pointer(_) | Pointee::AnyStruct | Pointee::Opaque | Pointee::Template => return,
    };
    let _ = writeln!(out, "    {line}");
}

/// The number of elements, as an expression of the fields of the view.
fn count(layout: &Layout, pointer: &Pointer) -> Option<String> {
    let integer = |place: &IntegerLocation| {
        if layout.is_union {
            return None;
        }
        let at = place.through.unwrap_or(place.at);
        let field = layout.fields.iter().find(|it| it.at == at)?;
        let cast = |text: String, rust: &str| match rust {
            "u64" => text,
            "u8" | "u16" | "u32" => format!("u64::from({text})"),
            // Sample counts are flag types.
            _ => format!("u64::from({text}.0)"),
        };
        match place.through {
            None => Some(cast(format!("self.get().{}", field.rust_name), &field.rust_type)),
            Some(_) => {
                let inner = field.rust_type.strip_prefix("Ptr<")?.strip_suffix('>')?;
                if place.at == 0 && matches!(inner, "u32" | "u64") {
                    return Some(format!(
                        "self.{}().map_or(0, |it| {})",
                        field.rust_name,
                        cast("*it".to_owned(), inner)
                    ));
                }
                let member = match (inner, place.at) {
                    ("CommandBufferAllocateInfo", _) => "command_buffer_count",
                    ("DescriptorSetAllocateInfo", _) => "descriptor_set_count",
                    ("AccelerationStructureBuildGeometryInfoKHR", _) => "geometry_count",
                    _ => return None,
                };
                Some(format!("self.{}().map_or(0, |it| u64::from(it.get().{member}))", field.rust_name))
            }
        }
    };
    match &pointer.len {
        Len::Fixed(count) => Some(count.to_string()),
        Len::At(place) => integer(place),
        Len::Scaled { of, add: 0, divide } => Some(format!("{} / {divide}", integer(of)?)),
        Len::Scaled { of, divide, .. } => Some(format!("{}.div_ceil({divide})", integer(of)?)),
        Len::Terminated => Some(String::new()),
        Len::Rule(_) => None,
    }
}

fn emit_calls(model: &Model, files: &mut Files) {
    let mut text = SourceText::rust_part("record", "record");
    text.blank();
    text.line("/// A call before the driver sees it.");
    text.line("#[derive(Clone, Copy)]");
    text.line("pub enum Call<'a> {");
    for command in model.commands.values() {
        text.line(format!("    {0}(View<'a, {0}Params>),", command.rust_name));
    }
    text.line("}");
    text.blank();
    text.line("impl<'a> Call<'a> {");
    text.line("    /// None for a record of a call's return.");
    text.line("    pub fn of(record: Record<'a>) -> Option<Call<'a>> {");
    text.line("        if record.phase() != RecordPhase::Enter {");
    text.line("            return None;");
    text.line("        }");
    text.line("        Some(match record.command() {");
    for command in model.commands.values() {
        text.line(format!("            Command::{0} => Call::{0}(View::of_record(record)?),", command.rust_name));
    }
    text.line("        })");
    text.line("    }");
    text.line("}");
    text.blank();
    text.line("/// What a call returned and wrote.");
    text.line("#[derive(Clone, Copy)]");
    text.line("pub enum Outcome<'a> {");
    for command in model.commands.values().filter(|it| it.outputs.is_some()) {
        text.line(format!("    {0}(View<'a, {0}Outputs>),", command.rust_name));
    }
    text.line("}");
    text.blank();
    text.line("impl<'a> Outcome<'a> {");
    text.line("    /// None for a record of a call's beginning.");
    text.line("    pub fn of(record: Record<'a>) -> Option<Outcome<'a>> {");
    text.line("        if record.phase() != RecordPhase::Leave {");
    text.line("            return None;");
    text.line("        }");
    text.line("        Some(match record.command() {");
    for command in model.commands.values() {
        match &command.outputs {
            Some(_) => text.line(format!(
                "            Command::{0} => Outcome::{0}(View::of_record(record)?),",
                command.rust_name
            )),
            None => text.line(format!("            Command::{} => return None,", command.rust_name)),
        }
    }
    text.line("        })");
    text.line("    }");
    text.line("}");
    files.insert(path("calls"), text.finish());
}
