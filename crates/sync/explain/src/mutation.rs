//! Weakens correct programs bit by bit: the explanation must name the operation that was weakened.

use lavascope_sim::hazard::{Kinds, random_program};
use lavascope_sync_ir::{Hazard, Program, SyncScope};

use super::surplus::{Removal, single_bits, sites, without};
use super::{Explainer, Gap, Operation, Site, Verdict};
use lavascope_engine::check;

/// What explanations say about what was weakened.
#[derive(Debug, Default)]
struct Score {
    /// Weakened programs that have hazards.
    all: usize,
    /// Of these, where an explanation names the operation,
    named: usize,
    /// and says that just that side of it is lacking.
    blamed: usize,
}

fn score(kinds: Kinds, programs: u64) -> Score {
    let mut score = Score::default();
    for program in (1..=programs).map(|seed| random_program(seed, &kinds)).filter(|it| check(it).is_empty()) {
        for (site, scope, _) in sites(&program) {
            for bits in single_bits(scope) {
                let Some(weak) = without(&program, site, Removal::Bits(bits)) else { continue };
                let found = check(&weak);
                if found.is_empty() {
                    continue;
                }
                let named = operations(&weak, &found, site);
                score.all += 1;
                score.named += usize::from(!named.is_empty());
                score.blamed += usize::from(named.iter().flat_map(|it| &it.gaps).any(|gap| is_about(*gap, bits)));
            }
        }
    }
    score
}

/// What explanations say of the operation that was weakened.
fn operations(program: &Program, found: &[Hazard], site: Site) -> Vec<Operation> {
    let explainer = Explainer::new(program);
    let explanations = found.iter().filter_map(|it| explainer.explain(it));
    let is_it = |it: &Operation| it.verdict != Verdict::Covers && is_same(it.site, site);
    explanations.flat_map(|it| it.operations).filter(is_it).collect()
}

fn is_about(gap: Gap, bits: SyncScope) -> bool {
    match gap {
        // Without its stage an access is not in the access scope either.
        Gap::SourceStage => bits.src_stages != 0,
        Gap::SourceAccess => bits.src_access != 0,
        Gap::DestinationStage | Gap::WaitStages => bits.dst_stages != 0,
        Gap::DestinationAccess => bits.dst_access != 0,
        _ => false,
    }
}

/// A weakened site knows one end of a semaphore, and not where an event was set.
fn is_same(own: Site, weakened: Site) -> bool {
    match (own, weakened) {
        (Site::Event { buffer, command, element, .. }, Site::Event { buffer: b, command: c, element: e, .. }) => {
            (buffer, command) == (b, c) && (e.is_none() || element == e)
        }
        (Site::Semaphore { signal, wait }, Site::Semaphore { signal: s, wait: w }) => {
            s.is_some() && signal == s || w.is_some() && wait == w
        }
        // The masks of a whole command of version 1 are those of its elements too.
        (Site::Barrier { buffer, command, .. }, Site::Barrier { buffer: b, command: c, element: None }) => {
            (buffer, command) == (b, c)
        }
        (own, weakened) => own == weakened,
    }
}

#[test]
fn explanations_name_what_was_weakened() {
    for kinds in [Kinds::BARRIERS, Kinds::STAGE_ONE, Kinds::ALL] {
        let score = score(kinds, 200);
        println!("{score:?}");
        assert!(score.all > 100 && score.named * 100 >= score.all * 95, "{score:?}");
        assert!(score.blamed * 100 >= score.all * 90, "{score:?}");
    }
}
