//! Messages of the layer, and the application's messengers, which receive them.
//!
//! A messenger that is chained into `vkCreateInstance` receives messages while the instance is created and destroyed.
//! Messengers that are created later receive messages in between. Without a messenger, messages go to the log. The layer
//! holds no lock while it calls a messenger.

use std::cell::Cell;
use std::collections::HashMap;
use std::ffi::{CStr, CString};
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};

use lavascope_abi::*;
use lavascope_diag::{Diagnostic, IgnoreRule};
use lavascope_settings::{DebugAction, MessageId, MessageSeverity, OutputTarget, ReportFlag, Settings};
use xxhash_rust::xxh32::xxh32;

use crate::intercept::calls::forward_recorded;
use crate::intercept::handle_table::PROCESS_HANDLES;
use crate::intercept::shim::ReturnBits;
use crate::loader::dispatch::dispatch_key;
use crate::loader::instance::InstanceData;
use crate::loader::interface::FAILED;
use crate::loader::proc_addr::CHAINS;
use crate::process::catch_panic::is_disabled;
use crate::report::message_json;

/// A message for the application.
pub(crate) struct OutgoingMessage<'a> {
    pub(crate) severity: MessageSeverity,
    /// What users filter by.
    pub(crate) name: &'a CStr,
    pub(crate) text: &'a str,
    /// The Vulkan command that the message is about; empty if there is none.
    pub(crate) function: &'a str,
    /// The objects that the message is about, as far as they are alive.
    pub(crate) objects: &'a [MessageObject],
    pub(crate) labels: &'a MessageLabels,
}

impl<'a> OutgoingMessage<'a> {
    /// A message without a command, objects and labels.
    pub(crate) fn new(severity: MessageSeverity, name: &'a CStr, text: &'a str) -> OutgoingMessage<'a> {
        OutgoingMessage { severity, name, text, function: "", objects: &[], labels: &NO_LABELS }
    }
}

/// The debug labels around the command that a message is about, the outermost first.
pub(crate) struct MessageLabels {
    pub(crate) queue: Vec<CString>,
    pub(crate) commands: Vec<CString>,
}

static NO_LABELS: MessageLabels = MessageLabels { queue: Vec::new(), commands: Vec::new() };

/// An object of the application.
pub(crate) struct MessageObject {
    pub(crate) ty: ObjectType,
    /// `VkBuffer`.
    pub(crate) kind: &'static str,
    pub(crate) handle: u64,
    pub(crate) name: Option<CString>,
}

/// What happened to a message. If several messengers receive it, the largest value counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Delivery {
    /// The settings filter the message.
    Unsent,
    NoMessenger,
    Delivered,
    /// A callback returned `VK_TRUE`: the driver must not see the call.
    SkipCall,
}

/// A messenger of the application. Its callback can be called until the application destroys the messenger, or the
/// instance whose creation it was chained to: `from_debug_utils` and `from_debug_report` require that, and `recipients`
/// returns no other messengers.
#[derive(Clone, Copy)]
pub(crate) struct Messenger {
    handle: u64,
    kind: MessengerKind,
    user_data: Ptr<Opaque>,
}

#[derive(Clone, Copy)]
enum MessengerKind {
    Utils { severities: u32, types: u32, callback: Option<UtilsCallback> },
    Report { flags: u32, callback: Option<ReportCallback> },
}

type UtilsCallback = unsafe extern "system" fn(
    DebugUtilsMessageSeverityFlagsEXT,
    DebugUtilsMessageTypeFlagsEXT,
    Ptr<DebugUtilsMessengerCallbackDataEXT>,
    Ptr<Opaque>,
) -> Bool32;

type ReportCallback = unsafe extern "system" fn(
    DebugReportFlagsEXT,
    DebugReportObjectTypeEXT,
    u64,
    usize,
    i32,
    Ptr<u8>,
    Ptr<u8>,
    Ptr<Opaque>,
) -> Bool32;

/// The messages of one instance.
pub(crate) struct Messages {
    chained: Vec<Messenger>,
    created: RwLock<Vec<Messenger>>,
    /// Whether the instance is created and not yet being destroyed. Relaxed, because the application's own calls change it.
    is_alive: AtomicBool,
    rules: MessageRules,
    sent_counts: Mutex<HashMap<CString, u64>>,
    /// Messages of the layer's threads. Messengers receive them inside the application's next call, because the
    /// application may destroy a messenger at any other moment.
    queued: Mutex<Vec<QueuedMessage>>,
    /// Whether `queued` has messages. Relaxed: a thread that misses one sends it at its next call.
    has_queued: AtomicBool,
}

/// A message that waits for the application's next call.
struct QueuedMessage {
    severity: MessageSeverity,
    name: CString,
    text: String,
    /// Whether the report file has it, so that it need not be logged.
    is_reported: bool,
}

thread_local! {
    static IS_LAYER_THREAD: Cell<bool> = const { Cell::new(false) };
}

/// Marks the calling thread as a thread of the layer, which is never inside a call of the application.
pub(crate) fn mark_layer_thread() {
    IS_LAYER_THREAD.set(true);
}

/// The settings for messages.
#[derive(Default)]
struct MessageRules {
    filter: Vec<MessageId>,
    ignore: Vec<IgnoreRule>,
    /// How often the same message is sent at most.
    limit: Option<u64>,
    logged_flags: Vec<ReportFlag>,
    actions: Vec<DebugAction>,
    log: Option<OutputTarget>,
    is_json: bool,
    has_extra_properties: bool,
}

impl Messages {
    pub(crate) fn new(chained: Vec<Messenger>, settings: &Settings) -> Messages {
        let rules = MessageRules {
            filter: settings.message_id_filter.clone(),
            // The settings are checked, so that every rule can be parsed.
            ignore: settings.ignore.iter().filter_map(|it| IgnoreRule::parse(it).ok()).collect(),
            limit: settings.enable_message_limit.then_some(settings.duplicate_message_limit).filter(|it| *it > 0),
            logged_flags: settings.report_flags.clone(),
            actions: settings.debug_action.clone(),
            log: Some(settings.log_filename.clone()),
            is_json: settings.message_format_json,
            has_extra_properties: settings.message_extra_properties,
        };
        Messages { chained, rules, ..Messages::silent() }
    }

    /// For a second copy of this layer in the same chain: it sends no messages.
    pub(crate) fn silent() -> Messages {
        Messages {
            chained: Vec::new(),
            created: RwLock::default(),
            is_alive: AtomicBool::new(false),
            rules: MessageRules::default(),
            sent_counts: Mutex::default(),
            queued: Mutex::default(),
            has_queued: AtomicBool::new(false),
        }
    }

    /// Called when the instance was created, and before it is destroyed.
    pub(crate) fn set_alive(&self, is_alive: bool) {
        self.is_alive.store(is_alive, Ordering::Relaxed);
    }

    /// Sends a message to the messengers, or to the log if there are none. Returns whether a callback skips the call.
    pub(crate) fn send(&self, message: &OutgoingMessage<'_>) -> bool {
        let answer = self.send_to_messengers(message);
        let actions = &self.rules.actions;
        let is_logged =
            actions.contains(&DebugAction::Log) || self.rules.is_default_action() && answer == Delivery::NoMessenger;
        if is_logged && answer != Delivery::Unsent {
            self.rules.log(message.severity, &self.rules.formatted(message));
        }
        answer == Delivery::SkipCall
    }

    /// Like `send`, but does not log a message that is in the report file. A message of the layer's own threads is queued
    /// for the messengers.
    pub(crate) fn send_or_queue(&self, message: &OutgoingMessage<'_>, is_reported: bool) {
        if !IS_LAYER_THREAD.get() {
            self.send_queued();
            self.send_unless_reported(message, is_reported);
        } else if self.recipients().is_empty() {
            if !is_reported && self.rules.is_default_action() && !self.rules.is_filtered(message.name) {
                self.rules.log(message.severity, &self.rules.formatted(message));
            }
        } else {
            let (name, text) = (message.name.to_owned(), message.text.to_owned());
            lock(&self.queued).push(QueuedMessage { severity: message.severity, name, text, is_reported });
            self.has_queued.store(true, Ordering::Relaxed);
        }
    }

    /// Sends the queued messages of the layer's threads. Must be called inside a call of the application, with no lock
    /// held.
    #[inline(always)]
    pub(crate) fn send_queued(&self) {
        if self.has_queued.load(Ordering::Relaxed) {
            self.send_all_queued();
        }
    }

    #[cold]
    fn send_all_queued(&self) {
        self.has_queued.store(false, Ordering::Relaxed);
        let kept = std::mem::take(&mut *lock(&self.queued));
        for queued_message in kept {
            self.send_unless_reported(
                &OutgoingMessage::new(queued_message.severity, &queued_message.name, &queued_message.text),
                queued_message.is_reported,
            );
        }
    }

    fn send_unless_reported(&self, message: &OutgoingMessage<'_>, is_reported: bool) {
        if is_reported {
            self.send_to_messengers(message);
        } else {
            self.send(message);
        }
    }

    /// Sends a message to the application's messengers, and not to the log.
    pub(crate) fn send_to_messengers(&self, message: &OutgoingMessage<'_>) -> Delivery {
        let is_ignored = self.rules.actions.contains(&DebugAction::Ignore);
        if is_disabled() || is_ignored || self.rules.is_filtered(message.name) || self.advance_duplicate_count(message)
        {
            return Delivery::Unsent;
        }
        let mut answer = Delivery::NoMessenger;
        if self.rules.is_default_action() || self.rules.actions.contains(&DebugAction::Callback) {
            let text = self.rules.formatted(message);
            for messenger in self.recipients() {
                // SAFETY: one of `recipients`. On a thread that is in a Vulkan call with this instance or a child of it
                // the application must not destroy the messenger meanwhile (host synchronization of
                // `vkDestroyDebugUtilsMessengerEXT` and `vkDestroyDebugReportCallbackEXT`).
                answer = answer.max(unsafe { messenger.call(message, &text) });
            }
        }
        if self.rules.actions.contains(&DebugAction::Break) && self.rules.is_logged(message.severity) {
            break_into_debugger();
        }
        answer
    }

    /// The settings that filter a finding; empty if none does.
    pub(crate) fn ignored_by(&self, diagnostic: &Diagnostic) -> Vec<String> {
        let name = CString::new(&*diagnostic.code.0).unwrap_or_default();
        let filter = self.rules.is_filtered(&name).then(|| format!("message_id_filter={}", diagnostic.code));
        let rules = self.rules.ignore.iter().filter(|rule| rule.matches(diagnostic)).map(IgnoreRule::to_string);
        filter.into_iter().chain(rules).collect()
    }

    /// Whether messages end with the properties of the finding.
    pub(crate) fn has_extra_properties(&self) -> bool {
        self.rules.has_extra_properties
    }

    /// Whether the settings do not allow another equal message, after `count` ones.
    pub(crate) fn is_above_limit(&self, count: u64) -> bool {
        self.rules.limit.is_some_and(|it| count > it)
    }

    /// Logs a message that messengers receive later, if no messenger wants it or the settings demand a log. Returns whether
    /// it was logged.
    pub(crate) fn log_now(&self, message: &OutgoingMessage<'_>) -> bool {
        let rules = &self.rules;
        let is_ignored = rules.actions.contains(&DebugAction::Ignore);
        let is_silent = is_disabled() || is_ignored || rules.is_filtered(message.name);
        let is_heard = self.recipients().iter().any(|it| it.wants(message.severity));
        let is_logged = rules.actions.contains(&DebugAction::Log) || rules.is_default_action() && !is_heard;
        !is_silent && is_logged && rules.log(message.severity, &rules.formatted_with_name(message))
    }

    /// Logs a message that could not be sent to its messengers.
    pub(crate) fn log_undelivered(&self, message: &OutgoingMessage<'_>) {
        if is_disabled() {
            return;
        }
        let is_heard = self.recipients().iter().any(|it| it.wants(message.severity));
        if is_heard && !self.rules.is_filtered(message.name) && !self.rules.actions.contains(&DebugAction::Ignore) {
            self.rules.log(message.severity, &self.rules.formatted_with_name(message));
        }
    }

    /// Sends a print of a shader to the application's messengers, and to the log if no messenger wants it or the settings
    /// demand it.
    pub(crate) fn send_printf(&self, message: &OutgoingMessage<'_>, is_logged: bool) {
        let answer = self.send_to_messengers(message);
        let is_logged = is_logged || self.rules.actions.contains(&DebugAction::Log);
        if answer != Delivery::Unsent
            && (is_logged || self.rules.is_default_action() && answer == Delivery::NoMessenger)
        {
            let text = self.rules.formatted(message);
            self.rules.write(&if self.rules.is_json { format!("{text}\n") } else { format!("lavascope: {text}\n") });
        }
    }

    /// Logs a text that is not a message, for example a summary.
    pub(crate) fn log_plain(&self, text: &str) {
        if !self.rules.is_json && !is_disabled() {
            self.rules.write(&format!("lavascope: {text}\n"));
        }
    }

    fn recipients(&self) -> Vec<Messenger> {
        if self.is_alive.load(Ordering::Relaxed) {
            self.created.read().unwrap_or_else(PoisonError::into_inner).clone()
        } else {
            self.chained.clone()
        }
    }

    fn advance_duplicate_count(&self, message: &OutgoingMessage<'_>) -> bool {
        // Prints of shaders are never limited.
        let Some(limit) = self.rules.limit.filter(|_| message.name != PRINTF) else { return false };
        // The limit counts equal texts: messages of one kind with different texts are all useful.
        let key = CString::new(format!("{}\n{}", message.name.to_string_lossy(), message.text)).unwrap_or_default();
        let mut sent = lock(&self.sent_counts);
        let count = sent.entry(key).or_default();
        *count += 1;
        *count > limit
    }

    fn add(&self, messenger: Messenger) {
        self.created.write().unwrap_or_else(PoisonError::into_inner).push(messenger);
    }

    fn remove(&self, handle: u64) {
        self.created.write().unwrap_or_else(PoisonError::into_inner).retain(|it| it.handle != handle);
    }
}

fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The name of messages with prints of shaders.
pub(crate) const PRINTF: &CStr = c"VVL-DEBUG-PRINTF";

/// Stops in the debugger. Ends the process if there is no debugger.
fn break_into_debugger() {
    lavascope_platform::process::raise_trap();
}

/// The number that goes with a message's name, as other layers compute it.
pub(crate) fn message_number(name: &CStr) -> i32 {
    xxh32(name.to_bytes(), 8).cast_signed()
}

impl MessageRules {
    /// Whether messages go to the callbacks, or to the log if there are none.
    fn is_default_action(&self) -> bool {
        self.actions.is_empty() || self.actions.contains(&DebugAction::Default)
    }

    /// Whether the settings filter a name.
    fn is_filtered(&self, name: &CStr) -> bool {
        let name = name.to_string_lossy();
        self.filter.iter().any(|it| it.matches(&name))
    }

    fn formatted(&self, message: &OutgoingMessage<'_>) -> String {
        if self.is_json { message_json::format_json(message) } else { message.text.to_owned() }
    }

    /// The text with the name of the message, for the log.
    fn formatted_with_name(&self, message: &OutgoingMessage<'_>) -> String {
        let (name, number) = (message.name.to_string_lossy(), message_number(message.name));
        let text = self.formatted(message);
        if self.is_json { text } else { format!("[ {name} | MessageID = {number:#010x} ] {text}") }
    }

    fn is_logged(&self, severity: MessageSeverity) -> bool {
        let flag = match severity {
            MessageSeverity::Error => ReportFlag::Error,
            MessageSeverity::Warning => ReportFlag::Warn,
            MessageSeverity::Note => ReportFlag::Info,
        };
        self.logged_flags.contains(&flag)
    }

    /// Says whether such messages are logged.
    fn log(&self, severity: MessageSeverity, text: &str) -> bool {
        if !self.is_logged(severity) {
            return false;
        }
        let word = match severity {
            MessageSeverity::Error => "error",
            MessageSeverity::Warning => "warning",
            MessageSeverity::Note => "note",
        };
        self.write(&if self.is_json { format!("{text}\n") } else { format!("lavascope: {word}: {text}\n") });
        true
    }

    fn write(&self, line: &str) {
        // Nobody is left to be told that a log cannot be written.
        let _ = match &self.log {
            None => Ok(()),
            Some(OutputTarget::Stdout) => std::io::stdout().write_all(line.as_bytes()),
            Some(OutputTarget::Stderr) => std::io::stderr().write_all(line.as_bytes()),
            Some(OutputTarget::File(path)) => std::fs::File::options()
                .create(true)
                .append(true)
                .open(path)
                .and_then(|mut it| it.write_all(line.as_bytes())),
        };
    }
}

impl Messenger {
    /// # Safety
    ///
    /// The info must be that of a valid messenger, whose callback can be called for as long as the result is used.
    pub(crate) unsafe fn from_debug_utils(handle: u64, create_info: &DebugUtilsMessengerCreateInfoEXT) -> Messenger {
        // SAFETY: null is none. VUID-VkDebugUtilsMessengerCreateInfoEXT-pfnUserCallback-parameter, by the contract of
        // this function: anything else is a `PFN_vkDebugUtilsMessengerCallbackEXT`.
        let callback = unsafe { std::mem::transmute::<FnPtr, Option<UtilsCallback>>(create_info.pfn_user_callback) };
        let kind = MessengerKind::Utils {
            severities: create_info.message_severity.0,
            types: create_info.message_type.0,
            callback,
        };
        Messenger { handle, kind, user_data: create_info.p_user_data }
    }

    /// # Safety
    ///
    /// The info must be that of a valid callback, which can be called for as long as the result is used.
    pub(crate) unsafe fn from_debug_report(handle: u64, create_info: &DebugReportCallbackCreateInfoEXT) -> Messenger {
        // SAFETY: null is none. VUID-VkDebugReportCallbackCreateInfoEXT-pfnCallback-parameter, by the contract of this
        // function: anything else is a `PFN_vkDebugReportCallbackEXT`.
        let callback = unsafe { std::mem::transmute::<FnPtr, Option<ReportCallback>>(create_info.pfn_callback) };
        Messenger {
            handle,
            kind: MessengerKind::Report { flags: create_info.flags.0, callback },
            user_data: create_info.p_user_data,
        }
    }

    /// Whether it wants messages of this kind.
    fn wants(&self, severity: MessageSeverity) -> bool {
        match self.kind {
            MessengerKind::Utils { severities, types, callback } => {
                let ty = DebugUtilsMessageTypeFlagsEXT::VALIDATION_EXT;
                callback.is_some() && severities & utils_severity(severity).0 != 0 && types & ty.0 != 0
            }
            MessengerKind::Report { flags, callback } => callback.is_some() && flags & report_flag(severity).0 != 0,
        }
    }

    /// Calls the callback if it wants such messages, and returns its answer.
    ///
    /// # Safety
    ///
    /// The application must not destroy the messenger before this returns.
    unsafe fn call(&self, message: &OutgoingMessage<'_>, text: &str) -> Delivery {
        let text = CString::new(text.replace('\0', "\\0")).unwrap_or_default();
        let skips_call = match self.kind {
            MessengerKind::Utils { severities, types, callback } => callback.and_then(|callback_item| {
                // SAFETY: the callback of this messenger, which by the contract of this function is not destroyed.
                unsafe { self.call_utils(message, &text, severities, types, callback_item) }
            }),
            MessengerKind::Report { flags, callback } => callback.and_then(|callback_item| {
                // SAFETY: the callback of this messenger, which by the contract of this function is not destroyed.
                unsafe { self.call_report(message, &text, flags, callback_item) }
            }),
        };
        match skips_call {
            None => Delivery::NoMessenger,
            Some(false) => Delivery::Delivered,
            Some(true) => Delivery::SkipCall,
        }
    }

    /// # Safety
    ///
    /// The callback must be that of this messenger, which the application must not destroy before this returns.
    unsafe fn call_utils(
        &self,
        message: &OutgoingMessage<'_>,
        text: &CStr,
        severities: u32,
        types: u32,
        callback: UtilsCallback,
    ) -> Option<bool> {
        let severity = utils_severity(message.severity);
        let ty = DebugUtilsMessageTypeFlagsEXT::VALIDATION_EXT;
        if severities & severity.0 == 0 || types & ty.0 == 0 {
            return None;
        }
        let mut data = DebugUtilsMessengerCallbackDataEXT::zeroed();
        data.s_type = StructureType::DEBUG_UTILS_MESSENGER_CALLBACK_DATA_EXT;
        data.p_message_id_name = c_str_ptr(message.name);
        data.message_id_number = message_number(message.name);
        data.p_message = c_str_ptr(text);
        let objects: Vec<DebugUtilsObjectNameInfoEXT> = message.objects.iter().map(name_info).collect();
        (data.object_count, data.p_objects) = (objects.len() as u32, Ptr::to_slice(&objects));
        let [queue, commands] = [&message.labels.queue, &message.labels.commands].map(|it| labels(it));
        (data.queue_label_count, data.p_queue_labels) = (queue.len() as u32, Ptr::to_slice(&queue));
        (data.cmd_buf_label_count, data.p_cmd_buf_labels) = (commands.len() as u32, Ptr::to_slice(&commands));
        // SAFETY: the contract of this function, for a callback with this prototype. The data, and the texts and lists
        // that it leads to, live until the callback returns.
        Some(unsafe { callback(severity, ty, Ptr::to(&data), self.user_data) }.0 != 0)
    }

    /// # Safety
    ///
    /// The callback must be that of this messenger, which the application must not destroy before this returns.
    unsafe fn call_report(
        &self,
        message: &OutgoingMessage<'_>,
        text: &CStr,
        flags: u32,
        callback: ReportCallback,
    ) -> Option<bool> {
        let flag = report_flag(message.severity);
        if flags & flag.0 == 0 {
            return None;
        }
        // The two extensions have the same numbers for the types of the first version.
        let (ty, object) = message.objects.first().map_or((0, 0), |it| (it.ty.0, it.handle));
        let ty = DebugReportObjectTypeEXT(ty);
        let (prefix, number) = (c_str_ptr(c"Lavascope"), message_number(message.name));
        // SAFETY: the contract of this function, for a callback with this prototype. The texts live until it returns.
        Some(unsafe { callback(flag, ty, object, 0, number, prefix, c_str_ptr(text), self.user_data) }.0 != 0)
    }
}

fn name_info(message_object: &MessageObject) -> DebugUtilsObjectNameInfoEXT {
    DebugUtilsObjectNameInfoEXT {
        s_type: StructureType::DEBUG_UTILS_OBJECT_NAME_INFO_EXT,
        object_type: message_object.ty,
        object_handle: message_object.handle,
        p_object_name: message_object.name.as_deref().map_or(Ptr::NULL, c_str_ptr),
        ..DebugUtilsObjectNameInfoEXT::zeroed()
    }
}

fn labels(all: &[CString]) -> Vec<DebugUtilsLabelEXT> {
    let label = |c_string: &CString| DebugUtilsLabelEXT {
        s_type: StructureType::DEBUG_UTILS_LABEL_EXT,
        p_label_name: c_str_ptr(c_string),
        ..DebugUtilsLabelEXT::zeroed()
    };
    all.iter().map(label).collect()
}

fn utils_severity(severity: MessageSeverity) -> DebugUtilsMessageSeverityFlagsEXT {
    match severity {
        MessageSeverity::Error => DebugUtilsMessageSeverityFlagsEXT::ERROR_EXT,
        MessageSeverity::Warning => DebugUtilsMessageSeverityFlagsEXT::WARNING_EXT,
        MessageSeverity::Note => DebugUtilsMessageSeverityFlagsEXT::INFO_EXT,
    }
}

fn report_flag(severity: MessageSeverity) -> DebugReportFlagsEXT {
    match severity {
        MessageSeverity::Error => DebugReportFlagsEXT::ERROR_EXT,
        MessageSeverity::Warning => DebugReportFlagsEXT::WARNING_EXT,
        MessageSeverity::Note => DebugReportFlagsEXT::INFORMATION_EXT,
    }
}

fn c_str_ptr(text: &CStr) -> Ptr<u8> {
    Ptr::new(text.as_ptr().expose_provenance() as u64)
}

/// Passes a call on. Records it only if the instance has listeners.
///
/// # Safety
///
/// As for [`forward_recorded`].
unsafe fn forward_maybe_recorded<T: Structure, R: ReturnBits>(
    owner: &InstanceData,
    command: Command,
    params: &T,
    next: impl FnOnce() -> R,
) -> R {
    if owner.listeners.is_empty() {
        return next();
    }
    // SAFETY: the contract of this function, which is that of `forward_recorded`.
    unsafe { forward_recorded(&PROCESS_HANDLES, owner.listeners, command, params, next) }
}

/// Hooks for a command that creates messengers and the command that destroys them. They record the call if the instance
/// has listeners, and add the messenger to the instance's `Messages` or remove it.
macro_rules! messenger_commands {
    ($create:ident: $create_command:ident($create_params:ident, $info:ident, $info_name:ident, $handle:ident, $out:ident) = $make:ident,
     $destroy:ident: $destroy_command:ident($destroy_params:ident, $field:ident)) => {
        pub(crate) unsafe extern "system" fn $create<const CHAIN: usize>(
            instance: Instance,
            $info_name: Ptr<$info>,
            p_allocator: Ptr<Opaque>,
            $out: Ptr<$handle>,
        ) -> Result {
            // SAFETY: VUID-vkCreateDebugUtilsMessengerEXT-instance-parameter or
            // VUID-vkCreateDebugReportCallbackEXT-instance-parameter: an instance that is alive until the call returns.
            let Some(owner) = (unsafe { CHAINS[CHAIN].instances.get(dispatch_key(instance.0)) }) else { return FAILED };
            let Some(next) = owner.table.$create else { return FAILED };
            let params = $create_params { instance, $info_name, p_allocator, $out };
            // SAFETY: the next function of the chain for this command, with what the application passed to it.
            let next = || unsafe { next(instance, $info_name, p_allocator, $out) };
            // SAFETY: the parameters are what the application called this command with, so that they obey its VUIDs,
            // and `next` makes the call.
            let result = unsafe { forward_maybe_recorded(owner, Command::$create_command, &params, next) };
            if result == Result::SUCCESS {
                // SAFETY: the VUIDs of this command for the info and for the place of the handle, which a call that
                // succeeded has written.
                let (info, handle) = unsafe { (&*$info_name.as_ptr(), $out.as_ptr().read()) };
                // SAFETY: the info of a messenger that is there now. `remove` takes it out when it is destroyed.
                owner.messages.add(unsafe { Messenger::$make(handle.0, info) });
            }
            result
        }

        pub(crate) unsafe extern "system" fn $destroy<const CHAIN: usize>(
            instance: Instance,
            $field: $handle,
            p_allocator: Ptr<Opaque>,
        ) {
            // SAFETY: VUID-vkDestroyDebugUtilsMessengerEXT-instance-parameter or
            // VUID-vkDestroyDebugReportCallbackEXT-instance-parameter: an instance that is alive until the call
            // returns.
            let Some(owner) = (unsafe { CHAINS[CHAIN].instances.get(dispatch_key(instance.0)) }) else { return };
            owner.messages.remove($field.0);
            let Some(next) = owner.table.$destroy else { return };
            let params = $destroy_params { instance, $field, p_allocator };
            // SAFETY: the next function of the chain for this command, with what the application passed to it.
            let next = || unsafe { next(instance, $field, p_allocator) };
            // SAFETY: the parameters are what the application called this command with, so that they obey its VUIDs,
            // and `next` makes the call.
            unsafe { forward_maybe_recorded(owner, Command::$destroy_command, &params, next) };
        }
    };
}

messenger_commands! {
    create_debug_utils_messenger_ext: CreateDebugUtilsMessengerEXT(
        CreateDebugUtilsMessengerEXTParams, DebugUtilsMessengerCreateInfoEXT, p_create_info, DebugUtilsMessengerEXT,
        p_messenger
    ) = from_debug_utils,
    destroy_debug_utils_messenger_ext: DestroyDebugUtilsMessengerEXT(DestroyDebugUtilsMessengerEXTParams, messenger)
}

messenger_commands! {
    create_debug_report_callback_ext: CreateDebugReportCallbackEXT(
        CreateDebugReportCallbackEXTParams, DebugReportCallbackCreateInfoEXT, p_create_info, DebugReportCallbackEXT,
        p_callback
    ) = from_debug_report,
    destroy_debug_report_callback_ext: DestroyDebugReportCallbackEXT(DestroyDebugReportCallbackEXTParams, callback)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex as StdMutex;

    static RECEIVED: StdMutex<Vec<(u32, String, i32)>> = StdMutex::new(Vec::new());

    unsafe extern "system" fn debug_callback(
        severity: DebugUtilsMessageSeverityFlagsEXT,
        _: DebugUtilsMessageTypeFlagsEXT,
        data: Ptr<DebugUtilsMessengerCallbackDataEXT>,
        user_data: Ptr<Opaque>,
    ) -> Bool32 {
        // SAFETY: `call_utils` calls it, with data that has a null-terminated text.
        let (text, number) = unsafe {
            let data = &*data.as_ptr();
            (CStr::from_ptr(data.p_message.as_ptr().cast()).to_string_lossy().into_owned(), data.message_id_number)
        };
        RECEIVED.lock().expect("one test").push((severity.0, text, number));
        Bool32(u32::from(user_data.0 != 0))
    }

    fn messenger(severities: DebugUtilsMessageSeverityFlagsEXT, user_data: u64) -> Messenger {
        let mut info = DebugUtilsMessengerCreateInfoEXT::zeroed();
        info.message_severity = severities;
        info.message_type = DebugUtilsMessageTypeFlagsEXT::VALIDATION_EXT;
        info.pfn_user_callback = FnPtr((debug_callback as UtilsCallback as *const ()).expose_provenance() as u64);
        info.p_user_data = Ptr::new(user_data);
        // SAFETY: the callback is a function of this test with the right prototype.
        unsafe { Messenger::from_debug_utils(5, &info) }
    }

    fn error(text: &str) -> OutgoingMessage<'_> {
        OutgoingMessage::new(MessageSeverity::Error, c"SYNC-HAZARD-WRITE-AFTER-WRITE", text)
    }

    #[test]
    fn messages_go_to_those_who_want_them() {
        let errors = DebugUtilsMessageSeverityFlagsEXT::ERROR_EXT;
        let messages = Messages {
            chained: vec![messenger(errors, 0)],
            rules: MessageRules { limit: Some(2), ..MessageRules::default() },
            ..Messages::silent()
        };
        assert!(!messages.send(&error("while it is made")));
        messages.send(&OutgoingMessage { severity: MessageSeverity::Warning, ..error("not wanted") });
        messages.set_alive(true);
        messages.send(&error("nobody is there"));
        messages.add(messenger(errors, 1));
        assert!(messages.send(&error("given up")), "the callback said so");
        for _ in 0..5 {
            messages.send(&error("flood"));
        }
        std::thread::scope(|scope| {
            let work = || {
                mark_layer_thread();
                messages.send_or_queue(&error("of a thread of ours"), true);
            };
            scope.spawn(work).join().expect("it does not panic");
        });
        messages.send_or_queue(&error("inside of a call"), true);
        messages.remove(5);
        messages.send(&error("gone"));
        let heard = std::mem::take(&mut *RECEIVED.lock().expect("one test"));
        let texts: Vec<&str> = heard.iter().map(|it| it.1.as_str()).collect();
        assert_eq!(
            texts,
            ["while it is made", "given up", "flood", "flood", "of a thread of ours", "inside of a call"]
        );
        assert!(heard.iter().all(|it| it.0 == errors.0 && it.2 == 0x5c0e_c5d6));
    }

    #[test]
    fn filters_know_names_and_numbers() {
        let by = |id| {
            let rules = MessageRules { filter: vec![id], ..MessageRules::default() };
            rules.is_filtered(c"SYNC-HAZARD-WRITE-AFTER-WRITE")
        };
        assert!(by(MessageId::Name("SYNC-HAZARD-WRITE-AFTER-WRITE".into())));
        assert!(by(MessageId::Number(0x5c0e_c5d6)));
        assert!(!by(MessageId::Name("SYNC-HAZARD-WRITE-AFTER-READ".into())));
        assert!(by(MessageId::Name("SYNC-HAZARD-WRITE_AFTER_WRITE".into())), "its former name");
        let rules = MessageRules { filter: vec![MessageId::Number(0x4cb7_5b2d)], ..MessageRules::default() };
        assert!(rules.is_filtered(c"SYNC-HAZARD-READ-AFTER-WRITE"), "its former number");
    }
}
