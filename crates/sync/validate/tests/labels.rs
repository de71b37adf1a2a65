//! The debug labels that a finding is shown with: of the queue, of command buffers before, around the execution of
//! secondary command buffers, and around the command itself.

#[path = "../benches/records/app.rs"]
#[allow(dead_code, reason = "benchmarks use the rest")]
mod app;

use std::ffi::CStr;

use app::*;
use lavascope_abi::*;
use lavascope_diag::{Diagnostic, DiagnosticIdentity, IgnoreRule};
use lavascope_validate::Validator;

const SECONDARY: u64 = 9;
const OTHER: u64 = 4;

#[derive(Default)]
struct LabeledApp {
    app: RecordedApp,
}

impl LabeledApp {
    fn new() -> LabeledApp {
        let mut app = RecordedApp::default();
        app.make_device();
        for other in [OTHER, SECONDARY] {
            app.other = Some(other);
            let level = if other == SECONDARY { CommandBufferLevel::SECONDARY } else { CommandBufferLevel::PRIMARY };
            let info = CommandBufferAllocateInfo {
                command_pool: command_pool(1),
                level,
                command_buffer_count: 1,
                ..CommandBufferAllocateInfo::zeroed()
            };
            let params = AllocateCommandBuffersParams {
                device: device(1),
                p_allocate_info: Ptr::to(&info),
                p_command_buffers: Ptr::to(&app.commands()),
            };
            app.call(Command::AllocateCommandBuffers, &params);
        }
        app.other = None;
        app.make_buffer(1);
        LabeledApp { app }
    }

    fn select(&mut self, commands: u64) -> &mut LabeledApp {
        self.app.other = Some(commands);
        let inheritance = CommandBufferInheritanceInfo::zeroed();
        let info =
            CommandBufferBeginInfo { p_inheritance_info: Ptr::to(&inheritance), ..CommandBufferBeginInfo::zeroed() };
        let command_buffer = self.app.commands();
        let params = BeginCommandBufferParams { command_buffer, p_begin_info: Ptr::to(&info) };
        self.app.call(Command::BeginCommandBuffer, &params);
        self
    }

    fn open(&mut self, name: &'static CStr) -> &mut LabeledApp {
        let (command_buffer, label) = (self.app.commands(), label(name));
        let params = CmdBeginDebugUtilsLabelEXTParams { command_buffer, p_label_info: Ptr::to(&label) };
        self.app.call(Command::CmdBeginDebugUtilsLabelEXT, &params);
        self
    }

    fn close(&mut self) -> &mut LabeledApp {
        let command_buffer = self.app.commands();
        self.app.call(Command::CmdEndDebugUtilsLabelEXT, &CmdEndDebugUtilsLabelEXTParams { command_buffer });
        self
    }

    fn fill(&mut self) -> &mut LabeledApp {
        let (command_buffer, dst_buffer) = (self.app.commands(), buffer(1));
        let params = CmdFillBufferParams { command_buffer, dst_buffer, dst_offset: 0, size: 128, data: 7 };
        self.app.call(Command::CmdFillBuffer, &params);
        self
    }

    /// Another function: findings with it are no occurrences of those before.
    fn update(&mut self) -> &mut LabeledApp {
        let (command_buffer, dst_buffer, data) = (self.app.commands(), buffer(1), [0u32; 4]);
        let p_data = Ptr::new(data.as_ptr().expose_provenance() as u64);
        let params = CmdUpdateBufferParams { command_buffer, dst_buffer, dst_offset: 0, data_size: 16, p_data };
        self.app.call(Command::CmdUpdateBuffer, &params);
        self
    }

    fn execute(&mut self) -> &mut LabeledApp {
        let (command_buffer, secondary) = (self.app.commands(), command_buffer(SECONDARY));
        let params = CmdExecuteCommandsParams {
            command_buffer,
            command_buffer_count: 1,
            p_command_buffers: Ptr::to(&secondary),
        };
        self.app.call(Command::CmdExecuteCommands, &params);
        self
    }

    fn end(&mut self) {
        let command_buffer = self.app.commands();
        self.app.call(Command::EndCommandBuffer, &EndCommandBufferParams { command_buffer });
    }

    /// Each list of command buffers is a batch.
    fn submit(&mut self, batches: &[&[u64]]) {
        let batches: Vec<Vec<CommandBuffer>> =
            batches.iter().map(|it| it.iter().map(|it| command_buffer(*it)).collect()).collect();
        let info = |batch: &Vec<CommandBuffer>| SubmitInfo {
            command_buffer_count: batch.len() as u32,
            p_command_buffers: Ptr::new(batch.as_ptr().expose_provenance() as u64),
            ..SubmitInfo::zeroed()
        };
        let infos: Vec<SubmitInfo> = batches.iter().map(info).collect();
        let p_submits = Ptr::new(infos.as_ptr().expose_provenance() as u64);
        let params =
            QueueSubmitParams { queue: queue(1), submit_count: infos.len() as u32, p_submits, fence: Fence(0) };
        self.app.call(Command::QueueSubmit, &params);
    }

    fn open_on_queue(&mut self, name: &'static CStr) {
        let label = label(name);
        let params = QueueBeginDebugUtilsLabelEXTParams { queue: queue(1), p_label_info: Ptr::to(&label) };
        self.app.call(Command::QueueBeginDebugUtilsLabelEXT, &params);
    }

    /// The labels of the two accesses of the last finding, the later one first.
    fn labels(&self) -> [String; 2] {
        let last = self.last();
        ["debug_region", "prior_debug_region"].map(|it| last.property(it).unwrap_or_default().to_owned())
    }

    fn last(&self) -> Diagnostic {
        let mut validator = Validator::default();
        validator.check_submissions();
        self.app.records.iter().for_each(|it| validator.process_record(1, *it));
        let last = validator.diagnostics().last().expect("a finding").clone();
        // What tools read, what baselines compare, what people read and what is ignored agree.
        let labels = last.locations[0].labels.path();
        assert_eq!(labels.as_deref(), last.property("debug_region"), "{last:#?}");
        if let Some(labels) = labels {
            let identity = DiagnosticIdentity::of(&last);
            assert!(identity.lines[0].contains(&format!(" in {labels:?} (")), "{identity:?}");
            assert!(last.locations[0].text.ends_with(&format!("in {labels}")), "{last:#?}");
            assert!(last.message.contains(&format!("[{labels}]")), "{}", last.message);
            let rule = IgnoreRule::parse(&format!("label=^{labels}$")).expect("a rule");
            assert!(rule.matches(&last), "{rule:?}");
        }
        last
    }
}

fn label(name: &'static CStr) -> DebugUtilsLabelEXT {
    DebugUtilsLabelEXT {
        p_label_name: Ptr::new(name.as_ptr().expose_provenance() as u64),
        ..DebugUtilsLabelEXT::zeroed()
    }
}

#[test]
fn labels_around_the_execution_of_a_secondary_are_around_its_commands() {
    let mut app = LabeledApp::new();
    app.select(SECONDARY).open(c"Shadow").fill().close().end();
    app.select(PRIMARY).open(c"Frame").execute().close().end();
    app.select(OTHER).open(c"Later").execute().close().end();
    app.submit(&[&[PRIMARY], &[OTHER]]);
    assert_eq!(app.labels(), ["Later::Shadow", "Frame::Shadow"]);
    let path = app.last().locations[0].path.clone();
    assert_eq!(path, ["vkCmdExecuteCommands", "vkCmdFillBuffer"]);
}

#[test]
fn labels_span_command_buffers_batches_and_submissions() {
    let fills = || {
        let mut app = LabeledApp::new();
        app.select(PRIMARY).open(c"Frame").open(c"Sky").fill().end();
        app.select(OTHER).fill().close().open(c"Sea").end();
        app
    };
    let mut app = fills();
    app.submit(&[&[PRIMARY, OTHER]]);
    assert_eq!(app.labels(), ["Frame::Sky", "Frame::Sky"]);
    let mut app = fills();
    app.submit(&[&[PRIMARY], &[OTHER]]);
    assert_eq!(app.labels(), ["Frame::Sky", "Frame::Sky"]);
    let mut app = fills();
    app.open_on_queue(c"Queue");
    app.submit(&[&[PRIMARY]]);
    app.submit(&[&[OTHER]]);
    assert_eq!(app.labels(), ["Queue::Frame::Sky", "Queue::Frame::Sky"]);
    // What was closed is closed, and what was opened instead is open.
    app.select(PRIMARY).update().close().close().end();
    app.submit(&[&[PRIMARY]]);
    assert_eq!(app.labels(), ["Queue::Frame::Sea", "Queue::Frame::Sky"]);
    app.select(PRIMARY).fill().end();
    app.submit(&[&[PRIMARY]]);
    assert_eq!(app.labels(), ["Queue", "Queue::Frame::Sea"]);
}

/// In a command buffer, too, labels end behind what closes them, wherever they were opened.
#[test]
fn labels_of_another_command_buffer_end_in_the_middle_of_one() {
    let mut app = LabeledApp::new();
    app.select(PRIMARY).open(c"Frame").open(c"Sky").fill().end();
    app.select(OTHER).close().open(c"Sea").fill().close().close().end();
    app.submit(&[&[PRIMARY, OTHER]]);
    assert_eq!(app.labels(), ["Frame::Sea", "Frame::Sky"]);
    app.select(PRIMARY).open(c"Next").update().close().end();
    app.submit(&[&[PRIMARY]]);
    assert_eq!(app.labels(), ["Next", "Frame::Sea"]);
}

/// The caches look at a recording once; what it leaves open counts each time.
#[test]
fn what_is_recorded_again_in_the_same_way_leaves_the_same_labels() {
    let mut app = LabeledApp::new();
    for _ in 0..3 {
        app.select(PRIMARY).open(c"Frame").end();
        app.select(OTHER).close().end();
        app.submit(&[&[PRIMARY], &[OTHER]]);
    }
    app.select(PRIMARY).open(c"Frame").end();
    app.submit(&[&[PRIMARY]]);
    for _ in 0..2 {
        app.select(OTHER).fill().end();
        app.submit(&[&[OTHER]]);
    }
    assert_eq!(app.labels(), ["Frame", "Frame"]);
}

/// Such labels would pile up, another path for each submission.
#[test]
fn a_program_that_forgets_to_close_labels_has_few() {
    let mut app = LabeledApp::new();
    for _ in 0..40 {
        app.select(PRIMARY).open(c"Frame").end();
        app.submit(&[&[PRIMARY]]);
    }
    for _ in 0..2 {
        app.select(OTHER).fill().end();
        app.submit(&[&[OTHER]]);
    }
    assert!(app.labels()[0].split("::").count() <= 16, "{:?}", app.labels());
}
