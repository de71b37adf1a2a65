//! Pointers as plain numbers, so that one structure serves C memory and records.

use std::fmt;
use std::marker::PhantomData;

/// The target of an opaque pointer, which we must not read.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Opaque(u8);

/// A pointer to `T` in C memory, or its stand-in inside a record.
///
/// In a record it is null, one of the two marks below, or the offset of a block from the record's first byte.
#[repr(transparent)]
pub struct Ptr<T>(pub u64, PhantomData<fn() -> T>);

/// A pointer to a function of the application.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct FnPtr(pub u64);

impl<T> Ptr<T> {
    pub const NULL: Ptr<T> = Ptr::new(0);
    /// In a record: a pointer that was not null, to no elements.
    pub const EMPTY: Ptr<T> = Ptr::new(1);
    /// In a record: a pointer that was not null and whose target is not part of the record.
    pub const PRESENT: Ptr<T> = Ptr::new(2);

    pub const fn new(value: u64) -> Ptr<T> {
        Ptr(value, PhantomData)
    }

    pub const fn is_null(self) -> bool {
        self.0 == 0
    }

    /// The address of `target`, for C memory.
    pub fn to(target: &T) -> Ptr<T> {
        Ptr::new(std::ptr::from_ref(target).expose_provenance() as u64)
    }

    /// The address of the first element, or null for none.
    pub fn to_slice(targets: &[T]) -> Ptr<T> {
        if targets.is_empty() { Ptr::NULL } else { Ptr::new(targets.as_ptr().expose_provenance() as u64) }
    }

    /// The C pointer.
    pub fn as_ptr(self) -> *const T {
        std::ptr::with_exposed_provenance(self.0 as usize)
    }

    /// The C pointer, for outputs.
    pub fn as_mut_ptr(self) -> *mut T {
        std::ptr::with_exposed_provenance_mut(self.0 as usize)
    }

    pub const fn cast<U>(self) -> Ptr<U> {
        Ptr::new(self.0)
    }
}

// By hand, since a derive would ask the same of `T`.
impl<T> Clone for Ptr<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Ptr<T> {}
impl<T> Default for Ptr<T> {
    fn default() -> Self {
        Ptr::NULL
    }
}
impl<T> PartialEq for Ptr<T> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}
impl<T> Eq for Ptr<T> {}
impl<T> fmt::Debug for Ptr<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ptr({:#x})", self.0)
    }
}
