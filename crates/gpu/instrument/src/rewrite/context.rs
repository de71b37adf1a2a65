//! State that all functions of a module share during instrumentation: new ids, sites, requirements.

use std::collections::BTreeMap;

use lavascope_spirv::{Editor, Id, Module, Reserved, Section};
use rustc_hash::FxHashMap;
use spirv::{AddressingModel, Capability, Decoration, MemoryModel, Op, Scope, StorageClass};

use crate::accesses::elsewhere::{SIGNED, WanderingPointers};
use crate::analysis::access_path::AccessPaths;
use crate::analysis::types::Types;
use crate::analysis::value_bounds::ValueBounds;
use crate::interface::tables::BINDING_WORDS;
use crate::rewrite::table_access::{TableAccess, TablePointerTypes};
use crate::{CELL_WORDS, Check, CheckDecision, CheckSite, Guard, IndexUnit, InstrumentOptions, RootLocation};

/// Instructions behind this one are recorded as this one: the number shares its word with the kind of check.
const NUMBER_MAX: u32 = 0x0fff_ffff;
/// Numbers below are found without hashing: those of sites, and places in tables.
const SMALL: usize = 8192;

/// One descriptor of a binding; no element is the safe one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct BindingElement {
    pub(crate) set: u32,
    pub(crate) binding: u32,
    pub(crate) element: Option<u32>,
}

pub(crate) struct Context<'a> {
    pub(crate) module: &'a Module,
    pub(crate) options: &'a InstrumentOptions,
    pub(crate) types: Types<'a>,
    pub(crate) paths: AccessPaths<'a>,
    pub(crate) bounds: ValueBounds<'a>,
    pub(crate) editor: Editor<'a>,
    pub(crate) ids: AddedIds,
    pub(crate) sites: Vec<CheckSite>,
    /// By number: what the host puts into the site's cell.
    pub(crate) site_infos: Vec<[u32; 4]>,
    pub(crate) requirements: BTreeMap<BindingElement, u32>,
    /// The largest access that may go to scratch memory.
    pub(crate) scratch_bytes: u64,
    /// By function: the parameters whose remaining bytes are passed as one more parameter.
    pub(crate) parameters_with_remaining: FxHashMap<Id, Vec<usize>>,
    pub(crate) has_variable_pointers: bool,
    /// Private variables for the remaining bytes of stored pointers: by variable, and none for the last function
    /// result.
    shadows: FxHashMap<Id, u32>,
    /// Whether anything ends an invocation before its entry point returns, once that was asked for.
    pub(crate) may_terminate_invocation: Option<bool>,
    /// Whether any value is marked as different between invocations.
    pub(crate) has_non_uniform: bool,
    pub(crate) has_loops: bool,
    /// Whether a load that is wrong gives zero, and not what another element has.
    pub(crate) zero_faulty_loads: bool,
    /// By id: in how many places functions have it, as far as a byte counts. Numbers that look like it count as well.
    pub(crate) uses: Vec<u8>,
    /// By value: an earlier one of its function that it equals, or zero. Handed from function to function.
    pub(crate) equal: Vec<u32>,
    /// Whether anything is printed.
    pub(crate) has_prints: bool,
    /// The recording of touches; none if it is disabled.
    pub(crate) touch_builder: Option<crate::accesses::touches::TouchBuilder>,
    /// Which tables shaders read or write.
    pub(crate) tables_used: [bool; 4],
    /// Inputs that were added, by built-in.
    pub(crate) inputs: FxHashMap<u32, crate::rewrite::entry_points::BuiltInInput>,
    /// Unsigned numbers: those of the module and ours, and the words that make ours. Small ones by number, or zero.
    small_constants: Vec<u32>,
    constants: FxHashMap<u32, u32>,
    constant_words: Vec<u32>,
    constant_place: Option<Reserved>,
    nulls: FxHashMap<Id, u32>,
    /// Made when needed.
    pub(crate) fault_variables: Option<FaultVariables>,
    pub(crate) glsl_set: Option<u32>,
    /// Whether the function that flushes variables is called at a place behind which the invocation may continue.
    pub(crate) calls_flush: bool,
    pub(crate) continues_after_flush: bool,
    /// Whether the bytes before an address matter.
    pub(crate) needs_preceding_bytes: bool,
    pub(crate) wandering: WanderingPointers,
    /// A pointer to the root table, in a function that has one from its beginning on.
    pub(crate) local_root: Option<u32>,
}

/// Private variables: the first fault's number plus one, and its details.
#[derive(Clone, Copy)]
pub(crate) struct FaultVariables {
    pub(crate) first: u32,
    pub(crate) details: [u32; 3],
}

/// Ids that were added to the module.
pub(crate) struct AddedIds {
    pub(crate) void: u32,
    pub(crate) boolean: u32,
    pub(crate) uint: u32,
    pub(crate) uint_pair: u32,
    pub(crate) uint_four: u32,
    /// A private variable for every 32 sites.
    pub(crate) masks: Vec<u32>,
    pub(crate) private_uint: u32,
    /// Functions.
    pub(crate) flush: u32,
    pub(crate) report: u32,
    pub(crate) find: u32,
    pub(crate) print: u32,
    pub(crate) pointer_types: TablePointerTypes,
    pub(crate) table_access: TableAccess,
    pub(crate) shader: u32,
    /// Where the module's cells begin, in words, and the number of the cell before the first.
    pub(crate) cell_base: u32,
    pub(crate) cell_before: u32,
    /// By word of bits of sites that were seen: the constant for its place, which is created at the end.
    pub(crate) bits: Vec<u32>,
    /// The numbers of the specialization constants from here on are ours.
    pub(crate) first_spec_id: u32,
    pub(crate) scope: u32,
    /// Global variables that were added.
    pub(crate) variables: Vec<u32>,
}

impl<'a> Context<'a> {
    pub(crate) fn new(module: &'a Module, options: &'a InstrumentOptions) -> Context<'a> {
        let mut editor = Editor::new(module);
        if let RootLocation::PushConstant { .. } = options.root {
            crate::rewrite::entry_points::move_integers_up(&mut editor);
        }
        let uint = editor.find_or_add_type(Op::TypeInt, &[32, 0]);
        let constant_place = Some(editor.reserve(Section::Globals));
        let ids = AddedIds::new(&mut editor, uint, options.root);
        if has_older_addresses(module) {
            editor.add_extension(ADDRESSES);
        }
        let types = Types::new(module);
        let bounds = ValueBounds::new(module, &types);
        let paths = AccessPaths::new(module);
        let with_remaining = match options.checks.descriptors {
            true => crate::accesses::remaining_bytes::parameters_with_remaining(module, &types, &paths),
            false => FxHashMap::default(),
        };
        let constants = known_numbers(module, uint.0);
        let has_loops = module.all().any(|it| it.is(Op::LoopMerge));
        let mut small_constants = vec![0; SMALL];
        for (number, id) in constants.iter().filter(|it| (*it.0 as usize) < SMALL) {
            small_constants[*number as usize] = *id;
        }
        Context {
            module,
            options,
            types,
            paths,
            bounds,
            parameters_with_remaining: with_remaining,
            editor,
            ids,
            sites: Vec::new(),
            site_infos: Vec::new(),
            requirements: BTreeMap::new(),
            scratch_bytes: 0,
            has_variable_pointers: has_variable_pointers(module),
            shadows: FxHashMap::default(),
            may_terminate_invocation: None,
            has_non_uniform: has_non_uniform(module),
            has_loops,
            zero_faulty_loads: has_loops || options.zero_faulty_loads,
            uses: uses(module),
            equal: vec![0; module.bound() as usize],
            has_prints: false,
            touch_builder: None,
            tables_used: [false; 4],
            inputs: FxHashMap::default(),
            small_constants,
            constants,
            constant_words: Vec::new(),
            constant_place,
            nulls: FxHashMap::default(),
            fault_variables: None,
            glsl_set: None,
            calls_flush: false,
            continues_after_flush: false,
            needs_preceding_bytes: false,
            wandering: WanderingPointers::default(),
            local_root: None,
        }
    }

    pub(crate) fn fresh(&mut self) -> u32 {
        self.editor.fresh().0
    }

    /// An unsigned constant of 32 bits.
    pub(crate) fn uint_constant(&mut self, number: u32) -> u32 {
        let (editor, uint, words) = (&mut self.editor, self.ids.uint, &mut self.constant_words);
        if let Some(id) = self.small_constants.get_mut(number as usize) {
            if *id == 0 {
                *id = editor.fresh().0;
                emit_value(words, Op::Constant, uint, *id, &[number]);
            }
            return *id;
        }
        *self.constants.entry(number).or_insert_with(|| {
            let id = editor.fresh().0;
            emit_value(words, Op::Constant, uint, id, &[number]);
            id
        })
    }

    /// The words of the instrumented module.
    pub(crate) fn finish(&mut self) -> Vec<u32> {
        let mut editor = std::mem::replace(&mut self.editor, Editor::new(self.module));
        if let Some(place) = self.constant_place.take() {
            editor.fill(place, std::mem::take(&mut self.constant_words));
        }
        editor.finish()
    }

    pub(crate) fn null(&mut self, ty: Id) -> u32 {
        let editor = &mut self.editor;
        *self.nulls.entry(ty).or_insert_with(|| editor.null(ty).0)
    }

    pub(crate) fn guards_by_branch(&self) -> bool {
        self.options.guard == Guard::Branch
    }

    /// Notes a site that has no code of its own.
    pub(crate) fn add_site(&mut self, site: CheckSite) {
        self.sites.push(site);
    }

    /// Notes a site that is checked, and gives it a number.
    pub(crate) fn add_numbered_site(&mut self, mut site: CheckSite, is_hoisted: bool) -> u32 {
        let number = self.site_infos.len() as u32;
        self.site_infos.push(info(&site, number));
        site.decision = if is_hoisted { CheckDecision::Hoisted { number } } else { CheckDecision::Checked { number } };
        self.sites.push(site);
        number
    }

    /// The private variable that stands beside one that holds a pointer. No function calls itself, so one is enough.
    pub(crate) fn shadow(&mut self, variable: Id) -> u32 {
        if let Some(shadow) = self.shadows.get(&variable) {
            return *shadow;
        }
        let shadow = self.private_word();
        self.shadows.insert(variable, shadow);
        shadow
    }

    /// The host must see to it that so much is bound.
    pub(crate) fn require(&mut self, set: u32, binding: u32, element: Option<u32>, least: u64) {
        let least = u32::try_from(least).unwrap_or(u32::MAX);
        let entry = self.requirements.entry(BindingElement { set, binding, element }).or_insert(0);
        *entry = (*entry).max(least);
    }

    /// Emits an instruction with a result into some code.
    pub(crate) fn emit_result(&mut self, code: &mut Vec<u32>, op: Op, ty: u32, operands: &[u32]) -> u32 {
        let id = self.fresh();
        emit_value(code, op, ty, id, operands);
        id
    }
}

/// The number of the site and the kind of its check in one word, and the values for a record besides the remembered details. For a known
/// buffer: the set plus one, the word at which the states of the binding begin, relative to the set, and the element.
/// For an access at an address: offset and stride.
fn info(site: &CheckSite, number: u32) -> [u32; 4] {
    let word = number.min(NUMBER_MAX) | (site.check as u32) << 28;
    match (site.check, site.element, site.binding, site.index_unit) {
        (Check::Buffer, Some(element), Some((set, binding)), _) => {
            let place = binding.saturating_mul(BINDING_WORDS).saturating_add(1);
            [word, set.saturating_add(1), place, element]
        }
        (Check::Address, _, _, IndexUnit::Elements { offset, stride, is_signed }) => {
            [word, offset as u32, stride as u32 | if is_signed { SIGNED } else { 0 }, 0]
        }
        (Check::Address, _, _, IndexUnit::Constant { offset }) => [word, offset as u32, 0, 0],
        _ => [word, 0, 0, 0],
    }
}

pub(crate) const ALIGNED: u32 = 2;

pub(crate) fn emit(code: &mut Vec<u32>, op: Op, operands: &[u32]) {
    code.push((operands.len() as u32 + 1) << 16 | op as u32);
    code.extend_from_slice(operands);
}

pub(crate) fn emit_value(code: &mut Vec<u32>, op: Op, ty: u32, id: u32, operands: &[u32]) {
    let head = (operands.len() as u32 + 3) << 16 | op as u32;
    // Most have few operands; a copy of a known length is some moves.
    match *operands {
        [a] => code.extend_from_slice(&[head, ty, id, a]),
        [a, b] => code.extend_from_slice(&[head, ty, id, a, b]),
        [a, b, c] => code.extend_from_slice(&[head, ty, id, a, b, c]),
        _ => {
            code.extend_from_slice(&[head, ty, id]);
            code.extend_from_slice(operands);
        }
    }
}

impl AddedIds {
    fn new(editor: &mut Editor<'_>, uint: Id, root: RootLocation) -> AddedIds {
        let boolean = editor.find_or_add_type(Op::TypeBool, &[]);
        let private_uint = editor.find_or_add_type(Op::TypePointer, &[StorageClass::Private as u32, uint.0]);
        let uint_pair = editor.find_or_add_type(Op::TypeVector, &[uint.0, 2]);
        let mut ids = AddedIds {
            void: editor.find_or_add_type(Op::TypeVoid, &[]).0,
            boolean: boolean.0,
            uint: uint.0,
            uint_pair: uint_pair.0,
            uint_four: 0,
            masks: Vec::new(),
            private_uint: private_uint.0,
            flush: editor.fresh().0,
            report: editor.fresh().0,
            find: editor.fresh().0,
            print: editor.fresh().0,
            pointer_types: TablePointerTypes::default(),
            table_access: TableAccess::Constant(0),
            shader: 0,
            cell_base: 0,
            cell_before: 0,
            bits: Vec::new(),
            first_spec_id: first_free_spec_id(editor.module()),
            scope: 0,
            variables: Vec::new(),
        };
        let scope = if is_vulkan_memory_model(editor.module()) { Scope::QueueFamily } else { Scope::Device };
        ids.scope = editor.constant(uint, &[scope as u32]).0;
        ids.shader = spec_constant(editor, uint, ids.first_spec_id);
        ids.cell_base = spec_constant(editor, uint, ids.first_spec_id.wrapping_add(1));
        let [one, shift] = [1, CELL_WORDS.trailing_zeros()].map(|it| editor.constant(uint, &[it]).0);
        let mut special_value =
            |op: Op, left: u32, right: u32| editor.new_global(Op::SpecConstantOp, uint, &[op as u32, left, right]).0;
        let first = special_value(Op::ShiftRightLogical, ids.cell_base, shift);
        ids.cell_before = special_value(Op::ISub, first, one);
        ids.add_tables(editor, root);
        ids
    }
}

/// A specialization constant that is zero unless it is set.
pub(crate) fn spec_constant(editor: &mut Editor<'_>, uint: Id, number: u32) -> u32 {
    let id = editor.new_global(Op::SpecConstant, uint, &[0]);
    editor.decorate(id, Decoration::SpecId, &[number]);
    id.0
}

const ADDRESSES: &str = "SPV_KHR_physical_storage_buffer";
/// It does not let pointers be made of two words.
const OLDER_ADDRESSES: &str = "SPV_EXT_physical_storage_buffer";

fn has_older_addresses(module: &Module) -> bool {
    module.instructions(module.globals()).any(|it| it.is(Op::Extension) && it.text(1) == OLDER_ADDRESSES)
}

/// Lets the module have pointers to device addresses.
pub(crate) fn enable_addresses(editor: &mut Editor<'_>) {
    editor.add_capability(Capability::PhysicalStorageBufferAddresses);
    if editor.module().version() < (1, 5) {
        editor.add_extension(ADDRESSES);
    }
    let module = editor.module();
    if let Some(item) = module.instructions(module.globals()).find(|it| it.is(Op::MemoryModel)) {
        let addressing = AddressingModel::PhysicalStorageBuffer64 as u32;
        editor.replace(item.at, lavascope_spirv::instruction(Op::MemoryModel, &[addressing, item.word(2)]));
    }
}

fn has_variable_pointers(module: &Module) -> bool {
    let mut globals = module.instructions(module.globals());
    let wanted = [Capability::VariablePointers, Capability::VariablePointersStorageBuffer];
    globals.any(|it| it.is(Op::Capability) && wanted.iter().any(|wanted| *wanted as u32 == it.word(1)))
}

fn uses(module: &Module) -> Vec<u8> {
    let mut uses = vec![0u8; module.bound() as usize];
    for function in module.functions() {
        for instruction in module.instructions(function.instructions.clone()) {
            for word in instruction.words_from(1) {
                if let Some(count) = uses.get_mut(*word as usize) {
                    *count = count.saturating_add(1);
                }
            }
        }
    }
    uses
}

fn has_non_uniform(module: &Module) -> bool {
    let mut globals = module.instructions(module.globals());
    globals.any(|it| it.is(Op::Decorate) && it.word(2) == Decoration::NonUniform as u32)
}

fn is_vulkan_memory_model(module: &Module) -> bool {
    let mut globals = module.instructions(module.globals());
    globals.any(|it| it.is(Op::MemoryModel) && it.word(2) == MemoryModel::Vulkan as u32)
}

/// Five numbers from here on are not used by specialization constants of the module.
fn first_free_spec_id(module: &Module) -> u32 {
    let decorations = module.instructions(module.globals()).filter(|it| it.is(Op::Decorate));
    let mut used: Vec<u32> =
        decorations.filter(|it| it.word(2) == Decoration::SpecId as u32).map(|it| it.word(3)).collect();
    used.sort_unstable();
    let mut free = 0u32;
    for number in used {
        if number >= free.saturating_add(5) {
            break;
        }
        free = number.wrapping_add(1);
    }
    free
}

/// The unsigned constants that a module has, by their value.
fn known_numbers(module: &Module, uint: u32) -> FxHashMap<u32, u32> {
    let constants = module.instructions(module.globals()).filter(|it| it.is(Op::Constant) && it.word(1) == uint);
    let bare = constants.filter(|it| module.decorations(it.id(2)).next().is_none());
    bare.map(|it| (it.word(3), it.word(2))).collect()
}
