//! Programs that compute.

pub(crate) mod descriptors;
pub(crate) mod gathers;
pub(crate) mod prefix_sum;
pub(crate) mod printf;
