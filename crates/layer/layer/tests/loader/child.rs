//! Runs a test in a child process, and collects what it leaves.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use VkLayer_lavascope::INSTANCE_EXTENSIONS;
use lavascope_test_support::{layer_library, set_driver, write_null_driver_manifest};
use serde_json::{Value, json};

/// Set in the process that a test starts: the name of the test.
const CHILD: &str = "LAYER_TEST_CHILD";

/// Our layer under its own name and under another, as with `--as-khronos`.
pub(crate) const LAYER_NAMES: [&str; 2] = ["VK_LAYER_LAVASCOPE_inspect", "VK_LAYER_KHRONOS_validation"];

/// The result of a child process.
pub(crate) struct ChildOutcome {
    pub(crate) stderr: String,
    folder: PathBuf,
}

/// Runs `body` in a process of its own, and gives its outcome here; none in that process.
///
/// `name` is the test's own, with its module. In the environment `{folder}` is a folder of the test's.
pub(crate) fn child(name: &str, environment: &[(&str, &str)], body: impl FnOnce()) -> Option<ChildOutcome> {
    let (outcome, output) = run(name, environment, body)?;
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}\n{stdout}\n{}", output.status, outcome.stderr);
    assert!(stdout.contains("1 passed"), "no test has the name {name}");
    Some(outcome)
}

/// The same of a process that ends itself in the middle of its test, as one that succeeds does.
pub(crate) fn exiting_child(name: &str, environment: &[(&str, &str)], body: impl FnOnce()) -> Option<ChildOutcome> {
    let (outcome, output) = run(name, environment, body)?;
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}\n{stdout}\n{}", output.status, outcome.stderr);
    assert!(stdout.contains("running 1 test"), "no test has the name {name}");
    Some(outcome)
}

/// The same of a process that a signal ends.
pub(crate) fn dying_child(
    name: &str,
    environment: &[(&str, &str)],
    signal: i32,
    body: impl FnOnce(),
) -> Option<ChildOutcome> {
    let (outcome, output) = run(name, environment, body)?;
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.signal(), Some(signal), "{}\n{stdout}\n{}", output.status, outcome.stderr);
    Some(outcome)
}

fn run(name: &str, environment: &[(&str, &str)], body: impl FnOnce()) -> Option<(ChildOutcome, Output)> {
    if std::env::var(CHILD).is_ok_and(|it| it == name) {
        body();
        return None;
    }
    let folder =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{}-{}", name.replace(':', "-"), std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(folder.join("report")).expect("the build folder can be written");
    // The default is for users. A test names what it wants, and gets nothing else.
    fs::write(folder.join("vk_layer_settings.txt"), "lavascope_inspect.sync = off\n").expect("the folder is ours");
    let exe = std::env::current_exe().expect("a program knows where it is");
    let driver = write_manifests(&folder);
    let mut command = Command::new(&exe);
    command.args([name, "--exact", "--nocapture", "--test-threads=1"]).current_dir(&folder);
    for (key, _) in std::env::vars_os() {
        if key.to_str().is_some_and(|it| ["VK_", "LAVASCOPE_", "XDG_"].iter().any(|prefix| it.starts_with(prefix))) {
            command.env_remove(key);
        }
    }
    command.env(CHILD, name).env("HOME", &folder).env("VK_LAYER_PATH", &folder);
    set_driver(&mut command, &driver);
    let shown = folder.to_string_lossy();
    command.envs(environment.iter().map(|(key, value)| (key, value.replace("{folder}", &shown))));
    let output = command.output().expect("the program that runs can be run again");
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    Some((ChildOutcome { stderr, folder }, output))
}

fn write_manifests(folder: &Path) -> PathBuf {
    let driver = write_null_driver_manifest(folder);
    let extensions = INSTANCE_EXTENSIONS
        .map(|(name, version)| json!({ "name": name.to_string_lossy(), "spec_version": version.to_string() }));
    let function = "vkNegotiateLoaderLayerInterfaceVersion";
    for name in LAYER_NAMES {
        let manifest = json!({ "file_format_version": "1.2.0", "layer": {
            "name": name,
            "type": "GLOBAL",
            "library_path": layer_library(),
            "api_version": "1.4.0",
            "implementation_version": "1",
            "description": "",
            "functions": { function: function },
            "instance_extensions": extensions,
        }});
        fs::write(folder.join(format!("{name}.json")), manifest.to_string()).expect("the folder is ours");
    }
    driver
}

impl ChildOutcome {
    pub(crate) fn file(&self, name: &str) -> String {
        let path = self.folder.join(name);
        fs::read_to_string(&path).unwrap_or_else(|it| panic!("{}: {it}", path.display()))
    }

    pub(crate) fn bytes(&self, name: &str) -> Vec<u8> {
        let path = self.folder.join(name);
        fs::read(&path).unwrap_or_else(|it| panic!("{}: {it}", path.display()))
    }

    /// The lines of all reports, kind and value each; what follows the last line break was interrupted.
    pub(crate) fn report(&self) -> Vec<(String, Value)> {
        let files = fs::read_dir(self.folder.join("report")).expect("the folder is ours");
        let mut files: Vec<PathBuf> = files.map(|it| it.expect("the folder is ours").path()).collect();
        // Beside the reports are marks of shaders that are compiled.
        files.retain(|it| it.extension().is_none_or(|it| it != "compiling"));
        files.sort();
        let texts = files.iter().map(|it| fs::read_to_string(it).expect("a report is text"));
        let whole = |text: String| text[..text.rfind('\n').map_or(0, |it| it + 1)].to_owned();
        let lines: Vec<Value> = texts
            .map(whole)
            .flat_map(|it| it.lines().map(|it| serde_json::from_str(it).expect("a line is JSON")).collect::<Vec<_>>())
            .collect();
        let object = |it: Value| it.as_object().expect("a line is an object").clone();
        lines.into_iter().flat_map(object).collect()
    }

    /// The lines of one kind.
    pub(crate) fn of_kind(&self, kind: &str) -> Vec<Value> {
        self.report().into_iter().filter(|it| it.0 == kind).map(|it| it.1).collect()
    }

    /// The final counts. A bug in the layer fails the test.
    pub(crate) fn stats(&self) -> ReportedStats {
        assert_eq!(self.of_kind("bug"), Vec::<Value>::new());
        assert!(!self.stderr.contains("bug of ours"), "{}", self.stderr);
        let last = self.of_kind("stats").pop().expect("calls were counted");
        let number = |it: &Value| it.as_u64().expect("a count is a number");
        let by_command = last["by_command"].as_object().expect("an object");
        ReportedStats {
            threads: number(&last["threads"]),
            by_command: by_command.iter().map(|(name, count)| (name.clone(), number(count))).collect(),
        }
    }
}

/// The counts of the layer.
pub(crate) struct ReportedStats {
    pub(crate) threads: u64,
    pub(crate) by_command: BTreeMap<String, u64>,
}

impl ReportedStats {
    pub(crate) fn of(&self, command: &str) -> u64 {
        self.by_command.get(command).copied().unwrap_or(0)
    }
}
