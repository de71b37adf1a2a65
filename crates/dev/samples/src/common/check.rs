//! Comparing what the device made with what it should have made.

use std::ops::Range;

use crate::common::Picture;
use crate::failure::Failure;

/// Compares results, or does not, as the user wishes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Check {
    mode: Mode,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Compare,
    /// For drivers that draw nothing.
    Skip,
    /// The first expectation of each comparison is made wrong, so that a right result must be refused.
    ExpectWrong,
}

impl Check {
    pub(crate) fn new(mode: Mode) -> Check {
        Check { mode }
    }

    pub(crate) fn words(self, what: &str, got: &[u32], want: &[u32]) -> Result<(), Failure> {
        if self.mode == Mode::Skip {
            return Ok(());
        }
        if got.len() != want.len() {
            return Err(Failure::Wrong(format!("{what} has {} words instead of {}", got.len(), want.len())));
        }
        let spoil = |at: usize| u32::from(self.mode == Mode::ExpectWrong && at == 0);
        let is_wrong = |at: usize| got[at] != want[at] ^ spoil(at);
        let wrong: Vec<usize> = (0..got.len()).filter(|at| is_wrong(*at)).collect();
        let Some(&at) = wrong.first() else { return Ok(()) };
        Err(Failure::Wrong(format!(
            "{what}: {} of {} words differ, the first at {at}: {:#010x} instead of {:#010x}",
            wrong.len(),
            got.len(),
            got[at],
            want[at] ^ spoil(at)
        )))
    }

    /// A number within a range that is not empty.
    pub(crate) fn number(self, what: &str, got: u64, want: Range<u64>) -> Result<(), Failure> {
        let want = match self.mode {
            Mode::Compare => want,
            Mode::Skip => return Ok(()),
            Mode::ExpectWrong => want.end..want.end + 1,
        };
        if want.contains(&got) {
            return Ok(());
        }
        Err(Failure::Wrong(format!("{what} is {got}, expected {} up to {}", want.start, want.end - 1)))
    }

    /// Compares every pixel; a channel may be off by `tolerance`.
    pub(crate) fn picture(
        self,
        got: &Picture,
        tolerance: u8,
        want: impl Fn(u32, u32) -> [u8; 4],
    ) -> Result<(), Failure> {
        if self.mode == Mode::Skip {
            return Ok(());
        }
        let expected = |x, y| match (self.mode, x, y) {
            (Mode::ExpectWrong, 0, 0) => want(x, y).map(|it| it ^ 0x80),
            _ => want(x, y),
        };
        let differs = |(x, y): &(u32, u32)| {
            let mut pairs = got.pixel(*x, *y).into_iter().zip(expected(*x, *y));
            pairs.any(|(got, want)| got.abs_diff(want) > tolerance)
        };
        let wrong: Vec<(u32, u32)> = got.pixels().filter(differs).collect();
        let Some(&(x, y)) = wrong.first() else { return Ok(()) };
        let (is, should) = (got.pixel(x, y), expected(x, y));
        Err(Failure::Wrong(format!(
            "{} pixels differ, the first at ({x}, {y}): {is:?} instead of {should:?}",
            wrong.len()
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMPARE: Check = Check { mode: Mode::Compare };
    const SKIP: Check = Check { mode: Mode::Skip };
    const SPOILED: Check = Check { mode: Mode::ExpectWrong };

    fn message(result: Result<(), Failure>) -> String {
        result.err().map(|it| it.to_string()).unwrap_or_default()
    }

    #[test]
    fn words_differ_by_value_and_by_number() {
        assert!(COMPARE.words("it", &[1, 2, 3], &[1, 2, 3]).is_ok());
        let text = message(COMPARE.words("it", &[1, 2, 3], &[1, 7, 3]));
        assert!(text.contains("1 of 3 words differ, the first at 1: 0x00000002 instead of 0x00000007"), "{text}");
        assert!(message(COMPARE.words("it", &[1], &[1, 2])).contains("has 1 words instead of 2"));
    }

    #[test]
    fn a_picture_is_compared_pixel_by_pixel_within_the_tolerance() {
        let picture = Picture::new(2, 1, vec![10, 20, 30, 255, 40, 50, 60, 255]);
        let want = |x: u32, _| if x == 0 { [10, 20, 30, 255] } else { [40, 52, 60, 255] };
        assert!(COMPARE.picture(&picture, 2, want).is_ok());
        let text = message(COMPARE.picture(&picture, 1, want));
        assert!(text.contains("1 pixels differ, the first at (1, 0)"), "{text}");
    }

    #[test]
    fn numbers_lie_in_their_range() {
        assert!(COMPARE.number("it", 5, 5..6).is_ok());
        assert!(message(COMPARE.number("it", 6, 4..6)).contains("it is 6, expected 4 up to 5"));
    }

    #[test]
    fn a_spoiled_check_refuses_what_is_right_and_a_skipped_one_takes_what_is_wrong() {
        let picture = Picture::new(1, 1, vec![1, 2, 3, 4]);
        assert!(SPOILED.words("it", &[1], &[1]).is_err());
        assert!(SPOILED.number("it", 5, 5..6).is_err());
        assert!(SPOILED.picture(&picture, 3, |_, _| [1, 2, 3, 4]).is_err());
        assert!(SKIP.words("it", &[1], &[2]).is_ok());
        assert!(SKIP.number("it", 9, 5..6).is_ok());
        assert!(SKIP.picture(&picture, 0, |_, _| [0; 4]).is_ok());
    }
}
