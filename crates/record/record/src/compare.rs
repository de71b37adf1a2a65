//! *Compare*: the fields in which two records of a call differ, as text.
//!
//! Records are canonical, so equal calls are equal bytes. Only different records are compared field by field, and the
//! printed form already names every field.

use crate::encoding::Record;
use crate::print::print;

/// A field that differs between two records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The path of the field: `pCreateInfo.extent.width`.
    pub path: String,
    pub left: Option<String>,
    pub right: Option<String>,
}

/// All fields that differ, in the order of the first record.
pub fn compare(left: Record<'_>, right: Record<'_>) -> Vec<Difference> {
    if left.body().get(16..) == right.body().get(16..) && left.command() == right.command() {
        return Vec::new();
    }
    let (left, right) = (paths(&print(left)), paths(&print(right)));
    let mut differences = Vec::new();
    for (path, value) in &left {
        let other = right.iter().find(|it| it.0 == *path).map(|it| it.1.clone());
        if other.as_ref() != Some(value) {
            differences.push(Difference { path: path.clone(), left: Some(value.clone()), right: other });
        }
    }
    for (path, value) in right.into_iter().filter(|it| !left.iter().any(|have| have.0 == it.0)) {
        differences.push(Difference { path, left: None, right: Some(value) });
    }
    differences
}

/// The printed lines, each with the names of its owners before it.
fn paths(text: &str) -> Vec<(String, String)> {
    let mut owners: Vec<String> = Vec::new();
    let mut out: Vec<(String, String)> = Vec::new();
    for line in text.lines() {
        let depth = (line.len() - line.trim_start().len()) / 2;
        owners.truncate(depth.saturating_sub(1));
        let line = line.trim_start();
        let (name, value, leads_on) = match (line.split_once(" = "), line.split_once(": ")) {
            (Some((name, value)), _) => (name, value, false),
            (None, Some((name, kind))) => (name, kind, true),
            (None, None) => ("", line, false),
        };
        let mut path: Vec<&str> = owners.iter().map(String::as_str).collect();
        path.push(name);
        let mut full = path.join(".");
        let repeats = out.iter().filter(|it| it.0 == full).count();
        if repeats > 0 {
            full = format!("{full}#{repeats}");
        }
        out.push((full, value.to_owned()));
        if leads_on {
            owners.push(name.to_owned());
        }
    }
    out
}
