//! All calls of a trace, and what they mean for a part of it: the first way through.

use lavascope_abi::desc::ResultKind;
use lavascope_abi::{Command, HandleType, ObjectId};
use lavascope_marshal::{Arena, HandleResolver, UnpackPurpose, Unpacker};
use lavascope_record::record::{HEADER_SIZE, RecordHeader, RecordPhase, Record, beside};
use lavascope_record::{Call as Parameters, HostBytes, Outcome, HostWrite, check};
use lavascope_trace::{Item, Merged, Tail, Trace};
use rustc_hash::FxHashMap;

use crate::contents::Contents;
use crate::flow::{Boundary, Flow};
use crate::role::{Role, changes_flow};
use crate::{Part, TrimError, WATCH};

/// A call, or what stands beside calls and has a number of its own.
pub(crate) struct Call {
    pub(crate) stream: u32,
    pub(crate) number: u64,
    pub(crate) what: What,
    /// The places of its first record and of the one that completes it, in the merged order.
    pub(crate) first: usize,
    pub(crate) done: usize,
    refs: (u32, u32),
    made: (u32, u32),
    /// The recording that it is part of.
    pub(crate) recording: Option<usize>,
    /// What it writes: two calls of the same key write the same places.
    pub(crate) keys: Vec<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    Command(Command),
    /// What the host wrote into memory.
    Memory,
    /// What the call behind it reads.
    Host,
}

/// Where a part lies: all calls that begin behind the first place, and are complete at the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    pub(crate) first: usize,
    pub(crate) end: usize,
}

pub(crate) struct Scan {
    pub(crate) calls: Vec<Call>,
    objects: Vec<ObjectId>,
    /// By stream and number.
    pub(crate) by_number: FxHashMap<(u32, u64), usize>,
    /// The call that made an object, the first one if there are several.
    pub(crate) makers: FxHashMap<ObjectId, usize>,
    pub(crate) contents: Contents,
    pub(crate) boundaries: Vec<Boundary>,
    /// Calls that present, and the images that they show.
    pub(crate) presents: Vec<(usize, Vec<ObjectId>)>,
    pub(crate) flow: Flow,
    open: FxHashMap<u32, Vec<(usize, Vec<u64>)>>,
    /// Calls under way that change what orders the device.
    unsettled: usize,
    places: usize,
    arena: Arena,
}

/// Gathers the ids that a walk meets.
#[derive(Default)]
struct Named(std::cell::RefCell<Vec<ObjectId>>);

impl HandleResolver for Named {
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
            makers: FxHashMap::default(),
            contents: Contents::default(),
            boundaries: Vec::new(),
            presents: Vec::new(),
            flow: Flow::default(),
            open: FxHashMap::default(),
            unsettled: 0,
            places: 0,
            arena: Arena::default(),
        };
        let mut merged = Merged::new(trace, tail);
        while let Some(item) = merged.take_next()? {
            scan.item(&item);
            scan.places += 1;
            if scan.places.is_multiple_of(WATCH) {
                let (done, all) = merged.progress();
                watch(done, all);
            }
        }
        Ok(scan)
    }

    pub(crate) fn refs(&self, call: &Call) -> &[ObjectId] {
        &self.objects[call.refs.0 as usize..call.refs.1 as usize]
    }

    pub(crate) fn made(&self, call: &Call) -> &[ObjectId] {
        &self.objects[call.made.0 as usize..call.made.1 as usize]
    }

    pub(crate) fn role(&self, call: &Call) -> Role {
        match call.what {
            What::Command(command) => Role::of(command),
            What::Memory | What::Host => Role::Other,
        }
    }

    /// Where a part lies in the merged order.
    pub(crate) fn bounds(&self, part: &Part) -> Result<Bounds, TrimError> {
        let (range, what) = match part {
            Part::Frames(range) => (range, "frames"),
            Part::Submits(range) => (range, "submissions"),
        };
        let is_frame = matches!(part, Part::Frames(_));
        let moments: Vec<&Call> = self.calls.iter().filter(|it| it.is_moment(is_frame)).collect();
        let count = moments.len() as u64;
        if range.start >= count || range.is_empty() {
            return Err(TrimError::Empty { what, first: range.start, count });
        }
        let first = range.start.checked_sub(1).map_or(0, |it| moments[it as usize].done.saturating_add(1));
        let end = match (is_frame, range.end) {
            (true, end) => moments.get(end as usize - 1).map_or(usize::MAX, |it| it.done),
            (false, end) => moments.get(end as usize).map_or(usize::MAX, |it| it.first.saturating_sub(1)),
        };
        Ok(Bounds { first, end })
    }

    fn item(&mut self, item: &Item<'_>) {
        let words = item.record;
        let head = RecordHeader::from_words(words[0], words[1]);
        match head.kind {
            beside::HOST_WRITE => self.memory(item, head),
            beside::HOST_BYTES => {
                let index = self.add(item, head, What::Host);
                self.calls[index].done = self.places;
                if let Some(it) = HostBytes::parse(words) {
                    self.calls[index].keys.push(it.bytes.len() as u64);
                }
            }
            kind if kind == RecordPhase::Enter as u8 => {
                let Ok(record) = check(words) else { return };
                let index = self.add(item, head, What::Command(record.command()));
                self.name(index, record);
                self.unsettled += usize::from(changes_flow(record.command()));
                match record.command().desc().outputs.is_some() {
                    true => self.open.entry(item.stream).or_default().push((index, words.to_vec())),
                    false => self.complete(index, record, None),
                }
            }
            kind if kind == RecordPhase::Leave as u8 => {
                let Ok(record) = check(words) else { return };
                let open = self.open.entry(item.stream).or_default();
                let Some(at) = open.iter().rposition(|it| self.calls[it.0].number == head.call) else { return };
                let (index, enter) = open.remove(at);
                self.name(index, record);
                if let Ok(enter) = check(&enter) {
                    self.complete(index, enter, Some(record));
                }
            }
            _ => {}
        }
    }

    fn add(&mut self, item: &Item<'_>, head: RecordHeader, what: What) -> usize {
        let index = self.calls.len();
        let none = (self.objects.len() as u32, self.objects.len() as u32);
        self.calls.push(Call {
            stream: item.stream,
            number: head.call,
            what,
            first: self.places,
            done: usize::MAX,
            refs: none,
            made: none,
            recording: None,
            keys: Vec::new(),
        });
        self.by_number.insert((item.stream, head.call), index);
        index
    }

    fn memory(&mut self, item: &Item<'_>, head: RecordHeader) {
        let index = self.add(item, head, What::Memory);
        self.calls[index].done = self.places;
        let Some(written) = HostWrite::parse(item.record) else { return };
        let first = self.objects.len() as u32;
        self.objects.push(written.memory());
        self.calls[index].refs = (first, first + 1);
        let runs = written.runs().flat_map(|it| [it.0, it.1.len() as u64]);
        self.calls[index].keys.push(key([written.memory().raw()].into_iter().chain(runs)));
    }

    /// The objects that half of a call names: those that it uses, or those that it made.
    fn name(&mut self, index: usize, record: Record<'_>) {
        let named = Named::default();
        let unpacker = Unpacker { handles: &named, purpose: UnpackPurpose::RoundTrip };
        self.arena.clear();
        // What cannot be laid out names what was met until there.
        let _ = unpacker.unpack(record, &mut self.arena);
        let first = self.objects.len() as u32;
        self.objects.extend(named.0.into_inner());
        let range = (first, self.objects.len() as u32);
        match record.phase() {
            RecordPhase::Enter => self.calls[index].refs = range,
            RecordPhase::Leave => self.calls[index].made = range,
        }
    }

    fn complete(&mut self, index: usize, enter: Record<'_>, leave: Option<Record<'_>>) {
        self.calls[index].done = self.places;
        let command = enter.command();
        self.unsettled -= usize::from(changes_flow(command));
        for it in self.made(&self.calls[index]).to_vec() {
            self.makers.entry(it).or_insert(index);
        }
        let Some(parameters) = Parameters::of(enter) else { return };
        let refs = self.refs(&self.calls[index]).to_vec();
        if Role::of(command) == Role::Record {
            self.contents.record(index, command, parameters, &refs);
            let own = refs.first().and_then(|it| self.contents.current(*it));
            self.calls[index].recording = own;
            return;
        }
        if has_failed(enter.command(), leave) && command != Command::QueuePresentKHR {
            return;
        }
        let outcome = leave.and_then(Outcome::of);
        self.contents.resources.follow(parameters, outcome);
        self.contents.submit(index, parameters);
        self.descriptors(index, parameters, &refs);
        if command == Command::QueuePresentKHR {
            let images = self.flow.presented(parameters);
            self.presents.push((index, images));
        }
        self.flow.follow(parameters, outcome);
        let is_frame = command == Command::QueuePresentKHR;
        let is_moment = is_frame || self.calls[index].is_moment(false);
        if is_moment && self.unsettled == 0 && self.flow.is_settled() {
            self.boundaries.push(self.flow.boundary(self.places, is_frame));
        }
    }

    /// Which descriptors are written, so that one can tell which are written again.
    fn descriptors(&mut self, index: usize, parameters: Parameters<'_>, refs: &[ObjectId]) {
        match parameters {
            Parameters::UpdateDescriptorSets(it) => {
                let keys = it.p_descriptor_writes().iter().map(|it| {
                    let place = [it.dst_set.0, it.dst_binding.into(), it.dst_array_element.into()];
                    key(place.into_iter().chain([it.descriptor_count.into()]))
                });
                self.calls[index].keys = keys.collect();
                let copies = it.p_descriptor_copies().len() as u64;
                // A copy is never the same as another: what it reads may have changed.
                self.calls[index].keys.extend((0..copies).map(|it| key([index as u64, it].into_iter())));
            }
            Parameters::UpdateDescriptorSetWithTemplate(it) => {
                self.calls[index].keys = vec![key([it.descriptor_set.0, it.descriptor_update_template.0].into_iter())];
                let resources: Vec<ObjectId> = refs.iter().filter(|it| is_resource(**it)).copied().collect();
                if let Some(set) = ObjectId::from_raw(it.descriptor_set.0) {
                    self.contents.resources.write_by_template(set, &resources);
                }
            }
            // Nothing else writes descriptors.
            _ => {}
        }
    }
}

impl Call {
    /// Whether it ends a frame, or submits.
    pub(crate) fn is_moment(&self, is_frame: bool) -> bool {
        match self.what {
            What::Command(Command::QueuePresentKHR) => is_frame,
            What::Command(Command::QueueSubmit | Command::QueueSubmit2 | Command::QueueBindSparse) => !is_frame,
            _ => false,
        }
    }
}

fn is_resource(it: ObjectId) -> bool {
    use HandleType as H;
    matches!(it.ty(), Some(H::Buffer | H::ImageView | H::BufferView))
}

fn has_failed(command: Command, leave: Option<Record<'_>>) -> bool {
    let is_code = matches!(command.desc().outputs.map(|it| it.result), Some(ResultKind::Codes { .. }));
    let code = leave.and_then(|it| it.words().get(HEADER_SIZE / 8)).map_or(0, |it| *it as u32 as i32);
    is_code && code < 0
}

/// A number for a list of numbers that is no other list's, for all that one can tell.
fn key(all: impl Iterator<Item = u64>) -> u64 {
    use std::hash::Hasher;
    let mut hasher = std::hash::DefaultHasher::new();
    all.for_each(|it| hasher.write_u64(it));
    hasher.finish()
}
