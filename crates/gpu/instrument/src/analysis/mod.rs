//! What is known of a module: types, dominators, values, loops.

pub(crate) mod access_path;
pub(crate) mod counted_loops;
pub(crate) mod dominators;
pub(crate) mod types;
pub(crate) mod value_bounds;
pub(crate) mod value_numbering;
