//! Where the reports of two layers about one program differ.
//!
//! The peer reports one hazard for each access of a command: the first that it comes to. Ours reports each pair of
//! commands. So what counts is that both find a hazard at the same commands and resources, and that what the peer
//! names is among what ours does.

use std::collections::BTreeSet;
use std::fmt;

use crate::reported_hazard::{NamedCommand, ReportedHazard};

/// How two layers differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum DisagreementKind {
    /// Only ours reports something at a command.
    OnlyOurs,
    /// Only the peer does.
    OnlyPeer,
    /// Both do, with other codes.
    Code,
    /// Both do, with the same code and other earlier commands.
    Prior,
}

/// A command and a resource of which the two layers report something else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LayerDisagreement {
    pub(crate) kind: DisagreementKind,
    pub(crate) at: NamedCommand,
    pub(crate) resource: String,
    pub(crate) ours: Vec<ReportedHazard>,
    pub(crate) peer: Vec<ReportedHazard>,
}

/// All disagreements about one program, by command.
pub(crate) fn disagreements(ours: &[ReportedHazard], peer: &[ReportedHazard]) -> Vec<LayerDisagreement> {
    let keys: BTreeSet<(&NamedCommand, &String)> = ours.iter().chain(peer).map(|it| (&it.at, &it.resource)).collect();
    keys.into_iter().filter_map(|(at, resource)| disagreement(ours, peer, at, resource)).collect()
}

fn disagreement(
    ours: &[ReportedHazard],
    peer: &[ReportedHazard],
    at: &NamedCommand,
    resource: &str,
) -> Option<LayerDisagreement> {
    let of = |all: &[ReportedHazard]| -> Vec<ReportedHazard> {
        // A message about a view names no image.
        let is_here = |it: &&ReportedHazard| it.at == *at && (it.resource == resource || it.resource.is_empty());
        let found: BTreeSet<&ReportedHazard> = all.iter().filter(is_here).collect();
        found.into_iter().cloned().collect()
    };
    let made = |kind, ours, peer| Some(LayerDisagreement { kind, at: at.clone(), resource: resource.to_owned(), ours, peer });
    let (own, other) = (of(ours), of(peer));
    if resource.is_empty() && [ours, peer].iter().any(|all| all.iter().any(|it| it.at == *at && !it.resource.is_empty())) {
        return None;
    }
    match (own.is_empty(), other.is_empty()) {
        (false, true) => return made(DisagreementKind::OnlyOurs, own, other),
        (true, false) => return made(DisagreementKind::OnlyPeer, own, other),
        _ => {}
    }
    if other.iter().any(|it| !own.iter().any(|own| own.code == it.code)) {
        return made(DisagreementKind::Code, own, other);
    }
    let is_same_prior = |it: &ReportedHazard, own: &ReportedHazard| {
        own.code == it.code && (own.prior.is_none() || it.prior.is_none() || own.prior == it.prior)
    };
    if other.iter().any(|it| !own.iter().any(|own| is_same_prior(it, own))) {
        return made(DisagreementKind::Prior, own, other);
    }
    None
}

impl fmt::Display for LayerDisagreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:?} at {} {}", self.kind, self.at, self.resource)?;
        for (name, all) in [("lavascope", &self.ours), ("khronos", &self.peer)] {
            match all.is_empty() {
                true => writeln!(f, "  {name}: nothing")?,
                false => all.iter().try_for_each(|it| writeln!(f, "  {name}: {it}"))?,
            }
        }
        Ok(())
    }
}
