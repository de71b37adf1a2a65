//! Which instructions access resources, and which part of them.

use crate::ImageUse;
use spirv::{Op, StorageClass};

use crate::{
    AccessBytes, AccessKind, AccessMode, AccessTarget, Id, Instruction, InvocationBytes, ShaderAccess, ValueSource,
    image_operands::second_image,
    image_use,
    reflect::{
        interpreter::CallFrame,
        pointer::{Pointer, PointerRoot, invocation_bytes},
        types::{TypeRef, is_address},
        value::{Value, one_of},
    },
};

/// How far an access through a pointer reaches.
#[derive(Clone, Copy, Debug)]
pub(super) enum AccessSize {
    Type(TypeRef),
    /// This many bytes, if it is known.
    Bytes(Option<u64>),
}

impl CallFrame<'_, '_> {
    /// The result of an instruction on resources; none if it has none.
    pub(super) fn resource(&mut self, op: Op, instruction: Instruction<'_>) -> Option<Value> {
        match op {
            Op::SampledImage => {
                return Some(Value::Sampled((self.value(instruction.id(3)), self.value(instruction.id(4))).into()));
            }
            Op::Image => {
                return Some(match self.value(instruction.id(3)) {
                    Value::Sampled(both) => both.0.clone(),
                    other => other,
                });
            }
            Op::ImageTexelPointer => return Some(self.texel_pointer(instruction.id(3))),
            Op::UntypedImageTexelPointerEXT => return Some(self.texel_pointer(instruction.id(4))),
            Op::ConvertUToAccelerationStructureKHR => return Some(self.structure_at(instruction)),
            Op::ArrayLength => self.record_access(
                instruction,
                instruction.id(3),
                AccessSize::Bytes(Some(0)),
                AccessKind::Query,
                AccessMode::None,
            ),
            Op::UntypedArrayLengthKHR => self.record_access(
                instruction,
                instruction.id(4),
                AccessSize::Bytes(Some(0)),
                AccessKind::Query,
                AccessMode::None,
            ),
            Op::ColorAttachmentReadEXT => self.read_tile_image(instruction),
            Op::DepthAttachmentReadEXT => self.machine.traits.reads_depth = true,
            Op::StencilAttachmentReadEXT => self.machine.traits.reads_stencil = true,
            _ => match image_use(op) {
                Some(ImageUse { operand, kind, mode }) => {
                    let value = self.value(instruction.id(operand));
                    self.record_handle_access(instruction, &value, kind, mode, true);
                    self.second_image(op, instruction);
                }
                None => self.pointer_access(op, instruction),
            },
        }
        None
    }

    /// An access through a pointer, to memory or to an input or output.
    pub(super) fn record_access(
        &mut self,
        instruction: Instruction<'_>,
        pointer: Id,
        reach: AccessSize,
        kind: AccessKind,
        mode: AccessMode,
    ) {
        let value = self.value(pointer);
        let all = value.alternatives();
        for one in all {
            match one {
                Value::Pointer(one) => self.record_pointer_access(instruction, one, reach, kind, mode, all.len() == 1),
                _ => self.record_unknown_access(instruction, pointer, kind, mode),
            }
        }
    }

    fn record_pointer_access(
        &mut self,
        instruction: Instruction<'_>,
        pointer: &Pointer,
        reach: AccessSize,
        kind: AccessKind,
        mode: AccessMode,
        sure: bool,
    ) {
        let targets: Vec<(AccessTarget, Option<InvocationBytes>)> = match &pointer.root {
            PointerRoot::Local(..) | PointerRoot::ConstantPrivate(..) => return,
            PointerRoot::Variable(place) => {
                self.machine.traits.is_incomplete |= self.machine.variables.is_heap(*place);
                let (read, written) = self.machine.traits.interface.entry((*place, pointer.member)).or_default();
                *read |= mode.reads();
                *written |= mode.writes();
                return;
            }
            PointerRoot::Descriptor(variable) if pointer.is_texel || !self.machine.variables.is_buffer(*variable) => {
                vec![(self.descriptor(*variable, pointer, None), None)]
            }
            PointerRoot::Descriptor(variable) => {
                let ranges = self.ranges(pointer, reach).into_iter();
                ranges.map(|(bytes, each)| (self.descriptor(*variable, pointer, Some(bytes)), each)).collect()
            }
            PointerRoot::PushConstant => {
                let ranges = self.ranges(pointer, reach).into_iter();
                ranges.map(|(bytes, each)| (AccessTarget::PushConstant { bytes }, each)).collect()
            }
            PointerRoot::Address(from) => {
                let from = || from.as_ref().map(|it| ValueSource::clone(it));
                let ranges = self.ranges(pointer, reach).into_iter();
                ranges.map(|(bytes, each)| (AccessTarget::Address { from: from(), bytes }, each)).collect()
            }
        };
        for (target, each) in targets {
            self.add_access(ShaderAccess {
                at: instruction.at,
                target,
                per_invocation: each,
                kind,
                mode,
                is_certain: sure,
            });
        }
    }

    fn ranges(&self, pointer: &Pointer, reach: AccessSize) -> Vec<(AccessBytes, Option<InvocationBytes>)> {
        match reach {
            AccessSize::Type(ty) => self.machine.types.bytes(pointer, ty),
            AccessSize::Bytes(size) => {
                let most = pointer.max_extra_offset.zip(size).map(|(spread, size)| spread.saturating_add(size));
                let end = most.map(|it| pointer.offset.saturating_add(it));
                let is_exact = pointer.max_extra_offset == Some(0) && size.is_some();
                vec![(AccessBytes { start: pointer.offset, end, is_exact }, invocation_bytes(pointer, 0, size))]
            }
        }
    }

    fn descriptor(&self, variable: u32, pointer: &Pointer, bytes: Option<AccessBytes>) -> AccessTarget {
        let descriptor = self.machine.variables.descriptor(variable);
        AccessTarget::Descriptor { descriptor, element: self.machine.types.element(pointer), bytes }
    }

    /// Where a pointer leads is not known.
    fn record_unknown_access(&mut self, instruction: Instruction<'_>, pointer: Id, kind: AccessKind, mode: AccessMode) {
        let types = &self.machine.types;
        let Some(class) = types.class(types.of_value(pointer)) else { return };
        if is_address(class) {
            self.add_access(ShaderAccess {
                at: instruction.at,
                target: address(None),
                per_invocation: None,
                kind,
                mode,
                is_certain: false,
            });
        }
        let resources = [StorageClass::Uniform, StorageClass::UniformConstant, StorageClass::StorageBuffer];
        self.machine.traits.is_incomplete |= resources.iter().any(|it| *it as u32 == class);
    }

    /// An access to an image, a sampler, an acceleration structure or a tensor that was loaded.
    fn record_handle_access(
        &mut self,
        instruction: Instruction<'_>,
        value: &Value,
        kind: AccessKind,
        mode: AccessMode,
        sure: bool,
    ) {
        match value {
            Value::Handle(pointer) => {
                let target = match &pointer.root {
                    PointerRoot::Descriptor(variable) => self.descriptor(*variable, pointer, None),
                    PointerRoot::Address(from) => address(from.as_ref().map(|it| ValueSource::clone(it))),
                    _ => return self.machine.traits.is_incomplete = true,
                };
                self.add_access(ShaderAccess {
                    at: instruction.at,
                    target,
                    per_invocation: None,
                    kind,
                    mode,
                    is_certain: sure,
                });
            }
            Value::Sampled(both) => {
                self.record_handle_access(instruction, &both.0, kind, mode, sure);
                self.record_handle_access(instruction, &both.1, kind, AccessMode::None, sure);
            }
            Value::OneOf(all) => {
                all.iter().for_each(|one| self.record_handle_access(instruction, one, kind, mode, false))
            }
            _ => self.machine.traits.is_incomplete = true,
        }
    }

    /// Image processing that takes another image.
    fn second_image(&mut self, op: Op, instruction: Instruction<'_>) {
        let Some(place) = second_image(op) else { return };
        let value = self.value(instruction.id(place));
        self.record_handle_access(instruction, &value, AccessKind::Sample, AccessMode::Read, true);
    }

    fn texel_pointer(&self, image: Id) -> Value {
        let value = self.value(image);
        let texels = value.alternatives().iter().map(|one| match one {
            Value::Pointer(one) => Value::Pointer(Pointer { is_texel: true, ..Pointer::clone(one) }.into()),
            other => other.clone(),
        });
        one_of(texels.collect())
    }

    /// An acceleration structure by its address.
    fn structure_at(&self, instruction: Instruction<'_>) -> Value {
        match self.value(instruction.id(3)) {
            Value::Loaded(from) => {
                let machine = &*self.machine;
                Value::Handle(machine.types.address(&machine.variables, &from, TypeRef::MAX).into())
            }
            _ => Value::Handle(Pointer::new(PointerRoot::Address(None), TypeRef::MAX).into()),
        }
    }

    fn pointer_access(&mut self, op: Op, instruction: Instruction<'_>) {
        let Some((place, kind, mode)) = pointer_access(op) else { return };
        let reach = match (kind, mode) {
            (AccessKind::Atomic, AccessMode::Write) => AccessSize::Type(self.machine.types.of_value(instruction.id(4))),
            (AccessKind::Atomic, _) if instruction.result().is_some() => {
                AccessSize::Type(self.result_type(instruction))
            }
            // A matrix is spread over rows whose distance is only known at run time.
            _ => AccessSize::Bytes(None),
        };
        self.record_access(instruction, instruction.id(place), reach, kind, mode);
        if op == Op::CooperativeVectorMatrixMulAddNV {
            self.record_access(instruction, instruction.id(8), reach, kind, mode);
        }
    }

    fn read_tile_image(&mut self, instruction: Instruction<'_>) {
        if let Value::Handle(pointer) = self.value(instruction.id(3))
            && let PointerRoot::Variable(place) = pointer.root
        {
            self.machine.traits.tile_images.push(place);
        }
    }
}

/// Somewhere behind an address.
fn address(from: Option<ValueSource>) -> AccessTarget {
    AccessTarget::Address { from, bytes: AccessBytes { start: 0, end: None, is_exact: false } }
}

/// The operand that is a pointer, and how it is accessed.
fn pointer_access(op: Op) -> Option<(usize, AccessKind, AccessMode)> {
    use AccessKind::{Atomic, Load, Store};
    Some(match op {
        Op::AtomicLoad => (3, Atomic, AccessMode::Read),
        Op::AtomicStore => (1, Atomic, AccessMode::Write),
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
        | Op::AtomicFMaxEXT => (3, Atomic, AccessMode::ReadWrite),
        Op::CooperativeMatrixLoadKHR
        | Op::CooperativeMatrixLoadNV
        | Op::CooperativeMatrixLoadTensorNV
        | Op::CooperativeVectorLoadNV => (3, Load, AccessMode::Read),
        Op::CooperativeMatrixStoreKHR
        | Op::CooperativeMatrixStoreNV
        | Op::CooperativeMatrixStoreTensorNV
        | Op::CooperativeVectorStoreNV => (1, Store, AccessMode::Write),
        Op::CooperativeVectorMatrixMulNV | Op::CooperativeVectorMatrixMulAddNV => (5, Load, AccessMode::Read),
        Op::CooperativeVectorOuterProductAccumulateNV | Op::CooperativeVectorReduceSumAccumulateNV => {
            (1, Atomic, AccessMode::ReadWrite)
        }
        _ => return None,
    })
}
