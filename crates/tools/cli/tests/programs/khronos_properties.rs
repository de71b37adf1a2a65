//! The properties of hazards, line by line, as the Khronos layer of 2026 gives them for the same programs.
//!
//! What differs has a row in `docs/differences.md`: `debug_region` is there for every hazard, and `batch_tag` for none.

use crate::common::output;
use crate::test_environment::{TestEnvironment, samples};

/// A planted fault, and the properties of its first hazard under the Khronos layer.
const KHRONOS: &[(&str, &[&str])] = &[
    (
        "copy-buffer",
        &[
            "message_type = BufferCopyError",
            "hazard_type = READ_AFTER_WRITE",
            "access = VK_PIPELINE_STAGE_2_COPY_BIT(VK_ACCESS_2_TRANSFER_READ_BIT)",
            "prior_access = VK_PIPELINE_STAGE_2_CLEAR_BIT(VK_ACCESS_2_TRANSFER_WRITE_BIT)",
            "write_barriers = 0",
            "command = vkCmdCopyBuffer",
            "prior_command = vkCmdFillBuffer",
            "prior_debug_region = fill and copy",
            "region_index = 0",
            "seq_no = 1",
            "reset_no = 0",
        ],
    ),
    (
        "barrier-access",
        &[
            "message_type = BufferDescriptorError",
            "hazard_type = READ_AFTER_WRITE",
            "access = VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT(VK_ACCESS_2_SHADER_STORAGE_READ_BIT)",
            "prior_access = VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT(VK_ACCESS_2_SHADER_STORAGE_WRITE_BIT)",
            "write_barriers = VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT(VK_ACCESS_2_UNIFORM_READ_BIT)",
            "command = vkCmdDispatch",
            "prior_command = vkCmdDispatch",
            "prior_debug_region = two dispatches",
            "descriptor_type = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER",
            "descriptor_binding = 0",
            "descriptor_array_element = 0",
            "seq_no = 3",
            "reset_no = 0",
        ],
    ),
    (
        "clear-attachments",
        &[
            "message_type = ClearAttachmentError",
            "hazard_type = WRITE_AFTER_READ",
            "access = VK_PIPELINE_STAGE_2_COLOR_ATTACHMENT_OUTPUT_BIT(VK_ACCESS_2_COLOR_ATTACHMENT_WRITE_BIT)",
            "prior_access = VK_PIPELINE_STAGE_2_COPY_BIT(VK_ACCESS_2_TRANSFER_READ_BIT)",
            "read_barriers = 0",
            "command = vkCmdClearAttachments",
            "prior_command = vkCmdCopyImageToBuffer",
            "prior_debug_region = copy and overwrite",
            "image_aspects = VK_IMAGE_ASPECT_COLOR_BIT",
            "seq_no = 3",
            "reset_no = 0",
        ],
    ),
    (
        "depth-attachment",
        &[
            "message_type = BeginRenderingError",
            "hazard_type = READ_AFTER_WRITE",
            "access = VK_PIPELINE_STAGE_2_EARLY_FRAGMENT_TESTS_BIT(VK_ACCESS_2_DEPTH_STENCIL_ATTACHMENT_READ_BIT)",
            "prior_access = VK_PIPELINE_STAGE_2_LATE_FRAGMENT_TESTS_BIT(VK_ACCESS_2_DEPTH_STENCIL_ATTACHMENT_WRITE_BIT)",
            "write_barriers = 0",
            "command = vkCmdBeginRendering",
            "prior_command = vkCmdEndRendering",
            "prior_debug_region = render twice",
            "load_op = VK_ATTACHMENT_LOAD_OP_LOAD",
            "seq_no = 2",
            "reset_no = 0",
        ],
    ),
    (
        "store-op",
        &[
            "message_type = ImageCopyError",
            "hazard_type = READ_AFTER_WRITE",
            "access = VK_PIPELINE_STAGE_2_COPY_BIT(VK_ACCESS_2_TRANSFER_READ_BIT)",
            "prior_access = VK_PIPELINE_STAGE_2_COLOR_ATTACHMENT_OUTPUT_BIT(VK_ACCESS_2_COLOR_ATTACHMENT_WRITE_BIT)",
            "write_barriers = 0",
            "command = vkCmdCopyImageToBuffer",
            "prior_command = vkCmdEndRendering",
            "prior_debug_region = render and copy",
            "region_index = 0",
            "seq_no = 2",
            "reset_no = 0",
        ],
    ),
    (
        "resolve-attachment",
        &[
            "message_type = EndRenderingResolveError",
            "hazard_type = WRITE_AFTER_READ",
            "access = VK_PIPELINE_STAGE_2_COLOR_ATTACHMENT_OUTPUT_BIT(VK_ACCESS_2_COLOR_ATTACHMENT_WRITE_BIT)",
            "prior_access = VK_PIPELINE_STAGE_2_COPY_BIT(VK_ACCESS_2_TRANSFER_READ_BIT)",
            "read_barriers = 0",
            "command = vkCmdEndRendering",
            "prior_command = vkCmdCopyImageToBuffer",
            "prior_debug_region = copy and overwrite",
            "resolve_mode = VK_RESOLVE_MODE_AVERAGE_BIT",
            "seq_no = 3",
            "reset_no = 0",
        ],
    ),
    (
        "initial-layout",
        &[
            "message_type = RenderPassLayoutTransitionError",
            "hazard_type = WRITE_AFTER_READ",
            "access = SYNC_IMAGE_LAYOUT_TRANSITION",
            "prior_access = VK_PIPELINE_STAGE_2_COPY_BIT(VK_ACCESS_2_TRANSFER_READ_BIT)",
            "read_barriers = 0",
            "command = vkCmdBeginRenderPass",
            "prior_command = vkCmdCopyImageToBuffer",
            "prior_debug_region = copy and change the layout",
            "old_layout = VK_IMAGE_LAYOUT_GENERAL",
            "new_layout = VK_IMAGE_LAYOUT_COLOR_ATTACHMENT_OPTIMAL",
            "seq_no = 3",
            "reset_no = 0",
        ],
    ),
    (
        "final-layout",
        &[
            "message_type = ImageCopyError",
            "hazard_type = READ_AFTER_WRITE",
            "access = VK_PIPELINE_STAGE_2_COPY_BIT(VK_ACCESS_2_TRANSFER_READ_BIT)",
            "prior_access = SYNC_IMAGE_LAYOUT_TRANSITION",
            "write_barriers = 0",
            "command = vkCmdCopyImageToBuffer",
            "prior_command = vkCmdEndRenderPass",
            "prior_debug_region = change the layout and copy",
            "region_index = 0",
            "seq_no = 2",
            "reset_no = 0",
        ],
    ),
    (
        "sampled-image",
        &[
            "message_type = ImageDescriptorError",
            "hazard_type = READ_AFTER_WRITE",
            "access = VK_PIPELINE_STAGE_2_FRAGMENT_SHADER_BIT(VK_ACCESS_2_SHADER_SAMPLED_READ_BIT)",
            "prior_access = VK_PIPELINE_STAGE_2_CLEAR_BIT(VK_ACCESS_2_TRANSFER_WRITE_BIT)",
            "write_barriers = 0",
            "command = vkCmdDraw",
            "prior_command = vkCmdClearColorImage",
            "prior_debug_region = write and draw",
            "descriptor_type = VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER",
            "descriptor_binding = 0",
            "descriptor_array_element = 0",
            "image_layout = VK_IMAGE_LAYOUT_GENERAL",
            "seq_no = 1",
            "reset_no = 0",
        ],
    ),
    (
        "war-copy",
        &[
            "message_type = BufferError",
            "hazard_type = WRITE_AFTER_READ",
            "access = VK_PIPELINE_STAGE_2_CLEAR_BIT(VK_ACCESS_2_TRANSFER_WRITE_BIT)",
            "prior_access = VK_PIPELINE_STAGE_2_COPY_BIT(VK_ACCESS_2_TRANSFER_READ_BIT)",
            "read_barriers = 0",
            "command = vkCmdFillBuffer",
            "prior_command = vkCmdCopyBuffer",
            "prior_debug_region = copy, then overwrite::read",
            "seq_no = 3",
            "reset_no = 0",
        ],
    ),
    (
        "external-dependency",
        &[
            "message_type = RenderPassLoadOpError",
            "hazard_type = READ_AFTER_WRITE",
            "access = VK_PIPELINE_STAGE_2_COLOR_ATTACHMENT_OUTPUT_BIT(VK_ACCESS_2_COLOR_ATTACHMENT_READ_BIT)",
            "prior_access = VK_PIPELINE_STAGE_2_CLEAR_BIT(VK_ACCESS_2_TRANSFER_WRITE_BIT)",
            "write_barriers = 0",
            "command = vkCmdBeginRenderPass",
            "prior_command = vkCmdClearColorImage",
            "prior_debug_region = clear and load",
            "load_op = VK_ATTACHMENT_LOAD_OP_LOAD",
            "seq_no = 1",
            "reset_no = 0",
        ],
    ),
];

#[test]
fn properties_are_those_of_the_khronos_layer() {
    let stage = TestEnvironment::new("khronos-properties");
    for (fault, expected) in KHRONOS {
        let options = ["--sync", "--null-driver"];
        output(stage.under_layer_with_report(&options, samples()).args([&format!("fault-{fault}"), "--no-check"]));
        let report = stage.report();
        let facts = report.0["findings"][0]["properties"].as_array().unwrap_or_else(|| panic!("{fault}"));
        let text = |it: &serde_json::Value, key: &str| it[key].as_str().unwrap_or_default().to_owned();
        let lines = facts.iter().map(|it| format!("{} = {}", text(it, "key"), text(it, "value")));
        let is_recorded = !expected.iter().any(|it| it.starts_with("debug_region"));
        let lines: Vec<String> = lines.filter(|it| !(is_recorded && it.starts_with("debug_region"))).collect();
        assert_eq!(lines, *expected, "{fault}");
    }
}
