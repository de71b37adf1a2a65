//! Stacks that were captured: each once, by module and offset.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use lavascope_platform::stack::ReturnAddress;

use crate::process::library;
use crate::process::library::Module;

/// Different stacks that are kept.
const STACKS_MAX: usize = 1 << 16;

/// One function of a stack, by the address behind the call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CapturedFrame {
    /// The file, or none where nobody knows.
    pub(crate) module: Option<Arc<str>>,
    /// From the beginning of the module.
    pub(crate) offset: u64,
    /// The exported function at or before it.
    pub(crate) symbol: Option<String>,
}

static STACKS: LazyLock<Mutex<StackTable>> = LazyLock::new(Mutex::default);

#[derive(Default)]
struct StackTable {
    hasher: RandomState,
    /// By what their addresses hash to; equal numbers are equal stacks, near enough.
    numbers: HashMap<u64, u32>,
    /// From number one on.
    stacks: Vec<Vec<CapturedFrame>>,
    modules: HashMap<usize, Arc<str>>,
}

/// The number of a stack; zero, if there are too many.
pub(super) fn number_of_stack(slots: &[ReturnAddress]) -> u32 {
    let mut kept = stack_table();
    let hash = kept.hasher.hash_one(slots.iter().map(|it| it.address).collect::<Vec<_>>());
    if let Some(number) = kept.numbers.get(&hash) {
        return *number;
    }
    if kept.stacks.len() == STACKS_MAX {
        return 0;
    }
    let stack = kept.resolve(slots);
    kept.stacks.push(stack);
    let number = kept.stacks.len() as u32;
    kept.numbers.insert(hash, number);
    number
}

/// The frames of a stack, the innermost first, without our own.
pub(crate) fn frames(number: u32) -> Vec<CapturedFrame> {
    let index = (number as usize).checked_sub(1);
    index.and_then(|it| stack_table().stacks.get(it).cloned()).unwrap_or_default()
}

impl StackTable {
    fn resolve(&mut self, slots: &[ReturnAddress]) -> Vec<CapturedFrame> {
        let own = module_at((frames as fn(u32) -> Vec<CapturedFrame> as *const ()).addr()).map(|it| it.base);
        let mut is_own = true;
        let mut stack = Vec::new();
        for slot in slots {
            // The address behind a call may be that of the next function.
            let found = module_at(slot.address - 1);
            is_own &= cfg!(not(test)) && own.is_some() && found.as_ref().map(|it| it.base) == own;
            if is_own {
                continue;
            }
            let frame = match found {
                Some(found) => CapturedFrame {
                    offset: (slot.address - found.base) as u64,
                    module: Some(self.module(found.base, found.file)),
                    symbol: found.symbol,
                },
                None => CapturedFrame { module: None, offset: slot.address as u64, symbol: None },
            };
            stack.push(frame);
        }
        stack
    }

    fn module(&mut self, base: usize, file: String) -> Arc<str> {
        let known = self.modules.entry(base).or_insert_with(|| Arc::from(file.as_str()));
        if **known != *file {
            // Another one took its place.
            *known = Arc::from(file);
        }
        known.clone()
    }
}

fn stack_table() -> MutexGuard<'static, StackTable> {
    STACKS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The module of an address, with a path where it is the program itself: that goes by the word it was called with.
fn module_at(address: usize) -> Option<Module> {
    let mut found = library::module_of(address)?;
    if !found.file.starts_with('/')
        && let Ok(program) = std::env::current_exe()
    {
        found.file = program.to_string_lossy().into_owned();
    }
    Some(found)
}
