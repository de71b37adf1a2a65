//! Descriptor sets: a layout, and two sets for a compute pipeline in command buffer 2.

use lavascope_abi::*;
use lavascope_state::Collector;

use super::*;

pub(crate) const NO_FLAGS: DescriptorBindingFlags = DescriptorBindingFlags(0);

/// Layout, pipeline layout, pool and set 1; each binding has a type, a count and flags.
pub(crate) fn make_set(app: &mut App<Collector>, bindings: &[(DescriptorType, u32, DescriptorBindingFlags)]) {
    let flags: Vec<DescriptorBindingFlags> = bindings.iter().map(|it| it.2).collect();
    let list: Vec<DescriptorSetLayoutBinding> = bindings
        .iter()
        .enumerate()
        .map(|(at, pair)| DescriptorSetLayoutBinding {
            binding: at as u32,
            descriptor_type: pair.0,
            descriptor_count: pair.1,
            ..DescriptorSetLayoutBinding::zeroed()
        })
        .collect();
    let chained = DescriptorSetLayoutBindingFlagsCreateInfo {
        binding_count: flags.len() as u32,
        p_binding_flags: Ptr::to_slice(&flags),
        ..DescriptorSetLayoutBindingFlagsCreateInfo::zeroed()
    };
    let info = DescriptorSetLayoutCreateInfo {
        p_next: Ptr::to(&chained).cast(),
        binding_count: list.len() as u32,
        p_bindings: Ptr::to_slice(&list),
        ..DescriptorSetLayoutCreateInfo::zeroed()
    };
    app.call(
        Command::CreateDescriptorSetLayout,
        &CreateDescriptorSetLayoutParams {
            device: device(DEVICE),
            p_create_info: Ptr::to(&info),
            p_allocator: Ptr::NULL,
            p_set_layout: Ptr::to(&set_layout(1)),
        },
    );
    allocate_sets(app);
}

/// The pipeline layout, the pool, and two sets.
pub(crate) fn allocate_sets(app: &mut App<Collector>) {
    let layouts = [set_layout(1)];
    let info = PipelineLayoutCreateInfo {
        set_layout_count: 1,
        p_set_layouts: Ptr::to_slice(&layouts),
        ..PipelineLayoutCreateInfo::zeroed()
    };
    app.call(
        Command::CreatePipelineLayout,
        &CreatePipelineLayoutParams {
            device: device(DEVICE),
            p_create_info: Ptr::to(&info),
            p_allocator: Ptr::NULL,
            p_pipeline_layout: Ptr::to(&pipeline_layout(1)),
        },
    );
    app.call(
        Command::CreateDescriptorPool,
        &CreateDescriptorPoolParams {
            device: device(DEVICE),
            p_create_info: Ptr::to(&DescriptorPoolCreateInfo::zeroed()),
            p_allocator: Ptr::NULL,
            p_descriptor_pool: Ptr::to(&descriptor_pool(1)),
        },
    );
    for serial in 1..3 {
        let info = DescriptorSetAllocateInfo {
            descriptor_pool: descriptor_pool(1),
            descriptor_set_count: 1,
            p_set_layouts: Ptr::to_slice(&layouts),
            ..DescriptorSetAllocateInfo::zeroed()
        };
        app.call(
            Command::AllocateDescriptorSets,
            &AllocateDescriptorSetsParams {
                device: device(DEVICE),
                p_allocate_info: Ptr::to(&info),
                p_descriptor_sets: Ptr::to(&descriptor_set(serial)),
            },
        );
    }
}

pub(crate) fn buffer_info(serial: u64, offset: u64, range: u64) -> DescriptorBufferInfo {
    DescriptorBufferInfo { buffer: buffer(serial), offset, range }
}

pub(crate) fn write_buffers(
    app: &mut App<Collector>,
    binding: u32,
    ty: DescriptorType,
    infos: &[DescriptorBufferInfo],
) {
    let write = WriteDescriptorSet {
        dst_set: descriptor_set(1),
        dst_binding: binding,
        descriptor_count: infos.len() as u32,
        descriptor_type: ty,
        p_buffer_info: Ptr::to_slice(infos),
        ..WriteDescriptorSet::zeroed()
    };
    update_sets(app, &[write], &[]);
}

pub(crate) fn update_sets(app: &mut App<Collector>, writes: &[WriteDescriptorSet], copies: &[CopyDescriptorSet]) {
    app.call(
        Command::UpdateDescriptorSets,
        &UpdateDescriptorSetsParams {
            device: device(DEVICE),
            descriptor_write_count: writes.len() as u32,
            p_descriptor_writes: Ptr::to_slice(writes),
            descriptor_copy_count: copies.len() as u32,
            p_descriptor_copies: Ptr::to_slice(copies),
        },
    );
}

pub(crate) fn bind_set(app: &mut App<Collector>, set: u64, offsets: &[u32]) {
    app.bind_pipeline(2, PipelineBindPoint::COMPUTE, 1);
    app.call(
        Command::CmdBindDescriptorSets,
        &CmdBindDescriptorSetsParams {
            command_buffer: command_buffer(2),
            pipeline_bind_point: PipelineBindPoint::COMPUTE,
            layout: pipeline_layout(1),
            first_set: 0,
            descriptor_set_count: 1,
            p_descriptor_sets: Ptr::to(&descriptor_set(set)),
            dynamic_offset_count: offsets.len() as u32,
            p_dynamic_offsets: Ptr::to_slice(offsets),
        },
    );
}

pub(crate) fn dispatch(app: &mut App<Collector>, groups: u32) {
    app.call(
        Command::CmdDispatch,
        &CmdDispatchParams {
            command_buffer: command_buffer(2),
            group_count_x: groups,
            group_count_y: 1,
            group_count_z: 1,
        },
    );
}
