//! What an operating system gives: pages, files, threads, signals, clocks, libraries; no type of a system in its
//! interface.
//!
//! Everything that differs between systems stands behind the modules of this file; a folder for each system has the
//! other side (`linux/`). No other crate names a library of a system, `std::os`, or a `cfg` of a system or processor;
//! `cargo xtask tidy` enforces it, tests apart. The interface states needs, not system calls: "these pages were
//! written", "hold the process up before it ends". A system that meets the need in another way fits.
//!
//! Pages have the size that the system reports. A constant of 4096 elsewhere has another meaning, which its comment
//! states.
//!
//! Absent on purpose: what the standard library has for every system, and words for people.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
use linux as system;

#[cfg(not(target_os = "linux"))]
compile_error!("this system needs a folder beside `linux`, with the same functions");

pub mod bytes;
pub mod clock;
pub mod device_memory;
pub mod files;
pub mod library;
pub mod pages;
pub mod process;
pub mod shared_memory;
pub mod signals;
pub mod stack;
pub mod termination;
pub mod threads;
pub mod wait;
