//! From a hazard to the diagnostic of a finding.

pub(crate) mod blocked;
pub(crate) mod causes;
pub(crate) mod diagnostic_builder;
pub(crate) mod hazard_causes;
pub(crate) mod launch;
pub(crate) mod names;
pub(crate) mod noticed_writes;
pub(crate) mod program_slice;
pub(crate) mod progress;
pub(crate) mod shared_fixes;
