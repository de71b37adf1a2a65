//! Rewrites one function with its checks: blocks, phis, and the state of faults.
//!
//! A checked load uses a selected index, so it splits no block. A branch skips a store or an atomic through a descriptor
//! that is out of bounds; with [`crate::Guard::Branch`], a branch skips every such access. A branch splits the block: its
//! end moves into a new block, and phis must then name the new one.
//!
//! A loop header is split after its phis: label, phis and merge instruction stay, and the rest becomes a block of its
//! own. If both targets of that block's branch are inside the loop, the block gets a merge instruction of its own. A loop
//! that consists of one block gets a second block as its continue target.
//!
//! Values that are the same for all invocations, such as words of the tables, are loaded at the beginning of the
//! function ([`Hoisted`]).

use lavascope_spirv::{Function, Id, Instruction, InstructionIndex};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use spirv::Op;

use crate::analysis::dominators::Dominators;
use crate::analysis::value_numbering::ValueNumbering;
use crate::rewrite::context::{Context, emit, emit_value};
use crate::{Check, ShaderTable};

pub(crate) struct FunctionRewriter<'c, 'a> {
    pub(crate) cx: &'c mut Context<'a>,
    /// The words of the new function so far.
    pub(crate) out: Vec<u32>,
    /// Code for the beginning of the function.
    pub(crate) entry_code: Vec<u32>,
    /// The offset in `out` at which `entry_code` is inserted.
    entry_offset: usize,
    /// The label of the block that is being written.
    pub(crate) label: u32,
    /// The index of the block that is being read, among all blocks of the module.
    pub(crate) block: usize,
    pub(crate) dominators: Dominators,
    pub(crate) numbering: ValueNumbering,
    /// Loops with a counter.
    pub(crate) loops: Vec<crate::analysis::counted_loops::CountedLoop>,
    /// For the block before a loop with a counter: the offset of its end in `out`.
    pub(crate) preheader_ends: FxHashMap<usize, usize>,
    /// Code to insert into `out`, with its offset.
    pub(crate) insertions: Vec<(usize, Vec<u32>)>,
    /// The index of the function in the module.
    pub(crate) function: usize,
    /// By label of a block that was split: the label of the block that has its end.
    tails: FxHashMap<u32, u32>,
    /// The offsets of phis in `out`.
    phis: Vec<usize>,
    /// Checks of this block whose results are not yet stored in variables.
    pub(crate) pending: Vec<crate::checks::fault_state::Pending>,
    /// Touches of this block that are not yet recorded.
    pub(crate) pending_touches: Vec<crate::accesses::touch_functions::PendingTouch>,
    /// The id of an access chain that was removed again.
    pub(crate) reusable_chain_id: Option<u32>,
    /// By id of a device address that a loop may use: the offset in `out` of the code that computes it.
    pub(crate) address_code_offsets: FxHashMap<u32, usize>,
    /// The headers of loops and their merge blocks, if the function uses device addresses.
    pub(crate) loop_heads: Vec<(usize, usize)>,
    /// Whether no fault can be stored in variables so far.
    pub(crate) is_fault_state_clear: bool,
    /// The merge instruction of a loop header that must be split after its phis.
    loop_merge_to_split: Option<InstructionIndex>,
    /// The loop header that was split, until its end is written.
    split_header: Option<SplitLoopHeader>,
    /// Whether the current block may be split.
    pub(crate) can_split: bool,
    line: Option<[u32; 3]>,
    pub(crate) is_entry: bool,
    /// Whether an invocation may have ended before the current instruction, inside of a block.
    pub(crate) may_have_ended: bool,
    /// Descriptors that were loaded, by value.
    pub(crate) loaded_descriptors: FxHashMap<u32, crate::accesses::touches::LoadedDescriptor>,
    /// Values that are loaded at the beginning of the function.
    pub(crate) hoisted: FxHashMap<Hoisted, u32>,
    pub(crate) check_cache: crate::checks::check_cache::CheckCache,
    pub(crate) images: crate::accesses::images::ImageFaults,
    pub(crate) remaining: crate::accesses::remaining_bytes::RemainingBytes,
    /// The block and the instruction of each check, by its condition and kind.
    pub(crate) recorded_checks: FxHashMap<(u32, Check), (usize, InstructionIndex)>,
}

/// A value that is computed at the beginning of the function.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Hoisted {
    Table(u8),
    /// A word of a binding's entry in the descriptor table, by set, binding and word (`interface::tables`).
    Binding(u32, u32, u32),
    /// The state of an element, by set, binding and element.
    State(u32, u32, u32),
    /// The number of elements that fit, by state, end of the first element in bytes, and stride.
    Fitting(u32, u64, u64),
    /// The index of the last element that fits, by the same values.
    Last(u32, u64, u64),
    /// Whether a constant index fits, by the same values and the index.
    Fits(u32, u64, u64, u32),
    Scratch(u8),
    /// A zero that the driver's compiler cannot see as a constant.
    Zero,
}

/// A loop header that was split.
struct SplitLoopHeader {
    /// The label of the new continue target, if the header was its own continue target.
    continue_label: Option<u32>,
    /// Whether the branch at its end stays in the loop on both sides, and so needs a merge instruction of its own.
    stays: bool,
}

impl<'c, 'a> FunctionRewriter<'c, 'a> {
    /// Returns the words of a function with its checks. An entry point begins with `prologue`, and flushes its faults at
    /// each exit.
    pub(crate) fn write(cx: &'c mut Context<'a>, function: &Function, prologue: Option<Vec<u32>>) -> Vec<u32> {
        let dominators = Dominators::new(cx.module, function);
        let is_entry = prologue.is_some();
        let remaining = crate::accesses::remaining_bytes::RemainingBytes::new(cx, function);
        let place = cx.module.function_of(function.id).unwrap_or(0);
        let loops = crate::analysis::counted_loops::find_counted_loops(cx, function);
        let loop_heads =
            if cx.has_loops && cx.options.checks.addresses { loop_heads(cx, function) } else { Vec::new() };
        let numbering = ValueNumbering::new(std::mem::take(&mut cx.equal));
        let mut body = FunctionRewriter {
            cx,
            out: Vec::new(),
            entry_code: prologue.unwrap_or_default(),
            entry_offset: 0,
            label: 0,
            block: 0,
            dominators,
            numbering,
            loops,
            preheader_ends: FxHashMap::default(),
            insertions: Vec::new(),
            function: place,
            tails: FxHashMap::default(),
            phis: Vec::new(),
            pending: Vec::new(),
            pending_touches: Vec::new(),
            reusable_chain_id: None,
            address_code_offsets: FxHashMap::default(),
            loop_heads,
            is_fault_state_clear: is_entry,
            loop_merge_to_split: None,
            split_header: None,
            can_split: true,
            line: None,
            is_entry,
            may_have_ended: false,
            loaded_descriptors: FxHashMap::default(),
            hoisted: FxHashMap::default(),
            check_cache: crate::checks::check_cache::CheckCache::default(),
            images: crate::accesses::images::ImageFaults::default(),
            remaining,
            recorded_checks: FxHashMap::default(),
        };
        body.run(function);
        body.finish()
    }

    fn run(&mut self, function: &Function) {
        let module = self.cx.module;
        // Reserves more than most functions need: unused memory costs nothing.
        self.cx.sites.reserve(function.instructions.len() / 4);
        self.out.reserve(module.words_of(function.instructions.clone()) * 4);
        let head_end = last_variable(self.cx, function);
        let first_block = module.blocks().get(function.blocks.start as usize).map_or(0, |it| it.instructions.start);
        for instruction in module.instructions(function.instructions.clone()) {
            if instruction.at.0 == first_block {
                self.add_remaining_parameters(function);
            }
            self.rewrite_instruction(instruction);
            if Some(instruction.at) == head_end {
                self.entry_offset = self.out.len();
            }
        }
    }

    fn finish(mut self) -> Vec<u32> {
        for place in std::mem::take(&mut self.phis) {
            let words = (self.out[place] >> 16) as usize;
            for parent in (place + 4..place + words).step_by(2) {
                if let Some(tail) = self.tails.get(&self.out[parent]) {
                    self.out[parent] = *tail;
                }
            }
        }
        self.cx.equal = self.numbering.into_equal();
        // From the last offset to the first, so that the other offsets stay valid. Code for one offset keeps its order.
        self.insertions.sort_by_key(|it| it.0);
        for (place, words) in self.insertions.into_iter().rev() {
            self.out.splice(place..place, words);
        }
        self.out.splice(self.entry_offset..self.entry_offset, self.entry_code);
        self.out
    }

    fn rewrite_instruction(&mut self, instruction: Instruction<'_>) {
        if self.loop_merge_to_split.is_some() && !matches!(instruction.op(), Some(Op::Phi | Op::Line | Op::NoLine)) {
            self.split_loop_header();
        }
        match instruction.op() {
            Some(Op::Label) => self.begin_block(instruction),
            Some(Op::Phi) => {
                self.note_phi();
                self.copy(instruction);
                self.emit_remaining(instruction, Op::Phi);
            }
            Some(Op::Function) => self.begin_function(instruction),
            Some(Op::Line) => {
                self.line = Some([instruction.word(1), instruction.word(2), instruction.word(3)]);
                self.copy(instruction);
            }
            Some(Op::NoLine) => {
                self.line = None;
                self.copy(instruction);
            }
            Some(Op::SelectionMerge) => {
                self.record_touches();
                self.spill();
                self.copy(instruction);
            }
            Some(Op::LoopMerge) => {
                self.record_touches();
                self.spill();
                if self.split_header.is_none() {
                    self.copy(instruction);
                }
            }
            Some(op) if is_terminator(op) => self.end_block(instruction, op),
            Some(Op::DemoteToHelperInvocation | Op::IgnoreIntersectionNV | Op::TerminateRayNV) => {
                self.record_touches();
                self.flush(true);
                self.may_have_ended = true;
                self.copy(instruction);
            }
            Some(op) => {
                self.numbering.visit(self.cx, instruction, op);
                self.access(instruction, op);
                let makes_pointer = matches!(
                    op,
                    Op::AccessChain | Op::InBoundsAccessChain | Op::PtrAccessChain | Op::Select | Op::CopyObject
                );
                let gives_pointer = self.cx.has_variable_pointers && matches!(op, Op::Load | Op::FunctionCall);
                if makes_pointer || gives_pointer {
                    self.emit_remaining(instruction, op);
                }
                if self.cx.has_variable_pointers && op == Op::Store {
                    self.store_remaining(instruction);
                }
                if !self.loop_heads.is_empty() && !makes_pointer {
                    self.note_address(instruction);
                }
            }
            None => {
                self.touch_unknown(instruction);
                self.copy(instruction);
            }
        }
    }

    fn begin_block(&mut self, item: Instruction<'_>) {
        let module = self.cx.module;
        self.copy(item);
        self.label = item.word(1);
        self.line = None;
        self.numbering.begin_block();
        self.can_split = true;
        let Some(block) = module.block_of(item.id(1)) else { return };
        self.block = block;
        let all = module.blocks()[block].instructions.clone();
        let merge =
            all.end.checked_sub(2).filter(|it| *it > all.start).map(|it| module.instruction(InstructionIndex(it)));
        let Some(merge) = merge.filter(|it| it.is(Op::LoopMerge)) else { return };
        if module.instructions(all.clone()).any(|it| self.may_split(it)) {
            let end = module.instruction(InstructionIndex(all.end - 1));
            self.can_split = end.is(Op::Branch) || end.is(Op::BranchConditional);
            self.loop_merge_to_split = self.can_split.then_some(merge.at);
        }
    }

    /// Whether checking an instruction may split its block.
    fn may_split(&self, instruction: Instruction<'_>) -> bool {
        let Some(op) = instruction.op() else { return false };
        let is_any = self.cx.guards_by_branch() || !self.cx.options.immediate.is_empty();
        matches!(op, Op::Store | Op::ImageWrite | Op::CopyMemory)
            || is_atomic(op)
            || is_any && !is_terminator(op)
            || op == Op::ExtInst && self.is_printing(instruction)
    }

    /// Ends a loop header directly after its phis. The rest of the block goes into a block of its own.
    fn split_loop_header(&mut self) {
        let Some(merge) = self.loop_merge_to_split.take() else { return };
        let merge = self.cx.module.instruction(merge);
        let is_own = merge.word(2) == self.label;
        let continue_label = is_own.then(|| self.cx.fresh());
        let rest = self.cx.fresh();
        let mut operands: SmallVec<[u32; 6]> = SmallVec::from_slice(merge.words_from(1));
        operands[1] = continue_label.unwrap_or(merge.word(2));
        emit(&mut self.out, Op::LoopMerge, &operands);
        emit(&mut self.out, Op::Branch, &[rest]);
        self.begin_own_block(rest);
        let end = self.cx.module.instruction(InstructionIndex(merge.at.0 + 1));
        self.split_header = Some(SplitLoopHeader { continue_label, stays: stays(end, merge) });
    }

    fn end_block(&mut self, instruction: Instruction<'_>, op: Op) {
        self.record_touches();
        let is_exit = match op {
            Op::Return => self.is_entry,
            Op::Kill
            | Op::TerminateInvocation
            | Op::EmitMeshTasksEXT
            | Op::IgnoreIntersectionKHR
            | Op::TerminateRayKHR => true,
            _ => false,
        };
        if is_exit {
            self.flush(false);
        }
        if op == Op::ReturnValue && self.cx.has_variable_pointers {
            self.return_remaining(instruction.id(1));
        }
        self.spill();
        let ending = self.split_header.take();
        if let Some(SplitLoopHeader { continue_label: Some(label), .. }) = ending {
            emit(&mut self.out, Op::Branch, &[label]);
            self.begin_own_block(label);
        }
        // SPIR-V requires a merge block, but both targets stay in the loop, so the merge block is never reached.
        let never = ending.filter(|it| it.stays).map(|_| self.cx.fresh());
        if let Some(never) = never {
            emit(&mut self.out, Op::SelectionMerge, &[never, 0]);
        }
        if self.loops.iter().any(|it| it.preheader == self.block) {
            self.preheader_ends.insert(self.block, self.out.len());
        }
        self.copy(instruction);
        if let Some(never) = never {
            emit(&mut self.out, Op::Label, &[never]);
            emit(&mut self.out, Op::Unreachable, &[]);
        }
        self.is_fault_state_clear = false;
        let first = self.cx.module.blocks().get(self.block).map_or(0, |it| it.label.0);
        if first != self.label {
            self.tails.insert(first, self.label);
        }
    }

    /// Begins a block that the original function does not have.
    fn begin_own_block(&mut self, label: u32) {
        emit(&mut self.out, Op::Label, &[label]);
        self.label = label;
        if let Some(line) = self.line {
            emit(&mut self.out, Op::Line, &line);
        }
    }

    /// Remembers that a phi comes next.
    pub(crate) fn note_phi(&mut self) {
        self.phis.push(self.out.len());
    }

    pub(crate) fn copy(&mut self, instruction: Instruction<'_>) {
        self.out.extend_from_slice(instruction.words());
    }

    /// Copies an instruction with other operands at some places.
    pub(crate) fn copy_with(&mut self, instruction: Instruction<'_>, changes: &[(usize, u32)]) {
        let start = self.out.len();
        self.out.extend_from_slice(instruction.words());
        for (place, word) in changes {
            if let Some(operand) = self.out.get_mut(start + place) {
                *operand = *word;
            }
        }
    }

    pub(crate) fn emit_result(&mut self, op: Op, ty: u32, operands: &[u32]) -> u32 {
        self.cx.emit_result(&mut self.out, op, ty, operands)
    }

    /// A truth value.
    pub(crate) fn emit_bool(&mut self, op: Op, operands: &[u32]) -> u32 {
        let boolean = self.cx.ids.boolean;
        self.emit_result(op, boolean, operands)
    }

    /// The conjunction of two conditions, each of which may be absent.
    pub(crate) fn emit_and(&mut self, left: Option<u32>, right: Option<u32>) -> Option<u32> {
        match (left, right) {
            (Some(left), Some(right)) => Some(self.emit_bool(Op::LogicalAnd, &[left, right])),
            (left, right) => left.or(right),
        }
    }

    /// Writes a branch: the code of `inside` runs only if `ok` holds. `result` is the type and the id of its value, which is
    /// null if `ok` does not hold.
    pub(crate) fn emit_guarded(
        &mut self,
        ok: u32,
        result: Option<(u32, u32)>,
        inside: impl FnOnce(&mut Self, Option<u32>),
    ) {
        let (before, then, merge) = (self.label, self.cx.fresh(), self.cx.fresh());
        emit(&mut self.out, Op::SelectionMerge, &[merge, 0]);
        emit(&mut self.out, Op::BranchConditional, &[ok, then, merge]);
        self.begin_own_block(then);
        let inner = result.map(|_| self.cx.fresh());
        inside(self, inner);
        let after = self.label;
        emit(&mut self.out, Op::Branch, &[merge]);
        emit(&mut self.out, Op::Label, &[merge]);
        self.label = merge;
        if let (Some((ty, id)), Some(inner)) = (result, inner) {
            let null = self.cx.null(Id(ty));
            emit_value(&mut self.out, Op::Phi, ty, id, &[inner, after, null, before]);
        }
        if let Some(line) = self.line {
            emit(&mut self.out, Op::Line, &line);
        }
    }

    /// Remembers where a device address is made.
    fn note_address(&mut self, instruction: Instruction<'_>) {
        let Some(id) = instruction.result() else { return };
        let is_address = |it: (spirv::StorageClass, Id)| it.0 == spirv::StorageClass::PhysicalStorageBuffer;
        if self.cx.types.pointer_value(id).is_some_and(is_address) {
            self.address_code_offsets.insert(id.0, self.out.len());
        }
    }

    /// A table's base, from the beginning of the function.
    pub(crate) fn table(&mut self, table: ShaderTable) -> u32 {
        let key = Hoisted::Table(table as u8);
        if let Some(id) = self.hoisted.get(&key) {
            return *id;
        }
        let id = self.cx.table(&mut self.entry_code, table);
        self.hoisted.insert(key, id);
        id
    }

    /// A word of a binding's entry in the table of descriptors.
    pub(crate) fn binding_word(&mut self, set: u32, binding: u32, word: u32) -> u32 {
        let key = Hoisted::Binding(set, binding, word);
        if let Some(id) = self.hoisted.get(&key) {
            return *id;
        }
        let table = self.table(ShaderTable::Descriptors);
        let set_key = Hoisted::Binding(set, u32::MAX, 0);
        let start = match self.hoisted.get(&set_key) {
            Some(start) => *start,
            None => {
                let place = self.cx.uint_constant(set.saturating_add(1));
                let start = self.cx.load_word(&mut self.entry_code, table, place);
                self.hoisted.insert(set_key, start);
                start
            }
        };
        let place =
            self.cx.uint_constant(binding.saturating_mul(crate::interface::tables::BINDING_WORDS).saturating_add(word));
        let place = self.cx.emit_result(&mut self.entry_code, Op::IAdd, self.cx.ids.uint, &[start, place]);
        let id = self.cx.load_word(&mut self.entry_code, table, place);
        self.hoisted.insert(key, id);
        id
    }

    /// The state of an element that is known.
    pub(crate) fn state_word(&mut self, set: u32, binding: u32, element: u32) -> u32 {
        let key = Hoisted::State(set, binding, element);
        if let Some(id) = self.hoisted.get(&key) {
            return *id;
        }
        let id = match element {
            0 => self.binding_word(set, binding, 3),
            _ => {
                let first = self.binding_word(set, binding, 1);
                let (table, element) = (self.table(ShaderTable::Descriptors), self.cx.uint_constant(element));
                let place = self.cx.emit_result(&mut self.entry_code, Op::IAdd, self.cx.ids.uint, &[first, element]);
                self.cx.load_word(&mut self.entry_code, table, place)
            }
        };
        self.hoisted.insert(key, id);
        id
    }

    /// An integer as an unsigned 32-bit integer. A value that does not fit becomes the largest one.
    pub(crate) fn as_uint(&mut self, id: Id) -> Option<u32> {
        let uint = self.cx.ids.uint;
        let ty = self.cx.types.of_value(id)?;
        let (bits, is_signed) = self.cx.types.integer(ty)?;
        Some(match (bits, is_signed) {
            (32, false) => id.0,
            (32, true) => match self.cx.types.literal(id) {
                Some(known) => self.cx.uint_constant(known as u32),
                None => self.emit_result(Op::Bitcast, uint, &[id.0]),
            },
            (64, _) => {
                let most = self.cx.editor.constant(ty, &[u32::MAX, 0]).0;
                let is_small = self.emit_bool(Op::ULessThanEqual, &[id.0, most]);
                let cut = self.emit_result(Op::UConvert, uint, &[id.0]);
                let largest = self.cx.uint_constant(u32::MAX);
                self.emit_result(Op::Select, uint, &[is_small, cut, largest])
            }
            (_, true) => {
                let signed = self.cx.editor.find_or_add_type(Op::TypeInt, &[32, 1]).0;
                let wide = self.emit_result(Op::SConvert, signed, &[id.0]);
                self.emit_result(Op::Bitcast, uint, &[wide])
            }
            (_, false) => self.emit_result(Op::UConvert, uint, &[id.0]),
        })
    }

    /// An index where `ok` holds, else another one. It keeps its type and whether it is uniform.
    pub(crate) fn select_index(&mut self, index: Id, ok: u32, other: Option<u32>, is_uniform: bool) -> Option<u32> {
        let ty = self.cx.types.of_value(index)?;
        let other = match other {
            None => self.cx.null(ty),
            Some(other) if ty.0 == self.cx.ids.uint => other,
            Some(other) => match self.cx.types.integer(ty)? {
                (32, _) => self.emit_result(Op::Bitcast, ty.0, &[other]),
                (_, false) => self.emit_result(Op::UConvert, ty.0, &[other]),
                (_, true) => {
                    let signed = self.cx.editor.find_or_add_type(Op::TypeInt, &[32, 1]).0;
                    let other = self.emit_result(Op::Bitcast, signed, &[other]);
                    self.emit_result(Op::SConvert, ty.0, &[other])
                }
            },
        };
        let id = self.emit_result(Op::Select, ty.0, &[ok, index.0, other]);
        if !is_uniform {
            self.cx.editor.decorate(Id(id), spirv::Decoration::NonUniform, &[]);
        }
        Some(id)
    }

    /// Whether the module marks a value as different between invocations.
    pub(crate) fn is_non_uniform(&self, id: Id) -> bool {
        self.cx.has_non_uniform && self.cx.module.decoration_operand(id, None, spirv::Decoration::NonUniform).is_some()
    }
}

/// The headers of a function's loops, and their merge blocks.
fn loop_heads(cx: &Context<'_>, function: &Function) -> Vec<(usize, usize)> {
    let module = cx.module;
    let blocks = function.blocks.start as usize..function.blocks.end as usize;
    let heads = blocks.filter_map(|block| {
        let merge = module.blocks()[block]
            .instructions
            .end
            .checked_sub(2)
            .map(|it| module.instruction(InstructionIndex(it)))?;
        merge.is(Op::LoopMerge).then(|| module.block_of(merge.id(1)).map(|it| (block, it)))?
    });
    heads.collect()
}

/// The place where the first block's variables end, or its label.
fn last_variable(cx: &Context<'_>, function: &Function) -> Option<InstructionIndex> {
    let block = cx.module.blocks().get(function.blocks.start as usize).filter(|_| !function.blocks.is_empty())?;
    let mut variables = cx.module.instructions(block.instructions.clone()).filter(|it| it.is(Op::Variable));
    Some(variables.next_back().map_or(InstructionIndex(block.instructions.start), |it| it.at))
}

/// Whether the branch that ends the head of a loop stays in it on both sides.
fn stays(end: Instruction<'_>, merge: Instruction<'_>) -> bool {
    let leaves = |it: u32| it == merge.word(1) || it == merge.word(2);
    end.is(Op::BranchConditional) && !leaves(end.word(2)) && !leaves(end.word(3))
}

pub(crate) fn is_atomic(op: Op) -> bool {
    let atomics = Op::AtomicLoad as u32..=Op::AtomicXor as u32;
    let floats =
        [Op::AtomicFAddEXT, Op::AtomicFMinEXT, Op::AtomicFMaxEXT, Op::AtomicFlagTestAndSet, Op::AtomicFlagClear];
    atomics.contains(&(op as u32)) || floats.contains(&op)
}

/// Whether an instruction ends a block.
pub(crate) fn is_terminator(op: Op) -> bool {
    matches!(
        op,
        Op::Branch
            | Op::BranchConditional
            | Op::Switch
            | Op::Kill
            | Op::Return
            | Op::ReturnValue
            | Op::Unreachable
            | Op::TerminateInvocation
            | Op::IgnoreIntersectionKHR
            | Op::TerminateRayKHR
            | Op::EmitMeshTasksEXT
    )
}
