//! The touches of shaders: which descriptors of arrays, and which bytes of buffers, for synchronization validation.
//!
//! Each draw has an area of its own. Its address is in the root table ([`ROOT_TOUCHES`]). A specialization constant
//! says where the words of a stage begin in the area. A part of a pipeline, or a shader object, is created before it is
//! known what it is drawn with: its constant has the bit [`TOUCH_SLOT`] and is the number of a *slot*, one of the first
//! [`TOUCH_HEAD`] words of the area, and the slot says where the words begin.
//!
//! A *site* is one kind of access to one binding: reads, writes or atomics, of one element or of an element that is
//! known only at run time. Accesses at device addresses have sites by the variable, and the part of it, that their
//! pointers were loaded from.
//!
//! | words of a site | |
//! | --- | --- |
//! | 0, 5 to 7 | unused |
//! | 1 | the complement of the first byte; of addresses, of the first word below 4 GiB |
//! | 2 | the end: zero if nothing was touched |
//! | 3 | the complement of the smallest element; of addresses, of the smallest upper half |
//! | 4 | the largest element plus one; of addresses, the largest upper half plus one |
//! | 128 | a bit for each word of four bytes, or texel, modulo 4096 |
//! | 128 | a bit for each block of 4 KiB with a touched word, modulo 4096 |
//! | 128 | a bit for each block whose *probe word* was touched; each block has another one |
//! | 128 | a bit for each element |
//!
//! The first three bit sets exist for storage buffers, texel buffers and addresses. The last one exists if the element
//! is known only at run time. Shaders set a bit by an atomic operation only if it is not set yet.
//!
//! The host reads two sets of bytes from that ([`Touched`]):
//!
//! - *may*: it has everything that was touched. Accesses whose sets share nothing do not overlap.
//! - *must*: it has only words that were touched. Accesses whose sets share a word do overlap.
//!
//! Within 16 KiB both are the same, and so they are for a block that shares its word bits with no other touched block.
//! In larger spans the blocks and their probe words decide: two accesses that touch the same words, dense or with the
//! same stride, share a probe word after a few blocks. If neither set decides, it stays open. If addresses are more
//! than 4 MiB apart, or on both sides of a multiple of 4 GiB, the host looks for them where buffers with addresses are
//! and were.
//!
//! - An access that every invocation makes at the beginning of its entry point, to bytes that the module names, needs
//!   no code, if the module has one entry point.
//! - Parts of words, whole structures and row-major matrices are in *may*, never in *must*.
//! - An access that a check prevents is not recorded.
//! - An untracked access makes its binding untracked, or the whole module if the binding is unknown: pointers out of
//!   phis and parameters, uniform buffers that are no arrays, unknown instructions.

use std::ops::Range;

/// Where the root table has the address of the area: two words, zero if there is none.
pub const ROOT_TOUCHES: u32 = 10;
/// The words before the first site of an area: its slots.
pub const TOUCH_HEAD: u32 = 64;
/// A constant with this bit is the number of a slot, and not the place of a stage's words itself.
pub const TOUCH_SLOT: u32 = 1 << 31;

/// Words of a site before its bits.
pub(crate) const SITE_HEAD: u32 = 8;
/// Bits of one kind.
pub(crate) const BITS: u64 = 4096;
pub(crate) const BITS_WORDS: u32 = (BITS / 32) as u32;
/// Words of a block, as a power of two.
pub(crate) const BLOCK_SHIFT: u32 = 10;
pub(crate) const BLOCK_WORDS: u64 = 1 << BLOCK_SHIFT;
/// Which word of a block decides: its number times this one, the highest bits.
pub(crate) const PROBE_FACTOR: u32 = 0x9e37_79b1;
/// The bits of a block's number: words are counted in 32 bits.
const BLOCKS_MASK: u32 = u32::MAX >> BLOCK_SHIFT;
/// In larger spans, single words are not compared.
const WORDS_MAX: u64 = 1 << 20;

/// The recording of touches in a module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModuleTouches {
    pub sites: Vec<TouchSite>,
    /// The words that they take.
    pub words: u32,
    /// Bindings that are accessed in other ways, too.
    pub untracked_bindings: Vec<(u32, u32)>,
    /// Whether there are accesses of which not even the binding is known.
    pub has_untracked_access: bool,
    /// Whether there are accesses at device addresses that are not kept.
    pub has_untracked_addresses: bool,
}

impl ModuleTouches {
    /// Whether all accesses to a binding are followed.
    pub fn tracks_binding(&self, set: u32, binding: u32) -> bool {
        let is_it = |it: &TouchSite| (it.set, it.binding) == (set, binding);
        !self.is_untracked(set, binding) && self.sites.iter().any(is_it)
    }

    /// Whether there may be accesses to a binding that are not followed.
    pub fn is_untracked(&self, set: u32, binding: u32) -> bool {
        self.has_untracked_access || self.untracked_bindings.contains(&(set, binding))
    }

    /// Whether all accesses at device addresses are followed.
    pub fn tracks_addresses(&self) -> bool {
        !self.has_untracked_access && !self.has_untracked_addresses
    }
}

/// One kind of access to a binding, by all instructions together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TouchSite {
    /// [`TouchSite::ADDRESSES`] where it is none: the binding is then a number for where addresses come from.
    pub set: u32,
    pub binding: u32,
    /// None if it is known only at run time.
    pub element: Option<u32>,
    pub reads: bool,
    pub writes: bool,
    pub is_atomic: bool,
    /// Where its words begin; none if it has no code.
    pub word_offset: Option<u32>,
    pub kind: TouchKind,
    /// Bytes of accesses that every invocation makes: where they begin, and how many.
    pub fixed_ranges: Vec<(u32, u32)>,
    /// Whether every invocation uses the descriptor.
    pub is_unconditional: bool,
}

/// The precision of a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TouchKind {
    /// The descriptor was used.
    Descriptor,
    /// The first byte and the last one.
    Span { is_exact: bool },
    /// Bits for words and blocks.
    Bits { is_exact: bool },
    /// The same, where a word is a texel.
    Texels,
    /// The same, of words at device addresses.
    Addresses { is_exact: bool },
}

impl TouchKind {
    /// Words for the bits of touches.
    pub(crate) fn bits_words(self) -> u32 {
        match self {
            TouchKind::Bits { .. } | TouchKind::Texels | TouchKind::Addresses { .. } => 3 * BITS_WORDS,
            TouchKind::Span { .. } | TouchKind::Descriptor => 0,
        }
    }
}

/// The bytes that were touched through a site, from the beginning of a descriptor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Touched {
    /// In their order; nothing where the descriptor was not used.
    pub elements: Vec<u32>,
    /// Not all elements could be kept.
    pub is_incomplete: bool,
    /// Whether an invocation kept something. Else the rest was touched only if there was an invocation at all.
    pub is_recorded: bool,
    /// All bytes that any of the stages may have touched, in order. None for resources other than buffers.
    pub may: Vec<Range<u64>>,
    /// The bytes that were certainly touched, if the binding has one element only.
    pub must: Vec<Range<u64>>,
}

impl ModuleTouches {
    /// Whether all sites have their words.
    pub(crate) fn is_sound(&self) -> bool {
        let is_inside = |touch_site: &TouchSite| {
            touch_site
                .word_offset
                .is_none_or(|at| u64::from(at) + u64::from(touch_site.words()) <= u64::from(self.words))
        };
        self.sites.iter().all(is_inside)
    }
}

impl TouchSite {
    /// The word of a site that is zero unless something was touched.
    pub const END_WORD: u32 = 2;

    /// In the place of a set, where there is none.
    pub const ADDRESSES: u32 = u32::MAX;

    /// The words that it takes.
    pub fn words(&self) -> u32 {
        SITE_HEAD + self.kind.bits_words() + if self.element.is_none() { BITS_WORDS } else { 0 }
    }

    fn own<'a>(&self, area: &'a [u32]) -> &'a [u32] {
        self.word_offset.and_then(|it| area.get(it as usize..)?.get(..self.words() as usize)).unwrap_or(&[])
    }

    /// The touches of a stage, decoded from its words, without those by addresses.
    pub fn read(&self, area: &[u32]) -> Touched {
        let words = self.own(area);
        let mut touched = Touched::default();
        let is_touched = words.get(2).is_some_and(|it| *it != 0);
        touched.is_recorded = is_touched;
        self.read_elements(words, is_touched, &mut touched);
        let is_exact = match self.kind {
            TouchKind::Descriptor | TouchKind::Addresses { .. } => return touched,
            TouchKind::Span { is_exact } | TouchKind::Bits { is_exact } => is_exact,
            TouchKind::Texels => true,
        };
        if is_touched {
            let span = u64::from(!words[1])..u64::from(words[2]);
            if let TouchKind::Span { .. } = self.kind {
                touched.must = if is_exact { ends(&span) } else { Vec::new() };
                touched.may = vec![span];
            } else {
                let span = span.start / 4..span.end.div_ceil(4);
                let bits = Bits::new(&words[SITE_HEAD as usize..], Some(span.clone()), is_exact);
                bits.add(span, &mut touched);
            }
        }
        let fixed = || self.fixed_ranges.iter().map(|it| u64::from(it.0)..u64::from(it.0) + u64::from(it.1));
        touched.may = joined(touched.may.drain(..).chain(fixed()).collect());
        touched.must = joined(touched.must.drain(..).chain(fixed()).collect());
        touched
    }

    /// The touches of a stage by addresses, decoded from its words. Distant addresses are looked up in ranges that must
    /// contain all of them; without ranges, the touches are incomplete.
    pub fn read_addresses(&self, area: &[u32], ranges: impl FnOnce() -> Option<Vec<Range<u64>>>) -> Touched {
        let (words, mut touched) = (self.own(area), Touched::default());
        let TouchKind::Addresses { is_exact } = self.kind else { return touched };
        touched.is_recorded = words.get(2).is_some_and(|it| *it != 0);
        if !touched.is_recorded {
            return touched;
        }
        let is_near = !words[3] == words[4].wrapping_sub(1);
        let base = u64::from(!words[3]) << 30;
        let span = is_near.then(|| base + u64::from(!words[1])..base + u64::from(words[2]));
        let bits = Bits::new(&words[SITE_HEAD as usize..], span.clone(), is_exact);
        match span.clone().filter(|it| it.end - it.start <= WORDS_MAX) {
            Some(span) => bits.add(span, &mut touched),
            None => match ranges() {
                Some(ranges) => {
                    let whole = span.unwrap_or(0..u64::MAX);
                    let parts = ranges.iter().map(|it| it.start / 4..it.end.div_ceil(4));
                    let parts = parts.map(|it| it.start.max(whole.start)..it.end.min(whole.end));
                    parts.filter(|it| it.start < it.end).for_each(|it| bits.add(it, &mut touched));
                }
                None => touched.is_incomplete = true,
            },
        }
        touched.may = joined(std::mem::take(&mut touched.may));
        touched.must = joined(std::mem::take(&mut touched.must));
        touched
    }

    fn read_elements(&self, words: &[u32], is_touched: bool, touched: &mut Touched) {
        match self.element {
            Some(element) if is_touched || self.is_unconditional || !self.fixed_ranges.is_empty() => {
                touched.elements.push(element)
            }
            Some(_) => {}
            None if is_touched => {
                let bits = &words[words.len() - BITS_WORDS as usize..];
                let all = (0..BITS as u32).filter(|it| bits[*it as usize / 32] & 1 << (it % 32) != 0);
                touched.elements.extend(all);
                touched.is_incomplete = u64::from(words[4]) > BITS || touched.elements.is_empty();
            }
            None => {}
        }
    }
}

/// The first word and the last one of a span.
fn ends(span: &Range<u64>) -> Vec<Range<u64>> {
    joined(vec![span.start..span.start + 4, span.end.saturating_sub(4)..span.end])
}

/// The bits of a site, and the words that they are about.
struct Bits<'a> {
    bits: &'a [u32],
    /// From the first word to the last one, where that is known.
    span: Option<Range<u64>>,
    is_exact: bool,
    /// Blocks that share their bits for words with no other one, by their numbers modulo the number of bits.
    is_unshared: [bool; BLOCKS_OF_BITS as usize],
}

/// Blocks that have bits of their own for words.
const BLOCKS_OF_BITS: u64 = BITS / BLOCK_WORDS;

impl<'a> Bits<'a> {
    fn new(bits: &'a [u32], span: Option<Range<u64>>, is_exact: bool) -> Bits<'a> {
        let mut made = Bits { bits, span, is_exact, is_unshared: [false; BLOCKS_OF_BITS as usize] };
        if let Some(blocks) = made.span.as_ref().map(blocks_of).filter(|it| it.end - it.start <= BITS) {
            let mut counts = [0; BLOCKS_OF_BITS as usize];
            let touched = blocks.filter(|it| made.is_set(1, *it));
            touched.for_each(|it| counts[(it % BLOCKS_OF_BITS) as usize] += 1);
            made.is_unshared = counts.map(|it| it == 1);
        }
        made
    }

    fn is_set(&self, kind: u32, at: u64) -> bool {
        let at = at % BITS;
        self.bits[(kind * BITS_WORDS) as usize + at as usize / 32] & 1 << (at % 32) != 0
    }

    /// Adds the touches of some words.
    fn add(&self, part: Range<u64>, touched: &mut Touched) {
        let bytes = |it: Range<u64>| it.start * 4..it.end * 4;
        let size = self.span.as_ref().map(|it| it.end - it.start);
        if size.is_some_and(|it| it <= BITS) {
            let words: Vec<_> = part.filter(|it| self.is_set(0, *it)).map(|it| bytes(it..it + 1)).collect();
            touched.must.extend(words.iter().filter(|_| self.is_exact).cloned());
            touched.may.extend(words);
        } else {
            let is_small = part.end - part.start <= WORDS_MAX;
            for block in blocks_of(&part).filter(|it| self.is_set(1, *it)) {
                let own = (block * BLOCK_WORDS).max(part.start)..((block + 1) * BLOCK_WORDS).min(part.end);
                match is_small {
                    true => touched.may.extend(own.filter(|it| self.is_set(0, *it)).map(|it| bytes(it..it + 1))),
                    false => touched.may.push(bytes(own)),
                }
            }
            self.add_must(&part, touched);
        }
        touched.may = joined(std::mem::take(&mut touched.may));
        touched.must = joined(std::mem::take(&mut touched.must));
    }

    /// The certain touches of some words among many.
    fn add_must(&self, part: &Range<u64>, touched: &mut Touched) {
        let Some(span) = self.span.as_ref().filter(|_| self.is_exact) else { return };
        let mut sure = vec![span.start, span.end - 1];
        let has_own_bits = blocks_of(span).count() as u64 <= BITS;
        for block in blocks_of(part).filter(|it| has_own_bits && self.is_set(1, *it)) {
            let words = block * BLOCK_WORDS..(block + 1) * BLOCK_WORDS;
            if self.is_unshared[(block % BLOCKS_OF_BITS) as usize] {
                sure.extend(words.filter(|it| self.is_set(0, *it)));
            } else if self.is_set(2, block) {
                sure.push(words.start + u64::from(probe_word(block as u32)));
            }
        }
        touched.must.extend(sure.iter().filter(|it| part.contains(it)).map(|it| it * 4..it * 4 + 4));
    }
}

fn blocks_of(words: &Range<u64>) -> Range<u64> {
    words.start / BLOCK_WORDS..words.end.div_ceil(BLOCK_WORDS)
}

/// The word of a block that decides. Shaders know the lower bits of its number.
fn probe_word(block: u32) -> u32 {
    (block & BLOCKS_MASK).wrapping_mul(PROBE_FACTOR) >> (32 - BLOCK_SHIFT)
}

/// In order, what touches as one.
fn joined(mut all: Vec<Range<u64>>) -> Vec<Range<u64>> {
    all.sort_unstable_by_key(|it| it.start);
    let mut made: Vec<Range<u64>> = Vec::new();
    for range in all {
        match made.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => made.push(range),
        }
    }
    made
}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init, reason = "lists of ranges are what is tested")]
mod tests {
    use super::*;
    use lavascope_test_support::TestRng;

    fn site(kind: TouchKind, element: Option<u32>) -> TouchSite {
        let (place, fixed) = (Some(0), Vec::new());
        let (set, binding, reads, writes) = (0, 0, false, true);
        TouchSite {
            set,
            binding,
            element,
            reads,
            writes,
            is_atomic: false,
            word_offset: place,
            kind,
            fixed_ranges: fixed,
            is_unconditional: false,
        }
    }

    /// How a shader records the words that it touches.
    fn kept(site: &TouchSite, words: impl IntoIterator<Item = u32>) -> Vec<u32> {
        let mut area = vec![0; site.words() as usize];
        for word in words {
            area[1] = area[1].max(!(word * 4));
            area[2] = area[2].max(word * 4 + 4);
            let block = word >> BLOCK_SHIFT;
            let mut set = |kind: u32, bit: u32| {
                let bit = bit % BITS as u32;
                area[(SITE_HEAD + kind * BITS_WORDS + bit / 32) as usize] |= 1 << (bit % 32);
            };
            set(0, word);
            set(1, block);
            if word % BLOCK_WORDS as u32 == probe_word(block) {
                set(2, block);
            }
        }
        area
    }

    const EXACT: TouchKind = TouchKind::Bits { is_exact: true };

    #[test]
    fn of_a_few_kilobytes_each_word_is_known_wherever_they_are() {
        let site = site(EXACT, Some(3));
        for base in [0, 1000, 5_000_000] {
            let touched = site.read(&kept(&site, [base, base + 1, base + 7, base + 4095]));
            let at = u64::from(base) * 4;
            assert_eq!(touched.may, [at..at + 8, at + 28..at + 32, at + 4095 * 4..at + 4096 * 4]);
            assert!(touched.is_recorded);
            assert_eq!((touched.must, touched.elements), (touched.may, vec![3]));
        }
    }

    #[test]
    fn what_was_not_used_has_nothing() {
        let site = site(EXACT, Some(0));
        assert_eq!(site.read(&kept(&site, [])), Touched::default());
        assert_eq!(site.read(&[]), Touched::default(), "there is no area");
    }

    #[test]
    fn of_more_what_may_have_been_touched_has_all_and_what_must_have_been_only_that() {
        let site = site(EXACT, Some(0));
        for (base, step, count) in [(0u32, 1u32, 100_000u32), (77, 4, 100_000), (5, 3000, 5000), (9, 100_000, 300)] {
            let words: Vec<u32> = (0..count).map(|it| base + it * step).collect();
            let touched = site.read(&kept(&site, words.iter().copied()));
            let has = |all: &[Range<u64>], word: u32| all.iter().any(|it| it.contains(&(u64::from(word) * 4)));
            assert!(words.iter().all(|it| has(&touched.may, *it)), "{base} {step}");
            let surely: Vec<u64> = touched.must.iter().flat_map(|it| (it.start..it.end).step_by(4)).collect();
            assert!(surely.len() >= 2, "the first one and the last one");
            let is_one = |value: &u64| {
                (value / 4 - u64::from(base)).is_multiple_of(step.into()) && value / 4 <= words[words.len() - 1].into()
            };
            assert!(surely.iter().all(is_one), "{base} {step}");
        }
    }

    #[test]
    fn rows_that_take_turns_share_no_word_and_those_that_are_the_same_share_some() {
        let site = site(EXACT, Some(0));
        let row = |first: u32| site.read(&kept(&site, (first..400_000).step_by(4)));
        let (one, other) = (row(0), row(1));
        let overlaps =
            |a: &[Range<u64>], b: &[Range<u64>]| a.iter().any(|a| b.iter().any(|b| a.start < b.end && b.start < a.end));
        assert!(!overlaps(&one.may, &other.may));
        let again = row(2000);
        assert!(overlaps(&one.must, &again.must), "they share every fourth word");
    }

    #[test]
    fn a_block_that_shares_its_bits_with_no_other_is_known_word_for_word() {
        let site = site(EXACT, Some(0));
        let apart = site.read(&kept(&site, [3, 9, 5 * 1024 + 7, 70 * 1024 + 1]));
        let word = |it: u64| it * 4..it * 4 + 4;
        assert_eq!(apart.may, [word(3), word(9), word(5 * 1024 + 7), word(70 * 1024 + 1)]);
        assert_eq!(apart.must, apart.may);
        // The numbers of these two differ by four: where bits for words begin again.
        let shared = site.read(&kept(&site, [3, 9, 4 * 1024 + 7, 70 * 1024 + 1]));
        assert_eq!(shared.must, [word(3), word(70 * 1024 + 1)], "the ends, and the last one is alone");
        assert!(shared.may.contains(&word(7)), "nobody knows which of the two it was");
    }

    #[test]
    fn whatever_is_touched_may_have_been_and_what_must_have_been_was() {
        let of_buffer = site(EXACT, Some(0));
        let of_addresses = TouchSite { kind: TouchKind::Addresses { is_exact: true }, ..of_buffer.clone() };
        for seed in 0..500 {
            let mut rng = TestRng::new(seed);
            let end = 1_u64 << (4 + rng.below(22));
            let words: Vec<u32> = (0..1 + rng.below(40)).map(|_| rng.below(end) as u32).collect();
            // As an address, a word is behind a multiple of 16 GiB, where its bits are the same.
            let base = (1 << 34) * (1 + rng.below(1000_u64));
            let mut area = kept(&of_buffer, words.iter().copied());
            let found = of_buffer.read(&area);
            let (first, behind) = (words.iter().min().copied(), words.iter().max().map(|it| it + 1));
            (area[1], area[2]) = (!first.unwrap_or(0), behind.unwrap_or(0));
            (area[3], area[4]) = (!((base >> 32) as u32), (base >> 32) as u32 + 1);
            let range = base..base + u64::from(behind.unwrap_or(0)) * 4;
            let ranges = || Some(vec![range.clone()]);
            let addressed = of_addresses.read_addresses(&area, ranges);
            for (found, base) in [(found, 0), (addressed, base)] {
                let at = |word: u32| base + u64::from(word) * 4;
                let is_in = |all: &[Range<u64>], byte: u64| all.iter().any(|it| it.contains(&byte));
                assert!(words.iter().all(|it| is_in(&found.may, at(*it))), "{words:?} {:?}", found.may);
                let surely = found.must.iter().flat_map(|it| it.clone().step_by(4));
                assert!(
                    surely.clone().all(|it| words.iter().any(|word| at(*word) == it)),
                    "{words:?} {:?}",
                    found.must
                );
                assert!(surely.count() > 0, "the ends are known");
            }
        }
    }

    #[test]
    fn addresses_on_both_sides_of_a_multiple_of_4_gib_are_never_sure() {
        let site = TouchSite { kind: TouchKind::Addresses { is_exact: true }, ..site(EXACT, Some(0)) };
        let mut area = kept(&site, [5, 6]);
        (area[1], area[2]) = (!5, 7);
        (area[3], area[4]) = (!1, 4);
        let (near, far) = ((1 << 32)..(1 << 32) + 64, (9 << 32) + 4096..(9 << 32) + 8192);
        let found = site.read_addresses(&area, || Some(vec![near.clone(), far]));
        assert_eq!((found.may, found.must), (vec![near.start + 20..near.start + 28], Vec::new()));
        assert!(site.read_addresses(&area, || None).is_incomplete);
        assert_eq!(site.read_addresses(&kept(&site, []), || None), Touched::default());
    }

    #[test]
    fn what_is_not_whole_words_is_never_sure() {
        let site = site(TouchKind::Bits { is_exact: false }, Some(0));
        let touched = site.read(&kept(&site, [1, 2]));
        assert_eq!((touched.may, touched.must), (vec![4..12], Vec::new()));
    }

    #[test]
    fn fixed_bytes_and_elements_are_reported_with_the_rest() {
        let mut fixed = site(EXACT, Some(1));
        fixed.fixed_ranges = vec![(0, 4), (16, 16)];
        let touched = fixed.read(&kept(&fixed, [1]));
        assert_eq!((touched.may, touched.must), (vec![0..8, 16..32], vec![0..8, 16..32]));
        let any = site(TouchKind::Descriptor, None);
        let mut area = vec![0; any.words() as usize];
        (area[1], area[2], area[3], area[4]) = (!0, 1, !2, 41);
        area[SITE_HEAD as usize] = 1 << 2;
        area[SITE_HEAD as usize + 1] = 1 << 8;
        assert_eq!(any.read(&area).elements, [2, 40]);
        assert!(!any.read(&area).is_incomplete);
        area[4] = 5000;
        assert!(any.read(&area).is_incomplete, "there are no bits for so many");
        let mut always = site(TouchKind::Descriptor, Some(7));
        (always.word_offset, always.is_unconditional) = (None, true);
        let touched = always.read(&[]);
        assert_eq!((touched.elements, touched.is_recorded), (vec![7], false), "if there was an invocation");
    }
}
