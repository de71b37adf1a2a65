//! The version of Vulkan that the driver is asked for, where that is more than the application asks for.
//!
//! Shaders with checks use SPIR-V 1.3, and pointers to our tables: Vulkan 1.2 has both. A program that asks for less gets
//! a driver that was asked for 1.2, and must not see more than it asked for:
//!
//! - The version that a physical device reports does not depend on what was asked for, and neither do the extensions.
//! - The loader decides by the application's own `VkApplicationInfo` which functions it gives out.
//! - `vkGetDeviceProcAddr` gives no core command that is newer than the application's version. Some drivers give them
//!   out whatever was asked for; with those, the application gets them, as without us ([`hides_newer_commands`]).
//!
//! What a newer version promises beyond that is a superset: what was valid with 1.0 is valid with 1.2, and does the
//! same. An older driver or loader may refuse the version; the instance is then created as the application asked.

use std::ffi::CStr;

use lavascope_abi::*;

/// A version without its patch number.
const fn version(major: u32, minor: u32) -> u32 {
    major << 22 | minor << 12
}

pub(crate) const VERSION_1_0: u32 = version(1, 0);
/// Every driver with this version may have what the checks need.
const RAISED: u32 = version(1, 2);
/// The bits of a variant of Vulkan, which is another interface.
const VARIANT_SHIFT: u32 = 29;

/// The create info that asks the driver for more.
pub(crate) struct RaisedVersion {
    application: ApplicationInfo,
}

impl RaisedVersion {
    /// None if the application asks for enough.
    ///
    /// # Safety
    ///
    /// The info must be that of a valid `vkCreateInstance` that has not returned.
    pub(crate) unsafe fn of(info: &InstanceCreateInfo) -> Option<RaisedVersion> {
        // SAFETY: VUID-VkInstanceCreateInfo-pApplicationInfo-parameter, by the contract of this function: null or valid.
        let own = unsafe { info.p_application_info.as_ptr().as_ref() };
        let mut application = own.copied().unwrap_or_else(|| {
            let mut empty = ApplicationInfo::zeroed();
            empty.s_type = StructureType::APPLICATION_INFO;
            empty
        });
        let is_enough = application.api_version >= RAISED || application.api_version >> VARIANT_SHIFT != 0;
        application.api_version = RAISED;
        (!is_enough).then_some(RaisedVersion { application })
    }

    pub(crate) fn version(&self) -> u32 {
        self.application.api_version
    }

    /// The create info for the driver; it refers to this value.
    pub(crate) fn info(&self, info: &InstanceCreateInfo) -> InstanceCreateInfo {
        InstanceCreateInfo { p_application_info: Ptr::to(&self.application), ..*info }
    }
}

/// The version that the application asks for: 1.0 where it does not say.
pub(crate) fn asked_version(api_version: u32) -> u32 {
    api_version.max(VERSION_1_0)
}

/// Whether a driver gives out no commands that are newer than the version it was asked for. `get` asks it.
pub(crate) fn hides_newer_commands(mut get: impl FnMut(&CStr) -> bool) -> bool {
    // Newer than the version that the driver is asked for.
    ![c"vkQueueSubmit2", c"vkCmdBeginRendering", c"vkCmdSetCullMode"].into_iter().all(&mut get)
}

/// Whether a name is that of a core command that is newer than a version.
pub(crate) fn is_newer_command(name: &CStr, asked: u32) -> bool {
    let desc = name.to_str().ok().and_then(|it| Some((it, command_by_name(it)?.desc())));
    // Another name of a command belongs to an extension.
    desc.is_some_and(|(name, desc)| desc.name == name && core_version(desc.provider).is_some_and(|it| it > asked))
}

/// The version that a block of the registry is, for example `VK_VERSION_1_1`.
fn core_version(block: &str) -> Option<u32> {
    let (major, minor) = block.split_once("VERSION_")?.1.split_once('_')?;
    Some(version(major.parse().ok()?, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raised(asked: Option<u32>) -> Option<u32> {
        let mut application = ApplicationInfo::zeroed();
        application.api_version = asked.unwrap_or_default();
        let mut info = InstanceCreateInfo::zeroed();
        if asked.is_some() {
            info.p_application_info = Ptr::to(&application);
        }
        // SAFETY: the info above.
        unsafe { RaisedVersion::of(&info) }.map(|it| it.version())
    }

    #[test]
    fn the_driver_is_asked_for_what_checks_need() {
        assert_eq!(raised(None), Some(RAISED));
        assert_eq!(raised(Some(0)), Some(RAISED));
        assert_eq!(raised(Some(version(1, 0) | 17)), Some(RAISED));
        assert_eq!(raised(Some(version(1, 1))), Some(RAISED));
        assert_eq!(raised(Some(version(1, 2))), None);
        assert_eq!(raised(Some(version(1, 3))), None);
        assert_eq!(raised(Some(1 << VARIANT_SHIFT | version(1, 0))), None, "Vulkan SC");
    }

    #[test]
    fn only_core_commands_of_later_versions_are_newer() {
        let is_newer = |name: &CStr, minor| is_newer_command(name, version(1, minor));
        assert!(!is_newer(c"vkCmdDraw", 0) && !is_newer(c"vkCmdDrawMeshTasksEXT", 0) && !is_newer(c"vkNoCommand", 0));
        assert!(is_newer(c"vkTrimCommandPool", 0) && !is_newer(c"vkTrimCommandPool", 1));
        assert!(!is_newer(c"vkTrimCommandPoolKHR", 0), "the name of an extension");
        assert!(is_newer(c"vkCmdDrawIndirectCount", 1) && is_newer(c"vkQueueSubmit2", 2));
    }

    #[test]
    fn a_driver_that_gives_out_everything_hides_nothing() {
        assert!(!hides_newer_commands(|_| true));
        assert!(hides_newer_commands(|_| false));
        assert!(hides_newer_commands(|name| name == c"vkQueueSubmit2"));
    }
}
