//! Goes through the functions that an entry point reaches and remembers what they access.
//!
//! A function is interpreted once for each different set of arguments that it is called with, in the order of its
//! control flow. A branch with a constant condition is decided; of all others both sides are interpreted. The value of
//! a variable is known if the last store to it dominates the load. Otherwise it may be any value that was stored
//! before, and in a loop any value at all.

use std::{collections::HashMap, rc::Rc};

use spirv::{Op, StorageClass};

use crate::{
    Function, Id, Instruction, InstructionIndex, Module, ShaderAccess,
    reflect::{
        constants::Constants,
        flow_graph::{FlowGraph, cases, ends_invocation, local_block},
        pointer::{Pointer, PointerRoot},
        types::{TypeRef, Types},
        value::{Value, join, one_of},
        variables::Variables,
    },
};

/// Calls deeper than this are not followed. SPIR-V has no recursion, so only a damaged module gets there.
const DEPTH_MAX: usize = 64;

/// State of the reflection of one entry point.
pub(super) struct Interpreter<'a> {
    pub(super) module: &'a Module,
    pub(super) types: Types<'a>,
    pub(super) constants: Constants<'a>,
    pub(super) variables: Variables,
    pub(super) traits: EntryPointTraits,
    flows: Vec<Option<Rc<FlowGraph>>>,
    summaries: Vec<Summary>,
    known: HashMap<(usize, Vec<Argument>), usize>,
    /// The functions that are being interpreted.
    stack: Vec<usize>,
    /// The number of instructions that may still be interpreted.
    steps: u64,
    precise_steps: u64,
}

/// Properties of an entry point that do not depend on the place in the control flow.
#[derive(Default)]
pub(super) struct EntryPointTraits {
    /// Something was not followed.
    pub(super) is_incomplete: bool,
    pub(super) may_discard: bool,
    pub(super) may_demote: bool,
    pub(super) reads_depth: bool,
    pub(super) reads_stencil: bool,
    /// Inputs and outputs by place and member: whether read, whether written.
    pub(super) interface: HashMap<(u32, Option<u32>), (bool, bool)>,
    /// The variables of tile images that are read, by place.
    pub(super) tile_images: Vec<u32>,
}

/// The effects of a function, for one set of arguments.
#[derive(Default)]
struct Summary {
    /// Certain where the function is certain.
    accesses: Vec<ShaderAccess>,
    /// Other summaries, and whether they are certain where this one is.
    calls: Vec<(usize, bool)>,
    result: Option<Value>,
    /// The values of variables after the call, for pointers that were passed, by parameter.
    outs: Vec<Option<Value>>,
    may_terminate: bool,
}

/// The arguments of a function.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Argument {
    Value(Value),
    /// A pointer to a variable of a function: what it holds.
    Variable(Value),
}

impl<'a> Interpreter<'a> {
    pub(super) fn new(module: &'a Module, types: Types<'a>, constants: Constants<'a>, variables: Variables) -> Self {
        let steps_half = 32 * u64::from(module.len()) + 500_000;
        Interpreter {
            module,
            types,
            constants,
            variables,
            traits: EntryPointTraits::default(),
            flows: (0..module.functions().len()).map(|_| None).collect(),
            summaries: Vec::new(),
            known: HashMap::new(),
            stack: Vec::new(),
            steps: 2 * steps_half,
            precise_steps: steps_half,
        }
    }

    /// All accesses of an entry point, sorted.
    pub(super) fn run(&mut self, function: usize) -> Vec<ShaderAccess> {
        let Some(entry) = self.summary(function, Vec::new()) else { return Vec::new() };
        let mut seen = vec![[false; 2]; self.summaries.len()];
        let mut stack = vec![(entry, true)];
        let mut accesses = Vec::new();
        while let Some((at, is_certain)) = stack.pop() {
            if std::mem::replace(&mut seen[at][usize::from(is_certain)], true) {
                continue;
            }
            let summary = &self.summaries[at];
            let certain = |it: &ShaderAccess| ShaderAccess { is_certain: it.is_certain && is_certain, ..it.clone() };
            accesses.extend(summary.accesses.iter().map(certain));
            stack.extend(summary.calls.iter().map(|it| (it.0, it.1 && is_certain)));
        }
        // An access that is certain in one call is certain: it sorts first, and the others are removed.
        accesses.sort_by(|left, right| left.sort_key().cmp(&right.sort_key()));
        accesses.dedup_by(|later, first| later.is_same_access(first));
        accesses
    }

    fn summary(&mut self, function: usize, mut arguments: Vec<Argument>) -> Option<usize> {
        if self.steps < self.precise_steps {
            // A shader that does the same with many numbers: they are as good as unknown.
            arguments.iter_mut().for_each(forget_numbers);
        }
        let key = (function, arguments);
        if let Some(known) = self.known.get(&key) {
            return Some(*known);
        }
        let all = &self.module.functions()[function].instructions;
        if self.stack.contains(&function) || self.stack.len() >= DEPTH_MAX || self.steps < all.len() as u64 {
            self.traits.is_incomplete = true;
            return None;
        }
        self.steps -= all.len() as u64;
        self.stack.push(function);
        let summary = CallFrame::new(self, function, &key.1).run();
        self.stack.pop();
        self.summaries.push(summary);
        self.known.insert(key, self.summaries.len() - 1);
        Some(self.summaries.len() - 1)
    }

    fn flow(&mut self, function: usize) -> Rc<FlowGraph> {
        let module = self.module;
        let flow =
            self.flows[function].get_or_insert_with(|| Rc::new(FlowGraph::new(module, &module.functions()[function])));
        flow.clone()
    }
}

fn forget_numbers(argument: &mut Argument) {
    let (Argument::Value(value) | Argument::Variable(value)) = argument;
    let is_number = |it: &Value| matches!(it, Value::Const(_) | Value::Composite(_) | Value::Loaded(_) | Value::Sum(_));
    if value.alternatives().iter().all(is_number) {
        *value = Value::Unknown;
    }
}

/// One run through a function.
pub(super) struct CallFrame<'m, 'a> {
    pub(super) machine: &'m mut Interpreter<'a>,
    pub(super) module: &'a Module,
    pub(super) function: &'a Function,
    flow: Rc<FlowGraph>,
    /// By instruction of the function.
    values: Vec<Value>,
    locals: Vec<LocalVariable>,
    /// Which variable a parameter points to, by parameter.
    passed_locals: Vec<Option<u32>>,
    block: u32,
    live: Vec<bool>,
    known_branches: Vec<Option<u32>>,
    /// Whether the invocation may have ended before this point.
    may_have_ended: bool,
    accesses: Vec<(u32, ShaderAccess)>,
    calls: Vec<(u32, usize, bool)>,
    summary: Summary,
}

/// A variable of a function.
struct LocalVariable {
    ty: TypeRef,
    last: Value,
    last_block: u32,
    /// Anything that was stored so far.
    any_value: Option<Value>,
    is_stored: bool,
}

impl<'m, 'a> CallFrame<'m, 'a> {
    fn new(machine: &'m mut Interpreter<'a>, function: usize, arguments: &[Argument]) -> CallFrame<'m, 'a> {
        let module = machine.module;
        let flow = machine.flow(function);
        let function = &module.functions()[function];
        let blocks = flow.blocks();
        let mut frame = CallFrame {
            machine,
            module,
            function,
            flow,
            values: vec![Value::Unknown; function.instructions.len()],
            locals: Vec::new(),
            passed_locals: vec![None; function.parameters.len()],
            block: 0,
            live: vec![false; blocks],
            known_branches: vec![None; blocks],
            may_have_ended: false,
            accesses: Vec::new(),
            calls: Vec::new(),
            summary: Summary::default(),
        };
        for (number, argument) in arguments.iter().enumerate().take(function.parameters.len()) {
            frame.pass(number, argument);
        }
        frame
    }

    fn pass(&mut self, number: usize, argument: &Argument) {
        let at = self.function.parameters[number];
        let value = match argument {
            Argument::Value(value) => value.clone(),
            Argument::Variable(value) => {
                let pointer = self
                    .module
                    .instruction(at)
                    .result_type()
                    .map_or(TypeRef::MAX, |it| self.machine.types.type_ref(it));
                let ty = self.machine.types.pointee(pointer);
                let cell = self.new_local(ty, Some(value.clone()));
                self.passed_locals[number] = Some(cell);
                self.local_pointer(cell, ty)
            }
        };
        self.set(at, value);
    }

    fn run(mut self) -> Summary {
        if let Some(first) = self.live.first_mut() {
            *first = true;
        }
        let flow = self.flow.clone();
        for block in flow.order.iter().copied() {
            if !self.live[block as usize] {
                continue;
            }
            self.block = block;
            for variable in flow.stored_in_loop(block) {
                self.forget(variable);
            }
            let all = self.module.blocks()[(self.function.blocks.start + block) as usize].instructions.clone();
            for instruction in self.module.instructions(all.clone()) {
                self.visit_instruction(instruction);
            }
            self.leave_block(InstructionIndex(all.end - 1));
        }
        self.finish()
    }

    fn finish(mut self) -> Summary {
        let certain = self.flow.certain(self.module, self.function, &self.known_branches);
        let mut summary = std::mem::take(&mut self.summary);
        summary.calls = self.calls.into_iter().map(|(block, at, may)| (at, may && certain[block as usize])).collect();
        let accesses = self.accesses.into_iter().map(|(block, access)| {
            let is_certain = access.is_certain && certain[block as usize];
            ShaderAccess { is_certain, ..access }
        });
        summary.accesses = accesses.collect();
        // A variable without a store has the value that the caller knows.
        for (out, passed) in summary.outs.iter_mut().zip(&self.passed_locals) {
            out.take_if(|_| passed.is_none_or(|it| !self.locals[it as usize].is_stored));
        }
        summary
    }

    /// Follows the branch at the end of a block.
    fn leave_block(&mut self, last: InstructionIndex) {
        let item = self.module.instruction(last);
        let target = match item.op() {
            Some(Op::BranchConditional) => {
                self.value(item.id(1)).number().map(|condition| item.id(if condition != 0 { 2 } else { 3 }))
            }
            Some(Op::Switch) => self.value(item.id(1)).number().map(|value| {
                let case = cases(self.module, item).into_iter().find(|it| it.0 == value);
                case.map_or(item.id(2), |it| it.1)
            }),
            Some(Op::Return | Op::ReturnValue) => {
                self.leave_function(item);
                None
            }
            _ => None,
        };
        if ends_invocation(self.module, last) {
            self.summary.may_terminate = true;
            self.machine.traits.may_discard |= item.is(Op::Kill) || item.is(Op::TerminateInvocation);
        }
        let target = target.and_then(|it| local_block(self.module, self.function, it));
        self.known_branches[self.block as usize] = target;
        for next in self.flow.successors(self.block) {
            self.live[*next as usize] |= target.is_none_or(|it| it == *next);
        }
    }

    fn leave_function(&mut self, instruction: Instruction<'_>) {
        if instruction.is(Op::ReturnValue) {
            let value = self.value(instruction.id(1));
            self.summary.result = Some(match &self.summary.result {
                Some(before) => join(before, &value),
                None => value,
            });
        }
        self.summary.outs.resize(self.passed_locals.len(), None);
        for number in 0..self.passed_locals.len() {
            let held = self.passed_locals[number].map(|it| self.local_value(it));
            self.summary.outs[number] = match (self.summary.outs[number].take(), held) {
                (Some(left), Some(right)) => Some(join(&left, &right)),
                (before, held) => before.or(held),
            };
        }
    }

    /// A call of another function of the module.
    pub(super) fn call(&mut self, instruction: Instruction<'_>) -> Value {
        let Some(function) = self.module.function_of(instruction.id(3)) else { return Value::Unknown };
        let values: Vec<Value> = instruction.words_from(4).iter().map(|it| self.value(Id(*it))).collect();
        let arguments = values.iter().map(|it| self.argument(it)).collect();
        let summary = self.machine.summary(function, arguments);
        let Some(at) = summary else {
            values.iter().for_each(|it| self.store_local(it, &Value::Unknown));
            return Value::Unknown;
        };
        self.calls.push((self.block, at, !self.may_have_ended));
        let outs = self.machine.summaries[at].outs.clone();
        for (value, out) in values.iter().zip(&outs) {
            if let Some(out) = out {
                self.store_local(value, out);
            }
        }
        let summary = &self.machine.summaries[at];
        self.may_have_ended |= summary.may_terminate;
        self.summary.may_terminate |= summary.may_terminate;
        summary.result.clone().unwrap_or(Value::Unknown)
    }

    fn argument(&self, value: &Value) -> Argument {
        match value {
            Value::Pointer(pointer) if matches!(pointer.root, PointerRoot::Local(..)) => {
                Argument::Variable(self.load_local(pointer))
            }
            other => Argument::Value(other.clone()),
        }
    }

    /// A value by its id.
    pub(super) fn value(&self, id: Id) -> Value {
        let Some(InstructionIndex(at)) = self.module.definition_index(id) else { return Value::Unknown };
        if self.function.instructions.contains(&at) {
            return self.values[(at - self.function.instructions.start) as usize].clone();
        }
        match self.machine.variables.pointer(at) {
            Some(pointer) => Value::Pointer(pointer),
            None => self.machine.constants.get(at).clone(),
        }
    }

    pub(super) fn set(&mut self, at: InstructionIndex, value: Value) {
        self.values[(at.0 - self.function.instructions.start) as usize] = value;
    }

    pub(super) fn phi(&self, instruction: Instruction<'_>) -> Value {
        let mut values = Vec::new();
        for pair in instruction.words_from(3).chunks_exact(2) {
            let Some(from) = local_block(self.module, self.function, Id(pair[1])) else { continue };
            if self.flow.is_back_edge(from, self.block) {
                values.push(Value::Unknown);
            } else if self.live[from as usize] && self.known_branches[from as usize].is_none_or(|it| it == self.block) {
                values.push(self.value(Id(pair[0])));
            }
        }
        if values.iter().all(|it| it.parts().is_some()) {
            let mut all = values.into_iter();
            let Some(first) = all.next() else { return Value::Unknown };
            return all.fold(first, |left, right| join(&left, &right));
        }
        one_of(values)
    }

    /// Remembers an access at this point.
    pub(super) fn add_access(&mut self, mut access: ShaderAccess) {
        access.is_certain &= !self.may_have_ended;
        self.accesses.push((self.block, access));
    }

    /// From here on the invocation may end, or its writes may not count.
    pub(super) fn mark_may_terminate(&mut self) {
        self.may_have_ended = true;
        self.summary.may_terminate = true;
    }

    pub(super) fn new_variable(&mut self, instruction: Instruction<'_>) -> Value {
        if instruction.word(3) != StorageClass::Function as u32 {
            return Value::Unknown;
        }
        let ty = match instruction.op() {
            Some(Op::UntypedVariableKHR) => self.machine.types.type_ref(instruction.id(4)),
            _ => self.machine.types.pointee(self.machine.types.type_ref(instruction.id(1))),
        };
        let initial =
            (instruction.is(Op::Variable) && instruction.words().len() > 4).then(|| self.value(instruction.id(4)));
        let cell = self.new_local(ty, initial);
        self.local_pointer(cell, ty)
    }

    pub(super) fn load_local(&self, pointer: &Pointer) -> Value {
        let PointerRoot::Local(cell, path) = &pointer.root else { return Value::Unknown };
        path.iter().fold(self.local_value(*cell), |value, index| self.part(&value, *index))
    }

    pub(super) fn store_local(&mut self, pointer: &Value, value: &Value) {
        for one in pointer.alternatives() {
            let Value::Pointer(one) = one else { continue };
            let PointerRoot::Local(cell, path) = &one.root else { continue };
            let is_sure = pointer.alternatives().len() == 1;
            let widths = self.part_counts(self.locals[*cell as usize].ty, path);
            let before = self.local_value(*cell);
            let after = before.with_part(path, &widths, value.clone());
            let after = if is_sure { after } else { join(&before, &after) };
            self.set_local_value(*cell, after);
        }
    }

    fn new_local(&mut self, ty: TypeRef, initial: Option<Value>) -> u32 {
        let last = initial.clone().unwrap_or(Value::Unknown);
        self.locals.push(LocalVariable { ty, last, last_block: 0, any_value: initial, is_stored: false });
        self.locals.len() as u32 - 1
    }

    fn local_pointer(&self, cell: u32, ty: TypeRef) -> Value {
        Value::Pointer(Rc::new(Pointer::new(PointerRoot::Local(cell, Rc::new([])), ty)))
    }

    /// The value of a variable at this point.
    fn local_value(&self, cell: u32) -> Value {
        let cell = &self.locals[cell as usize];
        if self.flow.dominates(cell.last_block, self.block) {
            return cell.last.clone();
        }
        cell.any_value.clone().unwrap_or(Value::Unknown)
    }

    fn set_local_value(&mut self, cell: u32, value: Value) {
        let block = self.block;
        let cell = &mut self.locals[cell as usize];
        cell.any_value = Some(match &cell.any_value {
            Some(any) => join(any, &value),
            None => value.clone(),
        });
        (cell.last, cell.last_block, cell.is_stored) = (value, block, true);
    }

    /// A loop begins in which a variable is stored to.
    fn forget(&mut self, variable: Id) {
        let Value::Pointer(pointer) = self.value(variable) else { return };
        let PointerRoot::Local(cell, _) = &pointer.root else { return };
        let value = join(&self.local_value(*cell), &Value::Unknown);
        self.set_local_value(*cell, value);
    }

    /// Into how many parts a type falls, along a path.
    fn part_counts(&self, mut ty: TypeRef, path: &[Option<u32>]) -> Vec<Option<usize>> {
        let types = &self.machine.types;
        let mut widths = Vec::new();
        for index in path {
            widths.push(types.parts(ty));
            ty = types.part(ty, *index);
        }
        widths
    }
}
