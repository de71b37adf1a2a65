//! Marks of what the driver compiles at the moment, for `lavascope run`: after a crash it reads them.
//!
//! The file `PID.compiling` of the report folder has slots of equal size, one for each call of the driver that is under
//! way. A slot has the lines of `lavascope_settings::CrashedShader` for the shaders of the call, up to a zero. The system
//! keeps what was written when a process dies. A process that was forked has no marks: its slots are those of its parent.

use std::fs::File;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use lavascope_platform::files;

use crate::report::report_file;

const SLOT_BYTES: usize = 4096;

static MARKS: OnceLock<Option<MarkFile>> = OnceLock::new();

struct MarkFile {
    process: u32,
    file: File,
    /// A bit for each slot that is taken. Acquire and release: a slot is cleared before it is taken again.
    taken: AtomicU64,
}

/// The mark of a call; goes away with it.
pub(crate) struct CompileMark {
    marks: &'static MarkFile,
    slot: u32,
}

/// Opens the file, where there is a report folder. Called before the first mark.
pub(crate) fn open() {
    MARKS.get_or_init(|| {
        let process = std::process::id();
        let path = report_file::folder()?.join(format!("{process}.compiling"));
        let file = files::private_file().write(true).create_new(true).open(path).ok()?;
        Some(MarkFile { process, file, taken: AtomicU64::new(0) })
    });
}

/// Marks the shaders whose lines the text has, if somebody reads that after a crash.
pub(crate) fn mark(text: impl FnOnce() -> String) -> Option<CompileMark> {
    let marks = MARKS.get()?.as_ref().filter(|it| it.process == std::process::id())?;
    let slot = marks.take_slot()?;
    let mark = CompileMark { marks, slot };
    let mut bytes = text().into_bytes();
    // Whole lines only; the rest of the slot may have longer text of an earlier call.
    let end = if bytes.len() < SLOT_BYTES { bytes.len() } else { SLOT_BYTES - 1 };
    let end = bytes[..end].iter().rposition(|it| *it == b'\n').map_or(0, |it| it + 1);
    bytes.truncate(end);
    bytes.push(0);
    // A mark is help after a crash; without it, the crash is reported without the shader.
    let _ = files::write_all_at(&marks.file, &bytes, mark.start());
    Some(mark)
}

impl MarkFile {
    fn take_slot(&self) -> Option<u32> {
        let mut taken = self.taken.load(Ordering::Relaxed);
        loop {
            let slot = taken.trailing_ones();
            if slot == u64::BITS {
                return None;
            }
            match self.taken.compare_exchange_weak(taken, taken | 1 << slot, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return Some(slot),
                Err(now) => taken = now,
            }
        }
    }
}

impl CompileMark {
    fn start(&self) -> u64 {
        u64::from(self.slot) * SLOT_BYTES as u64
    }
}

impl Drop for CompileMark {
    fn drop(&mut self) {
        // In a process that was forked in the meantime, the slot is that of its parent.
        if self.marks.process == std::process::id() {
            let _ = files::write_all_at(&self.marks.file, &[0], self.start());
            self.marks.taken.fetch_and(!(1 << self.slot), Ordering::Release);
        }
    }
}
