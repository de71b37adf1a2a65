//! The objects that a call uses, found while it is packed: their ids, and the calls of other threads that it comes
//! after.
//!
//! An order edge is kept as a word here, as objects store it; zero is none. See [`OrderEdge::from_word`].

use std::cell::{Cell, RefCell};
use std::ptr::NonNull;

use lavascope_abi::desc::HandleAccess;
use lavascope_abi::{HandleType, ObjectId};
use lavascope_marshal::IdResolver;
use lavascope_record::OrderEdge;
use lavascope_stream::{ObjectReaders, SyncDomain};

use crate::intercept::handle_table::HandleTable;
use crate::intercept::thread_safety;
use crate::loader::device::DeviceData;
use crate::process::process_state::PROCESS_STATE;

/// The command buffer that the thread recorded into last: mostly the one it records into next.
#[derive(Clone, Copy)]
pub(crate) struct LastCommandBuffer {
    pub(crate) handle: u64,
    /// The generation in which this was true.
    pub(crate) generation: u64,
    /// Valid as long as the generation does not change: destroying the device changes it first.
    pub(crate) owner: NonNull<DeviceData>,
    pub(crate) id: ObjectId,
    pub(crate) sync_domain: SyncDomain<'static>,
    pub(crate) readers: ObjectReaders<'static>,
}

/// What packing finds out about the objects of a call.
#[derive(Default)]
pub(crate) struct ObjectDeps {
    /// The last exclusive uses of the objects by other threads.
    pub(crate) order_edges: RefCell<Vec<u64>>,
    /// The first object that the call uses exclusively. Recorded commands have only one, so they need no list.
    pub(crate) first_exclusive: Cell<Option<SyncDomain<'static>>>,
    pub(crate) other_exclusives: RefCell<Vec<SyncDomain<'static>>>,
    /// The objects that another thread used last, with that use.
    pub(crate) last_used_elsewhere: RefCell<Vec<(ObjectId, u64)>>,
    /// The readers of objects that the call has to itself and that other threads have read.
    pub(crate) read_elsewhere: RefCell<Vec<ObjectReaders<'static>>>,
    /// Not of one call: calls of other threads that the thread is ordered after.
    pub(crate) known_edges: KnownEdges,
}

/// Calls of other threads that earlier records of the thread are ordered after, one for each thread as far as there is
/// space. Most objects were made by one thread and are used by others: only the first use needs the edge.
#[derive(Default)]
pub(crate) struct KnownEdges([Cell<u64>; KnownEdges::COUNT]);

impl KnownEdges {
    const COUNT: usize = 8;

    #[inline(always)]
    fn place(&self, edge: OrderEdge) -> &Cell<u64> {
        &self.0[edge.thread as usize % KnownEdges::COUNT]
    }

    /// Whether the thread is known to come after a call.
    #[inline(always)]
    fn has(&self, word: u64) -> bool {
        let (edge, known) = (OrderEdge::from_word(word), self.place(OrderEdge::from_word(word)).get());
        // A word has the thread in its upper bits.
        word <= known && OrderEdge::from_word(known).thread == edge.thread
    }

    /// The records of the thread come after a call from now on.
    #[inline(always)]
    pub(crate) fn add(&self, word: u64) {
        if !self.has(word) {
            self.place(OrderEdge::from_word(word)).set(word);
        }
    }
}

/// Resolves handles to ids while a call is packed, and collects the calls that the call must come after.
pub(crate) struct ObjectIdResolver<'a> {
    pub(crate) handles: &'a HandleTable,
    pub(crate) thread: u32,
    pub(crate) deps: &'a ObjectDeps,
    /// Whether the record goes into a stream, which needs the order.
    pub(crate) is_ordered: bool,
    /// The command buffer that the call records into; its id is known already.
    pub(crate) last_command_buffer: Option<&'a LastCommandBuffer>,
}

impl IdResolver for ObjectIdResolver<'_> {
    #[inline(always)]
    fn id(&self, ty: HandleType, handle: u64, access: HandleAccess) -> ObjectId {
        if let (HandleType::CommandBuffer, Some(command_buffer)) = (ty, self.last_command_buffer)
            && command_buffer.handle == handle
        {
            return command_buffer.id;
        }
        let Some((id, slot)) = self.handles.table_for(ty).object(ty, handle) else { return ObjectId::unknown(ty) };
        if !self.is_ordered {
            return id;
        }
        let sync_domain = PROCESS_STATE.objects.sync_domain(slot);
        let last_edge = sync_domain.last_edge();
        let is_exclusive = access == HandleAccess::Exclusive && thread_safety::is_exclusive(ty, slot);
        if last_edge != 0 && OrderEdge::from_word(last_edge).thread != self.thread {
            // A record without edges is packed once, straight into the stream.
            if is_exclusive || !self.deps.known_edges.has(last_edge) {
                self.deps.order_edges.borrow_mut().push(last_edge);
            }
            if is_exclusive && !thread_safety::allows_concurrent_use(ty, slot) {
                self.deps.last_used_elsewhere.borrow_mut().push((id, last_edge));
            }
        }
        if is_exclusive {
            self.deps.add_exclusive(sync_domain);
        }
        if thread_safety::has_readers(ty, slot) {
            let readers = PROCESS_STATE.objects.readers(slot);
            if !is_exclusive {
                readers.add(self.thread);
            } else if readers.has_others(self.thread) {
                self.deps.read_elsewhere.borrow_mut().push(readers);
            }
        }
        id
    }
}

impl ObjectDeps {
    /// Forgets the objects of the call.
    pub(crate) fn clear(&mut self) {
        self.order_edges.get_mut().clear();
        self.first_exclusive.take();
        self.other_exclusives.get_mut().clear();
        self.last_used_elsewhere.get_mut().clear();
        self.read_elsewhere.get_mut().clear();
    }

    #[inline(always)]
    pub(crate) fn add_exclusive(&self, sync_domain: SyncDomain<'static>) {
        match self.first_exclusive.get() {
            None => self.first_exclusive.set(Some(sync_domain)),
            Some(_) => self.other_exclusives.borrow_mut().push(sync_domain),
        }
    }

    /// Marks the objects that the call uses exclusively as last used by it.
    #[inline(always)]
    pub(crate) fn mark_all_used(&self, by: OrderEdge) {
        let Some(first) = self.first_exclusive.take() else { return };
        first.set_last_edge(by);
        let mut more = self.other_exclusives.borrow_mut();
        if !more.is_empty() {
            more.drain(..).for_each(|it| it.set_last_edge(by));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edge_is_known_with_all_earlier_calls_of_its_thread() {
        let (known, word) = (KnownEdges::default(), |thread, call| OrderEdge { thread, call }.to_word());
        assert!(!known.has(word(1, 1)));
        known.add(word(2, 50));
        assert!(known.has(word(2, 50)) && known.has(word(2, 1)) && !known.has(word(2, 51)));
        assert!(!known.has(word(1, 1)) && !known.has(word(3, 1)));
        known.add(word(2, 10));
        assert!(known.has(word(2, 50)), "an earlier call says nothing new");
        // Threads that share a place replace each other.
        let other = 2 + KnownEdges::COUNT as u32;
        known.add(word(other, 3));
        assert!(known.has(word(other, 3)) && !known.has(word(2, 1)) && !known.has(word(other, 4)));
        known.add(word(2, 1));
        assert!(known.has(word(2, 1)) && !known.has(word(2, 2)) && !known.has(word(other, 3)));
    }
}
