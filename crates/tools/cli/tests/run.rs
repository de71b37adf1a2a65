//! `run`, `env` and `layer`: a program sees the layer and the driver that it was promised.

mod common;

use std::path::Path;

use common::{home, lavascope, output, text};

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
}

/// Folders may have any name that a user gives them.
#[test]
fn a_shell_evaluates_what_env_prints() {
    let home = home("it's a \"home\" for $HOME `x` \\");
    let program = env!("CARGO_BIN_EXE_lavascope");
    for shell in ["sh", "bash"] {
        let script = "eval \"$(\"$0\" env)\" && cat \"${VK_ADD_LAYER_PATH%%:*}\"/VkLayer_lavascope.json";
        let environment = lavascope(&home);
        let mut command = std::process::Command::new(shell);
        command.args(["-c", script, program]);
        for (name, value) in environment.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        let output = output(&mut command);
        assert!(text(&output.stdout).contains("VK_LAYER_LAVASCOPE_inspect"), "{shell}: {}", text(&output.stderr));
    }
}

/// A program that wants the Khronos layer gets the installed one; ours answers to that name where there is none, or where
/// a user asks for it. Other layers stay visible.
#[test]
fn the_khronos_name_is_ours_where_no_other_layer_has_it() {
    let home = home("khronos");
    let data = home.join("data");
    let layers = data.join("vulkan/explicit_layer.d");
    std::fs::create_dir_all(&layers).expect("a folder for the test");
    let manifest = |name: &str| {
        let library = Path::new(env!("CARGO_BIN_EXE_lavascope")).with_file_name("deps").join("libVkLayer_lavascope.so");
        let text = serde_json::json!({ "file_format_version": "1.2.0", "layer": {
            "name": name, "type": "GLOBAL", "library_path": library, "api_version": "1.3.0",
            "implementation_version": "1", "description": "",
        }});
        std::fs::write(layers.join(format!("{name}.json")), text.to_string()).expect("writable");
    };
    let listed = |arguments: &[&str]| {
        let script = "for it in $(echo $VK_LAYER_PATH:$VK_ADD_LAYER_PATH | tr : ' '); do basename $it; done; \
            echo $VK_INSTANCE_LAYERS";
        let mut command = lavascope(&home);
        command.env("XDG_DATA_DIRS", &data).env("XDG_CONFIG_DIRS", "/nowhere");
        command.args(["run", "--exit-code", "app"]).args(arguments).args(["--", "sh", "-c", script]);
        text(&output(&mut command).stdout)
    };
    manifest("VK_LAYER_other");
    assert_eq!(listed(&["--as-khronos"]), "layer-as-khronos\nVK_LAYER_KHRONOS_validation\n");
    assert_eq!(listed(&[]), "layer\nlayer-as-khronos\nVK_LAYER_LAVASCOPE_inspect\n");
    manifest("VK_LAYER_KHRONOS_validation");
    let ours_and_others = "layer-as-khronos\nVK_LAYER_other.json\nVK_LAYER_KHRONOS_validation\n";
    assert_eq!(listed(&["--as-khronos"]), ours_and_others);
    assert_eq!(listed(&[]), "layer\nVK_LAYER_LAVASCOPE_inspect\n");
}

/// The manifest names the library, here a stand-in, and the loader is left no other driver.
#[test]
fn the_null_driver_is_the_only_one() {
    let home = home("null-driver");
    // Any library for this machine will do.
    let library = home.join("liblavascope_null_driver.so");
    let layer = Path::new(env!("CARGO_BIN_EXE_lavascope")).with_file_name("deps").join("libVkLayer_lavascope.so");
    std::fs::copy(layer, &library).expect("the layer is built");
    let script = "cat $VK_DRIVER_FILES; [ $VK_DRIVER_FILES = $VK_ICD_FILENAMES ]";
    let arguments = ["run", "--null-driver", "--exit-code", "app", "--", "sh", "-c", script];
    let output = output(lavascope(&home).env("LAVASCOPE_NULL_DRIVER_LIBRARY", &library).args(arguments));
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let manifest: serde_json::Value = serde_json::from_slice(&output.stdout).expect("a manifest");
    assert_eq!(manifest["ICD"]["library_path"], library.display().to_string());
    assert_eq!(manifest["ICD"]["api_version"].as_str().map(|it| &it[..2]), Some("1."));
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

/// The layer of this build reports from every process that a script starts, and all of it is merged.
#[test]
fn every_process_of_a_real_program_reports() {
    let home = home("processes");
    let (file, program) = (home.join("report.json"), env!("CARGO_BIN_EXE_lavascope"));
    let script = "\"$0\" doctor-probe && \"$0\" doctor-probe";
    let mut command = lavascope(&home);
    command.args(["run", "--stats", "--json"]).arg(&file).args(["--", "sh", "-c", script, program]);
    let output = output(&mut command);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let document: serde_json::Value = serde_json::from_slice(&std::fs::read(&file).expect("written")).expect("JSON");
    let processes = document["processes"].as_array().expect("a list");
    assert_eq!(processes.len(), 2, "{document:#}");
    for process in processes {
        assert_eq!(process["program"], program, "{document:#}");
        assert_eq!(process["has_ended"], true, "{document:#}");
        assert_eq!(process["stats"]["by_command"]["vkCreateInstance"], 1, "{document:#}");
        assert_eq!(process["stats"]["by_command"]["vkDestroyInstance"], 1, "{document:#}");
    }
    assert_eq!(document["stats"]["by_command"]["vkCreateInstance"], 2, "{document:#}");
}

/// With the driver of this build: it answers through the loader and through the layer, and no other does.
#[test]
fn a_program_sees_the_null_driver_and_no_other() {
    let home = home("real-null-driver");
    let program = env!("CARGO_BIN_EXE_lavascope");
    let library = Path::new(program).with_file_name("deps").join("liblavascope_null_driver.so");
    let mut command = lavascope(&home);
    command.env("LAVASCOPE_NULL_DRIVER_LIBRARY", library);
    command.args(["run", "--null-driver", "--", program, "doctor-probe"]);
    let output = output(&mut command);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let stdout = text(&output.stdout);
    let result: serde_json::Value = serde_json::from_str(stdout.lines().last().unwrap_or_default()).expect("JSON");
    let devices = result["told"]["devices"].as_array().expect("a list");
    assert_eq!(devices.len(), 1, "{result:#}");
    assert!(devices[0]["name"].as_str().is_some_and(|it| it.to_lowercase().contains("null")), "{result:#}");
}
