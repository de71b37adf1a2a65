//! Performs scenarios as Vulkan calls, under the layer.
//!
//! A program states which accesses its commands make; here a command of Vulkan is chosen for each that makes exactly
//! these: copies for transfers, draws and dispatches with shaders that are written for the purpose, attachments,
//! acceleration structures. An early depth test and a late one are two draws. What takes several commands stands
//! inside of one debug label. Everything goes through the system's loader, so layers see what they see of any
//! application. [`LiveGpu::run`] gives their messages.
//!
//! A clean scenario would also be clean if its accesses were never made. So tests perform each one with its barriers
//! emptied as well, and expect all hazards that the engine finds then. They vary the calls, too: both submit
//! functions, both versions of barriers, render passes and none, one thread for each command buffer, both modes of the
//! layer.
//!
//! Programs are performed unchanged, with all their faults. A program with a step that no Vulkan command can express is
//! refused with the reason ([`UnsupportedProgram`]). Images stay in the general layout, since programs have no layouts
//! outside of render passes.

mod environment;
mod error;
mod host_steps;
mod objects;
mod plan;
mod recording;
mod run;

pub use environment::{LayerLibrary, LiveEnvironment};
pub use error::{LiveError, UnsupportedProgram};
pub use objects::device::LiveScenario;
pub use objects::gpu::{DEVICE_EXTENSIONS, INSTANCE_EXTENSIONS, LiveGpu, ReceivedMessage};
pub use objects::resources::{SCRATCH_NAME, resolved_images, wants_one_sample};
pub use plan::version_1::{for_queue_submit_1, with_version_1_masks};
pub use recording::command_buffer::command_label;
pub use run::{DeviceReuse, DrawsOutsidePass, LiveOptions, LiveRun, RecordingMode, SubmitApi, check_supported};
