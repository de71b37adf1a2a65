//! The stacks that were captured: each once, by module and offset, so that a module may be unloaded before a report
//! needs them. Symbols are looked up when somebody asks, since that takes long in large libraries.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, OnceLock, PoisonError};

use lavascope_platform::library::{LoadedModule, ModuleChanges, loaded_modules, module_changes, module_of};
use lavascope_platform::stack::ReturnAddress;
use xxhash_rust::xxh64::Xxh64;

/// Largest number of different stacks that are kept.
const STACKS_MAX: usize = 1 << 18;

/// One function of a stack, by the address behind the call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CapturedFrame {
    /// The file, if it is known.
    pub(crate) module: Option<Arc<str>>,
    /// From the beginning of the module.
    pub(crate) offset: u64,
    /// The exported function at or before it.
    pub(crate) symbol: Option<String>,
}

/// A frame as it is kept.
#[derive(Clone, Copy)]
struct TableFrame {
    address: usize,
    /// An index of `modules`, if it is known.
    module: Option<u32>,
}

/// A module that is or was loaded.
struct KnownModule {
    path: Arc<str>,
    base: usize,
    end: usize,
    is_loader: bool,
    /// Whether it is still loaded.
    is_live: bool,
}

static STACKS: LazyLock<Mutex<StackTable>> = LazyLock::new(Mutex::default);

/// Counts how often modules were found to be unloaded: their addresses may mean something else from then on. Relaxed:
/// an application does not unload the code of a frame that is live.
static GENERATION: AtomicU32 = AtomicU32::new(0);

#[derive(Default)]
struct StackTable {
    /// By a hash of their addresses. Equal hashes are taken for equal stacks.
    numbers: HashMap<u64, u32>,
    /// From number one on.
    stacks: Vec<Box<[TableFrame]>>,
    modules: Vec<KnownModule>,
    changes: ModuleChanges,
}

/// See [`GENERATION`].
#[inline(always)]
pub(super) fn generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
}

/// Whether an address is in this library. In unit tests the library is a part of the program.
pub(super) fn is_own(address: usize) -> bool {
    static OWN: OnceLock<(usize, usize)> = OnceLock::new();
    let (base, end) = *OWN.get_or_init(|| {
        let own = (generation as fn() -> u32 as *const ()).addr();
        let found = loaded_modules().into_iter().find(|it| (it.base..it.end).contains(&own));
        found.map_or((0, 0), |it| (it.base, it.end))
    });
    cfg!(not(test)) && (base..end).contains(&address)
}

/// Whether an address is in the Vulkan loader.
pub(super) fn is_of_loader(address: usize) -> bool {
    let mut table = lock();
    table.follow_modules();
    table.module_at(address).is_some_and(|it| table.modules[it as usize].is_loader)
}

/// The number of a stack; zero if it is empty, or if there are too many.
pub(super) fn number_of_stack(frames: &[ReturnAddress]) -> u32 {
    let mut table = lock();
    table.follow_modules();
    let mut hasher = Xxh64::new(0);
    frames.iter().for_each(|it| hasher.update(&it.address.to_ne_bytes()));
    let hash = hasher.digest();
    if let Some(number) = table.numbers.get(&hash) {
        return *number;
    }
    if frames.is_empty() || table.stacks.len() == STACKS_MAX {
        return 0;
    }
    // The address behind a call may be that of the next function, or of the next module.
    let frame = |it: &ReturnAddress| TableFrame { address: it.address, module: table.module_at(it.address - 1) };
    let stack = frames.iter().map(frame).collect();
    table.stacks.push(stack);
    let number = table.stacks.len() as u32;
    table.numbers.insert(hash, number);
    number
}

/// The frames of a stack, the innermost first, without those of this library.
pub(crate) fn frames(number: u32) -> Vec<CapturedFrame> {
    let Some(index) = (number as usize).checked_sub(1) else { return Vec::new() };
    let all: Vec<(usize, Option<FrameModule>)> = {
        let table = lock();
        let stack = table.stacks.get(index).map_or(&[][..], |it| it);
        stack.iter().map(|it| (it.address, table.module_of_frame(*it))).collect()
    };
    // Without the lock: the dynamic linker has a lock of its own, and code that it calls may call Vulkan.
    all.into_iter().map(|(address, module)| captured(address, module)).collect()
}

/// The module of a frame, outside of the table.
struct FrameModule {
    path: Arc<str>,
    base: usize,
    is_live: bool,
}

fn captured(address: usize, module: Option<FrameModule>) -> CapturedFrame {
    let Some(module) = module else {
        return CapturedFrame { module: None, offset: address as u64, symbol: None };
    };
    // The symbols of a module that was unloaded are gone.
    let named = module_of(address - 1).filter(|it| module.is_live && it.base == module.base);
    let (offset, symbol) = ((address - module.base) as u64, named.and_then(|it| it.symbol));
    CapturedFrame { module: Some(module.path), offset, symbol }
}

/// The addresses of stacks that threads remember count no more: more frames may be wanted, or modules changed.
pub(super) fn forget_known_stacks() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
}

impl StackTable {
    /// Brings `modules` up to date.
    fn follow_modules(&mut self) {
        let changes = module_changes();
        if changes == self.changes {
            return;
        }
        if changes.unloaded != self.changes.unloaded {
            self.numbers.clear();
            forget_known_stacks();
        }
        self.changes = changes;
        let loaded = loaded_modules();
        for known in &mut self.modules {
            let is_same = |it: &LoadedModule| it.base == known.base && it.end == known.end;
            known.is_live &= loaded.iter().any(|it| is_same(it) && *known.path == *path_of(it));
        }
        for module in loaded {
            let path = path_of(&module);
            let is_same = |it: &KnownModule| it.is_live && it.base == module.base && *it.path == *path;
            if !self.modules.iter().any(is_same) {
                let is_loader = path.rsplit('/').next().is_some_and(|it| it.starts_with("libvulkan.so"));
                let (base, end) = (module.base, module.end);
                self.modules.push(KnownModule { path: path.into(), base, end, is_loader, is_live: true });
            }
        }
    }

    fn module_at(&self, address: usize) -> Option<u32> {
        let is_in = |it: &KnownModule| it.is_live && (it.base..it.end).contains(&address);
        self.modules.iter().position(is_in).map(|it| it as u32)
    }

    fn module_of_frame(&self, frame: TableFrame) -> Option<FrameModule> {
        let module = self.modules.get(frame.module? as usize)?;
        Some(FrameModule { path: module.path.clone(), base: module.base, is_live: module.is_live })
    }
}

fn lock() -> MutexGuard<'static, StackTable> {
    STACKS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The file of a module. The dynamic linker has none for the program itself.
fn path_of(module: &LoadedModule) -> String {
    if module.file.is_empty() {
        let program = std::env::current_exe();
        return program.map_or_else(|_| String::new(), |it| it.to_string_lossy().into_owned());
    }
    module.file.clone()
}
