//! A finding as text, for messengers and for the report file.

use std::ffi::CString;

use lavascope_abi::{HandleType, ObjectId, ObjectType};
use lavascope_diag::{DebugLabels, Diagnostic, render_text};
use lavascope_findings::{Finding, FindingAccess, FindingSeverity, FindingSite, Stack, StackFrame};
use lavascope_settings::MessageSeverity;

use crate::backtrace::{self, CapturedFrame};
use crate::intercept::handle_table::HandleTable;
use crate::report::messages::{MessageLabels, MessageObject, Messages, OutgoingMessage};
use crate::report::report_file;
use crate::report::validation::FindingFilter;

pub(crate) struct RenderedFinding {
    pub(crate) severity: MessageSeverity,
    pub(crate) name: CString,
    pub(crate) text: String,
    function: String,
    /// The objects that it is about, with their debug names.
    objects: Vec<(ObjectId, Option<CString>)>,
    labels: MessageLabels,
    /// The settings that filter it; empty if none does.
    pub(crate) ignored_by: Vec<String>,
}

impl RenderedFinding {
    /// The text of a finding, by the settings of an instance.
    pub(crate) fn new(diagnostic: &Diagnostic, messages: &Messages, filter: FindingFilter) -> RenderedFinding {
        let facts = if messages.has_extra_properties() { diagnostic.properties.clone() } else { Vec::new() };
        let text = render_text(&Diagnostic { count: 1, properties: facts, ..diagnostic.clone() });
        let labels = diagnostic.locations.first().map_or_else(DebugLabels::default, |it| it.labels.clone());
        let list = |all: Vec<String>| all.into_iter().filter_map(|it| CString::new(it).ok()).collect();
        RenderedFinding {
            severity: filter.severity(diagnostic),
            name: CString::new(&*diagnostic.code.0).unwrap_or_default(),
            // The first line has severity and code, which are separate fields of a message.
            text: text.split_once('\n').map_or("", |it| it.1).trim_end().to_owned() + &stacks_text(diagnostic),
            function: diagnostic.function.clone(),
            objects: diagnostic
                .objects
                .iter()
                .filter_map(|it| Some((object_of(it)?, c_text(it.name.as_deref()))))
                .collect(),
            labels: MessageLabels { queue: list(labels.queue), commands: list(labels.commands) },
            ignored_by: messages.ignored_by(diagnostic),
        }
    }

    pub(crate) fn message(&self) -> OutgoingMessage<'_> {
        self.message_about(&[])
    }

    pub(crate) fn message_about<'a>(&'a self, objects: &'a [MessageObject]) -> OutgoingMessage<'a> {
        let own = OutgoingMessage::new(self.severity, &self.name, &self.text);
        OutgoingMessage { function: &self.function, labels: &self.labels, objects, ..own }
    }

    /// The objects that are alive, by the handles that the application has for them.
    pub(crate) fn objects(&self, names: &HandleTable) -> Vec<MessageObject> {
        let made = |pair: &(ObjectId, Option<CString>)| {
            let handle_type = pair.0.ty()?;
            let ty = match handle_type {
                HandleType::Buffer => ObjectType::BUFFER,
                HandleType::Image => ObjectType::IMAGE,
                HandleType::CommandBuffer => ObjectType::COMMAND_BUFFER,
                HandleType::Queue => ObjectType::QUEUE,
                HandleType::Event => ObjectType::EVENT,
                _ => return None,
            };
            let (kind, handle) = (handle_type.name(), names.handle_of(pair.0)?);
            Some(MessageObject { ty, kind, handle, name: pair.1.clone() })
        };
        self.objects.iter().filter_map(made).collect()
    }

    /// The finding for the report file, with the number of its occurrences.
    pub(crate) fn finding(&self, diagnostic: &Diagnostic, occurrences: u64) -> Finding {
        let finding = Finding::of(diagnostic, &raw_stack);
        Finding { severity: self.finding_severity(diagnostic), occurrences, ..finding }
    }

    /// An addition to a finding that the report file has.
    pub(crate) fn addition(&self, diagnostic: &Diagnostic, occurrences: u64) -> Finding {
        let finding = Finding::of(diagnostic, &|_| Stack::default()).addition();
        Finding { severity: self.finding_severity(diagnostic), occurrences, ..finding }
    }

    /// The commands around the access, for an addition.
    pub(crate) fn neighbors(&self, diagnostic: &Diagnostic) -> Vec<FindingAccess> {
        let accesses = Finding::of(diagnostic, &|_| Stack::default()).accesses;
        let alone = |it: FindingAccess| FindingAccess { neighbors: it.neighbors, ..FindingAccess::default() };
        accesses.into_iter().take(1).map(alone).collect()
    }

    /// The listed sites after the first `known` ones, which the report file has.
    pub(crate) fn more_sites(&self, diagnostic: &Diagnostic, known: u64) -> Vec<FindingSite> {
        let listed = Finding::of(diagnostic, &raw_stack).more_sites;
        listed.into_iter().skip(known.saturating_sub(1) as usize).collect()
    }

    /// The severity in the report file. The settings may raise it to an error.
    fn finding_severity(&self, diagnostic: &Diagnostic) -> FindingSeverity {
        match self.severity {
            MessageSeverity::Error => FindingSeverity::Error,
            MessageSeverity::Warning | MessageSeverity::Note => diagnostic.severity.into(),
        }
    }
}

/// A call stack without names: `lavascope run` reads those from the modules.
pub(crate) fn raw_stack(number: u32) -> Stack {
    let frame = |captured: CapturedFrame| StackFrame {
        module: captured.module.as_deref().map(str::to_owned),
        offset: captured.offset,
        symbol: captured.symbol,
        ..StackFrame::default()
    };
    Stack { frames: backtrace::frames(number).into_iter().map(frame).collect() }
}

/// Largest number of frames of a call stack in a message.
const FRAMES_MAX: usize = 16;

/// The call stacks of a message: modules and offsets, because looking up symbols takes time. Empty if there is a report
/// file, which has the stacks with source lines.
fn stacks_text(diagnostic: &Diagnostic) -> String {
    let mut text = String::new();
    if report_file::is_open() {
        return text;
    }
    for stack in &diagnostic.stacks {
        text += &format!("\n  call stack of the {}:", stack.role);
        for frame in backtrace::frames(stack.number).iter().take(FRAMES_MAX) {
            let module = frame.module.as_deref().unwrap_or("?");
            let symbol = frame.symbol.as_ref().map_or(String::new(), |it| format!(" ({it})"));
            text += &format!("\n    {module}+{:#x}{symbol}", frame.offset);
        }
    }
    text
}

fn object_of(diagnostic_object: &lavascope_diag::DiagnosticObject) -> Option<ObjectId> {
    let ty = [HandleType::Buffer, HandleType::Image, HandleType::Event, HandleType::CommandBuffer, HandleType::Queue];
    ObjectId::new(ty.into_iter().find(|ty| ty.name() == diagnostic_object.kind)?, diagnostic_object.id)
}

fn c_text(text: Option<&str>) -> Option<CString> {
    text.and_then(|it| CString::new(it).ok())
}
