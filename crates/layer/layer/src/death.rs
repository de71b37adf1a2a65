//! The process is about to end by a signal: the reader gets the time to look at what was recorded until then.
//!
//! Only where a thread of ours reads calls: inline validation has told everything already. The signal is held up until
//! the reader is done, or does not get on for ten seconds, and then does what it would have done without us. What a handler may
//! do is little: it sets one flag and waits for another. `_exit` and `SIGKILL` cannot be held up; what was found by
//! then is in the report.

use std::time::Duration;

use lavascope_platform::{death, threads};

use crate::hub::HUB;

const NAP: Duration = Duration::from_millis(1);
/// In which the reader does not get on, and all together.
const NAPS_MAX: u32 = 10_000;
const NAPS_MAX_IN_ALL: u32 = 60_000;

/// From now on a signal that ends the process waits for the reader.
pub(crate) fn watch() {
    death::watch(wait_for_the_reader);
}

/// Runs in a handler.
fn wait_for_the_reader() {
    if !HUB.begin_dying() {
        return;
    }
    let (mut naps, mut seen) = (0, HUB.looked_at());
    for _ in 0..NAPS_MAX_IN_ALL {
        if seen != HUB.looked_at() {
            (naps, seen) = (0, HUB.looked_at());
        }
        naps += 1;
        if HUB.has_died() || naps > NAPS_MAX {
            break;
        }
        threads::nap(NAP);
    }
}
