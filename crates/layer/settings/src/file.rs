//! `vk_layer_settings.txt`: lines `lavascope_inspect.NAME = VALUE`, and `khronos_validation.NAME = VALUE`.
//!
//! `#` begins a comment anywhere in a line, as in the Khronos library. The file is shared between layers, so that keys
//! of others mean nothing here.

use std::ffi::OsStr;

use crate::problem::{MessageSeverity, Problem, SettingSource, quoted};
use crate::resolve::{Collector, Namespace, Rank};
use crate::table::{KeyMeaning, SETTINGS, key_meaning};

/// Larger files are not read.
pub const FILE_SIZE_BYTES_MAX: u64 = 1024 * 1024;

const OWN_PREFIX: &str = "lavascope_inspect";
const KHRONOS_PREFIX: &str = "khronos_validation";

/// A settings file as it was read.
#[derive(Clone, Debug, Default)]
pub struct SettingsFile {
    /// For messages.
    pub path: String,
    pub bytes: Vec<u8>,
}

pub(crate) fn collect(file: &SettingsFile, collector: &mut Collector) {
    let problem = |message: String| {
        let place = SettingSource::File { path: file.path.clone(), at: None };
        Problem::new(MessageSeverity::Error, &place, message)
    };
    if file.bytes.len() as u64 > FILE_SIZE_BYTES_MAX {
        return collector.report(problem(format!("larger than {FILE_SIZE_BYTES_MAX} bytes, so it is not read")));
    }
    let bytes = match &file.bytes[..] {
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => {
            return collector.report(problem("UTF-16 text, so it is not read; save it as UTF-8".to_owned()));
        }
        [0xef, 0xbb, 0xbf, rest @ ..] => rest,
        all => all,
    };
    for (at, line) in bytes.split(|it| *it == b'\n').enumerate() {
        let reader = LineReader { path: &file.path, number: at + 1, is_text: std::str::from_utf8(line).is_ok() };
        reader.collect(&String::from_utf8_lossy(line), collector);
    }
}

struct LineReader<'a> {
    path: &'a str,
    number: usize,
    /// Whether the line could be read without guessing.
    is_text: bool,
}

impl LineReader<'_> {
    fn collect(&self, line: &str, collector: &mut Collector) {
        let line = line.split('#').next().unwrap_or_default();
        if line.trim().is_empty() {
            return;
        }
        let key_at = self.source_at(line, line.trim_start());
        let Some((key, value)) = line.split_once('=') else {
            let problem = Problem::new(MessageSeverity::Warning, &key_at, format!("no `=` in {}", quoted(line.trim())));
            return collector.report(problem.allowed(format!("{OWN_PREFIX}.NAME = VALUE, or a comment after #")));
        };
        let value_at = self.source_at(line, value.trim_start());
        let (whole, value) = (key.trim(), value.trim());
        let Some((prefix, key)) = whole.split_once('.') else { return };
        match prefix {
            _ if prefix.eq_ignore_ascii_case(OWN_PREFIX) => {
                let meaning = key_meaning(Namespace::Own, key);
                if value.is_empty() {
                    // Tools write every key, those whose default is empty too.
                    if matches!(meaning, Some(KeyMeaning::Setting(at, _)) if SETTINGS[at].default.is_empty()) {
                        return;
                    }
                    let problem =
                        Problem::new(MessageSeverity::Error, &key_at, format!("no value after {} =", quoted(whole)));
                    return collector.report(problem);
                }
                if meaning.is_none() {
                    return collector.report_unknown(&key_at, whole, key, |it| format!("{OWN_PREFIX}.{it}"));
                }
                self.add_value(Namespace::Own, key, value, &value_at, collector);
            }
            // Tools write every key, those without a value too.
            _ if prefix.eq_ignore_ascii_case(KHRONOS_PREFIX) && value.is_empty() => {}
            _ if prefix.eq_ignore_ascii_case(KHRONOS_PREFIX) => {
                self.add_value(Namespace::Khronos, key, value, &value_at, collector);
            }
            _ if prefix.to_ascii_lowercase().contains("lavascope") => {
                collector.report_unknown(&key_at, whole, key, |it| format!("{OWN_PREFIX}.{it}"));
            }
            _ => {}
        }
    }

    fn add_value(
        &self,
        namespace: Namespace,
        key: &str,
        value: &str,
        place: &SettingSource,
        collector: &mut Collector,
    ) {
        let Some(meaning) = key_meaning(namespace, key) else { return collector.note_foreign(place, key, value) };
        if self.is_text {
            let rank = Rank::File(namespace, self.number);
            collector.add(namespace, meaning, OsStr::new(value), rank, place);
        } else {
            let message = format!("the value of {key} is not UTF-8 text: {}", quoted(value));
            collector.report(Problem::new(MessageSeverity::Error, place, message));
        }
    }

    /// Where the end of the line begins that is `rest`.
    fn source_at(&self, line: &str, rest: &str) -> SettingSource {
        let before = line.strip_suffix(rest).unwrap_or_default();
        SettingSource::File { path: self.path.to_owned(), at: Some((self.number, before.chars().count() + 1)) }
    }
}
