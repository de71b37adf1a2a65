//! Barriers and events of command buffers.

use lavascope_abi as vk;
use lavascope_record::{Call, View, Views};
use lavascope_sync_ir::{
    Barrier, Command, Dependency, DependencyTarget, EventId, QueueFamilyTransfer, Region, ResourceId, SetEvent,
    SyncScope, WaitEvents,
};

use crate::device::{TrackedCall, TrackedDevice};
use crate::listener::TrackerOutput;
use crate::resource::opaque_object::OpaqueObject;

/// An image barrier of either version.
struct ImageBarrier<'a> {
    image: vk::Image,
    range: &'a vk::ImageSubresourceRange,
    layouts: [vk::ImageLayout; 2],
    families: [u32; 2],
    scope: SyncScope,
}

/// The three barrier arrays of version 1.
struct BarrierLists<'a> {
    memory: Views<'a, vk::MemoryBarrier>,
    buffers: Views<'a, vk::BufferMemoryBarrier>,
    images: Views<'a, vk::ImageMemoryBarrier>,
}

/// The scope of a version 2 barrier. All of its structures use the same field names.
macro_rules! scope_of {
    ($barrier:expr) => {
        SyncScope {
            src_stages: $barrier.src_stage_mask.0,
            src_access: $barrier.src_access_mask.0,
            dst_stages: $barrier.dst_stage_mask.0,
            dst_access: $barrier.dst_access_mask.0,
        }
    };
}

impl TrackedDevice {
    pub(crate) fn track_barriers(&mut self, tracked: TrackedCall<'_>, out: &mut TrackerOutput<'_>) -> bool {
        match tracked.call {
            Call::CmdPipelineBarrier(params) => {
                let lists = BarrierLists {
                    memory: params.p_memory_barriers(),
                    buffers: params.p_buffer_memory_barriers(),
                    images: params.p_image_memory_barriers(),
                };
                let (src_stages, dst_stages) = (u64::from(params.src_stage_mask.0), u64::from(params.dst_stage_mask.0));
                self.waits_for_host.note_barrier(src_stages);
                let dependencies = self.dependencies_v1(&lists, out);
                let barrier = Barrier::Sync1 { src_stages, dst_stages, dependencies };
                self.record(params.command_buffer, Command::Barrier(barrier), out);
            }
            Call::CmdPipelineBarrier2(params) => {
                let dependencies = params.p_dependency_info().map_or(Vec::new(), |it| self.dependencies_v2(it, out));
                dependencies.iter().for_each(|it| self.waits_for_host.note_barrier(it.scope.src_stages));
                self.record(params.command_buffer, Command::Barrier(Barrier::Sync2 { dependencies }), out);
            }
            Call::CmdSetEvent(params) => {
                let Some(event) = self.event_id(params.event, out) else { return true };
                let set = SetEvent::Sync1 { event, stages: u64::from(params.stage_mask.0) };
                self.record(params.command_buffer, Command::SetEvent(set), out);
            }
            Call::CmdSetEvent2(params) => {
                let Some(event) = self.event_id(params.event, out) else { return true };
                let dependencies = params.p_dependency_info().map_or(Vec::new(), |it| self.dependencies_v2(it, out));
                self.record(params.command_buffer, Command::SetEvent(SetEvent::Sync2 { event, dependencies }), out);
            }
            Call::CmdResetEvent(params) => {
                let Some(event) = self.event_id(params.event, out) else { return true };
                let stages = u64::from(params.stage_mask.0);
                self.record(params.command_buffer, Command::ResetEvent { event, stages }, out);
            }
            Call::CmdResetEvent2(params) => {
                let Some(event) = self.event_id(params.event, out) else { return true };
                self.record(params.command_buffer, Command::ResetEvent { event, stages: params.stage_mask.0 }, out);
            }
            Call::CmdWaitEvents(params) => self.wait_events(*params, out),
            Call::CmdWaitEvents2(params) => self.wait_events2(*params, out),
            _ => return false,
        }
        true
    }

    fn wait_events(&mut self, events_params: View<'_, vk::CmdWaitEventsParams>, out: &mut TrackerOutput<'_>) {
        let lists = BarrierLists {
            memory: events_params.p_memory_barriers(),
            buffers: events_params.p_buffer_memory_barriers(),
            images: events_params.p_image_memory_barriers(),
        };
        let events = events_params.p_events().iter().filter_map(|it| self.event_id(*it, out)).collect();
        let dependencies = self.dependencies_v1(&lists, out);
        let (src_stages, dst_stages) =
            (u64::from(events_params.src_stage_mask.0), u64::from(events_params.dst_stage_mask.0));
        self.waits_for_host.note_event(src_stages);
        let wait = WaitEvents::Sync1 { events, src_stages, dst_stages, dependencies };
        self.record(events_params.command_buffer, Command::WaitEvents(wait), out);
    }

    fn wait_events2(&mut self, events2_params: View<'_, vk::CmdWaitEvents2Params>, out: &mut TrackerOutput<'_>) {
        let mut events = Vec::new();
        for (event, info) in events2_params.p_events().iter().zip(events2_params.p_dependency_infos().iter()) {
            if let Some(event) = self.event_id(*event, out) {
                events.push((event, self.dependencies_v2(info, out)));
            }
        }
        for dependency in events.iter().flat_map(|it| &it.1) {
            self.waits_for_host.note_event(dependency.scope.src_stages);
        }
        self.record(events2_params.command_buffer, Command::WaitEvents(WaitEvents::Sync2 { events }), out);
    }

    pub(crate) fn event_id(&self, event: vk::Event, out: &mut TrackerOutput<'_>) -> Option<EventId> {
        let found = self.events.get(event.0).copied();
        if found.is_none() {
            out.report_untracked("an event that nobody created");
        }
        found
    }

    /// In version 1 the stages are parameters of the command, for all barriers.
    fn dependencies_v1(&self, lists: &BarrierLists<'_>, out: &mut TrackerOutput<'_>) -> Vec<Dependency> {
        let scope = |src: vk::AccessFlags, dst: vk::AccessFlags| SyncScope {
            src_access: u64::from(src.0),
            dst_access: u64::from(dst.0),
            ..SyncScope::default()
        };
        let mut found = Vec::new();
        for memory_barrier in lists.memory.iter() {
            found.push(Dependency {
                scope: scope(memory_barrier.src_access_mask, memory_barrier.dst_access_mask),
                target: DependencyTarget::Global,
            });
        }
        for memory_barrier in lists.buffers.iter() {
            let families = [memory_barrier.src_queue_family_index, memory_barrier.dst_queue_family_index];
            let scope = scope(memory_barrier.src_access_mask, memory_barrier.dst_access_mask);
            found.push(self.buffer_dependency(
                memory_barrier.buffer,
                [memory_barrier.offset, memory_barrier.size],
                families,
                scope,
                out,
            ));
        }
        for memory_barrier in lists.images.iter() {
            let image_memory_barrier = memory_barrier.get();
            let barrier = ImageBarrier {
                image: image_memory_barrier.image,
                range: &image_memory_barrier.subresource_range,
                layouts: [image_memory_barrier.old_layout, image_memory_barrier.new_layout],
                families: [image_memory_barrier.src_queue_family_index, image_memory_barrier.dst_queue_family_index],
                scope: scope(image_memory_barrier.src_access_mask, image_memory_barrier.dst_access_mask),
            };
            found.push(self.image_dependency(&barrier, out));
        }
        found
    }

    fn dependencies_v2(&self, info: View<'_, vk::DependencyInfo>, out: &mut TrackerOutput<'_>) -> Vec<Dependency> {
        let mut found = Vec::new();
        if let Some(chained) = info.chained::<vk::MemoryRangeBarriersInfoKHR>() {
            found.extend(chained.p_memory_range_barriers().iter().map(|it| self.address_dependency(it.get(), out)));
        }
        if let Some(chained) = info.chained::<vk::TensorDependencyInfoARM>() {
            found.extend(chained.p_tensor_memory_barriers().iter().map(|it| self.tensor_dependency(it.get(), out)));
        }
        found.extend(info.chained::<vk::TensorMemoryBarrierARM>().map(|it| self.tensor_dependency(it.get(), out)));
        let known = ["VkMemoryRangeBarriersInfoKHR", "VkTensorDependencyInfoARM", "VkTensorMemoryBarrierARM"];
        if info.chain().any(|it| !known.contains(&it.layout.name)) {
            out.report_untracked("what is chained to a dependency info");
        }
        for p_memory_barrier in info.p_memory_barriers().iter() {
            let scope = scope_of!(p_memory_barrier);
            found.push(Dependency { scope, target: DependencyTarget::Global });
        }
        for p_buffer_memory_barrier in info.p_buffer_memory_barriers().iter() {
            let scope = scope_of!(p_buffer_memory_barrier);
            let families =
                [p_buffer_memory_barrier.src_queue_family_index, p_buffer_memory_barrier.dst_queue_family_index];
            found.push(self.buffer_dependency(
                p_buffer_memory_barrier.buffer,
                [p_buffer_memory_barrier.offset, p_buffer_memory_barrier.size],
                families,
                scope,
                out,
            ));
        }
        for p_image_memory_barrier in info.p_image_memory_barriers().iter() {
            let memory_barrier = p_image_memory_barrier.get();
            let barrier = ImageBarrier {
                image: memory_barrier.image,
                range: &memory_barrier.subresource_range,
                layouts: [memory_barrier.old_layout, memory_barrier.new_layout],
                families: [memory_barrier.src_queue_family_index, memory_barrier.dst_queue_family_index],
                scope: scope_of!(memory_barrier),
            };
            found.push(self.image_dependency(&barrier, out));
        }
        found
    }

    fn buffer_dependency(
        &self,
        buffer: vk::Buffer,
        [offset, size]: [u64; 2],
        families: [u32; 2],
        scope: SyncScope,
        out: &mut TrackerOutput<'_>,
    ) -> Dependency {
        let Some((resource, bytes)) = self.buffer_range(buffer, offset, size) else {
            out.report_untracked("a buffer whose memory is not known");
            return execution_only(scope);
        };
        let what = dependency_target(resource, Region::Buffer(bytes), families, false);
        Dependency { scope, target: what }
    }

    fn address_dependency(&self, range_barrier: &vk::MemoryRangeBarrierKHR, out: &mut TrackerOutput<'_>) -> Dependency {
        let scope = scope_of!(range_barrier);
        let families = [range_barrier.src_queue_family_index, range_barrier.dst_queue_family_index];
        match self.find_address(range_barrier.address_range.address, range_barrier.address_range.size) {
            Some((resource, bytes)) => {
                Dependency { scope, target: dependency_target(resource, Region::Buffer(bytes), families, false) }
            }
            None => {
                out.report_untracked("an address that nobody asked for");
                execution_only(scope)
            }
        }
    }

    fn tensor_dependency(
        &self,
        memory_barrier: &vk::TensorMemoryBarrierARM,
        out: &mut TrackerOutput<'_>,
    ) -> Dependency {
        let scope = scope_of!(memory_barrier);
        let families = [memory_barrier.src_queue_family_index, memory_barrier.dst_queue_family_index];
        match self.tensors.get(memory_barrier.tensor.0).and_then(OpaqueObject::part) {
            Some((resource, bytes)) => {
                Dependency { scope, target: dependency_target(resource, Region::Buffer(bytes), families, false) }
            }
            None => {
                out.report_untracked("a tensor whose memory is not known");
                execution_only(scope)
            }
        }
    }

    fn image_dependency(&self, image_barrier: &ImageBarrier<'_>, out: &mut TrackerOutput<'_>) -> Dependency {
        let Some((resource, image)) = self.image(image_barrier.image) else {
            out.report_untracked("an image whose memory is not known");
            return execution_only(image_barrier.scope);
        };
        let is_transition = image_barrier.layouts[0] != image_barrier.layouts[1];
        let what = dependency_target(
            resource,
            Region::Image(image.barrier_region(image_barrier.range)),
            image_barrier.families,
            is_transition,
        );
        Dependency { scope: image_barrier.scope, target: what }
    }
}

fn dependency_target(
    resource: ResourceId,
    region: Region,
    [src, dst]: [u32; 2],
    is_transition: bool,
) -> DependencyTarget {
    let is_moved = src != dst && src != vk::QUEUE_FAMILY_IGNORED && dst != vk::QUEUE_FAMILY_IGNORED;
    if is_moved {
        let ownership = QueueFamilyTransfer { src_family: src, dst_family: dst, is_transition };
        return DependencyTarget::QueueFamilyTransfer { resource, region, transfer: ownership };
    }
    if is_transition {
        DependencyTarget::Transition { resource, region }
    } else {
        DependencyTarget::Resource { resource, region }
    }
}

/// A barrier on an unknown object still is an execution dependency.
fn execution_only(scope: SyncScope) -> Dependency {
    Dependency { scope: SyncScope { src_access: 0, dst_access: 0, ..scope }, target: DependencyTarget::Global }
}
