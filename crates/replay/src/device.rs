//! Devices and queues: those of here, as near as they can be to those of the trace.

use std::sync::Arc;

use lavascope_abi as vk;
use lavascope_abi::{Ptr, Structure};

use crate::chain;
use crate::error::ReplayError;
use crate::functions::{Functions, Source, driver};
use crate::instance::{name_of, out, text_of, texts};
use crate::perform::{Done, Laid, Performer};
use crate::replay::lock;

/// A device here.
pub(crate) struct Device {
    pub(crate) handle: vk::Device,
    pub(crate) owner: u32,
    pub(crate) functions: Arc<Functions>,
    pub(crate) memory: vk::PhysicalDeviceMemoryProperties,
    /// What each type of memory of the trace is here.
    memory_types: Vec<u32>,
    /// A queue of ours, among those of the trace, and its family.
    pub(crate) queue: vk::Queue,
    pub(crate) family: u32,
    /// How many queues of each family there are.
    queues: Vec<(u32, u32)>,
}

impl Device {
    pub(crate) fn memory_type(&self, recorded: u32) -> u32 {
        self.memory_types.get(recorded as usize).copied().unwrap_or(recorded)
    }

    /// A type of memory that has all of these properties, among those allowed.
    pub(crate) fn find_memory(&self, allowed: u32, flags: u32) -> Option<u32> {
        let types = self.memory.memory_types.iter().take(self.memory.memory_type_count as usize).enumerate();
        let mut fitting = types.filter(|it| allowed >> it.0 & 1 == 1 && it.1.property_flags.0 & flags == flags);
        fitting.next().map(|it| it.0 as u32)
    }
}

/// What each recorded type of memory is here: the same, or the first that can do as much.
fn memory_types(
    recorded: Option<&vk::PhysicalDeviceMemoryProperties>,
    here: &vk::PhysicalDeviceMemoryProperties,
) -> Vec<u32> {
    let Some(recorded) = recorded else { return Vec::new() };
    let flags_of = |it: &vk::PhysicalDeviceMemoryProperties, at: usize| it.memory_types[at].property_flags.0;
    let host = vk::MemoryPropertyFlags::HOST_VISIBLE.0 | vk::MemoryPropertyFlags::HOST_COHERENT.0;
    let count = here.memory_type_count.min(32) as usize;
    let one = |at: usize| {
        let wanted = flags_of(recorded, at);
        if at < count && flags_of(here, at) == wanted {
            return at as u32;
        }
        let find = |flags: u32| (0..count).find(|it| flags_of(here, *it) & flags == flags);
        find(wanted).or_else(|| find(wanted & host)).unwrap_or(0) as u32
    };
    (0..recorded.memory_type_count.min(32) as usize).map(one).collect()
}

pub(crate) fn create(performer: &mut Performer<'_>, done: &Done<'_>) -> Result<(), ReplayError> {
    if done.has_failed() {
        return Ok(());
    }
    let laid = performer.lay_out(done)?;
    let image = laid.image.cast::<vk::CreateDeviceParams>();
    // SAFETY: the parameters of this command, laid out by us.
    let physical = unsafe { (*image).physical_device };
    let functions = performer.replay.functions(laid.owner);
    let functions = functions.ok_or_else(|| performer.error(done, "its instance does not exist at this point"))?;
    let available = extensions(&functions, physical);
    // SAFETY: the parameters of this command; the structure behind them is required. The names live until the end.
    let (result, queues) = unsafe {
        let info = (*image).p_create_info.as_mut_ptr();
        (*info).enabled_layer_count = 0;
        (*info).pp_enabled_layer_names = Ptr::NULL;
        chain::retain(info, |it| Some(it) != vk::DeviceDeviceMemoryReportCreateInfoEXT::layout().s_type());
        let names = texts((*info).pp_enabled_extension_names, (*info).enabled_extension_count);
        let (kept, missing): (Vec<_>, Vec<_>) = names.into_iter().partition(|it| available.contains(&text_of(*it)));
        for it in missing {
            performer.replay.remark(format!("this device does not have {}", text_of(it)));
        }
        (*info).enabled_extension_count = kept.len() as u32;
        (*info).pp_enabled_extension_names = Ptr::to_slice(&kept);
        let infos = (*info).p_queue_create_infos.as_ptr();
        let queue_of = |it: usize| ((*infos.add(it)).queue_family_index, (*infos.add(it)).queue_count);
        let queues: Vec<(u32, u32)> = (0..(*info).queue_create_info_count as usize).map(queue_of).collect();
        (performer.call(done, laid)?, queues)
    };
    // SAFETY: room for a handle, zero if the call failed.
    let handle = unsafe { (*image).p_device.as_ptr().read() };
    if handle.0 == 0 {
        return performer.after(done, laid, result);
    }
    let device = describe(performer, done, (&functions, physical, handle), queues)?;
    let owner = device.owner;
    performer.replay.add_device(Arc::new(device));
    performer.after(done, Laid { owner, ..laid }, result)
}

fn describe(
    performer: &Performer<'_>,
    done: &Done<'_>,
    (functions, physical, handle): (&Functions, vk::PhysicalDevice, vk::Device),
    queues: Vec<(u32, u32)>,
) -> Result<Device, ReplayError> {
    let mut memory = vk::PhysicalDeviceMemoryProperties::zeroed();
    driver!(
        functions,
        GetPhysicalDeviceMemoryProperties,
        FnGetPhysicalDeviceMemoryProperties(physical, out(&mut memory))
    );
    let get = functions.get(vk::Command::GetDeviceProcAddr);
    let get = get.ok_or_else(|| performer.error(done, "this driver does not have vkGetDeviceProcAddr"))?;
    // SAFETY: the function of this name has this type.
    let get = unsafe { std::mem::transmute::<*const (), vk::FnGetDeviceProcAddr>(get) };
    let functions = Arc::new(Functions::new(Source::Device(get, handle)));
    let owner = performer.replay.add_owner(functions.clone());
    let family = queues.first().map_or(0, |it| it.0);
    let mut queue = vk::Queue(0);
    driver!(functions, GetDeviceQueue, FnGetDeviceQueue(handle, family, 0, out(&mut queue)));
    let recorded = lock(&performer.replay.recorded);
    let memory_types = memory_types(recorded.memory.get(&done.subject()), &memory);
    Ok(Device { handle, owner, functions, memory, memory_types, queue, family, queues })
}

fn extensions(functions: &Functions, physical: vk::PhysicalDevice) -> Vec<String> {
    let ask = |count: &mut u32, first: Ptr<vk::ExtensionProperties>| {
        driver!(
            functions,
            EnumerateDeviceExtensionProperties,
            FnEnumerateDeviceExtensionProperties(physical, Ptr::NULL, out(count), first)
        );
    };
    let mut count = 0;
    ask(&mut count, Ptr::NULL);
    let mut all = vec![vk::ExtensionProperties::zeroed(); count as usize];
    ask(&mut count, Ptr::to_slice(&all));
    all.truncate(count as usize);
    all.iter().map(|it| name_of(&it.extension_name)).collect()
}

pub(crate) fn destroy(performer: &mut Performer<'_>, done: &Done<'_>) -> Result<(), ReplayError> {
    if done.subject().is_null() {
        return Ok(());
    }
    let device = performer.device(done)?;
    performer.replay.swapchains.end_device(&device);
    performer.plain(done)?;
    performer.replay.remove_device(device.owner);
    Ok(())
}

pub(crate) fn queue(performer: &mut Performer<'_>, done: &Done<'_>) -> Result<(), ReplayError> {
    let device = performer.device(done)?;
    let laid = performer.lay_out(done)?;
    // SAFETY: the parameters of this command.
    let (family, index) = unsafe {
        let image = laid.image.cast::<vk::GetDeviceQueueParams>();
        ((*image).queue_family_index, (*image).queue_index)
    };
    if !device.queues.iter().any(|it| it.0 == family && index < it.1) {
        return Err(performer.error(done, format!("the device was made without queue {index} of family {family}")));
    }
    let result = performer.call(done, laid)?;
    performer.after(done, laid, result)
}

pub(crate) fn queue2(performer: &mut Performer<'_>, done: &Done<'_>) -> Result<(), ReplayError> {
    performer.plain(done)
}

/// No queue of the device may be used meanwhile, also not by us.
pub(crate) fn wait_idle(performer: &mut Performer<'_>, done: &Done<'_>) -> Result<(), ReplayError> {
    let device = performer.device(done)?;
    let queue = performer.replay.queue_lock(device.queue.0);
    let _guard = lock(&queue);
    performer.plain(done)
}
