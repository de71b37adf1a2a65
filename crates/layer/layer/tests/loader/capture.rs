//! The metadata of a trace: the device, unsupported calls, and races of the application that make the order of its
//! calls undefined.

use std::time::Duration;

use ash::vk;
use lavascope_abi::Command;
use lavascope_record::encoding::{RecordHeader, RecordPhase};
use lavascope_test_support::wait_until;
use lavascope_trace::{StreamReader, Trace};
use serde_json::Value;

use crate::child::{ChildOutcome, child};
use crate::world::{Setup, World, entry};

const CAPTURE: [(&str, &str); 2] =
    [("LAVASCOPE_CAPTURE", "{folder}/trace.lava"), ("LAVASCOPE_REPORT", "{folder}/report")];

/// The facts of one kind.
fn metadata(outcome: &ChildOutcome, kind: &str) -> Vec<Value> {
    let bytes = outcome.bytes("trace.lava");
    let trace = Trace::open(&bytes).expect("a whole trace");
    assert!(trace.is_complete() && trace.damages().is_empty());
    trace.metadata().into_iter().filter_map(|it| it.get(kind).cloned()).collect()
}

/// A submission that waits for a signal of the host.
fn submit_waiting(world: &World, semaphore: vk::Semaphore) {
    let (semaphores, values, stages) = ([semaphore], [1], [vk::PipelineStageFlags::ALL_COMMANDS]);
    let mut timeline = vk::TimelineSemaphoreSubmitInfo::default().wait_semaphore_values(&values);
    let submit =
        vk::SubmitInfo::default().wait_semaphores(&semaphores).wait_dst_stage_mask(&stages).push_next(&mut timeline);
    // SAFETY: the structures live until the call returns, and the semaphore is alive (lifetime). Another thread may be
    // in `vkQueueWaitIdle` of the same queue, which is tested (null driver).
    unsafe { world.device.queue_submit(world.queue, &[submit], vk::Fence::null()) }.expect("the null driver submits");
}

/// Waits until a thread of this process has nothing to do for a while.
fn wait_until_asleep(thread: i32) {
    let mut times = 0;
    wait_until("the thread sleeps", || {
        let stat = std::fs::read_to_string(format!("/proc/self/task/{thread}/stat")).expect("it is there");
        let is_asleep = stat.rsplit(')').next().is_some_and(|it| it.trim_start().starts_with('S'));
        times = if is_asleep { times + 1 } else { 0 };
        times == 20
    });
}

#[test]
fn two_threads_inside_calls_on_one_queue_are_reported_once() {
    let name = "capture::two_threads_inside_calls_on_one_queue_are_reported_once";
    let Some(outcome) = child(name, &CAPTURE, || {
        let entry = entry();
        let world = Setup::OFF.world(&entry);
        let mut ty = vk::SemaphoreTypeCreateInfo::default().semaphore_type(vk::SemaphoreType::TIMELINE);
        // SAFETY: the structure lives until the call returns, and its parent is alive (lifetime).
        let semaphore =
            unsafe { world.device.create_semaphore(&vk::SemaphoreCreateInfo::default().push_next(&mut ty), None) }
                .expect("the null driver makes semaphores");
        submit_waiting(&world, semaphore);
        std::thread::scope(|scope| {
            let (begun, begins) = std::sync::mpsc::channel();
            let world = &world;
            scope.spawn(move || {
                // SAFETY: `gettid` has no preconditions.
                begun.send(unsafe { libc::gettid() }).expect("somebody listens");
                // SAFETY: a live queue (lifetime). The other thread submits to it meanwhile, which breaks its external
                // synchronization and is tested (null driver).
                unsafe { world.device.queue_wait_idle(world.queue) }.expect("it becomes idle");
            });
            wait_until_asleep(begins.recv().expect("it begins"));
            submit_waiting(world, semaphore);
            submit_waiting(world, semaphore);
            let signal = vk::SemaphoreSignalInfo::default().semaphore(semaphore).value(1);
            // SAFETY: a live timeline semaphore, whose value is lower (VUID-VkSemaphoreSignalInfo-value-03258;
            // lifetime).
            unsafe { world.device.signal_semaphore(&signal) }.expect("it is signaled");
        });
        // SAFETY: the other thread has ended, so that only this one uses the queue; when that is idle, nobody waits for
        // the semaphore (VUID-vkDestroySemaphore-semaphore-05149; lifetime, owner).
        unsafe {
            world.device.queue_wait_idle(world.queue).expect("it becomes idle");
            world.device.destroy_semaphore(semaphore, None);
        }
        world.destroy();
    }) else {
        return;
    };
    let reported = metadata(&outcome, "broken_synchronization");
    assert_eq!(reported.len(), 1, "{reported:?}");
    assert_eq!((&reported[0]["object"], &reported[0]["command"]), (&"VkQueue#0".into(), &"vkQueueSubmit".into()));
    assert_eq!((&reported[0]["thread"], &reported[0]["other_thread"]), (&1.into(), &2.into()));
    let problems = outcome.of_kind("problem");
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(problems[0]["text"].as_str().is_some_and(|it| it.starts_with("VkQueue#0 is used by two threads at once")));
}

/// Threads that hand a queue and a pool to each other use them correctly, however often.
#[test]
fn who_hands_objects_over_is_not_accused() {
    let name = "capture::who_hands_objects_over_is_not_accused";
    let Some(outcome) = child(name, &CAPTURE, || {
        let entry = entry();
        let world = Setup::OFF.world(&entry);
        let pool = world.command_pool();
        let buffer = world.command_buffers(pool, 1)[0];
        let turn = std::sync::Mutex::new(());
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..500 {
                        let _turn = turn.lock().expect("nobody panics");
                        world.record(buffer, 10);
                        world.submit(buffer);
                    }
                });
            }
        });
        world.destroy();
    }) else {
        return;
    };
    assert_eq!(metadata(&outcome, "broken_synchronization"), Vec::<Value>::new());
    assert_eq!(outcome.of_kind("problem"), Vec::<Value>::new());
}

#[test]
fn commands_that_nobody_knows_are_in_the_file_and_reported_once() {
    let name = "capture::commands_that_nobody_knows_are_in_the_file_and_reported_once";
    let environment = [CAPTURE[0], CAPTURE[1], ("LAVASCOPE_NULL_FUTURE", "vkCmdDrawFromTheFutureEXT")];
    let Some(outcome) = child(name, &environment, || {
        let entry = entry();
        let world = Setup::OFF.world(&entry);
        let (get, device) = (world.instance.fp_v1_0().get_device_proc_addr, world.device.handle());
        // SAFETY: the device is alive, and the name ends with a zero (lifetime).
        let has = |it: &std::ffi::CStr| unsafe { get(device, it.as_ptr()) }.is_some();
        assert!(has(c"vkCmdDrawFromTheFutureEXT") && has(c"vkCmdDrawFromTheFutureEXT"));
        assert!(!has(c"vkCmdDrawFromThePastEXT"));
        world.destroy();
    }) else {
        return;
    };
    assert_eq!(metadata(&outcome, "unknown_command"), ["vkCmdDrawFromTheFutureEXT"]);
    assert_eq!(outcome.of_kind("unknown").len(), 1);
}

#[test]
fn what_the_device_is_stands_in_the_file() {
    let name = "capture::what_the_device_is_stands_in_the_file";
    let Some(outcome) = child(name, &CAPTURE, || {
        let entry = entry();
        Setup::OFF.world(&entry).destroy();
    }) else {
        return;
    };
    let devices = metadata(&outcome, "device");
    assert_eq!(devices.len(), 1);
    let device = &devices[0];
    assert_eq!(device["object"], "VkDevice#0");
    assert!(device["name"].as_str().is_some_and(|it| !it.is_empty()), "{device:#}");
    assert!(device["queue_families"][0]["queueCount"].as_u64().is_some_and(|it| it > 0));
    assert!(device["memory_types"].as_array().is_some_and(|it| !it.is_empty()));
    assert!(device["memory_heaps"][0]["size"].as_u64().is_some_and(|it| it > 0));
    assert!(device["limits"]["nonCoherentAtomSize"].as_u64().is_some_and(|it| it > 0), "{:#}", device["limits"]);
}

/// The streams lie in memory that a fork shares, so what it recorded would overwrite records of its parent.
#[test]
fn a_fork_does_not_write_into_the_streams_of_its_parent() {
    const BUFFERS: u64 = 40;
    let name = "capture::a_fork_does_not_write_into_the_streams_of_its_parent";
    let Some(outcome) = child(name, &CAPTURE, || {
        let entry = entry();
        let world = Setup::OFF.world(&entry);
        let make = || (0..BUFFERS).for_each(|_| _ = world.create_buffer());
        make();
        // SAFETY: the new process makes calls of the null driver alone, whose locks nobody has, and ends itself.
        let process = unsafe { libc::fork() };
        if process == 0 {
            (0..BUFFERS).for_each(|_| _ = world.command_pool());
            // SAFETY: it ends the process.
            unsafe { libc::_exit(0) };
        }
        // SAFETY: a process of ours, whose status nobody wants.
        assert_eq!(unsafe { libc::waitpid(process, std::ptr::null_mut(), 0) }, process);
        // The reader would see what the fork wrote.
        std::thread::sleep(Duration::from_millis(50));
        make();
        world.destroy();
    }) else {
        return;
    };
    let bytes = outcome.bytes("trace.lava");
    let trace = Trace::open(&bytes).expect("a whole trace");
    assert!(trace.is_complete() && trace.damages().is_empty());
    let mut counts = [0; 2];
    for stream in trace.streams() {
        let mut reader = StreamReader::new(&trace, None, stream);
        while let Some(next) = reader.take_next().expect("every record is whole") {
            let header = RecordHeader::from_words(next.record[0], next.record[1]);
            for (count, command) in counts.iter_mut().zip([Command::CreateBuffer, Command::CreateCommandPool]) {
                let is_it = header.command == command as u16 && header.kind == RecordPhase::Enter as u8;
                *count += u64::from(is_it);
            }
        }
    }
    assert_eq!(counts, [2 * BUFFERS, 0], "those of the parent");
}
