//! Real programs under the layer: they do what they do without it, and nothing about them is lost.
//!
//! Needs what `cargo xtask test` installs, and the samples, which it builds; what is missing is a failure.

mod bad_input;
mod baseline;
mod below;
mod bounds;
mod bugs;
mod cached;
mod capture;
mod chains;
#[path = "../common/mod.rs"]
mod common;
mod coverage;
mod crashing_driver;
mod debugger;
mod displays;
mod documents;
mod faults;
mod filters;
mod gpu;
mod gpu_alone;
mod hostile;
mod khronos_properties;
mod known;
mod leaks;
mod looking;
mod memory_check;
mod message_types;
mod observed;
mod old_versions;
mod own_bytes;
mod pictures;
mod prints;
mod replay;
mod replay_options;
mod replay_programs;
mod report_formats;
mod samples;
mod terminal_picture;
mod test_environment;
mod titles;
mod trim;
mod validation;
