//! What `run`, `env` and `layer` say when something is not as it should be: the place, and what to do. They exit with 2.

mod common;

use std::fs;
use std::path::Path;
use std::process::Command;

use common::{home, lavascope, output, text};

/// What the command said before it failed.
fn failure_text(command: &mut Command) -> String {
    let output = output(command);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.starts_with("lavascope: "), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    said
}

fn assert_has(said: &str, parts: &[&str]) {
    for part in parts {
        assert!(said.contains(part), "no `{part}` in {said}");
    }
}

/// The beginning of a library for another machine.
fn foreign_library(path: &Path) {
    let machine: u16 = if cfg!(target_arch = "aarch64") { 62 } else { 183 };
    let mut header = b"\x7fELF\x02\x01".to_vec();
    header.resize(18, 0);
    header.extend(machine.to_le_bytes());
    fs::write(path, header).expect("writable");
}

#[test]
fn a_layer_that_is_no_file() {
    let mut command = lavascope(&home("no-layer"));
    let said = failure_text(command.env("LAVASCOPE_LAYER_LIBRARY", "/no/such.so").args(["run", "--", "true"]));
    assert_has(&said, &["LAVASCOPE_LAYER_LIBRARY is /no/such.so, which is not a file"]);
}

#[test]
fn a_layer_that_is_nowhere() {
    let home = home("alone");
    let alone = home.join("lavascope");
    fs::hard_link(env!("CARGO_BIN_EXE_lavascope"), &alone).expect("the same file system");
    let mut command = Command::new(&alone);
    command.env("HOME", &home).env_remove("LAVASCOPE_LAYER_LIBRARY").args(["run", "--", "true"]);
    let said = failure_text(&mut command);
    assert_has(&said, &["libVkLayer_lavascope.so is not beside this program in ", "--package lavascope-layer`"]);
    let layer = Path::new(env!("CARGO_BIN_EXE_lavascope")).with_file_name("deps").join("libVkLayer_lavascope.so");
    let mut command = Command::new(&alone);
    command.env("HOME", &home).env("LAVASCOPE_LAYER_LIBRARY", layer).env_remove("LAVASCOPE_NULL_DRIVER_LIBRARY");
    let said = failure_text(command.args(["env", "--null-driver"]));
    assert_has(&said, &["liblavascope_null_driver.so is not beside", "--package lavascope-null-driver`"]);
}

#[test]
fn a_library_for_another_machine() {
    let home = home("foreign");
    let library = home.join("foreign.so");
    foreign_library(&library);
    let (found, native) = if cfg!(target_arch = "aarch64") { ("x86-64", "aarch64") } else { ("aarch64", "x86-64") };
    let want = format!("{} is for {found} 64-bit, this machine is {native} 64-bit", library.display());
    for arguments in [&["run", "--", "true"][..], &["env"], &["layer", "install"]] {
        let said = failure_text(lavascope(&home).env("LAVASCOPE_LAYER_LIBRARY", &library).args(arguments));
        assert_has(&said, &[&want, "VkLayer_lavascope.json", "LAVASCOPE_LAYER_LIBRARY"]);
    }
    assert!(!home.join(".local/share/vulkan/explicit_layer.d/VkLayer_lavascope.json").exists());
    let mut command = lavascope(&home);
    command.env("LAVASCOPE_NULL_DRIVER_LIBRARY", &library).args(["run", "--null-driver", "--", "true"]);
    assert_has(&failure_text(&mut command), &[&want, "lavascope_null_driver.json", "LAVASCOPE_NULL_DRIVER_LIBRARY"]);
}

#[test]
fn a_library_that_is_none() {
    let home = home("text");
    let library = home.join("text.so");
    fs::write(&library, "INPUT(libother.so)\n").expect("writable");
    let said = failure_text(lavascope(&home).env("LAVASCOPE_LAYER_LIBRARY", &library).args(["run", "--", "true"]));
    assert_has(&said, &["text.so is not a library: it is not an ELF file"]);
}

#[test]
fn a_manifest_that_cannot_be_written() {
    let home = home("no-manifest");
    let file = home.join("file");
    fs::write(&file, "").expect("writable");
    let mut command = lavascope(&home);
    let said = failure_text(command.env("XDG_CACHE_HOME", &file).env("HOME", &file).args(["run", "--", "true"]));
    let parts =
        ["no folder for manifests: ", "file/lavascope/layer: ", "file/.cache/lavascope/layer: ", "set XDG_RUNTIME"];
    assert_has(&said, &parts);
    fs::create_dir_all(home.join("cache/lavascope/layer/VkLayer_lavascope.json/x")).expect("writable");
    let said = failure_text(lavascope(&home).args(["env"]));
    assert_has(&said, &["the manifest ", "VkLayer_lavascope.json cannot be written: "]);
    let left: Vec<_> = fs::read_dir(home.join("cache/lavascope/layer")).expect("a folder").flatten().collect();
    assert_eq!(left.len(), 1, "no draft is left: {left:?}");
}

/// `su` leaves the variable of the user before, and containers that of their host.
#[test]
fn a_runtime_folder_that_is_not_ours_is_passed_over() {
    let home = home("runtime");
    let file = home.join("file");
    fs::write(&file, "").expect("writable");
    let output = output(lavascope(&home).env("XDG_RUNTIME_DIR", &file).args(["env"]));
    assert!(text(&output.stdout).contains("/cache/lavascope/layer'"), "{}", text(&output.stderr));
}

#[test]
fn a_folder_that_the_loader_would_split() {
    let home = home("co:lon");
    let said = failure_text(lavascope(&home).args(["env"]));
    assert_has(&said, &["co:lon/cache/lavascope/layer has a `:`", "set XDG_RUNTIME_DIR to"]);
}

#[test]
fn a_program_that_cannot_be_started() {
    let home = home("no-program");
    // Written by another process: while ours has such a file open, a test beside this one may start a program, and
    // then nobody can run the file ("text file busy").
    let file = |name: &str, text: &str, mode: &str| {
        let path = home.join(name).display().to_string();
        let script = "printf '%s\\n' \"$1\" > \"$0\" && chmod \"$2\" \"$0\"";
        let status = Command::new("sh").args(["-c", script, &path, text, mode]).status();
        assert!(status.is_ok_and(|it| it.success()));
        path
    };
    let (plain, script) = (file("plain", "#!/bin/sh", "644"), file("script", "#!/no/such/interpreter", "755"));
    let (garbage, missing) = (file("garbage", "\x01\x02", "755"), home.join("missing").display().to_string());
    let folder = home.display().to_string();
    for (program, want) in [
        ("no-such-program-here", "no folder in PATH has `no-such-program-here`"),
        (&missing, "missing` does not exist"),
        (&plain, "plain` is not executable; if it is a program, `chmod +x "),
        (&folder, "is a folder, not a program"),
        (&script, "script` cannot be started: its interpreter"),
        (&garbage, "garbage` is not a program that this machine can run"),
        ("plain", "no folder in PATH has `plain`; for the file in this folder, use `./plain`"),
    ] {
        assert_has(&failure_text(lavascope(&home).current_dir(&home).args(["run", "--", program])), &[want]);
    }
}

#[test]
fn files_that_cannot_be_written_are_reported_before_the_program_runs() {
    let home = home("no-file");
    for option in ["--json", "--print"] {
        let script = format!("touch '{}/ran'", home.display());
        let said = failure_text(lavascope(&home).args(["run", option, "/no/such/folder/x", "--", "sh", "-c", &script]));
        assert_has(&said, &["/no/such/folder/x cannot be written"]);
        assert!(!home.join("ran").exists());
    }
}
