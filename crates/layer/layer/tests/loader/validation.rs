//! Hazards that a thread of the layer's own finds reach the application's messengers on its own threads, the log where
//! there is none, and the report.

use ash::vk;

use crate::child::child;
use crate::hazards::{ASYNC, BufferApp, CODE, take_received};
use crate::world::entry;

const REPORT: [(&str, &str); 1] = [("LAVASCOPE_REPORT", "{folder}/report")];
/// Two fills that overlap.
const HAZARD: &[(u64, u32)] = &[(0, 1), (32, 2)];

#[test]
fn a_messenger_hears_each_hazard_once_on_the_applications_thread() {
    let name = "validation::a_messenger_hears_each_hazard_once_on_the_applications_thread";
    let Some(outcome) = child(name, &[], || {
        let entry = entry();
        let app = BufferApp::new(&entry, ASYNC);
        app.record(0, HAZARD);
        app.submit(0).expect("the null driver submits");
        app.destroy_device();
        let heard = take_received();
        let [received_message] = &heard[..] else { panic!("one message, not {heard:#?}") };
        assert_eq!((received_message.thread, received_message.name.as_str()), (std::thread::current().id(), CODE));
        assert_eq!(received_message.number.cast_unsigned(), 0x5c0e_c5d6);
        assert!(
            received_message.text.starts_with("vkCmdFillBuffer(): WRITE_AFTER_WRITE hazard detected."),
            "{}",
            received_message.text
        );
        assert!(
            received_message.text.contains("VkBuffer#0[32..64]") && received_message.text.contains("Fix (verified)"),
            "{}",
            received_message.text
        );
        app.destroy_instance();
        assert_eq!(take_received(), []);
    }) else {
        return;
    };
    assert!(!outcome.stderr.contains("SYNC-HAZARD"), "what was heard is not logged: {}", outcome.stderr);
}

/// It is reported at recording, and not again at submission.
#[test]
fn what_is_never_submitted_is_found() {
    child("validation::what_is_never_submitted_is_found", &[], || {
        let entry = entry();
        let app = BufferApp::new(&entry, ASYNC);
        app.record(0, HAZARD);
        app.record(1, &[(0, 1)]);
        app.submit(1).expect("the null driver submits");
        app.destroy_device();
        let heard = take_received();
        let [received_message] = &heard[..] else { panic!("one message, not {heard:#?}") };
        assert!(
            received_message.text.contains("command 2 of VkCommandBuffer#0: vkCmdFillBuffer"),
            "{}",
            received_message.text
        );
        assert!(!received_message.text.contains("submit"), "nothing of it was submitted: {}", received_message.text);
        app.destroy_instance();
    });
}

#[test]
fn equal_messages_stop_at_the_limit() {
    let name = "validation::equal_messages_stop_at_the_limit";
    child(name, &[], || {
        let entry = entry();
        let app = BufferApp::new(&entry, ASYNC);
        for _ in 0..30 {
            app.record(0, HAZARD);
            app.submit(0).expect("the null driver submits");
            app.wait();
        }
        app.destroy_device();
        assert_eq!(take_received().len(), 10);
        app.destroy_instance();
    });
}

#[test]
fn without_a_messenger_a_hazard_is_logged_once_and_counted() {
    let name = "validation::without_a_messenger_a_hazard_is_logged_once_and_counted";
    let Some(outcome) = child(name, &[], || {
        let entry = entry();
        let app = BufferApp::silent(&entry, ASYNC);
        for _ in 0..30 {
            app.record(0, HAZARD);
            app.submit(0).expect("the null driver submits");
            app.wait();
        }
        app.destroy();
    }) else {
        return;
    };
    let logged = format!("lavascope: error: [ {CODE} | MessageID = 0x5c0ec5d6 ] vkCmdFillBuffer()");
    assert_eq!(outcome.stderr.matches(&logged).count(), 1, "{}", outcome.stderr);
    assert!(outcome.stderr.contains(&format!("30 times: {CODE}: ")), "{}", outcome.stderr);
}

#[test]
fn a_hazard_is_reported_though_nothing_is_destroyed() {
    let name = "validation::a_hazard_is_reported_though_nothing_is_destroyed";
    let Some(outcome) = child(name, &REPORT, || {
        let entry = entry();
        let app = BufferApp::silent(&entry, ASYNC);
        app.record(0, HAZARD);
        app.submit(0).expect("the null driver submits");
        println!("1 passed");
        std::process::exit(0);
    }) else {
        return;
    };
    let findings = outcome.of_kind("finding");
    let [value] = &findings[..] else { panic!("{findings:#?}") };
    assert_eq!((value["code"].as_str(), value["occurrences"].as_u64()), (Some(CODE), Some(1)));
    assert!(!outcome.stderr.contains(CODE), "the report has it: {}", outcome.stderr);
}

/// The reader is kept busy, and has room for little.
#[test]
fn threads_that_wait_for_the_reader_are_counted() {
    let name = "validation::threads_that_wait_for_the_reader_are_counted";
    let Some(outcome) = child(name, &REPORT, || {
        let entry = entry();
        let app = BufferApp::silent(&entry, &[ASYNC, &[(c"sync_stream_mib", c"1")]].concat());
        app.begin(0);
        for value in 0..20_000 {
            app.fill(0, 0, value);
            app.barrier(0);
        }
        app.end(0);
        app.destroy();
    }) else {
        return;
    };
    let waited = outcome.of_kind("waited").pop().expect("it was told");
    assert!(waited["times"].as_u64() > Some(0) && waited["milliseconds"].as_u64() > Some(0), "{waited:#}");
}

/// The work waits for a signal that never comes, and the process exits.
#[test]
fn work_that_waits_at_the_end_is_reported() {
    let name = "validation::work_that_waits_at_the_end_is_reported";
    let Some(outcome) = child(name, &REPORT, || {
        let entry = entry();
        let app = BufferApp::silent(&entry, ASYNC);
        app.record(0, &[(0, 1)]);
        app.submit_after(0, 7);
        println!("1 passed");
        std::process::exit(0);
    }) else {
        return;
    };
    let findings = outcome.of_kind("finding");
    let [value] = &findings[..] else { panic!("{findings:#?}") };
    assert_eq!(value["code"], "SYNC-NEVER-EXECUTED");
    let text = value["message"].as_str().unwrap_or_default();
    assert!(text.contains("submit 1 on VkQueue#0") && text.contains("VkSemaphore#0 with the value 7"), "{text}");
}

#[test]
fn counts_add_up_in_the_report() {
    let name = "validation::counts_add_up_in_the_report";
    let Some(outcome) = child(name, &REPORT, || {
        let entry = entry();
        let app = BufferApp::silent(&entry, ASYNC);
        app.record(0, &[(0, 1)]);
        for _ in 0..101 {
            app.submit(0).expect("the null driver submits");
        }
        app.destroy();
    }) else {
        return;
    };
    let counts: Vec<u64> = outcome.of_kind("finding").iter().filter_map(|it| it["occurrences"].as_u64()).collect();
    assert_eq!(counts.iter().sum::<u64>(), 100, "{counts:?}");
    assert!(outcome.of_kind("bug").is_empty());
}

#[test]
fn a_message_names_the_applications_objects() {
    let name = "validation::a_message_names_the_applications_objects";
    child(name, &[], || {
        let entry = entry();
        let app = BufferApp::new(&entry, ASYNC);
        app.name(app.buffer, c"the tea");
        app.record(0, &[(0, 1)]);
        // Until the reader has come that far.
        let mut heard = std::iter::repeat_with(|| {
            app.submit(0).expect("the null driver submits");
            take_received()
        });
        let heard = heard.find(|it| !it.is_empty()).expect("some time");
        let queue = vk::Handle::as_raw(app.world.queue);
        let (buffer, commands) = (vk::Handle::as_raw(app.buffer), vk::Handle::as_raw(app.commands[0]));
        use vk::ObjectType as T;
        let want = [
            (T::BUFFER, buffer, Some("the tea".to_owned())),
            (T::COMMAND_BUFFER, commands, None),
            (T::QUEUE, queue, None),
        ];
        assert_eq!(heard[0].objects, want);
        app.destroy();
    });
}
