//! `run`, `env` and `layer`: a program sees the layer, and its exit code is ours.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The program with a home of its own, so that nothing of the user's is touched.
fn lavascope(home: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lavascope"));
    for variable in ["XDG_RUNTIME_DIR", "XDG_DATA_HOME", "VK_LAYER_PATH", "VK_ADD_LAYER_PATH", "VK_INSTANCE_LAYERS"] {
        command.env_remove(variable);
    }
    // The library of this build; one beside the program may be older.
    let library = Path::new(env!("CARGO_BIN_EXE_lavascope")).with_file_name("deps").join("libVkLayer_lavascope.so");
    command.env("HOME", home).env("XDG_CACHE_HOME", home.join("cache")).env("LAVASCOPE_LAYER_LIBRARY", library);
    command
}

fn home(name: &str) -> PathBuf {
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&home).expect("a folder for the test");
    home
}

fn output(command: &mut Command) -> Output {
    command.output().expect("the program starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn the_programs_exit_code_is_kept() {
    let home = home("exit-code");
    let code = |script: &str| output(lavascope(&home).args(["run", "--", "sh", "-c", script])).status.code();
    assert_eq!(code("exit 0"), Some(0));
    assert_eq!(code("exit 37"), Some(37));
    assert_eq!(code("kill -9 $$"), Some(137));
}

#[test]
fn a_program_that_does_not_exist_is_named() {
    let output = output(lavascope(&home("no-program")).args(["run", "--", "no-such-program-here"]));
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("no-such-program-here"), "{}", text(&output.stderr));
}

#[test]
fn the_program_is_told_of_the_layer_beside_its_own() {
    let home = home("variables");
    let script = "echo $VK_INSTANCE_LAYERS; cat \"${VK_ADD_LAYER_PATH%%:*}\"/*.json";
    let output =
        output(lavascope(&home).env("VK_INSTANCE_LAYERS", "VK_LAYER_OTHER").args(["run", "--", "sh", "-c", script]));
    let text = text(&output.stdout);
    assert!(text.starts_with("VK_LAYER_LAVASCOPE_inspect:VK_LAYER_OTHER\n"), "{text}");
    assert!(text.contains("libVkLayer_lavascope.so"), "{text}");
}

#[test]
fn env_prints_what_run_sets() {
    let home = home("env");
    let lines = text(&output(lavascope(&home).args(["env", "--as-khronos"])).stdout);
    assert!(lines.contains("export VK_INSTANCE_LAYERS='VK_LAYER_KHRONOS_validation'\n"), "{lines}");
    let refused = output(lavascope(&home).args(["env", "--sync"]));
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("does not exist yet"));
}

#[test]
fn the_layer_is_installed_and_uninstalled() {
    let home = home("install");
    let manifest = home.join(".local/share/vulkan/explicit_layer.d/VkLayer_lavascope.json");
    assert!(output(lavascope(&home).args(["layer", "install"])).status.success());
    assert!(manifest.is_file());
    assert!(output(lavascope(&home).args(["layer", "uninstall"])).status.success());
    assert!(!manifest.exists());
    let again = output(lavascope(&home).args(["layer", "uninstall"]));
    assert!(text(&again.stdout).contains("not installed"));
}

#[test]
fn a_missing_library_is_named_with_the_way_to_mend_it() {
    let output = output(
        lavascope(&home("no-library")).env("LAVASCOPE_LAYER_LIBRARY", "/no/such.so").args(["run", "--", "true"]),
    );
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("/no/such.so"), "{}", text(&output.stderr));
}

/// The loader finds the layer, takes it into the chain, and creates an instance and lists devices through it.
#[test]
fn vulkan_works_the_same_under_the_layer() {
    let home = home("vulkan");
    let program = env!("CARGO_BIN_EXE_lavascope");
    let probe = |arguments: &[&str]| {
        let output = output(lavascope(&home).env("VK_LOADER_DEBUG", "layer").args(arguments));
        let stdout = text(&output.stdout);
        let last = stdout.lines().rfind(|it| !it.is_empty()).unwrap_or_default();
        let value: serde_json::Value = serde_json::from_str(last).expect("the probe prints JSON");
        (value["told"].clone(), text(&output.stderr))
    };
    let (bare, _) = probe(&["doctor-probe"]);
    let (under, said) = probe(&["run", "--", program, "doctor-probe"]);
    assert_eq!(bare["devices"], under["devices"]);
    assert_eq!(bare["version"], under["version"]);
    assert!(bare["devices"].as_array().is_some_and(|it| !it.is_empty()), "no driver: {bare}");
    // The loader itself says which layers it put into the chain.
    assert!(said.contains("nsert instance layer \"VK_LAYER_LAVASCOPE_inspect\""), "{said}");
}

/// Every call is printed by its C names, and every object of the run is known.
#[test]
fn calls_are_printed_into_a_file() {
    let home = home("print");
    let (file, program) = (home.join("calls.txt"), env!("CARGO_BIN_EXE_lavascope"));
    let file_argument = file.display().to_string();
    let output = output(lavascope(&home).args(["run", "--print", &file_argument, "--", program, "doctor-probe"]));
    assert!(output.status.success(), "{}", text(&output.stderr));
    let calls = std::fs::read_to_string(&file).expect("the calls");
    for line in ["vkCreateInstance", "vkCreateInstance ->", "  result = VK_SUCCESS", "  pInstance = VkInstance#0"] {
        assert!(calls.lines().any(|it| it == line), "no line `{line}` in\n{calls}");
    }
    assert!(calls.contains("vkDestroyInstance\n  instance = VkInstance#0\n"), "{calls}");
    assert!(!calls.contains("#unknown"), "{calls}");
    assert!(!calls.contains("bug of ours"), "{calls}");
}
