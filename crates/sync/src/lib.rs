//! Finds synchronization hazards in an event stream and explains them.

#![forbid(unsafe_code)]

mod usage;
