//! Written pages, as the system reports them: `userfaultfd` in asynchronous write-protect mode, with `PAGEMAP_SCAN`. No
//! thread is interrupted, and writes by system calls are included.
//!
//! Only for memory of ours: mappings of drivers cannot be tracked in this way. Writes of a real device are not
//! included; those of a driver on the processor are.

use std::fs::File;
use std::ops::Range;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;
use std::sync::LazyLock;

use rustix::mm::{Advice, MapFlags, ProtFlags};

use crate::pages::page_size;

/// Where we ask. Both stay open for as long as the process lives.
pub struct PageTracker {
    userfault: OwnedFd,
    pages: File,
}

/// Numbers of the kernel's interface, which is newer than the C library's headers.
const USER_MODE_ONLY: i32 = 1;
const API: u64 = 0xaa;
const FEATURE_FAULT_WRITE_PROTECT: u64 = 1 << 0;
const FEATURE_UNPOPULATED: u64 = 1 << 13;
const FEATURE_ASYNC: u64 = 1 << 15;
const FEATURES: u64 = FEATURE_FAULT_WRITE_PROTECT | FEATURE_UNPOPULATED | FEATURE_ASYNC;
const REGISTER_WRITE_PROTECT: u64 = 1 << 1;
const PROTECT: u64 = 1 << 0;
const IOCTL_API: u64 = 0xc018_aa3f;
const IOCTL_REGISTER: u64 = 0xc020_aa00;
const IOCTL_PROTECT: u64 = 0xc018_aa06;
const IOCTL_SCAN: u64 = 0xc060_6610;
const SCAN_PROTECT_AGAIN: u64 = 1 << 0;
const SCAN_ONLY_WATCHED: u64 = 1 << 1;
const PAGE_WRITTEN: u64 = 1 << 1;

/// Runs of pages that one question may answer with.
const RUNS_MAX: usize = 256;

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct PageRegion {
    start: u64,
    end: u64,
    categories: u64,
}

/// The arguments of `PAGEMAP_SCAN`.
#[repr(C)]
#[derive(Default)]
struct PagemapScanArgs {
    size: u64,
    flags: u64,
    start: u64,
    end: u64,
    /// How far it came.
    walk_end: u64,
    runs: u64,
    runs_max: u64,
    pages_max: u64,
    inverted: u64,
    mask: u64,
    any_of: u64,
    wanted: u64,
}

static TRACKER: LazyLock<Option<PageTracker>> = LazyLock::new(|| PageTracker::open().filter(PageTracker::is_working));

impl PageTracker {
    /// None if the system cannot do it, or does not let us.
    pub fn get() -> Option<&'static PageTracker> {
        TRACKER.as_ref()
    }

    fn open() -> Option<PageTracker> {
        let flags = libc::O_CLOEXEC | libc::O_NONBLOCK;
        let open = |more: i32| {
            // SAFETY: this looks at nothing of ours.
            let found = unsafe { libc::syscall(libc::SYS_userfaultfd, flags | more) };
            RawFd::try_from(found).ok().filter(|it| *it >= 0)
        };
        // Without privileges, faults inside of system calls cannot be handled; in this mode they need not be.
        let events = open(USER_MODE_ONLY).or_else(|| open(0))?;
        // SAFETY: just opened, and nobody else's.
        let events = unsafe { OwnedFd::from_raw_fd(events) };
        let mut api = [API, FEATURES, 0];
        // SAFETY: as large as the kernel expects.
        unsafe { ioctl(events.as_raw_fd(), IOCTL_API, &raw mut api) }?;
        Some(PageTracker { userfault: events, pages: File::open("/proc/self/pagemap").ok()? })
    }

    /// Tries it out: a kernel may know the words and not the thing.
    fn is_working(&self) -> bool {
        let Some(own) = AlignedMapping::new(2 * page_size(), page_size()) else { return false };
        if !self.watch(&own) {
            return false;
        }
        let second = own.start + page_size();
        // SAFETY: memory of ours, which nobody else knows.
        unsafe { ptr::with_exposed_provenance_mut::<u8>(second as usize).write_volatile(1) };
        let mut found = Vec::new();
        let all = own.start..own.start + own.size;
        let has_found = self.written(all.clone(), &mut found)
            && found.iter().cloned().eq(std::iter::once(second..own.start + own.size));
        found.clear();
        has_found && self.written(all, &mut found) && found.is_empty()
    }

    /// From now on writes are noticed.
    pub fn watch(&self, own: &AlignedMapping) -> bool {
        self.register(own) && self.protect(own, own.start..own.start + own.size)
    }

    /// Prepares memory for [`PageTracker::protect`]. Pages that are not protected may count as written.
    pub fn register(&self, own: &AlignedMapping) -> bool {
        let mut register = [own.start, own.size, REGISTER_WRITE_PROTECT, 0];
        // SAFETY: as large as the kernel expects; the memory is ours.
        unsafe { ioctl(self.userfault.as_raw_fd(), IOCTL_REGISTER, &raw mut register) }.is_some()
    }

    /// From now on writes to these whole pages of registered memory are noticed.
    pub fn protect(&self, own: &AlignedMapping, addresses: Range<u64>) -> bool {
        assert!(own.contains(&addresses), "only pages of the mapping are protected");
        let mut protect = [addresses.start, addresses.end - addresses.start, PROTECT];
        // SAFETY: as large as the kernel expects; the memory is ours.
        unsafe { ioctl(self.userfault.as_raw_fd(), IOCTL_PROTECT, &raw mut protect) }.is_some()
    }

    /// The pages that were written since the last call. False if that is unknown.
    pub fn written(&self, addresses: Range<u64>, found: &mut Vec<Range<u64>>) -> bool {
        let mut runs = [PageRegion::default(); RUNS_MAX];
        let mut start = addresses.start;
        while start < addresses.end {
            let mut scan = PagemapScanArgs {
                size: size_of::<PagemapScanArgs>() as u64,
                flags: SCAN_PROTECT_AGAIN | SCAN_ONLY_WATCHED,
                start,
                end: addresses.end,
                runs: (&raw mut runs).expose_provenance() as u64,
                runs_max: RUNS_MAX as u64,
                mask: PAGE_WRITTEN,
                wanted: PAGE_WRITTEN,
                ..PagemapScanArgs::default()
            };
            // SAFETY: as the kernel expects it; the runs are ours, and as many as we say.
            let count = unsafe { ioctl(self.pages.as_raw_fd(), IOCTL_SCAN, &raw mut scan) };
            let Some(count) = count.filter(|it| *it <= RUNS_MAX && scan.walk_end > start) else { return false };
            found.extend(runs[..count].iter().map(|it| it.start..it.end));
            start = scan.walk_end;
        }
        true
    }
}

/// # Safety
///
/// `about` must be what the kernel expects with the number.
unsafe fn ioctl<T>(file: RawFd, number: u64, about: *mut T) -> Option<usize> {
    // SAFETY: what the kernel expects with the number, by this function's contract.
    let found = unsafe { libc::ioctl(file, number, about) };
    usize::try_from(found).ok()
}

/// Memory of ours for a device, zeros at first.
pub struct AlignedMapping {
    pub start: u64,
    pub size: u64,
    /// The whole mapping, which is larger if the alignment needs it.
    mapped: Range<u64>,
}

impl AlignedMapping {
    /// Memory of at least this many bytes, at a multiple of `alignment`, which its size is, too; none if there is no
    /// space.
    pub fn new(size: u64, alignment: u64) -> Option<AlignedMapping> {
        let alignment = alignment.max(page_size());
        let size = size.checked_next_multiple_of(alignment).filter(|it| *it > 0)?;
        let whole = size.checked_add(alignment - page_size())?;
        let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE | MapFlags::NORESERVE);
        let wanted = usize::try_from(whole).ok()?;
        // SAFETY: a new mapping at a place of the kernel's choice.
        let place = unsafe { rustix::mm::mmap_anonymous(ptr::null_mut(), wanted, protection, flags) }.ok()?;
        // SAFETY: the mapping above. Large pages would be told as a whole; without the advice that is still true.
        let _ = unsafe { rustix::mm::madvise(place, wanted, Advice::LinuxNoHugepage) };
        let first = place.expose_provenance() as u64;
        let start = first.checked_next_multiple_of(alignment)?;
        Some(AlignedMapping { start, size, mapped: first..first + whole })
    }

    fn contains(&self, addresses: &Range<u64>) -> bool {
        self.start <= addresses.start && addresses.start <= addresses.end && addresses.end <= self.start + self.size
    }

    /// Gives these whole pages one common page of zeros: the system answers faster about pages that it has. They are
    /// still zeros if this fails.
    pub fn populate(&self, addresses: Range<u64>) {
        assert!(self.contains(&addresses), "only pages of the mapping are populated");
        let place = ptr::with_exposed_provenance_mut(addresses.start as usize);
        let size = (addresses.end - addresses.start) as usize;
        // SAFETY: pages of our own mapping, whose contents stay.
        let _ = unsafe { rustix::mm::madvise(place, size, Advice::LinuxPopulateRead) };
    }

    /// Gives these whole pages back: they are zeros again, and not protected.
    pub fn discard(&self, addresses: Range<u64>) {
        assert!(self.contains(&addresses), "only pages of the mapping are given back");
        let place = ptr::with_exposed_provenance_mut(addresses.start as usize);
        // SAFETY: pages of our own mapping; whoever had them uses them no more. Without the advice they would keep
        // their contents, so they are cleared then.
        unsafe {
            let size = (addresses.end - addresses.start) as usize;
            if rustix::mm::madvise(place, size, Advice::LinuxDontNeed).is_err() {
                ptr::write_bytes(place.cast::<u8>(), 0, size);
            }
        }
    }
}

impl Drop for AlignedMapping {
    fn drop(&mut self) {
        let place = ptr::with_exposed_provenance_mut(self.mapped.start as usize);
        // SAFETY: our own mapping, which no device has any more.
        let _ = unsafe { rustix::mm::munmap(place, (self.mapped.end - self.mapped.start) as usize) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(at: u64) {
        // SAFETY: memory of the test's own.
        unsafe { ptr::with_exposed_provenance_mut::<u8>(at as usize).write_volatile(1) };
    }

    #[test]
    fn memory_begins_where_it_is_wanted() {
        let own = AlignedMapping::new(100, 1 << 16).expect("there is room");
        assert!(own.start.is_multiple_of(1 << 16) && own.size == 1 << 16);
        assert!(own.mapped.start <= own.start && own.start + own.size <= own.mapped.end);
        assert!(AlignedMapping::new(0, 4096).is_none() && AlignedMapping::new(u64::MAX, 4096).is_none());
    }

    #[test]
    fn pages_that_were_given_back_are_zeros_and_are_watched_again() {
        let missing = "asynchronous userfaultfd is missing: it needs Linux 6.7, and a sandbox that allows the call";
        let tracker = PageTracker::get().expect(missing);
        let page = page_size();
        let own = AlignedMapping::new(8 * page, page).expect("there is room");
        assert!(tracker.watch(&own));
        let (part, all) = (own.start + 2 * page..own.start + 4 * page, own.start..own.start + own.size);
        write(part.start);
        own.discard(part.clone());
        // SAFETY: memory of the test's own.
        let byte = unsafe { ptr::with_exposed_provenance::<u8>(part.start as usize).read_volatile() };
        assert_eq!(byte, 0);
        assert!(tracker.protect(&own, part.clone()));
        let mut found = Vec::new();
        assert!(tracker.written(all.clone(), &mut found) && found.is_empty(), "{found:?}");
        write(part.start + page);
        assert!(tracker.written(all, &mut found));
        assert!(found.iter().cloned().eq(std::iter::once(part.start + page..part.end)));
    }

    #[test]
    fn pages_are_reported_once_however_many_they_are() {
        let missing = "asynchronous userfaultfd is missing: it needs Linux 6.7, and a sandbox that allows the call";
        let faults = PageTracker::get().expect(missing);
        let page = page_size();
        let own = AlignedMapping::new(2000 * page, page).expect("there is room");
        assert!(faults.watch(&own));
        // More runs than fit into one answer.
        (0..1000).for_each(|it| write(own.start + it * 2 * page + 5));
        let all = own.start..own.start + own.size;
        let mut found = Vec::new();
        assert!(faults.written(all.clone(), &mut found));
        let pages: u64 = found.iter().map(|it| (it.end - it.start) / page).sum();
        assert_eq!((found.len(), pages), (1000, 1000));
        found.clear();
        write(own.start);
        // A part only: the rest is reported later.
        write(own.start + 10 * page);
        assert!(faults.written(own.start + page..all.end, &mut found));
        assert!(found.iter().cloned().eq(std::iter::once(own.start + 10 * page..own.start + 11 * page)));
        found.clear();
        assert!(faults.written(all, &mut found));
        assert!(found.iter().cloned().eq(std::iter::once(own.start..own.start + page)));
    }
}
