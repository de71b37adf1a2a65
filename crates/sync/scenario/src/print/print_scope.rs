//! Stages, accesses and dependencies as text.

use lavascope_sync_ir::{Dependency, DependencyTarget, QueueFamilyTransfer, SyncScope};

use crate::DeclaredNames;
use crate::parse::region::{ByteRangeText, region_text};
use crate::parse::scope::FAMILIES;
use crate::parse::words::{FlagWord, accesses, implied_access, is_write_access, stages};

pub(crate) fn stages_text(bits: u64) -> String {
    words(stages(), bits)
}

/// The accesses at some stages: `read` and `write` where that says it all.
pub(crate) fn accesses_text(at: u64, bits: u64) -> String {
    if bits.count_ones() == 1 {
        let is_write = is_write_access(bits);
        if implied_access(at, is_write) == Some(bits) {
            return if is_write { "write" } else { "read" }.to_owned();
        }
    }
    words(accesses(), bits)
}

pub(crate) fn scope_text(scope: &SyncScope) -> String {
    let src = side(scope.src_stages, scope.src_access);
    let dst = side(scope.dst_stages, scope.dst_access);
    format!("{src} => {dst}")
}

fn side(stages: u64, access: u64) -> String {
    match access {
        0 => stages_text(stages),
        _ => format!("{}:{}", stages_text(stages), accesses_text(stages, access)),
    }
}

/// Each bit's word in the order of the registry, and what has none as hexadecimal.
fn words(entries: &[FlagWord], bits: u64) -> String {
    if bits == 0 {
        return "none".to_owned();
    }
    let mut rest = bits;
    let mut found = Vec::new();
    for entry in entries {
        if rest & entry.bits == entry.bits {
            rest &= !entry.bits;
            found.push(entry.word.clone());
        }
    }
    if rest != 0 {
        found.push(format!("{rest:#x}"));
    }
    found.join("|")
}

/// Dependencies of version 2.
pub(crate) fn version_2_text(
    program: &lavascope_sync_ir::Program,
    names: &DeclaredNames,
    all: &[Dependency],
) -> String {
    let one = |it: &Dependency| format!("{}{}", scope_text(&it.scope), what(program, names, &it.target));
    all.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// Version 1.
pub(crate) fn version_1_text(
    program: &lavascope_sync_ir::Program,
    names: &DeclaredNames,
    src_stages: u64,
    dst_stages: u64,
    all: &[Dependency],
) -> String {
    let mut text = format!("{} => {}", stages_text(src_stages), stages_text(dst_stages));
    let one = |dependency: &Dependency| {
        let src = accesses_text(src_stages, dependency.scope.src_access);
        let dst = accesses_text(dst_stages, dependency.scope.dst_access);
        format!("{src} => {dst}{}", what(program, names, &dependency.target))
    };
    if !all.is_empty() {
        text.push_str(": ");
        text.push_str(&all.iter().map(one).collect::<Vec<_>>().join(", "));
    }
    text
}

fn what(program: &lavascope_sync_ir::Program, names: &DeclaredNames, what: &DependencyTarget) -> String {
    let part = |id: &lavascope_sync_ir::ResourceId, region| {
        region_text(
            &names.resources[id.0 as usize],
            &program.resources[id.0 as usize],
            region,
            ByteRangeText::OnlyIfPartial,
        )
    };
    match what {
        DependencyTarget::Global => String::new(),
        DependencyTarget::Resource { resource, region } => format!(" {}", part(resource, region)),
        DependencyTarget::Transition { resource, region } => format!(" layout {}", part(resource, region)),
        DependencyTarget::QueueFamilyTransfer { resource, region, transfer: ownership } => {
            let QueueFamilyTransfer { src_family, dst_family, is_transition } = *ownership;
            let layout = if is_transition { " layout" } else { "" };
            format!(" owner {} {} -> {}{layout}", part(resource, region), family(src_family), family(dst_family))
        }
    }
}

fn family(number: u32) -> String {
    FAMILIES.iter().find(|it| it.1 == number).map_or_else(|| number.to_string(), |it| it.0.to_owned())
}
