//! The scenarios that no calls can be, each with the reason.

const EVERY_TEXEL: &str = "a shader may touch every texel of its view";
const DEPTH_AREA: &str = "depth is tested in all of the render area";
const BLENDING: &str = "blending reads what it writes";
const PRESENTED: &str = "the memory of what is presented is not the application's";
const POSSIBLE: &str = "an access that is not certain";
const STORED: &str = "the store operation of an attachment writes all components";
const SPARSE: &str = "the sparse blocks of images have 64 KiB";

/// Scenarios that cannot be performed, with the reason.
pub(crate) const UNSUPPORTED: [(&str, &str); 35] = [
    ("aliasing/component_of_an_alias_unseen", "a barrier is about whole levels"),
    ("aliasing/compatible_images_of_unknown_size", "more memory than the resource has bytes"),
    ("aliasing/components_of_an_alias", EVERY_TEXEL),
    (
        "aliasing/host_through_an_alias",
        "a flush of memory that several resources share does not tell which one is meant",
    ),
    ("aliasing/input_read_again_in_order", BLENDING),
    ("aliasing/linear_image_under_tiled", EVERY_TEXEL),
    ("aliasing/visible_through_another_element", "said with the masks of version 1 it means something else"),
    ("barrier/first_read_of_a_lane_counts", "no image is a uniform buffer"),
    ("buffer/feedback_counter_is_no_parameter", "no shader has accesses 0x4000000"),
    ("buffer/possible_read_before_both_writes", POSSIBLE),
    ("buffer/possible_read_between_writes", POSSIBLE),
    ("buffer/possible_read_in_another_way", POSSIBLE),
    ("buffer/possible_read_is_no_hazard", POSSIBLE),
    ("buffer/possible_read_of_something_else", POSSIBLE),
    ("buffer/possible_read_without_a_barrier_behind", POSSIBLE),
    ("image/all_after_a_component", EVERY_TEXEL),
    ("image/component_after_all", EVERY_TEXEL),
    ("image/components_are_apart", STORED),
    ("image/one_component_of_an_image", STORED),
    ("image/planes_beside_a_color_area", EVERY_TEXEL),
    ("image/planes_of_a_color_area", EVERY_TEXEL),
    ("present/alias_overwritten", PRESENTED),
    ("present/alias_written", PRESENTED),
    ("present/alias_written_and_waited_for", PRESENTED),
    ("raster_order/load_stands_between", BLENDING),
    ("render_pass/draw_without_instances_between_writes", POSSIBLE),
    ("render_pass/half_cleared_half_copied_depth", DEPTH_AREA),
    ("render_pass/half_cleared_half_copied_stencil", DEPTH_AREA),
    ("render_pass/transition_behind_a_dependency_to_the_third_subpass", BLENDING),
    ("render_pass/write_beside_preserved", EVERY_TEXEL),
    ("render_pass/write_to_preserved", EVERY_TEXEL),
    ("sparse/buffer_under_image_blocks", SPARSE),
    ("sparse/image_blocks_beside_buffer", SPARSE),
    ("sparse/image_blocks_over_buffer", SPARSE),
    ("sparse/unbound_image_block", SPARSE),
];
