//! Checks in shaders on devices that lack something, by what the driver is asked for.

use std::ffi::CStr;

use ash::vk;
use lavascope_abi::{self as abi, Structure};
use serde_json::json;

use crate::child::{Outcome, child};
use crate::world::{Setup, World, entry};

const GPU: &[(&CStr, &CStr)] = &[(c"gpu", c"on")];
const LOG: (&str, &str) = ("LAVASCOPE_NULL_LOG", "{folder}/calls.txt");
const REPORT: (&str, &str) = ("LAVASCOPE_REPORT", "{folder}/report");
const PROFILE: (&str, &str) = ("LAVASCOPE_NULL_PROFILE", "{folder}/profile.json");
const ENVIRONMENT: &[(&str, &str)] = &[LOG, REPORT, PROFILE];
/// Reads one buffer and writes another.
const SHADER: &[u8] = include_bytes!("../../../samples/shaders/double.comp.spv");

/// A device of a version, with four sets and without addresses.
fn small_world(entry: &ash::Entry, version: u32) -> World {
    let profile = json!({ "capabilities": { "small": {
        "features": { "VkPhysicalDeviceFeatures": {
            "fragmentStoresAndAtomics": true,
            "vertexPipelineStoresAndAtomics": true,
        } },
        "properties": { "VkPhysicalDeviceProperties": {
            "apiVersion": version,
            "limits": { "maxBoundDescriptorSets": 4 },
        } },
    } } });
    // The current folder is the test's own.
    std::fs::write("profile.json", profile.to_string()).expect("the folder is ours");
    Setup { settings: GPU, ..Setup::OFF }.world(entry)
}

/// A pipeline whose layout has so many sets; the first one has two buffers.
struct Compute {
    set_layouts: Vec<vk::DescriptorSetLayout>,
    layout: vk::PipelineLayout,
    pipeline: vk::Pipeline,
}

impl Compute {
    fn new(world: &World, sets: usize) -> Compute {
        let device = &world.device;
        let binding = |at| {
            let it = vk::DescriptorSetLayoutBinding::default().binding(at).descriptor_count(1);
            it.descriptor_type(vk::DescriptorType::STORAGE_BUFFER).stage_flags(vk::ShaderStageFlags::COMPUTE)
        };
        let bindings = [binding(0), binding(1)];
        let info = vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings);
        let words = ash::util::read_spv(&mut std::io::Cursor::new(SHADER)).expect("a shader");
        // SAFETY: valid usage, by this function as a whole.
        unsafe {
            let made = (0..sets).map(|_| device.create_descriptor_set_layout(&info, None).expect("a layout"));
            let set_layouts: Vec<_> = made.collect();
            let info = vk::PipelineLayoutCreateInfo::default().set_layouts(&set_layouts);
            let layout = device.create_pipeline_layout(&info, None).expect("a layout");
            let info = vk::ShaderModuleCreateInfo::default().code(&words);
            let module = device.create_shader_module(&info, None).expect("a module");
            let stage = vk::PipelineShaderStageCreateInfo::default().stage(vk::ShaderStageFlags::COMPUTE);
            let stage = stage.module(module).name(c"main");
            let infos = [vk::ComputePipelineCreateInfo::default().stage(stage).layout(layout)];
            let cache = vk::PipelineCache::null();
            let pipeline = device.create_compute_pipelines(cache, &infos, None).expect("a pipeline")[0];
            device.destroy_shader_module(module, None);
            Compute { set_layouts, layout, pipeline }
        }
    }

    /// Records dispatches into a new command buffer, and frees it.
    fn record(&self, world: &World, pool: vk::CommandPool, dispatches: u32) {
        let (device, commands) = (&world.device, world.command_buffers(pool, 1));
        // SAFETY: valid usage, but for sets that are not bound, which is nothing to the null driver.
        unsafe {
            device.begin_command_buffer(commands[0], &vk::CommandBufferBeginInfo::default()).expect("it begins");
            device.cmd_bind_pipeline(commands[0], vk::PipelineBindPoint::COMPUTE, self.pipeline);
            (0..dispatches).for_each(|_| device.cmd_dispatch(commands[0], 1, 1, 1));
            device.end_command_buffer(commands[0]).expect("it ends");
            world.submit(commands[0]);
            device.free_command_buffers(pool, &commands);
        }
    }

    fn destroy(self, world: &World) {
        // SAFETY: nothing of it is in use.
        unsafe {
            world.device.destroy_pipeline(self.pipeline, None);
            world.device.destroy_pipeline_layout(self.layout, None);
            self.set_layouts.iter().for_each(|it| world.device.destroy_descriptor_set_layout(*it, None));
        }
    }
}

/// Makes a pipeline and records so many command buffers with two dispatches, one after the other.
fn run(version: u32, sets: usize, rounds: u32) {
    let entry = entry();
    let world = small_world(&entry, version);
    let compute = Compute::new(&world, sets);
    let pool = world.command_pool();
    (0..rounds).for_each(|_| compute.record(&world, pool, 2));
    // SAFETY: nothing of it is in use.
    unsafe { world.device.destroy_command_pool(pool, None) };
    compute.destroy(&world);
    world.destroy();
}

struct Calls(Vec<String>);

impl Calls {
    fn of(outcome: &Outcome) -> Calls {
        Calls(outcome.file("calls.txt").lines().map(str::to_owned).collect())
    }

    fn count(&self, command: &str) -> usize {
        self.0.iter().filter(|it| *it == command).count()
    }

    /// What is recorded into the first command buffer.
    fn recorded(&self) -> Vec<&str> {
        let begin = self.0.iter().position(|it| it == "vkBeginCommandBuffer").expect("it began");
        let end = self.0.iter().position(|it| it == "vkEndCommandBuffer").expect("it ended");
        self.0[begin..end].iter().map(String::as_str).filter(|it| it.starts_with("vkCmd")).collect()
    }
}

fn problems(outcome: &Outcome) -> Vec<String> {
    outcome.of_kind("problem").iter().map(|it| it["text"].as_str().unwrap_or_default().to_owned()).collect()
}

#[test]
fn on_vulkan_1_0_nothing_is_checked_and_that_is_told() {
    let name = "gpu::on_vulkan_1_0_nothing_is_checked_and_that_is_told";
    let Some(outcome) = child(name, ENVIRONMENT, || run(vk::API_VERSION_1_0, 1, 1)) else { return };
    let problems = problems(&outcome);
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(problems[0].contains("Vulkan 1.1 is needed to check shaders"), "{problems:?}");
    let calls = Calls::of(&outcome);
    assert_eq!(calls.recorded(), ["vkCmdBindPipeline", "vkCmdDispatch", "vkCmdDispatch"]);
    assert_eq!((calls.count("vkCreateShaderModule"), calls.count("vkCreateBuffer")), (1, 0));
}

/// The set of ours is bound before each dispatch, and the shader is exchanged.
#[test]
fn on_vulkan_1_1_shaders_are_checked_without_addresses() {
    let name = "gpu::on_vulkan_1_1_shaders_are_checked_without_addresses";
    let Some(outcome) = child(name, ENVIRONMENT, || run(vk::API_VERSION_1_1, 3, 1)) else { return };
    assert_eq!(problems(&outcome), [] as [String; 0]);
    let calls = Calls::of(&outcome);
    let (bind, dispatch) = ("vkCmdBindDescriptorSets", "vkCmdDispatch");
    let barrier = "vkCmdPipelineBarrier";
    assert_eq!(calls.recorded(), ["vkCmdBindPipeline", bind, dispatch, bind, dispatch, barrier]);
    assert_eq!(calls.count("vkGetBufferDeviceAddress"), 0, "nothing has an address");
    assert_eq!(calls.count("vkCreateShaderModule"), 2, "the application's, and one with checks");
    // Three of the application's, ours, and an empty one; the layout of ours is made beside the application's.
    assert_eq!((calls.count("vkCreateDescriptorSetLayout"), calls.count("vkCreatePipelineLayout")), (5, 2));
}

/// Records every command that runs shaders of graphics or compute.
fn record_all(world: &World, compute: &Compute, commands: vk::CommandBuffer) {
    let (device, buffer) = (&world.device, world.create_buffer());
    // SAFETY: valid usage but for what is nothing to the null driver: there is no rendering, the pipeline is one for
    // compute, and sets are not bound.
    unsafe {
        device.begin_command_buffer(commands, &vk::CommandBufferBeginInfo::default()).expect("it begins");
        for point in [vk::PipelineBindPoint::GRAPHICS, vk::PipelineBindPoint::COMPUTE] {
            device.cmd_bind_pipeline(commands, point, compute.pipeline);
        }
        device.cmd_draw(commands, 3, 1, 0, 0);
        device.cmd_draw_indexed(commands, 3, 1, 0, 0, 0);
        device.cmd_draw_indirect(commands, buffer, 0, 1, 16);
        device.cmd_draw_indexed_indirect(commands, buffer, 0, 1, 20);
        device.cmd_draw_indirect_count(commands, buffer, 0, buffer, 64, 1, 16);
        device.cmd_draw_indexed_indirect_count(commands, buffer, 0, buffer, 64, 1, 20);
        device.cmd_dispatch(commands, 1, 1, 1);
        device.cmd_dispatch_indirect(commands, buffer, 0);
        device.cmd_dispatch_base(commands, 1, 1, 1, 1, 1, 1);
        device.end_command_buffer(commands).expect("it ends");
    }
    world.destroy_buffer(buffer);
}

#[test]
fn every_command_that_runs_shaders_is_led_to_its_tables() {
    let name = "gpu::every_command_that_runs_shaders_is_led_to_its_tables";
    let Some(outcome) = child(name, ENVIRONMENT, || {
        let entry = entry();
        let world = small_world(&entry, vk::API_VERSION_1_2);
        let compute = Compute::new(&world, 3);
        let pool = world.command_pool();
        record_all(&world, &compute, world.command_buffers(pool, 1)[0]);
        // SAFETY: nothing of it is in use.
        unsafe { world.device.destroy_command_pool(pool, None) };
        compute.destroy(&world);
        world.destroy();
    }) else {
        return;
    };
    let calls = Calls::of(&outcome);
    let commands = [
        "vkCmdDraw",
        "vkCmdDrawIndexed",
        "vkCmdDrawIndirect",
        "vkCmdDrawIndexedIndirect",
        "vkCmdDrawIndirectCount",
        "vkCmdDrawIndexedIndirectCount",
        "vkCmdDispatch",
        "vkCmdDispatchIndirect",
        "vkCmdDispatchBase",
    ];
    let mut want = vec!["vkCmdBindPipeline"; 2];
    want.extend(commands.iter().flat_map(|it| ["vkCmdBindDescriptorSets", it]));
    want.push("vkCmdPipelineBarrier");
    assert_eq!(calls.recorded(), want);
}

#[test]
fn where_no_set_is_left_shaders_stay_as_they_are_and_that_is_told() {
    let name = "gpu::where_no_set_is_left_shaders_stay_as_they_are_and_that_is_told";
    let Some(outcome) = child(name, ENVIRONMENT, || run(vk::API_VERSION_1_1, 4, 1)) else { return };
    let problems = problems(&outcome);
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(problems[0].contains("leaves no push constants, no descriptor set"), "{problems:?}");
    let calls = Calls::of(&outcome);
    assert_eq!(calls.recorded(), ["vkCmdBindPipeline", "vkCmdDispatch", "vkCmdDispatch"]);
    assert_eq!(calls.count("vkCreateShaderModule"), 1, "the application's");
}

#[test]
fn command_buffers_that_are_freed_give_back_what_they_had() {
    let name = "gpu::command_buffers_that_are_freed_give_back_what_they_had";
    let Some(outcome) = child(name, ENVIRONMENT, || run(vk::API_VERSION_1_1, 3, 50)) else { return };
    let calls = Calls::of(&outcome);
    assert_eq!(calls.count("vkFreeCommandBuffers"), 50);
    assert_eq!(calls.count("vkResetDescriptorPool"), 50, "the sets of each are free again");
    // One pool for sets of pipelines, one for those of command buffers; a block of memory for each.
    assert!(calls.count("vkCreateDescriptorPool") <= 2, "{}", calls.count("vkCreateDescriptorPool"));
    assert!(calls.count("vkAllocateMemory") <= 3, "{}", calls.count("vkAllocateMemory"));
    assert_eq!(calls.count("vkAllocateMemory"), calls.count("vkFreeMemory"));
}

type Preprocess = unsafe extern "system" fn(vk::CommandBuffer, *const abi::GeneratedCommandsInfoEXT, vk::CommandBuffer);
type Execute = unsafe extern "system" fn(vk::CommandBuffer, vk::Bool32, *const abi::GeneratedCommandsInfoEXT);

/// Executes commands that the device generates, as they are and preprocessed.
fn record_generated(world: &World, compute: &Compute, [commands, state]: [vk::CommandBuffer; 2]) {
    let device = &world.device;
    let mut info = abi::GeneratedCommandsInfoEXT::zeroed();
    info.s_type = abi::StructureType::GENERATED_COMMANDS_INFO_EXT;
    info.shader_stages = abi::ShaderStageFlags::COMPUTE;
    info.max_sequence_count = 1;
    // SAFETY: functions of these types, and valid usage but for what is nothing to the null driver: there is no layout
    // of the commands and no memory with them.
    unsafe {
        let function = |name: &CStr| {
            let found = world.instance.get_device_proc_addr(device.handle(), name.as_ptr());
            found.unwrap_or_else(|| panic!("{name:?}"))
        };
        let execute: Execute = std::mem::transmute(function(c"vkCmdExecuteGeneratedCommandsEXT"));
        let preprocess: Preprocess = std::mem::transmute(function(c"vkCmdPreprocessGeneratedCommandsEXT"));
        for it in [commands, state] {
            device.begin_command_buffer(it, &vk::CommandBufferBeginInfo::default()).expect("it begins");
            device.cmd_bind_pipeline(it, vk::PipelineBindPoint::COMPUTE, compute.pipeline);
        }
        execute(commands, vk::FALSE, &info);
        device.cmd_dispatch(commands, 1, 1, 1);
        preprocess(commands, &info, state);
        execute(commands, vk::TRUE, &info);
        for it in [commands, state] {
            device.end_command_buffer(it).expect("it ends");
        }
    }
}

#[test]
fn commands_that_the_device_generates_are_led_to_their_tables() {
    let name = "gpu::commands_that_the_device_generates_are_led_to_their_tables";
    let Some(outcome) = child(name, &[LOG, REPORT], || {
        let entry = entry();
        let device_extensions = &[c"VK_EXT_device_generated_commands", c"VK_KHR_maintenance5"];
        let world = Setup { settings: GPU, device_extensions, ..Setup::OFF }.world(&entry);
        let compute = Compute::new(&world, 1);
        let pool = world.command_pool();
        let all = world.command_buffers(pool, 2);
        record_generated(&world, &compute, [all[0], all[1]]);
        // SAFETY: nothing of it is in use.
        unsafe { world.device.destroy_command_pool(pool, None) };
        compute.destroy(&world);
        world.destroy();
    }) else {
        return;
    };
    let problems = problems(&outcome);
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(problems[0].contains("generated commands that are preprocessed are not checked"), "{problems:?}");
    let calls = Calls::of(&outcome);
    let (push, execute) = ("vkCmdPushConstants", "vkCmdExecuteGeneratedCommandsEXT");
    let mut want = vec!["vkCmdBindPipeline"; 2];
    want.extend([push, execute, push, "vkCmdDispatch"]);
    // What is preprocessed is told where its state is, and again where it is executed.
    want.extend([push, "vkCmdPreprocessGeneratedCommandsEXT", push, execute]);
    want.push("vkCmdPipelineBarrier");
    assert_eq!(calls.recorded(), want);
}

/// The same in the older extension: what is preprocessed is told so as well.
fn record_generated_nv(world: &World, compute: &Compute, commands: vk::CommandBuffer) {
    let device = &world.device;
    let functions = ash::nv::device_generated_commands::Device::new(&world.instance, device);
    let point = vk::PipelineBindPoint::COMPUTE;
    let info = vk::GeneratedCommandsInfoNV::default().pipeline_bind_point(point).pipeline(compute.pipeline);
    // SAFETY: valid usage but for what is nothing to the null driver: there is no layout of the commands.
    unsafe {
        device.begin_command_buffer(commands, &vk::CommandBufferBeginInfo::default()).expect("it begins");
        device.cmd_bind_pipeline(commands, point, compute.pipeline);
        (functions.fp().cmd_preprocess_generated_commands_nv)(commands, &info);
        (functions.fp().cmd_execute_generated_commands_nv)(commands, vk::TRUE, &info);
        (functions.fp().cmd_execute_generated_commands_nv)(commands, vk::FALSE, &info);
        device.end_command_buffer(commands).expect("it ends");
    }
}

#[test]
fn generated_commands_of_nvidia_are_led_to_their_tables() {
    let name = "gpu::generated_commands_of_nvidia_are_led_to_their_tables";
    let Some(outcome) = child(name, &[LOG, REPORT], || {
        let entry = entry();
        let device_extensions = &[c"VK_NV_device_generated_commands"];
        let world = Setup { settings: GPU, device_extensions, ..Setup::OFF }.world(&entry);
        let compute = Compute::new(&world, 1);
        let pool = world.command_pool();
        record_generated_nv(&world, &compute, world.command_buffers(pool, 1)[0]);
        // SAFETY: nothing of it is in use.
        unsafe { world.device.destroy_command_pool(pool, None) };
        compute.destroy(&world);
        world.destroy();
    }) else {
        return;
    };
    let (push, execute) = ("vkCmdPushConstants", "vkCmdExecuteGeneratedCommandsNV");
    let want = ["vkCmdBindPipeline", push, "vkCmdPreprocessGeneratedCommandsNV", push, execute, push, execute];
    assert_eq!(Calls::of(&outcome).recorded(), [&want[..], &["vkCmdPipelineBarrier"]].concat());
}

/// Asks for the binary of a shader object, and makes another one of that. Gives the binary.
fn take_binary(world: &World, destroys_layout: bool) -> Result<Vec<u8>, vk::Result> {
    let device = &world.device;
    let functions = ash::ext::shader_object::Device::new(&world.instance, device);
    let binding = |at| {
        let it = vk::DescriptorSetLayoutBinding::default().binding(at).descriptor_count(1);
        it.descriptor_type(vk::DescriptorType::STORAGE_BUFFER).stage_flags(vk::ShaderStageFlags::COMPUTE)
    };
    let bindings = [binding(0), binding(1)];
    let words = ash::util::read_spv(&mut std::io::Cursor::new(SHADER)).expect("a shader");
    let info = vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings);
    // SAFETY: valid usage, by this function as a whole, but for callbacks that are none: the null driver calls none.
    unsafe {
        let layouts = [device.create_descriptor_set_layout(&info, None).expect("a layout")];
        let info = vk::ShaderCreateInfoEXT::default().stage(vk::ShaderStageFlags::COMPUTE).name(c"main");
        let info = info.set_layouts(&layouts);
        let code = vk::ShaderCreateInfoEXT { code_size: words.len() * 4, p_code: words.as_ptr().cast(), ..info };
        let made = functions.create_shaders(&[code.code_type(vk::ShaderCodeTypeEXT::SPIRV)], None);
        let made = made.map_err(|it| it.1)?[0];
        if destroys_layout {
            // With callbacks of the application it cannot stay for us.
            device.destroy_descriptor_set_layout(layouts[0], Some(&vk::AllocationCallbacks::default()));
        }
        let binary = functions.get_shader_binary_data(made);
        if let Ok(bytes) = &binary {
            let code = vk::ShaderCreateInfoEXT { code_size: bytes.len(), p_code: bytes.as_ptr().cast(), ..info };
            let code = code.code_type(vk::ShaderCodeTypeEXT::BINARY);
            for _ in 0..2 {
                let again = functions.create_shaders(&[code], None).map_err(|it| it.1)?[0];
                assert_eq!(functions.get_shader_binary_data(again).as_ref(), Ok(bytes), "it goes through as it is");
                functions.destroy_shader(again, None);
            }
        }
        functions.destroy_shader(made, None);
        if !destroys_layout {
            device.destroy_descriptor_set_layout(layouts[0], None);
        }
        binary
    }
}

const OBJECTS: &[&CStr] = &[c"VK_EXT_shader_object"];

#[test]
fn binaries_of_shader_objects_have_nothing_of_ours() {
    let name = "gpu::binaries_of_shader_objects_have_nothing_of_ours";
    let Some(outcome) = child(name, &[LOG, REPORT], || {
        let entry = entry();
        let taken = [&[][..], GPU].map(|settings| {
            let world = Setup { settings, device_extensions: OBJECTS, ..Setup::OFF }.world(&entry);
            let taken = take_binary(&world, false).expect("a binary");
            world.destroy();
            taken
        });
        assert_eq!(taken[0], taken[1], "with checks and without");
    }) else {
        return;
    };
    let problems = problems(&outcome);
    assert_eq!(problems.len(), 1, "it is told once: {problems:?}");
    assert!(problems[0].contains("shader objects out of binaries"), "{problems:?}");
    let calls = Calls::of(&outcome);
    // The application's, two of its binary, and with checks one without them.
    assert_eq!((calls.count("vkCreateShadersEXT"), calls.count("vkDestroyShaderEXT")), (7, 7));
}

#[test]
fn where_an_object_cannot_be_made_without_checks_there_is_no_binary_of_it() {
    let name = "gpu::where_an_object_cannot_be_made_without_checks_there_is_no_binary_of_it";
    let Some(outcome) = child(name, &[LOG, REPORT], || {
        let entry = entry();
        let world = Setup { settings: GPU, device_extensions: OBJECTS, ..Setup::OFF }.world(&entry);
        assert_eq!(take_binary(&world, true), Err(vk::Result::ERROR_OUT_OF_HOST_MEMORY));
        world.destroy();
    }) else {
        return;
    };
    let problems = problems(&outcome);
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(problems[0].contains("there is no binary of it"), "{problems:?}");
}
