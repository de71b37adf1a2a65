//! A small generator of numbers that depend on nothing but a seed.

/// SplitMix64: a counter, and a mix of its value.
pub(crate) struct Random {
    state: u64,
}

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random { state: seed }
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut item = self.state;
        item = (item ^ (item >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        item = (item ^ (item >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        item ^ (item >> 31)
    }

    pub(crate) fn word(&mut self) -> u32 {
        (self.next() >> 32) as u32
    }

    /// A number below `end`, which is not zero.
    pub(crate) fn below(&mut self, end: u32) -> u32 {
        (self.next() % u64::from(end)) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_decides_everything() {
        let numbers = |seed| {
            let mut random = Random::new(seed);
            [random.next(), random.next(), random.next()]
        };
        assert_eq!(numbers(1), numbers(1));
        assert_ne!(numbers(1), numbers(2));
        assert!((0..100).all(|seed| Random::new(seed).below(7) < 7));
    }
}
