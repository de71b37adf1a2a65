//! Random programs of many threads, captured and replayed: a check of thread order.
//!
//! [`generate`] makes a program: threads that come and go, and what each of them calls. Whenever a call needs that a
//! call of another thread is over, the program hands over before, by means that a layer does not see. The generator
//! knows which calls must never be exchanged, from its own model of external synchronization ([`Operation::accesses`]):
//! it shares no code with the order of `stream`, and none with the layer.
//!
//! [`perform`] makes the calls of many programs in one process. [`check`] reads the trace of that process. In the
//! order that the trace guarantees, and in that of a replay with random delays, each pair of calls that must not be
//! exchanged has to be in its order.
//!
//! # Why the unsafe code is sound
//!
//! A program uses an object after it was made and before it is destroyed, and uses with external synchronization are
//! ordered by hand-overs: the generator makes sure of both, and the same model then finds out whether a replay keeps
//! to it. The null driver does not look at what the model omits.

mod check;
mod generate;
mod guarantees;
mod hand_over;
mod operation;
mod perform;
mod program_trace;
mod vulkan;

pub use check::{CheckedPrograms, Difference, check};
pub use generate::generate;
pub use lavascope_replay::ThreadSharing;
pub use operation::{Object, Operation};
pub use perform::{CallCounts, perform};
