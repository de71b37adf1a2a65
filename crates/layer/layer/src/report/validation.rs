//! Gives records to the validator, and sends its findings to the report file, the log and the messengers.
//!
//! The report file and the log get a finding at once, so that a crash loses nothing. The application's messengers get it
//! on the application's own threads, with no lock held. In the inline mode, that is inside the call that led to it. In
//! the async mode, that is at the next submission, presentation or wait on the device ([`Inbox`]). The destruction of
//! the device waits for the reader and delivers the rest. The queue of messages is bounded, and dropped messages are
//! counted. The settings limit the number of equal messages.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use lavascope_abi::{Command, ObjectId, cast};
use lavascope_diag::{Diagnostic, FirstAccessKey, FrameRange};
use lavascope_findings::{Finding, FrameSpan, UncheckedCount};
use lavascope_record::encoding::{HEADER_SIZE, RecordHeader, beside};
use lavascope_record::{HostWrite, Record, RecordPhase, from_trusted};
use lavascope_settings::{MessageSeverity, Settings, SyncMode};
use lavascope_stream::BesideCalls;
use lavascope_validate::{CommandBufferFeedback, LaunchLocation, Validator, ValidatorFinding};
use serde_json::{Value, json};

use crate::backtrace::StackReader;
use crate::intercept::handle_table::HandleTable;
use crate::process::catch_panic::catch_panic;
use crate::process::process_state::PROCESS_STATE;
use crate::report::coverage;
use crate::report::coverage::ValidatedWork;
use crate::report::inline_validation;
use crate::report::messages::{Delivery, Messages, OutgoingMessage};
use crate::report::rendered_finding::RenderedFinding;
use crate::report::report_file;
use crate::report::report_file::IgnoredFindings;

/// Largest number of messages that wait for a thread of the application; further ones are counted.
const PENDING_MAX: usize = 1000;
/// Sites whose messages are counted, for the limit of equal messages.
const SITES_MAX: usize = 100_000;
/// Causes that are logged without `lavascope run`; further ones are counted, so that no log is flooded.
const LOGGED_MAX: usize = 100;
/// How long the destruction of a device waits for the reader.
const READER_TIMEOUT: Duration = Duration::from_secs(10);

/// The devices whose hazards are reported.
static INBOXES: Mutex<Vec<(ObjectId, Arc<Inbox>)>> = Mutex::new(Vec::new());

/// The messages about a device, for the application's messengers.
pub(crate) struct Inbox {
    device: ObjectId,
    messages: Arc<Messages>,
    finding_filter: FindingFilter,
    pending: Mutex<VecDeque<Arc<RenderedFinding>>>,
    /// Number of messages. Relaxed: a message that is missed now is found by the next check.
    count: AtomicUsize,
    /// Number of messages that did not fit.
    dropped: AtomicUsize,
    /// The reader has processed the destruction of the device. Release by the reader, Acquire by the destroying thread.
    is_finished: AtomicBool,
}

/// Which findings an instance reports, and how.
#[derive(Clone, Copy)]
pub(crate) struct FindingFilter {
    /// Whether findings are reported inside the calls, or soon after.
    pub(crate) mode: SyncMode,
    /// Whether hazards are reported that are only possible.
    pub(crate) possible: bool,
    /// Whether hazards between command buffers are reported.
    pub(crate) submit_time: bool,
    /// Whether hazards that depend on shaders are errors, except those whose accesses are only assumed to overlap.
    pub(crate) heuristic: bool,
    /// Whether a debugger stops at the first finding of each cause.
    pub(crate) stops: bool,
}

impl FindingFilter {
    pub(crate) fn of(settings: &Settings) -> FindingFilter {
        FindingFilter {
            mode: settings.sync_mode,
            possible: settings.possible,
            submit_time: settings.sync_submit_time,
            heuristic: settings.sync_shader_heuristic,
            stops: settings.break_on_hazard,
        }
    }

    fn accepts(self, finding: ValidatorFinding, diagnostic: &Diagnostic) -> bool {
        let is_likely = self.possible || self.severity(diagnostic) != MessageSeverity::Note;
        is_likely && (self.submit_time || finding.is_recorded)
    }

    pub(crate) fn severity(self, diagnostic: &Diagnostic) -> MessageSeverity {
        let is_raised =
            self.heuristic && diagnostic.code.0.starts_with("SYNC-HAZARD") && !diagnostic.is_overlap_assumed;
        match diagnostic.severity {
            _ if is_raised => MessageSeverity::Error,
            lavascope_diag::Severity::Error => MessageSeverity::Error,
            lavascope_diag::Severity::Warning | lavascope_diag::Severity::Performance => MessageSeverity::Warning,
            lavascope_diag::Severity::Information => MessageSeverity::Note,
        }
    }
}

/// A finding for a messenger.
pub(crate) struct PendingMessage {
    pub(crate) inbox: Arc<Inbox>,
    pub(crate) rendered: Arc<RenderedFinding>,
    /// Whether a debugger stops here.
    pub(crate) stops: bool,
}

impl Inbox {
    /// From now on, the findings of a device are reported.
    pub(crate) fn open(device: ObjectId, messages: &Arc<Messages>, filter: FindingFilter) -> Arc<Inbox> {
        let inbox = Arc::new(Inbox {
            device,
            messages: messages.clone(),
            finding_filter: filter,
            pending: Mutex::default(),
            count: AtomicUsize::new(0),
            dropped: AtomicUsize::new(0),
            is_finished: AtomicBool::new(false),
        });
        lock(&INBOXES).push((device, inbox.clone()));
        inbox
    }

    /// Passes waiting messages to the messengers, on the calling thread.
    #[inline]
    pub(crate) fn deliver(&self, names: &HandleTable) {
        if self.finding_filter.mode == SyncMode::Async {
            // Wakes the reader, because the device may hang or crash on the submission.
            PROCESS_STATE.stream_control.wake();
        }
        if self.count.load(Ordering::Relaxed) > 0 {
            catch_panic("messages", || self.deliver_all(names), || ());
        }
    }

    #[cold]
    fn deliver_all(&self, names: &HandleTable) {
        // No lock is held while the application is called.
        let all = std::mem::take(&mut *lock(&self.pending));
        self.count.fetch_sub(all.len(), Ordering::Relaxed);
        for rendered_finding in all {
            self.send(&rendered_finding, names);
        }
        let lost = self.dropped.swap(0, Ordering::Relaxed);
        if lost > 0 {
            let text = format!("{lost} messages were left out, since nobody took the ones before; all are counted");
            let name = c"LAVASCOPE-Messages";
            self.messages.send(&OutgoingMessage::new(MessageSeverity::Warning, name, &text));
        }
    }

    /// Announces that the shaders of the device record their touches.
    pub(crate) fn expect_feedback(&self) {
        self.with_validation(|it| it.validator.expect_feedback(self.device));
    }

    /// Processes touches, after all records before them. Calls messengers on the calling thread.
    pub(crate) fn feedback(&self, all: Vec<CommandBufferFeedback>, names: &HandleTable) {
        let found = self.with_validation(|validation| {
            validation.validator.feedback(self.device, all);
            if validation.validator.has_found() { validation.report_all() } else { None }
        });
        for pending_message in found.flatten().into_iter().flatten() {
            pending_message.inbox.send(&pending_message.rendered, names);
        }
    }

    /// Where a draw or dispatch was recorded, by its command buffer and its number there.
    pub(crate) fn locate_launch(&self, command_buffer: ObjectId, launch: (u32, Command)) -> Option<LaunchLocation> {
        self.with_validation(|it| it.validator.locate_launch(self.device, command_buffer, launch)).flatten()
    }

    /// Calls `question` with the validation, after it has processed all records.
    fn with_validation<T>(&self, question: impl FnOnce(&mut Validation) -> T) -> Option<T> {
        match self.finding_filter.mode {
            SyncMode::Inline => inline_validation::with_validation(question),
            SyncMode::Async => PROCESS_STATE.with_validation(question),
        }
    }

    pub(crate) fn messages(&self) -> &Messages {
        &self.messages
    }

    /// The progress of the device as far as the host knows it, after all records were processed.
    pub(crate) fn progress(&self) -> Vec<String> {
        self.with_validation(|it| it.validator.progress(self.device)).unwrap_or_default()
    }

    /// Passes a message to the messengers.
    pub(crate) fn send(&self, rendered: &RenderedFinding, names: &HandleTable) -> Delivery {
        self.messages.send_to_messengers(&rendered.message_about(&rendered.objects(names)))
    }

    /// The device was destroyed: waits until the reader has processed that, and delivers the remaining messages.
    pub(crate) fn close(&self, names: &HandleTable) {
        let start = Instant::now();
        while !self.is_finished.load(Ordering::Acquire)
            && PROCESS_STATE.is_reading()
            && start.elapsed() < READER_TIMEOUT
        {
            PROCESS_STATE.stream_control.wake();
            std::thread::sleep(Duration::from_micros(200));
        }
        lock(&INBOXES).retain(|it| !std::ptr::eq(&*it.1, self));
        self.deliver(names);
    }

    fn push(&self, rendered: &Arc<RenderedFinding>) {
        let mut pending = lock(&self.pending);
        if pending.len() < PENDING_MAX {
            pending.push_back(rendered.clone());
            self.count.fetch_add(1, Ordering::Relaxed);
        } else {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The validator, and which of its findings were reported.
pub(crate) struct Validation {
    validator: Validator,
    stacks: StackReader,
    /// Whether `watch_first_accesses` was called.
    watches: bool,
    mode: SyncMode,
    host_writes: HostWriteTracking,
    causes: Vec<ReportedCause>,
    /// The index in `causes`, by diagnostic, instance, and whether a rule of the settings ignores it.
    cause_index: HashMap<(usize, usize, bool), usize>,
    /// The state of each site, by site and instance.
    sites: HashMap<(usize, usize), ReportedSite>,
    /// The log that got findings, for the summary at the end.
    log: Option<Arc<Messages>>,
    /// Number of ignored findings in the report so far.
    ignored_reported: u64,
    /// The lines about cut explanations that the report has.
    cut_reported: Vec<String>,
    /// Causes in the log, and causes that did not fit.
    logged: usize,
    unlogged: usize,
    /// By thread: the records that stand beside calls.
    beside: Vec<BesideCalls>,
    /// A record whose call has another number.
    numbered: Vec<u64>,
    calls: u64,
    /// The number of submissions after which the coverage is reported again.
    next_coverage: u64,
    submits: u64,
}

/// A site of a cause: a pair of commands, and a resource.
#[derive(Clone, Copy, Default)]
struct ReportedSite {
    is_ignored: bool,
    count: u64,
}

/// A cause as one instance reports it; another instance may have other settings. Ignored sites are a cause of their own.
struct ReportedCause {
    /// Its index among the diagnostics.
    diagnostic_index: usize,
    /// The index of its first site in [`Validator::site_diagnostics`], if that is not the first site of the diagnostic.
    site_diagnostic: Option<usize>,
    /// The messages of the instance. Kept alive, so that no other instance gets the same address.
    messages: Arc<Messages>,
    rendered: Arc<RenderedFinding>,
    /// Number of findings on devices whose hazards are reported, and the number in the report file.
    count: u64,
    reported: u64,
    /// The sites and frames that the report file has.
    reported_sites: u64,
    reported_frames: Option<FrameRange>,
    /// Whether the report file has the command after the access, or has no place for it.
    has_next_command: bool,
    /// Whether it is in the log, and the count in the last summary.
    is_logged: bool,
    summarized: u64,
}

impl ReportedCause {
    /// `diagnostic` is that of the finding's site.
    fn new(finding: ValidatorFinding, diagnostic: &Diagnostic, inbox: &Inbox) -> ReportedCause {
        ReportedCause {
            diagnostic_index: finding.cause,
            site_diagnostic: finding.site_diagnostic,
            messages: inbox.messages.clone(),
            rendered: Arc::new(RenderedFinding::new(diagnostic, &inbox.messages, inbox.finding_filter)),
            count: 0,
            reported: 0,
            reported_sites: 0,
            reported_frames: None,
            has_next_command: next_command(diagnostic).is_some(),
            is_logged: false,
            summarized: 0,
        }
    }

    /// The first entry of the cause in the report file. `own` is the diagnostic of the first site, `all` that of the
    /// cause.
    fn first_report(&mut self, own: &Diagnostic, all: &Diagnostic) -> Finding {
        (self.reported, self.reported_sites, self.reported_frames) = (1, all.sites, all.frames);
        Finding { frames: all.frames.map(FrameSpan::from), ..self.rendered.finding(own, 1) }
    }

    /// The entry that adds new occurrences, sites and frames to the report file.
    fn addition(&self, own: &Diagnostic, all: &Diagnostic) -> Option<Finding> {
        let occurrences = self.count - self.reported;
        // If the first sites are ignored, the others are not counted separately.
        let sites = if self.site_diagnostic.is_none() { all.sites - self.reported_sites } else { 0 };
        let before = self.reported_frames.map_or(0, |it| it.count);
        let frames = all.frames.filter(|it| Some(*it) != self.reported_frames);
        let frames = frames.map(|it| FrameSpan { first: it.first, last: it.last, count: it.count - before });
        let is_next_new = !self.has_next_command && next_command(own).is_some();
        if occurrences == 0 && sites == 0 && frames.is_none() && !is_next_new {
            return None;
        }
        let more_sites = if sites > 0 { self.rendered.more_sites(all, self.reported_sites) } else { Vec::new() };
        let accesses = if is_next_new { self.rendered.neighbors(own) } else { Vec::new() };
        Some(Finding { sites, more_sites, frames, accesses, ..self.rendered.addition(own, occurrences) })
    }
}

/// The command that was recorded after the access of a finding, if that is known yet.
fn next_command(diagnostic: &Diagnostic) -> Option<&String> {
    diagnostic.locations.first()?.neighbors.as_ref()?.after.as_ref()
}

/// Whether host writes to memory are recorded, so that the validator can read indices there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HostWriteTracking {
    Undecided,
    On,
    Off,
}

/// A copy of a record with the call number that messages show, in which host writes do not count.
fn with_call_number<'a>(copy: &'a mut Vec<u64>, words: &[u64], number: u64) -> &'a [u64] {
    let head = RecordHeader::from_words(words[0], words[1]);
    copy.clear();
    copy.extend_from_slice(words);
    copy[1] = RecordHeader { call: number, ..head }.to_words()[1];
    copy
}

impl Validation {
    /// For a reader on a thread of ours.
    pub(crate) fn off_thread() -> Validation {
        Validation::new(SyncMode::Async)
    }

    /// For inline validation on threads of the application.
    pub(crate) fn inline() -> Validation {
        Validation::new(SyncMode::Inline)
    }

    fn new(mode: SyncMode) -> Validation {
        Validation {
            validator: Validator::default(),
            stacks: StackReader::default(),
            watches: false,
            mode,
            host_writes: HostWriteTracking::Undecided,
            causes: Vec::new(),
            cause_index: HashMap::new(),
            sites: HashMap::new(),
            log: None,
            ignored_reported: 0,
            cut_reported: Vec::new(),
            logged: 0,
            unlogged: 0,
            beside: Vec::new(),
            numbered: Vec::new(),
            calls: 0,
            next_coverage: 1,
            submits: 0,
        }
    }

    /// Adds the settings of another instance.
    pub(crate) fn add_settings(&mut self, settings: &Settings) {
        if settings.sync_submit_time {
            self.validator.check_submissions();
        }
        if settings.sync_host_writes {
            self.validator.check_host_writes();
        }
        if !settings.caches {
            self.validator.disable_caches();
        }
        // A capture may end, and then host writes are no longer known.
        if settings.capture.is_some() {
            self.host_writes = HostWriteTracking::Off;
            self.validator.stop_host_writes();
        } else if self.host_writes == HostWriteTracking::Undecided {
            self.host_writes = HostWriteTracking::On;
            self.validator.expect_some_host_writes();
        }
        // If shaders record their accesses, a possible hazard may turn out to be certain.
        if settings.possible || settings.gpu {
            self.validator.report_possible();
        }
    }

    /// Validates a record and reports its findings: to the report file and the log, and to messengers. Inline, the
    /// messages are returned, and the caller sends them; async, they wait in the [`Inbox`] of the device until
    /// `deliver`.
    pub(crate) fn validate_and_report(&mut self, thread: u32, words: &[u64]) -> Option<Vec<PendingMessage>> {
        let head = RecordHeader::from_words(words[0], words[1]);
        let number = self.call_number(thread, head);
        let mut numbered = std::mem::take(&mut self.numbered);
        let words = if number == head.call { words } else { with_call_number(&mut numbered, words, number) };
        let now = self.validate_numbered(thread, words, head.call);
        self.numbered = numbered;
        now
    }

    /// The number of a call in messages, in which host writes do not count.
    fn call_number(&mut self, thread: u32, head: RecordHeader) -> u64 {
        let index = thread as usize;
        if beside::has_own_number(head.kind) {
            let size = self.beside.len().max(index + 1);
            self.beside.resize_with(size, BesideCalls::default);
            self.beside[index].add(head.call);
        }
        self.beside.get(index).map_or(head.call, |it| it.call_number(head.call))
    }

    /// Processes a record with the call number that messages show. `stream_call` is the number of the call in its stream,
    /// under which the call stack was kept.
    fn validate_numbered(&mut self, thread: u32, words: &[u64], stream_call: u64) -> Option<Vec<PendingMessage>> {
        let Some(record) = from_trusted(words) else {
            let written = HostWrite::parse(words).filter(|it| !it.is_device_write())?;
            let stack = written.noticed_by().map_or(0, |it| self.stacks.take(thread, it, stream_call));
            self.validator.set_call_stack(stack);
            self.validator.host_wrote(thread, written);
            return if self.validator.has_found() { self.report_all() } else { None };
        };
        if record.phase() == RecordPhase::Enter {
            self.calls += 1;
            self.submits += u64::from(is_submission(record.command()));
            let stack = self.stacks.take(thread, record.command(), stream_call);
            self.validator.set_call_stack(stack);
        }
        self.validator.process_record(thread, record);
        if self.submits >= self.next_coverage {
            self.next_coverage = 2 * self.submits;
            self.report_coverage();
        }
        let now = if self.validator.has_found() { self.report_all() } else { None };
        if record.command() == Command::DestroyDevice && record.phase() == RecordPhase::Enter {
            mark_device_finished(record);
        }
        now
    }

    /// See [`Validator::watch_first_accesses`].
    pub(crate) fn watch_first_accesses(&mut self, keys: &[FirstAccessKey]) {
        self.watches = true;
        self.validator.watch_first_accesses(keys);
    }

    /// See [`Validator::take_first_accesses`].
    pub(crate) fn take_first_accesses(&mut self) -> Vec<String> {
        if self.watches { self.validator.take_first_accesses() } else { Vec::new() }
    }

    /// Undoes the last call of a thread, because a callback has cancelled it.
    pub(crate) fn undo_call(&mut self, thread: u32, record: Record<'_>) {
        self.validator.undo_call(thread, record);
    }

    #[cold]
    fn report_all(&mut self) -> Option<Vec<PendingMessage>> {
        let mut now = Vec::new();
        for finding in self.validator.take_findings() {
            let Some(waiting) = self.report_finding(finding) else { continue };
            match self.mode {
                SyncMode::Inline => now.push(waiting),
                SyncMode::Async => waiting.inbox.push(&waiting.rendered),
            }
        }
        (!now.is_empty()).then_some(now)
    }

    /// Writes a finding to the report and the log. Returns what must be sent to messengers.
    fn report_finding(&mut self, finding: ValidatorFinding) -> Option<PendingMessage> {
        let diagnostic = &self.validator.diagnostics()[finding.cause];
        let own = finding.site_diagnostic.map_or(diagnostic, |it| &self.validator.site_diagnostics()[it]);
        let inbox = inbox_of(finding.device).filter(|it| it.finding_filter.accepts(finding, diagnostic))?;
        let (messages, causes) = (&inbox.messages, &mut self.causes);
        let instance = Arc::as_ptr(messages).addr();
        if self.sites.len() >= SITES_MAX {
            self.sites.clear();
        }
        let site = self
            .sites
            .entry((finding.site, instance))
            .or_insert_with(|| ReportedSite { is_ignored: !messages.ignored_by(own).is_empty(), count: 0 });
        site.count += 1;
        let ReportedSite { is_ignored, count } = *site;
        let index = *self.cause_index.entry((finding.cause, instance, is_ignored)).or_insert_with(|| {
            causes.push(ReportedCause::new(finding, own, &inbox));
            causes.len() - 1
        });
        let cause = &mut self.causes[index];
        cause.count += 1;
        if is_ignored {
            if !report_file::is_open() {
                self.log = Some(inbox.messages.clone());
            }
            return None;
        }
        if cause.count == 1 {
            coverage::note_finding();
        }
        let is_reported = match cause.count {
            1 => report_file::finding(&cause.first_report(own, diagnostic)),
            _ => report_file::is_open(),
        };
        let is_above_limit = messages.is_above_limit(count);
        if is_above_limit && (is_reported || count > 1) {
            return None;
        }
        // As text, ready to send.
        let rendered = match finding.site_diagnostic {
            site_diagnostic if site_diagnostic == cause.site_diagnostic => cause.rendered.clone(),
            _ => Arc::new(RenderedFinding::new(own, messages, inbox.finding_filter)),
        };
        // The log gets each site once, as a messenger does.
        if !is_reported && count == 1 {
            if self.logged < LOGGED_MAX {
                let is_logged = cause.messages.log_now(&rendered.message());
                cause.is_logged |= is_logged;
                self.logged += usize::from(is_logged);
            } else {
                self.unlogged += 1;
            }
            self.log = Some(messages.clone());
        }
        let stops = inbox.finding_filter.stops && cause.count == 1;
        (!is_above_limit).then_some(PendingMessage { inbox, rendered, stops })
    }

    /// Writes to the report how much was checked so far.
    #[cold]
    fn report_coverage(&self) {
        if !coverage::is_wanted() {
            return;
        }
        let mut unsupported: Vec<UncheckedCount> = Vec::new();
        for (what, count) in self.validator.unsupported() {
            match unsupported.iter_mut().find(|it| it.reason == what.reason) {
                Some(own) => own.count += count,
                None => unsupported.push(UncheckedCount { reason: what.reason.to_owned(), count }),
            }
        }
        let work = self.validator.checked_work();
        coverage::set_validated(self.mode, ValidatedWork { calls: self.calls, work, unsupported });
    }

    /// Writes new counts, sites and frames of each cause to the report.
    pub(crate) fn report_counts(&mut self) {
        self.report_coverage();
        let (diagnostics, site_diagnostics) = (self.validator.diagnostics(), self.validator.site_diagnostics());
        for cause in self.causes.iter_mut().filter(|it| it.rendered.ignored_by.is_empty() && it.reported > 0) {
            let all = &diagnostics[cause.diagnostic_index];
            let own = cause.site_diagnostic.map_or(all, |it| &site_diagnostics[it]);
            if let Some(addition) = cause.addition(own, all)
                && report_file::finding(&addition)
            {
                (cause.reported, cause.reported_sites) = (cause.count, all.sites);
                cause.reported_frames = all.frames;
                cause.has_next_command |= next_command(own).is_some();
            }
        }
        let ignored = count_ignored(&self.causes);
        let count = ignored.iter().map(|it| it.count).sum();
        if count > self.ignored_reported {
            report_file::ignored_hazards(ignored);
            self.ignored_reported = count;
        }
    }

    /// Writes the summary: counts, undelivered messages, and unsupported calls.
    pub(crate) fn end(&mut self) {
        self.validator.finish();
        for finding in self.validator.take_findings() {
            if let Some(pending_message) = self.report_finding(finding) {
                pending_message.inbox.push(&pending_message.rendered);
            }
        }
        self.report_pending();
        for (_, inbox) in lock(&INBOXES).iter().filter(|it| it.1.finding_filter.mode == self.mode) {
            // No application thread will deliver these, and callbacks may be unloaded at process exit: drop them.
            let all = std::mem::take(&mut *lock(&inbox.pending));
            inbox.count.fetch_sub(all.len(), Ordering::Relaxed);
        }
        let cut = self.validator.cut_explanations().lines();
        for line in cut.iter().filter(|it| !self.causes.is_empty() && !self.cut_reported.contains(it)) {
            report_file::problem("note", "validation", line);
        }
        self.cut_reported.clone_from(&cut);
        self.log_summary(&cut);
    }

    /// Writes counts, undelivered messages, and unsupported calls.
    pub(crate) fn report_pending(&mut self) {
        self.report_counts();
        for (_, inbox) in lock(&INBOXES).iter().filter(|it| it.1.finding_filter.mode == self.mode) {
            if !report_file::is_open() {
                lock(&inbox.pending).iter().for_each(|it| inbox.messages.log_undelivered(&it.message()));
            }
        }
        let missing: Vec<Value> = self
            .validator
            .unsupported()
            .map(|(it, count)| json!({ "command": it.command.desc().name, "reason": it.reason, "count": count }))
            .collect();
        if !missing.is_empty() {
            report_file::unsupported_calls(missing);
        }
    }

    /// Logs the counts of logged causes that occurred more than once.
    fn log_summary(&mut self, cut: &[String]) {
        let Some(log) = &self.log else { return };
        let mut text = String::new();
        for cause in self.causes.iter_mut().filter(|it| it.is_logged && it.count > it.summarized) {
            cause.summarized = cause.count;
            let first = cause.rendered.text.lines().next().unwrap_or_default();
            text += &format!("\n  {}: {}: {first}", times_text(cause.count), cause.rendered.name.to_string_lossy());
        }
        let is_ignored = |it: &&mut ReportedCause| !it.rendered.ignored_by.is_empty() && it.count > it.summarized;
        let ignored = count_ignored(&self.causes);
        if self.causes.iter_mut().filter(is_ignored).map(|it| it.summarized = it.count).count() > 0 {
            for ignored_findings in ignored.iter().filter(|it| it.count > 0) {
                text += &format!("\n  {}: ignored by {}", times_text(ignored_findings.count), ignored_findings.rule);
            }
        }
        let unlogged = std::mem::take(&mut self.unlogged);
        if unlogged > 0 {
            text += &format!("\n  {unlogged} more findings are not shown here; `lavascope run` shows all of them");
        }
        if !text.is_empty() {
            cut.iter().for_each(|it| text += &format!("\n  {it}"));
            log.log_plain(&format!("findings of this run:{text}"));
        }
    }
}

/// Whether a command submits command buffers.
fn is_submission(command: Command) -> bool {
    matches!(command, Command::QueueSubmit | Command::QueueSubmit2)
}

/// Number of findings and causes that each rule filtered.
fn count_ignored(causes: &[ReportedCause]) -> Vec<IgnoredFindings> {
    let mut all: Vec<IgnoredFindings> = Vec::new();
    for cause in causes.iter().filter(|it| it.count > 0) {
        IgnoredFindings::add(&mut all, &cause.rendered.ignored_by, cause.count);
    }
    all
}

fn times_text(count: u64) -> String {
    if count == 1 { "once".to_owned() } else { format!("{count} times") }
}

/// Notes that the reader has processed the destruction of a device.
fn mark_device_finished(record: Record<'_>) {
    let device = record.body().get(HEADER_SIZE..).and_then(cast::<u64>).copied().and_then(ObjectId::from_raw);
    if let Some(inbox) = device.and_then(inbox_of) {
        inbox.is_finished.store(true, Ordering::Release);
    }
}

fn inbox_of(device: ObjectId) -> Option<Arc<Inbox>> {
    lock(&INBOXES).iter().find(|it| it.0 == device).map(|it| it.1.clone())
}

fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}
