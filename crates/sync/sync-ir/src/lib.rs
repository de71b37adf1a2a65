//! The input of the search for hazards: accesses, dependencies, and how queues execute them.
//!
//! Vulkan has hundreds of commands; for synchronization they are a few things: accesses to parts of resources,
//! dependencies between them, and the ways in which command buffers get onto queues. `state` makes this form out of
//! records, `scenario` out of text, `sim` out of random numbers; `engine` and `oracle` both read it, and share nothing
//! else but the tables of the registry.
//!
//! Masks are those of the application, `VkPipelineStageFlags2` and `VkAccessFlags2`, before any expansion. Regions are
//! in the words of the API: bytes of buffers, texels of image subresources.

#![forbid(unsafe_code)]

mod access_list;
mod attribute_bytes;
mod command;
mod hazard;
mod host_step;
mod marker_stage;
mod origin;
mod region;
mod render_pass;
mod resource;

pub use access_list::AccessList;
pub use attribute_bytes::{AttributeBytes, may_share_bytes};
pub use command::{
    Access, Barrier, Certainty, Command, CommandBuffer, Dependency, DependencyTarget, QueueFamilyTransfer, RasterOrder,
    SetEvent, SyncScope, WaitEvents,
};
pub use hazard::{
    CommandLocation, Findings, Hazard, HazardKind, ProgramLocation, UndefinedContents, UndefinedContentsKind,
};
pub use host_step::{HostStep, SemaphorePoint, SemaphoreSignal, SemaphoreWait, SparseBind, SparsePart, SubmitBatch};
pub use marker_stage::MarkerStage;
pub use origin::{Descriptor, Origin, OriginKind};
pub use region::{Area, Components, ImageRegion, Region};
pub use render_pass::{
    Attachment, AttachmentKind, AttachmentView, ColorResolve, LoadOp, RenderPass, Rendering, RenderingAttachment,
    Resolve, StoreOp, Subpass, SubpassDependency,
};
pub use resource::{ImageDesc, MemoryBinding, Resource, ResourceKind, SubresourceLayout, Tiling};

/// Newtypes over the place of a thing in its list.
macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        $($(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);)*
    };
}

ids! {
    ResourceId,
    MemoryId,
    QueueId,
    CommandBufferId,
    EventId,
    /// Binary or timeline.
    SemaphoreId,
    FenceId,
    RenderPassId,
}

/// A queue, and what work it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queue {
    pub family: u32,
    /// `VkQueueFlags`.
    pub flags: u32,
}

/// A whole program: what there is, and what happens in which order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Program {
    pub queues: Vec<Queue>,
    pub resources: Vec<Resource>,
    pub render_passes: Vec<RenderPass>,
    pub command_buffers: Vec<CommandBuffer>,
    pub event_count: u32,
    pub semaphore_count: u32,
    pub fence_count: u32,
    /// The steps of the host, in order.
    pub steps: Vec<HostStep>,
}
