//! Instances and physical devices: without the layers and windows of the machine that the trace was made on.

use std::ffi::CStr;
use std::sync::Arc;

use lavascope_abi as vk;
use lavascope_abi::{ObjectId, Ptr, Structure};
use lavascope_platform::pages;
use lavascope_record::Outcome;
use rustc_hash::FxHashMap;

use crate::call::chain;
use crate::call::functions::{Functions, ProcAddrSource, driver};
use crate::call::objects::ReplayObject;
use crate::call::output_handles::output_ids;
use crate::call::perform::{Performer, RecordedCall, UnpackedCall};
use crate::error::ReplayError;
use crate::options::FrameOutput;
use crate::port::recorded_device::{RecordedDevice, memory_of};
use crate::present::real_swapchain;
use crate::replay::{GLOBAL, lock};

/// What the captured program queried about its physical devices.
pub(crate) type RecordedDevices = FxHashMap<ObjectId, RecordedDevice>;

/// Structures of the chain that lead to callbacks or settings of another machine.
fn is_host_specific(s_type: i32) -> bool {
    let foreign = [
        vk::DebugUtilsMessengerCreateInfoEXT::layout(),
        vk::DebugReportCallbackCreateInfoEXT::layout(),
        vk::ValidationFeaturesEXT::layout(),
        vk::ValidationFlagsEXT::layout(),
        vk::LayerSettingsCreateInfoEXT::layout(),
        vk::DirectDriverLoadingListLUNARG::layout(),
        vk::ExportMetalObjectCreateInfoEXT::layout(),
    ];
    foreign.iter().any(|it| it.s_type() == Some(s_type))
}

pub(crate) fn create(performer: &mut Performer<'_>, recorded_call: &RecordedCall<'_>) -> Result<(), ReplayError> {
    if recorded_call.has_failed() {
        return Ok(());
    }
    let unpacked = performer.unpack(recorded_call)?;
    let image = unpacked.image.cast::<vk::CreateInstanceParams>();
    // SAFETY: `UnpackedCall::image` holds the parameters of this command.
    let info = performer.required(recorded_call, unsafe { (*image).p_create_info })?;
    // SAFETY: `UnpackedCall`: the structure lies in the arena, and nobody else refers to it.
    let is_asked = unsafe { (*info).enabled_extension_count > 0 };
    // The loader goes through all its files for that.
    let is_asked = is_asked || performer.replay.options.frame_output != FrameOutput::Nothing;
    let available = if is_asked { available_instance_extensions(performer) } else { Vec::new() };
    // SAFETY: `UnpackedCall`: the structure, its chain and the texts that it names lie in the arena, and nobody else refers to
    // them.
    let kept: Vec<Ptr<u8>> = unsafe {
        chain::retain(info, |it| !is_host_specific(it));
        (*info).enabled_layer_count = 0;
        (*info).pp_enabled_layer_names = Ptr::NULL;
        let names = string_pointers((*info).pp_enabled_extension_names, (*info).enabled_extension_count);
        let (kept, missing): (Vec<_>, Vec<_>) = names.into_iter().partition(|it| available.contains(&c_string(*it)));
        for text in missing.iter().map(|it| c_string(*it)).filter(|it| !is_window_system(it)) {
            performer.replay.remark(format!("this machine does not have the instance extension {text}"));
        }
        kept
    };
    let all: Vec<Ptr<u8>> = kept.iter().copied().chain(surface_extensions(performer, &available)).collect();
    let mut result = 0;
    // A layer may have surfaces without windows, which only it knows of; so that is tried.
    for names in if all.len() > kept.len() { vec![all, kept] } else { vec![kept] } {
        // SAFETY: `UnpackedCall`: the structure lies in the arena, and nobody else refers to it. `names` lives until `call`
        // returns.
        unsafe {
            (*info).enabled_extension_count = names.len() as u32;
            (*info).pp_enabled_extension_names = Ptr::to_slice(&names);
        }
        result = performer.call(recorded_call, unpacked)?;
        if vk::Result(result as u32 as i32) != vk::Result::ERROR_EXTENSION_NOT_PRESENT {
            break;
        }
    }
    // SAFETY: `UnpackedCall::image` holds the parameters of this command; `unpack` made room for the handle, of zeros.
    let instance = unsafe { performer.required(recorded_call, (*image).p_instance)?.read() };
    let source = ProcAddrSource::Instance(performer.replay.loader.get_instance_proc_addr, instance);
    let owner = performer.replay.add_owner(Arc::new(Functions::new(source)));
    pages::trim_memory();
    performer.finish_call(recorded_call, UnpackedCall { owner, ..unpacked }, result)
}

/// Extensions that the trace need not have, for one who wants to see frames.
fn surface_extensions(performer: &Performer<'_>, available: &[String]) -> impl Iterator<Item = Ptr<u8>> {
    let wanted = real_swapchain::instance_extensions(performer.replay.options.frame_output).iter();
    let is_tried = performer.replay.options.frame_output == FrameOutput::Headless;
    let has = move |it: &&&CStr| is_tried || it.to_str().is_ok_and(|it| available.iter().any(|own| own == it));
    wanted.filter(has).map(|it| Ptr::new(it.as_ptr().expose_provenance() as u64)).collect::<Vec<_>>().into_iter()
}

/// Names behind a pointer to pointers.
///
/// # Safety
///
/// `first` must be null, or lead to `count` pointers.
pub(crate) unsafe fn string_pointers(first: Ptr<Ptr<u8>>, count: u32) -> Vec<Ptr<u8>> {
    if first.is_null() {
        return Vec::new();
    }
    // SAFETY: `count` pointers are there, by the contract of this function.
    (0..count as usize).map(|it| unsafe { first.as_ptr().add(it).read() }).collect()
}

/// # Safety
///
/// `text` must lead to characters that end with a zero.
pub(crate) unsafe fn c_string(text: Ptr<u8>) -> String {
    // SAFETY: the text ends with a zero, by the contract of this function.
    unsafe { CStr::from_ptr(text.as_ptr().cast()) }.to_string_lossy().into_owned()
}

/// A name in an array of characters.
pub(crate) fn fixed_string(characters: &[u8]) -> String {
    let end = characters.iter().position(|it| *it == 0).unwrap_or(characters.len());
    String::from_utf8_lossy(&characters[..end]).into_owned()
}

/// Extensions for windows are not needed where there are none.
fn is_window_system(name: &str) -> bool {
    name.contains("surface") || name.contains("display")
}

fn available_instance_extensions(performer: &Performer<'_>) -> Vec<String> {
    let Some(functions) = performer.replay.functions(GLOBAL) else { return Vec::new() };
    let ask = |count: &mut u32, first: Ptr<vk::ExtensionProperties>| {
        driver!(
            functions,
            EnumerateInstanceExtensionProperties,
            FnEnumerateInstanceExtensionProperties(Ptr::NULL, out(count), first)
        );
    };
    let mut count = 0;
    ask(&mut count, Ptr::NULL);
    let mut all = vec![vk::ExtensionProperties::zeroed(); count as usize];
    ask(&mut count, out_slice(&mut all));
    all.truncate(count as usize);
    all.iter().map(|it| fixed_string(&it.extension_name)).collect()
}

/// A pointer through which a function writes.
pub(crate) fn out<T>(target: &mut T) -> Ptr<T> {
    Ptr::new(std::ptr::from_mut(target).expose_provenance() as u64)
}

/// A pointer to the first of some elements, through which a function writes all of them; null for none.
pub(crate) fn out_slice<T>(targets: &mut [T]) -> Ptr<T> {
    if targets.is_empty() { Ptr::NULL } else { Ptr::new(targets.as_mut_ptr().expose_provenance() as u64) }
}

/// So many physical devices a machine has at most, or it is asked again.
const GPUS_MOST: usize = 16;

/// The physical devices here, of an instance.
fn enumerate_here(performer: &Performer<'_>, recorded_call: &RecordedCall<'_>) -> Result<(Vec<u64>, u32), ReplayError> {
    let subject = recorded_call.first_object();
    let missing = || performer.error(recorded_call, format!("{subject} does not exist at this point"));
    let instance = performer.replay.objects.find(subject).ok_or_else(missing)?;
    let functions = performer.replay.functions(instance.owner).ok_or_else(missing)?;
    let ask = |count: &mut u32, first: Ptr<vk::PhysicalDevice>| {
        let call = driver!(
            functions,
            EnumeratePhysicalDevices,
            FnEnumeratePhysicalDevices(vk::Instance(instance.handle), out(count), first)
        );
        call.unwrap_or(vk::Result::ERROR_UNKNOWN)
    };
    // Asking takes loaders a millisecond, so there is room for most machines at once.
    let mut all = vec![vk::PhysicalDevice(0); GPUS_MOST];
    let mut count = GPUS_MOST as u32;
    let mut result = ask(&mut count, out_slice(&mut all));
    if result == vk::Result::INCOMPLETE {
        ask(&mut count, Ptr::NULL);
        all.resize(count as usize, vk::PhysicalDevice(0));
        result = ask(&mut count, out_slice(&mut all));
    }
    if result.0 < 0 {
        count = 0;
    }
    all.truncate(count as usize);
    let chosen = match performer.replay.options.gpu {
        Some(at) => vec![all.get(at).copied().ok_or_else(|| {
            performer
                .error(recorded_call, format!("there is no GPU {at} here, only {count}; `lavascope env` lists them"))
        })?],
        None => all,
    };
    if chosen.is_empty() {
        return Err(performer.error(recorded_call, "there is no GPU here"));
    }
    Ok((chosen.iter().map(|it| it.0).collect(), instance.owner))
}

pub(crate) fn physical_devices(
    performer: &mut Performer<'_>,
    recorded_call: &RecordedCall<'_>,
) -> Result<(), ReplayError> {
    let Some(leave) = recorded_call.leave.filter(|_| !recorded_call.has_failed()) else { return Ok(()) };
    performer.arena.clear();
    let ids = output_ids(leave, &mut performer.arena);
    // Asking takes a loader a millisecond, and a program may ask in every frame. The answer stays the same.
    if ids.iter().all(|it| performer.replay.objects.find(*it).is_some()) {
        return Ok(());
    }
    let (here, owner) = enumerate_here(performer, recorded_call)?;
    for (at, id) in ids.into_iter().enumerate() {
        if performer.replay.objects.find(id).is_none() {
            performer.add_object(recorded_call, id, ReplayObject { handle: here[at % here.len()], owner })?;
        }
    }
    Ok(())
}

pub(crate) fn physical_device_groups(
    performer: &mut Performer<'_>,
    recorded_call: &RecordedCall<'_>,
) -> Result<(), ReplayError> {
    physical_devices(performer, recorded_call)
}

/// Stores what the program queried.
pub(crate) fn record_properties(
    performer: &mut Performer<'_>,
    recorded_call: &RecordedCall<'_>,
) -> Result<(), ReplayError> {
    let Some(outcome) = recorded_call.leave.and_then(Outcome::of) else { return Ok(()) };
    let mut recorded = lock(&performer.replay.recorded_devices);
    let origin = recorded.entry(recorded_call.first_object()).or_default();
    let learn = |origin: &mut RecordedDevice, device_properties: &vk::PhysicalDeviceProperties| {
        (origin.name, origin.driver_version) =
            (fixed_string(&device_properties.device_name), device_properties.driver_version.into());
    };
    let flags = |it: &vk::QueueFamilyProperties| it.queue_flags.0;
    match outcome {
        Outcome::GetPhysicalDeviceProperties(outputs) => outputs.p_properties().iter().for_each(|it| learn(origin, it)),
        Outcome::GetPhysicalDeviceProperties2(outputs) => {
            outputs.p_properties().iter().for_each(|it| learn(origin, &it.properties));
        }
        Outcome::GetPhysicalDeviceMemoryProperties(outputs) => {
            outputs.p_memory_properties().iter().for_each(|it| origin.memory = memory_of(it));
        }
        Outcome::GetPhysicalDeviceMemoryProperties2(outputs) => {
            outputs.p_memory_properties().iter().for_each(|it| origin.memory = memory_of(&it.memory_properties));
        }
        Outcome::GetPhysicalDeviceQueueFamilyProperties(outputs) => {
            let all = outputs.p_queue_family_properties();
            if !all.is_empty() {
                origin.families = all.iter().map(|it| flags(&it)).collect();
            }
        }
        Outcome::GetPhysicalDeviceQueueFamilyProperties2(outputs) => {
            let all = outputs.p_queue_family_properties();
            if !all.is_empty() {
                origin.families = all.iter().map(|it| flags(&it.queue_family_properties)).collect();
            }
        }
        _ => {}
    }
    Ok(())
}
