//! Descriptor set layouts, pools that can be exhausted, and descriptors as bytes.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use lavascope_abi::*;

use crate::calls::application_memory::ApplicationMemory;
use crate::calls::object_table::{DriverObjectTable, next_handle};

pub(crate) static LAYOUTS: DriverObjectTable<DescriptorSetLayoutData> =
    DriverObjectTable::new(HandleType::DescriptorSetLayout);
static POOLS: DriverObjectTable<DescriptorPoolData> = DriverObjectTable::new(HandleType::DescriptorPool);

/// All descriptors are as large; see the properties.
const DESCRIPTOR_BYTES: u64 = 32;

/// A descriptor set layout.
pub(crate) struct DescriptorSetLayoutData {
    bindings: Vec<BindingLayout>,
    /// The binding whose count a set may choose.
    variable: Option<u32>,
}

struct BindingLayout {
    binding: u32,
    ty: DescriptorType,
    count: u32,
}

impl BindingLayout {
    fn bytes(&self) -> u64 {
        let count = u64::from(self.count);
        if self.ty == DescriptorType::INLINE_UNIFORM_BLOCK { count } else { count * DESCRIPTOR_BYTES }
    }
}

impl DescriptorSetLayoutData {
    fn offset(&self, binding: u32) -> u64 {
        let before = self.bindings.iter().filter(|it| it.binding < binding);
        before.map(|it| it.bytes().next_multiple_of(DESCRIPTOR_BYTES)).sum()
    }
}

struct DescriptorPoolData {
    state: Mutex<DescriptorPoolState>,
}

struct DescriptorPoolState {
    sets_max: u32,
    /// Kind of descriptor, number there is, number in use.
    sizes: Vec<(DescriptorType, u64, u64)>,
    /// The size of each set.
    sets: HashMap<u64, Vec<(DescriptorType, u64)>>,
}

impl DescriptorPoolState {
    /// Takes what a set needs, if that is there.
    fn allocate_set(&mut self, needs: Vec<(DescriptorType, u64)>) -> Option<u64> {
        if self.sets.len() as u64 >= u64::from(self.sets_max) {
            return None;
        }
        let left = |ty: DescriptorType| {
            let of_type = self.sizes.iter().filter(|it| it.0 == ty);
            of_type.map(|it| it.1 - it.2).sum::<u64>()
        };
        let mut sums: Vec<(DescriptorType, u64)> = Vec::new();
        for (ty, count) in needs {
            match sums.iter_mut().find(|it| it.0 == ty) {
                Some(pair) => pair.1 += count,
                None => sums.push((ty, count)),
            }
        }
        if sums.iter().any(|it| it.1 > left(it.0)) {
            return None;
        }
        for (ty, mut count) in sums.iter().copied() {
            for size in self.sizes.iter_mut().filter(|it| it.0 == ty) {
                let taken = count.min(size.1 - size.2);
                size.2 += taken;
                count -= taken;
            }
        }
        let set = next_handle(HandleType::DescriptorSet);
        self.sets.insert(set, sums);
        Some(set)
    }

    fn free_set(&mut self, set: u64) {
        for (ty, mut count) in self.sets.remove(&set).unwrap_or_default() {
            for size in self.sizes.iter_mut().filter(|it| it.0 == ty) {
                let given = count.min(size.2);
                size.2 -= given;
                count -= given;
            }
        }
    }
}

pub(crate) fn create_descriptor_set_layout(c: ApplicationMemory<'_>, call: &CreateDescriptorSetLayoutParams) -> Result {
    let Some(info) = c.get(call.p_create_info) else { return Result::ERROR_UNKNOWN };
    let bindings: Vec<BindingLayout> = c
        .slice(info.p_bindings, info.binding_count)
        .iter()
        .map(|it| BindingLayout { binding: it.binding, ty: it.descriptor_type, count: it.descriptor_count })
        .collect();
    let flags = c.find::<DescriptorSetLayoutBindingFlagsCreateInfo>(info.p_next);
    let flags = flags.map(|it| c.slice(it.p_binding_flags, it.binding_count)).unwrap_or_default();
    let is_variable = |it: &DescriptorBindingFlags| it.0 & DescriptorBindingFlags::VARIABLE_DESCRIPTOR_COUNT.0 != 0;
    let variable = flags.iter().position(is_variable).and_then(|at| bindings.get(at)).map(|it| it.binding);
    c.write(call.p_set_layout, DescriptorSetLayout(LAYOUTS.add(DescriptorSetLayoutData { bindings, variable })));
    Result::SUCCESS
}

pub(crate) fn destroy_descriptor_set_layout(_: ApplicationMemory<'_>, call: &DestroyDescriptorSetLayoutParams) {
    LAYOUTS.remove(call.descriptor_set_layout.0);
}

pub(crate) fn get_descriptor_set_layout_support(c: ApplicationMemory<'_>, call: &GetDescriptorSetLayoutSupportParams) {
    let Some(out) = c.get_mut(call.p_support) else { return };
    out.supported = Bool32::TRUE;
    if let Some(value) = c.find_mut::<DescriptorSetVariableDescriptorCountLayoutSupport>(out.p_next) {
        let info = c.get(call.p_create_info);
        let bindings = info.map(|it| c.slice(it.p_bindings, it.binding_count)).unwrap_or_default();
        value.max_variable_descriptor_count = if bindings.is_empty() { 0 } else { 1 << 20 };
    }
}

pub(crate) fn create_descriptor_pool(c: ApplicationMemory<'_>, call: &CreateDescriptorPoolParams) -> Result {
    let Some(info) = c.get(call.p_create_info) else { return Result::ERROR_UNKNOWN };
    let sizes = c.slice(info.p_pool_sizes, info.pool_size_count);
    let state = DescriptorPoolState {
        sets_max: info.max_sets,
        sizes: sizes.iter().map(|it| (it.type_, u64::from(it.descriptor_count), 0)).collect(),
        sets: HashMap::new(),
    };
    c.write(call.p_descriptor_pool, DescriptorPool(POOLS.add(DescriptorPoolData { state: Mutex::new(state) })));
    Result::SUCCESS
}

pub(crate) fn destroy_descriptor_pool(_: ApplicationMemory<'_>, call: &DestroyDescriptorPoolParams) {
    if let Some(pool) = POOLS.remove(call.descriptor_pool.0) {
        empty(&pool);
    }
}

pub(crate) fn reset_descriptor_pool(_: ApplicationMemory<'_>, call: &ResetDescriptorPoolParams) -> Result {
    if let Some(pool) = POOLS.get(call.descriptor_pool.0) {
        empty(&pool);
    }
    Result::SUCCESS
}

fn empty(pool: &DescriptorPoolData) {
    let mut state = pool.state.lock().unwrap_or_else(PoisonError::into_inner);
    state.sets.clear();
    state.sizes.iter_mut().for_each(|it| it.2 = 0);
}

pub(crate) fn allocate_descriptor_sets(c: ApplicationMemory<'_>, call: &AllocateDescriptorSetsParams) -> Result {
    let Some(info) = c.get(call.p_allocate_info) else { return Result::ERROR_UNKNOWN };
    let Some(pool) = POOLS.get(info.descriptor_pool.0) else { return Result::ERROR_UNKNOWN };
    let counts = c.find::<DescriptorSetVariableDescriptorCountAllocateInfo>(info.p_next);
    let counts = counts.map(|it| c.slice(it.p_descriptor_counts, it.descriptor_set_count)).unwrap_or_default();
    let out = c.slice_mut(call.p_descriptor_sets, info.descriptor_set_count);
    let layouts = c.slice(info.p_set_layouts, info.descriptor_set_count);
    out.fill(DescriptorSet(0));
    let mut state = pool.state.lock().unwrap_or_else(PoisonError::into_inner);
    for (at, layout) in layouts.iter().enumerate() {
        let variable = counts.get(at).copied();
        let needs = LAYOUTS.get(layout.0).map(|it| needs(&it, variable)).unwrap_or_default();
        let Some(set) = state.allocate_set(needs) else {
            out[..at].iter_mut().for_each(|it| state.free_set(std::mem::take(it).0));
            return Result::ERROR_OUT_OF_POOL_MEMORY;
        };
        out[at] = DescriptorSet(set);
    }
    Result::SUCCESS
}

fn needs(layout: &DescriptorSetLayoutData, variable: Option<u32>) -> Vec<(DescriptorType, u64)> {
    let count = |binding_layout: &BindingLayout| match layout.variable {
        Some(binding) if binding == binding_layout.binding => variable.unwrap_or(0),
        _ => binding_layout.count,
    };
    layout.bindings.iter().map(|it| (it.ty, u64::from(count(it)))).filter(|it| it.1 > 0).collect()
}

pub(crate) fn free_descriptor_sets(c: ApplicationMemory<'_>, call: &FreeDescriptorSetsParams) -> Result {
    let Some(pool) = POOLS.get(call.descriptor_pool.0) else { return Result::SUCCESS };
    let mut state = pool.state.lock().unwrap_or_else(PoisonError::into_inner);
    for set in c.slice(call.p_descriptor_sets, call.descriptor_set_count) {
        state.free_set(set.0);
    }
    Result::SUCCESS
}

pub(crate) fn get_descriptor_set_layout_size_ext(c: ApplicationMemory<'_>, call: &GetDescriptorSetLayoutSizeEXTParams) {
    let size = LAYOUTS.get(call.layout.0).map_or(0, |it| it.offset(u32::MAX));
    c.write(call.p_layout_size_in_bytes, size);
}

pub(crate) fn get_descriptor_set_layout_binding_offset_ext(
    c: ApplicationMemory<'_>,
    call: &GetDescriptorSetLayoutBindingOffsetEXTParams,
) {
    let offset = LAYOUTS.get(call.layout.0).map_or(0, |it| it.offset(call.binding));
    c.write(call.p_offset, offset);
}

/// A descriptor is its type and the first words of what it describes, which are the same in every run.
pub(crate) fn get_descriptor_ext(c: ApplicationMemory<'_>, call: &GetDescriptorEXTParams) {
    let Some(info) = c.get(call.p_descriptor_info) else { return };
    let mut bytes = [0; DESCRIPTOR_BYTES as usize];
    bytes[..4].copy_from_slice(&info.type_.0.to_le_bytes());
    let word = match info.type_ {
        DescriptorType::SAMPLER => c.get(*info.data.p_sampler()).map_or(0, |it| it.0),
        DescriptorType::ACCELERATION_STRUCTURE_KHR => *info.data.acceleration_structure(),
        DescriptorType::SAMPLED_IMAGE
        | DescriptorType::STORAGE_IMAGE
        | DescriptorType::COMBINED_IMAGE_SAMPLER
        | DescriptorType::INPUT_ATTACHMENT => c.get(*info.data.p_sampled_image()).map_or(0, |it| it.image_view.0),
        DescriptorType::UNIFORM_BUFFER
        | DescriptorType::STORAGE_BUFFER
        | DescriptorType::UNIFORM_TEXEL_BUFFER
        | DescriptorType::STORAGE_TEXEL_BUFFER => c.get(*info.data.p_uniform_buffer()).map_or(0, |it| it.address),
        _ => 0,
    };
    bytes[8..16].copy_from_slice(&word.to_le_bytes());
    bytes[16..24].copy_from_slice(&c.device(call.device).settings.salt.to_le_bytes());
    let out = c.slice_mut(call.p_descriptor.cast::<u8>(), call.data_size);
    let size = out.len().min(bytes.len());
    out[..size].copy_from_slice(&bytes[..size]);
}

pub(crate) fn get_physical_device_descriptor_size_ext(
    _: ApplicationMemory<'_>,
    _: &GetPhysicalDeviceDescriptorSizeEXTParams,
) -> u64 {
    DESCRIPTOR_BYTES
}

pub(crate) fn write_resource_descriptors_ext(
    c: ApplicationMemory<'_>,
    call: &WriteResourceDescriptorsEXTParams,
) -> Result {
    let resources = c.slice(call.p_resources, call.resource_count);
    for (resource, to) in resources.iter().zip(c.slice(call.p_descriptors, call.resource_count)) {
        write_host_range(c, to, resource.type_.0);
    }
    Result::SUCCESS
}

pub(crate) fn write_sampler_descriptors_ext(
    c: ApplicationMemory<'_>,
    call: &WriteSamplerDescriptorsEXTParams,
) -> Result {
    for to in c.slice(call.p_descriptors, call.sampler_count) {
        write_host_range(c, to, DescriptorType::SAMPLER.0);
    }
    Result::SUCCESS
}

fn write_host_range(c: ApplicationMemory<'_>, to: &HostAddressRangeEXT, ty: i32) {
    let out = c.slice_mut(to.address.cast::<u8>(), to.size);
    out.fill(0);
    if let Some(first) = out.get_mut(..4) {
        first.copy_from_slice(&ty.to_le_bytes());
    }
}
