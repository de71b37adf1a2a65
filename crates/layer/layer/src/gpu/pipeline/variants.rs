//! The variants of an instrumented pipeline, and which of them is bound.
//!
//! The first variant omits some checks, and requires that enough is bound (`Guard::Select`, `BindingRequirement`). If a
//! draw does not meet the requirements, the layer creates a second variant without requirements (`Guard::Branch`). Both
//! remember only the first fault of an invocation. If other sites failed as well, a thread of the layer creates a third
//! variant, which records these sites where they happen. Later draws use that one.
//!
//! If the address of the root table is in specialization constants, all draws share `FixedTables`. Their descriptor
//! table allows what is bound to any of these draws, so it only grows.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lavascope_abi::*;
use lavascope_instrument::{
    BindingRequirement, CELL_WORDS, InstrumentedModule, ROOT_OUTPUT_WORDS, ROOT_WORDS, ShaderTable,
};

use super::layouts::{PipelineLayoutState, RootBinding};
use super::plan::{CheckStyle, PipelineCreation};
use super::recipe::{PipelineRecipe, RecipeKind};
use super::shader_objects::{BoundCombination, VariantShaders};
use crate::gpu::report::debug_names::SharedName;
use crate::gpu::resource::arena::{ArenaRegion, check_success};
use crate::gpu::resource::buffer_addresses::write_address_table;
use crate::gpu::resource::leases::Lease;
use crate::gpu::{DeviceChecks, TABLE_COUNT, out_ptr};
use crate::loader::pnext_chain::find_in_chain;

/// A pipeline with checks.
pub(crate) struct InstrumentedPipeline {
    pub(crate) handle: Pipeline,
    /// The number in the order of creation, from zero.
    pub(crate) number: u32,
    origin: Option<RebuildOrigin>,
    /// The variant that the application has.
    pub(crate) first: Arc<PipelineVariant>,
    variants: Mutex<[GuardVariants; 2]>,
    /// Whether its name selects it, which it got after it was created. Relaxed: the variants have a lock.
    pub(crate) is_selected_by_name: AtomicBool,
    /// Whether the application has destroyed it. Read and written under the lock of the variants.
    is_destroyed: AtomicBool,
}

/// The information with which a pipeline can be created again.
pub(crate) enum RebuildOrigin {
    Pipeline(PipelineRecipe),
    Objects(BoundCombination),
}

/// The variants of one kind of guard: loads with a selected index, or branches.
#[derive(Default)]
struct GuardVariants {
    plain: Option<Arc<PipelineVariant>>,
    /// The variant that records the requested sites immediately.
    detailed: Option<Arc<PipelineVariant>>,
    /// The sites for which a detailed variant was requested, by stage.
    requested_sites: Vec<BTreeSet<u32>>,
    /// Detailed variants that were replaced; command buffers may still use them.
    retired: Vec<Arc<PipelineVariant>>,
    /// Whether this kind cannot be created.
    is_impossible: bool,
}

/// One variant of a pipeline.
pub(crate) struct PipelineVariant {
    /// The pipeline in the driver.
    pub(crate) handle: Pipeline,
    /// The application's pipeline, and its number.
    pub(crate) application: (Pipeline, u32),
    pub(crate) layout: Arc<PipelineLayoutState>,
    pub(crate) root_binding: RootBinding,
    pub(crate) stages: Vec<InstrumentedStage>,
    pub(crate) cells: ArenaRegion,
    /// None if no shader has our code.
    pub(crate) permissive_tables: Option<PermissiveTables>,
    /// Tables for all draws, if the shaders have their address as constants.
    pub(crate) fixed_tables: Vec<Arc<FixedTables>>,
    pub(crate) requirements: Vec<BindingRequirement>,
    pub(crate) reads_addresses: bool,
    pub(crate) branches: bool,
    /// Whether all shaders that access memory are among these.
    pub(crate) records_all_touches: bool,
    /// Why not all of its shaders are checked; none if they are, or have nothing to check.
    pub(crate) unchecked: Option<Arc<str>>,
    /// Shader objects that are bound instead of a pipeline.
    pub(crate) shader_objects: Option<VariantShaders>,
    /// Whether its pipeline is destroyed and all its findings are reported. Read and written under the lock of the
    /// state.
    pub(crate) is_retired: AtomicBool,
    /// Leases of its cells and its tables.
    pub(crate) _leases: Vec<Lease>,
}

/// A stage with checks.
#[derive(Clone)]
pub(crate) struct InstrumentedStage {
    /// Its number among all shaders of the device.
    pub(crate) shader: u32,
    /// The number that fault records have: among the shaders that are drawn with together.
    pub(crate) record_number: u32,
    pub(crate) kind: ShaderStageFlags,
    /// Its index among the stages of the pipeline.
    pub(crate) index: usize,
    pub(crate) module: ShaderModule,
    /// The debug name of the module, or of the shader object.
    pub(crate) name: SharedName,
    /// The application's shader object and its number, if it is one.
    pub(crate) object: Option<(ShaderEXT, u32)>,
    pub(crate) instrumented: Arc<InstrumentedModule>,
    /// The words of the application's shader.
    pub(crate) original: Arc<Vec<u32>>,
    /// Where its cells begin.
    pub(crate) cell_base: u32,
    /// Where its words begin in the touches of a draw.
    pub(crate) touch_base: u32,
    /// The slot by which it finds its touches; none if it has their offset as a constant.
    pub(crate) touch_slot: Option<u32>,
    /// The lease of its cells, if they are in the memory that all libraries share.
    pub(crate) _cells_lease: Option<Arc<Lease>>,
}

/// Tables by which no access is a fault, and without space for records. For draws that have no tables of their own.
#[derive(Clone, Copy)]
pub(crate) enum PermissiveTables {
    Root(ArenaRegion),
    Set(DescriptorSet),
}

/// Tables for all draws of a pipeline; they cover everything that is bound to any of them.
pub(crate) struct FixedTables {
    pub(crate) root: ArenaRegion,
    pub(crate) records: ArenaRegion,
    /// The descriptor table, with its current contents.
    table: Mutex<Option<FixedDescriptorTable>>,
    _lease: Lease,
}

struct FixedDescriptorTable {
    region: ArenaRegion,
    words: Vec<u32>,
    _lease: Lease,
}

/// Words of a root table. The first word of the records, which the host reads later, follows in the same cache line.
pub(crate) const ROOT_SPACE: u32 = 12;
const _: () = assert!(ROOT_WORDS <= ROOT_SPACE, "a root table has its space");

/// The words of a root table: the addresses of the four tables, and the number of words for records.
pub(crate) fn root_words(tables: [ArenaRegion; TABLE_COUNT]) -> [u32; ROOT_SPACE as usize] {
    let mut words = [0; ROOT_SPACE as usize];
    for (at, table) in tables.iter().enumerate() {
        words[at * 2] = table.device_address as u32;
        words[at * 2 + 1] = (table.device_address >> 32) as u32;
    }
    // The first word counts, and the last one marks sites.
    words[ROOT_OUTPUT_WORDS as usize] = tables[ShaderTable::Output as usize].words - 2;
    words
}

/// The word of a root table with the lower half of the address table's address.
pub(crate) const ROOT_ADDRESSES: u32 = ShaderTable::Addresses as u32 * 2;

impl FixedTables {
    pub(crate) fn new(gpu: &DeviceChecks) -> Option<FixedTables> {
        // It is not known yet whether the shaders print.
        let (all, lease) = gpu.lease_memory(ROOT_SPACE + gpu.config.record_words(true))?;
        Some(FixedTables { root: all, records: all.skip_words(ROOT_SPACE), table: Mutex::default(), _lease: lease })
    }

    /// The cells are allocated by now.
    pub(crate) fn init_table(&self, gpu: &DeviceChecks, cells: ArenaRegion, permissive_tables: &[u32]) -> Option<()> {
        let (region, lease) = gpu.lease_memory(permissive_tables.len() as u32)?;
        region.write(permissive_tables);
        self.root.write(&root_words([self.records, region, gpu.current_address_region(), cells]));
        *lock(&self.table) = Some(FixedDescriptorTable { region, words: Vec::new(), _lease: lease });
        Some(())
    }

    /// Makes the tables permissive, after the layer was disabled.
    #[cold]
    pub(crate) fn make_permissive(&self, everywhere: ArenaRegion) {
        write_address_table(self.root, everywhere);
        if let Some(FixedDescriptorTable { region, words: now, .. }) = &mut *lock(&self.table) {
            region.make_permissive();
            *now = region.read();
        }
    }

    /// Extends the table to what is bound to another draw. Shaders may read it meanwhile, so entries only grow.
    pub(crate) fn widen(&self, words: &[u32]) {
        let mut table = lock(&self.table);
        let Some(FixedDescriptorTable { region, words: now, .. }) = &mut *table else { return };
        if now.len() != words.len() {
            region.write(words);
            *now = words.to_vec();
        }
        for (at, word) in words.iter().enumerate().filter(|it| *it.1 > now[it.0]).collect::<Vec<_>>() {
            region.write_word(at as u32, *word);
            now[at] = *word;
        }
    }
}

impl PipelineVariant {
    /// A variant without shaders.
    #[cfg(test)]
    pub(crate) fn empty() -> PipelineVariant {
        PipelineVariant {
            handle: Pipeline::default(),
            application: (Pipeline::default(), 0),
            layout: Arc::new(PipelineLayoutState::empty()),
            root_binding: RootBinding::PushConstant,
            stages: Vec::new(),
            cells: ArenaRegion::default(),
            permissive_tables: None,
            fixed_tables: Vec::new(),
            requirements: Vec::new(),
            reads_addresses: false,
            branches: false,
            records_all_touches: true,
            unchecked: None,
            shader_objects: None,
            is_retired: AtomicBool::new(false),
            _leases: Vec::new(),
        }
    }

    pub(crate) fn is_retired(&self) -> bool {
        self.is_retired.load(Ordering::Relaxed)
    }

    /// Whether the descriptor table has enough bound for this variant. Descriptors that may be updated later do not
    /// count.
    pub(crate) fn is_fit_for(&self, table: &[u32]) -> bool {
        let is_enough = |it: &BindingRequirement| bound_to(table, it).is_some_and(|bound| bound >= it.min_size);
        self.requirements.iter().all(|it| is_enough(it) && !self.layout.is_update_after_bind(it.set, it.binding))
    }

    pub(crate) fn prints(&self) -> bool {
        self.stages.iter().any(|it| it.instrumented.prints)
    }

    /// The sites where faults were seen, each with its stage.
    pub(crate) fn seen_sites(&self) -> Vec<(usize, u32)> {
        let mut all = Vec::new();
        for (at, stage) in self.stages.iter().enumerate() {
            let first = stage.cell_base + stage.instrumented.numbered_sites * CELL_WORDS;
            for word in 0..stage.instrumented.numbered_sites.div_ceil(32) {
                let mut bits = self.cells.read_word(first + word);
                while bits != 0 {
                    all.push((at, word * 32 + bits.trailing_zeros()));
                    bits &= bits - 1;
                }
            }
        }
        all
    }
}

/// The descriptors that are bound to the element of a requirement.
fn bound_to(table: &[u32], binding_requirement: &BindingRequirement) -> Option<u32> {
    let word = |at: u32| table.get(at as usize).copied();
    // The words after the sets do not belong to a set.
    word(0).filter(|sets| binding_requirement.set < *sets)?;
    let binding = word(1 + binding_requirement.set)?
        + binding_requirement.binding * lavascope_instrument::interface::tables::BINDING_WORDS;
    let element = binding_requirement.element.or_else(|| word(binding + 2))?;
    if element >= word(binding)? {
        return Some(0);
    }
    word(word(binding + 1)? + element)
}

impl InstrumentedPipeline {
    pub(crate) fn new(
        handle: Pipeline,
        number: u32,
        origin: Option<RebuildOrigin>,
        first: Arc<PipelineVariant>,
    ) -> InstrumentedPipeline {
        let mut guard_variants = [GuardVariants::default(), GuardVariants::default()];
        let branches = usize::from(first.branches);
        guard_variants[branches].plain = Some(Arc::clone(&first));
        InstrumentedPipeline {
            handle,
            number,
            origin,
            first,
            variants: Mutex::new(guard_variants),
            is_selected_by_name: AtomicBool::new(false),
            is_destroyed: AtomicBool::new(false),
        }
    }

    fn variants(&self) -> MutexGuard<'_, [GuardVariants; 2]> {
        lock(&self.variants)
    }

    /// The create info with which it can be created again.
    pub(crate) fn recipe(&self) -> Option<&PipelineRecipe> {
        match self.origin.as_ref()? {
            RebuildOrigin::Pipeline(recipe) => Some(recipe),
            RebuildOrigin::Objects(_) => None,
        }
    }

    /// Draws use this variant from now on; command buffers may still have the others.
    pub(crate) fn replace_variants(&self, made: Arc<PipelineVariant>) {
        let mut all = self.variants();
        let old: Vec<_> = all.iter_mut().flat_map(|it| [it.plain.take(), it.detailed.take()]).flatten().collect();
        let branching = &mut all[usize::from(made.branches)];
        branching.retired.extend(old);
        branching.plain = Some(made);
    }

    /// The best existing variant, without regard to what is bound.
    pub(crate) fn best_variant(&self) -> Option<Arc<PipelineVariant>> {
        let guard_variants = self.variants();
        guard_variants.iter().find_map(|it| it.detailed.as_ref().or(it.plain.as_ref())).cloned()
    }

    fn branching_variant(&self) -> Option<Arc<PipelineVariant>> {
        let guard_variants = self.variants();
        guard_variants[1].detailed.as_ref().or(guard_variants[1].plain.as_ref()).cloned()
    }

    /// Takes all variants except the application's own, to destroy them with the pipeline.
    pub(crate) fn take_own_variants(&self) -> Vec<Arc<PipelineVariant>> {
        let mut guard_variants = self.variants();
        self.is_destroyed.store(true, Ordering::Relaxed);
        let guard_variants = std::mem::take(&mut *guard_variants);
        let all = guard_variants.into_iter().flat_map(|it| it.retired.into_iter().chain(it.plain).chain(it.detailed));
        all.filter(|it| it.handle != self.handle || it.shader_objects.is_some()).collect()
    }

    /// Whether there is, or may be, a variant with the details of the sites that were seen.
    pub(crate) fn can_be_rebuilt(&self) -> bool {
        self.origin.is_some() && !self.variants().iter().any(|it| it.is_impossible)
    }

    /// Requests the details of sites that a variant does not record. Returns how the pipeline must be created again;
    /// none if that was requested before or is impossible.
    pub(crate) fn request_sites(&self, variant: &PipelineVariant, sites: &[(usize, u32)]) -> Option<CheckStyle> {
        self.origin.as_ref()?;
        let mut all = self.variants();
        let guard_variants = &mut all[usize::from(variant.branches)];
        let mut wanted = guard_variants.requested_sites.clone();
        for (stage, number) in sites {
            let index = variant.stages[*stage].index;
            if wanted.len() <= index {
                wanted.resize_with(index + 1, BTreeSet::new);
            }
            wanted[index].insert(*number);
        }
        if wanted == guard_variants.requested_sites || guard_variants.is_impossible {
            return None;
        }
        guard_variants.requested_sites.clone_from(&wanted);
        Some(CheckStyle { branches: variant.branches, immediate: Some(wanted) })
    }
}

impl DeviceChecks {
    /// The variant for a draw with this descriptor table: the given one, or one without expectations. None if that
    /// cannot be created.
    pub(crate) fn variant_for_table(
        &self,
        checked: &InstrumentedPipeline,
        selected: &Arc<PipelineVariant>,
        table: &[u32],
    ) -> Option<Arc<PipelineVariant>> {
        if selected.is_fit_for(table) {
            return Some(Arc::clone(selected));
        }
        if let Some(branching) = checked.branching_variant() {
            return Some(branching);
        }
        if checked.variants()[1].is_impossible {
            return None;
        }
        let style = CheckStyle { branches: true, immediate: None };
        let made = self.rebuild_variant(checked, &style);
        let mut guard_variants = checked.variants();
        guard_variants[1].is_impossible = made.is_none();
        guard_variants[1].plain = made;
        guard_variants[1].plain.clone()
    }

    /// Creates the requested variant with details.
    pub(crate) fn build_detailed_variant(&self, checked: &InstrumentedPipeline, style: &CheckStyle) {
        let made = self.rebuild_variant(checked, style);
        let mut guard_variants = checked.variants();
        if checked.is_destroyed.load(Ordering::Relaxed) {
            // A thread that holds the state may wait for this lock.
            drop(guard_variants);
            let Some(made) = made else { return };
            self.state().variants.retain(|it| !Arc::ptr_eq(it, &made));
            return self.destroy_variant(&made);
        }
        let guard_variants = &mut guard_variants[usize::from(style.branches)];
        guard_variants.is_impossible |= made.is_none();
        if made.is_some() {
            let before = std::mem::replace(&mut guard_variants.detailed, made);
            guard_variants.retired.extend(before);
            self.invalidate_choices();
        }
    }

    pub(super) fn rebuild_variant(
        &self,
        checked: &InstrumentedPipeline,
        style: &CheckStyle,
    ) -> Option<Arc<PipelineVariant>> {
        let recipe = match checked.origin.as_ref().filter(|_| !self.has_failed())? {
            RebuildOrigin::Pipeline(recipe) => recipe,
            RebuildOrigin::Objects(combination) => return self.rebuild_objects(combination, checked.number, style),
        };
        let mut arena = lavascope_marshal::Arena::default();
        let image = recipe.unpack(&mut arena)?;
        match recipe.kind {
            RecipeKind::Graphics => {
                // SAFETY: `PipelineRecipe::graphics` packed the parameters of this command, which are laid out again in the
                // arena.
                let infos = unsafe { (*image.cast::<CreateGraphicsPipelinesParams>()).p_create_infos };
                // SAFETY: it packed one info, which is in the arena: that is ours alone, and outlives this.
                let info = unsafe { &mut *infos.as_mut_ptr() };
                // SAFETY: the info of a valid call, but for objects that may be gone by now.
                unsafe { self.rebuild_graphics(checked, recipe, info, style) }
            }
            RecipeKind::Compute => {
                // SAFETY: `PipelineRecipe::compute` packed the parameters of this command, which are laid out again in the
                // arena.
                let infos = unsafe { (*image.cast::<CreateComputePipelinesParams>()).p_create_infos };
                // SAFETY: it packed one info, which is in the arena: that is ours alone, and outlives this.
                let info = unsafe { &mut *infos.as_mut_ptr() };
                // SAFETY: the info of a valid call, but for objects that may be gone by now.
                unsafe { self.rebuild_compute(checked, recipe, info, style) }
            }
        }
    }

    /// # Safety
    ///
    /// The info must be that of the recipe, laid out in memory of ours with all that it leads to: valid but for
    /// modules, the layout and the base pipeline, which may be destroyed.
    unsafe fn rebuild_graphics(
        &self,
        checked: &InstrumentedPipeline,
        recipe: &PipelineRecipe,
        info: &mut GraphicsPipelineCreateInfo,
        style: &CheckStyle,
    ) -> Option<Arc<PipelineVariant>> {
        // SAFETY: VUID-VkGraphicsPipelineCreateInfo-pStages-06600, by the contract of this function: as many as it
        // says.
        let stages = unsafe { crate::gpu::slice(info.p_stages, info.stage_count) };
        // SAFETY: the stages of a call that was valid, in memory that outlives the plan; modules may be gone.
        let plan = unsafe {
            self.plan_whole(&recipe.layout, self.sources_of(checked, recipe), stages, (style, PipelineCreation::Again))
        }?;
        info.p_stages = Ptr::to_slice(&plan.infos);
        info.layout = recipe.layout.own_handle?;
        info.base_pipeline_handle = Pipeline::default();
        info.base_pipeline_index = -1;
        // SAFETY: the contract of this function: a chain that was valid, in memory of ours, which nobody else uses.
        unsafe { make_independent(&mut info.flags, info.p_next) };
        let (create, mut made) = (self.next.create_graphics_pipelines?, Pipeline::default());
        let mark = self.mark_compilation([&plan]);
        // SAFETY: a device that is alive by the contract of `DeviceChecks::begin`, and a cache of ours. The contract of this
        // function for the info, in which stages, layout and base are ours by now, and its render pass is kept by the
        // recipe.
        let result =
            unsafe { create(self.device, self.pipeline_cache, 1, Ptr::to(info), Ptr::NULL, out_ptr(&mut made)) };
        drop(mark);
        if result != Result::SUCCESS {
            self.drop_plan(&plan);
            return None;
        }
        self.finish_rebuilt(plan, made, (checked.handle, checked.number))
    }

    /// # Safety
    ///
    /// As for [`DeviceChecks::rebuild_graphics`].
    unsafe fn rebuild_compute(
        &self,
        checked: &InstrumentedPipeline,
        recipe: &PipelineRecipe,
        info: &mut ComputePipelineCreateInfo,
        style: &CheckStyle,
    ) -> Option<Arc<PipelineVariant>> {
        let stages = std::slice::from_ref(&info.stage);
        // SAFETY: the stage of a call that was valid, in memory that outlives the plan; its module may be gone.
        let plan = unsafe {
            self.plan_whole(&recipe.layout, self.sources_of(checked, recipe), stages, (style, PipelineCreation::Again))
        }?;
        info.stage = *plan.infos.first()?;
        info.layout = recipe.layout.own_handle?;
        info.base_pipeline_handle = Pipeline::default();
        info.base_pipeline_index = -1;
        // SAFETY: the contract of this function: a chain that was valid, in memory of ours, which nobody else uses.
        unsafe { make_independent(&mut info.flags, info.p_next) };
        let (create, mut made) = (self.next.create_compute_pipelines?, Pipeline::default());
        let mark = self.mark_compilation([&plan]);
        // SAFETY: a device that is alive by the contract of `DeviceChecks::begin`, and a cache of ours. The contract of this
        // function for the info, in which stage, layout and base are ours by now.
        let result =
            unsafe { create(self.device, self.pipeline_cache, 1, Ptr::to(info), Ptr::NULL, out_ptr(&mut made)) };
        drop(mark);
        if result != Result::SUCCESS {
            self.drop_plan(&plan);
            return None;
        }
        self.finish_rebuilt(plan, made, (checked.handle, checked.number))
    }

    /// Destroys a variant that the application does not know.
    pub(crate) fn destroy_variant(&self, variant: &PipelineVariant) {
        if let Some(objects) = &variant.shader_objects {
            return self.destroy_shader_objects(objects.own());
        }
        if let Some(destroy) = self.next.destroy_pipeline {
            // SAFETY: a pipeline of ours, which `take_own_variants` gave out once, or that nobody was given. The application
            // destroys its own pipeline, so that by VUID-vkDestroyPipeline-pipeline-00765 all work that has either is
            // over.
            unsafe { destroy(self.device, variant.handle, Ptr::NULL) };
        }
    }

    /// Number of words for the records of one draw.
    pub(crate) fn record_words(&self, variant: &PipelineVariant) -> u32 {
        self.config.record_words(variant.prints())
    }

    /// Tables for draws that have none of their own; valid as long as the leases.
    pub(crate) fn create_permissive_tables(
        &self,
        root_binding: RootBinding,
        cells: ArenaRegion,
        table: &[u32],
        leases: &mut Vec<Lease>,
    ) -> Option<PermissiveTables> {
        let (all, first) = self.lease_memory(ROOT_SPACE + 2)?;
        let (words, second) = self.lease_memory(table.len() as u32)?;
        words.write(table);
        leases.extend([first, second]);
        if root_binding == RootBinding::DescriptorSet {
            // The set comes first, because bound memory must be aligned.
            let (set, lease) = self.lease_set([all.first_words(2), words, self.permissive_addresses, cells])?;
            leases.push(lease);
            return Some(PermissiveTables::Set(set));
        }
        all.write(&root_words([all.skip_words(ROOT_SPACE), words, self.permissive_addresses, cells]));
        Some(PermissiveTables::Root(all))
    }

    /// Allocates a set of ours with the tables in it.
    pub(crate) fn allocate_reserved_set(
        &self,
        pool: DescriptorPool,
        regions: [ArenaRegion; TABLE_COUNT],
    ) -> Option<DescriptorSet> {
        let mut info = DescriptorSetAllocateInfo::zeroed();
        info.s_type = StructureType::DESCRIPTOR_SET_ALLOCATE_INFO;
        info.descriptor_pool = pool;
        info.descriptor_set_count = 1;
        info.p_set_layouts = Ptr::to(&self.reserved_set_layout);
        let mut set = DescriptorSet::default();
        let allocate = self.next.allocate_descriptor_sets?;
        // SAFETY: a device that is alive by the contract of `DeviceChecks::begin`; a layout of ours, and a pool of ours, which
        // the caller alone has (it was taken out of the state, or belongs to a command buffer that is held). The place
        // is for one set.
        check_success(unsafe { allocate(self.device, Ptr::to(&info), out_ptr(&mut set)) })?;
        self.write_reserved_set(set, regions)?;
        Some(set)
    }

    /// Writes other tables into a set of ours that no work uses.
    pub(crate) fn write_reserved_set(&self, set: DescriptorSet, regions: [ArenaRegion; TABLE_COUNT]) -> Option<()> {
        let buffers = regions.map(ArenaRegion::info);
        let mut write = WriteDescriptorSet::zeroed();
        write.s_type = StructureType::WRITE_DESCRIPTOR_SET;
        write.descriptor_type = DescriptorType::STORAGE_BUFFER;
        write.descriptor_count = 1;
        let writes: [WriteDescriptorSet; TABLE_COUNT] = std::array::from_fn(|at| WriteDescriptorSet {
            dst_set: set,
            dst_binding: at as u32,
            p_buffer_info: Ptr::to(&buffers[at]),
            ..write
        });
        let update = self.next.update_descriptor_sets?;
        // SAFETY: a set of ours that no work uses, and regions of buffers of ours, which live as long as the device;
        // the writes and what they lead to outlive the call.
        unsafe { update(self.device, TABLE_COUNT as u32, Ptr::to_slice(&writes), 0, Ptr::NULL) };
        Some(())
    }
}

/// A pipeline of ours has no base, and is compiled even if that is expensive.
///
/// # Safety
///
/// The chain must have been that of a valid call, and be in memory of ours that nobody else uses.
unsafe fn make_independent(flags: &mut PipelineCreateFlags, chain: Ptr<Opaque>) {
    let unwanted = PipelineCreateFlags::DERIVATIVE.0
        | PipelineCreateFlags::FAIL_ON_PIPELINE_COMPILE_REQUIRED.0
        | PipelineCreateFlags::EARLY_RETURN_ON_FAILURE.0;
    flags.0 &= !unwanted;
    let ty = StructureType::PIPELINE_CREATE_FLAGS_2_CREATE_INFO;
    // SAFETY: the contract of this function: a valid chain; the type is that of the structure.
    if let Some(create_info) = unsafe { find_in_chain::<PipelineCreateFlags2CreateInfo>(chain, ty) } {
        // SAFETY: a structure of the chain, which by the contract of this function is ours to change.
        unsafe { (*create_info.as_mut_ptr()).flags.0 &= !u64::from(unwanted) };
    }
}

pub(crate) fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use lavascope_instrument::interface::tables::{BindingState, SetState, build_descriptor_table};

    use super::*;

    #[test]
    fn what_is_required_is_looked_up_in_the_table() {
        let binding = |elements: &[u32]| BindingState { elements: elements.to_vec() };
        let table = build_descriptor_table(&[
            SetState { bindings: vec![binding(&[64])] },
            SetState { bindings: vec![binding(&[]), binding(&[0, 256, 16])] },
        ]);
        let bound =
            |set, binding, element| bound_to(&table, &BindingRequirement { set, binding, element, min_size: 1 });
        assert_eq!(bound(0, 0, Some(0)), Some(64));
        assert_eq!(bound(1, 1, Some(2)), Some(16));
        assert_eq!(bound(1, 1, None), Some(256), "the safe element has the most");
        assert_eq!(bound(1, 1, Some(3)), Some(0), "behind the end");
        assert_eq!(bound(7, 0, Some(0)), None);
    }
}
