//! Checks a whole program.

use lavascope_program::{Batch, Found, Program, Step};

use crate::device::Device;
use crate::execute;

/// All hazards of a program, in the order in which they happen.
pub fn check(program: &Program) -> Vec<Found> {
    let mut device = Device::new(&program.queues, program.events, program.semaphores, program.fences);
    for resource in &program.resources {
        device.addresses.add(resource);
    }
    let mut run = |device: &mut Device, queue: u8, step: u32, index: u32, batch: &Batch| {
        execute::batch(device, program, queue, step, index, batch);
    };
    for (index, step) in program.steps.iter().enumerate() {
        self::step(&mut device, index as u32, step, &mut run);
    }
    device.found
}

fn step(device: &mut Device, index: u32, step: &Step, run: &mut dyn FnMut(&mut Device, u8, u32, u32, &Batch)) {
    match step {
        Step::Submit { queue, batches, fence } => device.submit(index, *queue, batches, *fence, run),
        Step::WaitFences(fences) => device.wait_fences(fences),
        Step::ResetFences(fences) => device.reset_fences(fences),
        Step::QueueIdle(queue) => device.queue_idle(*queue),
        Step::DeviceIdle => device.device_idle(),
        Step::WaitSemaphores(points) => device.host_waits(points),
        Step::SignalSemaphore(point) => {
            device.host_signals(*point);
            device.run(run);
        }
        Step::Destroy(resource) => {
            let range = device.addresses.whole(*resource);
            device.states.remove(range);
        }
        Step::Acquire { semaphore, fence, .. } => {
            device.acquire(*semaphore, *fence);
            device.run(run);
        }
        Step::SetEvent(event) => {
            device.host_sets_event(index, event.0 as usize);
            device.run(run);
        }
        Step::ResetEvent(event) => {
            if let Some(event) = device.events.get_mut(event.0 as usize) {
                event.set = None;
            }
        }
        Step::HostAccess { resource, region, is_write } => device.host_access(index, *resource, region, *is_write),
        Step::Present { waits, images, .. } => device.present(index, waits, images),
    }
}
