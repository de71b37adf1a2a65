//! The part of a command that an access comes from. It is for messages, except for the bytes of attributes.

use lavascope_abi::desc::EnumDesc;
use lavascope_abi::{DESCRIPTOR_TYPE_ENUM, IMAGE_LAYOUT_ENUM};

use crate::AttributeBytes;

/// A part of a command, in one word: programs have millions of accesses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Origin(u64);

/// An origin in unpacked form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OriginKind {
    /// The command as a whole, or unknown.
    Command,
    /// An element of `pRegions`, `pRanges`, `pRects` or the like.
    Region(u32),
    /// The descriptor that a shader accesses.
    Descriptor(Descriptor),
    /// An acceleration structure, by its buffer.
    AccelerationStructure,
    /// An access of a shader by its address: where the buffer begins that contains it.
    Address(u64),
    /// The attributes of vertices or instances: the bytes of the region that are read.
    Attributes(AttributeBytes),
}

/// A descriptor that a shader accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descriptor {
    pub set: u32,
    pub binding: u32,
    pub element: u32,
    /// `VkDescriptorType`.
    pub ty: i32,
    /// `VkImageLayout`, where it is one of an image.
    pub layout: Option<i32>,
}

/// The lowest bits are the kind. Without higher bits, the last kind is a structure, otherwise an address; and the first
/// one is the command, otherwise attributes.
const KIND_BITS: u32 = 2;
const REGION: u64 = 1;
const DESCRIPTOR: u64 = 2;
const STRUCTURE: u64 = 3;

/// Bits of the parts of a descriptor, from the lowest.
const BITS: [u32; 5] = [5, 20, 26, 5, 6];

impl Origin {
    pub const NONE: Origin = Origin(0);
    pub const ACCELERATION_STRUCTURE: Origin = Origin(STRUCTURE);

    pub const fn region(index: u32) -> Origin {
        Origin(REGION | (index as u64) << KIND_BITS)
    }

    /// The region begins where an attribute, or a vertex, does.
    pub const fn attributes(attributes: AttributeBytes) -> Origin {
        Origin(attributes.pack() << KIND_BITS)
    }

    /// None if it is too large to be kept, or no address.
    pub const fn address(buffer: u64) -> Origin {
        if buffer == 0 || buffer >> (u64::BITS - KIND_BITS) != 0 {
            return Origin::NONE;
        }
        Origin(STRUCTURE | buffer << KIND_BITS)
    }

    /// None if a number is too large to be kept.
    pub fn descriptor(item: Descriptor) -> Origin {
        let layout = item.layout.map_or(0, |it| enum_index(&IMAGE_LAYOUT_ENUM, it) + 1);
        let ty = enum_index(&DESCRIPTOR_TYPE_ENUM, item.ty);
        let parts = [item.set.into(), item.binding.into(), item.element.into(), ty, layout];
        let mut word = DESCRIPTOR;
        let mut at = KIND_BITS;
        for (part, bits) in parts.into_iter().zip(BITS) {
            if part >> bits != 0 {
                return Origin::NONE;
            }
            word |= part << at;
            at += bits;
        }
        Origin(word)
    }

    pub fn kind(self) -> OriginKind {
        let rest = self.0 >> KIND_BITS;
        match self.0 & ((1 << KIND_BITS) - 1) {
            REGION => OriginKind::Region(rest as u32),
            DESCRIPTOR => OriginKind::Descriptor(unpacked(rest)),
            STRUCTURE if rest != 0 => OriginKind::Address(rest),
            STRUCTURE => OriginKind::AccelerationStructure,
            _ => AttributeBytes::unpack(rest).map_or(OriginKind::Command, OriginKind::Attributes),
        }
    }
}

fn unpacked(mut rest: u64) -> Descriptor {
    let [set, binding, element, ty, layout] = BITS.map(|bits| {
        let part = rest & ((1 << bits) - 1);
        rest >>= bits;
        part as u32
    });
    let value = |of: &EnumDesc, place: u32| of.values.get(place as usize).map_or(0, |it| it.0 as i32);
    let layout = layout.checked_sub(1).map(|it| value(&IMAGE_LAYOUT_ENUM, it));
    Descriptor { set, binding, element, ty: value(&DESCRIPTOR_TYPE_ENUM, ty), layout }
}

/// Values of extensions are large, their places in the list are not. What is not in the list is too large to be kept.
fn enum_index(of: &EnumDesc, value: i32) -> u64 {
    let found = of.values.binary_search_by_key(&i64::from(value), |it| it.0);
    found.map_or(u64::from(u32::MAX), |it| it as u64)
}

#[cfg(test)]
mod tests {
    use lavascope_abi::{DescriptorType, ImageLayout};

    use super::*;

    #[test]
    fn what_goes_in_comes_out() {
        for index in [0, 1, 77, u32::MAX] {
            assert_eq!(Origin::region(index).kind(), OriginKind::Region(index));
        }
        assert_eq!(Origin::default().kind(), OriginKind::Command);
        assert_eq!(Origin::ACCELERATION_STRUCTURE.kind(), OriginKind::AccelerationStructure);
        for address in [1, 0x7fff_ffff_f000, u64::MAX >> 2] {
            assert_eq!(Origin::address(address).kind(), OriginKind::Address(address));
        }
        assert_eq!([0, 1 << 62, u64::MAX].map(Origin::address), [Origin::NONE; 3]);
        for (ty, _) in DESCRIPTOR_TYPE_ENUM.values {
            for layout in IMAGE_LAYOUT_ENUM.values.iter().map(|it| Some(it.0 as i32)).chain([None]) {
                let item = Descriptor { set: 3, binding: 1 << 19, element: (1 << 26) - 1, ty: *ty as i32, layout };
                assert_eq!(Origin::descriptor(item).kind(), OriginKind::Descriptor(item));
            }
        }
    }

    #[test]
    fn what_is_too_large_is_not_reported() {
        let item = Descriptor {
            set: 0,
            binding: 0,
            element: 0,
            ty: DescriptorType::STORAGE_BUFFER.0,
            layout: Some(ImageLayout::GENERAL.0),
        };
        for entry in [
            Descriptor { set: 32, ..item },
            Descriptor { binding: 1 << 20, ..item },
            Descriptor { element: 1 << 26, ..item },
            Descriptor { ty: -1, ..item },
            Descriptor { layout: Some(123), ..item },
        ] {
            assert_eq!(Origin::descriptor(entry), Origin::NONE, "{entry:?}");
        }
    }
}
