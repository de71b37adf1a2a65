//! The record of a Vulkan call: tables, checked views, ids, printing, the `Sink` trait.
//!
//! A call exists in one form everywhere: an image of its parameters as C lays them out, with pointers replaced by
//! offsets and handles by ids. Packing a call is mostly a copy, writing a trace appends bytes that exist already, and
//! every reader reads the same bytes. `marshal` makes records out of C memory. Everything else reads them through this
//! crate, which forbids unsafe code: [`check`] checks foreign bytes once, and [`View`] gives access to their meaning.
//!
//! - **Two records for a call.** *Enter* holds the parameters and is complete before the driver is called. *Leave*
//!   holds the result and the outputs, with the integers that their lengths need, so it stands alone. A command that
//!   returns nothing and writes nothing has no leave.
//! - **Three marks** stand where a pointer leads nowhere: null; empty (not null, no elements); present (not null, but
//!   not in the record: an address of the application's own, or an output that is not written yet).
//! - **Omissions** in the header name what a record could not hold: unknown structures (kept as stubs of 16 bytes),
//!   data of unknown size, a chain that was cut.
//! - **Ids** carry the type of their object, so [`check`] can tell a buffer from an image. Null and "never seen" have
//!   ids of their own for each type, so packing never fails. A look-up cannot tell an unknown handle from garbage, so
//!   the two share an id.
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
mod special_values;
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
pub use special_values::version_text;
pub use view::{Chain, Chained, View, Views};
