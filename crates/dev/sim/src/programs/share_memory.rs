//! Makes attachments of random programs share their memory with a buffer: render passes access them by themselves.

use lavascope_sync_ir::{MemoryBinding, MemoryId, Program, ResourceKind};

/// Where attachments lie, and the buffer: each has some bytes of the buffer, and none of another.
const ATTACHMENTS: [(u64, u64); 3] = [(0, 5), (7, 9), (5, 2)];
const BUFFER: u64 = 4;

/// Puts the buffer and the attachments that have their memory for themselves into one memory.
pub fn share_memory(program: &mut Program) {
    let at = |offset, size| Some(MemoryBinding { memory: MemoryId(1), offset, size });
    let mut places = ATTACHMENTS.iter();
    for resource in program.resources.iter_mut().filter(|it| it.binding.is_none()) {
        match &resource.kind {
            ResourceKind::Buffer { size } => resource.binding = at(BUFFER, *size),
            ResourceKind::Image(image) if image.extent == [2, 2, 1] => {
                resource.binding = places.next().and_then(|it| at(it.0, it.1));
            }
            ResourceKind::Image(_) => {}
        }
    }
}
