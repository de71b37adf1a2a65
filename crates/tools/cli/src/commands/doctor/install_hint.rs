//! The command that installs a missing part on this system.

use std::fs;

/// The package manager of this system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum System {
    /// Debian, Ubuntu and their derivatives.
    Apt,
    Other,
}

/// A part of Vulkan that can be installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VulkanPackage {
    Loader,
    Drivers,
    ValidationLayers,
    Tools,
}

impl System {
    pub(crate) fn detect() -> System {
        fs::read_to_string("/etc/os-release").map_or(System::Other, |it| System::from_os_release(&it))
    }

    /// Detects the system from the text of `os-release(5)`.
    fn from_os_release(text: &str) -> System {
        let values = text.lines().filter_map(|it| it.strip_prefix("ID=").or_else(|| it.strip_prefix("ID_LIKE=")));
        let mut ids = values.flat_map(|it| it.trim_matches(['"', '\'']).split_whitespace());
        if ids.any(|it| it == "debian" || it == "ubuntu") { System::Apt } else { System::Other }
    }

    /// The command to type. On other systems, a description of what to install.
    pub(crate) fn install(self, part: VulkanPackage) -> String {
        match (self, part) {
            (System::Apt, VulkanPackage::Loader) => "apt-get install libvulkan1",
            (System::Apt, VulkanPackage::Drivers) => "apt-get install mesa-vulkan-drivers",
            (System::Apt, VulkanPackage::ValidationLayers) => "apt-get install vulkan-validationlayers",
            (System::Apt, VulkanPackage::Tools) => "apt-get install vulkan-tools",
            (System::Other, VulkanPackage::Loader) => {
                "install the Vulkan loader of your system (often named vulkan-loader)"
            }
            (System::Other, VulkanPackage::Drivers) => "install the Vulkan driver of your GPU's vendor, or Mesa's",
            (System::Other, VulkanPackage::ValidationLayers) => "install the Khronos validation layers",
            (System::Other, VulkanPackage::Tools) => "install the Vulkan tools (vulkaninfo)",
        }
        .to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relatives_of_debian_are_known_by_what_they_are_like() {
        assert_eq!(System::from_os_release("NAME=x\nID=debian\n"), System::Apt);
        assert_eq!(System::from_os_release("ID=pop\nID_LIKE=\"ubuntu debian\"\n"), System::Apt);
        assert_eq!(System::from_os_release("ID=fedora\n"), System::Other);
        assert_eq!(System::from_os_release("VERSION_ID=debian\n"), System::Other);
        assert_eq!(System::from_os_release(""), System::Other);
    }
}
