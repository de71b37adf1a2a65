//! The checks, and what they record when they fail.
//!
//! | module | |
//! | --- | --- |
//! | `site` | what was decided for each access |
//! | `check_cache` | what was checked already, and in which block |
//! | `fault_state` | what an invocation remembers of its faults |
//! | `report_functions` | the functions that write records |
//! | `debug_printf` | prints, as records |

pub(crate) mod check_cache;
pub(crate) mod debug_printf;
pub(crate) mod fault_state;
pub(crate) mod report_functions;
pub(crate) mod site;
