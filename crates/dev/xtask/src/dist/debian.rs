//! The Debian package: an `ar` archive of two tarballs, one with the files, one with what the package needs.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use super::{VERSION, archive, binaries, files_below, run_tool};

/// Packs the files below `prefix`, so that they are installed below `/usr`.
pub(super) fn pack(folder: &Path, prefix: &Path) -> Result<PathBuf> {
    let work = folder.join("debian");
    if work.exists() {
        fs::remove_dir_all(&work).with_context(|| format!("{} cannot be removed", work.display()))?;
    }
    fs::create_dir_all(work.join("data")).with_context(|| format!("{} cannot be made", work.display()))?;
    run_tool(
        folder,
        "cp",
        &["--recursive", "--", &prefix.display().to_string(), &work.join("data/usr").display().to_string()],
    )?;
    fs::create_dir_all(work.join("control"))?;
    fs::write(work.join("control/control"), control(prefix)?)?;
    fs::write(work.join("debian-binary"), "2.0\n")?;
    for part in ["control", "data"] {
        archive::pack(&work.join(part), ".", &work.join(format!("{part}.tar.gz")))?;
    }
    let package = folder.join(format!("lavascope_{VERSION}_{}.deb", architecture()?));
    let _ = fs::remove_file(&package);
    let file = package.display().to_string();
    // The order is part of the format. `D`: no times and no users.
    run_tool(&work, "ar", &["rcD", &file, "debian-binary", "control.tar.gz", "data.tar.gz"])?;
    Ok(package)
}

/// What the package manager reads.
fn control(prefix: &Path) -> Result<String> {
    let libc = binaries::needed_libc(&prefix.join("bin"))?.max(binaries::needed_libc(&prefix.join("lib"))?);
    ensure!(!libc.is_empty(), "it is not known which C library the programs need");
    let mut bytes = 0;
    for file in files_below(prefix)? {
        bytes += fs::metadata(prefix.join(&file)).with_context(|| format!("{} is missing", file.display()))?.len();
    }
    let (architecture, kilobytes) = (architecture()?, bytes.div_ceil(1024));
    Ok(format!(
        "Package: lavascope\n\
         Version: {VERSION}\n\
         Architecture: {architecture}\n\
         Maintainer: The Lavascope contributors <lavascope@localhost>\n\
         Installed-Size: {kilobytes}\n\
         Depends: libc6 (>= {libc}), libgcc-s1\n\
         Recommends: libvulkan1\n\
         Suggests: mesa-vulkan-drivers\n\
         Section: devel\n\
         Priority: optional\n\
         Description: finds what is wrong in Vulkan programs\n \
          Finds synchronization hazards and accesses of shaders that are out of bounds,\n \
          with a fix, and records and replays what a Vulkan program calls.\n"
    ))
}

/// As Debian names the processor.
fn architecture() -> Result<&'static str> {
    match std::env::consts::ARCH {
        "x86_64" => Ok("amd64"),
        "aarch64" => Ok("arm64"),
        other => anyhow::bail!("there is no Debian package for {other}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As Debian's own tool reads it, where there is one; else as `ar` lists it.
    #[test]
    fn a_package_has_its_parts_in_order() {
        let folder = std::env::temp_dir().join(format!("lavascope-debian-{}", std::process::id()));
        let prefix = folder.join("prefix");
        // Small, and linked with the C library.
        let program = Path::new("/bin/sh");
        for place in ["bin/lavascope", "lib/liblavascope.so"] {
            super::super::copy(program, &prefix.join(place)).expect("a copy");
        }
        let package = pack(&folder, &prefix).expect("a package").display().to_string();
        let parts = run_tool(&folder, "ar", &["t", &package]).expect("an archive");
        assert_eq!(parts, "debian-binary\ncontrol.tar.gz\ndata.tar.gz\n");
        if crate::setup::process::can_run("dpkg-deb", "--version") {
            let fields = run_tool(&folder, "dpkg-deb", &["--field", &package]).expect("fields");
            assert!(fields.contains("Package: lavascope\n") && fields.contains("libc6 (>= 2."), "{fields}");
            assert!(fields.contains("\n Finds synchronization hazards"), "{fields}");
            let files = run_tool(&folder, "dpkg-deb", &["--contents", &package]).expect("contents");
            assert!(files.contains(" ./usr/bin/lavascope\n") && files.contains(" 0/0 "), "{files}");
        }
        fs::remove_dir_all(folder).expect("a folder that can be removed");
    }
}
