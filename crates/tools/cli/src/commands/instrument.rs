//! `lavascope instrument`: a shader with run-time checks, and what each of them is for.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use lavascope_instrument::{
    Check, CheckDecision, CheckSite, Guard, InstrumentOptions, InstrumentedModule, RootLocation, UncheckedReason,
    instrument,
};
use lavascope_spirv::{Module, SourceLine};
use serde::Serialize;

use super::CommandOutcome;
use crate::text::{self, columns};

/// Add run-time checks to a shader
///
/// What could go wrong is checked when the shader runs: indices into arrays of descriptors, bytes of buffers, texels,
/// device addresses. The same shader and the same options always give the same words.
#[derive(clap::Args)]
pub(crate) struct InstrumentArguments {
    /// The shader, as SPIR-V
    file: PathBuf,
    /// The file to write
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Report what was done about each access
    #[arg(long)]
    explain: bool,
    /// Where the shader finds its tables: `set:N`, `push:OFFSET` or `constants`
    #[arg(long, value_name = "ROOT", default_value = "set:7", value_parser = root)]
    root: RootLocation,
    /// Branch around every access that may be wrong, and expect nothing of the host
    #[arg(long)]
    branch: bool,
    /// Record the faults of these accesses where they happen
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',')]
    sites: Vec<u32>,
    /// Make records of what the shader prints with debugPrintfEXT
    #[arg(long)]
    prints: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &InstrumentArguments) -> anyhow::Result<CommandOutcome> {
    let name = arguments.file.display();
    let bytes = fs::read(&arguments.file).with_context(|| format!("{name} cannot be read"))?;
    if bytes.len() % 4 != 0 {
        bail!("{name} is not SPIR-V: its size is not a whole number of words");
    }
    let words: Vec<u32> = bytes.chunks_exact(4).map(|it| u32::from_le_bytes([it[0], it[1], it[2], it[3]])).collect();
    let module = Module::parse(&words).with_context(|| format!("{name} is no SPIR-V"))?;
    let guard = if arguments.branch { Guard::Branch } else { Guard::Select };
    let immediate = arguments.sites.iter().copied().collect();
    let options =
        InstrumentOptions { guard, immediate, prints: arguments.prints, ..InstrumentOptions::new(arguments.root) };
    let made = instrument(&module, &options).with_context(|| format!("{name} cannot be instrumented"))?;
    if let Some(output) = &arguments.output {
        write(output, &made.words)?;
    }
    if arguments.json {
        text::emit_json(&describe(&module, &made))?;
    } else {
        let mut output_text = if arguments.explain { explain(&module, &made) } else { String::new() };
        output_text += &format!("{name}: {}\n", summary(&made));
        text::emit(&output_text)?;
    }
    Ok(CommandOutcome::Success)
}

fn root(text: &str) -> Result<RootLocation, String> {
    let number = |it: &str| it.parse().map_err(|_| format!("`{it}` is no number"));
    match text.split_once(':') {
        Some(("set", set)) => Ok(RootLocation::Descriptor { set: number(set)? }),
        Some(("push", offset)) => {
            let offset = number(offset)?;
            if offset % 4 == 0 {
                Ok(RootLocation::PushConstant { offset })
            } else {
                Err(format!("{offset} is not a multiple of 4"))
            }
        }
        None if text == "constants" => Ok(RootLocation::Specialization),
        _ => Err("write `set:N`, `push:OFFSET` or `constants`".to_owned()),
    }
}

fn write(path: &Path, words: &[u32]) -> anyhow::Result<()> {
    let bytes: Vec<u8> = words.iter().flat_map(|it| it.to_le_bytes()).collect();
    fs::write(path, bytes).with_context(|| format!("{} cannot be written", path.display()))
}

/// How many accesses of each kind.
fn summary(made: &InstrumentedModule) -> String {
    let count = |is: fn(CheckDecision) -> bool| made.sites.iter().filter(|it| is(it.decision)).count();
    let parts = [
        (count(|it| matches!(it, CheckDecision::Checked { .. })), "checked"),
        (count(|it| matches!(it, CheckDecision::Hoisted { .. })), "hoisted"),
        (count(|it| it == CheckDecision::Repeated), "repeated"),
        (count(|it| it == CheckDecision::Proven), "proven"),
        (count(|it| matches!(it, CheckDecision::Unchecked(_))), "unchecked"),
    ];
    let parts: Vec<String> = parts.iter().filter(|it| it.0 > 0).map(|it| format!("{} {}", it.0, it.1)).collect();
    match made.sites.len() {
        0 => "nothing in it could go wrong".to_owned(),
        1 => format!("1 access: {}", parts.join(", ")),
        accesses => format!("{accesses} accesses: {}", parts.join(", ")),
    }
}

fn explain(module: &Module, made: &InstrumentedModule) -> String {
    let mut rows = Vec::new();
    for site in &made.sites {
        let number = site.decision.number().map_or(String::new(), |it| it.to_string());
        let instruction = format!("instruction {}", site.at.0);
        rows.push(vec![number, instruction, verdict(site.decision).to_owned(), check_text(site), line(module, site)]);
    }
    let mut output_text = columns(&rows);
    for requirement in &made.requirements {
        let element = match requirement.element {
            Some(element) => format!("element {element}"),
            None => "its safe element".to_owned(),
        };
        let least = match requirement.min_size {
            1 => "something".to_owned(),
            bytes => format!("at least {bytes} bytes"),
        };
        output_text += &format!(
            "  the host binds {least} to set {}, binding {}, {element}\n",
            requirement.set, requirement.binding
        );
    }
    output_text
}

fn verdict(verdict: CheckDecision) -> &'static str {
    match verdict {
        CheckDecision::Proven => "proven",
        CheckDecision::Repeated => "repeated",
        CheckDecision::Hoisted { .. } => "hoisted",
        CheckDecision::Checked { .. } => "checked",
        CheckDecision::Unchecked(UncheckedReason::Pointer) => "unchecked: the pointer's origin is not known",
        CheckDecision::Unchecked(UncheckedReason::Size) => "unchecked: the size is not known",
        CheckDecision::Unchecked(UncheckedReason::Loop) => "unchecked: the head of the loop cannot be split",
        CheckDecision::Unchecked(UncheckedReason::Instruction) => "unchecked: the instruction is copied as it is",
    }
}

fn check_text(site: &CheckSite) -> String {
    let check = match site.check {
        Check::Descriptor => "descriptor".to_owned(),
        Check::Address => format!("{} bytes at an address", site.bytes),
        Check::Buffer if site.bytes == 0 => "buffer".to_owned(),
        Check::Buffer => format!("{} bytes of a buffer", site.bytes),
        Check::Texel => "texel".to_owned(),
    };
    match site.binding {
        Some((set, binding)) => format!("{check}, set {set}, binding {binding}"),
        None => check,
    }
}

fn line(module: &Module, site: &CheckSite) -> String {
    let Some(source) = module.source(site.at) else { return String::new() };
    let SourceLine { file, line, text, .. } = source;
    let text = text.map(|it| format!(": {}", it.trim())).unwrap_or_default();
    if file.is_empty() { format!("line {line}{text}") } else { format!("{file}:{line}{text}") }
}

#[derive(Serialize)]
struct Description {
    words: usize,
    sites: Vec<SiteDescription>,
    requirements: Vec<RequirementDescription>,
    shader_constant: u32,
    cells_constant: u32,
    cell_words: u32,
    scratch_bytes: u64,
    reads_descriptors: bool,
    reads_addresses: bool,
}

#[derive(Serialize)]
struct SiteDescription {
    number: Option<u32>,
    instruction: u32,
    verdict: &'static str,
    check: &'static str,
    set: Option<u32>,
    binding: Option<u32>,
    bytes: u64,
    file: Option<String>,
    line: Option<u32>,
    source: Option<String>,
}

#[derive(Serialize)]
struct RequirementDescription {
    set: u32,
    binding: u32,
    element: Option<u32>,
    least: u32,
}

fn describe(module: &Module, made: &InstrumentedModule) -> Description {
    let requirement = |binding_requirement: &lavascope_instrument::BindingRequirement| RequirementDescription {
        set: binding_requirement.set,
        binding: binding_requirement.binding,
        element: binding_requirement.element,
        least: binding_requirement.min_size,
    };
    Description {
        words: made.words.len(),
        sites: made.sites.iter().map(|it| describe_site(module, it)).collect(),
        requirements: made.requirements.iter().map(requirement).collect(),
        shader_constant: made.spec_ids[0],
        cells_constant: made.spec_ids[1],
        cell_words: made.cell_words(),
        scratch_bytes: made.scratch_bytes,
        reads_descriptors: made.reads_descriptors,
        reads_addresses: made.reads_addresses,
    }
}

fn describe_site(module: &Module, site: &CheckSite) -> SiteDescription {
    let source = module.source(site.at);
    SiteDescription {
        number: site.decision.number(),
        instruction: site.at.0,
        verdict: verdict(site.decision),
        check: match site.check {
            Check::Descriptor => "descriptor",
            Check::Address => "address",
            Check::Buffer => "buffer",
            Check::Texel => "texel",
        },
        set: site.binding.map(|it| it.0),
        binding: site.binding.map(|it| it.1),
        bytes: site.bytes,
        file: source.as_ref().map(|it| it.file.clone()).filter(|it| !it.is_empty()),
        line: source.as_ref().map(|it| it.line),
        source: source.and_then(|it| it.text).map(|it| it.trim().to_owned()),
    }
}
