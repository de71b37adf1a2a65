//! Graphics state that decides which accesses a draw makes.

use std::borrow::Cow;

use lavascope_abi as vk;
use lavascope_abi::DynamicState;

/// Rasterization, tests and blending, as set by a pipeline or by a command buffer.
#[derive(Clone, Debug)]
pub(crate) struct RasterState {
    pub(crate) is_discarded: bool,
    pub(crate) cull_mode: u32,
    /// None if it is not known.
    pub(crate) topology: Option<vk::PrimitiveTopology>,
    pub(crate) has_depth_test: bool,
    pub(crate) has_depth_write: bool,
    pub(crate) has_depth_bounds: bool,
    pub(crate) has_stencil_test: bool,
    pub(crate) front: StencilFace,
    pub(crate) back: StencilFace,
    pub(crate) has_logic_op: bool,
    pub(crate) logic_op: vk::LogicOp,
    /// Whether a bound image gives the shading rate.
    pub(crate) has_rate_image: bool,
    /// Which input attachments are read in rasterization order.
    pub(crate) ordered: RasterOrderedReads,
    pub(crate) colors: Vec<ColorState>,
}

/// Which input attachments are read in rasterization order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RasterOrderedReads {
    pub(crate) color: bool,
    pub(crate) depth_stencil: bool,
}

/// The stencil test of one face.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StencilFace {
    pub(crate) fail_op: vk::StencilOp,
    pub(crate) pass_op: vk::StencilOp,
    pub(crate) depth_fail_op: vk::StencilOp,
    pub(crate) compare_op: vk::CompareOp,
    pub(crate) write_mask: u32,
}

/// Blending and write mask of a color attachment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ColorState {
    pub(crate) is_blended: bool,
    pub(crate) write_mask: u8,
    pub(crate) is_enabled: bool,
}

impl Default for ColorState {
    fn default() -> ColorState {
        ColorState { is_blended: false, write_mask: 0xf, is_enabled: true }
    }
}

impl Default for RasterState {
    fn default() -> RasterState {
        RasterState {
            is_discarded: false,
            cull_mode: 0,
            topology: None,
            has_depth_test: false,
            has_depth_write: false,
            has_depth_bounds: false,
            has_stencil_test: false,
            front: StencilFace::default(),
            back: StencilFace::default(),
            has_logic_op: false,
            logic_op: vk::LogicOp::COPY,
            has_rate_image: false,
            ordered: RasterOrderedReads::default(),
            colors: Vec::new(),
        }
    }
}

/// The parts of the state that are dynamic: set in the command buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DynamicStates(pub(crate) u32);

impl DynamicStates {
    const DISCARD: u32 = 1;
    const CULL_MODE: u32 = 1 << 1;
    const DEPTH_TEST: u32 = 1 << 2;
    const DEPTH_WRITE: u32 = 1 << 3;
    const DEPTH_BOUNDS: u32 = 1 << 4;
    const STENCIL_TEST: u32 = 1 << 5;
    const STENCIL_OP: u32 = 1 << 6;
    const STENCIL_WRITE_MASK: u32 = 1 << 7;
    const BLEND: u32 = 1 << 8;
    const WRITE_MASK: u32 = 1 << 9;
    const WRITE_ENABLE: u32 = 1 << 10;
    const LOGIC_OP_ENABLE: u32 = 1 << 11;
    const LOGIC_OP: u32 = 1 << 12;
    const TOPOLOGY: u32 = 1 << 15;
    const RATE_IMAGE: u32 = 1 << 16;
    pub(crate) const VERTEX_INPUT: u32 = 1 << 13;
    pub(crate) const STRIDE: u32 = 1 << 14;
    /// All state is dynamic for shader objects.
    pub(crate) const ALL: DynamicStates = DynamicStates(!DynamicStates::STRIDE);

    pub(crate) fn has(self, bit: u32) -> bool {
        self.0 & bit != 0
    }

    pub(crate) fn of(states: &[DynamicState]) -> DynamicStates {
        let bit = |dynamic_state: &DynamicState| match *dynamic_state {
            DynamicState::RASTERIZER_DISCARD_ENABLE => DynamicStates::DISCARD,
            DynamicState::CULL_MODE => DynamicStates::CULL_MODE,
            DynamicState::PRIMITIVE_TOPOLOGY => DynamicStates::TOPOLOGY,
            DynamicState::DEPTH_TEST_ENABLE => DynamicStates::DEPTH_TEST,
            DynamicState::DEPTH_WRITE_ENABLE => DynamicStates::DEPTH_WRITE,
            DynamicState::DEPTH_BOUNDS_TEST_ENABLE => DynamicStates::DEPTH_BOUNDS,
            DynamicState::STENCIL_TEST_ENABLE => DynamicStates::STENCIL_TEST,
            DynamicState::STENCIL_OP => DynamicStates::STENCIL_OP,
            DynamicState::STENCIL_WRITE_MASK => DynamicStates::STENCIL_WRITE_MASK,
            DynamicState::COLOR_BLEND_ENABLE_EXT => DynamicStates::BLEND,
            DynamicState::COLOR_WRITE_MASK_EXT => DynamicStates::WRITE_MASK,
            DynamicState::COLOR_WRITE_ENABLE_EXT => DynamicStates::WRITE_ENABLE,
            DynamicState::LOGIC_OP_ENABLE_EXT => DynamicStates::LOGIC_OP_ENABLE,
            DynamicState::LOGIC_OP_EXT => DynamicStates::LOGIC_OP,
            DynamicState::SHADING_RATE_IMAGE_ENABLE_NV => DynamicStates::RATE_IMAGE,
            DynamicState::VERTEX_INPUT_EXT => DynamicStates::VERTEX_INPUT,
            DynamicState::VERTEX_INPUT_BINDING_STRIDE => DynamicStates::STRIDE,
            // No access depends on the other states.
            _ => 0,
        };
        DynamicStates(states.iter().map(bit).fold(0, |all, it| all | it))
    }
}

impl RasterState {
    /// This state, with the dynamic parts taken from the command buffer.
    pub(crate) fn with_dynamic<'a>(&'a self, dynamic: DynamicStates, set: &RasterState) -> Cow<'a, RasterState> {
        if dynamic == DynamicStates::default() {
            return Cow::Borrowed(self);
        }
        let mut raster_state = self.clone();
        let mut take = |bit: u32, take: fn(&mut RasterState, &RasterState)| {
            if dynamic.has(bit) {
                take(&mut raster_state, set);
            }
        };
        take(DynamicStates::DISCARD, |it, set| it.is_discarded = set.is_discarded);
        take(DynamicStates::CULL_MODE, |it, set| it.cull_mode = set.cull_mode);
        take(DynamicStates::TOPOLOGY, |it, set| it.topology = set.topology);
        take(DynamicStates::DEPTH_TEST, |it, set| it.has_depth_test = set.has_depth_test);
        take(DynamicStates::DEPTH_WRITE, |it, set| it.has_depth_write = set.has_depth_write);
        take(DynamicStates::DEPTH_BOUNDS, |it, set| it.has_depth_bounds = set.has_depth_bounds);
        take(DynamicStates::STENCIL_TEST, |it, set| it.has_stencil_test = set.has_stencil_test);
        take(DynamicStates::STENCIL_OP, |state, set| {
            state.front = StencilFace { write_mask: state.front.write_mask, ..set.front };
            state.back = StencilFace { write_mask: state.back.write_mask, ..set.back };
        });
        take(DynamicStates::STENCIL_WRITE_MASK, |state, set| {
            state.front.write_mask = set.front.write_mask;
            state.back.write_mask = set.back.write_mask;
        });
        take(DynamicStates::LOGIC_OP_ENABLE, |it, set| it.has_logic_op = set.has_logic_op);
        take(DynamicStates::RATE_IMAGE, |it, set| it.has_rate_image = set.has_rate_image);
        take(DynamicStates::LOGIC_OP, |it, set| it.logic_op = set.logic_op);
        let count = raster_state.colors.len().max(set.colors.len());
        raster_state.colors.resize(count, ColorState::default());
        for (at, color) in raster_state.colors.iter_mut().enumerate() {
            let set = set.colors.get(at).copied().unwrap_or_default();
            if dynamic.has(DynamicStates::BLEND) {
                color.is_blended = set.is_blended;
            }
            if dynamic.has(DynamicStates::WRITE_MASK) {
                color.write_mask = set.write_mask;
            }
            if dynamic.has(DynamicStates::WRITE_ENABLE) {
                color.is_enabled = set.is_enabled;
            }
        }
        Cow::Owned(raster_state)
    }

    /// Updates the state of some color attachments.
    pub(crate) fn set_colors<T: Copy>(&mut self, first: u32, values: &[T], set: fn(&mut ColorState, T)) {
        /// More color attachments than any device supports.
        const COLORS_MAX: usize = 64;
        for (at, value) in values.iter().enumerate() {
            let at = (first as usize).saturating_add(at);
            if at < COLORS_MAX {
                self.colors.resize(self.colors.len().max(at + 1), ColorState::default());
                set(&mut self.colors[at], *value);
            }
        }
    }

    pub(crate) fn color(&self, at: usize) -> ColorState {
        self.colors.get(at).copied().unwrap_or_default()
    }

    /// Whether the logical operation reads the destination.
    pub(crate) fn logic_reads(&self) -> bool {
        use vk::LogicOp as Op;
        self.has_logic_op && ![Op::CLEAR, Op::COPY, Op::COPY_INVERTED, Op::SET].contains(&self.logic_op)
    }

    /// Whether all primitives are polygons that are culled, so nothing is drawn.
    pub(crate) fn is_all_culled(&self) -> bool {
        use vk::PrimitiveTopology as Topology;
        let polygons = [
            Topology::TRIANGLE_LIST,
            Topology::TRIANGLE_STRIP,
            Topology::TRIANGLE_FAN,
            Topology::TRIANGLE_LIST_WITH_ADJACENCY,
            Topology::TRIANGLE_STRIP_WITH_ADJACENCY,
        ];
        let both = vk::CullModeFlags::FRONT_AND_BACK.0;
        self.cull_mode & both == both && self.topology.is_some_and(|it| polygons.contains(&it))
    }

    /// Whether the stencil test may write, considering only faces that are not culled.
    pub(crate) fn stencil_writes(&self) -> bool {
        let is_culled = |face: vk::CullModeFlags| self.cull_mode & face.0 != 0;
        let front = !is_culled(vk::CullModeFlags::FRONT) && self.front.writes(self.has_depth_test);
        front || !is_culled(vk::CullModeFlags::BACK) && self.back.writes(self.has_depth_test)
    }
}

impl StencilFace {
    pub(crate) fn of(op_state: &vk::StencilOpState) -> StencilFace {
        StencilFace {
            fail_op: op_state.fail_op,
            pass_op: op_state.pass_op,
            depth_fail_op: op_state.depth_fail_op,
            compare_op: op_state.compare_op,
            write_mask: op_state.write_mask,
        }
    }

    fn writes(&self, has_depth_test: bool) -> bool {
        let changes = |op: vk::StencilOp| op != vk::StencilOp::KEEP;
        let when_failed = changes(self.fail_op);
        // Depth fail happens only with a depth test.
        let when_passed = changes(self.pass_op) || has_depth_test && changes(self.depth_fail_op);
        let is_changed = match self.compare_op {
            vk::CompareOp::NEVER => when_failed,
            vk::CompareOp::ALWAYS => when_passed,
            _ => when_failed || when_passed,
        };
        self.write_mask != 0 && is_changed
    }
}

impl RasterState {
    /// Updates the faces in a mask.
    pub(crate) fn update_faces(&mut self, faces: vk::StencilFaceFlags, change: &dyn Fn(&mut StencilFace)) {
        if faces.0 & vk::StencilFaceFlags::FRONT.0 != 0 {
            change(&mut self.front);
        }
        if faces.0 & vk::StencilFaceFlags::BACK.0 != 0 {
            change(&mut self.back);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lavascope_abi::{CompareOp, StencilOp};

    fn writes(compare_op: CompareOp, ops: [StencilOp; 3], has_depth_test: bool) -> bool {
        let [fail_op, pass_op, depth_fail_op] = ops;
        let face = StencilFace { fail_op, pass_op, depth_fail_op, compare_op, write_mask: 1 };
        RasterState { front: face, has_depth_test, cull_mode: vk::CullModeFlags::BACK.0, ..RasterState::default() }
            .stencil_writes()
    }

    #[test]
    fn stencil_is_only_read_where_the_table_says_so() {
        let (keep, zero) = (StencilOp::KEEP, StencilOp::ZERO);
        assert!(!writes(CompareOp::NEVER, [keep, zero, zero], true));
        assert!(writes(CompareOp::NEVER, [zero, keep, keep], true));
        assert!(!writes(CompareOp::ALWAYS, [zero, keep, keep], true));
        assert!(writes(CompareOp::ALWAYS, [zero, keep, zero], true));
        assert!(!writes(CompareOp::ALWAYS, [zero, keep, zero], false), "no depth test fails where there is none");
        assert!(!writes(CompareOp::LESS, [keep, keep, keep], true));
        assert!(writes(CompareOp::LESS, [zero, keep, keep], true));
    }

    #[test]
    fn culled_faces_and_empty_masks_write_no_stencil() {
        let face =
            StencilFace { fail_op: StencilOp::ZERO, pass_op: StencilOp::ZERO, write_mask: 1, ..StencilFace::default() };
        let raster = RasterState { front: face, ..RasterState::default() };
        assert!(raster.stencil_writes());
        assert!(!RasterState { cull_mode: vk::CullModeFlags::FRONT.0, ..raster.clone() }.stencil_writes());
        assert!(!RasterState { front: StencilFace { write_mask: 0, ..face }, ..raster }.stencil_writes());
    }
}
