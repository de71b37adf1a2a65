//! Makes diagnostics out of faults that shaders recorded.
//!
//! A fault is reported once for each site in a shader of a pipeline. It occurs once in each draw or dispatch, in any
//! number of invocations. Later ones are added to the counts when the pipeline or the device is destroyed.

use std::borrow::Borrow;
use std::collections::{HashMap, HashSet};
use std::ffi::CString;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use lavascope_abi::*;
use lavascope_diag::{
    AccessText, DebugLabels, Diagnostic, DiagnosticLocation, DiagnosticObject, Fix, FrameRange, Property, Severity,
};
use lavascope_findings::{Finding, FindingObject, FrameSpan, SourceLocation, Stack, StackFrame};
use lavascope_instrument::{CELL_WORDS, Check, CheckSite, FaultRecord, IndexUnit, RecordedFault};
use lavascope_settings::SyncMode;
use lavascope_spirv::{Module, SourceLine};

use super::codes::{
    BoundResourceKind, FaultCommand, binding_of, code_of_error, code_of_site, command_of_stage, is_harmless_if_robust,
};
use super::fault_draws::{ExecutedCommands, FaultDraws, new_frames};
use super::fault_launch::{FaultLaunch, bound_object, indices_note, launch_word};
use super::fault_texts::{AddressFault, FaultNames, stage_word};
use super::message_texts::{error_text, stage_text};
use super::prints::PrintFinding;
use crate::gpu::draw::recorded_draws::DrawDescription;
use crate::gpu::pipeline::variants::{InstrumentedStage, PipelineVariant};
use crate::gpu::resource::arena::ArenaRegion;
use crate::gpu::resource::buffer_addresses::BufferAddressLookup;
use crate::gpu::{ChecksState, DeviceChecks};
use crate::report::coverage;
use crate::report::messages::MessageObject;
use crate::report::rendered_finding;
use crate::report::report_file;
use crate::report::validation::FindingFilter;

/// A finding of the checks.
pub(crate) enum CheckFinding {
    Fault(Box<ShaderFault>),
    Print(PrintFinding),
    /// The number of bytes of prints, which did not fit into the memory of the draw.
    LostPrints {
        needed: u64,
    },
    /// An invalid instance in the build of an acceleration structure.
    WrongInstance(Box<(Diagnostic, Vec<MessageObject>)>),
}

/// A fault, which is reported once for its site in a shader of a pipeline.
pub(crate) struct ShaderFault {
    diagnostic: Diagnostic,
    objects: Vec<MessageObject>,
    site: FaultSite,
    /// Number of invocations with the fault.
    count: u32,
    /// None if the details are unknown.
    error: Option<RecordedFault>,
    shader: FaultShader,
    check_site: CheckSite,
    /// The smallest and the largest index so far; none if there is no index.
    indices: Option<(u32, u32)>,
    /// None if it is unknown which draw or dispatch ran the shader.
    launch: Option<FaultLaunch>,
}

/// A reported fault, with its counts at that time.
pub(crate) struct ReportedFault {
    rendered: rendered_finding::RenderedFinding,
    diagnostic: Diagnostic,
    site: FaultSite,
    /// Number of invocations with the fault.
    count: u32,
    draws: u64,
    /// Number of frames.
    frames: u64,
}

/// A site in a shader of a pipeline, the same for all variants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FaultSite {
    pub(super) pipeline: u32,
    pub(super) stage: usize,
    pub(super) instruction: u32,
    pub(super) check: Check,
    /// An instruction may use several descriptors, for example an image and a sampler.
    pub(super) binding: Option<(u32, u32)>,
    pub(super) element: Option<u32>,
}

impl FaultSite {
    /// The number of its pipeline or shader object.
    pub(crate) fn pipeline(&self) -> u32 {
        self.pipeline
    }

    pub(super) fn of(variant: &PipelineVariant, stage: &InstrumentedStage, site: &CheckSite) -> FaultSite {
        // A shader object is the same in all combinations.
        let (pipeline, stage) = stage.object.map_or((variant.application.1, stage.index), |it| (it.1, 0));
        let CheckSite { at, check, binding, element, .. } = *site;
        FaultSite { pipeline, stage, instruction: at.0, check, binding, element }
    }
}

/// The counter of a site's faults.
#[derive(Clone, Copy)]
struct SiteCounter {
    cells: ArenaRegion,
    at: u32,
}

impl SiteCounter {
    fn of(variant: &PipelineVariant, stage: &InstrumentedStage, number: u32) -> SiteCounter {
        SiteCounter { cells: variant.cells, at: stage.cell_base + number * CELL_WORDS }
    }

    fn count(self) -> u32 {
        self.cells.read_word(self.at)
    }

    /// The smallest and the largest index.
    fn indices(self) -> (u32, u32) {
        (!self.cells.read_word(self.at + 1), self.cells.read_word(self.at + 2))
    }
}

/// Every fault is reported.
const ALL_FINDINGS: FindingFilter =
    FindingFilter { mode: SyncMode::Inline, possible: true, submit_time: true, heuristic: false, stops: false };

impl ChecksState {
    /// The findings of the fault records of a draw, except those of sites that are already reported.
    pub(crate) fn find_faults(
        &mut self,
        draw: &DrawDescription,
        executed: &ExecutedCommands<'_>,
        records: &[FaultRecord],
    ) -> Vec<CheckFinding> {
        let mut seen: Vec<FaultSite> = Vec::new();
        let mut found = Vec::new();
        for record in records {
            let Some(stage) = draw.variant.stages.iter().find(|it| it.record_number == record.shader) else { continue };
            let Some(site) = stage.instrumented.site_of(record) else { continue };
            let fault_site = FaultSite::of(&draw.variant, stage, site);
            if self.is_in_other_buffer(&record.fault, site.bytes) {
                self.legal_sites.insert(fault_site);
                continue;
            }
            if !seen.contains(&fault_site) {
                self.fault_draws.add(fault_site, executed.frames);
                seen.push(fault_site);
            }
            if self.insert_fault(&draw.variant, fault_site) {
                found.extend(self.describe_fault(draw, (stage, site), executed, record));
            }
        }
        found
    }

    /// Whether all bytes of an access at a device address are in a buffer, if not in that of the base pointer.
    fn is_in_other_buffer(&self, fault: &RecordedFault, size: u64) -> bool {
        let RecordedFault::AddressOutOfBounds { address } = *fault else { return false };
        match self.addresses.find(address) {
            BufferAddressLookup::InBuffer { offset, bytes, .. } => offset.saturating_add(size) <= bytes,
            _ => false,
        }
    }

    /// The finding of a fault record.
    fn describe_fault(
        &self,
        draw: &DrawDescription,
        (stage, site): (&InstrumentedStage, &CheckSite),
        executed: &ExecutedCommands<'_>,
        record: &FaultRecord,
    ) -> Option<CheckFinding> {
        let number = site.decision.number()?;
        let fault_site = FaultSite::of(&draw.variant, stage, site);
        let cell = SiteCounter::of(&draw.variant, stage, number);
        let kind = BoundResourceKind::of(&draw.variant, stage, site);
        let binding = binding_of(stage, site);
        let shader = FaultShader::of(&draw.variant, stage, site);
        let command = FaultCommand { name: draw.command, uses_objects: stage.object.is_some() };
        let code = code_of_error(command, kind, &record.fault);
        let mut diagnostic = self.diagnostic(&draw.variant, stage, site, (code, &shader));
        let (invocation, handle) = (stage_text(&record.invocation), executed.handle);
        let is_write = shader.names.access.as_ref().map(|it| it.is_write);
        let buffer_name = self.debug_name(ObjectType::COMMAND_BUFFER, handle);
        diagnostic.message = format!(
            "{} Command buffer {}. {} {invocation}",
            error_text(kind, binding, site, (&record.fault, is_write), |address| {
                self.address_text(address, site.bytes, is_write)
            }),
            named(buffer_name.as_deref(), handle),
            diagnostic.message
        );
        diagnostic.function = draw.command.to_owned();
        let indices = fault_indices(&record.fault, site, cell);
        (diagnostic.title, diagnostic.fixes) = match record.fault {
            RecordedFault::AddressOutOfBounds { address } => {
                self.describe_address(&shader.names, site, address, indices)
            }
            fault => {
                let (least, most) = indices.unwrap_or_default();
                (shader.names.title(&fault, site, least), shader.names.fix(&fault, site, most).into_iter().collect())
            }
        };
        let labels = DebugLabels { queue: executed.queue_labels.to_vec(), commands: draw.labels.clone() };
        let text = self.draw_text(draw, (handle, executed.number));
        let place = DiagnosticLocation::new("access", text, draw.command.to_owned());
        let least = indices.map(|it| it.0);
        let access = AccessText { function: draw.command.to_owned(), ..shader.names.access_text(least) };
        diagnostic
            .locations
            .insert(0, DiagnosticLocation { path: vec![draw.command.to_owned()], labels, access, ..place });
        diagnostic.objects.push(DiagnosticObject::new("VkCommandBuffer", u64::from(executed.number), buffer_name));
        diagnostic.properties.extend(facts_of(&record.fault));
        if draw.variant.fixed_tables.is_empty() {
            diagnostic.properties.push(fact("draw", draw.number));
        }
        diagnostic.properties.push(fact("invocation", invocation));
        let mut objects = vec![self.object(ObjectType::COMMAND_BUFFER, "VkCommandBuffer", handle)];
        objects.extend(self.objects_of(&draw.variant, stage));
        let name = self.debug_name(ObjectType::COMMAND_BUFFER, handle);
        let finding = finish_fault(diagnostic, objects, (site, fault_site), cell, (Some(record.fault), shader));
        let launch = Some(FaultLaunch::new(draw, executed, name));
        Some(CheckFinding::Fault(Box::new(ShaderFault { launch, indices, ..finding })))
    }

    /// Whether a fault is new. Marks it as reported.
    fn insert_fault(&mut self, variant: &PipelineVariant, fault_site: FaultSite) -> bool {
        !variant.is_retired() && self.reported_sites.insert(fault_site)
    }

    /// Forgets the faults of destroyed pipelines or shader objects. All their findings are reported.
    pub(crate) fn forget_faults(&mut self, ended: &[Arc<PipelineVariant>], is_gone: impl Fn(u32) -> bool) {
        ended.iter().for_each(|it| it.is_retired.store(true, Ordering::Relaxed));
        self.reported_sites.retain(|it| !is_gone(it.pipeline));
        self.legal_sites.retain(|it| !is_gone(it.pipeline));
    }

    /// Whether the fault of a site is already reported.
    pub(crate) fn is_reported(&self, variant: &PipelineVariant, (stage, number): (usize, u32)) -> bool {
        let stage = &variant.stages[stage];
        variant.is_retired()
            || stage
                .instrumented
                .site(number)
                .is_none_or(|site| self.reported_sites.contains(&FaultSite::of(variant, stage, site)))
    }

    /// The finding of a site that was seen, without details.
    pub(crate) fn find_seen_site(
        &mut self,
        variant: &PipelineVariant,
        (stage, number): (usize, u32),
    ) -> Option<CheckFinding> {
        let stage = &variant.stages[stage];
        let site = stage.instrumented.site(number)?;
        let fault_site = FaultSite::of(variant, stage, site);
        if self.legal_sites.contains(&fault_site) || !self.insert_fault(variant, fault_site) {
            return None;
        }
        let kind = BoundResourceKind::of(variant, stage, site);
        let command = FaultCommand { name: command_of_stage(stage.kind), uses_objects: stage.object.is_some() };
        let code = code_of_site(command, kind, site.check);
        let shader = FaultShader::of(variant, stage, site);
        let mut diagnostic = self.diagnostic(variant, stage, site, (code, &shader));
        diagnostic.title = shader.names.unknown_title(site.check);
        diagnostic.message = format!("An access is out of bounds; its details are not known. {}", diagnostic.message);
        let cell = SiteCounter::of(variant, stage, number);
        Some(CheckFinding::Fault(Box::new(finish_fault(
            diagnostic,
            self.objects_of(variant, stage),
            (site, fault_site),
            cell,
            (None, shader),
        ))))
    }

    /// Faults that were counted, but have no record, because it did not fit or the variant does not write it.
    pub(crate) fn find_unrecorded(&mut self, variants: &[Arc<PipelineVariant>]) -> Vec<CheckFinding> {
        let mut found = Vec::new();
        for variant in variants {
            for (at, stage) in variant.stages.iter().enumerate() {
                let counted = stage.instrumented.sites.iter().filter_map(|it| it.decision.number());
                let counted = counted.filter(|it| SiteCounter::of(variant, stage, *it).count() > 0).map(|it| (at, it));
                found.extend(counted.collect::<Vec<_>>().into_iter().filter_map(|it| self.find_seen_site(variant, it)));
            }
            found.extend(variant.seen_sites().into_iter().filter_map(|it| self.find_seen_site(variant, it)));
        }
        found
    }

    /// Whether a variant has counted faults that are not reported.
    pub(crate) fn has_unreported(&self, variant: &PipelineVariant) -> bool {
        let counts = fault_counts(std::slice::from_ref(variant));
        counts.keys().any(|it| !self.reported_sites.contains(it) && !self.legal_sites.contains(it))
            || variant.seen_sites().iter().any(|it| !self.is_reported(variant, *it))
    }

    /// Describes a wrong address.
    fn address_text(&self, address: u64, bytes: u64, is_write: Option<bool>) -> String {
        let buffer = |handle: u64, name: Option<String>| {
            format!("buffer {}", named(name.or_else(|| self.debug_name(ObjectType::BUFFER, handle)).as_deref(), handle))
        };
        let done = match is_write {
            Some(true) => "written",
            Some(false) => "read",
            None => "accessed",
        };
        let what = format!("{bytes} bytes at device address {address:#x} are {done}");
        match self.addresses.find(address) {
            BufferAddressLookup::Nowhere if address < NULL_PAGE => format!("{what}: the address is null."),
            BufferAddressLookup::Nowhere => format!("{what}, which belongs to no buffer."),
            BufferAddressLookup::InBuffer { buffer: value, offset, bytes } => {
                format!("{what}, {offset} bytes into {}, which has {bytes} bytes.", buffer(value, None))
            }
            BufferAddressLookup::PastEnd { buffer: value, distance, bytes } => {
                format!("{what}, {distance} bytes behind the end of {}, which has {bytes} bytes.", buffer(value, None))
            }
            BufferAddressLookup::Destroyed { buffer: value, name } => {
                format!("{what}, in {}, which was destroyed.", buffer(value, name))
            }
        }
    }

    /// The title and the fix of a fault at an address.
    fn describe_address(
        &self,
        names: &FaultNames,
        site: &CheckSite,
        address: u64,
        indices: Option<(u32, u32)>,
    ) -> (String, Vec<Fix>) {
        let found = self.addresses.find(address);
        let buffer = match &found {
            BufferAddressLookup::Nowhere => None,
            BufferAddressLookup::InBuffer { buffer, .. } | BufferAddressLookup::PastEnd { buffer, .. } => {
                self.debug_name(ObjectType::BUFFER, *buffer)
            }
            BufferAddressLookup::Destroyed { buffer, name } => {
                name.clone().or_else(|| self.debug_name(ObjectType::BUFFER, *buffer))
            }
        };
        let fault = AddressFault { is_null: address < NULL_PAGE, found, buffer, bytes: site.bytes, indices };
        (names.address_title(&fault), vec![names.address_fix(&fault)])
    }

    /// A diagnostic with everything that is known without a fault record.
    fn diagnostic(
        &self,
        variant: &PipelineVariant,
        stage: &InstrumentedStage,
        site: &CheckSite,
        (code, shader): (String, &FaultShader),
    ) -> Diagnostic {
        let message = format!("{} Shader Instruction Index = {}.", self.shader_text(variant, stage), site.at.0);
        let mut diagnostic = Diagnostic::new(code, Severity::Error, message);
        let name = self.pipeline_name(variant, stage);
        diagnostic.objects.push(match stage.object {
            Some((_, number)) => DiagnosticObject::new("VkShaderEXT", u64::from(number), name),
            None => DiagnosticObject::new("VkPipeline", u64::from(variant.application.1), name),
        });
        if let Some(name) = stage.name.get().filter(|_| stage.object.is_none()) {
            diagnostic.objects.push(DiagnosticObject::new("VkShaderModule", u64::from(stage.shader), Some(name)));
        }
        let source = shader.source.clone();
        let place = source.as_ref().map_or_else(|| format!("instruction {}", site.at.0), line_text);
        let function = shader.names.access.as_ref().map_or_else(String::new, |it| it.function.clone());
        let access = AccessText { function, ..AccessText::default() };
        diagnostic
            .locations
            .push(DiagnosticLocation { access, ..DiagnosticLocation::new("shader", place, shader.names.cause()) });
        diagnostic.properties.push(fact("instruction", site.at.0));
        if let Some((set, binding)) = binding_of(stage, site) {
            diagnostic.properties.extend([fact("set", set), fact("binding", binding)]);
        }
        if let Some(source) = source {
            diagnostic.explanation.push(source_text(&source));
            diagnostic
                .explanation
                .extend(source.text.as_ref().map(|text| format!("{}: {}", source.line, text.trim_end())));
            diagnostic.properties.extend([fact("line", source.line), fact("column", source.column)]);
            if !source.file.is_empty() {
                diagnostic.properties.push(fact("file", source.file));
            }
        }
        diagnostic
    }

    /// `Pipeline (name)(0x45). Shader Module (0x43).` or `Shader Object (name)(0x45).`
    pub(crate) fn shader_text(&self, variant: &PipelineVariant, stage: &InstrumentedStage) -> String {
        let name = self.pipeline_name(variant, stage);
        if let Some((handle, _)) = stage.object {
            return format!("Shader Object {}.", named(name.as_deref(), handle.0));
        }
        let mut text = format!("Pipeline {}.", named(name.as_deref(), variant.application.0.0));
        if stage.module.0 != 0 {
            text += &format!(" Shader Module {}.", named(stage.name.get().as_deref(), stage.module.0));
        }
        text
    }

    /// Names the command and its command buffer.
    pub(crate) fn draw_text(&self, draw: &DrawDescription, (handle, number): (u64, u32)) -> String {
        let name = self.debug_name(ObjectType::COMMAND_BUFFER, handle);
        let commands = named(name.as_deref(), handle);
        let labels = DebugLabels { queue: Vec::new(), commands: draw.labels.clone() }.path();
        let labels = labels.map_or_else(String::new, |it| format!(", in {it:?}"));
        // If all draws of a pipeline share their records, the draw is unknown.
        if !draw.variant.fixed_tables.is_empty() {
            return format!("{} (of command buffer {number}, {commands}{labels})", draw.command);
        }
        let kind = launch_word(draw.command);
        format!("{} ({kind} {} of command buffer {number}, {commands}{labels})", draw.command, draw.number)
    }

    /// The name of the pipeline or shader object.
    pub(crate) fn pipeline_name(&self, variant: &PipelineVariant, stage: &InstrumentedStage) -> Option<String> {
        match stage.object {
            Some(_) => stage.name.get(),
            None => self.debug_name(ObjectType::PIPELINE, variant.application.0.0),
        }
    }

    pub(crate) fn debug_name(&self, ty: ObjectType, handle: u64) -> Option<String> {
        self.names.get(ty, handle)
    }

    pub(crate) fn object(&self, ty: ObjectType, kind: &'static str, handle: u64) -> MessageObject {
        message_object(ty, kind, handle, self.debug_name(ty, handle))
    }

    fn objects_of(&self, variant: &PipelineVariant, stage: &InstrumentedStage) -> Vec<MessageObject> {
        if let Some((handle, _)) = stage.object {
            return vec![message_object(ObjectType::SHADER_EXT, "VkShaderEXT", handle.0, stage.name.get())];
        }
        let mut all = vec![self.object(ObjectType::PIPELINE, "VkPipeline", variant.application.0.0)];
        if stage.module.0 != 0 {
            all.push(message_object(ObjectType::SHADER_MODULE, "VkShaderModule", stage.module.0, stage.name.get()));
        }
        all
    }
}

/// An object as messages contain it.
pub(crate) fn message_object(ty: ObjectType, kind: &'static str, handle: u64, name: Option<String>) -> MessageObject {
    MessageObject { ty, kind, handle, name: name.and_then(|it| CString::new(it).ok()) }
}

/// The number of faults at each site, in all of some variants.
pub(crate) fn fault_counts<T: Borrow<PipelineVariant>>(variants: &[T]) -> HashMap<FaultSite, u32> {
    let (mut counts, mut known) = (HashMap::new(), HashSet::new());
    for variant in variants.iter().map(Borrow::borrow) {
        // A shader object is in many variants, but is counted once.
        for stage in variant.stages.iter().filter(|it| it.object.is_none() || known.insert(it.shader)) {
            for site in &stage.instrumented.sites {
                let Some(number) = site.decision.number() else { continue };
                let count = SiteCounter::of(variant, stage, number).count();
                if count > 0 {
                    *counts.entry(FaultSite::of(variant, stage, site)).or_insert(0) += count;
                }
            }
        }
    }
    counts
}

/// Lower addresses are null pointers with an offset.
const NULL_PAGE: u64 = 1 << 16;

/// Adds the number of faults so far.
fn finish_fault(
    mut diagnostic: Diagnostic,
    objects: Vec<MessageObject>,
    (site, fault_site): (&CheckSite, FaultSite),
    cell: SiteCounter,
    (error, shader): (Option<RecordedFault>, FaultShader),
) -> ShaderFault {
    let (seen, (least, most)) = (cell.count(), cell.indices());
    let count = seen.max(1);
    let times = if count == 1 { "once".to_owned() } else { format!("{count} times") };
    let has_index = site.check != Check::Address || matches!(site.index_unit, IndexUnit::Elements { .. });
    let text = match seen {
        0 => "It happened at least once.".to_owned(),
        _ if !has_index => format!("It happened {times}."),
        _ if least == most => format!("It happened {times}, with index {most}."),
        _ => format!("It happened {times}, with indices from {least} to {most}."),
    };
    diagnostic.explanation.insert(0, text);
    let check_site = *site;
    ShaderFault { diagnostic, objects, site: fault_site, count, error, shader, check_site, indices: None, launch: None }
}

/// What the module of a shader says of a site.
struct FaultShader {
    names: FaultNames,
    source: Option<SourceLine>,
}

impl FaultShader {
    fn of(variant: &PipelineVariant, stage: &InstrumentedStage, site: &CheckSite) -> FaultShader {
        let module = Module::parse(&stage.original).ok();
        let names = FaultNames {
            stage: stage.kind,
            kind: BoundResourceKind::of(variant, stage, site),
            binding: binding_of(stage, site),
            access: module.as_ref().and_then(|it| it.describe_access(site.at)),
            buffer: None,
        };
        FaultShader { names, source: module.and_then(|it| it.source(site.at)) }
    }

    /// The line, if the shader was compiled from a file.
    fn source_location(&self) -> Option<SourceLocation> {
        let source = self.source.as_ref().filter(|it| !it.file.is_empty())?;
        Some(SourceLocation {
            file: source.file.clone(),
            line: source.line,
            column: Some(source.column).filter(|it| *it > 0),
            function: self.names.access.as_ref().map(|it| it.function.clone()).filter(|it| !it.is_empty()),
            text: source.text.clone(),
        })
    }
}

/// The smallest and the largest index of a site that were out of bounds so far; none if it has no index.
fn fault_indices(fault: &RecordedFault, site: &CheckSite, cell: SiteCounter) -> Option<(u32, u32)> {
    let own = match *fault {
        RecordedFault::IndexOutOfBounds { index, .. }
        | RecordedFault::Uninitialized { index }
        | RecordedFault::BufferOutOfBounds { index, .. } => index,
        RecordedFault::TexelOutOfBounds { texel, .. } => texel,
        RecordedFault::AddressOutOfBounds { .. } => {
            let has_index = matches!(site.index_unit, IndexUnit::Elements { .. }) && cell.count() > 0;
            return has_index.then(|| cell.indices());
        }
    };
    let (least, most) = cell.indices();
    Some(if cell.count() == 0 { (own, own) } else { (least.min(own), most.max(own)) })
}

fn fact(key: &'static str, value: impl ToString) -> Property {
    Property { key, value: value.to_string() }
}

/// The words of a record as properties.
fn facts_of(error: &RecordedFault) -> Vec<Property> {
    match *error {
        RecordedFault::IndexOutOfBounds { index, length } => vec![fact("index", index), fact("length", length)],
        RecordedFault::Uninitialized { index } => vec![fact("index", index)],
        RecordedFault::AddressOutOfBounds { address } => vec![fact("address", format!("{address:#x}"))],
        RecordedFault::BufferOutOfBounds { descriptor, index, range } => {
            vec![fact("descriptor", descriptor), fact("index", index), fact("bound_bytes", range)]
        }
        RecordedFault::TexelOutOfBounds { texel, length } => vec![fact("index", texel), fact("length", length)],
    }
}

/// `(name)(0x45)`.
pub(crate) fn named(name: Option<&str>, handle: u64) -> String {
    name.map_or_else(|| format!("({handle:#x})"), |it| format!("({it})({handle:#x})"))
}

/// A source line in a form for people that is the same in every run.
fn line_text(source: &SourceLine) -> String {
    let column = if source.column > 0 { format!(", column {}", source.column) } else { String::new() };
    match &*source.file {
        "" => format!("line {}{column}", source.line),
        file => format!("{file}, line {}{column}", source.line),
    }
}

/// A shader that was not compiled from a file has only line numbers.
fn source_text(source: &SourceLine) -> String {
    let column = if source.column > 0 { format!(", column {}", source.column) } else { String::new() };
    match &*source.file {
        "" => format!("Shader validation error occurred at line {}{column}.", source.line),
        file => format!("Shader validation error occurred in file {file} at line {}{column}.", source.line),
    }
}

impl DeviceChecks {
    /// Reports findings. No lock is held, because the application is called.
    pub(crate) fn report_all(&self, found: Vec<CheckFinding>) {
        for check_finding in found {
            match check_finding {
                CheckFinding::Fault(fault) => self.report_fault(*fault),
                CheckFinding::Print(print) => self.report_print(&print),
                CheckFinding::LostPrints { needed } => self.warn_lost_prints(needed),
                CheckFinding::WrongInstance(wrong_instance) => {
                    drop(self.send_finding(&wrong_instance.0, &wrong_instance.1, |it| it))
                }
            }
        }
    }

    fn report_fault(&self, fault: ShaderFault) {
        let located = fault.launch.as_ref().and_then(|it| it.locate(self));
        let ShaderFault { mut diagnostic, objects, site: fault_site, count, error, mut shader, check_site, .. } = fault;
        let (indices, launch) = (fault.indices, fault.launch);
        let is_harmless = self.is_robust && error.is_some_and(|it| is_harmless_if_robust(&it));
        if error.is_some_and(|it| !self.config.reports(&it)) || is_harmless && !self.config.warns_robust {
            return;
        }
        if is_harmless {
            diagnostic.severity = Severity::Warning;
            diagnostic
                .explanation
                .push("The device accesses buffers robustly: no memory beside them is touched.".into());
        }
        // Messages have no other place for it.
        let bound_text =
            |it: &DiagnosticObject| it.name.as_ref().map(|name| format!("Buffer {name:?} is bound there."));
        let bound = located.as_ref().and_then(|it| bound_object(it, shader.names.binding, error.as_ref()));
        shader.names.buffer = bound.as_ref().and_then(|it| it.name.clone());
        diagnostic.explanation.extend(bound.as_ref().and_then(bound_text));
        if let (Some(_), Some(error), Some((least, _))) = (&shader.names.buffer, &error, indices) {
            diagnostic.title = shader.names.title(error, &check_site, least);
        }
        let (draws, frames) = self.state().fault_draws.of(&fault_site);
        let complete = |finding| {
            let mut finding = with_counts(with_source(finding, &shader), (draws, frames), count);
            finding.objects.extend(bound.as_ref().map(FindingObject::from));
            finding.notes.extend(indices.and_then(indices_note));
            match &launch {
                Some(launch) => launch.place(finding, located.as_ref()),
                None => finding,
            }
        };
        if let Some(rendered) = self.send_finding(&diagnostic, &objects, complete) {
            let frames = frames.map_or(0, |it| it.count);
            let reported = ReportedFault { rendered, diagnostic, site: fault_site, count, draws, frames };
            self.state().reported_faults.push(reported);
        }
    }

    /// None if the application filters the finding.
    fn send_finding(
        &self,
        diagnostic: &Diagnostic,
        objects: &[MessageObject],
        complete: impl FnOnce(Finding) -> Finding,
    ) -> Option<rendered_finding::RenderedFinding> {
        // Suggestions are for the report. Messages have the form that readers of the Khronos layer know.
        let message = Diagnostic { fixes: Vec::new(), ..diagnostic.clone() };
        let rendered = rendered_finding::RenderedFinding::new(&message, &self.messages, ALL_FINDINGS);
        if !rendered.ignored_by.is_empty() {
            let count = complete(rendered.finding(diagnostic, 1)).occurrences;
            report_file::ignored_fault(&rendered.ignored_by, count);
            return None;
        }
        coverage::note_finding();
        if !report_file::finding(&complete(rendered.finding(diagnostic, 1))) {
            self.messages.log_now(&rendered.message());
        }
        self.messages.send_to_messengers(&rendered.message_about(objects));
        Some(rendered)
    }
}

/// The finding with the line of the shader.
fn with_source(mut finding: Finding, fault_shader: &FaultShader) -> Finding {
    let source = fault_shader.source_location();
    for shader in finding.accesses.iter_mut().filter(|it| it.role == "shader") {
        if source.is_some() {
            shader.stack = Stack { frames: vec![StackFrame { source: source.clone(), ..StackFrame::default() }] };
        }
        if shader.function.is_empty() {
            shader.function = stage_word(fault_shader.names.stage).to_owned();
        }
        shader.action = fault_shader.names.access_text(None).action;
    }
    Finding { source, ..finding }
}

/// The finding of a fault that occurred in so many draws and invocations.
fn with_counts(mut finding: Finding, (draws, frames): (u64, Option<FrameRange>), invocations: u32) -> Finding {
    (finding.occurrences, finding.frames) = (draws, frames.map(FrameSpan::from));
    finding.set_invocations(invocations.into());
    finding
}

impl ReportedFault {
    /// The number of the pipeline or shader object of the finding.
    pub(crate) fn pipeline(&self) -> u32 {
        self.site.pipeline
    }

    /// Adds new faults to the counts in the report file.
    pub(crate) fn report_new_counts(&mut self, counts: &HashMap<FaultSite, u32>, all: &FaultDraws) {
        let now = counts.get(&self.site).copied().unwrap_or(0);
        let (draws, frames) = all.of(&self.site);
        let draws = draws.max(self.draws);
        let (more, more_draws) = (now.saturating_sub(self.count), draws - self.draws);
        let new_frames = new_frames(frames, self.frames);
        if more > 0 || more_draws > 0 || new_frames.is_some() {
            let addition = self.rendered.addition(&self.diagnostic, more_draws);
            report_file::finding(&Finding { invocations: more.into(), frames: new_frames, ..addition });
            (self.count, self.draws) = (self.count + more, draws);
            self.frames += new_frames.map_or(0, |it| it.count);
        }
    }

    /// Like `report_new_counts`. Counters of destroyed variants are removed, so the rest is the new base.
    pub(crate) fn report_and_rebase(
        &mut self,
        (counts, rest): (&HashMap<FaultSite, u32>, &HashMap<FaultSite, u32>),
        draws: &FaultDraws,
    ) {
        self.report_new_counts(counts, draws);
        let [now, rest] = [counts, rest].map(|it| it.get(&self.site).copied().unwrap_or(0));
        self.count = self.count.saturating_sub(now.saturating_sub(rest));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_of_a_pipeline_that_is_gone_are_forgotten_and_not_reported_again() {
        let variant = |number: u32| {
            Arc::new(PipelineVariant { application: (Pipeline(number.into()), number), ..PipelineVariant::empty() })
        };
        let fault_site = |pipeline| FaultSite {
            pipeline,
            stage: 0,
            instruction: 1,
            check: Check::Address,
            binding: None,
            element: None,
        };
        let ([gone, stays], mut state) = ([1, 2].map(variant), ChecksState::default());
        assert!(state.insert_fault(&gone, fault_site(1)) && state.insert_fault(&stays, fault_site(2)));
        assert!(!state.insert_fault(&gone, fault_site(1)) && !state.insert_fault(&stays, fault_site(2)));
        state.forget_faults(&[Arc::clone(&gone)], |it| it == 1);
        assert_eq!(state.reported_sites.len(), 1);
        // Command buffers may still have draws with it, and their records.
        assert!(!state.insert_fault(&gone, fault_site(1)) && !state.insert_fault(&stays, fault_site(2)));
        assert_eq!(state.reported_sites.len(), 1);
    }
}
