//! Weakens correct programs bit by bit: the explanation must name the operation that was weakened.

use lavascope_program::{Found, Program};
use lavascope_sim::hazard::{Kinds, random_program};

use super::surplus::{Removal, single_bits, sites, without};
use super::{Explainer, Site, Verdict};
use crate::check;

/// Of the weakened programs that have hazards: those in which an explanation names what was weakened, and all.
fn named(kinds: Kinds, programs: u64) -> (usize, usize) {
    let (mut named, mut all) = (0, 0);
    for program in (1..=programs).map(|seed| random_program(seed, &kinds)).filter(|it| check(it).is_empty()) {
        for (site, scope, _) in sites(&program) {
            for bits in single_bits(scope) {
                let Some(weak) = without(&program, site, Removal::Bits(bits)) else { continue };
                let found = check(&weak);
                if !found.is_empty() {
                    all += 1;
                    named += usize::from(names(&weak, &found, site));
                    if std::env::var("SHOW").is_ok() && !names(&weak, &found, site) {
                        println!("{site:?} {bits:?} {:#?}\n{}", found[0], lavascope_sim::hazard::print(&weak));
                        println!("{:#?}", Explainer::new(&weak).explain(&found[0]));
                    }
                }
            }
        }
    }
    (named, all)
}

fn names(program: &Program, found: &[Found], site: Site) -> bool {
    let explainer = Explainer::new(program);
    let explanations = found.iter().filter_map(|it| explainer.explain(it));
    let is_it = |it: &super::Operation| it.verdict != Verdict::Covers && is_same(it.site, site);
    explanations.into_iter().any(|it| it.operations.iter().any(is_it))
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
        let (named, all) = named(kinds, 60);
        println!("{named} of {all} weakened operations are named");
        assert!(all > 20 && named * 100 >= all * 95, "{named} of {all}");
    }
}
