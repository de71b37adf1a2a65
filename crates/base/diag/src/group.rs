//! Joins diagnostics that have the same cause.

use std::collections::HashMap;

use crate::{Code, Diagnostic, DiagnosticObject};

/// One diagnostic for each cause, in the order in which they first appear; the first of a cause stands for all, and
/// counts them. None is left out.
pub fn group_by_cause(found: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let mut groups: Vec<Diagnostic> = Vec::new();
    let mut known: HashMap<DiagnosticCause, usize> = HashMap::new();
    for diagnostic in found {
        match known.get(&cause(&diagnostic)) {
            Some(index) => groups[*index].count += diagnostic.count,
            None => {
                known.insert(cause(&diagnostic), groups.len());
                groups.push(diagnostic);
            }
        }
    }
    groups
}

type DiagnosticCause = (Code, Vec<(&'static str, String)>, Vec<DiagnosticObject>);

/// The same code, the same recorded commands, the same objects.
fn cause(diagnostic: &Diagnostic) -> DiagnosticCause {
    let places = diagnostic.locations.iter().map(|it| (it.role, it.cause.clone())).collect();
    (diagnostic.code.clone(), places, diagnostic.objects.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DiagnosticLocation, Severity};

    fn diagnostic(code: &'static str, cause: &str, text: &str) -> Diagnostic {
        let places = vec![DiagnosticLocation::new("access", text.to_owned(), cause.to_owned())];
        Diagnostic { locations: places, ..Diagnostic::new(code, Severity::Error, text.to_owned()) }
    }

    #[test]
    fn equal_causes_are_counted_and_nothing_is_lost() {
        let found = vec![
            diagnostic("A", "buffer 0 command 1", "first submission"),
            diagnostic("B", "buffer 0 command 1", "other code"),
            diagnostic("A", "buffer 0 command 1", "second submission"),
            diagnostic("A", "buffer 0 command 2", "other command"),
        ];
        let groups = group_by_cause(found);
        let seen: Vec<(&str, u64)> = groups.iter().map(|it| (it.message.as_str(), it.count)).collect();
        assert_eq!(seen, [("first submission", 2), ("other code", 1), ("other command", 1)]);
        assert_eq!(group_by_cause(groups).iter().map(|it| it.count).sum::<u64>(), 4);
    }
}
