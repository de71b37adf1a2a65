//! The elements in the data of a descriptor update template, by the template's entries.
//!
//! In C memory the elements are at the offsets of the entries; in a record they are contiguous, in the order of the
//! entries.

use lavascope_abi::desc::Layout;
use lavascope_abi::{
    DESCRIPTOR_BUFFER_INFO_LAYOUT, DESCRIPTOR_IMAGE_INFO_LAYOUT, DescriptorType, DescriptorUpdateTemplateEntry,
    HandleType,
};

/// The kind of an element.
#[derive(Clone, Copy)]
pub enum TemplateElement {
    Struct(&'static Layout),
    Handle(HandleType),
    /// A device address.
    Number,
    /// `descriptorCount` counts bytes.
    Bytes,
}

/// The kind of an entry's elements; none for an unknown descriptor type.
pub fn element_of(ty: DescriptorType) -> Option<TemplateElement> {
    Some(match ty {
        DescriptorType::SAMPLER
        | DescriptorType::COMBINED_IMAGE_SAMPLER
        | DescriptorType::SAMPLED_IMAGE
        | DescriptorType::STORAGE_IMAGE
        | DescriptorType::INPUT_ATTACHMENT
        | DescriptorType::SAMPLE_WEIGHT_IMAGE_QCOM
        | DescriptorType::BLOCK_MATCH_IMAGE_QCOM => TemplateElement::Struct(&DESCRIPTOR_IMAGE_INFO_LAYOUT),
        DescriptorType::UNIFORM_BUFFER
        | DescriptorType::STORAGE_BUFFER
        | DescriptorType::UNIFORM_BUFFER_DYNAMIC
        | DescriptorType::STORAGE_BUFFER_DYNAMIC => TemplateElement::Struct(&DESCRIPTOR_BUFFER_INFO_LAYOUT),
        DescriptorType::UNIFORM_TEXEL_BUFFER | DescriptorType::STORAGE_TEXEL_BUFFER => {
            TemplateElement::Handle(HandleType::BufferView)
        }
        DescriptorType::ACCELERATION_STRUCTURE_KHR => TemplateElement::Handle(HandleType::AccelerationStructureKHR),
        DescriptorType::ACCELERATION_STRUCTURE_NV => TemplateElement::Handle(HandleType::AccelerationStructureNV),
        DescriptorType::TENSOR_ARM => TemplateElement::Handle(HandleType::TensorViewARM),
        DescriptorType::PARTITIONED_ACCELERATION_STRUCTURE_NV => TemplateElement::Number,
        DescriptorType::INLINE_UNIFORM_BLOCK => TemplateElement::Bytes,
        _ => return None,
    })
}

impl TemplateElement {
    /// Size of one element in a record.
    pub fn size(self) -> u64 {
        match self {
            TemplateElement::Struct(layout) => u64::from(layout.size),
            TemplateElement::Handle(_) | TemplateElement::Number => 8,
            TemplateElement::Bytes => 1,
        }
    }
}

/// Size of an entry's elements in a record.
pub fn dense_size(entry: &DescriptorUpdateTemplateEntry) -> Option<u64> {
    Some(super::walk::aligned(element_of(entry.descriptor_type)?.size() * u64::from(entry.descriptor_count)))
}

/// Size of an entry in bytes.
pub const ENTRY_SIZE: u64 = 32;
const _: () = assert!(size_of::<DescriptorUpdateTemplateEntry>() as u64 == ENTRY_SIZE);

/// Entries as numbers, for comparison and for walking a record: binding, element, count, type, offset, stride.
pub fn entry_from(words: [u64; 4]) -> DescriptorUpdateTemplateEntry {
    DescriptorUpdateTemplateEntry {
        dst_binding: words[0] as u32,
        dst_array_element: (words[0] >> 32) as u32,
        descriptor_count: words[1] as u32,
        descriptor_type: DescriptorType((words[1] >> 32) as i32),
        offset: words[2],
        stride: words[3],
    }
}

/// The reverse of [`entry_from`].
pub fn entry_words(entry: &DescriptorUpdateTemplateEntry) -> [u64; 4] {
    [
        u64::from(entry.dst_binding) | u64::from(entry.dst_array_element) << 32,
        u64::from(entry.descriptor_count) | u64::from(entry.descriptor_type.0 as u32) << 32,
        entry.offset,
        entry.stride,
    ]
}
