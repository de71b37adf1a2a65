//! Typed, safe, zero-copy views of a checked record.
//!
//! A [`View`] derefs to the structure's own fields; each pointer has a method of the field's name, generated, that
//! gives what it leads to. A pointer that leads nowhere gives an empty slice or none.

use std::ffi::CStr;
use std::ops::Deref;

use lavascope_abi::desc::Layout;
use lavascope_abi::{Opaque, Pod, Ptr, Structure, cast, cast_slice, structure_by_type};

use crate::encoding::{HEADER_SIZE, Record};

/// A structure inside a record, with the record to follow its pointers in.
pub struct View<'a, T> {
    body: &'a [u8],
    structure: &'a T,
}

impl<T> Clone for View<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for View<'_, T> {}

impl<T> Deref for View<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.structure
    }
}

impl<'a, T: Structure> View<'a, T> {
    /// The body of a record that is known to be of this type.
    pub(crate) fn of_record(record: Record<'a>) -> Option<View<'a, T>> {
        let body = record.body();
        Some(View { body, structure: cast(body.get(HEADER_SIZE..)?)? })
    }

    /// The structure itself, for as long as the record lives.
    pub fn get(self) -> &'a T {
        self.structure
    }

    /// A structure inside this one.
    pub fn inner<U: Pod>(self, value: &'a U) -> View<'a, U> {
        View { body: self.body, structure: value }
    }

    /// `count` values behind a pointer.
    pub fn values<U: Pod>(self, pointer: Ptr<U>, count: u64) -> &'a [U] {
        let values = |count| cast_slice(block(self.body, pointer.0)?, count);
        usize::try_from(count).ok().and_then(values).unwrap_or_default()
    }

    /// The value behind a pointer.
    pub fn value<U: Pod>(self, pointer: Ptr<U>) -> Option<&'a U> {
        self.values(pointer, 1).first()
    }

    /// `count` structures behind a pointer.
    pub fn views<U: Structure>(self, pointer: Ptr<U>, count: u64) -> Views<'a, U> {
        Views { body: self.body, items: self.values(pointer, count) }
    }

    /// The structure behind a pointer.
    pub fn view<U: Structure>(self, pointer: Ptr<U>) -> Option<View<'a, U>> {
        self.views(pointer, 1).get(0)
    }

    /// The text behind a pointer.
    pub fn text(self, pointer: Ptr<u8>) -> Option<&'a CStr> {
        CStr::from_bytes_until_nul(block(self.body, pointer.0)?).ok()
    }

    /// `count` texts behind a pointer to pointers.
    pub fn texts(self, pointer: Ptr<Ptr<u8>>, count: u64) -> impl Iterator<Item = Option<&'a CStr>> {
        self.values(pointer, count).iter().map(move |it| self.text(*it))
    }

    /// The bytes behind a pointer; the record has their number.
    pub fn blob(self, pointer: Ptr<Opaque>) -> Option<&'a [u8]> {
        let block = block(self.body, pointer.0)?;
        let size = usize::try_from(*cast::<u64>(block)?).ok()?;
        block.get(8..)?.get(..size)
    }

    /// The structures in the `pNext` chain, in order. Unknown ones are skipped.
    pub fn chain(self) -> Chain<'a> {
        let bytes = std::ptr::from_ref(self.structure).addr() - self.body.as_ptr().addr();
        Chain { body: self.body, next: next_of(self.body, bytes as u64) }
    }

    /// The chained structure of a type.
    pub fn chained<U: Structure>(self) -> Option<View<'a, U>> {
        self.chain().find_map(Chained::as_view)
    }
}

/// The bytes from an offset on; none for null and marks.
fn block(body: &[u8], offset: u64) -> Option<&[u8]> {
    if offset < HEADER_SIZE as u64 { None } else { body.get(usize::try_from(offset).ok()?..) }
}

fn next_of(body: &[u8], base: u64) -> u64 {
    const NEXT_AT: u64 = 8;
    block(body, base + NEXT_AT).and_then(cast::<u64>).copied().unwrap_or(0)
}

/// An array of structures with pointers.
pub struct Views<'a, T> {
    body: &'a [u8],
    items: &'a [T],
}

impl<'a, T: Structure> Views<'a, T> {
    pub fn len(&self) -> usize {
        self.items.len()
    }

    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    pub fn get(&self, index: usize) -> Option<View<'a, T>> {
        self.items.get(index).map(|it| View { body: self.body, structure: it })
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = View<'a, T>> + use<'a, T> {
        let body = self.body;
        self.items.iter().map(move |it| View { body, structure: it })
    }
}

/// An iterator along `pNext`.
pub struct Chain<'a> {
    body: &'a [u8],
    next: u64,
}

/// A structure in a chain.
#[derive(Clone, Copy)]
pub struct Chained<'a> {
    pub layout: &'static Layout,
    body: &'a [u8],
    at: u64,
}

impl<'a> Iterator for Chain<'a> {
    type Item = Chained<'a>;

    fn next(&mut self) -> Option<Chained<'a>> {
        loop {
            let at = self.next;
            let s_type = *cast::<i32>(block(self.body, at)?)?;
            self.next = next_of(self.body, at);
            if let Some(layout) = structure_by_type(s_type) {
                return Some(Chained { layout, body: self.body, at });
            }
        }
    }
}

impl<'a> Chained<'a> {
    /// As a view of its type.
    pub fn as_view<T: Structure>(self) -> Option<View<'a, T>> {
        if !std::ptr::eq(self.layout, T::layout()) {
            return None;
        }
        Some(View { body: self.body, structure: cast(block(self.body, self.at)?)? })
    }
}
