//! Lists the synchronization operations between two accesses for a report. The most relevant ones
//! come first, and the report counts the others.

use lavascope_abi::PipelineStageFlags2;
use lavascope_diag::{DiagnosticOperation, short_names};
use lavascope_sync_ir::{ResourceId, SyncScope};

use crate::text::api_names::{access_list, access_names, second_scope_stages, stage_list, stage_names};
use crate::text::title::name_of;
use crate::{
    AccessRole, CoverageGap, ExplainedAccess, Explanation, OperationLocation, ProgramNames, ScopeCoverage,
    SyncOperation, SyncOperationKind,
};

/// The report lists this many operations, and counts the others.
const LISTED_MAX: usize = 6;

/// How relevant an operation is for two accesses, the most relevant first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Relevance {
    /// The operation lacks bits in one of its scopes, or its range is too small.
    NearMiss,
    /// The operation would cover the accesses at another position.
    Misplaced,
    /// The first scope includes the earlier access, but the second scope does not include the later
    /// access.
    OnTheWay,
    /// The operation is limited to the resource of one of the accesses, or it is a semaphore, an
    /// event or a host wait near the earlier access.
    SameResource,
    Unrelated,
}

/// The operations to list, and the number of unrelated operations.
pub(crate) fn listed_operations(
    explanation: &Explanation,
    names: &dyn ProgramNames,
) -> (Vec<DiagnosticOperation>, u64) {
    let rank = |it: &SyncOperation| relevance(it, explanation);
    let mut ranked: Vec<(Relevance, &SyncOperation)> =
        explanation.operations.iter().map(|it| (rank(it), it)).filter(|it| it.0 != Relevance::Unrelated).collect();
    // Within one rank, the operation nearest to the later access comes first.
    ranked.reverse();
    ranked.sort_by_key(|it| it.0);
    let mut listed: Vec<DiagnosticOperation> = Vec::new();
    let mut count = 0;
    for (rank, operation) in ranked {
        let made = operation_text(operation, rank == Relevance::NearMiss, names);
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
    if is_idle_implicit(operation, explanation) {
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
    match operation.coverage {
        _ if is_near && (lacks != [true, true] || is_named(operation, is_about_resource)) => Relevance::NearMiss,
        _ if !gaps.is_empty() && gaps.iter().all(is_misplaced) => Relevance::Misplaced,
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

fn operation_text(operation: &SyncOperation, is_near_miss: bool, names: &dyn ProgramNames) -> DiagnosticOperation {
    let scope = &operation.scope;
    let is_of_host = matches!(operation.kind, SyncOperationKind::HostWait | SyncOperationKind::Submit);
    let mask = |mask: u64, list: fn(u64) -> Vec<String>| if is_of_host { Vec::new() } else { list(mask) };
    DiagnosticOperation {
        kind: kind_name(operation.kind),
        function: match operation.kind {
            SyncOperationKind::SubpassDependency => "VkSubpassDependency2".to_owned(),
            SyncOperationKind::Semaphore | SyncOperationKind::Submit => {
                names.submitting_call(&operation.executed_at).unwrap_or_default()
            }
            SyncOperationKind::HostWait => names.submitting_call(&operation.executed_at).unwrap_or_default(),
            SyncOperationKind::Barrier | SyncOperationKind::Event => names.function(&operation.executed_at, 0),
        },
        scope: scope_text(operation, names),
        gap: gap_text(operation, names),
        is_near_miss,
        src_stages: mask(scope.src_stages, stage_list),
        src_access: mask(scope.src_access, access_list),
        dst_stages: mask(scope.dst_stages, stage_list),
        dst_access: mask(scope.dst_access, access_list),
        place: names.location(&operation.executed_at),
        labels: names.labels(&operation.executed_at),
        stack: names.call_stack(&operation.executed_at).unwrap_or(0),
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
    let stages = |mask: u64| short_names(&stage_names(mask));
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
fn gap_text(operation: &SyncOperation, names: &dyn ProgramNames) -> String {
    let lacks_nothing = operation.missing.dst_stages & !operation.scope.dst_stages == 0;
    let gaps = operation.gaps.iter().filter(|it| **it != CoverageGap::DestinationStage || !lacks_nothing);
    let mut texts: Vec<String> = gaps.map(|it| gap_words(*it, operation, names)).collect();
    texts.dedup();
    texts.join(", ")
}

fn gap_words(gap: CoverageGap, operation: &SyncOperation, names: &dyn ProgramNames) -> String {
    const ALL: u64 = PipelineStageFlags2::ALL_COMMANDS.0;
    let missing = &operation.missing;
    let stages = |mask: u64| short_names(&stage_names(mask));
    let accesses = |mask: u64| short_names(&access_names(mask));
    let about = |it: ResourceId| name_of(it, names);
    let words = match gap {
        CoverageGap::SourceStage if missing.src_stages & !ALL != 0 => {
            return format!("does not wait for {}", stages(missing.src_stages));
        }
        CoverageGap::SourceStage => "does not continue from the earlier access",
        CoverageGap::SourceAccess => return format!("lacks the source access {}", accesses(missing.src_access)),
        CoverageGap::WaitStages if missing.dst_stages == ALL => "the layout transition does not wait for it",
        CoverageGap::DestinationStage | CoverageGap::WaitStages => {
            return format!("does not reach {}", stages(missing.dst_stages));
        }
        CoverageGap::DestinationAccess => {
            return format!("lacks the destination access {}", accesses(missing.dst_access));
        }
        CoverageGap::OtherRange => "is about another range",
        CoverageGap::OtherResource => "is about another resource",
        CoverageGap::PriorThroughAlias(other) => {
            return format!("is not about {}, which the earlier access used", about(other));
        }
        CoverageGap::LaterThroughAlias(other) => {
            return format!("is not about {}, which the later access uses", about(other));
        }
        CoverageGap::OtherQueue => "is on another queue",
        CoverageGap::NotAfterPresentation => "does not wait for the presentation engine",
        CoverageGap::NotAfterHost => "does not come after the access of the host",
        CoverageGap::NotBeforePresentation => "the presentation does not wait for it",
        CoverageGap::BeforeAccess => "comes before the earlier access",
        CoverageGap::AfterAccess => "comes after the later access",
        CoverageGap::SetBeforeAccess => "the event was set before the earlier access",
        CoverageGap::SetByHost => "the host set the event, not after the earlier access",
        CoverageGap::NotSet => "the event was not set",
        CoverageGap::SignaledBeforeAccess => "was signaled before the earlier access",
        CoverageGap::SignaledElsewhere => "its signal does not come after the earlier access",
        CoverageGap::WaitedElsewhere => "another queue waits for it",
        CoverageGap::NotVisibleToHost => "does not make the write visible to HOST",
        CoverageGap::SameCommand => "is part of the same command, whose dependencies do not chain",
        CoverageGap::NeverWaited => match operation.location {
            OperationLocation::SetEvent { .. } => "no command waits for the event",
            OperationLocation::Semaphore { wait: None, .. } => "nothing waits for it",
            _ => "the host does not wait for it",
        },
        CoverageGap::TransitionWaitsForNothing => "the layout transition has no source stage, and waits for nothing",
        CoverageGap::OtherSubpass => "is about another subpass",
        CoverageGap::Release => "gives the resource to another queue family",
        CoverageGap::Acquire => "takes the resource over from another queue family",
        CoverageGap::SubmittedBefore => "the later access was submitted before it",
    };
    words.to_owned()
}
