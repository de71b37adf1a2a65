//! The kinds of findings, and their locations.

use std::fmt;

use crate::{Region, ResourceId};

/// The kind of conflict between two accesses; the later one gives the first word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HazardKind {
    ReadAfterWrite,
    WriteAfterRead,
    WriteAfterWrite,
    ReadRacingWrite,
    WriteRacingWrite,
    WriteRacingRead,
    ReadAfterPresent,
    WriteAfterPresent,
    PresentAfterRead,
    PresentAfterWrite,
}

impl HazardKind {
    /// Whether the earlier access writes, and whether the later one does.
    pub const fn writes(self) -> [bool; 2] {
        match self {
            HazardKind::WriteAfterRead | HazardKind::WriteRacingRead => [false, true],
            HazardKind::WriteAfterWrite | HazardKind::WriteRacingWrite | HazardKind::WriteAfterPresent => [true, true],
            HazardKind::ReadAfterWrite
            | HazardKind::ReadRacingWrite
            | HazardKind::ReadAfterPresent
            | HazardKind::PresentAfterWrite => [true, false],
            HazardKind::PresentAfterRead => [false, false],
        }
    }

    /// As the Khronos layer spells it, behind `SYNC-HAZARD-`.
    pub const fn name(self) -> &'static str {
        match self {
            HazardKind::ReadAfterWrite => "READ-AFTER-WRITE",
            HazardKind::WriteAfterRead => "WRITE-AFTER-READ",
            HazardKind::WriteAfterWrite => "WRITE-AFTER-WRITE",
            HazardKind::ReadRacingWrite => "READ-RACING-WRITE",
            HazardKind::WriteRacingWrite => "WRITE-RACING-WRITE",
            HazardKind::WriteRacingRead => "WRITE-RACING-READ",
            HazardKind::ReadAfterPresent => "READ-AFTER-PRESENT",
            HazardKind::WriteAfterPresent => "WRITE-AFTER-PRESENT",
            HazardKind::PresentAfterRead => "PRESENT-AFTER-READ",
            HazardKind::PresentAfterWrite => "PRESENT-AFTER-WRITE",
        }
    }

    /// As scenarios spell it.
    pub const fn short(self) -> &'static str {
        match self {
            HazardKind::ReadAfterWrite => "RAW",
            HazardKind::WriteAfterRead => "WAR",
            HazardKind::WriteAfterWrite => "WAW",
            HazardKind::ReadRacingWrite => "RRW",
            HazardKind::WriteRacingWrite => "WRW",
            HazardKind::WriteRacingRead => "WRR",
            HazardKind::ReadAfterPresent => "RAP",
            HazardKind::WriteAfterPresent => "WAP",
            HazardKind::PresentAfterRead => "PAR",
            HazardKind::PresentAfterWrite => "PAW",
        }
    }

    pub const ALL: [HazardKind; 10] = [
        HazardKind::ReadAfterWrite,
        HazardKind::WriteAfterRead,
        HazardKind::WriteAfterWrite,
        HazardKind::ReadRacingWrite,
        HazardKind::WriteRacingWrite,
        HazardKind::WriteRacingRead,
        HazardKind::ReadAfterPresent,
        HazardKind::WriteAfterPresent,
        HazardKind::PresentAfterRead,
        HazardKind::PresentAfterWrite,
    ];
}

/// Where in a program something happens.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ProgramLocation {
    /// A step of the host itself.
    Step(u32),
    Command(CommandLocation),
}

/// A command at its execution: once for each submission of its command buffer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommandLocation {
    pub step: u32,
    pub batch: u32,
    /// The place of the primary command buffer in its batch.
    pub primary: u32,
    /// Indices of commands: of each `Execute` on the way together with the place in its list, and of the command
    /// itself, which comes last.
    pub path: Vec<u32>,
}

/// A hazard, as a reference and the engine must agree on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hazard {
    pub kind: HazardKind,
    /// The access that is wrong.
    pub at: ProgramLocation,
    /// The access that it conflicts with.
    pub prior: ProgramLocation,
    pub resource: ResourceId,
    pub region: Region,
}

/// Undefined contents that an access reads, or leaves, without a race.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum UndefinedContentsKind {
    /// A queue family acquires a resource that was not released to it.
    AcquireWithoutRelease,
    /// Something is read between its release and its acquire.
    ReadWithoutAcquire,
    /// A queue family reads what another owns.
    ReadWithoutTransfer,
    /// A subpass writes to an attachment that it shall preserve.
    WriteToPreserved,
    /// A subpass reads an attachment that a subpass before it neither used nor preserved.
    ReadNotPreserved,
}

impl UndefinedContentsKind {
    /// As scenarios spell it.
    pub const fn short(self) -> &'static str {
        match self {
            UndefinedContentsKind::AcquireWithoutRelease => "UNRELEASED",
            UndefinedContentsKind::ReadWithoutAcquire => "UNACQUIRED",
            UndefinedContentsKind::ReadWithoutTransfer => "UNOWNED",
            UndefinedContentsKind::WriteToPreserved => "PRESERVED",
            UndefinedContentsKind::ReadNotPreserved => "UNPRESERVED",
        }
    }

    pub const ALL: [UndefinedContentsKind; 5] = [
        UndefinedContentsKind::AcquireWithoutRelease,
        UndefinedContentsKind::ReadWithoutAcquire,
        UndefinedContentsKind::ReadWithoutTransfer,
        UndefinedContentsKind::WriteToPreserved,
        UndefinedContentsKind::ReadNotPreserved,
    ];
}

/// An access, or an acquire, with contents that are undefined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UndefinedContents {
    pub kind: UndefinedContentsKind,
    pub at: ProgramLocation,
    /// The cause of the undefined contents: a release, a use by another family, the beginning of a subpass. None if
    /// something is missing that should have happened.
    pub prior: Option<ProgramLocation>,
    pub resource: ResourceId,
    pub region: Region,
}

/// All that is wrong with a program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    pub hazards: Vec<Hazard>,
    pub faults: Vec<UndefinedContents>,
}

impl Findings {
    pub fn is_empty(&self) -> bool {
        self.hazards.is_empty() && self.faults.is_empty()
    }
}

impl From<Vec<Hazard>> for Findings {
    fn from(hazards: Vec<Hazard>) -> Findings {
        Findings { hazards, faults: Vec::new() }
    }
}

impl fmt::Display for HazardKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
