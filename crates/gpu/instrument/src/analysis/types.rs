//! The types of a module, as far as checks need them: what a pointer leads to, and which bytes that is.
//!
//! Read from the words on demand; only the layouts of structures are cached. A damaged module may have any types, so
//! nothing here goes deeper than [`DEPTH_MAX`].

use std::{cell::RefCell, rc::Rc};

use lavascope_spirv::{Id, Module};
use rustc_hash::FxHashMap;
use spirv::{Decoration, Dim, Op, StorageClass};

const DEPTH_MAX: u32 = 32;

pub(crate) struct Types<'a> {
    module: &'a Module,
    structs: RefCell<FxHashMap<Id, Rc<StructLayout>>>,
}

/// How the members of a structure lie.
pub(crate) struct StructLayout {
    pub(crate) members: Vec<Member>,
    /// Decorated with `Block` or `BufferBlock`.
    pub(crate) kind: Option<BlockKind>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum BlockKind {
    Block,
    BufferBlock,
}

#[derive(Clone, Copy)]
pub(crate) struct Member {
    pub(crate) ty: Id,
    pub(crate) offset: u64,
    pub(crate) matrix: MatrixLayout,
}

/// How matrices in a member are laid out.
#[derive(Clone, Copy, Default)]
pub(crate) struct MatrixLayout {
    pub(crate) stride: u64,
    pub(crate) is_row_major: bool,
}

/// The effect of an index into a type.
pub(crate) enum IndexStep {
    /// A member of a structure, by a constant.
    Member(Rc<StructLayout>),
    /// Elements at a distance of this many bytes.
    Element {
        of: Id,
        stride: u64,
    },
    /// A column of a matrix.
    Column(Id),
    /// A component of a vector.
    Component(Id),
    None,
}

impl<'a> Types<'a> {
    pub(crate) fn new(module: &'a Module) -> Types<'a> {
        Types { module, structs: RefCell::default() }
    }

    fn op(&self, ty: Id) -> Option<Op> {
        self.module.definition(ty)?.op()
    }

    pub(crate) fn of_value(&self, id: Id) -> Option<Id> {
        self.module.definition(id)?.result_type()
    }

    /// The storage class of a pointer type and what it leads to.
    pub(crate) fn pointer(&self, ty: Id) -> Option<(StorageClass, Id)> {
        let instruction = self.module.definition(ty).filter(|it| it.is(Op::TypePointer))?;
        Some((StorageClass::from_u32(instruction.word(2))?, instruction.id(3)))
    }

    /// The class and the target of a value that is a pointer.
    pub(crate) fn pointer_value(&self, id: Id) -> Option<(StorageClass, Id)> {
        self.pointer(self.of_value(id)?)
    }

    /// The element's type and the id of the length, which a runtime array has not.
    pub(crate) fn array(&self, ty: Id) -> Option<(Id, Option<Id>)> {
        let instruction = self.module.definition(ty)?;
        match instruction.op()? {
            Op::TypeArray => Some((instruction.id(2), Some(instruction.id(3)))),
            Op::TypeRuntimeArray => Some((instruction.id(2), None)),
            _ => None,
        }
    }

    /// Without the arrays around it.
    pub(crate) fn strip_arrays(&self, mut ty: Id) -> Id {
        for _ in 0..DEPTH_MAX {
            match self.array(ty) {
                Some((of, _)) => ty = of,
                None => break,
            }
        }
        ty
    }

    /// Whether it is what a descriptor gives a shader besides buffers: images, samplers, acceleration structures.
    pub(crate) fn is_opaque(&self, ty: Id) -> bool {
        matches!(
            self.op(ty),
            Some(Op::TypeImage | Op::TypeSampler | Op::TypeSampledImage | Op::TypeAccelerationStructureKHR)
        )
    }

    /// Whether a value of image type is a texel buffer.
    pub(crate) fn is_texel_buffer(&self, image: Id) -> bool {
        let is_image = |ty: Id| {
            self.module.definition(ty).is_some_and(|it| it.is(Op::TypeImage) && it.word(3) == Dim::DimBuffer as u32)
        };
        self.of_value(image).is_some_and(is_image)
    }

    pub(crate) fn structure(&self, ty: Id) -> Option<Rc<StructLayout>> {
        if let Some(found) = self.structs.borrow().get(&ty) {
            return Some(found.clone());
        }
        let instruction = self.module.definition(ty).filter(|it| it.is(Op::TypeStruct))?;
        let member = |ty: &u32| Member { ty: Id(*ty), offset: 0, matrix: MatrixLayout::default() };
        let mut made = StructLayout { members: instruction.words_from(2).iter().map(member).collect(), kind: None };
        for note in self.module.decorations(ty) {
            let words = self.module.decoration_words(note);
            let (what, operand) = (words.first().copied().unwrap_or(0), words.get(1).copied().unwrap_or(0));
            match note.member.map(|it| made.members.get_mut(it as usize)) {
                None if what == Decoration::Block as u32 => made.kind = Some(BlockKind::Block),
                None if what == Decoration::BufferBlock as u32 => made.kind = Some(BlockKind::BufferBlock),
                Some(Some(member)) => lay_out(member, what, operand),
                _ => {}
            }
        }
        let made = Rc::new(made);
        self.structs.borrow_mut().insert(ty, made.clone());
        Some(made)
    }

    /// The effect of one more index into a type.
    pub(crate) fn index_step(&self, ty: Id) -> IndexStep {
        let Some(other) = self.module.definition(ty) else { return IndexStep::None };
        match other.op() {
            Some(Op::TypeStruct) => self.structure(ty).map_or(IndexStep::None, IndexStep::Member),
            Some(Op::TypeArray | Op::TypeRuntimeArray) => {
                let stride = self.module.decoration_operand(ty, None, Decoration::ArrayStride);
                IndexStep::Element { of: other.id(2), stride: u64::from(stride.unwrap_or(0)) }
            }
            Some(Op::TypeMatrix) => IndexStep::Column(other.id(2)),
            Some(Op::TypeVector) => IndexStep::Component(other.id(2)),
            _ => IndexStep::None,
        }
    }

    /// The bytes from the first one of a type to its last. Nothing where the end is open.
    pub(crate) fn size(&self, ty: Id, matrix: MatrixLayout) -> Option<u64> {
        self.size_within(ty, matrix, 0)
    }

    fn size_within(&self, ty: Id, matrix: MatrixLayout, depth: u32) -> Option<u64> {
        let instruction = self.module.definition(ty).filter(|_| depth < DEPTH_MAX)?;
        let inner = |of| self.size_within(of, matrix, depth + 1);
        match instruction.op()? {
            Op::TypeBool => Some(4),
            Op::TypeInt | Op::TypeFloat => Some(u64::from(instruction.word(2) / 8)),
            Op::TypeVector => inner(instruction.id(2))?.checked_mul(u64::from(instruction.word(3))),
            Op::TypeMatrix => {
                let column = self.module.definition(instruction.id(2)).filter(|it| it.is(Op::TypeVector))?;
                let number = inner(column.id(2))?;
                let (outer, row) = match matrix.is_row_major {
                    true => (column.word(3), instruction.word(3)),
                    false => (instruction.word(3), column.word(3)),
                };
                let before = u64::from(outer.saturating_sub(1)).checked_mul(matrix.stride)?;
                before.checked_add(number.checked_mul(u64::from(row))?)
            }
            Op::TypeArray => {
                let stride = self.module.decoration_operand(ty, None, Decoration::ArrayStride)?;
                let count = self.literal(instruction.id(3)).or_else(|| self.default_length(instruction.id(3)))?;
                count.saturating_sub(1).checked_mul(u64::from(stride))?.checked_add(inner(instruction.id(2))?)
            }
            Op::TypeStruct => {
                let structure = self.structure(ty)?;
                let end = |it: &Member| it.offset.checked_add(self.size_within(it.ty, it.matrix, depth + 1)?);
                structure.members.iter().try_fold(0, |all, it| Some(u64::max(all, end(it)?)))
            }
            Op::TypePointer if instruction.word(2) == StorageClass::PhysicalStorageBuffer as u32 => Some(8),
            _ => None,
        }
    }

    /// The number that an integer constant surely is, with zeros above its width.
    pub(crate) fn literal(&self, id: Id) -> Option<u64> {
        let instruction = self.module.definition(id)?;
        if instruction.is(Op::Constant) {
            let ty = self.module.definition(instruction.id(1)).filter(|it| it.is(Op::TypeInt))?;
            let number = u64::from(instruction.word(3)) | u64::from(instruction.word(4)) << 32;
            let unused = 64 - ty.word(2).clamp(1, 64);
            return Some(number << unused >> unused);
        }
        let is_null = instruction.is(Op::ConstantNull)
            && self.module.definition(instruction.id(1)).is_some_and(|it| it.is(Op::TypeInt));
        is_null.then_some(0)
    }

    /// The default value of a specialization constant: sizes of whole arrays use it.
    fn default_length(&self, id: Id) -> Option<u64> {
        self.module.definition(id).filter(|it| it.is(Op::SpecConstant)).map(|it| u64::from(it.word(3)))
    }

    /// Bits and signedness of an integer type.
    pub(crate) fn integer(&self, ty: Id) -> Option<(u32, bool)> {
        let instruction = self.module.definition(ty).filter(|it| it.is(Op::TypeInt))?;
        Some((instruction.word(2), instruction.word(3) != 0))
    }

    pub(crate) fn is_integer(&self, ty: Id) -> bool {
        self.module.definition(ty).is_some_and(|it| it.is(Op::TypeInt))
    }

    /// Whether there is a null of a type that may stand where a value was not made.
    pub(crate) fn has_null(&self, ty: Id) -> bool {
        self.has_null_within(ty, 0)
    }

    fn has_null_within(&self, ty: Id, depth: u32) -> bool {
        let Some(other) = self.module.definition(ty).filter(|_| depth < DEPTH_MAX) else { return false };
        match other.op() {
            Some(Op::TypeBool | Op::TypeInt | Op::TypeFloat | Op::TypeVector | Op::TypeMatrix) => true,
            Some(Op::TypeArray) => self.has_null_within(other.id(2), depth + 1),
            Some(Op::TypeStruct) => other.words_from(2).iter().all(|it| self.has_null_within(Id(*it), depth + 1)),
            _ => false,
        }
    }
}

fn lay_out(member: &mut Member, decoration: u32, operand: u32) {
    if decoration == Decoration::Offset as u32 {
        member.offset = u64::from(operand);
    } else if decoration == Decoration::MatrixStride as u32 {
        member.matrix.stride = u64::from(operand);
    } else if decoration == Decoration::RowMajor as u32 {
        member.matrix.is_row_major = true;
    }
}
