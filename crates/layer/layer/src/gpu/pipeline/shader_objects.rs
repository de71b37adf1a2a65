//! Hooks for shader objects, whose code is instrumented like that of pipelines.
//!
//! An object gets its checks when it is created, and its bindings are unknown then. The objects that are bound together
//! at a draw have variants as a pipeline has (`bound_shader_objects`). Their sets and push constants are changed by the
//! rule for pipeline layouts. The layouts of their sets are kept until the objects are destroyed.
//!
//! A binary outlives the process, so `vkGetShaderBinaryDataEXT` returns the binary of an object without our code. If
//! that object cannot be created, there is no binary (`VK_ERROR_OUT_OF_HOST_MEMORY`). An object made from a binary, or
//! one that the device binds, is not instrumented; objects that are bound beside it run without our code as well.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use lavascope_abi::*;
use lavascope_instrument::BindingRequirement;
use lavascope_record::pack_context::NoPackContext;

use super::layouts::{PipelineLayoutState, RootBinding};
use super::plan::{CHECKS_ENDED, NOT_IN_SAMPLE, NOT_SELECTED};
use super::recipe::{PackedCall, ShaderSource};
use super::stage_plan::{SpecializationData, constants_of, linked_record_number};
use super::variants::{FixedTables, InstrumentedPipeline, InstrumentedStage, PermissiveTables, lock};
use crate::DeviceTable;
use crate::gpu::draw::command_buffer::CommandBufferState;
use crate::gpu::draw::launch_counts;
use crate::gpu::hook::draws::{COMPUTE, GRAPHICS};
use crate::gpu::hook::hooks;
use crate::gpu::readback::touches;
use crate::gpu::report::debug_names::SharedName;
use crate::gpu::resource::arena::check_success;
use crate::gpu::resource::descriptor_sets;
use crate::gpu::resource::leases::Lease;
use crate::gpu::{DeviceChecks, checks_of, slice};
use crate::process::catch_panic::{catch_panic, catch_panic_and_retry};
use crate::report::coverage;

/// The shader objects of a device.
#[derive(Default)]
pub(crate) struct ShaderObjects {
    /// The objects with checks, by handle.
    pub(crate) live: HashMap<u64, Arc<ShaderObject>>,
    layouts: Vec<Arc<ShaderObjectLayout>>,
    pub(crate) shader_sets: HashMap<ShaderObjectKey, ShaderSet>,
    /// The set layouts of objects.
    held: HashMap<u64, Arc<HeldSetLayout>>,
    /// The set layouts that the application has destroyed and objects still need.
    kept: Vec<Arc<HeldSetLayout>>,
}

/// Shader objects that are bound together: stages and handles, by stage.
pub(crate) type ShaderObjectKey = Vec<(u32, u64)>;

/// The identity of a combination of objects.
#[derive(Clone)]
pub(crate) enum ShaderSet {
    Instrumented(Arc<InstrumentedPipeline>),
    /// These objects are bound, and nothing is checked.
    Uninstrumented(ShaderObjectKey),
}

/// Objects that together take the place of a pipeline.
pub(crate) struct BoundCombination {
    pub(crate) objects: Vec<Arc<ShaderObject>>,
}

/// A shader object of the application.
pub(crate) struct ShaderObject {
    pub(crate) handle: ShaderEXT,
    /// The number in the order of creation, counted together with pipelines.
    pub(crate) number: u32,
    pub(crate) name: SharedName,
    pub(crate) stage: ShaderStageFlags,
    pub(crate) words: Arc<Vec<u32>>,
    pub(crate) is_selected: bool,
    pub(crate) object_layout: Arc<ShaderObjectLayout>,
    pub(crate) group: Arc<LinkedShaders>,
    /// Its index among the objects that were linked.
    pub(crate) group_index: usize,
    pub(crate) first: ShaderObjectVariant,
    pub(crate) shader_set_keys: Mutex<Vec<ShaderObjectKey>>,
}

/// An object with one selection of checks, or without checks.
pub(crate) struct ShaderObjectVariant {
    pub(crate) handle: ShaderEXT,
    /// None if it has no code of ours.
    pub(crate) stage: Option<InstrumentedStage>,
    pub(crate) requirements: Vec<BindingRequirement>,
    pub(crate) fixed: Option<Arc<FixedTables>>,
    /// Why it is not checked.
    pub(crate) unchecked: Option<Arc<str>>,
}

/// The sets and push constants of objects.
pub(crate) struct ShaderObjectLayout {
    pub(crate) layout: Arc<PipelineLayoutState>,
    pub(crate) permissive_tables: OnceLock<Option<(PermissiveTables, Vec<Lease>)>>,
}

/// Linked objects, or a single one: how to create them again.
pub(crate) struct LinkedShaders {
    call: Option<PackedCall>,
    words: Vec<Arc<Vec<u32>>>,
    sets: Vec<Arc<HeldSetLayout>>,
    /// The objects without our code, as the application requested them. Created when needed.
    originals: Mutex<Option<Vec<ShaderEXT>>>,
    /// How many of them are not destroyed. Relaxed: only the number matters.
    left: AtomicUsize,
}

/// The layout of a set.
struct HeldSetLayout {
    handle: DescriptorSetLayout,
    /// Whether the application has destroyed it. Relaxed: it orders nothing.
    is_destroyed: AtomicBool,
}

/// The shader objects of a variant, by stage.
pub(crate) struct VariantShaders {
    pub(crate) bound: ShaderObjectKey,
    /// The objects that the application does not know.
    pub(crate) own: Vec<ShaderEXT>,
}

impl VariantShaders {
    pub(crate) fn bound(&self) -> &[(u32, u64)] {
        &self.bound
    }

    pub(crate) fn own(&self) -> &[ShaderEXT] {
        &self.own
    }
}

/// The shader objects that are bound for graphics or for compute.
#[derive(Default)]
pub(crate) struct BoundShaders {
    pub(crate) application: ShaderObjectKey,
    pub(crate) driver: ShaderObjectKey,
    pub(crate) is_changed: bool,
}

impl BoundShaders {
    /// The application binds a shader, or null.
    pub(crate) fn bind(&mut self, stage: ShaderStageFlags, shader: ShaderEXT) {
        for all in [&mut self.application, &mut self.driver] {
            all.retain(|it| it.0 != stage.0);
            if shader.0 != 0 {
                all.push((stage.0, shader.0));
                all.sort_unstable();
            }
        }
        self.is_changed = true;
    }

    /// Whether the bound objects have changed since the last draw.
    pub(crate) fn is_changed(&self) -> bool {
        self.is_changed
    }
}

impl ShaderObjects {
    /// The application destroys a set layout. Returns whether it is kept, because objects may be created again.
    pub(crate) fn retain_set_layout(&mut self, set_layout: DescriptorSetLayout, p_allocator: Ptr<Opaque>) -> bool {
        let Some(held) = self.held.remove(&set_layout.0) else { return false };
        // Allocation callbacks of the application may be invalid later.
        let stays = Arc::strong_count(&held) > 1 && p_allocator.is_null();
        held.is_destroyed.store(!stays, Ordering::Relaxed);
        if stays {
            self.kept.push(held);
        }
        stays
    }

    fn hold_set_layout(&mut self, handle: DescriptorSetLayout) -> Arc<HeldSetLayout> {
        let new = || Arc::new(HeldSetLayout { handle, is_destroyed: AtomicBool::new(false) });
        Arc::clone(self.held.entry(handle.0).or_insert_with(new))
    }

    fn take_unneeded(&mut self) -> Vec<Arc<HeldSetLayout>> {
        self.kept.extract_if(.., |it| Arc::strong_count(it) == 1).collect()
    }

    /// Removes an object, and returns the combinations that it was part of.
    fn remove(&mut self, handle: u64) -> Option<(Arc<ShaderObject>, Vec<Arc<InstrumentedPipeline>>)> {
        // The combinations with uninstrumented objects are found by a search.
        let object = self.live.remove(&handle)?;
        let keys = std::mem::take(&mut *lock(&object.shader_set_keys));
        let gone = keys.iter().filter_map(|it| self.shader_sets.remove(it));
        let checked =
            gone.filter_map(|it| if let ShaderSet::Instrumented(it) = it { Some(it) } else { None }).collect();
        Some((object, checked))
    }
}

hooks! {
    create_shaders_ext = fn(device: Device, count: u32, p_infos: Ptr<ShaderCreateInfoEXT>, p_allocator: Ptr<Opaque>, p_made: Ptr<ShaderEXT>) -> Result, |gpu, forward| {
        let Some(next) = gpu.next.create_shaders_ext else { return forward() };
        // SAFETY: VUID-vkCreateShadersEXT-pCreateInfos-parameter: an array of so many until the call returns.
        let infos = unsafe { slice(p_infos, count) };
        // Runs even if the layer is disabled: shader objects that are bound together need the same sets and push constants,
        // so later ones are changed like earlier ones. No checks are added then.
        // SAFETY: VUID-vkCreateShadersEXT-pCreateInfos-parameter: each is valid, with its chain, its code and its arrays.
        let plans = catch_panic("vkCreateShadersEXT", || unsafe { gpu.plan_objects(infos) }, Vec::new);
        if plans.iter().all(Option::is_none) {
            return forward();
        }
        let changed = infos.iter().zip(&plans).map(|(info, plan)| plan.as_ref().map_or(*info, |it| it.info));
        let changed: Vec<_> = changed.collect();
        let mark = catch_panic("vkCreateShadersEXT", || gpu.mark_stages(plans.iter().flatten().filter_map(ShaderObjectPlan::stage)), || None);
        // SAFETY: the driver's function, with the application's parameters, but for infos that have code of ours and a
        // layout that was changed; what they lead to lives in `plans`.
        let mut result = unsafe { next(device, count, Ptr::to_slice(&changed), p_allocator, p_made) };
        drop(mark);
        let checked = plans.iter().flatten().filter_map(ShaderObjectPlan::stage).count();
        // SAFETY: VUID-vkCreateShadersEXT-pShaders-parameter: places for so many handles, which the call has written, with
        // null if there is no object.
        let made = unsafe { slice(p_made, count) }.to_vec();
        let add = || {
            // SAFETY: VUID-vkCreateShadersEXT-pCreateInfos-parameter: each is valid, with its chain and its arrays.
            unsafe { gpu.add_objects(infos, plans, &made) };
            true
        };
        if result.0 < 0 || !catch_panic("vkCreateShadersEXT", add, || false) {
            // Then create them as the application requested.
            catch_panic("vkCreateShadersEXT", || gpu.forget_objects(&made), || ());
            if let Some(destroy) = gpu.next.destroy_shader_ext {
                // SAFETY: made above with `p_allocator`, and the application does not have them yet.
                made.iter().filter(|it| it.0 != 0).for_each(|it| unsafe { destroy(device, *it, p_allocator) });
            }
            result = forward();
            if result.0 >= 0 {
                catch_panic("vkCreateShadersEXT", || gpu.report_rejected(checked, REJECTED_OBJECTS), || ());
            }
        }
        result
    }
    destroy_shader_ext = fn(device: Device, shader: ShaderEXT, p_allocator: Ptr<Opaque>) -> (), |gpu, forward| {
        catch_panic("vkDestroyShaderEXT", || gpu.retire_shader_object(shader), || ());
        forward();
    }
    get_shader_binary_data_ext = fn(device: Device, shader: ShaderEXT, p_size: Ptr<u64>, p_data: Ptr<u8>) -> Result, |gpu, forward| {
        let Some(next) = gpu.next.get_shader_binary_data_ext else { return forward() };
        // A binary outlives the process, so it must not have our code.
        let original = || {
            let object = gpu.state().shader_objects.live.get(&shader.0).cloned();
            object.map_or(Some(shader), |object| gpu.original_shader(&object))
        };
        match catch_panic("vkGetShaderBinaryDataEXT", original, || None) {
            // SAFETY: the driver's function, with the application's parameters, but for the object: it is the one of the
            // application, or one of ours in its group, which lives until the last of that is destroyed.
            Some(original) => unsafe { next(device, original, p_size, p_data) },
            None => {
                gpu.warn_unchecked("a shader object with checks has no binary: the application gets none");
                Result::ERROR_OUT_OF_HOST_MEMORY
            }
        }
    }
    cmd_bind_shaders_ext = fn(commands: CommandBuffer, count: u32, p_stages: Ptr<ShaderStageFlagBits>, p_shaders: Ptr<ShaderEXT>) -> (), |gpu, forward| {
        forward();
        // SAFETY: VUID-vkCmdBindShadersEXT-pStages-parameter: an array of so many until the call returns;
        // VUID-vkCmdBindShadersEXT-pShaders-parameter: null, or the same.
        let (stages, shaders) = unsafe { (slice(p_stages, count), slice(p_shaders, count)) };
        let note = |commands: &mut CommandBufferState| {
            for (at, stage) in stages.iter().enumerate() {
                let bind_point = if stage.0 & ShaderStageFlags::COMPUTE.0 != 0 { COMPUTE } else { GRAPHICS };
                commands.bind_shader_object(bind_point, *stage, shaders.get(at).copied().unwrap_or_default());
            }
        };
        catch_panic_and_retry("vkCmdBindShadersEXT", || gpu.with_commands(commands, note), || ());
    }
}

/// An object that is about to be created.
pub(crate) struct ShaderObjectPlan {
    /// The create info that the driver gets.
    pub(crate) info: ShaderCreateInfoEXT,
    number: u32,
    words: Arc<Vec<u32>>,
    is_selected: bool,
    object_layout: Arc<ShaderObjectLayout>,
    stage: Option<InstrumentedStage>,
    requirements: Vec<BindingRequirement>,
    fixed: Option<Arc<FixedTables>>,
    /// Why it is not checked although it is wanted.
    unchecked_because: Option<String>,
    /// The structures and arrays that the create info refers to.
    _behind: (Vec<DescriptorSetLayout>, Option<SpecializationData>),
}

impl ShaderObjectPlan {
    /// The shader with checks, if it has any.
    pub(crate) fn stage(&self) -> Option<&InstrumentedStage> {
        self.stage.as_ref()
    }

    pub(crate) fn into_variant(self, handle: ShaderEXT) -> ShaderObjectVariant {
        let unchecked = self.unchecked_because.map(Arc::from);
        ShaderObjectVariant { handle, stage: self.stage, requirements: self.requirements, fixed: self.fixed, unchecked }
    }
}

/// Why objects are not checked that the driver does not create with checks.
const REJECTED_OBJECTS: &str = "the driver creates a shader object only without checks: it is not checked";

/// How an object is checked: whether with branches, and which sites record faults immediately.
pub(crate) type ShaderObjectStyle = (bool, Option<BTreeSet<u32>>);

/// Flags of objects that are not instrumented.
const SKIPPED_FLAGS: u32 = ShaderCreateFlagsEXT::INDIRECT_BINDABLE_EXT.0 | ShaderCreateFlagsEXT::DESCRIPTOR_HEAP_EXT.0;
pub(crate) const LINK_STAGE: u32 = ShaderCreateFlagsEXT::LINK_STAGE_EXT.0;
/// Takes the place of the code in a stored call.
static NO_CODE: [u32; 1] = [0];

impl DeviceChecks {
    /// The plans for the objects of a call; none if one of them stays unchanged.
    ///
    /// # Safety
    ///
    /// The infos must be valid, with their chains, their code and their arrays.
    unsafe fn plan_objects(&self, infos: &[ShaderCreateInfoEXT]) -> Vec<Option<ShaderObjectPlan>> {
        // SAFETY: the contract of this function is that of the other, for each.
        infos.iter().map(|it| unsafe { self.plan_new(it) }).collect()
    }

    /// # Safety
    ///
    /// The info must be valid, with its chain, its code and its arrays.
    unsafe fn plan_new(&self, info: &ShaderCreateInfoEXT) -> Option<ShaderObjectPlan> {
        if info.code_type != ShaderCodeTypeEXT::SPIRV_EXT {
            return self.leave_object(launch_counts::OBJECT);
        }
        if info.flags.0 & SKIPPED_FLAGS != 0 {
            return self
                .leave_object("shader objects that the device binds, or with descriptor heaps, are not checked");
        }
        // SAFETY: the contract of this function: an info with its arrays.
        let Some(object_layout) = (unsafe { self.shader_object_layout(info) }) else {
            return self.leave_object("a layout of shader objects is not known: they are not checked");
        };
        // SAFETY: the contract of this function: VUID-VkShaderCreateInfoEXT-pCode-parameter: as many bytes as it says, and
        // VUID-VkShaderCreateInfoEXT-pCode-08493: aligned to words, where it is SPIR-V.
        let words = Arc::new(unsafe { slice(info.p_code.cast::<u32>(), (info.code_size / 4) as u32) }.to_vec());
        let mut named = PipelineShaderStageCreateInfo::zeroed();
        (named.p_next, named.p_name) = (info.p_next, info.p_name);
        let source = ShaderSource::unnamed(Arc::clone(&words));
        // SAFETY: the contract of this function: the chain and the name of the info are valid.
        let source = unsafe { self.config.selection.select_stage(&self.state(), &named, source) }?;
        let is_taken = source.is_selected && self.config.selection.take_next_sample();
        let wanted = (object_layout.layout.uses_descriptor_buffers(), None);
        // SAFETY: the contract of this function: a valid info.
        let mut plan =
            unsafe { self.plan_object(&object_layout, info, (words, is_taken), self.next_pipeline(), wanted) };
        let left_out = if source.is_selected { NOT_IN_SAMPLE } else { NOT_SELECTED };
        plan.unchecked_because = plan.unchecked_because.or((!is_taken).then(|| left_out.to_owned()));
        match &plan.unchecked_because {
            Some(why) => coverage::count_unchecked_shaders(1, why),
            None => coverage::count_checked_shader(),
        }
        Some(plan)
    }

    /// Warns that a shader object is not checked.
    fn leave_object(&self, why: &str) -> Option<ShaderObjectPlan> {
        coverage::count_unchecked_shaders(1, why);
        self.warn_unchecked(why);
        None
    }

    /// # Safety
    ///
    /// The info must be valid, with its chain and its arrays; its code is not read.
    pub(crate) unsafe fn plan_object(
        &self,
        object_layout: &Arc<ShaderObjectLayout>,
        info: &ShaderCreateInfoEXT,
        (words, is_taken): (Arc<Vec<u32>>, bool),
        number: u32,
        wanted: ShaderObjectStyle,
    ) -> ShaderObjectPlan {
        let layout = &object_layout.layout;
        // SAFETY: the contract of this function: as many set layouts as the info says.
        let sets = unsafe { slice(info.p_set_layouts, info.set_layout_count) };
        let sets = if layout.root_binding == Some(RootBinding::DescriptorSet) {
            self.with_reserved_set(sets)
        } else {
            sets.to_vec()
        };
        let mut plan = ShaderObjectPlan {
            info: ShaderCreateInfoEXT {
                code_size: words.len() as u64 * 4,
                p_code: Ptr::to_slice(&words).cast(),
                set_layout_count: sets.len() as u32,
                p_set_layouts: Ptr::to_slice(&sets),
                push_constant_range_count: layout.driver_ranges.len() as u32,
                p_push_constant_ranges: Ptr::to_slice(&layout.driver_ranges),
                ..*info
            },
            number,
            words,
            is_selected: is_taken,
            object_layout: Arc::clone(object_layout),
            stage: None,
            requirements: Vec::new(),
            fixed: None,
            unchecked_because: None,
            _behind: (sets, None),
        };
        if is_taken && !self.has_failed() {
            // SAFETY: the contract of this function: the info of the plan has the application's specialization constants.
            let added = unsafe { self.add_checks(&mut plan, wanted) };
            if let Err(why) = added {
                self.warn_unchecked(&why);
                plan.unchecked_because = Some(why);
            }
        } else if is_taken {
            plan.unchecked_because = Some(CHECKS_ENDED.to_owned());
        }
        plan
    }

    /// # Safety
    ///
    /// The specialization constants of the plan's info must be null, or valid.
    unsafe fn add_checks(
        &self,
        plan: &mut ShaderObjectPlan,
        wanted: ShaderObjectStyle,
    ) -> std::result::Result<(), String> {
        let layout = Arc::clone(&plan.object_layout.layout);
        if let Some(why) = layout.unsupported_reason() {
            return Err(why.to_owned());
        }
        let kind = plan.info.stage;
        let (how, touch_slot) = ((wanted.0, self.records_touches(kind)), DeviceChecks::touch_slot(kind));
        let made = self.instrument_words(&layout, kind, &plan.words, (how, wanted.1))?;
        plan.requirements.clone_from(&made.requirements);
        if made.is_unchanged() {
            return Ok(());
        }
        let no_room = "there is no room for the checks of shader objects";
        let (cell_base, part) = self.or_stop_checking(self.lease_shared_cells(&made.cells())).ok_or(no_room)?;
        if layout.root_binding == Some(RootBinding::Specialization) {
            plan.fixed = Some(self.or_stop_checking(self.create_fixed_tables(&layout)).ok_or(no_room)?);
        }
        let shader = self.next_shader();
        let record_number = linked_record_number(kind, shader);
        // SAFETY: the contract of this function: the info is valid, so that it leads to one specialization or none, which is
        // valid until the call returns.
        let special = unsafe {
            let own = slice(plan.info.p_specialization_info, 1).first();
            let mut constants = constants_of(&made, (record_number, cell_base), plan.fixed.as_deref());
            constants.extend(touches::touch_constant(&made, touch_slot, 0));
            SpecializationData::new(own, &constants)
        };
        plan.info.code_size = made.words.len() as u64 * 4;
        plan.info.p_code = Ptr::to_slice(&made.words).cast();
        plan.info.p_specialization_info = special.address();
        plan._behind.1 = Some(special);
        plan.stage = Some(InstrumentedStage {
            shader,
            record_number,
            kind,
            index: 0,
            module: ShaderModule::default(),
            name: SharedName::default(),
            object: None,
            instrumented: made,
            original: Arc::clone(&plan.words),
            cell_base,
            touch_base: 0,
            touch_slot,
            _cells_lease: Some(part),
        });
        Ok(())
    }

    fn create_fixed_tables(&self, layout: &PipelineLayoutState) -> Option<Arc<FixedTables>> {
        let table = descriptor_sets::descriptor_table(layout, &Default::default(), |_| None);
        let fixed = FixedTables::new(self)?;
        fixed.init_table(self, self.shared_cells(), &table)?;
        Some(Arc::new(fixed))
    }

    /// # Safety
    ///
    /// The info must be valid, with its arrays.
    unsafe fn shader_object_layout(&self, info: &ShaderCreateInfoEXT) -> Option<Arc<ShaderObjectLayout>> {
        // SAFETY: the contract of this function: as many ranges (VUID-VkShaderCreateInfoEXT-pPushConstantRanges-parameter)
        // and set layouts as the info says.
        let (handles, ranges) = unsafe {
            let ranges = slice(info.p_push_constant_ranges, info.push_constant_range_count);
            (slice(info.p_set_layouts, info.set_layout_count), ranges)
        };
        let sets = self.known_set_layouts(handles);
        let find = |all: &[Arc<ShaderObjectLayout>]| all.iter().find(|it| it.layout.is_made_of(&sets, ranges)).cloned();
        if let Some(known) = find(&self.state().shader_objects.layouts) {
            return Some(known);
        }
        let layout = Arc::new(self.create_own_layout(handles, ranges)?);
        let mut state = self.state();
        // Another thread may have created it meanwhile.
        if let Some(known) = find(&state.shader_objects.layouts) {
            return Some(known);
        }
        let made = Arc::new(ShaderObjectLayout { layout, permissive_tables: OnceLock::new() });
        state.shader_objects.layouts.push(Arc::clone(&made));
        Some(made)
    }

    /// Objects were made as planned, those that are not null.
    ///
    /// # Safety
    ///
    /// The infos must be valid, with their chains and their arrays.
    unsafe fn add_objects(
        &self,
        infos: &[ShaderCreateInfoEXT],
        plans: Vec<Option<ShaderObjectPlan>>,
        made: &[ShaderEXT],
    ) {
        let words: Vec<_> = plans.iter().map(|it| it.as_ref().map(|it| Arc::clone(&it.words))).collect();
        let is_linked = |at: usize| infos[at].flags.0 & LINK_STAGE != 0;
        let is_there = |at: &usize| words[*at].is_some() && made[*at].0 != 0;
        let linked: Vec<usize> = (0..infos.len()).filter(|at| is_linked(*at)).filter(is_there).collect();
        // SAFETY: the contract of this function is that of the other.
        let group = |places: &[usize]| unsafe { self.create_shader_group(infos, &words, places) };
        let linked_group = if linked.is_empty() { None } else { Some(group(&linked)) };
        for (at, plan) in plans.into_iter().enumerate().filter(|it| is_there(&it.0)) {
            let Some(plan) = plan else { continue };
            let (group, place) = match linked_group.as_ref().filter(|_| is_linked(at)) {
                Some(group) => (Arc::clone(group), linked.iter().position(|it| *it == at).unwrap_or(0)),
                None => (group(&[at]), 0),
            };
            let ShaderObjectPlan { number, is_selected: is_taken, .. } = plan;
            let (stage, words, object_layout) =
                (plan.info.stage, Arc::clone(&plan.words), Arc::clone(&plan.object_layout));
            let (handle, first, together) = (made[at], plan.into_variant(made[at]), Mutex::default());
            let mut state = self.state();
            let name = state.names.share(ObjectType::SHADER_EXT, handle.0);
            let object = ShaderObject {
                handle,
                number,
                name,
                stage,
                words,
                is_selected: is_taken,
                object_layout,
                group,
                group_index: place,
                first,
                shader_set_keys: together,
            };
            state.shader_objects.live.insert(handle.0, Arc::new(object));
        }
    }

    /// # Safety
    ///
    /// The infos must be valid, with their chains and their arrays; their code is not read.
    unsafe fn create_shader_group(
        &self,
        infos: &[ShaderCreateInfoEXT],
        words: &[Option<Arc<Vec<u32>>>],
        places: &[usize],
    ) -> Arc<LinkedShaders> {
        let without_code =
            |at: &usize| ShaderCreateInfoEXT { code_size: 4, p_code: Ptr::to_slice(&NO_CODE).cast(), ..infos[*at] };
        let own: Vec<ShaderCreateInfoEXT> = places.iter().map(without_code).collect();
        let mut made = vec![ShaderEXT::default(); own.len()];
        let params = CreateShadersEXTParams {
            device: self.device,
            create_info_count: own.len() as u32,
            p_create_infos: Ptr::to_slice(&own),
            p_allocator: Ptr::NULL,
            p_shaders: Ptr::new(made.as_mut_ptr().expose_provenance() as u64),
        };
        // SAFETY: the parameters are of this command, and what they lead to is valid by the contract of this function, or
        // ours.
        let call = unsafe { PackedCall::new(Command::CreateShadersEXT, (&raw const params).cast(), &NoPackContext) };
        let mut state = self.state();
        // SAFETY: the contract of this function: as many set layouts as each info says.
        let sets = own.iter().flat_map(|it| unsafe { slice(it.p_set_layouts, it.set_layout_count) });
        let sets = sets.filter(|it| it.0 != 0).map(|it| state.shader_objects.hold_set_layout(*it)).collect();
        let words = places.iter().filter_map(|at| words[*at].clone()).collect();
        let left = AtomicUsize::new(places.len());
        Arc::new(LinkedShaders { call, words, sets, originals: Mutex::default(), left })
    }

    /// An object as the application requested it, with those that it is linked to.
    pub(crate) fn original_shader(&self, object: &ShaderObject) -> Option<ShaderEXT> {
        let group = &object.group;
        if let Some(known) = &*lock(&group.originals) {
            return known.get(object.group_index).copied();
        }
        let made = self.with_infos(group, |infos| {
            for (info, words) in infos.iter_mut().zip(&group.words) {
                (info.code_size, info.p_code) = (words.len() as u64 * 4, Ptr::to_slice(words).cast());
            }
            self.create_shader_objects(infos)
        });
        let mut known = lock(&group.originals);
        // Another thread may have created it meanwhile.
        let (found, unneeded) = match (&*known, made) {
            (Some(known), made) => (known.get(object.group_index).copied(), made),
            (None, made) => {
                let made = made.unwrap_or_default();
                let found = made.get(object.group_index).copied();
                *known = Some(made);
                (found, None)
            }
        };
        drop(known);
        self.destroy_shader_objects(&unneeded.unwrap_or_default());
        found
    }

    /// Calls `work` with the create infos of objects, without their code.
    pub(crate) fn with_infos<T>(
        &self,
        group: &LinkedShaders,
        work: impl FnOnce(&mut [ShaderCreateInfoEXT]) -> Option<T>,
    ) -> Option<T> {
        if group.sets.iter().any(|it| it.is_destroyed.load(Ordering::Relaxed)) {
            return None;
        }
        let mut arena = lavascope_marshal::Arena::default();
        let params = group.call.as_ref()?.unpack(&mut arena)?.cast::<CreateShadersEXTParams>();
        // SAFETY: `group` packed a call of this command, so `unpack` gives its parameters, with an array of as many infos
        // as they say. All of it is in `arena`, which is alive and which nobody else has.
        let infos = unsafe {
            let params = &*params;
            std::slice::from_raw_parts_mut(params.p_create_infos.as_mut_ptr(), params.create_info_count as usize)
        };
        work(infos)
    }

    /// Creates all objects, or none.
    pub(crate) fn create_shader_objects(&self, infos: &[ShaderCreateInfoEXT]) -> Option<Vec<ShaderEXT>> {
        let create = self.next.create_shaders_ext?;
        let mut made = vec![ShaderEXT::default(); infos.len()];
        let p_made = Ptr::new(made.as_mut_ptr().expose_provenance() as u64);
        // SAFETY: this runs inside of a call for the device or for a command buffer of it, so it is alive until that
        // returns. The infos are those of `with_infos`, which gives them where their set layouts are there, with code that
        // the caller keeps; the places are ours, and as many.
        let result = unsafe { create(self.device, infos.len() as u32, Ptr::to_slice(infos), Ptr::NULL, p_made) };
        if check_success(result).is_none() {
            self.destroy_shader_objects(&made);
            return None;
        }
        Some(made)
    }

    pub(crate) fn destroy_shader_objects(&self, objects: &[ShaderEXT]) {
        if let Some(destroy) = self.next.destroy_shader_ext {
            // SAFETY: objects that `create_shader_objects` made. Whoever calls this took them out of where they are found, and the
            // application has destroyed what they stand for, so that no command buffer may use them.
            objects.iter().filter(|it| it.0 != 0).for_each(|it| unsafe { destroy(self.device, *it, Ptr::NULL) });
        }
    }

    /// The application destroys an object.
    fn retire_shader_object(&self, shader: ShaderEXT) {
        let mut state = self.state();
        // Instrumented and other objects may have been bound beside it.
        state.shader_objects.shader_sets.retain(|key, it_is| match it_is {
            ShaderSet::Uninstrumented(_) => !key.iter().any(|other| other.1 == shader.0),
            ShaderSet::Instrumented(_) => true,
        });
        let removed = state.shader_objects.remove(shader.0);
        state.names.remove(ObjectType::SHADER_EXT, shader.0);
        drop(state);
        self.invalidate_choices();
        let Some((object, checked)) = removed else { return };
        self.retire_shader_object_variants();
        checked.iter().for_each(|it| self.destroy_variants(it));
        if object.group.left.fetch_sub(1, Ordering::Relaxed) == 1 {
            let originals = lock(&object.group.originals).take();
            self.destroy_shader_objects(&originals.unwrap_or_default());
        }
        drop((object, checked));
        let unneeded = self.state().shader_objects.take_unneeded();
        self.destroy_set_layouts(&unneeded);
    }

    /// Forgets objects that were created but are not returned to the application.
    fn forget_objects(&self, made: &[ShaderEXT]) {
        let mut state = self.state();
        made.iter().for_each(|it| drop(state.shader_objects.live.remove(&it.0)));
    }

    fn destroy_set_layouts(&self, held: &[Arc<HeldSetLayout>]) {
        if let Some(destroy) = self.next.destroy_descriptor_set_layout {
            // SAFETY: `take_unneeded` gives those that the application destroyed, and that no object is made with any more;
            // `retain_set_layout` has kept their destruction from the driver.
            held.iter().for_each(|it| unsafe { destroy(self.device, it.handle, Ptr::NULL) });
        }
    }

    /// Destroys everything at the end of the device.
    pub(crate) fn destroy_all_shader_objects(&self, all: &mut ShaderObjects) {
        for shader_set in all.shader_sets.values() {
            if let ShaderSet::Instrumented(instrumented) = shader_set {
                self.destroy_variants(instrumented);
            }
        }
        for object in all.live.values() {
            let originals = lock(&object.group.originals).take();
            self.destroy_shader_objects(&originals.unwrap_or_default());
        }
        self.destroy_set_layouts(&std::mem::take(&mut all.kept));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shader_is_bound_until_another_one_is() {
        let mut bound = BoundShaders::default();
        assert!(!bound.is_changed());
        bound.bind(ShaderStageFlags::FRAGMENT, ShaderEXT(7));
        bound.bind(ShaderStageFlags::VERTEX, ShaderEXT(5));
        assert_eq!(bound.application, [(1, 5), (16, 7)], "by stage");
        bound.bind(ShaderStageFlags::FRAGMENT, ShaderEXT(9));
        assert_eq!(bound.driver, [(1, 5), (16, 9)]);
        bound.bind(ShaderStageFlags::VERTEX, ShaderEXT(0));
        assert_eq!(bound.application, [(16, 9)]);
        assert!(bound.is_changed());
    }

    #[test]
    fn layouts_of_sets_stay_as_long_as_objects_may_be_made_again() {
        let mut objects = ShaderObjects::default();
        let (needed, unneeded, foreign) =
            (objects.hold_set_layout(DescriptorSetLayout(1)), DescriptorSetLayout(2), Ptr::new(64));
        drop(objects.hold_set_layout(unneeded));
        assert!(!objects.retain_set_layout(unneeded, Ptr::NULL));
        assert!(!objects.retain_set_layout(DescriptorSetLayout(3), Ptr::NULL), "no object has it");
        assert!(objects.retain_set_layout(needed.handle, Ptr::NULL));
        assert!(objects.take_unneeded().is_empty());
        drop(needed);
        assert_eq!(objects.take_unneeded().len(), 1);
        let needed = objects.hold_set_layout(DescriptorSetLayout(4));
        assert!(!objects.retain_set_layout(needed.handle, foreign), "with callbacks of the application");
        assert!(needed.is_destroyed.load(Ordering::Relaxed));
    }
}
