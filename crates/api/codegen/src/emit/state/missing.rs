//! Commands that matter but that `state` does not support, by reason.

use super::{CommandsByReason, commands};

pub(super) static MISSING: CommandsByReason = &[
    (
        "what another API submits to an external compute queue is in no record",
        commands! {
            CreateExternalComputeQueueNV
        },
    ),
    (
        "what a kernel of CUDA accesses stands in its own code, which is no SPIR-V",
        commands! {
            CmdCuLaunchKernelNVX CmdCudaLaunchKernelNV
        },
    ),
    (
        "which tensors a data graph reads and which it writes stands in its own code, which is not read",
        commands! {
            CmdDispatchDataGraphARM
        },
    ),
    (
        "the host names memory by addresses of its own, which are in no record",
        commands! {
            ConvertCooperativeVectorMatrixNV
        },
    ),
    (
        "what others do with exported memory is in no record",
        commands! {
            ExportMetalObjectsEXT GetMemoryAndroidHardwareBufferANDROID GetMemoryFdKHR GetMemoryMetalHandleEXT
            GetMemoryNativeBufferOHOS GetMemoryRemoteAddressNV GetMemoryWin32HandleKHR GetMemoryWin32HandleNV
            GetMemoryZirconHandleFUCHSIA
        },
    ),
];
