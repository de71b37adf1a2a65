//! Options of the instrumentation, and how a shader finds its tables.
//!
//! # The root table
//!
//! A shader has four tables ([`ShaderTable`]). It finds them in one of three ways, best first:
//!
//! | [`RootLocation`] | how |
//! | --- | --- |
//! | `PushConstant` | the address of the root table is in the push constants, behind those of the shader |
//! | `Descriptor` | the tables are storage buffers at bindings 0 to 3 of a descriptor set |
//! | `Specialization` | the address of the root table is in two specialization constants |
//!
//! | word of the root table | |
//! | --- | --- |
//! | 0 to 7 | the addresses of the four tables, lower half first |
//! | 8 | how many words of records fit ([`ROOT_OUTPUT_WORDS`]); one word before them and one behind them are there, too |
//! | 9 | zero: a value that drivers cannot know |
//! | 10, 11 | the address of the area for what is touched, or zero ([`crate::ROOT_TOUCHES`]) |
//!
//! The root table is aligned to 8 bytes and the tables to 16: words that belong together are loaded and stored as
//! vectors.
//!
//! # Specialization constants
//!
//! Each module has specialization constants for the shader's id and for the first word of its cells
//! ([`crate::InstrumentedModule::spec_ids`]), two for the address of the root table, and one for touches. Their numbers
//! are the first five in a row that the module does not use.
//!
//! # Features
//!
//! The stages with checks need stores and atomics. A root table with an address needs buffer device addresses.

use std::collections::BTreeSet;

/// All options of the instrumentation. Equal options and equal words give equal words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstrumentOptions {
    pub root: RootLocation,
    pub guard: Guard,
    /// Numbers of sites whose faults are recorded where they happen, each with its count; see [`crate::CheckSite`].
    pub immediate: BTreeSet<u32>,
    /// Whether what shaders print becomes records.
    pub prints: bool,
    pub checks: Checks,
    /// Whether shaders record what they touch: see [`crate::ModuleTouches`]. Only with [`RootLocation::PushConstant`].
    pub touches: bool,
    /// Whether loads that are wrong give zero in all modules, as `robustBufferAccess2` promises. Else they do so only
    /// where there are loops, and may give what another element has.
    pub zero_faulty_loads: bool,
}

/// Which accesses are checked; all others stay unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checks {
    /// Accesses through descriptors: the index into an array of descriptors, and the bytes or texels.
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
    /// The address of the root table is in two specialization constants: see
    /// [`crate::InstrumentedModule::root_spec_ids`].
    Specialization,
}

/// How a wrong access is prevented.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guard {
    /// Loads go elsewhere, without a branch. The host makes sure of
    /// [`crate::InstrumentedModule::requirements`].
    Select,
    /// Everything is branched around, and nothing is expected of the host.
    Branch,
}

/// The tables: bindings of the descriptor set, or places in the root table, which has two words for each address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShaderTable {
    /// Shaders write their records here: see [`crate::interface::fault_records`].
    Output = 0,
    /// See [`crate::interface::tables::build_descriptor_table`].
    Descriptors = 1,
    /// See [`crate::interface::tables::build_address_table`].
    Addresses = 2,
    /// Words for each site: see [`crate::interface::tables`].
    Cells = 3,
}

/// The word of the root table with the capacity for records.
pub const ROOT_OUTPUT_WORDS: u32 = 8;
/// The words of the root table.
pub const ROOT_WORDS: u32 = 12;
/// The words of a cell.
pub const CELL_WORDS: u32 = 8;
