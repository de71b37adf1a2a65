//! The doctor with drivers that we break ourselves. What else the machine has does not matter.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use lavascope_test_support::write_null_driver_manifest;
use serde_json::Value;

/// A folder that goes away with the test.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("lavascope-doctor-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).expect("the temporary folder is writable");
        Folder(path)
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, bytes).expect("writable");
        path
    }

    fn manifest(&self, library: &str) -> PathBuf {
        self.write("driver.json", format!(r#"{{"ICD": {{"library_path": "{library}", "api_version": "1.3.0"}}}}"#))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

struct Examined {
    code: Option<i32>,
    report: Value,
}

impl Examined {
    fn finding(&self, code: &str) -> &Value {
        let findings = self.report["findings"].as_array().expect("a list");
        let found = findings.iter().find(|it| it["code"] == code);
        found.unwrap_or_else(|| panic!("no {code} in {:#}", self.report))
    }

    fn has(&self, code: &str) -> bool {
        self.report["findings"].as_array().expect("a list").iter().any(|it| it["code"] == code)
    }
}

fn doctor(driver_files: Option<&Path>, arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lavascope"));
    command.arg("doctor").args(arguments);
    if let Some(files) = driver_files {
        // Older loaders know the second name only.
        command.env("VK_DRIVER_FILES", files).env("VK_ICD_FILENAMES", files);
    }
    let output = command.output().expect("the program starts");
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    (output.status.code(), String::from_utf8(output.stdout).expect("plain text"))
}

fn examine(driver_files: Option<&Path>) -> Examined {
    let (code, text) = doctor(driver_files, &["--json"]);
    Examined { code, report: serde_json::from_str(&text).expect("JSON") }
}

#[test]
fn the_report_of_this_machine_has_its_shape() {
    let examined = examine(None);
    let report = &examined.report;
    for list in ["devices", "drivers", "layers", "findings"] {
        assert!(report[list].is_array(), "{list} in {report:#}");
    }
    assert!(report["lavascope"].is_string() && report["registry"].is_string());
    assert_eq!(examined.code, Some(if report["is_fine"] == true { 0 } else { 1 }));
    if report["is_fine"] == true {
        assert!(report["loader"]["version"].is_string());
        assert!(report["devices"][0]["name"].is_string());
        assert!(report["devices"][0]["api_version"].is_string());
    }
}

#[test]
fn how_a_capture_finds_host_writes_is_shown_for_each_device() {
    let folder = Folder::new();
    let examined = examine(Some(&write_null_driver_manifest(&folder.0)));
    let rows = examined.report["host_writes"].as_array().expect("a list");
    let methods: Vec<&str> = rows.iter().map(|it| it["method"].as_str().expect("a word")).collect();
    assert_eq!(methods, ["userfaultfd", "copy"], "the null driver does not import its last type: {rows:?}");
    assert!(rows.iter().all(|it| it["device"] == examined.report["devices"][0]["name"]), "{rows:?}");
    assert!(rows.iter().all(|it| it["reason"].as_str().is_some_and(|it| it.contains("memory"))), "{rows:?}");
}

/// The library of the layer lies beside the program; this copy of the program has none.
#[test]
fn a_layer_that_is_missing_is_a_finding() {
    let folder = Folder::new();
    let program = folder.0.join("lavascope");
    fs::copy(env!("CARGO_BIN_EXE_lavascope"), &program).expect("the temporary folder is writable");
    let driver = write_null_driver_manifest(&folder.0);
    let mut command = Command::new(program);
    command.args(["doctor", "--json"]).env("VK_DRIVER_FILES", &driver).env("VK_ICD_FILENAMES", &driver);
    let output = command.output().expect("the program starts");
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let examined = Examined { code: output.status.code(), report };
    assert_eq!(examined.code, Some(1));
    let finding = examined.finding("layer-broken");
    assert!(finding["message"].as_str().is_some_and(|it| it.contains("libVkLayer_lavascope.so")), "{finding:#}");
    assert_eq!(examined.report["host_writes"].as_array().map(Vec::len), Some(0));
}

#[test]
fn text_has_no_colours_when_nobody_looks() {
    let (_, text) = doctor(None, &[]);
    assert!(!text.contains('\x1b'), "{text}");
    assert!(text.contains("\nfindings\n"), "{text}");
}

#[test]
fn a_missing_library_is_named() {
    let folder = Folder::new();
    let examined = examine(Some(&folder.manifest("./libgone.so")));
    assert_eq!(examined.code, Some(1));
    let finding = examined.finding("driver-manifest");
    let message = finding["message"].as_str().expect("text");
    assert!(message.contains("libgone.so does not exist"), "{message}");
    assert_eq!(finding["severity"], "broken");
    assert_eq!(examined.report["drivers"][0]["problem"]["problem"], "missing-library");
}

#[test]
fn bad_json_is_named_with_line_and_column() {
    let folder = Folder::new();
    let examined = examine(Some(&folder.write("bad.json", "{\n  oops\n}\n")));
    assert_eq!(examined.code, Some(1));
    let message = examined.finding("driver-manifest")["message"].as_str().expect("text").to_owned();
    assert!(message.contains("bad.json:2:3: "), "{message}");
}

#[test]
#[cfg(target_os = "linux")]
fn a_library_for_another_machine_is_reported() {
    let folder = Folder::new();
    let mut header = b"\x7fELF\x02\x01".to_vec();
    header.resize(18, 0);
    // MIPS, which none of our machines is.
    header.extend(8u16.to_le_bytes());
    folder.write("libother.so", header);
    let examined = examine(Some(&folder.manifest("./libother.so")));
    assert_eq!(examined.code, Some(1));
    let problem = &examined.report["drivers"][0]["problem"];
    assert_eq!(problem["problem"], "wrong-architecture");
    assert_eq!(problem["found"], "ELF machine 8");
    assert!(examined.has("no-driver") || examined.has("no-loader"), "{:#}", examined.report);
}

#[test]
fn no_driver_at_all_is_missing_and_can_be_fixed() {
    let folder = Folder::new();
    let examined = examine(Some(&folder.0));
    assert_eq!(examined.code, Some(1));
    assert_eq!(examined.report["drivers"], Value::Array(vec![]));
    // Without a loader nobody looks for drivers.
    let code = if examined.has("no-loader") { "no-loader" } else { "no-driver" };
    let finding = examined.finding(code);
    assert_eq!(finding["severity"], "missing");
    assert!(finding["fix"].is_string(), "{finding:#}");
}

#[test]
#[cfg(target_os = "linux")]
fn a_loader_that_cannot_be_opened_is_missing() {
    let folder = Folder::new();
    folder.write("libvulkan.so.1", "not a library");
    let mut command = Command::new(env!("CARGO_BIN_EXE_lavascope"));
    let output = command.args(["doctor", "--json"]).env("LD_LIBRARY_PATH", &folder.0).output().expect("it starts");
    let report = serde_json::from_slice(&output.stdout).expect("JSON");
    let examined = Examined { code: output.status.code(), report };
    assert_eq!(examined.code, Some(1));
    assert_eq!(examined.report["loader"], Value::Null);
    let finding = examined.finding("no-loader");
    assert!(finding["message"].as_str().is_some_and(|it| it.contains("libvulkan.so.1")), "{finding:#}");
    assert!(finding["fix"].is_string(), "{finding:#}");
}

#[test]
fn the_probe_ends_with_an_answer() {
    let output =
        Command::new(env!("CARGO_BIN_EXE_lavascope")).arg("doctor-probe").output().expect("the program starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let messages: Vec<Value> = text.lines().filter_map(|it| serde_json::from_str(it).ok()).collect();
    assert!(messages[0]["doing"].is_string(), "{text}");
    let last = messages.last().expect("a message");
    assert!(last.get("told").is_some() || last.get("refused").is_some(), "{text}");
}
