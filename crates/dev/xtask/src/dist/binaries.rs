//! Programs and libraries without their debug information, and what they need of the system.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::{copy, run_tool};

/// Copies a program or library without symbols that nobody needs to run it.
pub(super) fn copy_stripped(from: &Path, to: &Path) -> Result<()> {
    copy(from, to)?;
    let options: &[&str] = if to.extension().is_some_and(|it| it == "so") { &["--strip-unneeded"] } else { &[] };
    let file = to.display().to_string();
    run_tool(Path::new("."), "strip", &[options, &["--", &file]].concat())
        .context("`strip` is in the package binutils")?;
    Ok(())
}

/// Copies a program without its table of symbols. Functions and lines stay, compressed.
pub(super) fn copy_with_lines(from: &Path, to: &Path) -> Result<()> {
    copy(from, to)?;
    let file = to.display().to_string();
    let options = ["--strip-unneeded", "--keep-section=.debug_*", "--compress-debug-sections=zlib"];
    run_tool(Path::new("."), "objcopy", &[&options[..], &[&file]].concat())
        .context("`objcopy` is in the package binutils")?;
    Ok(())
}

/// The oldest C library that programs and libraries in a folder run on, like `2.34`.
pub(super) fn needed_libc(folder: &Path) -> Result<String> {
    let mut newest = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("{} cannot be read", folder.display()))? {
        let file = entry?.path().display().to_string();
        newest = newest.max(newest_version(&run_tool(Path::new("."), "objdump", &["-T", &file])?));
    }
    Ok(newest.iter().map(u32::to_string).collect::<Vec<_>>().join("."))
}

/// The greatest `GLIBC_…` that stands in what `objdump` prints.
fn newest_version(symbols: &str) -> Vec<u32> {
    let version = |rest: &str| {
        let text = rest.split(|it: char| !it.is_ascii_digit() && it != '.').next()?;
        text.split('.').map(|it| it.parse().ok()).collect::<Option<Vec<u32>>>()
    };
    symbols.split("GLIBC_").skip(1).filter_map(version).max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers() {
        let symbols =
            "DF *UND*  (GLIBC_2.2.5) free\nDF *UND*  (GLIBC_2.34) dlsym\nDF *UND*  (GLIBC_2.9) pipe2\n(GCC_4.2.0)";
        assert_eq!(newest_version(symbols), [2, 34]);
    }

    #[test]
    fn this_program_needs_a_libc() {
        let folder = std::env::temp_dir().join(format!("lavascope-binaries-{}", std::process::id()));
        let program = std::env::current_exe().expect("this program");
        copy_stripped(&program, &folder.join("program")).expect("it can be stripped");
        let size = |path: &Path| fs::metadata(path).map(|it| it.len()).expect("a file");
        assert!(size(&folder.join("program")) < size(&program));
        copy_with_lines(&program, &folder.join("lines")).expect("it can be stripped");
        assert!(size(&folder.join("program")) < size(&folder.join("lines")));
        assert!(size(&folder.join("lines")) < size(&program));
        let sections = run_tool(&folder, "objdump", &["--section-headers", "lines"]).expect("sections");
        assert!(sections.contains(".debug_line") && sections.contains(".debug_info"), "{sections}");
        assert!(needed_libc(&folder).expect("symbols").starts_with("2."));
        fs::remove_dir_all(folder).expect("a folder that can be removed");
    }
}
