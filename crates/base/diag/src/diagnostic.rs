//! The parts of a diagnostic.

use std::borrow::Cow;
use std::fmt;

use xxhash_rust::xxh32::xxh32;

/// Users filter on these; they never change once they are out.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Code(pub Cow<'static, str>);

impl Code {
    /// The number that a message with this code has. The seed is the Khronos layer's, so that filters by number work.
    pub fn message_id(&self) -> u32 {
        const SEED: u32 = 8;
        xxh32(self.0.as_bytes(), SEED)
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    Information,
    Performance,
    Warning,
    Error,
}

/// Where something happened, in words: `vkCmdCopyBuffer (command 3 of buffer 0, …)`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DiagnosticLocation {
    /// What it is to the diagnostic: `access`, `prior access`.
    pub role: &'static str,
    pub text: String,
    /// The same for every execution of the same recorded command.
    pub cause: String,
    /// The functions that lead to it, the outermost first: `vkCmdExecuteCommands`, `vkCmdDraw`. Empty where there are
    /// none.
    pub path: Vec<String>,
    pub labels: DebugLabels,
    /// What is done there, where that is an access.
    pub access: AccessText,
    /// What stands around it in its command buffer.
    pub neighbors: Option<CommandNeighbors>,
    /// The number of its call stack; zero if nobody captured it.
    pub stack: u32,
}

/// An access in words.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AccessText {
    /// `vkCmdDispatch`; empty for what no call of the application does.
    pub function: String,
    /// `reads "emitters"[0..512] (set 0, binding 0)`.
    pub action: String,
    /// `VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT`; empty for layout transitions and presentation.
    pub stage: String,
    /// `VK_ACCESS_2_SHADER_STORAGE_READ_BIT`.
    pub access: String,
    pub is_write: bool,
}

/// The commands before and after a command.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommandNeighbors {
    /// The number of the command in its command buffer, from zero.
    pub index: u32,
    pub before: Option<String>,
    pub after: Option<String>,
}

/// The debug labels around something, the outermost first.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DebugLabels {
    /// Of the queue.
    pub queue: Vec<String>,
    /// Of the command buffer.
    pub commands: Vec<String>,
}

impl DebugLabels {
    /// As a path, `Frame::Shadows`; none without labels.
    pub fn path(&self) -> Option<String> {
        let all: Vec<&str> = self.queue.iter().chain(&self.commands).map(String::as_str).collect();
        (!all.is_empty()).then(|| all.join("::"))
    }
}

impl DiagnosticLocation {
    /// One of which nothing more is known.
    pub fn new(role: &'static str, text: String, cause: String) -> DiagnosticLocation {
        DiagnosticLocation {
            role,
            text,
            cause,
            path: Vec::new(),
            labels: DebugLabels::default(),
            access: AccessText::default(),
            neighbors: None,
            stack: 0,
        }
    }
}

/// An object of the application that a diagnostic is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DiagnosticObject {
    /// `VkBuffer`.
    pub kind: &'static str,
    pub id: u64,
    /// As the application named it.
    pub name: Option<String>,
    /// What it is like, in words that are the same in every run: `1024 bytes`.
    pub description: Option<String>,
    /// How many live objects of the same kind and description were created before it.
    pub ordinal: u32,
    /// Which image of a swapchain it is differs from run to run.
    pub is_swapchain_image: bool,
}

impl DiagnosticObject {
    pub fn new(kind: &'static str, id: u64, name: Option<String>) -> DiagnosticObject {
        DiagnosticObject { kind, id, name, description: None, ordinal: 0, is_swapchain_image: false }
    }
}

/// The calls that led to something, by a number that whoever captured them knows.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallStack {
    /// What was called there: `access`, `barrier at …`.
    pub role: String,
    pub number: u32,
}

/// A property that tools read: `key = value`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Property {
    pub key: &'static str,
    pub value: String,
}

/// Synchronization between two accesses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DiagnosticOperation {
    /// `barrier`, `event`, `subpass dependency`, `semaphore`, `host wait`, `submission`.
    pub kind: &'static str,
    /// `vkCmdPipelineBarrier2`.
    pub function: String,
    /// What it orders: `"emitters": COPY -> VERTEX_SHADER`.
    pub scope: String,
    /// Why it does not order the two accesses: `does not reach COMPUTE_SHADER`. Empty if it does.
    pub gap: String,
    /// Whether only bits of its masks, or a larger range, are missing.
    pub is_near_miss: bool,
    pub src_stages: Vec<String>,
    pub src_access: Vec<String>,
    pub dst_stages: Vec<String>,
    pub dst_access: Vec<String>,
    pub place: String,
    pub labels: DebugLabels,
    pub stack: u32,
}

/// Another pair of accesses with the same cause.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DiagnosticSite {
    /// What the two accesses conflict on: `"emitters"[0..512]`.
    pub resource: String,
    /// Of the access that differs from the first pair.
    pub function: String,
    pub place: String,
    pub labels: DebugLabels,
    pub stack: u32,
}

/// Frames, counted from zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrameRange {
    pub first: u64,
    pub last: u64,
    /// In how many frames of the range it happened.
    pub count: u64,
}

impl FrameRange {
    pub fn new(frame: u64) -> FrameRange {
        FrameRange { first: frame, last: frame, count: 1 }
    }

    /// Adds a frame; frames come in their order.
    pub fn add(&mut self, frame: u64) {
        if frame > self.last {
            (self.last, self.count) = (frame, self.count + 1);
        }
    }
}

/// A change that would make the diagnostic go away.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Fix {
    pub text: String,
    /// Whether the program was checked again with the change.
    pub is_verified: bool,
    /// The same as data; empty if it is no change of a call.
    pub changes: Vec<FixChange>,
}

/// A change at one place.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct FixChange {
    /// What is changed: `the barrier`, or before what something is inserted: `before vkCmdDispatch`.
    pub target: String,
    pub place: String,
    pub stack: u32,
    pub edits: Vec<FixEdit>,
}

/// A line of a change.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct FixEdit {
    /// `dstStageMask`, or the call that is inserted.
    pub field: String,
    /// None for what is new.
    pub before: Option<String>,
    pub after: String,
}

impl Fix {
    /// One that nobody tried.
    pub fn advice(text: impl Into<String>) -> Fix {
        Fix { text: text.into(), is_verified: false, changes: Vec::new() }
    }
}

/// Characters of a title.
pub const TITLE_MAX: usize = 100;

/// Something to tell the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    pub code: Code,
    pub severity: Severity,
    /// The function of the API in which it is reported: `vkQueueSubmit`. Empty if in none.
    pub function: String,
    /// What is wrong, in at most [`TITLE_MAX`] characters and in the words of a person. Empty: the first sentence of the
    /// message.
    pub title: String,
    /// One line, or a few: what is wrong.
    pub message: String,
    /// The later one first.
    pub locations: Vec<DiagnosticLocation>,
    pub objects: Vec<DiagnosticObject>,
    pub properties: Vec<Property>,
    /// Line by line, how it came about.
    pub explanation: Vec<String>,
    /// Synchronization on the way from the first access to the second. What almost covers comes first.
    pub operations: Vec<DiagnosticOperation>,
    /// Synchronization between the two accesses that is not among the operations.
    pub unrelated_operations: u64,
    /// What else a person should know, one sentence each.
    pub notes: Vec<String>,
    /// Of the accesses, and of what lies between them.
    pub stacks: Vec<CallStack>,
    /// The smallest first.
    pub fixes: Vec<Fix>,
    /// Why there is no fix, if there is none.
    pub no_fix: Option<String>,
    /// How often it was found.
    pub count: u64,
    /// How many pairs of accesses have this cause.
    pub sites: u64,
    /// The first of the pairs after the one that is described.
    pub more_sites: Vec<DiagnosticSite>,
    /// The frames in which it was found. None if nothing is presented.
    pub frames: Option<FrameRange>,
    /// How many causes have the same code, accesses and objects, and occur earlier in the program.
    pub ordinal: u32,
    /// Whether two accesses meet only if a shader picks a certain element of an array, or if numbers in memory that nobody
    /// read have certain values.
    pub is_overlap_assumed: bool,
}

impl Diagnostic {
    /// One that says no more than this.
    pub fn new(code: impl Into<Cow<'static, str>>, severity: Severity, message: String) -> Diagnostic {
        Diagnostic {
            code: Code(code.into()),
            severity,
            function: String::new(),
            title: String::new(),
            message,
            locations: Vec::new(),
            objects: Vec::new(),
            properties: Vec::new(),
            explanation: Vec::new(),
            operations: Vec::new(),
            unrelated_operations: 0,
            notes: Vec::new(),
            stacks: Vec::new(),
            fixes: Vec::new(),
            no_fix: None,
            count: 1,
            sites: 1,
            more_sites: Vec::new(),
            frames: None,
            ordinal: 0,
            is_overlap_assumed: false,
        }
    }

    /// The title, or what stands for it.
    pub fn title(&self) -> String {
        if self.title.is_empty() { first_sentence(&self.message) } else { self.title.clone() }
    }

    pub fn property(&self, key: &str) -> Option<&str> {
        self.properties.iter().find(|it| it.key == key).map(|it| it.value.as_str())
    }
}

/// The first sentence of a message, cut where it is too long.
fn first_sentence(message: &str) -> String {
    let line = message.lines().next().unwrap_or_default();
    let sentence = line.find(". ").map_or(line, |end| &line[..end]);
    shortened(sentence.trim_end_matches('.'), TITLE_MAX)
}

/// At most so many characters of a text.
pub fn shortened(text: &str, characters_max: usize) -> String {
    if text.chars().count() <= characters_max {
        return text.to_owned();
    }
    text.chars().take(characters_max.saturating_sub(1)).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_the_first_sentence_where_nobody_wrote_one() {
        let titled = |message: &str| Diagnostic::new("A", Severity::Error, message.to_owned()).title();
        assert_eq!(titled("One thing. Another.\nThird"), "One thing");
        assert_eq!(titled("Work was never executed."), "Work was never executed");
        let long = titled(&"word ".repeat(30));
        assert_eq!((long.chars().count(), long.ends_with('…')), (TITLE_MAX, true));
    }

    #[test]
    fn frames_are_counted_once() {
        let mut range = FrameRange::new(3);
        [3, 3, 4, 9, 9].into_iter().for_each(|it| range.add(it));
        assert_eq!(range, FrameRange { first: 3, last: 9, count: 3 });
    }

    #[test]
    fn message_ids_are_those_of_public_logs() {
        let id = |name: &'static str| Code(Cow::Borrowed(name)).message_id();
        assert_eq!(id("SYNC-HAZARD-READ-AFTER-WRITE"), 0xe4d9_6472);
        assert_eq!(id("SYNC-HAZARD-WRITE-AFTER-READ"), 0x376b_c9df);
        assert_eq!(id("SYNC-HAZARD-WRITE-AFTER-WRITE"), 0x5c0e_c5d6);
        assert_eq!(id("SYNC-HAZARD-READ-RACING-WRITE"), 0x2991_0a35);
        assert_eq!(id("SYNC-HAZARD-WRITE-RACING-WRITE"), 0x743c_6069);
        assert_eq!(id("SYNC-HAZARD-WRITE-RACING-READ"), 0xccb7_7929);
        assert_eq!(id("SYNC-HAZARD-READ-AFTER-PRESENT"), 0xec7c_c1b6);
        assert_eq!(id("SYNC-HAZARD-WRITE-AFTER-PRESENT"), 0x42f2_f4ed);
        assert_eq!(id("SYNC-HAZARD-PRESENT-AFTER-WRITE"), 0xe17a_b4ae);
        assert_eq!(id("SYNC-HAZARD-PRESENT-AFTER-READ"), 0x73fb_91f8);
        assert_eq!(id("SYNC-HAZARD-READ_AFTER_WRITE"), 0x4cb7_5b2d);
    }
}
