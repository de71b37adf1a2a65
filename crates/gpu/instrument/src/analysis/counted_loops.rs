//! Loops that count up by one: an access by the counter is checked once, before the loop, for all iterations.
//!
//! The index is the counter, or the counter plus something that the loop does not change. The loop ends only by the
//! condition in its header, so the last value of the counter is known before it begins. The guard of each access stays
//! in the loop; recording the fault does not. A record names the first index that is wrong. If it is not certain that
//! every iteration does the access, nothing is moved. Sites that are recorded where they happen stay in the loop.

use lavascope_spirv::{Function, Id, Instruction, InstructionIndex, Module};
use smallvec::SmallVec;
use spirv::{Op, StorageClass};

use crate::CheckSite;
use crate::analysis::dominators::successors;
use crate::analysis::types::Types;
use crate::rewrite::context::{Context, emit_value};
use crate::rewrite::function::FunctionRewriter;

/// A function with more loops is not optimized: the analysis of a loop takes time with the size of the function.
const LOOPS_MAX: usize = 256;
/// Expressions that are deeper are not copied before the loop.
const DEPTH_MAX: u32 = 4;

/// A loop whose counter goes up by one until its condition fails.
pub(crate) struct CountedLoop {
    /// The block before the loop. Blocks are indices of the module.
    pub(crate) preheader: usize,
    /// The branch target for a true condition.
    body: usize,
    /// The block that goes back to the head.
    latch: usize,
    /// All blocks, in order.
    blocks: Vec<usize>,
    counter: LoopCounter,
    condition: LoopCondition,
}

#[derive(Clone, Copy)]
enum LoopCounter {
    /// A phi, and its value before the first iteration.
    Phi(Id, Id),
    /// A local variable that is loaded and stored as a whole, and where it is stored in the loop.
    Local(Id, InstructionIndex),
}

/// The counter is below the end, or at most the end.
#[derive(Clone, Copy)]
struct LoopCondition {
    op: Op,
    end: Id,
    is_inclusive: bool,
}

/// The counted loops of a function.
pub(crate) fn find_counted_loops(cx: &mut Context<'_>, function: &Function) -> Vec<CountedLoop> {
    let module = cx.module;
    let blocks = function.blocks.start as usize..function.blocks.end as usize;
    let is_loop = |it: &usize| merge_of(module, *it).is_some_and(|it| it.is(Op::LoopMerge));
    let heads: Vec<usize> = blocks.clone().filter(is_loop).collect();
    if heads.is_empty()
        || heads.len() > LOOPS_MAX
        || *cx.may_terminate_invocation.get_or_insert_with(|| may_terminate_invocation(module))
    {
        return Vec::new();
    }
    heads.iter().filter_map(|head| CountedLoop::new(module, &cx.types, function, *head)).collect()
}

/// Whether a function that is called may end the invocation, and so a loop.
fn may_terminate_invocation(module: &Module) -> bool {
    module.all().any(|instruction| {
        let ends = [
            Op::Kill,
            Op::TerminateInvocation,
            Op::DemoteToHelperInvocation,
            Op::IgnoreIntersectionKHR,
            Op::TerminateRayKHR,
            Op::IgnoreIntersectionNV,
            Op::TerminateRayNV,
            Op::EmitMeshTasksEXT,
        ];
        ends.iter().any(|op| instruction.is(*op))
    })
}

fn merge_of(module: &Module, block: usize) -> Option<Instruction<'_>> {
    let all = module.blocks()[block].instructions.clone();
    all.end.checked_sub(2).filter(|it| *it > all.start).map(|it| module.instruction(InstructionIndex(it)))
}

fn terminator(module: &Module, block: usize) -> Instruction<'_> {
    module.instruction(module.blocks()[block].terminator())
}

impl CountedLoop {
    fn new(module: &Module, types: &Types<'_>, function: &Function, head: usize) -> Option<CountedLoop> {
        let (first, count) = (function.blocks.start as usize, function.blocks.len());
        let next =
            |block: usize| successors(module, first, count, block - first).into_iter().map(|it| it as usize + first);
        let merge = module.block_of(merge_of(module, head)?.id(1))?;
        // The condition is in the head, or in the block behind it.
        let end = terminator(module, head);
        let test = if end.is(Op::Branch) { module.block_of(end.id(1))? } else { head };
        let branch = terminator(module, test);
        if !branch.is(Op::BranchConditional) || module.block_of(branch.id(3)) != Some(merge) {
            return None;
        }
        let body = module.block_of(branch.id(2)).filter(|it| *it != merge && *it != head)?;
        // All blocks up to the merge; nothing else leaves.
        let mut blocks = vec![head];
        let mut is_seen = vec![false; count];
        is_seen[head - first] = true;
        let mut at = 0;
        while let Some(block) = blocks.get(at).copied() {
            at += 1;
            let end = terminator(module, block);
            let goes_on = end.is(Op::Branch) || end.is(Op::BranchConditional) || end.is(Op::Switch);
            if !goes_on || block != test && next(block).any(|it| it == merge) {
                return None;
            }
            for to in next(block).filter(|it| *it != merge) {
                if !std::mem::replace(&mut is_seen[to - first], true) {
                    blocks.push(to);
                }
            }
        }
        blocks.sort_unstable();
        let (inner, outer): (Vec<usize>, Vec<usize>) = (first..first + count)
            .filter(|it| next(*it).any(|it| it == head))
            .partition(|it| blocks.binary_search(it).is_ok());
        let ([back], [before]) = (&inner[..], &outer[..]) else { return None };
        let is_plain = |it: usize| terminator(module, it).is(Op::Branch);
        if !is_plain(*back) || !is_plain(*before) {
            return None;
        }
        let (condition, counted) = LoopCondition::parse(module.definition(branch.id(1))?)?;
        let counter = LoopCounter::new(module, types, function, (head, *back, *before), &blocks, counted)?;
        let this = CountedLoop { preheader: *before, body, latch: *back, blocks, counter, condition };
        this.is_32_bit(types).then_some(this)
    }

    /// Whether the counter has 32 bits. With a sign or without, its values are a run of numbers of 32 bits.
    fn is_32_bit(&self, types: &Types<'_>) -> bool {
        let ty = match self.counter {
            LoopCounter::Phi(phi, _) => types.of_value(phi),
            LoopCounter::Local(variable, _) => types.pointer_value(variable).map(|it| it.1),
        };
        ty.and_then(|it| types.integer(it)).is_some_and(|it| it.0 == 32)
    }

    fn contains(&self, block: usize) -> bool {
        self.blocks.binary_search(&block).is_ok()
    }

    /// Whether a value is the counter, in an instruction of a block of the loop.
    fn is_counter(&self, module: &Module, id: Id) -> bool {
        match self.counter {
            LoopCounter::Phi(phi, _) => phi == id,
            LoopCounter::Local(variable, store) => module.definition(id).is_some_and(|instruction| {
                let block = module.block_containing(instruction.at);
                let is_before = block != Some(self.latch) || instruction.at < store;
                instruction.is(Op::Load)
                    && instruction.id(3) == variable
                    && is_before
                    && block.is_some_and(|it| self.contains(it))
            }),
        }
    }
}

impl LoopCondition {
    /// The meaning of a comparison, and the value that it compares.
    fn parse(instruction: Instruction<'_>) -> Option<(LoopCondition, Id)> {
        let (op, is_turned, is_inclusive) = match instruction.op()? {
            Op::ULessThan => (Op::ULessThan, false, false),
            Op::UGreaterThan => (Op::ULessThan, true, false),
            Op::ULessThanEqual => (Op::ULessThanEqual, false, true),
            Op::UGreaterThanEqual => (Op::ULessThanEqual, true, true),
            Op::SLessThan => (Op::SLessThan, false, false),
            Op::SGreaterThan => (Op::SLessThan, true, false),
            Op::SLessThanEqual => (Op::SLessThanEqual, false, true),
            Op::SGreaterThanEqual => (Op::SLessThanEqual, true, true),
            _ => return None,
        };
        let (counted, end) =
            if is_turned { (instruction.id(4), instruction.id(3)) } else { (instruction.id(3), instruction.id(4)) };
        Some((LoopCondition { op, end, is_inclusive }, counted))
    }
}

impl LoopCounter {
    fn new(
        module: &Module,
        types: &Types<'_>,
        function: &Function,
        (head, back, before): (usize, usize, usize),
        blocks: &[usize],
        counted: Id,
    ) -> Option<LoopCounter> {
        let instruction = module.definition(counted)?;
        let is_in =
            |at: InstructionIndex| module.block_containing(at).is_some_and(|it| blocks.binary_search(&it).is_ok());
        if instruction.is(Op::Phi) {
            let label = |block: usize| module.blocks()[block].label;
            let from = |block: usize| {
                instruction
                    .words_from(3)
                    .chunks_exact(2)
                    .find(|values| values[1] == label(block).0)
                    .map(|values| Id(values[0]))
            };
            let next = module.definition(from(back)?)?;
            let is_next =
                module.block_containing(instruction.at) == Some(head) && adds_one(types, next, |id| id == counted);
            return is_next.then_some(LoopCounter::Phi(counted, from(before)?));
        }
        let variable = instruction.is(Op::Load).then(|| instruction.id(3))?;
        let is_local = module.definition(variable).is_some_and(|it| it.is(Op::Variable))
            && types.pointer_value(variable)?.0 == StorageClass::Function
            && is_whole(module, function, variable);
        if !is_local || !is_in(instruction.at) {
            return None;
        }
        let stores =
            || module.instructions(function.instructions.clone()).filter(|it| it.is(Op::Store) && it.id(1) == variable);
        let mut inside = stores().filter(|it| is_in(it.at));
        let (store, None) = (inside.next()?, inside.next()) else { return None };
        let is_load =
            |id: Id| module.definition(id).is_some_and(|it| it.is(Op::Load) && it.id(3) == variable && is_in(it.at));
        let is_next = module.definition(store.id(2)).is_some_and(|it| adds_one(types, it, is_load));
        (is_next && module.block_containing(store.at) == Some(back)).then_some(LoopCounter::Local(variable, store.at))
    }
}

fn adds_one(types: &Types<'_>, instruction: Instruction<'_>, is_counter: impl Fn(Id) -> bool) -> bool {
    let is_one = |id: Id| types.literal(id) == Some(1);
    instruction.is(Op::IAdd)
        && (is_counter(instruction.id(3)) && is_one(instruction.id(4))
            || is_counter(instruction.id(4)) && is_one(instruction.id(3)))
}

/// Whether a local variable is only ever loaded and stored as a whole.
fn is_whole(module: &Module, function: &Function, variable: Id) -> bool {
    module.instructions(function.instructions.clone()).all(|instruction| {
        let (is_load, is_store) = (instruction.is(Op::Load), instruction.is(Op::Store));
        let uses = instruction.words().iter().skip(1).filter(|it| **it == variable.0).count();
        match () {
            () if is_load => uses == 0 || uses == 1 && instruction.id(3) == variable,
            () if is_store => uses == 0 || uses == 1 && instruction.id(1) == variable,
            () if instruction.is(Op::Variable) => true,
            // Names of lines and the like may be numbers that look the same.
            () => uses == 0 || instruction.is(Op::Line) || instruction.is(Op::Label),
        }
    })
}

/// The form of an index in a loop: the counter, and optionally a value that is constant in the loop.
struct CountedIndex {
    counted_loop: usize,
    added: Option<Id>,
}

impl FunctionRewriter<'_, '_> {
    /// Checks an access by an index before the loop that counts it. Whether it could be done.
    pub(crate) fn check_before_loop(&mut self, site: CheckSite, index: Id, count: u32) -> bool {
        if self.loops.is_empty() || self.cx.options.immediate.contains(&(self.cx.site_infos.len() as u32)) {
            return false;
        }
        let Some(CountedIndex { counted_loop: counting, added }) = self.counted_index(index) else { return false };
        let before = self.loops[counting].preheader;
        let Some(place) = self.preheader_ends.get(&before).copied() else { return false };
        let mut code = Vec::new();
        let Some((ok, first)) = self.check_whole_range(&mut code, counting, added, count) else { return false };
        let number = self.cx.add_numbered_site(site, true);
        self.emit_elsewhere(&mut code, |body| body.add_pending_check(number, ok, [Some(first), None, None]));
        self.insertions.push((place, code));
        true
    }

    fn counted_index(&mut self, index: Id) -> Option<CountedIndex> {
        let module = self.cx.module;
        let instruction = module.definition(index)?;
        let is_32 = |body: &Self, id: Id| {
            body.cx.types.of_value(id).and_then(|it| body.cx.types.integer(it)).is_some_and(|it| it.0 == 32)
        };
        for counting in (0..self.loops.len()).rev() {
            let this = &self.loops[counting];
            if !this.contains(self.block) {
                continue;
            }
            let (body, back) = (this.body, this.latch);
            let counts = |id: Id| self.loops[counting].is_counter(module, id);
            let found = match () {
                () if counts(index) => Some(None),
                () if instruction.is(Op::IAdd) && counts(instruction.id(3)) => Some(Some(instruction.id(4))),
                () if instruction.is(Op::IAdd) && counts(instruction.id(4)) => Some(Some(instruction.id(3))),
                () => None,
            };
            let Some(added) = found.filter(|_| is_32(self, index)) else { continue };
            // Every iteration comes here, after the condition.
            let is_certain = self.dominators.dominates(module, body, self.block)
                && self.dominators.dominates(module, self.block, back);
            if is_certain && added.is_none_or(|it| is_32(self, it)) {
                return Some(CountedIndex { counted_loop: counting, added });
            }
        }
        None
    }

    /// Whether all indices that a loop will use are below a count, and the first one that is not.
    fn check_whole_range(
        &mut self,
        code: &mut Vec<u32>,
        counting: usize,
        added: Option<Id>,
        count: u32,
    ) -> Option<(u32, u32)> {
        let (uint, boolean) = (self.cx.ids.uint, self.cx.ids.boolean);
        let LoopCondition { op, end, is_inclusive, .. } = self.loops[counting].condition;
        let first = match self.loops[counting].counter {
            LoopCounter::Phi(_, first) => first.0,
            LoopCounter::Local(variable, _) => {
                let ty = self.cx.types.pointer_value(variable)?.1;
                self.cx.emit_result(code, Op::Load, ty.0, &[variable.0])
            }
        };
        let end_ty = self.cx.types.of_value(end)?;
        let end = self.loop_invariant(code, counting, end)?;
        let added = match added {
            Some(id) => {
                let ty = self.cx.types.of_value(id)?;
                let value = self.loop_invariant(code, counting, id)?;
                Some(self.bitcast_to_uint(code, value, ty))
            }
            None => None,
        };
        let enters = self.cx.emit_result(code, op, boolean, &[first, end]);
        let (first, end) = (self.bitcast_to_uint(code, first, end_ty), self.bitcast_to_uint(code, end, end_ty));
        let last = match is_inclusive {
            true => end,
            false => {
                let one = self.cx.uint_constant(1);
                self.cx.emit_result(code, Op::ISub, uint, &[end, one])
            }
        };
        let [first, last] = [first, last].map(|number| match added {
            Some(added) => self.cx.emit_result(code, Op::IAdd, uint, &[number, added]),
            None => number,
        });
        // Below the first one, the index wrapped around and was every large number on its way.
        let is_past = self.cx.emit_result(code, Op::UGreaterThanEqual, boolean, &[last, count]);
        let wraps = self.cx.emit_result(code, Op::ULessThan, boolean, &[last, first]);
        let is_bad = self.cx.emit_result(code, Op::LogicalOr, boolean, &[is_past, wraps]);
        let is_bad = self.cx.emit_result(code, Op::LogicalAnd, boolean, &[is_bad, enters]);
        let ok = self.cx.emit_result(code, Op::LogicalNot, boolean, &[is_bad]);
        let is_above = self.cx.emit_result(code, Op::UGreaterThan, boolean, &[first, count]);
        Some((ok, self.cx.emit_result(code, Op::Select, uint, &[is_above, first, count])))
    }

    fn bitcast_to_uint(&mut self, code: &mut Vec<u32>, value: u32, ty: Id) -> u32 {
        let uint = self.cx.ids.uint;
        if ty.0 == uint { value } else { self.cx.emit_result(code, Op::Bitcast, uint, &[value]) }
    }

    /// A copy of a value that the loop does not change, before the loop.
    fn loop_invariant(&mut self, code: &mut Vec<u32>, counting: usize, id: Id) -> Option<u32> {
        self.loop_invariant_within(code, counting, id, 0)
    }

    fn loop_invariant_within(&mut self, code: &mut Vec<u32>, counting: usize, id: Id, depth: u32) -> Option<u32> {
        let (module, this) = (self.cx.module, &self.loops[counting]);
        let instruction = module.definition(id)?;
        if instruction.at.0 < module.globals().end || instruction.is(Op::FunctionParameter) {
            return Some(id.0);
        }
        let block = module.block_containing(instruction.at)?;
        if !this.contains(block) {
            return self.dominators.dominates(module, block, this.preheader).then_some(id.0);
        }
        let ty = instruction.id(1).0;
        if instruction.is(Op::ArrayLength)
            && module.definition_index(instruction.id(3)).is_some_and(|it| it.0 < module.globals().end)
        {
            return Some(self.cx.emit_result(code, Op::ArrayLength, ty, instruction.words_from(3)));
        }
        let pure = [Op::Bitcast, Op::CopyObject, Op::IAdd, Op::ISub, Op::IMul, Op::ShiftLeftLogical, Op::BitwiseAnd];
        if let Some(op) = instruction.op().filter(|op| pure.contains(op) && depth < DEPTH_MAX) {
            let mut operands: SmallVec<[u32; 2]> = SmallVec::new();
            for operand in instruction.words_from(3) {
                operands.push(self.loop_invariant_within(code, counting, Id(*operand), depth + 1)?);
            }
            return Some(self.cx.emit_result(code, op, ty, &operands));
        }
        self.reload_before_loop(code, counting, instruction)
    }

    /// A load that may be repeated before the loop: of memory that is not written in it.
    fn reload_before_loop(
        &mut self,
        code: &mut Vec<u32>,
        counting: usize,
        instruction: Instruction<'_>,
    ) -> Option<u32> {
        let (module, this) = (self.cx.module, &self.loops[counting]);
        let pointer = instruction.is(Op::Load).then(|| instruction.id(3)).filter(|_| instruction.word(4) & 1 == 0)?;
        let pointer = match self.cx.types.pointer_value(pointer)?.0 {
            StorageClass::Input | StorageClass::PushConstant => self.constant_chain(code, pointer)?,
            StorageClass::Function => {
                let is_stored = |item: Instruction<'_>| {
                    let is_in = module.block_containing(item.at).is_some_and(|it| this.contains(it));
                    item.is(Op::Store) && item.id(1) == pointer && is_in
                };
                let function = &module.functions()[self.function];
                let is_variable = module.definition(pointer).is_some_and(|it| it.is(Op::Variable));
                let is_free = is_variable && is_whole(module, function, pointer);
                let is_stored = module.instructions(function.instructions.clone()).any(is_stored);
                Some(pointer.0).filter(|_| is_free && !is_stored)?
            }
            _ => return None,
        };
        let id = self.cx.fresh();
        emit_value(code, Op::Load, instruction.word(1), id, &[pointer]);
        Some(id)
    }

    /// A copy of a pointer with constant indices, before the loop.
    fn constant_chain(&mut self, code: &mut Vec<u32>, pointer: Id) -> Option<u32> {
        let module = self.cx.module;
        let is_global = |id: u32| module.definition_index(Id(id)).is_some_and(|it| it.0 < module.globals().end);
        if is_global(pointer.0) {
            return Some(pointer.0);
        }
        let instruction =
            module.definition(pointer).filter(|it| it.is(Op::AccessChain) || it.is(Op::InBoundsAccessChain))?;
        let is_constant = instruction.words_from(3).iter().all(|it| is_global(*it));
        is_constant.then(|| self.cx.emit_result(code, Op::AccessChain, instruction.word(1), instruction.words_from(3)))
    }
}
