//! Where a pointer leads: which descriptor, and which bytes behind it.

use lavascope_spirv::{Id, Module};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use spirv::{Decoration, Op, StorageClass};

use crate::types::{Matrix, Step, Types};

/// Longer chains of chains are not followed.
const CHAIN_MAX: usize = 24;

/// A pointer into something that a descriptor gives.
#[derive(Clone, Debug)]
pub(crate) struct Path {
    pub(crate) variable: Id,
    pub(crate) class: StorageClass,
    pub(crate) set: u32,
    pub(crate) binding: u32,
    /// Every index from the variable on.
    pub(crate) indices: SmallVec<[Id; 6]>,
    /// How many of the indices choose the descriptor.
    pub(crate) depth: usize,
    /// The types of the arrays that those indices go through.
    pub(crate) arrays: SmallVec<[Id; 2]>,
    /// Bytes that the constants among the indices say.
    pub(crate) offset: u64,
    /// The indices that are not known, and their strides.
    pub(crate) terms: SmallVec<[Term; 2]>,
    /// Bytes from the first one that the pointer leads to up to the last; nothing for what is no memory.
    pub(crate) size: Option<u64>,
    /// Whether one of the terms, or a constant, is an index into a runtime array.
    pub(crate) is_open: bool,
    /// The end of the descriptor's block without what is open.
    pub(crate) block_size: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Term {
    /// Place in the indices.
    pub(crate) place: usize,
    pub(crate) stride: u64,
}

/// What a pointer is based on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Base {
    /// A variable that a descriptor is bound to.
    Descriptor(Id),
    /// Memory of the invocation or its group, inputs, outputs, push constants.
    Own,
    /// A device address, which is this value.
    Address(Id),
    /// A pointer to a descriptor's memory that comes out of a phi, a selection, a parameter or memory.
    Unknown,
}

/// Finds out where pointers lead, and remembers it.
pub(crate) struct Paths<'a> {
    module: &'a Module,
    paths: FxHashMap<Id, Option<std::rc::Rc<Path>>>,
    /// Parameters that are the same variable in every call.
    parameters: FxHashMap<Id, Id>,
}

impl<'a> Paths<'a> {
    pub(crate) fn new(module: &'a Module) -> Paths<'a> {
        Paths { module, paths: FxHashMap::default(), parameters: same_arguments(module) }
    }

    /// What a pointer is based on. `types` knows its class.
    pub(crate) fn base(&self, types: &Types<'_>, pointer: Id) -> Base {
        let Some((class, _)) = types.pointer_value(pointer) else { return Base::Own };
        match class {
            StorageClass::PhysicalStorageBuffer => Base::Address(self.chain_base(pointer)),
            StorageClass::Uniform | StorageClass::StorageBuffer | StorageClass::UniformConstant => {
                let root = self.chain_base(pointer);
                let root = self.parameters.get(&root).copied().unwrap_or(root);
                match self.module.made(root) {
                    Some(it) if it.is(Op::Variable) => Base::Descriptor(root),
                    _ => Base::Unknown,
                }
            }
            _ => Base::Own,
        }
    }

    /// Whether a parameter is the same variable in every call.
    pub(crate) fn is_same_everywhere(&self, parameter: Id) -> bool {
        self.parameters.contains_key(&parameter)
    }

    /// The pointer that a chain of chains begins with.
    pub(crate) fn chain_base(&self, mut pointer: Id) -> Id {
        for _ in 0..CHAIN_MAX {
            match self.module.made(pointer) {
                Some(it) if it.is(Op::AccessChain) || it.is(Op::InBoundsAccessChain) || it.is(Op::CopyObject) => {
                    pointer = it.id(3);
                }
                Some(it) if it.is(Op::PtrAccessChain) && self.is_address(it.id(1)) => pointer = it.id(3),
                _ => break,
            }
        }
        pointer
    }

    fn is_address(&self, ty: Id) -> bool {
        let ty = self.module.made(ty);
        ty.is_some_and(|it| it.is(Op::TypePointer) && it.word(2) == StorageClass::PhysicalStorageBuffer as u32)
    }

    /// The path of a pointer that is based on a descriptor's variable.
    pub(crate) fn path(&mut self, types: &Types<'_>, pointer: Id) -> Option<std::rc::Rc<Path>> {
        if let Some(found) = self.paths.get(&pointer) {
            return found.clone();
        }
        let found = self.follow(types, pointer).map(std::rc::Rc::new);
        self.paths.insert(pointer, found.clone());
        found
    }

    fn follow(&self, types: &Types<'_>, pointer: Id) -> Option<Path> {
        let mut chains: SmallVec<[Id; 4]> = SmallVec::new();
        let mut root = pointer;
        loop {
            let it = self.module.made(root)?;
            match it.op()? {
                Op::AccessChain | Op::InBoundsAccessChain if chains.len() < CHAIN_MAX => {
                    chains.push(root);
                    root = it.id(3);
                }
                Op::CopyObject if chains.len() < CHAIN_MAX => {
                    chains.push(root);
                    root = it.id(3);
                }
                Op::FunctionParameter => root = *self.parameters.get(&root)?,
                Op::Variable => break,
                _ => return None,
            }
        }
        let mut indices: SmallVec<[Id; 6]> = SmallVec::new();
        for chain in chains.iter().rev() {
            let it = self.module.made(*chain)?;
            if !it.is(Op::CopyObject) {
                indices.extend(it.from(4).iter().map(|it| Id(*it)));
            }
        }
        self.measure(types, root, indices)
    }

    fn measure(&self, types: &Types<'_>, variable: Id, indices: SmallVec<[Id; 6]>) -> Option<Path> {
        let (class, mut ty) = types.pointer_value(variable)?;
        let number = |what| self.module.decorated(variable, None, what);
        let (set, binding) = (number(Decoration::DescriptorSet)?, number(Decoration::Binding)?);
        let mut arrays = SmallVec::new();
        let mut depth = 0;
        while let Some((of, _)) = types.array(ty) {
            arrays.push(ty);
            if depth == indices.len() {
                break;
            }
            depth += 1;
            ty = of;
        }
        let mut path = Path {
            variable,
            class,
            set,
            binding,
            depth,
            arrays,
            offset: 0,
            terms: SmallVec::new(),
            size: None,
            is_open: false,
            block_size: types.size(ty, Matrix::default()),
            indices,
        };
        if types.structure(ty).is_some_and(|it| it.kind.is_some()) {
            lay_out(types, &mut path, ty)?;
        }
        Some(path)
    }
}

/// The bytes behind a device address that a pointer leads to: the path from the base on, constants added up.
pub(crate) fn from_address(module: &Module, types: &Types<'_>, pointer: Id, base: Id) -> Option<Path> {
    let mut chains: SmallVec<[Id; 4]> = SmallVec::new();
    let mut at = pointer;
    while at != base {
        let it = module.made(at).filter(|_| chains.len() < CHAIN_MAX)?;
        if !it.is(Op::AccessChain) && !it.is(Op::InBoundsAccessChain) {
            return None;
        }
        chains.push(at);
        at = it.id(3);
    }
    let mut indices: SmallVec<[u32; 6]> = SmallVec::new();
    for chain in chains.iter().rev() {
        indices.extend_from_slice(module.made(*chain)?.from(4));
    }
    inside(types, base, &indices)
}

/// The bytes that indices from a pointer on lead to, constants added up.
pub(crate) fn inside(types: &Types<'_>, base: Id, indices: &[u32]) -> Option<Path> {
    let (class, block) = types.pointer_value(base)?;
    let indices = indices.iter().map(|it| Id(*it)).collect();
    let mut path = Path {
        variable: base,
        class,
        set: 0,
        binding: 0,
        depth: 0,
        arrays: SmallVec::new(),
        offset: 0,
        terms: SmallVec::new(),
        size: None,
        is_open: false,
        block_size: None,
        indices,
    };
    lay_out(types, &mut path, block)?;
    let mut terms = SmallVec::new();
    for term in &path.terms {
        match types.literal(path.indices[term.place]) {
            Some(known) => path.offset = path.offset.checked_add(known.checked_mul(term.stride)?)?,
            None => terms.push(*term),
        }
    }
    path.terms = terms;
    Some(path)
}

/// Adds up what the indices behind the descriptor's say.
fn lay_out(types: &Types<'_>, path: &mut Path, block: Id) -> Option<()> {
    let mut ty = block;
    let mut matrix = Matrix::default();
    // The components of a column of a matrix by rows lie a stride apart.
    let mut component_stride = None;
    for place in path.depth..path.indices.len() {
        let index = path.indices[place];
        let known = types.literal(index);
        let container = ty;
        let stride;
        (ty, stride) = match types.step(ty) {
            Step::Member(structure) => {
                let member = structure.members.get(usize::try_from(known?).ok()?)?;
                matrix = member.matrix;
                path.offset = path.offset.checked_add(member.offset)?;
                ty = member.ty;
                continue;
            }
            Step::Element { of, stride } => {
                path.is_open |= types.array(ty).is_some_and(|it| it.1.is_none());
                (of, stride)
            }
            Step::Column(column) => {
                let number = types.step(column);
                let Step::Component(number) = number else { return None };
                let bytes = types.size(number, matrix)?;
                component_stride = matrix.is_row_major.then_some(matrix.stride);
                (column, if matrix.is_row_major { bytes } else { matrix.stride })
            }
            Step::Component(number) => (number, component_stride.unwrap_or(types.size(number, matrix)?)),
            Step::None => return None,
        };
        // A constant index into what is open is checked as if it were none: only the device knows how much is bound.
        match known.filter(|it| *it == 0 || types.array(container).is_none_or(|it| it.1.is_some())) {
            Some(known) => path.offset = path.offset.checked_add(known.checked_mul(stride)?)?,
            None => path.terms.push(Term { place, stride }),
        }
    }
    path.size = match (types.step(ty), component_stride) {
        // A whole column of a matrix by rows.
        (Step::Component(number), Some(stride)) => {
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
        let ty = module.at(at).result_type().and_then(|it| module.made(it));
        ty.is_some_and(|it| it.is(Op::TypePointer))
    };
    if !module.functions().iter().flat_map(|it| &it.parameters).any(|it| is_pointer(*it)) {
        return FxHashMap::default();
    }
    for function in module.functions() {
        for call in module.instructions(function.all.clone()).filter(|it| it.is(Op::FunctionCall)) {
            let Some(called) = module.function_of(call.id(3)) else { continue };
            for (parameter, argument) in module.functions()[called].parameters.iter().zip(call.from(4)) {
                let Some(parameter) = module.at(*parameter).result() else { continue };
                let argument = Id(*argument);
                let is_variable = module.made(argument).is_some_and(|it| it.is(Op::Variable));
                let argument = is_variable.then_some(argument);
                found.entry(parameter).and_modify(|it| *it = it.filter(|it| Some(*it) == argument)).or_insert(argument);
            }
        }
    }
    found.into_iter().filter_map(|(parameter, argument)| Some((parameter, argument?))).collect()
}
