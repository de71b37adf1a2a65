//! Written pages, tracked by faults: pages of a mapping are made read-only, and a write to one faults, is noted, and
//! continues.
//!
//! A system call that writes to such a page, for example `read`, fails instead of faulting. Faults that are not ours go
//! to the previous handler of the signal (`fault_signal`).
//!
//! The handler runs at any moment, between any two instructions of any thread, and takes no lock. Three rules make what
//! it reads sound:
//!
//! - An entry is one pointer to a [`GuardedMapping`], which never changes while it can be reached but for its bits. The handler
//!   never combines parts of two guards.
//! - A `GuardedMapping` that left its entry is freed only at a moment at which no handler runs ([`FreeEntries::reclaim`]).
//! - If there is no entry for a page, the fault may have happened before its guard was dropped. The page is writable by
//!   now, and the instruction is tried again ([`take_retry`]).

use std::ops::Range;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use rustix::mm::MprotectFlags;

use super::fault_signal;
use crate::pages::page_size;

/// Mappings that can be guarded at once; others are compared.
const GUARDS_MAX: usize = 1024;
/// Threads share these by their numbers, so that two of them seldom share one.
const RETRIES_MAX: usize = 64;

/// The guarded mappings, null for free entries. The handler reads those that were ever used.
///
/// `SeqCst`, with [`HANDLERS_BEGUN`] and [`HANDLERS_DONE`]: [`FreeEntries::reclaim`] needs one order of all three.
static ENTRIES: [AtomicPtr<GuardedMapping>; GUARDS_MAX] = [const { AtomicPtr::new(ptr::null_mut()) }; GUARDS_MAX];
/// Entries that were ever used. Release before a mapping is in the entry; pairs with Acquire in the handler.
static USED: AtomicUsize = AtomicUsize::new(0);
static FREE: Mutex<FreeEntries> = Mutex::new(FreeEntries { entries: Vec::new(), retired: Vec::new() });

/// The number of handlers that began to read entries, and of those that are done: what they found, and what they made
/// writable.
static HANDLERS_BEGUN: AtomicU64 = AtomicU64::new(0);
static HANDLERS_DONE: AtomicU64 = AtomicU64::new(0);

/// Guards that were dropped. It counts one before its entry is empty, and after its pages are writable.
static GUARDS_DROPPED: AtomicU64 = AtomicU64::new(0);
/// The last retry: page, thread and the drops until then, as one number.
static RETRIES: [AtomicU64; RETRIES_MAX] = [const { AtomicU64::new(0) }; RETRIES_MAX];

/// A mapping as the handler finds it.
struct GuardedMapping {
    /// Whole pages only: other data may be beside them.
    pages: Range<u64>,
    page: u64,
    /// One for each page: whether it was written.
    bits: Box<[AtomicU64]>,
}

struct FreeEntries {
    entries: Vec<usize>,
    /// In no entry any more; a handler that began before may still have them.
    retired: Vec<RetiredMapping>,
}

struct RetiredMapping(NonNull<GuardedMapping>);

// SAFETY: all that a `GuardedMapping` has may be used on every thread.
unsafe impl Send for RetiredMapping {}

/// The pages of a mapping, for the lifetime of the mapping.
pub struct WriteGuard {
    entry: usize,
    /// Valid until the guard is dropped: only then it is retired.
    guarded: NonNull<GuardedMapping>,
}

// SAFETY: all that a `GuardedMapping` has may be used on every thread.
unsafe impl Send for WriteGuard {}
// SAFETY: as for `Send`; what changes in it are atomics.
unsafe impl Sync for WriteGuard {}

impl WriteGuard {
    /// Guards a mapping; none if that is not possible. All of it counts as written at first.
    pub fn new(mapping: Range<u64>) -> Option<WriteGuard> {
        let page = page_size();
        let pages = mapping.start.next_multiple_of(page)..mapping.end / page * page;
        if pages.is_empty() || !fault_signal::install() {
            return None;
        }
        let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
        free.reclaim();
        let entry = match free.entries.pop() {
            Some(item) => item,
            None => {
                let value = USED.load(Ordering::Relaxed);
                USED.store((value < GUARDS_MAX).then_some(value + 1)?, Ordering::Release);
                value
            }
        };
        drop(free);
        let words = ((pages.end - pages.start) / page).div_ceil(64);
        let bits = (0..words).map(|_| AtomicU64::new(u64::MAX)).collect();
        let watched = NonNull::from(Box::leak(Box::new(GuardedMapping { pages, page, bits })));
        ENTRIES[entry].store(watched.as_ptr(), Ordering::SeqCst);
        Some(WriteGuard { entry, guarded: watched })
    }

    fn guarded(&self) -> &GuardedMapping {
        // SAFETY: made in `new`, and freed at the earliest when this guard is dropped.
        unsafe { self.guarded.as_ref() }
    }

    /// Adds the addresses that may have been written since the last call; parts of pages at the ends always may. A page
    /// that is written during the call may be reported again.
    pub fn written(&self, wanted: Range<u64>, found: &mut Vec<Range<u64>>) {
        // A handler that does not pass the signal on would take these faults as well.
        fault_signal::install();
        let GuardedMapping { pages, page, bits } = self.guarded();
        let mut add = |range: Range<u64>| {
            if !range.is_empty() {
                found.push(range);
            }
        };
        add(wanted.start..wanted.end.min(pages.start));
        let first = (wanted.start.max(pages.start) - pages.start) / page;
        let end = (wanted.end.clamp(pages.start, pages.end) - pages.start).div_ceil(*page);
        let mut run: Option<(u64, u64)> = None;
        for index in first..end {
            let (word, bit) = (&bits[(index / 64) as usize], 1 << (index % 64));
            let is_written = word.load(Ordering::Acquire) & bit != 0;
            let address = pages.start + index * page;
            if is_written {
                // Before the first bit is taken.
                run = run.or_else(|| Some((address, HANDLERS_DONE.load(Ordering::SeqCst))));
                word.fetch_and(!bit, Ordering::SeqCst);
            } else if let Some((start, done)) = run.take() {
                add(self.protect_run(start..address, done));
            }
        }
        if let Some((start, done)) = run {
            add(self.protect_run(start..pages.start + end * page, done));
        }
        add(wanted.start.max(pages.end)..wanted.end);
    }

    /// Writes fault again, before the contents are read. `done` is the number of handlers before the bits of the pages
    /// were taken.
    fn protect_run(&self, pages: Range<u64>, done: u64) -> Range<u64> {
        let watched = self.guarded();
        let is_protected = protect_pages(&pages, MprotectFlags::READ);
        // A handler that set a bit before it was taken, and makes the page writable after it was protected, leaves a
        // page that does not fault; so does one that found an earlier guard of the page. It began before now, and was
        // not done then, so the two counts differ: such pages count as written for one time more. So do pages that
        // cannot be protected, for ever.
        if !is_protected || HANDLERS_BEGUN.load(Ordering::SeqCst) != done {
            watched.set_written(&pages);
        }
        pages
    }
}

impl Drop for WriteGuard {
    fn drop(&mut self) {
        protect_pages(&self.guarded().pages, MprotectFlags::READ | MprotectFlags::WRITE);
        // In this order: who finds no entry learns of the drop, and that the pages are writable.
        GUARDS_DROPPED.fetch_add(1, Ordering::SeqCst);
        ENTRIES[self.entry].store(ptr::null_mut(), Ordering::SeqCst);
        let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
        free.entries.push(self.entry);
        free.retired.push(RetiredMapping(self.guarded));
        free.reclaim();
    }
}

impl FreeEntries {
    /// Frees what no handler can have any more.
    ///
    /// All retired pages left their entries before. If no handler runs at the moment of the second load, then earlier
    /// handlers are done with what they found, and later ones find the current entries. The first count cannot be above
    /// the second; if they are equal, every handler that began was done by then.
    fn reclaim(&mut self) {
        let done = HANDLERS_DONE.load(Ordering::SeqCst);
        if HANDLERS_BEGUN.load(Ordering::SeqCst) != done {
            // A signal handler that jumps out of ours leaves this state. Then the retired pages stay.
            return;
        }
        for RetiredMapping(watched) in self.retired.drain(..) {
            // SAFETY: a box of `WriteGuard::new`, whose guard was dropped; no handler has it, as said above.
            drop(unsafe { Box::from_raw(watched.as_ptr()) });
        }
    }
}

impl GuardedMapping {
    /// From now on these pages count as written.
    fn set_written(&self, pages: &Range<u64>) {
        for index in (pages.start - self.pages.start) / self.page..(pages.end - self.pages.start) / self.page {
            self.bits[(index / 64) as usize].fetch_or(1 << (index % 64), Ordering::SeqCst);
        }
    }

    /// Notes a write to a page, and makes the page writable. For the handler.
    fn make_writable(&self, address: u64) -> bool {
        let first = self.pages.start + (address - self.pages.start) / self.page * self.page;
        let page = first..first + self.page;
        let both = MprotectFlags::READ | MprotectFlags::WRITE;
        // Before anybody can write to it.
        self.set_written(&page);
        // Each change in the middle of a mapping makes two more of it, and their number is limited: then all of it is
        // writable, which makes them one again.
        protect_pages(&page, both) || {
            self.set_written(&self.pages);
            protect_pages(&self.pages, both)
        }
    }
}

/// Changes what may be done with pages. Also in the handler.
fn protect_pages(pages: &Range<u64>, protection: MprotectFlags) -> bool {
    let place = ptr::with_exposed_provenance_mut(pages.start as usize);
    // SAFETY: pages of a mapping that its owner may read and write. `WriteGuard::new` got them from there, and while they
    // are read-only a write to them goes on in the handler.
    unsafe { rustix::mm::mprotect(place, (pages.end - pages.start) as usize, protection).is_ok() }
}

/// Whether a fault on an address is one of ours, and its instruction can be tried again. For the handler; a fault of a
/// missing mapping is never ours.
pub(super) fn handle_fault(address: u64) -> bool {
    HANDLERS_BEGUN.fetch_add(1, Ordering::SeqCst);
    let mut is_resolved = false;
    for entry in ENTRIES.iter().take(USED.load(Ordering::Acquire)) {
        // SAFETY: null, or what `WriteGuard::new` made. It is not freed while this handler is counted as begun and not
        // as done, see `FreeEntries::reclaim`.
        let watched = unsafe { entry.load(Ordering::SeqCst).as_ref() };
        if let Some(watched) = watched.filter(|it| it.pages.contains(&address)) {
            is_resolved |= watched.make_writable(address);
        }
    }
    HANDLERS_DONE.fetch_add(1, Ordering::SeqCst);
    is_resolved || take_retry(address)
}

/// Whether an instruction is tried again that wrote to a page of no guard: a guard that was dropped since then has made
/// the page writable.
///
/// Each thread tries an address once for each count of drops. If the instruction fails again, and no guard was dropped
/// meanwhile, then no guard is the reason, and the fault goes to the previous handler. A fault that is not ours occurs
/// once more than without us; without dropped guards not even that.
fn take_retry(address: u64) -> bool {
    let drops = GUARDS_DROPPED.load(Ordering::SeqCst);
    // SAFETY: a system call that reads and writes no memory of this process.
    let thread = unsafe { libc::gettid() } as u64;
    let key = mixed(mixed(mixed(address) ^ thread) ^ drops);
    drops != 0 && RETRIES[thread as usize % RETRIES_MAX].swap(key, Ordering::SeqCst) != key
}

/// A number that differs in about half of its bits where one bit of `word` differs, and is zero only for zero.
fn mixed(word: u64) -> u64 {
    let word = (word ^ word >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    word ^ word >> 29
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::AlignedMapping;

    fn write(at: u64) {
        // SAFETY: memory of the test's own.
        unsafe { ptr::with_exposed_provenance_mut::<u8>(at as usize).write_volatile(1) };
    }

    /// While others fault, pages may be reported once more than they were written.
    static SERIAL: Mutex<()> = Mutex::new(());

    #[test]
    fn written_pages_are_reported_and_parts_of_pages_always() {
        let _alone = SERIAL.lock().unwrap_or_else(PoisonError::into_inner);
        let page = page_size();
        let own = AlignedMapping::new(200 * page, page).expect("there is room");
        // From the middle of a page to the middle of another.
        let mapping = own.start + 100..own.start + 199 * page + 50;
        let guard = WriteGuard::new(mapping.clone()).expect("there is room");
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
        assert!(WriteGuard::new(own.start + 1..own.start + page).is_none(), "no whole page");
    }

    /// How long the threads of the test below run; `LAVASCOPE_STRESS_MS` runs them for longer or shorter.
    const STRESS_MS: u64 = 1000;
    const REGIONS: usize = 4;
    const REGION_PAGES: u64 = 600;

    /// Pages that one thread guards and others write to.
    struct Region {
        memory: AlignedMapping,
        /// Writers hold it for a write, and the owner while no write may happen.
        turn: std::sync::RwLock<()>,
    }

    impl Region {
        fn word(&self, page: u64) -> &AtomicU64 {
            let at = self.memory.start + page * page_size();
            // SAFETY: the first word of a page of the region, which lives as long as `self`; everybody uses it as an
            // atomic.
            unsafe { &*ptr::with_exposed_provenance::<AtomicU64>(at as usize) }
        }
    }

    /// A small generator: which pages and sizes come next.
    fn random(state: &mut u64, below: u64) -> u64 {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*state >> 33) % below
    }

    /// Makes and drops guards of a region, and compares what they report with what changed.
    fn guard_region(region: &Region, seed: u64, is_over: &std::sync::atomic::AtomicBool) -> u64 {
        let (mut state, mut guards, page) = (seed, 0, page_size());
        while !is_over.load(Ordering::Relaxed) {
            let size = match random(&mut state, 4) {
                0 => REGION_PAGES,
                1 => 1 + random(&mut state, 300),
                _ => 1 + random(&mut state, 63),
            };
            let first = random(&mut state, REGION_PAGES - size + 1);
            let addresses = region.memory.start + first * page..region.memory.start + (first + size) * page;
            let guard = WriteGuard::new(addresses.clone()).expect("there are entries");
            let mut known: Vec<Option<u64>> = vec![None; size as usize];
            let look = |known: &mut Vec<Option<u64>>| {
                let mut found = Vec::new();
                guard.written(addresses.clone(), &mut found);
                for at in found.into_iter().flat_map(|it| it.step_by(page as usize)) {
                    let index = (at - addresses.start) / page;
                    known[index as usize] = Some(region.word(first + index).load(Ordering::Relaxed));
                }
            };
            for _ in 0..random(&mut state, 4) {
                // Others write meanwhile.
                look(&mut known);
            }
            let turn = region.turn.write().unwrap_or_else(PoisonError::into_inner);
            look(&mut known);
            for (index, word) in known.iter().enumerate() {
                let now = region.word(first + index as u64).load(Ordering::Relaxed);
                assert_eq!(*word, Some(now), "page {index} of {size} was written, and nobody reported it");
            }
            drop(turn);
            if random(&mut state, 2) == 0 {
                std::thread::yield_now();
            }
            drop(guard);
            guards += 1;
        }
        guards
    }

    fn write_pages(regions: &[Region], seed: u64, is_over: &std::sync::atomic::AtomicBool) {
        let mut state = seed;
        while !is_over.load(Ordering::Relaxed) {
            let region = &regions[random(&mut state, REGIONS as u64) as usize];
            let _turn = region.turn.read().unwrap_or_else(PoisonError::into_inner);
            for _ in 0..8 {
                region.word(random(&mut state, REGION_PAGES)).fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    #[test]
    fn guards_come_and_go_while_many_threads_write() {
        let _alone = SERIAL.lock().unwrap_or_else(PoisonError::into_inner);
        let variable = std::env::var("LAVASCOPE_STRESS_MS").ok().and_then(|it| it.parse().ok());
        let time = std::time::Duration::from_millis(variable.unwrap_or(STRESS_MS));
        let seed = std::time::SystemTime::UNIX_EPOCH.elapsed().map_or(1, |it| it.as_nanos() as u64);
        let region = || Region {
            memory: AlignedMapping::new(REGION_PAGES * page_size(), page_size()).expect("there is room"),
            turn: std::sync::RwLock::new(()),
        };
        let regions: Vec<Region> = (0..REGIONS).map(|_| region()).collect();
        let is_over = std::sync::atomic::AtomicBool::new(false);
        let guards: u64 = std::thread::scope(|scope| {
            let owners: Vec<_> = regions
                .iter()
                .enumerate()
                .map(|(at, item)| {
                    scope.spawn({
                        let is_over = &is_over;
                        move || guard_region(item, seed ^ at as u64, is_over)
                    })
                })
                .collect();
            for at in 0..4 {
                let (regions, is_over) = (&regions[..], &is_over);
                scope.spawn(move || write_pages(regions, seed ^ 0x9e37 ^ at << 20, is_over));
            }
            std::thread::sleep(time);
            is_over.store(true, Ordering::Relaxed);
            owners.into_iter().map(|it| it.join().expect("no page was lost")).sum()
        });
        assert!(guards > 10, "{guards} guards, seed {seed}");
    }
}
