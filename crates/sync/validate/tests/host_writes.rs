//! Host writes to memory that stays mapped, which are noticed before a submission or a wait.

#[path = "../benches/records/app.rs"]
#[allow(dead_code, reason = "benchmarks use the rest")]
mod app;

use std::ops::Range;

use app::*;
use lavascope_abi::*;
use lavascope_diag::{Diagnostic, Severity};
use lavascope_record::{HostWrite, HostWriteBuilder};
use lavascope_sim::SyntheticObjects;
use lavascope_validate::Validator;

const SOURCE: u64 = 1;
const TARGET: u64 = 2;
/// Where the source lies in the memory.
const PLACE: u64 = SOURCE * BUFFER_SIZE;

/// An application, and a validator that sees its calls and its writes.
struct WritingApp {
    app: RecordedApp,
    seen: usize,
    validator: Validator,
}

impl WritingApp {
    /// Copies half of a buffer, and submits that.
    fn new(usage: BufferUsageFlags) -> WritingApp {
        let mut app = RecordedApp::default();
        app.make_device();
        make_buffer(&mut app, SOURCE, usage);
        make_buffer(&mut app, TARGET, BufferUsageFlags::TRANSFER_DST);
        app.begin();
        let command_buffer = app.commands();
        let region = BufferCopy { src_offset: 0, dst_offset: 0, size: BUFFER_SIZE / 2 };
        let params = CmdCopyBufferParams {
            command_buffer,
            src_buffer: buffer(SOURCE),
            dst_buffer: buffer(TARGET),
            region_count: 1,
            p_regions: Ptr::to(&region),
        };
        app.call(Command::CmdCopyBuffer, &params);
        app.call(Command::EndCommandBuffer, &EndCommandBufferParams { command_buffer });
        let submit =
            SubmitInfo { command_buffer_count: 1, p_command_buffers: Ptr::to(&command_buffer), ..SubmitInfo::zeroed() };
        let params =
            QueueSubmitParams { queue: queue(1), submit_count: 1, p_submits: Ptr::to(&submit), fence: fence(1) };
        app.call(Command::QueueSubmit, &params);
        let mut validator = Validator::default();
        validator.check_submissions();
        validator.check_host_writes();
        WritingApp { app, seen: 0, validator }
    }

    fn wait(&mut self) {
        let fence = fence(1);
        let params = WaitForFencesParams {
            device: device(1),
            fence_count: 1,
            p_fences: Ptr::to(&fence),
            wait_all: Bool32(1),
            timeout: u64::MAX,
        };
        self.app.call(Command::WaitForFences, &params);
    }

    /// The writes are noticed before the next call.
    fn write(&mut self, parts: &[Range<u64>]) {
        self.validate_calls();
        let mut writing = HostWriteBuilder::default();
        writing.set_noticed_by(Command::WaitForFences);
        writing.begin(SyntheticObjects::id_of(HandleType::DeviceMemory, memory(1).0), PLACE);
        parts.iter().for_each(|it| writing.add_range(it.start as u32, (it.end - it.start) as u32));
        let words = writing.finish(7, &[]).to_vec();
        self.validator.host_wrote(1, HostWrite::parse(&words).expect("our own"));
    }

    /// The same, with one bit for each byte of the buffer: the record has no list of the parts.
    fn write_bits(&mut self, is_written: impl Fn(u64) -> bool) {
        self.validate_calls();
        let mut bits = vec![0u64; (BUFFER_SIZE / 64) as usize];
        (0..BUFFER_SIZE).for_each(|it| bits[it as usize / 64] |= u64::from(is_written(it)) << (it % 64));
        let mut writing = HostWriteBuilder::default();
        writing.set_noticed_by(Command::WaitForFences);
        writing.begin(SyntheticObjects::id_of(HandleType::DeviceMemory, memory(1).0), PLACE);
        writing.set_bits(BUFFER_SIZE as u32, &bits);
        let words = writing.finish(7, &[]).to_vec();
        self.validator.host_wrote(1, HostWrite::parse(&words).expect("our own"));
    }

    fn validate_calls(&mut self) {
        self.app.records[self.seen..].iter().for_each(|it| self.validator.process_record(1, *it));
        self.seen = self.app.records.len();
    }

    fn findings(&mut self) -> Vec<Diagnostic> {
        self.validate_calls();
        self.validator.diagnostics().to_vec()
    }
}

fn make_buffer(app: &mut RecordedApp, serial: u64, usage: BufferUsageFlags) {
    let info = BufferCreateInfo { size: BUFFER_SIZE, usage, ..BufferCreateInfo::zeroed() };
    let params = CreateBufferParams {
        device: device(1),
        p_create_info: Ptr::to(&info),
        p_allocator: Ptr::NULL,
        p_buffer: Ptr::to(&buffer(serial)),
    };
    app.call(Command::CreateBuffer, &params);
    let memory_offset = serial * BUFFER_SIZE;
    let params = BindBufferMemoryParams { device: device(1), buffer: buffer(serial), memory: memory(1), memory_offset };
    app.call(Command::BindBufferMemory, &params);
}

const INPUT: BufferUsageFlags = BufferUsageFlags::TRANSFER_SRC;
const USED: Range<u64> = 2000..2004;
const UNUSED: Range<u64> = 2048..4096;

#[test]
fn a_write_before_the_wait_is_found() {
    let mut app = WritingApp::new(INPUT);
    app.write(&[16..20, USED, UNUSED]);
    app.wait();
    let [found] = &app.findings()[..] else { panic!("one finding") };
    assert_eq!((&*found.code.0, found.severity), ("SYNC-HAZARD-WRITE-RACING-READ", Severity::Error));
    assert!(found.message.contains("VkBuffer#1[16..20], which was"), "{}", found.message);
    let fix = &found.fixes[0];
    assert!(fix.is_verified && fix.text.contains("vkWaitForFences on VkFence#1"), "{fix:?}");
    assert_eq!(fix.changes[0].target, "before the write of the host, which comes before vkWaitForFences");
    let text = found.explanation.join("\n");
    assert!(text.contains("before vkWaitForFences, call 8 of thread 1"), "{text}");
}

#[test]
fn a_write_after_the_wait_is_correct() {
    let mut app = WritingApp::new(INPUT);
    app.wait();
    app.write(std::slice::from_ref(&(0..BUFFER_SIZE)));
    app.wait();
    assert_eq!(app.findings(), []);
}

#[test]
fn bytes_that_the_device_does_not_use_may_be_written() {
    let mut app = WritingApp::new(INPUT);
    app.write(&[UNUSED]);
    app.wait();
    assert_eq!(app.findings(), []);
}

#[test]
fn many_short_runs_are_as_exact_as_few() {
    let in_unused = |it: u64| UNUSED.contains(&it) && it.is_multiple_of(3);
    let mut app = WritingApp::new(INPUT);
    app.write_bits(in_unused);
    app.wait();
    assert_eq!(app.findings(), []);
    let mut app = WritingApp::new(INPUT);
    app.write_bits(|it| in_unused(it) || USED.contains(&it));
    app.wait();
    let [found] = &app.findings()[..] else { panic!("one finding") };
    assert!(found.message.contains("VkBuffer#1[2000..2004], which was"), "{}", found.message);
}

#[test]
fn what_the_device_may_have_written_is_no_host_write() {
    for usage in [INPUT.0 | BufferUsageFlags::TRANSFER_DST.0, INPUT.0 | BufferUsageFlags::STORAGE_BUFFER.0] {
        let mut app = WritingApp::new(BufferUsageFlags(usage));
        app.write(&[USED]);
        app.wait();
        assert_eq!(app.findings(), []);
    }
}

#[test]
fn if_shaders_have_the_address_a_write_is_likely() {
    let mut app = WritingApp::new(BufferUsageFlags(INPUT.0 | BufferUsageFlags::SHADER_DEVICE_ADDRESS.0));
    app.write(&[USED]);
    app.wait();
    let severities: Vec<Severity> = app.findings().iter().map(|it| it.severity).collect();
    assert_eq!(severities, [Severity::Warning]);
}

#[test]
fn a_buffer_in_the_same_memory_may_be_one_that_the_device_writes() {
    let mut app = WritingApp::new(INPUT);
    let other = 3;
    let info =
        BufferCreateInfo { size: BUFFER_SIZE, usage: BufferUsageFlags::STORAGE_BUFFER, ..BufferCreateInfo::zeroed() };
    let params = CreateBufferParams {
        device: device(1),
        p_create_info: Ptr::to(&info),
        p_allocator: Ptr::NULL,
        p_buffer: Ptr::to(&buffer(other)),
    };
    app.app.call(Command::CreateBuffer, &params);
    let params =
        BindBufferMemoryParams { device: device(1), buffer: buffer(other), memory: memory(1), memory_offset: PLACE };
    app.app.call(Command::BindBufferMemory, &params);
    app.write(&[USED]);
    app.wait();
    assert_eq!(app.findings(), []);
}

#[test]
fn nothing_is_checked_unless_asked_for() {
    let mut app = WritingApp::new(INPUT);
    app.validator = Validator::default();
    app.validator.check_submissions();
    app.write(&[USED]);
    assert_eq!(app.findings(), []);
}
