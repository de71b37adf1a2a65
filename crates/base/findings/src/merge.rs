//! How findings that have one cause become one.
//!
//! A process reports a finding when it occurs first, and later only what is new: how often it occurred since, in which
//! frames, and on which further sites. Several processes may report the same finding.

use crate::{Finding, FrameSpan};

/// Sites that a finding lists behind the first one; more are counted.
pub const MORE_SITES_MAX: usize = 4;

impl Finding {
    /// Whether another finding has the same cause, as far as a report shows it.
    pub fn is_same_cause(&self, other: &Finding) -> bool {
        (&self.code, &self.fingerprint, &self.title) == (&other.code, &other.fingerprint, &other.title)
    }

    /// What is new since this finding was reported: nothing yet.
    pub fn addition(&self) -> Finding {
        Finding {
            code: self.code.clone(),
            severity: self.severity,
            title: self.title.clone(),
            fingerprint: self.fingerprint.clone(),
            ..Finding::default()
        }
    }

    /// Adds what another finding of the same cause has.
    pub fn add(&mut self, more: &Finding) {
        self.occurrences += more.occurrences;
        self.sites += more.sites;
        let free = MORE_SITES_MAX.saturating_sub(self.more_sites.len());
        self.more_sites.extend(more.more_sites.iter().take(free).cloned());
        self.frames = match (self.frames, more.frames) {
            (Some(own), Some(other)) => Some(own.join(other)),
            (own, other) => own.or(other),
        };
    }
}

impl FrameSpan {
    /// The frames of both; none of them may be counted twice.
    pub fn join(self, other: FrameSpan) -> FrameSpan {
        FrameSpan {
            first: self.first.min(other.first),
            last: self.last.max(other.last),
            count: self.count + other.count,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FindingSite;

    fn finding(title: &str) -> Finding {
        Finding { code: "A".to_owned(), title: title.to_owned(), occurrences: 1, sites: 1, ..Finding::default() }
    }

    #[test]
    fn what_is_new_is_added() {
        let span = |first, last, count| Some(FrameSpan { first, last, count });
        let mut own = finding("a");
        let more = Finding { occurrences: 3, frames: span(2, 4, 2), ..own.addition() };
        assert!(own.is_same_cause(&more) && !own.is_same_cause(&finding("b")));
        own.add(&more);
        own.add(&Finding { occurrences: 1, frames: span(9, 9, 1), ..own.addition() });
        assert_eq!((own.occurrences, own.sites, own.frames), (5, 1, span(2, 9, 3)));
    }

    #[test]
    fn sites_beyond_a_handful_are_counted() {
        let site = |number: u64| FindingSite { place: number.to_string(), ..FindingSite::default() };
        let mut own = finding("a");
        for number in 0..10 {
            own.add(&Finding { sites: 1, more_sites: vec![site(number)], ..own.addition() });
        }
        let places: Vec<&str> = own.more_sites.iter().map(|it| it.place.as_str()).collect();
        assert_eq!((own.sites, places), (11, vec!["0", "1", "2", "3"]));
    }
}
