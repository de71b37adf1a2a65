//! Writes anew what tests compare with: renderings, command lines, pages.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::setup::process::cargo;

/// The tests that know `LAVASCOPE_BLESS`, by package.
const TESTS: [(&str, &[&str]); 4] = [
    ("lavascope-cli", &["cmd", "renderings"]),
    ("lavascope-findings", &["golden"]),
    ("lavascope-instrument", &["shape"]),
    ("lavascope-settings", &["document", "problems"]),
];

/// Runs those tests so that they write instead of compare.
pub(crate) fn run(root: &Path) -> Result<()> {
    for (package, tests) in TESTS {
        let mut arguments = vec!["test", "--quiet", "--package", package];
        arguments.extend(tests.iter().flat_map(|it| ["--test", *it]));
        println!("$ LAVASCOPE_BLESS=1 cargo {}", arguments.join(" "));
        let status = Command::new(cargo()).args(&arguments).current_dir(root).env("LAVASCOPE_BLESS", "1").status();
        let status = status.context("cargo cannot be run")?;
        ensure!(status.success(), "the tests of {package} failed: what they check besides must be mended first");
    }
    crate::bench::render_page(root)?;
    println!("`git diff` shows what has changed");
    Ok(())
}
