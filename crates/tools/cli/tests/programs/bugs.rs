//! A bug of ours switches everything off, and the program goes on as if we were not there.
//!
//! The bugs are planted: in builds with debug assertions the layer panics where `LAVASCOPE_TEST_PANIC` says.

use std::process::Command;

use crate::common::{output, text};
use crate::displays::XServer;
use crate::test_environment::{TestEnvironment, samples};

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
fn run_with_bug(stage: &TestEnvironment, options: &[&str], sample: &str, place: &str) -> bool {
    let mut command = stage.under_layer_with_report(options, samples());
    command.arg(sample).env("LAVASCOPE_TEST_PANIC", place);
    if sample.starts_with("fault-") {
        command.arg("--fixed");
    }
    run_has_bug(stage, &mut command)
}

/// Whether there was a bug, in a program that goes on whatever there was.
fn run_has_bug(stage: &TestEnvironment, command: &mut Command) -> bool {
    let output = output(command);
    let document = stage.report().0;
    let process = &document["processes"][0];
    let count = |list: &str| process[list].as_array().map_or(0, Vec::len);
    let context = format!("{command:?}\n{document:#}\n{}", text(&output.stderr));
    assert_eq!(document["exit_code"], 0, "the program has what it has without us: {context}");
    assert_eq!((count("findings"), count("problems")), (0, 0), "{context}");
    let bugs = count("bugs");
    assert!(bugs <= 1, "{context}");
    assert_eq!(output.status.code(), Some(if bugs == 0 { 0 } else { 2 }), "{context}");
    assert_eq!(text(&output.stderr).matches("bug of ours").count(), bugs, "the user gets one message: {context}");
    assert!(!text(&output.stderr).contains("panicked"), "{context}");
    assert_eq!(process["has_ended"], true, "{context}");
    bugs == 1
}

#[test]
fn after_a_bug_in_checks_a_program_goes_on_with_right_results() {
    let (stage, wants_all) = (TestEnvironment::new("bugs-gpu"), std::env::var_os("LAVASCOPE_TEST_ALL").is_some());
    for (at, place) in PLACES.iter().enumerate() {
        // Another sample each time; the next one where it does not come there. At night, all of them.
        let mut samples = SAMPLES.iter().cycle().skip(at).take(SAMPLES.len());
        let run = |sample: &&str| run_with_bug(&stage, &["--gpu"], sample, place);
        let is_reached = if wants_all { samples.filter(|it| run(it)).count() > 0 } else { samples.any(run) };
        assert!(is_reached, "no sample reaches {place}");
    }
}

#[test]
fn after_a_bug_in_recording_a_program_goes_on_with_right_results() {
    let stage = TestEnvironment::new("bugs-sync");
    for place in ["vkCmdDispatch", "vkCmdDispatch+", "vkQueueSubmit", "vkCreateBuffer+", "the reader"] {
        for options in [&["--sync"][..], &["--sync", "--gpu"]] {
            assert!(run_with_bug(&stage, options, "compute", place), "{place} is not reached with {options:?}");
        }
    }
}

#[test]
fn after_a_bug_surfaces_that_nobody_sees_and_pictures_go_on() {
    let (stage, screen) = (TestEnvironment::new("bugs-pictures"), XServer::start());
    for place in
        ["vkQueuePresentKHR", "vkQueuePresentKHR@1", "vkCreateSwapchainKHR", "vkDestroySwapchainKHR", "a picture"]
    {
        let mut command = stage.under_layer_with_report(&[], samples());
        command.env("LAVASCOPE_SCREENSHOT", "0..3").env("LAVASCOPE_SCREENSHOTS", &stage.folder);
        command.arg("present").env("LAVASCOPE_TEST_PANIC", place).env("DISPLAY", &screen.display);
        assert!(run_has_bug(&stage, &mut command), "{place} is not reached");
    }
}
