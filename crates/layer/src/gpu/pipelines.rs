//! Pipelines whose shaders check themselves.

use std::sync::Arc;

use lavascope_abi::*;
use lavascope_instrument::{Guard, Instrumented, Options, Root, instrument};
use lavascope_spirv::Module;

use super::arena::{Region, is_fine};
use super::layouts::Layout;
use super::{Gpu, State, place, slice};
use crate::application::find_in_chain;

/// A pipeline with checks.
pub(super) struct Checked {
    pub(super) handle: Pipeline,
    /// Counted from zero, in the order of creation.
    pub(super) number: u32,
    pub(super) layout: Arc<Layout>,
    pub(super) stages: Vec<CheckedStage>,
    pub(super) cells: Region,
}

/// A stage with checks.
pub(super) struct CheckedStage {
    /// The number by which records know it.
    pub(super) shader: u32,
    pub(super) kind: ShaderStageFlags,
    pub(super) module: ShaderModule,
    pub(super) made: Instrumented,
    /// The words of the application's shader.
    pub(super) original: Arc<Vec<u32>>,
    /// Where its cells begin.
    pub(super) cell_base: u32,
}

/// A pipeline that is about to be made.
pub(super) struct Plan {
    layout: Arc<Layout>,
    /// As the driver gets them.
    pub(super) infos: Vec<PipelineShaderStageCreateInfo>,
    stages: Vec<CheckedStage>,
    modules: Vec<ShaderModule>,
    specializations: Vec<Special>,
    cells: Option<Region>,
}

/// The application's specialization constants, and two of ours.
struct Special {
    /// It stays where it is.
    info: Box<SpecializationInfo>,
    /// What the info leads to.
    _behind: (Vec<SpecializationMapEntry>, Vec<u8>),
}

/// Flags of pipelines that are left as they are: parts of others, and those whose sets are bound in other ways.
const LEFT: u64 = PipelineCreateFlags::LIBRARY_KHR.0 as u64
    | PipelineCreateFlags::DESCRIPTOR_BUFFER_EXT.0 as u64
    | PipelineCreateFlags::INDIRECT_BINDABLE_NV.0 as u64
    | PipelineCreateFlags2::INDIRECT_BINDABLE_EXT.0
    | PipelineCreateFlags2::DESCRIPTOR_HEAP_EXT.0;

impl Gpu {
    /// What becomes of a pipeline; none where it is left as it is.
    ///
    /// # Safety
    ///
    /// The infos must be those of a valid call.
    pub(super) unsafe fn plan(
        &self,
        layout: PipelineLayout,
        (flags, chain): (PipelineCreateFlags, Ptr<Opaque>),
        stages: &[PipelineShaderStageCreateInfo],
    ) -> Option<Plan> {
        let mut state = self.state();
        // SAFETY: the caller's word.
        if let Some(why) = unsafe { left_alone(flags, chain) } {
            self.say(&mut state, why);
            return None;
        }
        if !self.config.scope.takes_next() {
            return None;
        }
        let layout = state.layouts.get(&layout.0).cloned()?;
        if let Some(why) = layout.obstacle() {
            self.say(&mut state, why);
            return None;
        }
        let mut plan = Plan {
            layout,
            infos: stages.to_vec(),
            stages: Vec::new(),
            modules: Vec::new(),
            specializations: Vec::new(),
            cells: None,
        };
        for (at, info) in stages.iter().enumerate() {
            // SAFETY: the caller's word.
            if let Err(why) = unsafe { self.plan_stage(&mut state, &mut plan, at, info) } {
                self.say(&mut state, &why);
            }
        }
        if plan.stages.is_empty() {
            return None;
        }
        let words: Vec<u32> = plan.stages.iter().flat_map(|it| it.made.cells()).collect();
        let state = &mut *state;
        plan.cells = state.cells.allocate(self, &mut state.free_blocks, words.len() as u32);
        let Some(cells) = plan.cells else {
            self.destroy_modules(&plan);
            self.say(state, "there is no memory for checks: some shaders are not checked");
            return None;
        };
        cells.write(&words);
        Some(plan)
    }

    fn destroy_modules(&self, plan: &Plan) {
        if let Some(destroy) = self.next.destroy_shader_module {
            // SAFETY: modules of ours, which a pipeline does not need any more.
            plan.modules.iter().for_each(|it| unsafe { destroy(self.device, *it, Ptr::NULL) });
        }
    }

    /// # Safety
    ///
    /// The info must be valid, with its chain.
    unsafe fn plan_stage(
        &self,
        state: &mut State,
        plan: &mut Plan,
        at: usize,
        info: &PipelineShaderStageCreateInfo,
    ) -> std::result::Result<(), String> {
        if info.stage.0 & self.stages == 0 {
            return Err("the device has stages that cannot write into buffers: their shaders are not checked".into());
        }
        // SAFETY: the caller's word.
        let (words, p_next) =
            unsafe { words_of(state, info) }.ok_or("the words of a shader are not known: it is not checked")?;
        let module = Module::parse(&words).map_err(|it| format!("a shader is not checked: {it}"))?;
        // SAFETY: the caller's word.
        if !unsafe { self.config.scope.takes_stage(state, info, &module) } {
            return Ok(());
        }
        let made = self.instrument(&module)?;
        if made.is_unchanged() {
            return Ok(());
        }
        if made.reads_addresses {
            return Err("shaders that use device addresses are not checked yet".into());
        }
        let is_known = |it: &(u32, u32)| plan.layout.slot(it.0, it.1).is_some();
        if !made.sites.iter().filter_map(|it| it.binding).all(|it| is_known(&it)) {
            return Err("a shader uses a binding that is not in its pipeline layout: it is not checked".into());
        }
        let (shader, cell_base) = (state.next_shader, plan.cell_words());
        state.next_shader += 1;
        let driver_module = self.create_module(&made.words).ok_or("the driver does not take a shader with checks")?;
        // SAFETY: the caller's word.
        let own = unsafe { slice(info.p_specialization_info, 1) }.first();
        // SAFETY: as above.
        let special = unsafe { Special::new(own, made.constants, [shader, cell_base]) };
        plan.infos[at] = PipelineShaderStageCreateInfo {
            module: driver_module,
            p_next,
            p_specialization_info: Ptr::to(&special.info),
            ..*info
        };
        plan.modules.push(driver_module);
        plan.specializations.push(special);
        plan.stages.push(CheckedStage {
            shader,
            kind: info.stage,
            module: info.module,
            made,
            original: words,
            cell_base,
        });
        Ok(())
    }

    /// Every fault is recorded where it happens, and nothing is expected of what is bound.
    fn instrument(&self, module: &Module) -> std::result::Result<Instrumented, String> {
        let (checks, prints) = (self.config.checks, self.config.prints.is_some());
        let root = Root::Descriptor { set: self.set };
        let options = Options { guard: Guard::Branch, checks, prints, ..Options::new(root) };
        let cache = self.config.cache.as_ref().map(|it| (it, it.key(module.words(), &options)));
        if let Some(kept) = cache.as_ref().and_then(|(it, key)| it.load(*key)) {
            return Ok(kept);
        }
        let complain = |it| format!("a shader is not checked: {it}");
        let first = instrument(module, &options).map_err(complain)?;
        if first.is_unchanged() || first.reads_addresses {
            return Ok(first);
        }
        let options = Options { immediate: (0..first.numbers).collect(), ..options };
        let made = instrument(module, &options).map_err(complain)?;
        if let Some((cache, key)) = cache {
            cache.store(key, &made);
        }
        Ok(made)
    }

    fn create_module(&self, words: &[u32]) -> Option<ShaderModule> {
        let mut info = ShaderModuleCreateInfo::zeroed();
        info.s_type = StructureType::SHADER_MODULE_CREATE_INFO;
        info.code_size = words.len() as u64 * 4;
        info.p_code = Ptr::to_slice(words);
        let mut made = ShaderModule::default();
        let create = self.next.create_shader_module?;
        // SAFETY: a device that is alive, an info and a place of ours.
        is_fine(unsafe { create(self.device, Ptr::to(&info), Ptr::NULL, place(&mut made)) })?;
        Some(made)
    }

    /// The pipelines were made, as planned if `is_planned`.
    pub(super) fn finish(&self, plans: Vec<Option<Plan>>, made: &[Pipeline], is_planned: bool) {
        for (plan, handle) in plans.into_iter().zip(made) {
            let Some(plan) = plan else { continue };
            self.destroy_modules(&plan);
            if is_planned && handle.0 != 0 {
                self.keep(plan, *handle);
            }
        }
    }

    fn keep(&self, plan: Plan, handle: Pipeline) {
        let mut state = self.state();
        let Plan { layout, stages, cells: Some(cells), .. } = plan else { return };
        let number = state.next_pipeline;
        state.next_pipeline += 1;
        let checked = Arc::new(Checked { handle, number, layout, stages, cells });
        state.checked.push(Arc::clone(&checked));
        state.pipelines.insert(handle.0, checked);
    }
}

impl Plan {
    fn cell_words(&self) -> u32 {
        self.stages.iter().map(|it| it.made.cell_words()).sum()
    }
}

impl Special {
    /// # Safety
    ///
    /// The application's own must be valid.
    unsafe fn new(own: Option<&SpecializationInfo>, constants: [u32; 2], values: [u32; 2]) -> Special {
        // SAFETY: the caller's word.
        let (mut entries, mut data) = unsafe {
            let entries = own.map_or(&[][..], |it| slice(it.p_map_entries, it.map_entry_count));
            let data = own.map_or(&[][..], |it| slice(it.p_data, it.data_size as u32));
            (entries.to_vec(), data.to_vec())
        };
        for (constant_id, value) in constants.into_iter().zip(values) {
            entries.push(SpecializationMapEntry { constant_id, offset: data.len() as u32, size: 4 });
            data.extend(value.to_ne_bytes());
        }
        let info = Box::new(SpecializationInfo {
            map_entry_count: entries.len() as u32,
            p_map_entries: Ptr::to_slice(&entries),
            data_size: data.len() as u64,
            p_data: Ptr::to_slice(&data),
        });
        Special { info, _behind: (entries, data) }
    }
}

/// Why a pipeline is left as it is.
///
/// # Safety
///
/// The chain must be that of a valid info.
unsafe fn left_alone(flags: PipelineCreateFlags, chain: Ptr<Opaque>) -> Option<&'static str> {
    // SAFETY: the caller's word, and the structures of these types.
    let (flags, has_libraries) = unsafe {
        let ty = StructureType::PIPELINE_CREATE_FLAGS_2_CREATE_INFO;
        let more = find_in_chain::<PipelineCreateFlags2CreateInfo>(chain, ty);
        let flags = more.map_or(u64::from(flags.0), |it| (*it.as_ptr()).flags.0);
        let libraries =
            find_in_chain::<PipelineLibraryCreateInfoKHR>(chain, StructureType::PIPELINE_LIBRARY_CREATE_INFO_KHR);
        (flags, libraries.is_some_and(|it| (*it.as_ptr()).library_count > 0))
    };
    (flags & LEFT != 0 || has_libraries)
        .then_some("pipelines out of libraries, with descriptor buffers, or bound by the device are not checked yet")
}

/// The words of a stage, and its chain without them.
///
/// # Safety
///
/// The info must be valid, with its chain.
unsafe fn words_of(state: &State, info: &PipelineShaderStageCreateInfo) -> Option<(Arc<Vec<u32>>, Ptr<Opaque>)> {
    if info.module.0 != 0 {
        return state.modules.get(&info.module.0).map(|it| (Arc::clone(it), info.p_next));
    }
    let ty = StructureType::SHADER_MODULE_CREATE_INFO;
    // SAFETY: the caller's word, and the structure of this type.
    unsafe {
        let first = find_in_chain::<ShaderModuleCreateInfo>(info.p_next, ty)?;
        // Further down it cannot be taken out without a copy of what is before it.
        let module = (first.0 == info.p_next.0).then(|| &*first.as_ptr())?;
        Some((read_words(module), module.p_next))
    }
}

/// # Safety
///
/// The info must be valid.
pub(super) unsafe fn read_words(info: &ShaderModuleCreateInfo) -> Arc<Vec<u32>> {
    // SAFETY: the caller's word.
    Arc::new(unsafe { slice(info.p_code, (info.code_size / 4) as u32) }.to_vec())
}
