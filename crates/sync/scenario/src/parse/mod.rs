//! From text to a scenario.

pub(crate) mod annotation;
pub(crate) mod blocks;
pub(crate) mod builder;
pub(crate) mod command;
pub(crate) mod declare;
pub(crate) mod region;
pub(crate) mod scope;
pub(crate) mod step;
pub(crate) mod tokens;
pub(crate) mod words;
