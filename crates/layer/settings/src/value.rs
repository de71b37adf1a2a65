//! The kinds of values, how each is read from text, and the types they become.

use std::ffi::OsStr;
use std::fmt;
use std::path::PathBuf;

use lavascope_collections::nearest;
use lavascope_diag::IgnoreRule;
use lavascope_platform::files::LIST_SEPARATOR;

/// What a setting's value looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Flag,
    Int {
        min: u64,
        max: u64,
    },
    /// One of these words.
    Choice(&'static [&'static str]),
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
    FrameLists,
}

/// A value of some [`Kind`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    Flag(bool),
    Int(u64),
    Choice(&'static str),
    Choices(Vec<&'static str>),
    MessageIds(Vec<MessageId>),
    Texts(Vec<String>),
    Path(Option<PathBuf>),
    Output(Option<Output>),
    Frames(Option<Frames>),
    FrameLists(Vec<Frames>),
}

/// A message as its author names it, or as `messageIdNumber` has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MessageId {
    Name(String),
    Number(u32),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    Stderr,
    Stdout,
    File(PathBuf),
}

/// Frames from `first` on; `end` is the first that is not among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frames {
    pub first: u64,
    pub end: Option<u64>,
}

/// Why a text is no value.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    /// The part that is wrong.
    pub(crate) part: String,
    pub(crate) suggestion: Option<&'static str>,
    /// Where more can be said than what is allowed.
    pub(crate) why: Option<String>,
}

/// A field of [`crate::Settings`], made from a value of the kind that its row in the table says.
pub(crate) trait Field {
    fn field(value: &Value) -> Self;
}

const FRAMES: &str = "frames as FIRST..END, FIRST.. or ..END (without END), or one frame";

const TRUE: [&str; 4] = ["on", "true", "yes", "1"];
const FALSE: [&str; 4] = ["off", "false", "no", "0"];

impl Kind {
    /// Empty text is no path, no frames, no words; it is neither a flag nor a number.
    pub(crate) fn parse(self, text: &str) -> Result<Value, Refused> {
        let text = unquoted(text);
        Ok(match self {
            Kind::Flag => Value::Flag(flag(text)?),
            Kind::Int { min, max } => Value::Int(integer(text, min, max)?),
            Kind::Choice(words) => Value::Choice(choice(text, words)?),
            Kind::Choices(words) => Value::Choices(split(text).map(|it| choice(it, words)).collect::<Result<_, _>>()?),
            Kind::MessageIds => Value::MessageIds(split(text).map(message_id).collect::<Result<_, _>>()?),
            Kind::Texts => Value::Texts(parts(text, ',').map(str::to_owned).collect()),
            Kind::Rules => Value::Texts(IgnoreRule::split(text).into_iter().map(rule).collect::<Result<_, _>>()?),
            Kind::Path | Kind::Output => self.path(OsStr::new(text)).ok_or_else(|| Refused::part(text))?,
            Kind::Frames => Value::Frames(frames(text)?),
            Kind::FrameLists => {
                let all = parts(text, ',').map(frames).collect::<Result<Vec<_>, _>>()?;
                Value::FrameLists(all.into_iter().flatten().collect())
            }
        })
    }

    /// Paths need not be text.
    pub(crate) fn path(self, path: &OsStr) -> Option<Value> {
        let file = (!path.is_empty()).then(|| PathBuf::from(path));
        match self {
            Kind::Path => Some(Value::Path(file)),
            Kind::Output => Some(Value::Output(file.map(Output::new))),
            _ => None,
        }
    }

    pub(crate) fn is_list(self) -> bool {
        matches!(self, Kind::Choices(_) | Kind::MessageIds | Kind::Texts | Kind::Rules | Kind::FrameLists)
    }

    /// For people: what may stand there.
    pub(crate) fn allowed(self) -> String {
        match self {
            Kind::Flag => "on, off, true, false, yes, no, 1, 0".to_owned(),
            Kind::Int { min, max } => format!("a whole number from {min} to {max}"),
            Kind::Choice(words) => format!("one of {}", words.join(", ")),
            Kind::Choices(words) => format!("any of {}", words.join(", ")),
            Kind::MessageIds => "names or numbers (decimal or 0x…) of messages".to_owned(),
            Kind::Texts => "texts with commas between them".to_owned(),
            Kind::Rules => "code=REGEX, label=REGEX or object=REGEX, with commas between them".to_owned(),
            Kind::Path => "a path".to_owned(),
            Kind::Output => "a path, stdout, stderr, or - for stderr".to_owned(),
            Kind::Frames => FRAMES.to_owned(),
            Kind::FrameLists => format!("{FRAMES}; more with commas between them"),
        }
    }
}

impl Refused {
    fn part(part: &str) -> Refused {
        Refused { part: part.to_owned(), suggestion: None, why: None }
    }
}

impl Output {
    fn new(path: PathBuf) -> Output {
        match path.to_str() {
            Some("-" | "stderr") => Output::Stderr,
            Some("stdout") => Output::Stdout,
            _ => Output::File(path),
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

fn flag(text: &str) -> Result<bool, Refused> {
    let is_one_of = |words: [&'static str; 4]| words.iter().any(|it| it.eq_ignore_ascii_case(text));
    match (is_one_of(TRUE), is_one_of(FALSE)) {
        (false, false) => Err(Refused::part(text)),
        (is_true, _) => Ok(is_true),
    }
}

fn integer(text: &str, min: u64, max: u64) -> Result<u64, Refused> {
    unsigned(text).filter(|it| (min..=max).contains(it)).ok_or_else(|| Refused::part(text))
}

/// Decimal, or hexadecimal after `0x`. Unlike the standard library, without a plus sign.
fn unsigned(text: &str) -> Option<u64> {
    let (digits, radix) = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => (digits, 16),
        None => (text, 10),
    };
    u64::from_str_radix(digits, radix).ok().filter(|_| !digits.starts_with('+'))
}

fn choice(text: &str, words: &'static [&'static str]) -> Result<&'static str, Refused> {
    let found = words.iter().find(|it| it.eq_ignore_ascii_case(text)).copied();
    let suggestion = || nearest(text, words.iter().copied(), 1).pop();
    found.ok_or_else(|| Refused { suggestion: suggestion(), ..Refused::part(text) })
}

fn rule(text: &str) -> Result<String, Refused> {
    match IgnoreRule::parse(text) {
        Ok(_) => Ok(text.to_owned()),
        Err(why) => Err(Refused { why: Some(why), ..Refused::part(text) }),
    }
}

/// What begins like a number must be one; callbacks show ids as signed numbers, so those count too.
fn message_id(text: &str) -> Result<MessageId, Refused> {
    if !text.starts_with(|it: char| it.is_ascii_digit() || it == '-') {
        return Ok(MessageId::Name(text.to_owned()));
    }
    let number = match text.parse::<i32>() {
        Ok(number) => Some(number as u32),
        Err(_) => unsigned(text).and_then(|it| u32::try_from(it).ok()),
    };
    number.map(MessageId::Number).ok_or_else(|| Refused::part(text))
}

fn frames(text: &str) -> Result<Option<Frames>, Refused> {
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
        Some((Some(first), end)) if end.is_none_or(|end| first < end) => Ok(Some(Frames { first, end })),
        _ => Err(Refused::part(text)),
    }
}

/// The text that parses to this value.
impl fmt::Display for Value {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Value::Flag(it) => out.write_str(if *it { "on" } else { "off" }),
            Value::Int(it) => write!(out, "{it}"),
            Value::Choice(it) => out.write_str(it),
            Value::Choices(it) => out.write_str(&it.join(",")),
            Value::MessageIds(it) => out.write_str(&it.iter().map(MessageId::to_string).collect::<Vec<_>>().join(",")),
            Value::Texts(it) => out.write_str(&it.join(",")),
            Value::Path(Some(it)) | Value::Output(Some(Output::File(it))) => write!(out, "{}", it.display()),
            Value::Output(Some(Output::Stderr)) => out.write_str("stderr"),
            Value::Output(Some(Output::Stdout)) => out.write_str("stdout"),
            Value::Frames(Some(it)) => write!(out, "{it}"),
            Value::FrameLists(it) => out.write_str(&it.iter().map(Frames::to_string).collect::<Vec<_>>().join(",")),
            Value::Path(None) | Value::Output(None) | Value::Frames(None) => Ok(()),
        }
    }
}

impl fmt::Display for Frames {
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
        impl Field for $type {
            fn field(value: &Value) -> $type {
                match value {
                    $pattern => $field,
                    other => unreachable!("the type of a setting fits its kind, and {other:?} does not"),
                }
            }
        }
    )*};
}

fields! {
    bool: Value::Flag(it) => *it;
    u64: Value::Int(it) => *it;
    Vec<MessageId>: Value::MessageIds(it) => it.clone();
    Vec<String>: Value::Texts(it) => it.clone();
    Option<PathBuf>: Value::Path(it) => it.clone();
    Option<Output>: Value::Output(it) => it.clone();
    Output: Value::Output(it) => it.clone().unwrap_or(Output::Stderr);
    Option<Frames>: Value::Frames(it) => *it;
    Vec<Frames>: Value::FrameLists(it) => it.clone();
}

/// An enumeration whose variants are words of a setting.
macro_rules! words {
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
            $name: Value::Choice(word) => $name::from_word(word);
            Vec<$name>: Value::Choices(words) => words.iter().copied().map($name::from_word).collect();
        }
    };
}

words! {
    /// Which messages are wanted.
    ReportFlag {
        Error = "error",
        Warn = "warn",
        Info = "info",
        Perf = "perf",
        Debug = "debug",
    }
}

words! {
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

words! {
    /// Where hazards are looked for.
    SyncMode {
        Inline = "inline",
        Async = "async",
    }
}

words! {
    /// How what the host writes into mapped memory is found.
    CaptureMemory {
        Auto = "auto",
        Userfaultfd = "userfaultfd",
        Mprotect = "mprotect",
        Compare = "compare",
    }
}

words! {
    /// Which signal begins and ends what is wanted of a capture.
    CaptureTrigger {
        Off = "off",
        Usr1 = "usr1",
        Usr2 = "usr2",
    }
}

words! {
    /// How a trace is packed.
    Compression {
        Zstd = "zstd",
        Lz4 = "lz4",
        None = "none",
    }
}
