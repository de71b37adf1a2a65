//! Damaged records: the check refuses them, or all functions can use them without a fault.

use std::collections::BTreeMap;

use lavascope_abi::desc::HandleAccess;
use lavascope_abi::{Command, HandleType, ObjectId};
use lavascope_marshal::{Arena, HandleResolver, IdResolver, Packer, RecordBuffer, UnpackPurpose, Unpacker};
use lavascope_record::pack_context::{LibraryUse, PackContext, SubpassUse};
use lavascope_record::{Call, Omissions, Outcome, RecordFault, RecordPhase, check, print};
use lavascope_sim::mutate;
use lavascope_sim::{CallOptions, SyntheticObjects, random_call_memory};
use lavascope_test_support::TestRng;

use crate::SimHandles;

/// Counts of the outcomes of damaged records.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) accepted: u64,
    /// The accepted records that were packed again to the same bytes.
    pub(crate) canonical: u64,
    pub(crate) refused: BTreeMap<String, u64>,
}

impl Tally {
    pub(crate) fn refused_total(&self) -> u64 {
        self.refused.values().sum()
    }
}

/// Packs calls of every command and damages each record `rounds` times.
pub(crate) fn mutate_records(seed: u64, records: u64) -> Tally {
    let (mut tally, mut arena) = (Tally::default(), Arena::default());
    each_damaged(seed, records, |_, words| judge(words, &mut arena, &mut tally));
    tally
}

/// Passes records of every command to `give`, each with its damaged form.
pub(crate) fn each_damaged(seed: u64, records: u64, mut give: impl FnMut(&[u64], &[u64])) {
    let mut random = TestRng::new(seed);
    let options = CallOptions::UNRESTRICTED;
    let mut done = 0;
    while done < records {
        let command = Command::ALL[random.below(Command::ALL.len() as u64) as usize];
        let desc = command.desc();
        let is_leave = desc.outputs.is_some() && random.one_in(3);
        let layout = desc.outputs.filter(|_| is_leave).map_or(desc.parameters, |it| it.layout);
        let memory = random_call_memory(layout, &mut random, options);
        let image = std::ptr::with_exposed_provenance(memory.address(0) as usize);
        let mut stream = RecordBuffer::default();
        let mut packer = Packer::new(&SimHandles, &SyntheticObjects);
        if is_leave {
            // SAFETY: `random_call_memory` made it for this command, and `memory` keeps all of its targets.
            unsafe { packer.pack_outputs(&mut stream, command, image, done) };
        } else {
            // SAFETY: `random_call_memory` made it for this command, and `memory` keeps all of its targets.
            unsafe { packer.pack_parameters(&mut stream, command, image, done) };
        }
        for _ in 0..50 {
            let mut words = stream.words().to_vec();
            mutate(&mut words, &mut random);
            give(stream.words(), &words);
            done += 1;
        }
    }
}

/// An accepted record must equal its packed form, and every reader of records must accept it.
fn judge(words: &[u64], arena: &mut Arena, tally: &mut Tally) {
    let record = match check(words) {
        Ok(record) => record,
        Err(error) => {
            let fault: RecordFault = error.fault;
            *tally.refused.entry(format!("{fault:?}")).or_default() += 1;
            return;
        }
    };
    tally.accepted += 1;
    assert!(Call::of(record).is_some() || Outcome::of(record).is_some());
    let text = print::print(record);
    arena.clear();
    let unpacker = Unpacker { handles: &Raw, purpose: UnpackPurpose::RoundTrip };
    // Unpacking may refuse a record, for instance because of the size of its outputs.
    let Ok(image) = unpacker.unpack(record, arena) else { return };
    // A record alone does not contain what depends on objects. Overlapping strides are an error of the application.
    let needs_objects = text.contains("template data") || text.contains("blob of ");
    let is_strided = record.command().desc().name.starts_with("vkCmdDrawMulti");
    if needs_objects || is_strided || record.omissions().has(Omissions::TRUNCATED) {
        return;
    }
    let mut stream = RecordBuffer::default();
    let mut packer = Packer::new(&Raw, &ReadAll);
    let (command, call) = (record.command(), record.call_number());
    let again = match record.phase() {
        // SAFETY: the record was just unpacked into the arena, as the image of a call of this command.
        RecordPhase::Enter => Some(unsafe { packer.pack_parameters(&mut stream, command, image, call) }),
        // SAFETY: the record was just unpacked into the arena, as the image of a call of this command.
        RecordPhase::Leave => unsafe { packer.pack_outputs(&mut stream, command, image, call) },
    };
    let body_words = record.body().len() / 8;
    let again = again.unwrap_or_default();
    // The second word of the header also counts order edges, which packing does not add.
    assert_eq!((again.first(), again.get(2..)), (words.first(), words.get(2..body_words)), "not canonical:\n{text}");
    tally.canonical += 1;
}

/// Uses ids as handles.
struct Raw;

impl IdResolver for Raw {
    fn id(&self, ty: HandleType, handle: u64, _access: HandleAccess) -> ObjectId {
        ObjectId::from_raw_typed(handle, ty).unwrap_or(ObjectId::unknown(ty))
    }
}

impl HandleResolver for Raw {
    fn handle(&self, id: ObjectId) -> u64 {
        id.raw()
    }
}

/// Reads everything that depends on an object: recorded data is present, missing data is null.
struct ReadAll;

impl PackContext for ReadAll {
    fn is_secondary(&self, _command_buffer: u64) -> Option<bool> {
        Some(true)
    }

    fn subpass(&self, _render_pass: u64, _subpass: u32) -> Option<SubpassUse> {
        Some(SubpassUse { color: true, depth_stencil: true })
    }

    fn library(&self, _pipeline: u64) -> Option<LibraryUse> {
        Some(LibraryUse { has_mesh: false, discards_always: false })
    }
}
