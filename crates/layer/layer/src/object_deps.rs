//! The objects that a call uses, found while it is packed: their ids, and the calls of other threads that it comes after.

use std::cell::{Cell, RefCell};
use std::ptr::NonNull;

use lavascope_abi::desc::Access;
use lavascope_abi::{HandleType, ObjectId};
use lavascope_marshal::IdResolver;
use lavascope_record::OrderEdge;
use lavascope_stream::SyncDomain;

use crate::breach;
use crate::device::DeviceData;
use crate::hub::HUB;
use crate::names::Names;

/// The command buffer that the thread recorded into last: mostly the one it records into next.
#[derive(Clone, Copy)]
pub(crate) struct Recorder {
    pub(crate) handle: u64,
    /// The generation in which this was true.
    pub(crate) generation: u64,
    /// Alive as long as the generation does not move: whoever destroys the device moves it first.
    pub(crate) owner: NonNull<DeviceData>,
    pub(crate) id: ObjectId,
    pub(crate) keeper: SyncDomain<'static>,
}

/// What packing a call finds out about its objects.
#[derive(Default)]
pub(crate) struct Notes {
    /// Touches by other threads.
    pub(crate) touches: RefCell<Vec<u64>>,
    /// The first object that the call has to itself: all there is for recorded commands.
    pub(crate) first: Cell<Option<SyncDomain<'static>>>,
    pub(crate) more: RefCell<Vec<SyncDomain<'static>>>,
    /// Those of them that another thread had last, with its touch.
    pub(crate) taken_over: RefCell<Vec<(ObjectId, u64)>>,
}

/// Gives objects their ids, and notes what the call must come after.
pub(crate) struct Look<'a> {
    pub(crate) names: &'a Names,
    pub(crate) thread: u32,
    pub(crate) notes: &'a Notes,
    /// Whether somebody wants to know what the call must come after.
    pub(crate) is_ordered: bool,
    pub(crate) recorder: Option<&'a Recorder>,
}

impl IdResolver for Look<'_> {
    #[inline(always)]
    fn id(&self, ty: HandleType, handle: u64, access: Access) -> ObjectId {
        if let (HandleType::CommandBuffer, Some(it)) = (ty, self.recorder)
            && it.handle == handle
        {
            return it.id;
        }
        let Some((id, slot)) = self.names.of(ty).object(ty, handle) else { return ObjectId::unknown(ty) };
        if !self.is_ordered {
            return id;
        }
        let keeper = HUB.objects.sync_domain(slot);
        let touch = keeper.last_edge();
        let is_exclusive = access == Access::Exclusive && breach::is_exclusive(ty, slot);
        if touch != 0 && OrderEdge::from_word(touch).thread != self.thread {
            self.notes.touches.borrow_mut().push(touch);
            if is_exclusive && !breach::is_shared(ty, slot) {
                self.notes.taken_over.borrow_mut().push((id, touch));
            }
        }
        if is_exclusive {
            self.notes.exclusive(keeper);
        }
        id
    }
}

impl Notes {
    /// Nothing was found out about the objects of the call.
    pub(crate) fn clear(&mut self) {
        self.touches.get_mut().clear();
        self.first.take();
        self.more.get_mut().clear();
        self.taken_over.get_mut().clear();
    }

    #[inline(always)]
    pub(crate) fn exclusive(&self, keeper: SyncDomain<'static>) {
        match self.first.get() {
            None => self.first.set(Some(keeper)),
            Some(_) => self.more.borrow_mut().push(keeper),
        }
    }

    #[inline(always)]
    pub(crate) fn touch_all(&self, by: OrderEdge) {
        let Some(first) = self.first.take() else { return };
        first.set_last_edge(by);
        let mut more = self.more.borrow_mut();
        if !more.is_empty() {
            more.drain(..).for_each(|it| it.set_last_edge(by));
        }
    }
}
