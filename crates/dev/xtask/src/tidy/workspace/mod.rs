//! Rules for crates and their dependencies.

pub(crate) mod architecture;
pub(crate) mod collect;
pub(crate) mod dependencies;
pub(crate) mod machine_paths;
