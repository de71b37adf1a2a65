//! The layer through the real loader, on the null driver.
//!
//! Each test runs itself again in a child process, with the environment that it needs: the loader and the layer read it
//! once, and their messages and files belong to a process.
//!
//! # Why the unsafe code is sound
//!
//! The `SAFETY` comments name those of three rules that carry a block:
//!
//! - *Lifetime*: a handle comes from the test's own `World`, and is destroyed once, after the queue was waited for or
//!   without a submission (the rules `VUID-vk…-parameter`, `VUID-vkDestroy…`). A structure, with all that it points to,
//!   is a local variable that lives until the call that reads it returns; `ash` sets its `sType`.
//! - *Owner*: an object whose host access "must be externally synchronized" (a queue, a pool with its command buffers)
//!   is used by one thread at a time. *Recorded here* means that the command buffer was begun and not ended yet, by
//!   this thread (`VUID-vkCmd…-commandBuffer-recording`).
//! - *Null driver*: if a test breaks a rule on purpose, the driver accepts it. Handles that are not dispatchable are
//!   numbers, which it looks up in tables, so destroyed objects are not found. It never reads shaders, bound state or
//!   render passes, follows only pointers of the call itself, and has all state that changes behind locks. The layer
//!   must accept such calls, and that is tested. Objects that a test does not destroy before their device (against
//!   `VUID-vkDestroyDevice-device-05137`) stay in those tables.

mod api_version;
mod capture;
mod child;
mod coverage;
mod device_lost;
mod drop_in;
mod exits;
mod gpu;
mod growth;
mod hazards;
mod host_image_copy;
mod inline;
mod lifetimes;
mod memory;
mod memory_copy;
mod messages;
mod objects;
mod order;
mod proc_addr;
mod queues;
mod settings;
mod termination;
mod threads;
mod unchecked;
mod validation;
mod world;
