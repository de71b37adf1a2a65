//! The kinds of values, how each is read from text, and the types they become.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::fmt;
use std::path::PathBuf;

use lavascope_collections::nearest;
use lavascope_diag::{Code, IgnoreRule, short_code};
use lavascope_platform::files::LIST_SEPARATOR;

/// What a setting's value looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingKind {
    Flag,
    Int {
        min: u64,
        max: u64,
    },
    /// One of these words.
    Choice(&'static [&'static str]),
    /// One of these words, from nothing to everything. As a flag, on is the last one and off is the first.
    Level(&'static [&'static str]),
    /// Any of these words.
    Choices(&'static [&'static str]),
    MessageIds,
    /// Any texts; a comma ends one.
    Texts,
    /// Rules of [`lavascope_diag::Ignore`]; a comma ends one where another begins.
    Rules,
    Path,
    /// A file, or a standard stream.
    Output,
    Frames,
    /// Any frames; a comma ends some.
    FrameRanges,
}

/// A value of some [`SettingKind`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettingValue {
    Flag(bool),
    Int(u64),
    Choice(&'static str),
    Choices(Vec<&'static str>),
    MessageIds(Vec<MessageId>),
    Texts(Vec<String>),
    Path(Option<PathBuf>),
    Output(Option<OutputTarget>),
    Frames(Option<FrameRange>),
    FrameRanges(Vec<FrameRange>),
}

/// A message as its author names it, or as `messageIdNumber` has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MessageId {
    Name(String),
    Number(u32),
}

const HAZARD_PREFIX: &str = "SYNC-HAZARD-";

impl MessageId {
    /// Whether a message of this code is meant: by its name, its short form, or its number. For hazards, the former names
    /// and numbers of the Khronos layer count, too.
    pub fn matches(&self, code: &str) -> bool {
        let former = code.strip_prefix(HAZARD_PREFIX).map(|it| format!("{HAZARD_PREFIX}{}", it.replace('-', "_")));
        let names = || [Some(code), former.as_deref()].into_iter().flatten();
        match self {
            MessageId::Name(text) => names().chain(short_code(code)).any(|it| it == text),
            MessageId::Number(number) => names().any(|it| Code(Cow::Owned(it.to_owned())).message_id() == *number),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutputTarget {
    Stderr,
    Stdout,
    File(PathBuf),
}

/// Frames from `first` on; `end` is the first that is not among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameRange {
    pub first: u64,
    pub end: Option<u64>,
}

/// Why a text is no value.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct InvalidValue {
    /// The part that is wrong.
    pub(crate) text: String,
    pub(crate) suggestion: Option<&'static str>,
    /// Where more can be said than what is allowed.
    pub(crate) reason: Option<String>,
}

/// A field of [`crate::Settings`], made from a value of the kind that its row in the table says.
pub(crate) trait SettingField {
    fn from_value(value: &SettingValue) -> Self;
}

const FRAMES: &str = "frames as FIRST..END, FIRST.. or ..END (without END), or one frame";

const TRUE: [&str; 4] = ["on", "true", "yes", "1"];
const FALSE: [&str; 4] = ["off", "false", "no", "0"];

impl SettingKind {
    /// Empty text is no path, no frames, no words; it is neither a flag nor a number.
    pub(crate) fn parse(self, text: &str) -> Result<SettingValue, InvalidValue> {
        let text = unquoted(text);
        Ok(match self {
            SettingKind::Flag => SettingValue::Flag(flag(text)?),
            SettingKind::Int { min, max } => SettingValue::Int(integer(text, min, max)?),
            SettingKind::Choice(words) => SettingValue::Choice(choice(text, words)?),
            SettingKind::Level(words) => SettingValue::Choice(level(text, words)?),
            SettingKind::Choices(words) => {
                SettingValue::Choices(split(text).map(|it| choice(it, words)).collect::<Result<_, _>>()?)
            }
            SettingKind::MessageIds => SettingValue::MessageIds(split(text).map(message_id).collect::<Result<_, _>>()?),
            SettingKind::Texts => SettingValue::Texts(parts(text, ',').map(str::to_owned).collect()),
            SettingKind::Rules => {
                SettingValue::Texts(IgnoreRule::split(text).into_iter().map(rule).collect::<Result<_, _>>()?)
            }
            SettingKind::Path | SettingKind::Output => {
                self.path(OsStr::new(text)).ok_or_else(|| InvalidValue::of(text))?
            }
            SettingKind::Frames => SettingValue::Frames(frames(text)?),
            SettingKind::FrameRanges => {
                let all = parts(text, ',').map(frames).collect::<Result<Vec<_>, _>>()?;
                SettingValue::FrameRanges(all.into_iter().flatten().collect())
            }
        })
    }

    /// Paths need not be text.
    pub(crate) fn path(self, path: &OsStr) -> Option<SettingValue> {
        let file = (!path.is_empty()).then(|| PathBuf::from(path));
        match self {
            SettingKind::Path => Some(SettingValue::Path(file)),
            SettingKind::Output => Some(SettingValue::Output(file.map(OutputTarget::new))),
            _ => None,
        }
    }

    pub(crate) fn is_list(self) -> bool {
        matches!(
            self,
            SettingKind::Choices(_)
                | SettingKind::MessageIds
                | SettingKind::Texts
                | SettingKind::Rules
                | SettingKind::FrameRanges
        )
    }

    /// For people: what may stand there.
    pub(crate) fn allowed(self) -> String {
        match self {
            SettingKind::Flag => "on, off, true, false, yes, no, 1, 0".to_owned(),
            SettingKind::Int { min, max } => format!("a whole number from {min} to {max}"),
            SettingKind::Choice(words) => format!("one of {}", words.join(", ")),
            SettingKind::Level(words) => {
                format!("one of {}; on is {}", words.join(", "), words.last().copied().unwrap_or_default())
            }
            SettingKind::Choices(words) => format!("any of {}", words.join(", ")),
            SettingKind::MessageIds => "names or numbers (decimal or 0x…) of messages".to_owned(),
            SettingKind::Texts => "texts with commas between them".to_owned(),
            SettingKind::Rules => "code=REGEX, label=REGEX or object=REGEX, with commas between them".to_owned(),
            SettingKind::Path => "a path".to_owned(),
            SettingKind::Output => "a path, stdout, stderr, or - for stderr".to_owned(),
            SettingKind::Frames => FRAMES.to_owned(),
            SettingKind::FrameRanges => format!("{FRAMES}; more with commas between them"),
        }
    }
}

impl InvalidValue {
    fn of(part: &str) -> InvalidValue {
        InvalidValue { text: part.to_owned(), suggestion: None, reason: None }
    }
}

impl OutputTarget {
    fn new(path: PathBuf) -> OutputTarget {
        match path.to_str() {
            Some("-" | "stderr") => OutputTarget::Stderr,
            Some("stdout") => OutputTarget::Stdout,
            _ => OutputTarget::File(path),
        }
    }
}

/// The words of a list: commas part them, or where there is none what parts the folders of `PATH`.
pub(crate) fn split(text: &str) -> impl Iterator<Item = &str> {
    parts(text, if text.contains(',') { ',' } else { LIST_SEPARATOR })
}

fn parts(text: &str, separator: char) -> impl Iterator<Item = &str> {
    text.split(separator).map(unquoted).filter(|it| !it.is_empty())
}

fn unquoted(text: &str) -> &str {
    let text = text.trim();
    text.strip_prefix('"').and_then(|it| it.strip_suffix('"')).unwrap_or(text).trim()
}

fn flag(text: &str) -> Result<bool, InvalidValue> {
    let is_one_of = |words: [&'static str; 4]| words.iter().any(|it| it.eq_ignore_ascii_case(text));
    match (is_one_of(TRUE), is_one_of(FALSE)) {
        (false, false) => Err(InvalidValue::of(text)),
        (is_true, _) => Ok(is_true),
    }
}

fn integer(text: &str, min: u64, max: u64) -> Result<u64, InvalidValue> {
    unsigned(text).filter(|it| (min..=max).contains(it)).ok_or_else(|| InvalidValue::of(text))
}

/// Decimal, or hexadecimal after `0x`. Unlike the standard library, without a plus sign.
fn unsigned(text: &str) -> Option<u64> {
    let (digits, radix) = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => (digits, 16),
        None => (text, 10),
    };
    u64::from_str_radix(digits, radix).ok().filter(|_| !digits.starts_with('+'))
}

fn choice(text: &str, words: &'static [&'static str]) -> Result<&'static str, InvalidValue> {
    let found = words.iter().find(|it| it.eq_ignore_ascii_case(text)).copied();
    let suggestion = || nearest(text, words.iter().copied(), 1).pop();
    found.ok_or_else(|| InvalidValue { suggestion: suggestion(), ..InvalidValue::of(text) })
}

fn level(text: &str, words: &'static [&'static str]) -> Result<&'static str, InvalidValue> {
    let as_flag = flag(text).ok().and_then(|it| if it { words.last() } else { words.first() });
    as_flag.map_or_else(|| choice(text, words), |it| Ok(it))
}

fn rule(text: &str) -> Result<String, InvalidValue> {
    match IgnoreRule::parse(text) {
        Ok(_) => Ok(text.to_owned()),
        Err(why) => Err(InvalidValue { reason: Some(why), ..InvalidValue::of(text) }),
    }
}

/// What begins like a number must be one; callbacks show ids as signed numbers, so those count too.
fn message_id(text: &str) -> Result<MessageId, InvalidValue> {
    if !text.starts_with(|it: char| it.is_ascii_digit() || it == '-') {
        return Ok(MessageId::Name(text.to_owned()));
    }
    let number = match text.parse::<i32>() {
        Ok(number) => Some(number as u32),
        Err(_) => unsigned(text).and_then(|it| u32::try_from(it).ok()),
    };
    number.map(MessageId::Number).ok_or_else(|| InvalidValue::of(text))
}

fn frames(text: &str) -> Result<Option<FrameRange>, InvalidValue> {
    if text.is_empty() {
        return Ok(None);
    }
    let bound = |text: &str, open| match text.trim() {
        "" => Some(open),
        text => unsigned(text).map(Some),
    };
    let found = match text.split_once("..") {
        Some((first, end)) => bound(first, Some(0)).zip(bound(end, None)),
        None => unsigned(text).map(|it| (Some(it), Some(it.saturating_add(1)))),
    };
    match found {
        Some((Some(first), end)) if end.is_none_or(|end| first < end) => Ok(Some(FrameRange { first, end })),
        _ => Err(InvalidValue::of(text)),
    }
}

/// The text that parses to this value.
impl fmt::Display for SettingValue {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        match self {
            SettingValue::Flag(flag) => out.write_str(if *flag { "on" } else { "off" }),
            SettingValue::Int(int) => write!(out, "{int}"),
            SettingValue::Choice(choice) => out.write_str(choice),
            SettingValue::Choices(choices) => out.write_str(&choices.join(",")),
            SettingValue::MessageIds(message_ids) => {
                out.write_str(&message_ids.iter().map(MessageId::to_string).collect::<Vec<_>>().join(","))
            }
            SettingValue::Texts(texts) => out.write_str(&texts.join(",")),
            SettingValue::Path(Some(path)) | SettingValue::Output(Some(OutputTarget::File(path))) => {
                write!(out, "{}", path.display())
            }
            SettingValue::Output(Some(OutputTarget::Stderr)) => out.write_str("stderr"),
            SettingValue::Output(Some(OutputTarget::Stdout)) => out.write_str("stdout"),
            SettingValue::Frames(Some(frame_range)) => write!(out, "{frame_range}"),
            SettingValue::FrameRanges(frame_ranges) => {
                out.write_str(&frame_ranges.iter().map(FrameRange::to_string).collect::<Vec<_>>().join(","))
            }
            SettingValue::Path(None) | SettingValue::Output(None) | SettingValue::Frames(None) => Ok(()),
        }
    }
}

impl fmt::Display for FrameRange {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        match self.end {
            Some(end) => write!(out, "{}..{end}", self.first),
            None => write!(out, "{}..", self.first),
        }
    }
}

impl fmt::Display for MessageId {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        match self {
            MessageId::Name(name) => out.write_str(name),
            MessageId::Number(number) => write!(out, "{number:#010x}"),
        }
    }
}

/// Values of one kind are always of one variant, and every test makes every field, so a row that has the wrong type
/// for its kind does not survive the first test.
macro_rules! fields {
    ($($type:ty: $pattern:pat => $field:expr;)*) => {$(
        impl SettingField for $type {
            fn from_value(value: &SettingValue) -> $type {
                match value {
                    $pattern => $field,
                    other => unreachable!("the type of a setting fits its kind, and {other:?} does not"),
                }
            }
        }
    )*};
}

fields! {
    bool: SettingValue::Flag(flag) => *flag;
    u64: SettingValue::Int(int) => *int;
    Vec<MessageId>: SettingValue::MessageIds(message_ids) => message_ids.clone();
    Vec<String>: SettingValue::Texts(texts) => texts.clone();
    Option<PathBuf>: SettingValue::Path(path) => path.clone();
    Option<OutputTarget>: SettingValue::Output(output) => output.clone();
    OutputTarget: SettingValue::Output(output) => output.clone().unwrap_or(OutputTarget::Stderr);
    Option<FrameRange>: SettingValue::Frames(frames) => *frames;
    Vec<FrameRange>: SettingValue::FrameRanges(frame_ranges) => frame_ranges.clone();
}

/// An enumeration whose variants are words of a setting.
macro_rules! architecture_name {
    ($(#[$attribute:meta])* $name:ident { $($variant:ident = $word:literal,)* }) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name {
            $($variant,)*
        }

        impl $name {
            pub(crate) const WORDS: &[&str] = &[$($word),*];

            fn from_word(word: &str) -> $name {
                match word {
                    $($word => $name::$variant,)*
                    other => unreachable!("the words of a setting are those of its type, and {other} is not"),
                }
            }
        }

        fields! {
            $name: SettingValue::Choice(word) => $name::from_word(word);
            Vec<$name>: SettingValue::Choices(words) => words.iter().copied().map($name::from_word).collect();
        }
    };
}

architecture_name! {
    /// Which messages are wanted.
    ReportFlag {
        Error = "error",
        Warn = "warn",
        Info = "info",
        Perf = "perf",
        Debug = "debug",
    }
}

architecture_name! {
    /// What happens to a message.
    DebugAction {
        Ignore = "VK_DBG_LAYER_ACTION_IGNORE",
        Callback = "VK_DBG_LAYER_ACTION_CALLBACK",
        Log = "VK_DBG_LAYER_ACTION_LOG_MSG",
        Break = "VK_DBG_LAYER_ACTION_BREAK",
        DebugOutput = "VK_DBG_LAYER_ACTION_DEBUG_OUTPUT",
        Default = "VK_DBG_LAYER_ACTION_DEFAULT",
    }
}

architecture_name! {
    /// Where hazards are looked for.
    SyncMode {
        Inline = "inline",
        Async = "async",
    }
}

architecture_name! {
    /// How much of the call stacks of commands is kept.
    BacktraceMode {
        Off = "off",
        Caller = "caller",
        Full = "full",
    }
}

architecture_name! {
    /// How what the host writes into mapped memory is found.
    CaptureMemory {
        Auto = "auto",
        Userfaultfd = "userfaultfd",
        Copy = "copy",
        Mprotect = "mprotect",
        Compare = "compare",
    }
}

architecture_name! {
    /// Which signal begins and ends what is wanted of a capture.
    CaptureTrigger {
        Off = "off",
        Usr1 = "usr1",
        Usr2 = "usr2",
    }
}

architecture_name! {
    /// How a trace is packed.
    Compression {
        Zstd = "zstd",
        Lz4 = "lz4",
        None = "none",
    }
}
