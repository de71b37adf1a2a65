//! Selects the calls that `lavascope print` prints.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ops::Range;

use anyhow::bail;
use lavascope_abi::{Command, ObjectId};
use lavascope_marshal::{Arena, HandleResolver, UnpackPurpose, Unpacker};
use lavascope_record::{ObjectNames, Record};
use lavascope_trace::Trace;
use rustc_hash::FxHashSet;

use crate::text::progress::TerminalProgress;
use crate::trace::record_reader::each_record;
use crate::trace::trace_file::TraceFile;

/// Calls of one thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CallRange {
    /// None for the first thread.
    thread: Option<u32>,
    numbers: Range<u64>,
}

/// `17`, `17..20`, `2:17`, `2:17..20`.
pub(crate) fn parse_calls(text: &str) -> Result<CallRange, String> {
    let (thread, numbers) = match text.split_once(':') {
        Some((thread, numbers)) => {
            let wrong = |_| format!("`{thread}` is no number of a thread; use CALL or THREAD:CALL, as in `2:17`");
            (Some(thread.parse().map_err(wrong)?), numbers)
        }
        None => (None, text),
    };
    Ok(CallRange { thread, numbers: super::range(numbers)? })
}

impl CallRange {
    pub(crate) fn with_thread(&self, first: u32) -> SelectedCalls {
        let thread = self.thread.unwrap_or(first);
        SelectedCalls { thread, numbers: self.numbers.clone(), has_any: Cell::new(false) }
    }
}

/// Calls of one thread, and whether the trace has one of them.
pub(crate) struct SelectedCalls {
    thread: u32,
    numbers: Range<u64>,
    has_any: Cell<bool>,
}

/// What a call must be to be printed. Parts that are empty allow all calls.
#[derive(Default)]
pub(crate) struct CallFilter {
    pub(crate) calls: Vec<SelectedCalls>,
    pub(crate) thread: Option<u32>,
    pub(crate) frames: Option<Range<u64>>,
    pub(crate) objects: Option<ObjectFilter>,
    pub(crate) commands: Option<FxHashSet<u16>>,
    pub(crate) text: Option<String>,
}

impl CallFilter {
    /// Whether a call has a place that is wanted.
    pub(crate) fn accepts_place(&self, thread: u32, call: u64, frame: u64) -> bool {
        let mut is_selected = self.calls.is_empty();
        for selected in self.calls.iter().filter(|it| it.thread == thread && it.numbers.contains(&call)) {
            selected.has_any.set(true);
            is_selected = true;
        }
        is_selected
            && self.thread.is_none_or(|it| it == thread)
            && self.frames.as_ref().is_none_or(|it| it.contains(&frame))
    }

    pub(crate) fn accepts_command(&self, command: Command) -> bool {
        self.commands.as_ref().is_none_or(|it| it.contains(&(command as u16)))
    }

    /// Whether the parameters and the results of a call decide together.
    pub(crate) fn needs_contents(&self) -> bool {
        self.objects.is_some() || self.text.is_some()
    }

    /// Which of the wanted contents a record has.
    pub(crate) fn contents(&self, record: Record<'_>, text: &str) -> FoundContents {
        FoundContents {
            has_object: self.objects.as_ref().is_none_or(|it| it.has_one_of(record)),
            has_text: self.text.as_ref().is_none_or(|it| text.contains(it.as_str())),
        }
    }

    /// Whether a write to memory is printed.
    pub(crate) fn accepts_write(&self, memory: ObjectId) -> bool {
        self.commands.is_none()
            && self.text.is_none()
            && self.objects.as_ref().is_none_or(|it| it.ids.contains(&memory))
    }

    /// The error if the trace does not have a call that was asked for. `threads` has the numbers of the first and the
    /// last call of each.
    pub(crate) fn missing_call(&self, threads: &BTreeMap<u32, (u64, u64)>) -> Option<String> {
        let missing = self.calls.iter().find(|it| !it.has_any.get())?;
        let (thread, first) = (missing.thread, missing.numbers.start);
        Some(match threads.get(&thread) {
            Some((from, to)) => format!("thread {thread} has no call {first}; its calls are {from} to {to}"),
            None => format!("there is no thread {thread}"),
        })
    }
}

/// Which of the wanted contents a call has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FoundContents {
    has_object: bool,
    has_text: bool,
}

impl FoundContents {
    /// With those of the other record of the call.
    pub(crate) fn with(self, other: FoundContents) -> FoundContents {
        FoundContents { has_object: self.has_object || other.has_object, has_text: self.has_text || other.has_text }
    }

    pub(crate) fn are_all(self) -> bool {
        self.has_object && self.has_text
    }
}

/// The commands with these names: `*` stands for any text, and `vk` may be left out.
pub(crate) fn commands(names: &[String]) -> anyhow::Result<Option<FxHashSet<u16>>> {
    let mut all = FxHashSet::default();
    for name in names {
        let wanted = name.strip_prefix("vk").unwrap_or(name).to_lowercase();
        let short = |it: &Command| it.desc().name.strip_prefix("vk").unwrap_or(it.desc().name).to_lowercase();
        let before = all.len();
        let fitting = Command::ALL.iter().filter(|it| fits(&wanted, &short(it)));
        all.extend(fitting.map(|it| *it as u16));
        if all.len() == before && !Command::ALL.iter().any(|it| fits(&wanted, &short(it))) {
            bail!("Vulkan has no command `{name}`; `lavascope api` knows all of them");
        }
    }
    Ok((!names.is_empty()).then_some(all))
}

/// Whether a text fits a pattern, in which `*` stands for any text.
fn fits(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((begin, rest)) => text.strip_prefix(begin).is_some_and(|behind| {
            let ends = behind.char_indices().map(|it| it.0).chain([behind.len()]);
            ends.into_iter().any(|it| fits(rest, &behind[it..]))
        }),
    }
}

/// Objects that calls must use.
pub(crate) struct ObjectFilter {
    ids: FxHashSet<ObjectId>,
    arena: RefCell<Arena>,
}

impl ObjectFilter {
    /// Names that an object gets late count for earlier calls, too, so the trace is read once for them.
    pub(crate) fn of(names: &[String], file: &TraceFile, trace: &Trace<'_>) -> anyhow::Result<Option<ObjectFilter>> {
        if names.is_empty() {
            return Ok(None);
        }
        let (mut ids, mut found) = (FxHashSet::default(), FxHashSet::default());
        let (mut object_names, mut arena) = (ObjectNames::default(), Arena::default());
        each_record(file, trace, &TerminalProgress::new(file.size()), |trace_record| {
            let Ok(record) = trace_record.record else { return true };
            object_names.apply(record);
            for object in objects(record, &mut arena) {
                let id = object.to_string();
                let name = object_names.name(object);
                if let Some(wanted) = names.iter().find(|it| **it == id || name == Some(it.as_str())) {
                    ids.insert(object);
                    found.insert(wanted);
                }
            }
            true
        });
        if let Some(name) = names.iter().find(|it| !found.contains(it)) {
            bail!("{}: no object has the name or id `{name}`", file.path.display());
        }
        Ok(Some(ObjectFilter { ids, arena: RefCell::new(arena) }))
    }

    fn has_one_of(&self, record: Record<'_>) -> bool {
        objects(record, &mut self.arena.borrow_mut()).iter().any(|it| self.ids.contains(it))
    }
}

/// The objects that a record names.
fn objects(record: Record<'_>, arena: &mut Arena) -> Vec<ObjectId> {
    let named = IdCollector::default();
    let unpacker = Unpacker { handles: &named, purpose: UnpackPurpose::RoundTrip };
    arena.clear();
    // After an error in unpacking, the objects that were found up to it count.
    let _ = unpacker.unpack(record, arena);
    named.0.into_inner()
}

/// Collects the ids that a walk finds.
#[derive(Default)]
struct IdCollector(RefCell<Vec<ObjectId>>);

impl HandleResolver for IdCollector {
    fn handle(&self, id: ObjectId) -> u64 {
        if !id.is_unknown() {
            self.0.borrow_mut().push(id);
        }
        1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_named_as_in_messages() {
        let range = |thread, numbers| Ok(CallRange { thread, numbers });
        assert_eq!(parse_calls("17"), range(None, 17..18));
        assert_eq!(parse_calls("2:17..20"), range(Some(2), 17..20));
        assert!(parse_calls("x:1").is_err_and(|it| it.contains("`x` is no number of a thread")));
        assert!(parse_calls("2:x").is_err());
    }

    #[test]
    fn commands_are_named_with_stars() {
        assert!(fits("a*c", "abbc") && fits("*", "") && fits("a", "a") && fits("*b*", "abc") && fits("*c", "cc"));
        assert!(!fits("a*c", "abb") && !fits("", "a"));
        let one = |name: &str| commands(&[name.to_owned()]).map(|it| it.unwrap_or_default());
        assert!(one("cmdDraw").is_ok_and(|it| it.len() == 1 && it.contains(&(Command::CmdDraw as u16))));
        assert!(one("vkCmdDraw*").is_ok_and(|it| it.len() > 5 && it.contains(&(Command::CmdDrawIndexed as u16))));
        assert!(one("vkCmdDrawFromTheFuture").is_err_and(|it| it.to_string().contains("no command")));
    }

    #[test]
    fn a_call_that_is_not_there_is_an_error() {
        let calls = |text: &str| parse_calls(text).expect("right").with_thread(1);
        let filter = CallFilter { calls: vec![calls("3"), calls("2:9")], ..CallFilter::default() };
        let threads = BTreeMap::from([(1, (1, 3)), (2, (1, 5))]);
        assert!(filter.accepts_place(1, 3, 0) && !filter.accepts_place(2, 3, 0) && !filter.accepts_place(1, 9, 0));
        assert_eq!(filter.missing_call(&threads).as_deref(), Some("thread 2 has no call 9; its calls are 1 to 5"));
        assert!(filter.accepts_place(2, 9, 0) && filter.missing_call(&threads).is_none());
    }
}
