//! Reads a trace file, and the `.tail` file that a killed capture leaves beside it.

use std::fs::{self, File};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use lavascope_platform::files::read_exact_at;
use lavascope_trace::repair;
use lavascope_trace::{MergedReader, ReadAt, Tail, Trace};

/// A trace file, with the tail that its capture did not write to the file.
pub(crate) struct TraceFile {
    pub(crate) path: PathBuf,
    bytes: Vec<u8>,
    /// The open file, if the bytes are read on demand.
    file: Option<DiskFile>,
    tail: Option<Tail>,
}

impl TraceFile {
    pub(crate) fn read(path: &Path) -> anyhow::Result<TraceFile> {
        let bytes = fs::read(path).with_context(|| format!("{} cannot be read", path.display()))?;
        Ok(TraceFile::from_bytes(path, bytes))
    }

    /// A trace file whose bytes are already in memory.
    pub(crate) fn from_bytes(path: &Path, bytes: Vec<u8>) -> TraceFile {
        let tail = fs::read(tail_path(path)).ok().and_then(|it| Tail::read(&it));
        TraceFile { path: path.to_owned(), bytes, file: None, tail }
    }

    /// Opens a trace file. If it has an index, only the needed parts are read.
    pub(crate) fn read_lazily(path: &Path) -> anyhow::Result<TraceFile> {
        let failed = || format!("{} cannot be read", path.display());
        let file = File::open(path).with_context(failed)?;
        let size = file.metadata().with_context(failed)?.len();
        let file = DiskFile { file, size };
        match Trace::open_indexed(&file) {
            Ok(Some(_)) => Ok(TraceFile { file: Some(file), ..TraceFile::from_bytes(path, Vec::new()) }),
            _ => TraceFile::read(path),
        }
    }

    pub(crate) fn open(&self) -> anyhow::Result<Trace<'_>> {
        let opened = match &self.file {
            Some(file) => Trace::open_indexed(file).transpose(),
            None => Some(Trace::open(&self.bytes)),
        };
        let opened = opened.ok_or_else(|| anyhow!("{} has changed while it was read", self.path.display()))?;
        opened.map_err(|it| anyhow!("{}: {it}", self.path.display()))
    }

    pub(crate) fn merged<'t, 'a>(&self, trace: &'t Trace<'a>) -> MergedReader<'t, 'a> {
        MergedReader::new(trace, self.tail.as_ref())
    }

    /// The size of the file in bytes.
    pub(crate) fn size(&self) -> u64 {
        self.file.as_ref().map_or(self.bytes.len() as u64, |it| it.size)
    }

    /// The tail that the capture did not write to the file.
    pub(crate) fn tail(&self) -> Option<&Tail> {
        self.tail.as_ref()
    }

    /// Whether a killed capture left a tail beside the file.
    pub(crate) fn has_tail(&self) -> bool {
        self.tail.is_some()
    }
}

/// An open file.
struct DiskFile {
    file: File,
    size: u64,
}

impl ReadAt for DiskFile {
    fn size(&self) -> u64 {
        self.size
    }

    fn read_at(&self, at: u64, to: &mut [u8]) -> bool {
        read_exact_at(&self.file, to, at).is_ok()
    }
}

/// The path of the file with the tail of a capture.
pub(crate) fn tail_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".tail");
    name.into()
}

/// Appends the tail of a killed capture to its trace file. Returns the number of records in the
/// tail.
pub(crate) fn repair_file(path: &Path) -> anyhow::Result<Option<u64>> {
    let file = TraceFile::read(path)?;
    let trace = file.open()?;
    if trace.is_complete() && !file.has_tail() {
        return Ok(None);
    }
    let repair = repair(&trace, file.tail.as_ref()).map_err(|it| anyhow!("{}: {it}", path.display()))?;
    let failed = || format!("{} cannot be made whole", path.display());
    let mut to = File::options().write(true).open(path).with_context(failed)?;
    to.set_len(repair.keep).with_context(failed)?;
    to.seek(SeekFrom::End(0)).with_context(failed)?;
    to.write_all(&repair.append).with_context(failed)?;
    to.sync_all().with_context(failed)?;
    // The tail is removed last, so that a failure before this line loses nothing.
    let _ = fs::remove_file(tail_path(path));
    Ok(Some(repair.records))
}
