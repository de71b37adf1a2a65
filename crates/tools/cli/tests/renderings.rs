//! What `lavascope check` prints of every scenario of the engine's corpus that has a hazard: `NAME.txt` beside `NAME.vks`.
//!
//! With `LAVASCOPE_BLESS=1` the files are written anew instead of compared. Whether there is a hazard is never blessed:
//! that the scenario says itself.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sync/engine/tests/scenarios")
}

/// Files with this ending, by their path under the root without the ending.
fn names(ending: &str) -> Vec<String> {
    let mut found = Vec::new();
    for folder in fs::read_dir(root()).expect("the corpus").flatten() {
        for file in fs::read_dir(folder.path()).expect("a folder").flatten() {
            let path = file.path();
            if path.extension().is_some_and(|it| it == ending) {
                let name = path.with_extension("");
                found.push(name.strip_prefix(root()).expect("under the root").display().to_string());
            }
        }
    }
    found.sort();
    found
}

/// Whether a hazard is expected, and is no known gap.
fn has_hazard(name: &str) -> bool {
    let text = fs::read_to_string(root().join(name).with_extension("vks")).expect("a scenario");
    text.lines().any(|it| it.trim_start().starts_with("# ") && it.contains(" ^ "))
}

#[test]
fn hazards_are_reported_as_their_files_say() {
    let is_blessing = std::env::var_os("LAVASCOPE_BLESS").is_some();
    let mut wrong = Vec::new();
    for name in names("vks") {
        let file = format!("{name}.vks");
        let output = Command::new(env!("CARGO_BIN_EXE_lavascope"))
            .current_dir(root())
            .args(["check", &file])
            .output()
            .expect("the program starts");
        let result = String::from_utf8(output.stdout).expect("plain text");
        let has_hazard = has_hazard(&name);
        let code = output.status.code();
        assert_eq!(code, Some(i32::from(has_hazard)), "{file}: {}", String::from_utf8_lossy(&output.stderr));
        let path = root().join(&name).with_extension("txt");
        if !has_hazard {
            assert_eq!(result, format!("{file}: no hazards\n"));
        } else if is_blessing {
            fs::write(&path, &result).expect("a writable file");
        } else if fs::read_to_string(&path).ok().as_deref() != Some(&result) {
            wrong.push(format!("{}:\n{result}", path.display()));
        }
    }
    assert!(wrong.is_empty(), "{} differ; if that is better, `cargo xtask bless`\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn no_rendering_is_left_without_its_hazard() {
    let is_blessing = std::env::var_os("LAVASCOPE_BLESS").is_some();
    let scenarios = names("vks");
    let orphans = names("txt").into_iter().filter(|it| !scenarios.contains(it) || !has_hazard(it));
    for name in orphans {
        let path = root().join(&name).with_extension("txt");
        assert!(is_blessing, "{} has no hazard beside it; `cargo xtask bless` removes it", path.display());
        fs::remove_file(path).expect("a file that can be removed");
    }
}
