//! A short text form of an event stream with expectations.
//!
//! A scenario is a few lines of Vulkan intent, with what must be found written under the operand it concerns.
//! [`parse`] makes a [`Scenario`] of text, [`print`] the canonical text of a scenario, [`judge`] compares what was
//! found with what is expected, and [`run`] puts the files of a folder through all of it. [`Source`] is for programs of
//! which nothing is expected: it has where in the text things are.
//! The grammar is in `docs/scenarios.md`.
//!
//! Absent on purpose: files, and whoever finds hazards; both are the caller's.

#![forbid(unsafe_code)]

mod annotation;
mod builder;
mod command;
mod declare;
mod error;
mod judge;
mod lex;
mod misuse;
mod parse;
mod print;
mod print_command;
mod print_scope;
mod region;
mod run;
mod scope;
mod source;
mod step;
mod threads;
mod vary;
mod words;

use std::collections::BTreeMap;
use std::ops::Range;

use lavascope_sync_ir::{UndefinedContentsKind, HazardKind, Program, Region, ResourceId};

pub use error::ScenarioError;
pub use judge::{Mismatch, annotate, judge, judge_all, judge_variation};
pub use parse::parse;
pub use print::print;
pub use run::{Failure, Outcome, run};
pub use source::{Source, Spot};
pub use threads::interleavings;
pub use vary::{Variation, variations};

/// A program with names, and what must be found in it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scenario {
    pub header: Header,
    pub program: Program,
    pub names: Names,
    /// Labels of commands and steps.
    pub labels: BTreeMap<Site, String>,
    pub threads: Vec<Thread>,
    pub expectations: Vec<Expectation>,
}

/// What stands above the program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// The first paragraph, line by line: which rule this is about.
    pub prose: Vec<String>,
    /// Anchors of the Vulkan specification.
    pub spec: Vec<String>,
    pub is_clean: bool,
    pub vary: Vec<Vary>,
}

/// In which ways a scenario is said again, with equal verdicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Vary {
    BarrierApi,
    Submit,
    Rendering,
}

/// Names of what a program has, in the order of their ids.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    pub memories: Vec<Memory>,
    pub resources: Vec<String>,
    pub queues: Vec<String>,
    pub command_buffers: Vec<String>,
    pub events: Vec<String>,
    pub semaphores: Vec<Semaphore>,
    pub fences: Vec<String>,
    pub render_passes: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Memory {
    pub name: String,
    pub size: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Semaphore {
    pub name: String,
    pub is_timeline: bool,
}

/// Where something is written: once, however often it is executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Site {
    Command { command_buffer: u32, index: u32 },
    Step(u32),
}

/// Steps of one thread; neighboring threads run at the same time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    pub name: String,
    pub steps: Range<u32>,
}

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    Hazard(HazardKind),
    Fault(UndefinedContentsKind),
}

/// A hazard or fault that must be found, as an annotation says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expectation {
    /// Of the annotation; zero where no text was parsed.
    pub line: u32,
    /// Of the operand.
    pub column: u32,
    pub kind: Kind,
    pub resource: ResourceId,
    pub region: Region,
    /// Where the access is.
    pub site: Site,
    /// Where the access is that it conflicts with, or what made contents undefined.
    pub after: Option<Site>,
    /// The number of the operand in its statement; none where the statement does not name what it accesses.
    pub operand: Option<u32>,
    /// `have:` and `need:` lines, for people.
    pub extra: Vec<String>,
    /// `#?`: should be found and is not.
    pub is_known_gap: bool,
}

impl Kind {
    pub fn short(self) -> &'static str {
        match self {
            Kind::Hazard(it) => it.short(),
            Kind::Fault(it) => it.short(),
        }
    }

    pub(crate) fn all() -> impl Iterator<Item = Kind> + Clone {
        HazardKind::ALL.into_iter().map(Kind::Hazard).chain(UndefinedContentsKind::ALL.into_iter().map(Kind::Fault))
    }
}

impl Vary {
    pub(crate) const ALL: [Vary; 3] = [Vary::BarrierApi, Vary::Submit, Vary::Rendering];

    /// What stands behind `vary:`.
    pub(crate) const fn text(self) -> &'static str {
        match self {
            Vary::BarrierApi => "barrier-api = v1 | v2",
            Vary::Submit => "submit = one | many",
            Vary::Rendering => "rendering = pass | dynamic",
        }
    }
}
