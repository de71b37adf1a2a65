//! The samples with a planted fault, a table of them in the file of each group.
//!
//! Each is correct Vulkan but for one synchronization that is missing, or one access out of bounds; `--mended` puts
//! it right. What the device
//! computes with the fault is undefined, so it is compared only without.

mod addresses;
mod attachments;
mod barriers;
mod blocks;
mod buffers;
mod stages;
mod variants;
mod descriptor_buffers;
mod dispatches;
mod draws;
mod events;
mod extensions;
mod host;
mod context;
mod update_after_bind;
mod memory;
mod shader_objects;
mod observed;
mod observed_variants;
mod render_passes;
mod present;
mod bound_pipeline;
mod push_descriptors;
mod queues;
mod pipelines;
mod resubmits;
mod secondaries;
mod acceleration_structures;
mod nv;
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
    render_passes::ALL,
    events::ALL,
    queues::ALL,
    host::ALL,
    present::ALL,
    memory::ALL,
    extensions::ALL,
    acceleration_structures::ALL,
    buffers::ALL,
    addresses::ALL,
    resubmits::ALL,
    stages::ALL,
    pipelines::ALL,
    observed::ALL,
    observed_variants::ALL,
    shader_objects::ALL,
    push_descriptors::ALL,
    blocks::ALL,
    update_after_bind::ALL,
    nv::ALL,
    descriptor_buffers::ALL,
    variants::ALL,
];
