//! A copy of mapped memory that the application gets in the place of the driver's mapping.
//!
//! Reading memory of a device over the bus is slow, and the system does not report writes to it. So the application
//! gets memory of ours, whose written pages the system reports. Before a call that lets the device read, changed bytes
//! are copied into the driver's mapping. When the application may know that the device has written, the bytes that the
//! device may have written are copied back. A clean copy has what both had last: a byte that differs from it was
//! written by the host, if the application's copy has it, or by the device, if the driver's mapping has it. Only such
//! bytes are copied, because the other side may be writing those beside them.
//!
//! The driver's mapping is whole, and stays until the memory is freed. Bytes that the device cannot have written are
//! zeros at first, on both sides.
//!
//! Absent on purpose: programs that watch mapped memory for writes of a device without any call of Vulkan. They need
//! another method.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use lavascope_abi::*;
use lavascope_platform::device_memory;

use super::arena::{ArenaBlock, PageArena};
use super::device_progress::{Completion, ProgressPoint};
use super::device_writes::{WritableBytes, merged};
use super::shadow::{SEGMENT_BYTES, Shadow};
use super::write_detection::WriteDetection;
use super::{HostVisibleMemories, MappedWriteSink, MappingState, RecordedContents, WatchedMemory, WriteScratch, lock};
use crate::loader::pnext_chain::chain_types;
use crate::process::process_state::PROCESS_STATE;

/// The copy of one memory.
pub(super) struct MappedCopy {
    block: ArenaBlock,
    /// Where the driver mapped the first byte.
    driver: u64,
    clean: Shadow,
    /// Whether the application has it mapped.
    is_mapped: bool,
}

/// What a memory needs to have a copy.
#[derive(Default)]
pub(super) struct CopyState {
    /// Whether it may have one.
    is_wanted: bool,
    pub(super) copy: Option<MappedCopy>,
    pub(super) writable: WritableBytes,
    /// The submissions whose results were read.
    settled_at: u64,
    /// Whether the host wrote to the driver's mapping itself.
    is_written_elsewhere: bool,
    /// Whether the trace has what the device writes.
    has_results: bool,
    /// What the host wrote before a call that was not recorded, or that is recorded without host writes. The record
    /// comes before the next call that has some.
    unrecorded: PendingBytes,
    /// None if the system does not report what the driver writes.
    pub(super) driver_pages: Option<DriverPages>,
}

/// What a driver that runs on the processor wrote into memory of ours, as the system reports it.
pub(super) struct DriverPages {
    /// Where the driver has the first byte.
    pub(super) start: u64,
    /// Not read yet.
    written: PendingBytes,
}

impl DriverPages {
    /// Of new memory, which is zeros.
    pub(super) fn new(start: u64) -> DriverPages {
        DriverPages { start, written: PendingBytes::default() }
    }
}

/// Bytes that wait for something.
#[derive(Default)]
struct PendingBytes(Vec<Range<u64>>);

/// Number of ranges from which on they are merged: nobody may ever take them.
const PENDING_MAX: usize = 256;

impl PendingBytes {
    fn add(&mut self, bytes: Range<u64>) {
        self.0.push(bytes);
        if self.0.len() > PENDING_MAX && self.0.len().is_power_of_two() {
            self.0 = merged(std::mem::take(&mut self.0));
        }
    }

    /// Takes all ranges: in their order, and apart.
    fn take(&mut self) -> Vec<Range<u64>> {
        merged(std::mem::take(&mut self.0))
    }
}

/// Whether what was noticed before is visited as well.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TakesNoticed {
    Yes,
    No,
}

/// Bytes of a memory that were written when the host waited, and that are not recorded yet.
pub(super) struct NoticedBytes {
    pub(super) memory: Arc<WatchedMemory>,
    pub(super) bytes: Range<u64>,
}

/// Who hears of host writes.
pub(super) enum WriteTarget<'a, 'b> {
    Recorded(&'a mut MappedWriteSink<'b>),
    Unrecorded(&'a mut WriteScratch),
}

impl WriteTarget<'_, '_> {
    pub(super) fn scratch(&mut self) -> &mut WriteScratch {
        match self {
            WriteTarget::Recorded(sink) => sink.scratch,
            WriteTarget::Unrecorded(scratch) => scratch,
        }
    }
}

impl CopyState {
    /// For new memory, after so many submissions.
    pub(super) fn new(is_wanted: bool, has_results: bool, submissions: u64) -> CopyState {
        CopyState { is_wanted, has_results, settled_at: submissions, ..CopyState::default() }
    }
}

impl MappedCopy {
    pub(super) fn has(&self, host: u64) -> bool {
        (self.block.start..self.block.start + self.block.size).contains(&host)
    }
}

/// Whether an allocation may have a copy: the memory is of this process and device alone.
///
/// # Safety
///
/// The info must be that of a valid `vkAllocateMemory`.
pub(super) unsafe fn is_copyable(info: &MemoryAllocateInfo) -> bool {
    // SAFETY: VUID-VkMemoryAllocateInfo-pNext-pNext, by the contract of this function: a valid chain.
    unsafe { chain_types(info.p_next) }.into_iter().all(|(ty, at)| match ty {
        StructureType::MEMORY_PRIORITY_ALLOCATE_INFO_EXT
        | StructureType::MEMORY_DEDICATED_ALLOCATE_INFO
        | StructureType::MEMORY_OPAQUE_CAPTURE_ADDRESS_ALLOCATE_INFO => true,
        StructureType::MEMORY_ALLOCATE_FLAGS_INFO => {
            // SAFETY: in a valid chain a structure that says that it is a `VkMemoryAllocateFlagsInfo` is one.
            let flags = unsafe { (*at.cast::<MemoryAllocateFlagsInfo>().as_ptr()).flags.0 };
            flags & MemoryAllocateFlags::DEVICE_MASK.0 == 0
        }
        StructureType::EXPORT_MEMORY_ALLOCATE_INFO => {
            // SAFETY: in a valid chain a structure that says that it is a `VkExportMemoryAllocateInfo` is one.
            let types = unsafe { (*at.cast::<ExportMemoryAllocateInfo>().as_ptr()).handle_types.0 };
            types == 0
        }
        // Imported from elsewhere, or not known to us.
        _ => false,
    })
}

impl WatchedMemory {
    /// Whether it may have a copy, and has none.
    pub(super) fn wants_copy(&self) -> bool {
        let state = lock(&self.state);
        state.copies.is_wanted && state.copies.copy.is_none()
    }

    /// The driver maps it, and the host writes to that mapping: there is no copy from now on.
    pub(super) fn refuse_copy(&self) {
        lock(&self.state).copies.is_wanted = false;
    }

    /// Takes the driver's mapping, which is whole. False if there is no room, or if it cannot be watched.
    pub(super) fn begin_copy(&self, arena: &Arc<PageArena>, driver: u64, point: ProgressPoint) -> bool {
        let Some(block) = arena.allocate(self.size, 1) else { return false };
        let mut state = lock(&self.state);
        let copies = &mut state.copies;
        if copies.is_written_elsewhere {
            copies.writable.add_former(0..self.size);
        }
        let is_new = copies.settled_at == point.submissions && !copies.is_written_elsewhere;
        let written = match &mut copies.driver_pages {
            Some(pages) if pages.start == driver => pages.written.take(),
            // The driver has it elsewhere.
            other => {
                *other = None;
                let written = if is_new { Vec::new() } else { copies.writable.ranges().to_vec() };
                let mut at = 0;
                for range in written.iter().cloned().chain(std::iter::once(self.size..self.size)) {
                    // SAFETY: the driver mapped the whole memory, and nobody uses these bytes: the application has no
                    // mapping, and the device does not write there.
                    unsafe { device_memory::clear(driver + at, (range.start - at) as usize) };
                    at = range.end;
                }
                written
            }
        };
        let mut copy = MappedCopy { block, driver, clean: Shadow::default(), is_mapped: false };
        let mut scratch = WriteScratch::default();
        written.into_iter().for_each(|it| copy.read_back(it, self.size, &mut scratch));
        copies.settle(point);
        copies.is_written_elsewhere = false;
        // After the device's bytes: they are no host writes.
        let is_watched = arena.watch(&copy.block);
        copies.copy = is_watched.then_some(copy);
        is_watched
    }

    /// The application maps the memory from a byte on. Returns the address; none if there is no copy.
    pub(super) fn map_copy(&self, offset: u64, point: ProgressPoint) -> Option<u64> {
        let mut state = lock(&self.state);
        state.copies.read_back(self.size, point);
        let copy = state.copies.copy.as_mut()?;
        copy.is_mapped = true;
        copy.block.start.checked_add(offset)
    }

    /// The application has unmapped the memory. False if there is no copy.
    pub(super) fn unmap_copy(&self) -> bool {
        let mut state = lock(&self.state);
        let Some(copy) = state.copies.copy.as_mut() else { return false };
        copy.is_mapped = false;
        true
    }

    /// The memory is mapped in another way from now on. False if it had no copy.
    pub(super) fn end_copy(&self) -> bool {
        let mut state = lock(&self.state);
        state.copies.is_written_elsewhere = true;
        state.copies.copy.take().is_some()
    }

    /// Where the first byte is, if the memory is one of the arena.
    pub(super) fn arena_start(&self) -> Option<u64> {
        let state = lock(&self.state);
        let is_tracked = matches!(state.detection, WriteDetection::PageTracking);
        let mapped = || state.mapped.as_ref().filter(|_| is_tracked).map(|it| it.host - it.bytes.start);
        state.copies.copy.as_ref().map(|it| it.block.start).or_else(mapped)
    }

    /// The system reports that the driver has written to these bytes.
    pub(super) fn add_device_pages(&self, bytes: Range<u64>) {
        lock(&self.state).copies.driver_pages.iter_mut().for_each(|it| it.written.add(bytes.clone()));
    }

    /// Whether it has a copy, and the device may have written what was not read back.
    pub(super) fn has_unread_copy(&self) -> bool {
        let CopyState { copy, driver_pages, writable, .. } = &mut lock(&self.state).copies;
        let is_written = match driver_pages {
            Some(pages) => !pages.written.0.is_empty(),
            None => !writable.ranges().is_empty(),
        };
        copy.is_some() && is_written
    }

    /// The device may have written to it, and the application may know.
    pub(super) fn read_back_if_mapped(&self, point: ProgressPoint) {
        let mut state = lock(&self.state);
        if state.copies.copy.as_ref().is_some_and(|it| it.is_mapped) {
            state.copies.read_back(self.size, point);
        }
    }

    /// Records which of these bytes the host has written. False if nobody needs to look at them again.
    fn notice_written(&self, bytes: Range<u64>, target: &mut WriteTarget<'_, '_>) -> bool {
        let state = lock(&self.state);
        let WriteTarget::Recorded(sink) = target else { return true };
        let (first, part, known) = match (&state.copies.copy, &state.mapped) {
            (Some(copy), _) if PROCESS_STATE.is_capturing() => {
                (copy.block.start, bytes.start..bytes.end.min(self.size), &copy.clean)
            }
            (None, Some(mapped)) if self.is_coherent && self.is_tracked(&state) => {
                let part = bytes.start.max(mapped.bytes.start)..bytes.end.min(mapped.bytes.end);
                (mapped.host - mapped.bytes.start, part, &state.shadow)
            }
            _ => return true,
        };
        let mut is_changed = false;
        for segment in segments(part) {
            let WriteScratch { current, bits, .. } = &mut *sink.scratch;
            // SAFETY: mapped, or memory of ours, until a thread takes the lock to change that. The application may write
            // meanwhile, and the bytes are then the old or the new.
            unsafe { read_into(first, &segment, current) };
            if known.compare(segment.start, current, bits) {
                is_changed = true;
                sink.record_changes(self.id, segment.start, RecordedContents::Places);
            }
        }
        is_changed
    }

    /// Copies what the host has written among these bytes, and records it.
    pub(super) fn upload(&self, state: &mut MappingState, part: Range<u64>, target: &mut WriteTarget<'_, '_>) {
        let MappingState { copies, shadow, .. } = state;
        let CopyState { copy: Some(copy), writable, has_results, unrecorded, .. } = copies else { return };
        for segment in segments(part.start..part.end.min(self.size)) {
            let WriteScratch { current, changed, exact, .. } = target.scratch();
            // SAFETY: memory of ours. The application may write meanwhile, and the bytes are then the old or the new.
            unsafe { read_into(copy.block.start, &segment, current) };
            changed.clear();
            exact.clear();
            copy.clean.update_exactly(segment.start, current, changed, Some(&mut *exact));
            for run in exact.iter() {
                // SAFETY: the driver mapped the whole memory until it is freed; the bytes are the host's.
                unsafe { device_memory::write(copy.driver + segment.start + run.start as u64, &current[run.clone()]) };
            }
            let WriteScratch { changed, exact, .. } = target.scratch();
            let inside = |at: u64| (at - segment.start) as usize;
            let parts = writable.split(segment.clone());
            let parts = parts.map(|(part, is_writable)| (inside(part.start)..inside(part.end), is_writable));
            choose_runs(changed, exact, parts);
            if let WriteTarget::Unrecorded(scratch) = target {
                let bytes = |it: &Range<usize>| segment.start + it.start as u64..segment.start + it.end as u64;
                let is_recorded_later = PROCESS_STATE.is_capturing();
                scratch.changed.iter().filter(|_| is_recorded_later).for_each(|it| unrecorded.add(bytes(it)));
            }
            let WriteTarget::Recorded(sink) = target else { continue };
            let WriteScratch { current, changed, .. } = &mut *sink.scratch;
            if *has_results {
                changed.iter().for_each(|it| shadow.set(segment.start + it.start as u64, &current[it.clone()]));
            }
            if !changed.is_empty() && PROCESS_STATE.is_capturing() {
                sink.record_changes(self.id, segment.start, RecordedContents::Bytes);
            }
        }
    }
}

impl CopyState {
    /// Reads what the device may have written since its results were read.
    fn read_back(&mut self, memory_size: u64, point: ProgressPoint) {
        if self.settled_at == point.submissions {
            return;
        }
        if let Some(copy) = &mut self.copy {
            let mut scratch = WriteScratch::default();
            let ranges = match &mut self.driver_pages {
                Some(pages) => pages.written.take(),
                None => self.writable.ranges().to_vec(),
            };
            ranges.into_iter().for_each(|it| copy.read_back(it, memory_size, &mut scratch));
        }
        self.settle(point);
    }

    fn settle(&mut self, point: ProgressPoint) {
        if point.is_idle {
            self.settled_at = point.submissions;
            self.writable.forget_former();
        }
    }
}

impl MappedCopy {
    fn read_back(&mut self, range: Range<u64>, memory_size: u64, scratch: &mut WriteScratch) {
        // Whole lines of the processor, which are read together.
        let lines = range.start / LINE * LINE..range.end.next_multiple_of(LINE).min(memory_size);
        for segment in segments(lines) {
            let WriteScratch { current, changed, exact, .. } = &mut *scratch;
            // SAFETY: the driver mapped the whole memory until it is freed.
            unsafe { read_into(self.driver, &segment, current) };
            changed.clear();
            exact.clear();
            self.clean.update_exactly(segment.start, current, changed, Some(&mut *exact));
            for run in exact.iter() {
                let to = self.block.start + segment.start + run.start as u64;
                // SAFETY: memory of ours, as large as the driver's. The device wrote these bytes and the application
                // knows it, so that it does not write them meanwhile.
                unsafe { device_memory::write(to, &current[run.clone()]) };
            }
        }
    }
}

impl WatchedMemory {
    /// Records what the device had of the host before calls that were not recorded with it.
    fn record_late(&self, sink: &mut MappedWriteSink<'_>) {
        let mut state = lock(&self.state);
        let MappingState { copies, shadow, .. } = &mut *state;
        let CopyState { copy: Some(copy), unrecorded, has_results, .. } = copies else { return };
        for segment in unrecorded.take().into_iter().flat_map(segments) {
            let WriteScratch { current, changed, .. } = &mut *sink.scratch;
            // SAFETY: memory of ours. The application may write meanwhile, and the bytes are then the old or the new.
            unsafe { read_into(copy.block.start, &segment, current) };
            changed.clear();
            changed.push(0..current.len());
            if *has_results {
                shadow.set(segment.start, current);
            }
            if PROCESS_STATE.is_capturing() {
                sink.record_changes(self.id, segment.start, RecordedContents::Bytes);
            }
        }
    }

    /// Records what the device wrote: where the last common contents differ from those in the trace. False if there is
    /// no copy.
    pub(super) fn record_copied_results(
        state: &mut MappingState,
        id: ObjectId,
        sink: &mut MappedWriteSink<'_>,
    ) -> bool {
        let MappingState { copies: CopyState { copy: Some(copy), .. }, shadow, .. } = state else { return false };
        for (first, bytes) in copy.clean.segments() {
            let WriteScratch { current, changed, .. } = &mut *sink.scratch;
            changed.clear();
            shadow.update(first, bytes, changed);
            if !changed.is_empty() {
                current.clear();
                current.extend_from_slice(bytes);
                sink.scratch.writing.set_device_write(true);
                sink.record_changes(id, first, RecordedContents::Bytes);
                sink.scratch.writing.set_device_write(false);
            }
        }
        true
    }
}

/// Replaces runs by the exact ones, in those parts of a segment to which the device may write.
fn choose_runs(
    runs: &mut Vec<Range<usize>>,
    exact: &mut Vec<Range<usize>>,
    parts: impl Iterator<Item = (Range<usize>, bool)>,
) {
    let (mut chosen, mut parts): (Vec<Range<usize>>, _) = (Vec::new(), parts.peekable());
    while let Some((part, is_writable)) = parts.next() {
        if part.start == 0 && parts.peek().is_none() {
            if is_writable {
                std::mem::swap(runs, exact);
            }
            return;
        }
        let from: &[Range<usize>] = if is_writable { exact } else { runs };
        let first = from.partition_point(|it| it.end <= part.start);
        for run in from[first..].iter().take_while(|it| it.start < part.end) {
            let run = run.start.max(part.start)..run.end.min(part.end);
            match chosen.last_mut().filter(|it| it.end == run.start) {
                Some(last) => last.end = run.end,
                None => chosen.push(run),
            }
        }
    }
    *runs = chosen;
}

/// Bytes that the processor fetches together.
const LINE: u64 = 64;

/// A range in parts that a shadow can compare.
fn segments(range: Range<u64>) -> impl Iterator<Item = Range<u64>> {
    let size = SEGMENT_BYTES as u64;
    let first = (range.start < range.end).then_some(range.start);
    let starts = std::iter::successors(first, move |it| Some((it / size + 1) * size).filter(|it| *it < range.end));
    starts.map(move |it| it..((it / size + 1) * size).min(range.end))
}

/// # Safety
///
/// The bytes must be mapped from `base` on until this returns.
unsafe fn read_into(base: u64, bytes: &Range<u64>, to: &mut Vec<u8>) {
    to.resize((bytes.end - bytes.start) as usize, 0);
    // SAFETY: by the contract of this function the bytes are mapped.
    unsafe { device_memory::read(base + bytes.start, to) };
}

impl HostVisibleMemories {
    /// Copies and records what the host has written into memories whose pages are watched.
    pub(super) fn collect_writes(&self, target: &mut WriteTarget<'_, '_>) {
        self.visit_written(target, |memory, bytes, target| memory.add_written(bytes, target), TakesNoticed::Yes);
    }

    /// Records where the host has written; what it wrote is recorded with the next submission. The device may be writing
    /// now, and on some devices both look the same.
    pub(super) fn notice_writes(&self, target: &mut WriteTarget<'_, '_>) {
        let notice = |memory: &Arc<WatchedMemory>, bytes: Range<u64>, target: &mut WriteTarget<'_, '_>| {
            if memory.notice_written(bytes.clone(), target) {
                lock(&self.noticed).push(NoticedBytes { memory: Arc::clone(memory), bytes });
            }
        };
        self.visit_written(target, notice, TakesNoticed::No);
    }

    /// Calls `visit` with the written bytes of each memory whose pages are watched.
    fn visit_written(
        &self,
        target: &mut WriteTarget<'_, '_>,
        visit: impl Fn(&Arc<WatchedMemory>, Range<u64>, &mut WriteTarget<'_, '_>),
        takes_noticed: TakesNoticed,
    ) {
        let Some(arena) = &self.arena else { return };
        if let WriteTarget::Recorded(sink) = target {
            self.record_late_writes(sink);
        }
        // A panic in the middle loses what the system has reported.
        let is_lost = self.tracked.is_poisoned();
        // Held until all is recorded and copied: who finds nothing more comes after that.
        let tracked = lock(&self.tracked);
        if tracked.is_empty() {
            return;
        }
        if takes_noticed == TakesNoticed::Yes {
            // The system does not report them again.
            let noticed = std::mem::take(&mut *lock(&self.noticed));
            noticed.into_iter().for_each(|it| visit(&it.memory, it.bytes, target));
        }
        let mut written = std::mem::take(&mut target.scratch().written);
        if !arena.written(&mut written) || is_lost {
            // Some pages were reported, and are not reported again.
            written.clear();
            written.extend(tracked.iter().map(|(start, memory)| *start..start + memory.size));
        }
        for run in written.drain(..) {
            let before = tracked.range(..=run.start).next_back();
            for (start, memory) in before.into_iter().chain(tracked.range(run.start + 1..run.end)) {
                let bytes = run.start.saturating_sub(*start)..run.end.saturating_sub(*start).min(memory.size);
                if bytes.start < bytes.end {
                    visit(memory, bytes, target);
                }
            }
        }
        target.scratch().written = written;
        device_memory::finish_writes();
        self.tracked.clear_poison();
        if let (WriteTarget::Unrecorded(_), Some(copies)) = (target, &self.copies) {
            copies.has_late_writes.store(true, Ordering::Relaxed);
        }
    }

    /// Records what was collected without a record.
    fn record_late_writes(&self, sink: &mut MappedWriteSink<'_>) {
        let Some(copies) = &self.copies else { return };
        if copies.has_late_writes.load(Ordering::Relaxed) && copies.has_late_writes.swap(false, Ordering::Relaxed) {
            let all: Vec<Arc<WatchedMemory>> = lock(&copies.all).values().cloned().collect();
            all.iter().for_each(|it| it.record_late(sink));
        }
    }

    /// The application may know by now what the device has written.
    pub(super) fn read_back(&self, completion: Completion) {
        let Some(copies) = &self.copies else { return };
        let point = copies.progress.point_after(&completion);
        self.find_device_writes();
        let written: Vec<Arc<WatchedMemory>> = lock(&copies.device_written).values().cloned().collect();
        written.iter().for_each(|it| it.read_back_if_mapped(point));
        // Only now: a thread that does not find a memory here does not wait for its bytes.
        lock(&copies.device_written).retain(|_, it| it.has_unread_copy());
        copies.progress.complete(completion);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_exact_where_the_device_may_write() {
        let choose = |parts: &[(Range<usize>, bool)]| {
            let (mut runs, mut exact) = (vec![0..20, 30..50, 60..70], vec![0..8, 15..20, 30..31, 49..50, 60..70]);
            choose_runs(&mut runs, &mut exact, parts.iter().cloned());
            runs
        };
        assert_eq!(choose(&[(0..100, false)]), [0..20, 30..50, 60..70]);
        assert_eq!(choose(&[(0..100, true)]), [0..8, 15..20, 30..31, 49..50, 60..70]);
        let mixed = choose(&[(0..10, false), (10..40, true), (40..65, false), (65..100, true)]);
        assert_eq!(mixed, [0..10, 15..20, 30..31, 40..50, 60..70]);
        assert_eq!(choose(&[(0..16, false), (16..100, true)])[..2], [0..20, 30..31], "they touch, and are one");
    }
}
