//! Emits the calls of `replay`: each command is called with the parameters of an image.

use std::path::PathBuf;

use crate::Files;
use crate::emit::text::SourceText;
use crate::model::*;

pub(crate) fn emit(model: &Model, files: &mut Files) {
    let mut text = SourceText::rust("replay", "replay");
    text.blank();
    text.line("use lavascope_abi::*;");
    text.blank();
    text.line("use crate::call::trampolines::*;");
    text.blank();
    text.line("calls! {");
    for command in model.commands.values() {
        let names: Vec<String> =
            std::iter::once(&command.c_name).chain(&command.aliases).map(|it| format!("c\"{it}\"")).collect();
        let parameters: Vec<&str> = command.parameters.fields.iter().map(|it| it.rust_name.as_str()).collect();
        let head = format!("{}, {}, Fn{}", command.rust_name, command.parameters.rust_name, command.rust_name);
        text.line(format!("    {head}, [{}] = fn({});", names.join(", "), parameters.join(", ")));
    }
    text.line("}");
    files.insert(PathBuf::from("crates/tools/replay/src/generated/mod.rs"), text.finish());
}
