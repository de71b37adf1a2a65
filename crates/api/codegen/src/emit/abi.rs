//! Emits `abi`: types, constants, enum names, layouts, commands.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;

use lavascope_registry::{ConstantValue, Enum, Registry, VersionOrExtensionKind};

use crate::Files;
use crate::emit::abi_tables;
use crate::emit::text::{SourceText, array};
use crate::model::names;
use crate::model::*;

pub(crate) fn emit(registry: &Registry, model: &Model, files: &mut Files) {
    let mut out = ModuleWriter { files, modules: BTreeMap::new() };
    for block in &registry.versions_and_extensions {
        let module = names::block_module(&block.name);
        let (mut structs, mut enums, mut commands) =
            (EmittedItem::default(), EmittedItem::default(), EmittedItem::default());
        for name in own_items(registry, &block.types, &block.name) {
            emit_type(registry, model, name, &mut structs, &mut enums);
        }
        for name in own_items(registry, &block.commands, &block.name) {
            emit_command(&model.commands[name], &mut commands);
        }
        for (suffix, parts) in [("", structs), ("_enums", enums), ("_commands", commands)] {
            // The core versions are large, so they are split; an extension is one file.
            let is_version = block.kind == VersionOrExtensionKind::Version;
            let name = if is_version { format!("{module}{suffix}") } else { module.clone() };
            let head = format!("// {}.", block.name);
            out.append("types", &name, &head, &parts.types);
            out.append("abi", &name, &head, &parts.tables);
        }
    }
    emit_constants(registry, &mut out);
    emit_handles(registry, &mut out);
    emit_sizes(model, &mut out);
    emit_command_table(model, &mut out);
    emit_structure_types(model, &mut out);
    emit_names(registry, model, &mut out);
    emit_sync(registry, &mut out);
    emit_formats(registry, &mut out);
    out.finish("types", &["use crate::bool32::Bool32;", "use crate::ptr::{FnPtr, Opaque, Ptr};"]);
    out.finish("abi", &["use lavascope_types::*;", "", "use crate::desc::*;"]);
}

/// The code of one item, for each of the two crates.
#[derive(Default)]
struct EmittedItem {
    types: String,
    tables: String,
}

/// The files that are being written, and the parts of the module of each crate.
struct ModuleWriter<'a> {
    files: &'a mut Files,
    modules: BTreeMap<&'static str, Vec<String>>,
}

impl ModuleWriter<'_> {
    /// Appends to a part of a crate's module. A new part starts with `head`.
    fn append(&mut self, krate: &'static str, module: &str, head: &str, body: &str) {
        if body.is_empty() {
            return;
        }
        let modules = self.modules.entry(krate).or_default();
        let file = self.files.entry(path(krate, module)).or_insert_with(|| {
            modules.push(module.to_owned());
            let mut text = SourceText::rust_part(krate, "abi");
            text.line(head);
            text.finish()
        });
        file.push_str(body);
    }

    /// Joins the parts of a crate.
    fn finish(&mut self, krate: &'static str, uses: &[&str]) {
        let mut modules = self.modules.remove(krate).unwrap_or_default();
        modules.sort();
        let mut text = SourceText::rust(krate, "abi");
        text.blank();
        uses.iter().for_each(|it| text.line(it));
        text.blank();
        modules.iter().for_each(|it| text.line(format!("include!(\"{it}.rs\");")));
        self.files.insert(path(krate, "mod"), text.finish());
    }
}

fn path(krate: &str, module: &str) -> PathBuf {
    PathBuf::from(format!("crates/api/{krate}/src/generated/{module}.rs"))
}

/// Items that this block defines first, without aliases, in the order of the registry.
fn own_items<'r>(registry: &'r Registry, items: &'r [String], block: &str) -> Vec<&'r str> {
    let mut seen = Vec::new();
    for name in items {
        let is_here = registry.introduced_by(name).is_some_and(|it| it.name == block);
        if is_here && !registry.aliases.contains_key(name) && !seen.contains(&name.as_str()) {
            seen.push(name.as_str());
        }
    }
    seen.retain(|text| {
        registry.structs.contains_key(*text)
            || registry.handles.contains_key(*text)
            || registry.enums.contains_key(*text)
            || registry.bitmasks.contains_key(*text)
            || registry.commands.contains_key(*text)
    });
    seen
}

fn emit_type(registry: &Registry, model: &Model, name: &str, structs: &mut EmittedItem, enums: &mut EmittedItem) {
    if let Some(layout) = model.layouts.get(name) {
        emit_structure(layout, structs);
    } else if registry.handles.contains_key(name) {
        let _ = writeln!(structs.types, "\nnewtype!({}, u64);", names::type_name(name));
    } else if let Some(bitmask) = registry.bitmasks.get(name) {
        let rust = names::type_name(name);
        let number = if bitmask.width == 64 { "u64" } else { "u32" };
        let _ = writeln!(enums.types, "\nnewtype!({rust}, {number});");
        if let Some((bits, values)) = bitmask.bits.as_ref().and_then(|bits| Some((bits, registry.enums.get(bits)?))) {
            emit_enum_constants(&rust, bits, values, &mut enums.types);
            let alias = names::type_name(bits);
            let _ = writeln!(enums.types, "pub type {alias} = {rust};");
            emit_enum_names(bits, values, &mut enums.tables);
        }
    } else if let Some(enumeration) = registry.enums.get(name) {
        let is_bits_of_mask = registry.bitmasks.values().any(|mask| mask.bits.as_deref() == Some(name));
        if is_bits_of_mask {
            return;
        }
        let rust = names::type_name(name);
        let number = match (enumeration.is_bitmask, enumeration.width) {
            (true, 64) => "u64",
            (true, _) => "u32",
            (false, _) => "i32",
        };
        let _ = writeln!(enums.types, "\nnewtype!({rust}, {number});");
        emit_enum_constants(&rust, name, enumeration, &mut enums.types);
        emit_enum_names(name, enumeration, &mut enums.tables);
    }
}

fn emit_enum_constants(rust: &str, c_name: &str, enumeration: &Enum, out: &mut String) {
    if enumeration.values.is_empty() {
        return;
    }
    let mut seen: BTreeMap<String, i64> = BTreeMap::new();
    let _ = writeln!(out, "impl {rust} {{");
    for value in &enumeration.values {
        let name = names::value_name(c_name, &value.name);
        if seen.insert(name.clone(), value.value).is_none() {
            let number = match (enumeration.is_bitmask, enumeration.width) {
                (true, 64) => format!("{:#x}", value.value as u64),
                (true, _) => format!("{:#x}", value.value as u32),
                (false, _) => value.value.to_string(),
            };
            let _ = writeln!(out, "    pub const {name}: {rust} = {rust}({number});");
        }
    }
    let _ = writeln!(out, "}}");
}

fn emit_enum_names(c_name: &str, enumeration: &Enum, out: &mut String) {
    let _ = writeln!(out, "\npub static {}: EnumDesc = EnumDesc {{", abi_tables::enum_static(c_name));
    let _ = writeln!(out, "    name: \"{c_name}\",\n    width: {},\n    values: &[", enumeration.width / 8);
    let mut values: Vec<_> = enumeration.values.iter().collect();
    values.sort_by_key(|it| it.value);
    for value in values {
        let _ = writeln!(out, "        ({}, \"{}\"),", value.value, value.name);
    }
    let _ = writeln!(out, "    ],\n}};");
}

/// Structures with their C layout. Unions are words, with a safe accessor for each member.
fn emit_structure(layout: &Layout, parts: &mut EmittedItem) {
    let (rust, out) = (&layout.rust_name, &mut parts.types);
    let _ = writeln!(out, "\n#[repr(C)]\npub struct {rust} {{");
    if layout.is_union {
        let (word, size) = if layout.align == 8 { ("u64", 8) } else { ("u32", 4) };
        let _ = writeln!(out, "    pub words: [{word}; {}],", layout.size / size);
    }
    for field in layout.fields.iter().filter(|it| !layout.is_union && !it.rust_type.is_empty()) {
        let _ = writeln!(out, "    pub {}: {},", field.rust_name, field.rust_type);
    }
    let _ = writeln!(out, "}}\nplain!({rust});");
    if layout.is_union {
        let _ = writeln!(out, "union_members!({rust} {{");
        for field in &layout.fields {
            let _ = writeln!(out, "    {}: {},", field.rust_name, field.rust_type);
        }
        let _ = writeln!(out, "}});");
    }
    emit_layout(layout, &mut parts.tables);
}

fn emit_layout(layout: &Layout, out: &mut String) {
    let _ = writeln!(out, "\nstructure!({}, {});", layout.rust_name, layout.static_name());
    let _ = writeln!(out, "{}", abi_tables::layout(layout));
}

/// One check for the sizes of all structures.
fn emit_sizes(model: &Model, out: &mut ModuleWriter<'_>) {
    let mut text = SourceText::part();
    text.blank();
    text.line("sizes! {");
    let images = model
        .commands
        .values()
        .flat_map(|it| [Some(&it.parameters), it.outputs.as_ref().map(|it| &it.layout)].into_iter().flatten());
    for layout in model.layouts.values().chain(images) {
        text.line(format!("    {} = {};", layout.rust_name, layout.size));
    }
    text.line("}");
    out.append("types", "sizes", "// The sizes of all structures and images.", &text.finish());
}

fn emit_command(command: &CommandModel, parts: &mut EmittedItem) {
    let images = [Some(&command.parameters), command.outputs.as_ref().map(|it| &it.layout)];
    let out = &mut parts.types;
    for layout in images.into_iter().flatten() {
        let _ = writeln!(out, "\n#[repr(C, align(8))]\npub struct {} {{", layout.rust_name);
        for field in &layout.fields {
            let _ = writeln!(out, "    pub {}: {},", field.rust_name, field.rust_type);
        }
        let _ = writeln!(out, "}}\nimage!({});", layout.rust_name);
        emit_layout(layout, &mut parts.tables);
    }
    let parameters: Vec<&str> = command.parameters.fields.iter().map(|it| it.rust_type.as_str()).collect();
    let result = if command.result_type.is_empty() { String::new() } else { format!(" -> {}", command.result_type) };
    let parameters = parameters.join(", ");
    let _ = writeln!(out, "pub type Fn{} = unsafe extern \"system\" fn({parameters}){result};", command.rust_name);
    let _ = writeln!(parts.tables, "{}", command_desc(command));
}

fn command_desc(command: &CommandModel) -> String {
    let name = names::screaming_snake_case(&command.rust_name);
    let outputs = match &command.outputs {
        None => "None".to_owned(),
        Some(output) => format!(
            "Some(&Outputs {{\n        layout: &{},\n        sources: &{},\n        result: {},\n    }})",
            output.layout.static_name(),
            array(&output.sources, source),
            result_kind(&output.result),
        ),
    };
    format!(
        "pub static {name}_COMMAND: CommandDesc = CommandDesc {{\n    name: \"{}\",\n    level: CommandLevel::{},\n    \
         parameters: &{},\n    outputs: {outputs},\n    aliases: &{},\n    provider: \"{}\",\n}};",
        command.c_name,
        command.level,
        command.parameters.static_name(),
        array(&command.aliases, |it| format!("\"{it}\"")),
        command.block,
    )
}

fn source(source: &OutputSource) -> String {
    match source {
        OutputSource::Result => "OutputSource::Result".to_owned(),
        OutputSource::Parameter { at, is_output } => {
            format!("OutputSource::Parameter {{ at: {at}, is_output: {is_output} }}")
        }
        OutputSource::Through(place) => format!("OutputSource::Through({})", abi_tables::integer_location_text(place)),
    }
}

fn result_kind(kind: &ResultKind) -> String {
    match kind {
        ResultKind::Void => "ResultKind::Void".to_owned(),
        ResultKind::Value => "ResultKind::Value".to_owned(),
        ResultKind::Codes { unwritten, is_always_written } => {
            let written = if *is_always_written { "Always" } else { "OnSuccess" };
            format!(
                "ResultKind::Codes {{ unwritten: &{}, written: Written::{written} }}",
                array(unwritten, i64::to_string)
            )
        }
    }
}

fn emit_constants(registry: &Registry, out: &mut ModuleWriter<'_>) {
    let mut text = SourceText::part();
    text.blank();
    text.line("/// The registry's version: the patch of the Vulkan version that these tables describe.");
    text.line(format!("pub const HEADER_VERSION: u32 = {};", registry.header_version));
    for (name, constant) in &registry.constants {
        let rust = name.strip_prefix("VK_").unwrap_or(name);
        match &constant.value {
            ConstantValue::U32(value) => text.line(format!("pub const {rust}: u32 = {value};")),
            ConstantValue::U64(value) => text.line(format!("pub const {rust}: u64 = {value};")),
            ConstantValue::F32(value) => text.line(format!("pub const {rust}: f32 = {value:?};")),
            ConstantValue::Text(value) => text.line(format!("pub const {rust}: &str = \"{value}\";")),
            ConstantValue::Alias(_) => {}
        }
    }
    out.append("types", "constants", "// Constants that belong to no enum.", &text.finish());
}

fn emit_handles(registry: &Registry, out: &mut ModuleWriter<'_>) {
    let mut text = SourceText::part();
    text.blank();
    text.line("handle_types! {");
    for (number, (name, handle)) in registry.handles.iter().enumerate() {
        let object_type = registry.enums["VkObjectType"].values.iter().find(|value| value.name == handle.object_type);
        let number_of_type = object_type.map_or(0, |it| it.value);
        let report = report_number(registry, &handle.object_type);
        let parent = handle
            .parent
            .as_ref()
            .map_or("None".to_owned(), |it| format!("Some(HandleType::{})", names::type_name(registry.resolve(it))));
        text.line(format!(
            "    {} = {}, \"{name}\", {number_of_type}, {report}, {parent}, {};",
            names::type_name(name),
            number + 1,
            handle.dispatchable,
        ));
    }
    text.line("}");
    out.append("types", "handles", "// The types of handles.", &text.finish());
}

/// The object type in the numbering of `VK_EXT_debug_report`, or -1.
fn report_number(registry: &Registry, object_type: &str) -> i64 {
    let suffix = object_type.trim_start_matches("VK_OBJECT_TYPE_");
    let Some(other) = registry.enums.get("VkDebugReportObjectTypeEXT") else { return -1 };
    let value = |name: &str| {
        other.values.iter().find(|enum_value| enum_value.name == format!("VK_DEBUG_REPORT_OBJECT_TYPE_{name}_EXT"))
    };
    let bare = suffix.rsplit_once('_').map_or(suffix, |it| it.0);
    // The exact name first: an older type of another vendor may have the name without the suffix.
    let found = value(suffix).or_else(|| value(bare));
    found.map_or(-1, |it| it.value)
}

fn emit_command_table(model: &Model, out: &mut ModuleWriter<'_>) {
    let mut text = SourceText::part();
    text.blank();
    text.blank();
    text.line("command_table! {");
    for (number, command) in model.commands.values().enumerate() {
        text.line(format!(
            "    {} = {number}, {}_COMMAND;",
            command.rust_name,
            names::screaming_snake_case(&command.rust_name)
        ));
    }
    text.line("}");
    out.append("abi", "command_table", "// Every command by number, sorted by name.", &text.finish());
}

fn emit_structure_types(model: &Model, out: &mut ModuleWriter<'_>) {
    let mut text = SourceText::part();
    text.blank();
    text.blank();
    text.line("/// Sorted by name in C.");
    text.line("pub static STRUCTURES: &[&Layout] = &[");
    for layout in model.layouts.values() {
        text.line(format!("    &{},", layout.static_name()));
    }
    text.line("];");
    text.blank();
    let mut typed: Vec<(i64, &Layout)> = model.layouts.values().filter_map(|it| Some((it.s_type?, it))).collect();
    typed.sort_by_key(|it| it.0);
    text.line("/// Sorted by structure type.");
    text.line("pub static STRUCTURE_TYPES: &[(i32, &Layout)] = &[");
    for (s_type, layout) in typed {
        text.line(format!("    ({s_type}, &{}),", layout.static_name()));
    }
    text.line("];");
    out.append(
        "abi",
        "structure_types",
        "// Every structure by name, and those with a structure type by that type.",
        &text.finish(),
    );
}

/// Names of enums and commands, and aliases of types.
fn emit_names(registry: &Registry, model: &Model, out: &mut ModuleWriter<'_>) {
    let mut text = SourceText::part();
    text.blank();
    text.line("/// Sorted by name in C.");
    text.line("pub static ENUMS: &[&EnumDesc] = &[");
    for name in registry.enums.keys() {
        text.line(format!("    &{},", abi_tables::enum_static(name)));
    }
    text.line("];");
    text.blank();
    text.line("/// Another name in C, and the name that the tables use. Sorted.");
    text.line("pub static TYPE_ALIASES: &[(&str, &str)] = &[");
    for (alias, _) in registry.aliases.iter().filter(|it| it.0.starts_with("Vk")) {
        text.line(format!("    (\"{alias}\", \"{}\"),", registry.resolve(alias)));
    }
    text.line("];");
    text.blank();
    text.line("/// Every name that an application can ask for, sorted.");
    text.line("pub static COMMAND_NAMES: &[(&str, Command)] = &[");
    let mut names: Vec<(&str, &str)> = Vec::new();
    for command_model in model.commands.values() {
        names.push((&command_model.c_name, &command_model.rust_name));
        names.extend(command_model.aliases.iter().map(|alias| (alias.as_str(), command_model.rust_name.as_str())));
    }
    names.sort();
    for (name, command) in names {
        text.line(format!("    (\"{name}\", Command::{command}),"));
    }
    text.line("];");
    out.append("abi", "names", "// Enums and commands by name, and other names of types.", &text.finish());
}

fn emit_sync(registry: &Registry, out: &mut ModuleWriter<'_>) {
    let mut text = SourceText::part();
    text.blank();
    text.blank();
    let stage = |name: &String| flag(registry, "VkPipelineStageFlagBits2", "PipelineStageFlags2", name);
    let access = |name: &String| flag(registry, "VkAccessFlagBits2", "AccessFlags2", name);
    let queue = |name: &String| flag(registry, "VkQueueFlagBits", "QueueFlags", name);
    text.line("pub static SYNC_STAGES: &[SyncStage] = &[");
    for sync_stage in &registry.sync.stages {
        text.line(format!(
            "    SyncStage {{ name: \"{}\", stage: {}, queues: {}, equivalent: {} }},",
            sync_stage.name,
            stage(&sync_stage.name),
            or_zero(&sync_stage.queues, &queue),
            or_zero(&sync_stage.equivalent, &stage),
        ));
    }
    text.line("];");
    text.blank();
    text.line("pub static SYNC_ACCESSES: &[SyncAccess] = &[");
    for sync_access in &registry.sync.accesses {
        text.line(format!(
            "    SyncAccess {{ name: \"{}\", access: {}, stages: {}, equivalent: {} }},",
            sync_access.name,
            access(&sync_access.name),
            or_zero(&sync_access.stages, &stage),
            or_zero(&sync_access.equivalent, &access),
        ));
    }
    text.line("];");
    text.blank();
    text.line("pub static SYNC_PIPELINES: &[SyncPipeline] = &[");
    for pipeline in &registry.sync.pipelines {
        text.line(format!("    SyncPipeline {{ name: \"{}\", stages: &[", pipeline.name));
        for step in &pipeline.stages {
            let before = step.before.as_ref().map_or("0".to_owned(), &stage);
            text.line(format!(
                "        SyncPipelineStage {{ stage: {}, is_ordered: {}, before: {before} }},",
                stage(&step.name),
                step.ordered,
            ));
        }
        text.line("    ] },");
    }
    text.line("];");
    out.append(
        "abi",
        "sync_tables",
        "// Stages, accesses and pipelines of the synchronization chapter.",
        &text.finish(),
    );
}

/// The value of a flag, by its C name or an alias.
fn flag(registry: &Registry, bits: &str, rust: &str, name: &str) -> String {
    let resolved = registry.enums[bits].aliases.get(name).map_or(name, String::as_str);
    format!("{rust}::{}.0", names::value_name(bits, resolved))
}

fn or_zero(names: &[String], show: &dyn Fn(&String) -> String) -> String {
    if names.is_empty() { "0".to_owned() } else { names.iter().map(show).collect::<Vec<_>>().join(" | ") }
}

fn emit_formats(registry: &Registry, out: &mut ModuleWriter<'_>) {
    let mut text = SourceText::part();
    text.blank();
    text.blank();
    text.line("pub static FORMATS: &[FormatDesc] = &[");
    let value = |name: &str| format!("Format::{}", names::value_name("VkFormat", name));
    for (name, item) in &registry.formats {
        let components = array(&item.components, |format_component| {
            format!(
                "FormatComponent {{ name: \"{}\", bits: {}, numeric: \"{}\", plane: {} }}",
                format_component.name,
                format_component.bits.unwrap_or(0),
                format_component.numeric_format,
                format_component.plane.unwrap_or(0),
            )
        });
        let planes = array(&item.planes, |format_plane| {
            format!(
                "FormatPlane {{ width_divisor: {}, height_divisor: {}, format: {} }}",
                format_plane.width_divisor,
                format_plane.height_divisor,
                value(&format_plane.compatible),
            )
        });
        text.line(format!(
            "    FormatDesc {{ name: \"{name}\", format: {}, class: \"{}\", block_size: {}, block_extent: {:?}, components: &{components}, planes: &{planes}, is_compressed: {} }},",
            value(name),
            item.class,
            item.block_size,
            item.block_extent,
            item.compressed.is_some(),
        ));
    }
    text.line("];");
    out.append("abi", "formats", "// Texel blocks, components and planes of every format.", &text.finish());
}
