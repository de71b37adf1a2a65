//! Descriptor set layouts, pools, sets, and writing them.

use ash::vk;

use crate::common::{Buffer, Gpu};
use crate::failure::Failure;

impl Gpu {
    /// A kept layout whose bindings, one descriptor each, are numbered from 0.
    pub(crate) fn set_layout(
        &self,
        types: &[vk::DescriptorType],
        stages: vk::ShaderStageFlags,
    ) -> Result<vk::DescriptorSetLayout, Failure> {
        let bindings: Vec<_> = (0..).zip(types).map(|(binding, kind)| binding_of(binding, *kind, 1, stages)).collect();
        self.set_layout_of(&vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings))
    }

    pub(crate) fn set_layout_of(
        &self,
        info: &vk::DescriptorSetLayoutCreateInfo,
    ) -> Result<vk::DescriptorSetLayout, Failure> {
        // SAFETY: `info` lives until the call returns (lifetime).
        Ok(self.destroy_at_end(unsafe { self.device.create_descriptor_set_layout(info, None) }?))
    }

    /// A pool that the caller destroys or keeps.
    pub(crate) fn unowned_descriptor_pool(
        &self,
        sets: u32,
        sizes: &[(vk::DescriptorType, u32)],
        flags: vk::DescriptorPoolCreateFlags,
    ) -> Result<vk::DescriptorPool, Failure> {
        let sizes: Vec<_> =
            sizes.iter().map(|(ty, count)| vk::DescriptorPoolSize { ty: *ty, descriptor_count: *count }).collect();
        let info = vk::DescriptorPoolCreateInfo::default().max_sets(sets).pool_sizes(&sizes).flags(flags);
        // SAFETY: `info` lives until the call returns (lifetime).
        Ok(unsafe { self.device.create_descriptor_pool(&info, None) }?)
    }

    pub(crate) fn descriptor_pool(
        &self,
        sets: u32,
        sizes: &[(vk::DescriptorType, u32)],
    ) -> Result<vk::DescriptorPool, Failure> {
        Ok(self.destroy_at_end(self.unowned_descriptor_pool(sets, sizes, vk::DescriptorPoolCreateFlags::empty())?))
    }

    pub(crate) fn descriptor_set(
        &self,
        pool: vk::DescriptorPool,
        layout: vk::DescriptorSetLayout,
    ) -> Result<vk::DescriptorSet, Failure> {
        let layouts = [layout];
        let info = vk::DescriptorSetAllocateInfo::default().descriptor_pool(pool).set_layouts(&layouts);
        // SAFETY: a live pool that only this thread uses; where it has no room, the call fails (lifetime, owner).
        Ok(unsafe { self.device.allocate_descriptor_sets(&info) }?[0])
    }

    /// Writes whole buffers into one binding, from array element `first` on.
    pub(crate) fn write_buffers(
        &self,
        set: vk::DescriptorSet,
        (binding, first): (u32, u32),
        kind: vk::DescriptorType,
        buffers: &[Buffer],
    ) {
        let infos: Vec<_> = buffers.iter().map(Buffer::descriptor).collect();
        let write = vk::WriteDescriptorSet::default()
            .dst_set(set)
            .dst_binding(binding)
            .dst_array_element(first)
            .descriptor_type(kind)
            .buffer_info(&infos);
        self.write_descriptors(&[write]);
    }

    pub(crate) fn write_image(
        &self,
        set: vk::DescriptorSet,
        binding: u32,
        kind: vk::DescriptorType,
        image: vk::DescriptorImageInfo,
    ) {
        let infos = [image];
        let write = vk::WriteDescriptorSet::default()
            .dst_set(set)
            .dst_binding(binding)
            .descriptor_type(kind)
            .image_info(&infos);
        self.write_descriptors(&[write]);
    }

    pub(crate) fn write_descriptors(&self, writes: &[vk::WriteDescriptorSet]) {
        // SAFETY: live objects. The set is this thread's, and no pending command uses it, or its binding was made with
        // UPDATE_AFTER_BIND (VUID-vkUpdateDescriptorSets-None-03047; lifetime, owner, feature).
        unsafe { self.device.update_descriptor_sets(writes, &[]) };
    }
}

impl Buffer {
    /// All of the buffer.
    pub(crate) fn descriptor(&self) -> vk::DescriptorBufferInfo {
        vk::DescriptorBufferInfo { buffer: self.handle, offset: 0, range: vk::WHOLE_SIZE }
    }
}

/// An array of `count` descriptors.
pub(crate) fn binding_of(
    binding: u32,
    kind: vk::DescriptorType,
    count: u32,
    stages: vk::ShaderStageFlags,
) -> vk::DescriptorSetLayoutBinding<'static> {
    let layout_binding = vk::DescriptorSetLayoutBinding::default().binding(binding).descriptor_type(kind);
    layout_binding.descriptor_count(count).stage_flags(stages)
}
