//! The instances and devices that are alive, found by the dispatch key of any handle that belongs to them.
//!
//! Looked at on every intercepted call, so a look-up takes no lock. That a reference stays valid is no business of the
//! map then: the application must not use a handle while it destroys what the handle belongs to. So look-ups are unsafe,
//! and who looks something up says which valid usage keeps it alive.

use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use lavascope_collections::TaggedMap;

/// Objects by dispatch key.
pub(crate) struct DispatchMap<T: Send + 'static> {
    /// Addresses of the boxes that `owned` holds. The tag is zero: no address reaches into the top byte. Null before
    /// the first and after `release`. Release in `map`, under the lock; pairs with Acquire in `get`.
    by_key: AtomicPtr<TaggedMap>,
    owned: Mutex<Vec<DispatchEntry<T>>>,
}

struct DispatchEntry<T> {
    key: u64,
    /// Made by `Box::into_raw` in `insert`, and made a box again in `remove` alone: as a box it could not be moved while
    /// somebody has its address.
    object: NonNull<T>,
}

// SAFETY: it owns the object as a box would, which can be sent where the object can.
unsafe impl<T: Send> Send for DispatchEntry<T> {}

impl<T: Send + Sync + 'static> DispatchMap<T> {
    pub(crate) const fn new() -> DispatchMap<T> {
        DispatchMap { by_key: AtomicPtr::new(std::ptr::null_mut()), owned: Mutex::new(Vec::new()) }
    }

    /// The object of a key; none for zero, the key of a null handle.
    ///
    /// # Safety
    ///
    /// The key must be zero, or of a handle that is alive. Nobody may `remove` the object while `'a` lasts.
    #[inline(always)]
    pub(crate) unsafe fn get<'a>(&self, key: u64) -> Option<&'a T> {
        // With no object alive `release` may free the map at any moment, and zero is all that may be asked for then.
        if key == 0 {
            return None;
        }
        // SAFETY: null, or a map that lives until `release`, which frees it only while no object is alive; by the
        // contract of this function the object of the key is.
        let by_key = unsafe { self.by_key.load(Ordering::Acquire).as_ref() }?;
        let address = by_key.get(key, 0)?;
        // SAFETY: `insert` alone fills the map, with addresses of objects that live until `remove`, which the contract
        // of this function excludes.
        Some(unsafe { &*std::ptr::with_exposed_provenance::<T>(address as usize) })
    }

    /// # Safety
    ///
    /// Nobody may `remove` the object while `'a` lasts.
    pub(crate) unsafe fn insert<'a>(&self, key: u64, object: T) -> &'a T {
        let object = NonNull::from(Box::leak(Box::new(object)));
        let mut owned = self.lock();
        self.map(&mut owned).insert(key, object.as_ptr().expose_provenance() as u64);
        owned.push(DispatchEntry { key, object });
        // SAFETY: it lives until `remove`, which the contract of this function excludes.
        unsafe { object.as_ref() }
    }

    /// The object leaves the map, and is the caller's. Whoever looked it up answers for it that nobody uses it now.
    pub(crate) fn remove(&self, key: u64) -> Option<Box<T>> {
        let mut owned = self.lock();
        self.map(&mut owned).remove(key, 0)?;
        let at = owned.iter().rposition(|it| it.key == key)?;
        let object = owned.swap_remove(at).object;
        // SAFETY: made by `Box::leak` in `insert`, and no longer in the list, so that this is done once. References to
        // it are over by the contracts of `get` and `insert`.
        Some(unsafe { Box::from_raw(object.as_ptr()) })
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
                // SAFETY: made by `Box::into_raw` in `map`. No object is alive, and by the contract of `get` whoever is
                // in there has the key of one that is; other functions take the lock, which is ours.
                drop(unsafe { Box::from_raw(by_key) });
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<DispatchEntry<T>>> {
        self.owned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The map, made when it is first needed. The lock says that nobody else makes one.
    fn map<'a>(&'a self, _: &mut MutexGuard<'a, Vec<DispatchEntry<T>>>) -> &'a TaggedMap {
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
pub(crate) struct WatchedDispatch<T: 'static> {
    by_key: LazyLock<TaggedMap>,
    kind: PhantomData<&'static T>,
}

impl<T: Sync + 'static> WatchedDispatch<T> {
    pub(crate) const fn new() -> WatchedDispatch<T> {
        WatchedDispatch { by_key: LazyLock::new(|| TaggedMap::with_capacity(32)), kind: PhantomData }
    }

    /// # Safety
    ///
    /// The key must be zero, or of a handle that is alive. Nobody may `remove` the object from its [`DispatchMap`] while
    /// `'a` lasts.
    #[inline(always)]
    pub(crate) unsafe fn get<'a>(&self, key: u64) -> Option<&'a T> {
        let address = self.by_key.get(key, 0)?;
        // SAFETY: `insert` alone fills the map, with addresses of objects in [`DispatchMap`]. Each is taken out of this map
        // first, and both are excluded by the contract of this function.
        Some(unsafe { &*std::ptr::with_exposed_provenance::<T>(address as usize) })
    }

    /// # Safety
    ///
    /// The object must be that of this key in its [`DispatchMap`], and be taken out here before it is there.
    pub(crate) unsafe fn insert(&self, key: u64, object: &T) {
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
        let objects = DispatchMap::<String>::new();
        let insert = |key, text: &str| {
            // SAFETY: the reference is not kept.
            unsafe { objects.insert(key, text.into()) };
        };
        // SAFETY: the reference does not outlive the statement that has it, which removes nothing.
        let get = |key| unsafe { objects.get(key) }.map(String::as_str);
        insert(0x1000, "first");
        insert(0x2000, "second");
        assert_eq!(get(0x2000), Some("second"));
        assert_eq!(objects.remove(0x1000).as_deref().map(String::as_str), Some("first"));
        assert!(get(0x1000).is_none() && get(0).is_none());
        assert_eq!(objects.len(), 1);
        objects.release();
        assert!(get(0x2000).is_some(), "what is alive stays");
        assert!(objects.remove(0x2000).is_some());
        objects.release();
        assert!(get(0x2000).is_none());
        insert(0x2000, "third");
        assert_eq!(get(0x2000), Some("third"));
        assert!(objects.remove(0x2000).is_some());
    }
}
