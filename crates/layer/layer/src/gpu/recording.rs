//! Draws and dispatches as they are recorded: shaders are led to our tables, and what that takes away is done again.
//!
//! This is done for every draw, on the thread of the application: nothing is allocated, and no lock is taken, as long
//! as what is bound was bound before.
//!
//! Whoever calls in here with a command buffer is in a hook of a command that is recorded into it. So it is being
//! recorded (VUID-vkCmdDraw-commandBuffer-recording, and the same of the other commands), and host access to it is
//! externally synchronized until the hook returns: commands of ours may be recorded beside the application's.

use std::sync::Arc;

use lavascope_abi::*;
use lavascope_instrument::{ROOT_TOUCHES, ShaderTable};

use super::Gpu;
use super::arena::Region;
use super::buffered::InBuffers;
use super::choice::{Chosen, Form};
use super::commands::{Bind, Commands, POINTS};
use super::drawn::{Memory, Place};
use super::feedback;
use super::layouts::{TAIL_BYTES, Way};
use super::pushed::Pushed;
use super::variants::{Quiet, ROOT_ADDRESSES, ROOT_SPACE, Variant};

/// What is done again behind a draw.
#[derive(Default)]
pub(super) struct After {
    binds: Vec<Bind>,
    pushed: Option<Box<Pushed>>,
    in_buffers: Option<Box<InBuffers>>,
}

impl After {
    pub(super) fn is_empty(&self) -> bool {
        self.binds.is_empty() && self.pushed.is_none() && self.in_buffers.is_none()
    }
}

impl Gpu {
    /// A command buffer begins anew, or is no more: what it had is free.
    pub(super) fn clear_commands(&self, handle: u64, is_freed: bool) {
        let Some(slot) = self.slot(handle) else { return };
        let renew = |old: &mut Commands| (std::mem::take(&mut old.pushed_sets), old.renew());
        let (pushed_sets, (blocks, pools)) = if is_freed {
            let Some(mut old) = self.slots.remove(handle) else { return };
            if let Some(all) = self.state().pools.get_mut(&old.pool) {
                all.retain(|it| *it != handle);
            }
            renew(&mut old)
        } else {
            let Some(mut old) = slot.hold() else { return };
            renew(&mut old)
        };
        if !pushed_sets.is_empty() {
            let mut state = self.state();
            pushed_sets.iter().for_each(|it| drop(state.sets.remove(it)));
        }
        self.give_back(blocks, pools);
    }

    /// A draw or dispatch is about to be recorded: leads its shaders to our tables. Gives what is done behind it.
    #[inline(never)]
    pub(super) fn before_draw(&self, handle: CommandBuffer, point: usize, command: Command) -> After {
        let Some(slot) = self.slot(handle.0) else { return After::default() };
        let Some(mut commands) = slot.hold() else { return After::default() };
        self.record_draw(&mut commands, handle, point, command)
    }

    /// Everything is switched off: a draw or dispatch whose shaders have code of ours gets tables by which all is
    /// right. Gives what is done behind it. Relies on what is bound alone, and on nothing that was chosen before.
    #[cold]
    pub(super) fn permit_draw(&self, handle: CommandBuffer, point: usize) -> After {
        let Some(slot) = self.slot(handle.0) else { return After::default() };
        let Some(mut commands) = slot.hold() else { return After::default() };
        if commands.points[point].objects.is_new() {
            self.combine(&mut commands, handle, point);
        }
        commands.points[point].chosen = None;
        let Some(first) = commands.points[point].pipeline.as_ref().map(|it| Arc::clone(&it.first)) else {
            return After::default();
        };
        self.bind_form(&mut commands, handle, point, &first);
        first.fixed.iter().for_each(|it| it.permit(self.everywhere));
        if first.fixed.is_empty() && !first.stages.is_empty() {
            let form = self.form(&mut commands, &first);
            self.tell_quietly(&mut commands, handle, point, &form);
        }
        let binds_set = first.way == Way::Set && !first.stages.is_empty();
        let is_disturbing = binds_set && commands.points[point].is_disturbed_by(&first.layout);
        self.after(&mut commands, point, (binds_set, is_disturbing))
    }

    /// Everything is switched off, and command buffers that were recorded before are about to be submitted. What is
    /// bound to their sets by now is not followed any more, so their tables say that all is right.
    #[cold]
    pub(super) fn permit(&self, commands: &[u64]) {
        for slot in self.with_draws(commands).iter().filter_map(|it| self.slot(*it)) {
            slot.with(|it| it.permit(self.everywhere));
        }
    }

    /// The same for command buffers that were submitted before, and may wait for the host.
    #[cold]
    pub(super) fn permit_submitted(&self) {
        let commands: Vec<u64> = self.state().submissions.iter().flat_map(|it| it.commands.clone()).collect();
        self.permit(&commands);
    }

    #[inline(always)]
    fn record_draw(&self, commands: &mut Commands, handle: CommandBuffer, point: usize, command: Command) -> After {
        let (number, launch) = (commands.count, commands.launches);
        (commands.count, commands.launches) = (number + 1, launch + 1);
        if commands.points[point].objects.is_new() {
            self.combine(commands, handle, point);
        }
        if commands.points[point].pipeline.is_none() {
            return After::default();
        }
        let known = commands.points[point].chosen;
        let Some(choice) = known.or_else(|| self.choose(commands, point)) else { return After::default() };
        // Taken out, since the rest of the command buffer changes meanwhile.
        let mut choices = std::mem::take(&mut commands.choices.all);
        let forms = std::mem::take(&mut commands.choices.forms);
        let chosen = &mut choices[choice as usize];
        let form = &forms[chosen.form as usize];
        let after = self.record_chosen(commands, handle, point, (number, Some(launch), command), (form, chosen));
        (commands.choices.all, commands.choices.forms) = (choices, forms);
        after
    }

    #[inline(always)]
    fn record_chosen(
        &self,
        commands: &mut Commands,
        handle: CommandBuffer,
        point: usize,
        draw: (u32, Option<u32>, Command),
        (form, chosen): (&Form, &mut Chosen),
    ) -> After {
        self.bind_form(commands, handle, point, &form.variant);
        if let Some(place) = self.tell_tables(commands, handle, point, (form, chosen)) {
            commands.keep_draw(draw, form.number, place);
        }
        for fixed in &form.variant.fixed {
            let place = Place { memory: Memory::Shared, records: fixed.records, touch_words: 0 };
            commands.keep_draw(draw, form.number, place);
        }
        let binds_set = form.variant.way == Way::Set && !form.variant.stages.is_empty();
        self.after(commands, point, (binds_set, chosen.is_disturbing))
    }

    /// As for a draw, for commands that know what is bound by its handle: in the form that the application has. What is
    /// fixed when they are preprocessed cannot have tables of its own.
    pub(super) fn before_generated(
        &self,
        handle: CommandBuffer,
        point: usize,
        command: Command,
        is_fixed: bool,
    ) -> After {
        let Some(slot) = self.slot(handle.0) else { return After::default() };
        let Some(mut commands) = slot.hold() else { return After::default() };
        let after = self.record_generated(&mut commands, handle, point, (command, is_fixed));
        // For what is drawn next it is chosen anew.
        commands.points[point].chosen = None;
        after
    }

    fn record_generated(
        &self,
        commands: &mut Commands,
        handle: CommandBuffer,
        point: usize,
        (command, is_fixed): (Command, bool),
    ) -> After {
        let number = commands.count;
        commands.count += 1;
        if commands.points[point].objects.is_new() {
            self.combine(commands, handle, point);
        }
        let Some(mut chosen) = self.choose_first(commands, point, is_fixed) else { return After::default() };
        let form = commands.choices.forms[chosen.form as usize].clone();
        self.record_chosen(commands, handle, point, (number, None, command), (&form, &mut chosen))
    }

    /// Binds the form of a pipeline where the driver has another.
    #[inline(always)]
    fn bind_form(&self, commands: &mut Commands, handle: CommandBuffer, point: usize, variant: &Variant) {
        if let Some(objects) = &variant.objects {
            return self.bind_objects(commands, handle, point, objects.bound());
        }
        let bound = &mut commands.points[point].driver_pipeline;
        if *bound != variant.handle
            && let Some(bind) = self.next.cmd_bind_pipeline
        {
            // SAFETY: the command buffer is being recorded, as the module says. The pipeline differs from the one that
            // the application bound in its shaders alone, and is destroyed with that.
            unsafe { bind(handle, POINTS[point], variant.handle) };
            *bound = variant.handle;
        }
    }

    /// Makes the tables of a draw and tells its shaders. Gives where its memory is, if it has any of its own.
    #[inline(always)]
    fn tell_tables(
        &self,
        commands: &mut Commands,
        handle: CommandBuffer,
        point: usize,
        (form, chosen): (&Form, &mut Chosen),
    ) -> Option<Place> {
        let variant = &form.variant;
        if variant.stages.is_empty() || !variant.fixed.is_empty() {
            return None;
        }
        match (chosen.table, variant.way) {
            (Some(table), Way::Set) => {
                if let Some((records, set)) = self.or_fail(self.own_set(commands, form, table)) {
                    self.bind_set(handle, point, variant, set);
                    return Some(Place { memory: Memory::Records, records, touch_words: 0 });
                }
            }
            (Some(table), _) => {
                if let Some(root) = self.or_fail(self.own_root(commands, form, table)) {
                    self.push_root(commands, handle, form, root);
                    let records = root.from(ROOT_SPACE).first(form.record_words);
                    return Some(Place { memory: Memory::Root, records, touch_words: form.touch_words });
                }
            }
            (None, _) => {}
        }
        chosen.table = None;
        self.tell_quietly(commands, handle, point, form);
        None
    }

    /// A draw without tables of its own, and so are those behind it with the same.
    #[cold]
    fn tell_quietly(&self, commands: &mut Commands, handle: CommandBuffer, point: usize, form: &Form) {
        match form.variant.quiet {
            Some(Quiet::Root(root)) => self.push_root(commands, handle, form, root),
            Some(Quiet::Set(set)) => self.bind_set(handle, point, &form.variant, set),
            None => {}
        }
    }

    /// A root table for a draw, and behind it its records and what it touches.
    #[inline(always)]
    fn own_root(&self, commands: &mut Commands, form: &Form, table: Region) -> Option<Region> {
        let words = ROOT_SPACE + form.record_words + form.touch_words;
        let all = commands.arena.allocate_lines(self, words)?;
        let mut root = form.root;
        lead_to(&mut root, ShaderTable::Descriptors as u32 * 2, table.device_address);
        lead_to(&mut root, ShaderTable::Output as u32 * 2, all.from(ROOT_SPACE).device_address);
        if form.touch_words > 0 {
            let area = all.from(ROOT_SPACE + form.record_words);
            lead_to(&mut root, ROOT_TOUCHES, area.device_address);
            feedback::fill_slots(area, &form.variant);
        }
        if form.variant.reads_addresses {
            let addresses = self.addresses_now().device_address;
            commands.addresses = match commands.addresses {
                // Roots lead to different tables: all are led to the right one when they are submitted.
                Some(before) if before != addresses => Some(0),
                _ => Some(addresses),
            };
            lead_to(&mut root, ROOT_ADDRESSES, addresses);
        }
        all.write(&root);
        Some(all)
    }

    /// Records and a set for a draw.
    fn own_set(&self, commands: &mut Commands, form: &Form, table: Region) -> Option<(Region, DescriptorSet)> {
        let records = commands.arena.allocate(self, form.record_words)?;
        let set = commands.write_set(self, [records, table, self.everywhere, form.variant.cells])?;
        Some((records, set))
    }

    #[inline(always)]
    fn push_root(&self, commands: &mut Commands, handle: CommandBuffer, form: &Form, root: Region) {
        let (Some(push), Some((layout, stages)), Some(tail)) = (self.next.cmd_push_constants, form.push, self.tail)
        else {
            return;
        };
        let bytes = root.device_address.to_ne_bytes();
        // SAFETY: the command buffer is being recorded, as the module says. `Form::push` has a layout of ours, whose
        // push constants reach to the tail, and all of the stages that have them; the bytes are `TAIL_BYTES`.
        unsafe { push(handle, layout, stages, tail, TAIL_BYTES, Ptr::to_slice(&bytes)) };
        commands.pushed.disturb(&form.variant.layout);
    }

    fn bind_set(&self, handle: CommandBuffer, point: usize, variant: &Variant, set: DescriptorSet) {
        let (Some(bind), Some(layout)) = (self.next.cmd_bind_descriptor_sets, variant.layout.own) else { return };
        // SAFETY: the command buffer is being recorded, as the module says. The layout is ours and has our set at this
        // number; the set is of the command buffer, or of the pipeline, and stays as long as that.
        unsafe { bind(handle, POINTS[point], layout, self.set, 1, Ptr::to(&set), 0, Ptr::NULL) };
    }

    /// What is done again where a set of ours was bound, and where that disturbed others.
    #[inline(always)]
    fn after(&self, commands: &mut Commands, point: usize, (binds_set, is_disturbing): (bool, bool)) -> After {
        let mut after = After::default();
        if binds_set {
            after.in_buffers = commands.in_buffers();
        }
        if is_disturbing {
            let binds = commands.points[point].binds.iter();
            after.binds = binds.filter(|it| it.can_be_made_again()).cloned().collect();
        }
        if commands.pushed.is_disturbed() {
            after.pushed = Some(Box::new(commands.pushed.clone()));
            commands.pushed.mend();
        }
        after
    }

    /// Binds and pushes again what the application had for compute.
    pub(super) fn bind_compute_again(&self, handle: CommandBuffer, commands: &Commands) {
        let point = &commands.points[1];
        if let Some(bind) = self.next.cmd_bind_pipeline.filter(|_| point.driver_pipeline.0 != 0) {
            // SAFETY: the command buffer is being recorded, as the module says. It is the pipeline that is bound for
            // compute by the application, or a form of it, and must be alive when the command buffer is submitted.
            unsafe { bind(handle, POINTS[1], point.driver_pipeline) };
        }
        let binds = point.binds.iter().filter(|it| it.can_be_made_again()).cloned().collect();
        let (pushed, in_buffers) = (Some(Box::new(commands.pushed.clone())), commands.in_buffers());
        self.after_draw(handle, 1, &After { binds, pushed, in_buffers });
    }

    /// Binds and pushes again what the application had.
    pub(super) fn after_draw(&self, handle: CommandBuffer, point: usize, after: &After) {
        if let Some(push) = self.next.cmd_push_constants {
            after.pushed.iter().for_each(|it| it.push_again(handle, push));
        }
        let Some(bind) = self.next.cmd_bind_descriptor_sets else { return };
        for it in &after.binds {
            if !it.pushes.is_empty() {
                it.pushes.iter().for_each(|it| self.push_again(handle, it));
                continue;
            }
            let layout = it.layout.own.unwrap_or(it.layout.handle);
            let sets: Vec<DescriptorSet> = it.sets.iter().map(|it| DescriptorSet(*it)).collect();
            let (count, offset_count) = (sets.len() as u32, it.offsets.len() as u32);
            let (sets, offsets) = (Ptr::to_slice(&sets), Ptr::to_slice(&it.offsets));
            // SAFETY: the command buffer is being recorded, as the module says. The application bound these sets
            // itself, with these offsets and this layout or one that ours stands in for; the lists outlive the call.
            unsafe { bind(handle, POINTS[point], layout, it.first, count, sets, offset_count, offsets) };
        }
        after.in_buffers.iter().for_each(|it| self.bind_buffers_again(handle, it));
    }
}

/// Leads a root table to a table, from the word on that has the lower half of its address.
#[inline(always)]
fn lead_to(root: &mut [u32; ROOT_SPACE as usize], at: u32, address: u64) {
    let at = at as usize;
    (root[at], root[at + 1]) = (address as u32, (address >> 32) as u32);
}
