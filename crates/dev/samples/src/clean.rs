//! The clean samples, one file each.

mod prefix_sum;
mod descriptors;
mod events;
mod indirect;
mod linear;
mod lit;
mod mapped;
mod multi_queue_upload;
mod present;
mod printf;
mod queries;
mod recording;
mod textured;
mod secondaries;
mod handoff;
mod timeline;
mod triangle;
mod triangle_dynamic;
mod triangle_render_pass;

use crate::Sample;

pub(crate) const ALL: &[&Sample] = &[
    &triangle_render_pass::SAMPLE,
    &triangle_dynamic::SAMPLE,
    &textured::SAMPLE,
    &prefix_sum::SAMPLE,
    &multi_queue_upload::SAMPLE,
    &secondaries::SAMPLE,
    &handoff::SAMPLE,
    &timeline::SAMPLE,
    &present::SAMPLE,
    &indirect::SAMPLE,
    &descriptors::SAMPLE,
    &mapped::SAMPLE,
    &linear::SAMPLE,
    &lit::SAMPLE,
    &events::SAMPLE,
    &queries::SAMPLE,
    &recording::SAMPLE,
    &printf::SAMPLE,
    &printf::AGAIN,
];
