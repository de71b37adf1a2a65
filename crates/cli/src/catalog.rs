//! Every name of the tables and what it stands for.

use std::borrow::Cow;
use std::collections::BTreeMap;

use lavascope_abi as abi;
use lavascope_abi::desc::{CommandDesc, EnumDesc, Layout, Ty};
use lavascope_abi::{COMMANDS, HEADER_VERSION, HandleType, STRUCTURES};

/// Enums that no field has: they lie behind pointers, in device memory or in files, where layouts give sizes only.
static ENUMS_WITHOUT_FIELD: &[&EnumDesc] = &[
    &abi::ACCELERATION_STRUCTURE_COMPATIBILITY_KHR_ENUM,
    &abi::ACCELERATION_STRUCTURE_SERIALIZED_BLOCK_TYPE_KHR_ENUM,
    &abi::CLUSTER_ACCELERATION_STRUCTURE_GEOMETRY_FLAG_BITS_NV_ENUM,
    &abi::CLUSTER_ACCELERATION_STRUCTURE_INDEX_FORMAT_FLAG_BITS_NV_ENUM,
    &abi::DESCRIPTOR_BINDING_FLAG_BITS_ENUM,
    &abi::DISPLACEMENT_MICROMAP_FORMAT_NV_ENUM,
    &abi::DYNAMIC_STATE_ENUM,
    &abi::GEOMETRY_INSTANCE_FLAG_BITS_KHR_ENUM,
    &abi::INTERNAL_ALLOCATION_TYPE_ENUM,
    &abi::OPACITY_MICROMAP_SPECIAL_INDEX_KHR_ENUM,
    &abi::PEER_MEMORY_FEATURE_FLAG_BITS_ENUM,
    &abi::QUERY_RESULT_STATUS_KHR_ENUM,
    &abi::STD_VIDEO_AV1_REFERENCE_NAME_ENUM,
    &abi::STD_VIDEO_DECODE_H264_FIELD_ORDER_COUNT_ENUM,
    &abi::STD_VIDEO_H264_NON_VCL_NALU_TYPE_ENUM,
    &abi::STD_VIDEO_VP9_REFERENCE_NAME_ENUM,
    &abi::SYSTEM_ALLOCATION_SCOPE_ENUM,
    &abi::VALIDATION_CACHE_HEADER_VERSION_EXT_ENUM,
    &abi::VALIDATION_CHECK_EXT_ENUM,
    &abi::VALIDATION_FEATURE_DISABLE_EXT_ENUM,
    &abi::VALIDATION_FEATURE_ENABLE_EXT_ENUM,
    &abi::VENDOR_ID_ENUM,
];

/// What a name stands for.
#[derive(Clone, Copy)]
pub(crate) enum Item {
    Command(&'static CommandDesc),
    /// Or a union.
    Structure(&'static Layout),
    Handle(HandleType),
    /// Or the bits of a mask.
    Enum(&'static EnumDesc),
}

/// Names in order, aliases among them.
pub(crate) struct Catalog {
    items: BTreeMap<Cow<'static, str>, Item>,
}

impl Catalog {
    pub(crate) fn new() -> Catalog {
        let mut items = BTreeMap::new();
        // What comes first keeps a name; the registry gives none twice.
        let mut add = |name: Cow<'static, str>, item| {
            items.entry(name).or_insert(item);
        };
        for command in COMMANDS {
            for name in std::iter::once(&command.name).chain(command.aliases) {
                add(Cow::Borrowed(name), Item::Command(command));
            }
        }
        for layout in STRUCTURES {
            add(Cow::Borrowed(layout.name), Item::Structure(layout));
        }
        for handle in HandleType::ALL {
            add(Cow::Borrowed(handle.name()), Item::Handle(*handle));
        }
        let enums_of_fields = all_layouts().flat_map(|it| it.fields).filter_map(|it| enum_of(&it.ty));
        for desc in enums_of_fields.chain(ENUMS_WITHOUT_FIELD.iter().copied()) {
            add(Cow::Borrowed(desc.name), Item::Enum(desc));
            if desc.name.contains("FlagBits") {
                add(Cow::Owned(desc.name.replace("FlagBits", "Flags")), Item::Enum(desc));
            }
        }
        Catalog { items }
    }

    /// By the exact name, else in any case, else without `vk`.
    pub(crate) fn find(&self, name: &str) -> Option<Item> {
        let with_prefix = format!("vk{name}");
        self.items
            .get(name)
            .or_else(|| self.find_in_any_case(name))
            .or_else(|| self.find_in_any_case(&with_prefix))
            .copied()
    }

    fn find_in_any_case(&self, name: &str) -> Option<&Item> {
        self.items.iter().find(|it| it.0.eq_ignore_ascii_case(name)).map(|it| it.1)
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.items.keys().map(AsRef::as_ref)
    }
}

/// The layouts of structures, and of the parameters and outputs of commands.
pub(crate) fn all_layouts() -> impl Iterator<Item = &'static Layout> {
    let outputs = COMMANDS.iter().filter_map(|it| it.outputs).map(|it| it.layout);
    STRUCTURES.iter().copied().chain(COMMANDS.iter().map(|it| it.parameters)).chain(outputs)
}

pub(crate) fn enum_of(ty: &Ty) -> Option<&'static EnumDesc> {
    match ty {
        Ty::Enum(desc) | Ty::Flags(desc) => Some(desc),
        _ => None,
    }
}

/// The newest core version that the tables have, with the registry's patch: `1.4.366`.
pub(crate) fn registry_version() -> String {
    let cores = COMMANDS.iter().filter_map(|it| it.block.strip_prefix("VK_VERSION_"));
    let newest = cores.filter_map(|it| it.split_once('_')).filter_map(|it| Some((parse(it.0)?, parse(it.1)?))).max();
    let (major, minor) = newest.unwrap_or((1, 0));
    format!("{major}.{minor}.{HEADER_VERSION}")
}

fn parse(text: &str) -> Option<u32> {
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name_of(item: Item) -> &'static str {
        match item {
            Item::Command(desc) => desc.name,
            Item::Structure(layout) => layout.name,
            Item::Handle(handle) => handle.name(),
            Item::Enum(desc) => desc.name,
        }
    }

    #[test]
    fn names_are_found_exactly_in_any_case_by_alias_and_without_prefix() {
        let catalog = Catalog::new();
        let find = |name: &str| catalog.find(name).map(name_of);
        assert_eq!(find("vkCmdDraw"), Some("vkCmdDraw"));
        assert_eq!(find("VKCMDDRAW"), Some("vkCmdDraw"));
        assert_eq!(find("cmddraw"), Some("vkCmdDraw"));
        assert_eq!(find("vkCmdPipelineBarrier2KHR"), Some("vkCmdPipelineBarrier2"));
        assert_eq!(find("VkBuffer"), Some("VkBuffer"));
        assert_eq!(find("VkResult"), Some("VkResult"));
        assert_eq!(find("VkBufferUsageFlags"), Some("VkBufferUsageFlagBits"));
        assert_eq!(find("vkNothing"), None);
        assert_eq!(find(""), None);
    }

    #[test]
    fn every_name_leads_to_itself_or_to_what_it_is_another_name_of() {
        let catalog = Catalog::new();
        for (name, item) in &catalog.items {
            let own = name_of(*item);
            let is_alias = matches!(item, Item::Command(desc) if desc.aliases.contains(&name.as_ref()));
            assert!(name == own || is_alias || name.contains("Flags"), "{name} leads to {own}");
        }
    }

    /// The list above is by hand; this tells when a new registry makes it too short.
    #[test]
    fn every_enum_of_the_tables_is_found() {
        let catalog = Catalog::new();
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../abi/src/generated");
        let mut count = 0;
        for entry in std::fs::read_dir(folder).expect("the tables are in the workspace") {
            let text = std::fs::read_to_string(entry.expect("readable").path()).expect("readable");
            for part in text.split(": EnumDesc = EnumDesc {").skip(1) {
                let name = part.split('"').nth(1).expect("a table begins with its name");
                assert!(catalog.items.contains_key(name), "{name} belongs into ENUMS_WITHOUT_FIELD");
                count += 1;
            }
        }
        assert!(count > 300, "only {count} enums were found in the tables");
    }
}
