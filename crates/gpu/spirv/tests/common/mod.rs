//! The shaders of the tests, and accesses as short lines.

#![allow(dead_code, reason = "no test binary uses all of it")]

use std::path::{Path, PathBuf};

use lavascope_spirv::{
    AccessBytes, AccessKind, AccessMode, AccessTarget, DescriptorElement, InvocationBytes, Module, OffsetTerm,
    Quantity, Reflection, ShaderAccess, Specialization, ValueSource,
};
use spirv::BuiltIn;

pub(crate) mod assemble;

/// The folder of the sources and of what they were compiled into.
pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/shaders")
}

/// Every compiled shader of the repository.
pub(crate) fn compiled() -> Vec<PathBuf> {
    let folders = [folder(), Path::new(env!("CARGO_MANIFEST_DIR")).join("../../dev/samples/shaders")];
    let files = folders.iter().flat_map(|it| std::fs::read_dir(it).expect("the folder of the shaders"));
    let mut paths: Vec<PathBuf> = files.map(|it| it.expect("a file").path()).collect();
    paths.retain(|it| it.extension().is_some_and(|it| it == "spv"));
    paths.sort();
    paths
}

pub(crate) fn words(path: &Path) -> Vec<u32> {
    let bytes = std::fs::read(path).expect("a compiled shader");
    bytes.chunks_exact(4).map(|it| u32::from_le_bytes([it[0], it[1], it[2], it[3]])).collect()
}

/// A shader of the tests by the name of its source.
pub(crate) fn shader(name: &str) -> Module {
    Module::parse(&words(&folder().join(format!("{name}.spv")))).expect("a module")
}

pub(crate) fn reflect(name: &str) -> Reflection {
    reflect_with(name, &[])
}

/// With specialization constants of 32 bits.
pub(crate) fn reflect_with(name: &str, constants: &[(u32, u32)]) -> Reflection {
    let constants = constants.iter().map(|(id, value)| (*id, value.to_le_bytes().to_vec()));
    let specialization = Specialization::new(constants);
    lavascope_spirv::reflect(&shader(name), 0, &specialization).expect("an entry point")
}

/// The accesses as lines: resource, range, kind. A question mark follows accesses that are not certain.
pub(crate) fn lines(reflection: &Reflection) -> Vec<String> {
    reflection.accesses.iter().map(|it| line(reflection, it)).collect()
}

/// The lines that begin with a word.
pub(crate) fn lines_of(reflection: &Reflection, what: &str) -> Vec<String> {
    lines(reflection).into_iter().filter(|it| it.split([' ', '[']).next() == Some(what)).collect()
}

fn line(reflection: &Reflection, access: &ShaderAccess) -> String {
    let what = match &access.target {
        AccessTarget::Descriptor { descriptor, element, bytes: range } => {
            let descriptor = &reflection.descriptors[*descriptor];
            let element = if descriptor.count == Some(1) { String::new() } else { format!("[{}]", index(element)) };
            let range = range.map(|it| format!(" {}", bytes(it))).unwrap_or_default();
            format!("{}.{}{element}{range}", descriptor.set, descriptor.binding)
        }
        AccessTarget::PushConstant { bytes: range } => format!("push {}", bytes(*range)),
        AccessTarget::Address { from, bytes: range } => {
            format!("*({}) {}", from.as_ref().map_or("unknown".to_owned(), source_text), bytes(*range))
        }
    };
    let mode = match access.mode {
        AccessMode::None => "uses",
        AccessMode::Read => "reads",
        AccessMode::Write => "writes",
        AccessMode::ReadWrite => "reads and writes",
    };
    let kind = match access.kind {
        AccessKind::Load | AccessKind::Store => String::new(),
        other => format!(" {other:?}"),
    };
    format!("{what} {mode}{kind}{}", if access.is_certain { "" } else { "?" })
}

/// How the bytes of accesses depend on invocations, where that is known.
pub(crate) fn dependencies(reflection: &Reflection) -> Vec<String> {
    reflection.accesses.iter().filter_map(|it| it.per_invocation.as_ref()).map(dependency).collect()
}

fn dependency(each: &InvocationBytes) -> String {
    let term = |offset_term: &OffsetTerm| match &offset_term.quantity {
        Quantity::BuiltIn { built_in, component } => {
            let built_in = BuiltIn::from_u32(*built_in).expect("a built-in");
            format!("{} * {built_in:?}.{component}", offset_term.factor)
        }
        Quantity::Read(from) => format!("{} * ({})", offset_term.factor, source_text(from)),
    };
    let terms: Vec<String> = each.terms.iter().map(term).collect();
    format!("{} + {}: {}", each.start, terms.join(" + "), each.size)
}

fn source_text(place: &ValueSource) -> String {
    match place {
        ValueSource::PushConstant { bytes: range } => format!("push {}", bytes(*range)),
        ValueSource::Descriptor { set, binding, bytes: range, .. } => format!("{set}.{binding} {}", bytes(*range)),
        ValueSource::Address { from, bytes: range } => format!("*({}) {}", self::source_text(from), bytes(*range)),
    }
}

fn index(element: &DescriptorElement) -> String {
    match element {
        DescriptorElement::Constant(constant) => constant.to_string(),
        DescriptorElement::Dynamic(None) => "any".to_owned(),
        DescriptorElement::Dynamic(Some(from)) => source_text(from),
    }
}

/// With a tilde where only some of it is accessed.
fn bytes(range: AccessBytes) -> String {
    let end = range.end.map(|it| it.to_string()).unwrap_or_default();
    format!("{}{}..{end}", if range.is_exact { "" } else { "~" }, range.start)
}
