//! The page of results: a table with a row for each step, which is read again to keep what did not run.

use std::time::Duration;

use super::steps::NightlyStep;
use super::{RunInfo, StepCounts};

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
pub(super) struct NightlyPage {
    rows: Vec<NightlyRow>,
}

/// One row, as it stands there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NightlyRow {
    cells: [String; COLUMNS.len()],
    /// How long it took.
    pub(super) time: String,
}

impl NightlyRow {
    pub(super) fn new(
        step: &NightlyStep,
        seed: &str,
        outcome: StepCounts,
        time: Duration,
        about: &RunInfo,
    ) -> NightlyRow {
        let command = format!("`{}`", step.command());
        let (count, failed) = (outcome.count.to_string(), outcome.failed.to_string());
        let time = format_duration(time);
        let texts =
            [step.name, step.what, &command, seed, &count, step.unit, &failed, &time, &about.commit, &about.date];
        NightlyRow { cells: texts.map(|it| it.replace('|', "/")), time }
    }

    fn parse(line: &str) -> Option<NightlyRow> {
        let cells = line.strip_prefix("| ")?.strip_suffix(" |")?.split(" | ").map(str::to_owned);
        let cells: [String; COLUMNS.len()] = cells.collect::<Vec<_>>().try_into().ok()?;
        Some(NightlyRow { time: cells[7].clone(), cells })
    }

    fn name(&self) -> &str {
        &self.cells[0]
    }

    fn text(&self) -> String {
        format!("| {} |\n", self.cells.join(" | "))
    }
}

impl NightlyPage {
    pub(super) fn parse(text: &str) -> NightlyPage {
        let rows =
            text.lines().filter_map(NightlyRow::parse).filter(|it| it.name() != COLUMNS[0] && it.name() != "---");
        NightlyPage { rows: rows.collect() }
    }

    /// In the place of the row of the same step.
    pub(super) fn insert_row(&mut self, row: NightlyRow) {
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

fn format_duration(time: Duration) -> String {
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

    fn row(at: usize, count: u64, commit: &str) -> NightlyRow {
        let about = RunInfo { commit: commit.to_owned(), date: "2030-01-02 03:04".to_owned() };
        NightlyRow::new(&STEPS[at], "5", StepCounts { count, failed: 0 }, Duration::from_secs(75), &about)
    }

    #[test]
    fn steps_that_did_not_run_keep_their_results() {
        let order: Vec<&str> = STEPS.iter().map(|it| it.name).collect();
        let mut page = NightlyPage::default();
        page.insert_row(row(1, 10, "aaa"));
        page.insert_row(row(0, 20, "aaa"));
        let text = page.text(&order);
        assert!(text.contains("These steps have no result yet: shaders, "), "{text}");
        let mut later = NightlyPage::parse(&text);
        assert_eq!(later.rows, [row(0, 20, "aaa"), row(1, 10, "aaa")]);
        later.insert_row(row(1, 30, "bbb"));
        let text = later.text(&order);
        assert!(text.contains("| 20 | programs of each kind | 0 | 1 min 15 s | aaa | 2030-01-02 03:04 |\n"), "{text}");
        assert!(text.contains("| 30 | records and traces | 0 | 1 min 15 s | bbb | 2030-01-02 03:04 |\n"), "{text}");
        assert_eq!(NightlyPage::parse(&text).text(&order), text);
    }

    #[test]
    fn a_step_that_is_no_more_goes() {
        let mut page = NightlyPage::default();
        page.insert_row(row(0, 1, "aaa"));
        assert!(!page.text(&["other"]).contains(STEPS[0].name));
        assert_eq!(NightlyPage::parse("# A page\n\n| a | b |\n| --- | --- |\n"), NightlyPage::default());
    }

    #[test]
    fn times_are_short() {
        let times = [9, 75, 7384].map(|it| format_duration(Duration::from_secs(it)));
        assert_eq!(times, ["9 s", "1 min 15 s", "2 h 3 min"]);
    }
}
