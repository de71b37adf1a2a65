//! Pairs the objects that a call created here with their ids in the trace.
//!
//! The outputs here are walked as for packing, and those of the trace as for unpacking. Both walks use the same tables
//! in the same order, so the handles correspond one by one.

use std::cell::RefCell;

use lavascope_abi::desc::{CommandDesc, Fixup, HandleAccess, Layout, Pointee, Pointer};
use lavascope_abi::{HandleType, ObjectId};
use lavascope_marshal::{
    Arena, HandleResolver, IdResolver, Packer, RecordBuffer, UnpackPurpose, Unpacker, outputs_image,
};
use lavascope_record::encoding::Record;
use lavascope_record::pack_context::NoPackContext;

/// Gathers the handles that a walk meets.
#[derive(Default)]
struct OutputHandles(RefCell<Vec<(HandleType, u64)>>);

impl IdResolver for OutputHandles {
    fn id(&self, ty: HandleType, handle: u64, _access: HandleAccess) -> ObjectId {
        self.0.borrow_mut().push((ty, handle));
        ObjectId::unknown(ty)
    }
}

/// Gathers the ids that a walk meets.
#[derive(Default)]
struct OutputIds(RefCell<Vec<ObjectId>>);

impl HandleResolver for OutputIds {
    fn handle(&self, id: ObjectId) -> u64 {
        self.0.borrow_mut().push(id);
        1
    }
}

/// The objects that a leave record names.
pub(crate) fn output_ids(leave: Record<'_>, arena: &mut Arena) -> Vec<ObjectId> {
    let named = OutputIds::default();
    let unpacker = Unpacker { handles: &named, purpose: UnpackPurpose::RoundTrip };
    // Outputs that cannot be unpacked name no object.
    let _ = unpacker.unpack(leave, arena);
    named.0.into_inner()
}

/// The objects that a call made, with their handles here; none if the two do not fit together.
///
/// # Safety
///
/// `image` must hold the parameters of a call of the record's command that returned `result`, and all that they lead to
/// must be valid until the arena is cleared.
pub(crate) unsafe fn match_output_handles(
    leave: Record<'_>,
    image: *const u8,
    result: u64,
    arena: &mut Arena,
) -> Option<Vec<(ObjectId, u64)>> {
    let mut outputs = Vec::new();
    // SAFETY: the parameters of a call of this command with this result, by the contract of this function.
    if !unsafe { outputs_image(leave.command().desc(), image, result, &mut outputs) } {
        return Some(Vec::new());
    }
    let made = OutputHandles::default();
    let mut packer = Packer::new(&made, &NoPackContext);
    // SAFETY: the outputs of a call that returned, in memory that lives until the arena is cleared.
    unsafe { packer.pack_outputs(&mut RecordBuffer::default(), leave.command(), outputs.as_ptr().cast(), 0) };
    let (made, ids) = (made.0.into_inner(), output_ids(leave, arena));
    let fits = made.len() == ids.len() && ids.iter().zip(&made).all(|(id, made)| id.ty() == Some(made.0));
    fits.then(|| ids.into_iter().zip(made.into_iter().map(|it| it.1)).collect())
}

/// Whether a command gives handles.
pub(crate) fn returns_handles(desc: &CommandDesc) -> bool {
    desc.outputs.is_some_and(|it| layout_has_handles(it.layout, 0))
}

/// Structures of outputs are shallow; a chain may hold anything, and never a new object.
fn layout_has_handles(layout: &Layout, depth: u32) -> bool {
    const DEPTH_MAX: u32 = 6;
    depth < DEPTH_MAX
        && layout.fixups.iter().any(|fixup| match fixup {
            Fixup::Handles { .. } => true,
            Fixup::Pointer { pointer, .. } => pointer_has_handles(pointer, depth),
            _ => false,
        })
}

fn pointer_has_handles(pointer: &Pointer, depth: u32) -> bool {
    match &pointer.to {
        Pointee::Handle(_) => true,
        Pointee::Struct(layout) => layout_has_handles(layout, depth + 1),
        Pointee::Pointer(inner) => pointer_has_handles(inner, depth + 1),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use lavascope_abi::Command;

    use super::*;

    #[test]
    fn what_makes_objects_is_known() {
        for command in [Command::CreateBuffer, Command::AllocateCommandBuffers, Command::GetDeviceQueue] {
            assert!(returns_handles(command.desc()), "{}", command.desc().name);
        }
        for command in [Command::GetBufferMemoryRequirements, Command::CmdDraw, Command::QueueSubmit] {
            assert!(!returns_handles(command.desc()), "{}", command.desc().name);
        }
    }
}
