//! Descriptors: layouts, pools, sets and their contents.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use lavascope_abi as vk;
use lavascope_abi::{DescriptorBindingFlags, DescriptorType};
use lavascope_record::template::{self, TemplateElement as Kind};
use lavascope_record::{Call, Outcome, View, Views};

use crate::device::{TrackedCall, TrackedDevice};
use crate::listener::TrackerOutput;

/// A descriptor set layout.
#[derive(Debug, Default)]
pub(crate) struct SetLayout {
    pub(crate) bindings: BTreeMap<u32, SetLayoutBinding>,
    /// The number of descriptors with dynamic offsets.
    pub(crate) dynamic_count: u32,
    /// Size in bytes in a descriptor buffer, after the application queried it.
    pub(crate) size: OnceLock<u64>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct SetLayoutBinding {
    pub(crate) count: u32,
    /// Size in bytes of an inline uniform block.
    block: u32,
    /// Descriptors may be updated until submission.
    pub(crate) is_update_after_bind: bool,
    is_variable: bool,
    /// The position of its first dynamic offset within the set; none without dynamic offsets.
    pub(crate) dynamic: Option<u32>,
}

/// A descriptor set, or pushed descriptors.
#[derive(Clone, Debug, Default)]
pub(crate) struct TrackedDescriptorSet {
    pub(crate) layout: Arc<SetLayout>,
    pub(crate) descriptors: BTreeMap<u32, Vec<Option<Descriptor>>>,
    /// The contents of inline uniform blocks.
    pub(crate) blocks: BTreeMap<u32, Vec<u8>>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Descriptor {
    /// The type of the write: a mutable binding may have several.
    pub(crate) ty: DescriptorType,
    pub(crate) content: DescriptorContent,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum DescriptorContent {
    Buffer {
        buffer: u64,
        offset: u64,
        range: u64,
    },
    ImageView {
        view: u64,
        layout: i32,
    },
    BufferView(u64),
    AccelerationStructure(u64),
    /// An acceleration structure of `VK_NV_ray_tracing`, with memory of its own.
    AccelerationStructureNv(u64),
    /// An acceleration structure that is only known by its address.
    AccelerationStructureAddress(u64),
    TensorView(u64),
}

/// New contents for consecutive descriptors, or for bytes of an inline uniform block.
pub(crate) struct DescriptorWrite {
    binding: u32,
    element: u32,
    descriptors: Vec<Option<Descriptor>>,
    bytes: Vec<u8>,
}

#[derive(Default)]
pub(crate) struct DescriptorPool {
    sets: Vec<u64>,
}

/// The tracker follows at most this many descriptors in a binding; a corrupt record may contain any number.
const COUNT_MAX: u32 = 1 << 20;
/// Larger than any device supports for an inline uniform block.
const BLOCK_MAX: u32 = 1 << 16;

impl TrackedDevice {
    pub(crate) fn track_descriptors(&mut self, tracked: TrackedCall<'_>, out: &mut TrackerOutput<'_>) -> bool {
        match (tracked.call, tracked.outcome) {
            (Call::CreateDescriptorSetLayout(params), Some(Outcome::CreateDescriptorSetLayout(made))) => {
                if let (Some(info), Some(handle)) = (params.p_create_info(), made.p_set_layout()) {
                    self.set_layouts.insert(handle.0, Arc::new(SetLayout::from_create_info(info)));
                }
            }
            (Call::CreatePipelineLayout(params), Some(Outcome::CreatePipelineLayout(made))) => {
                if let (Some(info), Some(handle)) = (params.p_create_info(), made.p_pipeline_layout()) {
                    let layouts = info.p_set_layouts().iter().map(|it| self.set_layouts.get(it.0).cloned());
                    let layouts = layouts.collect();
                    self.pipeline_layouts.insert(handle.0, layouts);
                }
            }
            (Call::CreateDescriptorPool(_), Some(Outcome::CreateDescriptorPool(made))) => {
                if let Some(handle) = made.p_descriptor_pool() {
                    self.descriptor_pools.insert(handle.0, DescriptorPool::default());
                }
            }
            (Call::CreateDescriptorUpdateTemplate(params), Some(Outcome::CreateDescriptorUpdateTemplate(made))) => {
                if let (Some(info), Some(handle)) = (params.p_create_info(), made.p_descriptor_update_template()) {
                    self.templates.insert(handle.0, info.pipeline_bind_point);
                }
            }
            (Call::AllocateDescriptorSets(params), Some(Outcome::AllocateDescriptorSets(made))) => {
                if let Some(info) = params.p_allocate_info() {
                    self.allocate_sets(info, made.p_descriptor_sets());
                }
            }
            (Call::DestroyDescriptorSetLayout(params), None) => {
                self.set_layouts.remove(params.descriptor_set_layout.0);
            }
            (Call::DestroyPipelineLayout(params), None) => drop(self.pipeline_layouts.remove(params.pipeline_layout.0)),
            (Call::DestroyDescriptorUpdateTemplate(params), None) => {
                self.templates.remove(params.descriptor_update_template.0);
            }
            _ => return self.track_set_contents(tracked, out),
        }
        true
    }

    fn track_set_contents(&mut self, tracked: TrackedCall<'_>, out: &mut TrackerOutput<'_>) -> bool {
        match (tracked.call, tracked.outcome) {
            (Call::DestroyDescriptorPool(params), None) => {
                let pool = self.descriptor_pools.remove(params.descriptor_pool.0).unwrap_or_default();
                pool.sets.iter().for_each(|it| drop(self.sets.remove(*it)));
            }
            (Call::ResetDescriptorPool(params), None) => {
                let pool = self.descriptor_pools.get_mut(params.descriptor_pool.0).map(std::mem::take);
                pool.unwrap_or_default().sets.iter().for_each(|it| drop(self.sets.remove(*it)));
            }
            (Call::FreeDescriptorSets(params), None) => {
                let freed = params.p_descriptor_sets();
                if let Some(pool) = self.descriptor_pools.get_mut(params.descriptor_pool.0) {
                    pool.sets.retain(|it| !freed.iter().any(|freed| freed.0 == *it));
                }
                freed.iter().for_each(|it| drop(self.sets.remove(it.0)));
            }
            (Call::UpdateDescriptorSets(params), None) => {
                for write in params.p_descriptor_writes().iter() {
                    self.update(write.dst_set.0, &[DescriptorWrite::from_write(write)], out);
                }
                for copy in params.p_descriptor_copies().iter() {
                    self.copy_descriptors(copy.get(), out);
                }
            }
            (Call::UpdateDescriptorSetWithTemplate(params), None) => match writes_from_template(*params, params.p_data)
            {
                Some(writes) => self.update(params.descriptor_set.0, &writes, out),
                None => out.report_untracked("the data of a template"),
            },
            _ => return false,
        }
        true
    }

    fn allocate_sets(&mut self, info: View<'_, vk::DescriptorSetAllocateInfo>, made: &[vk::DescriptorSet]) {
        let variable = info.chained::<vk::DescriptorSetVariableDescriptorCountAllocateInfo>();
        let counts = variable.map_or(&[][..], |it| it.p_descriptor_counts());
        for (at, (layout, set)) in info.p_set_layouts().iter().zip(made).enumerate() {
            let Some(layout) = self.set_layouts.get(layout.0).cloned() else { continue };
            self.sets.insert(set.0, TrackedDescriptorSet::new(layout, counts.get(at).copied()));
            if let Some(pool) = self.descriptor_pools.get_mut(info.descriptor_pool.0) {
                pool.sets.push(set.0);
            }
        }
    }

    fn update(&mut self, set: u64, writes: &[DescriptorWrite], out: &mut TrackerOutput<'_>) {
        match self.sets.get_mut(set) {
            Some(set) => writes.iter().for_each(|it| set.write(it)),
            None => out.report_untracked("a descriptor set that nobody allocated"),
        }
    }

    fn copy_descriptors(&mut self, descriptor_set: &vk::CopyDescriptorSet, out: &mut TrackerOutput<'_>) {
        let Some(src) = self.sets.get(descriptor_set.src_set.0) else {
            out.report_untracked("a descriptor set that nobody allocated");
            return;
        };
        let count = descriptor_set.descriptor_count as usize;
        let places = src.elements_from(descriptor_set.src_binding, descriptor_set.src_array_element).take(count);
        let descriptors = places.map(|(binding, element)| src.get(binding, element)).collect();
        let block = src
            .blocks
            .get(&descriptor_set.src_binding)
            .and_then(|all| all.get(descriptor_set.src_array_element as usize..));
        let bytes = block.map_or(Vec::new(), |all| all[..count.min(all.len())].to_vec());
        let write = DescriptorWrite {
            binding: descriptor_set.dst_binding,
            element: descriptor_set.dst_array_element,
            descriptors,
            bytes,
        };
        self.update(descriptor_set.dst_set.0, &[write], out);
    }
}

impl SetLayout {
    fn from_create_info(info: View<'_, vk::DescriptorSetLayoutCreateInfo>) -> SetLayout {
        let flags = info.chained::<vk::DescriptorSetLayoutBindingFlagsCreateInfo>();
        let flags = flags.map_or(&[][..], |it| it.p_binding_flags());
        let mut layout = SetLayout::default();
        let mut all: Vec<_> = info.p_bindings().iter().enumerate().collect();
        all.sort_by_key(|(_, it)| it.binding);
        for (at, layout_binding) in all {
            let flags = flags.get(at).map_or(0, |it| it.0);
            let is_dynamic = [DescriptorType::UNIFORM_BUFFER_DYNAMIC, DescriptorType::STORAGE_BUFFER_DYNAMIC]
                .contains(&layout_binding.descriptor_type);
            let (count, block) = match layout_binding.descriptor_type {
                // The count is a size in bytes. The block shares no memory with other resources.
                DescriptorType::INLINE_UNIFORM_BLOCK => (0, layout_binding.descriptor_count.min(BLOCK_MAX)),
                _ => (layout_binding.descriptor_count.min(COUNT_MAX), 0),
            };
            let binding = SetLayoutBinding {
                count,
                block,
                is_update_after_bind: flags & DescriptorBindingFlags::UPDATE_AFTER_BIND.0 != 0,
                is_variable: flags & DescriptorBindingFlags::VARIABLE_DESCRIPTOR_COUNT.0 != 0,
                dynamic: is_dynamic.then_some(layout.dynamic_count),
            };
            layout.dynamic_count = layout.dynamic_count.saturating_add(if is_dynamic { count } else { 0 });
            layout.bindings.insert(layout_binding.binding, binding);
        }
        layout
    }
}

impl TrackedDescriptorSet {
    /// An empty set. `variable` is the count of the variable-size binding.
    pub(crate) fn new(layout: Arc<SetLayout>, variable: Option<u32>) -> TrackedDescriptorSet {
        let count = |layout_binding: &SetLayoutBinding| match variable {
            Some(count) if layout_binding.is_variable => count.min(layout_binding.count),
            None if layout_binding.is_variable => 0,
            _ => layout_binding.count,
        };
        let descriptors =
            layout.bindings.iter().map(|(number, it)| (*number, vec![None; count(it) as usize])).collect();
        let blocks = layout.bindings.iter().filter(|it| it.1.block > 0);
        let blocks = blocks.map(|(number, it)| (*number, vec![0; it.block as usize])).collect();
        TrackedDescriptorSet { layout, descriptors, blocks }
    }

    pub(crate) fn get(&self, binding: u32, element: u32) -> Option<Descriptor> {
        *self.descriptors.get(&binding)?.get(element as usize)?
    }

    pub(crate) fn write(&mut self, write: &DescriptorWrite) {
        let block = self.blocks.get_mut(&write.binding).and_then(|all| all.get_mut(write.element as usize..));
        for (slot, byte) in block.unwrap_or_default().iter_mut().zip(&write.bytes) {
            *slot = *byte;
        }
        let places: Vec<(u32, u32)> =
            self.elements_from(write.binding, write.element).take(write.descriptors.len()).collect();
        for ((binding, element), descriptor) in places.into_iter().zip(&write.descriptors) {
            let slot = self.descriptors.get_mut(&binding).and_then(|it| it.get_mut(element as usize));
            if let Some(slot) = slot {
                *slot = *descriptor;
            }
        }
    }

    /// Consecutive elements, starting at one. After the last element of a binding comes the first of the next binding.
    fn elements_from(&self, binding: u32, element: u32) -> impl Iterator<Item = (u32, u32)> {
        let from = move |number: u32| if number == binding { element } else { 0 };
        self.descriptors
            .range(binding..)
            .flat_map(move |(number, all)| (from(*number)..all.len() as u32).map(|it| (*number, it)))
    }
}

impl DescriptorWrite {
    pub(crate) fn from_write(descriptor_set: View<'_, vk::WriteDescriptorSet>) -> DescriptorWrite {
        let ty = descriptor_set.descriptor_type;
        let descriptors: Vec<Option<Descriptor>> = match template::element_of(ty) {
            Some(Kind::Struct(layout)) if std::ptr::eq(layout, &vk::DESCRIPTOR_BUFFER_INFO_LAYOUT) => {
                descriptor_set.p_buffer_info().iter().map(|it| buffer_descriptor(ty, it.get())).collect()
            }
            Some(Kind::Struct(_)) => {
                descriptor_set.p_image_info().iter().map(|it| image_descriptor(ty, it.get())).collect()
            }
            Some(Kind::Handle(vk::HandleType::BufferView)) => {
                descriptor_set.p_texel_buffer_view().iter().map(|it| handle_descriptor(ty, it.0)).collect()
            }
            Some(Kind::Handle(_) | Kind::Number) => {
                chained_handles(descriptor_set).map(|value| handle_descriptor(ty, value)).collect()
            }
            Some(Kind::Bytes) | None => Vec::new(),
        };
        let block = descriptor_set.chained::<vk::WriteDescriptorSetInlineUniformBlock>();
        let bytes = block.map_or(Vec::new(), |it| it.p_data().to_vec());
        DescriptorWrite {
            binding: descriptor_set.dst_binding,
            element: descriptor_set.dst_array_element,
            descriptors,
            bytes,
        }
    }

    pub(crate) fn from_writes(writes: Views<'_, vk::WriteDescriptorSet>) -> Vec<DescriptorWrite> {
        writes.iter().map(DescriptorWrite::from_write).collect()
    }
}

/// The data of a template update, which the record has after the entries. None if the record does not have it.
pub(crate) fn writes_from_template<T: vk::Structure>(
    view: View<'_, T>,
    data: vk::Ptr<vk::Opaque>,
) -> Option<Vec<DescriptorWrite>> {
    let at = |offset: u64| vk::Ptr::<u64>::new(data.0 + offset);
    let count = *view.value(at(0))?;
    let words = view.values(at(8), count.checked_mul(4)?);
    let mut cursor = 8 + count * template::ENTRY_SIZE;
    let mut writes = Vec::new();
    for words in words.chunks_exact(4) {
        let entry = template::entry_from([words[0], words[1], words[2], words[3]]);
        let (ty, count) = (entry.descriptor_type, u64::from(entry.descriptor_count));
        let Some(kind) = template::element_of(ty) else { continue };
        let first = data.0 + cursor;
        let descriptors = match kind {
            Kind::Struct(layout) if std::ptr::eq(layout, &vk::DESCRIPTOR_BUFFER_INFO_LAYOUT) => {
                view.values(vk::Ptr::new(first), count).iter().map(|it| buffer_descriptor(ty, it)).collect()
            }
            Kind::Struct(_) => {
                view.values(vk::Ptr::new(first), count).iter().map(|it| image_descriptor(ty, it)).collect()
            }
            Kind::Handle(_) | Kind::Number => {
                view.values(vk::Ptr::<u64>::new(first), count).iter().map(|it| handle_descriptor(ty, *it)).collect()
            }
            Kind::Bytes => Vec::new(),
        };
        let bytes = match kind {
            Kind::Bytes => view.values(vk::Ptr::<u8>::new(first), count).to_vec(),
            _ => Vec::new(),
        };
        cursor += template::dense_size(&entry).unwrap_or(0);
        writes.push(DescriptorWrite {
            binding: entry.dst_binding,
            element: entry.dst_array_element,
            descriptors,
            bytes,
        });
    }
    Some(writes)
}

/// Handles or addresses in a structure that is chained to a write.
fn chained_handles(descriptor_set: View<'_, vk::WriteDescriptorSet>) -> impl Iterator<Item = u64> {
    let structures = descriptor_set.chained::<vk::WriteDescriptorSetAccelerationStructureKHR>();
    let structures = structures.map_or(&[][..], |it| it.p_acceleration_structures()).iter().map(|it| it.0);
    let bound = descriptor_set.chained::<vk::WriteDescriptorSetAccelerationStructureNV>();
    let bound = bound.map_or(&[][..], |it| it.p_acceleration_structures()).iter().map(|it| it.0);
    let partitioned = descriptor_set.chained::<vk::WriteDescriptorSetPartitionedAccelerationStructureNV>();
    let partitioned = partitioned.map_or(&[][..], |it| it.p_acceleration_structures()).iter().copied();
    let tensors = descriptor_set.chained::<vk::WriteDescriptorSetTensorARM>();
    let tensors = tensors.map_or(&[][..], |it| it.p_tensor_views()).iter().map(|it| it.0);
    structures.chain(bound).chain(partitioned).chain(tensors)
}

fn buffer_descriptor(ty: DescriptorType, buffer_info: &vk::DescriptorBufferInfo) -> Option<Descriptor> {
    let content = DescriptorContent::Buffer {
        buffer: buffer_info.buffer.0,
        offset: buffer_info.offset,
        range: buffer_info.range,
    };
    (buffer_info.buffer.0 != 0).then_some(Descriptor { ty, content })
}

fn image_descriptor(ty: DescriptorType, image_info: &vk::DescriptorImageInfo) -> Option<Descriptor> {
    let has_image = ty != DescriptorType::SAMPLER && image_info.image_view.0 != 0;
    let content = DescriptorContent::ImageView { view: image_info.image_view.0, layout: image_info.image_layout.0 };
    has_image.then_some(Descriptor { ty, content })
}

fn handle_descriptor(ty: DescriptorType, handle: u64) -> Option<Descriptor> {
    let content = match ty {
        DescriptorType::UNIFORM_TEXEL_BUFFER | DescriptorType::STORAGE_TEXEL_BUFFER => {
            DescriptorContent::BufferView(handle)
        }
        DescriptorType::ACCELERATION_STRUCTURE_KHR => DescriptorContent::AccelerationStructure(handle),
        DescriptorType::ACCELERATION_STRUCTURE_NV => DescriptorContent::AccelerationStructureNv(handle),
        DescriptorType::PARTITIONED_ACCELERATION_STRUCTURE_NV => {
            DescriptorContent::AccelerationStructureAddress(handle)
        }
        DescriptorType::TENSOR_ARM => DescriptorContent::TensorView(handle),
        _ => return None,
    };
    (handle != 0).then_some(Descriptor { ty, content })
}
