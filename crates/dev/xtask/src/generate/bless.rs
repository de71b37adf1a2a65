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

/// The test of the pages with commands. It runs the samples, which it does not build.
const PAGES: [&[&str]; 2] = [
    &["build", "--quiet", "--package", "lavascope-samples"],
    &["test", "--quiet", "--package", "lavascope-cli", "--test", "programs", "documents_"],
];

/// Runs those tests so that they write instead of compare.
pub(crate) fn run(root: &Path) -> Result<()> {
    for (package, tests) in TESTS {
        let mut arguments = vec!["test", "--quiet", "--package", package];
        arguments.extend(tests.iter().flat_map(|it| ["--test", *it]));
        bless(root, &arguments)?;
    }
    PAGES.iter().try_for_each(|it| bless(root, it))?;
    crate::bench::render_page(root)?;
    println!("`git diff` shows what has changed");
    Ok(())
}

fn bless(root: &Path, arguments: &[&str]) -> Result<()> {
    let words = arguments.join(" ");
    println!("$ LAVASCOPE_BLESS=1 cargo {words}");
    let status = Command::new(cargo()).args(arguments).current_dir(root).env("LAVASCOPE_BLESS", "1").status();
    let status = status.context("cargo cannot be run")?;
    ensure!(status.success(), "`cargo {words}` failed: what it checks besides must be fixed first");
    Ok(())
}
