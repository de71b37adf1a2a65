//! A thread that waits for copies and writes pictures. It is started with the first one.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use lavascope_abi::*;
use lavascope_platform::files::{self, FileLock};
use serde_json::json;

use super::screenshot::PendingScreenshot;
use super::{Pictures, lock};
use crate::process::catch_panic::catch_panic;
use crate::process::process_state::PROCESS_STATE;
use crate::report::messages::mark_layer_thread;
use crate::report::report_file;

/// Pictures of a device that may be under way. Who presents another one waits: each needs memory of the device.
const PENDING_MAX: usize = 4;
/// How long a thread waits for a picture. The device may itself wait for the application, and then no picture comes.
pub(super) const PICTURE_TIMEOUT: Duration = Duration::from_secs(10);

/// Pictures of all devices that were begun, and those that were written. Relaxed: a waiting thread only checks whether
/// they change.
static BEGUN: AtomicU64 = AtomicU64::new(0);
static WRITTEN: AtomicU64 = AtomicU64::new(0);
/// The process that writes: a fork has no thread for it. Relaxed: as above.
static WRITER_PROCESS: AtomicU32 = AtomicU32::new(0);

/// The thread, if it runs, and how much it has to do.
#[derive(Default)]
pub(super) struct PictureWriter {
    running: Mutex<Option<WriterThread>>,
    pending: Mutex<usize>,
    slot_freed: Condvar,
    /// Whether a thread has waited for too long: no thread waits again then. Relaxed: it orders nothing.
    is_stuck: AtomicBool,
}

struct WriterThread {
    screenshots: Sender<PendingScreenshot>,
    thread: JoinHandle<()>,
}

/// One of the pictures that may be under way.
pub(super) struct PendingSlot(Arc<PictureWriter>);

impl Drop for PendingSlot {
    fn drop(&mut self) {
        *lock(&self.0.pending) -= 1;
        self.0.slot_freed.notify_one();
        WRITTEN.fetch_add(1, Ordering::Relaxed);
    }
}

impl PictureWriter {
    /// Waits until there may be one picture more; none if that takes too long.
    pub(super) fn acquire_slot(self: &Arc<PictureWriter>, patience: Duration) -> Option<PendingSlot> {
        let full = |it: &mut usize| *it >= PENDING_MAX;
        let patience = if self.is_stuck.load(Ordering::Relaxed) { Duration::ZERO } else { patience };
        let waited = self.slot_freed.wait_timeout_while(lock(&self.pending), patience, full);
        let (mut under_way, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if full(&mut under_way) {
            self.is_stuck.store(true, Ordering::Relaxed);
            return None;
        }
        *under_way += 1;
        WRITER_PROCESS.store(std::process::id(), Ordering::Relaxed);
        BEGUN.fetch_add(1, Ordering::Relaxed);
        Some(PendingSlot(Arc::clone(self)))
    }

    /// Finishes pending pictures, and ends.
    pub(super) fn end(&self) {
        let running = lock(&self.running).take();
        if let Some(WriterThread { screenshots: shots, thread }) = running {
            drop(shots);
            // `catch_panic` has reported a panic.
            _ = thread.join();
        }
    }
}

/// The process ends: waits for pictures as long as they get on.
pub(crate) fn end_process() {
    if WRITER_PROCESS.load(Ordering::Relaxed) != std::process::id() {
        return;
    }
    let seen = || (BEGUN.load(Ordering::Relaxed), WRITTEN.load(Ordering::Relaxed));
    let (mut last, mut since) = (seen(), Instant::now());
    while last.0 != last.1 && since.elapsed() < PICTURE_TIMEOUT {
        std::thread::sleep(Duration::from_millis(1));
        if last != seen() {
            (last, since) = (seen(), Instant::now());
        }
    }
}

impl Pictures {
    /// Has a picture written when its copy is over.
    pub(super) fn queue_write(self: &Arc<Pictures>, shot: PendingScreenshot) {
        let mut running = lock(&self.writer.running);
        if running.is_none() {
            let (shots, asked) = channel::<PendingScreenshot>();
            // Not for ever: the thread ends before the device does (`PictureWriter::end`).
            let pictures = Arc::clone(self);
            let work = move || {
                mark_layer_thread();
                asked.into_iter().for_each(|it| catch_panic("a picture", || pictures.write_when_copied(it), || ()));
            };
            let thread = std::thread::Builder::new().name("lavascope-pictures".to_owned()).spawn(work);
            *running = thread.ok().map(|thread| WriterThread { screenshots: shots, thread });
        }
        let unsent = match &*running {
            Some(writer_thread) => writer_thread.screenshots.send(shot).err().map(|it| it.0),
            None => Some(shot),
        };
        drop(running);
        // Without a thread the application waits.
        if let Some(shot) = unsent {
            self.write_when_copied(shot);
        }
    }

    fn write_when_copied(&self, shot: PendingScreenshot) {
        let PendingScreenshot { frame, windows: parts, staging, slot: turn, .. } = shot;
        let (device, fence, functions) = (self.device, [staging.fence], &self.functions);
        let p_fence = Ptr::to_slice(&fence);
        // SAFETY: the fence of a staging, which `make_commands` made on this device and nobody destroys while we have
        // it. The device is alive until `end` has returned, which waits for this thread.
        let result = unsafe { (functions.wait_for_fences)(device, 1, p_fence, Bool32::TRUE, u64::MAX) };
        if result != Result::SUCCESS {
            // The device may still use it, so it is not used again.
            self.state().lost_stagings.push(staging);
            return self
                .warn_once(&format!("there is no picture of frame {frame}: vkWaitForFences returned {result:?}"));
        }
        // SAFETY: the copy is over: the fence that its submission signals was waited for.
        let bytes = unsafe { staging.bytes() };
        for part in &parts {
            let (first, size) = (part.offset as usize, part.texel_format.bytes(part.extent) as usize);
            let picture = part.texel_format.picture(part.extent, &bytes[first..first + size]);
            if self.wanted.has_hashes {
                let hash = lavascope_picture::hash(&picture);
                let presented = json!({ "frame": frame, "window": part.window, "hash": hash });
                PROCESS_STATE.add_trace_metadata(json!({ "presented": presented }));
            }
            if !self.wanted.is_written(frame) {
                continue;
            }
            let path = claimed_folder(&self.wanted.folder).join(lavascope_picture::file_name(frame, part.window));
            match lavascope_picture::write(&path, &picture) {
                Ok(()) => report_file::picture(&path),
                Err(error) => self.warn_once(&error.to_string()),
            }
        }
        // SAFETY: the fence of the staging, whose submission is over (VUID-vkResetFences-pFences-01123); nobody else
        // has it.
        unsafe { (functions.reset_fences)(device, 1, p_fence) };
        self.state().free_stagings.push(staging);
        drop(turn);
    }
}

/// Where this process puts its pictures: in a folder of its own, if another process writes into the one that is meant.
fn claimed_folder(wanted: &Path) -> PathBuf {
    /// The folders that this process writes to: by requested name, the actual folder, and its open directory, which is
    /// locked.
    static CLAIMED: Mutex<BTreeMap<PathBuf, (PathBuf, Option<File>)>> = Mutex::new(BTreeMap::new());
    let mut claimed = lock(&CLAIMED);
    let claim = || {
        // The writer of the picture reports errors.
        _ = std::fs::create_dir_all(wanted);
        let open = File::open(wanted);
        let is_anothers = |it: &File| files::try_lock(it) == FileLock::Others;
        match open {
            Ok(file) if is_anothers(&file) => (wanted.join(std::process::id().to_string()), None),
            Ok(file) => (wanted.to_owned(), Some(file)),
            Err(_) => (wanted.to_owned(), None),
        }
    };
    claimed.entry(wanted.to_owned()).or_insert_with(claim).0.clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_of_another_process_is_left_alone() {
        let folder_of_test = std::env::temp_dir().join(format!("lavascope-pictures-{}", std::process::id()));
        let (own, others) = (folder_of_test.join("own"), folder_of_test.join("others"));
        assert_eq!([claimed_folder(&own), claimed_folder(&own)], [own.clone(), own]);
        std::fs::create_dir_all(&others).expect("it can be made");
        let lock = File::open(&others).expect("it is there");
        assert_eq!(files::try_lock(&lock), FileLock::Ours, "nobody has it");
        assert_eq!(claimed_folder(&others), others.join(std::process::id().to_string()));
        std::fs::remove_dir_all(&folder_of_test).expect("it is ours");
    }

    #[test]
    fn only_so_many_pictures_are_under_way() {
        let writer = Arc::new(PictureWriter::default());
        let turns: Vec<PendingSlot> = (0..PENDING_MAX).filter_map(|_| writer.acquire_slot(PICTURE_TIMEOUT)).collect();
        assert_eq!(turns.len(), PENDING_MAX);
        let waiting = std::thread::spawn({
            let writer = Arc::clone(&writer);
            move || writer.acquire_slot(PICTURE_TIMEOUT).is_some()
        });
        std::thread::sleep(Duration::from_millis(20));
        assert!(!waiting.is_finished());
        drop(turns);
        assert!(waiting.join().expect("it does not panic"));
        assert_eq!(*lock(&writer.pending), 0);
        // No thread waits twice for a device that makes no progress.
        let turns: Vec<PendingSlot> = (0..PENDING_MAX).filter_map(|_| writer.acquire_slot(PICTURE_TIMEOUT)).collect();
        assert!(writer.acquire_slot(Duration::from_millis(1)).is_none());
        assert!(writer.acquire_slot(PICTURE_TIMEOUT * 1000).is_none());
        drop(turns);
        assert!(writer.acquire_slot(PICTURE_TIMEOUT).is_some());
    }
}
