//! Programs that ask for an old version of Vulkan: the driver is asked for more, and the program sees no more.

use ash::vk;
use serde_json::json;

use crate::child::child;
use crate::gpu::{Calls, Compute, GPU, LOG, REPORT, problems};
use crate::world::{Setup, World, lasting_entry};

const PROFILE: (&str, &str) = ("LAVASCOPE_NULL_PROFILE", "{folder}/profile.json");
const ENVIRONMENT: &[(&str, &str)] = &[LOG, REPORT, PROFILE];

/// A device of a version, of an instance that asks for another one.
fn world_of(asked: Option<u32>, device: u32) -> World {
    let profile = json!({ "capabilities": { "old": {
        "properties": { "VkPhysicalDeviceProperties": { "apiVersion": device } },
    } } });
    // The current folder is the test's own.
    std::fs::write("profile.json", profile.to_string()).expect("the folder is ours");
    Setup { settings: GPU, api_version: Some(asked), ..Setup::OFF }.world(&lasting_entry())
}

fn run(asked: Option<u32>, device: u32) {
    let world = world_of(asked, device);
    let (compute, pool) = (Compute::new(&world, 1), world.command_pool());
    compute.recorded(&world, pool, 1);
    compute.destroy(&world);
    world.destroy();
}

#[test]
fn a_program_for_vulkan_1_0_is_checked() {
    let name = "api_version::a_program_for_vulkan_1_0_is_checked";
    let Some(outcome) = child(name, ENVIRONMENT, || {
        for asked in [None, Some(0), Some(vk::API_VERSION_1_0), Some(vk::API_VERSION_1_1)] {
            run(asked, vk::API_VERSION_1_3);
        }
    }) else {
        return;
    };
    assert_eq!(problems(&outcome), Vec::<String>::new());
    // The application's module, and the one with checks.
    assert_eq!(Calls::of(&outcome).count("vkCreateShaderModule"), 8);
    let coverage = outcome.of_kind("coverage");
    let last = coverage.last().expect("a line of coverage");
    assert_eq!((&last["shaders"]["checked"], &last["commands"]["checked"]), (&4.into(), &4.into()), "{last:#}");
}

/// The first device cannot be checked, and another one can: nothing is impossible.
#[test]
fn one_device_that_can_be_checked_is_enough() {
    let name = "api_version::one_device_that_can_be_checked_is_enough";
    let Some(outcome) = child(name, ENVIRONMENT, || {
        run(Some(vk::API_VERSION_1_0), vk::API_VERSION_1_0);
        run(Some(vk::API_VERSION_1_0), vk::API_VERSION_1_3);
        run(Some(vk::API_VERSION_1_0), vk::API_VERSION_1_0);
    }) else {
        return;
    };
    let coverage = outcome.of_kind("coverage");
    let checks = coverage.last().expect("a line of coverage")["checks"].as_array().expect("checks");
    let gpu = checks.iter().find(|it| it["name"] == "gpu").expect("the check");
    assert_eq!(gpu["is_armed"], true, "{gpu:#}");
}
