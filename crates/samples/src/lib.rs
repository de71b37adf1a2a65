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
//! - *Lifetime*: an object is given to [`Gpu::keep`](common::Gpu), which destroys it after the device is idle, or
//!   is destroyed by hand after the fence of its last use. A structure lives until the call that reads it returns.
//! - *Owner*: an object that needs external synchronization belongs to one thread at a time, or lies in a mutex.
//! - *Feature*: what a call needs is in the sample's [`Needs`](common::Needs), so the device has it enabled.

mod arguments;
mod common;
mod failure;
mod faults;
mod samples;

use std::process::ExitCode;

pub use arguments::Arguments;

use arguments::Options;
use failure::Failure;

/// A program of the collection.
struct Sample {
    name: &'static str,
    about: &'static str,
    run: fn(&Options) -> Result<(), Failure>,
}

/// Runs what the arguments name; the exit codes are part of the help text.
pub fn run(arguments: &Arguments) -> ExitCode {
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
    samples::ALL.iter().copied().chain(faults::ALL.iter().copied().flatten())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_unique_and_say_whether_a_fault_is_planted() {
        let names: BTreeSet<&str> = catalog().map(|it| it.name).collect();
        assert_eq!(names.len(), catalog().count());
        assert!(samples::ALL.iter().all(|it| !it.name.starts_with("fault-")));
        assert!(faults::ALL.iter().copied().flatten().all(|it| it.name.starts_with("fault-")));
    }
}
