//! What the process shares: its objects, its threads, and who listens to its calls.
//!
//! Who listens is decided for each instance. The printer runs on the application's thread, before the driver, so that
//! the call that crashes the driver is printed. Inline validation runs there as well. The reader is a thread of ours:
//! it takes all records from the streams, counts them, and gives them to the capture and to async validation.
//!
//! An instance that nobody listens to leaves nothing behind when the loader unloads the library. Once somebody
//! listened, the library stays loaded, so that counts go on.
//!
//! At `exit` the layer waits for the reader as long as the reader makes progress. `termination` does the same for
//! signals.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, Once, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use lavascope_platform::threads;
use lavascope_record::RecordHeader;
use lavascope_settings::{BacktraceMode, OutputTarget, Settings, SyncMode};
use lavascope_stream::{Merger, ObjectTable, OrderedRecord, StreamControl, StreamThreads};
use serde_json::Value;

use crate::backtrace;
use crate::capture::Capture;
use crate::process::catch_panic::catch_panic;
use crate::process::forks;
use crate::process::listeners::Listeners;
use crate::process::termination;
use crate::report::call_log::CallLogWriter;
use crate::report::call_stats::CallStats;
use crate::report::report_file;
use crate::report::validation::Validation;

pub(crate) static PROCESS_STATE: ProcessState = ProcessState::new();

/// Default limit of words in all streams that the reader has not read yet: 256 MiB.
const WORDS_MAX: usize = 256 * WORDS_PER_MIB;
const WORDS_PER_MIB: usize = 1 << 17;

/// How long the layer waits for a reader that makes no progress. The explanation of a hazard may take seconds.
const READER_TIMEOUT: Duration = Duration::from_secs(10);

/// A crash may lose statistics of this much time.
const REPORT_INTERVAL: Duration = Duration::from_secs(1);
/// The first interval; each is twice as long as the one before.
const FIRST_REPORT_INTERVAL: Duration = Duration::from_millis(20);

pub(crate) struct ProcessState {
    pub(crate) objects: ObjectTable,
    pub(crate) threads: StreamThreads,
    pub(crate) stream_control: LazyLock<Arc<StreamControl>>,
    /// The bits of [`Listeners`]. Relaxed, because the data of each listener have locks of their own.
    listeners: AtomicU8,
    printer: Mutex<Option<CallLogWriter>>,
    reader: Mutex<ReaderThread>,
    is_stopping: AtomicBool,
    /// A signal is about to end the process. Release in `request_final_report`, Acquire by the reader.
    is_final_report_wanted: AtomicBool,
    /// The reader has reported everything recorded before the signal. Release by the reader, Acquire in
    /// `is_final_report_done`.
    is_final_report_done: AtomicBool,
    /// The process id and the thread id of the reader; zero if there is none. Relaxed, because they are read much
    /// later.
    reader_process: AtomicU32,
    reader_thread: AtomicU32,
    /// Number of records that were read. Relaxed, because a waiting thread only checks for progress.
    records_read: AtomicU64,
    /// Whether calls are captured. Relaxed, because metadata may arrive a little late.
    is_capturing: AtomicBool,
    /// Metadata that the next flush writes to the trace.
    trace_metadata: Mutex<Vec<Value>>,
    /// Whether a capture is complete, so that the next instance must not begin it again. Relaxed, as above.
    has_captured: AtomicBool,
    /// Whether calls are counted. Relaxed, because counts are only reported from time to time.
    is_counting: AtomicBool,
    /// Increases when a command buffer, its pool or its device is destroyed. A thread's cache is valid only while this
    /// stays the same. Relaxed, because the application must synchronize the destruction with other uses of the command
    /// buffer.
    generation: AtomicU64,
    /// Whether the setting `caches` is off. Relaxed, because late changes of this flag do not affect results.
    is_cache_disabled: AtomicBool,
}

/// The thread that reads all streams, and the number of its users.
struct ReaderThread {
    thread: Option<JoinHandle<()>>,
    /// Number of [`ReadingGuard`]s.
    users: usize,
    /// The process in which the thread runs. A forked process has no reader.
    process: u32,
}

/// Calls are read as long as one of these exists.
pub(crate) struct ReadingGuard(());

impl Drop for ReadingGuard {
    fn drop(&mut self) {
        catch_panic("the end of reading", || PROCESS_STATE.end_reading(), || ());
    }
}

/// The state of the reader thread. Behind a lock, because it outlives the thread.
static READER_STATE: LazyLock<Mutex<ReaderState>> = LazyLock::new(Mutex::default);

#[derive(Default)]
struct ReaderState {
    merger: Merger,
    stats: CallStats,
    /// None if validation is off, and after a bug of the layer.
    validation: Option<Box<Validation>>,
    report_timer: ReportTimer,
    capture: Option<Box<Capture>>,
}

impl ProcessState {
    const fn new() -> ProcessState {
        ProcessState {
            objects: ObjectTable::new(),
            threads: StreamThreads::new(),
            stream_control: LazyLock::new(|| StreamControl::new(WORDS_MAX)),
            listeners: AtomicU8::new(0),
            printer: Mutex::new(None),
            reader: Mutex::new(ReaderThread { thread: None, users: 0, process: 0 }),
            is_stopping: AtomicBool::new(false),
            is_final_report_wanted: AtomicBool::new(false),
            is_final_report_done: AtomicBool::new(false),
            reader_process: AtomicU32::new(0),
            reader_thread: AtomicU32::new(0),
            records_read: AtomicU64::new(0),
            is_capturing: AtomicBool::new(false),
            trace_metadata: Mutex::new(Vec::new()),
            has_captured: AtomicBool::new(false),
            is_counting: AtomicBool::new(false),
            generation: AtomicU64::new(1),
            is_cache_disabled: AtomicBool::new(false),
        }
    }

    /// Switches caches off: each call looks up its command buffer, and each draw chooses its variant.
    pub(crate) fn disable_caches(&self) {
        self.is_cache_disabled.store(true, Ordering::Relaxed);
        self.next_generation();
    }

    pub(crate) fn is_cache_disabled(&self) -> bool {
        self.is_cache_disabled.load(Ordering::Relaxed)
    }

    /// The active listeners among `wanted`.
    #[inline(always)]
    pub(crate) fn listeners(&self, wanted: Listeners) -> Listeners {
        let listeners = Listeners::from_bits(self.listeners.load(Ordering::Relaxed));
        if listeners.has_any(Listeners::DISABLED) { Listeners::NONE } else { listeners & wanted }
    }

    /// Whether a bug of the layer has disabled it.
    #[inline(always)]
    pub(crate) fn is_disabled(&self) -> bool {
        Listeners::from_bits(self.listeners.load(Ordering::Relaxed)).has_any(Listeners::DISABLED)
    }

    #[inline(always)]
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Relaxed)
    }

    /// Invalidates what threads have cached about command buffers.
    pub(crate) fn next_generation(&self) {
        self.generation.fetch_add(1, Ordering::Relaxed);
    }

    /// Disables the layer after a bug. The application continues without it.
    pub(crate) fn disable_layer(&self) {
        self.listeners.fetch_or(Listeners::DISABLED.bits(), Ordering::Relaxed);
        // The records of a call may be incomplete after the bug, and the reader would wait for the rest. So no thread
        // may wait for the reader.
        self.stream_control.clear_reader();
    }

    /// Starts printing calls.
    pub(crate) fn start_printing(&self, output: &OutputTarget) -> Result<(), String> {
        let mut printer = lock(&self.printer);
        if printer.as_ref().is_none_or(|it| it.output() != output) {
            *printer = Some(CallLogWriter::open(output)?);
        }
        self.listeners.fetch_or(Listeners::PRINTS.bits(), Ordering::Relaxed);
        Ok(())
    }

    /// Adds metadata to the trace, which are not a call.
    pub(crate) fn add_trace_metadata(&self, fact: Value) {
        if self.is_capturing() {
            lock(&self.trace_metadata).push(fact);
        }
    }

    /// The metadata that were added since the last call.
    pub(crate) fn take_trace_metadata(&self) -> Vec<Value> {
        std::mem::take(&mut *lock(&self.trace_metadata))
    }

    /// Prints a record, if printing is on.
    #[cold]
    pub(crate) fn print(&self, thread: u32, record: &[u64]) {
        if let Some(printer) = lock(&self.printer).as_mut() {
            printer.record(thread, record);
        }
    }

    /// Starts the reader thread, which counts and validates calls as the settings demand.
    pub(crate) fn start_reading(&self, settings: &Settings) -> Result<ReadingGuard, String> {
        let mut reader = lock(&self.reader);
        let process = std::process::id();
        if reader.thread.is_some() && reader.process != process {
            forks::has_own_instance();
            return Err("a fork of a process whose calls are read cannot read its own; use exec after fork".into());
        }
        if settings.stats {
            self.is_counting.store(true, Ordering::Relaxed);
        }
        self.stream_control.set_words_max((settings.sync_stream_mib as usize).saturating_mul(WORDS_PER_MIB));
        if settings.sync && settings.sync_mode == SyncMode::Async {
            lock(&READER_STATE)
                .validation
                .get_or_insert_with(|| Box::new(Validation::off_thread()))
                .add_settings(settings);
        }
        if let Some(path) = &settings.capture
            && !self.has_captured.load(Ordering::Relaxed)
            && lock(&READER_STATE).capture.is_none()
        {
            let capture = Box::new(Capture::begin(path, settings)?);
            lock(&READER_STATE).capture = Some(capture);
            self.set_capturing(true);
        }
        if reader.thread.is_none() {
            self.is_stopping.store(false, Ordering::Release);
            // This thread sets it, because the process may end before the reader runs for the first time, and must then
            // wait for it.
            self.reader_process.store(process, Ordering::Relaxed);
            let thread = std::thread::Builder::new().name("lavascope-reader".into()).spawn(reader_main);
            reader.thread = Some(thread.map_err(|error| {
                self.reader_process.store(0, Ordering::Relaxed);
                format!("no thread to read calls: {error}")
            })?);
            reader.process = process;
            self.listeners.fetch_or(Listeners::READER.bits(), Ordering::Relaxed);
            termination::install();
            stop_reading_in_forks();
        }
        reader.users += 1;
        Ok(ReadingGuard(()))
    }

    /// Whether host writes are recorded.
    pub(crate) fn is_capturing(&self) -> bool {
        self.is_capturing.load(Ordering::Relaxed)
    }

    pub(crate) fn set_capturing(&self, is_capturing: bool) {
        self.is_capturing.store(is_capturing, Ordering::Relaxed);
    }

    /// Starts inline validation.
    pub(crate) fn start_inline(&self) {
        self.listeners.fetch_or(Listeners::INLINE.bits(), Ordering::Relaxed);
    }

    /// Starts capturing call stacks.
    pub(crate) fn start_stacks(&self, mode: BacktraceMode) {
        backtrace::enable(mode);
        self.listeners.fetch_or(Listeners::STACKS.bits(), Ordering::Relaxed);
    }

    /// Whether a thread of ours reads the streams.
    pub(crate) fn is_reading(&self) -> bool {
        // If the lock is taken, another thread stops the reader; a forked process has no reader.
        let is_ours = |reader_thread: &ReaderThread| {
            reader_thread.process == std::process::id()
                && reader_thread.thread.as_ref().is_some_and(|it| !it.is_finished())
        };
        !self.listeners(Listeners::READER).is_empty() && self.reader.try_lock().is_ok_and(|it| is_ours(&it))
    }

    /// Calls `question` with the validation, after it has processed all records; none if there is no validation.
    pub(crate) fn with_validation<T>(&self, question: impl FnOnce(&mut Validation) -> T) -> Option<T> {
        let mut state = lock(&READER_STATE);
        state.read_all();
        state.validation.as_deref_mut().filter(|_| !self.is_disabled()).map(question)
    }

    /// Called by signal handlers before the process ends. Returns whether the reader must be waited for.
    pub(crate) fn request_final_report(&self) -> bool {
        let process = self.reader_process.load(Ordering::Relaxed);
        let (own_process, own_thread) = (std::process::id(), threads::id());
        let is_waited_for = process == own_process && self.reader_thread.load(Ordering::Relaxed) != own_thread;
        self.is_final_report_wanted.store(true, Ordering::Release);
        is_waited_for
    }

    /// Whether the final report is complete. Called by signal handlers.
    pub(crate) fn is_final_report_done(&self) -> bool {
        self.is_final_report_done.load(Ordering::Acquire) || self.reader_process.load(Ordering::Relaxed) == 0
    }

    fn end_reading(&self) {
        let mut reader = lock(&self.reader);
        reader.users -= 1;
        // Under the lock, so that a thread that starts reading now waits, and then gets a new reader.
        if reader.users == 0 {
            self.stop(&mut reader);
        }
    }

    /// Ends reading at the end of the process, or when the library is unloaded.
    pub(crate) fn end_process(&self) {
        // The lock is taken if another thread is stopping the reader. After a fork it may be taken forever.
        if let Ok(mut reader) = self.reader.try_lock() {
            self.stop(&mut reader);
        }
    }

    /// Number of records that were read. May be called by signal handlers.
    pub(crate) fn records_read(&self) -> u64 {
        self.records_read.load(Ordering::Relaxed)
    }

    /// Stops the reader and reports all findings.
    ///
    /// Waits as long as the reader makes progress. At the end of a process, the system may already have ended the
    /// reader thread.
    fn stop(&self, reader: &mut ReaderThread) {
        let Some(thread) = reader.thread.take() else { return };
        self.listeners.fetch_and(!Listeners::READER.bits(), Ordering::Relaxed);
        if reader.process != std::process::id() {
            // In a forked process, the thread and the report belong to the parent, and their locks may be taken.
            return std::mem::forget(thread);
        }
        self.is_stopping.store(true, Ordering::Release);
        let (mut start, mut seen) = (Instant::now(), self.records_read());
        while !thread.is_finished() && start.elapsed() < READER_TIMEOUT {
            if seen != self.records_read() {
                (start, seen) = (Instant::now(), self.records_read());
            }
            self.stream_control.wake();
            std::thread::sleep(Duration::from_micros(200));
        }
        if thread.is_finished() {
            let _ = thread.join();
        }
        self.stream_control.clear_reader();
        if let Ok(mut state) = READER_STATE.try_lock() {
            state.read_all();
            state.report_progress();
            if let Some(validation) = state.validation.as_mut().filter(|_| !self.is_disabled()) {
                validation.end();
            }
            let ReaderState { capture, merger, .. } = &mut *state;
            if let Some(capture) = capture.take() {
                capture.end(merger);
            }
        }
    }
}

/// A process that is forked off has no reader, and the streams of a capture lie in memory that it shares with its parent:
/// a call that it recorded would overwrite one of the parent.
fn stop_reading_in_forks() {
    extern "C" fn stop() {
        PROCESS_STATE.listeners.fetch_and(!Listeners::READER.bits(), Ordering::Relaxed);
        PROCESS_STATE.set_capturing(false);
        forks::begin();
    }
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| threads::on_fork(stop));
}

/// The reader thread: reads all records, and sleeps until there are more or it must stop.
fn reader_main() {
    PROCESS_STATE.reader_thread.store(threads::id(), Ordering::Relaxed);
    PROCESS_STATE.stream_control.set_reader();
    catch_panic("the reader", read_until_stopped, || ());
    // From now on, no thread waits for the reader.
    PROCESS_STATE.reader_process.store(0, Ordering::Relaxed);
    PROCESS_STATE.stream_control.clear_reader();
}

fn read_until_stopped() {
    while !PROCESS_STATE.is_stopping.load(Ordering::Acquire) {
        let mut state = lock(&READER_STATE);
        state.read_all();
        let ReaderState { stats, validation, report_timer, .. } = &mut *state;
        report_timer.report_if_due(|| report_progress(stats, validation));
        if PROCESS_STATE.is_final_report_wanted.load(Ordering::Acquire)
            && !PROCESS_STATE.is_final_report_done.load(Ordering::Relaxed)
        {
            state.read_all();
            state.report_final();
            PROCESS_STATE.is_final_report_done.store(true, Ordering::Release);
        }
        drop(state);
        // Wait before the next round: a look at the last words of a stream would take the cache line that the
        // application writes, and slow it down.
        std::thread::park_timeout(Duration::from_millis(5));
    }
}

impl ReaderState {
    /// Reads all available records. This does not end while records arrive faster than they are read.
    fn read_all(&mut self) {
        while self.read_available() > 0 {}
    }

    /// Gives each record that threads have published to the capture and to async validation. `Merger` takes the records
    /// of all streams in an order in which the calls could have been made: each after those that its order edges name.
    fn read_available(&mut self) -> usize {
        let ReaderState { merger, stats, validation, report_timer, capture } = self;
        let ordered = merger.drain(&PROCESS_STATE.threads, |ordered| {
            let OrderedRecord { thread, record, .. } = ordered;
            if let Some(item) = capture {
                item.add_record(&ordered);
            }
            // Only the holder of the lock writes this.
            PROCESS_STATE.records_read.store(PROCESS_STATE.records_read() + 1, Ordering::Relaxed);
            let is_call = RecordHeader::from_words(record[0], record[1]).is_call();
            if is_call {
                stats.record(thread, record);
            }
            // Taken out of the option, so that it stays none if it panics.
            if let Some(mut item) = validation.take().filter(|_| !PROCESS_STATE.is_disabled()) {
                // Messages wait in the `Inbox` of the device for a thread of the application, so none are returned.
                item.validate_and_report(thread, record);
                *validation = Some(item);
            }
            if is_call {
                report_timer.count_record(|| report_progress(stats, validation));
            }
        });
        if let Some(item) = capture {
            item.flush(merger);
        }
        if capture.as_ref().is_some_and(|it| it.is_over())
            && let Some(item) = capture.take()
        {
            // The application continues without the capture.
            PROCESS_STATE.has_captured.store(true, Ordering::Relaxed);
            item.end(merger);
        }
        ordered
    }

    fn report_progress(&mut self) {
        report_progress(&self.stats, &mut self.validation);
    }

    /// Reports everything known, because the process may end now.
    fn report_final(&mut self) {
        self.report_progress();
        if let Some(validation) = self.validation.as_mut().filter(|_| !PROCESS_STATE.is_disabled()) {
            validation.report_pending();
        }
    }
}

fn report_progress(stats: &CallStats, validation: &mut Option<Box<Validation>>) {
    if PROCESS_STATE.is_disabled() {
        return;
    }
    if PROCESS_STATE.is_counting.load(Ordering::Relaxed) {
        report_file::stats(stats);
    }
    let (times, time) = PROCESS_STATE.stream_control.wait_stats();
    if times > 0 {
        report_file::stream_waits(times, time);
    }
    if let Some(validation) = validation {
        validation.report_counts();
    }
}

/// The time of the last report, and until the next one. The first ones come quickly: a process may be killed soon.
pub(crate) struct ReportTimer {
    last_report: Instant,
    interval: Duration,
    /// Number of records since the clock was read.
    records: u32,
}

impl Default for ReportTimer {
    fn default() -> ReportTimer {
        ReportTimer { last_report: Instant::now(), interval: FIRST_REPORT_INTERVAL, records: 0 }
    }
}

impl ReportTimer {
    /// Counts a record, and calls `report` if enough time has passed since the last report.
    pub(crate) fn count_record(&mut self, report: impl FnOnce()) {
        self.records += 1;
        if self.records == 4096 {
            self.report_if_due(report);
        }
    }

    fn report_if_due(&mut self, report: impl FnOnce()) {
        self.records = 0;
        if self.last_report.elapsed() > self.interval {
            report();
            self.last_report = Instant::now();
            self.interval = (self.interval * 2).min(REPORT_INTERVAL);
        }
    }
}

fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// On a busy machine, a process may end before the reader thread runs for the first time.
    #[test]
    fn a_reader_that_has_not_begun_is_waited_for() {
        let reading = PROCESS_STATE.start_reading(&Settings::default()).expect("threads can be made");
        assert!(PROCESS_STATE.request_final_report());
        drop(reading);
    }

    /// A process that is killed soon has counts in its report, and one that runs for long does not fill it.
    #[test]
    fn the_first_reports_come_quickly() {
        let mut timer = ReportTimer::default();
        let mut is_due_after = |time: Duration| {
            let mut is_due = false;
            timer.last_report = Instant::now().checked_sub(time).expect("the clock began before");
            timer.report_if_due(|| is_due = true);
            is_due
        };
        assert!(is_due_after(FIRST_REPORT_INTERVAL * 2), "the first");
        let later = (0..10).filter(|_| is_due_after(REPORT_INTERVAL / 2)).count();
        assert!((1..9).contains(&later), "{later} of 10: the intervals grow");
        assert!(!is_due_after(REPORT_INTERVAL / 2) && is_due_after(REPORT_INTERVAL * 2));
    }
}
