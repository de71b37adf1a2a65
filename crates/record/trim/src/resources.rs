//! Resources with contents, and the objects that lead to them: buffers, images, query pools, events, and their views
//! and descriptors.

use std::collections::BTreeMap;

use lavascope_abi as vk;
use lavascope_abi::{DescriptorType, HandleType, ObjectId};
use lavascope_record::{Call, Outcome, View};
use rustc_hash::{FxHashMap, FxHashSet};

pub(crate) fn id(raw: u64) -> ObjectId {
    ObjectId::from_raw(raw).unwrap_or_default()
}

/// The effect of a command on a resource, as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    Read,
    /// It writes, and what it does not write stays.
    Write,
    /// It may read and write any part.
    ReadWrite,
    /// All of its contents are replaced.
    Discard,
}

#[derive(Clone, Copy)]
struct TrackedImage {
    mips: u32,
    layers: u32,
    format: vk::Format,
    is_3d: bool,
}

#[derive(Clone, Copy)]
struct TrackedView {
    resource: ObjectId,
    is_whole: bool,
}

/// A descriptor set, by binding and element; what came by a template has none.
#[derive(Clone, Default)]
pub(crate) struct TrackedDescriptorSet {
    descriptors: BTreeMap<(u32, u32), (ObjectId, Effect)>,
    others: Vec<ObjectId>,
    /// Grows with every change.
    pub(crate) version: u32,
}

struct BoundResource {
    resource: ObjectId,
    first: u64,
    end: u64,
}

#[derive(Default)]
pub(crate) struct Resources {
    images: FxHashMap<ObjectId, TrackedImage>,
    sizes: FxHashMap<ObjectId, u64>,
    views: FxHashMap<ObjectId, TrackedView>,
    sets: FxHashMap<ObjectId, TrackedDescriptorSet>,
    passes: FxHashMap<ObjectId, Vec<bool>>,
    framebuffers: FxHashMap<ObjectId, Vec<ObjectId>>,
    /// The layers of the images of each swapchain.
    swapchains: FxHashMap<ObjectId, u32>,
    queries: FxHashMap<ObjectId, u32>,
    /// The resources that are bound to each memory now.
    bound: FxHashMap<ObjectId, Vec<BoundResource>>,
    /// Resources that lie in the same memory at the same time lead to one of them.
    aliases: FxHashMap<ObjectId, ObjectId>,
    aliased: FxHashSet<ObjectId>,
    /// Buffers that shaders can reach by their addresses.
    pub(crate) addressed: Vec<ObjectId>,
}

impl Resources {
    /// The bytes of a buffer.
    pub(crate) fn size(&self, buffer: ObjectId) -> Option<u64> {
        self.sizes.get(&buffer).copied()
    }

    pub(crate) fn apply_call(&mut self, call: Call<'_>, outcome: Option<Outcome<'_>>) {
        match (call, outcome) {
            (Call::CreateImage(params), Some(Outcome::CreateImage(made))) => {
                if let (Some(info), Some(made)) = (params.p_create_info(), made.p_image()) {
                    let is_3d = info.image_type == vk::ImageType::_3D;
                    let image =
                        TrackedImage { mips: info.mip_levels, layers: info.array_layers, format: info.format, is_3d };
                    self.images.insert(id(made.0), image);
                }
            }
            (Call::CreateBuffer(params), Some(Outcome::CreateBuffer(made))) => {
                if let (Some(info), Some(made)) = (params.p_create_info(), made.p_buffer()) {
                    self.sizes.insert(id(made.0), info.size);
                }
            }
            (Call::GetImageMemoryRequirements(params), Some(Outcome::GetImageMemoryRequirements(outcome))) => {
                if let Some(needs) = outcome.p_memory_requirements() {
                    self.sizes.insert(id(params.image.0), needs.size);
                }
            }
            (Call::GetImageMemoryRequirements2(params), Some(Outcome::GetImageMemoryRequirements2(outcome))) => {
                if let (Some(info), Some(needs)) = (params.p_info(), outcome.p_memory_requirements()) {
                    self.sizes.insert(id(info.image.0), needs.memory_requirements.size);
                }
            }
            (Call::GetBufferDeviceAddress(params), _) => {
                if let Some(info) = params.p_info() {
                    self.mark_addressable(id(info.buffer.0));
                }
            }
            (Call::CreateQueryPool(params), Some(Outcome::CreateQueryPool(made))) => {
                if let (Some(info), Some(made)) = (params.p_create_info(), made.p_query_pool()) {
                    self.queries.insert(id(made.0), info.query_count);
                }
            }
            (call, outcome) => self.apply_view_call(call, outcome),
        }
    }

    fn apply_view_call(&mut self, call: Call<'_>, outcome: Option<Outcome<'_>>) {
        match (call, outcome) {
            (Call::CreateImageView(params), Some(Outcome::CreateImageView(made))) => {
                if let (Some(info), Some(made)) = (params.p_create_info(), made.p_view()) {
                    let image = id(info.image.0);
                    let is_3d = self.images.get(&image).is_some_and(|it| it.is_3d);
                    let is_whole = !is_3d && self.is_whole(image, &info.subresource_range);
                    self.views.insert(id(made.0), TrackedView { resource: image, is_whole });
                }
            }
            (Call::CreateBufferView(params), Some(Outcome::CreateBufferView(made))) => {
                if let (Some(info), Some(made)) = (params.p_create_info(), made.p_view()) {
                    let view = TrackedView { resource: id(info.buffer.0), is_whole: false };
                    self.views.insert(id(made.0), view);
                }
            }
            (Call::CreateRenderPass(params), Some(Outcome::CreateRenderPass(made))) => {
                if let (Some(info), Some(made)) = (params.p_create_info(), made.p_render_pass()) {
                    let discards = info.p_attachments().iter().map(|it| it.initial_layout.0 == 0).collect();
                    self.passes.insert(id(made.0), discards);
                }
            }
            (Call::CreateRenderPass2(params), Some(Outcome::CreateRenderPass2(made))) => {
                if let (Some(info), Some(made)) = (params.p_create_info(), made.p_render_pass()) {
                    let discards = |attachment_description: View<'_, vk::AttachmentDescription2>| {
                        attachment_description.initial_layout.0 == 0 && attachment_description.chain().next().is_none()
                    };
                    self.passes.insert(id(made.0), info.p_attachments().iter().map(discards).collect());
                }
            }
            (Call::CreateFramebuffer(params), Some(Outcome::CreateFramebuffer(made))) => {
                if let (Some(info), Some(made)) = (params.p_create_info(), made.p_framebuffer()) {
                    let views = info.p_attachments().iter().map(|it| id(it.0)).collect();
                    self.framebuffers.insert(id(made.0), views);
                }
            }
            (Call::CreateSwapchainKHR(params), Some(Outcome::CreateSwapchainKHR(made))) => {
                if let (Some(info), Some(made)) = (params.p_create_info(), made.p_swapchain()) {
                    self.swapchains.insert(id(made.0), info.image_array_layers);
                }
            }
            (Call::GetSwapchainImagesKHR(params), Some(Outcome::GetSwapchainImagesKHR(made))) => {
                let layers = self.swapchains.get(&id(params.swapchain.0)).copied().unwrap_or(u32::MAX);
                for p_swapchain_image in made.p_swapchain_images() {
                    let image = TrackedImage { mips: 1, layers, format: vk::Format(0), is_3d: false };
                    self.images.insert(id(p_swapchain_image.0), image);
                }
            }
            (call, _) => self.apply_memory_call(call),
        }
    }

    fn apply_memory_call(&mut self, call: Call<'_>) {
        match call {
            Call::BindBufferMemory(params) => self.bind(id(params.buffer.0), id(params.memory.0), params.memory_offset),
            Call::BindImageMemory(params) => self.bind(id(params.image.0), id(params.memory.0), params.memory_offset),
            Call::BindBufferMemory2(params) => {
                params
                    .p_bind_infos()
                    .iter()
                    .for_each(|it| self.bind(id(it.buffer.0), id(it.memory.0), it.memory_offset));
            }
            Call::BindImageMemory2(params) => {
                params
                    .p_bind_infos()
                    .iter()
                    .for_each(|it| self.bind(id(it.image.0), id(it.memory.0), it.memory_offset));
            }
            Call::DestroyBuffer(params) => self.unbind(id(params.buffer.0)),
            Call::DestroyImage(params) => self.unbind(id(params.image.0)),
            Call::UpdateDescriptorSets(params) => {
                params.p_descriptor_writes().iter().for_each(|it| self.write_set(it));
                for p_descriptor_copy in params.p_descriptor_copies().iter() {
                    let from = self.sets.get(&id(p_descriptor_copy.src_set.0)).cloned().unwrap_or_default();
                    let to = self.sets.entry(id(p_descriptor_copy.dst_set.0)).or_default();
                    to.version += 1;
                    to.others.extend(from.descriptors.values().map(|it| it.0).chain(from.others));
                }
            }
            // No other command defines a resource.
            _ => {}
        }
    }

    /// The descriptors that a template writes into a set.
    pub(crate) fn write_by_template(&mut self, set: ObjectId, resources: &[ObjectId]) {
        let own = self.sets.entry(set).or_default();
        own.version += 1;
        own.others.extend_from_slice(resources);
        own.others.sort_unstable();
        own.others.dedup();
    }

    fn write_set(&mut self, write: View<'_, vk::WriteDescriptorSet>) {
        let effect = match write.descriptor_type {
            DescriptorType::STORAGE_IMAGE
            | DescriptorType::STORAGE_BUFFER
            | DescriptorType::STORAGE_BUFFER_DYNAMIC
            | DescriptorType::STORAGE_TEXEL_BUFFER => Effect::ReadWrite,
            DescriptorType::SAMPLER
            | DescriptorType::COMBINED_IMAGE_SAMPLER
            | DescriptorType::SAMPLED_IMAGE
            | DescriptorType::UNIFORM_BUFFER
            | DescriptorType::UNIFORM_BUFFER_DYNAMIC
            | DescriptorType::UNIFORM_TEXEL_BUFFER
            | DescriptorType::INPUT_ATTACHMENT
            | DescriptorType::INLINE_UNIFORM_BLOCK => Effect::Read,
            _ => Effect::ReadWrite,
        };
        let images = write.p_image_info().iter().map(|it| id(it.image_view.0));
        let buffers = write.p_buffer_info().iter().map(|it| id(it.buffer.0));
        let views = write.p_texel_buffer_view().iter().map(|it| id(it.0));
        let set = self.sets.entry(id(write.dst_set.0)).or_default();
        set.version += 1;
        for (at, object) in images.chain(buffers).chain(views).enumerate() {
            let key = (write.dst_binding, write.dst_array_element.saturating_add(at as u32));
            set.descriptors.insert(key, (object, effect));
        }
    }

    pub(crate) fn set(&self, set: ObjectId) -> (u32, Vec<(ObjectId, Effect)>) {
        let Some(other) = self.sets.get(&set) else { return (0, Vec::new()) };
        let others = other.others.iter().map(|it| (*it, Effect::ReadWrite));
        let all = other.descriptors.values().copied().chain(others);
        (other.version, all.filter_map(|(object, effect)| Some((self.resource_of(object)?, effect))).collect())
    }

    /// The resource that an object is, or leads to.
    pub(crate) fn resource_of(&self, object: ObjectId) -> Option<ObjectId> {
        match object.ty()? {
            HandleType::ImageView | HandleType::BufferView => self.views.get(&object).map(|it| it.resource),
            HandleType::Buffer | HandleType::Image | HandleType::QueryPool | HandleType::Event => Some(object),
            _ => None,
        }
    }

    /// The effect of the begin of a render pass on its attachments.
    pub(crate) fn attachments(
        &self,
        pass: ObjectId,
        framebuffer: ObjectId,
        given: Option<Vec<ObjectId>>,
    ) -> Vec<(ObjectId, Effect)> {
        let views = given.or_else(|| self.framebuffers.get(&framebuffer).cloned()).unwrap_or_default();
        let discards = self.passes.get(&pass);
        let one = |(at, view): (usize, &ObjectId)| {
            let view = self.views.get(view)?;
            let is_gone = discards.and_then(|it| it.get(at)).copied().unwrap_or(false);
            let effect = if is_gone && view.is_whole { Effect::Discard } else { Effect::ReadWrite };
            Some((view.resource, effect))
        };
        views.iter().enumerate().filter_map(one).collect()
    }

    /// Whether a range is all of an image.
    pub(crate) fn is_whole(&self, image: ObjectId, range: &vk::ImageSubresourceRange) -> bool {
        let Some(TrackedImage { mips, layers, format, .. }) = self.images.get(&image).copied() else { return false };
        let is_all = |first: u32, count: u32, all: u32, rest: u32| first == 0 && (count == rest || count >= all);
        let has_both = (vk::Format::D16_UNORM_S8_UINT.0..=vk::Format::D32_SFLOAT_S8_UINT.0).contains(&format.0);
        let both = vk::ImageAspectFlags::DEPTH.0 | vk::ImageAspectFlags::STENCIL.0;
        let mask = range.aspect_mask.0;
        let aspects = match has_both {
            true => mask & both == both,
            false => mask & (both | vk::ImageAspectFlags::COLOR.0) != 0,
        };
        aspects
            && is_all(range.base_mip_level, range.level_count, mips, vk::REMAINING_MIP_LEVELS)
            && is_all(range.base_array_layer, range.layer_count, layers, vk::REMAINING_ARRAY_LAYERS)
    }

    /// How many queries a pool has.
    pub(crate) fn queries(&self, pool: ObjectId) -> Option<u32> {
        self.queries.get(&pool).copied()
    }

    fn mark_addressable(&mut self, buffer: ObjectId) {
        if !self.addressed.contains(&buffer) {
            self.addressed.push(buffer);
        }
    }

    fn bind(&mut self, resource: ObjectId, memory: ObjectId, first: u64) {
        // The program did not query the size: it may reach to the end.
        let end = self.sizes.get(&resource).map_or(u64::MAX, |it| first.saturating_add(*it));
        let others = self.bound.entry(memory).or_default();
        let overlaps: Vec<ObjectId> =
            others.iter().filter(|it| it.first < end && first < it.end).map(|it| it.resource).collect();
        others.push(BoundResource { resource, first, end });
        for other in overlaps {
            let (one, two) = (self.alias_class(resource), self.alias_class(other));
            if one != two {
                self.aliases.insert(one, two);
            }
            self.aliased.insert(two);
        }
    }

    fn unbind(&mut self, resource: ObjectId) {
        self.bound.values_mut().for_each(|it| it.retain(|it| it.resource != resource));
    }

    /// An identity for all resources that share memory with this one.
    pub(crate) fn alias_class(&self, resource: ObjectId) -> ObjectId {
        let mut at = resource;
        while let Some(next) = self.aliases.get(&at) {
            at = *next;
        }
        at
    }

    /// Whether its memory may also belong to another resource.
    pub(crate) fn is_aliased(&self, class: ObjectId) -> bool {
        self.aliased.contains(&class)
    }
}
