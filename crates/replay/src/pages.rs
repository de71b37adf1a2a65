//! Memory that was needed to open a driver, and is not any more.
//!
//! A driver brings libraries of a hundred megabytes. Going through them once, to put them in their places and to begin,
//! leaves a third of their code in memory; a replay then needs little of it. What a mapping of a file holds that nobody
//! ever changed is in the file, and comes back when it is needed. So do free pieces of the C library.

use std::io::{BufRead, BufReader};
use std::ops::Range;

use rustix::mm::{Advice, madvise};

/// Pieces of memory with less than this are left alone.
const KILOBYTES_MIN: u64 = 256;

/// Gives back what can be had again. To be called when something large has been opened.
pub(crate) fn give_back() {
    trim();
    let Ok(file) = std::fs::File::open("/proc/self/smaps") else { return };
    for mapping in unchanged(BufReader::new(file)) {
        let start = std::ptr::with_exposed_provenance_mut(mapping.start);
        // SAFETY: a private mapping of a file that cannot be written through, none of whose pages differ from the file:
        // what is read there next is the same, from the file.
        // It is no error where the system does not want to: then the pages stay.
        let _ = unsafe { madvise(start, mapping.len(), Advice::LinuxDontNeed) };
    }
}

/// What is free goes back to the system. Loaders ask for large pieces and free them at once; whoever performs has the
/// C library take those from the system one by one. Drivers do the same again and again, so from here on they are kept.
#[cfg(target_env = "gnu")]
fn trim() {
    use std::ffi::c_int;
    /// Numbers of the C library: which piece is large.
    const M_MMAP_THRESHOLD: c_int = -3;
    const LARGE: c_int = 4 << 20;
    unsafe extern "C" {
        fn malloc_trim(keep: usize) -> c_int;
        fn mallopt(parameter: c_int, value: c_int) -> c_int;
    }
    // SAFETY: functions of the C library that take its locks; a call that opens something has just returned.
    unsafe {
        malloc_trim(0);
        mallopt(M_MMAP_THRESHOLD, LARGE);
    }
}

#[cfg(not(target_env = "gnu"))]
fn trim() {}

/// Mappings of files with many pages in memory that are all as they are in the file. A library that was put in its
/// place has pages of its own, and so has one in which a debugger stops: these stay.
fn unchanged(lines: impl BufRead) -> Vec<Range<usize>> {
    let mut all = Vec::new();
    let mut current = None;
    let mut kilobytes = 0;
    for line in lines.lines().map_while(Result::ok) {
        let (name, value) = line.split_once(' ').unwrap_or((&line, ""));
        let number = || value.trim().trim_end_matches(" kB").parse::<u64>().ok();
        match name {
            "Rss:" => kilobytes = number().unwrap_or(0),
            "Anonymous:" => {
                let is_whole = number() == Some(0) && kilobytes >= KILOBYTES_MIN;
                all.extend(current.take().filter(|_| is_whole));
            }
            _ if !name.ends_with(':') => current = read_only(name, value),
            _ => {}
        }
    }
    all
}

/// Where a mapping lies, if it is one of a file that nobody can write through. `rest` is what comes behind its place:
/// what it allows, where in the file it begins, the device, the number of the file, its name.
fn read_only(place: &str, rest: &str) -> Option<Range<usize>> {
    let mut rest = rest.split_whitespace();
    let (allows, file) = (rest.next()?, rest.nth(2)?);
    let (start, end) = place.split_once('-')?;
    let number = |it: &str| usize::from_str_radix(it, 16).ok();
    let is_meant = allows.starts_with("r-") && allows.ends_with('p') && file != "0";
    is_meant.then(|| Some(number(start)?..number(end)?)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_as_in_its_file_is_given_back() {
        let mapping = |place: &str, about: &str, rss: u64, own: u64| {
            format!("{place} {about}\nSize: 9000 kB\nRss: {rss} kB\nAnonymous:         {own} kB\nVmFlags: rd mr\n")
        };
        let file = "00001000 fe:00 77  /usr/lib/driver.so";
        let text = [
            mapping("1000-2000", &format!("r-xp {file}"), 800, 0),
            mapping("2000-3000", &format!("r--p {file}"), 256, 0),
            mapping("3000-4000", &format!("r--p {file}"), 800, 4),
            mapping("4000-5000", &format!("rw-p {file}"), 800, 0),
            mapping("5000-6000", &format!("r-xs {file}"), 800, 0),
            mapping("6000-7000", &format!("r-xp {file}"), 60, 0),
            mapping("7000-8000", "r-xp 00000000 00:00 0 ", 800, 0),
        ];
        assert_eq!(unchanged(text.concat().as_bytes()), [0x1000..0x2000, 0x2000..0x3000]);
        assert!(unchanged("Rss: 12\n1-2\nAnonymous: 0 kB".as_bytes()).is_empty());
    }

    #[test]
    fn a_process_goes_on_with_less_memory() {
        let resident = || {
            let text = std::fs::read_to_string("/proc/self/smaps").expect("Linux has it");
            let file = std::env::current_exe().expect("a program").display().to_string();
            let code = text.split_once(" r-xp ").and_then(|it| it.1.split_once("Rss:"));
            assert!(code.is_some_and(|it| it.0.contains(&file)), "the first code is that of the program");
            code.and_then(|it| it.1.trim_start().split_once(' ')?.0.parse::<u64>().ok()).expect("a number")
        };
        // All of the code is read once, so that all of it is there.
        let text = std::fs::read_to_string("/proc/self/maps").expect("Linux has it");
        let line = text.lines().find(|it| it.contains(" r-xp ")).expect("code");
        let (place, rest) = line.split_once(' ').expect("a place");
        let code = read_only(place, rest).expect("of a file");
        let sum = || {
            // SAFETY: a mapping of this process that can be read and stays.
            let bytes = unsafe { std::slice::from_raw_parts(code.start as *const u8, code.len()) };
            bytes.iter().step_by(4096).fold(0u64, |sum, it| sum.wrapping_mul(31).wrapping_add(u64::from(*it)))
        };
        let (before, whole) = (sum(), resident());
        give_back();
        assert!(resident() < whole, "{} kB of {whole}", resident());
        assert_eq!(sum(), before);
    }
}
