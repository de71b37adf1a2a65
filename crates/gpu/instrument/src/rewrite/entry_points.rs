//! The state of entry points: the id of the invocation, the root table, and the variables of their interface.

use lavascope_spirv::{Editor, EntryPoint, Id, Module, instruction};
use rustc_hash::{FxHashMap, FxHashSet};
use spirv::{BuiltIn, Decoration, ExecutionMode, ExecutionModel, Op, StorageClass};

use crate::analysis::types::{MatrixLayout, Types};
use crate::rewrite::context::{Context, emit};
use crate::rewrite::table_access::TableAccess;
use crate::{InstrumentError, RootLocation};

/// How a record learns which invocation wrote it.
pub(crate) enum InvocationSource {
    /// There is one entry point: its stage, and what its words are made of.
    One(u32, InvocationInputs),
    /// There are several: each puts stage and words into private variables first.
    Many([u32; 4]),
}

/// The three words that identify the invocation.
#[derive(Clone, Copy)]
pub(crate) enum InvocationInputs {
    /// Inputs with their components.
    Inputs([Option<BuiltInInput>; 3]),
    /// The group, its size, and which invocation of it. Drivers make the number of an invocation of these as a vector,
    /// which takes them longer than what records need of it, and shaders mostly need less.
    Group(BuiltInInput, [u32; 3], BuiltInInput),
}

/// A component of an input.
#[derive(Clone, Copy)]
pub(crate) struct BuiltInInput {
    variable: u32,
    /// The types of the variable and of a component.
    ty: u32,
    scalar_type: u32,
    component: Option<u32>,
}

/// The code at the beginning of an entry point.
#[derive(Clone)]
pub(crate) struct Prologue {
    pub(crate) code: Vec<u32>,
    /// A pointer to the root table, where that is pushed.
    pub(crate) root: Option<u32>,
}

/// The code that entry points begin with, by their function, and what their interfaces get.
pub(crate) struct EntryPrologues {
    pub(crate) stages: InvocationSource,
    pub(crate) prologues: FxHashMap<Id, Prologue>,
    /// By entry point: inputs and blocks of its own.
    added_interfaces: Vec<Vec<u32>>,
}

impl EntryPrologues {
    pub(crate) fn new(cx: &mut Context<'_>) -> Result<EntryPrologues, InstrumentError> {
        let entries = cx.module.entries();
        let mut own: Vec<Vec<u32>> = vec![Vec::new(); entries.len()];
        let mut prologues: FxHashMap<Id, Prologue> = FxHashMap::default();
        let mut models: FxHashMap<Id, u32> = FxHashMap::default();
        let shared = (entries.len() > 1).then(|| stage_variables(cx));
        let mut one = None;
        let push = PushConstants::new(cx)?;
        for (at, entry) in entries.iter().enumerate() {
            if *models.entry(entry.function).or_insert(entry.model) != entry.model {
                return Err(InstrumentError::SharedFunction(entry.function.0));
            }
            let inputs = words_of(cx, entry, &mut own[at]);
            let mut code = Vec::new();
            let pushed = push.as_ref().map(|it| it.load(cx, &mut code, entry));
            own[at].extend(pushed.map(|it| it.0));
            match shared {
                Some(variables) => {
                    let words = stage_words(cx, &mut code, entry.model, &inputs);
                    (0..4).for_each(|it| emit(&mut code, Op::Store, &[variables[it], words[it]]));
                }
                None => one = Some(InvocationSource::One(entry.model, inputs)),
            }
            prologues.entry(entry.function).or_insert(Prologue { code, root: pushed.map(|it| it.1) });
        }
        let stages = shared.map(InvocationSource::Many).or(one).ok_or(InstrumentError::NoEntry)?;
        Ok(EntryPrologues { stages, prologues, added_interfaces: own })
    }

    /// Adds used variables to the interfaces: inputs always, from version 1.4 on all variables.
    pub(crate) fn extend_interfaces(&self, cx: &mut Context<'_>) {
        let is_all = cx.module.version() >= (1, 4);
        for (at, own) in self.added_interfaces.iter().enumerate() {
            let entry = &cx.module.entries()[at];
            let ours = if is_all { cx.ids.variables.clone() } else { Vec::new() };
            let mut there: FxHashSet<u32> = entry.interface.iter().map(|it| it.0).collect();
            for id in own.iter().copied().chain(ours) {
                let is_input = is_input(cx, id);
                if (is_all || is_input) && there.insert(id) {
                    cx.editor.extend_interface(at, Id(id));
                }
            }
        }
    }
}

/// Whether a variable is an input: one of the module, or an added one, which is never in the module.
fn is_input(cx: &Context<'_>, id: u32) -> bool {
    match cx.module.definition(Id(id)) {
        Some(instruction) => instruction.word(3) == StorageClass::Input as u32,
        None => !cx.ids.variables.contains(&id),
    }
}

impl InvocationSource {
    /// The stage and the three words of an invocation.
    pub(crate) fn words(&self, cx: &mut Context<'_>, code: &mut Vec<u32>) -> [u32; 4] {
        match self {
            InvocationSource::One(model, inputs) => stage_words(cx, code, *model, inputs),
            InvocationSource::Many(variables) => {
                let uint = cx.ids.uint;
                variables.map(|it| cx.emit_result(code, Op::Load, uint, &[it]))
            }
        }
    }
}

fn stage_words(cx: &mut Context<'_>, code: &mut Vec<u32>, model: u32, words: &InvocationInputs) -> [u32; 4] {
    let (stage, uint) = (cx.uint_constant(model), cx.ids.uint);
    let loaded = &mut Vec::new();
    let [a, b, c] = match *words {
        InvocationInputs::Inputs(inputs) => inputs.map(|in_input| match in_input {
            Some(input) => input.load(cx, code, loaded),
            None => cx.uint_constant(0),
        }),
        InvocationInputs::Group(group, size, local) => [0, 1, 2].map(|component| {
            let part = |it: BuiltInInput| BuiltInInput { component: Some(component), ..it };
            let group = part(group).load(cx, code, loaded);
            if size[component as usize] == 1 {
                return group;
            }
            let (size, local) = (cx.uint_constant(size[component as usize]), part(local).load(cx, code, loaded));
            let first = cx.emit_result(code, Op::IMul, uint, &[group, size]);
            cx.emit_result(code, Op::IAdd, uint, &[first, local])
        }),
    };
    [stage, a, b, c]
}

impl BuiltInInput {
    /// `loaded` has the variables that were loaded before, and their values.
    fn load(self, cx: &mut Context<'_>, code: &mut Vec<u32>, loaded: &mut Vec<(u32, u32)>) -> u32 {
        let uint = cx.ids.uint;
        let before = loaded.iter().find(|it| it.0 == self.variable).map(|it| it.1);
        let all = before.unwrap_or_else(|| {
            let all = cx.emit_result(code, Op::Load, self.ty, &[self.variable]);
            loaded.push((self.variable, all));
            all
        });
        let part = match self.component {
            Some(component) => cx.emit_result(code, Op::CompositeExtract, self.scalar_type, &[all, component]),
            None => all,
        };
        if self.scalar_type == uint { part } else { cx.emit_result(code, Op::Bitcast, uint, &[part]) }
    }
}

/// Private variables for the stage and three words.
fn stage_variables(cx: &mut Context<'_>) -> [u32; 4] {
    let pointer = Id(cx.ids.private_uint);
    [0; 4].map(|_| {
        let variable = cx.editor.new_variable(pointer, StorageClass::Private).0;
        cx.ids.variables.push(variable);
        variable
    })
}

/// The built-ins that identify the invocation of an entry point.
fn words_of(cx: &mut Context<'_>, entry: &EntryPoint, own: &mut Vec<u32>) -> InvocationInputs {
    let is_group = entry.model == ExecutionModel::GLCompute as u32;
    let Some(size) = group_size(cx.module, entry).filter(|_| is_group) else {
        return InvocationInputs::Inputs(inputs(cx, entry, own));
    };
    let [group, local] = [BuiltIn::WorkgroupId, BuiltIn::LocalInvocationId].map(|it| input(cx, entry, it, Some(0)));
    own.extend([group.variable, local.variable]);
    InvocationInputs::Group(group, size, local)
}

/// The size of the groups of an entry point, if it is a literal and no constant overrides it.
fn group_size(module: &Module, entry: &EntryPoint) -> Option<[u32; 3]> {
    let mut size = None;
    for instruction in module.instructions(module.globals()) {
        let says = instruction.is(Op::Decorate) && instruction.word(2) == Decoration::BuiltIn as u32;
        if says && instruction.word(3) == BuiltIn::WorkgroupSize as u32 {
            return None;
        }
        let is_size = instruction.is(Op::ExecutionMode) && instruction.word(2) == ExecutionMode::LocalSize as u32;
        if is_size && instruction.id(1) == entry.function {
            size = Some([instruction.word(3), instruction.word(4), instruction.word(5)]);
        }
    }
    size
}

/// The inputs that identify the invocation of a stage.
fn inputs(cx: &mut Context<'_>, entry: &EntryPoint, own: &mut Vec<u32>) -> [Option<BuiltInInput>; 3] {
    let scalar = |built_in| Some((built_in, None));
    let part = |built_in, component| Some((built_in, Some(component)));
    let all = |built_in| [part(built_in, 0), part(built_in, 1), part(built_in, 2)];
    let wanted = match ExecutionModel::from_u32(entry.model) {
        Some(ExecutionModel::Vertex) => [scalar(BuiltIn::VertexIndex), scalar(BuiltIn::InstanceIndex), None],
        Some(ExecutionModel::TessellationControl) => {
            [scalar(BuiltIn::InvocationId), scalar(BuiltIn::PrimitiveId), None]
        }
        Some(ExecutionModel::TessellationEvaluation) => {
            [scalar(BuiltIn::PrimitiveId), part(BuiltIn::TessCoord, 0), part(BuiltIn::TessCoord, 1)]
        }
        Some(ExecutionModel::Geometry) => [scalar(BuiltIn::PrimitiveId), scalar(BuiltIn::InvocationId), None],
        Some(ExecutionModel::Fragment) => [part(BuiltIn::FragCoord, 0), part(BuiltIn::FragCoord, 1), None],
        Some(
            ExecutionModel::GLCompute
            | ExecutionModel::TaskEXT
            | ExecutionModel::MeshEXT
            | ExecutionModel::TaskNV
            | ExecutionModel::MeshNV,
        ) => all(BuiltIn::GlobalInvocationId),
        Some(
            ExecutionModel::RayGenerationKHR
            | ExecutionModel::IntersectionKHR
            | ExecutionModel::AnyHitKHR
            | ExecutionModel::ClosestHitKHR
            | ExecutionModel::MissKHR
            | ExecutionModel::CallableKHR,
        ) => all(BuiltIn::LaunchIdKHR),
        Some(ExecutionModel::Kernel) | None => [None; 3],
    };
    wanted.map(|pair| {
        let (built_in, component) = pair?;
        let input = input(cx, entry, built_in, component);
        own.push(input.variable);
        Some(input)
    })
}

/// The variable of a built-in: the entry point's, or one of ours.
fn input(cx: &mut Context<'_>, entry: &EntryPoint, built_in: BuiltIn, component: Option<u32>) -> BuiltInInput {
    let is_it = |id: &&Id| {
        let is_input = cx
            .module
            .definition(**id)
            .is_some_and(|it| it.is(Op::Variable) && it.word(3) == StorageClass::Input as u32);
        is_input && cx.module.decoration_operand(**id, None, Decoration::BuiltIn) == Some(built_in as u32)
    };
    let there = entry.interface.iter().find(is_it).and_then(|it| Some((it.0, cx.types.pointer_value(*it)?.1)));
    if let Some((variable, ty)) = there {
        let number = cx.module.definition(ty).filter(|it| it.is(Op::TypeVector)).map_or(ty, |it| it.id(2));
        return BuiltInInput { variable, ty: ty.0, scalar_type: number.0, component };
    }
    if let Some(input) = cx.inputs.get(&(built_in as u32)) {
        return BuiltInInput { component, ..*input };
    }
    let number = match built_in {
        BuiltIn::FragCoord | BuiltIn::TessCoord => cx.editor.find_or_add_type(Op::TypeFloat, &[32]).0,
        _ => cx.ids.uint,
    };
    let count = match built_in {
        BuiltIn::FragCoord => 4,
        BuiltIn::TessCoord
        | BuiltIn::GlobalInvocationId
        | BuiltIn::WorkgroupId
        | BuiltIn::LocalInvocationId
        | BuiltIn::LaunchIdKHR => 3,
        _ => 1,
    };
    let ty = if count == 1 { number } else { cx.editor.find_or_add_type(Op::TypeVector, &[number, count]).0 };
    let pointer = cx.editor.find_or_add_type(Op::TypePointer, &[StorageClass::Input as u32, ty]);
    let variable = cx.editor.new_variable(pointer, StorageClass::Input);
    cx.editor.decorate(variable, Decoration::BuiltIn, &[built_in as u32]);
    let input = BuiltInInput { variable: variable.0, ty, scalar_type: number, component };
    cx.inputs.insert(built_in as u32, input);
    input
}

/// The push constants of a module, with the address of the root table behind them.
struct PushConstants {
    /// Variables, and the member that has the address.
    blocks: Vec<(Id, u32)>,
    /// By function of an entry point: the variable that it uses.
    used: FxHashMap<Id, usize>,
}

impl PushConstants {
    /// Nothing where the address is elsewhere.
    fn new(cx: &mut Context<'_>) -> Result<Option<PushConstants>, InstrumentError> {
        let RootLocation::PushConstant { offset } = cx.options.root else { return Ok(None) };
        let variables = push_constants(cx.module);
        let mut blocks = Vec::new();
        let mut grown = FxHashSet::default();
        for variable in &variables {
            let (_, block) = cx.types.pointer_value(*variable).ok_or(InstrumentError::PushConstants)?;
            let members = cx.types.structure(block).ok_or(InstrumentError::PushConstants)?.members.len() as u32;
            if grown.insert(block) {
                let is_behind = cx.types.size(block, MatrixLayout::default()).is_some_and(|it| it <= u64::from(offset));
                if !is_behind || is_constructed(cx.module, block) {
                    return Err(InstrumentError::PushConstants);
                }
                append_root_members(cx, block, members, offset);
            }
            blocks.push((*variable, members));
        }
        if blocks.is_empty() {
            blocks.push((new_block(cx, offset), 0));
        }
        let used = if blocks.len() > 1 { used_blocks(cx.module, &blocks) } else { FxHashMap::default() };
        Ok(Some(PushConstants { blocks, used }))
    }

    /// Makes a pointer of the address, and puts it where other functions find it. Returns the block's variable, too.
    fn load(&self, cx: &mut Context<'_>, code: &mut Vec<u32>, entry: &EntryPoint) -> (u32, u32) {
        let (variable, member) = self.blocks[self.used.get(&entry.function).copied().unwrap_or(0)];
        let uint = cx.ids.uint;
        let pointer = cx.editor.find_or_add_type(Op::TypePointer, &[StorageClass::PushConstant as u32, uint]).0;
        let halves = [0, 1].map(|half| {
            let member = cx.uint_constant(member + half);
            let word = cx.emit_result(code, Op::AccessChain, pointer, &[variable.0, member]);
            cx.emit_result(code, Op::Load, uint, &[word])
        });
        let pair = cx.emit_result(code, Op::CompositeConstruct, cx.ids.uint_pair, &halves);
        let root = cx.emit_result(code, Op::Bitcast, cx.ids.pointer_types.root, &[pair]);
        if let TableAccess::Pushed(Some(variable)) = cx.ids.table_access {
            emit(code, Op::Store, &[variable, root]);
        }
        (variable.0, root)
    }
}

fn push_constants(module: &Module) -> Vec<Id> {
    let variables = module.instructions(module.globals()).filter(|it| it.is(Op::Variable));
    variables.filter(|it| it.word(3) == StorageClass::PushConstant as u32).map(|it| it.id(2)).collect()
}

/// The structures of push constants get members of the type `uint`, so that type must stand before them.
pub(crate) fn move_integers_up(editor: &mut Editor<'_>) {
    let module = editor.module();
    let types = Types::new(module);
    let blocks = push_constants(module).into_iter().filter_map(|it| types.pointer_value(it)).map(|it| it.1);
    if let Some(first) = blocks.filter_map(|it| module.definition_index(it)).min() {
        editor.integer_before(first, 32, false);
    }
}

/// Whether values of a structure are made of their members, which then would be too few.
fn is_constructed(module: &Module, structure: Id) -> bool {
    module.all().any(|instruction| {
        let makes = matches!(
            instruction.op(),
            Some(Op::CompositeConstruct | Op::ConstantComposite | Op::SpecConstantComposite | Op::CopyLogical)
        );
        makes && instruction.id(1) == structure
    })
}

fn append_root_members(cx: &mut Context<'_>, block: Id, members: u32, offset: u32) {
    let Some(other) = cx.module.definition(block) else { return };
    let operands = [other.words_from(1), &[cx.ids.uint; 2]].concat();
    cx.editor.replace(other.at, instruction(Op::TypeStruct, &operands));
    cx.editor.decorate_member(block, members, Decoration::Offset, &[offset]);
    cx.editor.decorate_member(block, members + 1, Decoration::Offset, &[offset.saturating_add(4)]);
}

fn new_block(cx: &mut Context<'_>, offset: u32) -> Id {
    let block = cx.editor.new_type(Op::TypeStruct, &[cx.ids.uint; 2]);
    cx.editor.decorate(block, Decoration::Block, &[]);
    cx.editor.decorate_member(block, 0, Decoration::Offset, &[offset]);
    cx.editor.decorate_member(block, 1, Decoration::Offset, &[offset.saturating_add(4)]);
    let class = StorageClass::PushConstant;
    let pointer = cx.editor.find_or_add_type(Op::TypePointer, &[class as u32, block.0]);
    let variable = cx.editor.new_variable(pointer, class);
    cx.ids.variables.push(variable.0);
    variable
}

/// Which of several blocks each entry point reaches.
fn used_blocks(module: &Module, blocks: &[(Id, u32)]) -> FxHashMap<Id, usize> {
    let mut used = FxHashMap::default();
    for entry in module.entries() {
        let mut seen = FxHashSet::default();
        let mut open: Vec<usize> = module.function_of(entry.function).into_iter().collect();
        while let Some(function) = open.pop() {
            if !seen.insert(function) {
                continue;
            }
            for instruction in module.instructions(module.functions()[function].instructions.clone()) {
                if instruction.is(Op::FunctionCall) {
                    open.extend(module.function_of(instruction.id(3)));
                }
                let found = blocks.iter().position(|block| instruction.words_from(3).contains(&block.0.0));
                if let Some(found) = found {
                    used.entry(entry.function).or_insert(found);
                }
            }
        }
    }
    used
}
