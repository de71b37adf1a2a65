//! The kinds of access that commands make.

use lavascope_abi::{AccessFlags2 as Bits, PipelineStageFlags2 as Stage};
use lavascope_program::{Access, RasterOrder, Region, ResourceId};
use std::ops::Range;

/// A stage and an access, one bit each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) stage: u64,
    pub(crate) access: u64,
    pub(crate) order: RasterOrder,
}

const fn usage(stage: Stage, access: Bits) -> Usage {
    Usage { stage: stage.0, access: access.0, order: RasterOrder::None }
}

pub(crate) const COPY_READ: Usage = usage(Stage::COPY, Bits::TRANSFER_READ);
pub(crate) const COPY_WRITE: Usage = usage(Stage::COPY, Bits::TRANSFER_WRITE);
pub(crate) const BLIT_READ: Usage = usage(Stage::BLIT, Bits::TRANSFER_READ);
pub(crate) const BLIT_WRITE: Usage = usage(Stage::BLIT, Bits::TRANSFER_WRITE);
pub(crate) const RESOLVE_READ: Usage = usage(Stage::RESOLVE, Bits::TRANSFER_READ);
pub(crate) const RESOLVE_WRITE: Usage = usage(Stage::RESOLVE, Bits::TRANSFER_WRITE);
pub(crate) const CLEAR_WRITE: Usage = usage(Stage::CLEAR, Bits::TRANSFER_WRITE);

impl Usage {
    pub(crate) fn on(self, resource: ResourceId, region: Region) -> Access {
        Access { resource, region, stage: self.stage, access: self.access, order: self.order }
    }

    pub(crate) fn on_bytes(self, resource: ResourceId, bytes: Range<u64>) -> Access {
        self.on(resource, Region::Buffer(bytes))
    }
}
