//! The name of an object: its type and a serial number that is never used again.

use std::fmt;

use crate::HandleType;

/// A dense, never-reused name for an object, standing in a record where C memory has the handle.
///
/// The top byte is the [`HandleType`], the rest a serial number counted per type from zero. Zero is the null handle.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct ObjectId(u64);

const SERIAL_BITS: u32 = 56;
const UNKNOWN_SERIAL: u64 = (1 << SERIAL_BITS) - 1;

impl ObjectId {
    pub const NULL: ObjectId = ObjectId(0);
    pub const SERIAL_MAX: u64 = UNKNOWN_SERIAL - 1;

    /// The object of a type with a serial number; none past [`ObjectId::SERIAL_MAX`].
    pub const fn new(ty: HandleType, serial: u64) -> Option<ObjectId> {
        if serial > Self::SERIAL_MAX { None } else { Some(ObjectId((ty as u64) << SERIAL_BITS | serial)) }
    }

    /// A handle that was not null and was never created: an error of the application, or a creation that we did not
    /// see.
    pub const fn unknown(ty: HandleType) -> ObjectId {
        ObjectId((ty as u64) << SERIAL_BITS | UNKNOWN_SERIAL)
    }

    /// A number out of a record: null, or of the given type.
    pub fn from_raw_typed(raw: u64, ty: HandleType) -> Option<ObjectId> {
        (raw == 0 || raw >> SERIAL_BITS == ty as u64).then_some(ObjectId(raw))
    }

    /// A number out of a record, of whichever type it says.
    pub fn from_raw(raw: u64) -> Option<ObjectId> {
        let ty = u8::try_from(raw >> SERIAL_BITS).ok();
        (raw == 0 || ty.is_some_and(|it| HandleType::from_number(it).is_some())).then_some(ObjectId(raw))
    }

    pub const fn raw(self) -> u64 {
        self.0
    }

    pub const fn is_null(self) -> bool {
        self.0 == 0
    }

    pub const fn is_unknown(self) -> bool {
        self.0 & UNKNOWN_SERIAL == UNKNOWN_SERIAL
    }

    pub fn ty(self) -> Option<HandleType> {
        HandleType::from_number((self.0 >> SERIAL_BITS) as u8)
    }

    pub const fn serial(self) -> u64 {
        self.0 & UNKNOWN_SERIAL
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.ty() {
            None => f.write_str("VK_NULL_HANDLE"),
            Some(ty) if self.is_unknown() => write!(f, "{}#unknown", ty.name()),
            Some(ty) => write!(f, "{}#{}", ty.name(), self.serial()),
        }
    }
}

impl fmt::Debug for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
