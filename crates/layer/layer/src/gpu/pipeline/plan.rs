//! Plans how a pipeline is created.
//!
//! Each stage gets SPIR-V words with checks, two additional specialization constants, and *cells*. A cell is the memory
//! in which shaders count the faults of a site. The first variant of a pipeline has no check for an access if the host
//! can see at the draw that enough is bound. Shaders with up to four sites record each fault where it happens. Other
//! shaders remember the first fault of an invocation, and one bit for each other site.
//!
//! Pipeline libraries are instrumented with branches, because the bindings at the draw are unknown. They are not created
//! again, so the details of a site that is never the first fault of an invocation stay unknown. All libraries and shader
//! objects of a device share one array of cells, because linked ones need their cells in one place.
//!
//! The driver is called without a lock of ours.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use lavascope_abi::*;
use lavascope_instrument::{BindingRequirement, Guard};

use super::layouts::{PipelineLayoutState, RootBinding};
use super::recipe::{PipelineRecipe, ShaderSource};
use super::stage_plan::SpecializationData;
use super::variants::{
    FixedTables, InstrumentedPipeline, InstrumentedStage, PermissiveTables, PipelineVariant, RebuildOrigin,
};
use crate::gpu::hook::device_request::ChainCopy;
use crate::gpu::readback::touches;
use crate::gpu::resource::arena::ArenaRegion;
use crate::gpu::resource::descriptor_sets;
use crate::gpu::resource::leases::Lease;
use crate::gpu::{ChecksState, DeviceChecks, slice};
use crate::loader::pnext_chain::find_in_chain;
use crate::report::coverage;

/// A pipeline that is about to be created.
pub(crate) struct PipelinePlan {
    pub(super) layout: Arc<PipelineLayoutState>,
    pub(super) guard: Guard,
    /// The stages that the driver gets.
    pub(crate) infos: Vec<PipelineShaderStageCreateInfo>,
    pub(super) stages: Vec<InstrumentedStage>,
    pub(super) modules: Vec<ShaderModule>,
    pub(super) specializations: Vec<SpecializationData>,
    /// Copies of structures in the chains of stages, up to the words of a module.
    pub(super) chains: Vec<ChainCopy>,
    pub(super) cells: ArenaRegion,
    pub(super) permissive_tables: Option<PermissiveTables>,
    pub(super) fixed: Option<FixedTables>,
    /// Leases of cells and tables.
    pub(super) leases: Vec<Lease>,
    /// The requirements of shaders on what is bound, including shaders without our code.
    pub(super) requirements: Vec<BindingRequirement>,
    pub(crate) sources: Vec<ShaderSource>,
    pub(crate) recipe: Option<PipelineRecipe>,
    pub(super) linkage: PipelineLinkage,
    /// Whether all shaders that access memory have our code.
    pub(super) records_all_touches: bool,
    /// Why not all of its shaders are checked.
    pub(super) unchecked: Option<Arc<str>>,
}

/// Whether a pipeline is complete, or a library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PipelineLinkage {
    Whole,
    /// Linked from libraries.
    Linked,
    /// A library: its cells are in the memory that all libraries share.
    Library,
}

/// Whether the application creates a pipeline, or the layer creates it again with other checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PipelineCreation {
    New,
    Again,
}

/// Why shaders are not checked, for the report.
pub(crate) const NOT_SELECTED: &str = "not among the selected shaders";
pub(crate) const NOT_IN_SAMPLE: &str = "not in the sample of gpu_sample";
pub(crate) const CHECKS_ENDED: &str = "the checks had ended";
pub(crate) const REFUSED: &str = "the driver creates a pipeline only without checks: its shaders are not checked";
const LAYOUT_UNKNOWN: &str = "a pipeline layout is not known: its pipelines are not checked";
const SHADER_UNKNOWN: &str = "the SPIR-V of a shader is unknown: its pipeline is not checked";
const NO_PUSH_CONSTANTS: &str =
    "pipeline libraries need 8 bytes of push constants for checks; libraries without room for them are not checked";
const NO_ADDRESSES: &str = "pipeline libraries need buffer device addresses for checks, which the device does not have: libraries are not checked";

/// A pipeline library whose shaders have checks.
pub(crate) struct InstrumentedLibrary {
    layout: Arc<PipelineLayoutState>,
    stages: Vec<InstrumentedStage>,
    records_all_touches: bool,
    unchecked: Option<Arc<str>>,
}

/// How shaders are checked.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct CheckStyle {
    pub(crate) branches: bool,
    /// The sites that record faults immediately, by stage; none means all sites of shaders with few sites.
    pub(crate) immediate: Option<Vec<BTreeSet<u32>>>,
}

impl CheckStyle {
    pub(crate) const FIRST: CheckStyle = CheckStyle { branches: false, immediate: None };
    const BRANCHING: CheckStyle = CheckStyle { branches: true, immediate: None };

    pub(crate) fn guard(&self) -> Guard {
        if self.branches { Guard::Branch } else { Guard::Select }
    }
}

/// Flags of pipelines that are not checked, because their sets are bound in other ways.
const SKIPPED_FLAGS: u64 = PipelineCreateFlags::INDIRECT_BINDABLE_NV.0 as u64
    | PipelineCreateFlags2::INDIRECT_BINDABLE_EXT.0
    | PipelineCreateFlags2::DESCRIPTOR_HEAP_EXT.0;

impl DeviceChecks {
    /// The plan for a pipeline; none if the pipeline stays unchanged.
    ///
    /// # Safety
    ///
    /// Flags, chain and stages must be those of an info of a valid call that makes pipelines on this device and has not
    /// returned, and they must stay for as long as the plan.
    pub(crate) unsafe fn plan_pipeline(
        &self,
        layout: PipelineLayout,
        of: (PipelineCreateFlags, Ptr<Opaque>),
        stages: &[PipelineShaderStageCreateInfo],
    ) -> Option<PipelinePlan> {
        // SAFETY: the contract of this function, which is that of `plan_with_style`.
        unsafe { self.plan_with_style(layout, of, (stages, &[]), &CheckStyle::FIRST) }
    }

    /// Like [`DeviceChecks::plan_pipeline`], for a ray tracing pipeline. It has only one variant, because the application copies
    /// the handles of its shader groups into its own memory.
    ///
    /// # Safety
    ///
    /// As for [`DeviceChecks::plan_pipeline`].
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
    /// As for [`DeviceChecks::plan_pipeline`].
    unsafe fn plan_with_style(
        &self,
        layout: PipelineLayout,
        (flags, chain): (PipelineCreateFlags, Ptr<Opaque>),
        (stages, more): (&[PipelineShaderStageCreateInfo], &[Pipeline]),
        style: &CheckStyle,
    ) -> Option<PipelinePlan> {
        // SAFETY: the contract of this function: the chain of an info of a valid call.
        let skipped = unsafe { skip_reason(flags, chain) };
        // SAFETY: the contract of this function: the chain of an info of a valid call, which stays as `more` does.
        let (linkage, libraries) = unsafe { linkage_of(flags, chain, more) };
        if let Some(why) = skipped {
            return self.leave_unchecked((linkage, None), stages, why);
        }
        if self.has_failed() {
            coverage::count_unchecked_shaders(stages.len(), CHECKS_ENDED);
            let linked = self.plan_uninstrumented_part(linkage, layout, stages, libraries);
            return linked.or_else(|| Some(PipelinePlan::unchecked((linkage, None), stages, CHECKS_ENDED)));
        }
        if linkage == PipelineLinkage::Whole && !self.config.selection.take_next_sample() {
            coverage::count_unchecked_shaders(stages.len(), NOT_IN_SAMPLE);
            return Some(PipelinePlan::unchecked((linkage, None), stages, NOT_IN_SAMPLE));
        }
        let state = self.state();
        let library_count = libraries.len();
        let libraries: Vec<Arc<InstrumentedLibrary>> =
            libraries.iter().filter_map(|it| state.libraries.get(&it.0).cloned()).collect();
        let layout = state.pipeline_layouts.get(&layout.0).or_else(|| libraries.first().map(|it| &it.layout)).cloned();
        // SAFETY: the contract of this function: a stage of a valid call, with its chain.
        let source = |it| unsafe { self.config.selection.select_stage(&state, it, source_of(&state, it)?) };
        let sources: Option<Vec<ShaderSource>> = stages.iter().map(source).collect();
        drop(state);
        let Some(layout) = layout else {
            if stages.is_empty() {
                return None;
            }
            return self.leave_unchecked((linkage, None), stages, LAYOUT_UNKNOWN);
        };
        if let Some(why) = layout.unsupported_reason() {
            return self.leave_unchecked((linkage, Some(&layout)), stages, why);
        }
        let Some(sources) = sources else {
            return self.leave_unchecked((linkage, Some(&layout)), stages, SHADER_UNKNOWN);
        };
        if linkage != PipelineLinkage::Whole {
            // SAFETY: the contract of this function: the stages of a valid call.
            return unsafe { self.plan_linked((linkage, library_count), &layout, sources, stages, &libraries) };
        }
        // The contents of descriptor buffers are known only at submission, so nothing can be expected.
        let style = if layout.uses_descriptor_buffers() { &CheckStyle::BRANCHING } else { style };
        // SAFETY: the contract of this function: the stages of a valid call.
        unsafe { self.plan_whole(&layout, sources, stages, (style, PipelineCreation::New)) }
    }

    /// Warns that the shaders of a pipeline are not checked. Its draws are counted.
    fn leave_unchecked(
        &self,
        of: (PipelineLinkage, Option<&Arc<PipelineLayoutState>>),
        stages: &[PipelineShaderStageCreateInfo],
        why: &str,
    ) -> Option<PipelinePlan> {
        coverage::count_unchecked_shaders(stages.len(), why);
        self.warn_unchecked(why);
        Some(PipelinePlan::unchecked(of, stages, why))
    }

    /// Counts a stage of a new pipeline, and warns if it is not checked.
    fn count_stage(&self, is_selected: bool, planned: &std::result::Result<(), String>) {
        match planned {
            Err(why) => coverage::count_unchecked_shaders(1, why),
            Ok(()) if !is_selected => coverage::count_unchecked_shaders(1, NOT_SELECTED),
            Ok(()) => coverage::count_checked_shader(),
        }
    }

    /// A pipeline library, or a pipeline made of libraries, some of which are known. When a library is created, the
    /// bindings are unknown, so it expects nothing; and it is not created again.
    ///
    /// # Safety
    ///
    /// The stages must be those of a valid call that makes pipelines, and stay, with their chains, for as long as the
    /// plan.
    unsafe fn plan_linked(
        &self,
        (linkage, library_count): (PipelineLinkage, usize),
        layout: &Arc<PipelineLayoutState>,
        sources: Vec<ShaderSource>,
        stages: &[PipelineShaderStageCreateInfo],
        libraries: &[Arc<InstrumentedLibrary>],
    ) -> Option<PipelinePlan> {
        if layout.root_binding != Some(RootBinding::PushConstant) {
            let why = if self.has_addresses { NO_PUSH_CONSTANTS } else { NO_ADDRESSES };
            return self.leave_unchecked((linkage, Some(layout)), stages, why);
        }
        let mut plan = PipelinePlan::new(layout, sources, stages, &CheckStyle::BRANCHING);
        plan.linkage = linkage;
        for (at, info) in stages.iter().enumerate() {
            // SAFETY: the contract of this function: a stage of a valid call, which stays for as long as the plan.
            let planned = unsafe { self.plan_stage(&mut plan, at, info, &CheckStyle::BRANCHING) };
            self.count_stage(plan.sources[at].is_selected, &planned);
            plan.note_stage(at, &planned);
            if let Err(why) = planned {
                self.warn_unchecked(&why);
            }
        }
        plan.add_libraries(libraries);
        plan.records_all_touches &= libraries.len() == library_count;
        self.finish_part_plan(plan)
    }

    /// Checks are off, so no code is added. But a pipeline linked from libraries with our code needs permissive tables.
    fn plan_uninstrumented_part(
        &self,
        linkage: PipelineLinkage,
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
        (plan.linkage, plan.records_all_touches) = (linkage, false);
        plan.add_libraries(&libraries);
        self.finish_part_plan(plan)
    }

    /// None if no stage has our code.
    fn finish_part_plan(&self, mut plan: PipelinePlan) -> Option<PipelinePlan> {
        if plan.stages.is_empty() {
            return plan.unchecked.is_some().then_some(plan);
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
        (style, creation): (&CheckStyle, PipelineCreation),
    ) -> Option<PipelinePlan> {
        let mut plan = PipelinePlan::new(layout, sources, stages, style);
        if layout.root_binding == Some(RootBinding::Specialization) {
            plan.fixed = Some(self.or_stop_checking(FixedTables::new(self))?);
        }
        for (at, info) in stages.iter().enumerate() {
            // SAFETY: the contract of this function: a stage of a valid call, which stays for as long as the plan.
            let planned = unsafe { self.plan_stage(&mut plan, at, info, style) };
            if creation == PipelineCreation::New {
                self.count_stage(plan.sources[at].is_selected, &planned);
            }
            plan.note_stage(at, &planned);
            if let Err(why) = planned {
                self.warn_unchecked(&why);
            }
        }
        let is_bare = plan.stages.is_empty();
        let is_counted = plan.unchecked.is_some() && creation == PipelineCreation::New;
        if is_bare && plan.requirements.is_empty() && !is_counted
            || !is_bare && self.or_stop_checking(self.allocate_tables(&mut plan)).is_none()
        {
            self.destroy_modules(&plan);
            return None;
        }
        Some(plan)
    }

    /// Allocates the memory of the pipeline: its cells, and tables for draws that have none of their own.
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

    /// Stores the created pipelines: each plan becomes the first variant of its pipeline. If not `is_planned`, the driver
    /// has created the pipelines without the changes of the plans.
    pub(crate) fn keep_pipelines(&self, plans: Vec<Option<PipelinePlan>>, made: &[Pipeline], is_planned: bool) {
        for (plan, handle) in plans.into_iter().zip(made) {
            let Some(mut plan) = plan else { continue };
            self.destroy_modules(&plan);
            if is_planned && handle.0 != 0 && plan.linkage == PipelineLinkage::Library {
                let PipelinePlan { layout, stages, records_all_touches: keeps_all, unchecked, .. } = plan;
                let library = InstrumentedLibrary { layout, stages, records_all_touches: keeps_all, unchecked };
                self.state().libraries.insert(handle.0, Arc::new(library));
            } else if !is_planned && handle.0 != 0 {
                self.track_refused(*handle, plan);
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

    /// The driver has created a pipeline without the checks of its plan: its draws are counted.
    fn track_refused(&self, handle: Pipeline, plan: PipelinePlan) {
        let is_library = plan.linkage == PipelineLinkage::Library;
        let why = plan.unchecked.clone().unwrap_or_else(|| Arc::from(REFUSED));
        let bare = PipelinePlan::unchecked((plan.linkage, Some(&plan.layout)), &[], &why);
        if is_library {
            let PipelinePlan { layout, stages, records_all_touches, unchecked, .. } = bare;
            let library = InstrumentedLibrary { layout, stages, records_all_touches, unchecked };
            self.state().libraries.insert(handle.0, Arc::new(library));
            return;
        }
        let number = self.next_pipeline();
        let Some(first) = bare.into_variant(handle, (handle, number)) else { return };
        let checked = InstrumentedPipeline::new(handle, number, None, Arc::new(first));
        self.state().pipelines.insert(handle.0, Arc::new(checked));
    }

    /// Makes another variant out of a plan, for a pipeline that was created again.
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

    /// Frees a plan that is not used.
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
            unchecked: None,
        }
    }

    /// A plan that changes nothing: its draws are counted with the reason.
    fn unchecked(
        (linkage, layout): (PipelineLinkage, Option<&Arc<PipelineLayoutState>>),
        stages: &[PipelineShaderStageCreateInfo],
        why: &str,
    ) -> PipelinePlan {
        let layout = layout.cloned().unwrap_or_else(|| Arc::new(PipelineLayoutState::empty()));
        let plan = PipelinePlan::new(&layout, Vec::new(), stages, &CheckStyle::BRANCHING);
        PipelinePlan { linkage, records_all_touches: false, unchecked: Some(Arc::from(why)), ..plan }
    }

    /// Notes whether a stage is checked.
    fn note_stage(&mut self, at: usize, planned: &std::result::Result<(), String>) {
        let why = match planned {
            Err(why) => Some(why.as_str()),
            Ok(()) => (!self.sources[at].is_selected).then_some(NOT_SELECTED),
        };
        self.records_all_touches &= planned.is_ok();
        if let Some(why) = why.filter(|_| self.unchecked.is_none()) {
            self.unchecked = Some(Arc::from(why));
        }
    }

    /// Whether it may have to be created again. `may_be_selected`: its shaders may be selected later.
    pub(crate) fn needs_recipe(&self, may_be_selected: bool) -> bool {
        !self.stages.is_empty() || !self.requirements.is_empty() || may_be_selected && !self.sources.is_empty()
    }

    fn add_libraries(&mut self, libraries: &[Arc<InstrumentedLibrary>]) {
        let from = self.infos.len();
        for (at, stage) in libraries.iter().flat_map(|it| &it.stages).enumerate() {
            let touch_base = touches::touch_base(&self.stages);
            self.stages.push(InstrumentedStage { index: from + at, touch_base, ..stage.clone() });
        }
        self.records_all_touches &= libraries.iter().all(|it| it.records_all_touches);
        let why = libraries.iter().find_map(|it| it.unchecked.clone());
        self.unchecked = self.unchecked.take().or(why);
    }

    /// Whether it can be created again.
    pub(crate) fn is_whole(&self) -> bool {
        self.linkage == PipelineLinkage::Whole
    }

    /// The layout and the shaders, for a recipe.
    pub(crate) fn layout_and_sources(&self) -> (&Arc<PipelineLayoutState>, &[ShaderSource]) {
        (&self.layout, &self.sources)
    }

    /// How many shaders of its own have our code.
    pub(crate) fn instrumented_count(&self) -> usize {
        self.stages.iter().filter(|it| it.index < self.infos.len()).count()
    }

    /// Whether no shader has our code.
    pub(crate) fn is_uninstrumented(&self) -> bool {
        self.stages.is_empty()
    }

    pub(super) fn cell_words(&self) -> u32 {
        self.stages.iter().map(|it| it.instrumented.cell_words()).sum()
    }

    fn into_variant(self, handle: Pipeline, application: (Pipeline, u32)) -> Option<PipelineVariant> {
        let reads_addresses = self.stages.iter().any(|it| it.instrumented.reads_addresses);
        Some(PipelineVariant {
            handle,
            application,
            root_binding: self.layout.root_binding.or(self.stages.is_empty().then_some(RootBinding::PushConstant))?,
            layout: self.layout,
            stages: self.stages,
            cells: self.cells,
            permissive_tables: self.permissive_tables,
            fixed_tables: self.fixed.into_iter().map(Arc::new).collect(),
            requirements: self.requirements,
            reads_addresses,
            branches: self.guard == Guard::Branch,
            records_all_touches: self.records_all_touches,
            unchecked: self.unchecked,
            shader_objects: None,
            is_retired: AtomicBool::new(false),
            _leases: self.leases,
        })
    }
}

/// Why a pipeline stays unchanged.
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

/// Whether a pipeline is complete, a library, or linked from libraries, and its libraries.
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
    let linkage = match flags & u64::from(PipelineCreateFlags::LIBRARY_KHR.0) != 0 {
        true => PipelineLinkage::Library,
        false if libraries.is_empty() => PipelineLinkage::Whole,
        false => PipelineLinkage::Linked,
    };
    (linkage, libraries)
}

/// The words of a stage; none if they are not available.
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

/// # Safety
///
/// The info must be that of a valid `vkCreateShaderModule`, or in the chain of a stage of a valid call, that has not
/// returned.
pub(crate) unsafe fn read_words(info: &ShaderModuleCreateInfo) -> Arc<Vec<u32>> {
    // SAFETY: VUID-VkShaderModuleCreateInfo-pCode-parameter, by the contract of this function: `codeSize / 4` words.
    // The size of GLSL code need not be a multiple of four; the remaining bytes are not read.
    Arc::new(unsafe { slice(info.p_code, (info.code_size / 4) as u32) }.to_vec())
}
