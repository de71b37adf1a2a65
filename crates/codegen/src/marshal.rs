//! Emits `marshal`: the hottest commands packed in straight lines.
//!
//! The output is byte for byte what the walker gives; a test holds the two together. A call that is unusual in any
//! way, with a chain for instance, is left to the walker.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::PathBuf;

use crate::Files;
use crate::model::*;
use crate::names;
use crate::tables::access;
use crate::text::Text;

/// Commands with pointers that programs record most.
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
    let mut text = Text::rust("marshal", "marshal");
    text.blank();
    text.line("pub(crate) mod in_place;");
    text.blank();
    text.line("use lavascope_abi::desc::Access;");
    text.line("use lavascope_abi::*;");
    text.blank();
    text.line("use crate::pack::Ids;");
    text.line("use crate::straight::{Block, Lines, Space, array, bytes};");
    text.line("use crate::stream::Stream;");
    let mut structures = BTreeSet::new();
    let mut commands = Vec::new();
    for command in model.commands.values() {
        if !is_straight(command) {
            continue;
        }
        for it in &command.parameters.work {
            collect(model, it, &mut structures);
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
    files.insert(PathBuf::from("crates/marshal/src/generated/mod.rs"), text.finish() + &body);
}

/// Whether a command is packed in a straight line.
pub(crate) fn is_straight(command: &Command) -> bool {
    let is_hot = HOT.contains(&command.c_name.as_str());
    let is_plain = command.c_name.starts_with("vkCmd") && !command.parameters.leads_on();
    (is_hot || is_plain) && command.parameters.work.iter().all(is_simple)
}

/// What a straight line can do.
fn is_simple(work: &Work) -> bool {
    match work {
        Work::Chain { .. } | Work::Handles { .. } => true,
        Work::Pointer { pointer, .. } => {
            pointer.read == Read::Always
                && pointer.direction == Direction::In
                && pointer.stride.is_none()
                && matches!(pointer.len, Len::Fixed(_) | Len::At(Place { through: None, .. }))
                && matches!(pointer.to, Target::Values(..) | Target::Handle(_) | Target::Struct(_))
        }
        _ => false,
    }
}

fn collect(model: &Model, work: &Work, structures: &mut BTreeSet<String>) {
    let Work::Pointer { pointer, .. } = work else { return };
    let Target::Struct(name) = &pointer.to else { return };
    if structures.insert(name.clone()) {
        let layout = &model.layouts[name];
        assert!(layout.work.iter().all(is_simple), "{name} cannot be packed in a straight line");
        for it in &layout.work {
            collect(model, it, structures);
        }
    }
}

/// Pointers of a layout with the field that names each.
fn pointers(layout: &Layout) -> Vec<(String, u32, &Pointer)> {
    let mut out = Vec::new();
    for work in &layout.work {
        if let Work::Pointer { at, pointer } = work
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
    let chained = layout.work.iter().filter_map(|it| match it {
        Work::Chain { at } => layout.fields.iter().find(|field| field.at == *at),
        _ => None,
    });
    chained.map(|it| it.rust_name.as_str()).collect()
}

/// The words of all blocks behind a structure, and the structure written with its blocks.
fn emit_structure(layout: &Layout, model: &Model, out: &mut String) {
    let rust = &layout.rust_name;
    let _ = writeln!(out, "\nimpl Block for {rust} {{\n    const WORDS: usize = {};", layout.size.div_ceil(8));
    let is_flat = layout.work.is_empty() && layout.gaps.is_empty();
    let _ = writeln!(out, "    const IS_FLAT: bool = {is_flat};");
    if !chains(layout).is_empty() || !pointers(layout).is_empty() {
        let _ = writeln!(out, "\n    #[inline(always)]\n    fn behind(it: &Self) -> Option<usize> {{");
        let _ = writeln!(out, "{}    }}", behind(layout, 8));
    }
    if !is_flat {
        let body = finish(layout, model, 8);
        let it = if body.contains("it.") { "it" } else { "_it" };
        let head = format!("fn finish<I: Ids + ?Sized>({it}: &Self, at: usize, lines: &mut Lines<'_, I>)");
        let _ = writeln!(out, "\n    #[inline(always)]\n    {head} {{\n{body}    }}");
    }
    let _ = writeln!(out, "}}");
}

fn behind(layout: &Layout, indent: usize) -> String {
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
            Target::Values(size, ..) => format!("bytes(it.{name}.0, {count} * {size})"),
            Target::Handle(_) => format!("bytes(it.{name}.0, {count} * 8)"),
            _ => format!("array(it.{name}, {count})?"),
        });
    }
    let sum = if terms.is_empty() { "0".to_owned() } else { terms.join(" + ") };
    let _ = writeln!(out, "{:indent$}Some({sum})", "");
    out
}

fn finish(layout: &Layout, model: &Model, indent: usize) -> String {
    let mut out = String::new();
    let mut line = |text: String| {
        let _ = writeln!(out, "{:indent$}{text}", "");
    };
    for gap in &layout.gaps {
        line(format!("lines.zero(at + {}, {});", gap.at, gap.size));
    }
    for work in &layout.work {
        let field = |at: u32| layout.fields.iter().find(|it| it.at == at);
        match work {
            Work::Chain { at } => line(format!("lines.word(at + {at}, 0);")),
            Work::Handles { at, ty, exclusive, .. } => {
                let ty = names::type_name(ty);
                // Handles inside inline structures have no field of their own here.
                let value = match field(*at).map(|it| (&it.ty, &it.rust_name)) {
                    Some((Ty::Handle(_), name)) => format!("it.{name}.0"),
                    _ => format!("lines.read(at + {at})"),
                };
                let access = access(*exclusive);
                line(format!("lines.handle(at + {at}, HandleType::{ty}, {value}, {access});"));
            }
            Work::Pointer { at, pointer } => {
                let name = field(*at).map_or("", |it| it.rust_name.as_str());
                let count = count(layout, pointer);
                line(match &pointer.to {
                    Target::Values(size, ..) => format!("lines.values(at + {at}, it.{name}.0, {count} * {size});"),
                    Target::Handle(ty) => {
                        let ty = names::type_name(ty);
                        let access = access(pointer.exclusive);
                        format!("lines.handles(at + {at}, it.{name}.0, {count}, HandleType::{ty}, {access});")
                    }
                    Target::Struct(inner) => {
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

fn emit_command(command: &Command, model: &Model, out: &mut String) {
    emit_structure(&command.parameters, model, out);
    let _ = writeln!(
        out,
        "\n/// The record of a `{0}`; none where the walker must make it.\n///\n/// # Safety\n///\n/// As for `Packer::new`.\n#[inline(always)]\npub unsafe fn {1}<'s, S: Space, I: Ids + ?Sized>(space: &'s mut S, ids: &I, call: u64, it: &{2}) -> Option<&'s [u64]> {{\n    \
         // SAFETY: the caller says that the parameters are valid.\n    unsafe {{ Lines::record(space, ids, Command::{3}, call, it) }}\n}}",
        command.c_name,
        names::snake(&command.rust_name),
        command.parameters.rust_name,
        command.rust_name,
    );
}

/// By number, for tests and for callers that have an image.
fn emit_dispatch(commands: &[&Command], out: &mut String) {
    let _ = writeln!(out, "\n/// The commands that have a straight line.\npub const COMMANDS: &[Command] = &[");
    for command in commands {
        let _ = writeln!(out, "    Command::{},", command.rust_name);
    }
    let _ = writeln!(out, "];");
    let _ = writeln!(
        out,
        "\n/// The record of a call in a straight line; none where there is none or the walker must make it.\n///\n/// # Safety\n///\n\
         /// `image` must be the parameters of a call of `command`, as for `Packer::new`.\n\
         pub unsafe fn pack<'s, I: Ids + ?Sized>(stream: &'s mut Stream, ids: &I, command: Command, call: u64, image: *const u8) -> Option<&'s [u64]> {{\n    match command {{"
    );
    for command in commands {
        let _ = writeln!(
            out,
            "        // SAFETY: the caller says that the image is of this command.\n        Command::{} => unsafe {{ {}(stream, ids, call, &*image.cast()) }},",
            command.rust_name,
            names::snake(&command.rust_name),
        );
    }
    let _ = writeln!(out, "        _ => None,\n    }}\n}}");
}
