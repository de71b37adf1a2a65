//! Changes a module into another one that is mostly valid: blocks are split, others never run, constants are hidden,
//! statements get a loop around them, functions around loads. The validator decides whether it is still valid.

use lavascope_spirv::Module;
use lavascope_test_support::TestRng;
use spirv::{Capability, Op, StorageClass};

/// A module as a list of instructions.
pub(crate) struct ModuleDraft {
    header: Vec<u32>,
    all: Vec<Vec<u32>>,
}

/// A block: the places of its label and of the instruction that ends it.
#[derive(Clone, Copy)]
struct DraftBlock {
    label: usize,
    end: usize,
}

const CHANGES: usize = 12;

impl ModuleDraft {
    pub(crate) fn new(words: &[u32]) -> ModuleDraft {
        let module = Module::parse(words).expect("a module");
        let all = module.all().map(|it| it.words().to_vec()).collect();
        ModuleDraft { header: words[..5].to_vec(), all }
    }

    pub(crate) fn words(&self) -> Vec<u32> {
        self.header.iter().chain(self.all.iter().flatten()).copied().collect()
    }

    /// Does one change, if it finds a place for it. Says which one it was.
    pub(crate) fn change(&mut self, numbers: &mut TestRng) -> usize {
        let kind = numbers.below(CHANGES);
        let _ = match kind {
            0 => self.split(numbers),
            1 => self.dead_block(numbers),
            2 => self.swap_operands(numbers),
            3 => self.hide_operand(numbers),
            4 => self.loop_around(numbers),
            5 => self.outline_load(numbers),
            6 => self.repeat(numbers),
            7 => self.invert_branch(numbers),
            8 => self.chain_of_chains(numbers),
            9 => self.copy_result(numbers),
            10 => self.copy_function(numbers),
            _ => self.branch_around(numbers),
        };
        kind
    }

    fn fresh(&mut self) -> u32 {
        self.header[3] += 1;
        self.header[3] - 1
    }

    fn op(&self, at: usize) -> u32 {
        self.all[at][0] & 0xffff
    }

    fn is(&self, at: usize, op: Op) -> bool {
        self.op(at) == op as u32
    }

    /// A place of a kind, at random.
    fn some(&self, numbers: &mut TestRng, is_it: impl Fn(usize) -> bool) -> Option<usize> {
        let places: Vec<usize> = (0..self.all.len()).filter(|it| is_it(*it)).collect();
        (!places.is_empty()).then(|| places[numbers.below(places.len())])
    }

    fn blocks(&self) -> Vec<DraftBlock> {
        let labels = (0..self.all.len()).filter(|it| self.is(*it, Op::Label));
        let end = |label: usize| (label + 1..self.all.len()).find(|it| self.is_end(*it)).unwrap_or(label);
        labels.map(|label| DraftBlock { label, end: end(label) }).collect()
    }

    fn is_end(&self, at: usize) -> bool {
        let ends = [
            Op::Branch,
            Op::BranchConditional,
            Op::Switch,
            Op::Return,
            Op::ReturnValue,
            Op::Kill,
            Op::Unreachable,
            Op::TerminateInvocation,
            Op::EmitMeshTasksEXT,
            Op::IgnoreIntersectionKHR,
            Op::TerminateRayKHR,
        ];
        ends.iter().any(|it| self.is(at, *it))
    }

    /// Where a block may be split: behind its phis and variables, before its merge instruction.
    fn cuts(&self, block: DraftBlock) -> std::ops::Range<usize> {
        let is_head =
            |at: usize| [Op::Phi, Op::Variable, Op::Line, Op::NoLine, Op::Label].iter().any(|it| self.is(at, *it));
        let first = (block.label..block.end).find(|it| !is_head(*it)).unwrap_or(block.end);
        let has_merge =
            block.end > 0 && (self.is(block.end - 1, Op::SelectionMerge) || self.is(block.end - 1, Op::LoopMerge));
        first..(if has_merge { block.end - 1 } else { block.end }).max(first) + 1
    }

    fn some_cut(&self, numbers: &mut TestRng) -> Option<(DraftBlock, usize)> {
        let blocks = self.blocks();
        let block = *blocks.get(numbers.below(blocks.len()))?;
        let cuts = self.cuts(block);
        let is_loop = self.is(block.end - 1, Op::LoopMerge);
        (!is_loop).then(|| (block, cuts.start + numbers.below(cuts.len())))
    }

    fn insert(&mut self, at: usize, instructions: Vec<Vec<u32>>) {
        self.all.splice(at..at, instructions);
    }

    /// Phis that came from one block come from another.
    fn rename_parent(&mut self, from: u32, to: u32) {
        for values in self.all.iter_mut().filter(|it| it[0] & 0xffff == Op::Phi as u32) {
            values.iter_mut().skip(4).step_by(2).filter(|it| **it == from).for_each(|it| *it = to);
        }
    }

    fn split(&mut self, numbers: &mut TestRng) -> Option<()> {
        let (block, at) = self.some_cut(numbers)?;
        let (label, next) = (self.all[block.label][1], self.fresh());
        self.rename_parent(label, next);
        self.insert(at, vec![one(Op::Branch, &[next]), one(Op::Label, &[next])]);
        Some(())
    }

    fn boolean(&mut self) -> u32 {
        let there = (0..self.all.len()).find(|it| self.is(*it, Op::TypeBool));
        match there {
            Some(at) => self.all[at][1],
            None => self.global(Op::TypeBool, None, &[]),
        }
    }

    /// Adds a type, a constant or a variable before the first function.
    fn global(&mut self, op: Op, ty: Option<u32>, operands: &[u32]) -> u32 {
        let id = self.fresh();
        let words: Vec<u32> = ty.into_iter().chain([id]).chain(operands.iter().copied()).collect();
        let at = (0..self.all.len()).find(|it| self.is(*it, Op::Function)).unwrap_or(self.all.len());
        self.insert(at, vec![one(op, &words)]);
        id
    }

    fn bool_constant(&mut self, op: Op) -> u32 {
        let boolean = self.boolean();
        let there = (0..self.all.len()).find(|it| self.is(*it, op));
        there.map(|it| self.all[it][2]).unwrap_or_else(|| self.global(op, Some(boolean), &[]))
    }

    /// The store before the cut is copied into a block that is never reached.
    fn dead_block(&mut self, numbers: &mut TestRng) -> Option<()> {
        let no = self.bool_constant(Op::ConstantFalse);
        let (block, at) = self.some_cut(numbers)?;
        let label = self.all[block.label][1];
        let store = (block.label..at).rev().find(|it| self.is(*it, Op::Store)).map(|it| self.all[it].clone());
        let (dead, rest) = (self.fresh(), self.fresh());
        self.rename_parent(label, rest);
        let mut added = vec![
            one(Op::SelectionMerge, &[rest, 0]),
            one(Op::BranchConditional, &[no, dead, rest]),
            one(Op::Label, &[dead]),
        ];
        added.extend(store);
        added.extend([one(Op::Branch, &[rest]), one(Op::Label, &[rest])]);
        self.insert(at, added);
        Some(())
    }

    /// A statement runs only where a condition holds that always does.
    fn branch_around(&mut self, numbers: &mut TestRng) -> Option<()> {
        let yes = self.bool_constant(Op::ConstantTrue);
        let at = self.some(numbers, |it| self.is(it, Op::Store))?;
        let block = self.blocks().into_iter().find(|it| it.label < at && at < it.end)?;
        let label = self.all[block.label][1];
        let (inner, rest) = (self.fresh(), self.fresh());
        self.rename_parent(label, rest);
        self.insert(at + 1, vec![one(Op::Branch, &[rest]), one(Op::Label, &[rest])]);
        self.insert(
            at,
            vec![
                one(Op::SelectionMerge, &[rest, 0]),
                one(Op::BranchConditional, &[yes, inner, rest]),
                one(Op::Label, &[inner]),
            ],
        );
        Some(())
    }

    fn swap_operands(&mut self, numbers: &mut TestRng) -> Option<()> {
        let turned = [
            (Op::ULessThan, Op::UGreaterThan),
            (Op::SLessThan, Op::SGreaterThan),
            (Op::ULessThanEqual, Op::UGreaterThanEqual),
        ];
        let same = [Op::IAdd, Op::IMul, Op::FAdd, Op::FMul, Op::BitwiseAnd, Op::BitwiseXor, Op::IEqual, Op::LogicalAnd];
        let of = |value: u32| {
            let there = turned.iter().find_map(|(a, b)| {
                (value == *a as u32).then_some(*b as u32).or((value == *b as u32).then_some(*a as u32))
            });
            there.or(same.iter().any(|same| *same as u32 == value).then_some(value))
        };
        let at = self.some(numbers, |it| of(self.op(it)).is_some())?;
        let op = of(self.op(at))?;
        self.all[at][0] = self.all[at][0] & 0xffff_0000 | op;
        self.all[at].swap(3, 4);
        Some(())
    }

    fn type_of(&self, id: u32) -> Option<u32> {
        let typed = |values: &&Vec<u32>| {
            let form = lavascope_spirv::grammar::instruction_form((values[0] & 0xffff) as u16);
            form.is_some_and(|form| form.0 == lavascope_spirv::grammar::InstructionForm::Typed) && values[2] == id
        };
        self.all.iter().find(typed).map(|it| it[1])
    }

    fn is_constant(&self, id: u32) -> bool {
        let ops = [Op::Constant, Op::ConstantComposite, Op::ConstantTrue, Op::ConstantFalse, Op::SpecConstant];
        self.all.iter().any(|it| ops.iter().any(|op| it[0] & 0xffff == *op as u32) && it[2] == id)
    }

    /// A constant is no longer seen to be one.
    fn hide_operand(&mut self, numbers: &mut TestRng) -> Option<()> {
        let first = (0..self.all.len()).find(|it| self.is(*it, Op::Function))?;
        let kinds =
            [Op::AccessChain, Op::InBoundsAccessChain, Op::IAdd, Op::IMul, Op::Store, Op::ULessThan, Op::Select];
        let at = self.some(numbers, |it| it > first && kinds.iter().any(|kind| self.is(it, *kind)))?;
        let from = if self.is(at, Op::Store) { 2 } else { 3 };
        let place = from + numbers.below(self.all[at].len() - from);
        let id = self.all[at][place];
        let ty = self.type_of(id).filter(|_| self.is_constant(id))?;
        let hidden = self.fresh();
        self.all[at][place] = hidden;
        let kind = numbers.below(2);
        let yes = self.bool_constant(Op::ConstantTrue);
        // Added instructions may have moved it.
        let at = self.all.iter().position(|it| it.get(place) == Some(&hidden))?;
        let made = match kind {
            0 => one(Op::CopyObject, &[ty, hidden, id]),
            _ => one(Op::Select, &[ty, hidden, yes, id, id]),
        };
        self.insert(at, vec![made]);
        Some(())
    }

    /// The rest of a block becomes the body of a loop that runs once.
    fn loop_around(&mut self, numbers: &mut TestRng) -> Option<()> {
        let yes = self.bool_constant(Op::ConstantTrue);
        let (block, at) = self.some_cut(numbers)?;
        let label = self.all[block.label][1];
        let last = self.cuts(block).end - 1;
        let [head, body, next, merge] = [0; 4].map(|_| self.fresh());
        self.rename_parent(label, merge);
        self.insert(
            last,
            vec![
                one(Op::BranchConditional, &[yes, merge, next]),
                one(Op::Label, &[next]),
                one(Op::Branch, &[head]),
                one(Op::Label, &[merge]),
            ],
        );
        self.insert(
            at,
            vec![
                one(Op::Branch, &[head]),
                one(Op::Label, &[head]),
                one(Op::LoopMerge, &[merge, next, 0]),
                one(Op::Branch, &[body]),
                one(Op::Label, &[body]),
            ],
        );
        Some(())
    }

    /// A load goes into a function of its own, which gets the pointer.
    fn outline_load(&mut self, numbers: &mut TestRng) -> Option<()> {
        let at = self.some(numbers, |it| self.is(it, Op::Load) && self.all[it].len() == 4)?;
        let [ty, id, pointer] = self.all[at][1..4] else { return None };
        let pointer_ty = self.type_of(pointer)?;
        let is_buffer = |values: &Vec<u32>| {
            values[0] & 0xffff == Op::TypePointer as u32
                && values[1] == pointer_ty
                && values[2] == StorageClass::StorageBuffer as u32
        };
        self.all.iter().find(|it| is_buffer(it))?;
        let [function_ty, function, parameter, label, loaded] = [0; 5].map(|_| self.fresh());
        self.all[at] = one(Op::FunctionCall, &[ty, id, function, pointer]);
        self.all.extend([
            one(Op::Function, &[ty, function, 0, function_ty]),
            one(Op::FunctionParameter, &[pointer_ty, parameter]),
            one(Op::Label, &[label]),
            one(Op::Load, &[ty, loaded, parameter]),
            one(Op::ReturnValue, &[loaded]),
            one(Op::FunctionEnd, &[]),
        ]);
        let first = (0..self.all.len()).find(|it| self.is(*it, Op::Function))?;
        self.insert(first, vec![one(Op::TypeFunction, &[function_ty, ty, pointer_ty])]);
        self.insert(0, vec![one(Op::Capability, &[Capability::VariablePointersStorageBuffer as u32])]);
        Some(())
    }

    /// A store happens twice, or a value is made twice.
    fn repeat(&mut self, numbers: &mut TestRng) -> Option<()> {
        let first = (0..self.all.len()).find(|it| self.is(*it, Op::Function))?;
        let kinds = [Op::Store, Op::Load, Op::AccessChain, Op::IAdd, Op::ImageWrite, Op::AtomicIAdd];
        let at = self.some(numbers, |it| it > first && kinds.iter().any(|kind| self.is(it, *kind)))?;
        let mut again = self.all[at].clone();
        if !self.is(at, Op::Store) && !self.is(at, Op::ImageWrite) {
            again[2] = self.fresh();
        }
        self.insert(at + 1, vec![again]);
        Some(())
    }

    fn invert_branch(&mut self, numbers: &mut TestRng) -> Option<()> {
        let boolean = self.boolean();
        let at = self.some(numbers, |it| self.is(it, Op::BranchConditional))?;
        let negated = self.fresh();
        let condition = std::mem::replace(&mut self.all[at][1], negated);
        self.all[at].truncate(4);
        self.all[at][0] = 4 << 16 | Op::BranchConditional as u32;
        self.all[at].swap(2, 3);
        let has_merge = self.is(at - 1, Op::SelectionMerge) || self.is(at - 1, Op::LoopMerge);
        let place = if has_merge { at - 1 } else { at };
        self.insert(place, vec![one(Op::LogicalNot, &[boolean, negated, condition])]);
        Some(())
    }

    /// An access chain goes its last step in a chain of its own.
    fn chain_of_chains(&mut self, numbers: &mut TestRng) -> Option<()> {
        let at = self.some(numbers, |it| self.is(it, Op::AccessChain) && self.all[it].len() > 5)?;
        let chain = self.all[at].clone();
        let shorter = chain.len() - 1;
        // Some other chain must know the type of the pointer between.
        let same = |values: &&Vec<u32>| {
            values[0] & 0xffff == Op::AccessChain as u32 && values.len() == shorter && values[3..] == chain[3..shorter]
        };
        let ty = self.all.iter().find(same).map(|it| it[1]).or_else(|| self.step_type(&chain[3..shorter]))?;
        let between = self.fresh();
        let operands: Vec<u32> = [ty, between].into_iter().chain(chain[3..shorter].iter().copied()).collect();
        let at = self.all.iter().position(|it| it[..] == chain[..])?;
        self.all[at] = one(Op::AccessChain, &[chain[1], chain[2], between, chain[shorter]]);
        self.insert(at, vec![one(Op::AccessChain, &operands)]);
        Some(())
    }

    /// The type of a pointer to what indices from a variable on lead to, which is added.
    fn step_type(&mut self, path: &[u32]) -> Option<u32> {
        let made = |draft: &ModuleDraft, id: u32| draft.all.iter().find(|it| is_type(it) && it[1] == id).cloned();
        let pointer = self.type_of(path[0]).and_then(|it| made(self, it)).filter(|it| it.len() == 4)?;
        let mut ty = pointer[3];
        for index in &path[1..] {
            let values = made(self, ty)?;
            let is = |op: Op| values[0] & 0xffff == op as u32;
            ty = match () {
                () if is(Op::TypeStruct) => {
                    let number =
                        self.all.iter().find(|it| it[0] & 0xffff == Op::Constant as u32 && it[2] == *index)?[3];
                    *values.get(2 + number as usize)?
                }
                () if is(Op::TypeArray) || is(Op::TypeRuntimeArray) || is(Op::TypeMatrix) => values[2],
                () => return None,
            };
        }
        let there =
            self.all.iter().find(|it| it[0] & 0xffff == Op::TypePointer as u32 && it[2] == pointer[2] && it[3] == ty);
        Some(there.map(|it| it[1]).unwrap_or_else(|| self.global(Op::TypePointer, None, &[pointer[2], ty])))
    }

    /// Uses of a value use a copy of it from here on.
    fn copy_result(&mut self, numbers: &mut TestRng) -> Option<()> {
        let first = (0..self.all.len()).find(|it| self.is(*it, Op::Function))?;
        let kinds = [Op::AccessChain, Op::Load, Op::IAdd, Op::CompositeExtract, Op::SampledImage];
        let at = self.some(numbers, |it| it > first && kinds.iter().any(|kind| self.is(it, *kind)))?;
        let (ty, id, copy) = (self.all[at][1], self.all[at][2], self.fresh());
        let end = (at..self.all.len()).find(|it| self.is_end(*it))?;
        for values in &mut self.all[at + 1..end] {
            let from = if values[0] & 0xffff == Op::Store as u32 { 1 } else { 3 };
            values.iter_mut().skip(from).filter(|it| **it == id).for_each(|it| *it = copy);
        }
        self.insert(at + 1, vec![one(Op::CopyObject, &[ty, copy, id])]);
        Some(())
    }

    /// A call goes to a copy of its function.
    fn copy_function(&mut self, numbers: &mut TestRng) -> Option<()> {
        let call = self.some(numbers, |it| self.is(it, Op::FunctionCall))?;
        let called = self.all[call][3];
        let start = (0..self.all.len()).find(|it| self.is(*it, Op::Function) && self.all[*it][2] == called)?;
        let end = (start..self.all.len()).find(|it| self.is(*it, Op::FunctionEnd))?;
        let mut copy: Vec<Vec<u32>> = self.all[start..=end].to_vec();
        let made: Vec<u32> = copy.iter().filter_map(|it| result(it)).collect();
        for old in made {
            let new = self.fresh();
            for values in &mut copy {
                // Literals are taken for ids here; the validator sorts out what went wrong.
                values.iter_mut().skip(1).filter(|it| **it == old).for_each(|it| *it = new);
            }
            if old == called {
                self.all[call][3] = new;
            }
        }
        self.all.extend(copy);
        Some(())
    }
}

fn is_type(values: &[u32]) -> bool {
    (Op::TypeVoid as u32..=Op::TypeForwardPointer as u32).contains(&(values[0] & 0xffff))
}

fn result(values: &[u32]) -> Option<u32> {
    use lavascope_spirv::grammar::{InstructionForm, instruction_form};
    match instruction_form((values[0] & 0xffff) as u16)?.0 {
        InstructionForm::Plain => None,
        InstructionForm::Result => Some(values[1]),
        InstructionForm::Typed => Some(values[2]),
    }
}

fn one(op: Op, operands: &[u32]) -> Vec<u32> {
    lavascope_spirv::instruction(op, operands)
}
