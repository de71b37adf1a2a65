//! Layouts of descriptor sets and pipelines, and how shaders find their tables in them.
//!
//! A pipeline layout is changed to the best of three ways that it has room for (`RootBinding`):
//!
//! - The address of the root table is in the last eight bytes of the push constants.
//! - The tables are in a descriptor set, the last one, with empty ones before it. That needs `maxBoundDescriptorSets`,
//!   and the limits of storage buffers, of resources of a stage and of fragment outputs. A layout for descriptor
//!   buffers never gets that set.
//! - The address of the root table is in specialization constants: all draws of a pipeline share the tables.
//!
//! Every layout is changed by the same rule, so that layouts that were compatible stay compatible. If no way is left,
//! the shaders are not checked. Layouts with more than 65,536 descriptors are not checked either: each draw would
//! describe all of them.
//!
//! The setting `gpu_reserve_binding_slot` reports one descriptor set less to the application. It is not needed if push
//! constants are left.

use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

use lavascope_abi::*;
use lavascope_instrument::interface::tables;

use crate::gpu::resource::arena::check_success;
use crate::gpu::resource::leases::Lease;
use crate::gpu::{DeviceChecks, TABLE_COUNT, out_ptr, slice};
use crate::loader::pnext_chain::find_in_chain;

/// Sets with more descriptors are not checked, because each draw would have to describe all of them.
const DESCRIPTORS_MAX: u64 = 1 << 16;
/// Sets with larger binding numbers are not checked, because each number up to the largest takes memory.
const BINDING_MAX: u32 = (1 << 16) - 1;

/// The layout of a descriptor set. Equal layouts are compatible.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SetLayoutState {
    pub(crate) flags: u32,
    /// By binding number; the count is zero for a number without binding.
    pub(crate) bindings: Vec<LayoutBinding>,
    /// The largest binding number, if it is not supported.
    pub(crate) unsupported_binding: Option<u32>,
    /// The offsets of the bindings, if descriptors are in a buffer.
    pub(crate) offsets: Vec<u64>,
}

/// A binding.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LayoutBinding {
    pub(crate) descriptor_type: DescriptorType,
    pub(crate) count: u32,
    pub(crate) stages: u32,
    pub(crate) flags: u32,
    /// Immutable samplers.
    pub(crate) samplers: Vec<u64>,
}

/// The layout of a pipeline.
pub(crate) struct PipelineLayoutState {
    /// The handle that the application has.
    pub(crate) handle: PipelineLayout,
    /// How shaders find our tables, if the layout has room for that.
    pub(crate) root_binding: Option<RootBinding>,
    /// A layout of ours that is equal to the application's one in the driver. The application may destroy its own
    /// before it draws.
    pub(crate) own_handle: Option<PipelineLayout>,
    /// Destroys the handle when this value is dropped.
    pub(crate) _lease: Option<Lease>,
    /// None for a set whose layout is unknown.
    pub(crate) sets: Vec<Option<Arc<SetLayoutState>>>,
    /// The application's push constants.
    ranges: Vec<[u32; 3]>,
    /// The ranges that the driver has.
    pub(crate) driver_ranges: Vec<PushConstantRange>,
    /// The descriptor table without descriptors. Created when needed.
    empty_table: OnceLock<Vec<u32>>,
}

/// How shaders find our tables, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RootBinding {
    /// Their address is in the last bytes of the push constants.
    PushConstant,
    /// They are bound as our own descriptor set, the last one.
    DescriptorSet,
    /// Their address is in the shader, the same for all draws.
    Specialization,
}

impl SetLayoutState {
    /// # Safety
    ///
    /// The info must be that of a valid `vkCreateDescriptorSetLayout` that has not returned to the application.
    pub(crate) unsafe fn read(info: &DescriptorSetLayoutCreateInfo) -> SetLayoutState {
        let ty = StructureType::DESCRIPTOR_SET_LAYOUT_BINDING_FLAGS_CREATE_INFO;
        // SAFETY: VUID-VkDescriptorSetLayoutCreateInfo-pNext-pNext, by the contract of this function: a valid chain;
        // the type is that of the structure.
        let flags = unsafe { find_in_chain::<DescriptorSetLayoutBindingFlagsCreateInfo>(info.p_next, ty) };
        // SAFETY: a structure of the chain, which stays until the call returns.
        let flags = flags.map(|it| unsafe { &*it.as_ptr() });
        // SAFETY: VUID-VkDescriptorSetLayoutBindingFlagsCreateInfo-pBindingFlags-parameter: as many as it says.
        let flags = flags.map_or(&[][..], |it| unsafe { slice(it.p_binding_flags, it.binding_count) });
        // SAFETY: VUID-VkDescriptorSetLayoutCreateInfo-pBindings-parameter, by the contract of this function: as many
        // as it says.
        let all = unsafe { slice(info.p_bindings, info.binding_count) };
        let far = all.iter().map(|it| it.binding).max().filter(|it| *it > BINDING_MAX);
        let mut layout = SetLayoutState { flags: info.flags.0, unsupported_binding: far, ..SetLayoutState::default() };
        for (at, layout_binding) in all.iter().enumerate().filter(|it| it.1.binding <= BINDING_MAX) {
            let number = layout_binding.binding as usize;
            if layout.bindings.len() <= number {
                layout.bindings.resize_with(number + 1, LayoutBinding::default);
            }
            let samples = matches!(
                layout_binding.descriptor_type,
                DescriptorType::SAMPLER | DescriptorType::COMBINED_IMAGE_SAMPLER
            );
            let samplers = if samples {
                // SAFETY: VUID-VkDescriptorSetLayoutBinding-descriptorType-00282: with such a type, null or a sampler
                // for each descriptor.
                unsafe { slice(layout_binding.p_immutable_samplers, layout_binding.descriptor_count) }
            } else {
                &[]
            };
            layout.bindings[number] = LayoutBinding {
                descriptor_type: layout_binding.descriptor_type,
                count: layout_binding.descriptor_count,
                stages: layout_binding.stage_flags.0,
                flags: flags.get(at).map_or(0, |it| it.0),
                samplers: samplers.iter().map(|it| it.0).collect(),
            };
        }
        layout
    }

    /// Whether it is for pipelines with descriptor buffers.
    fn is_for_descriptor_buffers(&self) -> bool {
        self.flags & DescriptorSetLayoutCreateFlags::DESCRIPTOR_BUFFER_EXT.0 != 0
    }

    /// Whether its descriptors are in a buffer. Some of them may be pushed.
    pub(crate) fn is_in_descriptor_buffer(&self) -> bool {
        self.is_for_descriptor_buffers() && self.flags & DescriptorSetLayoutCreateFlags::PUSH_DESCRIPTOR.0 == 0
    }

    /// Number of dynamic offsets of a set with this layout.
    pub(crate) fn dynamic_count(&self) -> usize {
        self.bindings.iter().filter(|it| it.is_dynamic()).map(|it| it.count as usize).sum()
    }
}

impl LayoutBinding {
    pub(crate) fn is_dynamic(&self) -> bool {
        matches!(self.descriptor_type, DescriptorType::UNIFORM_BUFFER_DYNAMIC | DescriptorType::STORAGE_BUFFER_DYNAMIC)
    }

    /// Whether each descriptor has the type that was last written to it.
    pub(crate) fn is_mutable(&self) -> bool {
        self.descriptor_type == DescriptorType::MUTABLE_EXT
    }

    pub(crate) fn is_inline(&self) -> bool {
        self.descriptor_type == DescriptorType::INLINE_UNIFORM_BLOCK
    }

    pub(crate) fn is_variable(&self) -> bool {
        self.flags & DescriptorBindingFlags::VARIABLE_DESCRIPTOR_COUNT.0 != 0
    }

    /// Whether descriptors may be updated after a draw was recorded.
    pub(crate) fn is_update_after_bind(&self) -> bool {
        let late = DescriptorBindingFlags::UPDATE_AFTER_BIND.0 | DescriptorBindingFlags::UPDATE_UNUSED_WHILE_PENDING.0;
        self.flags & late != 0
    }

    /// Number of elements; an inline uniform block counts as one.
    pub(crate) fn elements(&self) -> u32 {
        if self.is_inline() { self.count.min(1) } else { self.count }
    }
}

impl PipelineLayoutState {
    /// A layout without sets and push constants.
    pub(crate) fn empty() -> PipelineLayoutState {
        let (sets, ranges, driver_ranges) = (Vec::new(), Vec::new(), Vec::new());
        PipelineLayoutState {
            handle: PipelineLayout(1),
            root_binding: Some(RootBinding::PushConstant),
            own_handle: None,
            _lease: None,
            sets,
            ranges,
            driver_ranges,
            empty_table: OnceLock::new(),
        }
    }

    /// Whether sets up to this one stay bound when the other layout is used (`descriptorsets-compatibility`).
    pub(crate) fn is_compatible(&self, other: &PipelineLayoutState, set: usize) -> bool {
        let (own, others) = (self.sets.get(..=set), other.sets.get(..=set));
        self.ranges == other.ranges && own.is_some() && own == others
    }

    /// Why shaders with this layout cannot be checked.
    pub(crate) fn unsupported_reason(&self) -> Option<&'static str> {
        if self.root_binding.is_none() || self.own_handle.is_none() {
            return Some(
                "a pipeline layout leaves no push constants, no descriptor set, or too few storage buffers for checks: \
                 its shaders are not checked",
            );
        }
        let mut count = 0;
        for set in &self.sets {
            let Some(other) = set else {
                return Some("a pipeline layout has a set that is not known: its shaders are not checked");
            };
            if other.unsupported_binding.is_some() {
                return Some(
                    "a set layout has bindings with numbers above 65535: shaders that are made with it are not checked",
                );
            }
            count += other.bindings.iter().map(|it| u64::from(it.elements())).sum::<u64>();
        }
        (count > DESCRIPTORS_MAX)
            .then_some("a pipeline layout has more than 65536 descriptors: its shaders are not checked yet")
    }

    /// A descriptor table of this layout without any descriptor bound.
    pub(crate) fn empty_table(&self) -> &[u32] {
        let counts = |layout_state: &Option<Arc<SetLayoutState>>| {
            layout_state.iter().flat_map(|it| &it.bindings).map(LayoutBinding::elements).collect()
        };
        let make = || tables::empty_descriptor_table(&self.sets.iter().map(counts).collect::<Vec<Vec<u32>>>());
        self.empty_table.get_or_init(make)
    }

    /// Whether descriptors are in buffers. Their contents are known only at submission.
    pub(crate) fn uses_descriptor_buffers(&self) -> bool {
        self.sets.iter().flatten().any(|it| it.is_for_descriptor_buffers())
    }

    pub(crate) fn binding(&self, set: u32, binding: u32) -> Option<&LayoutBinding> {
        let slot = self.sets.get(set as usize)?.as_ref()?.bindings.get(binding as usize)?;
        (slot.count > 0).then_some(slot)
    }
}

/// Number of bytes of our tables' address.
pub(crate) const ROOT_PUSH_BYTES: u32 = 8;

/// The push constants with the address of our tables at `tail`, for all stages; none if the application is there.
///
/// A stage can be in one range only, so those of the application reach up to the tail.
fn with_root_push_range(ranges: &[PushConstantRange], tail: u32, stages: u32) -> Option<Vec<PushConstantRange>> {
    if ranges.iter().any(|it| it.offset.saturating_add(it.size) > tail) {
        return None;
    }
    let longer = |it: &PushConstantRange| PushConstantRange { size: tail + ROOT_PUSH_BYTES - it.offset, ..*it };
    let mut all: Vec<PushConstantRange> = ranges.iter().map(longer).collect();
    let rest = stages & !all.iter().fold(0, |all, it| all | it.stage_flags.0);
    if rest != 0 {
        all.push(PushConstantRange { stage_flags: ShaderStageFlags(rest), offset: tail, size: ROOT_PUSH_BYTES });
    }
    Some(all)
}

impl PipelineLayoutState {
    /// The stages for which bytes must be pushed: those of all ranges that contain them.
    pub(crate) fn stages_of_push(&self, offset: u32, size: u32) -> u32 {
        let is_in = |constant_range: &&PushConstantRange| {
            offset < constant_range.offset.saturating_add(constant_range.size)
                && constant_range.offset < offset.saturating_add(size)
        };
        self.driver_ranges.iter().filter(is_in).fold(0, |all, it| all | it.stage_flags.0)
    }

    /// Whether it has these sets and push constants.
    pub(crate) fn is_made_of(&self, sets: &[Option<Arc<SetLayoutState>>], ranges: &[PushConstantRange]) -> bool {
        self.sets == sets && self.ranges.iter().copied().eq(ranges.iter().map(words_of))
    }

    /// Whether pushed values stay valid when the other layout is used.
    pub(crate) fn has_same_push_ranges(&self, other: &PipelineLayoutState) -> bool {
        self.ranges == other.ranges
    }
}

fn words_of(range: &PushConstantRange) -> [u32; 3] {
    [range.stage_flags.0, range.offset, range.size]
}

/// The descriptors of a layout that count against a limit, in one stage or in all.
fn count(sets: &[Option<Arc<SetLayoutState>>], stage: u32, is_it: impl Fn(DescriptorType) -> bool) -> u32 {
    let slots = sets.iter().flatten().flat_map(|it| &it.bindings).filter(|it| it.stages & stage != 0);
    slots.filter(|it| is_it(it.descriptor_type)).fold(0, |all, it| all.saturating_add(it.elements()))
}

fn is_storage_buffer(descriptor_type: DescriptorType) -> bool {
    matches!(descriptor_type, DescriptorType::STORAGE_BUFFER | DescriptorType::STORAGE_BUFFER_DYNAMIC)
}

fn is_output(descriptor_type: DescriptorType) -> bool {
    is_storage_buffer(descriptor_type)
        || matches!(descriptor_type, DescriptorType::STORAGE_IMAGE | DescriptorType::STORAGE_TEXEL_BUFFER)
}

/// Whether four more storage buffers in all stages stay below the limits.
fn fits(sets: &[Option<Arc<SetLayoutState>>], limits: &PhysicalDeviceLimits) -> bool {
    let ours = TABLE_COUNT as u32;
    let most = |is_it: &dyn Fn(DescriptorType) -> bool| {
        (0..31).map(|bit| count(sets, 1 << bit, is_it)).max().unwrap_or(0).saturating_add(ours)
    };
    let fragment = ShaderStageFlags::FRAGMENT.0;
    // Color attachments count as well. Their number is unknown here, so the maximum is used.
    let colors = limits.max_color_attachments;
    let outputs = count(sets, fragment, is_output).saturating_add(ours).saturating_add(colors);
    let in_fragments = count(sets, fragment, |_| true).saturating_add(ours).saturating_add(colors);
    most(&is_storage_buffer) <= limits.max_per_stage_descriptor_storage_buffers
        && count(sets, u32::MAX, is_storage_buffer).saturating_add(ours) <= limits.max_descriptor_set_storage_buffers
        && most(&|_| true).max(in_fragments) <= limits.max_per_stage_resources
        && outputs <= limits.max_fragment_combined_output_resources
}

/// The number of our set: the last possible one, or a moderate number if the limit is large.
pub(crate) fn reserved_set_index(most: u32) -> Option<u32> {
    const SET_MAX: u32 = 32;
    Some(most.checked_sub(1)?.min(SET_MAX))
}

/// The application's sets, then empty ones, then ours at its number.
fn padded(
    sets: &[DescriptorSetLayout],
    (number, own): (u32, DescriptorSetLayout),
    empty: DescriptorSetLayout,
) -> Vec<DescriptorSetLayout> {
    let mut all = sets.to_vec();
    all.resize(number as usize, empty);
    all.push(own);
    all
}

impl DeviceChecks {
    /// The set layouts that the driver gets.
    pub(crate) fn with_reserved_set(&self, sets: &[DescriptorSetLayout]) -> Vec<DescriptorSetLayout> {
        padded(sets, (self.reserved_set, self.reserved_set_layout), self.empty_layout)
    }

    /// Whether our set fits beside those of the application.
    fn has_room_for_set(&self, sets: &[Option<Arc<SetLayoutState>>]) -> bool {
        sets.len() <= self.reserved_set as usize
            && !sets.iter().flatten().any(|it| it.is_for_descriptor_buffers())
            && fits(sets, &self.limits)
    }

    /// The best way that a layout has room for, with the sets and push constants that the driver gets.
    fn choose_root_binding(
        &self,
        sets: &[Option<Arc<SetLayoutState>>],
        handles: &[DescriptorSetLayout],
        ranges: &[PushConstantRange],
    ) -> (Option<RootBinding>, Vec<DescriptorSetLayout>, Vec<PushConstantRange>) {
        if let Some(ranges) =
            self.root_push_offset.and_then(|tail| with_root_push_range(ranges, tail, self.push_stages))
        {
            return (Some(RootBinding::PushConstant), handles.to_vec(), ranges);
        }
        if self.has_room_for_set(sets) {
            self.uses_reserved_set.store(true, Ordering::Relaxed);
            return (Some(RootBinding::DescriptorSet), self.with_reserved_set(handles), ranges.to_vec());
        }
        (self.has_addresses.then_some(RootBinding::Specialization), handles.to_vec(), ranges.to_vec())
    }

    /// `vkCreatePipelineLayout`, with a way to our tables where there is room.
    ///
    /// # Safety
    ///
    /// The parameters must be those of a valid `vkCreatePipelineLayout` on this device that has not returned, and
    /// `next` must be the driver's function.
    pub(crate) unsafe fn create_layout(
        &self,
        next: FnCreatePipelineLayout,
        p_info: Ptr<PipelineLayoutCreateInfo>,
        p_allocator: Ptr<Opaque>,
        p_layout: Ptr<PipelineLayout>,
    ) -> Option<Result> {
        // SAFETY: VUID-vkCreatePipelineLayout-pCreateInfo-parameter, by the contract of this function; null is none.
        let info = unsafe { p_info.as_ptr().as_ref() }?;
        // SAFETY: VUID-VkPipelineLayoutCreateInfo-pPushConstantRanges-parameter: as many as it says.
        let ranges = unsafe { slice(info.p_push_constant_ranges, info.push_constant_range_count) };
        // SAFETY: VUID-VkPipelineLayoutCreateInfo-pSetLayouts-parameter: as many as it says.
        let handles = unsafe { slice(info.p_set_layouts, info.set_layout_count) };
        let sets = self.known_set_layouts(handles);
        let (mut root_binding, driver_sets, driver_ranges) = self.choose_root_binding(&sets, handles, ranges);
        let mut changed = *info;
        changed.set_layout_count = driver_sets.len() as u32;
        changed.p_set_layouts = Ptr::to_slice(&driver_sets);
        changed.push_constant_range_count = driver_ranges.len() as u32;
        changed.p_push_constant_ranges = Ptr::to_slice(&driver_ranges);
        let mut made = PipelineLayout::default();
        // SAFETY: a device that is alive by the contract of `DeviceChecks::begin`. The info is what the application asks for,
        // with sets or push constants of ours for which `choose_root_binding` found room; its lists and the place are ours.
        let own = check_success(unsafe { next(self.device, Ptr::to(&changed), Ptr::NULL, out_ptr(&mut made)) })
            .map(|()| made);
        let asked = if own.is_some() { Ptr::to(&changed) } else { p_info };
        // SAFETY: the contract of this function: the driver's function, with what the application passed to it, or with
        // the info that the driver has just taken.
        let result = unsafe { next(self.device, asked, p_allocator, p_layout) };
        let mut driver_ranges = driver_ranges;
        if own.is_none() {
            (root_binding, driver_ranges) = (None, ranges.to_vec());
        }
        let lease = own.map(|it| self.lease_layout(it));
        if result == Result::SUCCESS {
            // SAFETY: VUID-vkCreatePipelineLayout-pPipelineLayout-parameter: a place, which the call that succeeded has
            // written.
            let handle = unsafe { *p_layout.as_ptr() };
            let (ranges, frame) = (ranges.iter().map(words_of).collect(), OnceLock::new());
            let layout = PipelineLayoutState {
                handle,
                root_binding,
                own_handle: own,
                _lease: lease,
                sets,
                ranges,
                driver_ranges,
                empty_table: frame,
            };
            self.state().pipeline_layouts.insert(handle.0, Arc::new(layout));
        }
        self.destroy_unused_layouts();
        Some(result)
    }

    /// A layout of ours with such sets and push constants, by the same rule.
    pub(crate) fn create_own_layout(
        &self,
        handles: &[DescriptorSetLayout],
        ranges: &[PushConstantRange],
    ) -> Option<PipelineLayoutState> {
        let sets = self.known_set_layouts(handles);
        let (root_binding, driver_sets, driver_ranges) = self.choose_root_binding(&sets, handles, ranges);
        let mut info = PipelineLayoutCreateInfo::zeroed();
        info.s_type = StructureType::PIPELINE_LAYOUT_CREATE_INFO;
        info.set_layout_count = driver_sets.len() as u32;
        info.p_set_layouts = Ptr::to_slice(&driver_sets);
        info.push_constant_range_count = driver_ranges.len() as u32;
        info.p_push_constant_ranges = Ptr::to_slice(&driver_ranges);
        let (create, mut made) = (self.next.create_pipeline_layout?, PipelineLayout::default());
        // SAFETY: a device that is alive by the contract of `DeviceChecks::begin`; set layouts of the application's call, which
        // are alive, and of ours. The info, its lists and the place are ours.
        check_success(unsafe { create(self.device, Ptr::to(&info), Ptr::NULL, out_ptr(&mut made)) })?;
        let lease = Some(self.lease_layout(made));
        let (ranges, frame) = (ranges.iter().map(words_of).collect(), OnceLock::new());
        Some(PipelineLayoutState {
            handle: made,
            root_binding,
            own_handle: Some(made),
            _lease: lease,
            sets,
            ranges,
            driver_ranges,
            empty_table: frame,
        })
    }

    pub(crate) fn known_set_layouts(&self, handles: &[DescriptorSetLayout]) -> Vec<Option<Arc<SetLayoutState>>> {
        let state = self.state();
        // A pipeline library may leave the layout of an unused set null.
        let known = |set_layout: &DescriptorSetLayout| match set_layout.0 {
            0 => Some(Arc::default()),
            handle => state.set_layouts.get(&handle).cloned(),
        };
        handles.iter().map(known).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(stages: ShaderStageFlags, offset: u32, size: u32) -> PushConstantRange {
        PushConstantRange { stage_flags: stages, offset, size }
    }

    fn words(ranges: &[PushConstantRange]) -> Vec<[u32; 3]> {
        ranges.iter().map(|it| [it.stage_flags.0, it.offset, it.size]).collect()
    }

    const ALL: u32 = 0x3f;

    #[test]
    fn bindings_with_very_large_numbers_take_no_room() {
        let mut binding = DescriptorSetLayoutBinding::zeroed();
        (binding.binding, binding.descriptor_count) = (3, 1);
        let far = DescriptorSetLayoutBinding { binding: u32::MAX, ..binding };
        let bindings = [binding, far];
        let mut info = DescriptorSetLayoutCreateInfo::zeroed();
        (info.binding_count, info.p_bindings) = (2, Ptr::to_slice(&bindings));
        // SAFETY: an info without a chain that has as many bindings as it says.
        let read = unsafe { SetLayoutState::read(&info) };
        assert_eq!((read.bindings.len(), read.unsupported_binding), (4, Some(u32::MAX)));
        let own = Some(PipelineLayout(2));
        let layout =
            PipelineLayoutState { sets: vec![Some(Arc::new(read))], own_handle: own, ..PipelineLayoutState::empty() };
        assert!(layout.unsupported_reason().is_some_and(|it| it.contains("numbers above 65535")));
        info.binding_count = 1;
        // SAFETY: the same info, with one binding less.
        let near = unsafe { SetLayoutState::read(&info) };
        assert_eq!(
            PipelineLayoutState { sets: vec![Some(Arc::new(near))], own_handle: own, ..PipelineLayoutState::empty() }
                .unsupported_reason(),
            None
        );
    }

    #[test]
    fn our_set_is_the_last_one_or_a_modest_one() {
        assert_eq!([0, 1, 4, 8, 32].map(reserved_set_index), [None, Some(0), Some(3), Some(7), Some(31)]);
        assert_eq!([33, 1 << 20, u32::MAX].map(reserved_set_index), [Some(32); 3]);
    }

    #[test]
    fn between_the_sets_of_the_application_and_ours_are_empty_ones() {
        let [a, b, own, empty] = [1, 2, 7, 9].map(DescriptorSetLayout);
        assert_eq!(padded(&[a, b], (4, own), empty), [a, b, empty, empty, own]);
        assert_eq!(padded(&[a, b], (2, own), empty), [a, b, own]);
        assert_eq!(padded(&[], (1, own), empty), [empty, own]);
    }

    #[test]
    fn push_constants_reach_up_to_the_tail() {
        let none = with_root_push_range(&[], 120, ALL).unwrap_or_default();
        assert_eq!(words(&none), [[ALL, 120, 8]]);
        let own = [range(ShaderStageFlags::VERTEX, 0, 64), range(ShaderStageFlags::FRAGMENT, 64, 16)];
        let all = with_root_push_range(&own, 120, ALL).unwrap_or_default();
        assert_eq!(words(&all), [[1, 0, 128], [16, 64, 64], [ALL & !17, 120, 8]]);
        let layout = PipelineLayoutState { driver_ranges: all, ..PipelineLayoutState::empty() };
        assert_eq!(layout.stages_of_push(0, 64), 1);
        assert_eq!(layout.stages_of_push(64, 16), 17, "the longer range of the other stage is there, too");
        assert_eq!(layout.stages_of_push(120, 8), ALL);
        assert!(with_root_push_range(&[range(ShaderStageFlags::COMPUTE, 0, 124)], 120, ALL).is_none());
        assert!(with_root_push_range(&[range(ShaderStageFlags::COMPUTE, 0, 120)], 120, ALL).is_some());
    }

    fn sets(kind: DescriptorType, count: u32, stages: u32) -> Vec<Option<Arc<SetLayoutState>>> {
        let slot = LayoutBinding { descriptor_type: kind, count, stages, ..LayoutBinding::default() };
        vec![Some(Arc::new(SetLayoutState { bindings: vec![slot], ..SetLayoutState::default() }))]
    }

    #[test]
    fn four_storage_buffers_more_stay_below_each_limit() {
        let mut limits = PhysicalDeviceLimits::zeroed();
        limits.max_per_stage_descriptor_storage_buffers = 10;
        limits.max_descriptor_set_storage_buffers = 12;
        limits.max_per_stage_resources = 20;
        limits.max_fragment_combined_output_resources = 8;
        limits.max_color_attachments = 2;
        let (compute, fragment) = (ShaderStageFlags::COMPUTE.0, ShaderStageFlags::FRAGMENT.0);
        let buffer = DescriptorType::STORAGE_BUFFER;
        assert!(fits(&sets(buffer, 6, compute), &limits));
        assert!(!fits(&sets(buffer, 7, compute), &limits), "per stage");
        limits.max_per_stage_descriptor_storage_buffers = 100;
        assert!(fits(&sets(buffer, 8, compute), &limits));
        assert!(!fits(&sets(buffer, 9, compute), &limits), "in all sets");
        let image = DescriptorType::SAMPLED_IMAGE;
        assert!(fits(&sets(image, 16, compute), &limits));
        assert!(!fits(&sets(image, 17, compute), &limits), "resources of a stage");
        assert!(!fits(&sets(image, 15, fragment), &limits), "color attachments are resources");
        assert!(fits(&sets(DescriptorType::STORAGE_IMAGE, 2, fragment), &limits));
        assert!(!fits(&sets(DescriptorType::STORAGE_IMAGE, 3, fragment), &limits), "outputs of fragments");
        assert!(fits(&sets(DescriptorType::STORAGE_IMAGE, 3, compute), &limits));
    }
}
