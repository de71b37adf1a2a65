//! Runs every `cmd/*.txt`: a command line, its exit code and what it prints.
//!
//! A case is `$ lavascope ARGUMENTS`, `exit CODE`, then stdout after a line `stdout`, then stderr after a line
//! `stderr` where there is any. With `LAVASCOPE_BLESS=1` the files are written anew instead of compared.

use std::fs;
use std::path::Path;
use std::process::Command;

#[test]
fn every_command_line_prints_what_its_file_says() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cmd");
    let mut paths: Vec<_> = fs::read_dir(&folder).expect("the cases").flatten().map(|it| it.path()).collect();
    paths.retain(|it| it.extension().is_some_and(|it| it == "txt"));
    paths.sort();
    assert!(!paths.is_empty(), "there are cases in {}", folder.display());
    let is_blessing = std::env::var_os("LAVASCOPE_BLESS").is_some();
    let mut wrong = Vec::new();
    for path in paths {
        let expected = fs::read_to_string(&path).expect("a readable case");
        let actual = run(expected.lines().next().unwrap_or_default());
        if is_blessing {
            fs::write(&path, &actual).expect("a writable case");
        } else if actual != expected {
            wrong.push(format!("{}:\n--- expected\n{expected}--- actual\n{actual}", path.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The whole case as it is today.
fn run(command_line: &str) -> String {
    let arguments = command_line.strip_prefix("$ lavascope").expect("a case begins with `$ lavascope`");
    let output = Command::new(env!("CARGO_BIN_EXE_lavascope"))
        .args(arguments.split_whitespace())
        .output()
        .expect("the program starts");
    let code = output.status.code().map_or("none".to_owned(), |it| it.to_string());
    let mut text = format!("{command_line}\nexit {code}\n");
    for (title, bytes) in [("stdout", output.stdout), ("stderr", output.stderr)] {
        if !bytes.is_empty() {
            text.push_str(&format!("{title}\n{}", String::from_utf8(bytes).expect("plain text")));
        }
    }
    text
}
