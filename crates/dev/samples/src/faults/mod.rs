//! The samples with a planted fault, a table of them in the file of each group.
//!
//! Each is correct Vulkan but for one missing synchronization, or one access out of bounds; `--fixed` fixes it. With
//! the fault, the results of the device are undefined, so they are compared only without it.

mod bound_pipeline;
pub(crate) mod bounds;
mod classic_pass;
pub(crate) mod commands;
mod context;
pub(crate) mod ray_tracing;
pub(crate) mod synchronization;

use crate::Sample;

/// The table of a file: function, name, fault.
macro_rules! faults {
    ($($run:ident: $name:literal, $about:literal,)*) => {
        pub(crate) const ALL: &[$crate::Sample] = &[$($crate::Sample {
            name: concat!("fault-", $name),
            about: concat!("Fault: ", $about),
            run: $run,
        },)*];
    };
}
use faults;

pub(crate) const ALL: &[&[Sample]] = &[
    commands::transfers::ALL,
    synchronization::barriers::ALL,
    commands::draws::ALL,
    commands::attachments::ALL,
    commands::dispatches::ALL,
    commands::secondaries::ALL,
    commands::render_passes::ALL,
    synchronization::events::ALL,
    synchronization::queues::ALL,
    synchronization::host::ALL,
    synchronization::mapped::ALL,
    synchronization::present::ALL,
    synchronization::memory::ALL,
    synchronization::several::ALL,
    commands::extensions::ALL,
    ray_tracing::acceleration_structures::ALL,
    bounds::buffers::ALL,
    bounds::addresses::ALL,
    bounds::resubmits::ALL,
    bounds::stages::ALL,
    ray_tracing::pipelines::ALL,
    commands::observed::ALL,
    commands::observed_variants::ALL,
    bounds::shader_objects::ALL,
    bounds::push_descriptors::ALL,
    bounds::blocks::ALL,
    bounds::update_after_bind::ALL,
    ray_tracing::nv::ALL,
    bounds::descriptor_buffers::ALL,
    bounds::variants::ALL,
];
