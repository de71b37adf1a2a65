//! Which bytes of a mapped memory may have changed since the last look.

use std::ops::Range;

use lavascope_platform::pages::{PageTracker, WriteGuard, page_size};

use super::Mapped;

/// How writes are found.
#[derive(Default)]
pub(super) enum Watch {
    /// Nobody knows: everything is looked at.
    #[default]
    All,
    /// The system tells pages.
    Faults,
    /// Pages fault when they are written.
    Guard(WriteGuard),
}

impl Watch {
    /// Adds what may have changed of the wanted bytes. Pages that were told are not told again, so all of each is in it,
    /// as far as it is mapped.
    pub(super) fn written(&self, mapped: &Mapped, wanted: Range<u64>, parts: &mut Vec<Range<u64>>) {
        match self {
            Watch::All => parts.push(wanted),
            Watch::Faults => {
                let page = page_size();
                let start = mapped.address(wanted.start) / page * page;
                let end = mapped.address(wanted.end).next_multiple_of(page);
                if !PageTracker::get().is_some_and(|it| it.written(start..end, parts)) {
                    // Some pages were told, and are not told again.
                    parts.clear();
                    return parts.push(mapped.bytes.clone());
                }
                parts.iter_mut().for_each(|it| *it = mapped.byte(it.start)..mapped.byte(it.end));
            }
            Watch::Guard(guard) => {
                guard.written(mapped.address(wanted.start)..mapped.address(wanted.end), parts);
                parts.iter_mut().for_each(|it| *it = mapped.byte(it.start)..mapped.byte(it.end));
            }
        }
    }
}
