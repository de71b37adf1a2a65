//! Damaged files: only typed errors, and never more memory than a file of that size may need.
//!
//! Bits are flipped and files cut at random. Checksums catch nearly all of that, so in every second file the damage lies
//! inside a block whose checksum is made right again: what is behind the checksums must be as careful.
//! `cargo xtask proofs` and `cargo xtask fuzz` run this for longer (`LAVASCOPE_DAMAGES`, `LAVASCOPE_SEED`).

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use lavascope_abi::Command;
use lavascope_event::record::{Head, Kind, Touch};
use lavascope_event::{Written, check};
use lavascope_trace::{BlockWriter, Codec, Header, Merged, RawBlock, Recorded, Recorder, Trace, VERSION, repair};
use xxhash_rust::xxh3::xxh3_64;

/// Counts the memory that is in use, and the most that was.
struct Counting;

// Relaxed: one thread is measured.
static USED: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: the system's allocator does the work.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let used = USED.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        MOST.fetch_max(used, Ordering::Relaxed);
        // SAFETY: the caller's word.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        USED.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's word.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const HEADER: Header = Header { version: VERSION, id: 9, began: 0, ticks_per_second: 1_000_000_000 };
/// What a reader may ask for beside four times the file.
const ROOM: usize = 64 << 20;

struct Random(u64);

impl Random {
    fn below(&mut self, max: usize) -> usize {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (self.0 >> 33) as usize % max.max(1)
    }
}

/// A trace of two threads with calls of many shapes, large bodies among them.
fn file(codec: Codec, calls: u64) -> Vec<u8> {
    let (mut recorder, mut blocks) = (Recorder::default(), Vec::new());
    let commands = [Command::CmdDraw, Command::CmdPushConstants, Command::QueueSubmit, Command::CreateShaderModule];
    let (mut random, mut ends, mut numbers) = (Random(3), [0u64; 2], [0u64; 2]);
    for index in 0..calls {
        let thread = random.below(2);
        numbers[thread] += 1;
        let touches: Vec<u64> = match index % 50 {
            49 => vec![Touch { thread: 2 - thread as u32, call: numbers[1 - thread] }.to_word()],
            _ => Vec::new(),
        };
        let width = if index % 200 == 7 { 3000 } else { 2 + random.below(6) };
        let head = Head {
            body_words: 2 + width as u32,
            command: commands[index as usize % 4] as u16,
            kind: Kind::Enter as u8,
            remarks: 0,
            call: numbers[thread],
            touches: touches.len() as u32,
        };
        let body = (0..width as u64).map(|it| it * index % 977);
        let record: Vec<u64> = head.to_words().into_iter().chain(body).chain(touches).collect();
        let span = ends[thread]..ends[thread] + record.len() as u64 + 1;
        ends[thread] = span.end;
        let it = Recorded { stream: 1 + thread as u32, span, time: index * 9, record: &record };
        recorder.record(it, &mut |it| blocks.push(it));
        if index % 700 == 699 {
            recorder.seal(&mut |it| blocks.push(it));
        }
    }
    recorder.seal(&mut |it| blocks.push(it));
    let mut writer = BlockWriter::new(Vec::new(), HEADER).expect("memory takes everything");
    for it in blocks.into_iter().chain([RawBlock::facts(&serde_json::json!({ "program": "none" }))]) {
        writer.write(it.pack(codec)).expect("memory takes everything");
    }
    writer.finish(recorder.moments()).expect("memory takes everything")
}

/// Where blocks begin, by their magic.
fn blocks_of(file: &[u8]) -> Vec<usize> {
    (64..file.len().saturating_sub(72)).step_by(8).filter(|it| file[*it..].starts_with(b"LBLK")).collect()
}

/// Makes the checksum of a block right; false where its size does not fit the file.
fn sum_again(file: &mut [u8], at: usize) -> bool {
    let stored = u32::from_le_bytes(std::array::from_fn(|it| file[at + 56 + it])) as usize;
    let Some(end) = (at + 72).checked_add(stored).filter(|it| *it <= file.len()) else { return false };
    let summed = [&file[at..at + 64], &file[at + 72..end]].concat();
    file[at + 64..at + 72].copy_from_slice(&xxh3_64(&summed).to_le_bytes());
    true
}

/// Reads everything that there is to read.
fn read_all(file: &[u8]) -> (u64, u64) {
    let Ok(trace) = Trace::open(file) else { return (0, 1) };
    let (mut records, mut errors) = (0, 0);
    let _ = (trace.facts(), trace.sizes(), trace.moments(), trace.streams());
    let mut merged = Merged::new(&trace, None);
    loop {
        match merged.take_next() {
            Ok(Some(it)) => {
                records += 1;
                let _ = (check(it.record).is_ok(), Written::of(it.record).is_some());
            }
            Ok(None) => break,
            Err(_) => errors += 1,
        }
    }
    let _ = repair(&trace, None);
    (records, errors + merged.damages().len() as u64 + trace.damages().len() as u64)
}

fn number(name: &str, or: u64) -> u64 {
    std::env::var(name).ok().and_then(|it| it.parse().ok()).unwrap_or(or)
}

#[test]
fn damage_costs_what_is_damaged_and_no_more_memory_than_the_file_allows() {
    let rounds = number("LAVASCOPE_DAMAGES", 400);
    let mut random = Random(number("LAVASCOPE_SEED", 1));
    let files = [file(Codec::Zstd, 1000), file(Codec::None, 1000), file(Codec::Lz4, 300)];
    let (mut refused, mut damaged, mut most) = (0, 0, 0);
    for round in 0..rounds {
        let mut bad = files[random.below(files.len())].clone();
        let blocks = blocks_of(&bad);
        let block = blocks[random.below(blocks.len())];
        let is_inside = round % 2 == 0;
        for _ in 0..1 + random.below(4) {
            let (first, size) = if is_inside { (block + 4, 200) } else { (0, bad.len()) };
            let at = (first + random.below(size)).min(bad.len() - 1);
            match random.below(4) {
                0 => bad[at] = [0, 0xff, 0x7f, 0x80][random.below(4)],
                _ => bad[at] ^= 1 << random.below(8),
            }
        }
        if is_inside {
            sum_again(&mut bad, block);
        }
        if round % 5 == 1 {
            bad.truncate(random.below(bad.len()));
        }
        let before = USED.load(Ordering::Relaxed);
        MOST.store(before, Ordering::Relaxed);
        let (records, errors) = read_all(&bad);
        let used = MOST.load(Ordering::Relaxed) - before;
        assert!(used <= ROOM + 4 * bad.len(), "round {round}: {used} bytes for a file of {}", bad.len());
        most = most.max(used);
        refused += u64::from(records == 0);
        damaged += u64::from(errors > 0);
    }
    println!("{rounds} files: {damaged} with damage that was told, {refused} without a record; at most {most} bytes");
    assert!(damaged * 2 > rounds, "damage is told");
}
