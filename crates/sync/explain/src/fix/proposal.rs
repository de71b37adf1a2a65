//! Proposes verified fixes: the program is checked again with each of them.

use std::collections::HashSet;

use lavascope_sync_ir::{Hazard, Program, ProgramLocation, ResourceId};

use super::apply::{apply, location_after_change};
use super::candidates::candidates;
use super::change::{ProgramChange, ProgramFix};
use super::endless_wait::adds_endless_wait;
use crate::follow::access_pair::{AccessPair, pairs_of_hazard};
use crate::{AccessDetail, Agent, Explainer, Explanation, SyncOperation};
use lavascope_engine::check;

/// The fixes of a hazard.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Proposal {
    /// The verified fixes, the smallest first.
    pub fixes: Vec<ProgramFix>,
    /// The number of candidates that were checked.
    pub tried: usize,
    /// The operations between the two accesses. The fixes refer to them.
    pub operations: Vec<SyncOperation>,
    /// The explanation of the first of these hazards.
    pub explanation: Option<Explanation>,
    /// The hazards that the first fix removes, with the hazard itself.
    pub removed: Vec<Hazard>,
    /// The reason and the advice, if there is no fix.
    pub no_fix_reason: Option<String>,
}

/// Finds the changes that remove a hazard and cause no new hazard. A change must also remove the
/// other hazards between the same two commands on the same resource.
pub fn propose(program: &Program, found: &Hazard) -> Proposal {
    Explainer::new(program).propose(found, &check(program))
}

impl Explainer<'_> {
    /// Like [`propose`], with the hazards of the program as `all`.
    pub fn propose(&self, found: &Hazard, all: &[Hazard]) -> Proposal {
        let explanations: Vec<(AccessPair, Explanation)> = self.explanations(found, all);
        let candidates = candidates(&self.timeline, &explanations, &self.versions);
        let tried = candidates.len();
        let program = self.timeline.program;
        let (mut fixes, mut removed): (Vec<ProgramFix>, Vec<Hazard>) = (Vec::new(), Vec::new());
        let mut has_endless_wait = false;
        for candidate in candidates {
            let is_known = fixes.iter().any(|own| *own == candidate || own.is_same_barrier(&candidate));
            if is_known {
                continue;
            }
            if adds_endless_wait(program, &candidate) {
                has_endless_wait = true;
                continue;
            }
            if let Some(without) = removed_hazards(program, all, found, &candidate) {
                if fixes.is_empty() {
                    removed = without.into_iter().cloned().collect();
                }
                fixes.push(candidate);
            }
        }
        let first = explanations.first().map(|it| &it.1);
        let why_not = fixes.is_empty().then(|| match first.filter(|_| has_endless_wait) {
            Some(first) if first.later.agent == Agent::Host => ENDLESS_WAIT.to_owned(),
            _ => no_fix_reason(first, tried),
        });
        let explanation = explanations.first().map(|it| it.1.clone());
        let operations = explanations.into_iter().flat_map(|it| it.1.operations).collect();
        Proposal { fixes, tried, operations, explanation, removed, no_fix_reason: why_not }
    }

    /// The proposal of a known fix, if it removes a hazard and causes no new hazard.
    pub fn verify(&self, found: &Hazard, all: &[Hazard], fix: &ProgramFix) -> Option<Proposal> {
        if adds_endless_wait(self.timeline.program, fix) {
            return None;
        }
        let removed = removed_hazards(self.timeline.program, all, found, fix)?.into_iter().cloned().collect();
        Some(Proposal { removed, ..self.adopt(found, fix) })
    }

    /// The proposal of a fix that is known to remove a hazard.
    pub fn adopt(&self, found: &Hazard, fix: &ProgramFix) -> Proposal {
        let explanation = self.explain(found);
        let operations = explanation.as_ref().map_or_else(Vec::new, |it| it.operations.clone());
        Proposal { fixes: vec![fix.clone()], tried: 1, operations, explanation, ..Proposal::default() }
    }

    /// The explanations of every hazard between the same two commands on the same resource.
    fn explanations(&self, found: &Hazard, all: &[Hazard]) -> Vec<(AccessPair, Explanation)> {
        let same = all.iter().filter(|it| hazard_key(it) == hazard_key(found));
        let pairs = same.flat_map(|it| pairs_of_hazard(&self.timeline, it));
        let mut known = HashSet::new();
        let pairs = pairs.filter(|it| known.insert((it.prior, it.later, it.memory_range.clone())));
        pairs
            .map(|pair| {
                let explanation = self.explain_pair(&pair);
                (pair, explanation)
            })
            .collect()
    }
}

/// Hazards with the same key are the same for a fix. The kind is not in the key, because a race
/// that becomes an ordinary hazard is not fixed.
fn hazard_key(hazard: &Hazard) -> (&ProgramLocation, &ProgramLocation, ResourceId) {
    (&hazard.at, &hazard.prior, hazard.resource)
}

/// The hazards that are gone after a fix. None if the fix leaves the found hazard, or causes a new one.
fn removed_hazards<'h>(
    program: &Program,
    all: &'h [Hazard],
    found: &Hazard,
    fix: &ProgramFix,
) -> Option<Vec<&'h Hazard>> {
    let mut changed = program.clone();
    let mut ways: Vec<(Program, &ProgramChange)> = Vec::new();
    for change in &fix.changes {
        let next = apply(&changed, change)?;
        ways.push((std::mem::replace(&mut changed, next), change));
    }
    let after_change = |place: &ProgramLocation| {
        ways.iter().fold(place.clone(), |it, (program, change)| location_after_change(program, change, &it))
    };
    let moved_key = |it: &Hazard| (after_change(&it.at), after_change(&it.prior), it.resource);
    let fixed = moved_key(found);
    let known: Vec<MovedKey> = all.iter().map(moved_key).collect();
    let is_known: HashSet<&MovedKey> = known.iter().filter(|it| **it != fixed).collect();
    let left: HashSet<MovedKey> = check(&changed).into_iter().map(|it| (it.at, it.prior, it.resource)).collect();
    let is_fixed = left.iter().all(|it| is_known.contains(it));
    is_fixed.then(|| all.iter().zip(&known).filter(|it| !left.contains(it.1)).map(|it| it.0).collect())
}

/// The key of a hazard in the changed program.
type MovedKey = (ProgramLocation, ProgramLocation, ResourceId);

/// The advice if the host cannot wait for the work before its access.
const ENDLESS_WAIT: &str = "the submitted work itself waits for something that the host signals or sets only later, so a \
                            wait of the host for it would never end; access the memory before the submission, split the \
                            submission, or use other memory for each frame (double buffering)";

/// The advice if no change of the synchronization helps: the program needs another structure.
fn no_fix_reason(explanation: Option<&Explanation>, tried: usize) -> String {
    let Some(other) = explanation else {
        return "the two accesses could not be found in the program".to_owned();
    };
    let design = match (other.prior.agent, other.later.agent) {
        (Agent::Host, Agent::Queue(_)) => {
            "the work was submitted before the host's access; submit it later, have it wait for a semaphore that the \
             host signals after its access, or use other memory for each frame (double buffering)"
        }
        (Agent::Presentation, Agent::Queue(_)) if tried == 0 => {
            "the image was not acquired again after it was presented; acquire it, and wait for that"
        }
        (Agent::Presentation, _) | (_, Agent::Presentation) => {
            "no semaphore can order the two as they are submitted; acquire the image, submit the work, and present the \
             image in that order, each with a semaphore for the next"
        }
        (_, Agent::Host) => {
            "no fence or barrier can be added as the work is submitted; wait on the host until it is over before the \
             access (vkQueueWaitIdle), or use other memory for each frame (double buffering)"
        }
        (Agent::Queue(from), Agent::Queue(to)) if from != to => {
            "no semaphore can order the two as they are submitted; submit the later access after the earlier one, or \
             use one queue for both"
        }
        _ if other.is_inside_one_instance => {
            "both accesses are in one render pass instance, where no barrier may stand; end it in between"
        }
        _ if matches!(other.later.detail, AccessDetail::FinalTransition(_) | AccessDetail::SubpassTransition(_)) => {
            "no dependency of the render pass comes before this layout transition; let the attachment keep its layout, \
             and change it with a barrier before or after the render pass"
        }
        _ => {
            "no barrier or dependency between the two removes it; put them into separate submissions and wait in \
             between, or use other memory for one of them"
        }
    };
    design.to_owned()
}
