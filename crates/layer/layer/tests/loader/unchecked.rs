//! What checks of shaders leave out is counted, with the reason: each way by which a shader, a draw or a dispatch stays
//! unchecked.

use std::ffi::CStr;

use ash::vk;
use serde_json::{Value, json};

use crate::child::{ChildOutcome, child};
use crate::gpu::{BLOCK, Compute, LOG, REPORT, SHADER, allocate};
use crate::world::{Setup, World, lasting_entry};

const PROFILE: (&str, &str) = ("LAVASCOPE_NULL_PROFILE", "{folder}/profile.json");
const ENVIRONMENT: &[(&str, &str)] = &[LOG, REPORT, PROFILE];
const GPU: (&CStr, &CStr) = (c"gpu", c"on");

/// How many shaders and commands there were, and the reasons with their counts, as the report has them at the end.
fn counts(outcome: &ChildOutcome, what: &str) -> (u64, u64, Vec<(String, u64)>) {
    let all = outcome.of_kind("coverage");
    let counted = &all.last().expect("a line of coverage")[what];
    let list = counted["unchecked"].as_array().map_or(&[][..], Vec::as_slice);
    let reason =
        |it: &Value| (it["reason"].as_str().unwrap_or_default().to_owned(), it["count"].as_u64().unwrap_or_default());
    let number = |name: &str| counted[name].as_u64().unwrap_or_default();
    (number("seen"), number("checked"), list.iter().map(reason).collect())
}

/// Asserts that so many of so many were checked, and that the only reason for the others contains a text.
fn assert_counts(outcome: &ChildOutcome, [shaders, commands]: [[u64; 2]; 2], reason: &str) {
    for (what, [checked, seen]) in [("shaders", shaders), ("commands", commands)] {
        let (all, good, reasons) = counts(outcome, what);
        assert_eq!((good, all), (checked, seen), "{what}: {reasons:?}");
        assert_eq!(reasons.iter().map(|it| it.1).sum::<u64>(), seen - checked, "{what}: {reasons:?}");
        assert!(reasons.iter().all(|it| it.0.contains(reason)), "{what}: {reasons:?}");
    }
}

fn write_profile(version: u32, sets: u32, features: Value, heap: u64) {
    let profile = json!({ "lavascope": { "memory_heap_bytes": heap }, "capabilities": { "small": {
        "features": { "VkPhysicalDeviceFeatures": features },
        "properties": { "VkPhysicalDeviceProperties": {
            "apiVersion": version,
            "limits": { "maxBoundDescriptorSets": sets },
        } },
    } } });
    // The current folder is the test's own.
    std::fs::write("profile.json", profile.to_string()).expect("the folder is ours");
}

fn large_world(settings: &[(&CStr, &CStr)]) -> World {
    write_profile(vk::API_VERSION_1_3, 8, json!({}), 16 << 30);
    Setup { settings, ..Setup::OFF }.world(&lasting_entry())
}

/// Makes a pipeline and records three dispatches with it.
fn run(world: World, sets: usize) {
    let (compute, pool) = (Compute::new(&world, sets), world.command_pool());
    compute.recorded(&world, pool, 3);
    compute.destroy(&world);
    world.destroy();
}

#[test]
fn everything_is_counted_as_checked() {
    let name = "unchecked::everything_is_counted_as_checked";
    let Some(outcome) = child(name, ENVIRONMENT, || run(large_world(&[GPU]), 1)) else { return };
    assert_counts(&outcome, [[1, 1], [3, 3]], "");
}

#[test]
fn shaders_that_are_not_selected_are_counted() {
    let name = "unchecked::shaders_that_are_not_selected_are_counted";
    let settings = [GPU, (c"gpu_shaders", c"no-such-name")];
    let Some(outcome) = child(name, ENVIRONMENT, || run(large_world(&settings), 1)) else { return };
    assert_counts(&outcome, [[0, 1], [0, 3]], "not among the selected shaders");
    let problems = crate::gpu::problems(&outcome);
    assert!(problems.iter().any(|it| it.contains("`no-such-name` matches no module")), "{problems:?}");
}

#[test]
fn pipelines_that_are_not_in_the_sample_are_counted() {
    let name = "unchecked::pipelines_that_are_not_in_the_sample_are_counted";
    let Some(outcome) = child(name, ENVIRONMENT, || {
        let world = large_world(&[GPU, (c"gpu_sample", c"2")]);
        let pool = world.command_pool();
        let both = [Compute::new(&world, 1), Compute::new(&world, 1)];
        both.iter().for_each(|it| _ = it.recorded(&world, pool, 3));
        both.into_iter().for_each(|it| it.destroy(&world));
        world.destroy();
    }) else {
        return;
    };
    assert_counts(&outcome, [[1, 2], [3, 6]], "gpu_sample");
}

#[test]
fn layouts_without_room_are_counted() {
    let name = "unchecked::layouts_without_room_are_counted";
    let Some(outcome) = child(name, ENVIRONMENT, || {
        write_profile(vk::API_VERSION_1_1, 4, json!({}), 16 << 30);
        run(Setup { settings: &[GPU], ..Setup::OFF }.world(&lasting_entry()), 4);
    }) else {
        return;
    };
    assert_counts(&outcome, [[0, 1], [0, 3]], "leaves no push constants, no descriptor set");
}

#[test]
fn a_device_without_memory_is_counted() {
    let name = "unchecked::a_device_without_memory_is_counted";
    let Some(outcome) = child(name, ENVIRONMENT, || {
        write_profile(vk::API_VERSION_1_1, 4, json!({}), 2 * BLOCK);
        let world = Setup { settings: &[GPU], ..Setup::OFF }.world(&lasting_entry());
        let (compute, pool) = (Compute::new(&world, 1), world.command_pool());
        let memory = allocate(&world, BLOCK).expect("it is there");
        compute.recorded(&world, pool, 2);
        let later = Compute::new(&world, 1);
        later.recorded(&world, pool, 1);
        // SAFETY: nothing is pending that uses it, and nobody has the handle afterwards (lifetime).
        unsafe { world.device.free_memory(memory, None) };
        [compute, later].into_iter().for_each(|it| it.destroy(&world));
        world.destroy();
    }) else {
        return;
    };
    assert_counts(&outcome, [[1, 2], [0, 3]], "the checks had ended");
}

#[test]
fn protected_command_buffers_are_counted() {
    let name = "unchecked::protected_command_buffers_are_counted";
    let Some(outcome) = child(name, ENVIRONMENT, || {
        let world = large_world(&[GPU]);
        let compute = Compute::new(&world, 1);
        let info = vk::CommandPoolCreateInfo::default().flags(vk::CommandPoolCreateFlags::PROTECTED);
        // SAFETY: the structure lives until the call returns. The feature is not enabled (null driver).
        let pool = unsafe { world.device.create_command_pool(&info, None) }.expect("the null driver makes pools");
        compute.recorded(&world, pool, 3);
        compute.destroy(&world);
        world.destroy();
    }) else {
        return;
    };
    assert_counts(&outcome, [[1, 1], [0, 3]], "protected command buffers");
}

/// Pipelines of one stage, with flags, or without the words of their shader.
fn create(world: &World, layout: vk::PipelineLayout, flags: vk::PipelineCreateFlags, has_words: bool) -> vk::Pipeline {
    let words = ash::util::read_spv(&mut std::io::Cursor::new(SHADER)).expect("a shader");
    // SAFETY: the structures live until the calls return, and the module until the pipeline is made (lifetime). A stage
    // without a module has no identifier either (null driver).
    unsafe {
        let info = vk::ShaderModuleCreateInfo::default().code(&words);
        let module = world.device.create_shader_module(&info, None).expect("a module");
        let stage = vk::PipelineShaderStageCreateInfo::default().stage(vk::ShaderStageFlags::COMPUTE).name(c"main");
        let stage = stage.module(if has_words { module } else { vk::ShaderModule::null() });
        let infos = [vk::ComputePipelineCreateInfo::default().stage(stage).layout(layout).flags(flags)];
        let made = world.device.create_compute_pipelines(vk::PipelineCache::null(), &infos, None);
        world.device.destroy_shader_module(module, None);
        made.expect("a pipeline")[0]
    }
}

#[test]
fn pipelines_that_cannot_be_checked_are_counted() {
    let name = "unchecked::pipelines_that_cannot_be_checked_are_counted";
    let Some(outcome) = child(name, ENVIRONMENT, || {
        let world = large_world(&[GPU]);
        let (compute, pool) = (Compute::new(&world, 1), world.command_pool());
        let bound_by_device = create(&world, compute.layout, vk::PipelineCreateFlags::INDIRECT_BINDABLE_NV, true);
        let without_words = create(&world, compute.layout, vk::PipelineCreateFlags::empty(), false);
        let commands = world.command_buffers(pool, 1)[0];
        // SAFETY: a new command buffer that only this thread uses, and live pipelines (lifetime, owner). Their sets are
        // not bound (VUID-vkCmdDispatch-None-08600; null driver).
        unsafe {
            let device = &world.device;
            device.begin_command_buffer(commands, &vk::CommandBufferBeginInfo::default()).expect("it begins");
            for (pipeline, count) in [(bound_by_device, 1), (without_words, 2), (compute.pipeline, 4)] {
                device.cmd_bind_pipeline(commands, vk::PipelineBindPoint::COMPUTE, pipeline);
                (0..count).for_each(|_| device.cmd_dispatch(commands, 1, 1, 1));
            }
            device.end_command_buffer(commands).expect("it ends");
            device.destroy_pipeline(bound_by_device, None);
            device.destroy_pipeline(without_words, None);
        }
        compute.destroy(&world);
        world.destroy();
    }) else {
        return;
    };
    assert_counts(&outcome, [[1, 3], [4, 7]], "");
    let (_, _, reasons) = counts(&outcome, "commands");
    let of = |text: &str| reasons.iter().find(|it| it.0.contains(text)).map(|it| it.1);
    assert_eq!((of("that the device binds"), of("SPIR-V of a shader is unknown")), (Some(1), Some(2)), "{reasons:?}");
}

/// A layout of one set with these bindings: number and count of storage buffers.
fn layout(world: &World, bindings: &[(u32, u32)]) -> vk::PipelineLayout {
    let binding = |(number, count): &(u32, u32)| {
        let binding = vk::DescriptorSetLayoutBinding::default().binding(*number).descriptor_count(*count);
        binding.descriptor_type(vk::DescriptorType::STORAGE_BUFFER).stage_flags(vk::ShaderStageFlags::COMPUTE)
    };
    let bindings: Vec<_> = bindings.iter().map(binding).collect();
    // SAFETY: the structures live until the calls return. The null driver has no limits (null driver).
    unsafe {
        let info = vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings);
        let set = [world.device.create_descriptor_set_layout(&info, None).expect("a layout")];
        let info = vk::PipelineLayoutCreateInfo::default().set_layouts(&set);
        world.device.create_pipeline_layout(&info, None).expect("a layout")
    }
}

/// The shader uses bindings 0 and 1.
#[test]
fn layouts_that_are_too_large_or_do_not_fit_are_counted() {
    let name = "unchecked::layouts_that_are_too_large_or_do_not_fit_are_counted";
    let Some(outcome) = child(name, ENVIRONMENT, || {
        let world = large_world(&[GPU]);
        let commands = world.command_buffers(world.command_pool(), 1)[0];
        let layouts = [
            layout(&world, &[(0, 1), (1, 1), (2, 70_000)]),
            layout(&world, &[(0, 1), (1, 1), (70_000, 1)]),
            layout(&world, &[(0, 1)]),
            vk::PipelineLayout::null(),
        ];
        // SAFETY: a new command buffer that only this thread uses, and live pipelines (lifetime, owner). Their sets are
        // not bound, and a layout is null (null driver).
        unsafe {
            let device = &world.device;
            device.begin_command_buffer(commands, &vk::CommandBufferBeginInfo::default()).expect("it begins");
            for layout in layouts {
                let pipeline = create(&world, layout, vk::PipelineCreateFlags::empty(), true);
                device.cmd_bind_pipeline(commands, vk::PipelineBindPoint::COMPUTE, pipeline);
                device.cmd_dispatch(commands, 1, 1, 1);
            }
            device.end_command_buffer(commands).expect("it ends");
        }
        world.destroy();
    }) else {
        return;
    };
    for what in ["shaders", "commands"] {
        let (seen, checked, reasons) = counts(&outcome, what);
        assert_eq!((seen, checked), (4, 0), "{what}: {reasons:?}");
        for part in ["more than 65536 descriptors", "above 65535", "not in its pipeline layout", "layout is not known"]
        {
            let found = reasons.iter().find(|it| it.0.contains(part)).map(|it| it.1);
            assert_eq!(found, Some(1), "{what}: {part}: {reasons:?}");
        }
    }
}

#[test]
fn a_setting_without_any_check_is_counted() {
    let name = "unchecked::a_setting_without_any_check_is_counted";
    let settings = [GPU, (c"gpu_shader_checks", c"off")];
    let Some(outcome) = child(name, ENVIRONMENT, || run(large_world(&settings), 1)) else { return };
    assert_counts(&outcome, [[0, 1], [0, 3]], "every check of their accesses is off");
}
