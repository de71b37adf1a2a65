//! Emits the dispatch tables and shims of `layer`.

use std::path::PathBuf;

use crate::Files;
use crate::emit::marshal;
use crate::emit::text::SourceText;
use crate::model::names;
use crate::model::*;

pub(crate) fn emit(model: &Model, files: &mut Files) {
    files.insert(PathBuf::from("crates/layer/layer/src/generated/mod.rs"), dispatch_tables(model));
}

/// One dispatch table for each level, and a shim for every command.
fn dispatch_tables(model: &Model) -> String {
    let mut text = SourceText::rust("layer", "entry_points");
    text.blank();
    text.line("use lavascope_abi::*;");
    text.blank();
    text.line("use crate::intercept::shim::*;");
    let levels = [
        ("InstanceTable", "instances and physical devices", &["Instance", "PhysicalDevice"][..]),
        ("DeviceTable", "devices, queues and command buffers", &["Device"][..]),
    ];
    for (table, of, levels) in levels {
        text.blank();
        text.line(format!("dispatch_table! {{\n    /// The next functions in the chain for {of}.\n    {table} {{"));
        for command in model.commands.values().filter(|it| levels.contains(&it.level)) {
            let names: Vec<String> =
                std::iter::once(&command.c_name).chain(&command.aliases).map(|it| format!("c\"{it}\"")).collect();
            text.line(format!(
                "        {}: Fn{} = [{}],",
                names::snake_case(&command.rust_name),
                command.rust_name,
                names.join(", ")
            ));
        }
        text.line("    }\n}");
    }
    shims(model, &mut text);
    text.finish()
}

/// One line for each command: name, level, way of packing, whether it has outputs, parameters, result.
fn shims(model: &Model, text: &mut SourceText) {
    text.blank();
    text.line("shims! {");
    for command in model.commands.values().filter(|it| it.level != "Global") {
        let first = command.parameters.fields.first().map(|it| it.rust_type.as_str());
        let level = match (command.level, first) {
            ("Device", Some("CommandBuffer")) => "device_of_command_buffer",
            ("Device", _) => "device_of",
            _ => "instance_of",
        };
        let parameter = |it: &Field| format!("{}: {}", it.rust_name, it.rust_type);
        let parameters: Vec<String> = command.parameters.fields.iter().map(parameter).collect();
        let result = if command.result_type.is_empty() { "()" } else { &command.result_type };
        let name = names::snake_case(&command.rust_name);
        let head = format!(
            "{name}: {}, {}, Fn{}, {level}",
            command.rust_name, command.parameters.rust_name, command.rust_name
        );
        let straight = if marshal::is_unrolled(command) { format!("fast_pack::{name}") } else { String::new() };
        let leave = if command.outputs.is_some() { "Leaves" } else { "Silent" };
        text.line(format!("    {head}, [{straight}], {leave} = fn({}) -> {result};", parameters.join(", ")));
    }
    text.line("}");
}
