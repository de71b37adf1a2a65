//! Compares findings with expectations: the two sets must be equal.

use std::fmt;

use lavascope_sync_ir::{
    Area, Command, Findings, Hazard, HazardKind, ImageDesc, ImageRegion, ProgramLocation, UndefinedContents,
    UndefinedContentsKind,
};
use lavascope_sync_ir::{HostStep, Program, Region, Resource, ResourceId, ResourceKind};

use crate::parse::annotation::contains;
use crate::parse::blocks::parse_statements;
use crate::parse::builder::{OperandUsage, Statement};
use crate::parse::region::{ByteRangeText, region_text};
use crate::print::document::{label, print};
use crate::{Expectation, ExpectedKind, Scenario, StatementId, Variation};

/// The differences between findings and expectations.
#[derive(Clone, Debug)]
pub struct Mismatch {
    /// The scenario as it would have to be, to be read as a difference; never to be written back unread.
    pub actual: String,
    /// The differences, a line each.
    pub faults: Vec<String>,
}

/// Compares as sets: kind, object, range, earlier event and operand. For callers that only find hazards.
pub fn compare_hazards(scenario: &Scenario, found: &[Hazard]) -> Result<(), Mismatch> {
    compare_findings(scenario, &found.to_vec().into())
}

/// The same with faults.
pub fn compare_findings(scenario: &Scenario, found: &Findings) -> Result<(), Mismatch> {
    compare_program(scenario, &scenario.program, Some, found)
}

/// The same for a program that says the scenario in another way.
pub fn compare_variation(scenario: &Scenario, variation: &Variation, found: &Findings) -> Result<(), Mismatch> {
    let origin = |step: u32| variation.steps.get(step as usize).copied();
    compare_program(scenario, &variation.program, origin, found)
}

/// The scenario with the findings as expectations, and with the labels that they need.
pub fn annotate(scenario: &Scenario, found: &Findings) -> Scenario {
    let (actual, _) = expectations(scenario, &scenario.program, Some, found);
    with_expectations(scenario, actual)
}

fn compare_program(
    scenario: &Scenario,
    program: &Program,
    origin: impl Fn(u32) -> Option<u32>,
    found: &Findings,
) -> Result<(), Mismatch> {
    let (actual, lost) = expectations(scenario, program, origin, found);
    let mut faults: Vec<String> = lost.iter().map(|it| format!("found where nothing is: {it:?}")).collect();
    let is_in =
        |all: &[Expectation], it: &Expectation| all.iter().any(|other| is_same_expectation(scenario, other, it));
    for expected in &scenario.expectations {
        match (is_in(&actual, expected), expected.is_known_gap) {
            (false, false) => faults.push(format!(
                "line {}: expected and not found: {}",
                expected.line,
                expectation_text(scenario, expected)
            )),
            (true, true) => faults.push(format!(
                "line {}: the known gap is closed, remove the `?`: {}",
                expected.line,
                expectation_text(scenario, expected)
            )),
            (true, false) | (false, true) => {}
        }
    }
    for one in actual.iter().filter(|it| !is_in(&scenario.expectations, it)) {
        faults.push(format!("found and not expected: {}", expectation_text(scenario, one)));
    }
    if faults.is_empty() {
        return Ok(());
    }
    Err(Mismatch { actual: print(&with_expectations(scenario, actual)), faults })
}

fn with_expectations(scenario: &Scenario, actual: Vec<Expectation>) -> Scenario {
    let mut made = scenario.clone();
    for expected in &actual {
        let fresh = |names: &[&String]| (0..).map(|it| format!("op{it}")).find(|it| !names.contains(&it));
        let Some(after) = expected.after.filter(|it| !made.labels.contains_key(it)) else { continue };
        let name = fresh(&made.labels.values().collect::<Vec<_>>()).expect("there are enough numbers");
        made.labels.insert(after, name);
    }
    made.header.is_clean = actual.is_empty();
    made.expectations = actual;
    made
}

fn expectation_text(scenario: &Scenario, expectation: &Expectation) -> String {
    let at = expectation.resource.0 as usize;
    let object = region_text(
        &scenario.names.resources[at],
        &scenario.program.resources[at],
        &expectation.region,
        ByteRangeText::Always,
    );
    let place = match expectation.statement {
        StatementId::Command { command_buffer, index } => {
            format!("command {index} of {}", scenario.names.command_buffers[command_buffer as usize])
        }
        StatementId::Step(step) => format!("step {step}"),
    };
    let after = expectation
        .after
        .map_or(String::new(), |after| format!(" after {}", label(scenario, expectation.statement, after)));
    format!("{} {object}{after} at {place}", expectation.kind.short())
}

fn is_same_expectation(scenario: &Scenario, a: &Expectation, b: &Expectation) -> bool {
    let regions = || normalized_region(scenario, a) == normalized_region(scenario, b);
    (a.statement, a.operand, a.kind, a.resource, a.after) == (b.statement, b.operand, b.kind, b.resource, b.after)
        && regions()
}

fn normalized_region(scenario: &Scenario, expectation: &Expectation) -> Region {
    normalize(&scenario.program, expectation.resource.0, &expectation.region)
}

/// The findings as annotations, and those without a place in the text.
fn expectations(
    scenario: &Scenario,
    program: &Program,
    origin: impl Fn(u32) -> Option<u32>,
    found: &Findings,
) -> (Vec<Expectation>, Vec<ScenarioFinding>) {
    let bare = print(&Scenario { expectations: Vec::new(), ..scenario.clone() });
    let places = parse_statements(&bare[body_start(&bare)..]).unwrap_or_default();
    let mut made: Vec<Expectation> = Vec::new();
    let mut lost = Vec::new();
    let hazards = found.hazards.iter().map(ScenarioFinding::of_hazard);
    for one in hazards.chain(found.faults.iter().map(ScenarioFinding::of_fault)) {
        let site = |place: &ProgramLocation| site_of(program, place, &origin);
        let is_known = (one.resource.0 as usize) < scenario.program.resources.len();
        let prior = one.prior.as_ref().map(site);
        match (site(&one.at), prior) {
            (Some(at), None | Some(Some(_))) if is_known => {
                made.push(expectation(scenario, &places, &one, at, prior.flatten()));
            }
            _ => lost.push(one),
        }
    }
    (merge(made), lost)
}

/// A finding of either kind.
#[derive(Debug)]
pub(crate) struct ScenarioFinding {
    kind: ExpectedKind,
    pub(crate) at: ProgramLocation,
    prior: Option<ProgramLocation>,
    pub(crate) resource: ResourceId,
    pub(crate) region: Region,
}

impl ScenarioFinding {
    pub(crate) fn of_hazard(hazard: &Hazard) -> ScenarioFinding {
        let Hazard { kind, at, prior, resource, region } = hazard.clone();
        ScenarioFinding { kind: ExpectedKind::Hazard(kind), at, prior: Some(prior), resource, region }
    }

    pub(crate) fn of_fault(undefined_contents: &UndefinedContents) -> ScenarioFinding {
        let UndefinedContents { kind, at, prior, resource, region } = undefined_contents.clone();
        ScenarioFinding { kind: ExpectedKind::Fault(kind), at, prior, resource, region }
    }
}

fn body_start(text: &str) -> usize {
    text.lines().take_while(|it| it.starts_with('#')).map(|it| it.len() + 1).sum()
}

fn expectation(
    scenario: &Scenario,
    places: &[Statement],
    found: &ScenarioFinding,
    site: StatementId,
    after: Option<StatementId>,
) -> Expectation {
    let region = normalize(&scenario.program, found.resource.0, &found.region);
    let statement = places.iter().find(|it| it.id == site);
    let resource = &scenario.program.resources[found.resource.0 as usize];
    let operand = statement.and_then(|it| operand(it, resource, found, &region));
    Expectation {
        line: 0,
        column: 0,
        kind: found.kind,
        resource: found.resource,
        region,
        statement: site,
        after,
        operand,
        extra: Vec::new(),
        is_known_gap: false,
    }
}

/// The operand that the access was made through.
pub(crate) fn operand(
    statement: &Statement,
    resource: &Resource,
    found: &ScenarioFinding,
    region: &Region,
) -> Option<u32> {
    let usage = usage(found.kind);
    let all = || statement.operands.iter().enumerate().filter(|it| it.1.resource == found.resource);
    let fitting =
        || all().filter(|it| it.1.usage == usage || it.1.usage == OperandUsage::Any || usage == OperandUsage::Any);
    let exact = fitting().find(|it| contains(resource, &it.1.region, region));
    let best = exact.or_else(|| fitting().next()).or_else(|| all().next());
    best.map(|it| it.0 as u32)
}

fn usage(kind: ExpectedKind) -> OperandUsage {
    match kind {
        ExpectedKind::Hazard(kind) => match kind {
            HazardKind::ReadAfterWrite | HazardKind::ReadRacingWrite | HazardKind::ReadAfterPresent => {
                OperandUsage::Read
            }
            HazardKind::WriteAfterRead
            | HazardKind::WriteAfterWrite
            | HazardKind::WriteRacingRead
            | HazardKind::WriteRacingWrite
            | HazardKind::WriteAfterPresent => OperandUsage::Write,
            HazardKind::PresentAfterRead | HazardKind::PresentAfterWrite => OperandUsage::Any,
        },
        ExpectedKind::Fault(kind) => match kind {
            UndefinedContentsKind::AcquireWithoutRelease => OperandUsage::Any,
            UndefinedContentsKind::ReadWithoutAcquire
            | UndefinedContentsKind::ReadWithoutTransfer
            | UndefinedContentsKind::ReadNotPreserved => OperandUsage::Read,
            UndefinedContentsKind::WriteToPreserved => OperandUsage::Write,
        },
    }
}

/// Where a place is written.
pub(crate) fn site_of(
    program: &Program,
    place: &ProgramLocation,
    origin: &impl Fn(u32) -> Option<u32>,
) -> Option<StatementId> {
    let at = match place {
        ProgramLocation::Step(step) => return origin(*step).map(StatementId::Step),
        ProgramLocation::Command(at) => at,
    };
    let HostStep::Submit { batches, .. } = program.steps.get(at.step as usize)? else { return None };
    let mut id = *batches.get(at.batch as usize)?.command_buffers.get(at.primary as usize)?;
    let mut path = at.path.as_slice();
    while let [index, place, rest @ ..] = path {
        let commands = &program.command_buffers.get(id.0 as usize)?.commands;
        let Command::Execute(all) = commands.get(*index as usize)? else { return None };
        id = *all.get(*place as usize)?;
        path = rest;
    }
    let index = *path.first()?;
    program.command_buffers.get(id.0 as usize)?.commands.get(index as usize)?;
    Some(StatementId::Command { command_buffer: id.0, index })
}

/// Neighboring ranges of one hazard are one.
fn merge(mut all: Vec<Expectation>) -> Vec<Expectation> {
    let mut at = 0;
    while at < all.len() {
        let joins = |other: &Expectation| {
            let one = &all[at];
            let is_alike = (one.statement, one.operand, one.kind, one.resource, one.after)
                == (other.statement, other.operand, other.kind, other.resource, other.after);
            if is_alike { one.region.join(&other.region) } else { None }
        };
        let found = (at + 1..all.len()).find_map(|it| joins(&all[it]).map(|region| (it, region)));
        match found {
            Some((other, region)) => {
                all.remove(other);
                all[at].region = region;
                // An earlier range may fit now.
                at = 0;
            }
            None => at += 1,
        }
    }
    all
}

/// An area that is all of its levels is none.
pub(crate) fn normalize(program: &Program, resource: u32, region: &Region) -> Region {
    let Some(ResourceKind::Image(image)) = program.resources.get(resource as usize).map(|it| &it.kind) else {
        return region.clone();
    };
    match region {
        Region::Image(part) if part.area.is_some_and(|it| covers(image, part, &it)) => {
            Region::Image(ImageRegion { area: None, ..part.clone() })
        }
        Region::Image(_) | Region::Buffer(_) => region.clone(),
    }
}

fn covers(image: &ImageDesc, part: &ImageRegion, area: &Area) -> bool {
    part.mips.clone().all(|mip| {
        let extent = image.extent_of_mip(mip);
        (0..3).all(|axis| area.offset[axis] == 0 && area.extent[axis] >= extent[axis])
    })
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for fault in &self.faults {
            writeln!(f, "{fault}")?;
        }
        writeln!(f, "what happened, as a scenario:")?;
        self.actual.lines().try_for_each(|it| writeln!(f, "    {it}"))
    }
}

impl std::error::Error for Mismatch {}
