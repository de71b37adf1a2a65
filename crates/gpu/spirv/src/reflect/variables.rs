//! The global variables of a module: descriptors, push constants, inputs and outputs.

use std::{collections::HashSet, rc::Rc};

use spirv::{Decoration, Dim, Op, StorageClass};

use crate::{
    Descriptor, DescriptorKind, Id, Instruction, InstructionIndex, Module,
    reflect::{
        flow_graph::stored,
        pointer::{Bindings, Pointer, PointerRoot},
        types::{StructKind, Type, TypeRef, Types},
    },
};

/// By the place of the variable's instruction.
pub(super) struct Variables {
    pointers: Vec<Option<Rc<Pointer>>>,
    /// Of inputs: the `BuiltIn`.
    built_ins: Vec<Option<u32>>,
    heaps: Vec<bool>,
    /// The index of a descriptor variable.
    numbers: Vec<Option<usize>>,
    pub(super) descriptors: Vec<Descriptor>,
}

impl Variables {
    pub(super) fn new(module: &Module, types: &Types<'_>) -> Variables {
        let mut all = Variables {
            pointers: vec![None; module.globals().len()],
            built_ins: vec![None; module.globals().len()],
            heaps: vec![false; module.globals().len()],
            numbers: vec![None; module.globals().len()],
            descriptors: Vec::new(),
        };
        for instruction in module.instructions(module.globals()) {
            if instruction.is(Op::Variable) || instruction.is(Op::UntypedVariableKHR) {
                all.add(module, types, instruction);
            }
        }
        all.find_constant_privates(module);
        all
    }

    /// Finds the private variables that nothing is stored to.
    fn find_constant_privates(&mut self, module: &Module) {
        let is_private = |it: &Instruction<'_>| it.is(Op::Variable) && it.word(3) == StorageClass::Private as u32;
        let globals = module.instructions(module.globals());
        let with_value = globals.filter(|it| is_private(it) && it.words().len() > 4);
        let mut fixed: HashSet<u32> = with_value.map(|it| it.at.0).collect();
        if fixed.is_empty() {
            return;
        }
        for instruction in module.instructions(module.globals().end..module.len()) {
            for place in stored(module, instruction).into_iter().filter_map(|it| module.definition_index(it)) {
                fixed.remove(&place.0);
            }
        }
        for place in fixed {
            let ty = self.pointers[place as usize].as_ref().map_or(TypeRef::MAX, |it| it.ty);
            self.pointers[place as usize] =
                Some(Rc::new(Pointer::new(PointerRoot::ConstantPrivate(place, Rc::new([])), ty)));
        }
    }

    pub(super) fn pointer(&self, place: u32) -> Option<Rc<Pointer>> {
        self.pointers.get(place as usize)?.clone()
    }

    pub(super) fn built_in(&self, place: u32) -> Option<u32> {
        self.built_ins.get(place as usize).copied().flatten()
    }

    /// Whether it is a heap of descriptors.
    pub(super) fn is_heap(&self, place: u32) -> bool {
        self.heaps.get(place as usize).copied().unwrap_or(false)
    }

    /// The place of a variable among the descriptors.
    pub(super) fn descriptor(&self, place: u32) -> usize {
        self.number(place).unwrap_or(0)
    }

    /// Whether a descriptor is of a buffer, whose bytes the shader names.
    pub(super) fn is_buffer(&self, place: u32) -> bool {
        let descriptor = self.number(place).map(|it| &self.descriptors[it]);
        descriptor.is_some_and(|it| matches!(it.kind, DescriptorKind::UniformBuffer | DescriptorKind::StorageBuffer))
    }

    fn number(&self, place: u32) -> Option<usize> {
        self.numbers.get(place as usize).copied().flatten()
    }

    fn add(&mut self, module: &Module, types: &Types<'_>, instruction: Instruction<'_>) {
        let (class, place) = (instruction.word(3), instruction.at.0);
        let ty = match instruction.op() {
            Some(Op::UntypedVariableKHR) => types.type_ref(instruction.id(4)),
            _ => types.pointee(types.type_ref(instruction.id(1))),
        };
        // Descriptor heaps are built-ins; the shader alone does not determine the descriptor.
        let built_in = module.decoration_operand(instruction.id(2), None, Decoration::BuiltIn);
        self.heaps[place as usize] = is_resource(class) && built_in.is_some();
        let root = if is_resource(class) && built_in.is_none() {
            self.numbers[place as usize] = Some(self.descriptors.len());
            self.descriptors.push(describe(module, types, instruction.id(2), class, ty));
            PointerRoot::Descriptor(place)
        } else if class == StorageClass::PushConstant as u32 {
            PointerRoot::PushConstant
        } else {
            if class == StorageClass::Input as u32 {
                self.built_ins[place as usize] = built_in;
            }
            PointerRoot::Variable(place)
        };
        self.pointers[place as usize] = Some(Rc::new(Pointer::new(root, ty)));
    }
}

impl Bindings for Variables {
    fn binding(&self, variable: u32) -> (u32, u32) {
        self.number(variable).map_or((0, 0), |it| (self.descriptors[it].set, self.descriptors[it].binding))
    }
}

fn is_resource(class: u32) -> bool {
    [StorageClass::UniformConstant, StorageClass::Uniform, StorageClass::StorageBuffer]
        .iter()
        .any(|it| *it as u32 == class)
}

fn describe(module: &Module, types: &Types<'_>, id: Id, class: u32, ty: TypeRef) -> Descriptor {
    let number = |what| module.decoration_operand(id, None, what);
    let inner = types.strip_arrays(ty);
    let has = |what| number(what).is_some() || all_members(module, types, inner, what);
    Descriptor {
        id,
        name: name(module, id, inner),
        set: number(Decoration::DescriptorSet).unwrap_or(0),
        binding: number(Decoration::Binding).unwrap_or(0),
        kind: kind(types, class, inner),
        count: types.array_count(ty).map(|it| u32::try_from(it).unwrap_or(u32::MAX)),
        input_attachment: number(Decoration::InputAttachmentIndex),
        is_non_writable: has(Decoration::NonWritable),
        is_non_readable: has(Decoration::NonReadable),
        is_coherent: has(Decoration::Coherent),
        is_volatile: has(Decoration::Volatile),
    }
}

/// The name of the variable, or of its block.
fn name(module: &Module, id: Id, inner: TypeRef) -> Option<String> {
    let block = || (inner < module.len()).then(|| module.instruction(InstructionIndex(inner)).result()).flatten();
    module.name(id, None).or_else(|| block().and_then(|it| module.name(it, None)))
}

fn all_members(module: &Module, types: &Types<'_>, ty: TypeRef, what: Decoration) -> bool {
    let Type::Struct { members, .. } = types.get(ty) else { return false };
    let Some(id) = module.instruction(InstructionIndex(ty)).result() else { return false };
    let count = members.len() as u32;
    count > 0 && count < 4096 && (0..count).all(|it| module.decoration_operand(id, Some(it), what).is_some())
}

fn kind(types: &Types<'_>, class: u32, ty: TypeRef) -> DescriptorKind {
    match types.get(ty) {
        Type::Image { dim, sampled, .. } => image_kind(*dim, *sampled),
        Type::Sampler => DescriptorKind::Sampler,
        Type::SampledImage { image } => match types.get(*image) {
            Type::Image { dim, .. } if *dim == Dim::DimBuffer as u32 => DescriptorKind::UniformTexelBuffer,
            _ => DescriptorKind::CombinedImageSampler,
        },
        Type::AccelerationStructure => DescriptorKind::AccelerationStructure,
        Type::Tensor => DescriptorKind::Tensor,
        _ if class == StorageClass::StorageBuffer as u32 => DescriptorKind::StorageBuffer,
        _ if class == StorageClass::Uniform as u32 => match types.struct_kind(ty) {
            Some(StructKind::BufferBlock) => DescriptorKind::StorageBuffer,
            _ => DescriptorKind::UniformBuffer,
        },
        _ => DescriptorKind::Unknown,
    }
}

fn image_kind(dim: u32, sampled: u32) -> DescriptorKind {
    let is_storage = sampled == 2;
    if dim == Dim::DimSubpassData as u32 {
        DescriptorKind::InputAttachment
    } else if dim == Dim::DimBuffer as u32 {
        if is_storage { DescriptorKind::StorageTexelBuffer } else { DescriptorKind::UniformTexelBuffer }
    } else if is_storage {
        DescriptorKind::StorageImage
    } else {
        DescriptorKind::SampledImage
    }
}
