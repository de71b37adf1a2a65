//! Turns synchronization that is not needed into diagnostics.

use lavascope_diag::{AccessText, Diagnostic, DiagnosticLocation, Fix, Property, Severity};

use crate::fix::change::{bits_text, location_text};
use crate::fix::sync_version::SyncVersion;
use crate::{OverSynchronization, ProgramNames, RedundantSync, Removal};

/// The code of synchronization that is not needed.
pub const OVER_SYNCHRONIZATION: &str = "SYNC-OVER-SYNCHRONIZATION";

/// One diagnostic for each finding. The operation that orders the most accesses comes first.
pub fn diagnose_over_synchronization(found: &OverSynchronization, names: &dyn ProgramNames) -> Vec<Diagnostic> {
    found.redundant.iter().map(|it| diagnostic(it, names)).collect()
}

fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect()
}

fn diagnostic(redundant_sync: &RedundantSync, names: &dyn ProgramNames) -> Diagnostic {
    let location = location_text(redundant_sync.location, names);
    let (what, removed) = match redundant_sync.removal {
        Removal::Whole => (location.clone(), location.clone()),
        Removal::Bits(bits) => (
            bits_text(&bits, (redundant_sync.location, SyncVersion::Two), "in", names),
            bits_text(&bits, (redundant_sync.location, SyncVersion::Two), "from", names),
        ),
    };
    let waiting = match redundant_sync.accesses {
        0 => "No access waits because of it.".to_owned(),
        1 => "One access is ordered by it that needs no order.".to_owned(),
        count => format!("{count} accesses are ordered by it that need no order."),
    };
    let message = format!("{} is not needed: without it, there is no new hazard.\n{waiting}", capitalized(&what));
    Diagnostic {
        locations: vec![DiagnosticLocation {
            access: AccessText { action: "orders nothing that needs it".to_owned(), ..AccessText::default() },
            ..DiagnosticLocation::new("operation", location.clone(), location)
        }],
        properties: vec![Property { key: "accesses", value: redundant_sync.accesses.to_string() }],
        // The search removed this operation alone, and checked the program again.
        fixes: vec![Fix { is_verified: true, ..Fix::advice(format!("remove {removed}")) }],
        ..Diagnostic::new(OVER_SYNCHRONIZATION, Severity::Performance, message)
    }
}
