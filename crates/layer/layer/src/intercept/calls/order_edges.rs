//! The order between threads: what a call comes after, and what comes after it.
//!
//! An object remembers the last call that used it exclusively. If that was a call of another thread, the record of the
//! next call gets an [`OrderEdge`] to it. Barriers order calls that share no object; see [`CommandOrdering`].

use lavascope_abi::{
    Command, GetAccelerationStructureDeviceAddressKHRParams, GetBufferDeviceAddressParams,
    GetSemaphoreCounterValueParams, HandleType, ObjectId,
};
use lavascope_record::OrderEdge;
use lavascope_stream::{ObjectReaders, ObjectSlot, SyncDomain};

use super::call_target::CallTarget;
use super::thread_state::ThreadLocalState;
use crate::intercept::handle_table::HandleTable;
use crate::intercept::order::CommandOrdering;
use crate::intercept::thread_safety;
use crate::loader::device::DeviceData;
use crate::process::listeners::Listeners;
use crate::process::process_state::PROCESS_STATE;

impl ThreadLocalState {
    /// Begins a call and its record, after a local barrier if the command or another thread asks for one. Returns the
    /// number of the call.
    #[inline(always)]
    pub(super) fn begin_record(&mut self, listeners: Listeners, order: CommandOrdering) -> u64 {
        if listeners.has_any(Listeners::READER) && order.has_local_barrier | self.thread.take_barrier_request() {
            match order.has_local_barrier {
                true => self.thread.order_after_completed(&PROCESS_STATE.threads),
                false => self.thread.order_after_pushes(&PROCESS_STATE.threads),
            }
        }
        self.record.clear();
        self.thread.begin()
    }

    /// Whether the record being made needs no order edge: it only comes after calls of its own thread.
    #[inline(always)]
    pub(super) fn depends_on_own_thread_only(&mut self, target: &CallTarget<'_, DeviceData>) -> bool {
        let last = target.command_buffer(&self.last_command_buffer).map_or(0, |it| it.sync_domain.last_edge());
        let is_own = last == 0 || OrderEdge::from_word(last).thread == self.thread.number();
        is_own
            && self.deps.order_edges.get_mut().is_empty()
            && self.deps.read_elsewhere.get_mut().is_empty()
            && self.thread.order_edges().is_empty()
    }

    /// Adds the readers of a command buffer that the call begins or resets; the commands recorded then come after it.
    #[inline(always)]
    pub(super) fn add_command_buffer_readers(&mut self, target: &CallTarget<'_, DeviceData>, order: CommandOrdering) {
        if order.changes_command_buffer
            && let Some(command_buffer) = target.command_buffer(&self.last_command_buffer)
            && command_buffer.readers.has_others(self.thread.number())
        {
            self.deps.read_elsewhere.get_mut().push(command_buffer.readers);
        }
    }

    /// Marks the command buffer, and the objects that packing found, as last used by this call. For a record that is
    /// published and needed no order edge.
    #[inline(always)]
    pub(super) fn mark_objects_used(&mut self, target: &CallTarget<'_, DeviceData>, call: u64) {
        let own = self.thread.edge_to(call);
        if let Some(command_buffer) = target.command_buffer(&self.last_command_buffer) {
            command_buffer.sync_domain.set_last_edge(own);
        }
        self.deps.mark_all_used(own);
    }

    /// Adds the command buffer to the objects of the call. Packing does not: it takes the id from the thread, since
    /// every recorded command has its command buffer to itself.
    pub(super) fn add_command_buffer_dep(&mut self, id: ObjectId, sync_domain: SyncDomain<'static>) {
        let last = sync_domain.last_edge();
        self.deps.order_edges.get_mut().push(last);
        if last != 0 && OrderEdge::from_word(last).thread != self.thread.number() {
            self.deps.last_used_elsewhere.get_mut().push((id, last));
        }
        self.deps.add_exclusive(sync_domain);
    }

    /// Orders the record that is being made after the calls of other threads that packing found.
    #[inline(always)]
    pub(super) fn order_after_deps(&mut self) {
        let edges = self.deps.order_edges.get_mut();
        for edge in edges.drain(..).filter(|it| *it != 0) {
            self.thread.order_after(edge);
            self.deps.known_edges.add(edge);
        }
        if !self.deps.read_elsewhere.get_mut().is_empty() {
            // Those who have read the objects have returned from their calls.
            self.thread.order_after_completed(&PROCESS_STATE.threads);
        }
    }

    /// Marks the objects that the call uses exclusively as last used by this call. Reports another thread that is still
    /// inside of a call with one of them. Must come after the record is published: a thread that sees the edge must
    /// find the record.
    #[inline(always)]
    pub(super) fn mark_deps_used(&mut self, call: u64, command: Command, order: CommandOrdering) {
        if order.is_shared {
            return self.deps.clear();
        }
        let own = self.thread.edge_to(call);
        self.deps.mark_all_used(own);
        self.deps.read_elsewhere.get_mut().drain(..).for_each(ObjectReaders::clear);
        for (object, last) in self.deps.last_used_elsewhere.get_mut().drain(..) {
            thread_safety::check_concurrent_use(object, OrderEdge::from_word(last), own, command);
        }
    }
}

/// A value that the host reads of an object for the first time.
pub(super) struct NewValue {
    /// None if the value cannot be stored: then each query of it counts.
    stored: Option<(ObjectSlot, u32)>,
}

/// Stored of an object whose address was queried.
const ADDRESS_IS_KNOWN: u32 = 1;

impl NewValue {
    /// The value that a query returned, if it differs from the one that the host read last.
    ///
    /// # Safety
    ///
    /// `params` must point to the parameters of a call of `command` that succeeded and has not returned to the
    /// application.
    pub(super) unsafe fn of_query(handles: &HandleTable, command: Command, params: *const u8) -> Option<NewValue> {
        // SAFETY: the contract of this function: the parameters are those of the command, whose info is valid and whose
        // value the call has written (VUID-vkGetSemaphoreCounterValue-pValue-parameter,
        // VUID-vkGetBufferDeviceAddress-pInfo-parameter, VUID-vkGetAccelerationStructureDeviceAddressKHR-pInfo-parameter).
        let (slot, value) = unsafe {
            match command {
                Command::GetSemaphoreCounterValue => {
                    let params = &*params.cast::<GetSemaphoreCounterValueParams>();
                    let value = params.p_value.as_ptr().read();
                    (handles.slot(HandleType::Semaphore, params.semaphore.0), u32::try_from(value).ok())
                }
                Command::GetBufferDeviceAddress => {
                    let info = &*(*params.cast::<GetBufferDeviceAddressParams>()).p_info.as_ptr();
                    (handles.slot(HandleType::Buffer, info.buffer.0), Some(ADDRESS_IS_KNOWN))
                }
                Command::GetAccelerationStructureDeviceAddressKHR => {
                    let info = &*(*params.cast::<GetAccelerationStructureDeviceAddressKHRParams>()).p_info.as_ptr();
                    let handle = info.acceleration_structure.0;
                    (handles.slot(HandleType::AccelerationStructureKHR, handle), Some(ADDRESS_IS_KNOWN))
                }
                _ => (None, None),
            }
        };
        let stored = slot.zip(value);
        let is_known = stored.is_some_and(|(slot, value)| PROCESS_STATE.objects.user_data(slot) == value);
        (!is_known).then_some(NewValue { stored })
    }

    /// Other threads that read the value now rely on the push barrier, which must be done.
    pub(super) fn store(self) {
        if let Some((slot, value)) = self.stored {
            PROCESS_STATE.objects.swap_user_data(slot, value);
        }
    }
}
