//! Small real Vulkan programs (on `ash`), clean and with planted faults, one and many threads.
//!
//! Each sample draws or computes without a window, checks its own pixels or bytes, and is correct Vulkan, except
//! for the one fault that its name announces.
//! A library besides the program, so that the tests of other crates can be a sample themselves.
//!
//! # Why the unsafe code is sound
//!
//! Every Vulkan call is unsafe, since the driver trusts handles and pointers. The samples keep three rules, and
//! the `SAFETY` comments name those that carry a block:
//!
//! - *Lifetime*: a handle is valid when a call gets it (the rules `VUID-…-parameter` and `VUID-…-parent`):
//!   [`Gpu::destroy_at_end`](common::Gpu) destroys it after the device is idle, the newest first, or the sample
//!   destroys it after the fence of its last use. So no submitted command refers to an object that is destroyed or
//!   freed (for example `VUID-vkDestroyBuffer-buffer-00922`, `VUID-vkFreeMemory-memory-00677`). A structure, with all
//!   that it points to, is a local variable that lives until the call that reads it returns; `ash` sets its `sType`.
//! - *Owner*: an object whose host access "must be externally synchronized" belongs to one thread at a time, or lies
//!   in a mutex. *Recorded by this thread* means: `Gpu::record`, `Gpu::record_new`, `Gpu::run_once`, `Gpu::record_secondary`
//!   or the lines above put the command buffer into the recording state (`VUID-vkCmd…-commandBuffer-recording`), it
//!   is of a queue family that executes the command (`VUID-vkCmd…-commandBuffer-cmdpool`), and no other thread uses
//!   its pool.
//! - *Feature*: what a call needs is in the sample's [`Needs`](common::Needs), so that the device has the features
//!   and extensions enabled, and the functions of an extension are not null.
//!
//! The rules about values (regions that lie inside of their resources, usages, layouts, bound state) are kept by the
//! constants beside the call: a resource is created with the size and the usage that the commands on it have.
//! The functions of `common` and of `faults::lab` are safe although they pass handles on: every handle in this crate
//! comes from them and lives as long as its [`Gpu`](common::Gpu), and no other crate can call them.
//!
//! A planted fault breaks one rule on purpose, which its name announces: an order is missing between two accesses to
//! the same memory of the device, or a shader accesses what lies outside of its buffer. The first gives undefined
//! bytes and is never compared; the second is undefined behavior of the driver, which only a device with robust access
//! or a layer that checks the access makes defined. The Rust code beside it never reads what could be of another type:
//! the host sees such bytes as plain words.

mod arguments;
mod clean;
mod common;
mod failure;
mod faults;

use std::process::ExitCode;

pub use arguments::SampleArguments;

use arguments::SampleOptions;
use failure::Failure;

/// A program of the collection.
struct Sample {
    name: &'static str,
    about: &'static str,
    run: fn(&SampleOptions) -> Result<(), Failure>,
}

/// Runs what the arguments name; the exit codes are part of the help text.
pub fn run(arguments: &SampleArguments) -> ExitCode {
    if arguments.name == "list" {
        catalog().for_each(|it| println!("{:<30} {}", it.name, it.about));
        return ExitCode::SUCCESS;
    }
    let Some(sample) = catalog().find(|it| it.name == arguments.name) else {
        eprintln!("there is no sample `{}`: `list` names them all", arguments.name);
        return ExitCode::from(2);
    };
    match (sample.run)(&arguments.options()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("{}: {failure}", sample.name);
            failure.exit_code()
        }
    }
}

/// Every sample, the clean ones first.
fn catalog() -> impl Iterator<Item = &'static Sample> {
    clean::ALL.iter().copied().chain(faults::ALL.iter().copied().flatten())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_unique_and_say_whether_a_fault_is_planted() {
        let names: BTreeSet<&str> = catalog().map(|it| it.name).collect();
        assert_eq!(names.len(), catalog().count());
        assert!(clean::ALL.iter().all(|it| !it.name.starts_with("fault-")));
        assert!(faults::ALL.iter().copied().flatten().all(|it| it.name.starts_with("fault-")));
    }
}
