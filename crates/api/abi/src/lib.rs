//! The members of each type and the parameters of each command of Vulkan, as tables generated from the registry.
//!
//! The types themselves come from `types` and are here again, so that one name is enough for both. What the walkers
//! of `event` and `marshal` need to know about each of them is in [`desc`], as data.
//!
//! Absent on purpose: behaviour. Reading C memory is `marshal`, reading records is `event`.

#[macro_use]
mod macros;

pub mod desc;
#[rustfmt::skip]
mod generated;
mod lookup;
mod structure;

pub use generated::*;
pub use lavascope_types::*;
pub use lookup::{command_by_name, structure_by_name, structure_by_type};
pub use structure::Structure;
