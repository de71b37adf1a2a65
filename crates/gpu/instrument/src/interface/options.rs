//! What to instrument, and how the shader finds what it needs.

use std::collections::BTreeSet;

/// What decides how a module is instrumented. Equal options and equal words give equal words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstrumentOptions {
    pub root: RootLocation,
    pub guard: Guard,
    /// Numbers of sites whose faults are recorded where they happen, each with its count; see [`crate::Site`].
    pub immediate: BTreeSet<u32>,
    /// Whether what shaders print becomes records.
    pub prints: bool,
    pub checks: Checks,
    /// Whether it is kept what is touched: see [`crate::Touches`]. Only with [`RootLocation::PushConstant`].
    pub touches: bool,
    /// Whether loads that are wrong give zero in all modules, as `robustBufferAccess2` promises. Else they do so only
    /// where there are loops, and may give what another element has.
    pub zero_faulty_loads: bool,
}

/// What is checked; the rest is left as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checks {
    /// What is behind descriptors: which one of an array, and which bytes or texels.
    pub descriptors: bool,
    /// Memory at device addresses.
    pub addresses: bool,
}

impl Checks {
    pub const ALL: Checks = Checks { descriptors: true, addresses: true };
    pub const NONE: Checks = Checks { descriptors: false, addresses: false };
}

impl InstrumentOptions {
    /// Everything is checked and remembered.
    pub fn new(root: RootLocation) -> InstrumentOptions {
        let (guard, checks) = (Guard::Select, Checks::ALL);
        let (immediate, prints, touches, zeros) = (BTreeSet::new(), false, false, false);
        InstrumentOptions { root, guard, immediate, prints, checks, touches, zero_faulty_loads: zeros }
    }
}

/// Where the shader finds the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RootLocation {
    /// The address of the root table is in two words of the push constants, at this offset, behind the shader's own.
    PushConstant { offset: u32 },
    /// The tables are storage buffers of a descriptor set of their own: see [`ShaderTable`].
    Descriptor { set: u32 },
    /// The address of the root table is in two specialization constants: see [`crate::Instrumented::root_constants`].
    Specialization,
}

/// What happens to an access that is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guard {
    /// Loads go elsewhere, without a branch. The host makes sure of [`crate::Instrumented::requirements`].
    Select,
    /// Everything is branched around, and nothing is expected of the host.
    Branch,
}

/// The tables: bindings of the descriptor set, or places in the root table, which has two words for each address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShaderTable {
    /// Shaders write their records here: see [`crate::record`].
    Output = 0,
    /// See [`crate::interface::tables::descriptors`].
    Descriptors = 1,
    /// See [`crate::interface::tables::addresses`].
    Addresses = 2,
    /// Words for each site: how often, the complement of the smallest index, the largest one, a spare, and what the site
    /// is; then a bit for each site that was seen. They begin as [`crate::Instrumented::cells`] says, and those of a
    /// module at a multiple of [`CELL_WORDS`].
    Cells = 3,
}

/// Where the root table says how many words of records fit.
pub const ROOT_OUTPUT_WORDS: u32 = 8;
/// The words of the root table.
pub const ROOT_WORDS: u32 = 12;
/// The words of a cell.
pub const CELL_WORDS: u32 = 8;
