//! A finding and its parts, as the JSON has them.
//!
//! Names of stages and accesses are whole here (`VK_PIPELINE_STAGE_2_COPY_BIT`); renderings for people shorten them.

use serde::{Deserialize, Serialize};

/// One cause: what is wrong at one place, however often it happens.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Finding {
    /// `SYNC-HAZARD-READ-AFTER-WRITE`.
    pub code: String,
    pub severity: FindingSeverity,
    /// What is wrong, in at most 100 characters: resource, both accesses, and what is missing.
    pub title: String,
    /// The message that messengers get, with all details.
    pub message: String,
    /// The function of the API in which it was found. Empty if in none.
    pub function: String,
    /// The later access first.
    pub accesses: Vec<FindingAccess>,
    /// Synchronization on the way from the first access to the second. One that almost covers them comes first.
    pub operations: Vec<FindingOperation>,
    /// Further operations between the two accesses, which have nothing to do with them.
    pub unrelated_operations: u64,
    /// The smallest first.
    pub fixes: Vec<FindingFix>,
    /// Why there is no fix, if there is none.
    pub no_fix: Option<String>,
    pub objects: Vec<FindingObject>,
    /// What else a person should know, one sentence each.
    pub notes: Vec<String>,
    /// How it came about, line by line, with every operation.
    pub explanation: Vec<String>,
    pub properties: Vec<FindingProperty>,
    /// What it is known by from run to run.
    pub identity: Vec<String>,
    /// The same as a number, in 16 hexadecimal digits.
    pub fingerprint: String,
    /// What a later run knows the earlier access by, in 12 hexadecimal digits. Empty if there is none.
    pub first_access: String,
    /// How often it happened.
    pub occurrences: u64,
    /// Of a shader fault: in how many invocations, in all draws and dispatches together.
    #[serde(skip_serializing_if = "is_zero")]
    pub invocations: u64,
    /// How many pairs of commands have this cause: draws that race with one write of the host are one cause.
    pub sites: u64,
    /// Some of the sites behind the first.
    pub more_sites: Vec<FindingSite>,
    /// The frames in which it happened; none where nothing is presented.
    pub frames: Option<FrameSpan>,
    /// Where it is written, for findings in scenarios.
    pub source: Option<SourceLocation>,
    /// The trace or scenario that was checked.
    pub file: Option<String>,
    /// The library that makes the calls, if it is not the program itself.
    pub library: Option<String>,
    /// Whether it is in the baseline.
    pub is_known: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FindingSeverity {
    Error,
    Warning,
    Performance,
    /// Or whatever else a newer layer reports.
    #[default]
    #[serde(other)]
    Info,
}

/// One of the two accesses of a hazard, or the access of a shader fault.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FindingAccess {
    /// `access` or `prior access`.
    pub role: String,
    /// `vkCmdDispatch`. Empty for what no call of the program does.
    pub function: String,
    /// What it does, with the resource: `reads "emitters"[0..512] (set 0, binding 0)`.
    pub action: String,
    /// `VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT`. Empty for layout transitions and presentation.
    pub stage: String,
    /// `VK_ACCESS_2_SHADER_STORAGE_READ_BIT`.
    pub access: String,
    pub is_write: bool,
    /// Where it is: `command 14 of VkCommandBuffer#0 "two dispatches"`.
    pub place: String,
    /// The functions that lead to it, the outermost first.
    pub path: Vec<String>,
    /// The debug labels around it, `Frame::Shadows`.
    pub labels: Option<String>,
    /// The commands around it, for programs without debug information.
    pub neighbors: Option<NeighborCommands>,
    /// Empty if call stacks are off.
    pub stack: Stack,
}

/// Another pair of commands with the same cause.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FindingSite {
    /// What the two accesses meet on: `"emitters"[0..512]`.
    pub resource: String,
    /// Of the access that is not the same as in the first pair.
    pub function: String,
    pub place: String,
    pub labels: Option<String>,
    pub stack: Stack,
}

/// What stands before and after a command in its command buffer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NeighborCommands {
    /// The number of the command in its command buffer, from zero.
    pub index: u32,
    pub before: Option<String>,
    pub after: Option<String>,
}

/// A barrier, an event, a subpass dependency, a semaphore or a wait of the host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FindingOperation {
    /// `barrier`, `event`, `subpass dependency`, `semaphore`, `host wait`, `submission`.
    pub kind: String,
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
    pub labels: Option<String>,
    pub stack: Stack,
}

/// A change with which the finding goes away.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FindingFix {
    /// As a sentence.
    pub text: String,
    /// Whether the program was checked again with the change.
    pub is_verified: bool,
    /// Nearly always one.
    pub changes: Vec<FixChange>,
}

/// One of the changes of a fix, at one place.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FixChange {
    /// What is changed: `the barrier`, or before what something is inserted: `before vkCmdDispatch`.
    pub target: String,
    /// Where that is.
    pub place: String,
    pub stack: Stack,
    /// Lines that go and lines that come.
    pub edits: Vec<FixEdit>,
}

/// A line of a fix.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FixEdit {
    /// `dstStageMask`, or the call that is inserted.
    pub field: String,
    /// The value that goes; none for what is new.
    pub before: Option<String>,
    pub after: String,
}

/// An object of the application.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FindingObject {
    /// `VkBuffer`.
    pub kind: String,
    pub id: u64,
    pub name: Option<String>,
    /// What it is like: `1024 bytes`.
    pub description: Option<String>,
}

/// What tools look for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FindingProperty {
    pub key: String,
    pub value: String,
}

/// Frames, counted from zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FrameSpan {
    pub first: u64,
    pub last: u64,
    pub count: u64,
}

/// A place in a source file, from one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(default)]
pub struct SourceLocation {
    pub file: String,
    pub line: u32,
    pub column: Option<u32>,
    pub function: Option<String>,
    /// The line itself, where the file is there.
    pub text: Option<String>,
}

/// A call stack, the innermost frame first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Stack {
    pub frames: Vec<StackFrame>,
}

/// One function of a call stack.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StackFrame {
    pub module: Option<String>,
    /// From the beginning of the module: the address behind the call.
    pub offset: u64,
    /// The exported function at or before it.
    pub symbol: Option<String>,
    /// What the debug information of the module says.
    pub source: Option<SourceLocation>,
    /// The library that it is of, if the user did not write it.
    pub library: Option<String>,
    /// Whether it only passes the Vulkan command on: it is called as that is.
    pub is_wrapper: bool,
}

impl Finding {
    /// What `run --break-first` takes: the fingerprint, and the earlier access if there is one.
    pub fn full_fingerprint(&self) -> String {
        match &self.first_access[..] {
            "" => self.fingerprint.clone(),
            first => format!("{}-{first}", self.fingerprint),
        }
    }
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Stack {
    /// The innermost place in a source file of the program itself, behind its wrappers; else that of a library.
    pub fn source(&self) -> Option<&SourceLocation> {
        self.source_frames().next()
    }

    /// The places in source files, from the innermost on. Those of libraries and wrappers are only there if there are
    /// no others.
    pub(crate) fn source_frames(&self) -> impl Iterator<Item = &SourceLocation> {
        let has_line = |it: &&StackFrame| it.source.as_ref().is_some_and(|it| it.line > 0);
        let is_own = |it: &StackFrame| it.library.is_none() && !it.is_wrapper;
        let has_own = self.frames.iter().filter(has_line).any(is_own);
        let frames = self.frames.iter().filter(has_line).filter(move |it| !has_own || is_own(it));
        frames.filter_map(|it| it.source.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_is_the_same_after_json() {
        let frame = StackFrame {
            source: Some(SourceLocation { file: "a.c".to_owned(), line: 3, ..SourceLocation::default() }),
            ..StackFrame::default()
        };
        let access = FindingAccess { stack: Stack { frames: vec![frame] }, ..FindingAccess::default() };
        let finding =
            Finding { severity: FindingSeverity::Error, accesses: vec![access], occurrences: 3, ..Finding::default() };
        let text = serde_json::to_string(&finding).expect("it has only text and numbers");
        assert_eq!(serde_json::from_str::<Finding>(&text).ok(), Some(finding.clone()));
        assert_eq!(finding.accesses[0].stack.source().map(|it| it.line), Some(3));
    }

    #[test]
    fn places_of_the_program_come_before_those_of_libraries() {
        let frame = |line, library: Option<&str>| StackFrame {
            source: Some(SourceLocation { line, ..SourceLocation::default() }),
            library: library.map(str::to_owned),
            ..StackFrame::default()
        };
        let lines = |frames| Stack { frames }.source_frames().map(|it| it.line).collect::<Vec<_>>();
        assert_eq!(lines(vec![frame(1, Some("wgpu-hal")), frame(2, None), frame(0, None), frame(3, None)]), [2, 3]);
        assert_eq!(lines(vec![frame(1, Some("wgpu-hal")), frame(2, Some("wgpu"))]), [1, 2]);
    }

    #[test]
    fn what_a_newer_layer_adds_is_skipped() {
        let finding: Finding = serde_json::from_str(r#"{ "code": "A", "severity": "fatal", "new": 1 }"#).expect("JSON");
        assert_eq!((finding.code.as_str(), finding.severity), ("A", FindingSeverity::Info));
    }
}
