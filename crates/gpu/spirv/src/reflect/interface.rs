//! The interface of an entry point: execution modes, inputs and outputs.

use std::collections::BTreeSet;

use spirv::{BuiltIn, Decoration, ExecutionMode, Op, StorageClass};

use crate::{
    EntryPoint, Id, Instruction, InstructionIndex, Module, Reflection, ShaderAccess,
    reflect::{
        interpreter::Interpreter,
        types::{Type, TypeRef},
    },
};

/// An input or an output, or a member of a block of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterfaceVariable {
    pub id: Id,
    pub member: Option<u32>,
    pub name: Option<String>,
    pub kind: InterfaceKind,
    /// Nothing for a built-in.
    pub location: Option<u32>,
    /// The first component of the location.
    pub component: u32,
    /// The index of one of two color outputs at one location, for blending.
    pub index: u32,
    /// A `BuiltIn`, known or not.
    pub built_in: Option<u32>,
    pub number: NumberKind,
    /// Bits of a component.
    pub width: u32,
    /// Of a column, for a matrix.
    pub components: u32,
    pub columns: u32,
    /// One where it is no array; nothing where its length is not known.
    pub count: Option<u32>,
    pub is_read: bool,
    pub is_written: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum InterfaceKind {
    Input,
    Output,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberKind {
    Float,
    Signed,
    Unsigned,
    Bool,
    Other,
}

/// When depth and stencil are tested, and the execution modes for them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FragmentTests {
    /// `EarlyFragmentTests`: before the shader.
    pub early: bool,
    /// `EarlyAndLateFragmentTestsAMD`: both.
    pub early_and_late: bool,
    pub post_depth_coverage: bool,
    /// `DepthReplacing`.
    pub replaces_depth: bool,
    /// The new depth is only greater, only less, or the same.
    pub depth_bound: Option<ExecutionMode>,
    /// `StencilRefReplacingEXT`.
    pub replaces_stencil: bool,
    pub writes_depth: bool,
    pub writes_stencil: bool,
    pub writes_sample_mask: bool,
}

/// How fragments of one pixel exclude each other, and in which order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interlock {
    pub mode: ExecutionMode,
    pub is_ordered: bool,
}

/// The output limits of a mesh shader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MeshLimits {
    pub vertices: u32,
    pub primitives: u32,
}

/// More members than there are locations on any device.
const MEMBERS_MAX: usize = 1024;

/// Everything about an entry point, with the descriptors of the whole module.
pub(super) fn describe(machine: &Interpreter<'_>, entry: &EntryPoint, accesses: Vec<ShaderAccess>) -> Reflection {
    let found = &machine.traits;
    let interface = interface(machine);
    let color_reads: BTreeSet<u32> = found.tile_images.iter().map(|it| location_of(machine.module, *it)).collect();
    let mut reflection = Reflection {
        descriptors: machine.variables.descriptors.clone(),
        accesses,
        is_per_sample: interface.iter().any(|it| is_per_sample(machine.module, it)),
        interface,
        workgroup_size: None,
        mesh: None,
        tests: FragmentTests::default(),
        interlock: None,
        may_discard: found.may_discard,
        may_demote: found.may_demote,
        color_reads: color_reads.into_iter().collect(),
        reads_depth: found.reads_depth,
        reads_stencil: found.reads_stencil,
        unordered_reads: [false; 3],
        is_complete: !found.is_incomplete,
    };
    for instruction in machine.module.instructions(machine.module.globals()) {
        let is_mode = instruction.is(Op::ExecutionMode) || instruction.is(Op::ExecutionModeId);
        if is_mode && instruction.id(1) == entry.function {
            apply_mode(machine, &mut reflection, instruction);
        }
    }
    // Other stages declare their number of output vertices, too.
    if let Some(mesh) = &mut reflection.mesh {
        mesh.vertices = vertices_of(machine.module, entry.function);
    }
    reflection.workgroup_size = built_in_size(machine).or(reflection.workgroup_size);
    let writes =
        |what: BuiltIn| reflection.interface.iter().any(|it| it.is_written && it.built_in == Some(what as u32));
    (reflection.tests.writes_depth, reflection.tests.writes_stencil, reflection.tests.writes_sample_mask) =
        (writes(BuiltIn::FragDepth), writes(BuiltIn::FragStencilRefEXT), writes(BuiltIn::SampleMask));
    reflection
}

fn apply_mode(machine: &Interpreter<'_>, reflection: &mut Reflection, instruction: Instruction<'_>) {
    let Some(mode) = ExecutionMode::from_u32(instruction.word(2)) else { return };
    let constant = |place| {
        machine.constants.number(instruction.id(place)).and_then(|value| u32::try_from(value).ok()).unwrap_or(1)
    };
    let tests = &mut reflection.tests;
    match mode {
        ExecutionMode::LocalSize => {
            reflection.workgroup_size = Some([instruction.word(3), instruction.word(4), instruction.word(5)])
        }
        ExecutionMode::LocalSizeId => reflection.workgroup_size = Some([constant(3), constant(4), constant(5)]),
        ExecutionMode::EarlyFragmentTests => tests.early = true,
        ExecutionMode::EarlyAndLateFragmentTestsAMD => tests.early_and_late = true,
        ExecutionMode::PostDepthCoverage => tests.post_depth_coverage = true,
        ExecutionMode::DepthReplacing => tests.replaces_depth = true,
        ExecutionMode::DepthGreater | ExecutionMode::DepthLess | ExecutionMode::DepthUnchanged => {
            tests.depth_bound = Some(mode);
        }
        ExecutionMode::StencilRefReplacingEXT => tests.replaces_stencil = true,
        ExecutionMode::PixelInterlockOrderedEXT
        | ExecutionMode::SampleInterlockOrderedEXT
        | ExecutionMode::ShadingRateInterlockOrderedEXT => {
            reflection.interlock = Some(Interlock { mode, is_ordered: true });
        }
        ExecutionMode::PixelInterlockUnorderedEXT
        | ExecutionMode::SampleInterlockUnorderedEXT
        | ExecutionMode::ShadingRateInterlockUnorderedEXT => {
            reflection.interlock = Some(Interlock { mode, is_ordered: false });
        }
        ExecutionMode::NonCoherentColorAttachmentReadEXT => reflection.unordered_reads[0] = true,
        ExecutionMode::NonCoherentDepthAttachmentReadEXT => reflection.unordered_reads[1] = true,
        ExecutionMode::NonCoherentStencilAttachmentReadEXT => reflection.unordered_reads[2] = true,
        ExecutionMode::OutputPrimitivesEXT => {
            reflection.mesh = Some(MeshLimits { primitives: instruction.word(3), vertices: 0 });
        }
        _ => {}
    }
}

fn vertices_of(module: &Module, function: Id) -> u32 {
    let modes = module.instructions(module.globals()).filter(|it| it.is(Op::ExecutionMode) && it.id(1) == function);
    let mut limits = modes.filter(|it| it.word(2) == ExecutionMode::OutputVertices as u32);
    limits.next().map_or(0, |it| it.word(3))
}

/// A constant that is decorated as the size of the workgroup outweighs execution modes.
fn built_in_size(machine: &Interpreter<'_>) -> Option<[u32; 3]> {
    let module = machine.module;
    let decorations = module.instructions(module.globals()).filter(|it| it.is(Op::Decorate));
    let is_size =
        |it: &Instruction<'_>| it.word(2) == Decoration::BuiltIn as u32 && it.word(3) == BuiltIn::WorkgroupSize as u32;
    let id = decorations.filter(is_size).map(|it| it.id(1)).next()?;
    let value = machine.constants.of(id);
    let part = |at: usize| u32::try_from(value.parts()?.get(at)?.number()?).ok();
    Some([part(0)?, part(1)?, part(2)?])
}

fn location_of(module: &Module, place: u32) -> u32 {
    module
        .instruction(InstructionIndex(place))
        .result()
        .and_then(|it| module.decoration_operand(it, None, Decoration::Location))
        .unwrap_or(0)
}

fn is_per_sample(module: &Module, interface_variable: &InterfaceVariable) -> bool {
    let built_ins = [BuiltIn::SampleId as u32, BuiltIn::SamplePosition as u32];
    let is_input = interface_variable.kind == InterfaceKind::Input;
    let is_sample =
        module.decoration_operand(interface_variable.id, interface_variable.member, Decoration::Sample).is_some();
    is_input && (interface_variable.built_in.is_some_and(|it| built_ins.contains(&it)) || is_sample)
}

/// The inputs and outputs that are used, in the order of the module.
fn interface(machine: &Interpreter<'_>) -> Vec<InterfaceVariable> {
    let mut used: Vec<_> = machine.traits.interface.iter().collect();
    used.sort();
    let mut all = Vec::new();
    for ((place, member), (is_read, is_written)) in used {
        let item = machine.module.instruction(InstructionIndex(*place));
        let kind = match item.word(3) {
            class if class == StorageClass::Input as u32 => InterfaceKind::Input,
            class if class == StorageClass::Output as u32 => InterfaceKind::Output,
            _ => continue,
        };
        let ty = machine.types.pointee(machine.types.type_ref(item.id(1)));
        for mut one in entries(machine, item.id(2), kind, ty, *member) {
            (one.is_read, one.is_written) = (*is_read, *is_written);
            all.push(one);
        }
    }
    merge(all)
}

/// An access to a whole block and one to a member of it are merged.
fn merge(mut all: Vec<InterfaceVariable>) -> Vec<InterfaceVariable> {
    all.sort_by_key(|it| (it.kind, it.id, it.member));
    all.dedup_by(|later, first| {
        let is_same = (later.id, later.member) == (first.id, first.member);
        if is_same {
            first.is_read |= later.is_read;
            first.is_written |= later.is_written;
        }
        is_same
    });
    all
}

/// One entry for a variable, or one for each member of a block.
fn entries(
    machine: &Interpreter<'_>,
    id: Id,
    kind: InterfaceKind,
    ty: TypeRef,
    member: Option<u32>,
) -> Vec<InterfaceVariable> {
    let inner = machine.types.strip_arrays(ty);
    let Type::Struct { members, .. } = machine.types.get(inner) else {
        return vec![entry(machine, id, (id, None), kind, ty)];
    };
    let Some(block) = machine.module.instruction(InstructionIndex(inner)).result() else { return Vec::new() };
    let variable = machine.module.decoration_operand(id, None, Decoration::Location);
    let mut next = variable.unwrap_or(0);
    let mut all = Vec::new();
    for (at, item) in members.iter().enumerate().take(MEMBERS_MAX) {
        let mut one = entry(machine, id, (block, Some(at as u32)), kind, item.ty);
        // A member without a location follows the one before.
        let location = one.location.unwrap_or(next);
        next = location.saturating_add(machine.types.locations(item.ty));
        if one.built_in.is_none() && variable.is_some() {
            one.location = Some(location);
        }
        if member.is_none_or(|it| it as usize == at) {
            all.push(one);
        }
    }
    all
}

fn entry(
    machine: &Interpreter<'_>,
    id: Id,
    (decorated, member): (Id, Option<u32>),
    kind: InterfaceKind,
    ty: TypeRef,
) -> InterfaceVariable {
    let module = machine.module;
    let number = |what| module.decoration_operand(decorated, member, what);
    let types = &machine.types;
    let inner = types.strip_arrays(ty);
    let (column, columns) = match types.get(inner) {
        Type::Matrix { of, columns } => (*of, *columns),
        _ => (inner, 1),
    };
    let (scalar, components) = match types.get(column) {
        Type::Vector { of, count } => (*of, *count),
        _ => (column, 1),
    };
    let (kind_of_number, width) = match types.get(scalar) {
        Type::Float { width } => (NumberKind::Float, *width),
        Type::Int { width, signed: true } => (NumberKind::Signed, *width),
        Type::Int { width, signed: false } => (NumberKind::Unsigned, *width),
        Type::Bool => (NumberKind::Bool, 32),
        _ => (NumberKind::Other, 0),
    };
    InterfaceVariable {
        id,
        member,
        name: module.name(decorated, member),
        kind,
        location: number(Decoration::Location),
        component: number(Decoration::Component).unwrap_or(0),
        index: number(Decoration::Index).unwrap_or(0),
        built_in: number(Decoration::BuiltIn),
        number: kind_of_number,
        width,
        components,
        columns,
        count: types.array_count(ty).map(|it| u32::try_from(it).unwrap_or(u32::MAX)),
        is_read: false,
        is_written: false,
    }
}
