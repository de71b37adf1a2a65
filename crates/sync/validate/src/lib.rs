//! Finds the hazards of a running program: calls in, diagnostics out.
//!
//! A [`Validator`] takes the records of an application in their order. The tracker in `state` decides what they mean,
//! an engine for each device finds what is wrong, and this crate keeps what is needed to explain it: the last steps of
//! each device with the command buffers as they were submitted (`recording/step_history.rs`), and the names of objects
//! (`findings/names.rs`). A hazard is explained once for each cause (`findings/causes.rs`); after that it is counted.
//!
//! - **When it is reported.** A hazard inside of a command buffer is reported while it is recorded, whether the
//!   command buffer is ever submitted or not. A hazard between command buffers or queues is reported when something is
//!   submitted, presented or signaled.
//! - **Feedback.** Where shaders record what they touch, a hazard that only the device can decide waits for that
//!   (`feedback/`).
//! - **Skipped calls.** If a messenger cancels a call, its effects are undone (`rebuild`).
//! - **Blocked work.** A submission that waits for a semaphore that nobody signals was not checked. It is reported
//!   when its device or the process ends.
//! - **Two ids for an object.** Those of the tracker are used once, since a descriptor may outlive what it refers to.
//!   Those of the engine are dense and reused, so that memory is bounded by what is alive.
//!
//! Absent on purpose: threads, files, and who receives findings (see `layer`).

#![forbid(unsafe_code)]

mod device;
mod devices;
mod engine;
mod feedback;
mod findings;
mod map_ids;
mod rebuild;
mod recording;
mod resource_ordinals;
#[cfg(test)]
mod tests;
mod validator;

pub use devices::{CheckedWork, is_launch};
pub use feedback::touched::{
    AddressTouched, BindingTouched, CommandBufferFeedback, ShaderLaunch, StageTouches, TouchedBytes,
};
pub use findings::causes::{CutExplanations, ValidatorFinding};
pub use findings::launch::{BoundResource, LaunchLocation};
pub use validator::Validator;
