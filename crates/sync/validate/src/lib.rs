//! Finds the hazards of a running program: calls in, diagnostics out.
//!
//! A [`Validator`] takes the records of an application in their order. The tracker in `state` says what they mean, an
//! engine of `sync` for each device says what is wrong, and this crate keeps what is needed to say why: the last steps
//! of each device with the command buffers as they were submitted (`window`), and what the application calls its
//! things (`names`). A hazard is explained once for each cause (`causes`); after that it is counted.
//!
//! Where shaders keep what they touch, what only the device can decide waits for that (`feedback`, `observed`).
//!
//! A call that the application does not let reach the driver is taken back (`rebuild`).
//!
//! Absent on purpose: threads, files, and who is told (see `layer`).

#![forbid(unsafe_code)]

mod device;
mod devices;
mod engine;
mod feedback;
mod findings;
mod map_ids;
mod rebuild;
mod recording;
#[cfg(test)]
mod tests;
mod validator;

pub use devices::is_launch;
pub use feedback::touched::{
    AddressTouched, BindingTouched, CommandBufferFeedback, ShaderLaunch, StageTouches, TouchedBytes,
};
pub use findings::causes::ValidatorFinding;
pub use validator::Validator;
