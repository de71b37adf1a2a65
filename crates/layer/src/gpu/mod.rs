//! Checks that shaders make themselves, brought to the device and back.
//!
//! Functions of ours stand in the table of a device in the place of the driver's ([`hooks`]): what is recorded of the
//! application's calls stays as the application made them, and the driver gets a descriptor set and some code more.
//! Each draw or dispatch with such code has its own place for records; they are read when the application finds out
//! that its work is done ([`harvest`]).

mod arena;
mod cache;
mod codes;
mod commands;
mod config;
mod descriptors;
mod draws;
mod features;
mod harvest;
mod hooks;
mod labels;
mod layouts;
mod pipelines;
mod prints;
mod scope;
mod tell;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lavascope_abi::*;
use lavascope_settings::Severity;

use crate::DeviceTable;
use crate::dispatch::dispatch_key;
use crate::entry::WATCHED_DEVICES;
use crate::instance::{self, InstanceData};
use crate::messages::Messages;

use arena::{Arena, Block};
use commands::Commands;
pub(crate) use config::Config;
use descriptors::Set;
pub(crate) use features::Wish;
use harvest::Submission;
use layouts::{Layout, SetLayout};
use pipelines::Checked;
use tell::Told;

/// A device whose shaders check themselves.
pub(crate) struct Gpu {
    device: Device,
    /// The driver's functions.
    next: Box<DeviceTable>,
    messages: Arc<Messages>,
    config: Arc<Config>,
    /// Whether buffers are accessed robustly, so that nothing happens behind their ends.
    is_robust: bool,
    /// The number of our descriptor set: the last one there may be.
    set: u32,
    set_layout: DescriptorSetLayout,
    /// For the sets between the application's and ours.
    empty_layout: DescriptorSetLayout,
    limits: PhysicalDeviceLimits,
    memory: PhysicalDeviceMemoryProperties,
    /// The stages that can write into buffers, as bits of `VkShaderStageFlags`.
    stages: u32,
    state: Mutex<State>,
}

/// What is known of the application's objects, by their handles.
#[derive(Default)]
struct State {
    set_layouts: HashMap<u64, Arc<SetLayout>>,
    layouts: HashMap<u64, Arc<Layout>>,
    modules: HashMap<u64, Arc<Vec<u32>>>,
    pipelines: HashMap<u64, Arc<Checked>>,
    /// Their sizes.
    buffers: HashMap<u64, u64>,
    /// Their texels; none where that is not known.
    views: HashMap<u64, Option<u64>>,
    sets: HashMap<u64, Set>,
    commands: HashMap<u64, Commands>,
    submissions: Vec<Submission>,
    names: HashMap<(i32, u64), String>,
    /// The debug labels of queues, the outermost first.
    queue_labels: HashMap<u64, Vec<String>>,
    /// Shader modules whose creation asks for checks.
    marked_modules: HashSet<u64>,
    /// Whether it was told that prints did not fit.
    has_lost_prints: bool,
    /// All pipelines with checks that there were, for the last word.
    checked: Vec<Arc<Checked>>,
    /// Faults that were found, by the shader's number and the site's.
    found: HashSet<(u32, u32)>,
    told: Vec<Told>,
    /// What was said about what is not checked, once each.
    said: HashSet<String>,
    next_shader: u32,
    next_pipeline: u32,
    next_commands: u32,
    /// The cells of all pipelines. They stay until the device ends.
    cells: Arena,
    /// Layouts of ours, equal to the application's, which may destroy its own before it draws.
    own_layouts: Vec<PipelineLayout>,
    free_blocks: Vec<Block>,
    free_pools: Vec<DescriptorPool>,
}

/// The bindings of our set.
const TABLES: usize = 4;

impl Gpu {
    /// For a new device that was made as wished: from now on its pipelines are made here.
    ///
    /// # Safety
    ///
    /// The device must be alive, and `next` must have its functions.
    pub(crate) unsafe fn begin(
        instance: &InstanceData,
        physical_device: PhysicalDevice,
        device: Device,
        (next, wish): (DeviceTable, &Wish),
        table: &mut DeviceTable,
    ) -> Option<Gpu> {
        let mut properties = PhysicalDeviceProperties::zeroed();
        let mut memory = PhysicalDeviceMemoryProperties::zeroed();
        // SAFETY: a physical device that is alive, and places of ours.
        unsafe {
            (instance.table.get_physical_device_properties?)(physical_device, place(&mut properties));
            (instance.table.get_physical_device_memory_properties?)(physical_device, place(&mut memory));
        }
        let mut gpu = Gpu {
            device,
            next: Box::new(next),
            messages: Arc::clone(&instance.messages),
            config: Arc::clone(instance.gpu.as_ref()?),
            is_robust: wish.is_robust,
            set: properties.limits.max_bound_descriptor_sets.checked_sub(1)?,
            set_layout: DescriptorSetLayout::default(),
            empty_layout: DescriptorSetLayout::default(),
            limits: properties.limits,
            memory,
            stages: wish.stages,
            state: Mutex::default(),
        };
        let bindings: [DescriptorSetLayoutBinding; TABLES] = std::array::from_fn(|at| {
            let mut it = DescriptorSetLayoutBinding::zeroed();
            it.binding = at as u32;
            it.descriptor_type = DescriptorType::STORAGE_BUFFER;
            it.descriptor_count = 1;
            it.stage_flags = ShaderStageFlags::ALL;
            it
        });
        gpu.set_layout = gpu.create_set_layout(&bindings)?;
        gpu.empty_layout = gpu.create_set_layout(&[])?;
        hooks::install(table);
        draws::install(table);
        labels::install(table);
        Some(gpu)
    }

    fn create_set_layout(&self, bindings: &[DescriptorSetLayoutBinding]) -> Option<DescriptorSetLayout> {
        let mut info = DescriptorSetLayoutCreateInfo::zeroed();
        info.s_type = StructureType::DESCRIPTOR_SET_LAYOUT_CREATE_INFO;
        info.binding_count = bindings.len() as u32;
        info.p_bindings = Ptr::to_slice(bindings);
        let mut made = DescriptorSetLayout::default();
        let create = self.next.create_descriptor_set_layout?;
        // SAFETY: a device that is alive, an info of ours and a place of ours.
        let result = unsafe { create(self.device, Ptr::to(&info), Ptr::NULL, place(&mut made)) };
        (result == Result::SUCCESS).then_some(made)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Something that is not checked, once.
    fn say(&self, state: &mut State, text: &str) {
        if state.said.insert(text.to_owned()) {
            say(&self.messages, text);
        }
    }

    /// The device is about to be destroyed, and idle.
    pub(crate) fn end(&self) {
        self.harvest_all();
        let mut state = self.state();
        let state = std::mem::take(&mut *state);
        let blocks = state.commands.into_values().map(Commands::into_parts);
        let (mut all, mut pools) = (state.free_blocks, state.free_pools);
        for (mut arena, own_pools) in blocks {
            all.append(&mut arena.blocks);
            pools.extend(own_pools);
        }
        all.extend(state.cells.blocks);
        all.into_iter().for_each(|it| self.destroy_block(it));
        // SAFETY: objects of ours, and the device does not use them any more.
        unsafe {
            if let Some(destroy) = self.next.destroy_descriptor_pool {
                pools.into_iter().for_each(|it| destroy(self.device, it, Ptr::NULL));
            }
            if let Some(destroy) = self.next.destroy_pipeline_layout {
                state.own_layouts.into_iter().for_each(|it| destroy(self.device, it, Ptr::NULL));
            }
            if let Some(destroy) = self.next.destroy_descriptor_set_layout {
                destroy(self.device, self.set_layout, Ptr::NULL);
                destroy(self.device, self.empty_layout, Ptr::NULL);
            }
        }
    }
}

/// What the user should know about what is not checked.
pub(crate) fn say(messages: &Messages, text: &str) {
    say_about(messages, "setting gpu", text);
}

fn say_about(messages: &Messages, place: &str, text: &str) {
    instance::tell(messages, Severity::Warning, place, text);
}

/// The checks of the device that a handle belongs to.
///
/// # Safety
///
/// `handle` must be a device, queue or command buffer that is alive.
unsafe fn gpu_of(handle: u64) -> Option<&'static Gpu> {
    // SAFETY: the caller's word.
    WATCHED_DEVICES.get(unsafe { dispatch_key(handle) })?.gpu.as_deref()
}

/// The address of a variable, for an output.
fn place<T>(it: &mut T) -> Ptr<T> {
    Ptr::new((&raw mut *it).expose_provenance() as u64)
}

/// # Safety
///
/// The pointer must lead to that many, or be null.
unsafe fn slice<'a, T>(first: Ptr<T>, count: u32) -> &'a [T] {
    if first.is_null() || count == 0 {
        return &[];
    }
    // SAFETY: the caller's word.
    unsafe { std::slice::from_raw_parts(first.as_ptr(), count as usize) }
}
