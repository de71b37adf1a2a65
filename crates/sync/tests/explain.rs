//! Explanations, fixes and surplus, on random programs and on a few written by hand.
//!
//! `LAVASCOPE_SAMPLE_PROGRAMS` and `LAVASCOPE_SAMPLE_SEED` make it more, and others.

use std::collections::BTreeMap;

use lavascope_program::{Found, Place, Program, ResourceId};
use lavascope_sim::hazard::{Kinds, print, random_program, shrink};
use lavascope_sync::check;
use lavascope_sync::explain::{Explainer, Explanation, Gap, Lane, Verdict};

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().and_then(|it| it.parse().ok()).unwrap_or(default)
}

fn programs(kinds: Kinds, count: u64) -> impl Iterator<Item = (u64, Program)> {
    let first = number("LAVASCOPE_SAMPLE_SEED", 1);
    let count = number("LAVASCOPE_SAMPLE_PROGRAMS", count);
    (first..first + count).map(move |seed| (seed, random_program(seed, &kinds)))
}

#[derive(Default)]
struct Agreement {
    hazards: usize,
    neighbors: usize,
    wrong: Vec<String>,
}

/// Every hazard is explained by a pair of accesses that nothing covers, and two accesses that follow each other are
/// covered exactly if there is no hazard between them.
fn agreement(program: &Program) -> Agreement {
    let mut all = Agreement::default();
    let found = check(program);
    let explainer = Explainer::new(program);
    for it in &found {
        all.hazards += 1;
        if explainer.explain(it).is_none_or(|it| it.is_covered) {
            all.wrong.push(format!("{it:?} is a hazard, but covered"));
        }
    }
    // A command may access the same memory in several ways: it is covered if all are.
    let mut pairs: BTreeMap<(Place, Place, ResourceId), bool> = BTreeMap::new();
    for it in explainer.neighbors() {
        *pairs.entry((it.at, it.prior, it.resource)).or_insert(true) &= it.is_covered;
    }
    for (pair, is_covered) in pairs {
        all.neighbors += 1;
        let same = |it: &&Found| (&it.at, &it.prior, &it.resource) == (&pair.0, &pair.1, &pair.2);
        let hazard = found.iter().find(same);
        if hazard.is_some() == is_covered {
            all.wrong.push(format!("{pair:?} is covered: {is_covered}; {found:#?}"));
        }
    }
    all
}

fn agrees(kinds: Kinds, count: u64) {
    let (mut hazards, mut neighbors) = (0, 0);
    let mut wrong: Vec<u64> = Vec::new();
    let mut shown = String::new();
    for (seed, program) in programs(kinds, count) {
        let it = agreement(&program);
        hazards += it.hazards;
        neighbors += it.neighbors;
        if !it.wrong.is_empty() {
            wrong.push(seed);
            if wrong.len() <= 3 {
                let small = shrink(&program, &|it| !agreement(it).wrong.is_empty());
                shown += &format!("seed {seed}: {}\n{}", agreement(&small).wrong[0], print(&small));
            }
        }
    }
    println!("{hazards} hazards, {neighbors} neighbors, wrong in {wrong:?}");
    assert!(wrong.is_empty(), "{} programs of {count}\n{shown}", wrong.len());
    assert!(hazards > count as usize / 10 && neighbors > hazards);
}

#[test]
fn the_follower_agrees_on_barriers() {
    agrees(Kinds::BARRIERS, 500);
}

#[test]
fn the_follower_agrees_on_queues_events_and_secondaries() {
    agrees(Kinds::STAGE_ONE, 500);
}

#[test]
fn the_follower_agrees_on_everything() {
    agrees(Kinds::ALL, 500);
}

/// What can be done about the hazards of random programs.
fn fixes(kinds: Kinds, count: u64) -> (usize, usize, BTreeMap<String, usize>) {
    let (mut hazards, mut fixed) = (0, 0);
    let mut without: BTreeMap<String, usize> = BTreeMap::new();
    for (seed, program) in programs(kinds, count) {
        let found = check(&program);
        let explainer = Explainer::new(&program);
        for it in &found {
            let proposal = explainer.propose(it, &found);
            hazards += 1;
            match proposal.fixes.first() {
                Some(_) => fixed += 1,
                None => {
                    let why = proposal.why_not.expect("a reason stands where no fix does");
                    if std::env::var("SHOW").is_ok() && without.get(&why).is_none_or(|it| *it < 2) {
                        println!("seed {seed}: {it:?} {why}\n{:#?}\n{}", explainer.explain(it), print(&program));
                    }
                    *without.entry(format!("{:?}: {why}", it.kind)).or_default() += 1;
                }
            }
        }
    }
    println!("{fixed} of {hazards} hazards have a verified fix; others: {without:#?}");
    (hazards, fixed, without)
}

#[test]
fn most_hazards_have_a_verified_fix() {
    for kinds in [Kinds::BARRIERS, Kinds::STAGE_ONE, Kinds::ALL] {
        let (hazards, fixed, _) = fixes(kinds, 150);
        assert!(fixed * 100 > hazards * 90, "{fixed} of {hazards}");
    }
}
