//! The driver as programs meet it: through the system's loader, in a process of its own.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use lavascope_test_support::{null_driver_library, set_driver};

const INSTALL: &str = "install the Vulkan loader, its headers and a compiler: apt-get install libvulkan-dev gcc";

/// A folder with the program and the driver's manifest, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
        if let Err(error) = std::fs::create_dir_all(&folder) {
            panic!("{} cannot be made: {error}", folder.display());
        }
        let folder = Folder(folder);
        folder.write(
            "driver.json",
            &lavascope_loader::manifests::driver_manifest(&null_driver_library().to_string_lossy()),
        );
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/program.c");
        let mut compiler = Command::new("cc");
        compiler.arg(source).arg("-o").arg(folder.0.join("program")).arg("-lvulkan");
        match compiler.output() {
            Ok(output) if output.status.success() => folder,
            Ok(output) => panic!("{INSTALL}\n{}", String::from_utf8_lossy(&output.stderr)),
            Err(error) => panic!("{INSTALL}: {error}"),
        }
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        if let Err(error) = std::fs::write(&path, text) {
            panic!("{} cannot be written: {error}", path.display());
        }
        path
    }

    fn run(&self, settings: &[(&str, &str)]) -> Output {
        let mut program = Command::new(self.0.join("program"));
        set_driver(&mut program, self.0.join("driver.json"));
        program.env("VK_LOADER_LAYERS_DISABLE", "~all~").env("NODEVICE_SELECT", "1");
        for name in ["VK_INSTANCE_LAYERS", "LAVASCOPE_NULL_EXECUTE", "LAVASCOPE_NULL_PROFILE"] {
            program.env_remove(name);
        }
        match program.envs(settings.iter().copied()).output() {
            Ok(output) => output,
            Err(error) => panic!("the program cannot be run: {error}"),
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Only litter is left if this fails.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn output_text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn every_run_sees_the_same() {
    let folder = Folder::new("same");
    let (first, second) = (folder.run(&[]), folder.run(&[]));
    assert!(first.status.success(), "{first:?}");
    assert_eq!(output_text(&first), output_text(&second));
    let text = output_text(&first);
    assert!(text.contains("Lavascope null device 16384") && text.contains("word 0"), "{text}");
    assert!(text.contains("mesh 0 trace 1"), "{text}");
    assert_eq!(text.matches("family ").count(), 7, "{text}");
}

#[test]
fn transfers_are_executed_on_demand() {
    let folder = Folder::new("execute");
    let output = folder.run(&[("LAVASCOPE_NULL_EXECUTE", "transfer")]);
    assert!(output_text(&output).contains("word 42"), "{output:?}");
    let output = folder.run(&[("LAVASCOPE_NULL_EXECUTE", "transfers")]);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && error.contains("say \"transfer\" or \"none\""), "{output:?}");
}

#[test]
fn a_device_is_lost_on_demand() {
    let folder = Folder::new("lose");
    let output = folder.run(&[("LAVASCOPE_NULL_LOSE", "1")]);
    // VK_ERROR_DEVICE_LOST, from every wait.
    assert!(String::from_utf8_lossy(&output.stdout).contains("vkQueueWaitIdle(queue): -4"), "{output:?}");
    let output = folder.run(&[("LAVASCOPE_NULL_LOSE", "soon")]);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && error.contains("the number of a submission"), "{output:?}");
}

#[test]
fn a_profile_takes_away_and_a_bad_one_is_refused() {
    let folder = Folder::new("profile");
    let good = r#"{ "capabilities": { "a": { "extensions": { "VK_KHR_swapchain": 70 },
  "properties": { "VkPhysicalDeviceProperties": { "limits": { "maxImageDimension2D": 8192 } } } } } }"#;
    let path = folder.write("profile.json", good).display().to_string();
    let output = folder.run(&[("LAVASCOPE_NULL_PROFILE", &path)]);
    let text = output_text(&output);
    assert!(text.contains("device 8192") && text.contains("extensions 1\n"), "{text}");
    // The extensions that the program wants are gone: VK_ERROR_EXTENSION_NOT_PRESENT.
    assert!(text.contains("device -7"), "{text}");
    folder.write("profile.json", &good.replace("maxImageDimension2D", "maxImageDimension2"));
    let output = folder.run(&[("LAVASCOPE_NULL_PROFILE", &path)]);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success());
    assert!(error.contains("profile.json:2:") && error.contains("is it maxImageDimension"), "{error}");
}
