//! The end of a replay whose trace ends earlier than its program: destroys everything that is alive, so that another
//! replay can begin.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use lavascope_abi as vk;
use lavascope_abi::{Command, HandleType, ObjectId, Ptr, Structure};

use crate::call::functions::driver;
use crate::call::objects::ReplayObject;
use crate::error::{ReplayError, ThreadWait, ThreadWaits};
use crate::memory::host_allocator::callbacks;
use crate::port::device::ReplayDevice;
use crate::port::instance::out;
use crate::replay::{Replay, lock};
use crate::schedule::patience::StallClock;

/// The objects of a device, users before what they use. Command buffers and descriptor sets are destroyed with their
/// pools.
const CHILDREN: [(HandleType, Command); 31] = [
    (HandleType::IndirectExecutionSetEXT, Command::DestroyIndirectExecutionSetEXT),
    (HandleType::IndirectCommandsLayoutEXT, Command::DestroyIndirectCommandsLayoutEXT),
    (HandleType::IndirectCommandsLayoutNV, Command::DestroyIndirectCommandsLayoutNV),
    (HandleType::CommandPool, Command::DestroyCommandPool),
    (HandleType::Pipeline, Command::DestroyPipeline),
    (HandleType::ShaderEXT, Command::DestroyShaderEXT),
    (HandleType::ShaderModule, Command::DestroyShaderModule),
    (HandleType::PipelineBinaryKHR, Command::DestroyPipelineBinaryKHR),
    (HandleType::PipelineCache, Command::DestroyPipelineCache),
    (HandleType::Framebuffer, Command::DestroyFramebuffer),
    (HandleType::RenderPass, Command::DestroyRenderPass),
    (HandleType::DescriptorPool, Command::DestroyDescriptorPool),
    (HandleType::DescriptorUpdateTemplate, Command::DestroyDescriptorUpdateTemplate),
    (HandleType::PipelineLayout, Command::DestroyPipelineLayout),
    (HandleType::DescriptorSetLayout, Command::DestroyDescriptorSetLayout),
    (HandleType::VideoSessionParametersKHR, Command::DestroyVideoSessionParametersKHR),
    (HandleType::VideoSessionKHR, Command::DestroyVideoSessionKHR),
    (HandleType::AccelerationStructureKHR, Command::DestroyAccelerationStructureKHR),
    (HandleType::AccelerationStructureNV, Command::DestroyAccelerationStructureNV),
    (HandleType::MicromapEXT, Command::DestroyMicromapEXT),
    (HandleType::BufferView, Command::DestroyBufferView),
    (HandleType::ImageView, Command::DestroyImageView),
    (HandleType::Sampler, Command::DestroySampler),
    (HandleType::SamplerYcbcrConversion, Command::DestroySamplerYcbcrConversion),
    (HandleType::Buffer, Command::DestroyBuffer),
    (HandleType::Image, Command::DestroyImage),
    (HandleType::QueryPool, Command::DestroyQueryPool),
    (HandleType::Event, Command::DestroyEvent),
    (HandleType::Semaphore, Command::DestroySemaphore),
    (HandleType::Fence, Command::DestroyFence),
    (HandleType::DeferredOperationKHR, Command::DestroyDeferredOperationKHR),
];

/// Destroys everything that the trace left alive and that is no longer used. Waits for devices that still work, with a
/// time limit; after that, everything stays as it is.
pub(crate) fn destroy_remaining(replay: &Replay) -> Result<(), ReplayError> {
    for (id, object) in replay.objects.alive(HandleType::Device) {
        if let Some(device) = replay.remove_device(object.owner) {
            destroy_device_objects(replay, &device)?;
            replay.objects.remove(id);
        }
    }
    replay.swapchains.destroy_surfaces();
    for (id, object) in replay.objects.alive(HandleType::Instance) {
        if let Some(functions) = replay.functions(object.owner) {
            driver!(functions, DestroyInstance, FnDestroyInstance(vk::Instance(object.handle), Ptr::NULL));
            replay.objects.remove(id);
        }
    }
    Ok(())
}

fn destroy_device_objects(replay: &Replay, device: &ReplayDevice) -> Result<(), ReplayError> {
    let ReplayDevice { functions, handle, .. } = device;
    let clock = StallClock::start();
    let is_over = || clock.is_over(replay.options.patience);
    if !becomes_idle(replay, device, &queues(replay, device), is_over) {
        let seconds = clock.since().elapsed().as_secs();
        return Err(ReplayError::Stuck { seconds, what: ThreadWaits(vec![ThreadWait::End]) });
    }
    driver!(functions, DeviceWaitIdle, FnDeviceWaitIdle(*handle));
    replay.swapchains.destroy_device(device, &replay.objects);
    let is_real = |pair: &(ObjectId, ReplayObject)| pair.1.owner == device.owner && replay.is_driver_object(pair.0);
    for (ty, command) in CHILDREN {
        for (id, object) in replay.objects.alive(ty).into_iter().filter(is_real) {
            destroy(device, command, object);
            replay.objects.remove(id);
        }
    }
    replay.memories.free_device(device.owner);
    driver!(functions, DestroyDevice, FnDestroyDevice(*handle, Ptr::NULL));
    Ok(())
}

/// The queues of a device that may have submissions.
fn queues(replay: &Replay, device: &ReplayDevice) -> Vec<vk::Queue> {
    let all = replay.objects.alive(HandleType::Queue).into_iter();
    let own = all.filter(|it| it.1.owner == device.owner && replay.is_driver_object(it.0)).map(|it| it.1.handle);
    let mut all: Vec<u64> = own.chain([device.queue.0]).filter(|it| *it != 0).collect();
    all.sort_unstable();
    all.dedup();
    all.into_iter().map(vk::Queue).collect()
}

/// Waits until a device has completed its submissions, with a time limit: a submission may wait for the host, which
/// will not signal it any more.
pub(crate) fn wait_until_idle(replay: &Replay, device: &ReplayDevice) {
    const SHORT: Duration = Duration::from_millis(500);
    let began = Instant::now();
    let is_over = || began.elapsed() >= SHORT;
    if !replay.waits_for_host.load(Ordering::Relaxed) && !becomes_idle(replay, device, &queues(replay, device), is_over)
    {
        replay.waits_for_host.store(true, Ordering::Relaxed);
    }
}

/// Whether queues completed their submissions before `is_over` ended the waiting.
fn becomes_idle(replay: &Replay, device: &ReplayDevice, queues: &[vk::Queue], is_over: impl Fn() -> bool) -> bool {
    const SLICE: u64 = 100_000_000;
    let ReplayDevice { functions, handle, .. } = device;
    queues.iter().all(|queue| {
        let (info, mut fence) = (vk::FenceCreateInfo::zeroed(), vk::Fence(0));
        driver!(functions, CreateFence, FnCreateFence(*handle, Ptr::to(&info), Ptr::NULL, out(&mut fence)));
        let submitted = {
            let queue_lock = replay.queue_lock(queue.0);
            let _guard = lock(&queue_lock);
            driver!(functions, QueueSubmit, FnQueueSubmit(*queue, 0, Ptr::NULL, fence))
        };
        // A device that is lost does nothing any more.
        if submitted == Some(vk::Result::SUCCESS) {
            let wait = || {
                driver!(functions, WaitForFences, FnWaitForFences(*handle, 1, Ptr::to(&fence), vk::Bool32(1), SLICE))
            };
            while wait() == Some(vk::Result::TIMEOUT) {
                if is_over() {
                    return false;
                }
            }
        }
        driver!(functions, DestroyFence, FnDestroyFence(*handle, fence, Ptr::NULL));
        true
    })
}

fn destroy(device: &ReplayDevice, command: Command, object: ReplayObject) {
    type Destroy = unsafe extern "system" fn(vk::Device, u64, Ptr<vk::Opaque>);
    let allocator = if command == Command::DestroyCommandPool { callbacks() } else { Ptr::NULL };
    if let Some(address) = device.functions.get(command) {
        // SAFETY: all commands of `CHILDREN` take a device, a handle and an allocator, which a test checks. The object
        // is in the table of those alive, no thread of the replay is left that uses it, and `destroy_device_objects` waited until
        // the device was idle; users are destroyed before what they use.
        unsafe {
            let function = std::mem::transmute::<*const (), Destroy>(address);
            function(device.handle, object.handle, allocator);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_of_the_table_takes_a_device_an_object_and_an_allocator() {
        for (ty, command) in CHILDREN {
            let fields = command.desc().parameters.fields;
            let types: Vec<_> = fields.iter().map(|it| it.name).collect();
            assert_eq!((types[0], types.len(), types[2]), ("device", 3, "pAllocator"), "{ty:?}");
            assert!(command.desc().name.contains(&ty.name()[2..]), "{ty:?}");
        }
    }
}
