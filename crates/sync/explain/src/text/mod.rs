//! Writes names, properties, titles and messages.

pub(crate) mod api_names;
pub(crate) mod barrier_member;
pub(crate) mod message;
pub(crate) mod names;
pub(crate) mod properties;
pub(crate) mod title;
