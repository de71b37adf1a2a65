//! The commands that are recorded into command buffers.

use crate::{
    Area, AttachmentView, CommandBufferId, EventId, MarkerStage, Origin, Region, RenderPassId, Rendering, ResourceId,
};

#[derive(Clone, Debug, Default, PartialEq)]
pub struct CommandBuffer {
    pub is_secondary: bool,
    pub commands: Vec<Command>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// An action command: a draw, a dispatch, a copy, a clear. Its own accesses never conflict with each other.
    Action(Vec<Access>),
    Barrier(Barrier),
    SetEvent(SetEvent),
    ResetEvent {
        event: EventId,
        stages: u64,
    },
    WaitEvents(WaitEvents),
    BeginRenderPass {
        pass: RenderPassId,
        views: Vec<AttachmentView>,
        area: Area,
    },
    NextSubpass,
    EndRenderPass,
    BeginRendering(Rendering),
    EndRendering,
    Execute(Vec<CommandBufferId>),
}

/// One use of a part of a resource.
#[derive(Clone, Debug, PartialEq)]
pub struct Access {
    pub resource: ResourceId,
    pub region: Region,
    /// One bit of `VkPipelineStageFlags2` that is no group of stages.
    pub stage: u64,
    /// One bit of `VkAccessFlags2` that is no group of accesses.
    pub access: u64,
    pub order: RasterOrder,
    pub certainty: Certainty,
    /// Words of four bytes from the beginning of the descriptor's range to the region; [`Access::NO_WORD_OFFSET`] if it
    /// is unknown. It relates the region to the bytes that a shader touches, which count from that beginning. For texel
    /// buffers, whose region is the whole range, it is the size of a texel.
    pub word_offset: u16,
    /// For messages, and for the bytes of vertex attributes.
    pub origin: Origin,
}

impl Access {
    pub const NO_WORD_OFFSET: u16 = u16::MAX;

    /// One that is certain, and that no order of fragments covers.
    pub fn new(resource: ResourceId, region: Region, stage: u64, access: u64) -> Access {
        let (order, certainty) = (RasterOrder::None, Certainty::Certain);
        let (inset, origin) = (Access::NO_WORD_OFFSET, Origin::NONE);
        Access { resource, region, stage, access, order, certainty, word_offset: inset, origin }
    }

    /// The same, with what of its command it comes from.
    pub fn with_origin(self, origin: Origin) -> Access {
        Access { origin, ..self }
    }
}

/// How much is known of an access before the device makes it. The region is then everything that it may touch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Certainty {
    /// It is made, to all of the region.
    #[default]
    Certain,
    /// It is made, somewhere in the region.
    Somewhere,
    /// It is made to all of the region, unless the command launches nothing. Unread numbers in memory decide that: the
    /// parameters of an indirect command.
    IfLaunched,
    /// It is made or not: under a branch, for an unknown number of vertices.
    Maybe,
    /// It is made somewhere in the region, and unread numbers in memory decide where: indices, or the parameters of an
    /// indirect draw.
    Anywhere,
    /// The same, if it is made at all.
    MaybeAnywhere,
    /// It is made to this resource or to another one of an array.
    OneOfArray,
    /// A read that may or may not be made, to this resource or to any other: no hazard is reported for it. But a write
    /// that is visible to such a read may have been read. Such reads come after all other accesses of their command.
    Unreported,
}

impl Certainty {
    /// The same of an access that may not be made.
    #[must_use]
    pub const fn if_made(self) -> Certainty {
        match self {
            Certainty::Certain | Certainty::IfLaunched | Certainty::Somewhere | Certainty::Maybe => Certainty::Maybe,
            Certainty::Anywhere | Certainty::MaybeAnywhere => Certainty::MaybeAnywhere,
            Certainty::OneOfArray => Certainty::OneOfArray,
            Certainty::Unreported => Certainty::Unreported,
        }
    }

    /// The same of a command whose unread parameters in memory decide whether it launches anything.
    #[must_use]
    pub const fn if_launched(self) -> Certainty {
        match self {
            Certainty::Certain | Certainty::IfLaunched => Certainty::IfLaunched,
            other => other.if_made(),
        }
    }

    /// The same if unread numbers in memory decide which part of the region is accessed.
    #[must_use]
    pub const fn anywhere(self) -> Certainty {
        match self {
            Certainty::Certain | Certainty::Somewhere | Certainty::Anywhere => Certainty::Anywhere,
            Certainty::IfLaunched | Certainty::Maybe | Certainty::MaybeAnywhere => Certainty::MaybeAnywhere,
            Certainty::OneOfArray => Certainty::OneOfArray,
            Certainty::Unreported => Certainty::Unreported,
        }
    }

    /// Whether the region is larger than the access because the numbers that decide about it were not read.
    #[must_use]
    pub const fn is_range_unknown(self) -> bool {
        matches!(self, Certainty::Anywhere | Certainty::MaybeAnywhere)
    }
}

/// Whether the order of fragments, or that of markers, covers an access, or none is needed.
///
/// A buffer marker (`vkCmdWriteBufferMarker2AMD`) comes after earlier commands of its queue in its stage, and after
/// earlier markers of that stage or a logically earlier one. Each stage has a variant, not a payload, so that comparing
/// two orders is comparing two bytes: recording compares those of every access.
#[rustfmt::skip]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum RasterOrder {
    Marker0, Marker1, Marker2, Marker3, Marker4, Marker5, Marker6, Marker7,
    Marker8, Marker9, Marker10, Marker11, Marker12, Marker13, Marker14, Marker15,
    Marker16, Marker17, Marker18, Marker19, Marker20, Marker21, Marker22, Marker23,
    Marker24, Marker25, Marker26, Marker27, Marker28, Marker29, Marker30, Marker31,
    Marker32, Marker33, Marker34, Marker35, Marker36, Marker37, Marker38, Marker39,
    Marker40, Marker41, Marker42, Marker43, Marker44, Marker45, Marker46, Marker47,
    Marker48, Marker49, Marker50, Marker51, Marker52, Marker53, Marker54, Marker55,
    Marker56, Marker57, Marker58, Marker59, Marker60, Marker61, Marker62, Marker63,
    #[default]
    None,
    Color,
    DepthStencil,
    /// Atomic operations are in no data race with each other, wherever they are.
    Atomic,
}

#[rustfmt::skip]
const MARKERS: [RasterOrder; 64] = {
    use RasterOrder::*;
    [
        Marker0, Marker1, Marker2, Marker3, Marker4, Marker5, Marker6, Marker7,
        Marker8, Marker9, Marker10, Marker11, Marker12, Marker13, Marker14, Marker15,
        Marker16, Marker17, Marker18, Marker19, Marker20, Marker21, Marker22, Marker23,
        Marker24, Marker25, Marker26, Marker27, Marker28, Marker29, Marker30, Marker31,
        Marker32, Marker33, Marker34, Marker35, Marker36, Marker37, Marker38, Marker39,
        Marker40, Marker41, Marker42, Marker43, Marker44, Marker45, Marker46, Marker47,
        Marker48, Marker49, Marker50, Marker51, Marker52, Marker53, Marker54, Marker55,
        Marker56, Marker57, Marker58, Marker59, Marker60, Marker61, Marker62, Marker63,
    ]
};

impl RasterOrder {
    /// That of a buffer marker after a stage.
    pub const fn marker(stage: MarkerStage) -> RasterOrder {
        MARKERS[stage as usize]
    }

    /// The stage of a buffer marker.
    #[inline]
    pub fn marker_stage(self) -> Option<MarkerStage> {
        let is_marker = (self as u8) < RasterOrder::None as u8;
        is_marker.then(|| MarkerStage::from_bit(u32::from(self as u8)))
    }
}

/// The four masks of a dependency, as the application gave them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SyncScope {
    pub src_stages: u64,
    pub src_access: u64,
    pub dst_stages: u64,
    pub dst_access: u64,
}

/// One memory dependency of a barrier command.
#[derive(Clone, Debug, PartialEq)]
pub struct Dependency {
    pub scope: SyncScope,
    pub target: DependencyTarget,
}

/// The target of a dependency.
#[derive(Clone, Debug, PartialEq)]
pub enum DependencyTarget {
    /// Everything.
    Global,
    /// A part of a resource, without a change.
    Resource { resource: ResourceId, region: Region },
    /// A part of an image, which changes its layout.
    Transition { resource: ResourceId, region: Region },
    /// A part of a resource that goes to another queue family, with its layout changed or not.
    QueueFamilyTransfer { resource: ResourceId, region: Region, transfer: QueueFamilyTransfer },
}

/// The two halves of a transfer have equal values but for their masks; which half it is depends on the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct QueueFamilyTransfer {
    pub src_family: u32,
    pub dst_family: u32,
    pub is_transition: bool,
}

/// `vkCmdPipelineBarrier` and its successor.
#[derive(Clone, Debug, PartialEq)]
pub enum Barrier {
    /// Version 1: one pair of stage masks for the command; the stages in the dependencies are ignored.
    Sync1 { src_stages: u64, dst_stages: u64, dependencies: Vec<Dependency> },
    /// Version 2: each dependency stands for itself.
    Sync2 { dependencies: Vec<Dependency> },
}

#[derive(Clone, Debug, PartialEq)]
pub enum SetEvent {
    Sync1 { event: EventId, stages: u64 },
    Sync2 { event: EventId, dependencies: Vec<Dependency> },
}

#[derive(Clone, Debug, PartialEq)]
pub enum WaitEvents {
    Sync1 {
        events: Vec<EventId>,
        src_stages: u64,
        dst_stages: u64,
        dependencies: Vec<Dependency>,
    },
    /// Each event with the dependencies that it was set with.
    Sync2 {
        events: Vec<(EventId, Vec<Dependency>)>,
    },
}
