//! Packing: the parameters or outputs of a call become a record.
//!
//! Frequent commands have generated code that packs them (`fast_pack`). It declines unusual parameters, for example a
//! `pNext` chain. These calls, and calls of all other commands, are packed by the description of the command
//! (`lavascope_abi::desc`).

use lavascope_abi::Command;
use lavascope_marshal::{Packer, RecordBuffer, fast_pack};
use lavascope_stream::StreamThread;

use super::call_target::CallTarget;
use super::thread_state::ThreadLocalState;
use crate::intercept::handle_table::HandleTable;
use crate::intercept::object_deps::ObjectIdResolver;
use crate::intercept::order::CommandOrdering;
use crate::loader::device::DeviceData;
use crate::process::listeners::Listeners;

/// The stream of a thread as the place in which `fast_pack` stores a record.
pub(crate) struct StreamSpace<'a>(&'a mut StreamThread);

// SAFETY: `StreamThread::claim` reserves this many words after those that are committed, and the thread is borrowed.
unsafe impl fast_pack::RecordSpace for StreamSpace<'_> {
    #[inline(always)]
    fn claim(&mut self, words: usize) -> *mut u64 {
        self.0.claim(words)
    }

    #[inline(always)]
    unsafe fn written_record(&mut self, words: usize) -> &[u64] {
        // Claiming again gives the same words, since the stream commits only in `try_pack_in_stream`.
        let first = self.0.claim(words);
        // SAFETY: the contract of `RecordSpace::written_record`: these are the words that were claimed last, and all of them
        // are written.
        unsafe { std::slice::from_raw_parts(first, words) }
    }
}

impl ThreadLocalState {
    /// Packs a call into the stream itself, which saves a copy. Returns whether the record is published there.
    ///
    /// A record in the stream cannot get order edges any more. So a call that needs some, or that `pack` declines,
    /// is not published, and must be packed again in the buffer.
    #[inline(always)]
    pub(super) fn try_pack_in_stream<T>(
        &mut self,
        target: &CallTarget<'_, DeviceData>,
        (call, order): (u64, CommandOrdering),
        params: &T,
        pack: impl FnOnce(&mut StreamSpace<'_>, &ObjectIdResolver<'_>, u64, &T) -> Option<usize>,
    ) -> bool {
        let resolver = ObjectIdResolver {
            handles: target.owner.handles(),
            thread: self.thread.number(),
            deps: &self.deps,
            is_ordered: true,
            last_command_buffer: target.command_buffer(&self.last_command_buffer),
        };
        let words = pack(&mut StreamSpace(&mut self.thread), &resolver, call, params);
        self.add_command_buffer_readers(target, order);
        if let (Some(words), true) = (words, self.depends_on_own_thread_only(target)) {
            // SAFETY: `pack` gives the words that it claimed last and has written, and nothing was claimed since.
            unsafe { self.thread.commit(words) };
            self.mark_objects_used(target, call);
            return true;
        }
        self.deps.clear();
        false
    }

    /// Packs a call into the thread's buffer, by generated code or else by the description of the command.
    ///
    /// # Safety
    ///
    /// `params` must be the parameters of a call of `command` that obey its VUIDs and that has not returned to the
    /// application.
    #[inline(always)]
    pub(super) unsafe fn pack_in_buffer<T>(
        &mut self,
        target: &CallTarget<'_, DeviceData>,
        listeners: Listeners,
        (command, call): (Command, u64),
        params: &T,
        pack: impl FnOnce(&mut RecordBuffer, &ObjectIdResolver<'_>, u64, &T) -> Option<usize>,
    ) {
        let is_ordered = listeners.has_any(Listeners::READS);
        let resolver = ObjectIdResolver {
            handles: target.owner.handles(),
            thread: self.thread.number(),
            deps: &self.deps,
            is_ordered,
            last_command_buffer: target.command_buffer(&self.last_command_buffer),
        };
        if pack(&mut self.record, &resolver, call, params).is_none() {
            self.record.clear();
            let params = std::ptr::from_ref(params).cast();
            // SAFETY: the contract of this function, which is that of `pack_by_desc`.
            unsafe { pack_by_desc(&mut self.record, &resolver, command, params, call) };
        }
        if is_ordered && let Some(command_buffer) = target.command_buffer(&self.last_command_buffer) {
            self.add_command_buffer_dep(command_buffer.id, command_buffer.sync_domain);
        }
    }

    /// Packs the outputs that `outputs_image` gathered.
    ///
    /// # Safety
    ///
    /// `self.outputs` must be what `outputs_image` gathered from a call of `command` that obeys its VUIDs, and that has
    /// not returned to the application.
    pub(super) unsafe fn pack_outputs(&mut self, handles: &HandleTable, command: Command, call: u64) {
        self.record.clear();
        // The record of the outputs needs no order of its own: it comes after the record of the parameters.
        let resolver = ObjectIdResolver {
            handles,
            thread: self.thread.number(),
            deps: &self.deps,
            is_ordered: false,
            last_command_buffer: None,
        };
        let outputs = self.outputs.as_ptr().cast();
        // SAFETY: the contract of this function. `outputs_image` left null what the call did not write, and what the
        // outputs lead to stays until the call returns to the application.
        unsafe { Packer::new(&resolver, handles).pack_outputs(&mut self.record, command, outputs, call) };
    }
}

/// Packs the parameters of a call by the description of the command.
///
/// # Safety
///
/// `params` must point to the parameters of a call of `command` that obey its VUIDs and that has not returned to the
/// application.
#[inline(never)]
pub(super) unsafe fn pack_by_desc(
    record: &mut RecordBuffer,
    resolver: &ObjectIdResolver<'_>,
    command: Command,
    params: *const u8,
    call: u64,
) {
    // SAFETY: the contract of this function: the VUIDs of the command make its pointers valid until the call returns.
    unsafe { Packer::new(resolver, resolver.handles).pack_parameters(record, command, params, call) };
}
