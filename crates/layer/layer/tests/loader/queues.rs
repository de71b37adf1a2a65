//! Checks in shaders beside queues that cannot run everything: those for transfers only, and protected ones.

use ash::vk;

use crate::child::child;
use crate::gpu::{Calls, Compute, GPU, LOG, REPORT, problems};
use crate::world::{Setup, World, entry};

/// Families of the null driver: one that does all and may be protected, and one for transfers only.
const ALL: u32 = 0;
const TRANSFER: u32 = 5;

/// A world with a queue of a family.
fn world_of(entry: &ash::Entry, family: u32, flags: vk::DeviceQueueCreateFlags) -> World {
    let instance = Setup { settings: GPU, ..Setup::OFF }.instance(entry);
    let priorities = [1.0];
    let all = [(ALL, vk::DeviceQueueCreateFlags::empty()), (family, flags)];
    let queue = |(family, flags)| {
        let info = vk::DeviceQueueCreateInfo::default().queue_priorities(&priorities);
        info.queue_family_index(family).flags(flags)
    };
    let queues = all.map(queue);
    let mut features = vk::PhysicalDeviceVulkan11Features::default().protected_memory(true);
    let info = vk::DeviceCreateInfo::default().queue_create_infos(&queues).push_next(&mut features);
    // SAFETY: the structures live until the calls return; the device is asked for a queue of a family, with flags and
    // an index that it was created with (VUID-VkDeviceQueueInfo2-queueFamilyIndex-01842; lifetime).
    unsafe {
        let physical = instance.enumerate_physical_devices().expect("the null driver has a device");
        let families = instance.get_physical_device_queue_family_properties(physical[0]);
        assert_eq!(families[TRANSFER as usize].queue_flags, vk::QueueFlags::TRANSFER, "of the null driver");
        assert!(families[ALL as usize].queue_flags.contains(vk::QueueFlags::PROTECTED), "of the null driver");
        let device = instance.create_device(physical[0], &info, None).expect("the null driver makes devices");
        let info = vk::DeviceQueueInfo2::default().queue_family_index(family).flags(flags);
        let queue = device.get_device_queue2(&info);
        World { instance, device, queue }
    }
}

/// Records into a command buffer of a pool with these flags and submits it, twice.
fn run_twice(world: &World, info: &vk::CommandPoolCreateInfo<'_>, record: impl Fn(vk::CommandBuffer)) {
    let device = &world.device;
    // SAFETY: each object is created, used and destroyed in this order in this block or by the caller, what structures
    // point to lives in this frame, and only this thread uses the queue and the pool; work is waited for before its
    // objects end (lifetime, owner).
    unsafe {
        let pool = device.create_command_pool(info, None).expect("the null driver makes pools");
        let commands = world.command_buffers(pool, 1);
        for _ in 0..2 {
            device.begin_command_buffer(commands[0], &vk::CommandBufferBeginInfo::default()).expect("it begins");
            record(commands[0]);
            device.end_command_buffer(commands[0]).expect("it ends");
            let is_protected = info.flags.contains(vk::CommandPoolCreateFlags::PROTECTED);
            let mut protected = vk::ProtectedSubmitInfo::default().protected_submit(is_protected);
            let submit = [vk::SubmitInfo::default().command_buffers(&commands).push_next(&mut protected)];
            device.queue_submit(world.queue, &submit, vk::Fence::null()).expect("the null driver submits");
            device.queue_wait_idle(world.queue).expect("the null driver waits");
        }
        device.destroy_command_pool(pool, None);
    }
}

/// The commands of all command buffers.
fn all_recorded(outcome: &crate::child::ChildOutcome) -> Vec<String> {
    outcome.file("calls.txt").lines().filter(|it| it.starts_with("vkCmd")).map(str::to_owned).collect()
}

#[test]
fn on_a_queue_for_transfers_there_is_nothing_of_ours() {
    let name = "queues::on_a_queue_for_transfers_there_is_nothing_of_ours";
    let Some(outcome) = child(name, &[LOG, REPORT], || {
        let entry = entry();
        let world = world_of(&entry, TRANSFER, vk::DeviceQueueCreateFlags::empty());
        // Something is checked on this device.
        let compute = Compute::new(&world, 1);
        let buffer = world.create_buffer();
        let info = vk::CommandPoolCreateInfo::default().queue_family_index(TRANSFER);
        let info = info.flags(vk::CommandPoolCreateFlags::RESET_COMMAND_BUFFER);
        // SAFETY: recorded here, with a live buffer of 256 bytes (lifetime, owner).
        run_twice(&world, &info, |it| unsafe { world.device.cmd_fill_buffer(it, buffer, 0, 256, 7) });
        world.destroy_buffer(buffer);
        compute.destroy(&world);
        world.destroy();
    }) else {
        return;
    };
    assert_eq!(all_recorded(&outcome), ["vkCmdFillBuffer"; 2]);
    let submits = outcome.file("calls.txt").lines().filter(|it| it.starts_with("vkQueueSubmit")).count();
    assert_eq!((submits, problems(&outcome)), (2, Vec::new()));
}

#[test]
fn what_protected_command_buffers_run_writes_nothing_for_us() {
    let name = "queues::what_protected_command_buffers_run_writes_nothing_for_us";
    let Some(outcome) = child(name, &[LOG, REPORT], || {
        let entry = entry();
        let world = world_of(&entry, ALL, vk::DeviceQueueCreateFlags::PROTECTED);
        let compute = Compute::new(&world, 1);
        let flags = vk::CommandPoolCreateFlags::PROTECTED | vk::CommandPoolCreateFlags::RESET_COMMAND_BUFFER;
        let info = vk::CommandPoolCreateInfo::default().queue_family_index(ALL).flags(flags);
        // SAFETY: recorded here, with a live pipeline (lifetime, owner); no sets are bound (null driver).
        run_twice(&world, &info, |command_buffer| unsafe {
            world.device.cmd_bind_pipeline(command_buffer, vk::PipelineBindPoint::COMPUTE, compute.pipeline);
            world.device.cmd_dispatch(command_buffer, 1, 1, 1);
        });
        compute.destroy(&world);
        world.destroy();
    }) else {
        return;
    };
    // Tables by which all is right, and nothing that the host would have to see.
    let want = ["vkCmdBindPipeline", "vkCmdPushConstants", "vkCmdDispatch"];
    assert_eq!(Calls::of(&outcome).recorded(), want);
    assert_eq!(all_recorded(&outcome), [want, want].concat());
    let problems = problems(&outcome);
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(problems[0].contains("shaders in protected command buffers are not checked"), "{problems:?}");
}
