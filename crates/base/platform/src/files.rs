//! Files: reading and writing at a place, claims, files that only their owner may read, and files as memory.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::path::Path;
use std::ptr::NonNull;

use crate::system;

/// The separator of a list of paths, as in `PATH`.
pub const LIST_SEPARATOR: char = system::files::LIST_SEPARATOR;

/// Whether a file could be claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileLock {
    /// It is ours until it is closed.
    Ours,
    /// Another process, or another open file of this one, has claimed it.
    Others,
    /// The file system knows no claims.
    Unsupported,
}

/// Locks an open file or folder, without waiting. Locks exclude each other; processes without a lock may read and
/// write.
pub fn try_lock(file: &File) -> FileLock {
    system::files::try_lock(file)
}

/// Fills `to` with the bytes from a place of the file on.
pub fn read_exact_at(file: &File, to: &mut [u8], at: u64) -> io::Result<()> {
    system::files::read_exact_at(file, to, at)
}

/// Writes all bytes to a place of the file.
pub fn write_all_at(file: &File, bytes: &[u8], at: u64) -> io::Result<()> {
    system::files::write_all_at(file, bytes, at)
}

/// Makes folders that only their owner may use.
pub fn private_folder() -> DirBuilder {
    system::files::private_folder()
}

/// Makes files that only their owner may use.
pub fn private_file() -> OpenOptions {
    system::files::private_file()
}

/// Opens a file for reading if the user of this process owns it, and it is a file itself and no link to one.
pub fn open_own(path: &Path) -> io::Result<File> {
    system::files::open_own(path)
}

/// Whether a program gets the rights of another user or group when this process starts it.
pub fn raises_rights(program: &Path) -> bool {
    system::files::raises_rights(program)
}

/// Makes a part of the file memory that every process sees, and that the file has even if this process is killed. The
/// part need not begin with a page. It is allocated on disk first, and stays mapped until the process ends.
///
/// The memory begins as the file has it: zeros where the file ended before.
pub fn map_until_exit(file: &File, first: u64, bytes: usize) -> io::Result<NonNull<u8>> {
    system::files::map_until_exit(file, first, bytes)
}
