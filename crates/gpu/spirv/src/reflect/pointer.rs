//! The target of a pointer, as far as constants determine it.

use std::rc::Rc;

use crate::reflect::{
    AccessBytes, DescriptorElement, InvocationBytes, OffsetTerm, Quantity, ValueSource,
    types::{MatrixLayout, StructKind, Type, TypeRef, Types},
    value::{Loaded, Sum, Value},
};

/// Addresses and indices that are read through others are followed so far.
const READ_DEPTH_MAX: u8 = 4;
/// A place that depends on more than these is as good as unknown.
const TERMS_MAX: usize = 4;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Pointer {
    pub(super) root: PointerRoot,
    /// The target.
    pub(super) ty: TypeRef,
    /// Which descriptor of an array.
    pub(super) element: ElementIndex,
    /// The least distance in bytes from the beginning.
    pub(super) offset: u64,
    /// By how much it may be further; nothing where that is open.
    pub(super) max_extra_offset: Option<u64>,
    /// The constant part of the distance, where terms are added to it.
    pub(super) constant_offset: i64,
    pub(super) terms: Terms,
    pub(super) matrix: MatrixLayout,
    /// The distance of a vector's components where they are not neighbors.
    pub(super) component_stride: Option<u64>,
    /// The first member that was picked.
    pub(super) member: Option<u32>,
    /// Whether it leads to a texel of an image.
    pub(super) is_texel: bool,
    /// How many addresses and indices were read to get here.
    pub(super) read_depth: u8,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum PointerRoot {
    /// A descriptor, by the place of its variable.
    Descriptor(u32),
    PushConstant,
    /// A variable of a function, by its place in the frame, and the path into it.
    Local(u32, Rc<[Option<u32>]>),
    /// A private variable that keeps its first value, by its place, and the path into it.
    ConstantPrivate(u32, Rc<[Option<u32>]>),
    /// A variable of another storage class, by its place.
    Variable(u32),
    /// A device address, and where it was read.
    Address(Option<Rc<ValueSource>>),
}

/// The values that decide where in its range a pointer leads.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Terms {
    /// Nothing but constants.
    Constant,
    Known(Rc<[OffsetTerm]>),
    Unknown,
}

/// Which element of an array of descriptors.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum ElementIndex {
    Constant(u64),
    Dynamic(Option<Rc<ValueSource>>),
}

impl Pointer {
    pub(super) fn new(root: PointerRoot, ty: TypeRef) -> Pointer {
        Pointer {
            root,
            ty,
            element: ElementIndex::Constant(0),
            offset: 0,
            max_extra_offset: Some(0),
            constant_offset: 0,
            terms: Terms::Constant,
            matrix: MatrixLayout::default(),
            component_stride: None,
            member: None,
            is_texel: false,
            read_depth: 0,
        }
    }
}

/// Set and binding, for places in the result.
pub(super) trait Bindings {
    /// Set and binding of a variable, by its place.
    fn binding(&self, variable: u32) -> (u32, u32);
}

impl Types<'_> {
    /// One step of an access chain.
    pub(super) fn index_into(&self, bindings: &dyn Bindings, pointer: &mut Pointer, index: &Value) {
        if let PointerRoot::Local(_, path) | PointerRoot::ConstantPrivate(_, path) = &mut pointer.root {
            let index = index.number().and_then(|it| u32::try_from(it).ok());
            *path = path.iter().copied().chain([index]).collect();
        }
        match self.get(pointer.ty) {
            Type::Struct { members, .. } => {
                let at = index.number().and_then(|it| usize::try_from(it).ok());
                let Some((at, member)) = at.and_then(|it| Some((it, members.get(it)?))) else {
                    return forget_offset(pointer);
                };
                shift(pointer, member.offset);
                pointer.matrix = member.matrix;
                pointer.ty = member.ty;
                pointer.member = pointer.member.or(Some(at as u32));
            }
            Type::Array { of, count, .. }
                if pointer.member.is_none() && matches!(pointer.root, PointerRoot::Descriptor(_)) =>
            {
                let from = self.index_source(bindings, index);
                if let (Some(_), Value::Loaded(loaded)) = (&from, index) {
                    pointer.read_depth = pointer.read_depth.max(loaded.from.read_depth + 1);
                }
                pointer.element = choose(&pointer.element, *count, index, from);
                pointer.ty = *of;
            }
            Type::Array { of, count, stride, .. } => {
                self.advance(bindings, pointer, index, (*stride, *count));
                pointer.ty = *of;
            }
            Type::Vector { of, count } => {
                let stride = pointer.component_stride.take().or_else(|| self.size(*of, pointer.matrix));
                self.advance(bindings, pointer, index, (stride.unwrap_or(0), Some(u64::from(*count))));
                pointer.ty = *of;
            }
            Type::Matrix { of, columns } => {
                let layout = pointer.matrix;
                let number = match self.get(*of) {
                    Type::Vector { of, .. } => self.size(*of, layout).unwrap_or(0),
                    _ => 0,
                };
                let stride = if layout.row_major { number } else { layout.stride };
                self.advance(bindings, pointer, index, (stride, Some(u64::from(*columns))));
                pointer.component_stride = layout.row_major.then_some(layout.stride);
                pointer.ty = *of;
            }
            _ => forget_offset(pointer),
        }
    }

    /// A step from one element to another of the array that a pointer is in.
    pub(super) fn advance_element(&self, bindings: &dyn Bindings, pointer: &mut Pointer, index: &Value, stride: u64) {
        if index.number() == Some(0) {
            return;
        }
        let stride = if stride == 0 { self.size(pointer.ty, pointer.matrix).unwrap_or(0) } else { stride };
        self.advance(bindings, pointer, index, (stride, None));
    }

    /// Moves by a number of strides; there may be a limit to it.
    fn advance(&self, bindings: &dyn Bindings, pointer: &mut Pointer, index: &Value, steps: (u64, Option<u64>)) {
        let (stride, count) = steps;
        if let Some(index) = index.number() {
            return shift(pointer, index.saturating_mul(stride));
        }
        let most = count.map(|it| it.saturating_sub(1).saturating_mul(stride));
        pointer.max_extra_offset = pointer.max_extra_offset.zip(most).map(|(spread, most)| spread.saturating_add(most));
        match self.sum(bindings, index) {
            Some(sum) => add_terms(pointer, &sum, stride as i64),
            None => pointer.terms = Terms::Unknown,
        }
    }

    /// A number as a sum, where it is one.
    pub(super) fn sum(&self, bindings: &dyn Bindings, value: &Value) -> Option<Sum> {
        match value {
            Value::Sum(item) => Some(Sum::clone(item)),
            Value::Loaded(loaded) if matches!(self.get(loaded.from.ty), Type::Int { width: 1..=32, .. }) => {
                let of = Quantity::Read(self.source_of(bindings, &loaded.from)?);
                (loaded.plus == 0 && !loaded.has_unknown_addend)
                    .then(|| Sum { terms: vec![OffsetTerm { quantity: of, factor: 1 }], plus: 0 })
            }
            _ => None,
        }
    }

    /// The bytes that an access through a pointer touches. Several where a vector's components lie apart.
    pub(super) fn bytes(&self, pointer: &Pointer, ty: TypeRef) -> Vec<(AccessBytes, Option<InvocationBytes>)> {
        let ranges = match (self.get(ty), pointer.component_stride) {
            (Type::Vector { of, count }, Some(stride)) => {
                let size = self.size(*of, pointer.matrix);
                (0..u64::from(*count).min(4)).map(|it| (it.saturating_mul(stride), size)).collect()
            }
            _ => vec![(0, self.size(ty, pointer.matrix))],
        };
        let all = ranges.into_iter();
        all.map(|(shift, size)| (range(pointer, shift, size), invocation_bytes(pointer, shift, size))).collect()
    }

    /// The place from which a value is read, if it can be named in the result.
    pub(super) fn source_of(&self, bindings: &dyn Bindings, pointer: &Pointer) -> Option<ValueSource> {
        let bytes = range(pointer, 0, self.size(pointer.ty, pointer.matrix));
        match &pointer.root {
            PointerRoot::PushConstant => Some(ValueSource::PushConstant { bytes }),
            PointerRoot::Descriptor(variable) => {
                let (set, binding) = bindings.binding(*variable);
                Some(ValueSource::Descriptor { set, binding, element: self.element(pointer), bytes })
            }
            PointerRoot::Address(Some(from)) if pointer.read_depth < READ_DEPTH_MAX => {
                Some(ValueSource::Address { from: Box::new(ValueSource::clone(from)), bytes })
            }
            _ => None,
        }
    }

    pub(super) fn element(&self, pointer: &Pointer) -> DescriptorElement {
        match &pointer.element {
            ElementIndex::Constant(index) => DescriptorElement::Constant(u32::try_from(*index).unwrap_or(u32::MAX)),
            ElementIndex::Dynamic(from) => {
                DescriptorElement::Dynamic(from.as_ref().map(|it| Box::new(ValueSource::clone(it))))
            }
        }
    }

    /// The pointer that an address in memory is.
    pub(super) fn address(&self, bindings: &dyn Bindings, loaded: &Loaded, to: TypeRef) -> Pointer {
        let from = self.source_of(bindings, &loaded.from).map(Rc::new);
        let mut pointer = Pointer::new(PointerRoot::Address(from), to);
        pointer.read_depth = loaded.from.read_depth.saturating_add(1);
        (pointer.offset, pointer.constant_offset) = (loaded.plus, loaded.plus as i64);
        if loaded.has_unknown_addend {
            forget_offset(&mut pointer);
            (pointer.offset, pointer.ty) = (0, to);
        }
        pointer
    }

    /// The kind of a block's structure, if it is one.
    pub(super) fn struct_kind(&self, ty: TypeRef) -> Option<StructKind> {
        match self.get(ty) {
            Type::Struct { kind, .. } => Some(*kind),
            _ => None,
        }
    }

    fn index_source(&self, bindings: &dyn Bindings, index: &Value) -> Option<Rc<ValueSource>> {
        match index {
            Value::Loaded(loaded)
                if loaded.plus == 0 && !loaded.has_unknown_addend && loaded.from.read_depth < READ_DEPTH_MAX =>
            {
                self.source_of(bindings, &loaded.from).map(Rc::new)
            }
            _ => None,
        }
    }
}

fn range(pointer: &Pointer, shift: u64, size: Option<u64>) -> AccessBytes {
    let start = pointer.offset.saturating_add(shift);
    let end =
        pointer.max_extra_offset.zip(size).map(|(spread, size)| start.saturating_add(spread).saturating_add(size));
    AccessBytes { start, end, is_exact: pointer.max_extra_offset == Some(0) && size.is_some() }
}

/// An access to memory, with the values that decide about it.
pub(super) fn invocation_bytes(pointer: &Pointer, shift: u64, size: Option<u64>) -> Option<InvocationBytes> {
    let Terms::Known(terms) = &pointer.terms else { return None };
    Some(InvocationBytes {
        start: pointer.constant_offset.wrapping_add(shift as i64),
        terms: terms.to_vec(),
        size: size?,
    })
}

pub(super) fn shift(pointer: &mut Pointer, by: u64) {
    pointer.offset = pointer.offset.saturating_add(by);
    pointer.constant_offset = pointer.constant_offset.wrapping_add(by as i64);
}

/// Adds a sum with a factor.
pub(super) fn add_terms(pointer: &mut Pointer, sum: &Sum, bytes: i64) {
    let mut terms = match &pointer.terms {
        Terms::Unknown => return,
        Terms::Constant => Vec::new(),
        Terms::Known(terms) => terms.to_vec(),
    };
    terms.extend(
        sum.terms.iter().map(|it| OffsetTerm { quantity: it.quantity.clone(), factor: it.factor.wrapping_mul(bytes) }),
    );
    pointer.terms = if terms.len() > TERMS_MAX { Terms::Unknown } else { Terms::Known(terms.into()) };
    pointer.constant_offset = pointer.constant_offset.wrapping_add(sum.plus.wrapping_mul(bytes));
}

fn choose(before: &ElementIndex, count: Option<u64>, index: &Value, from: Option<Rc<ValueSource>>) -> ElementIndex {
    match (before, index.number(), count) {
        (ElementIndex::Constant(0), Some(index), _) => ElementIndex::Constant(index),
        (ElementIndex::Constant(before), Some(index), Some(count)) => {
            ElementIndex::Constant(before.saturating_mul(count).saturating_add(index))
        }
        (ElementIndex::Constant(0), None, _) => ElementIndex::Dynamic(from),
        _ => ElementIndex::Dynamic(None),
    }
}

/// Somewhere in the rest.
pub(super) fn forget_offset(pointer: &mut Pointer) {
    (pointer.max_extra_offset, pointer.terms) = (None, Terms::Unknown);
    pointer.ty = TypeRef::MAX;
}
