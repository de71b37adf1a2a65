//! The commands in the README and in the guide print what the pages show, and exit as they say.
//!
//! With `LAVASCOPE_BLESS=1` the pages and the picture of a report are written anew instead of compared.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use lavascope_test_support::{ConsoleOutcome, console_commands, with_outputs};

use crate::terminal_picture;
use crate::test_environment::{TestEnvironment, samples};

/// What is in the commands of `sh` blocks that this test does not run: they install something, need a debugger or a
/// display, or belong to another shell.
const NOT_RUN: [&str; 8] = ["cargo xtask ", "git clone ", "sudo apt", "tar ", "export ", "gdb ", "lldb ", "xvfb-run "];

/// The picture of the README, and the command that it shows.
const PICTURE: (&str, &str) = ("docs/guide/first-report.svg", "lavascope run -- lavascope-samples fault-barrier-stage");

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

/// The README, the page about CI, and the guide.
fn pages() -> Vec<String> {
    let guide = std::fs::read_dir(root().join("docs/guide")).expect("the guide").flatten();
    let names = guide.map(|it| format!("docs/guide/{}", it.file_name().to_string_lossy()));
    let mut pages: Vec<_> = names.filter(|it| it.ends_with(".md")).collect();
    pages.sort();
    [&["README.md".to_owned(), "docs/ci.md".to_owned()][..], &pages].concat()
}

fn text_of(page: &str) -> String {
    std::fs::read_to_string(root().join(page)).unwrap_or_else(|error| panic!("{page}: {error}"))
}

/// A shell in the folder of a page, with our programs in its `PATH` and a program `./app` that has a hazard.
fn shell(stage: &TestEnvironment) -> Command {
    let mut shell = stage.bare("sh");
    let samples = samples();
    let folder = samples.parent().expect("a folder").to_path_buf();
    let others = std::env::var_os("PATH").unwrap_or_default();
    let path = std::iter::once(folder).chain(std::env::split_paths(&others));
    shell.env("PATH", std::env::join_paths(path).expect("folders")).env("NO_COLOR", "1");
    shell
}

fn run(stage: &TestEnvironment, page: &str) -> Vec<ConsoleOutcome> {
    let app = "printf '#!/bin/sh\nexec lavascope-samples fault-barrier-stage \"$@\"\n' > app && chmod +x app";
    assert!(shell(stage).args(["-c", app]).status().is_ok_and(|it| it.success()));
    let commands = console_commands(page);
    commands.iter().map(|it| it.run(&mut shell(stage)).below(&stage.folder)).collect()
}

#[test]
fn documents_show_what_commands_print() {
    let is_blessing = std::env::var_os("LAVASCOPE_BLESS").is_some();
    let mut wrong = Vec::new();
    let mut count = 0;
    for name in pages() {
        let page = text_of(&name);
        let stage = TestEnvironment::new(&format!("documents-{}", name.replace(['/', '.'], "-")));
        let outcomes = run(&stage, &page);
        let (page, commands) = match is_blessing {
            true => {
                let page = with_outputs(&page, &outcomes);
                std::fs::write(root().join(&name), &page).expect("a writable page");
                (page.clone(), console_commands(&page))
            }
            false => (page.clone(), console_commands(&page)),
        };
        assert!(page.ends_with('\n'), "{name}");
        count += commands.len();
        let differences = commands.iter().zip(&outcomes).filter_map(|(command, outcome)| command.difference(outcome));
        wrong.extend(differences.map(|it| format!("{name}, {it}")));
    }
    assert!(count > 20, "{count} commands");
    assert!(wrong.is_empty(), "if that is better, `cargo xtask bless`\n{}", wrong.join("\n"));
}

/// The commands of the `sh` blocks of a page.
fn shell_commands(page: &str) -> Vec<&str> {
    let mut commands = Vec::new();
    let mut block = None;
    for line in page.lines() {
        match (line.strip_prefix("```"), block) {
            (Some(_), Some(_)) => block = None,
            (Some(language), None) => block = Some(language),
            (None, Some("sh")) => commands.push(line),
            (None, _) => {}
        }
    }
    commands
}

/// Commands without outputs run, too, but for those that cannot run in a test.
#[test]
fn documents_have_no_commands_that_fail() {
    let mut count = 0;
    for name in pages() {
        let page = text_of(&name);
        let is_run = |it: &&str| !NOT_RUN.iter().any(|word| it.contains(word));
        for command in shell_commands(&page).into_iter().filter(is_run) {
            let stage = TestEnvironment::new("documents-shell");
            let app = "printf '#!/bin/sh\nexec lavascope-samples compute\n' > app && chmod +x app";
            assert!(shell(&stage).args(["-c", app]).status().is_ok_and(|it| it.success()));
            let done = shell(&stage).args(["-c", command]).output().expect("a shell");
            assert!(done.status.success(), "{name}: `{command}`: {}", String::from_utf8_lossy(&done.stderr));
            count += 1;
        }
    }
    assert!(count >= 3, "{count} commands");
}

/// The steps of `docs/ci.md` succeed with a clean program, and fail with one that has a hazard.
#[test]
fn documents_have_steps_that_work() {
    let page = text_of("docs/ci.md");
    let (_, yaml) = page.split_once("```yaml").expect("steps");
    let lines = yaml.lines().map(|it| it.trim_start().trim_start_matches("- "));
    let steps: Vec<&str> = lines.filter(|it| it.starts_with("lavascope run") && it.contains("--format")).collect();
    assert!(steps.len() >= 2, "{steps:?}");
    for (option, exit_code) in [(" --fixed", 0), ("", 1)] {
        let stage = TestEnvironment::new("documents-steps");
        let app =
            format!("printf '#!/bin/sh\nexec lavascope-samples fault-barrier-stage{option}\n' > app && chmod +x app");
        assert!(shell(&stage).args(["-c", &app]).status().is_ok_and(|it| it.success()));
        for step in &steps {
            let mut shell = shell(&stage);
            shell.env("GITHUB_STEP_SUMMARY", stage.folder.join("summary.md"));
            let done = shell.args(["-c", step]).output().expect("a shell");
            let said = String::from_utf8_lossy(&done.stderr);
            assert_eq!(done.status.code(), Some(exit_code), "{step}\n{said}");
            let files = step.split_whitespace().filter_map(|it| it.split_once('=')).map(|it| it.1);
            for file in files.filter(|it| it.starts_with("app.")) {
                assert!(fs::metadata(stage.folder.join(file)).is_ok_and(|it| it.len() > 0), "{step}: {file}");
            }
            assert_eq!(stage.folder.join("summary.md").is_file(), step.contains("--format github"), "{step}");
            let _ = fs::remove_file(stage.folder.join("summary.md"));
        }
    }
}

/// Our own workflow is what the README says, no more and no less.
#[test]
fn documents_and_the_workflow_have_the_same_commands() {
    let is_ours = |it: &&str| it.starts_with("cargo xtask ");
    let workflow = text_of(".github/workflows/ci.yml");
    let mut run: Vec<&str> = workflow.lines().filter_map(|it| it.trim_start().strip_prefix("- run: ")).collect();
    let readme = text_of("README.md");
    let blocks = readme.lines().filter(is_ours);
    let inline = readme.lines().filter_map(|it| it.strip_prefix('`')?.split('`').next()).filter(is_ours);
    let mut wanted: Vec<&str> = blocks.chain(inline).collect();
    wanted.retain(|it| *it != "cargo xtask demo --no-install");
    for list in [&mut run, &mut wanted] {
        list.sort_unstable();
        list.dedup();
    }
    assert_eq!(run, wanted);
}

/// The same report as the README has as text, with the colors of a terminal.
#[test]
fn documents_have_a_picture_of_the_report() {
    let (file, command) = PICTURE;
    let stage = TestEnvironment::new("documents-picture");
    let done = shell(&stage)
        .env_remove("NO_COLOR")
        .env("CLICOLOR_FORCE", "1")
        .args(["-c", &format!("{command} 2>&1")])
        .output();
    let output = String::from_utf8(done.expect("a shell").stdout).expect("text");
    assert!(output.contains("\x1b["), "the report has no colors:\n{output}");
    let picture = terminal_picture::render(command, &output);
    if std::env::var_os("LAVASCOPE_BLESS").is_some() {
        std::fs::write(root().join(file), &picture).expect("a writable picture");
    }
    assert!(text_of(file) == picture, "{file} shows another report: `cargo xtask bless` writes it");
}
