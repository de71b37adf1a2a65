//! Which of several values for a setting wins.
//!
//! The sources name keys and texts; this module finds what they mean, reads the values and lets the strongest win.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};

use crate::application::{self, ApplicationSettings};
use crate::file::{self, SettingsFile};
use crate::problem::{MessageSeverity, PROBLEMS_MAX, Problem, SettingSource, quoted};
use crate::table::{Alias, FOREIGN_WORDS, KeyMeaning, SETTINGS, Setting, Settings, aliases};
use crate::value::{InvalidValue, SettingValue, split};
use crate::{KHRONOS_LAYER, OWN_LAYER, environment};
use lavascope_collections::nearest;

/// Everything that may hold settings, as it was found.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    pub file: Option<SettingsFile>,
    pub environment: Vec<(OsString, OsString)>,
    pub application: ApplicationSettings,
    /// What went wrong while the rest was gathered.
    pub problems: Vec<Problem>,
}

/// Whose names are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Namespace {
    Khronos,
    Own,
}

/// Weakest first: this order is the law of which source wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rank {
    /// A later line wins.
    File(Namespace, usize),
    /// A stronger prefix wins.
    Environment(usize),
    /// An earlier element wins, in `VK_EXT_validation_features` and the like as well as in `VK_EXT_layer_settings`.
    Features(Reverse<usize>),
    LayerSettings(Namespace, Reverse<usize>),
    /// `LAVASCOPE_…`: the word of whoever runs the program, which stands over what is built into it.
    LavascopeVariable,
}

impl Rank {
    /// The weakest rank of the same source.
    fn weakest_of_source(self) -> Rank {
        match self {
            Rank::File(namespace, _) => Rank::File(namespace, 0),
            Rank::Features(_) => Rank::Features(Reverse(usize::MAX)),
            Rank::LayerSettings(namespace, _) => Rank::LayerSettings(namespace, Reverse(usize::MAX)),
            Rank::Environment(_) | Rank::LavascopeVariable => self,
        }
    }
}

/// What was decided on one setting.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Resolved {
    pub(crate) value: SettingValue,
    pub(crate) source: SettingSource,
    namespace: Namespace,
}

/// The settings that all sources together make, and what is wrong with the sources.
pub fn resolve(sources: &Sources) -> (Settings, Vec<Problem>) {
    let mut collector = Collector::default();
    sources.problems.iter().for_each(|it| collector.report(it.clone()));
    if let Some(file) = &sources.file {
        file::collect(file, &mut collector);
    }
    environment::collect(&sources.environment, &mut collector);
    application::collect(&sources.application, &mut collector);
    collector.finish()
}

impl Default for Settings {
    fn default() -> Settings {
        Settings::new(defaults())
    }
}

/// One setting as text for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExplainedSetting {
    pub name: &'static str,
    pub value: String,
    pub source: String,
}

impl Settings {
    /// Every setting with its value and where that comes from.
    pub fn explain(&self) -> Vec<ExplainedSetting> {
        let settings = SETTINGS.iter().zip(&self.resolved);
        let shown =
            |value: &SettingValue| Some(value.to_string()).filter(|it| !it.is_empty()).unwrap_or("none".to_owned());
        let explained = |(setting, resolved): (&Setting, &Resolved)| ExplainedSetting {
            name: setting.name,
            value: shown(&resolved.value),
            source: resolved.source.to_string(),
        };
        settings.map(explained).collect()
    }
}

fn defaults() -> Vec<Resolved> {
    let value = |it: &Setting| it.kind.parse(it.default).expect("a default is a value of its kind");
    let resolved = |it| Resolved { value: value(it), source: SettingSource::Default, namespace: Namespace::Own };
    SETTINGS.iter().map(resolved).collect()
}

/// Gathers what the sources say.
#[derive(Default)]
pub(crate) struct Collector {
    assignments: Vec<Assignment>,
    problems: Vec<Problem>,
    problems_skipped: usize,
    /// Settings of the Khronos layer that mean nothing here, and where the first of them stands.
    foreign: Option<(SettingSource, BTreeSet<String>)>,
}

struct Assignment {
    setting: usize,
    rank: Rank,
    /// A key of its own says more than a word in a list; within one rank it wins.
    is_key: bool,
    resolved: Resolved,
}

impl Collector {
    pub(crate) fn report(&mut self, problem: Problem) {
        if self.problems.len() < PROBLEMS_MAX {
            self.problems.push(problem);
        } else {
            self.problems_skipped += 1;
        }
    }

    /// A name that is addressed to us and means nothing. `written` is how a name of ours would be written there.
    pub(crate) fn report_unknown(
        &mut self,
        place: &SettingSource,
        name: &str,
        key: &str,
        written: impl Fn(&str) -> String,
    ) {
        let known = SETTINGS.iter().map(|it| it.name);
        let problem =
            Problem::new(MessageSeverity::Warning, place, format!("{} is not a setting of {OWN_LAYER}", quoted(name)))
                .allowed("the names in docs/settings.md")
                .suggestion(nearest(key, known, 1).pop().map(written));
        self.report(problem);
    }

    /// A setting of the Khronos layer that is not one of ours. Whoever switches it off asks for nothing.
    pub(crate) fn note_foreign(&mut self, place: &SettingSource, key: &str, value: &str) {
        const OFF: [&str; 4] = ["off", "false", "0", "false32"];
        if !OFF.iter().any(|it| it.eq_ignore_ascii_case(value.trim())) {
            let names = &mut self.foreign.get_or_insert_with(|| (place.clone(), BTreeSet::new())).1;
            names.insert(quoted(key));
        }
    }

    /// Reports them, all at once.
    fn report_foreign(&mut self) {
        let Some((place, names)) = self.foreign.take() else { return };
        let names = names.into_iter().collect::<Vec<_>>().join(", ");
        let message = format!("settings of {KHRONOS_LAYER} that this layer does not have: {names}");
        self.report(Problem::new(MessageSeverity::Note, &place, message));
    }

    /// Takes the text of a key that is known.
    pub(crate) fn add(
        &mut self,
        namespace: Namespace,
        meaning: KeyMeaning,
        text: &OsStr,
        rank: Rank,
        place: &SettingSource,
    ) {
        let (setting, key) = match meaning {
            KeyMeaning::Setting(at, key) => (at, key),
            KeyMeaning::Words(key) => return self.add_words(namespace, key, text, rank, place),
        };
        let kind = SETTINGS[setting].kind;
        let value = match (text.to_str(), kind.path(text)) {
            (Some(text), _) => kind.parse(text),
            (None, Some(path)) => Ok(path),
            (None, None) => {
                Err(InvalidValue { text: text.to_string_lossy().into_owned(), suggestion: None, reason: None })
            }
        };
        match value {
            Ok(value) => self.assign(setting, true, rank, Resolved { value, source: place.clone(), namespace }),
            Err(InvalidValue { text: part, suggestion, reason: why }) => {
                let verb = if kind.is_list() { "contain" } else { "be" };
                let message = why.map_or_else(
                    || format!("{key} cannot {verb} {}", quoted(&part)),
                    |why| format!("{key} cannot {verb} this: {why}"),
                );
                let problem = Problem::new(MessageSeverity::Error, place, message);
                self.report(problem.allowed(kind.allowed()).suggestion(suggestion.map(str::to_owned)));
            }
        }
    }

    fn add_words(&mut self, namespace: Namespace, key: &'static str, text: &OsStr, rank: Rank, place: &SettingSource) {
        // Programs disable everything and enable one check: what a source enables is stronger.
        let rank = if key == "disables" { rank.weakest_of_source() } else { rank };
        for word in split(&text.to_string_lossy()) {
            let mut is_known = false;
            for (setting, alias) in aliases() {
                let Alias::Word(of, name, value) = alias else { continue };
                if of == key && name.eq_ignore_ascii_case(word) {
                    is_known = true;
                    let value = SETTINGS[setting].kind.parse(value).expect("an alias means a value of its setting");
                    self.assign(setting, false, rank, Resolved { value, source: place.clone(), namespace });
                }
            }
            if !is_known {
                self.report_word(key, word, place);
            }
        }
    }

    fn report_word(&mut self, key: &'static str, word: &str, place: &SettingSource) {
        let others = FOREIGN_WORDS.iter().filter(|it| it.0 == key).flat_map(|it| it.1.iter().copied());
        if others.clone().any(|it| it.eq_ignore_ascii_case(word)) {
            if key == "enables" {
                let message = format!("asked for {word}, which is not a job of this layer");
                self.report(Problem::new(MessageSeverity::Note, place, message));
            }
            return;
        }
        let mut ours: Vec<&str> = aliases()
            .filter_map(|(_, alias)| match alias {
                Alias::Word(of, name, _) if of == key => Some(name),
                Alias::Word(..) | Alias::Key(_) => None,
            })
            .collect();
        ours.sort_unstable();
        ours.dedup();
        let suggestion = nearest(word, ours.iter().copied().chain(others), 1).pop().map(str::to_owned);
        let problem = Problem::new(MessageSeverity::Warning, place, format!("{key} cannot contain {}", quoted(word)));
        self.report(problem.allowed(ours.join(", ")).suggestion(suggestion));
    }

    fn assign(&mut self, setting: usize, is_key: bool, rank: Rank, resolved: Resolved) {
        self.assignments.push(Assignment { setting, rank, is_key, resolved });
    }

    fn finish(mut self) -> (Settings, Vec<Problem>) {
        let mut all = defaults();
        self.assignments.sort_by_key(|it| (it.rank, it.is_key));
        for assignment in std::mem::take(&mut self.assignments) {
            all[assignment.setting] = assignment.resolved;
        }
        leave_capture_alone(&mut all);
        self.report_unsupported(&all);
        self.report_foreign();
        if self.problems_skipped > 0 {
            let message = format!("{} more problems with settings are not shown", self.problems_skipped);
            let last = self.problems.last().map_or(SettingSource::Default, |it| it.source.clone());
            self.problems.push(Problem::new(MessageSeverity::Note, &last, message));
        }
        (Settings::new(all), self.problems)
    }

    /// A setting that nobody obeys yet is worth a word when it was changed and nothing else already says so.
    fn report_unsupported(&mut self, all: &[Resolved]) {
        let defaults = defaults();
        let is_changed = |at: usize| all[at].value != defaults[at].value;
        let is_on = |at: usize| match &all[at].value {
            SettingValue::Flag(flag) => *flag,
            _ => is_changed(at),
        };
        for (at, setting) in SETTINGS.iter().enumerate() {
            let is_in_force = feature_of(setting).is_none_or(|it| SETTINGS[it].exists && is_on(it));
            if setting.exists || !is_changed(at) || !is_in_force {
                continue;
            }
            let asked = match &all[at].value {
                SettingValue::Flag(true) => setting.name.to_owned(),
                value => format!("{} = {}", setting.name, quoted(&value.to_string())),
            };
            let severity = match all[at].namespace {
                Namespace::Own => MessageSeverity::Warning,
                Namespace::Khronos => MessageSeverity::Note,
            };
            let message = format!("asked for {asked}, which this version cannot do yet");
            self.report(Problem::new(severity, &all[at].source, message));
        }
    }
}

/// A capture does not validate, unless somebody sets `sync`.
fn leave_capture_alone(all: &mut [Resolved]) {
    let position = |name: &str| SETTINGS.iter().position(|it| it.name == name);
    let (Some(sync), Some(capture)) = (position("sync"), position("capture")) else { return };
    if all[capture].value != SettingValue::Path(None) && all[sync].source == SettingSource::Default {
        all[sync].value = SettingValue::Flag(false);
        all[sync].source = SettingSource::DefaultWith("capture");
    }
}

/// The feature that a setting refines: `gpu` for `gpu_shaders`.
fn feature_of(setting: &Setting) -> Option<usize> {
    const FEATURES: [&str; 4] = ["sync", "gpu", "printf", "capture"];
    let (feature, _) = setting.name.split_once('_')?;
    FEATURES.contains(&feature).then(|| SETTINGS.iter().position(|it| it.name == feature)).flatten()
}
