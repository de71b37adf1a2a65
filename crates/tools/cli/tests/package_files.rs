//! Manual pages, completions and manifests that `cargo xtask dist` packs.

mod common;

use std::path::{Path, PathBuf};

use common::{home, lavascope, output, text};

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder").flatten().map(|it| it.path());
    let mut found: Vec<_> = entries.flat_map(|it| if it.is_dir() { files(&it) } else { vec![it] }).collect();
    found.sort();
    found
}

fn written(name: &str) -> PathBuf {
    let prefix = home(name).join("prefix");
    let done = output(lavascope(&prefix).arg("package-files").arg(&prefix));
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    prefix
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Every command that `--help` names.
fn commands() -> Vec<String> {
    let help = text(&output(lavascope(&home("package-files-help")).arg("--help")).stdout);
    let (_, list) = help.split_once("Commands:\n").expect("a list of commands");
    let lines = list.lines().take_while(|it| !it.is_empty());
    let names = lines.filter_map(|it| it.split_whitespace().next()).map(str::to_owned);
    names.filter(|it| it != "help").collect()
}

#[test]
fn every_command_has_a_manual_page_and_a_completion() {
    let prefix = written("package-files-manual");
    let commands = commands();
    assert!(commands.len() >= 12, "{commands:?}");
    let bash = read(&prefix.join("share/bash-completion/completions/lavascope"));
    let zsh = read(&prefix.join("share/zsh/site-functions/_lavascope"));
    let fish = read(&prefix.join("share/fish/vendor_completions.d/lavascope.fish"));
    for command in commands {
        let page = read(&prefix.join(format!("share/man/man1/lavascope-{command}.1")));
        assert!(page.contains(".SH SYNOPSIS") && page.contains(&command), "{page}");
        assert!([&bash, &zsh, &fish].iter().all(|it| it.contains(&command)), "{command}");
    }
    assert!(read(&prefix.join("share/man/man1/lavascope.1")).contains("Exit codes"));
    assert!(bash.contains("--sync") && bash.contains("--null\\-driver") || bash.contains("--null-driver"));
}

#[test]
fn hidden_commands_have_no_page() {
    let prefix = written("package-files-hidden");
    let hidden =
        |it: &PathBuf| it.to_string_lossy().contains("package-files.") || it.to_string_lossy().contains("probe");
    assert_eq!(files(&prefix.join("share/man")).into_iter().find(hidden), None);
}

#[test]
fn the_manifests_name_their_libraries_below_the_prefix() {
    let prefix = written("package-files-manifests");
    let layer = prefix.join("share/vulkan/explicit_layer.d/VkLayer_lavascope.json");
    let driver = prefix.join("share/lavascope/lavascope_null_driver.json");
    for (manifest, part, library) in
        [(layer, "layer", "libVkLayer_lavascope.so"), (driver, "ICD", "liblavascope_null_driver.so")]
    {
        let document: serde_json::Value = serde_json::from_str(&read(&manifest)).expect("JSON");
        let path = document[part]["library_path"].as_str().expect("a path");
        let folder = manifest.parent().expect("a folder");
        std::fs::create_dir_all(prefix.join("lib")).expect("a folder");
        let named = std::fs::canonicalize(folder.join(path).parent().expect("a folder")).expect("the folder is there");
        assert_eq!(named, std::fs::canonicalize(prefix.join("lib")).expect("a folder"));
        assert!(path.ends_with(library), "{path}");
    }
}

#[test]
fn the_same_files_are_written_again() {
    let (first, second) = (written("package-files-first"), written("package-files-second"));
    let bytes = |prefix: &Path| {
        let read = |it: PathBuf| (it.strip_prefix(prefix).expect("below it").to_owned(), read(&it));
        files(prefix).into_iter().map(read).collect::<Vec<_>>()
    };
    assert!(bytes(&first) == bytes(&second) && bytes(&first).len() > 15);
}
