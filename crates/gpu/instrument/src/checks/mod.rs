//! The checks, and what they record when they fail.

pub(crate) mod check_cache;
pub(crate) mod debug_printf;
pub(crate) mod fault_state;
pub(crate) mod report_functions;
pub(crate) mod site;
