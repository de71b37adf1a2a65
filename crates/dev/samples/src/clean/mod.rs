//! The clean samples, one file each.

pub(crate) mod compute;
pub(crate) mod drawing;
pub(crate) mod synchronization;
pub(crate) mod threads;

use crate::Sample;

pub(crate) const ALL: &[&Sample] = &[
    &drawing::triangle_render_pass::SAMPLE,
    &drawing::triangle_dynamic::SAMPLE,
    &drawing::textured::SAMPLE,
    &compute::prefix_sum::SAMPLE,
    &synchronization::multi_queue_upload::SAMPLE,
    &threads::secondaries::SAMPLE,
    &threads::handoff::SAMPLE,
    &synchronization::timeline::SAMPLE,
    &drawing::present::SAMPLE,
    &drawing::present::RECREATED,
    &drawing::indirect::SAMPLE,
    &compute::descriptors::SAMPLE,
    &compute::gathers::SAMPLE,
    &synchronization::mapped::SAMPLE,
    &synchronization::linear::SAMPLE,
    &drawing::lit::SAMPLE,
    &synchronization::events::SAMPLE,
    &drawing::queries::SAMPLE,
    &threads::recording::SAMPLE,
    &compute::printf::SAMPLE,
    &compute::printf::AGAIN,
    &compute::printf::FORMATS,
];
