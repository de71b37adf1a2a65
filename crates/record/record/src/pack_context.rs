//! State of objects that a call's own bytes do not contain, but packing needs.

use lavascope_abi::DescriptorUpdateTemplateEntry;
use lavascope_abi::desc::Blob;

use crate::walk::StructFrame;

/// Knowledge about objects that decides which pointers of a call are read.
///
/// Handles are those of the memory being walked: the driver's in C memory, ids in a record. A missing context is always
/// safe: the pointer is then not followed, and the record marks the contents as missing.
pub trait PackContext {
    /// Whether every answer is none, so that there is no need to ask.
    fn is_empty(&self) -> bool {
        false
    }

    fn is_secondary(&self, _command_buffer: u64) -> Option<bool> {
        None
    }

    fn subpass(&self, _render_pass: u64, _subpass: u32) -> Option<SubpassUse> {
        None
    }

    /// The properties of a pipeline library that is linked into another pipeline.
    fn library(&self, _pipeline: u64) -> Option<LibraryUse> {
        None
    }

    fn template(&self, _template: u64) -> Option<Vec<DescriptorUpdateTemplateEntry>> {
        None
    }

    /// Number of bytes behind a pointer of the structure or parameters at `owner`.
    fn blob_size(&self, _blob: Blob, _owner: &StructFrame<'_>) -> Option<u32> {
        None
    }
}

/// Which attachments a subpass uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubpassUse {
    pub color: bool,
    pub depth_stencil: bool,
}

/// What a pipeline library fixes for those that link it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LibraryUse {
    pub has_mesh: bool,
    pub discards_always: bool,
}

/// A context that knows nothing: for a record without others.
pub struct NoPackContext;

impl PackContext for NoPackContext {
    fn is_empty(&self) -> bool {
        true
    }
}
