//! Every scenario of the hazard engine as Vulkan calls: on the null driver, through the loader, under our layer. The
//! messages that reach the application must be those that the scenario expects: kind, both places, resource and range.

mod child;
mod message_parser;
mod scenarios;
mod unsupported;

use std::collections::BTreeMap;

use scenarios::{LiveVariant, Mode, ScenarioOutcome};
use unsupported::UNSUPPORTED;

/// The share of scenarios that are performed, in percent, is at least this.
const PERFORMED_MIN: usize = 94;

/// Performs all scenarios in one way: the messages must be those that are expected, and the scenarios that cannot be
/// performed must be listed. Variations need not be able to express every program.
fn check_all(test: &str, variant: LiveVariant, mode: Mode) {
    let lines = child::run(test, variant, mode);
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    let (mut expected_count, mut wrong) = (0, Vec::new());
    for scenario_result in &lines {
        let known = UNSUPPORTED.iter().find(|known| scenario_result.name.split(' ').next() == Some(known.0));
        match (&scenario_result.outcome, known) {
            (ScenarioOutcome::AsExpected, None) => expected_count += 1,
            // Without masks, everything that remains may be expressible.
            (ScenarioOutcome::AsExpected, Some(_)) if variant == LiveVariant::Unsynchronized => expected_count += 1,
            (ScenarioOutcome::AsExpected, Some(_)) => {
                wrong.push(format!("{}: is performed, and has to leave the list", scenario_result.name))
            }
            (ScenarioOutcome::Unsupported(why), Some((_, expected))) if why == expected => {}
            (ScenarioOutcome::Unsupported(why), _) if variant == LiveVariant::Variations => {
                *reasons.entry(why).or_default() += 1
            }
            (ScenarioOutcome::Unsupported(why), _) => {
                wrong.push(format!(
                    "{}: cannot be performed, and is not in the list in unable.rs: {why}",
                    scenario_result.name
                ));
            }
            (ScenarioOutcome::Wrong(text), _) => wrong.push(format!("{}:\n{text}", scenario_result.name)),
        }
    }
    println!("{test}: {expected_count} of {} are performed and reported as expected; not: {reasons:#?}", lines.len());
    assert!(wrong.is_empty(), "{} of {} are told otherwise\n{}", wrong.len(), lines.len(), wrong.join("\n\n"));
    let is_part = std::env::var(child::ONLY).is_ok();
    assert!(
        is_part || expected_count * 100 >= lines.len() * PERFORMED_MIN,
        "{expected_count} of {} are performed",
        lines.len()
    );
}

#[test]
fn every_scenario_is_reported_inside_of_its_calls() {
    check_all("every_scenario_is_reported_inside_of_its_calls", LiveVariant::Plain, Mode::Inline);
}

#[test]
fn every_scenario_is_reported_by_the_thread_of_the_layer() {
    check_all("every_scenario_is_reported_by_the_thread_of_the_layer", LiveVariant::Submit1, Mode::Async);
}

#[test]
fn command_buffers_of_several_threads_are_reported_the_same() {
    check_all("command_buffers_of_several_threads_are_reported_the_same", LiveVariant::Threads, Mode::Inline);
}

#[test]
fn several_threads_are_reported_the_same_by_the_thread_of_the_layer() {
    check_all("several_threads_are_reported_the_same_by_the_thread_of_the_layer", LiveVariant::Threads, Mode::Async);
}

#[test]
fn other_words_are_reported_the_same() {
    check_all("other_words_are_reported_the_same", LiveVariant::Variations, Mode::Inline);
}

#[test]
fn without_synchronization_everything_is_reported() {
    check_all("without_synchronization_everything_is_reported", LiveVariant::Unsynchronized, Mode::Inline);
}
