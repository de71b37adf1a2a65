//! AddressSanitizer and ThreadSanitizer over the tests of the crates with unsafe code and with threads.
//!
//! The pinned compiler has both, behind `RUSTC_BOOTSTRAP`. Each has a build folder of its own, and an explicit target,
//! so that build scripts and procedural macros are built as usual. Every process writes its reports into a folder: a
//! report of a child process whose output a test swallows is counted, too. What is reported without being wrong stands
//! in `crates/dev/xtask/sanitize`, with the reason; what cannot run is listed in [`EXCLUDED`].

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::setup::process;
use crate::setup::process::cargo;
use crate::setup::{registry_files, system};

/// What is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sanitizer {
    Address,
    Thread,
}

/// The tests of one package under one sanitizer.
struct SanitizedPackage {
    sanitizer: Sanitizer,
    package: &'static str,
}

/// A test that cannot run under a sanitizer, and why. Its name may be a beginning.
struct ExcludedTest {
    sanitizer: Sanitizer,
    package: &'static str,
    test: &'static str,
    reason: &'static str,
}

const SANITIZED_PACKAGES: &[SanitizedPackage] = &[
    SanitizedPackage { sanitizer: Sanitizer::Address, package: "lavascope-stream" },
    SanitizedPackage { sanitizer: Sanitizer::Address, package: "lavascope-marshal" },
    SanitizedPackage { sanitizer: Sanitizer::Address, package: "lavascope-replay" },
    SanitizedPackage { sanitizer: Sanitizer::Address, package: "lavascope-layer" },
    SanitizedPackage { sanitizer: Sanitizer::Thread, package: "lavascope-stream" },
    SanitizedPackage { sanitizer: Sanitizer::Thread, package: "lavascope-trace" },
    SanitizedPackage { sanitizer: Sanitizer::Thread, package: "lavascope-replay" },
];

const LOOM: &str = "loom switches stacks, which sanitizers cannot follow, and looks for the same faults by itself";

const EXCLUDED: &[ExcludedTest] = &[
    ExcludedTest {
        sanitizer: Sanitizer::Address,
        package: "lavascope-layer",
        test: "backtrace::tests::",
        reason: "it takes the address of a local for one on the stack; AddressSanitizer keeps locals elsewhere",
    },
    ExcludedTest {
        sanitizer: Sanitizer::Address,
        package: "lavascope-layer",
        test: "growth::",
        reason: "it asks the allocator of the C library how much is in use, in whose place AddressSanitizer puts its own",
    },
    ExcludedTest {
        sanitizer: Sanitizer::Address,
        package: "lavascope-layer",
        test: "objects::memory_does_not_grow_with_what_is_gone",
        reason: "AddressSanitizer keeps what is freed for a while, so that memory grows",
    },
    ExcludedTest { sanitizer: Sanitizer::Address, package: "lavascope-stream", test: "loom_model::", reason: LOOM },
    ExcludedTest { sanitizer: Sanitizer::Address, package: "lavascope-replay", test: "loom_model::", reason: LOOM },
    ExcludedTest { sanitizer: Sanitizer::Thread, package: "lavascope-stream", test: "loom_model::", reason: LOOM },
    ExcludedTest { sanitizer: Sanitizer::Thread, package: "lavascope-replay", test: "loom_model::", reason: LOOM },
];

/// What became of a part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct TestCount {
    run: u64,
    failed: u64,
}

impl Sanitizer {
    const ALL: [Sanitizer; 2] = [Sanitizer::Address, Sanitizer::Thread];

    fn name(self) -> &'static str {
        match self {
            Sanitizer::Address => "address",
            Sanitizer::Thread => "thread",
        }
    }

    /// The fault that it has to find, and the words for it.
    fn planted_fault(self) -> (&'static str, &'static str) {
        match self {
            Sanitizer::Address => ("out-of-bounds", "AddressSanitizer: heap-buffer-overflow"),
            Sanitizer::Thread => ("race", "ThreadSanitizer: data race"),
        }
    }

    /// The standard library is not instrumented: only its generic and inline code is, as a part of ours.
    fn flags(self) -> String {
        let mismatch = match self {
            Sanitizer::Address => "",
            Sanitizer::Thread => " -Cunsafe-allow-abi-mismatch=sanitizer",
        };
        // The run-time library is in the test program. The layer and the null driver, which the loader opens, find it
        // there.
        let exported = match self {
            Sanitizer::Address => "__asan_*",
            Sanitizer::Thread => "__tsan_*",
        };
        let export = |it| format!("-Clink-arg=-Wl,--export-dynamic-symbol={it}");
        let (ours, common) = (export(exported), export("__sanitizer_*"));
        format!("-Zsanitizer={}{mismatch} --cfg lavascope_sanitize {ours} {common}", self.name())
    }

    /// The variable with its options, and those.
    fn options(self, root: &Path, reports: &Path) -> (&'static str, String) {
        let log = reports.join("report").display().to_string();
        match self {
            // Leaks: the layer keeps what a process has until that ends, and loader and drivers leak; `leaks` and `growth`
            // in the tests of `cli` and `layer` look for what is really lost. Signals: layer and tests handle their own.
            Sanitizer::Address => (
                "ASAN_OPTIONS",
                format!("detect_leaks=0:handle_segv=0:handle_sigbus=0:handle_abort=0:handle_sigill=0:log_path={log}"),
            ),
            Sanitizer::Thread => {
                let known = root.join("crates/dev/xtask/sanitize/thread.supp").display().to_string();
                ("TSAN_OPTIONS", format!("suppressions={known}:history_size=4:handle_segv=0:log_path={log}"))
            }
        }
    }

    fn target(self, root: &Path) -> PathBuf {
        let all = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), Into::into);
        all.join("sanitize").join(self.name())
    }

    fn cargo(self, root: &Path, reports: &Path) -> Command {
        let mut command = Command::new(cargo());
        let (variable, options) = self.options(root, reports);
        command.current_dir(root).env("RUSTC_BOOTSTRAP", "1").env("RUSTFLAGS", self.flags());
        command.env("CARGO_TARGET_DIR", self.target(root)).env(variable, options);
        command
    }
}

/// Runs the parts whose `sanitizer:package` contains a text.
pub(crate) fn run(root: &Path, filter: &str, no_install: bool) -> Result<()> {
    let parts: Vec<&SanitizedPackage> = SANITIZED_PACKAGES.iter().filter(|it| it.name().contains(filter)).collect();
    ensure!(!parts.is_empty(), "no part has `{filter}` in its name");
    ensure!(std::env::consts::OS == "linux", "the sanitizers are set up for Linux only");
    system::ensure_for_tests(root, no_install)?;
    registry_files::ensure(root)?;
    for sanitizer in Sanitizer::ALL.into_iter().filter(|it| parts.iter().any(|part| part.sanitizer == *it)) {
        find_planted(root, sanitizer)?;
    }
    let mut lines = Vec::new();
    let (mut all, mut all_reports) = (TestCount::default(), 0);
    for part in parts {
        let (count, reports) = part.run(root)?;
        lines.push(format!("{:<24} {} tests, {} failed, {reports} reports", part.name(), count.run, count.failed));
        (all.run, all.failed, all_reports) = (all.run + count.run, all.failed + count.failed, all_reports + reports);
    }
    EXCLUDED
        .iter()
        .for_each(|it| println!("excluded: {}:{} {}: {}", it.sanitizer.name(), it.package, it.test, it.reason));
    lines.iter().for_each(|it| println!("{it}"));
    println!("sanitized: {} tests, {} failed, {all_reports} reports", all.run, all.failed);
    ensure!(all.failed == 0 && all_reports == 0, "the sanitizers found something, or tests failed; see above");
    Ok(())
}

/// Proves that a sanitizer is on, and that it accepts what is right.
fn find_planted(root: &Path, sanitizer: Sanitizer) -> Result<()> {
    let (fault, words) = sanitizer.planted_fault();
    let run = |what: &str| -> Result<(bool, String)> {
        let reports = empty_reports_folder(&sanitizer.target(root), "planted")?;
        let mut command = sanitizer.cargo(root, &reports);
        command.args([
            "run",
            "--quiet",
            "--target",
            &target(),
            "--package",
            "lavascope-stream",
            "--example",
            "planted",
        ]);
        let (status, _) = process::run_and_capture(command.args(["--", what]))?;
        Ok((status.success(), read_reports(&reports)?.join("\n")))
    };
    let (has_passed, output_text) = run(fault)?;
    ensure!(
        !has_passed && output_text.contains(words),
        "the {} sanitizer does not find a planted fault:\n{output_text}",
        sanitizer.name()
    );
    let (has_passed, output_text) = run("clean")?;
    ensure!(
        has_passed && output_text.is_empty(),
        "the {} sanitizer reports what is right:\n{output_text}",
        sanitizer.name()
    );
    println!("{}: a planted fault is found, and what is right is not reported", sanitizer.name());
    Ok(())
}

impl SanitizedPackage {
    fn name(&self) -> String {
        format!("{}:{}", self.sanitizer.name(), self.package)
    }

    fn excluded(&self) -> impl Iterator<Item = &'static ExcludedTest> {
        let (sanitizer, package) = (self.sanitizer, self.package);
        EXCLUDED.iter().filter(move |it| it.sanitizer == sanitizer && it.package == package)
    }

    /// How many tests ran and failed, and how many reports there are.
    fn run(&self, root: &Path) -> Result<(TestCount, usize)> {
        let reports = empty_reports_folder(&self.sanitizer.target(root), self.package)?;
        let mut command = self.sanitizer.cargo(root, &reports);
        let is_nextest = process::can_run("cargo-nextest", "--version");
        let target = target();
        if is_nextest {
            command.args(["nextest", "run", "--no-fail-fast", "--target", &target, "--filterset", &self.filter_set()]);
            // With all packages each time, what they share is built once, with the same features.
            let packages = SANITIZED_PACKAGES.iter().filter(|it| it.sanitizer == self.sanitizer);
            command.args(packages.flat_map(|it| ["--package", it.package]));
        } else {
            command.args([
                "test",
                "--no-fail-fast",
                "--lib",
                "--tests",
                "--target",
                &target,
                "--package",
                self.package,
            ]);
            command.arg("--");
            command.args(self.excluded().flat_map(|it| ["--skip", it.test]));
        }
        let (status, text) = process::run_and_capture(&mut command)?;
        let count = if is_nextest { count_of_nextest(&text) } else { count_of_cargo(&text) };
        let output_text = read_reports(&reports)?;
        output_text.iter().for_each(|it| println!("{it}"));
        let Some(count) = count.filter(|it| it.run > 0) else { bail!("{}: no tests ran ({status})", self.name()) };
        ensure!(status.success() || count.failed > 0, "{}: the run failed ({status})", self.name());
        Ok((count, output_text.len()))
    }

    /// All tests of the package but those that are excluded.
    fn filter_set(&self) -> String {
        let excluded = self.excluded().map(|it| format!(" - test(/^{}/)", it.test));
        format!("package({}){}", self.package, excluded.collect::<String>())
    }
}

fn target() -> String {
    format!("{}-unknown-linux-gnu", std::env::consts::ARCH)
}

/// An empty folder for the reports of one part.
fn empty_reports_folder(target: &Path, name: &str) -> Result<PathBuf> {
    let folder = target.join("reports").join(name);
    // Reports of an earlier run must not be taken for those of this one.
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).with_context(|| format!("{} cannot be made", folder.display()))?;
    Ok(folder)
}

/// What processes wrote, one text for each.
fn read_reports(folder: &Path) -> Result<Vec<String>> {
    let entries = std::fs::read_dir(folder).with_context(|| format!("{} cannot be read", folder.display()))?;
    let mut paths = entries.map(|it| Ok(it?.path())).collect::<std::io::Result<Vec<PathBuf>>>()?;
    paths.sort();
    let read = |it: &PathBuf| std::fs::read(it).with_context(|| format!("{} cannot be read", it.display()));
    paths.iter().map(|it| Ok(String::from_utf8_lossy(&read(it)?).into_owned())).collect()
}

/// Out of the last line of nextest: `Summary [ 1.2s] 318 tests run: 182 passed (2 slow), 136 failed, 1 timed out`.
fn count_of_nextest(text: &str) -> Option<TestCount> {
    let line = text.lines().rfind(|it| it.trim_start().starts_with("Summary ["))?;
    let words: Vec<&str> = line.split([' ', ',', ':', '/', '(', ')']).filter(|it| !it.is_empty()).collect();
    let before = |word: &str| words.windows(2).find(|it| it[1] == word).and_then(|it| it[0].parse::<u64>().ok());
    let run = before("tests").or_else(|| before("test"))?;
    Some(TestCount { run, failed: run.checked_sub(before("passed").unwrap_or(0))? })
}

/// Out of all lines like `test result: ok. 12 passed; 0 failed; 0 ignored; …`.
fn count_of_cargo(text: &str) -> Option<TestCount> {
    let mut count = None;
    for line in text.lines().filter(|it| it.starts_with("test result: ")) {
        let number =
            |word: &str| line.split(' ').zip(line.split(' ').skip(1)).find(|it| it.1 == word)?.0.parse::<u64>().ok();
        let (passed, failed) = (number("passed;")?, number("failed;")?);
        let all: &mut TestCount = count.get_or_insert_default();
        (all.run, all.failed) = (all.run + passed + failed, all.failed + failed);
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_runners_say_how_many_tests_ran_and_failed() {
        let nextest = "    test result: FAILED. 0 passed; 1 failed;\n     Summary [ 192.062s] 318 tests run: 182 passed, 136 failed, 0 skipped\n";
        assert_eq!(count_of_nextest(nextest), Some(TestCount { run: 318, failed: 136 }));
        let slow = "     Summary [   9s] 3/4 tests run: 1 passed (1 slow), 1 failed, 1 timed out, 2 skipped";
        assert_eq!(count_of_nextest(slow), Some(TestCount { run: 4, failed: 3 }));
        assert_eq!(
            count_of_nextest("Summary [ 0.1s] 1 test run: 1 passed, 0 skipped"),
            Some(TestCount { run: 1, failed: 0 })
        );
        assert_eq!(count_of_nextest("error: could not compile"), None);
        let cargo =
            "test result: ok. 12 passed; 0 failed; 0 ignored\ntest result: FAILED. 3 passed; 2 failed; 0 ignored\n";
        assert_eq!(count_of_cargo(cargo), Some(TestCount { run: 17, failed: 2 }));
        assert_eq!(count_of_cargo(""), None);
    }

    #[test]
    fn what_is_excluded_belongs_to_a_part_and_has_a_reason() {
        for excluded_test in EXCLUDED {
            let part = SANITIZED_PACKAGES
                .iter()
                .find(|part| (part.sanitizer, part.package) == (excluded_test.sanitizer, excluded_test.package));
            let part = part.unwrap_or_else(|| panic!("{} is in no part", excluded_test.test));
            assert!(
                !excluded_test.reason.is_empty() && part.filter_set().contains(excluded_test.test),
                "{}",
                excluded_test.test
            );
        }
        let first = SANITIZED_PACKAGES.first().map(SanitizedPackage::filter_set);
        assert_eq!(first.as_deref(), Some("package(lavascope-stream) - test(/^loom_model::/)"));
    }

    #[test]
    fn every_suppression_has_a_reason_above_it() {
        let text = include_str!("../../sanitize/thread.supp");
        let mut is_explained = false;
        for line in text.lines() {
            assert!(line.is_empty() || line.starts_with('#') || is_explained, "{line}");
            is_explained = line.starts_with('#') || (is_explained && !line.is_empty());
        }
    }
}
