//! What the process shares: its objects, its threads, and who listens to its calls.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use lavascope_platform::threads;
use lavascope_record::RecordHeader;
use lavascope_settings::{Output, Settings, SyncMode};
use lavascope_stream::{OrderedRecord, Merger, ObjectTable, StreamThreads, StreamControl};
use serde_json::Value;

use crate::backtrace;
use crate::capture::Capture;
use crate::death;
use crate::fence::fence;
use crate::print::Printer;
use crate::report;
use crate::stats::Stats;
use crate::validation::Validation;

pub(crate) static HUB: Hub = Hub::new();

/// Words that may wait for the reader in all streams together, unless somebody says otherwise: 256 MiB.
const WORDS_MAX: usize = 256 * WORDS_PER_MIB;
const WORDS_PER_MIB: usize = 1 << 17;

/// How long somebody waits for a reader that does not get on: to explain a hazard may take seconds.
const PATIENCE: Duration = Duration::from_secs(10);

/// How much of what was counted a crash may cost.
const TELL_EVERY: Duration = Duration::from_secs(1);

pub(crate) struct Hub {
    pub(crate) objects: ObjectTable,
    pub(crate) threads: StreamThreads,
    pub(crate) wake: LazyLock<Arc<StreamControl>>,
    /// Who listens: [`Hub::PRINTS`], [`Hub::READS`] and [`Hub::INLINE`]. Relaxed: what a listener needs is behind locks of its own.
    listeners: AtomicU8,
    printer: Mutex<Option<Printer>>,
    reader: Mutex<Reader>,
    is_stopping: AtomicBool,
    /// The process is about to end by a signal. Release in `begin_dying`, Acquire by the reader.
    is_dying: AtomicBool,
    /// The reader has told all that was recorded by then. Release by the reader, Acquire in `has_died`.
    has_died: AtomicBool,
    /// The process of the reader, and the reader itself, by the numbers that the system has for them; zero if there is
    /// none. Relaxed: they are looked at long after.
    reader_process: AtomicU32,
    reader_thread: AtomicU32,
    /// Records that were looked at. Relaxed: who waits looks whether it moves.
    looked_at: AtomicU64,
    /// Whether calls go into a trace. Relaxed: facts that come a little late are in nobody's way.
    is_capturing: AtomicBool,
    /// What is to be told of the capture in the trace.
    facts: Mutex<Vec<Value>>,
    /// Whether all that was wanted of a capture is in its file: the next instance must not begin it anew. Relaxed: as above.
    has_captured: AtomicBool,
    /// Whether somebody wants to know how many calls there are. Relaxed: it is told now and then.
    is_counting: AtomicBool,
    /// Counts the ends of command buffers, their pools and devices: what a thread remembers of one is true only as
    /// long as this does not move. Relaxed: the application must not use a command buffer while it ends, so it
    /// orders the two itself.
    generation: AtomicU64,
}

/// The thread that reads all streams, and who needs it.
struct Reader {
    thread: Option<JoinHandle<()>>,
    /// How many [`Reading`] there are.
    users: usize,
    /// The process in which the thread runs: a fork has none.
    process: u32,
}

/// Calls are read for as long as somebody has one of these.
pub(crate) struct Reading(());

impl Drop for Reading {
    fn drop(&mut self) {
        fence("the end of reading", || HUB.end_reading(), || ());
    }
}

/// What the reading thread works on. Behind a lock, so that it outlives the thread.
static WORK: LazyLock<Mutex<Work>> = LazyLock::new(Mutex::default);

#[derive(Default)]
struct Work {
    merger: Merger,
    stats: Stats,
    /// None where nobody wants it, and after a bug of ours.
    validation: Option<Box<Validation>>,
    told: Clock,
    capture: Option<Box<Capture>>,
}

impl Hub {
    /// Records are printed on the application's thread, before the driver sees the call.
    pub(crate) const PRINTS: u8 = 1;
    /// Records go into streams, which the reader reads.
    pub(crate) const READS: u8 = 2;
    /// Records are validated on the application's thread.
    pub(crate) const INLINE: u8 = 4;
    /// Beside one who validates: the stacks of calls are wanted.
    pub(crate) const STACKS: u8 = 8;
    /// Not one who listens to records, but functions of ours stand in for the driver's.
    pub(crate) const GPU: u8 = 16;
    /// The same: what is presented is copied.
    pub(crate) const PICTURES: u8 = 32;
    /// A bug of ours: nobody listens any more.
    const BROKEN: u8 = 128;

    const fn new() -> Hub {
        Hub {
            objects: ObjectTable::new(),
            threads: StreamThreads::new(),
            wake: LazyLock::new(|| StreamControl::new(WORDS_MAX)),
            listeners: AtomicU8::new(0),
            printer: Mutex::new(None),
            reader: Mutex::new(Reader { thread: None, users: 0, process: 0 }),
            is_stopping: AtomicBool::new(false),
            is_dying: AtomicBool::new(false),
            has_died: AtomicBool::new(false),
            reader_process: AtomicU32::new(0),
            reader_thread: AtomicU32::new(0),
            looked_at: AtomicU64::new(0),
            is_capturing: AtomicBool::new(false),
            facts: Mutex::new(Vec::new()),
            has_captured: AtomicBool::new(false),
            is_counting: AtomicBool::new(false),
            generation: AtomicU64::new(1),
        }
    }

    /// Those of `wanted` who listen now.
    #[inline(always)]
    pub(crate) fn listeners(&self, wanted: u8) -> u8 {
        let listeners = self.listeners.load(Ordering::Relaxed);
        if listeners & Hub::BROKEN != 0 { 0 } else { listeners & wanted }
    }

    /// Whether a bug of ours switched everything off.
    #[inline(always)]
    pub(crate) fn is_off(&self) -> bool {
        self.listeners.load(Ordering::Relaxed) & Hub::BROKEN != 0
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
    pub(crate) fn give_up(&self) {
        self.listeners.fetch_or(Hub::BROKEN, Ordering::Relaxed);
        // Half a call may be all that is left of one, and then the reader waits for the rest: nobody may wait for it.
        self.wake.clear_reader();
    }

    /// From now on calls are printed.
    pub(crate) fn start_printing(&self, output: &Output) -> Result<(), String> {
        let mut printer = lock(&self.printer);
        if printer.as_ref().is_none_or(|it| it.output() != output) {
            *printer = Some(Printer::open(output)?);
        }
        self.listeners.fetch_or(Hub::PRINTS, Ordering::Relaxed);
        Ok(())
    }

    /// Something that belongs into the trace and is no call.
    pub(crate) fn add_fact(&self, fact: Value) {
        if self.is_capturing() {
            lock(&self.facts).push(fact);
        }
    }

    /// What was added since the last time.
    pub(crate) fn take_facts(&self) -> Vec<Value> {
        std::mem::take(&mut *lock(&self.facts))
    }

    /// Shows a record to the printer.
    #[cold]
    pub(crate) fn print(&self, thread: u32, record: &[u64]) {
        if let Some(printer) = lock(&self.printer).as_mut() {
            printer.record(thread, record);
        }
    }

    /// From now on calls are read on a thread of ours: counted, validated, as the settings say.
    pub(crate) fn start_reading(&self, settings: &Settings) -> Result<Reading, String> {
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
            lock(&WORK).validation.get_or_insert_with(|| Box::new(Validation::off_thread())).add_wanted(settings);
        }
        if let Some(path) = &settings.capture
            && !self.has_captured.load(Ordering::Relaxed)
            && lock(&WORK).capture.is_none()
        {
            let capture = Box::new(Capture::begin(path, settings)?);
            lock(&WORK).capture = Some(capture);
            self.set_capturing(true);
        }
        if reader.thread.is_none() {
            self.is_stopping.store(false, Ordering::Release);
            // Not by the reader itself: the process may end before that had its first turn, and then waits for it.
            self.reader_process.store(process, Ordering::Relaxed);
            let thread = std::thread::Builder::new().name("lavascope-reader".into()).spawn(read);
            reader.thread = Some(thread.map_err(|it| {
                self.reader_process.store(0, Ordering::Relaxed);
                format!("no thread to read calls: {it}")
            })?);
            reader.process = process;
            self.listeners.fetch_or(Hub::READS, Ordering::Relaxed);
            death::watch();
        }
        reader.users += 1;
        Ok(Reading(()))
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
        self.listeners.fetch_or(Hub::INLINE, Ordering::Relaxed);
    }

    /// From now on stacks of calls are captured.
    pub(crate) fn start_stacks(&self) {
        backtrace::start();
        self.listeners.fetch_or(Hub::STACKS, Ordering::Relaxed);
    }

    /// Whether a thread of ours reads what is recorded.
    pub(crate) fn is_reading(&self) -> bool {
        // Whoever has the lock is stopping it, and a fork has none.
        let is_ours =
            |it: &Reader| it.process == std::process::id() && it.thread.as_ref().is_some_and(|it| !it.is_finished());
        self.listeners(Hub::READS) != 0 && self.reader.try_lock().is_ok_and(|it| is_ours(&it))
    }

    /// Asks the validation something, once it has all that was recorded; none if there is none.
    pub(crate) fn ask<T>(&self, question: impl FnOnce(&mut Validation) -> T) -> Option<T> {
        let mut work = lock(&WORK);
        work.drain();
        work.validation.as_deref_mut().filter(|_| !self.is_off()).map(question)
    }

    /// The process is about to end by a signal; says whether the reader should be waited for. For signal handlers.
    pub(crate) fn begin_dying(&self) -> bool {
        let process = self.reader_process.load(Ordering::Relaxed);
        let (own_process, own_thread) = (std::process::id(), threads::id());
        let is_waited_for = process == own_process && self.reader_thread.load(Ordering::Relaxed) != own_thread;
        self.is_dying.store(true, Ordering::Release);
        is_waited_for
    }

    /// Whether the reader is done. For signal handlers.
    pub(crate) fn has_died(&self) -> bool {
        self.has_died.load(Ordering::Acquire) || self.reader_process.load(Ordering::Relaxed) == 0
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
    pub(crate) fn looked_at(&self) -> u64 {
        self.looked_at.load(Ordering::Relaxed)
    }

    /// Nobody listens any more, and what was found is told.
    ///
    /// Waits for the reader as long as it gets on: at the end of a process it may be gone already, without a word.
    fn stop(&self, reader: &mut Reader) {
        let Some(thread) = reader.thread.take() else { return };
        self.listeners.fetch_and(!Hub::READS, Ordering::Relaxed);
        if reader.process != std::process::id() {
            // The thread and the report are the parent's; what is behind them here may be locked.
            return std::mem::forget(thread);
        }
        self.is_stopping.store(true, Ordering::Release);
        let (mut start, mut seen) = (Instant::now(), self.looked_at());
        while !thread.is_finished() && start.elapsed() < PATIENCE {
            if seen != self.looked_at() {
                (start, seen) = (Instant::now(), self.looked_at());
            }
            self.wake.wake();
            std::thread::sleep(Duration::from_micros(200));
        }
        if thread.is_finished() {
            let _ = thread.join();
        }
        self.wake.clear_reader();
        if let Ok(mut work) = WORK.try_lock() {
            work.drain();
            work.tell();
            if let Some(validation) = work.validation.as_mut().filter(|_| !self.is_off()) {
                validation.end();
            }
            let Work { capture, merger, .. } = &mut *work;
            if let Some(capture) = capture.take() {
                capture.end(merger);
            }
        }
    }
}

/// The reading thread: reads what there is, and sleeps until there is more or it is told to stop.
fn read() {
    HUB.reader_thread.store(threads::id(), Ordering::Relaxed);
    HUB.wake.set_reader();
    fence("the reader", read_until_stopped, || ());
    // Nobody waits for a reader that is gone.
    HUB.reader_process.store(0, Ordering::Relaxed);
    HUB.wake.clear_reader();
}

fn read_until_stopped() {
    while !HUB.is_stopping.load(Ordering::Acquire) {
        let mut work = lock(&WORK);
        work.drain();
        let Work { stats, validation, told, .. } = &mut *work;
        told.now(|| tell(stats, validation));
        if HUB.is_dying.load(Ordering::Acquire) && !HUB.has_died.load(Ordering::Relaxed) {
            work.drain();
            work.last_words();
            HUB.has_died.store(true, Ordering::Release);
        }
        drop(work);
        // Not again at once: the last words of a stream lie in the cache of the thread that writes them.
        std::thread::park_timeout(Duration::from_millis(5));
    }
}

impl Work {
    /// Takes all records that are there. Where they come faster than they are taken, that has no end.
    fn drain(&mut self) {
        while self.drain_some() > 0 {}
    }

    fn drain_some(&mut self) -> usize {
        let Work { merger, stats, validation, told, capture } = self;
        let given = merger.drain(&HUB.threads, |given| {
            let OrderedRecord { thread, record, .. } = given;
            if let Some(it) = capture {
                it.record(&given);
            }
            // Only who has the lock writes it.
            HUB.looked_at.store(HUB.looked_at() + 1, Ordering::Relaxed);
            let is_call = RecordHeader::from_words(record[0], record[1]).is_call();
            if is_call {
                stats.record(thread, record);
            }
            // Taken out meanwhile: what panicked is not asked again.
            if let Some(mut it) = validation.take().filter(|_| !HUB.is_off()) {
                it.record(thread, record);
                *validation = Some(it);
            }
            if is_call {
                told.after_some(|| tell(stats, validation));
            }
        });
        if let Some(it) = capture {
            it.rest(merger);
        }
        if capture.as_ref().is_some_and(|it| it.is_over())
            && let Some(it) = capture.take()
        {
            // The application goes on without it.
            HUB.has_captured.store(true, Ordering::Relaxed);
            it.end(merger);
        }
        given
    }

    fn tell(&mut self) {
        tell(&self.stats, &mut self.validation);
    }

    /// All that is known, in case that there is no later.
    fn last_words(&mut self) {
        self.tell();
        if let Some(validation) = self.validation.as_mut().filter(|_| !HUB.is_off()) {
            validation.last_words();
        }
    }
}

fn tell(stats: &Stats, validation: &mut Option<Box<Validation>>) {
    if HUB.is_off() {
        return;
    }
    if HUB.is_counting.load(Ordering::Relaxed) {
        report::stats(stats);
    }
    let (times, time) = HUB.wake.wait_stats();
    if times > 0 {
        report::waited(times, time);
    }
    if let Some(validation) = validation {
        validation.tell_counts();
    }
}

/// When the report was told last.
pub(crate) struct Clock {
    at: Instant,
    /// Records since somebody looked at the clock.
    records: u32,
}

impl Default for Clock {
    fn default() -> Clock {
        Clock { at: Instant::now(), records: 0 }
    }
}

impl Clock {
    /// After every so many records, or when there are no more of them, looks whether it is time to tell.
    pub(crate) fn after_some(&mut self, tell: impl FnOnce()) {
        self.records += 1;
        if self.records == 4096 {
            self.now(tell);
        }
    }

    fn now(&mut self, tell: impl FnOnce()) {
        self.records = 0;
        if self.at.elapsed() > TELL_EVERY {
            tell();
            self.at = Instant::now();
        }
    }
}

fn lock<T>(it: &Mutex<T>) -> MutexGuard<'_, T> {
    it.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// On a busy machine a process may be at its end before the thread that reads had its first turn.
    #[test]
    fn a_reader_that_has_not_begun_is_waited_for() {
        let reading = HUB.start_reading(&Settings::default()).expect("threads can be made");
        assert!(HUB.begin_dying());
        drop(reading);
    }
}
