//! What can be wrong, and where.

use std::fmt;

use crate::{Region, ResourceId};

/// What kind of conflict two accesses are in; the later one gives the first word.
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
pub enum Place {
    /// A step of the host itself.
    Step(u32),
    Command(At),
}

/// A command as it is executed: once for each submission of its command buffer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct At {
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
pub struct Found {
    pub kind: HazardKind,
    /// The access that is wrong.
    pub at: Place,
    /// The access that it conflicts with.
    pub prior: Place,
    pub resource: ResourceId,
    pub region: Region,
}

impl fmt::Display for HazardKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
