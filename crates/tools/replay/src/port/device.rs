//! Devices and queues: those of here, as near as they can be to those of the trace.

use std::sync::{Arc, OnceLock};

use lavascope_abi as vk;
use lavascope_abi::{Ptr, Structure};
use lavascope_platform::pages;

use crate::call::chain;
use crate::call::functions::{Functions, ProcAddrSource, driver};
use crate::call::output_handles::output_ids;
use crate::call::perform::{Performer, RecordedCall, UnpackedCall};
use crate::error::ReplayError;
use crate::options::FrameOutput;
use crate::port::features;
use crate::port::instance::{c_string, fixed_string, out, out_slice, string_pointers};
use crate::port::recorded_device::{RecordedDevice, memory_of};
use crate::replay::lock;
use crate::schedule::device_waits::WaitLimit;

/// A device here.
pub(crate) struct ReplayDevice {
    pub(crate) handle: vk::Device,
    pub(crate) owner: u32,
    pub(crate) functions: Arc<Functions>,
    pub(crate) memory: vk::PhysicalDeviceMemoryProperties,
    /// Whether it is another one than in the trace: memory is bound where it fits.
    pub(crate) is_other_device: bool,
    /// Whether it was made with mesh shaders; drivers crash on such pipelines otherwise.
    pub(crate) has_mesh_shaders: bool,
    /// Whether buffers have addresses.
    pub(crate) has_addresses: bool,
    /// Whether a program may request addresses: only at creation.
    pub(crate) has_capture_replay: bool,
    /// The memory type here for each memory type of the trace.
    memory_types: Vec<u32>,
    /// A queue that the replay uses for itself, among those of the trace, and its family.
    pub(crate) queue: vk::Queue,
    pub(crate) family: u32,
    /// How many queues of each family there are.
    queues: Vec<(u32, u32)>,
    /// Whether several queues of the trace are one here.
    pub(crate) shares_queues: bool,
    /// The descriptor sizes, queried when they are needed first.
    pub(crate) descriptors: OnceLock<Option<vk::PhysicalDeviceDescriptorBufferPropertiesEXT>>,
    pub(crate) mapping: DeviceMapping,
}

/// Where a device comes from, and what it lacks.
pub(crate) struct DeviceMapping {
    /// How it is called in the trace and here.
    pub(crate) recorded_name: String,
    pub(crate) replay_name: String,
    pub(crate) missing_extensions: Vec<String>,
    pub(crate) missing_features: Vec<&'static str>,
    /// Queue families: their number in the trace, and here.
    pub(crate) families: Vec<(u32, u32)>,
    pub(crate) physical: vk::PhysicalDevice,
    /// The functions of its instance.
    pub(crate) functions: Arc<Functions>,
}

impl ReplayDevice {
    pub(crate) fn memory_type(&self, recorded: u32) -> u32 {
        self.memory_types.get(recorded as usize).copied().unwrap_or(recorded)
    }

    pub(crate) fn memory_types(&self) -> &[u32] {
        &self.memory_types
    }

    /// Makes the number of a queue one that is here.
    fn clamp_queue_index(&self, family: u32, index: &mut u32) -> Result<(), String> {
        match self.queues.iter().find(|it| it.0 == family) {
            Some((_, count)) if *count > 0 => {
                *index %= count;
                Ok(())
            }
            _ => Err(format!("the device was created without queues of family {family}")),
        }
    }

    /// A type of memory that has all of these properties, among those allowed.
    pub(crate) fn find_memory_type(&self, allowed: u32, flags: u32) -> Option<u32> {
        let types = self.memory.memory_types.iter().take(self.memory.memory_type_count as usize).enumerate();
        let mut fitting = types.filter(|it| allowed >> it.0 & 1 == 1 && it.1.property_flags.0 & flags == flags);
        fitting.next().map(|it| it.0 as u32)
    }
}

/// The memory type here for each recorded memory type: the same, or the first with all of its properties.
fn memory_types(recorded: &[(u32, u32)], here: &[(u32, u32)]) -> Vec<u32> {
    let host = vk::MemoryPropertyFlags::HOST_VISIBLE.0 | vk::MemoryPropertyFlags::HOST_COHERENT.0;
    let one = |(at, (wanted, _)): (usize, &(u32, u32))| {
        if here.get(at).is_some_and(|it| it.0 == *wanted) {
            return at as u32;
        }
        let find = |flags: u32| here.iter().position(|it| it.0 & flags == flags);
        find(*wanted).or_else(|| find(wanted & host)).unwrap_or(0) as u32
    };
    recorded.iter().enumerate().map(one).collect()
}

/// The device of the trace that one stands for: as the capture wrote it down, or as the program learned it.
fn recorded_device(performer: &mut Performer<'_>, recorded_call: &RecordedCall<'_>) -> Option<RecordedDevice> {
    performer.arena.clear();
    let id = recorded_call.leave.and_then(|it| output_ids(it, &mut performer.arena).first().copied())?;
    let facts = RecordedDevice::from_metadata(&performer.replay.metadata, id);
    facts.or_else(|| lock(&performer.replay.recorded_devices).get(&recorded_call.first_object()).cloned())
}

pub(crate) fn create(performer: &mut Performer<'_>, recorded_call: &RecordedCall<'_>) -> Result<(), ReplayError> {
    if recorded_call.has_failed() {
        return Ok(());
    }
    let origin = recorded_device(performer, recorded_call).unwrap_or_default();
    let unpacked = performer.unpack(recorded_call)?;
    let image = unpacked.image.cast::<vk::CreateDeviceParams>();
    // SAFETY: `UnpackedCall::image` holds the parameters of this command.
    let physical = unsafe { (*image).physical_device };
    let functions = performer.replay.functions(unpacked.owner);
    let functions =
        functions.ok_or_else(|| performer.error(recorded_call, "its instance does not exist at this point"))?;
    let here = families(&functions, physical);
    let flags: Vec<u32> = here.iter().map(|it| it.queue_flags.0).collect();
    performer.replay.families.build(&origin.families, &flags);
    let (name, is_foreign) = compare_device(&functions, physical, &origin);
    if is_foreign && !performer.replay.is_support_checked {
        return Err(ReplayError::DifferentDevice);
    }
    if is_foreign {
        performer.replay.formats.query_device(&functions, physical);
    }
    let all_families = 0..origin.families.len() as u32;
    let mut about = DeviceMapping {
        recorded_name: origin.name.clone(),
        replay_name: name,
        missing_extensions: Vec::new(),
        missing_features: Vec::new(),
        families: all_families.map(|it| (it, performer.replay.families.remap(it))).collect(),
        physical,
        functions,
    };
    // SAFETY: `UnpackedCall::image` holds the parameters of this command.
    let info = performer.required(recorded_call, unsafe { (*image).p_create_info })?;
    // SAFETY: `UnpackedCall`: the structure and its chain lie in the arena, and nobody else refers to them.
    let mut asked = unsafe { adapt_create_info(performer, recorded_call, info, &here, &mut about) }?;
    if is_foreign {
        // SAFETY: `UnpackedCall`: the structure and its chain lie in the arena, and nobody else refers to them.
        about.missing_features = unsafe { features::remove_unsupported(&about.functions, physical, info) };
    }
    let mut result = performer.call(recorded_call, unpacked)?;
    if vk::Result(result as u32 as i32) == vk::Result::ERROR_FEATURE_NOT_PRESENT {
        // SAFETY: `UnpackedCall`: the structure and its chain lie in the arena until the next `unpack`; the driver that read
        // them has returned.
        about.missing_features = unsafe { features::remove_unsupported(&about.functions, physical, info) };
        result = performer.call(recorded_call, unpacked)?;
    }
    match &about.missing_features[..] {
        [] => {}
        [one] => performer.replay.remark(format!("this device does not have the feature {one}")),
        all => performer.replay.remark(format!("this device does not have the features {}", all.join(", "))),
    }
    // SAFETY: `UnpackedCall::image` holds the parameters of this command; `unpack` made room for the handle, of zeros.
    let handle = unsafe { performer.required(recorded_call, (*image).p_device)?.read() };
    if handle.0 == 0 {
        return performer.finish_call(recorded_call, unpacked, result);
    }
    asked.is_other_device = is_foreign;
    let device = build_device(performer, recorded_call, handle, (origin, asked, about))?;
    let owner = device.owner;
    performer.replay.add_device(Arc::new(device));
    pages::trim_free_memory();
    performer.finish_call(recorded_call, UnpackedCall { owner, ..unpacked }, result)
}

/// What the replay requests of a device.
struct AdaptedDeviceInfo {
    /// Families, and how many queues of each.
    queues: Vec<(u32, u32)>,
    shares_queues: bool,
    /// Whether buffers have addresses, and programs may request them.
    has_addresses: [bool; 2],
    has_mesh_shaders: bool,
    is_other_device: bool,
    /// The names of the extensions, which the request points to.
    _names: Vec<Ptr<u8>>,
}

/// Makes the request of the trace one that this machine can fulfill.
///
/// # Safety
///
/// `info` must lead to a valid structure with a valid chain, all of it writable and not referred to by anybody else.
/// The names that the request gets live in the returned value, so that must outlive the use of the request.
unsafe fn adapt_create_info(
    performer: &Performer<'_>,
    recorded_call: &RecordedCall<'_>,
    info: *mut vk::DeviceCreateInfo,
    here: &[vk::QueueFamilyProperties],
    about: &mut DeviceMapping,
) -> Result<AdaptedDeviceInfo, ReplayError> {
    let available = extensions(&about.functions, about.physical);
    // SAFETY: the structure, its chain and the texts that it names are valid and ours, by the contract of this
    // function; `kept` is never changed after the request points to its elements.
    unsafe {
        (*info).enabled_layer_count = 0;
        (*info).pp_enabled_layer_names = Ptr::NULL;
        chain::retain(info, |it| Some(it) != vk::DeviceDeviceMemoryReportCreateInfoEXT::layout().s_type());
        let names = string_pointers((*info).pp_enabled_extension_names, (*info).enabled_extension_count);
        let (mut kept, missing): (Vec<_>, Vec<_>) =
            names.into_iter().partition(|it| available.contains(&c_string(*it)));
        about.missing_extensions = missing.into_iter().map(|it| c_string(it)).collect();
        for missing_extension in &about.missing_extensions {
            performer.replay.remark(format!("this device does not have {missing_extension}"));
        }
        let swapchain = "VK_KHR_swapchain";
        let has_swapchain = kept.iter().any(|it| c_string(*it) == swapchain);
        let is_shown = performer.replay.options.frame_output != FrameOutput::Nothing;
        if is_shown && !has_swapchain && available.iter().any(|it| it == swapchain) {
            kept.push(Ptr::new(c"VK_KHR_swapchain".as_ptr().expose_provenance() as u64));
        }
        (*info).enabled_extension_count = kept.len() as u32;
        (*info).pp_enabled_extension_names = Ptr::to_slice(&kept);
        let (queues, shares_queues) = map_queues(performer, recorded_call, info, here)?;
        if shares_queues {
            performer.replay.remark("this device has fewer queues than the trace: some share one".to_owned());
        }
        Ok(AdaptedDeviceInfo {
            queues,
            shares_queues,
            has_addresses: buffer_address_features(info),
            has_mesh_shaders: kept.iter().any(|it| c_string(*it).ends_with("_mesh_shader")),
            is_other_device: false,
            _names: kept,
        })
    }
}

/// The name of the device here, and whether it differs from that of the trace, if the trace has it.
fn compare_device(functions: &Functions, physical: vk::PhysicalDevice, origin: &RecordedDevice) -> (String, bool) {
    let mut own = vk::PhysicalDeviceProperties::zeroed();
    driver!(functions, GetPhysicalDeviceProperties, FnGetPhysicalDeviceProperties(physical, out(&mut own)));
    let memory = memory_of(&memory_properties(functions, physical));
    let name = fixed_string(&own.device_name);
    let is_other =
        !origin.name.is_empty() && (origin.name != name || origin.driver_version != u64::from(own.driver_version));
    (name, is_other || (!origin.memory.is_empty() && origin.memory != memory))
}

fn memory_properties(functions: &Functions, physical: vk::PhysicalDevice) -> vk::PhysicalDeviceMemoryProperties {
    let mut memory = vk::PhysicalDeviceMemoryProperties::zeroed();
    driver!(
        functions,
        GetPhysicalDeviceMemoryProperties,
        FnGetPhysicalDeviceMemoryProperties(physical, out(&mut memory))
    );
    memory
}

fn families(functions: &Functions, physical: vk::PhysicalDevice) -> Vec<vk::QueueFamilyProperties> {
    let ask = |count: &mut u32, first: Ptr<vk::QueueFamilyProperties>| {
        driver!(
            functions,
            GetPhysicalDeviceQueueFamilyProperties,
            FnGetPhysicalDeviceQueueFamilyProperties(physical, out(count), first)
        );
    };
    let mut count = 0;
    ask(&mut count, Ptr::NULL);
    let mut all = vec![vk::QueueFamilyProperties::zeroed(); count as usize];
    ask(&mut count, out_slice(&mut all));
    all.truncate(count as usize);
    all
}

/// Asks for the queues of here that stand for those of the trace; gives how many there are of each family, and whether
/// several of the trace are one here.
///
/// # Safety
///
/// `info` must lead to a valid structure, writable and referred to by nobody else, with as many requests for queues as
/// it says, unless that pointer is null.
unsafe fn map_queues(
    performer: &Performer<'_>,
    recorded_call: &RecordedCall<'_>,
    info: *mut vk::DeviceCreateInfo,
    here: &[vk::QueueFamilyProperties],
) -> Result<(Vec<(u32, u32)>, bool), ReplayError> {
    // SAFETY: the structure has as many requests as it says, by the contract of this function and by `elements`; `kept`
    // is never larger than the number of those that were read.
    unsafe {
        let infos = (*info).p_queue_create_infos.as_mut_ptr();
        let mut queues: Vec<(u32, u32)> = Vec::new();
        let (mut kept, mut is_shared) = (0, false);
        for create_info in
            performer.elements(recorded_call, ((*info).p_queue_create_infos, (*info).queue_create_info_count))?
        {
            let mut device_queue_create_info = create_info.read();
            device_queue_create_info.queue_family_index =
                performer.replay.families.remap(device_queue_create_info.queue_family_index);
            let most = here.get(device_queue_create_info.queue_family_index as usize).map_or(1, |it| it.queue_count);
            let wanted = device_queue_create_info.queue_count;
            device_queue_create_info.queue_count = wanted.min(most);
            // A family of here may stand for several.
            is_shared |= queues.iter().any(|own| own.0 == device_queue_create_info.queue_family_index)
                || device_queue_create_info.queue_count < wanted;
            if !queues.iter().any(|own| own.0 == device_queue_create_info.queue_family_index) {
                queues.push((device_queue_create_info.queue_family_index, device_queue_create_info.queue_count));
                infos.add(kept).write(device_queue_create_info);
                kept += 1;
            }
        }
        (*info).queue_create_info_count = kept as u32;
        Ok((queues, is_shared))
    }
}

/// Whether the features of a device include buffer device addresses, and requests for fixed ones.
///
/// # Safety
///
/// `info` must lead to a structure with a valid chain, referred to by nobody else.
unsafe fn buffer_address_features(info: *mut vk::DeviceCreateInfo) -> [bool; 2] {
    // SAFETY: the chain is valid, by the contract of this function, and `find` gives structures of the type that it is
    // asked for.
    unsafe {
        let core = chain::find::<_, vk::PhysicalDeviceVulkan12Features>(info);
        let alone = chain::find::<_, vk::PhysicalDeviceBufferDeviceAddressFeatures>(info);
        let core = core.map(|it| [(*it).buffer_device_address.0, (*it).buffer_device_address_capture_replay.0]);
        let alone = alone.map(|it| [(*it).buffer_device_address.0, (*it).buffer_device_address_capture_replay.0]);
        [0, 1].map(|at| core.is_some_and(|it| it[at] != 0) || alone.is_some_and(|it| it[at] != 0))
    }
}

fn build_device(
    performer: &Performer<'_>,
    recorded_call: &RecordedCall<'_>,
    handle: vk::Device,
    (origin, asked, about): (RecordedDevice, AdaptedDeviceInfo, DeviceMapping),
) -> Result<ReplayDevice, ReplayError> {
    let memory = memory_properties(&about.functions, about.physical);
    let get = about.functions.get(vk::Command::GetDeviceProcAddr);
    let get = get.ok_or_else(|| performer.error(recorded_call, "this driver does not have vkGetDeviceProcAddr"))?;
    // SAFETY: `get` is the function of this command, which has this type.
    let get = unsafe { std::mem::transmute::<*const (), vk::FnGetDeviceProcAddr>(get) };
    let functions = Arc::new(Functions::new(ProcAddrSource::Device(get, handle)));
    let owner = performer.replay.add_owner(functions.clone());
    let AdaptedDeviceInfo {
        queues, shares_queues, has_addresses, has_mesh_shaders, is_other_device: is_foreign, ..
    } = asked;
    let family = queues.first().map_or(0, |it| it.0);
    let mut queue = vk::Queue(0);
    driver!(functions, GetDeviceQueue, FnGetDeviceQueue(handle, family, 0, out(&mut queue)));
    let memory_types = memory_types(&origin.memory, &memory_of(&memory));
    Ok(ReplayDevice {
        handle,
        is_other_device: is_foreign,
        owner,
        functions,
        memory,
        has_mesh_shaders,
        has_addresses: has_addresses[0],
        has_capture_replay: has_addresses[1] && !is_foreign,
        memory_types,
        queue,
        family,
        queues,
        shares_queues,
        descriptors: OnceLock::new(),
        mapping: about,
    })
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
    ask(&mut count, out_slice(&mut all));
    all.truncate(count as usize);
    all.iter().map(|it| fixed_string(&it.extension_name)).collect()
}

pub(crate) fn destroy(performer: &mut Performer<'_>, recorded_call: &RecordedCall<'_>) -> Result<(), ReplayError> {
    if recorded_call.first_object().is_null() {
        return Ok(());
    }
    let device = performer.device(recorded_call)?;
    performer.replay.swapchains.destroy_device(&device, &performer.replay.objects);
    performer.perform_unchanged(recorded_call)?;
    performer.replay.remove_device(device.owner);
    Ok(())
}

pub(crate) fn queue(performer: &mut Performer<'_>, recorded_call: &RecordedCall<'_>) -> Result<(), ReplayError> {
    let device = performer.device(recorded_call)?;
    let unpacked = performer.unpack(recorded_call)?;
    // SAFETY: `UnpackedCall::image` holds the parameters of this command, and nobody else refers to them before `call`.
    let (family, index) = unsafe {
        let image = &mut *unpacked.image.cast::<vk::GetDeviceQueueParams>();
        (image.queue_family_index, &mut image.queue_index)
    };
    device.clamp_queue_index(family, index).map_err(|it| performer.error(recorded_call, it))?;
    let result = performer.call(recorded_call, unpacked)?;
    performer.finish_call(recorded_call, unpacked, result)
}

pub(crate) fn queue2(performer: &mut Performer<'_>, recorded_call: &RecordedCall<'_>) -> Result<(), ReplayError> {
    let device = performer.device(recorded_call)?;
    let unpacked = performer.unpack(recorded_call)?;
    // SAFETY: `UnpackedCall::image` holds the parameters of this command. The structure that one of them leads to is not null,
    // and nobody else refers to it before `call`.
    let (family, index) = unsafe {
        let image = &*unpacked.image.cast::<vk::GetDeviceQueue2Params>();
        let info = &mut *performer.required(recorded_call, image.p_queue_info)?;
        (info.queue_family_index, &mut info.queue_index)
    };
    device.clamp_queue_index(family, index).map_err(|it| performer.error(recorded_call, it))?;
    let result = performer.call(recorded_call, unpacked)?;
    performer.finish_call(recorded_call, unpacked, result)
}

/// No queue of the device may be used meanwhile, also not by us.
pub(crate) fn wait_idle(performer: &mut Performer<'_>, recorded_call: &RecordedCall<'_>) -> Result<(), ReplayError> {
    let device = performer.device(recorded_call)?;
    if device.shares_queues {
        // Only queues of this device: one of another may wait for this thread.
        let owner = |it: &lavascope_abi::ObjectId| performer.replay.objects.find(*it).map(|it| it.owner);
        performer.wait_until_released(recorded_call, |it| owner(it) == Some(device.owner))?;
    }
    let queue = performer.replay.queue_lock(device.queue.0);
    let _guard = lock(&queue);
    let _waiting = performer.begin_wait(recorded_call, "the device", WaitLimit::Unlimited);
    performer.perform_unchanged(recorded_call)
}
