//! The watcher: today it prints every call, with the names of the C API, into a file.
//!
//! `LAVASCOPE_PRINT` names the file, or `-` for standard error. Without it nothing is intercepted at all.

use std::fs::File;
use std::io::Write;
use std::sync::{LazyLock, Mutex, PoisonError};

use lavascope_abi::desc::{Layout, Len, Pointer, Target, Work};
use lavascope_abi::{Command, HandleType};
use lavascope_event::memory::Memory;
use lavascope_event::walk::Frame;
use lavascope_event::{Call, check, print::print, rules};
use lavascope_marshal::{CMemory, Packer, Stream, outputs_image};

use crate::knowledge::Knowledge;

static WATCHER: LazyLock<Option<Mutex<Watcher>>> = LazyLock::new(|| Watcher::from_environment().map(Mutex::new));

struct Watcher {
    knowledge: Knowledge,
    stream: Stream,
    outputs: Vec<u64>,
    to: Box<dyn Write + Send>,
    calls: u64,
}

/// Whether anybody wants to see calls.
pub(crate) fn is_on() -> bool {
    WATCHER.is_some()
}

/// Shows a call before the driver sees it.
///
/// # Safety
///
/// `params` must be valid parameters of `command`.
pub(crate) unsafe fn enter(command: Command, params: *const u8) {
    with_watcher(|it| {
        it.calls += 1;
        // SAFETY: the caller says that the parameters are valid.
        let text = unsafe { it.entered(command, params) };
        it.write(&text);
    });
}

/// Shows what a call returned and wrote.
///
/// # Safety
///
/// As for [`enter`], and the call must have returned `result`.
pub(crate) unsafe fn leave(command: Command, params: *const u8, result: u64) {
    with_watcher(|it| {
        // SAFETY: the caller says that the parameters are valid and the call returned.
        if let Some(text) = unsafe { it.left(command, params, result) } {
            it.write(&text);
        }
    });
}

/// The lock is held while packing and printing, never while the driver is called.
fn with_watcher(work: impl FnOnce(&mut Watcher)) {
    if let Some(watcher) = WATCHER.as_ref() {
        work(&mut watcher.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl Watcher {
    fn from_environment() -> Option<Watcher> {
        let path = std::env::var("LAVASCOPE_PRINT").ok().filter(|it| !it.is_empty())?;
        let to: Box<dyn Write + Send> = if path == "-" {
            Box::new(std::io::stderr())
        } else {
            match File::options().create(true).append(true).open(&path) {
                Ok(file) => Box::new(file),
                Err(error) => {
                    eprintln!("lavascope: LAVASCOPE_PRINT is {path}, which cannot be written: {error}");
                    return None;
                }
            }
        };
        Some(Watcher { knowledge: Knowledge::default(), stream: Stream::default(), outputs: vec![], to, calls: 0 })
    }

    fn write(&mut self, text: &str) {
        // The application goes on whatever becomes of our file.
        let _ = self.to.write_all(text.as_bytes());
    }

    unsafe fn entered(&mut self, command: Command, params: *const u8) -> String {
        self.stream.clear();
        // SAFETY: the caller says that the parameters are valid.
        let mut packer = unsafe { Packer::new(&self.knowledge, &self.knowledge) };
        let words = packer.enter(&mut self.stream, command, params, self.calls);
        match check(words) {
            Ok(record) => print(record),
            Err(error) => format!("{}: a bug of ours, please report it: {error}\n", command.desc().name),
        }
    }

    unsafe fn left(&mut self, command: Command, params: *const u8, result: u64) -> Option<String> {
        let desc = command.desc();
        // SAFETY: the caller says that the parameters are valid and the call returned.
        let has_outputs = unsafe { outputs_image(desc, params, result, &mut self.outputs) };
        if let (true, Some(outputs)) = (has_outputs, desc.outputs) {
            // SAFETY: as above.
            unsafe { self.learn(command, params, outputs.layout) };
        }
        // SAFETY: as above; what is destroyed is only named, not looked into.
        unsafe { self.forget(command, params) };
        if !has_outputs {
            return None;
        }
        self.stream.clear();
        // SAFETY: the outputs were just gathered from valid parameters.
        let mut packer = unsafe { Packer::new(&self.knowledge, &self.knowledge) };
        let words = packer.leave(&mut self.stream, command, self.outputs.as_ptr().cast(), self.calls)?;
        Some(match check(words) {
            Ok(record) => print(record),
            Err(error) => format!("{}: a bug of ours, please report it: {error}\n", desc.name),
        })
    }

    /// Names the objects that a call gave out, and keeps what it says about them.
    unsafe fn learn(&mut self, command: Command, params: *const u8, outputs: &'static Layout) {
        let name = command.desc().name;
        let is_new = name.starts_with("vkCreate") || name.starts_with("vkAllocate") || name.starts_with("vkRegister");
        let base = self.outputs.as_ptr().expose_provenance() as u64;
        // SAFETY: the outputs are those of a call that returned.
        let handles = unsafe { handles_behind(outputs, base) };
        let is_made = |it: &&(HandleType, u64, bool)| it.2;
        let made: Vec<u64> = handles.iter().filter(is_made).map(|it| it.1).collect();
        for (ty, handle, _) in handles.iter().filter(is_made) {
            self.knowledge.learn(*ty, *handle, is_new);
        }
        if !is_new || made.is_empty() {
            return;
        }
        let mut stream = Stream::default();
        // SAFETY: the parameters are still those of the call.
        let mut packer = unsafe { Packer::new(&self.knowledge, &self.knowledge) };
        if let Ok(record) = check(packer.enter(&mut stream, command, params, self.calls))
            && let Some(call) = Call::of(record)
        {
            self.knowledge.study(call, &made);
        }
    }

    unsafe fn forget(&mut self, command: Command, params: *const u8) {
        let desc = command.desc();
        let is_end = desc.name.starts_with("vkDestroy") || desc.name.starts_with("vkFree");
        if !is_end {
            return;
        }
        let base = params.expose_provenance() as u64;
        // SAFETY: the parameters are those of the call.
        let handles = unsafe { handles_behind(desc.parameters, base) };
        // What is destroyed comes last; before it stand the device and the pool.
        let Some(last) = handles.last().map(|it| it.0) else { return };
        for (ty, handle, _) in handles.into_iter().filter(|it| it.0 == last) {
            self.knowledge.forget(ty, handle);
        }
    }
}

/// The handles in an image and directly behind its pointers, in order, with whether they lie behind a pointer.
unsafe fn handles_behind(layout: &'static Layout, base: u64) -> Vec<(HandleType, u64, bool)> {
    // SAFETY: the caller has the image of a call.
    let memory = unsafe { CMemory::of_this_process() };
    let frame = Frame::root(layout, base);
    let mut found = Vec::new();
    for work in layout.work {
        let at = base + u64::from(work.at());
        match work {
            Work::Handles { ty, .. } => found.extend(memory.read(at, 8).map(|it| (*ty, it, false))),
            Work::Pointer { pointer: Pointer { to: Target::Handle(ty), len, .. }, .. } if *len != Len::Terminated => {
                let count = rules::count(&memory, &frame, *len, 0).unwrap_or(0);
                let first = memory.follow(at);
                let elements = (0..count).filter_map(|it| memory.read(first? + it * 8, 8));
                found.extend(elements.map(|it| (*ty, it, true)));
            }
            _ => {}
        }
    }
    found
}
