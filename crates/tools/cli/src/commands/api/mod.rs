//! `lavascope api`: prints the entry of a command, structure, handle or enum in the tables.

pub(crate) mod catalog;
pub(crate) mod field_info;

use std::fmt::Write as _;

use anyhow::bail;
use serde::Serialize;

use lavascope_abi::desc::{
    CommandDesc, CommandLevel, Direction, EnumDesc, Layout, OutputSource, Pointee, ResultKind, Ty, Written,
};
use lavascope_abi::{COMMANDS, HandleType, RESULT_ENUM, STRUCTURE_TYPE_ENUM, STRUCTURES};
use lavascope_collections::nearest;

use super::CommandOutcome;
use crate::commands::api::catalog::{Catalog, CatalogItem, enum_of};
use crate::commands::api::field_info::FieldInfo;
use crate::generated::{NULL_DRIVER_VERDICTS, RECORD_VERDICTS, STATE_VERDICTS};
use crate::text::{self, Paint, columns};

/// The text shows this many names, and counts the others. `--json` has all names.
const NAMES_SHOWN_MAX: usize = 4;
const NEAREST_MAX: usize = 3;

/// Describe a command, structure, handle or enum of Vulkan
#[derive(clap::Args)]
pub(crate) struct ApiArguments {
    /// Its name in C, in any case; other names of a command will do
    name: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &ApiArguments) -> anyhow::Result<CommandOutcome> {
    let catalog = Catalog::new();
    let Some(item) = catalog.find(&arguments.name) else { bail!(unknown(&catalog, &arguments.name)) };
    let info = info(item);
    if arguments.json {
        text::emit_json(&info)?;
    } else {
        text::emit(&render(&info, Paint::for_stdout()))?;
    }
    Ok(CommandOutcome::Success)
}

/// What each part of Lavascope does with a command or structure.
fn verdicts(name: &str) -> Vec<(&'static str, String)> {
    let is_known = lavascope_abi::command_by_name(name).is_some() || lavascope_abi::structure_by_name(name).is_some();
    if !is_known {
        return vec![];
    }
    let at = RECORD_VERDICTS.binary_search_by_key(&name, |it| it.0);
    let record = at.map_or("generated", |at| RECORD_VERDICTS[at].1);
    let mut verdicts = vec![("record", record.to_owned())];
    if lavascope_abi::command_by_name(name).is_some() {
        verdicts.push(("layer", "shim".to_owned()));
        let at = NULL_DRIVER_VERDICTS.binary_search_by_key(&name, |it| it.0);
        verdicts.push(("null driver", at.map_or("accepted", |at| NULL_DRIVER_VERDICTS[at].1).to_owned()));
        let at = STATE_VERDICTS.binary_search_by_key(&name, |it| it.0);
        verdicts.push(("state", at.map_or("by hand", |at| STATE_VERDICTS[at].1).to_owned()));
    }
    verdicts
}

fn unknown(catalog: &Catalog, name: &str) -> String {
    let near = nearest(name, catalog.names(), NEAREST_MAX);
    if near.is_empty() {
        format!("the registry knows no `{name}`")
    } else {
        format!("the registry knows no `{name}`; near it are {}", near.join(", "))
    }
}

#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
enum ApiInfo {
    Command(CommandInfo),
    Structure(StructureInfo),
    Handle(HandleInfo),
    Enum(EnumInfo),
}

#[derive(Serialize)]
struct CommandInfo {
    name: &'static str,
    level: &'static str,
    /// The first version or extension with the command.
    since: &'static str,
    aliases: &'static [&'static str],
    parameters: Vec<FieldInfo>,
    returns: String,
    outputs: Vec<OutputInfo>,
    /// The results after which the outputs are valid.
    outputs_written: Option<String>,
    verdicts: Vec<ComponentVerdict>,
}

#[derive(Serialize)]
struct OutputInfo {
    name: &'static str,
    #[serde(rename = "type")]
    ty: String,
    from: String,
}

#[derive(Serialize)]
struct StructureInfo {
    name: &'static str,
    is_union: bool,
    size: u32,
    alignment: u32,
    structure_type: Option<i32>,
    structure_type_name: Option<&'static str>,
    is_returned_only: bool,
    fields: Vec<FieldInfo>,
    used_by: Vec<&'static str>,
    verdicts: Vec<ComponentVerdict>,
}

#[derive(Serialize)]
struct HandleInfo {
    name: &'static str,
    is_dispatchable: bool,
    parent: Option<&'static str>,
    object_type: i32,
    made_by: Vec<&'static str>,
    used_by: Vec<&'static str>,
}

#[derive(Serialize)]
struct EnumInfo {
    name: &'static str,
    size: u32,
    is_mask: bool,
    values: Vec<ValueInfo>,
    used_by: Vec<&'static str>,
}

#[derive(Serialize)]
struct ValueInfo {
    value: i64,
    name: &'static str,
}

#[derive(Serialize)]
struct ComponentVerdict {
    part: &'static str,
    verdict: String,
}

fn info(item: CatalogItem) -> ApiInfo {
    match item {
        CatalogItem::Command(desc) => ApiInfo::Command(command_info(desc)),
        CatalogItem::Structure(layout) => ApiInfo::Structure(structure_info(layout)),
        CatalogItem::Handle(handle) => ApiInfo::Handle(handle_info(handle)),
        CatalogItem::Enum(desc) => ApiInfo::Enum(enum_info(desc)),
    }
}

fn verdict_list(name: &str) -> Vec<ComponentVerdict> {
    verdicts(name).into_iter().map(|(part, verdict)| ComponentVerdict { part, verdict }).collect()
}

fn command_info(desc: &'static CommandDesc) -> CommandInfo {
    let level = match desc.level {
        CommandLevel::Global => "global",
        CommandLevel::Instance => "instance",
        CommandLevel::PhysicalDevice => "physical device",
        CommandLevel::Device => "device",
    };
    CommandInfo {
        name: desc.name,
        level,
        since: desc.provider,
        aliases: desc.aliases,
        parameters: parameters(desc),
        returns: returns(desc),
        outputs: outputs(desc),
        outputs_written: outputs_written(desc),
        verdicts: verdict_list(desc.name),
    }
}

fn parameters(desc: &CommandDesc) -> Vec<FieldInfo> {
    let mut parameters = field_info::fields(desc.parameters);
    for source in desc.outputs.iter().flat_map(|it| it.sources) {
        let OutputSource::Parameter { at, is_output: true } = source else { continue };
        // The parameters describe a count as an input. Only the outputs show that the driver also
        // writes it.
        let both_ways = parameters.iter_mut().find(|it| it.offset == *at && it.direction == Some("in"));
        if let Some(parameter) = both_ways {
            parameter.direction = Some("in and out");
            parameter.ty = without_const(&parameter.ty);
        }
    }
    parameters
}

fn without_const(ty: &str) -> String {
    ty.strip_prefix("const ").unwrap_or(ty).to_owned()
}

fn returns(desc: &CommandDesc) -> String {
    let Some(outputs) = desc.outputs else { return "nothing".to_owned() };
    let at = outputs.sources.iter().position(|it| *it == OutputSource::Result);
    match at.and_then(|it| outputs.layout.fields.get(it)) {
        Some(field) => field_info::field_type(field),
        None => "nothing".to_owned(),
    }
}

fn outputs(desc: &'static CommandDesc) -> Vec<OutputInfo> {
    let Some(outputs) = desc.outputs else { return vec![] };
    let name_at = |at| field_info::field_at(desc.parameters, at).map_or("?", |it| it.name);
    let from = |source: &OutputSource| match source {
        OutputSource::Result => "the return value".to_owned(),
        OutputSource::Parameter { at, is_output: true } => format!("written through {}", name_at(*at)),
        OutputSource::Parameter { at, is_output: false } => format!("copied from {}, as a length", name_at(*at)),
        OutputSource::Through(place) => {
            format!("copied from {}, as a length", field_info::place_name(desc.parameters, *place))
        }
    };
    let fields = outputs.layout.fields.iter().zip(outputs.sources);
    let ty = |field| without_const(&field_info::field_type(field));
    fields.map(|(it, source)| OutputInfo { name: it.name, ty: ty(it), from: from(source) }).collect()
}

fn outputs_written(desc: &CommandDesc) -> Option<String> {
    let outputs = desc.outputs?;
    if outputs.sources.iter().all(|it| *it == OutputSource::Result) {
        return None;
    }
    Some(match outputs.result {
        ResultKind::Void | ResultKind::Value | ResultKind::Codes { written: Written::Always, .. } => {
            "always".to_owned()
        }
        ResultKind::Codes { unwritten: [], written: Written::OnSuccess } => {
            "when the result is not an error".to_owned()
        }
        ResultKind::Codes { unwritten, written: Written::OnSuccess } => {
            let name =
                |code: &i32| RESULT_ENUM.values.iter().find(|it| it.0 == i64::from(*code)).map_or("?", |it| it.1);
            let names: Vec<_> = unwritten.iter().map(name).collect();
            format!("when the result is neither an error nor {}", names.join(" nor "))
        }
    })
}

fn structure_info(layout: &'static Layout) -> StructureInfo {
    let structure_type = layout.s_type();
    let named = structure_type.and_then(|it| STRUCTURE_TYPE_ENUM.values.iter().find(|v| v.0 == i64::from(it)));
    StructureInfo {
        name: layout.name,
        is_union: layout.is_union,
        size: layout.size,
        alignment: layout.align,
        structure_type,
        structure_type_name: named.map(|it| it.1),
        is_returned_only: layout.returned_only,
        fields: field_info::fields(layout),
        used_by: users(&|ty| match ty {
            Ty::Struct(structure) => std::ptr::eq(*structure, layout),
            _ => matches!(pointee(ty), Some((Pointee::Struct(structure), _)) if std::ptr::eq(*structure, layout)),
        }),
        verdicts: verdict_list(layout.name),
    }
}

fn handle_info(handle: HandleType) -> HandleInfo {
    let is_made =
        |ty: &Ty| matches!(pointee(ty), Some((Pointee::Handle(handle_type), Direction::Out)) if *handle_type == handle);
    let is_used = |ty: &Ty| match ty {
        Ty::Handle(handle_type) => *handle_type == handle,
        _ => matches!(pointee(ty), Some((Pointee::Handle(handle_type), Direction::In)) if *handle_type == handle),
    };
    HandleInfo {
        name: handle.name(),
        is_dispatchable: handle.is_dispatchable(),
        parent: handle.parent().map(HandleType::name),
        object_type: handle.object_type(),
        made_by: users(&is_made),
        used_by: users(&is_used),
    }
}

fn enum_info(desc: &'static EnumDesc) -> EnumInfo {
    EnumInfo {
        name: desc.name,
        size: desc.width,
        is_mask: desc.name.contains("FlagBits"),
        values: desc.values.iter().map(|it| ValueInfo { value: it.0, name: it.1 }).collect(),
        used_by: users(&|ty| enum_of(ty).is_some_and(|it| std::ptr::eq(it, desc))),
    }
}

/// The type at the end of a pointer or of several levels of pointers.
fn pointee(ty: &Ty) -> Option<(&'static Pointee, Direction)> {
    let Ty::Pointer(mut pointer) = *ty else { return None };
    while let Pointee::Pointer(inner) = pointer.to {
        pointer = inner;
    }
    Some((&pointer.to, pointer.direction))
}

/// The commands and structures with a field of a type that `is_such` accepts.
fn users(is_such: &dyn Fn(&Ty) -> bool) -> Vec<&'static str> {
    let layouts = COMMANDS.iter().map(|it| it.parameters).chain(STRUCTURES.iter().copied());
    layouts.filter(|it| it.fields.iter().any(|it| is_such(&it.ty))).map(|it| it.name).collect()
}

fn render(info: &ApiInfo, paint: Paint) -> String {
    match info {
        ApiInfo::Command(command) => render_command(command, paint),
        ApiInfo::Structure(structure) => render_structure(structure, paint),
        ApiInfo::Handle(handle) => render_handle(handle, paint),
        ApiInfo::Enum(enumeration) => render_enum(enumeration, paint),
    }
}

fn render_command(info: &CommandInfo, paint: Paint) -> String {
    let mut facts = vec![row(["level", info.level]), row(["since", info.since])];
    if !info.aliases.is_empty() {
        facts.push(row(["aliases", &info.aliases.join(", ")]));
    }
    facts.push(row(["returns", &info.returns]));
    facts.extend(info.verdicts.iter().map(|it| row([it.part, &it.verdict])));
    let mut out = format!("{}: command\n{}", paint.bold(info.name), columns(&facts));
    let _ = write!(out, "\nparameters\n{}", columns(&field_rows(&info.parameters, false)));
    if let Some(written) = &info.outputs_written {
        let rows: Vec<_> = info.outputs.iter().map(|it| row([it.name, &it.ty, &it.from])).collect();
        let _ = write!(out, "\noutputs, written {written}\n{}", columns(&rows));
    }
    out
}

fn render_structure(info: &StructureInfo, paint: Paint) -> String {
    let mut facts = vec![row(["size", &info.size.to_string()]), row(["alignment", &info.alignment.to_string()])];
    if let Some(number) = info.structure_type {
        facts.push(row(["sType", &format!("{number} {}", info.structure_type_name.unwrap_or_default())]));
    }
    if info.is_returned_only {
        facts.push(row(["returned", "only by the implementation"]));
    }
    facts.extend(names_row("used by", &info.used_by));
    facts.extend(info.verdicts.iter().map(|it| row([it.part, &it.verdict])));
    let kind = if info.is_union { "union" } else { "structure" };
    let fields = columns(&field_rows(&info.fields, true));
    format!("{}: {kind}\n{}\nfields\n{fields}", paint.bold(info.name), columns(&facts))
}

fn render_handle(info: &HandleInfo, paint: Paint) -> String {
    let mut facts = vec![
        row(["parent", info.parent.unwrap_or("none")]),
        row(["dispatchable", if info.is_dispatchable { "yes" } else { "no" }]),
        row(["VkObjectType", &info.object_type.to_string()]),
    ];
    facts.extend(names_row("made by", &info.made_by));
    facts.extend(names_row("used by", &info.used_by));
    format!("{}: handle\n{}", paint.bold(info.name), columns(&facts))
}

fn render_enum(info: &EnumInfo, paint: Paint) -> String {
    let mut facts = vec![row(["size", &info.size.to_string()])];
    facts.extend(names_row("used by", &info.used_by));
    let number = |value: i64| if info.is_mask { format!("{value:#x}") } else { value.to_string() };
    let values: Vec<_> = info.values.iter().map(|it| row([number(it.value).as_str(), it.name])).collect();
    let kind = if info.is_mask { "bits of a mask" } else { "enum" };
    format!("{}: {kind}\n{}\nvalues\n{}", paint.bold(info.name), columns(&facts), columns(&values))
}

fn field_rows(fields: &[FieldInfo], with_offsets: bool) -> Vec<Vec<String>> {
    let cells = |field_info: &FieldInfo| {
        let mut cells = row([field_info.name, &field_info.ty, &field_info.remarks()]);
        if with_offsets {
            cells.insert(0, field_info.offset.to_string());
        }
        cells
    };
    fields.iter().map(cells).collect()
}

/// A row with the first names and the number of the others. None if there are no names.
fn names_row(label: &str, names: &[&str]) -> Option<Vec<String>> {
    let shown = names.iter().take(NAMES_SHOWN_MAX).copied().collect::<Vec<_>>().join(", ");
    match names.len() {
        0 => None,
        count if count <= NAMES_SHOWN_MAX => Some(row([label, &shown])),
        count => Some(row([label, &format!("{shown} and {} more", count - NAMES_SHOWN_MAX)])),
    }
}

fn row<const N: usize>(cells: [&str; N]) -> Vec<String> {
    cells.iter().map(|it| (*it).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_can_be_reported_in_text_and_json() {
        let catalog = Catalog::new();
        for name in catalog.names() {
            let info = info(catalog.find(name).expect("it is in the catalog"));
            let text = render(&info, Paint::for_stdout());
            assert!(!text.contains('?'), "{name}: {text}");
            assert!(serde_json::to_string(&info).is_ok());
        }
    }

    #[test]
    fn commands_and_structures_have_verdicts() {
        let draw = ["generated", "shim", "accepted", "by hand"].map(str::to_owned);
        assert_eq!(verdicts("vkCmdDraw").into_iter().map(|it| it.1).collect::<Vec<_>>(), draw);
        let write = verdicts("VkWriteDescriptorSet");
        assert!(write[0].1.contains("pImageInfo: by hand"), "{write:?}");
        assert_eq!(verdicts("VkRect2D"), [("record", "generated".to_owned())]);
        assert_eq!(verdicts("VkResult"), []);
    }
}
