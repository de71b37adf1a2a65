//! The samples with a planted fault, a table of them in the file of each group.
//!
//! Each is correct Vulkan but for one synchronization that is missing, or one access out of bounds; `--mended` puts
//! it right. What the device
//! computes with the fault is undefined, so it is compared only without.

mod addresses;
mod attachments;
mod barriers;
mod blocks;
mod bounds;
mod bounds_stages;
mod bounds_ways;
mod buffered;
mod dispatches;
mod draws;
mod events;
mod extensions;
mod host;
mod lab;
mod late;
mod memory;
mod objects;
mod observed;
mod observed_ways;
mod passes;
mod presents;
mod program;
mod pushes;
mod queues;
mod rays;
mod resubmits;
mod secondaries;
mod structures;
mod structures_nv;
mod transfers;

use crate::Sample;

/// The table of a file: function, name, what is wrong.
macro_rules! faults {
    ($($run:ident: $name:literal, $about:literal,)*) => {
        pub(super) const ALL: &[$crate::Sample] = &[$($crate::Sample {
            name: concat!("fault-", $name),
            about: concat!("Fault: ", $about),
            run: $run,
        },)*];
    };
}
use faults;

pub(crate) const ALL: &[&[Sample]] = &[
    transfers::ALL,
    barriers::ALL,
    draws::ALL,
    attachments::ALL,
    dispatches::ALL,
    secondaries::ALL,
    passes::ALL,
    events::ALL,
    queues::ALL,
    host::ALL,
    presents::ALL,
    memory::ALL,
    extensions::ALL,
    structures::ALL,
    bounds::ALL,
    addresses::ALL,
    resubmits::ALL,
    bounds_stages::ALL,
    rays::ALL,
    observed::ALL,
    observed_ways::ALL,
    objects::ALL,
    pushes::ALL,
    blocks::ALL,
    late::ALL,
    structures_nv::ALL,
    buffered::ALL,
    bounds_ways::ALL,
];
