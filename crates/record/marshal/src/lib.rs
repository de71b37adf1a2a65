//! Packs C memory into records and unpacks them again.
//!
//! [`Packer`] walks any call by the tables of `abi`. [`fast_pack`] has generated straight-line code for frequent
//! commands; a test checks that its records equal those of the walker. [`unpack`] converts a record to C memory, with
//! the handles of another process. [`in_place`] does so without a copy; a test packs its results again and passes it
//! damaged records. Calls with anything unusual, for instance a `pNext` chain, are left to the walkers.
//!
//! Only this crate dereferences raw pointers of an application. The rules of `record` decide which pointers may be
//! invalid and are not read. All others must be valid by the specification. A null pointer is accepted even where the
//! specification forbids it.

mod arena;
mod c_memory;
#[rustfmt::skip]
#[allow(clippy::identity_op, clippy::needless_question_mark, reason = "generated lines all have one form")]
mod generated;
pub mod fast_pack;
pub mod in_place;
mod outputs;
mod pack;
mod record_buffer;
mod unpack;

pub use arena::Arena;
pub use c_memory::CMemory;
pub use outputs::outputs_image;
pub use pack::{ConditionalPointer, IdResolver, Packer};
pub use record_buffer::RecordBuffer;
pub use unpack::{HandleResolver, UnpackError, UnpackPurpose, Unpacker};
