//! Draws and dispatches as they are recorded: shaders get their tables, and disturbed state is restored.
//!
//! Each draw has 256 words for fault records (more with prints), a root table with the addresses of all tables, and a
//! descriptor table, which draws with the same sets share. Binding our descriptor set may disturb sets that the
//! application bound with another layout. These are bound or pushed again after the draw, and the offsets of descriptor
//! buffers are set again. Push constants are restored in the same way.
//!
//! This runs for every draw, on the thread of the application. If the application binds nothing new, the code allocates
//! nothing and takes no lock. Every draw needs a `vkCmdPushConstants`, because a fault record names its draw; on lavapipe
//! that is a third of the cost of a dispatch.
//!
//! All callers are hooks of a command that is recorded into the command buffer. So it is being recorded
//! (VUID-vkCmdDraw-commandBuffer-recording, and the same of the other commands), and host access to it is externally
//! synchronized until the hook returns: our commands may be recorded beside the application's.

use std::sync::Arc;

use lavascope_abi::*;
use lavascope_instrument::{ROOT_TOUCHES, ShaderTable};

use super::choice_cache::DrawChoice;
use super::command_buffer::{BIND_POINTS, BoundSets, CommandBufferState};
use super::launch_counts::UncheckedLaunch;
use super::push_constants::PushedConstants;
use super::recorded_draws::{DrawCommand, DrawMemory, DrawRecordArea};
use super::recorded_variant::RecordedVariant;
use crate::gpu::DeviceChecks;
use crate::gpu::pipeline::layouts::{ROOT_PUSH_BYTES, RootBinding};
use crate::gpu::pipeline::variants::{PermissiveTables, PipelineVariant, ROOT_ADDRESSES, ROOT_SPACE};
use crate::gpu::readback::touches;
use crate::gpu::resource::arena::ArenaRegion;
use crate::gpu::resource::descriptor_buffers::DescriptorBufferBindings;

/// Commands that the device generates are counted behind those of the bind points.
const GENERATED_COMMANDS: usize = 3;

/// The state that must be restored after a draw.
#[derive(Default)]
pub(crate) struct StateToRestore {
    binds: Vec<BoundSets>,
    push_constants: Option<Box<PushedConstants>>,
    descriptor_buffers: Option<Box<DescriptorBufferBindings>>,
}

impl StateToRestore {
    pub(crate) fn is_empty(&self) -> bool {
        self.binds.is_empty() && self.push_constants.is_none() && self.descriptor_buffers.is_none()
    }
}

impl DeviceChecks {
    /// A command buffer is reset or freed: frees its memory.
    pub(crate) fn reset_command_buffer(&self, handle: u64, is_freed: bool) {
        let Some(slot) = self.slot(handle) else { return };
        let renew = |old: &mut CommandBufferState| (std::mem::take(&mut old.pushed_sets), old.reset());
        let (pushed_sets, (blocks, pools)) = if is_freed {
            let Some(mut old) = self.command_buffers.remove(handle) else { return };
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
        self.recycle(blocks, pools);
    }

    /// Gives a draw or dispatch its tables, before it is recorded. Returns what must be restored after it.
    #[inline(never)]
    pub(crate) fn before_draw(&self, handle: CommandBuffer, bind_point: usize, command: Command) -> StateToRestore {
        let Some(slot) = self.slot(handle.0) else { return StateToRestore::default() };
        let Some(mut commands) = slot.hold() else { return StateToRestore::default() };
        self.record_draw(&mut commands, handle, bind_point, command)
    }

    /// Gives a draw or dispatch with our code permissive tables, after the layer was disabled. Returns what must be
    /// restored after it. Uses only the current bindings, and no earlier choice.
    #[cold]
    pub(crate) fn record_permissive_draw(&self, handle: CommandBuffer, bind_point: usize) -> StateToRestore {
        let Some(slot) = self.slot(handle.0) else { return StateToRestore::default() };
        let Some(mut commands) = slot.hold() else { return StateToRestore::default() };
        if commands.bind_points[bind_point].shader_objects.is_changed() {
            self.resolve_shader_objects(&mut commands, handle, bind_point);
        }
        commands.bind_points[bind_point].chosen = None;
        let Some(first) = commands.bind_points[bind_point].pipeline.as_ref().map(|it| Arc::clone(&it.first)) else {
            return StateToRestore::default();
        };
        self.bind_variant(&mut commands, handle, bind_point, &first);
        first.fixed_tables.iter().for_each(|it| it.make_permissive(self.permissive_addresses));
        if first.fixed_tables.is_empty() && !first.stages.is_empty() {
            let recorded = self.record_variant(&mut commands, &first);
            self.provide_permissive_tables(&mut commands, handle, bind_point, &recorded);
        }
        let binds_set = first.root_binding == RootBinding::DescriptorSet && !first.stages.is_empty();
        let is_disturbing = binds_set && commands.bind_points[bind_point].is_disturbed_by(&first.layout);
        self.state_to_restore(&mut commands, bind_point, (binds_set, is_disturbing))
    }

    /// Makes tables of command buffers that are about to be submitted permissive, after the layer was disabled. The
    /// contents of their sets are no longer tracked.
    #[cold]
    pub(crate) fn make_permissive(&self, commands: &[u64]) {
        for slot in self.instrumented_command_buffers(commands).iter().filter_map(|it| self.slot(*it)) {
            slot.with(|it| it.make_permissive(self.permissive_addresses));
        }
    }

    /// Like `make_permissive`, for command buffers that were submitted before and may wait for the host.
    #[cold]
    pub(crate) fn make_submitted_permissive(&self) {
        let commands: Vec<u64> = self.state().submissions.iter().flat_map(|it| it.command_buffers.clone()).collect();
        self.make_permissive(&commands);
    }

    #[inline(always)]
    fn record_draw(
        &self,
        commands: &mut CommandBufferState,
        handle: CommandBuffer,
        bind_point: usize,
        command: Command,
    ) -> StateToRestore {
        let (number, launch) = (commands.command_counts[bind_point], commands.launches);
        commands.command_counts[bind_point] = number + 1;
        commands.launches = launch + 1;
        if commands.bind_points[bind_point].shader_objects.is_changed() {
            self.resolve_shader_objects(commands, handle, bind_point);
        }
        commands.launch_counts.add();
        if commands.bind_points[bind_point].pipeline.is_none() {
            if commands.bind_points[bind_point].has_unknown_object {
                commands.launch_counts.leave_unchecked(UncheckedLaunch::Object, None);
            }
            return StateToRestore::default();
        }
        // `CommandBufferState` is what the layer knows of a command buffer: what is bound, its draws, and their tables.
        // `chosen` is the choice for all draws until something else is bound, by its index in `choices`.
        let known = commands.bind_points[bind_point].chosen;
        let Some(choice) = known.or_else(|| self.choose_variant(commands, bind_point)) else {
            commands.launch_counts.leave_unchecked(UncheckedLaunch::Ended, None);
            return StateToRestore::default();
        };
        // Taken out, because the rest of the command buffer changes meanwhile.
        let mut choices = std::mem::take(&mut commands.choices.entries);
        let variants = std::mem::take(&mut commands.recorded_variants);
        let chosen = &mut choices[choice as usize].choice;
        let recorded = &variants[chosen.variant_index as usize];
        let after = self.record_variant_draw(
            commands,
            handle,
            bind_point,
            DrawCommand { number, launch: Some(launch), command },
            (recorded, chosen),
        );
        (commands.choices.entries, commands.recorded_variants) = (choices, variants);
        after
    }

    #[inline(always)]
    fn record_variant_draw(
        &self,
        commands: &mut CommandBufferState,
        handle: CommandBuffer,
        bind_point: usize,
        draw: DrawCommand,
        (recorded, chosen): (&RecordedVariant, &mut DrawChoice),
    ) -> StateToRestore {
        self.bind_variant(commands, handle, bind_point, &recorded.variant);
        if let Some(place) = self.provide_tables(commands, handle, bind_point, (recorded, chosen)) {
            commands.add_draw(draw, recorded.number, place);
        }
        if let Some(why) = chosen.unchecked {
            commands.launch_counts.leave_unchecked(why, Some(&recorded.variant));
        }
        for fixed in &recorded.variant.fixed_tables {
            let place = DrawRecordArea { memory: DrawMemory::Shared, records: fixed.records, touch_words: 0 };
            commands.add_draw(draw, recorded.number, place);
        }
        let binds_set =
            recorded.variant.root_binding == RootBinding::DescriptorSet && !recorded.variant.stages.is_empty();
        self.state_to_restore(commands, bind_point, (binds_set, chosen.is_disturbing))
    }

    /// Prepares commands that name pipelines by handle: they run the variant with the application's handle. If they are
    /// preprocessed, they get no tables.
    pub(crate) fn before_generated(
        &self,
        handle: CommandBuffer,
        bind_point: usize,
        command: Command,
        is_preprocessed: bool,
    ) -> StateToRestore {
        let Some(slot) = self.slot(handle.0) else { return StateToRestore::default() };
        let Some(mut commands) = slot.hold() else { return StateToRestore::default() };
        let after = self.record_generated(&mut commands, handle, bind_point, (command, is_preprocessed));
        // The next draw makes a new choice.
        commands.bind_points[bind_point].chosen = None;
        after
    }

    fn record_generated(
        &self,
        commands: &mut CommandBufferState,
        handle: CommandBuffer,
        bind_point: usize,
        (command, is_preprocessed): (Command, bool),
    ) -> StateToRestore {
        let number = commands.command_counts[GENERATED_COMMANDS];
        commands.command_counts[GENERATED_COMMANDS] = number + 1;
        commands.launch_counts.add();
        if commands.bind_points[bind_point].shader_objects.is_changed() {
            self.resolve_shader_objects(commands, handle, bind_point);
        }
        let Some(mut chosen) = self.choose_application_variant(commands, bind_point, is_preprocessed) else {
            return StateToRestore::default();
        };
        let recorded = commands.recorded_variants[chosen.variant_index as usize].clone();
        self.record_variant_draw(
            commands,
            handle,
            bind_point,
            DrawCommand { number, launch: None, command },
            (&recorded, &mut chosen),
        )
    }

    /// Binds the variant of a pipeline, if the driver has another one bound.
    #[inline(always)]
    fn bind_variant(
        &self,
        commands: &mut CommandBufferState,
        handle: CommandBuffer,
        bind_point: usize,
        variant: &PipelineVariant,
    ) {
        if let Some(objects) = &variant.shader_objects {
            return self.bind_shader_objects(commands, handle, bind_point, objects.bound());
        }
        let bound = &mut commands.bind_points[bind_point].driver_pipeline;
        if *bound != variant.handle
            && let Some(bind) = self.next.cmd_bind_pipeline
        {
            // SAFETY: the command buffer is being recorded, as the module says. The pipeline differs from the one that
            // the application bound in its shaders alone, and is destroyed with that.
            unsafe { bind(handle, BIND_POINTS[bind_point], variant.handle) };
            *bound = variant.handle;
        }
    }

    /// Writes the tables of a draw and passes them to its shaders. Returns the memory of the draw, if it has memory of
    /// its own.
    #[inline(always)]
    fn provide_tables(
        &self,
        commands: &mut CommandBufferState,
        handle: CommandBuffer,
        bind_point: usize,
        (recorded, chosen): (&RecordedVariant, &mut DrawChoice),
    ) -> Option<DrawRecordArea> {
        let variant = &recorded.variant;
        if variant.stages.is_empty() || !variant.fixed_tables.is_empty() {
            return None;
        }
        match (chosen.table, variant.root_binding) {
            (Some(table), RootBinding::DescriptorSet) => {
                if let Some((records, set)) = self.or_stop_checking(self.allocate_draw_set(commands, recorded, table)) {
                    self.bind_reserved_set(handle, bind_point, variant, set);
                    return Some(DrawRecordArea { memory: DrawMemory::Records, records, touch_words: 0 });
                }
            }
            (Some(table), _) => {
                if let Some(root) = self.or_stop_checking(self.allocate_root_table(commands, recorded, table)) {
                    self.push_root(commands, handle, recorded, root);
                    let records = root.skip_words(ROOT_SPACE).first_words(recorded.record_words);
                    return Some(DrawRecordArea {
                        memory: DrawMemory::Root,
                        records,
                        touch_words: recorded.touch_words,
                    });
                }
            }
            (None, _) => {}
        }
        if chosen.table.is_some() || chosen.unchecked.is_none() {
            chosen.unchecked = Some(UncheckedLaunch::Ended);
        }
        chosen.table = None;
        self.provide_permissive_tables(commands, handle, bind_point, recorded);
        None
    }

    /// Gives this draw, and later draws with the same bindings, the shared permissive tables.
    #[cold]
    fn provide_permissive_tables(
        &self,
        commands: &mut CommandBufferState,
        handle: CommandBuffer,
        bind_point: usize,
        recorded: &RecordedVariant,
    ) {
        match recorded.variant.permissive_tables {
            Some(PermissiveTables::Root(root)) => self.push_root(commands, handle, recorded, root),
            Some(PermissiveTables::Set(set)) => self.bind_reserved_set(handle, bind_point, &recorded.variant, set),
            None => {}
        }
    }

    /// Allocates the root table of a draw, followed by its records and its touches.
    #[inline(always)]
    fn allocate_root_table(
        &self,
        commands: &mut CommandBufferState,
        recorded: &RecordedVariant,
        table: ArenaRegion,
    ) -> Option<ArenaRegion> {
        let words = ROOT_SPACE + recorded.record_words + recorded.touch_words;
        let all = commands.arena.allocate_cache_lines(self, words)?;
        let mut root = recorded.root;
        write_root_address(&mut root, ShaderTable::Descriptors as u32 * 2, table.device_address);
        write_root_address(&mut root, ShaderTable::Output as u32 * 2, all.skip_words(ROOT_SPACE).device_address);
        if recorded.touch_words > 0 {
            let area = all.skip_words(ROOT_SPACE + recorded.record_words);
            write_root_address(&mut root, ROOT_TOUCHES, area.device_address);
            touches::fill_slots(area, &recorded.variant);
        }
        if recorded.variant.reads_addresses {
            let addresses = self.current_address_region().device_address;
            commands.address_table = match commands.address_table {
                // The root tables have different address tables. At submission, all get the current one.
                Some(before) if before != addresses => Some(0),
                _ => Some(addresses),
            };
            write_root_address(&mut root, ROOT_ADDRESSES, addresses);
        }
        all.write(&root);
        Some(all)
    }

    /// Allocates the records and a descriptor set for a draw.
    fn allocate_draw_set(
        &self,
        commands: &mut CommandBufferState,
        recorded: &RecordedVariant,
        table: ArenaRegion,
    ) -> Option<(ArenaRegion, DescriptorSet)> {
        let records = commands.arena.allocate(self, recorded.record_words)?;
        let set = commands
            .allocate_reserved_set(self, [records, table, self.permissive_addresses, recorded.variant.cells])?;
        Some((records, set))
    }

    #[inline(always)]
    fn push_root(
        &self,
        commands: &mut CommandBufferState,
        handle: CommandBuffer,
        recorded: &RecordedVariant,
        root: ArenaRegion,
    ) {
        let (Some(push), Some((layout, stages)), Some(tail)) =
            (self.next.cmd_push_constants, recorded.push, self.root_push_offset)
        else {
            return;
        };
        let bytes = root.device_address.to_ne_bytes();
        // SAFETY: the command buffer is being recorded, as the module says. `RecordedVariant::push` has a layout of ours, whose
        // push constants reach to the tail, and all of the stages that have them; the bytes are `ROOT_PUSH_BYTES`.
        unsafe { push(handle, layout, stages, tail, ROOT_PUSH_BYTES, Ptr::to_slice(&bytes)) };
        commands.push_constants.disturb(&recorded.variant.layout);
    }

    fn bind_reserved_set(
        &self,
        handle: CommandBuffer,
        bind_point: usize,
        variant: &PipelineVariant,
        set: DescriptorSet,
    ) {
        let (Some(bind), Some(layout)) = (self.next.cmd_bind_descriptor_sets, variant.layout.own_handle) else {
            return;
        };
        // SAFETY: the command buffer is being recorded, as the module says. The layout is ours and has our set at this
        // number; the set is of the command buffer, or of the pipeline, and stays as long as that.
        unsafe { bind(handle, BIND_POINTS[bind_point], layout, self.reserved_set, 1, Ptr::to(&set), 0, Ptr::NULL) };
    }

    /// The state that must be restored after a set of ours was bound and disturbed others.
    #[inline(always)]
    fn state_to_restore(
        &self,
        commands: &mut CommandBufferState,
        bind_point: usize,
        (binds_set, is_disturbing): (bool, bool),
    ) -> StateToRestore {
        let mut after = StateToRestore::default();
        if binds_set {
            after.descriptor_buffers = commands.descriptor_buffer_bindings();
        }
        if is_disturbing {
            let binds = commands.bind_points[bind_point].binds.iter();
            after.binds = binds.filter(|it| it.can_be_rebound()).cloned().collect();
        }
        if commands.push_constants.is_disturbed() {
            after.push_constants = Some(Box::new(commands.push_constants.clone()));
            commands.push_constants.clear_disturbed();
        }
        after
    }

    /// Restores the application's compute state.
    pub(crate) fn rebind_compute(&self, handle: CommandBuffer, commands: &CommandBufferState) {
        let bind_point = &commands.bind_points[1];
        if let Some(bind) = self.next.cmd_bind_pipeline.filter(|_| bind_point.driver_pipeline.0 != 0) {
            // SAFETY: the command buffer is being recorded, as the module says. It is the pipeline that is bound for
            // compute by the application, or a variant of it, and must be alive when the command buffer is submitted.
            unsafe { bind(handle, BIND_POINTS[1], bind_point.driver_pipeline) };
        }
        let binds = bind_point.binds.iter().filter(|it| it.can_be_rebound()).cloned().collect();
        let (pushed, in_buffers) =
            (Some(Box::new(commands.push_constants.clone())), commands.descriptor_buffer_bindings());
        self.restore_state(
            handle,
            1,
            &StateToRestore { binds, push_constants: pushed, descriptor_buffers: in_buffers },
        );
    }

    /// Restores the application's state.
    pub(crate) fn restore_state(&self, handle: CommandBuffer, bind_point: usize, after: &StateToRestore) {
        if let Some(push) = self.next.cmd_push_constants {
            after.push_constants.iter().for_each(|it| it.repush(handle, push));
        }
        let Some(bind) = self.next.cmd_bind_descriptor_sets else { return };
        for bound_sets in &after.binds {
            if !bound_sets.pushes.is_empty() {
                bound_sets.pushes.iter().for_each(|it| self.repush_descriptors(handle, it));
                continue;
            }
            let layout = bound_sets.layout.own_handle.unwrap_or(bound_sets.layout.handle);
            let sets: Vec<DescriptorSet> = bound_sets.sets.iter().map(|it| DescriptorSet(*it)).collect();
            let (count, offset_count) = (sets.len() as u32, bound_sets.offsets.len() as u32);
            let (sets, offsets) = (Ptr::to_slice(&sets), Ptr::to_slice(&bound_sets.offsets));
            // SAFETY: the command buffer is being recorded, as the module says. The application bound these sets
            // itself, with these offsets and this layout or one that ours stands in for; the lists outlive the call.
            unsafe {
                bind(handle, BIND_POINTS[bind_point], layout, bound_sets.first, count, sets, offset_count, offsets)
            };
        }
        after.descriptor_buffers.iter().for_each(|it| self.rebind_descriptor_buffers(handle, it));
    }
}

/// Writes the address of a table into a root table; `at` is the word with the lower half.
#[inline(always)]
fn write_root_address(root: &mut [u32; ROOT_SPACE as usize], at: u32, address: u64) {
    let at = at as usize;
    (root[at], root[at + 1]) = (address as u32, (address >> 32) as u32);
}
