//! Writes the shaders: each accesses its descriptors as its bindings define, in one block, and does nothing else.
//!
//! Buffers are loaded and stored as a whole, so that the bytes that are accessed are known exactly; images are fetched
//! from and stored to at one texel.

use std::collections::{BTreeSet, HashMap};

use lavascope_spirv::{instruction, string_words};
use spirv::{
    BuiltIn, Capability, Decoration, Dim, ExecutionMode, ExecutionModel, ImageFormat, ImageOperands, Op, StorageClass,
};

use crate::plan::formats::ComponentType;

/// The number of the descriptor set of all shaders.
pub(crate) const SET: u32 = 0;

/// The accesses of a shader.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ShaderSpec {
    pub(crate) model: ExecutionModel,
    pub(crate) descriptors: Vec<ShaderDescriptor>,
    /// Locations of vertex attributes that are read.
    pub(crate) inputs: u32,
    /// Locations of fragment outputs that are written, and what they hold.
    pub(crate) outputs: Vec<(u32, ComponentType)>,
    pub(crate) is_early: bool,
    pub(crate) writes_layer: bool,
    pub(crate) is_captured: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ShaderDescriptor {
    pub(crate) binding: u32,
    pub(crate) kind: DescriptorShape,
    pub(crate) reads: bool,
    pub(crate) writes: bool,
}

/// The resource of a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum DescriptorShape {
    Storage {
        bytes: u64,
    },
    /// One word, in which an atomic operation counts.
    Counter,
    Uniform {
        bytes: u64,
    },
    Texels,
    Image {
        is_sampled: bool,
        dim: ImageDim,
        number: ComponentType,
    },
    Input {
        index: u32,
        number: ComponentType,
        is_multisampled: bool,
    },
    Structure,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ImageDim {
    pub(crate) is_3d: bool,
    pub(crate) is_array: bool,
    pub(crate) is_multisampled: bool,
}

impl ShaderSpec {
    pub(crate) fn new(model: ExecutionModel) -> ShaderSpec {
        ShaderSpec {
            model,
            descriptors: Vec::new(),
            inputs: 0,
            outputs: Vec::new(),
            is_early: false,
            writes_layer: false,
            is_captured: false,
        }
    }

    /// The words of the module; its entry point is `main`.
    pub(crate) fn assemble(&self) -> Vec<u32> {
        let mut writer = SpirvWriter::new();
        writer.capability(Capability::Shader);
        let main = writer.next_id();
        let void = writer.intern_type(Op::TypeVoid, &[]);
        let function = writer.intern_type(Op::TypeFunction, &[void]);
        self.stage(&mut writer, main);
        for shader_descriptor in &self.descriptors {
            writer.descriptor(shader_descriptor);
        }
        for location in 0..self.inputs {
            let uint = writer.uint();
            let variable = writer.variable(StorageClass::Input, uint);
            writer.decorate(variable, Decoration::Location, &[location]);
            writer.push_typed_body(Op::Load, uint, &[variable]);
        }
        for (location, number) in &self.outputs {
            let vector = writer.vector(*number, 4);
            let variable = writer.variable(StorageClass::Output, vector);
            writer.decorate(variable, Decoration::Location, &[*location]);
            let null = writer.intern_constant(Op::ConstantNull, vector, &[]);
            writer.push_body(Op::Store, &[variable, null]);
        }
        self.pre_rasterization(&mut writer);
        writer.finish(self.model, main, void, function)
    }

    /// Adds the execution modes and capabilities of the stage.
    fn stage(&self, writer: &mut SpirvWriter, main: u32) {
        use ExecutionMode as Mode;
        match self.model {
            ExecutionModel::GLCompute => writer.mode(main, Mode::LocalSize, &[1, 1, 1]),
            ExecutionModel::Fragment => {
                writer.mode(main, Mode::OriginUpperLeft, &[]);
                if self.is_early {
                    writer.mode(main, Mode::EarlyFragmentTests, &[]);
                }
            }
            ExecutionModel::TessellationControl => {
                writer.capability(Capability::Tessellation);
                writer.mode(main, Mode::OutputVertices, &[1]);
            }
            ExecutionModel::TessellationEvaluation => {
                writer.capability(Capability::Tessellation);
                writer.mode(main, Mode::Triangles, &[]);
                writer.mode(main, Mode::SpacingEqual, &[]);
                writer.mode(main, Mode::VertexOrderCcw, &[]);
            }
            ExecutionModel::Geometry => {
                writer.capability(Capability::Geometry);
                writer.mode(main, Mode::Triangles, &[]);
                writer.mode(main, Mode::OutputPoints, &[]);
                writer.mode(main, Mode::OutputVertices, &[1]);
            }
            ExecutionModel::TaskEXT => {
                writer.mesh();
                writer.mode(main, Mode::LocalSize, &[1, 1, 1]);
            }
            ExecutionModel::MeshEXT => {
                writer.mesh();
                writer.mode(main, Mode::LocalSize, &[1, 1, 1]);
                writer.mode(main, Mode::OutputTrianglesEXT, &[]);
                writer.mode(main, Mode::OutputVertices, &[3]);
                writer.mode(main, Mode::OutputPrimitivesEXT, &[1]);
            }
            ExecutionModel::RayGenerationKHR => {
                writer.capability(Capability::RayTracingKHR);
                writer.extension("SPV_KHR_ray_tracing");
            }
            _ => {}
        }
        if self.is_captured {
            writer.capability(Capability::TransformFeedback);
            writer.mode(main, Mode::Xfb, &[]);
        }
    }

    /// The layer, and what transform feedback captures.
    fn pre_rasterization(&self, writer: &mut SpirvWriter) {
        if self.writes_layer {
            writer.capability(Capability::ShaderLayer);
            let int = writer.number(ComponentType::Sint);
            let variable = writer.variable(StorageClass::Output, int);
            writer.decorate(variable, Decoration::BuiltIn, &[BuiltIn::Layer as u32]);
            let null = writer.intern_constant(Op::ConstantNull, int, &[]);
            writer.push_body(Op::Store, &[variable, null]);
        }
        if self.is_captured {
            let uint = writer.uint();
            let variable = writer.variable(StorageClass::Output, uint);
            writer.decorate(variable, Decoration::Location, &[0]);
            writer.decorate(variable, Decoration::XfbBuffer, &[0]);
            writer.decorate(variable, Decoration::XfbStride, &[4]);
            writer.decorate(variable, Decoration::Offset, &[0]);
            let null = writer.intern_constant(Op::ConstantNull, uint, &[]);
            writer.push_body(Op::Store, &[variable, null]);
        }
    }
}

/// The parts of a module, in the order in which they are written.
struct SpirvWriter {
    next: u32,
    capabilities: BTreeSet<u32>,
    extensions: BTreeSet<&'static str>,
    modes: Vec<u32>,
    decorations: Vec<u32>,
    globals: Vec<u32>,
    locals: Vec<u32>,
    body: Vec<u32>,
    /// All global variables.
    interface: Vec<u32>,
    /// Types and constants by what they are: there is one of each.
    interned: HashMap<Vec<u32>, u32>,
}

impl SpirvWriter {
    fn new() -> SpirvWriter {
        SpirvWriter {
            next: 1,
            capabilities: BTreeSet::new(),
            extensions: BTreeSet::new(),
            modes: Vec::new(),
            decorations: Vec::new(),
            globals: Vec::new(),
            locals: Vec::new(),
            body: Vec::new(),
            interface: Vec::new(),
            interned: HashMap::new(),
        }
    }

    fn next_id(&mut self) -> u32 {
        self.next += 1;
        self.next - 1
    }

    fn capability(&mut self, item: Capability) {
        self.capabilities.insert(item as u32);
    }

    fn extension(&mut self, name: &'static str) {
        self.extensions.insert(name);
    }

    fn mesh(&mut self) {
        self.capability(Capability::MeshShadingEXT);
        self.extension("SPV_EXT_mesh_shader");
    }

    fn mode(&mut self, main: u32, mode: ExecutionMode, operands: &[u32]) {
        self.modes.extend(instruction(Op::ExecutionMode, &[&[main, mode as u32], operands].concat()));
    }

    fn decorate(&mut self, id: u32, decoration: Decoration, operands: &[u32]) {
        self.decorations.extend(instruction(Op::Decorate, &[&[id, decoration as u32], operands].concat()));
    }

    /// A type, once.
    fn intern_type(&mut self, op: Op, operands: &[u32]) -> u32 {
        let key = [&[op as u32, 0], operands].concat();
        if let Some(id) = self.interned.get(&key) {
            return *id;
        }
        let id = self.next_id();
        self.globals.extend(instruction(op, &[&[id], operands].concat()));
        self.interned.insert(key, id);
        id
    }

    /// A constant, once.
    fn intern_constant(&mut self, op: Op, ty: u32, operands: &[u32]) -> u32 {
        let key = [&[op as u32, ty], operands].concat();
        if let Some(id) = self.interned.get(&key) {
            return *id;
        }
        let id = self.next_id();
        self.globals.extend(instruction(op, &[&[ty, id], operands].concat()));
        self.interned.insert(key, id);
        id
    }

    fn push_body(&mut self, op: Op, operands: &[u32]) {
        self.body.extend(instruction(op, operands));
    }

    fn push_typed_body(&mut self, op: Op, ty: u32, operands: &[u32]) -> u32 {
        let id = self.next_id();
        self.body.extend(instruction(op, &[&[ty, id], operands].concat()));
        id
    }

    fn uint(&mut self) -> u32 {
        self.number(ComponentType::Uint)
    }

    fn number(&mut self, number: ComponentType) -> u32 {
        match number {
            ComponentType::Float => self.intern_type(Op::TypeFloat, &[32]),
            ComponentType::Sint => self.intern_type(Op::TypeInt, &[32, 1]),
            ComponentType::Uint => self.intern_type(Op::TypeInt, &[32, 0]),
        }
    }

    fn vector(&mut self, number: ComponentType, count: u32) -> u32 {
        let one = self.number(number);
        self.intern_type(Op::TypeVector, &[one, count])
    }

    fn constant(&mut self, value: u32) -> u32 {
        let uint = self.uint();
        self.intern_constant(Op::Constant, uint, &[value])
    }

    fn variable(&mut self, class: StorageClass, ty: u32) -> u32 {
        let pointer = self.intern_type(Op::TypePointer, &[class as u32, ty]);
        let id = self.next_id();
        self.globals.extend(instruction(Op::Variable, &[pointer, id, class as u32]));
        self.interface.push(id);
        id
    }

    fn descriptor(&mut self, shader_descriptor: &ShaderDescriptor) {
        let variable = match shader_descriptor.kind {
            DescriptorShape::Storage { bytes } => self.buffer(shader_descriptor, StorageClass::StorageBuffer, bytes),
            DescriptorShape::Counter => self.counter(shader_descriptor),
            DescriptorShape::Uniform { bytes } => self.buffer(shader_descriptor, StorageClass::Uniform, bytes),
            DescriptorShape::Texels => self.texels(),
            DescriptorShape::Image { is_sampled, dim, number } => {
                self.image(shader_descriptor, is_sampled, dim, number)
            }
            DescriptorShape::Input { index, number, is_multisampled } => self.input(index, number, is_multisampled),
            DescriptorShape::Structure => self.structure(),
        };
        self.decorate(variable, Decoration::DescriptorSet, &[SET]);
        self.decorate(variable, Decoration::Binding, &[shader_descriptor.binding]);
    }

    /// A block with one array, in words where that is possible.
    fn buffer(&mut self, shader_descriptor: &ShaderDescriptor, class: StorageClass, bytes: u64) -> u32 {
        let (element, size) = if bytes.is_multiple_of(4) {
            (self.uint(), 4)
        } else {
            self.capability(Capability::Int8);
            self.capability(Capability::UniformAndStorageBuffer8BitAccess);
            (self.intern_type(Op::TypeInt, &[8, 0]), 1)
        };
        let count = self.constant(bytes as u32 / size);
        // Types with decorations are not shared between descriptors.
        let (array, block) = (self.next_id(), self.next_id());
        self.globals.extend(instruction(Op::TypeArray, &[array, element, count]));
        self.globals.extend(instruction(Op::TypeStruct, &[block, array]));
        self.decorate(array, Decoration::ArrayStride, &[size]);
        self.decorate(block, Decoration::Block, &[]);
        self.decorations.extend(instruction(Op::MemberDecorate, &[block, 0, Decoration::Offset as u32, 0]));
        let variable = self.variable(class, block);
        if shader_descriptor.reads {
            self.push_typed_body(Op::Load, block, &[variable]);
        }
        if shader_descriptor.writes {
            let null = self.intern_constant(Op::ConstantNull, block, &[]);
            self.push_body(Op::Store, &[variable, null]);
        }
        variable
    }

    /// A word that is read and written at once.
    fn counter(&mut self, shader_descriptor: &ShaderDescriptor) -> u32 {
        let silent = ShaderDescriptor { reads: false, writes: false, ..shader_descriptor.clone() };
        let variable = self.buffer(&silent, StorageClass::StorageBuffer, 4);
        let uint = self.uint();
        let pointer = self.intern_type(Op::TypePointer, &[StorageClass::StorageBuffer as u32, uint]);
        let (zero, one) = (self.constant(0), self.constant(1));
        let word = self.push_typed_body(Op::AccessChain, pointer, &[variable, zero, zero]);
        // For the whole device, in no order.
        self.push_typed_body(Op::AtomicIAdd, uint, &[word, one, zero, one]);
        variable
    }

    fn texels(&mut self) -> u32 {
        self.capability(Capability::SampledBuffer);
        let uint = self.uint();
        let ty = self.image_type(uint, Dim::DimBuffer, [0, 0, 1]);
        let variable = self.variable(StorageClass::UniformConstant, ty);
        let image = self.push_typed_body(Op::Load, ty, &[variable]);
        let (place, vector) = (self.constant(0), self.vector(ComponentType::Uint, 4));
        self.push_typed_body(Op::ImageFetch, vector, &[image, place]);
        variable
    }

    /// `traits`: arrayed, multisampled, and whether it is sampled (1) or not (2).
    fn image_type(&mut self, element: u32, dim: Dim, [arrayed, multisampled, sampled]: [u32; 3]) -> u32 {
        let format = ImageFormat::Unknown as u32;
        self.intern_type(Op::TypeImage, &[element, dim as u32, 0, arrayed, multisampled, sampled, format])
    }

    fn image(
        &mut self,
        shader_descriptor: &ShaderDescriptor,
        is_sampled: bool,
        dim: ImageDim,
        number: ComponentType,
    ) -> u32 {
        let element = self.number(number);
        let traits = [u32::from(dim.is_array), u32::from(dim.is_multisampled), if is_sampled { 1 } else { 2 }];
        let shape = if dim.is_3d { Dim::Dim3D } else { Dim::Dim2D };
        let ty = self.image_type(element, shape, traits);
        let variable = self.variable(StorageClass::UniformConstant, ty);
        let image = self.push_typed_body(Op::Load, ty, &[variable]);
        let axes = if dim.is_3d || dim.is_array { 3 } else { 2 };
        let coordinates = self.vector(ComponentType::Uint, axes);
        let place = self.intern_constant(Op::ConstantNull, coordinates, &[]);
        let vector = self.vector(number, 4);
        let zero = self.constant(0);
        let sample = [ImageOperands::SAMPLE.bits(), zero];
        let operands: &[u32] = if dim.is_multisampled { &sample } else { &[] };
        if is_sampled {
            let lod = [ImageOperands::LOD.bits(), zero];
            let operands = if dim.is_multisampled { operands } else { &lod };
            self.push_typed_body(Op::ImageFetch, vector, &[&[image, place], operands].concat());
            return variable;
        }
        if shader_descriptor.reads {
            self.capability(Capability::StorageImageReadWithoutFormat);
            self.push_typed_body(Op::ImageRead, vector, &[&[image, place], operands].concat());
        }
        if shader_descriptor.writes {
            self.capability(Capability::StorageImageWriteWithoutFormat);
            let null = self.intern_constant(Op::ConstantNull, vector, &[]);
            self.push_body(Op::ImageWrite, &[&[image, place, null], operands].concat());
        }
        variable
    }

    fn input(&mut self, index: u32, number: ComponentType, is_multisampled: bool) -> u32 {
        self.capability(Capability::InputAttachment);
        let element = self.number(number);
        let ty = self.image_type(element, Dim::DimSubpassData, [0, u32::from(is_multisampled), 2]);
        let variable = self.variable(StorageClass::UniformConstant, ty);
        self.decorate(variable, Decoration::InputAttachmentIndex, &[index]);
        let image = self.push_typed_body(Op::Load, ty, &[variable]);
        let coordinates = self.vector(ComponentType::Sint, 2);
        let place = self.intern_constant(Op::ConstantNull, coordinates, &[]);
        let vector = self.vector(number, 4);
        let sample = [ImageOperands::SAMPLE.bits(), self.constant(0)];
        let operands: &[u32] = if is_multisampled { &sample } else { &[] };
        self.push_typed_body(Op::ImageRead, vector, &[&[image, place], operands].concat());
        variable
    }

    /// A ray that is asked about.
    fn structure(&mut self) -> u32 {
        self.capability(Capability::RayQueryKHR);
        self.extension("SPV_KHR_ray_query");
        let ty = self.intern_type(Op::TypeAccelerationStructureKHR, &[]);
        let variable = self.variable(StorageClass::UniformConstant, ty);
        let query = self.intern_type(Op::TypeRayQueryKHR, &[]);
        let pointer = self.intern_type(Op::TypePointer, &[StorageClass::Function as u32, query]);
        let local = self.next_id();
        self.locals.extend(instruction(Op::Variable, &[pointer, local, StorageClass::Function as u32]));
        let structure = self.push_typed_body(Op::Load, ty, &[variable]);
        let (zero, mask) = (self.constant(0), self.constant(0xff));
        let (float, vector) = (self.number(ComponentType::Float), self.vector(ComponentType::Float, 3));
        let near = self.intern_constant(Op::ConstantNull, float, &[]);
        let place = self.intern_constant(Op::ConstantNull, vector, &[]);
        self.push_body(Op::RayQueryInitializeKHR, &[local, structure, zero, mask, place, near, place, near]);
        variable
    }

    fn finish(mut self, model: ExecutionModel, main: u32, void: u32, function: u32) -> Vec<u32> {
        let label = self.next_id();
        if model == ExecutionModel::TaskEXT {
            let one = self.constant(1);
            self.push_body(Op::EmitMeshTasksEXT, &[one, one, one]);
        } else {
            self.push_body(Op::Return, &[]);
        }
        const VERSION: u32 = 0x1_0600;
        let mut words = vec![spirv::MAGIC_NUMBER, VERSION, 0, self.next, 0];
        for capability in &self.capabilities {
            words.extend(instruction(Op::Capability, &[*capability]));
        }
        for extension in &self.extensions {
            words.extend(instruction(Op::Extension, &string_words(extension)));
        }
        const LOGICAL: u32 = 0;
        const GLSL450: u32 = 1;
        words.extend(instruction(Op::MemoryModel, &[LOGICAL, GLSL450]));
        let entry = [&[model as u32, main][..], &string_words("main"), &self.interface].concat();
        words.extend(instruction(Op::EntryPoint, &entry));
        words.extend(&self.modes);
        words.extend(&self.decorations);
        words.extend(&self.globals);
        words.extend(instruction(Op::Function, &[void, main, 0, function]));
        words.extend(instruction(Op::Label, &[label]));
        words.extend(&self.locals);
        words.extend(&self.body);
        words.extend(instruction(Op::FunctionEnd, &[]));
        words
    }
}

#[cfg(test)]
mod tests {
    use lavascope_spirv::{AccessMode, AccessTarget, Module, Reflection, Specialization, reflect};

    use super::*;

    fn reflected(shader: &ShaderSpec) -> Reflection {
        let module = Module::parse(&shader.assemble()).expect("a module");
        reflect(&module, 0, &Specialization::default()).expect("an entry point")
    }

    fn with(model: ExecutionModel, kind: DescriptorShape, reads: bool, writes: bool) -> ShaderSpec {
        let descriptors = vec![ShaderDescriptor { binding: 3, kind, reads, writes }];
        ShaderSpec { descriptors, ..ShaderSpec::new(model) }
    }

    #[test]
    fn buffers_are_accessed_to_the_byte() {
        for bytes in [1, 3, 64, 256] {
            let shader = with(ExecutionModel::GLCompute, DescriptorShape::Storage { bytes }, true, true);
            let found = reflected(&shader).accesses;
            let modes: Vec<AccessMode> = found.iter().map(|it| it.mode).collect();
            assert_eq!(modes, [AccessMode::Read, AccessMode::Write]);
            for shader_access in &found {
                let AccessTarget::Descriptor { bytes: Some(own), .. } = &shader_access.target else {
                    panic!("{shader_access:?}")
                };
                assert_eq!((own.start, own.end, own.is_exact, shader_access.is_certain), (0, Some(bytes), true, true));
            }
        }
    }

    #[test]
    fn every_shape_is_accessed_in_every_stage() {
        let dim = ImageDim { is_3d: false, is_array: true, is_multisampled: false };
        let shapes = [
            (DescriptorShape::Uniform { bytes: 64 }, true, false),
            (DescriptorShape::Texels, true, false),
            (DescriptorShape::Image { is_sampled: true, dim, number: ComponentType::Float }, true, false),
            (DescriptorShape::Image { is_sampled: false, dim, number: ComponentType::Uint }, true, true),
            (DescriptorShape::Structure, true, false),
        ];
        use ExecutionModel as Model;
        let models = [Model::Vertex, Model::TessellationControl, Model::TessellationEvaluation, Model::Geometry];
        let others = [Model::Fragment, Model::GLCompute, Model::TaskEXT, Model::MeshEXT, Model::RayGenerationKHR];
        for model in models.into_iter().chain(others) {
            for (kind, reads, writes) in shapes {
                let found = reflected(&with(model, kind, reads, writes));
                let is = |wanted: fn(AccessMode) -> bool| found.accesses.iter().any(|it| wanted(it.mode));
                assert_eq!((is(AccessMode::reads), is(AccessMode::writes)), (reads, writes), "{kind:?} in {model:?}");
                assert!(found.accesses.iter().all(|it| it.is_certain), "{kind:?} in {model:?}");
                assert_eq!(found.descriptors.iter().map(|it| (it.set, it.binding)).collect::<Vec<_>>(), [(SET, 3)]);
            }
        }
    }

    #[test]
    fn fragments_write_the_requested_values() {
        let outputs = vec![(0, ComponentType::Float), (2, ComponentType::Uint)];
        let shader = ShaderSpec { outputs, is_early: true, ..ShaderSpec::new(ExecutionModel::Fragment) };
        let found = reflected(&shader);
        let written = found.interface.iter().filter(|it| it.is_written).filter_map(|it| it.location);
        assert_eq!(written.collect::<Vec<_>>(), [0, 2]);
        assert!(found.tests.early);
    }
}
