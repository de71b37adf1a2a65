//! Emits the other half of `marshal`: records of the hottest commands made into C memory where they lie.
//!
//! The output accepts only records that `check` accepts, and gives what unpacking gives; a test holds them together.
//! A record that is unusual in any way, with a chain for instance, is left to the walkers.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::PathBuf;

use crate::Files;
use crate::model::*;
use crate::names;
use crate::text::Text;

/// Commands beside the recorded ones that programs call in every frame.
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
    let mut text = Text::rust("marshal", "in_place");
    text.blank();
    text.line("use lavascope_abi::*;");
    text.blank();
    text.line("use crate::in_place::{InPlaceChecker, InPlaceImage, UnpackInPlace, InPlaceWriter, unpack_record};");
    text.line("use crate::unpack::HandleResolver;");
    let mut structures = BTreeSet::new();
    let mut commands = Vec::new();
    for command in model.commands.values().filter(|it| is_placed(model, it)) {
        for it in &command.parameters.work {
            collect(model, it, &mut structures);
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

/// Whether records of a command are made into C memory where they lie.
fn is_placed(model: &Model, command: &Command) -> bool {
    let name = command.c_name.as_str();
    let is_hot = name.starts_with("vkCmd") || HOT.contains(&name);
    is_hot && command.parameters.work.iter().all(|it| is_simple(it) && leads_to_known(model, it, 0))
}

/// What can be done where it lies. Which pointers a call ignores is no matter: they are null in a record.
fn is_simple(work: &Work) -> bool {
    match work {
        Work::Chain { .. } | Work::Handles { .. } => true,
        Work::Pointer { pointer, .. } => {
            pointer.direction == Direction::In
                && pointer.stride.is_none()
                && matches!(pointer.len, Len::Fixed(_) | Len::At(Place { through: None, .. }))
                && matches!(pointer.to, Target::Values(..) | Target::Handle(_) | Target::Struct(_))
        }
        _ => false,
    }
}

/// Whether structures behind it hold nothing but what is known here, and pointers, which may have to be null.
fn leads_to_known(model: &Model, work: &Work, depth: u32) -> bool {
    const DEPTH_MAX: u32 = 6;
    let Work::Pointer { pointer, .. } = work else { return true };
    let Target::Struct(name) = &pointer.to else { return true };
    let inner = &model.layouts[name].work;
    let is_known = |it: &Work| matches!(it, Work::Pointer { .. }) || is_simple(it);
    depth < DEPTH_MAX
        && inner.iter().all(is_known)
        && inner.iter().filter(|it| is_simple(it)).all(|it| leads_to_known(model, it, depth + 1))
}

fn collect(model: &Model, work: &Work, structures: &mut BTreeSet<String>) {
    let Work::Pointer { pointer, .. } = work else { return };
    let Target::Struct(name) = &pointer.to else { return };
    if is_simple(work) && structures.insert(name.clone()) {
        for it in &model.layouts[name].work {
            collect(model, it, structures);
        }
    }
}

fn emit_image(layout: &Layout, out: &mut String) {
    let is_flat = layout.work.is_empty() && layout.gaps.is_empty();
    let safety = "// SAFETY: the generator names places of its fields only, and the same for both functions.";
    let _ = writeln!(out, "\n{safety}\nunsafe impl InPlaceImage for {} {{", layout.rust_name);
    let _ = writeln!(out, "    const SIZE: usize = {};\n    const IS_FLAT: bool = {is_flat};", layout.size);
    let conditions = conditions(layout);
    if !conditions.is_empty() {
        let conditions = conditions.join(" && ");
        let _ = writeln!(
            out,
            "    #[inline(always)]\n    fn check_at(at: usize, it: &mut InPlaceChecker<'_>) -> bool {{ {conditions} }}"
        );
    }
    let steps = steps(layout);
    if !steps.is_empty() {
        let (head, steps) = ("fn unpack_at<H: HandleResolver + ?Sized>(at: usize, it: &mut InPlaceWriter<'_, H>)", steps.join(" "));
        let _ = writeln!(out, "    #[inline(always)]\n    {head} {{ {steps} }}");
    }
    let _ = writeln!(out, "}}");
}

/// What must be so for a record to be what it says.
fn conditions(layout: &Layout) -> Vec<String> {
    let mut all: Vec<String> =
        layout.gaps.iter().map(|it| format!("it.is_zero(at + {}, {})", it.at, it.size)).collect();
    for work in &layout.work {
        all.push(match work {
            Work::Handles { at, count, ty, .. } => {
                format!("it.is_handles(at + {at}, {count}, HandleType::{})", names::type_name(ty))
            }
            Work::Pointer { at, pointer } if is_simple(work) => {
                let count = count(pointer);
                match &pointer.to {
                    Target::Values(size, ..) => format!("it.values(at + {at}, {count}, {size})"),
                    Target::Handle(ty) => {
                        format!("it.handles(at + {at}, {count}, HandleType::{})", names::type_name(ty))
                    }
                    Target::Struct(name) => format!("it.images::<{}>(at + {at}, {count})", names::type_name(name)),
                    _ => "false".to_owned(),
                }
            }
            // A chain, or a pointer that the walkers know.
            other => format!("it.is_zero(at + {}, 8)", other.at()),
        });
    }
    all
}

/// What becomes of handles and pointers.
fn steps(layout: &Layout) -> Vec<String> {
    let mut all = Vec::new();
    for work in &layout.work {
        match work {
            Work::Handles { at, count, ty, .. } => {
                all.push(format!("it.translate_handles(at + {at}, {count}, HandleType::{});", names::type_name(ty)));
            }
            Work::Pointer { at, pointer } if is_simple(work) => {
                let count = count(pointer);
                all.push(match &pointer.to {
                    Target::Handle(ty) => {
                        format!("it.handles(at + {at}, {count}, HandleType::{});", names::type_name(ty))
                    }
                    Target::Struct(name) => format!("it.images::<{}>(at + {at}, {count});", names::type_name(name)),
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
        Len::At(Place { at, width, .. }) => format!("it.number::<{width}>(at + {at})"),
        _ => "0".to_owned(),
    }
}

fn emit_dispatch(commands: &[&Command], out: &mut String) {
    let _ = writeln!(
        out,
        "\n/// How records of a command become C memory where they lie; none where only the walkers know.\n\
         pub fn unpacker_for<H: HandleResolver + ?Sized>(command: Command) -> Option<UnpackInPlace<H>> {{\n    Some(match command {{"
    );
    for command in commands {
        let _ =
            writeln!(out, "        Command::{} => unpack_record::<{}, H>,", command.rust_name, command.parameters.rust_name);
    }
    let _ = writeln!(out, "        _ => return None,\n    }})\n}}");
}
