//! Accesses that are not in the buffer of their base pointer: the accessed address decides, and not the base.
//!
//! A base pointer may be before or behind its buffer, or in the buffer of somebody else: a program may count elements
//! from one, or from the end. So an access that fails the fast check relative to its base is checked a second time, by
//! its own address. That is a call of a function with a branch, which returns at once if the first check was passed.
//! Drivers inline it: with 20 of them, lavapipe takes three to four times as long for a shader, with 100 of them forty times. So
//! only modules with few accesses have it ([`EXACT_ACCESSES_MAX`]). In the others an access that is not in the buffer of
//! its base goes to scratch memory, and the host does not report it if its address is in another buffer.
//!
//! Pointers that were read through a wrong pointer are null (`FunctionRewriter::clears_pointers`), and an access through
//! a null pointer is not reported after such a read: its cause is reported already.

use lavascope_spirv::{Id, Instruction, Section};
use smallvec::SmallVec;
use spirv::{Capability, Op, StorageClass};

use crate::ShaderTable;
use crate::accesses::addresses::AddressBounds;
use crate::analysis::access_path::AccessPath;
use crate::checks::check_cache::DerivedValue;
use crate::checks::report_functions::{begin_helper_with, end_function};
use crate::rewrite::context::{Context, emit, emit_value};
use crate::rewrite::function::{FunctionRewriter, is_atomic};

/// Modules with more accesses at device addresses have no second check.
const EXACT_ACCESSES_MAX: usize = 4;
/// Structures that contain structures are followed this far.
const DEPTH_MAX: usize = 8;

/// What a module has for accesses and pointers of this kind. Made when needed.
#[derive(Default)]
pub(crate) struct WanderingPointers {
    /// The function that checks an access by its own address.
    find_access: Option<u32>,
    /// The private variable that says whether an invocation has read a pointer through a wrong one.
    read_wrong: Option<u32>,
    /// Whether the module has device addresses, and whether loads of it may give them, once that was asked for.
    has_addresses: Option<bool>,
    loads_pointers: Option<bool>,
    /// Whether accesses have a second check, once that was asked for.
    is_exact: Option<bool>,
}

impl FunctionRewriter<'_, '_> {
    /// Whether an access is fine: by the check relative to its base (`ok`), or else by its own address.
    pub(crate) fn check_elsewhere(&mut self, ok: u32, bounds: AddressBounds, path: &AccessPath, size: u64) -> u32 {
        if !self.cx.checks_exactly() {
            return ok;
        }
        let term = path.terms.first().copied();
        let index = term.map(|it| path.indices[it.position]);
        let stride = term.map_or(0, |it| it.stride);
        let index_key = index.map_or(0, |it| self.numbering.number_of(it));
        let key = DerivedValue::Elsewhere { ok, low: bounds.low, offset: path.offset, size, index: index_key };
        self.cached_value(key, |body| {
            let index = match index {
                Some(index) => body.as_uint(index).unwrap_or(index.0),
                None => body.cx.uint_constant(0),
            };
            let sign = match path.terms.first() {
                Some(term) if body.is_signed(path.indices[term.position]) => SIGNED,
                _ => 0,
            };
            let find = body.cx.find_access();
            let [size, zero] = [size as u32, 0].map(|it| body.cx.uint_constant(it));
            let [offset, stride] = [path.offset as u32, stride as u32 | sign].map(|it| body.cx.uint_constant(it));
            let needed = body.emit_result(Op::Select, body.cx.ids.uint, &[ok, zero, size]);
            let mut operands: SmallVec<[u32; 8]> = SmallVec::from_slice(&[find]);
            operands.extend(body.cx.table_parameter().map(|_| body.table(ShaderTable::Addresses)));
            operands.extend([needed, bounds.low, bounds.high, offset, index, stride]);
            body.emit_bool(Op::FunctionCall, &operands)
        })
    }

    /// Remembers that a pointer was read through a wrong one.
    pub(crate) fn note_pointer_load(&mut self, ty: Id, ok: Option<u32>) {
        let Some(ok) = ok.filter(|_| self.clears_pointers(ty)) else { return };
        let variable = self.cx.read_wrong();
        let (uint, one) = (self.cx.ids.uint, self.cx.uint_constant(1));
        let before = self.emit_result(Op::Load, uint, &[variable]);
        let after = self.emit_result(Op::Select, uint, &[ok, before, one]);
        emit(&mut self.out, Op::Store, &[variable, after]);
    }

    /// Whether a type is that of a pointer to a device address.
    pub(crate) fn is_address_type(&self, ty: Id) -> bool {
        self.cx.types.pointer(ty).is_some_and(|it| it.0 == StorageClass::PhysicalStorageBuffer)
    }

    /// Writes a load of a pointer, which is null if the load is wrong. SPIR-V has no constant for that.
    pub(crate) fn load_pointer_or_null(&mut self, ok: u32, instruction: Instruction<'_>, changes: &[(usize, u32)]) {
        let inner = self.cx.fresh();
        let mut changes: SmallVec<[(usize, u32); 3]> = SmallVec::from_slice(changes);
        changes.push((2, inner));
        self.copy_with(instruction, &changes);
        let (uint, pair, zero) = (self.cx.ids.uint, self.cx.ids.uint_pair, self.cx.uint_constant(0));
        let words = self.emit_result(Op::Bitcast, pair, &[inner]);
        let halves = [0, 1].map(|half| {
            let word = self.emit_result(Op::CompositeExtract, uint, &[words, half]);
            self.emit_result(Op::Select, uint, &[ok, word, zero])
        });
        let address = self.emit_result(Op::CompositeConstruct, pair, &halves);
        emit_value(&mut self.out, Op::Bitcast, instruction.word(1), instruction.word(2), &[address]);
    }

    /// Whether a load of this type gives null where it is wrong, because it may give a pointer.
    pub(crate) fn clears_pointers(&mut self, ty: Id) -> bool {
        self.cx.uses_addresses() && has_pointer(self.cx, ty, 0)
    }

    /// Whether a base pointer is null because a load of it was wrong; none where that cannot be.
    pub(crate) fn emit_null_of_wrong_load(&mut self, [low, high]: [u32; 2]) -> Option<u32> {
        if !self.cx.loads_pointers() {
            return None;
        }
        let (uint, variable, zero) = (self.cx.ids.uint, self.cx.read_wrong(), self.cx.uint_constant(0));
        let both = self.emit_result(Op::BitwiseOr, uint, &[low, high]);
        let is_null = self.emit_bool(Op::IEqual, &[both, zero]);
        let wrong = self.emit_result(Op::Load, uint, &[variable]);
        let has_wrong = self.emit_bool(Op::INotEqual, &[wrong, zero]);
        Some(self.emit_bool(Op::LogicalAnd, &[is_null, has_wrong]))
    }
}

/// The bit of a stride that says that its index has a sign. Strides are smaller than 2^30.
pub(crate) const SIGNED: u32 = 1 << 31;

impl Context<'_> {
    fn find_access(&mut self) -> u32 {
        if let Some(function) = self.wandering.find_access {
            return function;
        }
        let function = self.fresh();
        self.wandering.find_access = Some(function);
        function
    }

    fn read_wrong(&mut self) -> u32 {
        if let Some(variable) = self.wandering.read_wrong {
            return variable;
        }
        let variable = self.private_word();
        self.wandering.read_wrong = Some(variable);
        variable
    }

    fn uses_addresses(&mut self) -> bool {
        if let Some(known) = self.wandering.has_addresses {
            return known;
        }
        let capability = Capability::PhysicalStorageBufferAddresses as u32;
        let mut globals = self.module.instructions(self.module.globals());
        let has_addresses = globals.any(|it| it.is(Op::Capability) && it.word(1) == capability);
        let has_addresses = has_addresses && self.options.checks.addresses;
        self.wandering.has_addresses = Some(has_addresses);
        has_addresses
    }

    fn checks_exactly(&mut self) -> bool {
        if let Some(known) = self.wandering.is_exact {
            return known;
        }
        let is_access = |instruction: &Instruction<'_>| {
            let pointer = match instruction.op() {
                Some(Op::Store) => instruction.id(1),
                Some(op) if op == Op::Load || is_atomic(op) => instruction.id(3),
                _ => return false,
            };
            let class = self.types.pointer_value(pointer).map(|instruction| instruction.0);
            class == Some(StorageClass::PhysicalStorageBuffer)
        };
        let is_exact = self.module.all().filter(is_access).count() <= EXACT_ACCESSES_MAX;
        self.wandering.is_exact = Some(is_exact);
        is_exact
    }

    fn loads_pointers(&mut self) -> bool {
        if let Some(known) = self.wandering.loads_pointers {
            return known;
        }
        let mut loads = self.module.all().filter(|it| it.is(Op::Load));
        let loads_pointers = loads.any(|it| is_from_memory(self, it.id(3)) && has_pointer(self, it.id(1), 0));
        self.wandering.loads_pointers = Some(loads_pointers);
        loads_pointers
    }

    /// Adds the function that checks an access by its own address, if it is called.
    pub(crate) fn add_find_access(&mut self) {
        if let Some(function) = self.wandering.find_access {
            let words = find_access_function(self, function);
            self.editor.add(Section::Functions, words);
        }
    }
}

/// Whether a load may be checked, so that it may be wrong.
fn is_from_memory(cx: &Context<'_>, pointer: Id) -> bool {
    let class = cx.types.pointer_value(pointer).map(|it| it.0);
    matches!(class, Some(StorageClass::PhysicalStorageBuffer | StorageClass::StorageBuffer | StorageClass::Uniform))
}

/// Whether a value of a type may be a device address, or have one: a pointer, a 64-bit integer, or a pair of words.
fn has_pointer(cx: &Context<'_>, ty: Id, depth: usize) -> bool {
    let Some(instruction) = cx.module.definition(ty).filter(|_| depth < DEPTH_MAX) else { return false };
    match instruction.op() {
        Some(Op::TypePointer) => instruction.word(2) == StorageClass::PhysicalStorageBuffer as u32,
        Some(Op::TypeInt) => instruction.word(2) == 64,
        Some(Op::TypeVector) => instruction.word(3) == 2 && cx.types.integer(instruction.id(2)) == Some((32, false)),
        Some(Op::TypeArray) => has_pointer(cx, instruction.id(2), depth + 1),
        Some(Op::TypeStruct) => instruction.words_from(2).iter().any(|it| has_pointer(cx, Id(*it), depth + 1)),
        _ => false,
    }
}

/// The product of an index and a stride whose highest bit says that the index has a sign, in two words.
pub(crate) fn emit_index_bytes(cx: &mut Context<'_>, code: &mut Vec<u32>, index: u32, stride: u32) -> [u32; 2] {
    let uint = cx.ids.uint;
    let pair = cx.editor.find_or_add_type(Op::TypeStruct, &[uint, uint]).0;
    let [mask, last_bit, one] = [SIGNED - 1, 31, 1].map(|it| cx.uint_constant(it));
    let bytes = cx.emit_result(code, Op::BitwiseAnd, uint, &[stride, mask]);
    let product = cx.emit_result(code, Op::UMulExtended, pair, &[index, bytes]);
    let [low, high] = [0, 1].map(|half| cx.emit_result(code, Op::CompositeExtract, uint, &[product, half]));
    // As an unsigned number, a negative index is larger by 2^32.
    let both = cx.emit_result(code, Op::BitwiseAnd, uint, &[index, stride]);
    let is_negative = cx.emit_result(code, Op::ShiftRightLogical, uint, &[both, last_bit]);
    let is_negative = cx.emit_result(code, Op::BitwiseAnd, uint, &[is_negative, one]);
    let excess = cx.emit_result(code, Op::IMul, uint, &[bytes, is_negative]);
    [low, cx.emit_result(code, Op::ISub, uint, &[high, excess])]
}

/// The sum of two numbers of two words.
pub(crate) fn emit_sum(cx: &mut Context<'_>, code: &mut Vec<u32>, left: [u32; 2], right: [u32; 2]) -> [u32; 2] {
    let (uint, zero) = (cx.ids.uint, cx.uint_constant(0));
    let pair = cx.editor.find_or_add_type(Op::TypeStruct, &[uint, uint]).0;
    let both = cx.emit_result(code, Op::IAddCarry, pair, &[left[0], right[0]]);
    let [low, carry] = [0, 1].map(|half| cx.emit_result(code, Op::CompositeExtract, uint, &[both, half]));
    let high = match right[1] == zero {
        true => left[1],
        false => cx.emit_result(code, Op::IAdd, uint, &[left[1], right[1]]),
    };
    [low, cx.emit_result(code, Op::IAdd, uint, &[high, carry])]
}

/// Whether so many bytes at `base + offset + index * stride` are in one buffer; true if no bytes are needed.
fn find_access_function(cx: &mut Context<'_>, function: u32) -> Vec<u32> {
    let mut code = Vec::new();
    let code = &mut code;
    let (uint, boolean, pair, find) = (cx.ids.uint, cx.ids.boolean, cx.ids.uint_pair, cx.ids.find);
    let table = cx.table_parameter();
    let (table, parameters) = begin_helper_with(cx, code, (function, boolean), table, 6);
    let [needed, low, high, offset, index, stride] = parameters[..] else { unreachable!("six were asked for") };
    let zero = cx.uint_constant(0);
    let is_needed = cx.emit_result(code, Op::INotEqual, boolean, &[needed, zero]);
    let [before, inside, merge] = [0; 3].map(|_| cx.fresh());
    emit(code, Op::Branch, &[before]);
    emit(code, Op::Label, &[before]);
    emit(code, Op::SelectionMerge, &[merge, 0]);
    emit(code, Op::BranchConditional, &[is_needed, inside, merge]);
    emit(code, Op::Label, &[inside]);
    let bytes = emit_index_bytes(cx, code, index, stride);
    let start = emit_sum(cx, code, [low, high], [offset, zero]);
    let [low, high] = emit_sum(cx, code, start, bytes);
    let mut operands: SmallVec<[u32; 4]> = SmallVec::from_slice(&[find]);
    operands.extend(table);
    operands.extend([low, high]);
    let found = cx.emit_result(code, Op::FunctionCall, pair, &operands);
    let found = cx.emit_result(code, Op::CompositeExtract, uint, &[found, 0]);
    emit(code, Op::Branch, &[merge]);
    emit(code, Op::Label, &[merge]);
    let left = cx.emit_result(code, Op::Phi, uint, &[zero, before, found, inside]);
    let is_enough = cx.emit_result(code, Op::UGreaterThanEqual, boolean, &[left, needed]);
    end_function(cx, code, Some(is_enough))
}
