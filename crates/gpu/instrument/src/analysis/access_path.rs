//! Where a pointer leads: which descriptor, and which bytes behind it.

use std::{cell::RefCell, ops::Deref, rc::Rc};

use lavascope_spirv::{Id, Instruction, Module};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use spirv::{Decoration, Op, StorageClass};

use crate::analysis::types::{IndexStep, MatrixLayout, Types};

/// Longer chains of chains are not followed.
const CHAIN_MAX: usize = 24;

/// A pointer into something that a descriptor gives.
#[derive(Clone, Debug)]
pub(crate) struct AccessPath {
    shape: Rc<PathShape>,
    /// Every index from the variable on.
    pub(crate) indices: SmallVec<[Id; 6]>,
    /// Whether all of them are integers.
    pub(crate) has_integer_indices: bool,
}

impl Deref for AccessPath {
    type Target = PathShape;

    fn deref(&self) -> &PathShape {
        &self.shape
    }
}

/// The properties that pointers with the same constant indices share.
#[derive(Debug)]
pub(crate) struct PathShape {
    /// Shapes are numbered in the order in which they were met.
    pub(crate) number: u32,
    /// None for an address.
    pub(crate) variable: Id,
    pub(crate) class: StorageClass,
    pub(crate) set: u32,
    pub(crate) binding: u32,
    /// How many of the indices choose the descriptor.
    pub(crate) descriptor_depth: usize,
    /// The types of the arrays that those indices go through.
    pub(crate) arrays: SmallVec<[Id; 2]>,
    /// The element of the binding, if it is constant.
    pub(crate) element: Option<u32>,
    /// The sum of the constant indices in bytes.
    pub(crate) offset: u64,
    /// The indices that are not known, and their strides.
    pub(crate) terms: SmallVec<[IndexTerm; 2]>,
    /// Bytes from the first one that the pointer leads to up to the last; none if it does not point to memory.
    pub(crate) size: Option<u64>,
    /// Whether one of the terms, or a constant, is an index into a runtime array.
    pub(crate) indexes_runtime_array: bool,
    /// The end of the descriptor's block without its runtime array.
    pub(crate) block_size: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct IndexTerm {
    /// Place in the indices.
    pub(crate) position: usize,
    pub(crate) stride: u64,
}

/// The base of a pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PointerBase {
    /// A variable that a descriptor is bound to.
    Descriptor(Id),
    /// Memory of the invocation or its group, inputs, outputs, push constants.
    Untracked,
    /// A device address, which is this value.
    Address(Id),
    /// A pointer to a descriptor's memory that comes out of a phi, a selection, a parameter or memory.
    Unknown,
}

type PathShapes = FxHashMap<SmallVec<[u32; 8]>, Option<Rc<PathShape>>>;

/// Finds out where pointers lead, and remembers it.
pub(crate) struct AccessPaths<'a> {
    module: &'a Module,
    /// The pointer that was asked for last: most are used once, or at once again.
    last: Option<(Id, Option<Rc<AccessPath>>)>,
    /// By variable, or the type that an address leads to, and the indices that stand before all functions.
    shapes: RefCell<PathShapes>,
    /// Parameters that are the same variable in every call.
    parameters: FxHashMap<Id, Id>,
}

impl<'a> AccessPaths<'a> {
    pub(crate) fn new(module: &'a Module) -> AccessPaths<'a> {
        AccessPaths { module, last: None, shapes: RefCell::default(), parameters: same_arguments(module) }
    }

    /// The base of a pointer. `types` has its class.
    pub(crate) fn base(&self, types: &Types<'_>, pointer: Id) -> PointerBase {
        let Some((class, _)) = types.pointer_value(pointer) else { return PointerBase::Untracked };
        match class {
            StorageClass::PhysicalStorageBuffer => PointerBase::Address(self.chain_base(pointer)),
            StorageClass::Uniform | StorageClass::StorageBuffer | StorageClass::UniformConstant => {
                let root = self.chain_base(pointer);
                let root = self.parameters.get(&root).copied().unwrap_or(root);
                match self.module.definition(root) {
                    Some(instruction) if instruction.is(Op::Variable) => PointerBase::Descriptor(root),
                    _ => PointerBase::Unknown,
                }
            }
            _ => PointerBase::Untracked,
        }
    }

    /// Whether a parameter is the same variable in every call.
    pub(crate) fn is_constant_parameter(&self, parameter: Id) -> bool {
        self.parameters.contains_key(&parameter)
    }

    /// The pointer that a chain of chains begins with.
    pub(crate) fn chain_base(&self, mut pointer: Id) -> Id {
        for _ in 0..CHAIN_MAX {
            match self.module.definition(pointer) {
                Some(instruction)
                    if instruction.is(Op::AccessChain)
                        || instruction.is(Op::InBoundsAccessChain)
                        || instruction.is(Op::CopyObject) =>
                {
                    pointer = instruction.id(3);
                }
                Some(instruction) if instruction.is(Op::PtrAccessChain) && self.is_address(instruction.id(1)) => {
                    pointer = instruction.id(3)
                }
                _ => break,
            }
        }
        pointer
    }

    fn is_address(&self, ty: Id) -> bool {
        let ty = self.module.definition(ty);
        ty.is_some_and(|it| it.is(Op::TypePointer) && it.word(2) == StorageClass::PhysicalStorageBuffer as u32)
    }

    /// The path of a pointer that is based on a descriptor's variable.
    pub(crate) fn path(&mut self, types: &Types<'_>, pointer: Id) -> Option<Rc<AccessPath>> {
        if let Some((_, found)) = self.last.as_ref().filter(|it| it.0 == pointer) {
            return found.clone();
        }
        let found = self.resolve(types, pointer).map(Rc::new);
        self.last = Some((pointer, found.clone()));
        found
    }

    fn resolve(&self, types: &Types<'_>, pointer: Id) -> Option<AccessPath> {
        let mut chains: SmallVec<[Instruction<'_>; 4]> = SmallVec::new();
        let mut root = pointer;
        loop {
            let instruction = self.module.definition(root)?;
            if is_chain(instruction) || instruction.is(Op::CopyObject) {
                chains.push(instruction);
                root = instruction.id(3);
                if chains.len() > CHAIN_MAX {
                    return None;
                }
            } else if instruction.is(Op::FunctionParameter) {
                root = *self.parameters.get(&root)?;
            } else if instruction.is(Op::Variable) {
                break;
            } else {
                return None;
            }
        }
        let indices = indices_of(&chains);
        let shape = self.shape(root, &indices, || {
            let (class, _) = types.pointer_value(root)?;
            let number = |what| self.module.decoration_operand(root, None, what);
            let (set, binding) = (number(Decoration::DescriptorSet)?, number(Decoration::Binding)?);
            PathShape::of_variable(types, PathShape { set, binding, ..PathShape::new(root, class) }, &indices)
        })?;
        Some(self.with(types, shape, indices))
    }

    /// The bytes behind a device address that a pointer leads to: the path from the base on, constants added up.
    pub(crate) fn path_from_address(&self, types: &Types<'_>, pointer: Id, base: Id) -> Option<AccessPath> {
        let mut chains: SmallVec<[Instruction<'_>; 4]> = SmallVec::new();
        let mut at = pointer;
        while at != base {
            let instruction = self.module.definition(at).filter(|it| chains.len() < CHAIN_MAX && is_chain(*it))?;
            chains.push(instruction);
            at = instruction.id(3);
        }
        self.path_from_indices(types, base, indices_of(&chains))
    }

    /// The bytes that indices from a pointer on lead to, constants added up.
    pub(crate) fn path_from_indices(
        &self,
        types: &Types<'_>,
        base: Id,
        indices: SmallVec<[Id; 6]>,
    ) -> Option<AccessPath> {
        let (class, block) = types.pointer_value(base)?;
        let shape = self
            .shape(block, &indices, || PathShape::of_address(types, PathShape::new(Id(0), class), block, &indices))?;
        Some(self.with(types, shape, indices))
    }

    /// The properties that chains of indices with the same constants share.
    fn shape(&self, root: Id, indices: &[Id], make: impl FnOnce() -> Option<PathShape>) -> Option<Rc<PathShape>> {
        let globals = self.module.globals().end;
        let constant = |it: &Id| self.module.definition_index(*it).filter(|it| it.0 < globals).map_or(0, |_| it.0);
        let mut key: SmallVec<[u32; 8]> = SmallVec::new();
        key.push(root.0);
        indices.iter().for_each(|it| key.push(constant(it)));
        if let Some(found) = self.shapes.borrow().get(&key) {
            return found.clone();
        }
        let number = self.shapes.borrow().len() as u32;
        let made = make().map(|it| Rc::new(PathShape { number, ..it }));
        self.shapes.borrow_mut().insert(key, made.clone());
        made
    }

    fn with(&self, types: &Types<'_>, shape: Rc<PathShape>, indices: SmallVec<[Id; 6]>) -> AccessPath {
        let is_integer = |it: &Id| types.of_value(*it).is_some_and(|it| types.is_integer(it));
        AccessPath { has_integer_indices: indices.iter().all(is_integer), shape, indices }
    }
}

fn is_chain(instruction: Instruction<'_>) -> bool {
    instruction.is(Op::AccessChain) || instruction.is(Op::InBoundsAccessChain)
}

/// The indices of chains of chains, the last one first.
fn indices_of(chains: &[Instruction<'_>]) -> SmallVec<[Id; 6]> {
    let mut indices = SmallVec::new();
    for chain in chains.iter().rev().filter(|it| !it.is(Op::CopyObject)) {
        chain.words_from(4).iter().for_each(|it| indices.push(Id(*it)));
    }
    indices
}

impl PathShape {
    fn new(variable: Id, class: StorageClass) -> PathShape {
        PathShape {
            number: 0,
            variable,
            class,
            set: 0,
            binding: 0,
            descriptor_depth: 0,
            arrays: SmallVec::new(),
            element: None,
            offset: 0,
            terms: SmallVec::new(),
            size: None,
            indexes_runtime_array: false,
            block_size: None,
        }
    }

    fn of_variable(types: &Types<'_>, mut shape: PathShape, indices: &[Id]) -> Option<PathShape> {
        let (_, mut ty) = types.pointer_value(shape.variable)?;
        while let Some((of, _)) = types.array(ty) {
            shape.arrays.push(ty);
            if shape.descriptor_depth == indices.len() {
                break;
            }
            shape.descriptor_depth += 1;
            ty = of;
        }
        shape.block_size = types.size(ty, MatrixLayout::default());
        shape.element = known_element(types, &shape, indices);
        if types.structure(ty).is_some_and(|it| it.kind.is_some()) {
            lay_out(types, &mut shape, indices, ty)?;
        }
        Some(shape)
    }

    fn of_address(types: &Types<'_>, mut shape: PathShape, block: Id, indices: &[Id]) -> Option<PathShape> {
        lay_out(types, &mut shape, indices, block)?;
        for term in std::mem::take(&mut shape.terms) {
            match types.literal(indices[term.position]) {
                Some(known) => shape.offset = shape.offset.checked_add(known.checked_mul(term.stride)?)?,
                None => shape.terms.push(term),
            }
        }
        Some(shape)
    }
}

/// The element of a binding, if it is constant.
fn known_element(types: &Types<'_>, shape: &PathShape, indices: &[Id]) -> Option<u32> {
    let mut flat = 0u64;
    for (place, array) in shape.arrays.iter().enumerate() {
        let index = types.literal(*indices[..shape.descriptor_depth].get(place)?)?;
        let length = match types.array(*array)?.1 {
            Some(length) => Some(types.literal(length)?),
            None => None,
        };
        if length.is_some_and(|it| index >= it) {
            return None;
        }
        flat = flat.checked_mul(length.unwrap_or(0))?.checked_add(index)?;
    }
    u32::try_from(flat).ok()
}

/// Adds up the indices behind the descriptor's.
fn lay_out(types: &Types<'_>, path: &mut PathShape, indices: &[Id], block: Id) -> Option<()> {
    let mut ty = block;
    let mut matrix = MatrixLayout::default();
    // The components of a column of a matrix by rows lie a stride apart.
    let mut component_stride = None;
    for (place, index) in indices.iter().enumerate().skip(path.descriptor_depth) {
        let known = types.literal(*index);
        let container = ty;
        let stride;
        (ty, stride) = match types.index_step(ty) {
            IndexStep::Member(structure) => {
                let member = structure.members.get(usize::try_from(known?).ok()?)?;
                matrix = member.matrix;
                path.offset = path.offset.checked_add(member.offset)?;
                ty = member.ty;
                continue;
            }
            IndexStep::Element { of, stride } => {
                path.indexes_runtime_array |= types.array(ty).is_some_and(|it| it.1.is_none());
                (of, stride)
            }
            IndexStep::Column(column) => {
                let number = types.index_step(column);
                let IndexStep::Component(number) = number else { return None };
                let bytes = types.size(number, matrix)?;
                component_stride = matrix.is_row_major.then_some(matrix.stride);
                (column, if matrix.is_row_major { bytes } else { matrix.stride })
            }
            IndexStep::Component(number) => (number, component_stride.unwrap_or(types.size(number, matrix)?)),
            IndexStep::None => return None,
        };
        // A constant index into a runtime array is checked like a variable one: only the device knows how much is
        // bound.
        match known.filter(|it| *it == 0 || types.array(container).is_none_or(|it| it.1.is_some())) {
            Some(known) => path.offset = path.offset.checked_add(known.checked_mul(stride)?)?,
            None => path.terms.push(IndexTerm { position: place, stride }),
        }
    }
    path.size = match (types.index_step(ty), component_stride) {
        // A whole column of a matrix by rows.
        (IndexStep::Component(number), Some(stride)) => {
            let bytes = types.size(number, matrix)?;
            let count = types.size(ty, matrix)? / bytes.max(1);
            count.saturating_sub(1).checked_mul(stride)?.checked_add(bytes)
        }
        _ => types.size(ty, matrix),
    };
    Some(())
}

/// Parameters that get the same variable in every call of their function.
fn same_arguments(module: &Module) -> FxHashMap<Id, Id> {
    let mut found: FxHashMap<Id, Option<Id>> = FxHashMap::default();
    let is_pointer = |at| {
        let ty = module.instruction(at).result_type().and_then(|it| module.definition(it));
        ty.is_some_and(|it| it.is(Op::TypePointer))
    };
    if !module.functions().iter().flat_map(|it| &it.parameters).any(|it| is_pointer(*it)) {
        return FxHashMap::default();
    }
    for function in module.functions() {
        for call in module.instructions(function.instructions.clone()).filter(|it| it.is(Op::FunctionCall)) {
            let Some(called) = module.function_of(call.id(3)) else { continue };
            for (parameter, argument) in module.functions()[called].parameters.iter().zip(call.words_from(4)) {
                let Some(parameter) = module.instruction(*parameter).result() else { continue };
                let argument = Id(*argument);
                let is_variable = module.definition(argument).is_some_and(|it| it.is(Op::Variable));
                let argument = is_variable.then_some(argument);
                found.entry(parameter).and_modify(|it| *it = it.filter(|it| Some(*it) == argument)).or_insert(argument);
            }
        }
    }
    found.into_iter().filter_map(|(parameter, argument)| Some((parameter, argument?))).collect()
}
