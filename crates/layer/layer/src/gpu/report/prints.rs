//! What shaders print with `debugPrintfEXT`, shown as soon as it is read.

use std::ffi::CStr;
use std::io::Write;

use lavascope_instrument::{PrintfRecord, decode_prints, print_problems};
use lavascope_settings::MessageSeverity;
use lavascope_spirv::{InstructionIndex, Module, SourceLine};
use serde_json::{Value, json};

use super::findings::CheckFinding;
use super::message_texts::stage_text;
use crate::gpu::draw::recorded_draws::DrawDescription;
use crate::gpu::pipeline::variants::InstrumentedStage;
use crate::gpu::{ChecksState, DeviceChecks};
use crate::loader::instance::report_problem;
use crate::report::messages::{OutgoingMessage, PRINTF};
use crate::report::report_file;

/// The name of messages about formats, as in the Khronos layer.
const PRINT_FORMAT: &CStr = c"DEBUG-PRINTF-FORMATTING";

/// Something that was printed.
pub(crate) struct PrintFinding {
    /// As the shader formats it.
    text: String,
    /// Where in the shader: `double.comp:12`.
    line: Option<String>,
    /// All that is known of where it was printed.
    place: String,
    details: Value,
}

impl ChecksState {
    /// What the words of a draw's records have of prints.
    pub(crate) fn read_prints(&self, draw: &DrawDescription, commands: (u64, u32), words: &[u32]) -> Vec<CheckFinding> {
        if !draw.variant.stages.iter().any(|it| it.instrumented.prints) {
            return Vec::new();
        }
        let mut found: Vec<CheckFinding> = Vec::new();
        for print in decode_prints(words).unwrap_or_default() {
            let stage = draw.variant.stages.iter().find(|it| it.record_number == print.shader);
            found.extend(stage.and_then(|it| self.describe_print(draw, commands, it, &print)).map(CheckFinding::Print));
        }
        let wanted = words.first().map_or(0, |it| *it as usize);
        if wanted >= words.len() {
            found.push(CheckFinding::LostPrints { needed: (wanted as u64).saturating_mul(4) });
        }
        found
    }

    fn describe_print(
        &self,
        draw: &DrawDescription,
        commands: (u64, u32),
        stage: &InstrumentedStage,
        print: &PrintfRecord,
    ) -> Option<PrintFinding> {
        let module = Module::parse(&stage.original).ok()?;
        let text = without_control(print.text(&module)?.trim_end_matches('\n'));
        let source = module.source(InstructionIndex(print.instruction));
        let line = source.as_ref().map(line_text);
        let (where_in_shader, invocation) = (self.shader_text(&draw.variant, stage), stage_text(&print.invocation));
        let place = format!("{}. {where_in_shader} {invocation}", self.draw_text(draw, commands));
        let details = json!({
            "text": text,
            "file": source.as_ref().map(|it| it.file.clone()).filter(|it| !it.is_empty()),
            "line": source.as_ref().map(|it| it.line),
            "column": source.as_ref().map(|it| it.column).filter(|it| *it > 0),
            "instruction": print.instruction,
            "command": draw.command,
            "draw": draw.number,
            "place": place,
        });
        Some(PrintFinding { text, line, place, details })
    }
}

/// A shader must not send commands to the terminal.
fn without_control(text: &str) -> String {
    let is_shown = |it: char| !it.is_control() || matches!(it, '\n' | '\t');
    text.chars().map(|it| if is_shown(it) { it.to_string() } else { it.escape_debug().to_string() }).collect()
}

/// The place of a print, with the name of the file alone.
fn line_text(source_line: &SourceLine) -> String {
    match &*source_line.file {
        "" => format!("line {}", source_line.line),
        file => format!("{}:{}", file.rsplit(['/', '\\']).next().unwrap_or(file), source_line.line),
    }
}

impl DeviceChecks {
    /// Reports formats of prints that do not fit their arguments, once for each module, by the hash of its words.
    pub(crate) fn report_print_problems(&self, module: &Module, words: u128) {
        if self.config.prints.is_none() || !self.state().checked_prints.insert(words) {
            return;
        }
        for (at, problem) in print_problems(module) {
            let place = module.source(at).map_or("debugPrintfEXT".to_owned(), |it| line_text(&it));
            let (severity, rest) = match problem.is_error {
                true => (MessageSeverity::Error, "; nothing is printed"),
                false => (MessageSeverity::Warning, ""),
            };
            let text = format!("{}{rest}", problem.text);
            report_problem(&self.messages, severity, PRINT_FORMAT, (&place, &text));
        }
    }

    /// Shows what was printed, without a lock: the application may be called.
    pub(crate) fn report_print(&self, print_finding: &PrintFinding) {
        let Some(prints) = self.config.prints else { return };
        let has_report = report_file::printed(&print_finding.details);
        let mut text = print_finding
            .line
            .as_ref()
            .map_or_else(|| print_finding.text.clone(), |line| format!("{line}: {}", print_finding.text));
        if prints.is_verbose {
            text += &format!("\n  {}", print_finding.place);
        }
        if prints.to_stdout {
            // Nobody is left to be told that it cannot be written.
            let _ = std::io::stdout().write_all(format!("{text}\n").as_bytes());
            return;
        }
        self.messages.send_printf(&OutgoingMessage::new(MessageSeverity::Note, PRINTF, &text), has_report);
    }

    /// Tells once that more was printed than there is room for.
    pub(crate) fn warn_lost_prints(&self, needed: u64) {
        let mut state = self.state();
        if !std::mem::replace(&mut state.has_lost_prints, true) {
            drop(state);
            let text = format!(
                "some of what shaders print did not fit: a draw or dispatch needed {needed} bytes; set printf_buffer_size"
            );
            crate::gpu::warn_about(&self.messages, "setting printf", &text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(without_control("a\tb\nc"), "a\tb\nc");
        assert_eq!(without_control("\u{1b}[2J\0"), "\\u{1b}[2J\\0");
    }
}
