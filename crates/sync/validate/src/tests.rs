//! Tests that call the listener directly, in place of the tracker.

use std::ops::Range;

use lavascope_abi::{AccessFlags2 as A, Command as Api, HandleType, ObjectId, PipelineStageFlags2 as S};
use lavascope_diag::{Diagnostic, Severity};
use lavascope_state::{CallSource, Destroyed, DeviceCall, TrackerListener};
use lavascope_sync_ir::{
    Access, Barrier, Certainty, Command, CommandBufferId, Dependency, DependencyTarget, FenceId, HostStep,
    MemoryBinding, MemoryId, Queue, QueueId, Region, Resource, ResourceId, ResourceKind, SemaphoreId, SemaphorePoint,
    SemaphoreSignal, SemaphoreWait, SubmitBatch, SyncScope,
};

use crate::devices::ValidatedDevices;
use crate::recording::step_history::STEPS_MAX;

mod feedback;
mod fixes;
mod grouping;
mod limits;
mod races;
mod repeats;

const GRAPHICS: Queue = Queue { family: 0, flags: 7 };
const ALL: u64 = S::ALL_COMMANDS.0;

/// An application with one device.
struct App {
    devices: ValidatedDevices,
    calls: u64,
}

fn object(ty: HandleType, serial: u32) -> ObjectId {
    ObjectId::new(ty, u64::from(serial)).unwrap_or_default()
}

fn access(resource: u32, access: A) -> Command {
    Command::Action(vec![Access::new(ResourceId(resource), Region::Buffer(0..16), S::COPY.0, access.0)])
}

fn read(resource: u32) -> Command {
    access(resource, A::TRANSFER_READ)
}

fn write(resource: u32) -> Command {
    access(resource, A::TRANSFER_WRITE)
}

impl App {
    fn new() -> App {
        let mut app = App { devices: ValidatedDevices::default(), calls: 0 };
        app.devices.checks_submissions = true;
        let at = app.at(Api::CreateDevice);
        app.devices.device(at, &[GRAPHICS]);
        app.devices.queue(at, QueueId(0), object(HandleType::Queue, 0));
        app
    }

    fn at(&mut self, command: Api) -> DeviceCall {
        self.calls += 1;
        let source = CallSource { command, thread: 1, call: self.calls };
        DeviceCall { device: object(HandleType::Device, 0), source }
    }

    fn buffer(&mut self, id: u32) {
        let at = self.at(Api::BindBufferMemory);
        let resource = Resource::new(ResourceKind::Buffer { size: 64 }, None);
        self.devices.resource(at, ResourceId(id), object(HandleType::Buffer, id), &resource);
    }

    fn record(&mut self, id: u32, commands: impl IntoIterator<Item = Command>) {
        let (at, object) = (self.at(Api::BeginCommandBuffer), object(HandleType::CommandBuffer, id));
        self.devices.command_buffer(at, CommandBufferId(id), object, GRAPHICS);
        self.devices.begin(at, CommandBufferId(id), object, false);
        for item in commands {
            let function = if let Command::Execute(_) = item { Api::CmdExecuteCommands } else { Api::CmdCopyBuffer };
            let at = self.at(function);
            match item {
                Command::Action(accesses) => self.devices.action_recorded(&at, CommandBufferId(id), &accesses),
                other => self.devices.command_recorded(at, CommandBufferId(id), other),
            }
        }
        let at = self.at(Api::EndCommandBuffer);
        self.devices.end(at, CommandBufferId(id));
    }

    fn submit(&mut self, batch: SubmitBatch, fence: Option<u32>) {
        let at = self.at(Api::QueueSubmit);
        let fence = fence.map(FenceId);
        self.devices.step(at, HostStep::Submit { queue: QueueId(0), batches: vec![batch], fence });
    }

    fn submit_one(&mut self, id: u32) {
        self.submit(SubmitBatch { command_buffers: vec![CommandBufferId(id)], ..SubmitBatch::default() }, None);
    }

    fn step(&mut self, command: Api, step: HostStep) {
        let at = self.at(command);
        self.devices.step(at, step);
    }

    fn diagnostics(&self) -> &[Diagnostic] {
        &self.devices.causes.diagnostics
    }
}

#[test]
fn a_cause_is_explained_once_and_counted() {
    let mut app = App::new();
    app.buffer(3);
    app.record(5, [write(3)]);
    for _ in 0..4 {
        app.submit_one(5);
    }
    // Recorded again, it is the same command of the same command buffer.
    app.record(5, [write(3)]);
    app.submit_one(5);
    let [diagnostic] = app.diagnostics() else { panic!("{:#?}", app.diagnostics()) };
    assert_eq!((&*diagnostic.code.0, diagnostic.count), ("SYNC-HAZARD-WRITE-AFTER-WRITE", 4));
    assert!(
        diagnostic.message.contains("submitted on the current VkQueue#0) writes to VkBuffer#3[0..16]"),
        "{}",
        diagnostic.message
    );
    assert!(
        diagnostic.locations[0].text.contains("VkCommandBuffer#5, submit 2 on VkQueue#0"),
        "{:?}",
        diagnostic.locations
    );
    assert!(diagnostic.locations[1].text.contains("submit 1 on"), "{:?}", diagnostic.locations);
    assert!(diagnostic.fixes.first().is_some_and(|it| it.is_verified), "{diagnostic:#?}");
    assert_eq!(diagnostic.property("submit_index"), Some("0"), "of the earlier access");
    let new: Vec<bool> = app.devices.causes.new.iter().map(|it| it.is_first).collect();
    assert_eq!(new, [true, false, false, false]);
}

/// The command buffer is recorded anew with other parts of the resource: the cause stays one, and each text is true.
#[test]
fn a_cause_about_other_parts_has_a_text_of_its_own() {
    let mut app = App::new();
    app.buffer(0);
    let part = |bytes: Range<u64>| {
        Command::Action(vec![Access::new(ResourceId(0), Region::Buffer(bytes), S::COPY.0, A::TRANSFER_WRITE.0)])
    };
    for bytes in [0..8, 16..24, 0..8, 16..24] {
        app.record(1, [part(bytes.clone()), part(bytes)]);
    }
    let [diagnostic] = app.diagnostics() else { panic!("{:#?}", app.diagnostics()) };
    assert!(diagnostic.message.contains("VkBuffer#0[0..8]"), "{}", diagnostic.message);
    assert_eq!(diagnostic.count, 4);
    let [other] = &app.devices.causes.site_diagnostics[..] else {
        panic!("{:#?}", app.devices.causes.site_diagnostics)
    };
    assert!(other.message.contains("VkBuffer#0[16..24]"), "{}", other.message);
    let reported: Vec<Option<usize>> = app.devices.causes.new.iter().map(|it| it.site_diagnostic).collect();
    assert_eq!(reported, [None, Some(0), None, Some(0)]);
    // There is an end to that.
    for start in (24..64).step_by(4) {
        app.record(1, [part(start..start + 4), part(start..start + 4)]);
    }
    assert_eq!((app.diagnostics().len(), app.devices.causes.site_diagnostics.len()), (1, 7));
}

/// What is certain is no repetition of what is only possible.
#[test]
fn what_is_only_possible_is_a_cause_of_its_own() {
    let mut app = App::new();
    app.buffer(0);
    let part = |bytes: Range<u64>, certainty| {
        let access = Access::new(ResourceId(0), Region::Buffer(bytes), S::COPY.0, A::TRANSFER_WRITE.0);
        Command::Action(vec![Access { certainty, ..access }])
    };
    for certainty in [Certainty::Anywhere, Certainty::Certain, Certainty::Anywhere] {
        app.record(1, [part(0..8, Certainty::Certain), part(0..32, certainty)]);
    }
    let reported: Vec<_> = app.diagnostics().iter().map(|it| (it.severity, it.is_overlap_assumed, it.count)).collect();
    assert_eq!(reported, [(Severity::Information, true, 2), (Severity::Error, false, 1)]);
}

/// The same commands in another free command buffer are the same cause. Other commands are another cause.
#[test]
fn command_buffers_without_names_are_known_by_what_is_recorded() {
    let mut app = App::new();
    app.buffer(0);
    for id in 0..6 {
        app.record(id, [write(0), read(0)]);
        app.submit_one(id);
        app.step(Api::DeviceWaitIdle, HostStep::DeviceIdle);
    }
    assert_eq!(app.diagnostics().iter().map(|it| it.count).collect::<Vec<_>>(), [6]);
    app.record(7, [read(0), write(0), read(0)]);
    app.submit_one(7);
    assert_eq!(app.diagnostics().len(), 3, "{:#?}", app.diagnostics());
}

/// The slice begins after the signal, and must not wait for it.
#[test]
fn what_was_signaled_before_is_not_waited_for() {
    let mut app = App::new();
    app.buffer(0);
    let (binary, timeline) = (
        SemaphorePoint { semaphore: SemaphoreId(0), value: None },
        SemaphorePoint { semaphore: SemaphoreId(1), value: Some(7) },
    );
    for id in 0..2 {
        let at = app.at(Api::CreateSemaphore);
        app.devices.semaphore(at, SemaphoreId(id), object(HandleType::Semaphore, id));
    }
    let signals = [binary, timeline].map(|point| SemaphoreSignal { point, stages: ALL });
    app.submit(SubmitBatch { signals: signals.to_vec(), ..SubmitBatch::default() }, None);
    app.record(0, [write(0)]);
    app.record(1, [read(0)]);
    let waits = [binary, timeline].map(|point| SemaphoreWait { point, stages: ALL });
    let command_buffers = vec![CommandBufferId(0)];
    app.submit(SubmitBatch { waits: waits.to_vec(), command_buffers, ..SubmitBatch::default() }, None);
    app.submit_one(1);
    let [diagnostic] = app.diagnostics() else { panic!("{:#?}", app.diagnostics()) };
    assert!(!diagnostic.fixes.is_empty(), "{diagnostic:#?}");
}

#[test]
fn a_fix_names_a_presentation_once() {
    let mut app = App::new();
    app.buffer(0);
    app.record(0, [write(0)]);
    app.submit_one(0);
    let images = vec![ResourceId(0)];
    app.step(Api::QueuePresentKHR, HostStep::Present { queue: QueueId(0), waits: Vec::new(), images });
    let [diagnostic] = app.diagnostics() else { panic!("{:#?}", app.diagnostics()) };
    assert_eq!(&*diagnostic.code.0, "SYNC-HAZARD-PRESENT-AFTER-WRITE");
    let text = format!("and have vkQueuePresentKHR, call {} of thread 1 wait for it", app.calls);
    assert!(diagnostic.fixes[0].text.ends_with(&text), "{:?}", diagnostic.fixes);
}

#[test]
fn a_command_of_a_secondary_command_buffer_is_named() {
    let mut app = App::new();
    app.buffer(0);
    app.record(0, [write(0)]);
    app.record(1, [read(0)]);
    app.record(2, [Command::Execute(vec![CommandBufferId(0), CommandBufferId(1)])]);
    app.submit_one(2);
    let [diagnostic] = app.diagnostics() else { panic!("{:#?}", app.diagnostics()) };
    assert!(
        diagnostic.locations[0].text.contains("of VkCommandBuffer#1, executed by command"),
        "{:?}",
        diagnostic.locations
    );
    assert!(
        diagnostic.locations[1].text.contains("of VkCommandBuffer#0, executed by command"),
        "{:?}",
        diagnostic.locations
    );
    assert!(!diagnostic.fixes.is_empty(), "{diagnostic:#?}");
}

/// A program that creates and destroys objects all the time does not fill the memory.
#[test]
fn what_is_gone_is_forgotten() {
    let mut app = App::new();
    for id in 0..3 * STEPS_MAX as u32 {
        app.buffer(id);
        let at = app.at(Api::CreateFence);
        app.devices.fence(at, FenceId(id), object(HandleType::Fence, id));
        app.record(id, [write(id)]);
        app.submit(SubmitBatch { command_buffers: vec![CommandBufferId(id)], ..SubmitBatch::default() }, Some(id));
        app.step(Api::WaitForFences, HostStep::WaitFences(vec![FenceId(id)]));
        let at = app.at(Api::DestroyFence);
        app.devices.destroyed(at, Destroyed::Fence(FenceId(id)));
        app.devices.destroyed(at, Destroyed::CommandBuffer(CommandBufferId(id)));
        app.step(Api::DestroyBuffer, HostStep::Destroy(ResourceId(id)));
    }
    assert_eq!(app.diagnostics(), []);
    let (kept, slots) = app.devices.sizes();
    assert!(kept <= 2 * STEPS_MAX, "{kept} objects are remembered");
    assert!(slots <= 6, "the engine has {slots} numbers");
}

#[test]
fn work_that_waits_for_ever_is_reported_once_with_what_it_waits_for() {
    let mut app = App::new();
    app.buffer(0);
    for id in 0..2 {
        let at = app.at(Api::CreateSemaphore);
        app.devices.semaphore(at, SemaphoreId(id), object(HandleType::Semaphore, id));
    }
    app.step(
        Api::SignalSemaphore,
        HostStep::SignalSemaphore(SemaphorePoint { semaphore: SemaphoreId(0), value: Some(5) }),
    );
    app.record(0, [write(0)]);
    // The first of the two is already signaled.
    let waits = [(0, 5), (1, 7)].map(|(semaphore, value)| SemaphoreWait {
        point: SemaphorePoint { semaphore: SemaphoreId(semaphore), value: Some(value) },
        stages: ALL,
    });
    app.submit(
        SubmitBatch { waits: waits.to_vec(), command_buffers: vec![CommandBufferId(0)], ..SubmitBatch::default() },
        None,
    );
    app.submit_one(0);
    assert_eq!(app.diagnostics(), []);
    app.devices.finish();
    app.devices.finish();
    let [diagnostic] = app.diagnostics() else { panic!("{:#?}", app.diagnostics()) };
    assert_eq!((&*diagnostic.code.0, diagnostic.count), ("SYNC-NEVER-EXECUTED", 1));
    let text = "Work of submit 1 on VkQueue#0 was never executed, and not checked: it waits for VkSemaphore#1 with the \
                value 7, which nobody signals. One submission behind it waits with it.";
    assert_eq!(diagnostic.message, text);
}

/// A call that was undone has no effect: later work conflicts only with what came before it.
#[test]
fn a_submission_that_is_taken_back_leaves_no_trace() {
    let mut app = App::new();
    app.buffer(0);
    let mut other = App::new();
    other.buffer(0);
    for item in [&mut app, &mut other] {
        item.record(0, [write(0)]);
        item.record(1, [read(0)]);
        item.submit_one(0);
    }
    app.submit_one(1);
    assert_eq!(app.diagnostics().len(), 1);
    let source = CallSource { command: Api::QueueSubmit, thread: 1, call: app.calls };
    app.devices.undo_steps(source);
    // Only the write remains. A second write conflicts with that one, and not with the read.
    for item in [&mut app, &mut other] {
        item.submit_one(0);
    }
    let (last, only) = (app.diagnostics().last(), other.diagnostics().last());
    assert_eq!(last.map(|it| (&it.code, &it.message)), only.map(|it| (&it.code, &it.message)));
    assert!(last.is_some_and(|it| it.locations[0].text.contains("submit 2 on")), "{last:#?}");
}

/// Two resources that used the same memory one after the other still have no conflict after a rebuild.
#[test]
fn what_came_and_went_is_reported_again_in_its_order() {
    let mut app = App::new();
    let memory = |id: u32, app: &mut App| {
        let at = app.at(Api::BindBufferMemory);
        let binding = MemoryBinding { memory: MemoryId(0), offset: 0, size: 64 };
        let resource = Resource::new(ResourceKind::Buffer { size: 64 }, Some(binding));
        app.devices.resource(at, ResourceId(id), object(HandleType::Buffer, id), &resource);
    };
    memory(0, &mut app);
    app.record(0, [write(0)]);
    app.submit_one(0);
    app.step(Api::DestroyBuffer, HostStep::Destroy(ResourceId(0)));
    memory(1, &mut app);
    app.record(1, [write(1)]);
    app.submit_one(1);
    assert_eq!(app.diagnostics(), []);
    app.submit_one(1);
    assert_eq!(app.diagnostics().len(), 1);
    let source = CallSource { command: Api::QueueSubmit, thread: 1, call: app.calls };
    app.devices.undo_steps(source);
    app.step(Api::DeviceWaitIdle, HostStep::DeviceIdle);
    app.submit_one(1);
    assert_eq!(app.diagnostics().len(), 1, "{:#?}", app.diagnostics());
    assert_eq!(app.devices.causes.new.len(), 1);
}

/// A resource that ends too far in its memory is reported once for each call that binds it, and is in no hazard.
#[test]
fn what_there_is_no_room_for_is_reported() {
    let mut app = App::new();
    let kind = ResourceKind::Buffer { size: 64 };
    for (id, offset) in [(0, 0), (1, 1 << 40), (2, 1 << 41)] {
        let at = app.at(Api::BindBufferMemory);
        let resource = Resource::new(kind.clone(), Some(MemoryBinding { memory: MemoryId(0), offset, size: 64 }));
        app.devices.resource(at, ResourceId(id), object(HandleType::Buffer, id), &resource);
    }
    app.record(0, [write(1), write(1), write(2)]);
    app.submit_one(0);
    assert!(app.diagnostics().is_empty(), "{:?}", app.diagnostics());
    let reported: Vec<(Api, u64)> = app.devices.unplaced.iter().map(|(it, count)| (it.command, *count)).collect();
    assert_eq!(reported, [(Api::BindBufferMemory, 2)]);
    assert!(app.devices.unplaced.keys().all(|it| it.reason.contains("2^40")));
    app.record(1, [write(0), write(0)]);
    app.submit_one(1);
    assert_eq!(app.diagnostics().len(), 1);
}
