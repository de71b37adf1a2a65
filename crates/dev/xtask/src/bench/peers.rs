//! The tools that the benchmark compares with, and the machine that it runs on.

use std::ffi::OsString;
use std::path::Path;

use crate::setup::{chromium, process, system};

/// The variable by which a bench binary finds a Khronos layer that is newer than the installed one.
const KHRONOS_LIBRARY: &str = "LAVASCOPE_BENCH_KHRONOS_LIBRARY";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BenchPeer {
    Khronos,
    Gfxreconstruct,
}

impl BenchPeer {
    /// The name with the version.
    pub(super) fn name(self, root: &Path) -> String {
        match self {
            BenchPeer::Khronos if newer_khronos(root).is_some() => "Khronos layer of Chromium".to_owned(),
            BenchPeer::Khronos => with_version("Khronos layer", installed_khronos()),
            BenchPeer::Gfxreconstruct => {
                let output = process::output(root, "gfxrecon-info", &["--version"]).ok();
                let text = output.map(|it| String::from_utf8_lossy(&it.stdout).into_owned());
                with_version("GFXReconstruct", text.as_deref().and_then(gfxreconstruct_version))
            }
        }
    }

    /// What a bench binary needs in its environment to find the peer.
    pub(super) fn variable(self, root: &Path) -> Option<(&'static str, OsString)> {
        match self {
            BenchPeer::Khronos => Some((KHRONOS_LIBRARY, newer_khronos(root)?)),
            BenchPeer::Gfxreconstruct => None,
        }
    }
}

fn with_version(name: &str, version: Option<String>) -> String {
    version.map_or(name.to_owned(), |it| format!("{name} {it}"))
}

/// The library of the layer that Chromium ships, if a test run fetched it or a variable names it.
fn newer_khronos(root: &Path) -> Option<OsString> {
    let fetched = || chromium::khronos(root, true).ok().map(OsString::from);
    std::env::var_os(KHRONOS_LIBRARY).or_else(fetched)
}

fn installed_khronos() -> Option<String> {
    let manifest = std::fs::read_to_string(system::khronos_manifest()?).ok()?;
    let manifest: serde_json::Value = serde_json::from_str(&manifest).ok()?;
    Some(manifest["layer"]["api_version"].as_str()?.to_owned())
}

fn gfxreconstruct_version(text: &str) -> Option<String> {
    let (_, after) = text.split_once("GFXReconstruct Version ")?;
    after.split([' ', '-', '\n']).next().map(str::to_owned)
}

/// The processor and its cores. If other programs keep half of the cores busy, that is part of it.
pub(super) fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    describe_machine(&read("/proc/cpuinfo"), &read("/proc/loadavg"), cores)
}

fn describe_machine(processor: &str, load: &str, cores: usize) -> String {
    let field = |line: &str| Some(line.strip_prefix("model name")?.split_once(':')?.1.trim().to_owned());
    let processor = processor.lines().find_map(field).unwrap_or_else(|| std::env::consts::ARCH.to_owned());
    let load: f64 = load.split_whitespace().next().and_then(|it| it.parse().ok()).unwrap_or(0.0);
    let busy = if load * 2.0 >= cores as f64 { ", busy" } else { "" };
    format!("{processor}, {cores} cores{busy}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_has_a_processor_cores_and_other_work() {
        let processor = "processor\t: 0\nmodel name\t: AMD EPYC\nprocessor\t: 1\nmodel name\t: AMD EPYC\n";
        assert_eq!(describe_machine(processor, "0.20 0.70 1.19 1/200 99\n", 2), "AMD EPYC, 2 cores");
        assert_eq!(describe_machine(processor, "1.00 0.70 1.19 1/200 99\n", 2), "AMD EPYC, 2 cores, busy");
        assert_eq!(describe_machine("", "", 4), format!("{}, 4 cores", std::env::consts::ARCH));
    }

    #[test]
    fn the_version_of_gfxreconstruct_is_in_what_it_prints() {
        let text = "gfxrecon-info version info:\n  GFXReconstruct Version 0.9.18-unknown (unknown-build-source)\n";
        assert_eq!(gfxreconstruct_version(text).as_deref(), Some("0.9.18"));
        assert_eq!(with_version("GFXReconstruct", gfxreconstruct_version("nothing")), "GFXReconstruct");
    }
}
