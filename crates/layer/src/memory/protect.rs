//! Pages that were written, noticed as they are: pages of a mapping are made read-only, and a write to one faults, is
//! noted, and goes on.
//!
//! Only where somebody asks for it: a call of the system that writes to such a page, `read` for one, fails instead of
//! faulting. Faults that are not ours go to whoever had the signal before.

use std::cell::UnsafeCell;
use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::ops::Range;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::faults::page_size;

/// Mappings that can be guarded at once; others are compared.
const GUARDS_MAX: usize = 1024;
/// Handlers of others that came and went while guards were there.
const OTHERS_MAX: usize = 16;

/// A mapping as the handler finds it. It looks at those that have pages, at any moment.
struct Entry {
    /// Release after the other two, and zero before they change; pairs with Acquire in the handler.
    start: AtomicU64,
    end: AtomicU64,
    /// One bit for each page: whether it was written. They are used again, and never freed, since a handler may have them.
    bits: AtomicPtr<AtomicU64>,
}

static ENTRIES: [Entry; GUARDS_MAX] = [const { Entry::new() }; GUARDS_MAX];
/// Entries that were ever used. Relaxed: who faults on a page has learned of it later than the entry was made.
static USED: AtomicUsize = AtomicUsize::new(0);
static FREE: Mutex<Free> = Mutex::new(Free { entries: Vec::new(), bits: Vec::new() });

struct Free {
    entries: Vec<usize>,
    /// Bits that nobody uses, and how many words they are.
    bits: Vec<(usize, AtomicPtr<AtomicU64>)>,
}

impl Entry {
    const fn new() -> Entry {
        Entry { start: AtomicU64::new(0), end: AtomicU64::new(0), bits: AtomicPtr::new(ptr::null_mut()) }
    }
}

/// The pages of a mapping, for as long as it is one.
pub(super) struct Guard {
    entry: usize,
    /// Whole pages only: beside them may lie what is not ours.
    pages: Range<u64>,
    bits: &'static [AtomicU64],
}

impl Guard {
    /// Guards a mapping; none where that is not possible. All of it counts as written at first.
    pub(super) fn new(mapping: Range<u64>) -> Option<Guard> {
        let page = page_size();
        let pages = mapping.start.next_multiple_of(page)..mapping.end / page * page;
        if pages.is_empty() || !Handler::install() {
            return None;
        }
        let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = match free.entries.pop() {
            Some(it) => it,
            None => {
                let it = USED.load(Ordering::Relaxed);
                USED.store((it < GUARDS_MAX).then_some(it + 1)?, Ordering::Relaxed);
                it
            }
        };
        let bits = free.bits(((pages.end - pages.start) / page).div_ceil(64) as usize);
        drop(free);
        bits.iter().for_each(|it| it.store(u64::MAX, Ordering::Relaxed));
        ENTRIES[entry].end.store(pages.end, Ordering::Relaxed);
        ENTRIES[entry].bits.store(bits.as_ptr().cast_mut(), Ordering::Relaxed);
        ENTRIES[entry].start.store(pages.start, Ordering::Release);
        Some(Guard { entry, pages, bits })
    }

    /// The addresses that may have been written since somebody asked last; parts of pages at the ends always may.
    pub(super) fn written(&self, wanted: Range<u64>, found: &mut Vec<Range<u64>>) {
        // Whoever takes the signal without passing it on would take the faults as well.
        Handler::install();
        let page = page_size();
        let mut add = |it: Range<u64>| {
            if !it.is_empty() {
                found.push(it);
            }
        };
        add(wanted.start..wanted.end.min(self.pages.start));
        let first = (wanted.start.max(self.pages.start) - self.pages.start) / page;
        let end = wanted.end.clamp(self.pages.start, self.pages.end) - self.pages.start;
        let mut run: Option<u64> = None;
        for index in first..end.div_ceil(page) {
            let (word, bit) = (&self.bits[(index / 64) as usize], 1 << (index % 64));
            let is_written = word.load(Ordering::Acquire) & bit != 0;
            if is_written {
                word.fetch_and(!bit, Ordering::AcqRel);
            }
            let address = self.pages.start + index * page;
            match (is_written, run) {
                (true, None) => run = Some(address),
                (false, Some(start)) => {
                    add(self.protect(start..address));
                    run = None;
                }
                _ => {}
            }
        }
        if let Some(start) = run {
            add(self.protect(start..self.pages.start + end.div_ceil(page) * page));
        }
        add(wanted.start.max(self.pages.end)..wanted.end);
    }

    /// Writes fault again, before anybody looks at what is there.
    fn protect(&self, pages: Range<u64>) -> Range<u64> {
        if !change(&pages, libc::PROT_READ) {
            // Then they count as written for ever.
            let page = page_size();
            for at in (pages.start..pages.end).step_by(page as usize) {
                let index = (at - self.pages.start) / page;
                self.bits[(index / 64) as usize].fetch_or(1 << (index % 64), Ordering::AcqRel);
            }
        }
        pages
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        change(&self.pages, libc::PROT_READ | libc::PROT_WRITE);
        let Entry { start, bits, .. } = &ENTRIES[self.entry];
        start.store(0, Ordering::Release);
        let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
        free.bits.push((self.bits.len(), AtomicPtr::new(bits.load(Ordering::Relaxed))));
        free.entries.push(self.entry);
    }
}

impl Free {
    /// So many words, or more.
    fn bits(&mut self, words: usize) -> &'static [AtomicU64] {
        let is_fitting = |it: &(usize, AtomicPtr<AtomicU64>)| (words..=words * 2).contains(&it.0);
        match self.bits.iter().position(is_fitting).map(|it| self.bits.swap_remove(it)) {
            // SAFETY: made below, and never freed.
            Some((words, bits)) => unsafe { std::slice::from_raw_parts(bits.into_inner(), words) },
            None => Box::leak((0..words).map(|_| AtomicU64::new(0)).collect()),
        }
    }
}

/// Changes what may be done with pages. Also in the handler.
fn change(pages: &Range<u64>, protection: c_int) -> bool {
    let place = ptr::with_exposed_provenance_mut::<c_void>(pages.start as usize);
    // SAFETY: pages of a mapping that can be read and written; a write to one that cannot be goes on in the handler.
    unsafe { libc::mprotect(place, (pages.end - pages.start) as usize, protection) == 0 }
}

/// Notes a write to a page of ours, and lets it go on. For the handler.
fn note(address: u64, page: u64) -> bool {
    for entry in ENTRIES.iter().take(USED.load(Ordering::Relaxed)) {
        let start = entry.start.load(Ordering::Acquire);
        if start == 0 || !(start..entry.end.load(Ordering::Relaxed)).contains(&address) {
            continue;
        }
        let index = (address - start) / page;
        let bits = entry.bits.load(Ordering::Relaxed);
        // SAFETY: there are as many bits as pages, and they are never freed.
        unsafe { &*bits.add((index / 64) as usize) }.fetch_or(1 << (index % 64), Ordering::AcqRel);
        let first = start + index * page;
        return change(&(first..first + page), libc::PROT_READ | libc::PROT_WRITE);
    }
    false
}

/// Those who had the signal before us, the last of them first in turn.
struct Handler {
    others: [UnsafeCell<MaybeUninit<libc::sigaction>>; OTHERS_MAX],
    /// How many there are. Release after the last was written, under the lock; pairs with Acquire in the handler.
    count: AtomicUsize,
    lock: Mutex<()>,
    page: AtomicU64,
}

// SAFETY: what is counted never changes, and the rest is written under the lock.
unsafe impl Sync for Handler {}

static HANDLER: Handler = Handler {
    others: [const { UnsafeCell::new(MaybeUninit::uninit()) }; OTHERS_MAX],
    count: AtomicUsize::new(0),
    lock: Mutex::new(()),
    page: AtomicU64::new(4096),
};

type Action = extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void);

impl Handler {
    /// Makes sure that faults come to us. False where others want them too often.
    fn install() -> bool {
        let guard = HANDLER.lock.lock().unwrap_or_else(PoisonError::into_inner);
        HANDLER.page.store(page_size(), Ordering::Relaxed);
        Handler::install_under(&guard)
    }

    /// The same, in the handler: whoever has the lock is about to do it.
    fn install_again() {
        if let Ok(guard) = HANDLER.lock.try_lock() {
            Handler::install_under(&guard);
        }
    }

    fn install_under(_: &MutexGuard<'_, ()>) -> bool {
        let mut now = MaybeUninit::<libc::sigaction>::uninit();
        // SAFETY: the place for the answer is ours.
        if unsafe { libc::sigaction(libc::SIGSEGV, ptr::null(), now.as_mut_ptr()) } != 0 {
            return false;
        }
        // SAFETY: a call that succeeded has written it.
        if unsafe { now.assume_init_ref() }.sa_sigaction == fault as Action as usize {
            return true;
        }
        let count = HANDLER.count.load(Ordering::Relaxed);
        let Some(place) = HANDLER.others.get(count) else { return false };
        // SAFETY: nobody looks at it before it is counted, and the lock is ours.
        unsafe { place.get().write(now) };
        HANDLER.count.store(count + 1, Ordering::Release);
        // SAFETY: all bytes zero is a valid value of this plain structure.
        let mut action: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
        action.sa_sigaction = fault as Action as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        // SAFETY: a handler that does what handlers may do, and stays loaded: who captures keeps the library.
        unsafe { libc::sigaction(libc::SIGSEGV, &raw const action, ptr::null_mut()) == 0 }
    }
}

extern "C" fn fault(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the C library's own, of this thread.
    let error = unsafe { *libc::__errno_location() };
    // SAFETY: the system gives valid information.
    let address = unsafe { info.as_ref() }.filter(|it| it.si_code > 0).map_or(0, |it| unsafe { it.si_addr() }.addr());
    if !note(address as u64, HANDLER.page.load(Ordering::Relaxed)) {
        pass_on(signal, info, context);
    }
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = error };
}

/// A fault that is not ours.
fn pass_on(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let count = HANDLER.count.load(Ordering::Acquire);
    let Some(place) = count.checked_sub(1).and_then(|it| HANDLER.others.get(it)) else { return };
    // SAFETY: what is counted was written, and never changes.
    let before = unsafe { (*place.get()).assume_init_ref() };
    match before.sa_sigaction {
        libc::SIG_DFL | libc::SIG_IGN => {
            // The instruction fails again when we return; what somebody sent must be sent again.
            // SAFETY: allowed in a handler; the action was there before.
            unsafe {
                libc::sigaction(signal, before, ptr::null_mut());
                if info.as_ref().is_none_or(|it| it.si_code <= 0) {
                    libc::raise(signal);
                }
            }
        }
        // One of the two forms; the first takes fewer parameters and ignores the others.
        function => {
            // SAFETY: the address of a handler, which somebody gave to the system to be called like this.
            let function = unsafe { std::mem::transmute::<usize, Action>(function) };
            function(signal, info, context);
            // It may have said who comes next; then it is their turn when the instruction fails again.
            Handler::install_again();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::faults::Own;
    use super::*;

    fn write(at: u64) {
        // SAFETY: memory of the test's own.
        unsafe { ptr::with_exposed_provenance_mut::<u8>(at as usize).write_volatile(1) };
    }

    #[test]
    fn written_pages_are_told_and_parts_of_pages_always() {
        let page = page_size();
        let own = Own::new(200 * page, page).expect("there is room");
        // From the middle of a page to the middle of another.
        let mapping = own.start + 100..own.start + 199 * page + 50;
        let guard = Guard::new(mapping.clone()).expect("there is room");
        let ask = |wanted: Range<u64>| {
            let mut found = Vec::new();
            guard.written(wanted, &mut found);
            let offset = |it: u64| it - own.start;
            found.into_iter().map(|it| (offset(it.start), offset(it.end))).collect::<Vec<_>>()
        };
        let [head, tail] = [(100, page), (199 * page, 199 * page + 50)];
        assert_eq!(ask(mapping.clone()), [head, (page, 199 * page), tail], "all of it at first");
        assert_eq!(ask(mapping.clone()), [head, tail]);
        write(own.start + 7 * page + 3);
        write(own.start + 8 * page);
        write(own.start + 150 * page);
        std::thread::scope(|scope| _ = scope.spawn(|| write(own.start + 151 * page + 9)));
        assert_eq!(ask(own.start + 8 * page + 10..own.start + 9 * page), [(8 * page, 9 * page)]);
        assert_eq!(ask(mapping.clone()), [head, (7 * page, 8 * page), (150 * page, 152 * page), tail]);
        assert_eq!(ask(mapping.clone()), [head, tail]);
        drop(guard);
        write(own.start + 20 * page);
        assert!(Guard::new(own.start + 1..own.start + page).is_none(), "no whole page");
    }
}
