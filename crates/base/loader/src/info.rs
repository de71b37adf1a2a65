//! The results of a query, as plain data that can cross a process border.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The loader's results.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoaderInfo {
    /// The file name it was opened by.
    pub library: String,
    pub version: Version,
    pub layers: Vec<LayerInfo>,
    /// Instance extensions.
    pub extensions: Vec<ExtensionInfo>,
    pub devices: Vec<DeviceInfo>,
    /// Why `devices` is empty or short, where a call failed.
    pub devices_error: Option<LoaderError>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LayerInfo {
    pub name: String,
    pub spec_version: Version,
    pub implementation_version: u32,
    pub description: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExtensionInfo {
    pub name: String,
    pub spec_version: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceInfo {
    pub name: String,
    /// In words: `discrete GPU`, `CPU`.
    pub kind: String,
    pub api_version: Version,
    /// As the vendor writes it.
    pub driver_version: String,
    pub vendor_id: u32,
    pub device_id: u32,
    /// From `VkPhysicalDeviceDriverProperties`, where the device has it.
    pub driver_name: Option<String>,
    pub driver_info: Option<String>,
}

/// A version as Vulkan packs it into 32 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Version {
    pub major: u32,
    pub minor: u32,
    pub patch: u32,
}

impl Version {
    pub const fn new(major: u32, minor: u32, patch: u32) -> Version {
        Version { major, minor, patch }
    }

    /// `VK_API_VERSION_MAJOR` and so on; the variant is dropped.
    pub const fn from_packed(packed: u32) -> Version {
        Version { major: packed >> 22 & 0x7f, minor: packed >> 12 & 0x3ff, patch: packed & 0xfff }
    }

    /// `VK_MAKE_API_VERSION` of variant zero.
    pub const fn packed(self) -> u32 {
        (self.major & 0x7f) << 22 | (self.minor & 0x3ff) << 12 | self.patch & 0xfff
    }

    /// Whether a program for `major.minor` may run on it.
    pub fn is_at_least(self, major: u32, minor: u32) -> bool {
        (self.major, self.minor) >= (major, minor)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

impl From<Version> for String {
    fn from(version: Version) -> String {
        version.to_string()
    }
}

impl TryFrom<String> for Version {
    type Error = String;

    fn try_from(text: String) -> Result<Version, String> {
        let mut parts = text.split('.').map(str::parse::<u32>);
        match (parts.next(), parts.next(), parts.next(), parts.next()) {
            (Some(Ok(major)), Some(Ok(minor)), Some(Ok(patch)), None) => Ok(Version { major, minor, patch }),
            _ => Err(format!("`{text}` is not a version like 1.3.0")),
        }
    }
}

/// Why the loader could not be asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(tag = "error", rename_all = "kebab-case")]
pub enum LoaderError {
    #[error("the Vulkan loader {library} cannot be opened: {reason}")]
    NotFound { library: String, reason: String },
    #[error("the Vulkan loader {library} lacks the command {command}")]
    MissingCommand { library: String, command: String },
    #[error("the loader found no driver that works (vkCreateInstance returned VK_ERROR_INCOMPATIBLE_DRIVER)")]
    NoDriver,
    #[error("{command} failed with {result}")]
    Failed { command: String, result: String },
}

/// The next step of [`crate::query`], so that an observer can report where it crashed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueryStep {
    OpenLoader,
    ListLayers,
    ListExtensions,
    CreateInstance,
    ListDevices,
    QueryDevice { index: usize },
    CreateDevice { index: usize },
    DestroyInstance,
}

impl fmt::Display for QueryStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            QueryStep::OpenLoader => f.write_str("opening the loader"),
            QueryStep::ListLayers => f.write_str("listing layers"),
            QueryStep::ListExtensions => f.write_str("listing instance extensions"),
            QueryStep::CreateInstance => f.write_str("creating an instance"),
            QueryStep::ListDevices => f.write_str("listing physical devices"),
            QueryStep::QueryDevice { index } => write!(f, "asking for the properties of physical device {index}"),
            QueryStep::CreateDevice { index } => write!(f, "creating a device of physical device {index}"),
            QueryStep::DestroyInstance => f.write_str("destroying the instance"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_survives_packing_and_text() {
        let version = Version::new(1, 4, 309);
        assert_eq!(Version::from_packed(version.packed()), version);
        assert_eq!(Version::try_from(version.to_string()), Ok(version));
        assert!(Version::try_from("1.4".to_owned()).is_err());
        assert!(Version::try_from("1.4.x".to_owned()).is_err());
        assert!(Version::try_from("1.4.0.0".to_owned()).is_err());
    }

    #[test]
    fn versions_compare_by_major_first() {
        assert!(Version::new(2, 0, 0).is_at_least(1, 2));
        assert!(Version::new(1, 2, 0).is_at_least(1, 2));
        assert!(!Version::new(1, 1, 300).is_at_least(1, 2));
    }
}
