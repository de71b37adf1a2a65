//! Which bytes of a mapped memory may have changed since the last look.

use std::ops::Range;

use lavascope_platform::pages::{PageTracker, WriteGuard, page_size};

use super::HostMapping;

/// How writes are found.
#[derive(Default)]
pub(super) enum WriteDetection {
    /// Unknown: all bytes are compared.
    #[default]
    CompareAll,
    /// The system reports pages.
    PageTracking,
    /// Pages fault when they are written.
    PageGuard(WriteGuard),
}

impl WriteDetection {
    /// Adds the wanted bytes that may have changed. A reported page is not reported again, so all bytes of it are
    /// added, as far as it is mapped.
    pub(super) fn add_written(&self, mapped: &HostMapping, wanted: Range<u64>, parts: &mut Vec<Range<u64>>) {
        let known = parts.len();
        match self {
            WriteDetection::CompareAll => parts.push(wanted),
            WriteDetection::PageTracking => {
                let page = page_size();
                let start = mapped.address(wanted.start) / page * page;
                let end = mapped.address(wanted.end).next_multiple_of(page);
                if !PageTracker::get().is_some_and(|it| it.written(start..end, parts)) {
                    // Some pages were reported, and are not reported again.
                    parts.clear();
                    return parts.push(mapped.bytes.clone());
                }
                parts[known..].iter_mut().for_each(|it| *it = mapped.byte(it.start)..mapped.byte(it.end));
            }
            WriteDetection::PageGuard(guard) => {
                guard.written(mapped.address(wanted.start)..mapped.address(wanted.end), parts);
                parts[known..].iter_mut().for_each(|it| *it = mapped.byte(it.start)..mapped.byte(it.end));
            }
        }
    }
}
