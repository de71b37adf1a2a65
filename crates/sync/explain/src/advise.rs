//! Needless synchronization as diagnostics.

use lavascope_diag::{Diagnostic, Fact, Fix, Place, Severity};

use super::change::{bits_text, site_name};
use super::{Names, OverSynchronization, Removal, Surplus};

/// The code of synchronization that nobody needs.
pub const OVER_SYNCHRONIZATION: &str = "SYNC-OVER-SYNCHRONIZATION";

/// Everything that was found needless, the most needless work first.
pub fn advise(found: &OverSynchronization, names: &dyn Names) -> Vec<Diagnostic> {
    found.surplus.iter().map(|it| diagnostic(it, names)).collect()
}

fn diagnostic(it: &Surplus, names: &dyn Names) -> Diagnostic {
    let site = site_name(it.site, names);
    let (what, removed) = match it.what {
        Removal::Whole => (site.clone(), site.clone()),
        Removal::Bits(bits) => (bits_text(&bits, it.site, "in", names), bits_text(&bits, it.site, "from", names)),
    };
    let waiting = match it.accesses {
        0 => "No access waits because of it.".to_owned(),
        1 => "One access is ordered by it that needs no order.".to_owned(),
        count => format!("{count} accesses are ordered by it that need no order."),
    };
    let message = format!("Nothing needs {what}: without it no verdict changes.\n{waiting}");
    Diagnostic {
        places: vec![Place::new("operation", site.clone(), site)],
        facts: vec![Fact { key: "accesses", value: it.accesses.to_string() }],
        // Each was taken away by itself, and the program checked again.
        fixes: vec![Fix { text: format!("remove {removed}"), is_verified: true }],
        ..Diagnostic::new(OVER_SYNCHRONIZATION, Severity::Performance, message)
    }
}
