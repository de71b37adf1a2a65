//! The results of the last runs: `docs/performance.json`, which the performance page is rendered from.
//!
//! A run replaces the rows that it measured. Rows of other topics, of the GPU machine and of programs that are not
//! installed stay. A row of an entry that no longer exists is removed by hand.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, Result, ensure};
use lavascope_bench::BenchEntry;
use serde::{Deserialize, Serialize};

use super::page;
use super::topics::{BenchTopic, TOPICS};

pub(super) const RESULTS: &str = "docs/performance.json";
pub(super) const PAGE: &str = "docs/performance.md";
/// Digits that a figure keeps in the file: more are noise.
const DIGITS: i32 = 4;

/// All rows, by the name of their topic.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct BenchResults {
    topics: BTreeMap<String, Vec<ResultRow>>,
}

/// One row of the page.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ResultRow {
    /// Unique in its topic.
    pub(super) what: String,
    pub(super) unit: String,
    /// The most that may be measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) limit: Option<f64>,
    pub(super) measured: f64,
    /// The figures are what is added to a program without the tool.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(super) is_added: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) peer: Option<PeerFigure>,
    /// The peer's figure must be at least so many times ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) ratio_limit: Option<f64>,
    pub(super) machine: String,
    pub(super) command: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PeerFigure {
    /// With the version.
    pub(super) name: String,
    pub(super) measured: f64,
}

/// Where rows come from.
pub(super) struct RowOrigin<'a> {
    pub(super) topic: &'static str,
    /// The name of the peer, if the entries have one.
    pub(super) peer: Option<&'a str>,
    pub(super) machine: &'a str,
}

fn is_false(value: &bool) -> bool {
    !value
}

impl ResultRow {
    /// The peer's figure to ours.
    pub(super) fn ratio(&self) -> Option<f64> {
        self.peer.as_ref().filter(|_| self.measured > 0.0).map(|it| it.measured / self.measured)
    }

    pub(super) fn is_within_limit(&self) -> bool {
        self.limit.is_none_or(|it| self.measured <= it)
    }

    pub(super) fn is_within_ratio_limit(&self) -> bool {
        self.ratio().zip(self.ratio_limit).is_none_or(|(ratio, limit)| ratio >= limit)
    }

    /// The row of an entry, and one of its instructions if they were counted.
    pub(super) fn of_entry(entry: &BenchEntry, origin: &RowOrigin<'_>) -> Vec<ResultRow> {
        let peer = entry.peer_measured().zip(origin.peer);
        let row = ResultRow {
            what: entry.name.clone(),
            unit: entry.unit.clone(),
            limit: entry.limit.map(rounded),
            measured: rounded(entry.measured()),
            is_added: entry.added.is_some(),
            peer: peer.map(|(measured, name)| PeerFigure { name: name.to_owned(), measured: rounded(measured) }),
            ratio_limit: entry.share_limit.map(|it| rounded(it.recip())),
            machine: origin.machine.to_owned(),
            command: format!("cargo xtask bench {}", origin.topic),
        };
        // An entry that valgrind cannot run by itself counts as nothing.
        let instructions = entry.instructions.filter(|it| *it >= 1.0).map(|count| ResultRow {
            what: format!("{}: instructions", entry.name),
            unit: "instructions".to_owned(),
            limit: None,
            measured: rounded(count),
            is_added: false,
            peer: None,
            ratio_limit: None,
            machine: origin.machine.to_owned(),
            command: format!("cargo xtask bench --instructions {}", origin.topic),
        });
        [Some(row), instructions].into_iter().flatten().collect()
    }
}

fn rounded(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return 0.0;
    }
    let digits = DIGITS - 1 - value.abs().log10().floor() as i32;
    // A power of ten that is an integer: others are not exact.
    let scale = 10.0_f64.powi(digits.abs());
    if digits >= 0 { (value * scale).round() / scale } else { (value / scale).round() * scale }
}

impl BenchResults {
    pub(super) fn read(root: &Path) -> Result<BenchResults> {
        let path = root.join(RESULTS);
        let text = std::fs::read_to_string(&path).with_context(|| format!("{RESULTS} cannot be read"))?;
        let results: BenchResults = serde_json::from_str(&text).with_context(|| format!("{RESULTS} is not valid"))?;
        results.validate().with_context(|| format!("{RESULTS} is not valid"))?;
        Ok(results)
    }

    /// Writes the file and the page.
    pub(super) fn write(&self, root: &Path) -> Result<()> {
        self.validate()?;
        let text = serde_json::to_string_pretty(self)? + "\n";
        for (path, text) in [(RESULTS, text), (PAGE, page::render(self))] {
            let path = root.join(path);
            std::fs::write(&path, text).with_context(|| format!("{} cannot be written", path.display()))?;
        }
        Ok(())
    }

    pub(super) fn rows(&self, topic: &BenchTopic) -> &[ResultRow] {
        self.topics.get(topic.name).map_or(&[], Vec::as_slice)
    }

    /// Replaces the row of the same name, or adds one at the end. A row with a peer stays if the new one has none: both
    /// figures are of one run. Returns whether the row is in.
    pub(super) fn insert(&mut self, topic: &str, row: ResultRow) -> bool {
        let rows = self.topics.entry(topic.to_owned()).or_default();
        match rows.iter_mut().find(|it| it.what == row.what) {
            Some(old) if old.peer.is_some() && row.peer.is_none() => return false,
            Some(old) => *old = row,
            None => rows.push(row),
        }
        true
    }

    /// Every row has a topic, a name of its own, a machine and a command.
    fn validate(&self) -> Result<()> {
        for (topic, rows) in &self.topics {
            ensure!(TOPICS.iter().any(|it| it.name == topic), "there is no topic `{topic}`");
            let mut names = BTreeSet::new();
            for row in rows {
                let place = format!("`{}` of `{topic}`", row.what);
                ensure!(!row.what.is_empty() && names.insert(&row.what), "{place} has no name of its own");
                ensure!(!row.command.trim().is_empty(), "{place} has no command");
                ensure!(!row.machine.trim().is_empty(), "{place} has no machine");
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORIGIN: RowOrigin<'static> = RowOrigin { topic: "engine", peer: Some("Peer 1.2"), machine: "M, 2 cores" };

    fn entry(ours: f64, peer: Option<f64>) -> BenchEntry {
        BenchEntry { name: "a draw".into(), unit: "ns".into(), ours, peer, ..BenchEntry::default() }
    }

    fn row(ours: f64, peer: Option<f64>) -> ResultRow {
        ResultRow::of_entry(&entry(ours, peer), &ORIGIN).remove(0)
    }

    #[test]
    fn a_row_has_what_is_added_by_both() {
        let entry = BenchEntry {
            bare: Some(100.0),
            added: Some(20.126),
            share_limit: Some(0.125),
            limit: Some(300.0),
            instructions: Some(41.0),
            ..entry(120.126, Some(250.0))
        };
        let rows = ResultRow::of_entry(&entry, &ORIGIN);
        assert_eq!(rows.len(), 2);
        assert_eq!((rows[0].measured, rows[0].ratio_limit, rows[0].is_added), (20.13, Some(8.0), true));
        assert_eq!(rows[0].peer, Some(PeerFigure { name: "Peer 1.2".into(), measured: 150.0 }));
        assert!(rows[0].is_within_limit() && !rows[0].is_within_ratio_limit());
        assert_eq!((rows[1].what.as_str(), rows[1].measured), ("a draw: instructions", 41.0));
        assert_eq!(rows[1].command, "cargo xtask bench --instructions engine");
    }

    #[test]
    fn a_run_replaces_its_rows_and_keeps_the_others() {
        let mut results = BenchResults::default();
        let other = ResultRow { what: "a copy".into(), ..row(7.0, None) };
        assert!(results.insert("engine", row(5.0, None)) && results.insert("engine", other.clone()));
        assert!(results.insert("engine", row(6.0, Some(9.0))));
        assert_eq!(results.topics["engine"], [row(6.0, Some(9.0)), other]);
        // Without the peer, the last row that has one stays.
        assert!(!results.insert("engine", row(4.0, None)));
        assert_eq!(results.topics["engine"][0], row(6.0, Some(9.0)));
    }

    #[test]
    fn a_row_without_command_machine_or_name_is_refused() {
        let check = |row: ResultRow| {
            BenchResults { topics: BTreeMap::from([("engine".into(), vec![row])]) }
                .validate()
                .map_err(|it| it.to_string())
        };
        assert_eq!(check(row(1.0, None)), Ok(()));
        let checked = check(ResultRow { command: " ".into(), ..row(1.0, None) });
        assert_eq!(checked, Err("`a draw` of `engine` has no command".into()));
        assert!(check(ResultRow { machine: String::new(), ..row(1.0, None) }).is_err());
        assert!(check(ResultRow { what: String::new(), ..row(1.0, None) }).is_err());
        let twice = BenchResults { topics: BTreeMap::from([("engine".into(), vec![row(1.0, None); 2])]) };
        assert!(twice.validate().is_err());
        assert!(BenchResults { topics: BTreeMap::from([("weather".into(), Vec::new())]) }.validate().is_err());
    }

    #[test]
    fn figures_have_few_digits() {
        let all = [5.14159, 41.8349, 123_456.0, 0.000_123_456, 0.0, -2.34567].map(rounded);
        assert_eq!(all, [5.142, 41.83, 123_500.0, 0.000_123_5, 0.0, -2.346]);
    }
}
