//! The launch size of a command: workgroups, vertices, instances or rays, if it is known.

use std::ops::Range;

use lavascope_abi::ShaderStageFlagBits as Stage;
use lavascope_spirv::{OffsetTerm, Quantity};

use crate::draw::indirect_arguments::IndirectArguments;
use crate::shader::interface::Shader;

/// The extent of a draw, a dispatch or a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Launch {
    /// Only known from memory that is not read: it may be nothing.
    #[default]
    Unknown,
    /// At least one workgroup, for the tiles of the render area.
    Tiles,
    /// The range of workgroup ids in each dimension.
    Groups([Range<u64>; 3]),
    /// The ranges of vertex and instance indices.
    Vertices {
        vertices: Option<Range<u64>>,
        instances: Option<Range<u64>>,
    },
    Rays([u32; 3]),
    /// Indirect parameters in memory.
    Memory(IndirectArguments),
}

/// Values of `BuiltIn`.
const NUM_WORKGROUPS: u32 = 24;
const WORKGROUP_ID: u32 = 26;
const LOCAL_INVOCATION_ID: u32 = 27;
const GLOBAL_INVOCATION_ID: u32 = 28;
const LOCAL_INVOCATION_INDEX: u32 = 29;
const VERTEX_INDEX: u32 = 42;
const INSTANCE_INDEX: u32 = 43;
const BASE_VERTEX: u32 = 4424;
const BASE_INSTANCE: u32 = 4425;
const LAUNCH_ID: u32 = 5319;
const LAUNCH_SIZE: u32 = 5320;

impl Launch {
    /// The launch for one stage. A task shader decides the number of mesh shader workgroups.
    pub(crate) fn for_stage<'a>(&'a self, stage: Stage, shaders: &[Shader]) -> &'a Launch {
        let is_behind = stage == Stage::MESH_EXT && shaders.iter().any(|it| it.stage == Stage::TASK_EXT);
        if is_behind { &Launch::Unknown } else { self }
    }

    /// Workgroups, starting at the first.
    pub(crate) fn groups(first: [u32; 3], count: [u32; 3]) -> Launch {
        let range = |at: usize| u64::from(first[at])..u64::from(first[at]) + u64::from(count[at]);
        Launch::Groups([range(0), range(1), range(2)])
    }

    /// Whether nothing is launched.
    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Launch::Groups(groups) => groups.iter().any(Range::is_empty),
            Launch::Vertices { vertices, instances } => {
                [vertices, instances].into_iter().flatten().any(Range::is_empty)
            }
            Launch::Rays(size) => size.contains(&0),
            Launch::Unknown | Launch::Tiles | Launch::Memory(_) => false,
        }
    }

    /// Whether the values of a built-in depend on memory.
    pub(crate) fn is_in_memory(&self, built_in: u32) -> bool {
        match (built_in, self) {
            (LOCAL_INVOCATION_ID | LOCAL_INVOCATION_INDEX, _) => false,
            (_, Launch::Unknown | Launch::Tiles | Launch::Memory(_)) => true,
            (VERTEX_INDEX | BASE_VERTEX, Launch::Vertices { vertices, .. }) => vertices.is_none(),
            (INSTANCE_INDEX | BASE_INSTANCE, Launch::Vertices { instances, .. }) => instances.is_none(),
            _ => false,
        }
    }

    /// The values of a built-in over all invocations.
    pub(crate) fn values(&self, built_in: u32, component: u32, workgroup: [u32; 3]) -> Option<Range<u64>> {
        let at = (component as usize).min(2);
        let size = workgroup.map(u64::from);
        let one = |it: u64| Some(it..it + 1);
        match (built_in, self) {
            (LOCAL_INVOCATION_ID, _) => Some(0..size[at]),
            (LOCAL_INVOCATION_INDEX, _) => Some(0..size.iter().fold(1, |all, it| it.saturating_mul(all))),
            (NUM_WORKGROUPS, Launch::Groups(groups)) => one(groups[at].end - groups[at].start),
            (WORKGROUP_ID, Launch::Groups(groups)) => Some(groups[at].clone()),
            (GLOBAL_INVOCATION_ID, Launch::Groups(groups)) => {
                Some(groups[at].start.saturating_mul(size[at])..groups[at].end.saturating_mul(size[at]))
            }
            (VERTEX_INDEX, Launch::Vertices { vertices, .. }) => vertices.clone(),
            (INSTANCE_INDEX, Launch::Vertices { instances, .. }) => instances.clone(),
            (BASE_VERTEX, Launch::Vertices { vertices, .. }) => one(vertices.as_ref()?.start),
            (BASE_INSTANCE, Launch::Vertices { instances, .. }) => one(instances.as_ref()?.start),
            (LAUNCH_ID, Launch::Rays(size)) => Some(0..u64::from(size[at])),
            (LAUNCH_SIZE, Launch::Rays(size)) => one(u64::from(size[at])),
            _ => None,
        }
    }
}

/// Whether every combination of the values of these terms occurs.
pub(crate) fn is_independent(terms: &[OffsetTerm]) -> bool {
    let numbers: Vec<(u32, u32)> = terms
        .iter()
        .filter_map(|term| match term.quantity {
            Quantity::BuiltIn { built_in, component } => Some((built_in, component)),
            Quantity::Read(_) => None,
        })
        .collect();
    let has = |built_in: u32, component: u32| numbers.contains(&(built_in, component));
    let is_index = numbers.iter().any(|it| it.0 == LOCAL_INVOCATION_INDEX);
    let is_mixed = |pair: &(u32, u32)| match pair.0 {
        GLOBAL_INVOCATION_ID => is_index || has(WORKGROUP_ID, pair.1) || has(LOCAL_INVOCATION_ID, pair.1),
        LOCAL_INVOCATION_ID => is_index,
        _ => false,
    };
    let is_twice = |at: usize| numbers[..at].contains(&numbers[at]);
    !numbers.iter().any(is_mixed) && !(0..numbers.len()).any(is_twice)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn term(built_in: u32, component: u32) -> OffsetTerm {
        OffsetTerm { quantity: Quantity::BuiltIn { built_in, component }, factor: 1 }
    }

    #[test]
    fn numbers_follow_from_what_is_launched() {
        let launch = Launch::groups([2, 0, 0], [3, 1, 1]);
        let values = |built_in| launch.values(built_in, 0, [64, 2, 1]);
        assert_eq!(values(WORKGROUP_ID), Some(2..5));
        assert_eq!(values(GLOBAL_INVOCATION_ID), Some(128..320));
        assert_eq!(values(LOCAL_INVOCATION_INDEX), Some(0..128));
        assert_eq!(values(NUM_WORKGROUPS), Some(3..4));
        assert_eq!(values(VERTEX_INDEX), None);
        assert_eq!(Launch::Unknown.values(LOCAL_INVOCATION_ID, 1, [64, 2, 1]), Some(0..2));
        let largest = Launch::groups([u32::MAX; 3], [u32::MAX; 3]);
        assert!(largest.values(GLOBAL_INVOCATION_ID, 0, [u32::MAX; 3]).is_some());
        assert!(largest.values(LOCAL_INVOCATION_INDEX, 0, [u32::MAX; 3]).is_some());
        let draw = Launch::Vertices { vertices: Some(3..9), instances: None };
        assert_eq!(draw.values(VERTEX_INDEX, 0, [1; 3]), Some(3..9));
        assert_eq!(draw.values(INSTANCE_INDEX, 0, [1; 3]), None);
    }

    #[test]
    fn a_number_is_not_independent_of_its_parts() {
        let both = |one, two| is_independent(&[term(one, 0), term(two, 0)]);
        assert!(both(WORKGROUP_ID, LOCAL_INVOCATION_ID));
        assert!(!both(GLOBAL_INVOCATION_ID, LOCAL_INVOCATION_ID));
        assert!(!both(WORKGROUP_ID, WORKGROUP_ID));
        assert!(!both(LOCAL_INVOCATION_INDEX, GLOBAL_INVOCATION_ID));
        assert!(is_independent(&[term(GLOBAL_INVOCATION_ID, 0), term(GLOBAL_INVOCATION_ID, 1)]));
    }
}
