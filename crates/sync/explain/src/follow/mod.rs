//! Follows the earlier of two accesses through the program to the later one.

pub(crate) mod access_detail;
pub(crate) mod access_pair;
pub(crate) mod alias;
pub(crate) mod coverage;
pub(crate) mod dependency;
pub(crate) mod follower;
pub(crate) mod render_pass;
pub(crate) mod sync_state;
pub(crate) mod timeline;
