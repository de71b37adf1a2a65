//! Descriptors that are pushed into command buffers, and those that are written by templates.
//!
//! What is pushed counts as a set that nobody allocated, a new one after each push. It is written down how it was
//! pushed, so that it can be pushed again where a set of ours took it away.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use lavascope_abi::*;

use super::commands::{Bind, point_of};
use super::descriptors::Set;
use super::hooks::{hooks, points_of};
use super::recipe::Packed;
use super::{Gpu, facts_of, gpu_of, slice};
use crate::DeviceTable;
use crate::fence::fence;

/// A template of the application.
#[derive(Clone)]
pub(super) struct Template {
    entries: Arc<[DescriptorUpdateTemplateEntry]>,
    /// What it pushes for, if it does.
    point: PipelineBindPoint,
}

/// A call that pushed descriptors.
pub(super) struct Push {
    call: Packed,
    /// Which ones: binding, first element, and how many.
    places: Vec<[u32; 3]>,
}

/// The pool of sets that nobody allocated.
const NO_POOL: u64 = u64::MAX;

hooks! {
    create_descriptor_update_template = fn(device: Device, p_info: Ptr<DescriptorUpdateTemplateCreateInfo>, p_allocator: Ptr<Opaque>, p_made: Ptr<DescriptorUpdateTemplate>) -> Result, |gpu, next| {
        let result = next(device, p_info, p_allocator, p_made);
        if result == Result::SUCCESS {
            let keep = || {
                let info = &*p_info.as_ptr();
                let entries = slice(info.p_descriptor_update_entries, info.descriptor_update_entry_count).into();
                let template = Template { entries, point: info.pipeline_bind_point };
                gpu.state().templates.insert((*p_made.as_ptr()).0, template);
            };
            fence("vkCreateDescriptorUpdateTemplate", keep, || ());
        }
        result
    }
    destroy_descriptor_update_template = fn(device: Device, it: DescriptorUpdateTemplate, p_allocator: Ptr<Opaque>) -> (), |gpu, next| {
        fence("vkDestroyDescriptorUpdateTemplate", || drop(gpu.state().templates.remove(&it.0)), || ());
        next(device, it, p_allocator);
    }
    update_descriptor_set_with_template = fn(device: Device, set: DescriptorSet, template: DescriptorUpdateTemplate, p_data: Ptr<Opaque>) -> (), |gpu, next| {
        next(device, set, template, p_data);
        let note = || {
            let mut state = gpu.state();
            match state.templates.get(&template.0).cloned() {
                Some(template) => Writes::of(&template, p_data, set).all.iter().for_each(|it| state.write(it)),
                None => state.sets.get_mut(&set.0).into_iter().for_each(Set::forget),
            }
            gpu.sets_changed();
        };
        fence("vkUpdateDescriptorSetWithTemplate", note, || ());
    }
    cmd_push_descriptor_set = fn(commands: CommandBuffer, point: PipelineBindPoint, layout: PipelineLayout, set: u32, count: u32, p_writes: Ptr<WriteDescriptorSet>) -> (), |gpu, next| {
        next(commands, point, layout, set, count, p_writes);
        fence("vkCmdPushDescriptorSet", || gpu.push(commands, point, (layout, set), slice(p_writes, count)), || ());
    }
    cmd_push_descriptor_set2 = fn(commands: CommandBuffer, p_info: Ptr<PushDescriptorSetInfo>) -> (), |gpu, next| {
        next(commands, p_info);
        let note = || {
            let it = &*p_info.as_ptr();
            let writes = slice(it.p_descriptor_writes, it.descriptor_write_count);
            points_of(it.stage_flags).for_each(|point| gpu.push(commands, POINTS[point], (it.layout, it.set), writes));
        };
        fence("vkCmdPushDescriptorSet2", note, || ());
    }
    cmd_push_descriptor_set_with_template = fn(commands: CommandBuffer, template: DescriptorUpdateTemplate, layout: PipelineLayout, set: u32, p_data: Ptr<Opaque>) -> (), |gpu, next| {
        next(commands, template, layout, set, p_data);
        fence("vkCmdPushDescriptorSetWithTemplate", || gpu.push_by(commands, template, (layout, set), p_data), || ());
    }
    cmd_push_descriptor_set_with_template2 = fn(commands: CommandBuffer, p_info: Ptr<PushDescriptorSetWithTemplateInfo>) -> (), |gpu, next| {
        next(commands, p_info);
        let note = || {
            let it = &*p_info.as_ptr();
            gpu.push_by(commands, it.descriptor_update_template, (it.layout, it.set), it.p_data);
        };
        fence("vkCmdPushDescriptorSetWithTemplate2", note, || ());
    }
}

const POINTS: [PipelineBindPoint; 3] =
    [PipelineBindPoint::GRAPHICS, PipelineBindPoint::COMPUTE, PipelineBindPoint::RAY_TRACING_KHR];

/// What a template writes, as writes of one descriptor each.
struct Writes {
    all: Vec<WriteDescriptorSet>,
    /// What they lead to.
    #[expect(clippy::vec_box, reason = "their addresses are in the writes")]
    _structures: Vec<Box<WriteDescriptorSetAccelerationStructureKHR>>,
}

impl Writes {
    /// `p_data` must be what the template takes.
    fn of(template: &Template, p_data: Ptr<Opaque>, set: DescriptorSet) -> Writes {
        let (mut all, mut structures) = (Vec::new(), Vec::new());
        for entry in template.entries.iter() {
            // Of inline blocks the count is one of bytes, and what they hold is known from the layout.
            let is_inline = entry.descriptor_type == DescriptorType::INLINE_UNIFORM_BLOCK;
            for at in 0..if is_inline { 0 } else { u64::from(entry.descriptor_count) } {
                let data = Ptr::<Opaque>::new(p_data.0 + entry.offset + at * entry.stride);
                let mut write = WriteDescriptorSet::zeroed();
                write.s_type = StructureType::WRITE_DESCRIPTOR_SET;
                write.dst_set = set;
                (write.dst_binding, write.descriptor_type) = (entry.dst_binding, entry.descriptor_type);
                write.dst_array_element = entry.dst_array_element + at as u32;
                write.descriptor_count = 1;
                write.p_buffer_info = data.cast();
                write.p_image_info = data.cast();
                write.p_texel_buffer_view = data.cast();
                if entry.descriptor_type == DescriptorType::ACCELERATION_STRUCTURE_KHR {
                    let mut chained = Box::new(WriteDescriptorSetAccelerationStructureKHR::zeroed());
                    chained.s_type = StructureType::WRITE_DESCRIPTOR_SET_ACCELERATION_STRUCTURE_KHR;
                    chained.acceleration_structure_count = 1;
                    chained.p_acceleration_structures = data.cast();
                    write.p_next = Ptr::to(&*chained).cast();
                    structures.push(chained);
                }
                all.push(write);
            }
        }
        Writes { all, _structures: structures }
    }
}

impl Gpu {
    /// # Safety
    ///
    /// The data must be what the template takes.
    unsafe fn push_by(
        &self,
        handle: CommandBuffer,
        template: DescriptorUpdateTemplate,
        to: (PipelineLayout, u32),
        p_data: Ptr<Opaque>,
    ) {
        let Some(template) = self.state().templates.get(&template.0).cloned() else { return };
        let writes = Writes::of(&template, p_data, DescriptorSet::default());
        // SAFETY: the caller's word.
        unsafe { self.push(handle, template.point, to, &writes.all) };
    }

    /// Descriptors were pushed.
    ///
    /// # Safety
    ///
    /// The writes must be valid, with their chains.
    unsafe fn push(
        &self,
        handle: CommandBuffer,
        bind_point: PipelineBindPoint,
        (layout, number): (PipelineLayout, u32),
        writes: &[WriteDescriptorSet],
    ) {
        // SAFETY: the caller's word.
        let push = unsafe { self.kept_push(bind_point, (layout, number), writes) };
        let mut state = self.state();
        let (Some(point), Some(layout)) = (point_of(bind_point), state.layouts.get(&layout.0).cloned()) else { return };
        let Some(set_layout) = layout.sets.get(number as usize).cloned().flatten() else { return };
        let Some(slot) = self.slot(handle.0) else { return };
        slot.with(|commands| {
            // What was pushed before stays, where it was pushed with the same layout.
            let number = number as usize;
            let before = commands.bound_at(point, number).filter(|it| it.layout.is_compatible(&layout, number));
            let known = before.and_then(|it| state.sets.get(&it.set(number)?.0)).filter(|it| it.pool == NO_POOL);
            let mut pushes = before.filter(|_| known.is_some()).map_or_else(Vec::new, |it| it.pushes.clone());
            let mut set = known.cloned().unwrap_or_else(|| Set::new(NO_POOL, &set_layout, 0));
            for write in writes {
                // SAFETY: the caller's word.
                let bound = unsafe { state.bound_by(write) };
                set.put_all((write.dst_binding, write.dst_array_element), bound);
            }
            state.pushed_sets += 1;
            let key = u64::MAX - state.pushed_sets;
            state.sets.insert(key, set);
            commands.pushed_sets.push(key);
            if let Some(push) = push {
                pushes.retain(|it| it.places != push.places);
                pushes.push(Arc::new(push));
            }
            let mut bind = Bind::new(&layout, number as u32, vec![key], Vec::new());
            bind.pushes = pushes;
            commands.bind_sets(point, bind);
        });
    }

    /// How it was pushed, where a set of ours may take it away.
    ///
    /// # Safety
    ///
    /// The writes must be valid, with their chains.
    unsafe fn kept_push(
        &self,
        pipeline_bind_point: PipelineBindPoint,
        (layout, set): (PipelineLayout, u32),
        writes: &[WriteDescriptorSet],
    ) -> Option<Push> {
        if !self.binds_sets.load(Ordering::Relaxed) {
            return None;
        }
        let layout = self.state().layouts.get(&layout.0)?.own?;
        let params = CmdPushDescriptorSetParams {
            command_buffer: CommandBuffer::default(),
            pipeline_bind_point,
            layout,
            set,
            descriptor_write_count: writes.len() as u32,
            p_descriptor_writes: Ptr::to_slice(writes),
        };
        let place = |it: &WriteDescriptorSet| [it.dst_binding, it.dst_array_element, it.descriptor_count];
        // SAFETY: a device that is alive, and the caller's word.
        let call = unsafe {
            let facts = facts_of(self.device)?;
            Packed::new(Command::CmdPushDescriptorSet, (&raw const params).cast(), facts)?
        };
        Some(Push { call, places: writes.iter().map(place).collect() })
    }

    /// Pushes what the application pushed.
    pub(super) fn push_again(&self, handle: CommandBuffer, it: &Push) {
        let Some(push) = self.next.cmd_push_descriptor_set else { return };
        let mut arena = lavascope_marshal::Arena::default();
        let Some(params) = it.call.unpack(&mut arena) else { return };
        // SAFETY: the parameters of a call of this kind, laid out in the arena, into a command buffer that the
        // application records now.
        unsafe {
            let it = &*params.cast::<CmdPushDescriptorSetParams>();
            push(handle, it.pipeline_bind_point, it.layout, it.set, it.descriptor_write_count, it.p_descriptor_writes);
        }
    }
}
