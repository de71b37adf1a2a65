//! Names for the addresses of call stacks: functions, files and lines, from what the modules on disk say of themselves.
//!
//! Frames of the C library, the Vulkan loader, drivers, layers and bindings are dropped: nobody looks for a bug there.
//! Frames of other libraries keep the library's name.

use std::collections::{HashMap, HashSet};
use std::fs::File;

use addr2line::Loader;
use lavascope_findings::{Finding, SourceLocation, Stack, StackFrame, simple_function_name};
use lavascope_platform::pages::page_size;
use object::read::ReadCache;
use object::{Object, ObjectSegment};

use crate::report::frame_origin::{FrameOrigin, frame_origin, is_about, is_called_as};
use crate::report::source_lines::SourceLines;

/// The modules that were read; none for those that cannot be read.
#[derive(Default)]
pub(crate) struct Symbols {
    /// The files of the programs that ran.
    programs: Vec<String>,
    modules: HashMap<String, Option<Module>>,
    lines: SourceLines,
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
    pub(crate) fn of_programs(programs: Vec<String>) -> Symbols {
        Symbols { programs, ..Symbols::default() }
    }

    /// Finds source lines for all call stacks of a finding, and the library that it is in.
    pub(crate) fn find(&mut self, finding: &mut Finding) {
        finding.stacks_mut().for_each(|it| self.find_stack(it));
        mark_wrappers(finding);
        mark_shared_callees(finding);
        finding.source.iter_mut().for_each(|it| self.lines.complete(it));
        let innermost = finding.accesses.first().and_then(|it| it.stack.frames.first());
        finding.library = innermost.and_then(|it| it.library.clone());
    }

    /// Finds the functions of all frames; those that were inlined become frames of their own.
    fn find_stack(&mut self, stack: &mut Stack) {
        let frames = std::mem::take(&mut stack.frames).into_iter().flat_map(|it| self.frames(it));
        for mut frame in frames.collect::<Vec<_>>() {
            frame.library = match frame_origin(&frame, &self.programs) {
                FrameOrigin::Program => None,
                FrameOrigin::Library(name) => Some(name),
                FrameOrigin::Plumbing => continue,
            };
            frame.source.iter_mut().for_each(|it| self.lines.complete(it));
            stack.frames.push(frame);
        }
        name_closures(stack);
    }

    fn frames(&mut self, frame: StackFrame) -> Vec<StackFrame> {
        // Frames of shaders come with their source.
        let Some(path) = frame.module.clone().filter(|_| frame.source.is_none()) else { return vec![frame] };
        let loader = self.modules.entry(path).or_insert_with_key(|path| Module::open(path));
        let Some(loader) = loader else {
            let symbol = frame.symbol.as_deref().map(demangled);
            return vec![StackFrame { symbol, ..frame }];
        };
        // The address is the one behind the call.
        let address = loader.first + frame.offset.saturating_sub(1);
        let loader = &loader.loader;
        let found = find_symbol_frames(loader, address).unwrap_or_default();
        let named = |it: SymbolFrame| StackFrame { symbol: it.function, source: it.source, ..frame.clone() };
        let mut frames: Vec<StackFrame> = found.into_iter().map(named).collect();
        // The name of a closure is short there, and whole in the table of functions.
        if let Some(outermost) = frames.last_mut().filter(|it| it.symbol.as_deref().is_some_and(is_closure)) {
            let whole = loader.find_symbol(address).map(demangled).filter(|it| !is_closure(it));
            outermost.source.iter_mut().for_each(|it| it.function = whole.clone().or(it.function.take()));
            outermost.symbol = whole.or(outermost.symbol.take());
        }
        if frames.iter().all(|it| it.symbol.is_none()) {
            // Without debug information there may still be a table of functions.
            let function = loader.find_symbol(address).or(frame.symbol.as_deref());
            let symbol = function.map(demangled);
            // Functions that were inlined come first, and have no name there.
            match frames.last_mut() {
                Some(outermost) => {
                    outermost.source.iter_mut().for_each(|it| it.function = symbol.clone());
                    outermost.symbol = symbol;
                }
                None => frames.push(StackFrame { symbol, ..frame }),
            }
        }
        frames
    }
}

/// Whether a name is that of a closure, without the function that has it: `{closure#1}`.
fn is_closure(name: &str) -> bool {
    simple_function_name(name).starts_with('{')
}

/// Gives closures the names of the functions that they are written in. Debug information may have only `{closure#1}`; then
/// it is the next caller in the same file. A closure that is called from elsewhere stays without a name.
fn name_closures(stack: &mut Stack) {
    for at in 0..stack.frames.len() {
        let (inner, outer) = stack.frames.split_at_mut(at + 1);
        let frame = &mut inner[at];
        let Some(source) = frame.source.as_mut() else { continue };
        let Some(own) = source.function.clone().filter(|it| is_closure(it)) else { continue };
        let of_file = outer.iter().filter_map(|it| it.source.as_ref()).filter(|it| it.file == source.file);
        let enclosing = of_file.filter_map(|it| it.function.as_deref()).find(|it| !is_closure(it));
        source.function = enclosing.map(|it| format!("{}::{own}", simple_function_name(it)));
        frame.symbol = source.function.clone().or(Some(own));
    }
}

/// Where both accesses are in one line of a function, that function is shown by the lines that call it, if those differ.
fn mark_shared_callees(finding: &mut Finding) {
    let [last, prior, ..] = &finding.accesses[..] else { return };
    let Some(count) = shared_callees(&last.stack, &prior.stack) else { return };
    let known = [last.stack.clone(), prior.stack.clone()];
    // A fix may be at one of the two accesses.
    for stack in finding.stacks_mut().filter(|it| known.contains(it)) {
        let own = stack.frames.iter_mut().filter(|it| is_own_line(it));
        own.take(count).for_each(|it| it.is_wrapper = true);
    }
}

/// How many functions of the program the two stacks have in common from the innermost one on, if they differ behind those.
fn shared_callees(one: &Stack, other: &Stack) -> Option<usize> {
    let lines = |stack: &Stack| -> Vec<(String, u32)> {
        let own = stack.frames.iter().filter(|it| is_own_line(it)).filter_map(|it| it.source.as_ref());
        own.map(|it| (it.file.clone(), it.line)).collect()
    };
    let (one, other) = (lines(one), lines(other));
    let count = one.iter().zip(&other).take_while(|it| it.0 == it.1).count();
    (count > 0 && count < one.len().min(other.len())).then_some(count)
}

fn is_own_line(frame: &StackFrame) -> bool {
    frame.library.is_none() && !frame.is_wrapper && frame.source.as_ref().is_some_and(|it| it.line > 0)
}

/// Marks the functions that only pass a command on. A report shows who calls them.
///
/// A function through which the commands of the finding come at several lines does more than that, whatever its name.
fn mark_wrappers(finding: &mut Finding) {
    let busy = functions_with_several_lines(finding);
    let accesses = finding.accesses.iter_mut().map(|it| (&it.function, &mut it.stack));
    let sites = finding.more_sites.iter_mut().map(|it| (&it.function, &mut it.stack));
    for (command, stack) in accesses.chain(sites) {
        // The command of a layout transition is a barrier.
        let is_barrier = command.contains("Barrier");
        mark_wrappers_of(stack, &busy, |name| is_called_as(name, command) || is_barrier && is_about(name, "barrier"));
    }
    for operation in &mut finding.operations {
        let is_wrapper = |name: &str| is_called_as(name, &operation.function) || is_about(name, &operation.kind);
        mark_wrappers_of(&mut operation.stack, &busy, is_wrapper);
    }
    for change in finding.fixes.iter_mut().flat_map(|it| &mut it.changes) {
        // What is inserted is before a command; what is changed is called by its kind: `the barrier`.
        let is_wrapper = |name: &str| match change.target.strip_prefix("before ") {
            Some(command) => is_called_as(name, command),
            None => is_about(name, change.target.trim_start_matches("the ")),
        };
        mark_wrappers_of(&mut change.stack, &busy, is_wrapper);
    }
}

fn functions_with_several_lines(finding: &mut Finding) -> HashSet<String> {
    let mut lines: HashMap<String, HashSet<(String, u32)>> = HashMap::new();
    for frame in finding.stacks_mut().flat_map(|it| &it.frames) {
        if let (Some(name), Some(source)) = (function_name(frame), &frame.source) {
            lines.entry(name).or_default().insert((source.file.clone(), source.line));
        }
    }
    lines.retain(|_, own| own.len() > 1);
    lines.into_keys().collect()
}

fn mark_wrappers_of(stack: &mut Stack, busy: &HashSet<String>, is_named: impl Fn(&str) -> bool) {
    let is_wrapper =
        |frame: &&mut StackFrame| function_name(frame).is_some_and(|name| !busy.contains(&name) && is_named(&name));
    let own = stack.frames.iter_mut().filter(|it| it.library.is_none());
    own.take_while(is_wrapper).for_each(|it| it.is_wrapper = true);
}

fn function_name(frame: &StackFrame) -> Option<String> {
    frame.source.as_ref().and_then(|it| it.function.clone()).or(frame.symbol.clone())
}

/// A function, and the line where it calls the one before it.
struct SymbolFrame {
    function: Option<String>,
    source: Option<SourceLocation>,
}

fn find_symbol_frames(loader: &Loader, address: u64) -> Option<Vec<SymbolFrame>> {
    let mut frames = loader.find_frames(address).ok()?;
    let mut found = Vec::new();
    while let Some(frame) = frames.next().ok()? {
        let function = frame.function.as_ref().and_then(|it| Some(it.demangle().ok()?.into_owned()));
        let source = frame.location.and_then(|location| {
            Some(SourceLocation {
                file: location.file?.to_owned(),
                line: location.line.unwrap_or(0),
                column: location.column.filter(|it| *it > 0),
                function: function.clone(),
                text: None,
            })
        });
        found.push(SymbolFrame { function, source });
    }
    Some(found)
}

fn demangled(name: &str) -> String {
    addr2line::demangle_auto(name.into(), None).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stack(frames: &[(&str, &str, u32)]) -> Stack {
        let frame = |(function, file, line): &(&str, &str, u32)| {
            let function = Some((*function).to_owned());
            let source =
                SourceLocation { file: (*file).to_owned(), line: *line, function, ..SourceLocation::default() };
            StackFrame { symbol: source.function.clone(), source: Some(source), ..StackFrame::default() }
        };
        Stack { frames: frames.iter().map(frame).collect() }
    }

    #[test]
    fn closures_have_the_name_of_their_function() {
        let mut own = stack(&[
            ("{closure#1}", "five.rs", 59),
            ("labeled<(), five::run_frame::{closure#0}::{closure_env#1}>", "labels.rs", 28),
            ("{closure#0}", "five.rs", 57),
            ("five::run_frame", "five.rs", 55),
            ("{closure#0}", "pool.rs", 9),
        ]);
        name_closures(&mut own);
        let names = own.frames.iter().map(|it| it.source.as_ref().and_then(|it| it.function.as_deref()));
        let names: Vec<_> = names.map(|it| it.map(simple_function_name)).collect();
        let name = |it: &str| Some(it.to_owned());
        assert_eq!(names, [name("run_frame"), name("labeled"), name("run_frame"), name("run_frame"), None]);
    }

    #[test]
    fn accesses_of_one_line_are_shown_where_their_callers_differ() {
        let shared =
            |one: &[(&str, &str, u32)], other: &[(&str, &str, u32)]| shared_callees(&stack(one), &stack(other));
        let (draw, mesh) = (("draw", "mesh.c", 9), ("mesh", "mesh.c", 20));
        assert_eq!(shared(&[draw, mesh, ("main", "main.c", 1)], &[draw, mesh, ("main", "main.c", 2)]), Some(2));
        assert_eq!(shared(&[draw, mesh], &[draw, ("mesh", "mesh.c", 30)]), Some(1));
        assert_eq!(
            (shared(&[draw, mesh], &[draw, mesh]), shared(&[draw], &[mesh]), shared(&[], &[])),
            (None, None, None)
        );
    }

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
            ..StackFrame::default()
        };
        let frames = vec![frame("/usr/lib/libc.so.6"), frame(&exe.to_string_lossy()), frame("/no/such/module.so")];
        let mut stack = Stack { frames };
        Symbols::default().find_stack(&mut stack);
        let first = &stack.frames[0];
        assert!(first.symbol.as_ref().is_some_and(|it| it.contains("symbols::demangled")), "{stack:?}");
        let source = first.source.as_ref().expect("tests have debug information");
        assert!(source.file.ends_with("symbols.rs") && source.line > 0, "{source:?}");
        assert!(source.text.as_ref().is_some_and(|it| it.contains("fn demangled")), "{source:?}");
        let last = stack.frames.last().expect("a frame");
        assert_eq!((last.symbol.as_deref(), last.source.as_ref()), (Some("exported"), None));
    }
}
