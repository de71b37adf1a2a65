//! Gives the reader time to finish when a signal is about to end the process.
//!
//! Only needed if a thread of ours reads calls; inline validation has already reported everything. The signal is
//! delayed until the reader is done, or makes no progress for ten seconds. Then it has its usual effect. A signal
//! handler may do little: ours sets one flag and polls another. `_exit` and `SIGKILL` cannot be delayed; the report
//! then has what was found before.

use std::time::Duration;

use lavascope_platform::{termination, threads};

use crate::process::process_state::PROCESS_STATE;

const POLL_INTERVAL: Duration = Duration::from_millis(1);
/// Largest number of polls without progress of the reader, and in total.
const STALLED_POLLS_MAX: u32 = 10_000;
const POLLS_MAX: u32 = 60_000;

/// From now on, a signal that ends the process waits for the reader.
pub(crate) fn install() {
    termination::on_termination(wait_for_reader);
}

/// Runs in a signal handler.
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
