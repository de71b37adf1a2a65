//! A bug of ours switches everything off, and the program goes on as if we were not there.
//!
//! The bugs are planted: in builds with debug assertions the layer panics where `LAVASCOPE_TEST_PANIC` says.

use serde_json::Value;

use crate::common::text;
use crate::screen::Screen;
use crate::stage::{Stage, samples, succeed};

/// Work of ours that panics, by the name under which it is run.
const PLACES: &[&str] = &[
    "vkCmdDraw",
    "vkCmdDraw+",
    "vkCmdDraw@1",
    "vkCmdDispatch",
    "vkCmdDispatch+",
    "vkCmdDispatch@1",
    "vkQueueSubmit",
    "vkQueueSubmit+",
    "vkQueueSubmit@1",
    "vkCmdBindPipeline",
    "vkCmdBindDescriptorSets",
    "vkCreateComputePipelines",
    "vkCreateComputePipelines+",
    "vkCreateGraphicsPipelines",
    "vkCreateGraphicsPipelines+",
    "vkCreatePipelineLayout",
    "vkCreatePipelineLayout+",
    "vkCreateShaderModule",
    "vkUpdateDescriptorSets",
    "vkAllocateCommandBuffers",
    "vkBeginCommandBuffer",
    "vkBeginCommandBuffer+",
    "vkEndCommandBuffer",
    "vkCreateBuffer",
    "vkAllocateMemory",
    "vkWaitForFences",
    "vkCreateDescriptorSetLayout",
    "vkCmdPushConstants",
    "reading back",
    "pipelines",
];

/// They compare their results themselves, and use different ways to bind what shaders need.
const SAMPLES: &[&str] = &["compute", "descriptors", "textured", "lit", "fault-bounds-read"];

/// Runs a sample with a bug in a place; says whether the place was reached.
fn run_with_bug(stage: &Stage, options: &[&str], sample: &str, place: &str) -> bool {
    let mut command = stage.counted(options, samples());
    command.arg(sample).env("LAVASCOPE_TEST_PANIC", place);
    if sample.starts_with("fault-") {
        command.arg("--mended");
    }
    let output = succeed(&mut command);
    let document = stage.report().0;
    let process = &document["processes"][0];
    let count = |list: &str| process[list].as_array().map_or(0, Vec::len);
    let context = format!("{sample}, {place}: {document:#}\n{}", text(&output.stderr));
    assert_eq!(count("findings"), 0, "{context}");
    assert!(count("bugs") <= 1, "{context}");
    let said = text(&output.stderr).matches("lavascope: a bug of ours in").count();
    assert_eq!(said, count("bugs"), "the user gets one message: {context}");
    assert_eq!(process["has_ended"], Value::Bool(true), "{context}");
    count("bugs") == 1
}

#[test]
fn after_a_bug_in_checks_a_program_goes_on_with_right_results() {
    let stage = Stage::new("bugs-gpu");
    for place in PLACES {
        let reached = SAMPLES.iter().filter(|sample| run_with_bug(&stage, &["--gpu"], sample, place)).count();
        assert!(reached > 0, "no sample reaches {place}");
    }
}

#[test]
fn after_a_bug_in_recording_a_program_goes_on_with_right_results() {
    let stage = Stage::new("bugs-sync");
    for place in ["vkCmdDispatch", "vkCmdDispatch+", "vkQueueSubmit", "vkCreateBuffer+", "the reader"] {
        for options in [&["--sync"][..], &["--sync", "--gpu"]] {
            assert!(run_with_bug(&stage, options, "compute", place), "{place} is not reached with {options:?}");
        }
    }
}

#[test]
fn after_a_bug_surfaces_that_nobody_sees_and_pictures_go_on() {
    let (stage, screen) = (Stage::new("bugs-pictures"), Screen::start());
    for place in
        ["vkQueuePresentKHR", "vkQueuePresentKHR@1", "vkCreateSwapchainKHR", "vkDestroySwapchainKHR", "a picture"]
    {
        let mut command = stage.counted(&["--screenshot", "0..3"], samples());
        command.arg("present").env("LAVASCOPE_TEST_PANIC", place).env("DISPLAY", &screen.display);
        let output = succeed(&mut command);
        let document = stage.report().0;
        let bugs = document["processes"][0]["bugs"].as_array().map_or(0, Vec::len);
        assert_eq!(bugs, 1, "{place}: {document:#}\n{}", text(&output.stderr));
    }
}
