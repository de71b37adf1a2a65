//! The contents of descriptor sets, as far as shaders need them.
//!
//! Unknown descriptors count as large enough: null descriptors, and those that a template writes that was created
//! before the checks were enabled.

use std::sync::Arc;

use lavascope_abi::*;
use lavascope_instrument::interface::tables;
use rustc_hash::FxHashMap;

use crate::gpu::pipeline::layouts::{LayoutBinding, PipelineLayoutState, SetLayoutState};
use crate::gpu::{ChecksState, slice};
use crate::loader::pnext_chain::find_in_chain;

/// A descriptor set.
#[derive(Clone, Debug)]
pub(crate) struct DescriptorSetState {
    pub(crate) pool: u64,
    layout: Arc<SetLayoutState>,
    /// Elements of the binding that has as many as the set was allocated with.
    variable: u32,
    /// The elements of all bindings, one behind the other: draws with other sets read all of them.
    descriptors: Vec<BoundDescriptor>,
}

/// The resource that is bound to an element of a binding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BoundDescriptor {
    Unwritten,
    /// So many bytes or texels.
    Extent(u64),
    /// It has no size that shaders are checked against, for example an image.
    Written,
    /// The rest of a buffer, from the dynamic offset on.
    RestOfBuffer(u64),
    /// It is not known, and all is right.
    Unknown,
}

impl BoundDescriptor {
    pub(crate) fn word(self, offset: u32) -> u32 {
        let count = match self {
            BoundDescriptor::Unwritten => return 0,
            BoundDescriptor::Extent(count) => count,
            BoundDescriptor::Written => 1,
            BoundDescriptor::RestOfBuffer(count) => count.saturating_sub(u64::from(offset)),
            BoundDescriptor::Unknown => u64::MAX,
        };
        u32::try_from(count).unwrap_or(u32::MAX)
    }

    /// The same for a binding whose descriptors may have several types. The type that was written last has no size if
    /// it is `Written`, so no access to it can be too large.
    fn mutable_word(self) -> u32 {
        if self == BoundDescriptor::Written { u32::MAX } else { self.word(0) }
    }
}

impl DescriptorSetState {
    pub(crate) fn new(pool: u64, layout: &Arc<SetLayoutState>, variable: u32) -> DescriptorSetState {
        let mut set = DescriptorSetState { pool, layout: Arc::clone(layout), variable, descriptors: Vec::new() };
        for binding in &layout.bindings {
            let first = match binding.descriptor_type {
                DescriptorType::SAMPLER if !binding.samplers.is_empty() => BoundDescriptor::Written,
                _ if binding.is_inline() => BoundDescriptor::Extent(u64::from(binding.count)),
                _ => BoundDescriptor::Unwritten,
            };
            set.descriptors.resize(set.descriptors.len() + set.element_count(binding), first);
        }
        set
    }

    /// How many elements a binding has.
    #[inline(always)]
    fn element_count(&self, layout_binding: &LayoutBinding) -> usize {
        let count = if layout_binding.is_variable() && !layout_binding.is_inline() {
            self.variable
        } else {
            layout_binding.elements()
        };
        count as usize
    }

    /// Nothing is known any more.
    pub(crate) fn forget_contents(&mut self) {
        self.descriptors.iter_mut().for_each(|it| *it = BoundDescriptor::Unknown);
    }

    /// The places behind each other from one on: what does not fit into a binding goes into the next.
    fn element_range(&self, binding: u32, element: u32, count: u32) -> std::ops::Range<usize> {
        let counts = |it: &[LayoutBinding]| -> usize { it.iter().map(|it| self.element_count(it)).sum() };
        let before = self.layout.bindings.get(..binding as usize).map_or(self.descriptors.len(), counts);
        let first = before.saturating_add(element as usize).min(self.descriptors.len());
        first..first.saturating_add(count as usize).min(self.descriptors.len())
    }

    /// The descriptors that are written from an element of a binding on.
    pub(crate) fn write_elements(&mut self, (binding, element): (u32, u32), bound: Vec<BoundDescriptor>) {
        let places = self.element_range(binding, element, bound.len() as u32);
        self.descriptors[places].iter_mut().zip(bound).for_each(|(to, from)| *to = from);
    }
}

impl ChecksState {
    /// Sets were allocated.
    ///
    /// # Safety
    ///
    /// The parameters must be those of a `vkAllocateDescriptorSets` that succeeded and has not returned to the
    /// application.
    pub(crate) unsafe fn track_sets(&mut self, info: &DescriptorSetAllocateInfo, p_sets: Ptr<DescriptorSet>) {
        let ty = StructureType::DESCRIPTOR_SET_VARIABLE_DESCRIPTOR_COUNT_ALLOCATE_INFO;
        // SAFETY: VUID-VkDescriptorSetAllocateInfo-pNext-pNext, by the contract of this function: a valid chain; the
        // type is that of the structure.
        let counts = unsafe { find_in_chain::<DescriptorSetVariableDescriptorCountAllocateInfo>(info.p_next, ty) };
        // SAFETY: a structure of the chain, which stays until the call returns.
        let counts = counts.map(|it| unsafe { &*it.as_ptr() });
        // SAFETY: VUID-VkDescriptorSetVariableDescriptorCountAllocateInfo-pDescriptorCounts-parameter: as many as it
        // says.
        let counts = counts.map_or(&[][..], |it| unsafe { slice(it.p_descriptor_counts, it.descriptor_set_count) });
        // SAFETY: VUID-VkDescriptorSetAllocateInfo-pSetLayouts-parameter: a layout for each set.
        let layouts = unsafe { slice(info.p_set_layouts, info.descriptor_set_count) };
        // SAFETY: VUID-vkAllocateDescriptorSets-pDescriptorSets-parameter: a place for each set, which the call has
        // written.
        let sets = unsafe { slice(p_sets, info.descriptor_set_count) };
        for (at, (layout, set)) in layouts.iter().zip(sets).enumerate() {
            let Some(layout) = self.set_layouts.get(&layout.0) else { continue };
            let made = DescriptorSetState::new(info.descriptor_pool.0, layout, counts.get(at).copied().unwrap_or(0));
            self.sets.insert(set.0, made);
        }
    }

    /// # Safety
    ///
    /// The write must be one of a valid call that has not returned to the application.
    pub(crate) unsafe fn apply_write(&mut self, write: &WriteDescriptorSet) {
        // SAFETY: the contract of this function, which is that of `descriptors_of_write`.
        let bound = unsafe { self.descriptors_of_write(write) };
        if let Some(set) = self.sets.get_mut(&write.dst_set.0) {
            set.write_elements((write.dst_binding, write.dst_array_element), bound);
        }
    }

    /// The descriptors of a write, element by element.
    ///
    /// # Safety
    ///
    /// The write must be one of a valid call that has not returned to the application.
    pub(crate) unsafe fn descriptors_of_write(&self, write: &WriteDescriptorSet) -> Vec<BoundDescriptor> {
        let count = write.descriptor_count;
        match write.descriptor_type {
            DescriptorType::UNIFORM_BUFFER
            | DescriptorType::STORAGE_BUFFER
            | DescriptorType::UNIFORM_BUFFER_DYNAMIC
            | DescriptorType::STORAGE_BUFFER_DYNAMIC => {
                // SAFETY: VUID-VkWriteDescriptorSet-descriptorType-00324, by the contract of this function: with such a
                // type, an info for each descriptor.
                let infos = unsafe { slice(write.p_buffer_info, count) };
                infos.iter().map(|it| self.bound_bytes(it)).collect()
            }
            DescriptorType::UNIFORM_TEXEL_BUFFER | DescriptorType::STORAGE_TEXEL_BUFFER => {
                // SAFETY: VUID-VkWriteDescriptorSet-descriptorType-02994, by the contract of this function: with such a
                // type, a view for each descriptor.
                let views = unsafe { slice(write.p_texel_buffer_view, count) };
                let texels = |it: &BufferView| self.view_texels.get(&it.0).copied().flatten();
                views.iter().map(|it| texels(it).map_or(BoundDescriptor::Unknown, BoundDescriptor::Extent)).collect()
            }
            // The layout defines their contents.
            DescriptorType::INLINE_UNIFORM_BLOCK => Vec::new(),
            _ => vec![BoundDescriptor::Written; count as usize],
        }
    }

    fn bound_bytes(&self, buffer_info: &DescriptorBufferInfo) -> BoundDescriptor {
        let size = self.buffer_sizes.get(&buffer_info.buffer.0);
        match size {
            None => BoundDescriptor::Unknown,
            Some(size) if buffer_info.range == WHOLE_SIZE => {
                BoundDescriptor::RestOfBuffer(size.saturating_sub(buffer_info.offset))
            }
            Some(_) => BoundDescriptor::Extent(buffer_info.range),
        }
    }

    pub(crate) fn apply_copy(&mut self, copy: &CopyDescriptorSet) {
        let source = self.sets.get(&copy.src_set.0);
        let from = source.map_or_else(Vec::new, |set_state| {
            set_state.descriptors
                [set_state.element_range(copy.src_binding, copy.src_array_element, copy.descriptor_count)]
            .to_vec()
        });
        let Some(target) = self.sets.get_mut(&copy.dst_set.0) else { return };
        // Inline uniform blocks have bytes, which are copied instead of descriptors.
        if target.layout.bindings.get(copy.dst_binding as usize).is_some_and(LayoutBinding::is_inline) {
            return;
        }
        let places = target.element_range(copy.dst_binding, copy.dst_array_element, copy.descriptor_count);
        for (at, place) in places.enumerate() {
            target.descriptors[place] = from.get(at).copied().unwrap_or(BoundDescriptor::Unknown);
        }
    }

    /// The sets of a pool are no more.
    pub(crate) fn forget_pool(&mut self, pool: DescriptorPool) {
        self.sets.retain(|_, it| it.pool != pool.0);
    }

    /// How many texels a new view has.
    pub(crate) fn texels(&self, info: &BufferViewCreateInfo) -> Option<u64> {
        let format = FORMATS.iter().find(|it| it.format == info.format)?;
        let size = self.buffer_sizes.get(&info.buffer.0)?;
        let bytes = if info.range == WHOLE_SIZE { size.saturating_sub(info.offset) } else { info.range };
        bytes.checked_div(u64::from(format.block_size)).filter(|it| *it > 0)
    }
}

/// Sets, by their handles. They are looked up for every draw that binds others.
pub(crate) type DescriptorSets = FxHashMap<u64, DescriptorSetState>;

/// The descriptor set that is bound to a set number of a pipeline layout.
struct BoundSetView<'a> {
    own: &'a SetLayoutState,
    /// None if the set is unknown, or if its contents are looked up elsewhere.
    set: Option<&'a DescriptorSetState>,
    offsets: Vec<u32>,
}

impl BoundSetView<'_> {
    fn bindings(&self) -> impl Iterator<Item = (&LayoutBinding, Option<&[BoundDescriptor]>)> {
        let mut rest = self.set.map_or(&[][..], |it| &it.descriptors);
        let slots = self.set.map_or(&[][..], |it| &it.layout.bindings);
        self.own.bindings.iter().enumerate().map(move |(at, slot)| {
            let count = slots.get(at).zip(self.set).map(|(it, set)| set.element_count(it));
            let bound = count.map(|value| {
                let (own, behind) = rest.split_at(value);
                rest = behind;
                own
            });
            (slot, bound)
        })
    }

    /// Whether each binding has as many descriptors as in the layout.
    fn has_layout_counts(&self) -> bool {
        self.bindings().all(|(slot, bound)| bound.is_none_or(|it| it.len() == slot.elements() as usize))
    }

    fn counts(&self) -> Vec<u32> {
        self.bindings().map(|(slot, bound)| bound.map_or(slot.elements(), |it| it.len() as u32)).collect()
    }

    fn fill(&self, number: u32, table: &mut [u32]) {
        let mut offsets = self.offsets.iter().copied();
        for (binding, (slot, bound)) in (0..).zip(self.bindings()) {
            let mut offset = || if slot.is_dynamic() { offsets.next().unwrap_or(0) } else { 0 };
            match bound {
                Some(bound) if slot.is_mutable() => {
                    let states = bound.iter().map(|it| it.mutable_word());
                    tables::fill_binding(table, (number, binding), states);
                }
                Some(bound) => {
                    let states = bound.iter().map(|it| it.word(offset()));
                    tables::fill_binding(table, (number, binding), states);
                }
                None => {
                    let states = (0..slot.elements()).map(|_| BoundDescriptor::Unknown.word(offset()));
                    tables::fill_binding(table, (number, binding), states);
                }
            }
        }
    }
}

/// The table of descriptors for a pipeline layout: the contents of each bound set, with the dynamic offsets.
pub(crate) fn descriptor_table(
    layout: &PipelineLayoutState,
    sets: &DescriptorSets,
    bound: impl Fn(usize) -> Option<(u64, Vec<u32>)>,
) -> Vec<u32> {
    let mut words = Vec::new();
    write_descriptor_table(&mut words, layout, sets, bound);
    words
}

/// The same, in place of other words.
pub(crate) fn write_descriptor_table(
    words: &mut Vec<u32>,
    layout: &PipelineLayoutState,
    sets: &DescriptorSets,
    bound: impl Fn(usize) -> Option<(u64, Vec<u32>)>,
) {
    let find = |number: usize| {
        let own = layout.sets[number].as_deref()?;
        let found = bound(number);
        // Descriptors in buffers are looked up elsewhere.
        let set = found.as_ref().and_then(|(handle, _)| sets.get(handle)).filter(|_| !own.is_in_descriptor_buffer());
        Some(BoundSetView { own, set, offsets: found.map_or_else(Vec::new, |it| it.1) })
    };
    words.clear();
    words.extend_from_slice(layout.empty_table());
    let numbers = 0..layout.sets.len();
    let is_plain = numbers.clone().all(|number| {
        let Some(found) = find(number) else { return true };
        let is_plain = found.has_layout_counts();
        if is_plain {
            found.fill(number as u32, words);
        }
        is_plain
    });
    if !is_plain {
        let found: Vec<Option<BoundSetView<'_>>> = numbers.map(find).collect();
        let counts: Vec<_> = found.iter().map(|it| it.as_ref().map_or_else(Vec::new, BoundSetView::counts)).collect();
        *words = tables::empty_descriptor_table(&counts);
        (0..).zip(found).for_each(|(number, it)| it.iter().for_each(|it| it.fill(number, words)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(counts: &[u32]) -> Arc<SetLayoutState> {
        let slots = counts.iter().map(|count| crate::gpu::pipeline::layouts::LayoutBinding {
            descriptor_type: DescriptorType::STORAGE_BUFFER,
            count: *count,
            ..Default::default()
        });
        Arc::new(SetLayoutState { bindings: slots.collect(), ..SetLayoutState::default() })
    }

    #[test]
    fn writes_go_on_in_the_next_binding() {
        let set = DescriptorSetState::new(1, &layout(&[2, 0, 3]), 0);
        assert_eq!(set.element_range(0, 1, 3), 1..4, "the last of the first binding, and two of the third");
        assert_eq!(set.element_range(2, 2, 9), 4..5);
        assert!(set.element_range(7, 0, 1).is_empty());
    }

    #[test]
    fn bytes_that_are_copied_are_no_descriptors() {
        let slot = |kind, count| LayoutBinding { descriptor_type: kind, count, ..LayoutBinding::default() };
        let bindings = vec![slot(DescriptorType::INLINE_UNIFORM_BLOCK, 64), slot(DescriptorType::STORAGE_BUFFER, 2)];
        let layout = Arc::new(SetLayoutState { bindings, ..SetLayoutState::default() });
        let mut state = ChecksState::default();
        state.sets.insert(1, DescriptorSetState::new(0, &layout, 0));
        state.sets.insert(2, DescriptorSetState::new(0, &layout, 0));
        state
            .sets
            .get_mut(&2)
            .expect("it is there")
            .write_elements((1, 0), vec![BoundDescriptor::Extent(8), BoundDescriptor::Extent(16)]);
        let copy = |binding, element, count| {
            let mut copy = CopyDescriptorSet::zeroed();
            (copy.src_set.0, copy.src_binding, copy.src_array_element) = (1, binding, element);
            (copy.dst_set.0, copy.dst_binding, copy.dst_array_element) = (2, binding, element);
            copy.descriptor_count = count;
            copy
        };
        state.apply_copy(&copy(0, 4, 32));
        assert_eq!(
            state.sets[&2].descriptors,
            [BoundDescriptor::Extent(64), BoundDescriptor::Extent(8), BoundDescriptor::Extent(16)]
        );
        state.apply_copy(&copy(1, 1, 1));
        assert_eq!(
            state.sets[&2].descriptors,
            [BoundDescriptor::Extent(64), BoundDescriptor::Extent(8), BoundDescriptor::Unwritten]
        );
    }

    #[test]
    fn the_table_has_what_is_bound_to_each_set() {
        let dynamic = DescriptorType::STORAGE_BUFFER_DYNAMIC;
        let slot =
            |kind, count, flags| LayoutBinding { descriptor_type: kind, count, flags, ..LayoutBinding::default() };
        let variable = DescriptorBindingFlags::VARIABLE_DESCRIPTOR_COUNT.0;
        let buffer = DescriptorType::STORAGE_BUFFER;
        let first = vec![slot(dynamic, 2, 0), LayoutBinding::default(), slot(buffer, 3, 0)];
        let second = vec![slot(buffer, 1, 0), slot(buffer, 9, variable)];
        let own = [first, second].map(|bindings| Arc::new(SetLayoutState { bindings, ..SetLayoutState::default() }));
        let sets = own.iter().cloned().map(Some).chain([None]).collect();
        let mut layout = PipelineLayoutState::empty();
        layout.sets = sets;
        let mut all = DescriptorSets::default();
        all.insert(10, DescriptorSetState::new(1, &own[0], 0));
        all.insert(20, DescriptorSetState::new(1, &own[1], 2));
        all.get_mut(&10)
            .expect("it is there")
            .write_elements((0, 0), vec![BoundDescriptor::RestOfBuffer(100), BoundDescriptor::RestOfBuffer(200)]);
        all.get_mut(&10)
            .expect("it is there")
            .write_elements((2, 1), vec![BoundDescriptor::Extent(7), BoundDescriptor::Extent(7)]);
        all.get_mut(&20).expect("it is there").write_elements((1, 1), vec![BoundDescriptor::Unknown]);
        let expected = |sets: &[&[&[u32]]]| {
            let binding = |it: &&[u32]| tables::BindingState { elements: it.to_vec() };
            let set = |it: &&[&[u32]]| tables::SetState { bindings: it.iter().map(binding).collect() };
            tables::build_descriptor_table(&sets.iter().map(set).collect::<Vec<_>>())
        };
        let bound = |it: usize| [Some((10, vec![1, 2])), Some((20, Vec::new()))].get(it).cloned().flatten();
        let known: [&[&[u32]]; 3] = [&[&[99, 198], &[], &[0, 7, 7]], &[&[0], &[0, u32::MAX]], &[]];
        assert_eq!(descriptor_table(&layout, &all, bound), expected(&known));
        let none: [&[&[u32]]; 3] = [&[&[u32::MAX; 2], &[], &[u32::MAX; 3]], &[&[u32::MAX], &[u32::MAX; 9]], &[]];
        assert_eq!(descriptor_table(&layout, &all, |_| None), expected(&none), "as many as the layout says");
        assert_eq!(descriptor_table(&layout, &all, |_| Some((30, vec![5]))), expected(&none));
    }

    #[test]
    fn what_is_bound_is_reported_in_words() {
        assert_eq!(BoundDescriptor::Unwritten.word(0), 0);
        assert_eq!(BoundDescriptor::Extent(64).word(16), 64);
        assert_eq!(BoundDescriptor::RestOfBuffer(64).word(16), 48);
        assert_eq!(BoundDescriptor::Extent(1 << 40).word(0), u32::MAX);
        assert_eq!(BoundDescriptor::Unknown.word(0), u32::MAX);
    }

    /// A descriptor of several types is judged by what was written last.
    #[test]
    fn the_type_that_was_written_last_counts() {
        let mutable =
            LayoutBinding { descriptor_type: DescriptorType::MUTABLE_EXT, count: 3, ..LayoutBinding::default() };
        let layout = Arc::new(SetLayoutState { bindings: vec![mutable], ..SetLayoutState::default() });
        let mut layouts = PipelineLayoutState::empty();
        layouts.sets = vec![Some(Arc::clone(&layout))];
        let mut state = ChecksState::default();
        state.buffer_sizes.insert(7, 100);
        let mut set = DescriptorSetState::new(1, &layout, 0);
        set.write_elements((0, 0), vec![BoundDescriptor::Extent(16), BoundDescriptor::Written]);
        state.sets.insert(10, set);
        let element = |state: &ChecksState, at: u32| {
            let table = descriptor_table(&layouts, &state.sets, |_| Some((10, Vec::new())));
            let binding = table[1] as usize;
            table[(table[binding + 1] + at) as usize]
        };
        assert_eq!([0, 1, 2].map(|it| element(&state, it)), [16, u32::MAX, 0], "an image has no size");
        let info = DescriptorBufferInfo { buffer: Buffer(7), offset: 0, range: WHOLE_SIZE };
        let mut write = WriteDescriptorSet::zeroed();
        (write.dst_set, write.descriptor_count) = (DescriptorSet(10), 1);
        (write.descriptor_type, write.p_buffer_info) = (DescriptorType::STORAGE_BUFFER, Ptr::to(&info));
        write.dst_array_element = 1;
        // SAFETY: a valid write, whose info is alive.
        unsafe { state.apply_write(&write) };
        assert_eq!(element(&state, 1), 100, "as a buffer, it has one");
        (write.descriptor_type, write.p_buffer_info) = (DescriptorType::SAMPLED_IMAGE, Ptr::NULL);
        // SAFETY: a write of an image, whose info is not read.
        unsafe { state.apply_write(&write) };
        assert_eq!(element(&state, 1), u32::MAX, "as an image, it has none again");
        let mut copy = CopyDescriptorSet::zeroed();
        (copy.src_set, copy.dst_set, copy.src_array_element) = (DescriptorSet(10), DescriptorSet(10), 1);
        (copy.dst_array_element, copy.descriptor_count) = (2, 1);
        state.apply_copy(&copy);
        assert_eq!(element(&state, 2), u32::MAX, "a copy has the type of its source");
    }

    #[test]
    fn whole_buffers_and_ranges_are_distinguished() {
        let mut state = ChecksState::default();
        state.buffer_sizes.insert(7, 100);
        let info = |range| DescriptorBufferInfo { buffer: Buffer(7), offset: 40, range };
        assert_eq!(state.bound_bytes(&info(WHOLE_SIZE)), BoundDescriptor::RestOfBuffer(60));
        assert_eq!(state.bound_bytes(&info(16)), BoundDescriptor::Extent(16));
        assert_eq!(
            state.bound_bytes(&DescriptorBufferInfo { buffer: Buffer(8), ..info(16) }),
            BoundDescriptor::Unknown
        );
    }
}
