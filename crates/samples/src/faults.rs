//! The samples with a planted fault, one file each.
//!
//! Each is like a clean sample but for one synchronization that is missing; `--mended` puts it in. What the device
//! computes with the fault is undefined, so it is compared only without.

mod layout;
mod missing_barrier_compute;
mod queue_race;
mod subpass;
mod threads;
mod war_copy;

use crate::Sample;
use crate::arguments::{Fault, Options};
use crate::failure::Failure;

pub(crate) const ALL: &[&Sample] = &[
    &missing_barrier_compute::SAMPLE,
    &war_copy::SAMPLE,
    &queue_race::SAMPLE,
    &layout::SAMPLE,
    &threads::SAMPLE,
    &subpass::SAMPLE,
];

/// Compares the result where it is defined.
fn check(options: &Options, what: &str, got: &[u32], want: &[u32]) -> Result<(), Failure> {
    match options.fault {
        Fault::Planted => Ok(()),
        Fault::Mended => options.check.words(what, got, want),
    }
}
