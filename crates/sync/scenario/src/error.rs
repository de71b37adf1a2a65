//! An error in a text, and its position.

use std::fmt;

/// A fault in a scenario. Lines and columns count from one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioError {
    pub line: u32,
    pub column: u32,
    pub message: String,
}

pub(crate) type Result<T> = std::result::Result<T, ScenarioError>;

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}: {}", self.line, self.column, self.message)
    }
}

impl std::error::Error for ScenarioError {}
