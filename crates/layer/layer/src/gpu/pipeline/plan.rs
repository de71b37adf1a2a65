//! What becomes of a pipeline that is about to be created.
//!
//! Each stage gets its words with checks, two specialization constants more, and cells. The first variant expects that
//! enough is bound for accesses without a check. Shaders with up to four sites record each fault where it happens;
//! others remember the first fault of an invocation and one bit for each other site.
//!
//! Pipeline libraries are instrumented with branches, because nobody knows what they are drawn with, and they are not
//! created again. So the details of a site that is never the first fault of an invocation stay unknown. Libraries and
//! shader objects share the cells of a device, because those that are linked need theirs in one place.
//!
//! The driver is called without a lock of ours.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use lavascope_abi::*;
use lavascope_instrument::{
    BindingRequirement, Guard, InstrumentOptions, InstrumentedModule, ModuleTouches, RootLocation, instrument,
};
use lavascope_spirv::Module;
use xxhash_rust::xxh3::xxh3_128;

use super::layouts::{PipelineLayoutState, RootBinding};
use super::recipe::{PipelineRecipe, ShaderSource};
use super::variants::{
    FixedTables, InstrumentedPipeline, InstrumentedStage, PermissiveTables, PipelineVariant, RebuildOrigin,
};
use crate::gpu::hook::device_request::ChainCopy;
use crate::gpu::readback::touches;
use crate::gpu::resource::arena::{ArenaRegion, check_success};
use crate::gpu::resource::descriptor_sets;
use crate::gpu::resource::leases::Lease;
use crate::gpu::{ChecksState, DeviceChecks, out_ptr, slice};
use crate::loader::pnext_chain::find_in_chain;

/// Shaders with so few sites record faults where they happen; the others remember the first, and are made again for
/// those that were seen.
const FEW_SITES: u32 = 4;
/// Shaders that are remembered with their checks.
const KNOWN_MAX: usize = 4096;
/// Scratch memory for accesses at wrong addresses.
pub(crate) const SCRATCH_BYTES: u64 = 64 << 10;

/// A pipeline that is about to be made.
pub(crate) struct PipelinePlan {
    layout: Arc<PipelineLayoutState>,
    guard: Guard,
    /// As the driver gets them.
    pub(crate) infos: Vec<PipelineShaderStageCreateInfo>,
    stages: Vec<InstrumentedStage>,
    modules: Vec<ShaderModule>,
    specializations: Vec<SpecializationData>,
    /// Copies of what is in the chains of stages before the words of a module.
    chains: Vec<ChainCopy>,
    cells: ArenaRegion,
    permissive_tables: Option<PermissiveTables>,
    fixed: Option<FixedTables>,
    /// Of cells and tables.
    leases: Vec<Lease>,
    /// What shaders expect to be bound, those without code of ours too.
    requirements: Vec<BindingRequirement>,
    pub(crate) sources: Vec<ShaderSource>,
    pub(crate) recipe: Option<PipelineRecipe>,
    linkage: PipelineLinkage,
    /// Whether there is no shader without code of ours that touches anything.
    records_all_touches: bool,
}

/// Whether a pipeline is whole, or a part of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PipelineLinkage {
    Whole,
    /// Made of parts.
    Linked,
    /// To be linked with others: its cells are among those of all parts.
    Library,
}

/// A part of pipelines whose shaders check themselves.
pub(crate) struct InstrumentedLibrary {
    layout: Arc<PipelineLayoutState>,
    stages: Vec<InstrumentedStage>,
    records_all_touches: bool,
}

/// How shaders are to be checked.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct CheckStyle {
    pub(crate) branches: bool,
    /// Sites that are recorded where they happen, by the number of the stage; none: all of shaders that have few.
    pub(crate) immediate: Option<Vec<BTreeSet<u32>>>,
}

impl CheckStyle {
    pub(crate) const FIRST: CheckStyle = CheckStyle { branches: false, immediate: None };
    const BRANCHING: CheckStyle = CheckStyle { branches: true, immediate: None };

    pub(crate) fn guard(&self) -> Guard {
        if self.branches { Guard::Branch } else { Guard::Select }
    }
}

/// Which words with checks are wanted: a shader, where it finds its tables, and how it is checked.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct InstrumentedShaderKey {
    words: u128,
    root: (u32, u32),
    branches: bool,
    immediate: Option<BTreeSet<u32>>,
    touches: bool,
}

/// The application's specialization constants, and ours.
pub(crate) struct SpecializationData {
    /// One alone. Its address stays when this moves, which of a box nobody may rely on.
    info: Vec<SpecializationInfo>,
    /// What the info leads to.
    _behind: (Vec<SpecializationMapEntry>, Vec<u8>),
}

/// Flags of pipelines that are left as they are: those whose sets are bound in other ways.
const SKIPPED_FLAGS: u64 = PipelineCreateFlags::INDIRECT_BINDABLE_NV.0 as u64
    | PipelineCreateFlags2::INDIRECT_BINDABLE_EXT.0
    | PipelineCreateFlags2::DESCRIPTOR_HEAP_EXT.0;

impl DeviceChecks {
    /// What becomes of a pipeline; none where it is left as it is.
    ///
    /// # Safety
    ///
    /// Flags, chain and stages must be those of an info of a valid call that makes pipelines on this device and has not
    /// returned, and they must stay for as long as the plan.
    pub(crate) unsafe fn plan(
        &self,
        layout: PipelineLayout,
        of: (PipelineCreateFlags, Ptr<Opaque>),
        stages: &[PipelineShaderStageCreateInfo],
    ) -> Option<PipelinePlan> {
        // SAFETY: the contract of this function, which is that of `plan_with_style`.
        unsafe { self.plan_with_style(layout, of, (stages, &[]), &CheckStyle::FIRST) }
    }

    /// As [`DeviceChecks::plan`], for a pipeline that has no other form: the handles of its shaders are in tables of the
    /// application.
    ///
    /// # Safety
    ///
    /// As for [`DeviceChecks::plan`].
    pub(crate) unsafe fn plan_ray_tracing(
        &self,
        layout: PipelineLayout,
        of: (PipelineCreateFlags, Ptr<Opaque>),
        stages: &[PipelineShaderStageCreateInfo],
        libraries: &[Pipeline],
    ) -> Option<PipelinePlan> {
        // SAFETY: the contract of this function, which is that of `plan_with_style`.
        unsafe { self.plan_with_style(layout, of, (stages, libraries), &CheckStyle::BRANCHING) }
    }

    /// # Safety
    ///
    /// As for [`DeviceChecks::plan`].
    unsafe fn plan_with_style(
        &self,
        layout: PipelineLayout,
        (flags, chain): (PipelineCreateFlags, Ptr<Opaque>),
        (stages, more): (&[PipelineShaderStageCreateInfo], &[Pipeline]),
        style: &CheckStyle,
    ) -> Option<PipelinePlan> {
        // SAFETY: the contract of this function: the chain of an info of a valid call.
        if let Some(why) = unsafe { skip_reason(flags, chain) } {
            self.warn_unchecked(why);
            return None;
        }
        // SAFETY: the contract of this function: the chain of an info of a valid call, which stays as `more` does.
        let (part, libraries) = unsafe { linkage_of(flags, chain, more) };
        if self.has_failed() {
            return self.plan_uninstrumented_part(part, layout, stages, libraries);
        }
        if part == PipelineLinkage::Whole && !self.config.selection.take_next_sample() {
            return None;
        }
        let state = self.state();
        let given = libraries.len();
        let libraries: Vec<Arc<InstrumentedLibrary>> =
            libraries.iter().filter_map(|it| state.libraries.get(&it.0).cloned()).collect();
        let layout =
            state.pipeline_layouts.get(&layout.0).or_else(|| libraries.first().map(|it| &it.layout)).cloned()?;
        // SAFETY: the contract of this function: a stage of a valid call, with its chain.
        let source = |it| unsafe { self.config.selection.select_stage(&state, it, source_of(&state, it)?) };
        let sources: Option<Vec<ShaderSource>> = stages.iter().map(source).collect();
        drop(state);
        if let Some(why) = layout.unsupported_reason() {
            self.warn_unchecked(why);
            return None;
        }
        let Some(sources) = sources else {
            self.warn_unchecked("the words of a shader are not known: its pipeline is not checked");
            return None;
        };
        if part != PipelineLinkage::Whole {
            // SAFETY: the contract of this function: the stages of a valid call.
            return unsafe { self.plan_linked((part, given), &layout, sources, stages, &libraries) };
        }
        // What is in buffers is known when work is submitted, so that nothing can be expected.
        let style = if layout.uses_descriptor_buffers() { &CheckStyle::BRANCHING } else { style };
        // SAFETY: the contract of this function: the stages of a valid call.
        unsafe { self.plan_whole(&layout, sources, stages, style) }
    }

    /// A part of pipelines, or a pipeline out of so many parts, of which some are known. What is bound is not known
    /// when a part is made, so it expects nothing; and it is not made again.
    ///
    /// # Safety
    ///
    /// The stages must be those of a valid call that makes pipelines, and stay, with their chains, for as long as the
    /// plan.
    unsafe fn plan_linked(
        &self,
        (part, given): (PipelineLinkage, usize),
        layout: &Arc<PipelineLayoutState>,
        sources: Vec<ShaderSource>,
        stages: &[PipelineShaderStageCreateInfo],
        libraries: &[Arc<InstrumentedLibrary>],
    ) -> Option<PipelinePlan> {
        if layout.root_binding != Some(RootBinding::PushConstant) {
            self.warn_unchecked("parts of pipelines are checked by push constants alone; some leave no room for ours");
            return None;
        }
        let mut plan = PipelinePlan::new(layout, sources, stages, &CheckStyle::BRANCHING);
        plan.linkage = part;
        for (at, info) in stages.iter().enumerate() {
            // SAFETY: the contract of this function: a stage of a valid call, which stays for as long as the plan.
            if let Err(why) = unsafe { self.plan_stage(&mut plan, at, info, &CheckStyle::BRANCHING) } {
                plan.records_all_touches = false;
                self.warn_unchecked(&why);
            }
        }
        plan.add_libraries(libraries);
        plan.records_all_touches &= libraries.len() == given;
        self.finish_part_plan(plan)
    }

    /// No more code of ours is added. But what is out of parts that have some needs tables, by which all is right.
    fn plan_uninstrumented_part(
        &self,
        part: PipelineLinkage,
        layout: PipelineLayout,
        stages: &[PipelineShaderStageCreateInfo],
        libraries: &[Pipeline],
    ) -> Option<PipelinePlan> {
        let state = self.state();
        let libraries: Vec<Arc<InstrumentedLibrary>> =
            libraries.iter().filter_map(|it| state.libraries.get(&it.0).cloned()).collect();
        let own = libraries.first().map(|it| &it.layout)?;
        let layout = Arc::clone(state.pipeline_layouts.get(&layout.0).unwrap_or(own));
        drop(state);
        let mut plan = PipelinePlan::new(&layout, Vec::new(), stages, &CheckStyle::BRANCHING);
        (plan.linkage, plan.records_all_touches) = (part, false);
        plan.add_libraries(&libraries);
        self.finish_part_plan(plan)
    }

    /// None where nothing of it has code of ours.
    fn finish_part_plan(&self, mut plan: PipelinePlan) -> Option<PipelinePlan> {
        if plan.stages.is_empty() {
            return None;
        }
        plan.cells = self.shared_cells();
        if plan.linkage == PipelineLinkage::Linked
            && self.or_stop_checking(self.allocate_permissive_tables(&mut plan)).is_none()
        {
            self.destroy_modules(&plan);
            return None;
        }
        Some(plan)
    }

    /// A plan for a whole pipeline whose layout and shaders are known.
    ///
    /// # Safety
    ///
    /// The stages must be those of a valid call that makes pipelines, and stay, with their chains, for as long as the
    /// plan; their modules need not be there any more.
    pub(crate) unsafe fn plan_whole(
        &self,
        layout: &Arc<PipelineLayoutState>,
        sources: Vec<ShaderSource>,
        stages: &[PipelineShaderStageCreateInfo],
        style: &CheckStyle,
    ) -> Option<PipelinePlan> {
        let mut plan = PipelinePlan::new(layout, sources, stages, style);
        if layout.root_binding == Some(RootBinding::Specialization) {
            plan.fixed = Some(self.or_stop_checking(FixedTables::new(self))?);
        }
        for (at, info) in stages.iter().enumerate() {
            // SAFETY: the contract of this function: a stage of a valid call, which stays for as long as the plan.
            if let Err(why) = unsafe { self.plan_stage(&mut plan, at, info, style) } {
                plan.records_all_touches = false;
                self.warn_unchecked(&why);
            }
        }
        let is_bare = plan.stages.is_empty();
        if is_bare && plan.requirements.is_empty()
            || !is_bare && self.or_stop_checking(self.allocate_tables(&mut plan)).is_none()
        {
            self.destroy_modules(&plan);
            return None;
        }
        Some(plan)
    }

    /// Memory that belongs to the pipeline: its cells, and tables for draws that have none of their own.
    fn allocate_tables(&self, plan: &mut PipelinePlan) -> Option<()> {
        let words: Vec<u32> = plan.stages.iter().flat_map(|it| it.instrumented.cells()).collect();
        let (cells, lease) = self.lease_memory(words.len() as u32)?;
        cells.write(&words);
        plan.cells = cells;
        plan.leases.push(lease);
        self.allocate_permissive_tables(plan)
    }

    fn allocate_permissive_tables(&self, plan: &mut PipelinePlan) -> Option<()> {
        let table = descriptor_sets::descriptor_table(&plan.layout, &Default::default(), |_| None);
        plan.permissive_tables =
            Some(self.create_permissive_tables(plan.layout.root_binding?, plan.cells, &table, &mut plan.leases)?);
        if let Some(fixed) = &plan.fixed {
            fixed.init_table(self, plan.cells, &table)?;
        }
        Some(())
    }

    fn destroy_modules(&self, plan: &PipelinePlan) {
        if let Some(destroy) = self.next.destroy_shader_module {
            // SAFETY: modules that `create_module` made for this plan alone, on a device that is alive by the contract
            // of `DeviceChecks::begin`. A plan is dropped or finished once, after its pipelines were made, which do not need
            // them.
            plan.modules.iter().for_each(|it| unsafe { destroy(self.device, *it, Ptr::NULL) });
        }
    }

    /// # Safety
    ///
    /// The info must be that of a stage of a valid call, and what it leads to must stay for as long as the plan; its
    /// module need not be there any more.
    unsafe fn plan_stage(
        &self,
        plan: &mut PipelinePlan,
        at: usize,
        info: &PipelineShaderStageCreateInfo,
        style: &CheckStyle,
    ) -> std::result::Result<(), String> {
        let source = plan.sources[at].clone();
        let found = match source.is_selected {
            true => self.instrument_stage(plan, at, info, style).map(Some),
            false => Ok(None),
        };
        if let Ok(Some(made)) = &found {
            plan.requirements.extend(&made.requirements);
        }
        plan.records_all_touches &= matches!(&found, Ok(Some(instrumented_module)) if !instrumented_module.is_unchanged() || instrumented_module.touches == ModuleTouches::default());
        let found = found.map(|it| it.filter(|it| !it.is_unchanged()));
        // SAFETY: the contract of this function: a stage with a valid chain.
        let (p_next, chain) =
            unsafe { chain_without_module(info) }.ok_or("the words of a shader cannot be exchanged")?;
        let made = match found {
            Ok(Some(made)) => made,
            Ok(None) | Err(_) => {
                // The application's module may be gone by now.
                if plan.linkage == PipelineLinkage::Whole && style != &CheckStyle::FIRST && info.module.0 != 0 {
                    let module = self.create_module(&source.words).ok_or("the driver does not take a shader again")?;
                    plan.infos[at].module = module;
                    plan.modules.push(module);
                }
                return found.map(|_| ());
            }
        };
        let (cell_base, part) =
            self.allocate_stage_cells(plan, &made).ok_or("there is no room for parts of pipelines")?;
        let driver_module = self.create_module(&made.words).ok_or("the driver does not take a shader with checks")?;
        // SAFETY: VUID-VkPipelineShaderStageCreateInfo-pSpecializationInfo-parameter, by the contract of this function:
        // null or one that is valid.
        let own = unsafe { slice(info.p_specialization_info, 1) }.first();
        let (shader, touch_base) = (self.next_shader(), touches::touch_base(&plan.stages));
        let mut constants = constants_of(&made, (shader, cell_base), plan.fixed.as_ref());
        let touch_slot =
            if plan.linkage == PipelineLinkage::Whole { None } else { DeviceChecks::touch_slot(info.stage) };
        constants.extend(touches::touch_constant(&made, touch_slot, touch_base));
        // SAFETY: the specialization of a stage of a valid call, by the same VUID.
        let special = unsafe { SpecializationData::new(own, &constants) };
        plan.infos[at] = PipelineShaderStageCreateInfo {
            module: driver_module,
            p_next,
            p_specialization_info: special.address(),
            ..*info
        };
        plan.modules.push(driver_module);
        plan.specializations.push(special);
        plan.chains.push(chain);
        let ShaderSource { words: original, module, name, .. } = source;
        plan.stages.push(InstrumentedStage {
            shader,
            kind: info.stage,
            index: at,
            module,
            name,
            object: None,
            instrumented: made,
            original,
            cell_base,
            touch_base,
            touch_slot,
            _cells_lease: part,
        });
        Ok(())
    }

    /// Where the cells of a stage begin; among those of all parts, for as long as the lease is there.
    fn allocate_stage_cells(
        &self,
        plan: &PipelinePlan,
        made: &InstrumentedModule,
    ) -> Option<(u32, Option<Arc<Lease>>)> {
        match plan.linkage {
            PipelineLinkage::Whole => Some((plan.cell_words(), None)),
            PipelineLinkage::Linked | PipelineLinkage::Library => {
                let (at, lease) = self.or_stop_checking(self.lease_shared_cells(&made.cells()))?;
                Some((at, Some(lease)))
            }
        }
    }

    /// The stage with checks, which may be none.
    fn instrument_stage(
        &self,
        plan: &PipelinePlan,
        at: usize,
        info: &PipelineShaderStageCreateInfo,
        style: &CheckStyle,
    ) -> std::result::Result<Arc<InstrumentedModule>, String> {
        let immediate = style.immediate.as_ref().map(|it| it.get(at).cloned().unwrap_or_default());
        let touches = self.records_touches(info.stage);
        self.instrument_words(&plan.layout, info.stage, &plan.sources[at].words, ((style.branches, touches), immediate))
    }

    /// As above, of any shader: whether it branches, and whether it keeps what it touches.
    pub(crate) fn instrument_words(
        &self,
        layout: &PipelineLayoutState,
        stage: ShaderStageFlags,
        words: &[u32],
        (how, immediate): ((bool, bool), Option<BTreeSet<u32>>),
    ) -> std::result::Result<Arc<InstrumentedModule>, String> {
        if stage.0 & self.storing_stages == 0 {
            return Err("the device has stages that cannot write into buffers: their shaders are not checked".into());
        }
        let root = match layout.root_binding {
            Some(RootBinding::PushConstant) => {
                RootLocation::PushConstant { offset: self.root_push_offset.unwrap_or(0) }
            }
            Some(RootBinding::Specialization) => RootLocation::Specialization,
            Some(RootBinding::DescriptorSet) | None => RootLocation::Descriptor { set: self.reserved_set },
        };
        let made = self.instrument_cached(words, root, how, immediate)?;
        if made.reads_addresses && !self.has_addresses {
            return Err(
                "device addresses cannot be checked on this device: shaders that use them are not checked".into()
            );
        }
        if made.scratch_bytes > SCRATCH_BYTES {
            return Err("a shader accesses more than 64 KiB at once by an address: it is not checked".into());
        }
        let is_known = |it: &(u32, u32)| layout.binding(it.0, it.1).is_some();
        if !made.sites.iter().filter_map(|it| it.binding).all(|it| is_known(&it)) {
            return Err("a shader uses a binding that is not in its pipeline layout: it is not checked".into());
        }
        Ok(made)
    }

    /// The words of a shader with checks. Equal shaders are checked once.
    fn instrument_cached(
        &self,
        words: &[u32],
        root: RootLocation,
        (branches, touches): (bool, bool),
        immediate: Option<BTreeSet<u32>>,
    ) -> std::result::Result<Arc<InstrumentedModule>, String> {
        let place = match root {
            RootLocation::PushConstant { offset } => (0, offset),
            RootLocation::Descriptor { set } => (1, set),
            RootLocation::Specialization => (2, 0),
        };
        // SAFETY: a word is four bytes without padding, so that the slice has so many bytes, all of them initialized.
        let bytes = unsafe { std::slice::from_raw_parts(words.as_ptr().cast::<u8>(), words.len() * 4) };
        let key = InstrumentedShaderKey { words: xxh3_128(bytes), root: place, branches, immediate, touches };
        if let Some(known) = self.state().instrumented_shaders.get(&key) {
            return Ok(Arc::clone(known));
        }
        let module = Module::parse(words).map_err(|it| format!("a shader is not checked: {it}"))?;
        let complain = |it| format!("a shader is not checked: {it}");
        let guard = if branches { Guard::Branch } else { Guard::Select };
        let (checks, prints) = (self.config.checks, self.config.prints.is_some());
        let zeros = self.wants_zeros;
        let mut options = InstrumentOptions {
            guard,
            checks,
            prints,
            touches,
            zero_faulty_loads: zeros,
            ..InstrumentOptions::new(root)
        };
        options.immediate = key.immediate.clone().unwrap_or_default();
        let cache = self.config.cache.as_ref();
        let kept = cache.map(|it| it.key(words, &options, key.immediate.is_none()));
        let made = match cache.zip(kept).and_then(|(cache, kept)| cache.load(kept)) {
            Some(made) => made,
            None => {
                let mut made = instrument(&module, &options).map_err(complain)?;
                if key.immediate.is_none() && (1..=FEW_SITES).contains(&made.numbered_sites) {
                    options.immediate = (0..made.numbered_sites).collect();
                    made = instrument(&module, &options).map_err(complain)?;
                }
                if let Some((cache, kept)) = cache.zip(kept) {
                    cache.store(kept, &made);
                }
                made
            }
        };
        let (made, mut state) = (Arc::new(made), self.state());
        if state.instrumented_shaders.len() >= KNOWN_MAX {
            state.instrumented_shaders.clear();
        }
        state.instrumented_shaders.insert(key, Arc::clone(&made));
        Ok(made)
    }

    pub(crate) fn create_module(&self, words: &[u32]) -> Option<ShaderModule> {
        let mut info = ShaderModuleCreateInfo::zeroed();
        info.s_type = StructureType::SHADER_MODULE_CREATE_INFO;
        info.code_size = words.len() as u64 * 4;
        info.p_code = Ptr::to_slice(words);
        let mut made = ShaderModule::default();
        let create = self.next.create_shader_module?;
        // SAFETY: a device that is alive by the contract of `DeviceChecks::begin`; the info, its words and the place are ours.
        check_success(unsafe { create(self.device, Ptr::to(&info), Ptr::NULL, out_ptr(&mut made)) })?;
        Some(made)
    }

    /// The pipelines were made, as planned if `is_planned`.
    pub(crate) fn finish(&self, plans: Vec<Option<PipelinePlan>>, made: &[Pipeline], is_planned: bool) {
        for (plan, handle) in plans.into_iter().zip(made) {
            let Some(mut plan) = plan else { continue };
            self.destroy_modules(&plan);
            if is_planned && handle.0 != 0 && plan.linkage == PipelineLinkage::Library {
                let PipelinePlan { layout, stages, records_all_touches: keeps_all, .. } = plan;
                let library = InstrumentedLibrary { layout, stages, records_all_touches: keeps_all };
                self.state().libraries.insert(handle.0, Arc::new(library));
            } else if is_planned && handle.0 != 0 {
                let number = self.next_pipeline();
                let recipe = plan.recipe.take().map(RebuildOrigin::Pipeline);
                let Some(first) = plan.into_variant(*handle, (*handle, number)) else { continue };
                let first = Arc::new(first);
                let checked = Arc::new(InstrumentedPipeline::new(*handle, number, recipe, Arc::clone(&first)));
                let mut state = self.state();
                state.variants.push(first);
                state.pipelines.insert(handle.0, checked);
            }
        }
    }

    /// A pipeline of ours out of a plan, for a pipeline of the application.
    pub(crate) fn finish_rebuilt(
        &self,
        plan: PipelinePlan,
        made: Pipeline,
        application: (Pipeline, u32),
    ) -> Option<Arc<PipelineVariant>> {
        self.destroy_modules(&plan);
        let variant = Arc::new(plan.into_variant(made, application)?);
        self.state().variants.push(Arc::clone(&variant));
        Some(variant)
    }

    /// A plan that came to nothing.
    pub(crate) fn drop_plan(&self, plan: &PipelinePlan) {
        self.destroy_modules(plan);
    }
}

impl PipelinePlan {
    fn new(
        layout: &Arc<PipelineLayoutState>,
        sources: Vec<ShaderSource>,
        stages: &[PipelineShaderStageCreateInfo],
        style: &CheckStyle,
    ) -> PipelinePlan {
        PipelinePlan {
            layout: Arc::clone(layout),
            guard: style.guard(),
            infos: stages.to_vec(),
            stages: Vec::new(),
            modules: Vec::new(),
            specializations: Vec::new(),
            chains: Vec::new(),
            cells: ArenaRegion::default(),
            permissive_tables: None,
            fixed: None,
            leases: Vec::new(),
            requirements: Vec::new(),
            sources,
            recipe: None,
            linkage: PipelineLinkage::Whole,
            records_all_touches: true,
        }
    }

    fn add_libraries(&mut self, libraries: &[Arc<InstrumentedLibrary>]) {
        let from = self.infos.len();
        for (at, stage) in libraries.iter().flat_map(|it| &it.stages).enumerate() {
            let touch_base = touches::touch_base(&self.stages);
            self.stages.push(InstrumentedStage { index: from + at, touch_base, ..stage.clone() });
        }
        self.records_all_touches &= libraries.iter().all(|it| it.records_all_touches);
    }

    /// Whether it can be made again.
    pub(crate) fn is_whole(&self) -> bool {
        self.linkage == PipelineLinkage::Whole
    }

    /// What it is made of, for a recipe.
    pub(crate) fn layout_and_sources(&self) -> (&Arc<PipelineLayoutState>, &[ShaderSource]) {
        (&self.layout, &self.sources)
    }

    /// Whether no shader has code of ours.
    pub(crate) fn is_uninstrumented(&self) -> bool {
        self.stages.is_empty()
    }

    fn cell_words(&self) -> u32 {
        self.stages.iter().map(|it| it.instrumented.cell_words()).sum()
    }

    fn into_variant(self, handle: Pipeline, application: (Pipeline, u32)) -> Option<PipelineVariant> {
        let reads_addresses = self.stages.iter().any(|it| it.instrumented.reads_addresses);
        Some(PipelineVariant {
            handle,
            application,
            root_binding: self.layout.root_binding?,
            layout: self.layout,
            stages: self.stages,
            cells: self.cells,
            permissive_tables: self.permissive_tables,
            fixed_tables: self.fixed.into_iter().map(Arc::new).collect(),
            requirements: self.requirements,
            reads_addresses,
            branches: self.guard == Guard::Branch,
            records_all_touches: self.records_all_touches,
            shader_objects: None,
            is_retired: AtomicBool::new(false),
            _leases: self.leases,
        })
    }
}

impl SpecializationData {
    /// # Safety
    ///
    /// The application's own must be that of a stage of a valid call that has not returned.
    pub(crate) unsafe fn new(own: Option<&SpecializationInfo>, constants: &[(u32, u32)]) -> SpecializationData {
        // SAFETY: VUID-VkSpecializationInfo-pMapEntries-parameter, by the contract of this function: as many as it
        // says.
        let entries = own.map_or(&[][..], |it| unsafe { slice(it.p_map_entries, it.map_entry_count) });
        // SAFETY: VUID-VkSpecializationInfo-pData-parameter, by the contract of this function: as many bytes as it
        // says.
        let data = own.map_or(&[][..], |it| unsafe { slice(it.p_data, it.data_size as u32) });
        let (mut entries, mut data) = (entries.to_vec(), data.to_vec());
        for (constant_id, value) in constants {
            entries.push(SpecializationMapEntry { constant_id: *constant_id, offset: data.len() as u32, size: 4 });
            data.extend(value.to_ne_bytes());
        }
        let info = vec![SpecializationInfo {
            map_entry_count: entries.len() as u32,
            p_map_entries: Ptr::to_slice(&entries),
            data_size: data.len() as u64,
            p_data: Ptr::to_slice(&data),
        }];
        SpecializationData { info, _behind: (entries, data) }
    }

    /// Where it is, as long as this is there.
    pub(crate) fn address(&self) -> Ptr<SpecializationInfo> {
        Ptr::to_slice(&self.info)
    }
}

/// The specialization constants of ours: which shader it is, where its cells begin, and where its tables are.
pub(crate) fn constants_of(
    made: &InstrumentedModule,
    (shader, cell_base): (u32, u32),
    fixed: Option<&FixedTables>,
) -> Vec<(u32, u32)> {
    let mut constants = vec![(made.spec_ids[0], shader), (made.spec_ids[1], cell_base)];
    if let Some(fixed) = fixed {
        let address = fixed.root.device_address;
        constants.extend(made.root_spec_ids.into_iter().zip([address as u32, (address >> 32) as u32]));
    }
    constants
}

/// Why a pipeline is left as it is.
///
/// # Safety
///
/// The chain must be that of an info of a valid call that makes pipelines and has not returned.
unsafe fn skip_reason(flags: PipelineCreateFlags, chain: Ptr<Opaque>) -> Option<&'static str> {
    // SAFETY: the contract of this function: a valid chain; the type is that of the structure.
    let binaries = unsafe { find_in_chain::<PipelineBinaryInfoKHR>(chain, StructureType::PIPELINE_BINARY_INFO_KHR) };
    // SAFETY: a structure of the chain, which stays until the call returns.
    if binaries.is_some_and(|it| unsafe { (*it.as_ptr()).binary_count } > 0) {
        return Some("pipelines out of binaries have no shaders that could be checked");
    }
    let groups = StructureType::GRAPHICS_PIPELINE_SHADER_GROUPS_CREATE_INFO_NV;
    // SAFETY: the contract of this function: a valid chain; the type is that of the structure.
    let has_groups = unsafe { find_in_chain::<GraphicsPipelineShaderGroupsCreateInfoNV>(chain, groups) }.is_some();
    // SAFETY: the contract of this function, which is that of `all_flags`.
    (has_groups || unsafe { all_flags(flags, chain) } & SKIPPED_FLAGS != 0)
        .then_some("pipelines that the device binds, or with descriptor heaps, are not checked")
}

/// # Safety
///
/// The chain must be that of an info of a valid call that makes pipelines and has not returned.
unsafe fn all_flags(flags: PipelineCreateFlags, chain: Ptr<Opaque>) -> u64 {
    let ty = StructureType::PIPELINE_CREATE_FLAGS_2_CREATE_INFO;
    // SAFETY: the contract of this function: a valid chain; the type is that of the structure.
    let more = unsafe { find_in_chain::<PipelineCreateFlags2CreateInfo>(chain, ty) };
    // SAFETY: a structure of the chain, which stays until the call returns.
    more.map_or(u64::from(flags.0), |it| unsafe { (*it.as_ptr()).flags.0 })
}

/// Whether it is a part of pipelines or out of such, and which.
///
/// # Safety
///
/// The chain must be that of an info of a valid call that makes pipelines, and stay for as long as `more` does.
unsafe fn linkage_of(
    flags: PipelineCreateFlags,
    chain: Ptr<Opaque>,
    more: &[Pipeline],
) -> (PipelineLinkage, &[Pipeline]) {
    let ty = StructureType::PIPELINE_LIBRARY_CREATE_INFO_KHR;
    // SAFETY: the contract of this function: a valid chain; the type is that of the structure.
    let found = unsafe { find_in_chain::<PipelineLibraryCreateInfoKHR>(chain, ty) };
    // SAFETY: a structure of the chain, which by the contract of this function stays.
    let found = found.map(|it| unsafe { &*it.as_ptr() });
    // SAFETY: VUID-VkPipelineLibraryCreateInfoKHR-pLibraries-parameter: as many as it says, which stay as the chain
    // does.
    let libraries = found.map_or(more, |it| unsafe { slice(it.p_libraries, it.library_count) });
    // SAFETY: the contract of this function: the chain of an info of a valid call.
    let flags = unsafe { all_flags(flags, chain) };
    let part = match flags & u64::from(PipelineCreateFlags::LIBRARY_KHR.0) != 0 {
        true => PipelineLinkage::Library,
        false if libraries.is_empty() => PipelineLinkage::Whole,
        false => PipelineLinkage::Linked,
    };
    (part, libraries)
}

/// The words of a stage; none where nobody has them.
///
/// # Safety
///
/// The info must be that of a stage of a valid call that has not returned.
unsafe fn source_of(state: &ChecksState, info: &PipelineShaderStageCreateInfo) -> Option<ShaderSource> {
    if info.module.0 != 0 {
        let (words, name) = state.modules.get(&info.module.0).cloned()?;
        return Some(ShaderSource { words, module: info.module, name, is_selected: true });
    }
    let ty = StructureType::SHADER_MODULE_CREATE_INFO;
    // SAFETY: VUID-VkPipelineShaderStageCreateInfo-pNext-pNext, by the contract of this function: a valid chain; the
    // type is that of the structure.
    let module = unsafe { find_in_chain::<ShaderModuleCreateInfo>(info.p_next, ty) }?;
    // SAFETY: a structure of the chain, whose words are there until the call returns.
    Some(ShaderSource::unnamed(unsafe { read_words(&*module.as_ptr()) }))
}

/// The chain of a stage without words for a module, and copies of what is before them; none where they cannot be
/// taken out.
///
/// # Safety
///
/// The info must be that of a stage of a valid call, and its chain must stay for as long as the result.
unsafe fn chain_without_module(info: &PipelineShaderStageCreateInfo) -> Option<(Ptr<Opaque>, ChainCopy)> {
    let ty = StructureType::SHADER_MODULE_CREATE_INFO;
    // SAFETY: VUID-VkPipelineShaderStageCreateInfo-pNext-pNext, by the contract of this function: a valid chain; the
    // type is that of the structure.
    let found = unsafe { find_in_chain::<ShaderModuleCreateInfo>(info.p_next, ty) };
    let Some(found) = found.filter(|_| info.module.0 == 0) else { return Some((info.p_next, ChainCopy::default())) };
    // SAFETY: a structure of the chain, which by the contract of this function stays.
    let rest = unsafe { (*found.as_ptr()).p_next };
    // SAFETY: the same chain.
    let mut before = unsafe { ChainCopy::copy_until(info.p_next, ty) }?;
    before.pop();
    Some((before.link(rest), before))
}

/// # Safety
///
/// The info must be that of a valid `vkCreateShaderModule`, or in the chain of a stage of a valid call, that has not
/// returned.
pub(crate) unsafe fn read_words(info: &ShaderModuleCreateInfo) -> Arc<Vec<u32>> {
    // SAFETY: VUID-VkShaderModuleCreateInfo-pCode-parameter, by the contract of this function: `codeSize / 4` words.
    // Where the code is GLSL the size is no multiple of four, and what is left over is not read.
    Arc::new(unsafe { slice(info.p_code, (info.code_size / 4) as u32) }.to_vec())
}
