//! Instructions that use images and samplers: the index of the operand, and the kind of access.

use spirv::Op;

use crate::{AccessKind, AccessMode};

/// How an instruction uses an image, an acceleration structure or a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageUse {
    /// The index of the operand that it uses.
    pub operand: usize,
    pub kind: AccessKind,
    pub mode: AccessMode,
}

/// How an instruction uses an image, an acceleration structure or a tensor; none for other instructions.
pub fn image_use(op: Op) -> Option<ImageUse> {
    use AccessKind::{Fetch, ImageRead, ImageWrite, Query, Sample, Tensor, Trace};
    let (operand, kind, mode) = match op {
        Op::ImageSampleImplicitLod
        | Op::ImageSampleExplicitLod
        | Op::ImageSampleDrefImplicitLod
        | Op::ImageSampleDrefExplicitLod
        | Op::ImageSampleProjImplicitLod
        | Op::ImageSampleProjExplicitLod
        | Op::ImageSampleProjDrefImplicitLod
        | Op::ImageSampleProjDrefExplicitLod
        | Op::ImageGather
        | Op::ImageDrefGather
        | Op::ImageSparseSampleImplicitLod
        | Op::ImageSparseSampleExplicitLod
        | Op::ImageSparseSampleDrefImplicitLod
        | Op::ImageSparseSampleDrefExplicitLod
        | Op::ImageSparseSampleProjImplicitLod
        | Op::ImageSparseSampleProjExplicitLod
        | Op::ImageSparseSampleProjDrefImplicitLod
        | Op::ImageSparseSampleProjDrefExplicitLod
        | Op::ImageSparseGather
        | Op::ImageSparseDrefGather
        | Op::ImageSampleFootprintNV
        | Op::ImageSampleWeightedQCOM
        | Op::ImageBoxFilterQCOM
        | Op::ImageBlockMatchSSDQCOM
        | Op::ImageBlockMatchSADQCOM
        | Op::ImageBlockMatchWindowSSDQCOM
        | Op::ImageBlockMatchWindowSADQCOM
        | Op::ImageBlockMatchGatherSSDQCOM
        | Op::ImageBlockMatchGatherSADQCOM => (3, Sample, AccessMode::Read),
        Op::ImageFetch | Op::ImageSparseFetch | Op::FragmentMaskFetchAMD | Op::FragmentFetchAMD => {
            (3, Fetch, AccessMode::Read)
        }
        Op::ImageRead | Op::ImageSparseRead => (3, ImageRead, AccessMode::Read),
        Op::ImageWrite => (1, ImageWrite, AccessMode::Write),
        Op::ImageQueryFormat
        | Op::ImageQueryOrder
        | Op::ImageQuerySizeLod
        | Op::ImageQuerySize
        | Op::ImageQueryLod
        | Op::ImageQueryLevels
        | Op::ImageQuerySamples
        | Op::TensorQuerySizeARM => (3, Query, AccessMode::None),
        Op::TraceRayKHR | Op::TraceNV | Op::TraceMotionNV | Op::TraceRayMotionNV => (1, Trace, AccessMode::Read),
        Op::RayQueryInitializeKHR
        | Op::HitObjectTraceRayNV
        | Op::HitObjectTraceRayMotionNV
        | Op::HitObjectTraceRayEXT
        | Op::HitObjectTraceRayMotionEXT
        | Op::HitObjectTraceReorderExecuteEXT
        | Op::HitObjectTraceMotionReorderExecuteEXT => (2, Trace, AccessMode::Read),
        Op::TensorReadARM => (3, Tensor, AccessMode::Read),
        Op::TensorWriteARM => (1, Tensor, AccessMode::Write),
        _ => return None,
    };
    Some(ImageUse { operand, kind, mode })
}

/// The place of the other image, in image processing that takes two.
pub fn second_image(op: Op) -> Option<usize> {
    let takes_two = matches!(
        op,
        Op::ImageSampleWeightedQCOM
            | Op::ImageBlockMatchSSDQCOM
            | Op::ImageBlockMatchSADQCOM
            | Op::ImageBlockMatchWindowSSDQCOM
            | Op::ImageBlockMatchWindowSADQCOM
            | Op::ImageBlockMatchGatherSSDQCOM
            | Op::ImageBlockMatchGatherSADQCOM
    );
    takes_two.then_some(5)
}
