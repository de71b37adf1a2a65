//! The record of a Vulkan call: tables, checked views, ids, printing, the `Sink` trait.
//!
//! A call exists in one form everywhere: its own bytes, with pointers replaced by offsets and handles by ids.
//! `marshal` makes records out of C memory; everything else reads them through this crate, which forbids unsafe
//! code: [`check`] looks at foreign bytes once, and [`View`] gives what they mean.
//!
//! Entry points: [`check`], [`Call`], [`print`](print::print), [`compare`](compare::compare).

#![forbid(unsafe_code)]

mod alike;
pub mod check;
pub mod compare;
pub mod facts;
#[rustfmt::skip]
mod generated;
mod glance;
pub mod host_bytes;
pub mod memory;
mod pipeline;
pub mod print;
pub mod record;
pub mod rules;
mod sink;
pub mod template;
mod titles;
mod view;
pub mod walk;
pub mod written;

pub use alike::RecordCheckCache;
pub use check::{CheckError, RecordFault, check, from_trusted, renumber};
pub use generated::{Call, Outcome};
pub use host_bytes::HostBytes;
pub use record::{RecordHeader, RecordPhase, Record, Omissions, OrderEdge};
pub use sink::{Sink, Tee};
pub use titles::{LabelPath, ObjectNames};
pub use view::{Chain, Chained, View, Views};
pub use written::{HostWriteBuilder, HostWrite};
