//! All calls of a trace, and what they mean for a part of it: the first way through.

use lavascope_abi::desc::ResultKind;
use lavascope_abi::{Command, HandleType, ObjectId};
use lavascope_marshal::{Arena, HandleResolver, UnpackPurpose, Unpacker};
use lavascope_record::encoding::{HEADER_SIZE, Record, RecordHeader, RecordPhase, beside};
use lavascope_record::{Call as Parameters, HostBytes, HostWrite, Outcome, check};
use lavascope_trace::{MergedReader, MergedRecord, Tail, Trace};
use rustc_hash::FxHashMap;

use crate::call_role::{CallRole, changes_sync_state};
use crate::content_tracker::ContentTracker;
use crate::sync_state::{Boundary, SyncState};
use crate::{PROGRESS_INTERVAL, TrimError, TrimRange};

/// A call, or what stands beside calls and has a number of its own.
pub(crate) struct ScannedCall {
    pub(crate) stream: u32,
    pub(crate) number: u64,
    pub(crate) kind: ScannedKind,
    /// The places of its first record and of the one that completes it, in the merged order.
    pub(crate) first_record: usize,
    pub(crate) last_record: usize,
    refs: (u32, u32),
    created: (u32, u32),
    /// The recording that it is part of.
    pub(crate) recording: Option<usize>,
    /// The places that it writes: two calls with the same key write the same places.
    pub(crate) keys: Vec<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScannedKind {
    Command(Command),
    /// A host write to memory.
    HostWrite,
    /// Host memory that the next call reads.
    HostRead,
}

/// Where a part lies: all calls that begin behind the first place, and are complete at the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PartBounds {
    pub(crate) first: usize,
    pub(crate) end: usize,
}

pub(crate) struct Scan {
    pub(crate) calls: Vec<ScannedCall>,
    objects: Vec<ObjectId>,
    /// By stream and number.
    pub(crate) by_number: FxHashMap<(u32, u64), usize>,
    /// The call that made an object, the first one if there are several.
    pub(crate) creators: FxHashMap<ObjectId, usize>,
    pub(crate) contents: ContentTracker,
    pub(crate) boundaries: Vec<Boundary>,
    /// Calls that present, and the images that they show.
    pub(crate) presents: Vec<(usize, Vec<ObjectId>)>,
    pub(crate) sync_state: SyncState,
    open_calls: FxHashMap<u32, Vec<(usize, Vec<u64>)>>,
    /// Calls under way that change what orders the device.
    open_sync_calls: usize,
    record_count: usize,
    arena: Arena,
}

/// Gathers the ids that a walk meets.
#[derive(Default)]
struct IdCollector(std::cell::RefCell<Vec<ObjectId>>);

impl HandleResolver for IdCollector {
    fn handle(&self, id: ObjectId) -> u64 {
        if !id.is_unknown() {
            self.0.borrow_mut().push(id);
        }
        1
    }
}

impl Scan {
    pub(crate) fn of(
        trace: &Trace<'_>,
        tail: Option<&Tail>,
        watch: &mut dyn FnMut(u64, u64),
    ) -> Result<Scan, TrimError> {
        let mut scan = Scan {
            calls: Vec::new(),
            objects: Vec::new(),
            by_number: FxHashMap::default(),
            creators: FxHashMap::default(),
            contents: ContentTracker::default(),
            boundaries: Vec::new(),
            presents: Vec::new(),
            sync_state: SyncState::default(),
            open_calls: FxHashMap::default(),
            open_sync_calls: 0,
            record_count: 0,
            arena: Arena::default(),
        };
        let mut merged = MergedReader::new(trace, tail);
        while let Some(item) = merged.take_next()? {
            scan.scan_record(&item);
            scan.record_count += 1;
            if scan.record_count.is_multiple_of(PROGRESS_INTERVAL) {
                let (done, all) = merged.progress();
                watch(done, all);
            }
        }
        Ok(scan)
    }

    pub(crate) fn refs(&self, call: &ScannedCall) -> &[ObjectId] {
        &self.objects[call.refs.0 as usize..call.refs.1 as usize]
    }

    pub(crate) fn created(&self, call: &ScannedCall) -> &[ObjectId] {
        &self.objects[call.created.0 as usize..call.created.1 as usize]
    }

    pub(crate) fn role(&self, call: &ScannedCall) -> CallRole {
        match call.kind {
            ScannedKind::Command(command) => CallRole::of(command),
            ScannedKind::HostWrite | ScannedKind::HostRead => CallRole::Other,
        }
    }

    /// Where a part lies in the merged order.
    pub(crate) fn bounds(&self, part: &TrimRange) -> Result<PartBounds, TrimError> {
        let (range, what) = match part {
            TrimRange::Frames(range) => (range, "frames"),
            TrimRange::Submits(range) => (range, "submissions"),
        };
        let is_frame = matches!(part, TrimRange::Frames(_));
        let moments: Vec<&ScannedCall> = self.calls.iter().filter(|it| it.is_boundary(is_frame)).collect();
        let count = moments.len() as u64;
        if range.start >= count || range.is_empty() {
            return Err(TrimError::Empty { what, first: range.start, count });
        }
        let first = range.start.checked_sub(1).map_or(0, |it| moments[it as usize].last_record.saturating_add(1));
        let end = match (is_frame, range.end) {
            (true, end) => moments.get(end as usize - 1).map_or(usize::MAX, |it| it.last_record),
            (false, end) => moments.get(end as usize).map_or(usize::MAX, |it| it.first_record.saturating_sub(1)),
        };
        Ok(PartBounds { first, end })
    }

    fn scan_record(&mut self, item: &MergedRecord<'_>) {
        let words = item.record;
        let head = RecordHeader::from_words(words[0], words[1]);
        match head.kind {
            beside::HOST_WRITE => self.add_memory_write(item, head),
            beside::HOST_BYTES => {
                let index = self.add(item, head, ScannedKind::HostRead);
                self.calls[index].last_record = self.record_count;
                if let Some(host_bytes) = HostBytes::parse(words) {
                    self.calls[index].keys.push(host_bytes.bytes.len() as u64);
                }
            }
            kind if kind == RecordPhase::Enter as u8 => {
                let Ok(record) = check(words) else { return };
                let index = self.add(item, head, ScannedKind::Command(record.command()));
                self.collect_objects(index, record);
                self.open_sync_calls += usize::from(changes_sync_state(record.command()));
                match record.command().desc().outputs.is_some() {
                    true => self.open_calls.entry(item.stream).or_default().push((index, words.to_vec())),
                    false => self.complete(index, record, None),
                }
            }
            kind if kind == RecordPhase::Leave as u8 => {
                let Ok(record) = check(words) else { return };
                let open = self.open_calls.entry(item.stream).or_default();
                let Some(at) = open.iter().rposition(|it| self.calls[it.0].number == head.call) else { return };
                let (index, enter) = open.remove(at);
                self.collect_objects(index, record);
                if let Ok(enter) = check(&enter) {
                    self.complete(index, enter, Some(record));
                }
            }
            _ => {}
        }
    }

    fn add(&mut self, item: &MergedRecord<'_>, head: RecordHeader, what: ScannedKind) -> usize {
        let index = self.calls.len();
        let none = (self.objects.len() as u32, self.objects.len() as u32);
        self.calls.push(ScannedCall {
            stream: item.stream,
            number: head.call,
            kind: what,
            first_record: self.record_count,
            last_record: usize::MAX,
            refs: none,
            created: none,
            recording: None,
            keys: Vec::new(),
        });
        self.by_number.insert((item.stream, head.call), index);
        index
    }

    fn add_memory_write(&mut self, item: &MergedRecord<'_>, head: RecordHeader) {
        let index = self.add(item, head, ScannedKind::HostWrite);
        self.calls[index].last_record = self.record_count;
        let Some(written) = HostWrite::parse(item.record) else { return };
        let first = self.objects.len() as u32;
        self.objects.push(written.memory());
        self.calls[index].refs = (first, first + 1);
        let runs = written.runs().flat_map(|it| [it.0, it.1.len() as u64]);
        self.calls[index].keys.push(key([written.memory().raw()].into_iter().chain(runs)));
    }

    /// Collects the objects that one record of a call names: those that it uses, or those that it created.
    fn collect_objects(&mut self, index: usize, record: Record<'_>) {
        let named = IdCollector::default();
        let unpacker = Unpacker { handles: &named, purpose: UnpackPurpose::RoundTrip };
        self.arena.clear();
        // After an error in unpacking, the objects that were found up to it are kept.
        let _ = unpacker.unpack(record, &mut self.arena);
        let first = self.objects.len() as u32;
        self.objects.extend(named.0.into_inner());
        let range = (first, self.objects.len() as u32);
        match record.phase() {
            RecordPhase::Enter => self.calls[index].refs = range,
            RecordPhase::Leave => self.calls[index].created = range,
        }
    }

    fn complete(&mut self, index: usize, enter: Record<'_>, leave: Option<Record<'_>>) {
        self.calls[index].last_record = self.record_count;
        let command = enter.command();
        self.open_sync_calls -= usize::from(changes_sync_state(command));
        for object_id in self.created(&self.calls[index]).to_vec() {
            self.creators.entry(object_id).or_insert(index);
        }
        let Some(parameters) = Parameters::of(enter) else { return };
        let refs = self.refs(&self.calls[index]).to_vec();
        if CallRole::of(command) == CallRole::Record {
            self.contents.record(index, command, parameters, &refs);
            let own = refs.first().and_then(|it| self.contents.current(*it));
            self.calls[index].recording = own;
            return;
        }
        if has_failed(enter.command(), leave) && command != Command::QueuePresentKHR {
            return;
        }
        let outcome = leave.and_then(Outcome::of);
        self.contents.resources.apply_call(parameters, outcome);
        self.contents.submit(index, parameters);
        self.add_descriptor_keys(index, parameters, &refs);
        if command == Command::QueuePresentKHR {
            let images = self.sync_state.presented(parameters);
            self.presents.push((index, images));
        }
        self.sync_state.apply_call(parameters, outcome);
        let is_frame = command == Command::QueuePresentKHR;
        let is_moment = is_frame || self.calls[index].is_boundary(false);
        if is_moment && self.open_sync_calls == 0 && self.sync_state.can_complete() {
            self.boundaries.push(self.sync_state.boundary(self.record_count, is_frame));
        }
    }

    /// The descriptors that are written, to find out which of them are written again.
    fn add_descriptor_keys(&mut self, index: usize, parameters: Parameters<'_>, refs: &[ObjectId]) {
        match parameters {
            Parameters::UpdateDescriptorSets(descriptor_sets) => {
                let keys = descriptor_sets.p_descriptor_writes().iter().map(|p_descriptor_write| {
                    let place = [
                        p_descriptor_write.dst_set.0,
                        p_descriptor_write.dst_binding.into(),
                        p_descriptor_write.dst_array_element.into(),
                    ];
                    key(place.into_iter().chain([p_descriptor_write.descriptor_count.into()]))
                });
                self.calls[index].keys = keys.collect();
                let copies = descriptor_sets.p_descriptor_copies().len() as u64;
                // A copy is never the same as another: what it reads may have changed.
                self.calls[index].keys.extend((0..copies).map(|it| key([index as u64, it].into_iter())));
            }
            Parameters::UpdateDescriptorSetWithTemplate(with_template) => {
                self.calls[index].keys =
                    vec![key([with_template.descriptor_set.0, with_template.descriptor_update_template.0].into_iter())];
                let resources: Vec<ObjectId> = refs.iter().filter(|it| is_resource(**it)).copied().collect();
                if let Some(set) = ObjectId::from_raw(with_template.descriptor_set.0) {
                    self.contents.resources.write_by_template(set, &resources);
                }
            }
            // Nothing else writes descriptors.
            _ => {}
        }
    }
}

impl ScannedCall {
    /// Whether it ends a frame, or submits.
    pub(crate) fn is_boundary(&self, is_frame: bool) -> bool {
        match self.kind {
            ScannedKind::Command(Command::QueuePresentKHR) => is_frame,
            ScannedKind::Command(Command::QueueSubmit | Command::QueueSubmit2 | Command::QueueBindSparse) => !is_frame,
            _ => false,
        }
    }
}

fn is_resource(object_id: ObjectId) -> bool {
    use HandleType as H;
    matches!(object_id.ty(), Some(H::Buffer | H::ImageView | H::BufferView))
}

fn has_failed(command: Command, leave: Option<Record<'_>>) -> bool {
    let is_code = matches!(command.desc().outputs.map(|it| it.result), Some(ResultKind::Codes { .. }));
    let code = leave.and_then(|it| it.words().get(HEADER_SIZE / 8)).map_or(0, |it| *it as u32 as i32);
    is_code && code < 0
}

/// A hash of a list of numbers, as its key.
fn key(all: impl Iterator<Item = u64>) -> u64 {
    use std::hash::Hasher;
    let mut hasher = std::hash::DefaultHasher::new();
    all.for_each(|it| hasher.write_u64(it));
    hasher.finish()
}
