//! Fences, semaphores, events and queries across queues and threads.

use std::time::{Duration, Instant};

use lavascope_abi::*;

use super::test_device::{NO_SEMAPHORE, TestDevice, out, vk};

const PRIMARY: CommandBufferLevel = CommandBufferLevel::PRIMARY;

#[test]
fn a_submission_signals_its_fence() {
    let world = TestDevice::new();
    let fence = world.fence();
    assert_eq!(world.fence_status(fence), Result::NOT_READY);
    world.submit(world.queues[0], NO_SEMAPHORE, &[], NO_SEMAPHORE, fence);
    assert_eq!(world.fence_status(fence), Result::SUCCESS);
    vk!(FnResetFences(world.instance; world.device, 1, Ptr::to(&fence)));
    assert_eq!(world.fence_status(fence), Result::NOT_READY);
}

#[test]
fn waiting_for_a_fence_times_out() {
    let world = TestDevice::new();
    let fence = world.fence();
    let begin = Instant::now();
    let wait = |timeout| vk!(FnWaitForFences(world.instance; world.device, 1, Ptr::to(&fence), Bool32::TRUE, timeout));
    assert_eq!(wait(0), Result::TIMEOUT);
    assert_eq!(wait(20_000_000), Result::TIMEOUT);
    assert!(begin.elapsed() >= Duration::from_millis(20));
}

#[test]
fn waits_before_signals_in_any_order_of_queues() {
    let world = TestDevice::new();
    let timeline = world.semaphore(Some(0));
    let done: Vec<Fence> = (0..4).map(|_| world.fence()).collect();
    // Submitted from the last to the first: each waits for the one before it, on a queue of its own.
    for step in (0..4u64).rev() {
        let queue = world.queues[step as usize];
        world.submit(queue, (timeline, step + 1), &[], (timeline, step + 2), done[step as usize]);
    }
    assert!(done.iter().all(|it| world.fence_status(*it) == Result::NOT_READY));
    assert_eq!(world.counter(timeline), 0);
    let mut info = SemaphoreSignalInfo::zeroed();
    info.semaphore = timeline;
    info.value = 1;
    vk!(FnSignalSemaphore(world.instance; world.device, Ptr::to(&info)));
    assert!(done.iter().all(|it| world.fence_status(*it) == Result::SUCCESS));
    assert_eq!(world.counter(timeline), 5);
}

#[test]
fn a_queue_keeps_its_order() {
    let world = TestDevice::new();
    let (timeline, binary) = (world.semaphore(Some(0)), world.semaphore(None));
    let (first, second, third) = (world.fence(), world.fence(), world.fence());
    world.submit(world.queues[0], (timeline, 7), &[], (binary, 0), first);
    world.submit(world.queues[0], NO_SEMAPHORE, &[], NO_SEMAPHORE, second);
    world.submit(world.queues[1], (binary, 0), &[], NO_SEMAPHORE, third);
    let all = || [first, second, third].map(|it| world.fence_status(it) == Result::SUCCESS);
    assert_eq!(all(), [false; 3]);
    world.submit(world.queues[2], NO_SEMAPHORE, &[], (timeline, 9), Fence(0));
    assert_eq!(all(), [true; 3]);
    assert_eq!(vk!(FnDeviceWaitIdle(world.instance; world.device)), Result::SUCCESS);
}

#[test]
fn another_thread_wakes_those_who_wait() {
    let world = TestDevice::new();
    let timeline = world.semaphore(Some(0));
    let (instance, device) = (world.instance, world.device);
    let wait = move |value: u64, timeout: u64| {
        let mut info = SemaphoreWaitInfo::zeroed();
        info.semaphore_count = 1;
        info.p_semaphores = Ptr::to(&timeline);
        info.p_values = Ptr::to(&value);
        vk!(FnWaitSemaphores(instance; device, Ptr::to(&info), timeout))
    };
    std::thread::scope(|scope| {
        let waiters: Vec<_> = (1..=4u64).map(|value| scope.spawn(move || wait(value * 10, 10_000_000_000))).collect();
        let queues = &world.queues;
        scope.spawn(|| {
            for value in 1..=40 {
                world.submit(queues[value as usize % 7], NO_SEMAPHORE, &[], (timeline, value), Fence(0));
            }
        });
        for waiter in waiters {
            assert_eq!(waiter.join().ok(), Some(Result::SUCCESS));
        }
    });
    assert_eq!(world.counter(timeline), 40);
    assert_eq!(wait(41, 0), Result::TIMEOUT);
}

#[test]
fn events_hold_a_queue_until_they_are_set() {
    let world = TestDevice::new();
    let (info, mut event) = (EventCreateInfo::zeroed(), Event(0));
    vk!(FnCreateEvent(world.instance; world.device, Ptr::to(&info), Ptr::NULL, out(&mut event)));
    let buffer = world.command_buffer(PRIMARY);
    let stages = PipelineStageFlags::ALL_COMMANDS;
    vk!(FnCmdWaitEvents(world.instance; buffer, 1, Ptr::to(&event), stages, stages, 0, Ptr::NULL, 0, Ptr::NULL, 0, Ptr::NULL));
    vk!(FnCmdResetEvent(world.instance; buffer, event, stages));
    let fence = world.fence();
    world.submit(world.queues[0], NO_SEMAPHORE, &[buffer], NO_SEMAPHORE, fence);
    assert_eq!(world.fence_status(fence), Result::NOT_READY);
    vk!(FnSetEvent(world.instance; world.device, event));
    assert_eq!(world.fence_status(fence), Result::SUCCESS);
    assert_eq!(vk!(FnGetEventStatus(world.instance; world.device, event)), Result::EVENT_RESET);
}

#[test]
fn queries_are_available_after_a_submission() {
    let world = TestDevice::new();
    let mut info = QueryPoolCreateInfo::zeroed();
    info.query_type = QueryType::TIMESTAMP;
    info.query_count = 3;
    let mut pool = QueryPool(0);
    vk!(FnCreateQueryPool(world.instance; world.device, Ptr::to(&info), Ptr::NULL, out(&mut pool)));
    let buffer = world.command_buffer(PRIMARY);
    vk!(FnCmdResetQueryPool(world.instance; buffer, pool, 0, 3));
    let stage = PipelineStageFlags::TOP_OF_PIPE;
    vk!(FnCmdWriteTimestamp(world.instance; buffer, stage, pool, 0));
    vk!(FnCmdWriteTimestamp(world.instance; buffer, stage, pool, 1));
    let flags = QueryResultFlags(QueryResultFlags::_64.0 | QueryResultFlags::WITH_AVAILABILITY.0);
    let results = |count: u32| {
        let mut results = [u64::MAX; 6];
        let (size, to) = (48, out(&mut results[0]).cast());
        let result = vk!(FnGetQueryPoolResults(world.instance; world.device, pool, 0, count, size, to, 16, flags));
        (result, results)
    };
    let (result, out) = results(1);
    assert_eq!((result, out[0], out[1]), (Result::NOT_READY, u64::MAX, 0));
    world.run(buffer);
    let (result, out) = results(2);
    assert_eq!((result, out[1], out[3]), (Result::SUCCESS, 1, 1));
    assert_eq!(out[2] - out[0], 1000);
    assert_eq!(results(3).0, Result::NOT_READY);
    vk!(FnResetQueryPool(world.instance; world.device, pool, 0, 3));
    assert_eq!(results(1).0, Result::NOT_READY);
}

/// Four threads hand a token around through one timeline, each on a queue of its own, all submitting ahead.
#[test]
fn threads_submit_ahead_of_each_other() {
    let world = TestDevice::new();
    let timeline = world.semaphore(Some(0));
    let (threads, turns) = (4u64, 500u64);
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let world = &world;
            scope.spawn(move || {
                for turn in 0..turns {
                    let value = turn * threads + thread;
                    let queue = world.queues[thread as usize];
                    world.submit(queue, (timeline, value), &[], (timeline, value + 1), Fence(0));
                }
            });
        }
    });
    assert_eq!(vk!(FnDeviceWaitIdle(world.instance; world.device)), Result::SUCCESS);
    assert_eq!(world.counter(timeline), threads * turns);
}
