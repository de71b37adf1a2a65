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
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use lavascope_platform::threads;
use lavascope_record::RecordHeader;
use lavascope_settings::{OutputTarget, Settings, SyncMode};
use lavascope_stream::{Merger, ObjectTable, OrderedRecord, StreamControl, StreamThreads};
use serde_json::Value;

use crate::backtrace;
use crate::capture::Capture;
use crate::process::catch_panic::catch_panic;
use crate::process::listeners::Listeners;
use crate::process::termination;
use crate::report::call_log::CallLogWriter;
use crate::report::call_stats::CallStats;
use crate::report::report_file;
use crate::report::validation::Validation;

pub(crate) static PROCESS_STATE: ProcessState = ProcessState::new();

/// Words that may wait for the reader in all streams together, unless somebody says otherwise: 256 MiB.
const WORDS_MAX: usize = 256 * WORDS_PER_MIB;
const WORDS_PER_MIB: usize = 1 << 17;

/// How long somebody waits for a reader that does not get on: to explain a hazard may take seconds.
const READER_TIMEOUT: Duration = Duration::from_secs(10);

/// How much of what was counted a crash may cost.
const REPORT_INTERVAL: Duration = Duration::from_secs(1);

pub(crate) struct ProcessState {
    pub(crate) objects: ObjectTable,
    pub(crate) threads: StreamThreads,
    pub(crate) wake: LazyLock<Arc<StreamControl>>,
    /// The bits of [`Listeners`]. Relaxed: what a listener needs is behind locks of its own.
    listeners: AtomicU8,
    printer: Mutex<Option<CallLogWriter>>,
    reader: Mutex<ReaderThread>,
    is_stopping: AtomicBool,
    /// The process is about to end by a signal. Release in `request_final_report`, Acquire by the reader.
    is_final_report_wanted: AtomicBool,
    /// The reader has told all that was recorded by then. Release by the reader, Acquire in `is_final_report_done`.
    is_final_report_done: AtomicBool,
    /// The process of the reader, and the reader itself, by the numbers that the system has for them; zero if there is
    /// none. Relaxed: they are looked at long after.
    reader_process: AtomicU32,
    reader_thread: AtomicU32,
    /// Records that were looked at. Relaxed: who waits looks whether it moves.
    records_read: AtomicU64,
    /// Whether calls go into a trace. Relaxed: facts that come a little late are in nobody's way.
    is_capturing: AtomicBool,
    /// What is to be told of the capture in the trace.
    trace_metadata: Mutex<Vec<Value>>,
    /// Whether all that was wanted of a capture is in its file: the next instance must not begin it anew. Relaxed: as above.
    has_captured: AtomicBool,
    /// Whether somebody wants to know how many calls there are. Relaxed: it is told now and then.
    is_counting: AtomicBool,
    /// Counts the ends of command buffers, their pools and devices: what a thread remembers of one is true only as
    /// long as this does not move. Relaxed: the application must not use a command buffer while it ends, so it
    /// orders the two itself.
    generation: AtomicU64,
    /// Whether the setting `caches` is off. Relaxed: a cache that is used a little longer gives the same results.
    is_cache_disabled: AtomicBool,
}

/// The thread that reads all streams, and who needs it.
struct ReaderThread {
    thread: Option<JoinHandle<()>>,
    /// How many [`ReadingGuard`] there are.
    users: usize,
    /// The process in which the thread runs: a fork has none.
    process: u32,
}

/// Calls are read for as long as somebody has one of these.
pub(crate) struct ReadingGuard(());

impl Drop for ReadingGuard {
    fn drop(&mut self) {
        catch_panic("the end of reading", || PROCESS_STATE.end_reading(), || ());
    }
}

/// What the reading thread works on. Behind a lock, so that it outlives the thread.
static READER_STATE: LazyLock<Mutex<ReaderState>> = LazyLock::new(Mutex::default);

#[derive(Default)]
struct ReaderState {
    merger: Merger,
    stats: CallStats,
    /// None where nobody wants it, and after a bug of ours.
    validation: Option<Box<Validation>>,
    report_timer: ReportTimer,
    capture: Option<Box<Capture>>,
}

impl ProcessState {
    const fn new() -> ProcessState {
        ProcessState {
            objects: ObjectTable::new(),
            threads: StreamThreads::new(),
            wake: LazyLock::new(|| StreamControl::new(WORDS_MAX)),
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

    /// From now on each call looks up its command buffer, and each draw chooses its variant.
    pub(crate) fn disable_caches(&self) {
        self.is_cache_disabled.store(true, Ordering::Relaxed);
        self.next_generation();
    }

    pub(crate) fn is_cache_disabled(&self) -> bool {
        self.is_cache_disabled.load(Ordering::Relaxed)
    }

    /// Those of `wanted` who listen now.
    #[inline(always)]
    pub(crate) fn listeners(&self, wanted: Listeners) -> Listeners {
        let listeners = Listeners::from_bits(self.listeners.load(Ordering::Relaxed));
        if listeners.has_any(Listeners::DISABLED) { Listeners::NONE } else { listeners & wanted }
    }

    /// Whether a bug of ours switched everything off.
    #[inline(always)]
    pub(crate) fn is_disabled(&self) -> bool {
        Listeners::from_bits(self.listeners.load(Ordering::Relaxed)).has_any(Listeners::DISABLED)
    }

    #[inline(always)]
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Relaxed)
    }

    /// What threads remember of command buffers is not true any more.
    pub(crate) fn next_generation(&self) {
        self.generation.fetch_add(1, Ordering::Relaxed);
    }

    /// After a bug of ours the application goes on alone.
    pub(crate) fn disable_layer(&self) {
        self.listeners.fetch_or(Listeners::DISABLED.bits(), Ordering::Relaxed);
        // Half a call may be all that is left of one, and then the reader waits for the rest: nobody may wait for it.
        self.wake.clear_reader();
    }

    /// From now on calls are printed.
    pub(crate) fn start_printing(&self, output: &OutputTarget) -> Result<(), String> {
        let mut printer = lock(&self.printer);
        if printer.as_ref().is_none_or(|it| it.output() != output) {
            *printer = Some(CallLogWriter::open(output)?);
        }
        self.listeners.fetch_or(Listeners::PRINTS.bits(), Ordering::Relaxed);
        Ok(())
    }

    /// Something that belongs into the trace and is no call.
    pub(crate) fn add_trace_metadata(&self, fact: Value) {
        if self.is_capturing() {
            lock(&self.trace_metadata).push(fact);
        }
    }

    /// What was added since the last time.
    pub(crate) fn take_trace_metadata(&self) -> Vec<Value> {
        std::mem::take(&mut *lock(&self.trace_metadata))
    }

    /// Shows a record to the printer.
    #[cold]
    pub(crate) fn print(&self, thread: u32, record: &[u64]) {
        if let Some(printer) = lock(&self.printer).as_mut() {
            printer.record(thread, record);
        }
    }

    /// From now on calls are read on a thread of ours: counted, validated, as the settings say.
    pub(crate) fn start_reading(&self, settings: &Settings) -> Result<ReadingGuard, String> {
        let mut reader = lock(&self.reader);
        let process = std::process::id();
        if reader.thread.is_some() && reader.process != process {
            return Err("a fork of a process whose calls are read cannot read its own; use exec after fork".into());
        }
        if settings.stats {
            self.is_counting.store(true, Ordering::Relaxed);
        }
        self.wake.set_words_max((settings.sync_stream_mib as usize).saturating_mul(WORDS_PER_MIB));
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
            // Not by the reader itself: the process may end before that had its first turn, and then waits for it.
            self.reader_process.store(process, Ordering::Relaxed);
            let thread = std::thread::Builder::new().name("lavascope-reader".into()).spawn(reader_main);
            reader.thread = Some(thread.map_err(|error| {
                self.reader_process.store(0, Ordering::Relaxed);
                format!("no thread to read calls: {error}")
            })?);
            reader.process = process;
            self.listeners.fetch_or(Listeners::READS.bits(), Ordering::Relaxed);
            termination::install();
        }
        reader.users += 1;
        Ok(ReadingGuard(()))
    }

    /// Whether what the host writes is to be recorded.
    pub(crate) fn is_capturing(&self) -> bool {
        self.is_capturing.load(Ordering::Relaxed)
    }

    pub(crate) fn set_capturing(&self, is_capturing: bool) {
        self.is_capturing.store(is_capturing, Ordering::Relaxed);
    }

    /// From now on calls are validated where they are made.
    pub(crate) fn start_inline(&self) {
        self.listeners.fetch_or(Listeners::INLINE.bits(), Ordering::Relaxed);
    }

    /// From now on stacks of calls are captured.
    pub(crate) fn start_stacks(&self) {
        backtrace::enable();
        self.listeners.fetch_or(Listeners::STACKS.bits(), Ordering::Relaxed);
    }

    /// Whether a thread of ours reads what is recorded.
    pub(crate) fn is_reading(&self) -> bool {
        // Whoever has the lock is stopping it, and a fork has none.
        let is_ours = |reader_thread: &ReaderThread| {
            reader_thread.process == std::process::id()
                && reader_thread.thread.as_ref().is_some_and(|it| !it.is_finished())
        };
        !self.listeners(Listeners::READS).is_empty() && self.reader.try_lock().is_ok_and(|it| is_ours(&it))
    }

    /// Asks the validation something, once it has all that was recorded; none if there is none.
    pub(crate) fn with_validation<T>(&self, question: impl FnOnce(&mut Validation) -> T) -> Option<T> {
        let mut work = lock(&READER_STATE);
        work.drain();
        work.validation.as_deref_mut().filter(|_| !self.is_disabled()).map(question)
    }

    /// The process is about to end by a signal; says whether the reader should be waited for. For signal handlers.
    pub(crate) fn request_final_report(&self) -> bool {
        let process = self.reader_process.load(Ordering::Relaxed);
        let (own_process, own_thread) = (std::process::id(), threads::id());
        let is_waited_for = process == own_process && self.reader_thread.load(Ordering::Relaxed) != own_thread;
        self.is_final_report_wanted.store(true, Ordering::Release);
        is_waited_for
    }

    /// Whether the reader is done. For signal handlers.
    pub(crate) fn is_final_report_done(&self) -> bool {
        self.is_final_report_done.load(Ordering::Acquire) || self.reader_process.load(Ordering::Relaxed) == 0
    }

    fn end_reading(&self) {
        let mut reader = lock(&self.reader);
        reader.users -= 1;
        // Under the lock: who begins to read meanwhile waits, and then has a reader of its own.
        if reader.users == 0 {
            self.stop(&mut reader);
        }
    }

    /// The process ends, or the library is unloaded, while calls are still read.
    pub(crate) fn end_process(&self) {
        // Locked by somebody who is stopping already, or at the time of a fork and then for ever.
        if let Ok(mut reader) = self.reader.try_lock() {
            self.stop(&mut reader);
        }
    }

    /// How many records were looked at so far. For signal handlers too.
    pub(crate) fn records_read(&self) -> u64 {
        self.records_read.load(Ordering::Relaxed)
    }

    /// Nobody listens any more, and what was found is told.
    ///
    /// Waits for the reader as long as it gets on: at the end of a process it may be gone already, without a word.
    fn stop(&self, reader: &mut ReaderThread) {
        let Some(thread) = reader.thread.take() else { return };
        self.listeners.fetch_and(!Listeners::READS.bits(), Ordering::Relaxed);
        if reader.process != std::process::id() {
            // The thread and the report are the parent's; what is behind them here may be locked.
            return std::mem::forget(thread);
        }
        self.is_stopping.store(true, Ordering::Release);
        let (mut start, mut seen) = (Instant::now(), self.records_read());
        while !thread.is_finished() && start.elapsed() < READER_TIMEOUT {
            if seen != self.records_read() {
                (start, seen) = (Instant::now(), self.records_read());
            }
            self.wake.wake();
            std::thread::sleep(Duration::from_micros(200));
        }
        if thread.is_finished() {
            let _ = thread.join();
        }
        self.wake.clear_reader();
        if let Ok(mut work) = READER_STATE.try_lock() {
            work.drain();
            work.report_progress();
            if let Some(validation) = work.validation.as_mut().filter(|_| !self.is_disabled()) {
                validation.end();
            }
            let ReaderState { capture, merger, .. } = &mut *work;
            if let Some(capture) = capture.take() {
                capture.end(merger);
            }
        }
    }
}

/// The reading thread: reads what there is, and sleeps until there is more or it is told to stop.
fn reader_main() {
    PROCESS_STATE.reader_thread.store(threads::id(), Ordering::Relaxed);
    PROCESS_STATE.wake.set_reader();
    catch_panic("the reader", read_until_stopped, || ());
    // Nobody waits for a reader that is gone.
    PROCESS_STATE.reader_process.store(0, Ordering::Relaxed);
    PROCESS_STATE.wake.clear_reader();
}

fn read_until_stopped() {
    while !PROCESS_STATE.is_stopping.load(Ordering::Acquire) {
        let mut work = lock(&READER_STATE);
        work.drain();
        let ReaderState { stats, validation, report_timer, .. } = &mut *work;
        report_timer.report_if_due(|| report_progress(stats, validation));
        if PROCESS_STATE.is_final_report_wanted.load(Ordering::Acquire)
            && !PROCESS_STATE.is_final_report_done.load(Ordering::Relaxed)
        {
            work.drain();
            work.report_final();
            PROCESS_STATE.is_final_report_done.store(true, Ordering::Release);
        }
        drop(work);
        // Not again at once: the last words of a stream lie in the cache of the thread that writes them.
        std::thread::park_timeout(Duration::from_millis(5));
    }
}

impl ReaderState {
    /// Takes all records that are there. Where they come faster than they are taken, that has no end.
    fn drain(&mut self) {
        while self.drain_some() > 0 {}
    }

    fn drain_some(&mut self) -> usize {
        let ReaderState { merger, stats, validation, report_timer, capture } = self;
        let ordered = merger.drain(&PROCESS_STATE.threads, |ordered| {
            let OrderedRecord { thread, record, .. } = ordered;
            if let Some(item) = capture {
                item.record(&ordered);
            }
            // Only who has the lock writes it.
            PROCESS_STATE.records_read.store(PROCESS_STATE.records_read() + 1, Ordering::Relaxed);
            let is_call = RecordHeader::from_words(record[0], record[1]).is_call();
            if is_call {
                stats.record(thread, record);
            }
            // Taken out of the option while it runs, so that it stays none after a panic.
            if let Some(mut item) = validation.take().filter(|_| !PROCESS_STATE.is_disabled()) {
                item.record(thread, record);
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
            // The application goes on without it.
            PROCESS_STATE.has_captured.store(true, Ordering::Relaxed);
            item.end(merger);
        }
        ordered
    }

    fn report_progress(&mut self) {
        report_progress(&self.stats, &mut self.validation);
    }

    /// All that is known, in case that there is no later.
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
    let (times, time) = PROCESS_STATE.wake.wait_stats();
    if times > 0 {
        report_file::stream_waits(times, time);
    }
    if let Some(validation) = validation {
        validation.report_counts();
    }
}

/// When the report was told last.
pub(crate) struct ReportTimer {
    last_report: Instant,
    /// Records since somebody looked at the clock.
    records: u32,
}

impl Default for ReportTimer {
    fn default() -> ReportTimer {
        ReportTimer { last_report: Instant::now(), records: 0 }
    }
}

impl ReportTimer {
    /// After every so many records, or when there are no more of them, looks whether it is time to tell.
    pub(crate) fn count_record(&mut self, report: impl FnOnce()) {
        self.records += 1;
        if self.records == 4096 {
            self.report_if_due(report);
        }
    }

    fn report_if_due(&mut self, report: impl FnOnce()) {
        self.records = 0;
        if self.last_report.elapsed() > REPORT_INTERVAL {
            report();
            self.last_report = Instant::now();
        }
    }
}

fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// On a busy machine a process may be at its end before the thread that reads had its first turn.
    #[test]
    fn a_reader_that_has_not_begun_is_waited_for() {
        let reading = PROCESS_STATE.start_reading(&Settings::default()).expect("threads can be made");
        assert!(PROCESS_STATE.request_final_report());
        drop(reading);
    }
}
