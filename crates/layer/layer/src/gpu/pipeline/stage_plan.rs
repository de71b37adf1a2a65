//! Plans one shader stage of a pipeline: its instrumented words and its specialization constants.

use std::collections::BTreeSet;
use std::sync::Arc;

use lavascope_abi::*;
use lavascope_instrument::{Guard, InstrumentOptions, InstrumentedModule, ModuleTouches, RootLocation, instrument};
use lavascope_spirv::Module;

use super::crash_guard::{DRIVER_CRASHED, hash_of};
use super::layouts::{PipelineLayoutState, RootBinding};
use super::plan::{CheckStyle, PipelineLinkage, PipelinePlan};
use super::recipe::ShaderSource;
use super::variants::{FixedTables, InstrumentedStage};
use crate::gpu::hook::RAY_TRACING_STAGES;
use crate::gpu::hook::device_request::ChainCopy;
use crate::gpu::readback::touches;
use crate::gpu::resource::arena::check_success;
use crate::gpu::resource::leases::Lease;
use crate::gpu::{DeviceChecks, out_ptr, slice};
use crate::loader::pnext_chain::find_in_chain;

/// Shaders with at most this many sites record faults immediately. Others record the first fault of an invocation, and
/// are instrumented again for the sites where faults were seen.
const FEW_SITES: u32 = 4;
/// Largest number of instrumented shaders that are cached.
const KNOWN_MAX: usize = 4096;
/// Size of the scratch memory for accesses with a wrong address.
pub(crate) const SCRATCH_BYTES: u64 = 64 << 10;

/// The key of instrumented words: a shader, where it finds its tables, and how it is checked.
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
    /// A single one. It is in a vector, because the address of its contents stays valid when this value moves.
    info: Vec<SpecializationInfo>,
    /// The structures and arrays that the info refers to.
    _behind: (Vec<SpecializationMapEntry>, Vec<u8>),
}

impl DeviceChecks {
    /// Instruments a stage, and puts it into the plan. If the stage has nothing to check, the plan keeps it as it is.
    ///
    /// # Safety
    ///
    /// The info must be that of a stage of a valid call, and what it leads to must stay for as long as the plan; its
    /// module need not be there any more.
    pub(super) unsafe fn plan_stage(
        &self,
        plan: &mut PipelinePlan,
        at: usize,
        info: &PipelineShaderStageCreateInfo,
        style: &CheckStyle,
    ) -> std::result::Result<(), String> {
        let found = match plan.sources[at].is_selected {
            true => self.instrument_stage(plan, at, info, style).map(Some),
            false => Ok(None),
        };
        if let Ok(Some(made)) = &found {
            plan.requirements.extend(&made.requirements);
        }
        plan.records_all_touches &=
            matches!(&found, Ok(Some(made)) if !made.is_unchanged() || made.touches == ModuleTouches::default());
        // SAFETY: the contract of this function: a stage with a valid chain.
        let (p_next, chain) =
            unsafe { chain_without_module(info) }.ok_or("a shader module in a pNext chain cannot be replaced")?;
        match found.map(|it| it.filter(|it| !it.is_unchanged())) {
            Ok(Some(made)) => {
                // SAFETY: the contract of this function, which is that of `add_instrumented_stage`.
                unsafe {
                    self.add_instrumented_stage(plan, at, PipelineShaderStageCreateInfo { p_next, ..*info }, made)?
                };
                plan.chains.push(chain);
                Ok(())
            }
            unchanged => {
                self.keep_stage(plan, at, info, style)?;
                unchanged.map(|_| ())
            }
        }
    }

    /// Plans a stage without our code. If the pipeline is created again, the application may have destroyed the module.
    fn keep_stage(
        &self,
        plan: &mut PipelinePlan,
        at: usize,
        info: &PipelineShaderStageCreateInfo,
        style: &CheckStyle,
    ) -> std::result::Result<(), String> {
        if plan.linkage == PipelineLinkage::Whole && style != &CheckStyle::FIRST && info.module.0 != 0 {
            let words = Arc::clone(&plan.sources[at].words);
            let module = self.create_module(&words).ok_or("the driver rejects a second copy of a shader")?;
            plan.infos[at].module = module;
            plan.modules.push(module);
        }
        Ok(())
    }

    /// Gives the driver the instrumented words of a stage, with our specialization constants behind the application's.
    ///
    /// # Safety
    ///
    /// As for [`DeviceChecks::plan_stage`]; the chain of the info has no words for a module.
    unsafe fn add_instrumented_stage(
        &self,
        plan: &mut PipelinePlan,
        at: usize,
        info: PipelineShaderStageCreateInfo,
        made: Arc<InstrumentedModule>,
    ) -> std::result::Result<(), String> {
        let (cell_base, cells_lease) =
            self.allocate_stage_cells(plan, &made).ok_or("there are too many checks in pipeline libraries")?;
        let driver_module = self.create_module(&made.words).ok_or("the driver rejects a shader with checks")?;
        // SAFETY: VUID-VkPipelineShaderStageCreateInfo-pSpecializationInfo-parameter, by the contract of this function:
        // null or one that is valid.
        let own = unsafe { slice(info.p_specialization_info, 1) }.first();
        let (shader, touch_base) = (self.next_shader(), touches::touch_base(&plan.stages));
        let record_number = match plan.linkage {
            PipelineLinkage::Whole => plan.stages.len() as u32,
            PipelineLinkage::Linked | PipelineLinkage::Library => linked_record_number(info.stage, shader),
        };
        let mut constants = constants_of(&made, (record_number, cell_base), plan.fixed.as_ref());
        let touch_slot =
            if plan.linkage == PipelineLinkage::Whole { None } else { DeviceChecks::touch_slot(info.stage) };
        constants.extend(touches::touch_constant(&made, touch_slot, touch_base));
        // SAFETY: the specialization of a stage of a valid call, by the same VUID.
        let specialization = unsafe { SpecializationData::new(own, &constants) };
        let p_specialization_info = specialization.address();
        plan.infos[at] = PipelineShaderStageCreateInfo { module: driver_module, p_specialization_info, ..info };
        plan.modules.push(driver_module);
        plan.specializations.push(specialization);
        let ShaderSource { words: original, module, name, .. } = plan.sources[at].clone();
        plan.stages.push(InstrumentedStage {
            shader,
            record_number,
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
            _cells_lease: cells_lease,
        });
        Ok(())
    }

    /// Where the cells of a stage begin. For a library they are in the shared memory, as long as the lease exists.
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

    /// The instrumented words of a stage.
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

    /// Instruments any shader: with or without branches, and with or without touches.
    pub(crate) fn instrument_words(
        &self,
        layout: &PipelineLayoutState,
        stage: ShaderStageFlags,
        words: &[u32],
        (how, immediate): ((bool, bool), Option<BTreeSet<u32>>),
    ) -> std::result::Result<Arc<InstrumentedModule>, String> {
        if stage.0 & self.storing_stages == 0 {
            return Err(
                "the device has shader stages that cannot write to buffers: their shaders are not checked".into()
            );
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
            return Err(
                "a shader accesses more than 64 KiB at a device address in one instruction: it is not checked".into()
            );
        }
        let is_known = |it: &(u32, u32)| layout.binding(it.0, it.1).is_some();
        if !made.sites.iter().filter_map(|it| it.binding).all(|it| is_known(&it)) {
            return Err("a shader uses a binding that is not in its pipeline layout: it is not checked".into());
        }
        Ok(made)
    }

    /// The instrumented words of a shader. Equal shaders are instrumented once.
    fn instrument_cached(
        &self,
        words: &[u32],
        root: RootLocation,
        (branches, touches): (bool, bool),
        immediate: Option<BTreeSet<u32>>,
    ) -> std::result::Result<Arc<InstrumentedModule>, String> {
        let root_key = match root {
            RootLocation::PushConstant { offset } => (0, offset),
            RootLocation::Descriptor { set } => (1, set),
            RootLocation::Specialization => (2, 0),
        };
        let hash = hash_of(words);
        if self.crash_guard.has_crashed(hash) {
            return Err(DRIVER_CRASHED.to_owned());
        }
        let key = InstrumentedShaderKey { words: hash, root: root_key, branches, immediate, touches };
        if let Some(known) = self.state().instrumented_shaders.get(&key) {
            return Ok(Arc::clone(known));
        }
        let module = Module::parse(words).map_err(|it| format!("a shader is not checked: {it}"))?;
        self.report_print_problems(&module, key.words);
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
        let cache_key = cache.map(|it| it.key(words, &options, key.immediate.is_none()));
        let made = match cache.zip(cache_key).and_then(|(cache, cache_key)| cache.load(cache_key)) {
            Some(made) => made,
            None => {
                let mut made = instrument(&module, &options).map_err(complain)?;
                if key.immediate.is_none() && (1..=FEW_SITES).contains(&made.numbered_sites) {
                    options.immediate = (0..made.numbered_sites).collect();
                    made = instrument(&module, &options).map_err(complain)?;
                }
                if let Some((cache, cache_key)) = cache.zip(cache_key) {
                    cache.store(cache_key, &made);
                }
                made
            }
        };
        let (made, mut state) = (Arc::new(made), self.state());
        if state.instrumented_shaders.len() >= KNOWN_MAX {
            state.instrumented_shaders.clear();
            state.source_names.clear();
        }
        if let Some(name) = module.sources().into_iter().map(|it| it.0).find(|it| !it.is_empty()) {
            state.source_names.insert(hash, name);
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
        // SAFETY: a device that is alive by the contract of `DeviceChecks::begin`; the info, its words and the place are
        // ours.
        check_success(unsafe { create(self.device, Ptr::to(&info), Ptr::NULL, out_ptr(&mut made)) })?;
        Some(made)
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

    /// The address of the info, which is valid as long as this value.
    pub(crate) fn address(&self) -> Ptr<SpecializationInfo> {
        Ptr::to_slice(&self.info)
    }
}

/// The record number of a shader of a library, or of a shader object: what it is drawn with is not known yet. Only in ray
/// tracing, a stage has several shaders. Other numbers do not depend on what was created before, so that the driver finds
/// the shader in its cache.
pub(crate) fn linked_record_number(stage: ShaderStageFlags, shader: u32) -> u32 {
    const LINKED: u32 = 1 << 16;
    match stage.0 & RAY_TRACING_STAGES != 0 {
        true => (LINKED << 1) + shader,
        false => LINKED + stage.0.trailing_zeros(),
    }
}

/// Our specialization constants: the record number of the shader, the offset of its cells, and the address of its tables.
pub(crate) fn constants_of(
    made: &InstrumentedModule,
    (record_number, cell_base): (u32, u32),
    fixed: Option<&FixedTables>,
) -> Vec<(u32, u32)> {
    let mut constants = vec![(made.spec_ids[0], record_number), (made.spec_ids[1], cell_base)];
    if let Some(fixed) = fixed {
        let address = fixed.root.device_address;
        constants.extend(made.root_spec_ids.into_iter().zip([address as u32, (address >> 32) as u32]));
    }
    constants
}

/// The `pNext` chain of a stage without its `VkShaderModuleCreateInfo`, and copies of the structures before that. None
/// if the structure cannot be removed.
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
