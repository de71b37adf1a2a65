//! The steps of a night: name, what it is, what is run, and how its count is read.

use std::time::Duration;

use super::repeat::RepeatedTest;

/// One step.
pub(super) struct NightlyStep {
    pub(super) name: &'static str,
    pub(super) what: &'static str,
    /// What is counted.
    pub(super) unit: &'static str,
    /// How many seeds one round uses up. With none, the step runs once.
    pub(super) seeds: u64,
    pub(super) work: StepAction,
}

/// What a step runs.
#[derive(Clone, Copy)]
pub(super) enum StepAction {
    /// Words for cargo, where `{seed}`, `{seconds}` and `{minutes}` are filled in. What it prints has the count: `{}` in
    /// a pattern stands for the number, and the numbers of all lines that match are added.
    Command { words: &'static [&'static str], count: &'static [&'static str], failed: Option<&'static str> },
    /// A test, many times.
    Repeat(RepeatedTest),
}

/// All steps, in the order in which they run.
pub(super) const STEPS: &[NightlyStep] = &[
    NightlyStep {
        name: "sim",
        what: "random programs: the hazard engine against the oracle",
        unit: "programs of each kind",
        seeds: 20_000,
        work: StepAction::Command {
            words: &["xtask", "sim", "--programs", "20000", "--seed", "{seed}"],
            count: &["{} programs of each kind, seeds"],
            failed: None,
        },
    },
    NightlyStep {
        name: "records",
        what: "damaged records, then damaged traces, for the checks and the reader",
        unit: "records and traces",
        seeds: 1,
        work: StepAction::Command {
            words: &["xtask", "fuzz", "--records", "2000000", "--traces", "5000", "--seed", "{seed}"],
            count: &["{} damaged records:", "{} damaged traces:"],
            failed: None,
        },
    },
    NightlyStep {
        name: "shaders",
        what: "shaders that are changed at random, then instrumented",
        unit: "shaders",
        seeds: 1,
        work: StepAction::Command {
            words: &["xtask", "fuzz", "--shaders", "2000", "--seed", "{seed}"],
            count: &[" of {} changed shaders were valid"],
            failed: None,
        },
    },
    NightlyStep {
        name: "caches",
        what: "random programs: the same findings with caches and without",
        unit: "programs",
        seeds: 1_000_000,
        work: StepAction::Command {
            words: &["xtask", "sim", "--caches", "--programs", "1000000", "--seed", "{seed}"],
            count: &["{} programs and "],
            failed: None,
        },
    },
    NightlyStep {
        name: "threads",
        what: "random programs whose threads hand over work: captured, and replayed with random delays",
        unit: "programs",
        seeds: 100_000,
        work: StepAction::Command {
            words: &["xtask", "threads", "--programs", "100000", "--seed", "{seed}"],
            count: &["{} threaded programs, seeds"],
            failed: None,
        },
    },
    NightlyStep {
        name: "guided",
        what: "traces that are changed further where they reach something new in the reader",
        unit: "traces",
        seeds: 0,
        work: StepAction::Command {
            words: &["xtask", "fuzz", "--guided", "{seconds}", "--seed", "{seed}"],
            count: &["{} traces in "],
            failed: None,
        },
    },
    NightlyStep {
        name: "proofs",
        what: "captured programs that are killed, and traces that are damaged",
        unit: "kills and damages",
        seeds: 1,
        work: StepAction::Command {
            words: &["xtask", "proofs", "--kills", "100", "--damages", "20000", "--seed", "{seed}"],
            count: &["{} programs were killed:", "{} damaged traces:"],
            failed: None,
        },
    },
    NightlyStep {
        name: "soak",
        what: "vkcube under `lavascope run`, and whether its memory grows",
        unit: "frames",
        seeds: 0,
        work: StepAction::Command {
            words: &["xtask", "soak", "--minutes", "{minutes}"],
            count: &["soak: {} frames,"],
            failed: None,
        },
    },
    NightlyStep {
        name: "programs",
        what: "programs of others, captured and replayed",
        unit: "programs",
        seeds: 0,
        work: StepAction::Command {
            words: &["xtask", "programs"],
            count: &["replayed: {} programs"],
            failed: Some(" programs, {} not the same again"),
        },
    },
    NightlyStep {
        name: "memories",
        what: "all samples and their replays: each memory ends with the same contents",
        unit: "runs of all samples",
        seeds: 0,
        work: StepAction::Repeat(RepeatedTest {
            package: "lavascope-cli",
            target: "programs",
            test: "memory_check::each_memory_ends_with_the_same_contents_in_a_replay",
            runs: 1,
            variables: &[("LAVASCOPE_TEST_ALL", "1")],
        }),
    },
    NightlyStep {
        name: "compare",
        what: "samples and programs of others under both Khronos layers and ours",
        unit: "programs",
        seeds: 0,
        work: StepAction::Command {
            words: &["xtask", "compare"],
            count: &["{} programs, "],
            failed: Some(" differences, {} of them not explained"),
        },
    },
    NightlyStep {
        name: "layers",
        what: "random programs as Vulkan calls, under the newer Khronos layer and under ours",
        unit: "programs",
        seeds: 100_000,
        work: StepAction::Command {
            words: &["xtask", "compare", "--random", "100000", "--seed", "{seed}"],
            count: &["{} random programs in "],
            failed: Some(" random programs needed a predicate, {} disagreements are not explained"),
        },
    },
    NightlyStep {
        name: "validity",
        what: "the programs of `layers`, under the core validation of the newer Khronos layer",
        unit: "programs",
        seeds: 20_000,
        work: StepAction::Command {
            words: &["xtask", "compare", "--random", "20000", "--core", "--seed", "{seed}"],
            count: &["{} random programs under core validation"],
            failed: Some(" rules are broken, {} random programs are not valid"),
        },
    },
    NightlyStep {
        name: "release",
        what: "the tests of whole programs in a release build, in which less is asserted and more is trusted",
        unit: "tests",
        seeds: 0,
        work: StepAction::Command {
            words: &[
                "nextest",
                "run",
                "--release",
                "--no-fail-fast",
                "--package",
                "lavascope-cli",
                "--package",
                "lavascope-layer",
                // Bugs can be planted in debug builds alone.
                "--filterset",
                "not test(bugs::after_a_bug)",
            ],
            count: &["{} tests run:"],
            failed: None,
        },
    },
    NightlyStep {
        name: "sanitize",
        what: "tests under AddressSanitizer and ThreadSanitizer",
        unit: "tests",
        seeds: 0,
        work: StepAction::Command {
            words: &["xtask", "sanitize"],
            count: &["sanitized: {} tests"],
            failed: Some("sanitized: * tests, {} failed"),
        },
    },
    NightlyStep {
        name: "tour",
        what: "the tour of `cargo xtask demo`",
        unit: "steps",
        seeds: 0,
        work: StepAction::Command { words: &["xtask", "demo", "--no-install"], count: &["{} steps in "], failed: None },
    },
    NightlyStep {
        name: "dist",
        what: "the tarball in an empty Debian: the commands of the README, as an ordinary user",
        unit: "commands",
        seeds: 0,
        work: StepAction::Command {
            words: &["xtask", "dist", "--try-out"],
            count: &["{} commands of the README ran"],
            failed: None,
        },
    },
    // RACES: each is a test that is repeated, and every run must pass. To add one, name its package, its target of tests
    // (a file or folder in `tests`, or `lib`), the test with its module, and how often it runs.
    NightlyStep {
        name: "exit-race",
        what: "a process that exits in one thread while another destroys its devices, under `--gpu`",
        unit: "runs",
        seeds: 0,
        work: StepAction::Repeat(RepeatedTest {
            package: "lavascope-layer",
            target: "loader",
            test: "exits::an_exit_while_devices_are_destroyed_reads_nothing_that_is_gone",
            runs: 2000,
            variables: &[("LAVASCOPE_TEST_RUNS", "1")],
        }),
    },
    NightlyStep {
        name: "hand-over-race",
        what: "threads that hand over command buffers while other threads read what the shaders found",
        unit: "runs",
        seeds: 0,
        work: StepAction::Repeat(RepeatedTest {
            package: "lavascope-cli",
            target: "programs",
            test: "bounds::threads_that_hand_over_command_buffers_keep_their_tables",
            runs: 400,
            variables: &[("LAVASCOPE_TEST_RUNS", "1")],
        }),
    },
    NightlyStep {
        name: "page-guard-race",
        what: "guards of pages that come and go while many threads write",
        unit: "runs",
        seeds: 0,
        work: StepAction::Repeat(RepeatedTest {
            package: "lavascope-platform",
            target: "lib",
            test: "linux::write_guard::tests::guards_come_and_go_while_many_threads_write",
            runs: 1000,
            variables: &[("LAVASCOPE_STRESS_MS", "300")],
        }),
    },
    NightlyStep {
        name: "planted-bugs",
        what: "bugs planted in the layer, in every place and every sample: the program goes on with right results",
        unit: "runs",
        seeds: 0,
        work: StepAction::Repeat(RepeatedTest {
            package: "lavascope-cli",
            target: "programs",
            test: "bugs::after_a_bug_in_checks_a_program_goes_on_with_right_results",
            runs: 1,
            variables: &[("LAVASCOPE_TEST_ALL", "1")],
        }),
    },
];

impl NightlyStep {
    /// Whether another seed gives something new.
    pub(super) fn has_seed(&self) -> bool {
        matches!(self.work, StepAction::Command { words, .. } if words.contains(&"{seed}"))
    }

    /// Whether it goes on until its time is over.
    pub(super) fn is_repeated(&self) -> bool {
        self.seeds > 0
    }

    /// The first seed of a round.
    pub(super) fn seed_of(&self, seed: u64, round: u64) -> u64 {
        seed.saturating_add(round.saturating_mul(self.seeds))
    }

    /// What to type, for the page.
    pub(super) fn command(&self) -> String {
        match self.work {
            StepAction::Command { words, .. } => format!("cargo {}", words.join(" ")),
            StepAction::Repeat(RepeatedTest { package, target, test, .. }) => {
                let target = if target == "lib" { "--lib".to_owned() } else { format!("--test {target}") };
                format!("cargo test --package {package} {target} {test}")
            }
        }
    }
}

/// Words with their places filled in.
pub(super) fn fill_placeholders(words: &[&str], seed: u64, time: Duration) -> Vec<String> {
    let seconds = time.as_secs().max(1);
    let minutes = time.as_secs_f64() / 60.0;
    let fill = |text: &&str| match *text {
        "{seed}" => seed.to_string(),
        "{seconds}" => seconds.to_string(),
        "{minutes}" => minutes.to_string(),
        other => other.to_owned(),
    };
    words.iter().map(fill).collect()
}

/// The sum of the numbers that a pattern has in the lines of a text; none if no line has it.
///
/// `{}` stands for the number, `*` for any number.
pub(super) fn sum_matches(pattern: &str, text: &str) -> Option<u64> {
    let found: Vec<u64> = text.lines().filter_map(|it| number(pattern, it)).collect();
    (!found.is_empty()).then(|| found.iter().sum())
}

fn number(pattern: &str, line: &str) -> Option<u64> {
    let mut begins = line.char_indices().map(|it| it.0);
    begins.find_map(|at| number_at(pattern, line, at))
}

/// The number, if the pattern is at this place of the line, and no digit before it.
fn number_at(pattern: &str, line: &str, at: usize) -> Option<u64> {
    let (mut pattern, mut rest, mut found) = (pattern, &line[at..], None);
    let begins_with_number = pattern.starts_with(['{', '*']);
    if begins_with_number && line[..at].ends_with(|it: char| it.is_ascii_digit()) {
        return None;
    }
    while !pattern.is_empty() {
        let is_number = pattern.starts_with("{}");
        if is_number || pattern.starts_with('*') {
            let end = rest.find(|it: char| !it.is_ascii_digit()).unwrap_or(rest.len());
            let value = rest[..end].parse().ok()?;
            (pattern, rest) = (&pattern[if is_number { 2 } else { 1 }..], &rest[end..]);
            found = if is_number { Some(value) } else { found };
            continue;
        }
        let first = pattern.chars().next()?;
        rest = rest.strip_prefix(first)?;
        pattern = &pattern[first.len_utf8()..];
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_where_the_pattern_has_them_and_added() {
        assert_eq!(sum_matches("{} damaged traces:", "x\n120 damaged traces: fine\n 5 damaged traces: y"), Some(125));
        assert_eq!(sum_matches(" of {} changed shaders", "7 of 2000 changed shaders were valid"), Some(2000));
        assert_eq!(sum_matches("sanitized: * tests, {} failed", "sanitized: 318 tests, 4 failed, 1 reports"), Some(4));
        for text in ["", "no damaged traces:", "12 damaged records:"] {
            assert_eq!(sum_matches("{} damaged traces:", text), None, "{text}");
        }
    }

    #[test]
    fn a_round_has_seeds_that_no_other_has() {
        let step = &STEPS[0];
        assert_eq!([0, 1, 2].map(|it| step.seed_of(7, it)), [7, 7 + step.seeds, 7 + 2 * step.seeds]);
        let words = fill_placeholders(&["a", "{seed}", "{seconds}", "{minutes}"], 9, Duration::from_secs(90));
        assert_eq!(words, ["a", "9", "90", "1.5"]);
    }

    #[test]
    fn steps_have_names_of_their_own_and_can_be_counted() {
        let mut names: Vec<_> = STEPS.iter().map(|it| it.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), STEPS.len());
        for step in STEPS {
            assert!(!step.is_repeated() || step.has_seed(), "{}: each round is the same", step.name);
            if let StepAction::Command { count, .. } = step.work {
                assert!(count.iter().all(|it| it.contains("{}")) && !count.is_empty(), "{}", step.name);
            }
        }
    }
}
