//! After a crash: which shaders with checks the driver was compiling, and the list by which later runs leave them out.
//!
//! The layer marks them in files `PID.compiling` of the report folder, in slots of equal size with lines of
//! [`CrashedShader`] up to a zero.

use std::fs;
use std::io::Write;
use std::path::Path;

use lavascope_platform::process::TerminationCause;
use lavascope_platform::{files, process};
use lavascope_settings::{CrashedShader, crashed_shaders_path};

use crate::launch::child_program::ProgramEnd;

const SLOT_BYTES: usize = 4096;

/// What the marks of a run mean.
#[derive(Debug, PartialEq, Eq)]
enum CompilationEnd {
    /// A crash of the only process that was compiling.
    Crash,
    /// The program failed, or one of several processes crashed: the compiler may be the reason.
    Unknown,
    /// The program ended by itself, or was asked to.
    Ordinary,
}

/// Reports the shaders that the driver was compiling when the program ended, and notes them if that was a crash.
/// `has_checks` says whether any shader had checks. None if there is nothing to report.
pub(crate) fn report(folder: &Path, end: ProgramEnd, has_checks: bool) -> Option<String> {
    let compiling = read_marks(folder);
    let shaders: Vec<CrashedShader> = compiling.iter().flatten().cloned().collect();
    let names = || shaders.iter().map(|it| format!("  {}\n", it.name)).collect::<String>();
    match judge(end, compiling.len()) {
        CompilationEnd::Ordinary => None,
        _ if shaders.is_empty() => (has_checks && crash_of(end).is_some()).then(|| {
            "lavascope: shaders had checks. If the program does not crash without --gpu, `--shaders REGEX` limits the \
             checks to shaders with matching names\n"
                .to_owned()
        }),
        CompilationEnd::Unknown => Some(format!(
            "lavascope: the program ended while the driver compiled these shaders with checks:\n{}\
             If that is why it ended, `--shaders REGEX` limits the checks to shaders with matching names\n",
            names()
        )),
        CompilationEnd::Crash => Some(format!(
            "lavascope: the program crashed while the driver compiled these shaders with checks:\n{}{}",
            names(),
            note(&shaders)
        )),
    }
}

fn judge(end: ProgramEnd, compiling: usize) -> CompilationEnd {
    match (crash_of(end), end) {
        (Some(_), _) if compiling < 2 => CompilationEnd::Crash,
        (Some(_), _) => CompilationEnd::Unknown,
        (None, ProgramEnd::Exit(1..)) => CompilationEnd::Unknown,
        (None, _) => CompilationEnd::Ordinary,
    }
}

/// The crash that ended a program, or the program that a shell has run.
fn crash_of(end: ProgramEnd) -> Option<TerminationCause> {
    let cause = match end {
        ProgramEnd::Signal(cause) => cause,
        ProgramEnd::Exit(code) => TerminationCause::from_number(i32::from(code.checked_sub(128)?)),
    };
    cause.is_crash().then_some(cause)
}

/// For each process that has ended: the shaders that were compiled then.
fn read_marks(folder: &Path) -> Vec<Vec<CrashedShader>> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut marked: Vec<(u32, Vec<CrashedShader>)> = Vec::new();
    for path in entries.flatten().map(|it| it.path()) {
        let is_marks = path.extension().is_some_and(|it| it == "compiling");
        let pid = path.file_stem().and_then(|it| it.to_str()?.parse().ok());
        let Some(pid) = pid.filter(|it| is_marks && !process::is_running(*it)) else { continue };
        let shaders = read_slots(&fs::read(&path).unwrap_or_default());
        if !shaders.is_empty() {
            marked.push((pid, shaders));
        }
    }
    marked.sort_by_key(|it| it.0);
    marked.into_iter().map(|it| it.1).collect()
}

fn read_slots(bytes: &[u8]) -> Vec<CrashedShader> {
    let mut shaders: Vec<CrashedShader> = Vec::new();
    for slot in bytes.chunks(SLOT_BYTES) {
        let text = slot.split(|it| *it == 0).next().unwrap_or_default();
        for shader in String::from_utf8_lossy(text).lines().filter_map(CrashedShader::from_line) {
            if !shaders.contains(&shader) {
                shaders.push(shader);
            }
        }
    }
    shaders
}

/// Adds shaders to the list, and says so.
fn note(shaders: &[CrashedShader]) -> String {
    let Some(path) = crashed_shaders_path(|it| std::env::var_os(it)) else {
        return "`--shaders REGEX` limits the checks to shaders with matching names\n".to_owned();
    };
    match append(&path, shaders) {
        Ok(()) => format!(
            "The next run on this driver does not check them: they are listed in {}. To check other shaders now, use \
             `--shaders REGEX`\n",
            path.display()
        ),
        Err(why) => format!(
            "The next run will crash again, because {} cannot be written ({why}): use `--shaders REGEX` to check other \
             shaders\n",
            path.display()
        ),
    }
}

/// Appends the lines in one write: other runs may append at the same time.
fn append(path: &Path, shaders: &[CrashedShader]) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        files::private_folder().recursive(true).create(folder)?;
    }
    let known = fs::read_to_string(path).unwrap_or_default();
    let lines = shaders.iter().map(CrashedShader::to_line);
    let new: String = lines.filter(|it| !known.lines().any(|line| line == it.trim_end())).collect();
    files::private_file().append(true).create(true).open(path)?.write_all(new.as_bytes())
}

#[cfg(test)]
mod tests {
    use lavascope_settings::DriverVersion;

    use super::*;

    fn shader(hash: u128) -> CrashedShader {
        let driver = DriverVersion::new(1, &[2], 3);
        CrashedShader { hash, driver, layer: "0.1.0".into(), name: format!("shader {hash}") }
    }

    fn folder(name: &str) -> std::path::PathBuf {
        let folder = std::env::temp_dir().join(format!("lavascope-crashed-shaders-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).expect("a folder");
        folder
    }

    #[test]
    fn slots_that_are_taken_are_read_to_their_end() {
        let mut bytes = vec![0; SLOT_BYTES * 3];
        let text = [shader(1).to_line(), shader(2).to_line(), "\0".to_owned(), shader(3).to_line()].concat();
        bytes[SLOT_BYTES..SLOT_BYTES + text.len()].copy_from_slice(text.as_bytes());
        bytes[SLOT_BYTES * 2..][..text.len()].copy_from_slice(text.as_bytes());
        bytes[SLOT_BYTES * 2] = 0;
        assert_eq!(read_slots(&bytes), [shader(1), shader(2)]);
    }

    #[test]
    fn a_crash_is_a_crash_also_behind_a_shell() {
        let signal = |number| ProgramEnd::Signal(TerminationCause::from_number(number));
        assert_eq!(judge(signal(11), 1), CompilationEnd::Crash);
        assert_eq!(judge(ProgramEnd::Exit(128 + 6), 1), CompilationEnd::Crash);
        assert_eq!(judge(signal(11), 2), CompilationEnd::Unknown);
        assert_eq!(judge(ProgramEnd::Exit(3), 1), CompilationEnd::Unknown);
        for ordinary in [ProgramEnd::Exit(0), signal(2), signal(9), signal(15)] {
            assert_eq!(judge(ordinary, 1), CompilationEnd::Ordinary, "{ordinary:?}");
        }
    }

    #[test]
    fn a_process_that_still_runs_is_not_judged() {
        let folder = folder("running");
        let own = folder.join(format!("{}.compiling", std::process::id()));
        fs::write(&own, shader(1).to_line()).expect("it can be written");
        assert!(read_marks(&folder).is_empty());
        // No process has the largest number.
        fs::rename(&own, folder.join("4194304.compiling")).expect("it can be renamed");
        assert_eq!(read_marks(&folder), [[shader(1)]]);
        let _ = fs::remove_dir_all(&folder);
    }

    #[test]
    fn a_shader_is_listed_once_and_a_list_that_cannot_be_written_is_an_error() {
        let folder = folder("list");
        let list = folder.join("a/b/crashed-shaders");
        append(&list, &[shader(1)]).expect("it can be written");
        append(&list, &[shader(1), shader(2)]).expect("it can be written");
        let text = fs::read_to_string(&list).expect("a list");
        assert_eq!(text, [shader(1).to_line(), shader(2).to_line()].concat());
        assert!(append(&list.join("below"), &[shader(1)]).is_err(), "a file is no folder");
        let _ = fs::remove_dir_all(&folder);
    }
}
