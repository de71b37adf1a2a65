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
use lavascope_platform::files::{self, Claim};

use super::shot::Shot;
use super::{Pictures, lock};
use crate::fence::fence;
use crate::messages::mark_own_thread;
use crate::report;

/// Pictures of a device that may be under way. Who presents another one waits: each needs memory of the device.
const UNDER_WAY_MAX: usize = 4;
/// How long somebody waits for a picture. The device may itself wait for the application, and then there is none.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// Pictures of all devices that are begun, and those that are written. Relaxed: who waits looks whether they move.
static BEGUN: AtomicU64 = AtomicU64::new(0);
static WRITTEN: AtomicU64 = AtomicU64::new(0);
/// The process that writes: a fork has no thread for it. Relaxed: as above.
static PROCESS: AtomicU32 = AtomicU32::new(0);

/// The thread, if it runs, and how much it has to do.
#[derive(Default)]
pub(super) struct Writer {
    running: Mutex<Option<Running>>,
    under_way: Mutex<usize>,
    is_less: Condvar,
    /// Whether somebody has waited for too long: nobody does it again. Relaxed: it orders nothing.
    is_stuck: AtomicBool,
}

struct Running {
    shots: Sender<Shot>,
    thread: JoinHandle<()>,
}

/// One of the pictures that may be under way.
pub(super) struct Turn(Arc<Writer>);

impl Drop for Turn {
    fn drop(&mut self) {
        *lock(&self.0.under_way) -= 1;
        self.0.is_less.notify_one();
        WRITTEN.fetch_add(1, Ordering::Relaxed);
    }
}

impl Writer {
    /// Waits until there may be one picture more; none where that takes too long.
    pub(super) fn turn(self: &Arc<Writer>, patience: Duration) -> Option<Turn> {
        let full = |it: &mut usize| *it >= UNDER_WAY_MAX;
        let patience = if self.is_stuck.load(Ordering::Relaxed) { Duration::ZERO } else { patience };
        let waited = self.is_less.wait_timeout_while(lock(&self.under_way), patience, full);
        let (mut under_way, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if full(&mut under_way) {
            self.is_stuck.store(true, Ordering::Relaxed);
            return None;
        }
        *under_way += 1;
        PROCESS.store(std::process::id(), Ordering::Relaxed);
        BEGUN.fetch_add(1, Ordering::Relaxed);
        Some(Turn(Arc::clone(self)))
    }

    /// Finishes what is under way, and ends.
    pub(super) fn end(&self) {
        let running = lock(&self.running).take();
        if let Some(Running { shots, thread }) = running {
            drop(shots);
            // A panic was told by its fence.
            _ = thread.join();
        }
    }
}

/// The process ends: waits for pictures as long as they get on.
pub(crate) fn end_process() {
    if PROCESS.load(Ordering::Relaxed) != std::process::id() {
        return;
    }
    let seen = || (BEGUN.load(Ordering::Relaxed), WRITTEN.load(Ordering::Relaxed));
    let (mut last, mut since) = (seen(), Instant::now());
    while last.0 != last.1 && since.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(1));
        if last != seen() {
            (last, since) = (seen(), Instant::now());
        }
    }
}

impl Pictures {
    /// Has a picture written when its copy is over.
    pub(super) fn write(self: &Arc<Pictures>, shot: Shot) {
        let mut running = lock(&self.writer.running);
        if running.is_none() {
            let (shots, asked) = channel::<Shot>();
            // Not for ever: the thread ends before the device does (`Writer::end`).
            let pictures = Arc::clone(self);
            let work = move || {
                mark_own_thread();
                asked.into_iter().for_each(|it| fence("a picture", || pictures.finish(it), || ()));
            };
            let thread = std::thread::Builder::new().name("lavascope-pictures".to_owned()).spawn(work);
            *running = thread.ok().map(|thread| Running { shots, thread });
        }
        let unsent = match &*running {
            Some(it) => it.shots.send(shot).err().map(|it| it.0),
            None => Some(shot),
        };
        drop(running);
        // Without a thread the application waits.
        if let Some(shot) = unsent {
            self.finish(shot);
        }
    }

    fn finish(&self, shot: Shot) {
        let Shot { frame, parts, staging, turn, .. } = shot;
        let (device, fence, functions) = (self.device, [staging.fence], &self.functions);
        let p_fence = Ptr::to_slice(&fence);
        // SAFETY: the fence of a staging, which `make_commands` made on this device and nobody destroys while we have
        // it. The device is alive until `end` has returned, which waits for this thread.
        let result = unsafe { (functions.wait_for_fences)(device, 1, p_fence, Bool32::TRUE, u64::MAX) };
        if result != Result::SUCCESS {
            // What the device does with it nobody knows, so it is not used again.
            self.state().lost.push(staging);
            return self.say(&format!("there is no picture of frame {frame}: vkWaitForFences gives {result:?}"));
        }
        // SAFETY: the copy is over: the fence that its submission signals was waited for.
        let bytes = unsafe { staging.bytes() };
        for part in &parts {
            let (first, size) = (part.offset as usize, part.texels.bytes(part.extent) as usize);
            let picture = part.texels.picture(part.extent, &bytes[first..first + size]);
            let path = folder(&self.wanted.folder).join(lavascope_picture::name(frame, part.window));
            match lavascope_picture::write(&path, &picture) {
                Ok(()) => report::picture(&path),
                Err(error) => self.say(&error.to_string()),
            }
        }
        // SAFETY: the fence of the staging, whose submission is over (VUID-vkResetFences-pFences-01123); nobody else
        // has it.
        unsafe { (functions.reset_fences)(device, 1, p_fence) };
        self.state().spares.push(staging);
        drop(turn);
    }
}

/// Where this process puts its pictures: in a folder of its own, if another process writes into the one that is meant.
fn folder(wanted: &Path) -> PathBuf {
    /// With what others see, and nobody else gets while it is open.
    static CLAIMED: Mutex<BTreeMap<PathBuf, (PathBuf, Option<File>)>> = Mutex::new(BTreeMap::new());
    let mut claimed = lock(&CLAIMED);
    let claim = || {
        // What is wrong with it is told by whoever writes the picture.
        _ = std::fs::create_dir_all(wanted);
        let open = File::open(wanted);
        let is_anothers = |it: &File| files::claim(it) == Claim::Others;
        match open {
            Ok(it) if is_anothers(&it) => (wanted.join(std::process::id().to_string()), None),
            Ok(it) => (wanted.to_owned(), Some(it)),
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
        assert_eq!([folder(&own), folder(&own)], [own.clone(), own]);
        std::fs::create_dir_all(&others).expect("it can be made");
        let lock = File::open(&others).expect("it is there");
        assert_eq!(files::claim(&lock), Claim::Ours, "nobody has it");
        assert_eq!(folder(&others), others.join(std::process::id().to_string()));
        std::fs::remove_dir_all(&folder_of_test).expect("it is ours");
    }

    #[test]
    fn only_so_many_pictures_are_under_way() {
        let writer = Arc::new(Writer::default());
        let turns: Vec<Turn> = (0..UNDER_WAY_MAX).filter_map(|_| writer.turn(PATIENCE)).collect();
        assert_eq!(turns.len(), UNDER_WAY_MAX);
        let waiting = std::thread::spawn({
            let writer = Arc::clone(&writer);
            move || writer.turn(PATIENCE).is_some()
        });
        std::thread::sleep(Duration::from_millis(20));
        assert!(!waiting.is_finished());
        drop(turns);
        assert!(waiting.join().expect("it does not panic"));
        assert_eq!(*lock(&writer.under_way), 0);
        // Nobody waits a second time for a device that does not get on.
        let turns: Vec<Turn> = (0..UNDER_WAY_MAX).filter_map(|_| writer.turn(PATIENCE)).collect();
        assert!(writer.turn(Duration::from_millis(1)).is_none());
        assert!(writer.turn(PATIENCE * 1000).is_none());
        drop(turns);
        assert!(writer.turn(PATIENCE).is_some());
    }
}
