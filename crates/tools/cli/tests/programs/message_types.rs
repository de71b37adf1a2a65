//! The types of messages, and what belongs to each, from programs that really run.

use crate::common::output;
use crate::test_environment::{TestEnvironment, samples};

/// A planted fault, the type of its message, and the properties that only some types have.
const TYPES: [(&str, &str, &str); 26] = [
    ("copy-buffer", "BufferCopyError", "region_index=0"),
    ("update-buffer", "BufferError", ""),
    ("copy-image", "ImageCopyError", "region_index=0"),
    ("copy-buffer-to-image", "BufferCopyError", "region_index=0"),
    ("blit-image", "ImageBlitError", "region_index=0"),
    ("resolve-image", "ImageResolveError", "region_index=0"),
    ("clear-color-image", "ImageSubresourceRangeError", "region_index=0"),
    ("layout", "ImageBarrierError", ""),
    ("vertex-buffer", "BufferError", ""),
    (
        "descriptor-array",
        "BufferDescriptorError",
        "descriptor_type=VK_DESCRIPTOR_TYPE_STORAGE_BUFFER descriptor_binding=0 descriptor_array_element=2",
    ),
    (
        "sampled-image",
        "ImageDescriptorError",
        "descriptor_type=VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER descriptor_binding=0 descriptor_array_element=0 \
         image_layout=VK_IMAGE_LAYOUT_GENERAL",
    ),
    ("secondary-draw", "SubmitTimeError", "command_buffer_index=0"),
    ("color-attachment", "DynamicRenderingAttachmentError", ""),
    ("clear-attachments", "ClearAttachmentError", "image_aspects=VK_IMAGE_ASPECT_COLOR_BIT"),
    ("load-op", "BeginRenderingError", "load_op=VK_ATTACHMENT_LOAD_OP_LOAD"),
    ("resolve-attachment", "EndRenderingResolveError", "resolve_mode=VK_RESOLVE_MODE_AVERAGE_BIT"),
    (
        "initial-layout",
        "RenderPassLayoutTransitionError",
        "old_layout=VK_IMAGE_LAYOUT_GENERAL new_layout=VK_IMAGE_LAYOUT_COLOR_ATTACHMENT_OPTIMAL",
    ),
    ("external-dependency", "RenderPassLoadOpError", "load_op=VK_ATTACHMENT_LOAD_OP_LOAD"),
    ("queue-race", "SubmitTimeError", "submit_index=0 batch_index=0 command_buffer_index=0 region_index=0"),
    ("present", "PresentError", "submit_index=0 batch_index=0 swapchain_index=0"),
    ("acquire", "SubmitTimeError", "command_buffer_index=0"),
    ("host-write", "HostError", "submit_index=0 batch_index=0"),
    ("conditional-rendering", "BufferError", ""),
    ("build-input", "BufferError", ""),
    ("acceleration-structure", "AccelerationStructureError", ""),
    (
        "trace-rays",
        "AccelerationStructureDescriptorError",
        "descriptor_type=VK_DESCRIPTOR_TYPE_ACCELERATION_STRUCTURE_KHR descriptor_binding=0 \
         descriptor_array_element=0",
    ),
];

/// What every hazard has, and what is about the earlier command.
const COMMON: [&str; 12] = [
    "message_type",
    "hazard_type",
    "access",
    "prior_access",
    "read_barriers",
    "write_barriers",
    "command",
    "prior_command",
    "debug_region",
    "prior_debug_region",
    "seq_no",
    "reset_no",
];

#[test]
fn messages_have_the_types_of_their_commands() {
    let stage = TestEnvironment::new("message-types");
    for (fault, expected, properties) in TYPES {
        let options = ["--sync", "--null-driver"];
        output(stage.under_layer_with_report(&options, samples()).args([&format!("fault-{fault}"), "--no-check"]));
        let report = stage.report();
        let facts = report.0["findings"][0]["properties"].as_array().unwrap_or_else(|| panic!("{fault}"));
        let fact = |item: &serde_json::Value| {
            let text = |key: &str| item[key].as_str().unwrap_or_default().to_owned();
            (text("key"), text("value"))
        };
        let facts: Vec<(String, String)> = facts.iter().map(fact).collect();
        assert_eq!(facts[0], ("message_type".to_owned(), expected.to_owned()), "{fault}");
        let special = facts.iter().filter(|it| !COMMON.contains(&it.0.as_str()));
        let special: Vec<String> = special.map(|(key, value)| format!("{key}={value}")).collect();
        assert_eq!(special.join(" "), properties, "{fault}");
    }
}
