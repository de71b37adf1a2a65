//! Values that have a name of their own in the C API, or that a person reads in another form: `VK_WHOLE_SIZE`, the
//! version 1.3.0.
//!
//! The registry does not say which members may have such a value, so the members are listed here by name. Two values of
//! one member never have the same text.

use lavascope_abi::desc::Ty;

/// The members that may have a constant, with the value and its name.
struct NamedValue {
    members: &'static [&'static str],
    value: u64,
    name: &'static str,
}

/// Sizes and ranges in bytes.
const SIZES: &[&str] = &["size", "range", "pSizes", "sizes"];
const QUEUE_FAMILIES: &[&str] =
    &["srcQueueFamilyIndex", "dstQueueFamilyIndex", "queueFamilyIndex", "pQueueFamilyIndices"];
const SUBPASSES: &[&str] = &["srcSubpass", "dstSubpass"];
const ATTACHMENTS: &[&str] = &[
    "attachment",
    "colorAttachment",
    "pColorAttachmentLocations",
    "pColorAttachmentInputIndices",
    "pDepthInputAttachmentIndex",
    "pStencilInputAttachmentIndex",
];
const SHADER_GROUPS: &[&str] = &["generalShader", "closestHitShader", "anyHitShader", "intersectionShader"];

const WORDS: [NamedValue; 9] = [
    NamedValue { members: QUEUE_FAMILIES, value: u32::MAX as u64, name: "VK_QUEUE_FAMILY_IGNORED" },
    NamedValue { members: QUEUE_FAMILIES, value: u32::MAX as u64 - 1, name: "VK_QUEUE_FAMILY_EXTERNAL" },
    NamedValue { members: QUEUE_FAMILIES, value: u32::MAX as u64 - 2, name: "VK_QUEUE_FAMILY_FOREIGN_EXT" },
    NamedValue { members: &["levelCount"], value: u32::MAX as u64, name: "VK_REMAINING_MIP_LEVELS" },
    NamedValue { members: &["layerCount"], value: u32::MAX as u64, name: "VK_REMAINING_ARRAY_LAYERS" },
    NamedValue { members: &["sliceCount"], value: u32::MAX as u64, name: "VK_REMAINING_3D_SLICES_EXT" },
    NamedValue { members: SUBPASSES, value: u32::MAX as u64, name: "VK_SUBPASS_EXTERNAL" },
    NamedValue { members: ATTACHMENTS, value: u32::MAX as u64, name: "VK_ATTACHMENT_UNUSED" },
    NamedValue { members: SHADER_GROUPS, value: u32::MAX as u64, name: "VK_SHADER_UNUSED_KHR" },
];
const LONG_WORDS: [NamedValue; 2] = [
    NamedValue { members: SIZES, value: u64::MAX, name: "VK_WHOLE_SIZE" },
    NamedValue { members: &["timeout"], value: u64::MAX, name: "UINT64_MAX" },
];

/// Versions of the API, and those that applications and engines make in the same way. The version of a driver has a
/// form that only its vendor knows.
const VERSIONS: [&str; 4] = ["apiVersion", "pApiVersion", "applicationVersion", "engineVersion"];

/// The text of a value of this member of a structure, if it is not just its number.
pub(crate) fn special_text(structure: &str, member: &str, ty: &Ty, bits: u64) -> Option<String> {
    let named = |all: &[NamedValue]| {
        let found = all.iter().find(|it| it.value == bits && it.members.contains(&member));
        found.map(|it| it.name.to_owned())
    };
    match ty {
        Ty::U32 if VERSIONS.contains(&member) || (structure, member) == ("VkLayerProperties", "specVersion") => {
            Some(version_text(bits as u32))
        }
        Ty::U32 => named(&WORDS),
        Ty::U64 => named(&LONG_WORDS),
        Ty::F32 if member == "maxLod" && bits == u64::from(1000_f32.to_bits()) => Some("VK_LOD_CLAMP_NONE".to_owned()),
        _ => None,
    }
}

/// A version as one writes it.
pub fn version_text(version: u32) -> String {
    let [variant, major, minor, patch] = [version >> 29, version >> 22 & 0x7f, version >> 12 & 0x3ff, version & 0xfff];
    match variant {
        0 => format!("{major}.{minor}.{patch}"),
        variant => format!("{major}.{minor}.{patch} of variant {variant}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(member: &str, ty: &Ty, bits: u64) -> Option<String> {
        special_text("", member, ty, bits)
    }

    #[test]
    fn constants_have_their_names_where_they_mean_something() {
        assert_eq!(text("range", &Ty::U64, u64::MAX).as_deref(), Some("VK_WHOLE_SIZE"));
        assert_eq!(text("timeout", &Ty::U64, u64::MAX).as_deref(), Some("UINT64_MAX"));
        assert_eq!(text("range", &Ty::U64, 16), None);
        let word = |member| text(member, &Ty::U32, u32::MAX.into());
        assert_eq!(word("srcQueueFamilyIndex").as_deref(), Some("VK_QUEUE_FAMILY_IGNORED"));
        assert_eq!(word("levelCount").as_deref(), Some("VK_REMAINING_MIP_LEVELS"));
        assert_eq!(word("layerCount").as_deref(), Some("VK_REMAINING_ARRAY_LAYERS"));
        assert_eq!(word("dstSubpass").as_deref(), Some("VK_SUBPASS_EXTERNAL"));
        assert_eq!(word("attachment").as_deref(), Some("VK_ATTACHMENT_UNUSED"));
        assert_eq!(word("compareMask"), None, "a mask of all bits is no constant");
        assert_eq!(text("dstQueueFamilyIndex", &Ty::U32, 0xffff_fffe).as_deref(), Some("VK_QUEUE_FAMILY_EXTERNAL"));
        assert_eq!(text("maxLod", &Ty::F32, 1000_f32.to_bits().into()).as_deref(), Some("VK_LOD_CLAMP_NONE"));
    }

    #[test]
    fn versions_are_written_as_one_says_them() {
        assert_eq!(version_text(1 << 22 | 3 << 12), "1.3.0");
        assert_eq!(version_text(1 << 29 | 1 << 22 | 4 << 12 | 366), "1.4.366 of variant 1");
        assert_eq!(text("apiVersion", &Ty::U32, 1 << 22 | 1 << 12 | 2).as_deref(), Some("1.1.2"));
        assert_eq!(text("driverVersion", &Ty::U32, 1 << 22), None);
        assert_eq!(special_text("VkExtensionProperties", "specVersion", &Ty::U32, 7), None);
        assert_eq!(special_text("VkLayerProperties", "specVersion", &Ty::U32, 1 << 22).as_deref(), Some("1.0.0"));
    }
}
