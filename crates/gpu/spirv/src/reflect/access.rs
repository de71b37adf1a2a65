//! Which instructions access resources, and which part of them.

use spirv::{Op, StorageClass};

use crate::{
    Access, AccessKind, Bytes, Each, Id, Instruction, Mode, Place, Target, image_use,
    images::second_image,
    reflect::{
        pointer::{Pointer, Root, each},
        types::{TypeRef, is_address},
        value::{Value, one_of},
        walk::Frame,
    },
};

/// How far an access through a pointer reaches.
#[derive(Clone, Copy, Debug)]
pub(super) enum Reach {
    Type(TypeRef),
    /// This many bytes, if it is known.
    Bytes(Option<u64>),
}

impl Frame<'_, '_> {
    /// What an instruction on resources gives; nothing where it gives nothing.
    pub(super) fn resource(&mut self, op: Op, it: Instruction<'_>) -> Option<Value> {
        match op {
            Op::SampledImage => {
                return Some(Value::Sampled((self.value(it.id(3)), self.value(it.id(4))).into()));
            }
            Op::Image => {
                return Some(match self.value(it.id(3)) {
                    Value::Sampled(both) => both.0.clone(),
                    other => other,
                });
            }
            Op::ImageTexelPointer => return Some(self.texel_pointer(it.id(3))),
            Op::UntypedImageTexelPointerEXT => return Some(self.texel_pointer(it.id(4))),
            Op::ConvertUToAccelerationStructureKHR => return Some(self.structure_at(it)),
            Op::ArrayLength => self.access(it, it.id(3), Reach::Bytes(Some(0)), AccessKind::Query, Mode::None),
            Op::UntypedArrayLengthKHR => {
                self.access(it, it.id(4), Reach::Bytes(Some(0)), AccessKind::Query, Mode::None)
            }
            Op::ColorAttachmentReadEXT => self.read_tile_image(it),
            Op::DepthAttachmentReadEXT => self.machine.found.reads_depth = true,
            Op::StencilAttachmentReadEXT => self.machine.found.reads_stencil = true,
            _ => match image_use(op) {
                Some((place, kind, mode)) => {
                    let value = self.value(it.id(place));
                    self.handle(it, &value, kind, mode, true);
                    self.second_image(op, it);
                }
                None => self.pointer_access(op, it),
            },
        }
        None
    }

    /// An access through a pointer, to memory or to an input or output.
    pub(super) fn access(&mut self, it: Instruction<'_>, pointer: Id, reach: Reach, kind: AccessKind, mode: Mode) {
        let value = self.value(pointer);
        let all = value.each();
        for one in all {
            match one {
                Value::Pointer(one) => self.access_one(it, one, reach, kind, mode, all.len() == 1),
                _ => self.access_unknown(it, pointer, kind, mode),
            }
        }
    }

    fn access_one(
        &mut self,
        it: Instruction<'_>,
        pointer: &Pointer,
        reach: Reach,
        kind: AccessKind,
        mode: Mode,
        sure: bool,
    ) {
        let targets: Vec<(Target, Option<Each>)> = match &pointer.root {
            Root::Local(..) | Root::Fixed(..) => return,
            Root::Variable(place) => {
                self.machine.found.is_incomplete |= self.machine.variables.is_heap(*place);
                let (read, written) = self.machine.found.interface.entry((*place, pointer.member)).or_default();
                *read |= mode.reads();
                *written |= mode.writes();
                return;
            }
            Root::Descriptor(variable) if pointer.is_texel || !self.machine.variables.has_bytes(*variable) => {
                vec![(self.descriptor(*variable, pointer, None), None)]
            }
            Root::Descriptor(variable) => {
                let ranges = self.ranges(pointer, reach).into_iter();
                ranges.map(|(bytes, each)| (self.descriptor(*variable, pointer, Some(bytes)), each)).collect()
            }
            Root::PushConstant => {
                let ranges = self.ranges(pointer, reach).into_iter();
                ranges.map(|(bytes, each)| (Target::PushConstant { bytes }, each)).collect()
            }
            Root::Address(from) => {
                let from = || from.as_ref().map(|it| Place::clone(it));
                let ranges = self.ranges(pointer, reach).into_iter();
                ranges.map(|(bytes, each)| (Target::Address { from: from(), bytes }, each)).collect()
            }
        };
        for (target, each) in targets {
            self.remember(Access { at: it.at, target, each, kind, mode, is_certain: sure });
        }
    }

    fn ranges(&self, pointer: &Pointer, reach: Reach) -> Vec<(Bytes, Option<Each>)> {
        match reach {
            Reach::Type(ty) => self.machine.types.bytes(pointer, ty),
            Reach::Bytes(size) => {
                let most = pointer.spread.zip(size).map(|(spread, size)| spread.saturating_add(size));
                let end = most.map(|it| pointer.offset.saturating_add(it));
                let is_exact = pointer.spread == Some(0) && size.is_some();
                vec![(Bytes { start: pointer.offset, end, is_exact }, each(pointer, 0, size))]
            }
        }
    }

    fn descriptor(&self, variable: u32, pointer: &Pointer, bytes: Option<Bytes>) -> Target {
        let descriptor = self.machine.variables.descriptor(variable);
        Target::Descriptor { descriptor, element: self.machine.types.element(pointer), bytes }
    }

    /// Where a pointer leads is not known.
    fn access_unknown(&mut self, it: Instruction<'_>, pointer: Id, kind: AccessKind, mode: Mode) {
        let types = &self.machine.types;
        let Some(class) = types.class(types.of_value(pointer)) else { return };
        if is_address(class) {
            self.remember(Access { at: it.at, target: address(None), each: None, kind, mode, is_certain: false });
        }
        let resources = [StorageClass::Uniform, StorageClass::UniformConstant, StorageClass::StorageBuffer];
        self.machine.found.is_incomplete |= resources.iter().any(|it| *it as u32 == class);
    }

    /// An access to an image, a sampler, an acceleration structure or a tensor that was loaded.
    fn handle(&mut self, it: Instruction<'_>, value: &Value, kind: AccessKind, mode: Mode, sure: bool) {
        match value {
            Value::Handle(pointer) => {
                let target = match &pointer.root {
                    Root::Descriptor(variable) => self.descriptor(*variable, pointer, None),
                    Root::Address(from) => address(from.as_ref().map(|it| Place::clone(it))),
                    _ => return self.machine.found.is_incomplete = true,
                };
                self.remember(Access { at: it.at, target, each: None, kind, mode, is_certain: sure });
            }
            Value::Sampled(both) => {
                self.handle(it, &both.0, kind, mode, sure);
                self.handle(it, &both.1, kind, Mode::None, sure);
            }
            Value::OneOf(all) => all.iter().for_each(|one| self.handle(it, one, kind, mode, false)),
            _ => self.machine.found.is_incomplete = true,
        }
    }

    /// Image processing that takes another image.
    fn second_image(&mut self, op: Op, it: Instruction<'_>) {
        let Some(place) = second_image(op) else { return };
        let value = self.value(it.id(place));
        self.handle(it, &value, AccessKind::Sample, Mode::Read, true);
    }

    fn texel_pointer(&self, image: Id) -> Value {
        let value = self.value(image);
        let texels = value.each().iter().map(|one| match one {
            Value::Pointer(one) => Value::Pointer(Pointer { is_texel: true, ..Pointer::clone(one) }.into()),
            other => other.clone(),
        });
        one_of(texels.collect())
    }

    /// An acceleration structure by its address.
    fn structure_at(&self, it: Instruction<'_>) -> Value {
        match self.value(it.id(3)) {
            Value::Loaded(from) => {
                let machine = &*self.machine;
                Value::Handle(machine.types.address(&machine.variables, &from, TypeRef::MAX).into())
            }
            _ => Value::Handle(Pointer::new(Root::Address(None), TypeRef::MAX).into()),
        }
    }

    fn pointer_access(&mut self, op: Op, it: Instruction<'_>) {
        let Some((place, kind, mode)) = pointer_access(op) else { return };
        let reach = match (kind, mode) {
            (AccessKind::Atomic, Mode::Write) => Reach::Type(self.machine.types.of_value(it.id(4))),
            (AccessKind::Atomic, _) if it.result().is_some() => Reach::Type(self.result_type(it)),
            // A matrix is spread over rows whose distance is only known at run time.
            _ => Reach::Bytes(None),
        };
        self.access(it, it.id(place), reach, kind, mode);
        if op == Op::CooperativeVectorMatrixMulAddNV {
            self.access(it, it.id(8), reach, kind, mode);
        }
    }

    fn read_tile_image(&mut self, it: Instruction<'_>) {
        if let Value::Handle(pointer) = self.value(it.id(3))
            && let Root::Variable(place) = pointer.root
        {
            self.machine.found.tile_images.push(place);
        }
    }
}

/// Somewhere behind an address.
fn address(from: Option<Place>) -> Target {
    Target::Address { from, bytes: Bytes { start: 0, end: None, is_exact: false } }
}

/// The operand that is a pointer, and what is done through it.
fn pointer_access(op: Op) -> Option<(usize, AccessKind, Mode)> {
    use AccessKind::{Atomic, Load, Store};
    Some(match op {
        Op::AtomicLoad => (3, Atomic, Mode::Read),
        Op::AtomicStore => (1, Atomic, Mode::Write),
        Op::AtomicExchange
        | Op::AtomicCompareExchange
        | Op::AtomicCompareExchangeWeak
        | Op::AtomicIIncrement
        | Op::AtomicIDecrement
        | Op::AtomicIAdd
        | Op::AtomicISub
        | Op::AtomicSMin
        | Op::AtomicUMin
        | Op::AtomicSMax
        | Op::AtomicUMax
        | Op::AtomicAnd
        | Op::AtomicOr
        | Op::AtomicXor
        | Op::AtomicFlagTestAndSet
        | Op::AtomicFAddEXT
        | Op::AtomicFMinEXT
        | Op::AtomicFMaxEXT => (3, Atomic, Mode::ReadWrite),
        Op::CooperativeMatrixLoadKHR
        | Op::CooperativeMatrixLoadNV
        | Op::CooperativeMatrixLoadTensorNV
        | Op::CooperativeVectorLoadNV => (3, Load, Mode::Read),
        Op::CooperativeMatrixStoreKHR
        | Op::CooperativeMatrixStoreNV
        | Op::CooperativeMatrixStoreTensorNV
        | Op::CooperativeVectorStoreNV => (1, Store, Mode::Write),
        Op::CooperativeVectorMatrixMulNV | Op::CooperativeVectorMatrixMulAddNV => (5, Load, Mode::Read),
        Op::CooperativeVectorOuterProductAccumulateNV | Op::CooperativeVectorReduceSumAccumulateNV => {
            (1, Atomic, Mode::ReadWrite)
        }
        _ => return None,
    })
}
