//! Records with small damage, as a broken disk or a hostile hand would do it.

use lavascope_test_support::TestRng;

/// Damages a record in one of a few ways: bits, words, counts, offsets, its length.
pub fn mutate(words: &mut Vec<u64>, random: &mut TestRng) {
    for _ in 0..=random.below(3) {
        if words.is_empty() {
            return;
        }
        let at = random_word_index(words.len(), random);
        match random.below(8) {
            0 => words[at] ^= 1 << random.below(64),
            1 => words[at] = random.next_u64(),
            2 => words[at] = random.below(words.len() as u64 + 4) * 8,
            3 => words[at] = words[at] & !0xffff_ffff | random.below(6),
            4 => words[at] |= 0xffff_ffff << (random.below(2) * 32),
            5 => words.truncate(at),
            6 => words.insert(at, random.below(3)),
            _ => {
                let other = random.below(words.len() as u64) as usize;
                words.swap(at, other);
            }
        }
    }
}

/// Mostly behind the head, whose damage shows at once.
fn random_word_index(words: usize, random: &mut TestRng) -> usize {
    const HEAD_WORDS: usize = 2;
    if words <= HEAD_WORDS || random.one_in(8) {
        return random.below(words as u64) as usize;
    }
    HEAD_WORDS + random.below((words - HEAD_WORDS) as u64) as usize
}
