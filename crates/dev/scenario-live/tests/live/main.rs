//! Every scenario of the hazard engine as Vulkan calls: on the null driver, through the loader, under our layer. The
//! messages that reach the application must be those that the scenario expects: kind, both places, resource and range.

mod child;
mod corpus;
mod told;
mod unable;

use std::collections::BTreeMap;

use corpus::{Mode, Outcome, Way};
use unable::UNABLE;

/// The share of scenarios that are performed, in percent, is at least this.
const PERFORMED_MIN: usize = 95;

/// Performs all scenarios in one way: what is told must be what is expected, and what cannot be performed as it stands
/// must be known. Other words need not be able to say everything.
fn judge(test: &str, way: Way, mode: Mode) {
    let lines = child::run(test, way, mode);
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    let (mut told, mut wrong) = (0, Vec::new());
    for it in &lines {
        let known = UNABLE.iter().find(|known| it.name.split(' ').next() == Some(known.0));
        match (&it.outcome, known) {
            (Outcome::Told, None) => told += 1,
            // Without masks there may be nothing left that could not be said.
            (Outcome::Told, Some(_)) if way == Way::Bare => told += 1,
            (Outcome::Told, Some(_)) => wrong.push(format!("{}: is performed, and has to leave the list", it.name)),
            (Outcome::Unable(why), Some((_, expected))) if why == expected => {}
            (Outcome::Unable(why), _) if way == Way::Variations => *reasons.entry(why).or_default() += 1,
            (Outcome::Unable(why), _) => {
                wrong.push(format!("{}: cannot be performed, and is not in the list in unable.rs: {why}", it.name));
            }
            (Outcome::Wrong(text), _) => wrong.push(format!("{}:\n{text}", it.name)),
        }
    }
    println!("{test}: {told} of {} are performed and told as expected; not: {reasons:#?}", lines.len());
    assert!(wrong.is_empty(), "{} of {} are told otherwise\n{}", wrong.len(), lines.len(), wrong.join("\n\n"));
    let is_part = std::env::var(child::ONLY).is_ok();
    assert!(is_part || told * 100 >= lines.len() * PERFORMED_MIN, "{told} of {} are performed", lines.len());
}

#[test]
fn every_scenario_is_told_inside_of_its_calls() {
    judge("every_scenario_is_told_inside_of_its_calls", Way::Plain, Mode::Inline);
}

#[test]
fn every_scenario_is_told_by_the_thread_of_the_layer() {
    judge("every_scenario_is_told_by_the_thread_of_the_layer", Way::Submit1, Mode::Async);
}

#[test]
fn command_buffers_of_several_threads_are_told_the_same() {
    judge("command_buffers_of_several_threads_are_told_the_same", Way::Threads, Mode::Inline);
}

#[test]
fn several_threads_are_told_the_same_by_the_thread_of_the_layer() {
    judge("several_threads_are_told_the_same_by_the_thread_of_the_layer", Way::Threads, Mode::Async);
}

#[test]
fn other_words_are_told_the_same() {
    judge("other_words_are_told_the_same", Way::Variations, Mode::Inline);
}

#[test]
fn without_synchronization_everything_is_told() {
    judge("without_synchronization_everything_is_told", Way::Bare, Mode::Inline);
}
