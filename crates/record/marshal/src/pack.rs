//! Packs C memory into a record.
//!
//! It copies the bytes of a structure, then applies its fixups: padding is zeroed, handles are replaced by ids, and the
//! target of each pointer becomes a new block at the cursor, depth first.

use lavascope_abi::desc::{Blob, Case, Fixup, HandleAccess, Layout, Pointee, Pointer, ReadCondition, Span};
use lavascope_abi::{Command, HandleType, ObjectId, Ptr, structure_by_type};
use lavascope_record::check::{handle_type, target_size};
use lavascope_record::encoding::{Omissions, RecordPhase};
use lavascope_record::memory::ReadableMemory;
use lavascope_record::pack_context::PackContext;
use lavascope_record::rules::{self, PointerUse};
use lavascope_record::template;
use lavascope_record::walk::{
    CHAIN_MAX, DEPTH_MAX, LOADER_LINKS, PointerAction, StructFrame, WalkPass, ignores_addresses, pointer_action,
    uses_host_addresses,
};

use crate::c_memory::CMemory;
use crate::record_buffer::RecordBuffer;
use crate::unpack::opaque_address;

/// Maps handles to object ids.
pub trait IdResolver {
    /// The id of a handle that is not null; [`ObjectId::unknown`] for a handle that was never created. `access` is
    /// whether the call requires external synchronization of the object.
    fn id(&self, ty: HandleType, handle: u64, access: HandleAccess) -> ObjectId;
}

/// A pointer that is read under a condition, found while packing.
#[derive(Clone, Copy)]
pub struct ConditionalPointer {
    /// The address of the pointer itself.
    pub address: u64,
    pub owner: &'static Layout,
    pub pointer_use: PointerUse,
}

/// Makes the record of a call, on the application's thread.
pub struct Packer<'a, I: ?Sized, F: ?Sized> {
    pub ids: &'a I,
    pub context: &'a F,
    /// Set to collect the conditional pointers, both ignored and read ones.
    pub conditional: Option<Vec<ConditionalPointer>>,
    memory: CMemory,
    omissions: Omissions,
    /// The command whose parameters or outputs are being packed.
    item: &'static str,
}

impl<'a, I: IdResolver + ?Sized, F: PackContext + ?Sized> Packer<'a, I, F> {
    pub fn new(ids: &'a I, facts: &'a F) -> Self {
        // SAFETY: it stays in the packer, which passes it to the rules only in `pack` and the functions it calls. The
        // functions that call `pack` are unsafe and require an image with valid pointers.
        let memory = unsafe { CMemory::of_this_process() };
        Packer { ids, context: facts, conditional: None, memory, omissions: Omissions::default(), item: "" }
    }

    /// Packs the parameters at `image`, before the driver executes the call.
    ///
    /// # Safety
    ///
    /// `image` must point to the parameters of a call of `command`. Until this returns, their pointers and those of
    /// their targets must be valid as the valid usage of the command demands for its inputs. The pack context must be
    /// right about the objects of the call.
    pub unsafe fn pack_parameters<'s>(
        &mut self,
        stream: &'s mut RecordBuffer,
        command: Command,
        image: *const u8,
        call: u64,
    ) -> &'s [u64] {
        // SAFETY: by the contract the image has these parameters, and pointers that are valid for reading the inputs.
        unsafe { self.pack(stream, command.desc().parameters, WalkPass::Enter, image) };
        stream.end(command, RecordPhase::Enter, call, self.omissions)
    }

    /// Packs the outputs at `image`, as `outputs_image` gathers them; none for a command without outputs.
    ///
    /// # Safety
    ///
    /// `image` must point to the outputs of a call of `command` that returned. Until this returns, their pointers must
    /// be valid for what the command has written.
    pub unsafe fn pack_outputs<'s>(
        &mut self,
        stream: &'s mut RecordBuffer,
        command: Command,
        image: *const u8,
        call: u64,
    ) -> Option<&'s [u64]> {
        // SAFETY: by the contract the image has these outputs, and pointers that are valid for what was written.
        unsafe { self.pack(stream, command.desc().outputs?.layout, WalkPass::Leave, image) };
        Some(stream.end(command, RecordPhase::Leave, call, self.omissions))
    }

    /// # Safety
    ///
    /// `image` must have this layout, and its pointers must be valid for everything that the pass reads by the tables.
    unsafe fn pack(&mut self, stream: &mut RecordBuffer, layout: &'static Layout, pass: WalkPass, image: *const u8) {
        self.omissions = Omissions::default();
        self.item = layout.name;
        stream.begin();
        let root = StructFrame::root(layout, image.expose_provenance() as u64);
        let at = stream.claim(layout.size as usize);
        self.copy(stream, at, root.base, layout.size as usize);
        self.structure(stream, &root, at, pass);
    }

    /// Packs one structure as if it were the image of a call, for tests.
    ///
    /// # Safety
    ///
    /// `image` must have this layout, and its pointers must be valid as the valid usage of the structure demands.
    pub unsafe fn pack_structure<'s>(
        &mut self,
        stream: &'s mut RecordBuffer,
        layout: &'static Layout,
        pass: WalkPass,
        image: *const u8,
    ) -> (&'s [u64], Omissions) {
        // SAFETY: by the contract the image has this layout and valid pointers.
        unsafe { self.pack(stream, layout, pass, image) };
        (stream.last_record(), self.omissions)
    }

    fn copy(&self, stream: &mut RecordBuffer, at: usize, from: u64, size: usize) {
        let from = std::ptr::with_exposed_provenance::<u8>(from as usize);
        // SAFETY: a block is always claimed before it is copied into. `at` and `size` are those of the block, or of a
        // span of the structure in it, from the tables.
        let to = unsafe { stream.bytes(at, size) }.as_mut_ptr();
        // SAFETY: only `pack` leads here. By its contract the image and the targets of its pointers are readable, and
        // the walk reads only as many bytes as the tables and length fields state. The buffer is ours, so the two do
        // not overlap.
        unsafe { std::ptr::copy_nonoverlapping(from, to, size) };
    }

    /// Applies the fixups of a structure whose bytes are already copied.
    fn structure(&mut self, stream: &mut RecordBuffer, frame: &StructFrame<'_>, at: usize, pass: WalkPass) {
        if pass == WalkPass::Skeleton {
            // SAFETY: the structure was copied to `at`, into a block that was claimed for it.
            unsafe { stream.zero(at, frame.layout.size as usize) };
            for span in frame.layout.keep {
                self.copy(stream, at + span.at as usize, frame.base + u64::from(span.at), span.size as usize);
            }
        }
        self.gaps(stream, at, frame.layout.gaps);
        for work in frame.layout.fixups {
            self.work(stream, frame, at, work, pass);
        }
    }

    fn gaps(&self, stream: &mut RecordBuffer, at: usize, gaps: &[Span]) {
        for gap in gaps {
            // SAFETY: by the tables a gap is inside its structure, and that is in a block that was claimed for it.
            unsafe { stream.zero(at + gap.at as usize, gap.size as usize) };
        }
    }

    /// `at` is the offset of the structure in the record.
    fn work(&mut self, stream: &mut RecordBuffer, frame: &StructFrame<'_>, at: usize, work: &Fixup, pass: WalkPass) {
        let from = frame.base + u64::from(work.at());
        let to = at + work.at() as usize;
        match work {
            Fixup::Chain { .. } => self.chain(stream, frame, from, to, pass),
            Fixup::Pointer { pointer, .. } => self.pointer(stream, frame, from, to, pointer, pass, 0),
            _ if pass == WalkPass::Skeleton => {}
            Fixup::Handles { count, ty, access, .. } => self.handles(stream, to, *count as usize, *ty, *access),
            Fixup::TypedHandle { ty, numbering, access, .. } => {
                let number = self.memory.read_field(frame.base, *ty).unwrap_or(0) as i32;
                match handle_type(number, *numbering) {
                    Some(ty) => self.handles(stream, to, 1, ty, *access),
                    None => opaque(stream, to),
                }
            }
            Fixup::Opaque { .. } => opaque(stream, to),
            Fixup::Text { size, .. } => self.fixed_text(stream, to, *size as usize),
            Fixup::Select { union, selector, cases } => {
                let value = self.memory.read_field(frame.base, *selector).unwrap_or(0) as i32;
                let case = cases.iter().find(|it| it.values.contains(&i64::from(value)));
                self.select(stream, frame, at, *union, case, pass);
            }
            Fixup::Tail { array, element, count } => {
                let used = rules::used_tail_size(&self.memory, frame, *array, *element, *count) as usize;
                // SAFETY: `used` is at most the size of the array, a field of the structure in the claimed block.
                unsafe { stream.zero(to + used, array.size as usize - used) };
            }
            Fixup::DeviceOrHost { .. } => self.device_or_host(stream, to),
        }
    }

    fn select(
        &mut self,
        stream: &mut RecordBuffer,
        frame: &StructFrame<'_>,
        at: usize,
        union: Span,
        case: Option<&Case>,
        pass: WalkPass,
    ) {
        let used = case.map_or(0, |it| it.size as usize);
        // SAFETY: by the tables a case is not larger than its union, and that is in a block that was claimed for it.
        unsafe { stream.zero(at + union.at as usize + used, union.size as usize - used) };
        let Some(case) = case else { return };
        self.gaps(stream, at, case.gaps);
        for work in case.fixups {
            self.work(stream, frame, at, work, pass);
        }
    }

    fn device_or_host(&mut self, stream: &mut RecordBuffer, to: usize) {
        if ignores_addresses(self.item) {
            // Only whether there is a transform is recorded.
            opaque(stream, to);
        } else if uses_host_addresses(self.item) {
            opaque(stream, to);
            if stream.word(to) != 0 {
                self.omissions.add(Omissions::CONTENTS_MISSING);
            }
        }
    }

    fn handles(&mut self, stream: &mut RecordBuffer, to: usize, count: usize, ty: HandleType, access: HandleAccess) {
        for value in 0..count {
            let handle = stream.word(to + value * 8);
            stream.write_word(to + value * 8, self.id(ty, handle, access));
        }
    }

    fn id(&self, ty: HandleType, handle: u64, access: HandleAccess) -> u64 {
        if handle == 0 { 0 } else { self.ids.id(ty, handle, access).raw() }
    }

    /// Bytes after the terminator of a string are not part of the call, so they are zeroed.
    fn fixed_text(&self, stream: &mut RecordBuffer, to: usize, size: usize) {
        // SAFETY: by the tables a string of fixed size is a field of a structure for which a block was claimed.
        let bytes = unsafe { stream.bytes(to, size) };
        let end = bytes.iter().position(|it| *it == 0).unwrap_or(size);
        bytes[end..].fill(0);
    }

    fn chain(&mut self, stream: &mut RecordBuffer, frame: &StructFrame<'_>, from: u64, to: usize, pass: WalkPass) {
        const NEXT_AT: u64 = 8;
        let (mut from, mut to) = (from, to);
        for _ in 0..CHAIN_MAX {
            let Some(next) = self.next_in_chain(from) else { return stream.write_word(to, 0) };
            let offset = self.chained(stream, frame, next, pass);
            stream.write_word(to, offset as u64);
            if offset == 0 {
                return;
            }
            from = next + NEXT_AT;
            to = offset + NEXT_AT as usize;
        }
        stream.write_word(to, 0);
        self.omissions.add(Omissions::TRUNCATED);
    }

    /// The next structure of a chain. Structures that the loader adds are skipped.
    fn next_in_chain(&self, from: u64) -> Option<u64> {
        let mut next = self.memory.follow(from)?;
        for _ in 0..CHAIN_MAX {
            let s_type = self.memory.u32(next)? as i32;
            if !LOADER_LINKS.contains(&s_type) {
                return Some(next);
            }
            next = self.memory.follow(next + 8)?;
        }
        None
    }

    /// Packs one structure of a chain; the caller continues with the next. Zero if the chain had to be cut.
    fn chained(&mut self, stream: &mut RecordBuffer, frame: &StructFrame<'_>, base: u64, pass: WalkPass) -> usize {
        const NEXT_AT: u32 = 8;
        let s_type = self.memory.u32(base).unwrap_or(0) as i32;
        let Some(layout) = structure_by_type(s_type) else {
            self.omissions.add(Omissions::UNKNOWN_STRUCTURES);
            let at = stream.claim(16);
            stream.write_word(at, u64::from(s_type as u32));
            return at;
        };
        let inner = frame.child(layout, base, 0);
        if inner.depth > DEPTH_MAX {
            self.omissions.add(Omissions::TRUNCATED);
            return 0;
        }
        let at = stream.claim(layout.size as usize);
        if pass == WalkPass::Skeleton {
            for span in layout.keep {
                self.copy(stream, at + span.at as usize, base + u64::from(span.at), span.size as usize);
            }
        } else {
            self.copy(stream, at, base, layout.size as usize);
        }
        self.gaps(stream, at, layout.gaps);
        for work in layout.fixups.iter().filter(|it| !matches!(it, Fixup::Chain { at } if *at == NEXT_AT)) {
            self.work(stream, &inner, at, work, pass);
        }
        at
    }

    #[expect(clippy::too_many_arguments, reason = "a pointer has two places and four circumstances")]
    fn pointer(
        &mut self,
        stream: &mut RecordBuffer,
        frame: &StructFrame<'_>,
        from: u64,
        to: usize,
        pointer: &Pointer,
        pass: WalkPass,
        element: u64,
    ) {
        let Some(target) = self.memory.follow(from) else { return stream.write_word(to, 0) };
        let action = pointer_action(pointer, pass);
        if action == PointerAction::Drop {
            return stream.write_word(to, 0);
        }
        let verdict = rules::pointer_use(&self.memory, self.context, frame, pointer.read);
        if let Some(conditional) = self.conditional.as_mut().filter(|_| pointer.read != ReadCondition::Always) {
            conditional.push(ConditionalPointer { address: from, owner: frame.layout, pointer_use: verdict });
        }
        match verdict {
            PointerUse::Read => {}
            PointerUse::Ignored => return stream.write_word(to, 0),
            PointerUse::Unknown => {
                let mark = self.missing();
                return stream.write_word(to, mark);
            }
        }
        let slot = match action {
            PointerAction::Mark => Ptr::<u8>::PRESENT.0,
            PointerAction::Drop => 0,
            PointerAction::Follow(pass) => self.target(stream, frame, target, pointer, pass, element),
        };
        stream.write_word(to, slot);
    }

    /// Packs the target of a pointer. Returns the value for the pointer field.
    fn target(
        &mut self,
        stream: &mut RecordBuffer,
        frame: &StructFrame<'_>,
        from: u64,
        pointer: &Pointer,
        pass: WalkPass,
        element: u64,
    ) -> u64 {
        match &pointer.to {
            Pointee::Text => return self.text(stream, from),
            Pointee::Blob(kind) => return self.blob(stream, frame, from, *kind),
            Pointee::Template => return self.template(stream, frame, from),
            Pointee::AnyStruct => return self.any_structure(stream, frame, from, pass),
            _ => {}
        }
        let Some(count) = rules::count(&self.memory, frame, pointer.len, element) else {
            return self.missing();
        };
        if count == 0 {
            return Ptr::<u8>::EMPTY.0;
        }
        if frame.depth >= DEPTH_MAX {
            self.omissions.add(Omissions::TRUNCATED);
            return 0;
        }
        let size = target_size(&pointer.to) as usize;
        let stride = pointer.stride.and_then(|it| self.memory.read_field(frame.base, it)).unwrap_or(size as u64);
        let first = stream.claim(count as usize * size);
        if stride == size as u64 {
            self.copy(stream, first, from, count as usize * size);
        } else {
            for index in 0..count {
                self.copy(stream, first + index as usize * size, from + index * stride, size);
            }
        }
        self.elements(stream, frame, from, first, pointer, (count, stride), pass);
        first as u64
    }

    #[expect(clippy::too_many_arguments, reason = "an array has two places and four circumstances")]
    fn elements(
        &mut self,
        stream: &mut RecordBuffer,
        frame: &StructFrame<'_>,
        from: u64,
        first: usize,
        pointer: &Pointer,
        (count, stride): (u64, u64),
        pass: WalkPass,
    ) {
        match &pointer.to {
            Pointee::Values(_) => {}
            Pointee::Handle(ty) => self.handles(stream, first, count as usize, *ty, pointer.access),
            Pointee::Opaque => (0..count as usize).for_each(|it| opaque(stream, first + it * 8)),
            Pointee::Struct(layout) => {
                if layout.fixups.is_empty() && layout.gaps.is_empty() && pass != WalkPass::Skeleton {
                    return;
                }
                for index in 0..count {
                    let inner = frame.child(layout, from + index * stride, index);
                    self.structure(stream, &inner, first + index as usize * layout.size as usize, pass);
                }
            }
            Pointee::Pointer(inner) => {
                for index in 0..count {
                    let to = first + index as usize * 8;
                    self.pointer(stream, frame, from + index * 8, to, inner, pass, index);
                }
            }
            // These are not arrays.
            Pointee::Text | Pointee::AnyStruct | Pointee::Blob(_) | Pointee::Template => {}
        }
    }

    fn missing(&mut self) -> u64 {
        self.omissions.add(Omissions::CONTENTS_MISSING);
        Ptr::<u8>::PRESENT.0
    }

    fn text(&mut self, stream: &mut RecordBuffer, from: u64) -> u64 {
        let text = std::ptr::with_exposed_provenance::<std::ffi::c_char>(from as usize);
        // SAFETY: by the contract of `pack` the pointers are valid, and the valid usage of each string in the tables
        // demands a null-terminated UTF-8 string.
        let size = unsafe { std::ffi::CStr::from_ptr(text) }.to_bytes_with_nul().len();
        let at = stream.claim(size);
        self.copy(stream, at, from, size);
        at as u64
    }

    fn blob(&mut self, stream: &mut RecordBuffer, frame: &StructFrame<'_>, from: u64, kind: Blob) -> u64 {
        let described = |memory| match kind {
            // The address of data that a record lacks leads to nothing.
            Blob::TensorConstant if from != opaque_address() => rules::tensor_constant_bytes(memory, frame),
            _ => None,
        };
        let size = self.context.blob_size(kind, frame).or_else(|| described(&self.memory));
        let Some(size) = size else { return self.missing() };
        let at = stream.claim(8);
        stream.write_word(at, u64::from(size));
        let data = stream.claim(size as usize);
        self.copy(stream, data, from, size as usize);
        at as u64
    }

    fn any_structure(&mut self, stream: &mut RecordBuffer, frame: &StructFrame<'_>, from: u64, pass: WalkPass) -> u64 {
        let at = self.chained(stream, frame, from, pass);
        if at != 0 {
            self.chain(stream, frame, from + 8, at + 8, pass);
        }
        at as u64
    }

    fn template(&mut self, stream: &mut RecordBuffer, frame: &StructFrame<'_>, from: u64) -> u64 {
        let template = frame.field("descriptorUpdateTemplate").and_then(|at| self.memory.read(at, 8));
        let Some(entries) = template.and_then(|it| self.context.template(it)) else { return self.missing() };
        let at = stream.claim(8);
        stream.write_word(at, entries.len() as u64);
        let list = stream.claim(entries.len() * template::ENTRY_SIZE as usize);
        for (index, entry) in entries.iter().enumerate() {
            for (word, value) in template::entry_words(entry).into_iter().enumerate() {
                stream.write_word(list + index * template::ENTRY_SIZE as usize + word * 8, value);
            }
        }
        for entry in &entries {
            self.template_entry(stream, frame, from, entry);
        }
        at as u64
    }

    fn template_entry(
        &mut self,
        stream: &mut RecordBuffer,
        frame: &StructFrame<'_>,
        from: u64,
        entry: &lavascope_abi::DescriptorUpdateTemplateEntry,
    ) {
        let Some(element) = template::element_of(entry.descriptor_type) else { return };
        let (size, count) = (element.size() as usize, entry.descriptor_count as usize);
        let first = stream.claim(size * count);
        let base = from + entry.offset;
        if let template::TemplateElement::Bytes = element {
            return self.copy(stream, first, base, count);
        }
        for index in 0..count {
            let (from, to) = (base + index as u64 * entry.stride, first + index * size);
            self.copy(stream, to, from, size);
            match element {
                template::TemplateElement::Struct(layout) => {
                    self.structure(stream, &frame.child(layout, from, index as u64), to, WalkPass::Enter);
                }
                template::TemplateElement::Handle(ty) => self.handles(stream, to, 1, ty, HandleAccess::Shared),
                template::TemplateElement::Number | template::TemplateElement::Bytes => {}
            }
        }
    }
}

/// Replaces an address by a marker that keeps only whether the address is null.
fn opaque(stream: &mut RecordBuffer, to: usize) {
    let mark = if stream.word(to) == 0 { 0 } else { Ptr::<u8>::PRESENT.0 };
    stream.write_word(to, mark);
}
