//! Emits the in-place unpacking of `marshal`: it turns records of frequent commands into C memory without a copy.
//!
//! The generated code accepts only records that `check` accepts, and its result equals that of the walker; a test
//! compares the two. Records with anything unusual, for instance a chain, are left to the walkers.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::PathBuf;

use crate::Files;
use crate::emit::text::SourceText;
use crate::model::names;
use crate::model::*;

/// Commands that programs call in every frame, besides the recorded ones.
const HOT: &[&str] = &[
    "vkBeginCommandBuffer",
    "vkEndCommandBuffer",
    "vkQueueSubmit",
    "vkQueueSubmit2",
    "vkResetCommandBuffer",
    "vkResetCommandPool",
    "vkResetDescriptorPool",
    "vkResetEvent",
    "vkResetFences",
    "vkSetEvent",
    "vkUpdateDescriptorSets",
];

pub(crate) fn emit(model: &Model, files: &mut Files) {
    let mut text = SourceText::rust("marshal", "in_place");
    text.blank();
    text.line("use lavascope_abi::*;");
    text.blank();
    text.line("use crate::in_place::{InPlaceChecker, InPlaceImage, UnpackInPlace, InPlaceWriter, unpack_record};");
    text.line("use crate::unpack::HandleResolver;");
    let mut structures = BTreeSet::new();
    let mut commands = Vec::new();
    for command in model.commands.values().filter(|it| is_unpacked_in_place(model, it)) {
        for fixup in &command.parameters.fixups {
            collect_structures(model, fixup, &mut structures);
        }
        commands.push(command);
    }
    let mut body = String::new();
    for name in &structures {
        emit_image(&model.layouts[name], &mut body);
    }
    for command in &commands {
        emit_image(&command.parameters, &mut body);
    }
    emit_dispatch(&commands, &mut body);
    files.insert(PathBuf::from("crates/record/marshal/src/generated/in_place.rs"), text.finish() + &body);
}

/// Whether records of a command are unpacked in place.
fn is_unpacked_in_place(model: &Model, command: &CommandModel) -> bool {
    let name = command.c_name.as_str();
    let is_hot = name.starts_with("vkCmd") || HOT.contains(&name);
    is_hot && command.parameters.fixups.iter().all(|it| is_simple(it) && points_to_known(model, it, 0))
}

/// Whether the generated code can do this fixup. Ignored pointers need no case: they are null in a record.
fn is_simple(work: &Fixup) -> bool {
    match work {
        Fixup::Chain { .. } | Fixup::Handles { .. } => true,
        Fixup::Pointer { pointer, .. } => {
            pointer.direction == Direction::In
                && pointer.stride.is_none()
                && matches!(pointer.len, Len::Fixed(_) | Len::At(IntegerLocation { through: None, .. }))
                && matches!(pointer.to, Pointee::Values(..) | Pointee::Handle(_) | Pointee::Struct(_))
        }
        _ => false,
    }
}

/// Whether the structures that it points to contain only supported fixups, and pointers that may have to be null.
fn points_to_known(model: &Model, work: &Fixup, depth: u32) -> bool {
    const DEPTH_MAX: u32 = 6;
    let Fixup::Pointer { pointer, .. } = work else { return true };
    let Pointee::Struct(name) = &pointer.to else { return true };
    let inner = &model.layouts[name].fixups;
    let is_known = |it: &Fixup| matches!(it, Fixup::Pointer { .. }) || is_simple(it);
    depth < DEPTH_MAX
        && inner.iter().all(is_known)
        && inner.iter().filter(|it| is_simple(it)).all(|it| points_to_known(model, it, depth + 1))
}

fn collect_structures(model: &Model, work: &Fixup, structures: &mut BTreeSet<String>) {
    let Fixup::Pointer { pointer, .. } = work else { return };
    let Pointee::Struct(name) = &pointer.to else { return };
    if is_simple(work) && structures.insert(name.clone()) {
        for fixup in &model.layouts[name].fixups {
            collect_structures(model, fixup, structures);
        }
    }
}

fn emit_image(layout: &Layout, out: &mut String) {
    let is_flat = layout.fixups.is_empty() && layout.gaps.is_empty();
    let safety = "// SAFETY: the generator names places of its fields only, and the same for both functions.";
    let _ = writeln!(out, "\n{safety}\nunsafe impl InPlaceImage for {} {{", layout.rust_name);
    let _ = writeln!(out, "    const SIZE: usize = {};\n    const IS_FLAT: bool = {is_flat};", layout.size);
    let conditions = validity_conditions(layout);
    if !conditions.is_empty() {
        let conditions = conditions.join(" && ");
        let _ = writeln!(
            out,
            "    #[inline(always)]\n    fn check_at(at: usize, it: &mut InPlaceChecker<'_>) -> bool {{ {conditions} }}"
        );
    }
    let steps = relocation_lines(layout);
    if !steps.is_empty() {
        let (head, steps) =
            ("fn unpack_at<H: HandleResolver + ?Sized>(at: usize, it: &mut InPlaceWriter<'_, H>)", steps.join(" "));
        let _ = writeln!(out, "    #[inline(always)]\n    {head} {{ {steps} }}");
    }
    let _ = writeln!(out, "}}");
}

/// The conditions that the record must satisfy.
fn validity_conditions(layout: &Layout) -> Vec<String> {
    let mut all: Vec<String> =
        layout.gaps.iter().map(|it| format!("it.is_zero(at + {}, {})", it.at, it.size)).collect();
    for work in &layout.fixups {
        all.push(match work {
            Fixup::Handles { at, count, ty, .. } => {
                format!("it.is_handles(at + {at}, {count}, HandleType::{})", names::type_name(ty))
            }
            Fixup::Pointer { at, pointer } if is_simple(work) => {
                let count = count(pointer);
                match &pointer.to {
                    Pointee::Values(size, ..) => format!("it.values(at + {at}, {count}, {size})"),
                    Pointee::Handle(ty) => {
                        format!("it.handles(at + {at}, {count}, HandleType::{})", names::type_name(ty))
                    }
                    Pointee::Struct(name) => format!("it.images::<{}>(at + {at}, {count})", names::type_name(name)),
                    _ => "false".to_owned(),
                }
            }
            // A chain, or a pointer that only the walkers support.
            other => format!("it.is_zero(at + {}, 8)", other.at()),
        });
    }
    all
}

/// Lines that replace ids by handles, and offsets by addresses.
fn relocation_lines(layout: &Layout) -> Vec<String> {
    let mut all = Vec::new();
    for work in &layout.fixups {
        match work {
            Fixup::Handles { at, count, ty, .. } => {
                all.push(format!("it.translate_handles(at + {at}, {count}, HandleType::{});", names::type_name(ty)));
            }
            Fixup::Pointer { at, pointer } if is_simple(work) => {
                let count = count(pointer);
                all.push(match &pointer.to {
                    Pointee::Handle(ty) => {
                        format!("it.handles(at + {at}, {count}, HandleType::{});", names::type_name(ty))
                    }
                    Pointee::Struct(name) => format!("it.images::<{}>(at + {at}, {count});", names::type_name(name)),
                    _ => format!("it.pointer(at + {at});"),
                });
            }
            _ => {}
        }
    }
    all
}

fn count(pointer: &Pointer) -> String {
    match &pointer.len {
        Len::Fixed(count) => count.to_string(),
        Len::At(IntegerLocation { at, width, .. }) => format!("it.number::<{width}>(at + {at})"),
        _ => "0".to_owned(),
    }
}

fn emit_dispatch(commands: &[&CommandModel], out: &mut String) {
    let _ = writeln!(
        out,
        "\n/// How records of a command become C memory where they lie; none where only the walkers know.\n\
         pub fn unpacker_for<H: HandleResolver + ?Sized>(command: Command) -> Option<UnpackInPlace<H>> {{\n    Some(match command {{"
    );
    for command in commands {
        let _ = writeln!(
            out,
            "        Command::{} => unpack_record::<{}, H>,",
            command.rust_name, command.parameters.rust_name
        );
    }
    let _ = writeln!(out, "        _ => return None,\n    }})\n}}");
}
