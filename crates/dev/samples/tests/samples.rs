//! Every sample on lavapipe: its result is right, and its check would notice if it were not.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use lavascope_test_support::{lavapipe, set_driver};

/// The sample program on Mesa's driver for the CPU, and on nothing else.
fn sample(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lavascope-samples"));
    for variable in ["VK_INSTANCE_LAYERS", "VK_LOADER_LAYERS_ENABLE", "LAVASCOPE_SAMPLE_DEVICE", "DISPLAY"] {
        command.env_remove(variable);
    }
    set_driver(command.args(arguments), lavapipe());
    command
}

/// Its exit code and its output.
fn outcome(command: &mut Command) -> (Option<i32>, String) {
    let Output { status, stdout, stderr } = command.output().expect("the program starts");
    (status.code(), String::from_utf8_lossy(&[stdout, stderr].concat()).into_owned())
}

fn names() -> Vec<String> {
    let (code, text) = outcome(&mut sample(&["list"]));
    assert_eq!(code, Some(0), "{text}");
    text.lines().filter_map(|it| it.split_whitespace().next()).map(str::to_owned).collect()
}

fn names_of(is_faulty: bool) -> Vec<String> {
    let names: Vec<_> = names().into_iter().filter(|it| it.starts_with("fault-") == is_faulty).collect();
    assert!(names.len() >= 6, "{names:?}");
    names
}

/// All samples except those that may need a window.
fn headless() -> Vec<String> {
    names_of(false).into_iter().filter(|it| !it.starts_with("present")).collect()
}

#[test]
fn every_result_is_right() {
    for name in headless() {
        let (code, output) = outcome(&mut sample(&[&name]));
        assert_eq!(code, Some(0), "{name}: {output}");
    }
}

#[test]
fn every_check_can_fail() {
    for name in headless() {
        let (code, output) = outcome(&mut sample(&[&name, "--expect-wrong"]));
        assert_eq!(code, Some(1), "{name}: {output}");
        assert!(output.contains("wrong result"), "{name}: {output}");
    }
}

#[test]
fn nothing_is_compared_where_that_is_asked_for() {
    for name in headless() {
        let (code, output) = outcome(&mut sample(&[&name, "--no-check"]));
        assert_eq!(code, Some(0), "{name}: {output}");
    }
}

/// Faults in what lavapipe, or some version of it, does not have.
const RARE: [&str; 39] = [
    "fault-bounds-rays",
    "fault-bounds-mesh",
    "fault-bounds-chained-module",
    "fault-bounds-rays-library",
    "fault-bounds-generated",
    "fault-bounds-buffered",
    "fault-bounds-buffered-index",
    "fault-bounds-buffered-address",
    "fault-bounds-buffered-between",
    "fault-bounds-buffered-unmapped",
    "fault-bounds-older-address",
    "fault-bounds-object",
    "fault-bounds-object-constants",
    "fault-bounds-object-full",
    "fault-bounds-object-many",
    "fault-bounds-object-linked",
    "fault-bounds-object-apart",
    "fault-bounds-object-uniform",
    "fault-bounds-object-binary",
    "fault-observed-object",
    "fault-observed-rays",
    "fault-observed-rays-library",
    "fault-bounds-sampler-never",
    "fault-bounds-instances",
    "fault-bounds-instances-indirect",
    "fault-bounds-instances-nv",
    "fault-bounds-late",
    "fault-bounds-late-short",
    "fault-bounds-rays-nv",
    "fault-bounds-sampler-index",
    "fault-barrier-queue",
    "fault-ownership-race",
    "fault-ownership-acquire",
    "fault-sparse-alias",
    "fault-mapped-descriptors",
    "fault-mesh-indirect",
    "fault-build-input",
    "fault-acceleration-structure",
    "fault-trace-rays",
];

#[test]
fn planted_faults_run_and_fixed_ones_are_right() {
    let server = XServer::start();
    let run = |arguments: &[&str]| outcome(sample(arguments).env("DISPLAY", &server.display));
    for name in names_of(true) {
        let (code, output) = run(&[&name]);
        if code == Some(2) && RARE.contains(&&*name) {
            assert!(output.contains("cannot run here"), "{name}: {output}");
            continue;
        }
        assert_eq!(code, Some(0), "{name}: {output}");
        let (code, output) = run(&[&name, "--fixed"]);
        assert_eq!(code, Some(0), "{name}: {output}");
        let (code, output) = run(&[&name, "--fixed", "--expect-wrong"]);
        assert_eq!(code, Some(1), "{name}: {output}");
    }
}

#[test]
fn many_threads_agree_with_the_model_for_every_seed() {
    for seed in ["1", "2", "3", "4"] {
        let arguments = ["threads-handoff", "--threads", "16", "--frames", "20", "--seed", seed];
        let (code, output) = outcome(&mut sample(&arguments));
        assert_eq!(code, Some(0), "seed {seed}: {output}");
    }
    for threads in ["1", "3", "16"] {
        let (code, output) = outcome(&mut sample(&["threads", "--threads", threads, "--frames", "7"]));
        assert_eq!(code, Some(0), "{threads} threads: {output}");
    }
}

/// Newer drivers need no window; for others the test starts an X server without a display.
#[test]
fn presented_images_are_right() {
    let (code, output) = outcome(&mut sample(&["present"]));
    if code == Some(0) {
        assert_eq!(outcome(&mut sample(&["present", "--expect-wrong"])).0, Some(1));
        return;
    }
    assert_eq!(code, Some(2), "{output}");
    assert!(output.contains("VK_EXT_headless_surface"), "{output}");
    let server = XServer::start();
    let present = |arguments: &[&str]| outcome(sample(arguments).env("DISPLAY", &server.display));
    let (code, output) = present(&["present", "--frames", "9"]);
    assert_eq!(code, Some(0), "{output}");
    let (code, output) = present(&["present", "--expect-wrong"]);
    assert_eq!(code, Some(1), "{output}");
}

#[test]
fn a_picture_is_saved() {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("triangle.ppm");
    let (code, output) = outcome(sample(&["triangle-render-pass", "--save"]).arg(&file));
    assert_eq!(code, Some(0), "{output}");
    let bytes = std::fs::read(&file).expect("the picture");
    assert!(bytes.starts_with(b"P6\n64 64\n255\n"));
    assert_eq!(bytes.len(), 13 + 64 * 64 * 3);
    assert_eq!(bytes[13..16], [51, 102, 153]);
}

#[test]
fn what_is_missing_is_named() {
    let (code, output) = outcome(&mut sample(&["no-such-sample"]));
    assert_eq!(code, Some(2));
    assert!(output.contains("no-such-sample") && output.contains("list"), "{output}");
    let (code, output) = outcome(sample(&["compute"]).env("LAVASCOPE_SAMPLE_DEVICE", "no such device"));
    assert_eq!(code, Some(2));
    assert!(output.contains("no such device"), "{output}");
    let nothing = Path::new(env!("CARGO_TARGET_TMPDIR")).join("no-driver.json");
    let (code, output) = outcome(set_driver(&mut sample(&["compute"]), &nothing));
    assert_eq!(code, Some(2));
    assert!(output.contains("no Vulkan driver"), "{output}");
}

/// An X server for the time of a test.
struct XServer {
    process: Child,
    display: String,
}

impl XServer {
    fn start() -> XServer {
        let mut command = Command::new("Xvfb");
        command.args(["-displayfd", "1", "-screen", "0", "320x240x24", "-nolisten", "tcp", "-noreset"]);
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("Xvfb: install xvfb");
        let mut number = String::new();
        let output = process.stdout.take().expect("the server's output");
        BufReader::new(output).read_line(&mut number).expect("the number of the display");
        XServer { process, display: format!(":{}", number.trim()) }
    }
}

impl Drop for XServer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
