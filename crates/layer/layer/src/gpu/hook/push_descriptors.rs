//! Hooks for descriptors that are pushed into command buffers, and for descriptor update templates.
//!
//! Pushed descriptors count as a set without an allocation, a new one after each push. The call is stored, so that it
//! can be repeated after a set of ours has disturbed the descriptors.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use lavascope_abi::*;
use lavascope_record::pack_context::NoPackContext;

use crate::DeviceTable;
use crate::gpu::draw::command_buffer::{BoundSets, bind_point_index};
use crate::gpu::hook::{bind_points_of_stages, deref_param, hooks, read_output};
use crate::gpu::pipeline::recipe::PackedCall;
use crate::gpu::resource::descriptor_sets::DescriptorSetState;
use crate::gpu::{DeviceChecks, checks_of, slice};
use crate::process::catch_panic::{catch_panic, catch_panic_and_retry, run_if_enabled};

/// A descriptor update template of the application.
#[derive(Clone)]
pub(crate) struct UpdateTemplate {
    entries: Arc<[DescriptorUpdateTemplateEntry]>,
    /// The bind point, if the template is for push descriptors.
    bind_point: PipelineBindPoint,
}

/// A call that pushed descriptors.
pub(crate) struct PushDescriptorCall {
    call: PackedCall,
    /// The descriptors: binding, first element, and number of elements.
    places: Vec<[u32; 3]>,
}

/// The pool number of sets that were not allocated.
const PUSH_DESCRIPTOR_POOL: u64 = u64::MAX;

hooks! {
    create_descriptor_update_template = fn(device: Device, p_info: Ptr<DescriptorUpdateTemplateCreateInfo>, p_allocator: Ptr<Opaque>, p_made: Ptr<DescriptorUpdateTemplate>) -> Result, |gpu, forward| {
        let result = forward();
        if result == Result::SUCCESS {
            // SAFETY: VUID-vkCreateDescriptorUpdateTemplate-pCreateInfo-parameter: a valid structure until the call
            // returns; VUID-VkDescriptorUpdateTemplateCreateInfo-pDescriptorUpdateEntries-parameter: an array of as many
            // as it says; VUID-vkCreateDescriptorUpdateTemplate-pDescriptorUpdateTemplate-parameter: a place for the
            // handle, which the call has written.
            let (info, entries, made) = unsafe {
                let info = deref_param(p_info);
                let entries = slice(info.p_descriptor_update_entries, info.descriptor_update_entry_count);
                (info, entries, read_output(p_made))
            };
            let keep = || {
                let template = UpdateTemplate { entries: entries.into(), bind_point: info.pipeline_bind_point };
                gpu.state().templates.insert(made.0, template);
            };
            // Runs even if the layer is disabled, because pushes with this template are repeated after a set of ours is bound.
            catch_panic("vkCreateDescriptorUpdateTemplate", keep, || ());
        }
        result
    }
    destroy_descriptor_update_template = fn(device: Device, update_template: DescriptorUpdateTemplate, p_allocator: Ptr<Opaque>) -> (), |gpu, forward| {
        catch_panic("vkDestroyDescriptorUpdateTemplate", || drop(gpu.state().templates.remove(&update_template.0)), || ());
        forward();
    }
    update_descriptor_set_with_template = fn(device: Device, set: DescriptorSet, template: DescriptorUpdateTemplate, p_data: Ptr<Opaque>) -> (), |gpu, forward| {
        forward();
        let note = || {
            let mut state = gpu.state();
            match state.templates.get(&template.0).cloned() {
                Some(template) => {
                    let writes = TemplateWrites::new(&template, p_data, set);
                    // SAFETY: VUID-vkUpdateDescriptorSetWithTemplate-pData-01685: until the call returns there is what
                    // the template says, where it says; so each write is valid as long as `writes` is there.
                    writes.all.iter().for_each(|it| unsafe { state.apply_write(it) });
                }
                None => state.sets.get_mut(&set.0).into_iter().for_each(DescriptorSetState::forget_contents),
            }
            gpu.invalidate_choices();
        };
        let forget = || gpu.forget_contents("vkUpdateDescriptorSetWithTemplate", std::iter::once(set));
        run_if_enabled("vkUpdateDescriptorSetWithTemplate", note, forget);
    }
    cmd_push_descriptor_set = fn(commands: CommandBuffer, bind_point: PipelineBindPoint, layout: PipelineLayout, set: u32, count: u32, p_writes: Ptr<WriteDescriptorSet>) -> (), |gpu, forward| {
        forward();
        // SAFETY: VUID-vkCmdPushDescriptorSet-pDescriptorWrites-parameter: an array of so many valid structures until
        // the call returns, with their chains and arrays (VUID-vkCmdPushDescriptorSet-pDescriptorWrites-06494).
        let note = || unsafe { gpu.record_push(commands, bind_point, (layout, set), slice(p_writes, count)) };
        catch_panic_and_retry("vkCmdPushDescriptorSet", note, || ());
    }
    cmd_push_descriptor_set2 = fn(commands: CommandBuffer, p_info: Ptr<PushDescriptorSetInfo>) -> (), |gpu, forward| {
        forward();
        // SAFETY: VUID-vkCmdPushDescriptorSet2-pPushDescriptorSetInfo-parameter: a valid structure until the call
        // returns; VUID-VkPushDescriptorSetInfo-pDescriptorWrites-parameter: an array of as many as it says.
        let (set_info, writes) = unsafe {
            let push_descriptor_set_info = deref_param(p_info);
            (push_descriptor_set_info, slice(push_descriptor_set_info.p_descriptor_writes, push_descriptor_set_info.descriptor_write_count))
        };
        let note = || {
            bind_points_of_stages(set_info.stage_flags).for_each(|bind_point| {
                // SAFETY: VUID-VkPushDescriptorSetInfo-pDescriptorWrites-parameter: each is valid, with its chain and
                // its arrays (VUID-VkPushDescriptorSetInfo-pDescriptorWrites-06494).
                unsafe { gpu.record_push(commands, POINTS[bind_point], (set_info.layout, set_info.set), writes) };
            });
        };
        catch_panic_and_retry("vkCmdPushDescriptorSet2", note, || ());
    }
    cmd_push_descriptor_set_with_template = fn(commands: CommandBuffer, template: DescriptorUpdateTemplate, layout: PipelineLayout, set: u32, p_data: Ptr<Opaque>) -> (), |gpu, forward| {
        forward();
        // SAFETY: VUID-vkCmdPushDescriptorSetWithTemplate-pData-01686: what the template says, until the call returns.
        let note = || unsafe { gpu.record_template_push(commands, template, (layout, set), p_data) };
        catch_panic_and_retry("vkCmdPushDescriptorSetWithTemplate", note, || ());
    }
    cmd_push_descriptor_set_with_template2 = fn(commands: CommandBuffer, p_info: Ptr<PushDescriptorSetWithTemplateInfo>) -> (), |gpu, forward| {
        forward();
        // SAFETY: VUID-vkCmdPushDescriptorSetWithTemplate2-pPushDescriptorSetWithTemplateInfo-parameter: a valid
        // structure until the call returns.
        let template_info = unsafe { deref_param(p_info) };
        // SAFETY: VUID-VkPushDescriptorSetWithTemplateInfo-pData-01686: what the template says, until the call returns.
        let note = || unsafe { gpu.record_template_push(commands, template_info.descriptor_update_template, (template_info.layout, template_info.set), template_info.p_data) };
        catch_panic_and_retry("vkCmdPushDescriptorSetWithTemplate2", note, || ());
    }
}

const POINTS: [PipelineBindPoint; 3] =
    [PipelineBindPoint::GRAPHICS, PipelineBindPoint::COMPUTE, PipelineBindPoint::RAY_TRACING_KHR];

/// The writes of a template, as separate writes of one descriptor each.
struct TemplateWrites {
    all: Vec<WriteDescriptorSet>,
    /// The arrays that the writes refer to. They are complete before the first address is taken, so they do not move
    /// any more.
    _structures: Vec<WriteDescriptorSetAccelerationStructureKHR>,
}

impl TemplateWrites {
    /// The writes are valid as long as this value, if `p_data` has what the template requires. It is not read here.
    fn new(template: &UpdateTemplate, p_data: Ptr<Opaque>, set: DescriptorSet) -> TemplateWrites {
        let places = || template.entries.iter().flat_map(move |entry| elements(entry, p_data));
        let kind = DescriptorType::ACCELERATION_STRUCTURE_KHR;
        let is_chained = |it: &DescriptorUpdateTemplateEntry| it.descriptor_type == kind;
        let chained = places().filter(|it| is_chained(it.0)).map(|(_, _, data)| {
            let mut chained = WriteDescriptorSetAccelerationStructureKHR::zeroed();
            chained.s_type = StructureType::WRITE_DESCRIPTOR_SET_ACCELERATION_STRUCTURE_KHR;
            chained.acceleration_structure_count = 1;
            chained.p_acceleration_structures = data.cast();
            chained
        });
        let structures: Vec<_> = chained.collect();
        let mut behind = structures.iter();
        let write = |(entry, at, data): (&DescriptorUpdateTemplateEntry, u32, Ptr<Opaque>)| {
            let mut write = WriteDescriptorSet::zeroed();
            write.s_type = StructureType::WRITE_DESCRIPTOR_SET;
            write.dst_set = set;
            (write.dst_binding, write.descriptor_type) = (entry.dst_binding, entry.descriptor_type);
            write.dst_array_element = entry.dst_array_element.wrapping_add(at);
            write.descriptor_count = 1;
            write.p_buffer_info = data.cast();
            write.p_image_info = data.cast();
            write.p_texel_buffer_view = data.cast();
            if is_chained(entry) {
                write.p_next = behind.next().map_or(Ptr::NULL, |it| Ptr::to(it).cast());
            }
            write
        };
        let all = places().map(write).collect();
        TemplateWrites { all, _structures: structures }
    }
}

/// The descriptors of an entry of a template, each with its offset in the data.
fn elements(
    entry: &DescriptorUpdateTemplateEntry,
    p_data: Ptr<Opaque>,
) -> impl Iterator<Item = (&DescriptorUpdateTemplateEntry, u32, Ptr<Opaque>)> {
    // For inline uniform blocks the count is in bytes, and the contents do not matter.
    let is_inline = entry.descriptor_type == DescriptorType::INLINE_UNIFORM_BLOCK;
    let first = p_data.0.wrapping_add(entry.offset);
    (0..if is_inline { 0 } else { entry.descriptor_count }).map(move |at| {
        let offset = u64::from(at).wrapping_mul(entry.stride);
        (entry, at, Ptr::new(first.wrapping_add(offset)))
    })
}

impl DeviceChecks {
    /// # Safety
    ///
    /// `p_data` must lead to what the template takes, in its places.
    unsafe fn record_template_push(
        &self,
        handle: CommandBuffer,
        template: DescriptorUpdateTemplate,
        to: (PipelineLayout, u32),
        p_data: Ptr<Opaque>,
    ) {
        let Some(template) = self.state().templates.get(&template.0).cloned() else { return };
        let writes = TemplateWrites::new(&template, p_data, DescriptorSet::default());
        // SAFETY: the contract of this function: each write leads into the data, or into `writes`, which is alive.
        unsafe { self.record_push(handle, template.bind_point, to, &writes.all) };
    }

    /// Descriptors were pushed.
    ///
    /// # Safety
    ///
    /// The writes must be valid, with their chains, and with the arrays that their types ask for.
    unsafe fn record_push(
        &self,
        handle: CommandBuffer,
        bind_point: PipelineBindPoint,
        (layout, number): (PipelineLayout, u32),
        writes: &[WriteDescriptorSet],
    ) {
        // SAFETY: the contract of this function is that of the other.
        let push = unsafe { self.pack_push(bind_point, (layout, number), writes) };
        let mut state = self.state();
        let (Some(bind_point), Some(layout)) =
            (bind_point_index(bind_point), state.pipeline_layouts.get(&layout.0).cloned())
        else {
            return;
        };
        let Some(set_layout) = layout.sets.get(number as usize).cloned().flatten() else { return };
        let Some(slot) = self.slot(handle.0) else { return };
        slot.with(|commands| {
            // Descriptors that were pushed before stay, if they were pushed with the same layout.
            let number = number as usize;
            let before =
                commands.last_bind_of_set(bind_point, number).filter(|it| it.layout.is_compatible(&layout, number));
            let known =
                before.and_then(|it| state.sets.get(&it.set(number)?.0)).filter(|it| it.pool == PUSH_DESCRIPTOR_POOL);
            let mut pushes = before.filter(|_| known.is_some()).map_or_else(Vec::new, |it| it.pushes.clone());
            let mut set =
                known.cloned().unwrap_or_else(|| DescriptorSetState::new(PUSH_DESCRIPTOR_POOL, &set_layout, 0));
            for write in writes {
                // SAFETY: the contract of this function: a valid write.
                let bound = unsafe { state.descriptors_of_write(write) };
                set.write_elements((write.dst_binding, write.dst_array_element), bound);
            }
            state.pushed_sets += 1;
            let key = u64::MAX - state.pushed_sets;
            state.sets.insert(key, set);
            commands.pushed_sets.push(key);
            if let Some(push) = push {
                pushes.retain(|it| it.places != push.places);
                pushes.push(Arc::new(push));
            }
            let mut bind = BoundSets::new(&layout, number as u32, vec![key], Vec::new());
            bind.pushes = pushes;
            commands.bind_sets(bind_point, bind);
        });
    }

    /// How it was pushed, if binding a set of ours may disturb it.
    ///
    /// # Safety
    ///
    /// The writes must be valid, with their chains, and with the arrays that their types ask for.
    unsafe fn pack_push(
        &self,
        pipeline_bind_point: PipelineBindPoint,
        (layout, set): (PipelineLayout, u32),
        writes: &[WriteDescriptorSet],
    ) -> Option<PushDescriptorCall> {
        if !self.uses_reserved_set.load(Ordering::Relaxed) {
            return None;
        }
        let layout = self.state().pipeline_layouts.get(&layout.0)?.own_handle?;
        let params = CmdPushDescriptorSetParams {
            command_buffer: CommandBuffer::default(),
            pipeline_bind_point,
            layout,
            set,
            descriptor_write_count: writes.len() as u32,
            p_descriptor_writes: Ptr::to_slice(writes),
        };
        let place = |it: &WriteDescriptorSet| [it.dst_binding, it.dst_array_element, it.descriptor_count];
        // SAFETY: the parameters are of this command, and what they lead to is valid by the contract of this function.
        let call =
            unsafe { PackedCall::new(Command::CmdPushDescriptorSet, (&raw const params).cast(), &NoPackContext)? };
        Some(PushDescriptorCall { call, places: writes.iter().map(place).collect() })
    }

    /// Repeats a push of the application.
    pub(crate) fn repush_descriptors(&self, handle: CommandBuffer, descriptor_call: &PushDescriptorCall) {
        let Some(push) = self.next.cmd_push_descriptor_set else { return };
        let mut arena = lavascope_marshal::Arena::default();
        let Some(params) = descriptor_call.call.unpack(&mut arena) else { return };
        // SAFETY: `pack_push` packed a call of this command, so `unpack` gives its parameters, and they lead into `arena`,
        // which is alive. The command buffer is in the recording state: this runs inside of a command of the
        // application for it. The set and its layout are what the application pushed for.
        unsafe {
            let set_params = &*params.cast::<CmdPushDescriptorSetParams>();
            push(
                handle,
                set_params.pipeline_bind_point,
                set_params.layout,
                set_params.set,
                set_params.descriptor_write_count,
                set_params.p_descriptor_writes,
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(binding: u32, kind: DescriptorType, count: u32, offset: u64) -> DescriptorUpdateTemplateEntry {
        let mut template_entry = DescriptorUpdateTemplateEntry::zeroed();
        (template_entry.dst_binding, template_entry.descriptor_type, template_entry.descriptor_count) =
            (binding, kind, count);
        (template_entry.offset, template_entry.stride) = (offset, 8);
        template_entry
    }

    #[test]
    fn a_template_writes_one_descriptor_after_the_other() {
        let structures = DescriptorType::ACCELERATION_STRUCTURE_KHR;
        let entries = [
            entry(0, structures, 2, 0),
            entry(1, DescriptorType::INLINE_UNIFORM_BLOCK, 16, 0),
            entry(2, DescriptorType::UNIFORM_TEXEL_BUFFER, 1, 16),
            entry(3, structures, 1, 24),
        ];
        let template = UpdateTemplate { entries: entries.into(), bind_point: PipelineBindPoint::COMPUTE };
        let data = [10_u64, 11, 12, 13];
        // Moves the value, as on its way to a reader.
        let writes = Box::new(TemplateWrites::new(&template, Ptr::to_slice(&data).cast(), DescriptorSet(7)));
        let mut found = Vec::new();
        for write in &writes.all {
            assert_eq!((write.dst_set, write.descriptor_count), (DescriptorSet(7), 1));
            let chained = write.p_next.cast::<WriteDescriptorSetAccelerationStructureKHR>();
            // SAFETY: what the writes lead to is in `writes` and in `data`, and both are alive.
            let value = unsafe {
                match chained.as_ptr().as_ref() {
                    Some(chained) => (*chained.p_acceleration_structures.as_ptr()).0,
                    None => (*write.p_texel_buffer_view.as_ptr()).0,
                }
            };
            found.push((write.dst_binding, write.dst_array_element, chained.is_null(), value));
        }
        assert_eq!(found, [(0, 0, false, 10), (0, 1, false, 11), (2, 0, true, 12), (3, 0, false, 13)]);
    }
}
