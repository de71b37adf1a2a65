//! What `docs/differences.md` says of the differences between the tools.
//!
//! The table below [`HEADING`] has one row for one reason: the programs, the tools that tell the hazard (so the others
//! do not), the hazard, and why. A `*` stands for anything.

use std::path::Path;

use anyhow::{Context, Result, ensure};

const HEADING: &str = "## In the differential run";
pub(crate) const FILE: &str = "docs/differences.md";

pub(crate) struct Notes(Vec<Note>);

struct Note {
    programs: Vec<String>,
    told_by: Vec<String>,
    hazards: Vec<String>,
    is_used: std::cell::Cell<bool>,
    row: String,
}

impl Notes {
    pub(crate) fn read(root: &Path) -> Result<Notes> {
        let text = std::fs::read_to_string(root.join(FILE)).with_context(|| format!("{FILE} cannot be read"))?;
        Notes::parse(&text)
    }

    fn parse(text: &str) -> Result<Notes> {
        let (_, section) = text.split_once(HEADING).with_context(|| format!("{FILE} has no \"{HEADING}\""))?;
        let section = section.split("\n## ").next().unwrap_or_default();
        let rows = section.lines().filter(|it| it.starts_with("| `"));
        let notes = rows.map(note).collect::<Result<Vec<_>>>()?;
        ensure!(!notes.is_empty(), "{FILE} has no rows below \"{HEADING}\"");
        Ok(Notes(notes))
    }

    /// Whether it is explained that these tools, and no others, tell this hazard of a program.
    pub(crate) fn explain(&self, program: &str, told_by: &[&str], hazard: &str) -> bool {
        let fits = |it: &&Note| {
            it.programs.iter().any(|it| is_like(program, it))
                && it.told_by == told_by
                && it.hazards.iter().any(|it| is_like(hazard, it))
        };
        let found = self.0.iter().find(fits);
        found.inspect(|it| it.is_used.set(true)).is_some()
    }

    /// Rows that nothing of the run needed.
    pub(crate) fn unused(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter(|it| !it.is_used.get()).map(|it| it.row.as_str())
    }
}

fn note(row: &str) -> Result<Note> {
    let cells: Vec<&str> = row.trim_matches('|').split(" | ").collect();
    let [programs, told_by, hazards, why] = cells[..] else {
        anyhow::bail!("a row of {FILE} has {} cells instead of 4: {row}", cells.len());
    };
    ensure!(why.len() > 20, "a row of {FILE} does not say why: {row}");
    let mut told_by = quoted(told_by);
    told_by.sort();
    let (programs, hazards) = (quoted(programs), quoted(hazards));
    Ok(Note { programs, told_by, hazards, is_used: std::cell::Cell::new(false), row: row.to_owned() })
}

/// What stands in backticks.
fn quoted(cell: &str) -> Vec<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

fn is_like(text: &str, pattern: &str) -> bool {
    match pattern.split_once('*') {
        None => text == pattern,
        Some((begin, rest)) => text.strip_prefix(begin).is_some_and(|left| {
            // The shortest that the star may stand for first.
            (0..=left.len()).filter(|at| left.is_char_boundary(*at)).any(|at| is_like(&left[at..], rest))
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
        let notes = Notes::parse(TEXT).expect("a table");
        assert_eq!(notes.unused().count(), 1);
        let told_by = ["2026", "lavascope"];
        assert!(notes.explain("fault-a", &told_by, "RAW vkCmdCopyBuffer after vkCmdDraw"));
        assert!(notes.explain("fault-b --mended", &told_by, "RAW vkCmdCopyBuffer after vkCmdDraw"));
        assert!(!notes.explain("fault-a --mended", &told_by, "RAW vkCmdCopyBuffer after vkCmdDraw"));
        assert!(!notes.explain("fault-a", &told_by[1..], "RAW vkCmdCopyBuffer after vkCmdDraw"));
        assert!(!notes.explain("fault-a", &told_by, "WAR vkCmdCopyBuffer after vkCmdDraw"));
        assert_eq!(notes.unused().count(), 0);
    }

    #[test]
    fn the_document_has_its_table() {
        let root = crate::root();
        assert!(Notes::read(&root).expect("the document").0.len() > 10);
    }

    #[test]
    fn stars_stand_for_anything() {
        assert!(is_like("abc", "abc") && is_like("abc", "*") && is_like("abc", "a*c") && is_like("ac", "a*c"));
        assert!(!is_like("abc", "ab") && !is_like("abc", "b*") && !is_like("abc", "a*d"));
    }
}
