//! How findings that have one cause become one.
//!
//! A process reports a finding when it occurs first, and later only what is new: how often it occurred since, in which
//! frames, and on which further sites. Several processes may report the same finding.

use crate::shader_fault::launch_word;
use crate::{Finding, FindingProperty, FrameSpan};

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
        if more.invocations > 0 || self.invocations > 0 {
            self.set_invocations(self.invocations + more.invocations);
        }
        // What comes after an access is not recorded yet when the finding is reported first.
        for (own, other) in self.accesses.iter_mut().zip(&more.accesses) {
            if let (Some(own), Some(other)) = (&mut own.neighbors, &other.neighbors) {
                own.after = own.after.take().or_else(|| other.after.clone());
            }
        }
        let free = MORE_SITES_MAX.saturating_sub(self.more_sites.len());
        self.more_sites.extend(more.more_sites.iter().take(free).cloned());
        self.frames = match (self.frames, more.frames) {
            (Some(own), Some(other)) => Some(own.join(other)),
            (own, other) => own.or(other),
        };
    }
}

/// The property with the number of invocations.
const INVOCATIONS: &str = "invocations";

impl Finding {
    /// Sets the number of invocations with a shader fault, and the note about it: `65,536 invocations in each of 20
    /// dispatches`.
    pub fn set_invocations(&mut self, invocations: u64) {
        self.invocations = invocations;
        let word = launch_word(&self.function);
        let plural = if word == "dispatch" { "dispatches".to_owned() } else { format!("{word}s") };
        let commands = match self.occurrences {
            0 | 1 => format!("1 {word}"),
            draws if invocations.is_multiple_of(draws) => format!("each of {} {plural}", with_separators(draws)),
            draws => format!("{} {plural}", with_separators(draws)),
        };
        let each = match self.occurrences {
            draws if draws > 1 && invocations.is_multiple_of(draws) => invocations / draws,
            _ => invocations,
        };
        let note = format!("{} invocation{} in {commands}", with_separators(each), if each == 1 { "" } else { "s" });
        let is_old = |it: &String| it.contains(" invocation") && it.starts_with(|it: char| it.is_ascii_digit());
        match self.notes.iter_mut().find(|it| is_old(it)) {
            Some(old) => *old = note,
            None => self.notes.insert(0, note),
        }
        let value = invocations.to_string();
        match self.properties.iter_mut().find(|it| it.key == INVOCATIONS) {
            Some(property) => property.value = value,
            None => self.properties.push(FindingProperty { key: INVOCATIONS.to_owned(), value }),
        }
    }
}

/// `65,536`.
fn with_separators(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
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
    use crate::{FindingAccess, FindingSite, NeighborCommands};

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
    fn the_command_after_an_access_is_added_once() {
        let access = |after: Option<&str>| FindingAccess {
            neighbors: Some(NeighborCommands { after: after.map(str::to_owned), ..NeighborCommands::default() }),
            ..FindingAccess::default()
        };
        let mut own = Finding { accesses: vec![access(None), access(None)], ..finding("a") };
        for next in ["vkCmdDraw", "vkCmdDispatch"] {
            own.add(&Finding { accesses: vec![access(Some(next))], ..own.addition() });
        }
        let after = |it: &FindingAccess| it.neighbors.as_ref().and_then(|it| it.after.clone());
        let all: Vec<Option<String>> = own.accesses.iter().map(after).collect();
        assert_eq!(all, [Some("vkCmdDraw".to_owned()), None]);
    }

    #[test]
    fn invocations_are_a_note_and_a_property() {
        let mut own = Finding { function: "vkCmdDispatch".to_owned(), ..finding("a") };
        own.set_invocations(65_536);
        assert_eq!(own.notes, ["65,536 invocations in 1 dispatch"]);
        own.add(&Finding { occurrences: 19, invocations: 19 * 65_536, ..own.addition() });
        assert_eq!(
            (&own.notes[..], own.occurrences),
            (&["65,536 invocations in each of 20 dispatches".to_owned()][..], 20)
        );
        own.add(&Finding { invocations: 1, ..own.addition() });
        assert_eq!(own.notes, ["1,310,721 invocations in 20 dispatches"]);
        assert_eq!(own.properties.iter().map(|it| &*it.value).collect::<Vec<_>>(), ["1310721"]);
        let mut draw = finding("b");
        draw.set_invocations(1);
        assert_eq!(draw.notes, ["1 invocation in 1 draw"]);
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
