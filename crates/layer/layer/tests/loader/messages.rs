//! Messages of the layer reach the application's messengers, or the log, according to the settings; names and labels
//! are included.

use std::ffi::{CStr, c_char, c_void};
use std::sync::Mutex;

use ash::vk;
use serde_json::Value;

use crate::child::{ChildOutcome, child};
use crate::world::{Setup, World, entry};

/// A key that our layer does not know.
const UNKNOWN: (&CStr, &CStr) = (c"statz", c"on");
const DEBUG_UTILS: &CStr = c"VK_EXT_debug_utils";
const DEBUG_REPORT: &CStr = c"VK_EXT_debug_report";
/// A driver without any extension.
const NO_EXTENSIONS: &str = r#"{ "capabilities": { "none": {} } }"#;

/// A message that a callback received.
#[derive(Clone, Debug, PartialEq)]
struct ReceivedMessage {
    /// Which messenger.
    by: usize,
    severity: u32,
    name: Option<String>,
    number: i32,
    text: String,
}

static RECEIVED: Mutex<Vec<ReceivedMessage>> = Mutex::new(Vec::new());

fn take_received() -> Vec<ReceivedMessage> {
    std::mem::take(&mut *RECEIVED.lock().expect("callbacks do not panic"))
}

/// # Safety
///
/// `text` must be null, or lead to characters that end with a zero.
unsafe fn owned(text: *const c_char) -> Option<String> {
    // SAFETY: not null, so it ends with a zero, by the contract of this function.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}

unsafe extern "system" fn utils(
    severity: vk::DebugUtilsMessageSeverityFlagsEXT,
    _: vk::DebugUtilsMessageTypeFlagsEXT,
    data: *const vk::DebugUtilsMessengerCallbackDataEXT<'_>,
    by: *mut c_void,
) -> vk::Bool32 {
    // SAFETY: by PFN_vkDebugUtilsMessengerCallbackEXT, `data` leads to a valid structure until this returns: its texts
    // are null or end with a zero.
    let (name, number, text) = unsafe {
        let data = &*data;
        (owned(data.p_message_id_name), data.message_id_number, owned(data.p_message).unwrap_or_default())
    };
    let heard = ReceivedMessage { by: by.addr(), severity: severity.as_raw(), name, number, text };
    RECEIVED.lock().expect("callbacks do not panic").push(heard);
    vk::FALSE
}

unsafe extern "system" fn report(
    flags: vk::DebugReportFlagsEXT,
    _: vk::DebugReportObjectTypeEXT,
    _: u64,
    _: usize,
    number: i32,
    prefix: *const c_char,
    text: *const c_char,
    by: *mut c_void,
) -> vk::Bool32 {
    // SAFETY: by PFN_vkDebugReportCallbackEXT, both texts end with a zero and are valid until this returns.
    let (name, text) = unsafe { (owned(prefix), owned(text).unwrap_or_default()) };
    let heard = ReceivedMessage { by: by.addr(), severity: flags.as_raw(), name, number, text };
    RECEIVED.lock().expect("callbacks do not panic").push(heard);
    vk::FALSE
}

fn messenger(by: usize) -> vk::DebugUtilsMessengerCreateInfoEXT<'static> {
    use vk::DebugUtilsMessageSeverityFlagsEXT as Severity;
    vk::DebugUtilsMessengerCreateInfoEXT::default()
        .message_severity(Severity::ERROR | Severity::WARNING)
        .message_type(vk::DebugUtilsMessageTypeFlagsEXT::VALIDATION | vk::DebugUtilsMessageTypeFlagsEXT::GENERAL)
        .pfn_user_callback(Some(utils))
        .user_data(std::ptr::without_provenance_mut(by))
}

/// The messages without those of the loader.
fn ours(heard: Vec<ReceivedMessage>) -> Vec<ReceivedMessage> {
    heard.into_iter().filter(|it| it.text.contains("statz")).collect()
}

#[test]
fn a_chained_messenger_hears_of_the_settings() {
    let Some(outcome) = child("messages::a_chained_messenger_hears_of_the_settings", &[], || {
        let entry = entry();
        let setup = Setup { extensions: &[DEBUG_UTILS], settings: &[UNKNOWN], utils: Some(messenger(1)), ..Setup::OFF };
        let instance = setup.instance(&entry);
        let heard = ours(take_received());
        let [received_message] = &heard[..] else { panic!("one message, not {heard:?}") };
        assert_eq!(
            (received_message.by, received_message.severity),
            (1, vk::DebugUtilsMessageSeverityFlagsEXT::WARNING.as_raw())
        );
        assert_eq!(received_message.name.as_deref(), Some("LAVASCOPE-Setting"));
        assert_ne!(received_message.number, 0);
        assert!(received_message.text.contains("stats"), "what was probably meant: {}", received_message.text);
        let functions = ash::ext::debug_utils::Instance::new(&entry, &instance);
        // SAFETY: the structure lives until the call returns, and its parent is alive (lifetime).
        let created = unsafe { functions.create_debug_utils_messenger(&messenger(2), None) }.expect("it is made");
        send(&functions, c"from the application");
        // SAFETY: nobody has the handle afterwards, and no other thread makes calls that could call back (lifetime,
        // owner).
        unsafe { functions.destroy_debug_utils_messenger(created, None) };
        send(&functions, c"nobody is there");
        let heard = take_received();
        let texts: Vec<(usize, &str)> = heard.iter().map(|it| (it.by, it.text.as_str())).collect();
        assert_eq!(texts, [(2, "from the application")], "once, and by the one that was there");
        // SAFETY: nothing is pending that uses it, and nobody has the handle afterwards (lifetime).
        unsafe { instance.destroy_instance(None) };
        assert_eq!(ours(take_received()), []);
    }) else {
        return;
    };
    assert!(!outcome.stderr.contains("statz"), "a message that was heard is not logged: {}", outcome.stderr);
}

#[test]
fn a_gpu_assisted_setting_that_cannot_work_is_an_error_under_its_khronos_name() {
    let test = "messages::a_gpu_assisted_setting_that_cannot_work_is_an_error_under_its_khronos_name";
    let ran = child(test, &[], || {
        let entry = entry();
        let heard_with = |settings: &[(&CStr, &CStr)]| {
            let setup = Setup { extensions: &[DEBUG_UTILS], settings, utils: Some(messenger(1)), ..Setup::OFF };
            let instance = setup.instance(&entry);
            // SAFETY: nothing is pending that uses it, and nobody has the handle afterwards (lifetime).
            unsafe { instance.destroy_instance(None) };
            take_received().into_iter().filter(|it| it.text.contains("setting ")).collect::<Vec<_>>()
        };
        let off = [c"gpu_shader_checks", c"gpu_acceleration_structures"].map(|it| (it, c"off"));
        let all = [vec![(c"gpu", c"on")], off.to_vec()].concat();
        let heard = heard_with(&all);
        let [received_message] = &heard[..] else { panic!("one message, not {heard:?}") };
        assert_eq!(received_message.severity, vk::DebugUtilsMessageSeverityFlagsEXT::ERROR.as_raw());
        assert_eq!(received_message.name.as_deref(), Some("UNASSIGNED-GPU-Assisted-Validation"));
        assert!(received_message.text.starts_with("setting gpu: nothing is checked"), "{}", received_message.text);
        // An expression that is none.
        let heard = heard_with(&[(c"gpu", c"on"), (c"gpu_shaders", c"(")]);
        let [received_message] = &heard[..] else { panic!("one message, not {heard:?}") };
        assert_eq!(received_message.name.as_deref(), Some("UNASSIGNED-GPU-Assisted-Validation"));
        // One of the two suffices, and a disabled feature need not work.
        assert_eq!(heard_with(&[(c"gpu", c"on"), off[0]]), []);
        assert_eq!(heard_with(&off), []);
    });
    assert!(ran.is_none_or(|it| it.stderr.is_empty()));
}

fn send(functions: &ash::ext::debug_utils::Instance, text: &CStr) {
    let data = vk::DebugUtilsMessengerCallbackDataEXT::default().message(text);
    // SAFETY: `data` and its text live until the call returns, and the instance has the extension (lifetime).
    unsafe {
        functions.submit_debug_utils_message(
            vk::DebugUtilsMessageSeverityFlagsEXT::ERROR,
            vk::DebugUtilsMessageTypeFlagsEXT::GENERAL,
            &data,
        );
    }
}

#[test]
fn a_chained_report_callback_hears_of_the_settings() {
    let Some(outcome) = child("messages::a_chained_report_callback_hears_of_the_settings", &[], || {
        let entry = entry();
        let callback = vk::DebugReportCallbackCreateInfoEXT::default()
            .flags(vk::DebugReportFlagsEXT::WARNING)
            .pfn_callback(Some(report))
            .user_data(std::ptr::without_provenance_mut(7));
        let setup = Setup { extensions: &[DEBUG_REPORT], settings: &[UNKNOWN], report: Some(callback), ..Setup::OFF };
        let instance = setup.instance(&entry);
        let heard = ours(take_received());
        let [received_message] = &heard[..] else { panic!("one message, not {heard:?}") };
        assert_eq!((received_message.by, received_message.severity), (7, vk::DebugReportFlagsEXT::WARNING.as_raw()));
        assert_eq!(received_message.name.as_deref(), Some("Lavascope"));
        // SAFETY: nothing is pending that uses it, and nobody has the handle afterwards (lifetime).
        unsafe { instance.destroy_instance(None) };
    }) else {
        return;
    };
    assert!(!outcome.stderr.contains("statz"));
}

/// The outcome of an instance with an unknown key and these settings too, and how many messages its messenger heard.
fn outcome_of(
    name: &str,
    settings: &[(&CStr, &CStr)],
    has_messenger: bool,
    heard_count: usize,
) -> Option<ChildOutcome> {
    child(name, &[], || {
        let entry = entry();
        let settings = [&[UNKNOWN], settings].concat();
        let utils = has_messenger.then(|| messenger(1));
        let setup = Setup { extensions: &[DEBUG_UTILS], settings: &settings, utils, ..Setup::OFF };
        let instance = setup.instance(&entry);
        // SAFETY: nothing is pending that uses it, and nobody has the handle afterwards (lifetime).
        unsafe { instance.destroy_instance(None) };
        assert_eq!(ours(take_received()).len(), heard_count);
    })
}

#[test]
fn without_a_messenger_the_log_says_it() {
    let Some(outcome) = outcome_of("messages::without_a_messenger_the_log_says_it", &[], false, 0) else { return };
    let warnings = outcome.stderr.lines().filter(|it| it.starts_with("lavascope: warning: ") && it.contains("statz"));
    assert_eq!(warnings.count(), 1, "{}", outcome.stderr);
}

#[test]
fn a_filtered_message_is_sent_nowhere() {
    let settings = [(c"message_id_filter", c"LAVASCOPE-Setting")];
    let Some(outcome) = outcome_of("messages::a_filtered_message_is_sent_nowhere", &settings, true, 0) else { return };
    assert!(!outcome.stderr.contains("statz"), "{}", outcome.stderr);
}

#[test]
fn messages_can_be_json() {
    let settings = [(c"message_format_json", c"on")];
    let Some(outcome) = outcome_of("messages::messages_can_be_json", &settings, false, 0) else { return };
    let line = outcome.stderr.lines().find(|it| it.contains("statz")).expect("it is logged");
    let value: Value = serde_json::from_str(line).expect("the line is JSON");
    assert_eq!((value["Severity"].as_str(), value["VUID"].as_str()), (Some("Warning"), Some("LAVASCOPE-Setting")));
    assert!(value["MessageID"].as_str().is_some_and(|it| it.starts_with("0x")));
    assert!(value["MainMessage"].as_str().is_some_and(|it| it.contains("statz")));
}

#[test]
fn messages_can_be_ignored() {
    let settings = [(c"debug_action", c"VK_DBG_LAYER_ACTION_IGNORE")];
    let Some(outcome) = outcome_of("messages::messages_can_be_ignored", &settings, true, 0) else { return };
    assert!(!outcome.stderr.contains("statz"), "{}", outcome.stderr);
}

#[test]
fn messages_can_be_logged_only() {
    let settings = [(c"debug_action", c"VK_DBG_LAYER_ACTION_LOG_MSG")];
    let Some(outcome) = outcome_of("messages::messages_can_be_logged_only", &settings, true, 0) else { return };
    assert!(outcome.stderr.contains("statz"), "{}", outcome.stderr);
}

#[test]
fn messages_can_be_logged_and_heard() {
    let settings = [(c"debug_action", c"VK_DBG_LAYER_ACTION_LOG_MSG,VK_DBG_LAYER_ACTION_CALLBACK")];
    let Some(outcome) = outcome_of("messages::messages_can_be_logged_and_heard", &settings, true, 1) else { return };
    assert!(outcome.stderr.contains("statz"), "{}", outcome.stderr);
}

#[test]
fn the_log_can_be_a_file() {
    let settings = [(c"log_filename", c"log.txt")];
    let Some(outcome) = outcome_of("messages::the_log_can_be_a_file", &settings, false, 0) else { return };
    assert!(!outcome.stderr.contains("statz") && outcome.file("log.txt").contains("statz"), "{}", outcome.stderr);
}

#[test]
fn severities_that_are_not_wanted_are_not_logged() {
    let settings = [(c"report_flags", c"error")];
    let name = "messages::severities_that_are_not_wanted_are_not_logged";
    let Some(outcome) = outcome_of(name, &settings, false, 0) else { return };
    assert!(!outcome.stderr.contains("statz"), "{}", outcome.stderr);
}

/// Names an object and labels commands, on a device of whichever driver.
fn name_and_label() {
    let entry = entry();
    let world = Setup { extensions: &[DEBUG_UTILS], ..Setup::OFF }.world(&entry);
    let functions = ash::ext::debug_utils::Device::new(&world.instance, &world.device);
    let (buffer, pool) = (world.create_buffer(), world.command_pool());
    let command_buffer = world.command_buffers(pool, 1)[0];
    let label = vk::DebugUtilsLabelEXT::default().label_name(c"the shadows");
    // SAFETY: each object is created, used and destroyed in this order in this block or by the caller, what structures
    // point to lives in this frame, and only this thread uses the queue and the pool; work is waited for before its
    // objects end (lifetime, owner).
    unsafe {
        let name = vk::DebugUtilsObjectNameInfoEXT::default().object_handle(buffer).object_name(c"the tea");
        functions.set_debug_utils_object_name(&name).expect("a name can be given");
        let info = vk::CommandBufferBeginInfo::default();
        world.device.begin_command_buffer(command_buffer, &info).expect("the null driver records");
        functions.cmd_begin_debug_utils_label(command_buffer, &label);
        world.device.cmd_fill_buffer(command_buffer, buffer, 0, 16, 1);
        functions.cmd_end_debug_utils_label(command_buffer);
        world.device.end_command_buffer(command_buffer).expect("the null driver records");
        functions.queue_begin_debug_utils_label(world.queue, &label);
        world.submit(command_buffer);
        functions.queue_insert_debug_utils_label(world.queue, &label);
        functions.queue_end_debug_utils_label(world.queue);
        world.device.destroy_command_pool(pool, None);
    }
    destroy(world, buffer);
}

fn destroy(world: World, buffer: vk::Buffer) {
    world.destroy_buffer(buffer);
    world.destroy();
}

fn check_names(printed: &str) {
    assert!(printed.contains("the shadows") && !printed.contains("#unknown"), "{printed}");
    for command in ["vkSetDebugUtilsObjectNameEXT", "vkCmdBeginDebugUtilsLabelEXT", "vkQueueInsertDebugUtilsLabelEXT"] {
        assert!(printed.lines().any(|it| it == command), "{command} in\n{printed}");
    }
    let fill = printed.split("vkCmdFillBuffer").nth(1).expect("it was called");
    let line = fill.lines().find(|it| it.contains("dstBuffer")).expect("it has a buffer");
    assert!(line.contains("VkBuffer#") && line.contains("the tea"), "{line}");
}

#[test]
fn names_and_labels_are_printed() {
    let environment = [("LAVASCOPE_PRINT", "{folder}/print.txt")];
    let Some(outcome) = child("messages::names_and_labels_are_printed", &environment, name_and_label) else { return };
    check_names(&outcome.file("print.txt"));
}

#[test]
fn names_and_labels_are_printed_though_the_driver_has_none() {
    let name = "messages::names_and_labels_are_printed_though_the_driver_has_none";
    let profile = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("no-extensions.json");
    std::fs::write(&profile, NO_EXTENSIONS).expect("the build folder can be written");
    let profile = profile.to_string_lossy();
    let environment = [("LAVASCOPE_PRINT", "{folder}/print.txt"), ("LAVASCOPE_NULL_PROFILE", &profile[..])];
    let Some(outcome) = child(name, &environment, name_and_label) else { return };
    check_names(&outcome.file("print.txt"));
}

#[test]
fn names_and_labels_do_no_harm_where_nobody_listens() {
    let name = "messages::names_and_labels_do_no_harm_where_nobody_listens";
    let profile = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("no-extensions-off.json");
    std::fs::write(&profile, NO_EXTENSIONS).expect("the build folder can be written");
    child(name, &[("LAVASCOPE_NULL_PROFILE", &profile.to_string_lossy())], name_and_label);
}
