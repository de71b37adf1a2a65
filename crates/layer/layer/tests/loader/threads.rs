//! Several instances and devices at once, and many threads: every call is counted, and none twice.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use ash::vk;

use crate::child::child;
use crate::world::{Setup, World, device, entry};

const REPORT: [(&str, &str); 1] = [("LAVASCOPE_REPORT", "{folder}/report")];

#[test]
fn instances_with_and_without_us_live_side_by_side() {
    const THREADS: u64 = 6;
    const ROUNDS: u64 = 20;
    const DRAWS: u64 = 5;
    let Some(outcome) = child("threads::instances_with_and_without_us_live_side_by_side", &REPORT, || {
        let entry = entry();
        let [bare, off, first, second] =
            [Setup::BARE, Setup::OFF, Setup::STATS, Setup::STATS].map(|it| it.world(&entry));
        let more = World {
            instance: second.instance.clone(),
            device: device(&second.instance, &Setup::BARE),
            queue: vk::Queue::null(),
        };
        // SAFETY: `device` asked for one queue of family 0, without flags
        // (VUID-vkGetDeviceQueue-queueFamilyIndex-00384, VUID-vkGetDeviceQueue-queueIndex-00385).
        let more = World { queue: unsafe { more.device.get_device_queue(0, 0) }, ..more };
        let worlds = [&bare, &off, &first, &second, &more].map(|it| (it, Mutex::new(())));
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| worlds.iter().for_each(|it| run_rounds(it, ROUNDS, DRAWS)));
            }
        });
        // In another order than they were made.
        second.create_and_destroy_buffers(1);
        // SAFETY: nothing is pending that uses it, and nobody has the handle afterwards (lifetime).
        unsafe { more.device.destroy_device(None) };
        first.destroy();
        second.create_and_destroy_buffers(1);
        bare.destroy();
        second.destroy();
        off.create_and_destroy_buffers(3);
        off.destroy();
    }) else {
        return;
    };
    let stats = outcome.stats();
    // Two instances count, one of them with two devices.
    let rounds = 3 * THREADS * ROUNDS;
    for (command, count) in [
        ("vkCreateInstance", 2),
        ("vkDestroyInstance", 2),
        ("vkCreateDevice", 3),
        ("vkDestroyDevice", 3),
        ("vkCreateBuffer", rounds + 2),
        ("vkDestroyBuffer", rounds + 2),
        ("vkCreateCommandPool", 3 * THREADS),
        ("vkAllocateCommandBuffers", 3 * THREADS),
        ("vkBeginCommandBuffer", rounds),
        ("vkEndCommandBuffer", rounds),
        ("vkCmdDraw", rounds * DRAWS),
        ("vkQueueSubmit", rounds),
        ("vkQueueWaitIdle", rounds),
        ("vkDestroyCommandPool", 3 * THREADS),
    ] {
        assert_eq!(stats.of(command), count, "{command}");
    }
    assert!((1..=THREADS + 1).contains(&stats.threads), "{}", stats.threads);
    assert_eq!(outcome.of_kind("end").len(), 1, "the last instance is gone once");
}

#[test]
fn each_instance_has_listeners_of_its_own() {
    let Some(outcome) = child("threads::each_instance_has_listeners_of_its_own", &REPORT, || {
        let entry = entry();
        let printing = Setup { settings: &[(c"print", c"print.txt")], ..Setup::OFF }.world(&entry);
        std::thread::scope(|scope| {
            let (sender, wait) = std::sync::mpsc::channel();
            let (send, end) = std::sync::mpsc::channel::<()>();
            let printing = &printing;
            // These calls are in no stream, so no other call may wait for them.
            scope.spawn(move || {
                printing.create_and_destroy_buffers(7);
                sender.send(()).expect("the test waits");
                let _ = end.recv();
            });
            wait.recv().expect("the thread tells");
            let counting = Setup::STATS.world(&entry);
            counting.create_and_destroy_buffers(5);
            printing.create_and_destroy_buffers(2);
            counting.create_and_destroy_buffers(5);
            counting.destroy();
            drop(send);
        });
        printing.destroy();
    }) else {
        return;
    };
    let stats = outcome.stats();
    assert_eq!((stats.of("vkCreateBuffer"), stats.of("vkDestroyBuffer"), stats.of("vkDestroyDevice")), (10, 10, 1));
    let printed = outcome.file("print.txt");
    let count = |name: &str| printed.lines().filter(|it| *it == name).count();
    assert_eq!((count("vkCreateBuffer"), count("vkDestroyBuffer"), count("vkDestroyInstance")), (9, 9, 1));
}

fn run_rounds((world, queue): &(&World, Mutex<()>), rounds: u64, draws: u64) {
    let pool = world.command_pool();
    let command_buffer = world.command_buffers(pool, 1)[0];
    for _ in 0..rounds {
        let buffer = world.create_buffer();
        world.record(command_buffer, draws);
        let queue = queue.lock().expect("nobody panics");
        world.submit(command_buffer);
        drop(queue);
        world.destroy_buffer(buffer);
    }
    // SAFETY: `submit` waited for its command buffers, and nobody has the handles afterwards (lifetime, owner).
    unsafe { world.device.destroy_command_pool(pool, None) };
}

#[test]
fn a_thread_per_job_needs_few_streams() {
    const JOBS: u64 = 200;
    let Some(outcome) = child("threads::a_thread_per_job_needs_few_streams", &REPORT, || {
        let entry = entry();
        let world = Setup::STATS.world(&entry);
        for _ in 0..JOBS / 4 {
            std::thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| world.create_and_destroy_buffers(3));
                }
            });
        }
        world.destroy();
    }) else {
        return;
    };
    let stats = outcome.stats();
    assert_eq!((stats.of("vkCreateBuffer"), stats.of("vkDestroyBuffer")), (JOBS * 3, JOBS * 3));
    // A thread may end a moment after its scope does, so a few more than live at once.
    assert!(stats.threads <= 12, "{} streams for {JOBS} threads", stats.threads);
}

#[test]
fn instances_that_come_and_go_on_many_threads_are_counted_whole() {
    const THREADS: u64 = 4;
    const ROUNDS: u64 = 25;
    let name = "threads::instances_that_come_and_go_on_many_threads_are_counted_whole";
    let Some(outcome) = child(name, &REPORT, || {
        let entry = entry();
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    for _ in 0..ROUNDS {
                        let world = Setup::STATS.world(&entry);
                        world.create_and_destroy_buffers(10);
                        world.destroy();
                    }
                });
            }
        });
        // So that the library, which keeps the count, was there all the time or the count is of one life only.
        assert!(std::fs::read_dir("report").is_ok_and(|mut it| it.next().is_some()));
    }) else {
        return;
    };
    let stats = outcome.stats();
    assert_eq!(stats.of("vkCreateInstance"), THREADS * ROUNDS);
    assert_eq!(stats.of("vkCreateBuffer"), THREADS * ROUNDS * 10);
    assert_eq!(stats.of("vkDestroyBuffer"), THREADS * ROUNDS * 10);
}

/// Ends after the layer's own state of the thread, which began later.
struct CallOnThreadExit(Mutex<Option<&'static World>>);

static IN_DESTRUCTORS: AtomicU64 = AtomicU64::new(0);

impl Drop for CallOnThreadExit {
    fn drop(&mut self) {
        if let Some(world) = self.0.lock().expect("nobody panics").take() {
            world.create_and_destroy_buffers(2);
            IN_DESTRUCTORS.fetch_add(1, Ordering::Relaxed);
        }
    }
}

thread_local! {
    static LAST: CallOnThreadExit = const { CallOnThreadExit(Mutex::new(None)) };
}

#[test]
fn a_thread_may_call_while_it_ends() {
    const THREADS: u64 = 40;
    let Some(outcome) = child("threads::a_thread_may_call_while_it_ends", &REPORT, || {
        let entry = entry();
        let world: &'static World = Box::leak(Box::new(Setup::STATS.world(&entry)));
        for _ in 0..THREADS {
            let thread = std::thread::spawn(move || {
                LAST.with(|it| *it.0.lock().expect("nobody panics") = Some(world));
                world.create_and_destroy_buffers(1);
            });
            thread.join().expect("nobody panics");
        }
        assert_eq!(IN_DESTRUCTORS.load(Ordering::Relaxed), THREADS);
        // SAFETY: the queue was waited for, and the world is used no more; children that are left are numbers of the
        // null driver (lifetime, null driver).
        unsafe {
            world.device.destroy_device(None);
            world.instance.destroy_instance(None);
        }
    }) else {
        return;
    };
    let stats = outcome.stats();
    assert_eq!(stats.of("vkCreateBuffer"), THREADS * 3);
    assert!(stats.threads <= 4, "{} streams, though only two threads lived at once", stats.threads);
}
