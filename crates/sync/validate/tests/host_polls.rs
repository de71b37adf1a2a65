//! A host that asks the device how far it is, and then uses memory: what is said of that.

#[path = "../benches/records/app.rs"]
#[allow(dead_code, reason = "benchmarks use the rest")]
mod app;

use app::*;
use lavascope_abi::*;
use lavascope_diag::Diagnostic;
use lavascope_sim::SyntheticObjects;
use lavascope_validate::Validator;

const EVENT_SET: u64 = 3;
const POLLED: &str = "that orders no access of the host to memory, and a wait for a fence, a timeline semaphore or the \
                      queue does";

fn event() -> Event {
    Event(SyntheticObjects::handle_of(HandleType::Event, 1))
}

fn query_pool() -> QueryPool {
    QueryPool(SyntheticObjects::handle_of(HandleType::QueryPool, 1))
}

/// Reads a buffer on the device, sets an event behind that, and submits it.
fn read_and_set() -> RecordedApp {
    let mut app = RecordedApp::default();
    app.make_device();
    app.make_buffer(1);
    let info = EventCreateInfo::zeroed();
    let params = CreateEventParams {
        device: device(1),
        p_create_info: Ptr::to(&info),
        p_allocator: Ptr::NULL,
        p_event: Ptr::to(&event()),
    };
    app.call(Command::CreateEvent, &params);
    app.begin();
    let command_buffer = app.commands();
    let params =
        CmdFillBufferParams { command_buffer, dst_buffer: buffer(1), dst_offset: 0, size: BUFFER_SIZE, data: 7 };
    app.call(Command::CmdFillBuffer, &params);
    let stage_mask = PipelineStageFlags::TRANSFER;
    app.call(Command::CmdSetEvent, &CmdSetEventParams { command_buffer, event: event(), stage_mask });
    app.call(Command::EndCommandBuffer, &EndCommandBufferParams { command_buffer });
    let submit =
        SubmitInfo { command_buffer_count: 1, p_command_buffers: Ptr::to(&command_buffer), ..SubmitInfo::zeroed() };
    let params = QueueSubmitParams { queue: queue(1), submit_count: 1, p_submits: Ptr::to(&submit), fence: fence(1) };
    app.call(Command::QueueSubmit, &params);
    app
}

fn poll_event(app: &mut RecordedApp, result: u64) {
    let params = GetEventStatusParams { device: device(1), event: event() };
    app.call_returning(Command::GetEventStatus, &params, result);
}

fn poll_queries(app: &mut RecordedApp) {
    let mut data = [0u64; 1];
    let params = GetQueryPoolResultsParams {
        device: device(1),
        query_pool: query_pool(),
        first_query: 0,
        query_count: 1,
        data_size: 8,
        p_data: Ptr::new(data.as_mut_ptr().expose_provenance() as u64),
        stride: 8,
        flags: QueryResultFlags(1),
    };
    app.call(Command::GetQueryPoolResults, &params);
}

/// Maps the memory and unmaps it; what happens in between is in no record.
fn map_and_unmap(app: &mut RecordedApp) {
    let place = 0u64;
    let params = MapMemoryParams {
        device: device(1),
        memory: memory(1),
        offset: 0,
        size: u64::MAX,
        flags: MemoryMapFlags(0),
        pp_data: Ptr::new(std::ptr::from_ref(&place).expose_provenance() as u64),
    };
    app.call(Command::MapMemory, &params);
    app.call(Command::UnmapMemory, &UnmapMemoryParams { device: device(1), memory: memory(1) });
}

fn findings(app: &RecordedApp) -> Vec<Diagnostic> {
    let mut validator = Validator::default();
    validator.check_submissions();
    app.records.iter().for_each(|it| validator.process_record(1, *it));
    validator.diagnostics().to_vec()
}

fn only_finding(app: &RecordedApp) -> Diagnostic {
    let all = findings(app);
    let [diagnostic] = &all[..] else { panic!("one finding, not {all:#?}") };
    diagnostic.clone()
}

#[test]
fn an_event_that_was_seen_set_is_reported_with_what_it_orders() {
    let mut app = read_and_set();
    poll_event(&mut app, EVENT_SET);
    map_and_unmap(&mut app);
    let found = only_finding(&app);
    assert!(found.message.contains("The host may read or write VkBuffer#1[0..4096], which"), "{}", found.message);
    let polls: Vec<&String> = found.explanation.iter().filter(|it| it.contains("vkGetEventStatus")).collect();
    assert!(polls.len() == 1 && polls[0].ends_with(POLLED), "{found:#?}");
    assert!(polls[0].contains("reported that VkEvent#1 was set"), "{}", polls[0]);
    let text = found.explanation.join("\n");
    assert!(!text.contains("nothing waits for it"), "{text}");
}

#[test]
fn queries_that_had_results_are_reported_likewise() {
    let mut app = read_and_set();
    poll_queries(&mut app);
    map_and_unmap(&mut app);
    let text = only_finding(&app).explanation.join("\n");
    assert!(text.contains("reported that VkQueryPool#1 had results") && text.contains(POLLED), "{text}");
}

#[test]
fn other_answers_are_not_reported() {
    let mut app = read_and_set();
    // Not set yet.
    poll_event(&mut app, 4);
    map_and_unmap(&mut app);
    // Set, but after the access.
    poll_event(&mut app, EVENT_SET);
    let text = only_finding(&app).explanation.join("\n");
    assert!(!text.contains("vkGetEventStatus"), "{text}");
}

/// What is asked of a fence is a wait: the write is over then, and only visibility is missing, or nothing.
#[test]
fn a_fence_that_was_seen_signaled_is_a_wait() {
    let mut app = read_and_set();
    let params = GetFenceStatusParams { device: device(1), fence: fence(1) };
    app.call(Command::GetFenceStatus, &params);
    map_and_unmap(&mut app);
    let found = only_finding(&app);
    assert!(found.message.contains("The write is over when the host gets there"), "{}", found.message);
    let mut app = read_and_set();
    app.call_returning(Command::GetFenceStatus, &params, 1);
    map_and_unmap(&mut app);
    assert!(only_finding(&app).message.contains("the host does not wait for the batch"), "VK_NOT_READY is no wait");
}
