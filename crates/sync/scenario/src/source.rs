//! Where in its text a program has things: for whoever shows them to its author.

use lavascope_sync_ir::{UndefinedContents, Hazard, ProgramLocation, Region, ResourceId};

use crate::builder::Statement;
use crate::error::ScenarioError;
use crate::judge::{One, normalize, operand, site_of};
use crate::region::{Bytes, text as region_text};
use crate::{Scenario, Site, misuse, parse};

/// A program that makes sense, with its text. Nothing is expected of it: header, annotations and all other comments
/// may be there or not.
pub struct Source<'a> {
    pub scenario: Scenario,
    lines: Vec<&'a str>,
    statements: Vec<Statement>,
}

/// A place in a text; lines and columns count from one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spot<'a> {
    pub line: u32,
    pub column: u32,
    /// The statement, without its label.
    pub statement: &'a str,
}

impl<'a> Source<'a> {
    pub fn new(text: &'a str) -> Result<Source<'a>, ScenarioError> {
        let (scenario, statements) = parse::program(text)?;
        let source = Source { scenario, lines: text.lines().collect(), statements };
        misuse::check(&source)?;
        Ok(source)
    }

    /// Where something is written that was executed.
    pub fn site(&self, place: &ProgramLocation) -> Option<Site> {
        site_of(&self.scenario.program, place, &Some)
    }

    /// None for a submission that nobody wrote.
    pub fn spot(&self, site: Site) -> Option<Spot<'a>> {
        let statement = self.statements.iter().find(|it| it.site == site)?;
        Some(self.spot_of(statement, statement.column))
    }

    /// The operand through which the access was made, or the statement.
    pub fn operand(&self, found: &Hazard) -> Option<Spot<'a>> {
        self.operand_of(&One::of_hazard(found))
    }

    /// The same of a fault.
    pub fn operand_of_fault(&self, fault: &UndefinedContents) -> Option<Spot<'a>> {
        self.operand_of(&One::of_fault(fault))
    }

    fn operand_of(&self, found: &One) -> Option<Spot<'a>> {
        let site = self.site(&found.at)?;
        let statement = self.statements.iter().find(|it| it.site == site)?;
        let resource = self.scenario.program.resources.get(found.resource.0 as usize)?;
        let operand = operand(statement, resource, found, &found.region);
        let operand = operand.and_then(|it| statement.operands.get(it as usize));
        Some(self.spot_of(statement, operand.map_or(statement.column, |it| it.column)))
    }

    /// A part of a resource in the words of the text.
    pub fn part(&self, resource: ResourceId, region: &Region) -> String {
        let (program, at) = (&self.scenario.program, resource.0 as usize);
        let (Some(name), Some(own)) = (self.scenario.names.resources.get(at), program.resources.get(at)) else {
            return format!("resource {at}");
        };
        region_text(name, own, &normalize(program, resource.0, region), Bytes::Always)
    }

    fn spot_of(&self, statement: &Statement, column: u32) -> Spot<'a> {
        let line: &'a str = self.lines.get(statement.line as usize - 1).copied().unwrap_or_default();
        let rest = line.get(statement.column as usize - 1..).unwrap_or_default();
        // Several may stand on a line, in braces.
        let end = rest.find([';', '}']).unwrap_or(rest.len());
        Spot { line: statement.line, column, statement: rest[..end].trim_end() }
    }
}
