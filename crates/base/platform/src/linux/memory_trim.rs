//! Memory that was needed to open a driver, and is not any more.
//!
//! A driver loads libraries of a hundred megabytes. Relocating and initializing them leaves a third of their code in
//! memory, of which a replay needs little. Unchanged pages of a file mapping are in the file, and are read again when
//! they are needed. So are free pieces of the C library. The kernel maps 64 KB around each page that is touched, so the
//! number of places in use counts, not their size.

use std::ffi::c_int;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::ops::Range;

use rustix::mm::{Advice, madvise};

use crate::files::read_exact_at;

/// The unit of memory lengths here.
fn page_size() -> usize {
    crate::pages::page_size() as usize
}

/// Mappings with less in memory are left alone.
const MAPPING_BYTES_MIN: usize = 256 << 10;

/// Returns to the system what opening a driver has left in memory. Before a device is made, loaders ask for the same
/// large pieces again and again: these are kept for now.
pub(crate) fn trim_memory() {
    trim_c_heap(LARGE_BYTES);
    // The type of a page is read only if it matters. `smaps` has both in one file, but goes through all memory for it:
    // that takes longer than opening most drivers.
    let (Ok(mappings), Ok(pages)) = (File::open("/proc/self/maps"), File::open("/proc/self/pagemap")) else { return };
    for mapping in read_only_mappings(BufReader::new(mappings)).filter(|it| is_unchanged(it, &pages)) {
        let start = std::ptr::with_exposed_provenance_mut(mapping.start);
        // SAFETY: a private mapping of a file that cannot be written through, none of whose pages differ from the file:
        // what is read there next is the same, from the file.
        // It is no error where the system does not want to: then the pages stay.
        let _ = unsafe { madvise(start, mapping.len(), Advice::LinuxDontNeed) };
    }
}

/// Returns free memory to the system at once, after a device was created.
pub(crate) fn trim_free_memory() {
    trim_c_heap(SMALL_BYTES);
}

/// Bytes of a large piece of memory, and of a small one.
const LARGE_BYTES: c_int = 4 << 20;
const SMALL_BYTES: c_int = 128 << 10;

/// Free memory is returned to the system, and later the free memory at the end, once it is large enough. Loaders
/// allocate large pieces and free them at once; without this setting the C library gets each from the system. Drivers
/// do the same repeatedly, so from here on large pieces are kept.
#[cfg(target_env = "gnu")]
fn trim_c_heap(most: c_int) {
    // SAFETY: functions of the C library that take its locks; a call that opens something has just returned.
    unsafe {
        libc::malloc_trim(0);
        libc::mallopt(libc::M_TRIM_THRESHOLD, most);
        libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE_BYTES);
        // Free memory at the end of this thread's arena is returned when a larger piece is freed there.
        libc::free(std::hint::black_box(libc::malloc(SMALL_BYTES as usize)));
    }
}

#[cfg(not(target_env = "gnu"))]
fn trim_c_heap(_: c_int) {}

/// Large mappings of files that are not writable.
fn read_only_mappings(lines: impl BufRead) -> impl Iterator<Item = Range<usize>> {
    let lines = lines.lines().map_while(Result::ok);
    lines.filter_map(|it| read_only_mapping(&it)).filter(|it| it.len() >= MAPPING_BYTES_MIN)
}

/// The address of a mapping, if it is a file mapping that is not writable. A line has the address range, the
/// permissions, the offset in the file, the device, the inode, and the name.
fn read_only_mapping(line: &str) -> Option<Range<usize>> {
    let mut words = line.split_ascii_whitespace();
    let (place, allows, file) = (words.next()?, words.next()?, words.nth(2)?);
    let (start, end) = place.split_once('-')?;
    let number = |it: &str| usize::from_str_radix(it, 16).ok();
    let is_meant = allows.starts_with("r-") && allows.ends_with('p') && file != "0";
    is_meant.then(|| Some(number(start)?..number(end)?)).flatten()
}

/// Whether much of a mapping is in memory, and all of that unchanged from the file. A relocated library has pages of
/// its own, and so has one that changes its own code, or in which a debugger stops: these stay.
fn is_unchanged(mapping: &Range<usize>, pages: &File) -> bool {
    /// The system's information about a page, in a word.
    const IS_OF_FILE: u64 = 1 << 61;
    const IS_SWAPPED: u64 = 1 << 62;
    const IS_PRESENT: u64 = 1 << 63;
    let mut present = 0;
    let mut words = [0; 32 << 10];
    let (mut at, end) = (mapping.start / page_size() * 8, mapping.end / page_size() * 8);
    while at < end {
        let size = (end - at).min(words.len());
        if read_exact_at(pages, &mut words[..size], at as u64).is_err() {
            return false;
        }
        for word in words[..size].as_chunks().0.iter().map(|it| u64::from_ne_bytes(*it)) {
            match word & (IS_OF_FILE | IS_SWAPPED | IS_PRESENT) {
                0 => {}
                value if value == IS_OF_FILE | IS_PRESENT => present += page_size(),
                _ => return false,
            }
        }
        at += size;
    }
    present >= MAPPING_BYTES_MIN
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_large_mappings_of_files_that_nobody_writes_are_meant() {
        let file = "00001000 fe:00 77                     /usr/lib/driver.so";
        let text = [
            format!("100000-200000 r-xp {file}"),
            format!("200000-300000 r--p {file} with spaces (deleted)"),
            format!("300000-301000 r--p {file}"),
            format!("400000-500000 rw-p {file}"),
            format!("500000-600000 r-xs {file}"),
            "600000-700000 r-xp 00000000 00:00 0 ".to_owned(),
            "700000-800000".to_owned(),
            "what r-xp 00000000 fe:00 77".to_owned(),
        ];
        let found: Vec<_> = read_only_mappings(text.join("\n").as_bytes()).collect();
        assert_eq!(found, [0x10_0000..0x20_0000, 0x20_0000..0x30_0000]);
    }

    #[test]
    fn a_mapping_with_a_page_of_its_own_stays() {
        use rustix::mm::{MapFlags, ProtFlags, mmap, mprotect, munmap};
        let program = File::open(std::env::current_exe().expect("a program")).expect("it can be read");
        let size = 2 * MAPPING_BYTES_MIN;
        // SAFETY: a new private mapping, which only this test knows, of a file that is larger.
        let place = unsafe {
            mmap(std::ptr::null_mut(), size, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE, &program, 0)
        };
        let place = place.expect("a mapping");
        let start = place.expose_provenance();
        let mapping = start..start + size;
        let pages = File::open("/proc/self/pagemap").expect("Linux has it");
        assert!(!is_unchanged(&mapping, &pages), "nothing of it is in memory");
        // SAFETY: within the mapping.
        let read = |at: usize| unsafe { place.cast::<u8>().add(at).read_volatile() };
        let sum = (0..size).step_by(page_size()).map(|it| u64::from(read(it))).sum::<u64>();
        assert!(is_unchanged(&mapping, &pages), "sum {sum}");
        // SAFETY: within the mapping, which may be written and is this test's alone; then nobody writes any more.
        unsafe {
            place.cast::<u8>().add(size - 1).write_volatile(read(size - 1));
            mprotect(place, size, rustix::mm::MprotectFlags::READ).expect("less is allowed");
        }
        assert!(!is_unchanged(&mapping, &pages), "a page was written");
        // SAFETY: the mapping above.
        unsafe { munmap(place, size) }.expect("a mapping");
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
        let code = text.lines().find(|it| it.contains(" r-xp ")).and_then(read_only_mapping).expect("code of a file");
        let sum = || {
            // SAFETY: a mapping of this process that can be read and stays.
            let bytes = unsafe { std::slice::from_raw_parts(code.start as *const u8, code.len()) };
            bytes.iter().step_by(page_size()).fold(0u64, |sum, it| sum.wrapping_mul(31).wrapping_add(u64::from(*it)))
        };
        let (before, whole) = (sum(), resident());
        trim_memory();
        assert!(resident() < whole, "{} kB of {whole}", resident());
        assert_eq!(sum(), before);
    }
}
