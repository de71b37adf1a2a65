//! Performs programs as Vulkan calls: the live route of scenarios.
//!
//! A program says which accesses its commands make; here a command of Vulkan is chosen for each that makes exactly
//! these: copies for transfers, draws and dispatches with shaders that are written for the purpose, attachments,
//! acceleration structures. Everything goes through the system's loader, so layers see what they see of any
//! application. [`LiveGpu::perform`] gives what they said about it.
//!
//! Programs are performed as they are, with all their faults; whatever no command of Vulkan can do is refused with the
//! reason ([`UnsupportedProgram`]). Images stay in the general layout, since programs know no layouts outside of render passes.

mod actions;
mod barrier;
mod calls;
mod choose;
mod live_command;
mod descriptors;
mod draw;
mod error;
mod formats;
mod gpu;
mod version_1;
mod render_pass;
mod run;
mod pipeline;
mod command_buffer;
mod resources;
mod open_attachments;
mod shader;
mod host_steps;
mod transfer;
mod device;

pub use error::{LiveError, UnsupportedProgram};
pub use gpu::{DEVICE_EXTENSIONS, LiveGpu, INSTANCE_EXTENSIONS, ReceivedMessage};
pub use version_1::{for_queue_submit_1, with_version_1_masks};
pub use run::{DrawsOutsidePass, LiveOptions, LiveRun, RecordingMode, SubmitApi, check_supported};
pub use command_buffer::command_label;
pub use resources::SCRATCH_NAME;
pub use device::LiveScenario;
