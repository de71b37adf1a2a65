//! Where each tag was given. Commands of one command buffer have tags one after the other, and share an entry, so that
//! executing a command buffer costs one entry and not one for each command.

use lavascope_sync_ir::{At, Place};

use crate::clock::Tag;
use crate::device::TAGS_PER_COMMAND;

/// Entries that are worth a look at what can go.
const SWEEP_MIN: usize = 512;

#[derive(Default)]
pub(crate) struct Places {
    /// By tag.
    runs: Vec<Run>,
    /// How many were left when it was looked at last.
    kept: usize,
}

struct Run {
    first: Tag,
    start: Place,
}

impl Places {
    /// The tags from this one on are those of a step, or of commands that follow each other.
    pub(crate) fn begin(&mut self, first: Tag, start: Place) {
        self.runs.push(Run { first, start });
    }

    pub(crate) fn clear(&mut self) {
        self.runs.clear();
        self.kept = 0;
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.runs.len()
    }

    pub(crate) fn get(&self, tag: Tag) -> Option<Place> {
        let at = self.runs.partition_point(|it| it.first <= tag).checked_sub(1)?;
        let run = &self.runs[at];
        Some(match &run.start {
            Place::Step(step) => Place::Step(*step),
            Place::Command(start) => {
                let mut path = start.path.clone();
                if let Some(index) = path.last_mut() {
                    *index += ((tag - run.first) / TAGS_PER_COMMAND) as u32;
                }
                Place::Command(At { path, ..start.clone() })
            }
        })
    }

    /// Whether enough has come together that looking for what can go is worth it, with so many ranges to look at.
    pub(crate) fn is_grown(&self, ranges: usize) -> bool {
        self.runs.len() > 2 * self.kept + SWEEP_MIN.max(ranges / 8)
    }

    /// Keeps only what some tags, in order, lead to.
    pub(crate) fn keep_only(&mut self, tags: &[Tag]) {
        let ends: Vec<Tag> = self.runs.iter().skip(1).map(|it| it.first).chain([Tag::MAX]).collect();
        let mut ends = ends.into_iter();
        let mut at = 0;
        self.runs.retain(|it| {
            let end = ends.next().unwrap_or(Tag::MAX);
            at += tags[at..].partition_point(|tag| *tag < it.first);
            tags.get(at).is_some_and(|tag| *tag < end)
        });
        self.kept = self.runs.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(path: &[u32]) -> Place {
        Place::Command(At { step: 1, batch: 0, primary: 0, path: path.to_vec() })
    }

    #[test]
    fn what_is_not_asked_for_any_more_goes() {
        let mut places = Places::default();
        places.begin(8, Place::Step(0));
        places.begin(16, at(&[0]));
        places.begin(48, at(&[4, 0, 0]));
        assert_eq!((places.get(10), places.get(34)), (Some(Place::Step(0)), Some(at(&[2]))));
        assert_eq!((places.get(7), places.get(58)), (None, Some(at(&[4, 0, 1]))));
        places.keep_only(&[26, 60]);
        assert_eq!(places.runs.len(), 2);
        assert_eq!((places.get(26), places.get(60)), (Some(at(&[1])), Some(at(&[4, 0, 1]))));
    }

    /// Not before there are many, nor again before there are twice as many.
    #[test]
    fn it_is_looked_at_now_and_then() {
        let with = |runs: u64, kept: usize| {
            let mut places = Places { kept, ..Places::default() };
            (0..runs).for_each(|it| places.begin(8 * it, Place::Step(0)));
            places
        };
        assert!(!with(512, 0).is_grown(0) && with(513, 0).is_grown(0) && with(513, 0).is_grown(4103));
        assert!(!with(712, 100).is_grown(0) && with(713, 100).is_grown(0));
        assert!(!with(1000, 0).is_grown(8000) && with(1001, 0).is_grown(8000) && !with(1001, 0).is_grown(8008));
        let mut places = with(600, 0);
        assert!(places.is_grown(0));
        places.keep_only(&[4, 8 * 7, 8 * 7 + 1, 8 * 9 - 1, 8 * 599]);
        let left: Vec<Tag> = places.runs.iter().map(|it| it.first).collect();
        assert_eq!((left, places.kept), (vec![0, 56, 64, 8 * 599], 4));
        places.keep_only(&[]);
        assert_eq!((places.len(), places.kept), (0, 0));
        places.begin(1, Place::Step(0));
        places.kept = 7;
        places.clear();
        assert_eq!((places.len(), places.kept), (0, 0));
    }
}
