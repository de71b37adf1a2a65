//! Settings for hazards and messages, from every source.

use std::ffi::{CStr, CString};
use std::sync::atomic::{AtomicU32, Ordering};

use ash::vk;
use serde_json::Value;

use crate::child::{ChildOutcome, child};
use crate::hazards::{BufferApp, CODE, DEBUG_UTILS, ReceivedMessage, take_received};
use crate::world::{Setup, entry};

/// The environment variable with the number of the test case.
const CASE: &str = "LAYER_TEST_CASE";
const SYNC_WORD: &str = "VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT";
const SYNC_FEATURE: vk::ValidationFeatureEnableEXT = vk::ValidationFeatureEnableEXT::SYNCHRONIZATION_VALIDATION;

/// Where a setting comes from.
#[derive(Clone, Copy, Debug)]
enum SettingOrigin {
    /// A variable, in whose name `*` is the setting.
    Variable(&'static str),
    /// The file, with the prefix of a layer.
    File(&'static str),
    /// `VK_EXT_layer_settings`, for our name,
    Own,
    /// and for the other.
    Khronos,
}

/// Every source, for settings that have the same name in both layers.
const SOURCES: [SettingOrigin; 7] = [
    SettingOrigin::Variable("LAVASCOPE_*"),
    SettingOrigin::Variable("VK_LAYER_*"),
    SettingOrigin::Variable("VK_VALIDATION_*"),
    SettingOrigin::File("khronos_validation"),
    SettingOrigin::File("lavascope_inspect"),
    SettingOrigin::Own,
    SettingOrigin::Khronos,
];

/// Settings in a child process: those that the child must set itself are set there.
struct Case {
    from: SettingOrigin,
    settings: Vec<(&'static str, String)>,
}

impl Case {
    /// The variables of the child's environment.
    fn environment(&self) -> Vec<(String, String)> {
        match self.from {
            SettingOrigin::Variable(form) => {
                let variable = |name: &str| form.replace('*', &name.to_ascii_uppercase());
                self.settings.iter().map(|(name, value)| (variable(name), value.clone())).collect()
            }
            SettingOrigin::File(_) | SettingOrigin::Own | SettingOrigin::Khronos => Vec::new(),
        }
    }

    /// In the child: an application under these settings, and validated.
    fn app(&self, has_messenger: bool) -> BufferApp {
        if let SettingOrigin::File(prefix) = self.from {
            let lines = self.settings.iter().map(|(name, value)| format!("{prefix}.{name} = {value}\n"));
            std::fs::write("vk_layer_settings.txt", lines.collect::<String>()).expect("the folder is ours");
        }
        let owned: Vec<(CString, CString)> =
            self.settings.iter().map(|(name, value)| (c_string(name), c_string(value))).collect();
        let mut settings: Vec<(&CStr, &CStr)> = owned.iter().map(|it| (&*it.0, &*it.1)).collect();
        let mut khronos = Vec::new();
        match self.from {
            SettingOrigin::Own => {}
            SettingOrigin::Khronos => khronos = std::mem::take(&mut settings),
            SettingOrigin::Variable(_) | SettingOrigin::File(_) => settings.clear(),
        }
        let features = [SYNC_FEATURE];
        let setup = Setup {
            extensions: &[DEBUG_UTILS],
            settings: &settings,
            khronos_settings: &khronos,
            features: &features,
            ..Setup::OFF
        };
        if has_messenger { BufferApp::of(leaked_entry(), setup) } else { BufferApp::silent_of(leaked_entry(), setup) }
    }
}

/// The loader, for as long as the process lives.
fn leaked_entry() -> &'static ash::Entry {
    Box::leak(Box::new(entry()))
}

fn c_string(text: &str) -> CString {
    CString::new(text).expect("a text without zeros")
}

/// Runs a body once for each source, in a child process, and then checks the result.
fn for_each_source(
    name: &str,
    settings: &[(&'static str, &str)],
    body: impl Fn(&Case),
    look: impl Fn(&ChildOutcome, SettingOrigin),
) {
    for (index, from) in SOURCES.into_iter().enumerate() {
        let case = Case { from, settings: settings.iter().map(|it| (it.0, it.1.to_owned())).collect() };
        let mut environment = case.environment();
        environment.push((CASE.to_owned(), index.to_string()));
        let environment: Vec<(&str, &str)> = environment.iter().map(|it| (&*it.0, &*it.1)).collect();
        let is_here = std::env::var(CASE).is_ok_and(|it| it != index.to_string());
        // A child is one of the cases.
        if is_here {
            continue;
        }
        match child(name, &environment, || body(&case)) {
            Some(outcome) => look(&outcome, from),
            None => return,
        }
    }
}

/// Two fills that overlap, and their messages.
fn one_hazard(case: &Case) -> Vec<ReceivedMessage> {
    let app = case.app(true);
    app.record(0, &[(0, 1), (32, 2)]);
    app.destroy();
    take_received()
}

/// The same without anybody who hears it.
fn one_silent_hazard(case: &Case) {
    let app = case.app(false);
    app.record(0, &[(0, 1), (32, 2)]);
    app.destroy();
}

/// One command buffer that conflicts with itself, submitted six times: how often that was heard.
fn five_hazards(case: &Case) -> usize {
    let app = case.app(true);
    app.record(0, &[(0, 1)]);
    (0..6).for_each(|_| app.submit(0).expect("the null driver submits"));
    app.destroy();
    take_received().len()
}

/// How validation is asked for: variables, lines of the file, settings for the two layers, features.
type ValidationRequest<'a> = (
    &'a [(&'a str, &'a str)],
    &'a str,
    &'a [(&'a CStr, &'a CStr)],
    &'a [(&'a CStr, &'a CStr)],
    &'a [vk::ValidationFeatureEnableEXT],
);

#[test]
fn validation_can_be_asked_for_in_every_way() {
    let name = "settings::validation_can_be_asked_for_in_every_way";
    let line = format!("khronos_validation.enables = {SYNC_WORD}\n");
    let ways: [ValidationRequest<'_>; 14] = [
        (&[], "lavascope_inspect.sync = off\n", &[], &[], &[]),
        (&[], "", &[], &[], &[]),
        (&[("LAVASCOPE_SYNC", "1")], "", &[], &[], &[]),
        (&[("VK_LAYER_VALIDATE_SYNC", "1")], "", &[], &[], &[]),
        (&[("VK_VALIDATION_VALIDATE_SYNC", "true")], "", &[], &[], &[]),
        (&[("VK_KHRONOS_VALIDATION_VALIDATE_SYNC", "on")], "", &[], &[], &[]),
        (&[("VK_LAYER_ENABLES", SYNC_WORD)], "", &[], &[], &[]),
        (&[], "khronos_validation.validate_sync = true\n", &[], &[], &[]),
        (&[], &line, &[], &[], &[]),
        (&[], "lavascope_inspect.sync = on\n", &[], &[], &[]),
        (&[], "", &[(c"sync", c"on")], &[], &[]),
        (&[], "", &[(c"validate_sync", c"true")], &[], &[]),
        (&[], "", &[], &[(c"validate_sync", c"true")], &[]),
        (&[], "", &[], &[], &[SYNC_FEATURE]),
    ];
    for (index, (variables, file, settings, khronos_settings, features)) in ways.into_iter().enumerate() {
        let number = index.to_string();
        if std::env::var(CASE).is_ok_and(|it| it != number) {
            continue;
        }
        let environment = [variables, &[(CASE, &number)]].concat();
        let outcome = child(name, &environment, || {
            std::fs::write("vk_layer_settings.txt", file).expect("the folder is ours");
            let setup = Setup { extensions: &[DEBUG_UTILS], settings, khronos_settings, features, ..Setup::OFF };
            let app = BufferApp::of(leaked_entry(), setup);
            app.record(0, &[(0, 1), (32, 2)]);
            app.destroy();
            assert_eq!(take_received().len(), usize::from(index > 0), "way {index}");
        });
        if outcome.is_none() {
            return;
        }
    }
}

#[test]
fn a_message_is_filtered_by_name_and_by_number() {
    let name = "settings::a_message_is_filtered_by_name_and_by_number";
    // One of them is another message, and in the child the last variable wins; so all are in one list.
    let lists = [CODE, "0x5c0ec5d6", "1544472022", "SYNC-HAZARD-WRITE_AFTER_WRITE"];
    let whole = format!("VUID-other,{}", lists[2]);
    for_each_source(name, &[("message_id_filter", &whole)], |case| assert_eq!(one_hazard(case), []), |_, _| ());
    for (index, filter) in lists.iter().enumerate() {
        let case = (100 + index).to_string();
        if std::env::var(CASE).is_ok_and(|it| it != case) {
            continue;
        }
        let environment = [("VK_LAYER_MESSAGE_ID_FILTER", *filter), (CASE, &case)];
        let body = || assert_eq!(one_hazard(&Case { from: SOURCES[1], settings: Vec::new() }), [], "{filter}");
        if child(name, &environment, body).is_none() {
            return;
        }
    }
}

#[test]
fn equal_messages_stop_where_the_settings_say() {
    let name = "settings::equal_messages_stop_where_the_settings_say";
    for_each_source(name, &[("duplicate_message_limit", "2")], |case| assert_eq!(five_hazards(case), 2), |_, _| ());
}

#[test]
fn the_limit_can_be_switched_off() {
    let name = "settings::the_limit_can_be_switched_off";
    let settings = [("duplicate_message_limit", "2"), ("enable_message_limit", "false")];
    for_each_source(name, &settings, |case| assert_eq!(five_hazards(case), 5), |_, _| ());
}

#[test]
fn a_hazard_can_be_reported_as_json() {
    let body = |case: &Case| {
        let heard = one_hazard(case);
        let [received_message] = &heard[..] else { panic!("one message, not {heard:#?}") };
        let value: Value = serde_json::from_str(&received_message.text).expect("JSON");
        assert_eq!((&value["Severity"], &value["VUID"]), (&"Error".into(), &CODE.into()));
        assert_eq!((&value["Function"], &value["MessageID"]), (&"vkCmdFillBuffer".into(), &"0x5c0ec5d6".into()));
        let object = &value["Objects"][0];
        assert_eq!((&object["type"], &object["name"]), (&"VkBuffer".into(), &"".into()));
        assert_eq!(object["handle"], format!("{:#x}", received_message.objects[0].1));
        let text = value["MainMessage"].as_str().expect("a text");
        assert!(text.starts_with("WRITE_AFTER_WRITE hazard detected. vkCmdFillBuffer writes to"), "{text}");
    };
    for_each_source("settings::a_hazard_can_be_reported_as_json", &[("message_format_json", "true")], body, |_, _| ());
}

#[test]
fn the_log_goes_into_a_file() {
    let name = "settings::the_log_goes_into_a_file";
    let look = |outcome: &ChildOutcome, from| {
        assert!(outcome.file("log.txt").contains(CODE), "{from:?}");
        assert!(!outcome.stderr.contains(CODE), "{from:?}: {}", outcome.stderr);
    };
    for_each_source(name, &[("log_filename", "log.txt")], one_silent_hazard, look);
}

#[test]
fn only_what_is_flagged_is_logged() {
    let name = "settings::only_what_is_flagged_is_logged";
    let look = |outcome: &ChildOutcome, from| assert!(!outcome.stderr.contains(CODE), "{from:?}: {}", outcome.stderr);
    for_each_source(name, &[("report_flags", "warn,info")], one_silent_hazard, look);
}

#[test]
fn hazards_can_be_logged_beside_being_heard() {
    let name = "settings::hazards_can_be_logged_beside_being_heard";
    let settings = [("debug_action", "VK_DBG_LAYER_ACTION_LOG_MSG,VK_DBG_LAYER_ACTION_CALLBACK")];
    let look = |outcome: &ChildOutcome, from| assert!(outcome.stderr.contains(CODE), "{from:?}: {}", outcome.stderr);
    for_each_source(name, &settings, |case| assert_eq!(one_hazard(case).len(), 1), look);
}

static TRAPS: AtomicU32 = AtomicU32::new(0);

extern "C" fn trapped(_: i32) {
    TRAPS.fetch_add(1, Ordering::Relaxed);
}

unsafe extern "C" {
    fn signal(number: i32, handler: usize) -> usize;
}

#[test]
fn a_hazard_can_stop_a_debugger() {
    let body = |case: &Case| {
        const SIGTRAP: i32 = 5;
        // SAFETY: `trapped` has the type of a handler and only adds to an atomic, which is async-signal-safe.
        unsafe { signal(SIGTRAP, (trapped as extern "C" fn(i32)) as usize) };
        let app = case.app(true);
        app.begin(0);
        app.fill(0, 0, 1);
        assert_eq!(TRAPS.load(Ordering::Relaxed), 0);
        app.fill(0, 32, 2);
        assert_eq!(TRAPS.load(Ordering::Relaxed), 1, "inside of the call");
        app.end(0);
        app.destroy();
    };
    for_each_source(
        "settings::a_hazard_can_stop_a_debugger",
        &[("debug_action", "VK_DBG_LAYER_ACTION_BREAK")],
        body,
        |_, _| (),
    );
}

#[test]
fn properties_are_there_where_they_are_wanted() {
    let body = |case: &Case| {
        let heard = one_hazard(case);
        let (_, facts) = heard[0].text.split_once("\n[Extra properties]\n").expect("properties");
        let keys: Vec<&str> = facts.lines().filter_map(|it| Some(it.split_once(" = ")?.0)).collect();
        let first = ["message_type", "hazard_type", "access", "prior_access", "write_barriers", "command"];
        assert_eq!(keys, [&first[..], &["prior_command", "seq_no", "reset_no"]].concat());
        assert!(facts.starts_with("message_type = BufferError\nhazard_type = WRITE_AFTER_WRITE\n"), "{facts}");
    };
    // By the name that the Khronos layer has for it.
    let name = "settings::properties_are_there_where_they_are_wanted";
    for_each_source(name, &[("syncval_message_extra_properties", "true")], body, |_, _| ());
}

/// Whether a messenger hears of a hazard in `Frame::Fills` on the buffer `tea`.
fn is_reported_with(rule: &'static CStr) -> bool {
    let setup = Setup { extensions: &[DEBUG_UTILS], settings: &[(c"sync", c"on"), (c"ignore", rule)], ..Setup::OFF };
    let app = BufferApp::of(leaked_entry(), setup);
    app.name(app.buffer, c"tea");
    label_and_fill(&app);
    app.destroy();
    !take_received().is_empty()
}

fn label_and_fill(app: &BufferApp) {
    let functions = ash::ext::debug_utils::Device::new(&app.world.instance, &app.world.device);
    let label = |name| vk::DebugUtilsLabelEXT::default().label_name(name);
    app.begin(0);
    // SAFETY: recorded here, with live objects (lifetime, owner).
    unsafe {
        functions.cmd_begin_debug_utils_label(app.commands[0], &label(c"Frame"));
        functions.cmd_begin_debug_utils_label(app.commands[0], &label(c"Fills"));
        app.fill(0, 0, 1);
        app.fill(0, 32, 2);
        functions.cmd_end_debug_utils_label(app.commands[0]);
        functions.cmd_end_debug_utils_label(app.commands[0]);
    }
    app.end(0);
}

#[test]
fn findings_can_be_ignored_by_code_label_and_object() {
    let name = "settings::findings_can_be_ignored_by_code_label_and_object";
    let Some(outcome) = child(name, &[], || {
        assert!(!is_reported_with(c"code=WRITE-AFTER-WRITE$"));
        assert!(!is_reported_with(c"code=READ,label=^Frame::Fills$"));
        assert!(!is_reported_with(c"object=^te.$"));
        assert!(is_reported_with(c"code=^WRITE,label=^Fills,object=coffee"));
    }) else {
        return;
    };
    for rule in ["code=WRITE-AFTER-WRITE$", "label=^Frame::Fills$", "object=^te.$"] {
        assert!(outcome.stderr.contains(&format!("once: ignored by {rule}\n")), "{rule}: {}", outcome.stderr);
    }
}

#[test]
fn what_is_ignored_is_counted_in_the_report() {
    let name = "settings::what_is_ignored_is_counted_in_the_report";
    let environment = [
        ("LAVASCOPE_REPORT", "{folder}/report"),
        ("LAVASCOPE_SYNC", "1"),
        ("LAVASCOPE_IGNORE", "object=^VkBuffer, 256 bytes"),
    ];
    let Some(outcome) = child(name, &environment, || {
        let app = BufferApp::of(leaked_entry(), Setup { extensions: &[DEBUG_UTILS], ..Setup::OFF });
        app.record(0, &[(0, 1)]);
        (0..6).for_each(|_| app.submit(0).expect("the null driver submits"));
        app.destroy();
        assert_eq!(take_received(), []);
    }) else {
        return;
    };
    assert_eq!(outcome.of_kind("finding"), Vec::<Value>::new());
    let ignored = outcome.of_kind("ignored").pop().expect("it is counted");
    assert_eq!(ignored, serde_json::json!([{ "rule": "object=^VkBuffer, 256 bytes", "causes": 1, "count": 5 }]));
}

#[test]
fn a_rule_that_is_none_is_reported() {
    let name = "settings::a_rule_that_is_none_is_reported";
    let Some(outcome) = child(name, &[("LAVASCOPE_IGNORE", "object=(a")], || {
        let instance = Setup::OFF.instance(leaked_entry());
        // SAFETY: nothing is pending that uses it, and nobody has the handle afterwards (lifetime).
        unsafe { instance.destroy_instance(None) };
    }) else {
        return;
    };
    let text =
        "lavascope: error: LAVASCOPE_IGNORE: ignore cannot contain this: `object=(a` is not a regular expression";
    assert!(outcome.stderr.contains(text), "{}", outcome.stderr);
}

#[test]
fn a_message_has_the_labels_of_queue_and_commands() {
    child("settings::a_message_has_the_labels_of_queue_and_commands", &[], || {
        let app = BufferApp::new(leaked_entry(), &[(c"sync", c"on"), (c"message_format_json", c"on")]);
        label_and_fill(&app);
        let heard = take_received();
        assert_eq!(heard[0].labels, [vec![], vec!["Frame".to_owned(), "Fills".to_owned()]]);
        let value: Value = serde_json::from_str(&heard[0].text).expect("JSON");
        assert_eq!(value["DebugRegion"], "Frame::Fills");
        let text = value["MainMessage"].as_str().expect("a text");
        assert!(text.contains("vkCmdFillBuffer[Frame::Fills] writes to"), "{text}");
        let functions = ash::ext::debug_utils::Device::new(&app.world.instance, &app.world.device);
        let label = vk::DebugUtilsLabelEXT::default().label_name(c"Present");
        // SAFETY: a live queue that only this thread uses (lifetime, owner).
        unsafe { functions.queue_begin_debug_utils_label(app.world.queue, &label) };
        app.submit(0).expect("the null driver submits");
        app.submit(0).expect("the null driver submits");
        let heard = take_received();
        assert_eq!(heard[0].labels[0], ["Present"]);
        assert!(heard[0].text.contains("vkCmdFillBuffer[Present::Frame::Fills] (from VkCommandBuffer"), "{heard:?}");
        // SAFETY: a live queue that only this thread uses, with the label open that began above (lifetime, owner).
        unsafe { functions.queue_end_debug_utils_label(app.world.queue) };
        app.destroy();
    });
}

#[test]
fn races_of_events_are_reported_with_the_event() {
    child("settings::races_of_events_are_reported_with_the_event", &[], || {
        let app = BufferApp::new(leaked_entry(), &[(c"sync", c"on")]);
        let device = &app.world.device;
        // SAFETY: the structure lives until the call returns, and its parent is alive (lifetime).
        let event = unsafe { device.create_event(&vk::EventCreateInfo::default(), None) }.expect("it is made");
        app.name(event, c"filled");
        app.begin(0);
        // SAFETY: recorded here, with live objects (lifetime, owner).
        unsafe {
            device.cmd_set_event(app.commands[0], event, vk::PipelineStageFlags::TRANSFER);
            device.cmd_reset_event(app.commands[0], event, vk::PipelineStageFlags::COMPUTE_SHADER);
        }
        app.end(0);
        app.submit(0).expect("the null driver submits");
        let heard = take_received();
        let [received_message] = &heard[..] else { panic!("one message, not {heard:#?}") };
        assert_eq!(received_message.name, "SYNC-vkCmdResetEvent-set-race");
        assert_eq!(received_message.severity, vk::DebugUtilsMessageSeverityFlagsEXT::ERROR);
        let text = "vkCmdResetEvent() resets VkEvent#0 \"filled\" with no execution dependency on vkCmdSetEvent.";
        assert!(received_message.text.starts_with(text), "{}", received_message.text);
        assert_eq!(
            received_message.objects[0],
            (vk::ObjectType::EVENT, vk::Handle::as_raw(event), Some("filled".to_owned()))
        );
        app.wait();
        // SAFETY: the queue was waited for, and nobody has the handle afterwards (lifetime).
        unsafe { device.destroy_event(event, None) };
        app.destroy();
        assert_eq!(take_received(), []);
    });
}

/// Calls from two functions of their own.
#[inline(never)]
fn fill_first(app: &BufferApp) {
    app.fill(0, 0, 1);
    std::hint::black_box(());
}

#[inline(never)]
fn fill_second(app: &BufferApp) {
    app.fill(0, 32, 2);
    std::hint::black_box(());
}

fn fill_with_stacks(mode: &'static CStr) {
    let settings = [(c"sync", c"on"), (c"sync_mode", mode), (c"backtrace", c"on")];
    let app = BufferApp::new(leaked_entry(), &settings);
    // Several times, so that cached stacks are used.
    for _ in 0..20 {
        app.begin(0);
        fill_first(&app);
        app.barrier(0);
        fill_second(&app);
        app.end(0);
    }
    app.begin(0);
    fill_first(&app);
    fill_second(&app);
    app.end(0);
    app.destroy();
    let heard = take_received();
    let [received_message] = &heard[..] else { panic!("one message, not {heard:#?}") };
    let exe = std::env::current_exe().expect("a program knows where it is");
    let (_, stacks) = received_message.text.split_once("\n  call stack of the access:\n").expect("a stack");
    let (access, prior) = stacks.split_once("\n  call stack of the prior access:\n").expect("two stacks");
    let [access, prior] = [access, prior].map(|it| it.lines().map(str::trim).collect::<Vec<_>>());
    for stack in [&access, &prior] {
        assert!(stack.len() > 3 && stack[0].starts_with(&format!("{}+0x", exe.display())), "{stack:#?}");
    }
    assert_ne!(access, prior);
}

#[test]
fn a_finding_has_the_call_stacks_of_its_commands() {
    let name = "settings::a_finding_has_the_call_stacks_of_its_commands";
    child(name, &[], || {
        fill_with_stacks(c"inline");
        fill_with_stacks(c"async");
    });
}

#[test]
fn the_report_has_stacks_of_barriers_too() {
    let name = "settings::the_report_has_stacks_of_barriers_too";
    let environment = [("LAVASCOPE_REPORT", "{folder}/report"), ("LAVASCOPE_BACKTRACE", "1")];
    let Some(outcome) = child(name, &environment, || {
        let app = BufferApp::new(leaked_entry(), &[(c"sync", c"on")]);
        app.begin(0);
        fill_first(&app);
        let flags = vk::DependencyFlags::empty();
        let (from, to) = (vk::PipelineStageFlags::TRANSFER, vk::PipelineStageFlags::COMPUTE_SHADER);
        let memory = vk::MemoryBarrier::default()
            .src_access_mask(vk::AccessFlags::TRANSFER_WRITE)
            .dst_access_mask(vk::AccessFlags::SHADER_READ);
        // SAFETY: recorded here, with live objects (lifetime, owner).
        unsafe { app.world.device.cmd_pipeline_barrier(app.commands[0], from, to, flags, &[memory], &[], &[]) };
        fill_second(&app);
        app.end(0);
        app.destroy();
    }) else {
        return;
    };
    let findings = outcome.of_kind("finding");
    let [finding] = &findings[..] else { panic!("{findings:#?}") };
    let accesses = finding["accesses"].as_array().expect("accesses");
    assert_eq!(accesses.iter().map(|it| &it["role"]).collect::<Vec<_>>(), ["access", "prior access"]);
    let operation = &finding["operations"][0];
    assert_eq!((&operation["kind"], &operation["function"]), (&"barrier".into(), &"vkCmdPipelineBarrier".into()));
    let place = operation["place"].as_str().unwrap_or_default();
    assert!(place.starts_with("command 2 of VkCommandBuffer#"), "{operation:#}");
    for place in accesses.iter().chain([operation, &finding["fixes"][0]["changes"][0]]) {
        let offset = place["stack"]["frames"][0]["offset"].as_u64();
        assert!(offset.is_some_and(|it| it > 0), "{place:#}");
    }
}

#[test]
fn without_the_setting_there_are_no_stacks() {
    let name = "settings::without_the_setting_there_are_no_stacks";
    child(name, &[], || {
        let case = Case { from: SOURCES[0], settings: Vec::new() };
        assert!(!one_hazard(&case)[0].text.contains("call stack"));
    });
}

#[test]
fn the_old_lists_switch_off_what_comes_with_submissions() {
    let name = "settings::the_old_lists_switch_off_what_comes_with_submissions";
    let word = "VALIDATION_CHECK_DISABLE_SYNCHRONIZATION_VALIDATION_QUEUE_SUBMIT";
    let environment = [("VK_LAYER_DISABLES", word), ("VK_LAYER_ENABLES", SYNC_WORD)];
    child(name, &environment, || {
        let app = BufferApp::of(leaked_entry(), Setup { extensions: &[DEBUG_UTILS], ..Setup::OFF });
        app.record(0, &[(0, 1)]);
        (0..3).for_each(|_| app.submit(0).expect("the null driver submits"));
        assert_eq!(take_received(), []);
        app.record(1, &[(0, 1), (32, 2)]);
        assert_eq!(take_received().len(), 1);
        app.destroy();
    });
}
