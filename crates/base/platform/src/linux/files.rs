//! Files, by the calls of the system.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::ptr::{self, NonNull};

use rustix::fs::FallocateFlags;
use rustix::mm::{MapFlags, ProtFlags};

use crate::files::FileLock;
use crate::pages::page_size;

pub(crate) const LIST_SEPARATOR: char = ':';

pub(crate) fn try_lock(file: &File) -> FileLock {
    match file.try_lock() {
        Ok(()) => FileLock::Ours,
        Err(TryLockError::WouldBlock) => FileLock::Others,
        Err(TryLockError::Error(_)) => FileLock::Unsupported,
    }
}

pub(crate) fn read_exact_at(file: &File, to: &mut [u8], at: u64) -> io::Result<()> {
    FileExt::read_exact_at(file, to, at)
}

pub(crate) fn write_all_at(file: &File, bytes: &[u8], at: u64) -> io::Result<()> {
    FileExt::write_all_at(file, bytes, at)
}

pub(crate) fn private_folder() -> DirBuilder {
    let mut builder = DirBuilder::new();
    builder.mode(0o700);
    builder
}

pub(crate) fn private_file() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(0o600);
    options
}

pub(crate) fn open_own(path: &Path) -> io::Result<File> {
    let file = File::options().read(true).custom_flags(libc::O_NOFOLLOW).open(path)?;
    let about = file.metadata()?;
    if about.is_file() && about.uid() == rustix::process::geteuid().as_raw() {
        Ok(file)
    } else {
        Err(io::ErrorKind::PermissionDenied.into())
    }
}

pub(crate) fn raises_rights(program: &Path) -> bool {
    let Ok(about) = program.metadata() else { return false };
    let sets = |bit: u32| about.mode() & bit != 0;
    let is_other_user = about.uid() != rustix::process::geteuid().as_raw();
    let is_other_group = about.gid() != rustix::process::getegid().as_raw();
    sets(libc::S_ISUID) && is_other_user || sets(libc::S_ISGID) && is_other_group
}

pub(crate) fn map_until_exit(file: &File, first: u64, bytes: usize) -> io::Result<NonNull<u8>> {
    // Really there: a write to a mapped page of a full disk would end the process.
    rustix::fs::fallocate(file, FallocateFlags::empty(), first, bytes as u64)?;
    let page = first / page_size() * page_size();
    let before = (first - page) as usize;
    let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
    // SAFETY: a new mapping at a place of the kernel's choice, so that it is nobody else's memory.
    let mapped = unsafe { rustix::mm::mmap(ptr::null_mut(), before + bytes, protection, flags, file, page) }?;
    // SAFETY: inside of what was just mapped.
    let start = unsafe { mapped.byte_add(before) };
    NonNull::new(start.cast()).ok_or_else(|| io::ErrorKind::OutOfMemory.into())
}
