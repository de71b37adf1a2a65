//! The program location of each tag. The commands of a command buffer have consecutive tags and share one entry, so
//! executing a command buffer adds one entry, not one for each command.

use lavascope_sync_ir::{CommandLocation, ProgramLocation};

use crate::dependency::clocks::Tag;
use crate::queue::device::TAGS_PER_COMMAND;

/// A sweep does not start with fewer entries.
const SWEEP_MIN: usize = 512;

#[derive(Default)]
pub(crate) struct TagLocations {
    /// Sorted by tag.
    runs: Vec<LocationRun>,
    /// Number of entries after the last sweep.
    runs_after_sweep: usize,
}

struct LocationRun {
    first: Tag,
    location: ProgramLocation,
}

impl TagLocations {
    /// The tags from `first` on belong to a step, or to consecutive commands.
    pub(crate) fn begin(&mut self, first: Tag, start: ProgramLocation) {
        self.runs.push(LocationRun { first, location: start });
    }

    pub(crate) fn clear(&mut self) {
        self.runs.clear();
        self.runs_after_sweep = 0;
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.runs.len()
    }

    pub(crate) fn get(&self, tag: Tag) -> Option<ProgramLocation> {
        let at = self.runs.partition_point(|it| it.first <= tag).checked_sub(1)?;
        let run = &self.runs[at];
        Some(match &run.location {
            ProgramLocation::Step(step) => ProgramLocation::Step(*step),
            ProgramLocation::Command(start) => {
                let mut path = start.path.clone();
                if let Some(index) = path.last_mut() {
                    *index += ((tag - run.first) / TAGS_PER_COMMAND) as u32;
                }
                ProgramLocation::Command(CommandLocation { path, ..start.clone() })
            }
        })
    }

    /// Whether there are enough entries for a sweep, whose cost grows with the number of ranges.
    pub(crate) fn needs_sweep(&self, ranges: usize) -> bool {
        self.runs.len() > 2 * self.runs_after_sweep + SWEEP_MIN.max(ranges / 8)
    }

    /// Keeps only the entries of some tags, which are sorted.
    pub(crate) fn retain_tags(&mut self, tags: &[Tag]) {
        let ends: Vec<Tag> = self.runs.iter().skip(1).map(|it| it.first).chain([Tag::MAX]).collect();
        let mut ends = ends.into_iter();
        let mut at = 0;
        self.runs.retain(|run| {
            let end = ends.next().unwrap_or(Tag::MAX);
            at += tags[at..].partition_point(|tag| *tag < run.first);
            tags.get(at).is_some_and(|tag| *tag < end)
        });
        self.runs_after_sweep = self.runs.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(path: &[u32]) -> ProgramLocation {
        ProgramLocation::Command(CommandLocation { step: 1, batch: 0, primary: 0, path: path.to_vec() })
    }

    #[test]
    fn what_is_not_asked_for_any_more_goes() {
        let mut places = TagLocations::default();
        places.begin(8, ProgramLocation::Step(0));
        places.begin(16, at(&[0]));
        places.begin(48, at(&[4, 0, 0]));
        assert_eq!((places.get(10), places.get(34)), (Some(ProgramLocation::Step(0)), Some(at(&[2]))));
        assert_eq!((places.get(7), places.get(58)), (None, Some(at(&[4, 0, 1]))));
        places.retain_tags(&[26, 60]);
        assert_eq!(places.runs.len(), 2);
        assert_eq!((places.get(26), places.get(60)), (Some(at(&[1])), Some(at(&[4, 0, 1]))));
    }

    /// A sweep starts only with many entries, and again only when their number has doubled.
    #[test]
    fn it_is_checked_now_and_then() {
        let with = |runs: u64, kept: usize| {
            let mut places = TagLocations { runs_after_sweep: kept, ..TagLocations::default() };
            (0..runs).for_each(|it| places.begin(8 * it, ProgramLocation::Step(0)));
            places
        };
        assert!(!with(512, 0).needs_sweep(0) && with(513, 0).needs_sweep(0) && with(513, 0).needs_sweep(4103));
        assert!(!with(712, 100).needs_sweep(0) && with(713, 100).needs_sweep(0));
        assert!(
            !with(1000, 0).needs_sweep(8000) && with(1001, 0).needs_sweep(8000) && !with(1001, 0).needs_sweep(8008)
        );
        let mut places = with(600, 0);
        assert!(places.needs_sweep(0));
        places.retain_tags(&[4, 8 * 7, 8 * 7 + 1, 8 * 9 - 1, 8 * 599]);
        let left: Vec<Tag> = places.runs.iter().map(|it| it.first).collect();
        assert_eq!((left, places.runs_after_sweep), (vec![0, 56, 64, 8 * 599], 4));
        places.retain_tags(&[]);
        assert_eq!((places.len(), places.runs_after_sweep), (0, 0));
        places.begin(1, ProgramLocation::Step(0));
        places.runs_after_sweep = 7;
        places.clear();
        assert_eq!((places.len(), places.runs_after_sweep), (0, 0));
    }
}
