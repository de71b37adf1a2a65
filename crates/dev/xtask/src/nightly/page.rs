//! The page of results: a table with a row for each step, which is read again to keep what did not run.

use std::time::Duration;

use super::steps::Step;
use super::{About, Outcome};

const HEAD: &str = "\
# Nightly runs

`cargo xtask nightly [STEP…] [--seed S] [--minutes N]` runs what takes longer than a test may, and writes this page.
A row has the last run of its step, with the commit and the time (UTC) at which that run began.
`failed` counts what failed, or 1 where a command failed that counts nothing.
A step with a seed goes on with the seeds that follow until its minutes are over; its command stands here for one round.

";
const COLUMNS: [&str; 10] = ["step", "what", "command", "seed", "count", "unit", "failed", "time", "commit", "begin"];

/// The page, as rows.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Page {
    rows: Vec<Row>,
}

/// One row, as it stands there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row {
    cells: [String; COLUMNS.len()],
    /// How long it took.
    pub(super) time: String,
}

impl Row {
    pub(super) fn new(step: &Step, seed: &str, outcome: Outcome, time: Duration, about: &About) -> Row {
        let command = format!("`{}`", step.command());
        let (count, failed) = (outcome.count.to_string(), outcome.failed.to_string());
        let time = shown(time);
        let texts =
            [step.name, step.what, &command, seed, &count, step.unit, &failed, &time, &about.commit, &about.date];
        Row { cells: texts.map(|it| it.replace('|', "/")), time }
    }

    fn parse(line: &str) -> Option<Row> {
        let cells = line.strip_prefix("| ")?.strip_suffix(" |")?.split(" | ").map(str::to_owned);
        let cells: [String; COLUMNS.len()] = cells.collect::<Vec<_>>().try_into().ok()?;
        Some(Row { time: cells[7].clone(), cells })
    }

    fn name(&self) -> &str {
        &self.cells[0]
    }

    fn text(&self) -> String {
        format!("| {} |\n", self.cells.join(" | "))
    }
}

impl Page {
    pub(super) fn parse(text: &str) -> Page {
        let rows = text.lines().filter_map(Row::parse).filter(|it| it.name() != COLUMNS[0] && it.name() != "---");
        Page { rows: rows.collect() }
    }

    /// In the place of the row of the same step.
    pub(super) fn put(&mut self, row: Row) {
        self.rows.retain(|it| it.name() != row.name());
        self.rows.push(row);
    }

    /// Rows stand in the order of the steps; a step that is no more has none.
    pub(super) fn text(&self, order: &[&str]) -> String {
        let mut text = HEAD.to_owned();
        text += &format!("| {} |\n| {} |\n", COLUMNS.join(" | "), ["---"; COLUMNS.len()].join(" | "));
        let rows = order.iter().filter_map(|name| self.rows.iter().find(|it| it.name() == *name));
        rows.for_each(|it| text += &it.text());
        let missing: Vec<&str> =
            order.iter().copied().filter(|name| !self.rows.iter().any(|it| it.name() == *name)).collect();
        if !missing.is_empty() {
            text += &format!("\nThese steps have no result yet: {}.\n", missing.join(", "));
        }
        text
    }
}

fn shown(time: Duration) -> String {
    let seconds = time.as_secs();
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds} s"),
        (0, minutes, seconds) => format!("{minutes} min {seconds} s"),
        (hours, minutes, _) => format!("{hours} h {minutes} min"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::steps::STEPS;
    use super::*;

    fn row(at: usize, count: u64, commit: &str) -> Row {
        let about = About { commit: commit.to_owned(), date: "2030-01-02 03:04".to_owned() };
        Row::new(&STEPS[at], "5", Outcome { count, failed: 0 }, Duration::from_secs(75), &about)
    }

    #[test]
    fn steps_that_did_not_run_keep_their_results() {
        let order: Vec<&str> = STEPS.iter().map(|it| it.name).collect();
        let mut page = Page::default();
        page.put(row(1, 10, "aaa"));
        page.put(row(0, 20, "aaa"));
        let text = page.text(&order);
        assert!(text.contains("These steps have no result yet: shaders, "), "{text}");
        let mut later = Page::parse(&text);
        assert_eq!(later.rows, [row(0, 20, "aaa"), row(1, 10, "aaa")]);
        later.put(row(1, 30, "bbb"));
        let text = later.text(&order);
        assert!(text.contains("| 20 | programs of each kind | 0 | 1 min 15 s | aaa | 2030-01-02 03:04 |\n"), "{text}");
        assert!(text.contains("| 30 | records and traces | 0 | 1 min 15 s | bbb | 2030-01-02 03:04 |\n"), "{text}");
        assert_eq!(Page::parse(&text).text(&order), text);
    }

    #[test]
    fn a_step_that_is_no_more_goes() {
        let mut page = Page::default();
        page.put(row(0, 1, "aaa"));
        assert!(!page.text(&["other"]).contains(STEPS[0].name));
        assert_eq!(Page::parse("# A page\n\n| a | b |\n| --- | --- |\n"), Page::default());
    }

    #[test]
    fn times_are_short() {
        let times = [9, 75, 7384].map(|it| shown(Duration::from_secs(it)));
        assert_eq!(times, ["9 s", "1 min 15 s", "2 h 3 min"]);
    }
}
