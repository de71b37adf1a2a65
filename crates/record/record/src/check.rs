//! *Check*: whether bytes from outside are a well-formed record.
//!
//! A record has one canonical form: every block sits exactly at the cursor, depth first, padding is zero, and what
//! is ignored is null. So the check is one pass, cycles and overlaps cannot exist, and a record that passes equals
//! what packing its call would give.
//!
//! Enum values are not judged, except selectors and structure types: a wrong one is the application's mistake, and
//! a record must be able to hold it.

use std::cell::RefCell;

use lavascope_abi::desc::{Case, Fixup, Layout, ObjectNumbering, Pointee, Pointer, Span};
use lavascope_abi::{Command, HandleType, ObjectId, Ptr, bytes_of_slice, structure_by_type};

use crate::check_cache::{ObservedMemory, ObservedReads};
use crate::encoding::{HEADER_SIZE, Omissions, Record, RecordHeader, beside};
use crate::fast_check;
use crate::memory::ReadableMemory;
use crate::pack_context::NoPackContext;
use crate::rules::{self, PointerUse};
use crate::template;
use crate::walk::{
    CHAIN_MAX, DEPTH_MAX, LOADER_LINKS, PointerAction, StructFrame, WalkPass, aligned, ignores_addresses,
    pointer_action, uses_host_addresses,
};

/// Why bytes are not a valid record, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{item}: byte {at} of the record: {fault}")]
pub struct CheckError {
    /// The command or structure that is being checked.
    pub item: &'static str,
    /// Byte within the record.
    pub at: u64,
    pub fault: RecordFault,
}

/// An error in a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordFault {
    #[error("it ends before its header or its stated size")]
    Truncated,
    #[error("no such command")]
    UnknownCommand,
    #[error("neither enter nor leave")]
    UnknownKind,
    #[error("the command has no outputs")]
    NoOutputs,
    #[error("unknown omissions")]
    UnknownRemarks,
    #[error("the omissions do not match the contents")]
    WrongRemarks,
    #[error("a pointer is not null, a mark or the next block's place")]
    WrongOffset,
    #[error("a mark that this pointer cannot have")]
    WrongMark,
    #[error("a block reaches past the end")]
    PastEnd,
    #[error("a count too large for any record")]
    CountOverflow,
    #[error("padding is not zero")]
    DirtyPadding,
    #[error("a handle of the wrong type")]
    WrongHandle,
    #[error("a string without a terminating zero")]
    UnterminatedText,
    #[error("a pointer that is ignored is not null")]
    IgnoredPointer,
    #[error("a stub for a structure that is known, or a link of the loader")]
    WrongStub,
    #[error("nested too deeply")]
    TooDeep,
    #[error("bytes after the last block")]
    TrailingBytes,
    #[error("an opaque value that is neither absent nor present")]
    WrongOpaque,
}

/// A record that this process packed itself, or has checked before. Only its size is checked, except in debug builds.
/// An invalid record may be read as another call, or cause a panic.
pub fn from_trusted(words: &[u64]) -> Option<Record<'_>> {
    if cfg!(debug_assertions) { check(words).ok() } else { from_trusted_header(words) }
}

/// The check of release builds. For records that this process packed, it has the same result as [`check`].
fn from_trusted_header(words: &[u64]) -> Option<Record<'_>> {
    let head = RecordHeader::from_words(*words.first()?, *words.get(1)?);
    let own = words.get(..head.body_words as usize + head.order_edge_count as usize)?;
    Command::from_number(head.command)?;
    // Entries beside calls also have a command number, but are not calls.
    (head.is_call() && head.body_words as usize >= HEADER_SIZE / 8).then_some(Record::from_checked(own))
}

/// Checks the record at the begin of `words`, which may contain more records after it.
pub fn check(words: &[u64]) -> Result<Record<'_>, CheckError> {
    check_with(words, None, None)
}

/// Like `check`, and collects everything on which the result depends, apart from the first word.
pub(crate) fn check_observed<'a>(words: &'a [u64], seen: &ObservedReads) -> Result<Record<'a>, CheckError> {
    check_with(words, None, Some(seen))
}

/// Translates a record with other numbers of object types. `numbers` has the number of this version for each number of
/// the record; zero for an unknown type. After an error, the record is unchanged.
pub fn renumber(words: &mut [u64], numbers: &[u8; 256]) -> Result<(), CheckError> {
    let renumbering = Renumbering { numbers, changes: RefCell::default() };
    if words.len() > HEADER_SIZE / 8 && RecordHeader::from_words(words[0], words[1]).kind == beside::HOST_WRITE {
        let at = HEADER_SIZE as u64;
        if !renumbering.renumber_id(at, words[HEADER_SIZE / 8], HandleType::DeviceMemory) {
            return Err(CheckError { item: "what the host wrote", at, fault: RecordFault::WrongHandle });
        }
    } else {
        check_with(words, Some(&renumbering), None)?;
    }
    for (at, raw) in renumbering.changes.into_inner() {
        words[at as usize / 8] = raw;
    }
    Ok(())
}

/// The numbers of object types in a record, and the necessary changes.
struct Renumbering<'a> {
    numbers: &'a [u8; 256],
    /// The position of each id in the record, and its new value.
    changes: RefCell<Vec<(u64, u64)>>,
}

impl Renumbering<'_> {
    /// Whether an id has this type, by the numbers of the record.
    fn renumber_id(&self, at: u64, raw: u64, ty: HandleType) -> bool {
        const SERIAL_BITS: u32 = 56;
        let number = self.numbers[(raw >> SERIAL_BITS) as usize];
        let own = u64::from(number) << SERIAL_BITS | raw & ((1 << SERIAL_BITS) - 1);
        if raw != 0 {
            self.changes.borrow_mut().push((at, own));
        }
        raw == 0 || ObjectId::from_raw_typed(own, ty).is_some()
    }
}

fn check_with<'a>(
    words: &'a [u64],
    renumbering: Option<&Renumbering<'_>>,
    seen: Option<&ObservedReads>,
) -> Result<Record<'a>, CheckError> {
    let fail = |item, fault| Err(CheckError { item, at: 0, fault });
    let [first, second, ..] = words else { return fail("record", RecordFault::Truncated) };
    let head = RecordHeader::from_words(*first, *second);
    let Some(own) = words.get(..head.body_words as usize + head.order_edge_count as usize) else {
        return fail("record", RecordFault::Truncated);
    };
    let Some(command) = Command::from_number(head.command) else { return fail("record", RecordFault::UnknownCommand) };
    let desc = command.desc();
    let (layout, pass) = match head.kind {
        0 => (desc.parameters, WalkPass::Enter),
        1 => match desc.outputs {
            Some(outputs) => (outputs.layout, WalkPass::Leave),
            None => return fail(desc.name, RecordFault::NoOutputs),
        },
        _ => return fail(desc.name, RecordFault::UnknownKind),
    };
    let Some(remarks) = Omissions::from_bits(head.omissions) else {
        return fail(desc.name, RecordFault::UnknownRemarks);
    };
    if (head.body_words as usize) < HEADER_SIZE / 8 {
        return fail(desc.name, RecordFault::Truncated);
    }
    let body = bytes_of_slice(&own[..head.body_words as usize]);
    let image = &own[HEADER_SIZE / 8..head.body_words as usize];
    if renumbering.is_none() && seen.is_none() && head.omissions == 0 && fast_check::is_well_formed(image, layout, pass)
    {
        debug_assert_eq!(check_image(body, layout, pass, remarks), Ok(()), "the short way is as strict");
        return Ok(Record::from_checked(own));
    }
    check_body(ObservedMemory::new(body, seen), layout, pass, remarks, renumbering)?;
    Ok(Record::from_checked(own))
}

/// Checks the header and body of one layout: the core of [`check`], and of tests with single structures.
pub fn check_image(body: &[u8], layout: &'static Layout, pass: WalkPass, remarks: Omissions) -> Result<(), CheckError> {
    check_body(ObservedMemory::new(body, None), layout, pass, remarks, None)
}

fn check_body(
    memory: ObservedMemory<'_>,
    layout: &'static Layout,
    pass: WalkPass,
    remarks: Omissions,
    renumbering: Option<&Renumbering<'_>>,
) -> Result<(), CheckError> {
    let mut checker =
        Checker { renumbering, memory, cursor: HEADER_SIZE as u64, found: Omissions::default(), item: layout.name };
    let root = StructFrame::root(layout, HEADER_SIZE as u64);
    checker.take(&root, u64::from(layout.size))?;
    checker.structure(&root, pass)?;
    if checker.cursor != memory.len() {
        return Err(checker.error(&root, checker.cursor, RecordFault::TrailingBytes));
    }
    let claimed = Omissions(remarks.0 & !Omissions::TRUNCATED.0);
    if claimed != checker.found {
        return Err(checker.error(&root, 0, RecordFault::WrongRemarks));
    }
    Ok(())
}

type CheckResult = Result<(), CheckError>;

struct Checker<'a> {
    /// None if ids have the numbers of this version.
    renumbering: Option<&'a Renumbering<'a>>,
    memory: ObservedMemory<'a>,
    /// Where the next block must begin.
    cursor: u64,
    found: Omissions,
    /// The command whose parameters or outputs are being checked.
    item: &'static str,
}

impl Checker<'_> {
    fn error(&self, frame: &StructFrame<'_>, at: u64, fault: RecordFault) -> CheckError {
        CheckError { item: frame.layout.name, at, fault }
    }

    fn word(&self, frame: &StructFrame<'_>, at: u64) -> Result<u64, CheckError> {
        self.memory.read(at, 8).ok_or_else(|| self.error(frame, at, RecordFault::PastEnd))
    }

    /// Claims the next block of `size` bytes and verifies its end padding.
    fn take(&mut self, frame: &StructFrame<'_>, size: u64) -> Result<u64, CheckError> {
        let at = self.cursor;
        let end = at.checked_add(aligned(size)).filter(|end| *end <= self.memory.len());
        let Some(end) = end else { return Err(self.error(frame, at, RecordFault::PastEnd)) };
        self.zero(frame, at + size, end)?;
        self.cursor = end;
        Ok(at)
    }

    fn zero(&self, frame: &StructFrame<'_>, from: u64, to: u64) -> CheckResult {
        let bytes = self.memory.bytes(from, to);
        match bytes {
            Some(bytes) if bytes.iter().all(|it| *it == 0) => Ok(()),
            Some(_) => Err(self.error(frame, from, RecordFault::DirtyPadding)),
            None => Err(self.error(frame, from, RecordFault::PastEnd)),
        }
    }

    fn gaps(&self, frame: &StructFrame<'_>, gaps: &[Span]) -> CheckResult {
        gaps.iter()
            .try_for_each(|it| self.zero(frame, frame.base + u64::from(it.at), frame.base + u64::from(it.at + it.size)))
    }

    fn structure(&mut self, frame: &StructFrame<'_>, pass: WalkPass) -> CheckResult {
        if frame.depth > DEPTH_MAX {
            return Err(self.error(frame, frame.base, RecordFault::TooDeep));
        }
        if pass == WalkPass::Skeleton {
            self.check_skeleton(frame)?;
        }
        self.gaps(frame, frame.layout.gaps)?;
        frame.layout.fixups.iter().try_for_each(|it| self.work(frame, it, pass))
    }

    /// A skeleton is zero except for its pointers and the fields that are inputs of the call.
    fn check_skeleton(&self, frame: &StructFrame<'_>) -> CheckResult {
        let slots = frame.layout.fixups.iter().filter_map(|fixup| match fixup {
            Fixup::Chain { at } | Fixup::Pointer { at, .. } => Some(Span { at: *at, size: 8 }),
            _ => None,
        });
        let mut spans: Vec<Span> = frame.layout.keep.iter().copied().chain(slots).collect();
        spans.sort_by_key(|it| it.at);
        let mut end = 0;
        for span in spans {
            self.zero(frame, frame.base + u64::from(end), frame.base + u64::from(span.at.max(end)))?;
            end = end.max(span.at + span.size);
        }
        self.zero(frame, frame.base + u64::from(end), frame.base + u64::from(frame.layout.size))
    }

    fn work(&mut self, frame: &StructFrame<'_>, work: &Fixup, pass: WalkPass) -> CheckResult {
        let at = frame.base + u64::from(work.at());
        let is_skeleton = pass == WalkPass::Skeleton;
        match work {
            Fixup::Chain { .. } => self.chain(frame, at, pass),
            Fixup::Pointer { pointer, .. } => self.pointer(frame, at, pointer, pass, 0),
            _ if is_skeleton => Ok(()),
            Fixup::Handles { count, ty, .. } => self.handles(frame, at, u64::from(*count), *ty),
            Fixup::TypedHandle { ty, numbering, .. } => {
                let number = self.memory.read_field(frame.base, *ty).unwrap_or(0) as i32;
                self.typed_handle(frame, at, number, *numbering)
            }
            Fixup::Opaque { .. } => self.opaque(frame, at),
            Fixup::Text { size, .. } => self.fixed_text(frame, at, u64::from(*size)),
            Fixup::Select { union, selector, cases } => {
                let value = self.memory.read_field(frame.base, *selector).unwrap_or(0) as i32;
                let case = cases.iter().find(|it| it.values.contains(&i64::from(value)));
                self.select(frame, *union, case, pass)
            }
            Fixup::Tail { array, element, count } => {
                let used = rules::used_tail_size(&self.memory, frame, *array, *element, *count);
                self.zero(frame, at + used, at + u64::from(array.size))
            }
            Fixup::DeviceOrHost { .. } => self.device_or_host(frame, at),
        }
    }

    fn select(&mut self, frame: &StructFrame<'_>, union: Span, case: Option<&Case>, pass: WalkPass) -> CheckResult {
        let used = case.map_or(0, |it| it.size);
        let start = frame.base + u64::from(union.at);
        self.zero(frame, start + u64::from(used), start + u64::from(union.size))?;
        let Some(case) = case else { return Ok(()) };
        self.gaps(frame, case.gaps)?;
        case.fixups.iter().try_for_each(|it| self.work(frame, it, pass))
    }

    fn device_or_host(&mut self, frame: &StructFrame<'_>, at: u64) -> CheckResult {
        if ignores_addresses(self.item) {
            return self.opaque(frame, at);
        }
        if !uses_host_addresses(self.item) {
            return Ok(());
        }
        self.opaque(frame, at)?;
        if self.word(frame, at)? != 0 {
            self.found.add(Omissions::CONTENTS_MISSING);
        }
        Ok(())
    }

    fn opaque(&self, frame: &StructFrame<'_>, at: u64) -> CheckResult {
        match self.word(frame, at)? {
            0 | 2 => Ok(()),
            _ => Err(self.error(frame, at, RecordFault::WrongOpaque)),
        }
    }

    fn handles(&self, frame: &StructFrame<'_>, at: u64, count: u64, ty: HandleType) -> CheckResult {
        (0..count).try_for_each(|value| {
            let raw = self.memory.handle(at + value * 8, ty);
            let raw = raw.ok_or_else(|| self.error(frame, at + value * 8, RecordFault::PastEnd))?;
            let is_right = match self.renumbering {
                None => ObjectId::from_raw_typed(raw, ty).is_some(),
                Some(renumbering) => renumbering.renumber_id(at + value * 8, raw, ty),
            };
            if is_right { Ok(()) } else { Err(self.error(frame, at + value * 8, RecordFault::WrongHandle)) }
        })
    }

    fn typed_handle(&self, frame: &StructFrame<'_>, at: u64, number: i32, numbering: ObjectNumbering) -> CheckResult {
        match handle_type(number, numbering) {
            Some(ty) => self.handles(frame, at, 1, ty),
            // Of an object of unknown type, only its existence is known.
            None => self.opaque(frame, at),
        }
    }

    /// Characters followed by zeros, or no zero at all.
    fn fixed_text(&self, frame: &StructFrame<'_>, at: u64, size: u64) -> CheckResult {
        let Some(bytes) = self.memory.bytes(at, at + size) else {
            return Err(self.error(frame, at, RecordFault::PastEnd));
        };
        let end = bytes.iter().position(|it| *it == 0).unwrap_or(bytes.len());
        self.zero(frame, at + end as u64, at + size)
    }

    fn chain(&mut self, frame: &StructFrame<'_>, at: u64, pass: WalkPass) -> CheckResult {
        let mut slot = at;
        for _ in 0..=CHAIN_MAX {
            let offset = self.word(frame, slot)?;
            if offset == 0 {
                return Ok(());
            }
            if offset != self.cursor {
                return Err(self.error(frame, slot, RecordFault::WrongOffset));
            }
            slot = self.chained(frame, offset, pass)?;
        }
        Err(self.error(frame, at, RecordFault::TooDeep))
    }

    /// Checks one structure of a chain. Returns the position of its `pNext`, with which the caller continues.
    fn chained(&mut self, frame: &StructFrame<'_>, offset: u64, pass: WalkPass) -> Result<u64, CheckError> {
        const NEXT_AT: u64 = 8;
        let Some(s_type) = self.memory.u32(offset).map(|it| it as i32) else {
            return Err(self.error(frame, offset, RecordFault::PastEnd));
        };
        let Some(layout) = structure_by_type(s_type) else {
            if LOADER_LINKS.contains(&s_type) {
                return Err(self.error(frame, offset, RecordFault::WrongStub));
            }
            self.take(frame, 16)?;
            self.zero(frame, offset + 4, offset + 8)?;
            self.found.add(Omissions::UNKNOWN_STRUCTURES);
            return Ok(offset + NEXT_AT);
        };
        let inner = frame.child(layout, offset, 0);
        if inner.depth > DEPTH_MAX {
            return Err(self.error(frame, offset, RecordFault::TooDeep));
        }
        self.take(&inner, u64::from(layout.size))?;
        if pass == WalkPass::Skeleton {
            self.check_skeleton(&inner)?;
        }
        self.gaps(&inner, layout.gaps)?;
        // The chain continues after everything else to which this structure points.
        let rest = layout.fixups.iter().filter(|it| !matches!(it, Fixup::Chain { at } if u64::from(*at) == NEXT_AT));
        rest.into_iter().try_for_each(|it| self.work(&inner, it, pass))?;
        Ok(offset + NEXT_AT)
    }

    fn pointer(
        &mut self,
        frame: &StructFrame<'_>,
        at: u64,
        pointer: &Pointer,
        pass: WalkPass,
        element: u64,
    ) -> CheckResult {
        let slot = self.word(frame, at)?;
        if slot == 0 {
            return Ok(());
        }
        let action = pointer_action(pointer, pass);
        if action == PointerAction::Drop {
            return Err(self.error(frame, at, RecordFault::WrongMark));
        }
        match rules::pointer_use(&self.memory, &NoPackContext, frame, pointer.read) {
            PointerUse::Read => {}
            PointerUse::Ignored => return Err(self.error(frame, at, RecordFault::IgnoredPointer)),
            // The packer may not have known it either.
            PointerUse::Unknown if slot == Ptr::<u8>::PRESENT.0 => {
                self.found.add(Omissions::CONTENTS_MISSING);
                return Ok(());
            }
            PointerUse::Unknown => {}
        }
        let pass = match action {
            PointerAction::Follow(pass) => pass,
            PointerAction::Mark if slot == Ptr::<u8>::PRESENT.0 => return Ok(()),
            PointerAction::Mark | PointerAction::Drop => return Err(self.error(frame, at, RecordFault::WrongMark)),
        };
        if slot == Ptr::<u8>::PRESENT.0 && self.may_lack_contents(frame, pointer, element) {
            self.found.add(Omissions::CONTENTS_MISSING);
            return Ok(());
        }
        if slot == Ptr::<u8>::EMPTY.0 {
            let is_empty = rules::count(&self.memory, frame, pointer.len, element) == Some(0);
            let has_count = !matches!(pointer.to, Pointee::Blob(_) | Pointee::Template);
            return if is_empty && has_count { Ok(()) } else { Err(self.error(frame, at, RecordFault::WrongMark)) };
        }
        if slot != self.cursor {
            return Err(self.error(frame, at, RecordFault::WrongOffset));
        }
        self.target(frame, pointer, pass, element)
    }

    fn may_lack_contents(&self, frame: &StructFrame<'_>, pointer: &Pointer, element: u64) -> bool {
        match pointer.to {
            Pointee::Blob(_) | Pointee::Template => true,
            Pointee::Text => false,
            _ => rules::count(&self.memory, frame, pointer.len, element).is_none(),
        }
    }

    fn target(&mut self, frame: &StructFrame<'_>, pointer: &Pointer, pass: WalkPass, element: u64) -> CheckResult {
        match &pointer.to {
            Pointee::Text => return self.text(frame),
            Pointee::Blob(_) => return self.blob(frame),
            Pointee::Template => return self.template(frame),
            Pointee::AnyStruct => return self.any_structure(frame, pass),
            _ => {}
        }
        let count = rules::count(&self.memory, frame, pointer.len, element).unwrap_or(0);
        if count == 0 {
            return Err(self.error(frame, self.cursor, RecordFault::WrongOffset));
        }
        let size = target_size(&pointer.to);
        let Some(total) = count.checked_mul(size).filter(|it| *it <= self.memory.len()) else {
            return Err(self.error(frame, self.cursor, RecordFault::CountOverflow));
        };
        let first = self.take(frame, total)?;
        if let Pointee::Values(_) = pointer.to {
            return Ok(());
        }
        (0..count).try_for_each(|index| self.element(frame, &pointer.to, first + index * size, index, pass))
    }

    fn element(
        &mut self,
        frame: &StructFrame<'_>,
        target: &Pointee,
        at: u64,
        index: u64,
        pass: WalkPass,
    ) -> CheckResult {
        match target {
            Pointee::Struct(layout) => self.structure(&frame.child(layout, at, index), pass),
            Pointee::Handle(ty) => self.handles(frame, at, 1, *ty),
            Pointee::Pointer(inner) => self.pointer(frame, at, inner, pass, index),
            Pointee::Opaque => self.opaque(frame, at),
            Pointee::Values(_) | Pointee::AnyStruct | Pointee::Text | Pointee::Blob(_) | Pointee::Template => Ok(()),
        }
    }

    fn text(&mut self, frame: &StructFrame<'_>) -> CheckResult {
        let rest = self.memory.bytes(self.cursor, self.memory.len()).unwrap_or_default();
        match rest.iter().position(|it| *it == 0) {
            Some(end) => self.take(frame, end as u64 + 1).map(drop),
            None => Err(self.error(frame, self.cursor, RecordFault::UnterminatedText)),
        }
    }

    fn blob(&mut self, frame: &StructFrame<'_>) -> CheckResult {
        let at = self.take(frame, 8)?;
        let size = self.word(frame, at)?;
        if size > self.memory.len() {
            return Err(self.error(frame, at, RecordFault::CountOverflow));
        }
        self.take(frame, size).map(drop)
    }

    fn any_structure(&mut self, frame: &StructFrame<'_>, pass: WalkPass) -> CheckResult {
        let next = self.chained(frame, self.cursor, pass)?;
        self.chain(frame, next, pass)
    }

    fn template(&mut self, frame: &StructFrame<'_>) -> CheckResult {
        let at = self.take(frame, 8)?;
        let count = self.word(frame, at)?;
        let Some(total) = count.checked_mul(template::ENTRY_SIZE).filter(|it| *it <= self.memory.len()) else {
            return Err(self.error(frame, at, RecordFault::CountOverflow));
        };
        let entries = self.take(frame, total)?;
        (0..count).try_for_each(|it| self.template_entry(frame, entries + it * template::ENTRY_SIZE))
    }

    fn template_entry(&mut self, frame: &StructFrame<'_>, at: u64) -> CheckResult {
        let mut words = [0; 4];
        for (index, word) in words.iter_mut().enumerate() {
            *word = self.word(frame, at + index as u64 * 8)?;
        }
        let entry = template::entry_from(words);
        let Some(element) = template::element_of(entry.descriptor_type) else { return Ok(()) };
        let first = self.take(frame, element.size() * u64::from(entry.descriptor_count))?;
        match element {
            template::TemplateElement::Struct(layout) => (0..u64::from(entry.descriptor_count)).try_for_each(|index| {
                let at = first + index * element.size();
                self.structure(&frame.child(layout, at, index), WalkPass::Enter)
            }),
            template::TemplateElement::Handle(ty) => self.handles(frame, first, u64::from(entry.descriptor_count), ty),
            template::TemplateElement::Number | template::TemplateElement::Bytes => Ok(()),
        }
    }
}

/// Bytes of one element behind a pointer, in a record and in C memory.
pub fn target_size(target: &Pointee) -> u64 {
    match target {
        Pointee::Values(ty) => u64::from(ty.size()),
        Pointee::Struct(layout) => u64::from(layout.size),
        Pointee::Handle(_) | Pointee::Pointer(_) | Pointee::Opaque => 8,
        Pointee::AnyStruct | Pointee::Text | Pointee::Blob(_) | Pointee::Template => 1,
    }
}

/// The type of a handle that a sibling numbers.
pub fn handle_type(number: i32, numbering: ObjectNumbering) -> Option<HandleType> {
    match numbering {
        ObjectNumbering::ObjectType => HandleType::from_object_type(number),
        ObjectNumbering::DebugReport => HandleType::from_debug_report(number),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HostBytes;

    /// Tests run in debug builds, so they need this test for what release builds accept as a call.
    #[test]
    fn what_stands_beside_calls_is_a_call_in_no_build() {
        let mut words = Vec::new();
        HostBytes { region: 1, first: 0, bytes: &[7; 64] }.to_words(5, &[], &mut words);
        for kind in [beside::TIME, beside::HOST_WRITE, beside::METADATA, beside::HOST_BYTES] {
            let head = RecordHeader { kind, ..RecordHeader::from_words(words[0], words[1]) };
            words[..2].copy_from_slice(&head.to_words());
            assert!(check(&words).is_err() && from_trusted_header(&words).is_none(), "kind {kind}");
        }
        let head = RecordHeader { body_words: 2, command: 0, kind: 0, omissions: 0, call: 1, order_edge_count: 0 };
        assert!(from_trusted_header(&head.to_words()).is_some());
        assert!(from_trusted_header(&head.to_words()[..1]).is_none());
    }
}
