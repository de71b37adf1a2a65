//! Layouts of descriptor sets and pipelines, and our set in them.

use std::sync::Arc;

use lavascope_abi::*;

use super::{Gpu, TABLES, arena::is_fine, place, slice};
use crate::application::find_in_chain;

/// Sets with more descriptors than these are not described to shaders at each draw.
const DESCRIPTORS_MAX: u64 = 1 << 16;

/// The layout of a descriptor set. Two that are equal are compatible.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SetLayout {
    pub(super) flags: u32,
    /// By number; of those that are not there the count is zero.
    pub(super) bindings: Vec<Slot>,
}

/// A binding.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Slot {
    pub(super) kind: DescriptorType,
    pub(super) count: u32,
    pub(super) stages: u32,
    pub(super) flags: u32,
    /// Immutable samplers.
    pub(super) samplers: Vec<u64>,
}

/// The layout of a pipeline.
#[derive(Debug)]
pub(super) struct Layout {
    /// As the application sees it.
    pub(super) handle: PipelineLayout,
    /// One of ours with our set, if there is room for it.
    pub(super) own: Option<PipelineLayout>,
    /// None where the layout of a set is not known.
    pub(super) sets: Vec<Option<Arc<SetLayout>>>,
    ranges: Vec<[u32; 3]>,
}

impl SetLayout {
    /// # Safety
    ///
    /// The info must be valid, with its chain.
    pub(super) unsafe fn read(info: &DescriptorSetLayoutCreateInfo) -> SetLayout {
        let ty = StructureType::DESCRIPTOR_SET_LAYOUT_BINDING_FLAGS_CREATE_INFO;
        // SAFETY: the caller's word, and the structure of this type.
        let (all, flags) = unsafe {
            let flags = find_in_chain::<DescriptorSetLayoutBindingFlagsCreateInfo>(info.p_next, ty);
            let flags = flags.map(|it| &*it.as_ptr());
            let flags = flags.map_or(&[][..], |it| slice(it.p_binding_flags, it.binding_count));
            (slice(info.p_bindings, info.binding_count), flags)
        };
        let mut layout = SetLayout { flags: info.flags.0, bindings: Vec::new() };
        for (at, it) in all.iter().enumerate() {
            let number = it.binding as usize;
            if layout.bindings.len() <= number {
                layout.bindings.resize_with(number + 1, Slot::default);
            }
            let samples =
                matches!(it.descriptor_type, DescriptorType::SAMPLER | DescriptorType::COMBINED_IMAGE_SAMPLER);
            // SAFETY: the caller's word; there are as many samplers as descriptors, where there are any.
            let samplers = if samples { unsafe { slice(it.p_immutable_samplers, it.descriptor_count) } } else { &[] };
            layout.bindings[number] = Slot {
                kind: it.descriptor_type,
                count: it.descriptor_count,
                stages: it.stage_flags.0,
                flags: flags.get(at).map_or(0, |it| it.0),
                samplers: samplers.iter().map(|it| it.0).collect(),
            };
        }
        layout
    }

    pub(super) fn is_push(&self) -> bool {
        self.flags & DescriptorSetLayoutCreateFlags::PUSH_DESCRIPTOR.0 != 0
    }

    fn is_in_buffer(&self) -> bool {
        self.flags & DescriptorSetLayoutCreateFlags::DESCRIPTOR_BUFFER_EXT.0 != 0
    }

    /// How many dynamic offsets a set of this layout takes.
    pub(super) fn dynamic_count(&self) -> usize {
        self.bindings.iter().filter(|it| it.is_dynamic()).map(|it| it.count as usize).sum()
    }
}

impl Slot {
    pub(super) fn is_dynamic(&self) -> bool {
        matches!(self.kind, DescriptorType::UNIFORM_BUFFER_DYNAMIC | DescriptorType::STORAGE_BUFFER_DYNAMIC)
    }

    pub(super) fn is_inline(&self) -> bool {
        self.kind == DescriptorType::INLINE_UNIFORM_BLOCK
    }

    pub(super) fn is_variable(&self) -> bool {
        self.flags & DescriptorBindingFlags::VARIABLE_DESCRIPTOR_COUNT.0 != 0
    }

    /// Whether descriptors may be written after a draw was recorded.
    pub(super) fn is_late(&self) -> bool {
        let late = DescriptorBindingFlags::UPDATE_AFTER_BIND.0 | DescriptorBindingFlags::UPDATE_UNUSED_WHILE_PENDING.0;
        self.flags & late != 0
    }

    /// How many elements there are; an inline block is one.
    pub(super) fn elements(&self) -> u32 {
        if self.is_inline() { self.count.min(1) } else { self.count }
    }
}

impl Layout {
    /// Whether sets up to this one, bound with either of the two, are bound for the other as well.
    pub(super) fn is_compatible(&self, other: &Layout, set: usize) -> bool {
        let (own, others) = (self.sets.get(..=set), other.sets.get(..=set));
        self.ranges == other.ranges && own.is_some() && own == others
    }

    /// Why shaders with this layout cannot be checked.
    pub(super) fn obstacle(&self) -> Option<&'static str> {
        if self.own.is_none() {
            return Some(
                "a pipeline layout leaves no descriptor set, or too few storage buffers, for checks: its shaders are not checked",
            );
        }
        let mut count = 0;
        for it in &self.sets {
            let Some(it) = it else {
                return Some("a pipeline layout has a set that is not known: its shaders are not checked");
            };
            count += it.bindings.iter().map(|it| u64::from(it.elements())).sum::<u64>();
        }
        (count > DESCRIPTORS_MAX)
            .then_some("a pipeline layout has more than 65536 descriptors: its shaders are not checked yet")
    }

    pub(super) fn slot(&self, set: u32, binding: u32) -> Option<&Slot> {
        let slot = self.sets.get(set as usize)?.as_ref()?.bindings.get(binding as usize)?;
        (slot.count > 0).then_some(slot)
    }
}

impl Gpu {
    /// What the driver is asked for instead: the application's sets, empty ones, and ours.
    fn extended(&self, info: &PipelineLayoutCreateInfo, sets: &[DescriptorSetLayout]) -> Vec<DescriptorSetLayout> {
        let mut all = sets.to_vec();
        debug_assert_eq!(all.len(), info.set_layout_count as usize);
        all.resize(self.set as usize, self.empty_layout);
        all.push(self.set_layout);
        all
    }

    /// Whether our set fits beside those of the application.
    fn has_room(&self, sets: &[Option<Arc<SetLayout>>]) -> bool {
        let all = || sets.iter().flatten();
        let buffers = |stage: u32| {
            let slots = all().flat_map(|it| &it.bindings).filter(|it| it.stages & stage != 0);
            let is_it =
                |it: &&Slot| matches!(it.kind, DescriptorType::STORAGE_BUFFER | DescriptorType::STORAGE_BUFFER_DYNAMIC);
            slots.filter(is_it).fold(TABLES as u32, |all, it| all.saturating_add(it.count))
        };
        let most = (0..31).map(|bit| buffers(1 << bit)).max().unwrap_or(0);
        sets.len() <= self.set as usize
            && !all().any(|it| it.is_in_buffer())
            && most <= self.limits.max_per_stage_descriptor_storage_buffers
            && buffers(u32::MAX) <= self.limits.max_descriptor_set_storage_buffers
    }

    /// `vkCreatePipelineLayout`, with our set where there is room.
    ///
    /// # Safety
    ///
    /// The parameters must be those of a valid call, and `next` the driver's function.
    pub(super) unsafe fn create_layout(
        &self,
        next: FnCreatePipelineLayout,
        p_info: Ptr<PipelineLayoutCreateInfo>,
        p_allocator: Ptr<Opaque>,
        p_layout: Ptr<PipelineLayout>,
    ) -> Option<Result> {
        // SAFETY: the caller's word.
        let (info, handles, ranges) = unsafe {
            let info = p_info.as_ptr().as_ref()?;
            let ranges = slice(info.p_push_constant_ranges, info.push_constant_range_count);
            (info, slice(info.p_set_layouts, info.set_layout_count), ranges)
        };
        let known = self.state().set_layouts.clone();
        let sets: Vec<_> = handles.iter().map(|it| known.get(&it.0).cloned()).collect();
        let mut own = None;
        let mut changed = *info;
        let extended = self.extended(info, handles);
        if self.has_room(&sets) {
            changed.set_layout_count = extended.len() as u32;
            changed.p_set_layouts = Ptr::to_slice(&extended);
            let mut made = PipelineLayout::default();
            // SAFETY: what the application asks for, with sets of ours behind its own, and a place of ours.
            own = is_fine(unsafe { next(self.device, Ptr::to(&changed), Ptr::NULL, place(&mut made)) }).map(|()| made);
        }
        let asked = if own.is_some() { Ptr::to(&changed) } else { p_info };
        // SAFETY: as above, or the application's own parameters.
        let result = unsafe { next(self.device, asked, p_allocator, p_layout) };
        let mut state = self.state();
        state.own_layouts.extend(own);
        if result == Result::SUCCESS {
            // SAFETY: a call that succeeded wrote the layout.
            let handle = unsafe { *p_layout.as_ptr() };
            let ranges = ranges.iter().map(|it| [it.stage_flags.0, it.offset, it.size]).collect();
            state.layouts.insert(handle.0, Arc::new(Layout { handle, own, sets, ranges }));
        }
        Some(result)
    }
}
