//! The record of a Vulkan call: tables, checked views, ids, printing, the `Sink` trait.
//!
//! A call exists in one form everywhere: its own bytes, with pointers replaced by offsets and handles by ids.
//! `marshal` makes records out of C memory; everything else reads them through this crate, which forbids unsafe
//! code: [`check`] looks at foreign bytes once, and [`View`] gives what they mean.
//!
//! Entry points: [`check`], [`Call`], [`print`](print::print), [`compare`](compare::compare).

#![forbid(unsafe_code)]

pub mod check;
mod check_cache;
pub mod compare;
pub mod pack_context;
#[rustfmt::skip]
mod generated;
pub mod encoding;
mod fast_check;
pub mod host_bytes;
pub mod host_write;
pub mod memory;
mod object_names;
mod pipeline_reads;
pub mod print;
pub mod rules;
mod sink;
pub mod template;
mod view;
pub mod walk;

pub use check::{CheckError, RecordFault, check, from_trusted, renumber};
pub use check_cache::RecordCheckCache;
pub use encoding::{Omissions, OrderEdge, Record, RecordHeader, RecordPhase};
pub use generated::{Call, Outcome};
pub use host_bytes::HostBytes;
pub use host_write::{HostWrite, HostWriteBuilder};
pub use object_names::{LabelPath, ObjectNames};
pub use sink::{Sink, Tee};
pub use view::{Chain, Chained, View, Views};
