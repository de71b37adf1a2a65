//! The order edges in the records of a program with two threads; each call is made on one of the two, in turn.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, Sender, channel};

use ash::vk;

use crate::child::child;
use crate::world::{Setup, World, entry};

const PRINT_AND_REPORT: [(&str, &str); 2] =
    [("LAVASCOPE_PRINT", "{folder}/print.txt"), ("LAVASCOPE_REPORT", "{folder}/report")];

/// The threads of a test, in the order of their first calls.
const MAIN: u32 = 1;
const OTHER: u32 = 2;

/// A call as it was printed.
#[derive(Debug)]
struct Call {
    name: String,
    thread: u32,
    number: u64,
    /// Thread and number of calls that must come first.
    after: Vec<(u32, u64)>,
}

fn calls(printed: &str) -> Vec<Call> {
    let (mut thread, mut after, mut found) = (MAIN, Vec::new(), Vec::new());
    let mut counts: BTreeMap<u32, u64> = BTreeMap::new();
    for line in printed.lines() {
        if let Some(number) = line.strip_prefix("// thread ") {
            thread = number.parse().expect("a thread is a number");
        } else if let Some(edge) = line.strip_prefix("// after call ") {
            let (call, of) = edge.split_once(" of thread ").expect("a call of a thread");
            after.push((of.parse().expect("a number"), call.parse().expect("a number")));
        } else if line.starts_with("vk") && line.ends_with(" ->") {
            after.clear();
        } else if line.starts_with("vk") {
            let number = counts.entry(thread).or_insert(0);
            *number += 1;
            found.push(Call { name: line.to_owned(), thread, number: *number, after: std::mem::take(&mut after) });
        }
    }
    found
}

/// The calls of one command on one thread, in their order.
fn calls_named<'a>(calls: &'a [Call], thread: u32, name: &str) -> Vec<&'a Call> {
    calls.iter().filter(|it| it.thread == thread && it.name == name).collect()
}

fn assert_after(later: &Call, earlier: &Call) {
    assert_eq!(later.after, [(earlier.thread, earlier.number)], "{later:?} comes after {earlier:?}");
}

type Job<'a> = Box<dyn FnOnce() + Send + 'a>;

/// A thread that makes calls while the first one waits.
struct OtherThread<'a> {
    jobs: Sender<Job<'a>>,
    done: Receiver<()>,
}

impl<'a> OtherThread<'a> {
    fn new<'scope>(scope: &'scope std::thread::Scope<'scope, 'a>) -> OtherThread<'a> {
        let (jobs, incoming) = channel::<Job<'a>>();
        let (done_sender, done) = channel();
        scope.spawn(move || {
            for job in incoming {
                job();
                done_sender.send(()).expect("somebody waits");
            }
        });
        OtherThread { jobs, done }
    }

    fn call(&self, job: impl FnOnce() + Send + 'a) {
        self.jobs.send(Box::new(job)).expect("the thread runs");
        self.done.recv().expect("the thread runs");
    }
}

#[test]
fn commands_on_a_command_buffer_touch_its_pool() {
    let name = "order::commands_on_a_command_buffer_touch_its_pool";
    let Some(outcome) = child(name, &PRINT_AND_REPORT, || {
        let entry = entry();
        let world = Setup::STATS.world(&entry);
        let pool = world.command_pool();
        let buffer = world.command_buffers(pool, 1)[0];
        let device = &world.device;
        let trim = || {
            // SAFETY: a live pool; the other thread is waited for by `call`, so that only this one uses it (lifetime,
            // owner).
            unsafe { device.trim_command_pool(pool, vk::CommandPoolTrimFlags::empty()) };
        };
        std::thread::scope(|scope| {
            let other = OtherThread::new(scope);
            let info = vk::CommandBufferBeginInfo::default();
            // SAFETY: a live command buffer in the initial state; `call` waits for the other thread, so that one at a
            // time uses it and its pool (lifetime, owner).
            other.call(move || unsafe { device.begin_command_buffer(buffer, &info) }.expect("it begins"));
            trim();
            // SAFETY: begun above; `call` waits for the other thread, so that one at a time uses it (lifetime, owner).
            other.call(move || unsafe { device.end_command_buffer(buffer) }.expect("it ends"));
            trim();
            let flags = vk::CommandBufferResetFlags::empty();
            // SAFETY: never submitted, of a pool that lets it be reset (VUID-vkResetCommandBuffer-commandBuffer-00046);
            // `call` waits for the other thread, so that one at a time uses it (lifetime, owner).
            other.call(move || unsafe { device.reset_command_buffer(buffer, flags) }.expect("it is reset"));
            trim();
        });
        world.destroy();
    }) else {
        return;
    };
    let calls = calls(&outcome.file("print.txt"));
    let trims = calls_named(&calls, MAIN, "vkTrimCommandPool");
    let one = |thread, name: &str| calls_named(&calls, thread, name)[0];
    let (begin, end) = (one(OTHER, "vkBeginCommandBuffer"), one(OTHER, "vkEndCommandBuffer"));
    let reset = one(OTHER, "vkResetCommandBuffer");
    assert_eq!(trims.len(), 3);
    assert_after(begin, one(MAIN, "vkAllocateCommandBuffers"));
    assert_after(trims[0], begin);
    assert_after(end, trims[0]);
    assert_after(trims[1], end);
    assert_after(reset, trims[1]);
    assert_after(trims[2], reset);
}

fn memory(world: &World) -> vk::DeviceMemory {
    // SAFETY: the structure lives until the call returns, and its parent is alive (lifetime).
    unsafe { world.device.allocate_memory(&vk::MemoryAllocateInfo::default().allocation_size(4096), None) }
        .expect("the null driver has memory")
}

#[test]
fn only_externally_synchronized_parameters_are_touched() {
    let name = "order::only_externally_synchronized_parameters_are_touched";
    let Some(outcome) = child(name, &PRINT_AND_REPORT, || {
        let entry = entry();
        let world = Setup::STATS.world(&entry);
        let (buffer, memory) = (world.create_buffer(), memory(&world));
        let device = &world.device;
        let look = move || {
            // SAFETY: a live buffer, which needs no external synchronization here (lifetime).
            let _ = unsafe { device.get_buffer_memory_requirements(buffer) };
        };
        std::thread::scope(|scope| {
            let other = OtherThread::new(scope);
            other.call(look);
            look();
            // SAFETY: both are alive, the buffer is not bound yet, and the memory has 4096 bytes; `call` waits for the
            // other thread (lifetime, owner).
            other.call(move || unsafe { device.bind_buffer_memory(buffer, memory, 0) }.expect("it is bound"));
            // SAFETY: the memory is alive; that it is not lazily allocated is nothing to the driver (lifetime, null
            // driver).
            unsafe { device.get_device_memory_commitment(memory) };
            look();
        });
        world.destroy();
    }) else {
        return;
    };
    let calls = calls(&outcome.file("print.txt"));
    let looks = calls_named(&calls, MAIN, "vkGetBufferMemoryRequirements");
    let bind = calls_named(&calls, OTHER, "vkBindBufferMemory")[0];
    assert_eq!(looks[0].after, [], "the other thread only looked at the buffer");
    assert_eq!(
        calls_named(&calls, MAIN, "vkGetDeviceMemoryCommitment")[0].after,
        [],
        "the bind did not touch the memory"
    );
    assert_after(looks[1], bind);
}

#[test]
fn after_a_wait_every_other_thread_comes_later() {
    let name = "order::after_a_wait_every_other_thread_comes_later";
    let Some(outcome) = child(name, &PRINT_AND_REPORT, || {
        let entry = entry();
        let world = Setup::STATS.world(&entry);
        let info = vk::FenceCreateInfo::default().flags(vk::FenceCreateFlags::SIGNALED);
        // SAFETY: the structure lives until the call returns, and its parent is alive (lifetime).
        let fence = unsafe { world.device.create_fence(&info, None) }.expect("the null driver makes fences");
        let world = &world;
        let make = move || {
            world.create_buffer();
        };
        std::thread::scope(|scope| {
            let other = OtherThread::new(scope);
            other.call(make);
            make();
            other.call(make);
            // SAFETY: a live fence (lifetime).
            unsafe { world.device.wait_for_fences(&[fence], true, 0) }.expect("it is signaled");
            other.call(make);
            other.call(make);
        });
    }) else {
        return;
    };
    let calls = calls(&outcome.file("print.txt"));
    let made = calls_named(&calls, OTHER, "vkCreateBuffer");
    let wait = calls_named(&calls, MAIN, "vkWaitForFences")[0];
    assert_eq!(made.len(), 4);
    assert_eq!(made[1].after, [], "nothing orders buffers that are made on two threads");
    assert_after(made[2], wait);
    assert_eq!(made[3].after, [], "it is ordered already");
}

/// The first thread submits a command buffer and waits for it; then a thread that did not exist resets it. Once in a
/// stream of its own, once in that of a thread that has ended.
#[test]
fn a_thread_that_begins_comes_after_what_was_complete() {
    let name = "order::a_thread_that_begins_comes_after_what_was_complete";
    let Some(outcome) = child(name, &PRINT_AND_REPORT, || {
        let entry = entry();
        let world = Setup::STATS.world(&entry);
        let pool = world.command_pool();
        let buffer = world.command_buffers(pool, 1)[0];
        let (device, queue) = (&world.device, world.queue);
        for _ in 0..2 {
            let info = vk::CommandBufferBeginInfo::default();
            let buffers = [buffer];
            let submit = vk::SubmitInfo::default().command_buffers(&buffers);
            // SAFETY: a live command buffer in the initial state, and a live queue; the threads below have ended or not
            // begun (lifetime, owner).
            unsafe {
                device.begin_command_buffer(buffer, &info).expect("it begins");
                device.end_command_buffer(buffer).expect("it ends");
                device.queue_submit(queue, &[submit], vk::Fence::null()).expect("it is submitted");
                device.queue_wait_idle(queue).expect("it is waited for");
            }
            let flags = vk::CommandBufferResetFlags::empty();
            std::thread::scope(|scope| {
                // SAFETY: not pending, of a pool that lets it be reset, and only this thread uses it until it ends
                // (lifetime, owner).
                let reset = move || unsafe { device.reset_command_buffer(buffer, flags) }.expect("it is reset");
                scope.spawn(reset).join().expect("nobody panics");
            });
        }
        world.destroy();
    }) else {
        return;
    };
    let calls = calls(&outcome.file("print.txt"));
    let waits = calls_named(&calls, MAIN, "vkQueueWaitIdle");
    let resets = calls_named(&calls, OTHER, "vkResetCommandBuffer");
    assert_eq!((waits.len(), resets.len()), (2, 2), "both threads have the same stream");
    assert_after(resets[0], waits[0]);
    assert_after(resets[1], waits[1]);
}

/// A cache that the implementation synchronizes orders no calls; one that the application synchronizes orders both.
#[test]
fn only_caches_that_the_application_synchronizes_order_threads() {
    let name = "order::only_caches_that_the_application_synchronizes_order_threads";
    let Some(outcome) = child(name, &PRINT_AND_REPORT, || {
        let entry = entry();
        let world = Setup::STATS.world(&entry);
        let device = &world.device;
        let cache = |flags| {
            let info = vk::PipelineCacheCreateInfo::default().flags(flags);
            // SAFETY: the structure lives until the call returns, and its parent is alive (lifetime).
            unsafe { device.create_pipeline_cache(&info, None) }.expect("the null driver makes caches")
        };
        let own = vk::PipelineCacheCreateFlags::EXTERNALLY_SYNCHRONIZED;
        let [from, internal, external] =
            [vk::PipelineCacheCreateFlags::empty(), vk::PipelineCacheCreateFlags::empty(), own].map(cache);
        let merge = move |to| {
            // SAFETY: live caches, none of which is merged into itself; `call` waits for the other thread, so that one
            // at a time uses them (lifetime, owner).
            unsafe { device.merge_pipeline_caches(to, &[from]) }.expect("they are merged");
        };
        std::thread::scope(|scope| {
            let other = OtherThread::new(scope);
            other.call(move || merge(internal));
            merge(internal);
            other.call(move || merge(external));
            merge(external);
        });
        world.destroy();
    }) else {
        return;
    };
    let calls = calls(&outcome.file("print.txt"));
    let (own, others) =
        (calls_named(&calls, MAIN, "vkMergePipelineCaches"), calls_named(&calls, OTHER, "vkMergePipelineCaches"));
    assert_eq!(own[0].after, [], "the cache is the implementation's business");
    assert_after(own[1], others[1]);
}
