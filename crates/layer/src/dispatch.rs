//! The instances and devices that are alive, found by the dispatch key of any handle that belongs to them.
//!
//! Looked at on every intercepted call, so a look-up takes no lock.

use std::marker::PhantomData;
use std::sync::{LazyLock, Mutex, PoisonError};

use lavascope_base::TaggedMap;

/// Objects by dispatch key.
pub(crate) struct Objects<T: Send + 'static> {
    /// Addresses of the boxes that `owned` holds. The tag is zero: no address reaches into the top byte.
    by_key: LazyLock<TaggedMap>,
    owned: Mutex<Vec<Owned<T>>>,
}

struct Owned<T> {
    key: u64,
    object: Box<T>,
}

impl<T: Send + Sync + 'static> Objects<T> {
    pub(crate) const fn new() -> Objects<T> {
        Objects { by_key: LazyLock::new(|| TaggedMap::with_capacity(32)), owned: Mutex::new(Vec::new()) }
    }

    /// The object of a key. It lives until `remove`: the application must not use a handle while it destroys what
    /// the handle belongs to.
    #[inline(always)]
    pub(crate) fn get(&self, key: u64) -> Option<&'static T> {
        let address = self.by_key.get(key, 0)?;
        // SAFETY: only addresses of boxes in `owned` are in the map, and each is taken out before its box is dropped.
        Some(unsafe { &*std::ptr::with_exposed_provenance::<T>(address as usize) })
    }

    pub(crate) fn insert(&self, key: u64, object: T) -> &'static T {
        let object = Box::new(object);
        let address = (&raw const *object).expose_provenance() as u64;
        let mut owned = self.owned.lock().unwrap_or_else(PoisonError::into_inner);
        owned.push(Owned { key, object });
        self.by_key.insert(key, address);
        // SAFETY: as in `get`.
        unsafe { &*std::ptr::with_exposed_provenance::<T>(address as usize) }
    }

    /// The object leaves the map, and is the caller's.
    pub(crate) fn remove(&self, key: u64) -> Option<Box<T>> {
        self.by_key.remove(key, 0)?;
        let mut owned = self.owned.lock().unwrap_or_else(PoisonError::into_inner);
        let at = owned.iter().rposition(|it| it.key == key)?;
        Some(owned.swap_remove(at).object)
    }

    pub(crate) fn len(&self) -> usize {
        self.owned.lock().unwrap_or_else(PoisonError::into_inner).len()
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
    }
}
