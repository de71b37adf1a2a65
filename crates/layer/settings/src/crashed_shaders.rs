//! The list of shaders at which a driver crashed, in the user's folder for state.
//!
//! One line for each: the hash of the application's SPIR-V, the driver, its version, our version, and the shader's name,
//! which may have spaces. `lavascope run` appends lines, and the layer leaves these shaders unchecked on this driver. A
//! line of another version of driver or layer has no effect. A user may remove lines, or the file.

use std::ffi::OsString;
use std::path::PathBuf;

/// A shader at which a driver crashed while it compiled the shader with checks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CrashedShader {
    /// The hash of the SPIR-V words of the application.
    pub hash: u128,
    pub driver: DriverVersion,
    /// The layer's version.
    pub layer: String,
    /// How the shader is called in messages.
    pub name: String,
}

/// A driver, in words without spaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriverVersion {
    /// The vendor, and what pipeline caches of this driver are known by.
    pub id: String,
    pub version: String,
}

impl DriverVersion {
    /// From the members of `VkPhysicalDeviceProperties`.
    pub fn new(vendor: u32, pipeline_cache_uuid: &[u8], version: u32) -> DriverVersion {
        let uuid: String = pipeline_cache_uuid.iter().map(|it| format!("{it:02x}")).collect();
        DriverVersion { id: format!("{vendor:x}-{uuid}"), version: format!("{version:x}") }
    }
}

impl CrashedShader {
    /// The line of the list, with its end.
    pub fn to_line(&self) -> String {
        let CrashedShader { hash, driver, layer, name } = self;
        let name: String = name.chars().map(|it| if it.is_control() { ' ' } else { it }).collect();
        format!("{hash:032x} {} {} {layer} {name}\n", driver.id, driver.version)
    }

    /// Reads a line; none if it is damaged.
    pub fn from_line(line: &str) -> Option<CrashedShader> {
        let mut words = line.splitn(5, ' ');
        let hash = words.next().filter(|it| it.len() == 32)?;
        let hash = u128::from_str_radix(hash, 16).ok()?;
        let (id, version) = (words.next()?.to_owned(), words.next()?.to_owned());
        let layer = words.next()?.to_owned();
        let name = words.next()?.trim_end().to_owned();
        Some(CrashedShader { hash, driver: DriverVersion { id, version }, layer, name })
    }
}

/// Where the list is, by the variables of the environment; none if there is no home folder.
pub fn crashed_shaders_path(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let set = |name| variable(name).filter(|it| !it.is_empty()).map(PathBuf::from).filter(|it| it.is_absolute());
    let base = set("XDG_STATE_HOME").or_else(|| Some(set("HOME")?.join(".local/state")))?;
    Some(base.join("lavascope/crashed-shaders"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_as_it_was_written() {
        let driver = DriverVersion::new(0x10de, &[1, 0xab], 0x8900_0001);
        let shader = CrashedShader { hash: 7, driver, layer: "0.1.0".into(), name: "sky box\n.frag".into() };
        let line = shader.to_line();
        assert_eq!(line, "00000000000000000000000000000007 10de-01ab 89000001 0.1.0 sky box .frag\n");
        assert_eq!(CrashedShader::from_line(&line), Some(CrashedShader { name: "sky box .frag".into(), ..shader }));
        for damaged in ["", "7 a b c d", "x0000000000000000000000000000007 a b c d", &line[..55]] {
            assert_eq!(CrashedShader::from_line(damaged), None, "{damaged}");
        }
    }

    #[test]
    fn the_list_is_in_the_folder_for_state() {
        let path = |state: &str, home: &str| {
            let value = |name: &str| Some(OsString::from(if name == "HOME" { home } else { state }));
            crashed_shaders_path(value).map(|it| it.display().to_string())
        };
        assert_eq!(path("/s", "/h").as_deref(), Some("/s/lavascope/crashed-shaders"));
        assert_eq!(path("", "/h").as_deref(), Some("/h/.local/state/lavascope/crashed-shaders"));
        assert_eq!(path("relative", "/h").as_deref(), Some("/h/.local/state/lavascope/crashed-shaders"));
        assert_eq!(path("", ""), None);
    }
}
