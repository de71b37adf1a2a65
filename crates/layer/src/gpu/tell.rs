//! What shaders found, in words.

use lavascope_abi::*;
use lavascope_diag::{Diagnostic, Object, Place, Severity};
use lavascope_instrument::{CELL_WORDS, Check, Record, RecordError, Site, Stage};
use lavascope_settings::SyncMode;
use lavascope_spirv::Module;

use super::arena::Region;
use super::commands::Draw;
use super::pipelines::{Checked, CheckedStage};
use super::{Gpu, State};
use crate::messages::MessageObject;
use crate::report;
use crate::told;
use crate::validation::Wanted;

/// A fault that is to be told, once for its place in a shader of a pipeline.
pub(super) struct Finding {
    diagnostic: Diagnostic,
    objects: Vec<MessageObject>,
    cell: Cell,
    count: u32,
}

/// A fault that was told, and how often it had happened by then.
pub(super) struct Told {
    told: told::Told,
    diagnostic: Diagnostic,
    cell: Cell,
    count: u32,
}

/// Where faults of a site are counted.
#[derive(Clone, Copy)]
struct Cell {
    cells: Region,
    at: u32,
}

impl Cell {
    fn of(pipeline: &Checked, stage: &CheckedStage, number: u32) -> Cell {
        Cell { cells: pipeline.cells, at: stage.cell_base + number * CELL_WORDS }
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
        let stage = draw.pipeline.stages.iter().find(|it| it.shader == record.shader)?;
        let site = stage.made.site_of(record)?;
        let number = site.verdict.number()?;
        if !self.found.insert((stage.shader, number)) {
            return None;
        }
        let cell = Cell::of(&draw.pipeline, stage, number);
        let (code, what) = words_of(&draw.pipeline, site, &record.error);
        let place = format!("{} (draw or dispatch {} of {})", draw.command, draw.number, self.commands_text(commands));
        let mut it = self.diagnostic(&draw.pipeline, stage, site, (code, what));
        it.message += &format!(" {}", stage_text(&record.stage));
        it.function = draw.command.to_owned();
        let access = Place::new("access", place, draw.command.to_owned());
        it.places.push(Place { path: vec![draw.command.to_owned()], ..access });
        let name = self.name(ObjectType::COMMAND_BUFFER, commands.0);
        it.objects.push(Object::new("VkCommandBuffer", u64::from(commands.1), name));
        let mut objects = vec![self.object(ObjectType::COMMAND_BUFFER, "VkCommandBuffer", commands.0)];
        objects.extend(self.objects_of(&draw.pipeline, stage));
        Some(counted(it, objects, site, cell))
    }

    /// Faults that were counted and whose records did not fit.
    pub(super) fn find_unrecorded(&mut self) -> Vec<Finding> {
        let mut found = Vec::new();
        for pipeline in std::mem::take(&mut self.checked) {
            for stage in &pipeline.stages {
                for site in &stage.made.sites {
                    let Some(number) = site.verdict.number() else { continue };
                    let cell = Cell::of(&pipeline, stage, number);
                    if cell.count() == 0 || !self.found.insert((stage.shader, number)) {
                        continue;
                    }
                    let what = "An access is out of bounds; there was no room for its details.".to_owned();
                    let it = self.diagnostic(&pipeline, stage, site, (code_of(&pipeline, site), what));
                    found.push(counted(it, self.objects_of(&pipeline, stage), site, cell));
                }
            }
        }
        found
    }

    /// What is known without a record.
    fn diagnostic(
        &self,
        pipeline: &Checked,
        stage: &CheckedStage,
        site: &Site,
        (code, what): (String, String),
    ) -> Diagnostic {
        let (name, module) =
            (self.name(ObjectType::PIPELINE, pipeline.handle.0), self.name(ObjectType::SHADER_MODULE, stage.module.0));
        let mut message = what;
        message += &format!(" Pipeline {}.", named(name.as_deref(), pipeline.handle.0));
        message += &format!(" Shader module {}.", named(module.as_deref(), stage.module.0));
        message += &format!(" Shader Instruction Index = {}.", site.at.0);
        let mut it = Diagnostic::new(code, Severity::Error, message);
        it.objects.push(Object::new("VkPipeline", u64::from(pipeline.number), name));
        let source = Module::parse(&stage.original).ok().and_then(|it| it.source(site.at));
        if let Some(source) = source {
            let file = if source.file.is_empty() { "the shader" } else { &source.file };
            it.explanation.push(format!("Shader validation error occurred in {file} at line {}.", source.line));
            it.explanation.extend(source.text.map(|text| format!("{}: {}", source.line, text.trim())));
        }
        it
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

    fn objects_of(&self, pipeline: &Checked, stage: &CheckedStage) -> Vec<MessageObject> {
        let mut all = vec![self.object(ObjectType::PIPELINE, "VkPipeline", pipeline.handle.0)];
        if stage.module.0 != 0 {
            all.push(self.object(ObjectType::SHADER_MODULE, "VkShaderModule", stage.module.0));
        }
        all
    }
}

/// With how often it happened so far.
fn counted(mut it: Diagnostic, objects: Vec<MessageObject>, site: &Site, cell: Cell) -> Finding {
    let count = cell.count().max(1);
    let (least, most) = cell.indices();
    let times = if count == 1 { "once".to_owned() } else { format!("{count} times") };
    let range = match site.check {
        Check::Address => String::new(),
        _ if least == most => format!(", with index {most}"),
        _ => format!(", with indices from {least} to {most}"),
    };
    it.explanation.insert(0, format!("It happened {times}{range}."));
    Finding { diagnostic: it, objects, cell, count }
}

/// `"name" (0x45)`.
fn named(name: Option<&str>, handle: u64) -> String {
    name.map_or_else(|| format!("({handle:#x})"), |it| format!("({it})({handle:#x})"))
}

/// What the descriptors of a site are called.
fn kind_of(pipeline: &Checked, site: &Site) -> &'static str {
    let slot = site.binding.and_then(|it| pipeline.layout.slot(it.0, it.1));
    match slot.map(|it| it.kind) {
        Some(DescriptorType::UNIFORM_BUFFER | DescriptorType::UNIFORM_BUFFER_DYNAMIC) => "Uniform buffer",
        Some(DescriptorType::STORAGE_BUFFER | DescriptorType::STORAGE_BUFFER_DYNAMIC) => "Storage buffer",
        Some(DescriptorType::INLINE_UNIFORM_BLOCK) => "Inline uniform block",
        Some(DescriptorType::UNIFORM_TEXEL_BUFFER | DescriptorType::STORAGE_TEXEL_BUFFER) => "Texel buffer",
        _ => "Image",
    }
}

/// The name of a message about a site of which no more is known.
fn code_of(pipeline: &Checked, site: &Site) -> String {
    let kind = kind_of(pipeline, site);
    match site.check {
        Check::Descriptor => format!("UNASSIGNED-{kind} descriptor index out of bounds"),
        Check::Address => "UNASSIGNED-Device address out of bounds".to_owned(),
        Check::Buffer | Check::Texel => format!("UNASSIGNED-{kind} access out of bounds"),
    }
}

/// The name of a message, and what is wrong.
fn words_of(pipeline: &Checked, site: &Site, error: &RecordError) -> (String, String) {
    let kind = kind_of(pipeline, site);
    let place = site.binding.map_or_else(String::new, |it| format!(" (set = {}, binding = {})", it.0, it.1));
    let code = code_of(pipeline, site);
    match *error {
        RecordError::IndexOutOfBounds { index, length } => {
            (code, format!("Index of {index} used to index descriptor array of length {length}{place}."))
        }
        RecordError::Uninitialized { index } => (
            "UNASSIGNED-Descriptor uninitialized".to_owned(),
            format!("{kind} descriptor index {index} was never written{place}."),
        ),
        RecordError::AddressOutOfBounds { address } => {
            (code, format!("Device address {address:#x} belongs to no buffer."))
        }
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
        for Finding { diagnostic, objects, cell, count } in found {
            let told = told::Told::new(&diagnostic, &self.messages, WANTED);
            if told.ignored_by.is_some() {
                continue;
            }
            if !report::finding(told.line(&diagnostic, u64::from(count))) {
                self.messages.log_in_place(&told.message());
            }
            self.messages.send_to_messengers(&told.message_about(&objects));
            self.state().told.push(Told { told, diagnostic, cell, count });
        }
    }
}

impl Told {
    /// Tells the report how often it happened since.
    pub(super) fn tell_more(&self) {
        let more = self.cell.count().saturating_sub(self.count);
        if more > 0 {
            report::finding(self.told.line(&self.diagnostic, u64::from(more)));
        }
    }
}
