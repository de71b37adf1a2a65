//! The layer through the real loader, on the null driver.
//!
//! Each test runs itself again in a process of its own, with the environment that it needs: the loader and the layer
//! read it once, and what they say and leave behind belongs to a process.
//!
//! # Why the unsafe code is sound
//!
//! The `SAFETY` comments name those of three rules that carry a block:
//!
//! - *Lifetime*: a handle comes from the test's own `World`, and is destroyed once, after the queue was waited for or
//!   where nothing was submitted (the rules `VUID-vk…-parameter`, `VUID-vkDestroy…`). A structure, with all that it
//!   points to, is a local variable that lives until the call that reads it returns; `ash` sets its `sType`.
//! - *Owner*: an object whose host access "must be externally synchronized" (a queue, a pool with its command buffers)
//!   is used by one thread at a time. *Recorded here* means that the command buffer was begun and not ended yet, by
//!   this thread (`VUID-vkCmd…-commandBuffer-recording`).
//! - *Null driver*: where a test breaks a rule on purpose or leaves something out, the driver does not care. Handles
//!   that are not dispatchable are numbers, which it looks up in tables: what is gone is not found. It never looks at
//!   shaders, bound state or render passes, follows only pointers of the call itself, and has all that changes behind
//!   locks. The layer must cope with such calls, and that is tested. What a test leaves to its device (against
//!   `VUID-vkDestroyDevice-device-05137`) stays in those tables.

mod capture;
mod child;
mod coverage;
mod device_lost;
mod drop_in;
mod exits;
mod gpu;
mod growth;
mod hazards;
mod inline;
mod lifetimes;
mod memory;
mod messages;
mod objects;
mod order;
mod proc_addr;
mod queues;
mod settings;
mod termination;
mod threads;
mod validation;
mod world;
