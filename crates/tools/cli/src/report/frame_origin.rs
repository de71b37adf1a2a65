//! Whose code a function of a call stack is: the user's, a library's, or what only passes Vulkan calls on.

use std::path::Path;

use lavascope_findings::{StackFrame, simple_function_name};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FrameOrigin {
    Program,
    /// A library that the user did not write, by its name.
    Library(String),
    /// The C library, the Vulkan loader, drivers, layers, bindings, and what starts a program.
    Plumbing,
}

/// Modules that pass calls on, by the beginning of their file name.
const PLUMBING_MODULES: [&str; 17] = [
    "ld-linux",
    "ld-musl",
    "libVkLayer_",
    "libc.",
    "libc-",
    "libc++",
    "libdl.",
    "libgcc_s",
    "libm.",
    "libpthread",
    "libstdc++",
    "libvulkan.",
    "libvulkan_",
    "libnvidia",
    "libGLX_nvidia",
    "libnull_driver",
    "linux-vdso",
];

/// Crates that are thin bindings of Vulkan.
const BINDINGS: [&str; 6] = ["ash", "ash-window", "erupt", "vk-sys", "vulkanalia", "vulkanalia-sys"];

/// Folders that have code of others, one folder for each library.
const FOREIGN_FOLDERS: [&str; 8] =
    ["3rdparty", "_deps", "external", "node_modules", "subprojects", "third_party", "third-party", "thirdparty"];

/// Folders of the system, whose shared libraries the user did not write.
const SYSTEM_FOLDERS: [&str; 6] = ["/lib/", "/lib64/", "/nix/store/", "/snap/", "/usr/lib/", "/usr/lib64/"];

/// Folders where people install programs with the libraries that belong to them.
const INSTALL_FOLDERS: [&str; 2] = ["/opt/", "/usr/local/"];

/// `programs` are the files of the programs that ran.
pub(crate) fn frame_origin(frame: &StackFrame, programs: &[String]) -> FrameOrigin {
    let of_file = frame.source.as_ref().map_or(FrameOrigin::Program, |it| origin_of_file(&it.file));
    if of_file != FrameOrigin::Program {
        return of_file;
    }
    // These are linked into each program.
    let starts_programs = ["_start", "__libc_start_main", "__libc_start_call_main"];
    if frame.symbol.as_deref().is_some_and(|it| starts_programs.contains(&it)) {
        return FrameOrigin::Plumbing;
    }
    frame.module.as_deref().map_or(FrameOrigin::Program, |it| origin_of_module(it, programs))
}

fn origin_of_file(file: &str) -> FrameOrigin {
    // The standard libraries of Rust and C++, and headers with bindings.
    let is_standard =
        file.starts_with("/rustc/") || file.contains("/lib/rustlib/") || file.starts_with("/usr/include/");
    if is_standard || file.contains("/include/c++/") || file.contains("/vulkan/vulkan") {
        return FrameOrigin::Plumbing;
    }
    let parts: Vec<&str> = file.split('/').collect();
    let package = match parts.iter().position(|it| *it == "registry" || *it == "checkouts") {
        // `registry/src/REGISTRY/NAME-VERSION/…`
        Some(at) if parts[at] == "registry" && parts.get(at + 1) == Some(&"src") => parts.get(at + 3),
        // `git/checkouts/NAME-HASH/…`
        Some(at) if at > 0 && parts[at - 1] == "git" => parts.get(at + 1),
        _ => None,
    };
    if let Some(package) = package {
        let name = package.rsplit_once('-').map_or(*package, |it| it.0);
        return if BINDINGS.contains(&name) { FrameOrigin::Plumbing } else { FrameOrigin::Library(name.to_owned()) };
    }
    let folder = parts.iter().position(|it| FOREIGN_FOLDERS.contains(it));
    match folder.and_then(|it| parts.get(it + 1)).filter(|it| !it.contains('.')) {
        Some(name) => FrameOrigin::Library((*name).to_owned()),
        None => FrameOrigin::Program,
    }
}

fn origin_of_module(path: &str, programs: &[String]) -> FrameOrigin {
    let name = Path::new(path).file_name().map(|it| it.to_string_lossy()).unwrap_or_default();
    if PLUMBING_MODULES.iter().any(|it| name.starts_with(it)) {
        return FrameOrigin::Plumbing;
    }
    // Programs of the system are what the user runs.
    let is_installed = install_folder(path).is_some_and(|folder| !programs.iter().any(|it| it.starts_with(folder)));
    match name.find(".so").filter(|_| is_installed || SYSTEM_FOLDERS.iter().any(|it| path.starts_with(it))) {
        Some(end) => FrameOrigin::Library(name[..end].to_owned()),
        None => FrameOrigin::Program,
    }
}

/// The folder of a file that was installed apart from the system: `/opt/engine/` or `/usr/local/`.
fn install_folder(path: &str) -> Option<&str> {
    let folder = INSTALL_FOLDERS.into_iter().find(|it| path.starts_with(it))?;
    // Each program has a folder of its own in `/opt`.
    let own = path[folder.len()..].find('/').filter(|_| folder == "/opt/").map_or(0, |it| it + 1);
    Some(&path[..folder.len() + own])
}

/// Whether a function has the name of a Vulkan command or a part of it: `Commands::fill` of `vkCmdFillBuffer`.
pub(crate) fn is_called_as(function: &str, command: &str) -> bool {
    const LETTERS_MIN: usize = 4;
    let (name, command) = (letters(&simple_function_name(function)), letters(command));
    let of_command = command.strip_prefix("vk").unwrap_or(&command);
    name.len() >= LETTERS_MIN && !of_command.is_empty() && (command.contains(&name) || name.contains(of_command))
}

/// Whether a function is named after a kind of operation: `memory_barrier`, `Commands::barriers`.
pub(crate) fn is_about(function: &str, kind: &str) -> bool {
    let (name, kind) = (letters(&simple_function_name(function)), letters(kind));
    let name = name.trim_end_matches('s');
    !kind.is_empty() && (name.starts_with(&kind) || name.ends_with(&kind))
}

/// Only the letters, all of them small.
fn letters(text: &str) -> String {
    text.chars().filter(|it| it.is_ascii_alphabetic()).map(|it| it.to_ascii_lowercase()).collect()
}

#[cfg(test)]
mod tests {
    use lavascope_findings::SourceLocation;

    use super::*;

    fn origin(module: &str, file: &str) -> FrameOrigin {
        let source = SourceLocation { file: file.to_owned(), line: 1, ..SourceLocation::default() };
        let source = Some(source).filter(|_| !file.is_empty());
        let frame = StackFrame { module: Some(module.to_owned()), source, ..StackFrame::default() };
        frame_origin(&frame, &["/opt/me/app".to_owned()])
    }

    #[test]
    fn wrappers_are_called_as_their_command() {
        for (function, command) in [
            ("samples::common::commands::<impl samples::Gpu>::fill", "vkCmdFillBuffer"),
            ("CommandBuffer::drawIndexed(unsigned int)", "vkCmdDrawIndexed"),
            ("gfx::my_vkCmdDispatch", "vkCmdDispatch"),
            ("gfx::barrier::{closure#0}", "vkCmdPipelineBarrier2"),
            ("Queue::submit", "vkQueueSubmit2"),
        ] {
            assert!(is_called_as(function, command), "{function} {command}");
        }
        for (function, command) in [
            ("record", "vkCmdDraw"),
            ("main", "vkCmdDraw"),
            ("f", "vkCmdFillBuffer"),
            ("draw_frame", "vkCmdDraw"),
            ("draw", ""),
        ] {
            assert!(!is_called_as(function, command), "{function} {command}");
        }
        assert!(is_about("gpu::memory_barrier", "barrier") && is_about("Commands::barriers(int)", "barrier"));
        assert!(!is_about("record", "barrier") && !is_about("record", ""));
    }

    #[test]
    fn frames_belong_to_the_program_to_libraries_or_to_nobody() {
        let library = |name: &str| FrameOrigin::Library(name.to_owned());
        for (module, file, expected) in [
            ("/opt/me/app", "src/main.c", FrameOrigin::Program),
            ("/usr/bin/vkcube", "", FrameOrigin::Program),
            ("/opt/me/libengine.so", "", FrameOrigin::Program),
            ("/opt/engine/lib/libengine.so.2", "", library("libengine")),
            ("/usr/local/lib/libengine.so.2", "", library("libengine")),
            ("/usr/local/bin/app", "", FrameOrigin::Program),
            ("/usr/lib/x86_64-linux-gnu/libgtk-4.so.1.800.3", "", library("libgtk-4")),
            ("/lib/x86_64-linux-gnu/libc.so.6", "", FrameOrigin::Plumbing),
            ("/usr/lib/x86_64-linux-gnu/libvulkan_lvp.so", "", FrameOrigin::Plumbing),
            ("/opt/me/app", "/rustc/0123/library/core/src/ops/function.rs", FrameOrigin::Plumbing),
            ("/opt/me/app", "/opt/me/.cargo/registry/src/index-1/ash-0.38.0/src/device.rs", FrameOrigin::Plumbing),
            ("/opt/me/app", "/c/registry/src/index-1/wgpu-hal-0.20.1/src/vulkan/command.rs", library("wgpu-hal")),
            ("/opt/me/app", "/opt/me/.cargo/git/checkouts/vello-9f1c/ab12/src/lib.rs", library("vello")),
            ("/opt/me/app", "/opt/me/app/third_party/imgui/imgui_impl_vulkan.cpp", library("imgui")),
            ("/opt/me/app", "/opt/me/app/external/main.c", FrameOrigin::Program),
            ("/opt/me/app", "/usr/include/c++/12/bits/invoke.h", FrameOrigin::Plumbing),
            ("/opt/me/app", "/opt/sdk/include/vulkan/vulkan.hpp", FrameOrigin::Plumbing),
        ] {
            assert_eq!(origin(module, file), expected, "{module} {file}");
        }
    }
}
