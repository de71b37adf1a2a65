//! Which state of a `VkGraphicsPipelineCreateInfo` is read.
//!
//! A pipeline may specify all of its state, or only the subsets of a library; state may be dynamic; and nothing
//! behind rasterization is read when rasterization is discarded. Newer specifications call every non-null pointer
//! valid where older ones call it ignored: here a pointer is followed only where both agree that it is read.

use crate::memory::ReadableMemory;
use crate::pack_context::{LibraryUse, PackContext, SubpassUse};
use crate::rules::{MESH_STAGES, PointerUse, own_stages};
use crate::walk::{CHAIN_MAX, StructFrame};

const VERTEX_INPUT_INTERFACE: u32 = 1;
const PRE_RASTERIZATION: u32 = 2;
const FRAGMENT_SHADER: u32 = 4;
const FRAGMENT_OUTPUT: u32 = 8;
const ALL_SUBSETS: u32 = 15;

const FLAGS_2: i32 = 1000470005;
const LINKED_LIBRARIES: i32 = 1000290000;
const LIBRARY_SUBSETS: i32 = 1000320002;
const RENDERING: i32 = 1000044002;
const CREATE_LIBRARY: u64 = 0x800;

const RASTERIZER_DISCARD: i32 = 1000377001;
const VERTEX_INPUT: i32 = 1000352000;

/// The properties of a pipeline that decide what is read.
pub(crate) struct GraphicsPipelineReads {
    subsets: u32,
    pub(crate) stages: u32,
    dynamic: Vec<i32>,
    /// None if a linked library is unknown.
    has_mesh: Option<bool>,
    rasterizes: Option<bool>,
    has_render_pass: bool,
    subpass: Option<SubpassUse>,
    rendering_colors: u32,
    has_rendering_depth_stencil: bool,
}

impl GraphicsPipelineReads {
    pub(crate) fn read<M: ReadableMemory, F: PackContext + ?Sized>(
        memory: &M,
        facts: &F,
        frame: &StructFrame<'_>,
    ) -> GraphicsPipelineReads {
        let number = |name: &str, width| frame.field(name).and_then(|at| memory.read(at, width)).unwrap_or(0);
        let dynamic = dynamic_states(memory, frame);
        let libraries = libraries(memory, facts, frame);
        let subsets = subsets(memory, frame, libraries.is_some());
        let has_own_shaders = subsets & (PRE_RASTERIZATION | FRAGMENT_SHADER) != 0;
        let stages = if has_own_shaders { own_stages(memory, frame) } else { 0 };
        let uses_pass = subsets & (PRE_RASTERIZATION | FRAGMENT_SHADER | FRAGMENT_OUTPUT) != 0;
        let render_pass = if uses_pass { number("renderPass", 8) } else { 0 };
        let rendering = find_chained(memory, frame.base, RENDERING);
        let rendering_number = |at: u64| rendering.and_then(|it| memory.u32(it + at)).unwrap_or(0);
        let has_own_rasterizer = subsets & PRE_RASTERIZATION != 0;
        GraphicsPipelineReads {
            subsets,
            stages,
            has_mesh: match &libraries {
                _ if has_own_rasterizer => Some(stages & MESH_STAGES != 0),
                Some(libraries) => any_library(libraries, |it| it.has_mesh),
                None => Some(false),
            },
            rasterizes: match &libraries {
                _ if has_own_rasterizer => Some(rasterizes(memory, frame, &dynamic)),
                Some(libraries) => any_library(libraries, |it| it.discards_always).map(|it| !it),
                None => Some(true),
            },
            dynamic,
            has_render_pass: render_pass != 0,
            subpass: facts.subpass(render_pass, number("subpass", 4) as u32),
            rendering_colors: rendering_number(20),
            has_rendering_depth_stencil: rendering_number(32) != 0 || rendering_number(36) != 0,
        }
    }

    pub(crate) fn is_dynamic(&self, state: i32) -> bool {
        self.dynamic.contains(&state)
    }

    pub(crate) fn has_shaders(&self) -> bool {
        self.subsets & (PRE_RASTERIZATION | FRAGMENT_SHADER) != 0
    }

    pub(crate) fn has_pre_rasterization(&self) -> bool {
        self.subsets & PRE_RASTERIZATION != 0
    }

    pub(crate) fn has_fragment_shader(&self) -> bool {
        self.subsets & FRAGMENT_SHADER != 0
    }

    pub(crate) fn has_fragment_output(&self) -> bool {
        self.subsets & FRAGMENT_OUTPUT != 0
    }

    /// State that is read if `is_specified` and fragments are produced at all.
    pub(crate) fn when_rasterizing(&self, is_specified: bool) -> PointerUse {
        if is_specified { self.rasterizes.into() } else { PointerUse::Ignored }
    }

    pub(crate) fn reads_vertex_input(&self) -> PointerUse {
        if self.is_dynamic(VERTEX_INPUT) { PointerUse::Ignored } else { self.reads_input_assembly() }
    }

    pub(crate) fn reads_input_assembly(&self) -> PointerUse {
        if self.subsets & VERTEX_INPUT_INTERFACE == 0 {
            return PointerUse::Ignored;
        }
        self.has_mesh.map(|it| !it).into()
    }

    pub(crate) fn reads_depth_stencil(&self) -> PointerUse {
        let has_attachment = match self.has_render_pass {
            true => self.subpass.map(|it| it.depth_stencil),
            false => Some(self.has_rendering_depth_stencil || !self.has_fragment_output()),
        };
        self.reads_with(self.has_fragment_shader(), has_attachment)
    }

    pub(crate) fn reads_color_blend(&self) -> PointerUse {
        let has_attachment = match self.has_render_pass {
            true => self.subpass.map(|it| it.color),
            false => Some(self.rendering_colors > 0),
        };
        self.reads_with(self.has_fragment_output(), has_attachment)
    }

    pub(crate) fn reads_rendering_colors(&self) -> PointerUse {
        self.when_rasterizing(self.has_fragment_output() && !self.has_render_pass)
    }

    fn reads_with(&self, is_specified: bool, has_attachment: Option<bool>) -> PointerUse {
        match (self.when_rasterizing(is_specified), has_attachment) {
            (PointerUse::Ignored, _) | (_, Some(false)) => PointerUse::Ignored,
            (PointerUse::Read, Some(true)) => PointerUse::Read,
            _ => PointerUse::Unknown,
        }
    }
}

/// The state subsets that this call specifies itself.
fn subsets<M: ReadableMemory>(memory: &M, frame: &StructFrame<'_>, has_libraries: bool) -> u32 {
    if let Some(chained) = find_chained(memory, frame.base, LIBRARY_SUBSETS) {
        return memory.u32(chained + 16).unwrap_or(0) & ALL_SUBSETS;
    }
    let flags = match find_chained(memory, frame.base, FLAGS_2) {
        Some(chained) => memory.read(chained + 16, 8),
        None => frame.field("flags").and_then(|at| memory.read(at, 4)),
    };
    let is_library = flags.unwrap_or(0) & CREATE_LIBRARY != 0;
    if is_library || has_libraries { 0 } else { ALL_SUBSETS }
}

/// The properties of each linked library.
fn libraries<M: ReadableMemory, F: PackContext + ?Sized>(
    memory: &M,
    facts: &F,
    frame: &StructFrame<'_>,
) -> Option<Vec<Option<LibraryUse>>> {
    let chained = find_chained(memory, frame.base, LINKED_LIBRARIES)?;
    let count = memory.u32(chained + 16).filter(|it| *it > 0)?;
    let first = memory.follow(chained + 24)?;
    let handles = (0..u64::from(count)).map_while(|it| memory.read(first + it * 8, 8));
    Some(handles.map(|it| facts.library(it)).collect())
}

/// Whether any library has a property; none if that depends on an unknown library.
fn any_library(libraries: &[Option<LibraryUse>], has: fn(&LibraryUse) -> bool) -> Option<bool> {
    if libraries.iter().flatten().any(has) {
        return Some(true);
    }
    libraries.iter().all(Option::is_some).then_some(false)
}

fn dynamic_states<M: ReadableMemory>(memory: &M, frame: &StructFrame<'_>) -> Vec<i32> {
    let states = || {
        let info = memory.follow(frame.field("pDynamicState")?)?;
        let count = memory.u32(info + 20)?;
        let first = memory.follow(info + 24)?;
        Some((0..u64::from(count)).map_while(|it| memory.u32(first + it * 4).map(|it| it as i32)).collect())
    };
    states().unwrap_or_default()
}

fn rasterizes<M: ReadableMemory>(memory: &M, frame: &StructFrame<'_>, dynamic: &[i32]) -> bool {
    if dynamic.contains(&RASTERIZER_DISCARD) {
        return true;
    }
    const DISCARD_AT: u64 = 24;
    let state = frame.field("pRasterizationState").and_then(|at| memory.follow(at));
    state.and_then(|it| memory.u32(it + DISCARD_AT)) == Some(0)
}

/// The structure of a type in the chain of the structure at `base`.
fn find_chained<M: ReadableMemory>(memory: &M, base: u64, s_type: i32) -> Option<u64> {
    const NEXT_AT: u64 = 8;
    let mut at = base;
    for _ in 0..CHAIN_MAX {
        at = memory.follow(at + NEXT_AT)?;
        if memory.u32(at)? as i32 == s_type {
            return Some(at);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use lavascope_abi::desc::Layout;
    use lavascope_abi::*;

    #[test]
    fn the_offsets_used_here_are_those_of_the_tables() {
        let at = |layout: &Layout, name: &str| layout.fields.iter().find(|it| it.name == name).map(|it| it.at);
        assert_eq!(at(&PIPELINE_RENDERING_CREATE_INFO_LAYOUT, "colorAttachmentCount"), Some(20));
        assert_eq!(at(&PIPELINE_RENDERING_CREATE_INFO_LAYOUT, "depthAttachmentFormat"), Some(32));
        assert_eq!(at(&PIPELINE_RENDERING_CREATE_INFO_LAYOUT, "stencilAttachmentFormat"), Some(36));
        assert_eq!(at(&PIPELINE_LIBRARY_CREATE_INFO_KHR_LAYOUT, "libraryCount"), Some(16));
        assert_eq!(at(&PIPELINE_LIBRARY_CREATE_INFO_KHR_LAYOUT, "pLibraries"), Some(24));
        assert_eq!(at(&PIPELINE_DYNAMIC_STATE_CREATE_INFO_LAYOUT, "dynamicStateCount"), Some(20));
        assert_eq!(at(&PIPELINE_DYNAMIC_STATE_CREATE_INFO_LAYOUT, "pDynamicStates"), Some(24));
        assert_eq!(at(&PIPELINE_RASTERIZATION_STATE_CREATE_INFO_LAYOUT, "rasterizerDiscardEnable"), Some(24));
        assert_eq!(at(&PIPELINE_SHADER_STAGE_CREATE_INFO_LAYOUT, "stage"), Some(20));
        assert_eq!(PIPELINE_SHADER_STAGE_CREATE_INFO_LAYOUT.size, 48);
    }
}
