//! Emits the fast packing of `marshal` for the most frequent commands, as straight-line code.
//!
//! Its records are byte for byte those of the walker; a test compares the two. A call with anything unusual, for
//! instance a chain, is left to the walker.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::PathBuf;

use crate::Files;
use crate::emit::abi_tables::access;
use crate::emit::text::SourceText;
use crate::model::names;
use crate::model::*;

/// The commands with pointers that programs record most often.
const HOT: &[&str] = &[
    "vkCmdBeginRenderPass",
    "vkCmdBeginRendering",
    "vkCmdBindDescriptorSets",
    "vkCmdBindVertexBuffers",
    "vkCmdBindVertexBuffers2",
    "vkCmdBlitImage",
    "vkCmdClearAttachments",
    "vkCmdCopyBuffer",
    "vkCmdCopyBuffer2",
    "vkCmdCopyBufferToImage",
    "vkCmdCopyImage",
    "vkCmdExecuteCommands",
    "vkCmdPipelineBarrier",
    "vkCmdPipelineBarrier2",
    "vkCmdPushConstants",
    "vkCmdSetScissor",
    "vkCmdSetScissorWithCount",
    "vkCmdSetViewport",
    "vkCmdSetViewportWithCount",
    "vkCmdUpdateBuffer",
    "vkQueueSubmit",
    "vkQueueSubmit2",
];

pub(crate) fn emit(model: &Model, files: &mut Files) {
    let mut text = SourceText::rust("marshal", "marshal");
    text.blank();
    text.line("pub(crate) mod in_place;");
    text.blank();
    text.line("use lavascope_abi::desc::HandleAccess;");
    text.line("use lavascope_abi::*;");
    text.blank();
    text.line("use crate::pack::IdResolver;");
    text.line("use crate::fast_pack::{FastPack, RecordWriter, RecordSpace, array_words, byte_words};");
    text.line("use crate::record_buffer::RecordBuffer;");
    let mut structures = BTreeSet::new();
    let mut commands = Vec::new();
    for command in model.commands.values() {
        if !is_unrolled(command) {
            continue;
        }
        for fixup in &command.parameters.fixups {
            collect_structures(model, fixup, &mut structures);
        }
        commands.push(command);
    }
    let mut body = String::new();
    for name in &structures {
        emit_structure(&model.layouts[name], model, &mut body);
    }
    for command in &commands {
        emit_command(command, model, &mut body);
    }
    emit_dispatch(&commands, &mut body);
    files.insert(PathBuf::from("crates/record/marshal/src/generated/mod.rs"), text.finish() + &body);
}

/// Whether a command is packed by straight-line code.
pub(crate) fn is_unrolled(command: &CommandModel) -> bool {
    let is_hot = HOT.contains(&command.c_name.as_str());
    let is_plain = command.c_name.starts_with("vkCmd") && !command.parameters.has_references();
    (is_hot || is_plain) && command.parameters.fixups.iter().all(is_simple)
}

/// Whether straight-line code can do this fixup.
fn is_simple(work: &Fixup) -> bool {
    match work {
        Fixup::Chain { .. } | Fixup::Handles { .. } => true,
        Fixup::Pointer { pointer, .. } => {
            pointer.read == ReadCondition::Always
                && pointer.direction == Direction::In
                && pointer.stride.is_none()
                && matches!(pointer.len, Len::Fixed(_) | Len::At(IntegerLocation { through: None, .. }))
                && matches!(pointer.to, Pointee::Values(..) | Pointee::Handle(_) | Pointee::Struct(_))
        }
        _ => false,
    }
}

fn collect_structures(model: &Model, work: &Fixup, structures: &mut BTreeSet<String>) {
    let Fixup::Pointer { pointer, .. } = work else { return };
    let Pointee::Struct(name) = &pointer.to else { return };
    if structures.insert(name.clone()) {
        let layout = &model.layouts[name];
        assert!(layout.fixups.iter().all(is_simple), "{name} cannot be packed in a straight line");
        for fixup in &layout.fixups {
            collect_structures(model, fixup, structures);
        }
    }
}

/// The pointers of a layout, with the names of their fields.
fn pointers(layout: &Layout) -> Vec<(String, u32, &Pointer)> {
    let mut out = Vec::new();
    for work in &layout.fixups {
        if let Fixup::Pointer { at, pointer } = work
            && let Some(field) = layout.fields.iter().find(|it| it.at == *at)
        {
            out.push((field.rust_name.clone(), *at, pointer.as_ref()));
        }
    }
    out
}

fn count(layout: &Layout, pointer: &Pointer) -> String {
    match &pointer.len {
        Len::Fixed(count) => count.to_string(),
        Len::At(place) => {
            let field = layout.fields.iter().find(|it| it.at == place.at);
            format!("it.{} as usize", field.map_or("", |it| &it.rust_name))
        }
        _ => "0".to_owned(),
    }
}

fn chains(layout: &Layout) -> Vec<&str> {
    let chained = layout.fixups.iter().filter_map(|fixup| match fixup {
        Fixup::Chain { at } => layout.fields.iter().find(|field| field.at == *at),
        _ => None,
    });
    chained.map(|it| it.rust_name.as_str()).collect()
}

/// The size in words of all blocks of a structure, and the code that writes the structure with its blocks.
fn emit_structure(layout: &Layout, model: &Model, out: &mut String) {
    let rust = &layout.rust_name;
    let safety =
        "// SAFETY: the generator takes `WORDS` from the size, and both functions from the same fields, in one order.";
    let words = layout.size.div_ceil(8);
    let _ = writeln!(out, "\n{safety}\nunsafe impl FastPack for {rust} {{\n    const WORDS: usize = {words};");
    let is_flat = layout.fixups.is_empty() && layout.gaps.is_empty();
    let _ = writeln!(out, "    const IS_FLAT: bool = {is_flat};");
    if !chains(layout).is_empty() || !pointers(layout).is_empty() {
        let _ = writeln!(out, "\n    #[inline(always)]\n    unsafe fn trailing_words(it: &Self) -> Option<usize> {{");
        let _ = writeln!(out, "{}    }}", block_size_lines(layout, 8));
    }
    if !is_flat {
        let body = write_lines(layout, model, 12);
        let text = if body.contains("it.") { "it" } else { "_it" };
        let head = format!(
            "unsafe fn finish_copy<I: IdResolver + ?Sized>({text}: &Self, at: usize, lines: &mut RecordWriter<'_, I>)"
        );
        let name = &layout.c_name;
        let what = if name.starts_with("vk") { format!("parameters of `{name}`") } else { format!("`{name}`") };
        let mut safety = format!("        // SAFETY: by the contract the copy of the {what} lies at `at`");
        safety += match &*pointers(layout) {
            [] => "; these are its fields.\n",
            _ => {
                ". There is room\n        // for what its pointers lead to, each to as many elements as the field says that counts them.\n"
            }
        };
        let body = format!("{safety}        unsafe {{\n{body}        }}\n");
        let _ = writeln!(out, "\n    #[inline(always)]\n    {head} {{\n{body}    }}");
    }
    let _ = writeln!(out, "}}");
}

fn block_size_lines(layout: &Layout, indent: usize) -> String {
    let mut out = String::new();
    for chain in chains(layout) {
        let _ = writeln!(
            out,
            "{:indent$}if !it.{chain}.is_null() {{\n{:indent$}    return None;\n{:indent$}}}",
            "", "", ""
        );
    }
    let mut terms = Vec::new();
    for (name, _, pointer) in pointers(layout) {
        let count = count(layout, pointer);
        terms.push(match &pointer.to {
            Pointee::Values(size, ..) => format!("byte_words(it.{name}.0, {count} * {size})"),
            Pointee::Handle(_) => format!("byte_words(it.{name}.0, {count} * 8)"),
            _ => format!("unsafe {{ array_words(it.{name}, {count}) }}?"),
        });
    }
    if terms.iter().any(|it| it.starts_with("unsafe")) {
        let safety = "// SAFETY: by the contract a pointer is null or leads to as many elements as the field says that counts them.";
        let _ = writeln!(out, "{:indent$}{safety}", "");
    }
    let sum = if terms.is_empty() { "0".to_owned() } else { terms.join(" + ") };
    let _ = writeln!(out, "{:indent$}Some({sum})", "");
    out
}

fn write_lines(layout: &Layout, model: &Model, indent: usize) -> String {
    let mut out = String::new();
    let mut line = |text: String| {
        let _ = writeln!(out, "{:indent$}{text}", "");
    };
    for gap in &layout.gaps {
        line(format!("lines.zero(at + {}, {});", gap.at, gap.size));
    }
    for work in &layout.fixups {
        let field = |at: u32| layout.fields.iter().find(|it| it.at == at);
        match work {
            Fixup::Chain { at } => line(format!("lines.word(at + {at}, 0);")),
            Fixup::Handles { at, ty, exclusive, .. } => {
                let ty = names::type_name(ty);
                // Handles in inline structures have no field of their own in this layout.
                let value = match field(*at).map(|it| (&it.ty, &it.rust_name)) {
                    Some((Ty::Handle(_), name)) => format!("it.{name}.0"),
                    _ => format!("lines.read(at + {at})"),
                };
                let access = access(*exclusive);
                line(format!("lines.handle(at + {at}, HandleType::{ty}, {value}, {access});"));
            }
            Fixup::Pointer { at, pointer } => {
                let name = field(*at).map_or("", |it| it.rust_name.as_str());
                let count = count(layout, pointer);
                line(match &pointer.to {
                    Pointee::Values(size, ..) => format!("lines.values(at + {at}, it.{name}.0, {count} * {size});"),
                    Pointee::Handle(ty) => {
                        let ty = names::type_name(ty);
                        let access = access(pointer.exclusive);
                        format!("lines.handles(at + {at}, it.{name}.0, {count}, HandleType::{ty}, {access});")
                    }
                    Pointee::Struct(inner) => {
                        debug_assert!(model.layouts.contains_key(inner), "structures are in the model");
                        format!("lines.blocks(at + {at}, it.{name}, {count});")
                    }
                    _ => String::new(),
                });
            }
            _ => {}
        }
    }
    out
}

fn emit_command(command: &CommandModel, model: &Model, out: &mut String) {
    emit_structure(&command.parameters, model, out);
    let (name, function) = (&command.c_name, names::snake_case(&command.rust_name));
    let pointers = pointers(&command.parameters);
    let usages: Vec<String> = pointers.iter().map(|it| usage(command, it.1)).collect();
    let _ =
        writeln!(out, "\n/// The record of a `{name}`; none where the walker must make it.\n///\n/// # Safety\n///");
    let _ = match &*usages {
        [] => writeln!(out, "/// None to keep: the command has no pointers. It is unsafe as that of every command is."),
        all => writeln!(out, "/// The pointers of `it` must be valid as these demand: {}.", all.join(", ")),
    };
    let head = format!("pub unsafe fn {function}<'s, S: RecordSpace, I: IdResolver + ?Sized>(");
    let rust = &command.parameters.rust_name;
    let _ = writeln!(
        out,
        "#[inline(always)]\n{head}space: &'s mut S, ids: &I, call: u64, it: &{rust}) -> Option<&'s [u64]> {{"
    );
    let _ = match &*usages {
        [] => writeln!(out, "    // SAFETY: a `{name}` has no pointers, so none can lead to too few elements."),
        all => {
            writeln!(out, "    // SAFETY: by the contract, each pointer leads to what it should: {}.", all.join(", "))
        }
    };
    let _ = writeln!(
        out,
        "    unsafe {{ RecordWriter::write_record(space, ids, Command::{}, call, it) }}\n}}",
        command.rust_name
    );
}

/// The valid usage rule that makes a pointer parameter of a command valid.
fn usage(command: &CommandModel, at: u32) -> String {
    let field = command.parameters.fields.iter().find(|it| it.at == at);
    format!("VUID-{}-{}-parameter", command.c_name, field.map_or("", |it| it.c_name.as_str()))
}

/// Selects the function by command number, for tests and for callers that have an image.
fn emit_dispatch(commands: &[&CommandModel], out: &mut String) {
    let _ = writeln!(out, "\n/// The commands that have a straight line.\npub const COMMANDS: &[Command] = &[");
    for command in commands {
        let _ = writeln!(out, "    Command::{},", command.rust_name);
    }
    let _ = writeln!(out, "];");
    let _ = writeln!(
        out,
        "\n/// The record of a call in a straight line; none where there is none or the walker must make it.\n///\n/// # Safety\n///\n\
         /// `image` must be the parameters of a call of `command` whose pointers are valid as the specification demands.\n\
         pub unsafe fn pack<'s, I: IdResolver + ?Sized>(stream: &'s mut RecordBuffer, ids: &I, command: Command, call: u64, image: *const u8) -> Option<&'s [u64]> {{\n    match command {{"
    );
    for command in commands {
        let _ = writeln!(
            out,
            "        // SAFETY: `image` is the parameters of a `{}` here, by the contract, with what its own one demands.\n        Command::{} => unsafe {{ {}(stream, ids, call, &*image.cast()) }},",
            command.c_name,
            command.rust_name,
            names::snake_case(&command.rust_name),
        );
    }
    let _ = writeln!(out, "        _ => None,\n    }}\n}}");
}
