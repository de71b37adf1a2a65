//! The files of a folder through everything: parse, print, judge, variations, interleavings.

use std::fmt;

use lavascope_sync_ir::{Findings, Program};

use crate::check::compare::compare_variation;
use crate::{
    Mismatch, Scenario, ScenarioError, ScenarioSource, compare_findings, interleavings, parse, print, variations,
};

/// How many orders of arrival are tried.
const INTERLEAVINGS_MAX: usize = 64;

/// The result of one file.
#[derive(Debug)]
pub struct FileOutcome {
    pub name: String,
    pub result: Result<(), ScenarioFailure>,
}

#[derive(Debug)]
pub enum ScenarioFailure {
    Text(ScenarioError),
    /// Not as the printer writes it; holds what that would be.
    NotCanonical(String),
    Mismatch(Mismatch),
    /// A variation of the program got another verdict.
    Variation(String, Mismatch),
}

/// Puts each file, a name and its text, through everything.
pub fn run_files<F: Into<Findings>>(files: &[(String, String)], check: impl Fn(&Program) -> F) -> Vec<FileOutcome> {
    let check = |program: &Program| check(program).into();
    files.iter().map(|(name, text)| FileOutcome { name: name.clone(), result: run_one(text, &check) }).collect()
}

fn run_one(text: &str, check: &impl Fn(&Program) -> Findings) -> Result<(), ScenarioFailure> {
    let scenario = read(text)?;
    ScenarioSource::new(text).map_err(ScenarioFailure::Text)?;
    compare_findings(&scenario, &check(&scenario.program)).map_err(ScenarioFailure::Mismatch)?;
    let mut others = variations(&scenario);
    if !scenario.threads.is_empty() {
        others.extend(interleavings(&scenario, INTERLEAVINGS_MAX));
    }
    for other in &others {
        let found = check(&other.program);
        compare_variation(&scenario, other, &found).map_err(|it| ScenarioFailure::Variation(other.name.clone(), it))?;
    }
    Ok(())
}

/// A scenario whose text is as the printer writes it.
fn read(text: &str) -> Result<Scenario, ScenarioFailure> {
    let scenario = parse(text).map_err(ScenarioFailure::Text)?;
    let printed = print(&scenario);
    if printed != text {
        return Err(ScenarioFailure::NotCanonical(printed));
    }
    Ok(scenario)
}

impl fmt::Display for ScenarioFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ScenarioFailure::Text(error) => writeln!(f, "{error}"),
            ScenarioFailure::NotCanonical(printed) => writeln!(f, "the text is not canonical, which is:\n{printed}"),
            ScenarioFailure::Mismatch(mismatch) => write!(f, "{mismatch}"),
            ScenarioFailure::Variation(name, mismatch) => write!(f, "with `{name}`:\n{mismatch}"),
        }
    }
}

impl std::error::Error for ScenarioFailure {}
