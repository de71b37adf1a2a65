//! The shaders of the benchmark, made word by word: so many accesses to a buffer, and as many at an address.

use lavascope_spirv::{instruction, string_words};
use spirv::{
    AddressingModel, BuiltIn, Capability, Decoration, ExecutionMode, ExecutionModel, MemoryModel, Op, StorageClass,
};

const ALIGNED: u32 = 2;
/// Bytes of the push constants: an address.
pub(crate) const CONSTANT_BYTES: u32 = 8;

/// What a shader does.
#[derive(Clone, Copy)]
pub(crate) struct ShaderWork {
    /// Accesses to a buffer, and as many at an address, each with an index of its own.
    pub(crate) accesses: u32,
    /// How often they are done.
    pub(crate) rounds: u32,
    /// Makes the words differ, so that nobody has the pipeline already.
    pub(crate) salt: u32,
}

/// Ids in the order in which they are given.
struct ModuleWords {
    words: Vec<u32>,
    next: u32,
}

impl ModuleWords {
    fn add(&mut self, op: Op, operands: &[u32]) {
        self.words.extend(instruction(op, operands));
    }

    /// An instruction with a result.
    fn value(&mut self, op: Op, ty: u32, operands: &[u32]) -> u32 {
        let id = self.id();
        self.add(op, &[&[ty, id], operands].concat());
        id
    }

    /// A type, which is its own result.
    fn ty(&mut self, op: Op, operands: &[u32]) -> u32 {
        let id = self.id();
        self.add(op, &[&[id], operands].concat());
        id
    }

    fn id(&mut self) -> u32 {
        self.next += 1;
        self.next
    }
}

/// The names of what a shader is made of.
struct ShaderIds {
    main: u32,
    invocation: u32,
    source: u32,
    target: u32,
    constants: u32,
    block: u32,
    words: u32,
    reference: u32,
    reference_words: u32,
    push: u32,
}

/// Types, and pointers to them.
struct Types {
    void: u32,
    uint: u32,
    boolean: u32,
    three: u32,
    address: u32,
    word_pointer: u32,
    far_pointer: u32,
    address_pointer: u32,
}

/// A compute shader with groups of 64: a buffer at binding 0, the sums at binding 1, an address in the push constants.
pub(crate) fn compute(work: ShaderWork) -> Vec<u32> {
    let mut module_words = ModuleWords { words: vec![spirv::MAGIC_NUMBER, 0x1_0500, 0, 0, 0], next: 0 };
    let [main, invocation, source, target, constants] = [(); 5].map(|()| module_words.id());
    let [block, words, reference, reference_words, push] = [(); 5].map(|()| module_words.id());
    let names =
        ShaderIds { main, invocation, source, target, constants, block, words, reference, reference_words, push };
    begin(&mut module_words, &names);
    let types = declare(&mut module_words, &names);
    body(&mut module_words, &names, &types, work);
    module_words.words[3] = module_words.next + 1;
    module_words.words
}

/// What stands before the types.
fn begin(module_words: &mut ModuleWords, names: &ShaderIds) {
    module_words.add(Op::Capability, &[Capability::Shader as u32]);
    module_words.add(Op::Capability, &[Capability::PhysicalStorageBufferAddresses as u32]);
    module_words.add(Op::MemoryModel, &[AddressingModel::PhysicalStorageBuffer64 as u32, MemoryModel::GLSL450 as u32]);
    let interface = [names.invocation, names.source, names.target, names.constants];
    let model = [ExecutionModel::GLCompute as u32, names.main];
    module_words.add(Op::EntryPoint, &[&model[..], &string_words("main"), &interface].concat());
    module_words.add(Op::ExecutionMode, &[names.main, ExecutionMode::LocalSize as u32, 64, 1, 1]);
    let built_in = BuiltIn::GlobalInvocationId as u32;
    module_words.add(Op::Decorate, &[names.invocation, Decoration::BuiltIn as u32, built_in]);
    for (binding, variable) in (0..).zip([names.source, names.target]) {
        module_words.add(Op::Decorate, &[variable, Decoration::DescriptorSet as u32, 0]);
        module_words.add(Op::Decorate, &[variable, Decoration::Binding as u32, binding]);
    }
    for array in [names.words, names.reference_words] {
        module_words.add(Op::Decorate, &[array, Decoration::ArrayStride as u32, 4]);
    }
    for structure in [names.block, names.reference, names.push] {
        module_words.add(Op::Decorate, &[structure, Decoration::Block as u32]);
        module_words.add(Op::MemberDecorate, &[structure, 0, Decoration::Offset as u32, 0]);
    }
}

/// Types and variables.
fn declare(module_words: &mut ModuleWords, names: &ShaderIds) -> Types {
    let (void, uint, boolean) = (
        module_words.ty(Op::TypeVoid, &[]),
        module_words.ty(Op::TypeInt, &[32, 0]),
        module_words.ty(Op::TypeBool, &[]),
    );
    let three = module_words.ty(Op::TypeVector, &[uint, 3]);
    module_words.add(Op::TypeRuntimeArray, &[names.words, uint]);
    module_words.add(Op::TypeStruct, &[names.block, names.words]);
    module_words.add(Op::TypeRuntimeArray, &[names.reference_words, uint]);
    module_words.add(Op::TypeStruct, &[names.reference, names.reference_words]);
    let pointer = |it: &mut ModuleWords, class: StorageClass, ty: u32| it.ty(Op::TypePointer, &[class as u32, ty]);
    let address = pointer(module_words, StorageClass::PhysicalStorageBuffer, names.reference);
    module_words.add(Op::TypeStruct, &[names.push, address]);
    let block_pointer = pointer(module_words, StorageClass::StorageBuffer, names.block);
    let push_pointer = pointer(module_words, StorageClass::PushConstant, names.push);
    let input_pointer = pointer(module_words, StorageClass::Input, three);
    let types = Types {
        void,
        uint,
        boolean,
        three,
        address,
        word_pointer: pointer(module_words, StorageClass::StorageBuffer, uint),
        far_pointer: pointer(module_words, StorageClass::PhysicalStorageBuffer, uint),
        address_pointer: pointer(module_words, StorageClass::PushConstant, address),
    };
    for (variable, ty, class) in [
        (names.invocation, input_pointer, StorageClass::Input),
        (names.source, block_pointer, StorageClass::StorageBuffer),
        (names.target, block_pointer, StorageClass::StorageBuffer),
        (names.constants, push_pointer, StorageClass::PushConstant),
    ] {
        module_words.add(Op::Variable, &[ty, variable, class as u32]);
    }
    types
}

/// The function: in a straight line for one round, else in a loop.
fn body(module_words: &mut ModuleWords, names: &ShaderIds, types: &Types, work: ShaderWork) {
    let uint = types.uint;
    let [zero, one, rounds, salt] =
        [0, 1, work.rounds, work.salt].map(|number| module_words.value(Op::Constant, uint, &[number]));
    let steps: Vec<u32> = (0..work.accesses).map(|at| module_words.value(Op::Constant, uint, &[at * 3 + 5])).collect();
    let function = module_words.ty(Op::TypeFunction, &[types.void]);
    module_words.add(Op::Function, &[types.void, names.main, 0, function]);
    let [entry, head, inside, next, end] = [(); 5].map(|()| module_words.id());
    module_words.add(Op::Label, &[entry]);
    let all = module_words.value(Op::Load, types.three, &[names.invocation]);
    let at = module_words.value(Op::CompositeExtract, uint, &[all, 0]);
    let place = module_words.value(Op::AccessChain, types.address_pointer, &[names.constants, zero]);
    let far = module_words.value(Op::Load, types.address, &[place]);
    let [round, sum, new_round, new_sum] = [(); 4].map(|()| module_words.id());
    let is_loop = work.rounds > 1;
    if is_loop {
        module_words.add(Op::Branch, &[head]);
        module_words.add(Op::Label, &[head]);
        module_words.add(Op::Phi, &[uint, round, zero, entry, new_round, next]);
        module_words.add(Op::Phi, &[uint, sum, salt, entry, new_sum, next]);
        let goes_on = module_words.value(Op::ULessThan, types.boolean, &[round, rounds]);
        module_words.add(Op::LoopMerge, &[end, next, 0]);
        module_words.add(Op::BranchConditional, &[goes_on, inside, end]);
        module_words.add(Op::Label, &[inside]);
    }
    let mut total = if is_loop { sum } else { salt };
    for step in steps {
        let index = module_words.value(Op::IMul, uint, &[at, step]);
        let index = module_words.value(Op::IAdd, uint, &[index, if is_loop { round } else { one }]);
        let index = module_words.value(Op::BitwiseXor, uint, &[index, at]);
        // The shader does not know that it is in bounds; whoever runs it does.
        let near = module_words.value(Op::AccessChain, types.word_pointer, &[names.source, zero, index]);
        let near = module_words.value(Op::Load, uint, &[near]);
        let place = module_words.value(Op::AccessChain, types.far_pointer, &[far, zero, index]);
        let distant = module_words.value(Op::Load, uint, &[place, ALIGNED, 4]);
        total = module_words.value(Op::IAdd, uint, &[total, near]);
        total = module_words.value(Op::BitwiseXor, uint, &[total, distant]);
    }
    if is_loop {
        module_words.add(Op::Branch, &[next]);
        module_words.add(Op::Label, &[next]);
        module_words.add(Op::IAdd, &[uint, new_round, round, one]);
        module_words.add(Op::IAdd, &[uint, new_sum, total, zero]);
        module_words.add(Op::Branch, &[head]);
        module_words.add(Op::Label, &[end]);
        total = sum;
    }
    let place = module_words.value(Op::AccessChain, types.word_pointer, &[names.target, zero, at]);
    module_words.add(Op::Store, &[place, total]);
    module_words.add(Op::Return, &[]);
    module_words.add(Op::FunctionEnd, &[]);
}
