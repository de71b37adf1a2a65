//! The tools that are compared: both Khronos layers, with synchronization validation alone, and ours.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::json;

use super::programs::ComparedCase;
use crate::setup::chromium;

/// As it is called in the table, and in the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Tool {
    Bare,
    /// The layer of Debian's package.
    Old,
    /// The layer that Chromium ships.
    New,
    Ours,
    /// The first one with everything but synchronization validation.
    Core,
}

impl Tool {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Tool::Bare => "bare",
            Tool::Old => "1.3.239",
            Tool::New => "2026",
            Tool::Ours => "lavascope",
            Tool::Core => "core",
        }
    }

    /// What stands in its settings file, besides where its log goes; ours comes from arguments.
    fn settings(self) -> &'static str {
        match self {
            Tool::Bare | Tool::Ours => "",
            Tool::Old => OLD,
            Tool::New => NEW,
            Tool::Core => CORE,
        }
    }
}

const OLD: &str = "\
khronos_validation.enables = VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT,VALIDATION_CHECK_ENABLE_SYNCHRONIZATION_VALIDATION_QUEUE_SUBMIT
khronos_validation.disables = VK_VALIDATION_FEATURE_DISABLE_CORE_CHECKS_EXT,VK_VALIDATION_FEATURE_DISABLE_OBJECT_LIFETIMES_EXT,VK_VALIDATION_FEATURE_DISABLE_API_PARAMETERS_EXT,VK_VALIDATION_FEATURE_DISABLE_THREAD_SAFETY_EXT,VK_VALIDATION_FEATURE_DISABLE_UNIQUE_HANDLES_EXT,VK_VALIDATION_FEATURE_DISABLE_SHADERS_EXT
khronos_validation.report_flags = error
khronos_validation.enable_message_limit = false
khronos_validation.duplicate_message_limit = 0
";

/// All that its synchronization validation can look at is on. Its checks of command buffers stay on: without them it
/// finds nothing.
const NEW: &str = include_str!("../../../differential/khronos_settings.txt");

const CORE: &str = "khronos_validation.report_flags = error,warn\n";

/// Where everything lies that a run needs.
pub(crate) struct ToolEnvironment {
    pub(crate) folder: PathBuf,
    /// The folder of our programs and libraries.
    pub(crate) built: PathBuf,
    pub(crate) display: String,
    pub(crate) lavapipe: String,
    pub(crate) null_driver: PathBuf,
}

impl ToolEnvironment {
    /// Writes the manifests and settings.
    pub(crate) fn new(folder: PathBuf, built: PathBuf, display: String, lavapipe: String) -> Result<ToolEnvironment> {
        let null_driver = folder.join("null_driver.json");
        let bench = ToolEnvironment { folder, built, display, lavapipe, null_driver };
        let library = bench.built.join("liblavascope_null_driver.so");
        let manifest = json!({
            "file_format_version": "1.0.0",
            "ICD": { "library_path": library, "api_version": "1.4.0" },
        });
        write(&bench.null_driver, &manifest.to_string())?;
        let manifest = json!({
            "file_format_version": "1.2.0",
            "layer": {
                "name": "VK_LAYER_KHRONOS_validation",
                "type": "GLOBAL",
                "library_path": bench.new_layer(),
                "api_version": "1.4.0",
                "implementation_version": "1",
                "description": "The layer that Chromium ships",
            },
        });
        write(&bench.tool_folder(Tool::New).join("VkLayer_khronos_validation.json"), &manifest.to_string())?;
        for tool in [Tool::Old, Tool::New, Tool::Core, Tool::Ours] {
            let log = bench.log(tool);
            let action = "khronos_validation.debug_action = VK_DBG_LAYER_ACTION_LOG_MSG\n";
            let place = format!("khronos_validation.log_filename = {}\n", log.display());
            write(&bench.tool_folder(tool).join("vk_layer_settings.txt"), &[tool.settings(), action, &place].concat())?;
        }
        Ok(bench)
    }

    /// Our command line, on the driver of a program and with a display; for one who wants to see no other layer.
    pub(crate) fn lavascope(&self, program: &ComparedCase) -> Command {
        let mut command = Command::new(self.built.join("lavascope"));
        command.env("XDG_CACHE_HOME", self.folder.join("cache"));
        command.env("LAVASCOPE_LAYER_LIBRARY", self.built.join("libVkLayer_lavascope.so"));
        self.set_environment(&mut command, program);
        command
    }

    /// Where every run takes place.
    fn set_environment(&self, command: &mut Command, program: &ComparedCase) {
        for name in ["VK_LAYER_PATH", "VK_ADD_LAYER_PATH", "VK_LOADER_LAYERS_ENABLE", "WAYLAND_DISPLAY"] {
            command.env_remove(name);
        }
        let driver = program.driver_file(self);
        command.env("DISPLAY", &self.display).env("VK_ICD_FILENAMES", driver).env("VK_DRIVER_FILES", driver);
        command.current_dir(&self.folder);
    }

    /// The program under a tool, and what the tool writes.
    pub(crate) fn command(&self, program: &ComparedCase, tool: Tool) -> Command {
        let words = program.words(self);
        let mut command = match tool {
            Tool::Ours => {
                let mut command = self.lavascope(program);
                command.args(["run", "--exit-code", "app", "--json"]).arg(self.log(tool)).arg("--");
                command.args(&words);
                command
            }
            Tool::Bare | Tool::Old | Tool::New | Tool::Core => {
                let mut command = Command::new(&words[0]);
                command.args(&words[1..]);
                command
            }
        };
        self.set_environment(&mut command, program);
        if matches!(tool, Tool::Old | Tool::New | Tool::Core) {
            command.env("VK_INSTANCE_LAYERS", "VK_LAYER_KHRONOS_validation");
            command.env("VK_LAYER_SETTINGS_PATH", self.tool_folder(tool));
        }
        if tool == Tool::New {
            command.env("VK_LAYER_PATH", self.tool_folder(tool));
        }
        command.envs(program.environment(self));
        command
    }

    /// What a tool writes about a run.
    pub(crate) fn log(&self, tool: Tool) -> PathBuf {
        self.tool_folder(tool).join("log.txt")
    }

    fn tool_folder(&self, tool: Tool) -> PathBuf {
        self.folder.join(tool.name())
    }

    fn new_layer(&self) -> PathBuf {
        new_layer(&self.folder)
    }
}

fn new_layer(folder: &Path) -> PathBuf {
    folder.join("chromium").join(chromium::PACKAGE_FOLDER).join(NEW_LAYER)
}

const NEW_LAYER: &str = "libVkLayer_khronos_validation.so";

/// Gets the newer Khronos layer out of Chromium's package, without installing that.
pub(crate) fn ensure_new_layer(folder: &Path) -> Result<()> {
    chromium::ensure_files(&folder.join("chromium"), &[NEW_LAYER])
}

fn write(path: &Path, text: &str) -> Result<()> {
    let folder = path.parent().context("a file lies in a folder")?;
    std::fs::create_dir_all(folder).with_context(|| format!("{} cannot be made", folder.display()))?;
    std::fs::write(path, text).with_context(|| format!("{} cannot be written", path.display()))
}
