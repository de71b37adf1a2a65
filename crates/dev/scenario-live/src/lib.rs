//! Performs programs as Vulkan calls: the live route of scenarios.
//!
//! A program says which accesses its commands make; here a command of Vulkan is chosen for each that makes exactly
//! these: copies for transfers, draws and dispatches with shaders that are written for the purpose, attachments,
//! acceleration structures. Everything goes through the system's loader, so layers see what they see of any
//! application. [`Gpu::perform`] gives what they said about it.
//!
//! Programs are performed as they are, with all their faults; whatever no command of Vulkan can do is refused with the
//! reason ([`Unable`]). Images stay in the general layout, since programs know no layouts outside of render passes.

mod act;
mod barrier;
mod calls;
mod choose;
mod deed;
mod descriptors;
mod draw;
mod error;
mod formats;
mod gpu;
mod masks;
mod pass;
mod perform;
mod pipeline;
mod record;
mod resources;
mod scene;
mod shader;
mod steps;
mod transfer;
mod world;

pub use error::{ActError, Unable};
pub use gpu::{DEVICE_EXTENSIONS, Gpu, INSTANCE_EXTENSIONS, Message};
pub use masks::{in_submit_1, in_version_1};
pub use perform::{Lonely, Options, Performed, Recording, SubmitApi, check};
pub use record::label;
pub use resources::SCRATCH_NAME;
pub use world::Script;
