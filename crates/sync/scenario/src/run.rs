//! The files of a folder through everything: parse, print, judge, variations, interleavings.

use std::fmt;

use lavascope_sync_ir::{Findings, Program};

use crate::judge::judge_variation;
use crate::{Mismatch, Scenario, ScenarioError, Source, interleavings, judge_all, parse, print, variations};

/// How many orders of arrival are tried.
const INTERLEAVINGS_MAX: usize = 64;

/// What became of one file.
#[derive(Debug)]
pub struct Outcome {
    pub name: String,
    pub result: Result<(), Failure>,
}

#[derive(Debug)]
pub enum Failure {
    Text(ScenarioError),
    /// Not as the printer writes it; holds what that would be.
    NotCanonical(String),
    Mismatch(Mismatch),
    /// The same program said in another way got another verdict.
    Variation(String, Mismatch),
}

/// Puts each file, a name and its text, through everything.
pub fn run<F: Into<Findings>>(files: &[(String, String)], check: impl Fn(&Program) -> F) -> Vec<Outcome> {
    let check = |program: &Program| check(program).into();
    files.iter().map(|(name, text)| Outcome { name: name.clone(), result: run_one(text, &check) }).collect()
}

fn run_one(text: &str, check: &impl Fn(&Program) -> Findings) -> Result<(), Failure> {
    let scenario = read(text)?;
    Source::new(text).map_err(Failure::Text)?;
    judge_all(&scenario, &check(&scenario.program)).map_err(Failure::Mismatch)?;
    let mut others = variations(&scenario);
    if !scenario.threads.is_empty() {
        others.extend(interleavings(&scenario, INTERLEAVINGS_MAX));
    }
    for other in &others {
        let found = check(&other.program);
        judge_variation(&scenario, other, &found).map_err(|it| Failure::Variation(other.name.clone(), it))?;
    }
    Ok(())
}

/// A scenario whose text is as the printer writes it.
fn read(text: &str) -> Result<Scenario, Failure> {
    let scenario = parse(text).map_err(Failure::Text)?;
    let printed = print(&scenario);
    if printed != text {
        return Err(Failure::NotCanonical(printed));
    }
    Ok(scenario)
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Text(error) => writeln!(f, "{error}"),
            Failure::NotCanonical(printed) => writeln!(f, "the text is not canonical, which is:\n{printed}"),
            Failure::Mismatch(mismatch) => write!(f, "{mismatch}"),
            Failure::Variation(name, mismatch) => write!(f, "with `{name}`:\n{mismatch}"),
        }
    }
}

impl std::error::Error for Failure {}
