//! The errors of a registry file, with the item and the place.

use std::fmt;

/// A line and column in one of the registry files, both counted from one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XmlPosition {
    pub file: &'static str,
    pub line: u32,
    pub column: u32,
}

impl fmt::Display for XmlPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// A fault in a registry file. `item` is the nearest named thing: a type, a command, an extension.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RegistryError {
    #[error("{place}: not well-formed XML: {reason}")]
    Xml { place: XmlPosition, reason: String },
    #[error("{place}: {item}: unknown element <{element}>")]
    UnknownElement { place: XmlPosition, item: String, element: String },
    #[error("{place}: {item}: unknown attribute `{attribute}` of <{element}>")]
    UnknownAttribute { place: XmlPosition, item: String, element: String, attribute: String },
    #[error("{place}: {item}: <{element}> lacks `{attribute}`")]
    MissingAttribute { place: XmlPosition, item: String, element: String, attribute: &'static str },
    #[error("{place}: {item}: `{attribute}` is `{value}`, which is not {expected}")]
    BadValue { place: XmlPosition, item: String, attribute: String, value: String, expected: &'static str },
    #[error("{item}: `{name}` is used but not defined")]
    Undefined { item: String, name: String },
    #[error("{item}: two values for `{name}`: {first} and {second}")]
    Conflict { item: String, name: String, first: i64, second: i64 },
}
