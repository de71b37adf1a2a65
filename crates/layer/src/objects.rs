//! The instances and devices that are alive, found by the dispatch key of any handle that belongs to them.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use crate::interface::GetProcAddr;
use crate::{DeviceTable, InstanceTable};

/// An instance and what comes after us in its chain.
pub(crate) struct InstanceData {
    pub(crate) get_instance_proc_addr: GetProcAddr,
    /// For functions of physical devices that the next layer knows and we do not.
    pub(crate) get_physical_device_proc_addr: Option<GetProcAddr>,
    pub(crate) table: InstanceTable,
}

/// A device and what comes after us in its chain.
pub(crate) struct DeviceData {
    pub(crate) get_device_proc_addr: GetProcAddr,
    pub(crate) table: DeviceTable,
}

/// Objects by dispatch key. Looked at when functions are asked for, never in a recorded command.
pub(crate) struct Objects<T> {
    by_key: RwLock<Option<HashMap<u64, Arc<T>>>>,
}

impl<T> Objects<T> {
    pub(crate) const fn new() -> Objects<T> {
        Objects { by_key: RwLock::new(None) }
    }

    pub(crate) fn get(&self, key: u64) -> Option<Arc<T>> {
        let by_key = self.by_key.read().unwrap_or_else(PoisonError::into_inner);
        by_key.as_ref()?.get(&key).cloned()
    }

    pub(crate) fn insert(&self, key: u64, object: T) {
        let mut by_key = self.by_key.write().unwrap_or_else(PoisonError::into_inner);
        by_key.get_or_insert_default().insert(key, Arc::new(object));
    }

    pub(crate) fn remove(&self, key: u64) -> Option<Arc<T>> {
        let mut by_key = self.by_key.write().unwrap_or_else(PoisonError::into_inner);
        by_key.as_mut()?.remove(&key)
    }
}

/// The key that all dispatchable handles of one instance or device share: the loader's table behind them.
///
/// # Safety
///
/// `handle` must be null or a dispatchable handle that is alive.
pub(crate) unsafe fn dispatch_key(handle: u64) -> u64 {
    if handle == 0 {
        return 0;
    }
    let address = std::ptr::with_exposed_provenance::<u64>(handle as usize);
    // SAFETY: the loader demands that a dispatchable handle points to a word of its own.
    unsafe { address.read() }
}
