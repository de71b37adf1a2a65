//! The options for reports that `run`, `check`, `replay` and `report` have in common, and where each report goes.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use lavascope_findings::{Coloring, Detail, FindingsReport, ReportFormat, TextOptions, render};

use crate::report::coverage;
use crate::text;
use crate::text::code_pages;
use crate::text::terminal::Terminal;

#[derive(clap::Args, Clone, Debug, Default)]
pub(crate) struct ReportArguments {
    /// Write the report in this format: text, short, json, sarif, junit, github, markdown or html
    ///
    /// With `=FILE` it goes into a file, else to standard output in place of the text. May be given more than once.
    #[arg(long, value_name = "FORMAT[=FILE]", value_parser = OutputRequest::parse)]
    format: Vec<OutputRequest>,
    /// Show everything that is known about each finding, with full names, and all findings
    #[arg(long)]
    verbose: bool,
}

/// A format, and the file that it goes to.
#[derive(Clone, Debug, PartialEq, Eq)]
struct OutputRequest {
    format: ReportFormat,
    file: Option<PathBuf>,
}

impl OutputRequest {
    fn parse(text: &str) -> Result<OutputRequest, String> {
        let (name, file) = match text.split_once('=') {
            Some((name, "-")) => (name, None),
            Some((_, "")) => return Err("there is no file name behind `=`".to_owned()),
            Some((name, file)) => (name, Some(PathBuf::from(file))),
            None => (text, None),
        };
        let Some(format) = ReportFormat::find(name) else {
            let all: Vec<&str> = ReportFormat::ALL.iter().map(|it| it.name()).collect();
            return Err(format!("there is no format `{name}`; the formats are {}", all.join(", ")));
        };
        Ok(OutputRequest { format, file })
    }

    /// Whether it has standard output for itself. Annotations are lines among others in the log of a workflow; other
    /// formats are whole documents.
    fn takes_stdout(&self) -> bool {
        self.file.is_none() && self.format != ReportFormat::Github
    }
}

/// Where the text for people goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextStream {
    Stdout,
    /// Of commands whose standard output is the program's.
    Stderr,
}

/// Where a report goes. Files exist from the beginning, so that a wrong name is an error before anything runs.
pub(crate) struct ReportOutputs {
    requests: Vec<OutputRequest>,
    text_stream: TextStream,
    detail: Detail,
}

/// GitHub Actions shows what is in this file as the summary of a step.
const STEP_SUMMARY: &str = "GITHUB_STEP_SUMMARY";

impl ReportArguments {
    /// Creates the files. `json` is the file of `--json`.
    pub(crate) fn open(&self, json: Option<&Path>, text_stream: TextStream) -> Result<ReportOutputs> {
        let of_json = json.map(|path| OutputRequest {
            format: ReportFormat::Json,
            file: (path != Path::new("-")).then(|| path.to_owned()),
        });
        let mut requests: Vec<OutputRequest> = self.format.iter().cloned().chain(of_json).collect();
        let whole: Vec<&str> = requests.iter().filter(|it| it.takes_stdout()).map(|it| it.format.name()).collect();
        if let [first, second, ..] = whole[..] {
            bail!("{first} and {second} cannot both go to standard output: use --format {second}=FILE");
        }
        for request in &mut requests {
            request.file = request.file.as_deref().map(create_output).transpose()?;
        }
        let detail = if self.verbose { Detail::Verbose } else { Detail::Brief };
        Ok(ReportOutputs { requests, text_stream, detail })
    }
}

/// An empty file whose name does not depend on the current folder.
pub(crate) fn create_output(path: &Path) -> Result<PathBuf> {
    fs::write(path, "").with_context(|| format!("{} cannot be written", path.display()))?;
    fs::canonicalize(path).with_context(|| format!("{} cannot be found again", path.display()))
}

impl ReportOutputs {
    pub(crate) fn has_requests(&self) -> bool {
        !self.requests.is_empty()
    }

    /// Whether people see the findings as text. A format on standard output takes its place.
    pub(crate) fn has_text(&self) -> bool {
        self.requests.iter().all(|it| !it.takes_stdout() || it.format == ReportFormat::Text)
    }

    /// Writes every format. The text for people comes first.
    pub(crate) fn write(&self, report: &mut FindingsReport) -> Result<()> {
        self.write_text(report)?;
        self.write_documents(report)
    }

    /// Everything but the text for people.
    pub(crate) fn write_documents(&self, report: &mut FindingsReport) -> Result<()> {
        add_descriptions(report);
        let others = self.requests.iter().filter(|it| it.file.is_some() || it.format != ReportFormat::Text);
        for OutputRequest { format, file } in others {
            let options = TextOptions { detail: self.detail, ..TextOptions::FILE };
            let mut rendered = render(report, *format, &options);
            if *format == ReportFormat::Text {
                rendered += &coverage::summary_line(report).unwrap_or_default();
            }
            match file {
                Some(path) => {
                    fs::write(path, rendered).with_context(|| format!("{} cannot be written", path.display()))?;
                }
                None => text::emit(&rendered)?,
            }
            if *format == ReportFormat::Github {
                add_step_summary(report)?;
            }
        }
        Ok(())
    }

    /// The text for people, unless another format takes its place.
    pub(crate) fn write_text(&self, report: &mut FindingsReport) -> Result<()> {
        if !self.has_text() {
            return Ok(());
        }
        add_descriptions(report);
        let terminal = match self.text_stream {
            TextStream::Stdout => Terminal::stdout(),
            TextStream::Stderr => Terminal::stderr(),
        };
        let coloring = if terminal.has_colors { Coloring::On } else { Coloring::Off };
        let options = TextOptions { width: terminal.width, coloring, detail: self.detail };
        let rendered = render(report, ReportFormat::Text, &options);
        match self.text_stream {
            TextStream::Stdout => text::emit(&rendered),
            TextStream::Stderr => {
                text::emit_stderr(&rendered);
                Ok(())
            }
        }
    }
}

fn add_descriptions(report: &mut FindingsReport) {
    report.codes = code_pages::descriptions(report.findings.iter().map(|it| it.code.as_str()));
}

fn add_step_summary(report: &FindingsReport) -> Result<()> {
    let Some(path) = std::env::var_os(STEP_SUMMARY).filter(|it| !it.is_empty()).map(PathBuf::from) else {
        return Ok(());
    };
    let rendered = render(report, ReportFormat::Markdown, &TextOptions::FILE);
    let file = OpenOptions::new().append(true).create(true).open(&path);
    file.and_then(|mut it| it.write_all(rendered.as_bytes()))
        .with_context(|| format!("{} ({STEP_SUMMARY}) cannot be written", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_have_names_and_maybe_files() {
        let request = |text: &str| OutputRequest::parse(text).map(|it| (it.format.name(), it.file));
        assert_eq!(request("sarif=a=b.sarif"), Ok(("sarif", Some("a=b.sarif".into()))));
        assert_eq!(request("json=-"), Ok(("json", None)));
        assert_eq!(request("html"), Ok(("html", None)));
        assert_eq!(request("text="), Err("there is no file name behind `=`".to_owned()));
        let error = "there is no format `xml`; the formats are text, short, json, sarif, junit, github, markdown, html";
        assert_eq!(request("xml=a.xml"), Err(error.to_owned()));
    }

    #[test]
    fn standard_output_has_one_document() {
        let outputs = |formats: &[&str]| {
            let format = formats.iter().map(|it| OutputRequest::parse(it).expect(it)).collect();
            let arguments = ReportArguments { format, verbose: false };
            arguments.open(None, TextStream::Stderr).map(|it| it.has_text()).map_err(|it| it.to_string())
        };
        assert_eq!(outputs(&[]), Ok(true));
        assert_eq!(outputs(&["text", "github"]), Ok(true));
        assert_eq!(outputs(&["json"]), Ok(false));
        let error = "text and json cannot both go to standard output: use --format json=FILE";
        assert_eq!(outputs(&["text", "json"]), Err(error.to_owned()));
    }
}
