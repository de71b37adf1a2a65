//! `lavascope check` of a scenario: the hazards of a program that is written as text.

use std::path::Path;

use anyhow::anyhow;
use lavascope_diag::Diagnostic;
use lavascope_engine::event_races;
use lavascope_explain::{
    CheckBudget, OperationLocation, blocked_submissions, diagnose_faults, diagnose_hazards, diagnose_never_executed,
    diagnose_over_synchronization, diagnose_races, fault_causes, find_over_synchronization, hazard_causes, race_causes,
};
use lavascope_findings::{Finding, FindingSeverity, ReportNotice, SourceLocation, Stack, StackFrame};
use lavascope_scenario::{ScenarioSource, StatementId as Written, TextLocation};
use lavascope_sync_ir::{CommandBufferId, Findings};

use crate::commands::check::scenario_names::ScenarioNames;
use crate::commands::check::{FileFindings, InputKind};

/// How often a program is checked again in search of what it does not need.
const BUDGET: CheckBudget = CheckBudget { checks_max: 10_000 };

pub(crate) fn check_scenario(file: &Path, content: &str, wants_needless: bool) -> anyhow::Result<FileFindings> {
    let source = ScenarioSource::new(content)
        .map_err(|error| anyhow!("{}:{}:{}: {}", file.display(), error.line, error.column, error.message))?;
    let text = ScenarioText { file: file.display().to_string(), lines: content.lines().collect() };
    let findings = find_hazards(&source).into_iter().map(|it| text.finding(it.0, &it.1)).collect();
    let (mut needless, mut notices) = (Vec::new(), Vec::new());
    if wants_needless {
        let found = find_over_synchronization(&source.scenario.program, BUDGET);
        let advice = diagnose_over_synchronization(&found, &ScenarioNames(&source));
        let places = found.redundant.iter().map(|it| source_position(&source, it.location));
        needless = places.zip(&advice).map(|it| text.finding(it.0, it.1)).collect();
        if found.untried > 0 {
            let words = format!("{}: {} changes were not tried; the program is too large", text.file, found.untried);
            notices.push(ReportNotice::new(FindingSeverity::Warning, words));
        }
    }
    Ok(FileFindings { findings, needless, notices, kind: InputKind::Scenario, calls: None })
}

/// The text of a scenario, to show its lines.
struct ScenarioText<'a> {
    file: String,
    lines: Vec<&'a str>,
}

impl ScenarioText<'_> {
    fn finding(&self, location: Option<TextLocation<'_>>, diagnostic: &Diagnostic) -> Finding {
        // Nobody captures call stacks here.
        let mut finding = Finding::of(diagnostic, &|_| Stack::default());
        finding.source = location.map(|it| self.location(it.line, Some(it.column)));
        for access in &mut finding.accesses {
            access.stack = self.stack(&access.place);
        }
        for operation in &mut finding.operations {
            operation.stack = self.stack(&operation.place);
        }
        for change in finding.fixes.iter_mut().flat_map(|it| &mut it.changes) {
            change.stack = self.stack(&change.place);
        }
        finding
    }

    /// The line that [`ScenarioNames`] names a place by.
    fn stack(&self, place: &str) -> Stack {
        let number = place.split_once("line ").and_then(|it| it.1.split([' ', ',', ':', ')']).next()?.parse().ok());
        let source = number.map(|it| self.location(it, None));
        let frame = source.map(|it| StackFrame { source: Some(it), ..StackFrame::default() });
        Stack { frames: frame.into_iter().collect() }
    }

    fn location(&self, line: u32, column: Option<u32>) -> SourceLocation {
        let text = self.lines.get(line as usize - 1).map(|it| (*it).to_owned());
        SourceLocation { file: self.file.clone(), line, column, function: None, text }
    }
}

/// All that is wrong, each with where it is written.
fn find_hazards<'a>(source: &ScenarioSource<'a>) -> Vec<(Option<TextLocation<'a>>, Diagnostic)> {
    let (program, names) = (&source.scenario.program, ScenarioNames(source));
    let Findings { hazards, faults } = lavascope_engine::check_all(program);
    let mut spots: Vec<Option<TextLocation<'a>>> =
        hazard_causes(program, &hazards).iter().map(|it| source.operand(it.0)).collect();
    let mut diagnostics = diagnose_hazards(program, &hazards, &names);
    spots.extend(fault_causes(program, &faults).iter().map(|it| source.operand_of_fault(it.0)));
    diagnostics.extend(diagnose_faults(program, &faults, &names));
    let races = event_races(program);
    spots.extend(race_causes(program, &races).iter().map(|it| source.location(source.statement_at(&it.0.at)?)));
    diagnostics.extend(diagnose_races(program, &races, &names));
    let blocked = blocked_submissions(program);
    diagnostics.extend(diagnose_never_executed(program, &blocked, &names));
    let mut steps: Vec<u32> = blocked.iter().map(|it| it.1).collect();
    steps.dedup();
    spots.extend(steps.into_iter().map(|it| source.location(Written::Step(it))));
    spots.into_iter().zip(diagnostics).collect()
}

/// Where an operation is written that can be changed.
fn source_position<'a>(source: &ScenarioSource<'a>, site: OperationLocation) -> Option<TextLocation<'a>> {
    let command = |buffer: CommandBufferId, index| Written::Command { command_buffer: buffer.0, index };
    let written = match site {
        OperationLocation::Barrier { buffer, command: index, .. }
        | OperationLocation::Event { buffer, command: index, .. }
        | OperationLocation::SetEvent { buffer, command: index } => command(buffer, index),
        OperationLocation::Semaphore { signal, wait } => Written::Step(signal.or(wait)?.step),
        OperationLocation::Step(step) => Written::Step(step),
        OperationLocation::Subpass { .. } => return None,
    };
    source.location(written)
}
