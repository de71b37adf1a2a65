//! Static analysis of a module: types, dominators, values, loops.
//!
//! | module | proves |
//! | --- | --- |
//! | `types`, `access_path` | which bytes of which descriptor a pointer leads to |
//! | `value_bounds` | an upper bound of an index |
//! | `value_numbering` | that two values are equal, across loads of locals, inputs and push constants |
//! | `dominators` | that a check is on every path to an access |
//! | `counted_loops` | the last value of a loop counter |

pub(crate) mod access_path;
pub(crate) mod counted_loops;
pub(crate) mod dominators;
pub(crate) mod types;
pub(crate) mod value_bounds;
pub(crate) mod value_numbering;
