//! The stage and access of each way in which commands access memory.

use lavascope_abi::{AccessFlags2 as Bits, PipelineStageFlags2 as Stage};
use lavascope_sync_ir::{Access, MarkerStage, RasterOrder, Region, ResourceId};
use std::ops::Range;

/// One stage bit and one access bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StageAccess {
    pub(crate) stage: u64,
    pub(crate) access: u64,
    pub(crate) order: RasterOrder,
}

const fn usage(stage: Stage, access: Bits) -> StageAccess {
    StageAccess { stage: stage.0, access: access.0, order: RasterOrder::None }
}

const fn ordered(stage: Stage, access: Bits, order: RasterOrder) -> StageAccess {
    StageAccess { stage: stage.0, access: access.0, order }
}

pub(crate) const COPY_READ: StageAccess = usage(Stage::COPY, Bits::TRANSFER_READ);
pub(crate) const COPY_WRITE: StageAccess = usage(Stage::COPY, Bits::TRANSFER_WRITE);
pub(crate) const BLIT_READ: StageAccess = usage(Stage::BLIT, Bits::TRANSFER_READ);
pub(crate) const BLIT_WRITE: StageAccess = usage(Stage::BLIT, Bits::TRANSFER_WRITE);
pub(crate) const RESOLVE_READ: StageAccess = usage(Stage::RESOLVE, Bits::TRANSFER_READ);
pub(crate) const RESOLVE_WRITE: StageAccess = usage(Stage::RESOLVE, Bits::TRANSFER_WRITE);
pub(crate) const CLEAR_WRITE: StageAccess = usage(Stage::CLEAR, Bits::TRANSFER_WRITE);
pub(crate) const VERTEX_READ: StageAccess = usage(Stage::VERTEX_ATTRIBUTE_INPUT, Bits::VERTEX_ATTRIBUTE_READ);
pub(crate) const INDEX_READ: StageAccess = usage(Stage::INDEX_INPUT, Bits::INDEX_READ);
pub(crate) const INDIRECT_READ: StageAccess = usage(Stage::DRAW_INDIRECT, Bits::INDIRECT_COMMAND_READ);
pub(crate) const COUNTER_INDIRECT_READ: StageAccess =
    usage(Stage::DRAW_INDIRECT, Bits::TRANSFORM_FEEDBACK_COUNTER_READ_EXT);
pub(crate) const COUNTER_READ: StageAccess =
    usage(Stage::TRANSFORM_FEEDBACK_EXT, Bits::TRANSFORM_FEEDBACK_COUNTER_READ_EXT);
pub(crate) const COUNTER_WRITE: StageAccess =
    usage(Stage::TRANSFORM_FEEDBACK_EXT, Bits::TRANSFORM_FEEDBACK_COUNTER_WRITE_EXT);
pub(crate) const FEEDBACK_WRITE: StageAccess = usage(Stage::TRANSFORM_FEEDBACK_EXT, Bits::TRANSFORM_FEEDBACK_WRITE_EXT);
pub(crate) const CONDITION_READ: StageAccess =
    usage(Stage::CONDITIONAL_RENDERING_EXT, Bits::CONDITIONAL_RENDERING_READ_EXT);
pub(crate) const COLOR_READ: StageAccess =
    ordered(Stage::COLOR_ATTACHMENT_OUTPUT, Bits::COLOR_ATTACHMENT_READ, RasterOrder::Color);
pub(crate) const COLOR_WRITE: StageAccess =
    ordered(Stage::COLOR_ATTACHMENT_OUTPUT, Bits::COLOR_ATTACHMENT_WRITE, RasterOrder::Color);
pub(crate) const EARLY_READ: StageAccess =
    ordered(Stage::EARLY_FRAGMENT_TESTS, Bits::DEPTH_STENCIL_ATTACHMENT_READ, RasterOrder::DepthStencil);
pub(crate) const EARLY_WRITE: StageAccess =
    ordered(Stage::EARLY_FRAGMENT_TESTS, Bits::DEPTH_STENCIL_ATTACHMENT_WRITE, RasterOrder::DepthStencil);
pub(crate) const LATE_READ: StageAccess =
    ordered(Stage::LATE_FRAGMENT_TESTS, Bits::DEPTH_STENCIL_ATTACHMENT_READ, RasterOrder::DepthStencil);
pub(crate) const LATE_WRITE: StageAccess =
    ordered(Stage::LATE_FRAGMENT_TESTS, Bits::DEPTH_STENCIL_ATTACHMENT_WRITE, RasterOrder::DepthStencil);
/// Reads of attachments by a shader at the position of its fragment.
pub(crate) const TILE_COLOR_READ: StageAccess =
    ordered(Stage::FRAGMENT_SHADER, Bits::COLOR_ATTACHMENT_READ, RasterOrder::Color);
pub(crate) const TILE_DEPTH_READ: StageAccess =
    ordered(Stage::FRAGMENT_SHADER, Bits::DEPTH_STENCIL_ATTACHMENT_READ, RasterOrder::DepthStencil);
pub(crate) const SHADING_RATE_READ: StageAccess =
    usage(Stage::FRAGMENT_SHADING_RATE_ATTACHMENT_KHR, Bits::FRAGMENT_SHADING_RATE_ATTACHMENT_READ_KHR);
pub(crate) const DENSITY_MAP_READ: StageAccess =
    usage(Stage::FRAGMENT_DENSITY_PROCESS_EXT, Bits::FRAGMENT_DENSITY_MAP_READ_EXT);
pub(crate) const BUILD_INPUT_READ: StageAccess = usage(Stage::ACCELERATION_STRUCTURE_BUILD_KHR, Bits::SHADER_READ);
pub(crate) const BUILD_RANGES_READ: StageAccess =
    usage(Stage::ACCELERATION_STRUCTURE_BUILD_KHR, Bits::INDIRECT_COMMAND_READ);
pub(crate) const BUILD_READ: StageAccess =
    usage(Stage::ACCELERATION_STRUCTURE_BUILD_KHR, Bits::ACCELERATION_STRUCTURE_READ_KHR);
pub(crate) const BUILD_WRITE: StageAccess =
    usage(Stage::ACCELERATION_STRUCTURE_BUILD_KHR, Bits::ACCELERATION_STRUCTURE_WRITE_KHR);
pub(crate) const STRUCTURE_COPY_READ: StageAccess =
    usage(Stage::ACCELERATION_STRUCTURE_COPY_KHR, Bits::ACCELERATION_STRUCTURE_READ_KHR);
pub(crate) const STRUCTURE_COPY_WRITE: StageAccess =
    usage(Stage::ACCELERATION_STRUCTURE_COPY_KHR, Bits::ACCELERATION_STRUCTURE_WRITE_KHR);
/// Source and destination of serialized acceleration structures.
pub(crate) const SERIALIZE_READ: StageAccess = usage(Stage::ACCELERATION_STRUCTURE_COPY_KHR, Bits::TRANSFER_READ);
pub(crate) const SERIALIZE_WRITE: StageAccess = usage(Stage::ACCELERATION_STRUCTURE_COPY_KHR, Bits::TRANSFER_WRITE);
pub(crate) const MICROMAP_INPUT_READ: StageAccess = usage(Stage::MICROMAP_BUILD_EXT, Bits::SHADER_READ);
pub(crate) const MICROMAP_READ: StageAccess = usage(Stage::MICROMAP_BUILD_EXT, Bits::MICROMAP_READ_EXT);
pub(crate) const MICROMAP_WRITE: StageAccess = usage(Stage::MICROMAP_BUILD_EXT, Bits::MICROMAP_WRITE_EXT);
pub(crate) const MICROMAP_COPY_READ: StageAccess = usage(Stage::MICROMAP_BUILD_EXT, Bits::TRANSFER_READ);
pub(crate) const MICROMAP_COPY_WRITE: StageAccess = usage(Stage::MICROMAP_BUILD_EXT, Bits::TRANSFER_WRITE);
/// Reads by the build of an acceleration structure.
pub(crate) const BUILD_MICROMAP_READ: StageAccess =
    usage(Stage::ACCELERATION_STRUCTURE_BUILD_KHR, Bits::MICROMAP_READ_EXT);
pub(crate) const BINDING_TABLE_READ: StageAccess =
    usage(Stage::RAY_TRACING_SHADER_KHR, Bits::SHADER_BINDING_TABLE_READ_KHR);

pub(crate) const DECOMPRESS_READ: StageAccess =
    usage(Stage::MEMORY_DECOMPRESSION_EXT, Bits::MEMORY_DECOMPRESSION_READ_EXT);
pub(crate) const DECOMPRESS_WRITE: StageAccess =
    usage(Stage::MEMORY_DECOMPRESSION_EXT, Bits::MEMORY_DECOMPRESSION_WRITE_EXT);
pub(crate) const COPY_INDIRECT_READ: StageAccess = usage(Stage::COPY_INDIRECT_KHR, Bits::INDIRECT_COMMAND_READ);
pub(crate) const CONVERT_READ: StageAccess = usage(Stage::CONVERT_COOPERATIVE_VECTOR_MATRIX_NV, Bits::TRANSFER_READ);
pub(crate) const CONVERT_WRITE: StageAccess = usage(Stage::CONVERT_COOPERATIVE_VECTOR_MATRIX_NV, Bits::TRANSFER_WRITE);
/// Scratch memory of an execution graph.
pub(crate) const GRAPH_WRITE: StageAccess = usage(Stage::COMPUTE_SHADER, Bits::SHADER_STORAGE_WRITE);
pub(crate) const FLOW_READ: StageAccess = usage(Stage::OPTICAL_FLOW_NV, Bits::OPTICAL_FLOW_READ_NV);
pub(crate) const FLOW_WRITE: StageAccess = usage(Stage::OPTICAL_FLOW_NV, Bits::OPTICAL_FLOW_WRITE_NV);
pub(crate) const PREPROCESS_READ: StageAccess = usage(Stage::COMMAND_PREPROCESS_EXT, Bits::COMMAND_PREPROCESS_READ_EXT);
pub(crate) const PREPROCESS_WRITE: StageAccess =
    usage(Stage::COMMAND_PREPROCESS_EXT, Bits::COMMAND_PREPROCESS_WRITE_EXT);
pub(crate) const INVOCATION_MASK_READ: StageAccess =
    usage(Stage::INVOCATION_MASK_HUAWEI, Bits::INVOCATION_MASK_READ_HUAWEI);
pub(crate) const DECODE_READ: StageAccess = usage(Stage::VIDEO_DECODE_KHR, Bits::VIDEO_DECODE_READ_KHR);
pub(crate) const DECODE_WRITE: StageAccess = usage(Stage::VIDEO_DECODE_KHR, Bits::VIDEO_DECODE_WRITE_KHR);
pub(crate) const ENCODE_READ: StageAccess = usage(Stage::VIDEO_ENCODE_KHR, Bits::VIDEO_ENCODE_READ_KHR);
pub(crate) const ENCODE_WRITE: StageAccess = usage(Stage::VIDEO_ENCODE_KHR, Bits::VIDEO_ENCODE_WRITE_KHR);

impl StageAccess {
    /// A shader access in its stage.
    pub(crate) const fn for_shader(stage: u64, access: Bits) -> StageAccess {
        StageAccess { stage, access: access.0, order: RasterOrder::None }
    }

    /// The same without rasterization order.
    pub(crate) const fn unordered(self) -> StageAccess {
        StageAccess { order: RasterOrder::None, ..self }
    }

    /// The write of a buffer marker after some stage. The implementation may write in that stage or as a transfer, so
    /// barriers may name either.
    pub(crate) fn for_marker(stage: u64) -> StageAccess {
        // An empty stage mask means top-of-pipe.
        let stage = if stage == 0 { Stage::TOP_OF_PIPE.0 } else { stage };
        StageAccess { order: RasterOrder::marker(MarkerStage::from_stages(stage)), ..COPY_WRITE }
    }

    pub(crate) fn access_to(self, resource: ResourceId, region: Region) -> Access {
        Access { order: self.order, ..Access::new(resource, region, self.stage, self.access) }
    }

    pub(crate) fn access_to_bytes(self, resource: ResourceId, bytes: Range<u64>) -> Access {
        self.access_to(resource, Region::Buffer(bytes))
    }
}
