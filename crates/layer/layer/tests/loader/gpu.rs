//! Checks in shaders on devices that lack something, by what the driver is asked for.

use std::ffi::CStr;

use ash::{khr, vk};
use lavascope_abi::{self as abi, Structure};
use serde_json::json;

use crate::child::{ChildOutcome, child};
use crate::world::{Setup, World, entry};

pub(crate) const GPU: &[(&CStr, &CStr)] = &[(c"gpu", c"on")];
pub(crate) const LOG: (&str, &str) = ("LAVASCOPE_NULL_LOG", "{folder}/calls.txt");
pub(crate) const REPORT: (&str, &str) = ("LAVASCOPE_REPORT", "{folder}/report");
const PROFILE: (&str, &str) = ("LAVASCOPE_NULL_PROFILE", "{folder}/profile.json");
const ENVIRONMENT: &[(&str, &str)] = &[LOG, REPORT, PROFILE];
/// Reads one buffer and writes another.
pub(crate) const SHADER: &[u8] = include_bytes!("../../../../dev/samples/shaders/double.comp.spv");
/// They read one buffer each.
pub(crate) const VERTEX: &[u8] = include_bytes!("../../../../dev/samples/shaders/corners.vert.spv");
pub(crate) const FRAGMENT: &[u8] = include_bytes!("../../../../dev/samples/shaders/uniform.frag.spv");

/// A device of a version, with four sets and without addresses.
fn small_world(entry: &ash::Entry, version: u32) -> World {
    world_with(entry, version, 16 << 30, true)
}

/// The same, with heaps of this size, and with shaders of all stages that may write to buffers.
fn world_with(entry: &ash::Entry, version: u32, heap_bytes: u64, may_write: bool) -> World {
    let profile = json!({ "lavascope": { "memory_heap_bytes": heap_bytes }, "capabilities": { "small": {
        "features": { "VkPhysicalDeviceFeatures": {
            "fragmentStoresAndAtomics": may_write,
            "vertexPipelineStoresAndAtomics": may_write,
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

/// A pipeline whose layout has this many sets; the first one has two buffers.
pub(crate) struct Compute {
    pub(crate) set_layouts: Vec<vk::DescriptorSetLayout>,
    pub(crate) layout: vk::PipelineLayout,
    pub(crate) pipeline: vk::Pipeline,
}

impl Compute {
    pub(crate) fn new(world: &World, sets: usize) -> Compute {
        Compute::with_push_constants(world, sets, 0)
    }

    fn with_push_constants(world: &World, sets: usize, bytes: u32) -> Compute {
        let device = &world.device;
        let binding = |at| {
            let layout_binding = vk::DescriptorSetLayoutBinding::default().binding(at).descriptor_count(1);
            layout_binding
                .descriptor_type(vk::DescriptorType::STORAGE_BUFFER)
                .stage_flags(vk::ShaderStageFlags::COMPUTE)
        };
        let bindings = [binding(0), binding(1)];
        let info = vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings);
        let words = ash::util::read_spv(&mut std::io::Cursor::new(SHADER)).expect("a shader");
        // SAFETY: each object is created, used and destroyed in this order in this block or by the caller, what
        // structures point to lives in this frame, and only this thread uses the queue and the pool; work is waited for
        // before its objects end (lifetime, owner).
        unsafe {
            let made = (0..sets).map(|_| device.create_descriptor_set_layout(&info, None).expect("a layout"));
            let set_layouts: Vec<_> = made.collect();
            let range = vk::PushConstantRange::default().stage_flags(vk::ShaderStageFlags::COMPUTE).size(bytes);
            let ranges = [range];
            let ranges = &ranges[..usize::from(bytes > 0)];
            let info = vk::PipelineLayoutCreateInfo::default().set_layouts(&set_layouts).push_constant_ranges(ranges);
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
        let commands = self.recorded(world, pool, dispatches);
        // SAFETY: nothing is pending that uses it, and nobody has the handle afterwards (lifetime).
        unsafe { world.device.free_command_buffers(pool, &[commands]) };
    }

    /// Records dispatches into a new command buffer, which is submitted and waited for.
    pub(crate) fn recorded(&self, world: &World, pool: vk::CommandPool, dispatches: u32) -> vk::CommandBuffer {
        let (device, commands) = (&world.device, world.command_buffers(pool, 1)[0]);
        // SAFETY: a new command buffer that only this thread uses, and a live pipeline (lifetime, owner). Its sets are
        // not bound (VUID-vkCmdDispatch-None-08600; null driver).
        unsafe {
            device.begin_command_buffer(commands, &vk::CommandBufferBeginInfo::default()).expect("it begins");
            device.cmd_bind_pipeline(commands, vk::PipelineBindPoint::COMPUTE, self.pipeline);
            (0..dispatches).for_each(|_| device.cmd_dispatch(commands, 1, 1, 1));
            device.end_command_buffer(commands).expect("it ends");
        }
        world.submit(commands);
        commands
    }

    pub(crate) fn destroy(self, world: &World) {
        // SAFETY: nothing is pending that uses it, and nobody has the handle afterwards (lifetime).
        unsafe {
            world.device.destroy_pipeline(self.pipeline, None);
            world.device.destroy_pipeline_layout(self.layout, None);
            self.set_layouts.iter().for_each(|it| world.device.destroy_descriptor_set_layout(*it, None));
        }
    }
}

/// Creates a pipeline and records this many command buffers with two dispatches, one after the other.
fn run(version: u32, sets: usize, rounds: u32) {
    let entry = entry();
    let world = small_world(&entry, version);
    let compute = Compute::new(&world, sets);
    let pool = world.command_pool();
    (0..rounds).for_each(|_| compute.record(&world, pool, 2));
    // SAFETY: nothing is pending that uses it, and nobody has the handle afterwards (lifetime).
    unsafe { world.device.destroy_command_pool(pool, None) };
    compute.destroy(&world);
    world.destroy();
}

pub(crate) struct Calls(Vec<String>);

impl Calls {
    pub(crate) fn of(outcome: &ChildOutcome) -> Calls {
        Calls(outcome.file("calls.txt").lines().map(str::to_owned).collect())
    }

    pub(crate) fn count(&self, command: &str) -> usize {
        self.0.iter().filter(|it| *it == command).count()
    }

    /// The commands that are recorded into the first command buffer.
    pub(crate) fn recorded(&self) -> Vec<&str> {
        let begin = self.0.iter().position(|it| it == "vkBeginCommandBuffer").expect("it began");
        let end = self.0.iter().position(|it| it == "vkEndCommandBuffer").expect("it ended");
        self.0[begin..end].iter().map(String::as_str).filter(|it| it.starts_with("vkCmd")).collect()
    }
}

pub(crate) fn problems(outcome: &ChildOutcome) -> Vec<String> {
    outcome.of_kind("problem").iter().map(|it| it["text"].as_str().unwrap_or_default().to_owned()).collect()
}

#[test]
fn on_vulkan_1_0_nothing_is_checked_and_that_is_reported() {
    let name = "gpu::on_vulkan_1_0_nothing_is_checked_and_that_is_reported";
    let Some(outcome) = child(name, ENVIRONMENT, || run(vk::API_VERSION_1_0, 1, 1)) else { return };
    let problems = problems(&outcome);
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(problems[0].contains("Vulkan 1.1 is needed to check shaders"), "{problems:?}");
    assert_eq!(outcome.of_kind("problem")[0]["severity"], "error", "the setting cannot do what it says");
    let calls = Calls::of(&outcome);
    assert_eq!(calls.recorded(), ["vkCmdBindPipeline", "vkCmdDispatch", "vkCmdDispatch"]);
    assert_eq!((calls.count("vkCreateShaderModule"), calls.count("vkCreateBuffer")), (1, 0));
}

/// A pipeline that draws, out of shaders that read buffers.
fn create_graphics(world: &World, layout: vk::PipelineLayout) -> vk::Pipeline {
    let stages = [(vk::ShaderStageFlags::VERTEX, VERTEX), (vk::ShaderStageFlags::FRAGMENT, FRAGMENT)];
    // SAFETY: the structures live until the calls return, and modules end after the pipeline is made (lifetime). Fixed
    // functions are not described (null driver).
    unsafe {
        let module = |bytes: &[u8]| {
            let words = ash::util::read_spv(&mut std::io::Cursor::new(bytes)).expect("a shader");
            let info = vk::ShaderModuleCreateInfo::default().code(&words);
            world.device.create_shader_module(&info, None).expect("a module")
        };
        let stages = stages.map(|(stage, bytes)| {
            vk::PipelineShaderStageCreateInfo::default().stage(stage).module(module(bytes)).name(c"main")
        });
        let infos = [vk::GraphicsPipelineCreateInfo::default().stages(&stages).layout(layout)];
        let made = world.device.create_graphics_pipelines(vk::PipelineCache::null(), &infos, None);
        stages.iter().for_each(|it| world.device.destroy_shader_module(it.module, None));
        made.expect("a pipeline")[0]
    }
}

/// Stages without write access cannot store records; the others are checked.
#[test]
fn stages_that_cannot_write_are_not_checked_and_that_is_reported_once() {
    let name = "gpu::stages_that_cannot_write_are_not_checked_and_that_is_reported_once";
    let Some(outcome) = child(name, ENVIRONMENT, || {
        let entry = entry();
        let world = world_with(&entry, vk::API_VERSION_1_1, 16 << 30, false);
        let compute = Compute::new(&world, 1);
        for _ in 0..2 {
            let pipeline = create_graphics(&world, compute.layout);
            // SAFETY: nothing is pending that uses it, and nobody has the handle afterwards (lifetime).
            unsafe { world.device.destroy_pipeline(pipeline, None) };
        }
        compute.destroy(&world);
        world.destroy();
    }) else {
        return;
    };
    let problems = problems(&outcome);
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(problems[0].contains("shader stages that cannot write to buffers"), "{problems:?}");
    // Five of the application, and one with checks: that of the dispatch.
    assert_eq!(Calls::of(&outcome).count("vkCreateShaderModule"), 6);
}

/// The layer binds its set before each dispatch, and replaces the shader.
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
    // Three set layouts of the application, the layer's, and an empty one; the layer creates a second pipeline layout.
    assert_eq!((calls.count("vkCreateDescriptorSetLayout"), calls.count("vkCreatePipelineLayout")), (5, 2));
}

/// Records every command that runs shaders of graphics or compute.
fn record_all(world: &World, compute: &Compute, commands: vk::CommandBuffer) {
    let (device, buffer) = (&world.device, world.create_buffer());
    // SAFETY: a new command buffer that only this thread uses, with live objects (lifetime, owner). There is no
    // rendering, the pipeline is one for compute, sets are not bound, and the buffer is smaller than what commands name
    // (null driver).
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
        // SAFETY: nothing is pending that uses it, and nobody has the handle afterwards (lifetime).
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

/// How a top level structure is built.
#[derive(Clone, Copy)]
enum Build {
    Direct,
    Indirect,
}

/// Builds a structure out of eight instances between a push and a dispatch.
fn record_build(
    world: &World,
    commands: vk::CommandBuffer,
    (layout, pipeline): (vk::PipelineLayout, vk::Pipeline),
    build: Build,
) {
    let device = &world.device;
    let instances = vk::DeviceOrHostAddressConstKHR { device_address: 0x1_0000 };
    let instances = vk::AccelerationStructureGeometryInstancesDataKHR::default().data(instances);
    let geometry = vk::AccelerationStructureGeometryKHR::default()
        .geometry_type(vk::GeometryTypeKHR::INSTANCES)
        .geometry(vk::AccelerationStructureGeometryDataKHR { instances });
    let geometries = [geometry];
    let infos = [vk::AccelerationStructureBuildGeometryInfoKHR::default()
        .ty(vk::AccelerationStructureTypeKHR::TOP_LEVEL)
        .geometries(&geometries)];
    let builds = khr::acceleration_structure::Device::new(&world.instance, device);
    let (point, stages) = (vk::PipelineBindPoint::COMPUTE, vk::ShaderStageFlags::COMPUTE);
    // SAFETY: a new command buffer that only this thread uses, with live objects; the structures live until the calls
    // return (lifetime, owner). The acceleration structure is null and addresses lead nowhere (null driver).
    unsafe {
        device.begin_command_buffer(commands, &vk::CommandBufferBeginInfo::default()).expect("it begins");
        device.cmd_bind_pipeline(commands, point, pipeline);
        device.cmd_push_constants(commands, layout, stages, 0, &[1; 16]);
        match build {
            Build::Direct => {
                let range = vk::AccelerationStructureBuildRangeInfoKHR::default().primitive_count(8);
                builds.cmd_build_acceleration_structures(commands, &infos, &[&[range]]);
            }
            Build::Indirect => {
                builds.cmd_build_acceleration_structures_indirect(commands, &infos, &[0x2_0000], &[16], &[&[8]]);
            }
        }
        device.cmd_dispatch(commands, 1, 1, 1);
        device.end_command_buffer(commands).expect("it ends");
    }
}

/// The check of instances is a dispatch of the layer; the application's next dispatch has its own bindings and push
/// constants.
fn expect_bound_again(name: &str, build: Build, command: &str) {
    let setup = Setup {
        settings: GPU,
        device_extensions: &[khr::acceleration_structure::NAME, khr::deferred_host_operations::NAME],
        ..Setup::OFF
    };
    let Some(outcome) = child(name, &[LOG, REPORT], || {
        let entry = entry();
        let world = setup.world(&entry);
        let compute = Compute::with_push_constants(&world, 1, 16);
        let pool = world.command_pool();
        let commands = world.command_buffers(pool, 1)[0];
        record_build(&world, commands, (compute.layout, compute.pipeline), build);
        // SAFETY: nothing is pending that uses it, and nobody has the handle afterwards (lifetime).
        unsafe { world.device.destroy_command_pool(pool, None) };
        compute.destroy(&world);
        world.destroy();
    }) else {
        return;
    };
    assert_eq!(problems(&outcome), [] as [String; 0]);
    let (bind, push, dispatch) = ("vkCmdBindPipeline", "vkCmdPushConstants", "vkCmdDispatch");
    let barrier = "vkCmdPipelineBarrier";
    let look = [barrier, bind, push, dispatch, barrier, bind, push];
    // Then the address of tables, for the application's dispatch.
    let want = [&[bind, push][..], &look, &[command, push, dispatch, barrier]].concat();
    assert_eq!(Calls::of(&outcome).recorded(), want);
}

#[test]
fn what_was_bound_is_bound_again_behind_a_look_at_instances() {
    let name = "gpu::what_was_bound_is_bound_again_behind_a_look_at_instances";
    expect_bound_again(name, Build::Direct, "vkCmdBuildAccelerationStructuresKHR");
}

#[test]
fn what_was_bound_is_bound_again_where_ranges_are_in_a_buffer() {
    let name = "gpu::what_was_bound_is_bound_again_where_ranges_are_in_a_buffer";
    expect_bound_again(name, Build::Indirect, "vkCmdBuildAccelerationStructuresIndirectKHR");
}

#[test]
fn where_no_set_is_left_shaders_stay_as_they_are_and_that_is_reported() {
    let name = "gpu::where_no_set_is_left_shaders_stay_as_they_are_and_that_is_reported";
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

/// Memory of the application, of the type that checks take theirs from.
pub(crate) fn allocate(world: &World, bytes: u64) -> Result<vk::DeviceMemory, vk::Result> {
    // SAFETY: each object is created, used and destroyed in this order in this block or by the caller, what structures
    // point to lives in this frame, and only this thread uses the queue and the pool; work is waited for before its
    // objects end (lifetime, owner).
    unsafe {
        let physical = world.instance.enumerate_physical_devices().expect("a device")[0];
        let all = world.instance.get_physical_device_memory_properties(physical);
        let wanted = vk::MemoryPropertyFlags::HOST_VISIBLE
            | vk::MemoryPropertyFlags::HOST_COHERENT
            | vk::MemoryPropertyFlags::HOST_CACHED;
        let fits = |it: &vk::MemoryType| it.property_flags.contains(wanted);
        let index = all.memory_types_as_slice().iter().position(fits).expect("memory that is cached");
        let info = vk::MemoryAllocateInfo::default().allocation_size(bytes).memory_type_index(index as u32);
        world.device.allocate_memory(&info, None)
    }
}

/// The size of the layer's blocks.
pub(crate) const BLOCK: u64 = 256 << 10;

/// The memory of a command buffer can be reused by another one, but first of all by the application.
#[test]
fn where_the_application_lacks_memory_it_gets_what_checks_do_not_use() {
    let name = "gpu::where_the_application_lacks_memory_it_gets_what_checks_do_not_use";
    let Some(outcome) = child(name, ENVIRONMENT, || {
        let entry = entry();
        let world = world_with(&entry, vk::API_VERSION_1_1, 8 * BLOCK, true);
        let (compute, pool) = (Compute::new(&world, 1), world.command_pool());
        compute.record(&world, pool, 2);
        // One block is the pipeline's, one was the command buffer's.
        assert!(allocate(&world, 8 * BLOCK).is_err(), "nobody can have all of it");
        let memory = allocate(&world, 7 * BLOCK).expect("that much is left");
        assert!(allocate(&world, 1).is_err(), "by now all is taken");
        // Checks continue when there is memory again.
        // SAFETY: nothing is pending that uses it, and nobody has the handle afterwards (lifetime).
        unsafe { world.device.free_memory(memory, None) };
        compute.record(&world, pool, 1);
        // SAFETY: nothing is pending that uses it, and nobody has the handle afterwards (lifetime).
        unsafe { world.device.destroy_command_pool(pool, None) };
        compute.destroy(&world);
        world.destroy();
    }) else {
        return;
    };
    assert_eq!(problems(&outcome), [] as [String; 0]);
    let calls = Calls::of(&outcome);
    let is_it = |it: &&String| ["vkAllocateMemory", "vkFreeMemory"].contains(&it.as_str());
    let calls: Vec<&str> = calls.0.iter().filter(is_it).map(|it| &it[2..10]).collect();
    let (allocate, free) = ("Allocate", "FreeMemo");
    // The layer allocates twice. The application's first allocation fails, the layer frees a block, and it fails again.
    // The second succeeds at once, the third fails, and there is nothing to free. Then the layer allocates one again.
    let want = [allocate, allocate, allocate, free, allocate, allocate, allocate, free, allocate];
    assert_eq!(calls[..want.len()], want);
    assert_eq!(calls[want.len()..], [free, free], "all is freed in the end");
}

/// The driver has no memory for the tables of a command buffer. That is reported once, existing pipelines with checks
/// run with permissive tables, and new ones get no checks.
#[test]
fn where_checks_lack_memory_that_is_reported_once_and_nothing_more_is_checked() {
    let name = "gpu::where_checks_lack_memory_that_is_reported_once_and_nothing_more_is_checked";
    let Some(outcome) = child(name, ENVIRONMENT, || {
        let entry = entry();
        let world = world_with(&entry, vk::API_VERSION_1_1, 2 * BLOCK, true);
        let (compute, pool) = (Compute::new(&world, 1), world.command_pool());
        let memory = allocate(&world, BLOCK).expect("it is there");
        compute.recorded(&world, pool, 2);
        compute.recorded(&world, pool, 1);
        let later = Compute::new(&world, 1);
        later.recorded(&world, pool, 1);
        // Nor is anything checked where there is memory again.
        // SAFETY: nothing is pending that uses it, and nobody has the handle afterwards (lifetime).
        unsafe { world.device.free_memory(memory, None) };
        compute.recorded(&world, pool, 1);
        // SAFETY: nothing is pending that uses it, and nobody has the handle afterwards (lifetime).
        unsafe { world.device.destroy_command_pool(pool, None) };
        compute.destroy(&world);
        later.destroy(&world);
        world.destroy();
    }) else {
        return;
    };
    let problems = problems(&outcome);
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(problems[0].contains("there is no memory for checks"), "{problems:?}");
    let calls = Calls::of(&outcome);
    assert_eq!(calls.count("vkAllocateMemory"), 3, "one of ours, the application's, and one that failed");
    assert_eq!(calls.count("vkCreateShaderModule"), 3, "two of the application, and one with checks");
    let recorded = calls.0.iter().map(String::as_str).filter(|it| it.starts_with("vkCmd"));
    let (pipeline, bind, dispatch) = ("vkCmdBindPipeline", "vkCmdBindDescriptorSets", "vkCmdDispatch");
    // Tables by which all is right are bound before each dispatch with checks; nothing is read, so no barrier is needed.
    let (one, two) = ([pipeline, bind, dispatch], [pipeline, bind, dispatch, bind, dispatch]);
    let want = [&two[..], &one, &[pipeline, dispatch], &one].concat();
    assert_eq!(recorded.collect::<Vec<_>>(), want);
}

/// The resources of a pipeline are free when it is destroyed, and so are those of its layout.
#[test]
fn ten_thousand_pipelines_one_after_the_other_take_no_more_than_a_few() {
    let name = "gpu::ten_thousand_pipelines_one_after_the_other_take_no_more_than_a_few";
    let Some(outcome) = child(name, ENVIRONMENT, || {
        let entry = entry();
        let world = small_world(&entry, vk::API_VERSION_1_1);
        let pool = world.command_pool();
        for round in 0..10_000 {
            let compute = Compute::new(&world, 1);
            if round % 100 == 0 {
                compute.record(&world, pool, 1);
            }
            compute.destroy(&world);
        }
        // SAFETY: nothing is pending that uses it, and nobody has the handle afterwards (lifetime).
        unsafe { world.device.destroy_command_pool(pool, None) };
        world.destroy();
    }) else {
        return;
    };
    assert_eq!(problems(&outcome), [] as [String; 0]);
    let calls = Calls::of(&outcome);
    assert_eq!(calls.count("vkCreateComputePipelines"), 10_000);
    assert_eq!(calls.count("vkAllocateMemory"), 2, "a block for pipelines, and one for command buffers");
    assert_eq!(calls.count("vkCreateDescriptorPool"), 2, "the same for sets");
    // The application's and ours.
    assert_eq!(calls.count("vkCreatePipelineLayout"), 20_000);
    let (mut now, mut most) = (0_i32, 0);
    for call in &calls.0 {
        now += i32::from(call == "vkCreatePipelineLayout") - i32::from(call == "vkDestroyPipelineLayout");
        most = most.max(now);
    }
    assert_eq!((now, most), (0, 2), "each is destroyed before the next is made");
}

type Preprocess = unsafe extern "system" fn(vk::CommandBuffer, *const abi::GeneratedCommandsInfoEXT, vk::CommandBuffer);
type Execute = unsafe extern "system" fn(vk::CommandBuffer, vk::Bool32, *const abi::GeneratedCommandsInfoEXT);

/// Executes device-generated commands, directly and preprocessed.
fn record_generated(world: &World, compute: &Compute, [commands, state]: [vk::CommandBuffer; 2]) {
    let device = &world.device;
    let mut info = abi::GeneratedCommandsInfoEXT::zeroed();
    info.s_type = abi::StructureType::GENERATED_COMMANDS_INFO_EXT;
    info.shader_stages = abi::ShaderStageFlags::COMPUTE;
    info.max_sequence_count = 1;
    // SAFETY: `Execute` and `Preprocess` are the types of the commands with these names, which end with a zero. Both
    // command buffers are new and used by this thread only, and `info` lives here (lifetime, owner). There is no layout
    // of the commands and no memory with them (null driver).
    unsafe {
        let function = |name: &CStr| {
            let found = world.instance.get_device_proc_addr(device.handle(), name.as_ptr());
            found.unwrap_or_else(|| panic!("{name:?}"))
        };
        let execute: Execute = std::mem::transmute(function(c"vkCmdExecuteGeneratedCommandsEXT"));
        let preprocess: Preprocess = std::mem::transmute(function(c"vkCmdPreprocessGeneratedCommandsEXT"));
        for command_buffer in [commands, state] {
            device.begin_command_buffer(command_buffer, &vk::CommandBufferBeginInfo::default()).expect("it begins");
            device.cmd_bind_pipeline(command_buffer, vk::PipelineBindPoint::COMPUTE, compute.pipeline);
        }
        execute(commands, vk::FALSE, &info);
        device.cmd_dispatch(commands, 1, 1, 1);
        preprocess(commands, &info, state);
        execute(commands, vk::TRUE, &info);
        for command_buffer in [commands, state] {
            device.end_command_buffer(command_buffer).expect("it ends");
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
        // SAFETY: nothing is pending that uses it, and nobody has the handle afterwards (lifetime).
        unsafe { world.device.destroy_command_pool(pool, None) };
        compute.destroy(&world);
        world.destroy();
    }) else {
        return;
    };
    let problems = problems(&outcome);
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(problems[0].contains("preprocessed generated commands are not checked"), "{problems:?}");
    let calls = Calls::of(&outcome);
    let (push, execute) = ("vkCmdPushConstants", "vkCmdExecuteGeneratedCommandsEXT");
    let mut want = vec!["vkCmdBindPipeline"; 2];
    want.extend([push, execute, push, "vkCmdDispatch"]);
    // Preprocessed commands get their root at preprocessing, with the state, and again at execution.
    want.extend([push, "vkCmdPreprocessGeneratedCommandsEXT", push, execute]);
    want.push("vkCmdPipelineBarrier");
    assert_eq!(calls.recorded(), want);
}

/// The same with the older extension, where preprocessed commands get their root as well.
fn record_generated_nv(world: &World, compute: &Compute, commands: vk::CommandBuffer) {
    let device = &world.device;
    let functions = ash::nv::device_generated_commands::Device::new(&world.instance, device);
    let point = vk::PipelineBindPoint::COMPUTE;
    let info = vk::GeneratedCommandsInfoNV::default().pipeline_bind_point(point).pipeline(compute.pipeline);
    // SAFETY: a new command buffer that only this thread uses, with a live pipeline; `info` lives here (lifetime,
    // owner). There is no layout of the commands (null driver).
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
        // SAFETY: nothing is pending that uses it, and nobody has the handle afterwards (lifetime).
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

/// Asks for the binary of a shader object, and makes another one of that. Returns the binary.
fn take_binary(world: &World, destroys_layout: bool) -> Result<Vec<u8>, vk::Result> {
    let device = &world.device;
    let functions = ash::ext::shader_object::Device::new(&world.instance, device);
    let binding = |at| {
        let layout_binding = vk::DescriptorSetLayoutBinding::default().binding(at).descriptor_count(1);
        layout_binding.descriptor_type(vk::DescriptorType::STORAGE_BUFFER).stage_flags(vk::ShaderStageFlags::COMPUTE)
    };
    let bindings = [binding(0), binding(1)];
    let words = ash::util::read_spv(&mut std::io::Cursor::new(SHADER)).expect("a shader");
    let info = vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings);
    // SAFETY: each object is created, used and destroyed in this order, and `words` and `bytes` live until the calls
    // return (lifetime). With `destroys_layout`, callbacks are null functions and a layout is named after its end: the
    // driver calls none and looks up none (null driver).
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
    assert_eq!(problems.len(), 1, "it is reported once: {problems:?}");
    assert!(problems[0].contains("shader objects created from binaries"), "{problems:?}");
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
    assert!(problems[0].contains("has no binary"), "{problems:?}");
}
