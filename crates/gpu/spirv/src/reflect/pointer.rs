//! Where a pointer leads, as far as constants tell.

use std::rc::Rc;

use crate::reflect::{
    Bytes, Each, Element, Place, Quantity, Term,
    types::{MatrixLayout, StructKind, Type, TypeRef, Types},
    value::{Loaded, Sum, Value},
};

/// Addresses and indices that are read through others are followed so far.
const CHAIN_MAX: u8 = 4;
/// A place that depends on more than these is as good as unknown.
const TERMS_MAX: usize = 4;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Pointer {
    pub(super) root: Root,
    /// What it leads to.
    pub(super) ty: TypeRef,
    /// Which descriptor of an array.
    pub(super) element: Chosen,
    /// The least distance in bytes from the beginning.
    pub(super) offset: u64,
    /// By how much it may be further; nothing where that is open.
    pub(super) spread: Option<u64>,
    /// The constant part of the distance, where terms are added to it.
    pub(super) lead: i64,
    pub(super) terms: Terms,
    pub(super) matrix: MatrixLayout,
    /// The distance of a vector's components where they are not neighbors.
    pub(super) component_stride: Option<u64>,
    /// The first member that was picked.
    pub(super) member: Option<u32>,
    /// Whether it leads to a texel of an image.
    pub(super) is_texel: bool,
    /// How many addresses and indices were read to get here.
    pub(super) chain: u8,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Root {
    /// A descriptor, by the place of its variable.
    Descriptor(u32),
    PushConstant,
    /// A variable of a function, by its place in the frame, and the path into it.
    Local(u32, Rc<[Option<u32>]>),
    /// A private variable that keeps its first value, by its place, and the path into it.
    Fixed(u32, Rc<[Option<u32>]>),
    /// A variable of another storage class, by its place.
    Variable(u32),
    /// A device address, and where it was read.
    Address(Option<Rc<Place>>),
}

/// What decides where in its range a pointer leads.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Terms {
    /// Nothing but constants.
    Constant,
    Known(Rc<[Term]>),
    Unknown,
}

/// Which element of an array of descriptors.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Chosen {
    Constant(u64),
    Dynamic(Option<Rc<Place>>),
}

impl Pointer {
    pub(super) fn new(root: Root, ty: TypeRef) -> Pointer {
        Pointer {
            root,
            ty,
            element: Chosen::Constant(0),
            offset: 0,
            spread: Some(0),
            lead: 0,
            terms: Terms::Constant,
            matrix: MatrixLayout::default(),
            component_stride: None,
            member: None,
            is_texel: false,
            chain: 0,
        }
    }
}

/// What sets and bindings are, for places that are named to the outside.
pub(super) trait Bindings {
    /// Set and binding of a variable, by its place.
    fn binding(&self, variable: u32) -> (u32, u32);
}

impl Types<'_> {
    /// One step of an access chain.
    pub(super) fn step(&self, bindings: &dyn Bindings, pointer: &mut Pointer, index: &Value) {
        if let Root::Local(_, path) | Root::Fixed(_, path) = &mut pointer.root {
            let index = index.number().and_then(|it| u32::try_from(it).ok());
            *path = path.iter().copied().chain([index]).collect();
        }
        match self.get(pointer.ty) {
            Type::Struct { members, .. } => {
                let at = index.number().and_then(|it| usize::try_from(it).ok());
                let Some((at, member)) = at.and_then(|it| Some((it, members.get(it)?))) else {
                    return lose(pointer);
                };
                shift(pointer, member.offset);
                pointer.matrix = member.matrix;
                pointer.ty = member.ty;
                pointer.member = pointer.member.or(Some(at as u32));
            }
            Type::Array { of, count, .. }
                if pointer.member.is_none() && matches!(pointer.root, Root::Descriptor(_)) =>
            {
                let from = self.place_of_index(bindings, index);
                if let (Some(_), Value::Loaded(it)) = (&from, index) {
                    pointer.chain = pointer.chain.max(it.from.chain + 1);
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
            _ => lose(pointer),
        }
    }

    /// A step from one element to another of the array that a pointer is in.
    pub(super) fn leap(&self, bindings: &dyn Bindings, pointer: &mut Pointer, index: &Value, stride: u64) {
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
        pointer.spread = pointer.spread.zip(most).map(|(spread, most)| spread.saturating_add(most));
        match self.sum(bindings, index) {
            Some(sum) => add_terms(pointer, &sum, stride as i64),
            None => pointer.terms = Terms::Unknown,
        }
    }

    /// A number as a sum, where it is one.
    pub(super) fn sum(&self, bindings: &dyn Bindings, value: &Value) -> Option<Sum> {
        match value {
            Value::Sum(it) => Some(Sum::clone(it)),
            Value::Loaded(it) if matches!(self.get(it.from.ty), Type::Int { width: 1..=32, .. }) => {
                let of = Quantity::Read(self.place_of(bindings, &it.from)?);
                (it.plus == 0 && !it.is_shifted).then(|| Sum { terms: vec![Term { of, factor: 1 }], plus: 0 })
            }
            _ => None,
        }
    }

    /// The bytes that an access through a pointer touches. Several where a vector's components lie apart.
    pub(super) fn bytes(&self, pointer: &Pointer, ty: TypeRef) -> Vec<(Bytes, Option<Each>)> {
        let ranges = match (self.get(ty), pointer.component_stride) {
            (Type::Vector { of, count }, Some(stride)) => {
                let size = self.size(*of, pointer.matrix);
                (0..u64::from(*count).min(4)).map(|it| (it.saturating_mul(stride), size)).collect()
            }
            _ => vec![(0, self.size(ty, pointer.matrix))],
        };
        let all = ranges.into_iter();
        all.map(|(shift, size)| (range(pointer, shift, size), each(pointer, shift, size))).collect()
    }

    /// From where a value is read, for the outside: a place, where there is one that somebody may know.
    pub(super) fn place_of(&self, bindings: &dyn Bindings, pointer: &Pointer) -> Option<Place> {
        let bytes = range(pointer, 0, self.size(pointer.ty, pointer.matrix));
        match &pointer.root {
            Root::PushConstant => Some(Place::PushConstant { bytes }),
            Root::Descriptor(variable) => {
                let (set, binding) = bindings.binding(*variable);
                Some(Place::Descriptor { set, binding, element: self.element(pointer), bytes })
            }
            Root::Address(Some(from)) if pointer.chain < CHAIN_MAX => {
                Some(Place::Address { from: Box::new(Place::clone(from)), bytes })
            }
            _ => None,
        }
    }

    pub(super) fn element(&self, pointer: &Pointer) -> Element {
        match &pointer.element {
            Chosen::Constant(index) => Element::Constant(u32::try_from(*index).unwrap_or(u32::MAX)),
            Chosen::Dynamic(from) => Element::Dynamic(from.as_ref().map(|it| Box::new(Place::clone(it)))),
        }
    }

    /// The pointer that an address in memory is.
    pub(super) fn address(&self, bindings: &dyn Bindings, loaded: &Loaded, to: TypeRef) -> Pointer {
        let from = self.place_of(bindings, &loaded.from).map(Rc::new);
        let mut pointer = Pointer::new(Root::Address(from), to);
        pointer.chain = loaded.from.chain.saturating_add(1);
        (pointer.offset, pointer.lead) = (loaded.plus, loaded.plus as i64);
        if loaded.is_shifted {
            lose(&mut pointer);
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

    fn place_of_index(&self, bindings: &dyn Bindings, index: &Value) -> Option<Rc<Place>> {
        match index {
            Value::Loaded(it) if it.plus == 0 && !it.is_shifted && it.from.chain < CHAIN_MAX => {
                self.place_of(bindings, &it.from).map(Rc::new)
            }
            _ => None,
        }
    }
}

fn range(pointer: &Pointer, shift: u64, size: Option<u64>) -> Bytes {
    let start = pointer.offset.saturating_add(shift);
    let end = pointer.spread.zip(size).map(|(spread, size)| start.saturating_add(spread).saturating_add(size));
    Bytes { start, end, is_exact: pointer.spread == Some(0) && size.is_some() }
}

/// What an access does to memory in terms of what decides about it.
pub(super) fn each(pointer: &Pointer, shift: u64, size: Option<u64>) -> Option<Each> {
    let Terms::Known(terms) = &pointer.terms else { return None };
    Some(Each { start: pointer.lead.wrapping_add(shift as i64), terms: terms.to_vec(), size: size? })
}

pub(super) fn shift(pointer: &mut Pointer, by: u64) {
    pointer.offset = pointer.offset.saturating_add(by);
    pointer.lead = pointer.lead.wrapping_add(by as i64);
}

/// Adds a sum of so many bytes each.
pub(super) fn add_terms(pointer: &mut Pointer, sum: &Sum, bytes: i64) {
    let mut terms = match &pointer.terms {
        Terms::Unknown => return,
        Terms::Constant => Vec::new(),
        Terms::Known(terms) => terms.to_vec(),
    };
    terms.extend(sum.terms.iter().map(|it| Term { of: it.of.clone(), factor: it.factor.wrapping_mul(bytes) }));
    pointer.terms = if terms.len() > TERMS_MAX { Terms::Unknown } else { Terms::Known(terms.into()) };
    pointer.lead = pointer.lead.wrapping_add(sum.plus.wrapping_mul(bytes));
}

fn choose(before: &Chosen, count: Option<u64>, index: &Value, from: Option<Rc<Place>>) -> Chosen {
    match (before, index.number(), count) {
        (Chosen::Constant(0), Some(index), _) => Chosen::Constant(index),
        (Chosen::Constant(before), Some(index), Some(count)) => {
            Chosen::Constant(before.saturating_mul(count).saturating_add(index))
        }
        (Chosen::Constant(0), None, _) => Chosen::Dynamic(from),
        _ => Chosen::Dynamic(None),
    }
}

/// Somewhere in the rest.
pub(super) fn lose(pointer: &mut Pointer) {
    (pointer.spread, pointer.terms) = (None, Terms::Unknown);
    pointer.ty = TypeRef::MAX;
}
