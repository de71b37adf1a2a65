//! The compiled shaders are those of the sources beside them, whichever compiler made them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

const STRING: u32 = 7;
const SOURCE_CONTINUED: u32 = 2;
const SOURCE: u32 = 3;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("shaders")
}

/// File names that end so.
fn names(is_compiled: bool) -> BTreeSet<String> {
    let entries = std::fs::read_dir(folder()).expect("the folder of the shaders");
    let names = entries.flatten().map(|it| it.file_name().to_string_lossy().into_owned());
    names.filter(|it| it.ends_with(".spv") == is_compiled).collect()
}

/// The source text that a module carries, without what compilers put before it.
fn source_text(module: &[u8]) -> String {
    let words: Vec<u32> = module.chunks_exact(4).map(|it| u32::from_le_bytes([it[0], it[1], it[2], it[3]])).collect();
    assert_eq!(words.first(), Some(&0x0723_0203), "SPIR-V in little-endian order");
    let mut text = String::new();
    let mut rest = &words[5..];
    while let Some(first) = rest.first() {
        let (length, operation) = ((first >> 16) as usize, first & 0xFFFF);
        assert!(length > 0 && length <= rest.len(), "an instruction fits into the module");
        match operation {
            // Language, version, file, text.
            SOURCE if length > 4 => text.push_str(&literal(&rest[4..length])),
            SOURCE_CONTINUED => text.push_str(&literal(&rest[1..length])),
            _ => {}
        }
        rest = &rest[length..];
    }
    without_prefix(&text)
}

/// Whether a module is that of a source.
fn carried(name: &str, source: &str, module: &[u8]) -> bool {
    match name {
        // Carries no text, but the assembler makes the same of it each time.
        _ if name.ends_with(".spvasm") => assembled(name) == module,
        // The information for debuggers names its text as a string.
        _ if name.contains("debuginfo") => strings(module).iter().any(|it| without_prefix(it) == source),
        _ => source_text(module) == source,
    }
}

fn assembled(name: &str) -> Vec<u8> {
    let mut assembler = Command::new("spirv-as");
    assembler.args(["--target-env", "spv1.3", "-o", "-"]).arg(folder().join(name));
    assembler.output().expect("spirv-as: install spirv-tools").stdout
}

fn strings(module: &[u8]) -> Vec<String> {
    let words: Vec<u32> = module.chunks_exact(4).map(|it| u32::from_le_bytes([it[0], it[1], it[2], it[3]])).collect();
    let (mut found, mut rest) = (Vec::new(), &words[5..]);
    while let Some(first) = rest.first() {
        let length = (first >> 16) as usize;
        assert!(length > 0 && length <= rest.len(), "an instruction fits into the module");
        if first & 0xFFFF == STRING {
            found.push(literal(&rest[2..length]));
        }
        rest = &rest[length..];
    }
    found
}

fn literal(words: &[u32]) -> String {
    let bytes = words.iter().flat_map(|it| it.to_le_bytes()).take_while(|it| *it != 0).collect();
    String::from_utf8(bytes).expect("the text is UTF-8")
}

/// Some versions of glslang write their options and a line number first.
fn without_prefix(text: &str) -> String {
    let is_prefix = |line: &&str| line.starts_with("// OpModuleProcessed") || line.starts_with("#line 1");
    let prefix: usize = text.split_inclusive('\n').take_while(is_prefix).map(str::len).sum();
    text[prefix..].to_owned()
}

#[test]
fn every_shader_is_compiled_and_every_module_has_a_source() {
    let sources = names(false);
    assert!(!sources.is_empty());
    let wanted: BTreeSet<String> = sources.iter().map(|it| format!("{it}.spv")).collect();
    assert_eq!(names(true), wanted, "run `cargo xtask shaders`");
}

#[test]
fn modules_carry_the_text_of_their_source() {
    for name in names(false) {
        let source = std::fs::read_to_string(folder().join(&name)).expect("the source");
        let module = std::fs::read(folder().join(format!("{name}.spv"))).expect("the module");
        let is_there = carried(&name, &source, &module);
        assert!(is_there, "{name} is not what was compiled: run `cargo xtask shaders`");
    }
}

#[test]
fn the_text_is_found_in_parts_and_behind_a_prefix() {
    let text = |text: &str| {
        let mut bytes = text.as_bytes().to_vec();
        bytes.resize(bytes.len() / 4 * 4 + 4, 0);
        bytes.chunks_exact(4).map(|it| u32::from_le_bytes([it[0], it[1], it[2], it[3]])).collect::<Vec<_>>()
    };
    let mut module = vec![0x0723_0203, 0x0001_0500, 0, 10, 0];
    let first = text("// OpModuleProcessed client vulkan100\n#line 1\n#version 450\nvoid ");
    module.extend([((first.len() as u32 + 4) << 16) | SOURCE, 2, 450, 1]);
    module.extend(first);
    let second = text("main() {}\n");
    module.push(((second.len() as u32 + 1) << 16) | SOURCE_CONTINUED);
    module.extend(second);
    let bytes: Vec<u8> = module.into_iter().flat_map(u32::to_le_bytes).collect();
    assert_eq!(source_text(&bytes), "#version 450\nvoid main() {}\n");
}
