//! Packs C memory into records and unpacks them again.
//!
//! [`Packer`] walks any call by the tables of `abi`. [`fast_pack`] has the hottest commands as straight-line generated
//! code; a test holds it byte-equal to the walker. [`unpack`] lays a record out as C memory again, with handles of
//! another process. [`in_place`] does that where the record lies; a test packs what it gives and damages what it gets.
//! Anything unusual in a call, a `pNext` chain above all, is left to the walkers.
//!
//! This is where raw pointers of an application are followed, and nowhere else. What may be garbage is decided by the
//! rules of `record`; what must be valid is the application's duty under the specification. A null pointer where the
//! specification wants none is taken as null.

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
