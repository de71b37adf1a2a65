//! The steps of each intercepted call: packing, ids, order between threads. `calls` has the walk.

#[macro_use]
pub(crate) mod macros;
pub(crate) mod calls;
pub(crate) mod deferred_operations;
pub(crate) mod handle_table;
pub(crate) mod handles;
pub(crate) mod headless_surface;
pub(crate) mod object_deps;
pub(crate) mod object_parent;
pub(crate) mod order;
pub(crate) mod shim;
pub(crate) mod thread_safety;
