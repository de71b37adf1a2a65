//! Adds run-time checks to shaders, and reads what they found: SPIR-V words in, SPIR-V words out.
//!
//! [`instrument`] adds checks to every access of a module that could go wrong: which descriptor of an array, which
//! bytes of a buffer, which texel, which device address. What cannot go wrong gets no code.
//!
//! Nothing here calls Vulkan. [`interface`] has what the host and the shaders share: the host fills
//! [`interface::tables`], shaders write [`interface::fault_records`], and the layer brings both to the device and back.
//! The same module and the same [`InstrumentOptions`] always give the same words.
//!
//! # Select and remember
//!
//! A check of a load is two values: whether the access is in bounds, and an index that is. The load uses that index, so
//! no block is split, and loop headers, phis and derivatives stay as they were. Stores and atomics through descriptors
//! need a branch (`rewrite`).
//!
//! | access | if it is out of bounds |
//! | --- | --- |
//! | descriptor of an array | the *safe* element of the binding is used; writes do not happen |
//! | load from a buffer | one index becomes the last one that fits; several indices become zero |
//! | store or atomic to a buffer | does not happen |
//! | texel of a texel buffer | reads use texel zero; writes and atomics do not happen |
//! | device address | goes to scratch memory; a load of a pointer gives null |
//!
//! In a module with loops, a load that is out of bounds returns zero: the value of another element must not decide
//! whether a loop ends. In other modules it returns the value in the table, which saves a selection for each load.
//! Vulkan promises nothing for such a load, or any value of the buffer with `robustBufferAccess`. With
//! `robustBufferAccess2` it promises zero: [`InstrumentOptions::zero_faulty_loads`] is for devices that have it.
//!
//! An invocation remembers the details of its first fault, and one bit for every other site that failed (`checks`).
//! Each exit of an entry point flushes that into a record, so a fault in a million invocations is one record and one
//! count. Sites in [`InstrumentOptions::immediate`] are recorded where they happen.
//!
//! # Proof before code
//!
//! - A constant index inside of what the shader declares needs no check. Nor does an index that is masked, taken modulo
//!   a constant, converted from fewer bits, clamped, or the number of an invocation in its workgroup.
//! - An access is not checked again if the same function checked it on every path.
//! - A constant index behind what the shader declares is checked once, at the beginning of the function.
//! - An index that is the counter of a loop is checked once, before the loop.
//!
//! `analysis` has the proofs, and [`CheckDecision`] is the result for a site. What remains is an expectation: a
//! [`BindingRequirement`] defines how much must be bound to an element, which the host knows when it records a draw. If
//! the requirement is not met, the host uses the module that branches around every access ([`Guard::Branch`]).
//!
//! # Tests
//!
//! - `tests/programs.rs` runs modules from GLSL, HLSL, WGSL and Slang on lavapipe and SwiftShader: with checks and
//!   without them, the memory is the same.
//! - `tests/planted.rs` plants a fault at every operation that uses a descriptor of an array; `tests/stages.rs` has
//!   every stage.
//! - `tests/changed.rs` and `cargo xtask fuzz --shaders N` mutate modules at random: what comes out is valid SPIR-V.

#![forbid(unsafe_code)]

mod accesses;
mod analysis;
mod checks;
pub mod interface;
mod rewrite;

use crate::rewrite::context::BindingElement;
use lavascope_spirv::Module;

pub use checks::debug_printf::{PrintfRecord, print_problems};
pub use checks::site::{BindingRequirement, Check, CheckDecision, CheckSite, IndexUnit, UncheckedReason};
pub use interface::fault_records::{FaultRecord, RecordedFault, ShaderInvocation, decode, decode_prints};
pub use interface::options::{
    CELL_WORDS, Checks, Guard, InstrumentOptions, ROOT_OUTPUT_WORDS, ROOT_WORDS, RootLocation, ShaderTable,
};
pub use interface::print_format::{PrintArgument, PrintProblem, PrintScalar, format_print};
pub use interface::serialized::STORE_VERSION;
pub use interface::touch_area::{ModuleTouches, ROOT_TOUCHES, TOUCH_HEAD, TOUCH_SLOT, TouchKind, TouchSite, Touched};

use rewrite::context::Context;
use rewrite::entry_points::EntryPrologues;
use rewrite::function::FunctionRewriter;

/// A module with checks, and what the host must know about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstrumentedModule {
    /// The module; as it was, where nothing is checked.
    pub words: Vec<u32>,
    /// In the order of the module.
    pub sites: Vec<CheckSite>,
    /// How many sites have a number.
    pub numbered_sites: u32,
    pub requirements: Vec<BindingRequirement>,
    /// The numbers of the specialization constants of the shader's id and of the place of its cells, in words.
    pub spec_ids: [u32; 2],
    /// The constants for the root table's address, the lower half first, with [`RootLocation::Specialization`].
    pub root_spec_ids: [u32; 2],
    /// Bytes that scratch memory must have: none, if no device address is accessed.
    pub scratch_bytes: u64,
    pub reads_descriptors: bool,
    pub reads_addresses: bool,
    /// Whether it has code for what it prints.
    pub prints: bool,
    /// What the module records of its touches.
    pub touches: ModuleTouches,
    /// The number of the specialization constant for the place of its words in the area of a draw, or for its slot
    /// ([`TOUCH_SLOT`]).
    pub touch_spec_id: u32,
    site_infos: Vec<[u32; 4]>,
}

impl InstrumentedModule {
    /// Whether the words are those of the original.
    pub fn is_unchanged(&self) -> bool {
        self.numbered_sites == 0 && !self.prints && self.touches.words == 0
    }

    /// The words of the module's cells, including the bits of the sites that were seen; the cells of another module may
    /// follow.
    pub fn cell_words(&self) -> u32 {
        (self.numbered_sites * CELL_WORDS + self.numbered_sites.div_ceil(32)).next_multiple_of(CELL_WORDS)
    }

    /// The initial values of the cells.
    pub fn cells(&self) -> Vec<u32> {
        let mut words: Vec<u32> =
            self.site_infos.iter().flat_map(|[a, b, c, d]| [0, 0, 0, 0, *a, *b, *c, *d]).collect();
        words.resize(self.cell_words() as usize, 0);
        words
    }

    /// The site of a number.
    pub fn site(&self, number: u32) -> Option<&CheckSite> {
        self.sites.iter().find(|it| it.decision.number() == Some(number))
    }

    /// The site that a record speaks of.
    pub fn site_of(&self, record: &FaultRecord) -> Option<&CheckSite> {
        self.site(record.site)
    }
}

/// Why a module cannot be instrumented.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InstrumentError {
    #[error("the module has no entry point")]
    NoEntry,
    #[error("entry points of different stages share function {0}")]
    SharedFunction(u32),
    #[error("the address of the root table does not fit behind the push constants: use another root")]
    PushConstants,
    #[error("the module has too many ids for more of them")]
    Ids,
}

/// SPIR-V allows ids below this.
const IDS_MAX: u32 = 0x3f_ffff;

/// Adds checks to a module.
pub fn instrument(module: &Module, options: &InstrumentOptions) -> Result<InstrumentedModule, InstrumentError> {
    let mut cx = Context::new(module, options);
    cx.enable_touches();
    let entries = EntryPrologues::new(&mut cx)?;
    for function in module.functions() {
        if function.blocks.is_empty() {
            continue;
        }
        let prologue = entries.prologues.get(&function.id).cloned();
        cx.local_root = prologue.as_ref().and_then(|it| it.root);
        let words = FunctionRewriter::write(&mut cx, function, prologue.map(|it| it.code));
        cx.editor.replace_run(function.instructions.clone(), words);
        cx.local_root = None;
    }
    if cx.site_infos.is_empty() && !cx.has_prints && !cx.has_touches() {
        return Ok(finish_module(cx, module.words().to_vec()));
    }
    checks::report_functions::add_report_functions(&mut cx, &entries.stages);
    accesses::touch_functions::add_touch_functions(&mut cx);
    entries.extend_interfaces(&mut cx);
    if cx.fresh() > IDS_MAX {
        return Err(InstrumentError::Ids);
    }
    let words = cx.finish();
    Ok(finish_module(cx, words))
}

fn finish_module(mut cx: Context<'_>, words: Vec<u32>) -> InstrumentedModule {
    let from = cx.ids.first_spec_id;
    let requirement = |(&BindingElement { set, binding, element }, &least)| BindingRequirement {
        set,
        binding,
        element,
        min_size: least,
    };
    InstrumentedModule {
        words,
        numbered_sites: cx.site_infos.len() as u32,
        requirements: cx.requirements.iter().map(requirement).collect(),
        spec_ids: [from, from.wrapping_add(1)],
        root_spec_ids: [from.wrapping_add(2), from.wrapping_add(3)],
        scratch_bytes: cx.scratch_bytes,
        reads_descriptors: cx.tables_used[ShaderTable::Descriptors as usize],
        reads_addresses: cx.tables_used[ShaderTable::Addresses as usize],
        prints: cx.has_prints,
        touches: cx.take_touches(),
        touch_spec_id: from.wrapping_add(4),
        sites: cx.sites,
        site_infos: cx.site_infos,
    }
}
