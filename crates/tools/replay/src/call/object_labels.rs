//! Names and tags of objects: only of those that a driver made here.
//!
//! Surfaces, swapchains and messengers of the trace exist in name only, and the loader follows the handles of some of
//! them. A name changes no result, so one that has no object here is skipped.

use lavascope_abi as vk;
use lavascope_abi::desc::ObjectNumbering;
use lavascope_abi::{HandleType, ObjectId};
use lavascope_record::{Call, check};

use crate::call::perform::{Performer, RecordedCall};
use crate::error::ReplayError;

/// Whether handles of this type are placeholders here, or do not exist at all.
pub(crate) fn is_virtual(ty: HandleType) -> bool {
    use HandleType as H;
    matches!(
        ty,
        H::SurfaceKHR
            | H::SwapchainKHR
            | H::DisplayKHR
            | H::DisplayModeKHR
            | H::DebugUtilsMessengerEXT
            | H::DebugReportCallbackEXT
            | H::PrivateDataSlot
    )
}

/// The type and the object that a call names or tags.
fn named_object(done: &RecordedCall<'_>) -> Option<(Option<HandleType>, u64)> {
    let utils = |ty: vk::ObjectType| check::handle_type(ty.0, ObjectNumbering::ObjectType);
    let report = |ty: vk::DebugReportObjectTypeEXT| check::handle_type(ty.0, ObjectNumbering::DebugReport);
    match Call::of(done.enter)? {
        Call::SetDebugUtilsObjectNameEXT(call) => {
            call.p_name_info().map(|it| (utils(it.object_type), it.object_handle))
        }
        Call::SetDebugUtilsObjectTagEXT(call) => call.p_tag_info().map(|it| (utils(it.object_type), it.object_handle)),
        Call::DebugMarkerSetObjectNameEXT(call) => call.p_name_info().map(|it| (report(it.object_type), it.object)),
        Call::DebugMarkerSetObjectTagEXT(call) => call.p_tag_info().map(|it| (report(it.object_type), it.object)),
        _ => None,
    }
}

pub(crate) fn label(performer: &mut Performer<'_>, done: &RecordedCall<'_>) -> Result<(), ReplayError> {
    let Some((Some(ty), raw)) = named_object(done) else { return Ok(()) };
    let id = ObjectId::from_raw(raw).filter(|it| it.ty() == Some(ty) && !is_virtual(ty));
    match id.and_then(|it| performer.replay.objects.find(it)) {
        Some(_) => performer.perform_unchanged(done),
        None => Ok(()),
    }
}
