//! Instances: made and ended, with the settings that the application and its surroundings ask for.

use std::cell::Cell;
use std::ffi::CStr;
use std::sync::Arc;

use lavascope_abi::*;
use lavascope_settings::{BacktraceMode, MessageSeverity, Settings, SyncMode};

use crate::gpu;
use crate::intercept::calls::forward_recorded;
use crate::intercept::handle_table::{HandleTable, PROCESS_HANDLES};
use crate::intercept::headless_surface;
use crate::loader::chain::{ChainPosition, take_next_link};
use crate::loader::creation_failure;
use crate::loader::dispatch::dispatch_key;
use crate::loader::interface::*;
use crate::loader::pnext_chain::InstanceChainInfo;
use crate::loader::proc_addr::{CHAINS, WATCHED_INSTANCES, c_str};
use crate::loader::raised_version::{RaisedVersion, asked_version};
use crate::memory::MemoryInterest;
use crate::process::catch_panic::{catch_panic, is_disabled, run_if_enabled, silence_panics};
use crate::process::library;
use crate::process::listeners::Listeners;
use crate::process::process_state::{PROCESS_STATE, ReadingGuard};
use crate::report::coverage;
use crate::report::debugger;
use crate::report::inline_validation;
use crate::report::inline_validation::InlineGuard;
use crate::report::messages::{Messages, OutgoingMessage};
use crate::report::report_file;
use crate::report::validation::FindingFilter;
use crate::{InstanceTable, pictures};

/// An instance and what comes after us in its chain.
pub(crate) struct InstanceData {
    pub(crate) get_instance_proc_addr: GetProcAddr,
    /// For functions of physical devices that the next layer knows and we do not.
    pub(crate) get_physical_device_proc_addr: Option<GetProcAddr>,
    pub(crate) table: InstanceTable,
    /// Who listens to its calls; nobody, if zero.
    pub(crate) listeners: Listeners,
    /// Ends with the instance.
    _listener_guards: ListenerGuards,
    /// Which hazards are wanted; none if not any.
    pub(crate) finding_filter: Option<FindingFilter>,
    pub(crate) has_debug_utils: bool,
    pub(crate) has_debug_report: bool,
    /// What of that which the host writes into memory is wanted, if anything.
    pub(crate) memory_interest: Option<MemoryInterest>,
    /// Whether a capture has what the device writes into memory that the host can see.
    pub(crate) wants_results: bool,
    /// The version of Vulkan that the driver was asked for.
    pub(crate) api_version: u32,
    /// The version that the application asked for, where the driver was asked for more.
    pub(crate) application_version: Option<u32>,
    /// What shaders check themselves, and what of it is shown; none if nothing.
    pub(crate) gpu: Option<Arc<gpu::ChecksConfig>>,
    /// What surfaces of ours stand in the place of; none where there are none.
    pub(crate) headless_surfaces: Option<headless_surface::HeadlessInstanceFunctions>,
    /// Which frames somebody wants to see; none where not any.
    pub(crate) pictures: Option<Arc<pictures::ScreenshotFrames>>,
    /// Whether the application sees one descriptor set less.
    pub(crate) reserves_set: bool,
    pub(crate) messages: Arc<Messages>,
}

impl InstanceData {
    /// Messages wait at devices.
    pub(crate) fn deliver_messages(&self) {}

    /// Devices are lost, and say so themselves.
    pub(crate) fn on_device_lost(&self, _: Command) {}

    pub(crate) fn handles(&self) -> &'static HandleTable {
        &PROCESS_HANDLES
    }
}

thread_local! {
    /// Whether this thread is inside our `vkCreateInstance`. A second one then is our library further down the same
    /// chain, under its other name: it passes everything through.
    static IS_IN_CREATE_INSTANCE: Cell<bool> = const { Cell::new(false) };
}

pub(crate) unsafe extern "system" fn create<const CHAIN: usize>(
    p_create_info: Ptr<InstanceCreateInfo>,
    p_allocator: Ptr<Opaque>,
    p_instance: Ptr<Instance>,
) -> Result {
    let params = CreateInstanceParams { p_create_info, p_allocator, p_instance };
    let is_second = IS_IN_CREATE_INSTANCE.replace(true);
    // SAFETY: the loader calls the `vkCreateInstance` that it got from this layer, with what the application called it
    // with and a link for this layer in its chain.
    let work = || unsafe {
        if is_second {
            coverage::add_khronos_name();
        }
        if is_second || is_disabled() { create_passthrough::<CHAIN>(&params) } else { create_first::<CHAIN>(&params) }
    };
    let result = catch_panic("vkCreateInstance", || work().unwrap_or(FAILED), || FAILED);
    IS_IN_CREATE_INSTANCE.set(is_second);
    result
}

/// What comes next in the chain, and the call that goes there.
struct NextLayer {
    get_instance_proc_addr: GetProcAddr,
    get_physical_device_proc_addr: Option<GetProcAddr>,
    create: FnCreateInstance,
}

/// # Safety
///
/// The parameters must be those of a `vkCreateInstance` that the loader passed to this layer, which has not returned.
unsafe fn next_in_chain(params: &CreateInstanceParams) -> Option<NextLayer> {
    // SAFETY: VUID-vkCreateInstance-pCreateInfo-parameter, by the contract of this function; null is none.
    let chain = unsafe { params.p_create_info.as_ptr().as_ref() }?.p_next;
    // SAFETY: the contract of this function: the chain of a create info that the loader handed to this layer.
    let next = unsafe { take_next_link(chain, LOADER_INSTANCE_CREATE_INFO) }?;
    let get = next.get_instance_proc_addr?;
    // SAFETY: by the loader's layer interface the link has the next `vkGetInstanceProcAddr`, which gives
    // `vkCreateInstance` without an instance.
    let found = unsafe { next_proc_addr(get, 0, c"vkCreateInstance") };
    // SAFETY: null is none. `vkGetInstanceProcAddr` gives a function with the prototype of the command that it was
    // asked for.
    let create = unsafe { std::mem::transmute::<FnPtr, Option<FnCreateInstance>>(found) }?;
    Some(NextLayer { get_instance_proc_addr: get, get_physical_device_proc_addr: next.get_other_proc_addr, create })
}

/// A capture has all that the host writes; validation needs the indices of draws when they are submitted, and checks where
/// the host writes.
fn memory_interest(settings: &Settings) -> Option<MemoryInterest> {
    let is_captured = settings.capture.is_some();
    let of_draws = settings.sync && settings.sync_submit_time;
    let of_validation = if settings.sync_host_writes { MemoryInterest::Places } else { MemoryInterest::Indices };
    is_captured.then_some(MemoryInterest::Everything(settings.capture_memory)).or(of_draws.then_some(of_validation))
}

/// # Safety
///
/// The parameters must be those of a `vkCreateInstance` that the loader passed to this layer, which has not returned.
unsafe fn create_first<const CHAIN: usize>(params: &CreateInstanceParams) -> Option<Result> {
    // The chain is read before the next layer may change it.
    // SAFETY: VUID-vkCreateInstance-pCreateInfo-parameter, by the contract of this function; null is none. Callbacks in
    // the chain must stay callable until the instance is destroyed, and `Messages` uses them no longer.
    let wishes = unsafe { InstanceChainInfo::read(params.p_create_info.as_ptr().as_ref()?) };
    let (mut settings, problems) = lavascope_settings::sources::read(wishes.settings);
    if settings.break_on_hazard || !settings.break_first.is_empty() {
        (settings.sync, settings.sync_mode) = (true, SyncMode::Inline);
    }
    let messages = Arc::new(Messages::new(wishes.messengers, &settings));
    if !settings.caches {
        PROCESS_STATE.disable_caches();
    }
    let (listeners, listening) = start_listeners(&settings, &messages);
    for problem in &problems {
        report_setting_problem(&messages, problem.severity, &problem.source.to_string(), &problem.text());
    }
    // SAFETY: the contract of this function, which is that of `next_in_chain`.
    let next_link = unsafe { next_in_chain(params) }?;
    // SAFETY: the contract of this function; `way` was found in the chain of these parameters.
    let (result, raised) = unsafe { call_next(&next_link, params, listeners) };
    if result == Result::SUCCESS {
        let unseen = listeners.has_any(Listeners::SURFACES);
        let data = |mut table| InstanceData {
            get_instance_proc_addr: next_link.get_instance_proc_addr,
            get_physical_device_proc_addr: next_link.get_physical_device_proc_addr,
            headless_surfaces: unseen.then(|| headless_surface::HeadlessInstanceFunctions::begin(&mut table)),
            table,
            listeners,
            finding_filter: (settings.sync && listeners.has_any(Listeners::READER | Listeners::INLINE))
                .then(|| FindingFilter::of(&settings)),
            _listener_guards: listening,
            has_debug_utils: wishes.has_debug_utils,
            has_debug_report: wishes.has_debug_report,
            memory_interest: memory_interest(&settings),
            wants_results: settings.capture_results,
            api_version: raised.unwrap_or(wishes.api_version),
            application_version: raised.map(|_| asked_version(wishes.api_version)),
            gpu: gpu::ChecksConfig::from_settings(&settings, &messages).map(Arc::new),
            pictures: pictures::ScreenshotFrames::of(&settings).map(Arc::new),
            reserves_set: settings.gpu_reserve_binding_slot,
            messages,
        };
        // SAFETY: VUID-vkCreateInstance-pInstance-parameter: a place, which the call that succeeded has written.
        let instance = unsafe { *params.p_instance.as_ptr() };
        // SAFETY: the instance was just made by what comes next in the chain, whose `vkGetInstanceProcAddr` is
        // `way.get`.
        unsafe { register_instance::<CHAIN>(instance, next_link.get_instance_proc_addr, data) };
    } else if !listeners.is_empty() {
        creation_failure::report_instance(&messages, result);
    }
    Some(result)
}

/// Calls what comes next. Returns also the version that the driver was asked for, if that is more than the application
/// asks for.
///
/// # Safety
///
/// The parameters must be those of a `vkCreateInstance` that the loader passed to this layer, which has not returned,
/// and `way` must be what `next_in_chain` found for them.
unsafe fn call_next(
    next_link: &NextLayer,
    params: &CreateInstanceParams,
    listeners: Listeners,
) -> (Result, Option<u32>) {
    let CreateInstanceParams { p_create_info, p_allocator, p_instance } = *params;
    // SAFETY: the next `vkCreateInstance` of the chain, which gets what this layer got from the loader; `take_next_link`
    // has moved the chain on.
    let next = || unsafe { (next_link.create)(p_create_info, p_allocator, p_instance) };
    if listeners.is_empty() {
        return (next(), None);
    }
    let mut asked = None;
    let raised = || {
        let is_wanted = listeners.has_any(Listeners::GPU);
        // SAFETY: by the contract of this function these are the parameters of a valid `vkCreateInstance`.
        match is_wanted.then(|| unsafe { create_raised(next_link, params) }).flatten() {
            Some((result, version)) => {
                asked = Some(version);
                result
            }
            None => next(),
        }
    };
    // SAFETY: the contract of this function: parameters of this command, which obey its VUIDs; `raised` makes the call.
    let result = unsafe { forward_recorded(&PROCESS_HANDLES, listeners, Command::CreateInstance, params, raised) };
    (result, asked)
}

/// Asks the driver for the version that checks in shaders need. None if the application asks for it itself, or if it is
/// refused.
///
/// # Safety
///
/// As for [`call_next`].
unsafe fn create_raised(next_link: &NextLayer, params: &CreateInstanceParams) -> Option<(Result, u32)> {
    // SAFETY: VUID-vkCreateInstance-pCreateInfo-parameter, by the contract of this function; null is none.
    let info = unsafe { params.p_create_info.as_ptr().as_ref() }?;
    // SAFETY: the contract of this function: the info of a valid call.
    let raised = unsafe { RaisedVersion::of(info) }?;
    // SAFETY: the contract of this function: the chain of a create info that the loader handed to this layer.
    let position = unsafe { ChainPosition::of(info.p_next, LOADER_INSTANCE_CREATE_INFO) }?;
    let info = raised.info(info);
    // SAFETY: the next `vkCreateInstance` of the chain, with the application's parameters but for the version; all of it
    // outlives the call.
    let result = unsafe { (next_link.create)(Ptr::to(&info), params.p_allocator, params.p_instance) };
    if result == Result::SUCCESS {
        return Some((result, raised.version()));
    }
    // SAFETY: the contract of this function: the call has not returned.
    unsafe { position.restore() };
    None
}

/// The second of us in one chain, or the only one after everything was switched off.
///
/// # Safety
///
/// As for [`create_first`].
unsafe fn create_passthrough<const CHAIN: usize>(params: &CreateInstanceParams) -> Option<Result> {
    // SAFETY: the contract of this function, which is that of `next_in_chain`.
    let next_link = unsafe { next_in_chain(params) }?;
    // SAFETY: the next `vkCreateInstance` of the chain, which gets what this layer got from the loader; `take_next_link` has
    // moved the chain on.
    let result = unsafe { (next_link.create)(params.p_create_info, params.p_allocator, params.p_instance) };
    if result == Result::SUCCESS {
        let data = |table| InstanceData {
            get_instance_proc_addr: next_link.get_instance_proc_addr,
            get_physical_device_proc_addr: next_link.get_physical_device_proc_addr,
            table,
            listeners: Listeners::NONE,
            _listener_guards: ListenerGuards::default(),
            finding_filter: None,
            has_debug_utils: false,
            has_debug_report: false,
            memory_interest: None,
            wants_results: false,
            api_version: 0,
            application_version: None,
            gpu: None,
            headless_surfaces: None,
            pictures: None,
            reserves_set: false,
            messages: Arc::new(Messages::silent()),
        };
        // SAFETY: VUID-vkCreateInstance-pInstance-parameter: a place, which the call that succeeded has written.
        let instance = unsafe { *params.p_instance.as_ptr() };
        // SAFETY: the instance was just made by what comes next in the chain, whose `vkGetInstanceProcAddr` is
        // `way.get`.
        unsafe { register_instance::<CHAIN>(instance, next_link.get_instance_proc_addr, data) };
    }
    Some(result)
}

/// # Safety
///
/// The instance must have just been made, by a call that has not returned to the application, and `get` must be the
/// `vkGetInstanceProcAddr` of what comes next in its chain.
unsafe fn register_instance<const CHAIN: usize>(
    instance: Instance,
    get: GetProcAddr,
    data: impl FnOnce(InstanceTable) -> InstanceData,
) {
    // SAFETY: by the contract of this function `get` gives the functions of this instance, which are there until it is
    // destroyed. The table ends with it: `destroy` drops what has it.
    let table = unsafe { InstanceTable::load(|name| next_proc_addr(get, instance.0, name)) };
    // SAFETY: the contract of this function: an instance that is alive.
    let key = unsafe { dispatch_key(instance.0) };
    // SAFETY: only `destroy` removes it, and the application has no handle to destroy before `vkCreateInstance`
    // returns.
    let data = unsafe { CHAINS[CHAIN].instances.insert(key, data(table)) };
    if !data.listeners.is_empty() {
        // SAFETY: the instance of this key, which `destroy` takes out here before it drops it.
        unsafe { WATCHED_INSTANCES.insert(key, data) };
    }
    data.messages.set_alive(true);
}

/// What is needed for as long as an instance lives.
#[derive(Default)]
struct ListenerGuards {
    _reading: Option<ReadingGuard>,
    _inlining: Option<InlineGuard>,
}

/// Does what the settings say, and tells who listens to calls.
fn start_listeners(settings: &Settings, messages: &Arc<Messages>) -> (Listeners, ListenerGuards) {
    // Before a thread of ours begins.
    silence_panics();
    let complain = |setting: &str, text: &str| {
        report_setting_problem(messages, MessageSeverity::Error, &format!("setting {setting}"), text);
    };
    if let Some(folder) = &settings.report
        && let Err(text) = report_file::open(folder)
    {
        complain("report", &text);
    }
    coverage::add_instance(settings, messages);
    let mut listeners = Listeners::NONE;
    if let Some(output) = &settings.print {
        match PROCESS_STATE.start_printing(output) {
            Ok(()) => listeners |= Listeners::PRINTS,
            Err(text) => complain("print", &text),
        }
    }
    let mut listening = ListenerGuards::default();
    let is_inline = settings.sync_mode == SyncMode::Inline;
    if settings.stats || settings.sync && !is_inline || settings.capture.is_some() {
        let wanted = if settings.capture.is_some() {
            "capture"
        } else if settings.sync {
            "sync"
        } else {
            "stats"
        };
        match PROCESS_STATE.start_reading(settings) {
            Ok(reading_guard) => (listeners, listening._reading) = (listeners | Listeners::READER, Some(reading_guard)),
            Err(text) => {
                complain(wanted, &text);
                if settings.sync && !is_inline {
                    coverage::disarm("sync", &text);
                }
            }
        }
    }
    if settings.sync && is_inline {
        (listeners, listening._inlining) = (listeners | Listeners::INLINE, Some(inline_validation::start(settings)));
        inline_validation::watch_first_accesses(&debugger::first_access_keys(settings, |text| {
            complain("break_first", text)
        }));
    }
    let has_stacks = settings.backtrace != BacktraceMode::Off && settings.sync;
    if has_stacks && listeners.has_any(Listeners::READER | Listeners::INLINE) {
        PROCESS_STATE.start_stacks(settings.backtrace);
        listeners |= Listeners::STACKS;
    }
    if settings.gpu || settings.printf {
        listeners |= Listeners::GPU;
    }
    if pictures::ScreenshotFrames::of(settings).is_some() {
        listeners |= Listeners::PICTURES;
    }
    if settings.unseen_surfaces {
        listeners |= Listeners::SURFACES;
    }
    if !listeners.is_empty() {
        library::keep_loaded();
    }
    (listeners, listening)
}

/// A problem with the settings: `lavascope run` tells it at the end; without it the application or the log must.
pub(crate) fn report_setting_problem(messages: &Messages, severity: MessageSeverity, place: &str, text: &str) {
    report_problem(messages, severity, c"LAVASCOPE-Setting", (place, text));
}

/// The same with a message of this name.
pub(crate) fn report_problem(messages: &Messages, severity: MessageSeverity, name: &CStr, (place, text): (&str, &str)) {
    let word = match severity {
        MessageSeverity::Error => "error",
        MessageSeverity::Warning => "warning",
        MessageSeverity::Note => "note",
    };
    let text_with_place = format!("{place}: {text}");
    let message = OutgoingMessage::new(severity, name, &text_with_place);
    let is_reported = report_file::problem(word, place, text);
    messages.send_or_queue(&message, is_reported);
}

pub(crate) unsafe extern "system" fn destroy<const CHAIN: usize>(instance: Instance, p_allocator: Ptr<Opaque>) {
    // SAFETY: VUID-vkDestroyInstance-instance-parameter: null, or an instance that is alive until the call returns.
    let key = unsafe { dispatch_key(instance.0) };
    let data = catch_panic("vkDestroyInstance", || CHAINS[CHAIN].instances.remove(key), || None);
    let Some(data) = data else { return };
    let last_words = || data.gpu.iter().for_each(|it| it.report_unmatched(&data.messages));
    run_if_enabled("vkDestroyInstance", last_words, || ());
    data.messages.set_alive(false);
    let Some(destroy) = data.table.destroy_instance else { return };
    // SAFETY: the next `vkDestroyInstance` of the chain, with what the application passed to it.
    let next = || unsafe { destroy(instance, p_allocator) };
    if !data.listeners.is_empty() {
        WATCHED_INSTANCES.remove(key);
        let params = DestroyInstanceParams { instance, p_allocator };
        // SAFETY: the parameters are what the application called this command with, so that they obey its VUIDs, and
        // `next` makes the call.
        unsafe { forward_recorded(&PROCESS_HANDLES, data.listeners, Command::DestroyInstance, &params, next) };
    } else {
        next();
    }
    catch_panic("vkDestroyInstance", || end_instance(data), || ());
}

/// With the last instance the library may be unloaded, so no thread of ours may stay.
fn end_instance(data: Box<InstanceData>) {
    drop(data);
    if CHAINS.iter().all(|it| it.instances.len() == 0) {
        coverage::write();
        report_file::end();
    }
}

/// The process ends, or the library is unloaded.
extern "C" fn at_exit() {
    let work = || {
        pictures::end_process();
        PROCESS_STATE.end_process();
        inline_validation::end_process();
        debugger::report_unmet_first_access();
        coverage::write();
        coverage::log_summary();
        if CHAINS.iter().all(|it| it.instances.len() == 0 && it.devices.len() == 0) {
            CHAINS.iter().for_each(|chain| {
                chain.instances.release();
                chain.devices.release();
            });
            report_file::close();
        }
    };
    catch_panic("exit", work, || ());
}

// SAFETY: the section has functions without parameters, which the C library calls once when the process ends or the
// library is unloaded.
lavascope_platform::at_unload!(at_exit);

/// Whether a list of extensions has one of a name.
///
/// # Safety
///
/// The info must be that of a valid `vkCreateInstance` that has not returned.
pub(crate) unsafe fn has_extension(info: &InstanceCreateInfo, wanted: &std::ffi::CStr) -> bool {
    // SAFETY: VUID-VkInstanceCreateInfo-ppEnabledExtensionNames-parameter, by the contract of this function.
    unsafe { has_name(info.pp_enabled_extension_names, info.enabled_extension_count, wanted) }
}

/// Whether a list of names has one.
///
/// # Safety
///
/// `names` must lead to `count` null-terminated names, which stay unchanged until this returns.
pub(crate) unsafe fn has_name(names: Ptr<Ptr<u8>>, count: u32, wanted: &std::ffi::CStr) -> bool {
    (0..count as usize).any(|value| {
        // SAFETY: the contract of this function, for an index below the count; null is an application's mistake.
        let name = unsafe { names.as_ptr().add(value).as_ref() };
        // SAFETY: the contract of this function: each name is null-terminated.
        name.and_then(|it| unsafe { c_str(*it) }) == Some(wanted)
    })
}
