//! The dependencies of barriers and event waits, ready to be used.

use std::ops::Range;

use lavascope_program::{Dependency, Ownership, Region, ResourceId, Scope, What};

use crate::address::Identity;
use crate::device::Timeline;
use crate::scope::Expanded;
use crate::state::First;
use crate::usage::{Stages, Usages};

/// A dependency, expanded.
pub(crate) struct Element {
    pub(crate) scope: Expanded,
    pub(crate) part: Option<Part>,
    pub(crate) is_transition: bool,
}

/// What a dependency is about, if not everything.
pub(crate) enum Part {
    Region(ResourceId, Region),
    Addresses(MergedPart),
}

/// Addresses that one element, or several elements of one command, are about.
pub(crate) struct MergedPart {
    pub(crate) resource: ResourceId,
    pub(crate) range: Range<u64>,
    pub(crate) sources: Vec<Source>,
    /// What the command makes available of accesses to the same memory at other addresses.
    pub(crate) elsewhere: Vec<(Range<u64>, Source)>,
}

/// What is made available of accesses through a resource.
#[derive(Clone, Copy)]
pub(crate) struct Source {
    pub(crate) through: Identity,
    pub(crate) usages: Usages,
}

/// Elements of one command that are about the same memory, through one resource.
#[derive(Clone, Copy)]
pub(crate) struct Merged {
    pub(crate) resource: ResourceId,
    pub(crate) through: Identity,
    pub(crate) scope: Expanded,
    pub(crate) is_transition: bool,
}

impl Merged {
    pub(crate) fn source(&self) -> Source {
        Source { through: self.through, usages: self.scope.src_usages }
    }

    pub(crate) fn with(self, other: Merged) -> Merged {
        let scope = Expanded {
            src: self.scope.src.union(other.scope.src),
            src_usages: self.scope.src_usages.union(other.scope.src_usages),
            src_everywhere: self.scope.src_everywhere.union(other.scope.src_everywhere),
            dst: self.scope.dst.union(other.scope.dst),
            dst_usages: self.scope.dst_usages.union(other.scope.dst_usages),
            dst_everywhere: self.scope.dst_everywhere.union(other.scope.dst_everywhere),
        };
        // What changes its layout is what conflicts.
        let resource = if self.is_transition { self.resource } else { other.resource };
        Merged { resource, scope, is_transition: self.is_transition || other.is_transition, ..self }
    }
}

/// Which half of a transfer between queue families a queue executes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Half {
    Release,
    Acquire,
}

impl Half {
    fn of(ownership: &Ownership, family: u32) -> Option<Half> {
        if ownership.src_family == ownership.dst_family {
            return None;
        }
        let is_release = ownership.src_family == family;
        let half = if is_release { Half::Release } else { Half::Acquire };
        (is_release || ownership.dst_family == family).then_some(half)
    }
}

/// With what its first scope hands on.
pub(crate) struct Ready {
    pub(crate) first: First,
    pub(crate) element: Element,
}

impl Ready {
    /// Addresses at which another part of the command begins or ends.
    pub(crate) fn cuts(&self) -> impl Iterator<Item = u64> {
        self.first.elsewhere.iter().flat_map(|it| [it.0.start, it.0.end])
    }
}

impl Element {
    pub(crate) fn sources_elsewhere(&self) -> &[(Range<u64>, Source)] {
        match &self.part {
            Some(Part::Addresses(part)) => &part.elsewhere,
            Some(Part::Region(..)) | None => &[],
        }
    }

    /// What it makes available of everything.
    pub(crate) fn global_usages(&self) -> Usages {
        if self.part.is_some() { self.scope.src_everywhere } else { self.scope.src_usages }
    }
}

/// Of a transfer between queue families each queue sees one half: nothing is visible after the release, nothing
/// available before the acquire.
fn limit_to_half(dependency: &Dependency, scope: &mut Expanded, family: u32) -> Option<Half> {
    let What::Ownership { ownership, .. } = &dependency.what else { return None };
    let half = Half::of(ownership, family)?;
    match half {
        Half::Release => scope.dst_usages = Usages::default(),
        Half::Acquire => scope.src_usages = Usages::default(),
    }
    Some(half)
}

/// Both halves of a transfer are accesses themselves.
fn element(dependency: &Dependency, scope: Expanded, family: u32) -> Element {
    let (part, is_transition) = match &dependency.what {
        What::Memory => (None, false),
        What::Resource { resource, region } => (Some(Part::Region(*resource, region.clone())), false),
        What::Transition { resource, region } => (Some(Part::Region(*resource, region.clone())), true),
        What::Ownership { resource, region, ownership } => {
            let is_access = Half::of(ownership, family).is_some() || ownership.is_transition;
            (Some(Part::Region(*resource, region.clone())), is_access)
        }
    };
    Element { scope, part, is_transition }
}

/// Version 2: each dependency stands for itself, and of a transfer each half also for its one scope only.
pub(crate) fn expanded(it: &Dependency, queue: &mut Timeline) -> Element {
    let mut scope = queue.expand(it.scope);
    match limit_to_half(it, &mut scope, queue.family) {
        Some(Half::Release) => scope.dst = Stages::default(),
        Some(Half::Acquire) => scope.src = Stages::default(),
        None => {}
    }
    element(it, scope, queue.family)
}

/// Version 1: the command is one dependency. Its stages are those of the command, and what any element makes
/// available is visible to what any element asks for, as far as they are about the same memory.
pub(crate) fn united(
    dependencies: &[Dependency],
    src_stages: u64,
    dst_stages: u64,
    queue: &mut Timeline,
) -> Vec<Element> {
    let family = queue.family;
    let mut of = |access: Scope| queue.expand(Scope { src_stages, dst_stages, ..access });
    let mut global = of(Scope::default());
    for it in dependencies.iter().filter(|it| it.what == What::Memory) {
        let scope = of(it.scope);
        global.src_usages = global.src_usages.union(scope.src_usages);
        global.dst_usages = global.dst_usages.union(scope.dst_usages);
    }
    let mut elements = vec![Element { scope: global, part: None, is_transition: false }];
    for it in dependencies.iter().filter(|it| it.what != What::Memory) {
        let mut scope = of(it.scope);
        limit_to_half(it, &mut scope, family);
        scope.src_usages = scope.src_usages.union(global.src_usages);
        scope.dst_usages = scope.dst_usages.union(global.dst_usages);
        (scope.src_everywhere, scope.dst_everywhere) = (global.src_usages, global.dst_usages);
        elements.push(element(it, scope, family));
    }
    elements
}
