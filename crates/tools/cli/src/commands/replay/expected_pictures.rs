//! Selects the pictures that `lavascope replay --compare` expects without `--screenshot`: all
//! pictures in the folder.

use std::collections::BTreeSet;
use std::ops::Range;

use anyhow::{Context, bail};

use super::output::Screenshot;
use crate::commands::replay::ReplayArguments;

/// The pictures that the replay must produce, by frame and window.
#[derive(Clone, Default)]
pub(crate) struct ExpectedPictures {
    expected: BTreeSet<(u64, usize)>,
    /// Whether the replay may produce fewer frames. This is unknown if it replays a range of
    /// submissions.
    may_have_fewer: bool,
    /// The folder of the expected pictures.
    folder: std::path::PathBuf,
}

impl ExpectedPictures {
    pub(crate) fn of(arguments: &ReplayArguments) -> anyhow::Result<ExpectedPictures> {
        let Some(folder) = arguments.compare.clone() else { return Ok(ExpectedPictures::default()) };
        if !arguments.screenshot.is_empty() {
            let same = |it: &std::path::Path| it.canonicalize().ok();
            if same(&arguments.screenshots).is_some_and(|it| Some(it) == same(&folder)) {
                bail!(
                    "pictures would take the places of those in {} that they are compared with: --screenshots names \
                     another folder",
                    folder.display()
                );
            }
            return Ok(ExpectedPictures::default());
        }
        let failed = || format!("{} cannot be read", folder.display());
        let mut expected = BTreeSet::new();
        for entry in std::fs::read_dir(&folder).with_context(failed)? {
            let name = entry.with_context(failed)?.file_name();
            expected.extend(name.to_str().and_then(lavascope_picture::parse_file_name));
        }
        let part = arguments.frames.clone().unwrap_or(0..u64::MAX);
        expected.retain(|it| part.contains(&it.0));
        if expected.is_empty() {
            bail!("{} has no pictures of these frames", folder.display());
        }
        Ok(ExpectedPictures { expected, may_have_fewer: arguments.submits.is_some(), folder })
    }

    pub(crate) fn has_frame(&self, frame: u64) -> bool {
        self.expected.range((frame, 0)..=(frame, usize::MAX)).next().is_some()
    }

    /// The frames as ranges. Consecutive frames are in one range.
    pub(crate) fn ranges(&self) -> Vec<Range<u64>> {
        let mut ranges: Vec<Range<u64>> = Vec::new();
        for (frame, _) in &self.expected {
            match ranges.last_mut().filter(|it| it.end >= *frame) {
                Some(range) => range.end = range.end.max(frame + 1),
                None => ranges.push(*frame..frame + 1),
            }
        }
        ranges
    }

    /// The expected pictures that the replay did not produce.
    pub(crate) fn missing(&self, shots: &[Screenshot]) -> Vec<Screenshot> {
        if self.may_have_fewer {
            return Vec::new();
        }
        let shown: BTreeSet<(u64, usize)> = shots.iter().map(|it| (it.frame, it.window)).collect();
        let missing = self.expected.difference(&shown).map(|(frame, window)| Screenshot {
            frame: *frame,
            window: *window,
            file: self.folder.join(lavascope_picture::file_name(*frame, *window)).display().to_string(),
            width: 0,
            height: 0,
            difference: None,
            similarity: None,
            differing: Vec::new(),
            problem: Some("the replay has no such frame".to_owned()),
        });
        missing.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_that_follow_each_other_are_one_range() {
        let expected = BTreeSet::from([(1, 0), (2, 0), (2, 1), (3, 0), (7, 0)]);
        let compared = ExpectedPictures { expected, ..ExpectedPictures::default() };
        assert_eq!(compared.ranges(), [1..4, 7..8]);
        assert!(compared.has_frame(2) && !compared.has_frame(4));
        let missing = compared.missing(&[]);
        assert_eq!(missing.iter().map(|it| (it.frame, it.window)).nth(2), Some((2, 1)));
        assert!(ExpectedPictures { may_have_fewer: true, ..compared }.missing(&[]).is_empty());
    }
}
