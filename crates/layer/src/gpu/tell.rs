//! What shaders found, in words.

use std::collections::HashMap;

use lavascope_abi::*;
use lavascope_diag::{Diagnostic, Object, Place, Severity};
use lavascope_instrument::{CELL_WORDS, Check, Counted, Record, RecordError, Site, Stage};
use lavascope_settings::SyncMode;
use lavascope_spirv::Module;

use super::addresses::Found;
use super::arena::Region;
use super::commands::Draw;
use super::variants::{CheckedStage, Variant};
use super::{Gpu, State};
use crate::messages::MessageObject;
use crate::report;
use crate::told;
use crate::validation::Wanted;

/// A fault that is to be told, once for its place in a shader of a pipeline.
pub(super) struct Finding {
    diagnostic: Diagnostic,
    objects: Vec<MessageObject>,
    spot: Spot,
    count: u32,
}

/// A fault that was told, and how often it had happened by then.
pub(super) struct Told {
    told: told::Told,
    diagnostic: Diagnostic,
    spot: Spot,
    count: u32,
}

/// A place in a shader of a pipeline, the same for all of its forms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Spot {
    pipeline: u32,
    stage: usize,
    instruction: u32,
    check: Check,
}

impl Spot {
    fn of(variant: &Variant, stage: &CheckedStage, site: &Site) -> Spot {
        let (pipeline, instruction) = (variant.application.1, site.at.0);
        Spot { pipeline, stage: stage.index, instruction, check: site.check }
    }
}

/// Where faults of a site are counted.
#[derive(Clone, Copy)]
struct Cell {
    cells: Region,
    at: u32,
}

impl Cell {
    fn of(variant: &Variant, stage: &CheckedStage, number: u32) -> Cell {
        Cell { cells: variant.cells, at: stage.cell_base + number * CELL_WORDS }
    }

    fn count(self) -> u32 {
        self.cells.word(self.at)
    }

    /// The smallest and the largest index.
    fn indices(self) -> (u32, u32) {
        (!self.cells.word(self.at + 1), self.cells.word(self.at + 2))
    }
}

/// What is told of each fault.
const WANTED: Wanted = Wanted { mode: SyncMode::Inline, possible: true, submit_time: true, heuristic: false };

impl State {
    /// The finding of a record, unless it was told before.
    pub(super) fn find(&mut self, draw: &Draw, commands: (u64, u32), record: &Record) -> Option<Finding> {
        let variant = &draw.variant;
        let stage = variant.stages.iter().find(|it| it.shader == record.shader)?;
        let site = stage.made.site_of(record)?;
        let number = site.verdict.number()?;
        let spot = Spot::of(variant, stage, site);
        if !self.found.insert(spot) {
            return None;
        }
        let cell = Cell::of(variant, stage, number);
        let (code, what) = self.words_of(variant, site, &record.error);
        // Where all draws of a pipeline share their records, nobody knows which one it was.
        let (command, place) = match &variant.fixed {
            None => (draw.command, format!("{} (draw or dispatch {} of ", draw.command, draw.number)),
            Some(_) => ("draw or dispatch", "a draw or dispatch (of ".to_owned()),
        };
        let place = format!("{place}{})", self.commands_text(commands));
        let mut it = self.diagnostic(variant, stage, site, (code, what));
        it.message += &format!(" {}", stage_text(&record.stage));
        it.function = command.to_owned();
        let access = Place::new("access", place, command.to_owned());
        it.places.push(Place { path: vec![command.to_owned()], ..access });
        let name = self.name(ObjectType::COMMAND_BUFFER, commands.0);
        it.objects.push(Object::new("VkCommandBuffer", u64::from(commands.1), name));
        let mut objects = vec![self.object(ObjectType::COMMAND_BUFFER, "VkCommandBuffer", commands.0)];
        objects.extend(self.objects_of(variant, stage));
        Some(counted(it, objects, (site, spot), cell))
    }

    /// Whether a site that was seen is told already.
    pub(super) fn is_told(&self, variant: &Variant, (stage, number): (usize, u32)) -> bool {
        let stage = &variant.stages[stage];
        stage.made.site(number).is_none_or(|site| self.found.contains(&Spot::of(variant, stage, site)))
    }

    /// A site that was seen, and whose details nobody will find out.
    pub(super) fn find_seen(&mut self, variant: &Variant, (stage, number): (usize, u32)) -> Option<Finding> {
        let stage = &variant.stages[stage];
        let site = stage.made.site(number)?;
        let spot = Spot::of(variant, stage, site);
        if !self.found.insert(spot) {
            return None;
        }
        let what = "An access is out of bounds; its details are not known.".to_owned();
        let it = self.diagnostic(variant, stage, site, (code_of(variant, site), what));
        Some(counted(it, self.objects_of(variant, stage), (site, spot), Cell::of(variant, stage, number)))
    }

    /// Faults that were counted or seen, and whose records did not fit or were never made.
    pub(super) fn find_unrecorded(&mut self) -> Vec<Finding> {
        let variants = std::mem::take(&mut self.variants);
        let mut found = Vec::new();
        for variant in &variants {
            for (at, stage) in variant.stages.iter().enumerate() {
                let counted = stage.made.sites.iter().filter_map(|it| it.verdict.number());
                let counted = counted.filter(|it| Cell::of(variant, stage, *it).count() > 0).map(|it| (at, it));
                found.extend(counted.collect::<Vec<_>>().into_iter().filter_map(|it| self.find_seen(variant, it)));
            }
            found.extend(variant.seen().into_iter().filter_map(|it| self.find_seen(variant, it)));
        }
        self.variants = variants;
        found
    }

    /// How often faults happened, in all forms of their pipelines.
    pub(super) fn counts(&self) -> HashMap<Spot, u32> {
        let mut counts = HashMap::new();
        for variant in &self.variants {
            for stage in &variant.stages {
                for site in &stage.made.sites {
                    let Some(number) = site.verdict.number() else { continue };
                    let count = Cell::of(variant, stage, number).count();
                    if count > 0 {
                        *counts.entry(Spot::of(variant, stage, site)).or_insert(0) += count;
                    }
                }
            }
        }
        counts
    }

    /// What is known without a record.
    fn diagnostic(
        &self,
        variant: &Variant,
        stage: &CheckedStage,
        site: &Site,
        (code, what): (String, String),
    ) -> Diagnostic {
        let (handle, number) = variant.application;
        let (name, module) =
            (self.name(ObjectType::PIPELINE, handle.0), self.name(ObjectType::SHADER_MODULE, stage.module.0));
        let mut message = what;
        message += &format!(" Pipeline {}.", named(name.as_deref(), handle.0));
        message += &format!(" Shader module {}.", named(module.as_deref(), stage.module.0));
        message += &format!(" Shader Instruction Index = {}.", site.at.0);
        let mut it = Diagnostic::new(code, Severity::Error, message);
        it.objects.push(Object::new("VkPipeline", u64::from(number), name));
        let source = Module::parse(&stage.original).ok().and_then(|it| it.source(site.at));
        if let Some(source) = source {
            let file = if source.file.is_empty() { "the shader" } else { &source.file };
            it.explanation.push(format!("Shader validation error occurred in {file} at line {}.", source.line));
            it.explanation.extend(source.text.map(|text| format!("{}: {}", source.line, text.trim())));
        }
        it
    }

    /// The name of a message, and what is wrong.
    fn words_of(&self, variant: &Variant, site: &Site, error: &RecordError) -> (String, String) {
        words_of(variant, site, error, |address| self.address_text(address, site.bytes))
    }

    /// What is wrong with an access at an address.
    fn address_text(&self, address: u64, bytes: u64) -> String {
        let buffer = |handle: u64, name: Option<String>| {
            format!("buffer {}", named(name.or_else(|| self.name(ObjectType::BUFFER, handle)).as_deref(), handle))
        };
        let what = format!("{bytes} bytes at device address {address:#x} are accessed");
        match self.addresses.find(address) {
            Found::Nowhere if address < NULL_PAGE => format!("{what}: the address is null."),
            Found::Nowhere => format!("{what}, which belongs to no buffer."),
            Found::In { buffer: it, offset, bytes } => {
                format!("{what}, {offset} bytes into {}, which has {bytes} bytes.", buffer(it, None))
            }
            Found::Behind { buffer: it, distance, bytes } => {
                format!("{what}, {distance} bytes behind the end of {}, which has {bytes} bytes.", buffer(it, None))
            }
            Found::Gone { buffer: it, name } => format!("{what}, in {}, which was destroyed.", buffer(it, name)),
        }
    }

    fn commands_text(&self, (handle, number): (u64, u32)) -> String {
        let name = self.name(ObjectType::COMMAND_BUFFER, handle);
        format!("command buffer {number}, {}", named(name.as_deref(), handle))
    }

    fn name(&self, ty: ObjectType, handle: u64) -> Option<String> {
        self.names.get(&(ty.0, handle)).cloned()
    }

    fn object(&self, ty: ObjectType, kind: &'static str, handle: u64) -> MessageObject {
        let name = self.name(ty, handle).and_then(|it| std::ffi::CString::new(it).ok());
        MessageObject { ty, kind, handle, name }
    }

    fn objects_of(&self, variant: &Variant, stage: &CheckedStage) -> Vec<MessageObject> {
        let mut all = vec![self.object(ObjectType::PIPELINE, "VkPipeline", variant.application.0.0)];
        if stage.module.0 != 0 {
            all.push(self.object(ObjectType::SHADER_MODULE, "VkShaderModule", stage.module.0));
        }
        all
    }
}

/// Addresses below are null, with an offset.
const NULL_PAGE: u64 = 1 << 16;

/// With how often it happened so far.
fn counted(mut it: Diagnostic, objects: Vec<MessageObject>, (site, spot): (&Site, Spot), cell: Cell) -> Finding {
    let (seen, (least, most)) = (cell.count(), cell.indices());
    let count = seen.max(1);
    let times = if count == 1 { "once".to_owned() } else { format!("{count} times") };
    let has_index = site.check != Check::Address || matches!(site.counted, Counted::Elements { .. });
    let range = match seen {
        0 => String::new(),
        _ if !has_index => String::new(),
        _ if least == most => format!(", with index {most}"),
        _ => format!(", with indices from {least} to {most}"),
    };
    let text = if seen == 0 { "It happened at least once.".to_owned() } else { format!("It happened {times}{range}.") };
    it.explanation.insert(0, text);
    Finding { diagnostic: it, objects, spot, count }
}

/// `"name" (0x45)`.
fn named(name: Option<&str>, handle: u64) -> String {
    name.map_or_else(|| format!("({handle:#x})"), |it| format!("({it})({handle:#x})"))
}

/// What the descriptors of a site are called.
fn kind_of(variant: &Variant, site: &Site) -> &'static str {
    let slot = site.binding.and_then(|it| variant.layout.slot(it.0, it.1));
    match slot.map(|it| it.kind) {
        Some(DescriptorType::UNIFORM_BUFFER | DescriptorType::UNIFORM_BUFFER_DYNAMIC) => "Uniform buffer",
        Some(DescriptorType::STORAGE_BUFFER | DescriptorType::STORAGE_BUFFER_DYNAMIC) => "Storage buffer",
        Some(DescriptorType::INLINE_UNIFORM_BLOCK) => "Inline uniform block",
        Some(DescriptorType::UNIFORM_TEXEL_BUFFER | DescriptorType::STORAGE_TEXEL_BUFFER) => "Texel buffer",
        _ => "Image",
    }
}

/// The name of a message about a site of which no more is known.
fn code_of(variant: &Variant, site: &Site) -> String {
    let kind = kind_of(variant, site);
    match site.check {
        Check::Descriptor => format!("UNASSIGNED-{kind} descriptor index out of bounds"),
        Check::Address => "UNASSIGNED-Device address out of bounds".to_owned(),
        Check::Buffer | Check::Texel => format!("UNASSIGNED-{kind} access out of bounds"),
    }
}

/// The name of a message, and what is wrong.
fn words_of(
    variant: &Variant,
    site: &Site,
    error: &RecordError,
    address: impl FnOnce(u64) -> String,
) -> (String, String) {
    let kind = kind_of(variant, site);
    let place = site.binding.map_or_else(String::new, |it| format!(" (set = {}, binding = {})", it.0, it.1));
    let code = code_of(variant, site);
    match *error {
        RecordError::IndexOutOfBounds { index, length } => {
            (code, format!("Index of {index} used to index descriptor array of length {length}{place}."))
        }
        RecordError::Uninitialized { index } => (
            "UNASSIGNED-Descriptor uninitialized".to_owned(),
            format!("{kind} descriptor index {index} was never written{place}."),
        ),
        RecordError::AddressOutOfBounds { address: at } => (code, address(at)),
        RecordError::BufferOutOfBounds { descriptor, index, range } => {
            let first = site.counted.first_byte(index);
            let last = first.saturating_add(site.bytes.saturating_sub(1));
            let text = format!(
                "{kind} access out of bounds: index {index}, bytes {first} to {last}, where {range} bytes are bound \
                 to descriptor {descriptor}{place}."
            );
            (code, text)
        }
        RecordError::TexelOutOfBounds { texel, length } => {
            (code, format!("{kind} access out of bounds: texel {texel} of {length}{place}."))
        }
    }
}

/// Which invocation it was.
fn stage_text(stage: &Stage) -> String {
    let three = |[x, y, z]: [u32; 3]| format!("({x}, {y}, {z})");
    match *stage {
        Stage::Vertex { vertex, instance } => {
            format!("Stage = Vertex. Vertex index = {vertex}, instance index = {instance}.")
        }
        Stage::TessellationControl { invocation, primitive } => {
            format!("Stage = Tessellation Control. Invocation ID = {invocation}, primitive ID = {primitive}.")
        }
        Stage::TessellationEvaluation { primitive, coordinates: [u, v] } => {
            format!("Stage = Tessellation Evaluation. Primitive ID = {primitive}, TessCoord (u, v) = ({u}, {v}).")
        }
        Stage::Geometry { primitive, invocation } => {
            format!("Stage = Geometry. Primitive ID = {primitive}, invocation ID = {invocation}.")
        }
        Stage::Fragment { coordinates: [x, y] } => format!("Stage = Fragment. Fragment coord (x,y) = ({x}, {y})."),
        Stage::Compute { invocation } => {
            format!("Stage = Compute. Global invocation ID (x, y, z) = {}.", three(invocation))
        }
        Stage::Task { invocation } => format!("Stage = Task. Global invocation ID (x, y, z) = {}.", three(invocation)),
        Stage::Mesh { invocation } => format!("Stage = Mesh. Global invocation ID (x, y, z) = {}.", three(invocation)),
        Stage::Ray { launch, .. } => format!("Stage = Ray tracing. Launch ID (x, y, z) = {}.", three(launch)),
    }
}

impl Gpu {
    /// Tells what was found, without a lock: the application is called.
    pub(super) fn tell_all(&self, found: Vec<Finding>) {
        for Finding { diagnostic, objects, spot, count } in found {
            let told = told::Told::new(&diagnostic, &self.messages, WANTED);
            if told.ignored_by.is_some() {
                continue;
            }
            if !report::finding(told.line(&diagnostic, u64::from(count))) {
                self.messages.log_in_place(&told.message());
            }
            self.messages.send_to_messengers(&told.message_about(&objects));
            self.state().told.push(Told { told, diagnostic, spot, count });
        }
    }
}

impl Told {
    /// Tells the report how often it happened since.
    pub(super) fn tell_more(&mut self, counts: &HashMap<Spot, u32>) {
        let now = counts.get(&self.spot).copied().unwrap_or(0);
        let more = now.saturating_sub(self.count);
        if more > 0 {
            report::finding(self.told.line(&self.diagnostic, u64::from(more)));
            self.count = now;
        }
    }
}
