//! The process is about to end by a signal: the reader gets the time to look at what was recorded until then.
//!
//! Only where a thread of ours reads calls: inline validation has told everything already. The signal is held up until
//! the reader is done, or does not get on for ten seconds, and then does what it would have done without us. What a handler may
//! do is little: it sets one flag and waits for another. `_exit` and `SIGKILL` cannot be held up; what was found by
//! then is in the report.

use std::time::Duration;

use lavascope_platform::{termination, threads};

use crate::process::process_state::PROCESS_STATE;

const POLL_INTERVAL: Duration = Duration::from_millis(1);
/// In which the reader does not get on, and all together.
const STALLED_POLLS_MAX: u32 = 10_000;
const POLLS_MAX: u32 = 60_000;

/// From now on a signal that ends the process waits for the reader.
pub(crate) fn install() {
    termination::on_termination(wait_for_reader);
}

/// Runs in a handler.
fn wait_for_reader() {
    if !PROCESS_STATE.request_final_report() {
        return;
    }
    let (mut naps, mut seen) = (0, PROCESS_STATE.records_read());
    for _ in 0..POLLS_MAX {
        if seen != PROCESS_STATE.records_read() {
            (naps, seen) = (0, PROCESS_STATE.records_read());
        }
        naps += 1;
        if PROCESS_STATE.is_final_report_done() || naps > STALLED_POLLS_MAX {
            break;
        }
        threads::signal_safe_sleep(POLL_INTERVAL);
    }
}
