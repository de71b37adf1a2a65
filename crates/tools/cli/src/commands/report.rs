//! `lavascope report`: prints a report that was written as JSON, in any format.

use std::path::PathBuf;

use anyhow::{Context, anyhow};
use lavascope_findings::FindingsReport;

use super::CommandOutcome;
use crate::report::coverage;
use crate::report::output::{ReportArguments, TextStream};
use crate::text;

const EXIT_CODES: &str = "\
Exit codes:
  0  the report is printed, whatever it has
  2  the file cannot be read, or is not a report";

/// Print a report that `run`, `check` or `replay` wrote as JSON
#[derive(clap::Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct ReportCommandArguments {
    /// A file of `--json` or `--format json=FILE`
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    report: ReportArguments,
}

pub(crate) fn run(arguments: &ReportCommandArguments) -> anyhow::Result<CommandOutcome> {
    let shown = arguments.file.display();
    let text = std::fs::read_to_string(&arguments.file).with_context(|| format!("{shown} cannot be read"))?;
    let mut report = FindingsReport::parse(&text).map_err(|error| anyhow!("{shown}: {error}"))?;
    // The file may be one that is written.
    let outputs = arguments.report.open(None, TextStream::Stdout)?;
    outputs.write_text(&mut report)?;
    if let Some(line) = coverage::summary_line(&report).filter(|_| outputs.has_text()) {
        text::emit(&line)?;
    }
    outputs.write_documents(&mut report)?;
    Ok(CommandOutcome::Success)
}
