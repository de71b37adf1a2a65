//! Looks for traces that the reader cannot take, guided by what parts of it they reach: `cargo xtask fuzz --guided SECONDS`.
//!
//! The compiler counts how often each place is reached (`-C passes=sancov-module`, which needs no other compiler than
//! the usual one) and passes the address of its counters. An input that reaches something new, or reaches it more
//! often, is kept and changed further. Files are changed block by block, and checksums are made right again, so that
//! the code behind them is reached. Without the counters, inputs are changed blindly.
//!
//! Arguments: seconds, seed, and a folder for interesting inputs, with which a later run continues.

#[path = "../tests/common/mod.rs"]
mod common;

use lavascope_test_support::TestRng;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use lavascope_record::encoding::{RecordHeader, RecordPhase};
use lavascope_trace::{Codec, TailHeader, TailSlot};
use xxhash_rust::xxh3::xxh3_64;

use common::{file, read_all};

// Relaxed: they are set before `main`, and one thread reads them.
static FIRST: AtomicPtr<u8> = AtomicPtr::new(std::ptr::null_mut());
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// The compiler's own code calls this before `main`, once for each piece of the program, always with all counters.
#[unsafe(no_mangle)]
extern "C" fn __sanitizer_cov_8bit_counters_init(first: *mut u8, end: *mut u8) {
    FIRST.store(first, Ordering::Relaxed);
    COUNT.store(end as usize - first as usize, Ordering::Relaxed);
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut number = |or| arguments.next().and_then(|it| it.parse().ok()).unwrap_or(or);
    let (seconds, seed): (u64, u64) = (number(10), number(1));
    let folder = arguments.next().map(PathBuf::from);
    let mut fuzzer =
        Fuzzer { random: TestRng::new(seed), kept: Vec::new(), coverage: Coverage::new(), folder, rounds: 0 };
    for input in seeds().into_iter().chain(fuzzer.saved()) {
        fuzzer.coverage.insert_coverage(|| fuzzer_read(&input));
        fuzzer.kept.push(input);
    }
    let (first, until) = (fuzzer.kept.len(), Instant::now() + Duration::from_secs(seconds));
    while Instant::now() < until {
        fuzzer.round();
    }
    let Fuzzer { kept, coverage: seen, rounds, .. } = fuzzer;
    println!("{rounds} traces in {seconds} s, {} kept beside the first {first}", kept.len() - first);
    match seen.0.len() {
        0 => println!("blind: it was not built by `cargo xtask fuzz --guided`"),
        all => println!("{} of {all} places reached", seen.0.iter().filter(|it| **it != 0).count()),
    }
}

/// A trace, and the tail beside it.
#[derive(Clone)]
struct Input {
    file: Vec<u8>,
    tail: Vec<u8>,
}

fn fuzzer_read(input: &Input) {
    read_all(&input.file, &input.tail);
}

/// Small ones, so that most changes hit something that matters.
fn seeds() -> Vec<Input> {
    let mut all = Vec::new();
    for codec in [Codec::None, Codec::Zstd, Codec::Lz4] {
        for calls in [3, 30, 210] {
            all.push(Input { file: file(codec, calls), tail: tail() });
        }
    }
    all
}

/// A slot for each of two streams, with a few records in each.
fn tail() -> Vec<u8> {
    let header = TailHeader { id: common::HEADER.id, slot_words: 64, began: 5 };
    let mut words = Vec::new();
    for stream in 1..3_u32 {
        let mut own = Vec::new();
        for call in 0..5 {
            let (command, kind) = (lavascope_abi::Command::CmdDraw as u16, RecordPhase::Enter as u8);
            let head =
                RecordHeader { body_words: 4, command, kind, omissions: 0, call: 1000 + call, order_edge_count: 0 };
            own.push(2 << 48 | call);
            own.extend(head.to_words().into_iter().chain([call, 7]));
        }
        let size = 64 - TailSlot::HEAD_WORDS as u64;
        let slot = TailSlot { stream, word_offset: 0, committed: own.len() as u64, size };
        own.resize(size as usize, 0);
        words.extend(slot.to_words().into_iter().chain(own));
    }
    header.to_bytes().into_iter().chain(words.into_iter().flat_map(u64::to_le_bytes)).collect()
}

/// By place: bits of how often it was reached by any input.
struct Coverage(Vec<u8>);

impl Coverage {
    fn new() -> Coverage {
        Coverage(vec![0; COUNT.load(Ordering::Relaxed)])
    }

    /// Whether something reaches what nothing has reached before.
    fn insert_coverage(&mut self, run: impl FnOnce()) -> bool {
        let (first, count) = (FIRST.load(Ordering::Relaxed), self.0.len());
        if count == 0 {
            run();
            return false;
        }
        // SAFETY: the compiler gave so many bytes, for as long as the program runs; it writes to them without asking, and
        // so nothing here keeps a reference to them.
        unsafe { first.write_bytes(0, count) };
        run();
        let mut is_new = false;
        for (at, seen) in self.0.iter_mut().enumerate() {
            // SAFETY: `at` is less than the number of bytes that the compiler gave, since `self.0` has as many.
            let times = unsafe { first.add(at).read() };
            // Once, twice, four times, ...: more often than that is no news.
            let bit = if times == 0 { 0 } else { 1 << times.ilog2() };
            is_new |= bit & !*seen != 0;
            *seen |= bit;
        }
        is_new
    }
}

struct Fuzzer {
    random: TestRng,
    kept: Vec<Input>,
    coverage: Coverage,
    folder: Option<PathBuf>,
    rounds: u64,
}

impl Fuzzer {
    fn round(&mut self) {
        self.rounds += 1;
        let Fuzzer { random, kept, .. } = self;
        // Newer inputs are changed more often.
        let (one, other) = (random.below(kept.len()), random.below(kept.len()));
        let at = if random.below(2) == 0 { one } else { one.max(random.below(kept.len())) };
        let input = changed(random, &kept[at], &kept[other]);
        // An input that causes a panic is on disk by then.
        if let Some(folder) = &self.folder {
            write(&folder.join("now.lava"), &input);
        }
        let begin = Instant::now();
        if !self.coverage.insert_coverage(|| fuzzer_read(&input)) {
            return;
        }
        assert!(begin.elapsed() < Duration::from_secs(10), "a small file takes {:?}", begin.elapsed());
        if let Some(folder) = &self.folder {
            write(&folder.join(format!("{:016x}.lava", xxh3_64(&input.file) ^ xxh3_64(&input.tail))), &input);
        }
        self.kept.push(input);
    }

    /// The inputs of earlier runs, in the order of their names.
    fn saved(&self) -> Vec<Input> {
        let Some(folder) = &self.folder else { return Vec::new() };
        let _ = std::fs::create_dir_all(folder);
        let files = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|it| it.path());
        let mut files: Vec<PathBuf> = files.filter(|it| it.extension().is_some_and(|it| it == "lava")).collect();
        files.sort();
        let read = |it: &PathBuf| std::fs::read(it).unwrap_or_default();
        files.iter().map(|it| Input { file: read(it), tail: read(&it.with_extension("lava.tail")) }).collect()
    }
}

/// Nothing that is lost here is worth stopping for.
fn write(path: &Path, input: &Input) {
    let _ = std::fs::write(path, &input.file);
    let _ = std::fs::write(path.with_extension("lava.tail"), &input.tail);
}

const HEADER_BYTES: usize = 64;
const HEAD_BYTES: usize = 72;

/// A file, taken apart.
struct FileParts {
    header: Vec<u8>,
    /// Block heads and stored contents.
    blocks: Vec<(Vec<u8>, Vec<u8>)>,
    end: Vec<u8>,
}

impl FileParts {
    fn of(file: &[u8]) -> FileParts {
        let (header, mut rest) = file.split_at(file.len().min(HEADER_BYTES));
        let mut blocks = Vec::new();
        while rest.starts_with(b"LBLK") && rest.len() >= HEAD_BYTES {
            let stored = u32::from_le_bytes(std::array::from_fn(|it| rest[56 + it])) as usize;
            let end = (HEAD_BYTES + stored).min(rest.len());
            blocks.push((rest[..HEAD_BYTES].to_vec(), rest[HEAD_BYTES..end].to_vec()));
            rest = &rest[end.next_multiple_of(8).min(rest.len())..];
        }
        FileParts { header: header.to_vec(), blocks, end: rest.to_vec() }
    }

    /// Put together again; checksums may be made right, and so may sizes.
    fn file(mut self, is_summed: bool, is_sized: bool) -> Vec<u8> {
        if is_summed && self.header.len() == HEADER_BYTES {
            let sum = xxh3_64(&self.header[..56]);
            self.header[56..].copy_from_slice(&sum.to_le_bytes());
        }
        let mut file = self.header;
        for (mut head, stored) in self.blocks {
            if is_sized {
                let size = (stored.len() as u32).to_le_bytes();
                head[56..60].copy_from_slice(&size);
                // An uncompressed block has the same size unpacked.
                if head[5] == 0 {
                    head[52..56].copy_from_slice(&size);
                }
            }
            if is_summed {
                let sum = xxh3_64(&[&head[..64], &stored[..]].concat());
                head[64..].copy_from_slice(&sum.to_le_bytes());
            }
            file.extend(head);
            file.extend(stored);
            file.resize(file.len().next_multiple_of(8), 0);
        }
        file.extend(self.end);
        file
    }
}

fn changed(random: &mut TestRng, input: &Input, other: &Input) -> Input {
    let mut tail = input.tail.clone();
    if random.below(6) == 0 {
        change_bytes(random, &mut tail, &other.tail);
    }
    let (mut parts, others) = (FileParts::of(&input.file), FileParts::of(&other.file));
    for _ in 0..1 << random.below(4) {
        change_parts(random, &mut parts, &others);
    }
    let (is_summed, is_sized) = (random.below(16) != 0, random.below(8) != 0);
    let mut file = parts.file(is_summed, is_sized);
    if random.below(32) == 0 {
        file.truncate(random.below(file.len()));
    }
    Input { file, tail }
}

fn change_parts(random: &mut TestRng, parts: &mut FileParts, others: &FileParts) {
    let (at, count) = (random.below(parts.blocks.len()), parts.blocks.len());
    if count == 0 {
        return change_bytes(random, &mut parts.header, &others.header);
    }
    let other = others.blocks.get(random.below(others.blocks.len()));
    match random.below(16) {
        0 => change_bytes(random, &mut parts.header, &others.header),
        1 => change_bytes(random, &mut parts.end, &others.end),
        2 => parts.blocks.swap(at, random.below(count)),
        3 => drop(parts.blocks.remove(at)),
        4 => parts.blocks.insert(at, parts.blocks[random.below(count)].clone()),
        5 => parts.blocks.splice(at..at, other.cloned()).for_each(drop),
        6 | 7 => {
            // The magic stays, and the size stays whole.
            let mut fields = parts.blocks[at].0[4..64].to_vec();
            change_bytes(random, &mut fields, &[]);
            fields.resize(60, 0);
            parts.blocks[at].0[4..64].copy_from_slice(&fields);
        }
        _ => change_bytes(random, &mut parts.blocks[at].1, other.map_or(&[][..], |it| &it.1)),
    }
}

const VALUES: [u64; 12] = [0, 1, 2, 7, 0x7f, 0x80, 0xff, 0xffff, 0x7fff_ffff, 0xffff_ffff, 1 << 40, u64::MAX];

fn change_bytes(random: &mut TestRng, bytes: &mut Vec<u8>, other: &[u8]) {
    let at = random.below(bytes.len());
    match random.below(8) {
        0 if !bytes.is_empty() => bytes[at] ^= 1 << random.below(8),
        1 if !bytes.is_empty() => bytes[at] = random.below(256) as u8,
        2 if !bytes.is_empty() => bytes[at] = bytes[at].wrapping_add([1, 255, 16, 240][random.below(4)]),
        3 | 4 => {
            let value = VALUES[random.below(VALUES.len())].to_le_bytes();
            let width = (1 << random.below(4)).min(bytes.len() - at.min(bytes.len()));
            bytes[at..at + width].copy_from_slice(&value[..width]);
        }
        5 => {
            let new: Vec<u8> = (0..1 + random.below(9)).map(|_| random.below(256) as u8).collect();
            bytes.splice(at..at, new).for_each(drop);
        }
        6 => bytes.drain(at..(at + random.below(17)).min(bytes.len())).for_each(drop),
        _ => {
            let first = random.below(other.len());
            let part = &other[first..(first + random.below(64)).min(other.len())];
            let end = (at + if random.below(2) == 0 { part.len() } else { 0 }).min(bytes.len());
            bytes.splice(at..end, part.iter().copied()).for_each(drop);
        }
    }
}
