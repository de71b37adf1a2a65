//! A short text form of a program, with the hazards that it is expected to have.
//!
//! A scenario is a few lines of Vulkan intent, with what must be found written under the operand it concerns.
//! [`parse`] makes a [`Scenario`] of text, [`print`] the canonical text of a scenario, [`compare_findings`] compares
//! what was found with what is expected, and [`run_files`] puts the files of a folder through all of it.
//! [`ScenarioSource`] is for programs of which nothing is expected: it has where in the text things are. The grammar
//! is in `docs/scenarios.md`.
//!
//! Absent on purpose: files, and the search for hazards; both are the caller's.

#![forbid(unsafe_code)]

mod check;
mod error;
mod parse;
mod print;

use std::collections::BTreeMap;
use std::ops::Range;

use lavascope_sync_ir::{HazardKind, Program, Region, ResourceId, UndefinedContentsKind};

pub use check::compare::{Mismatch, annotate, compare_findings, compare_hazards, compare_variation};
pub use check::interleave::interleavings;
pub use check::run::{FileOutcome, ScenarioFailure, run_files};
pub use check::source::{ScenarioSource, TextLocation};
pub use check::variation::{Variation, variations};
pub use error::ScenarioError;
pub use parse::blocks::parse;
pub use print::document::print;

/// A program with names, and what must be found in it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scenario {
    pub header: ScenarioHeader,
    pub program: Program,
    pub names: DeclaredNames,
    /// Labels of commands and steps.
    pub labels: BTreeMap<StatementId, String>,
    pub threads: Vec<ScenarioThread>,
    pub expectations: Vec<Expectation>,
}

/// The header above the program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScenarioHeader {
    /// The first paragraph, line by line: which rule this is about.
    pub prose: Vec<String>,
    /// Anchors of the Vulkan specification.
    pub spec: Vec<String>,
    pub is_clean: bool,
    pub vary: Vec<VariationKind>,
}

/// The variations of a scenario that must get equal verdicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum VariationKind {
    BarrierApi,
    Submit,
    Rendering,
}

/// Names of what a program has, in the order of their ids.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeclaredNames {
    pub memories: Vec<DeclaredMemory>,
    pub resources: Vec<String>,
    pub queues: Vec<String>,
    pub command_buffers: Vec<String>,
    pub events: Vec<String>,
    pub semaphores: Vec<DeclaredSemaphore>,
    pub fences: Vec<String>,
    pub render_passes: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeclaredMemory {
    pub name: String,
    pub size: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeclaredSemaphore {
    pub name: String,
    pub is_timeline: bool,
}

/// Where something is written: once, however often it is executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StatementId {
    Command { command_buffer: u32, index: u32 },
    Step(u32),
}

/// Steps of one thread; neighboring threads run at the same time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioThread {
    pub name: String,
    pub steps: Range<u32>,
}

/// The error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ExpectedKind {
    Hazard(HazardKind),
    Fault(UndefinedContentsKind),
}

/// A hazard or fault that must be found, as an annotation says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expectation {
    /// The line of the annotation; zero without parsed text.
    pub line: u32,
    /// The position of the operand.
    pub column: u32,
    pub kind: ExpectedKind,
    pub resource: ResourceId,
    pub region: Region,
    /// Where the access is.
    pub statement: StatementId,
    /// Where the access is that it conflicts with, or what made contents undefined.
    pub after: Option<StatementId>,
    /// The number of the operand in its statement; none if the statement does not name what it accesses.
    pub operand: Option<u32>,
    /// `have:` and `need:` lines, for people.
    pub extra: Vec<String>,
    /// `#?`: should be found and is not.
    pub is_known_gap: bool,
}

impl ExpectedKind {
    pub fn short(self) -> &'static str {
        match self {
            ExpectedKind::Hazard(hazard) => hazard.short(),
            ExpectedKind::Fault(fault) => fault.short(),
        }
    }

    pub(crate) fn all() -> impl Iterator<Item = ExpectedKind> + Clone {
        HazardKind::ALL
            .into_iter()
            .map(ExpectedKind::Hazard)
            .chain(UndefinedContentsKind::ALL.into_iter().map(ExpectedKind::Fault))
    }
}

impl VariationKind {
    pub(crate) const ALL: [VariationKind; 3] =
        [VariationKind::BarrierApi, VariationKind::Submit, VariationKind::Rendering];

    /// The words after `vary:`.
    pub(crate) const fn text(self) -> &'static str {
        match self {
            VariationKind::BarrierApi => "barrier-api = v1 | v2",
            VariationKind::Submit => "submit = one | many",
            VariationKind::Rendering => "rendering = pass | dynamic",
        }
    }
}
