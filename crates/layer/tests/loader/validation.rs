//! Hazards reach the application's messengers on its own threads, the log where there is none, and the report.

use std::ffi::{CStr, c_void};
use std::sync::Mutex;
use std::thread::ThreadId;

use ash::vk;

use crate::child::child;
use crate::world::{Setup, World, entry};

const DEBUG_UTILS: &CStr = c"VK_EXT_debug_utils";
const CODE: &str = "SYNC-HAZARD-WRITE-AFTER-WRITE";
const SYNC: Setup<'static> = Setup { extensions: &[DEBUG_UTILS], settings: &[(c"sync", c"on")], ..Setup::OFF };

/// Who was called, and with what: the name and number of the message, and its text.
static HEARD: Mutex<Vec<(ThreadId, String, i32, String)>> = Mutex::new(Vec::new());
/// The objects of the last message.
static OBJECTS: Mutex<Vec<(vk::ObjectType, u64)>> = Mutex::new(Vec::new());

unsafe extern "system" fn listen(
    severity: vk::DebugUtilsMessageSeverityFlagsEXT,
    ty: vk::DebugUtilsMessageTypeFlagsEXT,
    data: *const vk::DebugUtilsMessengerCallbackDataEXT<'_>,
    _: *mut c_void,
) -> vk::Bool32 {
    // SAFETY: a callback is given valid data.
    let data = unsafe { &*data };
    let owned = |it: Option<&CStr>| it.map(|it| it.to_string_lossy().into_owned()).unwrap_or_default();
    // SAFETY: as above.
    let (name, text) = unsafe { (owned(data.message_id_name_as_c_str()), owned(data.message_as_c_str())) };
    if name.starts_with("SYNC") {
        assert_eq!(severity, vk::DebugUtilsMessageSeverityFlagsEXT::ERROR);
        assert_eq!(ty, vk::DebugUtilsMessageTypeFlagsEXT::VALIDATION);
        let heard = (std::thread::current().id(), name, data.message_id_number, text);
        HEARD.lock().expect("callbacks do not panic").push(heard);
        let objects = if data.object_count == 0 {
            &[]
        } else {
            // SAFETY: as above.
            unsafe { std::slice::from_raw_parts(data.p_objects, data.object_count as usize) }
        };
        let objects = objects.iter().map(|it| (it.object_type, it.object_handle)).collect();
        *OBJECTS.lock().expect("callbacks do not panic") = objects;
    }
    vk::FALSE
}

/// An application whose command buffer fills a buffer twice, without anything between.
struct App {
    world: World,
    commands: vk::CommandBuffer,
    buffer: vk::Buffer,
    memory: vk::DeviceMemory,
    pool: vk::CommandPool,
}

impl App {
    fn new(entry: &ash::Entry) -> App {
        let world = SYNC.world(entry);
        let (buffer, pool) = (world.create_buffer(), world.command_pool());
        let commands = world.command_buffers(pool, 1)[0];
        let device = &world.device;
        // SAFETY: valid usage, by this function as a whole.
        let memory = unsafe {
            let memory = device.allocate_memory(&vk::MemoryAllocateInfo::default().allocation_size(1024), None);
            let memory = memory.expect("the null driver has memory");
            device.bind_buffer_memory(buffer, memory, 0).expect("it can be bound");
            let begun = device.begin_command_buffer(commands, &vk::CommandBufferBeginInfo::default());
            begun.expect("the null driver records");
            device.cmd_fill_buffer(commands, buffer, 0, 64, 1);
            device.cmd_fill_buffer(commands, buffer, 32, 64, 2);
            device.end_command_buffer(commands).expect("the null driver records");
            memory
        };
        App { world, commands, buffer, memory, pool }
    }

    fn messenger(&self, entry: &ash::Entry) -> (ash::ext::debug_utils::Instance, vk::DebugUtilsMessengerEXT) {
        let functions = ash::ext::debug_utils::Instance::new(entry, &self.world.instance);
        let info = vk::DebugUtilsMessengerCreateInfoEXT::default()
            .message_severity(vk::DebugUtilsMessageSeverityFlagsEXT::ERROR)
            .message_type(vk::DebugUtilsMessageTypeFlagsEXT::VALIDATION)
            .pfn_user_callback(Some(listen));
        // SAFETY: the info is valid.
        let messenger = unsafe { functions.create_debug_utils_messenger(&info, None) }.expect("it is made");
        (functions, messenger)
    }

    fn destroy_device(&self) {
        // SAFETY: nothing of it is in use.
        unsafe {
            self.world.device.destroy_command_pool(self.pool, None);
            self.world.device.destroy_buffer(self.buffer, None);
            self.world.device.free_memory(self.memory, None);
            self.world.device.destroy_device(None);
        }
    }

    fn destroy_instance(&self) {
        // SAFETY: nothing of it is in use.
        unsafe { self.world.instance.destroy_instance(None) };
    }
}

#[test]
fn a_messenger_hears_each_hazard_once_on_the_applications_thread() {
    let name = "validation::a_messenger_hears_each_hazard_once_on_the_applications_thread";
    let Some(outcome) = child(name, &[], || {
        let entry = entry();
        let app = App::new(&entry);
        let (functions, messenger) = app.messenger(&entry);
        app.world.submit(app.commands);
        app.destroy_device();
        let heard = std::mem::take(&mut *HEARD.lock().expect("callbacks do not panic"));
        let [(thread, name, number, text)] = &heard[..] else { panic!("one message, not {heard:#?}") };
        assert_eq!((*thread, name.as_str()), (std::thread::current().id(), CODE));
        assert_eq!(number.cast_unsigned(), 0x5c0e_c5d6);
        assert!(text.starts_with("vkCmdFillBuffer(): WRITE_AFTER_WRITE hazard detected."), "{text}");
        assert!(text.contains("VkBuffer#0[32..64]") && text.contains("Fix (verified)"), "{text}");
        // SAFETY: it is used no more.
        unsafe { functions.destroy_debug_utils_messenger(messenger, None) };
        app.destroy_instance();
        assert_eq!(*HEARD.lock().expect("callbacks do not panic"), []);
    }) else {
        return;
    };
    assert!(!outcome.stderr.contains("SYNC-HAZARD"), "what was heard is not logged: {}", outcome.stderr);
}

#[test]
fn equal_messages_stop_at_the_limit() {
    let name = "validation::equal_messages_stop_at_the_limit";
    child(name, &[], || {
        let entry = entry();
        let app = App::new(&entry);
        let (functions, messenger) = app.messenger(&entry);
        for _ in 0..30 {
            app.world.submit(app.commands);
        }
        app.destroy_device();
        assert_eq!(HEARD.lock().expect("callbacks do not panic").len(), 10);
        // SAFETY: it is used no more.
        unsafe { functions.destroy_debug_utils_messenger(messenger, None) };
        app.destroy_instance();
    });
}

#[test]
fn without_a_messenger_a_hazard_is_logged_once_and_counted() {
    let name = "validation::without_a_messenger_a_hazard_is_logged_once_and_counted";
    let Some(outcome) = child(name, &[], || {
        let entry = entry();
        let app = App::new(&entry);
        for _ in 0..30 {
            app.world.submit(app.commands);
        }
        app.destroy_device();
        app.destroy_instance();
    }) else {
        return;
    };
    let logged = format!("lavascope: error: [ {CODE} | MessageID = 0x5c0ec5d6 ] vkCmdFillBuffer()");
    assert_eq!(outcome.stderr.matches(&logged).count(), 1, "{}", outcome.stderr);
    assert!(outcome.stderr.contains(&format!("30 times: {CODE}: ")), "{}", outcome.stderr);
}

#[test]
fn a_hazard_is_told_though_nothing_is_destroyed() {
    let environment = [("LAVASCOPE_REPORT", "{folder}/report")];
    let name = "validation::a_hazard_is_told_though_nothing_is_destroyed";
    let Some(outcome) = child(name, &environment, || {
        let entry = entry();
        let app = App::new(&entry);
        app.world.submit(app.commands);
        println!("1 passed");
        std::process::exit(0);
    }) else {
        return;
    };
    let findings = outcome.of_kind("finding");
    let [it] = &findings[..] else { panic!("{findings:#?}") };
    assert_eq!((it["code"].as_str(), it["count"].as_u64()), (Some(CODE), Some(1)));
    assert!(!outcome.stderr.contains(CODE), "the report has it: {}", outcome.stderr);
}

#[test]
fn counts_add_up_in_the_report() {
    let environment = [("LAVASCOPE_REPORT", "{folder}/report")];
    let name = "validation::counts_add_up_in_the_report";
    let Some(outcome) = child(name, &environment, || {
        let entry = entry();
        let app = App::new(&entry);
        for _ in 0..100 {
            app.world.submit(app.commands);
        }
        app.destroy_device();
        app.destroy_instance();
    }) else {
        return;
    };
    let counts: Vec<u64> = outcome.of_kind("finding").iter().filter_map(|it| it["count"].as_u64()).collect();
    assert_eq!(counts.iter().sum::<u64>(), 100, "{counts:?}");
    assert!(outcome.of_kind("bug").is_empty());
}

#[test]
fn a_message_names_the_applications_objects() {
    let name = "validation::a_message_names_the_applications_objects";
    child(name, &[], || {
        let entry = entry();
        let app = App::new(&entry);
        let (functions, messenger) = app.messenger(&entry);
        // Until the reader has come that far.
        while HEARD.lock().expect("callbacks do not panic").is_empty() {
            app.world.submit(app.commands);
        }
        let queue = vk::Handle::as_raw(app.world.queue);
        let (buffer, commands) = (vk::Handle::as_raw(app.buffer), vk::Handle::as_raw(app.commands));
        use vk::ObjectType as T;
        let want = [(T::BUFFER, buffer), (T::COMMAND_BUFFER, commands), (T::QUEUE, queue)];
        assert_eq!(*OBJECTS.lock().expect("callbacks do not panic"), want);
        app.destroy_device();
        // SAFETY: it is used no more.
        unsafe { functions.destroy_debug_utils_messenger(messenger, None) };
        app.destroy_instance();
    });
}
