//! The forms in which a checked pipeline exists, and which of them is bound.
//!
//! The first form expects that enough is bound to what it accesses without a look (`Guard::Select`); where that is
//! not so when a draw is recorded, one is made that expects nothing. Both remember what an invocation does wrong first;
//! for other sites that were seen, a third form records each fault where it happens.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lavascope_abi::*;
use lavascope_instrument::{CELL_WORDS, InstrumentedModule, ROOT_OUTPUT_WORDS, ROOT_WORDS, BindingRequirement, ShaderTable};

use super::addresses::lead_to;
use super::arena::{Region, is_fine};
use super::layouts::{Layout, Way};
use super::names::Name;
use super::objects::{Combination, Shaders};
use super::pieces::Lease;
use super::pipelines::Style;
use super::recipe::{Kind, Recipe};
use super::{Gpu, TABLES, place};
use crate::application::find_in_chain;

/// A pipeline with checks.
pub(super) struct Checked {
    pub(super) handle: Pipeline,
    /// Counted from zero, in the order of creation.
    pub(super) number: u32,
    origin: Option<Origin>,
    /// The form that the application has.
    pub(super) first: Arc<Variant>,
    forms: Mutex<[Forms; 2]>,
    /// The application destroyed it. Read and written under the lock of the forms.
    is_gone: AtomicBool,
}

/// What it can be made again of.
pub(super) enum Origin {
    Pipeline(Recipe),
    Objects(Combination),
}

/// The forms of one kind of guard: loads that are selected, or branches.
#[derive(Default)]
struct Forms {
    plain: Option<Arc<Variant>>,
    /// Records what was seen where it happens.
    full: Option<Arc<Variant>>,
    /// Sites for which a full form is made or was made, by stage.
    asked: Vec<BTreeSet<u32>>,
    /// Full ones that were replaced: command buffers may have them.
    retired: Vec<Arc<Variant>>,
    /// It cannot be made.
    is_impossible: bool,
}

/// One form of a pipeline.
pub(super) struct Variant {
    /// As the driver has it.
    pub(super) handle: Pipeline,
    /// As the application has it, and its number.
    pub(super) application: (Pipeline, u32),
    pub(super) layout: Arc<Layout>,
    pub(super) way: Way,
    pub(super) stages: Vec<CheckedStage>,
    pub(super) cells: Region,
    /// None where no shader has code of ours.
    pub(super) quiet: Option<Quiet>,
    /// Tables for all draws, where shaders have their address.
    pub(super) fixed: Vec<Arc<Fixed>>,
    pub(super) requirements: Vec<BindingRequirement>,
    pub(super) reads_addresses: bool,
    pub(super) branches: bool,
    /// Whether no shader but these touches anything.
    pub(super) keeps_all: bool,
    /// Shader objects, which are bound in the place of a pipeline.
    pub(super) objects: Option<Shaders>,
    /// Its pipeline is gone, and all that it found is told. Read and written under the lock of the state.
    pub(super) is_over: AtomicBool,
    /// Of its cells, and of its tables.
    pub(super) _leases: Vec<Lease>,
}

/// A stage with checks.
#[derive(Clone)]
pub(super) struct CheckedStage {
    /// The number by which records know it.
    pub(super) shader: u32,
    pub(super) kind: ShaderStageFlags,
    /// Its number among the stages of the pipeline.
    pub(super) index: usize,
    pub(super) module: ShaderModule,
    /// What the module is called, or the shader object.
    pub(super) name: Name,
    /// The application's shader object and its number, if it is one.
    pub(super) object: Option<(ShaderEXT, u32)>,
    pub(super) made: Arc<InstrumentedModule>,
    /// The words of the application's shader.
    pub(super) original: Arc<Vec<u32>>,
    /// Where its cells begin.
    pub(super) cell_base: u32,
    /// Where its words begin in what a draw keeps of what it touches.
    pub(super) touch_base: u32,
    /// The slot by which it finds them; none where it has that as a constant.
    pub(super) touch_slot: Option<u32>,
    /// Of its cells, if they are among those of all parts.
    pub(super) _part: Option<Arc<Lease>>,
}

/// Tables by which everything is right and no record fits: for draws that get none of their own.
#[derive(Clone, Copy)]
pub(super) enum Quiet {
    Root(Region),
    Set(DescriptorSet),
}

/// Tables for all draws of a pipeline: what is bound to any of them counts.
pub(super) struct Fixed {
    pub(super) root: Region,
    pub(super) records: Region,
    /// The table of descriptors, and what it says by now.
    table: Mutex<Option<FixedTable>>,
    _lease: Lease,
}

struct FixedTable {
    region: Region,
    now: Vec<u32>,
    _lease: Lease,
}

/// Words of a root table. Behind them are records, whose first word is looked at later: both are in one line of the
/// cache.
pub(super) const ROOT_SPACE: u32 = 12;
const _: () = assert!(ROOT_WORDS <= ROOT_SPACE, "a root table has its space");

/// The words of a root table: where the four tables are, and how many words of records fit.
pub(super) fn root_words(tables: [Region; TABLES]) -> [u32; ROOT_SPACE as usize] {
    let mut words = [0; ROOT_SPACE as usize];
    for (at, table) in tables.iter().enumerate() {
        words[at * 2] = table.device_address as u32;
        words[at * 2 + 1] = (table.device_address >> 32) as u32;
    }
    words[ROOT_OUTPUT_WORDS as usize] = tables[ShaderTable::Output as usize].words - 1;
    words
}

/// Where the lower half of the address of the table of addresses is.
pub(super) const ROOT_ADDRESSES: u32 = ShaderTable::Addresses as u32 * 2;

impl Fixed {
    pub(super) fn new(gpu: &Gpu) -> Option<Fixed> {
        // Whether the shaders print is not known yet.
        let (all, lease) = gpu.lease_memory(ROOT_SPACE + gpu.config.record_words(true))?;
        Some(Fixed { root: all, records: all.from(ROOT_SPACE), table: Mutex::default(), _lease: lease })
    }

    /// The cells are there by now.
    pub(super) fn begin(&self, gpu: &Gpu, cells: Region, quiet: &[u32]) -> Option<()> {
        let (region, lease) = gpu.lease_memory(quiet.len() as u32)?;
        region.write(quiet);
        self.root.write(&root_words([self.records, region, gpu.addresses_now(), cells]));
        *lock(&self.table) = Some(FixedTable { region, now: Vec::new(), _lease: lease });
        Some(())
    }

    /// Everything is switched off: from now on all is right.
    #[cold]
    pub(super) fn permit(&self, everywhere: Region) {
        lead_to(self.root, everywhere);
        if let Some(FixedTable { region, now, .. }) = &mut *lock(&self.table) {
            region.permit();
            *now = region.read();
        }
    }

    /// A draw with such a table of descriptors: what is larger counts. It may be read meanwhile; it only grows.
    pub(super) fn add(&self, words: &[u32]) {
        let mut table = lock(&self.table);
        let Some(FixedTable { region, now, .. }) = &mut *table else { return };
        if now.len() != words.len() {
            region.write(words);
            *now = words.to_vec();
        }
        for (at, word) in words.iter().enumerate().filter(|it| *it.1 > now[it.0]).collect::<Vec<_>>() {
            region.set(at as u32, *word);
            now[at] = *word;
        }
    }
}

impl Variant {
    /// One without shaders.
    #[cfg(test)]
    pub(super) fn empty() -> Variant {
        Variant {
            handle: Pipeline::default(),
            application: (Pipeline::default(), 0),
            layout: Arc::new(Layout::empty()),
            way: Way::Push,
            stages: Vec::new(),
            cells: Region::default(),
            quiet: None,
            fixed: Vec::new(),
            requirements: Vec::new(),
            reads_addresses: false,
            branches: false,
            keeps_all: true,
            objects: None,
            is_over: AtomicBool::new(false),
            _leases: Vec::new(),
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Whether enough is bound, by the table of descriptors. What may be written later cannot be relied on.
    pub(super) fn is_fit_for(&self, table: &[u32]) -> bool {
        let is_enough = |it: &BindingRequirement| bound_to(table, it).is_some_and(|bound| bound >= it.min_size);
        self.requirements.iter().all(|it| is_enough(it) && !self.layout.is_late(it.set, it.binding))
    }

    pub(super) fn prints(&self) -> bool {
        self.stages.iter().any(|it| it.made.prints)
    }

    /// The sites that were seen, by the number of the stage.
    pub(super) fn seen(&self) -> Vec<(usize, u32)> {
        let mut all = Vec::new();
        for (at, stage) in self.stages.iter().enumerate() {
            let first = stage.cell_base + stage.made.numbered_sites * CELL_WORDS;
            for word in 0..stage.made.numbered_sites.div_ceil(32) {
                let mut bits = self.cells.word(first + word);
                while bits != 0 {
                    all.push((at, word * 32 + bits.trailing_zeros()));
                    bits &= bits - 1;
                }
            }
        }
        all
    }
}

/// What is bound to the element that a requirement is about.
fn bound_to(table: &[u32], it: &BindingRequirement) -> Option<u32> {
    let word = |at: u32| table.get(at as usize).copied();
    // What lies behind the sets is not where one of them begins.
    word(0).filter(|sets| it.set < *sets)?;
    let binding = word(1 + it.set)? + it.binding * lavascope_instrument::tables::BINDING_WORDS;
    let element = it.element.or_else(|| word(binding + 2))?;
    if element >= word(binding)? {
        return Some(0);
    }
    word(word(binding + 1)? + element)
}

impl Checked {
    pub(super) fn new(handle: Pipeline, number: u32, origin: Option<Origin>, first: Arc<Variant>) -> Checked {
        let mut forms = [Forms::default(), Forms::default()];
        let branches = usize::from(first.branches);
        forms[branches].plain = Some(Arc::clone(&first));
        Checked { handle, number, origin, first, forms: Mutex::new(forms), is_gone: AtomicBool::new(false) }
    }

    fn forms(&self) -> MutexGuard<'_, [Forms; 2]> {
        lock(&self.forms)
    }

    /// The best form that there is, whatever is bound.
    pub(super) fn selected(&self) -> Option<Arc<Variant>> {
        let forms = self.forms();
        forms.iter().find_map(|it| it.full.as_ref().or(it.plain.as_ref())).cloned()
    }

    fn branching(&self) -> Option<Arc<Variant>> {
        let forms = self.forms();
        forms[1].full.as_ref().or(forms[1].plain.as_ref()).cloned()
    }

    /// It is destroyed: all forms but the application's own, whose handles are ours.
    pub(super) fn take_own(&self) -> Vec<Arc<Variant>> {
        let mut forms = self.forms();
        self.is_gone.store(true, Ordering::Relaxed);
        let forms = std::mem::take(&mut *forms);
        let all = forms.into_iter().flat_map(|it| it.retired.into_iter().chain(it.plain).chain(it.full));
        all.filter(|it| it.handle != self.handle || it.objects.is_some()).collect()
    }

    /// Whether there is, or may be, a form with the details of what was seen.
    pub(super) fn can_be_made_again(&self) -> bool {
        self.origin.is_some() && !self.forms().iter().any(|it| it.is_impossible)
    }

    /// Sites were seen whose details a form does not give. Gives how the pipeline is to be made again; none where
    /// that was asked for already, or cannot be.
    pub(super) fn ask(&self, variant: &Variant, sites: &[(usize, u32)]) -> Option<Style> {
        self.origin.as_ref()?;
        let mut all = self.forms();
        let forms = &mut all[usize::from(variant.branches)];
        let mut wanted = forms.asked.clone();
        for (stage, number) in sites {
            let index = variant.stages[*stage].index;
            if wanted.len() <= index {
                wanted.resize_with(index + 1, BTreeSet::new);
            }
            wanted[index].insert(*number);
        }
        if wanted == forms.asked || forms.is_impossible {
            return None;
        }
        forms.asked.clone_from(&wanted);
        Some(Style { branches: variant.branches, immediate: Some(wanted) })
    }
}

impl Gpu {
    /// The form for a draw to which so much is bound: the one that was selected, or one that expects nothing. None
    /// where that would have to be made, and cannot be.
    pub(super) fn form_for(&self, checked: &Checked, selected: &Arc<Variant>, table: &[u32]) -> Option<Arc<Variant>> {
        if selected.is_fit_for(table) {
            return Some(Arc::clone(selected));
        }
        if let Some(branching) = checked.branching() {
            return Some(branching);
        }
        if checked.forms()[1].is_impossible {
            return None;
        }
        let style = Style { branches: true, immediate: None };
        let made = self.make_again(checked, &style);
        let mut forms = checked.forms();
        forms[1].is_impossible = made.is_none();
        forms[1].plain = made;
        forms[1].plain.clone()
    }

    /// Makes the form with details that was asked for.
    pub(super) fn make_full(&self, checked: &Checked, style: &Style) {
        let made = self.make_again(checked, style);
        let mut forms = checked.forms();
        if checked.is_gone.load(Ordering::Relaxed) {
            // Whoever has the state may wait for the forms.
            drop(forms);
            let Some(made) = made else { return };
            self.state().variants.retain(|it| !Arc::ptr_eq(it, &made));
            return self.destroy_form(&made);
        }
        let forms = &mut forms[usize::from(style.branches)];
        forms.is_impossible |= made.is_none();
        if made.is_some() {
            let before = std::mem::replace(&mut forms.full, made);
            forms.retired.extend(before);
            self.sets_changed();
        }
    }

    fn make_again(&self, checked: &Checked, style: &Style) -> Option<Arc<Variant>> {
        let recipe = match checked.origin.as_ref().filter(|_| !self.has_failed())? {
            Origin::Pipeline(recipe) => recipe,
            Origin::Objects(combination) => return self.make_objects(combination, checked.number, style),
        };
        let mut arena = lavascope_marshal::Arena::default();
        let image = recipe.unpack(&mut arena)?;
        match recipe.kind {
            Kind::Graphics => {
                // SAFETY: `Recipe::graphics` packed the parameters of this command, which are laid out again in the
                // arena.
                let infos = unsafe { (*image.cast::<CreateGraphicsPipelinesParams>()).p_create_infos };
                // SAFETY: it packed one info, which is in the arena: that is ours alone, and outlives this.
                let info = unsafe { &mut *infos.as_mut_ptr() };
                // SAFETY: the info of a valid call, but for objects that may be gone by now.
                unsafe { self.make_graphics(checked, recipe, info, style) }
            }
            Kind::Compute => {
                // SAFETY: `Recipe::compute` packed the parameters of this command, which are laid out again in the
                // arena.
                let infos = unsafe { (*image.cast::<CreateComputePipelinesParams>()).p_create_infos };
                // SAFETY: it packed one info, which is in the arena: that is ours alone, and outlives this.
                let info = unsafe { &mut *infos.as_mut_ptr() };
                // SAFETY: the info of a valid call, but for objects that may be gone by now.
                unsafe { self.make_compute(checked, recipe, info, style) }
            }
        }
    }

    /// # Safety
    ///
    /// The info must be that of the recipe, laid out in memory of ours with all that it leads to: valid but for
    /// modules, the layout and the base pipeline, which may be gone.
    unsafe fn make_graphics(
        &self,
        checked: &Checked,
        recipe: &Recipe,
        info: &mut GraphicsPipelineCreateInfo,
        style: &Style,
    ) -> Option<Arc<Variant>> {
        // SAFETY: VUID-VkGraphicsPipelineCreateInfo-pStages-06600, by the contract of this function: as many as it
        // says.
        let stages = unsafe { super::slice(info.p_stages, info.stage_count) };
        // SAFETY: the stages of a call that was valid, in memory that outlives the plan; modules may be gone.
        let plan = unsafe { self.plan_with(&recipe.layout, recipe.sources.clone(), stages, style) }?;
        info.p_stages = Ptr::to_slice(&plan.infos);
        info.layout = recipe.layout.own?;
        info.base_pipeline_handle = Pipeline::default();
        info.base_pipeline_index = -1;
        // SAFETY: the contract of this function: a chain that was valid, in memory of ours, which nobody else uses.
        unsafe { make_independent(&mut info.flags, info.p_next) };
        let (create, mut made) = (self.next.create_graphics_pipelines?, Pipeline::default());
        // SAFETY: a device that is alive by the contract of `Gpu::begin`, and a cache of ours. The contract of this
        // function for the info, in which stages, layout and base are ours by now, and its render pass is kept by the
        // recipe.
        let result = unsafe { create(self.device, self.cache, 1, Ptr::to(info), Ptr::NULL, place(&mut made)) };
        if result != Result::SUCCESS {
            self.drop_plan(&plan);
            return None;
        }
        self.finish_again(plan, made, (checked.handle, checked.number))
    }

    /// # Safety
    ///
    /// As for [`Gpu::make_graphics`].
    unsafe fn make_compute(
        &self,
        checked: &Checked,
        recipe: &Recipe,
        info: &mut ComputePipelineCreateInfo,
        style: &Style,
    ) -> Option<Arc<Variant>> {
        let stages = std::slice::from_ref(&info.stage);
        // SAFETY: the stage of a call that was valid, in memory that outlives the plan; its module may be gone.
        let plan = unsafe { self.plan_with(&recipe.layout, recipe.sources.clone(), stages, style) }?;
        info.stage = *plan.infos.first()?;
        info.layout = recipe.layout.own?;
        info.base_pipeline_handle = Pipeline::default();
        info.base_pipeline_index = -1;
        // SAFETY: the contract of this function: a chain that was valid, in memory of ours, which nobody else uses.
        unsafe { make_independent(&mut info.flags, info.p_next) };
        let (create, mut made) = (self.next.create_compute_pipelines?, Pipeline::default());
        // SAFETY: a device that is alive by the contract of `Gpu::begin`, and a cache of ours. The contract of this
        // function for the info, in which stage, layout and base are ours by now.
        let result = unsafe { create(self.device, self.cache, 1, Ptr::to(info), Ptr::NULL, place(&mut made)) };
        if result != Result::SUCCESS {
            self.drop_plan(&plan);
            return None;
        }
        self.finish_again(plan, made, (checked.handle, checked.number))
    }

    /// Destroys a form that the application does not know.
    pub(super) fn destroy_form(&self, form: &Variant) {
        if let Some(objects) = &form.objects {
            return self.destroy_objects(objects.own());
        }
        if let Some(destroy) = self.next.destroy_pipeline {
            // SAFETY: a pipeline of ours, which `take_own` gave out once, or that nobody was given. The application
            // destroys its own pipeline, so that by VUID-vkDestroyPipeline-pipeline-00765 all work that has either is
            // over.
            unsafe { destroy(self.device, form.handle, Ptr::NULL) };
        }
    }

    /// Words for the records of one draw.
    pub(super) fn record_words(&self, variant: &Variant) -> u32 {
        self.config.record_words(variant.prints())
    }

    /// Tables for draws that get none of their own; for as long as the leases are there.
    pub(super) fn quiet(&self, way: Way, cells: Region, table: &[u32], leases: &mut Vec<Lease>) -> Option<Quiet> {
        let (all, first) = self.lease_memory(ROOT_SPACE + 1)?;
        let (words, second) = self.lease_memory(table.len() as u32)?;
        words.write(table);
        leases.extend([first, second]);
        if way == Way::Set {
            // From the beginning: what is bound is aligned.
            let (set, lease) = self.lease_set([all.first(1), words, self.everywhere, cells])?;
            leases.push(lease);
            return Some(Quiet::Set(set));
        }
        all.write(&root_words([all.from(ROOT_SPACE), words, self.everywhere, cells]));
        Some(Quiet::Root(all))
    }

    /// A set of ours with the tables in it.
    pub(super) fn write_set(&self, pool: DescriptorPool, regions: [Region; TABLES]) -> Option<DescriptorSet> {
        let mut info = DescriptorSetAllocateInfo::zeroed();
        info.s_type = StructureType::DESCRIPTOR_SET_ALLOCATE_INFO;
        info.descriptor_pool = pool;
        info.descriptor_set_count = 1;
        info.p_set_layouts = Ptr::to(&self.set_layout);
        let mut set = DescriptorSet::default();
        let allocate = self.next.allocate_descriptor_sets?;
        // SAFETY: a device that is alive by the contract of `Gpu::begin`; a layout of ours, and a pool of ours, which
        // the caller alone has (it was taken out of the state, or belongs to a command buffer that is held). The place
        // is for one set.
        is_fine(unsafe { allocate(self.device, Ptr::to(&info), place(&mut set)) })?;
        self.rewrite_set(set, regions)?;
        Some(set)
    }

    /// Puts other tables into a set of ours that no work uses.
    pub(super) fn rewrite_set(&self, set: DescriptorSet, regions: [Region; TABLES]) -> Option<()> {
        let buffers = regions.map(Region::info);
        let mut write = WriteDescriptorSet::zeroed();
        write.s_type = StructureType::WRITE_DESCRIPTOR_SET;
        write.descriptor_type = DescriptorType::STORAGE_BUFFER;
        write.descriptor_count = 1;
        let writes: [WriteDescriptorSet; TABLES] = std::array::from_fn(|at| WriteDescriptorSet {
            dst_set: set,
            dst_binding: at as u32,
            p_buffer_info: Ptr::to(&buffers[at]),
            ..write
        });
        let update = self.next.update_descriptor_sets?;
        // SAFETY: a set of ours that no work uses, and regions of buffers of ours, which live as long as the device;
        // the writes and what they lead to outlive the call.
        unsafe { update(self.device, TABLES as u32, Ptr::to_slice(&writes), 0, Ptr::NULL) };
        Some(())
    }
}

/// A pipeline of ours has no base, and is made whatever that costs.
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
    if let Some(it) = unsafe { find_in_chain::<PipelineCreateFlags2CreateInfo>(chain, ty) } {
        // SAFETY: a structure of the chain, which by the contract of this function is ours to change.
        unsafe { (*it.as_mut_ptr()).flags.0 &= !u64::from(unwanted) };
    }
}

pub(super) fn lock<T>(it: &Mutex<T>) -> MutexGuard<'_, T> {
    it.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use lavascope_instrument::tables::{BindingState, SetState, build_descriptor_table};

    use super::*;

    #[test]
    fn what_is_required_is_looked_up_in_the_table() {
        let binding = |elements: &[u32]| BindingState { elements: elements.to_vec() };
        let table = build_descriptor_table(&[
            SetState { bindings: vec![binding(&[64])] },
            SetState { bindings: vec![binding(&[]), binding(&[0, 256, 16])] },
        ]);
        let bound = |set, binding, element| bound_to(&table, &BindingRequirement { set, binding, element, min_size: 1 });
        assert_eq!(bound(0, 0, Some(0)), Some(64));
        assert_eq!(bound(1, 1, Some(2)), Some(16));
        assert_eq!(bound(1, 1, None), Some(256), "the safe element has the most");
        assert_eq!(bound(1, 1, Some(3)), Some(0), "behind the end");
        assert_eq!(bound(7, 0, Some(0)), None);
    }
}
