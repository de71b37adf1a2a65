//! Where a pointer leads, as far as constants tell.

use std::rc::Rc;

use crate::reflect::{
    Bytes, Element, Place,
    types::{MatrixLayout, StructKind, Type, TypeRef, Types},
    value::{Loaded, Value},
};

/// Pointers read through pointers are followed so far.
const CHAIN_MAX: u8 = 4;

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
    pub(super) matrix: MatrixLayout,
    /// The distance of a vector's components where they are not neighbors.
    pub(super) component_stride: Option<u64>,
    /// The first member that was picked.
    pub(super) member: Option<u32>,
    /// Whether it leads to a texel of an image.
    pub(super) is_texel: bool,
    /// How many pointers were read to get here.
    pub(super) chain: u8,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Root {
    /// A descriptor, by the place of its variable.
    Descriptor(u32),
    PushConstant,
    /// A variable of a function, by its place in the frame, and the path into it.
    Local(u32, Rc<[Option<u32>]>),
    /// A variable of another storage class, by its place.
    Variable(u32),
    /// A device address, and where it was read.
    Address(Option<Rc<Place>>),
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
        if let Root::Local(cell, path) = &pointer.root {
            let index = index.number().and_then(|it| u32::try_from(it).ok());
            let path = path.iter().copied().chain([index]).collect();
            pointer.root = Root::Local(*cell, path);
        }
        match self.get(pointer.ty) {
            Type::Struct { members, .. } => {
                let at = index.number().and_then(|it| usize::try_from(it).ok());
                let Some((at, member)) = at.and_then(|it| Some((it, members.get(it)?))) else {
                    return lose(pointer);
                };
                pointer.offset = pointer.offset.saturating_add(member.offset);
                pointer.matrix = member.matrix;
                pointer.ty = member.ty;
                pointer.member = pointer.member.or(Some(at as u32));
            }
            Type::Array { of, count, .. }
                if pointer.member.is_none() && matches!(pointer.root, Root::Descriptor(_)) =>
            {
                pointer.element = choose(&pointer.element, *count, index, || self.place_of_index(bindings, index));
                pointer.ty = *of;
            }
            Type::Array { of, count, stride, .. } => {
                advance(pointer, index, *stride, *count);
                pointer.ty = *of;
            }
            Type::Vector { of, count } => {
                let stride = pointer.component_stride.take().or_else(|| self.size(*of, pointer.matrix));
                advance(pointer, index, stride.unwrap_or(0), Some(u64::from(*count)));
                pointer.ty = *of;
            }
            Type::Matrix { of, columns } => {
                let layout = pointer.matrix;
                let number = match self.get(*of) {
                    Type::Vector { of, .. } => self.size(*of, layout).unwrap_or(0),
                    _ => 0,
                };
                let stride = if layout.row_major { number } else { layout.stride };
                advance(pointer, index, stride, Some(u64::from(*columns)));
                pointer.component_stride = layout.row_major.then_some(layout.stride);
                pointer.ty = *of;
            }
            _ => lose(pointer),
        }
    }

    /// A step from one element to another of the array that a pointer is in.
    pub(super) fn leap(&self, pointer: &mut Pointer, index: &Value, stride: u64) {
        if index.number() == Some(0) {
            return;
        }
        let stride = if stride == 0 { self.size(pointer.ty, pointer.matrix).unwrap_or(0) } else { stride };
        advance(pointer, index, stride, None);
    }

    /// The bytes that an access through a pointer touches. Several where a vector's components lie apart.
    pub(super) fn bytes(&self, pointer: &Pointer, ty: TypeRef) -> Vec<Bytes> {
        let ranges = match (self.get(ty), pointer.component_stride) {
            (Type::Vector { of, count }, Some(stride)) => {
                let size = self.size(*of, pointer.matrix);
                (0..u64::from(*count).min(4)).map(|it| (it.saturating_mul(stride), size)).collect()
            }
            _ => vec![(0, self.size(ty, pointer.matrix))],
        };
        ranges.into_iter().map(|(shift, size)| range(pointer, shift, size)).collect()
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
        pointer.offset = loaded.plus;
        if loaded.is_shifted {
            (pointer.offset, pointer.spread) = (0, None);
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
            Value::Loaded(it) if it.plus == 0 && !it.is_shifted => self.place_of(bindings, &it.from).map(Rc::new),
            _ => None,
        }
    }
}

fn range(pointer: &Pointer, shift: u64, size: Option<u64>) -> Bytes {
    let start = pointer.offset.saturating_add(shift);
    let end = pointer.spread.zip(size).map(|(spread, size)| start.saturating_add(spread).saturating_add(size));
    Bytes { start, end, is_exact: pointer.spread == Some(0) && size.is_some() }
}

fn advance(pointer: &mut Pointer, index: &Value, stride: u64, count: Option<u64>) {
    match index.number() {
        Some(index) => pointer.offset = pointer.offset.saturating_add(index.saturating_mul(stride)),
        None => {
            let most = count.map(|it| it.saturating_sub(1).saturating_mul(stride));
            pointer.spread = pointer.spread.zip(most).map(|(spread, most)| spread.saturating_add(most));
        }
    }
}

fn choose(before: &Chosen, count: Option<u64>, index: &Value, from: impl Fn() -> Option<Rc<Place>>) -> Chosen {
    match (before, index.number(), count) {
        (Chosen::Constant(0), Some(index), _) => Chosen::Constant(index),
        (Chosen::Constant(before), Some(index), Some(count)) => {
            Chosen::Constant(before.saturating_mul(count).saturating_add(index))
        }
        (Chosen::Constant(0), None, _) => Chosen::Dynamic(from()),
        _ => Chosen::Dynamic(None),
    }
}

/// Somewhere in the rest.
fn lose(pointer: &mut Pointer) {
    pointer.spread = None;
    pointer.ty = TypeRef::MAX;
}
