//! What `docs/differences.md` says of the differences between the tools.
//!
//! The table below [`HEADING`] has one row for one reason: the programs, the tools that tell the hazard (so the others
//! do not), the hazard, and why. A `*` stands for anything.

use std::path::Path;

use anyhow::{Context, Result, ensure};

const HEADING: &str = "## In the differential run";
pub(crate) const FILE: &str = "docs/differences.md";

pub(crate) struct KnownDifferences(Vec<KnownDifference>);

struct KnownDifference {
    programs: Vec<String>,
    reported_by: Vec<String>,
    hazards: Vec<String>,
    is_used: std::cell::Cell<bool>,
    row: String,
}

impl KnownDifferences {
    pub(crate) fn read(root: &Path) -> Result<KnownDifferences> {
        let text = std::fs::read_to_string(root.join(FILE)).with_context(|| format!("{FILE} cannot be read"))?;
        KnownDifferences::parse(&text)
    }

    fn parse(text: &str) -> Result<KnownDifferences> {
        let (_, section) = text.split_once(HEADING).with_context(|| format!("{FILE} has no \"{HEADING}\""))?;
        let section = section.split("\n## ").next().unwrap_or_default();
        let rows = section.lines().filter(|it| it.starts_with("| `"));
        let notes = rows.map(note).collect::<Result<Vec<_>>>()?;
        ensure!(!notes.is_empty(), "{FILE} has no rows below \"{HEADING}\"");
        Ok(KnownDifferences(notes))
    }

    /// Whether it is explained that these tools, and no others, tell this hazard of a program.
    pub(crate) fn mark_explained(&self, program: &str, reported_by: &[&str], hazard: &str) -> bool {
        let fits = |known_difference: &&KnownDifference| {
            known_difference.programs.iter().any(|it| matches_pattern(program, it))
                && known_difference.reported_by == reported_by
                && known_difference.hazards.iter().any(|it| matches_pattern(hazard, it))
        };
        let found = self.0.iter().find(fits);
        found.inspect(|it| it.is_used.set(true)).is_some()
    }

    /// Rows that nothing of the run needed.
    pub(crate) fn unused(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter(|it| !it.is_used.get()).map(|it| it.row.as_str())
    }
}

fn note(row: &str) -> Result<KnownDifference> {
    let cells: Vec<&str> = row.trim_matches('|').split(" | ").collect();
    let [programs, reported_by, hazards, why] = cells[..] else {
        anyhow::bail!("a row of {FILE} has {} cells instead of 4: {row}", cells.len());
    };
    ensure!(why.len() > 20, "a row of {FILE} does not say why: {row}");
    let mut reported_by = quoted(reported_by);
    reported_by.sort();
    let (programs, hazards) = (quoted(programs), quoted(hazards));
    Ok(KnownDifference { programs, reported_by, hazards, is_used: std::cell::Cell::new(false), row: row.to_owned() })
}

/// What stands in backticks.
fn quoted(cell: &str) -> Vec<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

fn matches_pattern(text: &str, pattern: &str) -> bool {
    match pattern.split_once('*') {
        None => text == pattern,
        Some((begin, rest)) => text.strip_prefix(begin).is_some_and(|left| {
            // The shortest that the star may stand for first.
            (0..=left.len()).filter(|at| left.is_char_boundary(*at)).any(|at| matches_pattern(&left[at..], rest))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# Differences\n\n## In the differential run\n\n| programs | told by | hazards | why |\n| --- | --- | --- | --- |\n\
                        | `fault-a`, `fault-b*` | `lavascope`, `2026` | `RAW * after vkCmdDraw` | The rule says so, in its third sentence. |\n\n## Next\n\n| `x` |\n";

    #[test]
    fn rows_explain_what_they_name_and_nothing_else() {
        let notes = KnownDifferences::parse(TEXT).expect("a table");
        assert_eq!(notes.unused().count(), 1);
        let reported_by = ["2026", "lavascope"];
        assert!(notes.mark_explained("fault-a", &reported_by, "RAW vkCmdCopyBuffer after vkCmdDraw"));
        assert!(notes.mark_explained("fault-b --fixed", &reported_by, "RAW vkCmdCopyBuffer after vkCmdDraw"));
        assert!(!notes.mark_explained("fault-a --fixed", &reported_by, "RAW vkCmdCopyBuffer after vkCmdDraw"));
        assert!(!notes.mark_explained("fault-a", &reported_by[1..], "RAW vkCmdCopyBuffer after vkCmdDraw"));
        assert!(!notes.mark_explained("fault-a", &reported_by, "WAR vkCmdCopyBuffer after vkCmdDraw"));
        assert_eq!(notes.unused().count(), 0);
    }

    #[test]
    fn the_document_has_its_table() {
        let root = crate::root();
        assert!(KnownDifferences::read(&root).expect("the document").0.len() > 10);
    }

    #[test]
    fn stars_stand_for_anything() {
        assert!(
            matches_pattern("abc", "abc")
                && matches_pattern("abc", "*")
                && matches_pattern("abc", "a*c")
                && matches_pattern("ac", "a*c")
        );
        assert!(!matches_pattern("abc", "ab") && !matches_pattern("abc", "b*") && !matches_pattern("abc", "a*d"));
    }
}
