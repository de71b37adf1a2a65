//! What all walks over structures share: their limits, their position, and what they do with a pointer.

use lavascope_abi::desc::{Direction, Layout, Pointee, Pointer};

/// Pointers that are nested deeper are cut; no valid call is near this limit.
pub const DEPTH_MAX: u32 = 24;
/// Chains longer than this are cut; a cyclic chain would never end.
pub const CHAIN_MAX: u32 = 1024;

/// `sType` of the loader's own structures in the chains of `vkCreateInstance` and `vkCreateDevice`.
pub const LOADER_LINKS: [i32; 2] = [47, 48];

/// Which part of a structure is walked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WalkPass {
    /// Inputs before the call.
    Enter,
    /// An output structure before the call: its type, its chain, its capacities.
    Skeleton,
    /// Everything, after the call.
    Leave,
}

/// What happens with a pointer that is not null.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PointerAction {
    Follow(WalkPass),
    /// Only that it is there: an output that is not written yet.
    Mark,
    /// Nothing: what the driver will put there, or an input in an output structure, which no valid call has.
    Drop,
}

/// Which way a pointer is taken on a pass.
pub fn pointer_action(pointer: &Pointer, pass: WalkPass) -> PointerAction {
    match (pass, pointer.direction) {
        (WalkPass::Leave, _) => PointerAction::Follow(WalkPass::Leave),
        (WalkPass::Enter, Direction::In) => PointerAction::Follow(WalkPass::Enter),
        (WalkPass::Skeleton, Direction::In) | (_, Direction::Returned) => PointerAction::Drop,
        (_, Direction::Out) if has_skeleton(&pointer.to) => PointerAction::Follow(WalkPass::Skeleton),
        (_, Direction::Out) => PointerAction::Mark,
    }
}

/// Output structures with a chain or with capacities, which the driver reads.
fn has_skeleton(target: &Pointee) -> bool {
    match target {
        Pointee::Struct(layout) => layout.s_type().is_some() || !layout.keep.is_empty(),
        Pointee::AnyStruct => true,
        _ => false,
    }
}

/// A structure being walked and those that lead to it, innermost first.
#[derive(Clone, Copy)]
pub struct StructFrame<'f> {
    pub layout: &'static Layout,
    /// Its address or offset.
    pub base: u64,
    /// Its place in the array it is an element of.
    pub index: u64,
    pub depth: u32,
    pub parent: Option<&'f StructFrame<'f>>,
}

impl<'f> StructFrame<'f> {
    /// The parameters or outputs of a command, or a structure standing alone.
    pub fn root(layout: &'static Layout, base: u64) -> StructFrame<'f> {
        StructFrame { layout, base, index: 0, depth: 0, parent: None }
    }

    pub fn child(&'f self, layout: &'static Layout, base: u64, index: u64) -> StructFrame<'f> {
        StructFrame { layout, base, index, depth: self.depth + 1, parent: Some(self) }
    }

    /// The nearest enclosing structure of a type, this one included.
    pub fn find(&self, layout: &'static Layout) -> Option<&StructFrame<'f>> {
        let mut frame = self;
        loop {
            if std::ptr::eq(frame.layout, layout) {
                return Some(frame);
            }
            frame = frame.parent?;
        }
    }

    /// The parameters of the call.
    pub fn outermost(&self) -> &StructFrame<'f> {
        let mut frame = self;
        while let Some(parent) = frame.parent {
            frame = parent;
        }
        frame
    }

    /// Where a field of this structure lies, by its name in C.
    pub fn field(&self, name: &str) -> Option<u64> {
        let field = self.layout.fields.iter().find(|it| it.name == name)?;
        Some(self.base + u64::from(field.at))
    }
}

/// The next multiple of eight, where blocks begin.
pub const fn aligned(size: u64) -> u64 {
    (size + 7) & !7
}

/// Commands whose address unions hold host addresses.
pub fn uses_host_addresses(command_name: &str) -> bool {
    matches!(
        command_name.trim_end_matches(":outputs"),
        "vkBuildAccelerationStructuresKHR"
            | "vkCopyAccelerationStructureToMemoryKHR"
            | "vkCopyMemoryToAccelerationStructureKHR"
            | "vkBuildMicromapsEXT"
            | "vkCopyMicromapToMemoryEXT"
            | "vkCopyMemoryToMicromapEXT"
            | "vkConvertCooperativeVectorMatrixNV"
            | "vkCmdDispatchGraphAMDX"
    )
}

/// Commands that ignore the addresses in the structures they are given.
pub fn ignores_addresses(command_name: &str) -> bool {
    matches!(command_name, "vkGetAccelerationStructureBuildSizesKHR" | "vkGetMicromapBuildSizesEXT")
}
