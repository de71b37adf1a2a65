//! Damaged files: only typed errors, and never more memory than a file of that size may need.
//!
//! Bits are flipped and files cut at random. Checksums catch nearly all of that, so in every second file the damage
//! lies inside a block whose checksum is made right again: the code behind the checksums must be as careful. `cargo
//! xtask proofs` and `cargo xtask fuzz` run this for longer (`LAVASCOPE_DAMAGES`, `LAVASCOPE_SEED`).

mod common;

use lavascope_test_support::TestRng;
use lavascope_trace::Codec;
use xxhash_rust::xxh3::xxh3_64;

use common::{file, read_all};

/// Where blocks begin, by their magic.
fn blocks_of(file: &[u8]) -> Vec<usize> {
    (64..file.len().saturating_sub(72)).step_by(8).filter(|it| file[*it..].starts_with(b"LBLK")).collect()
}

/// Makes the checksum of a block right; false if its size does not fit the file.
fn fix_checksum(file: &mut [u8], at: usize) -> bool {
    let stored = u32::from_le_bytes(std::array::from_fn(|it| file[at + 56 + it])) as usize;
    let Some(end) = (at + 72).checked_add(stored).filter(|it| *it <= file.len()) else { return false };
    let summed = [&file[at..at + 64], &file[at + 72..end]].concat();
    file[at + 64..at + 72].copy_from_slice(&xxh3_64(&summed).to_le_bytes());
    true
}

fn number(name: &str, or: u64) -> u64 {
    std::env::var(name).ok().and_then(|it| it.parse().ok()).unwrap_or(or)
}

#[test]
fn damage_costs_what_is_damaged_and_no_more_memory_than_the_file_allows() {
    let rounds = number("LAVASCOPE_DAMAGES", 400);
    let mut random = TestRng::new(number("LAVASCOPE_SEED", 1));
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
            fix_checksum(&mut bad, block);
        }
        if round % 5 == 1 {
            bad.truncate(random.below(bad.len()));
        }
        let (records, errors, used) = read_all(&bad, &[]);
        most = most.max(used);
        refused += u64::from(records == 0);
        damaged += u64::from(errors > 0);
    }
    println!("{rounds} files: {damaged} with damage that was told, {refused} without a record; at most {most} bytes");
    assert!(damaged * 2 > rounds, "damage is reported");
}
