//! Sizes and offsets of a module's types, without a reflection.

use crate::{
    Id, Module, Specialization,
    reflect::{
        constants::Constants,
        types::{MatrixLayout, Type, Types},
    },
};

/// How types lie in memory, under one specialization.
pub struct TypeLayouts<'a> {
    types: Types<'a>,
}

impl<'a> TypeLayouts<'a> {
    pub fn new(module: &'a Module, specialization: &Specialization) -> TypeLayouts<'a> {
        let constants = Constants::new(module, specialization);
        TypeLayouts { types: Types::new(module, &constants) }
    }

    /// The bytes from the first one of a type to its last. Nothing where the end is open, or where the size is not the
    /// type's alone, as that of a matrix.
    pub fn size(&self, ty: Id) -> Option<u64> {
        let place = self.types.type_ref(ty);
        match self.types.get(self.types.strip_arrays(place)) {
            Type::Matrix { .. } => None,
            _ => self.types.size(place, MatrixLayout::default()),
        }
    }

    /// The bytes of a member of a structure, matrices included.
    pub fn member_size(&self, structure: Id, member: u32) -> Option<u64> {
        match self.types.get(self.types.type_ref(structure)) {
            Type::Struct { members, .. } => {
                members.get(member as usize).and_then(|it| self.types.size(it.ty, it.matrix))
            }
            _ => None,
        }
    }

    pub fn member_offset(&self, structure: Id, member: u32) -> Option<u64> {
        match self.types.get(self.types.type_ref(structure)) {
            Type::Struct { members, .. } => members.get(member as usize).map(|it| it.offset),
            _ => None,
        }
    }

    /// The number of elements of an array; nothing where it is open.
    pub fn array_length(&self, array: Id) -> Option<u64> {
        match self.types.get(self.types.type_ref(array)) {
            Type::Array { count, .. } => *count,
            _ => None,
        }
    }

    pub fn array_stride(&self, array: Id) -> Option<u64> {
        match self.types.get(self.types.type_ref(array)) {
            Type::Array { stride, .. } => Some(*stride),
            _ => None,
        }
    }
}
