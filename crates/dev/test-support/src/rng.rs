//! A small seeded random number generator: xorshift with a multiplication, the same on every machine.

use std::ops::Range;

/// A sequence of numbers that a seed determines.
#[derive(Clone, Debug)]
pub struct TestRng(u64);

/// Integer types that [`TestRng::below`] returns.
pub trait RandomBound: Copy {
    fn to_u64(self) -> u64;
    /// `number` is below a bound of this type, so it fits.
    fn from_u64(number: u64) -> Self;
}

impl TestRng {
    pub fn new(seed: u64) -> TestRng {
        // The state must not be zero, and neighboring seeds must not give similar sequences.
        TestRng(seed.wrapping_add(0x9e37_79b9_7f4a_7c15).wrapping_mul(0xbf58_476d_1ce4_e5b9) | 1)
    }

    pub fn next_u64(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub fn next_u32(&mut self) -> u32 {
        (self.next_u64() >> 32) as u32
    }

    /// A number below `end`; zero if `end` is zero.
    pub fn below<N: RandomBound>(&mut self, end: N) -> N {
        N::from_u64((self.next_u64() >> 11) % end.to_u64().max(1))
    }

    /// True once in `times`, on average.
    pub fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    /// An item of a list, which must not be empty.
    pub fn pick<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }

    /// A non-empty range inside another one, which must not be empty.
    pub fn range(&mut self, of: Range<usize>) -> Range<usize> {
        let start = of.start + self.below(of.len());
        start..start + 1 + self.below(of.end - start)
    }
}

macro_rules! random_bounds {
    ($($ty:ty)*) => {
        $(impl RandomBound for $ty {
            fn to_u64(self) -> u64 {
                u64::try_from(self).expect("a bound is not negative")
            }

            fn from_u64(number: u64) -> $ty {
                number as $ty
            }
        })*
    };
}

// `i32` is the type of a literal that nothing else decides, as in `match rng.below(3)`.
random_bounds!(i32 u32 u64 usize);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_decides_everything() {
        let numbers = |seed| {
            let mut rng = TestRng::new(seed);
            [rng.next_u64(), rng.next_u64(), rng.next_u64()]
        };
        assert_eq!(numbers(1), numbers(1));
        assert_ne!(numbers(1), numbers(2));
        assert!(numbers(0).iter().all(|it| *it != 0));
    }

    #[test]
    fn all_numbers_below_a_bound_occur_about_equally_often() {
        let mut rng = TestRng::new(3);
        let mut counts = [0; 7];
        for _ in 0..7000 {
            counts[rng.below(7_usize)] += 1;
        }
        assert!(counts.iter().all(|it| (800..1200).contains(it)), "{counts:?}");
        assert_eq!((rng.below(0_u64), rng.below(1_u32)), (0, 0));
    }

    #[test]
    fn ranges_lie_inside_and_reach_both_ends() {
        let mut rng = TestRng::new(4);
        let all: Vec<Range<usize>> = (0..500).map(|_| rng.range(3..8)).collect();
        assert!(all.iter().all(|it| 3 <= it.start && it.start < it.end && it.end <= 8));
        assert!(all.contains(&(3..8)) && all.contains(&(7..8)));
    }
}
