//! Writes the module again with the checks in it.
//!
//! | module | |
//! | --- | --- |
//! | `context` | what all functions of a module share: new ids, sites, requirements |
//! | `entry_points` | the code at the beginning of entry points, and their interfaces |
//! | `function` | one function: blocks, phis, guards |
//! | `table_access` | loads and stores of the tables |

pub(crate) mod context;
pub(crate) mod entry_points;
pub(crate) mod function;
pub(crate) mod table_access;
