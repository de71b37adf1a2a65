//! Fixes that were verified for one hazard, and the further hazards that they remove.
//!
//! A fix has the ids of the slice in which it was found. Slices of one recording, or of steps that begin with the same
//! one, give the same ids to the same objects: a longer one only adds some. Resources are the exception, so a fix that
//! names one is for hazards of that resource only.

use std::collections::{HashSet, VecDeque};

use lavascope_abi::ObjectId;
use lavascope_explain::{ProgramFix, Proposal};
use lavascope_sync_ir::{Hazard, HazardKind, ProgramLocation, ResourceId};

/// Fixes that are kept.
const FIXES_MAX: usize = 64;

/// Slices with equal ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FixScope {
    Recording {
        device: ObjectId,
        command_buffer: ObjectId,
        resets: u32,
    },
    /// The steps from one on.
    Steps {
        device: ObjectId,
        first: u32,
    },
}

/// What was found out about the hazards of a cause.
#[derive(Debug)]
pub(crate) struct SharedFix {
    pub(crate) scope: FixScope,
    pub(crate) cause: usize,
    /// Whether the cause was new then.
    pub(crate) is_of_first: bool,
    kind: HazardKind,
    resource: ResourceId,
    at: ProgramLocation,
    prior: ProgramLocation,
    /// None if no change helps.
    pub(crate) fix: Option<ProgramFix>,
    /// Of the resource.
    removed: HashSet<(ProgramLocation, ProgramLocation)>,
}

#[derive(Default)]
pub(crate) struct SharedFixes {
    all: VecDeque<SharedFix>,
}

impl SharedFix {
    /// `removed` are the hazards that the fix removes, with the ids of the hazard.
    pub(crate) fn new(
        scope: FixScope,
        (cause, is_of_first): (usize, bool),
        hazard: &Hazard,
        proposal: &Proposal,
        removed: Vec<Hazard>,
    ) -> SharedFix {
        let removed = removed.into_iter().filter(|it| it.resource == hazard.resource && it.kind == hazard.kind);
        SharedFix {
            scope,
            cause,
            is_of_first,
            kind: hazard.kind,
            resource: hazard.resource,
            at: hazard.at.clone(),
            prior: hazard.prior.clone(),
            fix: proposal.fixes.first().cloned(),
            removed: removed.map(|it| (it.at, it.prior)).collect(),
        }
    }

    /// Whether the fix is known to remove a hazard.
    fn removes(&self, hazard: &Hazard) -> bool {
        self.resource == hazard.resource && self.removed.contains(&(hazard.at.clone(), hazard.prior.clone()))
    }

    /// Whether the fix may remove a hazard. One barrier for several resources is the same fix only if it stands between
    /// the same two commands.
    fn may_remove(&self, hazard: &Hazard) -> bool {
        let Some(fix) = &self.fix else { return false };
        let is_between_same = (&self.at, &self.prior) == (&hazard.at, &hazard.prior);
        self.resource == hazard.resource || !fix.names_resource() && (is_between_same || !fix.inserts_barrier())
    }

    /// Whether another hazard has no fix for the same reason: it is about the same resource, and shares an access.
    pub(crate) fn has_same_gap(&self, hazard: &Hazard) -> bool {
        self.fix.is_none()
            && (self.kind, self.resource) == (hazard.kind, hazard.resource)
            && (self.at == hazard.at || self.prior == hazard.prior)
    }
}

impl SharedFixes {
    pub(crate) fn push(&mut self, fix: SharedFix) {
        if self.all.len() >= FIXES_MAX {
            self.all.pop_front();
        }
        self.all.push_back(fix);
    }

    /// Steps have other numbers from now on.
    pub(crate) fn clear(&mut self) {
        self.all.clear();
    }

    fn of_kind(&self, scope: FixScope, kind: HazardKind) -> impl Iterator<Item = &SharedFix> {
        let is_of_kind =
            move |it: &SharedFix| it.kind == kind || it.fix.as_ref().is_some_and(ProgramFix::declares_dependency);
        self.all.iter().rev().filter(move |it| it.scope == scope && is_of_kind(it))
    }

    /// A fix that is known to remove a hazard.
    pub(crate) fn removing(&self, scope: FixScope, hazard: &Hazard) -> Option<&SharedFix> {
        self.of_kind(scope, hazard.kind).find(|it| it.removes(hazard))
    }

    /// Fixes that may remove a hazard, the last ones first.
    pub(crate) fn candidates(&self, scope: FixScope, hazard: &Hazard) -> impl Iterator<Item = &SharedFix> {
        self.of_kind(scope, hazard.kind).filter(|it| it.may_remove(hazard))
    }

    /// A cause without a fix that lacks the same.
    pub(crate) fn without_fix(&self, scope: FixScope, hazard: &Hazard) -> Option<&SharedFix> {
        self.of_kind(scope, hazard.kind).find(|it| it.has_same_gap(hazard))
    }

    /// Whether the fix of a cause is known in a scope.
    pub(crate) fn has_fix_of(&self, scope: FixScope, cause: usize) -> bool {
        self.all.iter().any(|it| it.scope == scope && it.cause == cause)
    }
}
