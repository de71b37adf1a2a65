//! The earlier access of a hazard, by what stays the same from run to run: a later run can stop there.
//!
//! It has the function, the innermost debug label, the object, and whether it is read or written. What is known of a hazard is also known when the
//! command is recorded, before anything is wrong with it. A key is short enough to be typed, so other commands may have
//! the same one; a stop says which command it is.

use std::fmt;

use xxhash_rust::xxh64::xxh64;

use crate::{Diagnostic, DiagnosticObject};

/// A first access as a number, in 12 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FirstAccessKey {
    access: u32,
    /// Zero without a label.
    label: u16,
}

/// An access as far as it is known when its command is recorded.
#[derive(Clone, Copy, Debug)]
pub struct RecordedAccess<'a> {
    pub function: &'a str,
    /// The innermost debug label.
    pub label: Option<&'a str>,
    pub object: &'a DiagnosticObject,
    /// None if the command may do both: it begins or ends a render pass, or changes a layout.
    pub is_write: Option<bool>,
}

/// Executors are among the objects of a diagnostic, and nothing accesses them.
const EXECUTORS: [&str; 2] = ["VkCommandBuffer", "VkQueue"];

impl FirstAccessKey {
    /// The key of a diagnostic's prior access; none if it has no such access.
    pub fn of(diagnostic: &Diagnostic) -> Option<FirstAccessKey> {
        let prior = diagnostic.locations.iter().find(|it| it.role == "prior access")?;
        // If two resources share memory, the second one is the resource of the prior access.
        let is_resource = |it: &&DiagnosticObject| !EXECUTORS.contains(&it.kind);
        let object = diagnostic.objects.iter().rfind(is_resource)?;
        let label = prior.labels.commands.last();
        Some(FirstAccessKey::new(prior.path.last()?, label.map(String::as_str), object, prior.access.is_write))
    }

    fn new(function: &str, label: Option<&str>, object: &DiagnosticObject, is_write: bool) -> FirstAccessKey {
        let object = match (&object.name, &object.description) {
            (Some(name), _) => format!("{} {name:?}", object.kind),
            (None, description) => format!("{}, {}", object.kind, description.as_deref().unwrap_or_default()),
        };
        let verb = if is_write { "writes" } else { "reads" };
        let access = xxh64(format!("{function} {verb}\n{object}").as_bytes(), 0) as u32;
        let label = label.map_or(0, |it| (xxh64(it.as_bytes(), 0) as u16).max(1));
        FirstAccessKey { access, label }
    }

    /// Whether an access has the key. A command that has no label of its own may get one around its command buffer later.
    pub fn fits(self, recorded: &RecordedAccess<'_>) -> bool {
        let directions = recorded.is_write.map_or(vec![true, false], |it| vec![it]);
        directions.into_iter().any(|is_write| {
            let other = FirstAccessKey::new(recorded.function, recorded.label, recorded.object, is_write);
            self.access == other.access && (other.label == 0 || other.label == self.label)
        })
    }

    /// None if the text is no key.
    pub fn parse(text: &str) -> Option<FirstAccessKey> {
        let is_hexadecimal = text.len() == 12 && text.bytes().all(|it| it.is_ascii_hexdigit());
        let number = u64::from_str_radix(text, 16).ok().filter(|_| is_hexadecimal)?;
        Some(FirstAccessKey { access: (number >> 16) as u32, label: number as u16 })
    }

    /// The key at the end of a fingerprint as reports show it: 16 digits, a dash, and the key.
    pub fn of_fingerprint(text: &str) -> Option<FirstAccessKey> {
        let (fingerprint, key) = text.trim().split_once('-')?;
        let is_hexadecimal = fingerprint.len() == 16 && fingerprint.bytes().all(|it| it.is_ascii_hexdigit());
        FirstAccessKey::parse(key).filter(|_| is_hexadecimal)
    }
}

impl fmt::Display for FirstAccessKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}{:04x}", self.access, self.label)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AccessText, DebugLabels, DiagnosticLocation, Severity};

    fn object(id: u64, name: Option<&str>) -> DiagnosticObject {
        let description = Some("1024 bytes".to_owned());
        DiagnosticObject { description, ..DiagnosticObject::new("VkBuffer", id, name.map(str::to_owned)) }
    }

    fn diagnostic(id: u64, labels: &[&str]) -> Diagnostic {
        let place = |role: &'static str, function: &str| DiagnosticLocation {
            path: vec!["vkCmdExecuteCommands".to_owned(), function.to_owned()],
            labels: DebugLabels { commands: labels.iter().map(|it| (*it).to_owned()).collect(), queue: Vec::new() },
            access: AccessText { is_write: true, ..AccessText::default() },
            ..DiagnosticLocation::new(role, format!("command {id}"), format!("command {id}"))
        };
        Diagnostic {
            locations: vec![place("access", "vkCmdDraw"), place("prior access", "vkCmdCopyBuffer")],
            objects: vec![
                object(id, Some("emitters")),
                object(id + 1, None),
                DiagnosticObject::new("VkQueue", id, None),
            ],
            ..Diagnostic::new("CODE", Severity::Error, "It is wrong.".to_owned())
        }
    }

    #[test]
    fn the_access_of_a_later_run_has_the_key() {
        let key = FirstAccessKey::of(&diagnostic(1, &["Frame", "Upload"])).expect("there is a prior access");
        assert_eq!(Some(key), FirstAccessKey::of(&diagnostic(70, &["Frame", "Upload"])), "numbers do not count");
        let own = Some("Upload");
        let fits = |function, label, name, is_write| {
            key.fits(&RecordedAccess { function, label, object: &object(9, name), is_write })
        };
        let function = "vkCmdCopyBuffer";
        for is_write in [Some(true), None] {
            assert!(fits(function, own, None, is_write) && fits(function, None, None, is_write));
        }
        assert!(!fits(function, own, None, Some(false)), "the same function reads it");
        assert!(!fits(function, Some("Frame"), None, None) && !fits("vkCmdDraw", own, None, None));
        assert!(!fits(function, own, Some("emitters"), None));
        let unlabeled = FirstAccessKey::of(&diagnostic(1, &[])).expect("there is a prior access");
        let other = object(9, None);
        let recorded = |label| RecordedAccess { function, label, object: &other, is_write: None };
        assert!(unlabeled.fits(&recorded(None)) && !unlabeled.fits(&recorded(own)));
    }

    #[test]
    fn a_key_is_what_it_shows() {
        let key = FirstAccessKey::of(&diagnostic(1, &["a"])).expect("there is a prior access");
        let text = key.to_string();
        assert_eq!((text.len(), FirstAccessKey::parse(&text)), (12, Some(key)));
        assert_eq!(FirstAccessKey::of_fingerprint(&format!("0123456789abcdef-{text}")), Some(key));
        for wrong in ["", "0123456789abcdef", "0123456789abcdef-", "0123-000000000000", "0123456789abcdef-00000000000g"]
        {
            assert_eq!(FirstAccessKey::of_fingerprint(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn what_has_no_prior_access_has_no_key() {
        let mut other = diagnostic(1, &[]);
        other.locations.truncate(1);
        assert_eq!(FirstAccessKey::of(&other), None);
    }
}
