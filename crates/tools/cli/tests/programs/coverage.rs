//! What `run` does without options, and what it says about what was checked.

use std::path::Path;
use std::process::Output;

use lavascope_test_support::set_driver;
use serde_json::{Value, json};

use crate::common::{output, text};
use crate::test_environment::{TestEnvironment, samples, succeed, unwrapped};

const CLEAN: &str = "accesses checked: no problems found. Not checked: shaders (--gpu)\n";

/// `lavascope run` as a user types it.
fn run(stage: &TestEnvironment, options: &[&str], variables: &[(&str, &str)], sample: &[&str]) -> Output {
    let mut command = stage.lavascope();
    command.args(["run", "--json", "report.json"]).args(options).arg("--").arg(samples()).args(sample);
    output(command.envs(variables.iter().copied()))
}

/// What it prints, without the line breaks of its 80 columns.
fn said(output: &Output) -> String {
    unwrapped(&text(&output.stderr))
}

fn coverage(stage: &TestEnvironment) -> Value {
    stage.report().0["coverage"].clone()
}

fn check_state(coverage: &Value, name: &str) -> (bool, String) {
    let checks = coverage["checks"].as_array().expect("a list");
    let check = checks.iter().find(|it| it["name"] == name).unwrap_or_else(|| panic!("no {name}: {coverage:#}"));
    (check["is_armed"] == true, check["why"].as_str().unwrap_or_default().to_owned())
}

#[test]
fn run_alone_finds_hazards_and_says_what_it_checked() {
    let stage = TestEnvironment::new("coverage-default");
    let found = run(&stage, &[], &[], &["fault-war-copy", "--no-check"]);
    assert_eq!(found.status.code(), Some(1), "{}", text(&found.stderr));
    assert!(said(&found).contains("Not checked: shaders (--gpu)\n"), "{}", text(&found.stderr));
    assert!(text(&found.stderr).lines().all(|it| it.len() <= 80 || it.contains('/')), "{}", text(&found.stderr));
    let clean = run(&stage, &[], &[], &["compute"]);
    assert_eq!((clean.status.code(), clean.stdout.is_empty()), (Some(0), true));
    let all = said(&clean);
    assert!(all.starts_with("lavascope: 2 submits, ") && all.ends_with(CLEAN), "{all}");
    assert_eq!(all.lines().count(), 1, "{all}");
    let quiet = run(&stage, &["--quiet"], &[], &["compute"]);
    assert_eq!((quiet.status.code(), text(&quiet.stderr)), (Some(0), String::new()));
    let bare = run(&stage, &["--no-sync"], &[], &["compute"]);
    let line = "lavascope: nothing checked. Not checked: synchronization (--no-sync); shaders (--gpu)\n";
    assert_eq!((bare.status.code(), said(&bare).as_str()), (Some(0), line));
    let gpu = run(&stage, &["--gpu"], &[], &["compute"]);
    assert!(said(&gpu).contains("1 of 1 shader checked: no problems found"), "{}", text(&gpu.stderr));
}

/// What Vulkan Configurator writes for the Khronos layer does not switch `run` off.
#[test]
fn a_settings_file_does_not_switch_run_off() {
    let stage = TestEnvironment::new("coverage-file");
    std::fs::write(stage.folder.join("vk_layer_settings.txt"), "khronos_validation.validate_sync = false\n")
        .expect("writable");
    let found = run(&stage, &[], &[], &["fault-war-copy", "--no-check"]);
    assert_eq!(found.status.code(), Some(1), "{}", text(&found.stderr));
}

/// Each setting that takes something from the checks is seen in the report.
#[test]
fn each_check_that_is_off_is_seen() {
    let stage = TestEnvironment::new("coverage-off");
    let checks = [
        "sync",
        "sync_submit_time",
        "gpu",
        "gpu_shader_checks",
        "gpu_descriptors",
        "gpu_buffer_bounds",
        "gpu_warn_robust",
        "gpu_device_address",
        "gpu_acceleration_structures",
    ];
    run(&stage, &["--gpu"], &[], &["compute"]);
    let all = coverage(&stage);
    for check in checks {
        assert_eq!(check_state(&all, check), (true, String::new()), "{check}: {all:#}");
    }
    assert_eq!(all["shaders"]["checked"], 1);
    for check in checks {
        let variable = format!("LAVASCOPE_{}", check.to_uppercase());
        let options: &[&str] = if check == "gpu" { &[] } else { &["--gpu", "--min-coverage", "99"] };
        let ran = run(&stage, options, &[(&variable, "off")], &["compute"]);
        let without = coverage(&stage);
        assert_eq!(check_state(&without, check), (false, format!("off by {variable}")), "{check}: {without:#}");
        // It has its place in the last line, and lowers the coverage. What was never asked for does not.
        let said = unwrapped(&text(&ran.stderr));
        let name = if check == "gpu" { "shaders" } else { check.strip_prefix("sync").map_or(check, |_| "sync") };
        assert!(said.contains(name) && said.contains(&format!("(off by {variable})")), "{check}: {said}");
        let is_lowered = !["sync", "gpu"].contains(&check);
        assert_eq!(ran.status.code(), Some(i32::from(is_lowered)), "{check}: {said}");
    }
    for check in ["possible", "sync_shader_heuristic"] {
        assert!(!check_state(&all, check).0, "{all:#}");
        let variable = format!("LAVASCOPE_{}", check.to_uppercase());
        run(&stage, &[], &[(&variable, "on")], &["compute"]);
        assert!(check_state(&coverage(&stage), check).0, "{check}");
    }
}

#[test]
fn shaders_that_are_left_out_are_counted() {
    let stage = TestEnvironment::new("coverage-shaders");
    let two = ["fault-barrier-stage", "--fixed"];
    for (options, reason, checked) in [
        (["--gpu", "--shaders", "no-such-name"], "not among the selected shaders", 0),
        (["--gpu", "--sample", "2"], "not in the sample of gpu_sample", 1),
    ] {
        run(&stage, &options, &[], &two);
        let shaders = &coverage(&stage)["shaders"];
        let unchecked = json!([{ "reason": reason, "count": 2 - checked }]);
        assert_eq!(*shaders, json!({ "seen": 2, "checked": checked, "unchecked": unchecked }), "{options:?}");
    }
    // A shader without SPIR-V.
    run(&stage, &["--gpu", "--null-driver"], &[], &["fault-bounds-object-binary", "--fixed", "--no-check"]);
    let shaders = &coverage(&stage)["shaders"];
    let reason = shaders["unchecked"][0]["reason"].as_str().expect("a reason");
    assert!(reason.starts_with("shader objects created from binaries"), "{shaders:#}");
    let gone = run(&stage, &["--gpu", "--pipelines", "sky"], &[], &["compute"]);
    assert_eq!(gone.status.code(), Some(2), "{}", text(&gone.stderr));
    assert!(said(&gone).contains("use `--shaders sky`"), "{}", text(&gone.stderr));
    let unmatched = run(&stage, &["--gpu", "--shaders", "no-such-name"], &[], &["compute"]);
    let line = "setting gpu_shaders: `no-such-name` matches no module, entry point, source file or pipeline";
    assert_eq!(said(&unmatched).matches(line).count(), 1, "{}", text(&unmatched.stderr));
}

#[test]
fn a_smaller_coverage_than_wanted_fails() {
    let stage = TestEnvironment::new("coverage-min");
    assert_eq!(run(&stage, &["--min-coverage", "99"], &[], &["compute"]).status.code(), Some(0));
    let late = [("LAVASCOPE_SYNC_SUBMIT_TIME", "off")];
    let too_small = run(&stage, &["--min-coverage", "99"], &late, &["compute"]);
    assert_eq!(too_small.status.code(), Some(1));
    let line = "lavascope: coverage 0 % is below --min-coverage 99: 0 of 2 submits checked: sync_submit_time is off\n";
    assert!(said(&too_small).ends_with(line), "{}", text(&too_small.stderr));
    let wanted = ["--gpu", "--shaders", "no-such-name", "--min-coverage", "99"];
    assert_eq!(run(&stage, &wanted, &[], &["compute"]).status.code(), Some(1));
    let nothing = run(&stage, &["--no-sync", "--min-coverage", "1"], &[], &["compute"]);
    let why = "no check is on. Not checked: synchronization (--no-sync); shaders (--gpu)\n";
    assert!(said(&nothing).ends_with(why), "{}", text(&nothing.stderr));
    let without_checks = [("LAVASCOPE_GPU_SHADER_CHECKS", "0")];
    let wanted = ["--gpu", "--min-coverage", "99"];
    let nothing = run(&stage, &wanted, &without_checks, &["fault-bounds-read", "--no-check"]);
    assert!(said(&nothing).contains("0 of 1 shader checked"), "{}", text(&nothing.stderr));
    assert_eq!(nothing.status.code(), Some(1), "{}", text(&nothing.stderr));
    let app = ["--exit-code", "app", "--min-coverage", "99"];
    assert_eq!(run(&stage, &app, &late, &["compute"]).status.code(), Some(0));
}

/// Every format of a clean run says what was checked and what was not.
#[test]
fn every_format_has_the_coverage() {
    let stage = TestEnvironment::new("coverage-formats");
    let formats = ["text", "json", "sarif", "junit", "github", "markdown", "html"];
    let options: Vec<String> = formats.iter().map(|it| format!("--format={it}={it}.out")).collect();
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    run(&stage, &options, &[("GITHUB_STEP_SUMMARY", "summary.out")], &["compute"]);
    let files = formats.iter().copied().filter(|it| *it != "json").chain(["summary"]);
    for name in files {
        let written = std::fs::read_to_string(stage.folder.join(format!("{name}.out"))).expect(name);
        let written = unwrapped(&written).replace('\\', "");
        assert!(written.contains("no problems found. Not checked: shaders (--gpu)"), "{name}: {written}");
    }
    let mut command = stage.lavascope();
    let again = succeed(command.args(["report", "json.out"]));
    assert!(unwrapped(&text(&again.stdout)).ends_with(CLEAN), "{}", text(&again.stdout));
}

/// The same counts with and without the caches, which skip recordings that repeat.
#[test]
fn caches_do_not_change_what_is_counted() {
    let stage = TestEnvironment::new("coverage-caches");
    let counts = ["on", "off"].map(|caches| {
        run(&stage, &["--inline"], &[("LAVASCOPE_CACHES", caches)], &["recording", "--no-check"]);
        let all = coverage(&stage);
        (all["calls"].clone(), all["submits"].clone(), all["accesses"].clone())
    });
    assert_eq!(counts[0], counts[1]);
    assert!(counts[0].2["checked"].as_u64() > Some(0));
}

/// A capture writes down what happens, and checks nothing.
#[test]
fn a_capture_does_not_validate() {
    let stage = TestEnvironment::new("coverage-capture");
    let mut command = stage.lavascope();
    command.env("LAVASCOPE_SYNC", "1").args(["capture", "-o", "trace.lava", "--"]).arg(samples());
    let captured = succeed(command.args(["fault-war-copy", "--no-check"]));
    assert!(!text(&captured.stderr).contains("error["), "{}", text(&captured.stderr));
    let mut command = stage.lavascope();
    command.args(["capture", "--sync", "-o", "trace.lava", "--"]).arg(samples());
    let both = succeed(command.args(["fault-war-copy", "--no-check"]));
    assert!(text(&both.stderr).contains("error[WAR]"), "{}", text(&both.stderr));
}

/// Loaders differ in which of two layers of one name they load.
#[test]
fn the_installed_khronos_layer_is_replaced() {
    let stage = TestEnvironment::new("coverage-as-khronos");
    assert!(crate::below::system_khronos().is_dir());
    let found = run(&stage, &["--as-khronos"], &[], &["fault-war-copy", "--no-check"]);
    assert_eq!(found.status.code(), Some(1), "{}", text(&found.stderr));
    assert!(text(&found.stderr).contains("error[WAR]"), "{}", text(&found.stderr));
}

/// Creates an instance, and a device with every core feature, some of which lavapipe does not have.
const ALL_FEATURES: &str = r#"
import ctypes
vk = ctypes.CDLL('libvulkan.so.1')
def words(*values): return (ctypes.c_uint64 * len(values))(*values)
addr = lambda it: ctypes.addressof(it)
instance, count = ctypes.c_void_p(), ctypes.c_uint32(1)
assert vk.vkCreateInstance(words(1, 0, 0, 0, 0, 0, 0, 0), None, ctypes.byref(instance)) == 0
devices = (ctypes.c_void_p * 1)()
assert vk.vkEnumeratePhysicalDevices(instance, ctypes.byref(count), devices) >= 0
priority = ctypes.c_float(1)
queue = words(2, 0, 0, 1, addr(priority))
features = (ctypes.c_uint32 * 55)(*([1] * 55))
info = words(3, 0, 1 << 32, addr(queue), 0, 0, 0, 0, addr(features))
made = ctypes.c_void_p()
print('vkCreateDevice:', vk.vkCreateDevice(ctypes.c_void_p(devices[0]), info, None, ctypes.byref(made)))
vk.vkDestroyInstance(instance, None)
"#;

#[test]
fn features_that_a_device_does_not_have_are_named() {
    let stage = TestEnvironment::new("coverage-features");
    let mut command = stage.lavascope();
    command.args(["run", "--json", "report.json", "--"]).arg(crate::known::python()).args(["-c", ALL_FEATURES]);
    let failed = output(&mut command);
    assert_eq!(text(&failed.stdout), "vkCreateDevice: -8\n", "{}", text(&failed.stderr));
    let said = unwrapped(&text(&failed.stderr));
    let line =
        said.lines().find(|it| it.starts_with("lavascope: warning")).unwrap_or_else(|| panic!("no line: {said}"));
    assert!(line.starts_with("lavascope: warning: vkCreateDevice: VK_ERROR_FEATURE_NOT_PRESENT: llvmpipe"), "{line}");
    assert!(line.contains(" of VkPhysicalDeviceFeatures"), "{line}");
    let nothing =
        "lavascope: nothing was checked: the program submitted nothing to a queue. Not checked: shaders (--gpu)";
    assert!(said.contains(nothing), "{said}");
}

/// The loader refuses an extension that a device does not have before any layer sees the call, and says so in the run.
#[test]
fn an_extension_that_a_device_does_not_have_is_named() {
    let stage = TestEnvironment::new("coverage-extension");
    let names = "name = ctypes.c_char_p(b'VK_KHR_no_such_extension')\n\
                 names = words(ctypes.cast(name, ctypes.c_void_p).value)\ninfo = ";
    let script =
        ALL_FEATURES.replace("info = ", names).replace("0, 0, 0, 0, addr(features)", "0, 0, 1, addr(names), 0");
    let mut command = stage.lavascope();
    command.args(["run", "--"]).arg(crate::known::python()).args(["-c", &script]);
    let failed = output(command.env_remove("VK_LOADER_DEBUG"));
    assert_eq!(text(&failed.stdout), "vkCreateDevice: -7\n", "{}", text(&failed.stderr));
    assert!(text(&failed.stderr).contains("VK_KHR_no_such_extension"), "{}", text(&failed.stderr));
}

/// The loader refuses a layer that is not installed, and says so in the run.
#[test]
fn a_layer_that_is_not_installed_is_named() {
    let script = "
import ctypes
vk = ctypes.CDLL('libvulkan.so.1')
name = ctypes.c_char_p(b'VK_LAYER_no_such_layer')
words = lambda *values: (ctypes.c_uint64 * len(values))(*values)
names = words(ctypes.cast(name, ctypes.c_void_p).value)
made = ctypes.c_void_p()
info = words(1, 0, 0, 0, 1, ctypes.addressof(names), 0, 0)
print(vk.vkCreateInstance(info, None, ctypes.byref(made)))
";
    let stage = TestEnvironment::new("coverage-layer");
    let mut command = stage.lavascope();
    command.args(["run", "--"]).arg(crate::known::python()).args(["-c", script]);
    let failed = output(command.env_remove("VK_LOADER_DEBUG"));
    assert_eq!((text(&failed.stdout).as_str(), failed.status.code()), ("-6\n", Some(2)));
    let said = text(&failed.stderr);
    assert!(said.contains("ayer") && said.contains("created no Vulkan instance under the layer"), "{said}");
}

/// Where no driver is there, the loader refuses the instance before any layer sees it.
#[test]
fn a_machine_without_a_driver_is_explained() {
    let stage = TestEnvironment::new("coverage-no-driver");
    let mut command = stage.lavascope();
    set_driver(&mut command, Path::new("/no/such/driver.json"));
    let failed = output(command.args(["run", "--"]).arg(samples()).arg("compute"));
    let said = text(&failed.stderr);
    let line = said.lines().find(|it| it.starts_with("lavascope: ")).expect("a line");
    assert!(line.contains("created no Vulkan instance") && line.contains("driver"), "{said}");
}

/// Without `lavascope run`, the layer itself logs what was checked, unless a setting switches that off.
#[test]
fn the_layer_alone_logs_what_was_checked() {
    let stage = TestEnvironment::new("coverage-alone");
    let variables = text(&succeed(stage.lavascope().arg("env")).stdout);
    let said = |setting: &str, sample: &str| {
        let script = format!("{variables}\nexec env {setting} \"$@\"");
        let mut shell = stage.bare("sh");
        text(&output(shell.args(["-c", &script, "sh"]).arg(samples()).arg(sample)).stderr)
    };
    let clean = said("LAVASCOPE_SUMMARY=1", "compute");
    let end = " accesses checked: no problems found. Not checked: shaders (the setting gpu is off)\n";
    assert!(clean.starts_with("lavascope: 2 submits, ") && clean.ends_with(end), "{clean}");
    assert_eq!(clean.lines().count(), 1, "{clean}");
    assert_eq!(said("LAVASCOPE_SUMMARY=0", "compute"), "");
    assert_eq!(said("LAVASCOPE_LOG_FILENAME=stdout", "compute"), "", "it does not mix with what the program prints");
    let fault = said("LAVASCOPE_GPU=1", "fault-bounds-read");
    let last = fault.lines().last().unwrap_or_default();
    assert!(last.contains("1 of 1 shader checked. Not checked: ") && !last.contains("no problems"), "{fault}");
}
