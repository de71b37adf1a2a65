//! Detects two threads that are inside calls on one object that is externally synchronized. Their calls have no valid
//! order, so the capture notes it in the trace.
//!
//! An object remembers the last call that used it exclusively, and each thread publishes the last call from which it
//! has returned. If a call uses an object whose last call belongs to another thread and has not returned, two threads
//! are inside of calls with the object. This is checked only for objects that another thread used last; calls of one
//! thread cost nothing.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use lavascope_abi::{Command, HandleType, ObjectId};
use lavascope_record::OrderEdge;
use lavascope_stream::ObjectSlot;
use serde_json::json;

use crate::intercept::handle_table::NOTE_SECONDARY;
use crate::process::process_state::PROCESS_STATE;
use crate::report::report_file;

/// In the note of a queue or pipeline cache: the implementation synchronizes it.
pub(crate) const NOTE_INTERNALLY_SYNCHRONIZED: u32 = 1 << 1;
/// In the note of a descriptor set, or of its layout: several threads may update different descriptors of it.
pub(crate) const NOTE_CONCURRENT_UPDATES: u32 = 1 << 2;

/// The objects that were reported, up to a limit.
const REPORTED_MAX: usize = 100;

static REPORTED: Mutex<Option<HashSet<u64>>> = Mutex::new(None);

/// Whether an object is externally synchronized, if the registry has `maybe`.
#[inline(always)]
pub(crate) fn is_exclusive(ty: HandleType, slot: ObjectSlot) -> bool {
    match ty {
        HandleType::Queue | HandleType::PipelineCache => {
            PROCESS_STATE.objects.user_data(slot) & NOTE_INTERNALLY_SYNCHRONIZED == 0
        }
        _ => true,
    }
}

/// Whether a call that only reads such an object must not be exchanged with a later one that changes it.
///
/// Objects of the other types change when they are destroyed, which is a local barrier, and when memory is bound to
/// them, before anybody uses them. Primary command buffers are read by submissions alone, which somebody waits for.
#[inline(always)]
pub(crate) fn has_readers(ty: HandleType, slot: ObjectSlot) -> bool {
    use HandleType as H;
    match ty {
        H::CommandBuffer => PROCESS_STATE.objects.user_data(slot) & NOTE_SECONDARY != 0,
        H::Instance | H::PhysicalDevice | H::Device | H::Queue => false,
        H::Buffer | H::BufferView | H::Image | H::ImageView | H::Sampler | H::SamplerYcbcrConversion => false,
        H::Pipeline | H::PipelineLayout | H::ShaderModule | H::ShaderEXT | H::RenderPass | H::Framebuffer => false,
        H::DescriptorSetLayout | H::DescriptorUpdateTemplate | H::QueryPool | H::AccelerationStructureKHR => false,
        _ => true,
    }
}

/// Whether several threads may be inside calls that have such an object to themselves.
pub(crate) fn allows_concurrent_use(ty: HandleType, slot: ObjectSlot) -> bool {
    ty == HandleType::DescriptorSet && PROCESS_STATE.objects.user_data(slot) & NOTE_CONCURRENT_UPDATES != 0
}

/// Reports a call that shares an object with a call that has not returned, once for each object.
#[cold]
pub(crate) fn check_concurrent_use(object: ObjectId, last: OrderEdge, own: OrderEdge, command: Command) {
    if !PROCESS_STATE.is_capturing() || !PROCESS_STATE.threads.is_in_call(last) || !insert_reported(object) {
        return;
    }
    let name = command.desc().name;
    PROCESS_STATE.add_trace_metadata(json!({ "broken_synchronization": {
        "object": object.to_string(),
        "command": name,
        "thread": own.thread,
        "call": own.call,
        "other_thread": last.thread,
        "other_call": last.call,
    }}));
    let [own_call, last_call] = [own, last].map(|it| PROCESS_STATE.threads.call_number(it));
    let text = format!(
        "{object} is used by two threads at once: {name}, call {} of thread {}, began while call {} of thread {} had not returned; \
         it must be externally synchronized, and the order of these calls in the trace means nothing",
        own_call, own.thread, last_call, last.thread
    );
    if !report_file::problem("warning", "external synchronization", &text) {
        eprintln!("lavascope: {text}");
    }
}

fn insert_reported(object: ObjectId) -> bool {
    let mut reported = REPORTED.lock().unwrap_or_else(PoisonError::into_inner);
    let reported = reported.get_or_insert_default();
    reported.len() < REPORTED_MAX && reported.insert(object.raw())
}
