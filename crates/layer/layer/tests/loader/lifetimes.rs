//! The library comes and goes with its instances, stands twice in a chain, and survives a fork.

use std::time::{Duration, Instant};

use crate::child::child;
use crate::world::{LAYER, SECOND_NAME, Setup, World, entry};

const REPORT: [(&str, &str); 1] = [("LAVASCOPE_REPORT", "{folder}/report")];

#[test]
fn the_second_of_us_in_a_chain_passes_everything_on() {
    let Some(outcome) = child("lifetimes::the_second_of_us_in_a_chain_passes_everything_on", &REPORT, || {
        let entry = entry();
        for layers in [[LAYER, SECOND_NAME], [SECOND_NAME, LAYER]] {
            let world = Setup { layers: &layers, ..Setup::STATS }.world(&entry);
            world.create_and_destroy_buffers(10);
            let pool = world.command_pool();
            let command_buffer = world.command_buffers(pool, 1)[0];
            world.record(command_buffer, 7);
            world.submit(command_buffer);
            // SAFETY: `submit` waited for its command buffers, and nobody has the handles afterwards (lifetime, owner).
            unsafe { world.device.destroy_command_pool(pool, None) };
            world.destroy();
        }
    }) else {
        return;
    };
    let stats = outcome.stats();
    for (command, count) in [
        ("vkCreateInstance", 2),
        ("vkCreateDevice", 2),
        ("vkCreateBuffer", 20),
        ("vkCmdDraw", 14),
        ("vkQueueSubmit", 2),
    ] {
        assert_eq!(stats.of(command), count, "{command}");
    }
}

/// The threads of this process.
fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").expect("Linux has it").count()
}

#[test]
fn nothing_is_left_when_instances_come_and_go() {
    let Some(outcome) = child("lifetimes::nothing_is_left_when_instances_come_and_go", &REPORT, || {
        let before = threads();
        for _ in 0..50 {
            let entry = entry();
            let world = Setup::STATS.world(&entry);
            world.create_and_destroy_buffers(4);
            world.destroy();
            assert_eq!(threads(), before, "no thread of ours stays");
        }
    }) else {
        return;
    };
    let stats = outcome.stats();
    assert_eq!((stats.of("vkCreateInstance"), stats.of("vkCreateBuffer")), (50, 200));
    assert_eq!(outcome.of_kind("end").len(), 50);
    assert_eq!(outcome.of_kind("process").len(), 1);
}

#[test]
fn the_count_outlives_instances_and_their_threads() {
    let Some(outcome) = child("lifetimes::the_count_outlives_instances_and_their_threads", &REPORT, || {
        for _ in 0..3 {
            let thread = std::thread::spawn(|| {
                let entry = entry();
                let world = Setup::STATS.world(&entry);
                world.create_and_destroy_buffers(4);
                world.destroy();
            });
            thread.join().expect("nobody panics");
        }
    }) else {
        return;
    };
    assert_eq!(outcome.stats().of("vkCreateBuffer"), 12);
}

/// The files that this process has open.
fn open_files() -> usize {
    std::fs::read_dir("/proc/self/fd").expect("Linux has it").count()
}

#[test]
fn without_listeners_the_library_comes_and_goes() {
    child("lifetimes::without_listeners_the_library_comes_and_goes", &REPORT, || {
        let is_loaded =
            || std::fs::read_to_string("/proc/self/maps").is_ok_and(|it| it.contains("libVkLayer_lavascope"));
        let before = open_files();
        for _ in 0..50 {
            let entry = entry();
            let world = Setup::OFF.world(&entry);
            assert!(is_loaded());
            world.create_and_destroy_buffers(4);
            world.destroy();
            drop(entry);
            assert!(!is_loaded());
        }
        assert_eq!(open_files(), before);
    });
}

#[test]
fn calls_after_the_last_instance_do_no_harm() {
    let Some(outcome) = child("lifetimes::calls_after_the_last_instance_do_no_harm", &REPORT, || {
        let entry = entry();
        // A thread that made calls outlives the instance, and makes some for the next one.
        let (send, receive) = std::sync::mpsc::channel::<World>();
        let (done, wait) = std::sync::mpsc::channel::<World>();
        let thread = std::thread::spawn(move || {
            for world in receive {
                world.create_and_destroy_buffers(5);
                done.send(world).expect("the test waits");
            }
        });
        for _ in 0..3 {
            send.send(Setup::STATS.world(&entry)).expect("the thread waits");
            wait.recv().expect("the thread answers").destroy();
            // SAFETY: global commands of the loader, which take no handle; the name of the layer ends with a zero.
            unsafe {
                entry.try_enumerate_instance_version().expect("the loader answers");
                entry.enumerate_instance_layer_properties().expect("the loader answers");
                entry.enumerate_instance_extension_properties(Some(LAYER)).expect("the loader answers");
            }
        }
        drop(send);
        thread.join().expect("nobody panics");
    }) else {
        return;
    };
    assert_eq!(outcome.stats().of("vkCreateBuffer"), 15);
}

#[test]
fn an_instance_that_fails_leaves_no_thread() {
    // The driver refuses to work, below us.
    let environment = [REPORT[0], ("LAVASCOPE_NULL_PROFILE", "{folder}/missing.json")];
    let Some(outcome) = child("lifetimes::an_instance_that_fails_leaves_no_thread", &environment, || {
        let entry = entry();
        let before = threads();
        assert!(Setup::STATS.try_instance(&entry).is_err());
        assert_eq!(threads(), before);
    }) else {
        return;
    };
    assert_eq!(outcome.stats().of("vkCreateInstance"), 1, "we were asked");
}

#[test]
fn an_instance_that_nobody_destroys_is_counted_all_the_same() {
    let Some(outcome) = child("lifetimes::an_instance_that_nobody_destroys_is_counted_all_the_same", &REPORT, || {
        let world = Setup::STATS.world(Box::leak(Box::new(entry())));
        world.create_and_destroy_buffers(30);
    }) else {
        return;
    };
    assert_eq!(outcome.stats().of("vkCreateBuffer"), 30);
    assert!(outcome.of_kind("end").is_empty());
}

unsafe extern "C" {
    fn fork() -> i32;
    fn exit(status: i32) -> !;
    fn waitpid(process: i32, status: *mut i32, options: i32) -> i32;
}

/// Runs `body` in a fork of this process, and gives the status with which it ended.
fn in_fork(body: impl FnOnce()) -> i32 {
    // SAFETY: the child has this thread alone. No other thread holds a lock that it needs: the thread of the harness
    // waits for this test, those of the layer sleep, and the C library makes its allocator usable after a fork.
    match unsafe { fork() } {
        0 => {
            let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body));
            // SAFETY: ends the fork as a program ends, with the handlers of `atexit`; its only thread calls this.
            unsafe { exit(i32::from(result.is_err())) }
        }
        process => {
            let mut status = -1;
            // SAFETY: `status` is a number of this stack frame, and `process` a child that nobody else waits for.
            assert_eq!(unsafe { waitpid(process, &raw mut status, 0) }, process);
            status
        }
    }
}

#[test]
fn a_fork_neither_waits_nor_speaks_for_its_parent() {
    let Some(outcome) = child("lifetimes::a_fork_neither_waits_nor_speaks_for_its_parent", &REPORT, || {
        let entry = entry();
        let world = Setup::STATS.world(&entry);
        world.create_and_destroy_buffers(10);
        let start = Instant::now();
        assert_eq!(in_fork(|| ()), 0);
        assert!(start.elapsed() < Duration::from_secs(5), "the fork has no reader to wait ten seconds for");
        world.create_and_destroy_buffers(10);
        world.destroy();
    }) else {
        return;
    };
    assert_eq!(outcome.stats().of("vkCreateBuffer"), 20);
    assert_eq!(outcome.of_kind("process").len(), 1);
}

#[test]
fn a_fork_that_uses_objects_of_its_parent_is_reported_as_not_checked() {
    let name = "lifetimes::a_fork_that_uses_objects_of_its_parent_is_reported_as_not_checked";
    let Some(outcome) = child(name, &REPORT, submit_in_fork) else { return };
    assert_eq!(outcome.of_kind("process").len(), 2, "each has a report of its own");
    let coverage = outcome.of_kind("coverage");
    let checks = |it: &serde_json::Value| it["checks"].as_array().cloned().unwrap_or_default();
    let forked: Vec<_> = coverage.iter().flat_map(checks).filter(|it| it["name"] == "forked process").collect();
    assert_eq!(forked.len(), 1, "it is said once: {coverage:#?}");
    assert_eq!((&forked[0]["is_wanted"], &forked[0]["is_armed"]), (&true.into(), &false.into()));
    assert!(forked[0]["why"].as_str().is_some_and(|it| it.contains("exec")), "{forked:?}");
}

/// Without a report, the fork itself says so in the log, and its parent has its own summary.
#[test]
fn a_fork_without_a_report_logs_that_it_is_not_checked() {
    let name = "lifetimes::a_fork_without_a_report_logs_that_it_is_not_checked";
    let Some(outcome) = child(name, &[], submit_in_fork) else { return };
    let lines = outcome.stderr.lines().filter(|it| it.contains("not checked: forked process"));
    assert_eq!(lines.count(), 1, "{}", outcome.stderr);
}

fn submit_in_fork() {
    let entry = entry();
    let world = Setup { settings: &[(c"sync", c"on"), (c"sync_mode", c"async")], ..Setup::OFF }.world(&entry);
    let pool = world.command_pool();
    let command_buffer = world.command_buffers(pool, 1)[0];
    world.record(command_buffer, 7);
    world.submit(command_buffer);
    let status = in_fork(|| (0..2).for_each(|_| world.submit(command_buffer)));
    assert_eq!(status, 0);
    // SAFETY: `submit` waited for its command buffers, and nobody has the handles afterwards (lifetime, owner).
    unsafe { world.device.destroy_command_pool(pool, None) };
    world.destroy();
}

#[test]
fn a_fork_may_have_an_instance_of_its_own() {
    let Some(outcome) = child("lifetimes::a_fork_may_have_an_instance_of_its_own", &REPORT, || {
        let entry = entry();
        let world = Setup::STATS.world(&entry);
        world.create_and_destroy_buffers(10);
        let status = in_fork(|| {
            let own = Setup::STATS.world(&entry);
            own.create_and_destroy_buffers(5);
            own.destroy();
        });
        assert_eq!(status, 0);
        world.destroy();
    }) else {
        return;
    };
    let processes = outcome.of_kind("process");
    assert_eq!(processes.len(), 2, "each has a report of its own: {processes:?}");
    let problems = outcome.of_kind("problem");
    assert!(problems.iter().any(|it| it["text"].as_str().is_some_and(|it| it.contains("exec"))), "{problems:?}");
}
