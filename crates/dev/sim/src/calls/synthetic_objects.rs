//! Objects that exist only as arithmetic: every handle has its id and every id its handle.

use lavascope_abi::desc::{Blob, HandleAccess};
use lavascope_abi::{DescriptorType, DescriptorUpdateTemplateEntry, HandleType, ObjectId};
use lavascope_marshal::IdResolver;
use lavascope_record::pack_context::{LibraryUse, PackContext, SubpassUse};
use lavascope_record::walk::StructFrame;

/// The facts about objects are functions of their serial numbers, so both sides of a round trip agree.
#[derive(Clone, Copy, Default)]
pub struct SyntheticObjects;

const HANDLE_TAG: u64 = 0x5a << 48;

impl SyntheticObjects {
    /// The handle of a serial number.
    pub fn handle_of(ty: HandleType, serial: u64) -> u64 {
        HANDLE_TAG | (ty as u64) << 32 | serial & 0xffff
    }

    /// The id of a handle; unknown for one that is not of this world.
    pub fn id_of(ty: HandleType, handle: u64) -> ObjectId {
        if handle >> 48 == HANDLE_TAG >> 48 && handle >> 32 & 0xff == ty as u64 {
            return ObjectId::new(ty, handle & 0xffff_ffff).unwrap_or(ObjectId::unknown(ty));
        }
        ObjectId::unknown(ty)
    }

    /// The handle of an id.
    pub fn handle_of_id(id: ObjectId) -> u64 {
        match id.ty() {
            Some(ty) if !id.is_unknown() => HANDLE_TAG | (ty as u64) << 32 | id.serial(),
            _ => 0xdead,
        }
    }
}

fn serial(handle: u64) -> u64 {
    handle & 0xffff
}

impl IdResolver for SyntheticObjects {
    fn id(&self, ty: HandleType, handle: u64, _access: HandleAccess) -> ObjectId {
        SyntheticObjects::id_of(ty, handle)
    }
}

impl PackContext for SyntheticObjects {
    fn is_secondary(&self, command_buffer: u64) -> Option<bool> {
        Some(serial(command_buffer) % 2 == 1)
    }

    fn subpass(&self, render_pass: u64, subpass: u32) -> Option<SubpassUse> {
        let bits = serial(render_pass) + u64::from(subpass);
        Some(SubpassUse { color: bits & 1 != 0, depth_stencil: bits & 2 != 0 })
    }

    fn library(&self, pipeline: u64) -> Option<LibraryUse> {
        let bits = serial(pipeline);
        (bits % 5 != 4).then_some(LibraryUse { has_mesh: bits & 1 != 0, discards_always: bits & 2 != 0 })
    }

    fn template(&self, template: u64) -> Option<Vec<DescriptorUpdateTemplateEntry>> {
        Some(template_entries(serial(template)))
    }

    fn blob_size(&self, _blob: Blob, _owner: &StructFrame<'_>) -> Option<u32> {
        Some(24)
    }
}

/// A few entries of every kind, apart from each other in memory.
fn template_entries(serial: u64) -> Vec<DescriptorUpdateTemplateEntry> {
    let kinds = [
        (DescriptorType::COMBINED_IMAGE_SAMPLER, 32),
        (DescriptorType::UNIFORM_BUFFER, 24),
        (DescriptorType::STORAGE_TEXEL_BUFFER, 16),
        (DescriptorType::INLINE_UNIFORM_BLOCK, 0),
        (DescriptorType::ACCELERATION_STRUCTURE_KHR, 8),
    ];
    let mut offset = 0;
    let entries = kinds.iter().enumerate().take(serial as usize % 6).map(|(at, (ty, stride))| {
        let entry = DescriptorUpdateTemplateEntry {
            dst_binding: at as u32,
            dst_array_element: 0,
            descriptor_count: 2,
            descriptor_type: *ty,
            offset,
            stride: *stride,
        };
        offset += 96;
        entry
    });
    entries.collect()
}
