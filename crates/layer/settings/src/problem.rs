//! What is wrong with a setting, where, and what would be right.

use std::fmt;

/// A file of garbage must not become as many messages.
pub const PROBLEMS_MAX: usize = 50;
/// Foreign text is shown up to here.
const SHOWN_CHARS_MAX: usize = 60;

/// Something about the settings that their author should know. It never stops anything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    pub severity: MessageSeverity,
    pub source: SettingSource,
    pub message: String,
    /// What could stand there instead; empty where there is nothing to say.
    pub allowed: String,
    /// What was probably meant.
    pub suggestion: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MessageSeverity {
    /// A value that was refused.
    Error,
    /// A name that is addressed to us and not known, or a request that nothing here fulfils.
    Warning,
    /// A request in the words of another layer that this one does not fulfil.
    Note,
}

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettingSource {
    Default,
    /// The default, which depends on another setting.
    DefaultWith(&'static str),
    /// Line and column count from one; a problem of the whole file has none.
    File {
        path: String,
        at: Option<(usize, usize)>,
    },
    Variable(String),
    /// A member of what the application handed to `vkCreateInstance`.
    Application(String),
}

impl Problem {
    /// What is wrong and what would be right, without place and severity.
    pub fn text(&self) -> String {
        let mut text = on_one_line(&self.message);
        if !self.allowed.is_empty() {
            text += &format!("; allowed: {}", self.allowed);
        }
        if let Some(value) = &self.suggestion {
            text += &format!("; did you mean `{value}`?");
        }
        text
    }

    pub(crate) fn new(severity: MessageSeverity, place: &SettingSource, message: String) -> Problem {
        Problem { severity, source: place.clone(), message, allowed: String::new(), suggestion: None }
    }

    pub(crate) fn allowed(self, allowed: impl Into<String>) -> Problem {
        Problem { allowed: allowed.into(), ..self }
    }

    pub(crate) fn suggestion(self, suggestion: Option<String>) -> Problem {
        Problem { suggestion, ..self }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        let severity = match self.severity {
            MessageSeverity::Error => "error",
            MessageSeverity::Warning => "warning",
            MessageSeverity::Note => "note",
        };
        write!(out, "{}: {severity}: {}", self.source, self.text())
    }
}

impl fmt::Display for SettingSource {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        match self {
            SettingSource::Default => out.write_str("default"),
            SettingSource::DefaultWith(setting) => write!(out, "default with {setting}"),
            SettingSource::File { path, at: None } => out.write_str(&on_one_line(path)),
            SettingSource::File { path, at: Some((line, column)) } => {
                write!(out, "{}:{line}:{column}", on_one_line(path))
            }
            SettingSource::Variable(name) => out.write_str(&on_one_line(name)),
            SettingSource::Application(member) => write!(out, "vkCreateInstance: {member}"),
        }
    }
}

/// Foreign text in quotes, on one line and not long.
pub(crate) fn quoted(text: &str) -> String {
    let end = text.char_indices().nth(SHOWN_CHARS_MAX).map(|it| it.0);
    let (shown, more) = end.map_or((text, ""), |end| (&text[..end], "…"));
    format!("\"{}{more}\"", on_one_line(shown))
}

fn on_one_line(text: &str) -> String {
    let escaped = |it: char| it.escape_debug().to_string();
    text.chars().map(|it| if it.is_control() { escaped(it) } else { it.to_string() }).collect()
}
