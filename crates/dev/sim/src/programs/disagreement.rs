//! A program on which an engine and the oracle disagree, as small as possible.

use lavascope_oracle::notation::print;
use lavascope_oracle::{Disagreement, EngineUnderTest, OracleRules, compare, find_hazards};
use lavascope_sync_ir::Program;

use super::shrink::shrink;

/// A program on which the two disagree, made small, with the disagreement; none if they agree.
pub fn find_disagreement(
    program: &Program,
    rules: OracleRules,
    engine: EngineUnderTest<'_>,
) -> Option<(Program, Disagreement)> {
    let disagreement = |it: &Program| compare(it, &find_hazards(it, rules).hazards, engine);
    disagreement(program)?;
    let small = shrink(program, &|it| disagreement(it).is_some());
    let why = disagreement(&small)?;
    Some((small, why))
}

/// A disagreement and its program, for people.
pub fn describe(program: &Program, disagreement: &Disagreement) -> String {
    format!("{}-> {disagreement}\n", print(program))
}
