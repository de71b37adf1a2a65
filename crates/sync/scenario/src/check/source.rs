//! Positions of a program in its text, for tools that show them to the author.

use lavascope_sync_ir::{Hazard, ProgramLocation, Region, ResourceId, UndefinedContents};

use crate::check::compare::{ScenarioFinding, normalize, operand, site_of};
use crate::check::misuse;
use crate::error::ScenarioError;
use crate::parse::blocks;
use crate::parse::builder::Statement;
use crate::parse::region::{ByteRangeText, region_text};
use crate::{Scenario, StatementId};

/// A program that makes sense, with its text. Nothing is expected of it: header, annotations and all other comments
/// may be there or not.
pub struct ScenarioSource<'a> {
    pub scenario: Scenario,
    lines: Vec<&'a str>,
    statements: Vec<Statement>,
}

/// A place in a text; lines and columns count from one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextLocation<'a> {
    pub line: u32,
    pub column: u32,
    /// The statement, without its label.
    pub statement: &'a str,
}

impl<'a> ScenarioSource<'a> {
    pub fn new(text: &'a str) -> Result<ScenarioSource<'a>, ScenarioError> {
        let (scenario, statements) = blocks::parse_program(text)?;
        let source = ScenarioSource { scenario, lines: text.lines().collect(), statements };
        misuse::check(&source)?;
        Ok(source)
    }

    /// Where something is written that was executed.
    pub fn statement_at(&self, place: &ProgramLocation) -> Option<StatementId> {
        site_of(&self.scenario.program, place, &Some)
    }

    /// None for a submission that is not in the text.
    pub fn location(&self, site: StatementId) -> Option<TextLocation<'a>> {
        let statement = self.statements.iter().find(|it| it.id == site)?;
        Some(self.location_of(statement, statement.column))
    }

    /// The operand through which the access was made, or the statement.
    pub fn operand(&self, found: &Hazard) -> Option<TextLocation<'a>> {
        self.operand_of(&ScenarioFinding::of_hazard(found))
    }

    /// The same of a fault.
    pub fn operand_of_fault(&self, fault: &UndefinedContents) -> Option<TextLocation<'a>> {
        self.operand_of(&ScenarioFinding::of_fault(fault))
    }

    fn operand_of(&self, found: &ScenarioFinding) -> Option<TextLocation<'a>> {
        let site = self.statement_at(&found.at)?;
        let statement = self.statements.iter().find(|it| it.id == site)?;
        let resource = self.scenario.program.resources.get(found.resource.0 as usize)?;
        let operand = operand(statement, resource, found, &found.region);
        let operand = operand.and_then(|it| statement.operands.get(it as usize));
        Some(self.location_of(statement, operand.map_or(statement.column, |it| it.column)))
    }

    /// A part of a resource in the words of the text.
    pub fn part(&self, resource: ResourceId, region: &Region) -> String {
        let (program, at) = (&self.scenario.program, resource.0 as usize);
        let (Some(name), Some(own)) = (self.scenario.names.resources.get(at), program.resources.get(at)) else {
            return format!("resource {at}");
        };
        region_text(name, own, &normalize(program, resource.0, region), ByteRangeText::Always)
    }

    fn location_of(&self, statement: &Statement, column: u32) -> TextLocation<'a> {
        let line: &'a str = self.lines.get(statement.line as usize - 1).copied().unwrap_or_default();
        let rest = line.get(statement.column as usize - 1..).unwrap_or_default();
        // Several may stand on a line, in braces.
        let end = rest.find([';', '}']).unwrap_or(rest.len());
        TextLocation { line: statement.line, column, statement: rest[..end].trim_end() }
    }
}
