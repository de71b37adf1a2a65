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
    let is_common = |own: &&ReportedHazard| peer.iter().any(|it| it.is_same(own) || it.is_race_for_same(own));
    let common: Vec<&ReportedHazard> = ours.iter().filter(is_common).collect();
    keys.into_iter().filter_map(|(at, resource)| disagreement(ours, peer, &common, (at, resource))).collect()
}

fn disagreement(
    ours: &[ReportedHazard],
    peer: &[ReportedHazard],
    common: &[&ReportedHazard],
    (at, resource): (&NamedCommand, &String),
) -> Option<LayerDisagreement> {
    let of = |all: &[ReportedHazard]| -> Vec<ReportedHazard> {
        let found: BTreeSet<&ReportedHazard> =
            all.iter().filter(|it| it.at == *at && it.resource == *resource).collect();
        found.into_iter().cloned().collect()
    };
    let (own, other) = (of(ours), of(peer));
    let is_open = |it: &&ReportedHazard| !is_repeated(it, common);
    let is_open_peer = |it: &&ReportedHazard| is_open(it) && !is_reported_elsewhere(it, ours);
    let kind = match (own.is_empty(), other.is_empty()) {
        (false, true) if own.iter().any(|it| is_open(&it)) => DisagreementKind::OnlyOurs,
        (true, false) if other.iter().any(|it| is_open_peer(&it)) => DisagreementKind::OnlyPeer,
        (false, false) => {
            let open: Vec<_> = other.iter().filter(is_open_peer).filter(|it| !is_covered(it, &own, &other)).collect();
            let has_code = |it: &&ReportedHazard| own.iter().any(|own| own.code == it.code);
            match (open.is_empty(), open.iter().all(has_code)) {
                (true, _) => return None,
                (false, true) => DisagreementKind::Prior,
                (false, false) => DisagreementKind::Code,
            }
        }
        _ => return None,
    };
    Some(LayerDisagreement { kind, at: at.clone(), resource: resource.clone(), ours: own, peer: other })
}

/// Whether it follows from something that both report. If nothing orders an access after an earlier one, the same may
/// hold for other commands, and how often a layer repeats that is up to it. Where queues race for a resource, what
/// comes after what is anybody's guess.
fn is_repeated(hazard: &ReportedHazard, common: &[&ReportedHazard]) -> bool {
    let follows = |first: &&ReportedHazard| {
        let is_cause = first.prior == hazard.prior || first.is_race() && (hazard.is_found_later() || hazard.is_race());
        first.resource == hazard.resource && is_cause
    };
    common.iter().any(follows)
}

/// Whether ours reports another command after the same earlier access. There the two disagree, and that is judged:
/// behind the first hazard of an access, what comes next is compared with another access.
fn is_reported_elsewhere(hazard: &ReportedHazard, ours: &[ReportedHazard]) -> bool {
    let is_same = |own: &ReportedHazard| {
        hazard.prior.is_some() && own.prior == hazard.prior && own.resource == hazard.resource && own.at != hazard.at
    };
    ours.iter().any(is_same)
}

/// Whether what the peer reports at a command is among what ours does.
fn is_covered(hazard: &ReportedHazard, ours: &[ReportedHazard], peer: &[ReportedHazard]) -> bool {
    let is_known = |it: &ReportedHazard| ours.iter().any(|own| own.is_same(it));
    // What the recording of a command already shows can be anything to what was submitted elsewhere.
    let has_recorded = || peer.iter().any(|it| is_known(it) && !it.is_found_later());
    // Of accesses on another queue the two name different ones.
    let has_race = || ours.iter().any(ReportedHazard::is_race);
    is_known(hazard) || (hazard.is_found_later() && has_recorded()) || (hazard.is_race() && has_race())
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
