//! The last known batch of each queue, by any path of semaphores or waits.

use smallvec::SmallVec;

use crate::dependency::clocks::Tag;

/// A tag for each queue with a known batch.
#[derive(Clone, Debug, Default)]
pub(crate) struct BatchClock(SmallVec<[(u8, Tag); 4]>);

impl BatchClock {
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// The tag of the last known batch of a queue; zero if none is known.
    pub(crate) fn get(&self, queue: u8) -> Tag {
        self.0.iter().find(|it| it.0 == queue).map_or(0, |it| it.1)
    }

    pub(crate) fn raise(&mut self, queue: u8, tag: Tag) {
        match self.0.iter_mut().find(|it| it.0 == queue) {
            Some(own) => own.1 = own.1.max(tag),
            None => self.0.push((queue, tag)),
        }
    }

    pub(crate) fn merge(&mut self, other: &BatchClock) {
        other.0.iter().for_each(|it| self.raise(it.0, it.1));
    }

    /// Whether this clock has everything that `other` has.
    pub(crate) fn covers(&self, other: &BatchClock) -> bool {
        other.0.iter().all(|it| self.get(it.0) >= it.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_later_batch_of_each_queue_is_known() {
        let (mut left, mut right) = (BatchClock::default(), BatchClock::default());
        for (queue, tag) in [(3, 7), (0, 2), (3, 5)] {
            left.raise(queue, tag);
        }
        right.raise(0, 4);
        assert_eq!([0, 1, 3].map(|it| left.get(it)), [2, 0, 7]);
        assert!(!left.covers(&right) && !right.covers(&left) && left.covers(&BatchClock::default()));
        left.merge(&right);
        assert!(left.covers(&right));
        assert_eq!([0, 1, 3].map(|it| left.get(it)), [4, 0, 7]);
        left.clear();
        assert_eq!(left.get(3), 0);
    }
}
