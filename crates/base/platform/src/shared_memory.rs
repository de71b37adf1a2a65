//! Memory that processes share by a handle, as the extensions of Vulkan for external objects give it away.

use std::io;
use std::time::Duration;

use crate::system;

/// An object that another process, or another place of this one, may have as well.
pub struct SharedMemory(system::shared_memory::SharedMemory);

impl SharedMemory {
    /// Zeros, as many bytes as wanted.
    pub fn new(bytes: u64) -> io::Result<SharedMemory> {
        system::shared_memory::SharedMemory::new(bytes).map(SharedMemory)
    }

    /// Takes the object of a handle.
    ///
    /// # Safety
    ///
    /// The handle must be one of the system's, and its owner must not use it again.
    pub unsafe fn from_handle(handle: i64) -> SharedMemory {
        // SAFETY: the same contract.
        SharedMemory(unsafe { system::shared_memory::SharedMemory::from_handle(handle) })
    }

    /// A handle for another owner, which must close it. The object stays.
    pub fn to_handle(&self) -> io::Result<i64> {
        self.0.to_handle()
    }

    /// The handle itself, which the caller must close.
    pub fn into_handle(self) -> i64 {
        self.0.into_handle()
    }

    /// Waits until the object can be read, at most so long; false if it cannot yet. A sync file can be read once it is
    /// signaled, and memory always.
    pub fn wait_until_ready(&self, most: Duration) -> io::Result<bool> {
        self.0.wait_until_ready(most)
    }

    /// The number that identifies it among all existing objects.
    pub fn number(&self) -> io::Result<u64> {
        self.0.number()
    }

    /// Maps it from its beginning on, at the wished address if that is free.
    pub fn map(&self, address: u64, bytes: usize) -> io::Result<u64> {
        self.0.map(address, bytes)
    }

    /// Maps a part of it at an address, and replaces existing mappings there.
    ///
    /// # Safety
    ///
    /// The memory at the addresses must not be used any more.
    pub unsafe fn map_at(&self, address: u64, bytes: usize, offset: u64) -> io::Result<()> {
        // SAFETY: the same contract.
        unsafe { self.0.map_at(address, bytes, offset) }
    }
}
