//! The instances and devices that are alive, found by the dispatch key of any handle that belongs to them.
//!
//! Looked at on every intercepted call, so a look-up takes no lock.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use lavascope_base::TaggedMap;

/// Objects by dispatch key.
pub(crate) struct Objects<T: Send + 'static> {
    /// Addresses of the boxes that `owned` holds. The tag is zero: no address reaches into the top byte. Null before
    /// the first and after `release`. Release in `map`, under the lock; pairs with Acquire in `get`.
    by_key: AtomicPtr<TaggedMap>,
    owned: Mutex<Vec<Owned<T>>>,
}

struct Owned<T> {
    key: u64,
    object: Box<T>,
}

impl<T: Send + Sync + 'static> Objects<T> {
    pub(crate) const fn new() -> Objects<T> {
        Objects { by_key: AtomicPtr::new(std::ptr::null_mut()), owned: Mutex::new(Vec::new()) }
    }

    /// The object of a key. It lives until `remove`: the application must not use a handle while it destroys what
    /// the handle belongs to.
    #[inline(always)]
    pub(crate) fn get(&self, key: u64) -> Option<&'static T> {
        // SAFETY: null, or a map that lives until `release`.
        let by_key = unsafe { self.by_key.load(Ordering::Acquire).as_ref() }?;
        let address = by_key.get(key, 0)?;
        // SAFETY: only addresses of boxes in `owned` are in the map, and each is taken out before its box is dropped.
        Some(unsafe { &*std::ptr::with_exposed_provenance::<T>(address as usize) })
    }

    pub(crate) fn insert(&self, key: u64, object: T) -> &'static T {
        let object = Box::new(object);
        let address = (&raw const *object).expose_provenance() as u64;
        let mut owned = self.lock();
        self.map(&mut owned).insert(key, address);
        owned.push(Owned { key, object });
        // SAFETY: as in `get`.
        unsafe { &*std::ptr::with_exposed_provenance::<T>(address as usize) }
    }

    /// The object leaves the map, and is the caller's.
    pub(crate) fn remove(&self, key: u64) -> Option<Box<T>> {
        let mut owned = self.lock();
        self.map(&mut owned).remove(key, 0)?;
        let at = owned.iter().rposition(|it| it.key == key)?;
        Some(owned.swap_remove(at).object)
    }

    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }

    /// The library may be unloaded: if nothing is alive, no memory stays behind.
    pub(crate) fn release(&self) {
        let mut owned = self.lock();
        if owned.is_empty() {
            *owned = Vec::new();
            let by_key = self.by_key.swap(std::ptr::null_mut(), Ordering::AcqRel);
            if !by_key.is_null() {
                // SAFETY: made in `map`. With nothing alive there is nothing that a look-up could be for.
                drop(unsafe { Box::from_raw(by_key) });
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Owned<T>>> {
        self.owned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The map, made when it is first needed. The lock says that nobody else makes one.
    fn map<'a>(&'a self, _: &mut MutexGuard<'a, Vec<Owned<T>>>) -> &'a TaggedMap {
        let mut by_key = self.by_key.load(Ordering::Acquire);
        if by_key.is_null() {
            by_key = Box::into_raw(Box::new(TaggedMap::with_capacity(32)));
            self.by_key.store(by_key, Ordering::Release);
        }
        // SAFETY: not null, and it lives until `release`, which takes the lock too.
        unsafe { &*by_key }
    }
}

/// Some of the objects that are alive, by dispatch key: those whose calls are recorded.
pub(crate) struct Index<T: 'static> {
    by_key: LazyLock<TaggedMap>,
    kind: PhantomData<&'static T>,
}

impl<T: Sync + 'static> Index<T> {
    pub(crate) const fn new() -> Index<T> {
        Index { by_key: LazyLock::new(|| TaggedMap::with_capacity(32)), kind: PhantomData }
    }

    /// Lives as long as the object in its [`Objects`], from which it is removed later.
    #[inline(always)]
    pub(crate) fn get(&self, key: u64) -> Option<&'static T> {
        let address = self.by_key.get(key, 0)?;
        // SAFETY: only addresses of objects that are alive are in the map.
        Some(unsafe { &*std::ptr::with_exposed_provenance::<T>(address as usize) })
    }

    /// All of them, in no order.
    pub(crate) fn all(&self) -> Vec<&'static T> {
        self.by_key.entries_unsorted().into_iter().filter_map(|it| self.get(it.0)).collect()
    }

    pub(crate) fn insert(&self, key: u64, object: &'static T) {
        self.by_key.insert(key, (&raw const *object).expose_provenance() as u64);
    }

    pub(crate) fn remove(&self, key: u64) {
        self.by_key.remove(key, 0);
    }
}

/// The key that all dispatchable handles of one instance or device share: the loader's table behind them.
///
/// # Safety
///
/// `handle` must be null or a dispatchable handle that is alive.
#[inline(always)]
pub(crate) unsafe fn dispatch_key(handle: u64) -> u64 {
    if handle == 0 {
        return 0;
    }
    let address = std::ptr::with_exposed_provenance::<u64>(handle as usize);
    // SAFETY: the loader demands that a dispatchable handle points to a word of its own.
    unsafe { address.read() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_come_and_go() {
        let objects = Objects::<String>::new();
        objects.insert(0x1000, "first".into());
        objects.insert(0x2000, "second".into());
        assert_eq!(objects.get(0x2000).map(String::as_str), Some("second"));
        assert_eq!(objects.remove(0x1000).as_deref().map(String::as_str), Some("first"));
        assert!(objects.get(0x1000).is_none() && objects.get(0).is_none());
        assert_eq!(objects.len(), 1);
        objects.release();
        assert!(objects.get(0x2000).is_some(), "what is alive stays");
        assert!(objects.remove(0x2000).is_some());
        objects.release();
        assert!(objects.get(0x2000).is_none());
        objects.insert(0x2000, "third".into());
        assert_eq!(objects.get(0x2000).map(String::as_str), Some("third"));
    }
}
