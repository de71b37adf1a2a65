//! Brings the checks of shaders to the device, and their results back.
//!
//! Our functions replace those of the driver in the dispatch table of a device (`hook`). The layer records the
//! application's calls unchanged; the driver gets shaders with checks, and what leads them to their tables.
//!
//! | module | |
//! | --- | --- |
//! | `hook` | functions in the place of the driver's |
//! | `pipeline` | instrumented pipelines and shader objects |
//! | `draw` | what is bound in command buffers, and the tables of each draw |
//! | `resource` | memory and tables, and the resources that they describe |
//! | `readback` | reading what shaders recorded, when the application learns that its work is done |
//! | `report` | from a recorded fault to a message |
//!
//! The checks never wait for the device. No lock is held while the driver is called. Nothing is recorded or submitted
//! if no shader runs, so transfer queues see only the application's work. If something cannot be checked, it stays
//! unchanged, and `DeviceChecks::warn_unchecked` reports that once.
//!
//! `lavascope-instrument` adds the checks and defines the tables and records.
//!
//! A pipeline with our code must not run without tables. Once the layer is disabled, each draw gets the permissive
//! tables of its pipeline (`record_permissive_draw`), and the tables of command buffers that were recorded before become
//! permissive when they are submitted (`make_permissive`).
//!
//! At `exit` the handler holds the devices that it reads: a thread in `vkDestroyDevice` waits until the handler has
//! read, and the handler skips a device whose destruction has begun (`finish_at_exit`).
//!
//! If no other check is on, recorded commands go to these functions, or to the driver, without a shim.

mod config;
pub(crate) mod draw;
mod hook;
pub(crate) mod pipeline;
pub(crate) mod readback;
pub(crate) mod report;
pub(crate) mod resource;

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Once, OnceLock, Weak};

use lavascope_abi::*;
use lavascope_instrument::InstrumentedModule;
use lavascope_instrument::interface::tables;
use lavascope_settings::MessageSeverity;

use crate::DeviceTable;
use crate::loader::dispatch::dispatch_key;
use crate::loader::instance;
use crate::loader::instance::InstanceData;
use crate::loader::proc_addr::WATCHED_DEVICES;
use crate::process::catch_panic::{is_disabled, run_if_enabled};
use crate::process::process_state::PROCESS_STATE;
use crate::report::coverage;
use crate::report::messages::Messages;

pub(crate) use config::ChecksConfig;
use draw::command_buffer::CommandBufferState;
use draw::command_buffer_slots::{CommandBufferSlot, CommandBufferSlots};
use hook::device_request::AddressExtension;
pub(crate) use hook::device_request::DeviceRequest;
use hook::push_descriptors::UpdateTemplate;
use pipeline::crash_guard::CrashGuard;
use pipeline::layouts::{PipelineLayoutState, ROOT_PUSH_BYTES, SetLayoutState};
use pipeline::plan::InstrumentedLibrary;
use pipeline::recipe::RenderPasses;
use pipeline::shader_objects::ShaderObjects;
use pipeline::stage_plan::{InstrumentedShaderKey, SCRATCH_BYTES};
use pipeline::variants::{InstrumentedPipeline, PipelineVariant, lock};
use pipeline::worker::PipelineWorker;
use readback::submissions::Submission;
use report::debug_names::{DebugNames, SharedName};
use report::fault_draws::FaultDraws;
use report::findings::{FaultSite, ReportedFault};
use resource::acceleration_structures::{AccelerationStructures, InstanceCheckPipeline};
use resource::arena::{AllocationBudget, ArenaRegion, DeviceArena, SpareResources};
use resource::buffer_addresses::BufferAddresses;
use resource::descriptor_buffers::DescriptorBuffers;
use resource::descriptor_sets::DescriptorSets;
use resource::device_memory_use::DeviceMemoryUse;
use resource::leases::ResourcePool;

/// The checks of a device. By the contract of `begin`, the device is alive until `end` has returned, and `next` has its
/// functions.
pub(crate) struct DeviceChecks {
    device: Device,
    /// The driver's functions.
    next: Box<DeviceTable>,
    messages: Arc<Messages>,
    config: Arc<ChecksConfig>,
    /// Whether buffer access is robust, so that accesses beyond the end are harmless.
    is_robust: bool,
    /// Whether reads beyond the end must return zero.
    wants_zeros: bool,
    /// The number of our descriptor set, the last one that is possible.
    reserved_set: u32,
    reserved_set_layout: DescriptorSetLayout,
    /// The layout of the sets between the application's and ours.
    empty_layout: DescriptorSetLayout,
    /// The offset of our tables' address in the push constants; none if buffers have no addresses.
    root_push_offset: Option<u32>,
    /// The stages of our push constants.
    push_stages: u32,
    has_addresses: bool,
    /// The extension for device addresses.
    extension: AddressExtension,
    families: Vec<u32>,
    limits: PhysicalDeviceLimits,
    memory_properties: PhysicalDeviceMemoryProperties,
    /// The stages that can write to buffers, as bits of `VkShaderStageFlags`.
    storing_stages: u32,
    crash_guard: CrashGuard,
    /// The cache for our pipelines. The application's caches would fill with shaders that it never requests.
    pipeline_cache: PipelineCache,
    /// The target of accesses with a wrong address.
    scratch: ArenaRegion,
    /// An address table that permits every address.
    permissive_addresses: ArenaRegion,
    /// The current address table. Release in `publish_address_table`; pairs with Acquire in `current_address_region`.
    current_address_table: AtomicU64,
    /// Counts changes of everything that choices for draws depend on; see `draw::choice_cache`. Release in
    /// `invalidate_choices`; pairs with Acquire in `choose_variant`.
    choice_version: AtomicU64,
    /// Whether each draw makes a new choice.
    is_choice_cache_disabled: bool,
    /// The cells of all pipeline libraries. Libraries that are linked need theirs in one place. Created when needed.
    shared_cells: OnceLock<ArenaRegion>,
    resource_pool: Arc<ResourcePool>,
    allocations: AllocationBudget,
    /// Whether a layout has our set. Relaxed: it is set once, and orders nothing.
    uses_reserved_set: AtomicBool,
    memory_use: DeviceMemoryUse,
    /// Whether an allocation of ours has failed, so that nothing more is checked. Relaxed: it is set once, and orders
    /// nothing.
    has_failed: AtomicBool,
    /// Whether it is unknown if all submitted work was executed. Relaxed, as above.
    is_feedback_broken: AtomicBool,
    /// Relaxed, like the next one: numbers must only differ.
    next_shader: AtomicU32,
    next_pipeline: AtomicU32,
    /// The pipeline that checks instances of acceleration structures. Created when needed.
    instance_check: OnceLock<Option<InstanceCheckPipeline>>,
    /// Like `instance_check`, for `VK_NV_ray_tracing`.
    instance_check_nv: OnceLock<Option<InstanceCheckPipeline>>,
    command_buffers: CommandBufferSlots,
    spares: Mutex<SpareResources>,
    worker: PipelineWorker,
    /// Whether the device is being destroyed, so that the exit handler must not read its memory. Locked while the
    /// handler reads.
    has_ended: Mutex<bool>,
    state: Mutex<ChecksState>,
}

/// State of the application's objects, by handle.
#[derive(Default)]
pub(crate) struct ChecksState {
    set_layouts: HashMap<u64, Arc<SetLayoutState>>,
    pipeline_layouts: HashMap<u64, Arc<PipelineLayoutState>>,
    /// The words and names of shader modules.
    modules: HashMap<u64, (Arc<Vec<u32>>, SharedName)>,
    render_passes: RenderPasses,
    pipelines: HashMap<u64, Arc<InstrumentedPipeline>>,
    shader_objects: ShaderObjects,
    /// Pipeline libraries.
    libraries: HashMap<u64, Arc<InstrumentedLibrary>>,
    /// Instrumented shaders.
    instrumented_shaders: HashMap<InstrumentedShaderKey, Arc<InstrumentedModule>>,
    /// By the hash of a shader: a source file of it.
    source_names: HashMap<u128, String>,
    /// The sizes of buffers.
    buffer_sizes: HashMap<u64, u64>,
    addresses: BufferAddresses,
    /// The number of texels of buffer views; none if unknown.
    view_texels: HashMap<u64, Option<u64>>,
    sets: DescriptorSets,
    templates: HashMap<u64, UpdateTemplate>,
    descriptor_buffers: DescriptorBuffers,
    /// Number of sets made of pushed descriptors.
    pushed_sets: u64,
    /// The command buffers of each pool.
    pools: HashMap<u64, Vec<u64>>,
    /// Pools whose command buffers may write only to protected memory.
    protected_pools: HashSet<u64>,
    submissions: Vec<Submission>,
    names: DebugNames,
    /// The debug labels of queues, outermost first.
    queue_labels: HashMap<u64, Vec<String>>,
    /// The debug labels that command buffers have left open on each queue, outermost first.
    command_labels: HashMap<u64, Vec<String>>,
    structures: AccelerationStructures,
    /// The acceleration structures of `VK_NV_ray_tracing`.
    structures_nv: AccelerationStructures,
    /// Their instance buffers that can be bound as storage buffers.
    bindable: HashSet<u64>,
    /// Shader modules whose create info requests checks.
    requested_modules: HashSet<u64>,
    /// Whether a warning about lost prints was reported.
    has_lost_prints: bool,
    /// Modules whose formats of prints were checked, by the hash of their words.
    checked_prints: HashSet<u128>,
    /// All pipeline variants so far, for the final report.
    variants: Vec<Arc<PipelineVariant>>,
    /// Faults that were reported.
    reported_sites: HashSet<FaultSite>,
    /// Sites that missed the buffer of their base pointer, and accessed another one: no faults.
    legal_sites: HashSet<FaultSite>,
    /// In which draws and dispatches faults were seen.
    fault_draws: FaultDraws,
    reported_faults: Vec<ReportedFault>,
    /// Warnings about unchecked features that were reported.
    warned: HashSet<String>,
    next_commands: u32,
    /// Memory arenas of pipelines that no thread uses now. They stay until the device is destroyed.
    arenas: Vec<DeviceArena>,
    /// Descriptor pools for our sets, and the number of sets left in each.
    set_pools: Vec<(DescriptorPool, u32)>,
    full_pools: Vec<DescriptorPool>,
}

/// Number of bindings of our set.
const TABLE_COUNT: usize = 4;
/// Number of words of the table that permits every address.
const PERMISSIVE_ADDRESS_WORDS: u32 = tables::ADDRESS_WORDS_MIN;

impl DeviceChecks {
    /// For a new device that was made as wished: from now on its pipelines are made here.
    ///
    /// # Safety
    ///
    /// The device must have just been made with this request on this physical device, which must be one of the
    /// instance, and `next` and `table` must have its functions. It must not be destroyed before `end` has returned,
    /// and the result must not be used for this device after that.
    pub(crate) unsafe fn begin(
        instance: &InstanceData,
        physical_device: PhysicalDevice,
        device: Device,
        (next, request): (DeviceTable, &DeviceRequest),
        table: &mut DeviceTable,
    ) -> Option<Arc<DeviceChecks>> {
        let setting = instance.gpu.as_ref()?.setting();
        let mut properties = PhysicalDeviceProperties::zeroed();
        let mut memory = PhysicalDeviceMemoryProperties::zeroed();
        // SAFETY: the contract of this function, for functions of the instance; the places are ours.
        unsafe {
            (instance.table.get_physical_device_properties?)(physical_device, out_ptr(&mut properties));
            (instance.table.get_physical_device_memory_properties?)(physical_device, out_ptr(&mut memory));
        }
        let tail = properties.limits.max_push_constants_size.checked_sub(ROOT_PUSH_BYTES);
        let mut gpu = DeviceChecks {
            device,
            push_stages: push_stages(&next),
            next: Box::new(next),
            messages: Arc::clone(&instance.messages),
            config: Arc::clone(instance.gpu.as_ref()?),
            is_robust: request.is_robust,
            wants_zeros: request.wants_zeros,
            reserved_set: pipeline::layouts::reserved_set_index(properties.limits.max_bound_descriptor_sets)?,
            reserved_set_layout: DescriptorSetLayout::default(),
            empty_layout: DescriptorSetLayout::default(),
            root_push_offset: tail.filter(|_| request.has_addresses),
            has_addresses: request.has_addresses,
            extension: request.extension,
            families: request.families.clone(),
            limits: properties.limits,
            memory_properties: memory,
            storing_stages: request.storing_stages,
            crash_guard: CrashGuard::new(&properties),
            pipeline_cache: PipelineCache::default(),
            scratch: ArenaRegion::default(),
            permissive_addresses: ArenaRegion::default(),
            current_address_table: AtomicU64::new(0),
            choice_version: AtomicU64::new(0),
            is_choice_cache_disabled: PROCESS_STATE.is_cache_disabled(),
            shared_cells: OnceLock::new(),
            resource_pool: Arc::default(),
            allocations: AllocationBudget::new(),
            uses_reserved_set: AtomicBool::new(false),
            memory_use: DeviceMemoryUse::default(),
            has_failed: AtomicBool::new(false),
            is_feedback_broken: AtomicBool::new(false),
            next_shader: AtomicU32::new(0),
            next_pipeline: AtomicU32::new(0),
            instance_check: OnceLock::new(),
            instance_check_nv: OnceLock::new(),
            command_buffers: CommandBufferSlots::default(),
            spares: Mutex::default(),
            worker: PipelineWorker::default(),
            has_ended: Mutex::default(),
            state: Mutex::default(),
        };
        if gpu.create_own_objects().is_none() {
            report_unusable_on_device(&instance.messages, setting, NO_MEMORY);
            gpu.end();
            return None;
        }
        coverage::add_checked_device();
        let gpu = Arc::new(gpu);
        watch_exit(&gpu);
        install(table);
        Some(gpu)
    }

    /// Creates the objects that the checks need before the first draw.
    fn create_own_objects(&mut self) -> Option<()> {
        let bindings: [DescriptorSetLayoutBinding; TABLE_COUNT] = std::array::from_fn(|at| {
            let mut layout_binding = DescriptorSetLayoutBinding::zeroed();
            layout_binding.binding = at as u32;
            layout_binding.descriptor_type = DescriptorType::STORAGE_BUFFER;
            layout_binding.descriptor_count = 1;
            layout_binding.stage_flags = ShaderStageFlags::ALL;
            layout_binding
        });
        self.reserved_set_layout = self.create_set_layout(&bindings)?;
        self.empty_layout = self.create_set_layout(&[])?;
        self.pipeline_cache = self.create_cache().unwrap_or_default();
        self.permissive_addresses = self.with_arena(|arena| arena.allocate(self, PERMISSIVE_ADDRESS_WORDS))?;
        if self.has_addresses {
            self.scratch = self.with_arena(|arena| arena.allocate(self, (SCRATCH_BYTES / 4) as u32))?;
            self.create_address_table()?;
        }
        let all = tables::AddressRange { address: 0, bytes: u64::MAX };
        self.permissive_addresses.write(&tables::build_address_table(&[all], self.scratch.device_address));
        Some(())
    }

    fn create_set_layout(&self, bindings: &[DescriptorSetLayoutBinding]) -> Option<DescriptorSetLayout> {
        let mut info = DescriptorSetLayoutCreateInfo::zeroed();
        info.s_type = StructureType::DESCRIPTOR_SET_LAYOUT_CREATE_INFO;
        info.binding_count = bindings.len() as u32;
        info.p_bindings = Ptr::to_slice(bindings);
        let mut made = DescriptorSetLayout::default();
        let create = self.next.create_descriptor_set_layout?;
        // SAFETY: a device that is alive by the contract of `begin`; the info, its bindings and the place are ours.
        let result = unsafe { create(self.device, Ptr::to(&info), Ptr::NULL, out_ptr(&mut made)) };
        (result == Result::SUCCESS).then_some(made)
    }

    fn create_cache(&self) -> Option<PipelineCache> {
        let mut info = PipelineCacheCreateInfo::zeroed();
        info.s_type = StructureType::PIPELINE_CACHE_CREATE_INFO;
        let mut made = PipelineCache::default();
        let create = self.next.create_pipeline_cache?;
        // SAFETY: a device that is alive by the contract of `begin`; the info and the place are ours.
        let result = unsafe { create(self.device, Ptr::to(&info), Ptr::NULL, out_ptr(&mut made)) };
        (result == Result::SUCCESS).then_some(made)
    }

    fn state(&self) -> MutexGuard<'_, ChecksState> {
        lock(&self.state)
    }

    fn spares(&self) -> MutexGuard<'_, SpareResources> {
        lock(&self.spares)
    }

    /// The slot of a command buffer.
    #[inline(always)]
    fn slot(&self, handle: u64) -> Option<&CommandBufferSlot> {
        self.command_buffers.get(handle)
    }

    /// Adds an allocated command buffer.
    fn track_command_buffer(&self, handle: u64, pool: u64, is_primary: bool) {
        let mut state = self.state();
        let number = state.next_commands;
        state.next_commands += 1;
        state.pools.entry(pool).or_default().push(handle);
        let is_protected = state.protected_pools.contains(&pool);
        drop(state);
        let mut commands = CommandBufferState::new(pool, number, is_primary);
        commands.is_protected = is_protected;
        self.command_buffers.add(handle, Box::new(commands));
    }

    /// Allocates memory that stays until the device is destroyed. `work` may call the driver; other threads use other
    /// arenas meanwhile.
    fn with_arena<T>(&self, work: impl FnOnce(&mut DeviceArena) -> T) -> T {
        let mut arena = self.state().arenas.pop().unwrap_or_default();
        let result = work(&mut arena);
        self.state().arenas.push(arena);
        result
    }

    /// Invalidates all choices for draws.
    fn invalidate_choices(&self) {
        self.choice_version.fetch_add(1, Ordering::Release);
    }

    fn next_shader(&self) -> u32 {
        self.next_shader.fetch_add(1, Ordering::Relaxed)
    }

    fn next_pipeline(&self) -> u32 {
        self.next_pipeline.fetch_add(1, Ordering::Relaxed)
    }

    /// Warns once about something that is not checked; does nothing after checks have stopped.
    fn warn_unchecked(&self, text: &str) {
        if self.has_failed() {
            return;
        }
        let is_new = self.state().warned.insert(text.to_owned());
        if is_new {
            warn_unchecked(&self.messages, text);
        }
    }

    fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Relaxed) || is_disabled()
    }

    /// Returns the result of an allocation. If it failed, warns and stops all checks.
    fn or_stop_checking<T>(&self, value: Option<T>) -> Option<T> {
        if value.is_none() && !self.has_failed.swap(true, Ordering::Relaxed) && !is_disabled() {
            report_unusable(&self.messages, self.config.setting(), NO_MEMORY);
        }
        value
    }

    /// Ends the checks at the exit of the process, while another thread may be about to destroy the device. Whichever
    /// comes first makes the other one wait: `vkDestroyDevice` continues after everything is read, and a destroyed
    /// device is not read.
    fn finish_at_exit(&self) {
        let has_ended = lock(&self.has_ended);
        if !*has_ended {
            self.stop_feedback();
            self.readback_all();
            self.report_unmatched();
        }
    }

    /// Ends the checks of a device that is idle and about to be destroyed.
    pub(crate) fn end(&self) {
        *lock(&self.has_ended) = true;
        self.worker.end();
        let last_words = || {
            self.readback_all();
            self.memory_use.report();
        };
        run_if_enabled("vkDestroyDevice", last_words, || ());
        self.destroy_instance_checks();
        let mut state = std::mem::take(&mut *self.state());
        let mut blocks = std::mem::take(&mut self.spares().blocks);
        let mut pools = std::mem::take(&mut self.spares().pools);
        for commands in self.command_buffers.take_all() {
            let (mut arena, own_pools) = commands.into_parts();
            blocks.append(&mut arena.blocks);
            pools.extend(own_pools);
        }
        blocks.extend(state.arenas.into_iter().flat_map(|it| it.blocks));
        blocks.extend(state.addresses.take_blocks());
        blocks.into_iter().for_each(|it| self.destroy_block(it));
        pools.extend(state.set_pools.into_iter().map(|it| it.0).chain(state.full_pools));
        self.destroy_passes(state.render_passes.take_kept());
        state.pipelines.values().for_each(|it| self.destroy_variants(it));
        self.destroy_all_shader_objects(&mut state.shader_objects);
        self.end_layouts();
        // SAFETY: objects that we made on this device, or null. It is about to be destroyed, so that all work on it is
        // over, and they were taken out of the state, or are not used again by the contract of `begin`.
        unsafe {
            if let Some(destroy) = self.next.destroy_descriptor_pool {
                pools.into_iter().for_each(|it| destroy(self.device, it, Ptr::NULL));
            }
            if let Some(destroy) = self.next.destroy_descriptor_set_layout {
                destroy(self.device, self.reserved_set_layout, Ptr::NULL);
                destroy(self.device, self.empty_layout, Ptr::NULL);
            }
            if let Some(destroy) = self.next.destroy_pipeline_cache {
                destroy(self.device, self.pipeline_cache, Ptr::NULL);
            }
        }
    }

    /// Destroys the variants of a pipeline that the application does not know.
    fn destroy_variants(&self, checked: &InstrumentedPipeline) {
        checked.take_own_variants().iter().for_each(|it| self.destroy_variant(it));
    }
}

/// Number of words for the cells of all pipeline libraries of a device.
const SHARED_CELL_WORDS: u32 = 1 << 19;
/// Reported once, when an allocation of ours fails.
const NO_MEMORY: &str = "there is no memory for checks: nothing more is checked from here on";

/// Installs all hooks.
fn install(table: &mut DeviceTable) {
    hook::install(table);
    pipeline::shader_objects::install(table);
    hook::push_descriptors::install(table);
    resource::descriptor_buffers::install(table);
    hook::generated_commands::install(table);
    hook::draws::install(table);
    hook::labels::install(table);
    resource::acceleration_structures::install(table);
    resource::acceleration_structures_nv::install(table);
    hook::ray_tracing::install(table);
    hook::host_visibility::install(table);
}

/// The devices with checks, for the end of the process. A device stays alive while the exit handler holds it, even if
/// another thread destroys it.
static AT_EXIT: Mutex<Vec<Weak<DeviceChecks>>> = Mutex::new(Vec::new());

/// A process may end without destroying its devices: reports the findings before.
fn watch_exit(gpu: &Arc<DeviceChecks>) {
    extern "C" fn report_at_exit() {
        let all = || {
            let alive: Vec<Arc<DeviceChecks>> = lock(&AT_EXIT).iter().filter_map(Weak::upgrade).collect();
            alive.iter().for_each(|it| it.finish_at_exit());
        };
        run_if_enabled("the end of the process", all, || ());
    }
    static WATCHED: Once = Once::new();
    // The function stays loaded: `library::keep` keeps the library if shaders are checked.
    WATCHED.call_once(|| _ = lavascope_platform::process::at_exit(report_at_exit));
    let mut all = lock(&AT_EXIT);
    all.retain(|it| it.strong_count() > 0);
    all.push(Arc::downgrade(gpu));
}

/// The stages for which a device supports push constants.
fn push_stages(next: &DeviceTable) -> u32 {
    let mut stages = ShaderStageFlags::ALL_GRAPHICS.0 | ShaderStageFlags::COMPUTE.0;
    if next.cmd_draw_mesh_tasks_ext.is_some() {
        stages |= ShaderStageFlags::TASK_EXT.0 | ShaderStageFlags::MESH_EXT.0;
    }
    if next.cmd_trace_rays_khr.is_some() || next.cmd_trace_rays_nv.is_some() {
        stages |= hook::RAY_TRACING_STAGES;
    }
    stages
}

/// Warns the user about something that is not checked.
pub(crate) fn warn_unchecked(messages: &Messages, text: &str) {
    warn_about(messages, "setting gpu", text);
}

/// A setting without effect: the requested checks are not made. The name is that of the Khronos layer, by which
/// programs filter.
pub(crate) fn report_unusable(messages: &Messages, place: &str, text: &str) {
    if place == "setting gpu" {
        coverage::disarm("gpu", text);
    }
    instance::report_problem(messages, MessageSeverity::Error, c"UNASSIGNED-GPU-Assisted-Validation", (place, text));
}

/// The same for one device: another one may be able to make the checks.
pub(crate) fn report_unusable_on_device(messages: &Messages, place: &str, text: &str) {
    coverage::add_unchecked_device(place.trim_start_matches("setting "), text);
    instance::report_problem(messages, MessageSeverity::Error, c"UNASSIGNED-GPU-Assisted-Validation", (place, text));
}

fn warn_about(messages: &Messages, place: &str, text: &str) {
    instance::report_setting_problem(messages, MessageSeverity::Warning, place, text);
}

/// The checks of the device that a handle belongs to.
///
/// # Safety
///
/// `handle` must be a device, queue or command buffer that is alive, and stays so while the result is used: the
/// application must not destroy its device meanwhile (`vkDestroyDevice` is externally synchronized with all uses).
unsafe fn checks_of<'a>(handle: u64) -> Option<&'a Arc<DeviceChecks>> {
    // SAFETY: the contract of this function: the handle is alive, and so is its device for as long as it is used.
    unsafe { WATCHED_DEVICES.get(dispatch_key(handle)) }?.gpu.as_ref()
}

/// The address of a variable as an output parameter. The caller reads the variable only after the called function has
/// returned.
fn out_ptr<T>(value: &mut T) -> Ptr<T> {
    crate::loader::interface::out(value)
}

/// # Safety
///
/// `first` must be null or lead to `count` elements, which stay unchanged while `'a` lasts.
unsafe fn slice<'a, T>(first: Ptr<T>, count: u32) -> &'a [T] {
    if first.is_null() || count == 0 {
        return &[];
    }
    // SAFETY: the contract of this function, for a pointer that is not null.
    unsafe { std::slice::from_raw_parts(first.as_ptr(), count as usize) }
}
