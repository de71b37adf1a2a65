//! Runs scenarios and compares the findings with what they expect.

pub(crate) mod compare;
pub(crate) mod interleave;
pub(crate) mod misuse;
pub(crate) mod run;
pub(crate) mod source;
pub(crate) mod variation;
