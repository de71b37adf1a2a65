//! What the host does: submissions, waits, and accesses of its own.

use crate::{CommandBufferId, EventId, FenceId, QueueId, Region, ResourceId, SemaphoreId};

#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    Submit {
        queue: QueueId,
        batches: Vec<Batch>,
        fence: Option<FenceId>,
    },
    WaitFences(Vec<FenceId>),
    ResetFences(Vec<FenceId>),
    QueueIdle(QueueId),
    DeviceIdle,
    /// The host waits until all of these timelines are there.
    WaitSemaphores(Vec<Point>),
    /// The host signals a timeline.
    SignalSemaphore(Point),
    SetEvent(EventId),
    ResetEvent(EventId),
    /// The host reads or writes mapped memory.
    HostAccess {
        resource: ResourceId,
        region: Region,
        is_write: bool,
    },
    /// The presentation engine gives an image back; who uses it must wait for the semaphore or fence.
    Acquire {
        image: ResourceId,
        semaphore: Option<SemaphoreId>,
        fence: Option<FenceId>,
    },
    Present {
        queue: QueueId,
        waits: Vec<SemaphoreId>,
        images: Vec<ResourceId>,
    },
    /// Nothing uses the resource any more; its memory may be another's.
    Destroy(ResourceId),
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Batch {
    pub waits: Vec<Wait>,
    pub command_buffers: Vec<CommandBufferId>,
    pub signals: Vec<Signal>,
}

/// A semaphore, and for a timeline its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    pub semaphore: SemaphoreId,
    pub value: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    pub point: Point,
    /// What waits, of `VkPipelineStageFlags2`.
    pub stages: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signal {
    pub point: Point,
    /// What the signal comes after.
    pub stages: u64,
}
