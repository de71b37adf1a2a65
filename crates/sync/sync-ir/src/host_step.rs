//! Steps of the host: submissions, waits, and its own accesses.

use crate::{
    Certainty, CommandBufferId, EventId, FenceId, ImageRegion, MemoryId, QueueId, Region, ResourceId, SemaphoreId,
};

#[derive(Clone, Debug, PartialEq)]
pub enum HostStep {
    Submit {
        queue: QueueId,
        batches: Vec<SubmitBatch>,
        fence: Option<FenceId>,
    },
    WaitFences(Vec<FenceId>),
    ResetFences(Vec<FenceId>),
    QueueIdle(QueueId),
    DeviceIdle,
    /// The host waits until all of these timelines are there.
    WaitSemaphores(Vec<SemaphorePoint>),
    /// The host signals a timeline.
    SignalSemaphore(SemaphorePoint),
    SetEvent(EventId),
    ResetEvent(EventId),
    /// The host reads or writes mapped memory.
    HostAccess {
        resource: ResourceId,
        region: Region,
        is_write: bool,
        /// Not every host access is known.
        certainty: Certainty,
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
    /// `vkQueueBindSparse`: waits for all of the semaphores, changes where sparse resources lie, and signals. Commands of
    /// the queue are ordered with it by semaphores only.
    BindSparse {
        queue: QueueId,
        waits: Vec<SemaphorePoint>,
        binds: Vec<SparseBind>,
        signals: Vec<SemaphorePoint>,
        fence: Option<FenceId>,
    },
    /// Nothing uses the resource any more; its memory may be another's.
    Destroy(ResourceId),
}

/// A part of a sparse resource that gets memory, or loses it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SparseBind {
    pub resource: ResourceId,
    pub part: SparsePart,
    /// Bytes of memory that belong to the part.
    pub size: u64,
    /// The memory, and the offset in it; none: the part loses its memory.
    pub memory: Option<(MemoryId, u64)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SparsePart {
    /// From a byte of a buffer, or of the opaque memory of an image.
    Bytes(u64),
    /// Texels of an image: whole sparse blocks.
    Texels(ImageRegion),
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct SubmitBatch {
    pub waits: Vec<SemaphoreWait>,
    pub command_buffers: Vec<CommandBufferId>,
    pub signals: Vec<SemaphoreSignal>,
}

/// A semaphore, and for a timeline its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SemaphorePoint {
    pub semaphore: SemaphoreId,
    pub value: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SemaphoreWait {
    pub point: SemaphorePoint,
    /// The stages that wait, as `VkPipelineStageFlags2`.
    pub stages: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SemaphoreSignal {
    pub point: SemaphorePoint,
    /// The stages before the signal.
    pub stages: u64,
}
