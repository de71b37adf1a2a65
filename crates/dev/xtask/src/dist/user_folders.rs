//! An installation in the user's own folders, and its removal.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::setup::process::quoted;

use super::{copy, dist_folder, files_below, release, stage};

/// Which files an installation has, so that it can be removed: below the prefix.
const LIST: &str = "share/lavascope/installed-files.txt";

/// Builds, and puts everything below a prefix; `~/.local` where none is given.
pub(crate) fn install(root: &Path, given: Option<&Path>) -> Result<()> {
    let prefix = prefix_or_default(given)?;
    let release = release::build_here(root)?;
    let staged = dist_folder()?.join("install");
    stage(root, &release, &staged)?;
    let count = copy_all(&staged, &prefix)?;
    println!("installed {count} files below {}", prefix.display());
    let programs = prefix.join("bin");
    let is_on_path = std::env::var_os("PATH").is_some_and(|it| std::env::split_paths(&it).any(|it| it == programs));
    if !is_on_path {
        println!("{} is not in PATH. Add it: {}", programs.display(), path_command(&programs));
    }
    println!("`{}` removes them", uninstall_command(given.is_some().then_some(&prefix)));
    Ok(())
}

/// The command that adds a folder to PATH.
fn path_command(programs: &Path) -> String {
    format!("export PATH={}:\"$PATH\"", quoted(&programs.display().to_string()))
}

/// The command that removes an installation, from any folder in the repository.
fn uninstall_command(prefix: Option<&PathBuf>) -> String {
    let prefix = prefix.map_or_else(String::new, |it| format!(" --prefix {}", quoted(&it.display().to_string())));
    format!("cargo xtask install{prefix} --uninstall")
}

/// Removes what [`install`] has put there, and nothing else.
pub(crate) fn uninstall(prefix: Option<&Path>) -> Result<()> {
    let prefix = prefix_or_default(prefix)?;
    match remove_all(&prefix)? {
        Some(count) => println!("removed {count} files below {}", prefix.display()),
        None => println!("nothing is installed below {}: there is no {LIST}", prefix.display()),
    }
    Ok(())
}

fn prefix_or_default(prefix: Option<&Path>) -> Result<PathBuf> {
    let home = || std::env::var_os("HOME").map(|it| Path::new(&it).join(".local"));
    let prefix = prefix.map(Path::to_path_buf).or_else(home);
    let prefix = prefix.context("HOME is not set; name a folder with `--prefix`")?;
    std::path::absolute(&prefix).with_context(|| format!("{} is no path", prefix.display()))
}

/// Copies the files of a folder, after those of an earlier installation are gone.
fn copy_all(from: &Path, prefix: &Path) -> Result<usize> {
    remove_all(prefix)?;
    let files = files_below(from)?;
    for file in &files {
        let to = prefix.join(file);
        // A program that runs keeps the old file.
        let _ = fs::remove_file(&to);
        copy(&from.join(file), &to)?;
    }
    let list: String = files.iter().map(|it| format!("{}\n", it.display())).collect();
    let place = prefix.join(LIST);
    fs::create_dir_all(place.parent().unwrap_or(prefix))?;
    fs::write(&place, list).with_context(|| format!("{} cannot be written", place.display()))?;
    Ok(files.len())
}

/// How many files were removed; none if nothing is installed.
fn remove_all(prefix: &Path) -> Result<Option<usize>> {
    let list = match fs::read_to_string(prefix.join(LIST)) {
        Ok(list) => list,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).with_context(|| format!("{} cannot be read", prefix.join(LIST).display())),
    };
    let mut count = 0;
    for file in list.lines().chain([LIST]) {
        match fs::remove_file(prefix.join(file)) {
            Ok(()) => count += usize::from(file != LIST),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error).with_context(|| format!("{file} cannot be removed")),
        }
        // Folders of others are not empty, and stay.
        let below = Path::new(file).ancestors().skip(1).filter(|it| !it.as_os_str().is_empty());
        below.for_each(|it| drop(fs::remove_dir(prefix.join(it))));
    }
    Ok(Some(count))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::{XtaskArguments, XtaskCommand};

    /// What a shell makes of a hint.
    fn words_of(command: &str) -> Vec<String> {
        let script = format!("cargo() {{ printf '%s\\n' \"$@\"; }}; {command}");
        let output = std::process::Command::new("sh").args(["-c", &script]).output().expect("a shell");
        String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
    }

    #[test]
    fn the_hint_removes_what_was_installed_at_this_prefix() {
        for place in [None, Some("/a/prefix"), Some("/it's a $HOME")] {
            let command = uninstall_command(place.map(PathBuf::from).as_ref());
            let parsed = XtaskArguments::try_parse_from(words_of(&command)).expect("a command of ours");
            let XtaskCommand::Install { prefix, uninstall } = parsed.command else { panic!("{command}") };
            assert_eq!((prefix, uninstall), (place.map(PathBuf::from), true), "{command}");
        }
    }

    #[test]
    fn the_hint_for_the_path_is_right_for_every_folder() {
        for folder in ["/a/bin", "/it's a $HOME/bin"] {
            let script = format!("PATH=/usr/bin; {}; echo \"$PATH\"", path_command(Path::new(folder)));
            let output = std::process::Command::new("/bin/sh").args(["-c", &script]).output().expect("a shell");
            assert_eq!(String::from_utf8_lossy(&output.stdout), format!("{folder}:/usr/bin\n"));
        }
    }

    #[test]
    fn what_was_installed_is_removed_and_nothing_else() {
        let folder = std::env::temp_dir().join(format!("lavascope-install-{}", std::process::id()));
        let (from, prefix) = (folder.join("from"), folder.join("prefix"));
        for (place, text) in [("bin/one", "1"), ("share/man/man1/one.1", "2")] {
            fs::create_dir_all(from.join(place).parent().expect("a folder")).expect("a folder");
            fs::write(from.join(place), text).expect("a file");
        }
        fs::create_dir_all(prefix.join("bin")).expect("a folder");
        fs::write(prefix.join("bin/other"), "3").expect("a file");
        assert_eq!(remove_all(&prefix).expect("nothing to remove"), None);
        assert_eq!(copy_all(&from, &prefix).expect("a copy"), 2);
        fs::remove_file(from.join("bin/one")).expect("a file");
        // What a newer version does not have goes.
        assert_eq!(copy_all(&from, &prefix).expect("a copy"), 1);
        assert!(!prefix.join("bin/one").exists() && prefix.join("share/man/man1/one.1").is_file());
        assert_eq!(remove_all(&prefix).expect("it can be removed"), Some(1));
        assert_eq!(files_below(&prefix).expect("a folder"), [PathBuf::from("bin/other")]);
        assert!(!prefix.join("share").exists());
        fs::remove_dir_all(folder).expect("a folder that can be removed");
    }
}
