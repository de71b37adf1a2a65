//! Files without a name as memory that is shared.

use std::io;
use std::os::fd::{AsFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::ptr;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap};

pub(crate) struct SharedMemory(OwnedFd);

impl SharedMemory {
    pub(crate) fn new(bytes: u64) -> io::Result<SharedMemory> {
        let file = rustix::fs::memfd_create(c"lavascope", rustix::fs::MemfdFlags::CLOEXEC)?;
        rustix::fs::ftruncate(&file, bytes)?;
        Ok(SharedMemory(file))
    }

    /// # Safety
    ///
    /// As for [`crate::shared_memory::SharedMemory::from_handle`].
    pub(crate) unsafe fn from_handle(handle: i64) -> SharedMemory {
        // SAFETY: an open descriptor that nobody else closes, by this function's contract.
        SharedMemory(unsafe { OwnedFd::from_raw_fd(handle as RawFd) })
    }

    pub(crate) fn to_handle(&self) -> io::Result<i64> {
        self.0.try_clone().map(|it| it.into_raw_fd().into())
    }

    pub(crate) fn into_handle(self) -> i64 {
        self.0.into_raw_fd().into()
    }

    pub(crate) fn wait_until_ready(&self, most: Duration) -> io::Result<bool> {
        let mut polled = [PollFd::new(&self.0, PollFlags::IN)];
        let most = Timespec { tv_sec: most.as_secs() as i64, tv_nsec: most.subsec_nanos().into() };
        match poll(&mut polled, Some(&most)) {
            Ok(count) => Ok(count > 0),
            Err(Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    pub(crate) fn number(&self) -> io::Result<u64> {
        Ok(rustix::fs::fstat(&self.0)?.st_ino)
    }

    pub(crate) fn map(&self, address: u64, bytes: usize) -> io::Result<u64> {
        let hint = ptr::without_provenance_mut(address as usize);
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping; the address is a wish only.
        let mapped = unsafe { mmap(hint, bytes, protection, MapFlags::SHARED, self.0.as_fd(), 0) }?;
        Ok(mapped.expose_provenance() as u64)
    }

    /// # Safety
    ///
    /// As for [`crate::shared_memory::SharedMemory::map_at`].
    pub(crate) unsafe fn map_at(&self, address: u64, bytes: usize, offset: u64) -> io::Result<()> {
        let place = ptr::with_exposed_provenance_mut(address as usize);
        let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED | MapFlags::FIXED);
        // SAFETY: nobody uses what is there, by this function's contract.
        unsafe { mmap(place, bytes, protection, flags, self.0.as_fd(), offset) }?;
        Ok(())
    }
}
