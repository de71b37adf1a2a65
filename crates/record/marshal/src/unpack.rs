//! Unpacks a record into C memory for a driver.

use lavascope_abi::desc::{Blob, Field, Fixup, Layout, ObjectNumbering, Pointee, Pointer, Ty};
use lavascope_abi::{
    ObjectId, Ptr, PushConstantsInfo, PushDataInfoEXT, SpecializationInfo, SpecializationMapEntry, Structure,
    WriteDescriptorSetInlineUniformBlock, structure_by_type,
};
use lavascope_record::check::{handle_type, target_size};
use lavascope_record::encoding::{HEADER_SIZE, Record, RecordPhase};
use lavascope_record::memory::{ReadableMemory, RecordMemory};
use lavascope_record::rules;
use lavascope_record::template;
use lavascope_record::walk::{
    PointerAction, StructFrame, WalkPass, aligned, ignores_addresses, pointer_action, uses_host_addresses,
};

use crate::arena::Arena;

/// Maps ids to handles of this process.
pub trait HandleResolver {
    /// The handle of an id that is not null.
    fn handle(&self, id: ObjectId) -> u64;

    /// Whether device addresses differ in this process. [`HandleResolver::address`] maps them.
    fn has_addresses(&self) -> bool {
        false
    }

    /// Maps a recorded device address to one of this process.
    fn address(&self, recorded: u64) -> u64 {
        recorded
    }

    /// Whether addresses are also looked for in bytes that only shaders understand.
    /// [`HandleResolver::patch_bytes`] and [`HandleResolver::patch_constants`] replace them.
    fn has_patched_bytes(&self) -> bool {
        false
    }

    /// Replaces what these bytes have of the recorded device. Shaders see the first one at this offset.
    fn patch_bytes(&self, _first: u64, _bytes: &mut [u8]) {}

    /// The same for the values of specialization constants.
    fn patch_constants(&self, _entries: &[SpecializationMapEntry], _bytes: &mut [u8]) {}

    /// Whether queue families have other indices in this process. [`HandleResolver::family`] maps them.
    fn has_families(&self) -> bool {
        false
    }

    /// Maps a recorded queue family index to one of this process.
    fn family(&self, recorded: u32) -> u32 {
        recorded
    }

    /// The address of host data that the record does not contain, for the structure at this index of its array.
    fn host_contents(&self, _index: u64) -> Option<u64> {
        None
    }

    /// Size in bytes to allocate for an output whose size is not in the record.
    fn blob_size(&self, _blob: Blob, _owner: &StructFrame<'_>) -> Option<u32> {
        None
    }
}

/// The reader of the unpacked memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnpackPurpose {
    /// A driver. Unknown structures are skipped, addresses of the application become null, and data that is missing in
    /// the record is an error.
    Driver,
    /// The packer: everything present in the record is present in memory.
    RoundTrip,
}

/// Why a record cannot be unpacked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnpackError {
    #[error("{item} asks for {bytes} bytes of outputs; at most {OUTPUT_MAX} are provided")]
    OutputsTooLarge { item: &'static str, bytes: u64 },
    #[error("{item} leads to data that is not in the record")]
    Missing { item: &'static str },
}

/// Fields that contain a queue family index.
const FAMILIES: [&str; 3] = ["queueFamilyIndex", "srcQueueFamilyIndex", "dstQueueFamilyIndex"];

/// The record contains the capacities of output arrays; a corrupt record may contain any value.
const OUTPUT_MAX: u64 = 1 << 28;

/// Unpacks records into C memory in an arena.
pub struct Unpacker<'a, H: ?Sized> {
    pub handles: &'a H,
    pub purpose: UnpackPurpose,
}

/// # Safety
///
/// `address` must be zero or that of an opaque pointer, or lead to `size` initialized bytes that nobody else refers to in `'a`.
unsafe fn bytes_at<'a>(address: u64, size: usize) -> &'a mut [u8] {
    match address {
        0 => &mut [],
        // The record says that there are none.
        address if address == opaque_address() => &mut [],
        // SAFETY: so many bytes are there for `'a`, by the contract of this function.
        address => unsafe {
            std::slice::from_raw_parts_mut(std::ptr::with_exposed_provenance_mut(address as usize), size)
        },
    }
}

/// The target of opaque pointers, which nobody may dereference.
static OPAQUE_TARGET: [u64; 2] = [0; 2];

pub(crate) fn opaque_address() -> u64 {
    OPAQUE_TARGET.as_ptr().expose_provenance() as u64
}

impl<H: HandleResolver + ?Sized> Unpacker<'_, H> {
    /// Unpacks the parameters or outputs of a call. The image lives until the arena is cleared.
    pub fn unpack(&self, record: Record<'_>, arena: &mut Arena) -> Result<*mut u8, UnpackError> {
        let desc = record.command().desc();
        let (layout, pass) = match (record.phase(), desc.outputs) {
            (RecordPhase::Leave, Some(outputs)) => (outputs.layout, WalkPass::Leave),
            _ => (desc.parameters, WalkPass::Enter),
        };
        self.unpack_image(record.body(), layout, pass, arena)
    }

    /// Unpacks a checked body with this layout.
    ///
    /// `body` must have passed `check_image` for this layout and pass. Otherwise, as with
    /// [`from_trusted`](lavascope_record::from_trusted), the image may have other contents, and a wrong count or offset
    /// panics.
    pub fn unpack_image(
        &self,
        body: &[u8],
        layout: &'static Layout,
        pass: WalkPass,
        arena: &mut Arena,
    ) -> Result<*mut u8, UnpackError> {
        let mut walk = UnpackWalk {
            handles: self.handles,
            purpose: self.purpose,
            memory: RecordMemory { body },
            arena,
            outputs: 0,
            item: layout.name,
        };
        let root = StructFrame::root(layout, HEADER_SIZE as u64);
        let image = walk.copy(root.base, layout.size as usize);
        walk.structure(&root, image, pass)?;
        Ok(image)
    }
}

type UnpackResult = Result<(), UnpackError>;

struct UnpackWalk<'a, H: ?Sized> {
    handles: &'a H,
    purpose: UnpackPurpose,
    memory: RecordMemory<'a>,
    arena: &'a mut Arena,
    /// Size in bytes of the outputs allocated so far.
    outputs: u64,
    /// The command whose parameters or outputs are being unpacked.
    item: &'static str,
}

impl<H: HandleResolver + ?Sized> UnpackWalk<'_, H> {
    /// Copies bytes of the record into the arena.
    fn copy(&mut self, from: u64, size: usize) -> *mut u8 {
        let bytes = &self.memory.body[from as usize..][..size];
        let to = self.arena.claim(size);
        // SAFETY: the arena returned `size` bytes at `to` that nobody else uses, and the slice has the same size.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, size) };
        to
    }

    fn write(to: *mut u8, value: u64) {
        // SAFETY: a slot is a field of eight bytes of a layout, or an element of that size of an array. The functions
        // here take it from a block that `copy` or `claim` made for the whole layout or array, in an arena that stays
        // borrowed. Slots in unions may be aligned to less than a word.
        unsafe { to.cast::<u64>().write_unaligned(value) };
    }

    fn structure(&mut self, frame: &StructFrame<'_>, to: *mut u8, pass: WalkPass) -> UnpackResult {
        if self.translates() && pass == WalkPass::Enter {
            self.translate(frame.layout, frame.base, to);
        }
        frame.layout.fixups.iter().try_for_each(|it| self.fix_up(frame, to, it, pass))?;
        self.patch_values(frame.layout, to, pass);
        Ok(())
    }

    /// Replaces addresses in values of shaders that a structure points to. `to` is the address of the unpacked structure.
    fn patch_values(&self, layout: &'static Layout, to: *mut u8, pass: WalkPass) {
        if pass != WalkPass::Enter || !self.handles.has_patched_bytes() {
            return;
        }
        let is = |other: &'static Layout| std::ptr::eq(layout, other);
        if is(SpecializationInfo::layout()) {
            // SAFETY: `to` leads to an unpacked structure of this type. Its pointers are null, or lead to as many entries and
            // bytes as the counts say, in an arena that nobody else uses meanwhile.
            unsafe {
                let info = &*to.cast::<SpecializationInfo>();
                let entries = match info.map_entry_count {
                    count if info.p_map_entries.is_null() || info.p_map_entries.0 == opaque_address() || count == 0 => {
                        &[]
                    }
                    count => std::slice::from_raw_parts(info.p_map_entries.as_ptr(), count as usize),
                };
                let bytes = bytes_at(info.p_data.0, info.data_size as usize);
                self.handles.patch_constants(entries, bytes);
            }
        } else if is(WriteDescriptorSetInlineUniformBlock::layout()) {
            // SAFETY: `to` leads to an unpacked structure of this type, whose pointer is null or leads to so many bytes.
            unsafe {
                let block = &*to.cast::<WriteDescriptorSetInlineUniformBlock>();
                self.handles.patch_bytes(0, bytes_at(block.p_data.0, block.data_size as usize));
            }
        } else if is(PushDataInfoEXT::layout()) {
            // SAFETY: `to` leads to an unpacked structure of this type, whose pointer is null or leads to so many bytes.
            unsafe {
                let info = &*to.cast::<PushDataInfoEXT>();
                self.handles.patch_bytes(info.offset.into(), bytes_at(info.data.address.0, info.data.size as usize));
            }
        } else if is(PushConstantsInfo::layout()) {
            // SAFETY: `to` leads to an unpacked structure of this type, whose pointer is null or leads to so many bytes.
            unsafe {
                let info = &*to.cast::<PushConstantsInfo>();
                self.handles.patch_bytes(info.offset.into(), bytes_at(info.p_values.0, info.size as usize));
            }
        }
    }

    /// Replaces a handle, a pointer or the like in a copied structure. `to` is the address of the structure in the arena.
    fn fix_up(&mut self, frame: &StructFrame<'_>, to: *mut u8, fixup: &Fixup, pass: WalkPass) -> UnpackResult {
        let from = frame.base + u64::from(fixup.at());
        let slot = to.wrapping_add(fixup.at() as usize);
        match fixup {
            Fixup::Chain { .. } => return self.chain(frame, from, slot, pass),
            Fixup::Pointer { pointer, .. } => return self.pointer(frame, from, slot, pointer, pass, 0),
            _ if pass == WalkPass::Skeleton => {}
            Fixup::Handles { count, .. } => self.handle_array(from, slot, u64::from(*count)),
            Fixup::TypedHandle { ty, numbering, .. } => {
                let number = self.memory.read_field(frame.base, *ty).unwrap_or(0) as i32;
                self.typed_handle(from, slot, number, *numbering);
            }
            Fixup::Opaque { .. } => self.opaque(from, slot),
            Fixup::DeviceOrHost { .. } => return self.device_or_host(frame, from, slot),
            Fixup::Text { .. } | Fixup::Tail { .. } => {}
            Fixup::Select { selector, cases, .. } => {
                let value = self.memory.read_field(frame.base, *selector).unwrap_or(0) as i32;
                let case = cases.iter().find(|it| it.values.contains(&i64::from(value)));
                let fixups = case.map_or(&[][..], |it| it.fixups);
                return fixups.iter().try_for_each(|it| self.fix_up(frame, to, it, pass));
            }
        }
        Ok(())
    }

    /// Whether any plain values differ in this process.
    fn translates(&self) -> bool {
        self.handles.has_addresses() || self.handles.has_families()
    }

    /// Maps device addresses and queue families among the plain values of a structure.
    fn translate(&self, layout: &Layout, from: u64, to: *mut u8) {
        for field in layout.fields {
            for index in 0..field.count {
                let at = u64::from(field.at + index * field.ty.size());
                match field.ty {
                    Ty::DeviceAddress => {
                        Self::write(to.wrapping_add(at as usize), self.handles.address(self.word(from + at)));
                    }
                    Ty::U32 if FAMILIES.contains(&field.name) => {
                        let family = self.handles.family(self.memory.u32(from + at).unwrap_or(0));
                        // SAFETY: the field is part of the layout, for whose size `copy` made the block at `to`.
                        unsafe { to.wrapping_add(at as usize).cast::<u32>().write_unaligned(family) };
                    }
                    // The active member of a union is not known here.
                    Ty::Struct(inner) if !layout.is_union => {
                        self.translate(inner, from + at, to.wrapping_add(at as usize));
                    }
                    _ => {}
                }
            }
        }
    }

    fn word(&self, at: u64) -> u64 {
        self.memory.read(at, 8).unwrap_or(0)
    }

    fn handle_array(&self, from: u64, slot: *mut u8, count: u64) {
        for value in 0..count {
            let raw = self.word(from + value * 8);
            let handle = match ObjectId::from_raw(raw) {
                Some(id) if !id.is_null() => self.handles.handle(id),
                _ => 0,
            };
            Self::write(slot.wrapping_add(value as usize * 8), handle);
        }
    }

    fn typed_handle(&self, from: u64, slot: *mut u8, number: i32, numbering: ObjectNumbering) {
        match handle_type(number, numbering) {
            Some(_) => self.handle_array(from, slot, 1),
            None => self.opaque(from, slot),
        }
    }

    /// A driver must not dereference pointers that only the application understands.
    fn opaque(&self, from: u64, slot: *mut u8) {
        let is_present = self.word(from) != 0 && self.purpose == UnpackPurpose::RoundTrip;
        Self::write(slot, if is_present { opaque_address() } else { 0 });
    }

    fn device_or_host(&self, frame: &StructFrame<'_>, from: u64, slot: *mut u8) -> UnpackResult {
        if ignores_addresses(self.item) {
            Self::write(slot, if self.word(from) == 0 { 0 } else { opaque_address() });
        } else if uses_host_addresses(self.item) {
            if self.word(from) != 0 && self.purpose == UnpackPurpose::Driver {
                return Err(UnpackError::Missing { item: frame.layout.name });
            }
            self.opaque(from, slot);
        } else if self.handles.has_addresses() {
            Self::write(slot, self.handles.address(self.word(from)));
        }
        Ok(())
    }

    fn chain(&mut self, frame: &StructFrame<'_>, from: u64, slot: *mut u8, pass: WalkPass) -> UnpackResult {
        const NEXT_AT: u64 = 8;
        let (mut from, mut slot) = (from, slot);
        while let Some(base) = self.memory.follow(from) {
            from = base + NEXT_AT;
            if let Some(block) = self.chained(frame, base, pass)? {
                Self::write(slot, block.expose_provenance() as u64);
                slot = block.wrapping_add(NEXT_AT as usize);
            }
        }
        Self::write(slot, 0);
        Ok(())
    }

    /// Unpacks one structure of a chain without its own chain; none for an unknown structure, which is skipped.
    fn chained(&mut self, frame: &StructFrame<'_>, base: u64, pass: WalkPass) -> Result<Option<*mut u8>, UnpackError> {
        const NEXT_AT: u32 = 8;
        let s_type = self.memory.u32(base).unwrap_or(0) as i32;
        let Some(layout) = structure_by_type(s_type) else {
            return Ok((self.purpose == UnpackPurpose::RoundTrip).then(|| self.copy(base, 16)));
        };
        let block = self.copy(base, layout.size as usize);
        let inner = frame.child(layout, base, 0);
        if self.translates() && pass == WalkPass::Enter {
            self.translate(layout, base, block);
        }
        for fixup in layout.fixups.iter().filter(|it| !matches!(it, Fixup::Chain { at } if *at == NEXT_AT)) {
            self.fix_up(&inner, block, fixup, pass)?;
        }
        self.patch_values(layout, block, pass);
        Ok(Some(block))
    }

    fn pointer(
        &mut self,
        frame: &StructFrame<'_>,
        from: u64,
        slot: *mut u8,
        pointer: &Pointer,
        pass: WalkPass,
        element: u64,
    ) -> UnpackResult {
        let value = self.word(from);
        let address = match (value, pointer_action(pointer, pass)) {
            (0, _) | (_, PointerAction::Drop) => 0,
            (_, PointerAction::Mark) => self.output(frame, pointer, element)?.expose_provenance() as u64,
            (value, _) if value == Ptr::<u8>::PRESENT.0 && self.purpose == UnpackPurpose::Driver => {
                let is_blob = matches!(pointer.to, Pointee::Blob(_));
                let found = self.handles.host_contents(frame.index).filter(|_| is_blob);
                found.ok_or(UnpackError::Missing { item: frame.layout.name })?
            }
            (value, _) if value < HEADER_SIZE as u64 => opaque_address(),
            (value, PointerAction::Follow(pass)) => {
                self.target(frame, value, pointer, pass, element)?.expose_provenance() as u64
            }
        };
        Self::write(slot, address);
        Ok(())
    }

    /// Allocates memory that the driver will write.
    fn output(&mut self, frame: &StructFrame<'_>, pointer: &Pointer, element: u64) -> Result<*mut u8, UnpackError> {
        let count = rules::count(&self.memory, frame, pointer.len, element).unwrap_or(1);
        let bytes = match &pointer.to {
            Pointee::Blob(kind) => match (self.handles.blob_size(*kind, frame), self.purpose) {
                (Some(size), _) => u64::from(size),
                (None, UnpackPurpose::Driver) => return Err(UnpackError::Missing { item: frame.layout.name }),
                (None, UnpackPurpose::RoundTrip) => 0,
            },
            target => count.saturating_mul(target_size(target)),
        };
        self.claim(frame, bytes)
    }

    /// Allocates memory in addition to the size of the record. A corrupt record may ask for any size.
    fn claim(&mut self, frame: &StructFrame<'_>, bytes: u64) -> Result<*mut u8, UnpackError> {
        self.outputs = self.outputs.saturating_add(bytes);
        if self.outputs > OUTPUT_MAX {
            return Err(UnpackError::OutputsTooLarge { item: frame.layout.name, bytes: self.outputs });
        }
        Ok(self.arena.claim(bytes as usize))
    }

    fn target(
        &mut self,
        frame: &StructFrame<'_>,
        base: u64,
        pointer: &Pointer,
        pass: WalkPass,
        element: u64,
    ) -> Result<*mut u8, UnpackError> {
        match &pointer.to {
            Pointee::Text => {
                let rest = &self.memory.body[base as usize..];
                let end = rest.iter().position(|it| *it == 0).expect("a text that was checked has an end");
                return Ok(self.copy(base, end + 1));
            }
            Pointee::Blob(_) => {
                let size = self.word(base);
                return Ok(self.copy(base + 8, size as usize));
            }
            Pointee::Template => return self.template(frame, base),
            Pointee::AnyStruct => {
                let block = self.chained(frame, base, pass)?;
                let Some(block) = block else { return Ok(std::ptr::null_mut()) };
                self.chain(frame, base + 8, block.wrapping_add(8), pass)?;
                return Ok(block);
            }
            _ => {}
        }
        let count = rules::count(&self.memory, frame, pointer.len, element).unwrap_or(0);
        let size = target_size(&pointer.to);
        let stride = pointer.stride.and_then(|it| self.memory.read_field(frame.base, it)).unwrap_or(size);
        if stride != size {
            return self.strided(frame, base, count, size, stride);
        }
        let block = self.copy(base, count.saturating_mul(size) as usize);
        if self.handles.has_families() && matches!(pointer.to, Pointee::Values(Ty::U32)) {
            self.translate_families(frame, base, pointer, block, count);
        }
        for index in 0..count {
            let (from, to) = (base + index * size, block.wrapping_add((index * size) as usize));
            match &pointer.to {
                Pointee::Struct(layout) => self.structure(&frame.child(layout, from, index), to, pass)?,
                Pointee::Handle(_) => self.handle_array(from, to, 1),
                Pointee::Pointer(inner) => self.pointer(frame, from, to, inner, pass, index)?,
                Pointee::Opaque => self.opaque(from, to),
                Pointee::Values(Ty::DeviceAddress) if self.handles.has_addresses() => {
                    Self::write(to, self.handles.address(self.word(from)));
                }
                Pointee::Values(_) | Pointee::Text | Pointee::AnyStruct | Pointee::Blob(_) | Pointee::Template => break,
            }
        }
        Ok(block)
    }

    /// Maps a list of queue families.
    fn translate_families(&self, frame: &StructFrame<'_>, base: u64, pointer: &Pointer, block: *mut u8, count: u64) {
        let is_it = |it: &&Field| matches!(it.ty, Ty::Pointer(own) if std::ptr::eq(own, pointer));
        let field = frame.layout.fields.iter().find(is_it);
        if field.is_some_and(|it| it.name == "pQueueFamilyIndices") {
            for index in 0..count {
                let family = self.handles.family(self.memory.u32(base + index * 4).unwrap_or(0));
                // SAFETY: `target` made the block with `count` elements of four bytes, and `index` is less.
                unsafe { block.cast::<u32>().add(index as usize).write_unaligned(family) };
            }
        }
    }

    /// Elements with a stride chosen by the application; only plain structures.
    fn strided(
        &mut self,
        frame: &StructFrame<'_>,
        base: u64,
        count: u64,
        size: u64,
        stride: u64,
    ) -> Result<*mut u8, UnpackError> {
        let block = self.claim(frame, count.saturating_mul(stride.max(size)).saturating_add(size))?;
        for index in 0..count {
            let from = &self.memory.body[(base + index * size) as usize..][..size as usize];
            let to = block.wrapping_add((index * stride) as usize);
            // SAFETY: `claim` returned space for `count` strides and one more element. The product did not saturate,
            // because it is below `OUTPUT_MAX`. `index` is less than `count`, and the slice has `size` bytes.
            unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), to, size as usize) };
        }
        Ok(block)
    }

    /// Places the elements at the offsets that the entries of the template state.
    fn template(&mut self, frame: &StructFrame<'_>, base: u64) -> Result<*mut u8, UnpackError> {
        let count = self.word(base);
        let entry_at = |it: u64| base + 8 + it * template::ENTRY_SIZE;
        let entries: Vec<_> = (0..count)
            .map(|it| template::entry_from([0, 8, 16, 24].map(|word| self.word(entry_at(it) + word))))
            .collect();
        let end = entries.iter().filter_map(|template_entry| {
            let element = template::element_of(template_entry.descriptor_type)?;
            let count = u64::from(template_entry.descriptor_count);
            let size = match element {
                // The stride of an inline uniform block is not used.
                template::TemplateElement::Bytes => count,
                _ => template_entry.stride.saturating_mul(count.saturating_sub(1)).saturating_add(element.size()),
            };
            Some(template_entry.offset.saturating_add(size))
        });
        let block = self.claim(frame, end.max().unwrap_or(0))?;
        let mut from = entry_at(count);
        for entry in &entries {
            let Some(element) = template::element_of(entry.descriptor_type) else { continue };
            let (step, count) = match element {
                template::TemplateElement::Bytes => (1, u64::from(entry.descriptor_count)),
                _ => (entry.stride, u64::from(entry.descriptor_count)),
            };
            for index in 0..count {
                let to = block.wrapping_add((entry.offset + index * step) as usize);
                self.template_element(element, from + index * element.size(), to);
            }
            if matches!(element, template::TemplateElement::Bytes) && self.handles.has_patched_bytes() {
                let to = block.wrapping_add(entry.offset as usize);
                // SAFETY: `claim` returned space up to the largest end of an entry, which nobody else uses.
                let bytes = unsafe { std::slice::from_raw_parts_mut(to, count as usize) };
                self.handles.patch_bytes(0, bytes);
            }
            from += aligned(element.size() * count);
        }
        Ok(block)
    }

    fn template_element(&mut self, element: template::TemplateElement, from: u64, to: *mut u8) {
        let bytes = &self.memory.body[from as usize..(from + element.size()) as usize];
        // SAFETY: `template` claimed space up to the largest end of an entry. The sum did not saturate, because it is
        // below `OUTPUT_MAX`. This element belongs to an entry, and has the size that was counted there.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
        match element {
            template::TemplateElement::Struct(layout) => {
                let frame = StructFrame::root(layout, from);
                // Descriptor infos contain only handles, so this cannot fail.
                let _ = self.structure(&frame, to, WalkPass::Enter);
            }
            template::TemplateElement::Handle(_) => self.handle_array(from, to, 1),
            template::TemplateElement::Number | template::TemplateElement::Bytes => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use lavascope_abi::Ptr;
    use lavascope_record::encoding::HEADER_SIZE;

    #[test]
    fn marks_are_below_every_offset() {
        assert!(Ptr::<u8>::PRESENT.0 < HEADER_SIZE as u64);
        assert!(Ptr::<u8>::EMPTY.0 < HEADER_SIZE as u64);
    }
}
