//! What an instruction accesses, in the names of the shader's source: function, variable and members.
//!
//! Nothing here depends on lines: two modules that differ in their debug lines alone have equal descriptions.

use spirv::{Op, StorageClass};

use crate::{Id, Instruction, InstructionIndex, Module};

/// Instructions that a pointer may come through.
const DEPTH_MAX: u32 = 32;

/// An access to a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessDescription {
    /// The function: `main`. Empty if the module has no names.
    pub function: String,
    /// How many accesses to the same variable come before it in the function.
    pub ordinal: u32,
    /// The name of the variable, or of its block: `emitters`.
    pub variable: Option<String>,
    /// Whether the variable is a block, whose members have names of their own in the source.
    pub is_block: bool,
    /// The way from the variable to what is accessed.
    pub path: Vec<AccessStep>,
    pub is_write: bool,
}

/// A step from a variable to what is accessed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccessStep {
    /// Empty if the module does not name it.
    Member(String),
    /// None: an index that the shader computes.
    Index(Option<u32>),
}

impl AccessDescription {
    /// The access as in the source: `e[16]`, where the one index that the shader computes is known. The index of an array
    /// of descriptors may be known beside it. Empty if the module does not name a member.
    pub fn text(&self, descriptor: Option<u32>, index: Option<u32>) -> String {
        let is_computed = |it: &&AccessStep| **it == AccessStep::Index(None);
        let descriptor = descriptor.filter(|_| self.path.first().is_some_and(|it| is_computed(&it)) && self.is_block);
        let computed = self.path.iter().skip(usize::from(descriptor.is_some())).filter(is_computed).count();
        let mut text = String::new();
        if self.path.contains(&AccessStep::Member(String::new())) {
            return text;
        }
        if !(self.is_block && matches!(self.path.first(), Some(AccessStep::Member(_)))) {
            text += self.variable.as_deref().unwrap_or_default();
        }
        for (at, step) in self.path.iter().enumerate() {
            let index = if at == 0 { descriptor.or(index) } else { index };
            let is_known = computed == 1 || at == 0 && descriptor.is_some();
            match (step, index.filter(|_| is_known)) {
                (AccessStep::Member(name), _) if text.is_empty() => text += name,
                (AccessStep::Member(name), _) => text += &format!(".{name}"),
                (AccessStep::Index(Some(constant)), _) => text += &format!("[{constant}]"),
                (AccessStep::Index(None), Some(index)) => text += &format!("[{index}]"),
                (AccessStep::Index(None), None) => text += "[…]",
            }
        }
        text
    }
}

/// Where a pointer leads.
struct AccessRoot {
    variable: InstructionIndex,
    path: Vec<AccessStep>,
    /// The type of what the path leads to, where it is known.
    ty: Option<Id>,
}

impl Module {
    /// Describes the access of an instruction. None if the module does not say what it accesses.
    pub fn describe_access(&self, at: InstructionIndex) -> Option<AccessDescription> {
        let instruction = (at.0 < self.len()).then(|| self.instruction(at))?;
        let root = self.accessed(instruction)?;
        let function = self.functions().iter().find(|it| it.instructions.contains(&at.0))?;
        let before = self.instructions(function.instructions.start..at.0);
        let is_same = |it: &Instruction<'_>| self.accessed(*it).is_some_and(|other| other.variable == root.variable);
        let variable = self.instruction(root.variable);
        let own = variable.result().and_then(|it| self.name(it, None));
        let block = self.pointee(variable).map(|it| self.element_type(it)).filter(|it| self.is_op(*it, Op::TypeStruct));
        let of_function = self.name(function.id, None).or_else(|| {
            let entry = self.entries().iter().find(|it| it.function == function.id);
            entry.map(|it| it.name.clone())
        });
        Some(AccessDescription {
            function: of_function.map_or_else(String::new, |it| it.split('(').next().unwrap_or_default().to_owned()),
            ordinal: before.filter(is_same).count() as u32,
            variable: own.or_else(|| block.and_then(|it| self.name(it, None))),
            is_block: block.is_some(),
            path: root.path,
            is_write: is_write(instruction),
        })
    }

    /// The variable that an instruction accesses: that of a resource, if there are two.
    fn accessed(&self, instruction: Instruction<'_>) -> Option<AccessRoot> {
        let operands: &[usize] = match instruction.op()? {
            Op::CopyMemory | Op::CopyMemorySized => &[1, 2],
            Op::Store | Op::AtomicStore | Op::ImageWrite | Op::TraceRayKHR => &[1],
            Op::RayQueryInitializeKHR => &[2],
            op if is_load(op) || is_atomic(op) => &[3],
            _ => return None,
        };
        let all: Vec<AccessRoot> = operands.iter().filter_map(|it| self.root_of(instruction.id(*it), 0)).collect();
        let resource = all.iter().position(|it| is_resource(self.instruction(it.variable).word(3)));
        all.into_iter().nth(resource.unwrap_or(0))
    }

    fn root_of(&self, id: Id, depth: u32) -> Option<AccessRoot> {
        let own = self.definition(id).filter(|_| depth < DEPTH_MAX)?;
        match own.op()? {
            Op::Variable | Op::UntypedVariableKHR => {
                Some(AccessRoot { variable: own.at, path: Vec::new(), ty: self.pointee(own) })
            }
            Op::AccessChain | Op::InBoundsAccessChain => {
                Some(self.follow(self.root_of(own.id(3), depth + 1)?, own.words_from(4)))
            }
            Op::PtrAccessChain | Op::InBoundsPtrAccessChain => {
                Some(self.follow(self.root_of(own.id(3), depth + 1)?, own.words_from(5)))
            }
            Op::Load => {
                let root = self.root_of(own.id(3), depth + 1)?;
                let pointer = self.definition(own.id(1)).filter(|it| it.is(Op::TypePointer));
                Some(AccessRoot { ty: pointer.map_or(root.ty, |it| Some(it.id(3))), ..root })
            }
            Op::SampledImage | Op::Image | Op::CopyObject | Op::ImageTexelPointer | Op::Bitcast => {
                self.root_of(own.id(3), depth + 1)
            }
            _ => None,
        }
    }

    /// Goes on from what a path leads to, by the indices of an access chain.
    fn follow(&self, mut root: AccessRoot, indices: &[u32]) -> AccessRoot {
        for index in indices {
            let constant = self.definition(Id(*index)).filter(|it| it.is(Op::Constant)).map(|it| it.word(3));
            let Some(ty) = root.ty.and_then(|it| self.definition(it)) else {
                root.path.push(AccessStep::Index(constant));
                continue;
            };
            let (step, next) = match (ty.op(), constant) {
                (Some(Op::TypeStruct), Some(member)) => {
                    let name = ty.result().and_then(|it| self.name(it, Some(member)));
                    (AccessStep::Member(name.unwrap_or_default()), ty.id(2 + member as usize))
                }
                _ => (AccessStep::Index(constant), ty.id(2)),
            };
            root.path.push(step);
            root.ty = Some(next);
        }
        root
    }

    /// The type that a variable points to.
    fn pointee(&self, variable: Instruction<'_>) -> Option<Id> {
        if variable.is(Op::UntypedVariableKHR) {
            return Some(variable.id(4)).filter(|it| it.0 != 0);
        }
        self.definition(variable.id(1)).filter(|it| it.is(Op::TypePointer)).map(|it| it.id(3))
    }

    /// The type of the elements of an array, or the type itself.
    fn element_type(&self, ty: Id) -> Id {
        let array = self.definition(ty).filter(|it| it.is(Op::TypeArray) || it.is(Op::TypeRuntimeArray));
        array.map_or(ty, |it| it.id(2))
    }

    fn is_op(&self, id: Id, op: Op) -> bool {
        self.definition(id).is_some_and(|it| it.is(op))
    }
}

/// Whether it reads what its first operand points to, or an image.
fn is_load(op: Op) -> bool {
    let number = op as u32;
    let is_image = (Op::ImageSampleImplicitLod as u32..Op::ImageWrite as u32).contains(&number)
        || (Op::ImageSparseSampleImplicitLod as u32..=Op::ImageSparseDrefGather as u32).contains(&number);
    is_image || matches!(op, Op::Load | Op::ArrayLength | Op::ImageSparseRead)
}

fn is_atomic(op: Op) -> bool {
    (Op::AtomicLoad as u32..=Op::AtomicXor as u32).contains(&(op as u32))
        || matches!(op, Op::AtomicFAddEXT | Op::AtomicFMinEXT | Op::AtomicFMaxEXT)
}

fn is_write(instruction: Instruction<'_>) -> bool {
    let Some(op) = instruction.op() else { return false };
    let is_plain = matches!(op, Op::Store | Op::ImageWrite | Op::AtomicStore | Op::CopyMemory | Op::CopyMemorySized);
    is_plain || is_atomic(op) && op != Op::AtomicLoad
}

fn is_resource(class: u32) -> bool {
    let all = [
        StorageClass::UniformConstant,
        StorageClass::Uniform,
        StorageClass::StorageBuffer,
        StorageClass::PushConstant,
        StorageClass::PhysicalStorageBuffer,
    ];
    all.iter().any(|it| *it as u32 == class)
}
