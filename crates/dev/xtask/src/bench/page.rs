//! Renders the performance page from the results.

use super::results::{BenchResults, ResultRow};
use super::topics::{BenchTopic, TOPICS};

const HEAD: &str = "\
# Performance

`cargo xtask bench --write-docs [NAME]` measures, stores the results in `docs/performance.json`, and writes this page.
The peers run in the same run. Each row has the machine and the command of its last run.

- Times are CPU times of the measuring thread: the smallest of 40 batches, unless the row names something else.
- *limit*: the largest allowed figure. A limit as a ratio is the smallest allowed ratio.
- *measured* and *peer*: *added* means the difference to the same program without the tool.
- *ratio*: the figure of the peer divided by ours.
- A figure in bold exceeds its limit. On a *busy* machine other programs ran at the same time.
";

const COLUMNS: [&str; 7] = ["what", "limit", "measured", "peer", "ratio", "machine", "command"];

pub(super) fn render(results: &BenchResults) -> String {
    let mut text = HEAD.to_owned();
    for topic in TOPICS {
        text += &topic_text(topic, results.rows(topic));
    }
    text
}

fn topic_text(topic: &BenchTopic, rows: &[ResultRow]) -> String {
    let mut text = format!("\n## {}\n\n{}\n\n", topic.title, topic.text);
    if rows.is_empty() {
        return text + &format!("No results yet: run `cargo xtask bench --write-docs {}`.\n", topic.name);
    }
    text += &format!("| {} |\n| {} |\n", COLUMNS.join(" | "), ["---"; COLUMNS.len()].join(" | "));
    for row in rows {
        text += &format!(
            "|{}\n",
            cells(row).map(|it| if it.is_empty() { " |".into() } else { format!(" {it} |") }).concat()
        );
    }
    text
}

fn cells(row: &ResultRow) -> [String; COLUMNS.len()] {
    let added = if row.is_added { " added" } else { "" };
    let limits = [row.limit.map(|it| figure(it, &row.unit)), row.ratio_limit.map(|it| format!("ratio {}", number(it)))];
    let cells = [
        row.what.clone(),
        limits.into_iter().flatten().collect::<Vec<_>>().join(", "),
        bold_unless(row.is_within_limit(), figure(row.measured, &row.unit) + added),
        row.peer
            .as_ref()
            .map_or(String::new(), |it| format!("{}{added} ({})", figure(it.measured, &row.unit), it.name)),
        row.ratio().map_or(String::new(), |it| bold_unless(row.is_within_ratio_limit(), number(it))),
        row.machine.clone(),
        format!("`{}`", row.command),
    ];
    cells.map(|it| it.replace('|', "/"))
}

fn bold_unless(is_good: bool, text: String) -> String {
    if is_good { text } else { format!("**{text}**") }
}

/// A figure with its unit, in the multiple of the unit that makes it short.
fn figure(value: f64, unit: &str) -> String {
    let (scale, unit) = match (unit, value.abs()) {
        ("ns", size) if size >= 1e7 => (1e6, "ms"),
        ("ns", size) if size >= 1e4 => (1e3, "µs"),
        ("us", _) => (1.0, "µs"),
        ("x" | "times", _) => (1.0, "×"),
        ("times bare", _) => (1.0, "× bare"),
        _ => (1.0, unit),
    };
    format!("{} {unit}", number(value / scale)).trim_end().to_owned()
}

/// Three digits, or all of an integer, with commas between thousands.
fn number(value: f64) -> String {
    let decimals = match value.abs() {
        size if size >= 100.0 || size.fract() == 0.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 1.0 => 2,
        _ => 3,
    };
    let text = format!("{value:.decimals$}");
    let (whole, part) = text.split_once('.').unwrap_or((&text, ""));
    let (sign, digits) = whole.split_at(whole.len() - whole.trim_start_matches('-').len());
    let mut grouped = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    let part = part.trim_end_matches('0');
    if part.is_empty() { format!("{sign}{grouped}") } else { format!("{sign}{grouped}.{part}") }
}

#[cfg(test)]
mod tests {
    use super::super::results::{PAGE, PeerFigure};
    use super::*;

    #[test]
    fn the_page_is_what_the_results_render_to() {
        let root = crate::root();
        let results = BenchResults::read(&root).unwrap_or_else(|it| panic!("{it:#}"));
        let page = std::fs::read_to_string(root.join(PAGE)).expect("the page is there");
        let line = page.lines().zip(render(&results).lines()).position(|(have, want)| have != want);
        assert!(page == render(&results), "{PAGE} differs in line {line:?}: run `cargo xtask bless`");
    }

    #[test]
    fn numbers_have_three_digits_and_commas() {
        let all = [0.0, 0.04711, 1.0, 1.0561, 12.34, 123.4, 1234.5, -1_234_567.0, 0.5].map(number);
        assert_eq!(all, ["0", "0.047", "1", "1.06", "12.3", "123", "1,234", "-1,234,567", "0.5"]);
    }

    #[test]
    fn long_times_have_larger_units() {
        let all = [9_999.0, 12_345.0, 12_345_678.0].map(|it| figure(it, "ns"));
        assert_eq!(all, ["9,999 ns", "12.3 µs", "12.3 ms"]);
        assert_eq!([figure(2.5, "x"), figure(2.5, "times bare"), figure(88.7, "B")], ["2.5 ×", "2.5 × bare", "88.7 B"]);
    }

    #[test]
    fn a_figure_over_its_limit_is_bold() {
        let row = ResultRow {
            what: "a draw | a copy".into(),
            unit: "ns".into(),
            limit: Some(300.0),
            measured: 400.0,
            is_added: true,
            peer: Some(PeerFigure { name: "Peer 1.2".into(), measured: 2000.0 }),
            ratio_limit: Some(8.0),
            machine: "M".into(),
            command: "c".into(),
        };
        let want = [
            "a draw / a copy",
            "300 ns, ratio 8",
            "**400 ns added**",
            "2,000 ns added (Peer 1.2)",
            "**5**",
            "M",
            "`c`",
        ];
        assert_eq!(cells(&row), want);
        let alone = ResultRow { limit: None, peer: None, is_added: false, ..row };
        assert_eq!(cells(&alone)[1..5], ["ratio 8", "400 ns", "", ""]);
    }
}
