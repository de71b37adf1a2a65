//! Tests the explanations: removes single bits from the synchronization of correct programs. The
//! explanation must name the weakened operation.

use super::redundant_sync::RemovableSync;
use lavascope_sim::programs::{ProgramFeatures, random_program};
use lavascope_sync_ir::{Hazard, Program, SyncScope};

use super::redundant_sync::{Removal, single_bits, sync_locations, without_sync};
use crate::{CoverageGap, Explainer, OperationLocation, ScopeCoverage, SyncOperation};
use lavascope_engine::check;

/// How well explanations blame the weakened operations.
#[derive(Debug, Default)]
struct ExplanationScore {
    /// The weakened programs that have hazards.
    all: usize,
    /// Those of `all` where an explanation names the weakened operation.
    named: usize,
    /// Those of `named` where the explanation also blames the mask with the removed bit.
    blamed: usize,
}

fn score(kinds: ProgramFeatures, programs: u64) -> ExplanationScore {
    let mut score = ExplanationScore::default();
    for program in (1..=programs).map(|seed| random_program(seed, &kinds)).filter(|it| check(it).is_empty()) {
        for RemovableSync { location, scope, .. } in sync_locations(&program) {
            for bits in single_bits(scope) {
                let Some(weak) = without_sync(&program, location, Removal::Bits(bits)) else { continue };
                let found = check(&weak);
                if found.is_empty() {
                    continue;
                }
                let named = operations(&weak, &found, location);
                score.all += 1;
                score.named += usize::from(!named.is_empty());
                score.blamed += usize::from(named.iter().flat_map(|it| &it.gaps).any(|gap| blames_bits(*gap, bits)));
            }
        }
    }
    score
}

/// The weakened operation, as the explanations describe it.
fn operations(program: &Program, found: &[Hazard], location: OperationLocation) -> Vec<SyncOperation> {
    let explainer = Explainer::new(program);
    let explanations = found.iter().filter_map(|it| explainer.explain(it));
    let is_it = |it: &SyncOperation| it.coverage != ScopeCoverage::Both && is_same(it.location, location);
    explanations.flat_map(|it| it.operations).filter(is_it).collect()
}

fn blames_bits(gap: CoverageGap, bits: SyncScope) -> bool {
    match gap {
        // An access without its stage is not in the access scope either
        // (`synchronization-dependencies-access-scopes`).
        CoverageGap::SourceStage => bits.src_stages != 0,
        CoverageGap::SourceAccess => bits.src_access != 0,
        CoverageGap::DestinationStage | CoverageGap::WaitStages => bits.dst_stages != 0,
        CoverageGap::DestinationAccess => bits.dst_access != 0,
        _ => false,
    }
}

/// Whether an operation of an explanation is the weakened one. The location of a weakened semaphore
/// has only the signal or the wait, and that of an event has no set.
fn is_same(own: OperationLocation, weakened: OperationLocation) -> bool {
    match (own, weakened) {
        (
            OperationLocation::Event { buffer, command, dependency: element, .. },
            OperationLocation::Event { buffer: b, command: c, dependency: e, .. },
        ) => (buffer, command) == (b, c) && (e.is_none() || element == e),
        (OperationLocation::Semaphore { signal, wait }, OperationLocation::Semaphore { signal: s, wait: w }) => {
            s.is_some() && signal == s || w.is_some() && wait == w
        }
        // In version 1, the masks of the command are also those of its dependencies.
        (
            OperationLocation::Barrier { buffer, command, .. },
            OperationLocation::Barrier { buffer: b, command: c, dependency: None },
        ) => (buffer, command) == (b, c),
        (own, weakened) => own == weakened,
    }
}

#[test]
fn explanations_name_what_was_weakened() {
    for kinds in [ProgramFeatures::BARRIERS, ProgramFeatures::WITHOUT_RENDERING, ProgramFeatures::ALL] {
        let score = score(kinds, 200);
        println!("{score:?}");
        assert!(score.all > 100 && score.named * 100 >= score.all * 95, "{score:?}");
        assert!(score.blamed * 100 >= score.all * 90, "{score:?}");
    }
}
