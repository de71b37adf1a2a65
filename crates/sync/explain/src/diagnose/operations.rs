//! Lists the synchronization operations between two accesses for a report. The most relevant ones
//! come first, and the report counts the others.

use lavascope_abi::PipelineStageFlags2;
use lavascope_diag::{DiagnosticOperation, short_names};
use lavascope_sync_ir::{ProgramLocation, Region, ResourceId, SyncScope};

use crate::fix::change::subpass_name;
use crate::text::api_names::{access_names, region_text, second_scope_stages, stage_names};
use crate::text::title::name_of;
use crate::{
    AccessRole, Agent, CoverageGap, ExplainedAccess, Explanation, OperationLocation, ProgramNames, ScopeCoverage,
    SyncOperation, SyncOperationKind, SyncVersion,
};
use lavascope_engine::access::usages::access_members;

/// The report lists this many operations, and counts the others.
const LISTED_MAX: usize = 6;

/// How relevant an operation is for two accesses, the most relevant first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Relevance {
    /// The first fix edits the operation.
    Edited,
    /// The operation lacks bits in one of its scopes, or its range is too small.
    NearMiss,
    /// The operation would cover the accesses at another position.
    Misplaced,
    /// The operation would cover the accesses if it were about their resource.
    OtherResource,
    /// The first scope includes the earlier access, but the second scope does not include the later
    /// access.
    OnTheWay,
    /// The operation is limited to the resource of one of the accesses, or it is a semaphore, an
    /// event or a host wait near the earlier access.
    SameResource,
    Unrelated,
}

/// The operations to list, and the number of unrelated operations. The operations that a fix edits
/// come first.
pub(crate) fn listed_operations(
    explanation: &Explanation,
    edited: &[OperationLocation],
    names: &dyn ProgramNames,
) -> (Vec<DiagnosticOperation>, u64) {
    let is_edited = |it: &SyncOperation| edited.contains(&it.location) && !it.gaps.is_empty();
    let rank = |it: &SyncOperation| if is_edited(it) { Relevance::Edited } else { relevance(it, explanation) };
    let mut ranked: Vec<(Relevance, &SyncOperation)> =
        explanation.operations.iter().map(|it| (rank(it), it)).filter(|it| it.0 != Relevance::Unrelated).collect();
    // Within one rank, the operation nearest to the later access comes first.
    ranked.reverse();
    ranked.sort_by_key(|it| it.0);
    let mut listed: Vec<DiagnosticOperation> = Vec::new();
    let mut count = 0;
    for (rank, operation) in ranked {
        let is_near_miss = matches!(rank, Relevance::Edited | Relevance::NearMiss | Relevance::OtherResource);
        let made = operation_text(operation, is_near_miss, explanation, names);
        if listed.len() < LISTED_MAX && !listed.iter().any(|it| is_same(it, &made)) {
            listed.push(made);
        }
        count += 1;
    }
    let unrelated = explanation.operations.len() - count;
    (listed, unrelated as u64)
}

/// Whether two entries are executions of the same operation.
fn is_same(one: &DiagnosticOperation, other: &DiagnosticOperation) -> bool {
    (one.kind, &one.function, &one.scope, &one.gap) == (other.kind, &other.function, &other.scope, &other.gap)
        && (&one.labels, one.stack) == (&other.labels, other.stack)
}

fn relevance(operation: &SyncOperation, explanation: &Explanation) -> Relevance {
    let is_same_command = operation.gaps[..] == [CoverageGap::SameCommand];
    // The host waits for a read with a fence. No scope of a command takes part in that.
    let is_idle_for_host = explanation.later.agent == Agent::Host
        && !explanation.prior.is_write
        && matches!(
            operation.kind,
            SyncOperationKind::Barrier | SyncOperationKind::Event | SyncOperationKind::SubpassDependency
        );
    let is_idle = is_same_command || is_idle_for_host || is_idle_implicit(operation, explanation);
    if is_idle {
        return Relevance::Unrelated;
    }
    let (gaps, missing) = (&operation.gaps, &operation.missing);
    let is_about_resource = is_about_accesses(operation, explanation);
    let lacks = [missing.src_stages | missing.src_access, missing.dst_stages | missing.dst_access].map(|it| it != 0);
    let is_bits = |gap: &CoverageGap| {
        matches!(
            gap,
            CoverageGap::SourceStage
                | CoverageGap::SourceAccess
                | CoverageGap::DestinationStage
                | CoverageGap::DestinationAccess
                | CoverageGap::WaitStages
        )
    };
    let is_misplaced = |gap: &CoverageGap| {
        matches!(gap, CoverageGap::BeforeAccess | CoverageGap::AfterAccess | CoverageGap::SameCommand)
    };
    let is_fixable = |gap: &CoverageGap| is_bits(gap) || *gap == CoverageGap::OtherRange && is_about_resource;
    let is_near = !gaps.is_empty() && gaps.iter().all(is_fixable) && operation.missing != SyncScope::default();
    let is_near = is_near || gaps[..] == [CoverageGap::OtherRange] && is_about_resource;
    let has_stages = missing.src_stages | missing.dst_stages == 0;
    let is_partial = lacks != [true, true] || has_stages || is_named(operation, is_about_resource);
    match operation.coverage {
        _ if is_near && is_partial => Relevance::NearMiss,
        _ if !gaps.is_empty() && gaps.iter().all(is_misplaced) => match would_fit(operation, explanation) {
            true => Relevance::Misplaced,
            false => Relevance::Unrelated,
        },
        _ if gaps[..] == [CoverageGap::OtherResource] => Relevance::OtherResource,
        ScopeCoverage::Both | ScopeCoverage::FirstOnly => Relevance::OnTheWay,
        ScopeCoverage::NotInFirst if is_named(operation, is_about_resource) => Relevance::SameResource,
        ScopeCoverage::NotInFirst => match gaps.first() {
            Some(
                CoverageGap::NotAfterPresentation
                | CoverageGap::NotBeforePresentation
                | CoverageGap::NotAfterHost
                | CoverageGap::NotVisibleToHost
                | CoverageGap::SignaledBeforeAccess
                | CoverageGap::NeverWaited
                | CoverageGap::SetByHost
                | CoverageGap::NotSet
                | CoverageGap::SubmittedBefore,
            ) => Relevance::SameResource,
            _ => Relevance::Unrelated,
        },
    }
}

/// Whether an operation at another position has masks for the two accesses. A barrier for everything
/// fits anywhere, so its position says nothing.
fn would_fit(operation: &SyncOperation, explanation: &Explanation) -> bool {
    let (scope, later) = (&operation.scope, &explanation.later);
    let is_for_everything = scope.src_stages & ALL != 0 && scope.dst_stages & ALL != 0;
    // A write after a read needs no access masks. But masks without the later access are for others.
    let is_for_others =
        later.access != 0 && scope.dst_access != 0 && access_members(scope.dst_access) & later.access == 0;
    (operation.resource_region.is_some() || !is_for_everything) && !is_for_others
}

/// Whether the operation is limited to the resource of one of the accesses.
fn is_named(operation: &SyncOperation, is_about_resource: bool) -> bool {
    operation.resource_region.is_some() && is_about_resource
}

fn is_about_accesses(operation: &SyncOperation, explanation: &Explanation) -> bool {
    let resources = [explanation.later.resource, explanation.prior.resource];
    operation.resource_region.as_ref().is_none_or(|it| resources.contains(&it.0))
}

/// Whether the operation is an implicit subpass dependency that orders nothing between the two
/// accesses (`VkSubpassDependency`).
fn is_idle_implicit(operation: &SyncOperation, explanation: &Explanation) -> bool {
    let is_implicit = matches!(operation.location, OperationLocation::Subpass { dependency: None, .. });
    let is_of_pass = |it: &ExplainedAccess| matches!(it.role, AccessRole::Transition | AccessRole::Load);
    let leads_nowhere = operation.coverage == ScopeCoverage::NotInFirst
        || second_scope_stages(operation.scope.dst_stages) == 0
        || operation.gaps.contains(&CoverageGap::OtherSubpass);
    is_implicit && leads_nowhere && !(is_of_pass(&explanation.later) || is_of_pass(&explanation.prior))
}

fn operation_text(
    operation: &SyncOperation,
    is_near_miss: bool,
    explanation: &Explanation,
    names: &dyn ProgramNames,
) -> DiagnosticOperation {
    let scope = &operation.scope;
    let is_of_host = matches!(operation.kind, SyncOperationKind::HostWait | SyncOperationKind::Submit);
    let version = operation.version;
    let list = |mask: u64, names: fn(SyncVersion, u64) -> String| match mask {
        0 => Vec::new(),
        _ if is_of_host => Vec::new(),
        _ => names(version, mask).split('|').map(str::to_owned).collect(),
    };
    let made = DiagnosticOperation {
        kind: kind_name(operation.kind),
        scope: scope_text(operation, names),
        gap: gap_text(operation, explanation, names),
        is_near_miss,
        src_stages: list(scope.src_stages, SyncVersion::stage_names),
        src_access: list(scope.src_access, SyncVersion::access_names),
        dst_stages: list(scope.dst_stages, SyncVersion::stage_names),
        dst_access: list(scope.dst_access, SyncVersion::access_names),
        ..DiagnosticOperation::default()
    };
    // A subpass dependency is no command: it is declared in its render pass.
    if let OperationLocation::Subpass { pass, dependency } = operation.location {
        let function = subpass_dependency_name(dependency, operation.subpasses);
        return DiagnosticOperation { function, place: names.render_pass(pass), ..made };
    }
    // A semaphore is in the call that submits.
    let submitting_stack = || match (&operation.executed_at, operation.kind) {
        (ProgramLocation::Command(at), SyncOperationKind::Semaphore) => {
            names.call_stack(&ProgramLocation::Step(at.step))
        }
        _ => None,
    };
    DiagnosticOperation {
        function: match operation.kind {
            SyncOperationKind::Semaphore | SyncOperationKind::Submit | SyncOperationKind::HostWait => {
                names.submitting_call(&operation.executed_at).unwrap_or_default()
            }
            SyncOperationKind::Barrier | SyncOperationKind::Event | SyncOperationKind::SubpassDependency => {
                names.function(&operation.executed_at, 0)
            }
        },
        place: names.location(&operation.executed_at),
        labels: names.labels(&operation.executed_at),
        stack: names.call_stack(&operation.executed_at).or_else(submitting_stack).unwrap_or(0),
        ..made
    }
}

/// `subpass dependency 1: 0 -> EXTERNAL`, `implicit subpass dependency EXTERNAL -> 0`.
fn subpass_dependency_name(dependency: Option<u32>, subpasses: Option<(Option<u32>, Option<u32>)>) -> String {
    let name = |it: Option<u32>| subpass_name(it).replace("VK_SUBPASS_", "");
    let between = subpasses.map(|(src, dst)| format!("{} -> {}", name(src), name(dst))).unwrap_or_default();
    match dependency {
        Some(index) => format!("subpass dependency {index}: {between}"),
        None => format!("implicit subpass dependency {between}"),
    }
}

const fn kind_name(kind: SyncOperationKind) -> &'static str {
    match kind {
        SyncOperationKind::Barrier => "barrier",
        SyncOperationKind::Event => "event",
        SyncOperationKind::SubpassDependency => "subpass dependency",
        SyncOperationKind::Semaphore => "semaphore",
        SyncOperationKind::HostWait => "host wait",
        SyncOperationKind::Submit => "submission",
    }
}

/// The scopes of an operation: `"emitters": COPY -> VERTEX_SHADER`.
fn scope_text(operation: &SyncOperation, names: &dyn ProgramNames) -> String {
    let scope = &operation.scope;
    let stages = |mask: u64| short_names(&operation.version.stage_names(mask));
    let text = match (operation.kind, operation.location) {
        (SyncOperationKind::HostWait, _) => "the host waits".to_owned(),
        (SyncOperationKind::Submit, _) => "the host submits".to_owned(),
        (SyncOperationKind::Semaphore, OperationLocation::Semaphore { wait: None, .. })
        | (_, OperationLocation::SetEvent { .. }) => format!("{} -> nothing", stages(scope.src_stages)),
        _ => format!("{} -> {}", stages(scope.src_stages), stages(scope.dst_stages)),
    };
    match &operation.resource_region {
        Some((resource, _)) => format!("{}: {text}", name_of(*resource, names)),
        None => text,
    }
}

/// All gaps of an operation, in a few words.
fn gap_text(operation: &SyncOperation, explanation: &Explanation, names: &dyn ProgramNames) -> String {
    let gaps = &operation.gaps;
    let is_on_other_queue = gaps.contains(&CoverageGap::OtherQueue);
    let has_semaphore = explanation.operations.iter().any(|it| it.kind == SyncOperationKind::Semaphore);
    if is_on_other_queue && !has_semaphore {
        let half = [(CoverageGap::Release, "releases"), (CoverageGap::Acquire, "acquires")];
        if let Some((_, verb)) = half.iter().find(|it| gaps.contains(&it.0)) {
            return format!("{verb} it, but no semaphore orders the two queues");
        }
    }
    let lacks_nothing = operation.missing.dst_stages & !operation.scope.dst_stages == 0;
    let is_reported = |gap: &&CoverageGap| match gap {
        // The presentation has no stage.
        CoverageGap::DestinationStage => !lacks_nothing && !gaps.contains(&CoverageGap::NotBeforePresentation),
        // Another gap says what is missing.
        CoverageGap::SameCommand => gaps.len() == 1,
        _ => true,
    };
    let mut texts: Vec<String> =
        gaps.iter().filter(is_reported).map(|it| gap_words(*it, operation, explanation, names)).collect();
    texts.dedup();
    texts.join(", ")
}

/// The noun for an access.
fn noun(access: &ExplainedAccess) -> &'static str {
    match access.role {
        AccessRole::Acquire => "acquire",
        AccessRole::Transition if access.access == 0 => "layout transition",
        _ if access.is_write => "write",
        _ => "read",
    }
}

/// What a range lacks: `covers [0..512], not [512..1024]`.
fn range_words(own: &Region, wanted: &Region) -> String {
    let missing = match (own, wanted) {
        (Region::Buffer(own), Region::Buffer(bytes)) if own.start <= bytes.start && own.end > bytes.start => {
            Region::Buffer(own.end..bytes.end)
        }
        (Region::Buffer(own), Region::Buffer(bytes)) if own.start < bytes.end && own.end >= bytes.end => {
            Region::Buffer(bytes.start..own.start)
        }
        (_, Region::Image(image)) => {
            let mut image = image.clone();
            image.area = None;
            Region::Image(image)
        }
        _ => wanted.clone(),
    };
    format!("covers {}, not {}", region_text(own), region_text(&missing))
}

fn gap_words(
    gap: CoverageGap,
    operation: &SyncOperation,
    explanation: &Explanation,
    names: &dyn ProgramNames,
) -> String {
    let missing = &operation.missing;
    let stages = |mask: u64| short_names(&stage_names(mask));
    let accesses = |mask: u64| short_names(&access_names(mask));
    let about = |it: ResourceId| name_of(it, names);
    let (prior, later) = (&explanation.prior, &explanation.later);
    match gap {
        CoverageGap::SourceStage if missing.src_stages & !ALL != 0 => {
            format!("does not wait for {}", stages(missing.src_stages))
        }
        CoverageGap::SourceStage => format!("does not wait for the {}", noun(prior)),
        CoverageGap::SourceAccess => format!("lacks the source access {}", accesses(missing.src_access)),
        CoverageGap::DestinationStage => format!("does not reach {}", stages(missing.dst_stages)),
        CoverageGap::WaitStages if missing.dst_stages != ALL => {
            format!("does not reach {}", stages(missing.dst_stages))
        }
        CoverageGap::DestinationAccess => format!("lacks the destination access {}", accesses(missing.dst_access)),
        CoverageGap::OtherRange => match &operation.resource_region {
            Some((resource, own)) if *resource == later.resource => range_words(own, &explanation.region),
            _ => "covers another range".to_owned(),
        },
        CoverageGap::OtherResource => match &operation.resource_region {
            Some((resource, _)) => format!("covers {}, not {}", about(*resource), about(prior.resource)),
            None => "covers another resource".to_owned(),
        },
        CoverageGap::PriorThroughAlias(other) => {
            format!("does not cover {}, which the earlier access used", about(other))
        }
        CoverageGap::LaterThroughAlias(other) => {
            format!("does not cover {}, which the later access uses", about(other))
        }
        CoverageGap::BeforeAccess if operation.kind == SyncOperationKind::Submit => {
            format!("is submitted before the {}", noun(prior))
        }
        CoverageGap::BeforeAccess => format!("is recorded before the {}, so it does not cover it", noun(prior)),
        CoverageGap::AfterAccess => format!("is recorded after the {}, so it is too late", noun(later)),
        CoverageGap::SetBeforeAccess => format!("the event was set before the {}", noun(prior)),
        CoverageGap::SignaledBeforeAccess => format!("was signaled before the {}", noun(prior)),
        CoverageGap::SignaledElsewhere => format!("its signal does not come after the {}", noun(prior)),
        _ => fixed_words(gap, operation).to_owned(),
    }
}

const ALL: u64 = PipelineStageFlags2::ALL_COMMANDS.0;

/// The gaps that need no names.
fn fixed_words(gap: CoverageGap, operation: &SyncOperation) -> &'static str {
    match gap {
        CoverageGap::WaitStages => "the layout transition does not wait for it",
        CoverageGap::OtherQueue => "is on another queue",
        CoverageGap::NotAfterPresentation => "does not wait for the presentation engine",
        CoverageGap::NotAfterHost => "does not come after the access of the host",
        CoverageGap::NotBeforePresentation => "the presentation does not wait for it",
        CoverageGap::SetByHost => "the host set the event, not after the earlier access",
        CoverageGap::NotSet => "the event was not set",
        CoverageGap::WaitedElsewhere => "another queue waits for it",
        CoverageGap::NotVisibleToHost => "does not make the write visible to HOST",
        CoverageGap::SameCommand => "is in the same command as the layout transition, and does not order it",
        CoverageGap::NeverWaited => match operation.location {
            OperationLocation::SetEvent { .. } => "no command waits for the event",
            OperationLocation::Semaphore { wait: None, .. } => "nothing waits for it",
            _ => "the host does not wait for it",
        },
        CoverageGap::TransitionWaitsForNothing => "the layout transition has no source stage, and waits for nothing",
        CoverageGap::OtherSubpass => "is for another subpass",
        CoverageGap::Release => "releases it to another queue family",
        CoverageGap::Acquire => "acquires it from another queue family",
        CoverageGap::SubmittedBefore => "the later access was submitted before it",
        _ => "does not cover both accesses",
    }
}
