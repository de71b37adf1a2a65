//! Devices: made and ended.

use std::ffi::CStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use lavascope_abi::*;
use lavascope_validate::{CommandBufferFeedback, LaunchLocation};

use crate::DeviceTable;
use crate::capture::device_metadata;
use crate::gpu::{self, DeviceChecks};
use crate::intercept::calls::forward_recorded;
use crate::intercept::handle_table::{HandleTable, PROCESS_HANDLES};
use crate::intercept::headless_surface::HeadlessDevice;
use crate::loader::chain::{ChainPosition, find_set_loader_data, take_next_link};
use crate::loader::creation_failure;
use crate::loader::dispatch::dispatch_key;
use crate::loader::instance::{InstanceData, has_name};
use crate::loader::interface::*;
use crate::loader::pnext_chain::find_in_chain;
use crate::loader::proc_addr::{CHAINS, WATCHED_DEVICES};
use crate::loader::raised_version;
use crate::memory::{HostVisibleMemories, MemoryImportRequest};
use crate::pictures::{self, Pictures};
use crate::process::catch_panic::{catch_panic, is_disabled, run_if_enabled};
use crate::process::forks;
use crate::process::listeners::Listeners;
use crate::process::process_state::PROCESS_STATE;
use crate::report::device_lost;
use crate::report::messages::Messages;
use crate::report::validation::Inbox;

/// A device and what comes after us in its chain.
pub(crate) struct DeviceData {
    pub(crate) handle: Device,
    pub(crate) get_device_proc_addr: GetProcAddr,
    /// The version above which core commands are hidden from the application, because it did not ask for it.
    pub(crate) hidden_above: Option<u32>,
    pub(crate) table: DeviceTable,
    /// Who listens to its calls; nobody, if zero.
    pub(crate) listeners: Listeners,
    pub(crate) has_debug_utils: bool,
    /// Whether the application switched on that faults can be asked for.
    pub(crate) has_device_fault: bool,
    /// Whether the loss of the device was reported. Relaxed: it is reported once.
    is_loss_reported: AtomicBool,
    handles: HandleTable,
    /// What was found and not reported yet; none if nobody wants to know.
    inbox: Option<Arc<Inbox>>,
    /// None where shaders do not check themselves.
    pub(crate) gpu: Option<Arc<DeviceChecks>>,
    /// None where all surfaces are the driver's.
    pub(crate) headless_surfaces: Option<HeadlessDevice>,
    /// None where nobody wants to see what it presents.
    pub(crate) pictures: Option<Arc<Pictures>>,
    pub(crate) messages: Arc<Messages>,
}

impl DeviceData {
    /// Tells what was found meanwhile, on the thread that calls.
    #[inline(always)]
    pub(crate) fn deliver_messages(&self) {
        forks::report_once();
        self.messages.send_queued();
        if let Some(inbox) = &self.inbox
            && !is_disabled()
        {
            inbox.deliver(&self.handles);
        }
    }

    /// Tells the validator what shaders touched.
    pub(crate) fn feedback(&self, all: Vec<CommandBufferFeedback>) {
        if let Some(inbox) = &self.inbox {
            inbox.feedback(all, &self.handles);
        }
    }

    /// Where a draw or dispatch was recorded, as far as a validation knows.
    pub(crate) fn locate_launch(&self, command_buffer: ObjectId, launch: (u32, Command)) -> Option<LaunchLocation> {
        self.inbox.as_ref()?.locate_launch(command_buffer, launch)
    }

    /// A call found that the device is lost.
    #[cold]
    pub(crate) fn on_device_lost(&self, command: Command) {
        if let Some(inbox) = &self.inbox
            && !self.is_loss_reported.swap(true, Ordering::Relaxed)
        {
            run_if_enabled("a lost device", || device_lost::report_device_lost(self, inbox, command), || ());
        }
    }

    #[inline(always)]
    pub(crate) fn handles(&self) -> &HandleTable {
        &self.handles
    }
}

pub(crate) unsafe extern "system" fn create<const CHAIN: usize>(
    physical_device: PhysicalDevice,
    p_create_info: Ptr<DeviceCreateInfo>,
    p_allocator: Ptr<Opaque>,
    p_device: Ptr<Device>,
) -> Result {
    let params = CreateDeviceParams { physical_device, p_create_info, p_allocator, p_device };
    // SAFETY: the loader calls the `vkCreateDevice` that it got from this layer, with what the application called it
    // with and a link for this layer in its chain.
    let work = || unsafe { create_in_chain::<CHAIN>(&params) };
    catch_panic("vkCreateDevice", || work().unwrap_or(FAILED), || FAILED)
}

/// # Safety
///
/// The parameters must be those of a `vkCreateDevice` that the loader passed to this layer, which has not returned.
unsafe fn create_in_chain<const CHAIN: usize>(params: &CreateDeviceParams) -> Option<Result> {
    // SAFETY: a physical device shares the key of its instance. VUID-vkCreateDevice-physicalDevice-parameter makes both
    // valid, and they stay so until the call returns.
    let instance = unsafe { CHAINS[CHAIN].instances.get(dispatch_key(params.physical_device.0)) }?;
    // SAFETY: VUID-vkCreateDevice-pCreateInfo-parameter, by the contract of this function; null is none.
    let chain = unsafe { params.p_create_info.as_ptr().as_ref() }?.p_next;
    // SAFETY: the contract of this function: the chain of a create info that the loader handed to this layer.
    let next = unsafe { take_next_link(chain, LOADER_DEVICE_CREATE_INFO) }?;
    let (get_instance, get_device) = (next.get_instance_proc_addr?, next.get_other_proc_addr?);
    // SAFETY: by the loader's layer interface the link has the next `vkGetInstanceProcAddr`, which may be asked for
    // `vkCreateDevice` without an instance.
    let found = unsafe { next_proc_addr(get_instance, 0, c"vkCreateDevice") };
    // SAFETY: null is none. `vkGetInstanceProcAddr` gives a function with the prototype of the command that it was
    // asked for.
    let found = unsafe { std::mem::transmute::<FnPtr, Option<FnCreateDevice>>(found) };
    let create = found.or(instance.table.create_device)?;
    // SAFETY: the contract of this function: the parameters are those of a valid `vkCreateDevice`.
    let import_request =
        run_if_enabled("vkCreateDevice", || unsafe { MemoryImportRequest::of(instance, params) }, || None);
    // SAFETY: the contract of `gpu_request`: the parameters are those of a valid `vkCreateDevice`, on a physical device of
    // this instance.
    let gpu_request = run_if_enabled("vkCreateDevice", || unsafe { gpu_request(instance, params) }, || None);
    // SAFETY: the contract of this function; `create` is the next `vkCreateDevice` in the chain.
    let (result, is_enabled) =
        unsafe { call_next(instance, create, params, (import_request.as_ref(), gpu_request.as_ref())) };
    if result == Result::SUCCESS {
        if let Some(config) = instance.gpu.as_ref().filter(|_| gpu_request.is_some() && !is_enabled.1) {
            gpu::report_unusable_on_device(&instance.messages, config.setting(), FEATURES_REFUSED);
        }
        // SAFETY: VUID-vkCreateDevice-pDevice-parameter: a place, which the call that succeeded has written.
        let device = unsafe { *params.p_device.as_ptr() };
        let requests = (import_request.filter(|_| is_enabled.0), gpu_request.filter(|_| is_enabled.1));
        // SAFETY: the device was just made with these parameters and requests, and by the loader's layer interface the
        // link has the `vkGetDeviceProcAddr` of what comes next.
        let data = unsafe { new_device_data(instance, params, (device, get_device), requests) };
        // SAFETY: the device was just created.
        let key = unsafe { dispatch_key(device.0) };
        // SAFETY: only `destroy` removes it, and the application has no handle to destroy before this call returns.
        let data = unsafe { CHAINS[CHAIN].devices.insert(key, data) };
        if let Some(inbox) = data.inbox.as_ref().filter(|_| data.gpu.as_ref().is_some_and(|it| it.gives_feedback())) {
            inbox.expect_feedback();
        }
        if PROCESS_STATE.is_capturing() {
            // SAFETY: the device was just made on that physical device, which is one of the instance. The application
            // has no handle to destroy the device yet, and must not destroy the instance during the call.
            unsafe { device_metadata::record_device_metadata(instance, params.physical_device, device) };
        }
        if !data.listeners.is_empty() {
            // SAFETY: the device of this key, which `destroy` takes out here before it drops it.
            unsafe { WATCHED_DEVICES.insert(key, data) };
        }
    } else if !instance.listeners.is_empty() {
        // SAFETY: the contract of this function: the parameters of a valid `vkCreateDevice` on a physical device of this
        // instance, which has not returned to the application.
        let report = || unsafe { creation_failure::report_device(instance, params, result) };
        run_if_enabled("vkCreateDevice", report, || ());
    }
    Some(result)
}

const FEATURES_REFUSED: &str =
    "the driver creates the device only without the features that checks in shaders need; nothing is checked on it";

/// What is known of a new device, with functions of ours in the places of the driver's.
///
/// # Safety
///
/// The parameters must be those of a valid `vkCreateDevice` that succeeded and has not returned to the application. The
/// device must have been made with them and with these wishes, and `get_device` must be the `vkGetDeviceProcAddr` of
/// what comes next in its chain. Whoever has the result calls `DeviceChecks::end` and `Pictures::end` before the device is
/// destroyed.
unsafe fn new_device_data(
    instance: &InstanceData,
    params: &CreateDeviceParams,
    (device, get_device): (Device, GetProcAddr),
    (import_request, gpu_request): (Option<MemoryImportRequest>, Option<gpu::DeviceRequest>),
) -> DeviceData {
    // SAFETY: by the contract of this function `get_device` gives the functions of this device, which are there until
    // it is destroyed. The table ends with it: `destroy` drops what has it.
    let mut table = unsafe { DeviceTable::load(|name| next_proc_addr(get_device, device.0, name)) };
    let wants_pictures = instance.pictures.is_some() && !is_disabled();
    let functions = wants_pictures.then(|| pictures::Functions::of(&table)).flatten();
    let gpu = gpu_request.and_then(|import_request| {
        // The functions once more, since those in the table are about to be ours.
        // SAFETY: the functions of this device, as those in the table.
        let next = unsafe { DeviceTable::load(|name| next_proc_addr(get_device, device.0, name)) };
        // SAFETY: the contract of this function: the device was just made with this wish on this physical device, and
        // `next` has its functions. `destroy` calls `DeviceChecks::end` before the device goes.
        unsafe { DeviceChecks::begin(instance, params.physical_device, device, (next, &import_request), &mut table) }
    });
    // SAFETY: VUID-vkCreateDevice-pCreateInfo-parameter, by the contract of this function.
    let info = unsafe { params.p_create_info.as_ptr().as_ref() };
    // SAFETY: the contract of this function: the device was just made with this info, and the table has its functions.
    // What is made ends with the data of the device.
    let unseen =
        instance.headless_surfaces.as_ref().and_then(|_| unsafe { HeadlessDevice::begin(device, info?, &mut table) });
    // SAFETY: the contract of this function: the device was just made with these parameters, and the table has its
    // functions.
    let memories = unsafe { HostVisibleMemories::of(instance, params, (device, &mut table), import_request.as_ref()) };
    let pictures = functions.and_then(|functions| {
        // SAFETY: the contract of this function: the chain of a `vkCreateDevice` that the loader handed to this layer.
        let own = (functions, unsafe { find_set_loader_data(info?.p_next) });
        // SAFETY: the contract of this function: the device was just made on this physical device. The functions and
        // the table are its own, and `destroy` calls `Pictures::end` before the device goes.
        unsafe { Pictures::begin(instance, (params.physical_device, device), own, &mut table) }
    });
    DeviceData {
        handle: device,
        get_device_proc_addr: get_device,
        // SAFETY: `get_device` gives the functions of this device.
        hidden_above: unsafe { hidden_above(instance, device, get_device) },
        table,
        listeners: instance.listeners,
        has_debug_utils: instance.has_debug_utils,
        // SAFETY: the contract of this function: the info of a valid `vkCreateDevice`.
        has_device_fault: unsafe { enables_device_fault(params.p_create_info) },
        is_loss_reported: AtomicBool::new(false),
        handles: HandleTable::of_device(memories),
        inbox: inbox_of(instance, device),
        gpu,
        headless_surfaces: unseen,
        pictures: pictures.map(Arc::new),
        messages: Arc::clone(&instance.messages),
    }
}

/// The version above which core commands are hidden from the application; none if none are.
///
/// # Safety
///
/// The device must be alive, and `get_device` must be the `vkGetDeviceProcAddr` of what comes next in its chain.
unsafe fn hidden_above(instance: &InstanceData, device: Device, get_device: GetProcAddr) -> Option<u32> {
    let asked = instance.application_version?;
    // SAFETY: by the contract of this function the device is alive, and this is its function.
    let has = |name: &CStr| unsafe { next_proc_addr(get_device, device.0, name) }.0 != 0;
    raised_version::hides_newer_commands(has).then_some(asked)
}

/// Whether a device was made with `VK_EXT_device_fault` and its feature.
///
/// # Safety
///
/// `info` must be null or that of a valid `vkCreateDevice` that has not returned to the application.
unsafe fn enables_device_fault(info: Ptr<DeviceCreateInfo>) -> bool {
    // SAFETY: VUID-vkCreateDevice-pCreateInfo-parameter, by the contract of this function; null is none.
    let Some(info) = (unsafe { info.as_ptr().as_ref() }) else { return false };
    let (names, count) = (info.pp_enabled_extension_names, info.enabled_extension_count);
    let ty = StructureType::PHYSICAL_DEVICE_FAULT_FEATURES_EXT;
    // SAFETY: VUID-VkDeviceCreateInfo-pNext-pNext, by the contract of this function: a valid chain; the type is that of
    // the structure.
    let features = unsafe { find_in_chain::<PhysicalDeviceFaultFeaturesEXT>(info.p_next, ty) };
    // SAFETY: a structure of the chain, which stays until the call returns.
    let is_on = features.is_some_and(|it| unsafe { (*it.as_ptr()).device_fault.0 != 0 });
    // SAFETY: VUID-VkDeviceCreateInfo-ppEnabledExtensionNames-parameter, by the contract of this function.
    is_on && unsafe { has_name(names, count, c"VK_EXT_device_fault") }
}

/// What is asked of the driver so that shaders can check themselves; none where they do not, or cannot.
///
/// # Safety
///
/// The parameters must be those of a valid `vkCreateDevice` that has not returned, on a physical device of the
/// instance.
unsafe fn gpu_request(instance: &InstanceData, params: &CreateDeviceParams) -> Option<gpu::DeviceRequest> {
    let setting = instance.gpu.as_ref()?.setting();
    // SAFETY: the contract of this function, which is that of `DeviceRequest::of`.
    let found = unsafe { gpu::DeviceRequest::of(instance, params) };
    found.map_err(|text| gpu::report_unusable_on_device(&instance.messages, setting, text)).ok()
}

/// Where messages about a new device wait.
fn inbox_of(instance: &InstanceData, device: Device) -> Option<Arc<Inbox>> {
    let wanted = instance.finding_filter?;
    let slot = PROCESS_HANDLES.slot(HandleType::Device, device.0)?;
    Some(Inbox::open(PROCESS_STATE.objects.id(slot)?, &instance.messages, wanted))
}

/// Makes the device, with what we wish for where that is possible; says whether it was.
///
/// # Safety
///
/// The parameters must be those of a `vkCreateDevice` that the loader passed to this layer, which has not returned.
/// `create` must be the next `vkCreateDevice` in its chain, and the wishes must have been made for these parameters.
unsafe fn call_next(
    instance: &InstanceData,
    create: FnCreateDevice,
    params: &CreateDeviceParams,
    (import_request, gpu): (Option<&MemoryImportRequest>, Option<&gpu::DeviceRequest>),
) -> (Result, (bool, bool)) {
    let CreateDeviceParams { physical_device, p_create_info, p_allocator, p_device } = *params;
    let mut is_enabled = (false, false);
    let mut next = || {
        // SAFETY: VUID-vkCreateDevice-pCreateInfo-parameter, by the contract of this function; null has no chain.
        let chain = unsafe { p_create_info.as_ptr().as_ref() }.map_or(Ptr::NULL, |it| it.p_next);
        // SAFETY: the contract of this function: the chain of a create info that the loader handed to this layer.
        let position = unsafe { ChainPosition::of(chain, LOADER_DEVICE_CREATE_INFO) };
        for (import_request, gpu) in [(import_request, gpu), (None, gpu), (import_request, None)] {
            if import_request.is_none() && gpu.is_none() {
                continue;
            }
            // SAFETY: VUID-vkCreateDevice-pCreateInfo-parameter, by the contract of this function: no wish is made
            // where the info is null.
            let info = unsafe { *p_create_info.as_ptr() };
            let info = gpu.map_or(info, |it| it.info(&info));
            let info = import_request.map_or(info, |it| it.device_create_info(&info));
            let (first, count) = (info.pp_enabled_extension_names, info.enabled_extension_count);
            // SAFETY: VUID-VkDeviceCreateInfo-ppEnabledExtensionNames-parameter, by the contract of this function, or a
            // list of a wish: as many names as it says.
            let names = unsafe { gpu::DeviceRequest::extension_names(gpu, first, count) };
            let (count, first) = (names.len() as u32, Ptr::to_slice(&names));
            let info = DeviceCreateInfo { enabled_extension_count: count, pp_enabled_extension_names: first, ..info };
            // SAFETY: the contract of this function for `create`. The info differs from the application's in extensions
            // and features that the wishes found the driver to have; what it leads to is the application's, or the
            // wishes', and both outlive the call.
            let result = unsafe { create(physical_device, Ptr::to(&info), p_allocator, p_device) };
            if result == Result::SUCCESS {
                is_enabled = (import_request.is_some(), gpu.is_some());
                return result;
            }
            // SAFETY: the contract of this function: the call has not returned.
            position.iter().for_each(|it| unsafe { it.restore() });
        }
        // SAFETY: the contract of this function: the next `vkCreateDevice`, with what this layer got from the loader.
        unsafe { create(physical_device, p_create_info, p_allocator, p_device) }
    };
    let result = if instance.listeners.is_empty() {
        next()
    } else {
        // SAFETY: the contract of this function: parameters of this command, which obey its VUIDs; `next` makes the
        // call.
        unsafe { forward_recorded(&PROCESS_HANDLES, instance.listeners, Command::CreateDevice, params, &mut next) }
    };
    (result, is_enabled)
}

pub(crate) unsafe extern "system" fn destroy<const CHAIN: usize>(device: Device, p_allocator: Ptr<Opaque>) {
    // SAFETY: VUID-vkDestroyDevice-device-parameter: null, or a device that is alive until the call returns.
    let key = unsafe { dispatch_key(device.0) };
    let data = catch_panic("vkDestroyDevice", || CHAINS[CHAIN].devices.remove(key), || None);
    let Some(data) = data else { return };
    let Some(destroy) = data.table.destroy_device else { return };
    if data.listeners.is_empty() {
        // SAFETY: the next `vkDestroyDevice` of the chain, with what the application passed to it.
        return unsafe { destroy(device, p_allocator) };
    }
    if let Some(gpu) = &data.gpu {
        catch_panic("vkDestroyDevice", || gpu.end(), || ());
    }
    if let Some(pictures) = &data.pictures {
        catch_panic("vkDestroyDevice", || pictures.end(), || ());
    }
    data.messages.send_queued();
    WATCHED_DEVICES.remove(key);
    // Before the driver may give the handles of its command buffers to somebody else.
    PROCESS_STATE.next_generation();
    let params = DestroyDeviceParams { device, p_allocator };
    // SAFETY: the next `vkDestroyDevice` of the chain, with what the application passed to it.
    let next = || unsafe { destroy(device, p_allocator) };
    // SAFETY: the parameters are what the application called this command with, so that they obey its VUIDs, and `next`
    // makes the call.
    unsafe { forward_recorded(&data.handles, data.listeners, Command::DestroyDevice, &params, next) };
    let end = || {
        if let Some(inbox) = &data.inbox {
            inbox.close(&data.handles);
        }
        drop(data);
    };
    catch_panic("vkDestroyDevice", end, || ());
}
