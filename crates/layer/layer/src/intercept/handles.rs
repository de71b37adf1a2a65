//! The handles in the parameters and outputs of a call, found by the tables.

use lavascope_abi::HandleType;
use lavascope_abi::desc::{Fixup, Layout, Len, Pointee, Pointer};
use lavascope_marshal::CMemory;
use lavascope_record::memory::ReadableMemory;
use lavascope_record::rules;
use lavascope_record::walk::StructFrame;

/// The type of a handle, or of the handles behind a pointer.
pub(crate) fn handle_type(work: &Fixup) -> Option<HandleType> {
    match work {
        Fixup::Handles { ty, .. } | Fixup::Pointer { pointer: Pointer { to: Pointee::Handle(ty), .. }, .. } => {
            Some(*ty)
        }
        _ => None,
    }
}

/// A handle in the parameters or outputs of a call.
#[derive(Clone, Copy)]
pub(crate) struct CallHandle {
    pub(crate) ty: HandleType,
    pub(crate) handle: u64,
    pub(crate) is_behind_pointer: bool,
}

/// The handles in an image and directly behind its pointers, in order.
///
/// # Safety
///
/// `base` must be the address of an image with this layout: the parameters of a call that has not returned, or the
/// outputs that `outputs_image` gathered from one that did. Its pointers must be as the specification demands for the
/// call.
pub(crate) unsafe fn direct_handles(layout: &'static Layout, base: u64) -> Vec<CallHandle> {
    // SAFETY: the contract of this function: what the image leads to may be read as for the call, and the memory is
    // dropped before this returns.
    let memory = unsafe { CMemory::of_this_process() };
    let frame = StructFrame::root(layout, base);
    let mut found = Vec::new();
    for work in layout.fixups {
        let at = base + u64::from(work.at());
        match work {
            Fixup::Handles { ty, .. } => {
                found.extend(memory.read(at, 8).map(|handle| CallHandle { ty: *ty, handle, is_behind_pointer: false }));
            }
            Fixup::Pointer { pointer: Pointer { to: Pointee::Handle(ty), len, .. }, .. } if *len != Len::Terminated => {
                let count = rules::count(&memory, &frame, *len, 0).unwrap_or(0);
                let first = memory.follow(at);
                let elements = (0..count).filter_map(|it| memory.read(first? + it * 8, 8));
                found.extend(elements.map(|handle| CallHandle { ty: *ty, handle, is_behind_pointer: true }));
            }
            _ => {}
        }
    }
    found
}

/// The handles in structures that a call wrote: displays, and the physical devices of a group.
///
/// # Safety
///
/// `base` must be the address of an image with this layout, with the outputs that `outputs_image` gathered from a call
/// that the driver has returned from and the application has not.
pub(crate) unsafe fn nested_handles(layout: &'static Layout, base: u64) -> Vec<CallHandle> {
    // SAFETY: the contract of this function: `outputs_image` leaves null what was not written, so all that the image
    // leads to may be read, and the memory is dropped before this returns.
    let memory = unsafe { CMemory::of_this_process() };
    let frame = StructFrame::root(layout, base);
    let mut found = Vec::new();
    for work in layout.fixups {
        let Fixup::Pointer { at, pointer: Pointer { to: Pointee::Struct(inner), len, .. } } = work else { continue };
        let count = rules::count(&memory, &frame, *len, 0).unwrap_or(0);
        let Some(first) = memory.follow(base + u64::from(*at)) else { continue };
        for element in 0..count {
            let owner = first + element * u64::from(inner.size);
            for work in inner.fixups {
                let Fixup::Handles { at, count, ty, .. } = work else { continue };
                // Elements after the devices of a group are undefined.
                let tail = inner.fixups.iter().find_map(|fixup| match fixup {
                    Fixup::Tail { array, count, .. } if array.at == *at => memory.read_field(owner, *count),
                    _ => None,
                });
                let used = tail.unwrap_or(u64::from(*count)).min(u64::from(*count));
                let handles = (0..used).filter_map(|it| memory.read(owner + u64::from(*at) + it * 8, 8));
                found.extend(handles.map(|handle| CallHandle { ty: *ty, handle, is_behind_pointer: true }));
            }
        }
    }
    found
}
