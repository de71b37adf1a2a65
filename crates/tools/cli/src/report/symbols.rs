//! Names for the addresses of call stacks: functions, files and lines, from what the modules on disk say of themselves.

use std::collections::HashMap;
use std::fs::File;

use addr2line::Loader;
use lavascope_platform::pages::page_size;
use object::read::ReadCache;
use object::{Object, ObjectSegment};

use crate::report::{Stack, StackFrame};

/// The modules that were looked at; none for those that cannot be read.
#[derive(Default)]
pub(crate) struct Symbols {
    modules: HashMap<String, Option<Module>>,
}

/// A module on disk, and the address of its first byte as the linker saw it: not zero for a program that cannot be
/// anywhere.
struct Module {
    loader: Loader,
    first: u64,
}

impl Module {
    fn open(path: &str) -> Option<Module> {
        let loader = Loader::new(path).ok()?;
        let first = first_address(path).unwrap_or(0).max(loader.relative_address_base());
        Some(Module { loader, first })
    }
}

fn first_address(path: &str) -> Option<u64> {
    let file = ReadCache::new(File::open(path).ok()?);
    let segments = object::File::parse(&file).ok()?;
    let first = segments.segments().map(|it| it.address()).min()?;
    // Modules are mapped from the beginning of a page on, of the system that the program ran on: this one.
    Some(first / page_size() * page_size())
}

impl Symbols {
    /// Finds the functions of all frames; those that were inlined become frames of their own.
    pub(crate) fn find(&mut self, stack: &mut Stack) {
        stack.frames = std::mem::take(&mut stack.frames).into_iter().flat_map(|it| self.frames(it)).collect();
    }

    fn frames(&mut self, frame: StackFrame) -> Vec<StackFrame> {
        let Some(path) = frame.module.clone() else { return vec![frame] };
        let loader = self.modules.entry(path).or_insert_with_key(|path| Module::open(path));
        let Some(loader) = loader else {
            return vec![StackFrame { function: frame.symbol.as_deref().map(demangled), ..frame }];
        };
        // The address is the one behind the call.
        let address = loader.first + frame.offset.saturating_sub(1);
        let loader = &loader.loader;
        let found = find_symbol_frames(loader, address).unwrap_or_default();
        let named = |(function, place): SymbolFrame| {
            let (file, line) = place.map_or((None, None), |it| (Some(it.0), it.1));
            StackFrame { function, file, line, ..frame.clone() }
        };
        let mut frames: Vec<StackFrame> = found.into_iter().map(named).collect();
        if frames.iter().all(|it| it.function.is_none()) {
            // Without debug information there may still be a table of functions.
            let function = loader.find_symbol(address).or(frame.symbol.as_deref());
            let function = function.map(demangled);
            match frames.first_mut() {
                Some(first) => first.function = function,
                None => frames.push(StackFrame { function, ..frame }),
            }
        }
        frames
    }
}

/// A function, and the file and line where it calls the one before it.
type SymbolFrame = (Option<String>, Option<(String, Option<u32>)>);

fn find_symbol_frames(loader: &Loader, address: u64) -> Option<Vec<SymbolFrame>> {
    let mut frames = loader.find_frames(address).ok()?;
    let mut found = Vec::new();
    while let Some(frame) = frames.next().ok()? {
        let function = frame.function.as_ref().and_then(|it| Some(it.demangle().ok()?.into_owned()));
        let place = frame.location.and_then(|it| Some((it.file?.to_owned(), it.line)));
        found.push((function, place));
    }
    Some(found)
}

fn demangled(name: &str) -> String {
    addr2line::demangle_auto(name.into(), None).into_owned()
}

/// A stack as it is told, line by line.
pub(crate) fn lines(stack: &Stack) -> Vec<String> {
    let mut lines = vec![format!("call stack of the {}:", stack.role)];
    for frame in stack.frames.iter().take(FRAMES_MAX) {
        let place = match (&frame.file, frame.line) {
            (Some(file), Some(line)) => format!(" at {file}:{line}"),
            (Some(file), None) => format!(" at {file}"),
            (None, _) => format!(" ({}+{:#x})", frame.module.as_deref().unwrap_or("?"), frame.offset),
        };
        lines.push(format!("  {}{place}", frame.function.as_deref().unwrap_or("?")));
    }
    if stack.frames.len() > FRAMES_MAX {
        lines.push(format!("  and {} more", stack.frames.len() - FRAMES_MAX));
    }
    lines
}

/// More than these are for the JSON.
const FRAMES_MAX: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_of_this_program_is_found() {
        let exe = std::env::current_exe().expect("a program knows where it is");
        let maps = std::fs::read_to_string("/proc/self/maps").expect("a process has maps");
        let first = maps.lines().find(|it| it.ends_with(&*exe.to_string_lossy())).expect("it is mapped");
        let base = u64::from_str_radix(first.split('-').next().expect("an address"), 16).expect("a number");
        let address = demangled as fn(&str) -> String as usize as u64;
        let frame = |module: &str| StackFrame {
            module: Some(module.to_owned()),
            // Behind the first byte of the function.
            offset: address - base + 1,
            symbol: Some("exported".to_owned()),
            function: None,
            file: None,
            line: None,
        };
        let frames = vec![frame(&exe.to_string_lossy()), frame("/no/such/module.so")];
        let mut stack = Stack { role: "access".to_owned(), frames };
        Symbols::default().find(&mut stack);
        let said = lines(&stack);
        assert_eq!(said[0], "call stack of the access:");
        assert!(said[1].contains("symbols::demangled"), "{said:?}");
        let last = said.last().expect("a line");
        assert!(last.starts_with("  exported (/no/such/module.so+0x"), "{said:?}");
    }
}
