//! Submissions, presentation and sparse binding.

pub(crate) mod external_sync;
pub(crate) mod sparse_binding;
pub(crate) mod submit;
pub(crate) mod swapchain;
