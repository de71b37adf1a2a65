//! Validation inside of the calls themselves: before the driver sees a call, and after it returned.
//!
//! A thread gives its record to the validator under a lock, releases the lock, and then calls messengers and driver. A
//! messenger runs inside of the very call that is wrong: a debugger stops there, and a callback that returns `VK_TRUE`
//! skips the call. A skipped call never reaches the driver, returns `VK_ERROR_VALIDATION_FAILED_EXT` where it returns
//! a result, and is undone in the validator. What other threads did meanwhile stays.
//!
//! The order of the lock is one in which the calls could have been made:
//!
//! - *Enter* comes before the driver begins, *leave* after it ended. So if one call returned before another began,
//!   both records of the first come before those of the second. The application must let a call return before it
//!   relies on it; calls that overlap in time have no order to get wrong.
//! - *New objects.* An id is given before *leave* is validated, and the application has the handle only after that.
//! - *Ends.* A call that ends an object is validated, and its id forgotten, before the driver may give the handle to
//!   somebody else.
//! - *Waits.* A wait that returned relies on a submission whose *enter* was validated before the driver could begin
//!   it. A thread that learns of the wait from the waiting thread does so after that thread's *leave*; one that asks
//!   the driver has a *leave* of its own.
//! - *Reuse.* The specification forbids resetting a fence, or a pool, or submitting to a fence, while a wait for the
//!   same one has not returned. So a late *leave* never refers to a newer use. Timelines only grow, and a wait names
//!   its value.
//! - *Device to device.* Work that waits for a value that another thread signals later is a blocked submission, in
//!   whichever order the two come.
//! - *Externally synchronized objects*, command buffers above all, are ordered by the application itself.

use std::sync::{Mutex, MutexGuard, PoisonError};

use lavascope_diag::FirstAccessKey;
use lavascope_record::from_trusted;
use lavascope_settings::Settings;

use crate::intercept::handle_table::HandleTable;
use crate::process::catch_panic::{catch_panic, is_disabled};
use crate::process::process_state::{PROCESS_STATE, ReportTimer};
use crate::report::debugger;
use crate::report::messages::Delivery;
use crate::report::validation::{PendingMessage, Validation};

/// One for the process; objects of different instances do not affect each other.
static INLINE_STATE: Mutex<InlineState> = Mutex::new(InlineState { validation: None, report_timer: None, users: 0 });

struct InlineState {
    /// None if inline validation is off, and after a bug of the layer.
    validation: Option<Box<Validation>>,
    report_timer: Option<ReportTimer>,
    /// Number of [`InlineGuard`]s.
    users: usize,
}

/// Calls are validated inline as long as one of these exists.
pub(crate) struct InlineGuard(());

impl Drop for InlineGuard {
    fn drop(&mut self) {
        let work = || {
            let mut state = lock();
            state.users -= 1;
            if state.users == 0 {
                state.end();
            }
        };
        catch_panic("the end of validation", work, || ());
    }
}

/// Starts inline validation.
pub(crate) fn start(settings: &Settings) -> InlineGuard {
    let mut state = lock();
    state.validation.get_or_insert_with(|| Box::new(Validation::inline())).add_settings(settings);
    state.report_timer.get_or_insert_default();
    state.users += 1;
    PROCESS_STATE.start_inline();
    InlineGuard(())
}

/// Stops at accesses that fit these keys.
pub(crate) fn watch_first_accesses(keys: &[FirstAccessKey]) {
    if !keys.is_empty() {
        debugger::await_first_access();
        with_validation(|it| it.watch_first_accesses(keys));
    }
}

/// The process ends while calls are still validated.
pub(crate) fn end_process() {
    // The lock may be taken forever: at the time of a fork, or by a thread that no longer exists.
    if let Ok(mut state) = INLINE_STATE.try_lock()
        && state.users > 0
    {
        state.end();
    }
}

/// Calls `question` with the validation; none if there is none.
pub(crate) fn with_validation<T>(question: impl FnOnce(&mut Validation) -> T) -> Option<T> {
    lock().validation.as_deref_mut().map(question)
}

/// The findings of a call.
pub(crate) struct InlineFindings {
    thread: u32,
    record: Vec<u64>,
    messages: Vec<PendingMessage>,
    /// Watched accesses that the call makes.
    first_accesses: Vec<String>,
}

/// Validates a record. Returns what must be reported to the application because of it.
#[inline(never)]
pub(crate) fn validate_under_lock(thread: u32, record: &[u64]) -> Option<Box<InlineFindings>> {
    let mut state = lock();
    // Taken out of the option, so that it stays none if it panics.
    let mut validation = state.validation.take()?;
    let messages = validation.validate_and_report(thread, record).unwrap_or_default();
    let first_accesses = validation.take_first_accesses();
    let found = (!messages.is_empty() || !first_accesses.is_empty())
        .then(|| Box::new(InlineFindings { thread, record: record.to_vec(), messages, first_accesses }));
    if let Some(report_timer) = &mut state.report_timer {
        report_timer.count_record(|| validation.report_counts());
    }
    state.validation = Some(validation);
    found
}

impl InlineFindings {
    /// The findings of a call, with those of what was noticed before it. `record` is that of the call.
    #[cold]
    pub(crate) fn merged(
        own: Option<Box<InlineFindings>>,
        noticed: Vec<InlineFindings>,
        (thread, record): (u32, &[u64]),
    ) -> Box<InlineFindings> {
        let none = || InlineFindings { thread, record: record.to_vec(), messages: vec![], first_accesses: vec![] };
        let mut own = own.unwrap_or_else(|| Box::new(none()));
        for mut earlier in noticed.into_iter().rev() {
            earlier.messages.append(&mut own.messages);
            earlier.first_accesses.append(&mut own.first_accesses);
            (own.messages, own.first_accesses) = (earlier.messages, earlier.first_accesses);
        }
        own
    }

    /// Calls the application's messengers, without a lock. If one of them cancels the call and that is still possible,
    /// undoes its effects.
    #[cold]
    pub(crate) fn send(&self, names: &HandleTable, phase: CallPhase) -> Delivery {
        let send = |it: &PendingMessage| it.inbox.send(&it.rendered, names);
        let answer = self.messages.iter().map(send).max().unwrap_or(Delivery::NoMessenger);
        if answer == Delivery::SkipCall && phase == CallPhase::BeforeDriver {
            let mut state = lock();
            if let (Some(mut validation), Some(record)) = (state.validation.take(), from_trusted(&self.record)) {
                validation.undo_call(self.thread, record);
                state.validation = Some(validation);
            }
        }
        answer
    }

    /// Prints why the program must stop in a debugger now. Returns whether it must.
    #[cold]
    pub(crate) fn print_stops(&self) -> bool {
        let hazards = self.messages.iter().filter(|it| it.stops).map(|it| it.rendered.text.clone());
        let firsts = self.first_accesses.iter().map(|it| format!("the first access of a finding: {it}"));
        let reasons: Vec<String> = firsts.chain(hazards).collect();
        if !self.first_accesses.is_empty() {
            debugger::stopped_at_first_access();
        }
        reasons.iter().for_each(|it| debugger::print_reason(it));
        !reasons.is_empty()
    }
}

/// The moment at which messengers are called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallPhase {
    BeforeDriver,
    AfterDriver,
}

impl InlineState {
    fn end(&mut self) {
        if let Some(validation) = self.validation.as_mut().filter(|_| !is_disabled()) {
            validation.end();
        }
    }
}

fn lock() -> MutexGuard<'static, InlineState> {
    INLINE_STATE.lock().unwrap_or_else(PoisonError::into_inner)
}
