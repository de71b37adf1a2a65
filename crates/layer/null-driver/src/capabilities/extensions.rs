//! The versions and extensions that the driver has.

use std::ffi::CStr;
use std::sync::LazyLock;

use crate::generated::extensions::BLOCKS;

/// A version or an extension, with its commands.
pub(crate) struct ApiBlock {
    pub(crate) name: &'static CStr,
    pub(crate) kind: ApiBlockKind,
    pub(crate) spec_version: u32,
    pub(crate) commands: &'static [&'static str],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ApiBlockKind {
    Version,
    Instance,
    Device,
}

/// The extensions of a kind, sorted by name.
pub(crate) fn of_kind(kind: ApiBlockKind) -> impl Iterator<Item = &'static ApiBlock> {
    BLOCKS.iter().filter(move |it| it.kind == kind)
}

pub(crate) fn by_name(name: &CStr) -> Option<&'static ApiBlock> {
    BLOCKS.iter().find(|it| it.name == name)
}

/// Whether a command is part of a version, or of an extension that `is_enabled`.
pub(crate) fn has_command(name: &str, is_enabled: impl Fn(&CStr) -> bool) -> bool {
    let is_there = |it: &ApiBlock| it.kind != ApiBlockKind::Device || is_enabled(it.name);
    let first = OWNERS.partition_point(|it| command_of(*it) < name);
    OWNERS[first..].iter().take_while(|it| command_of(**it) == name).any(|it| is_there(&BLOCKS[usize::from(it.0)]))
}

/// How many commands all blocks have together.
const COMMANDS: usize = {
    let (mut all, mut at) = (0, 0);
    while at < BLOCKS.len() {
        all += BLOCKS[at].commands.len();
        at += 1;
    }
    all
};

/// Whose command each is, sorted by name: every loader and layer asks for hundreds of them, on every device. A block,
/// and the place in its list. In place, since a driver that is unloaded leaves nothing behind.
static OWNERS: LazyLock<[(u16, u16); COMMANDS]> = LazyLock::new(|| {
    let places = |(at, it): (usize, &ApiBlock)| (0..it.commands.len()).map(move |place| (at as u16, place as u16));
    let mut all = BLOCKS.iter().enumerate().flat_map(places);
    let mut owners = std::array::from_fn(|_| all.next().unwrap_or_default());
    owners.sort_unstable_by_key(|it| command_of(*it));
    owners
});

fn command_of((block, place): (u16, u16)) -> &'static str {
    BLOCKS[usize::from(block)].commands[usize::from(place)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_extensions_commands_come_with_it() {
        assert!(has_command("vkCmdDraw", |_| false));
        assert!(!has_command("vkCmdDrawMeshTasksEXT", |_| false));
        assert!(has_command("vkCmdDrawMeshTasksEXT", |it| it == c"VK_EXT_mesh_shader"));
    }

    #[test]
    fn platforms_of_other_systems_are_absent() {
        assert!(by_name(c"VK_KHR_win32_surface").is_none() && by_name(c"VK_KHR_portability_subset").is_none());
        assert!(
            by_name(c"VK_KHR_xcb_surface").is_some_and(|it| it.kind == ApiBlockKind::Instance && it.spec_version == 6)
        );
        assert!(of_kind(ApiBlockKind::Device).count() > 250, "{}", of_kind(ApiBlockKind::Device).count());
    }
}
