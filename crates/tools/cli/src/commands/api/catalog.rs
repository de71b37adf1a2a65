//! All names in the tables, with the items that they name.

use std::borrow::Cow;
use std::collections::BTreeMap;

use lavascope_abi::desc::{CommandDesc, EnumDesc, Layout, Ty};
use lavascope_abi::{COMMANDS, ENUMS, HEADER_VERSION, HandleType, STRUCTURES, TYPE_ALIASES};

/// The item that a name refers to.
#[derive(Clone, Copy)]
pub(crate) enum CatalogItem {
    Command(&'static CommandDesc),
    /// A structure or a union.
    Structure(&'static Layout),
    Handle(HandleType),
    /// An enum or the bits of a mask.
    Enum(&'static EnumDesc),
}

/// All names and aliases, sorted.
pub(crate) struct Catalog {
    items: BTreeMap<Cow<'static, str>, CatalogItem>,
}

impl Catalog {
    pub(crate) fn new() -> Catalog {
        let mut items = BTreeMap::new();
        // The first item keeps the name. The registry contains no name twice.
        let mut add = |name: Cow<'static, str>, item| {
            items.entry(name).or_insert(item);
        };
        for command in COMMANDS {
            for name in std::iter::once(&command.name).chain(command.aliases) {
                add(Cow::Borrowed(name), CatalogItem::Command(command));
            }
        }
        for layout in STRUCTURES {
            add(Cow::Borrowed(layout.name), CatalogItem::Structure(layout));
        }
        for handle in HandleType::ALL {
            add(Cow::Borrowed(handle.name()), CatalogItem::Handle(*handle));
        }
        for desc in ENUMS {
            add(Cow::Borrowed(desc.name), CatalogItem::Enum(desc));
            if desc.name.contains("FlagBits") {
                add(Cow::Owned(desc.name.replace("FlagBits", "Flags")), CatalogItem::Enum(desc));
            }
        }
        let aliases = TYPE_ALIASES.iter().filter_map(|(alias, name)| Some((*alias, *items.get(*name)?)));
        for (alias, item) in aliases.collect::<Vec<_>>() {
            items.entry(Cow::Borrowed(alias)).or_insert(item);
        }
        Catalog { items }
    }

    /// Finds an item by its exact name. If there is none, the case is ignored, and then the prefix
    /// `vk`.
    pub(crate) fn find(&self, name: &str) -> Option<CatalogItem> {
        let with_prefix = format!("vk{name}");
        self.items
            .get(name)
            .or_else(|| self.find_in_any_case(name))
            .or_else(|| self.find_in_any_case(&with_prefix))
            .copied()
    }

    fn find_in_any_case(&self, name: &str) -> Option<&CatalogItem> {
        self.items.iter().find(|it| it.0.eq_ignore_ascii_case(name)).map(|it| it.1)
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.items.keys().map(AsRef::as_ref)
    }
}

/// The layouts of structures, and of the parameters and outputs of commands.
#[cfg(test)]
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

/// The newest core version in the tables, with the patch version of the registry: `1.4.366`.
pub(crate) fn registry_version() -> String {
    let (major, minor) = NEWEST;
    format!("{major}.{minor}.{HEADER_VERSION}")
}

/// Computed at compile time, because every start needs it and must not search all tables.
const NEWEST: (u32, u32) = {
    let (mut newest, mut at) = ((1, 0), 0);
    while at < COMMANDS.len() {
        if let Some((major, minor)) = core_version(COMMANDS[at].provider.as_bytes())
            && (major > newest.0 || major == newest.0 && minor > newest.1)
        {
            newest = (major, minor);
        }
        at += 1;
    }
    newest
};

/// The version in the name of a core block: `VK_VERSION_1_4`.
const fn core_version(block: &[u8]) -> Option<(u32, u32)> {
    let Some((b"VK_VERSION_", rest)) = block.split_at_checked("VK_VERSION_".len()) else { return None };
    match rest {
        [major @ b'0'..=b'9', b'_', minor @ b'0'..=b'9'] => Some(((*major - b'0') as u32, (*minor - b'0') as u32)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name_of(item: CatalogItem) -> &'static str {
        match item {
            CatalogItem::Command(desc) => desc.name,
            CatalogItem::Structure(layout) => layout.name,
            CatalogItem::Handle(handle) => handle.name(),
            CatalogItem::Enum(desc) => desc.name,
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
        assert_eq!(find("VkPhysicalDeviceFeatures2KHR"), Some("VkPhysicalDeviceFeatures2"));
        assert_eq!(find("VkDynamicState"), Some("VkDynamicState"));
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
            let is_alias = matches!(item, CatalogItem::Command(desc) if desc.aliases.contains(&name.as_ref()));
            let is_alias = is_alias || TYPE_ALIASES.iter().any(|it| it.0 == name);
            assert!(name == own || is_alias || name.contains("Flags"), "{name} leads to {own}");
        }
    }
}
