//! The types of a module, with sizes and offsets where the module lays them out.
//!
//! Types are read in the order of the module and refer only to earlier ones (pointers, which may be declared ahead,
//! are followed one step at a time), so no walk over them can run in circles.

use std::rc::Rc;

use spirv::{Decoration, Op};

use crate::{Id, Instruction, InstructionIndex, Module, reflect::constants::Constants};

/// A type, by the place of the instruction that makes it.
pub(super) type TypeRef = u32;

/// Deeper nesting is not followed: no shader has it, and a damaged module must not exhaust the stack.
const DEPTH_MAX: u8 = 48;

#[derive(Clone, Debug)]
pub(super) enum Type {
    /// Void, function types, and unknown types.
    Other,
    Bool,
    Int {
        width: u32,
        signed: bool,
    },
    Float {
        width: u32,
    },
    Vector {
        of: TypeRef,
        count: u32,
    },
    Matrix {
        of: TypeRef,
        columns: u32,
    },
    Image {
        dim: u32,
        sampled: u32,
    },
    Sampler,
    SampledImage {
        image: TypeRef,
    },
    AccelerationStructure,
    Tensor,
    Array {
        of: TypeRef,
        /// Nothing for a runtime array, or where the constant is not known.
        count: Option<u64>,
        stride: u64,
        depth: u8,
    },
    Struct {
        members: Rc<[Member]>,
        kind: StructKind,
        /// Bytes, or nothing where the end is open.
        size: Option<u64>,
        /// Of an interface.
        locations: u32,
        depth: u8,
    },
    Pointer {
        class: u32,
        /// The id, since it may be made later.
        to: Id,
        stride: u64,
    },
    Untyped {
        class: u32,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StructKind {
    Plain,
    Block,
    BufferBlock,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Member {
    pub(super) ty: TypeRef,
    pub(super) offset: u64,
    pub(super) matrix: MatrixLayout,
}

/// How matrices in a member are laid out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct MatrixLayout {
    pub(super) stride: u64,
    pub(super) row_major: bool,
}

/// The types of a module under one specialization, by the place of their instruction.
pub(super) struct Types<'a> {
    module: &'a Module,
    all: Vec<Type>,
}

impl<'a> Types<'a> {
    pub(super) fn new(module: &'a Module, constants: &Constants<'_>) -> Types<'a> {
        let mut types = Types { module, all: Vec::with_capacity(module.globals().len()) };
        for instruction in module.instructions(module.globals()) {
            let ty = types.read(instruction, constants);
            types.all.push(ty);
        }
        types
    }

    pub(super) fn get(&self, ty: TypeRef) -> &Type {
        self.all.get(ty as usize).unwrap_or(&Type::Other)
    }

    /// The place of a type, or one that is no type.
    pub(super) fn type_ref(&self, id: Id) -> TypeRef {
        self.module.definition_index(id).map_or(TypeRef::MAX, |it| it.0)
    }

    /// The type of a value.
    pub(super) fn of_value(&self, id: Id) -> TypeRef {
        self.module.definition(id).and_then(|it| it.result_type()).map_or(TypeRef::MAX, |it| self.type_ref(it))
    }

    /// The pointee of a pointer type.
    pub(super) fn pointee(&self, pointer: TypeRef) -> TypeRef {
        match self.get(pointer) {
            Type::Pointer { to, .. } => self.type_ref(*to),
            _ => TypeRef::MAX,
        }
    }

    /// The storage class of a pointer type.
    pub(super) fn class(&self, pointer: TypeRef) -> Option<u32> {
        match self.get(pointer) {
            Type::Pointer { class, .. } | Type::Untyped { class } => Some(*class),
            _ => None,
        }
    }

    /// Bits of an integer, a float, or their vectors' components.
    pub(super) fn width(&self, ty: TypeRef) -> Option<u32> {
        match self.get(ty) {
            Type::Int { width, .. } | Type::Float { width } => Some(*width),
            Type::Vector { of, .. } => match self.get(*of) {
                Type::Int { width, .. } | Type::Float { width } => Some(*width),
                _ => None,
            },
            _ => None,
        }
    }

    /// Without the arrays around it.
    pub(super) fn strip_arrays(&self, mut ty: TypeRef) -> TypeRef {
        while let Type::Array { of, .. } = self.get(ty) {
            ty = *of;
        }
        ty
    }

    /// The number of elements of all arrays around it; nothing where it is open.
    pub(super) fn array_count(&self, mut ty: TypeRef) -> Option<u64> {
        let mut all = 1u64;
        while let Type::Array { of, count, .. } = self.get(ty) {
            all = all.saturating_mul((*count)?);
            ty = *of;
        }
        Some(all)
    }

    /// The bytes from the first one of a type to its last; nothing where the end is open or unknown.
    pub(super) fn size(&self, ty: TypeRef, matrix: MatrixLayout) -> Option<u64> {
        match self.get(ty) {
            // A boolean has no size in memory that is seen from outside.
            Type::Bool => Some(4),
            Type::Int { width, .. } | Type::Float { width } => Some(u64::from(width / 8)),
            Type::Vector { of, count } => Some(self.size(*of, matrix)?.saturating_mul(u64::from(*count))),
            Type::Matrix { of, columns } => {
                let Type::Vector { of: number, count: rows } = self.get(*of) else { return None };
                let number = self.size(*number, matrix)?;
                let (outer, inner) = if matrix.row_major { (*rows, *columns) } else { (*columns, *rows) };
                let before = u64::from(outer.saturating_sub(1)).saturating_mul(matrix.stride);
                Some(before.saturating_add(number.saturating_mul(u64::from(inner))))
            }
            Type::Array { of, count, stride, .. } => {
                let last = (*count)?.saturating_sub(1).saturating_mul(*stride);
                Some(last.saturating_add(self.size(*of, matrix)?))
            }
            Type::Struct { size, .. } => *size,
            Type::Pointer { class, .. } | Type::Untyped { class } if is_address(*class) => Some(8),
            _ => None,
        }
    }

    /// How many locations of an interface a type takes.
    pub(super) fn locations(&self, ty: TypeRef) -> u32 {
        match self.get(ty) {
            Type::Vector { of, count: 3.. } if self.width(*of) == Some(64) => 2,
            Type::Matrix { of, columns } => columns.saturating_mul(self.locations(*of)),
            Type::Array { of, count, .. } => {
                let count = count.and_then(|it| u32::try_from(it).ok()).unwrap_or(1);
                count.saturating_mul(self.locations(*of))
            }
            Type::Struct { locations, .. } => *locations,
            _ => 1,
        }
    }

    /// The number of parts of a composite, where it is known.
    pub(super) fn parts(&self, ty: TypeRef) -> Option<usize> {
        match self.get(ty) {
            Type::Vector { count, .. } => Some(*count as usize),
            Type::Matrix { columns, .. } => Some(*columns as usize),
            Type::Array { count, .. } => usize::try_from((*count)?).ok(),
            Type::Struct { members, .. } => Some(members.len()),
            _ => None,
        }
    }

    /// The type of a part of a composite.
    pub(super) fn part(&self, ty: TypeRef, index: Option<u32>) -> TypeRef {
        match self.get(ty) {
            Type::Vector { of, .. } | Type::Matrix { of, .. } | Type::Array { of, .. } => *of,
            Type::Struct { members, .. } => {
                index.and_then(|it| members.get(it as usize)).map_or(TypeRef::MAX, |it| it.ty)
            }
            _ => TypeRef::MAX,
        }
    }

    fn depth(&self, ty: TypeRef) -> u8 {
        match self.get(ty) {
            Type::Array { depth, .. } | Type::Struct { depth, .. } => *depth,
            _ => 0,
        }
    }

    fn read(&self, instruction: Instruction<'_>, constants: &Constants<'_>) -> Type {
        // A forward reference is an unknown type.
        let earlier = |place| match self.module.definition_index(instruction.id(place)) {
            Some(InstructionIndex(at)) if (at as usize) < self.all.len() => at,
            _ => TypeRef::MAX,
        };
        let decoration = |what| instruction.result().and_then(|id| self.module.decoration_operand(id, None, what));
        let stride = || u64::from(decoration(Decoration::ArrayStride).unwrap_or(0));
        match instruction.op() {
            Some(Op::TypeBool) => Type::Bool,
            Some(Op::TypeInt) => Type::Int { width: instruction.word(2), signed: instruction.word(3) != 0 },
            Some(Op::TypeFloat) => Type::Float { width: instruction.word(2) },
            Some(Op::TypeVector) => match self.get(earlier(2)) {
                Type::Int { .. } | Type::Float { .. } | Type::Bool => {
                    Type::Vector { of: earlier(2), count: instruction.word(3) }
                }
                _ => Type::Other,
            },
            Some(Op::TypeMatrix) => match self.get(earlier(2)) {
                Type::Vector { .. } => Type::Matrix { of: earlier(2), columns: instruction.word(3) },
                _ => Type::Other,
            },
            Some(Op::TypeImage) => Type::Image { dim: instruction.word(3), sampled: instruction.word(7) },
            Some(Op::TypeSampler) => Type::Sampler,
            Some(Op::TypeSampledImage) => Type::SampledImage { image: earlier(2) },
            Some(Op::TypeAccelerationStructureKHR) => Type::AccelerationStructure,
            Some(Op::TypeTensorARM) => Type::Tensor,
            Some(Op::TypeArray) => self.array(earlier(2), constants.number(instruction.id(3)), stride()),
            Some(Op::TypeRuntimeArray) => self.array(earlier(2), None, stride()),
            Some(Op::TypeStruct) => self.structure(instruction),
            Some(Op::TypePointer) => {
                Type::Pointer { class: instruction.word(2), to: instruction.id(3), stride: stride() }
            }
            Some(Op::TypeUntypedPointerKHR) => Type::Untyped { class: instruction.word(2) },
            _ => Type::Other,
        }
    }

    fn array(&self, of: TypeRef, count: Option<u64>, stride: u64) -> Type {
        let depth = self.depth(of) + 1;
        if depth > DEPTH_MAX { Type::Other } else { Type::Array { of, count, stride, depth } }
    }

    fn structure(&self, instruction: Instruction<'_>) -> Type {
        let mut members: Vec<Member> = instruction
            .words_from(2)
            .iter()
            .map(|ty| {
                let ty = self.type_ref(Id(*ty));
                let ty = if (ty as usize) < self.all.len() { ty } else { TypeRef::MAX };
                Member { ty, offset: 0, matrix: MatrixLayout::default() }
            })
            .collect();
        let mut kind = StructKind::Plain;
        for note in instruction.result().into_iter().flat_map(|id| self.module.decorations(id)) {
            let words = self.module.decoration_words(note);
            let (what, operand) = (words.first().copied().unwrap_or(0), words.get(1).copied().unwrap_or(0));
            match note.member.map(|it| it as usize) {
                None if what == Decoration::Block as u32 => kind = StructKind::Block,
                None if what == Decoration::BufferBlock as u32 => kind = StructKind::BufferBlock,
                Some(member) if member < members.len() => lay_out(&mut members[member], what, operand),
                _ => {}
            }
        }
        let depth = members.iter().map(|it| self.depth(it.ty)).max().unwrap_or(0) + 1;
        if depth > DEPTH_MAX {
            return Type::Other;
        }
        let end = |it: &Member| Some(it.offset.saturating_add(self.size(it.ty, it.matrix)?));
        let size = members.iter().map(end).try_fold(0, |all, it| Some(u64::max(all, it?)));
        let locations = members.iter().map(|it| self.locations(it.ty)).fold(0, u32::saturating_add);
        Type::Struct { members: members.into(), kind, size, locations, depth }
    }
}

fn lay_out(member: &mut Member, decoration: u32, operand: u32) {
    if decoration == Decoration::Offset as u32 {
        member.offset = u64::from(operand);
    } else if decoration == Decoration::MatrixStride as u32 {
        member.matrix.stride = u64::from(operand);
    } else if decoration == Decoration::RowMajor as u32 {
        member.matrix.row_major = true;
    }
}

pub(super) fn is_address(class: u32) -> bool {
    class == spirv::StorageClass::PhysicalStorageBuffer as u32
}
