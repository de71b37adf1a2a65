//! The tarball in an empty Debian: unpacked, and the README's commands run as an ordinary user.
//!
//! Needs the rights of root, for a root folder of its own. What is mounted there goes with the namespace.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use lavascope_test_support::console_commands;

use super::{DistFiles, copy_folder, dist_folder, run_tool};
use crate::setup::{process, system};

/// The release that everything is tried out on: that of the libraries which the programs were linked with, or newer.
const SUITE: &str = "bookworm";
/// What the README asks for besides the tarball.
const PACKAGES: &str = "libvulkan1,mesa-vulkan-drivers";
/// Below the root. The folder's owner is the ordinary user.
const HOME: &str = "home/user";
/// The sources of the samples. The README is for readers in a clone, whose reports have lines of these files: packaged
/// programs name them relative to the current folder.
const SOURCES: &str = "crates/dev/samples/src";
const USER: &str = "1000:1000";

pub(crate) fn run(root: &Path, no_install: bool) -> Result<()> {
    system::ensure_for_try_out(root, no_install)?;
    let dist = super::run(root)?;
    let empty = dist_folder()?.join(format!("root-{SUITE}"));
    make_root(root, &empty)?;
    install_package(&empty, &dist)?;
    let count = run_commands(root, &unpack(root, &empty, &dist)?)?;
    println!("{count} commands of the README ran in an empty root");
    Ok(())
}

/// A Debian with nothing but its own packages. It is kept, since it takes minutes.
fn make_root(root: &Path, empty: &Path) -> Result<()> {
    let done = empty.join("complete");
    if done.is_file() {
        return Ok(());
    }
    let (include, place) = (format!("--include={PACKAGES}"), empty.display().to_string());
    process::run(root, "debootstrap", &["--variant=minbase", &include, SUITE, &place])?;
    fs::write(&done, "").with_context(|| format!("{} cannot be written", done.display()))
}

/// The folder of the tarball in the home of the user.
struct UnpackedTarball {
    empty: String,
    /// As programs inside of the root see it.
    bin: String,
    driver: String,
}

fn unpack(root: &Path, empty: &Path, dist: &DistFiles) -> Result<UnpackedTarball> {
    let home = empty.join(HOME);
    if home.exists() {
        fs::remove_dir_all(&home).with_context(|| format!("{} cannot be removed", home.display()))?;
    }
    copy_folder(&root.join(SOURCES), &home.join(SOURCES))?;
    let (home, tarball) = (home.display().to_string(), dist.tarball.display().to_string());
    run_tool(empty, "tar", &["--extract", "--file", &tarball, "--directory", &home])?;
    run_tool(empty, "chown", &["--recursive", USER, &home])?;
    let name = dist.tarball.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let name = name.trim_end_matches(".tar.gz");
    let driver = system::lavapipe_in(empty).context("the empty root has no driver for the CPU")?;
    Ok(UnpackedTarball { empty: empty.display().to_string(), bin: format!("/{HOME}/{name}/bin"), driver })
}

/// Installs the Debian package, lets its program answer, and removes it: what is left is empty again.
fn install_package(empty: &Path, dist: &DistFiles) -> Result<()> {
    let (place, file) = (empty.display().to_string(), empty.join("lavascope.deb"));
    fs::copy(&dist.package, &file).context("the package cannot be copied")?;
    let inside = |words: &[&str]| run_tool(empty, "chroot", &[&[place.as_str()][..], words].concat());
    inside(&["dpkg", "--install", "/lavascope.deb"])?;
    let version = inside(&["/usr/bin/lavascope", "--version"])?;
    ensure!(version.contains(super::VERSION), "the package has another version: {version}");
    ensure!(empty.join("usr/share/man/man1/lavascope-run.1").is_file(), "the package has no manual page");
    inside(&["dpkg", "--remove", "lavascope"])?;
    ensure!(!empty.join("usr/bin/lavascope").exists(), "the package leaves its program behind");
    Ok(())
}

/// How many commands ran; each has the output and the exit code that the README shows. There, paths are relative to the
/// folder in which the commands run, whatever it is; numbers that differ in each run are not compared.
fn run_commands(root: &Path, place: &UnpackedTarball) -> Result<usize> {
    let page = fs::read_to_string(root.join("README.md")).context("README.md cannot be read")?;
    let commands = console_commands(&page);
    ensure!(!commands.is_empty(), "the README has no commands");
    let mut wrong = Vec::new();
    for command in &commands {
        println!("$ {}", command.command);
        let outcome = command.run(&mut shell(place)).below(&Path::new("/").join(HOME));
        wrong.extend(command.difference(&outcome));
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(commands.len())
}

/// A shell of the ordinary user inside of the root, on the driver for the CPU.
fn shell(place: &UnpackedTarball) -> Command {
    let UnpackedTarball { empty, bin, driver } = place;
    let script = format!(
        "mount -t proc proc '{empty}/proc' && mount --rbind /dev '{empty}/dev' && cd '{empty}' && \
         exec chroot --userspec={USER} '{empty}' env -i HOME=/{HOME} PATH={bin}:/usr/bin:/bin \
         VK_DRIVER_FILES={driver} VK_ICD_FILENAMES={driver} sh -c 'cd && exec sh \"$@\"' sh \"$@\""
    );
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", &script, "sh"]);
    command
}
