//! Runs compute shaders on a device, unchanged or instrumented, with the tables that they need.
//!
//! Objects are never destroyed: a test ends soon, and the process with it.

use std::ffi::CStr;

use ash::vk;
use lavascope_instrument::interface::tables;
use lavascope_instrument::interface::tables::{AddressRange, BindingState, SetState};
use lavascope_instrument::{
    FaultRecord, InstrumentedModule, PrintfRecord, ROOT_OUTPUT_WORDS, ROOT_TOUCHES, ROOT_WORDS, RootLocation,
    TOUCH_HEAD, TOUCH_SLOT, decode, decode_prints,
};
use lavascope_test_support::swiftshader;

use super::test_images::{SIDE, TestImage, sampler};

const ALL: vk::ShaderStageFlags = vk::ShaderStageFlags::ALL;
const OUTPUT_WORDS: usize = 4096;
const SHADER: u32 = 77;
const CELL_BASE: u32 = 40;
/// The color attachment: its format and its side in texels.
const DRAWN: vk::Format = vk::Format::R32G32B32A32_SFLOAT;
const DRAWN_SIDE: u32 = 8;

/// A device with everything enabled that it has, but for checks of its own.
pub(crate) struct Gpu {
    _entry: ash::Entry,
    instance: ash::Instance,
    physical: vk::PhysicalDevice,
    pub(crate) device: ash::Device,
    queue: vk::Queue,
    pool: vk::CommandPool,
    pub(crate) features: Features,
    /// The last descriptor set that we use: ours.
    pub(crate) last_set: u32,
}

/// The features of a device.
pub(crate) struct Features {
    pub(crate) core: vk::PhysicalDeviceFeatures,
    pub(crate) core_1_1: vk::PhysicalDeviceVulkan11Features<'static>,
    pub(crate) core_1_2: vk::PhysicalDeviceVulkan12Features<'static>,
}

/// A buffer that both sides see.
#[derive(Clone, Copy)]
pub(crate) struct Buffer {
    pub(crate) handle: vk::Buffer,
    memory: vk::DeviceMemory,
    words: usize,
    pub(crate) address: u64,
}

/// The resource of a binding of set 0.
pub(crate) struct BoundBinding {
    pub(crate) binding: u32,
    pub(crate) kind: vk::DescriptorType,
    /// By element: the words of a buffer, and how many bytes of it are bound. Nothing where it is never written.
    pub(crate) elements: Vec<Option<(Vec<u32>, u64)>>,
}

/// A shader by its stage.
pub(crate) type StageShader = (vk::ShaderStageFlags, Vec<u32>);

/// A dispatch.
#[derive(Default)]
pub(crate) struct Dispatch {
    pub(crate) bound: Vec<BoundBinding>,
    /// Buffers whose addresses are the first push constants.
    pub(crate) addressed: Vec<Vec<u32>>,
    /// The push constants behind those.
    pub(crate) push: Vec<u32>,
    pub(crate) groups: u32,
    /// How many words of records fit, if not [`OUTPUT_WORDS`].
    pub(crate) output_words: Option<usize>,
    /// The entry point, if it is not `main`.
    pub(crate) entry: Option<&'static CStr>,
    /// Formats and samples of images and texel buffers, by binding, where they are others.
    pub(crate) formats: Vec<(u32, vk::Format, u32)>,
    /// Puts the address of the first addressed buffer into its first two words.
    pub(crate) is_linked: bool,
    /// Draws a triangle over eight by eight pixels with these shaders, and the one under test as this stage.
    pub(crate) draw: Option<(vk::ShaderStageFlags, Vec<StageShader>)>,
    /// The slot by which the shader finds the words of its touches, if it does not know where they are.
    pub(crate) touch_slot: Option<u32>,
}

/// The results of a dispatch.
#[derive(Debug, PartialEq)]
pub(crate) struct DispatchOutcome {
    /// The contents of the bindings' elements and the addressed buffers, in their order, and of the attachment.
    pub(crate) buffers: Vec<Vec<u32>>,
    pub(crate) records: Vec<FaultRecord>,
    pub(crate) prints: Vec<PrintfRecord>,
    pub(crate) cells: Vec<u32>,
    /// The touches that the shader recorded.
    pub(crate) touches: Vec<u32>,
    /// How many words of records shaders wanted to write.
    pub(crate) wanted: u32,
}

impl BoundBinding {
    pub(crate) fn storage(binding: u32, words: Vec<u32>) -> BoundBinding {
        let bytes = words.len() as u64 * 4;
        BoundBinding { binding, kind: vk::DescriptorType::STORAGE_BUFFER, elements: vec![Some((words, bytes))] }
    }
}

impl Gpu {
    pub(crate) fn new() -> Gpu {
        // SAFETY: the initializers of the loader have no preconditions, and `Entry` keeps the library open.
        Gpu::on(unsafe { ash::Entry::load() }.expect("the Vulkan loader"))
    }

    /// SwiftShader, which indexes arrays of all descriptors; `SWIFTSHADER_ICD` names its manifest.
    pub(crate) fn swiftshader() -> Gpu {
        let library = swiftshader().with_file_name("libvk_swiftshader.so");
        // SAFETY: the initializers of the driver have no preconditions. It exports `vkGetInstanceProcAddr` with the
        // type that a loader gives it, and `on` never closes the library.
        Gpu::on(unsafe { ash::Entry::load_from(library) }.expect("the driver"))
    }

    fn on(entry: ash::Entry) -> Gpu {
        // The library of a driver stays: its threads may outlive the test.
        std::mem::forget(entry.clone());
        let app = vk::ApplicationInfo::default().api_version(vk::API_VERSION_1_3);
        let info = vk::InstanceCreateInfo::default().application_info(&app);
        // SAFETY: `info` and what it names live until the call returns.
        let instance = unsafe { entry.create_instance(&info, None) }.expect("an instance");
        // SAFETY: the instance was just made, and `Gpu` never destroys it.
        let physical = unsafe { instance.enumerate_physical_devices() }.expect("devices")[0];
        let mut core_1_1 = vk::PhysicalDeviceVulkan11Features::default();
        let mut core_1_2 = vk::PhysicalDeviceVulkan12Features::default();
        let mut core_1_3 = vk::PhysicalDeviceVulkan13Features::default();
        let mut features = vk::PhysicalDeviceFeatures2::default()
            .push_next(&mut core_1_1)
            .push_next(&mut core_1_2)
            .push_next(&mut core_1_3);
        // SAFETY: a physical device of this instance, of version 1.3, so that it has each structure of the chain; all
        // live here.
        unsafe { instance.get_physical_device_features2(physical, &mut features) };
        features.features.robust_buffer_access = vk::FALSE;
        let core = features.features;
        let queues = [vk::DeviceQueueCreateInfo::default().queue_priorities(&[1.0])];
        let info = vk::DeviceCreateInfo::default().queue_create_infos(&queues).push_next(&mut features);
        // SAFETY: a physical device of this instance; `info`, the queues and the chain live until the call returns, and
        // enable only what the device has. Family 0 has a queue on every device.
        let device = unsafe { instance.create_device(physical, &info, None) }.expect("a device");
        // SAFETY: the device was made with one queue of family 0 (VUID-vkGetDeviceQueue-queueFamilyIndex-00384).
        let queue = unsafe { device.get_device_queue(0, 0) };
        // SAFETY: the structure lives until the call returns, and the device was made with family 0.
        let pool = unsafe { device.create_command_pool(&vk::CommandPoolCreateInfo::default(), None) }.expect("a pool");
        let (core_1_1, core_1_2) = (without_next_1_1(core_1_1), without_next_1_2(core_1_2));
        let features = Features { core, core_1_1, core_1_2 };
        // SAFETY: a physical device of this instance, which is alive.
        let limits = unsafe { instance.get_physical_device_properties(physical) }.limits;
        let last_set = limits.max_bound_descriptor_sets.min(8) - 1;
        Gpu { _entry: entry, instance, physical, device, queue, pool, features, last_set }
    }

    pub(crate) fn buffer(&self, words: &[u32]) -> Buffer {
        let size = words.len().max(1) as u64 * 4;
        let usage = vk::BufferUsageFlags::STORAGE_BUFFER
            | vk::BufferUsageFlags::UNIFORM_BUFFER
            | vk::BufferUsageFlags::UNIFORM_TEXEL_BUFFER
            | vk::BufferUsageFlags::STORAGE_TEXEL_BUFFER
            | vk::BufferUsageFlags::TRANSFER_SRC
            | vk::BufferUsageFlags::TRANSFER_DST
            | vk::BufferUsageFlags::SHADER_DEVICE_ADDRESS;
        let info = vk::BufferCreateInfo::default().size(size).usage(usage);
        let mut flags = vk::MemoryAllocateFlagsInfo::default().flags(vk::MemoryAllocateFlags::DEVICE_ADDRESS);
        let wanted = vk::MemoryPropertyFlags::HOST_VISIBLE | vk::MemoryPropertyFlags::HOST_COHERENT;
        // SAFETY: the structures live until their calls return; buffer and memory are new and kept to the end, and the
        // memory has the size and a type that the buffer needs.
        unsafe {
            let handle = self.device.create_buffer(&info, None).expect("a buffer");
            let needs = self.device.get_buffer_memory_requirements(handle);
            let types = self.instance.get_physical_device_memory_properties(self.physical);
            let fits = |value: &u32| {
                needs.memory_type_bits & 1 << value != 0
                    && types.memory_types[*value as usize].property_flags.contains(wanted)
            };
            let kind = (0..types.memory_type_count).find(fits).expect("memory of the host");
            let info = vk::MemoryAllocateInfo::default().allocation_size(needs.size).memory_type_index(kind);
            let memory = self.device.allocate_memory(&info.push_next(&mut flags), None).expect("memory");
            self.device.bind_buffer_memory(handle, memory, 0).expect("memory that fits");
            let address = self.device.get_buffer_device_address(&vk::BufferDeviceAddressInfo::default().buffer(handle));
            let buffer = Buffer { handle, memory, words: words.len(), address };
            self.write_words(buffer, words);
            buffer
        }
    }

    /// Records commands, submits them and waits.
    pub(crate) fn execute(&self, record: impl FnOnce(vk::CommandBuffer)) {
        let device = &self.device;
        // SAFETY: a `Gpu` and its pool, queue and objects belong to one test, which never destroys them. The command
        // buffer is new, is begun and ended here, and the queue is waited for.
        unsafe {
            let info = vk::CommandBufferAllocateInfo::default().command_pool(self.pool).command_buffer_count(1);
            let commands = device.allocate_command_buffers(&info).expect("a command buffer");
            device.begin_command_buffer(commands[0], &vk::CommandBufferBeginInfo::default()).expect("it begins");
            record(commands[0]);
            device.end_command_buffer(commands[0]).expect("it ends");
            let submits = [vk::SubmitInfo::default().command_buffers(&commands)];
            device.queue_submit(self.queue, &submits, vk::Fence::null()).expect("it is submitted");
            device.device_wait_idle().expect("it ends");
            device.free_command_buffers(self.pool, &commands);
        }
    }

    /// Writes words into a buffer.
    fn write_words(&self, buffer: Buffer, words: &[u32]) {
        // SAFETY: `buffer` made the memory visible to the host and coherent, with room for its words, of which callers
        // pass no more; each mapping ends where it began (VUID-vkMapMemory-memory-00678), and `execute` waited for the
        // device.
        unsafe {
            let mapped = self.device.map_memory(buffer.memory, 0, vk::WHOLE_SIZE, vk::MemoryMapFlags::empty());
            std::ptr::copy_nonoverlapping(words.as_ptr(), mapped.expect("a mapping").cast(), words.len());
            self.device.unmap_memory(buffer.memory);
        }
    }

    pub(crate) fn read(&self, buffer: Buffer) -> Vec<u32> {
        let mut words = vec![0; buffer.words];
        // SAFETY: `buffer` made the memory visible to the host and coherent, with `buffer.words` words; each mapping
        // ends where it began (VUID-vkMapMemory-memory-00678), and `execute` waited for the device.
        unsafe {
            let mapped = self.device.map_memory(buffer.memory, 0, vk::WHOLE_SIZE, vk::MemoryMapFlags::empty());
            std::ptr::copy_nonoverlapping(mapped.expect("a mapping").cast(), words.as_mut_ptr(), buffer.words);
            self.device.unmap_memory(buffer.memory);
        }
        words
    }

    /// Runs the words of a shader without instrumentation.
    pub(crate) fn run(&self, words: &[u32], dispatch: &Dispatch) -> Vec<Vec<u32>> {
        DispatchObjects::new(self, dispatch).run(self, words, None, dispatch).buffers
    }

    /// Runs an instrumented shader.
    pub(crate) fn run_checked(
        &self,
        made: &InstrumentedModule,
        root: RootLocation,
        dispatch: &Dispatch,
    ) -> DispatchOutcome {
        DispatchObjects::new(self, dispatch).run(self, &made.words, Some((made, root)), dispatch)
    }

    /// Creates a compute pipeline over a storage buffer and our set, and nothing else.
    pub(crate) fn create(&self, words: &[u32]) {
        let kind = vk::DescriptorType::STORAGE_BUFFER;
        let mut layouts = vec![self.set_layout(&[(0, kind, 1)])];
        layouts.resize(self.last_set as usize, self.set_layout(&[]));
        layouts.push(self.set_layout(&[0, 1, 2, 3].map(|it| (it, kind, 1))));
        let ranges = [vk::PushConstantRange { stage_flags: ALL, offset: 0, size: 128 }];
        let info = vk::PipelineLayoutCreateInfo::default().set_layouts(&layouts).push_constant_ranges(&ranges);
        // SAFETY: the structure lives until the call returns, and the set layouts are of this device, which never
        // destroys them.
        let layout = unsafe { self.device.create_pipeline_layout(&info, None) }.expect("a layout");
        pipeline(self, words, layout, &[], None);
    }

    fn module(&self, words: &[u32]) -> vk::ShaderModule {
        let info = vk::ShaderModuleCreateInfo::default().code(words);
        // SAFETY: `info` lives until the call returns; the words are a compiled shader or one that the validator
        // accepted (VUID-VkShaderModuleCreateInfo-pCode-08737).
        unsafe { self.device.create_shader_module(&info, None) }.expect("a module")
    }

    fn set(&self, layout: vk::DescriptorSetLayout, kinds: &[(vk::DescriptorType, u32)]) -> vk::DescriptorSet {
        let size = |it: &(vk::DescriptorType, u32)| vk::DescriptorPoolSize { ty: it.0, descriptor_count: it.1.max(1) };
        let sizes: Vec<vk::DescriptorPoolSize> = kinds.iter().map(size).collect();
        let info = vk::DescriptorPoolCreateInfo::default().max_sets(1).pool_sizes(&sizes);
        // SAFETY: the structures live until their calls return; the pool is new and has room for the one set, and the
        // layout is alive.
        unsafe {
            let pool = self.device.create_descriptor_pool(&info, None).expect("a pool");
            let layouts = [layout];
            let info = vk::DescriptorSetAllocateInfo::default().descriptor_pool(pool).set_layouts(&layouts);
            self.device.allocate_descriptor_sets(&info).expect("a set")[0]
        }
    }

    fn set_layout(&self, bindings: &[(u32, vk::DescriptorType, u32)]) -> vk::DescriptorSetLayout {
        let binding = |pair: &(u32, vk::DescriptorType, u32)| {
            vk::DescriptorSetLayoutBinding::default()
                .binding(pair.0)
                .descriptor_type(pair.1)
                .descriptor_count(pair.2)
                .stage_flags(ALL)
        };
        let bindings: Vec<_> = bindings.iter().map(binding).collect();
        let info = vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings);
        // SAFETY: `info` and its bindings live until the call returns.
        unsafe { self.device.create_descriptor_set_layout(&info, None) }.expect("a layout")
    }

    fn write_image(
        &self,
        set: vk::DescriptorSet,
        at: (u32, u32),
        kind: vk::DescriptorType,
        info: vk::DescriptorImageInfo,
    ) {
        let images = [info];
        let write = vk::WriteDescriptorSet::default()
            .dst_set(set)
            .dst_binding(at.0)
            .dst_array_element(at.1)
            .descriptor_type(kind)
            .image_info(&images);
        // SAFETY: `execute` waits for the device, so that no pending command uses the set
        // (VUID-vkUpdateDescriptorSets-None-03047); the view and the sampler are kept to the end, and the image has the
        // usage.
        unsafe { self.device.update_descriptor_sets(&[write], &[]) };
    }

    fn write(
        &self,
        set: vk::DescriptorSet,
        at: (u32, u32),
        (kind, format): (vk::DescriptorType, vk::Format),
        buffer: Buffer,
        range: u64,
    ) {
        let buffers = [vk::DescriptorBufferInfo { buffer: buffer.handle, offset: 0, range }];
        let write = vk::WriteDescriptorSet::default()
            .dst_set(set)
            .dst_binding(at.0)
            .dst_array_element(at.1)
            .descriptor_type(kind);
        let is_texels =
            matches!(kind, vk::DescriptorType::UNIFORM_TEXEL_BUFFER | vk::DescriptorType::STORAGE_TEXEL_BUFFER);
        // SAFETY: `execute` waits for the device, so that no pending command uses the set
        // (VUID-vkUpdateDescriptorSets-None-03047); the buffer is kept to the end and has all usages, and `views` lives
        // until the call returns.
        unsafe {
            let info = vk::BufferViewCreateInfo::default().buffer(buffer.handle).format(format).range(range);
            let views =
                if is_texels { vec![self.device.create_buffer_view(&info, None).expect("a view")] } else { vec![] };
            let write = if is_texels { write.texel_buffer_view(&views) } else { write.buffer_info(&buffers) };
            self.device.update_descriptor_sets(&[write], &[]);
        }
    }
}

/// The resource of an element.
#[derive(Clone, Copy)]
enum BoundMemory {
    Buffer(Buffer),
    Picture(TestImage),
    Sampler,
}

impl BoundMemory {
    fn read(self, gpu: &Gpu) -> Vec<u32> {
        match self {
            BoundMemory::Buffer(buffer) => gpu.read(buffer),
            BoundMemory::Picture(picture) => picture.read(gpu),
            BoundMemory::Sampler => Vec::new(),
        }
    }
}

/// The objects of a dispatch.
struct DispatchObjects {
    elements: Vec<Vec<Option<BoundMemory>>>,
    addressed: Vec<Buffer>,
    layout: vk::DescriptorSetLayout,
    set: vk::DescriptorSet,
}

/// The tables of an instrumented shader.
struct Tables {
    output: Buffer,
    cells: Buffer,
    root: Buffer,
    touches: Buffer,
    set_layout: vk::DescriptorSetLayout,
    set: vk::DescriptorSet,
}

impl DispatchObjects {
    fn new(gpu: &Gpu, dispatch: &Dispatch) -> DispatchObjects {
        let shape = |it: &BoundBinding| (it.binding, it.kind, it.elements.len() as u32);
        let layout = gpu.set_layout(&dispatch.bound.iter().map(shape).collect::<Vec<_>>());
        let kinds: Vec<_> = dispatch.bound.iter().map(|it| (it.kind, it.elements.len() as u32)).collect();
        let set = gpu.set(layout, if kinds.is_empty() { &[(vk::DescriptorType::STORAGE_BUFFER, 1)] } else { &kinds });
        let mut elements = Vec::new();
        for bound in &dispatch.bound {
            let mut all = Vec::new();
            for (at, element) in (0..).zip(&bound.elements) {
                all.push(element.as_ref().map(|it| bind(gpu, set, bound, at, it, dispatch)));
            }
            elements.push(all);
        }
        let addressed: Vec<Buffer> = dispatch.addressed.iter().map(|it| gpu.buffer(it)).collect();
        if let Some(first) = addressed.first().filter(|_| dispatch.is_linked) {
            gpu.write_words(*first, &[first.address as u32, (first.address >> 32) as u32]);
        }
        DispatchObjects { elements, addressed, layout, set }
    }

    fn run(
        &self,
        gpu: &Gpu,
        words: &[u32],
        checked: Option<(&InstrumentedModule, RootLocation)>,
        dispatch: &Dispatch,
    ) -> DispatchOutcome {
        let tables = checked.map(|it| self.tables(gpu, it.0, dispatch));
        let mut layouts = vec![self.layout];
        if let Some(tables) = &tables {
            let empty = gpu.set_layout(&[]);
            layouts.resize(gpu.last_set as usize, empty);
            layouts.push(tables.set_layout);
        }
        let ranges = [vk::PushConstantRange { stage_flags: ALL, offset: 0, size: 128 }];
        let info = vk::PipelineLayoutCreateInfo::default().set_layouts(&layouts).push_constant_ranges(&ranges);
        // SAFETY: the structure lives until the call returns, and the set layouts are of this device, which never
        // destroys them.
        let layout = unsafe { gpu.device.create_pipeline_layout(&info, None) }.expect("a layout");
        let root = tables.as_ref().map_or(0, |it| it.root.address);
        let special = checked.map(|pair| {
            let [shader, cells] = pair.0.spec_ids;
            let [low, high] = pair.0.root_spec_ids;
            let touches = dispatch.touch_slot.map_or(TOUCH_HEAD, |it| TOUCH_SLOT | it);
            let touches = (pair.0.touch_spec_id, touches);
            vec![(shader, SHADER), (cells, CELL_BASE), (low, root as u32), (high, (root >> 32) as u32), touches]
        });
        let special = special.unwrap_or_default();
        let (point, pipeline) = match &dispatch.draw {
            None => (vk::PipelineBindPoint::COMPUTE, pipeline(gpu, words, layout, &special, dispatch.entry)),
            Some((stage, others)) => {
                let pipeline = graphics_pipeline(gpu, (*stage, words), others, layout, &special);
                (vk::PipelineBindPoint::GRAPHICS, pipeline)
            }
        };
        let mut push: Vec<u32> =
            self.addressed.iter().flat_map(|it| [it.address as u32, (it.address >> 32) as u32]).collect();
        push.extend(&dispatch.push);
        push.resize(30, 0);
        push.extend([root as u32, (root >> 32) as u32]);
        let sets: Vec<(u32, vk::DescriptorSet)> =
            std::iter::once((0, self.set)).chain(tables.as_ref().map(|it| (gpu.last_set, it.set))).collect();
        let drawn = dispatch.draw.as_ref().map(|_| TestImage::new(gpu, DRAWN, DRAWN_SIDE, 1));
        drawn.iter().for_each(|it| it.fill(gpu, &[]));
        let dynamic = dispatch.bound.iter().filter(|it| is_dynamic(it.kind)).map(|it| it.elements.len()).sum();
        submit(gpu, (point, pipeline), layout, &sets, &push, (dispatch.groups, dynamic), drawn);
        let all = self.elements.iter().flatten().flatten().copied();
        let all =
            all.chain(self.addressed.iter().map(|it| BoundMemory::Buffer(*it))).chain(drawn.map(BoundMemory::Picture));
        let mut output = tables.as_ref().map(|it| gpu.read(it.output)).unwrap_or_default();
        // The sites that have records.
        output.pop();
        DispatchOutcome {
            buffers: all.map(|it| it.read(gpu)).collect(),
            records: decode(&output).expect("records"),
            prints: decode_prints(&output).expect("prints"),
            wanted: output.first().copied().unwrap_or(0),
            touches: tables.as_ref().map(|it| gpu.read(it.touches)[TOUCH_HEAD as usize..].to_vec()).unwrap_or_default(),
            cells: tables.map(|it| gpu.read(it.cells)[CELL_BASE as usize..].to_vec()).unwrap_or_default(),
        }
    }

    fn tables(&self, gpu: &Gpu, made: &InstrumentedModule, dispatch: &Dispatch) -> Tables {
        let count = dispatch.bound.iter().map(|it| it.binding + 1).max().unwrap_or(0);
        let mut bindings = vec![BindingState::default(); count as usize];
        for bound in &dispatch.bound {
            let state = |it: &Option<(Vec<u32>, u64)>| it.as_ref().map_or(0, |it| it.1 as u32);
            bindings[bound.binding as usize].elements = bound.elements.iter().map(state).collect();
        }
        let scratch = gpu.buffer(&vec![0; made.scratch_bytes.div_ceil(4) as usize + 4]);
        let range = |it: &Buffer| AddressRange { address: it.address, bytes: it.words as u64 * 4 };
        let ranges: Vec<AddressRange> = self.addressed.iter().map(range).collect();
        let output_words = dispatch.output_words.unwrap_or(OUTPUT_WORDS);
        let output = gpu.buffer(&vec![0; output_words + 2]);
        let descriptors = gpu.buffer(&tables::build_descriptor_table(&[SetState { bindings }]));
        let addresses = gpu.buffer(&tables::build_address_table(&ranges, scratch.address));
        let cells = gpu.buffer(&[&[0; CELL_BASE as usize][..], &made.cells()].concat());
        let all = [output, descriptors, addresses, cells];
        let mut words: Vec<u32> = all.iter().flat_map(|it| [it.address as u32, (it.address >> 32) as u32]).collect();
        words.resize(ROOT_WORDS as usize, 0);
        words[ROOT_OUTPUT_WORDS as usize] = output_words as u32;
        let mut area = vec![0; (TOUCH_HEAD + made.touches.words) as usize];
        if let Some(slot) = dispatch.touch_slot {
            area[slot as usize] = TOUCH_HEAD;
        }
        let touches = gpu.buffer(&area);
        let at = ROOT_TOUCHES as usize;
        words[at..at + 2].copy_from_slice(&[touches.address as u32, (touches.address >> 32) as u32]);
        let kind = vk::DescriptorType::STORAGE_BUFFER;
        let set_layout = gpu.set_layout(&[0, 1, 2, 3].map(|it| (it, kind, 1)));
        let set = gpu.set(set_layout, &[(kind, 4)]);
        for (binding, buffer) in (0..).zip(all) {
            gpu.write(set, (binding, 0), (kind, vk::Format::R32_UINT), buffer, vk::WHOLE_SIZE);
        }
        Tables { output, cells, root: gpu.buffer(&words), touches, set_layout, set }
    }
}

fn is_dynamic(kind: vk::DescriptorType) -> bool {
    matches!(kind, vk::DescriptorType::UNIFORM_BUFFER_DYNAMIC | vk::DescriptorType::STORAGE_BUFFER_DYNAMIC)
}

/// Creates the resource of an element of a binding.
fn bind(
    gpu: &Gpu,
    set: vk::DescriptorSet,
    bound: &BoundBinding,
    element: u32,
    (words, range): &(Vec<u32>, u64),
    dispatch: &Dispatch,
) -> BoundMemory {
    use vk::DescriptorType as Kind;
    let other = dispatch.formats.iter().find(|it| it.0 == bound.binding);
    let at = (bound.binding, element);
    if !matches!(bound.kind, Kind::SAMPLER | Kind::SAMPLED_IMAGE | Kind::STORAGE_IMAGE | Kind::COMBINED_IMAGE_SAMPLER) {
        let buffer = gpu.buffer(words);
        gpu.write(set, at, (bound.kind, other.map_or(vk::Format::R32_UINT, |it| it.1)), buffer, *range);
        return BoundMemory::Buffer(buffer);
    }
    let (format, samples) = other.map_or((vk::Format::R8G8B8A8_UNORM, 1), |it| (it.1, it.2));
    let mut info = vk::DescriptorImageInfo::default().image_layout(vk::ImageLayout::GENERAL);
    if matches!(bound.kind, Kind::SAMPLER | Kind::COMBINED_IMAGE_SAMPLER) {
        info = info.sampler(sampler(gpu, format == vk::Format::D32_SFLOAT));
    }
    let mut memory = BoundMemory::Sampler;
    if bound.kind != Kind::SAMPLER {
        let picture = TestImage::new(gpu, format, SIDE, samples);
        picture.fill(gpu, words);
        info = info.image_view(picture.view);
        memory = BoundMemory::Picture(picture);
    }
    gpu.write_image(set, at, bound.kind, info);
    memory
}

fn without_next_1_1(
    vulkan11_features: vk::PhysicalDeviceVulkan11Features<'_>,
) -> vk::PhysicalDeviceVulkan11Features<'static> {
    vk::PhysicalDeviceVulkan11Features {
        p_next: std::ptr::null_mut(),
        _marker: std::marker::PhantomData,
        ..vulkan11_features
    }
}

fn without_next_1_2(
    vulkan12_features: vk::PhysicalDeviceVulkan12Features<'_>,
) -> vk::PhysicalDeviceVulkan12Features<'static> {
    vk::PhysicalDeviceVulkan12Features {
        p_next: std::ptr::null_mut(),
        _marker: std::marker::PhantomData,
        ..vulkan12_features
    }
}

fn pipeline(
    gpu: &Gpu,
    words: &[u32],
    layout: vk::PipelineLayout,
    special: &[(u32, u32)],
    entry: Option<&'static CStr>,
) -> vk::Pipeline {
    let (entries, data) = specialization(special);
    let special = vk::SpecializationInfo::default().map_entries(&entries).data(&data);
    let stage = vk::PipelineShaderStageCreateInfo::default()
        .stage(vk::ShaderStageFlags::COMPUTE)
        .module(gpu.module(words))
        .name(entry.unwrap_or(c"main"))
        .specialization_info(&special);
    let info = [vk::ComputePipelineCreateInfo::default().stage(stage).layout(layout)];
    // SAFETY: the structures and what they point to live until the call returns; modules and layouts are kept to the
    // end.
    let pipelines = unsafe { gpu.device.create_compute_pipelines(vk::PipelineCache::null(), &info, None) };
    pipelines.expect("a pipeline")[0]
}

fn specialization(special: &[(u32, u32)]) -> (Vec<vk::SpecializationMapEntry>, Vec<u8>) {
    let entry = |(at, pair): (usize, &(u32, u32))| vk::SpecializationMapEntry {
        constant_id: pair.0,
        offset: at as u32 * 4,
        size: 4,
    };
    (special.iter().enumerate().map(entry).collect(), special.iter().flat_map(|it| it.1.to_ne_bytes()).collect())
}

/// Eight by eight pixels of one attachment.
fn graphics_pipeline(
    gpu: &Gpu,
    (stage, words): (vk::ShaderStageFlags, &[u32]),
    others: &[StageShader],
    layout: vk::PipelineLayout,
    special: &[(u32, u32)],
) -> vk::Pipeline {
    let (entries, data) = specialization(special);
    let special = vk::SpecializationInfo::default().map_entries(&entries).data(&data);
    let shader = |stage, words: &[u32]| {
        vk::PipelineShaderStageCreateInfo::default().stage(stage).module(gpu.module(words)).name(c"main")
    };
    let mut stages = vec![shader(stage, words).specialization_info(&special)];
    stages.extend(others.iter().map(|it| shader(it.0, &it.1)));
    let has_patches = stages.iter().any(|it| it.stage == vk::ShaderStageFlags::TESSELLATION_CONTROL);
    let topology = if has_patches { vk::PrimitiveTopology::PATCH_LIST } else { vk::PrimitiveTopology::TRIANGLE_LIST };
    let area = vk::Rect2D { offset: vk::Offset2D::default(), extent: vk::Extent2D { width: 8, height: 8 } };
    let (viewports, scissors) =
        ([vk::Viewport { x: 0.0, y: 0.0, width: 8.0, height: 8.0, min_depth: 0.0, max_depth: 1.0 }], [area]);
    let input = vk::PipelineVertexInputStateCreateInfo::default();
    let assembly = vk::PipelineInputAssemblyStateCreateInfo::default().topology(topology);
    let patches = vk::PipelineTessellationStateCreateInfo::default().patch_control_points(3);
    let viewport = vk::PipelineViewportStateCreateInfo::default().viewports(&viewports).scissors(&scissors);
    let raster = vk::PipelineRasterizationStateCreateInfo::default().line_width(1.0);
    let samples = vk::PipelineMultisampleStateCreateInfo::default().rasterization_samples(vk::SampleCountFlags::TYPE_1);
    let formats = [DRAWN];
    let mut rendering = vk::PipelineRenderingCreateInfo::default().color_attachment_formats(&formats);
    let blends = [vk::PipelineColorBlendAttachmentState::default().color_write_mask(vk::ColorComponentFlags::RGBA)];
    let blend = vk::PipelineColorBlendStateCreateInfo::default().attachments(&blends);
    let info = vk::GraphicsPipelineCreateInfo::default()
        .stages(&stages)
        .vertex_input_state(&input)
        .input_assembly_state(&assembly)
        .tessellation_state(&patches)
        .viewport_state(&viewport)
        .rasterization_state(&raster)
        .multisample_state(&samples)
        .color_blend_state(&blend)
        .layout(layout)
        .push_next(&mut rendering);
    // SAFETY: the structures and what they point to live until the call returns; modules and layouts are kept to the
    // end.
    let pipelines = unsafe { gpu.device.create_graphics_pipelines(vk::PipelineCache::null(), &[info], None) };
    pipelines.expect("a pipeline")[0]
}

fn submit(
    gpu: &Gpu,
    (point, pipeline): (vk::PipelineBindPoint, vk::Pipeline),
    layout: vk::PipelineLayout,
    sets: &[(u32, vk::DescriptorSet)],
    push: &[u32],
    (groups, dynamic): (u32, usize),
    drawn: Option<TestImage>,
) {
    let push: Vec<u8> = push.iter().flat_map(|it| it.to_ne_bytes()).collect();
    let device = &gpu.device;
    // SAFETY: `execute` gives a command buffer in the recording state that only this thread uses; pipeline, layout and
    // sets are of this device and kept to the end.
    gpu.execute(|commands| unsafe {
        device.cmd_bind_pipeline(commands, point, pipeline);
        for (at, set) in sets {
            let offsets = if *at == 0 { &vec![0; dynamic][..] } else { &[] };
            device.cmd_bind_descriptor_sets(commands, point, layout, *at, &[*set], offsets);
        }
        device.cmd_push_constants(commands, layout, ALL, 0, &push);
        let Some(drawn) = drawn else { return device.cmd_dispatch(commands, groups, 1, 1) };
        let extent = vk::Extent2D { width: DRAWN_SIDE, height: DRAWN_SIDE };
        let area = vk::Rect2D { offset: vk::Offset2D::default(), extent };
        let colors = [vk::RenderingAttachmentInfo::default()
            .image_view(drawn.view)
            .image_layout(vk::ImageLayout::GENERAL)
            .store_op(vk::AttachmentStoreOp::STORE)];
        let info = vk::RenderingInfo::default().render_area(area).layer_count(1).color_attachments(&colors);
        device.cmd_begin_rendering(commands, &info);
        device.cmd_draw(commands, 3, groups, 0, 0);
        device.cmd_end_rendering(commands);
    });
}
