//! Why a program that was run created no Vulkan instance, in one line.
//!
//! The Vulkan loader refuses layers that are not installed before any layer sees the call, and it does not say so. What
//! is known then: what the loader finds in the same environment, and the names of layers in the program's own file.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use lavascope_loader::LoaderInfo;

use crate::commands::doctor::probe_process::{self, ProbeAnswer};

/// Larger programs are not searched for names.
const PROGRAM_BYTES_MAX: u64 = 256 << 20;
const PROBE_LIMIT: Duration = Duration::from_secs(10);
const LAYER_PREFIX: &[u8] = b"VK_LAYER_";

/// The line for a program that ran with these variables. `direct_driver` is a driver that it loaded without the Vulkan
/// loader.
pub(crate) fn explain(program: &OsStr, variables: &[(&'static str, String)], direct_driver: Option<PathBuf>) -> String {
    let name = program.display();
    if let Some(driver) = direct_driver {
        return format!(
            "lavascope: `{name}` loads the driver {} itself, without the Vulkan loader, so no layer sees its calls and \
             nothing was checked; if it can use the loader (libvulkan.so.1), let it do so\n",
            driver.display()
        );
    }
    let reason = reason(program, variables).unwrap_or_else(|| {
        "if it uses Vulkan, `lavascope doctor` checks the loader, the drivers and the layer".to_owned()
    });
    format!("lavascope: `{name}` created no Vulkan instance under the layer, so nothing was checked: {reason}\n")
}

fn reason(program: &OsStr, variables: &[(&'static str, String)]) -> Option<String> {
    let file = find_program(program);
    if let Some(file) = file.as_deref().filter(|it| lavascope_platform::files::raises_rights(it)) {
        return Some(format!(
            "{} runs with raised rights, and the Vulkan loader ignores variables there",
            file.display()
        ));
    }
    let mut command = Command::new(std::env::current_exe().ok()?);
    command.arg("doctor-probe").envs(variables.iter().map(|it| (it.0, &it.1)));
    match probe_process::run(command, PROBE_LIMIT).ok()? {
        ProbeAnswer::Loaded(LoaderInfo { devices_error: Some(error), .. }) => {
            Some(format!("{error}; see `lavascope doctor`"))
        }
        ProbeAnswer::Loaded(info) if info.devices.is_empty() => {
            Some("the Vulkan loader finds no device; see `lavascope doctor`".to_owned())
        }
        ProbeAnswer::Loaded(info) => missing_layer(&file?, &info),
        ProbeAnswer::Refused(error) => Some(format!("{error}; see `lavascope doctor`")),
        ProbeAnswer::Died(death) => {
            Some(format!("the Vulkan loader or a driver {} while {}; see `lavascope doctor`", death.cause, death.doing))
        }
    }
}

/// A layer that the program names and that the loader does not find.
fn missing_layer(file: &Path, info: &LoaderInfo) -> Option<String> {
    let bytes = fs::metadata(file).ok().filter(|it| it.len() <= PROGRAM_BYTES_MAX).and_then(|_| fs::read(file).ok())?;
    let is_there = |name: &String| info.layers.iter().any(|it| it.name == *name);
    let name = layer_names(&bytes).into_iter().find(|it| !is_there(it))?;
    Some(format!(
        "it names the layer {name}, which is not installed; if it enables that layer, vkCreateInstance returns \
         VK_ERROR_LAYER_NOT_PRESENT"
    ))
}

/// The names of layers in a program: texts that end with a zero.
fn layer_names(bytes: &[u8]) -> Vec<String> {
    let mut names = Vec::new();
    let starts = bytes.windows(LAYER_PREFIX.len()).enumerate().filter(|it| it.1 == LAYER_PREFIX).map(|it| it.0);
    for start in starts {
        let rest = &bytes[start..];
        let end = rest.iter().position(|it| !it.is_ascii_alphanumeric() && *it != b'_').unwrap_or(rest.len());
        let is_whole = end > LAYER_PREFIX.len() && rest.get(end) == Some(&0);
        let is_begin = start == 0 || bytes[start - 1] == 0;
        if is_whole && is_begin {
            names.push(String::from_utf8_lossy(&rest[..end]).into_owned());
        }
    }
    names.dedup();
    names
}

/// The file of a program, as a shell finds it.
fn find_program(program: &OsStr) -> Option<PathBuf> {
    let path = Path::new(program);
    if program.as_encoded_bytes().contains(&b'/') {
        return Some(path.to_owned());
    }
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders).map(|it| it.join(path)).find(|it| it.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_layers_are_whole_texts() {
        let bytes =
            b"\0VK_LAYER_KHRONOS_validation\0see VK_LAYER_x\0VK_LAYER_\0VK_LAYER_a b\0VK_LAYER_ABC_d\0VK_LAYER_end";
        assert_eq!(layer_names(bytes), ["VK_LAYER_KHRONOS_validation", "VK_LAYER_ABC_d"]);
        assert_eq!(layer_names(b"VK"), Vec::<String>::new());
    }

    #[test]
    fn a_program_is_found_as_a_shell_does() {
        assert_eq!(find_program(OsStr::new("./a")), Some(PathBuf::from("./a")));
        assert!(find_program(OsStr::new("sh")).is_some_and(|it| it.is_absolute()));
        assert_eq!(find_program(OsStr::new("no-such-program-here")), None);
    }
}
