//! Noise: delays threads at random, so that only the order edges of the trace keep them in order.

use std::time::Duration;

/// The random numbers of one thread, from a seed and the index of the thread.
pub(crate) struct Chaos {
    state: u64,
}

impl Chaos {
    pub(crate) fn new(seed: u64, index: usize) -> Chaos {
        // Two threads have different states, and no state is zero.
        Chaos { state: (seed ^ (index as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)) | 1 }
    }

    fn next(&mut self) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state
    }

    /// Continues at once, yields, or sleeps.
    pub(crate) fn delay(&mut self) {
        match self.next() % 64 {
            0 => std::thread::sleep(Duration::from_micros(self.next() % 300)),
            1..8 => std::thread::yield_now(),
            8..12 => (0..self.next() % 2000).for_each(|_| std::hint::spin_loop()),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_have_numbers_of_their_own() {
        let numbers = |seed, index| {
            let mut chaos = Chaos::new(seed, index);
            [chaos.next(), chaos.next()]
        };
        assert_eq!(numbers(5, 1), numbers(5, 1));
        assert_ne!(numbers(5, 1), numbers(5, 2));
        assert_ne!(numbers(5, 1), numbers(6, 1));
    }
}
