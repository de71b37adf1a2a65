//! A fast *check* for most records: values, handles, and lists of these, one after the other.
//!
//! It only finds that a record is valid. For any other record, the full check decides.

use lavascope_abi::desc::{Fixup, IntegerLocation, Layout, Len, Pointee, Pointer, ReadCondition, Span};
use lavascope_abi::{ObjectId, bytes_of_slice};

use crate::encoding::HEADER_SIZE;
use crate::walk::{PointerAction, WalkPass, pointer_action};

/// Whether a body is valid and omits nothing. The result false has no meaning.
pub(crate) fn is_well_formed(image: &[u64], layout: &'static Layout, pass: WalkPass) -> bool {
    let mut glance = FastChecker { image, cursor: 0 };
    glance.take(u64::from(layout.size)).is_some()
        && layout.gaps.iter().all(|it| glance.is_zero(*it))
        && layout.fixups.iter().all(|it| glance.work(it, pass).is_some())
        && glance.cursor == image.len()
}

struct FastChecker<'a> {
    image: &'a [u64],
    /// The position of the next block, in words.
    cursor: usize,
}

impl FastChecker<'_> {
    /// The next block of so many bytes, if it exists and its padding is zero.
    #[inline]
    fn take(&mut self, size: u64) -> Option<&[u64]> {
        let words = usize::try_from(size.div_ceil(8)).ok()?;
        let block = self.image.get(self.cursor..self.cursor.checked_add(words)?)?;
        let used = (size % 8) as u32 * 8;
        if used != 0 && block.last()? >> used != 0 {
            return None;
        }
        self.cursor += words;
        Some(block)
    }

    fn is_zero(&self, gap: Span) -> bool {
        let bytes = bytes_of_slice(self.image).get(gap.at as usize..(gap.at + gap.size) as usize);
        bytes.is_some_and(|it| it.iter().all(|it| *it == 0))
    }

    #[inline]
    fn work(&mut self, work: &Fixup, pass: WalkPass) -> Option<()> {
        match work {
            Fixup::Handles { at, count, ty, .. } => {
                let first = *at as usize / 8;
                let all = self.image.get(first..first + *count as usize)?;
                all.iter().all(|it| ObjectId::from_raw_typed(*it, *ty).is_some()).then_some(())
            }
            Fixup::Pointer { at, pointer } => match *self.image.get(*at as usize / 8)? {
                0 => Some(()),
                slot => self.pointer(slot, pointer, pass),
            },
            Fixup::Chain { at } => (*self.image.get(*at as usize / 8)? == 0).then_some(()),
            Fixup::TypedHandle { .. }
            | Fixup::Opaque { .. }
            | Fixup::Text { .. }
            | Fixup::Select { .. }
            | Fixup::Tail { .. }
            | Fixup::DeviceOrHost { .. } => None,
        }
    }

    /// Checks the target of a pointer that is not null.
    fn pointer(&mut self, slot: u64, pointer: &Pointer, pass: WalkPass) -> Option<()> {
        let is_followed = matches!(pointer.read, ReadCondition::Always)
            && matches!(pointer_action(pointer, pass), PointerAction::Follow(follow) if follow == pass);
        if !is_followed || slot != (HEADER_SIZE + self.cursor * 8) as u64 {
            return None;
        }
        let count = match pointer.len {
            Len::Fixed(count) => u64::from(count),
            Len::At(place) if place.through == IntegerLocation::HERE => self.number(place)?,
            Len::At(_) | Len::Scaled { .. } | Len::Terminated | Len::Rule(_) => return None,
        };
        let size = match &pointer.to {
            Pointee::Values(ty) => ty.size(),
            Pointee::Handle(_) => 8,
            Pointee::Struct(layout) if layout.fixups.is_empty() && layout.gaps.is_empty() => layout.size,
            _ => return None,
        };
        // A pointer without data in the record is a mark.
        let block = self.take(count.checked_mul(u64::from(size)).filter(|it| *it > 0)?)?;
        match pointer.to {
            Pointee::Handle(ty) => block.iter().all(|it| ObjectId::from_raw_typed(*it, ty).is_some()).then_some(()),
            _ => Some(()),
        }
    }

    /// An integer among the parameters.
    fn number(&self, place: IntegerLocation) -> Option<u64> {
        let word = *self.image.get(place.at as usize / 8)?;
        match (place.width, place.at % 8) {
            (8, 0) => Some(word),
            (4, 0) => Some(word & u64::from(u32::MAX)),
            (4, 4) => Some(word >> 32),
            _ => None,
        }
    }
}
